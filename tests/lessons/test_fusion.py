"""The lesson about fusion and reranking: typical mistakes get the hint that names them."""

from __future__ import annotations

import numpy as np
from lesson_answers import hint_test

from mirblab.lessons import check


def test_an_array_is_as_good_as_a_list():
    """numpy may be used for scaling."""

    def scale(scores):
        scores = np.array(scores)
        span = scores.max() - scores.min()
        return (scores - scores.min()) / span if span else np.ones(len(scores))

    assert check("fusion.minmax", scale).passed


def rrf(rankings, k=60, first=1, earned=lambda place: 1 / place):
    total = {}
    for ranking in rankings:
        for rank, name in enumerate(ranking, start=first):
            total[name] = total.get(name, 0) + earned(k + rank)
    return total


def last_only(rankings, k=60):
    return {name: 1 / (k + rank) for ranking in rankings for rank, name in enumerate(ranking, start=1)}


def seen(values, folds):
    values, folds = np.array(values), np.array(folds)
    own = [row[values[folds == fold].mean(axis=0).argmax()] for row, fold in zip(values, folds, strict=True)]
    return float(np.mean(own))


def test_an_answer_may_use_up_the_rankings_that_it_gets():
    """It is compared with the truth for the rankings as they were."""

    def emptying(rankings, k=60):
        total = {}
        while rankings:
            ranking, rank = rankings.pop(), 0
            while ranking:
                rank, name = rank + 1, ranking.pop(0)
                total[name] = total.get(name, 0) + 1 / (k + rank)
        return total

    assert check("fusion.rrf", emptying).passed


WRONG = [
    ("minmax", lambda scores: [score / max(scores) for score in scores], "subtract the smallest"),
    ("minmax", lambda scores: [score - min(scores) for score in scores], "not 1 yet"),
    ("minmax", lambda scores: [score / sum(scores) for score in scores], "shares of the sum"),
    (
        "minmax",
        lambda scores: [(score - min(scores)) / (max(scores) - min(scores)) for score in scores],
        "ZeroDivisionError",
    ),
    (
        "minmax",
        lambda scores: [(score - min(scores)) / ((max(scores) - min(scores)) or 1) for score in scores],
        "all scores are equal here",
    ),
    ("minmax", lambda scores: max(scores), "a list of numbers is wanted"),
    ("rrf", lambda rankings, k=60: rrf(rankings, k, first=0), "off by one"),
    ("rrf", lambda rankings, k=60: rrf(rankings, 0), "k was left out"),
    ("rrf", lambda rankings, k=60: rrf(rankings, 60), "you used 60"),
    ("rrf", lambda rankings, k=60: rrf(rankings, k, earned=lambda place: place), "the ranks were added"),
    ("rrf", last_only, "wrote over"),
    ("rrf", lambda rankings, k=60: list(rrf(rankings, k).values()), "a dictionary"),
    ("rrf", lambda rankings, k=60: rrf(rankings[:1], k), "each document of any"),
    ("held_out", lambda values, folds: float(np.max(np.mean(values, axis=0))), "helped to choose its own weight"),
    ("held_out", lambda values, folds: float(np.mean(np.max(values, axis=1))), "nobody can know"),
    ("held_out", seen, "take the other folds"),
    ("ceiling", lambda found, n, depth, k: sum(found[:k]) / n, "before reranking"),
    ("ceiling", lambda found, n, depth, k: sum(found[:depth]) / n, "fit into the first k"),
    ("ceiling", lambda found, n, depth, k: min(k, sum(found)) / n, "not the whole ranking"),
    ("ceiling", lambda found, n, depth, k: min(k, sum(found[:depth])) / k, "this is precision"),
]


test_a_wrong_answer_gets_its_hint = hint_test("fusion", WRONG)
