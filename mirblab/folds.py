"""folds: queries dealt into folds, the weights to choose from, and what each fold chose."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError


def simplex(n_parts: int, steps: int = 10) -> np.ndarray:
    """Return weights in steps of 1 / *steps* that sum to 1, shape (n_weights, n_parts), the most equal first.

    Two parts get 0.1, ..., 0.9. With more, a weight may be 0, so that a part that does harm can be left out, but
    none is 1: at least two parts take part.

    >>> len(simplex(2)), simplex(2)[0].tolist(), len(simplex(3))
    (9, [0.5, 0.5], 63)
    """
    if n_parts < 2 or steps < 2:
        raise MirblabError(f"weights are for two parts or more in two steps or more; found {n_parts} and {steps}")
    bars = np.array(list(combinations_with_replacement(range(steps + 1), n_parts - 1)))
    counts = np.diff(bars, axis=1, prepend=0, append=steps)
    counts = counts[counts.max(axis=1) < steps]
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

    *queries* are the judged ones of the fold; *trained* is the mean value on the other folds, by which the weights
    were chosen, *held_out* that on the fold itself. No rows where reciprocal ranks stand in; `run.attrs["why"]` then
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


def choose(
    values: np.ndarray, fold: np.ndarray, weights: np.ndarray, n_folds: int, tolerance: float = 0
) -> tuple[list[dict], list[int]]:
    """Return what to tell of each fold, and the place of its weights, chosen by the queries outside it.

    *values* is (n_queries, n_weights), *fold* the fold of each query; the other arguments are those of
    `tuning.cross_validated`.
    """
    rows, places = [], []
    for number in range(n_folds):
        here = fold == number
        place = _best(values[~here], weights, tolerance)
        places.append(place)
        rows.append(
            {
                "fold": number + 1,
                "queries": int(here.sum()),
                "weights": weights[place].tolist(),
                "trained": float(values[~here, place].mean()),
                "held_out": float(values[here, place].mean()),
            }
        )
    return rows, places


def _best(values: np.ndarray, weights: np.ndarray, tolerance: float) -> int:
    """Return the place of the best weights, or of those in the middle of all that are hardly worse."""
    means = values.mean(axis=0).round(12)
    place = int(means.argmax())
    if tolerance <= 0 or len(values) < 2:
        return place
    lost = values[:, [place]] - values
    error = lost.std(axis=0, ddof=1) / np.sqrt(len(values))
    middle = weights[means[place] - means <= tolerance * error].mean(axis=0)
    return int(np.abs(weights - middle).sum(axis=1).round(9).argmin())
