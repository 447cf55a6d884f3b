"""builder: write rows of a source as a collection on disk, with a card that counts what was left out."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import operator
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mirblab.core import atomic_files, registry
from mirblab.core.errors import MirblabError
from mirblab.core.terminal import say
from mirblab.data import beir as on_disk
from mirblab.data.collection import read_splits
from mirblab.data.digests import write_digests
from mirblab.data.parts import close_parts
from mirblab.sources.shared import latex
from mirblab.sources.shared.release import Origin

Row = dict[str, Any]
SIZES = {"test": 2000, "dev": 500}
_SIGN = re.compile(r"\\?[A-Za-z]+|\d+|[=<>+*/^-]")
# How a declaration of Lean begins: the keyword, a name, and what it takes or states.
_DECLARATION = re.compile(
    r"(?:(?:private|protected|noncomputable|unsafe|partial|nonrec)\s+)*(?:theorem|lemma|def|abbrev|instance|structure|class"
    r"|inductive|axiom|opaque)\s+(?:[\w.'«»!?₀-₉]+\s*)?(?:[({\[⦃:]|$)"
)
Judgement = tuple[str, str, int]


@dataclass
class CollectionRows:
    """One collection to be written; `judged` has (query, document, relevance) by split.

    `corpus` and `queries` may be generators, so that memory stays bounded; `left_out` may count while they run.
    `groups` are (query, group, document), see `Collection`; `lists` are those of `beir.write_lists`.
    """

    corpus: Iterable[Row]
    queries: Iterable[Row]
    judged: dict[str, list[Judgement]]
    left_out: Counter[str] = field(default_factory=Counter)
    groups: Sequence[tuple[str, ...]] = ()
    lists: Mapping[str, on_disk.QueryList] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class LibraryStatement:
    """A statement, its place `order`, the earlier ones it uses, and why it is `barred` from test and dev (or "")."""

    id: str
    title: str
    text: str
    uses: list[str]
    order: int
    metadata: Row
    barred: str = ""


def read_about(name: str) -> Row:
    """Return what the registry says for the card of a collection, without a printed name."""
    entry = registry.read_registry("collections")[name]
    return {key: value for key, value in entry.items() if key not in ("builder", "command", "paper")}


def read_task(name: str) -> Row:
    """Return the task and the instruction of a collection of the registry.

    >>> read_task("mirb-stacks-qa")
    {'task': 'Question-Answer Retrieval', 'instruction': 'Given a math theorem, retrieve its proof.'}
    """
    about = read_about(name)
    return {key: about[key] for key in ("task", "instruction") if key in about}


def write_collection(
    folder: Path,
    parts: CollectionRows,
    about: Row,
    source: Origin,
    *,
    builder: str,
    revision: str,
    licence: str,
    options: Mapping[str, Any] | None = None,
) -> Path:
    """Write one collection with its card into *folder*, print its counts and what was left out, and return *folder*.

    *about* goes into the card; where it has `follows`, the card gets the printed name of that published collection.
    """
    followed = registry.read_registry("collections")[about["follows"]] if "follows" in about else {}
    facts: Row = {
        "name": folder.name,
        "relevance_levels": [0, 1],
        "relevant_from": 1,
        **about,
        **{key: followed[key] for key in ("paper", "group") if key in followed},
        "source": source.source,
        "licence": licence,
        "revision": source.commit or revision,
        "command": build_command(builder, source.shown, options or {}),
    }
    return write_rows(folder, parts, facts)


def build_command(builder: str, shown: str, options: Mapping[str, Any], *days: str) -> str:
    """Return the command that builds from what is *shown* as the origin, with *days* and other options.

    >>> build_command("rocq", "math-comp", {"seed": 1}, "--at", "2020-01-01")
    'mirblab build rocq --from math-comp --at 2020-01-01 --set seed=1'
    """
    origin = ["--from", shown] if shown else []
    chosen = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    return shlex.join(["mirblab", "build", builder, *origin, *days, *chosen])


def print_counts(name: str, sizes: Mapping[str, int], left_out: Mapping[str, int]) -> None:
    """Print the sizes of what was written, and what was left out or is odd."""
    say(f"{name}: {', '.join(f'{what} {size:,}' for what, size in sizes.items())}")
    for reason, count in left_out.items():
        say(f"  left out or odd: {count:>6,}  {reason}")


def write_rows(folder: Path, parts: CollectionRows, facts: Row) -> Path:
    """Write a collection, with *facts* and its counts in the card, print the counts, and return *folder*."""
    counts: Counter[str] = Counter()

    def card() -> Row:
        sizes: Row = dict(counts)
        for split, pairs in parts.judged.items():
            n_queries = len({query for query, *_ in pairs})
            sizes |= {f"queries_{split}": n_queries, f"judgements_{split}": len(pairs)}
        left_out = {reason: count for reason, count in sorted(parts.left_out.items()) if count}
        return facts | {"counts": {**sizes, "left_out": left_out}}

    corpus, queries = (
        _counted(rows, counts, what) for rows, what in ((parts.corpus, "documents"), (parts.queries, "queries"))
    )
    on_disk.write_lists(folder, parts.lists)
    on_disk.write_collection(folder, corpus, queries, parts.judged, card, parts.groups)
    sizes = card()["counts"]
    left_out = sizes.pop("left_out")
    print_counts(folder.name, {key.replace("_", " "): size for key, size in sizes.items()}, left_out)
    return folder


def premise_collection(stated: Sequence[LibraryStatement], seed: int, left_out: Counter[str]) -> CollectionRows:
    """Return the collection "statement to what its proof uses"; queries that share a text are in train."""
    texts = Counter(item.text for item in stated)
    users = [item for item in stated if item.uses]
    left_out["statements whose proof names no premise (documents, no queries)"] += len(stated) - len(users)
    left_out["statements with the text of another one"] += sum(texts[item.text] > 1 for item in stated)
    bars = {item.id: item.barred or ("shared text" if texts[item.text] > 1 else "") for item in users}
    left_out.update(f"queries kept from test and dev: {bar}" for bar in bars.values() if bar)
    split_of = draw_splits([item.id for item in users if not bars[item.id]], seed)
    judged: dict[str, list[Judgement]] = {split: [] for split in (*SIZES, "train")}
    for item in users:
        judged[split_of.get(item.id, "train")] += [(item.id, name, 1) for name in item.uses]
    metadata = {item.id: {"order": item.order, **item.metadata} for item in stated}
    corpus = (
        {"_id": item.id, "title": item.title, "text": item.text, "metadata": metadata[item.id]} for item in stated
    )
    queries = ({"_id": item.id, "text": item.text, "metadata": metadata[item.id]} for item in users)
    return CollectionRows(corpus, queries, judged, left_out)


class Requirements:
    """The direct and indirect requirements of files: one bit for each pair, so that thousands of files need little."""

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}  # of the files, in the order in which they were added
        self._needed: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._needed

    def __iter__(self) -> Iterator[str]:
        return iter(self._needed)

    def __getitem__(self, name: str) -> set[str]:
        return {other for other, bit in self._bits.items() if self._needed[name] & bit}

    def add(self, name: str, required: Iterable[str]) -> None:
        """Add a file whose own requirements were added before; those that were not are passed over."""
        known = [other for other in required if other in self._needed]
        self._needed[name] = functools.reduce(
            operator.or_, (self._bits[other] | self._needed[other] for other in known), 0
        )
        self._bits[name] = 1 << len(self._bits)

    def has(self, name: str, other: str) -> bool:
        """Return whether the file *name* requires *other*, directly or not."""
        return bool(self._needed[name] & self._bits[other])


def sort_by_requirements(
    required: Mapping[str, Iterable[str]], left_out: Counter[str]
) -> tuple[list[str], Requirements]:
    """Return the files, each after those that it requires, then by path; and all direct and indirect requirements.

    *required* are the files that each file requires itself; what closes a circle is counted in *left_out*.

    >>> ordered, needed = sort_by_requirements({"a": ["c"], "b": [], "c": ["b"]}, Counter())
    >>> ordered, sorted(needed["a"]), needed.has("c", "b")
    (['b', 'c', 'a'], ['b', 'c'], True)
    """
    needed = Requirements()
    for first in sorted(required):
        # The open files, each required by the one before it, with what is left of their requirements.
        opened = {} if first in needed else {first: iter(required[first])}
        while opened:
            name, others = next(reversed(opened.items()))
            for other in others:
                if other in opened:
                    left_out["requirements in a circle"] += other != name
                elif other not in needed:
                    opened[other] = iter(required[other])
                    break
            else:
                del opened[name]
                needed.add(name, required[name])
    return list(needed), needed


def draw_splits(names: Iterable[str], seed: int) -> dict[str, str]:
    """Return the split of each of *names*, by the md5 of seed, colon and name, so that a growing library keeps it.

    The first quarter is test (at most 2,000 names), the next sixteenth dev (at most 500), the rest train.

    >>> draw_splits(["add0n", "addnA", "addnC", "mul0n"], 0)
    {'add0n': 'dev', 'addnA': 'test', 'addnC': 'train', 'mul0n': 'train'}
    """
    names = sorted(names)
    drawn = sorted(names, key=lambda name: hashlib.md5(f"{seed}:{name}".encode(), usedforsecurity=False).digest())
    n_test = min(SIZES["test"], -(-len(names) // 4))
    n_dev = min(SIZES["dev"], -(-len(names) // 16))
    evaluated = dict.fromkeys(drawn[:n_test], "test") | dict.fromkeys(drawn[n_test : n_test + n_dev], "dev")
    return {name: evaluated.get(name, "train") for name in names}


def find_hubs(stated: Iterable[LibraryStatement], share: float = 0.01) -> dict[str, int]:
    """Return the premises of more than *share* of the proofs that use any, with their number, most used first."""
    proofs = [item.uses for item in stated if item.uses]
    counts = Counter(name for uses in proofs for name in uses)
    return {name: count for name, count in counts.most_common() if count > share * len(proofs)}


def drop_documents(judged: list[Judgement], names: Iterable[str], left_out: Counter[str]) -> list[Judgement]:
    """Return the judgements whose document is none of *names*; the others are counted in *left_out*."""
    unwanted = set(names)
    kept = [pair for pair in judged if pair[1] not in unwanted]
    lost = len({query for query, *_ in judged}) - len({query for query, *_ in kept})
    left_out["judgements of hubs, not in test_nohub"] += len(judged) - len(kept)
    left_out["queries whose premises are all hubs, not in test_nohub"] += lost
    return kept


def split_by_novel_premises(
    states: np.ndarray, premises: np.ndarray, *, test: int, dev: int = 0, seed: int = 0
) -> dict[str, np.ndarray]:
    """Return the sorted states of `test`, `dev` and `train`, and those `left` in none, by LeanDojo's novel_premises.

    *states* and *premises* (both of shape pairs, whole numbers from 0) say which state uses which premise. As in Yang
    et al. (NeurIPS 2023), the least used premises are held out (ties in an order drawn with *seed*) until *test* +
    *dev* states use one of them; none of these is in `train`. They are shuffled into `test` and `dev`, which may share
    premises; the surplus is `left`. Raises MirblabError when no state is left for training.
    """
    rng = np.random.default_rng(seed)
    states, premises = np.asarray(states, np.int64), np.asarray(premises, np.int64)
    every, evaluated = np.unique(states), _users_of_rare(states, premises, test + dev, rng)
    if len(evaluated) == len(every):
        raise MirblabError(
            f"{len(every):,} states cannot give {test + dev:,} of unseen premises and leave any for training; "
            "ask for fewer test and dev states"
        )
    shuffled = evaluated[rng.permutation(len(evaluated))]
    parts = zip(("test", "dev", "left"), np.split(shuffled, [test, test + dev]), strict=True)
    train = np.setdiff1d(every, evaluated, assume_unique=True)
    return {"train": train, **{name: np.sort(part) for name, part in parts}}


def connected_groups(pairs: Iterable[tuple[Any, Any]]) -> list[list[Any]]:
    """Return the connected components of the graph with the edges *pairs*, each sorted, by their first member."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = list(pairs)
    members = sorted({member for edge in edges for member in edge})
    numbers = {member: number for number, member in enumerate(members)}
    ends = np.array([[numbers[one], numbers[other]] for one, other in edges], np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(edges), bool), tuple(ends)), shape=(len(members),) * 2)
    groups: dict[int, list[Any]] = {}
    for member, label in zip(members, connected_components(graph, directed=False)[1].tolist(), strict=True):
        groups.setdefault(label, []).append(member)
    return list(groups.values())


def merge_proofs(
    proofs: Mapping[str, Sequence[str]], metadata: Callable[[str], Row], left_out: Counter[str]
) -> tuple[list[Row], dict[str, list[str]], set[str]]:
    """Return the documents, the document ids of each statement, and the statements that share a proof.

    Trivial proofs are left out and texts merged that `fold_prose` makes equal; *metadata* is that of a statement.

    >>> proof = "Add the two equations and divide."
    >>> merge_proofs({"a": ["Omitted.", proof], "b": [proof.upper()]}, lambda name: {}, Counter())[1]
    {'a': ['a-proof-2'], 'b': ['a-proof-2']}
    """
    ids: dict[str, str] = {}
    documents: dict[str, Row] = {}
    of_statement: dict[str, list[str]] = {}
    of_document: dict[str, set[str]] = {}
    for statement, texts in proofs.items():
        for number, text in enumerate(texts, 1):
            if is_trivial_proof(text):
                left_out["proofs under six words, or omitted"] += 1
                continue
            folded = fold_prose(text)
            left_out["proofs with the text of another one (merged)"] += folded in ids
            name = ids.setdefault(folded, f"{statement}-proof" + (f"-{number}" if number > 1 else ""))
            documents.setdefault(name, {"_id": name, "title": "", "text": text, "metadata": metadata(statement)})
            if name not in of_statement.setdefault(statement, []):
                of_statement[statement].append(name)
            of_document.setdefault(name, set()).add(statement)
    shared = {statement for group in of_document.values() if len(group) > 1 for statement in group}
    return list(documents.values()), of_statement, shared


def fold_prose(text: str) -> str:
    """Return *text* without differences of white space, and of case outside of formulas.

    In a formula, and in the language of a proof assistant, other letters are another statement.

    >>> fold_prose("The  Norm $N(x)$") == fold_prose("the norm $N(x)$"), fold_prose("$N(x)$") == fold_prose("$n(x)$")
    (True, False)
    >>> fold_prose("theorem N (x : R) : x = X")
    'theorem N (x : R) : x = X'
    """
    if _DECLARATION.match(text):
        return " ".join(text.split())
    parts, at = list[str](), 0
    for start, end, _ in latex.find_formulas(text):
        parts += [text[at:start].casefold(), text[start:end]]
        at = end
    return " ".join("".join([*parts, text[at:].casefold()]).split())


def is_trivial_proof(proof: str) -> bool:
    """Return whether a proof has under six words or begins with "Omitted"; each sign of a formula is a word.

    >>> is_trivial_proof("Apply [ref] to $x - 1$."), is_trivial_proof("By Lemma [ref] and Lemma [ref].")
    (False, False)
    """
    if proof.lower().startswith("omitted"):
        return True
    n_words, at = 0, 0
    for start, end, _ in latex.find_formulas(proof):
        n_words += len(proof[at:start].split()) + len(_SIGN.findall(proof, start, end))
        at = end
        if n_words >= 6:
            return False
    return n_words + len(proof[at:].split()) < 6


def title_before_text(title: str, text: str) -> str:
    """Return a statement as a query, after its title if it has one."""
    return f"{title.rstrip('.')}. {text}" if title else text


class UniqueIds:
    """Ids that never repeat: a name that was given before gets `#2`, `#3` ...

    >>> names = UniqueIds()
    >>> names.new("add_comm"), names.new("add_comm"), names.new("add_comm#2")
    ('add_comm', 'add_comm#2', 'add_comm#2#2')
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def new(self, name: str) -> str:
        """Return *name*, or its first free variant, and store it; blanks become `_`."""
        name, number = "_".join(name.split()) or "_", 1
        free = name
        while free in self._taken:
            number += 1
            free = f"{name}#{number}"
        self._taken.add(free)
        return free


@contextlib.contextmanager
def replace_folders(out: Path, names: tuple[str, ...], unasked: Collection[str] = ()) -> Iterator[list[Path]]:
    """Yield new folders to fill; on success they replace *out*/name together, on failure nothing changes.

    Those of the *names* that are *unasked* may have no query.

    Each collection is first read in every split and gets digests. Only a folder that is empty or has a card.toml is
    replaced. Raises MirblabError for other folders and for unreadable or empty collections, StorageError for the disk.
    """
    for name in names:
        target = out / name
        is_ours = (target / "card.toml").is_file() or (target.is_dir() and not any(target.iterdir()))
        if target.exists() and not is_ours:
            raise MirblabError(f"{target} exists and is no collection (it has no card.toml); move it away first")
    atomic_files.make_folder(out)
    finish_interrupted_builds(out)
    beside = atomic_files.unfinished_name(out / "build")
    new = [beside / "new" / name for name in names]
    with atomic_files.writing(out):
        try:
            for folder in new:
                atomic_files.make_folder(folder)
            yield new
            for folder in new:
                _check_collection(folder, out, folder.name in unasked)
                write_digests(folder)
                atomic_files.flush_tree(folder)
            _swap(new, [out / name for name in names], beside / "old")
            atomic_files.flush_folder(out)
        finally:
            shutil.rmtree(beside / "old", ignore_errors=True)  # before what is new, which it says to be whole
            shutil.rmtree(beside, ignore_errors=True)


def finish_interrupted_builds(out: Path) -> None:
    """Complete the moves that killed builds under *out* had begun, and remove their unfinished folders."""
    for left in sorted(out.glob(".*.partial.build")):
        if not atomic_files.is_abandoned(left):
            continue
        taken = atomic_files.unfinished_name(out / "build")
        try:
            atomic_files.rename_path(left, taken)
        except FileNotFoundError:  # another process does the same
            continue
        if (taken / "old").is_dir():
            new = sorted((taken / "new").glob("*"))  # none where the build was killed when it had moved all
            _swap(new, [out / folder.name for folder in new], taken / "old")
        shutil.rmtree(taken, ignore_errors=True)


def _counted(rows: Iterable[Row], counts: Counter[str], what: str) -> Iterator[Row]:
    for row in rows:
        counts[what] += 1
        yield row


def _users_of_rare(states: np.ndarray, premises: np.ndarray, wanted: int, rng: np.random.Generator) -> np.ndarray:
    """Return all states that use one of the least used premises, of as few premises as give *wanted* states."""
    names, numbers = np.unique(premises, return_inverse=True)
    # One number per pair sorts several times faster, and in less memory, than rows of two.
    numbers, users = np.divmod(np.unique(numbers * (states.max() + 1) + states), states.max() + 1)
    counts = np.bincount(numbers, minlength=len(names))
    users_of = np.split(users, np.cumsum(counts)[:-1])
    chosen: set[int] = set()
    for premise in np.lexsort((rng.random(len(names)), counts)):
        if len(chosen) >= wanted:
            break
        chosen.update(users_of[premise].tolist())
    return np.array(sorted(chosen), dtype=np.int64)


def _check_collection(folder: Path, out: Path, is_unasked: bool) -> None:
    if not on_disk.find_texts(folder, "corpus"):
        return
    try:
        splits = read_splits(folder)
    except (MirblabError, FileNotFoundError) as error:
        message = str(error).replace(str(folder.parent), str(out))
        raise MirblabError(f"{message} (this was about to be written; nothing was changed)") from error
    if not is_unasked and all(collection.qrels.empty for collection in splits):
        raise MirblabError(
            f"'{folder.name}' would have no query with a judgement, so that nothing could be measured on it; nothing "
            f"was written in {out}; is the source whole?"
        )


def _swap(new: list[Path], targets: list[Path], attic: Path) -> None:
    """Rename each new folder to its target, or restore all; while the *attic* exists, new folders are complete."""
    atomic_files.make_folder(attic)
    close_parts()  # Windows renames no folder with an open file, and elsewhere that keeps its disk space
    undo: list[tuple[Path, Path]] = []
    try:
        for folder, target in zip(new, targets, strict=True):
            if target.exists():
                atomic_files.rename_path(target, attic / target.name)
                undo.append((attic / target.name, target))
            atomic_files.rename_path(folder, target)
            undo.append((target, folder))
    except BaseException:  # Ctrl-C, too
        for now, before in reversed(undo):
            atomic_files.rename_path(now, before)
        raise
