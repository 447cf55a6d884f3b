"""arrays: the objects of a large JSON array, or of JSON lines, one after the other in bounded memory."""

from __future__ import annotations

import contextlib
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from mirblab import json_text, packed
from mirblab.errors import MirblabError
from mirblab.progress import progress

_CHUNK = 2**20
_LONGEST = 2**27
_BETWEEN = re.compile(r"[\s,]*")
_NEAR_THE_END = 16


def records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield place ("file, line 3, item 7") and content of each object of a JSON array or of JSON lines.

    Plain or gzipped; a bar shows how much of the file has been read. In memory are about one MB and one object. Raises
    MirblabError, with file, line and item, for broken JSON, for items that are no objects, for an array that does not
    end, and for objects of over 128 million characters.
    """
    with _opened(path) as read:
        source = _Source(path, read)
        in_array = source.peek() == "["
        if in_array:
            source.step()
        number = 0
        while (char := source.peek()) not in ("", "]"):
            number += 1
            place = f"{path}, line {source.line}, item {number}"
            if char != "{":
                raise MirblabError(f"{place}: expected a JSON object, found something that begins with {char!r}")
            yield place, source.item(number)
        if char == "]":
            source.step()
        if in_array != (char == "]") or source.peek():
            problem = "something after the end" if char == "]" else "the array does not end; is the file cut short?"
            raise MirblabError(f"{path}, line {source.line}: {problem}")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Callable[[int], str]]:
    """Yield a function that reads so many characters, and moves the bar."""
    with open(path, "rb") as raw, contextlib.ExitStack() as stack:
        text = io.TextIOWrapper(packed.unpacked(path, raw), encoding="utf-8-sig", newline="")
        bar = stack.enter_context(progress(path.stat().st_size // 10**6, f"reading {path.name}", "MB"))
        shown = 0

        def read(size: int) -> str:
            nonlocal shown
            try:
                found = text.read(size)
            except UnicodeDecodeError as error:
                raise MirblabError(f"{path}: not UTF-8 near byte {raw.tell():,}: {error.reason}") from error
            except (EOFError, OSError, zlib.error) as error:
                raise MirblabError(f"{path} cannot be read: {error}") from error
            bar.update(raw.tell() // 10**6 - shown)
            shown = raw.tell() // 10**6
            return found

        yield read


class _Source:
    """The part of a text that is in memory, where in it we are, and in which line of the file that is."""

    def __init__(self, path: Path, read: Callable[[int], str]) -> None:
        self.path, self._read, self.line = path, read, 1
        self._text, self._at = "", 0
        self._decoder = json.JSONDecoder()

    def peek(self) -> str:
        """Return the next character that is no blank and no comma, or "" at the end."""
        while True:
            self._go(cast(re.Match[str], _BETWEEN.match(self._text, self._at)).end())
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def step(self) -> None:
        """Pass the character that `peek` showed."""
        self._go(self._at + 1)

    def item(self, number: int) -> dict[str, Any]:
        """Return the object that begins here, and pass it."""
        while True:
            try:
                found, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if not (self._is_cut(error) and self._more()):
                    line = self.line + self._text.count("\n", self._at, error.pos)
                    raise MirblabError(f"{self.path}, line {line}, item {number}: broken JSON: {error.msg}") from error
            except (ValueError, RecursionError) as error:
                raise self._unreadable(json_text.unreadable(error, self._text[self._at :]), number) from error
            else:
                return self._passed(found, end, number)

    def _passed(self, found: Any, end: int, number: int) -> dict[str, Any]:
        """Return what was found from here to *end*, and pass it, unless it is nested too deeply."""
        try:
            json_text.within_limits(found, self._text[self._at : end])
        except json_text.Unreadable as error:
            raise self._unreadable(error, number) from error
        self._go(end)
        return cast(dict[str, Any], found)

    def _unreadable(self, error: json_text.Unreadable, number: int) -> MirblabError:
        return MirblabError(f"{self.path}, line {self.line + error.line - 1}, item {number}: {error}")

    def _is_cut(self, error: json.JSONDecodeError) -> bool:
        """Return whether more text may mend the error: it lies at the end of what is here, or in an open string."""
        at_the_end = error.pos >= len(self._text) - _NEAR_THE_END
        return (at_the_end or "Unterminated string" in error.msg) and len(self._text) - self._at < _LONGEST

    def _go(self, to: int) -> None:
        self.line += self._text.count("\n", self._at, to)
        self._at = to

    def _more(self) -> bool:
        """Drop what has been passed, and at least double the rest; return whether there was more."""
        rest = self._text[self._at :]
        found = self._read(max(_CHUNK, len(rest)))
        self._text, self._at = rest + found, 0
        return bool(found)
