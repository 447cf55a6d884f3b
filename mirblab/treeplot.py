"""treeplot: a formula's layout tree or operator tree becomes a picture."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd

from mirblab.errors import MirblabError
from mirblab.figures import GREY, PALETTE, need, styled
from mirblab.treelayout import Layout, lay_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDEST = 15.0  # what fits a page, in the unit of a layout: the height of a symbol and the gap below it
_UNIT = 0.49  # inches
_LONGEST = 14  # characters of a label
MOST = 300  # nodes
_SIGNS = {
    "O!divide": "—", "O!root": "√", "U!times": "×", "U!plus": "+", "U!eq": "=", "O!minus": "−", "O!sum": "∑",
    "O!int": "∫", "O!product": "∏", "O!limit": "lim", "O!factorial": "!", "C!infinity": "∞", "C!emptyset": "∅",
    "O!leq": "≤", "O!geq": "≥", "O!lt": "<", "O!gt": ">", "O!in": "∈", "O!compose": "∘", "U!neq": "≠",
}  # fmt: skip


def _size(nodes: pd.DataFrame) -> tuple[float, float]:
    layout = _layout(nodes)
    unit = min(_UNIT, 7.35 / layout.width)
    return max(3.0, unit * layout.width), unit * layout.height + 0.45


@styled(_size)
def tree(nodes: pd.DataFrame, *, ax: Axes | None = None, matched: Iterable[int] = (), title: str = "") -> Axes:
    """Draw a tree of symbols: a layout tree from left to right, an operator tree from the top down.

    *nodes* is from `Tree.table()`: node, parent (-1: none), relation, label, and text if the labels are to be shown
    otherwise. In a layout tree the next symbol stands to the right, what is above or a superscript higher, what is
    below, a subscript, within, or the next element of a fence lower; a line too long for the page goes on below. In an
    operator tree the operands of an operation without order (U!) have no numbers. *matched* nodes are filled and have
    a thick border. Figure 3 of Zanibbi et al. 2020 draws trees this way. Raises MirblabError for a tree of more
    than 300 nodes, of which nobody could read a picture.

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
    need(nodes, "node", "parent", "relation", "label")
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
    """Return what is written in each node, in letters that the font has."""
    labels = nodes.text if "text" in nodes else nodes.label.map(_plain)
    texts = (_drawable(str(label)) for label in labels)
    return [text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…" for text in texts]


def _plain(label: str) -> str:
    """Return a label without its type, with a sign for an operation that has one; +! is what applies another node."""
    if label.startswith("+!"):
        return f"{_plain(label[2:])}(·)"
    if label in _SIGNS:
        return _SIGNS[label]
    return label[2:] or "·" if len(label) > 1 and label[1] == "!" and label[0] in "VNTOMWUFCE-" else label


@functools.cache
def _glyphs() -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family="DejaVu Sans"))).get_charmap())


def _drawable(text: str) -> str:
    """Return *text* with each character that the font lacks as its plain form, or else as its code."""
    return "".join(character if ord(character) in _glyphs() else _substitute(character) for character in text)


def _substitute(character: str) -> str:
    plain = unicodedata.normalize("NFKC", character)
    return plain if all(ord(one) in _glyphs() for one in plain) else f"U+{ord(character):04X}"


def _points(ax: Axes, layout: Layout) -> float:
    """Return the size of letters that fits the symbols' size on these axes."""
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
