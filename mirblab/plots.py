"""plots: tables become pictures; nothing is computed but where the ink goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.changeplot import curve, effects
from mirblab.figures import GREY, PALETTE, axis, legend_beside, look, need, panels, save_figure, show, style, styled
from mirblab.grids import heatmap, p_values
from mirblab.learnplot import learning
from mirblab.mapplot import map
from mirblab.matchplot import matches
from mirblab.moveplot import shifts, versus
from mirblab.origins import origins
from mirblab.partnerplot import overlap
from mirblab.strataplot import strata
from mirblab.treeplot import tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "bars", "curve", "decay", "depth_curve", "differences", "effects", "heatmap", "learning", "look", "map", "matches",
    "means", "origins", "overlap", "p_values", "save_figure", "shifts", "show", "strata", "style", "tree", "versus",
]  # fmt: skip


def means(
    table: pd.DataFrame,
    *,
    unit: str = "queries",
    luck: float | None = None,
    ax: Axes | Sequence[Axes] | None = None,
) -> Axes | list[Axes]:
    """Draw each system's mean as a dot with its interval, one panel per collection; return the axes.

    *table* is from `significance.bootstrap_intervals`, one measure: collection, measure, system, mean, low, high,
    n_queries; *unit* says what these are. *luck* is the value of a random order, drawn as a dotted line (None: not
    drawn). *ax* is one axes, or as many as there are collections; several come back as a list.

    >>> rows = [("c", "RR", "bm25", 0.5, 0.4, 0.6, 20), ("c", "RR", "minilm", 0.7, 0.6, 0.8, 20)]
    >>> names = ["collection", "measure", "system", "mean", "low", "high", "n_queries"]
    >>> means(pd.DataFrame(rows, columns=names)).get_title("left")
    'c (20 queries)'
    """

    groups = list(table.groupby("collection", sort=False, observed=True)) if len(table) else [("", table)]
    wide = min(len(groups), 4)  # what fits a page
    height = 0.9 + 0.32 * max(1, max(len(part) for _, part in groups))
    axes = panels(ax, len(groups), "collections", wide, (max(6.4, 0.6 + 3.2 * wide), height))
    for one, (name, part) in zip(axes, groups, strict=True):
        longest = max(float(table.high.max()) if len(table) else 1.0, luck or 0.0)
        _means(part, ax=one, title=str(name), longest=longest, unit=unit)
        if luck is not None:
            one.axvline(luck, color=GREY, linestyle=":", linewidth=1.5, zorder=0)
            one.annotate("luck", (luck, 0), (3, 3), ("data", "axes fraction"), "offset points", color=GREY)
    return axes[0] if len(axes) == 1 else axes


@styled(lambda table: (6.4, 3))
def _means(table: pd.DataFrame, *, ax: Axes, title: str, longest: float, unit: str) -> Axes:
    need(table, "system", "measure", "mean", "low", "high", "n_queries")
    for place, row in enumerate(table.itertuples()):
        colour, marker = look(row.system)
        ax.plot([row.low, row.high], [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        ax.plot(row.mean, place, marker=marker, color=colour, markersize=7, linestyle="none", clip_on=False)
    ax.set_yticks(range(len(table)), [str(name) for name in table.system])
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlim(0, min(1.0, max(0.05, 1.08 * longest)))
    ax.set_xlabel(axis(table.measure.iloc[0]) if table.measure.nunique() == 1 else "value, 0 to 1, higher is better")
    ax.set_title(f"{title} ({table.n_queries.iloc[0]:,} {unit})")
    ax.grid(axis="y", visible=False)
    return ax


@styled(lambda table: (7.4, 3.4))
def differences(
    table: pd.DataFrame, *, ax: Axes | None = None, system_a: str = "", system_b: str = "", measure: str = "value"
) -> Axes:
    """Draw the difference of two systems on every query, largest gain first; the title counts better, equal, worse.

    *table* is from `significance.wide`, queries × systems; without names its first two columns are taken.

    >>> differences(pd.DataFrame({"a": [0.9, 0.5, 0.1], "b": [0.4, 0.5, 0.3]})).get_title("left")
    'a: better on 1, equal on 1, worse on 1 queries'
    """
    names = [system_a or str(table.columns[0]), system_b or str(table.columns[min(1, table.shape[1] - 1)])]
    need(table, *names)
    gains = np.sort(table[names[0]].to_numpy() - table[names[1]].to_numpy())[::-1]
    edges = np.arange(len(gains) + 1) + 0.5
    for name, part in zip(names, (np.maximum(gains, 0), np.minimum(gains, 0)), strict=True):
        ax.stairs(part, edges, fill=True, color=look(name)[0], label=f"{name} better")
    ax.axhline(0, color=GREY, linewidth=0.8)
    better, worse = (gains > 0).sum(), (gains < 0).sum()
    ax.set_title(
        f"{names[0]}: better on {better:,}, equal on {len(gains) - better - worse:,}, worse on {worse:,} queries"
    )
    ax.set_xlabel(f"queries, sorted ({len(gains):,})")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_ylabel(f"difference in {measure},\n−1 to 1, above 0: {names[0]} better")
    ax.set_xlim(edges[0], edges[-1])
    legend_beside(ax)
    return ax


@styled(lambda table: (7.4, 3.6))
def depth_curve(table: pd.DataFrame, *, ax: Axes | None = None, measure: str = "value") -> Axes:
    """Draw a value against the depth of reranking, one line per system, below its ceiling and above the first stage.

    *table*: depth, system, value; optional ceiling (the value if the shortlist were ordered perfectly, dashed) and
    first_stage (the value without reranking, dotted).

    >>> ax = depth_curve(pd.DataFrame({"depth": [5, 10], "system": "bm25", "value": [0.4, 0.5]}), measure="nDCG@10")
    >>> ax.get_ylabel()
    'nDCG@10, 0 to 1, higher is better'
    """
    need(table, "depth", "system", "value")
    for system, part in table.sort_values("depth").groupby("system", sort=False, observed=True):
        colour, marker = look(system)
        ax.plot(part.depth, part.value, color=colour, marker=marker, label=str(system))
        for column, dashes in (("ceiling", "--"), ("first_stage", ":")):
            if column in part:
                label = f"{column.replace('_', ' ')} ({system})"
                ax.plot(part.depth, part[column], color=colour, linestyle=dashes, linewidth=1.2, label=label)
    depths = sorted(table.depth.unique())
    if depths[0] > 0 and depths[-1] >= 8 * depths[0]:
        ax.set_xscale("log", base=2)
    ax.set_xticks(depths, [f"{depth:,}" for depth in depths])
    ax.minorticks_off()
    ax.set_xlabel("depth: documents reranked per query")
    ax.set_ylabel(axis(measure))
    ax.set_ylim(bottom=0)
    legend_beside(ax)
    return ax


@styled(lambda table: (7.4, 3.4))
def decay(table: pd.DataFrame, *, ax: Axes | None = None, value: str = "value", measure: str = "value") -> Axes:
    """Draw what is left of a value while judgements are hidden: mean over seeds, the range of the seeds shaded.

    *table* is from `holes.decay`, one collection and measure: system, share, seed and the column *value*.

    >>> rows = [("bm25", 0.0, 0, 0.5), ("bm25", 0.5, 0, 0.3), ("bm25", 0.5, 1, 0.4)]
    >>> decay(pd.DataFrame(rows, columns=["system", "share", "seed", "value"])).lines[0].get_ydata().tolist()
    [0.5, 0.35]
    """
    need(table, "system", "share", "seed", value)
    for system, part in table.groupby("system", sort=False, observed=True):
        colour, marker = look(str(system))
        found = part.groupby("share")[value].agg(["mean", "min", "max"])
        ax.plot(100 * found.index, found["mean"], color=colour, marker=marker, label=str(system))
        ax.fill_between(100 * found.index, found["min"], found["max"], color=colour, alpha=0.15, linewidth=0)
    ax.set_xlabel("judgements hidden, percent")
    ax.set_ylabel(axis(measure) if value == "value" else f"{measure}, −1 to 1")
    ax.set_ylim(bottom=0 if value == "value" else None)
    legend_beside(ax)
    return ax


@styled(lambda table: (6.4, 1.0 + 0.3 * len(table)))
def bars(
    table: pd.DataFrame, *, ax: Axes | None = None, log: bool = False, unit: str = "count", maths: bool = False
) -> Axes:
    """Draw counts as horizontal bars with their numbers, in the table's order: names, then counts; *unit* names them.

    With *maths* what is between dollars in a name is set as a formula, as far as matplotlib's mathtext knows it.

    >>> ax = bars(pd.DataFrame({"collection": ["mini-qa"], "documents": [240]}))
    >>> ax.get_xlabel(), ax.texts[0].get_text()
    ('documents, count', '240')
    """
    names, counts = table.iloc[:, 0].astype(str).tolist(), table.iloc[:, 1]
    drawn = ax.barh(range(len(names)), counts, color=PALETTE[0], height=0.7)
    ax.bar_label(drawn, [f"{count:,}" for count in counts], padding=3, fontsize=9)
    ax.set_yticks(range(len(names)), names, parse_math=maths)
    ax.set_ylim(len(names) - 0.5, -0.5)
    if log:
        ax.set_xscale("log")
        ax.set_xlim(left=1)  # a bar has a length only from a fixed start
        ax.xaxis.set_minor_formatter("")
    else:
        ax.locator_params(axis="x", nbins=4)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel(f"{table.columns[1]}, {unit}" + (", logarithmic" if log else ""))
    ax.margins(x=0.12)
    ax.grid(axis="y", visible=False)
    return ax
