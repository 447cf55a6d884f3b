"""pretokens: formulas as the words of a transformer, one for each symbol however it is spelt, as PyA0 makes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from mirblab.errors import unknown
from mirblab.formula.lexer import unescape
from mirblab.formula.posts import parts
from mirblab.formula.pretoken_names import ALSO, FUNCTIONS, KNOWN, MERGED, SHAPES, SIGNS, SILENT

# Part of the key of stored vectors: count it up when the words of any formula change.
VERSION = 2
# How encoders may ask for it: as published, without the dollars around each word, and with more spellings merged.
FORMS = {"pya0": {}, "pya0-plain": {"mark": ""}, "pya0-wide": {"wide": True}}

_UNWRAPPED = r"(?:align|aligned|alignat|equation|gather|gathered|split|eqnarray|multline)\*?"
_TABLES = r"(?:[bBpvV]?matrix|smallmatrix|array|cases)"
_INNER = r"\s*\{(?:[^{}]|\{[^{}]*\})*\}"
_TOKEN = re.compile(
    # what begins nothing longer, first because it is commonest
    r"(?P<plain>[A-Zbfjnopqruvwxyz^_=+\-*/<>,;!|'()}\]])"
    rf"|\\(?:begin|end)\{{(?:(?P<table>{_TABLES})|{_UNWRAPPED})\}}"
    r"|\\(?P<side>left|right)\s*(?P<fence>\\[{}|]|\\[A-Za-z]+|[^\s\\A-Za-z])"
    rf"|(?P<text>\\text{_INNER})"
    rf"|\\(?:[hm]box|label|tag|color|[hv]space\*?){_INNER}"
    r"|\\[hm]?(?:kern|skip|space)\s*-?[\d.]*\s*(?:em|ex|mu|pt|cm|mm|in)?"
    rf"|\\math(?P<font>cal|bb|frak|scr)(?:\s*\{{(?P<letters>[^{{}}\\]*)\}}|\s*(?P<letter>[A-Za-z]))"
    r"|(?P<fraction>\\[dt]?frac)\s*(?P<over>\d)\s*(?P<under>\d)"
    r"|(?P<unequal>\\not\s*=)"
    r"|\\(?P<command>[A-Za-z]+)"
    r"|(?P<row>\\\\)"
    r"|\\(?:[,;:! #$]|$)"
    r"|\{\s*\}|\[\s*\]"
    rf"|(?P<function>{'|'.join(FUNCTIONS)})"
    r"|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<sign>\\[{}|%&>]|:=|\.\.\.+|[^\s\\])",
    re.DOTALL,
)
_FONTS = {"cal": "calligraphic", "scr": "calligraphic", "bb": "blackboard", "frak": "fraktur"}
_KEPT = frozenset(("{", "}", "(", ")", "[", "]", "\\{", "\\}"))
_PLAIN = {chr(code): SIGNS.get(chr(code), chr(code)) for code in range(33, 127)}


def rewriter(name: str) -> Callable[[str], str]:
    """Return the pre-tokenisation of that name, one of `FORMS`, as a function of a text; MirblabError else.

    >>> rewriter("pya0-plain")("Is $x\\\\le y$ so?")
    'is x le y so?'
    """
    if name not in FORMS:
        raise unknown("pre-tokenisation", name, FORMS)
    return partial(pretokenise, **FORMS[name])


def pretokenise(
    text: str, *, wide: bool = False, digits: bool = True, fonts: bool = False, lower: bool = True, mark: str = "$"
) -> str:
    r"""Return a text with each formula as words between dollars, one per symbol; other text in lower case.

    Formulas are those of `posts.formulas`, or the whole text where it is a bare one. The switches are those of
    `symbols`; *lower* is for the text outside, *mark* stands on both sides of each word. Zhong et al. (Findings of
    EMNLP 2022, Figure 1) describe it, and with the defaults the words are those of PyA0's
    `preprocess_for_transformer` (version 3), with the few exceptions that `symbols` names.

    >>> pretokenise(r"Bound of $\|A\|_2\le\dfrac{1}{12}$")
    'bound of $Vert$ $A$ $Vert$ $subscript$ $2$ $le$ $frac$ ${$ $1$ $}$ ${$ $1$ $2$ $}$'
    """
    found = []
    for place, part in enumerate(parts(text)):
        if place % 2:
            words = symbols(part, wide=wide, digits=digits, fonts=fonts)
            found.append(" ".join(f"{mark}{word}{mark}" for word in words))
        else:
            found.append(part.lower() if lower else part)
    return "".join(found)


def symbols(latex: str, *, wide: bool = False, digits: bool = True, fonts: bool = False) -> list[str]:
    r"""Return the symbols of a formula in reading order: names of operators, letters, digits, braces, fences.

    `\frac`, `\dfrac`, `/` and `\div` are "frac", `\leq` and `\le` "le", `\cdot` and `\times` "times"; displays are
    unwrapped; `\text{...}` is "ast"; sizes, spaces, accents and commands that PyA0 does not know vanish. *digits*
    cuts numbers into digits. *fonts* keeps the four fonts PyA0 tells apart ("blackboard-R"), which its words for
    transformers drop. *wide* merges what PyA0 leaves apart (`\leqslant`, `\rightarrow`, `\ldots`, `\varphi`,
    `\neq`) and keeps what it loses: unknown commands by name, the numbers of `\frac12`. HTML entities are read, and
    `%`, for PyA0 the begin of a comment, is passed over, since collections without line breaks have it in formulas.

    >>> symbols(r"\mathbb{R} \leqslant \frac12"), symbols(r"\mathbb{R} \leqslant \frac12", wide=True)
    (['R', 'leqslant', 'frac'], ['R', 'le', 'frac', '1', '2'])
    """
    return list(_symbols(unescape(latex)[0], wide, digits, fonts))


def _symbols(latex: str, wide: bool, digits: bool, fonts: bool) -> Iterator[str]:
    n_tables = 0
    for match in _TOKEN.finditer(latex):
        kind, found = match.lastgroup, match[0]
        if kind == "plain":
            yield _PLAIN[found]
        elif kind in ("command", "sign", "row"):
            symbol = _symbol(match, n_tables > 0, wide)
            if symbol:
                yield symbol
        elif kind == "number":
            yield from found if digits else (found,)
        elif kind == "table":
            n_tables = max(0, n_tables + (1 if found[1] == "b" else -1))
            yield found
        elif kind == "fence":
            yield from _fence(match, wide)
        elif kind == "text":
            yield "ast"
        elif kind in ("letters", "letter"):
            font = f"{_FONTS[match['font']]}-" if fonts else ""
            yield from (font + letter for letter in match[kind] if letter.isalnum())
        elif kind == "under":
            yield from ("frac", match["over"], match["under"]) if wide else ("frac",)
        elif kind == "unequal":
            yield "ne" if wide else "neq"
        elif kind == "function":
            yield MERGED.get(found, found)


def _fence(match: re.Match[str], wide: bool) -> tuple[str, ...]:
    fence = match["fence"]
    if not wide:
        return (f"\\{match['side']}{fence}",)
    if fence in _KEPT:
        return (fence,)
    name = fence.removeprefix("\\")
    symbol = SIGNS.get(fence) or ALSO.get(name) or MERGED.get(name) or (fence if name in SHAPES else name)
    return () if fence == "." else (symbol,)


def _symbol(match: re.Match[str], is_table: bool, wide: bool) -> str:
    """Return the symbol of a command or a sign; empty where it has none."""
    found = match[0]
    if found == "\\\\" or is_table and found in ("\\cr", "\\newline"):
        return "row" if is_table else "newline"
    if found == "&":
        return "column" if is_table else ""
    if match.lastgroup == "sign":
        if found in _KEPT or found.isascii() and found.isalpha():
            return found
        return "dots" if found.startswith("...") else SIGNS.get(found, "")
    name = match["command"]
    if wide and (name in ALSO or name in SILENT):
        return ALSO.get(name, "")
    if name in SHAPES:
        return found
    return MERGED.get(name) or (name if name in KNOWN or wide else "")
