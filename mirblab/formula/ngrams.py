"""ngrams: formulas as words: n-grams and PyA0's pre-tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from mirblab.core.errors import check_known
from mirblab.formula.in_text import split_text
from mirblab.formula.latex.reader import tokenize, unescape_entities

# Commands that are their own symbol, by what they mean.
KNOWN = frozenset(
    """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa varkappa lambda mu nu xi omicron pi
    varpi rho varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Nu Xi Pi Sigma
    Upsilon Phi Chi Psi Omega varGamma varDelta varPhi varPsi aleph beth ell hbar imath jmath wp mho Re amalg wr top
    Pr infty empty emptyset varnothing partial nabla angle measuredangle triangle triangledown triangleleft
    triangleright langle rangle bot perp parallel nparallel

    sum prod coprod int iint iiint iiiint oint smallint bigcap bigcup bigsqcup biguplus bigvee bigwedge bigcirc
    bigodot bigoplus bigotimes bigtriangleup bigtriangledown lim varinjlim varprojlim inf sup liminf limsup varlimsup
    max min arccos arcsin arctan cos cosh cot coth csc sec sin sinh tan tanh exp ln log arg deg det dim gcd hom ker
    lcm sign mod

    pm oplus uplus times otimes ltimes rtimes odot ominus ast circ cap cup sqcap sqcup curlywedge vee wedge lor land
    lnot neg setminus smallsetminus backslash prime frac binom root forall exists nexists dashv propto Join bowtie

    in ni owns subset subseteq subsetneq subsetneqq supset supseteq supsetneq supsetneqq nsubseteq nsupseteq Subset
    Supset sqsubset sqsubseteq sqsupset sqsupseteq varsubsetneq varsubsetneqq mid nmid vert Vert arrowvert
    le leqslant lt ll lneq lesssim lessdot nless ge geq geqslant gt gg gtrsim gtrless gtreqqless ne neq equiv cong
    ncong sim nsim simeq backsimeq thicksim approx approxeq asymp between frown smallfrown prec preceq preccurlyeq
    precsim npreceq succ succeq succcurlyeq succsim triangleq trianglelefteq trianglerighteq unlhd unrhd

    to gets mapsto longmapsto iff implies impliedby leadsto leftarrow rightarrow leftrightarrow longleftarrow
    longrightarrow longleftrightarrow Leftarrow Rightarrow Leftrightarrow Longleftarrow Longrightarrow
    Longleftrightarrow uparrow downarrow updownarrow Uparrow Downarrow Updownarrow nearrow nwarrow searrow swarrow
    nleftarrow nrightarrow nleftrightarrow hookleftarrow hookrightarrow xleftarrow xrightarrow rightarrowtail
    rightsquigarrow rightrightarrows rightleftharpoons leftharpoonup leftharpoondown rightharpoonup
    rightharpoondown upharpoonright curvearrowleft curvearrowright circlearrowleft looparrowright multimap

    dots ldots cdots vdots ddots iddots dotsb dotsc dotsm dotso ddot dddot quad qquad enspace atop And
    """.split()
)
# Commands that it takes for another one.
MERGED = dict(
    pair.split("=")
    for pair in """
    dfrac=frac tfrac=frac cfrac=frac div=frac above=frac dbinom=binom tbinom=binom choose=binom brack=binom sqrt=root
    bmod=mod pmod=mod pod=mod cdot=times leq=le leqq=le nleq=nle ngeq=nge doteq=equal notin=ni mp=pm lg=log sgn=sign
    lvert=vert rvert=vert lVert=Vert rVert=Vert vec=rvect overrightarrow=rvect overleftarrow=lvect
    """.split()
)
# Commands that stay as they are written, backslash included: they shape a formula but are no symbols.
SHAPES = frozenset(
    "over of overset underset stackrel underbrace overbrace lbrace rbrace lbrack rbrack lfloor rfloor lceil rceil "
    "qvar".split()
)
# Function names that count also without a backslash, longest first so that "arcsin" is not "arc sin".
FUNCTIONS = (
    "arccos arcsin arctan sinh cosh tanh sign sin cos tan cot sec csc log exp max min sup inf gcd lcm mod det dim ker "
    "deg arg hom sgn ln lg"
).split()
SIGNS = {
    "+": "plus", "-": "minus", "*": "ast", "/": "frac", "=": "equal", "<": "lt", ">": "gt", "!": "fact",
    ",": "comma", ";": "semicolon", ":": "colon", "|": "vert", "^": "supscript", "_": "subscript", "'": "prime",
    "...": "dots", ":=": "equal", "＝": "equal", "\\|": "Vert", "\\%": "percent", "\\&": "And", "\\>": "gt",
    "α": "alpha", "β": "beta", "π": "pi", "φ": "phi", "ε": "epsilon", "∞": "infty", "∑": "sum", "∫": "int",
    "→": "to", "∀": "forall", "∃": "exists", "±": "pm",
}  # fmt: skip
# What it leaves apart, or drops, although the meaning is the same; merged on request.
ALSO = dict(
    pair.split("=")
    for pair in """
    leqslant=le geq=ge geqslant=ge geqq=ge neq=ne rightarrow=to longrightarrow=to gets=leftarrow longleftarrow=leftarrow
    longmapsto=mapsto Rightarrow=implies Longrightarrow=implies Leftrightarrow=iff Longleftrightarrow=iff
    leftrightarrow=iff ldots=dots cdots=dots dotsb=dots dotsc=dots dotsm=dots dotso=dots varepsilon=epsilon
    varphi=phi vartheta=theta varrho=rho varkappa=kappa varsigma=sigma varpi=pi varnothing=emptyset empty=emptyset
    land=wedge lor=vee lnot=neg coloneqq=equal mid=vert smallsetminus=setminus backslash=setminus over=frac
    preceq=preccurlyeq succeq=succcurlyeq owns=ni bot=perp lbrace=\\{ rbrace=\\} lbrack=[ rbrack=]
    """.split()
)
# Names that are nothing but style, size, space or font.
SILENT = frozenset(
    """
    left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm Bigm displaystyle textstyle
    scriptstyle scriptscriptstyle limits nolimits quad qquad enspace null nonumber notag hfill hfil mathstrut strut
    mathord mathop mathbin mathrel mathopen mathclose mathpunct mathinner begin end mathrm mathbf mathit mathsf mathtt
    boldsymbol bm bold pmb rm bf it sf tt cal frak Bbb operatorname textrm textbf textit textsf texttt textup
    """.split()
)
# Part of the key of stored vectors: count it up when the words of any formula or text change.
VERSION = 5
# How encoders may ask for it: as published, without the dollars around each word, and with more spellings merged.
FORMS: dict[str, dict[str, Any]] = {"pya0": {}, "pya0-plain": {"mark": ""}, "pya0-wide": {"wide": True}}
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
LONGEST = 3
BRACES = ("few", "all", "none")
_SPACES = frozenset(r"\, \; \: \! \> ~ %".split()) | {"\\ ", ""}
_EDGE = "$"  # no symbol of a formula


def named_pretokenisation(name: str) -> Callable[[str], str]:
    """Return the pre-tokenisation of that name, one of `FORMS`, as a function of a text; MirblabError else."""
    check_known("pre-tokenisation", name, FORMS)
    return partial(pretokenise, **FORMS[name])


def pretokenise(
    text: str, *, wide: bool = False, digits: bool = True, fonts: bool = False, lower: bool = True, mark: str = "$"
) -> str:
    r"""Return a text with each formula as words between dollars, one per symbol; other text in lower case.

    The switches are those of `pya0_symbols`; *lower* is for the text outside, *mark* stands on both sides of each word.
    With the defaults the words are those of PyA0's `preprocess_for_transformer` (version 3; Zhong et al., Findings of
    EMNLP 2022, Figure 1), up to few exceptions.

    >>> pretokenise(r"Bound of $\|A\|_2\le\dfrac{1}{12}$")
    'bound of $Vert$ $A$ $Vert$ $subscript$ $2$ $le$ $frac$ ${$ $1$ $}$ ${$ $1$ $2$ $}$'
    """
    found = []
    for place, part in enumerate(split_text(text)):
        if place % 2:
            words = pya0_symbols(part, wide=wide, digits=digits, fonts=fonts)
            found.append(" ".join(f"{mark}{word}{mark}" for word in words))
        else:
            found.append(part.lower() if lower else part)
    return "".join(found)


def pya0_symbols(latex: str, *, wide: bool = False, digits: bool = True, fonts: bool = False) -> list[str]:
    r"""Return the symbols of a formula in reading order: names of operators, letters, digits, braces, fences.

    `\frac`, `\dfrac`, `/` and `\div` are "frac", `\cdot` and `\times` "times"; displays are unwrapped; `\text{...}` is
    "ast"; sizes, spaces, accents and commands that PyA0 does not know vanish. *digits* cuts numbers into digits.
    *fonts* keeps the four fonts that PyA0 knows ("blackboard-R"). *wide* merges what PyA0 keeps separate (`\leqslant`,
    `\ldots`, `\varphi`) and keeps what it drops: unknown commands by name, the numbers of `\frac12`. HTML entities are
    read, and `%`, for PyA0 the begin of a comment, is passed over.

    >>> pya0_symbols(r"\mathbb{R} \leqslant \frac12"), pya0_symbols(r"\mathbb{R} \leqslant \frac12", wide=True)
    (['R', 'leqslant', 'frac'], ['R', 'le', 'frac', '1', '2'])
    """
    return list(_symbols(unescape_entities(latex)[0], wide, digits, fonts))


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


def _symbol(match: re.Match[str], is_table: bool, wide: bool) -> str:
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


def _fence(match: re.Match[str], wide: bool) -> tuple[str, ...]:
    fence = match["fence"]
    if not wide:
        return (f"\\{match['side']}{fence}",)
    if fence in _KEPT:
        return (fence,)
    name = fence.removeprefix("\\")
    symbol = SIGNS.get(fence) or ALSO.get(name) or MERGED.get(name) or (fence if name in SHAPES else name)
    return () if fence == "." else (symbol,)


def latex_ngrams(
    text: str, *, longest: int = LONGEST, braces: str = "few", merged: bool = True, edges: bool = True
) -> list[str]:
    r"""Return the 1- to *longest*-grams of symbols of each formula of a text, symbols joined by a blank.

    Sizes, styles and spaces vanish. *braces*: "few" leaves out those around one symbol (`x^{2}` is `x^2`), "none" all,
    "all" keeps them. *merged* merges spellings of a symbol (`pya0_symbols`, wide). With *edges* the begin and the end
    of a formula count as a symbol, `$`, of longer grams. The defaults were chosen by cross-validation over the topics
    of ARQMath: benchmarks/ngram_choice.py.

    >>> latex_ngrams(r"$x^{2}\,$ is $y$")
    ['x', 'supscript', '2', '$ x', 'x supscript', ..., 'supscript 2 $', 'y', '$ y', 'y $', '$ y $']
    """
    check_known("way to treat braces called", braces, BRACES)
    found: list[str] = []
    for latex in split_text(text)[1::2]:
        if merged:
            kept = pya0_symbols(latex, wide=True, digits=False)
        else:
            tokens = tokenize(unescape_entities(latex)[0])[0]
            kept = [token for token in tokens if token not in _SPACES and token[1:] not in SILENT]
        if braces == "few":
            kept = _drop_single_braces(kept)
        elif braces == "none":
            kept = [symbol for symbol in kept if symbol not in "{}"]
        found += kept
        if edges:
            kept = [_EDGE, *kept, _EDGE]
        for n in range(2, longest + 1):
            found += map(" ".join, zip(*(kept[start:] for start in range(n)), strict=False))
    return found


def _drop_single_braces(symbols: list[str]) -> list[str]:
    kept: list[str] = []
    for symbol in symbols:
        kept.append(symbol)
        if symbol == "}" and len(kept) > 2 and kept[-3] == "{" and kept[-2] not in "{}":
            kept[-3:] = [kept[-2]]
    return kept
