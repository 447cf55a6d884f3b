"""marks: where a solution begins and ends in a cell, and the cell without it."""

from __future__ import annotations

import re

from mirblab.errors import MirblabError

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
PLACEHOLDER = "...  # write here"
_ALIKE = re.compile(r"^\s*#+\s*(BEGIN|END)\s+SOLUTION\b", re.IGNORECASE)


def without_solutions(source: str, where: str = "this cell") -> str:
    """Return a cell's *source* with `...  # write here` for what stands between the marks, equally indented.

    MirblabError, naming *where*, for a mark that is not closed, not opened, nested or misspelt.

    >>> print(without_solutions("def two():\\n    ### BEGIN SOLUTION\\n    return 2\\n    ### END SOLUTION"))
    def two():
        ...  # write here
    """
    kept, _ = _split(source, where)
    return "\n".join(kept)


def solutions(source: str, where: str = "this cell") -> list[str]:
    """Return what stands between each pair of marks, in order; errors as for `without_solutions`.

    >>> solutions("### BEGIN SOLUTION\\nx = 1\\n### END SOLUTION")
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
            raise MirblabError(f"{where}, line {number}: a solution begins inside the one of line {opened}; close that")
        if mark == END and not opened:
            raise MirblabError(f"{where}, line {number}: '{END}' closes nothing; put '{BEGIN}' before it")
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
        raise MirblabError(f"{where}: '{line.strip()}' is no mark; write '{BEGIN}' or '{END}'")
    return ""
