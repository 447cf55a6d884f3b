"""collection: checks of the lesson on test collections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from mirblab.lessons.exercises import check_number, exercise, shorten

_RANKINGS = [["d4", "d1", "d7", "d2"], ["d8", "d4", "d9"], ["d5"]]
_TRAIN = ["Every prime divides $n$.", "A ring is a group", "a  FIELD\nis a ring."]
_TEST = ["Every PRIME divides $n$.", "A group is a ring", "A field is a ring.", "An ideal is a kernel."]
_GRADES = [3, 3, 2, 2, 1, 1, 0, 0, 0, 0], [3, 2, 2, 2, 1, 0, 0, 0, 0, 1]


@exercise("density", "In a large collection the share is much smaller still.")
def _density(answer: Callable[[int, int, int], float]) -> Iterator[str]:
    for n_judged, n_queries, n_docs in ((6, 4, 5), (50, 10, 1000), (0, 5, 5)):
        slips = {} if not n_judged else {
            "you divide by the documents only, but each document could be judged for every query.":
                n_judged / n_docs,
            "you divide by the queries only, but every document could be judged for each query.":
                n_judged / n_queries,
            "a share is never above 1; your fraction is upside down.": n_queries * n_docs / n_judged,
            "you add queries and documents; count the pairs that they can form.": n_judged / (n_queries + n_docs),
        }  # fmt: skip
        case = f"density({n_judged}, {n_queries}, {n_docs})"
        yield check_number(answer(n_judged, n_queries, n_docs), n_judged / (n_queries * n_docs), case, slips)


@exercise("pool", "The judges of a campaign read only these documents.")
def _pool(answer: Callable[[list[list[str]], int], set[str]]) -> Iterator[str]:
    for rankings, depth in ((_RANKINGS[:2], 2), (_RANKINGS, 1), (_RANKINGS, 3)):
        given = [list(ranking) for ranking in rankings]
        yield _pool_hint(answer(given, depth), rankings, depth)
        if given != rankings:
            yield "Your function changes the rankings that it is given; build a new set instead."


def _pool_hint(found: Any, rankings: list[list[str]], depth: int) -> str:
    case = f"pool({rankings}, {depth})"
    parts = [set(ranking[:depth]) for ranking in rankings]
    truth = set().union(*parts)
    if not isinstance(found, set | frozenset | list | tuple) or not all(isinstance(doc, str) for doc in found):
        return f"For `{case}` a set of documents is wanted, but the answer is `{shorten(found)}`."
    twice = [doc for doc, times in Counter(found).items() if times > 1]
    if twice:
        return f"For `{case}`: `{twice[0]}` is in your pool more than once; a judge reads each document only once."
    found = set(found)
    if found == truth:
        return ""
    slips = {
        "those are the documents that all systems have in common; a pool has those of any system.": set.intersection(
            *parts
        ),
        "you used only one of the systems.": parts[0],
        "you took one document too few from each system.": set(chain(*(r[: depth - 1] for r in rankings))),
        "you took one document too many from each system.": set(chain(*(r[: depth + 1] for r in rankings))),
        "you took the whole rankings; take documents only down to the depth of the pool.": set(chain(*rankings)),
        "you took documents from the ends of the rankings; the best are at the beginning.": set(
            chain(*(r[-depth:] for r in rankings))
        ),
    }
    said = next((slip for slip, value in slips.items() if value == found), "")
    missing, surplus = len(truth - found), len(found - truth)
    return f"For `{case}`: " + (said or f"{missing} documents of the pool are missing, {surplus} do not belong to it.")


@exercise("leaked", "Real leaks are harder to find: other words, renamed variables, a translation.")
def _leaked(answer: Callable[[list[str], list[str]], list[str]]) -> str:
    if answer(list(_TRAIN[1:2]), list(_TEST[1:2])):
        return f"`{_TEST[1]}` is not `{_TRAIN[1]}`: the same words in another order are another text."
    found = answer(list(_TRAIN), list(_TEST))
    if not isinstance(found, list | tuple | set) or not all(isinstance(text, str) for text in found):
        return f"A list of texts is wanted, but the answer is `{shorten(found)}`."
    if set(found) == {_TEST[0], _TEST[2]} and len(found) == 2:
        return ""
    if not found:
        return "You found none. Here two texts are the same even if capitals or blanks differ."
    if set(found) & (set(_TRAIN) - set(_TEST)):
        return f"`{shorten(next(text for text in found if text in _TRAIN))}` is a text of the training set."
    if any(text not in _TEST for text in found):
        return "Return the test texts as they are written, not in the form in which you compare them."
    if _TEST[0] not in found:
        return f"`{_TEST[0]}` is missing: capitals make no difference here."
    if _TEST[2] not in found:
        return f"`{_TEST[2]}` is missing: several blanks and a new line count as one blank here."
    return f"You return {len(found)} texts, some of which are not leaked or are returned more than once."


@exercise("kappa", "Values between 0.4 and 0.6 are common for relevance judgements.")
def _kappa(answer: Callable[[list[int], list[int]], float]) -> Iterator[str]:
    for first, second in (([1, 1, 1, 0, 0], [1, 0, 1, 0, 1]), _GRADES, ([0, 1, 2], [0, 1, 2])):
        equal, chance = _agreements(first, second)
        slips = {
            "that is the plain share of equal grades; correct it for the agreement by chance.": equal,
            "you subtract the agreement by chance, but the division by the largest difference is missing.": equal
            - chance,
            "that is the agreement by chance alone.": chance,
            "that counts differences; compute the agreement.": 1 - equal,
            "you assume that all grades are equally likely; use the shares of the grades of each judge.": _even(
                first, second, equal
            ),
        }
        case = f"kappa({first}, {second})"
        yield check_number(answer(list(first), list(second)), (equal - chance) / (1 - chance), case, slips)


def _agreements(first: list[int], second: list[int]) -> tuple[float, float]:
    """Return the share of equal grades, and the share expected of two judges who draw from their own grades."""
    n = len(first)
    equal = sum(a == b for a, b in zip(first, second, strict=True)) / n
    return equal, sum(first.count(grade) / n * second.count(grade) / n for grade in set(first))


def _even(first: list[int], second: list[int], equal: float) -> float:
    chance = 1 / len({*first, *second})
    return (equal - chance) / (1 - chance)
