"""tables: a CSV, a TSV or JSON lines, and what its columns hold."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.core.errors import MirblabError, unknown
from mirblab.core.text_files import LineProblems, read_records

SUFFIXES = (".csv", ".tsv", ".tab", ".jsonl", ".jsonl.gz", ".ndjson")
_DELIMITERS = (",", ";", "\t", "|")
_NAMED = {"tab": "\t", "comma": ",", "semicolon": ";", "bar": "|", "\\t": "\t"}
_SHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # .xlsx and .ods, .xls
_LONGEST_CELL = 2**31 - 1
Cells = dict[str, str]
# In this order; small letters and digits only.
_ID = ("id", "docid", "docno", "documentid", "corpusid", "identifier", "key", "label", "nr", "no", "number", "pid")
_TEXT = ("text", "body", "content", "contents", "document", "passage", "answer", "proof", "statement", "description",
         "abstract", "latex", "tex", "formula")  # fmt: skip
_TITLE = ("title", "name", "heading", "headline", "subject", "caption")
_QUERY = ("query", "question", "querytext", "topic", "search", "problem", "theorem", "statement", "q")
_QUERY_ID = ("queryid", "qid", "questionid", "topicid")
_DOC = ("docid", "documentid", "corpusid", "docno", "answerid", "answerids", "relevant", "relevantid", "relevantids",
        "document", "answer", "answers", "doc", "pid")  # fmt: skip
_RELEVANCE = ("relevance", "rel", "grade", "judgement", "judgment")  # beside a document a score counts votes
_JUDGED = (*_RELEVANCE, "score", "rating")
# The roles of each kind of file, in the order in which they choose.
DOCUMENTS = {"text": _TEXT, "query": _QUERY, "query_id": _QUERY_ID, "id": _ID, "title": _TITLE,
             "relevance": _RELEVANCE}  # fmt: skip
QUERIES = {"query_id": (*_QUERY_ID, *_ID), "query": (*_QUERY, *_TEXT, *_TITLE), "doc_id": _DOC,
           "relevance": _JUDGED}  # fmt: skip
QRELS = {"query_id": (*_QUERY_ID, "query", "topic", "q"), "doc_id": (*_DOC, *_ID), "relevance": _JUDGED}
NONE = "-"


@dataclass
class Table:
    """What a file holds: the names of its columns, and (line, cells) of each row that is not empty."""

    path: Path
    columns: list[str]
    rows: list[tuple[int, Cells]]
    n_empty: int = 0
    no_ids: dict[tuple[int, str], str] = field(default_factory=dict)  # line and column of JSON that cannot be an id


def read_table(path: Path, encoding: str = "", delimiter: str = "") -> Table:
    r"""Return the table in a file with the names of its columns in the first line, or of JSON lines.

    *encoding* "": UTF-8, with or without a mark at its beginning. *delimiter* "": that of comma, semicolon, tab and
    bar which gives the first line the most cells. Quoted cells may hold line ends and, doubled, quotes. Raises
    MirblabError with file and line for text that is not in the encoding, a quote that does not close, a row of
    another length, a column without a name or named twice, and a file without rows.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_bytes(b'\xef\xbb\xbfid;text\n1;"two\nlines; quoted"\n;\n')
    ...     read_table(Path(folder, "a.csv")).rows
    [(2, {'id': '1', 'text': 'two\nlines; quoted'})]
    """
    table = _json_lines(path) if path.name.endswith((".jsonl", ".jsonl.gz", ".ndjson")) else _cells(
        path, decode_file(path, encoding), delimiter)  # fmt: skip
    kept = [(line, row) for line, row in table.rows if any(cell.strip() for cell in row.values())]
    table.n_empty, table.rows = len(table.rows) - len(kept), kept
    if not kept:
        raise MirblabError(f"{path.name} has no row with a text; below the names of the columns stands one per line")
    return table


def decode_file(path: Path, encoding: str = "") -> str:
    """Return the text of a file, UTF-8 unless an *encoding* is named; MirblabError that names line and byte."""
    raw = path.read_bytes()
    if raw.startswith(_SHEETS):
        raise MirblabError(f"{path.name} is a spreadsheet's own format; save it there as 'CSV UTF-8' and give that")
    if not encoding and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise MirblabError(f"{path.name} is UTF-16; save it as UTF-8, or say --set encoding=utf-16")
    try:
        text = raw.decode(encoding or "utf-8-sig")
    except LookupError:
        raise MirblabError(f"no encoding '{encoding}'; usual ones are utf-8, cp1252, latin-1 and utf-16") from None
    except UnicodeError as error:
        raise MirblabError(f"{path.name}{_where(raw, error, encoding)}") from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def assign_columns(
    file: str, columns: list[str], roles: Mapping[str, Iterable[str]], asked: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return which of a file's *columns* is taken for which of the *roles*; those that none fits are left out.

    *asked* says so for some roles ("-": no column), and is never overruled. A table in which one column is left over
    takes that for the text. MirblabError for a column that is asked for and not there.

    >>> assign_columns("a.csv", ["Nr.", "Body", "year"], DOCUMENTS)
    {'text': 'Body', 'id': 'Nr.'}
    >>> assign_columns("a.csv", ["question", "answer"], DOCUMENTS), assign_columns("a.csv", ["Satz"], DOCUMENTS)
    ({'text': 'answer', 'query': 'question'}, {'text': 'Satz'})
    """
    asked = {role: column for role, column in (asked or {}).items() if column}
    found = {role: _named(column, columns, role, file) for role, column in asked.items() if column != NONE}
    for role, spellings in roles.items():
        free = {_folded(name): name for name in reversed(columns) if name not in found.values()}
        fitting = [free[spelling] for spelling in spellings if spelling in free]
        if fitting and role not in asked:
            found[role] = fitting[0]
    left = [name for name in columns if name not in found.values()]
    if "text" in roles and "text" not in found and "text" not in asked and len(left) == 1:
        found["text"] = left[0]
    return {role: found[role] for role in roles if role in found}


def describe_assignment(chosen: Mapping[str, str], columns: Iterable[str]) -> str:
    """Return in words what was taken for what, and what was not used.

    >>> describe_assignment({"text": "Body"}, ["Body", "year"])
    "text = 'Body'; not used: 'year'"
    """
    unused = [f"'{name}'" for name in columns if name not in chosen.values()]
    words = ", ".join(f"{role} = '{column}'" for role, column in chosen.items()) or "nothing"
    return words + (f"; not used: {', '.join(unused)}" if unused else "")


def require_roles(file: str, chosen: Mapping[str, str], columns: list[str], *roles: str) -> None:
    """Raise MirblabError for the first of the *roles* for which no column was taken, with how to name one."""
    for role in roles:
        if role not in chosen:
            shown = ", ".join(f"'{name}'" for name in columns[:12]) or "none"
            raise MirblabError(
                f"{file}, line 1: no column looks like the {role.replace('_', ' ')}; found {shown}; name it there, or "
                f"say --set {role}=COLUMN"
            )


def _where(raw: bytes, error: UnicodeError, encoding: str) -> str:
    """Return line and byte of what cannot be decoded, and the words around it as Windows-1252 reads them."""
    if not isinstance(error, UnicodeDecodeError):
        return f" is not {encoding}: {error}"
    line, start = raw.count(b"\n", 0, error.start) + 1, max(0, error.start - 12)
    around = raw[start : error.start + 8].decode("cp1252", "replace").strip()
    found = f", line {line}: byte {error.start:,} (0x{raw[error.start]:02X}) is not {encoding or 'UTF-8'}"
    how = f"; if '{' '.join(around.split())}' looks right, say --set encoding=cp1252; else save the file as UTF-8"
    return found + (how if not encoding else "; name the right --set encoding=...")


def _cells(path: Path, text: str, delimiter: str) -> Table:
    """Return the table of a text with delimiters."""
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
            hint = f"a text with '{sign}' in it stands in double quotes"
            raise MirblabError(f"{path.name}, line {line}: {shown}; {hint}")
        rows.append((line, dict(zip(columns, cells, strict=False))))
    return Table(path, columns, rows)


def _check_columns(path: Path, columns: list[str]) -> None:
    for place, name in enumerate(columns, 1):
        if not name or columns.count(name) > 1:
            what = f"the name '{name}' stands twice" if name else f"column {place} has no name"
            raise MirblabError(f"{path.name}, line 1: {what}; the first line names each column, such as id,title,text")


def _sniffed(path: Path, text: str) -> str:
    """Return the delimiter that gives the first line the most cells; a .tsv has tabs."""
    if path.suffix.lower() in (".tsv", ".tab"):
        return "\t"
    first = [len(next(_records(path, text, sign), (1, []))[1]) for sign in _DELIMITERS]
    return _DELIMITERS[first.index(max(first))]


def _records(path: Path, text: str, sign: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each record begins, and its cells; lines without anything are left out."""
    # str.splitlines would also cut at a form feed, or at U+2028 inside a text.
    line, reader = 1, csv.reader((f"{part}\n" for part in text.split("\n")), delimiter=sign, strict=True)
    with _long_cells():
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise MirblabError(f"{path.name}, line {line}: {error}; a quote that opens a cell must close it, and "
                                   "one inside it is doubled") from error  # fmt: skip
            if cells:
                yield line, cells
            line = reader.line_num + 1


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let cells be longer than the 131,072 characters that the csv module allows."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _json_lines(path: Path) -> Table:
    """Return the objects of a .jsonl file as rows; what is no text or number is left out of them."""
    problems, rows, columns, no_ids = LineProblems(path), [], {}, {}
    for line, record in read_records(path, problems):
        cells = {str(key): shown for key, value in record.items() if (shown := _shown(value)) is not None}
        columns |= dict.fromkeys(cells)
        rows.append((line, cells))
        no_ids |= {(line, key): cells[key] for key in cells if isinstance(record[key], (bool, float))}
    problems.raise_if_any()
    whole = [(line, {name: row.get(name, "") for name in columns}) for line, row in rows]
    return Table(path, list(columns), whole, no_ids=no_ids)


def _shown(value: object) -> str | None:
    """Return a value of JSON as text: lists of texts joined by ";", None as empty; None for an object."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(one, (str, int)) and not isinstance(one, bool) for one in value):
        return ";".join(map(str, value))
    return None if isinstance(value, (dict, list)) else json.dumps(value)


def _named(column: str, columns: list[str], role: str, file: str) -> str:
    """Return the column that is asked for, whatever its case."""
    for name in columns:
        if name == column or name.casefold() == column.casefold():
            return name
    raise MirblabError(f"{file}, --set {role}={column}: {unknown('column', column, columns)}")


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.casefold())
