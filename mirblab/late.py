"""late: token-level MaxSim, the scoring of ColBERT, with any encoder's token vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def max_sim(query: np.ndarray, document: np.ndarray) -> float:
    """Return the mean over query tokens of the best cosine with a document token, between -1 and 1.

    Both are (n_tokens, n_dims) of unit rows. ColBERT (Khattab and Zaharia, SIGIR 2020) sums instead of taking
    the mean, which orders one query's documents alike. An empty side scores -1.

    >>> max_sim(np.eye(2), np.array([[1.0, 0.0]]))
    0.5
    """
    if not len(query) or not len(document):
        return -1.0
    return float((query @ document.T).max(axis=1).mean())


def score_pairs(
    queries: Sequence[np.ndarray], documents: Sequence[np.ndarray], pairs: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Return the MaxSim of each (query position, document position), shape (n_pairs,), float32."""
    return np.array([max_sim(queries[query], documents[document]) for query, document in pairs], dtype=np.float32)
