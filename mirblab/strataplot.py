"""strataplot: values by kind of topic, one panel per system, all with the same axis."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from mirblab.errors import MirblabError
from mirblab.figures import GREY, axis, look, need, panels, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GAP = 0.9  # between two groups of bars, whose width is 0.8
_TITLE = 27  # characters on a line
_COLUMNS = {1: 1, 2: 2, 3: 3, 4: 2}  # panels side by side; three where there are more


def strata(table: pd.DataFrame, *, ax: Axes | Sequence[Axes] | None = None) -> Axes | list[Axes]:
    """Draw each system's mean for every kind of topic as a bar with its interval, one panel per system.

    *table* has the columns of `significance.bootstrap_intervals`, one measure, with kind (what the topics are divided
    by) and label (the part) for collection; groups and bars come in the table's order. All panels have the same
    vertical axis, from 0, as in Figure 2 of Zhong et al. 2022. *ax* is one axes, or as many as there are systems;
    several come back as a list.

    >>> rows = [("category", "Proof", "RR", "bm25", 0.5, 0.4, 0.6, 20), ("difficulty", "Low", "RR", "bm25", 1, 1, 1, 9)]
    >>> names = ["kind", "label", "measure", "system", "mean", "low", "high", "n_queries"]
    >>> [text.get_text() for text in strata(pd.DataFrame(rows, columns=names)).get_xticklabels()]
    ['Proof (20)', 'Low (9)']
    """

    parts = list(table.groupby("system", sort=False, observed=True)) if len(table) else [("", table)]
    wide = _COLUMNS.get(len(parts), 3)
    axes = panels(ax, len(parts), "systems", wide, (3.7 * min(wide, 2), 2.9))
    top = min(1.0, max(0.05, 1.06 * float(table.high.max()))) if len(table) else 1.0
    for one, (name, part) in zip(axes, parts, strict=True):
        _panel(part, ax=one, name=str(name), top=top)
        if ax is None and one.get_subplotspec().colspan.start:  # the axis is that of the first panel of the row
            one.set_ylabel("")
    return axes[0] if len(axes) == 1 else axes


@styled(lambda table: (3.6, 2.9))
def _panel(table: pd.DataFrame, *, ax: Axes, name: str, top: float) -> Axes:
    need(table, "kind", "label", "measure", "mean", "low", "high", "n_queries")
    if table.measure.nunique() != 1:
        raise MirblabError(f"one measure at a time, found {', '.join(map(str, table.measure.unique()))}")
    colour, place, places = look(name)[0], 0.0, []
    for kind, group in table.groupby("kind", sort=False, observed=True):
        here = [place + step for step in range(len(group))]
        ax.bar(here, group["mean"], width=0.8, color=colour)
        ax.vlines(here, group.low, group.high, color="black", linewidth=1.2)
        ax.text(sum(here) / len(here), top, str(kind), ha="center", va="bottom", fontsize=8.5, color=GREY)
        places += here
        place = here[-1] + 1 + _GAP
    names = [f"{row.label} ({row.n_queries:,})" for row in table.itertuples()]
    ax.set_xticks(places, names, rotation=90, fontsize=8.5)
    ax.set_ylim(0, top)
    ax.set_ylabel(axis(table.measure.iloc[0]))
    ax.set_title("\n".join(textwrap.wrap(name, _TITLE)), pad=16)
    ax.grid(axis="x", visible=False)
    return ax
