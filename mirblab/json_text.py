"""json_text: JSON that others wrote, with limits: what cannot be read is said with its line, never by a traceback."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mirblab.errors import MirblabError

DEEPEST = 200  # levels of lists and objects; data has fewer than ten, and Python stops near a thousand
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_LONG = re.compile(r"\d{4301}")


class Unreadable(MirblabError):
    """A text that is no JSON, or JSON beyond the limits; `line` says where in it, from 1."""

    def __init__(self, what: str, line: int = 1) -> None:
        """Say what is wrong, and on which line of the text."""
        super().__init__(what)
        self.line = line


def loads(text: str) -> Any:
    """Return the value of a JSON text.

    Unreadable, without the file's name, for broken JSON, for more than `DEEPEST` levels, and for whole numbers of more
    digits than Python reads (4,300).

    >>> loads('{"a": [1]}')
    {'a': [1]}
    >>> loads("[" * 3000)
    Traceback (most recent call last):
    mirblab.json_text.Unreadable: nested too deeply, over 200 levels
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise unreadable(error, text) from error
    return within_limits(value, text)


def within_limits(value: Any, text: str) -> Any:
    """Return a value of JSON that was read from *text*; Unreadable when it is nested too deeply."""
    if text.count("[") + text.count("{") > DEEPEST:
        level = [value]
        for _ in range(DEEPEST + 1):
            level = [inner for one in level if isinstance(one, (list, dict)) and one
                     for inner in (one.values() if isinstance(one, dict) else one)]  # fmt: skip
        if level:
            raise unreadable(RecursionError(), text)
    return value


def unreadable(error: ValueError | RecursionError, text: str) -> Unreadable:
    """Return what the json module's *error* about a *text* means."""
    if isinstance(error, RecursionError):
        return Unreadable(f"nested too deeply, over {DEEPEST} levels", _line(text, _too_deep(text)))
    if isinstance(error, json.JSONDecodeError):
        return Unreadable(f"broken JSON: {error.msg} at character {error.colno}", error.lineno)
    number = _LONG.search(text)
    return Unreadable("a whole number of more than 4,300 digits", _line(text, number.start() if number else 0))


def _too_deep(text: str) -> int:
    """Return where a text is nested deeper than permitted."""
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += (token[0] in "[{") - (token[0] in "]}")
        if depth > DEEPEST:
            return token.start()
    return 0


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def read(path: Path) -> Any:
    """Return the value in a JSON file in UTF-8; MirblabError with file and line for what cannot be read."""
    try:
        return loads(path.read_text("utf-8-sig"))
    except Unreadable as error:
        raise MirblabError(f"{path}, line {error.line}: {error}; mend the file, or write it again") from error
    except UnicodeDecodeError as error:
        raise MirblabError(f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8") from error
