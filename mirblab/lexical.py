"""lexical: BM25 over a collection, with the weights of bm25s or through rank-bm25, candidates honoured exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mirblab import runs
from mirblab.candidates import Candidates
from mirblab.collection import Collection
from mirblab.errors import MirblabError, unknown
from mirblab.formula.posts import parts
from mirblab.formula.texts import Reader, lack, language
from mirblab.postings import Index
from mirblab.tokenizers import reader
from mirblab.tokenizers import tokenizer as tokenizer_named
from mirblab.weights import IDF, Vocabulary, count

ENGINES = ("bm25s", "rank-bm25")
COMPATS = ("", "mirb")
USUAL = {"method": "lucene", "k1": 1.2, "b": 0.75, "tokenizer": "math"}
PUBLISHED = {"method": "lucene", "k1": 1.5, "b": 0.75, "tokenizer": "mirb"}
# Tokenizers that tell formulas from prose, and the one in their place for the languages of proof assistants.
OF_FORMULAS, WORDS = ("latex-ngrams", "prose", "pya0", "pya0-wide"), "math"
MIRB_NOTE = (
    "compat mirb: a document that is not a candidate scores 0 instead of being left out, so that it ties with "
    "documents that share no term and may fill the ranking"
)


def search(
    collection: Collection,
    *,
    depth: int,
    method: str | None = None,
    k1: float | None = None,
    b: float | None = None,
    delta: float = 0.5,
    tokenizer: str | None = None,
    engine: str = "bm25s",
    compat: str = "",
) -> pd.DataFrame:
    """Return the run of BM25: at most *depth* documents per query, best first.

    *method* is one of lucene, robertson, atire, bm25l, bm25+ (*delta* is for the last two). None: lucene,
    k1 = 1.2, b = 0.75, tokenizer math; with `compat="mirb"` the published benchmark's lucene, 1.5, 0.75, mirb.
    Terms count as often as the query has them. A document that shares no term with the query, or that the
    collection's candidates exclude, is never returned; nor is one of score 0, which the idf of robertson (0
    from half of the documents on) and atire (0 when all have the term) can give.

    A tokenizer that reads formulas finds none in the language of a proof assistant: where documents or queries are in
    one, words are read (tokenizer math). For latex-ngrams the attrs say how many texts have no formula.

    `engine="rank-bm25"` is the reference `BM25Okapi`, slow, for lessons: its idf has a floor of a quarter of the
    mean idf, which may be 0 or negative in a small corpus, and such scores are returned as they are.

    `compat="mirb"` also repeats the published defect: candidates multiply scores by 0 instead of removing
    documents, and documents of score 0 fill the ranking to *depth*. Scores are bit for bit those of bm25s,
    called as the published code calls it. One thing differs: where scores are equal at the last place, mostly
    0, bm25s takes whichever its partition leaves there; here it is the larger doc_id, by the tie rule of `runs`.

    >>> from mirblab.shelf import load
    >>> run = search(load("mini-qa"), depth=3)
    >>> int(run["rank"].max()), run.attrs["tokenizer"]
    (3, 'math')
    """
    given = _settings(method, k1, b, delta, tokenizer, engine, compat)
    settings = _for_texts(collection, given)
    if depth < 1:
        raise MirblabError(f"depth must be at least 1, found {depth}")
    tokenize = tokenizer_named(settings["tokenizer"])
    # The published document text, a newline, title, blank and text, has the same tokens as ours.
    asked, candidates = collection.query_texts, collection.candidates
    if engine == "rank-bm25":
        allowed = candidates.allowed if candidates.rules else None
        found = _okapi(tokenize(collection.texts), tokenize(asked), depth, settings["k1"], settings["b"], allowed)
    else:
        found = Prepared(collection, settings, _index(collection, settings)).search(asked, depth, candidates)
    notes = settings | {"engine": engine} | ({"notes": MIRB_NOTE} if compat else {})
    if given["tokenizer"] == "latex-ngrams":
        notes |= _lack(collection)
    return runs.from_positions(*found, collection.query_ids, collection.doc_ids, "bm25", collection.name, **notes)


def explain(
    collection: Collection,
    query_text: str,
    doc_id: str,
    *,
    method: str | None = None,
    k1: float | None = None,
    b: float | None = None,
    delta: float = 0.5,
    tokenizer: str | None = None,
) -> pd.DataFrame:
    """Return what each term of a query adds to one document's score: term, idf, frequency, contribution.

    *frequency* counts the term in the document; the contributions sum to the score of `search`, largest
    first. Terms that no document has are left out. The whole corpus is indexed for it.

    >>> from mirblab.shelf import load
    >>> collection = load("mini-qa")
    >>> explain(collection, collection.query_texts[0], collection.doc_ids[0]).columns.tolist()
    ['term', 'idf', 'frequency', 'contribution']
    """
    options = {"method": method, "k1": k1, "b": b, "delta": delta, "tokenizer": tokenizer}
    return Prepared.of(collection, **options).explain(query_text, doc_id)


@dataclass(frozen=True)
class Prepared:
    """A collection whose documents are indexed once, for many searches and explanations."""

    collection: Collection
    settings: dict[str, Any]
    index: Index

    @classmethod
    def of(cls, collection: Collection, **options: Any) -> Prepared:
        """Return the collection with its index; *options* are those of `search` but for the engine."""
        given = dict.fromkeys(("method", "k1", "b", "tokenizer")) | {"delta": 0.5, "compat": ""} | options
        settings = _for_texts(collection, _settings(engine="bm25s", **given))
        return cls(collection, settings, _index(collection, settings))

    def search(
        self, texts: Sequence[str], depth: int, candidates: Candidates | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (rows, positions, scores) of the *depth* best documents of each of *texts*, best first."""
        rules = candidates if candidates is not None and candidates.rules else None
        tokens = tokenizer_named(self.settings["tokenizer"])(texts)
        return self.index.search(tokens, depth, rules, published=self.settings["compat"] == "mirb")

    def explain(self, query_text: str, doc_id: str) -> pd.DataFrame:
        """Return the table of the function `explain`."""
        tokenize, index = tokenizer_named(self.settings["tokenizer"]), self.index
        if doc_id not in self.collection.doc_ids:
            self.collection.document(doc_id)  # says what is wrong
        names, position = self._names, self.collection.doc_ids.get_loc(doc_id)
        own = tokenize([self.collection.texts[position]])[0]
        counts = index.queries(tokenize([query_text]))
        row = index.weights[[position]].toarray().ravel() + index.absent
        idf, found_in = IDF[self.settings["method"]], index.document_counts
        rows = [
            (names[term], idf(found_in[term], len(self.collection.corpus)), own.count(names[term]), row[term] * count)
            for term, count in zip(counts.indices, counts.data, strict=True)
        ]
        rows.sort(key=lambda row: (-row[-1], row[0]))
        return pd.DataFrame(rows, columns=["term", "idf", "frequency", "contribution"])

    @cached_property
    def _names(self) -> list[str]:
        return list(self.index.vocabulary)


def defect(collection: Collection, depth: int = 10) -> pd.DataFrame:
    """Return what the published defect puts into each query's first *depth*: one row per query, in their order.

    Columns: query_id; found, how many documents `compat="mirb"` returns; not_candidates, how many of them the
    collection's candidates exclude; score_zero, how many share no term with the query or are excluded.

    >>> from mirblab.shelf import load
    >>> table = defect(load("mini-wfb"))
    >>> table.columns.tolist()
    ['query_id', 'found', 'not_candidates', 'score_zero']
    >>> bool((table.not_candidates <= table.score_zero).all()), int((table.not_candidates > 0).sum()) > 0
    (True, True)
    """
    run = search(collection, depth=depth, compat="mirb")
    queries, docs = (run[name].cat.codes.to_numpy() for name in ("query_id", "doc_id"))
    rows = {
        "found": np.ones(len(run), dtype=bool),
        "not_candidates": ~collection.candidates.permits(queries, docs),
        "score_zero": run.score.to_numpy() == 0,
    }
    counts = {name: np.bincount(queries[kept], minlength=len(collection.queries)) for name, kept in rows.items()}
    return pd.DataFrame({"query_id": np.asarray(collection.query_ids)} | counts)


def _settings(
    method: str | None, k1: float | None, b: float | None, delta: float, tokenizer: str | None, engine: str, compat: str
) -> dict[str, Any]:
    """Return all settings, checked, with those not given filled in."""
    if engine not in ENGINES:
        raise unknown("BM25 engine", engine, ENGINES)
    if compat not in COMPATS:
        raise unknown("compat", compat, [name for name in COMPATS if name])
    if engine == "rank-bm25" and (method or compat):
        found = f"method '{method or ''}' and compat '{compat}'"
        raise MirblabError(f"engine 'rank-bm25' has BM25Okapi only, found {found}; leave them out")
    given = {"method": method, "k1": k1, "b": b, "tokenizer": tokenizer}
    settings = (PUBLISHED if compat else USUAL) | {key: value for key, value in given.items() if value is not None}
    if engine == "rank-bm25":
        return settings | {"method": "okapi", "compat": compat}
    if settings["method"] not in IDF:
        raise unknown("BM25 method", settings["method"], IDF)
    if settings["k1"] < 0 or not 0 <= settings["b"] <= 1 or delta < 0:
        found = f"k1 = {settings['k1']}, b = {settings['b']}, delta = {delta}"
        raise MirblabError(f"BM25 needs k1 >= 0, 0 <= b <= 1 and delta >= 0, found {found}")
    return settings | {"delta": delta, "compat": compat}


def _for_texts(collection: Collection, settings: dict[str, Any]) -> dict[str, Any]:
    """Return *settings* with words in place of formulas where the texts are in the language of a proof assistant."""
    if settings["tokenizer"] in OF_FORMULAS and language(collection):
        return settings | {"tokenizer": WORDS}
    return settings


def _lack(collection: Collection) -> dict[str, Any]:
    """Return what the attrs of a run of n-grams say of texts without a formula."""
    sides = {"query": collection.query_texts, "document": collection.texts}
    languages = {role: Reader.of(collection, role).language for role in sides}
    have = [[not languages[role] and len(parts(text)) > 1 for text in texts] for role, texts in sides.items()]
    return lack(*have, language(collection))


def _index(collection: Collection, settings: dict[str, Any]) -> Index:
    vocabulary = Vocabulary()
    documents = map(reader(settings["tokenizer"], vocabulary.__getitem__), collection.texts)
    parts = (settings["method"], settings["k1"], settings["b"], settings["delta"])
    return Index.weighted(vocabulary, count(documents, vocabulary), *parts)


def _okapi(
    documents: list[list[str]], queries: list[list[str]], depth: int, k1: float, b: float, allowed: Callable | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows, positions, scores) by rank-bm25, one query at a time, of documents that share a term."""
    from rank_bm25 import BM25Okapi

    words = [set(document) for document in documents]
    engine = BM25Okapi(documents, k1=k1, b=b) if any(words) else None
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))]
    for row, query in enumerate(queries if engine else []):
        shares = np.array([not own.isdisjoint(query) for own in words])[None]
        if allowed is not None:
            shares &= allowed(np.array([row]))
        scores = engine.get_scores(query).astype(np.float32)[None]
        _, positions, best = runs.top_k(scores, depth, shares)
        parts.append((np.full(len(positions), row), positions, best))
    rows, positions, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    return rows, positions, scores
