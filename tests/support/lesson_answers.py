"""Tests of the checks of a lesson, from tables of right and of wrong answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from mirblab.lessons import check
from mirblab.lessons.exercises import checks_of_topic


def right_test(topic: str, answers: Mapping[str, Sequence[Any]]) -> Callable[..., None]:
    """Return a test that the *answers* pass, and that an exercise without an answer does not."""
    assert set(answers) == set(checks_of_topic(topic))

    @pytest.mark.parametrize("name", answers)
    def test(name: str) -> None:
        for answer in answers[name]:
            verdict = check(f"{topic}.{name}", answer)
            assert verdict.passed and verdict.message.startswith("Right."), verdict.message
        assert check(f"{topic}.{name}", ...).is_empty

    return test


def hint_test(topic: str, wrong: Sequence[tuple[str, Any, str]], hidden: Sequence[str] = ()) -> Callable[..., None]:
    """Return a test that each wrong answer, (exercise, answer, hint), gets the hint that names its mistake.

    Of hints with "|" any part is enough; nothing in *hidden* is ever shown.
    """
    assert {name for name, _, _ in wrong} == set(checks_of_topic(topic))

    @pytest.mark.parametrize(("name", "answer", "hint"), wrong)
    def test(name: str, answer: Any, hint: str) -> None:
        verdict = check(f"{topic}.{name}", answer)
        assert not verdict.passed and not verdict.is_empty and verdict.message
        assert any(part in verdict.message for part in hint.split("|")), verdict.message
        assert not any(part in verdict.message for part in hidden)

    return test
