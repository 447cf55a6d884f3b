"""A map of vectors is stored, and comes with numbers that say how far to trust it."""

from __future__ import annotations

import numpy as np
import pytest

from mirblab import neighbours, paths, projection
from mirblab.errors import MirblabError

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(40, 8)).astype(np.float32)
IDS = [f"s{n:02d}" for n in range(40)]


def test_the_same_seed_gives_the_same_map_whatever_the_order_of_rows():
    """Coordinates are stored; rows are sorted by id before UMAP sees them."""
    one = projection.project(VECTORS, IDS, seed=1)
    shuffled = RNG.permutation(40)
    two = projection.project(VECTORS[shuffled], [IDS[place] for place in shuffled], seed=1)
    assert len(list((paths.cache() / "projections").glob("*.parquet"))) == 1
    assert two.set_index("id").loc[IDS, ["x", "y"]].to_numpy().tolist() == one[["x", "y"]].to_numpy().tolist()


def test_neighbour_agreement_is_1_for_the_same_space():
    """Unit vectors have the same neighbours by cosine and by distance."""
    unit = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    assert neighbours.neighbour_agreement(unit, unit, k=5) == 1.0


def test_neighbour_agreement_is_low_for_a_random_map():
    """About k / n by chance."""
    agreement = neighbours.neighbour_agreement(VECTORS, np.random.default_rng(1).normal(size=(40, 2)), k=5)
    assert agreement < 0.4


def test_partners_nearby_by_hand():
    """Two pairs on a line: one is close, the other is not; a point without a partner does not count."""
    line = np.array([[0.0], [0.1], [5.0], [9.0], [9.2]])
    assert neighbours.partners_nearby(line, ["a", "a", "b", "c", "b"], 1, "euclidean") == 0.5


def test_points_without_a_class_are_nobody_s_partners():
    """Distractors neither count nor match."""
    line = np.array([[0.0], [0.1], [0.2], [9.0]])
    assert neighbours.partners_nearby(line, ["", "", "a", "a"], 1, "euclidean") == 0.5


def test_nearest_agrees_with_a_slow_search():
    """By cosine, never itself."""
    unit = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    found = neighbours.nearest(VECTORS, 3)
    for row in range(40):
        slow = sorted((other for other in range(40) if other != row), key=lambda other: -(unit[row] @ unit[other]))
        assert found[row].tolist() == slow[:3]


def test_too_few_points_and_a_bad_k_are_errors():
    """With the numbers that were found."""
    with pytest.raises(MirblabError, match="at least 4 vectors"):
        projection.project(VECTORS[:3], IDS[:3])
    with pytest.raises(MirblabError, match="k must be between 1 and 39, found 40"):
        neighbours.nearest(VECTORS, 40)
