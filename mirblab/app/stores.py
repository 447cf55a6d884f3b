"""stores: the table of all stores: what each holds, its path, the function that checks it, and how it is removed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from mirblab.core import paths, stored_files
from mirblab.core.errors import MirblabError, unknown


@dataclass(frozen=True)
class Store:
    """A folder of the home, or a file, that the library fills.

    *module* has a function *verify_with*, which takes the path and returns a line for each thing that is wrong. Where
    an older version may have left what is no longer read, its function *older_with* returns the folders or files,
    each with how many of the *units* it has. *is_made_again*: by the commands that need it, without anybody's help.
    """

    name: str
    units: str
    module: str
    verify_with: str
    place: str
    is_made_again: bool = True
    older_with: str = ""

    @property
    def path(self) -> Path:
        """Return its path, also when nothing is there."""
        return paths.home() / self.place

    def files(self) -> list[Path]:
        """Return its files."""
        return [self.path] if self.path.is_file() else [path for path in self.path.rglob("*") if path.is_file()]

    def verify(self) -> list[str]:
        """Check everything in it; return a line for each thing that is wrong."""
        return getattr(import_module(self.module), self.verify_with)(self.path) if self.path.exists() else []

    def older(self) -> list[tuple[Path, int]]:
        """Return what an older version has left in it, which is no longer read, with the number of units."""
        has_older = self.older_with and self.path.is_dir()
        return getattr(import_module(self.module), self.older_with)(self.path) if has_older else []

    def remove(self) -> None:
        """Remove it with all that is in it; MirblabError when something stays, and when it lies behind a link."""
        if self.path.is_symlink():
            raise MirblabError(
                f"{self.path} is a link to {os.readlink(self.path)}, and nothing was removed: what is outside of the "
                "home is yours; remove it there, or remove the link"
            )
        paths.remove_path(self.path)


STORES = (
    Store("vectors", "vectors", "mirblab.encoders.spaces", "verify", "cache/vectors", older_with="older"),
    Store("tokens", "texts with token vectors", "mirblab.encoders.token_vectors", "verify", "cache/tokens",
          older_with="older"),
    Store("runs", "runs", "mirblab.retrieval.run_store", "verify", "cache/runs"),
    Store("structure", "indexes of formulas", "mirblab.formula.index", "verify", "cache/structure", older_with="older"),
    Store("projections", "maps", "mirblab.analysis.projection", "verify", "cache/projections", older_with="older"),
    Store("collections", "collections", "mirblab.data.digests", "verify_collections", "cache/collections"),
    Store("rate", "speeds", "mirblab.app.batch", "verify_rate", "cache/rate.json"),
    Store("replies", "answers of chat models", "mirblab.train.rephrase", "verify_replies", "cache/replies", False),
    Store("spending", "bills of hosted models", "mirblab.encoders.hosted.budget", "verify", "cache/spending", False),
    Store("models", "trained models", "mirblab.train.training", "verify_models", "models", False),
    Store("results", "imported results", "mirblab.evaluation.imported", "verify_imports", "results", False),
)  # fmt: skip
# What --remove takes beside the name of a store.
PARTS = {
    "all": "all that is made again when it is needed",
    "old": "files of an older version, which are no longer read",
    "damaged": "what was set aside as damaged",
    "partial": "what is unfinished, also by other machines: only when nobody is writing",
}
# The folders of the home in which something unfinished may lie.
_PLACES = ("cache", "models", "results", "data", "figures")


def describe_parts() -> str:
    """Return what can be removed, in words for the help.

    >>> describe_parts().startswith("vectors, tokens, runs, structure")
    True
    """
    apart = ", ".join(store.name for store in STORES if not store.is_made_again)
    names = ", ".join(store.name for store in STORES if store.is_made_again)
    parts = "; ".join(f"{name}: {what}" for name, what in PARTS.items())
    return f"{names}; {apart}, which 'all' leaves alone; {parts}."


def unfinished_files() -> list[Path]:
    """Return what is unfinished anywhere in the home, also what is being written now."""
    return [path for place in _PLACES for path in paths.unfinished_paths(paths.home() / place)]


def damaged_files() -> list[Path]:
    """Return what was set aside as damaged anywhere in the home."""
    return [path for place in _PLACES for path in stored_files.damaged_paths(paths.home() / place)]


def remove_left_overs() -> list[Path]:
    """Remove what killed writers of this machine left unfinished anywhere in the home, and return it."""
    return [path for place in _PLACES for path in paths.remove_abandoned(paths.home() / place)]


def removal_advice() -> list[tuple[str, str]]:
    """Return what is useless in the stores, each with the command that removes it; nothing is changed.

    Things of an older version, things set aside as damaged, left-overs of killed writers, and of writers elsewhere.
    """
    found = []
    for store in STORES:
        if old := store.older():
            count, room = sum(number for _, number in old), _room([path for path, _ in old])
            found.append((f"{count:,} {store.units} made by an older version, {room}, which are no longer read",
                          "mirblab cache --remove old"))  # fmt: skip
    if aside := damaged_files():
        found.append((f"{len(aside)} damaged files set aside, {_room(aside)}", "mirblab cache --remove damaged"))
    partial = unfinished_files()
    if left := [path for path in partial if paths.is_abandoned(path)]:
        found.append((f"{len(left)} left half-written by a process that was killed, {_room(left)}",
                      "mirblab cache --verify"))  # fmt: skip
    if unclear := [path for path in partial if paths.has_unknown_writer(path)]:
        found.append((f"{len(unclear)} half-written by another machine, before a restart or by an older version, "
                      f"{_room(unclear)}", "mirblab cache --remove partial, when nobody is writing"))  # fmt: skip
    return found


def _room(places: list[Path]) -> str:
    return paths.readable_size(sum(map(disk_size, places)))


def disk_size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(one.stat().st_size for one in files if one.is_file())


def remove_store(name: str) -> Iterator[str]:
    """Remove a store, or one of `PARTS`, and yield a line for each thing that was removed, or stays, and why.

    MirblabError for an unknown name, and at the end when something stays.
    """
    known = {store.name: [store] for store in STORES} | {"all": [one for one in STORES if one.is_made_again]}
    if name not in known | PARTS:
        raise unknown("store", name, [*known, *PARTS])
    if name in known:
        steps = [(store.path, store.remove) for store in known[name]]
    else:
        found = {"damaged": damaged_files, "partial": unfinished_files, "old": _older}[name]()
        steps = [(path, lambda path=path: paths.remove_path(path)) for path in found]
    stays = 0
    for path, step in steps:
        if path.exists() or path.is_symlink():
            try:
                step()
                yield f"removed {path}"
            except MirblabError as error:
                stays += 1
                yield str(error)
    if stays:
        raise MirblabError(f"{stays} of {len(steps)} could not be removed; the lines above say why")


def _older() -> list[Path]:
    return [path for store in STORES for path, _ in store.older()]
