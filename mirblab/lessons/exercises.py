"""exercises: exercises and the check of an answer."""

from __future__ import annotations

import functools
import importlib
import inspect
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isclose, isfinite
from numbers import Real
from types import ModuleType
from typing import Any

from mirblab.core.errors import unknown
from mirblab.lessons.guesses import Note, cell, show


class NotWritten(Exception):
    """The function returned None or `...`: its author has not begun."""


class Raised(Exception):
    """The function raised; the text names the error, the input and, where it is known, the line."""


def followed(function: Callable) -> Callable:
    """Return *function* so that it raises `NotWritten` for None and `...`, and `Raised` for any error of its own.

    >>> followed(lambda x: 1 / x)(2)
    0.5
    >>> followed(lambda x: 1 / x)(0)
    Traceback (most recent call last):
    mirblab.lessons.exercises.Raised: Your function stops for the input `0` with ZeroDivisionError: division by zero...
    """

    @functools.wraps(function)
    def follow(*given: Any, **named: Any) -> Any:
        try:
            result = function(*given, **named)
        except Exception as error:
            raise Raised(_told(function, error, call(given, named))) from error
        if result is None or result is ...:
            raise NotWritten
        return result

    return follow


def call(given: tuple, named: dict[str, Any]) -> str:
    """Return what stands between a call's parentheses, shortened.

    >>> call((3, "ring"), {"k": 2})
    "3, 'ring', k=2"
    """
    return ", ".join([*map(short, given), *(f"{name}={short(value)}" for name, value in named.items())])


def short(value: Any, longest: int = 80) -> str:
    """Return *value* as Python writes it, one line, cut in its middle; of tables and arrays only their shape.

    >>> short([1, 2]), short("a" * 200, longest=20)
    ('[1, 2]', "'aaaaaaa … aaaaaaa'")
    """
    if hasattr(value, "shape") and hasattr(value, "ndim") and value.ndim:
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    text = " ".join(repr(value).split()).replace("`", "'")
    half = (longest - 3) // 2
    return text if len(text) <= longest else f"{text[:half]} … {text[-half:]}"


def _told(function: Callable, error: Exception, given: str) -> str:
    said = f"{type(error).__name__}: {short_error(error)}"
    place = getattr(getattr(function, "__code__", None), "co_filename", None)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == place]
    line = f" (its line `{frames[-1].line}`)" if frames and frames[-1].line else ""
    return f"Your function stops for the input `{given}` with {said}{line}."


def short_error(error: Exception) -> str:
    """Return an error's text on one line, at most 160 characters.

    >>> short_error(ValueError("no   luck"))
    'no luck'
    """
    return " ".join(str(error).split())[:160]


TOPICS = ("collection", "bm25", "embedding", "measures", "trees", "fusion", "significance", "equivalence")
Check = Callable[[Any], str]


@dataclass(frozen=True)
class Verdict:
    """Whether an answer *passed*, and the *message* its author saw: "Right." and perhaps more, or a hint."""

    name: str
    passed: bool
    message: str
    is_empty: bool = False
    cell: int = field(default=0, repr=False, compare=False)

    def note(self) -> Note:
        """Return the verdict as it is shown; its heading says it without the colour."""
        if self.passed:
            return Note("right", "✓ Right.", self.message.removeprefix("Right.").strip())
        if self.is_empty:
            return Note("empty", "○ Not written yet.", self.message.removeprefix("Not written yet.").strip())
        return Note("wrong", "✗ Not yet.", self.message)

    def _ipython_display_(self) -> None:
        # `check` has shown it already, also where it is not the last line of its cell.
        if cell() != self.cell:
            show(self.note())


def exercise(name: str, more: str = "") -> Callable[[Check], Check]:
    """Return a decorator that makes a function the check of the exercise *name* of its module's topic.

    The function takes the answer and returns a hint, or "" when the answer is right; *more* then follows "Right.".
    The hint says what is wrong and never what is right. Functions come wrapped: see `exercises.followed`.
    """

    def mark(function: Check) -> Check:
        function.exercise, function.more = name, more  # type: ignore[attr-defined]
        return function

    return mark


def check(name: str, answer: Any) -> Verdict:
    """Show and return the verdict on an *answer* to the exercise *name*, "topic.exercise".

    `...`, None and a function that returns one of them are not written yet. What an answer raises becomes a hint.
    Only an unknown *name* is a MirblabError.

    >>> check("collection.density", ...).passed
    ○ Not written yet. Replace the `...` above, run that cell, then this one.
    False
    """
    verdict = _judge(name, _find(name), answer)
    show(verdict.note())
    return verdict


def checks(topic: str) -> dict[str, Check]:
    """Return the checks of one topic by the names of their exercises, in the order in which they were written.

    >>> list(checks("collection"))[0]
    'density'
    """
    if topic not in TOPICS:
        raise unknown("topic of a lesson", topic, TOPICS)
    return _of(importlib.import_module(f"mirblab.lessons.checks.{topic}"))


def _of(module: ModuleType) -> dict[str, Check]:
    return {value.exercise: value for value in vars(module).values() if hasattr(value, "exercise")}


def _find(name: str) -> Check:
    topic, _, exercise_name = name.partition(".")
    found = checks(topic)
    if exercise_name not in found:
        raise unknown("exercise", name, [f"{topic}.{known}" for known in found])
    return found[exercise_name]


def _judge(name: str, of: Check, answer: Any) -> Verdict:
    empty = Verdict(name, False, _EMPTY, is_empty=True, cell=cell())
    if _is_empty(answer):
        return empty
    try:
        hint = of(followed(answer) if _is_function(answer) else answer)
    except NotWritten:
        return empty
    except Raised as raised:
        hint = str(raised)
    except Exception as error:  # an answer of another kind than was asked for can do anything to a check
        hint = (
            f"This could not be checked: {_what(answer)} is not what was asked for ({type(error).__name__}: {error})."
        )
    more = of.more  # type: ignore[attr-defined]
    return Verdict(name, not hint, hint or f"Right. {more}".strip(), cell=cell())


_EMPTY = "Not written yet. Replace the `...` above, run that cell, then this one."


def _is_empty(answer: Any) -> bool:
    """Return whether *answer* is `...` or None, or holds `...` anywhere in lists, tuples and dictionaries."""
    if isinstance(answer, Mapping):
        answer = list(answer.values())
    if isinstance(answer, list | tuple):
        return any(part is ... or _is_empty(part) and part is not None for part in answer)
    return answer is ... or answer is None


def _is_function(answer: Any) -> bool:
    return inspect.isroutine(answer) or isinstance(answer, functools.partial)


def _what(answer: Any) -> str:
    return "what the function returns" if _is_function(answer) else f"`{short(answer)}`"


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
