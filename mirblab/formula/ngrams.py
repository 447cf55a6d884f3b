"""ngrams: formulas as runs of one to three LaTeX symbols, the simple rival of structure search."""

from __future__ import annotations

from mirblab.errors import unknown
from mirblab.formula.lexer import cut, unescape
from mirblab.formula.posts import parts
from mirblab.formula.pretoken_names import SILENT
from mirblab.formula.pretokens import symbols

LONGEST = 3
BRACES = ("few", "all", "none")
_SPACES = frozenset(r"\, \; \: \! \> ~ %".split()) | {"\\ ", ""}
_EDGE = "$"  # no symbol of a formula


def grams(
    text: str, *, longest: int = LONGEST, braces: str = "few", merged: bool = True, edges: bool = True
) -> list[str]:
    r"""Return the 1- to *longest*-grams of symbols of each formula of a text, symbols joined by a blank.

    Only formulas count, none reaches over two of them, and a text without delimiters is one formula where it reads
    as one (`posts.parts`). Sizes, styles and spaces vanish. *braces*: "few" leaves out those around one symbol
    (`x^{2}` is `x^2`), "none" leaves out all, "all" keeps them. *merged* takes spellings of a symbol for one
    (`pretokens.symbols`, wide), else LaTeX tokens stay as they are written. With *edges* the begin and the end of a
    formula count as a symbol, `$`, of longer grams. The defaults were chosen by cross-validation over the topics of
    ARQMath: benchmarks/ngram_choice.py.

    >>> grams(r"$x^{2}\,$ is $y$")
    ['x', 'supscript', '2', '$ x', 'x supscript', ..., 'supscript 2 $', 'y', '$ y', 'y $', '$ y $']
    """
    if braces not in BRACES:
        raise unknown("way to treat braces called", braces, BRACES)
    found: list[str] = []
    for latex in parts(text)[1::2]:
        kept = symbols(latex, wide=True, digits=False) if merged else _written(latex)
        if braces == "few":
            kept = _without_single(kept)
        elif braces == "none":
            kept = [symbol for symbol in kept if symbol not in "{}"]
        found += kept
        if edges:
            kept = [_EDGE, *kept, _EDGE]
        for n in range(2, longest + 1):
            found += map(" ".join, zip(*(kept[start:] for start in range(n)), strict=False))
    return found


def _written(latex: str) -> list[str]:
    """Return the LaTeX tokens of a formula but for sizes, styles and spaces."""
    tokens = cut(unescape(latex)[0])[0]
    return [token for token in tokens if token not in _SPACES and token[1:] not in SILENT]


def _without_single(symbols: list[str]) -> list[str]:
    """Return *symbols* without the braces around a single one, or around what is left of such.

    >>> _without_single(list("x^{{2}}{ab}"))
    ['x', '^', '2', '{', 'a', 'b', '}']
    """
    kept: list[str] = []
    for symbol in symbols:
        kept.append(symbol)
        if symbol == "}" and len(kept) > 2 and kept[-3] == "{" and kept[-2] not in "{}":
            kept[-3:] = [kept[-2]]
    return kept
