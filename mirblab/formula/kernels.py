"""kernels: the inner loop of the structure search, as array operations and as machine code."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from mirblab.formula.segments import COUNT_BITS, COUNT_MASK

WORTH = 5_000_000  # postings in an index from which on compiling the loop pays
WIDE, NARROW = 1 << 22, 1 << 15  # formulas in one block: of arrays, and of a loop whose sums stay in the core's cache


def adder(n_postings: int) -> tuple[Callable, int]:
    """Return the function that adds up a block, for an index of so many postings, and how many formulas a block has.

    It takes cursors and stops, int64 (n_tokens,), into the postings of a query's tokens, weights, float64, how often
    the query has each, uint8, the postings, the first and the last formula (not included) of the block, and the sums
    to add to, float64. It moves the cursors to the block's end. Both forms give the same bits.
    """
    return (_compiled(), NARROW) if n_postings >= WORTH else (_add, WIDE)


def _add(
    cursors: np.ndarray,
    stops: np.ndarray,
    weights: np.ndarray,
    often: np.ndarray,
    postings: np.ndarray,
    start: int,
    end: int,
    sums: np.ndarray,
) -> None:
    """Add weight times the smaller count for each token that query and formula share."""
    for token in range(len(cursors)):
        here = postings[cursors[token] : stops[token]]
        here = here[: np.searchsorted(here, np.uint32((end - 1) << 8 | 255), "right")]
        shared = np.minimum(here & COUNT_MASK, often[token])
        sums[(here >> COUNT_BITS).astype(np.int64) - start] += weights[token] * shared
        cursors[token] += len(here)


@lru_cache
def _compiled() -> Callable:
    """Return `_add` as machine code that runs in threads beside each other."""
    from numba import njit

    @njit(nogil=True, cache=True)
    def add(cursors, stops, weights, often, postings, start, end, sums):  # noqa: ANN001, ANN202
        limit = np.uint64(end) << np.uint64(8)
        for token in range(len(cursors)):
            at, stop, weight, most = cursors[token], stops[token], weights[token], often[token]
            if most == 1:
                while at < stop and postings[at] < limit:
                    sums[np.int64(postings[at] >> COUNT_BITS) - start] += weight
                    at += 1
            else:
                while at < stop and postings[at] < limit:
                    sums[np.int64(postings[at] >> COUNT_BITS) - start] += weight * min(postings[at] & COUNT_MASK, most)
                    at += 1
            cursors[token] = at

    return add
