"""results: plots of means, differences and curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.core.wording import counted, shorten_label
from mirblab.display.escape import format_value
from mirblab.display.figures import (
    GREY,
    NEW_AXES,
    PALETTE,
    draw_empty_panels,
    draw_styled,
    figure_style,
    figure_styles,
    legend_beside,
    panel_axes,
    require_columns,
    value_axis_label,
)
from mirblab.evaluation.measures import gain_sign, is_rank
from mirblab.evaluation.significance import decisive_p

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


_FEW_PAIRS = 10  # of a score; fewer have a hollow marker and no interval
_LETTERS = 28  # of a label that fits one panel
_FEATURE_LETTERS = 64
_DARK = 0.18  # luminance of a cell below which white is easier to read than black

_GAP = 0.9  # between two groups of bars, whose width is 0.8
_TITLE = 27  # characters on a line
_STEPS = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)  # between ticks: enough for three or four on each axis
_COLUMNS = {1: 1, 2: 2, 3: 3, 4: 2}  # panels side by side; three where there are more


def means(
    table: pd.DataFrame,
    *,
    unit: str = "queries",
    chance: float | Mapping[str, float] | None = None,
    ax: Axes | Sequence[Axes] | None = None,
) -> Axes | list[Axes]:
    """Draw each system's mean as a dot with its interval, one panel per collection; return the axes.

    *table* is from `significance.bootstrap_intervals`, one measure: collection, measure, system, mean, low, high, and
    n_queries, which *unit* names. *chance*: the expected value of a random order, a dotted line; one for all
    collections or one for each (None: not drawn). *ax*: one axes per collection; several are returned as a list.

    >>> rows = [("c", "RR", "bm25", 0.5, 0.4, 0.6, 20), ("c", "RR", "minilm", 0.7, 0.6, 0.8, 20)]
    >>> names = ["collection", "measure", "system", "mean", "low", "high", "n_queries"]
    >>> means(pd.DataFrame(rows, columns=names)).get_title("left")
    'c (20 queries)'
    """
    groups = _groups(table, "collection")
    wide = min(len(groups), 3)  # what fits a page
    height = 0.9 + 0.32 * max(1, *(len(rows) for _, rows in groups))
    axes = panel_axes(ax, len(groups), "collections", wide, (max(6.4, 0.6 + 2.9 * wide if wide < 3 else 8.4), height))
    levels = chance if isinstance(chance, Mapping) else {name: chance for name, _ in groups if chance is not None}
    longest = _axis_end(max([float(table.high.max()) if len(table) else 1.0, *levels.values()]))
    shortest = min(0.0, float(table.low.min())) if len(table) else 0.0
    styles = figure_styles(table.system)
    letters = _LETTERS + (6 if wide < 3 else -4)
    for panel, (name, rows) in zip(axes, groups, strict=True):
        _means_panel(rows, ax=panel, title=name, letters=letters, ends=(shortest, longest), unit=unit, styles=styles)
        if name in levels:
            panel.axvline(levels[name], color=GREY, linestyle=":", linewidth=1.5, zorder=0)
            is_right = levels[name] > (0.88 if wide == 1 else 0.8) * longest  # where the word would leave the panel
            panel.annotate("chance", (levels[name], 0), (-3 if is_right else 3, 3), ("data", "axes fraction"),
                           "offset points", ha="right" if is_right else "left", color=GREY)  # fmt: skip
    for panel, (bottom, top) in zip(axes, [panel.get_ylim() for panel in axes], strict=False) if levels else ():
        panel.set_ylim(bottom + (0.5 if bottom > top else -0.5), top)  # the word stands below the last interval
    if ax is None and (label := _take_shared_label(axes)):
        with figure_style():
            axes[0].figure.supxlabel(label, fontsize=10)
    elif len(axes) > 1:
        for panel in axes:
            panel.set_xlabel(fill(panel.get_xlabel(), _LETTERS))
    return axes[0] if len(axes) == 1 else axes


def _axis_end(longest: float) -> float:
    """Return where an axis of values ends: at 1, or a little above all values that are small, or ranks."""
    return 1.0 if 0.5 <= longest <= 1 + 1e-9 else max(0.05, 1.06 * longest)


def _take_shared_label(axes: Sequence[Axes]) -> str:
    """Return the label that all panels have, to be written once, and remove it from them; "" if they differ."""
    labels = {panel.get_xlabel() for panel in axes}
    if len(axes) < 2 or len(labels) > 1:
        return ""
    for panel in axes:
        panel.set_xlabel("")
    return " ".join(labels.pop().split())


def _groups(table: pd.DataFrame, column: str) -> list[tuple[str, pd.DataFrame]]:
    if table.empty:
        return [("", table)]
    return [(str(name), rows) for name, rows in table.groupby(column, sort=False, observed=True)]


@draw_styled(lambda table: (6.4, 3))
def _means_panel(
    table: pd.DataFrame,
    *,
    ax: Axes,
    title: str,
    letters: int,
    ends: tuple[float, float],
    unit: str,
    styles: Mapping[str, tuple[str, str]],
) -> Axes:
    require_columns(table, "system", "measure", "mean", "low", "high", "n_queries")
    _draw_intervals(ax, table, "mean", table.system, [(*styles[str(name)], True) for name in table.system])
    ax.set_xlim(*ends)
    measure = str(table.measure.iloc[0]) if table.measure.nunique() == 1 else "value"
    ax.set_xlabel(f"{measure}, −1 to 1" if ends[0] < 0 else value_axis_label(measure, *ends))
    n_queries = int(table.n_queries.iloc[0])
    one = "query" if unit == "queries" else unit.removesuffix("s")
    size = f"({counted(n_queries, one, unit)})"
    is_short = len(title) + len(size) < letters
    ax.set_title(f"{title} {size}" if is_short else f"{fill(title, letters)}\n{size}")
    return ax


def _draw_intervals(
    ax: Axes, table: pd.DataFrame, middle: str, names: Iterable[object], styles: Iterable[tuple[str, str, bool]]
) -> None:
    """Draw each row from `low` to `high` with a dot at *middle*; *styles*: colour, marker, whether it is filled."""
    for row, (low, centre, high, style) in enumerate(zip(table.low, table[middle], table.high, styles, strict=True)):
        colour, marker, is_filled = style
        ax.plot([low, high], [row, row], color=colour, linewidth=2, solid_capstyle="butt")
        ax.plot(centre, row, marker=marker, color=colour, markersize=5, markeredgewidth=1.4, linestyle="none",
                markerfacecolor=colour if is_filled else "white", clip_on=False)  # fmt: skip
    ax.set_yticks(range(len(table)), [str(name) for name in names])
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)


@draw_styled(lambda table: (7.4, 3.4))
def differences(
    table: pd.DataFrame, *, ax: Axes = NEW_AXES, system_a: str = "", system_b: str = "", measure: str = "value"
) -> Axes:
    """Draw the difference of two systems on every query, largest gain first; the title counts better, equal, worse.

    *table* is from `significance.value_matrix`, queries × systems; by default its first two columns are compared.

    >>> differences(pd.DataFrame({"a": [0.9, 0.5, 0.1], "b": [0.4, 0.5, 0.3]})).get_title("left")
    'a: better on 1, equal on 1, worse on 1 query'
    """
    names = [system_a or str(table.columns[0]), system_b or str(table.columns[min(1, table.shape[1] - 1)])]
    require_columns(table, *names)
    gains = np.sort((table[names[0]].to_numpy() - table[names[1]].to_numpy()) * gain_sign(measure))[::-1]
    edges = np.arange(len(gains) + 1) + 0.5
    styles = figure_styles(names)
    for name, part in zip(names, (np.maximum(gains, 0), np.minimum(gains, 0)), strict=True):
        ax.stairs(part, edges, fill=True, color=styles[name][0], label=f"{name} better")
    ax.axhline(0, color=GREY, linewidth=0.8)
    better, worse = (gains > 0).sum(), (gains < 0).sum()
    equal = len(gains) - better - worse
    ax.set_title(f"{names[0]}: better on {better:,}, equal on {equal:,}, worse on {counted(worse, 'query')}")
    ax.set_xlabel(f"queries, sorted ({len(gains):,})")
    ax.locator_params(axis="x", integer=True)
    unit = "ranks gained" if is_rank(measure) else f"difference in {measure}, −1 to 1"
    ax.set_ylabel(f"{unit},\nabove 0: {names[0]} better")
    ax.set_xlim(edges[0], edges[-1])
    legend_beside(ax)
    return ax


@draw_styled(lambda table: (2.6 + max(min(0.85 * table.shape[1], 5.4), 0.48 * table.shape[1]), 1.9 + 0.36 * len(table)))
def heatmap(
    table: pd.DataFrame,
    *,
    ax: Axes = NEW_AXES,
    measure: str = "value",
    digits: int = 2,
    limits: tuple[float, float] = (0, 1),
) -> Axes:
    """Draw numbers between 0 and 1 as a grid, systems × collections, dark for high, each cell with its number.

    *limits* are the numbers of the lightest and of the darkest colour. Where they are as far below 0 as above it,
    what is above 0 is blue, what is below it red, and 0 white.

    >>> ax = heatmap(pd.DataFrame({"mini-qa": [0.4, 0.6]}, index=["bm25", "minilm"]))
    >>> [text.get_text() for text in ax.texts]
    ['0.40', '0.60']
    """
    label = value_axis_label(measure).replace(", higher", ",\nhigher")
    texts = table.astype(float).map(format_value, digits=digits).to_numpy()
    colours = "RdBu" if limits[0] == -limits[1] else "Blues"
    _draw_grid(ax, table, texts, vmin=limits[0], vmax=limits[1], cmap=colours, cbar_kws={"label": label})
    for row, column in np.argwhere(table.isna().to_numpy()):
        ax.text(column + 0.5, row + 0.5, "–", ha="center", va="center", fontsize=8.5)
    return ax


def _draw_grid(ax: Axes, numbers: pd.DataFrame, texts: np.ndarray, **options: Any) -> None:
    """Draw *numbers* as a grid with *texts* in its cells, which differ clearly from them; missing ones have no cell."""
    import seaborn as sns
    from seaborn.utils import relative_luminance

    rows, columns = ([str(name) for name in names] for names in (numbers.index, numbers.columns))
    sns.heatmap(numbers.to_numpy(float), annot=texts, fmt="", annot_kws={"fontsize": 8.5}, linewidths=0.6, ax=ax,
                xticklabels=columns, yticklabels=rows, **options)  # fmt: skip
    cells = np.asarray(ax.collections[-1].get_facecolor()).reshape(*numbers.shape, 4)
    for text in ax.texts:  # seaborn's are white on light blue, too
        column, row = map(int, text.get_position())
        text.set_color("white" if relative_luminance(cells[row, column]) < _DARK else "black")
    ax.set_xticklabels(columns, rotation=35, ha="right", rotation_mode="anchor")
    ax.tick_params(length=0, labelrotation=0, axis="y")
    ax.tick_params(length=0, axis="x")
    ax.grid(visible=False)


@draw_styled(lambda table: (max(5.2, 2.2 + 0.85 * table.system_b.nunique()), 1.7 + 0.42 * table.system_a.nunique()))
def p_values(table: pd.DataFrame, *, ax: Axes = NEW_AXES) -> Axes:
    """Draw the corrected p of every pair as an upper triangle: dark for small, bold for significant.

    *table* is from `significance.compare`, one collection, whose level the title names. An arrow says whether the row's
    system is better.

    >>> row = {"system_a": "a", "system_b": "b", "p_holm": 0.03, "difference": 0.1, "significant": True}
    >>> p_values(pd.DataFrame([row])).texts[0].get_text()
    '↑ .030'
    """
    decisive, corrected = decisive_p(table)
    require_columns(table, "system_a", "system_b", decisive, "difference", "significant")
    if "collection" in table and table.collection.nunique() > 1:
        raise MirblabError(f"one collection at a time, found {', '.join(table.collection.astype(str).unique())}")
    numbers = ["<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0") for p in table[decisive]]
    gains = table.difference * (-1 if "measure" in table and table.measure.map(str).map(is_rank).all() else 1)
    signs = np.select([gains > 0, gains < 0], ["↑", "↓"], "=")
    cells = table.assign(text=[f"{sign} {number}" for sign, number in zip(signs, numbers, strict=True)])
    cells = cells.astype({"system_a": str, "system_b": str})
    wide = cells.pivot(index="system_a", columns="system_b", values=[decisive, "text", "significant"])
    wide = wide.reindex(index=cells.system_a.unique()).reindex(columns=cells.system_b.unique(), level=1)
    p = pd.DataFrame(wide[decisive], dtype=float)
    _draw_grid(ax, p.clip(lower=1e-4).map(np.log10), wide.text.to_numpy(), vmin=-4, vmax=0, cmap="Blues_r", cbar=False)
    for text, is_significant in zip(ax.texts, wide.significant.to_numpy()[p.notna()], strict=True):
        text.set_fontweight("bold" if is_significant else "normal")
    level = f"p ≤ {table.attrs['alpha']:g}" if "alpha" in table.attrs else "significant"
    ax.set_title(f"p {corrected}, 0 to 1, darker is stronger evidence\n"
                 f"↑ row's system better, ↓ worse; bold: {level}", fontsize=9)  # fmt: skip
    return ax


def effects(table: pd.DataFrame, *, ax: Axes | Sequence[Axes] | None = None) -> list[Axes]:
    """Draw each system's difference from the baseline with its interval, one panel per collection; return the axes.

    *table* is from `significance.compare` with a baseline: collection, measure, system_a, difference, low, high,
    significant. More than four collections with fewer systems are rows, and each system has a panel. Filled:
    significantly different after the correction, as the interval, which is not corrected, may not show. Panels of one
    measure have the same scale. *ax*: one axes per panel.

    >>> row = ("c", "RR", "without pairs", -0.1, -0.2, -0.05, True)
    >>> names = ["collection", "measure", "system_a", "difference", "low", "high", "significant"]
    >>> effects(pd.DataFrame([row], columns=names))[0].get_xlabel()
    'change of RR,\\n−1 to 1, right of 0: better'
    """
    if table.empty:
        return draw_empty_panels(ax)
    require_columns(table, "collection", "measure", "system_a", "difference", "low", "high", "significant")
    counts = table[["collection", "system_a"]].nunique()
    is_turned = counts.collection > max(4, counts.system_a) and table.measure.nunique() == 1
    by, other = ("system_a", "collection") if is_turned else ("collection", "system_a")
    height = 1.3 + 0.3 * max(len(rows) for _, rows in _groups(table, by))
    panels = _panels(table, by, ax, height, True)
    with figure_style():
        for panel, rows in panels:
            styles = [(PALETTE[0], "o", bool(is_significant)) for is_significant in rows.significant]
            _draw_intervals(panel, rows, "difference", rows[other], styles)
            panel.axvline(0, color=GREY, linewidth=0.8)
            ends = table.loc[table.measure == rows.measure.iloc[0], ["low", "high"]]
            low, high = min(float(ends.low.min()), -0.01), max(float(ends.high.max()), 0.01)
            panel.set_xlim(low - 0.04 * (high - low), high + 0.04 * (high - low))
            panel.locator_params(axis="x", nbins=3, min_n_ticks=3, steps=_STEPS)
            measure = str(rows.measure.iloc[0])
            scale = "left of 0: better" if is_rank(measure) else "−1 to 1, right of 0: better"
            panel.set_xlabel(f"{fill(f'change of {measure},', _LETTERS)}\n{scale}")
        drawn = [panel for panel, _ in panels]
        if ax is None:
            _explain_filling(drawn[0].figure, table, table.significant, 0, _take_shared_label(drawn))
    return drawn


def _explain_filling(
    figure: Figure | SubFigure, table: pd.DataFrame, is_filled: pd.Series, middle: float, label: str = ""
) -> None:
    """Write below the panels their common *label*, what a hollow dot means, and why its interval may not agree."""
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {
        "color": PALETTE[0],
        "marker": "o",
        "markersize": 7,
        "markeredgewidth": 1.6,
        "linestyle": "none",
    }
    dots = [Line2D([], [], markerfacecolor=face, **look) for face in (PALETTE[0], "white")]
    column, correction = decisive_p(table)
    # In families of one comparison there is nothing to correct.
    changes_nothing = column != "p" and "p" in table and (table.p == table[column]).all()
    corrected = f" {correction}" if column in table and not changes_nothing else ""
    words = [f"significant{corrected}", f"not significant{corrected}"]
    is_odd = ~is_filled.astype(bool) & ((table.low > middle) | (table.high < middle))
    if is_odd.any():
        words[1] += f"; an interval, which is not corrected,\nmay exclude {middle:g} all the same"
    figure.legend(dots, words, loc="outside lower center", ncols=1 if is_odd.any() else 2, **_as_title(label))


def _as_title(label: str) -> dict[str, Any]:
    """Return the options by which a legend below all panels has their common label above it."""
    return {"title": label, "title_fontsize": 10} if label else {}


@draw_styled(lambda table: (6.8, 1.4 + 0.3 * len(table)))
def group_contrasts(table: pd.DataFrame, *, ax: Axes = NEW_AXES) -> Axes:
    """Draw the probability that a query of the group has more of a feature than another query, with its interval.

    *table* is from `contrast_groups`, with an optional column `cluster`. Filled: differs after Holm's correction. The
    figure has a legend, unless it holds other axes.

    >>> row = {"feature": "words", "chance": 0.9, "low": 0.7, "high": 0.95, "differs": True}
    >>> [label.get_text() for label in group_contrasts(pd.DataFrame([row])).get_yticklabels()]
    ['words']
    """
    require_columns(table, "feature", "chance", "low", "high", "differs")
    names = table.feature.astype(str)
    names = names.str.replace("_", " ")
    labels = names + " · " + table.cluster.astype(str) if "cluster" in table else names
    styles = [(PALETTE[0], "o", bool(differs)) for differs in table.differs]
    _draw_intervals(ax, table, "chance", [shorten_label(label, _FEATURE_LETTERS) for label in labels], styles)
    ax.axvline(0.5, color=GREY, linewidth=0.8)
    ax.set_xlim(0, 1)
    ax.set_xlabel("chance that a query of the group has more of it\nthan another one; 0.5: no difference")
    if len(ax.figure.axes) == 1:
        _explain_filling(ax.figure, table, table.differs, 0.5)
    return ax


def curve(table: pd.DataFrame, *, x: str, ax: Axes | Sequence[Axes] | None = None) -> list[Axes]:
    """Draw a value against the setting *x*, one panel per collection; return the axes.

    *table*: collection, measure, *x* and value; optional held_out, one number per collection, is a dashed line: the
    value on queries that were not used to choose the setting. Panels have separate ranges of values, which their labels
    say. *ax*: one axes per collection.

    >>> points = pd.DataFrame({"collection": "c", "measure": "RR", "weight": [0.1, 0.9], "value": [0.4, 0.6]})
    >>> curve(points.assign(held_out=0.5), x="weight")[0].get_legend_handles_labels()[1]
    ['one setting for all queries', 'held-out queries: setting chosen without them']
    """
    import seaborn as sns

    if table.empty:
        return draw_empty_panels(ax)
    require_columns(table, "collection", "measure", x, "value")
    panels = _panels(table, "collection", ax, 3.4, False)
    with figure_style():
        for panel, rows in panels:
            sns.lineplot(rows, x=x, y="value", estimator=None, color=PALETTE[0], marker="o", markeredgecolor=PALETTE[0],
                         label="one setting for all queries", legend=False, ax=panel)  # fmt: skip
            if "held_out" in rows:
                panel.axhline(rows.held_out.iloc[0], color=GREY, linestyle="--",
                              label="held-out queries: setting chosen without them")  # fmt: skip
            panel.locator_params(axis="y", nbins=5)
            panel.set_xlabel(fill(x, _LETTERS))
            panel.set_ylabel(fill(value_axis_label(str(rows.measure.iloc[0]), *panel.get_ylim()), _LETTERS))
        label = _take_shared_label([panel for panel, _ in panels]) if ax is None else ""
        figure = panels[0][0].figure
        handles, labels = panels[0][0].get_legend_handles_labels()
        if len(labels) > 1:
            figure.legend(handles, labels, loc="outside lower center", ncols=2, **_as_title(label))
        elif label:
            figure.supxlabel(label, fontsize=10)
    return [panel for panel, _ in panels]


def reliability(table: pd.DataFrame, *, ax: Axes | Sequence[Axes] | None = None) -> list[Axes]:
    """Draw the share of pairs that were judged equivalent against their score, a line per system; return the axes.

    *table* is from `calibrate_pairs`: collection, system, score, n, share, low, high. There is a panel per collection;
    on the dotted diagonal a score is the share. Fewer than ten pairs have a hollow marker and no interval, which would
    fill the panel. *ax*: one axes per collection.

    >>> row = {"collection": "c", "system": "bm25", "score": 0.85, "n": 20, "share": 0.7, "low": 0.4, "high": 0.9}
    >>> reliability(pd.DataFrame([row]))[0].get_xlabel()
    'mean score of the pairs, 0 to 1'
    """
    if table.empty:
        return draw_empty_panels(ax)
    require_columns(table, "collection", "system", "score", "n", "share", "low", "high")
    panels, lines = _panels(table, "collection", ax, 3.4, True), dict[str, Any]()
    styles = figure_styles(table.system)
    with figure_style():
        for panel, rows in panels:
            panel.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
            for name, part in _groups(rows, "system"):
                few = part[part.n < _FEW_PAIRS]
                colour, marker = styles[name]
                ends = np.maximum([part.share - part.low, part.high - part.share], 0)
                ends[:, part.n < _FEW_PAIRS] = np.nan
                lines[name] = panel.errorbar(
                    part.score, part.share, yerr=ends, color=colour, marker=marker, linewidth=1
                )
                panel.plot(few.score, few.share, marker, color=colour, markerfacecolor="white", zorder=3)
            panel.set(xlim=(0, 1), ylim=(-0.03, 1.03), xlabel="mean score of the pairs, 0 to 1")
            panel.set_ylabel("share judged equivalent, 0 to 1")
        panels[0][0].figure.legend(list(lines.values()), list(lines), loc="outside lower center", ncols=3)
    return [panel for panel, _ in panels]


def _panels(
    table: pd.DataFrame, by: str, ax: Axes | Sequence[Axes] | None, height: float, share: bool
) -> list[tuple[Axes, pd.DataFrame]]:
    groups = _groups(table, by)
    wide = min(len(groups), _COLUMNS.get(len(groups), 3) if by == "system_a" else 2)  # that stay legible on a page
    size = (max(4.6, 1.4 + (2.9 if wide < 3 else 2.2) * wide), height)
    axes = panel_axes(ax, len(groups), "systems" if by == "system_a" else "collections", wide, size, share)
    with figure_style():
        for panel, (name, _) in zip(axes, groups, strict=True):
            panel.set_title("\n".join(fill(line, _TITLE) for line in name.splitlines()))
    return [(panel, rows) for panel, (_, rows) in zip(axes, groups, strict=True)]


@draw_styled(lambda table: (7.4, 3.6))
def depth_curve(table: pd.DataFrame, *, ax: Axes = NEW_AXES, measure: str = "value") -> Axes:
    """Draw a value against the depth of reranking, one line per system.

    *table*: depth, system, value; optional ceiling (the value of a perfectly ordered shortlist, dashed) and first_stage
    (the value without reranking, dotted).

    >>> ax = depth_curve(pd.DataFrame({"depth": [5, 10], "system": "bm25", "value": [0.4, 0.5]}), measure="nDCG@10")
    >>> ax.get_ylabel()
    'nDCG@10, 0 to 1, higher is better'
    """
    require_columns(table, "depth", "system", "value")
    if table.duplicated(["system", "depth"]).any():
        raise MirblabError("a curve has one value for each system and depth, found several; draw one collection and "
                           "one reranker at a time, or give each its name in the column system")  # fmt: skip
    lines = {"ceiling": ("--", "ceiling: perfectly ordered"), "first_stage": (":", "without reranking")}
    others = {column: line for column, line in lines.items() if column in table}
    styles = figure_styles(table.system.unique())
    for system, rows in _groups(table.sort_values("depth"), "system"):
        colour, marker = styles[system]
        ax.plot(rows.depth, rows.value, color=colour, marker=marker, label=system, clip_on=False)
        for column, (dashes, _) in others.items():
            ax.plot(rows.depth, rows[column], color=colour, linestyle=dashes, linewidth=1.2)
    for dashes, label in others.values():
        ax.plot([], [], color=GREY, linestyle=dashes, linewidth=1.2, label=label)
    depths = sorted(table.depth.unique())
    if depths[0] > 0 and depths[-1] >= 8 * depths[0]:
        ax.set_xscale("log", base=2)
    ax.set_xticks(depths, [f"{depth:,}" for depth in depths])
    ax.minorticks_off()
    ax.set_xlabel("depth: documents reranked per query")
    _end_values(ax, measure)
    legend_beside(ax)
    return ax


def periods(table: pd.DataFrame, *, ax: Axes | Sequence[Axes] | None = None) -> list[Axes]:
    """Draw each system's mean difference from a baseline over time, with its interval; return the axes.

    *table* is from `lab.compare` with a baseline (collection, measure, system_a, system_b, difference, low, high), with
    library, one panel for each, and at, the first day of the period, ISO. *ax*: one axes per library.

    >>> row = {"library": "set.mm", "at": "2014-01-01", "measure": "RR", "system_a": "m", "system_b": "bm25"}
    >>> [ax] = periods(pd.DataFrame([row | {"difference": 0.1, "low": 0.0, "high": 0.2}]))
    >>> ax.get_title("left"), [text.get_text() for text in ax.get_xticklabels()]
    ('set.mm', ['2014-01-01'])
    """
    if table.empty:
        return draw_empty_panels(ax)
    require_columns(table, "library", "at", "measure", "system_a", "system_b", "difference", "low", "high")
    panels, styles = _panels(table, "library", ax, 3.4, False), figure_styles(table.system_a.unique())
    with figure_style():
        for panel, rows in panels:
            days = sorted(rows["at"].unique())
            systems = _groups(rows, "system_a")
            for number, (name, own) in enumerate(systems):
                colour, marker = styles[name]
                own = own.sort_values("at")
                beside = 0.16 * (number - (len(systems) - 1) / 2)  # so that intervals do not cover each other
                places = np.array([days.index(day) for day in own["at"]]) + beside
                panel.plot(places, own.difference, marker=marker, color=colour, label=name)
                panel.vlines(places, own.low, own.high, color=colour, linewidth=1.2)
            panel.axhline(0, color=GREY, linewidth=0.8)
            panel.set_xticks(range(len(days)), days, rotation=30, ha="right")
            panel.set_xlabel("first day of the period")
            panel.set_ylabel(f"difference in {rows.measure.iloc[0]}\nfrom {rows.system_b.iloc[0]}, −1 to 1")
        if ax is None:
            handles, labels = panels[0][0].get_legend_handles_labels()
            panels[0][0].figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return [panel for panel, _ in panels]


def strata(table: pd.DataFrame, *, ax: Axes | Sequence[Axes] | None = None) -> Axes | list[Axes]:
    """Draw each system's mean for every kind of topic as a bar with its interval, one panel per system.

    *table* is from `significance.bootstrap_intervals`, one measure, with kind (what the topics are divided by) and
    label (the part) for collection. All panels share the vertical axis, from 0, as in Figure 2 of Zhong et al. 2022.
    *ax*: one axes per system; several are returned as a list.

    >>> rows = [("category", "Proof", "RR", "bm25", 0.5, 0.4, 0.6, 20), ("difficulty", "Low", "RR", "bm25", 1, 1, 1, 9)]
    >>> names = ["kind", "label", "measure", "system", "mean", "low", "high", "n_queries"]
    >>> [text.get_text() for text in strata(pd.DataFrame(rows, columns=names)).get_xticklabels()]
    ['Proof (20)', 'Low (9)']
    """
    groups = _groups(table, "system")
    wide = _COLUMNS.get(len(groups), 3)
    axes = panel_axes(ax, len(groups), "systems", wide, (3.7 * min(wide, 2), 2.9))
    top = _axis_end(float(table.high.max())) if len(table) else 1.0
    styles = figure_styles(name for name, _ in groups)
    for number, (panel, (name, rows)) in enumerate(zip(axes, groups, strict=True)):
        _strata_panel(rows, ax=panel, name=name, top=top, colour=styles[name][0])
        if ax is None and number % wide:  # the axis is that of the first panel of the row
            panel.set_ylabel("")
    return axes[0] if len(axes) == 1 else axes


@draw_styled(lambda table: (3.6, 2.9))
def _strata_panel(table: pd.DataFrame, *, ax: Axes, name: str, top: float, colour: str) -> Axes:
    require_columns(table, "kind", "label", "measure", "mean", "low", "high", "n_queries")
    if table.measure.nunique() != 1:
        raise MirblabError(f"one measure at a time, found {', '.join(map(str, table.measure.unique()))}")
    kinds = _groups(table, "kind")
    starts = np.cumsum([0.0, *(len(rows) + _GAP for _, rows in kinds)])
    places = [start + np.arange(len(rows)) for start, (_, rows) in zip(starts, kinds, strict=False)]
    for (kind, rows), place in zip(kinds, places, strict=True):
        ax.bar(place, rows["mean"], width=0.8, color=colour)
        ax.vlines(place, rows.low, rows.high, color="black", linewidth=1.2)
        ax.text(place.mean(), top, kind, ha="center", va="bottom", fontsize=8.5, color=GREY)
    labels = [f"{label} ({n:,})" for _, rows in kinds for label, n in zip(rows.label, rows.n_queries, strict=True)]
    ax.set_xticks(np.concatenate(places), labels, rotation=90, fontsize=8.5)
    ax.set_ylim(0, top)
    ax.set_ylabel(fill(value_axis_label(str(table.measure.iloc[0]), 0, top), _LETTERS + 8))
    ax.set_title(fill(name, _TITLE), pad=16)
    ax.grid(axis="x", visible=False)
    return ax


@draw_styled(lambda table: (7.4, 3.4))
def decay(table: pd.DataFrame, *, ax: Axes = NEW_AXES, value: str = "value", measure: str = "value") -> Axes:
    """Draw a value while judgements are hidden: the mean over seeds, with the range of the seeds shaded.

    *table* is from `unjudged.hide_judgements`, one collection and measure: system, hidden, seed and the column *value*.

    >>> rows = [("bm25", 0.0, 0, 0.5), ("bm25", 0.5, 0, 0.3), ("bm25", 0.5, 1, 0.4)]
    >>> decay(pd.DataFrame(rows, columns=["system", "hidden", "seed", "value"])).lines[0].get_ydata().tolist()
    [0.5, 0.35]
    """
    require_columns(table, "system", "hidden", "seed", value)
    styles = figure_styles(table.system.unique())
    for number, (system, rows) in enumerate(_groups(table, "system")):
        over = rows.groupby(100 * rows.hidden)[value].agg(["mean", "min", "max"])
        colour, marker = styles[system]
        # Hollow markers and broken lines on top show a line that is nearly equal to a later one.
        ax.plot(over.index, over["mean"], color=colour, marker=marker, markerfacecolor="none", markersize=7,
                linestyle=("-", "--", ":", "-.")[number % 4], label=system, clip_on=False)  # fmt: skip
        ax.fill_between(over.index, over["min"], over["max"], color=colour, alpha=0.15, linewidth=0)
    ax.set_xlabel("judgements hidden, percent")
    if value == "value":
        _end_values(ax, measure)
    else:
        ax.set_ylabel(f"{measure}, −1 to 1")
    legend_beside(ax)
    return ax


def _end_values(ax: Axes, measure: str) -> None:
    """Let a vertical axis begin at 0, or at a tenth below all values where these are 0.5 or more; label its ends."""
    lowest, end = ax.dataLim.y0, _axis_end(ax.dataLim.y1)
    start = min(np.floor(10 * lowest + 1e-9) / 10, 0.9) if 0.5 <= lowest <= 1 else 0
    ax.set_ylim(start, 1.0 + 0.02 * (1 - start) if end == 1 else end)
    ax.set_ylabel(fill(value_axis_label(measure, start, end), _LETTERS + 12))


def learning(table: pd.DataFrame, *, measure: str = "R@1", ax: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw loss and *measure* against the step, one line per model, in two panels; return both axes.

    *table* is from `train.training_log`, with a column system for several models: step, loss and smoothed (rows of
    steps), and the measure (rows of evaluations). Lines are the smoothed loss, pale dots single steps.

    >>> log = pd.DataFrame({"step": [0, 1, 2, 2], "loss": [None, 2.0, 1.0, None], "R@1": [0.1, None, None, 0.3]})
    >>> log["smoothed"] = log.loss
    >>> learning(log)[1].lines[0].get_ydata().tolist()
    [0.1, 0.3]
    """
    if table.empty:
        return draw_empty_panels(ax)
    require_columns(table, "step", "loss", "smoothed", measure)
    table = table if "system" in table else table.assign(system="")
    axes = panel_axes(ax, 2, "panels", 2, (8.4, 3.2), False)
    styles = figure_styles(table.system.unique())
    with figure_style():
        for system, rows in _groups(table, "system"):
            colour, marker = styles[system] if system else (PALETTE[0], "o")
            losses, reached = rows.dropna(subset="loss"), rows.dropna(subset=measure)
            axes[0].plot(losses.step, losses.loss, ".", color=colour, alpha=0.4, markersize=4, clip_on=False)
            axes[0].plot(losses.step, losses.smoothed, color=colour, label=system)
            axes[1].plot(reached.step, reached[measure], color=colour, marker=marker, label=system, clip_on=False)
        axes[0].set_ylabel("loss (dots: single steps),\nlower is better")
        axes[1].set_ylabel(fill(value_axis_label(f"held-out {measure}"), 26))
        for panel in axes:
            panel.set_xlabel("step")
            panel.set_ylim(bottom=0)
        if table.system.nunique() > 1:
            handles, labels = axes[1].get_legend_handles_labels()
            axes[1].figure.legend(handles, labels, loc="outside lower center", ncols=min(3, len(labels)))
    return axes


@draw_styled(lambda table: (6.4, 1.0 + 0.3 * len(table)))
def bars(
    table: pd.DataFrame, *, ax: Axes = NEW_AXES, log: bool = False, unit: str = "count", maths: bool = False
) -> Axes:
    """Draw counts as horizontal bars, or dots on a logarithmic axis, in the order of the table: names, then counts.

    *unit* is what was counted; *maths*: `$…$` in names.

    >>> ax = bars(pd.DataFrame({"collection": ["mini-qa"], "documents": [240]}))
    >>> ax.get_xlabel(), ax.texts[0].get_text()
    ('documents, count', '240')
    """
    names, counts = table.iloc[:, 0].astype(str).tolist(), table.iloc[:, 1]
    if log:  # a bar has no start on a logarithmic axis
        ax.plot(counts, range(len(names)), "o", color=PALETTE[0])
    else:
        ax.barh(range(len(names)), counts, color=PALETTE[0], height=0.7)
    for place, count in enumerate(counts):
        ax.annotate(f"{count:,}", (count, place), (7, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set_yticks(range(len(names)), names, parse_math=maths)
    ax.set_ylim(len(names) - 0.5, -0.5)
    if log:
        ax.set_xscale("log")
        powers = [int(np.log10(max(1, count))) for count in (counts.min(), counts.max())]
        ax.set_xlim(10 ** powers[0], 10 ** (powers[1] + 1))
        ax.xaxis.set_minor_formatter("")
    else:
        ax.locator_params(axis="x", nbins=4)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel(f"{table.columns[1]}, {unit}" + (", logarithmic" if log else ""))
    ax.margins(x=0.12)
    ax.grid(axis="y", visible=False)
    return ax
