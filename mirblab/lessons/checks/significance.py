"""significance: checks of the lesson on significance tests, intervals and power."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from mirblab.evaluation import significance
from mirblab.lessons.exercises import exercise
from mirblab.lessons.hints import all_nearly_equal, check_function

Numbers = Sequence[float]
_SEEN = (0.1, -0.2, 0.3, 0.05, 0.4, -0.1, 0.2, 0.0, 0.15, 0.25, -0.05, 0.3)


@exercise("standard_error", "With four times as many queries it is half as large.")
def _standard_error(answer: Any) -> str:
    cases = [([0.0, 2.0, 4.0, 6.0],), ([0.1, -0.3, 0.2],), (list(_SEEN),)]
    mistakes = {
        "this is the standard deviation of one query; the mean of n queries varies less.": _deviation(1, 0),
        "this is the standard deviation of one query, and divided by n; the mean of n queries varies less.": (
            _deviation(0, 0)
        ),
        "almost: for a sample the sum of squares is divided by n - 1, which is not numpy's default.": _deviation(
            0, 0.5
        ),
        "you divided by the number of queries; the standard error falls more slowly than that.": _deviation(1, 1),
        "you divided by the number of queries; the standard error falls more slowly.": _deviation(0, 1),
        "this is a variance; take the standard deviation.": lambda d: float(np.var(d, ddof=1)),
        "this is the square of what is wanted.": lambda d: float(np.var(d, ddof=1) / len(d)),
        "this is the mean itself, not how much it varies.": lambda d: float(np.mean(d)),
    }
    return check_function(answer, cases, lambda d: float(np.std(d, ddof=1) / np.sqrt(len(d))), mistakes)


@exercise("sign_flip", "The library draws signs at random when there are too many combinations to count them all.")
def _sign_flip(answer: Any) -> str:
    cases = [([0.2, 0.1],), ([0.3, -0.1, 0.2],), ([0.5, 0.4, 0.3, 0.2, -0.1],), ([0.0, 0.0, 0.0],)]
    mistakes = {
        "you counted one side only: a mean as far below 0 counts, too.": _share(lambda m, seen: m >= seen),
        "combinations exactly as extreme as the observed one count, and the observed one is among them.": _share(
            lambda m, seen: abs(m) > abs(seen) + 1e-9, ties=False
        ),
        "this is the share that is less extreme; p is the share at least as extreme.": _share(
            lambda m, seen: abs(m) < abs(seen) - 1e-9, ties=False
        ),
        "this is a count of combinations, not their share.": lambda d: _exact(d) * 2 ** len(d),
    }
    return check_function(answer, cases, _exact, mistakes)


@exercise("interval", "With other seeds the ends differ slightly; the more resamples, the smaller the difference.")
def _interval(answer: Any) -> str:
    if not callable(answer):
        return "A function is wanted here: give its name without brackets."
    seen = np.array(_SEEN)
    found = answer(seen)
    if not hasattr(found, "__len__") or len(found) != 2:
        return "two numbers are wanted, the lower and the upper end of the interval."
    if not np.isfinite(np.asarray(found, float)).all():
        return "both ends have to be numbers."
    low, high = (float(end) for end in found)
    right, width = _bootstrap(seen, 0.95), 0.01
    if all_nearly_equal([low, high], right, width):
        return _of_another_sample(answer)
    if low > high:
        return "the lower end is above the upper one; the quantile of 0.025 comes first."
    if high - low < 1e-9:
        return "every resample has the same mean: draw with replacement; otherwise each has the same queries."
    for hint, ends in _wrong_intervals(seen).items():
        if all_nearly_equal([low, high], ends, width / 2):
            return hint
    return f"the interval is too {'wide' if high - low > right[1] - right[0] else 'narrow, or it lies elsewhere'}."


def _of_another_sample(answer: Callable[[np.ndarray], Any]) -> str:
    """Return a hint where a function gives the interval of one sample whatever it is given."""
    other = np.array(_SEEN) * 0.5 + 1.0
    is_right = all_nearly_equal([float(end) for end in answer(other)], _bootstrap(other, 0.95), 0.01)
    return (
        "" if is_right else "right for one sample, but wrong for another: use the numbers that the function is given."
    )


@exercise(
    "holm", "Holm's p-values are never larger than Bonferroni's, and they limit the false positives equally well."
)
def _holm(answer: Any) -> str:
    cases = [([0.01],), ([0.01, 0.04],), ([0.04, 0.01, 0.03],), ([0.02, 0.021, 0.9],), ([0.5, 0.6, 0.7],)]
    mistakes = {
        "this is Bonferroni's correction: only the smallest is multiplied by the number of all tests.": lambda p: [
            min(1.0, len(p) * x) for x in p
        ],
        "a p is never above 1.": lambda p: _step(p, capped=False),
        "a larger p may not end up below a smaller one: no corrected p is smaller than the one before it.": lambda p: (
            _step(p, rising=False)
        ),
        "return them in the order in which they came, not sorted.": lambda p: sorted(_step(p)),
        "you corrected them in the given order; start with the smallest.": lambda p: _step(p, is_sorted=False),
        "the factors are off by one: the smallest p of three is one of three tests.": lambda p: _step(p, first=-1),
        "the factors go the wrong way: the smallest p gets the largest one.": lambda p: _step(p, is_upwards=True),
        "these are the p-values that you were given; nothing was corrected.": lambda p: list(p),
    }
    return check_function(answer, cases, lambda p: significance.holm(p).tolist(), mistakes)


def _deviation(ddof: int, power: float) -> Callable[[Numbers], float]:
    return lambda d: float(np.std(d, ddof=ddof) / len(d) ** power)


def _share(is_extreme: Callable[[float, float], bool], ties: bool = True) -> Callable[[Numbers], float]:
    def share(differences: Numbers) -> float:
        seen = float(np.mean(differences)) - (1e-9 if ties else 0)
        means = [float(np.mean(np.multiply(differences, signs))) for signs in product((1, -1), repeat=len(differences))]
        return float(np.mean([is_extreme(mean, seen) for mean in means]))

    return share


def _exact(differences: Numbers) -> float:
    """Return the exact two-sided p of the sign-flip test; combinations of signs with an equal mean count as hits."""
    seen = abs(float(np.mean(differences))) - 1e-9
    signs = np.array(list(product((1, -1), repeat=len(differences))))
    return float((np.abs((signs * np.asarray(differences)).mean(axis=1)) >= seen).mean())


def _bootstrap(numbers: np.ndarray, level: float) -> list[float]:
    means = significance.resampled_means(numbers[:, None], 20_000, 0)
    return [float(end[0]) for end in significance.percentiles(means, level)]


def _wrong_intervals(seen: np.ndarray) -> dict[str, list[float]]:
    far = float(np.std(seen, ddof=1))
    return {
        "these are quantiles of the single differences; resample the queries and take the mean of each resample.": (
            np.quantile(seen, [0.025, 0.975]).tolist()
        ),
        "this contains the middle 90 %: for 95 % leave out less on each side.": _bootstrap(seen, 0.90),
        "this is the mean plus and minus two standard deviations of single queries, not of the mean.": (
            [float(seen.mean()) - 1.96 * far, float(seen.mean()) + 1.96 * far]
        ),
        "these are the smallest and largest difference.": [float(seen.min()), float(seen.max())],
    }


def _step(
    p: Numbers, capped: bool = True, rising: bool = True, is_sorted: bool = True, first: int = 0,
    is_upwards: bool = False,
) -> list[float]:  # fmt: skip
    """Return Holm's correction with a mistake."""
    order = np.argsort(p, kind="stable") if is_sorted else np.arange(len(p))
    factors = np.arange(1, len(p) + 1) if is_upwards else np.arange(len(p), 0, -1) + first
    found = np.asarray(p, float)[order] * factors
    found = np.maximum.accumulate(found) if rising else found
    made = np.empty(len(p))
    made[order] = np.minimum(1.0, found) if capped else found
    return made.tolist()
