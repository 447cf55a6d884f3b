"""judging: checks of the lesson on pools, judges who differ, and their agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

from mirblab.lessons.exercises import exercise
from mirblab.lessons.hints import check_function

Grades = Sequence[float]

_POOLS: tuple[tuple[list[list[str]], list[str], int], ...] = (
    ([["a", "b", "c", "e"], ["b", "d", "a", "f"]], ["b"], 2),
    ([["a", "b", "c"], ["b", "d", "a"]], [], 3),
    ([["a"], ["a"], ["a", "b"]], ["x"], 1),
    ([["a", "b"], ["b", "a"]], ["a", "b"], 2),
    ([["a", "b", "c", "d"]], ["d", "b"], 3),
)
_JUDGES = (
    ([0, 1, 2, 3], [0, 1, 3, 3]),
    ([0, 0, 1, 1], [1, 1, 0, 0]),
    ([2, 0, 1], [2, 0, 1]),
    ([0, 1, 1, 3, 2], [1, 1, 2, 3, 3]),
)
_GRADES = (([2, 0, 1, 3, 3],), ([3, 1],), ([0, 0, 3],), ([1],), ([3, 0, 2, 3],), ([0, 3, 3],))


@exercise("to_judge", "The more alike two systems are, the smaller is their pool.")
def _to_judge(answer: Any) -> str:
    def pool(rankings: Sequence[Sequence[str]], depth: int) -> list[str]:
        return [doc for ranking in rankings for doc in ranking[:depth]]

    def slips(rankings: Sequence[Sequence[str]], judged: Sequence[str], depth: int) -> Mapping[str, float]:
        first = pool(rankings, depth)
        common = set.intersection(*(set(ranking[:depth]) for ranking in rankings))
        whole = {doc for ranking in rankings for doc in ranking}
        return {
            "you count what is judged already, too.": len(set(first)),
            "a document that several systems return is judged once only.": len([d for d in first if d not in judged]),
            "you take the documents that every system returns; one system is enough.": len(common - set(judged)),
            "you take the whole rankings; only the first documents are pooled.": len(whole - set(judged)),
            "you subtract every judged document, also those that no system has among its first.": (
                len(set(first)) - len(judged)
            ),
        }

    return check_function(
        answer, _POOLS, lambda rankings, judged, depth: len(set(pool(rankings, depth)) - set(judged)), slips
    )


@exercise("alpha", "The library also counts how often each grade was given, since its grades are only ordered.")
def _alpha(answer: Any) -> str:
    def slips(first: Grades, second: Grades) -> Mapping[str, float]:
        observed, expected = _differences(first, second)
        plain = sum(one == other for one, other in zip(first, second, strict=True)) / len(first)
        return {
            "that is the share of equal grades; chance gives some of them, too.": plain,
            "that is the observed difference alone; compare it with the expected one.": observed,
            "that is the expected difference alone.": expected,
            "that is the ratio of the differences; 0 must mean chance, and 1 that all grades are equal.": (
                observed / expected
            ),
            "turn the ratio around: the observed difference is divided by the expected one.": 1 - expected / observed
            if observed
            else -99.0,
        }

    def truth(first: Grades, second: Grades) -> float:
        observed, expected = _differences(first, second)
        return 1 - observed / expected

    return check_function(answer, _JUDGES, truth, slips)


@exercise("merged", "Of two grades it takes the lower one: in doubt a document is not called relevant.")
def _merged(answer: Any) -> str:
    def slips(grades: Grades) -> Mapping[str, float]:
        ordered, n = sorted(grades), len(grades)
        return {
            "that is the mean, which need not be a grade.": sum(grades) / n,
            "of two grades in the middle take the lower one.": ordered[n // 2],
            "that is the highest grade.": ordered[-1],
            "that is the lowest grade.": ordered[0],
            "sort the grades first.": grades[(n - 1) // 2],
        }

    return check_function(answer, _GRADES, lambda grades: sorted(grades)[(len(grades) - 1) // 2], slips)


def _differences(first: Grades, second: Grades) -> tuple[float, float]:
    """Return the mean squared difference of grades of one document, and of any two grades."""
    every = list(permutations([*first, *second], 2))
    observed = sum((one - other) ** 2 for one, other in zip(first, second, strict=True)) / len(first)
    return observed, sum((one - other) ** 2 for one, other in every) / len(every)
