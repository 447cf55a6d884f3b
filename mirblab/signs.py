"""signs: the mark behind the names of systems that were not made here, in any text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mirblab.runs import SIGN


def signed(text: str, names: Iterable[str]) -> str:
    """Return a text in which each of *names* bears the mark; where one is a part of a longer name it does not.

    >>> signed("theirs minus bm25", ["theirs"]), signed("theirs+bm25", ["theirs"])
    ('theirs § minus bm25', 'theirs+bm25')
    """
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    if not known:
        return text
    return re.sub(rf"(?<![\w.+>@-])({known})(?![\w+>@-]|\.\w| {SIGN})", rf"\1 {SIGN}", text)
