"""fusion: checks of the lesson on fusion and reranking."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mirblab.lessons.exercises import exercise
from mirblab.lessons.hints import all_nearly_equal, check_function
from mirblab.retrieval import fusion


@exercise("minmax", "Now a BM25 score of 37 and a cosine of 0.8 can be added.")
def _minmax(answer: Any) -> str:
    cases = [([4.0, 2.0, 0.0],), ([10.0, 7.0, 5.0],), ([0.2, 0.9, 0.5],), ([-1.0, 3.0],), ([5.0, 5.0],)]
    if callable(answer):
        same = answer([5.0, 5.0])
        if hasattr(same, "__len__") and len(same) == 2 and not np.isfinite(np.asarray(same, float)).all():
            return (
                "For the input `[5.0, 5.0]`: all scores are equal, so you divided 0 by 0; the text gives their value."
            )
    mistakes = {
        "all scores are equal here, and the text gives another value for this case.": lambda s: [0.0] * len(s),
        "you divided by the largest score; subtract the smallest before.": lambda s: [x / max(s) for x in s],
        "you subtracted the smallest score, but the best is not 1 yet.": lambda s: [x - min(s) for x in s],
        "you divided by the largest score after subtracting; the best is then not 1.": lambda s: [
            (x - min(s)) / max(s) for x in s
        ],
        "these are shares of the sum, not of the range.": lambda s: [x / (sum(s) or 1) for x in s],
        "the order is reversed: the largest score should become 1 and the smallest 0.": lambda s: [
            (max(s) - x) / ((max(s) - min(s)) or 1) for x in s
        ],
        "the scores were sorted; keep them in the order of the list.": lambda s: sorted(_scaled(s), reverse=True),
    }
    return check_function(answer, cases, _scaled, mistakes)


@exercise("rrf", "The scores themselves are not used, so no scaling is needed.")
def _rrf(answer: Any) -> str:
    cases = [
        ([["a", "b"]], 60),
        ([["a", "b", "c"], ["c", "d"]], 60),
        ([["a", "b"], ["b", "a"]], 60),
        ([["a"], ["b"]], 1),
    ]
    if not callable(answer):
        return "A function is wanted here: give its name without brackets."
    mistakes = {
        "the ranks are off by one: the first document has rank 1.": _reciprocal(lambda rank, k: 1 / (k + rank - 1)),
        "the ranks are off by one in the other direction: the first document has rank 1.": _reciprocal(
            lambda rank, k: 1 / (k + rank + 1)
        ),
        "k was left out.": _reciprocal(lambda rank, k: 1 / rank),
        "k was given, but you used 60.": _reciprocal(lambda rank, k: 1 / (60 + rank)),
        "the ranks were added, so the worst documents come first.": _reciprocal(lambda rank, k: k + rank),
        "the last ranking wrote over the others; add up the contributions of all rankings.": lambda lists, k: {
            name: 1 / (k + rank) for own in lists for rank, name in enumerate(own, start=1)
        },
        "this is the mean of the contributions; RRF takes the sum.": _mean_reciprocal,
    }
    for rankings, k in cases:
        hint = _same_scores(answer(rankings, k), _true_rrf(rankings, k), mistakes, (rankings, k))
        if hint:
            return f"For the rankings `{rankings}` and k = {k}: {hint}"
    return ""


@exercise("held_out", "No query was used to choose the weight with which it is evaluated.")
def _held_out(answer: Any) -> str:
    few = [[0.9, 0.1], [0.2, 0.6], [0.3, 0.5], [0.4, 0.7]]
    more = [[0.1, 0.5, 0.9], [0.8, 0.6, 0.1], [0.7, 0.3, 0.2], [0.2, 0.4, 0.3], [0.9, 0.8, 0.1], [0.1, 0.2, 0.6]]
    cases = [(more, [0, 1, 2, 0, 1, 2]), (few, [0, 0, 1, 1]), (few, [0, 1, 0, 1])]
    mistakes = {
        "this is the best column over all queries: each query helped to choose its own weight.": lambda v, f: max(
            np.mean(v, axis=0)
        ),
        "each query got the weight that is best for it alone, which nobody can know.": lambda v, f: np.mean(
            np.max(v, axis=1)
        ),
        "the weight was chosen on the queries that are evaluated with it; take the other folds.": lambda v, f: _by_fold(
            v, f, lambda fold, own: fold == own
        ),
        "this is the value on the queries on which the weight was chosen; evaluate those that were held out.": _trained,
    }
    return check_function(answer, cases, lambda v, f: _by_fold(v, f, lambda fold, own: fold != own), mistakes)


@exercise("ceiling", "No reranker can exceed this value.")
def _ceiling(answer: Any) -> str:
    cases = [
        ([1, 0, 0, 1], 2, 4, 2), ([1, 0, 1, 0, 0], 4, 3, 3), ([0, 0, 1, 0, 1], 4, 3, 1), ([0, 1, 1, 1, 0], 5, 4, 2),
        ([1, 0, 0, 0, 1], 2, 3, 2), ([0, 0, 0], 3, 3, 1),
    ]  # fmt: skip
    mistakes = {
        "this is the recall before reranking: a perfect reranker moves relevant documents to the top.": (
            lambda found, n, depth, k: sum(found[:k]) / n
        ),
        "only k documents fit into the first k places, even if more relevant ones were in the shortlist.": (
            lambda found, n, depth, k: sum(found[:depth]) / n
        ),
        "the reranker gets only the first documents up to the depth, not the whole ranking.": (
            lambda found, n, depth, k: min(k, sum(found)) / n
        ),
        "divide by all relevant documents, also those that are not in the shortlist.": lambda found, n, depth, k: (
            min(k, sum(found[:depth])) / max(1, sum(found[:depth]))
        ),
        "this is precision: divide by the number of relevant documents, not by k.": lambda found, n, depth, k: (
            min(k, sum(found[:depth])) / k
        ),
        "this is a count, not a share.": lambda found, n, depth, k: min(k, sum(found[:depth])),
    }
    return check_function(answer, cases, lambda found, n, depth, k: min(k, sum(found[:depth])) / n, mistakes)


def _scaled(scores: Sequence[float]) -> list[float]:
    """Return the scores as scaled by the library, which are those of a fusion of one run with weight 1."""
    names = [f"d{place:02}" for place in range(len(scores))]
    run = pd.DataFrame({"query_id": "q", "doc_id": names, "score": scores})
    fused = fusion.linear([run], [1.0])
    return fused.set_index(fused.doc_id.astype(str)).score.loc[names].astype(float).tolist()


def _true_rrf(rankings: Sequence[Sequence[str]], k: float) -> dict[str, float]:
    runs = [
        pd.DataFrame({"query_id": "q", "doc_id": own, "score": np.arange(len(own), 0, -1, dtype=float)})
        for own in rankings
    ]
    fused = fusion.rrf(runs, k=k)
    return dict(zip(fused.doc_id.astype(str), fused.score.astype(float), strict=True))


def _reciprocal(earned: Callable[[int, float], float]) -> Callable[[Any, float], dict[str, float]]:
    def total(rankings: Sequence[Sequence[str]], k: float) -> dict[str, float]:
        found: dict[str, float] = {}
        for own in rankings:
            for rank, name in enumerate(own, start=1):
                found[name] = found.get(name, 0.0) + (earned(rank, k) if k + rank > 1 else np.inf)
        return found

    return total


def _mean_reciprocal(rankings: Sequence[Sequence[str]], k: float) -> dict[str, float]:
    total = _reciprocal(lambda rank, k: 1 / (k + rank))(rankings, k)
    return {name: score / sum(name in own for own in rankings) for name, score in total.items()}


def _same_scores(found: Any, right: Mapping[str, float], mistakes: Mapping[str, Callable], given: tuple) -> str:
    if not isinstance(found, Mapping):
        return f"a dictionary from documents to scores is wanted, but the answer is of type {type(found).__name__}."
    if set(found) != set(right):
        return "the dictionary must contain each document of any of the rankings, and no other."
    names = list(right)
    for hint, of in {"": lambda *_: right, **mistakes}.items():
        value = of(*given)
        if all_nearly_equal([found[name] for name in names], [value[name] for name in names], 1e-7):
            return hint
    wrong = next(name for name in names if not all_nearly_equal(found[name], right[name], 1e-7))
    return f"the score of '{wrong}' is too {'large' if found[wrong] > right[wrong] else 'small'}."


def _by_fold(values: Any, folds: Any, chosen: Callable[[np.ndarray, int], np.ndarray]) -> float:
    """Return the mean value of all queries, each with the column that is best on the queries that *chosen* gives."""
    table, fold = np.asarray(values, float), np.asarray(folds)
    best = {own: table[chosen(fold, own)].mean(axis=0).argmax() for own in np.unique(fold)}
    return float(np.mean([row[best[own]] for row, own in zip(table, fold, strict=True)]))


def _trained(values: Any, folds: Any) -> float:
    table, fold = np.asarray(values, float), np.asarray(folds)
    return float(np.mean([table[fold != own].mean(axis=0).max() for own in np.unique(fold)]))
