"""foreign: values that other tools measured, as rows checked one by one, and those in a CSV."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mirblab import measures
from mirblab.errors import MirblabError, suggest

CSV_COLUMNS = ("system", "collection", "measure", "value", "query_id")
Row = tuple[str, str, str, str, float]  # system, collection, measure, query_id ("": a mean), value


@dataclass
class Found:
    """Values that were read, where each stands, and what was left out, counted by reason.

    >>> found = Found()
    >>> found.add(("theirs", "stacks-qa", "RR", "", 0.5), "a.csv, line 2")
    >>> found.rows
    {('theirs', 'stacks-qa', 'RR', ''): (0.5, 'a.csv, line 2')}
    """

    rows: dict[tuple[str, str, str, str], tuple[float, str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row, where: str) -> None:
        """Keep a row; MirblabError naming both places when it is given twice, and for a value that cannot be one."""
        *key, value = row
        shown = f"{key[2]} of {key[0]} on {key[1]}" + (f", query {key[3]}" if key[3] else "")
        if tuple(key) in self.rows:
            raise MirblabError(f"{where}: {shown} stands in {self.rows[tuple(key)][1]} already; keep one of them")
        if not math.isfinite(value):
            raise MirblabError(f"{where}: {shown} is {value}; expected a number")
        if not 0 <= value <= 1 and not key[2].startswith("Rank"):
            raise MirblabError(f"{where}: {shown} is {value:g}, not from 0 to 1; for percent say so with --percent")
        self.rows[tuple(key)] = (value, where)

    def merge(self, other: Found) -> None:
        """Take in what another file holds."""
        for key, (value, where) in other.rows.items():
            self.add((*key, value), where)
        self.left_out += other.left_out


def number(value: object, where: str, percent: bool = False) -> float:
    """Return a value as a float, divided by 100 where it was given in *percent*; MirblabError for anything else.

    >>> number("62.5", "a.csv, line 2", percent=True)
    0.625
    """
    try:
        if isinstance(value, bool) or "_" in str(value):  # Python would take 0_1 for 1
            raise ValueError
        return float(value) / (100 if percent else 1)
    except (TypeError, ValueError, OverflowError):
        raise MirblabError(f"{where}: expected a number, found {value!r:.60}") from None


def table(path: Path, system: str = "", collection: str = "", percent: bool = False) -> Found:
    """Return the values in a CSV (`.tsv`: tabs) with the columns system, collection, measure, value, query_id.

    *system* and *collection* stand in for columns that are not there; without query_id a value is a mean. Raises
    MirblabError with file and line, and nothing is taken from a file that has one bad line.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("system,measure,value\\ntheirs,nDCG@10,0.4\\n")
    ...     list(table(Path(folder, "a.csv"), collection="stacks-qa").rows)
    [('theirs', 'stacks-qa', 'nDCG@10', '')]
    """
    found, given = Found(), {"system": system, "collection": collection}
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True)
            header = _checked_header([name.strip() for name in reader.fieldnames or []], given, path)
            reader.fieldnames = header
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                if None in row or None in row.values():
                    n_cells = sum(value is not None for value in row.values()) + len(row.get(None, [])) - (None in row)
                    raise MirblabError(f"{where}: {n_cells} cells, but {len(header)} columns: {', '.join(header)}")
                found.add(_row({key: value.strip() for key, value in row.items()}, given, where, percent), where)
    except (UnicodeDecodeError, csv.Error) as error:
        raise MirblabError(f"{path} cannot be read as CSV in UTF-8: {error}; save it so") from error
    if not found.rows:
        raise MirblabError(f"{path} has a header and no values; put a row for each value below it")
    return found


def _checked_header(header: list[str], given: Mapping[str, str], path: Path) -> list[str]:
    """Return the header of a CSV; MirblabError for what it lacks, and for columns that nobody would read."""
    shown = ", ".join(header) or "nothing"
    for name in header:
        if name not in CSV_COLUMNS or header.count(name) > 1:
            raise MirblabError(f"{path}, line 1: the column '{name}' is not one of {', '.join(CSV_COLUMNS)}, each once"
                               f"{suggest(name, CSV_COLUMNS)}")  # fmt: skip
    for name in CSV_COLUMNS[:4]:
        if name in header and given.get(name):
            raise MirblabError(f"{path}, line 1: has a column '{name}', so --{name} would contradict it; leave it out")
        if name not in header and not given.get(name):
            more = f", or --{name}" if name in given else ""
            raise MirblabError(f"{path}, line 1: no column '{name}'{more}; found {shown}")
    return header


def _row(cells: dict[str, str], given: Mapping[str, str], where: str, percent: bool) -> Row:
    """Return one line of a CSV as a row; a measure is spelled as ours, a blank cell is refused."""
    cells = {**{key: value for key, value in given.items() if value}, **cells}
    blank = [name for name in CSV_COLUMNS[:4] if not cells[name]]
    if blank:
        raise MirblabError(f"{where}: '{blank[0]}' is empty")
    try:
        measure = str(measures.parse(cells["measure"]))
    except MirblabError as error:
        raise MirblabError(f"{where}: {error}") from None
    is_rank = measure.startswith("Rank")
    value = number(cells["value"], f"{where}, column 'value'", percent and not is_rank)
    return cells["system"], cells["collection"], measure, cells.get("query_id", ""), value
