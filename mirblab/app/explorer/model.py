"""model: what the explorer knows and answers, without any widget."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from mirblab.analysis.partners import judged_grades
from mirblab.app.explorer.engines import Asked, Engine, Ranking, engine
from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection
from mirblab.display.grades import grade_meaning
from mirblab.display.text import Mark
from mirblab.encoders.entry import replace_surrogates
from mirblab.evaluation import measures
from mirblab.retrieval.systems import system

MOST_SYSTEMS = 4
FAR = 100  # how deep it is looked for a document in the other systems
MEASURES = ("RR", "nDCG@10")
_LONGEST = 10_000  # characters of a query; more are cut


@dataclass(frozen=True)
class Hit:
    """One document of a list; `relevance` is None where nobody judged it, `elsewhere` its ranks, 0 beyond `FAR`.

    `meaning` is that of its grade, "" where the registry has none.
    """

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
    """The list of one system, or the sentence that says why there is none; `marked` says what is marked."""

    name: str
    label: str
    hits: list[Hit]
    marked: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Answer:
    """What all systems found for a text, which is a query of the collection (`query_id`) or free ("")."""

    text: str
    query_id: str
    n_relevant: int
    columns: list[Column]


@dataclass
class Model:
    """A collection and one to four systems; engines are made when they are first asked, and kept.

    *tell* is called with a sentence before anything that may take long. Raises MirblabError for another number of
    systems, one given twice, or an unknown name.
    """

    collection: Collection
    systems: Sequence[str]
    depth: int = 10
    tell: Callable[[str], None] = field(default=lambda sentence: None)

    def __post_init__(self) -> None:
        """Check what was given, and note which text is which query."""
        if not isinstance(self.collection, Collection):
            raise MirblabError(f"explore wants a Collection, found {self.collection!r:.60}; load it with load() first")
        self.systems = [self.systems] if isinstance(self.systems, str) else [str(name) for name in self.systems]
        if not 1 <= len(self.systems) <= MOST_SYSTEMS or len(set(self.systems)) < len(self.systems):
            found = ", ".join(self.systems) or "none"
            raise MirblabError(f"explore compares one to {MOST_SYSTEMS} different systems side by side, found {found}")
        if self.depth < 1:
            raise MirblabError(f"depth must be at least 1, found {self.depth}")
        self.labels = {name: system(name).label for name in self.systems}
        self._engines: dict[str, Engine] = {}
        self._ready: set[str] = set()
        self._has_typed = False
        self._values: dict[tuple[str, str], pd.Series] = {}
        self._rows: dict[str, int] = {}
        for row, text in enumerate(self.collection.query_texts):
            self._rows.setdefault(one_line(text), row)

    def ask(self, text: str, query_id: str = "") -> Answer:
        """Return what each system finds for a query: that with *query_id*, else the one with this text, else the text.

        A system that fails has a sentence instead of a list. Raises MirblabError for an empty text or unknown id.
        """
        asked = self._asked(text, query_id)
        if asked.row is None and not self._has_typed:
            self._has_typed = True
            self.tell("Searching … The first free text loads the models, which takes some seconds.")
        rankings: dict[str, Ranking] = {}
        problems: dict[str, str] = {}
        for name in self.systems:
            try:
                rankings[name] = self._engine(name).search(asked, max(FAR, self.depth))
            except Exception as error:  # a system that fails must not keep the others from answering
                problems[name] = sentence(error)
        found = "" if asked.row is None else str(self.collection.query_ids[asked.row])
        judged = judged_grades(self.collection, found) if found else {}
        columns = [
            self._column(name, asked, rankings, judged) if name in rankings else self._failed(name, problems[name])
            for name in self.systems
        ]
        n_relevant = sum(grade >= self.collection.card.relevant_from for grade in judged.values())
        return Answer(asked.text, found, n_relevant, columns)

    def differences(self, one: str, other: str, measure: str) -> pd.DataFrame:
        """Return query_id, both values and their difference, the largest absolute one first, then by query_id.

        Both systems' runs of all queries are made or read for it.
        """
        first, second = self._value(one, measure), self._value(other, measure)
        table = pd.DataFrame(
            {"query_id": first.index, "one": first.to_numpy(), "other": second[first.index].to_numpy()}
        )
        table["difference"] = table.one - table.other
        order = np.argsort(-table.difference.abs().to_numpy(), kind="stable")
        return table.iloc[order].reset_index(drop=True)

    def _asked(self, text: str, query_id: str) -> Asked:
        if query_id:
            row = self.collection.query_ids.get_indexer([query_id])[0]
            return Asked(self.collection.query(query_id), int(row))
        line = one_line(text)[:_LONGEST]
        if not line:
            raise MirblabError("there is nothing to search for; type a query, or choose one of the collection's")
        row = self._rows.get(line)
        return Asked(line) if row is None else Asked(self.collection.query_texts[row], row)

    def _engine(self, name: str) -> Engine:
        """Return the engine, made ready."""
        found = engine(name, self.collection, self._engines)
        if name not in self._ready:
            self.tell(f"{self.labels[name]}: making ready {found.making} …")
            found.prepare()
            self._ready.add(name)
        return found

    def _column(self, name: str, asked: Asked, rankings: dict[str, Ranking], judged: dict[str, int]) -> Column:
        found, own = rankings[name], self._engine(name)
        best = found.positions[: self.depth].tolist()
        marked, marks = own.marked, [[] for _ in best]
        try:
            marks = own.marks(asked, best)
        except Exception as error:  # the list stands without marks
            marked = f"nothing, because of an error: {sentence(error)}"
        hits = []
        for rank, position in enumerate(best, 1):
            elsewhere = {other: _shallow(each.rank(position)) for other, each in rankings.items() if other != name}
            doc_id, text = str(self.collection.doc_ids[position]), self.collection.texts[position]
            score = float(found.scores[rank - 1])
            grade = judged.get(doc_id)
            is_relevant = grade is not None and grade >= self.collection.card.relevant_from
            meant = "" if grade is None else grade_meaning(self.collection, grade)
            hits.append(Hit(rank, doc_id, text, score, grade, is_relevant, marks[rank - 1], elsewhere, meant))
        return Column(name, self.labels[name], hits, marked if any(marks) or own.marked != marked else "")

    def _failed(self, name: str, problem: str) -> Column:
        return Column(name, self.labels[name], [], problem=problem)

    def _value(self, name: str, measure: str) -> pd.Series:
        if (name, measure) not in self._values:
            self.tell(f"{self.labels[name]}: searching for all {len(self.collection.queries):,} queries …")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", measures.QueryWarning)  # what scores 0 is shown with its value
                table = measures.evaluate(system(name).search(self.collection), self.collection, [measure])
            self._values[name, measure] = pd.Series(table.value.to_numpy(), index=table.query_id.astype("str"))
        return self._values[name, measure]


def _shallow(rank: int) -> int:
    return rank if rank <= FAR else 0


def one_line(text: str) -> str:
    """Return *text* with every run of blanks and line ends as one blank, as an input field can show it.

    >>> one_line(" a  b ")
    'a b'
    """
    return " ".join(replace_surrogates(text).split())


def sentence(error: Exception) -> str:
    """Return what went wrong in words for a reader.

    >>> sentence(MirblabError("no system 'x'")), sentence(KeyError("x"))
    ("no system 'x'", "KeyError: 'x'; this was not foreseen, and the explorer goes on")
    """
    if isinstance(error, MirblabError):
        return str(error)
    return f"{type(error).__name__}: {error}; this was not foreseen, and the explorer goes on"
