"""maps: plots of projections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, check_known
from mirblab.display.escape import format_value
from mirblab.display.figures import (
    GREY,
    PALETTE,
    draw_empty_panels,
    draw_styled,
    figure_style,
    legend_beside,
    panel_axes,
    require_columns,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Dark and light alternate, so that fields differ in black and white, too.
COLOURS = tuple(PALETTE[place] for place in (0, 4, 6, 5, 2, 3, 1))
_WIDE = 3  # panels in a row
_PAGE, _TEXT = 7.4, 1.2  # inches: the width of the page, and the height of what stands above and below a row of maps
_FLAT, _TALL = 0.35, 0.75  # the limits of a panel's height as a share of its width
_LINE = "#A8A8A8"
_REACH, _AIR = 96, 4  # points: how far words stand from their region at most, and from the middle of a dot at least
_DOT, _FEW = 60, 80  # the area of a dot in points², on a large map of up to so many statements

_GROUPS = 5  # of equally many statements, whose median rank is drawn
_AXES = {
    "overlap": "vocabulary shared\nwith the partner, 0 to 1",
    "rival_overlap": "vocabulary shared\nwith the best rival, 0 to 1",
    "margin": "overlap with the partner minus\noverlap with the best rival, −1 to 1",
}
_TICKS = (0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1)


def map(
    table: pd.DataFrame, *, ax: Axes | Sequence[Axes] | None = None, distractor: str = "distractor"
) -> Axes | list[Axes]:
    """Draw statements in the plane: pairs as large dots joined by thin lines, distractors as triangles.

    *table*: id, x, y, class_id, field (a colour each; the eighth to fourteenth are hollow) and kind (*distractor*, or
    the relation within a pair, which the legend shows). With seed: a panel for each. With the columns of
    `projection.point_trustworthiness`: their means above each panel. With region, from `projection.label_regions`: the
    colours are those of the regions, whose words stand on a single map. *ax*: one axes per seed; several are returned
    as a list. The drawing does not depend on the order of rows.

    >>> rows = [("a", 0, 0, "p", "f", "equivalent"), ("b", 1, 1, "p", "g", "equivalent"), ("c", 2, 0, "", "f", "")]
    >>> ax = map(pd.DataFrame(rows, columns=["id", "x", "y", "class_id", "field", "kind"]), distractor="")
    >>> [text.get_text() for text in ax.figure.legends[0].get_texts()]
    ['f, equivalent (1)', 'f, other (1)', 'g, equivalent (1)']
    """
    parts = [part for _, part in table.groupby("seed", sort=False)] if "seed" in table and len(table) else [table]
    alone = len(parts) == 1
    axes = panel_axes(ax, len(parts), "seeds", min(len(parts), _WIDE), _size(parts), share=False)
    for panel, part in zip(axes, parts, strict=True):
        _map_panel(part, ax=panel, distractor=distractor, alone=alone)
    if len(table):
        _legend(axes, below=ax is None)
        if alone and "region" in table:
            _region_labels(parts[0], axes[0])
    return axes[0] if alone else axes


def region_colours(regions: Iterable[str]) -> dict[str, tuple[str, bool]]:
    """Return the colour of each region and whether its dots are hollow (the eighth to fourteenth); "" is grey.

    >>> region_colours(["", "ring, ideal"])
    {'ring, ideal': ('#0072B2', False), '': ('#6E6E6E', False)}
    """
    names = sorted(set(regions) - {""})
    looks = {name: (COLOURS[n % len(COLOURS)], n // len(COLOURS) % 2 == 1) for n, name in enumerate(names)}
    return looks | {"": (GREY, False)}


def _size(parts: list[pd.DataFrame]) -> tuple[float, float]:
    """Return the page width and the row height in inches, so that the tallest map fills its panel."""
    spans = [(part.y.max() - part.y.min()) / max(part.x.max() - part.x.min(), 1e-9) for part in parts if len(part)]
    share = min(max([_FLAT, *spans]), _TALL)
    return _PAGE, _TEXT + share * _PAGE / min(len(parts), _WIDE)


@draw_styled(lambda table: (_PAGE, _TALL * _PAGE))
def _map_panel(table: pd.DataFrame, *, ax: Axes, distractor: str, alone: bool) -> Axes:
    require_columns(table, "id", "x", "y", "class_id", "field", "kind")
    table = table.astype({"id": str, "class_id": str, "field": str, "kind": str}).sort_values("id", kind="stable")
    scale = (1.0 if alone else 0.4) * min(1.0, _FEW / len(table)) ** 0.5
    _lines(table[table.kind != distractor], ax, scale)
    looks = region_colours(table.region) if "region" in table else {}
    if "region" in table:
        for region, (colour, hollow) in looks.items():
            _points(table[table.region == region], ax, colour, hollow, distractor, scale)
        _kind_labels(table, ax, distractor, scale)
    else:
        for place, (field, part) in enumerate(table.groupby("field", sort=True)):
            colour, hollow = COLOURS[place % len(COLOURS)], place // len(COLOURS) % 2 == 1
            _points(part, ax, colour, hollow, distractor, scale, str(field))
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.05)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color("#CCCCCC")
    ax.set_title(_panel_title(table, alone), fontsize=9 if alone else 8.5)
    if alone:
        told = ["only neighbourhoods are meaningful", "the axes have no unit"]
        told += (
            ["hollow: another region than the filled ones of its colour"]
            if any(hollow for _, hollow in looks.values())
            else []
        )
        ax.set_xlabel("; ".join(told), fontsize=8, color=GREY)
    return ax


def _lines(pairs: pd.DataFrame, ax: Axes, scale: float) -> None:
    from matplotlib.collections import LineCollection

    classes = pairs[pairs.class_id != ""].groupby("class_id", sort=True)
    lines = [part[["x", "y"]].to_numpy() for _, part in classes if len(part) > 1]
    ax.add_collection(LineCollection(lines, colors=_LINE, linewidths=0.3 + 0.5 * scale, zorder=1))


def _points(
    table: pd.DataFrame, ax: Axes, colour: str, hollow: bool, distractor: str, scale: float, field: str = ""
) -> None:
    for points, kind, marker, size in _by_kind(table, distractor):
        ax.scatter(points.x, points.y, s=size * scale, marker=marker, facecolors="white" if hollow else colour,
                   edgecolors=colour if hollow else "black", linewidths=1.4 * scale if hollow else 0.5 * scale,
                   label=f"{field}, {kind} ({len(points):,})" if field else None,
                   zorder=3 if marker == "^" else 2)  # fmt: skip


def _by_kind(table: pd.DataFrame, distractor: str) -> list[tuple[pd.DataFrame, str, str, float]]:
    """Return the statements of pairs, and distractors, if there are any, with the name, marker and size of each."""
    is_distractor = table.kind == distractor
    pairs, others = table[~is_distractor], table[is_distractor]
    parts = [
        (pairs, " or ".join(sorted(pairs.kind.unique())), "o", _DOT),
        (others, distractor or "other", "^", _DOT / 2),
    ]
    return [part for part in parts if len(part[0])]


def _kind_labels(table: pd.DataFrame, ax: Axes, distractor: str, scale: float) -> None:
    """Add to the legend what dots, triangles and lines are; the colours of regions stand on the map."""
    for points, kind, marker, size in _by_kind(table, distractor):
        ax.scatter([], [], s=size * max(scale, 0.6), marker=marker, color=GREY, label=f"{kind} ({len(points):,})")


def _region_labels(table: pd.DataFrame, ax: Axes) -> None:
    """Write the words of each region near it where they cover no other words and, if possible, no dot."""
    from matplotlib.patheffects import withStroke

    ax.figure.get_figure(root=True).draw_without_rendering()  # the layout settles what a point of the map is on paper
    dots, frame = ax.transData.transform(table[["x", "y"]].to_numpy()), ax.get_window_extent()
    unit, placed = ax.figure.dpi / 72, list[np.ndarray]()
    looks = region_colours(table.region)
    sizes = table.region[table.region != ""].value_counts().sort_index().sort_values(ascending=False, kind="stable")
    for name in sizes.index:
        text = ax.text(0, 0, name, ha="center", va="center", fontsize=9, weight="bold", color=_dark(looks[name][0]),
                       zorder=5, path_effects=[withStroke(linewidth=3, foreground="white")])  # fmt: skip
        extent = text.get_window_extent()
        half = np.array([extent.width, extent.height]) / 2 + _AIR * unit
        own = (table.region == name).to_numpy()
        spot = _free_spot(dots[own], dots[~own], half, placed, np.array([frame.p0, frame.p1]), unit)
        placed.append(np.array([spot - half, spot + half]))
        x, y = ax.transData.inverted().transform(spot).tolist()
        text.set_position((x, y))


def _free_spot(
    own: np.ndarray, others: np.ndarray, half: np.ndarray, placed: list[np.ndarray], frame: np.ndarray, unit: float
) -> np.ndarray:
    """Return where words of the size 2 * *half* (2,) stand best near the middle of their *own* dots, in pixels.

    That is where they cover the fewest dots, of such spots where no *others* are nearer than an own dot, and of such
    spots the nearest. *placed*: boxes of other words, as two corners, which are not covered.
    """
    centre, dots = np.median(own, axis=0), np.concatenate([own, others])
    steps = np.arange(-_REACH, _REACH + 1, 3) * unit
    best, least = centre, (np.inf, True, np.inf)
    for spot in centre + np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2):
        low, high = spot - half, spot + half
        outside = (low < frame[0]).any() or (high > frame[1]).any()
        if outside or any((low < box[1]).all() and (high > box[0]).all() for box in placed):
            continue
        gaps = np.hypot(*np.maximum(np.abs(dots - spot) - half, 0).T)
        other_is_nearer = bool(gaps[: len(own)].min() > gaps[len(own) :].min(initial=np.inf))
        cost = int((gaps == 0).sum()), other_is_nearer, float(np.hypot(*(spot - centre)))
        if cost < least:
            best, least = spot, cost
    return best


def _dark(colour: str) -> tuple[float, ...]:
    """Return a colour as dark as small letters on white need."""
    from matplotlib.colors import to_rgb

    return tuple(0.6 * part for part in to_rgb(colour))


def _panel_title(table: pd.DataFrame, alone: bool) -> str:
    seed = f"seed {table.seed.iloc[0]}" if "seed" in table else ""
    if "kept" not in table:
        return seed
    require_columns(table, "k", "trust", "partner_full", "partner_map")
    k, paired = table.k.iloc[0], table[table.partner_full > 0]
    kept, trust = f"{100 * table.kept.mean():.0f} %", f"trustworthiness {table.trust.mean():.2f}"
    full, seen = (f"{100 * (paired[column] <= k).mean():.0f} %" for column in ("partner_full", "partner_map"))
    if alone:
        near = f"\npartner among the {k} nearest: {full} in the full space, {seen} on this map" if len(paired) else ""
        return f"{seed}: the map keeps {kept} of each statement's {k} nearest; {trust}{near}"
    return f"{seed}: {kept} of {k} nearest kept\n{trust}" + (
        f"\npartner among the {k}: {seen}\n(full space {full})" if len(paired) else ""
    )


def _legend(axes: list[Axes], below: bool) -> None:
    handles, labels = axes[0].get_legend_handles_labels()
    with figure_style():
        if below:
            axes[0].figure.legend(handles, labels, loc="outside lower left", ncols=2)
        else:
            legend_beside(axes[-1], handles=handles, labels=labels)


def overlap(
    table: pd.DataFrame,
    correlations: pd.DataFrame,
    *,
    ax: Axes | Sequence[Axes] | None = None,
    share: str = "overlap",
) -> list[Axes]:
    """Draw the rank of each statement's partner (logarithmic) against the vocabulary that they share; return the axes.

    *table* is from `partners.overlap_points`: system, rank and *share* (overlap, rival_overlap or margin). Each dot is
    a statement; the line joins the median ranks of equally large groups by *share*, with 95 % bootstrap intervals.
    *correlations* is from `partners.rank_correlations`, shown in the titles. All panels, one per system, have the same
    scales; overlaps, mostly small, are drawn by their square root. Raises MirblabError for a system without a
    correlation of this share.

    >>> points = pd.DataFrame({"system": "bm25", "rank": [1, 90], "overlap": [0.5, 0.1]})
    >>> rho = pd.DataFrame({"system": ["bm25"], "share": ["overlap"], "rho": [-0.8], "low": [-0.9], "high": [-0.6]})
    >>> overlap(points, rho)[0].get_title("left")
    'bm25\\nρ = −0.80 [−0.90, −0.60]'
    """
    check_known("share", share, _AXES)
    if table.empty:
        return draw_empty_panels(ax)
    require_columns(table, "system", "rank", share)
    require_columns(correlations, "system", "share", "rho", "low", "high")
    groups = list(table.groupby("system", sort=False, observed=True))
    wide = min(len(groups), _WIDE)
    axes = panel_axes(ax, len(groups), "systems", wide, (max(4.4, 1.2 + 2.5 * wide), 3.3))
    with figure_style():
        for place, (panel, (name, part)) in enumerate(zip(axes, groups, strict=True)):
            _partner_panel(panel, part, share)
            _scale_axes(panel, table, share)
            panel.set_title(f"{name}\n{_correlation_label(correlations, str(name), share)}")
            panel.set_ylabel("" if place % wide else "rank of the partner,\n1 is best")
    return axes


def _partner_panel(ax: Axes, part: pd.DataFrame, share: str) -> None:
    import seaborn as sns

    ax.scatter(part[share], part["rank"], s=14, color=GREY, alpha=0.4, linewidths=0, clip_on=False)
    groups = pd.qcut(part[share], min(_GROUPS, len(part)), duplicates="drop")
    middles = part.groupby(groups, observed=True)[share].transform("median")
    sns.lineplot(x=middles, y=part["rank"], estimator="median", errorbar=("ci", 95), seed=0, err_style="bars",
                 marker="o", color=PALETTE[0], ax=ax)  # fmt: skip


def _scale_axes(ax: Axes, table: pd.DataFrame, share: str) -> None:
    """Give both axes the range of the whole *table*; ranks are logarithmic, overlaps scaled by their square root."""
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


def _correlation_label(correlations: pd.DataFrame, system: str, share: str) -> str:
    rows = correlations[(correlations.system.astype(str) == system) & (correlations.share == share)]
    if len(rows) != 1:
        raise MirblabError(f"{system} needs one correlation of its ranks with '{share}', found {len(rows)}")
    rho, low, high = (format_value(number) for number in rows[["rho", "low", "high"]].iloc[0])
    return f"ρ = {rho} [{low}, {high}]"
