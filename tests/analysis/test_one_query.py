"""Everything about one query: ranks, distances, bounds, what matched, what is near."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from mirblab.analysis import one_query
from mirblab.analysis import one_query as analysis_one_query
from mirblab.analysis.one_query import query_bounds, query_texts_html
from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection, load_folder
from mirblab.display.plots import queries
from mirblab.evaluation.measures import evaluate
from mirblab.formula import index
from mirblab.retrieval import bm25
from mirblab.retrieval.systems import system
from mirblab.sources import catalogue


def a_run(name: str, rows: list[tuple[str, str, float]]) -> pd.DataFrame:
    run = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    run = run.astype({"query_id": "category", "doc_id": "category"})
    run["rank"] = run.groupby("query_id", observed=True).cumcount() + 1
    run.attrs["system"] = name
    return run


@pytest.fixture
def tiny(make_folder) -> Collection:
    """Two queries; q1 has d2 relevant (2), d1 judged 0, d3 unjudged."""
    corpus = [
        {"_id": "d1", "text": "Every open set is a union of balls, and so on, in any space at all."},
        {"_id": "d2", "text": "A ring with one prime ideal is local."},
        {"_id": "d3", "text": "A ring with one prime ideal is local!"},
    ]
    queries = [{"_id": "q1", "text": "When is a ring local?"}, {"_id": "q2", "text": "Is a ball open?"}]
    return load_folder(make_folder(corpus, queries, "q1\td2\t2\nq1\td1\t0\nq2\td1\t1\n"))


@pytest.fixture
def one(tiny: Collection) -> one_query.OneQuery:
    """Two systems; b does not return d2."""
    runs = [a_run("a", [("q1", "d3", 4.0), ("q1", "d1", 2.0), ("q1", "d2", 1.0)]), a_run("b", [("q1", "d1", 0.5)])]
    return one_query.describe_query(tiny, "q1", runs)


def test_grades_ranks_and_answers_by_hand(one: one_query.OneQuery):
    """A judgement of 0 is one; unjudged is said; what is not returned has no rank."""
    assert (one.relevant, one.answer(), one.best("a"), one.best("b")) == (["d2"], "d2", "d3", "d1")
    assert [one.grade(name) for name in ("d1", "d2", "d3")] == ["0", "2", "unjudged"]
    assert one.rank("a", "d2") == 3 and np.isnan(one.rank("b", "d2"))
    table = one_query.judged_ranks(one)
    assert table.doc_id.tolist() == ["d2", "d1"] and table.is_relevant.tolist() == [True, False]
    assert table.a.tolist() == [3.0, 2.0] and np.isnan(table.b[0]) and table.b[1] == 1


def test_distances_by_hand(one: one_query.OneQuery):
    """Score against that of the first, and what stands above."""
    table = one_query.relevant_distances(one).set_index("system")
    assert table.loc["a", ["rank", "score", "first", "of_first", "above"]].tolist() == [3.0, 1.0, 4.0, 0.25, 2.0]
    assert table.loc["b", ["rank", "score", "of_first", "above"]].isna().all() and table["first"]["b"] == 0.5


def test_the_first_documents_say_where_the_others_have_them(one: one_query.OneQuery):
    """At most so many of each system."""
    table = one_query.top_documents(one, 2)
    assert table.doc_id.tolist() == ["d3", "d1", "d1"] and table.grade.tolist() == ["unjudged", "0", "0"]
    assert table.elsewhere.tolist() == ["b –", "b 1", "a 2"] and table.of_first.tolist() == [1.0, 0.5, 1.0]


def test_shares_of_a_score_of_zero_or_less_are_none(tiny: Collection):
    """Cosines may be negative."""
    found = one_query.describe_query(tiny, "q1", [a_run("a", [("q1", "d3", -0.1), ("q1", "d2", -0.2)])])
    assert (
        one_query.top_documents(found).of_first.isna().all()
        and one_query.relevant_distances(found).of_first.isna().all()
    )


def test_unknown_queries_and_repeated_systems_are_refused(tiny: Collection):
    """What was found is named."""
    run = a_run("a", [("q1", "d1", 1.0)])
    with pytest.raises(MirblabError, match="no query 'q9'"):
        one_query.describe_query(tiny, "q9", [run])
    with pytest.raises(MirblabError, match="one run of each system"):
        one_query.describe_query(tiny, "q1", [run, run])


def test_the_query_that_differs_most_does_not_depend_on_the_order():
    """The first by id where several do; permuted values give the same."""
    values = pd.DataFrame({"system": list("ababab"), "query_id": ["q3", "q3", "q2", "q2", "q1", "q1"],
                           "value": [0.1, 0.6, 0.9, 0.4, 0.2, 0.3]}).assign(collection="c", measure="RR")  # fmt: skip
    assert one_query.most_different_query(values, "RR") == "q2"
    assert one_query.most_different_query(values.sample(frac=1, random_state=1), "RR") == "q2"
    assert one_query.most_different_query(values.assign(value=0.5), "RR") == "q1"


def test_bounds_are_the_extremes_over_all_judgements(one: one_query.OneQuery):
    """One unjudged document in front: judged 0 or 2, by hand."""
    table = query_bounds(one, ["RR", "P@2", "RR'", "nDCG@10"]).set_index(["system", "measure"])
    assert table.loc[("a", "RR"), ["value", "none_relevant", "all_relevant", "low", "high"]].round(6).tolist() == [
        0.333333, 0.333333, 1.0, 0.333333, 1.0,
    ]  # fmt: skip
    assert table.loc[("a", "RR'"), ["value", "low", "high"]].round(6).tolist() == [0.5, 0.333333, 1.0]
    assert table.loc[("a", "P@2"), ["low", "high"]].tolist() == [0.0, 0.5]
    ideal = 2 + 2 / np.log2(3)
    assert table.all_relevant[("a", "nDCG@10")] == pytest.approx((2 + 2 / np.log2(4)) / ideal)
    assert table.loc[("b", "RR"), ["value", "low", "high", "unjudged"]].tolist() == [0, 0, 0, 0]


def test_bounds_agree_with_judging_each_way_by_itself():
    """Every subset on a bundled collection, one evaluate each."""
    c = catalogue.load("mini-qa")
    run = system("bm25").search(c, depth=20)
    found = one_query.describe_query(c, str(c.query_ids[3]), [run])
    row = query_bounds(found, ["nDCG'"], k=6).iloc[0]
    holes = [name for name in found.rankings["bm25"].doc_id.head(6) if name not in found.grades]
    known = [(found.query_id, name, grade) for name, grade in found.grades.items()]
    values = []
    for n in range(len(holes) + 1):
        for chosen in combinations(holes, n):
            rows = [*known, *((found.query_id, name, 3 * (name in chosen)) for name in holes)]
            qrels = pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"])
            values.append(evaluate(run[run.query_id == found.query_id], qrels, "nDCG'", 2).value.item())
    assert row.unjudged == len(holes) > 2
    assert row.low == pytest.approx(min([*values, row.value])) and row.high == pytest.approx(max([*values, row.value]))
    assert row.none_relevant == pytest.approx(values[0]) and row.all_relevant == pytest.approx(values[-1])


def test_a_query_without_judged_documents_in_the_run_has_bounds(tiny: Collection):
    """Nothing returned at all."""
    found = one_query.describe_query(tiny, "q2", [a_run("a", [("q1", "d1", 1.0)])])
    assert query_bounds(found, ["RR", "nDCG@10"]).value.tolist() == [0, 0]
    assert (
        found.best("a") == ""
        and not len(one_query.top_documents(found))
        and len(one_query.relevant_distances(found)) == 1
    )
    with pytest.raises(MirblabError, match="1 to 10"):
        query_bounds(found, ["RR"], k=11)


def test_near_duplicates_are_found_with_their_grades(one: one_query.OneQuery):
    """d3 repeats d2 but for a sign and nobody judged it."""
    table = one_query.query_near_duplicates(one, threshold=0.6)
    row = table[table.what == "document"].iloc[0]
    assert {row.doc_id, row.other_id} == {"d2", "d3"} and {row.grade, row.other_grade} == {"2", "unjudged"}
    assert not len(one_query.query_near_duplicates(one, threshold=1.0))


def test_neighbours_are_the_nearest_other_queries(tiny: Collection, one: one_query.OneQuery):
    """Never the query itself, with each system's value; none in a collection of one query."""
    values = pd.concat(
        [
            pd.DataFrame({"system": s, "query_id": ["q1", "q2"], "value": [v, v / 2]})
            for s, v in (("a", 1.0), ("b", 0.5))
        ]
    )
    values = values.assign(collection=tiny.name, measure="RR")
    table = one_query.similar_queries(one, values, "RR")
    assert table.query_id.tolist() == ["q2"] and table[["a", "b"]].to_numpy().tolist() == [[0.5, 0.25]]
    alone = tiny.sample(1, seed=0)
    own = one_query.describe_query(alone, str(alone.query_ids[0]), [a_run("a", [])])
    assert not len(one_query.similar_queries(own, values[values.query_id == own.query_id], "RR"))


def test_terms_sum_to_the_score_of_the_run():
    """For every document asked for, with the system's own settings."""
    c = catalogue.load("mini-qa")
    run = system("bm25").search(c, depth=5)
    found = one_query.describe_query(c, str(c.query_ids[0]), [run])
    names = found.rankings["bm25"].doc_id.tolist()
    table = analysis_one_query.query_term_scores(found, [*names, names[0]])
    assert table.columns.tolist() == ["term", "idf", *names]
    assert np.allclose(table[names].sum(), found.rankings["bm25"].score, rtol=1e-5)
    assert not len(analysis_one_query.query_term_scores(found, []))
    with pytest.raises(MirblabError, match="kind bm25"):
        analysis_one_query.query_term_scores(found, names, "minilm")
    assert bm25.DEFAULTS["b"] != system("bm25").settings["b"]  # else the settings could be forgotten unseen


def test_subformulas_are_the_nearest_ones(make_folder):
    """The same formula with other names; nothing shared; no formula at all."""
    corpus = [{"_id": "d1", "text": r"Take $a^2+b^2$ or $\int f$."}, {"_id": "d2", "text": "No formula."}]
    queries = [{"_id": "q1", "text": r"Is $x^2+y^2$ even, or $\Box$?"}, {"_id": "q2", "text": "None?"}]
    c = load_folder(make_folder(corpus, queries, "q1\td1\t1\nq2\td2\t1\n"))
    runs = [a_run("a", [("q1", "d1", 1.0)])]
    table = analysis_one_query.query_formula_matches(one_query.describe_query(c, "q1", runs), ["d1", "d2"])
    assert table.doc_id.tolist() == ["d1", "d1", "d2", "d2"]
    assert table.document.tolist() == ["$a^2+b^2$", "", "", ""] and table.found[0] > 0.5
    assert {tuple(pair.split(" → ")) for pair in table.renamed[0].split(", ")} == {("x", "a"), ("y", "b")}
    scores = index.stored_index(["a^2+b^2", r"\int f"])
    assert table.score[0] == pytest.approx(float(scores.search(["x^2+y^2"], 1)[2][0]))
    assert not len(analysis_one_query.query_formula_matches(one_query.describe_query(c, "q2", runs), ["d1"]))


def test_what_is_cut_off_is_the_end():
    """Word by word: with the rest alone nothing is cut."""
    words = [f"lemma{n}" for n in range(300)]
    cut = analysis_one_query.cut_off(" ".join(words)).split()
    kept = len(words) - len(cut)
    assert words[kept:] == cut and 0 < kept < 300
    assert (
        analysis_one_query.cut_off(" ".join(words[:kept]))
        == ""
        != analysis_one_query.cut_off(" ".join(words[: kept + 1]))
    )
    assert analysis_one_query.cut_off("") == ""


def test_answering_keeps_each_tokens_best(one: one_query.OneQuery):
    """The rows' largest cosines survive, and so does the score."""
    table = analysis_one_query.query_token_matches(one, "d2")
    assert table.max(axis=1).mean() == pytest.approx(table.attrs["score"], abs=1e-5)
    assert table.shape[1] <= table.shape[0] and "local" in table.columns
    assert len(analysis_one_query.query_token_matches(one, "d2", most=2)) == 2


def test_facts_are_text_and_need_no_encoder(one: one_query.OneQuery):
    """With and without."""
    facts = analysis_one_query.query_facts(one).set_index("what").value
    assert facts["words"] == "5" and facts["cut off by minilm"] == "nothing" and facts["relevant documents"] == "1"
    assert not any("minilm" in name for name in analysis_one_query.query_facts(one, "").what)


def test_what_comes_from_data_is_shown_as_text(make_folder):
    """A script in a text, an id or a title runs nowhere."""
    bad = '<script>alert(1)</script><img src=x onerror="alert(2)">'
    c = load_folder(make_folder([{"_id": "d<b>1", "text": bad}], [{"_id": "q<i>1", "text": bad}], "q<i>1\td<b>1\t1\n"))
    one = one_query.describe_query(c, "q<i>1", [a_run("a<u>", [("q<i>1", "d<b>1", 1.0)])])
    shown = query_texts_html(one, ["d<b>1"]).data
    assert not any(tag in shown for tag in ("<script", "<img", "<i>", "<b>1", "<u>")) and "&lt;script" in shown


def test_ranks_are_drawn_from_the_top_with_the_missing_at_the_bottom(one: one_query.OneQuery):
    """A line per document; relevant ones are named; nothing judged says so."""
    ax = queries.ranks(one_query.judged_ranks(one))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b"] and len(ax.lines) == 2
    assert [text.get_text() for text in ax.texts] == ["d2 (2)"]
    assert ax.get_yticklabels()[-1].get_text() == "not returned" and ax.get_ylim()[0] > ax.get_ylim()[1]
    assert ax.lines[1].get_ydata()[1] == ax.get_yticks()[-1]
    assert "Nothing to show" in queries.ranks(one_query.judged_ranks(one).head(0)).texts[0].get_text()


def test_a_value_as_it_is_is_that_of_the_whole_collection(tiny: Collection) -> None:
    """ERR depends on the highest grade of the collection, and Rank on its size, whatever the query's own grades are."""
    whole = replace(tiny, card=replace(tiny.card, relevance_levels=[0, 1, 2, 3]))
    run = a_run("s", [("q1", "d2", 2.0), ("q1", "d1", 1.0), ("q2", "d3", 1.0)])
    measures = ["ERR@10", "Rank"]
    found = query_bounds(one_query.describe_query(whole, "q1", [run]), measures, k=2)
    values = evaluate(run, whole, measures)
    assert found.value.tolist() == values[values.query_id == "q1"].value.tolist()


def test_a_run_is_read_by_its_scores(tiny: Collection) -> None:
    """Old ranks and the order of rows count for nothing, and PyTerrier's names are understood."""
    rows = [("q1", "d1", 1.0), ("q1", "d3", 2.0), ("q1", "d2", 3.0)]
    run = pd.DataFrame(rows, columns=["qid", "docno", "score"]).assign(rank=[0, 1, 2])
    run.attrs["system"] = "mine"
    query = one_query.describe_query(tiny, "q1", [run])
    assert query.best("mine") == "d2"
    assert [query.rank("mine", name) for name in ("d2", "d3", "d1")] == [1.0, 2.0, 3.0]


def test_bounds_take_other_names_of_measures(one: one_query.OneQuery) -> None:
    """As evaluate does."""
    assert query_bounds(one, ["MRR", "P_10"], k=2).measure.unique().tolist() == ["RR", "P@10"]
