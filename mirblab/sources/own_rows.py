"""own_rows: the rows of one's own tables as documents, queries and judgements; repeats are merged, clashes refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from mirblab.errors import MirblabError, suggest
from mirblab.lines import Problems
from mirblab.sources.own_table import Cells, Table
from mirblab.sources.release import Names
from mirblab.sources.shape import Parts, Row, folded

_SEVERAL = re.compile(r"[;,|\s]+")
_MOST = 2**31


@dataclass
class Documents:
    """The corpus of a table; `of_line` says which document a row became, by its line."""

    rows: dict[str, Row] = field(default_factory=dict)
    of_line: dict[int, str] = field(default_factory=dict)


def documents(table: Table, taken: Mapping[str, str], left_out: Counter[str], *, titled: bool = True) -> Documents:
    """Return the documents of a *table*; without *titled* their titles are left out, since they become the queries.

    Without a column of ids they are numbered. Rows without a text are left out, those that repeat a document merged;
    both are counted. Raises MirblabError with the lines for an id given to two texts, and for a row without one.
    """
    found, problems = Documents(), _problems(table, taken)
    lines: dict[str, int] = {}
    for number, (line, cells) in enumerate(table.rows, 1):
        text, title = _cell(cells, taken, "text"), _cell(cells, taken, "title")
        given = _cell(cells, taken, "id") if "id" in taken else f"row-{number}"
        name = "_".join(given.split())
        row = {"_id": name, "title": title if titled else "", "text": text, "metadata": {"line": line}}
        if not text:
            left_out["rows without a text"] += 1
            continue
        if not name:
            problems.note(
                line, f"no id in the column '{taken['id']}'; give it one, or say --set id=- to number the rows"
            )
        elif name in found.rows and (found.rows[name]["text"], found.rows[name]["title"]) != (text, row["title"]):
            problems.note(line, f"the id '{name}' again, with another text; first on line {lines[name]}; give each "
                                "document an id of its own")  # fmt: skip
        else:
            left_out["rows that repeat a document (merged)"] += name in found.rows
            left_out["ids whose blanks became '_'"] += name != given
            found.rows.setdefault(name, row)
            found.of_line[line] = name
            lines.setdefault(name, line)
    problems.raise_if_any()
    return found


def beside(table: Table, taken: Mapping[str, str], found: Documents, role: str, left_out: Counter[str]) -> Parts:
    """Return the collection whose queries stand beside their documents, in the column of the *role* (query, title).

    Equal texts, but for case and blanks, are one query with several relevant documents.
    """
    asked, names, problems = _Asked(), Names(), _problems(table, taken)
    for line, cells in table.rows:
        text, doc = _cell(cells, taken, role), found.of_line.get(line, "")
        if doc and not text:
            left_out[f"documents without a {role} (no queries)"] += 1
        elif doc:
            given = _cell(cells, taken, "query_id") if role == "query" else ""
            name = asked.names.get(folded(text)) or names.new(given or f"{doc}-{role}")
            relevance = _relevance(cells, taken, line, problems) if role == "query" else 1
            asked.add(name, text, doc, relevance, line, problems)
    problems.raise_if_any()
    return asked.parts(found, left_out, table, role)


def listed(
    table: Table, taken: Mapping[str, str], found: Documents, left_out: Counter[str],
    judged: tuple[Table, Mapping[str, str]] | None = None,
) -> Parts:  # fmt: skip
    """Return the collection whose queries stand in a *table* of their own, with the documents that answer them.

    The documents are named in that table, several of them with ";" between, or in a third one, *judged*: query_id,
    doc_id and, where it is there, relevance. Raises MirblabError with file and line for ids that nothing has.
    """
    asked, problems = _Asked(), _problems(table, taken)
    for number, (line, cells) in enumerate(table.rows, 1):
        text = _cell(cells, taken, "query")
        name = "_".join(_cell(cells, taken, "query_id").split()) or f"query-{number}"
        if not text:
            left_out["rows without a query"] += 1
            continue
        if asked.texts.get(name, text) != text:
            problems.note(line, f"the query id '{name}' again, with another text; give each query an id of its own")
        asked.texts.setdefault(name, text)
        if judged is None:
            _judge(asked, name, cells, taken, line, found, problems)
    problems.raise_if_any()
    if judged is not None:
        problems = _problems(*judged)
        for line, cells in judged[0].rows:
            name = "_".join(_cell(cells, judged[1], "query_id").split())
            if name not in asked.texts:
                problems.note(
                    line, f"judges the query '{name}', which {table.path.name} lacks{suggest(name, asked.texts)}"
                )
            else:
                _judge(asked, name, cells, judged[1], line, found, problems)
        problems.raise_if_any()
    return asked.parts(found, left_out, table, "query")


def _judge(
    asked: _Asked, name: str, cells: Cells, taken: Mapping[str, str], line: int, found: Documents, problems: Problems
) -> None:
    """Add what one row says of the query *name*."""
    given = _cell(cells, taken, "doc_id")
    whole = "_".join(given.split())
    for doc in [whole] if whole in found.rows else filter(None, _SEVERAL.split(given)):
        if doc not in found.rows:
            problems.note(line, f"names the document '{doc}', which is not there{suggest(doc, found.rows)}")
        else:
            asked.add(name, asked.texts[name], doc, _relevance(cells, taken, line, problems), line, problems)


class _Asked:
    """Queries by id, their ids by folded text, and the judgements."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.judged: dict[tuple[str, str], int] = {}

    def add(self, name: str, text: str, doc: str, relevance: int, line: int, problems: Problems) -> None:
        """Take in one judgement; a pair that is judged twice must be judged alike."""
        self.texts.setdefault(name, text)
        self.names.setdefault(folded(text), name)
        if self.judged.setdefault((name, doc), relevance) != relevance:
            problems.note(line, f"judges '{doc}' for '{name}' a second time, with another relevance; keep one")

    def parts(self, found: Documents, left_out: Counter[str], table: Table, role: str) -> Parts:
        """Return the collection; a query without a judgement is left out. MirblabError when no query is left."""
        asked = {name for name, _ in self.judged}
        left_out["queries without a judgement"] += len(self.texts.keys() - asked)
        if not any(relevance > 0 for relevance in self.judged.values()):
            raise MirblabError(f"{table.path.name}: no {role} has a relevant document; judge at least one")
        queries = [{"_id": name, "text": text} for name, text in self.texts.items() if name in asked]
        pairs = [(*pair, relevance) for pair, relevance in self.judged.items()]
        return Parts(list(found.rows.values()), queries, {"test": pairs}, left_out)


def _problems(table: Table, taken: Mapping[str, str]) -> Problems:
    """Return the problems of a table: what is no id in a column that is taken for ids; further ones can be noted."""
    problems, columns = Problems(table.path), {taken[role] for role in ("id", "query_id", "doc_id") if role in taken}
    for (line, column), shown in table.no_ids.items():
        if column in columns:
            what = f"must be a text or a whole number, found {shown}; an id stands between quotes"
            problems.note(line, f"'{column}' {what}")
    return problems


def _cell(cells: Cells, taken: Mapping[str, str], role: str) -> str:
    return cells[taken[role]].strip() if role in taken else ""


def _relevance(cells: Cells, taken: Mapping[str, str], line: int, problems: Problems) -> int:
    """Return the relevance that a row gives, 1 where no column holds one; what is no whole number is noted."""
    given = _cell(cells, taken, "relevance") if "relevance" in taken else "1"
    try:
        number = float(given)
        if number.is_integer() and 0 <= number < _MOST:
            return int(number)
    except (ValueError, OverflowError):
        pass
    problems.note(
        line, f"the relevance must be a whole number from 0, found '{given}'; --set relevance=- leaves it out"
    )
    return 0
