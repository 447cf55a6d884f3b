"""Systems share a letter unless they differ significantly."""

from __future__ import annotations

from itertools import combinations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirblab.core.errors import MirblabError
from mirblab.evaluation.significance import significance_letters


def pairs(means: dict[str, float], told: set[tuple[str, str]], collection: str = "c") -> pd.DataFrame:
    rows = [
        (collection, a, b, means[a] - means[b], (a, b) in told or (b, a) in told) for a, b in combinations(means, 2)
    ]
    return pd.DataFrame(rows, columns=["collection", "system_a", "system_b", "difference", "significant"])


def test_nobody_told_apart_is_one_group_and_everybody_is_many():
    """Best first."""
    means = {"x": 0.1, "y": 0.3, "z": 0.2}
    assert significance_letters(pairs(means, set())).values.tolist() == [
        ["c", "y", "a"],
        ["c", "z", "a"],
        ["c", "x", "a"],
    ]
    everybody = set(combinations(means, 2))
    assert significance_letters(pairs(means, everybody)).group.tolist() == ["a", "b", "c"]


def test_groups_overlap():
    """The middle one is told apart from nobody."""
    found = significance_letters(pairs({"x": 0.3, "y": 0.2, "z": 0.1}, {("x", "z")})).set_index("system").group
    assert found.to_dict() == {"x": "a", "y": "ab", "z": "b"}


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] < pair[1])))
@settings(max_examples=200, deadline=None)
def test_two_share_a_letter_exactly_when_they_are_not_told_apart(told: set[tuple[int, int]]):
    """For any outcome of fifteen tests."""
    named = {(f"s{a}", f"s{b}") for a, b in told}
    found = significance_letters(pairs({f"s{n}": n / 10 for n in range(6)}, named)).set_index("system").group
    for a, b in combinations(sorted(found.index), 2):
        assert bool(set(found[a]) & set(found[b])) == ((a, b) not in named)


def test_a_table_against_a_baseline_is_refused():
    """It lacks the other pairs."""
    with pytest.raises(MirblabError, match="3 systems have 3 pairs, found 2"):
        significance_letters(pairs({"x": 0.1, "y": 0.3, "z": 0.2}, set()).iloc[:2])


def test_the_lowest_mean_rank_is_the_best():
    """Of ranks, lower is better."""
    means = {"x": 9.0, "y": 3.0}
    found = significance_letters(pairs(means, {("x", "y")}).assign(measure="Rank"))
    assert found[["system", "group"]].values.tolist() == [["y", "a"], ["x", "b"]]
