"""correlation: Spearman's rank correlation with its bootstrap interval, the only place that computes one."""

from __future__ import annotations

import numpy as np

from mirblab.errors import MirblabError


def spearman(
    pair: np.ndarray, groups: np.ndarray | None = None, *, level: float = 0.95, n_resamples: int = 1_000, seed: int = 0
) -> tuple[float, float, float]:
    """Return rho, from -1 to 1, of the two columns of *pair* (n, 2), and the ends of its percentile interval.

    Rows are drawn with replacement; with *groups* (n,), all of the same size, whole groups are, as for rows that are
    not independent of each other. Resamples in which a column does not vary are left out. NaN where a column does not
    vary at all. The same *seed* gives the same interval. Efron, Annals of Statistics 1979.

    >>> spearman(np.array([[1, 9], [2, 7], [3, 1.0]]))[0]
    -1.0
    """
    members = _members(len(pair), groups)
    if not len(pair) or not np.ptp(pair, axis=0).all():
        return (np.nan, np.nan, np.nan)
    drawn = np.random.default_rng(seed).integers(0, len(members), (n_resamples, len(members)))
    rows = np.vstack([np.arange(len(pair)), members[drawn].reshape(n_resamples, -1)])
    rho = _correlations(np.stack([pair[:, side][rows] for side in (0, 1)]))
    low, high = np.nanquantile(rho[1:], [(1 - level) / 2, (1 + level) / 2])
    return float(rho[0]), float(low), float(high)


def _members(n: int, groups: np.ndarray | None) -> np.ndarray:
    """Return the rows of each group, (n_groups, size); every row is a group of its own without *groups*."""
    if groups is None:
        return np.arange(n)[:, None]
    numbers = np.unique(np.asarray(groups), return_inverse=True)[1]
    sizes = np.bincount(numbers)
    if len(np.unique(sizes)) > 1:
        raise MirblabError(f"groups must be of one size to be drawn as wholes, found {sizes.min()} to {sizes.max()}")
    return np.argsort(numbers, kind="stable").reshape(len(sizes), -1)


def _correlations(sides: np.ndarray) -> np.ndarray:
    """Return the rank correlation of each row of the two *sides*, (2, n, n_rows); NaN where one is constant."""
    from scipy.stats import rankdata

    ranks = rankdata(sides, axis=2)
    centred = ranks - ranks.mean(axis=2, keepdims=True)
    scale = np.sqrt((centred**2).sum(axis=2).prod(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return (centred[0] * centred[1]).sum(axis=1) / scale
