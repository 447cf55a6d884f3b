"""formulas: ARQMath's formulas with their visual ids."""

from __future__ import annotations

import csv
import io
import zlib
from array import array
from collections import Counter
from collections.abc import Container, Iterator
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from mirblab.core import text_files
from mirblab.core.errors import MirblabError
from mirblab.core.ids import is_whole_number
from mirblab.core.terminal import progress
from mirblab.sources.arqmath import release
from mirblab.sources.arqmath import release as texts
from mirblab.sources.stackexchange.dump import RowProblems

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


class FormulaInstance(NamedTuple):
    """One formula in one post: `markup` is LaTeX without entities and line marks, or MathML as it stands."""

    formula_id: str
    post_id: str
    visual_id: str
    type: str
    markup: str


class PickedFormulas:
    """What a pass over the formulas finds: which one stands for each visual id, and how the ids of judgements occur.

    The formula of the smallest id stands for its visual id; those in comments are no documents, nor those that the
    lab marks as missing from their post. `occurs` has, by column, the LaTeX of the judged ids that are found in it.
    """

    def __init__(self, judged: set[str], *, everything: bool) -> None:
        """Begin with nothing; look for *judged* ids, or with *everything* for all visual ids as well."""
        self.judged, self.everything = judged, everything
        self.left_out: Counter[str] = Counter()
        self.occurs: dict[str, dict[str, str]] = {key: {} for key in KEYS}
        self._all, self._found = FirstFormulas(), dict[str, Formula]()

    def read(self, paths: list[Path], odd: RowProblems) -> None:
        """Read all rows."""
        judged, everything = self.judged, self.everything
        for row in read_formula_rows(paths, odd):
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

    def documents(self, paths: list[Path], store: texts.RowStore) -> None:
        """Put the formulas that were decided on into *store*; for all of them the files are read again."""
        found = sorted(self._found.values(), key=lambda row: int(row.visual_id))
        for row in map(Formula._make, self._again(paths)) if self.everything else found:
            text, odd = texts.clean_latex(row.formula)
            about = {"post_id": row.post_id, "formula_id": row.id, "type": row.type}
            store.add({"_id": row.visual_id, "title": "", "text": text, "metadata": about}, odd)

    def _again(self, paths: list[Path]) -> Iterator[tuple[str, ...]]:
        for row in read_formula_rows(paths, RowProblems()):
            if self._all.get(int(row[4])) == int(row[0]) and not _unfit(row):
                self._all.put(int(row[4]), -1)  # so that a row that is there twice is taken once
                yield row


class FirstFormulas:
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


def read_instances(
    origin: str | Path, representation: str = "latex", odd: RowProblems | None = None
) -> Iterator[FormulaInstance]:
    """Yield the formulas of a release in one representation, as the files have them: latex, slt or opt.

    "slt" is LaTeXML's Presentation MathML and "opt" its Content MathML; what LaTeXML could not convert has no row,
    or MathML with its error markup. `type` is title, question, answer or comment. One row is in memory at a time.
    Broken rows are noted in *odd*. Raises MirblabError and FileNotFoundError as `release.find_formula_files` and
    `formulas.read_formula_rows` do.
    """
    is_latex = representation == "latex"
    paths = release.find_formula_files(origin, representation)
    for row in map(Formula._make, read_formula_rows(paths, RowProblems() if odd is None else odd)):
        markup = texts.clean_latex(row.formula).text if is_latex else row.formula
        yield FormulaInstance(row.id, row.post_id, row.visual_id, row.type, markup)


def read_visual_ids(origin: str | Path, wanted: Container[str] | None = None) -> dict[str, str]:
    """Return visual id by formula id, for the formulas that are *wanted* (None: all, 28 million in the release).

    The files with LaTeX are read, since only they have all formulas. MirblabError when none of the wanted is there.
    """
    paths = release.find_formula_files(origin)
    rows = read_formula_rows(paths, RowProblems())
    found = {row[0]: row[4] for row in rows if wanted is None or row[0] in wanted}
    if not found:
        raise MirblabError(f"{paths[0].parent.name} has none of the formulas; are the ids those of single formulas?")
    return found


def read_formula_rows(paths: list[Path], odd: RowProblems) -> Iterator[tuple[str, ...]]:
    """Yield the columns of `Formula` of each row of all files, in order, plain or gzipped.

    Rows with another number of cells, or without whole numbers as ids, are noted in *odd* and passed over. Raises
    MirblabError for a file without the columns that are wanted, and for one that is damaged.
    """
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
            missing = [name for name in COLUMNS if name not in header]
            if missing:
                raise MirblabError(f"{path}, line 1: no column {', '.join(missing)}; found {', '.join(header)[:200]}")
            columns, n_cells = itemgetter(*[header.index(name) for name in COLUMNS]), len(header)
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
    """Return why a formula cannot stand for its visual id, or ""."""
    if row[2] == "comment":
        return IN_COMMENTS
    if "d" in row[5]:
        return NOT_IN_POST
    return "" if row[6] and not row[6].isspace() else EMPTY
