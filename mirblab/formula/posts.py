"""posts: the formulas in a text, whichever way they are delimited."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mirblab.formula.formal import formal

_DISPLAYS = (
    "align|alignat|aligned|alignedat|array|[bBpvV]?matrix|cases|CD|displaymath|eqnarray|equation|flalign|gather|"
    "gathered|math|multline|smallmatrix|split|subequations|xalignat"
)
_TOKEN = re.compile(
    rf"\\(?P<ends>begin|end)\s*\{{\s*(?P<name>(?:{_DISPLAYS})\*?)\s*\}}"
    # Only in these a dollar sign inside a formula is text: `\text{if $x$ is odd}`.
    r"|(?P<text>\\(?:text[a-z]*|[hmf]box|intertext|tag\*?|parbox\s*\{[^{}$]*\})\s*\{)"
    r"|(?P<sign>\\[()\[\]]|\${1,3}|\[/?i?math\])"
    r"|(?P<brace>[{}])"
    r"|\\.",
    re.DOTALL,
)
_CLOSER = {"$": "$", "$$": "$$", "\\(": "\\)", "\\[": "\\]", "[imath]": "[/imath]", "[math]": "[/math]"}
_AMOUNT = re.compile(r"\d[\d,.]*(?:[kKmMbB]|bn)?(?!\w)")
_MATHS = re.compile(r"[\\^_={<>+]")
_NO_FUNCTION = r"(?!(?:sin|cos|tan|log|ln|exp|lim|max|min|mod|gcd|det|sup|inf)\b)"
_WORD = re.compile(rf"(?<![\\A-Za-z{{]){_NO_FUNCTION}[A-Za-z]{{2,}}")  # of prose
_ARGUMENT = re.compile(r"\\[A-Za-z]+\*?\s*\{[^{}]*\}")
# Between blanks, so that it is no product of variables: "dx" and "AB" are, "is" hardly ever.
_PROSE = re.compile(
    rf"(?<!\S)[(\"']?{_NO_FUNCTION}(?:(?=[a-z'’-]*?[a-z]{{3}})[a-z'’-]++|(?:an|as|at|be|by|do|if|in|is|it|no|of|on|or|so|"
    r"to|we)\b)[)\"'.,;:?!]*+(?!\S)",
    re.IGNORECASE,
)
_LONE_WORD = re.compile(r"\s*[A-Z]?[a-z]{4,}[.,;:?!]*\s*")
_SIGNS_PER_WORD = 4  # of mathematics, in what has no delimiters and may be a formula
_MANY_WORDS = 3  # without a sign of mathematics these are prose
_BEGINS, _ENDS = " \n,.;:?!)", " \n("  # of prose between two formulas

Token = tuple[str, int, int]  # kind, start, end
# Start and end without delimiters, with them, and whether these are signs outside of any text group.
Span = tuple[int, int, int, int, bool]


def formulas(text: str) -> list[tuple[str, int, int]]:
    r"""Return the formulas of a text in order: LaTeX without delimiters, and where it starts and ends in the text.

    `text[start:end]` is the LaTeX. Delimiters: `$`, `$$`, `\(`, `\[`, `[imath]`, `[math]`; display environments
    stay part of the LaTeX. An escaped `\$` is none, a dollar in `\text{}` belongs to the formula around it, sums
    of money are no formulas, and a dollar without partner is passed over: where it may be either of two, what
    stands between them decides. Empty formulas are left out. The time grows with the length of the text.

    >>> formulas(r"Is \(x\) or $\text{some $y$}$ worth $5 or $6?")
    [('x', 5, 6), ('\\text{some $y$}', 13, 28)]
    """
    return [(text[start:end], start, end) for start, end, _, _, _ in _spans(text)]


def split(text: str) -> list[str]:
    r"""Return the parts of a text: prose, formula, prose, ..., prose; at odd positions the LaTeX of the formulas.

    Delimiters are left out; prose between two formulas may be empty.

    >>> split("Let $x$ be one.")
    ['Let ', 'x', ' be one.']
    """
    return _cut(text, _spans(text))


def parts(text: str) -> list[str]:
    r"""Return the parts of a text as `split` does, or ["", text, ""] where all of it is a formula without delimiters.

    An environment, or a dollar in `\text{}`, says nothing about what is around it, so it is no delimiter here. A
    statement for a proof assistant is prose, whatever its dollars and backslashes mean there.

    >>> parts(r"\frac{1}{2}"), parts("half of $x$")
    (['', '\\frac{1}{2}', ''], ['half of ', 'x', ''])
    """
    if formal(text):
        return [text]
    spans = list(_spans(text))
    found = _cut(text, spans)
    if any(is_plain for *_, is_plain in spans) or not text.strip():
        return found
    outside = "".join(found[::2])
    return ["", text, ""] if is_bare(outside) or not outside.strip() else found


def is_bare(text: str) -> bool:
    r"""Return whether a text without delimiters is a formula: it has hardly any words, or far more mathematics.

    >>> is_bare(r"\sum_{n}^{\infty} a_n"), is_bare("n"), is_bare("Every ring is commutative"), is_bare("")
    (True, True, False, False)
    """
    if not text.strip() or _LONE_WORD.fullmatch(text):
        return False
    n_words, n_signs = len(_PROSE.findall(_ARGUMENT.sub(" ", text))), len(_MATHS.findall(text))
    is_one = len(text.split(None, 1)) == 1  # "ABC", "a-b" and the like
    return n_words <= max(is_one or n_signs > 0, n_signs // _SIGNS_PER_WORD) and not formal(text)


def _cut(text: str, spans: Iterable[Span]) -> list[str]:
    found, last = [], 0
    for start, end, outer, after, _ in spans:
        found += [text[last:outer], text[start:end]]
        last = after
    return [*found, text[last:]]


def _spans(text: str) -> Iterator[Span]:
    """Yield each formula that is not empty."""
    if "$" not in text and "\\" not in text and "[/" not in text:
        return
    tokens = _tokens(text)
    limits, jumps = _groups(tokens)
    search = _Search(text, tokens, limits, jumps)
    at = 0
    while at < len(tokens):
        closer = search.closer(at)
        if closer < 0:
            at = search.after(at)
            continue
        kind, outer, start = tokens[at]
        end, after = tokens[closer][1:]
        used = end + start - outer
        if kind[0] == "$" and used < after:  # the next formula begins without a blank between
            tokens[closer] = (_kind(text[used:after]), used, after)
            after, closer = used, closer - 1
        if kind.startswith("begin"):
            start, end = outer, after
        inner = text[start:end]
        if inner.strip():
            is_plain = not kind.startswith("begin") and limits[at] == len(tokens)
            yield *_stripped(inner, start, end), outer, after, is_plain
        at = closer + 1


def _stripped(inner: str, start: int, end: int) -> tuple[int, int]:
    return start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip())


def _tokens(text: str) -> list[Token]:
    found = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "name":
            found.append((f"{match['ends']} {match['name']}", *match.span()))
        elif kind is not None:
            found.append((kind if kind == "text" else _kind(match[kind]), *match.span()))
    return found


def _kind(sign: str) -> str:
    return "$$" if sign == "$$$" else sign  # some posts have three dollars


def _groups(tokens: list[Token]) -> tuple[list[int], dict[int, int]]:
    """Return for each token where the innermost text group around it ends, and for each such group its last token."""
    limits, jumps = [len(tokens)] * len(tokens), {}
    opened: list[int] = []
    for place, (kind, _, _) in enumerate(tokens):
        if kind in ("{", "text"):
            opened.append(place)
        elif kind == "}" and opened:
            first = opened.pop()
            if tokens[first][0] == "text":
                jumps[first] = place
    inside: list[int] = []
    for place in range(len(tokens)):
        while inside and inside[-1] <= place:
            inside.pop()
        limits[place] = inside[-1] if inside else len(tokens)
        if place in jumps:
            inside.append(jumps[place])
    return limits, jumps


class _Search:
    """The partners of opening tokens; what was not found once in a group is not looked for there again."""

    def __init__(self, text: str, tokens: list[Token], limits: list[int], jumps: dict[int, int]) -> None:
        self.text, self.tokens, self.limits, self.jumps = text, tokens, limits, jumps
        self.absent: set[tuple[str, int]] = set()
        self.dollars = sum(end - start for kind, start, end in tokens if kind[0] == "$")

    def closer(self, at: int) -> int:
        """Return the position of the token that closes the one at *at*, or -1 where that opens no formula."""
        kind, _, start = self.tokens[at]
        wanted = "end" + kind[5:] if kind.startswith("begin") else _CLOSER.get(kind, "")
        found = self._next(at, wanted) if wanted else -1
        if kind == "$" and (found < 0 or self._is_prose(start, found)):
            self.dollars -= 1
            return -1
        return found

    def after(self, at: int) -> int:
        """Return where to go on after a token that opens nothing: two dollars without partner may be one."""
        kind, _, end = self.tokens[at]
        partner = self._next(at, "$") if kind == "$$" else -1
        if partner < 0:
            return at + 1
        inner = self.text[end : self.tokens[partner][1]]
        if not _MATHS.search(inner) and len(_WORD.findall(inner)) > _MANY_WORDS:
            return at + 1
        self.tokens[at] = ("$", end - 1, end)
        return at

    def _next(self, at: int, wanted: str) -> int:
        limit, depth = self.limits[at], 0
        if (wanted, limit) in self.absent:
            return -1
        place = at + 1
        while place < limit:
            kind = self.tokens[place][0]
            if kind == wanted or wanted == "$" == kind[:1]:
                if not depth:
                    return place
                depth -= 1
            elif kind == "begin" + wanted[3:]:
                depth += 1
            place = self.jumps.get(place, place) + 1
        self.absent.add((wanted, limit))
        return -1

    def _is_prose(self, start: int, closer: int) -> bool:
        """Return whether what stands between two dollars is money, or prose where one dollar has no partner."""
        end = self.tokens[closer][1]
        inner, following = self.text[start:end], self.text[end + 1 : end + 2]
        if _MATHS.search(inner):
            return False
        if _AMOUNT.match(inner):
            ends_open = inner[-1] in _ENDS and _WORD.search(inner) is not None
            return ends_open or (following.isdigit() and not inner[-1].isdigit())
        if self.tokens[closer][0] != "$$" and self.dollars % 2 == 0:
            return False
        n_words = len(_WORD.findall(inner))
        return n_words > _MANY_WORDS or (n_words > 0 and inner[0] in _BEGINS and inner[-1] in _ENDS)
