"""build: write the versions of the lessons for students and for teachers."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from mirblab.core import atomic_files, paths
from mirblab.core.errors import MirblabError, unknown
from mirblab.core.terminal import say

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
PLACEHOLDER = "...  # write here"
REMOVED = "remove-cell"  # tag of a cell that only the batch needs; Jupyter Book leaves such cells out, too
_MISSPELT = re.compile(r"^\s*#+\s*(BEGIN|END)\s+SOLUTION\b", re.IGNORECASE)


def without_solutions(source: str, where: str = "this cell") -> str:
    """Return a cell's *source* with `...  # write here` for each solution; MirblabError with *where* for bad marks.

    >>> without_solutions("half = ...\\n### BEGIN SOLUTION\\nhalf = 1 / 2\\n### END SOLUTION")
    'half = ...  # write here'
    """
    kept: list[str] = []
    opened = 0
    for number, line in enumerate(source.split("\n"), start=1):
        mark, here = line.strip(), f"{where}, line {number}"
        if mark == BEGIN and opened:
            raise MirblabError(f"{here}: a solution begins inside the one of line {opened}; close that first")
        if mark == END and not opened:
            raise MirblabError(f"{here}: '{END}' has no beginning; put '{BEGIN}' before it")
        if mark == BEGIN:
            opened = number
            if kept and kept[-1].endswith(" = ..."):  # the value that the solution replaces
                kept[-1] = kept[-1].removesuffix("...") + PLACEHOLDER
            else:
                kept.append(line[: line.index("#")] + PLACEHOLDER)
        elif mark == END:
            opened = 0
        elif _MISSPELT.match(line):
            raise MirblabError(f"{here}: '{mark}' is misspelt; write '{BEGIN}' or '{END}'")
        elif not opened:
            kept.append(line)
    if opened:
        raise MirblabError(f"{where}, line {opened}: '{BEGIN}' is never closed; put '{END}' after the solution")
    return "\n".join(kept)


_STAMP = "mirblab"
_SOLUTIONS = (
    "This is the students' version; `mirblab lessons --out solutions --teacher` writes the lessons with solutions."
)


def lesson_notebooks(only: Sequence[str] = ()) -> list[Path]:
    """Return the lessons' notebooks in order, or those whose names begin with one of *only*; MirblabError for none."""
    lessons = sorted(paths.bundled_path("notebooks").glob("0[1-9]_*.ipynb"))
    for start in only:
        if not any(path.stem.startswith(start) for path in lessons):
            raise unknown("lesson", start, [path.stem for path in lessons])
    return [path for path in lessons if not only or path.stem.startswith(tuple(only))]


def write_lessons(
    folder: str | Path,
    *,
    for_teacher: bool = False,
    only: Sequence[str] = (),
    force: bool = False,
    keep: bool = False,
) -> list[Path]:
    """Write the lessons into *folder* and return the files that were written; unchanged ones are skipped.

    If somebody edited a file, MirblabError names it and nothing is written; with *force* it is overwritten, with *keep*
    only the others are written. So it is with students' versions in place of the teacher's, and the other way round.
    Files as an earlier version of mirblab wrote them, with or without outputs, are replaced. MirblabError for the
    folder of the lessons' sources.
    """
    if force and keep:
        raise MirblabError("force overwrites files that somebody edited and keep leaves them; give one of the two")
    if Path(folder).resolve() == paths.bundled_path("notebooks").resolve():
        raise MirblabError(
            f"{folder} has the notebooks that the lessons are made from; choose another folder with --out"
        )
    books = {Path(folder) / path.name: lesson_version(path, for_teacher) for path in lesson_notebooks(only)}
    existing = {path: _read_digests(path) for path in books if path.exists()}
    stale = [path for path, book in books.items() if path not in existing or existing[path].now != digest_cells(book)]
    edited = [path for path in stale if path in existing and existing[path].now != existing[path].written]
    others = [path for path in stale if path in existing and existing[path].for_teacher is (not for_teacher)]
    if keep:
        stale = [path for path in stale if path not in edited and path not in others]
    elif (edited or others) and not force:
        whose = "the students'" if for_teacher else "the teacher's"
        what = "were edited" if edited else f"are {whose} version"
        named = "\n  ".join(map(str, edited or others))
        raise MirblabError(
            f"these files {what}, so nothing was written:\n  {named}\n"
            "choose another folder with --out, leave these as they are with --keep, or overwrite them with --force"
        )
    for path in stale:
        atomic_files.write_text(path, json.dumps(books[path], indent=1, ensure_ascii=False) + "\n")
    return stale


def lesson_version(source: Path, for_teacher: bool) -> dict[str, Any]:
    """Return a lesson with clean metadata and without outputs; solutions and their marks are for teachers only."""
    book = json.loads(source.read_text("utf-8"))
    shown = [cell for cell in book["cells"] if REMOVED not in cell["metadata"].get("tags", [])]
    cells = [_clean(cell, f"{source.name}, cell {cell['id']}", for_teacher) for cell in shown]
    if not for_teacher:
        cells[0]["source"] += ["\n", "\n", _SOLUTIONS]
    metadata = {key: book["metadata"][key] for key in ("kernelspec", "language_info") if key in book["metadata"]}
    metadata[_STAMP] = {"lesson": source.stem, "cells": digest_cells({"cells": cells}), "for_teacher": for_teacher}
    formats = {key: book[key] for key in ("nbformat", "nbformat_minor")}
    return {"cells": cells, "metadata": metadata, **formats}


def _clean(cell: dict[str, Any], where: str, for_teacher: bool) -> dict[str, Any]:
    text, is_code, tags = "".join(cell["source"]), cell["cell_type"] == "code", cell["metadata"].get("tags")
    stripped = without_solutions(text, where) if is_code else text  # checks the marks for teachers, too
    if not is_code:  # a copy elsewhere has the other lessons beside it, but not the other notebooks
        text = stripped = re.sub(r"\[(`\w+`)\]\(([1-9]\w+)\.ipynb\)", r"\1", text)
    kept = {
        "cell_type": cell["cell_type"],
        "id": cell["id"],
        "metadata": {"tags": tags} if tags else {},
        "source": (text if for_teacher else stripped).splitlines(keepends=True),
    }
    return kept | ({"execution_count": None, "outputs": []} if is_code else {})


def digest_cells(book: dict[str, Any]) -> str:
    """Return the hash of what the cells of a notebook hold, without outputs and metadata."""
    texts = [[cell["cell_type"], "".join(cell["source"])] for cell in book["cells"]]
    return hashlib.blake2b(json.dumps(texts).encode(), digest_size=8).hexdigest()


class _Written(NamedTuple):
    """The digest of a notebook's content *now*, the one it was *written* with, and for whom (None: not known)."""

    now: str
    written: str
    for_teacher: bool | None


def _read_digests(path: Path) -> _Written:
    """Return what is known of a file; its content is "unreadable" where it is no notebook."""
    try:
        book = json.loads(path.read_text("utf-8"))
        stamp = book["metadata"].get(_STAMP, {})
        return _Written(digest_cells(book), str(stamp.get("cells", "")), stamp.get("for_teacher"))
    except (AttributeError, KeyError, TypeError, ValueError):
        return _Written("unreadable", "", None)


def lessons(
    out: Annotated[Path, typer.Option(help="The folder for the notebooks.")],
    teacher: Annotated[bool, typer.Option("--teacher", help="With the solutions.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Only lessons whose name begins so, such as 04; may be repeated.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that somebody edited.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave files that somebody edited, write the others.")] = False,
) -> None:
    """Write the nine lessons for students, or with --teacher including the solutions; edited files are kept."""
    for path in write_lessons(out, for_teacher=teacher, only=only or [], force=force, keep=keep):
        say(str(path))
