"""seeds: one recipe trained several times with other random numbers, against what it began with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError
from mirblab.significance import bootstrap_intervals, wide


def seeds_table(
    values: pd.DataFrame,
    trained: Sequence[str],
    measure: str,
    *,
    baseline: str,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return by collection what training changed on average, and how far queries and seeds leave that open.

    *trained* are systems of one recipe, one for each seed of its training; *baseline* is the system that they began as.
    Columns: collection, measure, n_seeds, n_queries, baseline (its mean), least and most (of the means of *trained*),
    difference (their mean minus the baseline's); low and high: the percentile bootstrap interval over queries of
    the difference, each query's mean over *trained* taken first; seeds_low and seeds_high: the interval of Student's
    t over the seeds' differences, which says where other seeds would end on these queries (NaN for a single seed).
    Raises MirblabError when a system is missing for a collection.

    >>> rows = [("before", "q1", 0.0), ("before", "q2", 0.2), ("s0", "q1", 0.5), ("s0", "q2", 0.5)]
    >>> values = pd.DataFrame([*rows, ("s1", "q1", 0.7), ("s1", "q2", 0.9)], columns=["system", "query_id", "value"])
    >>> found = seeds_table(values.assign(collection="c", measure="RR"), ["s0", "s1"], "RR", baseline="before")
    >>> found[["least", "most", "difference"]].round(3).values.tolist()
    [[0.5, 0.8, 0.55]]
    """
    if not trained:
        raise MirblabError("no system was named that was trained; give one for each seed")
    own = values[values.measure.astype(str) == measure]
    rows, gains = [], []
    for name, part in own.groupby(own.collection.astype(str), sort=False):
        matrix = wide(part, measure)
        missing = [system for system in [baseline, *trained] if system not in matrix]
        if missing:
            raise MirblabError(f"{name} has no values of {', '.join(missing)}; evaluate these on it, too")
        changes = matrix[list(trained)].sub(matrix[baseline], axis=0)
        means = matrix[list(trained)].mean()
        ends = _student(changes.mean().to_numpy(), level)
        rows.append(
            (name, measure, len(trained), len(matrix), matrix[baseline].mean(), means.min(), means.max(), *ends)
        )
        gains.append(
            changes.mean(axis=1).rename("value").reset_index().assign(collection=name, system="", measure=measure)
        )
    if not rows:
        raise MirblabError(
            f"the table has no values of {measure}; found {', '.join(map(str, values.measure.unique()))}"
        )
    names = ["collection", "measure", "n_seeds", "n_queries", "baseline", "least", "most", "seeds_low", "seeds_high"]
    table = pd.DataFrame(rows, columns=names)
    interval = bootstrap_intervals(pd.concat(gains), measure, level=level, n_resamples=n_resamples, seed=seed)
    found = interval.set_index("collection").loc[table.collection].reset_index()
    table.insert(7, "difference", found["mean"])
    table.insert(8, "low", found["low"])
    table.insert(9, "high", found["high"])
    return table


def _student(differences: np.ndarray, level: float) -> tuple[float, float]:
    """Return the ends of Student's t interval of a mean; NaN for a single number."""
    from scipy.stats import t

    if len(differences) < 2:
        return np.nan, np.nan
    half = t.ppf((1 + level) / 2, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences))
    return float(differences.mean() - half), float(differences.mean() + half)
