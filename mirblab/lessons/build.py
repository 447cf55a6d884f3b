"""build: write the versions of the lessons for students and for teachers."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mirblab.core import paths
from mirblab.core.errors import MirblabError, unknown
from mirblab.core.terminal import say

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
PLACEHOLDER = "...  # write here"
_ALIKE = re.compile(r"^\s*#+\s*(BEGIN|END)\s+SOLUTION\b", re.IGNORECASE)


def without_solutions(source: str, where: str = "this cell") -> str:
    """Return a cell's *source* with each solution between the marks replaced by `...  # write here`, equally indented.

    Raises MirblabError, which names *where*, for a mark that is not closed, not opened, nested or misspelt.

    >>> print(without_solutions("def two():\\n    ### BEGIN SOLUTION\\n    return 2\\n    ### END SOLUTION"))
    def two():
        ...  # write here
    """
    kept, _ = _split(source, where)
    return "\n".join(kept)


def read_solutions(source: str, where: str = "this cell") -> list[str]:
    """Return the solutions between the marks, in order; errors as for `without_solutions`.

    >>> read_solutions("### BEGIN SOLUTION\\nx = 1\\n### END SOLUTION")
    ['x = 1']
    """
    _, found = _split(source, where)
    return ["\n".join(lines) for lines in found]


def _split(source: str, where: str) -> tuple[list[str], list[list[str]]]:
    kept: list[str] = []
    found: list[list[str]] = []
    opened = 0
    for number, line in enumerate(source.split("\n"), start=1):
        mark = _mark(line, f"{where}, line {number}")
        if mark == BEGIN and opened:
            raise MirblabError(
                f"{where}, line {number}: a solution begins inside the one of line {opened}; close that first"
            )
        if mark == END and not opened:
            raise MirblabError(f"{where}, line {number}: '{END}' has no beginning; put '{BEGIN}' before it")
        if mark == BEGIN:
            opened = number
            kept.append(line[: line.index("#")] + PLACEHOLDER)
            found.append([])
        elif mark == END:
            opened = 0
        else:
            (found[-1] if opened else kept).append(line)
    if opened:
        raise MirblabError(f"{where}, line {opened}: '{BEGIN}' is never closed; put '{END}' after the solution")
    return kept, found


def _mark(line: str, where: str) -> str:
    if line.strip() in (BEGIN, END):
        return line.strip()
    if _ALIKE.match(line):
        raise MirblabError(f"{where}: '{line.strip()}' is misspelt; write '{BEGIN}' or '{END}'")
    return ""


_STAMP = "mirblab"


def lesson_notebooks(only: Sequence[str] = ()) -> list[Path]:
    """Return the notebooks of the lessons, 01 to 08, in order; with *only*, those whose names begin with one of these.

    Raises MirblabError if no lesson begins so.

    >>> [path.stem for path in lesson_notebooks(["01"])]
    ['01_what_is_a_test_collection']
    """
    found = sorted(paths.bundled_path("notebooks").glob("0[1-8]_*.ipynb"))
    for start in only:
        if not any(path.stem.startswith(start) for path in found):
            raise unknown("lesson", start, [path.stem for path in found])
    return [path for path in found if not only or path.stem.startswith(tuple(only))]


def student_version(source: Path) -> dict[str, Any]:
    """Return a lesson for students: without solutions and outputs, with clean metadata; tags and ids are kept."""
    return _version(source, is_teacher=False)


def teacher_version(source: Path) -> dict[str, Any]:
    """Return a lesson with its solutions and their marks, without outputs."""
    return _version(source, is_teacher=True)


def write_lessons(
    folder: str | Path, *, for_teacher: bool = False, only: Sequence[str] = (), force: bool = False
) -> list[Path]:
    """Write the lessons into *folder* and return the files that were written; files with the same content are skipped.

    Files that somebody edited are kept: MirblabError names them, and nothing is written, unless *force* is set. A file
    that is still as an earlier version of mirblab wrote it, with or without outputs, is replaced.
    """
    make = teacher_version if for_teacher else student_version
    books = {Path(folder) / path.name: make(path) for path in lesson_notebooks(only)}
    stale = {path: book for path, book in books.items() if not path.exists() or _cells(path) != _texts(book)}
    worked_in = [path for path in stale if path.exists() and not _is_untouched(path)]
    if worked_in and not force:
        named = "\n  ".join(map(str, worked_in))
        raise MirblabError(
            f"these files were edited, so nothing was written:\n  {named}\n"
            "choose another folder with --out, or overwrite these files with --force"
        )
    for path, book in stale.items():
        paths.write_text(path, json.dumps(book, indent=1, ensure_ascii=False) + "\n")
    return list(stale)


def _version(source: Path, is_teacher: bool) -> dict[str, Any]:
    book = json.loads(source.read_text("utf-8"))
    cells = [_clean(cell, f"{source.name}, cell {cell['id']}", is_teacher) for cell in book["cells"]]
    metadata = {key: book["metadata"][key] for key in ("kernelspec", "language_info") if key in book["metadata"]}
    made = {
        "cells": cells,
        "metadata": metadata,
        "nbformat": book["nbformat"],
        "nbformat_minor": book["nbformat_minor"],
    }
    metadata[_STAMP] = {"lesson": source.stem, "cells": _digest(_texts(made))}
    return made


def _clean(cell: dict[str, Any], where: str, is_teacher: bool) -> dict[str, Any]:
    text = _text(cell)
    is_code = cell["cell_type"] == "code"
    stripped = without_solutions(text, where) if is_code else text
    tags = cell["metadata"].get("tags")
    kept = {
        "cell_type": cell["cell_type"],
        "id": cell["id"],
        "metadata": {"tags": tags} if tags else {},
        "source": (text if is_teacher else stripped).splitlines(keepends=True),
    }
    return kept | ({"execution_count": None, "outputs": []} if is_code else {})


def _text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def _texts(book: dict[str, Any]) -> list[list[str]]:
    return [[cell["cell_type"], _text(cell)] for cell in book["cells"]]


def _digest(texts: list[list[str]]) -> str:
    return hashlib.blake2b(json.dumps(texts).encode(), digest_size=8).hexdigest()


def _cells(path: Path) -> list[list[str]] | None:
    """Return kind and text of each cell of a notebook on disk, None when it cannot be read as one."""
    try:
        return _texts(json.loads(path.read_text("utf-8")))
    except (KeyError, TypeError, ValueError):
        return None


def _is_untouched(path: Path) -> bool:
    texts = _cells(path)
    stamp = json.loads(path.read_text("utf-8"))["metadata"].get(_STAMP, {}) if texts is not None else {}
    return bool(stamp) and stamp.get("cells") == _digest(texts)


def lessons(
    out: Annotated[Path, typer.Option(help="The folder for the notebooks.")],
    teacher: Annotated[bool, typer.Option("--teacher", help="With the solutions.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Only lessons whose name begins so, such as 04; may be repeated.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Overwrite files that somebody edited.")] = False,
) -> None:
    """Write the eight lessons for students, or with --teacher including the solutions; edited files are kept."""

    for path in write_lessons(out, for_teacher=teacher, only=only or [], force=force):
        say(str(path))
