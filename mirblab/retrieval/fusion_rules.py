"""fusion_rules: rules that make one run of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, unknown
from mirblab.data import runs
from mirblab.data.runs import query_bounds, sort_rows

_ROWS = 1 << 17  # of all parts, handled together: what is needed of them stays in the processor's cache

Vote = Callable[["QueryBlock"], np.ndarray]
Total = Callable[["QueryBlock", np.ndarray], np.ndarray]


@dataclass(frozen=True)
class QueryBlock:
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
class AlignedRuns:
    """Several runs over the same sorted ids: for each part its documents and where each query's rows begin."""

    parts: Sequence[pd.DataFrame]
    query_ids: pd.Index
    doc_ids: pd.Index
    docs: list[np.ndarray]
    bounds: list[np.ndarray]
    system: str
    collection: str

    @classmethod
    def of(cls, parts: Sequence[pd.DataFrame]) -> AlignedRuns:
        """Return the runs side by side; MirblabError for none, and for runs of different collections."""
        if not len(parts):
            raise MirblabError("there is nothing to fuse; give at least one run")
        names = {str(part.attrs.get("collection", "")) for part in parts}
        if len(names) > 1:
            raise MirblabError(f"runs of one collection can be fused, found {', '.join(sorted(names))}")
        ranked = [runs.order_run(part) for part in parts]
        query_ids, queries = _shared_ids([part.query_id for part in ranked])
        doc_ids, docs = _shared_ids([part.doc_id for part in ranked])
        bounds = [_query_bounds(codes, len(query_ids)) for codes in queries]
        system = "+".join(str(part.attrs.get("system", "run")) for part in parts)
        return cls(ranked, query_ids, doc_ids, docs, bounds, system, names.pop())

    def blocks(self) -> Iterator[QueryBlock]:
        """Yield blocks of whole queries in turn, about `_ROWS` rows each."""
        n_rows = np.sum([np.diff(bounds) for bounds in self.bounds], axis=0)
        block = np.cumsum(n_rows) // _ROWS
        cuts = query_bounds(block)
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

    def _block(self, first: int, last: int) -> QueryBlock:
        """Return the block of the queries at *first* to *last* (not included)."""
        slices = [slice(bounds[first], bounds[last]) for bounds in self.bounds]
        lengths = np.concatenate([np.diff(bounds[first : last + 1]) for bounds in self.bounds])
        queries = np.repeat(np.tile(np.arange(last - first), len(slices)), lengths)
        docs = np.concatenate([docs[rows] for docs, rows in zip(self.docs, slices, strict=True)])
        order, starts = _group_pairs(queries, docs, len(self.doc_ids))
        return QueryBlock(
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
                bounds = query_bounds(queries)
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


def _group_pairs(queries: np.ndarray, docs: np.ndarray, n_docs: int) -> tuple[np.ndarray, np.ndarray]:
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


def _query_bounds(queries: np.ndarray, n_queries: int) -> np.ndarray:
    """Return where each query's rows begin in sorted codes, and the end: shape (n_queries + 1,)."""
    found, lengths = query_bounds(queries), np.zeros(n_queries + 1, dtype=np.int64)
    lengths[queries[found[:-1]].astype(np.int64) + 1] = np.diff(found)
    return np.cumsum(lengths)


def _shared_ids(columns: Sequence[pd.Series]) -> tuple[pd.Index, list[np.ndarray]]:
    """Return sorted ids that cover all columns, and each column's codes in them."""
    found = [column.cat.categories for column in columns]
    codes = [column.cat.codes.to_numpy() for column in columns]
    if all(ids is found[0] or ids.equals(found[0]) for ids in found[1:]):
        return found[0], codes
    ids = found[0]
    for more in found[1:]:
        ids = ids.union(more)
    return ids, [ids.get_indexer(own)[places] for own, places in zip(found, codes, strict=True)]


def rrf(parts: Sequence[pd.DataFrame], k: float = 60, depth: int | None = None) -> pd.DataFrame:
    """Return the reciprocal rank fusion of runs: a document scores the sum of 1 / (k + rank) over the parts.

    A part that does not return a document adds nothing. *depth* cuts the result (None: all documents).
    Cormack, Clarke and Büttcher, SIGIR 2009.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["b", "c"], "score": [2.0, 1.0]})
    >>> rrf([one, two]).doc_id.tolist()
    ['b', 'a', 'c']
    """
    if k < 0:
        raise MirblabError(f"k must not be negative, found {k}; 60 is usual")
    return AlignedRuns.of(parts).merge(lambda block: 1.0 / (k + block.rank.astype(np.float64)), QueryBlock.sum, depth)


def linear(
    parts: Sequence[pd.DataFrame], weights: Sequence[float], depth: int | None = None, span: str = "query"
) -> pd.DataFrame:
    """Return the weighted sum of scores that are scaled to 0..1 within each query and part (min-max).

    A document that a part does not return counts 0 there. A query whose scores are all equal counts 1, so the only
    document of a part counts as much as the best of many. With *span* "mean" a part's scores above the worst of
    their query are divided by what best and worst are apart in the mean over its queries: a query for which a part
    finds nothing better than the rest is not stretched. *depth* cuts the result (None: all documents). Raises
    MirblabError unless there is one weight per part.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["b", "a"], "score": [0.2, 0.1]})
    >>> [f"{score:.2f}" for score in linear([one, two], [0.3, 0.7]).score]
    ['0.70', '0.30']
    """
    found, sides = _check_weights(parts, weights), AlignedRuns.of(parts)
    scaled = sides.scale(span)
    return sides.merge(lambda block: found[block.part] * scaled(block), QueryBlock.sum, depth)


def weighted_sum(parts: Sequence[pd.DataFrame], weights: Sequence[float], depth: int | None = None) -> pd.DataFrame:
    """Return the weighted sum of the scores as they are, for parts that count the same thing, as words and formulas.

    A document that a part does not return counts 0 there. *depth* cuts the result (None: all documents). Raises
    MirblabError unless there is one weight per part.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["b", "a"], "score": [5.0, 0.5]})
    >>> weighted_sum([one, two], [1, 2]).score.tolist()
    [11.0, 10.0]
    """
    found = _check_weights(parts, weights)
    return AlignedRuns.of(parts).merge(
        lambda block: found[block.part] * block.score.astype(np.float64), QueryBlock.sum, depth
    )


def _check_weights(parts: Sequence[pd.DataFrame], weights: Sequence[float]) -> np.ndarray:
    """Return the weights as an array; MirblabError unless there is one from 0 up for each part."""
    found = np.asarray(weights, dtype=np.float64)
    if len(found) != len(parts):
        raise MirblabError(f"one weight per run is needed; found {len(parts)} runs and {len(found)} weights")
    if not np.isfinite(found).all() or (found < 0).any():
        raise MirblabError(f"weights are numbers from 0 up; found {', '.join(map(str, weights))}")
    return found


def borda(parts: Sequence[pd.DataFrame], depth: int | None = None) -> pd.DataFrame:
    """Return the Borda fusion: of c documents that a query has in all parts, rank r earns c - r + 1 points.

    The points that a part of n documents leaves over are shared by the c - n that it does not return, so each of
    them earns (c - n + 1) / 2. Aslam and Montague, SIGIR 2001. polyfuse gives (N - r + 1) / N, N the rows of the
    whole run, and 0 to what is missing: then the number of parts that return a document decides almost alone.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b", "c"], "score": [3.0, 2.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["d"], "score": [1.0]})
    >>> dict(zip(*borda([one, two])[["doc_id", "score"]].to_numpy().T))
    {'a': 6.0, 'd': 5.0, 'b': 5.0, 'c': 4.0}
    """
    return AlignedRuns.of(parts).merge(_borda_points, _borda_total, depth)


def _borda_points(block: QueryBlock) -> np.ndarray:
    """Return what a rank earns above what the part's missing documents earn."""
    return block.pool - block.rank + 1.0 - (block.pool - block.length + 1.0) / 2


def _borda_total(block: QueryBlock, points: np.ndarray) -> np.ndarray:
    """Return the points of each pair, those of a missing document in every part included.

    The sum over parts of (c - n + 1) / 2 is, with p parts, (p * (c + 1) - the query's rows) / 2.
    """
    return block.sum(points) + (block.n_parts * (block.pool + 1.0) - block.n_rows)[block.first] / 2


def isr(parts: Sequence[pd.DataFrame], depth: int | None = None) -> pd.DataFrame:
    """Return the inverse square rank fusion: n * (sum of 1 / rank²), n the number of parts that return a document.

    Mourão, Martins and Magalhães, CBMI 2014. *depth* cuts the result (None: all documents).

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["c", "b"], "score": [2.0, 1.0]})
    >>> isr([one, two]).score.tolist()
    [1.0, 1.0, 1.0]
    """
    return AlignedRuns.of(parts).merge(_inverse_squares, lambda block, votes: block.n_votes * block.sum(votes), depth)


def log_isr(parts: Sequence[pd.DataFrame], sigma: float = 1.0, depth: int | None = None) -> pd.DataFrame:
    """Return the logarithmic inverse square rank fusion: ln(n + *sigma*) * (sum of 1 / rank²), n as for `isr`.

    Mourão, Martins and Magalhães, CBMI 2014, have *sigma* 0, with which all documents of one part alone score 0 and
    stand by their ids; in 2015 (Computerized Medical Imaging and Graphics 39) they have 0.01. polyfuse has 1, as here.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> [round(score, 4) for score in log_isr([one, one]).score.tolist()]
    [2.1972, 0.5493]
    """
    if not sigma >= 0:
        raise MirblabError(f"sigma is added to a number of runs and is at least 0; found {sigma}; 1 is usual")
    return AlignedRuns.of(parts).merge(
        _inverse_squares, lambda block, votes: np.log(block.n_votes + sigma) * block.sum(votes), depth
    )


def _inverse_squares(block: QueryBlock) -> np.ndarray:
    return 1.0 / block.rank.astype(np.float64) ** 2


def comb_sum(parts: Sequence[pd.DataFrame], depth: int | None = None) -> pd.DataFrame:
    """Return the sum of scores that are scaled to 0..1 within each query and part (min-max): CombSUM.

    Fox and Shaw, TREC-2, 1993. A document that a part does not return counts 0 there; equal scores all count 1.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> comb_sum([one, one]).score.tolist()
    [2.0, 0.0]
    """
    return AlignedRuns.of(parts).merge(_scaled, QueryBlock.sum, depth)


def comb_mnz(parts: Sequence[pd.DataFrame], depth: int | None = None) -> pd.DataFrame:
    """Return CombSUM's score times the number of parts that return the document, whatever its score: CombMNZ.

    Fox and Shaw, TREC-2, 1993. *depth* cuts the result (None: all documents).

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> comb_mnz([one, one]).score.tolist()
    [4.0, 0.0]
    """
    return AlignedRuns.of(parts).merge(_scaled, lambda block, votes: block.n_votes * block.sum(votes), depth)


def comb_anz(parts: Sequence[pd.DataFrame], depth: int | None = None) -> pd.DataFrame:
    """Return CombSUM's score divided by the number of parts that return the document: CombANZ (Fox and Shaw, 1993).

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> comb_anz([one, one]).score.tolist()
    [1.0, 0.0]
    """
    return AlignedRuns.of(parts).merge(_scaled, lambda block, votes: block.sum(votes) / block.n_votes, depth)


def comb_max(parts: Sequence[pd.DataFrame], depth: int | None = None) -> pd.DataFrame:
    """Return the largest of the scaled scores that a document has in any part: CombMAX (Fox and Shaw, 1993).

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> comb_max([one, one]).score.tolist()
    [1.0, 0.0]
    """
    return AlignedRuns.of(parts).merge(_scaled, QueryBlock.max, depth)


def _scaled(block: QueryBlock) -> np.ndarray:
    return block.scaled


def contributions(
    fused: pd.DataFrame, parts: Sequence[pd.DataFrame], query_id: str, depth: int = 10, qrels: Any = None
) -> pd.DataFrame:
    """Return where the first *depth* documents of a fusion stood in its parts: rank, doc_id, a column per part.

    A part's column has its system's name and holds ranks from 1, missing where the part does not return the
    document. With *qrels*, a Collection or a table, `relevance` follows, missing where there is no judgement.
    MirblabError for a query that the fusion lacks. Figure 3 of Zhong et al. 2022.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["b", "c"], "score": [2.0, 1.0]})
    >>> two.attrs["system"] = "dense"
    >>> contributions(two, [one, two], "q")
       rank doc_id   run  dense
    0     1      b     2      1
    1     2      c  <NA>      2
    """
    found = _query_ranks(runs.cut_run(runs.order_run(fused), depth), query_id)
    if not len(found):
        some = ", ".join(map(str, fused.query_id.unique()[:3])) or "none"
        raise MirblabError(f"the fused run has no query '{query_id}'; found {some} and others")
    table = pd.DataFrame({"rank": found.to_numpy(), "doc_id": found.index.astype("str")})
    for name, part in zip(part_column_names(parts), parts, strict=True):
        ranks = _query_ranks(part if "rank" in part else runs.order_run(part), query_id)
        table[name] = ranks.reindex(table.doc_id).astype("Int64").array
    if qrels is not None:
        judged = qrels if isinstance(qrels, pd.DataFrame) else qrels.qrels
        judged = judged[(judged.query_id.astype("str") == query_id).to_numpy()]
        relevance = pd.Series(judged.relevance.to_numpy(), judged.doc_id.astype("str"))
        table["relevance"] = relevance.reindex(table.doc_id).astype("Int64").array
    return table


def part_column_names(parts: Sequence[pd.DataFrame]) -> list[str]:
    """Return the parts' systems as names of columns; those that occur twice get their place behind them."""
    names = [str(part.attrs.get("system", "run")) for part in parts]
    return [name if names.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(names, 1)]


def biggest_gains(
    values: pd.DataFrame, fused: str, parts: Sequence[str], measure: str, n_queries: int = 5
) -> pd.DataFrame:
    """Return the queries that gain most by fusion over each part: part, query_id, part_value, fused_value, gain.

    At most *n_queries* for each part, the largest gain first, equal ones by query_id, and only gains above 0. *values*
    are those of one collection. MirblabError for a system or a measure that they lack.

    >>> rows = [("bm25", "p", 0.1), ("bm25", "q", 0.5), ("both", "p", 0.5), ("both", "q", 0.4)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(measure="AP", collection="c")
    >>> biggest_gains(values, "both", ["bm25"], "AP")
       part query_id  part_value  fused_value  gain
    0  bm25        p         0.1          0.5   0.4
    """
    own = values[(values.measure.astype("str") == measure) & (values.query_id.astype("str") != "")]
    if not len(own):
        raise unknown("measure", measure, values.measure.astype("str").unique())
    if own.collection.nunique() > 1:
        raise MirblabError(f"one collection at a time, found {', '.join(own.collection.astype('str').unique())}")
    table = own.astype({"system": "str", "query_id": "str"}).pivot(index="query_id", columns="system", values="value")
    for name in (fused, *parts):
        if name not in table:
            raise unknown("values of system", name, table.columns)
    rows = []
    for name in parts:
        gain = (table[fused] - table[name]).rename("gain")
        best = gain[gain > 0].sort_values(ascending=False, kind="stable").index[:n_queries]
        chosen = table.loc[best, [name, fused]].set_axis(["part_value", "fused_value"], axis=1).reset_index()
        chosen.insert(0, "part", name)
        chosen["gain"] = chosen.fused_value - chosen.part_value
        rows.append(chosen)
    return pd.concat(rows, ignore_index=True)


def _query_ranks(run: pd.DataFrame, query_id: str) -> pd.Series:
    """Return the ranks of a query's documents, by doc_id."""
    found = run[(run.query_id == query_id).to_numpy()]
    return pd.Series(found["rank"].to_numpy(), found.doc_id.astype("str"))
