"""places: the files of a release that lies in one or several folders."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from mirblab import paths
from mirblab.errors import MirblabError

_PACKED = re.compile(r"\.gz$", re.IGNORECASE)


def split(origin: str | Path) -> tuple[Path, ...]:
    """Return the folders and files that *origin* names: one, or several joined as in `PATH` (`:`, on Windows `;`).

    Raises FileNotFoundError for one that does not exist.

    >>> [place.name for place in split(os.curdir)]
    ['']
    """
    whole = paths.given(origin)
    if whole.exists():
        return (whole,)
    places = [paths.given(part) for part in str(origin).split(os.pathsep) if part]
    for place in places or [whole]:
        if not place.exists():
            raise FileNotFoundError(f"no {place}; give a folder, or several joined by '{os.pathsep}'")
    return tuple(places)


def files(places: Iterable[Path]) -> list[Path]:
    """Return the files anywhere below the *places*, in the order of the places, then by path; hidden ones not."""
    found: dict[Path, None] = {}
    for place in places:
        below = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
        found |= dict.fromkeys(path for path in below if not path.name.startswith("."))
    return list(found)


def kind(path: Path) -> str:
    """Return the ending of a file's name, in lower case and without `.gz`.

    >>> kind(Path("Posts.V1.3.XML.gz")), kind(Path("qrel_task1_2020_official"))
    ('.xml', '')
    """
    return Path(_PACKED.sub("", path.name)).suffix.lower()


def only(paths: list[Path], what: str) -> Path | None:
    """Return the one path, or None when there is none; MirblabError for several, which names them."""
    if len(paths) > 1:
        raise MirblabError(f"several files have {what}: {', '.join(map(str, paths))}; keep one of them")
    return paths[0] if paths else None


def shown(places: Iterable[Path]) -> str:
    """Return the places without this machine's paths, joined as they are given.

    >>> shown([Path("/data/a"), Path("/other/b.tsv")]).split(os.pathsep)
    ['a', 'b.tsv']
    """
    return os.pathsep.join(place.resolve().name for place in places)


def revision(paths: Iterable[Path]) -> str:
    """Return a hash of the bytes of files, in their order."""
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "blake2b").digest())
    return f"blake2b:{digest.hexdigest()}"
