"""excerpts: the beginnings of texts for a table's cell, no formula cut in two."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mirblab.formula import posts
from mirblab.formula.formal import language
from mirblab.formula.texts import FORMULA_TASK, are_formulas

_DOLLAR = re.compile(r"\\*\$")


def excerpts(texts: Sequence[str], task: str = "", longest: int = 160) -> list[str]:
    r"""Return the beginning of each text, at most *longest* characters and a mark, formulas between dollars.

    Where the texts are bare formulas, as *task* says (else as most of them look), each is put between dollars; one
    that is too long is cut and stays as it is written, since half a formula cannot be typeset. A post ends before
    the formula that it would cut. Statements for a proof assistant have no formulas (`formal.language`).

    >>> excerpts([r"x^2"], "Formula Retrieval"), excerpts([r"Let \(x\) be $$y + z$$, then", "Why?"], "", 14)
    (['$x^2$'], ['Let $x$ be …', 'Why?'])
    """
    if task != FORMULA_TASK and language(texts):
        return [_post([text], longest) for text in texts]
    bare = are_formulas(task, texts)
    return [
        _formula(text, longest) if bare and "$" not in text else _post(posts.split(text), longest) for text in texts
    ]


def _formula(text: str, longest: int) -> str:
    return f"${text.strip()}$" if len(text) <= longest else f"{text[:longest]}…"


def _post(parts: Sequence[str], longest: int) -> str:
    """Return the first words and formulas of a post, in turn in *parts*; a dollar in its prose is written as one."""
    found, left = [], longest
    for place, part in enumerate(parts):
        plain = " ".join(f"<{part}>".split())[1:-1]
        shown = f"${plain}$" if place % 2 else _DOLLAR.sub(r"\\$", plain).rstrip("\\")
        if len(shown) > left:
            begun = "".join([*found, "" if place % 2 else shown[:left].rpartition(" ")[0]])
            return f"{begun.rstrip()} …"
        found.append(shown)
        left -= len(shown)
    return "".join(found)
