"""books: notebooks as pages, executed where a batch has left an executed copy, without anything remote."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import nbformat
from markupsafe import Markup
from nbconvert import HTMLExporter
from nbconvert.filters import clean_html
from words import code, markdown, slug

from mirblab.core import paths
from mirblab.lessons.build import REMOVED

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_SHOWN = (
    "text/html",
    "image/svg+xml",
    "image/png",
    "image/jpeg",
    "text/markdown",
    "text/plain",
)  # no widgets: they need a kernel
_NOTE = (
    '<p class="note">This notebook is shown without outputs, because no executed copy was found. '
    "<code>mirblab batch mini</code> makes them, then build this site again.</p>"
)


def sources() -> list[Path]:
    """Return the notebooks, in order."""
    return sorted(paths.bundled_path("notebooks").glob("*.ipynb"))


def executed(source: Path) -> Path | None:
    """Return the newest executed copy of a notebook in any suite, or None."""
    folder = paths.figures() / "_executed"
    found = [*folder.glob(f"*/{source.stem}.ipynb"), *folder.glob(f"*/{source.stem}.*.ipynb")]
    whole = [path for path in found if path.is_file() and "partial" not in path.name]
    return max(whole, key=lambda path: path.stat().st_mtime, default=None)


def title(source: Path) -> str:
    """Return a notebook's first heading."""
    first = nbformat.read(source, as_version=4).cells[0].source.splitlines()[0]
    return first.lstrip("# ").strip()


def page(source: Path) -> str:
    """Return a notebook as HTML: its executed copy where there is one, else itself with a note."""
    found = executed(source)
    book = nbformat.read(found or source, as_version=4)
    book.cells = [cell for cell in book.cells if REMOVED not in cell.metadata.get("tags", [])]
    for cell in book.cells:
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if not _is_only_widget(output)]
    body, _ = _exporter().from_notebook_node(book)
    body = re.sub(r'(href="\d\d_\w+)\.ipynb"', r'\1.html"', _once(body))
    return body if found else body.replace("</h1>", f"</h1>{_NOTE}", 1)


def _is_only_widget(output: nbformat.NotebookNode) -> bool:
    """Return whether an output is nothing without a kernel."""
    data = output.get("data", {})
    return "application/vnd.jupyter.widget-view+json" in data and "text/html" not in data


@cache
def _exporter() -> HTMLExporter:
    # nbconvert replaces a filter of this name that is only registered.
    own = {"highlight_code": lambda text, metadata=None, **_: Markup(code(text, "python"))}
    made = HTMLExporter(template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True, filters=own)
    made.register_filter("markdown2html", _markdown)
    made.register_filter("clean_html", lambda html: html if isinstance(html, Markup) else clean_html(html))
    made.register_filter("ansi2html", lambda text: re.sub(r"[<>&]", lambda s: f"&#{ord(s[0])};", _ANSI.sub("", text)))
    made.config.NbConvertBase.display_data_priority = list(_SHOWN)
    return made


def _markdown(context: object, source: str = "", **_: object) -> str:
    return markdown(source if isinstance(context, dict) or source else str(context))


def _once(body: str) -> str:
    """Return the page with each heading's anchor used once: every cell was rendered by itself."""
    seen: dict[str, int] = {}

    def name(found: re.Match[str]) -> str:
        seen[found[2]] = seen.get(found[2], 0) + 1
        return f'{found[1]}{found[2]}{"" if seen[found[2]] == 1 else f"-{seen[found[2]]}"}"'

    return re.sub(r'(<h[1-6] id=")([^"]*)"', name, body)


def index() -> str:
    """Return the list of notebooks by whom they are for."""
    by_digit: dict[str, list[Path]] = {}
    for source in sources():
        by_digit.setdefault(source.stem[0], []).append(source)
    parts = ["<h1>Notebooks</h1><p>Each answers one question, which is its title.</p>"]
    for digit, name in AUDIENCE.items():
        if digit in by_digit:
            lines = [
                f'<li><a href="{one.stem}.html"><code>{one.stem}</code></a> {title(one)}</li>'
                for one in by_digit[digit]
            ]
            parts.append(f'<h2 id="{slug(name)}">{name}</h2><ul>{"".join(lines)}</ul>')
    return "".join(parts)


AUDIENCE = {
    "0": "Start and lessons",
    "1": "Tables, and what is behind them",
    "2": "Structure search, dense retrieval and fusion",
    "3": "Equivalence",
    "4": "ARQMath",
    "5": "Exploration",
}
