"""structures: fractions, scripts, fences and environments of LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from mirblab.formula.latex.reader import (
    BAR,
    BRACKET,
    CELL,
    DOUBTFUL,
    ENDS,
    GONE,
    GROUP,
    LEFT,
    MAX_DEPTH,
    NOTHING,
    OPENING,
    REST,
    SINGLE,
    Line,
    Reader,
)
from mirblab.formula.latex.symbols import (
    BARS,
    BIG,
    CLOSERS,
    CLOSING,
    COMMANDS,
    FONT_COMMANDS,
    INTEGRALS,
    LETTERS,
    OPENERS,
    PLAIN,
    STYLED,
)

Span = tuple[int, int]
PRIMES = {r"\prime": 1, "′": 1, "″": 2, "‴": 3, "⁗": 4, "’": 1}


def read_script(reader: Reader, line: Line, token: str) -> None:
    """Read a superscript or subscript; with nothing before it, it hangs on an empty node."""
    nodes, base = line.nodes, _script_base(reader, line)
    label, is_upper = reader.labels[base], token in ("^", r"\sp")
    if (base, "o" if is_upper else "u") in reader.braced:  # what an over- or underbrace says
        relation = "o" if is_upper else "u"
        base = reader.wrap(line, len(nodes) - 1, "M!1x1", "w", reader.where[base])
    elif label in BIG or label[1:2] != "!" and label[0] != "?" and label not in CLOSING:
        relation = "o" if is_upper else "u"
    else:
        relation = "a" if is_upper else "b"
    before = reader.ends.get((base, relation))
    if before is not None and reader.labels[before][0] != "′":  # x'^2 is one script in TeX, x^1^2 an error
        reader.problem(f"second {'superscript' if is_upper else 'subscript'} on one symbol", reader.i - 1)
    parent, hang = reader.place(base, relation)
    reader.argument(parent, hang, note_script_end, (base, relation))


def _script_base(reader: Reader, line: Line) -> int:
    """Return the node that a script hangs on: the last one, or an empty one where there is nothing to hang on.

    That is so at the beginning of a line, after an opening fence, and after `{}` unless an operand stands before.
    """
    nodes, at = line.nodes, reader.i - 1
    kind = line.fences[-1][1] if line.fences and line.fences[-1][0] == len(nodes) - 1 else NOTHING
    if kind in (BAR, DOUBTFUL):  # it has a script, so it opens nothing
        line.fences.pop()
    if nodes and kind not in (OPENING, LEFT):
        label = reader.labels[nodes[-1]]
        if label[1:2] == "!" or label in CLOSING or at < 2 or reader.tokens[at - 2 : at] != ["{", "}"]:
            return nodes[-1]
    reader.bare.append(reader.put(line, "W!", (reader.spans[at][0],) * 2))
    return nodes[-1]


def note_script_end(reader: Reader, nodes: list[int], key: tuple[int, str]) -> None:
    """Note where the line of a script ends, for one that comes after it."""
    reader.ends[key] = nodes[-1]


def read_integral(reader: Reader, line: Line, token: str) -> None:
    """Put an integral sign; with one there can be differentials."""
    reader.has_integral = True
    reader.put(line, INTEGRALS[token], reader.spans[reader.i - 1])


def read_primes(reader: Reader, line: Line, token: str) -> None:
    """Put primes as one superscript."""
    base, label, span = _script_base(reader, line), *_primes(reader)
    parent, hang = reader.place(base, "a")
    reader.ends[base, "a"] = reader.add(label, span, parent, hang)


def read_prime_command(reader: Reader, line: Line, token: str) -> None:
    r"""Put `\prime` or its character: as a symbol in a superscript, otherwise as a superscript itself."""
    if token == r"\prime" or (line.relation == "a" and not line.nodes):
        reader.put(line, *_primes(reader))
    else:
        read_primes(reader, line, token)


def _primes(reader: Reader) -> tuple[str, Span]:
    """Return the label and the span of all primes from the token just read on."""
    first = reader.i - 1
    while (token := reader.tokens[reader.i])[:1] == "'" or token in PRIMES:
        reader.i += 1
    count = sum(PRIMES.get(token) or len(token) for token in reader.tokens[first : reader.i])
    return "′" * count, (reader.spans[first][0], reader.spans[reader.i - 1][1])


ACCENTS = {
    "hat": "^", "widehat": "^", "bar": "¯", "overline": "¯", "vec": "→", "tilde": "~", "widetilde": "~", "dot": "˙",
    "ddot": "¨", "dddot": "⃛", "check": "ˇ", "widecheck": "ˇ", "breve": "˘", "acute": "´", "grave": "`",
    "mathring": "˚", "overrightarrow": "→", "overleftarrow": "←", "overleftrightarrow": "↔", "overbrace": "⏞",
    "overbracket": "⎴", "wideparen": "⏜", "overparen": "⏜", "overarc": "⏜",
}  # fmt: skip
UNDER = {
    "underline": "¯", "underbar": "¯", "underbrace": "⏟", "underbracket": "⎵", "underrightarrow": "→",
    "underleftarrow": "←", "utilde": "~", "undertilde": "~",
}  # fmt: skip
ARROWS = {
    "xrightarrow": "→", "xleftarrow": "←", "xleftrightarrow": "↔", "xRightarrow": "⇒", "xLeftarrow": "⇐",
    "xLeftrightarrow": "⇔", "xhookrightarrow": "↪", "xhookleftarrow": "↩", "xmapsto": "↦", "xlongequal": "=",
    "xtwoheadrightarrow": "↠", "xlongrightarrow": "⟶",
}  # fmt: skip


def read_fraction(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\frac` and its like: numerator over, denominator under."""
    node = reader.put(line, "O!divide", reader.spans[reader.i - 1])
    reader.argument(node, "o", _denominator, node)


def read_binomial(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\binom`: a fraction between fences, as LaTeXML draws it."""
    span = reader.spans[reader.i - 1]
    fence = reader.put(line, "M!()1x1", span)
    node = reader.add("O!divide", span, fence, "w")
    reader.argument(node, "o", _denominator, node)


def _denominator(reader: Reader, nodes: list[int], node: int) -> None:
    reader.argument(node, "u")


BRACES = frozenset("⏟⏞⎵⎴")
INFIX = {"over": "", "above": "", "atop": "", "choose": "()", "brack": "[]", "brace": "{}"}


def read_infix(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\over` and its like: what precedes it in its group over what follows; a second one says nothing."""
    span, fence = reader.spans[reader.i - 1], INFIX[token[1:]]
    if (line.kind == REST and not line.groups) or line.depth + len(line.groups) > MAX_DEPTH:
        reader.problem(f"{token} left out", reader.i - 1)
        return
    first = min(line.groups[-1][0], len(line.nodes)) if line.groups else 0
    node = reader.wrap(line, first, "O!divide", "o", span)
    if fence:
        reader.wrap(line, first, f"M!{fence}1x1", "w", span)
    reader.open(node, "u", REST)


ENCLOSING = {
    **{"abs": "||", "norm": "∥∥", "Abs": "||", "Norm": "∥∥", "absval": "||", "pqty": "()", "bqty": "[]", "Bqty": "{}"},
    **{"paren": "()", "parens": "()", "brackets": "[]", "set": "{}", "Set": "{}"},
}


def read_enclosed(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\abs{x}` and its like, of the packages physics and mathtools, as a fence."""
    reader.argument(reader.put(line, f"M!{ENCLOSING[token[1:]]}1x1", reader.spans[reader.i - 1]), "w")


def read_root(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\sqrt`, its index in front."""
    node = reader.put(line, "O!root", reader.spans[reader.i - 1])
    if reader.tokens[reader.i] == "[":
        reader.i += 1
        reader.open(node, "c", BRACKET, _radicand, node)
    else:
        reader.argument(node, "w")


def _radicand(reader: Reader, nodes: list[int], node: int) -> None:
    reader.argument(node, "w")


def read_on_line(reader: Reader, line: Line, after: Callable, data: Any) -> None:
    """Read the next argument as the next nodes of this line, then call *after* with the number of nodes before."""
    parent, relation = (line.nodes[-1], "n") if line.nodes else (line.parent, line.relation)
    reader.argument(parent, relation, _append_nodes, (line, after, data))


def _append_nodes(reader: Reader, nodes: list[int], told: tuple) -> None:
    line, after, data = told
    first = len(line.nodes)
    line.nodes += nodes
    after(reader, line, first, data)


def read_accent(reader: Reader, line: Line, token: str) -> None:
    """Read an accented or overlined base; several nodes are wrapped."""
    name = token[1:]
    mark, relation = (ACCENTS[name], "o") if name in ACCENTS else (UNDER[name], "u")
    read_on_line(reader, line, _add_accent, (mark, relation, reader.spans[reader.i - 1]))


def _add_accent(reader: Reader, line: Line, first: int, told: tuple[str, str, Span]) -> None:
    mark, relation, span = told
    base = _accent_base(reader, line, first, relation, span)
    reader.place(base, relation)
    reader.ends[base, relation] = reader.add(mark, span, base, relation)
    if mark in BRACES:
        reader.braced.add((base, relation))


def _accent_base(reader: Reader, line: Line, first: int, relation: str, span: Span) -> int:
    """Return the one node that a mark hangs on: a wrapper where there are several, or has a mark there already."""
    base = line.nodes[-1]
    if len(line.nodes) - first > 1 or reader.labels[base] == "O!divide" or (base, relation) in reader.ends:
        reader.wrap(line, first, "M!1x1", "w", span)
    return line.nodes[-1]


def read_stacked(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\overset`, `\stackrel` and `\underset`: first what is set, then the base."""
    relation = "u" if token == r"\underset" else "o"
    reader.argument(-1, relation, _read_stacked_base, (line, relation, reader.spans[reader.i - 1]))


def _read_stacked_base(reader: Reader, nodes: list[int], told: tuple[Line, str, Span]) -> None:
    line, relation, span = told
    read_on_line(reader, line, _hang_stacked, (nodes, relation, span))


def _hang_stacked(reader: Reader, line: Line, first: int, told: tuple[list[int], str, Span]) -> None:
    nodes, relation, span = told
    base = _accent_base(reader, line, first, relation, span)
    reader.is_ordered = False
    reader.parents[nodes[0]], reader.relations[nodes[0]] = reader.place(base, relation)
    reader.ends[base, relation] = nodes[-1]


def read_arrow(reader: Reader, line: Line, token: str) -> None:
    """Read an arrow with text above, and below in brackets."""
    node = reader.put(line, ARROWS[token[1:].rstrip("*")], reader.spans[reader.i - 1])
    if reader.tokens[reader.i] == "[":
        reader.i += 1
        reader.is_ordered = False
        reader.open(node, "u", BRACKET, _read_above_arrow, node)
    else:
        reader.argument(node, "o", note_script_end, (node, "o"))


def _read_above_arrow(reader: Reader, nodes: list[int], node: int) -> None:
    reader.ends[node, "u"] = nodes[-1]
    reader.argument(node, "o", note_script_end, (node, "o"))


def read_negation(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\not` before a relation."""
    if reader.tokens[reader.i] not in ENDS:
        read_on_line(reader, line, _negate, reader.spans[reader.i - 1])


NEGATED = dict(zip("=∈<>≤≥⊂⊃⊆⊇∃≡∼≃≅≈∋∣∥→⇒⇔⊢⊨|", "≠∉≮≯≰≱⊄⊅⊈⊉∄≢≁≄≇≉∌∤∦↛⇏⇎⊬⊭∤", strict=True))


def _negate(reader: Reader, line: Line, first: int, span: Span) -> None:
    node = line.nodes[first]
    label = reader.labels[node]
    if label[:2] not in ("O!", "M!", "W!"):
        sign = label[:2] + "¬" + label[2:] if label[1:2] == "!" else "¬" + label
        reader.labels[node] = NEGATED.get(label, sign)
    reader.where[node] = (span[0], max(span[1], reader.where[node][1]))


def read_modulo(reader: Reader, line: Line, token: str) -> None:
    r"""Read `\pmod` as a fence around mod and its argument."""
    span = reader.spans[reader.i - 1]
    if token == r"\pmod":
        parent, hang = reader.put(line, "M!()1x1", span), "w"
        parent = reader.add("mod", span, parent, hang)
        reader.argument(parent, "n")
    else:  # \pod
        reader.argument(reader.put(line, "M!()1x1", span), "w")


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
PLAIN_ENVIRONMENTS = frozenset(
    {"equation", "equation*", "displaymath", "math", "document", "center", "dmath", "dmath*"}
)


class Grid:
    """A matrix that is being read: its node, its fence, and the first node of each cell by rows.

    `is_braced`: it ends with a brace, not with its environment.
    """

    __slots__ = ("node", "fence", "is_braced", "last", "rows")

    def __init__(self, node: int, fence: str, is_braced: bool = False) -> None:
        self.node, self.fence, self.is_braced, self.last = node, fence, is_braced, -1
        self.rows: list[list[int]] = [[]]


def begin_environment(reader: Reader, line: Line, token: str) -> None:
    r"""Begin the environment of `\begin{name}`."""
    name = token[token.index("{") + 1 : -1] if "{" in token else ""
    fence = FENCES.get(name.rstrip("*"), "")
    start = reader.spans[reader.i - 1]
    if name in POSITIONED or name.endswith("matrix*"):
        skip_position(reader)
    if name in WITH_ARGUMENT:
        skip_braces(reader)
    if name in PLAIN_ENVIRONMENTS:
        return
    if line.depth + len(line.fences) >= MAX_DEPTH:
        reader.problem(f"nested deeper than {MAX_DEPTH}: left out", reader.i - 1)
        reader.unopened += 1
        return
    _open_cell(reader, Grid(reader.put(line, f"M!{fence}", start), fence))


def read_braced_matrix(reader: Reader, line: Line, token: str) -> None:
    r"""Begin the rows of `\substack{...}` and of plain TeX's `\matrix{...}`."""
    if reader.tokens[reader.i] == "{" and line.depth + len(line.fences) < MAX_DEPTH:
        reader.i += 1
        fence = BRACED[token[1:]]
        _open_cell(reader, Grid(reader.put(line, f"M!{fence}", reader.spans[reader.i - 2]), fence, is_braced=True))


def _open_cell(reader: Reader, grid: Grid) -> None:
    """Begin the next cell."""
    reader.cells += 1
    reader.open(*_cell_parent(grid), CELL, _finish_cell, grid)


def _cell_parent(grid: Grid) -> tuple[int, str]:
    """Return where the next cell hangs: below the matrix, or behind the cell before it."""
    return (grid.last, "e") if grid.last >= 0 else (grid.node, "w")


def _finish_cell(reader: Reader, nodes: list[int], grid: Grid) -> None:
    """Go on after a cell: with the next one, with the next row, or after the environment."""
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
        reader.i += reader.tokens[reader.i] == "*"
        _skip_row_distance(reader)
        grid.rows.append([])
    _open_cell(reader, grid)


def _finish_grid(reader: Reader, grid: Grid) -> None:
    """Fill the short rows and write the shape into the label."""
    rows = [row for row in grid.rows if row]
    columns, n_cells = max(map(len, rows)), sum(map(len, rows))
    if n_cells < columns * len(rows) <= 4 * n_cells + 100:  # a row of thousands among short ones stays as it is
        _fill_rows(reader, rows, columns)
    reader.labels[grid.node] = f"M!{grid.fence}{len(rows)}x{columns}"


def _fill_rows(reader: Reader, rows: list[list[int]], columns: int) -> None:
    """Put empty cells at the ends of the short rows."""
    reader.is_ordered = False
    before = -1
    for row in rows:
        if before >= 0:
            reader.parents[row[0]] = before
        while len(row) < columns:
            row.append(reader.add("W!", (reader.where[row[-1]][1],) * 2, row[-1], "e"))
        before = row[-1]


def end_cell(reader: Reader, line: Line, token: str) -> None:
    r"""End a cell at `&` or at a row's end; outside an environment they are left out."""
    end_line(reader, line, token, leave=not reader.cells)


def end_environment(reader: Reader, line: Line, token: str) -> None:
    r"""End an environment at `\end{name}`, and whatever is still open in it."""
    if token[token.index("{") + 1 : -1] in PLAIN_ENVIRONMENTS if "{" in token else False:
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


def end_line(reader: Reader, line: Line, token: str, leave: bool) -> None:
    """End the innermost line that a separator can end."""
    if leave or line.groups or line.kind not in (CELL, REST, SINGLE):
        return
    reader.i -= 1
    reader.close(line)


def skip_option(reader: Reader) -> None:
    """Pass over an optional argument in brackets, if there is one and it ends soon."""
    inner = _bracket_tokens(reader)
    reader.i += len(inner) + 2 if inner else 0


def skip_position(reader: Reader) -> None:
    """Pass over an environment's [t], [b], [c], [l] or [r]; any other bracket belongs to the formula."""
    inner = _bracket_tokens(reader)
    reader.i += 3 if len(inner) == 1 and inner[0] in "tbclr" else 0


def _skip_row_distance(reader: Reader) -> None:
    """Pass over the length that may follow a new row; any other bracket belongs to the formula."""
    inner = _bracket_tokens(reader)
    reader.i += len(inner) + 2 if _LENGTH.fullmatch("".join(inner)) else 0


def _bracket_tokens(reader: Reader) -> list[str]:
    """Return the tokens in the bracket that begins here; none when there is no bracket, or a long one."""
    if reader.tokens[reader.i] != "[":
        return []
    inner = reader.tokens[reader.i + 1 : reader.i + 12]
    return inner[: inner.index("]")] if "]" in inner else []


def skip_braces(reader: Reader) -> None:
    """Pass over an argument in braces."""
    if reader.tokens[reader.i] != "{":
        return
    level = 0
    while reader.tokens[reader.i]:
        level += {"{": 1, "}": -1}.get(reader.tokens[reader.i], 0)
        reader.i += 1
        if not level:
            return


_NAMES = "langle rangle lfloor rfloor lceil rceil uparrow downarrow backslash lgroup rgroup llbracket rrbracket"
_COMMANDS = {command: COMMANDS[command] for command in [f"\\{name}" for name in _NAMES.split()]}
_SIDES = BARS | OPENERS | CLOSERS | _COMMANDS | {"<": "⟨", ">": "⟩", "/": "/"}


def read_opener(reader: Reader, line: Line, token: str) -> None:
    """Put an opening fence, which waits for its partner."""
    _open_fence(reader, line, OPENERS[token], reader.spans[reader.i - 1], OPENING)


def read_closer(reader: Reader, line: Line, token: str) -> None:
    """Close the last open fence of the line; without one, put a plain symbol."""
    if token == "]" and _end_optional(reader, line):
        return
    while line.fences and line.fences[-1][1] in (BAR, DOUBTFUL):  # bars that found no partner before this fence
        line.fences.pop()
    _close_fence(reader, line, CLOSERS[token], reader.spans[reader.i - 1])


def read_bar(reader: Reader, line: Line, token: str) -> None:
    """Open or close with a bar, whichever fits what stands before it."""
    label, nodes = BARS[token], line.nodes
    span = reader.spans[reader.i - 1]
    if token == "||" and _closes(reader, line, "|"):  # |x||y|
        middle = span[0] + 1
        _close_fence(reader, line, "|", (span[0], middle))
        _open_fence(reader, line, "|", (middle, span[1]), BAR)
    elif _closes(reader, line, label):
        _close_fence(reader, line, label, span)
    else:
        _open_fence(reader, line, label, span, DOUBTFUL if nodes and _is_operand(reader.labels[nodes[-1]]) else BAR)


def read_sized_fence(reader: Reader, line: Line, token: str) -> None:
    r"""Read what follows \bigl or \bigr; a bar there says itself whether it opens."""
    fence = reader.tokens[reader.i]
    if fence in BARS and token[-1] in "lr":
        reader.i += 1
        span = (reader.spans[reader.i - 2][0], reader.spans[reader.i - 1][1])
        if token[-1] == "l":
            _open_fence(reader, line, BARS[fence], span, BAR)
        elif any(reader.labels[line.nodes[at]] == BARS[fence] for at, kind in line.fences[-1:] if kind != NOTHING):
            _close_fence(reader, line, BARS[fence], span)
        else:
            reader.put(line, BARS[fence], span)


def _is_operand(label: str) -> bool:
    return label[1:2] == "!" or label[0] == "?" or label in (")", "]", "!")


def _closes(reader: Reader, line: Line, label: str) -> bool:
    """Return whether a bar closes the last open fence, which must be one like it.

    A bar after an operand may divide (`d|n`) or set a condition; it is no fence when a relation or comma follows it.
    """
    if not line.fences:
        return False
    (at, kind), labels, nodes = line.fences[-1], reader.labels, line.nodes
    if kind == NOTHING or labels[nodes[at]] != label or at == len(nodes) - 1:
        return False
    if kind == DOUBTFUL:
        return _is_operand(labels[nodes[-1]]) and not any(labels[node] in _PARTING for node in nodes[at + 1 :][:50])
    return _is_operand(labels[nodes[-1]]) or at == len(nodes) - 2


_PARTING = frozenset("=<>≤≥≠≈∼≡∈⊂⊆→⇒⇔⟹⟺,;:∣")


def read_left_right(reader: Reader, line: Line, token: str) -> None:
    r"""Read the fence after \left, \right or \middle; a full stop there is no fence."""
    fence = reader.tokens[reader.i]
    label = _SIDES.get(fence)
    if label is None and fence != ".":
        return
    span = (reader.spans[reader.i - 1][0], reader.spans[reader.i][1])
    reader.i += 1
    if token == r"\left":
        _open_fence(reader, line, label or "", span, LEFT if label else NOTHING)
    elif token == r"\right":
        _close_right(reader, line, label, span)
    elif label:
        reader.put(line, label, span)


def _close_right(reader: Reader, line: Line, label: str | None, span: tuple[int, int]) -> None:
    r"""Close at \right; without a fence there, the opening one is a plain symbol."""
    fences = line.fences
    while fences and fences[-1][1] in (BAR, DOUBTFUL) and any(kind in (LEFT, NOTHING) for _, kind in fences):
        fences.pop()
    if label == "}" and [reader.labels[line.nodes[at]] for at, kind in fences[-2:] if kind != NOTHING] == ["{", "|"]:
        fences.pop()  # {x | ...} whose bar was made large by \left
    if label:
        _close_fence(reader, line, label, span)
    elif fences:
        settle_cases(reader, line)
        fences.pop()


def settle_cases(reader: Reader, line: Line) -> None:
    """Give an opening fence that nothing closes to the matrix that follows it and ends the line: cases."""
    if line.fences and (at := line.fences[-1][0]) == len(line.nodes) - 2 and line.fences[-1][1] in (OPENING, LEFT):
        if _is_matrix(reader, line.nodes[-1]):
            _fence_matrix(reader, line, at, reader.labels[line.nodes[at]])


def _open_fence(reader: Reader, line: Line, label: str, span: tuple[int, int], kind: int) -> None:
    """Put the fence and let it wait; nested too deep, it is a plain symbol."""
    if line.depth + len(line.fences) < MAX_DEPTH:
        line.fences.append((len(line.nodes), kind))
    if label:
        reader.put(line, label, span)


def _close_fence(reader: Reader, line: Line, fence: str, span: tuple[int, int]) -> None:
    """Make the last open fence and all that follows it one node, with the elements between commas."""
    at, kind = line.fences.pop() if line.fences else (0, NOTHING)
    if kind == NOTHING:
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


def _end_optional(reader: Reader, line: Line) -> bool:
    """Return whether the bracket ends an optional argument, and end it then."""
    if any(reader.labels[line.nodes[at]] == "[" for at, kind in line.fences if kind != NOTHING) or line.groups:
        return False
    if line.kind == BRACKET:
        reader.close(line)
        return True
    if line.kind == REST and reader.stack[-2].kind == BRACKET:
        reader.i -= 1
        reader.close(line)
        return True
    return False


def _is_matrix(reader: Reader, node: int) -> bool:
    """Return whether a node is a matrix without fences and without scripts."""
    label = reader.labels[node]
    return (
        label[:2] == "M!"
        and label[2:3].isdigit()
        and label != "M!1x1"
        and not any((node, script) in reader.ends for script in "aboucd")
    )


def _fence_matrix(reader: Reader, line: Line, at: int, fence: str) -> None:
    """Give fences to the matrix that stands alone after the opening one, whose place it takes."""
    before, matrix = line.nodes[at : at + 2]
    reader.labels[matrix] = f"M!{fence}{reader.labels[matrix][2:]}"
    reader.parents[matrix], reader.relations[matrix] = reader.parents[before], reader.relations[before]
    reader.parents[before] = GONE
    line.nodes[at:] = [matrix]
    reader.is_ordered = False


# Old switches of fonts hold until the end of their group when no brace follows.
_SWITCHES = frozenset(rf"\{name}" for name in "bf rm it sf tt cal sl em mit scr frak boldmath rmfamily".split())


def read_text_token(reader: Reader, line: Line, token: str) -> None:
    r"""Put the text of `\text{...}` or the name of `\operatorname{...}`, which come as one token."""
    command, _, inner = token.partition("{")
    said = " ".join(inner[:-1].replace("~", " ").split())
    if command.startswith(r"\operatorname"):
        name = said.replace(" ", "")
        reader.put(line, COMMANDS.get("\\" + name) or "V!" + name, reader.spans[reader.i - 1])
    elif said:
        reader.put(line, "T!" + said, reader.spans[reader.i - 1])


def read_text(reader: Reader, line: Line, token: str) -> None:
    r"""Read a `\text{...}` that holds dollars, commands or braces."""
    if reader.tokens[reader.i] == "{":
        reader.i += 1
        line.groups.append((len(line.nodes), line.font, line.plain))
        line.font, line.plain = "text", PLAIN
        _read_text_part(reader, line)


def read_dollar(reader: Reader, line: Line, token: str) -> None:
    """Go back from mathematics to the text around it; elsewhere a dollar says nothing."""
    if line.font == "text" and line.groups:
        _read_text_part(reader, line)


def _read_text_part(reader: Reader, line: Line) -> None:
    """Put the words up to the next dollar or to the end of the text."""
    tokens, first, level = reader.tokens, reader.i, 0
    while tokens[reader.i] not in ("", "$") and (level or tokens[reader.i] != "}"):
        level += (tokens[reader.i] == "{") - (tokens[reader.i] == "}")
        reader.i += 1
    if reader.i > first:
        start, end = reader.spans[first][0], reader.spans[reader.i - 1][1]
        found = reader.source[start:end] if start < end else " ".join(tokens[first : reader.i])
        said = " ".join(found.replace("{", "").replace("}", "").replace("~", " ").split())
        if said:
            reader.put(line, "T!" + said, (start, end))
    if tokens[reader.i] == "$":
        reader.i += 1


def read_font(reader: Reader, line: Line, token: str) -> None:
    """Change the font of the next argument, or of the rest of the group after an old switch."""
    name, following = FONT_COMMANDS[token], reader.tokens[reader.i]
    if following == "{":
        reader.i += 1
        line.groups.append((len(line.nodes), line.font, line.plain))
        line.font, line.plain = name, STYLED[name]
    elif token in _SWITCHES:
        line.font, line.plain = name, STYLED[name]
    else:
        label = STYLED[name].get(following) or LETTERS.get(name, {}).get(following)
        if label is not None:
            reader.i += 1
            reader.put(line, label, reader.spans[reader.i - 1])


def read_letter(reader: Reader, line: Line, token: str) -> None:
    """Put a letter in a font in which neighbouring letters are one name."""
    nodes, label, (start, end) = line.nodes, LETTERS[line.font][token], reader.spans[reader.i - 1]
    begin = line.groups[-1][0] if line.groups else 0
    before = reader.tokens[reader.i - 2] if reader.i > 1 else ""
    if len(nodes) > begin and nodes[-1] == len(reader.labels) - 1 and before in LETTERS["rm"]:
        reader.labels[nodes[-1]] += label[2:]
        reader.where[nodes[-1]] = (reader.where[nodes[-1]][0], end)
    else:
        reader.put(line, label, (start, end))


def read_wildcard(reader: Reader, line: Line, token: str) -> None:
    r"""Put the query variable of `\qvar{x}` or `\qvar x` (NTCIR), of one or more letters."""
    tokens, start, name = reader.tokens, reader.i - 1, ""
    if tokens[reader.i] == "{":
        reader.i += 1
        while tokens[reader.i] not in ("}", ""):
            name += tokens[reader.i].lstrip("\\")
            reader.i += 1
        reader.i += tokens[reader.i] == "}"
    elif tokens[reader.i] not in ("", "}", "&"):
        name = tokens[reader.i].lstrip("\\")
        reader.i += 1
    reader.put(line, "?" + name, (reader.spans[start][0], reader.spans[reader.i - 1][1]))


INTEGRAL_SIGNS = frozenset("∫∬∭⨌∮∯")
DIFFERENTIAL = "𝑑"  # what LaTeXML writes, and Tangent after it


def mark_differentials(labels: list[str], parents: Sequence[int], relations: Sequence[str]) -> None:
    """Relabel each d that stands behind an integral sign and before a variable; nodes in reading order.

    >>> labels = ["∫", "V!x", "V!d", "V!x"]
    >>> mark_differentials(labels, [-1, 0, 1, 2], "-nnn")
    >>> labels
    ['∫', 'V!x', '𝑑', 'V!x']
    """
    behind: list[bool] = []  # an integral sign stands before the node, on its line or on one around it
    for node, (parent, relation) in enumerate(zip(parents, relations, strict=True)):
        if parent < 0 or relation in "abcd":
            behind.append(False)
            continue
        behind.append(behind[parent] or (relation == "n" and labels[parent] in INTEGRAL_SIGNS))
        if relation == "n" and behind[parent] and labels[parent] == "V!d" and labels[node][:2] == "V!":
            labels[parent] = DIFFERENTIAL
