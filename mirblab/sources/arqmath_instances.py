"""arqmath_instances: every formula of an ARQMath release where it stands, in LaTeX or MathML, and its visual id."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple

from mirblab.errors import MirblabError
from mirblab.sources import arqmath_files, arqmath_formulas
from mirblab.sources import arqmath_texts as texts
from mirblab.sources.arqmath_formulas import Formula
from mirblab.sources.dump import Odd


class Instance(NamedTuple):
    """One formula in one post: `markup` is LaTeX without entities and line marks, or MathML as it stands."""

    formula_id: str
    post_id: str
    visual_id: str
    type: str
    markup: str


def read(origin: str | Path, representation: str = "latex", odd: Odd | None = None) -> Iterator[Instance]:
    """Yield the formulas of a release in one representation, as the files have them: latex, slt or opt.

    "slt" is LaTeXML's Presentation MathML and "opt" its Content MathML; what LaTeXML could not convert has no row,
    or MathML with its error markup. `type` is title, question, answer or comment. One row is in memory at a time.
    Broken rows are noted in *odd*. Raises MirblabError and FileNotFoundError as `arqmath_files.formulas` and
    `arqmath_formulas.rows` do.
    """
    is_latex = representation == "latex"
    paths = arqmath_files.formulas(origin, representation)
    for row in map(Formula._make, arqmath_formulas.rows(paths, Odd() if odd is None else odd)):
        markup = texts.of_latex(row.formula).text if is_latex else row.formula
        yield Instance(row.id, row.post_id, row.visual_id, row.type, markup)


def visual_ids(origin: str | Path, wanted: Container[str] | None = None) -> dict[str, str]:
    """Return visual id by formula id, for the formulas that are *wanted* (None: all, 28 million in the release).

    The files with LaTeX are read, since only they have all formulas. MirblabError when none of the wanted is there.
    """
    paths = arqmath_files.formulas(origin)
    rows = arqmath_formulas.rows(paths, Odd())
    found = {row[0]: row[4] for row in rows if wanted is None or row[0] in wanted}
    if not found:
        raise MirblabError(f"{paths[0].parent.name} has none of the formulas; are the ids those of single formulas?")
    return found
