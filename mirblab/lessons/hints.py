"""hints: say what is wrong with the answer to an exercise without giving the right one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mirblab.lessons.exercises import format_arguments

Mistakes = Mapping[str, Callable[..., Any]]


def check_function(
    answer: Any, cases: Sequence[tuple], truth: Callable[..., Any], mistakes: Mistakes, tolerance: float = 1e-6
) -> str:
    """Return the hint for the first of *cases* (arguments) that a function gets wrong, "" when all are right.

    *truth* returns the right number, or list of numbers, of a case. *mistakes* maps hints to functions with that
    mistake, the likeliest first; a mistake that gives the right result for a case is skipped there.

    >>> half = {"Divide by two, not by four.": lambda n: n / 4}
    >>> check_function(lambda n: n / 4, [(0,), (8,)], lambda n: n / 2, half)
    'For the input `8`: Divide by two, not by four.'
    """
    if not callable(answer):
        return (
            f"A function is wanted here: give its name without brackets. The answer is of type {type(answer).__name__}."
        )
    for given in cases:
        found, right = answer(*given), truth(*given)
        named = {hint: of(*given) for hint, of in mistakes.items()}
        hint = check_result(found, right, named, tolerance)
        if hint:
            return f"For the input `{format_arguments(given, {})}`: {hint}"
    return ""


def check_result(found: Any, right: Any, mistakes: Mapping[str, Any], tolerance: float = 1e-6) -> str:
    """Return the hint for *found*, "" when it is *right*; both are a number or a list of numbers.

    >>> check_result([1.0, 2.0], [1.0, 3.0], {})
    'the 2nd number is too small.'
    """
    wrong = _kind(found, right)
    if wrong or all_nearly_equal(found, right, tolerance):
        return wrong
    for hint, value in mistakes.items():
        if not all_nearly_equal(value, right, tolerance) and all_nearly_equal(found, value, tolerance):
            return hint
    if not isinstance(right, Sequence):
        return f"the result is too {_side(found, right)}."
    place = next(i for i, (a, b) in enumerate(zip(found, right, strict=True)) if not all_nearly_equal(a, b, tolerance))
    return f"the {_ordinal(place + 1)} number is too {_side(found[place], right[place])}."


def all_nearly_equal(one: Any, other: Any, tolerance: float = 1e-6) -> bool:
    """Return whether two numbers, or two lists of numbers of one length, are equal up to *tolerance*.

    >>> all_nearly_equal(0.1 + 0.2, 0.3), all_nearly_equal([1], [1, 2])
    (True, False)
    """
    if isinstance(other, Sequence):
        pairs = len(one) == len(other) and zip(one, other, strict=True)
        return bool(pairs) and all(all_nearly_equal(a, b, tolerance) for a, b in pairs)
    return math.isclose(float(one), float(other), rel_tol=0, abs_tol=tolerance)


def _kind(found: Any, right: Any) -> str:
    """Return a hint where *found* is not of the same type and length as *right*, else ""."""
    if not isinstance(right, Sequence):
        return "" if _is_number(found) else f"one number is wanted, but the answer is of type {type(found).__name__}."
    if isinstance(found, str) or not hasattr(found, "__len__"):
        return f"a list of numbers is wanted, but the answer is of type {type(found).__name__}."
    if len(found) != len(right):
        return f"a list of {len(right)} numbers is wanted, but the list has {len(found)}."
    return "" if all(map(_is_number, found)) else "the list must contain numbers only."


def _is_number(found: Any) -> bool:
    try:
        return not isinstance(found, str | bool) and math.isfinite(float(found))
    except (TypeError, ValueError):
        return False


def _side(found: Any, right: Any) -> str:
    return "large" if float(found) > float(right) else "small"


def _ordinal(place: int) -> str:
    return f"{place}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(place, 'th') }"
