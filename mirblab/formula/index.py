"""index: an index of formulas: built, extended, opened, and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count, islice, pairwise
from pathlib import Path

import numpy as np

from mirblab.core import atomic_files, paths, processes, stored_files
from mirblab.core.errors import MirblabError, check_positive
from mirblab.core.processes import n_cores, run_in_threads
from mirblab.core.terminal import progress
from mirblab.data.candidates import Candidates
from mirblab.formula import scoring, storage
from mirblab.formula.formal.statements import read_source
from mirblab.formula.scoring import DEFAULT_B, TopFormulas, WeightedQuery, kind_weights, sum_by_kind
from mirblab.formula.storage import (
    Generation,
    Segment,
    load_segment,
    make_segment,
    merge_segments,
    write_ids,
    write_segment,
)
from mirblab.formula.tokens import Tokens, count_tokens, formula_tokens, layout_trees
from mirblab.formula.tree import Tree

# Raised by one whenever a formula gives other tokens; otherwise a test fails.
VERSION = "5"
FORMAL_VERSION = "11"  # the same for statements in the languages of proof assistants
SERIAL_BATCHES = 2  # starting processes for fewer batches takes longer than it saves
MOST_PROCESSES = 8
BATCH_FORMULAS = 1 << 13  # formulas whose tokens are counted together
SEGMENT_FORMULAS = 1 << 21  # formulas in one segment at most
Item = tuple[str, str | Tree]
Ranked = tuple[np.ndarray, np.ndarray, np.ndarray]
_WORTH_STORING = 5_000  # formulas; fewer are indexed again faster than a folder is opened and checked
_AGAIN = "it is built again when it is needed"


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

        On disk it needs memory for one segment's keys only; *total*, the number of formulas, is for the progress bar.
        MirblabError when *folder* has an index already, and for a repeated id.
        """
        place = None if folder is None else Path(folder)
        if place is not None and storage.last_generation(place):
            raise MirblabError(f"{place} holds an index already; open and add to it, or remove it first")
        return cls(Generation(code=VERSION), place, []).add(formulas, total)

    @classmethod
    def open(cls, folder: str | Path) -> Index:
        """Return the index in a *folder*, mapped; FileNotFoundError, or MirblabError for damage or other code."""
        state = storage.read_generation(Path(folder))
        if state.code != VERSION:
            raise MirblabError(f"{folder} was built by another version of the parser; build the index again")
        return cls(state, Path(folder))

    def __len__(self) -> int:
        return sum(part.n for part in self.state.segments)

    @cached_property
    def ids(self) -> list[str]:
        """Return the ids of the formulas by position; MirblabError when another process has removed their files."""
        if self.given is not None or self.folder is None:
            return self.given or []
        try:
            return storage.read_ids(self.folder, self.state.homes)
        except FileNotFoundError as error:
            raise MirblabError(
                f"another process has changed the index in {self.folder} meanwhile; open it again"
            ) from error

    @cached_property
    def ranks(self) -> np.ndarray | None:
        """Return each position's rank by id, int32; None when the ids ascend. Of equal scores the last wins."""
        if self.state.order is None:
            return None
        ranks = np.empty(len(self), dtype=np.int32)
        ranks[self.state.order] = np.arange(len(self), dtype=np.int32)
        return ranks

    def add(self, formulas: Iterable[Item], total: int | None = None) -> Index:
        """Return the index with more *formulas*; every weight is as if all had been indexed at once.

        On disk the new ones become visible together or not at all. MirblabError, which changes nothing, for an id that
        is there already, and when another process has added to it meanwhile.
        """
        if self.folder is None:
            segments, ids = self._extended(formulas, None, total)
            return Index(self._state([], segments, ids), None, ids)
        with storage.new_generation(self.folder, self.state) as (beside, name):
            segments, ids = self._extended(formulas, beside, total)
            homes = self.state.homes + [
                f"{name}/{number}" for number in range(len(segments) - len(self.state.segments))
            ]
            state = self._state(homes, segments, ids)
            storage.write_manifest(beside, name, self.state, state)
        return Index.open(self.folder)

    def _extended(
        self, formulas: Iterable[Item], folder: Path | None, total: int | None
    ) -> tuple[list[Segment], list[str]]:
        segments, ids = list(self.state.segments), list(self.ids)
        for segment, names in build_segments(formulas, folder, total):
            segments.append(segment)
            ids += names
        return segments, ids

    def merge(self) -> Index:
        """Return the index with all formulas in one segment, which is searched a little faster."""
        if len(self.state.segments) < 2:
            return self
        if self.folder is None:
            return Index(self._state([], [merge_segments(self.state.segments)], self.ids), None, self.ids)
        with storage.new_generation(self.folder, self.state) as (beside, name):
            atomic_files.make_folder(beside / "0")
            whole = merge_segments(self.state.segments, beside / "0")
            storage.write_ids(beside / "0", self.ids)
            storage.write_manifest(beside, name, self.state, self._state([f"{name}/0"], [whole], self.ids))
        return Index.open(self.folder)

    def _state(self, homes: list[str], parts: list[Segment], ids: list[str]) -> Generation:
        kinds, code = kind_weights(), self.state.code
        return Generation(0, homes, parts, sum_by_kind(parts) @ kinds, kinds.tolist(), _order_by_id(ids), {}, code)

    def queries(
        self, formulas: Sequence[str | Tree], weights: Mapping[str, float] | None = None
    ) -> list[WeightedQuery]:
        """Return the weighted tokens of each query, with the *weights* of kinds of tokens (None: the usual ones)."""
        return self.weighed(formula_tokens(layout_trees(formulas)), len(formulas), weights)

    def weighed(self, found: Tokens, n: int, weights: Mapping[str, float] | None = None) -> list[WeightedQuery]:
        """Return the tokens *found* in *n* queries, weighted as in `queries`."""
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

        A score is the weighted harmonic mean of the matched shares of query and formula, 0 to 1
        (`scoring.score_formulas`); the first counts *b* times as much. It is 1 for the same formula only. Formulas that
        share no token, or that *candidates* exclude, are never returned; of equal scores the larger id is first.
        """
        check_positive(depth=depth)
        asked, lengths = self.queries(formulas, weights), self.lengths(weights)
        rules = candidates if candidates is not None and candidates.rules else None

        def one(row: int) -> tuple[np.ndarray, np.ndarray]:
            def allowed(positions: np.ndarray) -> np.ndarray:
                return positions[rules.permits(np.full(len(positions), row), positions)] if rules else positions

            top = TopFormulas(depth, self.ranks, self.state.order)
            return scoring.best_formulas(asked[row], self.state.segments, lengths, b, top, allowed)

        parts = run_in_threads(one, list(range(len(asked))), n_cores() if len(self) * len(asked) > 1 << 20 else 1)
        rows = np.repeat(np.arange(len(parts)), [len(positions) for positions, _ in parts])
        positions = np.concatenate([np.empty(0, np.int64), *(positions for positions, _ in parts)])
        return rows, positions, np.concatenate([np.empty(0, np.float32), *(scores for _, scores in parts)])

    def scores(
        self, asked: WeightedQuery, weights: Mapping[str, float] | None = None, b: float = DEFAULT_B
    ) -> np.ndarray:
        """Return the score of every formula for one query, float32 (n_formulas,), 0 where nothing is shared."""
        lengths, scores = self.lengths(weights), np.zeros(len(self), dtype=np.float32)
        if len(asked.keys):
            for start, shared in scoring.shared_weights(asked, self.state.segments):
                some = slice(start, start + len(shared))
                scores[some] = scoring.score_formulas(shared, asked.length, lengths[some], b)
        return scores

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
        """Return the length of every formula by kind of token, without weights, float64 (n_formulas, n_kinds)."""
        return sum_by_kind(self.state.segments)


def build_segments(
    items: Iterable[Item], folder: Path | None, total: int | None = None
) -> Iterator[tuple[Segment, list[str]]]:
    """Yield the segments of a stream of (id, formula) with the ids of their formulas.

    With a *folder* they are written into its folders 0, 1, ..., with the ids as JSON, and memory holds a few batches
    only. *total*, the number of formulas, is for the progress bar. MirblabError for items that are no such pairs.
    """
    stream = iter(items)
    if total is None and isinstance(items, Sized):
        total = len(items)
    with progress(total, "structure index", "formulas") as bar:
        for number in count():
            ids: list[str] = []
            batches = _batches(islice(stream, SEGMENT_FORMULAS), ids, bar.update)
            if folder is None:
                segment = merge_segments([make_segment(batch) for batch in batches])
            else:
                segment = _merge_parts(batches, ids, folder / str(number))
            if not ids:
                return
            yield segment, ids


def _batches(items: Iterator[Item], ids: list[str], done: Callable[[int], object]) -> Iterator[list[str | Tree]]:
    while batch := list(islice(items, BATCH_FORMULAS)):
        for item in batch:
            if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)):
                raise MirblabError(f"an index is built from pairs of an id and a formula; found {str(item)[:80]!r}")
            if not isinstance(item[1], (str, Tree)):
                raise MirblabError(f"formula '{item[0]}' is neither LaTeX nor a tree; found {type(item[1]).__name__}")
        ids += [name for name, _ in batch]
        yield [formula for _, formula in batch]
        done(len(batch))


def _merge_parts(batches: Iterator[list[str | Tree]], ids: list[str], folder: Path) -> Segment:
    parts_folder = folder.with_name(f"{folder.name}.parts")
    sizes = _write_parts(batches, parts_folder)
    parts = [load_segment(size, parts_folder / str(number)) for number, size in enumerate(sizes)]
    if not parts:
        return merge_segments([])
    atomic_files.make_folder(folder)
    segment = merge_segments(parts, folder)
    atomic_files.remove_path(parts_folder)
    write_ids(folder, ids)
    return segment


def _write_parts(batches: Iterator[list[str | Tree]], folder: Path) -> list[int]:
    """Write each batch into a folder 0, 1, ..., the later ones by other processes, and return their sizes."""
    sizes = [write_segment(batch, folder / str(at)) for at, batch in enumerate(islice(batches, SERIAL_BATCHES))]
    following = next(batches, None)
    if following is None:
        return sizes
    n_processes = min(n_cores(), MOST_PROCESSES)
    with worker_processes(n_processes) as pool:
        waiting: deque[Future[int]] = deque()
        for number, batch in enumerate(chain([following], batches), len(sizes)):
            waiting.append(pool.submit(write_segment, batch, folder / str(number)))
            if len(waiting) > 2 * n_processes:
                sizes.append(waiting.popleft().result())
        return sizes + [future.result() for future in waiting]


@contextmanager
def worker_processes(n: int) -> Iterator[Executor]:
    """Yield *n* processes that take tasks until the block, or this process, ends; they ignore Ctrl-C.

    Unlike those of `multiprocessing` they do not run the user's script again. MirblabError when one of them ends early.
    """
    from joblib.externals.loky import ProcessPoolExecutor

    pool = ProcessPoolExecutor(n, initializer=_prepare_worker, initargs=(os.getpid(),))
    try:
        yield pool
    except BrokenProcessPool as error:
        raise MirblabError(f"a process that makes an index has ended unexpectedly ({error}); try again") from error
    finally:
        for process in list(pool._processes.values()):  # shutdown(kill_workers=True) fails while tasks are waiting
            process.terminate()
        pool.shutdown()


def _prepare_worker(parent: int) -> None:
    import psutil

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    processes.end_after(psutil.Process(parent).wait)


def _order_by_id(ids: list[str]) -> np.ndarray | None:
    """Return the positions by id, int32, or None when the ids ascend; MirblabError for a repeated id."""
    if all(one < other for one, other in pairwise(ids)):
        return None
    order = sorted(range(len(ids)), key=ids.__getitem__)
    for one, other in pairwise(order):
        if ids[one] == ids[other]:
            raise MirblabError(f"two formulas have the id '{ids[one]}'; give each its own")
    return np.array(order, dtype=np.int32)


def stored_index(formulas: Sequence[str], language: str = "") -> Index:
    """Return the index of formulas, ids their positions, from the cache where it was built before.

    They are LaTeX, or with the *language* of a proof assistant what `formal.statements.statement_sources` returns. A
    damaged one is set aside with a warning and built again; where nothing can be written, it is built in memory.

    >>> stored_index(["x^2", "y+1"]).search(["a^2"], depth=1)[1].tolist()
    [0]
    """

    def build(folder: Path | None = None) -> Index:
        trees = (read_source(formula, language) for formula in formulas) if language else formulas
        names = (f"{number:010d}" for number in range(len(formulas)))
        return Index.build(zip(names, trees, strict=True), folder, len(formulas))

    if len(formulas) < _WORTH_STORING:
        return build()
    folder = paths.cache() / "structure" / _formulas_digest(formulas, language)
    index = _open_or_set_aside(folder)
    if index is None:
        try:
            is_there = atomic_files.try_to_store("structure indexes", build, folder)
        except (MirblabError, FileNotFoundError):  # another process was faster, or has removed it
            is_there = True
        index = _open_or_set_aside(folder) if is_there else None
    return build() if index is None else index


def _formulas_digest(formulas: Iterable[str], language: str = "") -> str:
    read_as = f" {language} {FORMAL_VERSION}" if language else ""
    digest = hashlib.blake2b(f"{storage.FORMAT} {VERSION}{read_as}".encode(), digest_size=16)
    for formula in formulas:
        text = formula.encode("utf-8", "surrogatepass")
        digest.update(len(text).to_bytes(8, "little") + text)
    return digest.hexdigest()


def _open_or_set_aside(folder: Path) -> Index | None:
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
    """Return what is wrong with the index in *folder*, "" when nothing is, or when no index there is finished."""
    try:
        Index.open(folder)
    except FileNotFoundError as error:  # files without a generation are the rest of one
        is_rest = folder.is_dir() and any(folder.glob("[!.]*")) and not storage.last_generation(folder)
        return str(error) if is_rest else ""
    except MirblabError as error:
        return str(error)
    return ""


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


def _is_older(folder: Path) -> bool:
    found = storage.read_format(folder)
    return all(found) and found != (storage.FORMAT, VERSION)


def older(folder: Path) -> list[tuple[Path, int]]:
    """Return the indexes in *folder* that other code has built, which are never read, each counted as one."""
    return [(path, 1) for path in stored_files.sound_paths(folder) if _is_older(path)]
