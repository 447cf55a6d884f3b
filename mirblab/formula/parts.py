"""parts: some formulas to their trees, tokens and a small segment."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mirblab.formula.forest import Labels, plant
from mirblab.formula.latex import parse
from mirblab.formula.operators import operator_tree
from mirblab.formula.segments import Segment, save, segment
from mirblab.formula.tokens import Tokens, counted, operations, together, tokens
from mirblab.formula.tree import Tree


def trees(formulas: Iterable[str | Tree]) -> list[Tree]:
    """Return the layout trees of formulas, LaTeX or trees already.

    >>> trees(["x^2"])[0].labels
    ['V!x', 'N!2']
    """
    return [formula if isinstance(formula, Tree) else parse(formula) for formula in formulas]


def read(layouts: list[Tree], labels: Labels | None = None) -> Tokens:
    """Return all tokens of layout trees, those of their operations too; *labels* remembers those of earlier ones."""
    return together(tokens(plant(layouts, labels)), operations(plant(map(operator_tree, layouts), labels)))


def part(formulas: list[str | Tree], labels: Labels, place: Path | None) -> Segment:
    """Return the segment of a few formulas, in the folder *place* or (None) in memory."""
    found = segment(len(formulas), counted(read(trees(formulas), labels)))
    return found if place is None else save(found, place)
