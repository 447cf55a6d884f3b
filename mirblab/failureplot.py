"""failureplot: what two systems reach query by query, with the queries named, and how a group of queries differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.figures import GREY, PALETTE, axis, cut, look, need, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW = 0.24  # inches of a query
_LETTERS = 64  # of a label


def _ends(table: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return the first and last *n* rows by difference, all of them where there are hardly more."""
    ordered = table.sort_values(["difference", "query_id"], ascending=[False, True], ignore_index=True)
    return ordered if len(ordered) <= 2 * n + 2 else pd.concat([ordered.head(n), ordered.tail(n)])


@styled(lambda table: (8.4, 1.5 + _ROW * min(len(table), 27)))
def duel(table: pd.DataFrame, *, ax: Axes | None = None, n: int = 12) -> Axes:
    """Draw both systems' values of each query, joined by a line: the winner's (filled) largest gain above.

    *table* is from `failures.outcomes`, perhaps with a column `label` (else the query's id). Of more than 2 *n* + 2
    queries the first and last *n* are drawn, and how many stand between is written there.

    >>> rows = pd.DataFrame({"query_id": ["q1", "q2"], "winner": [1.0, 0.2], "loser": [0.5, 0.4]})
    >>> rows = rows.assign(difference=rows.winner - rows.loser)
    >>> rows.attrs = {"winner": "bm25", "loser": "minilm", "measure": "RR"}
    >>> [label.get_text() for label in duel(rows).get_yticklabels()]
    ['q1', 'q2']
    """
    need(table, "query_id", "winner", "loser", "difference")
    shown = _ends(table, n)
    is_cut = len(shown) < len(table)
    places = np.arange(len(shown)) + (1.0 * (np.arange(len(shown)) >= n) if is_cut else 0.0)
    ax.hlines(
        places,
        shown[["winner", "loser"]].min(axis=1),
        shown[["winner", "loser"]].max(axis=1),
        color=GREY,
        linewidth=1.4,
    )
    for side in ("loser", "winner"):
        name = str(table.attrs.get(side, side))
        colour, marker = look(name)
        ground = colour if side == "winner" else "white"
        ax.plot(shown[side], places, linestyle="none", marker=marker, markersize=6.5, color=colour, label=name,
                markerfacecolor=ground, markeredgewidth=1.6, clip_on=False)  # fmt: skip
    if is_cut:
        between = f"{len(table) - len(shown):,} queries between"
        ax.text(0.5, n, between, ha="center", va="center", color=GREY, fontsize=9)
    labels = shown["label" if "label" in shown else "query_id"].astype(str)
    ax.set_yticks(places, [cut(text, _LETTERS) for text in labels], fontsize=8.5)
    ax.set_ylim(places[-1] + 0.6, -0.6)
    ax.set_xlim(0, 1)
    ax.set_xlabel(axis(str(table.attrs.get("measure", "value"))))
    ax.figure.legend(*ax.get_legend_handles_labels(), loc="outside upper right", ncols=2)
    ax.grid(axis="y", visible=False)
    return ax


@styled(lambda table: (6.8, 1.4 + 0.3 * len(table)))
def contrasts(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the chance that a query of the group has more of each feature than another one, with its interval.

    *table* is from `contrasts.contrasts`, perhaps with a column `cluster`, whose name then stands with the feature.
    Filled: differs after Holm's correction; hollow: does not. The line at 0.5 is no difference.

    >>> row = {"feature": "words", "chance": 0.9, "low": 0.7, "high": 0.95, "differs": True}
    >>> [label.get_text() for label in contrasts(pd.DataFrame([row])).get_yticklabels()]
    ['words']
    """
    need(table, "feature", "chance", "low", "high", "differs")
    for place, row in enumerate(table.itertuples()):
        ax.plot([row.low, row.high], [place, place], color=PALETTE[0], linewidth=2, solid_capstyle="butt")
        ax.plot(row.chance, place, marker="o", markersize=7, color=PALETTE[0], markeredgewidth=1.6,
                markerfacecolor=PALETTE[0] if row.differs else "white", clip_on=False)  # fmt: skip
    ax.axvline(0.5, color=GREY, linewidth=0.8)
    names = table.feature.astype(str)
    labels = names + " · " + table.cluster.astype(str) if "cluster" in table else names
    ax.set_yticks(range(len(table)), [cut(text, _LETTERS) for text in labels])
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlim(0, 1)
    ax.set_xlabel("chance that a query of the group has more of it\nthan another one; 0.5: no difference")
    ax.grid(axis="y", visible=False)
    return ax
