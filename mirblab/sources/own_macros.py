r"""own_macros: what authors define for themselves, with `\newcommand` and its like, written out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from mirblab.sources import latex, unprinted

_DEFINES = re.compile(
    r"\\(?P<how>newcommand|renewcommand|providecommand|DeclareRobustCommand|DeclareMathOperator|def)\*?\s*"
    r"(?:\{\s*(?P<braced>\\[A-Za-z]+|\\.)\s*\}|(?P<bare>\\[A-Za-z]+|\\.))"
)
_COUNT = re.compile(r"\s*\[\s*(\d)\s*\]")
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|.)", re.DOTALL)
_ARGUMENT = re.compile(r"#([1-9])")
_ROUNDS, _GROWTH = 20, 50_000  # how deep definitions may use each other, and how long a text may become


@dataclass(frozen=True)
class Macro:
    """A command of its author: how many arguments it takes, the default of the first (None: it has none), its text."""

    n_arguments: int
    default: str | None
    body: str


def defined(source: str, odd: Counter[str]) -> dict[str, Macro]:
    r"""Return the commands that a *source* (without comments) defines, the last definition of each.

    Counted in *odd* and left alone: definitions with a pattern (`\def\f#1.{...}`) and those that do not end.

    >>> source = r"\DeclareMathOperator*{\rk}{rk}\newcommand\pair[2][x]{(#1,#2)}"
    >>> {name: (one.n_arguments, one.default, one.body) for name, one in defined(source, Counter()).items()}
    {'\\rk': (0, None, '\\operatorname{rk}'), '\\pair': (2, 'x', '(#1,#2)')}
    """
    found: dict[str, Macro] = {}
    ends = unprinted.brace_ends(source)
    for match in _DEFINES.finditer(source):
        name, at = match["braced"] or match["bare"], match.end()
        counted = _COUNT.match(source, at) if match["how"] not in ("def", "DeclareMathOperator") else None
        default, at = latex.option(source, counted.end()) if counted else ("", at)
        has_default = counted is not None and at > counted.end()
        at = re.compile(r"\s*").match(source, counted.end() if counted and not has_default else at).end()
        end = ends.get(at, -1)
        if end < 0:
            odd["definitions of commands that cannot be followed"] += 1
            continue
        body = source[at + 1 : end].strip().replace(r"\xspace", " ")
        body = rf"\operatorname{{{body}}}" if match["how"] == "DeclareMathOperator" else body
        found[name] = Macro(int(counted[1]) if counted else 0, default if has_default else None, body)
    return found


def circular(macros: Mapping[str, Macro]) -> set[str]:
    r"""Return the commands that need themselves to be written out.

    >>> sorted(circular({r"\a": Macro(0, None, r"\b"), r"\b": Macro(0, None, r"\a"), r"\c": Macro(0, None, r"\a")}))
    ['\\a', '\\b']
    """
    return _in_circles({name: macros.keys() & set(_COMMAND.findall(macros[name].body)) for name in macros})


def _in_circles(uses: Mapping[str, set[str]]) -> set[str]:
    """Return those that use themselves, through others or not."""
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    place = {name: number for number, name in enumerate(uses)}
    pairs = [(place[name], place[used]) for name in uses for used in uses[name]]
    if not pairs:
        return set()
    rows, columns = np.array(pairs).T
    graph = csr_array((np.ones(len(pairs), np.int8), (rows, columns)), shape=(len(uses), len(uses)))
    part_of = connected_components(graph, connection="strong")[1]
    sizes = np.bincount(part_of)
    return {name for name in uses if sizes[part_of[place[name]]] > 1 or name in uses[name]}


def expanded(text: str, macros: Mapping[str, Macro], odd: Counter[str]) -> str:
    r"""Return *text* with the *macros* written out, also those in what they stand for.

    A text that would become twenty times as long stays as it is, and is counted in *odd*.

    >>> expanded(r"Let $x \in \R^n$", {r"\R": Macro(0, None, r"\mathbb R")}, Counter())
    'Let $x \\in \\mathbb R^n$'
    """
    limit, start = 20 * len(text) + _GROWTH, text
    for _ in range(_ROUNDS):
        once = _once(text, macros, limit)
        if once == text:
            return text
        if once is None:
            break
        text = once
    odd["texts whose commands are too long written out (left as they are)"] += 1
    return start


def _once(text: str, macros: Mapping[str, Macro], limit: int) -> str | None:
    """Return *text* with its commands written out, or None where it becomes longer than *limit*."""
    parts, last, at, room = [], 0, 0, limit
    ends = unprinted.brace_ends(text)
    while match := _COMMAND.search(text, at):
        at = match.end()
        macro = macros.get(match[0])
        if macro is None:
            continue
        given, end = _arguments(text, at, macro, ends)
        body = _ARGUMENT.sub(lambda sign, given=given: "".join(given[int(sign[1]) - 1 : int(sign[1])]), macro.body)
        body = f"{{{body}}}" if match.start() and text[match.start() - 1] in "_^" else body
        # A command that ends in a letter must not run into the next one.
        gap = " " if re.search(r"\\[A-Za-z]+$", body) and text[end : end + 1].isalpha() else ""
        parts += [text[last : match.start()], body, gap]
        room -= sum(map(len, parts[-3:]))
        if room < 0:
            return None
        last = at = end
    return "".join([*parts, text[last:]]) if room >= len(text) - last else None


def _arguments(text: str, at: int, macro: Macro, ends: Mapping[int, int]) -> tuple[list[str], int]:
    """Return the arguments that follow position *at*, and where they end; blanks after a bare command are eaten."""
    given: list[str] = []
    if macro.default is not None:
        option, end = latex.option(text, at)
        given, at = [option if end > at else macro.default], end
    while len(given) < macro.n_arguments:
        start = re.compile(r"\s*").match(text, at).end()
        if text[start : start + 1] == "{":
            end = ends.get(start, -1)
            if end < 0:
                break
            given.append(text[start + 1 : end])
            at = end + 1
        else:
            token = _COMMAND.match(text, start)
            given.append(token[0] if token else text[start : start + 1])
            at = start + max(1, len(given[-1]))
    if not macro.n_arguments and text[at - 1 : at].isalpha():
        at = re.compile(r"[ \t]*(?:\n(?![ \t]*\n)[ \t]*)?").match(text, at).end() if text[at : at + 1].isspace() else at
    return given, at
