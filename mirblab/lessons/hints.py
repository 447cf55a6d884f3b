"""hints: hints on wrong answers to exercises that do not give the right one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from mirblab.lessons.exercises import format_arguments, shorten


def check_function(
    answer: Any, cases: Sequence[tuple], truth: Callable[..., Any], slips: Callable[..., Mapping[str, Any]]
) -> str:
    """Return the hint for the first of *cases* (arguments) that a function gets wrong, "" when all are right.

    *truth* returns the right number, or list of numbers, of a case; *slips* what known mistakes give, by hint,
    likeliest first.

    >>> half = lambda n: {"Divide by two, not by four.": n / 4}
    >>> check_function(lambda n: n / 4, [(0,), (8,)], lambda n: n / 2, half)
    'For the input `8`: Divide by two, not by four.'
    """
    if not callable(answer):
        return (
            f"A function is wanted here: give its name without brackets. The answer is of type {type(answer).__name__}."
        )
    for given in cases:
        result, expected = answer(*deepcopy(given)), truth(*given)
        hint = _type_problem(result, expected)
        if not hint and not nearly_equal(result, expected):
            hint = find_slip(result, slips(*given)) or _direction(result, expected)
        if hint:
            return f"For the input `{format_arguments(given)}`: {hint}"
    return ""


def find_slip(result: Any, slips: Mapping[str, Any]) -> str:
    """Return the hint of the first slip that gives *result*, "" for none."""
    return next((hint for hint, value in slips.items() if nearly_equal(result, value)), "")


def nearly_equal(first: Any, second: Any, close: float = 1e-4) -> bool:
    """Return whether two numbers, or lists of numbers of equal length, agree up to a relative difference of *close*.

    >>> nearly_equal(0.1 + 0.2, 0.3), nearly_equal([1], [1, 2])
    (True, False)
    """
    return np.shape(first) == np.shape(second) and bool(np.allclose(first, second, rtol=close, atol=close * 1e-2))


def _type_problem(result: Any, expected: Any) -> str:
    if not isinstance(expected, Sequence):
        if not _is_number(result):
            return f"one number is wanted, but the answer is `{shorten(result)}`."
        return "" if np.isfinite(float(result)) else f"your number is `{result}`: look for a division by zero."
    if isinstance(result, str) or not hasattr(result, "__len__"):
        return f"a list of numbers is wanted, but the answer is of type {type(result).__name__}."
    if len(result) != len(expected):
        return f"a list of {len(expected)} numbers is wanted, but the list has {len(result)}."
    are_numbers = all(_is_number(item) and np.isfinite(float(item)) for item in result)
    return "" if are_numbers else "the list must contain numbers only."


def _is_number(result: Any) -> bool:
    try:
        return not isinstance(result, str | bool) and isinstance(float(result), float)
    except (TypeError, ValueError):
        return False


def _direction(result: Any, expected: Any) -> str:
    if not isinstance(expected, Sequence):
        if expected and nearly_equal(result, 100 * expected):
            return "that is in percent; the answer must be a share from 0 to 1."
        return f"your number is too {'large' if result > expected else 'small'}."
    position = next(i for i, pair in enumerate(zip(result, expected, strict=True)) if not nearly_equal(*pair))
    ordinal = {0: "1st", 1: "2nd", 2: "3rd"}.get(position, f"{position + 1}th")
    return f"the {ordinal} number is too {'large' if result[position] > expected[position] else 'small'}."
