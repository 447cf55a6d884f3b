"""fences: brackets, bars and environments of LaTeX."""

from __future__ import annotations

import re

from mirblab.formula.latex.reader import ENDS, GONE, MAX_DEPTH, End, Fence, Line, Reader, handles
from mirblab.formula.latex.symbols import BARS, CLOSERS, COMMANDS, OPENERS

Span = tuple[int, int]
_NAMES = "langle rangle lfloor rfloor lceil rceil uparrow downarrow backslash lgroup rgroup llbracket rrbracket"
_COMMANDS = {command: COMMANDS[command] for command in [f"\\{name}" for name in _NAMES.split()]}
_SIDES = BARS | OPENERS | CLOSERS | _COMMANDS | {"<": "⟨", ">": "⟩", "/": "/"}
_BARS = (Fence.BAR, Fence.DOUBTFUL)
_PARTING = frozenset("=<>≤≥≠≈∼≡∈⊂⊆→⇒⇔⟹⟺,;:∣")
# The fences of each environment; those of a layout (align and the like) have none.
_MATRICES = {"p": "()", "b": "[]", "v": "||", "V": "∥∥", "B": "{}", "": "", "small": "", "psmall": "()", "bsmall": "[]"}
_CASES = {"cases": "{", "dcases": "{", "numcases": "{"}
_CLOSED_CASES = frozenset({"rcases", "drcases"})  # a brace stands behind them, as behind \left. and \right\}
FENCES = {f"{name}matrix": fence for name, fence in _MATRICES.items()} | _CASES
BRACED = {"substack": "", "matrix": "", "eqalign": "", "pmatrix": "()", "bmatrix": "[]", "cases": "{"}
WITH_ARGUMENT = frozenset({"array", "tabular", "alignat", "alignedat", "subarray", "alignat*", "tabular*", "darray"})
# Only these take a position in brackets; the bracket behind `\begin{pmatrix}` begins its first cell.
POSITIONED = frozenset({"array", "tabular", "tabular*", "darray", "aligned", "alignedat", "gathered", "multlined"})
_UNITS, _NAMED = "pt|em|ex|mm|cm|in|mu|bp|sp|pc|dd", r"\\jot|\\[a-z]+(?:skip|amount|sep|width|height)"
_LENGTH = re.compile(rf"-?(?:[\d.]+(?:{_UNITS})|[\d.]*(?:{_NAMED}))")
SEPARATORS = frozenset(("&", "\\\\", r"\cr", r"\newline", r"\tabularnewline"))
# These only say how a formula is set; what is in them stands on the line.
PLAIN_ENVIRONMENTS = frozenset(
    {"equation", "equation*", "displaymath", "math", "document", "center", "dmath", "dmath*"}
)


def settle_cases(reader: Reader, line: Line) -> None:
    """Give an opening fence that nothing closes to the matrix that follows it and ends the line: cases."""
    at, kind = line.fences[-1] if line.fences else (-1, Fence.NOTHING)
    if kind in (Fence.OPENING, Fence.LEFT) and at == len(line.nodes) - 2 and _is_matrix(reader, line.nodes[-1]):
        _fence_matrix(reader, line, at, reader.labels[line.nodes[at]])


def _is_matrix(reader: Reader, node: int) -> bool:
    label = reader.labels[node]
    is_plain = label[:2] == "M!" and label[2:3].isdigit() and label != "M!1x1"
    return is_plain and not any((node, script) in reader.ends for script in "aboucd")


def _fence_matrix(reader: Reader, line: Line, at: int, fence: str) -> None:
    """Give fences to the matrix that stands alone after the opening one, which it replaces."""
    before, matrix = line.nodes[at : at + 2]
    reader.labels[matrix] = f"M!{fence}{reader.labels[matrix][2:]}"
    reader.parents[matrix], reader.relations[matrix] = reader.parents[before], reader.relations[before]
    reader.parents[before] = GONE
    line.nodes[at:] = [matrix]
    reader.is_ordered = False


def begin_environment(reader: Reader, line: Line, token: str) -> None:
    r"""Begin the environment of `\begin{name}`."""
    name = token.partition("{")[2][:-1]
    fence = FENCES.get(name.rstrip("*"), "")
    start = reader.spans[reader.i - 1]
    if name in POSITIONED or name.endswith("matrix*"):
        reader.skip_position("tbclr")
    if name in WITH_ARGUMENT:
        reader.skip_braces()
    if name == "tabular*":  # its width stands before its columns
        reader.skip_braces()
    if name in PLAIN_ENVIRONMENTS:
        return
    if line.depth + len(line.fences) >= MAX_DEPTH:
        reader.problem(f"nested deeper than {MAX_DEPTH}: left out", reader.i - 1)
        reader.unopened += 1
        return
    closing = "}" if name.rstrip("*") in _CLOSED_CASES else ""
    _open_cell(reader, _Grid(reader.put(line, f"M!{fence}", start), fence, closing=closing))


def _open_cell(reader: Reader, grid: _Grid) -> None:
    reader.cells += 1
    reader.open(*_cell_parent(grid), End.CELL, _finish_cell, grid)


class _Grid:
    """A matrix being read: node, fence, first node of each cell by rows, and whether a brace ends it (`is_braced`).

    `closing` is the sign that stands behind it.
    """

    def __init__(self, node: int, fence: str, is_braced: bool = False, closing: str = "") -> None:
        self.node, self.fence, self.is_braced, self.closing, self.last = node, fence, is_braced, closing, -1
        self.rows: list[list[int]] = [[]]


def _cell_parent(grid: _Grid) -> tuple[int, str]:
    return (grid.last, "e") if grid.last >= 0 else (grid.node, "w")


def _finish_cell(reader: Reader, nodes: list[int], grid: _Grid) -> None:
    reader.cells -= 1
    token = reader.tokens[reader.i]
    is_last = token not in SEPARATORS
    if nodes or not is_last or grid.rows[-1] or len(grid.rows) == 1:  # else an empty last row, which is dropped
        grid.last = nodes[0] if nodes else reader.add("W!", (reader.spans[reader.i][0],) * 2, *_cell_parent(grid))
        grid.rows[-1].append(grid.last)
    if is_last:
        if token and grid.is_braced == (token == "}"):
            reader.i += 1
        else:
            reader.problem("environment not closed", reader.i)
        _finish_grid(reader, grid)
        return
    reader.i += 1
    if token != "&":
        is_starred = reader.tokens[reader.i] == "*" and reader.spans[reader.i][0] == reader.spans[reader.i - 1][1]
        reader.i += is_starred  # as in `\\*`; a star behind a blank begins the next row, as in MathJax
        distance = reader.bracket()
        reader.i += len(distance) + 2 if _LENGTH.fullmatch("".join(distance)) else 0  # else it is of the formula
        grid.rows.append([])
    _open_cell(reader, grid)


def _finish_grid(reader: Reader, grid: _Grid) -> None:
    rows = [row for row in grid.rows if row]
    columns, n_cells = max(map(len, rows)), sum(map(len, rows))
    if n_cells < columns * len(rows) <= 4 * n_cells + 100:  # a row of thousands among short ones stays as it is
        _fill_rows(reader, rows, columns)
    reader.labels[grid.node] = f"M!{grid.fence}{len(rows)}x{columns}"
    if grid.closing:
        reader.put(reader.stack[-1], grid.closing, reader.spans[reader.i - 1])


def _fill_rows(reader: Reader, rows: list[list[int]], columns: int) -> None:
    reader.is_ordered = False
    before = -1
    for row in rows:
        if before >= 0:
            reader.parents[row[0]] = before
        while len(row) < columns:
            row.append(reader.add("W!", (reader.where[row[-1]][1],) * 2, row[-1], "e"))
        before = row[-1]


def end_environment(reader: Reader, line: Line, token: str) -> None:
    r"""End an environment at `\end{name}`, and whatever is still open in it."""
    if token.partition("{")[2][:-1] in PLAIN_ENVIRONMENTS:
        return
    if reader.unopened:
        reader.unopened -= 1
        return
    if not reader.cells:
        reader.problem(f"{token} without its beginning", reader.i - 1)
        return
    reader.i -= 1
    if line.kind == End.GROUP or line.groups:
        reader.problem("brace not closed", reader.i)
    reader.close(line)


@handles(*OPENERS)
def _read_opener(reader: Reader, line: Line, token: str) -> None:
    _open_fence(reader, line, OPENERS[token], reader.spans[reader.i - 1], Fence.OPENING)


def _open_fence(reader: Reader, line: Line, label: str, span: Span, kind: int) -> None:
    """Put the fence and let it wait for its partner; nested too deep, it is a plain symbol."""
    if line.depth + len(line.fences) < MAX_DEPTH:
        line.fences.append((len(line.nodes), kind))
    if label:
        reader.put(line, label, span)


@handles(*CLOSERS)
def _read_closer(reader: Reader, line: Line, token: str) -> None:
    if token == "]" and _end_optional(reader, line):
        return
    while line.fences and line.fences[-1][1] in _BARS:  # they have no partner before this fence
        line.fences.pop()
    _close_fence(reader, line, CLOSERS[token], reader.spans[reader.i - 1])


def _end_optional(reader: Reader, line: Line) -> bool:
    if "[" in _open_labels(reader, line, line.fences) or line.groups:
        return False
    if line.kind == End.BRACKET:
        reader.close(line)
        return True
    if line.kind == End.REST and reader.stack[-2].kind == End.BRACKET:
        reader.i -= 1
        reader.close(line)
        return True
    return False


def _open_labels(reader: Reader, line: Line, fences: list[tuple[int, int]]) -> list[str]:
    return [reader.labels[line.nodes[at]] for at, kind in fences if kind != Fence.NOTHING]


def _close_fence(reader: Reader, line: Line, fence: str, span: Span) -> None:
    at, kind = line.fences.pop() if line.fences else (0, Fence.NOTHING)
    if kind == Fence.NOTHING:
        reader.put(line, fence, span)
        return
    labels, parents, relations, nodes = reader.labels, reader.parents, reader.relations, line.nodes
    node, inner, count = nodes[at], nodes[at + 1 :], 1
    if len(inner) == 1 and _is_matrix(reader, inner[0]):
        _fence_matrix(reader, line, at, labels[node] + fence)
        return
    del nodes[at + 1 :]
    if inner:
        first = inner[0]
        relations[first] = "w"
        for before, after in zip(inner, inner[1:], strict=False):
            if labels[before] == ",":
                parents[after], relations[after] = first, "e"
                first, count = after, count + 1
    else:
        reader.add("W!", (span[0], span[0]), node, "w")
    labels[node] = f"M!{labels[node]}{fence}1x{count}"


@handles(*BARS)
def _read_bar(reader: Reader, line: Line, token: str) -> None:
    label, nodes = BARS[token], line.nodes
    span = reader.spans[reader.i - 1]
    if token == "||" and _closes(reader, line, "|"):  # |x||y|
        middle = span[0] + 1
        _close_fence(reader, line, "|", (span[0], middle))
        if _closes(reader, line, "|"):  # the end of ||x| - |y||
            _close_fence(reader, line, "|", (middle, span[1]))
        else:
            _open_fence(reader, line, "|", (middle, span[1]), Fence.BAR)
    elif token == "||" and not _closes(reader, line, label) and _next_bar(reader) == "|":  # its beginning
        middle = span[0] + 1
        _open_fence(reader, line, "|", (span[0], middle), Fence.BAR)
        _open_fence(reader, line, "|", (middle, span[1]), Fence.BAR)
    elif _closes(reader, line, label):
        _close_fence(reader, line, label, span)
    else:
        is_doubtful = bool(nodes) and _is_operand(reader.labels[nodes[-1]])
        _open_fence(reader, line, label, span, Fence.DOUBTFUL if is_doubtful else Fence.BAR)


def _next_bar(reader: Reader) -> str:
    """Return the next | or || among the next 50 tokens, "" without one or where nothing is before it."""
    following = reader.tokens[reader.i : reader.i + 50]
    return "" if following[0] in BARS else next((token for token in following if token in ("|", "||")), "")


def _closes(reader: Reader, line: Line, label: str) -> bool:
    """Return whether a bar closes the last open fence; after an operand it may also divide or set a condition."""
    if not line.fences:
        return False
    (at, kind), labels, nodes = line.fences[-1], reader.labels, line.nodes
    if kind == Fence.NOTHING or labels[nodes[at]] != label or at == len(nodes) - 1:
        return False
    if kind == Fence.DOUBTFUL:
        return _is_operand(labels[nodes[-1]]) and not any(labels[node] in _PARTING for node in nodes[at + 1 :][:50])
    return _is_operand(labels[nodes[-1]]) or at == len(nodes) - 2


def _is_operand(label: str) -> bool:
    return label[1:2] == "!" or label[0] == "?" or label in (")", "]", "!")


@handles(commands="big Big bigg Bigg bigl Bigl biggl Biggl bigr Bigr biggr Biggr")
def _read_sized_fence(reader: Reader, line: Line, token: str) -> None:
    fence = reader.tokens[reader.i]
    if fence in BARS and token[-1] in "lr":
        reader.i += 1
        span = (reader.spans[reader.i - 2][0], reader.spans[reader.i - 1][1])
        if token[-1] == "l":
            _open_fence(reader, line, BARS[fence], span, Fence.BAR)
        elif BARS[fence] in _open_labels(reader, line, line.fences[-1:]):
            _close_fence(reader, line, BARS[fence], span)
        else:
            reader.put(line, BARS[fence], span)


@handles(commands="left right middle")
def _read_left_right(reader: Reader, line: Line, token: str) -> None:
    is_after_over = line.kind == End.REST and not line.groups
    if token == r"\right" and is_after_over and not any(kind in Fence.AFTER_LEFT for _, kind in line.fences):
        reader.i -= 1  # it closes what the line before has opened
        reader.close(line)
        return
    if reader.tokens[reader.i] not in ENDS:
        _count_left_right(reader, token)
    fence, rest = _split_fence(reader, line, token)
    label = _SIDES.get(fence)
    if label is None and fence != ".":
        return
    start, end = reader.spans[reader.i]
    middle = max(start, end - len(rest))
    span = (reader.spans[reader.i - 1][0], middle)
    if rest:
        reader.tokens[reader.i], reader.spans[reader.i] = rest, (middle, end)
    else:
        reader.i += 1
    if token == r"\left":
        _open_fence(reader, line, label or "", span, Fence.LEFT if label else Fence.NOTHING)
    elif token == r"\right":
        _close_right(reader, line, label, span)
    elif label:
        reader.put(line, label, span)


def _split_fence(reader: Reader, line: Line, token: str) -> tuple[str, str]:
    r"""Return the sign behind \left, \right or \middle, of which TeX takes one, and the rest of its token.

    The rest is 2 in `\left.2x\right|`, and the second bar of `\left||x|-|y|\right|`, which is no norm.
    """
    fence = reader.tokens[reader.i]
    if fence[:1] == "." and fence[1:].isdigit():
        return ".", fence[1:]
    is_single = fence == "||" and (
        (token == r"\left" and _after_right(reader) == "|")
        or (token == r"\right" and _open_labels(reader, line, _last_left(line)) == ["|"])
    )
    return ("|", "|") if is_single else (fence, "")


def _last_left(line: Line) -> list[tuple[int, int]]:
    return [fence for fence in line.fences if fence[1] in Fence.AFTER_LEFT][-1:]


def _after_right(reader: Reader) -> str:
    r"""Return the token behind the \right of the \left that was read last, if it is among the next 200 tokens."""
    level = 1
    for place in range(reader.i, min(reader.i + 200, len(reader.tokens) - 1)):
        level += (reader.tokens[place] == r"\left") - (reader.tokens[place] == r"\right")
        if not level:
            return reader.tokens[place + 1]
    return ""


def _count_left_right(reader: Reader, token: str) -> None:
    if token == r"\left":
        reader.lefts += 1
    elif token == r"\right" and reader.lefts:
        reader.lefts -= 1
    elif token == r"\right":
        reader.problem(r"\right without its \left", reader.i - 1)


def _close_right(reader: Reader, line: Line, label: str | None, span: Span) -> None:
    r"""Close at \right; without a fence there, the opening one is a plain symbol."""
    fences = line.fences
    while fences and fences[-1][1] in _BARS and any(kind in Fence.AFTER_LEFT for _, kind in fences):
        fences.pop()
    if label == "}" and _open_labels(reader, line, fences[-2:]) == ["{", "|"]:
        fences.pop()  # {x | ...} whose bar was made large by \left
    if label:
        _close_fence(reader, line, label, span)
    elif fences:
        settle_cases(reader, line)
        fences.pop()


@handles(commands=BRACED)
def _read_braced_matrix(reader: Reader, line: Line, token: str) -> None:
    if reader.tokens[reader.i] == "{" and line.depth + len(line.fences) < MAX_DEPTH:
        reader.i += 1
        fence = BRACED[token[1:]]
        _open_cell(reader, _Grid(reader.put(line, f"M!{fence}", reader.spans[reader.i - 2]), fence, is_braced=True))


@handles(*SEPARATORS)
def _end_cell(reader: Reader, line: Line, token: str) -> None:
    """End the innermost line that a separator can end; outside an environment a separator is left out."""
    if reader.cells and not line.groups and line.kind in (End.CELL, End.REST, End.SINGLE):
        reader.i -= 1
        reader.close(line)
