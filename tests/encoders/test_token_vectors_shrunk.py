"""late_shrink: fewer and shorter token vectors that still say the same."""

from __future__ import annotations

import numpy as np
import pytest

from mirblab.core.errors import MirblabError
from mirblab.encoders.token_vectors import Shrink, merge_tokens, project_tokens
from mirblab.retrieval import dense


def some(n: int, d: int = 32, seed: int = 0) -> np.ndarray:
    return dense.normalise(np.random.default_rng(seed).standard_normal((n, d)))


@pytest.mark.parametrize(("n", "factor", "kept"), [(7, 1, 7), (7, 2, 4), (7, 3, 3), (1, 5, 1), (0, 2, 0), (6, 100, 1)])
def test_merging_keeps_one_in_factor_rounded_up(n, factor, kept):
    """As unit vectors."""
    found = merge_tokens(some(n), factor)
    assert found.shape == (kept, 32) and found.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_similar_tokens_become_their_mean():
    """Two near ones and one apart: the near ones are merged, in the order of the text."""
    apart, near, nearer = np.eye(3)[2], np.array([1.0, 0.1, 0.0]), np.array([1.0, -0.1, 0.0])
    found = merge_tokens(dense.normalise(np.stack([apart, near, nearer])), 2)
    np.testing.assert_allclose(found, [[0, 0, 1], [1, 0, 0]], atol=1e-6)


def test_merging_agrees_with_scikit_learn():
    """The same clusters as its Ward clustering finds."""
    from sklearn.cluster import AgglomerativeClustering

    tokens = some(40, 8)
    labels = AgglomerativeClustering(n_clusters=20, linkage="ward").fit_predict(tokens)
    means = dense.normalise(np.stack([tokens[labels == label].mean(axis=0) for label in np.unique(labels)]))
    ours = merge_tokens(tokens, 2)
    np.testing.assert_allclose(ours[np.lexsort(ours.T)], means[np.lexsort(means.T)], atol=1e-5)


def test_a_projection_keeps_cosines_as_far_as_chance_allows():
    """The same for the same seed, nearer for more dimensions, exact for all of them."""
    tokens = some(50, 64)
    cosines = tokens @ tokens.T
    errors = [np.abs((p := project_tokens(tokens, d)) @ p.T - cosines).max() for d in (8, 32, 64)]
    assert errors[0] > errors[1] > errors[2] and errors[2] < 1e-5
    np.testing.assert_array_equal(project_tokens(tokens, 8, 3), project_tokens(tokens, 8, 3))
    assert np.abs(project_tokens(tokens, 8, 3) - project_tokens(tokens, 8, 4)).max() > 0.1
    with pytest.raises(MirblabError, match="64 dimensions cannot be projected to 65"):
        project_tokens(tokens, 65)


def test_queries_keep_all_their_tokens():
    """But share the projection of the documents."""
    shrink = Shrink(8, 2, seed=1)
    assert shrink.of("query") == Shrink(8, 1, seed=1) and shrink.of("document") == shrink
    assert shrink(some(10)).shape == (5, 8) and shrink.of("query")(some(10)).shape == (10, 8)
    assert Shrink().key() == {} and Shrink(8).key() != Shrink(8, seed=1).key()
    assert Shrink(8)(np.empty((0, 0), np.float32)).shape == (0, 0)


def test_what_cannot_be_done_is_refused():
    """Both numbers are named."""
    with pytest.raises(MirblabError, match="found -1 and 1"):
        Shrink(-1)
    with pytest.raises(MirblabError, match="found 0 and 0"):
        Shrink(0, 0)
