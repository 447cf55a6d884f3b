"""reranking: what a reranker does at every depth, beside the first stage and the ceiling."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.evaluation import measures, significance
from mirblab.retrieval import fusion, rerank, systems
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
    weights: Sequence[float] = (1.0,),
) -> pd.DataFrame:
    """Return one row per reranker, depth, length, instruction and weight: the effect of each of these factors.

    *lengths* are tokens per text (0: the registry's), *instructions* "" or "card" (the collection's own before the
    query), *weights* the reranker's share of the score, above 0; the rest is the first stage's. Columns: collection,
    system, reranker, depth, max_length, instruction, weight, first_stage, value, change, low, high (95 % bootstrap
    interval of the change over queries), p (paired permutation test), better, worse, n_queries. A reranker that always
    has the instruction has no rows without it, and a collection that has none no rows with it.

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
    used = [
        (reranker, length, rerank.used_settings(reranker, collection, length, instruction).get("instruction", ""))
        for reranker, length, instruction in product(rerankers, lengths, instructions)
    ]
    for reranker, length, instruction in dict.fromkeys(used):
        pairs = systems.pair_scores(first, reranker, collection, max(depths), length, instruction)
        for depth, weight in product(sorted(set(depths)), weights):
            after = _by_query(_reorder(plain_run, pairs, depth, weight), collection, measure)
            change = (after - plain).to_numpy()
            low, high = _interval(change)
            rows.append(
                _outcome(first, collection, plain, after)
                | {"reranker": reranker, "depth": depth, "max_length": length, "instruction": instruction}
                | {"weight": weight, "change": change.mean(), "low": low, "high": high, "p": _p_value(change)}
            )
    order = ["collection", "system", "reranker", "depth", "max_length", "instruction", "weight", "first_stage", "value"]
    return pd.DataFrame(rows)[[*order, "change", "low", "high", "p", *_COUNTS]]


def reranking_changes(
    collection: Collection, first: System, reranker: str, measure: str, *, depth: int = 10, weight: float = 1.0
) -> pd.DataFrame:
    """Return the change of each query by reranking as a table of values, with the rank of its first relevant document.

    Columns: system ("bm25>maxsim@10"), collection, measure, query_id, value (-1 to 1 for most measures) and first_rank
    (from 1, in the first stage; *depth* + 1 where no relevant document is among its first *depth*).

    >>> from mirblab.sources.catalogue import load
    >>> from mirblab.retrieval.systems import system
    >>> changes = reranking_changes(load("mini-qa").sample(3), system("bm25"), "maxsim", "RR", depth=2)
    >>> bool(changes.first_rank.between(1, 3).all())
    True
    """
    plain_run = first.search(collection)
    pairs = systems.pair_scores(first, reranker, collection, depth)
    plain, after = (
        _by_query(run, collection, measure) for run in (plain_run, _reorder(plain_run, pairs, depth, weight))
    )
    ranks = 1 / _by_query(runs.cut_run(plain_run, depth), collection, "RR").replace(0.0, 1 / (depth + 1))
    name = f"{first.name}>{reranker}@{depth}{'' if weight == 1 else f',{weight}'}"
    columns = {"system": name, "collection": collection.name, "measure": measure, "query_id": plain.index}
    return pd.DataFrame(columns | {"value": (after - plain).to_numpy(), "first_rank": ranks.to_numpy()})


def describe_reranking(effects: pd.DataFrame, alpha: float = 0.05) -> list[str]:
    """Return three texts about rows of `reranking_factors`: what is significant, the effect of depth and of weight.

    Each row counts once; p values are corrected by Holm's method over all rows. No weight is recommended, because the
    same queries would choose it and measure it.

    >>> row = {"depth": 5, "better": 2, "worse": 9}
    >>> rows = [row | {"weight": 1.0, "change": -0.1, "p": 0.001}, row | {"weight": 0.3, "change": 0.02, "p": 0.3}]
    >>> describe_reranking(pd.DataFrame(rows))[0]
    'Reranking lowers the value significantly in 1 of 2 settings and raises it significantly in none (Holm, p < 0.05).'
    """
    p = significance.holm(effects.p)
    lower, higher = (p < alpha) & (effects.change < 0), (p < alpha) & (effects.change > 0)
    over = f" of {', '.join(map(str, effects.system.unique()))}" if "system" in effects else ""
    when = (
        f"Reranking{over} lowers the value significantly in {int(lower.sum()) or 'none'} of {len(effects)} settings "
        f"and raises it significantly in {int(higher.sum()) or 'none'} (Holm, p < {alpha:g})."
    )
    parts = effects.assign(change=100 * effects.change)
    by_depth = parts.groupby("depth").change.mean()
    by_weight = parts.groupby("weight").agg({"change": "mean", "better": "sum", "worse": "sum"})
    why = (
        f"The mean change{over} is {by_depth.iloc[0]:+.1f} points at depth {by_depth.index[0]} and "
        f"{by_depth.iloc[-1]:+.1f} at depth {by_depth.index[-1]}; of the pairs of a query and a setting, "
        f"{int(effects.better.sum())} gain and {int(effects.worse.sum())} lose."
    )
    weights = "; ".join(
        f"with weight {weight:g} of the reranker's score {change:+.1f} points ({better} gain, {worse} lose)"
        for weight, change, better, worse in by_weight.sort_values("change", ascending=False).itertuples()
    )
    last = " No weight raises the mean." if by_weight.change.max() <= 0 else ""
    if not last and len(by_weight) > 1:
        last = " A weight that is chosen by these numbers has to be confirmed on other queries."
    return [when, why, f"On these queries: {weights}.{last}"]


def _reorder(run: pd.DataFrame, pairs: pd.DataFrame, depth: int, weight: float) -> pd.DataFrame:
    """Return *run* with its first *depth* documents in the order of the mixed score; 1: the reranker's alone."""
    if weight < 1:
        shortlist = runs.cut_run(run, depth)
        wanted, scored = (
            pd.MultiIndex.from_frame(table[["query_id", "doc_id"]].astype("str")) for table in (shortlist, pairs)
        )
        own = pairs[scored.isin(wanted)]
        own.attrs = dict(pairs.attrs)
        pairs = fusion.linear([shortlist, own], [1 - weight, weight])
    return rerank.reorder_run(run, pairs, depth)


def _p_value(changes: np.ndarray) -> float:
    pair = pd.DataFrame({"after": changes, "plain": np.zeros(len(changes))}).rename_axis("query_id")
    long = pair.reset_index().melt("query_id", var_name="system").assign(collection="", measure="change")
    return float(significance.permutation_test(long, "change", baseline="plain").p.iloc[0])


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

    With several rerankers in the *curves* a cell has the value of each, in their order, before the ceiling.

    >>> row = {"collection": "c", "system": "s", "depth": 10, "first_stage": 0.5, "value": 0.6, "ceiling": 0.8}
    >>> rerank_table(pd.DataFrame([row | {"reranker": "a"}, row | {"reranker": "b", "value": 0.4}]), 10).s.item()
    '50.00 / 60.00 / 40.00 / 80.00'
    """
    at = curves[curves.depth == depth]
    if at.empty:
        raise MirblabError(f"no depth {depth} in the curves; found {sorted(curves.depth.unique().tolist())}")
    cells = at.groupby(["collection", "system"], sort=False)[["first_stage", "value", "ceiling"]].apply(
        lambda rows: " / ".join(
            f"{100 * value:.2f}" for value in (rows.first_stage.iloc[0], *rows.value, rows.ceiling.iloc[0])
        )
    )
    wide = cells.rename("cell").reset_index().pivot(index="collection", columns="system", values="cell")
    order = at.collection.drop_duplicates(), at.system.drop_duplicates()
    return wide.loc[order[0], order[1]].rename_axis(columns=None).reset_index()
