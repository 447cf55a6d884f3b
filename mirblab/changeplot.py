"""changeplot: what a change does: differences with their intervals, and a value against a setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import pandas as pd

from mirblab.errors import MirblabError
from mirblab.figures import GREY, PALETTE, axis, need, panels, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDE = 2  # panels side by side that stay legible on a page
_LETTERS = 28  # of a label that fits one panel


def effects(table: pd.DataFrame, *, ax: Axes | Sequence[Axes] | None = None) -> list[Axes]:
    """Draw each system's difference from the baseline with its interval, one panel per collection; return the axes.

    *table* is from `significance.compare` with a baseline: collection, measure, system_a, difference, low, high,
    significant. Filled: told apart after Holm's correction; hollow: not. *ax*: as many axes as collections.

    >>> row = ("c", "RR", "without pairs", -0.1, -0.2, -0.05, True)
    >>> names = ["collection", "measure", "system_a", "difference", "low", "high", "significant"]
    >>> effects(pd.DataFrame([row], columns=names))[0].get_xlabel()
    'change of RR,\\n−1 to 1, right of 0: better'
    """
    need(table, "collection", "measure", "system_a", "difference", "low", "high", "significant")
    rows = int(table.groupby("collection", observed=True).size().max()) if len(table) else 1
    return _panels(table, ax, 1.3 + 0.3 * rows, True, _effects)


def curve(table: pd.DataFrame, *, x: str, ax: Axes | Sequence[Axes] | None = None, log: bool = False) -> list[Axes]:
    """Draw a value against the setting *x*, one panel per collection; return the axes.

    *table*: collection, measure, *x* and value; an optional column held_out, one number per collection, is a dashed
    line: what the setting gives on queries that had no part in its choice. Each panel has its own range of values,
    which need not begin at 0. *log*: the axis of *x* is logarithmic. *ax*: as many axes as collections.

    >>> points = pd.DataFrame({"collection": "c", "measure": "RR", "weight": [0.1, 0.9], "value": [0.4, 0.6]})
    >>> curve(points.assign(held_out=0.5), x="weight")[0].get_legend_handles_labels()[1]
    ['every query sees the setting', 'held-out queries, chosen without them']
    """
    need(table, "collection", "measure", x, "value")

    def draw(ax: Axes, part: pd.DataFrame) -> None:
        _curve(ax, part.sort_values(x), x, log)

    drawn = _panels(table, ax, 2.9, False, draw)
    if len(table):
        handles, labels = drawn[0].get_legend_handles_labels()
        if len(labels) > 1:
            with style():
                drawn[0].figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return drawn


def _effects(ax: Axes, part: pd.DataFrame) -> None:
    for place, row in enumerate(part.itertuples()):
        ax.plot([row.low, row.high], [place, place], color=PALETTE[0], linewidth=2, solid_capstyle="butt")
        ax.plot(row.difference, place, marker="o", markersize=7, color=PALETTE[0], markeredgewidth=1.6,
                markerfacecolor=PALETTE[0] if row.significant else "white")  # fmt: skip
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set_yticks(range(len(part)), part.system_a.astype(str))
    ax.set_ylim(len(part) - 0.5, -0.5)
    if not part[["low", "high"]].abs().gt(1e-9).any(axis=None):
        ax.set_xlim(-0.01, 0.01)  # else the axis shows rounding errors
    ax.locator_params(axis="x", nbins=4)
    ax.set_xlabel(f"{fill(f'change of {part.measure.iloc[0]},', _LETTERS)}\n−1 to 1, right of 0: better")
    ax.grid(axis="y", visible=False)


def _curve(ax: Axes, part: pd.DataFrame, x: str, log: bool) -> None:
    ax.plot(part[x], part.value, color=PALETTE[0], marker="o", label="every query sees the setting")
    if "held_out" in part:
        ax.axhline(part.held_out.iloc[0], color=PALETTE[1], linestyle="--",
                   label="held-out queries, chosen without them")  # fmt: skip
    if log:
        ax.set_xscale("log")
        ax.set_xticks(part[x], [f"{number:g}" for number in part[x]])
        ax.minorticks_off()
    ax.locator_params(axis="y", nbins=5)
    ax.set_xlabel(fill(x, _LETTERS))
    ax.set_ylabel(fill(axis(part.measure.iloc[0]), _LETTERS))


def _panels(
    table: pd.DataFrame,
    ax: Axes | Sequence[Axes] | None,
    height: float,
    share: bool,
    draw: Callable[[Axes, pd.DataFrame], None],
) -> list[Axes]:
    """Return the axes of all collections, each drawn by *draw*; with *share* they have one axis of names."""

    groups = list(table.groupby("collection", sort=False, observed=True))
    if not groups:
        raise MirblabError("the table is empty, so there is nothing to draw")
    with style():
        wide = min(len(groups), _WIDE)
        axes = panels(ax, len(groups), "collections", wide, (max(4.6, 1.4 + 2.9 * wide), height), share)
        for one, (name, part) in zip(axes, groups, strict=True):
            draw(one, part)
            one.set_title(str(name))
    return axes
