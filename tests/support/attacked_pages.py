"""Everything that shows what data say, as a page filled by an attack."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from mirblab.display import figures, result_tables, threads
from mirblab.display import formulas as display_formulas
from mirblab.display.plots import pages
from mirblab.display.table_formats import sortable_table
from mirblab.display.text import text_html
from mirblab.display.threads import thread_index, thread_page
from mirblab.formula.explain import explain_match
from mirblab.formula.index import Index
from mirblab.sources.stackexchange import threads as reader

INDEX = Index.build([("one", "x^2")])
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x10\x00\x00\x00\x10"


def held(attack: str) -> str:
    """Return an attack as a table of pandas can hold it, which is not half of a character."""
    return attack.encode("utf-8", "replace").decode()


def framed(attack: str) -> pd.DataFrame:
    """Return a table that an attack fills: names of rows and columns, a cell, and one with mathematics."""
    attack = held(attack)
    return pd.DataFrame({attack: [attack, 1], "maths": [attack, f"so ${attack}$"]}, index=[attack, attack * 2])


def table(attack: str) -> result_tables.Table:
    """Return a display table that an attack fills: captions, notes, groups, marks and what stands beside."""
    frame = framed(attack)
    shown = result_tables.table(frame, attack, notes=[attack], maths=["maths"])
    shown.marks = pd.DataFrame([["best", "second"]] * 2, frame.index, frame.columns)
    shown.signs = shown.beside = frame.astype(str)
    return shown


def thread(attack: str, render: Callable[[str, bool], str] | None = threads.render_mathml) -> str:
    """Return the page of a thread, and the index, all of whose parts are an attack."""
    said = [reader.Comment(text, 1, attack, "", attack) for text in (attack, f"math-container {attack}")]
    post = reader.Post(attack, attack, attack, [attack], 1, attack, "", attack, None, said)
    found = reader.Thread(post, [post], attack, [reader.Link(attack, "related", attack)], {attack: 3})
    return thread_page(found, render, []) + thread_index([found], render, attack)


def formulas(attack: str) -> str:
    """Return formulas that were found, and one pair of them, beside an attack in every other column."""
    rows = pd.DataFrame({"doc_id": [held(attack)], held(attack): [held(attack)], "formula": [held(attack)]})
    shown = display_formulas.formula_lists(attack, {attack: rows}, title=attack).data
    why = explain_match(held(attack)[:80], held(attack)[:80], INDEX)
    return shown + display_formulas.formula_pair(why, attack, attack, title=attack).data


def text(attack: str) -> str:
    """Return prose, whole, cut, and marked in the midst of the attack."""
    marked = [(0, len(attack) // 2, 0.5), (1, 3, 1.0)]
    return text_html(attack) + text_html(f"so ${attack}$ and", marked) + text_html(attack, longest=20)


def points(attack: str) -> str:
    """Return a map of statements."""
    attack = held(attack)
    rows = pd.DataFrame({
        "id": ["a", "b"], "class_id": attack, "field": ["f", attack], "kind": "pair",
        "text": [attack, f"so ${attack}$"],
        "x": [0.0, 1.0], "y": [0.0, 1.0], "seed": 0,
    })  # fmt: skip
    return pages.map_page_html(rows, attack, attack)


def figure(attack: str) -> str:
    return figures.figure_html(PNG, 200, attack, attack, framed(attack), attack).data


PLACES = {
    "table": lambda attack: table(attack).to_html(), "table in a notebook": lambda attack: table(attack)._repr_html_(),
    "browsed": lambda attack: sortable_table(framed(attack), maths=["maths"], caption=attack).data,
    "formulas": formulas, "prose": text, "figure": figure,
}  # fmt: skip
