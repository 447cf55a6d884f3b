"""Weights are chosen on queries that are not scored with them."""

from __future__ import annotations

import json
import time

import numpy as np
import pandas as pd
import pytest

from mirblab import folds, fusion, measures, tuning
from mirblab.errors import MirblabError

N = 40


def a_run(scores: np.ndarray, system: str, name: str = "q") -> pd.DataFrame:
    """A run of all documents, from a matrix queries x documents."""
    queries, docs = np.indices(scores.shape).reshape(2, -1)
    ids = [f"{name}{query:03}" for query in queries]
    run = pd.DataFrame({"query_id": ids, "doc_id": [f"d{doc:02}" for doc in docs], "score": scores.ravel()})
    run.attrs = {"system": system, "collection": "tiny"}
    return run


def material(seed: int = 0, noise: tuple[float, ...] = (0.3, 0.6), n: int = N) -> tuple[list, pd.DataFrame]:
    """Systems that see the relevance through noise, and the judgements."""
    rng = np.random.default_rng(seed)
    relevance = (rng.random((n, 20)) < 0.2).astype(int)
    relevance[:, 0] = 1
    parts = [a_run(relevance + sigma * rng.standard_normal(relevance.shape), f"s{place}")
             for place, sigma in enumerate(noise)]  # fmt: skip
    queries, docs = np.indices(relevance.shape).reshape(2, -1)
    qrels = pd.DataFrame({"query_id": [f"q{query:03}" for query in queries], "doc_id": [f"d{doc:02}" for doc in docs],
                          "relevance": relevance.ravel()})  # fmt: skip
    return parts, qrels


def value(run: pd.DataFrame, qrels: pd.DataFrame, measure: str) -> pd.Series:
    found = measures.evaluate(run, qrels, measure)
    return pd.Series(found.value.to_numpy(), found.query_id.astype(str))


@pytest.mark.parametrize("measure", ["nDCG'", "AP", "nDCG@5", "Bpref"])
def test_every_fold_has_the_best_weights_of_the_others(measure: str):
    """Against a slow search that fuses the runs once for each weight, and evaluates them whole."""
    parts, qrels = material()
    run = fusion.cross_validated(parts, qrels, measure, seed=3)
    table = fusion.fold_table(run)
    grid = [(weight / 10, 1 - weight / 10) for weight in range(1, 10)]
    values = pd.DataFrame({pair: value(fusion.linear(parts, pair), qrels, measure) for pair in grid})
    fold = pd.Series(folds.assign(values.index, 5, seed=3), values.index)
    for row in table.itertuples():
        elsewhere, here = values[fold != row.fold - 1].mean(), values[fold == row.fold - 1].mean()
        pair = min(grid, key=lambda pair: abs(pair[0] - row.s0))
        assert row.s0 == pytest.approx(pair[0]) and row.s1 == pytest.approx(pair[1])
        assert elsewhere[pair] == pytest.approx(elsewhere.max())
        assert row.trained == pytest.approx(elsewhere[pair]) and row.held_out == pytest.approx(here[pair])
        expected = fusion.linear(parts, pair)
        for query in fold.index[fold == row.fold - 1]:
            mine, theirs = (found[found.query_id == query] for found in (run, expected))
            assert mine.doc_id.tolist() == theirs.doc_id.tolist()
            np.testing.assert_allclose(mine.score, theirs.score, rtol=1e-6)
    assert table.queries.sum() == N and value(run, qrels, measure).mean() == pytest.approx(
        (table.held_out * table.queries).sum() / N
    )


def test_no_query_is_scored_with_weights_that_saw_it():
    """Turning one query's judgements around changes the run of other folds only."""
    parts, qrels = material(1)
    whole = fusion.cross_validated(parts, qrels, seed=0)
    fold = pd.Series(folds.assign(sorted(qrels.query_id.unique()), 5, 0), sorted(qrels.query_id.unique()))
    for number in range(5):
        mine = qrels.query_id.isin(fold.index[fold == number])
        turned = qrels.assign(relevance=np.where(mine, 1 - qrels.relevance, qrels.relevance))
        found = fusion.cross_validated(parts, turned, seed=0)
        for query in fold.index[fold == number]:
            one, two = (run[run.query_id == query] for run in (whole, found))
            assert one.doc_id.tolist() == two.doc_id.tolist()


def test_fusion_is_better_than_each_part_of_equal_worth():
    """Independent noise averages out."""
    parts, qrels = material(2, (0.5, 0.5, 0.5), n=80)
    run = fusion.cross_validated(parts, qrels)
    best = max(value(part, qrels, "nDCG'").mean() for part in parts)
    assert value(run, qrels, "nDCG'").mean() > best + 0.03


def test_a_third_part_that_is_noise_gets_little():
    """0 or nearly so: three parts contain the grid of every pair."""
    parts, qrels = material(3, (0.4, 0.4, 50.0), n=80)
    assert fusion.fold_table(fusion.cross_validated(parts, qrels)).s2.max() <= 0.1


def test_folds_depend_on_the_queries_and_not_on_their_order():
    """Rows in any order, and more documents, change no weight."""
    parts, qrels = material(4)
    one = fusion.cross_validated(parts, qrels)
    mixed = [part.sample(frac=1, random_state=1) for part in parts]
    for run, part in zip(mixed, parts, strict=True):
        run.attrs = part.attrs
    two = fusion.cross_validated(mixed, qrels.sample(frac=1, random_state=2))
    pd.testing.assert_frame_equal(one, two)
    assert one.attrs == two.attrs


def test_folds_are_of_equal_size_and_differ_by_seed():
    """By one query at most; the order in which they come says nothing."""
    ids = [f"q{number}" for number in range(23)]
    found = folds.assign(ids, 5, seed=0)
    assert sorted(np.bincount(found)) == [4, 4, 5, 5, 5]
    assert found.tolist() != folds.assign(ids, 5, seed=1).tolist()
    assert folds.assign(ids[::-1], 5, seed=0)[::-1].tolist() == found.tolist()


def test_few_queries_get_reciprocal_ranks():
    """And the attrs say why; a query without a relevant document does not count."""
    parts, qrels = material(5, n=24)
    bare = qrels.query_id.isin([f"q{number:03}" for number in range(5)])
    run = fusion.cross_validated(parts, qrels.assign(relevance=qrels.relevance.where(~bare, 0)), depth=7)
    assert run.doc_id.tolist() == fusion.rrf(parts, depth=7).doc_id.tolist()
    assert run.attrs["method"] == "rrf" and run.attrs["why"].startswith("queries with a relevant document: 19; needed")
    assert fusion.fold_table(run).columns.tolist() == ["fold", "queries", "s0", "s1", "trained", "held_out"]
    assert fusion.cross_validated(parts, qrels).attrs["method"] == "cv"


def test_more_folds_than_queries_get_reciprocal_ranks():
    """A fold without a relevant document would be scored by nothing."""
    parts, qrels = material(6)
    assert fusion.cross_validated(parts, qrels, folds=N).attrs["method"] == "cv"
    assert "needed to choose weights: 41" in fusion.cross_validated(parts, qrels, folds=N + 1).attrs["why"]


def test_queries_that_nobody_judged_are_fused_too():
    """With the weights of a fold."""
    parts, qrels = material(7)
    part = parts[0]
    parts[0] = pd.concat([part, part[part.query_id == "q000"].assign(query_id="unjudged")])
    parts[0].attrs = part.attrs
    run = fusion.cross_validated(parts, qrels)
    assert (run.query_id == "unjudged").sum() == 20
    assert fusion.fold_table(run).queries.sum() == N


def test_a_judged_query_that_no_part_returns_counts_0():
    """It is in a fold, and has no rows."""
    parts, qrels = material(8)
    parts = [part[part.query_id != "q003"] for part in parts]
    run = fusion.cross_validated(parts, qrels)
    assert "q003" not in set(run.query_id.astype(str)) and fusion.fold_table(run).queries.sum() == N


def test_the_usual_measure_can_tell_rankings_apart():
    """With relevant documents alone judged, nDCG' is 1 whatever is done; with nine judgements it is nearly so."""
    parts, qrels = material(9)
    assert fusion.cross_validated(parts, qrels).attrs["measure"] == "nDCG'"
    assert fusion.cross_validated(parts, qrels[qrels.relevance > 0]).attrs["measure"] == "nDCG@10"
    few = qrels[qrels.doc_id < "d09"]
    assert fusion.cross_validated(parts, few).attrs["measure"] == "nDCG@10"


def test_the_grid():
    """Two parts: 0.1 to 0.9. Three: tenths that sum to 1, none of them 1. The most equal first."""
    assert sorted(folds.simplex(2)[:, 0].round(9)) == [number / 10 for number in range(1, 10)]
    three = folds.simplex(3)
    np.testing.assert_allclose(three.sum(axis=1), 1)
    assert len(three) == len(np.unique(three, axis=0)) == 63 and three.max() == 0.9 and three.min() == 0
    assert sorted(three[0]) == [0.3, 0.3, 0.4]


def test_own_grids_are_used():
    """One row of weights leaves no choice."""
    parts, qrels = material(10)
    run = fusion.cross_validated(parts, qrels, grid=[[0.25, 0.75]])
    assert run.doc_id.tolist() == fusion.linear(parts, [0.25, 0.75]).doc_id.tolist()


def test_tolerance_takes_the_middle_of_what_is_hardly_worse():
    """By hand: 0.1 is best, 0.5 and 0.3 lose 1.32 and 1.34 standard errors, 0.9 more."""
    weights = np.array([[0.5, 0.5], [0.1, 0.9], [0.3, 0.7], [0.9, 0.1]])
    gain = np.array([3.0, -1.0, 3.0, -1.0, 3.0, -1.0, 3.0, -1.0]) / 10  # mean 0.1, standard error 0.0756
    best = np.full(8, 0.8)
    values = np.stack([best - gain, best, best - gain - 1e-3, best - 0.5 - gain], axis=1)
    values, fold = np.vstack([values, values]), np.repeat([0, 1], 8)
    for tolerance, place in ((0, 1), (1.0, 1), (1.35, 2), (99, 0)):
        assert folds.choose(values, fold, weights, 2, tolerance)[1] == [place, place]


def test_tolerance_helps_where_judgements_are_few_and_is_checked():
    """A choice by 20 noisy queries jumps about; the calm one stays near the middle."""
    parts, qrels = material(14, (1.5, 1.5), n=24)
    tables = [fusion.fold_table(fusion.cross_validated(parts, qrels, tolerance=tolerance)) for tolerance in (0, 2)]
    assert tables[1].s0.std() <= tables[0].s0.std() and (tables[1].s0 - 0.5).abs().max() <= 0.2
    with pytest.raises(MirblabError, match="tolerance counts standard errors and is at least 0; found -1"):
        fusion.cross_validated(parts, qrels, tolerance=-1)


def test_wrong_input_is_explained():
    """Grids, folds, measures, qrels, runs."""
    parts, qrels = material(11)
    with pytest.raises(MirblabError, match=r"rows of 2 weights, one per run; found the shape \(1, 3\)"):
        fusion.cross_validated(parts, qrels, grid=[[0.1, 0.1, 0.8]])
    with pytest.raises(MirblabError, match="numbers from 0 up"):
        fusion.cross_validated(parts, qrels, grid=[[-0.1, 1.1]])
    with pytest.raises(MirblabError, match="two folds or more, found 1"):
        fusion.cross_validated(parts, qrels, folds=1)
    with pytest.raises(MirblabError, match="did you mean"):
        fusion.cross_validated(parts, qrels, "nDGC'")
    with pytest.raises(MirblabError, match="wants a Collection or a table of judgements, found 'mini-qa'"):
        fusion.cross_validated(parts, "mini-qa")
    with pytest.raises(MirblabError, match=r"make it with fusion.cross_validated\(\)"):
        fusion.fold_table(fusion.rrf(parts))


def test_what_was_chosen_can_be_stored():
    """The attrs are plain JSON."""
    parts, qrels = material(12)
    attrs = fusion.cross_validated(parts, qrels).attrs
    assert json.loads(json.dumps(attrs)) == attrs


def test_three_parts_of_a_hundred_queries_take_seconds():
    """63 weights, each evaluated once on the judged documents."""
    parts, qrels = material(13, (0.3, 0.5, 0.7), n=100)
    start = time.process_time()
    fusion.cross_validated(parts, qrels)
    assert time.process_time() - start < 5
    assert tuning.MIN_QUERIES == 20
