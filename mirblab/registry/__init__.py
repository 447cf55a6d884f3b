"""registry: the named encoders, rerankers, systems and collections, as TOML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mirblab import paths
from mirblab.errors import MirblabError
from mirblab.toml import line, read_toml

# What the fields of entries are, where no module checks them for itself; other fields are free.
_FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "collections": dict.fromkeys(
        "builder title task instruction hub revision paper licence source group rule command".split(), str
    )
    | {"candidates": (str, list), "relevance_levels": list, "relevant_from": int, "restricted": bool}
    | {"queries": int, "documents": int},
    "rerankers": dict.fromkeys("kind label encoder id revision size licence instruction".split(), str)
    | {"max_length": int, "trust_remote_code": bool},
}
_WORDS = {str: "text in quotes", int: "a whole number", bool: "true or false", list: "a list"}


def read(kind: str) -> dict[str, dict[str, Any]]:
    """Return the entries of one *kind* by name; `<home>/registry/<kind>.toml` adds to them and wins.

    MirblabError with file and line for a file that cannot be read, an entry that is no table, and a field of another
    type than it must have.

    >>> "minilm" in read("encoders")
    True
    """
    found = {name: entry for path in _files(kind) for name, entry in _entries(path).items()}
    for name, entry in found.items():
        for field, wanted in _FIELDS.get(kind, {}).items():
            value = entry.get(field)
            if value is not None and (not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))):
                words = " or ".join(_WORDS[one] for one in (wanted if isinstance(wanted, tuple) else (wanted,)))
                raise MirblabError(f"'{name}' in {origin(kind, name)}: {field} is {value!r:.60}; write {words}")
    return found


def printed_names() -> list[str]:
    """Return the names that papers print for the collections of the registry, in its order, those of groups once.

    >>> len(printed_names()), printed_names()[1]
    (13, 'Informalized Mathlib4 Retrieval')
    """
    names = (entry.get("paper") or entry.get("group") for entry in read("collections").values())
    return list(dict.fromkeys(name for name in names if name))


def origin(kind: str, name: str) -> str:
    """Return the file that an entry comes from: the home registry's if it is there, else the package's.

    >>> origin("encoders", "minilm")
    'encoders.toml'
    """
    return next((_shown(path) for path in reversed(_files(kind)) if name in _entries(path)), f"{kind}.toml")


def _files(kind: str) -> list[Path]:
    """Return the package's file, and after it the home registry's where there is one."""
    own = paths.home() / "registry" / f"{kind}.toml"
    return [Path(__file__).with_name(f"{kind}.toml"), *([own] if own.is_file() else [])]


def _shown(path: Path) -> str:
    return path.name if path.parent == Path(__file__).parent else str(path)


def _entries(path: Path) -> dict[str, dict[str, Any]]:
    entries = read_toml(path, _shown(path))
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            where = f"'{name}' in {_shown(path)}{line(path.read_text('utf-8'), name)}"
            is_secret = re.search("(?i)key|token|secret|password", name)
            value = "a value" if is_secret else f"{entry!r:.60}"  # a key that was written into the file is not repeated
            raise MirblabError(f"{where} is {value}, not a table; write [{name}] above its fields")
    return entries
