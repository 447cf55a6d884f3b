"""dense: exact search over vectors agrees with a plain product, ties and candidates included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from peak_memory import peak_memory
from watched_candidates import watched_candidates

from mirblab.core.errors import MirblabError
from mirblab.data.candidates import Candidates, ListRule
from mirblab.data.ranking import TopK, pack_keys, top_k, unpack_keys
from mirblab.retrieval import dense


def plain(queries: np.ndarray, docs: np.ndarray, depth: int, allowed: np.ndarray | None = None) -> list[list[int]]:
    """One product, a full sort, larger positions first among equal scores."""
    scores = queries.astype(np.float32) @ docs.astype(np.float32).T
    if allowed is not None:
        scores[~allowed] = -np.inf
    order = [np.lexsort((-np.arange(len(row)), -row))[:depth] for row in scores]
    return [[int(place) for place in places if row[place] > -np.inf] for places, row in zip(order, scores, strict=True)]


def lists(found: tuple, n_queries: int) -> list[list[int]]:
    rows, positions, _ = found
    return [positions[rows == row].tolist() for row in range(n_queries)]


def whole(seed: int, *shape: int) -> np.ndarray:
    """Small whole numbers: products are exact and ties are many."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32)


@pytest.mark.parametrize("depth", [1, 7, 100, 1000])
@pytest.mark.parametrize("blocks", [(1, 1), (3, 5), (256, 2048), (16, 33)])
def test_it_agrees_with_a_plain_product_and_a_full_sort_ties_included(depth, blocks):
    """Whatever the blocks; most scores are tied."""
    queries, docs = whole(0, 17, 4), whole(1, 133, 4)
    found = dense.search(queries, docs, depth=depth, query_block=blocks[0], doc_block=blocks[1], threads=2)
    assert lists(found, 17) == plain(queries, docs, depth)


def test_scores_are_those_of_the_product_and_fall_within_a_query():
    """The score that comes back is the float32 product."""
    queries, docs = np.random.default_rng(0).random((2, 9, 30), dtype=np.float32)
    rows, positions, scores = dense.search(queries, docs, depth=4)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, (queries @ docs.T)[rows, positions], rtol=1e-6)
    assert all((np.diff(scores[rows == row]) <= 0).all() for row in range(9))


def test_it_orders_as_top_k_of_runs_does():
    """One tie rule everywhere."""
    queries, docs = whole(2, 6, 3), whole(3, 50, 3)
    found = dense.search(queries, docs, depth=8, doc_block=7)
    for ours, theirs in zip(found, top_k(queries @ docs.T, 8), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("depth", [2, 40])
def test_a_restricted_document_cannot_appear(depth):
    """Allow-lists and deny-lists, block by block, also where fewer than *depth* may be returned."""
    random = np.random.default_rng(4)
    queries, docs = whole(5, 23, 4), whole(6, 90, 4)
    pairs = random.integers(0, [23, 90], (400, 2)).T
    for allow in (True, False):
        candidates = Candidates(90, (ListRule.from_pairs("list", *pairs, 23, allow=allow),))
        found = dense.search(queries, docs, depth=depth, candidates=candidates, query_block=5, doc_block=16, threads=2)
        assert lists(found, 23) == plain(queries, docs, depth, candidates.allowed(np.arange(23)))


def test_masks_are_asked_for_in_blocks_of_bounded_size(monkeypatch):
    """A mask over all queries of a large collection would not fit in memory."""
    candidates, asked = watched_candidates(50, 100)
    monkeypatch.setattr(dense, "MASK_BYTES", 300)
    found = dense.search(whole(0, 50, 2), whole(1, 100, 2), depth=3, candidates=candidates)
    assert max(asked) == 3
    assert lists(found, 50) == plain(whole(0, 50, 2), whole(1, 100, 2), 3)


def test_equal_scores_of_every_document_give_the_last_documents():
    """A constant scorer fills the ranking from the end of the corpus."""
    found = dense.search(np.ones((2, 3)), np.ones((5000, 3)), depth=3, doc_block=64)
    assert lists(found, 2) == [[4999, 4998, 4997]] * 2


def test_minus_zero_ties_with_zero():
    """As it does when floats are compared."""
    docs = np.array([[0.0], [-0.0], [0.0]], np.float32)
    assert lists(dense.search(np.ones((1, 1)), docs, depth=3, doc_block=1), 1) == [[2, 1, 0]]


def test_nan_and_minus_infinity_never_come_back():
    """A broken vector loses its document, not the query."""
    docs = np.array([[np.nan], [1.0], [-np.inf], [np.inf]], np.float32)
    assert lists(dense.search(np.ones((1, 1)), docs, depth=4), 1) == [[3, 1]]


@pytest.mark.parametrize("shapes", [((0, 3), (5, 3)), ((2, 3), (0, 3)), ((0, 3), (0, 3))])
def test_nothing_to_search_gives_nothing(shapes):
    """No queries or no documents: three empty arrays."""
    assert [len(part) for part in dense.search(np.ones(shapes[0]), np.ones(shapes[1]), depth=5)] == [0, 0, 0]


def test_the_number_of_threads_does_not_change_a_byte():
    """Blocks do not depend on threads."""
    random = np.random.default_rng(7)
    queries, docs = random.random((40, 64), np.float32), random.random((3000, 64), np.float32)
    one, *others = (dense.search(queries, docs, depth=20, doc_block=256, threads=n) for n in (1, 2, 3, 8))
    for other in others:
        assert all(np.array_equal(left, right) for left, right in zip(one, other, strict=True))


def test_a_memory_map_of_half_floats_is_searched_without_loading_it(tmp_path):
    """Memory stays far below the corpus as float32 (51 MB), whatever its length."""
    random = np.random.default_rng(8)
    np.save(tmp_path / "docs.npy", random.standard_normal((100_000, 128)).astype(np.float16))
    docs = np.load(tmp_path / "docs.npy", mmap_mode="r")
    queries = random.standard_normal((4, 128)).astype(np.float32)
    with peak_memory() as peak:
        found = dense.search(queries, docs, depth=10, threads=2)
    assert peak.n_bytes < 8e6
    assert lists(found, 4) == plain(queries, np.asarray(docs), 10)


class Rows:
    """Vectors that are only read in slices, as those of a collection in parts."""

    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors, self.shape, self.ndim, self.read = vectors, vectors.shape, 2, list[int]()

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, rows: slice) -> np.ndarray:
        self.read.append(rows.stop - rows.start)
        return self.vectors[rows].copy()


@pytest.mark.parametrize("n_docs", [1, 255, 256, 1024, 1025, 3000])
@pytest.mark.parametrize("restricted", [False, True])
def test_vectors_that_are_read_as_they_are_needed_give_the_same_bytes(monkeypatch, n_docs, restricted):
    """Each is read once, for all queries, whatever the number of documents, with rules for candidates and without."""
    monkeypatch.setattr(dense, "CHUNK_DOCS", 700)
    random = np.random.default_rng(9)
    queries = random.standard_normal((70, 48)).astype(np.float32)
    docs = random.standard_normal((n_docs, 48)).astype(np.float32).round(1)
    pairs = random.integers(0, [70, n_docs], (900, 2)).T
    candidates = Candidates(n_docs, (ListRule.from_pairs("list", *pairs, 70, allow=True),)) if restricted else None
    options = {"depth": 90, "query_block": 32, "doc_block": 256, "candidates": candidates}
    rows = Rows(docs)
    one, other = dense.search(queries, docs, **options), dense.search(queries, rows, **options)
    assert sum(rows.read) == n_docs and max(rows.read) <= 512
    assert len(one[0]) > 0
    for left, right in zip(one, other, strict=True):
        assert left.tobytes() == right.tobytes()


def test_normalise_gives_length_one_and_leaves_zeros():
    """Also for entries whose squares leave float32."""
    vectors = np.array([[3, 4], [0, 0], [1e-30, 0], [3e30, 4e30]], np.float32)
    np.testing.assert_allclose(dense.normalise(vectors), [[0.6, 0.8], [0, 0], [1, 0], [0.6, 0.8]], rtol=1e-6)
    assert dense.normalise(np.empty((0, 3))).shape == (0, 3)
    assert vectors[0, 0] == 3


@pytest.mark.parametrize(
    ("queries", "docs", "depth", "message"),
    [
        ((2, 3), (4, 5), 1, "same n_dims"),
        ((3,), (4, 3), 1, "same n_dims"),
        ((2, 3), (4, 3), 0, "depth must be at least"),
    ],
)
def test_what_cannot_be_searched_is_refused(queries, docs, depth, message):
    """With what was found."""
    with pytest.raises(MirblabError, match=message):
        dense.search(np.ones(queries), np.ones(docs), depth=depth)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_best_keeps_the_best_of_any_blocks(data):
    """Scores from a few values, random blocks, masks and k, against a full sort."""
    n_docs, k = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 12))
    width = data.draw(st.integers(1, 20))
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    scores = random.choice(np.array([-1, -0.0, 0.0, 0.5, 2, -np.inf, np.nan], np.float32), (3, n_docs))
    allowed = random.random((3, n_docs)) < data.draw(st.sampled_from([0.1, 0.9, 1.1]))
    best = TopK(3, k, width)
    best.slack = data.draw(st.integers(1, 5))
    for start in reversed(range(0, n_docs, width)):
        best.add(scores[:, start : start + width], start, allowed[:, start : start + width])
    for ours, theirs in zip(best.flat(), top_k(scores, k, allowed), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_packing_keeps_score_and_position():
    """Negative scores and infinities too; sorting keys puts the best first, then the larger position."""
    scores = np.array([-np.inf, -2.5, -1e-40, 0, 1e-40, 3, 3, np.inf], np.float32)
    positions = np.array([7, 2**32 - 1, 0, 5, 1, 3, 4, 9])
    keys = pack_keys(scores, positions)
    assert (np.diff(keys.astype(object)) < 0).all()
    np.testing.assert_array_equal(unpack_keys(keys)[0], scores)
    np.testing.assert_array_equal(unpack_keys(keys)[1], positions)
