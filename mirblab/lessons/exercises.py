"""exercises: check the answer to an exercise and show a verdict with a hint."""

from __future__ import annotations

import functools
import importlib
import inspect
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mirblab.core.errors import check_known, unknown
from mirblab.lessons.guesses import Note, running_cell, show_output


class NotWrittenError(Exception):
    """The function returned None or `...`, so its author has not written it yet."""


class AnswerError(Exception):
    """The function raised an error; the message names the error, the input and, where it is known, the line."""


def guarded(function: Callable) -> Callable:
    """Return *function* so that it raises `NotWrittenError` for None and `...`, and `AnswerError` for its errors.

    >>> guarded(lambda x: 1 / x)(0)
    Traceback (most recent call last):
    mirblab.lessons.exercises.AnswerError: Your function fails for the input `0` with ZeroDivisionError: division ...
    """

    @functools.wraps(function)
    def follow(*given: Any) -> Any:
        try:
            result = function(*given)
        except Exception as error:
            file = getattr(getattr(function, "__code__", None), "co_filename", None)
            lines = [frame.line for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
            line = f" (its line `{lines[-1]}`)" if lines and lines[-1] else ""
            message = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
            inputs = format_arguments(given)
            raise AnswerError(f"Your function fails for the input `{inputs}` with {message}{line}.") from error
        if result is None or result is ...:
            raise NotWrittenError
        return result

    return follow


def format_arguments(given: tuple) -> str:
    """Return the arguments of a call as they are written between its parentheses, shortened.

    >>> format_arguments((3, "ring"))
    "3, 'ring'"
    """
    return ", ".join(map(shorten, given))


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


TOPICS = ("collection", "bm25", "embedding", "measures", "trees", "fusion", "significance", "equivalence", "judging")
Check = Callable[[Any], str]


@dataclass(frozen=True)
class Verdict:
    """Whether an answer *passed*, and the *message* for its author: "Right." and perhaps more, or a hint."""

    name: str
    passed: bool
    message: str
    is_empty: bool = False
    cell: int = field(default=0, repr=False, compare=False)

    def note(self) -> Note:
        """Return the verdict as a note; its heading says in words, too, whether the answer is right."""
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

    The check gets the answer, a `guarded` function, and returns a hint that does not give the right answer; "" means
    right, and *more* is then shown after "Right.".
    """

    def mark(function: Check) -> Check:
        function.exercise, function.more = name, more  # type: ignore[attr-defined]
        return function

    return mark


def check(name: str, answer: Any) -> Verdict:
    """Show and return the verdict on an *answer* to the exercise *name*, "topic.exercise".

    `...`, None and a function that returns one of them are not written yet; an error in the answer becomes a hint.
    MirblabError only for an unknown *name*.

    >>> check("collection.density", ...).passed
    ○ Not written yet. Replace the `...` above, run that cell, then this one.
    False
    """
    topic, _, exercise_name = name.partition(".")
    checks = checks_of_topic(topic)
    if exercise_name not in checks:
        raise unknown("exercise", name, [f"{topic}.{known}" for known in checks])
    verdict = _judge(name, checks[exercise_name], answer)
    show_output(verdict.note())
    return verdict


def checks_of_topic(topic: str) -> dict[str, Check]:
    """Return the checks of one topic by the names of their exercises, in the order of their definition."""
    check_known("topic of a lesson", topic, TOPICS)
    module = importlib.import_module(f"mirblab.lessons.checks.{topic}")
    return {value.exercise: value for value in vars(module).values() if hasattr(value, "exercise")}


def _judge(name: str, run_check: Check, answer: Any) -> Verdict:
    message = "Not written yet. Replace the `...` above, run that cell, then this one."
    empty = Verdict(name, False, message, is_empty=True, cell=running_cell())
    if _is_empty(answer):
        return empty
    is_function = inspect.isroutine(answer) or isinstance(answer, functools.partial)
    try:
        hint = run_check(guarded(answer) if is_function else answer)
    except NotWrittenError:
        return empty
    except AnswerError as raised:
        hint = str(raised)
    except Exception as error:  # an answer of a wrong type can make a check fail in any way
        what = "what the function returns" if is_function else f"`{shorten(answer)}`"
        hint = (
            f"This could not be checked: {what} is not of the kind that the exercise asks for "
            f"({type(error).__name__}: {error})."
        )
    more = run_check.more  # type: ignore[attr-defined]
    return Verdict(name, not hint, hint or f"Right. {more}".strip(), cell=running_cell())


def _is_empty(answer: Any) -> bool:
    """Return whether *answer* is `...` or None, or contains `...` in lists, tuples or dictionaries."""
    if isinstance(answer, Mapping):
        answer = list(answer.values())
    if isinstance(answer, list | tuple):
        return any(part is ... or _is_empty(part) and part is not None for part in answer)
    return answer is ... or answer is None
