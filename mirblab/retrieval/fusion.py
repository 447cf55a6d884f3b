"""fusion: fusion of runs by the name of a method, or with cross-validated weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, check_known
from mirblab.core.terminal import progress
from mirblab.data import runs
from mirblab.data.ranking import query_bounds, sort_rows
from mirblab.evaluation.measures import Measure, QueryWarning, evaluate, is_rank, parse_measure
from mirblab.retrieval.fusion_rules import (
    AlignedRuns,
    QueryBlock,
    Vote,
    biggest_gains,
    borda,
    comb_mnz,
    comb_sum,
    contributions,
    isr,
    linear,
    log_isr,
    part_column_names,
    rrf,
    weighted_sum,
)

# Raised by one whenever the runs of this kind change; otherwise tests/retrieval/test_golden_runs.py fails.
RUNS_VERSION = 2

__all__ = [
    "METHODS", "biggest_gains", "borda", "comb_mnz", "comb_sum", "contributions",
    "cross_validated", "fold_table", "fuse", "isr", "linear", "log_isr", "rrf", "weighted_sum",
]  # fmt: skip

LEAD = 19.0  # by the prior weights, the ratio of the weight of a part to that of the next best part
WORTH = 50  # queries with as much influence as the prior; both chosen on nine collections of 20 to 648 queries
LEAST = 0.001  # replaces a weight of 0 in a geometric mean
MIN_QUERIES = 20  # with a relevant document; fewer choose weights by chance
MEASURES = "nDCG',AP',P'@10,Bpref,nDCG@10"
FOLDS = 20  # the more folds, the more queries choose the weights, and the less the weights differ
RESAMPLES = 100
K = 60  # of the reciprocal rank fusion where there are too few queries
_MOST, _FINEST = 300, 10  # weights to choose from, and steps from equal weights to the most unequal
_ROUNDING = 1e-5  # an upper bound of the rounding error of sums of float32 scores


def weight_grid(n_parts: int) -> np.ndarray:
    """Return weights (n_weights, n_parts), the most equal first; their ratios are even steps in the logarithm."""
    if n_parts < 2:
        raise MirblabError(f"weights are for two parts or more; found {n_parts}")
    steps = next(n for n in range(_FINEST, 1, -1) if n == 2 or (n + 1) ** n_parts - n**n_parts <= _MOST)
    powers = np.array([row for row in product(range(steps + 1), repeat=n_parts) if min(row) == 0])
    weights = LEAD ** (2 * powers[np.lexsort((*powers.T, powers.max(axis=1)))] / steps)
    return weights / weights.sum(axis=1, keepdims=True)


def assign_folds(query_ids: Sequence[str] | pd.Index, n_folds: int, seed: int = 0) -> np.ndarray:
    """Return the fold of each query, from 0, drawn by *seed*, of equal size, whatever the order of the queries."""
    if n_folds < 2:
        raise MirblabError(f"cross-validation needs two folds or more, found {n_folds}")
    order = np.argsort(np.array(query_ids, dtype=object), kind="stable")
    folds = np.empty(len(order), dtype=np.int64)
    folds[order] = np.random.default_rng(seed).permutation(len(order)) % n_folds
    return folds


def fold_table(run: pd.DataFrame) -> pd.DataFrame:
    """Return the weights that `cross_validated` chose: fold, queries, a column of weights per part, trained, held_out.

    *queries* counts the judged queries of the fold; *trained* is the mean value on the other folds, which chose the
    weights, *held_out* that on the fold itself. There are no rows when `run.attrs["why"]` says why the run is a
    reciprocal rank fusion.

    >>> run = pd.DataFrame()
    >>> row = {"fold": 1, "queries": 9, "weights": [0.3, 0.7], "trained": 0.5, "held_out": 0.4}
    >>> run.attrs = {"method": "cv", "parts": ["bm25", "minilm"], "folds": [row]}
    >>> fold_table(run)
       fold  queries  bm25  minilm  trained  held_out
    0     1        9   0.3     0.7      0.5       0.4
    """
    if "parts" not in run.attrs:
        raise MirblabError("this run has no cross-validated weights; make it with fusion.cross_validated()")
    names = list(run.attrs["parts"])
    rows = [
        {"fold": row["fold"], "queries": row["queries"], **dict(zip(names, row["weights"], strict=True)),
         "trained": row["trained"], "held_out": row["held_out"]}
        for row in run.attrs.get("folds", [])
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["fold", "queries", *names, "trained", "held_out"])


def check_grid(grid: Sequence[Sequence[float]] | None, n_parts: int) -> np.ndarray:
    """Return the weights to choose from, (n_weights, n_parts); MirblabError for a grid of another shape or sign."""
    if grid is None:
        return weight_grid(n_parts)
    weights = np.asarray(grid, dtype=np.float64)
    if weights.ndim != 2 or weights.shape[1] != n_parts or not len(weights):
        raise MirblabError(f"a grid is rows of {n_parts} weights, one per run; found the shape {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise MirblabError("a grid holds numbers from 0 up; found others")
    if not weights.any(axis=1).all():
        raise MirblabError("a row of the grid has no weight above 0, which orders nothing; give one part a weight")
    return weights


def choose_weights(
    values: np.ndarray, alone: np.ndarray, fold: np.ndarray, weights: np.ndarray, resamples: int, seed: int
) -> np.ndarray:
    """Return for each fold the weights that the queries outside it choose, shape (n_folds, n_parts)."""
    chosen = []
    for number in range(int(fold.max()) + 1):
        others, rng = fold != number, np.random.default_rng([seed, number])
        chosen.append(_prefer_weights(values[others], alone[others], weights, resamples, rng))
    return np.stack(chosen)


def _prefer_weights(
    values: np.ndarray, alone: np.ndarray, weights: np.ndarray, resamples: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the best weights on all queries, or with resamples the geometric mean of the best on each of them.

    The mean includes prior weights, counted as WORTH queries: each part has LEAD times the weight of the next best.
    """
    n_queries = len(values)
    if not resamples:
        return weights[values.mean(axis=0).round(12).argmax()]
    counts = rng.multinomial(n_queries, np.full(n_queries, 1 / n_queries), size=resamples)
    best = (counts @ values / n_queries).round(12).argmax(axis=1)
    preferred = np.log(np.maximum(weights, LEAST))[best].mean(axis=0)
    prior = -np.log(LEAD) * np.argsort(np.argsort(-alone.mean(axis=0), kind="stable"))
    mean = np.exp((n_queries * preferred + WORTH * prior) / (n_queries + WORTH))
    return (mean / mean.sum()).round(12)


def describe_folds(values: np.ndarray, fold: np.ndarray, weights: np.ndarray) -> list[dict]:
    """Return for each fold its queries, weights, and mean value on the other folds and on itself."""
    return [
        {
            "fold": number + 1,
            "queries": int((fold == number).sum()),
            "weights": weights[number].tolist(),
            "trained": float(values[fold != number, number].mean()),
            "held_out": float(values[fold == number, number].mean()),
        }
        for number in range(len(weights))
    ]


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
    """Return the linear fusion of runs in which the weights of each query were chosen without that query.

    The weights of each of the *folds* are chosen on the queries outside it: each of *resamples* samples of them, drawn
    with replacement, prefers the weights of *grid* (None: `weight_grid`) with the best mean *measure*, the first among
    equals, and the geometric mean of the preferred weights is taken (bagging: Breiman, Machine Learning 24, 1996; parts
    of a whole: Aitchison 1986). As few queries choose badly, the mean includes 50 more queries that prefer prior
    weights: the best part counts 19 times as much as the second, and this as the third. Of several measures, with
    commas between, the mean counts. *span* is `linear`'s; *depth* cuts the result after the weights are chosen;
    *qrels* and *relevant_from* are those of `measures.evaluate`.

    With *resamples* 0 the best weights on the other queries are taken: with `folds=5, resamples=0, span="query"` and
    the *grid* [0.1, 0.9], ..., [0.9, 0.1] that is the choice of Zhong et al. 2022, section 3.4.

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
    wanted = [parse_measure(name) for name in measure.split(",")]
    if any(is_rank(str(one)) for one in wanted):
        raise MirblabError("weights need a measure of which more is better; take RR in place of Rank")
    sides, weights = AlignedRuns.of(parts), check_grid(grid, len(parts))
    parts = sides.parts  # with the names of columns used here
    qrels = runs.rename_pyterrier(qrels) if isinstance(qrels, pd.DataFrame) else qrels
    judged = _Judgements(qrels, wanted, relevant_from)
    ids, relevant = judged.queries(parts[0])
    notes: dict[str, Any] = {"parts": part_column_names(parts), "measure": measure}
    needed = max(MIN_QUERIES, folds)
    if len(relevant) < needed:
        why = f"queries with a relevant document: {len(relevant)}; needed to choose weights: {needed}"
        run = rrf(parts, K, depth)
        run.attrs |= notes | {"method": "rrf", "why": why}
        return run
    # Queries with and without a relevant document are divided separately, so that every fold has its share of both.
    others = sides.query_ids.union(ids).difference(relevant)
    fold: pd.Series = pd.concat([pd.Series(assign_folds(known, folds, seed), known) for known in (relevant, others)])
    judged_fold, scaled = fold[ids].to_numpy(), sides.scale(span)
    tried = _ScoredPairs.of(sides, scaled, judged, weights).values(weights, judged)
    alone = np.stack([judged.values(part) for part in parts], axis=1)
    chosen = choose_weights(tried, alone, judged_fold, weights, resamples, seed)
    # The chosen weights are in no grid, and may put other documents first.
    rows = describe_folds(_ScoredPairs.of(sides, scaled, judged, chosen).values(chosen, judged), judged_fold, chosen)
    notes |= {"method": "cv", "seed": seed, "resamples": resamples, "span": span, "folds": rows}
    query_weights = chosen[fold[sides.query_ids].to_numpy()]

    def vote(block: QueryBlock) -> np.ndarray:
        return query_weights[block.row_query, block.part] * scaled(block)

    return sides.merge(vote, QueryBlock.sum, depth, **notes)


@dataclass(frozen=True)
class _Judgements:
    qrels: Any
    measures: list[Measure]
    relevant_from: int | None

    def queries(self, run: pd.DataFrame) -> tuple[pd.Index, pd.Index]:
        """Return the judged queries, and those of them that have a relevant document; both sorted."""
        values = self._evaluate(run, self.measures[:1])
        ids = pd.Index(values.query_id.astype("str"))
        return ids, ids.difference(values.attrs["without_relevant"])

    def values(self, run: pd.DataFrame) -> np.ndarray:
        """Return the mean of the measures for each judged query, in the order of their ids."""
        return self._evaluate(run, self.measures).value.to_numpy().reshape(len(self.measures), -1).mean(axis=0)

    def _evaluate(self, run: pd.DataFrame, wanted: list[Measure]) -> pd.DataFrame:
        """Return the values without the warnings, which would name the same queries for every weight."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QueryWarning)
            return evaluate(run, self.qrels, wanted, self.relevant_from)

    def keys(self, sides: AlignedRuns) -> np.ndarray:
        """Return the judged pairs that a part may have returned, as sorted numbers."""
        table = self.qrels if isinstance(self.qrels, pd.DataFrame) else self.qrels.qrels
        queries = sides.query_ids.get_indexer(pd.Index(table.query_id.astype("str")))
        docs = sides.doc_ids.get_indexer(pd.Index(table.doc_id.astype("str")))
        known = (queries >= 0) & (docs >= 0)
        return np.unique(queries[known] * len(sides.doc_ids) + docs[known])

    def depth(self) -> int | None:
        """Return the number of first documents that count, judged or not; None for all."""
        depths = [each.k for each in self.measures if not each.prime and each.name != "Bpref"]
        return None if None in depths else max((k for k in depths if k is not None), default=0)


@dataclass(frozen=True)
class _ScoredPairs:
    sides: AlignedRuns
    queries: np.ndarray
    docs: np.ndarray
    scores: np.ndarray  # (n_pairs, n_parts)

    @classmethod
    def of(cls, sides: AlignedRuns, scaled: Vote, judged: _Judgements, weights: np.ndarray) -> _ScoredPairs:
        """Return the judged pairs and those that any of the *weights* ranks within the depth of the measures."""
        keys, depth = judged.keys(sides), judged.depth()
        kept_blocks = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, len(sides.parts))))]
        with progress(len(sides.query_ids), f"{sides.system}: what weights could put first", "query") as bar:
            for block in sides.blocks():
                queries, docs, scores = block.query, block.doc.astype(np.int64), block.matrix(scaled(block))
                kept = np.full(len(queries), depth is None)
                kept[_positions_among(queries * len(sides.doc_ids) + docs, keys)] = True
                if depth and len(queries):
                    kept |= _among_first(queries, docs, scores, weights, depth)
                kept_blocks.append((queries[kept], docs[kept], scores[kept]))
                bar.update(len(query_bounds(queries)) - 1)
        queries, docs, scores = (np.concatenate(arrays) for arrays in zip(*kept_blocks, strict=True))
        return cls(sides, queries, docs, scores)

    def values(self, weights: np.ndarray, judged: _Judgements) -> np.ndarray:
        """Return the value of each judged query with each of the *weights*, (n_queries, n_weights)."""
        used, docs = np.unique(self.docs, return_inverse=True)
        names, columns = (self.sides.query_ids, self.sides.doc_ids[used]), []
        with progress(len(weights), f"{self.sides.system}: weights tried", "weight") as bar:
            for row in weights:
                total = _weighted_columns(self.scores, row)
                run = runs.from_positions(self.queries, docs, total, *names, "", self.sides.collection)
                columns.append(judged.values(run))
                bar.update(1)
        return np.stack(columns, axis=1)


def _weighted_columns(scores: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Return the weighted sum of the columns as float32, summed in the order in which the fusion sums them."""
    pairs = zip(row, scores.T, strict=True)
    return sum((weight * column for weight, column in pairs), np.zeros(len(scores))).astype(np.float32)


def _among_first(
    queries: np.ndarray, docs: np.ndarray, scores: np.ndarray, weights: np.ndarray, depth: int
) -> np.ndarray:
    """Return which pairs any of the *weights* ranks among the first *depth* of their query, or ties with the last.

    A weighted mean lies between a pair's least and greatest score, so a pair whose greatest score is below the least
    score of *depth* others is never among them.
    """
    least, greatest = (side(scores, axis=1).astype(np.float32) for side in (np.min, np.max))
    near = np.flatnonzero(greatest >= _last_score(queries, docs, least, depth) - _ROUNDING)
    queries, docs, scores, is_among = queries[near], docs[near], scores[near], np.zeros(len(scores), dtype=bool)
    for row in weights:
        total = _weighted_columns(scores, row)
        is_among[near[total >= _last_score(queries, docs, total, depth)]] = True
    return is_among


def _last_score(queries: np.ndarray, docs: np.ndarray, scores: np.ndarray, depth: int) -> np.ndarray:
    """Return for each pair the score at rank *depth* of its query, the worst score where there are fewer."""
    bounds = query_bounds(queries)
    ranked = sort_rows(queries.astype(np.int32), docs.astype(np.int32), scores)[2]
    return np.repeat(ranked[np.minimum(bounds[:-1] + depth, bounds[1:]) - 1], np.diff(bounds))


def _positions_among(keys: np.ndarray, few: np.ndarray) -> np.ndarray:
    """Return the positions of those sorted *keys* that are among the sorted *few*."""
    near = few[slice(*np.searchsorted(few, [keys[0], keys[-1] + 1]))] if len(keys) else few[:0]
    positions = np.searchsorted(keys, near)
    return positions[keys[positions] == near]


# By the names that polyfuse gives them.
METHODS: Mapping[str, Callable[..., pd.DataFrame]] = MappingProxyType({
    "rrf": rrf, "linear": linear, "sum": weighted_sum, "borda": borda, "combsum": comb_sum, "combmnz": comb_mnz,
    "isr": isr, "logisr": log_isr,
})  # fmt: skip


def fuse(parts: Sequence[pd.DataFrame], method: str = "rrf", depth: int | None = None, **settings: Any) -> pd.DataFrame:
    """Return the fusion of runs by a method of METHODS; *settings* are the method's own (rrf: k; linear: weights).

    Large runs are fused some queries at a time, which gives the same.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> fuse([one, one], "combmnz", depth=1).score.tolist()
    [4.0]
    """
    check_known("fusion method", str(method), METHODS)
    blocks = [parts] if settings.get("span") == "mean" else runs.query_blocks(parts)  # the mean is over all queries
    fused = [METHODS[method](block, depth=depth, **settings) for block in blocks]
    if len(fused) == 1:
        return fused[0]
    attrs, names = fused[0].attrs, list(map(str, fused[0]))
    # column by column, each leaving its block, so that the run is in memory once
    columns = {name: pd.concat([block.pop(name) for block in fused], ignore_index=True) for name in names}
    run = pd.DataFrame(columns, copy=False)
    run.attrs = attrs
    return run


def __dir__() -> list[str]:
    return __all__
