"""unprinted: LaTeX without what is not printed in the text: labels, index entries, notes, code; all in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterable

# How many arguments in braces of a command are no text; what follows them, such as the words of a target, is text.
_ARGUMENTS = dict.fromkeys(
    """label index sindex glossary glsadd todo marginpar marginnote hypertarget pagestyle thispagestyle markright
    bibliography bibliographystyle input include includegraphics refstepcounter stepcounter""".split(),
    1,
)
_ARGUMENTS |= dict.fromkeys("nomenclature markboth addtocontents pdfbookmark".split(), 2) | {"addcontentsline": 3}
_SILENT = re.compile(r"\\(?:(?P<name>" + "|".join(_ARGUMENTS) + r")(?![A-Za-z])\*?|.)", re.DOTALL)
_OPTIONS = re.compile(r"\s*+(?:\[[^][]*+\]\s*+)*+")
_LINE_END = re.compile(r"(?:[ \t]*+\n(?![ \t]*+\n))?")
_ESCAPED_OR_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def brace_ends(text: str) -> dict[int, int]:
    r"""Return for the place of each brace that opens the place of the one that closes it; those without one not.

    >>> brace_ends(r"{a\}{b}}{")
    {4: 6, 0: 7}
    """
    ends: dict[int, int] = {}
    open_now: list[int] = []
    for match in _ESCAPED_OR_BRACE.finditer(text):
        if match[0] == "{":
            open_now.append(match.start())
        elif match[0] == "}" and open_now:
            ends[open_now.pop()] = match.start()
    return ends


def silenced(source: str) -> str:
    r"""Return *source* without the commands that print nothing where they stand, and without their arguments.

    >>> silenced(r"A \emph{ring}\index{ring!of $\{\}$}\label{a} is \hypertarget{b}{small}\todo[inline]{prove}.")
    'A \\emph{ring} is {small}.'
    """
    ends: dict[int, int] | None = None
    parts: list[str] = []
    at = blank = 0  # what is done, and up to where its line has shown nothing
    for match in _SILENT.finditer(source):
        if match["name"] is None or match.start() < at:
            continue
        ends = brace_ends(source) if ends is None else ends
        after = match.end()
        for _ in range(_ARGUMENTS[match["name"]]):
            start = _OPTIONS.match(source, after).end()
            if start not in ends:
                break
            after = ends[start] + 1
        else:
            parts.append(source[at : match.start()])
            line = max(source.rfind("\n", 0, match.start()) + 1, blank)
            if not source[line : match.start()].strip(" \t"):
                # A line of its own goes with its end, which would else become a blank line, a paragraph's end.
                after = _LINE_END.match(source, after).end()
                blank = after
            at = after
    return "".join([*parts, source[at:]])


def without(source: str, names: Iterable[str], instead: str = "") -> str:
    r"""Return *source* with *instead* in the place of the environments of the *names*; one that does not end stays.

    >>> without(r"a\begin{verbatim}\begin{lemma}\end{verbatim}b\begin{comment}", ["verbatim", "comment"])
    'ab\\begin{comment}'
    """
    begins = re.compile(r"\\begin\s*\{(" + "|".join(re.escape(name) for name in names) + r")\}")
    parts: list[str] = []
    endless: set[str] = set()
    at = place = 0
    while match := begins.search(source, place):
        place = match.end()
        end = None if match[1] in endless else ending(match[1]).search(source, place)
        if end is None:
            endless.add(match[1])
            continue
        parts += [source[at : match.start()], instead]
        at = place = end.end()
    return "".join([*parts, source[at:]])


def ending(name: str) -> re.Pattern[str]:
    """Return the pattern of the end of an environment."""
    return re.compile(r"\\end\s*\{" + re.escape(name) + r"\}")
