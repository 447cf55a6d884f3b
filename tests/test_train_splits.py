"""train.splits keeps near-duplicates on one side, drops training rows that repeat held-out ones, and says why."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mirblab.core.errors import MirblabError
from mirblab.train import data

WORDS = (
    "let every open cover of a compact space have a finite subcover and call such a space quasi compact then".split()
)


def rows(n: int, seed: int = 0) -> pd.DataFrame:
    """Return *n* rows of random words: no two resemble each other in any view."""
    random = np.random.default_rng(seed)
    texts = [" ".join(f"{word}{number}" for number in random.integers(0, 10**6, 12)) for word in ("w",) * 3 * n]
    ids = [f"r{number:03d}" for number in range(n)]
    return pd.DataFrame({"id": ids, "informal": texts[:n], "signature": texts[n : 2 * n], "type": texts[2 * n :]})


def changed(text: str) -> str:
    """Return a text with its last word changed, which leaves 9 of 11 word triples."""
    return f"{text.rsplit(' ', 1)[0]} otherwise"


@pytest.mark.parametrize("view", data.VIEW_COLUMNS)
def test_rows_that_are_near_in_any_view_are_one_group(view: str) -> None:
    """Also through a third row; the others stay alone."""
    table = rows(6)
    table.loc[4, view] = changed(table.loc[1, view])
    table.loc[2, "informal"] = table.loc[4, "informal"].upper()
    assert data.near_duplicate_groups(table).tolist() == [0, 1, 1, 2, 1, 3]
    assert data.near_duplicate_groups(table, [name for name in data.VIEW_COLUMNS if name != view])[1] in (1,)


def test_whole_groups_go_to_one_split_and_shares_hold() -> None:
    """90 groups of four rows: no group is cut, and each share is met to within a group on either side."""
    table = pd.concat([rows(90).assign(id=lambda part, n=n: part.id + f"-{n}") for n in range(4)], ignore_index=True)
    table["type"] = [f"{text} {number % 7} x y" for number, text in enumerate(table["type"])]
    dealt = data.assign_splits(table, {"train": 0.8, "dev": 0.1, "test": 0.1}, seed=3)
    assert dealt.groupby("group").split.nunique().max() == 1
    assert dealt.group.nunique() == 90
    counts = dealt.split.value_counts()
    assert abs(counts["train"] - 288) <= 4 and abs(counts["dev"] - 36) <= 4 and abs(counts["test"] - 36) <= 4


def test_the_order_of_the_rows_changes_nothing_and_the_seed_does() -> None:
    """Split and group belong to the id; the columns that were there stay, in the order of the rows given."""
    table, shares = rows(60), {"train": 0.7, "test": 0.3}
    one = data.assign_splits(table, shares, seed=1)
    shuffled = table.sample(frac=1, random_state=2)
    other = data.assign_splits(shuffled, shares, seed=1)
    assert other.id.tolist() == shuffled.id.tolist()
    pd.testing.assert_frame_equal(one, other.sort_values("id", ignore_index=True))
    assert data.assign_splits(table, shares, seed=2).split.tolist() != one.split.tolist()


def test_a_row_is_as_likely_in_a_split_whether_its_group_is_large_or_small() -> None:
    """Over many seeds the share of a group of ten in the smaller split is that of single rows."""
    table = rows(40)
    table.loc[:9, "informal"] = " ".join(WORDS)
    large, small = [], []
    for seed in range(300):
        dealt = data.assign_splits(table, {"train": 0.75, "test": 0.25}, seed=seed, columns=["informal"])
        large.append(dealt.split[0] == "test")
        small.append((dealt.split[10:] == "test").mean())
    assert abs(np.mean(large) - 0.25) < 0.08 and abs(np.mean(small) - 0.25) < 0.05


def test_training_rows_that_repeat_held_out_ones_are_dropped_with_the_reason() -> None:
    """The report names row, view, twin and similarity; empty texts repeat nothing."""
    train, held_out = rows(8), rows(3, seed=9).assign(id=["h0", "h1", "h2"])
    train.loc[5, "signature"] = changed(held_out.signature[2])
    train.loc[1, "informal"] = held_out.informal[0].upper()
    train.loc[[0, 3], "type"], held_out.loc[1, "type"] = "", ""
    found = data.drop_near_duplicates(train, held_out)
    assert found.rows.id.tolist() == ["r000", "r002", "r003", "r004", "r006", "r007"]
    assert found.why[["id", "view", "held_id"]].to_numpy().tolist() == [
        ["r001", "informal", "h0"],
        ["r005", "signature", "h2"],
    ]
    assert found.why.jaccard.tolist() == [1.0, pytest.approx(9 / 11)]
    assert "2 of 8 training rows nearly repeat a held-out row (informal 1, signature 1), 6 are left" in found.summary()
    assert data.drop_near_duplicates(train, held_out, threshold=0.9).rows.id.tolist().count("r005") == 1


def test_nothing_to_drop_says_so() -> None:
    """No pair, no bracket."""
    found = data.drop_near_duplicates(rows(4), rows(2, seed=5).assign(id=["x", "y"]))
    assert found.summary() == "0 of 4 training rows nearly repeat a held-out row, 4 are left"


def test_wrong_input_is_named() -> None:
    """Columns, ids and shares."""
    table = rows(4)
    with pytest.raises(MirblabError, match="no column 'typ'; .*did you mean 'type'"):
        data.near_duplicate_groups(table, ["typ"])
    with pytest.raises(MirblabError, match="4 ids are in training and held out, the first is 'r000'"):
        data.drop_near_duplicates(table, table)
    with pytest.raises(MirblabError, match="id 'r000' occurs twice"):
        data.assign_splits(pd.concat([table, table]), {"train": 1.0})
    for shares in ({"train": 0.5}, {"train": 1.5, "test": -0.5}, {}):
        with pytest.raises(MirblabError, match="make 1 together"):
            data.assign_splits(table, shares)
    with pytest.raises(MirblabError, match="no row is left for train: 4 rows are 1 groups"):
        data.assign_splits(table.assign(informal="one and the same"), {"train": 0.5, "test": 0.5})


def test_the_real_views_hold_training_rows_that_nearly_repeat_the_test(shared: Path) -> None:
    """A thousand rows of test against all of train: some are dropped, and what is left repeats none of them."""
    path = shared / "data" / "mathlib-views" / "views.jsonl.gz"
    table = pd.read_json(path, lines=True, dtype=False)
    held_out, train = table[table.split == "test"].head(1000), table[table.split == "train"].head(10_000)
    found = data.drop_near_duplicates(train, held_out)
    assert 20 < len(train) - len(found.rows) < 1000
    assert set(found.why["view"]) == set(data.VIEW_COLUMNS)
    again = data.drop_near_duplicates(found.rows, held_out, seed=1)
    assert len(again.rows) == len(found.rows)
