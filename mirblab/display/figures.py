"""figures: the style of figures, and how they are saved."""

from __future__ import annotations

import base64
import functools
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mirblab.core import paths
from mirblab.core.errors import MirblabError, unknown
from mirblab.display.escape import maths_html, plain_html
from mirblab.display.table import frame_html
from mirblab.display.text import escape_html

if TYPE_CHECKING:
    from IPython.display import HTML
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_MOST_ROWS = 200  # of the numbers beside a figure

# Okabe and Ito's palette without its yellow, which vanishes on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#6E6E6E"
_DPI = 200
_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">", "p")
# In this order systems get colours, then the next marker, so that no two of them look alike; append only.
_KNOWN = (
    "bm25", "minilm", "bm25+minilm", "bm25>maxsim", "minilm>maxsim", "bm25-okapi", "bm25-mirb",
    "gte-large-en-v1.5", "uae-large-v1", "bge-large-en-v1.5", "gte-qwen2-1.5b-instruct", "e5-mistral-7b-instruct",
    "nv-embed-v2", "gte-qwen2-7b-instruct", "sfr-embedding-2_r", "gritlm-7b", "cohere-embed-english-v3.0",
    "text-embedding-3-large", "voyage-3-large", "structure", "ngram", "structure+minilm", "structure+minilm+bm25",
    "approach0", "structure+bm25", "minilm-late", "chargrams", "minilm-math", "static-math",
)  # fmt: skip
_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.facecolor": "white",
    "axes.grid": True,
    "axes.labelcolor": "black",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "savefig.facecolor": "white",
    "savefig.transparent": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "mirblab",
    "text.color": "black",
    "text.parse_math": False,
    "xtick.color": "black",
    "ytick.color": "black",
}


def save_figure(
    drawn: Figure | Axes | Sequence[Axes],
    folder: str | Path,
    name: str,
    *,
    provenance: Mapping[str, Any],
    caption: str,
    alt: str,
    table: pd.DataFrame | None = None,
) -> HTML:
    """Write `<name>.pdf`, `.png` (200 dpi), `.svg`, `.json` (provenance, caption, alt) and `.csv` (*table*), close.

    Return the picture for display, with its caption, its alt text and its numbers to unfold. The same drawing gives
    the same bytes; each file appears whole or not at all. In a folder that cannot be written nothing is stored, and
    a line says so. Raises MirblabError without caption, alt text or table.

    >>> import tempfile
    >>> import mirblab as lab
    >>> counts = pd.DataFrame({"term": ["a", "b"], "count": [1, 2]})
    >>> folder = Path(tempfile.mkdtemp())
    >>> about = {"provenance": {}, "caption": "Counts.", "alt": "Two bars.", "table": counts}
    >>> _ = save_figure(lab.plots.bars(counts), folder, "counts", **about)
    >>> sorted(path.suffix for path in folder.iterdir())
    ['.csv', '.json', '.pdf', '.png', '.svg']
    """
    for what, text in (("caption", caption), ("alt text", alt)):
        if not text.strip():
            raise MirblabError(f"figure {name} has no {what}; say what it shows")
    if table is None:
        raise MirblabError(f"figure {name} has no table; give the numbers that it shows as table=")
    figure, folder = figure_of(drawn), Path(folder)
    record = {"name": name, "caption": caption, "alt": alt, "provenance": dict(provenance)}
    text = {"json": json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False, default=str) + "\n"}
    text["csv"] = table.to_csv(index=not isinstance(table.index, pd.RangeIndex), lineterminator="\n")
    with _closing_figure(figure):
        pictures = {suffix: _picture_bytes(figure, suffix, name, alt) for suffix in ("pdf", "png", "svg")}
    files = pictures | {suffix: part.encode() for suffix, part in text.items()}
    for suffix, content in files.items():
        paths.try_to_store("figures", paths.write_bytes, folder / f"{name}.{suffix}", content, full_is_error=True)
    return figure_html(pictures["png"], _DPI, alt, caption, table, f"are in {name}.csv")


def show_figure(
    drawn: Figure | Axes | Sequence[Axes], alt: str, caption: str, *, table: pd.DataFrame | None = None
) -> HTML:
    """Return the picture as HTML with its alt text, a visible caption and its numbers to unfold; close the figure.

    JupyterLab drops the alt text of a displayed figure, but keeps that of an `<img>`. *table* None: no numbers.

    >>> import mirblab as lab
    >>> counts = pd.DataFrame({"term": ["a", "b"], "count": [1, 2]})
    >>> 'alt="Two bars."' in show_figure(lab.plots.bars(counts), "Two bars.", "Counts.").data
    True
    """
    figure = figure_of(drawn)
    with _closing_figure(figure):
        png = _picture_bytes(figure, "png", "", alt)
    return figure_html(png, _DPI, alt, caption, table, "are in the table that was drawn")


@contextmanager
def _closing_figure(figure: Figure) -> Iterator[None]:
    import matplotlib.pyplot as plt

    try:
        yield
    finally:
        plt.close(figure)


def _picture_bytes(figure: Figure, suffix: str, name: str, alt: str) -> bytes:
    """Return the figure as a file's bytes; no date goes in, so that equal figures have equal bytes."""
    metadata = {
        "pdf": {"CreationDate": None, "Title": name, "Subject": alt},
        "png": {"Software": None, "Title": name, "Description": alt},
        "svg": {"Date": None, "Title": name, "Description": alt},
    }
    buffer = io.BytesIO()
    with figure_style():
        figure.savefig(buffer, format=suffix, dpi=_DPI, bbox_inches="tight", metadata=metadata[suffix])
    return buffer.getvalue()


def figure_style() -> AbstractContextManager[None]:
    """Return the context in which every figure is drawn and written.

    White opaque ground (readable in a dark theme), embedded TrueType fonts (type 42), and `$` as a plain character.

    >>> import matplotlib.pyplot as plt
    >>> with figure_style():
    ...     plt.rcParams["pdf.fonttype"]
    42
    """
    import matplotlib

    return matplotlib.rc_context(_STYLE)


def system_style(system: str) -> tuple[str, str]:
    """Return the colour and marker of a *system*, the same in every figure, from its name alone.

    Known systems never share both; other names are spread over what is left by their checksum.

    >>> system_style("bm25")
    ('#0072B2', 'o')
    >>> system_style("bm25") == system_style("BM25") != system_style("minilm")
    True
    """
    name = str(system).lower()
    if name in _KNOWN:
        place, first = _KNOWN.index(name), 0
    else:
        place, first = zlib.crc32(name.encode()), 3
    marker = place // len(PALETTE) % (len(_MARKERS) - first)
    return PALETTE[place % len(PALETTE)], _MARKERS[first + marker]


def figure_html(png: bytes, dpi: int, alt: str, caption: str, table: pd.DataFrame | None, rest: str) -> HTML:
    """Return a picture of *dpi* dots an inch at its own size, and the first 200 rows of *table* (None: no numbers).

    Formulas of the caption stand between dollars. *rest* says where all rows are. JupyterLab drops the alt text of
    other outputs, but keeps that of an `<img>`.
    """
    from IPython.display import HTML

    width = int.from_bytes(png[16:20], "big") / (dpi / 100)  # in the header; the margins were cut off
    source = base64.b64encode(png).decode()
    shown = "" if table is None else frame_html(table, most=_MOST_ROWS, rest=rest)
    numbers = f"<details><summary>The numbers</summary>{shown}</details>" if shown else ""
    said = maths_html(caption) if "$" in caption else plain_html(caption)
    return HTML(
        f'<figure style="margin: 0"><img alt="{escape_html(alt)}" style="max-width: 100%; width: {width:.0f}px" '
        f'src="data:image/png;base64,{source}"><figcaption>{said}</figcaption>{numbers}</figure>'
    )


def draw_styled(size: Callable[[pd.DataFrame], tuple[float, float]]) -> Callable[[Callable], Callable]:
    """Return a decorator: draw in the house style, on new axes of *size(table)* inches when none are given.

    For an empty table the axes say that there is nothing to show.
    """

    def decorate(draw: Callable) -> Callable:
        @functools.wraps(draw)
        def drawn(table: pd.DataFrame, *, ax: Axes | None = None, **options: Any) -> Axes:
            import matplotlib.pyplot as plt

            with figure_style():
                ax = plt.subplots(figsize=size(table) if table.size else (6.4, 1.2))[1] if ax is None else ax
                return draw(table, ax=ax, **options) if table.size else _draw_empty(ax)

        return drawn

    return decorate


def _draw_empty(ax: Axes) -> Axes:
    ax.set_axis_off()
    ax.text(0.5, 0.5, "Nothing to show: the table is empty.", ha="center", va="center", transform=ax.transAxes)
    return ax


def panel_axes(
    ax: Axes | Sequence[Axes] | None, n: int, what: str, wide: int, size: tuple[float, float], share: bool = True
) -> list[Axes]:
    """Return *n* axes, one for each of *what*: those given, else new ones on a page, *wide* in a row.

    *size* is the width of the page and the height of a row, in inches; *share* says whether they share the vertical
    axis. MirblabError for another number of axes.
    """
    import matplotlib.pyplot as plt

    if ax is not None:
        axes = [ax] if hasattr(ax, "plot") else list(ax)
        if len(axes) != n:
            raise MirblabError(f"{n} {what} need as many axes, found {len(axes)}")
        return axes
    high = -(-n // wide)
    with figure_style():
        page = (size[0], size[1] * high)
        grid = plt.subplots(high, wide, figsize=page, sharey=share, squeeze=False, layout="constrained")[1]
    for unused in grid.flat[n:]:
        unused.remove()
    return list(grid.flat[:n])


def figure_of(drawn: Figure | Axes | Sequence[Axes]) -> Figure:
    """Return the figure of *drawn*: a figure, an axes, or several axes of one figure."""
    if hasattr(drawn, "savefig"):
        return drawn
    return (drawn if hasattr(drawn, "get_figure") else next(iter(drawn))).get_figure()


def legend_beside(ax: Axes, **options: Any) -> None:
    """Put the legend at the right of the axes, where it hides nothing."""
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0, **options)


def shorten_label(label: str, longest: int) -> str:
    """Return a label of at most *longest* characters, the last a mark where something is missing.

    >>> shorten_label("bezout", 6), shorten_label("pythagoras", 6)
    ('bezout', 'pytha…')
    """
    return label if len(label) <= longest else f"{label[: longest - 1]}…"


def value_axis_label(measure: str) -> str:
    """Return the label of an axis of values.

    >>> value_axis_label("RR")
    'RR, 0 to 1, higher is better'
    """
    return f"{measure}, 0 to 1, higher is better"


def require_columns(table: pd.DataFrame, *columns: str) -> None:
    """Raise MirblabError with a suggestion for the first of *columns* that *table* lacks."""
    for column in columns:
        if column not in table:
            raise unknown("column", column, [str(name) for name in table.columns])
