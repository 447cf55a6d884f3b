"""indexes: structure indexes in the cache, each under a hash of its formulas and of the code that reads them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from mirblab import damage, paths
from mirblab.errors import MirblabError
from mirblab.formula import storage
from mirblab.formula.index import Index
from mirblab.formula.version import VERSION

_WORTH_STORING = 5_000  # formulas; fewer are indexed again faster than a folder is opened and checked
_AGAIN = "it is built again when it is needed"


def stored(latex: Sequence[str]) -> Index:
    """Return the index of formulas, ids their positions, from the cache where it was built before.

    A damaged one is set aside with a warning and built again; where nothing can be written, it is built in memory.
    """
    names = [f"{number:010d}" for number in range(len(latex))]
    items = list(zip(names, latex, strict=True))
    if len(latex) < _WORTH_STORING:
        return Index.build(items)
    folder = paths.cache() / "structure" / _key(latex)
    index = _opened(folder)
    if index is None:
        try:
            is_there = paths.stored("structure indexes", Index.build, items, folder)
        except (MirblabError, FileNotFoundError):  # another process was faster, or has removed it
            is_there = True
        index = _opened(folder) if is_there else None
    return Index.build(items) if index is None else index


def verify(folder: Path) -> list[str]:
    """Check every file of every index in *folder*; set damaged ones aside with a warning; return a line for each."""
    wrong = []
    for path in damage.sound(folder):
        if _is_older(path):
            continue
        if not path.is_dir():
            wrong.append(damage.stranger(path))
        elif (reason := _wrong(path)) and damage.set_aside(path, reason, _AGAIN):
            wrong.append(f"{path}: {reason}")
    return wrong


def older(folder: Path) -> list[tuple[Path, int]]:
    """Return the indexes in *folder* that other code has built, which are never read, each counted as one."""
    return [(path, 1) for path in damage.sound(folder) if _is_older(path)]


def _opened(folder: Path) -> Index | None:
    """Return the index in *folder*, None where there is none; what is damaged is set aside."""
    try:
        return Index.open(folder)
    except FileNotFoundError:
        reason = _wrong(folder)
    except MirblabError as error:
        reason = str(error)
    if reason:
        damage.set_aside(folder, reason, _AGAIN)
    return None


def _wrong(folder: Path) -> str:
    """Return what is wrong with the index in *folder*, "" when nothing is, or nobody has finished one there."""
    try:
        Index.open(folder)
    except FileNotFoundError as error:  # a generation appears whole: what is visible beside none is what is left of one
        return str(error) if folder.is_dir() and any(folder.glob("[!.]*")) and not storage.last(folder) else ""
    except MirblabError as error:
        return str(error)
    return ""


def _is_older(folder: Path) -> bool:
    found = storage.made_by(folder)
    return all(found) and found != (storage.FORMAT, VERSION)


def _key(latex: Iterable[str]) -> str:
    digest = hashlib.blake2b(f"{storage.FORMAT} {VERSION}".encode(), digest_size=16)
    for formula in latex:
        text = formula.encode("utf-8", "surrogatepass")
        digest.update(len(text).to_bytes(8, "little") + text)
    return digest.hexdigest()
