"""query_bounds: what a query's values would be if somebody judged what nobody has."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError
from mirblab.measures import evaluate
from mirblab.one_query import OneQuery

_MOST = 10  # unjudged documents: 1,024 ways to judge them


def bounds(one: OneQuery, measures: list[str], k: int = 10) -> pd.DataFrame:
    """Return each measure as it is and over all ways of judging the unjudged among the first *k* documents.

    Columns: system, measure, value, unjudged (how many of the first k, at most ten), none_relevant (all judged 0),
    all_relevant (all of the highest grade that the query's collection has), low and high (over every subset of them
    being relevant, the others judged 0, and the value as it is). An nDCG may fall when more becomes relevant, since
    the best possible ranking grows as well. MirblabError for k outside 1 to 10.

    >>> from mirblab.collection import Collection
    >>> from mirblab.one_query import one_query
    >>> from mirblab.shelf import load
    >>> from mirblab.systems import system
    >>> c = load("mini-qa")
    >>> table = bounds(one_query(c, c.query_ids[0], [system("bm25").search(c)]), ["P@10"])
    >>> bool(table.low[0] <= table.value[0] <= table.high[0])
    True
    """
    if not 1 <= k <= _MOST:
        raise MirblabError(f"bounds look at the first 1 to {_MOST} documents, since each doubles the ways; found {k}")
    levels = [
        *one.collection.card.relevance_levels,
        int(one.collection.qrels.relevance.max()) if len(one.collection.qrels) else 1,
    ]
    grade = max(1, one.collection.card.relevant_from, *levels)
    return pd.concat([_of_system(one, name, measures, k, grade) for name in one.found], ignore_index=True)


def _of_system(one: OneQuery, system: str, measures: list[str], k: int, grade: int) -> pd.DataFrame:
    own = one.found[system]
    holes = [name for name in own.doc_id.head(k) if name not in one.grades]
    ways = (np.arange(2 ** len(holes))[:, None] >> np.arange(len(holes))) & 1
    known = pd.DataFrame({"doc_id": list(one.grades), "relevance": list(one.grades.values())})
    names = [f"{way:04d}" for way in range(len(ways))]
    judged = [known.assign(query_id="as it is")]
    for name, way in zip(names, ways, strict=True):
        more = pd.DataFrame({"doc_id": holes, "relevance": (grade * way).astype(int)})
        judged.append(pd.concat([known, more]).assign(query_id=name))
    run = pd.concat([own.assign(query_id=name) for name in ("as it is", *names)], ignore_index=True)
    values = _evaluated(run, pd.concat(judged, ignore_index=True), measures, one.collection.card.relevant_from)
    rows = []
    for measure in measures:
        part = values[values.measure == measure].set_index("query_id").value
        ends = float(part.min()), float(part.max())
        row = (part["as it is"], len(holes), part[names[0]], part[names[-1]], *ends)
        rows.append((system, measure, *row))
    names = ["system", "measure", "value", "unjudged", "none_relevant", "all_relevant", "low", "high"]
    return pd.DataFrame(rows, columns=names)


def _evaluated(run: pd.DataFrame, qrels: pd.DataFrame, measures: list[str], relevant_from: int) -> pd.DataFrame:
    """Return the values; that a query without a relevant document scores 0 needs no warning here."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = evaluate(run[["query_id", "doc_id", "score"]], qrels, measures, relevant_from)
    return values.astype({"query_id": "str", "measure": "str"})
