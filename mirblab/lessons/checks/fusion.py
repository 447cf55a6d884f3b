"""fusion: checks of the lesson on fusion and reranking."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd

from mirblab.lessons.exercises import exercise
from mirblab.lessons.hints import check_function, find_slip, nearly_equal
from mirblab.retrieval import fusion

Rankings = Sequence[Sequence[str]]


@exercise("minmax", "Now a BM25 score of 37 and a cosine of 0.8 can be added.")
def _minmax(answer: Any) -> str:
    cases = [([4.0, 2.0, 0.0],), ([10.0, 7.0, 5.0],), ([0.2, 0.9, 0.5],), ([-1.0, 3.0],), ([5.0, 5.0],)]
    if callable(answer):
        scaled = answer([5.0, 5.0])
        if hasattr(scaled, "__len__") and len(scaled) == 2 and not np.isfinite(np.asarray(scaled, float)).all():
            return (
                "For the input `[5.0, 5.0]`: all scores are equal, so you divided 0 by 0; the text gives their value."
            )

    def slips(scores: list[float]) -> Mapping[str, list[float]]:
        low, high = min(scores), max(scores)
        return {
            "all scores are equal here, and the text gives another value for this case.": [0.0 for _ in scores],
            "you divided by the largest score; subtract the smallest before.": [x / high for x in scores],
            "you subtracted the smallest score, but the best is not 1 yet.": [x - low for x in scores],
            "you divided by the largest score after subtracting; the best is then not 1.": (
                [(x - low) / high for x in scores]
            ),
            "these are shares of the sum, not of the range.": [x / (sum(scores) or 1) for x in scores],
            "the order is reversed: the largest score should become 1 and the smallest 0.": (
                [(high - x) / ((high - low) or 1) for x in scores]
            ),
            "the scores were sorted; keep them in the order of the list.": sorted(_scaled(scores), reverse=True),
        }

    return check_function(answer, cases, _scaled, slips)


@exercise("rrf", "The scores themselves are not used, so no scaling is needed.")
def _rrf(answer: Any) -> str:
    if not callable(answer):
        return "A function is wanted here: give its name without brackets."
    for rankings, k in (
        ([["a", "b"]], 60),
        ([["a", "b", "c"], ["c", "d"]], 60),
        ([["a", "b"], ["b", "a"]], 60),
        ([["a"], ["b"]], 1),
    ):
        hint = _rrf_hint(answer(deepcopy(rankings), k), rankings, k)  # an answer may empty the lists as it goes
        if hint:
            return f"For the rankings `{rankings}` and k = {k}: {hint}"
    return ""


def _rrf_hint(answer: Any, rankings: Rankings, k: float) -> str:
    right = _true_rrf(rankings, k)
    if not isinstance(answer, Mapping):
        return f"a dictionary from documents to scores is wanted, but the answer is of type {type(answer).__name__}."
    if set(answer) != set(right):
        return "the dictionary must contain each document of any of the rankings, and no other."
    n_rankings = {name: sum(name in ranking for ranking in rankings) for name in right}
    slips = {
        "the ranks are off by one: the first document has rank 1.": (
            _reciprocal(rankings, lambda rank: 1 / (k + rank - 1))
        ),
        "the ranks are off by one in the other direction: the first document has rank 1.": (
            _reciprocal(rankings, lambda rank: 1 / (k + rank + 1))
        ),
        "k was left out.": _reciprocal(rankings, lambda rank: 1 / rank),
        "k was given, but you used 60.": _reciprocal(rankings, lambda rank: 1 / (60 + rank)),
        "the ranks were added, so the worst documents come first.": _reciprocal(rankings, lambda rank: k + rank),
        "the last ranking wrote over the others; add up the contributions of all rankings.": {
            name: 1 / (k + rank) for ranking in rankings for rank, name in enumerate(ranking, start=1)
        },
        "this is the mean of the contributions; RRF takes the sum.": {
            name: score / n_rankings[name] for name, score in right.items()
        },
    }
    scores, truth = [answer[name] for name in right], list(right.values())
    if nearly_equal(scores, truth):
        return ""
    wrong = next(name for name in right if not nearly_equal(answer[name], right[name]))
    too = "large" if answer[wrong] > right[wrong] else "small"
    named = find_slip(scores, {hint: [values[name] for name in right] for hint, values in slips.items()})
    return named or f"the score of '{wrong}' is too {too}."


@exercise("held_out", "No query was used to choose the weight with which it is evaluated.")
def _held_out(answer: Any) -> str:
    few = [[0.9, 0.1], [0.2, 0.6], [0.3, 0.5], [0.4, 0.7]]
    more = [[0.1, 0.5, 0.9], [0.8, 0.6, 0.1], [0.7, 0.3, 0.2], [0.2, 0.4, 0.3], [0.9, 0.8, 0.1], [0.1, 0.2, 0.6]]
    cases = [(more, [0, 1, 2, 0, 1, 2]), (few, [0, 0, 1, 1]), (few, [0, 1, 0, 1])]

    def slips(values: Any, folds: Any) -> Mapping[str, float]:
        table, fold_of = np.asarray(values), np.asarray(folds)
        of_training = [table[fold_of != fold].mean(axis=0).max() for fold in set(folds)]
        return {
            "this is the best column over all queries: each query helped to choose its own weight.": (
                max(table.mean(axis=0))
            ),
            "each query got the weight that is best for it alone, which nobody can know.": table.max(axis=1).mean(),
            "the weight was chosen on the queries that are evaluated with it; take the other folds.": (
                _by_fold(values, folds, lambda fold: fold_of == fold)
            ),
            "this is the value on the queries on which the weight was chosen; evaluate those that were held out.": (
                float(np.mean(of_training))
            ),
        }

    def truth(values: Any, folds: Any) -> float:
        return _by_fold(values, folds, lambda fold: np.asarray(folds) != fold)

    return check_function(answer, cases, truth, slips)


@exercise("ceiling", "No reranker can exceed this value.")
def _ceiling(answer: Any) -> str:
    cases = [
        ([1, 0, 0, 1], 2, 4, 2), ([1, 0, 1, 0, 0], 4, 3, 3), ([0, 0, 1, 0, 1], 4, 3, 1), ([0, 1, 1, 1, 0], 5, 4, 2),
        ([1, 0, 0, 0, 1], 2, 3, 2), ([0, 0, 0], 3, 3, 1),
    ]  # fmt: skip

    def slips(relevant: list[int], n: int, depth: int, k: int) -> Mapping[str, float]:
        in_shortlist = sum(relevant[:depth])
        best = min(k, in_shortlist)
        return {
            "this is the recall before reranking: a perfect reranker moves relevant documents to the top.": (
                sum(relevant[:k]) / n
            ),
            "only k documents fit into the first k places, even if more relevant ones were in the shortlist.": (
                in_shortlist / n
            ),
            "the reranker gets only the first documents up to the depth, not the whole ranking.": (
                min(k, sum(relevant)) / n
            ),
            "divide by all relevant documents, also those that are not in the shortlist.": best / max(1, in_shortlist),
            "this is precision: divide by the number of relevant documents, not by k.": best / k,
            "this is a count, not a share.": best,
        }

    return check_function(answer, cases, lambda relevant, n, depth, k: min(k, sum(relevant[:depth])) / n, slips)


def _scaled(scores: Sequence[float]) -> list[float]:
    """Return the scores as the library scales them: a fusion of one run with weight 1."""
    names = [f"d{number:02}" for number in range(len(scores))]
    fused = fusion.linear([pd.DataFrame({"query_id": "q", "doc_id": names, "score": scores})], [1.0])
    return fused.set_index(fused.doc_id.astype(str)).score.loc[names].astype(float).tolist()


def _true_rrf(rankings: Rankings, k: float) -> dict[str, float]:
    runs = [
        pd.DataFrame({"query_id": "q", "doc_id": ranking, "score": np.arange(len(ranking), 0, -1, dtype=float)})
        for ranking in rankings
    ]
    fused = fusion.rrf(runs, k=k)
    return dict(zip(fused.doc_id.astype(str), fused.score.astype(float), strict=True))


def _reciprocal(rankings: Rankings, contribution: Callable[[int], float]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, name in enumerate(ranking, start=1):
            scores[name] = scores.get(name, 0.0) + contribution(rank)
    return scores


def _by_fold(values: Any, folds: Any, chosen: Callable[[int], np.ndarray]) -> float:
    """Return the mean value of all queries, each with the column that is best on the queries that *chosen* gives."""
    table = np.asarray(values, float)
    best = {fold: table[chosen(fold)].mean(axis=0).argmax() for fold in set(folds)}
    return float(np.mean([row[best[fold]] for row, fold in zip(table, folds, strict=True)]))
