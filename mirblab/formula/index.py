"""index: structure search over formulas: build an index, add to it, merge it, open it, search it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from mirblab import paths
from mirblab.best import cores, each
from mirblab.candidates import Candidates
from mirblab.errors import MirblabError
from mirblab.formula import building, scoring, storage
from mirblab.formula.parts import read, trees
from mirblab.formula.scoring import Query, Top
from mirblab.formula.segments import Segment, merge
from mirblab.formula.storage import Stored
from mirblab.formula.tokens import Tokens, counted
from mirblab.formula.tree import Tree
from mirblab.formula.version import VERSION
from mirblab.formula.weighting import B, kind_weights, sums

Found = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Index:
    """Formulas by their tokens, in memory or mapped from `folder`; it never changes, `add` and `merge` return new ones.

    >>> index = Index.build([("a", "x^2+y^2=z^2"), ("b", "x+y"), ("c", "a^2+b^2=c^2")])
    >>> rows, positions, scores = index.search(["x^2+y^2=z^2"], depth=2)
    >>> [index.ids[position] for position in positions], float(scores[0])
    (['a', 'c'], 1.0)
    """

    state: Stored
    folder: Path | None = None
    given: list[str] | None = field(default=None, repr=False)
    known: dict[bytes, np.ndarray] = field(default_factory=dict, repr=False, compare=False)  # lengths by weights

    @classmethod
    def build(
        cls, formulas: Iterable[building.Item], folder: str | Path | None = None, total: int | None = None
    ) -> Index:
        """Return the index of a stream of (id, LaTeX or tree), in a new *folder* or (None) in memory.

        On disk it needs memory for one segment's keys only; *total*, how many come, is for the progress bar.
        MirblabError when *folder* has an index already, and for an id given twice.
        """
        place = None if folder is None else Path(folder)
        if place is not None and storage.last(place):
            raise MirblabError(f"{place} holds an index already; open and add to it, or remove it first")
        return cls(Stored(code=VERSION), place, []).add(formulas, total)

    @classmethod
    def open(cls, folder: str | Path) -> Index:
        """Return the index in a *folder*, mapped; other processes may have it open, too.

        FileNotFoundError when there is none; MirblabError when it is damaged, or made by code that reads formulas
        another way than this.
        """
        state = storage.read(Path(folder))
        if state.code != VERSION:
            raise MirblabError(f"{folder} was built by another version of the parser; build the index again")
        return cls(state, Path(folder))

    def __len__(self) -> int:
        """Return the number of formulas."""
        return sum(part.n for part in self.state.segments)

    @cached_property
    def ids(self) -> list[str]:
        """Return the ids of the formulas by position."""
        return storage.ids(self.folder, self.state.homes) if self.given is None else self.given

    @cached_property
    def ranks(self) -> np.ndarray | None:
        """Return for each position its place by id, int32; None when the ids ascend: of equal scores the last wins."""
        if self.state.order is None:
            return None
        ranks = np.empty(len(self), dtype=np.int32)
        ranks[self.state.order] = np.arange(len(self), dtype=np.int32)
        return ranks

    def add(self, formulas: Iterable[building.Item], total: int | None = None) -> Index:
        """Return the index with more *formulas*; every weight is as if all had been indexed at once.

        On disk the new ones become visible together or not at all. MirblabError for an id that is there already,
        and when another process has added to it meanwhile; the index on disk then stays as it was.
        """
        if self.folder is None:
            parts, ids = _unzip(building.build(formulas, None, total))
            return Index(self._state([], self.state.segments + parts, self.ids + ids), None, self.ids + ids)
        with storage.generation(self.folder, self.state) as (beside, name):
            parts, ids = _unzip(building.build(formulas, beside, total))
            homes = self.state.homes + [f"{name}/{number}" for number in range(len(parts))]
            state = self._state(homes, self.state.segments + parts, self.ids + ids)
            storage.seal(beside, name, self.state, state)
        return Index.open(self.folder)

    def merge(self) -> Index:
        """Return the index with all formulas in one segment, which is searched a little faster."""
        if len(self.state.segments) < 2:
            return self
        if self.folder is None:
            return Index(self._state([], [merge(self.state.segments)], self.ids), None, self.ids)
        with storage.generation(self.folder, self.state) as (beside, name):
            paths.make_folder(beside / "0")
            whole = merge(self.state.segments, beside / "0")
            storage.write_ids(beside / "0", self.ids)
            storage.seal(beside, name, self.state, self._state([f"{name}/0"], [whole], self.ids))
        return Index.open(self.folder)

    def _state(self, homes: list[str], parts: list[Segment], ids: list[str]) -> Stored:
        """Return what holds for all formulas together."""
        kinds = kind_weights()
        return Stored(0, homes, parts, sums(parts) @ kinds, kinds.tolist(), _order(ids), {}, self.state.code)

    def queries(self, formulas: Sequence[str | Tree], weights: Mapping[str, float] | None = None) -> list[Query]:
        """Return the weighed tokens of each query, with the *weights* of kinds of tokens (None: the usual ones)."""
        return self.weighed(read(trees(formulas)), len(formulas), weights)

    def weighed(self, found: Tokens, n: int, weights: Mapping[str, float] | None = None) -> list[Query]:
        """Return the tokens *found* in *n* queries, weighed as `queries` weighs them."""
        kinds, segments = kind_weights(weights), self.state.segments
        keys, documents, rows, counts = counted(found)
        order = np.argsort(rows, kind="stable")
        keys, counts = np.repeat(keys, documents)[order], counts[order]
        edges = np.searchsorted(rows[order], np.arange(n + 1)).tolist()
        return [scoring.query(keys[at:end], counts[at:end], segments, kinds) for at, end in pairwise(edges)]

    def search(
        self,
        formulas: Sequence[str | Tree],
        depth: int,
        candidates: Candidates | None = None,
        *,
        weights: Mapping[str, float] | None = None,
        b: float = B,
    ) -> Found:
        """Return (rows, positions, scores) of each query's *depth* best formulas, flat, best first.

        A score is the weighted harmonic mean of the share of the query that is found and the share of the formula
        that is used, 0 to 1 (`scoring.score`); the first counts *b* times as much. It is 1 for the same formula only.
        What shares no token, or is excluded by *candidates*, never comes back; of equal scores the larger id is first.
        """
        if depth < 1:
            raise MirblabError(f"depth must be at least 1, found {depth}")
        if not 0 <= b < np.inf:
            raise MirblabError(f"b, how much more the share of the query counts, must be 0 or more; found {b}")
        asked, own = self.queries(formulas, weights), self.lengths(weights)
        is_restricted = candidates is not None and bool(candidates.rules)

        def one(row: int) -> tuple[np.ndarray, np.ndarray]:
            allowed = partial(_allowed, candidates, row) if is_restricted else None
            top = Top(depth, self.ranks, self.state.order)
            return scoring.best(asked[row], self.state.segments, own, b, top, allowed)

        parts = each(one, list(range(len(asked))), cores() if len(self) * len(asked) > 1 << 20 else 1)
        rows = np.repeat(np.arange(len(parts)), [len(positions) for positions, _ in parts])
        columns = zip(*parts, strict=True) if parts else [(np.empty(0, np.int64),), (np.empty(0, np.float32),)]
        positions, scores = (np.concatenate(column) for column in columns)
        return rows, positions, scores

    def scores(self, asked: Query, weights: Mapping[str, float] | None = None, b: float = B) -> np.ndarray:
        """Return the score of every formula for one query, float32 (n_formulas,), 0 where nothing is shared."""
        own, found = self.lengths(weights), np.zeros(len(self), dtype=np.float32)
        if not len(asked.keys):
            return found
        for start, shared in scoring.blocks(asked, self.state.segments):
            some = slice(start, start + len(shared))
            found[some] = scoring.score(shared, asked.length, own[some], b)
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
        return sums(self.state.segments)


def _unzip(built: Iterator[tuple[Segment, list[str]]]) -> tuple[list[Segment], list[str]]:
    parts, ids = [], []
    for part, names in built:
        parts.append(part)
        ids += names
    return parts, ids


def _order(ids: list[str]) -> np.ndarray | None:
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
