"""Lesson 1: the checks know right answers from typical wrong ones, and say which mistake it was."""

from __future__ import annotations

import pytest
from lesson_answers import hint_test, right_test


def pool(rankings, depth):
    return {doc for ranking in rankings for doc in ranking[:depth]}


def leaked(train, test):
    seen = {" ".join(text.lower().split()) for text in train}
    return [text for text in test if " ".join(text.lower().split()) in seen]


def kappa(first, second):
    n = len(first)
    a = sum(x == y for x, y in zip(first, second, strict=True)) / n
    e = sum(first.count(g) / n * second.count(g) / n for g in set(first))
    return (a - e) / (1 - e)


def less_chance(first, second):
    n = len(first)
    e = sum(first.count(g) / n * second.count(g) / n for g in set(first))
    return sum(map(int.__eq__, first, second)) / n - e


RIGHT = {
    "density": [lambda judged, queries, docs: judged / queries / docs],
    "pool": [pool, lambda rankings, depth: sorted(pool(rankings, depth))],
    "leaked": [leaked, lambda train, test: tuple(leaked(train, test))],
    "kappa": [kappa],
}
WRONG = [
    ("density", lambda judged, queries, docs: judged / docs, "documents only"),
    ("density", lambda judged, queries, docs: judged / queries, "queries only"),
    ("density", lambda judged, queries, docs: 100 * judged / (queries * docs), "percent"),
    ("density", lambda judged, queries, docs: queries * docs / judged, "upside down"),
    ("density", lambda judged, queries, docs: judged / (queries + docs), "add queries and documents"),
    ("density", lambda judged, queries, docs: judged / (queries * docs) + 0.01, "too large"),
    ("density", lambda judged, queries, docs: 0 * judged / docs, "too small"),
    ("pool", lambda rankings, depth: set.intersection(*(set(r[:depth]) for r in rankings)), "in common"),
    ("pool", lambda rankings, depth: [d for r in rankings for d in r[:depth]], "more than once"),
    ("pool", lambda rankings, depth: pool(rankings, depth - 1), "one document too few"),
    ("pool", lambda rankings, depth: pool(rankings, depth + 1), "one document too many"),
    ("pool", lambda rankings, depth: pool(rankings, 99), "whole rankings"),
    ("pool", lambda rankings, depth: pool(rankings[:1], depth), "only one of the systems"),
    ("pool", lambda rankings, depth: len(pool(rankings, depth)), "a set of documents is wanted"),
    ("pool", lambda rankings, depth: pool([rankings.pop()], depth), ""),
    ("leaked", lambda train, test: [text for text in test if text in train], "You found none"),
    ("leaked", lambda train, test: [t for t in test if t.lower() in str(train).lower()], "blanks and a new line"),
    ("leaked", lambda train, test: [t for t in test if t.split() in [x.split() for x in train]], "You found none"),
    ("leaked", lambda train, test: [t.lower() for t in leaked(train, test)], "as they are written"),
    ("leaked", lambda train, test: leaked(test, train), "of the training set"),
    ("leaked", lambda train, test: [t for t in test if sorted(t) in [sorted(x) for x in train]], "another order"),
    ("leaked", lambda train, test: len(leaked(train, test)), "A list of texts"),
    ("kappa", lambda first, second: sum(map(int.__eq__, first, second)) / len(first), "plain share"),
    ("kappa", lambda first, second: less_chance(first, second), "the division by the largest"),
    ("kappa", lambda first, second: (sum(map(int.__eq__, first, second)) / len(first) - 0.5) * 2, ""),
    ("kappa", lambda first, second: 1 - sum(map(int.__eq__, first, second)) / len(first), "counts differences"),
    ("kappa", lambda first, second: kappa(first, second) + 0.1, "too large"),
]  # fmt: skip


test_right_answers_pass = right_test("collection", RIGHT)
test_a_wrong_answer_gets_its_hint = hint_test("collection", WRONG)


def test_kappa_agrees_with_scikit_learn():
    """The truth that the check uses is not only ours."""
    from sklearn.metrics import cohen_kappa_score

    from mirblab.lessons.checks.collection import _GRADES

    assert kappa(*_GRADES) == pytest.approx(cohen_kappa_score(*_GRADES))
