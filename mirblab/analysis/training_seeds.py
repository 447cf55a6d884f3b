"""training_seeds: one recipe trained several times with other random numbers, against what it began with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.evaluation.significance import bootstrap_intervals, value_matrices


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
    """Return by collection the mean change by training, with intervals over queries and over seeds.

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
    if measure not in set(values.measure):
        known = ", ".join(map(str, values.measure.unique()))
        raise MirblabError(f"the table has no values of {measure}; found {known}")
    rows = []
    for name, matrix in value_matrices(values, measure):
        missing = [system for system in [baseline, *trained] if system not in matrix]
        if missing:
            raise MirblabError(f"{name} has no values of {', '.join(missing)}; evaluate these on it, too")
        before, after = matrix[baseline], matrix[list(trained)]
        changes = after.sub(before, axis=0)
        gains = changes.mean(axis=1).rename("value").reset_index()
        gains = gains.assign(collection=name, system="", measure=measure)
        over_queries = bootstrap_intervals(gains, measure, level=level, n_resamples=n_resamples, seed=seed).iloc[0]
        seeds_low, seeds_high = _student(changes.mean().to_numpy(), level)
        row = {"collection": name, "measure": measure, "n_seeds": len(trained), "n_queries": len(matrix)}
        row |= {"baseline": before.mean(), "least": after.mean().min(), "most": after.mean().max()}
        row |= {"difference": over_queries["mean"], "low": over_queries.low, "high": over_queries.high}
        rows.append(row | {"seeds_low": seeds_low, "seeds_high": seeds_high})
    return pd.DataFrame(rows)


def _student(differences: np.ndarray, level: float) -> tuple[float, float]:
    """Return the ends of Student's t interval of a mean; NaN for a single number."""
    from scipy.stats import t

    if len(differences) < 2:
        return np.nan, np.nan
    half = t.ppf((1 + level) / 2, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences))
    return float(differences.mean() - half), float(differences.mean() + half)
