"""answers: what a chat model's answers must look like, read strictly; what is of no use says why in a word or two."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mirblab.shingles import fold

N_NEGATIVES = 3
_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"```(?:json)?\s*\n(?P<inner>.*)\n\s*```", re.DOTALL)
_PREAMBLE = re.compile(
    r"(?:sure|certainly|of course|okay)\b\s*[,!.:]"
    r"|(?:here(?:'s| is| are)|(?:the )?(?:reworded|rephras\w+))\b[^.\n$]{0,60}:",
    re.IGNORECASE,
)


class Unusable(Exception):
    """An answer is of no use; the text is the reason, out of a few, so that they can be counted."""


@dataclass(frozen=True)
class Reply:
    """What a model answered, and why it stopped: "stop", or "length" when it was cut off."""

    text: str
    finish: str = "stop"


@dataclass(frozen=True)
class Parts:
    """A statement taken apart."""

    hypotheses: list[str]
    conclusions: list[str]
    normalized_form: str


def decomposition(reply: Reply) -> Parts:
    """Return the parts that an answer names: a JSON object, alone or in one fence of code.

    Raises Unusable: "empty", "cut off", "no JSON", "other JSON" (lists of texts are wanted), "no conclusion".

    >>> decomposition(Reply('{"hypotheses": ["x is even"], "conclusions": ["x + 2 is even"]}')).conclusions
    ['x + 2 is even']
    """
    found = _json(reply)
    form = found.get("normalized_form", "")
    hypotheses, conclusions = (_texts(found.get(name)) for name in ("hypotheses", "conclusions"))
    if not isinstance(form, str):
        raise Unusable("other JSON")
    if not conclusions:
        raise Unusable("no conclusion")
    return Parts(hypotheses, conclusions, form.strip())


def rephrasing(reply: Reply, statement: str) -> str:
    """Return the new text of a *statement*.

    Raises Unusable: "empty", "cut off", "unchanged" (but for case and blanks), "not a statement alone" (a fence of
    code, or an introduction such as "Here is ...").

    >>> rephrasing(Reply(" Twice a number is even. "), "2n is even")
    'Twice a number is even.'
    """
    text = _text(reply)
    if text.startswith("```") or _PREAMBLE.match(text):
        raise Unusable("not a statement alone")
    if fold(text) == fold(statement):
        raise Unusable("unchanged")
    return text


def negatives(reply: Reply, statement: str) -> list[str]:
    """Return the three wrong versions of a *statement* that an answer holds.

    Raises Unusable: as `decomposition`, "not three", and "repeats" (each other, or the statement).

    >>> negatives(Reply('{"hard_negatives": ["a < b", "a = b", "a > c"]}'), "a > b")
    ['a < b', 'a = b', 'a > c']
    """
    found = _texts(_json(reply).get("hard_negatives"))
    if len(found) != N_NEGATIVES:
        raise Unusable("not three")
    if len({fold(text) for text in [*found, statement]}) != N_NEGATIVES + 1:
        raise Unusable("repeats")
    return found


def _text(reply: Reply) -> str:
    """Return the answer without what a model thought aloud before it."""
    text = _THOUGHT.sub("", reply.text, count=1) if reply.text.lstrip().startswith("<think>") else reply.text
    if reply.finish == "length" or text.lstrip().startswith("<think>"):
        raise Unusable("cut off")
    if not text.strip():
        raise Unusable("empty")
    return text.strip()


def _json(reply: Reply) -> dict[str, Any]:
    text = _text(reply)
    fenced = _FENCED.fullmatch(text)
    try:
        found = json.loads(fenced["inner"] if fenced else text)
    except (ValueError, RecursionError):
        raise Unusable("no JSON") from None
    if not isinstance(found, dict):
        raise Unusable("other JSON")
    return found


def _texts(value: Any) -> list[str]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise Unusable("other JSON")
    if not all(isinstance(item, str) and item.strip() for item in value):
        raise Unusable("other JSON")
    return [item.strip() for item in value]
