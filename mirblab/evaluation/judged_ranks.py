"""judged_ranks: a collection's judgements as arrays, and the ranks at which a run returned what they judge."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.core.ids import find_positions
from mirblab.core.wording import counted
from mirblab.data.ranking import query_bounds
from mirblab.data.runs import categorical, order_run, query_blocks, rename_pyterrier

_BLOCK = 1 << 16  # rows handled together: a few arrays of that length stay in the processor's cache
_BITS = 18  # a table of 2^18 bytes stays there too, and passes about 1 in 100 unjudged rows


@dataclass(frozen=True)
class Judgements:
    """The qrels as arrays over judgements, sorted by query (its position) and document (its code).

    `highest` is the highest relevance of the collection. `groups` has the query of each group, shape (n_groups,), and
    the group and the judgement of each member, both of shape (n_members,).
    """

    query: np.ndarray
    doc: np.ndarray
    relevance: np.ndarray
    query_ids: pd.Index
    doc_ids: pd.Index
    highest: int
    groups: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    @classmethod
    def of(cls, qrels: pd.DataFrame) -> Judgements:
        """Return the judgements in a table; MirblabError for missing columns, repeats and broken grades."""
        qrels = rename_pyterrier(qrels)
        missing = [name for name in ("query_id", "doc_id", "relevance") if name not in qrels.columns]
        if missing:
            columns = ", ".join(map(str, qrels.columns)) or "none"
            raise MirblabError(f"qrels have query_id, doc_id, relevance; missing {', '.join(missing)}; found {columns}")
        queries, docs = categorical(qrels.query_id), categorical(qrels.doc_id)
        query, doc, relevance = queries.codes, docs.codes, _whole_numbers(qrels.relevance)
        keys = query.astype(np.int64) * len(docs.categories) + doc
        if (keys[1:] <= keys[:-1]).any():
            order = np.argsort(keys, kind="stable")
            query, doc, relevance, keys = query[order], doc[order], relevance[order], keys[order]
            _refuse_repeats(keys, queries.categories[query], docs.categories[doc])
        bounds = query_bounds(query)
        position = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        highest = int(relevance.max(initial=1))
        return cls(position, doc, relevance, queries.categories[query[bounds[:-1]]], docs.categories, highest)

    def with_groups(self, table: pd.DataFrame) -> Judgements:
        """Return the same with the groups of a *table* query_id, group, doc_id, all of whose documents are judged."""
        keys = self.query.astype(np.int64) * len(self.doc_ids) + self.doc
        query = self.query_ids.get_indexer(pd.Index(table.query_id.astype("str")))
        doc = self.doc_ids.get_indexer(pd.Index(table.doc_id.astype("str")))
        here = np.flatnonzero(query >= 0)  # a sample of queries has the groups of all
        group, names = pd.factorize(pd.MultiIndex.from_arrays([query[here], table.group.to_numpy()[here]]))
        member = np.searchsorted(keys, query[here] * len(self.doc_ids) + doc[here])
        return replace(self, groups=(names.get_level_values(0).to_numpy(), group, member))

    def docs_in(self, doc_ids: pd.Index) -> np.ndarray:
        """Return the position of each judgement's document in *doc_ids*, or -1; only ids that occur are looked up."""
        if self.doc_ids is doc_ids or self.doc_ids.equals(doc_ids):
            return self.doc
        occurs = np.zeros(len(self.doc_ids), dtype=bool)
        occurs[self.doc] = True
        position = np.full(len(self.doc_ids), -1)
        position[occurs] = find_positions(self.doc_ids[occurs], doc_ids)
        return position[self.doc]

    def count(self, chosen: np.ndarray) -> np.ndarray:
        """Return how many of the *chosen* judgements (a mask) each query has, shape (n_queries,)."""
        return np.bincount(self.query[chosen], minlength=len(self.query_ids))


@dataclass(frozen=True)
class JudgedRanks:
    """The judged documents that a run returned, by query and rank, and how many documents it returned in all."""

    judgements: Judgements
    relevant_from: int
    query: np.ndarray
    rank: np.ndarray
    relevance: np.ndarray
    judgement: np.ndarray
    returned: np.ndarray
    unfound_rank: int
    n_not_judged: int

    @classmethod
    def of(cls, run: pd.DataFrame, judgements: Judgements, relevant_from: int, n_docs: int | None) -> JudgedRanks:
        """Join a run with judgements, some queries at a time; *n_docs* is the rank of what it does not return.

        *n_docs* None: one more than the longest ranking.
        """
        sought, n_queries, longest = None, 0, 0
        returned = np.zeros(len(judgements.query_ids), dtype=np.int64)
        ranks, hits = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for (block,) in query_blocks([run]):
            ordered = order_run(block)
            if sought is None or not sought.is_of(ordered):
                sought = _SoughtRows.of(judgements, ordered)
            rows, which = sought.find(ordered)
            lengths, starts = sought.lengths(ordered)
            returned += lengths
            ranks.append(rows - starts[judgements.query[which]] + 1)
            hits.append(which)
            sizes = np.diff(query_bounds(ordered.query_id.cat.codes.to_numpy()))
            n_queries, longest = n_queries + len(sizes), max(longest, int(sizes.max(initial=0)))
        which = np.concatenate(hits)
        unfound, surplus = longest + 1 if n_docs is None else n_docs, n_queries - int((returned > 0).sum())
        query, relevance = judgements.query[which], judgements.relevance[which]
        return cls(
            judgements, relevant_from, query, np.concatenate(ranks), relevance, which, returned, unfound, surplus
        )

    @property
    def is_relevant(self) -> np.ndarray:
        """Return which of the judged documents are relevant, a mask."""
        return self.relevance >= self.relevant_from

    def prime(self) -> JudgedRanks:
        """Return the same without unjudged documents and those of negative relevance, as with trec_eval's `-J`."""
        kept = self.relevance >= 0
        query = self.query[kept]
        rank = place_within_query(query, len(self.returned)) + 1
        returned = np.bincount(query, minlength=len(self.returned))
        relevance, judgement = self.relevance[kept], self.judgement[kept]
        return replace(self, query=query, rank=rank, relevance=relevance, judgement=judgement, returned=returned)

    def perfect(self, depth: int) -> JudgedRanks:
        """Return the same with the first *depth* documents in the best order; deeper documents keep their ranks."""
        head = self.rank <= depth
        best = np.lexsort((np.where(head, -self.relevance, self.rank), ~head, self.query))
        front = place_within_query(self.query, len(self.returned)) + 1
        rank = np.where(head[best], front, self.rank[best])
        return replace(self, rank=rank, relevance=self.relevance[best], judgement=self.judgement[best])

    def sum(self, weights: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Return each query's sum of *weights*, which belong to the *chosen* documents (a mask), best rank first."""
        return np.bincount(self.query[chosen], weights=weights, minlength=len(self.returned))

    def count(self, chosen: np.ndarray) -> np.ndarray:
        """Return how many of the *chosen* documents (a mask) each query has."""
        return np.bincount(self.query[chosen], minlength=len(self.returned))


def place_within_query(query: np.ndarray, n_queries: int) -> np.ndarray:
    """Return for each entry of a sorted array how many entries of the same query come before it."""
    counts = np.bincount(query, minlength=n_queries)
    return np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)


@dataclass(frozen=True)
class _SoughtRows:
    """The judgements of queries and documents that a run's ids have, as numbers of these, to find their rows by.

    Few rows are judged: in blocks that stay in the cache, a table over a hash of (query, document) excludes most others
    before a binary search among the block's judgements.
    """

    query_ids: pd.Index
    doc_ids: pd.Index
    in_run: np.ndarray  # of each judged query, -1 where the run lacks it
    which: np.ndarray
    query: np.ndarray
    doc: np.ndarray

    @classmethod
    def of(cls, judgements: Judgements, run: pd.DataFrame) -> _SoughtRows:
        """Return what is sought in an ordered run and in others with its ids."""
        query_ids, doc_ids = run.query_id.cat.categories, run.doc_id.cat.categories
        in_run = find_positions(judgements.query_ids, query_ids)
        query, doc = in_run[judgements.query], judgements.docs_in(doc_ids)
        which = np.flatnonzero((query >= 0) & (doc >= 0))
        return cls(query_ids, doc_ids, in_run, which, query[which], doc[which])

    def is_of(self, run: pd.DataFrame) -> bool:
        """Return whether an ordered run has the ids that are sought."""
        return run.query_id.cat.categories is self.query_ids and run.doc_id.cat.categories is self.doc_ids

    def lengths(self, run: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return for each judged query how many rows the run has of it, and where they begin (0 without any)."""
        codes = run.query_id.cat.codes.to_numpy()
        bounds = query_bounds(codes)
        starts, lengths = np.zeros((2, len(self.query_ids) + 1), dtype=np.int64)  # the last, 0, is that of -1
        starts[codes[bounds[:-1]]], lengths[codes[bounds[:-1]]] = bounds[:-1], np.diff(bounds)
        return lengths[self.in_run], starts[self.in_run]

    def find(self, run: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of the run that are judged, and the judgement of each."""
        queries, docs = run.query_id.cat.codes.to_numpy(), run.doc_id.cat.codes.to_numpy()
        keys = (self.query << 32) | self.doc
        hashes = _hash(self.query.astype(np.uint32), self.doc.astype(np.uint32))
        table = np.zeros(1 << _BITS, dtype=bool)
        rows, hits = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for begin in range(0, len(queries), _BLOCK):
            block = queries[begin : begin + _BLOCK]
            first, last = np.searchsorted(self.query, [block[0], int(block[-1]) + 1])
            if first == last:
                continue
            table[hashes[first:last]] = True
            near = np.flatnonzero(table[_hash(block.astype(np.uint32), docs[begin : begin + _BLOCK].astype(np.uint32))])
            table[hashes[first:last]] = False
            near_keys = (block[near].astype(np.int64) << 32) | docs[begin + near]
            index = np.searchsorted(keys[first:last], near_keys)
            index[index == last - first] = 0
            same = keys[first:last][index] == near_keys
            rows.append(near[same] + begin)
            hits.append(self.which[index[same] + first])
        return np.concatenate(rows), np.concatenate(hits)


def _hash(query: np.ndarray, doc: np.ndarray) -> np.ndarray:
    """Return `_BITS` well mixed bits of pairs of 32-bit numbers, by multiplication with odd constants."""
    mixed = doc * np.uint32(0x9E3779B1)
    mixed += query * np.uint32(0x85EBCA6B)
    mixed >>= np.uint32(32 - _BITS)
    return mixed


def _whole_numbers(relevance: pd.Series) -> np.ndarray:
    try:
        numbers = relevance.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise MirblabError(f"relevance must be whole numbers; found {relevance.dtype}: {error}") from error
    bad = np.flatnonzero(~(np.abs(numbers) < 2**31) | (numbers != np.round(numbers)))
    if len(bad):
        such = counted(len(bad), "such judgement")
        raise MirblabError(f"relevance must be whole numbers; found {numbers[bad[0]]} ({such})")
    return numbers.astype(np.int64)


def _refuse_repeats(keys: np.ndarray, query_ids: pd.Index, doc_ids: pd.Index) -> None:
    same = np.flatnonzero(keys[1:] == keys[:-1])
    if len(same):
        pair = f"query '{query_ids[same[0]]}', document '{doc_ids[same[0]]}'"
        pairs = counted(len(same), "pair")
        raise MirblabError(f"the qrels judge {pairs} again, the first {pair}; keep one judgement of each")
