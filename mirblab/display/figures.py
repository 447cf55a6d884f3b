"""figures: the style of figures, and how they are saved."""

from __future__ import annotations

import base64
import functools
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pandas as pd
from pandas.api.types import is_integer_dtype

from mirblab.core import atomic_files
from mirblab.core.errors import MirblabError, check_known
from mirblab.display.escape import maths_html, plain_html
from mirblab.display.table_formats import frame_html
from mirblab.display.text import escape_html
from mirblab.evaluation.measures import is_judged_share, is_rank

if TYPE_CHECKING:
    from IPython.display import HTML
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox
    from matplotlib.typing import RcKeyType


_MOST_ROWS = 200  # of the numbers beside a figure

# Okabe and Ito's palette without its yellow, which vanishes on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MORE_COLOURS = ("#882255", "#999933", "#332288", "#661100")  # Tol's, where a figure has more systems than the palette
GREY = "#6E6E6E"
_DPI = 200
NEW_AXES: Any = None  # the default of a plot's *ax*: `draw_styled` makes new axes
PlotFunction = TypeVar("PlotFunction", bound=Callable[..., "Axes"])
_MARKERS = ("o", "s", "D", "^", "v", "P", "d", "<", ">", "p")  # no "X": small, it looks like two diamonds
_OWN_MARKERS = {"ngram": ">"}  # its turn is at "o", the marker of bm25, with which it is drawn
_OWN_COLOURS = {"chargrams": _MORE_COLOURS[0]}  # its turn is at the colour of structure, with which it is drawn
# Systems get colours and markers in this order, the next of each, so that no two look alike; append only.
_KNOWN = (
    "bm25", "minilm", "bm25+minilm", "bm25>maxsim", "minilm>maxsim", "bm25-okapi", "bm25-mirb",
    "gte-large-en-v1.5", "uae-large-v1", "bge-large-en-v1.5", "gte-qwen2-1.5b-instruct", "e5-mistral-7b-instruct",
    "nv-embed-v2", "gte-qwen2-7b-instruct", "sfr-embedding-2_r", "gritlm-7b", "cohere-embed-english-v3.0",
    "text-embedding-3-large", "voyage-3-large", "structure", "ngram", "structure+minilm", "structure+minilm+bm25",
    "approach0", "structure+bm25", "minilm-late", "chargrams", "minilm-math", "static-math",
    "gte-large-en-v1.5-mirb", "bm25~rm3", "minilm~rocchio", "bm25q", "minilm-qa", "hybrid",
)  # fmt: skip
_STYLE: dict[RcKeyType, Any] = {
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
    """Write `<name>.pdf`, `.png` (200 dpi), `.svg`, `.json` (provenance, caption, alt) and `.csv` (*table*).

    Close the figure and return it with caption, alt text and numbers as HTML. Equal drawings give equal bytes; each
    file is written completely or not at all, and none to a folder that cannot be written. Raises MirblabError without
    caption, alt text or table.

    >>> import tempfile
    >>> import mirblab as lab
    >>> counts, folder = pd.DataFrame({"term": ["a", "b"], "count": [1, 2]}), Path(tempfile.mkdtemp())
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
    if table.index.names == [None] and is_integer_dtype(table.index):  # numbers of rows that a selection has left
        table = table.reset_index(drop=True)
    figure, folder = figure_of(drawn), Path(folder)
    record = {"name": name, "caption": caption, "alt": alt, "provenance": dict(provenance)}
    texts = {
        "json": json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False, default=str) + "\n",
        "csv": table.to_csv(index=not isinstance(table.index, pd.RangeIndex), lineterminator="\n"),
    }
    with _closing_figure(figure):
        area = _lay_out(figure)
        pictures = {suffix: _picture_bytes(figure, suffix, area, name, alt) for suffix in ("pdf", "png", "svg")}
    files = pictures | {suffix: text.encode() for suffix, text in texts.items()}
    for suffix, content in files.items():
        atomic_files.try_to_store(
            "figures", atomic_files.write_bytes, folder / f"{name}.{suffix}", content, full_is_error=True
        )
    return figure_html(pictures["png"], _DPI, alt, caption, table, f"are in {name}.csv")


def show_figure(
    drawn: Figure | Axes | Sequence[Axes], alt: str, caption: str, *, table: pd.DataFrame | None = None
) -> HTML:
    """Return the picture as HTML with alt text, caption and the numbers of *table* (None: none); close the figure.

    JupyterLab drops the alt text of other outputs, but keeps that of an `<img>`.

    >>> import mirblab as lab
    >>> counts = pd.DataFrame({"term": ["a", "b"], "count": [1, 2]})
    >>> 'alt="Two bars."' in show_figure(lab.plots.bars(counts), "Two bars.", "Counts.").data
    True
    """
    figure = figure_of(drawn)
    with _closing_figure(figure):
        png = _picture_bytes(figure, "png", _lay_out(figure), "", alt)
    return figure_html(png, _DPI, alt, caption, table, "are in the table that was drawn")


@contextmanager
def _closing_figure(figure: Figure) -> Iterator[None]:
    import matplotlib.pyplot as plt

    try:
        yield
    finally:
        plt.close(figure)


def _lay_out(figure: Figure) -> Bbox:
    """Place the figure's parts for good, and return the part of it that is drawn on, with a margin, in inches.

    savefig would do both again for each format, which takes as long as drawing.
    """
    import matplotlib.pyplot as plt

    with figure_style():
        figure.set_dpi(_DPI)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        return figure.get_tightbbox().padded(plt.rcParams["savefig.pad_inches"])


def _picture_bytes(figure: Figure, suffix: str, area: Bbox, name: str, alt: str) -> bytes:
    """Return the *area* of the figure as a file's bytes, without a date, so that equal figures have equal bytes."""
    metadata = {
        "pdf": {"CreationDate": None, "Title": name, "Subject": alt},
        "png": {"Software": None, "Title": name, "Description": alt},
        "svg": {"Date": None, "Title": name, "Description": alt},
    }
    buffer = io.BytesIO()
    with figure_style():
        figure.savefig(buffer, format=suffix, dpi=_DPI, bbox_inches=area, metadata=metadata[suffix])
    return buffer.getvalue()


@contextmanager
def figure_style() -> Iterator[None]:
    """Enter the context in which every figure is drawn: opaque white, TrueType fonts, `$` as a plain character.

    >>> import matplotlib.pyplot as plt
    >>> with figure_style():
    ...     plt.rcParams["pdf.fonttype"]
    42
    """
    import matplotlib

    # Not rc_context, which restores everything: a notebook's first figure makes it interactive, and it has to stay so.
    before = {name: matplotlib.rcParams[name] for name in _STYLE}
    matplotlib.rcParams.update(_STYLE)
    try:
        yield
    finally:
        matplotlib.rcParams.update(before)


def system_style(system: str) -> tuple[str, str]:
    """Return the colour and marker of a *system*, the same in every figure; no two known systems share both.

    >>> system_style("bm25")
    ('#0072B2', 'o')
    """
    name = str(system).lower()
    place = _KNOWN.index(name) if name in _KNOWN else zlib.crc32(name.encode())
    colour = _OWN_COLOURS.get(name, PALETTE[place % len(PALETTE)])
    return colour, _OWN_MARKERS.get(name, _MARKERS[place % len(_MARKERS)])


def figure_styles(names: Iterable[object]) -> dict[str, tuple[str, str]]:
    """Return the colour and marker of each system of one figure; no two of up to eleven share a colour, and none both.

    They are those of `system_style`. Where two systems have the same colour, the one that mirblab has known longer, or
    that is named first, keeps it, and the other takes the next colour, of the palette and then of four more, that no
    system of the figure has. Without such a colour it keeps its own, with a marker that differs.

    >>> figure_styles(["bm25", "minilm", "structure+minilm+bm25"])["structure+minilm+bm25"] == (PALETTE[2], "D")
    True
    """
    ages = {name: place for place, name in enumerate(_KNOWN)}
    ordered = sorted(dict.fromkeys(map(str, names)), key=lambda name: ages.get(name.lower(), len(_KNOWN)))
    own, taken = {name: system_style(name) for name in ordered}, dict[str, str]()
    for name, (colour, _) in own.items():
        taken.setdefault(colour, name)
    free = [colour for colour in (*PALETTE, *_MORE_COLOURS) if colour not in taken]
    styles: dict[str, tuple[str, str]] = {}
    for name, (colour, marker) in own.items():
        is_shared = taken[colour] != name
        colour = free.pop(0) if is_shared and free else colour
        others = (other for other in (marker, *_MARKERS) if (colour, other) not in styles.values())
        styles[name] = colour, next(others, marker)
    return styles


def figure_html(png: bytes, dpi: int, alt: str, caption: str, table: pd.DataFrame | None, rest: str) -> HTML:
    """Return a PNG as an HTML figure with the first 200 rows of *table*; *rest* says where all rows are."""
    from IPython.display import HTML

    width = int.from_bytes(png[16:20], "big") / (dpi / 100)  # in the header; the margins were cut off
    source = base64.b64encode(png).decode()
    shown = "" if table is None else frame_html(table, most=_MOST_ROWS, rest=rest)
    numbers = f"<details><summary>The numbers</summary>{shown}</details>" if shown else ""
    caption_html = maths_html(caption) if "$" in caption else plain_html(caption)
    return HTML(
        f'<figure style="margin: 0"><img alt="{escape_html(alt)}" style="max-width: 100%; width: {width:.0f}px" '
        f'src="data:image/png;base64,{source}"><figcaption>{caption_html}</figcaption>{numbers}</figure>'
    )


def draw_styled(size: Callable[[pd.DataFrame], tuple[float, float]]) -> Callable[[PlotFunction], PlotFunction]:
    """Return a decorator that draws in the house style, by default on new axes of *size(table)* inches."""

    def decorate(draw: PlotFunction) -> PlotFunction:
        @functools.wraps(draw)
        def styled(table: pd.DataFrame, *, ax: Axes | None = None, **options: Any) -> Axes:
            import matplotlib.pyplot as plt

            with figure_style():
                ax = plt.subplots(figsize=size(table) if table.size else (6.4, 1.2))[1] if ax is None else ax
                return draw(table, ax=ax, **options) if table.size else _draw_empty(ax)

        return cast("PlotFunction", styled)

    return decorate


def _draw_empty(ax: Axes) -> Axes:
    ax.set_axis_off()
    ax.text(0.5, 0.5, "Nothing to show: the table is empty.", ha="center", va="center", transform=ax.transAxes)
    return ax


def draw_empty_panels(ax: Axes | Sequence[Axes] | None) -> list[Axes]:
    """Return the given axes, else a new one, without a frame, each with a sentence which says that the table is empty.

    >>> draw_empty_panels(None)[0].texts[0].get_text()
    'Nothing to show: the table is empty.'
    """
    from matplotlib.axes import Axes

    given = [ax] if isinstance(ax, Axes) else list(ax or panel_axes(None, 1, "panels", 1, (6.4, 1.2)))
    with figure_style():
        return [_draw_empty(panel) for panel in given]


def panel_axes(
    ax: Axes | Sequence[Axes] | None, n: int, what: str, wide: int, size: tuple[float, float], share: bool = True
) -> list[Axes]:
    """Return *n* axes: the given ones, else new ones, *wide* in a row; *size*: page width and row height in inches."""
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

    if ax is not None:
        axes = [ax] if isinstance(ax, Axes) else list(ax)
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
    """Return the figure that a plot was drawn on."""
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    if isinstance(drawn, Figure):
        return drawn
    axes = drawn if isinstance(drawn, Axes) else next(iter(drawn))
    return axes.figure.get_figure(root=True)


def legend_beside(ax: Axes, **options: Any) -> None:
    """Put the legend at the right of the axes, where it hides nothing."""
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0, **options)


def value_axis_label(measure: str, low: float = 0.0, high: float = 1.0) -> str:
    """Return the label of an axis of values from 0 to 1, or of ranks; it says so where it shows *low* to *high* only.

    >>> value_axis_label("RR"), value_axis_label("RR", 0, 0.054)
    ('RR, 0 to 1, higher is better', 'RR, 0 to 1 (axis: 0 to 0.054), higher is better')
    """
    if is_rank(measure):
        return f"{measure}, from 1, lower is better"
    part = f" (axis: {max(low, 0.0):.3g} to {min(high, 1.0):.3g})" if low > 0 or high < 1 else ""
    return f"{measure}, 0 to 1{part}{'' if is_judged_share(measure) else ', higher is better'}"


def require_columns(table: pd.DataFrame, *columns: str) -> None:
    """Raise MirblabError with a suggestion for the first of *columns* that *table* lacks."""
    check_known("column", columns, map(str, table.columns))
