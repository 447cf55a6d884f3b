"""intake: a collection from elsewhere is checked and copied into the data folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from mirblab import digests, paths, registry
from mirblab.card import raw
from mirblab.collection import Collection, load_folder, read_splits
from mirblab.errors import MirblabError, suggest
from mirblab.lines import find
from mirblab.sources import mini
from mirblab.sources.origin import together


def add(folder: str | Path, name: str = "", **card: Any) -> tuple[Path, list[str]]:
    """Copy a collection into the data folder under *name* (default: the folder's), so that suites find it.

    Keyword arguments go into the card (task, candidates, relevant_from …). It is read and checked first, and
    appears whole or not at all. Where nearly every query is a document of the same id, the card gets
    `candidates = ["not-self"]` unless *candidates* is given, since a query would find itself. Returns the new
    folder and what the user should know. Raises MirblabError when the name is taken by other content.

    >>> from tempfile import TemporaryDirectory
    >>> from mirblab.folder import write
    >>> rows = [{"_id": "d1", "text": "Every group has a unit."}], [{"_id": "q1", "text": "neutral element"}]
    >>> with TemporaryDirectory() as folder:
    ...     target, notes = add(write(Path(folder), *rows, {"test": [("q1", "d1", 1)]}, {}), name="own")
    >>> target.name, notes
    ('own', [])
    """
    import tomli_w

    source = paths.given(folder)
    collection = load_folder(source)
    name = paths.clean_name(name or source.resolve().name)
    notes = [f"{count:,} {what}" for what, count in collection.oddities.items()]
    found = raw(source) | {"name": name} | {key: value for key, value in card.items() if value not in (None, "")}
    own = collection.oddities.get("queries that are documents of the same id", 0)
    if "candidates" not in found and own > 0.9 * len(collection.queries):
        found["candidates"] = ["not-self"]
        notes.append("the card says candidates = 'not-self': a query may not return itself; --candidates all keeps it")
    if found.get("candidates") in ("all", ["all"]):
        del found["candidates"]
    printed = registry.printed_names()
    if found.get("paper") and found["paper"] not in printed:
        notes.append(
            f"the card says paper = {found['paper']!r}, which is no published collection"
            f"{suggest(found['paper'], printed)}; no distance to a paper's number will be shown"
        )
    target = paths.data() / name
    if name in mini.COLLECTIONS:
        raise MirblabError(f"'{name}' is the name of a bundled collection; give another with --name")
    if source.resolve() == target.resolve():
        raise MirblabError(
            f"{target} is in the data folder already; load('{name}') finds it; --again accepts what was changed in it"
        )
    if target.exists() and not _same(read_splits(target, ["test"])[0], collection):
        raise MirblabError(f"{target} holds another collection of that name; give another with --name, or remove it")
    with together(paths.data(), (name,)) as [beside]:
        _copy(source, beside)
        paths.write_text(beside / "card.toml", tomli_w.dumps(found))
    return target, notes


def again(folder: str | Path, name: str = "", **card: Any) -> tuple[Path, list[str]]:
    """Accept a changed collection as a new one, in place: it is read in every split, and new digests are kept.

    Also for a collection that has no digests yet; it keeps its name and card, so none are taken here. Returns the
    folder and what the user should know. Raises MirblabError for a bundled collection, which is derived from its cards,
    and for what cannot be read.

    >>> from tempfile import TemporaryDirectory
    >>> from mirblab.folder import write
    >>> rows = [{"_id": "d1", "text": "Every group has a unit."}], [{"_id": "q1", "text": "neutral element"}]
    >>> with TemporaryDirectory() as place:
    ...     again(write(Path(place), *rows, {"test": [("q1", "d1", 1)]}, {}))[1]
    ['its digests were kept; card.toml is as it was, so say there what is different now']
    """
    target = paths.given(folder)
    if name or any(card.values()):
        raise MirblabError("--again takes the folder as it is, with its own card; leave the other options out")
    if target.resolve() in [(paths.data() / name).resolve() for name in mini.COLLECTIONS]:
        raise MirblabError(
            f"{target} is derived from the bundled cards, and load('{target.resolve().name}') makes it anew when it "
            "was changed; copy it to keep a change, and add the copy"
        )
    collection = read_splits(target)[0]
    digests.keep(target)
    notes = [f"{count:,} {what}" for what, count in collection.oddities.items()]
    return target, [*notes, "its digests were kept; card.toml is as it was, so say there what is different now"]


def _same(one: Collection, other: Collection) -> bool:
    """Return whether two collections have the same texts and judgements, whatever their cards say."""
    tables = ("corpus", "queries", "qrels")
    return all(getattr(one, name).astype(str).equals(getattr(other, name).astype(str)) for name in tables)


def _copy(source: Path, target: Path) -> None:
    """Copy what belongs to a collection, and nothing else."""
    paths.make_folder(target / "qrels")
    for stem in ("corpus", "queries", "candidates", "excluded_ids"):
        path = find(source, stem)
        if path:
            shutil.copyfile(path, target / path.name)
    for path in [*(source / "qrels").glob("*.tsv"), *source.glob("README*")]:
        shutil.copyfile(path, target / path.relative_to(source))
