"""brackets: what a fence with its elements means: a list, an interval, a set, a norm, a matrix."""

from __future__ import annotations

import re
from functools import lru_cache

from mirblab.formula.operations import Operations
from mirblab.formula.tree import Tree

_SHAPE = re.compile(r"M!(.*?)(\d{1,4})x(\d{1,4})", re.DOTALL)
_SINGLE = {"||": "F!abs", "∥∥": "O!norm", "‖‖": "O!norm", "⌊⌋": "F!floor", "⌈⌉": "F!ceiling", "[]": "M!D-[]"}
_ENDS = {"(": "O", ")": "O", "[": "C", "]": "C"}
_AROUND = {"()": "O!matrix", "[]": "O!matrix", "||": "F!det", "∥∥": "O!norm", "": ""}


@lru_cache(maxsize=4096)
def shape(label: str) -> tuple[str, int, int]:
    """Return the fence, the rows and the columns that a label M!… names; no rows where it names none.

    >>> shape("M!()1x2"), shape("M!{2x1"), shape("M!odd")
    (('()', 1, 2), ('{', 2, 1), ('odd', 0, 0))
    """
    found = _SHAPE.fullmatch(label)
    return (found[1], int(found[2]), int(found[3])) if found else (label[2:], 0, 0)


def has_bar(tree: Tree, fraction: int) -> bool:
    r"""Return whether a *fraction* has a bar: one whose brackets came with it from one command, as `\binom`, has none.

    >>> both = Tree(["M!()1x1", "O!divide"], [-1, 0], "-w", [(0, 6), (0, 6)])
    >>> has_bar(both, 1), has_bar(Tree(both.labels, both.parents, both.relations), 1)
    (False, True)
    """
    fence, spans = tree.parents[fraction], tree.spans
    if fence < 0 or not spans or tree.labels[fence][:2] != "M!":
        return True
    return spans[fence] != spans[fraction] or spans[fence] == (0, 0)


def fenced(grown: Operations, label: str, elements: list[int], is_list: bool, span: tuple[int, int]) -> int:
    """Return the operation of a fence or matrix with the *label* M!…; *is_list*: commas stand between the elements.

    As LaTeXML reads them: (a) is a itself, (a,b) and [a,b) intervals, (a,b,c) a vector, {a,b} a set, |a| and ‖a‖ an
    absolute value and a norm, rows are M!R! below M!M-RxC; elements in other fences are M!D- and the fence.
    """
    fence, rows, columns = shape(label)
    n_elements = len(elements)
    if rows > 1 or (n_elements > 1 and not is_list):
        return _matrix(grown, fence, (rows, columns), elements, span)
    if not elements:
        return grown.add(label, span=span)
    if fence == "{}":
        return _set(grown, elements, span)
    if n_elements == 1 and fence in ("()", ""):
        return elements[0]
    if n_elements == 1 and fence in _SINGLE:
        return grown.add(_SINGLE[fence], elements, span)
    if n_elements == 2 and len(fence) == 2 and fence[0] in "([" and fence[1] in ")]":
        return grown.add(f"O!interval({_ENDS[fence[0]]}-{_ENDS[fence[1]]})", elements, span)
    return grown.add(f"M!V-{n_elements}" if fence in ("()", "") else f"M!D-{fence}", elements, span)


def _set(grown: Operations, elements: list[int], span: tuple[int, int]) -> int:
    """Return a set of elements, or of what fulfils a condition; commas behind the bar list conditions."""
    if grown.labels[elements[0]] != "O!conditional-set":
        return grown.add(f"M!S-{len(elements)}", elements, span)
    if len(elements) > 1:
        sides = grown.operands[elements[0]]
        sides[1] = grown.add(f"M!L-{len(elements)}", [sides[1], *elements[1:]])
    return elements[0]


def _matrix(grown: Operations, fence: str, size: tuple[int, int], elements: list[int], span: tuple[int, int]) -> int:
    """Return a matrix of rows in its fence; the cells of a system of cases without rows, as LaTeXML has them."""
    if fence == "{":
        return grown.add("O!cases", elements, span)
    rows, width = size[0], max(size[1], 1)
    lines = [elements[start : start + width] for start in range(0, len(elements), width)]
    inner = grown.add(f"M!M-{rows}x{width}", [grown.add("M!R!", line) for line in lines], span)
    outer = _AROUND.get(fence, f"M!D-{fence}")
    return grown.add(outer, [inner], span) if outer else inner
