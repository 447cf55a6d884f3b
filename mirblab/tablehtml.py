"""tablehtml: a table as HTML, bare, and with a script that sorts and filters it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from numbers import Real
from typing import TYPE_CHECKING, Any

from mirblab.escape import Cell, html_cell, is_long, maths_html, plain_html
from mirblab.prose import escaped
from mirblab.tablescript import SCRIPT, STYLE

if TYPE_CHECKING:
    from mirblab.typeset import Table

MOST_ROWS = 500  # in a page
Row = tuple[str, list[Cell]]  # a name and its cells
_FEW = 10  # rows; above, a table can be filtered, and scrolls under its head
_CLASSES = "mirblab-table tex2jax_ignore mathjax_ignore"


def controlled(table: Table, *, most: int = MOST_ROWS, rest: str = "", has_names: bool = True) -> str:
    """Return a table that sorts by a click, or Enter, on a column's head, and filters when it has over ten rows.

    It is complete without its script, which knows no other table and needs nothing from elsewhere; colours are those
    of JupyterLab's theme, or of the page. Of more than *most* rows the first are here, and a sentence says how many
    are not and, by *rest*, where they are. *has_names* False: without the column of the rows' names.
    """
    n_rows = len(table.frame)
    label = escaped(" ".join(table.caption.split())) or "table"
    scrolls = f' role="region" tabindex="0" aria-label="{label}"' if n_rows > _FEW else ""
    rows = list(islice(table.rows(), most))
    body = element(table, rows, has_names=has_names, has_caption=False)
    n_long = len({place for _, cells in rows for place, cell in enumerate(cells) if is_long(cell)})
    box = f"mirblab-box mirblab-long-{min(n_long, 4)}"  # columns of long texts share the width
    notes = list(table.notes)
    if n_rows > most:
        notes.insert(0, f"The first {most:,} of {n_rows:,} rows stand here; the other {n_rows - most:,} {rest}.")
    return (
        f'<figure class="{_CLASSES}"><style>{STYLE}</style>\n'
        + (f"<figcaption>{_caption(table)}</figcaption>\n" if table.caption.strip() else "")
        + f'<div class="{box}"{scrolls}>\n{body}</div>\n'
        + "".join(f"<p>{plain_html(note)}</p>\n" for note in notes)
        + f"<script>{SCRIPT}</script></figure>\n"
    )


def element(
    table: Table, rows: Sequence[Row] | None = None, *, has_names: bool = True, has_caption: bool = True
) -> str:
    """Return the `<table>` alone with the first *rows* of its `rows()` (None: all), everything in it escaped."""
    shown = list(table.rows()) if rows is None else rows
    groups, names = table.header()
    numbers = table.is_number()
    caption = f"<caption>{_caption(table)}</caption>\n" if has_caption and table.caption.strip() else ""
    corner = _head(str(table.frame.index.name or ""), False) if has_names else ""
    top = "".join(f'<th scope="colgroup" colspan="{width}">{plain_html(group)}</th>' for group, width in groups)
    above = f"<tr>{'<td></td>' if has_names else ''}{top}</tr>\n" if groups else ""
    heads = "".join(map(_head, names, numbers))
    columns = [table.frame.iloc[: len(shown), column].tolist() for column in range(len(names))]
    lines = []
    for row, (name, cells) in enumerate(shown):
        values = (html_cell(cell, number(columns[place][row]), numbers[place]) for place, cell in enumerate(cells))
        first = f'<th scope="row">{plain_html(name)}</th>' if has_names else ""
        lines.append(f"<tr>{first}{''.join(values)}</tr>\n")
    return (
        f'<table class="dataframe">\n{caption}<thead>\n{above}<tr>{corner}{heads}</tr>\n</thead>\n'
        f"<tbody>\n{''.join(lines)}</tbody>\n</table>\n"
    )


def number(value: Any) -> str:
    """Return a number as it is sorted by, all its digits; "" for anything else and for what is missing.

    >>> number(0.1), number(True), number(float("nan")), number("7")
    ('0.1', '', '', '')
    """
    if isinstance(value, bool) or not isinstance(value, Real) or value != value:
        return ""
    return repr(float(value)).replace("inf", "Infinity")


def _caption(table: Table) -> str:
    return maths_html(table.caption) if table.maths else plain_html(table.caption)


def _head(name: str, is_number: bool) -> str:
    kind = ' class="mirblab-number"' if is_number else ""
    return f'<th scope="col"{kind}>{plain_html(name)}</th>'
