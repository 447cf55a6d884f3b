"""stores: everything that the library stores, with how it is checked and removed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from mirblab.core import atomic_files, paths, stored_files
from mirblab.core.errors import MirblabError, check_known


@dataclass(frozen=True)
class Store:
    """A folder of the home, or a file, that the library fills.

    *verify_with*, a function of *module*, returns a line for each problem of a path; *older_with*, if any, the folders
    or files of older versions with their numbers of *units*, and *old* what these are. *is_made_again*: commands make
    the content again.
    """

    name: str
    units: str
    module: str
    verify_with: str
    place: str
    is_made_again: bool = True
    older_with: str = ""
    old: str = "made by an older version, {size}, which are no longer read"

    @property
    def path(self) -> Path:
        """Return its path, which need not exist."""
        return paths.home() / self.place

    def files(self) -> list[Path]:
        """Return its files."""
        return _files(self.path)

    def verify(self) -> list[str]:
        """Check everything in it; return a line for each problem."""
        return getattr(import_module(self.module), self.verify_with)(self.path) if self.path.exists() else []

    def older(self) -> list[tuple[Path, int]]:
        """Return what this version may never read, as what older ones wrote, with the number of units."""
        has_older = self.older_with and self.path.is_dir()
        return getattr(import_module(self.module), self.older_with)(self.path) if has_older else []

    def remove(self) -> None:
        """Remove it with its content; MirblabError for a link, or if something remains."""
        if self.path.is_symlink():
            raise MirblabError(
                f"{self.path} is a link to {os.readlink(self.path)}, and nothing was removed: what is outside the "
                "home is yours; remove it there, or remove the link"
            )
        atomic_files.remove_path(self.path)


STORES = (
    Store("vectors", "vectors", "mirblab.encoders.spaces", "verify", "cache/vectors", older_with="older"),
    Store("tokens", "texts with token vectors", "mirblab.encoders.token_vectors", "verify", "cache/tokens",
          older_with="older"),
    Store("codes", "parts of coded vectors", "mirblab.retrieval.codes", "verify", "cache/codes"),
    Store("runs", "runs", "mirblab.retrieval.run_store", "verify", "cache/runs"),
    Store("postings", "indexes of terms", "mirblab.retrieval.postings", "verify", "cache/postings", older_with="older",
          old="whose build was stopped, {size}, which are read when it goes on"),
    Store("structure", "indexes of formulas", "mirblab.formula.index", "verify", "cache/structure", older_with="older"),
    Store("projections", "maps", "mirblab.analysis.projection", "verify", "cache/projections"),
    Store("collections", "collections", "mirblab.data.digests", "verify_collections", "cache/collections"),
    Store("rate", "speeds", "mirblab.app.batch.run_planning", "verify_rate", "cache/rate.json"),
    Store(
        "replies", "answers of chat models", "mirblab.encoders.hosted.chat", "verify_replies", "cache/replies", False
    ),
    Store("spending", "bills of hosted models", "mirblab.encoders.hosted.limits", "verify", "cache/spending", False),
    Store("models", "trained models", "mirblab.train.training", "verify_models", "models", False),
    Store("results", "imported results", "mirblab.evaluation.imported", "verify_imports", "results", False),
)  # fmt: skip
# What --remove takes besides the name of a store.
PARTS = {
    "all": "everything that is made again when it is needed",
    "old": "files of an older version, which are no longer read, and of indexes of terms whose build was stopped",
    "damaged": "what was set aside as damaged",
    "partial": "what is unfinished, also by other machines: only when nobody is writing",
}


def describe_parts() -> str:
    """Return what can be removed, in words for the help."""
    names = ", ".join(store.name for store in STORES if store.is_made_again)
    others = ", ".join(store.name for store in STORES if not store.is_made_again)
    parts = "; ".join(f"{name}: {what}" for name, what in PARTS.items())
    return f"{names}; {others}, which 'all' leaves alone; {parts}."


def _in_home(find: Callable[[Path], list[Path]]) -> list[Path]:
    folders = ("cache", "models", "results", "data", "figures")
    return [path for folder in folders for path in find(paths.home() / folder)]


def remove_left_overs() -> list[Path]:
    """Remove, and return, what killed writers of this machine left unfinished in the home."""
    return _in_home(atomic_files.remove_abandoned)


def removal_advice() -> list[tuple[str, str]]:
    """Return what is useless in the stores, each with the command that removes it: old, damaged or unfinished files."""
    advice = []
    for store in STORES:
        if old := store.older():
            count, size = sum(number for _, number in old), _readable_size([path for path, _ in old])
            advice.append((f"{count:,} {store.units} {store.old.format(size=size)}", "mirblab cache --remove old"))
    unfinished = _in_home(atomic_files.unfinished_paths)
    abandoned = [path for path in unfinished if atomic_files.is_abandoned(path)]
    unknown_writer = [path for path in unfinished if atomic_files.has_unknown_writer(path)]
    elsewhere = "half-written by another machine, before a restart or by an older version"
    for files, what, command in (
        (_in_home(stored_files.damaged_paths), "damaged files set aside", "mirblab cache --remove damaged"),
        (abandoned, "left half-written by a process that was killed", "mirblab cache --verify"),
        (unknown_writer, elsewhere, "mirblab cache --remove partial, when nobody is writing"),
    ):
        if files:
            advice.append((f"{len(files)} {what}, {_readable_size(files)}", command))
    return advice


def _readable_size(files: list[Path]) -> str:
    return paths.readable_size(sum(map(disk_size, files)))


def _files(path: Path) -> list[Path]:
    inner = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return [path] if path.is_file() else [file for file in inner if file.is_file()]


def disk_size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    return paths.total_size(_files(path))


def remove_store(name: str) -> Iterator[str]:
    """Remove a store, or one of `PARTS`; yield a line for each removal or failure; MirblabError after failures."""
    groups = {store.name: [store] for store in STORES} | {"all": [store for store in STORES if store.is_made_again]}
    check_known("store", name, sorted({*groups, *PARTS}))
    removals: list[tuple[Path, Callable[[], None]]] = [(store.path, store.remove) for store in groups.get(name, [])]
    if name == "old":
        removals = [(path, partial(atomic_files.remove_path, path)) for store in STORES for path, _ in store.older()]
    elif name in PARTS and name != "all":
        find = stored_files.damaged_paths if name == "damaged" else atomic_files.unfinished_paths
        removals = [(path, partial(atomic_files.remove_path, path)) for path in _in_home(find)]
    n_remaining = 0
    for path, remove in removals:
        if path.exists() or path.is_symlink():
            try:
                remove()
                yield f"removed {path}"
            except MirblabError as error:
                n_remaining += 1
                yield str(error)
    if n_remaining:
        raise MirblabError(f"{n_remaining} of {len(removals)} could not be removed; the lines above say why")
