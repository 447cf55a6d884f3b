"""engines: live search for the explorer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import repeat
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from mirblab.app.explorer import highlights
from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.data.candidates import Candidates
from mirblab.data.collection import Collection
from mirblab.display.text import Mark
from mirblab.encoders import encoding
from mirblab.encoders.token_vectors import Shrink, load_token_vectors
from mirblab.formula import approach0
from mirblab.formula import search as structure
from mirblab.formula.in_text import FormulaReader
from mirblab.retrieval import bm25, dense, fusion, late_interaction, rerank, systems
from mirblab.retrieval.late_interaction import TokenMatrices
from mirblab.retrieval.systems import DEPTH, System, system

QUERY_IDS = pd.Index(["query"], dtype="str")


class Asked(NamedTuple):
    """A query: its text, and its place among the collection's queries, None for free text."""

    text: str
    row: int | None = None


class Ranking(NamedTuple):
    """Documents by their positions in the corpus, best first, int64 (n,), and their scores, float32 (n,)."""

    positions: np.ndarray
    scores: np.ndarray

    def rank(self, position: int) -> int:
        """Return the rank of a document, from 1, or 0 where it is not in the ranking.

        >>> Ranking(np.array([7, 3]), np.array([2.0, 1.0])).rank(3)
        2
        """
        found = np.flatnonzero(self.positions == position)
        return int(found[0]) + 1 if len(found) else 0

    def run(self, collection: Collection, name: str) -> pd.DataFrame:
        """Return the ranking as a run of one query, called "query"."""
        rows = np.zeros(len(self.positions), dtype=np.int64)
        found = rows, self.positions, self.scores
        return runs.from_positions(*found, QUERY_IDS, collection.doc_ids, name, collection.name)

    @classmethod
    def of_run(cls, run: pd.DataFrame, collection: Collection) -> Ranking:
        """Return the ranking of a run that has one query."""
        positions = collection.doc_ids.get_indexer(run.doc_id.astype("str"))
        return cls(positions, run.score.to_numpy(np.float32))


def candidates(collection: Collection, asked: Asked) -> Candidates:
    """Return the documents that the query may return: those of the collection's rules, all for free text."""
    if asked.row is None:
        return Candidates(len(collection.corpus))
    return collection.candidates.select(np.array([asked.row]))


_IN_MEMORY = 1 << 29  # bytes of token vectors; more stay on disk, where a search takes seconds


class Engine(Protocol):
    """A system over one collection, made ready once."""

    making: str  # what is made before the first search, for who waits
    marked: str  # what `marks` marks, "" for nothing

    def prepare(self) -> None:
        """Make what every search needs."""

    def search(self, asked: Asked, depth: int) -> Ranking:
        """Return at most *depth* documents, best first."""

    def marks(self, asked: Asked, positions: Sequence[int]) -> list[list[Mark]]:
        """Return for each document which characters of its text matched, and how strongly."""


class Words:
    """BM25 of any kind."""

    making, marked = "an index of its terms", "terms that match, the stronger the more they add to the score"

    def __init__(self, collection: Collection, settings: dict[str, Any]) -> None:
        self.collection, self.options = collection, systems.search_options(settings)
        self.options.pop("engine", None)

    @cached_property
    def _ready(self) -> bm25.IndexedCollection:
        return bm25.IndexedCollection.of(self.collection, **self.options)

    def prepare(self) -> None:
        """Index the corpus."""
        self._ready.search(["x"], 1)

    def search(self, asked: Asked, depth: int) -> Ranking:
        """Search the index."""
        return Ranking(*self._ready.search([asked.text], depth, candidates(self.collection, asked))[1:])

    def marks(self, asked: Asked, positions: Sequence[int]) -> list[list[Mark]]:
        """Mark terms by what they add to the score."""
        name = self._ready.settings["tokenizer"]
        found = []
        for position in positions:
            parts = self._ready.explain(asked.text, self.collection.doc_ids[position])
            gains = dict(zip(parts.term, parts.contribution, strict=True))
            found.append(highlights.terms(self.collection.texts[position], gains, name))
        return found


class Vectors:
    """One vector for a text: nothing says what matched."""

    making, marked = "vectors of all documents", ""

    def __init__(self, collection: Collection, settings: dict[str, Any]) -> None:
        self.collection = collection
        self.model = encoding.encoder(settings["encoder"], settings.get("compat", ""))

    @cached_property
    def _documents(self) -> Any:
        return self.model.vectors(self.collection.texts, "document", self.collection.card.instruction)

    def prepare(self) -> None:
        """Encode the corpus, or read its vectors."""
        self._documents  # noqa: B018  made here

    def search(self, asked: Asked, depth: int) -> Ranking:
        """Encode the query, and compare it with every document."""
        instruction = self.collection.card.instruction
        if asked.row is None:
            query = self.model.unstored(asked.text, "query", instruction)
        else:
            query = self.model.vectors([asked.text], "query", instruction)
        allowed = candidates(self.collection, asked)
        return Ranking(*dense.search(query, self._documents, depth=depth, candidates=allowed)[1:])

    def marks(self, asked: Asked, positions: Sequence[int]) -> list[list[Mark]]:
        """Mark nothing."""
        return [[] for _ in positions]


class Tokens:
    """Late interaction: a vector for each token."""

    making = "token vectors of all documents"

    def __init__(self, collection: Collection, settings: dict[str, Any]) -> None:
        found = systems.search_options(settings)
        self.collection = collection
        self.model = encoding.encoder(found["encoder"], found.get("compat", ""))
        self.shrink = Shrink(*(found.get(key, usual) for key, usual in (("dimensions", 0), ("factor", 1), ("seed", 0))))
        # Where tokens were pooled no row is a token.
        self.marked = "" if self.shrink.factor > 1 else "tokens that answer a token of the query, by their cosine"

    @cached_property
    def _documents(self) -> Any:
        rows = self._rows(self.collection.texts, "document")
        if 4 * rows.dimensions * int(rows.lengths.sum()) > _IN_MEMORY:
            return rows
        return TokenMatrices(rows.block(0, len(rows.lengths)), rows.lengths)

    def _rows(self, texts: Sequence[str], role: str) -> Any:
        return load_token_vectors(self.model, texts, role, self.collection.card.instruction, self.shrink)

    def _asked(self, asked: Asked) -> Any:
        """Return the token vectors of a query; those of free text are not kept."""
        if asked.row is not None:
            return self._rows([asked.text], "query")
        shrink, made = self.shrink.of("query"), self.model.token_vectors
        found = made([asked.text], "query", self.collection.card.instruction)
        return TokenMatrices.of([shrink(found[0]) if shrink.name else found[0]])

    def prepare(self) -> None:
        """Encode the corpus, or open its vectors."""
        self._documents  # noqa: B018  made here

    def search(self, asked: Asked, depth: int) -> Ranking:
        """Encode the query, and compare its tokens with those of every document."""
        query, allowed = self._asked(asked), candidates(self.collection, asked)
        return Ranking(*late_interaction.search(query, self._documents, depth=depth, candidates=allowed)[1:])

    def marks(self, asked: Asked, positions: Sequence[int]) -> list[list[Mark]]:
        """Mark the tokens that are the best for a token of the query."""
        if not self.marked:
            return [[] for _ in positions]
        query, texts = self._asked(asked).block(0, 1), [self.collection.texts[at] for at in positions]
        tokens = self.model.tokens(texts, "document", self.collection.card.instruction)
        rows = [self._documents.block(at, at + 1) for at in positions]
        return [highlights.tokens(*each, query) for each in zip(texts, tokens, rows, strict=True)]


class Formulas:
    """Structure search."""

    making, marked = "an index of its formulas", "parts of formulas that agree with the query's"

    def __init__(self, collection: Collection, settings: dict[str, Any]) -> None:
        self.collection, self.options = collection, systems.search_options(settings)

    @cached_property
    def _ready(self) -> structure.IndexedFormulas:
        return structure.IndexedFormulas.of(self.collection)

    def prepare(self) -> None:
        """Read and index all formulas."""
        self._ready  # noqa: B018  made here

    def search(self, asked: Asked, depth: int) -> Ranking:
        """Search the index; a query without a formula finds nothing."""
        allowed = candidates(self.collection, asked)
        return Ranking(*self._ready.search([asked.text], depth, allowed, **self.options)[1:])

    def marks(self, asked: Asked, positions: Sequence[int]) -> list[list[Mark]]:
        """Mark the parts of formulas that the query has, too."""
        queries = self._ready.reader.formulas(asked.text)
        pairs = highlights.nearest(self._ready, queries, positions)
        texts = (self.collection.texts[at] for at in positions)
        return [
            highlights.formulas(*each, self._ready.index) for each in zip(texts, repeat(queries), pairs, strict=False)
        ]


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
        options = systems.fusion_options(self.settings)
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
        pairs = self.score(single(self.collection, asked), runs.cut_run(run, self.depth))
        return Ranking.of_run(runs.cut_run(rerank.reorder_run(run, pairs, self.depth), depth), self.collection)

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
        return Ranking.of_run(runs.cut_run(self._run[mine], depth), self.collection)

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
    kind, parts = settings["kind"], [part.name for part in own.parts]
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
    return Ranking.of_run(bm25.search(one, depth=depth, **systems.search_options(own.settings)), collection)


def _by_pairs(settings: dict[str, Any]) -> Callable[[Collection, pd.DataFrame], Any]:
    options = systems.pair_options(settings)
    return lambda one, shortlist: rerank.score_shortlist(shortlist, one, settings["reranker"], **options)


def _by_structure(collection: Collection, depth: int) -> Callable[[Collection, pd.DataFrame], Any]:
    @cache
    def scorer() -> approach0.Approach0Scorer:
        return approach0.Approach0Scorer(FormulaReader.of(collection).owned(collection.texts).formulas)

    return lambda one, shortlist: approach0.rescore(one, shortlist, depth, scorer())
