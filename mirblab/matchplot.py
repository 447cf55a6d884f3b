"""matchplot: the tokens of a query against those of a document, each query token's best one marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.figures import PALETTE, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDE = 0.27  # inches of a cell, in which a token's name is legible
_PAGE = 14.0  # inches; longer texts have smaller cells


@styled(lambda table: tuple(min(_PAGE, edge + _SIDE * n) for edge, n in ((2.4, table.shape[1]), (1.5, len(table)))))
def matches(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the cosine of each query token (rows) with each document token (columns), dark for high.

    *table* is from `late_match.matches`; up to about 40 tokens a side stay legible. A ring marks the best document
    token of each query token: the mean of the marked cells is the score.

    >>> ax = matches(pd.DataFrame([[0.2, 0.9]], index=["ring"], columns=["a", "ring"]))
    >>> ax.lines[0].get_xydata().tolist()
    [[1.0, 0.0]]
    """
    numbers = table.to_numpy(dtype=float)
    image = ax.imshow(numbers, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    best = numbers.argmax(axis=1)
    ax.plot(best, np.arange(len(best)), linestyle="none", marker="o", markersize=8, markerfacecolor="none",
            markeredgecolor=PALETTE[1], markeredgewidth=1.8, clip_on=False)  # fmt: skip
    ax.set_xticks(range(table.shape[1]), [str(name) for name in table.columns], rotation=90, fontsize=9)
    ax.set_yticks(range(table.shape[0]), [str(name) for name in table.index], fontsize=9)
    ax.set_xlabel("tokens of the document")
    ax.set_ylabel("tokens of the query")
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, ax=ax, label="cosine, 0 or less to 1", shrink=0.9)
    return ax
