"""tuning: the weights of a linear fusion by cross-validation over queries."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mirblab import measures, runs
from mirblab.errors import MirblabError
from mirblab.folds import assign, checked_grid, chosen, described
from mirblab.methods import rrf
from mirblab.progress import progress
from mirblab.provenance import column_names
from mirblab.ranking import edges, sort_rows
from mirblab.voting import Block, Sides, Vote

MIN_QUERIES = 20  # with a relevant document; fewer choose weights by chance
MEASURES = "nDCG',AP',P'@10,Bpref,nDCG@10"
FOLDS = 20  # more of them choose by more queries, and differ less
RESAMPLES = 100
K = 60  # of the reciprocal ranks where there are too few
_ROUNDING = 1e-5  # more than sums of float32 scores are off


def cross_validated(
    parts: Sequence[pd.DataFrame],
    qrels: Any,
    measure: str = MEASURES,
    folds: int = FOLDS,
    grid: Sequence[Sequence[float]] | None = None,
    seed: int = 0,
    depth: int | None = None,
    relevant_from: int | None = None,
    resamples: int = RESAMPLES,
    span: str = "mean",
) -> pd.DataFrame:
    """Return the linear fusion of runs in which each query is scored with weights that did not see it.

    The queries are dealt into *folds*, and each fold gets weights that all the others choose: of *resamples* of
    them, drawn with replacement, each prefers those of *grid* (None: `ratios`) with the best mean *measure*, of
    equal ones the first. Weights are ratios, so the geometric mean of what they prefer is taken (bagging: Breiman,
    Machine Learning 24, 1996; of parts of a whole: Aitchison 1986). Few queries choose badly: as if 50 more had
    preferred it, the part whose own run is best counts 19 times as much as the next one, and this as the one after.
    *measure* is one, or several with commas between, whose mean counts: each sees something else of few judgements.
    *span* is `linear`'s. *depth* cuts the result, which the measures see whole. *qrels* and *relevant_from* are
    those of `measures.evaluate`.

    With *resamples* 0 the queries choose once, and that stands: with `folds=5, resamples=0, span="query"` and the
    *grid* [0.1, 0.9], ..., [0.9, 0.1] that is the choice of Zhong et al. 2022, section 3.4.

    `attrs["method"]` is "cv", and `attrs["folds"]` has what `fold_table` shows. With fewer than MIN_QUERIES queries,
    or fewer than *folds*, that have a relevant document, the result is the reciprocal rank fusion (k = 60),
    `attrs["method"]` is "rrf" and `attrs["why"]` says so.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> qrels = pd.DataFrame({"query_id": ["q"], "doc_id": ["a"], "relevance": [1]})
    >>> cross_validated([one, one], qrels).attrs["why"]
    'queries with a relevant document: 1; needed to choose weights: 20'
    """
    if resamples < 0:
        raise MirblabError(f"resamples are counted from 0, which takes the queries as they are; found {resamples}")
    sides, weights = Sides.of(parts), checked_grid(grid, len(parts))
    judged = _Judged(qrels, [measures.parse(name) for name in measure.split(",")], relevant_from)
    ids, relevant = judged.queries(parts[0])
    notes = {"parts": column_names(parts), "measure": measure}
    needed = max(MIN_QUERIES, folds)
    if len(relevant) < needed:
        why = f"queries with a relevant document: {len(relevant)}; needed to choose weights: {needed}"
        run = rrf(parts, K, depth)
        run.attrs |= notes | {"method": "rrf", "why": why}
        return run
    # Queries with and without a relevant document are dealt apart, so that every fold has its share of both.
    others = sides.query_ids.union(ids).difference(relevant)
    fold = pd.concat([pd.Series(assign(known, folds, seed), known) for known in (relevant, others)])
    scaled = sides.scale(span)
    pairs = _Pairs.of(sides, scaled, judged, weights)
    here = fold[ids].to_numpy()
    alone = np.stack([judged.values(part) for part in parts], axis=1)
    found = chosen(pairs.values(weights, judged), alone, here, weights, resamples, seed)
    own = found[fold[sides.query_ids].to_numpy()]
    rows = described(pairs.values(found, judged), here, found)
    notes |= {"method": "cv", "seed": seed, "resamples": resamples, "span": span, "folds": rows}
    return sides.merge(lambda block: own[block.row_query, block.part] * scaled(block), Block.sum, depth, **notes)


@dataclass(frozen=True)
class _Judged:
    """What weights are chosen by: judgements, measures whose mean counts, and from which relevance on."""

    qrels: Any
    measures: list[measures.Measure]
    relevant_from: int | None

    def queries(self, run: pd.DataFrame) -> tuple[pd.Index, pd.Index]:
        """Return the judged queries, and those of them that have a relevant document; both sorted."""
        values = self._evaluate(run, self.measures[:1])
        ids = pd.Index(values.query_id.astype("str"))
        return ids, ids.difference(values.attrs["without_relevant"])

    def values(self, run: pd.DataFrame) -> np.ndarray:
        """Return the mean of the measures for each judged query, in the order of their ids."""
        return self._evaluate(run, self.measures).value.to_numpy().reshape(len(self.measures), -1).mean(axis=0)

    def _evaluate(self, run: pd.DataFrame, asked: list[measures.Measure]) -> pd.DataFrame:
        """Return the values, without warnings: the same queries would be named once for every weight."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", measures.QueryWarning)
            return measures.evaluate(run, self.qrels, asked, self.relevant_from)

    def keys(self, sides: Sides) -> np.ndarray:
        """Return the judged pairs that a part may have returned, as sorted numbers."""
        table = self.qrels if isinstance(self.qrels, pd.DataFrame) else self.qrels.qrels
        queries = sides.query_ids.get_indexer(table.query_id.astype("str"))
        docs = sides.doc_ids.get_indexer(table.doc_id.astype("str"))
        known = (queries >= 0) & (docs >= 0)
        return np.unique(queries[known] * len(sides.doc_ids) + docs[known])

    def depth(self) -> int | None:
        """Return how many of the first documents are seen, judged or not; None for all."""
        seen = [each.k for each in self.measures if not each.prime and each.name != "Bpref"]
        return None if None in seen else max(seen, default=0)


@dataclass(frozen=True)
class _Pairs:
    """The (query, document) pairs that tell the fusions with some weights apart, and their scaled scores."""

    sides: Sides
    queries: np.ndarray
    docs: np.ndarray
    scores: np.ndarray  # (n_pairs, n_parts)

    @classmethod
    def of(cls, sides: Sides, scaled: Vote, judged: _Judged, weights: np.ndarray) -> _Pairs:
        """Return the judged pairs and those that any of the *weights* puts as high as a measure looks."""
        keys, depth = judged.keys(sides), judged.depth()
        found = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, len(sides.parts))))]
        with progress(len(sides.query_ids), f"{sides.system}: what weights could put first", "query") as bar:
            for block in sides.blocks():
                queries, docs, scores = block.query, block.doc.astype(np.int64), block.matrix(scaled(block))
                kept = np.full(len(queries), depth is None)
                kept[_places(queries * len(sides.doc_ids) + docs, keys)] = True
                if depth and len(queries):
                    kept |= _leading(queries, docs, scores, weights, depth)
                found.append((queries[kept], docs[kept], scores[kept]))
                bar.update(len(edges(queries)) - 1)
        queries, docs, scores = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return cls(sides, queries, docs, scores)

    def values(self, weights: np.ndarray, judged: _Judged) -> np.ndarray:
        """Return what each judged query gets from each of the *weights*, (n_queries, n_weights)."""
        used, docs = np.unique(self.docs, return_inverse=True)
        names, columns = (self.sides.query_ids, self.sides.doc_ids[used]), []
        with progress(len(weights), f"{self.sides.system}: weights tried", "weight") as bar:
            for row in weights:
                total = _summed(self.scores, row)
                run = runs.from_positions(self.queries, docs, total, *names, "", self.sides.collection)
                columns.append(judged.values(run))
                bar.update(1)
        return np.stack(columns, axis=1)


def _summed(scores: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Return the weighted sum of columns as float32, one after the other, as they are summed in the end."""
    pairs = zip(row, scores.T, strict=True)
    return sum((weight * column for weight, column in pairs), np.zeros(len(scores))).astype(np.float32)


def _leading(queries: np.ndarray, docs: np.ndarray, scores: np.ndarray, weights: np.ndarray, depth: int) -> np.ndarray:
    """Return which pairs any of the *weights* puts among the first *depth* of their query, or level with the last.

    A weighted mean lies between a pair's least and greatest score: one whose greatest is below the least of *depth*
    others is never among them.
    """
    least, greatest = (side(scores, axis=1).astype(np.float32) for side in (np.min, np.max))
    near = np.flatnonzero(greatest >= _last(queries, docs, least, depth) - _ROUNDING)
    queries, docs, few, found = queries[near], docs[near], scores[near], np.zeros(len(scores), dtype=bool)
    for row in weights:
        total = _summed(few, row)
        found[near[total >= _last(queries, docs, total, depth)]] = True
    return found


def _last(queries: np.ndarray, docs: np.ndarray, scores: np.ndarray, depth: int) -> np.ndarray:
    """Return for each pair the score at place *depth* of its query, the worst one where there are fewer."""
    bounds = edges(queries)
    ranked = sort_rows(queries.astype(np.int32), docs.astype(np.int32), scores)[2]
    return np.repeat(ranked[np.minimum(bounds[:-1] + depth, bounds[1:]) - 1], np.diff(bounds))


def _places(keys: np.ndarray, few: np.ndarray) -> np.ndarray:
    """Return where sorted *keys* are among *few*, which are sorted, too."""
    near = few[slice(*np.searchsorted(few, [keys[0], keys[-1] + 1]))] if len(keys) else few[:0]
    found = np.searchsorted(keys, near)
    return found[keys[found] == near]
