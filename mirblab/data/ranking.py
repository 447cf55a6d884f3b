"""ranking: which of two documents comes first, equal scores included, and the k best documents of each query."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from mirblab.core.errors import MirblabError, check_positive

NO_KEY = np.uint64(0xFFFFFFFFFFFFFFFF)
_LEAST_SLACK = 256
_BLOCK = 1 << 16  # rows handled together: a few arrays of that length stay in the processor's cache


class TopK:
    """The *k* best (score, position) of each of *n_rows* queries, gathered from blocks of scores.

    Blocks have at most *width* documents and must come **from the last document to the first**: of equal scores the
    larger position is better (doc_id descending, as in trec_eval), so that a later block only has to exceed the k-th
    best score. Score and position are packed into one integer whose order is that of a run; a full buffer is cut back
    to *k*.
    """

    def __init__(self, n_rows: int, k: int, width: int, floor: float | np.ndarray = -np.inf) -> None:
        """Only scores above *floor*, one for all queries or one for each, are taken."""
        self.k = k
        self.slack = max(k, _LEAST_SLACK)
        self.keys = np.full((n_rows, k + self.slack + width), NO_KEY)
        self.counts = np.zeros(n_rows, dtype=np.intp)
        self.floor = np.full(n_rows, floor, dtype=np.float32)

    def add(
        self,
        scores: np.ndarray,
        start: int,
        allowed: np.ndarray | Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        """Take a block of scores (n_rows, n_docs), float32, of the documents from position *start* on.

        NaN, scores not above the floor, and what is False in *allowed* are never taken. As a function, *allowed* gets
        the flat positions of the scores above the floor and returns those that may be taken.
        """
        above = scores > self.floor[:, None]
        if isinstance(allowed, np.ndarray):
            above &= allowed
        cells = np.flatnonzero(above)
        if callable(allowed) and len(cells):
            cells = allowed(cells)
            above = np.zeros(scores.shape, dtype=bool)
            above.flat[cells] = True
        is_flood = len(cells) > 2 * self.k * len(scores)
        if is_flood:
            cells = np.flatnonzero(above & (scores >= self._kth(scores, above)))
        if len(cells) == 0:
            return
        rows, columns = np.divmod(cells, scores.shape[1])
        new = np.bincount(rows, minlength=len(self.counts))
        slots = np.arange(len(cells)) - (np.cumsum(new) - new - self.counts)[rows]
        self.keys[rows, slots] = pack_keys(scores[rows, columns], columns + start)
        self.counts += new
        if is_flood or self.counts.max() > self.k + self.slack:
            self._cut()

    def _kth(self, scores: np.ndarray, above: np.ndarray) -> np.ndarray:
        """Return each row's k-th best score within this block, so that a first block does not overflow the buffer."""
        if scores.shape[1] <= self.k:
            return np.full((len(scores), 1), -np.inf, dtype=np.float32)
        # Best first: a partition is twenty times slower when the equal values, here the rest, come first.
        return -np.partition(np.where(above, -scores, np.float32(np.inf)), self.k - 1, axis=1)[:, self.k - 1, None]

    def _cut(self) -> None:
        rows = np.flatnonzero(self.counts >= self.k)
        if len(rows) == 0:
            return
        used = int(self.counts.max())
        kept = np.partition(self.keys[rows, :used], self.k - 1, axis=1)[:, : self.k]
        self.keys[rows, : self.k] = kept
        self.keys[rows, self.k : used] = NO_KEY
        self.counts[rows] = self.k
        self.floor[rows] = unpack_keys(kept[:, -1])[0]

    def merge(self, other: TopK) -> None:
        """Add the scores that *other* gathered for the same queries from other documents."""
        self._keep(np.concatenate([part.keys[:, : part.counts.max(initial=0)] for part in (self, other)], axis=1))

    def trim(self) -> TopK:
        """Keep only the *k* best of each query, to free the memory of the buffer, and return itself."""
        self._keep(self.keys[:, : self.counts.max(initial=0)])
        return self

    def _keep(self, keys: np.ndarray) -> None:
        self.keys = np.sort(keys, axis=1)[:, : self.k].copy()
        self.counts = (self.keys != NO_KEY).sum(axis=1)

    def flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (rows, positions, scores), flat, best first within each row."""
        ordered = np.sort(self.keys[:, : self.counts.max(initial=0)], axis=1)[:, : self.k]
        rows, columns = np.nonzero(ordered != NO_KEY)
        scores, positions = unpack_keys(ordered[rows, columns])
        return rows, positions, scores


def gather_blocks(rows: list[slice], parts: list[list[TopK]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the flat result over blocks of queries, each searched in one or more parts of the corpus."""
    columns = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))]
    for block, (first, *others) in zip(rows, parts, strict=True):
        for other in others:
            first.merge(other)
        block_rows, positions, scores = first.flat()
        columns.append((block_rows + block.start, positions, scores))
    row, position, score = (np.concatenate(column) for column in zip(*columns, strict=True))
    return row, position, score


def top_k(scores: np.ndarray, k: int, allowed: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the *k* best columns of each row as flat (rows, positions, scores), best first within each row.

    *scores* is (n_rows, n_columns) of few rows, taken as float32; *allowed* is a mask of that shape, None: all. Of
    equal scores the larger position is better (doc_id descending, for sorted ids). -inf, NaN and columns that are not
    allowed are never returned, so a row may give fewer than *k*.

    >>> top_k(np.array([[0.5, 0.9, 0.5], [-np.inf, 1, np.nan]]), 2)[1].tolist()
    [1, 2, 1]
    """
    scores = np.atleast_2d(np.asarray(scores, dtype=np.float32))
    check_positive(k=k)
    if allowed is not None and np.shape(allowed) != scores.shape:
        raise MirblabError(f"scores have the shape {scores.shape}, but allowed has {np.shape(allowed)}")
    best = TopK(len(scores), k, scores.shape[1])
    best.add(scores, 0, None if allowed is None else np.asarray(allowed, dtype=bool))
    return best.flat()


def pack_keys(scores: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return one uint64 per (float32 score, position below 2^32); of two, the smaller is the better."""
    bits = (scores + np.float32(0)).view(np.uint32)  # adding zero turns -0.0 into 0.0, which equals it
    # The order of the bits of negative floats is reversed, and their sign bit would put them last.
    ordered = bits ^ np.where(bits >> 31, np.uint32(0xFFFFFFFF), np.uint32(0x80000000))
    return ~(ordered.astype(np.uint64) << np.uint64(32) | positions.astype(np.uint64))


def unpack_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the float32 scores and int64 positions of packed keys."""
    ordered = (~keys >> np.uint64(32)).astype(np.uint32)
    bits = ordered ^ np.where(ordered >> 31, np.uint32(0x80000000), np.uint32(0xFFFFFFFF))
    return bits.view(np.float32), (~keys & np.uint64(0xFFFFFFFF)).astype(np.int64)


def query_bounds(queries: np.ndarray) -> np.ndarray:
    """Return where each query's rows begin, and the end: shape (n_queries + 1,), or [0] for no rows."""
    inner = np.flatnonzero(queries[1:] != queries[:-1]) + 1
    return np.concatenate([[0], inner, [len(queries)]]) if len(queries) else np.zeros(1, dtype=np.int64)


def is_ordered(queries: np.ndarray, docs: np.ndarray, scores: np.ndarray) -> bool:
    """Return whether queries ascend, and scores, then documents, descend within each query, in one pass."""
    for begin in range(0, len(queries) - 1, _BLOCK):
        query, doc, score = (array[begin : begin + _BLOCK + 1] for array in (queries, docs, scores))
        if (query[1:] < query[:-1]).any():
            return False
        rest = np.flatnonzero(~(score[1:] < score[:-1]))  # where a query ends, and ties: few
        rest = rest[query[rest + 1] == query[rest]]
        if not ((score[rest + 1] == score[rest]) & (doc[rest + 1] < doc[rest])).all():
            return False
    return True


def sort_rows(queries: np.ndarray, docs: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the three arrays in order: by query, then score, then document, the last two descending.

    Each row is packed into one integer, since numpy sorts values several times faster than it finds a permutation.
    """
    keys = np.empty(len(scores), dtype=np.uint64)
    for part in _blocks(len(keys)):
        keys[part] = pack_keys(scores[part], docs[part])
    if (queries[1:] < queries[:-1]).any():
        order = _order_by_query(queries)
        queries, keys = queries[order], keys[order]
    bounds = query_bounds(queries).tolist()
    for begin, end in zip(bounds[:-1], bounds[1:], strict=True):
        keys[begin:end].sort()
    docs, scores = np.empty(len(keys), dtype=docs.dtype), np.empty(len(keys), dtype=np.float32)
    for part in _blocks(len(keys)):
        scores[part], docs[part] = unpack_keys(keys[part])
    return queries, docs, scores


def count_repeats(queries: np.ndarray, docs: np.ndarray, edges: np.ndarray) -> tuple[int, tuple[int, int]]:
    """Return how many rows, sorted by query and document, repeat a pair, and the first such pair, or (-1, -1)."""
    count, pair, bounds = 0, (-1, -1), edges.tolist()
    per_block = max(1, _BLOCK * len(bounds) // max(1, len(docs)))
    for first in range(0, len(bounds) - 1, per_block):
        here = bounds[first : first + per_block + 1]
        part = docs[here[0] : here[-1]].copy()
        for begin, end in zip(here[:-1], here[1:], strict=True):
            part[begin - here[0] : end - here[0]].sort()
        same = np.flatnonzero(part[1:] == part[:-1])
        same = same[queries[same + here[0]] == queries[same + here[0] + 1]]
        if len(same) and not count:
            pair = int(queries[same[0] + here[0]]), int(part[same[0]])
        count += len(same)
    return count, pair


def _blocks(length: int) -> Iterator[slice]:
    """Yield slices that cover *length* rows, short enough for the processor's cache."""
    return (slice(begin, begin + _BLOCK) for begin in range(0, length, _BLOCK))


def _order_by_query(queries: np.ndarray) -> np.ndarray:
    """Return the permutation that groups rows by query; numpy sorts 16-bit numbers by counting, without comparisons."""
    low = np.argsort(queries.astype(np.uint16), kind="stable")
    if queries.itemsize <= 2:
        return low
    return low[np.argsort((queries >> 16).astype(np.uint16)[low], kind="stable")]
