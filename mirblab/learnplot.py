"""learnplot: how a model learned: its loss, and what it reached on held-out tasks, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import pandas as pd

from mirblab.figures import PALETTE, axis, look, need, panels, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def learning(table: pd.DataFrame, *, measure: str = "R@1", ax: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw loss and *measure* against the step, one line per model, in two panels; return both axes.

    *table* is from `train.log`, with a column system where it holds several models: step, loss and smoothed (rows of
    steps), and the measure (rows of evaluations). Lines are the smoothed loss, pale dots single steps.

    >>> log = pd.DataFrame({"step": [0, 1, 2, 2], "loss": [None, 2.0, 1.0, None], "R@1": [0.1, None, None, 0.3]})
    >>> log["smoothed"] = log.loss
    >>> learning(log)[1].lines[0].get_ydata().tolist()
    [0.1, 0.3]
    """
    need(table, "step", "loss", "smoothed", measure)
    table = table if "system" in table else table.assign(system="")
    axes = panels(ax, 2, "panels", 2, (8.4, 3.2), False)
    with style():
        for place, (system, part) in enumerate(table.groupby("system", sort=False, observed=True)):
            colour, marker = look(str(system)) if system else (PALETTE[place], "o")
            losses, reached = part.dropna(subset="loss"), part.dropna(subset=measure)
            axes[0].plot(losses.step, losses.loss, ".", color=colour, alpha=0.25, markersize=3)
            axes[0].plot(losses.step, losses.smoothed, color=colour, label=str(system))
            axes[1].plot(reached.step, reached[measure], color=colour, marker=marker, label=str(system))
        axes[0].set_ylabel("loss, lower is better")
        axes[1].set_ylabel(fill(axis(f"held-out {measure}"), 26))
        for one in axes:
            one.set_xlabel("step")
            one.set_ylim(bottom=0)
        if table.system.nunique() > 1:
            handles, labels = axes[1].get_legend_handles_labels()
            axes[1].figure.legend(handles, labels, loc="outside lower center", ncols=min(3, len(labels)))
    return axes
