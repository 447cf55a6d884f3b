"""shelf: collections by name: which are there, and where each of them is."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mirblab import paths, registry
from mirblab.card import raw
from mirblab.collection import Collection, load_folder
from mirblab.errors import MirblabError, unknown
from mirblab.lines import find
from mirblab.sources import hub, mini


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
    return load_folder(where(name_or_folder, fetch=True), split)


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


def groups() -> dict[str, str]:
    """Return the printed name that several collections share, by collection, for `main_table`.

    >>> groups()["mirb-stacks-premise"]
    'NaturalProofs'
    """
    entries = registry.read("collections").items()
    return {name: str(entry["group"]) for name, entry in entries if entry.get("group")}


def where(name_or_folder: str | Path, *, fetch: bool = False) -> Path:
    """Return the folder of a collection; a bundled one is derived from its cards when it is missing or old.

    With *fetch* a published one that is not here yet comes from the Hub. Else, and for what has to be built, raises
    MirblabError with the command.
    """
    name = str(name_or_folder)
    if isinstance(name_or_folder, Path) or any(sign in name for sign in "/\\") or name in (".", ".."):
        return Path(name_or_folder).expanduser()
    if name in mini.COLLECTIONS:
        return _fresh(name)
    if name in _on_disk():
        return paths.data() / name
    entries = registry.read("collections")
    if name in entries:
        builder = entries[name].get("builder", "stacks")
        if builder == "mirb" and fetch:
            return hub.build(None, paths.data(), [name])[0]
        source = name if builder == "mirb" else builder
        raise MirblabError(f"the collection '{name}' is not built yet; run: mirblab build {source}")
    if Path(name).is_dir() and find(Path(name), "corpus"):
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
    """Return the folder of a miniature collection, derived anew when the cards have changed since."""
    folder = paths.data() / name
    whole = find(folder, "corpus") and find(folder, "queries") and (folder / "qrels" / "test.tsv").is_file()
    if not whole or raw(folder).get("revision") != mini.revision():
        mini.build(name, folder)
    return folder
