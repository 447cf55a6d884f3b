"""model: the answers of the explorer, without any widget."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from mirblab.analysis.partners import judged_grades
from mirblab.analysis.searching.engines import Engine, Query, Ranking, engine
from mirblab.analysis.searching.free_text import one_line
from mirblab.core.errors import MirblabError, check_positive
from mirblab.data.collection import Collection
from mirblab.display.grades import grade_meaning
from mirblab.display.text import Mark
from mirblab.evaluation import measures
from mirblab.retrieval.systems import search_depth, system

MOST_SYSTEMS = 4
FAR = 100  # ranks of the other systems among which a document is looked for
MEASURES = ("RR", "nDCG@10")
_LONGEST = 10_000  # characters of a query; more are cut


@dataclass(frozen=True)
class Hit:
    """One document of a list; *relevance* None: unjudged; *elsewhere*: its ranks by system, 0 beyond `FAR`."""

    rank: int
    doc_id: str
    text: str
    score: float
    relevance: int | None
    is_relevant: bool
    marks: list[Mark]
    elsewhere: dict[str, int]
    meaning: str = ""


@dataclass(frozen=True)
class Column:
    """The list of one system, or its *problem*; *marked* says what is marked."""

    name: str
    label: str
    hits: list[Hit]
    marked: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Answer:
    """The lists of all systems for a text: the query *query_id* of the collection, or free ("")."""

    text: str
    query_id: str
    n_relevant: int
    columns: list[Column]


@dataclass
class Model:
    """A collection and one to four distinct systems; *tell* gets a sentence before anything that may take long."""

    collection: Collection
    systems: Sequence[str]
    depth: int = 10
    tell: Callable[[str], None] = field(default=lambda sentence: None)

    def __post_init__(self) -> None:
        self.systems = [self.systems] if isinstance(self.systems, str) else [str(name) for name in self.systems]
        if not 1 <= len(self.systems) <= MOST_SYSTEMS or len(set(self.systems)) < len(self.systems):
            names = ", ".join(self.systems) or "none"
            raise MirblabError(f"explore compares one to {MOST_SYSTEMS} different systems side by side, found {names}")
        check_positive(depth=self.depth)
        self.labels = {name: system(name).label for name in self.systems}
        self._engines: dict[str, Engine] = {}
        self._prepared: set[str] = set()
        self._has_typed = False
        self._values: dict[tuple[str, str], pd.Series] = {}
        self._rows: dict[str, int] = {}
        for row, text in enumerate(self.collection.query_texts):
            self._rows.setdefault(one_line(text), row)

    def ask(self, text: str, query_id: str = "") -> Answer:
        """Return each system's list, or problem, for the query with *query_id*, else with this text, else the text."""
        query = self._query(text, query_id)
        if query.row is None and not self._has_typed:
            self._has_typed = True
            self.tell("Searching … The first free text loads the models, which takes some seconds.")
        rankings: dict[str, Ranking] = {}
        problems: dict[str, str] = {}
        for name in self.systems:
            try:
                rankings[name] = self._engine(name).search(query, max(FAR, self.depth))
            except Exception as error:  # a system that fails must not keep the others from answering
                problems[name] = sentence(error)
        query_id = "" if query.row is None else str(self.collection.query_ids[query.row])
        grades = judged_grades(self.collection, query_id) if query_id else {}
        columns = [
            Column(name, self.labels[name], [], problem=problems[name])
            if name in problems
            else self._column(name, query, rankings, grades)
            for name in self.systems
        ]
        n_relevant = sum(grade >= self.collection.card.relevant_from for grade in grades.values())
        return Answer(query.text, query_id, n_relevant, columns)

    def differences(self, one: str, other: str, measure: str) -> pd.DataFrame:
        """Return query_id, both values and their difference, the largest absolute difference first."""
        first, second = self._value(one, measure), self._value(other, measure)
        table = pd.DataFrame(
            {"query_id": first.index, "one": first.to_numpy(), "other": second[first.index].to_numpy()}
        )
        table["difference"] = table.one - table.other
        order = np.argsort(-table.difference.abs().to_numpy(), kind="stable")
        return table.iloc[order].reset_index(drop=True)

    def _query(self, text: str, query_id: str) -> Query:
        if query_id:
            (row,) = self.collection.query_ids.get_indexer(pd.Index([query_id]))
            return Query(self.collection.query(query_id), int(row))
        line = one_line(text)[:_LONGEST]
        if not line:
            raise MirblabError("there is nothing to search for; type a query, or choose one of the collection's")
        known = self._rows.get(line)
        return Query(line) if known is None else Query(self.collection.query_texts[known], known)

    def _engine(self, name: str) -> Engine:
        prepared = engine(name, self.collection, self._engines)
        if name not in self._prepared:
            self.tell(f"{self.labels[name]}: preparing {prepared.preparation} …")
            prepared.prepare()
            self._prepared.add(name)
        return prepared

    def _column(self, name: str, query: Query, rankings: dict[str, Ranking], grades: dict[str, int]) -> Column:
        ranking, own_engine, hits = rankings[name], self._engine(name), []
        positions = ranking.positions[: self.depth].tolist()
        try:
            marks = own_engine.marks(query, positions)
            marked = own_engine.marked if any(marks) else ""
        except Exception as error:  # the list is shown without marks
            marks = [[] for _ in positions]
            marked = f"nothing, because of an error: {sentence(error)}"
        for rank, (position, score) in enumerate(zip(positions, ranking.scores, strict=False), 1):
            ranks = {other: each.rank(position) for other, each in rankings.items() if other != name}
            elsewhere = {other: rank_there if rank_there <= FAR else 0 for other, rank_there in ranks.items()}
            doc_id, text = str(self.collection.doc_ids[position]), self.collection.texts[position]
            grade = grades.get(doc_id)
            is_relevant = grade is not None and grade >= self.collection.card.relevant_from
            meaning = "" if grade is None else grade_meaning(self.collection, grade)
            hit = Hit(rank, doc_id, text, float(score), grade, is_relevant, marks[rank - 1], elsewhere, meaning)
            hits.append(hit)
        return Column(name, self.labels[name], hits, marked)

    def _value(self, name: str, measure: str) -> pd.Series:
        if (name, measure) not in self._values:
            self.tell(f"{self.labels[name]}: searching for all {len(self.collection.queries):,} queries …")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", measures.QueryWarning)  # what scores 0 is shown with its value
                run = system(name).search(self.collection, search_depth([measure]))
                table = measures.evaluate(run, self.collection, [measure])
            self._values[name, measure] = pd.Series(table.value.to_numpy(), index=table.query_id.astype("str"))
        return self._values[name, measure]


def sentence(error: Exception) -> str:
    """Return an error in words for a reader.

    >>> sentence(MirblabError("no system 'x'")), sentence(KeyError("x"))
    ("no system 'x'", "KeyError: 'x'; this was not foreseen, and the explorer goes on")
    """
    if isinstance(error, MirblabError):
        return str(error)
    return f"{type(error).__name__}: {error}; this was not foreseen, and the explorer goes on"
