"""paired: the arithmetic of paired tests and intervals, on a matrix of values, queries × systems."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from mirblab.errors import MirblabError

# Elements of one block of signs or counts: 4 MB as float64, which stays in the cache of one core.
_BLOCK = 1 << 19


def student(numbers: np.ndarray, left: list[int], right: list[int]) -> dict[str, np.ndarray]:
    """Return t and the two-sided p of the paired t-test of each pair; NaN for one query.

    *numbers* is (n_queries, n_systems), *left* and *right* are columns of it.
    """
    from scipy.special import stdtr

    differences, n_queries = numbers[:, left] - numbers[:, right], len(numbers)
    if n_queries < 2:
        return {"t": np.full(len(left), np.nan), "p": np.full(len(left), np.nan)}
    mean, error = differences.mean(axis=0), differences.std(axis=0, ddof=1) / np.sqrt(n_queries)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, mean / error)
    return {"t": t, "p": 2 * stdtr(n_queries - 1, -np.abs(t))}


def sign_flip_hits(
    numbers: np.ndarray, left: list[int], right: list[int], n_permutations: int, seed: int
) -> np.ndarray:
    """Return how many sign patterns give each pair an absolute sum at least as large as observed.

    Values become integers of at most 50 - log2(n) bits, held in float64, so that every sum is exact: p then depends
    neither on the order of summation nor on what else is asked. Swapping the systems of a query flips the sign of
    their difference, so the product of the signs with the systems (not with the pairs) is enough. What rounding to
    integers can move, a pair's sum of n differences by n, is allowed for on both sides, so that ties are hits.
    """
    from threadpoolctl import threadpool_limits

    n_queries = len(numbers)
    bits = 50 - int(np.ceil(np.log2(n_queries)))
    _, exponent = np.frexp(np.abs(numbers).max(initial=0.0))
    whole = np.rint(np.ldexp(numbers, bits - int(exponent)))
    total = whole.sum(axis=0)
    limits = np.abs(total[left] - total[right]) - 2 * n_queries
    hits = np.zeros(len(left), dtype=np.int64)
    # One thread: the product is thin, so a second one gains a third at best, and waiting for it on a busy machine
    # made the test five times slower.
    with threadpool_limits(1, "blas"):
        for chosen in _coins(n_queries, n_permutations, seed):
            sums = 2 * (chosen @ whole) - total
            for pair, (a, b) in enumerate(zip(left, right, strict=True)):
                hits[pair] += np.count_nonzero(np.abs(sums[:, a] - sums[:, b]) >= limits[pair])
    return hits


def _coins(n_queries: int, n_rows: int, seed: int) -> Iterator[np.ndarray]:
    """Yield blocks of random 0 and 1, float64, (rows of the block, n_queries); the block size changes no coin."""
    generator, n_words = np.random.default_rng(seed), -(-n_queries // 64)
    step = max(1, _BLOCK // n_queries)
    for start in range(0, n_rows, step):
        words = generator.integers(0, 2**64, size=(min(step, n_rows - start), n_words), dtype=np.uint64)
        octets = words.astype("<u8", copy=False).view(np.uint8)
        yield np.unpackbits(octets, axis=1, count=n_queries, bitorder="little").astype(np.float64)


def resampled_means(numbers: np.ndarray, n_resamples: int, seed: int) -> np.ndarray:
    """Return the means (n_resamples, n_systems) of as many samples of queries, as a product with their counts."""
    if n_resamples < 1:
        raise MirblabError(f"n_resamples must be at least 1, found {n_resamples}")
    n_queries, generator, blocks = len(numbers), np.random.default_rng(seed), []
    step = max(1, _BLOCK // n_queries)
    for start in range(0, n_resamples, step):
        n_rows = min(step, n_resamples - start)
        drawn = generator.integers(0, n_queries, size=(n_rows, n_queries))
        drawn += np.arange(n_rows)[:, None] * n_queries
        counts = np.bincount(drawn.ravel(), minlength=n_rows * n_queries).reshape(n_rows, n_queries)
        blocks.append(counts.astype(np.float64) @ numbers / n_queries)
    return np.concatenate(blocks)


def percentiles(means: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the central interval that holds *level* (0 to 1) of each column.

    >>> low, high = percentiles(np.arange(5.0)[:, None], 0.5)
    >>> low.tolist(), high.tolist()
    ([1.0], [3.0])
    """
    if not 0 < level < 1:
        raise MirblabError(f"level must lie between 0 and 1, found {level}; 0.95 is usual")
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def holm(p: ArrayLike) -> np.ndarray:
    """Return the p values of one family adjusted by Holm's step-down method, in the order given, at most 1.

    The smallest is multiplied by the number of tests, the next by one less, and so on, never below the one before.
    NaN is no test: it stays NaN and does not count. Holm, Scandinavian Journal of Statistics 1979.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return adjusted
