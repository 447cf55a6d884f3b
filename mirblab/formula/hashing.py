"""hashing: 64-bit hashes of rows of numbers and of paths in trees, the same in every process and on every machine.

They name the tokens of formulas in one index; nothing is stored or looked up under them alone. They are not
cryptographic: a formula can be made of which one token counts as another's, and then its own score is wrong and no
other's. BLAKE2b, which names the labels (`forest`), would double the time in which an index is built.
"""

from __future__ import annotations

import numpy as np

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # those of the splitmix64 generator
_BASE = np.uint64(0x9E3779B97F4A7C15)


def climb(parents: np.ndarray, relations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each node's number of steps from where its line of *parents* begins (-1), and a hash of that path.

    The hash is a polynomial in the steps, so that the hash of a part of a path follows from those of two nodes. Each
    round doubles the distance covered.
    """
    up = parents.copy()
    length = (up >= 0).astype(np.int64)
    path = np.where(up >= 0, relations + np.uint64(1), np.uint64(0))
    moving = np.flatnonzero(up >= 0)
    while len(moving):
        at = up[moving]
        path[moving] += path[at] * _power(length[moving])
        length[moving] += length[at]
        up[moving] = up[at]
        moving = moving[up[moving] >= 0]
    return length, path


def powers(most: int) -> np.ndarray:
    """Return the powers of the base of the path hash modulo 2**64, from 0 to *most*."""
    return np.concatenate([[np.uint64(1)], np.cumprod(np.full(most, _BASE), dtype=np.uint64)])


def _power(exponents: np.ndarray) -> np.ndarray:
    return powers(int(exponents.max(initial=0)))[exponents]


def mixed(*parts: np.ndarray) -> np.ndarray:
    """Return a hash of each row of the parts, uint64, by the mixing steps of splitmix64."""
    state = np.zeros(len(parts[0]), dtype=np.uint64)
    for part in parts:
        state += part
        state += _BASE
        state ^= state >> np.uint64(30)
        state *= _FIRST
        state ^= state >> np.uint64(27)
        state *= _SECOND
        state ^= state >> np.uint64(31)
    return state
