"""judgements: qrels files as TREC's tools read them, `topic 0 document grade` on each line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mirblab.errors import MirblabError
from mirblab.ids import flaw
from mirblab.lines import Problems, lines

Judgement = tuple[str, str, int]


@dataclass(frozen=True)
class Judged:
    """The judgements of one file: `grades` by (query, document), in its order, and how many it gives twice."""

    path: Path
    grades: dict[tuple[str, str], int]
    n_repeated: int


def read(path: Path, highest: int) -> Judged:
    """Return the judgements of a qrels file, plain or gzipped, whose grades go from 0 to *highest*.

    Cells are separated by tabs or blanks; the second one is not looked at; a grade may be written 2.0. A judgement
    that is given twice with one grade counts once. Raises MirblabError with file and line for another number of
    cells, a grade outside the range and a pair with two grades, and for a file without judgements.
    """
    problems, grades, n_repeated = Problems(path), dict[tuple[str, str], int](), 0
    for number, text in lines(path, problems):
        cells = text.split("\t") if "\t" in text else text.split()
        if len(cells) != 4:
            problems.note(number, f"expected topic, 0, document, grade, found {len(cells)} cells")
            continue
        pair, grade = (cells[0].strip(), cells[2].strip()), _grade(cells[3], highest)
        if problem := flaw(pair[0]) or flaw(pair[1]):
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
    return Judged(path, grades, n_repeated - len(grades))


def _grade(text: str, highest: int) -> int | None:
    try:
        grade = float("" if "_" in text else text)
    except ValueError:
        return None
    return int(grade) if grade.is_integer() and 0 <= grade <= highest else None
