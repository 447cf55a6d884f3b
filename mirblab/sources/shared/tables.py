"""tables: CSV, TSV or JSON lines with the usual variations, and the roles of their columns."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.core.errors import MirblabError, unknown
from mirblab.core.text_files import LineProblems, read_records
from mirblab.core.wording import first_names

SUFFIXES = (".csv", ".tsv", ".tab", ".jsonl", ".jsonl.gz", ".ndjson")
_DELIMITERS = (",", ";", "\t", "|")
_NAMED = {"tab": "\t", "comma": ",", "semicolon": ";", "bar": "|", "\\t": "\t"}
_SHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # .xlsx and .ods, .xls
_LONGEST_CELL = 2**31 - 1
Cells = dict[str, str]
# Names of columns, in order of preference; small letters and digits only.
_ID = ("id", "docid", "docno", "documentid", "corpusid", "identifier", "key", "label", "nr", "no", "number", "pid")
_TEXT = ("text", "body", "content", "contents", "document", "passage", "answer", "proof", "statement", "description",
         "abstract", "latex", "tex", "formula")  # fmt: skip
_TITLE = ("title", "name", "heading", "headline", "subject", "caption")
_QUERY = ("query", "question", "querytext", "topic", "search", "problem", "theorem", "statement", "q")
_QUERY_ID = ("queryid", "qid", "questionid", "topicid")
_DOC = ("docid", "documentid", "corpusid", "docno", "answerid", "answerids", "relevant", "relevantid", "relevantids",
        "document", "answer", "answers", "doc", "pid")  # fmt: skip
_RELEVANCE = ("relevance", "rel", "grade", "judgement", "judgment")  # in a table of documents a score counts votes
_JUDGED = (*_RELEVANCE, "score", "rating", "label")  # PyTerrier's judgements have labels, which are numbers
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?")
# The roles of each kind of file, in the order in which they choose: what may name both a query and a document is the
# document's, and a column of numbers called label is no id.
DOCUMENTS = {"text": _TEXT, "query": _QUERY, "query_id": _QUERY_ID, "id": _ID, "title": _TITLE,
             "relevance": _RELEVANCE}  # fmt: skip
QUERIES = {"relevance": _JUDGED, "doc_id": _DOC, "query_id": (*_QUERY_ID, *_ID),
           "query": (*_QUERY, *_TEXT, *_TITLE)}  # fmt: skip
QRELS = {"relevance": _JUDGED, "query_id": (*_QUERY_ID, "query", "topic", "q"), "doc_id": (*_DOC, *_ID)}
NONE = "-"


@dataclass
class Table:
    """A file's columns and non-empty rows (line, cells); `no_ids` are values that cannot be ids, by line and column."""

    path: Path
    columns: list[str]
    rows: list[tuple[int, Cells]]
    n_empty: int = 0
    no_ids: dict[tuple[int, str], str] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)

    def cell(self, cells: Cells, role: str) -> str:
        """Return the text in the column of a role, "" without such a column."""
        return cells[self.roles[role]].strip() if role in self.roles else ""

    def describe_roles(self) -> str:
        """Return in words the columns by role, and the unused ones."""
        unused = [f"'{name}'" for name in self.columns if name not in self.roles.values()]
        words = ", ".join(f"{role} = '{column}'" for role, column in self.roles.items()) or "nothing"
        return words + (f"; not used: {', '.join(unused)}" if unused else "")

    def number_columns(self) -> set[str]:
        """Return the columns that hold numbers, and nothing else but empty cells."""
        filled = {name: [cell for _, cells in self.rows if (cell := cells[name].strip())] for name in self.columns}
        return {name for name, cells in filled.items() if cells and all(map(_NUMBER.fullmatch, cells))}

    def require_roles(self, *roles: str) -> None:
        """Raise MirblabError for the first of the *roles* without a column, with the way to name one."""
        for role in roles:
            if role not in self.roles:
                shown = first_names((f"'{name}'" for name in self.columns), 12, "none")
                raise MirblabError(
                    f"{self.path.name}, line 1: no column looks like the {role.replace('_', ' ')}; found {shown}; "
                    f"name it there, or say --set {role}=COLUMN"
                )

    def id_problems(self) -> LineProblems:
        """Return the invalid values in the columns of ids, for further problems to be added."""
        problems = LineProblems(self.path)
        columns = {self.roles[role] for role in ("id", "query_id", "doc_id") if role in self.roles}
        for (line, column), shown in self.no_ids.items():
            if column in columns:
                problems.note(
                    line, f"'{column}' must be a text or a whole number, found {shown}; an id stands between quotes"
                )
        return problems


def read_table(path: Path, encoding: str = "", delimiter: str = "") -> Table:
    """Return the table in a file of JSON lines, or with the names of its columns in the first line.

    *encoding* "" is UTF-8; *delimiter* "" is the one of comma, semicolon, tab and bar that gives the first line the
    most cells. Quoted cells may hold line ends and doubled quotes. Raises MirblabError with file and line.
    """
    is_json = path.name.endswith((".jsonl", ".jsonl.gz", ".ndjson"))
    table = _json_lines(path) if is_json else _cells(path, decode_file(path, encoding), delimiter)
    kept = [(line, row) for line, row in table.rows if any(cell.strip() for cell in row.values())]
    table.n_empty, table.rows = len(table.rows) - len(kept), kept
    if not kept:
        raise MirblabError(f"{path.name} has no row with a text; each line below the names of the columns is a row")
    return table


def decode_file(path: Path, encoding: str = "") -> str:
    """Return the text of a file, UTF-8 unless an *encoding* is named; MirblabError that names line and byte."""
    raw = path.read_bytes()
    if raw.startswith(_SHEETS):
        raise MirblabError(f"{path.name} is a spreadsheet's own format; save it there as 'CSV UTF-8' and give that")
    if not encoding and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise MirblabError(f"{path.name} is UTF-16; save it as UTF-8, or say --set encoding=utf-16 to mirblab build")
    try:
        text = raw.decode(encoding or "utf-8-sig")
    except LookupError:
        raise MirblabError(f"no encoding '{encoding}'; usual ones are utf-8, cp1252, latin-1 and utf-16") from None
    except UnicodeError as error:
        raise MirblabError(f"{path.name}{_where(raw, error, encoding)}") from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def assign_columns(
    file: str,
    columns: list[str],
    roles: Mapping[str, Iterable[str]],
    named: Mapping[str, str] | None = None,
    numbers: Collection[str] = (),
) -> dict[str, str]:
    """Return columns by role: as *named* ("-": none), else by name; a single column that is left becomes the text.

    A column called label is a relevance only if it is one of those that hold *numbers*.
    """
    named = {role: column for role, column in (named or {}).items() if column}
    taken = {role: _find_column(column, columns, role, file) for role, column in named.items() if column != NONE}
    for role, spellings in roles.items():
        free = {re.sub(r"[^a-z0-9]+", "", name.casefold()): name
                for name in reversed(columns) if name not in taken.values()}  # fmt: skip
        fitting = [free[spelling] for spelling in spellings if spelling in free]
        if role == "relevance" and fitting and fitting[0] == free.get("label") and fitting[0] not in numbers:
            continue
        if fitting and role not in named:
            taken[role] = fitting[0]
    left = [name for name in columns if name not in taken.values()]
    if "text" in roles and "text" not in taken and "text" not in named and len(left) == 1:
        taken["text"] = left[0]
    return {role: taken[role] for role in roles if role in taken}


def _where(raw: bytes, error: UnicodeError, encoding: str) -> str:
    if not isinstance(error, UnicodeDecodeError):
        return f" is not {encoding}: {error}"
    line, start = raw.count(b"\n", 0, error.start) + 1, max(0, error.start - 12)
    around = raw[start : error.start + 8].decode("cp1252", "replace").strip()
    found = f", line {line}: byte {error.start:,} (0x{raw[error.start]:02X}) is not {encoding or 'UTF-8'}"
    how = (
        f"; if '{' '.join(around.split())}' looks right, write it as UTF-8: iconv -f cp1252 -t utf-8 FILE > NEW (or "
        "say --set encoding=cp1252 to mirblab build); else save the file as UTF-8"
    )
    return found + (how if not encoding else "; name the right --set encoding=...")


def _cells(path: Path, text: str, delimiter: str) -> Table:
    sign = _NAMED.get(delimiter, delimiter) or _sniffed(path, text)
    if len(sign) != 1 or sign in '"\n\r':
        raise MirblabError(f"a delimiter is one sign, or tab, comma, semicolon or bar; found '{delimiter}'")
    lines, rows = _records(path, text, sign), []
    columns = [name.strip() for name in next(lines, (1, []))[1]]
    _check_columns(path, columns)
    for line, cells in lines:
        if len(cells) > len(columns) and not any(cell.strip() for cell in cells[len(columns) :]):
            cells = cells[: len(columns)]
        if len(cells) != len(columns) and any(cell.strip() for cell in cells):
            shown = f"{len(cells)} cells, but {len(columns)} columns ({', '.join(columns)})"
            hint = f"put a text that contains '{sign}' between double quotes"
            raise MirblabError(f"{path.name}, line {line}: {shown}; {hint}")
        rows.append((line, dict(zip(columns, cells, strict=False))))
    return Table(path, columns, rows)


def _check_columns(path: Path, columns: list[str]) -> None:
    for place, name in enumerate(columns, 1):
        if not name or columns.count(name) > 1:
            what = f"the name '{name}' occurs twice" if name else f"column {place} has no name"
            raise MirblabError(f"{path.name}, line 1: {what}; the first line names each column, such as id,title,text")


def _sniffed(path: Path, text: str) -> str:
    if path.suffix.lower() in (".tsv", ".tab"):
        return "\t"
    first = [len(next(_records(path, text, sign), (1, []))[1]) for sign in _DELIMITERS]
    return _DELIMITERS[first.index(max(first))]


def _records(path: Path, text: str, sign: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the cells of each record that is not empty."""
    # str.splitlines would also cut at a form feed, or at U+2028 inside a text.
    line, reader = 1, csv.reader((f"{part}\n" for part in text.split("\n")), delimiter=sign, strict=True)
    limit = csv.field_size_limit(_LONGEST_CELL)  # the csv module allows 131,072 characters in a cell
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise MirblabError(f"{path.name}, line {line}: {error}; a quote that opens a cell must close it, and one "
                           "inside it is doubled") from error  # fmt: skip
    finally:
        csv.field_size_limit(limit)


def _json_lines(path: Path) -> Table:
    problems, rows = LineProblems(path), list[tuple[int, Cells]]()
    columns: dict[str, None] = {}
    no_ids: dict[tuple[int, str], str] = {}
    for line, record in read_records(path, problems):
        cells = {str(key): shown for key, value in record.items() if (shown := _shown(value)) is not None}
        columns |= dict.fromkeys(cells)
        rows.append((line, cells))
        no_ids |= {(line, key): cells[key] for key in cells if isinstance(record[key], (bool, float))}
    problems.raise_if_any()
    whole = [(line, {name: row.get(name, "") for name in columns}) for line, row in rows]
    return Table(path, list(columns), whole, no_ids=no_ids)


def _shown(value: object) -> str | None:
    """Return a value of JSON as text: lists joined by ";", null as ""; None for objects and nested lists."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(item, (str, int)) and not isinstance(item, bool) for item in value):
        return ";".join(map(str, value))
    return None if isinstance(value, (dict, list)) else json.dumps(value)


def _find_column(column: str, columns: list[str], role: str, file: str) -> str:
    for name in columns:
        if name == column or name.casefold() == column.casefold():
            return name
    raise MirblabError(f"{file}, --set {role}={column}: {unknown('column', column, columns)}")
