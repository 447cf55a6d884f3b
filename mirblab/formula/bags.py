"""bags: posts by all of their formulas together: one bag of tokens per text, scored as BM25 scores words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mirblab.formula.index import Index
from mirblab.formula.segments import COUNT_BITS, COUNT_MASK, Segment
from mirblab.formula.texts import Owned
from mirblab.formula.tokens import KIND_MASK
from mirblab.formula.weighting import kind_weights, rarity

K1, LENGTH = 1.2, 0.75  # the usual ones of BM25; no others do better on held-out topics of both years of ARQMath
_AT_ONCE = 256  # queries


def scores(
    index: Index, documents: Owned, queries: Sequence[Sequence[str]], weights: Mapping[str, float] | None = None
) -> Iterator[np.ndarray]:
    """Yield for each query, a list of LaTeX formulas, the score of every text, float32 (n_texts,), 0 and up.

    The tokens of all formulas of a text are one bag. A token that the query has c times and the text n times earns
    c · w · n (k + 1) / (n + k (1 - b + b · length)), k = 1.2 and b = 0.75, where w is the weight of its kind times
    its rarity among the texts, and a text's length counts its tokens and is 1 on average: BM25 (Robertson and
    Zaragoza 2009). *index* has the formulas of *documents* in their order; *weights* are those of kinds of tokens.

    >>> from mirblab.formula.texts import owned
    >>> documents = owned(["With $x^2$ and $y$", "$z$"], bare=False)
    >>> index = Index.build(zip("abc", documents.formulas))
    >>> [[round(float(score), 2) for score in found] for found in scores(index, documents, [["a^2"]])]
    [[1.79, 0.0]]
    """
    kinds, segments = kind_weights(weights), index.state.segments
    owners = _owners(documents)
    lengths = owners @ np.concatenate([np.zeros(0), *(_sizes(part) for part in segments)])
    average = lengths[lengths > 0].mean() if lengths.any() else 1.0
    excess = K1 * (1 - LENGTH + LENGTH * lengths / average)
    for start in range(0, len(queries), _AT_ONCE):
        asked = [_bag(index, query) for query in queries[start : start + _AT_ONCE]]
        keys = np.unique(np.concatenate([own for own, _ in asked]))
        bags = (_occurrences(segments, keys) @ owners.T).tocsr()  # tokens by texts
        bags.data = bags.data * (K1 + 1) / (bags.data + excess[bags.indices])
        worth = kinds[(keys & KIND_MASK).astype(np.int64)] * rarity(len(lengths), np.diff(bags.indptr))
        for own, counts in asked:
            rows = np.searchsorted(keys, own)
            yield (bags[rows].T @ (counts * worth[rows])).astype(np.float32)


def _bag(index: Index, query: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the tokens of all formulas of a query, ascending, and how often they occur."""
    found = index.queries(list(query))
    keys = np.concatenate([np.empty(0, np.uint64), *(own.keys for own in found)])
    counts = np.concatenate([np.empty(0), *(own.counts for own in found)])
    keys, place = np.unique(keys, return_inverse=True)
    return keys, np.bincount(place, counts, len(keys))


def _owners(documents: Owned) -> Any:
    """Return how often each text has each formula, a sparse matrix (n_texts, n_formulas)."""
    from scipy.sparse import csr_matrix

    shape = len(documents.starts) - 1, len(documents.formulas)
    return csr_matrix((np.ones(len(documents.numbers)), documents.numbers, documents.starts), shape=shape)


def _sizes(part: Segment) -> np.ndarray:
    """Return how many tokens each formula of a segment has."""
    return np.bincount(part.postings >> COUNT_BITS, part.postings & COUNT_MASK, part.n)


def _occurrences(segments: Sequence[Segment], keys: np.ndarray) -> Any:
    """Return how often each formula has each of *keys*, a sparse matrix (n_keys, n_formulas)."""
    from scipy.sparse import csr_matrix, hstack

    parts = [csr_matrix((len(keys), 0))]
    for part in segments:
        begin, end = part.find(keys)
        sizes = end - begin
        starts = np.concatenate([[0], np.cumsum(sizes)])
        postings = part.postings[np.arange(starts[-1]) + np.repeat(begin - starts[:-1], sizes)]
        columns, counts = (postings >> COUNT_BITS).astype(np.int64), (postings & COUNT_MASK).astype(np.float64)
        parts.append(csr_matrix((counts, columns, starts), shape=(len(keys), part.n)))
    return hstack(parts, format="csr")
