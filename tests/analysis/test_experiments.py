"""An experiment gives the values, tests, tables and files that its parts give one by one."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import ir_measures
import pandas as pd
import pytest

from mirblab.analysis.compare_runs import compare_runs
from mirblab.analysis.experiments import experiment, file_name
from mirblab.core.errors import MirblabError
from mirblab.evaluation.measures import QueryWarning, evaluate
from mirblab.evaluation.significance import bootstrap_intervals, compare
from mirblab.retrieval.systems import system
from mirblab.sources.catalogue import load

SYSTEMS, MEASURES = ["bm25", "bm25-mirb"], ["nDCG@10", "RR"]


@pytest.fixture(scope="module")
def result():
    return experiment(SYSTEMS, ["mini-qa", "mini-stacks"], MEASURES)


def test_values_are_those_of_evaluate(result):
    """The values of all systems and collections stand one after the other."""
    parts = [
        evaluate(system(name).search(load(collection)), load(collection), MEASURES)
        for collection in ("mini-qa", "mini-stacks")
        for name in SYSTEMS
    ]
    pd.testing.assert_frame_equal(result.values, pd.concat(parts, ignore_index=True))


def test_table_has_means_intervals_and_marks(result):
    """Means are in percent, the interval stands beside them, and the marks are those of the comparison."""
    shown, values = result.table(), result.values[result.values.measure == "nDCG@10"]
    mean = values[(values.system == "bm25") & (values.collection == "mini-qa")].value.mean()
    column = next(name for name in shown.frame if name[-1] == "mini-qa")
    assert shown.frame.loc["bm25", column] == pytest.approx(100 * mean)
    intervals = bootstrap_intervals(values, "nDCG@10").set_index(["collection", "system"])
    low, high = 100 * intervals.loc[("mini-qa", "bm25"), ["low", "high"]]
    assert shown.beside.loc["bm25", column] == f"[{low:.2f}, {high:.2f}]"
    assert shown.beside.loc["bm25", shown.frame.columns[-1]] == ""  # an average has no interval
    written = pd.read_csv(io.StringIO(shown.to_csv()), index_col=0)  # what is printed is in the CSV
    assert written.loc["bm25", [f"{': '.join(column)}: {end}" for end in ("low", "high")]].tolist() == pytest.approx(
        [low, high], abs=1e-9
    )
    significant = compare(values, "nDCG@10", baseline="bm25").set_index("collection").significant
    assert (shown.signs.loc["bm25-mirb", column] != "") == significant["mini-qa"]


def test_judged_share_has_no_interval():
    """The column of Judged@10 beside a prime measure does not show the measure's interval."""
    shown = experiment("bm25", ["mini-qa", "mini-stacks"], ["nDCG'@10", "Judged@10"]).table()
    judged = [name for name in shown.frame if name[0] == "Judged@10"]
    assert judged and (shown.beside[judged] == "").to_numpy().all()


def test_one_collection_has_a_column_per_measure():
    """Each measure has its own interval and its own mark."""
    result = experiment(SYSTEMS, "mini-qa", MEASURES)
    shown = result.table()
    assert shown.frame.columns.tolist() == MEASURES
    for measure in MEASURES:
        low, high = 100 * bootstrap_intervals(result.values, measure).set_index("system").loc["bm25", ["low", "high"]]
        assert shown.beside.loc["bm25", measure] == f"[{low:.2f}, {high:.2f}]"
        significant = compare(result.values, measure, baseline="bm25").significant.item()
        assert (shown.signs.loc["bm25-mirb", measure] != "") == significant
    assert "†" in shown.to_markdown()


def test_saving_writes_every_file_and_the_same_again(result, tmp_path):
    """Values, costs, and for each measure table, figure and tests; the second run writes the same bytes."""
    names = {path.name for path in result.save(tmp_path)}
    wanted = {"values.csv", "costs.csv", "rr.tex", "rr_means.pdf", "rr_tests.csv", "ndcg-at-10.md"}
    assert wanted <= names
    made_from = json.loads((tmp_path / "rr.json").read_text("utf-8"))["provenance"]
    assert made_from["collections"]["mini-qa"] == load("mini-qa").fingerprint
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {path.name: path.read_bytes() for path in result.save(tmp_path)} == before


def test_another_baseline_and_all_pairs(result):
    """The tests follow the baseline that is asked for; "" compares all pairs."""
    assert set(result.compare().system_b) == {"bm25"}
    assert set(result.compare(baseline="bm25-mirb").system_b) == {"bm25-mirb"}
    assert len(result.compare(baseline="")) == 2


def test_costs_say_what_was_stored(result):
    """A second experiment reads the runs that the first one made; the table has times of searches only."""
    again = experiment(SYSTEMS, ["mini-qa", "mini-stacks"], "RR")
    assert again.costs.stored.all() and (again.costs.seconds >= 0).all()
    assert not [note for note in again.table().notes if note.startswith("Time to search")]
    stored = [True, False, False, False]  # bm25 was read on mini-qa, so that its time is not that of all queries
    partly = replace(again, costs=again.costs.assign(seconds=[0.1, 1.0, 2.0, 0.52], stored=stored))
    timed = f"Time to search all queries: {system('bm25-mirb').label} 1.5 s."
    rest = " Systems of which a run was stored are not timed."
    assert partly.table().notes[-1] == timed + rest


def test_the_time_of_a_fusion_is_said_to_lack_its_parts():
    """Its parts were searched before; a system of its own has the whole time."""
    done = experiment(["bm25", "bm25+bm25-mirb"], ["mini-qa"], "RR")
    partly = replace(done, costs=done.costs.assign(seconds=[1.0, 0.1], stored=False))
    label = system("bm25+bm25-mirb").label
    assert partly.table().notes[-1] == (
        f"Time to search all queries: {system('bm25').label} 1.0 s, {label} 0.1 s. "
        f"The time of {label} is without the searches of parts whose runs were stored."
    )


def test_correction_reaches_tests_and_notes(tmp_path):
    """The tests have the p that is asked for, the table says how it was corrected, and so do the files."""
    by_name = {name: experiment(SYSTEMS, "mini-qa", "RR", correction=name) for name in ("bh", "bonferroni", None)}
    assert "p_bh" in by_name["bh"].compare() and "p_holm" not in by_name["bh"].compare()
    assert "Benjamini and Hochberg" in by_name["bh"].table().to_latex()
    assert "after Bonferroni's correction" in by_name["bonferroni"].table().to_markdown()
    assert "p at most 0.05 without correction." in by_name[None].table().to_markdown()
    by_name["bh"].save(tmp_path)
    assert json.loads((tmp_path / "rr.json").read_text("utf-8"))["provenance"]["parameters"]["correction"] == "bh"


@pytest.mark.parametrize(
    ("systems", "collections", "options", "words"),
    [
        ([], "mini-qa", {}, "at least one system"),
        ("bm25", [], {}, "at least one collection"),
        (["bm25", "bm25"], "mini-qa", {}, "given twice"),
        ("bm25", ["mini-qa", "mini-qa"], {}, "given twice"),
        ("bm25", "mini-qa", {"baseline": "minilm"}, "not among the systems"),
        ("bm26", "mini-qa", {}, "did you mean 'bm25'"),
        (["bm25", pd.DataFrame()], "mini-qa", {}, "found DataFrame; a run of your own becomes"),
        ("bm25", "mini-qa", {"correction": "sidak"}, "no correction 'sidak'; found bh, bonferroni, holm, none"),
    ],
)
def test_errors_say_what_to_do(systems, collections, options, words):
    """Nothing, the same twice, an unknown name."""
    with pytest.raises(MirblabError, match=words):
        experiment(systems, collections, **options)


@pytest.mark.parametrize(("measure", "name"), [("nDCG'@10", "ndcg-prime-at-10"), ("Bpref from 1", "bpref-from-1"),
                                              ("RBP(p=0.8)", "rbp-p08")])  # fmt: skip
def test_a_measure_is_part_of_file_names(measure, name):
    """A measure's name becomes part of a file's name."""
    assert file_name(measure) == name


def test_one_folder_or_measure_need_no_list(make_folder):
    """A path, and a function, are one."""

    def first_is_known(ranked, judged):
        return float(len(judged) > 0)

    folder = make_folder()
    result = experiment("bm25", folder, first_is_known)
    assert result.values.collection.unique().tolist() == ["tiny"] and result.values.value.tolist() == [1.0, 1.0]


def test_queries_that_score_zero_are_a_note_and_no_warning(recwarn):
    """One query of mini-mathlib has no relevant document; the note is said once, not once per system."""
    told = experiment(SYSTEMS, "mini-mathlib", "RR")
    assert [warning for warning in recwarn if issubclass(warning.category, QueryWarning)] == []
    (note,) = told.notes
    assert note.startswith("mini-mathlib: 1 of 205 queries has no document of relevance 1 or more")
    assert note in told.table().notes


def test_a_note_names_the_system_whose_run_lacks_queries():
    """Structure search returns nothing for a query without a formula."""
    (note,) = experiment(["bm25", "structure"], "mini-qa", "RR").notes
    assert note.startswith("structure on mini-qa: 1 of 204 queries is not in the run and scores 0")


def test_runs_are_exported_to_pyterrier_and_ir_measures(tmp_path):
    """Frames and files give ir_measures the values that were evaluated here; a second save writes the same."""
    result = experiment(SYSTEMS, "mini-qa", ["AP", "nDCG@10"])
    expected = result.values[result.values.measure == "nDCG@10"].groupby("system", observed=True).value.mean()
    frames = result.to_pyterrier()
    assert list(frames) == [*SYSTEMS, "qrels"]
    assert (
        frames["bm25"].columns.tolist() == ["qid", "query", "docno", "score", "rank"]
        and frames["bm25"]["rank"].min() == 0
    )
    assert frames["bm25"]["query"].iloc[0] == load("mini-qa").query(frames["bm25"].qid.iloc[0])
    paths = result.save(tmp_path, runs=True)
    assert {path.name for path in paths if path.parent.name == "mini-qa"} == {
        "bm25.trec",
        "bm25-mirb.trec",
        "qrels.txt",
    }
    judged = list(ir_measures.read_trec_qrels(str(tmp_path / "mini-qa" / "qrels.txt")))
    names = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    for name in SYSTEMS:
        run = list(ir_measures.read_trec_run(str(tmp_path / "mini-qa" / f"{name}.trec")))
        found = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], judged, run)
        framed = ir_measures.calc_aggregate(
            [ir_measures.nDCG @ 10], frames["qrels"].rename(columns=names), frames[name].rename(columns=names)
        )
        assert found == framed and found[ir_measures.nDCG @ 10] == pytest.approx(expected[name], abs=1e-12)
        again = evaluate(frames[name], frames["qrels"], "nDCG@10")
        assert again.value.mean() == pytest.approx(expected[name], abs=1e-15)
    with pytest.raises(MirblabError, match="no collection 'mini-qb'"):
        result.to_pyterrier("mini-qb")


def test_an_experiment_with_one_system_compares_nothing() -> None:
    """Its table has no marks, and its comparisons are empty, with a baseline or without."""
    result = experiment("bm25", "mini-qa", ["RR", "Rank"])
    assert result.compare().empty and result.compare(baseline="").empty
    shown = result.table()
    ranks = result.values[result.values.measure == "Rank"].value
    assert shown.signs.empty and shown.frame.Rank.tolist() == [pytest.approx(ranks.mean())]
    assert shown.extra["low"].Rank.item() < ranks.mean() < shown.extra["high"].Rank.item()


def test_a_search_is_as_deep_as_the_measures(make_folder) -> None:
    """Also below the usual 1,000 documents, unless a depth is given."""
    corpus = [{"_id": f"d{number}", "text": "prime"} for number in range(1_100)]
    corpus.append({"_id": "last", "text": "prime and much more"})
    folder = str(make_folder(corpus, [{"_id": "q", "text": "prime"}], "q\tlast\t1\n"))
    wanted = ["R@1101", "R@1000"]
    assert experiment("bm25", folder, wanted).values.value.tolist() == [1, 0]
    assert experiment("bm25", folder, wanted, depth=1_000).values.value.tolist() == [0, 0]
    assert compare_runs("bm25", "bm25-okapi", folder, wanted).values.value.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("bad", ["query", "document"])
def test_ids_with_blanks_are_refused_before_anything_is_written(bad, make_folder, tmp_path):
    """TREC's form would have other columns then."""
    query, document = ("q 1", "d1") if bad == "query" else ("q1", "d 1")
    folder = make_folder(
        [{"_id": document, "text": "a ring"}, {"_id": "d2", "text": "a group"}],
        [{"_id": query, "text": "a ring"}],
        f"{query}\t{document}\t1\n",
    )
    result = experiment("bm25", load(folder), "RR")
    with pytest.raises(MirblabError, match="_id '[qd] 1' is empty or has white space"):
        result.save(tmp_path / "out", runs=True)
    assert not (tmp_path / "out").exists()
    assert result.save(tmp_path / "out")
