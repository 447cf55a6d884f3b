"""moveplot: two runs as pictures: their values query by query, and where one query's documents moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.figures import GREY, PALETTE, axis, cut, legend_beside, look, need, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMALLEST, _LARGEST = 18, 320  # areas of dots, in points squared
_LETTERS = 26  # of a document's id
_ROW = 0.27  # inches
# What a document is: colour, filled or not, line.
_KINDS = {
    "relevant": (PALETTE[2], True, "-"),
    "judged, not relevant": (PALETTE[1], False, "--"),
    "not judged": (GREY, False, ":"),
}


@styled(lambda table: (5.4, 5.0))
def versus(
    table: pd.DataFrame, *, ax: Axes | None = None, first: str = "", second: str = "", measure: str = "value"
) -> Axes:
    """Draw each query as a dot, its value in the first run across and in the second upwards; on the line: equal.

    *table* is from `significance.wide`, queries × systems; without names its first two columns are taken. Queries
    with the same two values are one dot, whose area grows with their number.

    >>> versus(pd.DataFrame({"a": [0.9, 0.5, 0.5], "b": [0.4, 0.5, 0.5]})).get_title("left")
    'b: better on 0, equal on 2, worse on 1 queries'
    """
    names = [first or str(table.columns[0]), second or str(table.columns[min(1, table.shape[1] - 1)])]
    need(table, *names)
    # Values that print alike are the same dot, whatever the last bit says.
    dots = table[names].round(6).set_axis(["x", "y"], axis=1).value_counts().reset_index()
    gain = dots.y - dots.x
    area = _SMALLEST + (_LARGEST - _SMALLEST) * np.sqrt((dots["count"] - 1) / max(len(table), 1))
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
    for name, part, marker in ((names[1], gain > 0, "^"), (names[0], gain < 0, "v"), ("", gain == 0, "o")):
        if part.any():
            ax.scatter(dots.x[part], dots.y[part], s=area[part], marker=marker, alpha=0.75, linewidths=0, zorder=2,
                       clip_on=False, color=look(name)[0] if name else GREY,
                       label=f"{name} better" if name else "equal")  # fmt: skip
    better, worse = (int(dots["count"][part].sum()) for part in (gain > 0, gain < 0))
    ax.set_title(
        f"{names[1]}: better on {better:,}, equal on {len(table) - better - worse:,}, worse on {worse:,} queries"
    )
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.set_xlabel(f"{axis(measure)}\n{names[0]}")
    ax.set_ylabel(f"{names[1]}\n{axis(measure)}")
    legend_beside(ax)
    return ax


@styled(lambda table: (6.8, 1.5 + _ROW * (2 + min(len(table), 40))))
def shifts(
    table: pd.DataFrame, *, ax: Axes | None = None, first: str = "first", second: str = "second", k: int = 10,
    relevant_from: int = 1,
) -> Axes:  # fmt: skip
    """Draw where the documents of one query stood in the first run, left, and in the second, right, best on top.

    *table* is from `moves.moved`, of one query: doc_id, rank_a, rank_b, relevance. Ranks over *k* lie below the line,
    in their order, each with its rank; a document that a run did not return says so. Filled and solid: relevance of
    *relevant_from* or more; hollow and dashed: judged, but less; hollow and dotted: not judged.

    >>> rows = {"doc_id": ["a", "b"], "rank_a": [1, 14], "rank_b": [2, 1], "relevance": [1, None]}
    >>> [text.get_text() for text in shifts(pd.DataFrame(rows).convert_dtypes(), k=10).texts if "14" in text.get_text()]
    ['b  14']
    """
    need(table, "doc_id", "rank_a", "rank_b", "relevance")
    places = [_places(table[name].to_numpy(float, na_value=np.nan), k) for name in ("rank_a", "rank_b")]
    kinds = _kinds(table.relevance.to_numpy(float, na_value=np.nan), relevant_from)
    for row, kind in enumerate(kinds):
        colour, is_filled, line = _KINDS[kind]
        ax.plot([0, 1], [places[0][row], places[1][row]], color=colour, linestyle=line, linewidth=1.5, marker="o",
                markersize=7, markerfacecolor=colour if is_filled else "white", clip_on=False)  # fmt: skip
    _labels(ax, table, places)
    deepest = max(k + 1.0, *(side.max() for side in places))
    ax.axhline(k + 0.75, color=GREY, linewidth=0.8)
    ax.set(xlim=(0, 1), ylim=(deepest + 0.6, 0.4), yticks=[])
    ax.set_xticks([0, 1], [f"{first}\nrank on the left", f"{second}\nrank on the right"])
    ax.xaxis.tick_top()
    ax.grid(visible=False)
    ax.spines[["left", "bottom", "top"]].set_visible(False)
    _key(ax, kinds)
    return ax


def _places(ranks: np.ndarray, k: int) -> np.ndarray:
    """Return the height of each rank: itself up to *k*; the deeper ones, then the missing, follow below the line."""
    order = np.argsort(np.where(np.isnan(ranks), np.inf, ranks), kind="stable")
    below = order[~(ranks[order] <= k)]
    places = ranks.copy()
    places[below] = k + 1.5 + np.arange(len(below))
    return places


def _kinds(relevance: np.ndarray, relevant_from: int) -> list[str]:
    names = list(_KINDS)
    return [names[2] if np.isnan(one) else names[0] if one >= relevant_from else names[1] for one in relevance]


def _labels(ax: Axes, table: pd.DataFrame, places: list[np.ndarray]) -> None:
    for side, (name, align) in enumerate((("rank_a", "right"), ("rank_b", "left"))):
        for doc, rank, place in zip(table.doc_id, table[name], places[side], strict=True):
            parts = [cut(str(doc), _LETTERS), "not returned" if pd.isna(rank) else f"{rank:,}"]
            text = "  ".join(parts if side == 0 else parts[::-1])
            ax.annotate(text, (side, place), xytext=(-8 if side == 0 else 8, 0), textcoords="offset points",
                        ha=align, va="center", fontsize=8, annotation_clip=False)  # fmt: skip


def _key(ax: Axes, kinds: list[str]) -> None:
    from matplotlib.lines import Line2D

    keys = [Line2D([], [], color=colour, linestyle=line, marker="o", markersize=7, label=kind,
                   markerfacecolor=colour if is_filled else "white")
            for kind, (colour, is_filled, line) in _KINDS.items() if kind in kinds]  # fmt: skip
    ax.legend(handles=keys, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=3, borderaxespad=0)
