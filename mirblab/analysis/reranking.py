"""reranking: what a reranker does at every depth, beside the first stage and the ceiling."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, check_positive
from mirblab.core.wording import counted
from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.display.escape import format_interval, format_value
from mirblab.evaluation import measures, published, significance
from mirblab.formula.in_text import FormulaReader
from mirblab.retrieval import fusion, rerank, systems
from mirblab.retrieval.systems import System

_COUNTS = ("better", "worse", "n_queries")
_WORTHWHILE = 1.0  # points that reranking gains at least, for it to be advised
_SETTING = ("collection", "system", "reranker", "depth", "max_length", "instruction", "weight")


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
    if measures.is_rank(measure):
        raise MirblabError("a curve needs a measure of which more is better; take RR in place of Rank")
    _check_depths(depths)
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
    query), *weights* the reranker's share of the score, to 1; the rest is the first stage's; 0: a weight for each query
    that `fusion.cross_validated` chose without it. Columns: collection, system, reranker, depth, max_length,
    instruction, weight, first_stage, value, change, low, high (95 % bootstrap interval of the change over queries), p
    (paired permutation test), better, worse, n_queries. A reranker that always has the instruction has no rows without
    it, and a collection that has none no rows with it; Approach0 has neither length nor instruction, and rows only
    where each document is a formula. MirblabError for an empty list, a depth below 1 and a weight that is not 0 to 1.

    >>> from mirblab.sources.catalogue import load
    >>> from mirblab.retrieval.systems import system
    >>> some = load("mini-qa").sample(3)
    >>> found = reranking_factors(some, system("bm25"), ["maxsim"], "RR", depths=[3], lengths=[0, 8])
    >>> found[["max_length", "instruction"]].values.tolist()
    [[0, ''], [0, 'card'], [8, ''], [8, 'card']]
    """
    given = {"rerankers": rerankers, "lengths": lengths, "instructions": instructions, "weights": weights}
    if empty := [name for name, values in given.items() if not len(values)]:
        raise MirblabError(f"{', '.join(empty)}: found an empty list; give at least one value, or leave it out")
    if wrong := [weight for weight in weights if not 0 <= weight <= 1]:
        raise MirblabError(f"weights are the reranker's share of the score, 0 to 1; found {wrong}")
    _check_depths(depths)
    plain_run = first.search(collection)
    plain = _by_query(plain_run, collection, measure)
    rows, used = [], []
    for reranker, length, instruction in product(usable_rerankers(rerankers, collection), lengths, instructions):
        settings = rerank.used_settings(reranker, collection, length, instruction)
        read = 0 if settings["kind"] == rerank.APPROACH0 else length
        used.append((reranker, read, settings.get("instruction", "")))
    for reranker, length, instruction in dict.fromkeys(used):
        pairs = systems.pair_scores(first, reranker, collection, max(depths), length, instruction)
        for depth, weight in product(sorted(set(depths)), weights):
            after = _by_query(_reorder(plain_run, pairs, depth, weight, collection, measure), collection, measure)
            change = (after - plain).to_numpy()
            low, high = _interval(change)
            rows.append(
                _outcome(first, collection, plain, after)
                | {"reranker": reranker, "depth": depth, "max_length": length, "instruction": instruction}
                | {"weight": weight, "change": change.mean(), "low": low, "high": high, "p": _p_value(change)}
            )
    order = [*_SETTING, "first_stage", "value", "change", "low", "high", "p", *_COUNTS]
    return pd.DataFrame(rows, columns=order)


def usable_rerankers(rerankers: Sequence[str], collection: Collection) -> list[str]:
    """Return those of *rerankers* that are tried on the collection: Approach0 where each document is a formula.

    Its rules score posts, too, but take a minute for the first hundred documents of forty of them.

    >>> from mirblab.sources.catalogue import load
    >>> usable_rerankers(["maxsim", "approach0"], load("mini-mathlib").sample(3))
    ['maxsim']
    """
    if rerank.APPROACH0 not in rerankers or FormulaReader.of(collection).is_bare:
        return list(rerankers)
    return [name for name in rerankers if name != rerank.APPROACH0]


def pair_count(collection: Collection, stages: Mapping[str, int]) -> int:
    """Return how many pairs of a query and a document are among the first of any first stage: system to depth.

    >>> from mirblab.sources.catalogue import load
    >>> pair_count(load("mini-qa").sample(3), {"bm25": 2})
    6
    """
    lists = [systems.system(name).search(collection, depth) for name, depth in stages.items()]
    return len(pd.concat([run[["query_id", "doc_id"]] for run in lists]).drop_duplicates())


def reranking_costs(
    collection: Collection, first: System, rerankers: Sequence[str], depth: int, n_queries: int = 2
) -> pd.DataFrame:
    """Return how long each reranker takes on this machine: pairs_per_second, and milliseconds per query at *depth*.

    The pairs of the first *n_queries* queries are scored again, whether scores are stored or not; token vectors that
    are stored are read. The model is loaded before.

    >>> from mirblab.sources.catalogue import load
    >>> from mirblab.retrieval.systems import system
    >>> reranking_costs(load("mini-qa").sample(3), system("bm25"), ["maxsim"], 2).columns.tolist()
    ['collection', 'reranker', 'pairs_per_second', 'milliseconds']
    """
    check_positive(n_queries=n_queries)
    run = first.search(collection, depth)
    run = run[run.query_id.cat.codes < n_queries].reset_index(drop=True)
    rows = []
    for reranker in usable_rerankers(rerankers, collection):
        rerank.score_shortlist(run.head(1), collection, reranker)
        start = time.perf_counter()
        rerank.score_shortlist(run, collection, reranker)
        rate = len(run) / (time.perf_counter() - start)
        rows.append((collection.name, reranker, rate, 1000 * depth / rate))
    return pd.DataFrame(rows, columns=["collection", "reranker", "pairs_per_second", "milliseconds"])


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
        _by_query(run, collection, measure)
        for run in (plain_run, _reorder(plain_run, pairs, depth, weight, collection, measure))
    )
    ranks = 1 / _by_query(runs.cut_run(plain_run, depth), collection, "RR").replace(0.0, 1 / (depth + 1))
    name = f"{first.name}>{reranker}@{depth}{'' if weight == 1 else f',{weight}'}"
    columns = {"system": name, "collection": collection.name, "measure": measure, "query_id": plain.index}
    return pd.DataFrame(columns | {"value": (after - plain).to_numpy(), "first_rank": ranks.to_numpy()})


def describe_reranking(effects: pd.DataFrame, alpha: float = 0.05) -> list[str]:
    """Return three sentences about rows of `reranking_factors`: when reranking hurts, why, and what to do.

    Each row counts once; p values are corrected by Holm's method over all rows. The last sentence is of settings that
    were chosen on the other collections, see `held_out_choices`; it advises to rerank only after first stages whose
    95 % interval of the mean change over collections begins at 1 point or more. MirblabError for a table without a row.

    >>> row = {"system": "bm25", "reranker": "r", "max_length": 0, "instruction": "", "first_stage": 0.5, "depth": 5}
    >>> rows = [row | {"collection": "c", "weight": 1.0, "change": -0.1, "p": 0.001}]
    >>> rows += [row | {"collection": "d", "weight": 0.3, "change": 0.02, "p": 0.3}]
    >>> describe_reranking(pd.DataFrame(rows))[0]  # doctest: +NORMALIZE_WHITESPACE
    'Reranking after bm25 lowers the value significantly in 1 of 2 combinations of first stage, setting and collection
    and raises it significantly in none (Holm, p < 0.05); the lowest significant change is −10.0 points, by r alone at
    depth 5 after bm25 on c.'
    """
    if effects.empty:
        raise MirblabError(
            "there is no row to describe: no reranker was tried; Approach0 reranks only collections whose documents "
            "are formulas, so give another reranker or collection"
        )
    p = significance.holm(effects.p)
    lower, higher = (p < alpha) & (effects.change < 0), (p < alpha) & (effects.change > 0)
    worst, kind = (effects[lower], "significant ") if lower.any() else (effects, "")
    least = worst.iloc[int(worst.change.argmin())]
    when = (
        f"Reranking after {' or '.join(map(str, effects.system.unique()))} lowers the value significantly in "
        f"{int(lower.sum()) or 'none'} of {len(effects)} combinations of first stage, setting and collection and "
        f"raises it significantly in {int(higher.sum()) or 'none'} (Holm, p < {alpha:g}); the lowest {kind}change is "
        f"{_points(100 * least.change)} points, by {_setting_name(least)} after {least.system} on {least.collection}."
    )
    alone = effects[effects.weight == effects.weight.max()]
    of_depth = alone.groupby("depth")[["collection", "system"]].apply(lambda part: len(part.drop_duplicates()))
    everywhere = alone[alone.depth.isin(of_depth[of_depth == of_depth.max()].index)]
    by_depth = 100 * everywhere.groupby("depth").change.mean()
    at = [f"by {_points(by_depth[depth])} points at depth {depth}" for depth in dict.fromkeys(by_depth.index[[0, -1]])]
    why = f"The order of the reranker {_weight_name(alone.weight.iloc[0])} changes the mean {' and '.join(at)}"
    is_high = alone.first_stage > alone.first_stage.median()
    if is_high.any():
        high, low = (100 * alone[rows].change.mean() for rows in (is_high, ~is_high))
        why += f", by {_points(high)} where the first stage is above its median and by {_points(low)} elsewhere"
    return [when, f"{why}.", _describe_choices(held_out_choices(effects))]


def held_out_choices(effects: pd.DataFrame) -> pd.DataFrame:
    """Return for each collection and first stage the setting that is best on the other collections, and its change.

    *effects* are rows of `reranking_factors`. A setting is a reranker with depth, length, instruction and weight that
    every collection has; it is chosen by its mean change. Columns: those of a row of *effects*. Without two collections
    the table is empty.

    >>> row = {"system": "s", "max_length": 0, "instruction": "", "depth": 5, "weight": 1.0}
    >>> rows = [row | {"collection": c, "reranker": r, "change": x}
    ...         for c, r, x in (("a", "m", 0.1), ("a", "n", 0.0), ("b", "m", -0.1), ("b", "n", 0.2))]
    >>> held_out_choices(pd.DataFrame(rows)).reranker.tolist()
    ['n', 'm']
    """
    setting, rows = [name for name in _SETTING if name not in ("collection", "system")], []
    n_collections = effects.collection.nunique()
    for _, of_stage in effects.groupby("system", sort=False) if n_collections > 1 else ():
        shared = of_stage.groupby(setting).filter(lambda part: part.collection.nunique() == n_collections)
        for name in shared.collection.drop_duplicates():
            means = shared[shared.collection != name].groupby(setting, sort=False).change.mean()
            is_chosen = (shared[setting] == list(means.idxmax())).all(axis=1)
            rows.append(shared[is_chosen & (shared.collection == name)])
    return pd.concat(rows, ignore_index=True) if rows else effects.head(0)


def _describe_choices(chosen: pd.DataFrame) -> str:
    if chosen.empty:
        return "No setting can be chosen on other collections, so measure before you rerank."
    changes = 100 * chosen.groupby("collection").change.mean().to_numpy()
    names = chosen.apply(_setting_name, axis=1)
    stages = chosen.groupby("system", sort=False, observed=True)
    gains = {f"after {name}": 100 * of_stage.change.to_numpy() for name, of_stage in stages}
    gaining = [stage for stage, own in gains.items() if _interval(own)[0] >= _WORTHWHILE]
    others = [stage for stage in gains if stage not in gaining]
    parts = [f"{stage} by {_mean_and_interval(own)}" for stage, own in gains.items()]
    by_stage = f"; {', '.join(parts)}" if len(parts) > 1 else ""
    advice = [f"rerank in this way {' and '.join(gaining)}"] if gaining else []
    if others:
        small = f"where the interval begins below {_WORTHWHILE:+g} point"
        advice.append(f"measure on your own queries before you rerank {' or '.join(others)}, {small}")
    return (
        f"Settings that were chosen on the other collections (most often {names.value_counts().index[0]}) change the "
        f"mean of a collection by {_mean_and_interval(changes)} points (95 % interval over "
        f"{counted(len(changes), 'collection')}{by_stage}) and raise it on {int((changes > 0).sum())} of "
        f"{len(changes)}, so {', but '.join(advice)}."
    )


def _mean_and_interval(changes: np.ndarray) -> str:
    return f"{_points(changes.mean())} {format_interval(*_interval(changes), '+.1f')}"


def _points(change: float) -> str:
    return format_value(change, how="+.1f")


def _setting_name(row: pd.Series) -> str:
    parts = [counted(row.max_length, "token")] if row.max_length else []
    parts += ["with the instruction"] if row.instruction else []
    more = f" ({', '.join(parts)})" if parts else ""
    return f"{row.reranker} {_weight_name(row.weight)} at depth {row.depth}{more}"


def _weight_name(weight: float) -> str:
    if weight == 1:
        return "alone"
    return f"with a weight of {weight:g}" if weight else "with a held-out weight"


def _reorder(
    run: pd.DataFrame, pairs: pd.DataFrame, depth: int, weight: float, collection: Collection, measure: str
) -> pd.DataFrame:
    """Return *run* with its first *depth* documents in the order of the mixed score.

    *weight* 1: the reranker's score alone; 0: weights that are cross-validated by the *measure*.
    """
    if weight < 1:
        shortlist = runs.cut_run(run, depth)
        wanted, scored = (
            pd.MultiIndex.from_frame(table[["query_id", "doc_id"]].astype("str")) for table in (shortlist, pairs)
        )
        own = pairs[scored.isin(wanted)]
        own.attrs = dict(pairs.attrs)
        parts = [shortlist, own]
        if weight:
            pairs = fusion.linear(parts, [1 - weight, weight])
        else:
            pairs = fusion.cross_validated(parts, collection, measure)
    return rerank.reorder_run(run, pairs, depth)


def _check_depths(depths: Sequence[int]) -> None:
    if not depths or min(depths) < 1:
        raise MirblabError(f"depths must be whole numbers from 1, found {list(depths)}")


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


def rerank_table(curves: pd.DataFrame, depth: int, papers: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Return collections by first stages with "plain / reranked / ceiling" in percent, as in MIRB's Table 10.

    With several rerankers in the *curves* a cell has the value of each, in their order, before the ceiling; "-" stands
    for one that has no row. *papers* maps collections to the names that MIRB prints: where Table 10 has the pair of
    first stage and reranker, the distance to it follows the value in brackets.

    >>> row = {"collection": "c", "system": "s", "depth": 10, "first_stage": 0.5, "value": 0.6, "ceiling": 0.8}
    >>> rerank_table(pd.DataFrame([row | {"reranker": "a"}, row | {"reranker": "b", "value": 0.4}]), 10).s.item()
    '50.00 / 60.00 / 40.00 / 80.00'
    """
    at = curves[curves.depth == depth]
    if at.empty:
        raise MirblabError(f"no depth {depth} in the curves; found {sorted(curves.depth.unique().tolist())}")
    rerankers = at.reranker.drop_duplicates()
    printed = published.paper_lookup(papers) if papers else None

    def cell(rows: pd.DataFrame) -> str:
        first, values = rows.iloc[0], rows.set_index("reranker").value
        shown = [(first.system, first.first_stage)]
        shown += [(f"{first.system}>{name}", values.get(name, np.nan)) for name in rerankers]
        texts = []
        for name, value in shown:
            theirs = printed(name, first.collection) if printed else None
            distance = "" if theirs is None else f" ({format_value(100 * value - theirs, how='+.2f')})"
            texts.append("–" if np.isnan(value) else f"{100 * value:.2f}{distance}")
        return " / ".join([*texts, f"{100 * first.ceiling:.2f}"])

    order = at.collection.drop_duplicates(), at.system.drop_duplicates()
    cells = {key: cell(rows) for key, rows in at.groupby(["collection", "system"], sort=False)}
    wide = pd.Series(cells).rename_axis(["collection", "system"]).unstack("system")
    return wide.loc[order[0], order[1]].rename_axis(columns=None).reset_index()
