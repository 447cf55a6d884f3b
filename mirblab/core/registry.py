"""The TOML files of the registry, of cards and of suites, read and checked."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.core.text_files import is_nested_deeper

DEEPEST = 100  # levels of tables and lists; a file of settings has fewer than ten
_REGISTRY_FOLDER = Path(__file__).resolve().parents[1] / "registry"
# The types of the fields, for kinds that no module checks itself; other fields are free.
_FIELD_TYPES: dict[str, dict[str, type | tuple[type, ...]]] = {
    "collections": dict.fromkeys(
        "builder title task instruction hub revision paper licence source group rule command".split(), str
    )
    | {"candidates": (str, list), "relevance_levels": list, "relevant_from": int, "restricted": bool}
    | {"queries": int, "documents": int},
    "rerankers": dict.fromkeys("kind label encoder id revision size licence instruction".split(), str)
    | {"max_length": int, "trust_remote_code": bool},
}
_TYPE_NAMES = {str: "text in quotes", int: "a whole number", bool: "true or false", list: "a list"}


def read_registry(kind: str) -> dict[str, dict[str, Any]]:
    """Return the entries of one *kind* by name; those of `<home>/registry/<kind>.toml` are added and take precedence.

    MirblabError with file and line for a file that cannot be read, an entry that is no table, and a field of a wrong
    type.

    >>> "minilm" in read_registry("encoders")
    True
    """
    entries = {name: entry for path in _registry_files(kind) for name, entry in _read_entries(path).items()}
    for name, entry in entries.items():
        for field, wanted in _FIELD_TYPES.get(kind, {}).items():
            value = entry.get(field)
            if value is not None and (not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))):
                words = " or ".join(_TYPE_NAMES[kind] for kind in (wanted if isinstance(wanted, tuple) else (wanted,)))
                raise MirblabError(f"'{name}' in {entry_file(kind, name)}: {field} is {value!r:.60}; write {words}")
    return entries


def printed_names() -> list[str]:
    """Return the names that papers print for the registry's collections, each once, in the order of the registry.

    >>> len(printed_names()), printed_names()[1]
    (13, 'Informalized Mathlib4 Retrieval')
    """
    names = (entry.get("paper") or entry.get("group") for entry in read_registry("collections").values())
    return list(dict.fromkeys(name for name in names if name))


def entry_file(kind: str, name: str) -> str:
    """Return the file that an entry comes from: that of the home registry if it has the entry, else the package's.

    >>> entry_file("encoders", "minilm")
    'encoders.toml'
    """
    return next(
        (_shown_name(path) for path in reversed(_registry_files(kind)) if name in _read_entries(path)), f"{kind}.toml"
    )


def read_toml(path: Path, shown: str = "") -> dict[str, Any]:
    """Return the content of a TOML file; MirblabError, with the file as *shown* and the line, when it cannot be used.

    It cannot be used when it is not UTF-8, not valid TOML, nested too deeply, or when a number is not finite (nan, inf,
    1e400). FileNotFoundError when there is no such file.
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
        table = tomllib.loads(text)
        if is_nested_deeper(table, DEEPEST):
            raise RecursionError
    except RecursionError as error:
        raise MirblabError(f"{where} is nested too deeply to be read; write it flatter") from error
    except ValueError as error:  # also what tomllib does not name: a whole number of 5,000 digits, a date that is none
        raise MirblabError(f"{where} is not valid TOML: {error}; mend that place of it") from error
    for name, number in _numbers(table):
        if not math.isfinite(number):
            line = line_of_key(text, name.rpartition(".")[2])
            raise MirblabError(f"{where}{line}: {name} is {number}; write a finite number")
    return table


def line_of_key(text: str, key: str) -> str:
    """Return ", line 3" for the first line of a TOML *text* that sets *key* or heads its table, or "" without one.

    >>> line_of_key("[a]\\nk1 = nan", "k1"), line_of_key("[a]", "b")
    (', line 2', '')
    """
    quoted = rf"[\"']?{re.escape(key)}[\"']?"
    match = re.search(rf"(?m)^[^#\n]*?(?<![\w-])(?:{quoted}\s*=|\[+\s*{quoted}\s*[.\]])", text)
    return f", line {text.count(chr(10), 0, match.end()) + 1}" if match else ""


def _registry_files(kind: str) -> list[Path]:
    """Return the package's file, followed by that of the home registry where there is one."""
    at_home = paths.home() / "registry" / f"{kind}.toml"
    return [_REGISTRY_FOLDER / f"{kind}.toml", *([at_home] if at_home.is_file() else [])]


def _shown_name(path: Path) -> str:
    return path.name if path.parent == _REGISTRY_FOLDER else str(path)


def _read_entries(path: Path) -> dict[str, dict[str, Any]]:
    entries = read_toml(path, _shown_name(path))
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            where = f"'{name}' in {_shown_name(path)}{line_of_key(path.read_text('utf-8'), name)}"
            is_secret = re.search("(?i)key|token|secret|password", name)
            value = "a value" if is_secret else f"{entry!r:.60}"  # a key that was written into the file is not repeated
            raise MirblabError(f"{where} is {value}, not a table; write [{name}] above its fields")
    return entries


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        bad = content[error.start : error.start + 1].hex()
        raise MirblabError(f"{where}, line {number}: the byte 0x{bad} is not UTF-8; save the file as UTF-8") from error


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
