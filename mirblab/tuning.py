"""tuning: the weights of a linear fusion by cross-validation over queries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from mirblab import measures, runs
from mirblab.errors import MirblabError
from mirblab.folds import assign, checked_grid, choose
from mirblab.methods import rrf
from mirblab.provenance import column_names
from mirblab.voting import Block, Sides

MIN_QUERIES = 20  # with a relevant document; fewer choose weights by chance
POOL = 10  # judgements; a prime measure of fewer tells little of a whole ranking
K = 60  # of the reciprocal ranks where there are too few


def cross_validated(
    parts: Sequence[pd.DataFrame],
    qrels: Any,
    measure: str = "",
    folds: int = 5,
    grid: Sequence[Sequence[float]] | None = None,
    seed: int = 0,
    depth: int | None = None,
    relevant_from: int | None = None,
    tolerance: float = 0,
) -> pd.DataFrame:
    """Return the linear fusion of runs in which each query is scored with weights that did not see it.

    The queries are dealt into *folds*; the weights of each fold are those of *grid* (None: `simplex`, 0.1 ... 0.9)
    with the best mean *measure* on all the others, of equal ones the first. An empty *measure* is nDCG' where
    queries have POOL judgements on average and most have one of 0, else nDCG@10, since a prime measure is then 1 for
    almost any ranking. *depth* cuts the result; prime measures and Bpref see it whole. *qrels* and *relevant_from*
    are those of `measures.evaluate`. Zhong et al. 2022, section 3.4.

    A *tolerance* above 0 chooses more calmly where judgements are few: not the best weights but those in the middle
    of all that lose at most so many standard errors (of the difference, paired by query) against them.

    `attrs["method"]` is "cv", and `attrs["folds"]` has what `fold_table` shows. With fewer than MIN_QUERIES queries,
    or fewer than *folds*, that have a relevant document, the result is the reciprocal rank fusion (k = 60),
    `attrs["method"]` is "rrf" and `attrs["why"]` says so.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> qrels = pd.DataFrame({"query_id": ["q"], "doc_id": ["a"], "relevance": [1]})
    >>> cross_validated([one, one], qrels).attrs["why"]
    'queries with a relevant document: 1; needed to choose weights: 20'
    """
    if not tolerance >= 0:
        raise MirblabError(f"tolerance counts standard errors and is at least 0; found {tolerance}")
    sides, weights = Sides.of(parts), checked_grid(grid, len(parts))
    measure = measure or _usual(qrels)
    ids, relevant = _asked(parts[0], qrels, measure, relevant_from)
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
    made = _judged_runs(sides, qrels, weights) if _needs_judged_only(measure) else _runs(sides, measure, weights, depth)
    values = np.stack([_evaluate(run, qrels, measure, relevant_from).value.to_numpy() for run in made], axis=1)
    rows, places = choose(values, fold[ids].to_numpy(), weights, folds, tolerance)
    own = weights[places][fold[sides.query_ids].to_numpy()]
    notes |= {"method": "cv", "seed": seed, "folds": rows}
    return sides.merge(lambda block: own[block.row_query, block.part] * block.scaled, Block.sum, depth, **notes)


def _asked(run: pd.DataFrame, qrels: Any, measure: str, relevant_from: int | None) -> tuple[pd.Index, pd.Index]:
    """Return the judged queries, and those of them that have a relevant document; both sorted."""
    values = _evaluate(run, qrels, measure, relevant_from)
    ids = pd.Index(values.query_id.astype("str"))
    return ids, ids.difference(values.attrs["without_relevant"])


def _evaluate(run: pd.DataFrame, qrels: Any, measure: Any, relevant_from: int | None) -> pd.DataFrame:
    """Return the values, without warnings: the same queries would be named once for every weight."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", measures.QueryWarning)
        return measures.evaluate(run, qrels, measure, relevant_from)


def _table(qrels: Any) -> pd.DataFrame:
    return qrels if isinstance(qrels, pd.DataFrame) or not hasattr(qrels, "qrels") else qrels.qrels


def _usual(qrels: Any) -> str:
    """Return the measure to choose weights by: a prime one only where what is judged can tell rankings apart."""
    table = _table(qrels)
    if not hasattr(table, "columns") or not {"query_id", "relevance"} <= set(table.columns):
        return "nDCG'"  # and `evaluate` says what is wrong
    n_queries = table.query_id.nunique()
    against = table.query_id[(table.relevance == 0).to_numpy()].nunique()
    return "nDCG'" if len(table) >= POOL * n_queries and 2 * against > n_queries else "nDCG@10"


def _needs_judged_only(measure: str) -> bool:
    parsed = measures.parse(measure)
    return parsed.prime or parsed.name == "Bpref"


def _runs(sides: Sides, measure: str, weights: np.ndarray, depth: int | None) -> Iterator[pd.DataFrame]:
    """Yield the fused run of each of the weights, as deep as the measure or the result needs it."""
    for row in weights:
        yield sides.merge(partial(_weighted, row), Block.sum, measures.parse(measure).k or depth)


def _weighted(row: np.ndarray, block: Block) -> np.ndarray:
    return row[block.part] * block.scaled


def _judged_runs(sides: Sides, qrels: Any, weights: np.ndarray) -> Iterator[pd.DataFrame]:
    """Yield the judged documents of the fused run of each of the weights: scaled once, summed for each."""
    queries, docs, scores = _matrix(sides, _keys(_table(qrels), sides))
    used, docs = np.unique(docs, return_inverse=True)
    for row in weights:
        # One part after the other, as they are summed in the end.
        total = sum((weight * column for weight, column in zip(row, scores.T, strict=True)), np.zeros(len(scores)))
        yield runs.from_positions(queries, docs, total, sides.query_ids, sides.doc_ids[used], "", sides.collection)


def _keys(table: pd.DataFrame, sides: Sides) -> np.ndarray:
    """Return the judged pairs that a part may have returned, as sorted numbers."""
    queries = sides.query_ids.get_indexer(table.query_id.astype("str"))
    docs = sides.doc_ids.get_indexer(table.doc_id.astype("str"))
    known = (queries >= 0) & (docs >= 0)
    return np.unique(queries[known] * len(sides.doc_ids) + docs[known])


def _matrix(sides: Sides, only: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return query, document and scaled scores (n_pairs, n_parts) of the pairs in *only*."""
    found = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, len(sides.parts))))]
    for block in sides.blocks():
        queries, docs, scores = block.query, block.doc.astype(np.int64), block.matrix(block.scaled)
        kept = _places(queries * len(sides.doc_ids) + docs, only)
        found.append((queries[kept], docs[kept], scores[kept]))
    queries, docs, scores = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return queries, docs, scores


def _places(keys: np.ndarray, few: np.ndarray) -> np.ndarray:
    """Return where sorted *keys* are among *few*, which are sorted, too."""
    near = few[slice(*np.searchsorted(few, [keys[0], keys[-1] + 1]))] if len(keys) else few[:0]
    found = np.searchsorted(keys, near)
    return found[keys[found] == near]
