"""bm25: BM25: its index, its weights and its search."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import islice
from math import log
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, unknown
from mirblab.core.terminal import progress
from mirblab.data import runs
from mirblab.data.candidates import Candidates
from mirblab.data.collection import Collection
from mirblab.data.topk import TopK, gather_blocks, n_cores, run_in_threads, split_range
from mirblab.formula.in_text import FormulaReader, collection_language, count_without_formula, split_text
from mirblab.retrieval.tokenizers import token_reader
from mirblab.retrieval.tokenizers import tokenizer as tokenizer_named

BLOCK = 1 << 14

# Kamphuis et al., "Which BM25 Do You Mean?", ECIR 2020: idf of a term in df of n documents.
IDF: dict[str, Callable[[float, float], float]] = {
    "lucene": lambda df, n: log(1 + (n - df + 0.5) / (df + 0.5)),
    "robertson": lambda df, n: log(max((n - df + 0.5) / (df + 0.5), 1)),
    "atire": lambda df, n: log(n / df),
    "bm25l": lambda df, n: log((n + 1) / (df + 0.5)),
    "bm25+": lambda df, n: log((n + 1) / df),
}


class Vocabulary(dict[str, int]):
    """The number of each term, given when it is first asked for.

    >>> vocabulary = Vocabulary()
    >>> [vocabulary[term] for term in ("knot", "ring", "knot")]
    [0, 1, 0]
    """

    def __missing__(self, term: str) -> int:
        """Give *term* the next number."""
        number = self[term] = len(self)
        return number


def count_terms(documents: Iterable[Iterable[int]], vocabulary: dict[str, int]) -> tuple[object, np.ndarray]:
    """Return (frequencies, lengths) of documents as numbers of their terms, which may be made while they are read.

    Frequencies are sparse (n_docs, n_terms), float32, terms in order; lengths count tokens, (n_docs,). The
    *vocabulary* may grow meanwhile.

    >>> vocabulary = Vocabulary()
    >>> frequencies, lengths = count_terms([[vocabulary[word] for word in "knot ring knot".split()], []], vocabulary)
    >>> frequencies.toarray().tolist(), lengths.tolist()
    ([[2.0, 1.0], [0.0, 0.0]], [3, 0])
    """
    from scipy.sparse import csr_array

    parts = [(np.empty(0, np.float32), np.empty(0, np.int32), *[np.empty(0, np.int64)] * 2)]
    for ids, lengths in _term_blocks(iter(documents)):
        starts = np.concatenate([[0], np.cumsum(lengths)])
        rows = csr_array((np.ones(len(ids), np.float32), ids, starts), shape=(len(lengths), len(vocabulary)))
        rows.sum_duplicates()
        parts.append((rows.data, rows.indices.astype(np.int32), np.diff(rows.indptr), lengths))
    data, indices, sizes, lengths = (np.concatenate(column) for column in zip(*parts, strict=True))
    starts, shape = np.concatenate([[0], np.cumsum(sizes)]), (len(lengths), len(vocabulary))
    return csr_array((data, indices, starts), shape=shape), lengths


def weigh_terms(frequencies: object, lengths: np.ndarray, method: str, k1: float, b: float, delta: float) -> np.ndarray:
    """Turn *frequencies*, in place, into the weights of BM25, and return what a term gives a document without it.

    The latter, (n_terms,) float32, is other than 0 for bm25l and bm25+ only, and is taken off the weights.
    """
    n_docs, n_terms = frequencies.shape
    if not n_terms:
        return np.zeros(0, dtype=np.float32)
    found_in = np.bincount(frequencies.indices, minlength=n_terms)
    exact = [IDF[method](df, n_docs) for df in found_in.tolist()]
    idf, mean = np.array(exact, dtype=np.float32), lengths.mean()
    absent = np.zeros(n_terms, dtype=np.float32)
    if method in ("bm25l", "bm25+"):
        with np.errstate(invalid="ignore"):  # k1 = 0 makes it 0 / 0, which bm25s passes on
            gain = _gain(method, 0, mean, mean, k1, b, delta)
        absent[:] = np.array(exact) * (delta if np.isnan(gain) else gain)
    for start in range(0, n_docs, BLOCK):
        starts = frequencies.indptr[start : start + BLOCK + 1]
        block = slice(starts[0], starts[-1])
        terms, own = frequencies.indices[block], np.repeat(lengths[start : start + BLOCK], np.diff(starts))
        gains = idf[terms] * _gain(method, frequencies.data[block], own, mean, k1, b, delta)
        frequencies.data[block] = gains - absent[terms]
    return absent


def _gain(method: str, frequency: object, length: object, mean: float, k1: float, b: float, delta: float) -> object:
    """Return what BM25 makes of a frequency; the order of operations, and of roundings, is that of bm25s."""
    norm = 1 - b + b * length / mean
    if method == "atire":
        return (frequency * (k1 + 1)) / (frequency + k1 * norm)
    if method == "bm25l":
        part = frequency / norm
        return ((k1 + 1) * (part + delta)) / (k1 + part + delta)
    if method == "bm25+":
        return ((k1 + 1) * frequency) / (k1 * norm + frequency) + delta
    return frequency / (k1 * norm + frequency)


def _term_blocks(documents: Iterator[Iterable[int]]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the terms' numbers, flat, and the number of tokens of each document, BLOCK documents at a time."""
    while True:
        ids, ends = array("i"), array("q")
        for tokens in islice(documents, BLOCK):
            ids.extend(tokens)
            ends.append(len(ids))
        if not ends:
            return
        yield np.array(ids, dtype=np.int32), np.diff(np.array(ends, dtype=np.int64), prepend=0)


LANES, CHUNK = 64, 1 << 12  # queries and documents in one sparse product
ROWS, SLAB = 16, 1 << 15  # queries and documents in one compiled loop; a slab has at most 2^16
COMPILE_FROM = 500_000_000  # postings from which on compiling pays

Scores = Iterator[tuple[int, np.ndarray]]


@dataclass(frozen=True)
class TermIndex:
    """What each term contributes to the score of each document.

    `weights` is sparse (n_docs, n_terms), float32, terms in order of first appearance; `absent` is what a term
    contributes to a document without it, (n_terms,), other than 0 for the methods bm25l and bm25+ only.
    """

    vocabulary: dict[str, int]
    weights: object
    absent: np.ndarray

    @classmethod
    def build(cls, tokens: Iterable[Iterable[str]], method: str, k1: float, b: float, delta: float) -> TermIndex:
        """Return the index of the documents' *tokens*."""
        vocabulary = Vocabulary()
        numbers = (map(vocabulary.__getitem__, document) for document in tokens)
        return cls.weighted(vocabulary, count_terms(numbers, vocabulary), method, k1, b, delta)

    @classmethod
    def weighted(
        cls, vocabulary: dict[str, int], counted: tuple, method: str, k1: float, b: float, delta: float
    ) -> TermIndex:
        """Return the index of what `bm25.count_terms` returned; its frequencies become the weights, in place."""
        absent = weigh_terms(*counted, method, k1, b, delta)
        return cls(dict(vocabulary), counted[0], absent)

    @cached_property
    def document_counts(self) -> np.ndarray:
        """Return in how many documents each term occurs, shape (n_terms,)."""
        return np.bincount(self.weights.indices, minlength=self.weights.shape[1])

    @cached_property
    def chunks(self) -> list[tuple[int, object]]:
        """Return first position and weights of each run of CHUNK documents, by terms, the last first."""
        return list(self._runs(CHUNK))

    @cached_property
    def slabs(self) -> list[tuple[int, int, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
        """Return first position, size, and (starts, documents, weights) by terms of SLAB documents, the last first."""
        return [
            (start, part.shape[0], (part.indptr, part.indices.astype(np.uint16), part.data))
            for start, part in self._runs(SLAB)
        ]

    def _runs(self, size: int) -> Iterator[tuple[int, object]]:
        for start in reversed(range(0, self.weights.shape[0], size)):
            yield start, self.weights[start : start + size].tocsc()

    def queries(self, tokens: list[list[str]], in_order: bool = False) -> object:
        """Return how often each query has each known term: sparse (n_queries, n_terms), float32, terms in order.

        With *in_order* a term stands as often, and where, the query has it, each time with 1.
        """
        from scipy.sparse import csr_array

        known = [[self.vocabulary[word] for word in row if word in self.vocabulary] for row in tokens]
        counts = [[(term, 1) for term in row] if in_order else sorted(Counter(row).items()) for row in known]
        terms = np.array([term for row in counts for term, _ in row], dtype=np.int32)
        data = np.array([count for row in counts for _, count in row], dtype=np.float32)
        starts = np.concatenate([[0], np.cumsum([len(row) for row in counts])]).astype(np.int32)
        return csr_array((data, terms, starts), shape=(len(tokens), len(self.vocabulary)))

    def search(
        self, tokens: list[list[str]], depth: int, candidates: Candidates | None = None, published: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (rows, positions, scores) of each query's *depth* best documents, best first.

        Only documents that score above what no shared term gives are returned, and none that *candidates*
        exclude. A score is the sum of its terms' contributions in the order of the vocabulary, whatever the
        other queries and the blocks. With *published* the order is that of the query's tokens, a document that
        is excluded scores 0 instead, and documents of score 0 fill the ranking.
        """
        counts = self.queries(tokens, published)
        is_large = self.document_counts[counts.indices].sum() > COMPILE_FROM
        if is_large or published:
            size, width, score = ROWS, SLAB, partial(self._looped, _compiled() if is_large else _add)
        else:
            size, width, score = LANES, CHUNK, self._products
        self.slabs if width == SLAB else self.chunks  # noqa: B018  made here once, not in each thread
        rows, width = split_range(len(tokens), size), min(width, self.weights.shape[0])
        depth = max(1, min(depth, self.weights.shape[0]))

        with progress(len(tokens), "BM25", "queries") as bar:

            def task(block: slice) -> list[TopK]:
                asked = np.arange(block.start, block.stop)
                best = self._best(score, width, counts[block], asked, depth, candidates, published)
                bar.update(len(asked))
                return [best.trim()]

            return gather_blocks(rows, run_in_threads(task, rows, n_cores()))

    def _best(
        self,
        score: Callable[[object], Scores],
        width: int,
        counts: object,
        asked: np.ndarray,
        depth: int,
        candidates: Candidates | None,
        published: bool,
    ) -> TopK:
        constant = (counts @ self.absent).astype(np.float32)
        best = TopK(len(asked), depth, width, -np.inf if published else constant)
        for start, scores in score(counts):
            if constant.any():
                scores = scores + constant[:, None]
            docs, allowed = slice(start, start + scores.shape[1]), None
            if candidates is not None and published and best.floor.min() < 0:
                scores = np.where(candidates.allowed(asked, docs), scores, np.float32(0))
            elif candidates is not None:
                # A floor of 0 or more keeps out what scores 0, excluded or not.
                allowed = partial(candidates.among, asked, docs)
            best.add(scores, start, allowed)
        return best

    def _products(self, counts: object) -> Scores:
        """Yield first position and scores (n_queries, n_docs) of each chunk: all queries at once, term after term.

        Multiplying by the zeros of queries without a term costs less than jumping between postings: the
        product runs through memory in order and is vectorised over the queries.
        """
        used = np.unique(counts.indices)
        columns = np.ascontiguousarray(counts[:, used].toarray().T)
        for start, chunk in self.chunks:
            yield start, (chunk[:, used].tocsr() @ columns).T

    def _looped(self, add: Callable, counts: object) -> Scores:
        """Yield first position and scores (n_queries, n_docs) of each slab: query after query, term after term."""
        n_queries = counts.shape[0]
        out = np.empty(n_queries * SLAB, dtype=np.float32)
        for start, size, arrays in self.slabs:
            scores = out[: n_queries * size].reshape(n_queries, size)
            scores[:] = 0
            add(counts.indptr, counts.indices, counts.data, *arrays, scores)
            yield start, scores


def _add(
    rows: np.ndarray,
    terms: np.ndarray,
    times: np.ndarray,
    starts: np.ndarray,
    docs: np.ndarray,
    weights: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Add to *scores* what each row's terms contribute, in order; a term has a document at most once."""
    for row in range(len(rows) - 1):
        own = scores[row]
        for place in range(rows[row], rows[row + 1]):
            found = slice(starts[terms[place]], starts[terms[place] + 1])
            own[docs[found]] += times[place] * weights[found]


@lru_cache
def _compiled() -> Callable:
    """Return `_add` as machine code that runs in threads beside each other."""
    from numba import njit

    @njit(nogil=True, cache=True)
    def add(rows, terms, times, starts, docs, weights, scores):  # noqa: ANN001, ANN202  compiled for each type
        for row in range(len(rows) - 1):
            own = scores[row]
            for place in range(rows[row], rows[row + 1]):
                term, count = terms[place], times[place]
                for at in range(starts[term], starts[term + 1]):
                    own[docs[at]] += count * weights[at]

    return add


ENGINES = ("bm25s", "rank-bm25")
COMPATS = ("", "mirb")
DEFAULTS = {"method": "lucene", "k1": 1.2, "b": 0.75, "tokenizer": "math"}
MIRB_DEFAULTS = {"method": "lucene", "k1": 1.5, "b": 0.75, "tokenizer": "mirb"}
# Tokenizers that tell formulas from prose, and the one in their place for the languages of proof assistants.
FORMULA_TOKENIZERS, WORD_TOKENIZER = ("latex-ngrams", "prose", "pya0", "pya0-wide"), "math"
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

    >>> from mirblab.sources.catalogue import load
    >>> run = search(load("mini-qa"), depth=3)
    >>> int(run["rank"].max()), run.attrs["tokenizer"]
    (3, 'math')
    """
    given = _check_settings(method, k1, b, delta, tokenizer, engine, compat)
    settings = _adapt_to_language(collection, given)
    if depth < 1:
        raise MirblabError(f"depth must be at least 1, found {depth}")
    tokenize = tokenizer_named(settings["tokenizer"])
    # The published document text, a newline, title, blank and text, has the same tokens as ours.
    asked, candidates = collection.query_texts, collection.candidates
    if engine == "rank-bm25":
        allowed = candidates.allowed if candidates.rules else None
        found = _okapi(tokenize(collection.texts), tokenize(asked), depth, settings["k1"], settings["b"], allowed)
    else:
        found = IndexedCollection(collection, settings, _index(collection, settings)).search(asked, depth, candidates)
    notes = settings | {"engine": engine} | ({"notes": MIRB_NOTE} if compat else {})
    if given["tokenizer"] == "latex-ngrams":
        notes |= _count_without_formula(collection)
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

    >>> from mirblab.sources.catalogue import load
    >>> collection = load("mini-qa")
    >>> explain(collection, collection.query_texts[0], collection.doc_ids[0]).columns.tolist()
    ['term', 'idf', 'frequency', 'contribution']
    """
    options = {"method": method, "k1": k1, "b": b, "delta": delta, "tokenizer": tokenizer}
    return IndexedCollection.of(collection, **options).explain(query_text, doc_id)


@dataclass(frozen=True)
class IndexedCollection:
    """A collection whose documents are indexed once, for many searches and explanations."""

    collection: Collection
    settings: dict[str, Any]
    index: TermIndex

    @classmethod
    def of(cls, collection: Collection, **options: Any) -> IndexedCollection:
        """Return the collection with its index; *options* are those of `search` but for the engine."""
        given = dict.fromkeys(("method", "k1", "b", "tokenizer")) | {"delta": 0.5, "compat": ""} | options
        settings = _adapt_to_language(collection, _check_settings(engine="bm25s", **given))
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


def published_defect_table(collection: Collection, depth: int = 10) -> pd.DataFrame:
    """Return what the published defect puts into each query's first *depth*: one row per query, in their order.

    Columns: query_id; found, how many documents `compat="mirb"` returns; not_candidates, how many of them the
    collection's candidates exclude; score_zero, how many share no term with the query or are excluded.

    >>> from mirblab.sources.catalogue import load
    >>> table = published_defect_table(load("mini-wfb"))
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


def _check_settings(
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
    settings = (MIRB_DEFAULTS if compat else DEFAULTS) | {
        key: value for key, value in given.items() if value is not None
    }
    if engine == "rank-bm25":
        return settings | {"method": "okapi", "compat": compat}
    if settings["method"] not in IDF:
        raise unknown("BM25 method", settings["method"], IDF)
    if settings["k1"] < 0 or not 0 <= settings["b"] <= 1 or delta < 0:
        found = f"k1 = {settings['k1']}, b = {settings['b']}, delta = {delta}"
        raise MirblabError(f"BM25 needs k1 >= 0, 0 <= b <= 1 and delta >= 0, found {found}")
    return settings | {"delta": delta, "compat": compat}


def _adapt_to_language(collection: Collection, settings: dict[str, Any]) -> dict[str, Any]:
    """Return *settings* with words in place of formulas where the texts are in the language of a proof assistant."""
    if settings["tokenizer"] in FORMULA_TOKENIZERS and collection_language(collection):
        return settings | {"tokenizer": WORD_TOKENIZER}
    return settings


def _count_without_formula(collection: Collection) -> dict[str, Any]:
    """Return what the attrs of a run of n-grams say of texts without a formula."""
    sides = {"query": collection.query_texts, "document": collection.texts}
    languages = {role: FormulaReader.of(collection, role).language for role in sides}
    have = [[not languages[role] and len(split_text(text)) > 1 for text in texts] for role, texts in sides.items()]
    return count_without_formula(*have, collection_language(collection))


def _index(collection: Collection, settings: dict[str, Any]) -> TermIndex:
    vocabulary = Vocabulary()
    documents = map(token_reader(settings["tokenizer"], vocabulary.__getitem__), collection.texts)
    parts = (settings["method"], settings["k1"], settings["b"], settings["delta"])
    return TermIndex.weighted(vocabulary, count_terms(documents, vocabulary), *parts)


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
