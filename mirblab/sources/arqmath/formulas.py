"""formulas: the formulas of ARQMath with their visual ids."""

from __future__ import annotations

import csv
import io
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from mirblab.core import text_files
from mirblab.core.errors import MirblabError
from mirblab.core.ids import is_whole_number
from mirblab.core.terminal import progress
from mirblab.sources.arqmath import release
from mirblab.sources.stackexchange.dump import RowProblems

KEYS = ("visual_id", "old_visual_id", "id")
IN_COMMENTS, NOT_IN_POST = "formulas in comments (the task asks for posts)", "formulas that their post lacks (issue d)"
EMPTY = "formulas without LaTeX"
_LONGEST = 2**24  # a display of many rows makes more MathML than the 128 KiB that csv reads by default
_PAGE = 4096
_NEVER = 2**62


class Formula(NamedTuple):
    """The columns that are read of a row; ids are whole numbers as text."""

    id: str
    post_id: str
    type: str
    old_visual_id: str
    visual_id: str
    issue: str
    formula: str


class PickedFormulas:
    """The formula of the smallest id for each judged visual id, or with *everything* for all visual ids.

    Formulas in comments or marked as missing from their post do not count. `occurs`: LaTeX of judged ids, by column.
    """

    def __init__(self, judged: set[str], *, everything: bool) -> None:
        self.judged, self.everything = judged, everything
        self.left_out: Counter[str] = Counter()
        self.occurs: dict[str, dict[str, str]] = {key: {} for key in KEYS}
        self._all, self._judged = FirstFormulas(), dict[str, Formula]()

    def read(self, paths: list[Path], odd: RowProblems) -> None:
        """Read all rows."""
        judged, everything = self.judged, self.everything
        for row in read_formula_rows(paths, odd):
            is_judged = row[4] in judged
            if is_judged or row[0] in judged or row[3] in judged:
                for key, value in zip(KEYS, (row[4], row[3], row[0]), strict=True):
                    if value in judged:
                        self.occurs[key].setdefault(value, row[6])
            if is_judged or everything:
                if reason := _unfit(row):
                    self.left_out[reason] += 1
                elif everything:
                    self._all.put(int(row[4]), int(row[0]))
                elif row[4] not in self._judged or int(row[0]) < int(self._judged[row[4]].id):
                    self._judged[row[4]] = Formula._make(row)

    def documents(self, paths: list[Path], store: release.RowStore) -> None:
        """Put the chosen formulas into *store*; with *everything* the files are read a second time."""
        judged = sorted(self._judged.values(), key=lambda row: int(row.visual_id))
        for row in self._again(paths) if self.everything else judged:
            text, odd = release.clean_latex(row.formula)
            about = {"post_id": row.post_id, "formula_id": row.id, "type": row.type}
            store.add({"_id": row.visual_id, "title": "", "text": text, "metadata": about}, odd)

    def _again(self, paths: list[Path]) -> Iterator[Formula]:
        for row in read_formula_rows(paths, RowProblems()):
            if self._all.get(int(row[4])) == int(row[0]) and not _unfit(row):
                self._all.put(int(row[4]), -1)  # so that a row that is there twice is taken once
                yield Formula._make(row)


class FirstFormulas:
    """The smallest formula id of each visual id, in 8 bytes each, because the visual ids of ARQMath are dense."""

    def __init__(self) -> None:
        self._pages: dict[int, array[int]] = {}

    def put(self, visual_id: int, formula_id: int) -> None:
        """Store a formula unless a formula with a smaller id has its visual id."""
        page, place = divmod(visual_id, _PAGE)
        if page not in self._pages:
            self._pages[page] = array("q", [_NEVER]) * _PAGE
        if formula_id < self._pages[page][place]:
            self._pages[page][place] = formula_id

    def get(self, visual_id: int) -> int:
        """Return the smallest formula id, or a number above all ids for an unknown visual id."""
        page, place = divmod(visual_id, _PAGE)
        return self._pages[page][place] if page in self._pages else _NEVER


def read_formula_rows(paths: list[Path], odd: RowProblems) -> Iterator[tuple[str, ...]]:
    """Yield the columns of `Formula` of each row; malformed rows are noted in *odd*. MirblabError for damaged files."""
    with progress(len(paths), "reading formulas", "files") as bar:
        for path in paths:
            yield from _rows(path, odd)
            bar.update()


def _rows(path: Path, odd: RowProblems) -> Iterator[tuple[str, ...]]:
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST))
    try:
        with text_files.open_unpacked(path) as raw, io.TextIOWrapper(raw, "utf-8", newline="") as file:
            reader = csv.reader(file, delimiter="\t")
            header = next(reader, [])
            missing = [name for name in Formula._fields if name not in header]
            if missing:
                raise MirblabError(f"{path}, line 1: no column {', '.join(missing)}; found {', '.join(header)[:200]}")
            columns, n_cells = itemgetter(*map(header.index, Formula._fields)), len(header)
            for cells in reader:
                if len(cells) != n_cells:
                    odd.note(path.name, reader.line_num, "rows with another number of cells", f"{len(cells)}")
                    continue
                row = columns(cells)
                if is_whole_number(row[0]) and is_whole_number(row[4]):
                    yield row
                else:
                    odd.note(path.name, reader.line_num, "rows without whole numbers as ids")
    except (csv.Error, EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        raise MirblabError(f"{path} cannot be read: {error}; fetch or unpack it again") from error


def _unfit(row: tuple[str, ...]) -> str:
    """Return why a formula cannot represent its visual id, or ""."""
    if row[2] == "comment":
        return IN_COMMENTS
    if "d" in row[5]:
        return NOT_IN_POST
    return "" if row[6] and not row[6].isspace() else EMPTY
