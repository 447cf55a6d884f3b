"""arqmath_formulas: the formulas of ARQMath's TSV files, one for each visual id, streamed."""

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

from mirblab import packed
from mirblab.errors import MirblabError
from mirblab.ids import is_number
from mirblab.progress import progress
from mirblab.sources import arqmath_texts as texts
from mirblab.sources.dump import Odd

COLUMNS = ("id", "post_id", "type", "old_visual_id", "visual_id", "issue", "formula")
KEYS = ("visual_id", "old_visual_id", "id")
IN_COMMENTS, NOT_IN_POST = "formulas in comments (the task asks for posts)", "formulas that their post lacks (issue d)"
EMPTY = "formulas without LaTeX"
_LONGEST = 2**24  # a display of many rows makes more MathML than the 128 KiB that csv reads by default
_PAGE = 4096
_NEVER = 2**62


class Formula(NamedTuple):
    """One row: the columns of `COLUMNS`, in their order; ids are whole numbers as text."""

    id: str
    post_id: str
    type: str
    old_visual_id: str
    visual_id: str
    issue: str
    formula: str


def rows(paths: list[Path], odd: Odd) -> Iterator[tuple[str, ...]]:
    """Yield the columns of `Formula` of each row of all files, in order, plain or gzipped.

    Rows with another number of cells, or without whole numbers as ids, are noted in *odd* and passed over. Raises
    MirblabError for a file without the columns that are wanted, and for one that is damaged.
    """
    with progress(len(paths), "reading formulas", "files") as bar:
        for path in paths:
            yield from _rows(path, odd)
            bar.update()


def _rows(path: Path, odd: Odd) -> Iterator[tuple[str, ...]]:
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST))
    try:
        with packed.opened(path) as raw, io.TextIOWrapper(raw, "utf-8", newline="") as file:
            reader = csv.reader(file, delimiter="\t")
            header = next(reader, [])
            missing = [name for name in COLUMNS if name not in header]
            if missing:
                raise MirblabError(f"{path}, line 1: no column {', '.join(missing)}; found {', '.join(header)[:200]}")
            columns, n_cells = itemgetter(*[header.index(name) for name in COLUMNS]), len(header)
            for cells in reader:
                if len(cells) != n_cells:
                    odd.note(path.name, reader.line_num, "rows with another number of cells", f"{len(cells)}")
                    continue
                row = columns(cells)
                if is_number(row[0]) and is_number(row[4]):
                    yield row
                else:
                    odd.note(path.name, reader.line_num, "rows without whole numbers as ids")
    except (csv.Error, EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        raise MirblabError(f"{path} cannot be read: {error}; fetch or unpack it again") from error


class First:
    """The smallest id of a formula for each visual id: 8 bytes each where these lie close together, as ARQMath's do."""

    def __init__(self) -> None:
        self._pages: dict[int, array[int]] = {}

    def put(self, visual_id: int, formula_id: int) -> None:
        """Remember a formula unless an earlier one has its visual id."""
        page, place = divmod(visual_id, _PAGE)
        if page not in self._pages:
            self._pages[page] = array("q", [_NEVER]) * _PAGE
        if formula_id < self._pages[page][place]:
            self._pages[page][place] = formula_id

    def get(self, visual_id: int) -> int:
        """Return the smallest id; one above all for a visual id that was never put."""
        page, place = divmod(visual_id, _PAGE)
        return self._pages[page][place] if page in self._pages else _NEVER


class Picked:
    """What a pass over the formulas finds: which one stands for each visual id, and how the ids of judgements occur.

    The formula of the smallest id stands for its visual id; those in comments are no documents, nor those that the
    lab marks as missing from their post. `occurs` has, by column, the LaTeX of the judged ids that are found in it.
    """

    def __init__(self, judged: set[str], *, everything: bool) -> None:
        """Begin with nothing; look for *judged* ids, or with *everything* for all visual ids as well."""
        self.judged, self.everything = judged, everything
        self.left_out: Counter[str] = Counter()
        self.occurs: dict[str, dict[str, str]] = {key: {} for key in KEYS}
        self._all, self._found = First(), dict[str, Formula]()

    def read(self, paths: list[Path], odd: Odd) -> None:
        """Read all rows."""
        judged, everything = self.judged, self.everything
        for row in rows(paths, odd):
            is_judged = row[4] in judged
            if is_judged or row[0] in judged or row[3] in judged:
                self._note(Formula._make(row))
            if is_judged or everything:
                reason = _unfit(row)
                if reason:
                    self.left_out[reason] += 1
                elif everything:
                    self._all.put(int(row[4]), int(row[0]))
                elif row[4] not in self._found or int(row[0]) < int(self._found[row[4]].id):
                    self._found[row[4]] = Formula._make(row)

    def _note(self, row: Formula) -> None:
        for key in KEYS:
            value = getattr(row, key)
            if value in self.judged:
                self.occurs[key].setdefault(value, row.formula)

    def documents(self, paths: list[Path], store: texts.Store) -> None:
        """Put the formulas that were decided on into *store*; for all of them the files are read again."""
        found = sorted(self._found.values(), key=lambda row: int(row.visual_id))
        for row in map(Formula._make, self._again(paths)) if self.everything else found:
            text, odd = texts.of_latex(row.formula)
            about = {"post_id": row.post_id, "formula_id": row.id, "type": row.type}
            store.add({"_id": row.visual_id, "title": "", "text": text, "metadata": about}, odd)

    def _again(self, paths: list[Path]) -> Iterator[tuple[str, ...]]:
        for row in rows(paths, Odd()):
            if self._all.get(int(row[4])) == int(row[0]) and not _unfit(row):
                self._all.put(int(row[4]), -1)  # so that a row that is there twice is taken once
                yield row


def _unfit(row: tuple[str, ...]) -> str:
    """Return why a formula cannot stand for its visual id, or ""."""
    if row[2] == "comment":
        return IN_COMMENTS
    if "d" in row[5]:
        return NOT_IN_POST
    return "" if row[6] and not row[6].isspace() else EMPTY
