"""scoring: one query against all formulas: the weighted share of tokens in common, and the best by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mirblab.best import pack, unpack
from mirblab.formula.kernels import adder
from mirblab.formula.segments import Segment
from mirblab.formula.tokens import KIND_MASK
from mirblab.formula.weighting import LONG, rarity

_SAFE = 1 - 1e-6  # scores are compared as float32, whose rounding must not cost a formula its place

Allowed = Callable[[np.ndarray], np.ndarray]  # positions of formulas -> those that may be returned


@dataclass(frozen=True, slots=True)
class Query:
    """A query's distinct tokens: `keys` uint64, ascending, `counts` uint8, and the weight of each, float64.

    `length` is the sum of counts times weights, also over tokens that no formula has.
    """

    keys: np.ndarray
    counts: np.ndarray
    weights: np.ndarray
    length: float


def query(keys: np.ndarray, counts: np.ndarray, segments: Sequence[Segment], kinds: np.ndarray) -> Query:
    """Return the query of distinct tokens and how often each occurs, weighed by all *segments* together."""
    documents = np.zeros(len(keys), dtype=np.int64)
    for part in segments:
        begin, end = part.find(keys)
        documents += end - begin
    rare = rarity(sum(part.n for part in segments), documents)
    weights = kinds[(keys & KIND_MASK).astype(np.int64)] * rare
    return Query(keys, counts, weights, float((weights * counts).sum()))


def score(shared: np.ndarray, asked: float | np.ndarray, lengths: np.ndarray, b: float) -> np.ndarray:
    """Return (1 + b) shared / (b asked + length): the harmonic mean of two shares, float32, 0 to 1.

    *shared* is the weight in common, *asked* the query's length, *lengths* those of the formulas; the share of the
    query that was found counts b times as much as the share of the formula that was used. Of a formula longer than
    LONG times the query, what is beyond that counts by its logarithm: a query deep in a long derivation is still found.

    >>> score(np.array([2.0, 2.0, 0.0]), 2.0, np.array([2.0, 4.0, 4.0]), b=3.0).tolist()
    [1.0, 0.800000011920929, 0.0]
    >>> [f"{found:.2f}" for found in score(np.full(2, 2.0), 2.0, np.array([4.0, 40.0]), b=3.0)]
    ['0.80', '0.42']
    """
    most = np.maximum(LONG * asked, np.finfo(np.float64).tiny)
    used = np.where(lengths > most, most * (1 + np.log(np.maximum(lengths / most, 1))), lengths)
    return ((1 + b) * shared / (b * asked + used)).astype(np.float32)


def blocks(asked: Query, segments: Sequence[Segment]) -> Iterator[tuple[int, np.ndarray]]:
    """Yield for one run of formulas after another the position of its first, and the weight that each one shares.

    The array is used again for the next run.
    """
    first, counted = 0, asked.weights > 0
    add, width = adder(sum(len(part.postings) for part in segments))
    weights, often = asked.weights[counted], asked.counts[counted]
    sums = np.empty(min(width, max((part.n for part in segments), default=0)))
    for part in segments:
        cursors, stops = (side[counted] for side in part.find(asked.keys))
        order = np.flatnonzero(cursors < stops)
        cursors, stops, own, times = cursors[order].copy(), stops[order], weights[order], often[order]
        for start in range(0, part.n, width):
            end = min(start + width, part.n)
            here = sums[: end - start]
            here[:] = 0
            add(cursors, stops, own, times, part.postings, start, end, here)
            yield first + start, here
        first += part.n


class Top:
    """The *depth* best formulas of one query, ties by rank: `ranks` int32 per position, None: the position itself.

    `order` is the inverse of `ranks`.
    """

    def __init__(self, depth: int, ranks: np.ndarray | None, order: np.ndarray | None) -> None:
        """Start empty."""
        self.depth, self.ranks, self.order = depth, ranks, order
        self.keys = np.empty(0, dtype=np.uint64)
        self.floor = 0.0

    def add(self, positions: np.ndarray, scores: np.ndarray) -> None:
        """Take formulas with their scores, float32."""
        ranks = positions if self.ranks is None else self.ranks[positions]
        keys = np.concatenate([self.keys, pack(scores, ranks)])
        if len(keys) > self.depth:
            keys = np.partition(keys, self.depth - 1)[: self.depth]
            self.floor = float(unpack(keys[-1:])[0][0])
        self.keys = keys

    def flat(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (positions, scores), best first."""
        scores, ranks = unpack(np.sort(self.keys))
        return (ranks if self.order is None else self.order[ranks].astype(np.int64)), scores


def best(
    asked: Query, segments: Sequence[Segment], lengths: np.ndarray, b: float, top: Top, allowed: Allowed | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return (positions, scores) of the best formulas of one query, best first; none that shares no token.

    A formula is at least as long as what it shares, so that a bound on the weight in common, which follows from the
    worst score kept so far, spares all but a few the division.
    """
    for start, sums in blocks(asked, segments):
        found = np.flatnonzero(sums > bound(top.floor, asked.length, b))
        if allowed is not None and len(found):
            found = allowed(found + start) - start
        scores = score(sums[found], asked.length, lengths[found + start], b)
        is_good = scores >= max(top.floor, np.finfo(np.float32).tiny)
        top.add(found[is_good] + start, scores[is_good])
    return top.flat()


def bound(floor: float, asked: float, b: float) -> float:
    """Return a weight in common without which no formula can score *floor*; 0 when the floor is 0.

    >>> bound(0.5, asked=7.0, b=3.0) <= 3.0
    True
    """
    return floor * b * asked / max(1 + b - floor, np.finfo(np.float64).tiny) * _SAFE
