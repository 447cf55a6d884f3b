"""spaces: the spaces of vectors, or of token vectors, in a folder: listed, checked, and separated from older ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mirblab.core import stored_files
from mirblab.encoders import cache
from mirblab.encoders.cache import SPACE, ShardStore, VectorStore, space_digest

Store = ShardStore[Any]
_FORMATS_BEFORE = ("mirblab-vectors-2", "mirblab-vectors-1")  # their keys were no BLAKE2b
_CONSEQUENCE = "it is written again when vectors are added"


def open_spaces(folder: str | Path, kind: type[Store] = VectorStore) -> list[Store]:
    """Return the stores of one *kind* in *folder*, by name, of all spaces that have a valid `space.json`."""
    return [store for path in stored_files.sound_paths(folder) if (store := _open_space(path, kind)) is not None]


def verify(folder: Path, kind: type[Store] = VectorStore) -> list[str]:
    """Check all spaces in *folder* but older ones; set damaged files aside with a warning; return a line for each."""
    wrong = []
    for path in stored_files.sound_paths(folder):
        store = _open_space(path, kind)
        if store is not None:
            wrong += [f"{path / name} is damaged; its texts will be encoded again" for name in store.verify()]
        elif not path.is_dir():
            wrong.append(stored_files.unknown_file_message(path))
        elif not _is_older(path) and any(stored_files.sound_paths(path)):
            wrong.append(f"{path / SPACE} does not say whose vectors these are; {_CONSEQUENCE}")
            if (path / SPACE).exists():
                stored_files.set_aside(path / SPACE, "it is not what was written", _CONSEQUENCE)
    return wrong


def older(folder: Path) -> list[tuple[Path, int]]:
    """Return the spaces in *folder* of an older version, which are no longer read, each with its number of texts."""
    old = [path for path in stored_files.sound_paths(folder) if _is_older(path)]
    return [(path, sum(cache.count_texts(one) for one in path.glob(f"*{cache.SUFFIX}"))) for path in old]


def _open_space(path: Path, kind: type[Store]) -> Store | None:
    space = _read_space(path)
    if not isinstance(space.get("dimensions"), int):
        return None
    store = kind(path.parent, space)
    return store if store.path == path else None


def _read_space(path: Path) -> dict[str, Any]:
    try:
        space = json.loads((path / SPACE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return space if isinstance(space, dict) else {}


def _is_older(path: Path) -> bool:
    space = _read_space(path)
    digests = (space_digest(before, space) for before in _FORMATS_BEFORE)
    return bool(space) and any(f"-{digest[:16]}" in path.name for digest in digests)
