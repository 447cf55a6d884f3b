"""measures: checks of the lesson on measures; relevant means a grade of 2 or more, as in mini-qa."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mirblab.evaluation import measures
from mirblab.lessons.exercises import exercise
from mirblab.lessons.hints import check_function

_FROM = 2  # the lowest grade that counts as relevant
Grades = Sequence[int | None]


@exercise("precision", "An empty place counts as a document that is not relevant.")
def _precision(answer: Any) -> str:
    cases = [([2, 0, 3, 0], 4), ([2, 1, 3, 0], 4), ([0, 3, 2, 2], 2), ([3, 2], 5)]
    mistakes = {
        "a grade of 1 was counted; a relevant document has a higher grade.": lambda grades, k: _hits(grades[:k], 1) / k,
        "all documents were counted, also those after the first k.": lambda grades, k: _hits(grades) / k,
        "you divided by the number of returned documents; a place left empty counts, too.": lambda grades, k: (
            _hits(grades[:k]) / len(grades[:k])
        ),
        "you divided by the length of the list; k says how many places there are.": lambda grades, k: (
            _hits(grades[:k]) / len(grades)
        ),
        "this is a count, not a share of the first k.": lambda grades, k: _hits(grades[:k]),
        "this is recall: you divided by the number of relevant documents.": lambda grades, k: (
            _hits(grades[:k]) / max(1, _hits(grades))
        ),
        "the grades were added; each relevant document counts 1.": lambda grades, k: sum(grades[:k]) / k,
    }
    return check_function(answer, cases, lambda grades, k: _value(f"P@{k}", grades, grades), mistakes)


@exercise("dcg", "DCG alone says little: a query with many relevant documents has a large DCG with almost any ranking.")
def _dcg(answer: Any) -> str:
    cases = [([3], 1), ([1, 1], 2), ([3, 0, 2], 3), ([2, 1, 3, 1], 2), ([2, 3], 5)]
    discounted = _dcg_by(lambda grade: grade, lambda rank: np.log2(rank + 1))
    flat = _dcg_by(lambda grade: grade, lambda rank: 1.0)
    mistakes = {
        "no grade is discounted: the lower a document is ranked, the less it counts.": flat,
        "this is the natural logarithm; the discount uses another base.": _dcg_by(float, lambda rank: np.log(rank + 1)),
        "this is the logarithm to base 10; the discount uses another base.": _dcg_by(
            float, lambda rank: np.log10(rank + 1)
        ),
        "the ranks are off by one: the first document has rank 1, and its discount is 1.": _dcg_by(
            float, lambda rank: np.log2(rank + 2)
        ),
        "you divided by the rank itself, not by its logarithm.": _dcg_by(float, float),
        "the gain is the grade itself here, not 2 to the power of the grade minus 1.": _dcg_by(
            lambda grade: 2.0**grade - 1, lambda rank: np.log2(rank + 1)
        ),
        "you went beyond the first k documents.": lambda grades, k: discounted(grades, len(grades)),
    }
    return check_function(answer, cases, discounted, mistakes)


@exercise("ndcg", "It agrees with the library and, through it, with trec_eval.")
def _ndcg(answer: Any) -> str:
    dcg = _dcg_by(float, lambda rank: np.log2(rank + 1))
    cases = [
        ([3, 2], [3, 2], 2), ([2, 3], [2, 3], 2), ([0, 2], [0, 2, 3], 2), ([3, 1, 2], [1, 2, 3, 2, 0], 2),
        ([0, 0], [0, 0], 2),
    ]  # fmt: skip

    def over(ideal: Callable[[list, list, int], float]) -> Callable[..., float]:
        return lambda grades, judged, k: dcg(grades, k) / (ideal(grades, judged, k) or 1.0)

    mistakes = {
        "this is DCG; divide it by the DCG of the ideal ranking.": over(lambda grades, judged, k: 1.0),
        "your ideal ranking has only the documents that were returned; all judged ones belong in it.": over(
            lambda grades, judged, k: dcg(sorted(grades, reverse=True), k)
        ),
        "your ideal ranking is not sorted: the best grade comes first.": over(lambda grades, judged, k: dcg(judged, k)),
        "your ideal ranking is sorted in the wrong direction.": over(lambda grades, judged, k: dcg(sorted(judged), k)),
        "the ideal ranking has to be cut after k documents as well.": over(
            lambda grades, judged, k: dcg(sorted(judged, reverse=True), len(judged))
        ),
    }
    return check_function(answer, cases, lambda grades, judged, k: _value(f"nDCG@{k}", grades, judged), mistakes)


@exercise("bpref", "Documents without a judgement did not change the value; this is the purpose of Bpref.")
def _bpref(answer: Any) -> str:
    cases = [
        ([3, 2], [3, 2]), ([3, 0], [0, 3, 2]), ([0, 3], [0, 3, 2]), ([None, 3, 0, 2], [3, 0, 2, 0]),
        ([0, 1, 0, 3], [0, 1, 0, 0, 3, 2]), ([0, 2], [0, 2, 2]),
    ]  # fmt: skip
    mistakes = {
        "None is not 0: a document without a judgement does not lower the value.": _bpref_by(none_is=0),
        "a relevant document that is not returned contributes 0: divide by all that are judged relevant.": (
            _bpref_by(by_returned=True)
        ),
        "you always divided by R; look again at the denominator when N is smaller.": _bpref_by(bound="R"),
        "you always divided by N; look again at the denominator when R is smaller.": _bpref_by(bound="N"),
        "the numerator became too large when more than R such documents are ranked above.": _bpref_by(capped=False),
        "a grade of 1 was counted as relevant; a relevant document has a higher grade.": _bpref_by(relevant_from=1),
    }
    return check_function(answer, cases, lambda grades, judged: _value("Bpref", grades, judged), mistakes)


def _hits(grades: Grades, relevant_from: int = _FROM) -> int:
    return sum(grade is not None and grade >= relevant_from for grade in grades)


def _dcg_by(gain: Callable[[int], float], discount: Callable[[int], float]) -> Callable[[Grades, int], float]:
    def dcg(grades: Grades, k: int) -> float:
        return float(sum(gain(grade) / discount(rank) for rank, grade in enumerate(grades[:k], start=1)))

    return dcg


def _bpref_by(
    none_is: int | None = None, by_returned: bool = False, bound: str = "", capped: bool = True,
    relevant_from: int = _FROM,
) -> Callable[[Grades, Grades], float]:  # fmt: skip
    """Return Bpref with a mistake."""

    def bpref(grades: Grades, judged: Grades) -> float:
        n_relevant = _hits(judged, relevant_from)
        n_against, before, earned = len(judged) - n_relevant, 0, 0.0
        below = {"R": n_relevant, "N": n_against}.get(bound, min(n_relevant, n_against))
        for grade in (none_is if grade is None else grade for grade in grades):
            if grade is not None and grade >= relevant_from:
                lost = min(before, n_relevant) if capped else before
                earned += 1 - (lost / below if below else 0)
            before += grade is not None and grade < relevant_from
        return earned / ((_hits(grades, relevant_from) if by_returned else n_relevant) or 1)

    return bpref


def _value(measure: str, grades: Grades, judged: Grades) -> float:
    """Return a measure of a ranking from the library: grades best first (None: not judged), and all judged grades."""
    left, table = list(judged), []
    for place, grade in enumerate(grades):
        if grade is not None:
            left.remove(grade)
            table.append((f"d{place:02}", grade))
    table += [(f"e{place:02}", grade) for place, grade in enumerate(left)]
    qrels = pd.DataFrame(table, columns=["doc_id", "relevance"]).assign(query_id="q")
    run = pd.DataFrame({"query_id": "q", "doc_id": [f"d{n:02}" for n in range(len(grades))]})
    run["score"] = np.arange(len(grades), 0, -1)
    return float(_quiet(run, qrels, measure).value.iloc[0])


def _quiet(run: pd.DataFrame, qrels: pd.DataFrame, measure: str) -> pd.DataFrame:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", measures.QueryWarning)
        return measures.evaluate(run, qrels, [measure], relevant_from=_FROM)
