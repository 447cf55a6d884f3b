"""exercises: an answer, and the verdict on it."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from mirblab.errors import unknown
from mirblab.lessons.calls import NotWritten, Raised, followed, short
from mirblab.lessons.notes import Note, cell, show

TOPICS = ("collection", "bm25", "embedding", "measures", "trees", "fusion", "luck", "equivalence")
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
    The hint says what is wrong and never what is right. Functions come wrapped: see `calls.followed`.
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
