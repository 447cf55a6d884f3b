"""weighting: what a shared token is worth and how long a formula is, in numbers whose sums are exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mirblab.errors import MirblabError, unknown
from mirblab.formula.segments import COUNT_BITS, COUNT_MASK, Segment
from mirblab.formula.tokens import KIND_MASK, KINDS

# Chosen on the 74 topics of ARQMath 2020 and the 20 of NTCIR-12; weights that are learned do no better on held-out
# topics: benchmarks/structure_weights.py.
WEIGHTS = dict(zip(KINDS, (1.0, 0.25, 0.5, 0.5, 0.5, 0.5), strict=True))
B = 4.0
LONG = 2.0  # times the query's length; of what a formula has beyond it only the logarithm counts
ABSENT = 0.5  # in how many formulas a token counts as being that no formula has
# Sums of multiples of these steps, up to 2**23, are exact in double precision, so that the order of summing, and with
# it the way an index is cut into parts, changes no bit of a score, and a formula scores exactly 1 against itself.
_STEP, _KIND_STEP = 2.0**20, 2.0**10
_AT_ONCE = 1 << 22  # postings


def kind_weights(weights: Mapping[str, float] | None = None) -> np.ndarray:
    """Return the weight of each kind of `tokens.KINDS`, float64, those not in *weights* as in WEIGHTS.

    They are rounded to multiples of 1/1024. MirblabError for an unknown kind, a negative weight, and none above 0.

    >>> kind_weights({"whole": 2}).tolist()
    [1.0, 0.25, 0.5, 2.0, 0.5, 0.5]
    """
    for name, weight in (weights or {}).items():
        if name not in WEIGHTS:
            raise unknown("kind of token", name, WEIGHTS)
        if not 0 <= weight <= 1000:
            raise MirblabError(f"the weight of a kind of token lies between 0 and 1000; found {weight} for '{name}'")
    found = np.array([(WEIGHTS | dict(weights or {}))[name] for name in KINDS], dtype=np.float64)
    rounded = np.round(found * _KIND_STEP) / _KIND_STEP
    if not rounded.any():
        raise MirblabError("every kind of token has the weight 0, so nothing would be found; give one a weight")
    return rounded


def rarity(n: int, documents: np.ndarray) -> np.ndarray:
    """Return ln(1 + n / documents) for tokens in so many of *n* formulas, rounded to multiples of 2**-20.

    >>> rarity(3, np.array([3, 1])).round(3).tolist()
    [0.693, 1.386]
    """
    return np.round(np.log1p(n / np.maximum(documents, ABSENT)) * _STEP) / _STEP


def sums(segments: Sequence[Segment]) -> np.ndarray:
    """Return for each formula and kind of token the sum of count times rarity, float64 (n_formulas, n_kinds).

    The length of a formula is the product of its row with the weights of the kinds.
    """
    n, kinds = sum(part.n for part in segments), len(KINDS)
    total = np.zeros(n * kinds)
    keys, documents = _document_counts(segments)
    rare, first = rarity(n, documents), 0
    for part in segments:
        own = rare[np.searchsorted(keys, part.keys)] if len(segments) > 1 else rare
        total[first * kinds : (first + part.n) * kinds] = _lengths(part, own)
        first += part.n
    return total.reshape(n, kinds)


def _document_counts(segments: Sequence[Segment]) -> tuple[np.ndarray, np.ndarray]:
    """Return all keys, ascending, and in how many formulas each occurs."""
    if len(segments) == 1:
        return segments[0].keys, segments[0].sizes()
    keys = np.unique(np.concatenate([part.keys for part in segments])) if segments else np.empty(0, np.uint64)
    documents = np.zeros(len(keys), dtype=np.int64)
    for part in segments:
        documents[np.searchsorted(keys, part.keys)] += part.sizes()
    return keys, documents


def _lengths(part: Segment, rare: np.ndarray) -> np.ndarray:
    """Return the sums of one segment, flat, some millions of postings at a time."""
    kinds, total = len(KINDS), np.zeros(part.n * len(KINDS))
    cuts = np.searchsorted(part.starts, np.arange(0, len(part.postings) + _AT_ONCE, _AT_ONCE))
    edges = np.minimum(cuts, len(part.keys)).tolist()
    for begin, end in zip(edges[:-1], edges[1:], strict=True):
        sizes = np.diff(part.starts[begin : end + 1].astype(np.int64))
        some = slice(part.starts[begin], part.starts[end])
        cell = (part.postings[some] >> COUNT_BITS).astype(np.int64) * kinds
        cell += np.repeat((part.keys[begin:end] & KIND_MASK).astype(np.int64), sizes)
        total += np.bincount(cell, (part.postings[some] & COUNT_MASK) * np.repeat(rare[begin:end], sizes), len(total))
    return total
