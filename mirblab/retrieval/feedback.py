"""feedback: queries changed by the documents that they return first (pseudo-relevance feedback)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mirblab.data.candidates import Candidates
from mirblab.data.parts import texts_at
from mirblab.retrieval import dense
from mirblab.retrieval.bm25 import IndexedCollection
from mirblab.retrieval.postings import query_matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from mirblab.encoders.encoding import VectorReader

# Raised by one whenever the runs of these kinds change; otherwise tests/retrieval/test_golden_runs.py fails.
RUNS_VERSION = 1

# What each kind may set, with the published defaults: Anserini's, and those of Li et al. for Rocchio.
RM3 = {"fb_docs": 10, "fb_terms": 10, "original_weight": 0.5, "filter_terms": True}
ROCCHIO = {"fb_docs": 5, "alpha": 0.4, "beta": 0.6, "gamma": 0.0}
COMMON_SHARE = 0.1  # a term of more than this share of the documents says nothing about those that were found
_PLAIN_TERM = re.compile("[a-z0-9]{2,20}")
_AT_ONCE = 1 << 14  # vectors of documents
_LAST = 100  # the rank from which documents count as not relevant, for gamma


def rm3(
    indexed: IndexedCollection,
    texts: Sequence[str],
    *,
    depth: int,
    candidates: Candidates | None = None,
    fb_docs: int = 10,
    fb_terms: int = 10,
    original_weight: float = 0.5,
    filter_terms: bool = True,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows, positions, scores) of the *depth* best documents of each text by BM25 with RM3, best first.

    The first *fb_docs* documents of BM25 give a `relevance_model`, which is mixed with the query's terms (`mix_models`)
    and searched as a query with weights. *candidates* restrict both searches. RM3 is of Abdul-Jaleel et al., "UMass at
    TREC 2004"; the formula and its defaults are those of Anserini's Rm3Reranker (commits bee494f and 0885285): no term
    of more than a tenth of the documents, and with *filter_terms* none but those of 2 to 20 letters a to z or digits,
    so no variable, no relation sign and hardly an n-gram; False keeps these. Of terms with equal weights Anserini keeps
    arbitrary ones, and here the alphabetically first stay.
    """
    tokens = indexed.tokens(texts)
    rows, positions, scores = indexed.search(texts, fb_docs, candidates)
    found = _feedback_terms(indexed, np.unique(positions), filter_terms)
    ends = np.searchsorted(rows, np.arange(len(texts) + 1))
    mixed = []
    for row, words in enumerate(tokens):
        own = slice(ends[row], ends[row + 1])
        model = relevance_model([found[position] for position in positions[own].tolist()], scores[own], fb_terms)
        mixed.append(mix_models(Counter(words), model, original_weight))
    return indexed.search_weights(_term_matrix(mixed, indexed.index.vocabulary), depth, candidates)


def relevance_model(
    documents: Sequence[Mapping[str, int]], scores: Sequence[float] | np.ndarray, n_terms: int
) -> dict[str, float]:
    """Return the probabilities of at most *n_terms* terms by the term counts of *documents* and their scores.

    Each document keeps its *n_terms* most frequent terms, whose shares of their sum are weighted by its score; of these
    weights, summed over the documents, the largest *n_terms* are kept and divided by their sum.

    >>> relevance_model([{"ring": 3, "flat": 1}, {"ring": 1, "field": 1}], [2.0, 1.0], 2)
    {'ring': 0.8, 'field': 0.2}
    """
    weights: dict[str, float] = {}
    for counts, score in zip(documents, scores, strict=True):
        kept = _largest(counts, n_terms)
        total = sum(kept.values())
        for term, count in kept.items():
            weights[term] = weights.get(term, 0.0) + count / total * float(score)
    return _shares(_largest(weights, n_terms))


def mix_models(query: Mapping[str, float], model: Mapping[str, float], original_weight: float) -> dict[str, float]:
    """Return *original_weight* times the shares of the query's term counts, plus the rest times the *model*'s.

    >>> mix_models({"flat": 2, "module": 2}, {"ring": 0.5, "flat": 0.5}, 0.5)
    {'flat': 0.5, 'module': 0.25, 'ring': 0.25}
    """
    mixed = {term: original_weight * share for term, share in _shares(query).items()}
    for term, share in model.items():
        mixed[term] = mixed.get(term, 0.0) + (1 - original_weight) * share
    return mixed


def rocchio(
    query_vectors: np.ndarray,
    doc_vectors: np.ndarray | VectorReader,
    *,
    depth: int,
    candidates: Candidates | None = None,
    fb_docs: int = 5,
    alpha: float = 0.4,
    beta: float = 0.6,
    gamma: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows, positions, scores) of the *depth* best documents by inner product with moved queries, best first.

    A query becomes *alpha* times its vector, plus *beta* times the mean of its first *fb_docs* documents, less *gamma*
    times the mean of as many of its last: those before rank 101 that are not among the first. *candidates* restrict
    both searches; a query without documents stays as it is. Rocchio, "Relevance feedback in information retrieval",
    1971; with dense vectors and these defaults Li et al., "Pseudo Relevance Feedback with Deep Language Models and
    Dense Retrievers", TOIS 2023.
    """
    queries = np.asarray(query_vectors, np.float32)
    first = max(fb_docs, _LAST) if gamma else fb_docs
    rows, positions, _ = dense.search(queries, doc_vectors, depth=first, candidates=candidates)
    sizes = np.bincount(rows, minlength=len(queries))
    ranks = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_first, is_last = ranks < fb_docs, (ranks >= fb_docs) & (ranks >= sizes[rows] - fb_docs)
    moved = np.float32(alpha) * queries
    for weight, chosen in ((beta, is_first), (-gamma, is_last)):
        moved += np.float32(weight) * _means(doc_vectors, rows[chosen], positions[chosen], len(queries))
    return dense.search(np.where(sizes[:, None] > 0, moved, queries), doc_vectors, depth=depth, candidates=candidates)


def _feedback_terms(indexed: IndexedCollection, positions: np.ndarray, filter_terms: bool) -> dict[int, Counter[str]]:
    """Return for each document the counts of those of its terms that a relevance model may take."""
    vocabulary, df = indexed.index.vocabulary, indexed.index.document_counts
    most = COMMON_SHARE * indexed.index.weights.shape[0]
    places = positions.tolist()
    found = {}
    for position, words in zip(places, indexed.tokens(texts_at(indexed.collection.texts, positions)), strict=True):
        counts = Counter(words)
        found[position] = Counter(
            {
                term: count
                for term, count in counts.items()
                if df[vocabulary[term]] <= most and (not filter_terms or _PLAIN_TERM.fullmatch(term))
            }
        )
    return found


def _largest(weights: Mapping[str, float], n: int) -> dict[str, float]:
    return dict(sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))[:n])


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {term: weight / total for term, weight in weights.items()}


def _term_matrix(queries: Sequence[Mapping[str, float]], vocabulary: Mapping[str, int]) -> csr_array:
    """Return the weights of the known terms of each query, sparse float32 (n_queries, n_terms), terms in order."""
    known = [sorted((vocabulary[term], value) for term, value in row.items() if term in vocabulary) for row in queries]
    return query_matrix(known, len(vocabulary))


def _means(vectors: np.ndarray | VectorReader, rows: np.ndarray, positions: np.ndarray, n_queries: int) -> np.ndarray:
    """Return the mean of each query's documents, float32 (n_queries, n_dims); zeros for a query without any."""
    sums = np.zeros((n_queries, vectors.shape[1]), np.float32)
    for start in range(0, len(rows), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        np.add.at(sums, rows[some], np.asarray(vectors[positions[some]], np.float32))
    return sums / np.maximum(np.bincount(rows, minlength=n_queries), 1)[:, None].astype(np.float32)
