"""The lesson about significance: typical mistakes get the hint that names them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from lesson_answers import hint_test

from mirblab.lessons import check


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_resamples", [2000, 10_000])
def test_any_seed_gives_an_interval_that_passes(seed, n_resamples):
    """The check allows for sampling error."""

    def interval(differences):
        drawn = np.random.default_rng(seed).choice(differences, size=(n_resamples, len(differences)))
        return np.quantile(drawn.mean(axis=1), [0.025, 0.975])

    assert check("significance.interval", interval).passed


def flipped(differences):
    return (np.array(list(product([1, -1], repeat=len(differences)))) * np.array(differences)).mean(axis=1)


def resampled(differences, replace=True):
    rng, n = np.random.default_rng(1), len(differences)
    return np.array([rng.choice(differences, n, replace=replace).mean() for _ in range(3000)])


def step(p, cap=1.0, rising=True):
    order = np.argsort(p)
    found = np.asarray(p)[order] * np.arange(len(p), 0, -1)
    found = np.maximum.accumulate(found) if rising else found
    made = np.empty(len(p))
    made[order] = np.minimum(cap, found)
    return made


WRONG = [
    ("standard_error", lambda d: np.std(d, ddof=1), "of one query"),
    ("standard_error", lambda d: np.std(d) / np.sqrt(len(d)), "almost"),
    ("standard_error", lambda d: np.std(d, ddof=1) / len(d), "more slowly"),
    ("standard_error", lambda d: np.var(d, ddof=1), "variance"),
    ("sign_flip", lambda d: (flipped(d) >= np.mean(d) - 1e-12).mean(), "one side only"),
    ("sign_flip", lambda d: (np.abs(flipped(d)) > abs(np.mean(d)) + 1e-12).mean(), "the observed one is among them"),
    ("sign_flip", lambda d: (np.abs(flipped(d)) >= abs(np.mean(d)) - 1e-12).sum(), "a count of combinations"),
    ("interval", lambda d: np.quantile(resampled(d, replace=False), [0.025, 0.975]), "with replacement"),
    ("interval", lambda d: np.quantile(d, [0.025, 0.975]), "single differences"),
    ("interval", lambda d: np.quantile(resampled(d), [0.05, 0.95]), "middle 90 %"),
    ("interval", lambda d: np.quantile(resampled(d), [0.975, 0.025]), "comes first"),
    ("interval", lambda d: resampled(d).mean(), "two numbers are wanted"),
    ("interval", lambda d: (0.016, 0.208), "wrong for another"),
    ("holm", lambda p: [min(1, len(p) * x) for x in p], "Bonferroni"),
    ("holm", lambda p: step(p, cap=99), "never above 1"),
    ("holm", lambda p: step(p, rising=False), "below a smaller one"),
    ("holm", lambda p: sorted(step(p)), "in the order in which they came"),
    ("holm", lambda p: list(p), "nothing was corrected"),
    ("holm", lambda p: step(p)[:1], "a list of"),
]


test_a_wrong_answer_gets_its_hint = hint_test("significance", WRONG)
