"""late, late_search: MaxSim over all documents agrees with a slow sum and with torch, ties and candidates included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from watched_candidates import watched_candidates

from mirblab.core.errors import MirblabError
from mirblab.data.candidates import Candidates, ListRule
from mirblab.data.ranking import top_k
from mirblab.retrieval import dense, late_interaction
from mirblab.retrieval.late_interaction import TokenMatrices


def unit_texts(seed: int, n: int, d: int = 8, longest: int = 9) -> list[np.ndarray]:
    """Return *n* texts of up to *longest* unit token vectors, some without any."""
    random = np.random.default_rng(seed)
    return [dense.normalise(random.standard_normal((random.integers(0, longest), d))) for _ in range(n)]


def whole_texts(seed: int, n: int) -> list[np.ndarray]:
    """Return texts of four tokens of small whole numbers: scores are exact and ties are many."""
    random = np.random.default_rng(seed)
    return [random.integers(-1, 2, (4, 3)).astype(np.float32) for _ in range(n)]


def slow(queries: list[np.ndarray], docs: list[np.ndarray]) -> np.ndarray:
    """Return MaxSim token by token, in float64."""
    found = np.full((len(queries), len(docs)), -1.0)
    for i, query in enumerate(queries):
        for j, doc in enumerate(docs):
            if len(query) and len(doc):
                cosines = [[sum(map(float, one * other)) for other in doc.astype(float)] for one in query.astype(float)]
                found[i, j] = sum(map(max, cosines)) / len(query)
    return found


def lists(found: tuple, n_queries: int) -> list[list[int]]:
    rows, positions, _ = found
    return [positions[rows == row].tolist() for row in range(n_queries)]


def all_scores(queries: list[np.ndarray], docs: list[np.ndarray], **options) -> np.ndarray:
    """Return the scores of a search that keeps every document, as a matrix."""
    rows, positions, scores = late_interaction.search(
        TokenMatrices.of(queries), TokenMatrices.of(docs), depth=len(docs), **options
    )
    found = np.full((len(queries), len(docs)), np.nan, np.float32)
    found[rows, positions] = scores
    return found


def test_a_score_by_hand():
    """The mean over query tokens of the best cosine."""
    query, doc = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.6, 0.8], [1.0, 0.0]])
    assert late_interaction.max_sim(query, doc) == pytest.approx((1.0 + 0.8) / 2)
    assert late_interaction.max_sim_matrix(query, np.array([2]), doc, np.array([2])).tolist() == [[pytest.approx(0.9)]]


def test_texts_without_tokens_score_minus_one():
    """On either side, wherever they stand."""
    empty, full = np.empty((0, 2)), np.eye(2)
    assert late_interaction.max_sim(empty, full) == late_interaction.max_sim(full, empty) == -1.0
    found = all_scores([empty, full, empty], [empty, full, full, empty])
    np.testing.assert_array_equal(found, [[-1, -1, -1, -1], [-1, 1, 1, -1], [-1, -1, -1, -1]])
    np.testing.assert_array_equal(all_scores([empty], [empty]), [[-1]])


@pytest.mark.parametrize("budgets", [(1, 1), (7, 20), (1_024, 4_096)])
def test_it_agrees_with_a_slow_sum_in_float64(budgets, monkeypatch):
    """Whatever the blocks."""
    monkeypatch.setattr(late_interaction, "QUERY_TOKENS", budgets[0])
    monkeypatch.setattr(late_interaction, "DOC_TOKENS", budgets[1])
    queries, docs = unit_texts(0, 11), unit_texts(1, 60)
    np.testing.assert_allclose(all_scores(queries, docs, threads=2), slow(queries, docs), atol=2e-7)


def test_it_agrees_with_torch():
    """The same scores from padded tensors, whose padding is set to minus infinity."""
    import torch

    queries, docs = unit_texts(2, 9, d=32), unit_texts(3, 40, d=32)
    a, b = (torch.nn.utils.rnn.pad_sequence([torch.tensor(one) for one in side], True) for side in (queries, docs))
    has = torch.tensor([len(one) for one in docs])[:, None] > torch.arange(b.shape[1])
    best = torch.einsum("qid,kjd->qikj", a, b).masked_fill(~has, -torch.inf).max(-1).values
    for row, query in enumerate(queries):
        theirs = best[row, : len(query)].mean(0).numpy()
        kept = [place for place, doc in enumerate(docs) if len(doc)]
        if len(query):
            np.testing.assert_allclose(all_scores(queries, docs)[row, kept], theirs[kept], atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=12), st.lists(st.integers(0, 6), min_size=1, max_size=12))
def test_texts_may_have_any_length(query_lengths, doc_lengths):
    """Also nothing but empty texts, and no query at all."""
    random = np.random.default_rng(0)
    queries, docs = ([random.standard_normal((n, 3)) for n in side] for side in (query_lengths, doc_lengths))
    np.testing.assert_allclose(all_scores(queries, docs), slow(queries, docs), atol=1e-5)


@pytest.mark.parametrize("depth", [1, 7, 500])
@pytest.mark.parametrize("budget", [1, 12, 4_096])
def test_equal_scores_are_ordered_as_everywhere(depth, budget, monkeypatch):
    """The larger position first, as `ranking.top_k` has it, over any blocks and more documents than are held."""
    monkeypatch.setattr(late_interaction, "DOC_TOKENS", budget)
    queries, docs = whole_texts(4, 6), whole_texts(5, 900)
    found = late_interaction.search(TokenMatrices.of(queries), TokenMatrices.of(docs), depth=depth, threads=2)
    scores = np.array([[late_interaction.max_sim(query, doc) for doc in docs] for query in queries], np.float32)
    for ours, theirs in zip(found, top_k(scores, depth), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("allow", [True, False])
def test_a_restricted_document_cannot_appear(allow, monkeypatch):
    """Allow-lists and deny-lists, in blocks of queries and of documents."""
    monkeypatch.setattr(late_interaction, "QUERY_TOKENS", 9)
    monkeypatch.setattr(late_interaction, "DOC_TOKENS", 30)
    queries, docs = whole_texts(6, 23), whole_texts(7, 90)
    pairs = np.random.default_rng(8).integers(0, [23, 90], (400, 2)).T
    candidates = Candidates(90, (ListRule.from_pairs("list", *pairs, 23, allow=allow),))
    found = late_interaction.search(
        TokenMatrices.of(queries), TokenMatrices.of(docs), depth=20, candidates=candidates, threads=2
    )
    allowed = candidates.allowed(np.arange(23))
    expected = top_k(slow(queries, docs).astype(np.float32), 20, allowed)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_masks_are_asked_for_in_blocks_of_bounded_size(monkeypatch):
    """A mask over all queries of a large collection would not fit in memory."""
    candidates, asked = watched_candidates(23, 90)
    monkeypatch.setattr(dense, "MASK_BYTES", 270)
    queries, docs = TokenMatrices.of(whole_texts(6, 23)), TokenMatrices.of(whole_texts(7, 90))
    found = late_interaction.search(queries, docs, depth=3, candidates=candidates)
    assert max(asked) == 3
    assert lists(found, 23) == lists(late_interaction.search(queries, docs, depth=3), 23)


def test_the_number_of_threads_does_not_change_a_byte():
    """Blocks do not depend on threads."""
    queries, docs = TokenMatrices.of(unit_texts(9, 50, 64)), TokenMatrices.of(unit_texts(10, 3_000, 64))
    one, *others = (late_interaction.search(queries, docs, depth=20, threads=n) for n in (1, 2, 5))
    for other in others:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


def test_other_dimensions_and_a_bad_depth_are_errors():
    """Both numbers are named."""
    with pytest.raises(MirblabError, match="queries have 8 dimensions, those of documents 4"):
        late_interaction.search(TokenMatrices.of(unit_texts(0, 3)), TokenMatrices.of(unit_texts(0, 3, 4)), depth=2)
    with pytest.raises(MirblabError, match="at least 1, found 0"):
        late_interaction.search(TokenMatrices.of(unit_texts(0, 3)), TokenMatrices.of(unit_texts(0, 3)), depth=0)


def test_nothing_to_search_gives_nothing():
    """No queries, or no documents."""
    some = TokenMatrices.of(unit_texts(0, 3))
    assert [len(part) for part in late_interaction.search(TokenMatrices.of([]), some, depth=2)] == [0, 0, 0]
    assert [len(part) for part in late_interaction.search(some, TokenMatrices.of([]), depth=2)] == [0, 0, 0]


def test_blocks_cover_the_texts_within_their_budget():
    """A text beyond the budget stands alone; a block has a largest number of texts, too."""
    lengths = np.random.default_rng(0).integers(0, 30, 200)
    cuts = late_interaction.split_by_budget(lengths, 40, 5)
    assert np.concatenate([np.arange(200)[cut] for cut in cuts]).tolist() == list(range(200))
    assert all(lengths[cut].sum() <= 40 and cut.stop - cut.start <= 5 for cut in cuts)
    assert late_interaction.split_by_budget(np.array([50, 1]), 40, 5) == [slice(0, 1), slice(1, 2)]
