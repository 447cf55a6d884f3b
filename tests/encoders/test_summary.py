"""What MIRB takes is the paper's own hours, shared out."""

from __future__ import annotations

import pandas as pd
import pytest

from mirblab.core.errors import MirblabError
from mirblab.encoders import summary
from mirblab.evaluation import published


def test_sizes_are_those_of_table_1():
    """Twelve collections; MSE alone is three quarters of all tokens."""
    found = summary.collection_sizes().set_index("paper")
    assert len(found) == 12 and found.documents.sum() == 2_373_330
    assert found.loc["MSE Dup. Question Retrieval", "tokens"] == round(2.5 * (25116 * 97.22 + 1350505 * 116.42))
    assert found.tokens.idxmax() == "MSE Dup. Question Retrieval"


def test_the_table_of_models_is_that_of_the_paper():
    """Name, size and longest input; where it says Yes and we no, a fixed prompt or a field of the request is meant."""
    cells = published.paper_cells("mirb", 7)
    cells = cells[cells.system != "bm25-mirb"]
    printed = cells.pivot(index="system", columns="column", values="value")
    found = summary.model_table(printed.index)
    assert len(printed) == 12 and found.index.tolist() == printed.index.tolist()
    names = cells.drop_duplicates("system").set_index("system").row
    assert found.label.to_dict() == names.to_dict() and found["size"].to_dict() == printed["Size"].to_dict()
    for column in ("Max |Q|", "Max |D|"):
        assert found.tokens.astype(str).to_dict() == printed[column].to_dict()
    differ = found.instruction.str.title() != printed.Instruction
    assert differ[differ].index.tolist() == ["bge-large-en-v1.5", "uae-large-v1", "voyage-3-large"]
    assert set(found.instruction[differ]) == {"no"}


def test_the_paper_s_hours_come_back_for_the_paper_s_models():
    """36 for the 1.5B model, about 64 for those of 7B, about 6 below 1B; hosted ones have a price instead."""
    hours = summary.cost_table().groupby("encoder").gpu_hours.sum(min_count=1)
    assert hours["gte-qwen2-1.5b-instruct"] == pytest.approx(36, rel=0.01)
    assert 60 < hours["e5-mistral-7b-instruct"] < 70 and 5 < hours["bge-large-en-v1.5"] < 7
    assert hours[["voyage-3-large", "text-embedding-3-large"]].isna().all()


def test_a_price_is_tokens_times_price():
    """By collection and in all."""
    from mirblab.core import registry

    price = registry.read_registry("encoders")["voyage-3-large"]["price_per_million_tokens"]
    found = summary.cost_table(["voyage-3-large"])
    assert found.dollars.sum() == pytest.approx(found.tokens.sum() * price / 1e6)


def test_disk_is_one_float_per_dimension():
    """Four bytes each, for documents and queries."""
    row = summary.cost_table(["bge-large-en-v1.5"]).set_index("paper").loc["HolStep"]
    assert row.disk == (3973 + 1411) * 1024 * 4


def test_what_is_stored_is_told_by_encoder_and_paper():
    """Nothing else is counted."""
    found = summary.cost_table(["minilm", "bge-large-en-v1.5"], {("minilm", "Stacks"): 0.5})
    assert found.set_index(["encoder", "paper"]).stored.sum() == 0.5


def test_an_encoder_is_the_same_by_its_label_and_in_other_case():
    """What MIRB's code gave stands beside it; a name that was not matched seemed to have no other input."""
    expected = summary.input_table(["gritlm-7b", "voyage-3-large"], "Is it?", "A ring.", "Find it.")
    assert (expected.mirb != "").any() and expected.input_type.any()
    found = summary.input_table(["GRITLM-7B", "Voyage-3-Large"], "Is it?", "A ring.", "Find it.")
    assert found.mirb.tolist() == expected.mirb.tolist()
    pd.testing.assert_frame_equal(found, expected)


def test_wrong_names_and_sizes_are_refused():
    """With what was found."""
    with pytest.raises(MirblabError, match="did you mean 'voyage-3-large'"):
        summary.cost_table(["voyage-3-lage"])
    with pytest.raises(MirblabError, match="written as 335M or 7.11B, found 'large'"):
        summary.estimate_gpu_hours("large")


def test_every_encoder_of_table_7_is_registered():
    """BM25 apart, which encodes nothing."""
    rows = set(published.paper_cells("mirb", 7).system)
    assert rows - set(summary.published_encoders()) == {"bm25-mirb"}
