"""results: plots of means, differences and curves."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.display.figures import (
    GREY,
    PALETTE,
    draw_styled,
    figure_style,
    legend_beside,
    panel_axes,
    require_columns,
    system_style,
    value_axis_label,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_WIDE = 2  # panels side by side that stay legible on a page
_LETTERS = 28  # of a label that fits one panel

_GAP = 0.9  # between two groups of bars, whose width is 0.8
_TITLE = 27  # characters on a line
_COLUMNS = {1: 1, 2: 2, 3: 3, 4: 2}  # panels side by side; three where there are more


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
    axes = panel_axes(ax, len(groups), "collections", wide, (max(6.4, 0.6 + 3.2 * wide), height))
    for one, (name, part) in zip(axes, groups, strict=True):
        longest = max(float(table.high.max()) if len(table) else 1.0, luck or 0.0)
        _means_panel(part, ax=one, title=str(name), longest=longest, unit=unit)
        if luck is not None:
            one.axvline(luck, color=GREY, linestyle=":", linewidth=1.5, zorder=0)
            one.annotate("luck", (luck, 0), (3, 3), ("data", "axes fraction"), "offset points", color=GREY)
    return axes[0] if len(axes) == 1 else axes


@draw_styled(lambda table: (6.4, 3))
def _means_panel(table: pd.DataFrame, *, ax: Axes, title: str, longest: float, unit: str) -> Axes:
    require_columns(table, "system", "measure", "mean", "low", "high", "n_queries")
    for place, row in enumerate(table.itertuples()):
        colour, marker = system_style(row.system)
        ax.plot([row.low, row.high], [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        ax.plot(row.mean, place, marker=marker, color=colour, markersize=7, linestyle="none", clip_on=False)
    ax.set_yticks(range(len(table)), [str(name) for name in table.system])
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlim(0, min(1.0, max(0.05, 1.08 * longest)))
    ax.set_xlabel(
        value_axis_label(table.measure.iloc[0]) if table.measure.nunique() == 1 else "value, 0 to 1, higher is better"
    )
    ax.set_title(f"{title} ({table.n_queries.iloc[0]:,} {unit})")
    ax.grid(axis="y", visible=False)
    return ax


@draw_styled(lambda table: (7.4, 3.4))
def differences(
    table: pd.DataFrame, *, ax: Axes | None = None, system_a: str = "", system_b: str = "", measure: str = "value"
) -> Axes:
    """Draw the difference of two systems on every query, largest gain first; the title counts better, equal, worse.

    *table* is from `significance.wide`, queries × systems; without names its first two columns are taken.

    >>> differences(pd.DataFrame({"a": [0.9, 0.5, 0.1], "b": [0.4, 0.5, 0.3]})).get_title("left")
    'a: better on 1, equal on 1, worse on 1 queries'
    """
    names = [system_a or str(table.columns[0]), system_b or str(table.columns[min(1, table.shape[1] - 1)])]
    require_columns(table, *names)
    gains = np.sort(table[names[0]].to_numpy() - table[names[1]].to_numpy())[::-1]
    edges = np.arange(len(gains) + 1) + 0.5
    for name, part in zip(names, (np.maximum(gains, 0), np.minimum(gains, 0)), strict=True):
        ax.stairs(part, edges, fill=True, color=system_style(name)[0], label=f"{name} better")
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


@draw_styled(lambda table: (2.6 + 0.85 * table.shape[1], 1.9 + 0.36 * len(table)))
def heatmap(table: pd.DataFrame, *, ax: Axes | None = None, measure: str = "value", digits: int = 2) -> Axes:
    """Draw numbers between 0 and 1 as a grid, systems × collections, dark for high, each cell with its number.

    >>> ax = heatmap(pd.DataFrame({"mini-qa": [0.4, 0.6]}, index=["bm25", "minilm"]))
    >>> [text.get_text() for text in ax.texts]
    ['0.40', '0.60']
    """
    numbers = table.to_numpy(dtype=float)
    image = ax.imshow(numbers, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    _number_cells(ax, image, numbers, lambda number: f"{number:.{digits}f}")
    _name_cells(ax, table.index, table.columns)
    ax.figure.colorbar(image, ax=ax, label=value_axis_label(measure).replace(", higher", ",\nhigher"))
    return ax


def _number_cells(ax: Axes, image: Any, numbers: np.ndarray, text: Callable[[float], str]) -> None:
    for (row, column), number in np.ndenumerate(numbers):
        shown = "–" if np.isnan(number) else text(number)
        is_dark = sum(image.cmap(image.norm(number))[:3]) < 1.6 and not np.isnan(number)
        ax.text(column, row, shown, ha="center", va="center", fontsize=8.5, color="white" if is_dark else "black")


@draw_styled(lambda table: (max(5.2, 2.2 + 0.85 * table.system_b.nunique()), 1.7 + 0.42 * table.system_a.nunique()))
def p_values(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw Holm's p of every pair as an upper triangle: dark for small; bold where significant.

    *table* is from `significance.compare`, one collection. Each cell has p and whether the row's system is better.

    >>> row = {"system_a": "a", "system_b": "b", "p_holm": 0.03, "difference": 0.1, "significant": True}
    >>> p_values(pd.DataFrame([row])).texts[0].get_text()
    '+ .030'
    """
    require_columns(table, "system_a", "system_b", "p_holm", "difference", "significant")
    if "collection" in table and table.collection.nunique() > 1:
        raise MirblabError(f"one collection at a time, found {', '.join(table.collection.astype(str).unique())}")
    rows, columns = list(dict.fromkeys(table.system_a)), list(dict.fromkeys(table.system_b))
    numbers = np.full((len(rows), len(columns)), np.nan)
    for row in table.itertuples():
        numbers[rows.index(row.system_a), columns.index(row.system_b)] = row.p_holm
    ax.imshow(np.log10(numbers), cmap="Blues_r", vmin=-4, vmax=0, aspect="auto")
    for row in table.itertuples():
        place = columns.index(row.system_b), rows.index(row.system_a)
        text = "<.001" if row.p_holm < 0.001 else f"{row.p_holm:.3f}".removeprefix("0")
        side = "+" if row.difference > 0 else "−" if row.difference < 0 else "="
        weight = "bold" if row.significant else "normal"
        ax.text(*place, f"{side} {text}", ha="center", va="center", fontsize=8.5, weight=weight,
                color="white" if row.p_holm < 0.02 else "black")  # fmt: skip
    _name_cells(ax, rows, columns)
    ax.set_title("p after Holm's correction, 0 to 1, darker is stronger evidence\n"
                 "+ row's system better, − worse; bold: significant", fontsize=9)  # fmt: skip
    return ax


def _name_cells(ax: Axes, rows: Sequence, columns: Sequence) -> None:
    ax.set_xticks(range(len(columns)), [str(name) for name in columns], rotation=35, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(rows)), [str(name) for name in rows])
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def effects(table: pd.DataFrame, *, ax: Axes | Sequence[Axes] | None = None) -> list[Axes]:
    """Draw each system's difference from the baseline with its interval, one panel per collection; return the axes.

    *table* is from `significance.compare` with a baseline: collection, measure, system_a, difference, low, high,
    significant. Filled: significantly different after Holm's correction; hollow: not. *ax*: as many axes as
    collections.

    >>> row = ("c", "RR", "without pairs", -0.1, -0.2, -0.05, True)
    >>> names = ["collection", "measure", "system_a", "difference", "low", "high", "significant"]
    >>> effects(pd.DataFrame([row], columns=names))[0].get_xlabel()
    'change of RR,\\n−1 to 1, right of 0: better'
    """
    require_columns(table, "collection", "measure", "system_a", "difference", "low", "high", "significant")
    rows = int(table.groupby("collection", observed=True).size().max()) if len(table) else 1
    return _collection_panels(table, ax, 1.3 + 0.3 * rows, True, _effects_panel)


def _effects_panel(ax: Axes, part: pd.DataFrame) -> None:
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


def curve(table: pd.DataFrame, *, x: str, ax: Axes | Sequence[Axes] | None = None, log: bool = False) -> list[Axes]:
    """Draw a value against the setting *x*, one panel per collection; return the axes.

    *table*: collection, measure, *x* and value; an optional column held_out, one number per collection, is a dashed
    line: what the setting gives on queries that had no part in its choice. Each panel has its own range of values,
    which need not begin at 0. *log*: the axis of *x* is logarithmic. *ax*: as many axes as collections.

    >>> points = pd.DataFrame({"collection": "c", "measure": "RR", "weight": [0.1, 0.9], "value": [0.4, 0.6]})
    >>> curve(points.assign(held_out=0.5), x="weight")[0].get_legend_handles_labels()[1]
    ['every query sees the setting', 'held-out queries, chosen without them']
    """
    require_columns(table, "collection", "measure", x, "value")

    def draw(ax: Axes, part: pd.DataFrame) -> None:
        _curve_panel(ax, part.sort_values(x), x, log)

    drawn = _collection_panels(table, ax, 2.9, False, draw)
    if len(table):
        handles, labels = drawn[0].get_legend_handles_labels()
        if len(labels) > 1:
            with figure_style():
                drawn[0].figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return drawn


def _collection_panels(
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
    with figure_style():
        wide = min(len(groups), _WIDE)
        axes = panel_axes(ax, len(groups), "collections", wide, (max(4.6, 1.4 + 2.9 * wide), height), share)
        for one, (name, part) in zip(axes, groups, strict=True):
            draw(one, part)
            one.set_title(str(name))
    return axes


def _curve_panel(ax: Axes, part: pd.DataFrame, x: str, log: bool) -> None:
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
    ax.set_ylabel(fill(value_axis_label(part.measure.iloc[0]), _LETTERS))


@draw_styled(lambda table: (7.4, 3.6))
def depth_curve(table: pd.DataFrame, *, ax: Axes | None = None, measure: str = "value") -> Axes:
    """Draw a value against the depth of reranking, one line per system, below its ceiling and above the first stage.

    *table*: depth, system, value; optional ceiling (the value if the shortlist were ordered perfectly, dashed) and
    first_stage (the value without reranking, dotted).

    >>> ax = depth_curve(pd.DataFrame({"depth": [5, 10], "system": "bm25", "value": [0.4, 0.5]}), measure="nDCG@10")
    >>> ax.get_ylabel()
    'nDCG@10, 0 to 1, higher is better'
    """
    require_columns(table, "depth", "system", "value")
    for system, part in table.sort_values("depth").groupby("system", sort=False, observed=True):
        colour, marker = system_style(system)
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
    ax.set_ylabel(value_axis_label(measure))
    ax.set_ylim(bottom=0)
    legend_beside(ax)
    return ax


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
    axes = panel_axes(ax, len(parts), "systems", wide, (3.7 * min(wide, 2), 2.9))
    top = min(1.0, max(0.05, 1.06 * float(table.high.max()))) if len(table) else 1.0
    for one, (name, part) in zip(axes, parts, strict=True):
        _strata_panel(part, ax=one, name=str(name), top=top)
        if ax is None and one.get_subplotspec().colspan.start:  # the axis is that of the first panel of the row
            one.set_ylabel("")
    return axes[0] if len(axes) == 1 else axes


@draw_styled(lambda table: (3.6, 2.9))
def _strata_panel(table: pd.DataFrame, *, ax: Axes, name: str, top: float) -> Axes:
    require_columns(table, "kind", "label", "measure", "mean", "low", "high", "n_queries")
    if table.measure.nunique() != 1:
        raise MirblabError(f"one measure at a time, found {', '.join(map(str, table.measure.unique()))}")
    colour, place, places = system_style(name)[0], 0.0, []
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
    ax.set_ylabel(value_axis_label(table.measure.iloc[0]))
    ax.set_title("\n".join(textwrap.wrap(name, _TITLE)), pad=16)
    ax.grid(axis="x", visible=False)
    return ax


@draw_styled(lambda table: (7.4, 3.4))
def decay(table: pd.DataFrame, *, ax: Axes | None = None, value: str = "value", measure: str = "value") -> Axes:
    """Draw what is left of a value while judgements are hidden: mean over seeds, the range of the seeds shaded.

    *table* is from `unjudged.hide_judgements`, one collection and measure: system, share, seed and the column *value*.

    >>> rows = [("bm25", 0.0, 0, 0.5), ("bm25", 0.5, 0, 0.3), ("bm25", 0.5, 1, 0.4)]
    >>> decay(pd.DataFrame(rows, columns=["system", "share", "seed", "value"])).lines[0].get_ydata().tolist()
    [0.5, 0.35]
    """
    require_columns(table, "system", "share", "seed", value)
    for system, part in table.groupby("system", sort=False, observed=True):
        colour, marker = system_style(str(system))
        found = part.groupby("share")[value].agg(["mean", "min", "max"])
        ax.plot(100 * found.index, found["mean"], color=colour, marker=marker, label=str(system))
        ax.fill_between(100 * found.index, found["min"], found["max"], color=colour, alpha=0.15, linewidth=0)
    ax.set_xlabel("judgements hidden, percent")
    ax.set_ylabel(value_axis_label(measure) if value == "value" else f"{measure}, −1 to 1")
    ax.set_ylim(bottom=0 if value == "value" else None)
    legend_beside(ax)
    return ax


def learning(table: pd.DataFrame, *, measure: str = "R@1", ax: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw loss and *measure* against the step, one line per model, in two panels; return both axes.

    *table* is from `train.log`, with a column system where it holds several models: step, loss and smoothed (rows of
    steps), and the measure (rows of evaluations). Lines are the smoothed loss, pale dots single steps.

    >>> log = pd.DataFrame({"step": [0, 1, 2, 2], "loss": [None, 2.0, 1.0, None], "R@1": [0.1, None, None, 0.3]})
    >>> log["smoothed"] = log.loss
    >>> learning(log)[1].lines[0].get_ydata().tolist()
    [0.1, 0.3]
    """
    require_columns(table, "step", "loss", "smoothed", measure)
    table = table if "system" in table else table.assign(system="")
    axes = panel_axes(ax, 2, "panels", 2, (8.4, 3.2), False)
    with figure_style():
        for place, (system, part) in enumerate(table.groupby("system", sort=False, observed=True)):
            colour, marker = system_style(str(system)) if system else (PALETTE[place], "o")
            losses, reached = part.dropna(subset="loss"), part.dropna(subset=measure)
            axes[0].plot(losses.step, losses.loss, ".", color=colour, alpha=0.25, markersize=3)
            axes[0].plot(losses.step, losses.smoothed, color=colour, label=str(system))
            axes[1].plot(reached.step, reached[measure], color=colour, marker=marker, label=str(system))
        axes[0].set_ylabel("loss, lower is better")
        axes[1].set_ylabel(fill(value_axis_label(f"held-out {measure}"), 26))
        for one in axes:
            one.set_xlabel("step")
            one.set_ylim(bottom=0)
        if table.system.nunique() > 1:
            handles, labels = axes[1].get_legend_handles_labels()
            axes[1].figure.legend(handles, labels, loc="outside lower center", ncols=min(3, len(labels)))
    return axes


@draw_styled(lambda table: (6.4, 1.0 + 0.3 * len(table)))
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
