"""Reranking at every depth stands between the first stage and the ceiling."""

from __future__ import annotations

import pytest

from mirblab.analysis.reranking import depth_curve, rerank_table
from mirblab.core.errors import MirblabError
from mirblab.evaluation.measures import evaluate
from mirblab.retrieval import rerank, systems
from mirblab.sources import catalogue

DEPTHS = [3, 10, 40]


@pytest.fixture(scope="module")
def collection():
    return catalogue.load("mini-hol").sample(12, seed=1)


@pytest.fixture(scope="module")
def curve(collection):
    return depth_curve(collection, systems.system("bm25"), "maxsim", DEPTHS, "nDCG@10")


def test_no_value_is_above_its_ceiling(curve):
    """The ceiling grows with depth; the first stage is the same at every depth."""
    assert curve.depth.tolist() == DEPTHS
    assert (curve.value <= curve.ceiling + 1e-9).all() and (curve.first_stage <= curve.ceiling + 1e-9).all()
    assert curve.ceiling.is_monotonic_increasing and curve.first_stage.nunique() == 1


def test_a_depth_of_the_curve_is_what_the_reranked_system_reaches(curve, collection):
    """Scoring pairs once, at the greatest depth, changes no shallower value."""
    run = systems.system("bm25").rerank("maxsim", 3).search(collection)
    assert evaluate(run, collection, ["nDCG@10"]).value.mean() == pytest.approx(curve.value.iloc[0], abs=1e-9)


def test_pairs_are_scored_once(collection, curve, monkeypatch):
    """A second curve reads the store."""
    monkeypatch.setattr(rerank, "score_shortlist", lambda *_: pytest.fail("scored again"))
    again = depth_curve(collection, systems.system("bm25"), "maxsim", DEPTHS, "nDCG@10")
    assert again.equals(curve)


def test_better_and_worse_count_queries(curve):
    """They never exceed the queries."""
    assert (curve.better + curve.worse <= curve.n_queries).all()


def test_the_table_has_plain_reranked_and_ceiling(curve):
    """In percent, as the paper's Table 10."""
    row = curve[curve.depth == 10].iloc[0]
    cell = f"{100 * row.first_stage:.2f} / {100 * row.value:.2f} / {100 * row.ceiling:.2f}"
    assert rerank_table(curve, 10).to_dict("records") == [{"collection": "mini-hol", "bm25": cell}]


def test_depths_that_are_not_there_or_not_positive_are_errors(collection, curve):
    """With what was found."""
    with pytest.raises(MirblabError, match=r"no depth 7 in the curves; found \[3, 10, 40\]"):
        rerank_table(curve, 7)
    with pytest.raises(MirblabError, match=r"depths must be whole numbers from 1, found \[0\]"):
        depth_curve(collection, systems.system("bm25"), "maxsim", [0], "nDCG@10")
