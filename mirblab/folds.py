"""folds: queries dealt into folds, the weights to choose from, and what each fold chose."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError

LEAD = 19.0  # times as much as the next part counts the better one, as long as queries have said nothing
WORTH = 50  # queries that have as much say as that; both chosen on nine collections of 20 to 648 queries
LEAST = 0.001  # what a weight of 0 counts as in a geometric mean
_MOST, _FINEST = 300, 10  # weights to choose from, and steps from equal weights to the most unequal


def ratios(n_parts: int) -> np.ndarray:
    """Return weights whose ratios are even steps up to LEAD squared, shape (n_weights, n_parts), the most equal first.

    A ratio says how much more one part counts than another; small weights, which only break near ties, are told apart
    as finely as large ones. 21 weights of two parts, 271 of three; of more parts in larger steps.

    >>> ratios(2)[[0, 1, -1]].round(3).tolist(), len(ratios(3))
    ([[0.5, 0.5], [0.643, 0.357], [0.003, 0.997]], 271)
    """
    if n_parts < 2:
        raise MirblabError(f"weights are for two parts or more; found {n_parts}")
    steps = next(n for n in range(_FINEST, 1, -1) if n == 2 or (n + 1) ** n_parts - n**n_parts <= _MOST)
    powers = np.array([row for row in product(range(steps + 1), repeat=n_parts) if min(row) == 0])
    weights = LEAD ** (2 * powers[np.lexsort((*powers.T, powers.max(axis=1)))] / steps)
    return weights / weights.sum(axis=1, keepdims=True)


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
        return ratios(n_parts)
    found = np.asarray(grid, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != n_parts or not len(found):
        raise MirblabError(f"a grid is rows of {n_parts} weights, one per run; found the shape {found.shape}")
    if not np.isfinite(found).all() or (found < 0).any():
        raise MirblabError("a grid holds numbers from 0 up; found others")
    if not found.any(axis=1).all():
        raise MirblabError("a row of the grid has no weight above 0, which orders nothing; give one part a weight")
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
    """Return the weights that are best on all queries; with resamples the geometric mean of what these prefer and,
    as if WORTH queries more preferred it, of weights by which each part counts LEAD times as much as the next best.
    """
    n_queries = len(values)
    if not resamples:
        return weights[values.mean(axis=0).round(12).argmax()]
    counts = rng.multinomial(n_queries, np.full(n_queries, 1 / n_queries), size=resamples)
    best = (counts @ values / n_queries).round(12).argmax(axis=1)
    own = np.log(np.maximum(weights, LEAST))[best].mean(axis=0)
    lead = -np.log(LEAD) * np.argsort(np.argsort(-alone.mean(axis=0), kind="stable"))
    found = np.exp((n_queries * own + WORTH * lead) / (n_queries + WORTH))
    return (found / found.sum()).round(12)


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
