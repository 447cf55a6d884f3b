"""Ties, conclusions and orders: whether two measures or two rules say the same of systems."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from value_tables import value_table

from mirblab.core.errors import MirblabError
from mirblab.evaluation.agreement import compare_conclusions, order_agreement, tie_shares
from mirblab.evaluation.significance import compare, resampled_means

rr_values = partial(value_table, measure="RR")


def random_values(collection: str, seed: int, n_systems: int = 5, n_queries: int = 30) -> pd.DataFrame:
    """Return values of systems that differ little, rounded so that some means are equal."""
    numbers = np.random.default_rng(seed).random((n_systems, n_queries)).round(1)
    numbers[1] = numbers[0]
    return rr_values({f"s{n}": row.tolist() for n, row in enumerate(numbers)}, collection)


def test_queries_with_one_value_are_tied_also_when_it_was_rounded():
    """Two of four are, one of them at 1; each pair has a row."""
    values = rr_values({"a": [1.0, 0.3, 0.5, 0.0], "b": [1.0, 0.1 + 0.2, 0.4, 0.1], "c": [0.0, 0.0, 0.0, 0.0]})
    found = tie_shares(values, "RR").set_index(["system_a", "system_b"])
    assert found.loc[("a", "b"), ["tied", "perfect", "n_queries"]].tolist() == [0.5, 0.25, 4]
    assert found.tied.to_dict() == {("a", "b"): 0.5, ("a", "c"): 0.25, ("b", "c"): 0.0}


def test_a_pair_has_one_of_five_conclusions():
    """By the signs and the significance of both differences."""
    cases = [
        ("same", 0.2, True, 0.1, True), ("same", -0.2, True, -0.1, True), ("reversed", 0.2, True, -0.1, True),
        ("only first", 0.2, True, 0.1, False), ("only first", 0.2, True, -0.1, False),
        ("only second", 0.0, False, 0.1, True), ("none", 0.2, False, -0.1, False),
    ]  # fmt: skip
    names = [f"s{n}" for n in range(len(cases))]
    pairs = {"collection": "c", "system_a": "base", "system_b": names}
    tables = [
        pd.DataFrame(
            pairs | {"difference": [case[at] for case in cases], "significant": [case[at + 1] for case in cases]}
        )
        for at in (1, 3)
    ]
    found = compare_conclusions(tables[0], tables[1].iloc[::-1])  # the order of rows does not matter
    assert found.set_index("system_b").conclusion.loc[names].tolist() == [case[0] for case in cases]


def test_of_ranks_the_lower_one_is_better():
    """A system whose first relevant document stands higher has a larger RR and a smaller Rank; 7 is not perfect."""
    ranks = {"a": [1.0, 2.0, 1.0, 1.0, 2.0, 1.0, 1.0, 7.0], "b": [9.0, 8.0, 9.0, 7.0, 9.0, 8.0, 9.0, 7.0]}
    by_rank = value_table(ranks, measure="Rank")
    tables = [compare(rr_values({name: [1 / rank for rank in own] for name, own in ranks.items()}), "RR")]
    tables.append(compare(by_rank, "Rank"))
    assert tables[0].significant.all() and tables[1].significant.all()
    assert compare_conclusions(*tables).conclusion.tolist() == ["same"]
    assert tie_shares(by_rank, "Rank")[["tied", "perfect"]].values.tolist() == [[0.125, 0.0]]


def test_tables_of_other_pairs_are_refused():
    """The numbers of pairs are named."""
    values = rr_values({"a": [0.1, 0.2], "b": [0.2, 0.4], "c": [0.3, 0.1]})
    whole = compare(values, "RR", n_permutations=99, n_resamples=99)
    with pytest.raises(MirblabError, match="have 3 and 2 pairs of systems, and 2 in common"):
        compare_conclusions(whole, whole.iloc[:2])


@pytest.mark.parametrize("seed", range(4))
def test_tau_and_its_interval_are_those_of_scipy(seed):
    """With equal means, which tau-b treats apart; the interval is made of the taus of the drawn queries."""
    values = pd.concat([random_values("one", seed), random_values("two", seed + 10)])
    found = order_agreement(values, "RR", ["one", "two"], n_resamples=200, seed=seed).iloc[0]
    sides = [
        part.pivot(index="query_id", columns="system", values="value").to_numpy()
        for _, part in values.groupby("collection")
    ]
    assert found.tau == pytest.approx(stats.kendalltau(*(side.mean(axis=0).round(12) for side in sides)).statistic)
    drawn = [resampled_means(side, 200, seed).round(12) for side in sides]
    taus = [stats.kendalltau(left, right).statistic for left, right in zip(*drawn, strict=True)]
    assert [found.low, found.high] == pytest.approx(np.quantile(taus, [0.025, 0.975]).tolist())
    whole = sides[0].mean(axis=0).round(12)
    assert found.redrawn == pytest.approx(np.mean([stats.kendalltau(left, whole).statistic for left in drawn[0]]))


def test_the_same_order_gives_one_and_the_opposite_order_minus_one():
    """Whatever queries are drawn; only queries that both collections have count."""
    rising = {f"s{n}": [n / 10 + 0.01 * query for query in range(6)] for n in range(4)}
    falling = {name: numbers[:4] for name, numbers in zip(rising, reversed(rising.values()), strict=True)}
    values = pd.concat([rr_values(rising), rr_values(rising, "d"), rr_values(falling, "e")])
    found = order_agreement(values, "RR", ["c", "d", "e"], n_resamples=50)
    assert found[["tau", "low", "high"]].to_numpy().tolist() == [[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]]
    assert found.n_queries.tolist() == [6, 4] and found.redrawn.tolist() == [1.0, 1.0]
    assert order_agreement(values, "RR", ["e", "c"], n_resamples=50)[["tau", "n_queries"]].values.tolist() == [
        [-1.0, 4.0]
    ]


def test_systems_with_equal_means_have_no_order():
    """Tau is not defined then; less than two systems or common queries are refused."""
    values = pd.concat([rr_values({"a": [0.5, 0.5], "b": [0.5, 0.5]}, name) for name in "cd"])
    assert order_agreement(values, "RR", ["c", "d"], n_resamples=20)[["tau", "low", "high"]].isna().all(axis=None)
    with pytest.raises(MirblabError, match="found 1 system and 2 common queries"):
        order_agreement(values[values.system == "a"], "RR", ["c", "d"])
    with pytest.raises(MirblabError, match="no system with values on d 'b'"):
        order_agreement(values[(values.collection == "c") | (values.system == "a")], "RR", ["c", "d"])
