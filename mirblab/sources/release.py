"""release: the files of a published release, in a folder, an archive or alone, found by name, identified by hash."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirblab import paths
from mirblab.errors import MirblabError
from mirblab.sources import origin as origins
from mirblab.sources.origin import Origin
from mirblab.sources.places import revision as revision

_PLAIN = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".tsv", ".parquet")


@dataclass(frozen=True)
class Release:
    """What was given: where it comes from, and its files by their path below the folder, in order."""

    origin: Origin
    files: Mapping[str, Path]

    def matching(self, pattern: str) -> list[Path]:
        """Return the files whose whole path below the folder, or its last parts, match the regular expression."""
        return [path for name, path in self.files.items() if re.fullmatch(rf"(?:.*/)?(?:{pattern})", name)]

    def one(self, pattern: str, what: str) -> Path:
        """Return the only file that matches; FileNotFoundError for none, MirblabError for several, naming *what*."""
        found = self.matching(pattern)
        if len(found) > 1:
            raise MirblabError(f"{self.origin.folder} has {' and '.join(map(str, found))}; keep one {what}")
        if not found:
            raise FileNotFoundError(f"no {what} in {self.origin.folder}; found {self.shown()}")
        return found[0]

    def shown(self) -> str:
        """Return the first names, for messages."""
        names = list(self.files)
        return (", ".join(names[:8]) or "nothing") + (f", and {len(names) - 8} more" if len(names) > 8 else "")


@contextlib.contextmanager
def opened(origin: str | Path | None, what: str, address: str) -> Iterator[Release]:
    """Yield the release at *origin*: a folder, a tar archive, a git URL, or one .json, .jsonl, .tsv or .parquet file.

    *what* and *address* say in errors and in the card what is wanted and where it is published: nothing is fetched
    from there by itself. Raises MirblabError without an origin and for what cannot be read.
    """
    if not origin:
        raise MirblabError(f"give {what} with --from, as a folder or an archive; it is published at {address}")
    path = paths.given(origin)
    if path.is_file() and path.name.endswith(_PLAIN):
        yield Release(Origin(path.parent, address, "", path.name), {path.name: path})
        return
    with origins.opened(origin, address) as found:
        inside = (file for file in found.folder.rglob("*") if file.is_file() and ".git" not in file.parts)
        names = {file.relative_to(found.folder).as_posix(): file for file in inside}
        yield Release(found, dict(sorted(names.items())))


def field(record: Mapping[str, Any], key: str, kind: type, place: str) -> Any:
    """Return the value of a *key* that must be there and of a *kind*; MirblabError with *place* otherwise.

    >>> field({"path": "A.lean"}, "path", str, "corpus.jsonl, line 1")
    'A.lean'
    """
    if key not in record:
        raise MirblabError(f"{place}: no '{key}'; found the keys {', '.join(map(str, record)) or 'none'}")
    value = record[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise MirblabError(f"{place}: '{key}' must be of type {kind.__name__}, found {str(value)[:60]!r}")
    if isinstance(value, str):
        _check_unicode(value, key, place)
    return value


def fields(value: object, place: str) -> Mapping[str, Any]:
    """Return *value* if it is a JSON object; MirblabError with *place* otherwise."""
    if not isinstance(value, Mapping):
        raise MirblabError(f"{place}: expected a JSON object, found {str(value)[:60]!r}")
    return value


def texts(record: Mapping[str, Any], key: str, place: str) -> list[str]:
    """Return the value of a *key* that must be a list of texts; MirblabError with *place* otherwise."""
    found = field(record, key, list, place)
    for value in found:
        if not isinstance(value, str):
            raise MirblabError(f"{place}: '{key}' must be a list of texts, found {str(value)[:60]!r} in it")
        _check_unicode(value, key, place)
    return found


def _check_unicode(text: str, key: str, place: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MirblabError(f"{place}: '{key}' holds half a character (a lone surrogate); repair the text") from error


class Names:
    """Ids that never repeat: a name that was given before gets `#2`, `#3` ...

    >>> names = Names()
    >>> names.new("add_comm"), names.new("add_comm"), names.new("add_comm#2")
    ('add_comm', 'add_comm#2', 'add_comm#2#2')
    """

    def __init__(self) -> None:
        """Begin with no name."""
        self._taken: set[str] = set()

    def new(self, name: str) -> str:
        """Return *name*, or the first free variant of it, and remember it; blanks become `_`, as ids are one word."""
        name, number = "_".join(name.split()) or "_", 1
        free = name
        while free in self._taken:
            number += 1
            free = f"{name}#{number}"
        self._taken.add(free)
        return free
