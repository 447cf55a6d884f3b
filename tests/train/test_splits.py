"""train.pairs drops training rows that nearly repeat held-out ones, and says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mirblab.core.errors import MirblabError
from mirblab.train import pairs


def rows(n: int, seed: int = 0) -> pd.DataFrame:
    """Return *n* rows of random words: no two resemble each other in any view."""
    random = np.random.default_rng(seed)
    texts = [" ".join(f"{word}{number}" for number in random.integers(0, 10**6, 12)) for word in ("w",) * 3 * n]
    ids = [f"r{number:03d}" for number in range(n)]
    return pd.DataFrame({"id": ids, "informal": texts[:n], "signature": texts[n : 2 * n], "type": texts[2 * n :]})


def changed(text: str) -> str:
    """Return a text with its last word changed, which leaves 9 of 11 word triples."""
    return f"{text.rsplit(' ', 1)[0]} otherwise"


def test_training_rows_that_repeat_held_out_ones_are_dropped_with_the_reason() -> None:
    """The report names row, view, twin and similarity; empty texts repeat nothing."""
    train, held_out = rows(8), rows(3, seed=9).assign(id=["h0", "h1", "h2"])
    train.loc[5, "signature"] = changed(held_out.signature[2])
    train.loc[1, "informal"] = held_out.informal[0].upper()
    train.loc[[0, 3], "type"], held_out.loc[1, "type"] = "", ""
    found = pairs.drop_near_duplicates(train, held_out)
    assert found.rows.id.tolist() == ["r000", "r002", "r003", "r004", "r006", "r007"]
    assert found.why[["id", "view", "held_id"]].to_numpy().tolist() == [
        ["r001", "informal", "h0"],
        ["r005", "signature", "h2"],
    ]
    assert found.why.jaccard.tolist() == [1.0, pytest.approx(9 / 11)]
    assert "2 of 8 training rows nearly repeat a held-out row (informal 1, signature 1), 6 are left" in found.summary()
    assert pairs.drop_near_duplicates(train, held_out, threshold=0.9).rows.id.tolist().count("r005") == 1


def test_nothing_to_drop_says_so() -> None:
    """No pair, no bracket."""
    found = pairs.drop_near_duplicates(rows(4), rows(2, seed=5).assign(id=["x", "y"]))
    assert found.summary() == "0 of 4 training rows nearly repeat a held-out row, 4 are left"


def test_wrong_input_is_named() -> None:
    """Columns and ids."""
    table = rows(4)
    with pytest.raises(MirblabError, match="no column 'typ'; .*did you mean 'type'"):
        pairs.drop_near_duplicates(table, table, ["typ"])
    with pytest.raises(MirblabError, match="4 ids are in training and held out, the first is 'r000'"):
        pairs.drop_near_duplicates(table, table)
    with pytest.raises(MirblabError, match="id 'r000' occurs twice"):
        pairs.drop_near_duplicates(pd.concat([table, table]), table)


def test_the_real_views_hold_training_rows_that_nearly_repeat_the_test(shared_file: Callable[[str], Path]) -> None:
    """A thousand rows of test against all of train: some are dropped, and what is left repeats none of them."""
    path = shared_file("data/mathlib-views/views.jsonl.gz")
    table = pd.read_json(path, lines=True, dtype=False)
    held_out, train = table[table.split == "test"].head(1000), table[table.split == "train"].head(10_000)
    found = pairs.drop_near_duplicates(train, held_out)
    assert 20 < len(train) - len(found.rows) < 1000
    assert set(found.why["view"]) == set(pairs.VIEW_COLUMNS)
    again = pairs.drop_near_duplicates(found.rows, held_out, seed=1)
    assert len(again.rows) == len(found.rows)
