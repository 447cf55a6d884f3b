"""Weights are chosen on queries that are not scored with them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mirblab.core.errors import MirblabError
from mirblab.evaluation import measures
from mirblab.retrieval import fusion
from mirblab.retrieval.fusion import (
    MEASURES,
    RESAMPLES,
    _among_first,
    assign_folds,
    choose_weights,
    weight_grid,
)

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


def value(run: pd.DataFrame, qrels: pd.DataFrame, names: str) -> pd.Series:
    """The mean of some measures for each query."""
    found = measures.evaluate(run, qrels, names.split(","))
    return found.groupby(found.query_id.astype(str)).value.mean()


@pytest.mark.parametrize("span", ["query", "mean"])
@pytest.mark.parametrize("measure", ["nDCG'", "AP", "nDCG@5", "Bpref", "nDCG',AP',nDCG@10", "RR"])
def test_without_resamples_every_fold_has_the_best_weights_of_the_others(measure: str, span: str):
    """Against a slow search that fuses the runs once for each weight, and evaluates them whole: the paper's way."""
    parts, qrels = material()
    qrels = qrels[qrels.doc_id < "d08"]  # the others stand between them, unjudged
    grid = [(weight / 10, 1 - weight / 10) for weight in range(1, 10)]
    run = fusion.cross_validated(parts, qrels, measure, 5, grid, seed=3, resamples=0, span=span)
    table = fusion.fold_table(run)
    values = pd.DataFrame({pair: value(fusion.linear(parts, pair, span=span), qrels, measure) for pair in grid})
    fold = pd.Series(assign_folds(values.index, 5, seed=3), values.index)
    for row in table.itertuples():
        elsewhere, here = values[fold != row.fold - 1].mean(), values[fold == row.fold - 1].mean()
        pair = min(grid, key=lambda pair: abs(pair[0] - row.s0))
        assert row.s0 == pytest.approx(pair[0]) and row.s1 == pytest.approx(pair[1])
        assert elsewhere[pair] == pytest.approx(elsewhere.max())
        assert row.trained == pytest.approx(elsewhere[pair]) and row.held_out == pytest.approx(here[pair])
        expected = fusion.linear(parts, pair, span=span)
        for query in fold.index[fold == row.fold - 1]:
            mine, theirs = (found[found.query_id == query] for found in (run, expected))
            assert mine.doc_id.tolist() == theirs.doc_id.tolist()
            np.testing.assert_allclose(mine.score, theirs.score, rtol=1e-6)
    assert table.queries.sum() == N and value(run, qrels, measure).mean() == pytest.approx(
        (table.held_out * table.queries).sum() / N
    )


def test_runs_and_judgements_of_pyterrier_choose_the_same_weights():
    """With their names of columns, and ranks from 0."""
    parts, qrels = material()
    expected = fusion.cross_validated(parts, qrels)
    theirs = [
        part.rename(columns={"query_id": "qid", "doc_id": "docno"}).assign(rank=range(len(part))) for part in parts
    ]
    found = fusion.cross_validated(theirs, qrels.set_axis(["qid", "docno", "label"], axis=1))
    pd.testing.assert_frame_equal(found, expected)
    assert fusion.fold_table(found).equals(fusion.fold_table(expected))


def test_no_query_is_scored_with_weights_that_saw_it():
    """Turning one query's judgements around changes the run of other folds only."""
    parts, qrels = material(1)
    whole = fusion.cross_validated(parts, qrels, folds=5, seed=0)
    fold = pd.Series(assign_folds(sorted(qrels.query_id.unique()), 5, 0), sorted(qrels.query_id.unique()))
    for number in range(5):
        mine = qrels.query_id.isin(fold.index[fold == number])
        turned = qrels.assign(relevance=np.where(mine, 1 - qrels.relevance, qrels.relevance))
        found = fusion.cross_validated(parts, turned, folds=5, seed=0)
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
    found = assign_folds(ids, 5, seed=0)
    assert sorted(np.bincount(found)) == [4, 4, 5, 5, 5]
    assert found.tolist() != assign_folds(ids, 5, seed=1).tolist()
    assert assign_folds(ids[::-1], 5, seed=0)[::-1].tolist() == found.tolist()


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


@pytest.mark.parametrize(("parts", "number"), [(2, 21), (3, 271), (4, 175), (5, 211), (9, 19_171)])
def test_ratios_are_even_steps(parts: int, number: int):
    """Each power of one factor up to 361 = 19², in all orders of the parts, equal weights first."""
    found = weight_grid(parts)
    assert found.shape == (number, parts) and len(np.unique(found.round(9), axis=0)) == number
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(found[0], 1 / parts)
    powers = np.log(found / found.min(axis=1, keepdims=True)) / np.log(19.0)
    step = np.unique(powers.round(9))[1]
    np.testing.assert_allclose(powers / step, (powers / step).round(), atol=1e-6)
    assert powers.max() == pytest.approx(2)
    turned = {tuple(row) for row in found[:, ::-1].round(9)}
    assert turned == {tuple(row) for row in found.round(9)}


def test_own_grids_are_used():
    """One row of weights leaves no choice."""
    parts, qrels = material(10)
    run = fusion.cross_validated(parts, qrels, grid=[[0.25, 0.75]], resamples=0)
    assert run.doc_id.tolist() == fusion.linear(parts, [0.25, 0.75], span="mean").doc_id.tolist()


def test_weights_are_the_geometric_mean_of_what_resamples_prefer_and_of_a_leader():
    """Against a resampling by hand, query by query; a fold's queries have no say."""
    rng = np.random.default_rng(1)
    weights, fold = weight_grid(3), np.arange(30) % 3
    values, alone = rng.random((30, len(weights))), np.tile([0.2, 0.4, 0.3], (30, 1))
    found = choose_weights(values, alone, fold, weights, 40, seed=5)
    lead = np.array([1 / 361, 1, 1 / 19])
    for number in range(3):
        rows = np.flatnonzero(fold != number)
        counts = np.random.default_rng([5, number]).multinomial(20, np.full(20, 1 / 20), size=40)
        preferred = [weights[values[np.repeat(rows, often)].mean(axis=0).argmax()] for often in counts]
        # 20 queries say what is best; 50 more would say the leader.
        expected = np.exp(np.average(np.log([stats.gmean(preferred), lead / lead.sum()]), axis=0, weights=[20, 50]))
        np.testing.assert_allclose(found[number], expected / expected.sum(), atol=1e-9)
    values[fold == 1] = 0
    np.testing.assert_array_equal(choose_weights(values, alone, fold, weights, 40, seed=5)[1], found[1])


@pytest.mark.parametrize("noise", [(1.0, 1.0), (0.8, 1.2), (0.6, 1.5)])
def test_few_queries_choose_what_helps_queries_that_nobody_judged(noise: tuple[float, float]):
    """Twenty-four noisy queries, over some seeds: better than the best part on all others."""
    gains = []
    for seed in range(6):
        parts, qrels = material(seed, noise, n=200)
        few, unseen = (qrels[(qrels.query_id < "q024") == is_few] for is_few in (True, False))
        run = fusion.cross_validated(parts, few)
        best = max(value(part, unseen, "nDCG'").mean() for part in parts)
        gains.append(value(run, unseen, "nDCG'").mean() - best)
    assert np.mean(gains) > 0.004


def test_the_leader_is_the_part_that_is_best_alone_and_counts_less_the_more_queries_there_are():
    """Where all queries agree on equal weights: 19 to 1 among none, level among endless ones."""
    shares = []
    for n in (20, 200, 20_000):
        fold, weights = np.repeat([0, 1], n // 2), weight_grid(2)
        values = np.zeros((n, 21))
        values[:, 0] = 1.0
        alone = np.repeat([[0.4, 0.3], [0.3, 0.4]], n // 2, axis=0)  # each fold is weighed by the other
        first, second = choose_weights(values, alone, fold, weights, 9, 0)
        np.testing.assert_allclose(first, second[::-1])
        assert second[0] / second[1] == pytest.approx(19 ** (50 / (n // 2 + 50)))
        shares.append(second[0])
    assert shares[0] > shares[1] > shares[2] > 0.5 and shares[2] < 0.51


def test_a_grid_with_a_part_alone_leaves_the_others_a_little():
    """A weight of 0 has no logarithm; it counts as a thousandth."""
    alone, fold, whole = np.tile([0.4, 0.3], (40, 1)), np.repeat([0, 1], 20), np.array([[0.5, 0.5], [1, 0]])
    values = np.tile([0.0, 1.0], (40, 1))
    found = choose_weights(values, alone, fold, whole, 5, 0)
    expected = np.exp(np.average(np.log([[1, 0.001], [0.95, 0.05]]), axis=0, weights=[20, 50]))
    np.testing.assert_allclose(found, np.tile(expected / expected.sum(), (2, 1)))
    assert choose_weights(values, alone, fold, whole, 0, 0).tolist() == [[1, 0], [1, 0]]


def test_a_part_that_does_harm_orders_what_the_other_does_not_return():
    """Where the other part is the wrong way round, it gets next to nothing and not 0."""
    parts, qrels = material(15, (0.6, 0.6), n=100)
    parts[1] = parts[1].assign(score=-parts[1].score)
    parts[0] = parts[0][parts[0].doc_id != "d03"]
    parts[0].attrs = parts[1].attrs | {"system": "s0"}
    run = fusion.cross_validated(parts, qrels)
    assert fusion.fold_table(run).s0.between(0.98, 0.9999).all()
    last = run[run.doc_id == "d03"].set_index("query_id").score
    assert (last > 0).sum() > 90 and (run.groupby("query_id", observed=True).score.max() > last).all()


def test_the_choice_is_the_same_each_time_and_depends_on_the_seed():
    """Same seed, same weights."""
    parts, qrels = material(16)
    one, two, other = (fusion.cross_validated(parts, qrels, seed=seed) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(one, two)
    assert one.attrs == two.attrs and one.attrs["resamples"] == RESAMPLES
    assert fusion.fold_table(one).s0.tolist() != fusion.fold_table(other).s0.tolist()


@pytest.mark.parametrize(
    ("measure", "grid", "judged"), [(MEASURES, None, "d20"), ("nDCG@3", [(0.9, 0.1), (0.1, 0.9)], "d04")]
)
def test_the_table_of_folds_says_what_the_chosen_weights_get(measure: str, grid: list | None, judged: str):
    """Weights that are in no grid are evaluated themselves, also where they put first what no weights of it do."""
    parts, qrels = material(17, noise=(0.5, 0.5))
    qrels = qrels[qrels.doc_id < judged]
    run = fusion.cross_validated(parts, qrels, measure, 5, grid, seed=2)
    fold = pd.Series(assign_folds(sorted(qrels.query_id.unique()), 5, 2), sorted(qrels.query_id.unique()))
    table = fusion.fold_table(run)
    assert len(table) == 5
    for row in table.itertuples():
        found = value(fusion.linear(parts, (row.s0, row.s1), span="mean"), qrels, measure)
        assert row.trained == pytest.approx(found[fold != row.fold - 1].mean())
        assert row.held_out == pytest.approx(found[fold == row.fold - 1].mean())


def test_only_pairs_that_some_weights_put_first_are_looked_at():
    """Against every weighting in full, ties at the last place included; most pairs are left out unseen."""
    rng = np.random.default_rng(4)
    queries, docs = np.repeat(np.arange(6), 400), np.tile(np.arange(400), 6)
    scores = rng.random((2400, 3)).round(2) ** 3 * (rng.random((2400, 3)) < 0.7)
    for weights in (weight_grid(3), np.array([[2.0, 0, 0], [0, 1, 3]])):
        found = _among_first(queries, docs, scores, weights, 10)
        totals = (scores @ weights.T).astype(np.float32).reshape(6, 400, -1)
        tenth = np.sort(totals, axis=1)[:, -10][:, None]
        expected = (totals >= tenth - 1e-7).any(axis=2).ravel()
        np.testing.assert_array_equal(found, expected)
        assert found.mean() < 0.3


def test_depth_cuts_the_result_only():
    """The weights are those of the whole ranking."""
    parts, qrels = material(18)
    whole, cut = (fusion.cross_validated(parts, qrels, "AP", depth=depth) for depth in (None, 3))
    assert whole.attrs["folds"] == cut.attrs["folds"] and len(cut) == 3 * N
    assert cut.doc_id.tolist() == whole[whole["rank"] <= 3].doc_id.tolist()


def test_wrong_input_is_explained():
    """Grids, folds, measures, qrels, runs."""
    parts, qrels = material(11)
    with pytest.raises(MirblabError, match=r"rows of 2 weights, one per run; found the shape \(1, 3\)"):
        fusion.cross_validated(parts, qrels, grid=[[0.1, 0.1, 0.8]])
    with pytest.raises(MirblabError, match="numbers from 0 up"):
        fusion.cross_validated(parts, qrels, grid=[[-0.1, 1.1]])
    with pytest.raises(MirblabError, match="no weight above 0, which orders nothing"):
        fusion.cross_validated(parts, qrels, grid=[[0.5, 0.5], [0, 0]])
    with pytest.raises(MirblabError, match="two folds or more, found 1"):
        fusion.cross_validated(parts, qrels, folds=1)
    with pytest.raises(MirblabError, match="did you mean"):
        fusion.cross_validated(parts, qrels, "nDGC'")
    with pytest.raises(MirblabError, match="resamples are counted from 0"):
        fusion.cross_validated(parts, qrels, resamples=-1)
    with pytest.raises(MirblabError, match="wants a Collection or a table of judgements, found 'mini-qa'"):
        fusion.cross_validated(parts, "mini-qa")
    with pytest.raises(MirblabError, match=r"make it with fusion.cross_validated\(\)"):
        fusion.fold_table(fusion.rrf(parts))


def test_what_was_chosen_can_be_stored():
    """The attrs are plain JSON."""
    parts, qrels = material(12)
    attrs = fusion.cross_validated(parts, qrels).attrs
    assert json.loads(json.dumps(attrs)) == attrs


def test_weights_are_not_chosen_by_a_measure_of_which_less_is_better() -> None:
    """The worst weights would be chosen."""
    parts, qrels = material()
    for measure in ("Rank", "RR,mr"):
        with pytest.raises(MirblabError, match="take RR in place of Rank"):
            fusion.cross_validated(parts, qrels, measure)
