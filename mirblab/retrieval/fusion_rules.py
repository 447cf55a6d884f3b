"""fusion_rules: rules that make one run of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, check_known, check_positive, unknown
from mirblab.data import runs
from mirblab.data.ranking import query_bounds, sort_rows

_ROWS = 1 << 17  # of all parts, handled together: what is needed of them stays in the processor's cache

Vote = Callable[["QueryBlock"], np.ndarray]
Total = Callable[["QueryBlock", np.ndarray], np.ndarray]


@dataclass(frozen=True)
class QueryBlock:
    """The rows of a few queries in all parts, and their (query, document) pairs; the first query is `begin`.

    Rows are in the order of the parts, best first within each query: `part`, `row_query` (position among all queries),
    `rank`, `score`, `length` (documents that the part returns for the query). Pairs are sorted by `query` and `doc`.
    `order` groups the rows by pair, in the order of the parts; `starts` is where each pair's rows begin there.
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
        """Return the position of each pair's query among all queries."""
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
        """Return for each row the number of different documents of its query in all parts."""
        return np.bincount(self.row_query[self.first] - self.begin)[self.row_query - self.begin]

    @cached_property
    def n_rows(self) -> np.ndarray:
        """Return for each row the number of rows of its query in all parts."""
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
        """Return the difference of each row's score to the worst score of its query and part."""
        best, scores = np.flatnonzero(self.rank == 1), self.score.astype(np.float64)
        lengths = self.length[best]
        return scores - np.repeat(scores[best + lengths - 1], lengths)

    def sum(self, votes: np.ndarray) -> np.ndarray:
        """Return the sum over each pair's rows."""
        return np.add.reduceat(votes[self.order], self.starts) if len(votes) else np.empty(0)

    def matrix(self, votes: np.ndarray) -> np.ndarray:
        """Return the votes as (n_pairs, n_parts), 0 where a part does not return a document."""
        pair = np.repeat(np.arange(len(self.starts)), self.n_votes)
        matrix = np.zeros((len(self.starts), self.n_parts))
        matrix[pair, self.part[self.order]] = votes[self.order]
        return matrix


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
        """Return how scores are scaled: by each list's range ("query"), or by the part's mean range ("mean")."""
        if span == "query":
            return lambda block: block.scaled
        if span != "mean":
            raise unknown("span of scores", span, ("query", "mean"))
        mean = np.array([_mean_span(part.score, bounds) for part, bounds in zip(self.parts, self.bounds, strict=True)])
        return lambda block: block.above / mean[block.part]

    def _block(self, first: int, last: int) -> QueryBlock:
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
        """Return the fused run: *vote* gives a number per row, *total* one per pair; *notes* become attrs."""
        check_positive(depth=1 if depth is None else depth)
        fused = [(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))]
        for block in self.blocks():
            scores = total(block, vote(block)).astype(np.float32)
            queries, docs, scores = sort_rows(block.query.astype(np.int32), block.doc.astype(np.int32), scores)
            if depth is not None:
                bounds = query_bounds(queries)
                kept = np.arange(len(queries)) - np.repeat(bounds[:-1], np.diff(bounds)) < depth
                queries, docs, scores = queries[kept], docs[kept], scores[kept]
            fused.append((queries, docs, scores))
        queries, docs, scores = (np.concatenate(arrays) for arrays in zip(*fused, strict=True))
        noted = [part.attrs for part in self.parts if "note" in part.attrs]
        if noted:
            notes["note"] = "; ".join(f"{attrs.get('system', 'run')}: {attrs['note']}" for attrs in noted)
        return runs.from_positions(
            queries, docs, scores, self.query_ids, self.doc_ids, self.system, self.collection, **notes
        )


def _mean_span(scores: pd.Series, bounds: np.ndarray) -> float:
    begins, ends = (side[np.diff(bounds) > 0] for side in (bounds[:-1], bounds[1:]))
    values = scores.to_numpy(np.float64)
    return float((values[begins] - values[ends - 1]).mean()) or 1.0 if len(begins) else 1.0


def _group_pairs(queries: np.ndarray, docs: np.ndarray, n_docs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the permutation that puts equal pairs together, and where each begins; packed integers sort fastest."""
    doc_bits, row_bits = max(n_docs, 1).bit_length(), max(len(docs), 1).bit_length()
    keys = ((queries.astype(np.int64) << doc_bits | docs) << row_bits) | np.arange(len(docs))
    keys.sort()
    order = keys & ((1 << row_bits) - 1)
    pairs = keys >> row_bits
    starts = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1])) if len(pairs) else np.empty(0, np.int64)
    return order, starts


def _query_bounds(queries: np.ndarray, n_queries: int) -> np.ndarray:
    counts = np.bincount(queries, minlength=n_queries)
    return np.concatenate([[0], np.cumsum(counts)])


def _shared_ids(columns: Sequence[pd.Series]) -> tuple[pd.Index, list[np.ndarray]]:
    categories = [column.cat.categories for column in columns]
    codes = [column.cat.codes.to_numpy() for column in columns]
    if all(ids is categories[0] or ids.equals(categories[0]) for ids in categories[1:]):
        return categories[0], codes
    shared = reduce(pd.Index.union, categories)
    return shared, [shared.get_indexer(ids)[positions] for ids, positions in zip(categories, codes, strict=True)]


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

    A document that a part does not return counts 0 there; where all scores of a query are equal, each counts 1. With
    *span* "mean" a part's scores, minus the worst of their query, are divided by the mean over its queries of best
    minus worst, so that small differences of scores stay small. *depth* cuts the result (None: all documents).
    MirblabError unless there is one weight per part.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["b", "a"], "score": [0.2, 0.1]})
    >>> [f"{score:.2f}" for score in linear([one, two], [0.3, 0.7]).score]
    ['0.70', '0.30']
    """
    checked, sides = _check_weights(parts, weights), AlignedRuns.of(parts)
    scaled = sides.scale(span)
    return sides.merge(lambda block: checked[block.part] * scaled(block), QueryBlock.sum, depth)


def weighted_sum(parts: Sequence[pd.DataFrame], weights: Sequence[float], depth: int | None = None) -> pd.DataFrame:
    """Return the weighted sum of the scores without scaling, for parts whose scores have the same unit.

    A document that a part does not return counts 0 there. *depth* cuts the result (None: all documents). MirblabError
    unless there is one weight per part.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> weighted_sum([one, one], [1, 2]).score.tolist()
    [27.0, 3.0]
    """
    checked = _check_weights(parts, weights)
    return AlignedRuns.of(parts).merge(
        lambda block: checked[block.part] * block.score.astype(np.float64), QueryBlock.sum, depth
    )


def _check_weights(parts: Sequence[pd.DataFrame], weights: Sequence[float]) -> np.ndarray:
    checked = np.asarray(weights, dtype=np.float64)
    if len(checked) != len(parts):
        raise MirblabError(f"one weight per run is needed; found {len(parts)} runs and {len(checked)} weights")
    if not np.isfinite(checked).all() or (checked < 0).any():
        raise MirblabError(f"weights are numbers from 0 up; found {', '.join(map(str, weights))}")
    return checked


def borda(parts: Sequence[pd.DataFrame], depth: int | None = None) -> pd.DataFrame:
    """Return the Borda fusion: of c documents that a query has in all parts, rank r earns c - r + 1 points.

    Each of the c - n documents that a part of n documents does not return earns an equal share of the points that are
    left, (c - n + 1) / 2. Aslam and Montague, SIGIR 2001. polyfuse gives (N - r + 1) / N, N the rows of the whole run,
    and 0 to what is missing, so that the number of parts that return a document decides almost alone.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b", "c"], "score": [3.0, 2.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["d"], "score": [1.0]})
    >>> dict(zip(*borda([one, two])[["doc_id", "score"]].to_numpy().T))
    {'a': 6.0, 'd': 5.0, 'b': 5.0, 'c': 4.0}
    """

    def points(block: QueryBlock) -> np.ndarray:  # minus the points of the documents that the part does not return
        return block.pool - block.rank + 1.0 - (block.pool - block.length + 1.0) / 2

    def total(block: QueryBlock, votes: np.ndarray) -> np.ndarray:
        # The sum over p parts of (c - n + 1) / 2 is (p * (c + 1) - the query's rows) / 2.
        return block.sum(votes) + (block.n_parts * (block.pool + 1.0) - block.n_rows)[block.first] / 2

    return AlignedRuns.of(parts).merge(points, total, depth)


def isr(parts: Sequence[pd.DataFrame], depth: int | None = None) -> pd.DataFrame:
    """Return the inverse square rank fusion (Mourão et al., CBMI 2014): n * (sum of 1 / rank²) of n ranks.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> isr([one, one]).score.tolist()
    [4.0, 1.0]
    """
    return AlignedRuns.of(parts).merge(_inverse_squares, lambda block, votes: block.n_votes * block.sum(votes), depth)


def log_isr(parts: Sequence[pd.DataFrame], sigma: float = 1.0, depth: int | None = None) -> pd.DataFrame:
    """Return the logarithmic inverse square rank fusion: ln(n + *sigma*) * (sum of 1 / rank²) of n ranks.

    Mourão, Martins and Magalhães have *sigma* 0 (CBMI 2014), with which a document of a single part scores 0, and 0.01
    (Computerized Medical Imaging and Graphics 39, 2015). polyfuse has 1, as here.

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
    """Return CombSUM's score times the number of parts that return the document: CombMNZ (Fox and Shaw, 1993).

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> comb_mnz([one, one]).score.tolist()
    [4.0, 0.0]
    """
    return AlignedRuns.of(parts).merge(_scaled, lambda block, votes: block.n_votes * block.sum(votes), depth)


def _scaled(block: QueryBlock) -> np.ndarray:
    return block.scaled


def contributions(
    fused: pd.DataFrame, parts: Sequence[pd.DataFrame], query_id: str, depth: int = 10, qrels: Any = None
) -> pd.DataFrame:
    """Return the ranks of a fusion's first *depth* documents in its parts: rank, doc_id, a column per part.

    A part's column has its system's name and ranks from 1, missing where the part does not return the document. With
    *qrels*, a Collection or a table, `relevance` follows, missing where unjudged. MirblabError for a query that the
    fusion lacks. Figure 3 of Zhong et al. 2022.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["b", "c"], "score": [2.0, 1.0]})
    >>> two.attrs["system"] = "dense"
    >>> contributions(two, [one, two], "q")
       rank doc_id   run  dense
    0     1      b     2      1
    1     2      c  <NA>      2
    """
    fused = runs.order_run(fused)
    ranks = _query_ranks(runs.cut_run(fused, depth), query_id)
    if not len(ranks):
        some = ", ".join(map(str, fused.query_id.unique()[:3])) or "none"
        raise MirblabError(f"the fused run has no query '{query_id}'; found {some} and others")
    table = pd.DataFrame({"rank": ranks.to_numpy(), "doc_id": ranks.index.astype("str")})
    for name, part in zip(part_column_names(parts), parts, strict=True):
        # The ranks of a run of PyTerrier begin at 0.
        is_ranked = "rank" in part and runs.rename_pyterrier(part) is part
        ranks = _query_ranks(part if is_ranked else runs.order_run(part), query_id)
        table[name] = ranks.reindex(table.doc_id).astype("Int64").array
    if qrels is not None:
        judged = runs.rename_pyterrier(qrels) if isinstance(qrels, pd.DataFrame) else qrels.qrels
        judged = judged[(judged.query_id.astype("str") == query_id).to_numpy()]
        relevance = pd.Series(judged.relevance.to_numpy(), judged.doc_id.astype("str"))
        table["relevance"] = relevance.reindex(table.doc_id).astype("Int64").array
    return table


def part_column_names(parts: Sequence[pd.DataFrame]) -> list[str]:
    """Return the parts' systems as names of columns; a system that occurs twice gets the number of its part."""
    names = [str(part.attrs.get("system", "run")) for part in parts]
    return [name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names, 1)]


def biggest_gains(
    values: pd.DataFrame, fused: str, parts: Sequence[str], measure: str, n_queries: int = 5
) -> pd.DataFrame:
    """Return the queries that gain most by fusion over each part: part, query_id, part_value, fused_value, gain.

    At most *n_queries* for each part, only gains above 0, the largest first, equal ones by query_id. *values* are those
    of one collection. MirblabError for a system or a measure that they lack.

    >>> rows = [("bm25", "p", 0.1), ("bm25", "q", 0.5), ("both", "p", 0.5), ("both", "q", 0.4)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(measure="AP", collection="c")
    >>> biggest_gains(values, "both", ["bm25"], "AP")
       part query_id  part_value  fused_value  gain
    0  bm25        p         0.1          0.5   0.4
    """
    selected = values[(values.measure.astype("str") == measure) & (values.query_id.astype("str") != "")]
    if not len(selected):
        raise unknown("measure", measure, values.measure.astype("str").unique())
    if selected.collection.nunique() > 1:
        raise MirblabError(f"one collection at a time, found {', '.join(selected.collection.astype('str').unique())}")
    selected = selected.astype({"system": "str", "query_id": "str"})
    table = selected.pivot(index="query_id", columns="system", values="value")
    check_known("values of system", (fused, *parts), table.columns)
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
    rows = run[(run.query_id == query_id).to_numpy()]
    return pd.Series(rows["rank"].to_numpy(), rows.doc_id.astype("str"))
