"""Several trainings of one recipe against what they began with."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mirblab.analysis.experiments import seeds_table
from mirblab.core.errors import MirblabError

SEEDS = ["s0", "s1", "s2"]


@pytest.fixture
def values() -> pd.DataFrame:
    """Four systems on two collections, forty queries each; the second has its queries in another order."""
    rng = np.random.default_rng(1)
    tables = []
    for collection in ("c", "d"):
        for place, system in enumerate(["before", *SEEDS]):
            ids = [f"q{number}" for number in rng.permutation(40)]
            table = pd.DataFrame({"query_id": ids, "value": rng.uniform(0, 0.5, 40) + 0.1 * place})
            tables.append(table.assign(collection=collection, system=system, measure="RR"))
    return pd.concat(tables, ignore_index=True)


def test_seeds_and_queries_have_their_own_intervals(values: pd.DataFrame) -> None:
    """That over seeds is scipy's one-sample interval of the three mean differences; the other holds the difference."""
    found = seeds_table(values, SEEDS, "RR", baseline="before").set_index("collection")
    means = values.groupby(["collection", "system"]).value.mean().unstack()
    for name, row in found.iterrows():
        differences = (means.loc[name, SEEDS] - means.loc[name, "before"]).to_numpy()
        assert row.difference == pytest.approx(differences.mean())
        assert (row.least, row.most) == pytest.approx((means.loc[name, SEEDS].min(), means.loc[name, SEEDS].max()))
        ends = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
        assert (row.seeds_low, row.seeds_high) == pytest.approx((ends.low, ends.high))
        assert row.low < row.difference < row.high
    assert found.index.tolist() == ["c", "d"] and (found.n_queries == 40).all() and (found.n_seeds == 3).all()


def test_the_interval_over_queries_is_that_of_the_mean_of_seeds(values: pd.DataFrame) -> None:
    """The percentile bootstrap of scipy agrees, up to its own draws."""
    own = values[values.collection == "c"].pivot(index="query_id", columns="system", values="value")
    gains = own[SEEDS].sub(own.before, axis=0).mean(axis=1)
    drawn = stats.bootstrap((gains.to_numpy(),), np.mean, method="percentile", n_resamples=10_000, rng=0)
    row = seeds_table(values, SEEDS, "RR", baseline="before").iloc[0]
    assert (row.low, row.high) == pytest.approx(drawn.confidence_interval, abs=0.01)


def test_one_seed_says_nothing_about_others(values: pd.DataFrame) -> None:
    """There is a difference and its interval over queries, and no interval over seeds."""
    row = seeds_table(values, ["s0"], "RR", baseline="before").iloc[0]
    assert row.least == row.most and np.isnan(row.seeds_low) and np.isnan(row.seeds_high) and row.low < row.high


def test_what_is_missing_is_named(values: pd.DataFrame) -> None:
    """A system, a measure, or the systems altogether."""
    with pytest.raises(MirblabError, match="d has no values of s2; evaluate these on it, too"):
        seeds_table(values[(values.collection == "c") | (values.system != "s2")], SEEDS, "RR", baseline="before")
    with pytest.raises(MirblabError, match="no values of AP; found RR"):
        seeds_table(values, SEEDS, "AP", baseline="before")
    with pytest.raises(MirblabError, match="give one for each seed"):
        seeds_table(values, [], "RR", baseline="before")
