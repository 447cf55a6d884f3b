"""unjudged: how a comparison changes when a share of the judgements is hidden."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, check_not_negative, check_positive
from mirblab.core.wording import counted
from mirblab.data.collection import Collection
from mirblab.data.runs import check_distinct_systems
from mirblab.evaluation import measures


def drop_judgements(qrels: pd.DataFrame, share: float, seed: int = 0, relevant_from: int = 1) -> pd.DataFrame:
    """Return *qrels* without a share of each query's judgements, but with a relevant one; larger shares hide more.

    A query without a document of relevance *relevant_from* keeps one of a smaller relevance, above 0 if it has one, so
    that means are of the same queries.
    """
    if not 0 <= share <= 1:
        raise MirblabError(f"a share is between 0 and 1, found {share}")
    check_not_negative(seed=seed)
    lots = np.random.default_rng(seed).random(len(qrels))
    table = qrels.assign(lot=lots, is_low=qrels.relevance < relevant_from, is_zero=qrels.relevance <= 0)
    # The relevant document with the smallest number, or else another one, gets -1, so that it is hidden last.
    first = table.sort_values(["is_zero", "is_low", "lot"]).groupby("query_id", observed=True).head(1)
    table.loc[first.index, "lot"] = -1.0
    place = table.groupby("query_id", observed=True).lot.rank(method="first") - 1
    counts = table.groupby("query_id", observed=True).lot.transform("size")
    n_kept = np.ceil(((1 - share) * counts).round(9))  # 1 - 0.7 is a little more than 0.3
    kept = place < np.maximum(n_kept, table.lot == -1.0)
    return qrels[kept].reset_index(drop=True)


def random_order_means(
    collection: Collection, wanted: Sequence[str], *, n_draws: int = 200, seed: int = 0
) -> pd.DataFrame:
    """Return the mean value of each measure for random orders of each query's judged documents.

    It is the chance level of measures that use judged documents alone, and of all measures where a query may return
    only those. Columns: collection, measure, value. Measures are as those of `evaluate_from_grades`.

    >>> from mirblab.sources.catalogue import load
    >>> round(float(random_order_means(load("mini-wfb"), ["nDCG@10"]).value[0]), 2)
    0.82
    """
    check_positive(n_draws=n_draws)
    check_not_negative(seed=seed)
    rng, qrels = np.random.default_rng(seed), collection.qrels
    draws = [
        measures.evaluate_from_grades(
            qrels[["query_id", "doc_id"]].assign(score=rng.permutation(len(qrels)).astype(float)), collection, wanted
        )
        for _ in range(n_draws)
    ]
    return pd.concat(draws).groupby(["collection", "measure"], sort=False, observed=True).value.mean().reset_index()


def hide_judgements(
    runs: Sequence[pd.DataFrame],
    collection: Collection,
    wanted: Sequence[str],
    shares: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 0.9),
    seeds: Sequence[int] = (0, 1, 2),
) -> pd.DataFrame:
    """Return each system's mean of each measure while a growing share of the judgements is hidden.

    Columns: collection, system, measure, share (asked for), hidden (share of all judgements that is hidden, smaller
    than what was asked for where queries have few judgements, because one is kept), seed, value, tau:
    Kendall's rank correlation between the order of the systems now and that with all judgements (NaN with a single
    system, and where all systems have the same value). A measure that is robust against missing judgements keeps values
    and order (Sakai, SIGIR 2007; Buckley and Voorhees, SIGIR 2004).

    >>> from mirblab.sources.catalogue import load
    >>> from mirblab.retrieval.systems import system
    >>> c = load("mini-qa")
    >>> found = hide_judgements([system("bm25").search(c)], c, ["nDCG@10"], shares=(0.0, 0.5), seeds=(0,))
    >>> found.share.tolist(), bool(found.value[0] > found.value[1])
    ([0.0, 0.5], True)
    """
    if not len(runs) or not len(shares) or not len(seeds):
        raise MirblabError(f"at least one run, share and seed is needed; found {counted(len(runs), 'run')}, "
                           f"{counted(len(shares), 'share')}, {counted(len(seeds), 'seed')}")  # fmt: skip
    check_distinct_systems(runs)
    level, grades = collection.card.relevant_from, collection.qrels.relevance
    highest = max([1, *collection.card.relevance_levels, *grades.tolist()])  # ERR divides by it, whatever is hidden
    card = replace(collection.card, relevance_levels=[highest])
    judged = replace(collection, card=card, groups=None)
    whole = _means(runs, judged, wanted)
    parts = []
    for share in shares:
        for seed in seeds if share else seeds[:1]:
            with warnings.catch_warnings():  # such queries have none in *whole* either, which has warned
                warnings.simplefilter("ignore", measures.QueryWarning)
                left = drop_judgements(collection.qrels, share, seed, level)
                means = _means(runs, replace(judged, qrels=left), wanted)
            taus = {str(name): _tau(part, whole) for name, part in means.groupby("measure", sort=False)}
            hidden = 1 - len(left) / len(collection.qrels)
            parts.append(means.assign(share=share, hidden=hidden, seed=seed, tau=means.measure.map(taus)))
    table = pd.concat(parts, ignore_index=True).assign(collection=collection.name)
    return table[["collection", "system", "measure", "share", "hidden", "seed", "value", "tau"]]


def _means(runs: Sequence[pd.DataFrame], collection: Collection, wanted: Sequence[str]) -> pd.DataFrame:
    values = pd.concat([measures.evaluate(run, collection, list(wanted)) for run in runs])
    return values.groupby(["system", "measure"], sort=False, observed=True).value.mean().reset_index()


def _tau(part: pd.DataFrame, whole: pd.DataFrame) -> float:
    from scipy.stats import kendalltau

    joined = part.merge(whole, on=["system", "measure"], suffixes=("", "_before"))
    return float(kendalltau(joined.value, joined.value_before).statistic) if len(joined) > 1 else float("nan")
