"""grades: measures that count from a given grade on, "Bpref from 3", and means of several, "mean of AP,RR"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from mirblab import measures
from mirblab.errors import MirblabError

_FROM, _MEAN = " from ", "mean of "


def evaluate(run: pd.DataFrame, qrels: Any, wanted: Sequence[str]) -> pd.DataFrame:
    """Return the values of measures as `measures.evaluate` does, each from its own smallest relevant grade.

    "Bpref from 3" counts a relevance of 3 or more; "Bpref" alone counts what the collection's card says. NTCIR-12
    has two such values for one run: partial (from 1) and full (from 3). "mean of AP',RR" is the mean of both for each
    query, as `tuning.cross_validated` chooses weights by. MirblabError for a grade that is no number.

    >>> run = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> qrels = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "relevance": [1, 3]})
    >>> evaluate(run, qrels, ["RR from 1", "RR from 3"])[["measure", "value"]].values.tolist()
    [['RR from 1', 1.0], ['RR from 3', 0.5]]
    """
    if not len(wanted):
        raise MirblabError("there is nothing to measure; name a measure, for example 'Bpref from 1'")
    summed = {name: [_graded(part) for part in name.removeprefix(_MEAN).split(",")] for name in wanted}
    asked: dict[int | None, list[str]] = {grade: [] for parts in summed.values() for _, grade in parts}
    for measure, grade in dict.fromkeys(part for parts in summed.values() for part in parts):
        asked[grade].append(measure)
    found = {grade: measures.evaluate(run, qrels, names, grade) for grade, names in asked.items()}
    return pd.concat(
        [_mean([_of(found, part) for part in parts], name) for name, parts in summed.items()], ignore_index=True
    )


def _graded(name: str) -> tuple[str, int | None]:
    """Return a measure and its smallest relevant grade, None for the collection's own."""
    measure, said, grade = name.strip().partition(_FROM)
    if said and not grade.isdecimal():
        raise MirblabError(f"no measure '{name}'; after 'from' stands a grade, for example '{measure}{_FROM}1'")
    return str(measures.parse(measure)), int(grade) if said else None


def _of(found: Mapping[int | None, pd.DataFrame], part: tuple[str, int | None]) -> pd.DataFrame:
    table = found[part[1]]
    return table[table.measure == part[0]].reset_index(drop=True)


def _mean(tables: Sequence[pd.DataFrame], name: str) -> pd.DataFrame:
    """Return the mean of tables of the same queries in the same order, under a *name*."""
    return tables[0].assign(measure=name, value=sum(table.value for table in tables) / len(tables))
