"""lexer: LaTeX cut into tokens, each with its place in the source."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from itertools import accumulate

TEXTS = r"text|textrm|textnormal|textit|textbf|textsf|texttt|textsc|textup|textmd|mbox|hbox|intertext|shortintertext"
# One alternative for each kind of token, the commonest first; nothing in it can match the same text in two ways for
# long, so the time is linear. Text and names are one token with their braces, because blanks count inside them.
TOKEN = re.compile(
    r"[^\\\d'.:|!\s]"
    rf"|\\(?:(?:begin|end)\s*\{{[a-zA-Z]*\*?\}}|(?:{TEXTS}|operatorname\*?)\s*\{{[^{{}}$\\]*\}}"
    r"|(?:[hv]space|operatorname|tag|hfill|smash|xleftarrow|xrightarrow)\*|[a-zA-Z]+|.)"
    r"|\d(?:[\d ]*\d)?(?:(?:\\[ ,;]|\{,\})\d{3}(?!\d))*(?:\.\d+)?|\s+|'+|\.\s?\.\s?\.|\.\d+|:=|\|\|?|!!?|.",
    re.DOTALL,
)
ENTITY = re.compile(r"&(?:[a-zA-Z]{2,31}\d{0,2}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
SENTINELS = ("", "", "", "")  # nobody who looks three tokens ahead falls off the end


def cut(latex: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Return the tokens of *latex* without its blanks, then four empty ones, and the (start, end) of each.

    >>> cut(r"\\frac 12 x")
    (['\\\\frac', '12', 'x', '', '', '', ''], [(0, 5), (6, 8), (9, 10), (10, 10), (10, 10), (10, 10), (10, 10)])
    """
    tokens = TOKEN.findall(latex)
    ends = list(accumulate(map(len, tokens)))
    spans = list(zip([0, *ends], ends, strict=False))
    if any(map(str.isspace, tokens)):
        kept = [pair for pair in zip(tokens, spans, strict=True) if not pair[0].isspace()]
        tokens, spans = [token for token, _ in kept], [span for _, span in kept]
    tokens += SENTINELS
    spans += [(len(latex), len(latex))] * len(SENTINELS)
    return tokens, spans


def unescape(latex: str) -> tuple[str, list[int] | None]:
    """Return *latex* without HTML entities, and for each of its positions the one in the source; None: the same.

    >>> unescape("a &lt; b")
    ('a < b', [0, 1, 2, 6, 7, 8])
    """
    places: list[int] | None = None
    for _ in range(2):  # &amp;lt; is escaped twice
        if "&" not in latex or not ENTITY.search(latex):
            break
        latex, places = _once(latex, places or list(range(len(latex) + 1)))
    return latex, places


def _once(latex: str, places: Sequence[int]) -> tuple[str, list[int]]:
    """Return *latex* with each entity replaced once, and the places of what is left."""
    parts, kept, last = [], [], 0
    for found in ENTITY.finditer(latex):
        plain = html.unescape(found[0])
        parts += [latex[last : found.start()], plain]
        kept += [*places[last : found.start()], *[places[found.start()]] * len(plain)]
        last = found.end()
    return "".join([*parts, latex[last:]]), [*kept, *places[last:]]
