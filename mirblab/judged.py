"""judged: which documents of a run are judged, and at what rank: the join that all measures share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError
from mirblab.ranking import edges
from mirblab.runs import categorical

_BLOCK = 1 << 16  # rows looked at together: a few arrays of that length stay in the processor's cache
_BITS = 18  # a table of 2^18 bytes stays there too, and lets about 1 in 100 unjudged rows through


@dataclass(frozen=True)
class Judgements:
    """The qrels as arrays over judgements, sorted by query (its place in `query_ids`) and document (its code)."""

    query: np.ndarray
    doc: np.ndarray
    relevance: np.ndarray
    query_ids: pd.Index
    doc_ids: pd.Index

    @classmethod
    def of(cls, qrels: pd.DataFrame) -> Judgements:
        """Return the judgements in a table; MirblabError for missing columns, repeats, and parts of a grade."""
        missing = [name for name in ("query_id", "doc_id", "relevance") if name not in qrels.columns]
        if missing:
            found = ", ".join(map(str, qrels.columns)) or "none"
            raise MirblabError(f"qrels have query_id, doc_id, relevance; missing {', '.join(missing)}; found {found}")
        queries, docs = categorical(qrels.query_id), categorical(qrels.doc_id)
        query, doc, relevance = queries.codes, docs.codes, _whole(qrels.relevance)
        keys = query.astype(np.int64) * len(docs.categories) + doc
        if (keys[1:] <= keys[:-1]).any():
            place = np.argsort(keys, kind="stable")
            query, doc, relevance, keys = query[place], doc[place], relevance[place], keys[place]
            _refuse_repeats(keys, queries.categories[query], docs.categories[doc])
        bounds = edges(query)
        place = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        return cls(place, doc, relevance, queries.categories[query[bounds[:-1]]], docs.categories)

    def docs_in(self, doc_ids: pd.Index) -> np.ndarray:
        """Return where the document of each judgement stands in *doc_ids*, or -1; only ids that occur are looked up."""
        if self.doc_ids is doc_ids or self.doc_ids.equals(doc_ids):
            return self.doc
        occurs = np.zeros(len(self.doc_ids), dtype=bool)
        occurs[self.doc] = True
        place = np.full(len(self.doc_ids), -1)
        place[occurs] = positions_in(self.doc_ids[occurs], doc_ids)
        return place[self.doc]

    def count(self, chosen: np.ndarray) -> np.ndarray:
        """Return how many of the *chosen* judgements (a mask) each query has, shape (n_queries,)."""
        return np.bincount(self.query[chosen], minlength=len(self.query_ids))


@dataclass(frozen=True)
class Found:
    """The judged documents that a run returned, by query and rank, and how many documents it returned in all."""

    judgements: Judgements
    relevant_from: int
    query: np.ndarray
    rank: np.ndarray
    relevance: np.ndarray
    returned: np.ndarray
    unfound_rank: int
    n_not_judged: int

    @classmethod
    def of(cls, run: pd.DataFrame, judgements: Judgements, relevant_from: int, n_docs: int | None) -> Found:
        """Join an ordered run with judgements; *n_docs* is the rank of what is not found, None: longest ranking + 1."""
        codes = run.query_id.cat.codes.to_numpy()
        bounds = edges(codes)
        starts, lengths = np.zeros((2, len(run.query_id.cat.categories) + 1), dtype=np.int64)  # -1 finds the last, 0
        starts[codes[bounds[:-1]]], lengths[codes[bounds[:-1]]] = bounds[:-1], np.diff(bounds)
        in_run = positions_in(judgements.query_ids, run.query_id.cat.categories)
        rows, which = _meet(run, judgements, in_run)
        query, returned = judgements.query[which], lengths[in_run]
        rank = rows - starts[in_run[query]] + 1
        unfound = int(lengths.max()) + 1 if n_docs is None else n_docs
        surplus = int((lengths > 0).sum() - (returned > 0).sum())
        return cls(judgements, relevant_from, query, rank, judgements.relevance[which], returned, unfound, surplus)

    @property
    def is_relevant(self) -> np.ndarray:
        """Return which of the judged documents are relevant, a mask."""
        return self.relevance >= self.relevant_from

    def prime(self) -> Found:
        """Return the same after documents without a judgement are removed, and those of negative relevance.

        trec_eval's `-J` and ir_measures' `judged_only` treat a negative relevance as no judgement.
        """
        kept = self.relevance >= 0
        query = self.query[kept]
        rank = place_in_query(query, len(self.returned)) + 1
        returned = np.bincount(query, minlength=len(self.returned))
        return replace(self, query=query, rank=rank, relevance=self.relevance[kept], returned=returned)

    def perfect(self, depth: int) -> Found:
        """Return the same with the first *depth* documents in the best order: the most relevant in front.

        What stands deeper stays where it is.
        """
        head = self.rank <= depth
        best = np.lexsort((np.where(head, -self.relevance, self.rank), ~head, self.query))
        front = place_in_query(self.query, len(self.returned)) + 1
        rank = np.where(head[best], front, self.rank[best])
        return replace(self, rank=rank, relevance=self.relevance[best])

    def sum(self, weights: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Return each query's sum of *weights*, which belong to the *chosen* documents (a mask), best rank first."""
        return np.bincount(self.query[chosen], weights=weights, minlength=len(self.returned))

    def count(self, chosen: np.ndarray) -> np.ndarray:
        """Return how many of the *chosen* documents (a mask) each query has."""
        return np.bincount(self.query[chosen], minlength=len(self.returned))


def place_in_query(query: np.ndarray, n_queries: int) -> np.ndarray:
    """Return for each entry of a sorted array how many entries of the same query stand before it.

    >>> place_in_query(np.array([0, 0, 2, 2, 2]), 3).tolist()
    [0, 1, 0, 1, 2]
    """
    counts = np.bincount(query, minlength=n_queries)
    return np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)


def positions_in(ids: pd.Index, known: pd.Index) -> np.ndarray:
    """Return where each of *ids* stands in *known*, or -1; both are sorted and without repeats.

    >>> positions_in(pd.Index(["a", "c"]), pd.Index(["b", "c"])).tolist()
    [-1, 1]
    """
    if not len(known):
        return np.full(len(ids), -1)
    if len(ids) * 6 > len(known):  # then hashing all that is known pays
        return known.get_indexer(ids)
    place = np.minimum(known.searchsorted(ids), len(known) - 1)
    return np.where(known[place] == ids, place, -1)


def _meet(run: pd.DataFrame, judgements: Judgements, in_run: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the run that are judged, and the judgement of each.

    Few rows are judged. In blocks that stay in the cache, a table over a hash of (query, document) drops most of
    the others, and binary search among the block's judgements decides on the rest.
    """
    queries, docs = run.query_id.cat.codes.to_numpy(), run.doc_id.cat.codes.to_numpy()
    query, doc = in_run[judgements.query], judgements.docs_in(run.doc_id.cat.categories)
    which = np.flatnonzero((query >= 0) & (doc >= 0))
    query, doc = query[which], doc[which]
    keys = (query << 32) | doc
    hashes = _hash(query.astype(np.uint32), doc.astype(np.uint32))
    table = np.zeros(1 << _BITS, dtype=bool)
    rows, hits = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for begin in range(0, len(queries), _BLOCK):
        block = queries[begin : begin + _BLOCK]
        first, last = np.searchsorted(query, [block[0], int(block[-1]) + 1])
        if first == last:
            continue
        table[hashes[first:last]] = True
        near = np.flatnonzero(table[_hash(block.astype(np.uint32), docs[begin : begin + _BLOCK].astype(np.uint32))])
        table[hashes[first:last]] = False
        asked = (block[near].astype(np.int64) << 32) | docs[begin + near]
        place = np.searchsorted(keys[first:last], asked)
        place[place == last - first] = 0
        same = keys[first:last][place] == asked
        rows.append(near[same] + begin)
        hits.append(which[place[same] + first])
    return np.concatenate(rows), np.concatenate(hits)


def _hash(query: np.ndarray, doc: np.ndarray) -> np.ndarray:
    """Return `_BITS` well mixed bits of pairs of 32-bit numbers, by multiplication with odd constants."""
    mixed = doc * np.uint32(0x9E3779B1)
    mixed += query * np.uint32(0x85EBCA6B)
    mixed >>= np.uint32(32 - _BITS)
    return mixed


def _whole(relevance: pd.Series) -> np.ndarray:
    """Return relevance as whole numbers, or raise MirblabError."""
    try:
        numbers = relevance.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise MirblabError(f"relevance must be whole numbers; found {relevance.dtype}: {error}") from error
    bad = np.flatnonzero(~(np.abs(numbers) < 2**31) | (numbers != np.round(numbers)))
    if len(bad):
        raise MirblabError(f"relevance must be whole numbers; found {numbers[bad[0]]} ({len(bad):,} such judgements)")
    return numbers.astype(np.int64)


def _refuse_repeats(keys: np.ndarray, query_ids: pd.Index, doc_ids: pd.Index) -> None:
    same = np.flatnonzero(keys[1:] == keys[:-1])
    if len(same):
        pair = f"query '{query_ids[same[0]]}', document '{doc_ids[same[0]]}'"
        raise MirblabError(f"the qrels judge {len(same):,} pairs again, the first {pair}; keep one judgement of each")
