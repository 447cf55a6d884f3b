"""shelf: collections by name: which are there, where they come from, and how one is added."""

from __future__ import annotations

import shutil
import tomllib
import uuid
from pathlib import Path
from typing import Any

from mirblab import paths, registry
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
        raise MirblabError(f"the collection '{name}' is not built yet; run: mirblab build {entry['builder']}")
    if Path(name).is_dir() and find(Path(name), "corpus"):
        return Path(name)
    raise unknown("collection", name, collection_names())


def add(folder: str | Path, name: str = "", **card: Any) -> tuple[Path, list[str]]:
    """Copy a collection into the data folder under *name* (default: the folder's), so that suites find it.

    Keyword arguments go into the card (task, candidates, relevant_from …). It is read and checked first, and
    appears whole or not at all. Where nearly every query is a document of the same id, the card gets
    `candidates = ["not-self"]` unless *candidates* is given, since a query would find itself. Returns the new
    folder and what the user should know. Raises MirblabError when the name is taken by other content.
    """
    import tomli_w

    source = Path(folder).expanduser()
    collection = load_folder(source, _split(source))
    name = paths.clean_name(name or source.resolve().name)
    notes = [f"{count:,} {what}" for what, count in collection.oddities.items()]
    found = _card(source) | {"name": name} | {key: value for key, value in card.items() if value not in (None, "")}
    own = collection.oddities.get("queries that are documents of the same id", 0)
    if "candidates" not in found and own > 0.9 * len(collection.queries):
        found["candidates"] = ["not-self"]
        notes.append("the card says candidates = 'not-self': a query may not return itself; --candidates all keeps it")
    if found.get("candidates") in ("all", ["all"]):
        del found["candidates"]
    target = paths.data() / name
    if name in mini.COLLECTIONS:
        raise MirblabError(f"'{name}' is the name of a bundled collection; give another with --name")
    if target.exists() and load_folder(target, collection.split).qrels.shape != collection.qrels.shape:
        raise MirblabError(f"{target} holds another collection of that name; give another with --name, or remove it")
    beside = target.with_name(f".{name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        _copy(source, beside)
        (beside / "card.toml").write_text(tomli_w.dumps(found), encoding="utf-8")
        load_folder(beside, collection.split)
        paths.swap(beside, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return target, notes


def _split(folder: Path) -> str:
    """Return "test" where there is such a split, else the only one."""
    found = sorted(path.stem for path in (folder / "qrels").glob("*.tsv"))
    return found[0] if len(found) == 1 else "test"


def _copy(source: Path, target: Path) -> None:
    """Copy what belongs to a collection, and nothing else."""
    (target / "qrels").mkdir(parents=True)
    for stem in ("corpus", "queries", "candidates", "excluded_ids"):
        path = find(source, stem)
        if path:
            shutil.copyfile(path, target / path.name)
    for path in [*(source / "qrels").glob("*.tsv"), *source.glob("README*")]:
        shutil.copyfile(path, target / path.relative_to(source))


def _card(folder: Path) -> dict[str, Any]:
    path = folder / "card.toml"
    return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}


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
    if _card(folder).get("revision") != mini.revision():
        mini.build(name, folder)
    return folder
