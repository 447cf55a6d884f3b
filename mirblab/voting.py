"""voting: the rows of several runs side by side, so that any rule of fusion is a few operations on arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from mirblab import runs
from mirblab.errors import MirblabError, unknown
from mirblab.ranking import edges, sort_rows

_ROWS = 1 << 17  # of all parts, handled together: what is needed of them stays in the processor's cache

Vote = Callable[["Block"], np.ndarray]
Total = Callable[["Block", np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Block:
    """The rows of a few queries in all parts, and the (query, document) pairs that they are about.

    Rows stand part by part, best first within each query: `part`, `row_query` (place among all queries), `rank`,
    `score`, `length` (documents that the part returns for the query). Pairs are sorted by `query` and `doc`. `order`
    puts the rows pair by pair, parts in their turn; `starts` is where each pair's rows begin there. The first query
    is `begin`.
    """

    begin: int
    n_parts: int
    part: np.ndarray
    row_query: np.ndarray
    rank: np.ndarray
    score: np.ndarray
    length: np.ndarray
    order: np.ndarray
    starts: np.ndarray
    doc: np.ndarray

    @property
    def query(self) -> np.ndarray:
        """Return each pair's query, its place among all."""
        return self.row_query[self.first]

    @cached_property
    def n_votes(self) -> np.ndarray:
        """Return how many parts return each pair."""
        return np.diff(np.append(self.starts, len(self.order)))

    @cached_property
    def first(self) -> np.ndarray:
        """Return the first row of each pair."""
        return self.order[self.starts]

    @cached_property
    def pool(self) -> np.ndarray:
        """Return for each row how many documents its query has in all parts together, each counted once."""
        return np.bincount(self.row_query[self.first] - self.begin)[self.row_query - self.begin]

    @cached_property
    def n_rows(self) -> np.ndarray:
        """Return for each row how many rows its query has in all parts."""
        return np.bincount(self.row_query - self.begin)[self.row_query - self.begin]

    @cached_property
    def scaled(self) -> np.ndarray:
        """Return each row's score scaled to 0..1 within its query and part (min-max); equal scores all count 1."""
        best = np.flatnonzero(self.rank == 1)
        span = np.repeat(self.above[best], self.length[best])
        constant = span == 0
        return np.where(constant, 1.0, self.above / np.where(constant, 1.0, span))

    @cached_property
    def above(self) -> np.ndarray:
        """Return how far each row's score is above the worst of its query and part."""
        best, scores = np.flatnonzero(self.rank == 1), self.score.astype(np.float64)
        lengths = self.length[best]
        return scores - np.repeat(scores[best + lengths - 1], lengths)

    def sum(self, votes: np.ndarray) -> np.ndarray:
        """Return the sum over each pair's rows."""
        return np.add.reduceat(votes[self.order], self.starts) if len(votes) else np.empty(0)

    def max(self, votes: np.ndarray) -> np.ndarray:
        """Return the largest of each pair's rows."""
        return np.maximum.reduceat(votes[self.order], self.starts) if len(votes) else np.empty(0)

    def matrix(self, votes: np.ndarray) -> np.ndarray:
        """Return the votes as (n_pairs, n_parts), 0 where a part does not return a document."""
        place = np.repeat(np.arange(len(self.starts)), self.n_votes)
        found = np.zeros((len(self.starts), self.n_parts))
        found[place, self.part[self.order]] = votes[self.order]
        return found


@dataclass(frozen=True)
class Sides:
    """Several runs over the same sorted ids: for each part its documents and where each query's rows begin."""

    parts: Sequence[pd.DataFrame]
    query_ids: pd.Index
    doc_ids: pd.Index
    docs: list[np.ndarray]
    bounds: list[np.ndarray]
    system: str
    collection: str

    @classmethod
    def of(cls, parts: Sequence[pd.DataFrame]) -> Sides:
        """Return the runs side by side; MirblabError for none, and for runs of different collections."""
        if not len(parts):
            raise MirblabError("there is nothing to fuse; give at least one run")
        names = {str(part.attrs.get("collection", "")) for part in parts}
        if len(names) > 1:
            raise MirblabError(f"runs of one collection can be fused, found {', '.join(sorted(names))}")
        ranked = [runs.order(part) for part in parts]
        query_ids, queries = _shared([part.query_id for part in ranked])
        doc_ids, docs = _shared([part.doc_id for part in ranked])
        bounds = [_bounds(codes, len(query_ids)) for codes in queries]
        system = "+".join(str(part.attrs.get("system", "run")) for part in parts)
        return cls(ranked, query_ids, doc_ids, docs, bounds, system, names.pop())

    def blocks(self) -> Iterator[Block]:
        """Yield blocks of whole queries in turn, about `_ROWS` rows each."""
        n_rows = np.sum([np.diff(bounds) for bounds in self.bounds], axis=0)
        block = np.cumsum(n_rows) // _ROWS
        cuts = edges(block)
        for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            yield self._block(first, last)

    def scale(self, span: str) -> Vote:
        """Return what scales a block's scores: by each list's own span ("query"), or by the part's mean span ("mean").

        MirblabError for another word.
        """
        if span == "query":
            return lambda block: block.scaled
        if span != "mean":
            raise unknown("span of scores", span, ("query", "mean"))
        mean = np.array([_mean_span(part.score, bounds) for part, bounds in zip(self.parts, self.bounds, strict=True)])
        return lambda block: block.above / mean[block.part]

    def _block(self, first: int, last: int) -> Block:
        """Return the block of the queries at *first* to *last* (not included)."""
        slices = [slice(bounds[first], bounds[last]) for bounds in self.bounds]
        lengths = np.concatenate([np.diff(bounds[first : last + 1]) for bounds in self.bounds])
        queries = np.repeat(np.tile(np.arange(last - first), len(slices)), lengths)
        docs = np.concatenate([docs[rows] for docs, rows in zip(self.docs, slices, strict=True)])
        order, starts = _grouped(queries, docs, len(self.doc_ids))
        return Block(
            begin=first,
            n_parts=len(slices),
            part=np.repeat(np.arange(len(slices)), [rows.stop - rows.start for rows in slices]),
            row_query=queries + first,
            rank=np.concatenate([part["rank"].to_numpy()[rows] for part, rows in zip(self.parts, slices, strict=True)]),
            score=np.concatenate([part.score.to_numpy()[rows] for part, rows in zip(self.parts, slices, strict=True)]),
            length=np.repeat(lengths, lengths),
            order=order,
            starts=starts,
            doc=docs[order[starts]],
        )

    def merge(self, vote: Vote, total: Total, depth: int | None, **notes: object) -> pd.DataFrame:
        """Return the fused run: *vote* gives a number per row, *total* one per pair; *notes* become attrs.

        A `note` in the attrs of a part becomes one of the fusion's, under the part's name.
        """
        if depth is not None and depth < 1:
            raise MirblabError(f"depth counts documents and is at least 1; found {depth}")
        found: list[tuple[np.ndarray, ...]] = [(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))]
        for block in self.blocks():
            scores = total(block, vote(block)).astype(np.float32)
            queries, docs, scores = sort_rows(block.query.astype(np.int32), block.doc.astype(np.int32), scores)
            if depth is not None:
                bounds = edges(queries)
                kept = np.arange(len(queries)) - np.repeat(bounds[:-1], np.diff(bounds)) < depth
                queries, docs, scores = queries[kept], docs[kept], scores[kept]
            found.append((queries, docs, scores))
        queries, docs, scores = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        said = [
            f"{part.attrs.get('system', 'run')}: {part.attrs['note']}" for part in self.parts if "note" in part.attrs
        ]
        notes |= {"note": "; ".join(said)} if said else {}
        return runs.from_positions(
            queries, docs, scores, self.query_ids, self.doc_ids, self.system, self.collection, **notes
        )


def _mean_span(scores: pd.Series, bounds: np.ndarray) -> float:
    """Return what the best and the worst score of a query are apart, in the mean; 1 where they are all equal."""
    begins, ends = (side[np.diff(bounds) > 0] for side in (bounds[:-1], bounds[1:]))
    own = scores.to_numpy(np.float64)
    return float((own[begins] - own[ends - 1]).mean()) or 1.0 if len(begins) else 1.0


def _grouped(queries: np.ndarray, docs: np.ndarray, n_docs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the permutation that puts equal (query, document) together, and where each pair begins.

    Query, document and row are packed into one integer: numpy sorts values several times faster than it finds a
    permutation.
    """
    doc_bits, row_bits = max(n_docs, 1).bit_length(), max(len(docs), 1).bit_length()
    keys = ((queries.astype(np.int64) << doc_bits | docs) << row_bits) | np.arange(len(docs))
    keys.sort()
    order = keys & ((1 << row_bits) - 1)
    pairs = keys >> row_bits
    starts = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1])) if len(pairs) else np.empty(0, np.int64)
    return order, starts


def _bounds(queries: np.ndarray, n_queries: int) -> np.ndarray:
    """Return where each query's rows begin in sorted codes, and the end: shape (n_queries + 1,)."""
    found, lengths = edges(queries), np.zeros(n_queries + 1, dtype=np.int64)
    lengths[queries[found[:-1]].astype(np.int64) + 1] = np.diff(found)
    return np.cumsum(lengths)


def _shared(columns: Sequence[pd.Series]) -> tuple[pd.Index, list[np.ndarray]]:
    """Return sorted ids that cover all columns, and each column's codes in them."""
    found = [column.cat.categories for column in columns]
    codes = [column.cat.codes.to_numpy() for column in columns]
    if all(ids is found[0] or ids.equals(found[0]) for ids in found[1:]):
        return found[0], codes
    ids = found[0]
    for more in found[1:]:
        ids = ids.union(more)
    return ids, [ids.get_indexer(own)[places] for own, places in zip(found, codes, strict=True)]
