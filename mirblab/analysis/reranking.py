"""reranking: what a reranker does at every depth, beside the first stage and the ceiling."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection
from mirblab.evaluation import measures, significance
from mirblab.retrieval import rerank, systems
from mirblab.retrieval.systems import System

_COUNTS = ("better", "worse", "n_queries")


def depth_curve(
    collection: Collection, first: System, reranker: str, depths: Sequence[int], measure: str
) -> pd.DataFrame:
    """Return one row per depth: the mean before and after reranking, the ceiling, and how many queries gained.

    Columns: collection, system, reranker, measure, depth, first_stage, value, ceiling, better and worse (numbers of
    queries), n_queries. Pairs are scored once, at the greatest depth. MirblabError for no depth or one below 1.

    >>> from mirblab.sources.catalogue import load
    >>> from mirblab.retrieval.systems import system
    >>> few = load("mini-qa").sample(3)
    >>> curve = depth_curve(few, system("bm25"), "maxsim", [2, 4], "nDCG@10")
    >>> curve.depth.tolist(), bool((curve.value <= curve.ceiling).all())
    ([2, 4], True)
    """
    if measure.startswith("Rank"):
        raise MirblabError("a curve needs a measure of which more is better; take RR in place of Rank")
    if not depths or min(depths) < 1:
        raise MirblabError(f"depths must be whole numbers from 1, found {list(depths)}")
    pairs = systems.pair_scores(first, reranker, collection, max(depths))
    plain_run = first.search(collection)
    plain = _by_query(plain_run, collection, measure)
    rows = []
    for depth in sorted(set(depths)):
        after = _by_query(rerank.reorder_run(plain_run, pairs, depth), collection, measure)
        best = measures.ceiling(plain_run, collection, measure, depth)
        chosen = {"reranker": reranker, "measure": measure, "depth": depth, "ceiling": best.value.mean()}
        rows.append(_outcome(first, collection, plain, after) | chosen)
    order = ["collection", "system", "reranker", "measure", "depth", "first_stage", "value", "ceiling"]
    return pd.DataFrame(rows)[[*order, *_COUNTS]]


def reranking_factors(
    collection: Collection,
    first: System,
    rerankers: Sequence[str],
    measure: str,
    *,
    depths: Sequence[int] = (10, 20),
    lengths: Sequence[int] = (0,),
    instructions: Sequence[str] = ("", "card"),
) -> pd.DataFrame:
    """Return one row per reranker, depth, length and instruction: the effect of each of these factors.

    *lengths* are tokens per text (0: the registry's), *instructions* "" or "card" (the collection's own before the
    query). Columns: collection, system, reranker, depth, max_length, instruction, first_stage, value, change, low, high
    (95 % bootstrap interval of the change over queries), better, worse, n_queries.

    >>> from mirblab.sources.catalogue import load
    >>> from mirblab.retrieval.systems import system
    >>> some = load("mini-qa").sample(3)
    >>> found = reranking_factors(some, system("bm25"), ["maxsim"], "RR", depths=[3], lengths=[0, 8])
    >>> found[["max_length", "instruction"]].values.tolist()
    [[0, ''], [0, 'card'], [8, ''], [8, 'card']]
    """
    plain_run = first.search(collection)
    plain = _by_query(plain_run, collection, measure)
    rows = []
    for reranker, length, instruction in product(rerankers, lengths, instructions):
        pairs = systems.pair_scores(first, reranker, collection, max(depths), length, instruction)
        for depth in sorted(set(depths)):
            after = _by_query(rerank.reorder_run(plain_run, pairs, depth), collection, measure)
            change = (after - plain).to_numpy()
            low, high = _interval(change)
            rows.append(
                _outcome(first, collection, plain, after)
                | {"reranker": reranker, "depth": depth, "max_length": length, "instruction": instruction}
                | {"change": change.mean(), "low": low, "high": high}
            )
    order = ["collection", "system", "reranker", "depth", "max_length", "instruction", "first_stage", "value"]
    return pd.DataFrame(rows)[[*order, "change", "low", "high", *_COUNTS]]


def _by_query(run: pd.DataFrame, collection: Collection, measure: str) -> pd.Series:
    return measures.evaluate(run, collection, [measure]).set_index("query_id").value


def _interval(changes: np.ndarray, n_resamples: int = 10_000) -> tuple[float, float]:
    means = significance.resampled_means(changes[:, None], n_resamples, 0)
    low, high = significance.percentiles(means, 0.95)
    return float(low[0]), float(high[0])


def _outcome(first: System, collection: Collection, plain: pd.Series, after: pd.Series) -> dict[str, object]:
    return {
        "collection": collection.name,
        "system": first.name,
        "first_stage": plain.mean(),
        "value": after.mean(),
        "better": int((after > plain).sum()),
        "worse": int((after < plain).sum()),
        "n_queries": len(plain),
    }


def rerank_table(curves: pd.DataFrame, depth: int) -> pd.DataFrame:
    """Return collections by first stages with "plain / reranked / ceiling" in percent, as in MIRB's Table 10.

    >>> row = {"collection": "c", "system": "s", "depth": 10, "first_stage": 0.5, "value": 0.6, "ceiling": 0.8}
    >>> rerank_table(pd.DataFrame([row]), 10).s.item()
    '50.00 / 60.00 / 80.00'
    """
    at = curves[curves.depth == depth]
    if at.empty:
        raise MirblabError(f"no depth {depth} in the curves; found {sorted(curves.depth.unique().tolist())}")
    cells = [
        " / ".join(f"{100 * value:.2f}" for value in values)
        for values in zip(at.first_stage, at.value, at.ceiling, strict=True)
    ]
    wide = at.assign(cell=cells).pivot(index="collection", columns="system", values="cell")
    order = at.collection.drop_duplicates(), at.system.drop_duplicates()
    return wide.loc[order[0], order[1]].rename_axis(columns=None).reset_index()
