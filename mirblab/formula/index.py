"""index: an index of formulas: built, extended, opened, and kept in the cache."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, islice, pairwise
from pathlib import Path

import numpy as np

from mirblab.core import paths, stored_files
from mirblab.core.errors import MirblabError
from mirblab.core.terminal import progress
from mirblab.data.candidates import Candidates
from mirblab.data.topk import n_cores, run_in_threads
from mirblab.formula import scoring, storage
from mirblab.formula.scoring import DEFAULT_B, TopFormulas, WeightedQuery, kind_weights, sum_by_kind
from mirblab.formula.storage import Generation, Segment, load_segment, merge_segments, write_ids
from mirblab.formula.tokens import LabelTable, Tokens, count_tokens
from mirblab.formula.tree import Tree
from mirblab.formula.workers import WorkerPool, formula_tokens, layout_trees, make_segment

SERIAL_BATCHES = 2  # batches; starting processes for fewer takes longer than it saves
_MOST_PROCESSES = 8
BATCH_FORMULAS, SEGMENT_FORMULAS = (
    1 << 13,
    1 << 21,
)  # formulas whose tokens are counted together, and in one segment at most

Item = tuple[str, str | Tree]


def build_segments(
    items: Iterable[Item], folder: Path | None, total: int | None = None
) -> Iterator[tuple[Segment, list[str]]]:
    """Yield the segments of a stream of (id, formula) with the ids of their formulas.

    With a *folder* the segments lie in it, in folders called 0, 1, ..., with the ids as JSON, and memory holds a
    few batches only; without one they are in memory. *total* is how many formulas come, for the progress bar.
    MirblabError for what is not a pair of an id and a formula.
    """
    stream = iter(items)
    if total is None and isinstance(items, Sized):
        total = len(items)
    with progress(total, "structure index", "formulas") as bar:
        number, home = 0, folder and folder / "0"
        while (made := _next_segment(islice(stream, SEGMENT_FORMULAS), home, bar.update)) is not None:
            yield made
            number += 1
            home = folder and folder / str(number)


def _next_segment(items: Iterator[Item], home: Path | None, done: Callable) -> tuple[Segment, list[str]] | None:
    """Return one segment and its ids, or None when no item is left."""
    ids: list[str] = []
    if home is None:
        labels = LabelTable()
        parts = [make_segment(batch, labels, None) for batch in _batches(items, ids, done)]
        return (merge_segments(parts), ids) if ids else None
    aside = home.with_name(f"{home.name}.parts")
    sizes = _build_parts(_batches(items, ids, done), aside)
    if not ids:
        return None
    paths.make_folder(home)
    whole = merge_segments([load_segment(size, aside / str(number)) for number, size in enumerate(sizes)], home)
    paths.remove_path(aside)
    write_ids(home, ids)
    return whole, ids


def _build_parts(batches: Iterator[list[str | Tree]], aside: Path) -> list[int]:
    """Make a small segment of each batch in folders called 0, 1, ..., and return how many formulas each has.

    The first ones are made here, and when there are more, the others by as many processes as there are cores.
    """
    labels, sizes = LabelTable(), []
    for batch in islice(batches, SERIAL_BATCHES):
        sizes.append(make_segment(batch, labels, aside / str(len(sizes))).n)
    following = next(batches, None)
    if following is None:
        return sizes
    n_processes = min(n_cores(), _MOST_PROCESSES)
    with WorkerPool(n_processes) as crew:
        waiting: deque[Future] = deque()
        for number, batch in enumerate(chain([following], batches), len(sizes)):
            waiting.append(crew.submit(batch, aside / str(number)))
            if len(waiting) > 2 * n_processes:
                sizes.append(waiting.popleft().result())
        return sizes + [future.result() for future in waiting]


def _batches(items: Iterator[Item], ids: list[str], done: Callable) -> Iterator[list[str | Tree]]:
    """Yield the formulas of some items at a time, and add their ids to *ids*."""
    while batch := list(islice(items, BATCH_FORMULAS)):
        names, formulas = _check_batch(batch)
        ids += names
        yield formulas
        done(len(batch))


def _check_batch(batch: list[Item]) -> tuple[list[str], list[str | Tree]]:
    for item in batch:
        if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)):
            raise MirblabError(f"an index is built from pairs of an id and a formula; found {str(item)[:80]!r}")
        if not isinstance(item[1], (str, Tree)):
            found = type(item[1]).__name__
            raise MirblabError(f"formula '{item[0]}' is neither LaTeX nor a tree; found {found}")
    return [name for name, _ in batch], [formula for _, formula in batch]


# Raised by one whenever a formula gives other tokens; a test fails when tokens change without it.
VERSION = "1"


Ranked = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Index:
    """Formulas by their tokens, in memory or mapped from `folder`; it never changes, `add` and `merge` return new ones.

    >>> index = Index.build([("a", "x^2+y^2=z^2"), ("b", "x+y"), ("c", "a^2+b^2=c^2")])
    >>> rows, positions, scores = index.search(["x^2+y^2=z^2"], depth=2)
    >>> [index.ids[position] for position in positions], float(scores[0])
    (['a', 'c'], 1.0)
    """

    state: Generation
    folder: Path | None = None
    given: list[str] | None = field(default=None, repr=False)
    known: dict[bytes, np.ndarray] = field(default_factory=dict, repr=False, compare=False)  # lengths by weights

    @classmethod
    def build(cls, formulas: Iterable[Item], folder: str | Path | None = None, total: int | None = None) -> Index:
        """Return the index of a stream of (id, LaTeX or tree), in a new *folder* or (None) in memory.

        On disk it needs memory for one segment's keys only; *total*, how many come, is for the progress bar.
        MirblabError when *folder* has an index already, and for an id given twice.
        """
        place = None if folder is None else Path(folder)
        if place is not None and storage.last_generation(place):
            raise MirblabError(f"{place} holds an index already; open and add to it, or remove it first")
        return cls(Generation(code=VERSION), place, []).add(formulas, total)

    @classmethod
    def open(cls, folder: str | Path) -> Index:
        """Return the index in a *folder*, mapped; other processes may have it open, too.

        FileNotFoundError when there is none; MirblabError when it is damaged, or made by code that reads formulas
        another way than this.
        """
        state = storage.read_generation(Path(folder))
        if state.code != VERSION:
            raise MirblabError(f"{folder} was built by another version of the parser; build the index again")
        return cls(state, Path(folder))

    def __len__(self) -> int:
        """Return the number of formulas."""
        return sum(part.n for part in self.state.segments)

    @cached_property
    def ids(self) -> list[str]:
        """Return the ids of the formulas by position."""
        return storage.read_ids(self.folder, self.state.homes) if self.given is None else self.given

    @cached_property
    def ranks(self) -> np.ndarray | None:
        """Return for each position its place by id, int32; None when the ids ascend: of equal scores the last wins."""
        if self.state.order is None:
            return None
        ranks = np.empty(len(self), dtype=np.int32)
        ranks[self.state.order] = np.arange(len(self), dtype=np.int32)
        return ranks

    def add(self, formulas: Iterable[Item], total: int | None = None) -> Index:
        """Return the index with more *formulas*; every weight is as if all had been indexed at once.

        On disk the new ones become visible together or not at all. MirblabError for an id that is there already,
        and when another process has added to it meanwhile; the index on disk then stays as it was.
        """
        if self.folder is None:
            parts, ids = _collect_segments(build_segments(formulas, None, total))
            return Index(self._state([], self.state.segments + parts, self.ids + ids), None, self.ids + ids)
        with storage.new_generation(self.folder, self.state) as (beside, name):
            parts, ids = _collect_segments(build_segments(formulas, beside, total))
            homes = self.state.homes + [f"{name}/{number}" for number in range(len(parts))]
            state = self._state(homes, self.state.segments + parts, self.ids + ids)
            storage.write_manifest(beside, name, self.state, state)
        return Index.open(self.folder)

    def merge(self) -> Index:
        """Return the index with all formulas in one segment, which is searched a little faster."""
        if len(self.state.segments) < 2:
            return self
        if self.folder is None:
            return Index(self._state([], [merge_segments(self.state.segments)], self.ids), None, self.ids)
        with storage.new_generation(self.folder, self.state) as (beside, name):
            paths.make_folder(beside / "0")
            whole = merge_segments(self.state.segments, beside / "0")
            storage.write_ids(beside / "0", self.ids)
            storage.write_manifest(beside, name, self.state, self._state([f"{name}/0"], [whole], self.ids))
        return Index.open(self.folder)

    def _state(self, homes: list[str], parts: list[Segment], ids: list[str]) -> Generation:
        """Return what holds for all formulas together."""
        kinds = kind_weights()
        return Generation(
            0, homes, parts, sum_by_kind(parts) @ kinds, kinds.tolist(), _order_by_id(ids), {}, self.state.code
        )

    def queries(
        self, formulas: Sequence[str | Tree], weights: Mapping[str, float] | None = None
    ) -> list[WeightedQuery]:
        """Return the weighed tokens of each query, with the *weights* of kinds of tokens (None: the usual ones)."""
        return self.weighed(formula_tokens(layout_trees(formulas)), len(formulas), weights)

    def weighed(self, found: Tokens, n: int, weights: Mapping[str, float] | None = None) -> list[WeightedQuery]:
        """Return the tokens *found* in *n* queries, weighed as `queries` weighs them."""
        kinds, segments = kind_weights(weights), self.state.segments
        keys, documents, rows, counts = count_tokens(found)
        order = np.argsort(rows, kind="stable")
        keys, counts = np.repeat(keys, documents)[order], counts[order]
        edges = np.searchsorted(rows[order], np.arange(n + 1)).tolist()
        return [scoring.weigh_query(keys[at:end], counts[at:end], segments, kinds) for at, end in pairwise(edges)]

    def search(
        self,
        formulas: Sequence[str | Tree],
        depth: int,
        candidates: Candidates | None = None,
        *,
        weights: Mapping[str, float] | None = None,
        b: float = DEFAULT_B,
    ) -> Ranked:
        """Return (rows, positions, scores) of each query's *depth* best formulas, flat, best first.

        A score is the weighted harmonic mean of the share of the query that is found and the share of the formula
        that is used, 0 to 1 (`scoring.score_formulas`); the first counts *b* times as much. It is 1 for the same
        formula only. What shares no token, or is excluded by *candidates*, never comes back; of equal scores the larger
        id is first.
        """
        if depth < 1:
            raise MirblabError(f"depth must be at least 1, found {depth}")
        if not 0 <= b < np.inf:
            raise MirblabError(f"b, how much more the share of the query counts, must be 0 or more; found {b}")
        asked, own = self.queries(formulas, weights), self.lengths(weights)
        is_restricted = candidates is not None and bool(candidates.rules)

        def one(row: int) -> tuple[np.ndarray, np.ndarray]:
            allowed = partial(_allowed, candidates, row) if is_restricted else None
            top = TopFormulas(depth, self.ranks, self.state.order)
            return scoring.best_formulas(asked[row], self.state.segments, own, b, top, allowed)

        parts = run_in_threads(one, list(range(len(asked))), n_cores() if len(self) * len(asked) > 1 << 20 else 1)
        rows = np.repeat(np.arange(len(parts)), [len(positions) for positions, _ in parts])
        columns = zip(*parts, strict=True) if parts else [(np.empty(0, np.int64),), (np.empty(0, np.float32),)]
        positions, scores = (np.concatenate(column) for column in columns)
        return rows, positions, scores

    def scores(
        self, asked: WeightedQuery, weights: Mapping[str, float] | None = None, b: float = DEFAULT_B
    ) -> np.ndarray:
        """Return the score of every formula for one query, float32 (n_formulas,), 0 where nothing is shared."""
        own, found = self.lengths(weights), np.zeros(len(self), dtype=np.float32)
        if not len(asked.keys):
            return found
        for start, shared in scoring.shared_weights(asked, self.state.segments):
            some = slice(start, start + len(shared))
            found[some] = scoring.score_formulas(shared, asked.length, own[some], b)
        return found

    def lengths(self, weights: Mapping[str, float] | None = None) -> np.ndarray:
        """Return the length of every formula, float64 (n_formulas,): the sum of its tokens' weights."""
        kinds = kind_weights(weights)
        if kinds.tolist() == self.state.weights:
            return self.state.lengths
        if (key := kinds.tobytes()) not in self.known:
            self.known.clear()
            self.known[key] = self.sums @ kinds
        return self.known[key]

    @cached_property
    def sums(self) -> np.ndarray:
        """Return the length of every formula by kind of token before weighing, float64 (n_formulas, n_kinds)."""
        return sum_by_kind(self.state.segments)


def _collect_segments(built: Iterator[tuple[Segment, list[str]]]) -> tuple[list[Segment], list[str]]:
    parts, ids = [], []
    for part, names in built:
        parts.append(part)
        ids += names
    return parts, ids


def _order_by_id(ids: list[str]) -> np.ndarray | None:
    """Return the positions by id, int32, or None when the ids ascend; MirblabError for an id given twice."""
    if all(one < other for one, other in pairwise(ids)):
        return None
    order = sorted(range(len(ids)), key=ids.__getitem__)
    for one, other in pairwise(order):
        if ids[one] == ids[other]:
            raise MirblabError(f"two formulas have the id '{ids[one]}'; give each its own")
    return np.array(order, dtype=np.int32)


def _allowed(candidates: Candidates, row: int, positions: np.ndarray) -> np.ndarray:
    return positions[candidates.permits(np.full(len(positions), row), positions)]


_WORTH_STORING = 5_000  # formulas; fewer are indexed again faster than a folder is opened and checked
_AGAIN = "it is built again when it is needed"


def stored_index(latex: Sequence[str]) -> Index:
    """Return the index of formulas, ids their positions, from the cache where it was built before.

    A damaged one is set aside with a warning and built again; where nothing can be written, it is built in memory.

    >>> stored_index(["x^2", "y+1"]).search(["a^2"], depth=1)[1].tolist()
    [0]
    """
    names = [f"{number:010d}" for number in range(len(latex))]
    items = list(zip(names, latex, strict=True))
    if len(latex) < _WORTH_STORING:
        return Index.build(items)
    folder = paths.cache() / "structure" / _formulas_digest(latex)
    index = _open_or_set_aside(folder)
    if index is None:
        try:
            is_there = paths.try_to_store("structure indexes", Index.build, items, folder)
        except (MirblabError, FileNotFoundError):  # another process was faster, or has removed it
            is_there = True
        index = _open_or_set_aside(folder) if is_there else None
    return Index.build(items) if index is None else index


def verify(folder: Path) -> list[str]:
    """Check every file of every index in *folder*; set damaged ones aside with a warning; return a line for each."""
    wrong = []
    for path in stored_files.sound_paths(folder):
        if _is_older(path):
            continue
        if not path.is_dir():
            wrong.append(stored_files.unknown_file_message(path))
        elif (reason := _find_damage(path)) and stored_files.set_aside(path, reason, _AGAIN):
            wrong.append(f"{path}: {reason}")
    return wrong


def older(folder: Path) -> list[tuple[Path, int]]:
    """Return the indexes in *folder* that other code has built, which are never read, each counted as one."""
    return [(path, 1) for path in stored_files.sound_paths(folder) if _is_older(path)]


def _open_or_set_aside(folder: Path) -> Index | None:
    """Return the index in *folder*, None where there is none; what is damaged is set aside."""
    try:
        return Index.open(folder)
    except FileNotFoundError:
        reason = _find_damage(folder)
    except MirblabError as error:
        reason = str(error)
    if reason:
        stored_files.set_aside(folder, reason, _AGAIN)
    return None


def _find_damage(folder: Path) -> str:
    """Return what is wrong with the index in *folder*, "" when nothing is, or nobody has finished one there."""
    try:
        Index.open(folder)
    except FileNotFoundError as error:  # a generation appears whole: what is visible beside none is what is left of one
        return (
            str(error) if folder.is_dir() and any(folder.glob("[!.]*")) and not storage.last_generation(folder) else ""
        )
    except MirblabError as error:
        return str(error)
    return ""


def _is_older(folder: Path) -> bool:
    found = storage.read_format(folder)
    return all(found) and found != (storage.FORMAT, VERSION)


def _formulas_digest(latex: Iterable[str]) -> str:
    digest = hashlib.blake2b(f"{storage.FORMAT} {VERSION}".encode(), digest_size=16)
    for formula in latex:
        text = formula.encode("utf-8", "surrogatepass")
        digest.update(len(text).to_bytes(8, "little") + text)
    return digest.hexdigest()
