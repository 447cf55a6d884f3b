"""mathml_rows: brackets on a row of MathML become one node with their content below it, as in Tangent's trees."""

from __future__ import annotations

from collections.abc import Sequence

from mirblab.formula.nodes import Node

OPENING = frozenset("([{|∥")
CLOSING = frozenset(")]}|∥")
_BARS = OPENING & CLOSING


def is_operator(label: str) -> bool:
    """Return whether a label is bare: an operator, a relation, a bracket or punctuation.

    >>> is_operator("∑"), is_operator("!"), is_operator("V!x")
    (True, True, False)
    """
    return not (len(label) > 1 and label[1] == "!" and label[0] in "VNTOMWUE")


def chain(line: Sequence[Node], relation: str = "n") -> Node | None:
    """Return the first node of a *line*, each node hanging on the one before it; None for an empty line."""
    for before, after in zip(line, line[1:], strict=False):
        before.add(relation, after)
    return line[0] if line else None


def matrix(cells: Sequence[Sequence[Node]], fence: str, rows: int, columns: int) -> Node:
    """Return the `M!` node of *rows* × *columns* cells, in row order: the first below it, each next on the one before.

    >>> node = matrix([[Node("V!a")], []], "()", 1, 2)
    >>> node.label, node.children[0][1].children[0][1].label
    ('M!()1x2', 'W!')
    """
    node = Node(f"M!{fence}{rows}x{columns}")
    heads = [chain(cell) or Node("W!") for cell in cells]
    return node.add("w", chain(heads or [Node("W!")], "e"))


def wrapped(line: Sequence[Node], relations: str) -> Node:
    """Return the one node on which scripts by *relations* hang: the line's own, or an `M!1x1` around it.

    A line of several nodes has no place for a script, nor has a node that has one there already.
    """
    if len(line) == 1 and not any(line[0].first(relation) for relation in relations):
        return line[0]
    return matrix([line], "", 1, 1) if line else Node("W!")


def fenced(line: list[Node], loose: Sequence[int]) -> list[Node]:
    """Return a *line* with its brackets matched; *loose* are the places of what may be a bracket or a comma.

    Each closing bracket goes with the last opening one that is still free, whatever its shape; a bar with the last
    free bar if no free bracket stands between. A first bracket without a partner takes the last of the row; one before
    a table that ends the row is the table's (Tangent leaves it beside it).
    """
    if loose and loose[-1] == len(line) - 2 and line[-2].label in OPENING and _is_table(line[-1]):
        line[-1].label = f"M!{line[-2].label}{line[-1].label[2:]}"  # cases: what opens is never closed
        del line[-2]
        loose = loose[:-1]
    pairs = _pairs(line, loose)
    if not pairs:
        return line
    commas = {place for place in loose if line[place].label == ","}
    begins = {end: begin for begin, end in pairs.items()}
    open_now: list[list[list[Node]]] = [[[]]]  # the elements so far of the row, and of each bracket that is open
    for place, node in enumerate(line):
        if place in pairs:
            open_now.append([[]])
        elif place in begins:
            elements = open_now.pop()
            open_now[-1][-1].append(_around(line[begins[place]], elements, node))
        else:
            open_now[-1][-1].append(node)
            if len(open_now) > 1 and place in commas:
                open_now[-1].append([])
    return open_now[0][0]


def _pairs(line: Sequence[Node], loose: Sequence[int]) -> dict[int, int]:
    """Return where each bracket that has a partner begins and ends."""
    free: list[int] = []
    n_brackets = 0  # free ones that are no bars
    pairs: dict[int, int] = {}
    for place in loose:
        label = line[place].label
        if label in _BARS and free and line[free[-1]].label == label and free[-1] != place - 1:
            pairs[free.pop()] = place
        elif label in OPENING and not line[place].children:
            free.append(place)
            n_brackets += label not in _BARS
        elif label in CLOSING and label not in _BARS and n_brackets:
            while line[start := free.pop()].label in _BARS:  # a bar in brackets, as in P(A|B), is not one of a pair
                pass
            pairs[start] = place
            n_brackets -= 1
    last = len(line) - 1
    if free and free[0] == 0 and last > 0 and loose[-1] == last and line[last].label in CLOSING:
        return {0: last}  # LaTeXML makes a row of each pair of brackets, so the ends of a row belong together
    return pairs


def _around(opening: Node, elements: list[list[Node]], closing: Node) -> Node:
    """Return the node of a pair of brackets, or of the matrix between them; the closing one's scripts are its own."""
    fence = opening.label + closing.label
    if len(elements) > 1 and not elements[-1]:
        elements = elements[:-1]  # nothing after the last comma
    if len(elements) == 1 and len(elements[0]) == 1 and _is_table(only := elements[0][0]):
        only.label = f"M!{fence}{only.label[2:]}"
        only.children += closing.children
        return only
    node = matrix(elements, fence, 1, len(elements))
    node.children += closing.children
    return node


def _is_table(node: Node) -> bool:
    """Return whether a node is a table without brackets and scripts."""
    label = node.label
    return label[:2] == "M!" and label[2:3].isdigit() and label != "M!1x1" and len(node.children) == 1
