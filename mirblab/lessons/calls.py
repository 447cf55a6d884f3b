"""calls: an answer's function, followed so that a hint can name the input that it failed on."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any


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
    mirblab.lessons.calls.Raised: Your function stops for the input `0` with ZeroDivisionError: division by zero...
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
