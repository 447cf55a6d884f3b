"""composed: fusions, rerankers and runs as engines, made of those of their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import pandas as pd

from mirblab import fusion, lexical, recipes, rerank, runs
from mirblab.collection import Collection
from mirblab.errors import MirblabError
from mirblab.explorer.engines import Engine, Formulas, Tokens, Vectors, Words
from mirblab.explorer.ranking import QUERY_IDS, Asked, Ranking, candidates
from mirblab.formula import approach0
from mirblab.formula.texts import Reader
from mirblab.prose import Mark
from mirblab.systems import DEPTH, System, system

_SMALL = 5_000  # documents, where a search reads all of them anew
_ALONE = {"bm25": Words, "dense": Vectors, "late": Tokens, "structure": Formulas}


class Once:
    """An engine that remembers its last query, since a system may be shown and be a part of another one, too."""

    def __init__(self, own: Engine) -> None:
        self.own, self.making, self.marked, self.prepare = own, own.making, own.marked, own.prepare
        self._last: tuple[Asked, int, Ranking] | None = None
        self._marks: dict[tuple[Asked, int], list[Mark]] = {}

    def search(self, asked: Asked, depth: int) -> Ranking:
        """Search as deep as any fusion asks, once for each query."""
        if self._last is None or self._last[0] != asked or self._last[1] < depth:
            deep = max(depth, DEPTH)
            self._last, self._marks = (asked, deep, self.own.search(asked, deep)), {}
        return Ranking(*(column[:depth] for column in self._last[2]))

    def marks(self, asked: Asked, positions: Sequence[int]) -> list[list[Mark]]:
        """Mark what was not marked for this query before."""
        new = [position for position in positions if (asked, position) not in self._marks]
        found = self.own.marks(asked, new) if new else []
        self._marks |= {(asked, position): marks for position, marks in zip(new, found, strict=True)}
        return [self._marks[asked, position] for position in positions]


class Fused:
    """A fusion whose parts are searched live, as deep as in its runs."""

    def __init__(self, collection: Collection, settings: dict[str, Any], parts: Sequence[Engine]) -> None:
        self.collection, self.settings, self.parts = collection, settings, parts
        self.making = ", ".join(dict.fromkeys(part.making for part in parts))
        self.marked = "; ".join(dict.fromkeys(part.marked for part in parts if part.marked))

    def prepare(self) -> None:
        """Prepare all parts."""
        for part in self.parts:
            part.prepare()

    def search(self, asked: Asked, depth: int) -> Ranking:
        """Search the parts, and fuse their rankings."""
        deep = self.settings.get("depth", DEPTH)
        found = [part.search(asked, deep).run(self.collection, str(n)) for n, part in enumerate(self.parts)]
        options = recipes.fusion_options(self.settings)
        return Ranking.of_run(fusion.fuse(found, self.settings.get("method", "rrf"), depth, **options), self.collection)

    def marks(self, asked: Asked, positions: Sequence[int]) -> list[list[Mark]]:
        """Mark what any of the parts marks."""
        return [sum(own, []) for own in zip(*(part.marks(asked, positions) for part in self.parts), strict=True)]


class Reordered:
    """The first documents of another engine, ordered by a score for each pair: nothing says what matched."""

    marked = ""

    def __init__(
        self, collection: Collection, depth: int, first: Engine, score: Callable[[Collection, pd.DataFrame], Any]
    ) -> None:
        self.collection, self.depth, self.first, self.score = collection, depth, first, score
        self.making = first.making

    def prepare(self) -> None:
        """Prepare the first stage."""
        self.first.prepare()

    def search(self, asked: Asked, depth: int) -> Ranking:
        """Search the first stage, and score the first documents anew."""
        run = self.first.search(asked, max(depth, self.depth)).run(self.collection, "first")
        pairs = self.score(single(self.collection, asked), runs.cut(run, self.depth))
        return Ranking.of_run(runs.cut(rerank.reorder(run, pairs, self.depth), depth), self.collection)

    def marks(self, asked: Asked, positions: Sequence[int]) -> list[list[Mark]]:
        """Mark nothing."""
        return [[] for _ in positions]


class Kept:
    """A system's run of the collection's queries; free text is refused, or given to *free*."""

    making, marked = "its run of all queries", ""

    def __init__(self, collection: Collection, own: System, free: Callable[[Asked, int], Ranking]) -> None:
        self.collection, self.own, self.free = collection, own, free

    @cached_property
    def _run(self) -> pd.DataFrame:
        return self.own.search(self.collection)

    def prepare(self) -> None:
        """Make the run, or read it."""
        self._run  # noqa: B018  made here

    def search(self, asked: Asked, depth: int) -> Ranking:
        """Return what the run has for a query of the collection."""
        if asked.row is None:
            return self.free(asked, depth)
        mine = self._run.query_id.cat.codes.to_numpy() == asked.row
        return Ranking.of_run(runs.cut(self._run[mine], depth), self.collection)

    def marks(self, asked: Asked, positions: Sequence[int]) -> list[list[Mark]]:
        """Mark nothing."""
        return [[] for _ in positions]


def engine(name: str, collection: Collection, made: dict[str, Engine]) -> Engine:
    """Return the engine of a system, one for each name: *made* has those of before, and gets the new ones.

    Raises MirblabError for an unknown system.
    """
    if name not in made:
        made[name] = Once(_made(system(name), collection, made))
    return made[name]


def single(collection: Collection, asked: Asked) -> Collection:
    """Return the collection with one query, called "query", and no judgements."""
    queries = pd.DataFrame({"query_id": QUERY_IDS, "text": pd.Series([asked.text], dtype="str")})
    nobody = {name: pd.Categorical([], ids) for name, ids in (("query_id", QUERY_IDS), ("doc_id", collection.doc_ids))}
    qrels = pd.DataFrame(nobody | {"relevance": np.empty(0, np.int32)})
    return replace(collection, queries=queries, qrels=qrels, candidates=candidates(collection, asked), oddities={})


def _made(own: System, collection: Collection, made: dict[str, Engine]) -> Engine:
    settings = own.settings
    kind, parts = settings["kind"], [part.name for part in own.parts()]
    if kind == "bm25" and settings.get("engine") == "rank-bm25":
        return Kept(collection, own, lambda asked, depth: _read_anew(own, collection, asked, depth))
    if kind in _ALONE:
        return _ALONE[kind](collection, settings)
    if kind == "imported":
        return Kept(collection, own, _refused(own, "its run was imported"))
    if kind == "fusion" and settings.get("method") == "cv":
        return Kept(collection, own, _refused(own, "its weights are chosen by the collection's judged queries"))
    engines = [engine(part, collection, made) for part in parts]
    if kind == "fusion":
        return Fused(collection, settings, engines)
    if kind == "approach0":
        if len(collection.corpus) > _SMALL:
            return Kept(collection, own, _refused(own, f"it reads more than {_SMALL:,} documents anew for each query"))
        return Reordered(collection, settings["depth"], engines[0], _by_structure(collection, settings["depth"]))
    return Reordered(collection, settings["depth"], engines[0], _by_pairs(settings))


def _refused(own: System, why: str) -> Callable[[Asked, int], Ranking]:
    def free(asked: Asked, depth: int) -> Ranking:
        raise MirblabError(f"'{own.name}' answers the collection's queries only: {why}; choose one of them")

    return free


def _read_anew(own: System, collection: Collection, asked: Asked, depth: int) -> Ranking:
    """Return what rank-bm25 finds, which indexes the corpus for each search."""
    if len(collection.corpus) > _SMALL:
        return _refused(own, f"it indexes more than {_SMALL:,} documents anew for each query")(asked, depth)
    one = single(collection, asked)
    return Ranking.of_run(lexical.search(one, depth=depth, **recipes.options(own.settings)), collection)


def _by_pairs(settings: dict[str, Any]) -> Callable[[Collection, pd.DataFrame], Any]:
    options = recipes.pair_options(settings)
    return lambda one, shortlist: rerank.score_shortlist(shortlist, one, settings["reranker"], **options)


def _by_structure(collection: Collection, depth: int) -> Callable[[Collection, pd.DataFrame], Any]:
    @cache
    def scorer() -> approach0.Scorer:
        return approach0.Scorer(Reader.of(collection).owned(collection.texts).formulas)

    return lambda one, shortlist: approach0.rescore(one, shortlist, depth, scorer())
