"""catalogue: load, add and build collections by name."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from operator import eq
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

import pandas as pd

from mirblab.core import atomic_files, paths, registry
from mirblab.core.errors import MirblabError, MissingFileError, check_known, suggest, unknown
from mirblab.core.terminal import say
from mirblab.core.text_files import find_file
from mirblab.data import beir, digests, parts
from mirblab.data.collection import (
    DATASET_PARTS,
    PYTERRIER_PARTS,
    Collection,
    count_oddities,
    from_dataset,
    load_folder,
    read_card_table,
    read_splits,
)
from mirblab.sources import (
    benchmarks,
    hard_negatives,
    history,
    holstep,
    hub,
    lean,
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
    same_theorem,
    stacks,
)
from mirblab.sources.arqmath import build as arqmath
from mirblab.sources.blueprints import build as blueprints
from mirblab.sources.own import build as own
from mirblab.sources.shared.builder import finish_interrupted_builds, replace_folders
from mirblab.sources.stackexchange import build as stackexchange

FORMS = ("parts", "jsonl")  # of a corpus


def build(source: str, origin: str = "", /, **options: Any) -> list[Path]:
    """Build the collections of a *source* under the data folder and return their folders.

    *origin* is a folder, an archive or a URL ("": the source's public repository); *options* are those of the builder,
    such as `name` and `seed`; those of `history.build` (`at`, `until`) take any source that is a git repository. Raises
    MirblabError for an unknown source or option, and for an option of another type.

    >>> [folder.name for folder in build("mini")][:2]
    ['mini-mathlib', 'mini-mse-dup']
    """
    if source in hub.dataset_names():
        return hub.build(origin or None, paths.data(), names=[source])
    if source not in BUILDERS:
        raise unknown("source", source, [*BUILDERS, *hub.dataset_names()])
    builder = BUILDERS[source]
    known = list(inspect.signature(builder).parameters)[2:]
    is_dated = bool({"at", "until"} & options.keys()) and "at" not in known
    types = _option_types(builder) | ({"at": str, "until": str} if is_dated else {})
    for option, value in options.items():
        if option not in types:
            takes = ", ".join(f"--set {name}=..." for name in known) or "--from only"
            raise MirblabError(f"'{source}' cannot be built with --set {option}=...; it takes {takes}")
        if type(value) is int and _takes_text(types[option]):
            options[option] = str(value)  # as of a collection that is called 2024
    options = registry.check_table(f"the options of '{source}'", options, types)
    if is_dated and not options.get("at"):
        raise MirblabError("until needs at, the day or the commit from which statements are asked")
    if is_dated:
        return history.build(source, builder, origin or None, paths.data(), **options)
    return builder(origin or None, paths.data(), **options)


def text_options(source: str) -> set[str]:
    """Return the options of a source's builder that are texts, whatever they look like; none for another source.

    >>> sorted(text_options("stackexchange"))
    ['at', 'name', 'relevant', 'until']
    """
    types = _option_types(BUILDERS[source]) if source in BUILDERS else {}
    return {name for name, wanted in ({"at": str, "until": str} | types).items() if _takes_text(wanted)}


def _option_types(builder: Callable[..., list[Path]]) -> dict[str, Any]:
    """Return the types of a builder's options by name."""
    hints = get_type_hints(builder)
    return {name: hints[name] for name in list(inspect.signature(builder).parameters)[2:]}


def _takes_text(wanted: Any) -> bool:
    return wanted is str or (isinstance(wanted, UnionType) and str in get_args(wanted))


def built_names() -> list[str]:
    """Return the names of the collections that were built or added, without the bundled ones."""
    return sorted(set(_on_disk()) - set(mini.COLLECTIONS))


def load(name_or_folder: str | Path | Any, split: str = "test") -> Collection:
    """Return a collection by its name, from a folder in BEIR's layout, or from a dataset of ir_datasets or PyTerrier.

    A collection is returned as it is. MirblabError for a table, which is a run or judgements: `read_run` takes a run.

    A published collection of MIRB (`mirb-…`) is fetched from the Hub if it is missing. Raises MirblabError, which names
    the command that helps, for an unknown or unbuilt name, and FileNotFoundError for a folder that is no collection.

    >>> load("mini-qa").card.task
    'Question-Answer Retrieval'
    """
    if isinstance(name_or_folder, Collection):
        return name_or_folder
    if isinstance(name_or_folder, pd.DataFrame):
        columns = ", ".join(map(str, name_or_folder.columns)) or "none"
        raise MirblabError(
            f"a table is no collection; found the columns {columns}; read a run with lab.read_run(table), and give "
            "judgements to lab.evaluate(run, qrels)"
        )
    if not isinstance(name_or_folder, (str, Path)) and any(
        hasattr(name_or_folder, part) for part in (*DATASET_PARTS, *PYTERRIER_PARTS)
    ):
        return from_dataset(name_or_folder)
    folder = collection_folder(name_or_folder, fetch=True)
    try:
        return load_folder(folder, split)
    except MirblabError:
        if name_or_folder not in mini.COLLECTIONS or digests.find_differences(folder) == []:
            raise
        return load_folder(collection_folder(name_or_folder), split)  # it was damaged in between


def load_with_queries(name_or_folder: str | Path | Any, split: str = "test") -> Collection:
    """Return a collection as `load` does; MirblabError, with the splits that have queries, for one without a query."""
    collection = load(name_or_folder, split)
    if len(collection.queries):
        return collection
    wrong = f"{collection.name} has no query in the split '{collection.split}', so that nothing can be measured"
    if not isinstance(name_or_folder, (str, Path)):
        raise MirblabError(f"{wrong}; load another split, or add judgements of its queries")
    folder = collection_folder(name_or_folder)
    counts = beir.count_queries(folder)
    found = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    path = folder / "qrels" / f"{split}.tsv"
    advice = "take a split with queries, or add judgements to" if any(counts.values()) else "add judgements to"
    raise MirblabError(f"{wrong}; found these queries by split: {found}; {advice} {path}")


def collection_table() -> pd.DataFrame:
    """Return the registry's title, task, instruction, printed name (`paper`) and revision of each collection, by name.

    Collections that share a column of the paper have its name.

    >>> collection_table().loc["mirb-hol", ["paper", "revision"]].str[:7].tolist()
    ['HolStep', 'a227207']
    """
    rows = {}
    for name, entry in registry.read_registry("collections").items():
        row = {key: str(entry.get(key, "")) for key in ("title", "task", "instruction", "paper", "revision")}
        rows[name] = row | {"paper": entry.get("group") or row["paper"]}
    return pd.DataFrame.from_dict(rows, orient="index")


def collection_groups(collections: Iterable[Collection] = ()) -> dict[str, str]:
    """Return the printed name that several collections share, by collection, for `main_table`.

    A collection of *collections* replaces the published part that its card follows, if that part is not among them.

    >>> collection_groups()["mirb-stacks-premise"]
    'NaturalProofs'
    """
    held = list(collections)
    names = {collection.name for collection in held}
    rebuilt = {each.card.follows: each.name for each in reversed(held) if each.card.follows}
    entries = registry.read_registry("collections").items()
    parts = {name: str(entry["group"]) for name, entry in entries if entry.get("group")}
    return {part if part in names else rebuilt.get(part, part): group for part, group in parts.items()}


def collection_folder(name_or_folder: str | Path, *, fetch: bool = False) -> Path:
    """Return the folder of a collection, derived if it is bundled, from the Hub with *fetch*; else MirblabError."""
    name = str(name_or_folder)
    if isinstance(name_or_folder, Path) or any(sign in name for sign in "/\\") or name in (".", ".."):
        return paths.expand_home(name_or_folder)
    if name in mini.COLLECTIONS:
        folder = paths.data() / name
        if _is_fresh(folder) or atomic_files.try_to_store("miniature collections", mini.build, name, folder):
            return folder
        aside = paths.scratch_folder() / name  # where the data folder cannot be written
        return aside if _is_fresh(aside) else mini.build(name, aside)
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
    if os.path.isdir(name) and beir.find_texts(Path(name), "corpus"):
        return Path(name)
    known = known_collections()
    if (other := registry.match_name(name, known)) != name:
        return collection_folder(other, fetch=fetch)
    raise unknown("collection", name, known)


def known_collections() -> dict[str, dict[str, Any]]:
    """Return every collection that is here or in the registry, with its entry there, or an empty one."""
    return dict.fromkeys(collection_names(), {}) | registry.read_registry("collections")


def collection_names() -> list[str]:
    """Return the names of the bundled, built and added collections; `load` also fetches published ones.

    >>> "mini-qa" in collection_names()
    True
    """
    return sorted({*mini.COLLECTIONS, *_on_disk()})


def add(folder: str | Path, name: str = "", **card: Any) -> tuple[Path, list[str]]:
    """Copy a collection into the data folder under *name* ("": the folder's) and return its folder and notes on it.

    Keyword arguments go into the card (task, candidates, relevant_from …). Where nearly every query is a document of
    the same id, the card gets `candidates = ["not-self"]` unless *candidates* is given. Raises MirblabError for an
    unreadable collection and for a name that another one has.

    >>> from tempfile import TemporaryDirectory
    >>> from mirblab.data.beir import write_collection
    >>> rows = [{"_id": "d1", "text": "Every group has a unit."}], [{"_id": "q1", "text": "neutral element"}]
    >>> with TemporaryDirectory() as folder:
    ...     target, notes = add(write_collection(Path(folder), *rows, {"test": [("q1", "d1", 1)]}, {}), name="own")
    >>> target.name, notes
    ('own', [])
    """
    source = paths.expand_home(folder)
    with _as_parts(source) as readable:
        return _add(source, readable, name, card)


def _add(source: Path, readable: Path, name: str, given: dict[str, Any]) -> tuple[Path, list[str]]:
    """Add the collection in *source*, which can be read in *readable*."""
    import tomli_w

    collection = load_folder(readable)
    name = paths.checked_name(name or source.resolve().name)
    target, notes = paths.data() / name, []
    earlier = read_card_table(target) if source.resolve() != target.resolve() else {}
    own = read_card_table(source)
    card = {**earlier, **own, "name": name}
    card |= {key: value for key, value in given.items() if value not in (None, "")}
    for key in (key for key in own if earlier and card[key] not in (earlier.get(key), given.get(key))):
        was = f"had {key} = {earlier[key]!r:.60}" if key in earlier else f"had no {key}"
        notes.append(f"the card of the collection that is replaced {was}; the folder's card says {own[key]!r:.60}")
    n_documents = collection.oddities.get("queries that have the id of a document", 0)
    if not target.exists() and "candidates" not in card and n_documents > 0.9 * max(1, len(collection.queries)):
        card["candidates"] = ["not-self"]
        notes.append("the card says candidates = 'not-self': a query may not return itself; --candidates all keeps it")
    if card.get("candidates") in ("all", ["all"]):
        del card["candidates"]
    printed = registry.printed_names()
    if card.get("paper") and card["paper"] not in printed:
        notes.append(
            f"the card says paper = {card['paper']!r}, which is no published collection"
            f"{suggest(card['paper'], printed)}; no distance to a paper's number will be shown"
        )
    if name in mini.COLLECTIONS:
        raise MirblabError(f"'{name}' is the name of a bundled collection; give another with --name")
    if source.resolve() == target.resolve():
        raise MirblabError(
            f"{target} is in the data folder already; load('{name}') finds it; --again accepts what was changed in it"
        )
    if target.exists() and (differing := _differing_parts(target, readable)):
        raise MirblabError(
            f"{target} holds another collection of that name, which differs in {', '.join(differing)}; give another "
            "name with --name, or remove it"
        )
    unasked = [] if any(True for _ in beir.read_rows(readable, "queries")) else [name]
    with replace_folders(paths.data(), (name,), unasked) as [beside]:
        _copy(readable, beside)
        atomic_files.write_text(beside / "card.toml", tomli_w.dumps(card))
    oddities, relevant_from = collection.oddities, card.get("relevant_from", collection.card.relevant_from)
    if relevant_from != collection.card.relevant_from:
        oddities = count_oddities(collection.corpus, collection.queries, collection.qrels, relevant_from)
    return target, [*_describe_oddities(oddities), *notes]


@contextmanager
def _as_parts(folder: Path) -> Iterator[Path]:
    """Yield *folder*, or, where its corpus is one large file, a copy in parts, which is removed afterwards."""
    if not beir.is_large(folder):
        yield folder
        return
    digests.check_digests(folder)
    for left in paths.data().glob(".*.partial.parts"):
        if atomic_files.is_abandoned(left):
            atomic_files.remove_path(left)
    scratch = atomic_files.unfinished_name(paths.data() / "parts")
    beside = scratch / folder.resolve().name
    try:
        _copy(folder, beside, corpus=False)
        beir.convert_corpus(folder, beside)
        yield beside
    except MirblabError as error:
        raise MirblabError(str(error).replace(str(beside), str(folder))) from error
    finally:
        parts.close_parts()
        if scratch.exists():
            atomic_files.remove_path(scratch)


def convert(name_or_folder: str | Path, out: str | Path = "", *, to: str = "parts") -> Path:
    """Write a collection's corpus in parts, or as `corpus.jsonl` with *to* "jsonl", and return the folder.

    The folder is replaced as a whole, or *out* names a new one; everything else in it stays as it is, as does the
    fingerprint. In parts, texts are read as they are needed, so that a corpus may be larger than memory. MirblabError
    for a collection that is in that form already, has no card, or is bundled, unless *out* is given.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     converted = load(convert("mini-qa", Path(folder) / "qa"))
    ...     converted.fingerprint == load("mini-qa").fingerprint
    True
    """
    check_known("form of a corpus", to, FORMS)
    source = collection_folder(name_or_folder)
    target = paths.expand_home(out) if str(out) else source
    path = beir.find_texts(source, "corpus")
    if path is None:
        raise MissingFileError(f"{source} is no collection: it has no corpus")
    is_same = (path.name == parts.MANIFEST) == (to == "parts")
    if str(out) and target.exists():
        raise MirblabError(f"{target} exists; name a new folder, or remove it")
    if is_same and not str(out):
        raise MirblabError(f"the corpus of {source} is in the form '{to}' already ({path.name}); nothing was changed")
    if not str(out) and (name_or_folder in mini.COLLECTIONS or not (source / "card.toml").is_file()):
        why = "is a bundled collection" if name_or_folder in mini.COLLECTIONS else "has no card.toml"
        raise MirblabError(f"{source} {why} and is not replaced; give a new folder with --out")
    digests.check_digests(source)
    unwanted = shutil.ignore_patterns("corpus.jsonl*", parts.FOLDER, digests.DIGEST_FILE)
    with replace_folders(target.absolute().parent, (target.name,), (target.name,)) as [beside]:
        shutil.copytree(source, beside, ignore=unwanted, dirs_exist_ok=True)
        beir.convert_corpus(source, beside, to_parts=to == "parts")
    return target


def accept_changes(folder: str | Path, name: str = "", **card: Any) -> tuple[Path, list[str]]:
    """Keep new digests of a changed collection, which must be readable; return its folder and notes. Its card stays."""
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
    return target, [
        *_describe_oddities(collection.oddities),
        "its digests were stored; card.toml was not changed, so describe the change there",
    ]


def _describe_oddities(oddities: dict[str, int]) -> list[str]:
    return [f"{what}: {count:,}" for what, count in oddities.items()]


def build_hard_negatives(name: str, *, near: int = 5, seed: int = 0) -> list[Path]:
    """Return the folders of <name>-hard and <name>-hard-pool, made from a collection of statements and proofs.

    They are in the cache; `build("hard", name)` puts them into the data folder. See `sources.hard_negatives.build`.

    >>> [folder.name for folder in build_hard_negatives("mini-stacks", near=1)]  # doctest: +ELLIPSIS
    mini-stacks-hard: documents ...
    ['mini-stacks-hard', 'mini-stacks-hard-pool']
    """
    return hard_negatives.build(name, paths.cache() / "collections", seed=seed, near=near)


def build_periods(database: str, days: Sequence[str]) -> list[Path]:
    """Return the folders of a Metamath database's periods, each from one of the *days* (ISO) to the next.

    They are in the cache, in a folder for each last day, named by database and first day. *database* is a file, the
    name of one in the data folder, or "mini" for the bundled one; see `sources.metamath.build`. MirblabError for fewer
    than two days.

    >>> [folder.name for folder in build_periods("mini", ["2025-03-01", "2025-05-01"])]  # doctest: +ELLIPSIS
    metamath-premise-at-2025-03-01: documents ...
    ['metamath-premise-at-2025-03-01']
    """
    if len(days) < 2:
        found = ", ".join(days) or "none"
        raise MirblabError(f"a period needs its first day and the day after its last, found {found}")
    path = metamath.find_database(database)
    place = paths.cache() / "collections" / "periods" / paths.checked_name(path.name.partition(".")[0])
    return [metamath.build(path, place / f"until-{until}", at=at, until=until)[0] for at, until in pairwise(days)]


def build_from_files(origin: str = "", **options: Any) -> list[Path]:
    """Return the folders of the collections made from your own files, or from the two bundled examples ("").

    They are in the cache; `build("own", origin)` puts them into the data folder. *options*: `sources.own.build.build`.
    A folder in BEIR's layout is a collection already; it is returned as it is.

    >>> [folder.name for folder in build_from_files()]  # doctest: +ELLIPSIS
    own-latex: 2 .tex files, 12 statements...
    ['own-latex-qa', 'own-latex-premise', 'own']
    """
    source = paths.expand_home(origin)
    if origin and source.is_dir() and beir.find_texts(source, "corpus"):
        if given := {name: value for name, value in options.items() if value}:
            raise MirblabError(
                f"{origin} is a collection in BEIR's layout; leave {', '.join(given)} out, for LaTeX and tables"
            )
        return [source]
    examples = [paths.bundled_path("data", "examples", name) for name in ("own-latex", "own.csv")]
    into = paths.cache() / "collections"
    origins = [origin] if origin else examples
    return [folder for each in origins for folder in own.build(each, into, **options)]


def _on_disk() -> list[str]:
    folder = paths.data()
    if not folder.is_dir():
        return []
    return [
        path.name
        for path in folder.iterdir()
        if not path.name.startswith(".") and path.is_dir() and beir.find_texts(path, "corpus")
    ]


def _is_fresh(folder: Path) -> bool:
    damage = digests.find_differences(folder)
    if damage:
        say(f"{folder} was damaged and is made anew: {', '.join(damage)}", to=sys.stderr)
    return (
        not damage
        and digests.has_digests(folder)
        and read_card_table(folder).get("revision") == mini.miniature_revision()
    )


def _differing_parts(folder: Path, other: Path) -> list[str]:
    """Return the names of the parts of two collections that differ: corpus, queries, judgements, lists and groups."""
    both, differing = (folder, other), []
    for stem in ("corpus", "queries"):
        files = [path for each in both if (path := beir.find_texts(each, stem))]
        if len(files) < 2:
            return ["corpus or queries"]
        has_same_bytes = len(set(map(digests.file_digest, files))) == 1
        if not has_same_bytes and not _are_equal(*(beir.read_texts(each, stem) for each in both)):
            differing.append(stem)
    for split in sorted({*beir.split_names(folder), *beir.split_names(other)}):
        if len({tuple(sorted(beir.read_judgements(each, split))) for each in both}) > 1:
            differing.append(f"qrels/{split}.tsv")
    lists = [beir.read_lists(each) for each in both]
    for stem in beir.LIST_KEYS:
        if lists[0].get(stem) != lists[1].get(stem):
            differing.append(stem)
    if len({tuple(beir.read_group_rows(each)) for each in both}) > 1:
        differing.append(beir.GROUPS)
    return differing


def _are_equal(table: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Compare two tables cell by cell, since the texts of a corpus in parts need not fit in memory."""
    if list(table) != list(other) or len(table) != len(other):
        return False
    return all(all(map(eq, map(str, table[name]), map(str, other[name]))) for name in table)


def _copy(source: Path, target: Path, *, corpus: bool = True) -> None:
    atomic_files.make_folder(target / "qrels")
    stems = ("corpus", "queries", "candidates", "excluded_ids")[0 if corpus else 1 :]
    files = [path for stem in stems if (path := find_file(source, stem))]
    if corpus:
        files += (source / parts.FOLDER).glob("*")
    for path in [*files, *(source / "qrels").glob("*.tsv"), *source.glob("README*"), *source.glob(beir.GROUPS)]:
        copied = target / path.relative_to(source)
        atomic_files.make_folder(copied.parent)
        shutil.copyfile(path, copied)
    if not corpus and (source / "card.toml").is_file():
        shutil.copyfile(source / "card.toml", target / "card.toml")


def _mini(origin: str | None, out: Path) -> list[Path]:
    if origin:
        raise MirblabError("mini is built from the bundled cards; leave --from out")
    names = tuple(mini.COLLECTIONS)
    with replace_folders(out, names) as folders:  # an incomplete one without its card would be read, with other rules
        for name, folder in zip(names, folders, strict=True):
            mini.build(name, folder)
    return [out / name for name in names]


BUILDERS: dict[str, Callable[..., list[Path]]] = {
    "arqmath": arqmath.build,
    "blueprints": blueprints.build,
    "bright": benchmarks.bright,
    "hard": hard_negatives.build,
    "holstep": holstep.build,
    "lean": lean.build,
    "leandojo": leandojo.build,
    "leansearch": benchmarks.leansearch,
    "mapl": mapl.build,
    "mathlib-informal": mathlib_informal.build,
    "mathnet": benchmarks.mathnet,
    "meld": meld.build,
    "metamath": metamath.build,
    "mini": _mini,
    "mirb": hub.build,
    "naturalproofs": naturalproofs.build,
    "ntcir": ntcir.build,
    "own": own.build,
    "rocq": rocq.build,
    "same-theorem": same_theorem.build,
    "stackexchange": stackexchange.build,
    "stacks": stacks.build,
    "theorem-matching": benchmarks.theorem_matching,
    "theoremsearch": benchmarks.theorem_search,
    "views": lean_views.build,
}
