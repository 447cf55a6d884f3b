"""origins: the picture of where the first documents of a fusion stood in its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError
from mirblab.figures import GREY, legend_beside, look, need, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OTHER = ("rank", "doc_id", "relevance", "query_id")
_MARKERS = "osD^vPX"  # of the runs in their order: colours alone are not for all eyes
# What a document is, whether its marker is filled, and how large it is.
_KINDS = {"relevant": (True, 8.0), "judged, not relevant": (False, 8.0), "not judged": (True, 4.0)}


@styled(lambda table: (7.4, 4.2))
def origins(table: pd.DataFrame, *, ax: Axes | None = None, relevant_from: int = 1) -> Axes:
    """Draw the rank that each document of a fusion had in the original runs, on a logarithmic scale, best on top.

    *table* is from `fusion.provenance`: rank, doc_id, a column of ranks per run, optional relevance. One colour and
    marker per run; what a run did not return lies in the band below. Filled: relevance of *relevant_from* or more;
    hollow: judged, but less; small: not judged. The relevance stands below the rank, – where there is none.

    >>> table = pd.DataFrame({"rank": [1, 2], "doc_id": ["a", "b"], "bm25": [2, 7], "minilm": [1, None]})
    >>> [text.get_text() for text in origins(table).get_legend().get_texts()]
    ['rank in bm25', 'rank in minilm']
    """
    need(table, "rank", "doc_id")
    names = [name for name in table.columns if name not in _OTHER]
    if not names:
        raise MirblabError("no run to show; the table needs a column of ranks for each part of the fusion")
    ranks = table[names].astype("Float64").to_numpy(float, na_value=np.nan)
    deepest = np.nanmax(ranks, initial=10)
    floor, absent = deepest * 1.5, deepest * 2.2
    places = table["rank"].to_numpy(float)
    kinds = _kinds(table, relevant_from)
    shown = np.where(np.isnan(ranks), absent, ranks)
    ax.vlines(places, shown.min(axis=1), shown.max(axis=1), color="#C8C8C8", linewidth=1.2, zorder=1)
    ax.axhspan(floor, absent * 1.5, color="#EFEFEF", zorder=0, linewidth=0)
    step = min(0.2, 0.6 / len(names))
    for number, name in enumerate(names):
        colour, marker = look(name)[0], _MARKERS[number % len(_MARKERS)]
        across = places + step * (number - (len(names) - 1) / 2)
        for kind, (is_filled, size) in _KINDS.items():
            ax.plot(across[kinds == kind], shown[kinds == kind, number], linestyle="none", color=colour, marker=marker,
                    markersize=size, markerfacecolor=colour if is_filled else "white", markeredgewidth=1.6)  # fmt: skip
    _axes(ax, table, deepest, floor, absent)
    _legend(ax, names, kinds if "relevance" in table else np.array([]))
    return ax


def _kinds(table: pd.DataFrame, relevant_from: int) -> np.ndarray:
    """Return which of `_KINDS` each document is; filled where nothing is known of any."""
    if "relevance" not in table:
        return np.full(len(table), "relevant")
    relevance = table.relevance.astype("Float64").to_numpy(float, na_value=np.nan)
    judged = np.where(relevance >= relevant_from, "relevant", "judged, not relevant")
    return np.where(np.isnan(relevance), "not judged", judged)


def _axes(ax: Axes, table: pd.DataFrame, deepest: float, floor: float, absent: float) -> None:
    ax.set_yscale("log")
    ax.set_ylim(absent * 1.5, 0.75)
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000) if tick <= deepest]
    ax.set_yticks([*ticks, absent], [*(f"{tick:,}" for tick in ticks), "not\nreturned"])
    ax.minorticks_off()
    ax.axhline(floor, color=GREY, linewidth=0.8)
    labels = [f"{rank:,}" for rank in table["rank"]]
    about = "rank in the fusion"
    if "relevance" in table:
        grades = ["–" if pd.isna(grade) else f"{grade:g}" for grade in table.relevance]
        labels = [f"{rank}\n{grade}" for rank, grade in zip(labels, grades, strict=True)]
        about += ", and relevance below it"
    ax.set_xticks(table["rank"], labels)
    ax.set_xlabel(about)
    ax.set_ylabel("rank in the original run,\nlogarithmic, best on top")
    ax.grid(axis="x", visible=False)


def _legend(ax: Axes, names: list[str], kinds: np.ndarray) -> None:
    """Name the runs by colour and, where documents are judged, the markers that occur."""
    from matplotlib.lines import Line2D

    keys = []
    for number, name in enumerate(names):
        colour, marker = look(name)[0], _MARKERS[number % len(_MARKERS)]
        keys.append(
            Line2D([], [], marker=marker, linestyle="none", markersize=8, color=colour, label=f"rank in {name}")
        )
    for kind, (is_filled, size) in _KINDS.items():
        if kind in kinds:
            face = GREY if is_filled else "white"
            keys.append(Line2D([], [], marker="o", linestyle="none", markersize=size, color=GREY, markerfacecolor=face,
                               markeredgewidth=1.6, label=kind))  # fmt: skip
    legend_beside(ax, handles=keys)
