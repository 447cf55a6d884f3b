"""evidence: text search with what a proof graph adds, compared with text alone and with popularity alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mirblab.analysis.proof_graph.graph import (
    DEPTH,
    ProofGraph,
    earlier_only,
    exchange_edges,
    expand_by_neighbours,
    pagerank_prior,
    popularity,
    premise_graph,
    without_documents,
)
from mirblab.core.errors import MirblabError, check_known, check_not_negative, check_positive
from mirblab.data.collection import Collection
from mirblab.evaluation.measures import evaluate
from mirblab.evaluation.significance import difference_intervals, permutation_test
from mirblab.retrieval import fusion
from mirblab.retrieval.systems import system

N_TRAINING = 300  # theorems of the split for training that choose the weights
_FOLDS = 5  # of the weights, which are all but equal
# Each system by its parts; "text" stands for the text system. One part is not fused.
_PARTS = (
    ("text",),
    ("popularity",),
    ("text", "popularity"),
    ("text", "pagerank"),
    ("text", "personalised"),
    ("text", "neighbours"),
    ("neighbours", "personalised"),
    ("exchanged neighbours", "exchanged personalised"),
)
CONTROL = "exchanged edges"  # the name of the last one


@dataclass(frozen=True)
class GraphStudy:
    """Runs of text and graph on a collection in which every query returns older documents only.

    `evidence` has the runs by the kind of evidence (text, popularity, pagerank, personalised, neighbours), `training`
    the same of the theorems that chose the weights, which are the queries of `learnt`. `runs` are of what is compared:
    text, popularity, and fusions, the last of them of neighbours and personalised on a graph with exchanged edges, as a
    control; `weights` has a row per fusion: collection, system, and the weight of each part.
    """

    graph: ProofGraph
    collection: Collection
    learnt: Collection
    evidence: dict[str, pd.DataFrame]
    training: dict[str, pd.DataFrame]
    runs: list[pd.DataFrame]
    weights: pd.DataFrame

    def evaluate(self, measures: Sequence[str]) -> pd.DataFrame:
        """Return the values of all runs."""
        return pd.concat([evaluate(run, self.collection, measures) for run in self.runs], ignore_index=True)


def study_graph(
    training: Collection,
    test: Collection,
    text: str = "bm25",
    *,
    without: Iterable[str] = (),
    measure: str = "nDCG@10",
    n_training: int = N_TRAINING,
    seed: int = 0,
) -> GraphStudy:
    """Return the runs of the system *text*, of the graph of *training*, and of their fusions, on the queries of *test*.

    The weights of a fusion are those that *n_training* queries of *training*, drawn by *seed*, prefer for *measure*
    (the mean over the folds of `fusion.cross_validated`); each of them sees the documents and proofs that are older
    than it, as the queries of *test* do. Documents in *without*, such as hubs, are neither returned nor judged; they
    remain in the graph. MirblabError for splits of different corpora, and for fewer than 20 queries to choose from.

    >>> from mirblab.sources.catalogue import build_periods, load
    >>> [folder] = build_periods("mini", ["2025-03-01", "2026-01-01"])  # doctest: +ELLIPSIS
    metamath-premise-at-2025-03-01: ...
    >>> study = study_graph(load(str(folder), split="train"), load(str(folder)))
    >>> [run.attrs["system"] for run in study.runs][1:4]
    ['popularity', 'bm25+popularity', 'bm25+pagerank']
    """
    check_positive(n_training=n_training)
    check_not_negative(seed=seed)
    graph = premise_graph(training)
    learnt, asked = (earlier_only(one, graph) for one in (training.sample(n_training, seed), test))
    if unwanted := list(without):
        learnt, asked = (without_documents(one, unwanted) for one in (learnt, asked))
    other = exchange_edges(graph, seed)
    chosen, shown = (_evidence_runs(graph, other, one, system(text).search(one, DEPTH)) for one in (learnt, asked))
    runs, weights = list[pd.DataFrame](), list[dict[str, object]]()
    for parts in _PARTS:
        name = CONTROL if parts == _PARTS[-1] else "+".join(text if part == "text" else part for part in parts)
        run = shown[parts[0]]
        if len(parts) > 1:
            preferred = _choose_weights([chosen[part] for part in parts], learnt, measure)
            run = fusion.linear([shown[part] for part in parts], preferred, DEPTH, span="mean")
            of_parts = zip((part.removeprefix("exchanged ") for part in parts), preferred, strict=True)
            weights.append({"collection": asked.name, "system": name, **dict(of_parts)})
        run.attrs |= {"system": name, "collection": asked.name}
        runs.append(run)
    return GraphStudy(graph, asked, learnt, shown, chosen, runs, pd.DataFrame(weights))


def _evidence_runs(
    graph: ProofGraph, exchanged: ProofGraph, collection: Collection, text: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    return {
        "text": text,
        "popularity": popularity(graph, collection),
        "pagerank": pagerank_prior(graph, collection),
        "personalised": pagerank_prior(graph, collection, text),
        "neighbours": expand_by_neighbours(graph, collection, text),
        "exchanged personalised": pagerank_prior(exchanged, collection, text),
        "exchanged neighbours": expand_by_neighbours(exchanged, collection, text),
    }


def _choose_weights(parts: list[pd.DataFrame], collection: Collection, measure: str) -> list[float]:
    run = fusion.cross_validated(parts, collection, measure, folds=_FOLDS)
    if "folds" not in run.attrs:
        raise MirblabError(f"{collection.name}, {collection.split}: {run.attrs['why']}")
    return [float(weight) for weight in np.mean([fold["weights"] for fold in run.attrs["folds"]], axis=0)]


def compare_with_all(values: pd.DataFrame, measure: str, baselines: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return whether each system has a higher mean than every one of its *baselines*, system to systems.

    Columns: collection, measure, system_a, system_b (the baseline with the highest mean), difference (to it), low, high
    (95 % bootstrap interval), p, n_queries. If all differences are above 0, p is the largest of the permutation tests,
    so that it speaks for all of them (intersection-union test: Berger, Technometrics 1982). Else a baseline is at least
    as good, and p is the smallest of those tests times their number. p is not corrected for several rows. MirblabError
    without baselines, and for a system that the values lack or have no values per query of.

    >>> rows = [(name, f"q{n}", value) for name, value in (("g", 0.9), ("t", 0.5), ("p", 0.4)) for n in range(9)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> compare_with_all(values, "RR", {"g": ["t", "p"]})[["system_a", "system_b", "difference"]].values.tolist()
    [['g', 't', 0.4]]
    """
    check_known("system", {*baselines, *(name for names in baselines.values() for name in names)}, set(values.system))
    pairs = [(name, other) for name, others in baselines.items() for other in others]
    tested = permutation_test(values, measure, pairs)
    lacking = {*pairs} - {*zip(tested.system_a, tested.system_b, strict=True)}
    if lacking or not pairs:
        raise MirblabError(
            "a system is compared with every one of its baselines, query by query; found "
            + ("no baseline" if not pairs else f"no common values per query of {' and '.join(sorted(lacking)[0])}")
        )
    spans = difference_intervals(values, measure, pairs)
    tested = tested.assign(low=spans.low, high=spans.high)
    rows = []
    for _, table in tested.groupby(["system_a", "collection"], sort=False):
        nearest = table.iloc[[int(table.difference.to_numpy().argmin())]]
        worse = table[table.difference <= 0]
        p = table.p.max() if worse.empty else min(1.0, worse.p.min() * len(table))
        rows.append(nearest.assign(p=p))
    columns = ["collection", "measure", "system_a", "system_b", "difference", "low", "high", "p", "n_queries"]
    return pd.concat(rows, ignore_index=True)[columns]
