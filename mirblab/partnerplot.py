"""partnerplot: the rank of a statement's partner against the vocabulary that they share, one panel per system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError, unknown
from mirblab.figures import GREY, PALETTE, need, panels, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDE = 3  # panels side by side that stay legible on a page
_LABEL = 2.7  # inches that a label of the legend takes
# The nth label has the nth colour and form; forms differ in print without colours, too.
_FORMS = ("o", "^", "x", "s", "+", "v", "D", "<", "1", "p", ">")
_OPEN = frozenset("x+1")  # drawn by lines, so they have no edge of their own
_AXES = {
    "overlap": "vocabulary shared\nwith the partner, 0 to 1",
    "rival_overlap": "vocabulary shared\nwith the best rival, 0 to 1",
    "margin": "shared with the partner\nminus with the best rival",
}
_TICKS = (0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1)


def overlap(
    table: pd.DataFrame,
    correlations: pd.DataFrame,
    *,
    ax: Axes | Sequence[Axes] | None = None,
    share: str = "overlap",
    by: str = "domain_pair",
) -> list[Axes]:
    """Draw the rank of each statement's partner, logarithmic, against what they share; return the axes.

    *table* is from `vocabulary.overlap_points`: system, rank, *share* (overlap, rival_overlap or margin) and *by*, of
    which each label gets a colour and a form. *correlations* is from `vocabulary.rank_correlations`; its rho stands in
    the title with its interval. The axes of all panels, one per system, are the same; rank 1 is at the top, and
    overlaps are spread by their square root, since most are small. *ax*: as many axes as systems. Raises MirblabError
    for an empty table, and for a system without a correlation of this share.

    >>> points = pd.DataFrame({"system": "bm25", "rank": [1, 90], "overlap": [0.5, 0.1], "domain_pair": ["a", "b"]})
    >>> rho = pd.DataFrame({"system": ["bm25"], "share": ["overlap"], "rho": [-0.8], "low": [-0.9], "high": [-0.6]})
    >>> overlap(points, rho)[0].get_title("left")
    'bm25\\nρ = −0.80 [−0.90, −0.60]'
    """
    need(table, "system", "rank", share, by)
    need(correlations, "system", "share", "rho", "low", "high")
    if share not in _AXES:
        raise unknown("share", share, _AXES)
    groups = list(table.groupby("system", sort=False, observed=True))
    if not groups:
        raise MirblabError("the table is empty, so there is nothing to draw")
    labels = sorted(table[by].astype(str).unique())
    wide = min(len(groups), _WIDE)
    width = max(4.4, 1.2 + 2.5 * wide)
    columns, high = int(width / _LABEL), -(-len(groups) // wide)
    lines = 0.2 * -(-len(labels) // columns)  # the legend's height in inches
    axes = panels(ax, len(groups), "systems", wide, (width, 3.1 + lines / high))
    with style():
        for place, (one, (name, part)) in enumerate(zip(axes, groups, strict=True)):
            _panel(one, part.assign(label=part[by].astype(str)), labels, share)
            _scale(one, table, share)
            one.set_title(f"{name}\n{_rho(correlations, str(name), share)}")
            one.set_ylabel("" if place % wide else "rank of the partner,\n1 is best")
        handles, names = axes[0].get_legend_handles_labels()
        axes[0].figure.legend(handles, names, loc="outside lower center", ncols=columns)
    return axes


def _panel(ax: Axes, part: pd.DataFrame, labels: Sequence[str], share: str) -> None:
    for place, label in enumerate(labels):
        mine, form = part[part.label == label], _FORMS[place % len(_FORMS)]
        edge = {} if form in _OPEN else {"edgecolors": "white", "linewidths": 0.4}
        ax.scatter(mine[share], mine["rank"], s=26, marker=form, color=PALETTE[place % len(PALETTE)], alpha=0.85,
                   label=label, clip_on=False, **edge)  # fmt: skip


def _scale(ax: Axes, table: pd.DataFrame, share: str) -> None:
    """Give both axes the range of the whole *table*: ranks downwards, logarithmic; overlaps by their square root."""
    last = float(table["rank"].max())
    ticks = [number for number in (1, 3, 10, 30, 100, 300, 1000, 3000, 10000) if number <= max(10, last)]
    ax.set_yscale("log")
    ax.set_yticks(ticks, [f"{number:,}" for number in ticks])
    ax.minorticks_off()
    ax.set_ylim(1.25 * max(10, last), 0.8)
    if share == "margin":
        low, high = min(0, float(table[share].min())), max(0, float(table[share].max()))
        gap = 0.05 * ((high - low) or 1)
        ax.axvline(0, color=GREY, linewidth=0.8)
        ax.locator_params(axis="x", nbins=4)
        ax.set_xlim(low - gap, high + gap)
    else:
        most = 1.05 * float(table[share].max()) or 1.0
        ax.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
        shown = [tick for tick in _TICKS if tick <= most]
        ax.set_xticks(shown, [f"{tick:g}" for tick in shown])
        ax.set_xlim(0, most)
    ax.set_xlabel(_AXES[share])


def _rho(correlations: pd.DataFrame, system: str, share: str) -> str:
    found = correlations[(correlations.system.astype(str) == system) & (correlations.share == share)]
    if len(found) != 1:
        raise MirblabError(f"{system} needs one correlation of its ranks with '{share}', found {len(found)}")
    rho, low, high = (f"{number:.2f}".replace("-", "−") for number in found[["rho", "low", "high"]].iloc[0])
    return f"ρ = {rho} [{low}, {high}]"
