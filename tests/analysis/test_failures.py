"""Where one system wins and another loses, and what those queries have in common, or that nothing is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mirblab.analysis import failures, query_clusters
from mirblab.analysis import failures as analysis_failures
from mirblab.analysis.query_clusters import failure_clusters
from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.display.plots import queries, results
from mirblab.evaluation.measures import evaluate
from mirblab.retrieval.systems import system
from mirblab.sources import catalogue


def a_values(a: list[float], b: list[float], collection: str = "c") -> pd.DataFrame:
    ids = [f"q{n}" for n in range(1, len(a) + 1)]
    parts = [pd.DataFrame({"system": s, "query_id": ids, "value": own}) for s, own in (("a", a), ("b", b))]
    return pd.concat(parts, ignore_index=True).assign(collection=collection, measure="RR")


def test_outcomes_by_hand():
    """Won, tied, lost, the largest gain first; within the margin is a tie."""
    values = a_values([0.2, 1.0, 0.5, 0.55], [0.8, 0.5, 0.5, 0.5])
    found = failures.query_outcomes(values, "RR", "a", "b", margin=0.1)
    assert found.query_id.tolist() == ["q2", "q4", "q3", "q1"]
    assert found.outcome.tolist() == ["won", "tied", "tied", "lost"]
    assert failures.query_outcomes(values, "RR", "a", "b").outcome.tolist() == ["won", "won", "tied", "lost"]
    assert found.difference.round(9).tolist() == [0.5, 0.05, 0.0, -0.6]


def test_queries_are_labelled_by_id_and_first_words(make_folder):
    """Cut between words where there is a blank; the collection's name stands before the id where there are several."""
    texts = ["a  short\nquery", "a query whose words are too many", "onelongwordwithoutablank"]
    queries = [{"_id": f"q{n}", "text": text} for n, text in enumerate(texts)]
    c, other = (
        load_folder(make_folder(queries=queries, qrels="".join(f"q{n}\td1\t1\n" for n in range(3)), name=name))
        for name in ("c", "other")
    )
    table = pd.DataFrame({"collection": "c", "query_id": ["q2", "q0", "q1"], "difference": [3, 2, 1]})
    found = failures.label_queries(table, [c], longest=13)
    assert found.label.tolist() == ["q2: onelongwordwi …", "q0: a short query", "q1: a query …"]
    assert found.drop(columns="label").equals(table)
    several = failures.label_queries(table.assign(collection=["c", "other", "c"]), [c, other], longest=13)
    assert [label.partition(":")[0] for label in several.label] == ["c q2", "other q0", "c q1"]


def test_swapping_the_systems_mirrors_the_outcomes():
    """What A wins, B loses, by the same amount."""
    rng = np.random.default_rng(1)
    values = a_values(rng.random(30).round(1).tolist(), rng.random(30).round(1).tolist())
    one, other = failures.query_outcomes(values, "RR", "a", "b"), failures.query_outcomes(values, "RR", "b", "a")
    both = one.merge(other, on=["collection", "query_id"])
    assert np.allclose(both.difference_x, -both.difference_y)
    assert both.outcome_x.map({"won": "lost", "lost": "won", "tied": "tied"}).tolist() == both.outcome_y.tolist()
    assert failures.count_outcomes(one).queries.tolist() == failures.count_outcomes(other).queries.tolist()[::-1]


def test_the_order_of_queries_changes_nothing():
    """Values are shuffled."""
    values = a_values([0.2, 1.0, 0.5], [0.8, 0.5, 0.5])
    shuffled = values.sample(frac=1, random_state=3)
    assert failures.query_outcomes(shuffled, "RR", "a", "b").equals(failures.query_outcomes(values, "RR", "a", "b"))


def test_the_tally_counts_both_at_zero_and_has_wilsons_interval():
    """Per collection, three rows, also those that never occur."""
    found = failures.count_outcomes(
        failures.query_outcomes(a_values([0, 1.0, 0.5, 0], [0.05, 0.5, 0.5, 0]), "RR", "a", "b", margin=0.1)
    )
    assert found.queries.tolist() == [1, 3, 0] and found.at_zero.tolist() == [0, 1, 0]
    assert found.share.tolist() == [0.25, 0.75, 0.0] and np.isnan(found.difference[2])
    low, high = stats.binomtest(1, 4).proportion_ci(method="wilson")
    assert (found.low[0], found.high[0]) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))


def test_wrong_systems_and_margins_are_refused():
    """What was found is named."""
    values = a_values([1.0], [0.5])
    with pytest.raises(MirblabError, match="values of a, b"):
        failures.query_outcomes(values, "RR", "a", "c")
    with pytest.raises(MirblabError, match="two systems"):
        failures.query_outcomes(values, "RR", "a", "a")
    with pytest.raises(MirblabError, match="margin"):
        failures.query_outcomes(values, "RR", "a", "b", margin=1.5)
    with pytest.raises(MirblabError, match="no values per query of RR"):
        failures.query_outcomes(values.head(2).assign(query_id=""), "RR", "a", "b")


def a_frame(words: list[float], collection: str = "c") -> pd.DataFrame:
    return pd.DataFrame({"collection": collection, "query_id": [f"q{n}" for n in range(len(words))], "words": words})


def test_the_chance_is_that_of_mann_and_whitney_and_p_is_near_the_exact_one():
    """Against scipy, without ties."""
    rng = np.random.default_rng(2)
    words = rng.permutation(20).astype(float)
    group = np.arange(20) < 8
    found = analysis_failures.contrast_groups(a_frame(words.tolist()), group).iloc[0]
    true = stats.mannwhitneyu(words[group], words[~group], method="exact")
    assert found.chance == pytest.approx(true.statistic / (8 * 12))
    assert found.p == pytest.approx(true.pvalue, abs=0.02)
    assert found.low < found.chance < found.high and (found.n_group, found.n_others) == (8, 12)


def test_a_small_group_of_a_large_collection_has_the_p_of_its_own_draws():
    """Two of five queries have what 5 % of ten thousand have: hypergeometric, far from a normal distribution."""
    words = np.zeros(10_000)
    words[:500] = 1
    group = np.zeros(10_000, dtype=bool)
    group[[0, 1, 5_000, 6_000, 7_000]] = True
    found = analysis_failures.contrast_groups(a_frame(words.tolist()), group).iloc[0]
    assert found.p == pytest.approx(stats.hypergeom.sf(1, 10_000, 500, 5), abs=0.006)


def test_swapping_group_and_others_mirrors_the_contrast():
    """The chance is 1 less it, p the same but for the draws, and the medians change places."""
    rng = np.random.default_rng(3)
    frame, group = a_frame(rng.integers(1, 9, 40).tolist()), rng.random(40) < 0.4
    one, other = (analysis_failures.contrast_groups(frame, marks).iloc[0] for marks in (group, ~group))
    assert one.chance == pytest.approx(1 - other.chance) and one.low == pytest.approx(1 - other.high)
    assert (one.group, one.others) == (other.others, other.group) and one.p == pytest.approx(other.p, abs=0.03)


def test_newcombes_interval_holds_what_it_should():
    """No difference: 0.5 lies inside nearly always; all above: the interval does not shrink to a point."""
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(100):
        row = analysis_failures.contrast_groups(
            a_frame(rng.random(24).tolist()), np.arange(24) < 10, n_permutations=9
        ).iloc[0]
        held += row.low <= 0.5 <= row.high
    assert 88 <= held <= 99
    row = analysis_failures.contrast_groups(a_frame([9, 8, 7, 3, 2, 1]), [True] * 3 + [False] * 3).iloc[0]
    assert row.chance == row.high == 1.0 and 0.3 < row.low < 0.9


def test_a_difference_between_collections_is_none_within_them():
    """All queries of the group come from the wordy collection mostly; within each nothing differs."""
    rng = np.random.default_rng(5)
    short, long = rng.integers(1, 9, 60), rng.integers(101, 109, 60)
    frame = pd.concat([a_frame(short.tolist(), "short"), a_frame(long.tolist(), "long")], ignore_index=True)
    group = np.concatenate([np.arange(60) < 10, np.arange(60) < 50])
    row = analysis_failures.contrast_groups(frame, group).iloc[0]
    assert 0.35 < row.chance < 0.65 and not row.differs and row.group > row.others
    together = analysis_failures.contrast_groups(frame.assign(collection="one"), group).iloc[0]
    assert together.differs and together.chance > 0.75


def test_languages_and_fields_are_shares_and_rare_ones_are_left_out():
    """A language that two queries have says nothing, nor one that nearly all have."""
    frame = a_frame([1.0] * 20).assign(language=["Lean"] * 8 + ["prose"] * 10 + ["HOL"] * 2, field="")
    found = analysis_failures.contrast_groups(frame, np.arange(20) < 6)
    assert found.feature.tolist() == ["language Lean", "language prose"]
    assert found.group.tolist() == [1.0, 0.0] and found.others.tolist() == [pytest.approx(1 / 7), pytest.approx(5 / 7)]


@pytest.mark.parametrize(("n_others", "n_features"), [(4, 0), (5, 1)])
def test_a_difference_is_not_that_of_few_queries(n_others: int, n_features: int):
    """Of 20 queries 16 or 15 have the same number of words: compared from five others on, as for a correlation."""
    frame = a_frame([3.0] * (20 - n_others) + [9.0] * n_others)
    assert len(analysis_failures.contrast_groups(frame, np.arange(20) % 2 > 0)) == n_features


@pytest.mark.parametrize("group", [[False] * 4, [True] * 4])
def test_nothing_to_compare_is_said(group: list[bool]):
    """No failure at all, or nothing but failures."""
    found = analysis_failures.contrast_groups(a_frame([1, 2, 3, 4]), group)
    assert not len(found) and analysis_failures.describe_contrasts(found, "those").startswith(
        "Nothing can be compared: those"
    )


def test_what_is_not_significant_is_not_claimed():
    """Random marks: no cause is named; marks by words: the cause is."""
    rng = np.random.default_rng(6)
    frame = a_frame(rng.random(50).tolist())
    assert analysis_failures.describe_contrasts(
        analysis_failures.contrast_groups(frame, rng.random(50) < 0.5)
    ).startswith("No feature differs significantly")
    assert "more words" in analysis_failures.describe_contrasts(
        analysis_failures.contrast_groups(frame, frame.words > 0.5)
    )


def test_a_p_of_exactly_five_percent_is_significant(monkeypatch: pytest.MonkeyPatch):
    """In the contrasts of groups and of clusters, and in the sentence on neighbours."""
    frame = a_frame(list(range(40)))
    monkeypatch.setattr(failures, "holm", lambda p: np.full(len(p), 0.05))
    monkeypatch.setattr(query_clusters, "holm", lambda p: np.full(len(p), 0.05))
    assert failures.contrast_groups(frame, frame.words > 30).differs.all()
    members = pd.DataFrame({"cluster": "rings"}, index=range(5))
    assert query_clusters._contrasts(frame, members, ["rings"], 0).differs.all()
    near = {"share": 0.5, "by_chance": 0.25, "p": 0.05}
    clusters = query_clusters.FailureClusters("failures", members, *[pd.DataFrame()] * 3, near)
    assert "are more similar to each other than" in clusters._near()


def test_clusters_find_what_is_there_and_the_seed_settles_them():
    """Three bundles of vectors; shuffled rows are in the same company."""
    rng = np.random.default_rng(7)
    truth = np.repeat([0, 1, 2], [9, 7, 5])
    rows = np.eye(8)[truth] + 0.05 * rng.random((21, 8))
    found = query_clusters.cluster(rows, seed=1)
    assert found.labels.tolist() == truth.tolist() and found.fits.n_clusters.tolist() == [2, 3, 4, 5, 6]
    assert found.fits.silhouette.idxmax() == 1 and [truth[at] for at in found.centre] == [0, 1, 2]
    again = query_clusters.cluster(rows, seed=1)
    assert again.labels.tolist() == found.labels.tolist() and again.fits.equals(found.fits)
    order = rng.permutation(21)
    assert query_clusters.cluster(rows[order], seed=1).labels.tolist() == truth[order].tolist()


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_few_texts_are_one_cluster(n: int):
    """None, one, two, and fewer than twice the least size."""
    found = query_clusters.cluster(np.eye(6)[:n])
    assert found.labels.tolist() == [0] * n and len(found.centre) == min(n, 1) and not len(found.fits)


def test_texts_that_are_all_the_same_are_one_cluster():
    """k-means finds fewer groups than asked for."""
    with pytest.warns(UserWarning, match="distinct clusters"):
        found = query_clusters.cluster(np.ones((8, 3)))
    assert set(found.labels) == {0} and not len(found.fits)


def test_names_tell_clusters_from_all_other_texts():
    """A term that every text has names nothing; stop words and commands of the layout neither."""
    texts = [r"Is the ring \(\frac{a}{b}\) local?", "A local ring", "open set of the ring", "Is the open set a ring?"]
    assert query_clusters.cluster_names(texts, np.array([0, 0, 1, 1]), ["a ring"] * 4)[1] == "open, set"
    assert query_clusters.cluster_names(["x", "y"], np.array([0, 1])) == ["no common terms"] * 2
    assert query_clusters.cluster_names([], np.array([], dtype=int)) == []


def test_failures_that_lie_together_are_told_from_those_that_do_not():
    """Cuzick and Edwards' test; NaN where there is nothing to test."""
    rng = np.random.default_rng(8)
    rows = np.eye(4)[np.repeat([0, 1, 2, 3], 10)] + 0.05 * rng.random((40, 4))
    names = ["c"] * 40
    close = query_clusters.together(rows, np.arange(40) < 10, names)
    assert close["share"] == 1.0 and close["p"] < 0.001 and 0.1 < close["by_chance"] < 0.35
    assert query_clusters.together(rows, np.arange(40) % 4 == 0, names)["p"] > 0.05
    assert np.isnan(query_clusters.together(rows, np.arange(40) < 1, names)["p"])
    assert np.isnan(query_clusters.together(rows, np.ones(40, bool), names)["p"])
    assert np.isnan(query_clusters.together(rows[:1], np.ones(1, bool), names[:1])["p"])


@pytest.fixture(scope="module")
def mini() -> tuple:
    """Two systems without vectors on a bundled collection."""
    c = catalogue.load("mini-mathlib")
    runs = {(c.name, s): system(s).search(c) for s in ("bm25", "chargrams")}
    values = pd.concat([evaluate(run, c, "nDCG@10") for run in runs.values()])
    duel = failures.query_outcomes(values, "nDCG@10", "bm25", "chargrams")
    return c, runs, duel, failures.outcome_features([c])


@pytest.mark.filterwarnings("ignore::mirblab.evaluation.measures.QueryWarning")
def test_the_clusters_of_a_collection_hold_every_failure_once(mini: tuple):
    """The table, its members, the same seed and shuffled rows."""
    c, _, duel, features = mini
    found = failure_clusters([c], duel, features, "lost", seed=2)
    assert sorted(found.members.query_id) == sorted(duel.query_id[duel.outcome == "lost"])
    assert found.table.queries.sum() == len(found.members) and found.members.is_typical.sum() == len(found.table)
    assert found.members.groupby("cluster").size().to_dict() == dict(
        zip(found.table.cluster, found.table.queries, strict=True)
    )
    shuffled = duel.sample(frac=1, random_state=1)
    again = failure_clusters([c], shuffled, features, "lost", seed=2)
    assert again.members.equals(found.members) and again.describe() == found.describe()
    assert found.describe().startswith(f"{len(found.members)} queries that chargrams wins form")
    first = found.first(2)
    assert first.groupby("cluster").size().max() <= 2 and first.groupby("cluster", sort=False).is_typical.first().all()


@pytest.mark.filterwarnings("ignore::mirblab.evaluation.measures.QueryWarning")
def test_no_failure_one_failure_and_all_ties_are_words(mini: tuple):
    """Nothing breaks, and nothing is claimed."""
    c, _, duel, features = mini
    ties = duel.assign(outcome="tied")
    none = failure_clusters([c], ties, features, "lost")
    assert none.describe() == "There are no queries that chargrams wins, so there is nothing to cluster."
    assert not len(none.first(3)) and not len(none.table)
    assert results.group_contrasts(none.contrasts).get_title() == ""
    single = ties.assign(outcome=["won"] + ["tied"] * (len(ties) - 1))
    one = failure_clusters([c], single, features, "won")
    assert one.describe().startswith(
        "There is only one of the queries that bm25 wins"
    ) and one.table.queries.tolist() == [1]
    every = failure_clusters([c], ties, features, "tied")
    assert "cannot be tested" in every.describe() and every.table.queries.sum() == len(ties)


def test_a_collection_of_one_query(make_folder):
    """From outcome to cases."""
    c = load_folder(make_folder(queries=[{"_id": "q1", "text": "document 1"}], qrels="q1\td1\t1\n"))
    runs = {(c.name, s): system(s).search(c) for s in ("bm25", "chargrams")}
    values = pd.concat([evaluate(run, c, "RR") for run in runs.values()])
    duel = failures.query_outcomes(values, "RR", "bm25", "chargrams")
    features = failures.outcome_features([c])
    assert duel.outcome.tolist() == ["tied"] and features.answer_words.tolist() == [2.0]
    assert failures.outcome_examples(duel, [c], runs)["answer in bm25"].tolist() == ["1"]
    assert not len(analysis_failures.contrast_groups(duel.merge(features, on=["collection", "query_id"]), [True]))
    assert "There is only one" in failure_clusters([c], duel, features, "tied").describe()


def test_a_query_without_an_outcome_is_refused(mini: tuple):
    """So is an unknown outcome."""
    c, _, duel, features = mini
    with pytest.raises(MirblabError, match="needs one outcome"):
        failure_clusters([c], duel.head(3), features)
    with pytest.raises(MirblabError, match="did you mean 'lost'"):
        failure_clusters([c], duel, features, "lots")


def test_cases_say_what_stands_first_and_where_the_answer_is(make_folder):
    """Grade, unjudged, not returned, nothing relevant."""
    c = load_folder(make_folder(qrels="q1\td1\t2\nq1\td2\t0\nq2\td1\t0\n"))
    rows = pd.DataFrame(
        [("q1", "d2", 2.0), ("q1", "d1", 1.0), ("q2", "d3", 1.0)], columns=["query_id", "doc_id", "score"]
    )
    run = rows.astype({"query_id": "category", "doc_id": "category"})
    found = failures.outcome_examples(
        pd.DataFrame({"collection": c.name, "query_id": ["q1", "q2"]}), [c], {(c.name, "s"): run}
    )
    assert found["first of s"].tolist() == ["[0] document 2", "[?] document 3"]
    assert found["answer in s"].tolist() == ["2", "–"]
    empty = failures.outcome_examples(
        pd.DataFrame({"collection": c.name, "query_id": ["q1"]}), [c], {(c.name, "s"): run[run.score > 5]}
    )
    assert (empty["first of s"][0], empty["answer in s"][0]) == ("nothing", "none")


def test_cases_go_by_scores(make_folder):
    """Rows may stand in any order, and have PyTerrier's names."""
    c = load_folder(make_folder(qrels="q1\td1\t2\nq1\td2\t0\nq2\td1\t0\n"))
    run = pd.DataFrame([("q1", "d1", 1.0), ("q1", "d2", 2.0)], columns=["qid", "docno", "score"])
    rows = pd.DataFrame({"collection": c.name, "query_id": ["q1"]})
    found = failures.outcome_examples(rows, [c], {(c.name, "s"): run})
    assert found[["first of s", "answer in s"]].values.tolist() == [["[0] document 2", "2"]]


def test_gains_go_through_associations_and_strata():
    """As values of a system that is a difference."""
    made = failures.outcome_gains(failures.query_outcomes(a_values([0.2, 1.0], [0.8, 0.5]), "RR", "a", "b"))
    assert made.system.unique().tolist() == ["a − b"] and made.value.round(9).tolist() == [0.5, -0.6]
    assert made.measure.unique().tolist() == ["RR"]


def test_the_duel_is_drawn_with_its_queries_named_and_the_middle_counted():
    """Both ends, the winner's largest gain above; an empty table says so."""
    values = a_values(np.linspace(0, 1, 40).tolist(), [0.5] * 40)
    ax = queries.paired_values(failures.query_outcomes(values, "RR", "a", "b"), n=5)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[0] == "q40" and names[-1] == "q1" and len(names) == 10
    assert "30 queries between" in [text.get_text() for text in ax.texts]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    few = failures.query_outcomes(a_values([1.0, 0.0], [0.5, 0.5]), "RR", "a", "b")
    assert [label.get_text() for label in queries.paired_values(few).get_yticklabels()] == ["q1", "q2"]
    assert "Nothing to show" in queries.paired_values(few.head(0)).texts[0].get_text()


def test_the_lower_rank_wins():
    """Of ranks, lower is better."""
    values = a_values([1.0, 4.0, 2.0], [3.0, 1.0, 2.0]).assign(measure="Rank")
    found = failures.query_outcomes(values, "Rank", "a", "b")
    assert found[["query_id", "difference", "outcome"]].values.tolist() == [
        ["q1", 2.0, "won"], ["q3", 0.0, "tied"], ["q2", -3.0, "lost"],
    ]  # fmt: skip


def test_the_duel_of_ranks_has_an_axis_of_ranks():
    """From 1 to the lowest of them: markers are not clipped, so that others would be drawn far outside the picture."""
    values = a_values(np.linspace(1, 400, 40).tolist(), [5.0] * 40).assign(measure="Rank")
    ax = queries.paired_values(failures.query_outcomes(values, "Rank", "a", "b"), n=5)
    assert ax.get_xlim() == (1.0, 400.0) and ax.get_xlabel() == "Rank, from 1, lower is better"
    middle = next(text for text in ax.texts if "between" in text.get_text())
    assert middle.get_position()[0] == 200.5


@pytest.mark.parametrize("sizes", [[(97, 3), (3, 97)], [(40, 2), (2, 40), (30, 12)]])
def test_the_interval_over_unbalanced_collections_holds_what_it_should(sizes: list[tuple[int, int]]):
    """Few pairs of each collection are of a group and others, however many there are of all."""
    rng, held = np.random.default_rng(6), 0
    for _ in range(200):
        ranks = [stats.rankdata(rng.random(a + b))[:a].sum() - a * (a + 1) / 2 for a, b in sizes]
        low, high = failures._newcombe(sum(ranks) / sum(a * b for a, b in sizes), sizes)
        held += low <= 0.5 <= high
    assert 180 <= held <= 198


def test_a_difference_of_exactly_the_margin_is_a_tie():
    """Whatever the rounding of the two values."""
    values = a_values([n / 10 for n in range(1, 11)], [n / 10 for n in range(10)])
    assert failures.query_outcomes(values, "RR", "a", "b", margin=0.1).outcome.eq("tied").all()


def test_a_small_collection_has_the_neighbours_that_it_has():
    """Two marked texts of three have two others each, of which one is marked."""
    rows = np.vstack([np.eye(3) + 0.1, np.random.default_rng(0).random((40, 3))])
    found = query_clusters.together(rows, np.arange(43) < 2, ["small"] * 3 + ["large"] * 40, n_permutations=9)
    assert found["share"] == 0.5
