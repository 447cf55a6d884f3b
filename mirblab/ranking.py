"""ranking: the order of a run on plain arrays: sorting, the tie rule, and the best k of a matrix of scores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mirblab.errors import MirblabError

_BLOCK = 1 << 16  # rows looked at together: a few arrays of that length stay in the processor's cache
_SIGN, _HALF = np.uint32(1 << 31), np.uint64(32)


def top_k(scores: np.ndarray, k: int, allowed: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the *k* best columns of each row as flat (rows, positions, scores), best first within each row.

    *scores* is (n_rows, n_columns), taken as float32; *allowed* is a mask of that shape, None: everything. Of equal
    scores the larger position is the better one, which is doc_id descending where positions follow sorted ids.
    What is -inf, NaN or not allowed never comes back, so a row may give fewer than *k*.

    >>> top_k(np.array([[0.5, 0.9, 0.5], [-np.inf, 1, np.nan]]), 2)[1].tolist()
    [1, 2, 1]
    """
    scores = np.atleast_2d(np.asarray(scores, dtype=np.float32))
    if k < 1:
        raise MirblabError(f"k counts documents and is at least 1; found {k}")
    if allowed is not None and np.shape(allowed) != scores.shape:
        raise MirblabError(f"scores have the shape {scores.shape}, but allowed has {np.shape(allowed)}")
    height = max(1, (1 << 22) // max(1, scores.shape[1]))
    parts: list[tuple[np.ndarray, ...]] = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))]
    for begin in range(0, len(scores), height):
        mask = None if allowed is None else np.asarray(allowed, dtype=bool)[begin : begin + height]
        rows, positions, kept = _top_of_block(scores[begin : begin + height], k, mask)
        parts.append((rows + begin, positions, kept))
    rows, positions, kept = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return rows, positions, kept


def edges(queries: np.ndarray) -> np.ndarray:
    """Return where each query's rows begin, and the end: shape (n_queries + 1,), or [0] for no rows."""
    inner = np.flatnonzero(queries[1:] != queries[:-1]) + 1
    return np.concatenate([[0], inner, [len(queries)]]) if len(queries) else np.zeros(1, dtype=np.int64)


def is_ordered(queries: np.ndarray, docs: np.ndarray, scores: np.ndarray) -> bool:
    """Tell in one pass whether queries rise, and scores, then documents, fall within each query."""
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

    Score and document are packed into one integer each row, so that plain sorting of short pieces, one a query,
    does all; numpy sorts values several times faster than it finds the permutation.
    """
    keys = np.empty(len(scores), dtype=np.uint64)
    for part in _blocks(len(keys)):
        bits = (scores[part] + np.float32(0)).view(np.uint32)  # adding 0 turns -0.0 into 0.0, which are equal
        rising = np.where(bits >> 31, ~bits, bits | _SIGN)
        keys[part] = ~((rising.astype(np.uint64) << _HALF) | docs[part].astype(np.uint64))
    if (queries[1:] < queries[:-1]).any():
        place = _by_query(queries)
        queries, keys = queries[place], keys[place]
    bounds = edges(queries).tolist()
    for begin, end in zip(bounds[:-1], bounds[1:], strict=True):
        keys[begin:end].sort()
    docs, scores = np.empty(len(keys), dtype=docs.dtype), np.empty(len(keys), dtype=np.float32)
    for part in _blocks(len(keys)):
        packed = ~keys[part]
        bits = (packed >> _HALF).astype(np.uint32)
        scores[part] = np.where(bits >> 31, bits ^ _SIGN, ~bits).view(np.float32)
        docs[part] = packed.astype(np.uint32)  # the lower half
    return queries, docs, scores


def _blocks(length: int) -> Iterator[slice]:
    """Yield slices that cover *length* rows, short enough for the cache."""
    return (slice(begin, begin + _BLOCK) for begin in range(0, length, _BLOCK))


def repeated(queries: np.ndarray, docs: np.ndarray, edges: np.ndarray) -> tuple[int, tuple[int, int]]:
    """Return how many rows repeat a document of their query, and the first such (query, document), or (-1, -1).

    Rows are grouped by query; each query's documents are sorted apart.
    """
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


def _by_query(queries: np.ndarray) -> np.ndarray:
    """Return the permutation that groups rows by query; numpy counts instead of comparing up to 16 bits."""
    low = np.argsort(queries.astype(np.uint16), kind="stable")
    if queries.itemsize <= 2:
        return low
    return low[np.argsort((queries >> 16).astype(np.uint16)[low], kind="stable")]


def _top_of_block(scores: np.ndarray, k: int, allowed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `top_k` of a few rows: everything from a lower bound of the k-th score on, sorted, then cut."""
    if allowed is not None:
        scores = np.where(allowed, scores, np.float32(-np.inf))
    if np.isnan(scores.min(initial=0)):
        scores = np.where(np.isnan(scores), np.float32(-np.inf), scores)
    flat = np.flatnonzero((scores >= _kth_bound(scores, k)[:, None]) & (scores > -np.inf))
    rows, positions = np.divmod(flat, scores.shape[1])
    rows, positions, kept = sort_rows(rows, positions, scores.ravel()[flat])
    bounds = edges(rows)
    first = np.arange(len(rows)) - np.repeat(bounds[:-1], np.diff(bounds)) < k
    return rows[first], positions[first], kept[first]


def _kth_bound(scores: np.ndarray, k: int) -> np.ndarray:
    """Return for each row a number that at least *k* entries reach, and few more: shape (n_rows,).

    The k-th largest among the maxima of disjoint groups of columns is one, and costs one pass.
    """
    n_rows, n_columns = scores.shape
    if k >= n_columns:
        return np.full(n_rows, -np.inf, dtype=np.float32)
    size = max(1, min(64, n_columns // (8 * k)))
    width = n_columns // size
    maxima = scores[:, : size * width].reshape(n_rows, size, width).max(axis=1)
    return np.partition(maxima, width - k, axis=1)[:, width - k]
