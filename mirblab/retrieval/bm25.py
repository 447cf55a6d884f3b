"""bm25: the index, the weights and the search of BM25."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from math import inf, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mirblab.core import atomic_files, paths, stored_files
from mirblab.core.errors import MirblabError, check_known, check_positive, unknown
from mirblab.core.mapped_files import OpenFilesError
from mirblab.core.processes import n_cores, run_in_threads, split_range
from mirblab.core.terminal import progress
from mirblab.data import runs
from mirblab.data.candidates import Candidates
from mirblab.data.collection import Collection, check_fits
from mirblab.data.parts import parts_of
from mirblab.data.ranking import TopK, gather_blocks, top_k
from mirblab.formula.in_text import FormulaReader, collection_language, count_without_formula, split_text
from mirblab.retrieval.postings import PART_DOCS, Postings, PostingsWriter, find_common, open_postings, query_matrix
from mirblab.retrieval.tokenizers import token_reader
from mirblab.retrieval.tokenizers import tokenizer as tokenizer_named

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

# Raised by one whenever the runs of this kind change; otherwise tests/retrieval/test_golden_runs.py fails.
RUNS_VERSION = 5

__all__ = [
    "DEFAULTS", "IDF", "IndexedCollection", "StoredCollection", "StoredIndex", "TermIndex", "build_index", "explain",
    "published_defect_table", "search",
]  # fmt: skip

BLOCK = 1 << 14  # documents counted or weighed at once
TEXTS = 1 << 10  # texts that are in memory at once, which may be long
LANES, CHUNK = 64, 1 << 12  # queries and documents in one sparse product
ROWS, SLAB = 16, 1 << 15  # queries and documents in one loop over postings; a slab has at most 2^16
COMPILE_FROM = 500_000_000  # postings from which on compiling pays
DEEPEST_SHARE = 1 / 64  # of all documents; a deeper search scores too many of them twice
ENGINES = ("bm25s", "rank-bm25")
COMPATS = ("", "mirb")
QUERY_WEIGHTINGS = ("count", "bm25")
DEFAULTS = {"method": "lucene", "k1": 1.2, "b": 0.75, "tokenizer": "math"}
MIRB_DEFAULTS = {"method": "lucene", "k1": 1.5, "b": 0.75, "tokenizer": "mirb"}
_WEIGHING = ("method", "k1", "b", "delta")
MIRB_NOTE = (
    "compat mirb: a document that is not a candidate scores 0 instead of being left out, so that it ties with "
    "documents that share no term and may fill the ranking"
)
# Tokenizers that separate formulas from prose, and the one that replaces them for the languages of proof assistants.
FORMULA_TOKENIZERS, WORD_TOKENIZER = ("latex-ngrams", "prose", "pya0", "pya0-wide"), "math"

# Kamphuis et al., "Which BM25 Do You Mean?", ECIR 2020: idf of a term in df of n documents.
IDF: dict[str, Callable[[float, float], float]] = {
    "lucene": lambda df, n: log(1 + (n - df + 0.5) / (df + 0.5)),
    "robertson": lambda df, n: log(max((n - df + 0.5) / (df + 0.5), 1)),
    "atire": lambda df, n: log(n / df),
    "bm25l": lambda df, n: log((n + 1) / (df + 0.5)),
    "bm25+": lambda df, n: log((n + 1) / df),
}


class Vocabulary(dict[str, int]):
    """The number of each term, in the order in which the terms are first looked up."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


def count_terms(documents: Iterable[Iterable[int]], vocabulary: dict[str, int]) -> tuple[csr_array, np.ndarray]:
    """Return term frequencies, sparse float32 (n_docs, n_terms), and numbers of tokens; *vocabulary* may still grow."""
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


@dataclass(frozen=True)
class Statistics:
    """What BM25 knows of all documents: how many there are, their tokens, and in how many each term occurs."""

    n_docs: int
    n_tokens: int
    document_counts: np.ndarray

    @property
    def mean_length(self) -> float:
        """Return the mean length of the documents in tokens, 0 without documents."""
        return self.n_tokens / self.n_docs if self.n_docs else 0.0


@dataclass(frozen=True)
class TermWeights:
    """How BM25 weighs the terms of all documents: `idf` and `absent`, float32 (n_terms,), and the formula.

    `absent` is what a term adds to documents without it.
    """

    idf: np.ndarray
    absent: np.ndarray
    gain: Callable[[np.ndarray | int, Any], Any]

    @classmethod
    def of(cls, statistics: Statistics, method: str, k1: float, b: float, delta: float) -> TermWeights:
        """Return the weights that follow from the *statistics* of all documents."""
        exact = np.array([IDF[method](df, statistics.n_docs) for df in statistics.document_counts.tolist()])
        mean: Any = np.float64(statistics.mean_length)
        gain = partial(_gain, method, mean=mean, k1=k1, b=b, delta=delta)
        absent = np.zeros(len(exact), dtype=np.float32)
        if method in ("bm25l", "bm25+"):
            with np.errstate(invalid="ignore"):  # k1 = 0 makes it 0 / 0, which bm25s passes on
                without = gain(0, mean)
            absent[:] = exact * (delta if np.isnan(without) else without)
        return cls(exact.astype(np.float32), absent, gain)

    def weigh(self, frequencies: csr_array, lengths: np.ndarray) -> None:
        """Turn the *frequencies* of some of the documents, (n_docs, n_terms), in place, into weights of BM25."""
        for start in range(0, frequencies.shape[0], BLOCK):
            starts = frequencies.indptr[start : start + BLOCK + 1]
            block = slice(starts[0], starts[-1])
            terms, doc_lengths = frequencies.indices[block], np.repeat(lengths[start : start + BLOCK], np.diff(starts))
            gains = self.idf[terms] * self.gain(frequencies.data[block], doc_lengths)
            frequencies.data[block] = gains - self.absent[terms]


def _gain(
    method: str, frequency: np.ndarray | int, length: np.ndarray, mean: float, k1: float, b: float, delta: float
) -> np.ndarray:
    """Return BM25's weight without the idf; the order of operations, and so of roundings, is that of bm25s."""
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
    """Yield for each BLOCK documents the numbers of all terms, flat, and the numbers of tokens."""
    while True:
        ids, ends = array("i"), array("q")
        for tokens in islice(documents, BLOCK):
            ids.extend(tokens)
            ends.append(len(ids))
        if not ends:
            return
        yield np.array(ids, dtype=np.int32), np.diff(np.array(ends, dtype=np.int64), prepend=0)


Scores = Iterator[tuple[int, np.ndarray]]


@dataclass(frozen=True)
class TermIndex:
    """What each term contributes to the score of each document.

    `weights` is sparse (n_docs, n_terms), float32, terms in order of first appearance; `absent`, (n_terms,), is what a
    term contributes to a document without it, other than 0 for bm25l and bm25+ only; `mean_length` is that of the
    documents, in tokens.
    """

    vocabulary: dict[str, int]
    weights: csr_array
    absent: np.ndarray
    mean_length: float = 0.0

    @classmethod
    def build(cls, tokens: Iterable[Iterable[str]], method: str, k1: float, b: float, delta: float) -> TermIndex:
        """Return the index of the documents' *tokens*."""
        vocabulary = Vocabulary()
        numbers = (map(vocabulary.__getitem__, document) for document in tokens)
        return cls.weighted(vocabulary, count_terms(numbers, vocabulary), method, k1, b, delta)

    @classmethod
    def weighted(
        cls,
        vocabulary: dict[str, int],
        counted: tuple[csr_array, np.ndarray],
        method: str,
        k1: float,
        b: float,
        delta: float,
    ) -> TermIndex:
        """Return the index of what `count_terms` returned; its frequencies become the weights, in place."""
        frequencies, lengths = counted
        document_counts = np.bincount(frequencies.indices, minlength=frequencies.shape[1])
        statistics = Statistics(len(lengths), int(lengths.sum()), document_counts)
        weights = TermWeights.of(statistics, method, k1, b, delta)
        weights.weigh(frequencies, lengths)
        return cls(dict(vocabulary), frequencies, weights.absent, statistics.mean_length)

    @cached_property
    def document_counts(self) -> np.ndarray:
        """Return in how many documents each term occurs, shape (n_terms,)."""
        return np.bincount(self.weights.indices, minlength=self.weights.shape[1])

    @cached_property
    def postings(self) -> Postings:
        """Return the weights as the search of many queries in many documents needs them."""
        return Postings.of(self.weights, self.document_counts)

    @cached_property
    def chunks(self) -> list[tuple[int, csc_array]]:
        """Return first position and weights of each CHUNK documents, by terms, the last documents first."""
        return list(self._slices(CHUNK))

    @cached_property
    def slabs(self) -> list[tuple[int, int, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
        """Return first position, size, and (starts, documents, weights) by terms of SLAB documents, the last first."""
        return [
            (start, part.shape[0], (part.indptr, part.indices.astype(np.uint16), part.data))
            for start, part in self._slices(SLAB)
        ]

    def _slices(self, size: int) -> Iterator[tuple[int, csc_array]]:
        for start in reversed(range(0, self.weights.shape[0], size)):
            yield start, self.weights[start : start + size].tocsc()

    def queries(self, tokens: list[list[str]], in_order: bool = False) -> csr_array:
        """Return each query's counts of known terms, sparse (n_queries, n_terms); *in_order*: one entry per token."""
        return count_query_terms(tokens, self.vocabulary, in_order)

    def weighted_queries(self, tokens: list[list[str]], method: str, k1: float, b: float, delta: float) -> csr_array:
        """Return for each query the weights that its known terms would have if it were a document of the index."""
        counts, n_docs = self.queries(tokens), self.weights.shape[0]
        lengths = np.repeat([len(row) for row in tokens], np.diff(counts.indptr))
        idf = [IDF[method](df, n_docs) for df in self.document_counts[counts.indices].tolist()]
        gains = _gain(method, counts.data, lengths, self.mean_length, k1, b, delta)
        counts.data = (np.array(idf) * gains).astype(np.float32)
        return counts

    def search(
        self, tokens: list[list[str]], depth: int, candidates: Candidates | None = None, published: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (rows, positions, scores) of each query's *depth* best documents, best first.

        A term counts as often as the query has it. With *published* excluded documents score 0, and documents of score
        0 fill the ranking.
        """
        return self.search_weights(self.queries(tokens, published), depth, candidates, published)

    def search_weights(
        self,
        counts: csr_array,
        depth: int,
        candidates: Candidates | None = None,
        published: bool = False,
        label: str = "BM25",
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return `search` for queries given as counts or weights of terms, sparse float32 (n_queries, n_terms).

        Documents that score no more than one without a shared term, and those *candidates* excludes, are left out. A
        score is the sum of the terms' contributions in the order of the vocabulary, whatever the other queries; with
        *published* the order is that of the query's tokens. *label* is for progress.
        """
        n_docs, depth = self.weights.shape[0], max(1, min(depth, self.weights.shape[0]))
        constant = (counts @ self.absent).astype(np.float32)
        is_large = self.document_counts[counts.indices].sum() > COMPILE_FROM and depth <= DEEPEST_SHARE * n_docs
        if not is_large:
            return self._search_small(counts, constant, depth, candidates, published, label)
        hits = self.postings.search(counts, constant, depth, candidates, label)
        n_found = np.bincount(hits[0], minlength=counts.shape[0])
        unfilled = np.flatnonzero(n_found < depth)
        if not published or not len(unfilled):
            return hits
        rules = None if candidates is None else candidates.select(unfilled)
        rest = self._search_small(counts[unfilled], constant[unfilled], depth, rules, published, label)
        is_full = n_found[hits[0]] == depth
        columns = [np.concatenate(pair) for pair in zip([column[is_full] for column in hits], rest, strict=True)]
        columns[0][is_full.sum() :] = unfilled[rest[0]]
        order = np.argsort(columns[0], kind="stable")
        return columns[0][order], columns[1][order], columns[2][order]

    def _search_small(
        self,
        counts: csr_array,
        constant: np.ndarray,
        depth: int,
        candidates: Candidates | None,
        published: bool,
        label: str,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n_docs, score = self.weights.shape[0], self._looped if published else self._products
        size, width = (ROWS, SLAB) if published else (LANES, CHUNK)
        self.slabs if published else self.chunks  # noqa: B018  made here once, not in each thread
        blocks = split_range(counts.shape[0], size)

        with progress(counts.shape[0], label, "queries") as bar:

            def search_block(block: slice) -> list[TopK]:
                queries, added = np.arange(block.start, block.stop), constant[block]
                best = TopK(len(queries), depth, min(width, n_docs), -np.inf if published else added)
                for start, scores in score(counts[block]):
                    if added.any():
                        scores = scores + added[:, None]
                    _take(best, start, scores, queries, candidates, published)
                bar.update(len(queries))
                return [best.trim()]

            return gather_blocks(blocks, run_in_threads(search_block, blocks, n_cores()))

    def _products(self, counts: csr_array) -> Scores:
        """Yield first position and scores of each chunk, by one product: faster than jumping between postings."""
        used = np.unique(counts.indices)
        columns = np.ascontiguousarray(counts[:, used].toarray().T)
        for start, chunk in self.chunks:
            yield start, (chunk[:, used].tocsr() @ columns).T

    def _looped(self, counts: csr_array) -> Scores:
        n_queries = counts.shape[0]
        out = np.empty(n_queries * SLAB, dtype=np.float32)
        for start, size, arrays in self.slabs:
            scores = out[: n_queries * size].reshape(n_queries, size)
            scores[:] = 0
            _add(counts.indptr, counts.indices, counts.data, *arrays, scores)
            yield start, scores


def _take(
    best: TopK, start: int, scores: np.ndarray, queries: np.ndarray, candidates: Candidates | None, published: bool
) -> None:
    docs = slice(start, start + scores.shape[1])
    if candidates is None:
        best.add(scores, start)
    elif published and best.floor.min() < 0:
        best.add(np.where(candidates.allowed(queries, docs), scores, np.float32(0)), start)  # type: ignore[arg-type]
    else:  # a floor of 0 or more keeps out what scores 0, excluded or not
        best.add(scores, start, partial(candidates.among, queries, docs))


def count_query_terms(tokens: list[list[str]], vocabulary: dict[str, int], in_order: bool = False) -> csr_array:
    """Return each query's counts of known terms, sparse (n_queries, n_terms); *in_order*: one entry per token."""
    known = [[vocabulary[word] for word in row if word in vocabulary] for row in tokens]
    counts = [[(term, 1) for term in row] if in_order else sorted(Counter(row).items()) for row in known]
    return query_matrix(counts, len(vocabulary))


def _add(
    rows: np.ndarray,
    terms: np.ndarray,
    times: np.ndarray,
    starts: np.ndarray,
    docs: np.ndarray,
    weights: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Add to *scores* what each row's terms contribute, in order; the documents of a term are all different."""
    for row in range(len(rows) - 1):
        for place in range(rows[row], rows[row + 1]):
            postings = slice(starts[terms[place]], starts[terms[place] + 1])
            scores[row][docs[postings]] += times[place] * weights[postings]


@dataclass(frozen=True)
class StoredIndex:
    """An index of BM25 in a folder, in parts that are read from disk as a search needs them, see `build_index`."""

    vocabulary: dict[str, int]
    postings: Postings
    absent: np.ndarray

    @classmethod
    def open(cls, folder: str | Path) -> StoredIndex:
        """Return the index in *folder*; MirblabError when there is none, or when a file is missing or cut short."""
        made, terms, absent = open_postings(folder)
        return cls({term: number for number, term in enumerate(terms)}, made, absent)

    def search(
        self, tokens: list[list[str]], depth: int, candidates: Candidates | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (rows, positions, scores) of the *depth* best documents of each query: those of `TermIndex.search`."""
        check_positive(depth=depth)
        counts = count_query_terms(tokens, self.vocabulary)
        constant = (counts @ self.absent).astype(np.float32)
        return self.postings.search(counts, constant, min(depth, max(1, self.postings.n_docs)), candidates, "BM25")


def build_index(
    tokens: Iterable[Iterable[str]] | Callable[[int], Iterable[Iterable[str]]],
    folder: str | Path,
    *,
    method: str = "lucene",
    k1: float = 1.2,
    b: float = 0.75,
    delta: float = 0.5,
) -> StoredIndex:
    """Return the index of the documents' *tokens*, written to the new *folder*, whole or not at all.

    The documents are read once, 32,768 at a time, so that memory grows with the vocabulary and not with their number:
    term frequencies wait on disk, part by part, until the document frequencies and lengths of all parts are summed.
    A search returns what that of one index in memory returns, bit for bit. *tokens* may be a function that returns
    those of the documents from a position on: what is counted then stays on disk when the build is stopped, and the
    next call, which must be for the same documents, goes on from there. MirblabError for settings that `search` refuses
    and for a folder that exists, StorageError when the disk is full.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as home:
    ...     index = build_index([["ring", "ideal"], ["knot"], ["ring", "ring"]], f"{home}/index")
    ...     index.search([["ring"]], depth=5)[1].tolist()
    [2, 0]
    """
    settings = _check_settings(method, k1, b, delta)
    vocabulary = Vocabulary()
    n_docs, n_tokens, document_counts = 0, 0, np.zeros(0, dtype=np.int64)
    goes_on = callable(tokens)
    with PostingsWriter(folder, goes_on=goes_on) as writer, progress(None, "indexing", "documents") as bar:
        for frequencies, lengths in _count_parts(tokens, vocabulary, writer):
            document_counts = np.pad(document_counts, (0, len(vocabulary) - len(document_counts)))
            document_counts += np.bincount(frequencies.indices, minlength=len(vocabulary))
            n_docs, n_tokens = n_docs + len(lengths), n_tokens + int(lengths.sum())
            bar.update(len(lengths))
        statistics = Statistics(n_docs, n_tokens, document_counts)
        weights = TermWeights.of(statistics, *(settings[name] for name in _WEIGHING))
        common = find_common(document_counts, n_docs)
        for frequencies, lengths in writer.counts(len(vocabulary)):
            weights.weigh(frequencies, lengths)
            writer.add(frequencies, common)
        writer.finish(list(vocabulary), weights.absent)
    return StoredIndex.open(folder)


def _count_parts(
    tokens: Iterable[Iterable[str]] | Callable[[int], Iterable[Iterable[str]]],
    vocabulary: Vocabulary,
    writer: PostingsWriter,
) -> Iterator[tuple[csr_array, np.ndarray]]:
    """Yield term frequencies and lengths of successive documents, those that the *writer* has already from there."""
    n_docs = 0
    for frequencies, lengths, new_terms in writer.earlier_counts():
        vocabulary.update(zip(new_terms, range(len(vocabulary), len(vocabulary) + len(new_terms)), strict=True))
        n_docs += len(lengths)
        yield frequencies, lengths
    documents = iter(tokens(n_docs) if callable(tokens) else tokens)
    numbers = (map(vocabulary.__getitem__, document) for document in documents)
    n_terms = len(vocabulary)
    while len((counted := count_terms(islice(numbers, PART_DOCS), vocabulary))[1]):
        writer.keep_counts(*counted, list(islice(vocabulary, n_terms, None)))
        n_terms = len(vocabulary)
        yield counted


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
    query_weighting: str = "count",
) -> pd.DataFrame:
    """Return the run of BM25: at most *depth* documents per query, best first.

    *method* is lucene, robertson, atire, bm25l or bm25+ (*delta* is for the last two). None means lucene, k1 = 1.2,
    b = 0.75, tokenizer math; with `compat="mirb"` lucene, 1.5, 0.75, mirb, as in the published benchmark. Documents
    that share no term with the query, that the candidates exclude, or that score 0 (possible with the idf of robertson
    and atire) are not returned.

    Terms count as often as the query has them, which is Okapi's BM25 with an infinite k3. With `query_weighting="bm25"`
    a term of the query has the weight that it would have if the query were a document of the collection, idf, k1, b and
    length included, so that the idf stands on both sides and repeated terms saturate. BRIGHT's published BM25 weighs
    queries in this way (Ge et al., "Lighting the Way for BRIGHT", arXiv 2509.02558); the formula is that of Anserini's
    QuerySideBm25QueryGenerator (commit 303a8b0), and the collection's mean length is the queries' yardstick, too.

    A tokenizer that reads formulas reads no language of a proof assistant: where documents or queries are in one, it is
    replaced by math. For latex-ngrams the attrs say how many texts have no formula.

    `engine="rank-bm25"` is the reference `BM25Okapi`, slow, for lessons: its idf is at least a quarter of the mean idf,
    which may be 0 or negative in a small corpus, and such scores are returned too.

    `compat="mirb"` repeats the published defect: candidates multiply scores by 0 instead of removing documents, and
    documents of score 0 fill the ranking to *depth*. Scores are bit for bit those of bm25s as the published code calls
    it; only among equal scores at the last rank bm25s chooses arbitrarily, and here the larger doc_id comes first.

    >>> from mirblab.sources.catalogue import load
    >>> run = search(load("mini-qa"), depth=3)
    >>> int(run["rank"].max()), run.attrs["tokenizer"]
    (3, 'math')
    """
    given = _check_settings(method, k1, b, delta, tokenizer, engine, compat, query_weighting)
    settings = _adapt_to_language(collection, given)
    check_positive(depth=depth)
    # The published document text, a newline, title, blank and text, has the same tokens as ours.
    is_plain = engine != "rank-bm25" and not compat and query_weighting == "count"
    corpus = parts_of(collection.corpus) if is_plain else None
    stored = None if corpus is None else _stored_index(collection.texts, corpus.content, settings)
    if engine == "rank-bm25":
        hits = _okapi(collection, settings, depth)
    elif stored is not None:
        tokens = tokenizer_named(settings["tokenizer"])(collection.query_texts)
        hits = stored.search(tokens, depth, collection.candidates if collection.candidates.rules else None)
    else:
        indexed = IndexedCollection(collection, settings, _index(collection, settings))
        hits = indexed.search(collection.query_texts, depth, collection.candidates)
    notes = settings | {"engine": engine} | ({"notes": MIRB_NOTE} if compat else {})
    if given["tokenizer"] == "latex-ngrams":
        notes |= _count_without_formula(collection)
    return runs.from_positions(*hits, collection.query_ids, collection.doc_ids, "bm25", collection.name, **notes)


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
    query_weighting: str = "count",
) -> pd.DataFrame:
    """Return what each term of a query adds to one document's score: term, idf, frequency, contribution.

    *frequency* counts the term in the document; the contributions, largest first, sum to the score of `search`. Terms
    that no document has are left out. Each call indexes the whole corpus.

    >>> from mirblab.sources.catalogue import load
    >>> c = load("mini-qa")
    >>> explain(c, c.query_texts[0], c.doc_ids[0]).columns.tolist()
    ['term', 'idf', 'frequency', 'contribution']
    """
    options = {"method": method, "k1": k1, "b": b, "delta": delta, "tokenizer": tokenizer}
    indexed = IndexedCollection.of(collection, **options, query_weighting=query_weighting)
    return indexed.explain(query_text, doc_id)


@dataclass(frozen=True)
class IndexedCollection:
    """A collection whose documents are indexed once, for many searches and explanations."""

    collection: Collection
    settings: dict[str, Any]
    index: TermIndex

    @classmethod
    def of(cls, collection: Collection, **options: Any) -> IndexedCollection:
        """Return the collection with its index; *options* are those of `search` but for the engine."""
        settings = _adapt_to_language(collection, _check_settings(**options))
        return cls(collection, settings, _index(collection, settings))

    def search(
        self, texts: Sequence[str], depth: int, candidates: Candidates | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (rows, positions, scores) of the *depth* best documents of each of *texts*, best first."""
        weights = self.query_weights(self.tokens(texts), in_order=self.settings["compat"] == "mirb")
        return self.search_weights(weights, depth, candidates)

    def search_weights(
        self, weights: csr_array, depth: int, candidates: Candidates | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return `search` for queries given as weights of the index's terms, sparse (n_queries, n_terms)."""
        rules = candidates if candidates is not None and candidates.rules else None
        return self.index.search_weights(weights, depth, rules, published=self.settings["compat"] == "mirb")

    @property
    def tokenizer(self) -> str:
        """Return the name of the tokenizer."""
        return str(self.settings["tokenizer"])

    def tokens(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the terms of each text, repeated ones included."""
        return tokenizer_named(self.settings["tokenizer"])(texts)

    def query_weights(self, tokens: list[list[str]], in_order: bool = False) -> csr_array:
        """Return the weights of the terms of queries by their tokens, sparse; *in_order*: one entry per token."""
        if self.settings.get("query_weighting") == "bm25":
            return self.index.weighted_queries(tokens, *(self.settings[name] for name in _WEIGHING))
        return self.index.queries(tokens, in_order)

    def explain(self, query_text: str, doc_id: str) -> pd.DataFrame:
        """Return the table of the function `explain`."""
        index, tokens = self.index, self.tokens([self.collection.document(doc_id)])[0]
        names, position = self._names, int(self.collection.doc_ids.searchsorted(doc_id))
        n_docs = len(self.collection.corpus)
        counts = self.query_weights(self.tokens([query_text]))
        weights = index.weights[[position]].toarray().ravel() + index.absent
        idf, df = IDF[self.settings["method"]], index.document_counts
        rows = [
            (names[term], idf(df[term], n_docs), tokens.count(names[term]), weights[term] * count)
            for term, count in zip(counts.indices, counts.data, strict=True)
        ]
        rows.sort(key=lambda row: (-row[-1], row[0]))
        return pd.DataFrame(rows, columns=["term", "idf", "frequency", "contribution"])

    def gains(self, query_text: str, position: int) -> dict[str, float]:
        """Return what each term of the query adds to the score of the document at *position*."""
        table = self.explain(query_text, self.collection.doc_ids[position])
        return dict(zip(table.term, table.contribution, strict=True))

    @cached_property
    def _names(self) -> list[str]:
        return list(self.index.vocabulary)


@dataclass(frozen=True)
class StoredCollection:
    """A collection in parts with its index on disk; it answers as `IndexedCollection` does, and reads no text."""

    tokenizer: str
    index: StoredIndex

    @classmethod
    def of(cls, collection: Collection, **options: Any) -> StoredCollection | None:
        """Return the collection with its index, which is built where it is missing.

        None where the collection is not in parts, the options are not those of plain BM25, or the disk is full.
        """
        corpus = parts_of(collection.corpus)
        return None if corpus is None else cls.of_texts(collection, collection.texts, corpus.content, **options)

    @classmethod
    def of_texts(
        cls, collection: Collection, texts: Sequence[str], content: str, **options: Any
    ) -> StoredCollection | None:
        """Return *texts*, in the language of a *collection*, with their index on disk; *content* is their digest.

        None where the options are not those of plain BM25, or the disk is full.
        """
        settings = _adapt_to_language(collection, _check_settings(**options))
        if settings["compat"] or "query_weighting" in settings:
            return None
        index = _stored_index(texts, content, settings)
        return None if index is None else cls(settings["tokenizer"], index)

    def search(
        self, texts: Sequence[str], depth: int, candidates: Candidates | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (rows, positions, scores) of the *depth* best documents of each of *texts*, best first."""
        rules = candidates if candidates is not None and candidates.rules else None
        return self.index.search(tokenizer_named(self.tokenizer)(texts), depth, rules)

    def scores(self, texts: Sequence[str], positions: np.ndarray) -> np.ndarray:
        """Return the score of one document, at its position, for each of *texts*: that of a search, float32."""
        counts = count_query_terms(tokenizer_named(self.tokenizer)(texts), self.index.vocabulary)
        exact = self.index.postings.score_exactly(counts, np.arange(len(texts)), positions)
        return exact + (counts @ self.index.absent).astype(np.float32)

    def gains(self, query_text: str, position: int) -> dict[str, float]:
        """Return what each term of the query adds to the score of the document at *position*."""
        index = self.index
        counts = Counter(term for term in tokenizer_named(self.tokenizer)([query_text])[0] if term in index.vocabulary)
        single = count_query_terms([[term] for term in counts], index.vocabulary)
        positions = np.full(len(counts), position)
        weights = index.postings.score_exactly(single, np.arange(len(counts)), positions) + single @ index.absent
        return {term: float(weight) * count for weight, (term, count) in zip(weights, counts.items(), strict=True)}


def published_defect_table(collection: Collection, depth: int = 10) -> pd.DataFrame:
    """Return what the published defect puts into each query's first *depth*: one row per query, in their order.

    Columns: query_id; found (documents that `compat="mirb"` returns); not_candidates (those that the candidates
    exclude); score_zero (those that share no term with the query or are excluded).

    >>> from mirblab.sources.catalogue import load
    >>> table = published_defect_table(load("mini-wfb"))
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
    method: str | None = None,
    k1: float | None = None,
    b: float | None = None,
    delta: float = 0.5,
    tokenizer: str | None = None,
    engine: str = "bm25s",
    compat: str = "",
    query_weighting: str = "count",
) -> dict[str, Any]:
    if engine not in ENGINES:
        raise unknown("BM25 engine", engine, ENGINES)
    if compat not in COMPATS:
        raise unknown("compat", compat, [name for name in COMPATS if name])
    check_known("query weighting of BM25", query_weighting, QUERY_WEIGHTINGS)
    if query_weighting != "count" and (engine == "rank-bm25" or compat):
        raise MirblabError(f"query_weighting '{query_weighting}' is for the engine bm25s without compat; leave it out")
    if engine == "rank-bm25" and (method or compat):
        found = f"method '{method or ''}' and compat '{compat}'"
        raise MirblabError(f"engine 'rank-bm25' has BM25Okapi only, found {found}; leave them out")
    given = {"method": method, "k1": k1, "b": b, "tokenizer": tokenizer}
    settings: dict[str, Any] = dict(MIRB_DEFAULTS if compat else DEFAULTS)
    settings |= {key: value for key, value in given.items() if value is not None}
    if not (0 <= settings["k1"] < inf and 0 <= settings["b"] <= 1 and 0 <= delta < inf):  # nor NaN
        found = f"k1 = {settings['k1']}, b = {settings['b']}, delta = {delta}"
        raise MirblabError(f"BM25 needs finite k1 >= 0, 0 <= b <= 1 and finite delta >= 0, found {found}")
    if engine == "rank-bm25":
        return settings | {"method": "okapi", "compat": compat}
    if settings["method"] not in IDF:
        raise unknown("BM25 method", settings["method"], IDF)
    weighted = {"query_weighting": query_weighting} if query_weighting != "count" else {}
    return settings | {"delta": delta, "compat": compat} | weighted


def _adapt_to_language(collection: Collection, settings: dict[str, Any]) -> dict[str, Any]:
    if settings["tokenizer"] in FORMULA_TOKENIZERS and collection_language(collection):
        return settings | {"tokenizer": WORD_TOKENIZER}
    return settings


def _count_without_formula(collection: Collection) -> dict[str, Any]:
    sides = {"query": collection.query_texts, "document": collection.texts}
    languages = {role: FormulaReader.of(collection, role).language for role in sides}
    have = {
        role: [not languages[role] and len(split_text(text)) > 1 for text in texts] for role, texts in sides.items()
    }
    return count_without_formula(have["query"], have["document"], collection_language(collection))


def _index(collection: Collection, settings: dict[str, Any]) -> TermIndex:
    check_fits(collection, "BM25 other than the plain search of the collection's queries")
    vocabulary = Vocabulary()
    documents = map(token_reader(settings["tokenizer"], vocabulary.__getitem__), collection.texts)
    parts = (settings[name] for name in _WEIGHING)
    return TermIndex.weighted(vocabulary, count_terms(documents, vocabulary), *parts)


def _stored_index(texts: Sequence[str], content: str, settings: dict[str, Any]) -> StoredIndex | None:
    """Return the index on disk of *texts* whose digest is *content*, built where it is missing; None on a full disk."""
    weighing = {name: settings[name] for name in _WEIGHING}
    facts = {"content": content, "tokenizer": settings["tokenizer"], "version": RUNS_VERSION, **weighing}
    digest = hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()
    folder = paths.cache() / "postings" / digest

    def build() -> None:
        def words_from(position: int) -> Iterator[Iterable[str]]:
            blocks = (texts[start : start + TEXTS] for start in range(position, len(texts), TEXTS))
            return map(token_reader(settings["tokenizer"]), chain.from_iterable(blocks))

        try:
            build_index(words_from, folder, **weighing)
        except MirblabError:
            if not folder.is_dir():  # another process has built it meanwhile
                raise

    if folder.is_dir():
        try:
            return StoredIndex.open(folder)
        except OpenFilesError:
            raise
        except MirblabError as error:
            stored_files.set_aside(folder, str(error), "it is built again")
    return StoredIndex.open(folder) if atomic_files.try_to_store("indexes of terms", build) else None


def _okapi(collection: Collection, settings: dict[str, Any], depth: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows, positions, scores) by rank-bm25, only of documents that share a term with the query."""
    from rank_bm25 import BM25Okapi

    check_fits(collection, "rank-bm25")
    tokenize, candidates = tokenizer_named(settings["tokenizer"]), collection.candidates
    documents = tokenize(collection.texts)
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))]
    if any(documents):
        words = [set(document) for document in documents]
        model = BM25Okapi(documents, k1=settings["k1"], b=settings["b"])
        for row, query in enumerate(tokenize(collection.query_texts)):
            shares = np.array([not document.isdisjoint(query) for document in words])
            shares &= candidates.permits(np.full(len(words), row), np.arange(len(words)))
            _, positions, scores = top_k(model.get_scores(query), depth, shares[None])
            parts.append((np.full(len(positions), row), positions, scores))
    rows, positions, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    return rows, positions, scores


def __dir__() -> list[str]:
    return __all__
