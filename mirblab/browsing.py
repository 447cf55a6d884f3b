"""browsing: any table of data as one that sorts, filters and shows its formulas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd

from mirblab import tablehtml
from mirblab.errors import unknown
from mirblab.typeset import Table

if TYPE_CHECKING:
    from IPython.display import HTML

_REST = "are in the data, which to_csv() writes whole"


def browse(frame: pd.DataFrame, *, maths: Iterable[str] = (), caption: str = "") -> HTML:
    r"""Return *frame* for display: a click, or Enter, on a column's head sorts, a field filters, formulas are rendered.

    A second click sorts downwards, a third restores the order. The field, above tables of more than ten rows, keeps
    rows that have all its words, capitals and accents aside, also in the LaTeX of formulas. *maths* names the columns
    whose texts hold formulas; elsewhere a dollar is a dollar. At most 500 rows are shown; a sentence says how many are
    not. Names of rows are shown unless they only count. Raises MirblabError for a name in *maths* that is no column.

    >>> shown = browse(pd.DataFrame({"text": ["Is $x<y$?"], "price": ["$5"]}), maths=["text"]).data
    >>> "<mo>&lt;</mo>" in shown, ">$5</span>" in shown
    (True, True)
    """
    from IPython.display import HTML

    return HTML(html(frame, maths=maths, caption=caption))


def html(
    frame: pd.DataFrame,
    *,
    maths: Iterable[str] = (),
    caption: str = "",
    most: int = tablehtml.MOST_ROWS,
    rest: str = _REST,
) -> str:
    """Return what `browse` shows, at most the first *most* rows; *rest* says where the others are."""
    chosen = frozenset(maths)
    for name in chosen - set(_names(frame)):
        raise unknown("column", name, _names(frame))
    has_names = not isinstance(frame.index, pd.RangeIndex)
    if frame.index.nlevels > 1:
        frame, has_names = frame.reset_index(), False
    formats = {name: _format(frame.iloc[:, place]) for place, name in enumerate(_names(frame))}
    table = Table(frame, caption, formats=formats, maths=chosen)
    return tablehtml.controlled(table, most=most, rest=rest, has_names=has_names)


def _names(frame: pd.DataFrame) -> list[str]:
    return [str(name[-1] if isinstance(name, tuple) else name) for name in frame.columns]


def _format(column: pd.Series) -> str:
    """Return how the numbers of a column are written: with as many digits as its largest needs, "" for no floats.

    >>> _format(pd.Series([0.5, 120.25])), _format(pd.Series([1e-7])), _format(pd.Series([2.0, 3.0]))
    (',.2f', '.2e', ',.0f')
    """
    if not pd.api.types.is_float_dtype(column):
        return ""
    numbers = column[column.abs() < float("inf")].abs()
    if not len(numbers) or (numbers % 1 == 0).all():
        return ",.0f"
    largest = float(numbers.max())
    return ".2e" if largest < 1e-3 else ",.4f" if largest < 10 else ",.2f"
