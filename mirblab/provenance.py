"""provenance: where the first documents of a fusion stood in its parts, and which queries gain by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from mirblab import runs
from mirblab.errors import MirblabError, unknown


def provenance(
    fused: pd.DataFrame, parts: Sequence[pd.DataFrame], query_id: str, depth: int = 10, qrels: Any = None
) -> pd.DataFrame:
    """Return where the first *depth* documents of a fusion stood in its parts: rank, doc_id, a column per part.

    A part's column has its system's name and holds ranks from 1, missing where the part does not return the
    document. With *qrels*, a Collection or a table, `relevance` follows, missing where there is no judgement.
    MirblabError for a query that the fusion lacks. Figure 3 of Zhong et al. 2022.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["b", "c"], "score": [2.0, 1.0]})
    >>> two.attrs["system"] = "dense"
    >>> provenance(two, [one, two], "q")
       rank doc_id   run  dense
    0     1      b     2      1
    1     2      c  <NA>      2
    """
    found = _of_query(runs.cut(runs.order(fused), depth), query_id)
    if not len(found):
        some = ", ".join(map(str, fused.query_id.unique()[:3])) or "none"
        raise MirblabError(f"the fused run has no query '{query_id}'; found {some} and others")
    table = pd.DataFrame({"rank": found.to_numpy(), "doc_id": found.index.astype("str")})
    for name, part in zip(column_names(parts), parts, strict=True):
        ranks = _of_query(part if "rank" in part else runs.order(part), query_id)
        table[name] = ranks.reindex(table.doc_id).astype("Int64").array
    if qrels is not None:
        judged = qrels if isinstance(qrels, pd.DataFrame) else qrels.qrels
        judged = judged[(judged.query_id.astype("str") == query_id).to_numpy()]
        relevance = pd.Series(judged.relevance.to_numpy(), judged.doc_id.astype("str"))
        table["relevance"] = relevance.reindex(table.doc_id).astype("Int64").array
    return table


def column_names(parts: Sequence[pd.DataFrame]) -> list[str]:
    """Return the parts' systems as names of columns; those that occur twice get their place behind them."""
    names = [str(part.attrs.get("system", "run")) for part in parts]
    return [name if names.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(names, 1)]


def biggest_gains(
    values: pd.DataFrame, fused: str, parts: Sequence[str], measure: str, n_queries: int = 5
) -> pd.DataFrame:
    """Return the queries that gain most by fusion over each part: part, query_id, part_value, fused_value, gain.

    At most *n_queries* for each part, the largest gain first, equal ones by query_id, and only gains above 0. *values*
    are those of one collection. MirblabError for a system or a measure that they lack.

    >>> rows = [("bm25", "p", 0.1), ("bm25", "q", 0.5), ("both", "p", 0.5), ("both", "q", 0.4)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(measure="AP", collection="c")
    >>> biggest_gains(values, "both", ["bm25"], "AP")
       part query_id  part_value  fused_value  gain
    0  bm25        p         0.1          0.5   0.4
    """
    own = values[(values.measure.astype("str") == measure) & (values.query_id.astype("str") != "")]
    if not len(own):
        raise unknown("measure", measure, values.measure.astype("str").unique())
    if own.collection.nunique() > 1:
        raise MirblabError(f"one collection at a time, found {', '.join(own.collection.astype('str').unique())}")
    table = own.astype({"system": "str", "query_id": "str"}).pivot(index="query_id", columns="system", values="value")
    for name in (fused, *parts):
        if name not in table:
            raise unknown("values of system", name, table.columns)
    rows = []
    for name in parts:
        gain = (table[fused] - table[name]).rename("gain")
        best = gain[gain > 0].sort_values(ascending=False, kind="stable").index[:n_queries]
        chosen = table.loc[best, [name, fused]].set_axis(["part_value", "fused_value"], axis=1).reset_index()
        chosen.insert(0, "part", name)
        chosen["gain"] = chosen.fused_value - chosen.part_value
        rows.append(chosen)
    return pd.concat(rows, ignore_index=True)


def _of_query(run: pd.DataFrame, query_id: str) -> pd.Series:
    """Return the ranks of a query's documents, by doc_id."""
    found = run[(run.query_id == query_id).to_numpy()]
    return pd.Series(found["rank"].to_numpy(), found.doc_id.astype("str"))
