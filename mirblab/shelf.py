"""shelf: collections by name: which are there, and where each of them is."""

from __future__ import annotations

from pathlib import Path

from mirblab import paths, registry
from mirblab.card import raw
from mirblab.collection import Collection, load_folder
from mirblab.errors import MirblabError, unknown
from mirblab.lines import find
from mirblab.sources import mini


def collection_names() -> list[str]:
    """Return the collections that `load` finds by name: the bundled ones, and those built or added.

    >>> "mini-qa" in collection_names()
    True
    """
    return sorted({*mini.COLLECTIONS, *_on_disk()})


def built_names() -> list[str]:
    """Return the collections that were built or added, the bundled ones left out."""
    return sorted(set(_on_disk()) - set(mini.COLLECTIONS))


def load(name_or_folder: str | Path, split: str = "test") -> Collection:
    """Return a collection by its name, or from a folder in BEIR's layout.

    Raises MirblabError with a suggestion for an unknown name or with the command that builds it, and
    FileNotFoundError for a folder that is no collection.

    >>> load("mini-qa").card.task
    'Question-Answer Retrieval'
    """
    return load_folder(where(name_or_folder), split)


def where(name_or_folder: str | Path) -> Path:
    """Return the folder of a collection; a bundled one is derived from its cards when it is missing or old."""
    name = str(name_or_folder)
    if isinstance(name_or_folder, Path) or any(sign in name for sign in "/\\") or name in (".", ".."):
        return Path(name_or_folder).expanduser()
    if name in mini.COLLECTIONS:
        return _fresh(name)
    if name in _on_disk():
        return paths.data() / name
    entry = registry.read("collections").get(name)
    if entry:
        raise MirblabError(
            f"the collection '{name}' is not built yet; run: mirblab build {entry.get('builder', 'stacks')}"
        )
    if Path(name).is_dir() and find(Path(name), "corpus"):
        return Path(name)
    raise unknown("collection", name, collection_names())


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
