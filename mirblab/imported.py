"""imported: runs and values that others made, in tables and figures: how they are marked, and what is said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab import averages
from mirblab.errors import MirblabError
from mirblab.runs import SIGN
from mirblab.signs import signed
from mirblab.typeset import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def is_mean(values: pd.DataFrame) -> pd.Series:
    """Return which values stand for no query: means that were imported, bool (n_values,).

    >>> is_mean(pd.DataFrame({"query_id": ["q1", ""]})).tolist()
    [False, True]
    """
    return values.query_id == ""


def mask(values: pd.DataFrame, measures: Sequence[str], key: str) -> pd.DataFrame | None:
    """Return 1 where a cell, systems × *key*, has imported values, 0 where it has others; None when none has.

    Imported is what has an `origin` or no query. Raises MirblabError for a cell that mixes an imported mean with
    other values of the same system, since nobody could say what their mean is.
    """
    found = values[values.measure.isin(measures)]
    flags = is_mean(found) | (found.origin.fillna("") != "" if "origin" in found else False)
    if not flags.any():
        return None
    cells = [found[name].astype(str) for name in ("system", "collection", "measure")]
    mixed = pd.DataFrame({"means": is_mean(found), "rows": 1}).groupby(cells).sum()
    mixed = mixed[(mixed.means > 0) & (mixed.rows > 1)]
    if len(mixed):
        system, collection, measure = mixed.index[0]
        raise MirblabError(
            f"'{system}' has an imported mean of {measure} on {collection} and other values beside it; import it under "
            "another system's name, or leave one of them out"
        )
    return averages.means(found.assign(value=flags.astype(np.float64)), measures, key)


def add_signs(shown: Table, mask: pd.DataFrame, origins: dict[str, str]) -> None:
    """Mark the cells of *shown* that hold imported values, or averages over some, with § and say where from.

    *mask* has columns of *shown*; *origins* the origin of each system.
    """
    cells = mask.reindex(index=shown.frame.index, columns=shown.frame.columns).fillna(0.0) > 0
    signs = np.where(cells, SIGN, "")
    shown.signs = pd.DataFrame(signs, index=shown.frame.index, columns=shown.frame.columns)
    named = [f"{system}: {origins[system]}" for system in shown.frame.index[cells.any(axis=1)] if origins.get(system)]
    shown.notes.append(
        f"{SIGN} imported: a run or a value of others{'; origin: ' if named else ''}{'; '.join(named)}. A mean that "
        "was imported has no values per query, so that it is in no test."
    )


def note(texts: Sequence[str], others: Mapping[str, str]) -> str:
    """Return whose the systems of *others* are that the *texts* name, or "" when they name none.

    >>> note(["theirs", "bm25"], {"theirs": "A. Author"})
    '§ not made here: theirs: A. Author.'
    """
    named = [f"{name}: {origin}" for name, origin in others.items()
             if any(signed(text, {name: ""}) != text for text in texts)]  # fmt: skip
    return f"{SIGN} not made here: {'; '.join(named)}." if named else ""


def sign_table(shown: Table, others: Mapping[str, str]) -> Table:
    """Return a table that marks the names of *others*' systems and says whose they are.

    They are marked in the caption, the heads and the names of rows, and where one is a whole cell; not in the CSV. A
    table whose cells are marked already is returned as it is.
    """
    labels = [part for label in (*shown.frame.index, *shown.frame.columns)
              for part in (label if isinstance(label, tuple) else (label,))]  # fmt: skip
    cells = [cell for cell in shown.frame.to_numpy().flat if isinstance(cell, str) and cell in others]
    said = note([shown.caption, *map(str, labels), *cells], others)
    if not said or SIGN in "".join(map(str, shown.signs.to_numpy().flat)):
        return shown
    caption = signed(shown.caption, others)
    return replace(shown, caption=caption, notes=[*shown.notes, said], others=frozenset(others))


def sign_figure(figure: Figure, caption: str, alt: str, others: Mapping[str, str]) -> tuple[str, str]:
    """Mark the names of *others*' systems in everything that a figure says; return its caption and alternative text.

    These bear the mark, too, and the caption ends with whose the systems are that the figure names.
    """
    from matplotlib.text import Text
    from matplotlib.ticker import FuncFormatter

    texts = [caption, *(text.get_text() for text in figure.findobj(Text))]
    for text in figure.findobj(Text):
        text.set_text(signed(text.get_text(), others))
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        labels = [label.get_text() for label in axis.get_majorticklabels()]
        if any(signed(label, others) != label for label in labels):  # a label of a tick is made anew when it is drawn
            axis.set_major_formatter(FuncFormatter(_signing(axis.get_major_formatter(), others)))
            texts += labels
    said = note(texts, others)
    return (f"{signed(caption, others)} {said}", signed(alt, others)) if said else (caption, alt)


def _signing(formatter: Callable[..., str], others: Mapping[str, str]) -> Callable[..., str]:
    return lambda value, place=None: signed(formatter(value, place), others)


def origins(values: pd.DataFrame) -> dict[str, str]:
    """Return the origins of each system that has some, joined by "and".

    >>> origins(pd.DataFrame({"system": ["a", "b"], "origin": ["MTEB", None]}))
    {'a': 'MTEB'}
    """
    if "origin" not in values:
        return {}
    found = values[["system", "origin"]].astype("str").where(values.origin.notna()).dropna().drop_duplicates()
    found = found[found.origin != ""]
    return found.groupby("system", sort=False).origin.agg(" and ".join).to_dict()


def per_query(values: pd.DataFrame) -> pd.DataFrame:
    """Return the values that stand for a query, imported means left out."""
    return values[~is_mean(values)]
