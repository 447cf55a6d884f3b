"""latex: LaTeX source to plain prose in which only the mathematics is still LaTeX."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from mirblab.sources import latex_formulas, unprinted

# What a comment may stand in only seemingly: code, addresses, and a percent sign with a backslash.
_COMMENT = re.compile(
    r"\\begin\s*\{(?P<code>(?:verbatim|Verbatim|lstlisting|alltt)\*?|minted)\}"
    r"|\\(?:verb|lstinline)\*?(?P<mark>[^\sA-Za-z*{])[^\n]{0,300}?(?P=mark)"
    r"|\\(?:url|nolinkurl|path|href)\s*\{(?:[^{}\n]++|\{[^{}\n]*+\})*+\}|\\."
    r"|(?P<comment>%[^\n]*(?:\n(?![ \t]*\n)[ \t]*)?)",
    re.DOTALL,
)
_ESCAPED_OR_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_REFERENCE = re.compile(r"\\(?:[cC]|eq|auto|page|name)?ref\*?\s*\{([^{}]*)\}|\\hyperref\s*\[([^][]*)\]")
_CITATION = re.compile(r"\\cite[a-z]*\*?\s*(?:\[[^][]*\]\s*)*\{[^{}]*\}")
_LIST_MARK = re.compile(
    r"\\begin\s*\{(?P<begin>enumerate|itemize|description)\}(?:\s*\[[^][]*\])?|\\end\s*\{(?P<end>enumerate|itemize|description)\}"
    r"|\\setcounter\s*\{enum(?P<level>i+v?)\}\s*\{(?P<value>\d{1,4})\}|\\item\b\s*(?:\[(?P<given>[^][]*)\])?\s*"
)
_UNWRAPPED = re.compile(
    r"\\(?P<name>emph|text|text(?:bf|it|rm|tt|sc|sf|sl|up|normal)|underline|mbox|hbox|url|footnote|href)\s*(?=\{)"
)
_DROPPED = re.compile(
    r"""\\(?:(?:med|big|small)skip|(?:no)?indent|newpage|clearpage|newline|linebreak|par|[hv]fill|centering|qedhere
    |phantomsection|protect|it|bf|rm|sl|em|sc|tt|sf|(?:it|sl|sc|up)shape|(?:bf|md)series|(?:rm|sf|tt)family
    |tiny|small|large|normalsize)(?![A-Za-z])[ \t]*
    |\\[vh]space\*?\s*\{[^{}]*\}|\\(?:set|addto)(?:counter|length)\s*\{[^{}]*\}\s*\{[^{}]*\}|\\(?:begin|end)\s*\{(?:center|quote|quotation|flushleft|flushright)\}""",
    re.VERBOSE,
)
_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307"}
_ACCENTS |= {"v": "\u030c", "u": "\u0306", "H": "\u030b", "c": "\u0327", "k": "\u0328", "r": "\u030a", "d": "\u0323"}
_ACCENT = re.compile(
    r"""\\(?:(?P<sign>['`^"~=.])\s*|(?P<name>[vuHckrd])(?![A-Za-z])\s*)
    (?:\{\s*\\?(?P<braced>[A-Za-z])\s*\}|\\(?P<dotless>[ij])(?![A-Za-z])\s*|(?P<bare>[A-Za-z]))""",
    re.VERBOSE,
)
_LETTERS = {"ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "i": "i"}
_LETTERS |= {"aa": "å", "AA": "Å", "S": "§", "j": "j", "ldots": "...", "dots": "...", "LaTeX": "LaTeX", "TeX": "TeX"}
_LETTER = re.compile(r"\\(" + "|".join(_LETTERS) + r")(?![A-Za-z])(?:[ \t]*\n|[ \t]+)?(?:\{\})?")
_ROMAN = re.compile(r"\\romannumeral\s*(\d{1,4})(?!\d)\s?")
_BLANK = re.compile(r"\\[\s,;:!]|(?<!\\)~|\\\\(?:\[[^][]*\])?")
_COMMAND = re.compile(r"\\([A-Za-z]+\*?|[^\s%&#_${}])")
_LONGEST_OPTION = 2_000


def strip_comments(source: str) -> str:
    r"""Return *source* without comments, as TeX reads it: `\%`, code and addresses stay.

    A comment swallows its line end and the blanks that begin the next line, but never a paragraph break.

    >>> strip_comments("50\\% of all % so they say\n  rings\\\\% end\n")
    '50\\% of all rings\\\\'
    """
    parts: list[str] = []
    endless: set[str] = set()
    at = place = 0
    while match := _COMMENT.search(source, place):
        place = match.end()
        if match["comment"]:
            parts.append(source[at : match.start()])
            at = place
        elif match["code"] and match["code"] not in endless:
            end = unprinted.ending(match["code"]).search(source, place)
            place = end.end() if end else place
            endless |= set() if end else {match["code"]}
    return "".join([*parts, source[at:]])


def closing_brace(text: str, start: int) -> int:
    r"""Return the position of the brace that closes the one at *start*, or -1 when none does.

    >>> closing_brace(r"{a\}{b}}c", 0)
    7
    """
    depth = 0
    for match in _ESCAPED_OR_BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth <= 0:
            return match.start()
    return -1


def option(text: str, start: int) -> tuple[str, int]:
    r"""Return the optional argument that follows position *start* and where it ends ("" and *start* without one).

    Brackets inside braces do not end it. One that is longer than two thousand characters is none.

    >>> option(r"\begin{lemma}[Fact {[1]}] Let", 13)
    ('Fact {[1]}', 25)
    """
    begin = re.compile(r"[ \t]*+(?:\n[ \t]*+)?\[").match(text, start)
    depth = 0
    for match in (
        re.compile(r"\\.|[][{}]", re.DOTALL).finditer(text, begin.end(), begin.end() + _LONGEST_OPTION) if begin else ()
    ):
        if match[0] == "]" and depth <= 0:
            return text[begin.end() : match.start()], match.end()
        depth += {"{": 1, "}": -1}.get(match[0], 0)
    return "", start


def references(source: str) -> list[str]:
    r"""Return the labels that *source* refers to, in order, each as often as it occurs.

    >>> references(r"By Lemmas \ref{lemma-a}, \ref{b} and (\eqref{lemma-a})")
    ['lemma-a', 'b', 'lemma-a']
    """
    return [(named or linked).strip() for named, linked in _REFERENCE.findall(source)]


def clean(source: str, odd: Counter[str] | None = None) -> str:
    r"""Return *source* (without comments) as prose: no labels, index entries or font commands; mathematics as it was.

    References become `[ref]`, citations `[cite]`, footnotes a parenthesis, accents letters; list items are
    numbered as the book prints them, one per line; `equation` becomes `$$`, other displays stay. What has no
    rule is counted in *odd*: commands outside mathematics (removed; what stood in their braces stays), formulas
    and braces that do not close.

    >>> clean(r"\label{lemma-x}Let {\it A} be \'etale, see \ref{lemma-y}.\begin{enumerate}\item $a\%$ \end{enumerate}")
    'Let A be étale, see [ref].\n(1) $a\\%$'
    """
    odd = Counter() if odd is None else odd
    source = source.translate({0xE000: None, 0xE001: None})
    source = _REFERENCE.sub(lambda match: "[ref]" if match[2] is None else "", unprinted.silenced(source))
    text, formulas = latex_formulas.hidden(_CITATION.sub("[cite]", source), odd)
    text = _plain(_unwrap(_lists(text), odd), odd)
    text = latex_formulas.shown(text, formulas)
    return "\n".join(line for part in text.split("\n") if (line := " ".join(part.split())))


def _lists(text: str) -> str:
    """Number the items as amsart prints them, (1), (a), (i), (A) by depth; other lists get a star."""
    open_lists: list[tuple[str, int]] = []
    counters: list[int] = []

    def mark(match: re.Match[str]) -> str:
        if match["begin"]:
            kind, depth = open_lists[-1] if open_lists else ("", 0)
            open_lists.append((match["begin"], depth + (kind == "enumerate")))
            counters.append(0)
        elif match["end"]:
            del open_lists[-1:], counters[-1:]
        elif match["value"]:
            counters[-1:] = [int(match["value"])] if counters else []
            return ""
        elif match["given"] is not None:
            return f"\n\n{match['given']} "
        else:
            counters[-1:] = [counters[-1] + 1] if counters else []
            kind, depth = open_lists[-1] if open_lists else ("itemize", 0)
            return f"\n\n{_number(depth, counters[-1])} " if kind == "enumerate" else "\n\n* "
        return "\n\n"

    return _LIST_MARK.sub(mark, text)


def _number(depth: int, count: int) -> str:
    letters = (chr(ord("a") + (count - 1) % 26)) * (1 + (count - 1) // 26)
    return f"({(str(count), letters, _roman(count), letters.upper())[min(depth, 3)]})"


def _roman(count: int) -> str:
    digits = ((100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))
    numeral = ""
    for value, digit in digits:
        times, count = divmod(count, value)
        numeral += digit * times
    return numeral


def _unwrap(text: str, odd: Counter[str]) -> str:
    r"""Replace \emph{x} and its like by x, footnotes by a parenthesis, links by their text."""
    ends = unprinted.brace_ends(text)
    edits: list[tuple[int, int, str]] = []
    gone = 0
    for match in _UNWRAPPED.finditer(text):
        start, end = match.end(), ends.get(match.end(), -1)
        if match.start() < gone:
            continue
        if end < 0:
            odd["braces that do not close"] += 1
            edits.append((match.start(), start, ""))
        elif match["name"] == "href":
            edits.append((match.start(), end + 1, ""))
            gone = end + 1
        elif match["name"] == "footnote":
            inner = text[start + 1 : end]
            left = start + 1 + len(inner) - len(inner.lstrip())
            edits += [(match.start(), left, " ("), (max(left, start + 1 + len(inner.rstrip())), end + 1, ")")]
        else:
            edits += [(match.start(), start + 1, ""), (end, end + 1, "")]
    parts, at = [], 0
    for start, end, instead in sorted(edits):
        parts += [text[at:start], instead]
        at = max(at, end)
    return "".join([*parts, text[at:]])


def _plain(text: str, odd: Counter[str]) -> str:
    """Return the text, whose formulas are hidden, without commands; a paragraph or list item is one line."""
    text = _ACCENT.sub(_accented, text)
    text = _LETTER.sub(lambda match: _LETTERS[match[1]], text)
    text = _DROPPED.sub(" ", _ROMAN.sub(lambda match: _roman(int(match[1])), text))
    text = re.sub(r"\\[/@\-]", "", _BLANK.sub(" ", text))
    for name in _COMMAND.findall(text):
        odd[f"command outside mathematics: {name}"] += 1
    text = re.sub(r"(?<!\\)[{}]", "", _COMMAND.sub(" ", text)).replace("``", '"').replace("''", '"')
    return "\n".join(re.sub(r"\s+", " ", part) for part in re.split(r"\n\s*\n", text))


def _accented(match: re.Match[str]) -> str:
    letter = match["braced"] or match["dotless"] or match["bare"]
    return unicodedata.normalize("NFC", letter + _ACCENTS[match["sign"] or match["name"]])
