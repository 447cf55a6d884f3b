"""embedding: checks of the lesson on tokens, truncation and cosines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import acos, dist, hypot
from typing import Any

from mirblab.lessons.exercises import exercise, shorten
from mirblab.lessons.hints import check_function

# MiniLM's tokens of \frac{1}{n}; a test compares them with the tokenizer itself.
_FRACTION = ("\\", "fra", "##c", "{", "1", "}", "{", "n", "}")


@exercise("tokens", "The fraction has nine tokens, and only two of them are its numerator and denominator.")
def _tokens(answer: Any) -> str:
    if isinstance(answer, str):
        return "That is one string; write a list with one string for each token."
    if not isinstance(answer, list | tuple) or not all(isinstance(token, str) for token in answer):
        return f"A list of strings is wanted, but the answer is `{shorten(answer)}`."
    tokens = [token.strip() for token in answer]
    if tuple(tokens) == _FRACTION:
        return ""
    if "\\frac" in tokens or "frac" in tokens:
        return "The command is no token of the vocabulary; look again at the first row of the table."
    if "\\" not in tokens:
        return "A sign is missing: the backslash is a token of its own."
    if any(len(token) > 1 and not token.isalnum() and not token.startswith("##") for token in tokens):
        return "One of your tokens joins several signs; every punctuation mark and brace is a token of its own."
    if "".join(tokens).replace("##", "") == "".join(_FRACTION).replace("##", ""):
        if "##c" not in tokens and "c" in tokens:
            return "The text is right, but a token that continues a word carries a mark in front."
        return "The text is right, but it is cut in other places."
    if len(tokens) != len(_FRACTION):
        return f"You have too {'many' if len(tokens) > len(_FRACTION) else 'few'} tokens; each brace is a token."
    return "The number of tokens is right, but one of them or their order is wrong."


@exercise("share_read", "The rest of the text has no influence on the vector at all.")
def _share_read(answer: Any) -> str:
    def slips(n_tokens: int, limit: int) -> Mapping[str, float]:
        room = limit - 2
        return {
            "a share is never above 1: a short text is read to its end.": room / n_tokens,
            "that is the share that is lost.": 1 - min(1, room / n_tokens),
            "two of the places are taken by the marks.": min(1, limit / n_tokens),
            "the marks take two of the network's places; they are none of the text's tokens.": (
                min(1, limit / (n_tokens + 2))
            ),
            "you subtract only one mark; there are two.": min(1, (limit - 1) / n_tokens),
            "that is the number of tokens; return a share of the text.": min(n_tokens, room),
        }

    cases = [(508, 256), (100, 256), (254, 256), (255, 256), (5100, 512)]
    return check_function(answer, cases, lambda n_tokens, limit: min(1, (limit - 2) / n_tokens), slips)


@exercise("cosine", "The cosine depends only on the directions: doubling a vector does not change it.")
def _cosine(answer: Any) -> str:
    def truth(u: Sequence[float], v: Sequence[float]) -> float:
        return sum(a * b for a, b in zip(u, v, strict=True)) / (hypot(*u) * hypot(*v))

    def slips(u: Sequence[float], v: Sequence[float]) -> Mapping[str, float]:
        product = sum(a * b for a, b in zip(u, v, strict=True))
        return {
            "that is the sum of products; divide it by both lengths.": product,
            "the lengths need a square root.": product / (hypot(*u) * hypot(*v)) ** 2,
            "one of the lengths lacks its square root, or one length is used twice.": product / hypot(*u) ** 2,
            "you divide by one of the two lengths only.": product / hypot(*u),
            "that is the angle; return its cosine.": acos(max(-1.0, min(1.0, truth(u, v)))),
            "that is the distance of the end points, not the cosine of the angle.": dist(u, v),
            "the sign is lost; a cosine can be below 0.": abs(truth(u, v)),
            "you add the lengths; multiply them.": product / (hypot(*u) + hypot(*v)),
        }

    cases = [([3, 4], [4, 3]), ([1, 2, 2], [2, 1, 2]), ([2, 0, 0], [0, 5, 1]), ([1, -2], [-3, 6]), ([10, 1], [1, 0])]
    return check_function(answer, cases, truth, slips)
