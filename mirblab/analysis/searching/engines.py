"""engines: a system over a collection that answers single queries in the explorer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mirblab.analysis.searching import highlights
from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.data.candidates import Candidates
from mirblab.data.collection import Collection, check_fits
from mirblab.display.text import Mark
from mirblab.encoders import encoding
from mirblab.encoders.token_vectors import Shrink, load_term_weights, load_token_vectors, term_matrix
from mirblab.formula import approach0
from mirblab.formula import search as structure
from mirblab.formula.formal.statements import FormulaSource
from mirblab.retrieval import bm25, codes, feedback, fusion, late_interaction, rerank, rewriting, sparse, systems
from mirblab.retrieval.late_interaction import TokenMatrices
from mirblab.retrieval.systems import DEPTH, System, system

QUERY_IDS = pd.Index(["query"], dtype="str")
_IN_MEMORY = 1 << 29  # bytes of token vectors; more stay on disk, where a search takes seconds
_SMALL = 5_000  # documents that a search may read anew for each query


class Query(NamedTuple):
    """A query: its text, and its row among the collection's queries, None for free text."""

    text: str
    row: int | None = None


class Ranking(NamedTuple):
    """Positions in the corpus, best first, int64 (n,), and their scores, float32 (n,)."""

    positions: np.ndarray
    scores: np.ndarray

    def rank(self, position: int) -> int:
        """Return the rank of a document, from 1, or 0 if it is not in the ranking.

        >>> Ranking(np.array([7, 3]), np.array([2.0, 1.0])).rank(3)
        2
        """
        matches = np.flatnonzero(self.positions == position)
        return int(matches[0]) + 1 if len(matches) else 0

    def run(self, collection: Collection, name: str) -> pd.DataFrame:
        """Return the ranking as a run of one query, called "query"."""
        rows = np.zeros(len(self.positions), dtype=np.int64)
        return runs.from_positions(
            rows, self.positions, self.scores, QUERY_IDS, collection.doc_ids, name, collection.name
        )

    @classmethod
    def of_run(cls, run: pd.DataFrame, collection: Collection) -> Ranking:
        """Return the ranking of a run that has one query."""
        positions = collection.doc_ids.get_indexer(pd.Index(run.doc_id.astype("str")))
        return cls(positions, run.score.to_numpy(np.float32))


def candidates(collection: Collection, query: Query) -> Candidates:
    """Return the documents that the query may return by the collection's rules; all for free text."""
    if query.row is None:
        return Candidates(len(collection.corpus))
    return collection.candidates.select(np.array([query.row]))


class Engine:
    """A system over one collection; `ready`, described by *preparation*, is made once and may take long.

    `marks`: which characters of documents matched, and how strongly; *marked* says what they mean ("": no marks).
    """

    preparation = ""
    marked = ""
    parts: Sequence[Engine] = ()  # other engines that it asks

    @cached_property
    def ready(self) -> Any:
        """Return what every search needs, made once."""

    def prepare(self) -> None:
        """Make what every search needs."""
        for part in self.parts:
            part.prepare()
        self.ready  # noqa: B018  made here

    def search(self, query: Query, depth: int) -> Ranking:
        """Return at most *depth* documents, best first."""
        raise NotImplementedError

    def marks(self, query: Query, positions: Sequence[int]) -> list[list[Mark]]:
        """Return the marks of each document."""
        return [[] for _ in positions]


class BM25Engine(Engine):
    """BM25 of any kind, with RM3 where *changes* has its settings; the query's own terms are marked."""

    preparation, marked = "an index of its terms", "terms that match, the stronger the more they add to the score"

    def __init__(self, collection: Collection, settings: dict[str, Any], changes: dict[str, Any] | None = None) -> None:
        self.collection, self.options, self.feedback = collection, systems.search_options(settings), changes
        self.options.pop("engine", None)

    @cached_property
    def ready(self) -> Any:
        stored = bm25.StoredCollection.of(self.collection, **self.options) if self.feedback is None else None
        index = stored or bm25.IndexedCollection.of(self.collection, **self.options)
        index.search(["x"], 1)  # the first search compiles
        return index

    def search(self, query: Query, depth: int) -> Ranking:
        allowed = candidates(self.collection, query)
        if self.feedback is None:
            return Ranking(*self.ready.search([query.text], depth, allowed)[1:])
        found = feedback.rm3(self.ready, [query.text], depth=depth, candidates=allowed, **self.feedback)
        return Ranking(*found[1:])

    def marks(self, query: Query, positions: Sequence[int]) -> list[list[Mark]]:
        tokenizer, marks = self.ready.tokenizer, []
        for position in positions:
            gains = self.ready.gains(query.text, position)
            marks.append(highlights.terms(self.collection.texts[position], gains, tokenizer))
        return marks


class DenseEngine(Engine):
    """One vector for each text, without marks; the query's is moved where *changes* has the settings of Rocchio."""

    preparation = "vectors of all documents"

    def __init__(self, collection: Collection, settings: dict[str, Any], changes: dict[str, Any] | None = None) -> None:
        self.collection, self.feedback = collection, changes
        self.model = encoding.encoder(settings["encoder"], settings.get("compat", ""))
        self.code_bits = settings.get("code_bits", 0)

    @cached_property
    def ready(self) -> Any:
        instruction = self.collection.card.instruction
        return codes.load_documents(self.model, self.collection.texts, instruction, self.code_bits)

    def search(self, query: Query, depth: int) -> Ranking:
        instruction, allowed = self.collection.card.instruction, candidates(self.collection, query)
        if query.row is None:
            vector = self.model.unstored(query.text, "query", instruction)
        else:
            vector = self.model.vectors([query.text], "query", instruction)
        if self.feedback is None:
            return Ranking(*codes.search(vector, self.ready, depth=depth, candidates=allowed)[1:])
        return Ranking(*feedback.rocchio(vector, self.ready, depth=depth, candidates=allowed, **self.feedback)[1:])


class RewritingEngine(Engine):
    """An engine that searches what a chat model makes of the query."""

    def __init__(self, part: Engine, options: dict[str, Any]) -> None:
        self.part, self.parts, self.preparation, self.marked = part, (part,), part.preparation, part.marked
        self._rewrite = cache(lambda text: rewriting.rewrite([text], **options)[0])  # for the search and its marks

    def search(self, query: Query, depth: int) -> Ranking:
        return self.part.search(self._rewritten(query), depth)

    def marks(self, query: Query, positions: Sequence[int]) -> list[list[Mark]]:
        return self.part.marks(self._rewritten(query), positions)

    def _rewritten(self, query: Query) -> Query:
        return query._replace(text=self._rewrite(query.text))


class SparseEngine(Engine):
    """A weight for each of few terms of a model's vocabulary, without marks."""

    preparation = "sparse vectors of all documents"

    def __init__(self, collection: Collection, settings: dict[str, Any]) -> None:
        self.collection, self.model = collection, encoding.encoder(settings["encoder"])

    @cached_property
    def ready(self) -> Any:
        check_fits(self.collection, "the search by sparse vectors")
        return load_term_weights(self.model, self.collection.texts, "document", self.collection.card.instruction)

    def search(self, query: Query, depth: int) -> Ranking:
        instruction, allowed = self.collection.card.instruction, candidates(self.collection, query)
        weights = term_matrix(self.model.term_weights([query.text], "query", instruction), self.model.dimensions)
        return Ranking(*sparse.search(weights, self.ready, depth=depth, candidates=allowed)[1:])


class LateInteractionEngine(Engine):
    """A vector for each token; the tokens that are the best for a token of the query are marked."""

    preparation = "token vectors of all documents"

    def __init__(self, collection: Collection, settings: dict[str, Any]) -> None:
        options = systems.search_options(settings)
        self.collection = collection
        self.model = encoding.encoder(options["encoder"], options.get("compat", ""))
        self.shrink = Shrink(options.get("dimensions", 0), options.get("factor", 1), options.get("seed", 0))
        # Where tokens were pooled no row is a token.
        self.marked = "" if self.shrink.factor > 1 else "tokens that answer a token of the query, by their cosine"

    @cached_property
    def ready(self) -> Any:
        check_fits(self.collection, "the search by token vectors", late_interaction.INSTEAD)
        rows = self._load(self.collection.texts, "document")
        if 4 * rows.dimensions * int(rows.lengths.sum()) > _IN_MEMORY:
            return rows
        return TokenMatrices(rows.block(0, len(rows.lengths)), rows.lengths)

    def _load(self, texts: Sequence[str], role: str) -> Any:
        return load_token_vectors(self.model, texts, role, self.collection.card.instruction, self.shrink)

    def _query_tokens(self, query: Query) -> Any:
        if query.row is not None:
            return self._load([query.text], "query")
        shrink = self.shrink.of("query")
        (tokens,) = self.model.token_vectors([query.text], "query", self.collection.card.instruction)
        return TokenMatrices.of([shrink(tokens) if shrink.name else tokens])

    def search(self, query: Query, depth: int) -> Ranking:
        tokens, allowed = self._query_tokens(query), candidates(self.collection, query)
        return Ranking(*late_interaction.search(tokens, self.ready, depth=depth, candidates=allowed)[1:])

    def marks(self, query: Query, positions: Sequence[int]) -> list[list[Mark]]:
        if not self.marked:
            return super().marks(query, positions)
        query_rows, texts = self._query_tokens(query).block(0, 1), [self.collection.texts[at] for at in positions]
        tokens = self.model.tokens(texts, "document", self.collection.card.instruction)
        rows = [self.ready.block(at, at + 1) for at in positions]
        return [highlights.tokens(*each, query_rows) for each in zip(texts, tokens, rows, strict=True)]


class StructureEngine(Engine):
    """Structure search; the parts of formulas that the query has, too, are marked."""

    preparation, marked = "an index of its formulas", "parts of formulas that agree with the query's"

    def __init__(self, collection: Collection, settings: dict[str, Any]) -> None:
        self.collection, self.options = collection, systems.search_options(settings)

    @cached_property
    def ready(self) -> structure.IndexedFormulas:
        return structure.IndexedFormulas.of(self.collection)

    def search(self, query: Query, depth: int) -> Ranking:
        allowed = candidates(self.collection, query)
        return Ranking(*self.ready.search([query.text], depth, allowed, **self.options)[1:])

    def marks(self, query: Query, positions: Sequence[int]) -> list[list[Mark]]:
        if self.ready.source.language:  # the trees of statements do not say where their signs stand
            return super().marks(query, positions)
        formulas, index = self.ready.reader.formulas(query.text), self.ready.index
        pairs = highlights.nearest(self.ready, formulas, positions)
        texts = [self.collection.texts[at] for at in positions]
        return [highlights.formulas(text, formulas, pair, index) for text, pair in zip(texts, pairs, strict=True)]


class FusedEngine(Engine):
    """A fusion of engines, as deep as in its runs, with the marks of all of them."""

    def __init__(self, collection: Collection, settings: dict[str, Any], parts: Sequence[Engine]) -> None:
        self.collection, self.settings, self.parts = collection, settings, parts
        self.preparation = ", ".join(dict.fromkeys(part.preparation for part in parts))
        self.marked = "; ".join(dict.fromkeys(part.marked for part in parts if part.marked))

    def search(self, query: Query, depth: int) -> Ranking:
        part_depth, method = self.settings.get("depth", DEPTH), self.settings.get("method", "rrf")
        parts = [part.search(query, part_depth).run(self.collection, str(n)) for n, part in enumerate(self.parts)]
        fused = fusion.fuse(parts, method, depth, **systems.fusion_options(self.settings))
        return Ranking.of_run(fused, self.collection)

    def marks(self, query: Query, positions: Sequence[int]) -> list[list[Mark]]:
        of_parts = (part.marks(query, positions) for part in self.parts)
        return [sum(of_document, []) for of_document in zip(*of_parts, strict=True)]


class RerankedEngine(Engine):
    """The first documents of another engine, ordered by a score for each pair, without marks."""

    def __init__(
        self, collection: Collection, depth: int, first: Engine, score: Callable[[Collection, pd.DataFrame], Any]
    ) -> None:
        self.collection, self.depth, self.first, self.score = collection, depth, first, score
        self.parts, self.preparation = (first,), first.preparation

    def search(self, query: Query, depth: int) -> Ranking:
        run = self.first.search(query, max(depth, self.depth)).run(self.collection, "first")
        scores = self.score(single(self.collection, query), runs.cut_run(run, self.depth))
        return Ranking.of_run(runs.cut_run(rerank.reorder_run(run, scores, self.depth), depth), self.collection)


class StoredRunEngine(Engine):
    """A system's run of the collection's queries; free text is passed to *search_free*, which may refuse it."""

    preparation = "its run of all queries"

    def __init__(self, collection: Collection, owner: System, search_free: Callable[[Query, int], Ranking]) -> None:
        self.collection, self.owner, self.search_free = collection, owner, search_free

    @cached_property
    def ready(self) -> pd.DataFrame:
        return self.owner.search(self.collection)

    def search(self, query: Query, depth: int) -> Ranking:
        if query.row is None:
            return self.search_free(query, depth)
        rows = self.ready.query_id.cat.codes.to_numpy() == query.row
        return Ranking.of_run(runs.cut_run(self.ready[rows], depth), self.collection)


class CachedEngine(Engine):
    """An engine that remembers its last query, since a system may also be a part of another one."""

    def __init__(self, inner: Engine) -> None:
        self.inner, self.parts, self.preparation, self.marked = inner, (inner,), inner.preparation, inner.marked
        self._last: tuple[Query, int, Ranking] | None = None
        self._marks: dict[tuple[Query, int], list[Mark]] = {}

    def search(self, query: Query, depth: int) -> Ranking:
        if self._last is None or self._last[0] != query or self._last[1] < depth:
            deep = max(depth, DEPTH)  # as deep as any fusion searches
            self._last, self._marks = (query, deep, self.inner.search(query, deep)), {}
        return Ranking(*(column[:depth] for column in self._last[2]))

    def marks(self, query: Query, positions: Sequence[int]) -> list[list[Mark]]:
        new = [position for position in positions if (query, position) not in self._marks]
        for position, marks in zip(new, self.inner.marks(query, new) if new else [], strict=True):
            self._marks[query, position] = marks
        return [self._marks[query, position] for position in positions]


def engine(name: str, collection: Collection, engines: dict[str, Engine]) -> Engine:
    """Return the engine of a system, kept by name in *engines*; MirblabError for an unknown system."""
    if name not in engines:
        engines[name] = CachedEngine(_make_engine(system(name), collection, engines))
    return engines[name]


def single(collection: Collection, query: Query) -> Collection:
    """Return the collection with one query, called "query", and no judgements."""
    queries = pd.DataFrame({"query_id": QUERY_IDS, "text": pd.Series([query.text], dtype="str")})
    empty = {name: pd.Categorical([], ids) for name, ids in (("query_id", QUERY_IDS), ("doc_id", collection.doc_ids))}
    qrels = pd.DataFrame(empty | {"relevance": np.empty(0, np.int32)})
    return replace(collection, queries=queries, qrels=qrels, candidates=candidates(collection, query), oddities={})


def _make_engine(owner: System, collection: Collection, engines: dict[str, Engine]) -> Engine:
    settings, is_small = owner.settings, len(collection.corpus) <= _SMALL
    kind = settings["kind"]

    def stored(reason: str) -> Engine:
        def refuse(query: Query, depth: int) -> Ranking:
            raise MirblabError(f"'{owner.name}' answers the collection's queries only: {reason}; choose one of them")

        return StoredRunEngine(collection, owner, refuse)

    if kind == "bm25" and settings.get("engine") == "rank-bm25":
        if not is_small:
            return stored(f"it indexes more than {_SMALL:,} documents anew for each query")
        return StoredRunEngine(collection, owner, lambda query, depth: _rank_bm25(owner, collection, query, depth))
    if kind == "imported":
        return stored("its run was imported")
    if kind == "fusion" and settings.get("method") == "cv":
        return stored("its weights are chosen by the collection's judged queries")
    if kind == "bm25":
        return BM25Engine(collection, settings)
    if kind == "dense":
        return DenseEngine(collection, settings)
    if kind == "sparse":
        return SparseEngine(collection, settings)
    if kind == "rewrite":
        part = engine(owner.parts[0].name, collection, engines)
        if isinstance(part, StoredRunEngine):
            return stored(f"'{owner.parts[0].name}' does")
        return RewritingEngine(part, systems.feedback_options(settings))
    if kind in systems.FEEDBACK:
        changed = BM25Engine if kind == "rm3" else DenseEngine
        return changed(collection, owner.parts[0].settings, systems.feedback_options(settings))
    if kind == "late":
        return LateInteractionEngine(collection, settings)
    if kind == "structure":
        return StructureEngine(collection, settings)
    parts = [engine(part.name, collection, engines) for part in owner.parts]
    if kind == "fusion":
        return FusedEngine(collection, settings, parts)
    if kind == "approach0" and not is_small:
        return stored(f"it reads more than {_SMALL:,} documents anew for each query")
    if "weight" in settings or "method" in settings:
        return stored("its reranker's scores are mixed with the first system's")
    depth = settings["depth"]
    score = _score_structure(collection, depth) if kind == "approach0" else _score_pairs(settings)
    return RerankedEngine(collection, depth, parts[0], score)


def _rank_bm25(owner: System, collection: Collection, query: Query, depth: int) -> Ranking:
    """Return the ranking of rank-bm25, which indexes the corpus for each search."""
    run = bm25.search(single(collection, query), depth=depth, **systems.search_options(owner.settings))
    return Ranking.of_run(run, collection)


def _score_pairs(settings: dict[str, Any]) -> Callable[[Collection, pd.DataFrame], Any]:
    options = systems.pair_options(settings)
    return lambda collection, shortlist: rerank.score_shortlist(shortlist, collection, settings["reranker"], **options)


def _score_structure(collection: Collection, depth: int) -> Callable[[Collection, pd.DataFrame], Any]:
    @cache
    def prepared() -> tuple[approach0.Approach0Scorer, FormulaSource]:
        source = FormulaSource.of(collection)
        formulas = [source.tree(each) for each in source.documents(collection).formulas]
        return approach0.Approach0Scorer(formulas), source

    return lambda one, shortlist: approach0.rescore(one, shortlist, depth, *prepared())
