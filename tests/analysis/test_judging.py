"""Pooled documents are judged blindly; no judgement is lost or overwritten; agreement and effects are right."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mirblab.analysis.judging import Judging, cohen_kappa, disagreement, krippendorff_alpha, pool_documents
from mirblab.app.judging_screen import judge
from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection, load_folder
from mirblab.data.runs import cut_run, order_run
from mirblab.evaluation.measures import evaluate
from mirblab.retrieval.systems import system
from mirblab.sources import catalogue

CARD = "relevance_levels = [0, 1, 2]\n"


pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def tiny(make_folder: Callable[..., Path]) -> Collection:
    """Return two queries and three documents; d1 is judged for both, d2 for q2."""
    return load_folder(make_folder(card=CARD))


def a_run(name: str, **ranked: list[str]) -> pd.DataFrame:
    """Return the run that ranks the documents of each query as they are given."""
    rows = [(query, doc, -float(rank)) for query, docs in ranked.items() for rank, doc in enumerate(docs)]
    run = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    run.attrs["system"] = name
    return run


@pytest.fixture
def runs() -> list[pd.DataFrame]:
    """Return two runs; `one` ranks the unjudged d3 first, `two` last."""
    return [
        a_run("one", q1=["d3", "d1", "d2"], q2=["d3", "d2", "d1"]),
        a_run("two", q1=["d1", "d2", "d3"], q2=["d2", "d1", "d3"]),
    ]


def pairs(judging: Judging) -> list[tuple[str, str]]:
    return list(zip(judging.pool.query_id, judging.pool.doc_id, strict=True))


def test_the_pool_has_the_first_documents_of_every_run_once(tiny, runs) -> None:
    """Those that are judged only with `rejudge`; nothing tells which system returned them, or where."""
    assert set(pairs(judge(runs, tiny, 1))) == {("q1", "d3"), ("q2", "d3")}
    assert set(pairs(judge(runs, tiny, 2))) == {("q1", "d2"), ("q1", "d3"), ("q2", "d3")}
    again = judge(runs, tiny, 2, rejudge=True)
    assert set(pairs(again)) == {(q, d) for q in ("q1", "q2") for d in ("d1", "d2", "d3")}
    assert len(again.pool) == 6 and again.pool.columns.tolist() == ["query_id", "doc_id"]


def test_the_order_is_random_by_the_seed_and_query_by_query() -> None:
    """The same seed gives the same order; no query is interrupted by another."""
    orders = [judge(["bm25", "bm25-mirb"], "mini-qa", 5, seed=seed).pool for seed in (0, 0, 1)]
    assert orders[0].equals(orders[1]) and not orders[0].equals(orders[2])
    assert set(pairs_of(orders[0])) == set(pairs_of(orders[2]))
    changes = (orders[0].query_id != orders[0].query_id.shift()).sum()
    assert changes == orders[0].query_id.nunique() > 50
    assert not orders[0].query_id.drop_duplicates().is_monotonic_increasing
    assert orders[0].groupby("query_id").doc_id.apply(lambda ids: ids.is_monotonic_increasing).mean() < 0.7


def pairs_of(pool: pd.DataFrame) -> list[tuple[str, ...]]:
    return list(pool.itertuples(index=False, name=None))


def test_a_session_goes_on_where_it_was(tiny, runs) -> None:
    """Also after documents were left out; at the end nothing is left."""
    first = judge(runs, tiny, 2, judge="anna")
    order = pairs(first)
    first.move(1)
    first.grade(2)
    assert first.shown == order[2]
    second = judge(runs, tiny, 2, judge="anna")
    assert second.n_judged == 1 and second.shown == order[0] and second.relevance_of(*order[1]) == 2
    second.grade(0)
    assert second.shown == order[2]
    second.grade(1)
    assert second.n_judged == 3 and judge(runs, tiny, 2, judge="anna").n_judged == 3
    assert judge(runs, tiny, 2, judge="ben").n_judged == 0
    assert set(second.judgements.judge) == {"anna"} and second.judgements.time.is_monotonic_increasing


def test_the_last_judgement_counts_and_the_earlier_ones_stay(tiny, runs) -> None:
    """The file only grows; what is taken back is withdrawn by a line of its own."""
    judging = judge(runs, tiny, 1, judge="anna")
    shown = judging.shown
    contents = []
    for grade in (1, 2):
        judging.position = 0
        judging.grade(grade)
        contents.append(judging.path.read_bytes())
    assert judging.relevance_of(*shown) == 2 and judging.qrels().relevance.tolist() == [2]
    assert judging.undo() and judging.relevance_of(*shown) == 1 and judging.shown == shown
    assert judging.undo() and judging.relevance_of(*shown) is None and judging.qrels().empty
    assert not judging.undo()
    contents.append(judging.path.read_bytes())
    assert all(later.startswith(earlier) for earlier, later in zip(contents, contents[1:], strict=False))
    lines = [json.loads(line) for line in contents[-1].splitlines()]
    assert [line["relevance"] for line in lines] == [1, 2, 1, None]
    assert judge(runs, tiny, 1, judge="anna").n_judged == 0


def test_the_last_judgement_counts_also_when_the_clock_was_set_back(tiny, runs) -> None:
    """A time in a file is never before that of an earlier line of the same judge."""
    judging = judge(runs, tiny, 1, judge="anna")
    judging.grade(1)
    late = judging.path.read_text("utf-8").replace('"time": "2', '"time": "3')
    judging.path.write_text(late, "utf-8")
    again = judge(runs, tiny, 1, judge="anna")
    (query_id, doc_id), again.position = pairs(again)[0], 0
    again.record(query_id, doc_id, 2)
    assert again.qrels().relevance.tolist() == [2]


def test_half_a_line_of_a_killed_process_harms_no_other_line(tiny, runs) -> None:
    """It is passed over with a warning, and the next judgement begins a line of its own."""
    judging = judge(runs, tiny, 1, judge="anna")
    judging.grade(1)
    whole = judging.path.read_bytes()
    judging.path.write_bytes(whole + whole[: len(whole) // 2])
    with pytest.warns(UserWarning, match=r"anna.jsonl: 1 incomplete line is passed over, line 2"):
        again = judge(runs, tiny, 1, judge="anna")
    again.grade(2)
    with pytest.warns(UserWarning, match="1 incomplete"):
        assert sorted(again.qrels().relevance) == [1, 2]
    assert again.path.read_bytes().startswith(whole)


def judge_often(collection: Collection, run: pd.DataFrame, grade: int) -> None:
    judging = judge(run, collection, 1, judge="anna")
    for _ in range(300):
        judging.record("q1", "d3", grade)


def test_two_processes_at_once_lose_no_line(tiny, runs) -> None:
    """Even of one judge."""
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=judge_often, args=(tiny, runs[0], grade)) for grade in (0, 2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    path = judge(runs, tiny, judge="anna").path
    grades = [json.loads(line)["relevance"] for line in path.read_text("utf-8").splitlines() if line]
    assert len(grades) == 600 and grades.count(0) == 300


def test_judgements_of_other_texts_do_not_count(tiny, runs) -> None:
    """They stay in the file; other judgements and fewer queries change nothing."""
    judging = judge(runs, tiny, 1, judge="anna")
    judging.grade(1)
    judging.grade(1)
    assert judge(runs, judging.collection(), 1, judge="anna", rejudge=True).relevance_of("q1", "d3") == 1
    sample = tiny.sample(1)
    query_id = sample.query_ids[0]
    assert judge(a_run("one", **{query_id: ["d3"]}), sample, judge="anna").judgements.query_id.tolist() == [query_id]
    corpus = tiny.corpus.assign(text=[*tiny.corpus.text[:2], "another document"])
    before = judging.path.read_bytes()
    with pytest.warns(UserWarning, match="2 judgements are of texts that have since changed"):
        changed = judge(runs, replace(tiny, corpus=corpus), 1, judge="anna")
    assert changed.n_judged == 0 and changed.path.read_bytes() == before


def test_a_judge_who_goes_on_elsewhere_is_no_other_judge(tiny, runs, tmp_path) -> None:
    """A longer file of the same judge is added, whatever it changes; the shorter one then adds nothing."""
    anna, elsewhere = judge(runs, tiny, 1, judge="anna"), tmp_path / "anna.jsonl"
    anna.grade(2)
    before = anna.path.read_bytes()
    first = anna.pool.iloc[0][["query_id", "doc_id"]]
    anna.record(*first, 0)
    elsewhere.write_bytes(anna.path.read_bytes())
    anna.path.write_bytes(before)
    again = judge(runs, tiny, 1, judge="anna")
    assert again.merge(elsewhere) == 1 and again.relevance_of(*first) == 0
    elsewhere.write_bytes(before)
    assert again.merge(elsewhere) == 0


def test_files_of_two_judges_merge(tiny, runs, tmp_path) -> None:
    """Each line once, into the file of its judge; what is there stays."""
    anna, ben = (judge(runs, tiny, 1, judge=name) for name in ("anna", "ben"))
    for judging, grades in ((anna, (2, 0)), (ben, (1, 0))):
        for grade in grades:
            judging.grade(grade)
    given = tmp_path / "from-ben.jsonl"
    ben.path.rename(given)
    given.write_bytes(2 * given.read_bytes())
    assert anna.merge(given) == 2 and anna.merge(given) == 0
    assert sorted(anna.judgements.judge) == ["anna", "anna", "ben", "ben"]
    assert sorted(anna.qrels().relevance) == [0, 1]  # of two grades the lower
    assert sorted(anna.qrels(["anna"]).relevance) == [0, 2]
    with pytest.raises(MirblabError, match="no judge 'bem'; did you mean 'ben'"):
        anna.qrels(["bem"])
    with pytest.raises(MirblabError, match="is no file"):
        anna.merge(tmp_path / "absent.jsonl")
    own = anna.path.read_bytes()
    given.write_text(ben.path.read_text().replace('"ben"', '"anna"'))  # both called themselves the same
    with pytest.raises(MirblabError, match="other grades of the judge 'anna' for 1 document"):
        anna.merge(given)
    assert anna.path.read_bytes() == own
    assert anna.merge(given, judge="carla") == 2
    assert sorted(anna.judgements.judge) == ["anna", "anna", "ben", "ben", "carla", "carla"]
    given.write_text("nothing\n")
    with (
        pytest.warns(UserWarning, match="1 incomplete"),
        pytest.raises(MirblabError, match="0 judgements, none of the texts of tiny"),
    ):
        anna.merge(given)
    given.write_text(ben.path.read_text().replace('"relevance": 1', '"relevance": 9'))
    with pytest.raises(MirblabError, match="has the grade 9, but tiny has 0, 1, 2"):
        anna.merge(given)


def test_the_median_of_three_judges_counts(tiny, runs) -> None:
    """As the docstring says."""
    for name, grade in (("anna", 2), ("ben", 0), ("cleo", 1)):
        judge(runs, tiny, 1, judge=name).record("q1", "d3", grade)
    assert judge(runs, tiny, 1).qrels().values.tolist() == [["q1", "d3", 1]]


def test_new_judgements_change_values_and_fingerprint(tiny, runs) -> None:
    """By hand: the unjudged document that `one` has first is relevant; everything that was pooled is judged then."""
    judging = judge(runs, tiny, 1, judge="anna")
    judging.record("q1", "d3", 2)
    judging.record("q2", "d3", 0)
    frame = judging.changes("RR").frame.set_index("measure", append=True)
    assert frame.loc[("one", "RR")].tolist() == [0.5, 0.75, 0.25]  # ranks 2 and 2, then 1 and 2
    assert frame.loc[("two", "RR")].tolist() == [1.0, 1.0, 0.0]
    assert frame.loc[("one", "Judged@1")].tolist() == [0.0, 1.0, 1.0]
    assert judging.changes("RR").notes == ["The order of the systems by RR stays the same."]
    assert judging.changes(["RR", "RBPresidual"]).notes == ["The order of the systems by RR stays the same."]
    assert judging.changes("Judged@10").notes == []  # no quality, so no order
    added = judging.collection()
    assert len(added.qrels) == len(tiny.qrels) + 2 == 5 and added.fingerprint != tiny.fingerprint
    assert added.qrels.dtypes.equals(tiny.qrels.dtypes) and added.candidates is tiny.candidates
    assert added.qrels.sort_values(["query_id", "doc_id"]).equals(added.qrels)
    assert evaluate(runs[0], added, "RR").value.tolist() == [1.0, 0.5]


def test_a_judgement_anew_replaces_the_collections_own(tiny, runs) -> None:
    """With `rejudge`; and the table says that the order of the systems changed."""
    judging = judge(runs, tiny, 3, judge="anna", rejudge=True)
    for query_id in ("q1", "q2"):
        for doc_id, grade in (("d1", 0), ("d2", 0), ("d3", 2)):
            judging.record(query_id, doc_id, grade)
    second = judge(runs, tiny, 3, judge="bert", rejudge=True)
    second.record("q1", "d1", 2)
    caption = second.changes("nDCG@10", ["anna", "bert"]).caption
    assert "6 documents by anna and bert" in caption and "the lower median counts" in caption
    changes = judging.changes("nDCG@10")
    assert changes.notes == ["The order by nDCG@10 was two, one; now it is one, two."]
    assert judging.collection().qrels.relevance.tolist() == [0, 0, 2] * 2


def test_kappa_is_that_of_a_textbook_and_of_scikit_learn() -> None:
    """Manning, Raghavan and Schütze (2008), table 8.2; of equal grades only, it is not defined."""
    first = [1] * 300 + [1] * 20 + [0] * 10 + [0] * 70
    second = [1] * 300 + [0] * 20 + [1] * 10 + [0] * 70
    assert cohen_kappa(first, second) == pytest.approx(0.776, abs=5e-4)
    assert np.isnan(cohen_kappa([1, 1], [1, 1])) and cohen_kappa([0, 1], [1, 0]) == -1


def test_alpha_is_that_of_krippendorff() -> None:
    """Computing Krippendorff's Alpha-Reliability (2011): four observers, twelve units, missing data."""
    nothing = np.nan
    ratings = pd.DataFrame({
        "A": [1, 2, 3, 3, 2, 1, 4, 1, 2, nothing, nothing, nothing],
        "B": [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nothing, 3],
        "C": [nothing, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nothing],
        "D": [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nothing],
    })  # fmt: skip
    assert krippendorff_alpha(ratings) == pytest.approx(0.815, abs=5e-4)
    assert np.isnan(krippendorff_alpha(ratings[["A"]])) and np.isnan(
        krippendorff_alpha(pd.DataFrame({"A": [], "B": []}))
    )


def test_agreement_has_a_row_for_each_two_judges(tiny, runs) -> None:
    """With the collection's own judgements as one more judge, and one row for all of them."""
    assert judge(runs, tiny).agreement().frame.empty
    for name, grades in (("anna", (0, 2, 1)), ("ben", (0, 2, 2))):
        judging = judge(runs, tiny, 3, judge=name, rejudge=True)
        for (query_id, doc_id), grade in zip((("q2", "d1"), ("q2", "d2"), ("q1", "d3")), grades, strict=True):
            judging.record(query_id, doc_id, grade)
    frame = judging.agreement().frame
    own = "judgements of tiny"
    assert frame.index.tolist() == ["anna, ben", f"anna, {own}", f"ben, {own}", "all"]
    assert frame.documents.tolist() == [3, 2, 2, 3]
    assert frame.same.round(1).tolist() == [66.7, 100.0, 100.0, 66.7]
    assert frame.kappa[:3].round(3).tolist() == [0.5, 1.0, 1.0] and np.isnan(frame.kappa["all"])
    assert frame.alpha[1:3].tolist() == [1.0, 1.0] and frame.alpha["anna, ben"] < 1


@pytest.mark.parametrize(("arguments", "message"), [
    ({"depth": 0}, "depth must be at least 1, found 0"),
    ({"runs": []}, "needs at least one run"),
    ({"runs": "bm26"}, "no system 'bm26'; did you mean 'bm25'"),
    ({"runs": [a_run("one", q1=["d1"])] * 2}, "the run 'one' is given twice"),
    ({"runs": a_run("one", q1=["d9"])}, "1 pooled document is not of tiny, the first is 'd9' for query 'q1'"),
    ({"judge": "a/b"}, "'a/b' cannot be a judge's name"),
])  # fmt: skip
def test_what_cannot_be_judged_is_refused(tiny, runs, arguments, message) -> None:
    """What is wrong, and what to do; no folder is made."""
    with pytest.raises(MirblabError, match=message):
        judge(arguments.pop("runs", runs), tiny, **arguments)
    assert not Path(judge(runs, tiny).path.parents[1]).exists()


def test_a_grade_that_the_collection_lacks_is_refused(tiny, runs) -> None:
    """Nothing is stored; nor for a document that the collection lacks, nor when there is nothing to judge."""
    judging = judge(runs, tiny, 1, judge="anna")
    for grade in (3, -1, True, None, 1.5):
        with pytest.raises(MirblabError, match="tiny has the grades 0, 1, 2"):
            judging.grade(grade)
    with pytest.raises(MirblabError, match="no document 'd9'"):
        judging.record("q1", "d9", 1)
    empty = judge(a_run("one", q1=["d1"], q2=["d2"]), tiny, 1, judge="anna")
    with pytest.raises(MirblabError, match="there is no document to judge"):
        empty.grade(1)
    empty.move(1)
    assert empty.shown is None and not judging.path.exists()


def odd_forms(run: pd.DataFrame) -> list[pd.DataFrame]:
    """Return a run with wrong ranks, with ranks from 0, shuffled, and with PyTerrier's names and no ranks."""
    ranks = run.groupby("query_id").cumcount()
    forms = [run.assign(rank=9 - ranks), run.assign(rank=ranks), run.iloc[::-1].assign(rank=1)]
    return [*forms, run.rename(columns={"query_id": "qid", "doc_id": "docno"})]


def test_the_pool_goes_by_scores_and_not_by_ranks_or_rows(tiny, runs) -> None:
    """Evaluate does so, too."""
    wanted = pool_documents(runs[:1], tiny, 2, rejudge=True)
    for form in odd_forms(runs[0]):
        assert pool_documents([form], tiny, 2, rejudge=True).equals(wanted)


def test_a_pool_of_no_run_is_refused(tiny) -> None:
    """No run has no documents."""
    with pytest.raises(MirblabError, match="at least one run, found none"):
        pool_documents([], tiny)


def test_disagreement_is_what_a_relevant_document_changes(tiny, runs) -> None:
    """It is the sum over all pairs of runs of the difference that the document makes between their DCG."""
    three = [*runs, a_run("three", q1=["d2", "d3", "d1"], q2=["d3", "d1", "d2"])]
    for depth in (1, 2, 3):
        found = disagreement([cut_run(order_run(run), depth) for run in three])
        for query_id, doc_id in found.index:
            ids = pd.Categorical([query_id], tiny.query_ids), pd.Categorical([doc_id], tiny.doc_ids)
            qrels = pd.DataFrame({"query_id": ids[0], "doc_id": ids[1], "relevance": [1]})
            gains = [evaluate(run, replace(tiny, qrels=qrels), f"nDCG@{depth}").value.sum() for run in three]
            wanted = sum(abs(one - other) for one, other in combinations(gains, 2))
            assert found[query_id, doc_id] == pytest.approx(wanted)
        assert set(found.index) == set(pairs_of(pool_documents(three, tiny, depth, rejudge=True)))


def test_the_most_disputed_documents_are_chosen(tiny, runs) -> None:
    """Those on which the runs disagree, unless they are judged; where all ranks are the same, there is none."""
    one, two = runs[0], a_run("two", q1=["d1", "d2", "d3"], q2=["d3", "d2", "d1"])
    assert set(pairs_of(pool_documents([one, two], tiny, 2, disputed=9))) == {("q1", "d3"), ("q1", "d2")}
    assert pairs_of(pool_documents([one, two], tiny, 2, disputed=1)) == [("q1", "d3")]
    assert pairs(judge([one, two], tiny, 2, disputed=1)) == [("q1", "d3")]
    judged_too = pool_documents([one, two], tiny, 2, disputed=9, rejudge=True)
    assert set(pairs_of(judged_too)) == {("q1", "d3"), ("q1", "d2"), ("q1", "d1")}
    assert pairs_of(pool_documents([one, one], tiny, 2, disputed=9)) == []


def test_equally_disputed_documents_are_chosen_at_random() -> None:
    """By the seed, so that not the first queries are judged; the order is that of the whole pool."""
    collection = catalogue.load("mini-qa")
    given = [system(name).search(collection) for name in ("bm25", "bm25-mirb")]
    pools = [pool_documents(given, collection, 3, disputed=40, seed=seed) for seed in (0, 0, 1)]
    assert pools[0].equals(pools[1]) and set(pairs_of(pools[0])) != set(pairs_of(pools[2]))
    assert [len(pool) for pool in pools] == [40, 40, 40]
    whole = pairs_of(pool_documents(given, collection, 3))
    assert pairs_of(pools[0]) == [pair for pair in whole if pair in set(pairs_of(pools[0]))]


def test_one_run_disagrees_with_no_other(tiny, runs) -> None:
    """And no number of documents is negative."""
    with pytest.raises(MirblabError, match="give at least two for a pool of disputed documents"):
        judge(runs[:1], tiny, disputed=1)
    with pytest.raises(MirblabError, match="disputed must be at least 0, found -1"):
        pool_documents(runs, tiny, disputed=-1)


def test_one_judge_may_be_named_without_a_list(tiny, runs) -> None:
    """A name is a list of one, not of its letters."""
    judging = judge(runs, tiny, 2, judge="anna")
    for query_id, doc_id in pairs(judging):
        judging.record(query_id, doc_id, 1)
    assert judging.qrels("anna").equals(judging.qrels(["anna"])) and len(judging.qrels("anna")) == 3
    assert judging.collection("anna").qrels.equals(judging.collection(["anna"]).qrels)
    assert "by anna;" in judging.changes(judges="anna").caption
    with pytest.raises(MirblabError, match="no judge 'ben'"):
        judging.qrels("ben")
