"""trees: plots of formula trees."""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.core.wording import shorten_label
from mirblab.display.figures import GREY, NEW_AXES, PALETTE, draw_styled, require_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_GAP = 0.5  # between neighbours on a line: room for the edge's label
_AIR = 0.22  # between what no edge joins
_HALF = 0.32  # of a node's height
# The distance from the middle of a node to the left end of what is above or below it.
_ABOVE = {"o": 0.0, "a": 0.62, "c": 0.0}
_BELOW = {"u": 0.0, "w": 0.3, "b": 0.62, "d": 0.0}


@dataclass
class Layout:
    """The middle and the width of each node, in units of the distance between rows; a node is 0.64 high.

    `turns`: nodes at which a line is continued below, by the height of the space above; `bends`: x of indirect edges.
    """

    places: list[tuple[float, float]]
    widths: list[float]
    turns: dict[int, float]
    bends: dict[int, float]
    is_sideways: bool = False

    def __post_init__(self) -> None:
        margin = 0.6 if self.turns else 0.15
        spread = [(x - width / 2, x + width / 2) for (x, _), width in zip(self.places, self.widths, strict=True)]
        self.left = min(start for start, _ in spread) - margin
        self.width = max(end for _, end in spread) + margin - self.left
        self.low = min(y for _, y in self.places) - _HALF - 0.1
        self.height = max(y for _, y in self.places) + _HALF + 0.1 - self.low

    def path(self, parent: int, child: int) -> list[tuple[float, float]]:
        """Return the points of an edge, which is straight or leads around other nodes."""
        (x, y), (to_x, to_y) = self.places[parent], self.places[child]
        if child in self.bends:
            upright = self.bends[child]
            first = y if self.is_sideways else y + (0.5 if to_y > y else -0.5)
            return [(x, y), (upright, first), (upright, to_y), (to_x, to_y)]
        if child not in self.turns:
            return [(x, y), (to_x, to_y)]
        right, left = x + self.widths[parent] / 2 + 0.4, to_x - self.widths[child] / 2 - 0.4
        return [(x, y), (right, y), (right, self.turns[child]), (left, self.turns[child]), (left, to_y), (to_x, to_y)]

    def middle(self, parent: int, child: int) -> tuple[float, float]:
        """Return the position of an edge's label."""
        (x, y), (to_x, to_y) = self.places[parent], self.places[child]
        if child in self.turns:
            return to_x - self.widths[child] / 2 - 0.4, (self.turns[child] + to_y) / 2
        if self.is_sideways:
            return self.bends[child] + 0.27, to_y
        if child in self.bends:
            return self.bends[child], (y + to_y) / 2
        if y == to_y:
            return (x + self.widths[parent] / 2 + to_x - self.widths[child] / 2) / 2, y
        return (x + to_x) / 2, (y + to_y) / 2


WIDEST = 15.0  # what fits a page, in the unit of a layout: the height of a symbol and the gap below it
_UNIT = 0.49  # inches
_LONGEST = 20  # characters of a label
MOST = 300  # nodes
_SIGNS = {
    "O!divide": "—", "O!root": "√", "U!times": "×", "U!plus": "+", "U!eq": "=", "O!minus": "−", "O!sum": "∑",
    "O!int": "∫", "O!product": "∏", "O!limit": "lim", "O!factorial": "!", "C!infinity": "∞", "C!emptyset": "∅",
    "O!leq": "≤", "O!geq": "≥", "O!lt": "<", "O!gt": ">", "O!in": "∈", "O!compose": "∘", "U!neq": "≠",
    "-": "−", "M!1x1": "group", "M!R!": "row",
}  # fmt: skip
_FENCE = re.compile(r"M!(\D*)(\d+)x(\d+)")  # a fence or a matrix with its rows and columns
_COLLECTION = re.compile(r"M!([LSV])-(\d+)")
_KINDS = {"L": "list", "S": "set", "V": "vector"}


def _size(nodes: pd.DataFrame) -> tuple[float, float]:
    layout = _layout(nodes)
    unit = min(_UNIT, 7.35 / layout.width)
    return max(3.0, unit * layout.width), unit * layout.height + 0.45


@draw_styled(_size)
def tree(nodes: pd.DataFrame, *, ax: Axes = NEW_AXES, matched: Iterable[int] = (), title: str = "") -> Axes:
    """Draw a tree of symbols: a layout tree from left to right, an operator tree from the top down.

    *nodes* is from `Tree.table()`: node, parent (-1: none), relation, label, and optional text, shown for the label. In
    a layout tree the next symbol is to the right, superscripts and what is above are higher, all other relations lower;
    long lines are continued below. Operands without an order (U!) have no numbers. *matched* nodes are filled. The
    style is that of Figure 3 of Zanibbi et al. 2020. Raises MirblabError for a tree of more than 300 nodes.

    >>> square = [(0, -1, "-", "V!x"), (1, 0, "a", "N!2")]
    >>> ax = tree(pd.DataFrame(square, columns=["node", "parent", "relation", "label"]), matched=[1])
    >>> sorted(text.get_text() for text in ax.texts)
    ['2', 'a', 'x']
    """
    layout = _layout(nodes)
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.set_xlim(layout.left, layout.left + layout.width)
    ax.set_ylim(layout.low, layout.low + layout.height)
    points = _points(ax, layout)
    _edges(nodes, layout, ax, points)
    _symbols(nodes, layout, ax, points, set(matched))
    if title:
        ax.set_title(title)
    return ax


def _layout(nodes: pd.DataFrame) -> Layout:
    require_columns(nodes, "node", "parent", "relation", "label")
    if len(nodes) > MOST:
        raise MirblabError(f"a tree of {len(nodes):,} nodes cannot be read as a picture; draw at most {MOST}")
    parents = nodes.parent.tolist()
    wrong = [node for node, parent in enumerate(parents) if not (0 <= parent < node or node == 0 and parent == -1)]
    if wrong:
        raise MirblabError(
            f"node {wrong[0]} of the table has parent {parents[wrong[0]]}; a parent stands before its children, and "
            "only the first node has none (-1)"
        )
    widths = [0.64 + 0.24 * (len(text) - 1) for text in _texts(nodes)]
    return lay_out(parents, nodes.relation.astype(str).tolist(), widths, widest=WIDEST)


def _texts(nodes: pd.DataFrame) -> list[str]:
    labels = nodes.text if "text" in nodes else nodes.label.map(_plain)
    if "text" not in nodes and nodes.relation.isin(list("0123456789")).any():  # a bar would look like a minus
        labels = labels.mask(nodes.label == "O!divide", "÷")
    return [shorten_label(_drawable(str(label)), _LONGEST) for label in labels]


def _plain(label: str) -> str:
    """Return a label without its type, as a sign or in words where it has them; +! marks the application of another.

    >>> [_plain(label) for label in ("V!x", "M!()1x1", "M![]1x2", "M!()2x2", "M!{2x1", "M!M-2x2", "M!S-3")]
    ['x', '( )', '[ , ]', '(2×2 matrix)', '{2×1 matrix', '2×2 matrix', 'set of 3']
    """
    if label.startswith("+!"):
        return f"{_plain(label[2:])}(·)"
    if label in _SIGNS:
        return _SIGNS[label]
    if match := _COLLECTION.fullmatch(label):
        return f"{_KINDS[match[1]]} of {match[2]}"
    if match := _FENCE.fullmatch(label):
        fence, rows, columns = match[1].removeprefix("M-"), int(match[2]), int(match[3])
        inside = " " + ", " * (columns - 1) if columns < 5 else f"{columns} entries"
        return f"{fence[:1]}{f'{rows}×{columns} matrix' if rows > 1 or not fence else inside}{fence[1:]}"
    return label[2:] or "·" if len(label) > 1 and label[1] == "!" and label[0] in "VNTOMWUFCE-" else label


def _drawable(text: str) -> str:
    return "".join(character if ord(character) in _glyphs() else _substitute(character) for character in text)


def _substitute(character: str) -> str:
    plain = unicodedata.normalize("NFKC", character)
    return plain if all(ord(sign) in _glyphs() for sign in plain) else f"U+{ord(character):04X}"


@functools.cache
def _glyphs() -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family="DejaVu Sans"))).get_charmap())


def _points(ax: Axes, layout: Layout) -> float:
    """Return the font size that fits the symbols on these axes."""
    box = ax.get_window_extent()
    unit = min(box.width / layout.width, box.height / layout.height) / ax.figure.dpi
    return max(3.0, min(12.0, 25.0 * unit))


def _edges(nodes: pd.DataFrame, layout: Layout, ax: Axes, points: float) -> None:
    labels = nodes.label.tolist()
    for child, (parent, relation) in enumerate(zip(nodes.parent, nodes.relation, strict=True)):
        if parent < 0:
            continue
        path = layout.path(parent, child)
        ax.plot(
            *zip(*path, strict=True), color=GREY, linewidth=1, zorder=1, linestyle=":" if child in layout.turns else "-"
        )
        if not labels[parent].startswith("U!"):
            x, y = layout.middle(parent, child)
            ax.text(x, y, relation, ha="center", va="center_baseline", fontsize=max(5.0, 0.75 * points), style="italic",
                    color=PALETTE[0], zorder=2,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})  # fmt: skip


def _symbols(nodes: pd.DataFrame, layout: Layout, ax: Axes, points: float, matched: set[int]) -> None:
    from matplotlib.patches import FancyBboxPatch

    for node, text in enumerate(_texts(nodes)):
        (x, y), width = layout.places[node], layout.widths[node]
        is_matched = nodes.node.iloc[node] in matched
        ax.add_patch(
            FancyBboxPatch(
                (x - width / 2, y - 0.32),
                width,
                0.64,
                boxstyle="round,pad=0,rounding_size=0.32",
                zorder=3,
                facecolor="#F6C65B" if is_matched else "white",
                edgecolor=PALETTE[1] if is_matched else "black",
                linewidth=2 if is_matched else 0.9,
            )  # fmt: skip
        )
        ax.text(x, y - 0.02, text, ha="center", va="center_baseline", fontsize=points, zorder=4)


def lay_out(parents: Sequence[int], relations: Sequence[str], widths: Sequence[float], *, widest: float) -> Layout:
    """Return positions at which no nodes of a tree overlap; *widest* is the desired greatest width.

    *relations* are those of `Tree.table()`. With digits among them the tree is an operator tree: it grows downwards, or
    to the right if it is much too wide. Else its lines run to the right and are continued below at *widest*. Subtrees
    are laid out once and moved together as far as their outlines allow (Reingold and Tilford 1981).
    """
    below: list[list[int]] = [[] for _ in parents]
    after: dict[int, int] = {}  # what follows on the line
    is_operation = any(relation in "0123456789" for relation in relations)
    for node, (parent, relation) in enumerate(zip(parents, relations, strict=True)):
        if relation == "n" and not is_operation:
            after.setdefault(parent, node)
        if parent >= 0 and after.get(parent) != node:
            below[parent].append(node)
    blocks: dict[int, _Block] = {}
    for node in reversed(range(len(parents))):
        hung = [(child, relations[child], blocks.pop(child)) for child in below[node]]
        blocks[node] = (_operation if is_operation else _symbol)(node, hung, widths[node])
        if not is_operation and after.get(parents[node]) != node:
            blocks[node] = _line(node, after, blocks, widths, widest)
    whole = blocks[0] if parents else _Block()
    places = [(x, float(row)) for _, (x, row) in sorted(whole.places.items())]
    layout = Layout(places, list(widths), whole.turns, whole.bends)
    if is_operation and layout.width > 1.8 * widest:
        return _sideways(parents, below, widths)
    return layout


@dataclass
class _Block:
    """Nodes with positions (x, row) relative to one of them, and their leftmost and rightmost x in each row."""

    places: dict[int, tuple[float, int]] = field(default_factory=dict)
    rows: dict[int, tuple[float, float]] = field(default_factory=dict)
    turns: dict[int, float] = field(default_factory=dict)
    bends: dict[int, float] = field(default_factory=dict)

    def put(self, other: _Block, x: float, row: int) -> None:
        for node, (place, at) in other.places.items():
            self.places[node] = (place + x, at + row)
        for at, (start, end) in other.rows.items():
            self.claim(at + row, start + x, end + x)
        for node, height in other.turns.items():
            self.turns[node] = height + row
        for node, upright in other.bends.items():
            self.bends[node] = upright + x

    def claim(self, row: int, start: float, end: float) -> None:
        left, right = self.rows.get(row, (start, end))
        self.rows[row] = (min(left, start), max(right, end))

    def beside(self, other: _Block, row: int) -> float:
        """Return the least x at which *other*, moved by *row*, is to the right of this block."""
        common = [at for at in other.rows if at + row in self.rows]
        return max((self.rows[at + row][1] + _AIR - other.rows[at][0] for at in common), default=float("-inf"))

    def before(self, other: _Block, row: int) -> float:
        """Return the greatest x at which *other*, moved by *row*, is to the left of this block."""
        common = [at for at in other.rows if at + row in self.rows]
        return min((self.rows[at + row][0] - _AIR - other.rows[at][1] for at in common), default=float("inf"))

    def hang(self, root: int, other: _Block, x: float, row: int) -> None:
        """Add a block above or below, and reserve space for the edge to its *root*, around the block if necessary."""
        between = range(min(row, 0) + 1, max(row, 0))
        spread = {at: other.rows[at - row] for at in between if at - row in other.rows}
        if x >= 0 and any(start - 0.1 < x * at / row - x < end + 0.1 for at, (start, end) in spread.items()):
            upright = x
            x += _GAP - min(start for start, _ in other.rows.values())
            self.bends[root] = upright
            for at in between:
                self.claim(at, upright - 0.1, upright + 0.1)
            self.claim(row, upright - 0.1, upright + 0.1)
        else:
            for at in between:
                self.claim(at, x * at / row - 0.1, x * at / row + 0.1)
        self.put(other, x, row)


def _sideways(parents: Sequence[int], below: list[list[int]], widths: Sequence[float]) -> Layout:
    """Return positions for a tree too wide for the page: it grows to the right, with its leaves in separate rows."""
    rows, leaf, waiting = [0.0] * len(parents), 0, [0]
    while waiting:
        node = waiting.pop()
        waiting += reversed(below[node])
        rows[node], leaf = float(leaf), leaf + (not below[node])
    for node in reversed(range(len(parents))):
        if below[node]:
            rows[node] = (rows[below[node][0]] + rows[below[node][-1]]) / 2
    starts = [0.0] * len(parents)
    for node, parent in enumerate(parents[1:], 1):
        starts[node] = starts[parent] + widths[parent] + 0.8
    places = [(start + width / 2, -0.78 * row) for start, row, width in zip(starts, rows, widths, strict=True)]
    return Layout(places, list(widths), {}, {node: starts[node] - 0.5 for node in range(1, len(parents))}, True)


def _operation(node: int, hung: list[tuple[int, str, _Block]], width: float) -> _Block:
    row = _Block()
    for place, (_, _, child) in enumerate(hung):
        row.put(child, row.beside(child, 0) if place else 0.0, 0)
    block = _Block({node: (0.0, 0)}, {0: (-width / 2, width / 2)})
    if hung:
        middle = (row.places[hung[0][0]][0] + row.places[hung[-1][0]][0]) / 2
        block.put(row, -middle, -1)
    return block


def _symbol(node: int, hung: list[tuple[int, str, _Block]], width: float) -> _Block:
    """Return a node with what is above and below it, without the rest of its line."""
    block = _Block({node: (0.0, 0)}, {0: (-width / 2, width / 2)})
    has_element = any(relation == "e" for _, relation, _ in hung)
    for root, relation, other in sorted(hung, key=lambda child: "ouwbae".find(child[1])):
        if relation in _ABOVE:
            row, indent = 1 - min(other.rows), _ABOVE[relation]
        elif relation == "e":  # below everything else, so that elements make a column
            row, indent = min(block.rows) - 1 - max(other.rows), 0.0
        else:
            row, indent = -1 - max(other.rows), _BELOW.get(relation, 0.3)
            indent = max(indent, 0.3) if has_element else indent
        if relation in "cd":
            ends = [end for _, end in other.rows.values()]
            block.hang(root, other, min(-width / 2 - 0.1 - max(ends), block.before(other, row)), row)
        else:
            start = indent + width / 2 if indent > 0.5 or has_element and relation != "e" else indent
            block.hang(root, other, max(start, block.beside(other, row)) if relation != "e" else 0.0, row)
    return block


def _line(
    first: int, after: dict[int, int], blocks: dict[int, _Block], widths: Sequence[float], widest: float
) -> _Block:
    """Return a line of symbols, cut into lines of about equal width if it is wider than *widest*."""
    nodes = [first]
    while nodes[-1] in after:
        nodes.append(after[nodes[-1]])
    parts = [(node, blocks.pop(node)) for node in nodes]
    whole = _pack(parts, widths, float("inf"))
    width = _width(whole)
    n_lines = math.ceil(width / widest - 0.15)
    return whole if n_lines < 2 else _pack(parts, widths, 1.08 * width / n_lines)


def _pack(parts: list[tuple[int, _Block]], widths: Sequence[float], widest: float) -> _Block:
    whole, line = _Block(), _Block()
    x, before = 0.0, -1
    for node, block in parts:
        if line.rows:
            x = max(x + widths[before] / 2 + _GAP + widths[node] / 2, line.beside(block, 0))
            start = min(start for start, _ in line.rows.values())
            if x + max(end for _, end in block.rows.values()) - start > widest:
                _below(whole, line)
                line, x = _Block(turns={node: 0.0}), 0.0
        line.put(block, x, 0)
        before = node
    _below(whole, line)
    return whole


def _below(whole: _Block, line: _Block) -> None:
    """Add a line below all others; the edge to it passes above its highest symbol."""
    top = max(line.rows)
    for node in line.places.keys() & line.turns.keys():
        if line.places[node] == (0.0, 0):
            line.turns[node] = top + 0.5
    whole.put(line, 0.4 if whole.rows else 0.0, min(whole.rows) - 1 - top if whole.rows else 0)


def _width(block: _Block) -> float:
    return max(end for _, end in block.rows.values()) - min(start for start, _ in block.rows.values())
