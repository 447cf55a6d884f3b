"""macros: an author's own commands put in place, within bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mirblab.formula.lexer import TOKEN

MOST = 20_000  # tokens that the macros of one formula may add; \a -> \a\a would otherwise never end
_PARAMETER = re.compile(r"#([1-9])")
Pair = tuple[str, tuple[int, int]]


def expand(
    tokens: list[str], spans: list[tuple[int, int]], macros: Mapping[str, str]
) -> tuple[list[str], list[tuple[int, int]], bool]:
    r"""Return tokens and spans with the macros put in place, again and again, and whether that was cut short.

    What a macro brings has the span of its command; its arguments keep theirs. `#1` to `#9` are arguments, in braces
    or one token each.

    >>> tokens, spans, _ = expand(["\\Gr", "2", ""], [(0, 3), (4, 5), (5, 5)], {"\\Gr": "G_#1"})
    >>> tokens, spans
    (['G', '_', '{', '2', '}', ''], [(0, 3), (0, 3), (4, 5), (4, 5), (4, 5), (5, 5)])
    """
    waiting = list(zip(reversed(tokens), reversed(spans), strict=True))
    done: list[Pair] = []
    bodies: dict[str, tuple[list[str], int]] = {}
    budget = MOST
    while waiting:
        token, span = waiting.pop()
        if token not in macros or budget <= 0:
            done.append((token, span))
            continue
        body, n_arguments = bodies.get(token) or bodies.setdefault(token, _body(macros[token]))
        arguments = [_argument(waiting) for _ in range(n_arguments)]
        brought = _filled(body, arguments, span, budget)
        budget -= len(brought) + 1
        waiting += reversed(brought)
    return [token for token, _ in done], [span for _, span in done], budget <= 0


def _body(text: str) -> tuple[list[str], int]:
    """Return the tokens of a macro's text, with #1 to #9 as tokens, and how many arguments it takes."""
    tokens: list[str] = []
    for place, part in enumerate(_PARAMETER.split(text)):
        tokens += [f"#{part}"] if place % 2 else [token for token in TOKEN.findall(part) if not token.isspace()]
    return tokens, max((int(digit) for digit in _PARAMETER.findall(text)), default=0)


def _argument(waiting: list[Pair]) -> list[Pair]:
    """Take the next argument off the stack: what is in braces, or one token."""
    if not waiting or not waiting[-1][0]:
        return []
    if waiting[-1][0] != "{":
        return [waiting.pop()]
    waiting.pop()
    found: list[Pair] = []
    level = 1
    while waiting and waiting[-1][0]:
        token = waiting[-1][0]
        level += (token == "{") - (token == "}")
        pair = waiting.pop()
        if not level:
            break
        found.append(pair)
    return found


def _filled(body: list[str], arguments: list[list[Pair]], span: tuple[int, int], most: int) -> list[Pair]:
    """Return the body with its arguments, each in braces of its own; no longer than *most*."""
    brought: list[Pair] = []
    for token in body:
        if len(brought) > most:
            break
        if len(token) == 2 and token[0] == "#":
            argument = arguments[int(token[1]) - 1]
            around = argument[0][1] if argument else span
            brought += [("{", around), *argument, ("}", around)]
        else:
            brought.append((token, span))
    return brought
