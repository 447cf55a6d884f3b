"""readers: JSON arrays, JSON lines, TSV, Parquet and judgements, read row by row."""

from __future__ import annotations

import csv
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

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


@dataclass(frozen=True)
class FileJudgements:
    """The judgements of one file: `grades` by (query, document) in its order, and the number of repetitions."""

    path: Path
    grades: dict[tuple[str, str], int]
    n_repeated: int


def read_json_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield place ("file, line 3, item 7") and object of a JSON array or JSON lines; one at a time is in memory."""
    size = path.stat().st_size // 10**6
    with open(path, "rb") as raw, progress(size, f"reading {path.name}", "MB") as bar:
        source = _Source(path, raw, bar.update)
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
    path: Path, columns: Sequence[str] | None, unused: Counter[str], *, at_once: int = _AT_ONCE
) -> Iterator[tuple[str, Row]]:
    """Yield place ("file, line 3") and *columns* (None: all) of each row of a .jsonl, .tsv, .csv or .parquet file.

    Without a header a .tsv file has the *columns* in their order. Values of other columns are counted in *unused*.
    """
    if path.suffix == ".parquet":
        yield from _parquet(path, columns, unused, at_once)
    elif columns is None and path.suffix in (".csv", ".tsv"):
        yield from _separated(path)
    else:
        problems = LineProblems(path)
        is_tabbed = columns is not None and path.suffix == ".tsv"
        for number, record in _tabbed(path, columns or (), problems) if is_tabbed else read_records(path, problems):
            problems.raise_if_any()
            wanted = record if columns is None else columns
            unused.update(key for key in record if key not in wanted)
            yield f"{path}, line {number}", {key: record[key] for key in wanted if key in record}
        problems.raise_if_any()


def read_judgements(path: Path, highest: int) -> FileJudgements:
    """Return the judgements of a qrels file, plain or gzipped; grades go from 0 to *highest*, repeats count once."""
    problems, grades, n_repeated = LineProblems(path), dict[tuple[str, str], int](), 0
    for number, text in read_lines(path, problems):
        cells = text.split("\t") if "\t" in text else text.split()
        if len(cells) != 4:
            problems.note(number, f"expected topic, 0, document, grade, found {len(cells)} cells")
            continue
        pair, grade = (cells[0].strip(), cells[2].strip()), read_grade(cells[3], highest)
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
    texts: list[str] = read_field(record, key, list, place)
    for value in texts:
        if not isinstance(value, str):
            raise MirblabError(f"{place}: '{key}' must be a list of texts, found {str(value)[:60]!r} in it")
    return texts


def read_field(record: Mapping[str, Any], key: str, kind: type, place: str) -> Any:
    """Return the value of a required *key*, which must be of a *kind*; MirblabError with *place* otherwise."""
    if key not in record:
        raise MirblabError(f"{place}: no '{key}'; found the keys {', '.join(map(str, record)) or 'none'}")
    value = record[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise MirblabError(f"{place}: '{key}' must be of type {kind.__name__}, found {str(value)[:60]!r}")
    return value


class _Source:
    """The part of a text that is in memory, the position in it, and the line of the file."""

    def __init__(self, path: Path, raw: BinaryIO, show: Callable[[int], object]) -> None:
        self.path, self.line, self._raw, self._show, self._shown = path, 1, raw, show, 0
        self._file = io.TextIOWrapper(text_files.unpacked_stream(path, raw), encoding="utf-8-sig", newline="")
        self._text, self._at = "", 0
        self._decoder = json.JSONDecoder()

    def peek(self) -> str:
        """Return the next character that is neither blank nor comma, or "" at the end."""
        while True:
            self._go(cast(re.Match[str], _BETWEEN.match(self._text, self._at)).end())
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def step(self) -> None:
        self._go(self._at + 1)

    def item(self, number: int) -> dict[str, Any]:
        while True:
            try:
                record, end = self._decoder.raw_decode(self._text, self._at)
                text_files.check_json(record, self._text[self._at : end])
            except json.JSONDecodeError as error:
                if not (self._is_cut(error) and self._more()):
                    line = self.line + self._text.count("\n", self._at, error.pos)
                    raise MirblabError(f"{self.path}, line {line}, item {number}: broken JSON: {error.msg}") from error
            except (ValueError, RecursionError) as error:
                problem = text_files.json_error(error, self._text[self._at :])
                problem = error if isinstance(error, text_files.UnreadableJson) else problem
                line = self.line + problem.line - 1
                raise MirblabError(f"{self.path}, line {line}, item {number}: {problem}") from error
            else:
                self._go(end)
                return cast(dict[str, Any], record)

    def _is_cut(self, error: json.JSONDecodeError) -> bool:
        """Return whether more text may remove the error: it is at the end of the text here, or in an open string."""
        at_the_end = error.pos >= len(self._text) - _NEAR_THE_END
        return (at_the_end or "Unterminated string" in error.msg) and len(self._text) - self._at < _LONGEST

    def _go(self, to: int) -> None:
        self.line += self._text.count("\n", self._at, to)
        self._at = to

    def _more(self) -> bool:
        """Drop the text before the position, and at least double the rest; return whether there was more."""
        rest = self._text[self._at :]
        try:
            more = self._file.read(max(_CHUNK, len(rest)))
        except UnicodeDecodeError as error:
            raise MirblabError(f"{self.path}: not UTF-8 near byte {self._raw.tell():,}: {error.reason}") from error
        except (EOFError, OSError, zlib.error) as error:
            raise MirblabError(f"{self.path} cannot be read: {error}") from error
        megabytes = self._raw.tell() // 10**6
        self._show(megabytes - self._shown)
        self._text, self._at, self._shown = rest + more, 0, megabytes
        return bool(more)


def _tabbed(path: Path, columns: Sequence[str], problems: LineProblems) -> Iterator[tuple[int, Row]]:
    for number, text in read_lines(path, problems):
        cells = text.split("\t")
        if number == 1 and set(cells) == set(columns):
            columns = cells
        elif len(cells) != len(columns):
            problems.note(number, f"expected {', '.join(columns)} separated by tabs, found {len(cells)} cells")
        else:
            yield number, dict(zip(columns, cells, strict=True))


def _parquet(
    path: Path, columns: Sequence[str] | None, unused: Counter[str], at_once: int
) -> Iterator[tuple[str, Row]]:
    import pyarrow as arrow
    from pyarrow.parquet import ParquetFile

    number = 0
    try:
        with ParquetFile(path) as file:
            meta, names = file.metadata, file.schema_arrow.names
            size = sum(meta.row_group(group).total_byte_size for group in range(meta.num_row_groups))
            # Rows that repeat one value take no space in the file, but each takes memory.
            text_files.check_unpacked_size(path, max(size, meta.num_rows))
            wanted = list(names) if columns is None else [name for name in columns if name in names]
            if columns and not wanted:
                raise MirblabError(f"{path} has none of the columns {', '.join(columns)}; found {', '.join(names)}")
            unused.update({name: meta.num_rows for name in names if name not in wanted})
            for batch in file.iter_batches(at_once, columns=wanted, use_threads=False):
                for record in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", record
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        read = f" after row {number:,}" if number else ""
        raise MirblabError(f"{path} is no sound parquet file{read}: {error}; fetch or copy it again") from error


def _separated(path: Path) -> Iterator[tuple[str, Row]]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True)
        try:
            for row in reader:
                place = f"{path}, line {reader.line_num}"
                if None in row or None in row.values():
                    n_columns = len(reader.fieldnames or [])
                    raise MirblabError(f"{place}: the header has {n_columns} columns, the row has not")
                yield place, row
        except (csv.Error, UnicodeDecodeError) as error:
            raise MirblabError(f"{path}, line {reader.line_num}: {error}") from error


def read_grade(text: str, highest: int) -> int | None:
    """Return a grade from 0 to *highest*, also one that is written 1.0, or None for another text.

    >>> read_grade("1.0", 2), read_grade("3", 2), read_grade("high", 2)
    (1, None, None)
    """
    try:
        grade = float("" if "_" in text else text)
    except ValueError:
        return None
    return int(grade) if grade.is_integer() and 0 <= grade <= highest else None
