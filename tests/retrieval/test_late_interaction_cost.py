"""late_cost, late_match, matchplot: what token vectors take, and which of them match."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny_encoder import make_model

from mirblab.core.errors import MirblabError
from mirblab.display import plots
from mirblab.encoders.encoding import encoder
from mirblab.retrieval import late_interaction
from mirblab.retrieval.late_interaction import token_similarities, token_storage_table
from mirblab.sources import catalogue


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tiny random model of 16 dimensions, whose tokens of "let x be" are these three words."""
    return make_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def collection(make_folder):
    """Return a collection of three documents with 1, 2 and 6 tokens."""
    texts = ("ring", "prime ideal", "let x be a prime ideal")
    return catalogue.load(
        make_folder([{"_id": f"d{n}", "text": text} for n, text in enumerate(texts)], qrels="q1\td1\t1\n")
    )


def test_storage_by_hand(collection, folder: Path):
    """Three tokens a document on average, of 16 numbers each."""
    table = token_storage_table(collection, str(folder))
    assert table.what.tolist() == ["one vector"] * 2 + ["tokens"] * 3
    assert table.dtype.tolist() == ["float32", "float16", "float32", "float16", "int8"]
    assert table.vectors.tolist() == [1, 1, 3, 3, 3]
    assert table.bytes.tolist() == [64, 32, 192, 96, 3 * 18]
    assert table.total.tolist() == [192, 96, 576, 288, 162]
    assert table.ratio.tolist() == [1, 0.5, 3, 1.5, 54 / 64]
    assert table.seconds.isna().all()


def test_smaller_token_vectors_are_counted_as_they_are_stored(collection, folder: Path):
    """1, 1 and 3 vectors when tokens are merged by two; each way of shrinking with each."""
    table = token_storage_table(collection, str(folder), dimensions=[0, 4], factors=[1, 2])
    halves = table[table.dtype.eq("float16")].iloc[1:]
    assert list(zip(halves.what, halves.dimensions, strict=True)) == [
        ("tokens", 16), ("tokens", 4), ("tokens, merged by 2", 16), ("tokens, merged by 2", 4)
    ]  # fmt: skip
    assert halves.vectors.tolist() == pytest.approx([3, 3, 5 / 3, 5 / 3])
    assert halves.bytes.tolist() == pytest.approx([96, 24, 160 / 3, 40 / 3])


def test_times_are_those_of_what_is_stored(collection, folder: Path):
    """Float32 for passages and float16 for tokens; nothing is claimed for the others."""
    table = token_storage_table(collection, str(folder), n_queries=2)
    assert table.dtype[table.seconds > 0].tolist() == ["float32", "float16"]
    assert table.seconds.isna().sum() == 3


def test_matches_are_cosines_with_the_tokens_as_names(folder: Path):
    """Rows are the query's tokens, and the score is that of the search."""
    table = token_similarities("let x be", "x is prime x", str(folder))
    assert table.index.tolist() == ["let", "x", "be"] and table.columns.tolist() == ["x", "is", "prime", "x"]
    model = encoder(folder)
    (query,), (document,) = model.token_vectors(["let x be"], "query"), model.token_vectors(["x is prime x"])
    np.testing.assert_allclose(table.to_numpy(), query @ document.T, atol=1e-6)
    assert table.attrs["score"] == late_interaction.max_sim(query, document)
    with pytest.raises(MirblabError, match="the document '' has no tokens"):
        token_similarities("x", "", str(folder))


def test_the_picture_marks_each_query_tokens_best(folder: Path):
    """On the given axes, with every token named, repeated ones too, and formulas as they are."""
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1]
    table = pd.DataFrame([[0.1, 0.9, 0.2], [0.8, 0.3, 0.4]], index=["$", "x"], columns=["x", "$", "$"])
    assert plots.token_matches(table, ax=ax) is ax
    assert ax.lines[0].get_xydata().tolist() == [[1.5, 0.5], [0.5, 1.5]]  # the middles of the cells
    assert [label.get_text() for label in ax.get_xticklabels()] == ["x", "$", "$"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["$", "x"]


def test_a_long_text_does_not_make_a_picture_of_any_size():
    """It stays on a page."""

    ax = plots.token_matches(pd.DataFrame(np.zeros((9, 400))))
    assert ax.figure.get_figwidth() == pytest.approx(14) and 3 < ax.figure.get_figheight() < 5
