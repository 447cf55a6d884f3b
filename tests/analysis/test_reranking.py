"""Reranking at every depth stands between the first stage and the ceiling."""

from __future__ import annotations

from typing import Any

import nbformat
import pandas as pd
import pytest

from mirblab.analysis.reranking import (
    depth_curve,
    describe_reranking,
    held_out_choices,
    pair_count,
    rerank_table,
    reranking_changes,
    reranking_costs,
    reranking_factors,
)
from mirblab.core import paths
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
    run = systems.system("bm25>maxsim@3").search(collection)
    assert evaluate(run, collection, ["nDCG@10"]).value.mean() == pytest.approx(curve.value.iloc[0], abs=1e-9)


def test_pairs_are_scored_once(collection, curve, monkeypatch):
    """A second curve reads the store."""
    monkeypatch.setattr(rerank, "score_shortlist", lambda *_: pytest.fail("scored again"))
    again = depth_curve(collection, systems.system("bm25"), "maxsim", DEPTHS, "nDCG@10")
    assert again.equals(curve)


def test_better_and_worse_count_queries(curve, collection):
    """Those whose value is above, or below, that of the first stage."""
    first = systems.system("bm25")
    before = evaluate(first.search(collection), collection, ["nDCG@10"]).set_index("query_id").value
    for row in curve.itertuples():
        run = systems.system(f"bm25>maxsim@{row.depth}").search(collection)
        after = evaluate(run, collection, ["nDCG@10"]).set_index("query_id").value
        gains = [round(after[query_id] - before[query_id], 9) for query_id in collection.query_ids]
        counts = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains), len(gains)
        assert (row.better, row.worse, row.n_queries) == counts
    assert curve.better.max() > curve.worse.max()


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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": [1.0, 2.0, -0.1]}, r"weights are .* 0 to 1; found \[2.0, -0.1\]"),
        ({"weights": [float("nan")]}, r"0 to 1; found \[nan\]"),
        ({"rerankers": []}, "rerankers: found an empty list"),
        ({"weights": [], "lengths": []}, "lengths, weights: found an empty list"),
        ({"depths": [0]}, r"depths must be whole numbers from 1, found \[0\]"),
    ],
)
def test_factors_that_make_no_sense_are_refused(collection, given, message):
    """Before anything is searched, with what was found."""
    options = {"rerankers": ["maxsim"], "depths": [3]} | given
    with pytest.raises(MirblabError, match=message):
        reranking_factors(collection, systems.system("bm25"), measure="nDCG@10", **options)


def test_an_empty_table_has_no_verdict():
    """An error in words, as where Approach0 alone is tried on texts."""
    with pytest.raises(MirblabError, match="there is no row to describe: no reranker was tried"):
        describe_reranking(pd.DataFrame([setting("a", "m", 0.1)]).head(0))


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


def test_the_notebook_tests_every_depth(tmp_path, monkeypatch):
    """From the least, and the deeper one where it is asked; so does the verdict, which is made from the same rows."""
    monkeypatch.setattr(paths, "figures", lambda: tmp_path)
    source = paths.bundled_path("notebooks", "12_reranking_ablation.ipynb")
    cells = {cell.id: cell.source for cell in nbformat.read(source, as_version=4).cells}
    space: dict[str, Any] = {}
    exec(cells["c01"], space)
    space |= {"collections": ["mini-wfb", "mini-hol"], "deep_collections": ["mini-wfb"], "n_queries": 3, "deepest": 7}
    space |= {"systems": ["bm25"], "rerankers": ["approach0"], "depths": [2, 5], "weights": [1.0], "sampled": ""}
    for name in ("c02", "planned", "causes-1"):
        exec(cells[name].replace("lab.check_parameters()", ""), space)
    assert space["causes"].depth.tolist() == [2, 5, 7]


def setting(collection: str, reranker: str, change: float, **others: object) -> dict[str, object]:
    """Return a made-up row of `reranking_factors`."""
    row = {"collection": collection, "system": "bm25", "reranker": reranker, "depth": 5, "max_length": 0}
    return row | {"instruction": "", "weight": 1.0, "first_stage": 0.5, "change": change, "p": 0.5} | others


def test_the_verdict_counts_what_is_significant_after_holm():
    """By hand: of three p values .03 is too large, since its threshold is .05 / 2."""
    rows = [
        setting("a", "m", -0.2, p=0.001),
        setting("b", "m", -0.3, p=0.03, first_stage=0.9),
        setting("b", "m", 0.02, weight=0.3, depth=10),
    ]
    when, why, what = describe_reranking(pd.DataFrame(rows))
    assert when == (
        "Reranking after bm25 lowers the value significantly in 1 of 3 combinations of first stage, setting and "
        "collection and raises it significantly in none (Holm, p < 0.05); the lowest significant change is −20.0 "
        "points, by m alone at depth 5 after bm25 on a."
    )
    assert why == (
        "The order of the reranker alone changes the mean by −25.0 points at depth 5, by −30.0 where the first stage "
        "is above its median and by −20.0 elsewhere."
    )
    assert what.startswith("Settings that were chosen on the other collections (most often m alone at depth 5) change")
    assert what.endswith(
        "by −25.0 [−30.0, −20.0] points (95 % interval over 2 collections) and raise it on 0 of 2, so measure on your "
        "own queries before you rerank after bm25, where the interval begins below +1 point."
    )
    better = [row | {"system": "minilm", "change": -row["change"]} for row in rows]
    little = [row | {"system": "ngram", "change": -0.02 * row["change"]} for row in rows]
    assert describe_reranking(pd.DataFrame(better + little))[2].endswith(
        "(95 % interval over 2 collections; after minilm by +25.0 [+20.0, +30.0], after ngram by +0.5 [+0.4, +0.6]) "
        "and raise it on 2 of 2, so rerank in this way after minilm, but measure on your own queries before you rerank "
        "after ngram, where the interval begins below +1 point."
    )
    deeper = [*rows, setting("a", "m", 0.9, depth=200)]  # on one collection only
    assert "points at depth 5, by" in describe_reranking(pd.DataFrame(deeper))[1]
    assert describe_reranking(pd.DataFrame(rows[:1]))[2].startswith("No setting can be chosen on other collections")


def test_a_setting_is_chosen_without_the_collection_where_it_is_used():
    """By hand: c alone would choose n, on which the others lose; one that a collection lacks is never chosen."""
    changes = {"a": (0.1, -0.1, 0.9), "b": (0.2, -0.2, 0.9), "c": (-0.1, 0.4, None)}
    rows = [
        setting(name, reranker, change)
        for name, values in changes.items()
        for reranker, change in zip("mno", values, strict=True)
        if change is not None
    ]
    chosen = held_out_choices(pd.DataFrame(rows)).set_index("collection")
    assert chosen.reranker.to_dict() == {"a": "n", "b": "n", "c": "m"}
    assert chosen.change.to_dict() == {"a": -0.1, "b": -0.2, "c": -0.1}


def test_a_weight_of_0_is_chosen_by_cross_validation():
    """As the system of that name, where enough queries have a relevant document."""
    some, first = catalogue.load("mini-hol").sample(25), systems.system("bm25")
    row = reranking_factors(some, first, ["maxsim"], "nDCG@10", depths=[10], instructions=[""], weights=[0]).iloc[0]
    mean = evaluate(systems.system("bm25>maxsim@10,cv").search(some), some, ["nDCG@10"]).value.mean()
    assert row.value == pytest.approx(mean, abs=1e-9)


def test_approach0_reranks_where_there_are_formulas():
    """With the values of the system of that name, once for all lengths and instructions; elsewhere it has no row."""
    formulas, words = catalogue.load("mini-wfb").sample(4), catalogue.load("mini-mathlib").sample(4)
    first, options = systems.system("structure"), {"depths": [5], "lengths": [0, 8], "instructions": ["", "card"]}
    rows = reranking_factors(formulas, first, ["approach0"], "RR", **options)
    mean = evaluate(systems.system("structure>approach0@5").search(formulas), formulas, ["RR"]).value.mean()
    assert rows.value.tolist() == [pytest.approx(mean, abs=1e-9)]
    assert reranking_factors(words, first, ["approach0"], "RR", **options).empty


def test_pairs_of_several_first_stages_are_counted_once():
    """The first two of each query by one system are among its first three; another system adds its own."""
    some = catalogue.load("mini-hol").sample(3)
    bm25, grams = (systems.system(name).search(some, 2) for name in ("bm25", "chargrams"))
    both = {*zip(bm25.query_id, bm25.doc_id, strict=True), *zip(grams.query_id, grams.doc_id, strict=True)}
    assert pair_count(some, {"bm25": 2, "chargrams": 2}) == len(both) > len(bm25)
    assert pair_count(some, {"bm25": 3}) == 9


def test_the_table_shows_the_distance_to_the_papers_own_pair(curve):
    """A made-up value beside the printed 55.19; another collection and another reranker have none."""
    rows = curve.head(1).assign(system="nv-embed-v2", first_stage=0.6, value=0.56, ceiling=0.9, depth=10)
    rows = pd.concat([rows.assign(reranker=name, collection="here") for name in ("bge-reranker-v2-m3", "maxsim")])
    cell = rerank_table(rows, 10, {"here": "Informalized Mathlib4 Retrieval"})["nv-embed-v2"].item()
    assert cell == "60.00 (+0.52) / 56.00 (+0.81) / 56.00 / 90.00"
    missing = pd.concat([rows, rows.head(1).assign(collection="there")])
    assert rerank_table(missing, 10)["nv-embed-v2"].tolist()[1] == "60.00 / 56.00 / – / 90.00"


def test_the_costs_are_of_scoring_anew(collection, curve, monkeypatch):
    """Stored pairs are scored again."""
    scored = []
    score = rerank.score_shortlist
    monkeypatch.setattr(rerank, "score_shortlist", lambda run, *rest: scored.append(len(run)) or score(run, *rest))
    costs = reranking_costs(collection, systems.system("bm25"), ["maxsim"], 10)
    assert scored == [1, 20] and costs.milliseconds.item() == pytest.approx(10_000 / costs.pairs_per_second.item())


def test_a_row_says_which_instruction_was_used(own, make_folder):
    """A reranker that always has it has no row without, and a collection without one has none with it."""
    own("rerankers", '[told]\nkind = "max-sim"\nencoder = "minilm"\ninstruction = "card"\n')
    queries = [{"_id": f"q{n}", "text": f"document {n}"} for n in (1, 2)]
    first, names = systems.system("bm25"), ["maxsim", "told"]
    with_one = catalogue.load(make_folder(queries=queries, card='instruction = "Find it."\n', name="with"))
    rows = reranking_factors(with_one, first, names, "RR", depths=[2])
    assert rows[["reranker", "instruction"]].values.tolist() == [["maxsim", ""], ["maxsim", "card"], ["told", "card"]]
    without = reranking_factors(
        catalogue.load(make_folder(queries=queries, name="without")), first, names, "RR", depths=[2]
    )
    assert without[["reranker", "instruction"]].values.tolist() == [["maxsim", ""], ["told", ""]]
