"""catalogue: collections by name: loaded, added, built."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab.core import paths, registry
from mirblab.core.errors import MirblabError, suggest, unknown
from mirblab.core.terminal import say
from mirblab.core.text_files import find_file
from mirblab.data import digests
from mirblab.data.collection import Collection, load_folder, read_card_table, read_splits
from mirblab.sources import (
    hard_negatives,
    holstep,
    hub,
    lean_views,
    leandojo,
    mapl,
    mathlib_informal,
    meld,
    metamath,
    mini,
    naturalproofs,
    ntcir,
    rocq,
    stacks,
)
from mirblab.sources.arqmath import build as arqmath
from mirblab.sources.blueprints import build as blueprints
from mirblab.sources.own import build as own
from mirblab.sources.shared.builder import finish_interrupted_builds, replace_folders
from mirblab.sources.stackexchange import build as stackexchange


def build(source: str, origin: str = "", **options: Any) -> list[Path]:
    """Build the collections of a *source* under the data folder and return their folders.

    *origin* is a folder, an archive or a URL ("": the source's public repository); the *options* are those of the
    source's builder, such as `name` and `seed`. Raises MirblabError with a suggestion for an unknown source, and
    for an option that the source does not have.

    >>> [folder.name for folder in build("mini")][:2]
    ['mini-mathlib', 'mini-mse-dup']
    """
    if source in hub.dataset_names():
        return hub.build(origin or None, paths.data(), names=[source])
    if source not in BUILDERS:
        raise unknown("source", source, [*BUILDERS, *hub.dataset_names()])
    builder = BUILDERS[source]
    known = list(inspect.signature(builder).parameters)[2:]
    for option in options:
        if option not in known:
            raise MirblabError(f"'{source}' cannot be built with --set {option}=...; it takes {_options(known)}")
    return builder(origin or None, paths.data(), **options)


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
    folder = collection_folder(name_or_folder, fetch=True)
    try:
        return load_folder(folder, split)
    except MirblabError:
        if name_or_folder not in mini.COLLECTIONS or digests.find_differences(folder) == []:
            raise
        return load_folder(collection_folder(name_or_folder), split)  # it was damaged in between


def collection_table() -> pd.DataFrame:
    """Return what the registry says of each collection: title, task, instruction, paper, revision; by name.

    `paper` is the printed name, that of its group where several share one column; nothing is loaded or fetched.

    >>> collection_table().loc["mirb-hol", ["paper", "revision"]].str[:7].tolist()
    ['HolStep', 'a227207']
    """
    rows = {}
    for name, entry in registry.read_registry("collections").items():
        found = {key: str(entry.get(key, "")) for key in ("title", "task", "instruction", "paper", "revision")}
        rows[name] = found | {"paper": entry.get("group") or found["paper"]}
    return pd.DataFrame.from_dict(rows, orient="index")


def collection_groups(collections: Iterable[Collection] = ()) -> dict[str, str]:
    """Return the printed name that several collections share, by collection, for `main_table`.

    Every published part of a group stands there under its own name, unless it is not among the *collections* while
    one is whose card says that it follows it; so a group is whole only when each part is published or rebuilt.

    >>> collection_groups()["mirb-stacks-premise"]
    'NaturalProofs'
    """
    held = list(collections)
    names = {one.name for one in held}
    rebuilt = {one.card.follows: one.name for one in reversed(held) if one.card.follows}
    entries = registry.read_registry("collections").items()
    parts = {name: str(entry["group"]) for name, entry in entries if entry.get("group")}
    return {part if part in names else rebuilt.get(part, part): group for part, group in parts.items()}


def collection_folder(name_or_folder: str | Path, *, fetch: bool = False) -> Path:
    """Return the folder of a collection; a bundled one is derived from its cards when it is missing or old.

    With *fetch* a published one that is not here yet comes from the Hub. Else, and for what has to be built, raises
    MirblabError with the command.
    """
    name = str(name_or_folder)
    if isinstance(name_or_folder, Path) or any(sign in name for sign in "/\\") or name in (".", ".."):
        return paths.expand_home(name_or_folder)
    if name in mini.COLLECTIONS:
        return _fresh(name)
    if name not in _on_disk() and paths.data().is_dir():
        with suppress(OSError):  # a folder that cannot be written is left as it is
            finish_interrupted_builds(paths.data())
    if name in _on_disk():
        return paths.data() / name
    entries = registry.read_registry("collections")
    if name in entries:
        builder = entries[name].get("builder", "stacks")
        if builder == "mirb" and fetch:
            return hub.build(None, paths.data(), [name])[0]
        source = name if builder == "mirb" else builder
        raise MirblabError(f"the collection '{name}' is not built yet; run: mirblab build {source}")
    if os.path.isdir(name) and find_file(Path(name), "corpus"):
        return Path(name)
    raise unknown("collection", name, {*collection_names(), *entries})


def collection_names() -> list[str]:
    """Return the collections that are here by name: the bundled ones, and those built or added.

    `load` knows more: MIRB's published ones, which it fetches.

    >>> "mini-qa" in collection_names()
    True
    """
    return sorted({*mini.COLLECTIONS, *_on_disk()})


def add(folder: str | Path, name: str = "", **card: Any) -> tuple[Path, list[str]]:
    """Copy a collection into the data folder under *name* (default: the folder's), so that suites find it.

    Keyword arguments go into the card (task, candidates, relevant_from …). It is read and checked first, and
    appears whole or not at all. Where nearly every query is a document of the same id, the card gets
    `candidates = ["not-self"]` unless *candidates* is given, since a query would find itself. Returns the new
    folder and what the user should know. Raises MirblabError when the name is taken by other content.

    >>> from tempfile import TemporaryDirectory
    >>> from mirblab.data.beir import write_collection
    >>> rows = [{"_id": "d1", "text": "Every group has a unit."}], [{"_id": "q1", "text": "neutral element"}]
    >>> with TemporaryDirectory() as folder:
    ...     target, notes = add(write_collection(Path(folder), *rows, {"test": [("q1", "d1", 1)]}, {}), name="own")
    >>> target.name, notes
    ('own', [])
    """
    import tomli_w

    source = paths.expand_home(folder)
    collection = load_folder(source)
    name = paths.checked_name(name or source.resolve().name)
    notes = [f"{count:,} {what}" for what, count in collection.oddities.items()]
    found = (
        read_card_table(source)
        | {"name": name}
        | {key: value for key, value in card.items() if value not in (None, "")}
    )
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
    with replace_folders(paths.data(), (name,)) as [beside]:
        _copy(source, beside)
        paths.write_text(beside / "card.toml", tomli_w.dumps(found))
    return target, notes


def accept_changes(folder: str | Path, name: str = "", **card: Any) -> tuple[Path, list[str]]:
    """Accept a changed collection as a new one, in place: it is read in every split, and new digests are kept.

    Also for a collection that has no digests yet; it keeps its name and card, so none are taken here. Returns the
    folder and what the user should know. Raises MirblabError for a bundled collection, which is derived from its cards,
    and for what cannot be read.

    >>> from tempfile import TemporaryDirectory
    >>> from mirblab.data.beir import write_collection
    >>> rows = [{"_id": "d1", "text": "Every group has a unit."}], [{"_id": "q1", "text": "neutral element"}]
    >>> with TemporaryDirectory() as place:
    ...     accept_changes(write_collection(Path(place), *rows, {"test": [("q1", "d1", 1)]}, {}))[1]
    ['its digests were kept; card.toml is as it was, so say there what is different now']
    """
    target = paths.expand_home(folder)
    if name or any(card.values()):
        raise MirblabError("--again takes the folder as it is, with its own card; leave the other options out")
    if target.resolve() in [(paths.data() / name).resolve() for name in mini.COLLECTIONS]:
        raise MirblabError(
            f"{target} is derived from the bundled cards, and load('{target.resolve().name}') makes it anew when it "
            "was changed; copy it to keep a change, and add the copy"
        )
    collection = read_splits(target)[0]
    digests.write_digests(target)
    notes = [f"{count:,} {what}" for what, count in collection.oddities.items()]
    return target, [*notes, "its digests were kept; card.toml is as it was, so say there what is different now"]


def build_hard_negatives(name: str, *, near: int = 5, seed: int = 0) -> list[Path]:
    """Return the folders of <name>-hard and <name>-hard-pool, made from a collection of statements and proofs.

    They stand in the cache, not among the collections that suites find; `build("hard", name)` puts them there. See
    `sources.hard_negatives.build` for what they hold, and for *near* and *seed*.

    >>> [folder.name for folder in build_hard_negatives("mini-stacks", near=1)]  # doctest: +ELLIPSIS
    mini-stacks-hard: documents ...
    ['mini-stacks-hard', 'mini-stacks-hard-pool']
    """
    return hard_negatives.build(name, paths.cache() / "collections", seed=seed, near=near)


def build_from_files(origin: str = "", **options: Any) -> list[Path]:
    """Return the folders of the collections made from one's own files, or from the two bundled examples ("").

    They stand in the cache, not among the collections that suites find; `build("own", origin)` puts them there. See
    `sources.own.build.build` for the *options*.

    >>> [folder.name for folder in build_from_files()]  # doctest: +ELLIPSIS
    own-latex: 2 .tex files, 12 statements...
    ['own-latex-qa', 'own-latex-premise', 'own']
    """
    examples = [paths.bundled_path("data", "examples", name) for name in ("own-latex", "own.csv")]
    into = paths.cache() / "collections"
    return [folder for one in ([origin] if origin else examples) for folder in own.build(one, into, **options)]


def _on_disk() -> list[str]:
    folder = paths.data()
    if not folder.is_dir():
        return []
    return [
        path.name
        for path in folder.iterdir()
        if not path.name.startswith(".") and path.is_dir() and find_file(path, "corpus")
    ]


def _fresh(name: str) -> Path:
    """Return the folder of a miniature collection, derived anew when the cards have changed since, or a file has.

    Where `<home>/data` cannot be written it is derived into a temporary folder of this process.
    """
    folder = paths.data() / name
    if _is_fresh(folder) or paths.try_to_store("miniature collections", mini.build, name, folder):
        return folder
    aside = paths.scratch_folder() / name
    return aside if _is_fresh(aside) else mini.build(name, aside)


def _is_fresh(folder: Path) -> bool:
    """Return whether a miniature collection is there, undamaged, and made from the cards as they are now."""
    damage = digests.find_differences(folder)
    if damage:
        say(f"{folder} was damaged and is made anew: {', '.join(damage)}", to=sys.stderr)
    return (
        not damage
        and digests.has_digests(folder)
        and read_card_table(folder).get("revision") == mini.miniature_revision()
    )


def _same(one: Collection, other: Collection) -> bool:
    """Return whether two collections have the same texts and judgements, whatever their cards say."""
    tables = ("corpus", "queries", "qrels")
    return all(getattr(one, name).astype(str).equals(getattr(other, name).astype(str)) for name in tables)


def _copy(source: Path, target: Path) -> None:
    """Copy what belongs to a collection, and nothing else."""
    paths.make_folder(target / "qrels")
    for stem in ("corpus", "queries", "candidates", "excluded_ids"):
        path = find_file(source, stem)
        if path:
            shutil.copyfile(path, target / path.name)
    for path in [*(source / "qrels").glob("*.tsv"), *source.glob("README*")]:
        shutil.copyfile(path, target / path.relative_to(source))


def _options(names: list[str]) -> str:
    return ", ".join(f"--set {name}=..." for name in names) or "--from only"


def _mini(origin: str | None, out: Path) -> list[Path]:
    if origin:
        raise MirblabError("mini is built from the bundled cards; leave --from out")
    names = tuple(mini.COLLECTIONS)
    with replace_folders(out, names) as folders:  # a half without its card would be read, with other rules
        for name, folder in zip(names, folders, strict=True):
            mini.build(name, folder)
    return [out / name for name in names]


BUILDERS: dict[str, Callable[..., list[Path]]] = {
    "arqmath": arqmath.build,
    "blueprints": blueprints.build,
    "hard": hard_negatives.build,
    "holstep": holstep.build,
    "leandojo": leandojo.build,
    "mapl": mapl.build,
    "mathlib-informal": mathlib_informal.build,
    "meld": meld.build,
    "metamath": metamath.build,
    "mini": _mini,
    "mirb": hub.build,
    "naturalproofs": naturalproofs.build,
    "ntcir": ntcir.build,
    "own": own.build,
    "rocq": rocq.build,
    "stackexchange": stackexchange.build,
    "stacks": stacks.build,
    "views": lean_views.build,
}
