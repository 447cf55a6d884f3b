"""builder: rows of a source written as a collection on disk, with a card that counts what was left out."""

from __future__ import annotations

import contextlib
import hashlib
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mirblab.core import paths, registry
from mirblab.core.errors import MirblabError
from mirblab.core.terminal import say
from mirblab.core.text_files import find_file
from mirblab.data import beir as on_disk
from mirblab.data.collection import read_splits
from mirblab.data.digests import write_digests
from mirblab.sources.shared.release import Origin

Row = dict[str, Any]
SIZES = {"test": 2000, "dev": 500}
Judgement = tuple[str, str, int]


@dataclass
class CollectionRows:
    """One collection to be written: rows of corpus and queries, judgements by split, and what was left out.

    `corpus` and `queries` may be generators, so that nothing has to fit in memory; `left_out` may count while
    they run. `judged` has (query, document, relevance) by split.
    """

    corpus: Iterable[Row]
    queries: Iterable[Row]
    judged: dict[str, list[tuple[str, str, int]]]
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(eq=False, slots=True)
class LibraryStatement:
    """A statement of a library: its text, the ids of the earlier ones that its proof uses, and its place `order`.

    `barred` says why it may not be a query of test or dev, "" when it may.
    """

    id: str
    title: str
    text: str
    uses: list[str]
    order: int
    metadata: Row
    barred: str = ""


def write_collection(
    folder: Path,
    parts: CollectionRows,
    about: Row,
    found: Origin,
    *,
    builder: str,
    revision: str,
    licence: str,
    options: Mapping[str, Any] | None = None,
) -> Path:
    """Write one collection into *folder*, with its card, print how much there is and what was left out, and why.

    *about* goes into the card as it is (title, task, instruction, candidates, relevance_levels ...); with `follows`,
    the published collection that this one rebuilds, the card gets the name that the registry says it is printed
    under. *builder* is the word after `mirblab build`, *options* what was set there. Returns *folder*.
    """
    counts: Counter[str] = Counter()
    origin = ["--from", found.shown] if found.shown else []
    chosen = [word for name, value in (options or {}).items() for word in ("--set", f"{name}={value}")]
    facts = {
        "name": folder.name,
        "relevance_levels": [0, 1],
        "relevant_from": 1,
        **_printed(about),
        "source": found.source,
        "licence": licence,
        "revision": found.commit or revision,
        "command": shlex.join(["mirblab", "build", builder, *origin, *chosen]),
    }

    def card() -> Row:
        left_out = {reason: count for reason, count in sorted(parts.left_out.items()) if count}
        return facts | {"counts": {**counts, **_judgements(parts), "left_out": left_out}}

    corpus, queries = (
        _counted(rows, counts, what) for rows, what in ((parts.corpus, "documents"), (parts.queries, "queries"))
    )
    on_disk.write_collection(folder, corpus, queries, parts.judged, card)
    _report(folder.name, card()["counts"])
    return folder


def premise_collection(stated: Sequence[LibraryStatement], seed: int, left_out: Counter[str]) -> CollectionRows:
    """Return the collection "statement to what its proof uses": all are documents, those that use something queries.

    A text that several statements share makes none of them a query of test or dev; this and every other bar is
    added to *left_out*. Splits are those of `splits`.
    """
    texts = Counter(item.text for item in stated)
    asked = [item for item in stated if item.uses]
    left_out["statements whose proof names no premise (documents, no queries)"] += len(stated) - len(asked)
    left_out["statements with the text of another one"] += sum(texts[item.text] > 1 for item in stated)
    bars = {item.id: item.barred or ("shared text" if texts[item.text] > 1 else "") for item in asked}
    left_out.update(f"queries kept from test and dev: {bar}" for bar in bars.values() if bar)
    where = draw_splits([item.id for item in asked if not bars[item.id]], seed)
    judged: dict[str, list[Judgement]] = {split: [] for split in (*SIZES, "train")}
    for item in asked:
        judged[where.get(item.id, "train")] += [(item.id, name, 1) for name in item.uses]
    corpus = ({"_id": item.id, "title": item.title, "text": item.text, "metadata": _metadata(item)} for item in stated)
    queries = ({"_id": item.id, "text": item.text, "metadata": _metadata(item)} for item in asked)
    return CollectionRows(corpus, queries, judged, left_out)


def draw_splits(names: Iterable[str], seed: int) -> dict[str, str]:
    """Return the split of each of *names*: test, dev or train.

    Ordered by the md5 of seed, colon and name, the first quarter is test, 2,000 names at most; the next
    sixteenth is dev, 500 at most; the rest is train. So the split of a name hardly moves when a library grows.

    >>> draw_splits(["add0n", "addnA", "addnC", "mul0n"], 0)
    {'add0n': 'dev', 'addnA': 'test', 'addnC': 'train', 'mul0n': 'train'}
    """
    names = sorted(names)
    drawn = sorted(names, key=lambda name: hashlib.md5(f"{seed}:{name}".encode(), usedforsecurity=False).digest())
    n_test = min(SIZES["test"], -(-len(names) // 4))
    n_dev = min(SIZES["dev"], -(-len(names) // 16))
    found = dict.fromkeys(drawn[:n_test], "test") | dict.fromkeys(drawn[n_test : n_test + n_dev], "dev")
    return {name: found.get(name, "train") for name in names}


def find_hubs(stated: Iterable[LibraryStatement], share: float = 0.01) -> dict[str, int]:
    """Return the premises of more than *share* of the proofs that use any, with their number, most used first.

    >>> ones = [LibraryStatement("c", "", "C", ["a", "b"], 2, {}), LibraryStatement("d", "", "D", ["a"], 3, {})]
    >>> find_hubs(ones, 0.5)
    {'a': 2}
    """
    proofs = [item.uses for item in stated if item.uses]
    counts = Counter(name for uses in proofs for name in uses)
    return {name: count for name, count in counts.most_common() if count > share * len(proofs)}


def drop_documents(judged: list[Judgement], names: Iterable[str], left_out: Counter[str]) -> list[Judgement]:
    """Return the judgements whose document is none of *names*; what is lost is added to *left_out*."""
    unwanted = set(names)
    kept = [pair for pair in judged if pair[1] not in unwanted]
    lost = len({query for query, *_ in judged}) - len({query for query, *_ in kept})
    left_out["judgements of hubs, not in test_nohub"] += len(judged) - len(kept)
    left_out["queries whose premises are all hubs, not in test_nohub"] += lost
    return kept


def split_by_novel_premises(
    states: np.ndarray, premises: np.ndarray, *, test: int, dev: int = 0, seed: int = 0
) -> dict[str, np.ndarray]:
    """Return the states of `test`, `dev` and `train`, and those `left` in none of them; each sorted.

    *states* and *premises* (both of shape pairs, whole numbers from 0) say which state uses which premise. The rule
    is that of LeanDojo's novel_premises (Yang et al., NeurIPS 2023), which MIRB names for MAPL: premises are held
    out, the least used first (equally used ones in an order drawn with *seed*), until at least *test* + *dev* states
    use one of them; none of these states is in `train`. They are then shuffled: the first are `test`, the next
    `dev`, the surplus of the last premise is `left`. Test and dev may share premises. Raises MirblabError when no
    state would be left for training.

    >>> found = split_by_novel_premises(np.array([0, 1, 1, 2, 3]), np.array([0, 0, 1, 0, 0]), test=1)
    >>> {name: states.tolist() for name, states in found.items()}
    {'train': [0, 2, 3], 'test': [1], 'dev': [], 'left': []}
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
    """Return the connected components of an undirected graph, given its edges, each sorted, by their first member.

    The transitive closure of "is a duplicate of" is "is in the same component as". Members must be hashable and
    sortable.

    >>> connected_groups([(5, 3), (1, 2), (3, 4), (2, 2)])
    [[1, 2], [3, 4, 5]]
    """
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
    proofs: Iterable[tuple[str, int, str]], left_out: Counter[str]
) -> tuple[dict[str, tuple[str, str]], dict[str, list[str]], set[str]]:
    """Return what statement-to-proof collections are made of, given statement, number and text of each proof.

    These are the documents (statement and text by id, trivial proofs left out and equal texts once), the documents of
    each statement, and the statements that share a proof with another one. What is left out is added to *left_out*.

    >>> proof = "Add the two equations and divide."
    >>> merge_proofs([("a", 1, "Omitted."), ("a", 2, proof), ("b", 1, proof.upper())], Counter())[1]
    {'a': ['a-proof-2'], 'b': ['a-proof-2']}
    """
    ids: dict[str, str] = {}
    documents: dict[str, tuple[str, str]] = {}
    of_statement: dict[str, dict[str, None]] = {}
    of_document: dict[str, set[str]] = {}
    for statement, number, text in proofs:
        if is_trivial_proof(text):
            left_out["proofs under six words, or omitted"] += 1
            continue
        left_out["proofs with the text of another one (merged)"] += fold_text(text) in ids
        name = ids.setdefault(fold_text(text), f"{statement}-proof" + (f"-{number}" if number > 1 else ""))
        documents.setdefault(name, (statement, text))
        of_statement.setdefault(statement, {})[name] = None
        of_document.setdefault(name, set()).add(statement)
    shared = {statement for group in of_document.values() if len(group) > 1 for statement in group}
    return documents, {statement: list(names) for statement, names in of_statement.items()}, shared


def is_trivial_proof(proof: str) -> bool:
    """Return whether a proof says nothing: under six words, or it begins with "Omitted".

    >>> is_trivial_proof("Omitted. Hint: use Lemma [ref] and induction on $n$.")
    True
    """
    return len(proof.split()) < 6 or proof.lower().startswith("omitted")


def fold_text(text: str) -> str:
    """Return *text* in the form in which repeats are recognised: case folded, each run of white space as one blank.

    >>> fold_text("A  Ring\\n")
    'a ring'
    """
    return " ".join(text.casefold().split())


class UniqueIds:
    """Ids that never repeat: a name that was given before gets `#2`, `#3` ...

    >>> names = UniqueIds()
    >>> names.new("add_comm"), names.new("add_comm"), names.new("add_comm#2")
    ('add_comm', 'add_comm#2', 'add_comm#2#2')
    """

    def __init__(self) -> None:
        """Begin with no name."""
        self._taken: set[str] = set()

    def new(self, name: str) -> str:
        """Return *name*, or the first free variant of it, and remember it; blanks become `_`, as ids are one word."""
        name, number = "_".join(name.split()) or "_", 1
        free = name
        while free in self._taken:
            number += 1
            free = f"{name}#{number}"
        self._taken.add(free)
        return free


@contextlib.contextmanager
def replace_folders(out: Path, names: tuple[str, ...]) -> Iterator[list[Path]]:
    """Yield new folders to fill; on success they become *out*/name, replacing older ones, on failure nothing changes.

    Each collection among them is read as `load` would read it, in every split, and each folder gets the digests of its
    files, before the first is moved. Only a folder that is empty or has a card.toml is replaced. Raises MirblabError
    for any other, and for a collection that cannot be read or has no query with a judgement in any split; StorageError
    when the disk or the rights do not allow it.
    """
    for name in names:
        target = out / name
        is_ours = (target / "card.toml").is_file() or (target.is_dir() and not any(target.iterdir()))
        if target.exists() and not is_ours:
            raise MirblabError(f"{target} exists and is no collection (it has no card.toml); move it away first")
    paths.make_folder(out)
    finish_interrupted_builds(out)
    beside = paths.unfinished_name(out / "build")
    new = [beside / "new" / name for name in names]
    with paths.writing(out):
        try:
            for folder in new:
                paths.make_folder(folder)
            yield new
            for folder in new:
                _check_collection(folder, out)
                write_digests(folder)
                paths.flush_tree(folder)
            _swap(new, [out / name for name in names], beside / "old")
            paths.flush_folder(out)
        finally:
            shutil.rmtree(beside / "old", ignore_errors=True)  # before what is new, which it says to be whole
            shutil.rmtree(beside, ignore_errors=True)


def finish_interrupted_builds(out: Path) -> None:
    """Move into place what a killed build under *out* had begun to move, and remove what it had not written whole."""
    for left in sorted(out.glob(".*.partial.build")):
        if not paths.is_abandoned(left):
            continue
        own = paths.unfinished_name(out / "build")
        try:
            paths.rename_path(left, own)
        except FileNotFoundError:  # another process does the same
            continue
        if (own / "old").is_dir():
            new = sorted((own / "new").glob("*"))  # none where the build was killed when it had moved all
            _swap(new, [out / folder.name for folder in new], own / "old")
        shutil.rmtree(own, ignore_errors=True)


def _printed(about: Row) -> Row:
    """Return *about* with the printed name of what it follows: `paper`, or `group` where several share one column."""
    entry = registry.read_registry("collections")[about["follows"]] if "follows" in about else {}
    return about | {key: entry[key] for key in ("paper", "group") if key in entry}


def _counted(rows: Iterable[Row], counts: Counter[str], what: str) -> Iterator[Row]:
    for row in rows:
        counts[what] += 1
        yield row


def _judgements(parts: CollectionRows) -> Row:
    counts: Row = {}
    for split, pairs in parts.judged.items():
        counts |= {f"queries_{split}": len({query for query, *_ in pairs}), f"judgements_{split}": len(pairs)}
    return counts


def _report(name: str, counts: Row) -> None:
    shown = ", ".join(f"{key.replace('_', ' ')} {value:,}" for key, value in counts.items() if key != "left_out")
    say(f"{name}: {shown}")
    for reason, count in counts["left_out"].items():
        say(f"  left out or odd: {count:>6,}  {reason}")


def _metadata(item: LibraryStatement) -> Row:
    return {"order": item.order, **item.metadata}


def _users_of_rare(states: np.ndarray, premises: np.ndarray, wanted: int, rng: np.random.Generator) -> np.ndarray:
    """Return all states that use one of the least used premises, of as few premises as give *wanted* states."""
    names, place = np.unique(premises, return_inverse=True)
    # One number per pair sorts several times faster, and in less memory, than rows of two.
    place, users = np.divmod(np.unique(place * (states.max() + 1) + states), states.max() + 1)
    counts = np.bincount(place, minlength=len(names))
    starts = np.concatenate([[0], np.cumsum(counts)])
    found: set[int] = set()
    for premise in np.lexsort((rng.random(len(names)), counts)):
        if len(found) >= wanted:
            break
        found.update(users[starts[premise] : starts[premise + 1]].tolist())
    return np.array(sorted(found), dtype=np.int64)


def _check_collection(folder: Path, out: Path) -> None:
    """Raise MirblabError when *folder* holds a collection that will not load from *out*, or has nothing to ask."""
    if not find_file(folder, "corpus"):
        return
    try:
        splits = read_splits(folder)
    except (MirblabError, FileNotFoundError) as error:
        told = str(error).replace(str(folder.parent), str(out))
        raise MirblabError(f"{told} (this was about to be written; nothing was changed)") from error
    if all(one.qrels.empty for one in splits):
        raise MirblabError(
            f"'{folder.name}' would have no query with a judgement, so that nothing could be measured on it; nothing "
            f"was written in {out}; is the source whole?"
        )


def _swap(new: list[Path], targets: list[Path], attic: Path) -> None:
    """Rename each new folder to its target; when one fails, put everything back as it was.

    The *attic* is there as long as this lasts, from which `finish_interrupted_builds` knows that
    all new folders are complete.
    """
    paths.make_folder(attic)
    undo: list[tuple[Path, Path]] = []
    try:
        for folder, target in zip(new, targets, strict=True):
            if target.exists():
                paths.rename_path(target, attic / target.name)
                undo.append((attic / target.name, target))
            paths.rename_path(folder, target)
            undo.append((target, folder))
    except BaseException:  # Ctrl-C, too
        for now, before in reversed(undo):
            paths.rename_path(now, before)
        raise
