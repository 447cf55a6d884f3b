"""significance: checks of the lesson on significance tests, intervals and power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from mirblab.evaluation import significance
from mirblab.lessons.exercises import exercise
from mirblab.lessons.hints import check_function

Numbers = Sequence[float]
_SAMPLE = (0.1, -0.2, 0.3, 0.05, 0.4, -0.1, 0.2, 0.0, 0.15, 0.25, -0.05, 0.3)
_WIDTH = 0.01  # sampling error of an interval's ends that is allowed


@exercise("standard_error", "With four times as many queries it is half as large.")
def _standard_error(answer: Any) -> str:
    cases = [([0.0, 2.0, 4.0, 6.0],), ([0.1, -0.3, 0.2],), (list(_SAMPLE),)]

    def slips(differences: Numbers) -> Mapping[str, float]:
        n, of_sample, of_population = len(differences), float(np.std(differences, ddof=1)), float(np.std(differences))
        varies_less = "the mean of n queries varies less."
        return {
            f"this is the standard deviation of one query; {varies_less}": of_sample,
            f"this is the standard deviation of one query, and divided by n; {varies_less}": of_population,
            "almost: for a sample the sum of squares is divided by n - 1, which is not numpy's default.": (
                of_population / n**0.5
            ),
            "you divided by the number of queries; the standard error falls more slowly than that.": of_sample / n,
            "you divided by the number of queries; the standard error falls more slowly.": of_population / n,
            "this is a variance; take the standard deviation.": of_sample**2,
            "this is the square of what is wanted.": of_sample**2 / n,
            "this is the mean itself, not how much it varies.": float(np.mean(differences)),
        }

    return check_function(answer, cases, lambda d: float(np.std(d, ddof=1) / np.sqrt(len(d))), slips)


@exercise(
    "sign_flip",
    "The library draws signs at random for any number of questions, so its p differs a little from this exact one.",
)
def _sign_flip(answer: Any) -> str:
    cases = [([0.2, 0.1],), ([0.3, -0.1, 0.2],), ([0.5, 0.4, 0.3, 0.2, -0.1],), ([0.0, 0.0, 0.0],)]

    def slips(differences: Numbers) -> Mapping[str, float]:
        means, observed = _flipped_means(differences), float(np.mean(differences))
        sizes, size = np.abs(means), abs(observed)
        return {
            "you counted one side only: a mean as far below 0 counts, too.": float(np.mean(means >= observed - 1e-9)),
            "combinations exactly as extreme as the observed one count, and the observed one is among them.": (
                float(np.mean(sizes > size + 1e-9))
            ),
            "this is the share that is less extreme; p is the share at least as extreme.": (
                float(np.mean(sizes < size - 1e-9))
            ),
            "this is a count of combinations, not their share.": _sign_flip_p(differences) * 2 ** len(differences),
        }

    return check_function(answer, cases, _sign_flip_p, slips)


@exercise("interval", "With other seeds the ends differ slightly; the more resamples, the smaller the difference.")
def _interval(answer: Any) -> str:
    if not callable(answer):
        return "A function is wanted here: give its name without brackets."
    sample = np.array(_SAMPLE)
    ends = answer(sample)
    if not hasattr(ends, "__len__") or len(ends) != 2:
        return "two numbers are wanted, the lower and the upper end of the interval."
    if not np.isfinite(np.asarray(ends, float)).all():
        return "both ends have to be numbers."
    low, high = (float(end) for end in ends)
    right = _bootstrap(sample, 0.95)
    if np.allclose([low, high], right, rtol=0, atol=_WIDTH):
        other = sample * 0.5 + 1.0
        is_right = np.allclose(np.asarray(answer(other), float), _bootstrap(other, 0.95), rtol=0, atol=_WIDTH)
        wrong = "right for one sample, but wrong for another: use the numbers that the function is given."
        return "" if is_right else wrong
    if low > high:
        return "the lower end is above the upper one; the quantile of 0.025 comes first."
    if high - low < 1e-9:
        return "every resample has the same mean: draw with replacement; otherwise each has the same queries."
    for hint, wrong_ends in _wrong_intervals(sample).items():
        if np.allclose([low, high], wrong_ends, rtol=0, atol=_WIDTH / 2):
            return hint
    return f"the interval is too {'wide' if high - low > right[1] - right[0] else 'narrow, or it lies elsewhere'}."


@exercise(
    "holm", "Holm's p-values are never larger than Bonferroni's, and they limit the false positives equally well."
)
def _holm(answer: Any) -> str:
    cases = [([0.01],), ([0.01, 0.04],), ([0.04, 0.01, 0.03],), ([0.02, 0.021, 0.9],), ([0.5, 0.6, 0.7],)]

    def slips(p: Numbers) -> Mapping[str, Numbers]:
        return {
            "this is Bonferroni's correction: only the smallest is multiplied by the number of all tests.": (
                [min(1.0, len(p) * value) for value in p]
            ),
            "a p is never above 1.": _step(p, is_capped=False),
            "a larger p may not end up below a smaller one: no corrected p is smaller than the one before it.": (
                _step(p, is_rising=False)
            ),
            "return them in the order in which they came, not sorted.": sorted(_step(p)),
            "you corrected them in the given order; start with the smallest.": _step(p, is_sorted=False),
            "the factors are off by one: the smallest p of three is one of three tests.": _step(p, first=-1),
            "the factors go the wrong way: the smallest p gets the largest one.": _step(p, is_upwards=True),
            "these are the p-values that you were given; nothing was corrected.": p,
        }

    return check_function(answer, cases, lambda p: significance.holm(p).tolist(), slips)


def _flipped_means(differences: Numbers) -> np.ndarray:
    signs = np.array(list(product((1, -1), repeat=len(differences))))
    return (signs * np.asarray(differences)).mean(axis=1)


def _sign_flip_p(differences: Numbers) -> float:
    """Return the exact two-sided p of the sign-flip test, with equal means as hits."""
    return float((np.abs(_flipped_means(differences)) >= abs(float(np.mean(differences))) - 1e-9).mean())


def _bootstrap(numbers: np.ndarray, level: float) -> list[float]:
    means = significance.resampled_means(numbers[:, None], 20_000, 0)
    return [float(end[0]) for end in significance.percentiles(means, level)]


def _wrong_intervals(sample: np.ndarray) -> dict[str, list[float]]:
    far = float(np.std(sample, ddof=1))
    return {
        "these are quantiles of the single differences; resample the queries and take the mean of each resample.": (
            np.quantile(sample, [0.025, 0.975]).tolist()
        ),
        "this contains the middle 90 %: for 95 % leave out less on each side.": _bootstrap(sample, 0.90),
        "this is the mean plus and minus two standard deviations of single queries, not of the mean.": (
            [float(sample.mean()) - 1.96 * far, float(sample.mean()) + 1.96 * far]
        ),
        "these are the smallest and largest difference.": [float(sample.min()), float(sample.max())],
    }


def _step(
    p: Numbers, is_capped: bool = True, is_rising: bool = True, is_sorted: bool = True, first: int = 0,
    is_upwards: bool = False,
) -> list[float]:  # fmt: skip
    """Return Holm's correction with a mistake."""
    order = np.argsort(p, kind="stable") if is_sorted else np.arange(len(p))
    factors = np.arange(1, len(p) + 1) if is_upwards else np.arange(len(p), 0, -1) + first
    corrected = np.asarray(p, float)[order] * factors
    corrected = np.maximum.accumulate(corrected) if is_rising else corrected
    result = np.empty(len(p))
    result[order] = np.minimum(1.0, corrected) if is_capped else corrected
    return result.tolist()
