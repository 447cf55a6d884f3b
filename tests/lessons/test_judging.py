"""The checks of the lesson on judges: right answers pass, usual slips get a hint that names them."""

from __future__ import annotations

import statistics
from itertools import permutations

import pytest
from lesson_answers import hint_test, right_test


def _to_judge(rankings, judged, depth):
    return len({doc for ranking in rankings for doc in ranking[:depth]} - set(judged))


def _differences(first, second):
    every = list(permutations([*first, *second], 2))
    observed = sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) / len(first)
    return observed, sum((a - b) ** 2 for a, b in every) / len(every)


def _alpha(first, second):
    observed, expected = _differences(first, second)
    return 1 - observed / expected


RIGHT = {"to_judge": [_to_judge], "alpha": [_alpha], "merged": [statistics.median_low]}
WRONG = [
    ("to_judge", lambda rankings, judged, depth: _to_judge(rankings, [], depth), "judged already"),
    ("to_judge", lambda r, j, d: sum(doc not in j for one in r for doc in one[:d]), "judged once only"),
    ("to_judge", lambda rankings, judged, depth: _to_judge(rankings, judged, 99), "whole rankings"),
    ("to_judge", lambda r, j, d: len(set.intersection(*(set(one[:d]) for one in r)) - set(j)), "every system returns"),
    ("to_judge", lambda r, j, d: _to_judge(r, [], d) - len(j), "you subtract"),
    ("alpha", lambda a, b: sum(x == y for x, y in zip(a, b, strict=True)) / len(a), "share of equal grades"),
    ("alpha", lambda a, b: _differences(a, b)[0], "observed difference alone"),
    ("alpha", lambda a, b: _differences(a, b)[1], "expected difference alone"),
    ("alpha", lambda a, b: 1 - _alpha(a, b), "ratio of the differences"),
    ("alpha", lambda a, b: 1 - 1 / (1 - _alpha(a, b)), "turn the ratio around"),
    ("merged", statistics.mean, "that is the mean"),
    ("merged", max, "highest"),
    ("merged", min, "lowest"),
    ("merged", statistics.median_high, "take the lower one"),
    ("merged", lambda grades: grades[(len(grades) - 1) // 2], "sort the grades"),
]

test_right_answers_pass = right_test("judging", RIGHT)
test_a_usual_slip_gets_its_hint = hint_test("judging", WRONG)


def test_alpha_of_the_lesson_is_krippendorffs_for_intervals() -> None:
    """By hand: four documents, one of which gets 2 and 3."""
    assert _alpha([0, 1, 2, 3], [0, 1, 3, 3]) == pytest.approx(1 - 0.25 / (190 / 56))
