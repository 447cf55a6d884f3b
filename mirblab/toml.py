"""toml: the one reader of TOML files: registry, cards, suites; what cannot be used is named with file and line."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mirblab.errors import MirblabError

DEEPEST = 100  # levels of tables and lists; a file of settings has fewer than ten


def read_toml(path: Path, shown: str = "") -> dict[str, Any]:
    """Return what a TOML file holds; MirblabError, with the file as *shown* and the line, when it cannot be used.

    That is: bytes that are not UTF-8, wrong grammar, nesting beyond what can be read, and numbers that are none (nan)
    or have no end (inf, 1e400), which no setting here can mean. FileNotFoundError when there is no such file.
    """
    where = shown or str(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise MirblabError(f"{where} cannot be read: {error.strerror}; change its rights, or move it away") from error
    text = _decoded(content, where)
    try:
        found = tomllib.loads(text)
        if _is_too_deep(found):
            raise RecursionError
    except RecursionError as error:
        raise MirblabError(f"{where} is nested too deeply to be read; write it flatter") from error
    except ValueError as error:  # also what tomllib does not name: a whole number of 5,000 digits, a date that is none
        raise MirblabError(f"{where} is not valid TOML: {error}; mend that place of it") from error
    for name, number in _numbers(found):
        if not math.isfinite(number):
            place = line(text, name.rpartition(".")[2])
            raise MirblabError(f"{where}{place}: {name} is {number}; write a finite number")
    return found


def line(text: str, key: str) -> str:
    """Return ", line 3" for the first line of a TOML *text* that sets *key* or heads its table, or "" without one.

    >>> line("[a]\\nk1 = nan", "k1"), line("[a]", "b")
    (', line 2', '')
    """
    quoted = rf"[\"']?{re.escape(key)}[\"']?"
    found = re.search(rf"(?m)^[^#\n]*?(?<![\w-])(?:{quoted}\s*=|\[+\s*{quoted}\s*[.\]])", text)
    return f", line {text.count(chr(10), 0, found.end()) + 1}" if found else ""


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        bad = content[error.start : error.start + 1].hex()
        raise MirblabError(f"{where}, line {number}: the byte 0x{bad} is not UTF-8; save the file as UTF-8") from error


def _is_too_deep(table: Mapping[str, Any]) -> bool:
    """Return whether tables and lists are nested more than `DEEPEST` levels, as a.a.a.a ... = 1 may do."""
    level: list[Any] = [table]
    for _ in range(DEEPEST + 1):
        level = [inner for one in level if isinstance(one, (list, Mapping)) and one
                 for inner in (one.values() if isinstance(one, Mapping) else one)]  # fmt: skip
    return bool(level)


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield the dotted name and the value of every number with a point."""
    if isinstance(value, float):
        yield name, value
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner, name)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _numbers(inner, f"{name}.{key}" if name else key)
