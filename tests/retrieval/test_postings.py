"""postings: the search for large collections returns what adding up in plain loops returns, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from mirblab.data.candidates import Candidates, ListRule
from mirblab.retrieval import postings


def add_up(counts: csr_array, weights: csr_array, constant: np.ndarray) -> np.ndarray:
    """Return all scores, float32 (n_queries, n_docs): one addition after the other, in the order of the query."""
    dense = weights.toarray()
    scores = np.zeros((counts.shape[0], len(dense)), dtype=np.float32)
    for row in range(len(scores)):
        own = slice(*counts.indptr[row : row + 2])
        for term, count in zip(counts.indices[own], counts.data[own], strict=True):
            scores[row] += np.float32(count) * dense[:, term]
    return scores + constant[:, None]


def best_of(scores: np.ndarray, floor: np.ndarray, depth: int, permitted: np.ndarray) -> list[list[tuple[int, float]]]:
    """Return position and score of each row's best above its floor; of equal ones the larger position first."""
    kept = [np.flatnonzero((row > least) & may) for row, least, may in zip(scores, floor, permitted, strict=True)]
    ordered = [docs[np.lexsort((-docs, -row[docs]))][:depth] for docs, row in zip(kept, scores, strict=True)]
    return [[(int(doc), float(row[doc])) for doc in docs] for docs, row in zip(ordered, scores, strict=True)]


def searched(made: postings.Postings, counts: csr_array, constant: np.ndarray, depth: int, rules: Candidates | None):
    """Return position and score of each row's best, as the search returns them."""
    rows, positions, scores = made.search(counts, constant, depth, rules, "test")
    return [
        list(zip(positions[rows == row].tolist(), scores[rows == row].tolist(), strict=True))
        for row in range(counts.shape[0])
    ]


def random_matrices(seed: int, n_docs: int, is_signed: bool) -> tuple[csr_array, csr_array]:
    """Return weights of common and rare terms in documents, with many ties, and queries, some of repeated terms."""
    random = np.random.default_rng(seed)
    shares = 1 / np.arange(1, 41)
    values = random.choice(np.float32([0.1, 0.7, 1.3, 2.9, 1e-4]), (n_docs, 40)) * (
        random.random((n_docs, 40)) < shares
    )
    times = random.integers(0, 4, (7, 40)).astype(np.float32) * (random.random((7, 40)) < 0.4)
    if is_signed:
        values[:, ::3] *= -1
        times[:, 1::4] *= np.float32(-0.3)
    times[3] = 0  # a query without a known term
    queries = csr_array(times)
    repeated = np.sort(np.concatenate([np.arange(queries.nnz), np.arange(0, queries.nnz, 5)]))
    starts = np.searchsorted(repeated, queries.indptr)
    order = random.permutation(len(repeated))
    order = order[np.argsort(np.searchsorted(starts, order, side="right"), kind="stable")]
    in_order = csr_array((queries.data[repeated][order], queries.indices[repeated][order], starts), queries.shape)
    return csr_array(values), in_order


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 1000),
    n_docs=st.sampled_from([1, 2, 90, 400]),
    is_signed=st.booleans(),
    depth=st.sampled_from([1, 3, 20, 400]),
    sizes=st.tuples(st.sampled_from([1, 3, 32]), st.sampled_from([7, 64, 1 << 15]), st.sampled_from([1, 1024])),
    share=st.sampled_from([0.0, 1 / 8, 2.0]),
    is_restricted=st.booleans(),
)
def test_the_best_are_those_of_plain_loops(seed, n_docs, is_signed, depth, sizes, share, is_restricted):
    """Whatever the parts, the blocks of queries, the number of common terms, and the signs of the weights."""
    weights, counts = random_matrices(seed, n_docs, is_signed)
    constant = np.random.default_rng(seed).choice(np.float32([0, 0.5, 3]), counts.shape[0])
    pairs = np.argwhere(np.random.default_rng(seed).random((counts.shape[0], n_docs)) < 0.3).T
    rule = ListRule.from_pairs("denied", *pairs, counts.shape[0], allow=False)
    rules = Candidates(n_docs, (rule,)) if is_restricted else None
    permitted = np.ones((counts.shape[0], n_docs), dtype=bool)
    permitted[tuple(pairs)] = not is_restricted
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(("ROWS", "PART_DOCS", "LEAST_SLACK"), sizes, strict=True):
            patch.setattr(postings, name, size)
        patch.setattr(postings, "COMMON_SHARE", share)
        made = postings.Postings.of(weights, np.bincount(weights.indices, minlength=weights.shape[1]))
        found = searched(made, counts, constant, depth, rules)
    assert found == best_of(add_up(counts, weights, constant), constant, depth, permitted)


def test_a_common_term_has_codes_and_a_rare_one_postings():
    """The codes are at most one step too large, and never too small."""
    weights, _ = random_matrices(0, 400, is_signed=True)
    counts = np.bincount(weights.indices, minlength=40)
    made = postings.Postings.of(weights, counts)
    part, dense = made.parts[0], weights.toarray()
    assert made.common.tolist() == np.flatnonzero(counts >= 50).tolist()
    assert 0 < len(made.common) < 40
    gaps = part.scales[:, None] * part.codes - dense[:, made.common].T
    assert (gaps >= -1e-6).all() and (gaps <= part.scales[:, None] * (1 + 1e-6)).all()
    assert set(part.rare_terms) == set(np.flatnonzero(counts)) - set(made.common.tolist())
    assert part.find_places(np.arange(42)).tolist() == [
        part.rare_terms.tolist().index(term) if term in part.rare_terms else len(part.rare_terms) for term in range(42)
    ]
    for place, term in enumerate(part.rare_terms.tolist()):
        own = slice(*part.starts[place : place + 2])
        assert dense[part.docs[own], term].tolist() == part.by_term[own].tolist()


def test_thousands_of_equal_documents_need_more_room(monkeypatch):
    """All of them may be among the best until the last one was seen; of equal scores the last documents win."""
    monkeypatch.setattr(postings, "LEAST_SLACK", 1)
    monkeypatch.setattr(postings, "PART_DOCS", 500)
    weights = csr_array(np.full((3000, 1), 0.7, dtype=np.float32))
    made = postings.Postings.of(weights, np.array([3000]))
    found = searched(made, csr_array(np.ones((2, 1), dtype=np.float32)), np.zeros(2, np.float32), 5, None)
    assert [doc for doc, _ in found[1]] == [2999, 2998, 2997, 2996, 2995]
    assert {score for _, score in found[1]} == {float(np.float32(0.7))}
