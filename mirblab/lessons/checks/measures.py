"""measures: checks of the lesson on measures; relevant means a grade of 2 or more, as in mini-qa."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mirblab.evaluation import measures
from mirblab.lessons.exercises import exercise
from mirblab.lessons.hints import check_function

_FROM = 2  # the lowest grade that counts as relevant
Grades = Sequence[int]
Unjudged = Sequence[int | None]  # grades, None where a document was not judged


@exercise("precision", "An empty place counts as a document that is not relevant.")
def _precision(answer: Any) -> str:
    cases = [([2, 0, 3, 0], 4), ([2, 1, 3, 0], 4), ([0, 3, 2, 2], 2), ([3, 2], 5)]

    def slips(grades: Grades, k: int) -> Mapping[str, float]:
        n_hits = _hits(grades[:k])
        return {
            "a grade of 1 was counted; a relevant document has a higher grade.": _hits(grades[:k], 1) / k,
            "all documents were counted, also those after the first k.": _hits(grades) / k,
            "you divided by the number of returned documents; a place left empty counts, too.": n_hits
            / len(grades[:k]),
            "you divided by the length of the list; k says how many places there are.": n_hits / len(grades),
            "this is a count, not a share of the first k.": n_hits,
            "this is recall: you divided by the number of relevant documents.": n_hits / max(1, _hits(grades)),
            "the grades were added; each relevant document counts 1.": sum(grades[:k]) / k,
        }

    return check_function(answer, cases, lambda grades, k: _value(f"P@{k}", grades, grades), slips)


@exercise("dcg", "DCG alone says little: a query with many relevant documents has a large DCG with almost any ranking.")
def _dcg_check(answer: Any) -> str:
    cases = [([3], 1), ([1, 1], 2), ([3, 0, 2], 3), ([2, 1, 3, 1], 2), ([2, 3], 5)]

    def slips(grades: Grades, k: int) -> Mapping[str, float]:
        first = grades[:k]
        return {
            "no grade is discounted: the lower a document is ranked, the less it counts.": sum(first),
            "this is the natural logarithm; the discount uses another base.": _dcg(first, lambda r: np.log(r + 1)),
            "this is the logarithm to base 10; the discount uses another base.": _dcg(first, lambda r: np.log10(r + 1)),
            "the ranks are off by one: the first document has rank 1, and its discount is 1.": (
                _dcg(first, lambda r: np.log2(r + 2))
            ),
            "you divided by the rank itself, not by its logarithm.": _dcg(first, float),
            "the gain is the grade itself here, not 2 to the power of the grade minus 1.": (
                _dcg([2**grade - 1 for grade in first])
            ),
            "you went beyond the first k documents.": _dcg(grades),
        }

    return check_function(answer, cases, lambda grades, k: _dcg(grades[:k]), slips)


@exercise("ndcg", "It agrees with the library and, through it, with trec_eval.")
def _ndcg(answer: Any) -> str:
    cases = [
        ([3, 2], [3, 2], 2), ([2, 3], [2, 3], 2), ([0, 2], [0, 2, 3], 2), ([3, 1, 2], [1, 2, 3, 2, 0], 2),
        ([0, 0], [0, 0], 2),
    ]  # fmt: skip

    def slips(grades: Grades, judged: Grades, k: int) -> Mapping[str, float]:
        ideals = {
            "this is DCG; divide it by the DCG of the ideal ranking.": 1.0,
            "your ideal ranking has only the documents that were returned; all judged ones belong in it.": (
                _dcg(sorted(grades, reverse=True)[:k])
            ),
            "your ideal ranking is not sorted: the best grade comes first.": _dcg(judged[:k]),
            "your ideal ranking is sorted in the wrong direction.": _dcg(sorted(judged)[:k]),
            "the ideal ranking has to be cut after k documents as well.": _dcg(sorted(judged, reverse=True)),
        }
        return {hint: _dcg(grades[:k]) / (ideal or 1.0) for hint, ideal in ideals.items()}

    return check_function(answer, cases, lambda grades, judged, k: _value(f"nDCG@{k}", grades, judged), slips)


@exercise("bpref", "Documents without a judgement did not change the value; this is the purpose of Bpref.")
def _bpref_check(answer: Any) -> str:
    cases = [
        ([3, 2], [3, 2]), ([3, 0], [0, 3, 2]), ([0, 3], [0, 3, 2]), ([None, 3, 0, 2], [3, 0, 2, 0]),
        ([0, 1, 0, 3], [0, 1, 0, 0, 3, 2]), ([0, 2], [0, 2, 2]),
    ]  # fmt: skip

    def slips(grades: Unjudged, judged: Grades) -> Mapping[str, float]:
        return {
            "None is not 0: a document without a judgement does not lower the value.": (
                _bpref([grade or 0 for grade in grades], judged)
            ),
            "a relevant document that is not returned contributes 0: divide by all that are judged relevant.": (
                _bpref(grades, judged, by_returned=True)
            ),
            "you always divided by R; look again at the denominator when N is smaller.": _bpref(grades, judged, "R"),
            "you always divided by N; look again at the denominator when R is smaller.": _bpref(grades, judged, "N"),
            "the numerator became too large when more than R such documents are ranked above.": (
                _bpref(grades, judged, is_capped=False)
            ),
            "a grade of 1 was counted as relevant; a relevant document has a higher grade.": (
                _bpref(grades, judged, relevant_from=1)
            ),
        }

    return check_function(answer, cases, lambda grades, judged: _value("Bpref", grades, judged), slips)


def _hits(grades: Unjudged, relevant_from: int = _FROM) -> int:
    return sum(grade is not None and grade >= relevant_from for grade in grades)


def _dcg(grades: Grades, discount: Callable[[int], float] = lambda rank: np.log2(rank + 1)) -> float:
    return float(sum(grade / discount(rank) for rank, grade in enumerate(grades, start=1)))


def _bpref(
    grades: Unjudged, judged: Grades, bound: str = "", by_returned: bool = False, is_capped: bool = True,
    relevant_from: int = _FROM,
) -> float:  # fmt: skip
    """Return Bpref with a mistake."""
    n_relevant = _hits(judged, relevant_from)
    n_against, before, earned = len(judged) - n_relevant, 0, 0.0
    below = {"R": n_relevant, "N": n_against}.get(bound, min(n_relevant, n_against))
    for grade in grades:
        if grade is not None and grade >= relevant_from:
            lost = min(before, n_relevant) if is_capped else before
            earned += 1 - (lost / below if below else 0)
        before += grade is not None and grade < relevant_from
    return earned / ((_hits(grades, relevant_from) if by_returned else n_relevant) or 1)


def _value(measure: str, grades: Unjudged, judged: Grades) -> float:
    """Return the library's value for a ranking: grades best first (None: not judged), and all judged grades."""
    missing, rows = list(judged), []
    for position, grade in enumerate(grades):
        if grade is not None:
            missing.remove(grade)
            rows.append((f"d{position:02}", grade))
    rows += [(f"e{position:02}", grade) for position, grade in enumerate(missing)]
    qrels = pd.DataFrame(rows, columns=["doc_id", "relevance"]).assign(query_id="q")
    run = pd.DataFrame({"query_id": "q", "doc_id": [f"d{n:02}" for n in range(len(grades))]})
    run["score"] = np.arange(len(grades), 0, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", measures.QueryWarning)
        return float(measures.evaluate(run, qrels, [measure], relevant_from=_FROM).value.iloc[0])
