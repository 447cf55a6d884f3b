"""late: token-level MaxSim, the scoring of ColBERT, with any encoder's token vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

NOTHING = -1.0  # the score of a pair in which one side has no tokens


class TokenRows(Protocol):
    """The token vectors of many texts, one text's after the other's, in memory or on disk."""

    lengths: np.ndarray

    @property
    def dimensions(self) -> int:
        """Return the length of a token vector."""

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return the token vectors of the texts from *start* to *stop*, float32 (n_tokens, d)."""


@dataclass(frozen=True, eq=False)
class Ragged:
    """Token vectors in memory: rows (n_tokens, d) of any float type, and how many of them each text has, (n_texts,).

    >>> found = Ragged.of([np.eye(2), np.ones((1, 2))])
    >>> found.lengths.tolist(), found.block(1, 2).tolist()
    ([2, 1], [[1.0, 1.0]])
    """

    rows: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, matrices: Sequence[np.ndarray]) -> Ragged:
        """Return the token vectors of texts that are given as matrices (n_tokens, d); one without tokens is empty."""
        full = [one for one in matrices if len(one)]
        rows = np.concatenate(full) if full else np.empty((0, 0), np.float32)
        return cls(rows, np.array([len(one) for one in matrices], dtype=np.int64))

    @property
    def dimensions(self) -> int:
        """Return the length of a token vector; 0 when no text has any."""
        return self.rows.shape[1]

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return the token vectors of the texts from *start* to *stop*, float32 (n_tokens, d), one after the other."""
        first = int(self.lengths[:start].sum())
        return self.rows[first : first + int(self.lengths[start:stop].sum())].astype(np.float32)


def max_sim(query: np.ndarray, document: np.ndarray) -> float:
    """Return the mean over query tokens of the best cosine with a document token, between -1 and 1.

    Both are (n_tokens, n_dims) of unit rows. ColBERT (Khattab and Zaharia, SIGIR 2020) sums instead of taking
    the mean, which orders one query's documents alike. An empty side scores -1.

    >>> max_sim(np.eye(2), np.array([[1.0, 0.0]]))
    0.5
    """
    if not len(query) or not len(document):
        return NOTHING
    return float((query @ document.T).max(axis=1).mean())


def max_sims(
    query_rows: np.ndarray, query_lengths: np.ndarray, doc_rows: np.ndarray, doc_lengths: np.ndarray
) -> np.ndarray:
    """Return the MaxSim of every query with every document, float32 (n_queries, n_docs), by one product.

    Rows are the token vectors of all queries, and of all documents, one text's after the other's; lengths say how
    many each text has. Scores are those of `max_sim`.

    >>> max_sims(np.eye(2), np.array([2]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1, 0, 1])).tolist()
    [[0.5, -1.0, 0.5]]
    """
    scores = np.full((len(query_lengths), len(doc_lengths)), NOTHING, np.float32)
    asked, has = np.flatnonzero(query_lengths), np.flatnonzero(doc_lengths)
    if not len(asked) or not len(has):
        return scores
    cosines = np.asarray(query_rows, np.float32) @ np.asarray(doc_rows, np.float32).T
    best = np.maximum.reduceat(cosines, _starts(doc_lengths[has]), axis=1)
    summed = np.add.reduceat(best, _starts(query_lengths[asked]), axis=0)
    scores[np.ix_(asked, has)] = summed / query_lengths[asked, None].astype(np.float32)
    return scores


def matrices(rows: TokenRows, start: int, stop: int, longest: int | None = None) -> list[np.ndarray]:
    """Return the token vectors of the texts from *start* to *stop* one by one, the first *longest* of each (None: all).

    >>> [one.shape for one in matrices(Ragged.of([np.eye(2), np.eye(2)[:1]]), 0, 2, longest=1)]
    [(1, 2), (1, 2)]
    """
    parts = np.split(rows.block(start, stop), np.cumsum(rows.lengths[start:stop])[:-1]) if stop > start else []
    return [own[:longest] for own in parts]


def score_pairs(
    queries: Sequence[np.ndarray], documents: Sequence[np.ndarray], pairs: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Return the MaxSim of each (query position, document position), shape (n_pairs,), float32."""
    return np.array([max_sim(queries[query], documents[document]) for query, document in pairs], dtype=np.float32)


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.cumsum(lengths) - lengths
