"""rankplot: where the judged documents of one query stand in each system, as lines from system to system."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.figures import GREY, PALETTE, cut, need, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMED, _STEP = 12, 0.055  # documents named at most; what two names need of the height
_LETTERS = 34


@styled(lambda table: (2.6 + 1.5 * max(2, table.shape[1] - 3), 4.2))
def ranks(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the rank of each judged document under each system, 1 above, on a logarithmic axis.

    *table* is from `one_query.judged`: doc_id, grade, is_relevant, a column of ranks per system (NaN: not returned,
    drawn at the bottom). Relevant documents are coloured and named, the best dozen of them; others are grey.

    >>> table = pd.DataFrame({"doc_id": ["d"], "grade": [1], "is_relevant": [True], "bm25": [1.0], "minilm": [np.nan]})
    >>> [label.get_text() for label in ranks(table).get_xticklabels()]
    ['bm25', 'minilm']
    """
    need(table, "doc_id", "grade", "is_relevant")
    systems = [name for name in table.columns if name not in ("doc_id", "grade", "is_relevant")]
    numbers = table[systems].to_numpy(dtype=float)
    last = max(10.0, np.nanmax(numbers, initial=1.0))
    missing = last * 2.2
    filled = np.where(np.isnan(numbers), missing, numbers)
    relevant = table.is_relevant.to_numpy(dtype=bool)
    for row in np.flatnonzero(~relevant):
        ax.plot(systems, filled[row], color="#BBBBBB", marker=".", linewidth=0.9, zorder=1)
    chosen = np.flatnonzero(relevant)
    for place, row in enumerate(chosen):
        ax.plot(systems, filled[row], color=PALETTE[place % len(PALETTE)], marker="o", linewidth=1.8, zorder=2)
    ax.set_yscale("log")
    ax.set_ylim(missing * 1.35, 0.8)
    steps = [step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if step <= last]
    ax.set_yticks([*steps, missing], [*(f"{step:,}" for step in steps), "not returned"])
    ax.minorticks_off()
    ax.set_ylabel("rank, 1 is best")
    ax.set_xlim(-0.2, len(systems) - 0.8)
    ax.grid(axis="x", visible=False)
    _name(ax, table, filled, chosen[:_NAMED], len(systems))
    return ax


def _name(ax: Axes, table: pd.DataFrame, filled: np.ndarray, chosen: np.ndarray, n_systems: int) -> None:
    """Write the documents' names at the right, apart from each other."""
    low, high = np.log(ax.get_ylim()[0]), np.log(ax.get_ylim()[1])
    heights = [(np.log(filled[row, -1]) - low) / (high - low) for row in chosen]
    last = 1.0 + _STEP
    for place in np.argsort(-np.array(heights), kind="stable"):
        row = chosen[place]
        last = min(heights[place], last - _STEP)
        name = str(table.doc_id.iloc[row])
        text = f"{cut(name, _LETTERS)} ({table.grade.iloc[row]})"
        line = {"arrowstyle": "-", "color": PALETTE[place % len(PALETTE)], "linewidth": 1.0}
        ax.annotate(text, (n_systems - 1, filled[row, -1]), xytext=(1.03, last), textcoords="axes fraction",
                    va="center", fontsize=8.5, color="black", annotation_clip=False, arrowprops=line)  # fmt: skip
    unnamed = int(table.is_relevant.sum()) - len(chosen)
    notes = ["grey: judged not relevant"] if not table.is_relevant.all() else []
    notes += [f"{unnamed:,} relevant ones not named"] if unnamed else []
    ax.set_title("; ".join(notes), color=GREY, fontsize=9)
