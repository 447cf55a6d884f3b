"""The k best documents of each query over blocks of scores, with the tie rule of `runs`, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

NO_KEY = np.uint64(0xFFFFFFFFFFFFFFFF)
_LEAST_SLACK = 256


class TopK:
    """The *k* best (score, position) of each of *n_rows* queries, gathered from blocks of scores.

    Blocks have at most *width* documents and must come **from the last document to the first**: of equal
    scores the larger position is better (the tie rule of `runs`), so that a later block only has to beat the
    k-th best score strictly, and one comparison per score decides. Score and position are packed into one
    integer whose order is the order of a run; a row's buffer is cut back to *k* when it is full.

    >>> best = TopK(1, k=2, width=3)
    >>> best.add(np.array([[0.5, 0.9, 0.5]], np.float32), start=3)
    >>> best.add(np.array([[0.5, 0.1, 0.7]], np.float32), start=0)
    >>> [column.tolist() for column in best.flat()[:2]]
    [[0, 0], [4, 2]]
    """

    def __init__(self, n_rows: int, k: int, width: int, floor: float | np.ndarray = -np.inf) -> None:
        """Start empty; only scores above *floor*, one for all queries or one for each, are taken."""
        self.k = k
        self.slack = max(k, _LEAST_SLACK)
        self.keys = np.full((n_rows, k + self.slack + width), NO_KEY)
        self.counts = np.zeros(n_rows, dtype=np.intp)
        self.floor = np.full(n_rows, floor, dtype=np.float32)

    def add(self, scores: np.ndarray, start: int, allowed: np.ndarray | Callable | None = None) -> None:
        """Take a block of scores (n_rows, n_docs), float32, of the documents from position *start* on.

        NaN, scores not above the floor, and what is False in *allowed* are never taken. As a function, *allowed*
        gets the flat places of the scores above the floor, mostly few, and returns those that may be taken.
        """
        above = scores > self.floor[:, None]
        if isinstance(allowed, np.ndarray):
            above &= allowed
        found = np.flatnonzero(above)
        if callable(allowed) and len(found):
            found = allowed(found)
            above = np.zeros(scores.shape, dtype=bool)
            above.flat[found] = True
        is_flood = len(found) > 2 * self.k * len(scores)
        if is_flood:
            found = np.flatnonzero(above & (scores >= self._kth(scores, above)))
        if len(found) == 0:
            return
        rows, columns = np.divmod(found, scores.shape[1])
        new = np.bincount(rows, minlength=len(self.counts))
        slots = np.arange(len(found)) - (np.cumsum(new) - new - self.counts)[rows]
        self.keys[rows, slots] = pack_keys(scores[rows, columns], columns + start)
        self.counts += new
        if is_flood or self.counts.max() > self.k + self.slack:
            self._cut()

    def _kth(self, scores: np.ndarray, above: np.ndarray) -> np.ndarray:
        """Return each row's k-th best score within this block, so that a first block does not flood the buffer."""
        if scores.shape[1] <= self.k:
            return np.full((len(scores), 1), -np.inf, dtype=np.float32)
        # Best first: a partition is twenty times slower when the equal values, here the rest, come first.
        return -np.partition(np.where(above, -scores, np.float32(np.inf)), self.k - 1, axis=1)[:, self.k - 1, None]

    def _cut(self) -> None:
        """Reduce the rows that hold k or more to their k best, and raise their floor to the worst of those."""
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
        """Take over what *other* gathered for the same queries from other documents."""
        self._keep(np.concatenate([part.keys[:, : part.counts.max(initial=0)] for part in (self, other)], axis=1))

    def trim(self) -> TopK:
        """Give back the memory of the buffer at the end: only the *k* best of each query stay; returns itself."""
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
    columns = []
    for block, (first, *others) in zip(rows, parts, strict=True):
        for other in others:
            first.merge(other)
        own, positions, scores = first.flat()
        columns.append((own + block.start, positions, scores))
    if not columns:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    found = tuple(np.concatenate(column) for column in zip(*columns, strict=True))
    return found[0], found[1], found[2]


def pack_keys(scores: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return one uint64 per (float32 score, position below 2^32); of two, the smaller is the better.

    >>> keys = pack_keys(np.array([0.5, 0.5, -1.0], np.float32), np.array([2, 1, 9]))
    >>> bool(keys[0] < keys[1] < keys[2] < NO_KEY)
    True
    """
    bits = (scores + np.float32(0)).view(np.uint32)  # adding zero turns -0.0 into 0.0, which equals it
    # The order of the bits of negative floats is reversed, and their sign bit would put them last.
    ordered = bits ^ np.where(bits >> 31, np.uint32(0xFFFFFFFF), np.uint32(0x80000000))
    return ~(ordered.astype(np.uint64) << np.uint64(32) | positions.astype(np.uint64))


def unpack_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the float32 scores and int64 positions of packed keys."""
    ordered = (~keys >> np.uint64(32)).astype(np.uint32)
    bits = ordered ^ np.where(ordered >> 31, np.uint32(0x80000000), np.uint32(0xFFFFFFFF))
    return bits.view(np.float32), (~keys & np.uint64(0xFFFFFFFF)).astype(np.int64)


def split_range(n: int, size: int) -> list[slice]:
    """Return slices that cover range(n), as equal as can be, none longer than *size*.

    >>> split_range(5, 2)
    [slice(0, 1, None), slice(1, 3, None), slice(3, 5, None)]
    """
    count = -(-n // size)
    return [slice(n * number // count, n * (number + 1) // count) for number in range(count)]


def n_cores() -> int:
    """Return the number of cores that this process may use, at least 1."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def run_in_threads(task: Callable, jobs: list, workers: int) -> list:
    """Return the task's result for each job, in order, on that many threads."""
    if workers == 1 or len(jobs) < 2:
        return [task(job) for job in jobs]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(task, jobs))
