"""neighbours: what is near in the full space and on a map: the numbers that say how far to trust the map."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError, unknown

_METRICS = ("cosine", "euclidean")


def nearest(vectors: np.ndarray, k: int, metric: str = "cosine") -> np.ndarray:
    """Return the positions of each row's *k* nearest other rows, nearest first, shape (n, k).

    *metric* is "cosine" or "euclidean". Equal distances are ordered by position.

    >>> nearest(np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0]]), 1).ravel().tolist()
    [1, 0, 1]
    """
    if not 1 <= k < len(vectors):
        raise MirblabError(f"k must be between 1 and {len(vectors) - 1}, found {k}")
    return _order(vectors, metric)[:, :k]


def _order(vectors: np.ndarray, metric: str) -> np.ndarray:
    """Return for each row the positions of all rows, nearest first and itself last, shape (n, n)."""
    rows = np.asarray(vectors, dtype=np.float64)
    if metric == "cosine":
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        distances = -rows @ rows.T
    elif metric == "euclidean":
        squares = (rows**2).sum(axis=1)
        distances = squares[:, None] + squares[None, :] - 2 * rows @ rows.T
    else:
        raise unknown("metric", metric, _METRICS)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")


def _ranks(vectors: np.ndarray, metric: str) -> np.ndarray:
    """Return the place of each column's row in the neighbourhood of each row, from 1, shape (n, n)."""
    order = _order(vectors, metric)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, len(order) + 1)[None, :], axis=1)
    return ranks


def per_point(
    vectors: np.ndarray, flat: np.ndarray, classes: Sequence[str], k: int = 10, metric: str = "cosine"
) -> pd.DataFrame:
    """Return for each point what a map *flat* (n, 2) makes of its neighbourhood among the *vectors* (n, n_dims).

    Columns: k; kept, the share of its *k* nearest that are among its k nearest on the map, 0 to 1; trust, its part of
    the trustworthiness (Venna and Kaski 2006), whose mean is that of the map; partner_full and partner_map, the rank
    of the nearest other point of its class in the full space (it depends on no map) and on the map, from 1; 0 for a
    point without a class ("") or alone in it. *k* is lowered to (n - 1) / 2, above which trust has no meaning.

    >>> square = np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.1], [1.0, 0.0]])
    >>> per_point(square, square, ["a", "b", "a", "b"], 1)[["kept", "trust", "partner_full"]].values.tolist()
    [[1.0, 1.0, 2.0], [1.0, 1.0, 3.0], [1.0, 1.0, 3.0], [1.0, 1.0, 2.0]]
    """
    n_points, labels = len(vectors), np.asarray(classes, dtype=object)
    if n_points < 3 or len(flat) != n_points or len(labels) != n_points:
        raise MirblabError(
            f"at least 3 points with a place and a class each are needed; found {n_points} vectors, {len(flat)} places "
            f"and {len(labels)} classes"
        )
    k = max(1, min(k, (n_points - 1) // 2))
    full, seen = _ranks(vectors, metric), _ranks(flat, "euclidean")
    false = np.where(seen <= k, np.maximum(full - k, 0), 0).sum(axis=1)
    same = (labels[:, None] == labels[None, :]) & (labels != "")[:, None] & ~np.eye(n_points, dtype=bool)
    return pd.DataFrame({
        "k": k,
        "kept": ((full <= k) & (seen <= k)).sum(axis=1) / k,
        "trust": 1 - 2 * false / (k * (2 * n_points - 3 * k - 1)),
        "partner_full": _first(full, same),
        "partner_map": _first(seen, same),
    })  # fmt: skip


def _first(ranks: np.ndarray, same: np.ndarray) -> np.ndarray:
    return np.where(same.any(axis=1), np.where(same, ranks, len(ranks)).min(axis=1), 0)


def trust(maps: pd.DataFrame) -> pd.DataFrame:
    """Return what says whether to believe maps of `projection.maps`: one row per number, all from 0 to 1.

    Columns: full space, which depends on no seed (the first two are 1 there by definition); mean, lowest and highest
    over the seeds, measured on the maps; chance, what points strewn over the page would reach. Rows: the mean share of
    the k nearest that the map keeps, trustworthiness, and the shares of points whose partner is the nearest, or among
    the k nearest, of all other points; points without a partner do not count there.

    >>> maps = pd.DataFrame({"seed": 0, "class_id": ["a", "a", "", ""], "k": 1, "kept": 1.0, "trust": 1.0})
    >>> trust(maps.assign(partner_full=[1, 2, 0, 0], partner_map=[1, 1, 0, 0]))["mean"].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    seeds = [part for _, part in maps.groupby("seed", sort=False)]
    first, k, n_points = seeds[0], int(maps.k.iloc[0]), len(seeds[0])
    others = n_points - 1
    false = (others - k) * (n_points - k) / (others * (2 * n_points - 3 * k - 1))
    rows = {
        f"share of the {k} nearest kept": (1.0, [part.kept.mean() for part in seeds], k / others),
        f"trustworthiness, {k} nearest": (1.0, [part.trust.mean() for part in seeds], 1 - false),
    }
    if (first.partner_full > 0).any():
        for name, near in (("partner is the nearest", 1), (f"partner among the {k} nearest", k)):
            found = [_within(part.partner_map, near) for part in seeds]
            rows[name] = _within(first.partner_full, near), found, _chance(first, near)
    values = {
        name: [full, np.mean(found), min(found), max(found), chance] for name, (full, found, chance) in rows.items()
    }
    return pd.DataFrame.from_dict(values, orient="index", columns=["full space", "mean", "lowest", "highest", "chance"])


def _within(ranks: pd.Series, k: int) -> float:
    """Return the share of points whose partner's rank is at most *k*, among those that have one (rank above 0)."""
    return float((ranks[ranks > 0] <= k).mean())


def _chance(points: pd.DataFrame, k: int) -> float:
    """Return how often a partner is among *k* other points drawn at random, mean over the points that have one."""
    has = points[points.partner_full > 0]
    sizes, n_points = has.groupby("class_id").class_id.transform("size"), len(points)
    missed = [math.comb(n_points - size, k) / math.comb(n_points - 1, k) for size in sizes]
    return float(1 - np.mean(missed))
