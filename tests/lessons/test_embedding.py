"""The checks of the lesson about embeddings: right answers pass, usual slips get a hint that names them."""

from __future__ import annotations

import math

import numpy as np
from lesson_answers import hint_test, right_test

import mirblab as lab

FRACTION = ["\\", "fra", "##c", "{", "1", "}", "{", "n", "}"]


def _cosine(u, v):
    return sum(a * b for a, b in zip(u, v, strict=True)) / (math.hypot(*u) * math.hypot(*v))


RIGHT = {
    "tokens": [FRACTION],
    "share_read": [lambda n, limit: min(1, (limit - 2) / n)],
    "cosine": [_cosine, lambda u, v: np.dot(u, v) / np.linalg.norm(u) / np.linalg.norm(v)],
}
WRONG = [
    ("tokens", ["\\frac", "{", "1", "}", "{", "n", "}"], "no token of the vocabulary"),
    ("tokens", ["\\", "fra", "c", "{", "1", "}", "{", "n", "}"], "carries a mark"),
    ("tokens", ["fra", "##c", "{", "1", "}", "{", "n", "}"], "backslash"),
    ("tokens", ["\\", "fra", "##c", "{1}", "{n}"], "joins several signs"),
    ("tokens", ["\\", "fra", "##c", "1", "n"], "too few"),
    ("tokens", ["\\", "fr", "##ac", "{", "1", "}", "{", "n", "}"], "cut in other places"),
    ("tokens", "".join(FRACTION), "one string"),
    ("tokens", 9, "list of strings"),
    ("share_read", lambda n, limit: min(1, limit / n), "taken by the marks"),
    ("share_read", lambda n, limit: (limit - 2) / n, "never above 1"),
    ("share_read", lambda n, limit: 1 - min(1, (limit - 2) / n), "share that is lost"),
    ("share_read", lambda n, limit: min(1, limit / (n + 2)), "none of the text's tokens"),
    ("share_read", lambda n, limit: min(n, limit - 2), "number of tokens"),
    ("share_read", lambda n, limit: 100 * min(1, (limit - 2) / n), "percent"),
    ("cosine", lambda u, v: sum(a * b for a, b in zip(u, v, strict=True)), "sum of products"),
    ("cosine", lambda u, v: math.dist(u, v), "distance"),
    ("cosine", lambda u, v: math.acos(min(1, max(-1, _cosine(u, v)))), "angle"),
    ("cosine", lambda u, v: abs(_cosine(u, v)), "sign is lost"),
    ("cosine", lambda u, v: _cosine(u, v) / math.hypot(*u) / math.hypot(*v), "square root"),
    ("cosine", lambda u, v: np.dot(u, v) / math.hypot(*u), "one of the two lengths"),
]


test_right_answers_pass = right_test("embedding", RIGHT)
test_a_wrong_answer_gets_its_hint = hint_test("embedding", WRONG, ("fra'", "##c", "0.96", "0.8889", "(limit - 2)"))


def test_the_tokens_asked_for_are_those_of_the_network():
    """The value by hand is what MiniLM's tokenizer says."""
    assert lab.encoder("minilm").tokens([r"\frac{1}{n}"])[0] == FRACTION
