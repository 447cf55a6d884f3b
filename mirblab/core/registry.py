"""The TOML files of the registry, of cards and of suites, read and checked."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirblab.core import paths
from mirblab.core.errors import MirblabError, suggest, unknown
from mirblab.core.text_files import is_nested_deeper

if TYPE_CHECKING:
    from pydantic import BaseModel

DEEPEST = 100  # levels of tables and lists; a file of settings has fewer than ten
_REGISTRY_FOLDER = Path(__file__).resolve().parents[1] / "registry"
# The types of the fields, for kinds that no module checks itself; other fields are free.
_FIELD_TYPES: dict[str, dict[str, Any]] = {
    "collections": dict.fromkeys(
        "builder title task instruction hub revision paper licence source group rule command".split(), str
    )
    | {"candidates": str | list, "relevance_levels": list, "relevant_from": int, "restricted": bool}
    | {"queries": int, "documents": int, "follows": str, "language": str, "note": str},
    "rerankers": dict.fromkeys("kind label encoder id revision size licence instruction".split(), str)
    | {"max_length": int, "trust_remote_code": bool},
}
# What to write in place of a value that pydantic refuses, by the type of its error.
_WHAT_TO_WRITE = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "sequence_str": "a list",
    "dict_type": "a table",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number from {ge:g}",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "a number up to {le:g}",
    "literal_error": "{expected}",
}


def read_registry(kind: str) -> dict[str, dict[str, Any]]:
    """Return one *kind*'s entries by name, those of the home registry before others; MirblabError for wrong ones."""
    entries = {}
    types = _FIELD_TYPES.get(kind, {})
    for path in _registry_files(kind):
        for name, entry in _read_entries(path).items():
            typed = {field: value for field, value in entry.items() if field in types}
            check_table(f"'{name}' in {_shown_name(path)}", typed, types)
            entries[name] = entry
    return entries


def match_name(name: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the name in *entries* that equals *name* but for case, or whose label does; else *name* itself.

    >>> match_name("MiniLM, trained on Mathlib", read_registry("encoders"))
    'minilm-math'
    """
    if name in entries:
        return name
    folded = name.strip().casefold()
    names = ((known, str(entry.get("label", known))) for known, entry in entries.items())
    return next((known for known, label in names if folded in (known.casefold(), label.casefold())), name)


def check_table(
    where: str | Callable[[str], str], table: Mapping[str, Any], types: Mapping[str, Any], needed: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the fields of a TOML *table* when each has one of the *types*, and all that are *needed* are present.

    *types* gives each known field an annotation for pydantic; whole numbers become floats where floats are wanted.
    *where* names file and entry for messages, or returns these for the wrong field. Raises MirblabError for the first
    unknown field, for all missing ones, or for the first wrong value.

    >>> check_table("mine.toml", {"depth": "3"}, {"depth": int})
    Traceback (most recent call last):
    mirblab.core.errors.MirblabError: mine.toml: depth is '3'; write a whole number
    """
    from pydantic import ValidationError

    if not table and not needed:
        return {}
    place = where if callable(where) else lambda _: where
    for field in table:
        if field not in types:
            raise unknown(f"field of {place(field)} called", field, types)
    absent = [field for field in needed if field not in table]
    if absent:
        raise MirblabError(f"{place('')} lacks {', '.join(absent)}; add what is missing to the entry")
    try:
        return _table_model(tuple(types.items())).model_validate(table).model_dump(exclude_unset=True)
    except ValidationError as error:
        first = error.errors()[0]
        field, value, near = str(first["loc"][0]), first["input"], ""
        words = []
        for problem in error.errors():
            if problem["loc"][0] == field:  # more than one where a field may have one of several types
                template = _WHAT_TO_WRITE.get(problem["type"], problem["msg"].removeprefix("Input should be "))
                words.append(template.format(**problem.get("ctx", {})))
        if first["type"] == "literal_error":
            near = suggest(str(value), re.findall("'(.*?)'", words[0]))
        path = first["loc"] if isinstance(table[field], (Mapping, list, tuple)) else [field]
        wrong = f"{'.'.join(map(str, path))} is {value!r:.60}"
        raise MirblabError(f"{place(field)}: {wrong}; write {' or '.join(words)}{near}") from error


@cache
def _table_model(types: tuple[tuple[str, Any], ...]) -> type[BaseModel]:
    from pydantic import ConfigDict, create_model

    fields: dict[str, Any] = {name: (wanted, None) for name, wanted in types}
    return create_model("Table", __config__=ConfigDict(strict=True, allow_inf_nan=False), **fields)


def printed_names() -> list[str]:
    """Return the names that papers print for the registry's collections, each once, in the order of the registry."""
    names = (entry.get("paper") or entry.get("group") for entry in read_registry("collections").values())
    return list(dict.fromkeys(name for name in names if name))


def entry_file(kind: str, name: str) -> str:
    """Return the file that an entry comes from: that of the home registry if it has the entry, else the package's."""
    return next(
        (_shown_name(path) for path in reversed(_registry_files(kind)) if name in _read_entries(path)), f"{kind}.toml"
    )


def read_toml(path: Path, shown: str = "") -> dict[str, Any]:
    """Return the content of a TOML file; FileNotFoundError when there is no such file.

    MirblabError, with the file as *shown* and the line, when it is not UTF-8, not valid TOML, nested too deeply, or
    when a number is not finite (nan, inf, 1e400).
    """
    where = shown or str(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise MirblabError(f"{where} cannot be read: {error.strerror}; change its rights, or move it away") from error
    return deepcopy(_parse_toml(_decoded(content, where), where))


@lru_cache(maxsize=1024)  # more than the bundled cards, which each miniature collection is built from
def _parse_toml(text: str, where: str) -> dict[str, Any]:
    """Return the content of a TOML *text*, which a command that reads the registry often needs parsed only once."""
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
    """Yield the dotted name and the value of every float."""
    if isinstance(value, float):
        yield name, value
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner, name)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _numbers(inner, f"{name}.{key}" if name else key)
