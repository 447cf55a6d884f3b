"""readers: JSON arrays, JSON lines, TSV, Parquet and judgements, read row by row."""

from __future__ import annotations

import contextlib
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mirblab.core import text_files
from mirblab.core.errors import MirblabError
from mirblab.core.ids import id_problem
from mirblab.core.ids import read_id as read_bare_id
from mirblab.core.terminal import progress
from mirblab.core.text_files import LineProblems, read_lines, read_records
from mirblab.sources.shared.builder import Row

_CHUNK = 2**20
_LONGEST = 2**27
_BETWEEN = re.compile(r"[\s,]*")
_NEAR_THE_END = 16
_AT_ONCE = 1024
Judgement = tuple[str, str, int]


@dataclass(frozen=True)
class FileJudgements:
    """The judgements of one file: `grades` by (query, document), in its order, and how many it gives twice."""

    path: Path
    grades: dict[tuple[str, str], int]
    n_repeated: int


def read_json_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield place ("file, line 3, item 7") and content of each object of a JSON array or of JSON lines.

    Plain or gzipped; a bar shows how much of the file has been read. In memory are about one MB and one object. Raises
    MirblabError, with file, line and item, for broken JSON, for items that are no objects, for an array that does not
    end, and for objects of over 128 million characters.
    """
    with _opened(path) as read:
        source = _Source(path, read)
        in_array = source.peek() == "["
        if in_array:
            source.step()
        number = 0
        while (char := source.peek()) not in ("", "]"):
            number += 1
            place = f"{path}, line {source.line}, item {number}"
            if char != "{":
                raise MirblabError(f"{place}: expected a JSON object, found something that begins with {char!r}")
            yield place, source.item(number)
        if char == "]":
            source.step()
        if in_array != (char == "]") or source.peek():
            problem = "something after the end" if char == "]" else "the array does not end; is the file cut short?"
            raise MirblabError(f"{path}, line {source.line}: {problem}")


def read_rows(
    path: Path, columns: Sequence[str], unused: Counter[str], *, at_once: int = _AT_ONCE
) -> Iterator[tuple[str, Row]]:
    """Yield place ("file, line 3", or row) and the wanted *columns* of each row of a .jsonl, .tsv or .parquet file.

    A column that a row lacks is left out of it; how many values other columns hold is added to *unused* by name.
    A tab-separated file has the columns in their order, with or without a header. Of a parquet file *at_once* rows
    are in memory at a time. Raises MirblabError, with file and line or row, for what cannot be read.
    """
    if path.suffix == ".parquet":
        yield from _parquet(path, columns, unused, at_once)
        return
    problems = LineProblems(path)
    for number, record in _tabbed(path, columns, problems) if path.suffix == ".tsv" else read_records(path, problems):
        problems.raise_if_any()
        unused.update(key for key in record if key not in columns)
        yield f"{path}, line {number}", {key: record[key] for key in columns if key in record}
    problems.raise_if_any()


def read_judgements(path: Path, highest: int) -> FileJudgements:
    """Return the judgements of a qrels file, plain or gzipped, whose grades go from 0 to *highest*.

    Cells are separated by tabs or blanks; the second one is not looked at; a grade may be written 2.0. A judgement
    that is given twice with one grade counts once. Raises MirblabError with file and line for another number of
    cells, a grade outside the range and a pair with two grades, and for a file without judgements.
    """
    problems, grades, n_repeated = LineProblems(path), dict[tuple[str, str], int](), 0
    for number, text in read_lines(path, problems):
        cells = text.split("\t") if "\t" in text else text.split()
        if len(cells) != 4:
            problems.note(number, f"expected topic, 0, document, grade, found {len(cells)} cells")
            continue
        pair, grade = (cells[0].strip(), cells[2].strip()), _grade(cells[3], highest)
        if problem := id_problem(pair[0]) or id_problem(pair[1]):
            problems.note(number, f"the topic or the document {problem}")
        elif grade is None:
            problems.note(number, f"the grade must be a whole number from 0 to {highest}, found '{cells[3]}'")
        elif grades.setdefault(pair, grade) != grade:
            problems.note(number, f"judges '{pair[1]}' for '{pair[0]}' a second time, {grade} after {grades[pair]}")
        else:
            n_repeated += 1
    problems.raise_if_any()
    if not grades:
        raise MirblabError(f"{path} has no judgements; expected lines of topic, 0, document, grade")
    return FileJudgements(path, grades, n_repeated - len(grades))


def read_id(record: Mapping[str, object], key: str, place: str) -> str:
    """Return the id under *key*, as `core.ids.read_id` does; its MirblabError begins with *place*."""
    try:
        return read_bare_id(record, key)
    except MirblabError as error:
        raise MirblabError(f"{place}: {error}") from error


def require_object(value: object, place: str) -> Mapping[str, Any]:
    """Return *value* if it is a JSON object; MirblabError with *place* otherwise."""
    if not isinstance(value, Mapping):
        raise MirblabError(f"{place}: expected a JSON object, found {str(value)[:60]!r}")
    return value


def read_text_list(record: Mapping[str, Any], key: str, place: str) -> list[str]:
    """Return the value of a *key* that must be a list of texts; MirblabError with *place* otherwise."""
    found = read_field(record, key, list, place)
    for value in found:
        if not isinstance(value, str):
            raise MirblabError(f"{place}: '{key}' must be a list of texts, found {str(value)[:60]!r} in it")
    return found


def read_field(record: Mapping[str, Any], key: str, kind: type, place: str) -> Any:
    """Return the value of a *key* that must be there and of a *kind*; MirblabError with *place* otherwise.

    >>> read_field({"path": "A.lean"}, "path", str, "corpus.jsonl, line 1")
    'A.lean'
    """
    if key not in record:
        raise MirblabError(f"{place}: no '{key}'; found the keys {', '.join(map(str, record)) or 'none'}")
    value = record[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise MirblabError(f"{place}: '{key}' must be of type {kind.__name__}, found {str(value)[:60]!r}")
    return value


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Callable[[int], str]]:
    """Yield a function that reads so many characters, and moves the bar."""
    with open(path, "rb") as raw, contextlib.ExitStack() as stack:
        text = io.TextIOWrapper(text_files.unpacked_stream(path, raw), encoding="utf-8-sig", newline="")
        bar = stack.enter_context(progress(path.stat().st_size // 10**6, f"reading {path.name}", "MB"))
        shown = 0

        def read(size: int) -> str:
            nonlocal shown
            try:
                found = text.read(size)
            except UnicodeDecodeError as error:
                raise MirblabError(f"{path}: not UTF-8 near byte {raw.tell():,}: {error.reason}") from error
            except (EOFError, OSError, zlib.error) as error:
                raise MirblabError(f"{path} cannot be read: {error}") from error
            bar.update(raw.tell() // 10**6 - shown)
            shown = raw.tell() // 10**6
            return found

        yield read


class _Source:
    """The part of a text that is in memory, where in it we are, and in which line of the file that is."""

    def __init__(self, path: Path, read: Callable[[int], str]) -> None:
        self.path, self._read, self.line = path, read, 1
        self._text, self._at = "", 0
        self._decoder = json.JSONDecoder()

    def peek(self) -> str:
        """Return the next character that is no blank and no comma, or "" at the end."""
        while True:
            self._go(cast(re.Match[str], _BETWEEN.match(self._text, self._at)).end())
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def step(self) -> None:
        """Pass the character that `peek` showed."""
        self._go(self._at + 1)

    def item(self, number: int) -> dict[str, Any]:
        """Return the object that begins here, and pass it."""
        while True:
            try:
                found, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if not (self._is_cut(error) and self._more()):
                    line = self.line + self._text.count("\n", self._at, error.pos)
                    raise MirblabError(f"{self.path}, line {line}, item {number}: broken JSON: {error.msg}") from error
            except (ValueError, RecursionError) as error:
                raise self._unreadable(text_files.json_error(error, self._text[self._at :]), number) from error
            else:
                return self._passed(found, end, number)

    def _passed(self, found: Any, end: int, number: int) -> dict[str, Any]:
        """Return what was found from here to *end*, and pass it, unless it is nested too deeply."""
        try:
            text_files.check_json(found, self._text[self._at : end])
        except text_files.UnreadableJson as error:
            raise self._unreadable(error, number) from error
        self._go(end)
        return cast(dict[str, Any], found)

    def _unreadable(self, error: text_files.UnreadableJson, number: int) -> MirblabError:
        return MirblabError(f"{self.path}, line {self.line + error.line - 1}, item {number}: {error}")

    def _is_cut(self, error: json.JSONDecodeError) -> bool:
        """Return whether more text may mend the error: it lies at the end of what is here, or in an open string."""
        at_the_end = error.pos >= len(self._text) - _NEAR_THE_END
        return (at_the_end or "Unterminated string" in error.msg) and len(self._text) - self._at < _LONGEST

    def _go(self, to: int) -> None:
        self.line += self._text.count("\n", self._at, to)
        self._at = to

    def _more(self) -> bool:
        """Drop what has been passed, and at least double the rest; return whether there was more."""
        rest = self._text[self._at :]
        found = self._read(max(_CHUNK, len(rest)))
        self._text, self._at = rest + found, 0
        return bool(found)


def _tabbed(path: Path, columns: Sequence[str], problems: LineProblems) -> Iterator[tuple[int, Row]]:
    for number, text in read_lines(path, problems):
        cells = text.split("\t")
        if number == 1 and set(cells) == set(columns):
            columns = cells
        elif len(cells) != len(columns):
            problems.note(number, f"expected {', '.join(columns)} separated by tabs, found {len(cells)} cells")
        else:
            yield number, dict(zip(columns, cells, strict=True))


def _parquet(path: Path, columns: Sequence[str], unused: Counter[str], at_once: int) -> Iterator[tuple[str, Row]]:
    import pyarrow as arrow
    from pyarrow.parquet import ParquetFile

    number = 0
    try:
        with ParquetFile(path) as file:
            groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
            # Rows that repeat one value take no room in the file, but each one does where it is read.
            text_files.check_unpacked_size(
                path, max(sum(group.total_byte_size for group in groups), file.metadata.num_rows)
            )
            found = file.schema_arrow.names
            wanted = [name for name in columns if name in found]
            if not wanted:
                raise MirblabError(f"{path} has none of the columns {', '.join(columns)}; found {', '.join(found)}")
            unused.update({name: file.metadata.num_rows for name in found if name not in columns})
            for batch in file.iter_batches(at_once, columns=wanted, use_threads=False):
                for record in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", record
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        read = f" after row {number:,}" if number else ""
        raise MirblabError(f"{path} is no sound parquet file{read}: {error}; fetch or copy it again") from error


def _grade(text: str, highest: int) -> int | None:
    try:
        grade = float("" if "_" in text else text)
    except ValueError:
        return None
    return int(grade) if grade.is_integer() and 0 <= grade <= highest else None
