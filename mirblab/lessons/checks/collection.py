"""collection: checks of the lesson on test collections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from mirblab.lessons.exercises import exercise, shorten
from mirblab.lessons.hints import check_function

_RANKINGS = [["d4", "d1", "d7", "d2"], ["d8", "d4", "d9"], ["d5"]]
_TRAIN = ["Every prime divides $n$.", "A ring is a group", "a  FIELD\nis a ring."]
_TEST = ["Every PRIME divides $n$.", "A group is a ring", "A field is a ring.", "An ideal is a kernel."]
_GRADES = [3, 3, 2, 2, 1, 1, 0, 0, 0, 0], [3, 2, 2, 2, 1, 0, 0, 0, 0, 1]


@exercise("density", "In a large collection the share is much smaller still.")
def _density(answer: Any) -> str:
    def slips(n_judged: int, n_queries: int, n_docs: int) -> Mapping[str, float]:
        if not n_judged:
            return {}
        return {
            "you divide by the documents only, but each document could be judged for every query.": n_judged / n_docs,
            "you divide by the queries only, but every document could be judged for each query.": n_judged / n_queries,
            "a share is never above 1; your fraction is upside down.": n_queries * n_docs / n_judged,
            "you add queries and documents; count the pairs that they can form.": n_judged / (n_queries + n_docs),
        }

    cases = [(6, 4, 5), (50, 10, 1000), (0, 5, 5)]
    return check_function(answer, cases, lambda n_judged, n_queries, n_docs: n_judged / (n_queries * n_docs), slips)


@exercise("pool", "The judges of a campaign read only these documents.")
def _pool(answer: Callable[[list[list[str]], int], set[str]]) -> str:
    for rankings, depth in ((_RANKINGS[:2], 2), (_RANKINGS, 1), (_RANKINGS, 3)):
        given = [list(ranking) for ranking in rankings]
        hint = _pool_hint(answer(given, depth), rankings, depth)
        if hint:
            return f"For `pool({rankings}, {depth})`: {hint}"
        if given != rankings:
            return "Your function changes the rankings that it is given; build a new set instead."
    return ""


def _pool_hint(answer: Any, rankings: list[list[str]], depth: int) -> str:
    if not isinstance(answer, set | frozenset | list | tuple) or not all(isinstance(doc, str) for doc in answer):
        return f"a set of documents is wanted, but the answer is `{shorten(answer)}`."
    twice = [doc for doc, times in Counter(answer).items() if times > 1]
    if twice:
        return f"`{twice[0]}` is in your pool more than once; a judge reads each document only once."

    def pool(cut: slice) -> set[str]:
        return {doc for ranking in rankings for doc in ranking[cut]}

    pool_of_answer, truth = set(answer), pool(slice(depth))
    if pool_of_answer == truth:
        return ""
    tops = [set(ranking[:depth]) for ranking in rankings]
    slips = {
        "those are the documents that all systems have in common; a pool has those of any system.": (
            set.intersection(*tops)
        ),
        "you used only one of the systems.": tops[0],
        "you took one document too few from each system.": pool(slice(depth - 1)),
        "you took one document too many from each system.": pool(slice(depth + 1)),
        "you took the whole rankings; take documents only down to the depth of the pool.": pool(slice(None)),
        "you took documents from the ends of the rankings; the best are at the beginning.": pool(slice(-depth, None)),
    }
    n_missing, n_surplus = len(truth - pool_of_answer), len(pool_of_answer - truth)
    other = f"{n_missing} documents of the pool are missing, {n_surplus} do not belong to it."
    return next((hint for hint, value in slips.items() if value == pool_of_answer), other)


@exercise("leaked", "Real leaks are harder to find: other words, renamed variables, a translation.")
def _leaked(answer: Callable[[list[str], list[str]], list[str]]) -> str:
    if answer(list(_TRAIN[1:2]), list(_TEST[1:2])):
        return f"`{_TEST[1]}` is not `{_TRAIN[1]}`: the same words in another order are another text."
    texts = answer(list(_TRAIN), list(_TEST))
    if not isinstance(texts, list | tuple | set) or not all(isinstance(text, str) for text in texts):
        return f"A list of texts is wanted, but the answer is `{shorten(texts)}`."
    if set(texts) == {_TEST[0], _TEST[2]} and len(texts) == 2:
        return ""
    if not texts:
        return "You found none. Here two texts are the same even if capitals or blanks differ."
    if set(texts) & (set(_TRAIN) - set(_TEST)):
        return f"`{shorten(next(text for text in texts if text in _TRAIN))}` is a text of the training set."
    if any(text not in _TEST for text in texts):
        return "Return the test texts as they are written, not in the form in which you compare them."
    if _TEST[0] not in texts:
        return f"`{_TEST[0]}` is missing: capitals make no difference here."
    if _TEST[2] not in texts:
        return f"`{_TEST[2]}` is missing: several blanks and a new line count as one blank here."
    return f"You return {len(texts)} texts, some of which are not leaked or are returned more than once."


@exercise("kappa", "Values between 0.4 and 0.6 are common for relevance judgements.")
def _kappa(answer: Any) -> str:
    def slips(first: list[int], second: list[int]) -> Mapping[str, float]:
        equal, chance = _agreements(first, second)
        even = 1 / len({*first, *second})
        return {
            "that is the plain share of equal grades; correct it for the agreement by chance.": equal,
            "you subtract the agreement by chance, but the division by the largest difference is missing.": (
                equal - chance
            ),
            "that is the agreement by chance alone.": chance,
            "that counts differences; compute the agreement.": 1 - equal,
            "you assume that all grades are equally likely; use the shares of the grades of each judge.": (
                (equal - even) / (1 - even)
            ),
        }

    def truth(first: list[int], second: list[int]) -> float:
        equal, chance = _agreements(first, second)
        return (equal - chance) / (1 - chance)

    cases = [([1, 1, 1, 0, 0], [1, 0, 1, 0, 1]), _GRADES, ([0, 1, 2], [0, 1, 2])]
    return check_function(answer, cases, truth, slips)


def _agreements(first: list[int], second: list[int]) -> tuple[float, float]:
    n = len(first)
    equal = sum(a == b for a, b in zip(first, second, strict=True)) / n
    return equal, sum(first.count(grade) / n * second.count(grade) / n for grade in set(first))
