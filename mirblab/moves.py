"""moves: two runs of one collection side by side: how alike they are, what moved, what hangs on missing judgements."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from mirblab import likeness as alike
from mirblab import measures, significance
from mirblab.collection import Collection
from mirblab.errors import MirblabError, unknown
from mirblab.likeness import likeness, rbo
from mirblab.versus import pair

__all__ = ["READINGS", "extremes", "fresh", "likeness", "moved", "pair", "rbo", "readings"]

READINGS = {
    "not relevant": "no document without a judgement is relevant (pessimistic, and what plain measures do)",
    "all relevant": "all of them are (optimistic)",
    "only the first run's": "those that only the first run has in its first k are: the best case for it",
    "only the second run's": "those that only the second run has in its first k are: the best case for it",
}


def moved(first: pd.DataFrame, second: pd.DataFrame, collection: Collection, k: int = 10) -> pd.DataFrame:
    """Return where each document of the first *k* of either run stands in both: one row per query and document.

    Columns: query_id, doc_id, rank_a, rank_b (from 1, missing where a run does not return it), change (places
    gained from the first run to the second, missing where it is in one only), relevance (missing: nobody judged it).
    Sorted by query, then by rank in the second run, then in the first.

    >>> from mirblab.shelf import load
    >>> from mirblab.systems import system
    >>> c = load("mini-qa")
    >>> run = system("bm25").search(c)
    >>> table = moved(run, run, c, k=3)
    >>> table.columns.tolist(), bool((table.change == 0).all())
    (['query_id', 'doc_id', 'rank_a', 'rank_b', 'change', 'relevance'], True)
    """
    if k < 1:
        raise MirblabError(f"k counts documents and is at least 1; found {k}")
    table = alike.joined(first, second)
    table = table[(table.rank_a <= k) | (table.rank_b <= k)]
    judged = collection.qrels.astype({"query_id": "str", "doc_id": "str"})
    table = table.merge(judged, on=["query_id", "doc_id"], how="left")
    table["change"] = table.rank_a - table.rank_b
    numbers = ["rank_a", "rank_b", "change", "relevance"]
    table = table.sort_values(["query_id", "rank_b", "rank_a"], ignore_index=True).astype(
        dict.fromkeys(numbers, "Int64")
    )
    return table[["query_id", "doc_id", *numbers]]


def fresh(moves: pd.DataFrame, k: int = 10, relevant_from: int = 1) -> pd.DataFrame:
    """Return what each query's first *k* documents lost and won from the first run to the second.

    *moves* is from `moved` with the same *k*. Columns: query_id, and for `entered` (in the second run's first k
    only) and `left` (in the first run's only) the number of documents, of relevant ones (from *relevant_from* on),
    and of those that nobody judged: entered, entered_relevant, entered_unjudged, left, left_relevant, left_unjudged.

    >>> rows = {"query_id": "q", "doc_id": ["a", "b"], "rank_a": [1, None], "rank_b": [None, 1], "relevance": [1, None]}
    >>> fresh(pd.DataFrame(rows).convert_dtypes()).drop(columns="query_id").values.tolist()
    [[1, 0, 1, 1, 1, 0]]
    """
    before, after = ((moves[name] <= k).fillna(False).astype(bool) for name in ("rank_a", "rank_b"))
    relevant, bare = (moves.relevance >= relevant_from).fillna(False).astype(bool), moves.relevance.isna()
    counted = {}
    for name, chosen in (("entered", after & ~before), ("left", before & ~after)):
        parts = {name: chosen, f"{name}_relevant": chosen & relevant, f"{name}_unjudged": chosen & bare}
        counted |= {what: part.astype(int) for what, part in parts.items()}
    return pd.DataFrame(counted).groupby(moves.query_id.to_numpy()).sum().rename_axis("query_id").reset_index()


def extremes(values: pd.DataFrame, measure: str, first: str, second: str, n_queries: int = 5) -> pd.DataFrame:
    """Return the queries that gained and lost most from the system *first* to *second*: at most *n_queries* each.

    Columns: query_id, first, second, difference (second minus first, never 0); the largest gain first, the largest
    loss last, equal ones by query_id. *values* are those of one collection.

    >>> rows = [("a", "p", 0.1), ("a", "q", 0.5), ("b", "p", 0.5), ("b", "q", 0.5)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(measure="AP", collection="c")
    >>> extremes(values, "AP", "a", "b").values.tolist()
    [['p', 0.1, 0.5, 0.4]]
    """
    table = significance.wide(values, measure)
    for name in (first, second):
        if name not in table:
            raise unknown("system among the values", name, table.columns)
    table = table[[first, second]].set_axis(["first", "second"], axis=1).rename_axis("query_id").reset_index()
    table["difference"] = table.second - table["first"]
    table = table.sort_values("difference", ascending=False, kind="stable")
    gained, lost = table[table.difference > 0].head(n_queries), table[table.difference < 0].tail(n_queries)
    return pd.concat([gained, lost], ignore_index=True)


def readings(
    first: pd.DataFrame, second: pd.DataFrame, collection: Collection, wanted: Sequence[str], *, k: int = 10,
    seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Return the means of both runs under four readings of the documents that nobody judged (READINGS).

    Columns: reading, supposed (how many judgements were supposed), measure, first, second, difference (second minus
    first), low, high, p (paired permutation test, not corrected). Documents of the first *k* of either run without a
    judgement are supposed to have the highest relevance of the collection, or none. What is supposed relevant is
    also missed by the run that lacks it, so AP and nDCG of a run may fall. The two last readings bound the
    difference in P@k; for other measures they are two honest examples. Where all four agree on the sign, the
    comparison does not hang on these holes.

    >>> from mirblab.shelf import load
    >>> from mirblab.systems import system
    >>> c = load("mini-qa")
    >>> table = readings(*(system(name).search(c) for name in ("bm25", "minilm")), c, ["P@10"])
    >>> bool(table.difference.iloc[2] <= table.difference.iloc[0] <= table.difference.iloc[3])
    True
    """
    names = [str(run.attrs.get("system", "run")) for run in (first, second)]
    if names[0] == names[1]:
        raise MirblabError(f"both runs are called '{names[0]}'; take them through moves.pair, which tells them apart")
    table = moved(first, second, collection, k)
    bare = table[table.relevance.isna()]
    before, after = ((bare[name] <= k).fillna(False).astype(bool) for name in ("rank_a", "rank_b"))
    chosen = [before & False, before | True, before & ~after, after & ~before]
    parts = []
    for reading, mask in zip(READINGS, chosen, strict=True):
        supposed = _supposing(collection, bare[mask])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", measures.QueryWarning)
            values = pd.concat([measures.evaluate(run, supposed, list(wanted)) for run in (first, second)])
        parts.append(_compared(values, names, seed).assign(reading=reading, supposed=int(mask.sum())))
    found = pd.concat(parts, ignore_index=True)
    return found[["reading", "supposed", "measure", "first", "second", "difference", "low", "high", "p"]]


def _compared(values: pd.DataFrame, names: Sequence[str], seed: int) -> pd.DataFrame:
    """Return one row per measure: both means, their difference with its interval, and p."""
    rows = []
    for measure in values.measure.cat.categories:
        means = significance.wide(values, measure)[list(names)].mean()
        test = significance.compare(values, measure, baseline=names[0], seed=seed, n_permutations=10_000).iloc[0]
        rows.append({"measure": measure, "first": means.iloc[0], "second": means.iloc[1],
                     **{name: test[name] for name in ("difference", "low", "high", "p")}})  # fmt: skip
    return pd.DataFrame(rows)


def _supposing(collection: Collection, documents: pd.DataFrame) -> Collection:
    """Return the collection with the *documents* (query_id, doc_id) judged to be as relevant as any."""
    known = collection.qrels
    best = max([*collection.card.relevance_levels, int(known.relevance.max()) if len(known) else 1])
    more = {
        name: pd.Categorical(documents[name], known[name].cat.categories) for name in ("query_id", "doc_id")
    } | {"relevance": np.full(len(documents), best, dtype=known.relevance.dtype)}  # fmt: skip
    qrels = pd.concat([known, pd.DataFrame(more)]).sort_values(["query_id", "doc_id"], ignore_index=True)
    return replace(collection, qrels=qrels)
