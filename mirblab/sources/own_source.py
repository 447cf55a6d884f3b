"""own_source: LaTeX files made ready to be read: no comments, own commands written out, line numbers kept as marks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mirblab.sources import blueprint_nodes, latex, own_macros
from mirblab.sources.own_table import decoded

PROOFS = ("proof", "proof*", "pf", "Proof")
_PRINTED = re.compile(
    r"\\(?:newtheorem|spnewtheorem|newmdtheoremenv)\*?\s*\{([^{}]+)\}\s*(?:\[[^][]*\]\s*)?\{([^{}]*)\}"
    r"|\\declaretheorem\s*\[[^][]*\bname\s*=\s*\{?([^{},\]]+)[^][]*\]\s*\{([^{}]+)\}"
)
_ENVIRONMENT = re.compile(
    r"\\(?:new|renew)environment\*?\s*\{\s*(?P<name>[^{}]+?)\s*\}(?:\s*\[[^][]*\]){0,2}\s*"
    r"\{\s*(?P<hidden>\\comment\b)?|\\excludecomment\s*\{(?P<left_out>[^{}]+)\}"
)
_VERBATIM = re.compile(r"\\begin\s*\{(verbatim|lstlisting|minted|comment)\}.*?\\end\s*\{\1\}", re.DOTALL)
_BEGINS = re.compile(r"\\begin\s*\{")
_MARK = re.compile("\ue002(\\d+)\ue003")
_NEAR = 12  # characters that a mark takes at most


@dataclass
class Sources:
    """The texts of the files by name, the environments that hold statements, and what print calls them."""

    texts: dict[str, str]
    kinds: set[str]
    printed: dict[str, str]


def read(files: Mapping[str, Path], encoding: str, odd: Counter[str]) -> Sources:
    """Return LaTeX *files* (by their names for people) without comments and verbatim text, with marks for lines.

    Commands that any of the files defines are written out in all; environments that they define for other ends than
    statements are unwrapped, or left out where print leaves them out. What cannot be followed is counted in *odd*.
    """
    whole = {name: latex.strip_comments(_marked(decoded(path, encoding))) for name, path in files.items()}
    texts = {name: _VERBATIM.sub("", text) for name, text in whole.items()}
    plain = [unmarked(text) for text in texts.values()]
    macros, kinds, wrapped = own_macros.defined(plain, odd), blueprint_nodes.kinds(plain), _environments(plain)
    for name, text in texts.items():
        for environment in wrapped.keys() - kinds - set(PROOFS):
            text = _unwrapped(text, environment, wrapped[environment])
        texts[name] = own_macros.expanded(text, macros, odd)
    return Sources(texts, kinds - set(PROOFS), _printed(plain))


def unmarked(text: str) -> str:
    """Return *text* without the marks."""
    return _MARK.sub("", text)


def line_of(text: str, start: int) -> int:
    """Return the line of its file on which the environment stands that begins at *start*, 0 where it is not known."""
    marks = _MARK.findall(text, max(0, start - _NEAR), start)
    return int(marks[-1]) if marks else 0


def _marked(text: str) -> str:
    """Return *text* with its line number before each beginning of an environment, which outlives comments."""
    text = text.translate({0xE002: None, 0xE003: None})
    parts, last, line = [], 0, 1
    for match in _BEGINS.finditer(text):
        line += text.count("\n", last, match.start())
        parts += [text[last : match.start()], f"\ue002{line}\ue003"]
        last = match.start()
    return "".join([*parts, text[last:]])


def _printed(texts: Iterable[str]) -> dict[str, str]:
    r"""Return how environments are called in print: `\newtheorem{thm}{Theorem}` gives thm: theorem."""
    found = {}
    for text in texts:
        for name, printed, other, named in _PRINTED.findall(text):
            found[(name or named).strip()] = latex.clean(printed or other).casefold()
    return found


def _environments(texts: Iterable[str]) -> dict[str, bool]:
    """Return the environments that authors define for themselves, and whether print leaves out what stands in them."""
    found = {}
    for text in texts:
        for match in _ENVIRONMENT.finditer(text):
            found[(match["name"] or match["left_out"]).strip()] = bool(match["hidden"] or match["left_out"])
    return found


def _unwrapped(text: str, environment: str, is_hidden: bool) -> str:
    """Return *text* without the marks of an environment, and without what stands in it where print leaves it out."""
    name = re.escape(environment)
    if is_hidden:
        text = re.sub(rf"\\begin\s*\{{{name}\}}.*?\\end\s*\{{{name}\}}", "", text, flags=re.DOTALL)
    return re.sub(rf"\\(?:begin|end)\s*\{{{name}\}}", "", text)
