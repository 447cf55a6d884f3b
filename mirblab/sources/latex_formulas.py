"""latex_formulas: where the formulas of a LaTeX text begin and end, found in linear time whatever the text is."""

from __future__ import annotations

import re
from collections import Counter

_DISPLAYS = r"(?:equation|align|alignat|eqnarray|gather|multline|displaymath|math|flalign)\*?"
_OPENS_FORMULA = re.compile(r"\\\[|\\\(|\\begin\{(" + _DISPLAYS + r")\}|\\.|\$\$|\$", re.DOTALL)
_HIDDEN = re.compile("\ue000(\\d+)\ue001")


def hidden(text: str, odd: Counter[str]) -> tuple[str, list[str]]:
    r"""Return the text with a numbered mark for each formula, and the formulas; odd ones are counted in *odd*.

    >>> marked, formulas = hidden(r"Let $a$ be \[b\]", Counter())
    >>> formulas, shown(marked, formulas)
    (['$a$', '\\[b\\]'], 'Let $a$ be \\[b\\]')
    """
    parts: list[str] = []
    formulas: list[str] = []
    ends = _Ends(text)
    position = 0
    while match := _OPENS_FORMULA.search(text, position):
        end = ends.of(match)
        parts.append(text[position : match.start()])
        if end > 0:
            parts.append(f"\ue000{len(formulas)}\ue001")
            formulas.append(_formula(text[match.start() : end]))
        else:
            odd["formulas that do not close"] += end < 0
            parts.append(match[0] if match[0] not in ("$", "$$") else "")
        position = max(end, match.end())
    return "".join([*parts, text[position:]]), formulas


def shown(text: str, formulas: list[str]) -> str:
    """Return the *text* with the *formulas* in the place of their marks."""
    return _HIDDEN.sub(lambda match: formulas[int(match[1])], text)


class _Ends:
    """Where the formulas of a text end; what is searched for once in vain is not searched for again."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.missing: set[str] = set()
        self.dollars: dict[int, int] | None = None

    def of(self, opening: re.Match[str]) -> int:
        """Return where the formula ends that begins with *opening*, -1 when it does not, 0 when none begins."""
        mark = opening[0]
        if mark in (r"\[", r"\(") or opening[1]:
            closing = {r"\[": r"\]", r"\(": r"\)"}.get(mark, f"\\end{{{opening[1]}}}")
            end = -1 if closing in self.missing else self.text.find(closing, opening.end())
            self.missing |= {closing} if end < 0 else set()
            return end + len(closing) if end >= 0 else -1
        if mark[0] != "$":
            return 0
        if self.dollars is None:
            self.dollars = _next_dollars(self.text)
        end = self.dollars.get(opening.end() - 1, -1)
        return end + len(mark) if end >= 0 and self.text.startswith(mark, end) else -1


def _next_dollars(text: str) -> dict[int, int]:
    r"""Return for the place of each dollar the next one that stands no deeper in braces.

    One inside braces belongs to \text{...}, not to the formula around it.
    """
    following: dict[int, int] = {}
    waiting: list[tuple[int, int]] = []  # places and depths, of which no later one is less deep
    depth = 0
    for match in re.compile(r"\\.|[{}$]", re.DOTALL).finditer(text):
        if match[0] == "$":
            while waiting and waiting[-1][1] >= depth:
                following[waiting.pop()[0]] = match.start()
            waiting.append((match.start(), depth))
        depth += {"{": 1, "}": -1}.get(match[0], 0)
    return following


def _formula(source: str) -> str:
    source = re.sub(r"\\(?:nonumber|notag)(?![A-Za-z])", "", source)
    source = re.sub(r"\\(begin|end)\{equation\*?\}", "$$", source)
    source = " ".join(source.split())
    return " ".join(re.sub(r"^\$\$|\$\$$", lambda match: " $$ ", source).split())
