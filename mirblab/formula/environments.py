"""environments: matrices, cases and aligned rows."""

from __future__ import annotations

import re

from mirblab.formula.reader import CELL, DEPTH, GROUP, REST, SINGLE, Line, Reader

# The fences of each environment; those of a layout (align and the like) have none.
FENCES = {"p": "()", "b": "[]", "v": "||", "V": "∥∥", "B": "{}", "": "", "small": "", "psmall": "()", "bsmall": "[]"}
FENCES = {f"{name}matrix": fence for name, fence in FENCES.items()} | {"cases": "{", "dcases": "{", "numcases": "{"}
BRACED = {"substack": "", "matrix": "", "eqalign": "", "pmatrix": "()", "bmatrix": "[]", "cases": "{"}
WITH_ARGUMENT = frozenset({"array", "tabular", "alignat", "alignedat", "subarray", "alignat*", "tabular*", "darray"})
# Only these take a position in brackets; the bracket behind `\begin{pmatrix}` begins its first cell.
POSITIONED = frozenset({"array", "tabular", "tabular*", "darray", "aligned", "alignedat", "gathered", "multlined"})
_UNITS, _NAMED = "pt|em|ex|mm|cm|in|mu|bp|sp|pc|dd", r"\\jot|\\[a-z]+(?:skip|amount|sep|width|height)"
_LENGTH = re.compile(rf"-?(?:[\d.]+(?:{_UNITS})|[\d.]*(?:{_NAMED}))")
SEPARATORS = frozenset(("&", "\\\\", r"\cr", r"\newline", r"\tabularnewline"))
# These only say how a formula is set; what is in them stands on the line.
PLAIN = frozenset({"equation", "equation*", "displaymath", "math", "document", "center", "dmath", "dmath*"})


class Grid:
    """A matrix that is being read: its node, its fence, and the first node of each cell by rows.

    `is_braced`: it ends with a brace, not with its environment.
    """

    __slots__ = ("node", "fence", "is_braced", "last", "rows")

    def __init__(self, node: int, fence: str, is_braced: bool = False) -> None:
        self.node, self.fence, self.is_braced, self.last = node, fence, is_braced, -1
        self.rows: list[list[int]] = [[]]


def begin(reader: Reader, line: Line, token: str) -> None:
    r"""Begin the environment of `\begin{name}`."""
    name = token[token.index("{") + 1 : -1] if "{" in token else ""
    fence = FENCES.get(name.rstrip("*"), "")
    start = reader.spans[reader.i - 1]
    if name in POSITIONED or name.endswith("matrix*"):
        position(reader)
    if name in WITH_ARGUMENT:
        braces(reader)
    if name in PLAIN:
        return
    if line.depth + len(line.fences) >= DEPTH:
        reader.problem(f"nested deeper than {DEPTH}: left out", reader.i - 1)
        reader.unopened += 1
        return
    _cell(reader, Grid(reader.put(line, f"M!{fence}", start), fence))


def braced(reader: Reader, line: Line, token: str) -> None:
    r"""Begin the rows of `\substack{...}` and of plain TeX's `\matrix{...}`."""
    if reader.tokens[reader.i] == "{" and line.depth + len(line.fences) < DEPTH:
        reader.i += 1
        fence = BRACED[token[1:]]
        _cell(reader, Grid(reader.put(line, f"M!{fence}", reader.spans[reader.i - 2]), fence, is_braced=True))


def _cell(reader: Reader, grid: Grid) -> None:
    """Begin the next cell."""
    reader.cells += 1
    reader.open(*_hook(grid), CELL, _done, grid)


def _hook(grid: Grid) -> tuple[int, str]:
    """Return where the next cell hangs: below the matrix, or behind the cell before it."""
    return (grid.last, "e") if grid.last >= 0 else (grid.node, "w")


def _done(reader: Reader, nodes: list[int], grid: Grid) -> None:
    """Go on after a cell: with the next one, with the next row, or after the environment."""
    reader.cells -= 1
    token = reader.tokens[reader.i]
    is_last = token not in SEPARATORS
    if nodes or not is_last or grid.rows[-1] or len(grid.rows) == 1:  # else an empty last row, which is dropped
        grid.last = nodes[0] if nodes else reader.add("W!", (reader.spans[reader.i][0],) * 2, *_hook(grid))
        grid.rows[-1].append(grid.last)
    if is_last:
        if token and grid.is_braced == (token == "}"):
            reader.i += 1
        else:
            reader.problem("environment not closed", reader.i)
        _finish(reader, grid)
        return
    reader.i += 1
    if token != "&":
        reader.i += reader.tokens[reader.i] == "*"
        _distance(reader)
        grid.rows.append([])
    _cell(reader, grid)


def _finish(reader: Reader, grid: Grid) -> None:
    """Fill the short rows and write the shape into the label."""
    rows = [row for row in grid.rows if row]
    columns, n_cells = max(map(len, rows)), sum(map(len, rows))
    if n_cells < columns * len(rows) <= 4 * n_cells + 100:  # a row of thousands among short ones stays as it is
        _fill(reader, rows, columns)
    reader.labels[grid.node] = f"M!{grid.fence}{len(rows)}x{columns}"


def _fill(reader: Reader, rows: list[list[int]], columns: int) -> None:
    """Put empty cells at the ends of the short rows."""
    reader.is_ordered = False
    before = -1
    for row in rows:
        if before >= 0:
            reader.parents[row[0]] = before
        while len(row) < columns:
            row.append(reader.add("W!", (reader.where[row[-1]][1],) * 2, row[-1], "e"))
        before = row[-1]


def separator(reader: Reader, line: Line, token: str) -> None:
    r"""End a cell at `&` or at a row's end; outside an environment they are left out."""
    end(reader, line, token, leave=not reader.cells)


def finish(reader: Reader, line: Line, token: str) -> None:
    r"""End an environment at `\end{name}`, and whatever is still open in it."""
    if token[token.index("{") + 1 : -1] in PLAIN if "{" in token else False:
        return
    if reader.unopened:
        reader.unopened -= 1
        return
    if not reader.cells:
        reader.problem(f"{token} without its beginning", reader.i - 1)
        return
    reader.i -= 1
    if line.kind in (GROUP,) or line.groups:
        reader.problem("brace not closed", reader.i)
    reader.close(line)


def end(reader: Reader, line: Line, token: str, leave: bool) -> None:
    """End the innermost line that a separator can end."""
    if leave or line.groups or line.kind not in (CELL, REST, SINGLE):
        return
    reader.i -= 1
    reader.close(line)


def option(reader: Reader) -> None:
    """Pass over an optional argument in brackets, if there is one and it ends soon."""
    inner = _bracketed(reader)
    reader.i += len(inner) + 2 if inner else 0


def position(reader: Reader) -> None:
    """Pass over an environment's [t], [b], [c], [l] or [r]; any other bracket belongs to the formula."""
    inner = _bracketed(reader)
    reader.i += 3 if len(inner) == 1 and inner[0] in "tbclr" else 0


def _distance(reader: Reader) -> None:
    """Pass over the length that may follow a new row; any other bracket belongs to the formula."""
    inner = _bracketed(reader)
    reader.i += len(inner) + 2 if _LENGTH.fullmatch("".join(inner)) else 0


def _bracketed(reader: Reader) -> list[str]:
    """Return the tokens in the bracket that begins here; none when there is no bracket, or a long one."""
    if reader.tokens[reader.i] != "[":
        return []
    inner = reader.tokens[reader.i + 1 : reader.i + 12]
    return inner[: inner.index("]")] if "]" in inner else []


def braces(reader: Reader) -> None:
    """Pass over an argument in braces."""
    if reader.tokens[reader.i] != "{":
        return
    level = 0
    while reader.tokens[reader.i]:
        level += {"{": 1, "}": -1}.get(reader.tokens[reader.i], 0)
        reader.i += 1
        if not level:
            return
