"""excerpts: the beginnings of texts for a table's cell, no formula cut in two."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mirblab.formula import posts
from mirblab.formula.texts import are_formulas

_DOLLAR = re.compile(r"\\*\$")


def excerpts(texts: Sequence[str], task: str = "", longest: int = 160) -> list[str]:
    r"""Return the beginning of each text, at most *longest* characters and a mark, formulas between dollars.

    Where the texts are bare formulas, as *task* says (else as most of them look), each is put between dollars; one
    that is too long is cut and stays as it is written, since half a formula cannot be typeset. A post ends before
    the formula that it would cut.

    >>> excerpts([r"x^2"], "Formula Retrieval"), excerpts([r"Let \(x\) be $$y + z$$, then", "Why?"], "", 14)
    (['$x^2$'], ['Let $x$ be …', 'Why?'])
    """
    bare = are_formulas(task, texts)
    return [_formula(text, longest) if bare and "$" not in text else _post(text, longest) for text in texts]


def _formula(text: str, longest: int) -> str:
    return f"${text.strip()}$" if len(text) <= longest else f"{text[:longest]}…"


def _post(text: str, longest: int) -> str:
    """Return the first words and formulas of a post; a dollar in its prose is written as one."""
    found, left = [], longest
    for place, part in enumerate(posts.split(text)):
        plain = " ".join(f"<{part}>".split())[1:-1]
        shown = f"${plain}$" if place % 2 else _DOLLAR.sub(r"\\$", plain).rstrip("\\")
        if len(shown) > left:
            begun = "".join([*found, "" if place % 2 else shown[:left].rpartition(" ")[0]])
            return f"{begun.rstrip()} …"
        found.append(shown)
        left -= len(shown)
    return "".join(found)
