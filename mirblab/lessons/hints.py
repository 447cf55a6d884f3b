"""hints: what is wrong with a number, said without saying what is right."""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose, isfinite
from numbers import Real
from typing import Any

from mirblab.lessons.calls import short


def number(found: Any, truth: float, case: str, slips: Mapping[str, float] | None = None, close: float = 1e-4) -> str:
    """Return "" where *found* is *truth* up to a share of *close*, else a hint; *case* is the call that gave it.

    *slips* maps hints to the numbers that a known slip gives; a number of its own kind is only too large or too small.

    >>> number(0.5, 0.5, "share(1, 2)"), number(2, 0.5, "share(1, 2)", {"It is upside down.": 2.0})
    ('', 'For `share(1, 2)`: It is upside down.')
    >>> number(0.7, 0.5, "share(1, 2)")
    'For `share(1, 2)` your number is too large.'
    """
    if not isinstance(found, Real) or isinstance(found, bool):
        return f"For `{case}` a number is wanted, found `{short(found)}`."
    if not isfinite(found):
        return f"For `{case}` your number is `{found}`: look for a division by zero."
    if same(found, truth, close):
        return ""
    for slip, value in (slips or {}).items():
        if same(found, value, close):
            return f"For `{case}`: {slip}"
    if truth and same(found, 100 * truth, close):
        return f"For `{case}`: that is in percent; a share from 0 to 1 is wanted."
    return f"For `{case}` your number is too {'large' if found > truth else 'small'}."


def same(found: float, truth: float, close: float = 1e-4) -> bool:
    """Return whether two numbers agree up to a share of *close*."""
    return isclose(found, truth, rel_tol=close, abs_tol=close * 1e-2)
