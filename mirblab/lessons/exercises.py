"""exercises: check the answer to an exercise and show a verdict with a hint."""

from __future__ import annotations

import functools
import importlib
import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isclose, isfinite
from numbers import Real
from types import ModuleType
from typing import Any

from mirblab.core.errors import unknown
from mirblab.lessons.guesses import Note, running_cell, show_output


class NotWrittenError(Exception):
    """The function returned None or `...`, so its author has not written it yet."""


class AnswerError(Exception):
    """The function raised an error; the message names the error, the input and, where it is known, the line."""


def guarded(function: Callable) -> Callable:
    """Return *function* so that it raises `NotWritten` for None and `...`, and `Raised` for any error of its own.

    >>> guarded(lambda x: 1 / x)(2)
    0.5
    >>> guarded(lambda x: 1 / x)(0)
    Traceback (most recent call last):
    mirblab.lessons.exercises.AnswerError: Your function fails for the input `0` with ZeroDivisionError: division ...
    """

    @functools.wraps(function)
    def follow(*given: Any, **named: Any) -> Any:
        try:
            result = function(*given, **named)
        except Exception as error:
            raise AnswerError(_told(function, error, format_arguments(given, named))) from error
        if result is None or result is ...:
            raise NotWrittenError
        return result

    return follow


def format_arguments(given: tuple, named: dict[str, Any]) -> str:
    """Return the arguments of a call as they are written between its parentheses, shortened.

    >>> format_arguments((3, "ring"), {"k": 2})
    "3, 'ring', k=2"
    """
    return ", ".join([*map(shorten, given), *(f"{name}={shorten(value)}" for name, value in named.items())])


def shorten(value: Any, longest: int = 80) -> str:
    """Return *value* as Python writes it, on one line and shortened in its middle; tables and arrays as shapes.

    >>> shorten([1, 2]), shorten("a" * 200, longest=20)
    ('[1, 2]', "'aaaaaaa … aaaaaaa'")
    """
    if hasattr(value, "shape") and hasattr(value, "ndim") and value.ndim:
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    text = " ".join(repr(value).split()).replace("`", "'")
    half = (longest - 3) // 2
    return text if len(text) <= longest else f"{text[:half]} … {text[-half:]}"


def _told(function: Callable, error: Exception, given: str) -> str:
    said = f"{type(error).__name__}: {shorten_error(error)}"
    place = getattr(getattr(function, "__code__", None), "co_filename", None)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == place]
    line = f" (its line `{frames[-1].line}`)" if frames and frames[-1].line else ""
    return f"Your function fails for the input `{given}` with {said}{line}."


def shorten_error(error: Exception) -> str:
    """Return the message of an error on one line, at most 160 characters.

    >>> shorten_error(ValueError("too   long"))
    'too long'
    """
    return " ".join(str(error).split())[:160]


TOPICS = ("collection", "bm25", "embedding", "measures", "trees", "fusion", "significance", "equivalence")
Check = Callable[[Any], str | Iterator[str]]


@dataclass(frozen=True)
class Verdict:
    """Whether an answer *passed*, and the *message* its author saw: "Right." and perhaps more, or a hint."""

    name: str
    passed: bool
    message: str
    is_empty: bool = False
    cell: int = field(default=0, repr=False, compare=False)

    def note(self) -> Note:
        """Return the verdict as a note whose heading also says without colour whether the answer is right."""
        if self.passed:
            return Note("right", "✓ Right.", self.message.removeprefix("Right.").strip())
        if self.is_empty:
            return Note("empty", "○ Not written yet.", self.message.removeprefix("Not written yet.").strip())
        return Note("wrong", "✗ Not yet.", self.message)

    def _ipython_display_(self) -> None:
        # `check` has already shown the verdict, whether or not it is the last line of its cell.
        if running_cell() != self.cell:
            show_output(self.note())


def exercise(name: str, more: str = "") -> Callable[[Check], Check]:
    """Return a decorator that makes a function the check of the exercise *name* of its module's topic.

    The function takes the answer and returns a hint, or yields one for each case; "" means that the answer is right,
    and then *more* follows "Right.".
    The hint says what is wrong but does not give the right answer. Functions are wrapped: see `guarded`.
    """

    def mark(function: Check) -> Check:
        function.exercise, function.more = name, more  # type: ignore[attr-defined]
        return function

    return mark


def check(name: str, answer: Any) -> Verdict:
    """Show and return the verdict on an *answer* to the exercise *name*, "topic.exercise".

    `...`, None and a function that returns one of them count as not written yet. An error in the answer becomes a hint.
    Only an unknown *name* is a MirblabError.

    >>> check("collection.density", ...).passed
    ○ Not written yet. Replace the `...` above, run that cell, then this one.
    False
    """
    verdict = _judge(name, _find(name), answer)
    show_output(verdict.note())
    return verdict


def checks_of_topic(topic: str) -> dict[str, Check]:
    """Return the checks of one topic by the names of their exercises, in the order of their definition.

    >>> list(checks_of_topic("collection"))[0]
    'density'
    """
    if topic not in TOPICS:
        raise unknown("topic of a lesson", topic, TOPICS)
    return _of(importlib.import_module(f"mirblab.lessons.checks.{topic}"))


def _of(module: ModuleType) -> dict[str, Check]:
    return {value.exercise: value for value in vars(module).values() if hasattr(value, "exercise")}


def _find(name: str) -> Check:
    topic, _, exercise_name = name.partition(".")
    found = checks_of_topic(topic)
    if exercise_name not in found:
        raise unknown("exercise", name, [f"{topic}.{known}" for known in found])
    return found[exercise_name]


def _judge(name: str, of: Check, answer: Any) -> Verdict:
    empty = Verdict(name, False, _EMPTY, is_empty=True, cell=running_cell())
    if _is_empty(answer):
        return empty
    try:
        hints = of(guarded(answer) if _is_function(answer) else answer)
        hint = hints if isinstance(hints, str) else next(filter(None, hints), "")
    except NotWrittenError:
        return empty
    except AnswerError as raised:
        hint = str(raised)
    except Exception as error:  # an answer of a wrong type can make a check fail in any way
        hint = (
            f"This could not be checked: {_what(answer)} is not of the kind that the exercise asks for "
            f"({type(error).__name__}: {error})."
        )
    more = of.more  # type: ignore[attr-defined]
    return Verdict(name, not hint, hint or f"Right. {more}".strip(), cell=running_cell())


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
    return "what the function returns" if _is_function(answer) else f"`{shorten(answer)}`"


def check_number(
    found: Any, truth: float, case: str, slips: Mapping[str, float] | None = None, close: float = 1e-4
) -> str:
    """Return "" where *found* equals *truth* up to a share of *close*, else a hint; *case* is the call.

    *slips* maps hints to the numbers that known mistakes give; for any other number the hint is too large or too small.

    >>> check_number(0.5, 0.5, "share(1, 2)"), check_number(2, 0.5, "share(1, 2)", {"It is upside down.": 2.0})
    ('', 'For `share(1, 2)`: It is upside down.')
    >>> check_number(0.7, 0.5, "share(1, 2)")
    'For `share(1, 2)` your number is too large.'
    """
    if not isinstance(found, Real) or isinstance(found, bool):
        return f"For `{case}` the answer must be a number, but it is `{shorten(found)}`."
    if not isfinite(found):
        return f"For `{case}` your number is `{found}`: look for a division by zero."
    if nearly_equal(found, truth, close):
        return ""
    for slip, value in (slips or {}).items():
        if nearly_equal(found, value, close):
            return f"For `{case}`: {slip}"
    if truth and nearly_equal(found, 100 * truth, close):
        return f"For `{case}`: that is in percent; the answer must be a share from 0 to 1."
    return f"For `{case}` your number is too {'large' if found > truth else 'small'}."


def nearly_equal(found: float, truth: float, close: float = 1e-4) -> bool:
    """Return whether two numbers agree up to a relative difference of *close*."""
    return isclose(found, truth, rel_tol=close, abs_tol=close * 1e-2)
