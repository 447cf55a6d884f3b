"""scoring: the score of a formula, with its weights and compiled loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mirblab.core.errors import MirblabError, unknown
from mirblab.core.processes import compiled
from mirblab.data.ranking import pack_keys, unpack_keys
from mirblab.formula.storage import COUNT_BITS, COUNT_MASK, Segment, distinct_keys
from mirblab.formula.tokens import KIND_MASK, KINDS

# Chosen on the 74 topics of ARQMath 2020 and the 20 of NTCIR-12; weights that are learned do no better on held-out
# topics: benchmarks/structure_weights.py.
TOKEN_WEIGHTS = dict(zip(KINDS, (1.0, 0.25, 0.5, 0.5, 0.5, 0.5), strict=True))
DEFAULT_B = 4.0
LONG_RATIO = 2.0  # times the query's length; of what a formula has beyond it only the logarithm counts
ABSENT = 0.5  # the number of formulas that a token is assumed to be in if none has it
# Sums of multiples of these steps, up to 2**23, are exact in double precision, so that the order of summing, and with
# it the way an index is cut into parts, changes no bit of a score, and a formula scores exactly 1 against itself.
_STEP, _KIND_STEP = 2.0**20, 2.0**10
_AT_ONCE = 1 << 22  # postings
COMPILE_FROM = 5_000_000  # postings in an index from which on compiling the loop pays
WIDE, NARROW = 1 << 22, 1 << 15  # formulas in one block: of arrays, and of a loop whose sums stay in the core's cache
_SAFE = 1 - 1e-6  # scores are compared as float32, whose rounding must not cost a formula its place
Allowed = Callable[[np.ndarray], np.ndarray]  # positions of formulas -> those that may be returned


def kind_weights(weights: Mapping[str, float] | None = None) -> np.ndarray:
    """Return the weights of `KINDS` in multiples of 1/1024 (None: TOKEN_WEIGHTS); MirblabError for wrong ones."""
    for name, weight in (weights or {}).items():
        if name not in TOKEN_WEIGHTS:
            raise unknown("kind of token", name, TOKEN_WEIGHTS)
        if not 0 <= weight <= 1000:
            raise MirblabError(f"the weight of a kind of token lies between 0 and 1000; found {weight} for '{name}'")
    found = np.array([(TOKEN_WEIGHTS | dict(weights or {}))[name] for name in KINDS], dtype=np.float64)
    rounded = np.round(found * _KIND_STEP) / _KIND_STEP
    if not rounded.any():
        raise MirblabError("every kind of token has the weight 0, so nothing would be found; give one a weight")
    return rounded


def rarity(n: int, documents: np.ndarray) -> np.ndarray:
    """Return ln(1 + n / documents) for tokens in so many of *n* formulas, rounded to multiples of 2**-20."""
    rare = np.maximum(documents, ABSENT)
    np.divide(n, rare, out=rare)  # in place: those of all tokens of an index are many
    np.log1p(rare, out=rare)
    rare *= _STEP
    np.round(rare, out=rare)
    rare /= _STEP
    return rare


def sum_by_kind(segments: Sequence[Segment]) -> np.ndarray:
    """Return for each formula and kind of token the sum of count times rarity, float64 (n_formulas, n_kinds)."""
    n, kinds = sum(part.n for part in segments), len(KINDS)
    total = np.zeros(n * kinds)
    keys, documents = _document_counts(segments)
    rare, first = rarity(n, documents), 0
    for part in segments:
        own = rare[np.searchsorted(keys, part.keys)] if len(segments) > 1 else rare
        total[first * kinds : (first + part.n) * kinds] = _segment_lengths(part, own)
        first += part.n
    return total.reshape(n, kinds)


def _document_counts(segments: Sequence[Segment]) -> tuple[np.ndarray, np.ndarray]:
    if len(segments) == 1:
        return segments[0].keys, segments[0].sizes()
    keys = distinct_keys(segments)
    documents = np.zeros(len(keys), dtype=np.int64)
    for part in segments:
        documents[np.searchsorted(keys, part.keys)] += part.sizes()
    return keys, documents


def _segment_lengths(part: Segment, rare: np.ndarray) -> np.ndarray:
    kinds, total = len(KINDS), np.zeros(part.n * len(KINDS))
    cuts = np.searchsorted(part.starts, np.arange(0, len(part.postings) + _AT_ONCE, _AT_ONCE))
    edges = np.minimum(cuts, len(part.keys)).tolist()
    for begin, end in zip(edges[:-1], edges[1:], strict=True):
        sizes = part.starts[begin + 1 : end + 1].astype(np.int64) - part.starts[begin:end]
        some = slice(part.starts[begin], part.starts[end])
        cell = (part.postings[some] >> COUNT_BITS).astype(np.int64) * kinds
        cell += np.repeat((part.keys[begin:end] & KIND_MASK).astype(np.int64), sizes)
        total += np.bincount(cell, (part.postings[some] & COUNT_MASK) * np.repeat(rare[begin:end], sizes), len(total))
    return total


@dataclass(frozen=True, slots=True)
class WeightedQuery:
    """A query's distinct tokens: `keys` uint64, ascending, `counts` uint8, and the weight of each, float64.

    `length` is the sum of counts times weights, also over tokens that no formula has.
    """

    keys: np.ndarray
    counts: np.ndarray
    weights: np.ndarray
    length: float


def weigh_query(keys: np.ndarray, counts: np.ndarray, segments: Sequence[Segment], kinds: np.ndarray) -> WeightedQuery:
    """Return the query of distinct tokens with their counts, weighted by all *segments* together."""
    documents = np.zeros(len(keys), dtype=np.int64)
    for part in segments:
        begin, end = part.find(keys)
        documents += end - begin
    rare = rarity(sum(part.n for part in segments), documents)
    weights = kinds[(keys & KIND_MASK).astype(np.int64)] * rare
    return WeightedQuery(keys, counts, weights, float((weights * counts).sum()))


def score_formulas(shared: np.ndarray, asked: float | np.ndarray, lengths: np.ndarray, b: float) -> np.ndarray:
    """Return (1 + b) shared / (b asked + length): the weighted harmonic mean of two shares, float32, 0 to 1.

    *shared* is the weight in common, *asked* the query's length, *lengths* those of the formulas. Length beyond
    LONG_RATIO times the query counts by its logarithm, so that a query inside a long derivation can still rank high.
    Where both lengths count nothing the score is 0. MirblabError for a *b* below 0.
    """
    if not 0 <= b < np.inf:
        raise MirblabError(f"b, how much more the share of the query counts, must be 0 or more; found {b}")
    least = np.finfo(np.float64).tiny
    most = np.maximum(LONG_RATIO * asked, least)
    used = np.where(lengths > most, most * (1 + np.log(np.maximum(lengths / most, 1))), lengths)
    return ((1 + b) * shared / np.maximum(b * asked + used, least)).astype(np.float32)


def shared_weights(asked: WeightedQuery, segments: Sequence[Segment]) -> Iterator[tuple[int, np.ndarray]]:
    """Yield for each block of formulas the first position, and the weight that each shares, in one reused array."""
    first, counted = 0, asked.weights > 0
    n_postings = sum(len(part.postings) for part in segments)
    add, width = (
        (compiled(_add_compiled), NARROW) if n_postings >= COMPILE_FROM else (_add, WIDE)
    )  # both give the same bits
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


def _add_compiled(
    cursors: np.ndarray,
    stops: np.ndarray,
    weights: np.ndarray,
    often: np.ndarray,
    postings: np.ndarray,
    start: int,
    end: int,
    sums: np.ndarray,
) -> None:
    """Do the same as `_add`, one posting after the other: the form that numba compiles."""
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
    """Add weight times the smaller count for each token that query and formula share.

    *cursors* and *stops*, int64 (n_tokens,), are where a query token's postings begin and end, *often* its count in the
    query; *start* and *end* (not included) bound the block of formulas, *sums*, float64, has one entry for each. The
    cursors move to the block's end.
    """
    for token in range(len(cursors)):
        here = postings[cursors[token] : stops[token]]
        here = here[: np.searchsorted(here, np.uint32((end - 1) << 8 | 255), "right")]
        shared = np.minimum(here & COUNT_MASK, often[token])
        sums[(here >> COUNT_BITS).astype(np.int64) - start] += weights[token] * shared
        cursors[token] += len(here)


class TopFormulas:
    """The *depth* best formulas of one query, ties by `ranks` per position (None: itself); `order` inverts it."""

    def __init__(self, depth: int, ranks: np.ndarray | None, order: np.ndarray | None) -> None:
        self.depth, self.ranks, self.order = depth, ranks, order
        self.keys = np.empty(0, dtype=np.uint64)
        self.floor = 0.0

    def add(self, positions: np.ndarray, scores: np.ndarray) -> None:
        """Take formulas with their scores, float32."""
        ranks = positions if self.ranks is None else self.ranks[positions]
        keys = np.concatenate([self.keys, pack_keys(scores, ranks)])
        if len(keys) > self.depth:
            keys = np.partition(keys, self.depth - 1)[: self.depth]
            self.floor = float(unpack_keys(keys[-1:])[0][0])
        self.keys = keys

    def flat(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (positions, scores), best first."""
        scores, ranks = unpack_keys(np.sort(self.keys))
        return (ranks if self.order is None else self.order[ranks].astype(np.int64)), scores


def best_formulas(
    asked: WeightedQuery,
    segments: Sequence[Segment],
    lengths: np.ndarray,
    b: float,
    top: TopFormulas,
    allowed: Allowed,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (positions, scores) of the best formulas of one query, best first; none that shares no token."""
    for start, sums in shared_weights(asked, segments):
        found = allowed(np.flatnonzero(sums > least_shared(top.floor, asked.length, b)) + start) - start
        scores = score_formulas(sums[found], asked.length, lengths[found + start], b)
        is_good = scores >= max(top.floor, np.finfo(np.float32).tiny)
        top.add(found[is_good] + start, scores[is_good])
    return top.flat()


def least_shared(floor: float, asked: float, b: float) -> float:
    """Return the shared weight that a formula needs at least to score *floor*; 0 when the floor is 0."""
    return floor * b * asked / max(1 + b - floor, np.finfo(np.float64).tiny) * _SAFE
