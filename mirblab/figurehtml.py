"""figurehtml: a figure in a notebook, with its alt text, its caption and its numbers as a table to unfold."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pandas as pd

from mirblab import browsing
from mirblab.escape import maths_html, plain_html
from mirblab.prose import escaped

if TYPE_CHECKING:
    from IPython.display import HTML

_MOST_ROWS = 200  # of the numbers beside a figure


def figure(png: bytes, dpi: int, alt: str, caption: str, table: pd.DataFrame | None, rest: str) -> HTML:
    """Return a picture of *dpi* dots an inch at its own size, and the first 200 rows of *table* (None: no numbers).

    Formulas of the caption stand between dollars. *rest* says where all rows are. JupyterLab drops the alt text of
    other outputs, but keeps that of an `<img>`.
    """
    from IPython.display import HTML

    width = int.from_bytes(png[16:20], "big") / (dpi / 100)  # in the header; the margins were cut off
    source = base64.b64encode(png).decode()
    shown = "" if table is None else browsing.html(table, most=_MOST_ROWS, rest=rest)
    numbers = f"<details><summary>The numbers</summary>{shown}</details>" if shown else ""
    said = maths_html(caption) if "$" in caption else plain_html(caption)
    return HTML(
        f'<figure style="margin: 0"><img alt="{escaped(alt)}" style="max-width: 100%; width: {width:.0f}px" '
        f'src="data:image/png;base64,{source}"><figcaption>{said}</figcaption>{numbers}</figure>'
    )
