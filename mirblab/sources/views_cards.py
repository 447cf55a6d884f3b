"""views_cards: the Lean declarations of the bundled cards as a small table of views."""

from __future__ import annotations

from mirblab.sources.cards import Card
from mirblab.sources.shape import Row
from mirblab.sources.views_rows import COLUMNS, VIEWS, drawn

# Where Mathlib keeps the mathematics of a field, for fields that do not have the name of a part of Mathlib.
COMPONENTS = {
    "commutative algebra": "RingTheory",
    "complex analysis": "Analysis",
    "convex geometry": "Analysis",
    "differential equations": "Analysis",
    "differential geometry": "Geometry",
    "fourier analysis": "Analysis",
    "functional analysis": "Analysis",
    "graph theory": "Combinatorics",
    "homological algebra": "Algebra",
    "numerical analysis": "Analysis",
    "optimisation": "Analysis",
    "order theory": "Order",
    "probability theory": "Probability",
}


def views(found: list[Card]) -> list[Row]:
    """Return the declarations of the cards as a table of views, sorted by id; about half are for training.

    >>> from mirblab.sources.cards import cards
    >>> views(cards())[0]["module"]
    'Mathlib.GroupTheory.Basic'
    """
    rows = [_declaration(card["lean"], card["field"]) for card in found]
    return sorted(rows, key=lambda row: row["id"])


def _declaration(lean: Row, field: str) -> Row:
    name, own = lean["name"], "".join(word.capitalize() for word in field.split())
    part = COMPONENTS.get(field, own)
    row = {"id": name, "module": f"Mathlib.{part}.{'Basic' if part == own else own}", "split": drawn(name, (50, 10))}
    row |= {key: lean[key].strip() for key in ("kind", *VIEWS)}
    return {column: row[column] for column in COLUMNS}
