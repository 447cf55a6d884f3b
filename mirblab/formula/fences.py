"""fences: opening fences matched with closing ones, and what stands between them."""

from __future__ import annotations

from mirblab.formula.reader import BAR, BRACKET, DEPTH, DOUBTFUL, GONE, LEFT, NOTHING, OPENING, REST, Line, Reader
from mirblab.formula.symbols import BARS, CLOSERS, COMMANDS, OPENERS

_NAMES = "langle rangle lfloor rfloor lceil rceil uparrow downarrow backslash lgroup rgroup llbracket rrbracket"
_COMMANDS = {command: COMMANDS[command] for command in [f"\\{name}" for name in _NAMES.split()]}
_SIDES = BARS | OPENERS | CLOSERS | _COMMANDS | {"<": "⟨", ">": "⟩", "/": "/"}


def opener(reader: Reader, line: Line, token: str) -> None:
    """Put an opening fence, which waits for its partner."""
    _open(reader, line, OPENERS[token], reader.spans[reader.i - 1], OPENING)


def closer(reader: Reader, line: Line, token: str) -> None:
    """Close the last open fence of the line; without one, put a plain symbol."""
    if token == "]" and _bracket(reader, line):
        return
    while line.fences and line.fences[-1][1] in (BAR, DOUBTFUL):  # bars that found no partner before this fence
        line.fences.pop()
    _shut(reader, line, CLOSERS[token], reader.spans[reader.i - 1])


def bar(reader: Reader, line: Line, token: str) -> None:
    """Open or close with a bar, whichever fits what stands before it."""
    label, nodes = BARS[token], line.nodes
    span = reader.spans[reader.i - 1]
    if token == "||" and _closes(reader, line, "|"):  # |x||y|
        middle = span[0] + 1
        _shut(reader, line, "|", (span[0], middle))
        _open(reader, line, "|", (middle, span[1]), BAR)
    elif _closes(reader, line, label):
        _shut(reader, line, label, span)
    else:
        _open(reader, line, label, span, DOUBTFUL if nodes and _is_operand(reader.labels[nodes[-1]]) else BAR)


def sized(reader: Reader, line: Line, token: str) -> None:
    r"""Read what follows \bigl or \bigr; a bar there says itself whether it opens."""
    fence = reader.tokens[reader.i]
    if fence in BARS and token[-1] in "lr":
        reader.i += 1
        span = (reader.spans[reader.i - 2][0], reader.spans[reader.i - 1][1])
        if token[-1] == "l":
            _open(reader, line, BARS[fence], span, BAR)
        elif any(reader.labels[line.nodes[at]] == BARS[fence] for at, kind in line.fences[-1:] if kind != NOTHING):
            _shut(reader, line, BARS[fence], span)
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


def side(reader: Reader, line: Line, token: str) -> None:
    r"""Read the fence after \left, \right or \middle; a full stop there is no fence."""
    fence = reader.tokens[reader.i]
    label = _SIDES.get(fence)
    if label is None and fence != ".":
        return
    span = (reader.spans[reader.i - 1][0], reader.spans[reader.i][1])
    reader.i += 1
    if token == r"\left":
        _open(reader, line, label or "", span, LEFT if label else NOTHING)
    elif token == r"\right":
        _right(reader, line, label, span)
    elif label:
        reader.put(line, label, span)


def _right(reader: Reader, line: Line, label: str | None, span: tuple[int, int]) -> None:
    r"""Close at \right; without a fence there, the opening one is a plain symbol."""
    fences = line.fences
    while fences and fences[-1][1] in (BAR, DOUBTFUL) and any(kind in (LEFT, NOTHING) for _, kind in fences):
        fences.pop()
    if label == "}" and [reader.labels[line.nodes[at]] for at, kind in fences[-2:] if kind != NOTHING] == ["{", "|"]:
        fences.pop()  # {x | ...} whose bar was made large by \left
    if label:
        _shut(reader, line, label, span)
    elif fences:
        settle(reader, line)
        fences.pop()


def settle(reader: Reader, line: Line) -> None:
    """Give an opening fence that nothing closes to the matrix that follows it and ends the line: cases."""
    if line.fences and (at := line.fences[-1][0]) == len(line.nodes) - 2 and line.fences[-1][1] in (OPENING, LEFT):
        if _is_matrix(reader, line.nodes[-1]):
            _take(reader, line, at, reader.labels[line.nodes[at]])


def _open(reader: Reader, line: Line, label: str, span: tuple[int, int], kind: int) -> None:
    """Put the fence and let it wait; nested too deep, it is a plain symbol."""
    if line.depth + len(line.fences) < DEPTH:
        line.fences.append((len(line.nodes), kind))
    if label:
        reader.put(line, label, span)


def _shut(reader: Reader, line: Line, fence: str, span: tuple[int, int]) -> None:
    """Make the last open fence and all that follows it one node, with the elements between commas."""
    at, kind = line.fences.pop() if line.fences else (0, NOTHING)
    if kind == NOTHING:
        reader.put(line, fence, span)
        return
    labels, parents, relations, nodes = reader.labels, reader.parents, reader.relations, line.nodes
    node, inner, count = nodes[at], nodes[at + 1 :], 1
    if len(inner) == 1 and _is_matrix(reader, inner[0]):
        _take(reader, line, at, labels[node] + fence)
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


def _bracket(reader: Reader, line: Line) -> bool:
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


def _take(reader: Reader, line: Line, at: int, fence: str) -> None:
    """Give fences to the matrix that stands alone after the opening one, whose place it takes."""
    before, matrix = line.nodes[at : at + 2]
    reader.labels[matrix] = f"M!{fence}{reader.labels[matrix][2:]}"
    reader.parents[matrix], reader.relations[matrix] = reader.parents[before], reader.relations[before]
    reader.parents[before] = GONE
    line.nodes[at:] = [matrix]
    reader.is_ordered = False
