"""sparse: exact search by a learned sparse model, whose vectors are weights of terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mirblab.core.errors import check_positive
from mirblab.data.candidates import Candidates
from mirblab.retrieval.bm25 import TermIndex

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Raised by one whenever the runs of this kind change; otherwise tests/retrieval/test_golden_runs.py fails.
RUNS_VERSION = 1


def search(
    queries: csr_array, docs: csr_array, *, depth: int, candidates: Candidates | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows, positions, scores) of the *depth* best documents of each query by inner product, best first.

    Vectors are sparse float32, (n_queries, n_terms) and (n_docs, n_terms), see `token_vectors.load_term_weights`. Equal
    scores are ordered by position, the larger first; documents without a score above 0, such as those that share no
    term with the query, and those that *candidates* excludes are not returned. SPLADE: Formal et al., SIGIR 2021.
    """
    check_positive(depth=depth)
    index = TermIndex({}, docs, np.zeros(docs.shape[1], np.float32))
    rules = candidates if candidates is not None and candidates.rules else None
    return index.search_weights(queries, depth, rules, label="sparse vectors")
