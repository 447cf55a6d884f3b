"""shelf: collections by name: which are there, and where each of them is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pandas as pd

from mirblab import digests, paths, registry
from mirblab.card import raw
from mirblab.collection import Collection, load_folder
from mirblab.errors import MirblabError, unknown
from mirblab.lines import find
from mirblab.sources import hub, mini
from mirblab.sources.origin import finish
from mirblab.terminal import say


def collection_names() -> list[str]:
    """Return the collections that are here by name: the bundled ones, and those built or added.

    `load` knows more: MIRB's published ones, which it fetches.

    >>> "mini-qa" in collection_names()
    True
    """
    return sorted({*mini.COLLECTIONS, *_on_disk()})


def built_names() -> list[str]:
    """Return the collections that were built or added, the bundled ones left out."""
    return sorted(set(_on_disk()) - set(mini.COLLECTIONS))


def load(name_or_folder: str | Path, split: str = "test") -> Collection:
    """Return a collection by its name, or from a folder in BEIR's layout.

    One of MIRB's published collections (`mirb-…`) is fetched from the Hub when it is not here yet. Raises
    MirblabError with a suggestion for an unknown name, with the command that builds it, or with what to do without
    a network, and FileNotFoundError for a folder that is no collection.

    >>> load("mini-qa").card.task
    'Question-Answer Retrieval'
    """
    folder = where(name_or_folder, fetch=True)
    try:
        return load_folder(folder, split)
    except MirblabError:
        if name_or_folder not in mini.COLLECTIONS or digests.differences(folder) == []:
            raise
        return load_folder(where(name_or_folder), split)  # it was damaged after `where` had looked


def collection_table() -> pd.DataFrame:
    """Return what the registry says of each collection: title, task, instruction, paper, revision; by name.

    `paper` is the printed name, that of its group where several share one column; nothing is loaded or fetched.

    >>> collection_table().loc["mirb-hol", ["paper", "revision"]].str[:7].tolist()
    ['HolStep', 'a227207']
    """
    rows = {}
    for name, entry in registry.read("collections").items():
        found = {key: str(entry.get(key, "")) for key in ("title", "task", "instruction", "paper", "revision")}
        rows[name] = found | {"paper": entry.get("group") or found["paper"]}
    return pd.DataFrame.from_dict(rows, orient="index")


def groups(collections: Iterable[Collection] = ()) -> dict[str, str]:
    """Return the printed name that several collections share, by collection, for `main_table`.

    Every published part of a group stands there under its own name, unless it is not among the *collections* while
    one is whose card says that it follows it; so a group is whole only when each part is published or rebuilt.

    >>> groups()["mirb-stacks-premise"]
    'NaturalProofs'
    """
    held = list(collections)
    names = {one.name for one in held}
    rebuilt = {one.card.follows: one.name for one in reversed(held) if one.card.follows}
    entries = registry.read("collections").items()
    parts = {name: str(entry["group"]) for name, entry in entries if entry.get("group")}
    return {part if part in names else rebuilt.get(part, part): group for part, group in parts.items()}


def where(name_or_folder: str | Path, *, fetch: bool = False) -> Path:
    """Return the folder of a collection; a bundled one is derived from its cards when it is missing or old.

    With *fetch* a published one that is not here yet comes from the Hub. Else, and for what has to be built, raises
    MirblabError with the command.
    """
    name = str(name_or_folder)
    if isinstance(name_or_folder, Path) or any(sign in name for sign in "/\\") or name in (".", ".."):
        return paths.given(name_or_folder)
    if name in mini.COLLECTIONS:
        return _fresh(name)
    if name not in _on_disk() and paths.data().is_dir():
        with suppress(OSError):  # a folder that cannot be written is left as it is
            finish(paths.data())
    if name in _on_disk():
        return paths.data() / name
    entries = registry.read("collections")
    if name in entries:
        builder = entries[name].get("builder", "stacks")
        if builder == "mirb" and fetch:
            return hub.build(None, paths.data(), [name])[0]
        source = name if builder == "mirb" else builder
        raise MirblabError(f"the collection '{name}' is not built yet; run: mirblab build {source}")
    if os.path.isdir(name) and find(Path(name), "corpus"):
        return Path(name)
    raise unknown("collection", name, {*collection_names(), *entries})


def _on_disk() -> list[str]:
    folder = paths.data()
    if not folder.is_dir():
        return []
    return [
        path.name
        for path in folder.iterdir()
        if not path.name.startswith(".") and path.is_dir() and find(path, "corpus")
    ]


def _fresh(name: str) -> Path:
    """Return the folder of a miniature collection, derived anew when the cards have changed since, or a file has.

    Where `<home>/data` cannot be written it is derived into a temporary folder of this process.
    """
    folder = paths.data() / name
    if _is_fresh(folder) or paths.stored("miniature collections", mini.build, name, folder):
        return folder
    aside = paths.scratch() / name
    return aside if _is_fresh(aside) else mini.build(name, aside)


def _is_fresh(folder: Path) -> bool:
    """Return whether a miniature collection is there, undamaged, and made from the cards as they are now."""
    damage = digests.differences(folder)
    if damage:
        say(f"{folder} was damaged and is made anew: {', '.join(damage)}", to=sys.stderr)
    return not damage and digests.are_kept(folder) and raw(folder).get("revision") == mini.revision()
