"""The lesson about measures by hand: typical mistakes get the hint that names them."""

from __future__ import annotations

import math

from lesson_answers import hint_test

from mirblab.lessons import check


def dcg(grades, k, log=math.log2, add=1):
    return sum(grade / log(rank + add) for rank, grade in enumerate(grades[:k], start=1))


def ideal(judged, k):
    return dcg(sorted(judged, reverse=True), k) or 1.0


def bpref(grades, judged, bound=min, none_is=None):
    n_relevant = sum(grade >= 2 for grade in judged)
    n_against, before, earned = len(judged) - n_relevant, 0, 0.0
    for grade in (none_is if grade is None else grade for grade in grades):
        if grade is not None and grade >= 2:
            earned += 1 - min(before, n_relevant) / (bound(n_against, n_relevant) or 1)
        before += grade is not None and grade < 2
    return earned / n_relevant


def hits(grades):
    return sum(grade is not None and grade >= 2 for grade in grades)


WRONG = [
    ("precision", lambda grades, k: sum(grade >= 1 for grade in grades[:k]) / k, "grade of 1"),
    ("precision", lambda grades, k: sum(grade >= 2 for grade in grades) / k, "after the first k"),
    ("precision", lambda grades, k: sum(grade >= 2 for grade in grades[:k]) / len(grades[:k]), "left empty"),
    ("precision", lambda grades, k: sum(grade >= 2 for grade in grades[:k]), "a count"),
    ("precision", lambda grades, k: "0.5", "one number is wanted"),
    ("precision", 0.5, "A function is wanted"),
    ("dcg", lambda grades, k: sum(grades[:k]), "discounted"),
    ("dcg", lambda grades, k: dcg(grades, k, math.log), "natural logarithm"),
    ("dcg", lambda grades, k: dcg(grades, k, add=2), "off by one"),
    ("dcg", lambda grades, k: dcg(grades, k, add=0), "ZeroDivisionError"),
    ("dcg", lambda grades, k: dcg([2**grade - 1 for grade in grades], k), "2 to the power"),
    ("dcg", lambda grades, k: dcg(grades, len(grades)), "beyond the first k"),
    ("ndcg", lambda grades, judged, k: dcg(grades, k), "this is DCG"),
    ("ndcg", lambda grades, judged, k: dcg(grades, k) / ideal(grades, k), "only the documents that were returned"),
    ("ndcg", lambda grades, judged, k: dcg(grades, k) / (dcg(judged, k) or 1), "not sorted"),
    ("ndcg", lambda grades, judged, k: dcg(grades, k) / ideal(judged, 99), "cut after k"),
    ("ndcg", lambda grades, judged, k: dcg(grades, k) / dcg(sorted(judged, reverse=True), k), "ZeroDivisionError"),
    ("bpref", lambda grades, judged: bpref(grades, judged, none_is=0), "None is not 0"),
    ("bpref", lambda grades, judged: bpref(grades, judged, bound=lambda n, r: r), "always divided by R"),
    ("bpref", lambda grades, judged: bpref(grades, judged, bound=lambda n, r: n), "always divided by N"),
    ("bpref", lambda grades, judged: bpref(grades, judged) * hits(judged) / hits(grades), "not returned"),
]


test_a_wrong_answer_gets_its_hint = hint_test("measures", WRONG)


def test_an_unknown_mistake_still_gets_a_direction():
    """Too large or too small, and for which input."""
    verdict = check("measures.dcg", lambda grades, k: 0.9 * dcg(grades, k))
    assert "too small" in verdict.message and "[3], 1" in verdict.message
