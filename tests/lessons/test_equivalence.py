"""The checks of the lesson about A = B: right answers pass, usual slips get a hint that names them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from lesson_answers import hint_test, right_test

import mirblab as lab
from mirblab.lessons.checks import equivalence


def _rank(scores, partner):
    return 1 + sum(score > scores[partner] for score in scores.values())


def _random_baseline(n):
    return sum(1 / rank for rank in range(1, n + 1)) / n


def _logs(cosines, scale=20):
    powers = np.exp(scale * np.array(cosines))
    return np.log(powers.diagonal() / powers.sum(axis=1))


def _loss(cosines, scale=20):
    return -_logs(cosines, scale).mean()


def _verdict(low, high):
    return "better" if low > 0 else "worse" if high < 0 else "unclear"


RIGHT = {"partner_rank": [_rank], "random_baseline": [_random_baseline], "loss": [_loss], "verdict": [_verdict]}
WRONG = [
    ("partner_rank", lambda scores, partner: _rank(scores, partner) - 1, "begin at 1"),
    ("partner_rank", lambda scores, partner: sorted(scores.values()).index(scores[partner]) + 1, "begin at 1|lowest"),
    ("partner_rank", lambda scores, partner: list(scores).index(partner) + 1, "place in the dictionary"),
    ("partner_rank", lambda scores, partner: scores[partner], "that is the score"),
    ("random_baseline", lambda n: 2 / (n + 1), "one over the mean rank"),
    ("random_baseline", lambda n: 1 / n, "rank 1 alone"),
    ("random_baseline", lambda n: n * _random_baseline(n), "what is their mean"),
    ("random_baseline", lambda n: (n + 1) / 2, "the mean rank"),
    ("random_baseline", lambda n: sum(1 / rank for rank in range(1, n)) / n, "too early"),
    ("random_baseline", lambda n: sum(1 / rank for rank in range(n)) / n, "ZeroDivisionError"),
    ("loss", lambda cosines, scale=20: -_loss(cosines, scale), "sign"),
    ("loss", lambda cosines, scale=20: -_logs(cosines, scale).sum(), "their mean"),
    ("loss", lambda cosines, scale=20: _loss(np.array(cosines).T, scale), "within columns"),
    ("loss", lambda cosines, scale=20: _loss(cosines, 1), "multiplied by the scale"),
    ("loss", lambda cosines, scale=20: _loss(cosines, scale) / math.log(2), "base 2"),
    ("loss", lambda cosines, scale=20: np.exp(_logs(cosines, scale)).mean(), "logarithms are missing"),
    ("loss", lambda cosines, scale=20: -np.log(np.exp(_logs(cosines, scale)).mean()), "logarithm of the mean"),
    ("verdict", lambda low, high: "better" if low + high > 0 else "worse", "middle"),
    ("verdict", lambda low, high: "better" if low >= 0 else "worse" if high <= 0 else "unclear", "ends belong"),
    ("verdict", lambda low, high: "worse" if low > 0 else "better" if high < 0 else "unclear", "which side"),
    ("verdict", lambda low, high: "unclear", "is 0 in this interval"),
    ("verdict", lambda low, high: low > 0, "the answer must be"),
]

HIDDEN = [f"{value:.3f}" for value in (_random_baseline(4), _loss(equivalence._BATCH), 1.0986)]


test_right_answers_pass = right_test("equivalence", RIGHT)
test_a_wrong_answer_gets_its_hint = hint_test("equivalence", WRONG, HIDDEN)


def test_the_loss_by_hand_is_the_one_that_trains():
    """Three vectors with the cosines of a batch have the same loss in the library, one way."""
    import torch

    from mirblab.train.loss import ranking_loss

    anchors = torch.eye(3)
    positives = torch.tensor([[0.6, 0.4, 0.1], [0.5, 0.5, 0.5], [0.2, 0.3, 0.4]])
    positives = torch.cat([positives, (1 - (positives**2).sum(dim=1, keepdim=True)).sqrt()], dim=1)
    anchors = torch.cat([anchors, torch.zeros(3, 1)], dim=1)
    trained = ranking_loss(anchors, positives, np.zeros((3, 3), bool), scale=20.0).item()
    assert trained == pytest.approx(equivalence.loss(equivalence._BATCH, 20), rel=1e-4)


def test_the_random_baseline_is_what_the_table_of_partners_says():
    """The expected reciprocal rank by hand is that of the last row of `partner_table`."""
    import pandas as pd

    row = {"collection": "c", "measure": "RR", "system": "s", "mean": 0.5, "low": 0.4, "high": 0.6, "n_queries": 9}
    table = lab.analysis.partner_table(pd.DataFrame([row]), others=10)
    assert table.frame.loc["by chance", "MRR"] == pytest.approx(_random_baseline(10))
