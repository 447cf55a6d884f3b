"""Reranking at every depth stands between the first stage and the ceiling."""

from __future__ import annotations

import pandas as pd
import pytest

from mirblab.analysis.reranking import (
    depth_curve,
    describe_reranking,
    rerank_table,
    reranking_changes,
    reranking_factors,
)
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


def test_mixed_scores_are_those_of_the_system_of_that_name(collection, curve):
    """A shallower depth reuses pairs that were scored deeper; the change and its test belong to the same values."""
    first = systems.system("bm25")
    effects = reranking_factors(
        collection, first, ["maxsim"], "nDCG@10", depths=DEPTHS, instructions=[""], weights=[1.0, 0.3]
    ).set_index(["depth", "weight"])
    for name, at in (("bm25>maxsim@10,0.3", (10, 0.3)), ("bm25>maxsim@10", (10, 1.0))):
        mean = evaluate(systems.system(name).search(collection), collection, ["nDCG@10"]).value.mean()
        assert effects.loc[at].value == pytest.approx(mean, abs=1e-9)
    assert effects.change.to_numpy() == pytest.approx((effects.value - effects.first_stage).to_numpy())
    assert ((effects.low <= effects.change) & (effects.change <= effects.high) & (effects.p > 0)).all()
    changes = reranking_changes(collection, first, "maxsim", "nDCG@10", depth=10, weight=0.3)
    assert changes.value.mean() == pytest.approx(effects.loc[(10, 0.3)].change)
    found = evaluate(first.search(collection, 10), collection, ["R@10"]).value
    assert ((changes.first_rank == 11) == (found.to_numpy() == 0)).all()
    assert changes[changes.first_rank == 11].value.abs().max() == 0  # nothing relevant to move


def test_the_verdict_counts_what_is_significant_after_holm():
    """By hand: of three p values .03 is too large, since its threshold is .05 / 2."""
    row = {"depth": 5, "better": 1, "worse": 2}
    rows = [
        row | {"weight": 1.0, "change": -0.2, "p": 0.001},
        row | {"weight": 1.0, "change": -0.1, "p": 0.03},
        row | {"weight": 0.3, "change": 0.02, "p": 0.5, "depth": 10},
    ]
    when, why, by_weight = describe_reranking(pd.DataFrame(rows))
    assert "significantly in 1 of 3 settings and raises it significantly in none" in when
    assert (
        "-15.0 points at depth 5 and +2.0 at depth 10; of the pairs of a query and a setting, 3 gain and 6 lose" in why
    )
    assert by_weight == (
        "On these queries: with weight 0.3 of the reranker's score +2.0 points (1 gain, 2 lose); with weight 1 "
        "of the reranker's score -15.0 points (2 gain, 4 lose). A weight that is chosen by these numbers has to "
        "be confirmed on other queries."
    )
    assert describe_reranking(pd.DataFrame(rows[:2]))[2].endswith("4 lose). No weight raises the mean.")


def test_a_row_says_which_instruction_was_used(tmp_path, monkeypatch, make_folder):
    """A reranker that always has it has no row without, and a collection without one has none with it."""
    monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "registry").mkdir(parents=True)
    told = '[told]\nkind = "max-sim"\nencoder = "minilm"\ninstruction = "card"\n'
    (tmp_path / "home" / "registry" / "rerankers.toml").write_text(told)
    queries = [{"_id": f"q{n}", "text": f"document {n}"} for n in (1, 2)]
    first, names = systems.system("bm25"), ["maxsim", "told"]
    with_one = catalogue.load(make_folder(queries=queries, card='instruction = "Find it."\n', name="with"))
    rows = reranking_factors(with_one, first, names, "RR", depths=[2])
    assert rows[["reranker", "instruction"]].values.tolist() == [["maxsim", ""], ["maxsim", "card"], ["told", "card"]]
    without = reranking_factors(
        catalogue.load(make_folder(queries=queries, name="without")), first, names, "RR", depths=[2]
    )
    assert without[["reranker", "instruction"]].values.tolist() == [["maxsim", ""], ["told", ""]]
