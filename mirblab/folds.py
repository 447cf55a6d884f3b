"""folds: queries dealt into folds, the weights to choose from, and what each fold chose."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError

LEAST = 0.01  # of all parts but one together, so that they order what it does not return


def simplex(n_parts: int, steps: int = 10) -> np.ndarray:
    """Return weights in steps of 1 / *steps* that sum to 1, shape (n_weights, n_parts), the most equal first.

    A weight may be 0, and the last *n_parts* rows are one part alone: its documents are first then, and what only the
    others return follows.

    >>> len(simplex(2)), simplex(2)[0].tolist(), len(simplex(3))
    (11, [0.5, 0.5], 66)
    """
    if n_parts < 2 or steps < 2:
        raise MirblabError(f"weights are for two parts or more in two steps or more; found {n_parts} and {steps}")
    bars = np.array(list(combinations_with_replacement(range(steps + 1), n_parts - 1)))
    counts = np.diff(bars, axis=1, prepend=0, append=steps)
    spread = (counts**2).sum(axis=1)
    return counts[np.lexsort((*counts.T, spread))] / steps


def assign(query_ids: Sequence[str], n_folds: int, seed: int = 0) -> np.ndarray:
    """Return the fold of each query, 0 to *n_folds* - 1, shape (n_queries,), drawn by *seed* in folds of equal size.

    The same queries get the same folds in whatever order they come.

    >>> assign(["b", "a", "c"], 3)[[1, 0, 2]].tolist() == assign(["a", "b", "c"], 3).tolist()
    True
    """
    if n_folds < 2:
        raise MirblabError(f"cross-validation needs two folds or more, found {n_folds}")
    place = np.argsort(np.array(query_ids, dtype=object), kind="stable")
    found = np.empty(len(place), dtype=np.int64)
    found[place] = np.random.default_rng(seed).permutation(len(place)) % n_folds
    return found


def fold_table(run: pd.DataFrame) -> pd.DataFrame:
    """Return what `cross_validated` chose: fold, queries, a column of weights per part, trained, held_out.

    *queries* are the judged ones of the fold; *trained* is the mean value on the other folds, which chose the
    weights, *held_out* that on the fold itself. No rows where reciprocal ranks stand in; `run.attrs["why"]` then
    has the reason. MirblabError for a run that was not made so.

    >>> run = pd.DataFrame()
    >>> row = {"fold": 1, "queries": 9, "weights": [0.3, 0.7], "trained": 0.5, "held_out": 0.4}
    >>> run.attrs = {"method": "cv", "parts": ["bm25", "minilm"], "folds": [row]}
    >>> fold_table(run)
       fold  queries  bm25  minilm  trained  held_out
    0     1        9   0.3     0.7      0.5       0.4
    """
    if "parts" not in run.attrs:
        raise MirblabError("this run has no cross-validated weights; make it with fusion.cross_validated()")
    names = list(run.attrs["parts"])
    rows = [
        {"fold": row["fold"], "queries": row["queries"], **dict(zip(names, row["weights"], strict=True)),
         "trained": row["trained"], "held_out": row["held_out"]}
        for row in run.attrs.get("folds", [])
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["fold", "queries", *names, "trained", "held_out"])


def checked_grid(grid: Sequence[Sequence[float]] | None, n_parts: int) -> np.ndarray:
    """Return the weights to choose from, (n_weights, n_parts); MirblabError for a grid of another shape or sign."""
    if grid is None:
        return simplex(n_parts)
    found = np.asarray(grid, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != n_parts or not len(found):
        raise MirblabError(f"a grid is rows of {n_parts} weights, one per run; found the shape {found.shape}")
    if not np.isfinite(found).all() or (found < 0).any():
        raise MirblabError("a grid holds numbers from 0 up; found others")
    return found


def chosen(
    values: np.ndarray, alone: np.ndarray, fold: np.ndarray, weights: np.ndarray, resamples: int, seed: int
) -> np.ndarray:
    """Return for each fold the weights that the queries outside it choose, shape (n_folds, n_parts).

    *values* is (n_queries, n_weights), *alone* (n_queries, n_parts) what each part's own run gets, *fold* the fold of
    each query; the other arguments are those of `tuning.cross_validated`.
    """
    found = []
    for number in range(int(fold.max()) + 1):
        others, rng = fold != number, np.random.default_rng([seed, number])
        found.append(_preferred(values[others], alone[others], weights, resamples, rng))
    return np.stack(found)


def _preferred(
    values: np.ndarray, alone: np.ndarray, weights: np.ndarray, resamples: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the weights that are best on all queries; with resamples the mean of what these prefer, drawn half of the
    way to the part whose own run is best, if that part alone is among the *weights*.
    """
    n_queries, single = len(values), np.eye(alone.shape[1])
    if not resamples:
        return weights[values.mean(axis=0).round(12).argmax()]
    counts = rng.multinomial(n_queries, np.full(n_queries, 1 / n_queries), size=resamples)
    found = weights[(counts @ values / n_queries).round(12).argmax(axis=1)].mean(axis=0)
    is_there = (weights[:, None] == single).all(axis=2).any(axis=0)
    if is_there.any():
        found = (found + single[np.where(is_there, alone.mean(axis=0), -np.inf).argmax()]) / 2
    leads = found > 1 - LEAST
    return (np.where(leads, 1 - LEAST, LEAST / (len(leads) - 1)) if leads.any() else found).round(9)


def described(values: np.ndarray, fold: np.ndarray, weights: np.ndarray) -> list[dict]:
    """Return what to tell of each fold: its queries, its weights, their mean value elsewhere and on the fold itself.

    *values* is (n_queries, n_folds): of every query with each fold's weights.
    """
    return [
        {
            "fold": number + 1,
            "queries": int((fold == number).sum()),
            "weights": weights[number].tolist(),
            "trained": float(values[fold != number, number].mean()),
            "held_out": float(values[fold == number, number].mean()),
        }
        for number in range(len(weights))
    ]
