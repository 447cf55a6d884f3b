"""Measures give trec_eval's values: by hand, against pytrec_eval and ir_measures, and on published runs."""

from __future__ import annotations

import shutil
import warnings
from types import SimpleNamespace

import ir_measures
import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

import mirblab as lab
from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.data.runs import cut_run, order_run
from mirblab.evaluation import judged_ranks
from mirblab.evaluation.measures import Measure, QueryWarning, ceiling, evaluate, mean, parse_measure

ORACLE = {
    "nDCG": "ndcg", "nDCG@1": "ndcg_cut_1", "nDCG@3": "ndcg_cut_3", "nDCG@10": "ndcg_cut_10", "AP": "map",
    "AP@3": "map_cut_3", "P@1": "P_1", "P@5": "P_5", "P@10": "P_10", "R@1": "recall_1", "R@5": "recall_5",
    "RR": "recip_rank", "Bpref": "bpref", "Success@1": "success_1", "Success@5": "success_5", "Rprec": "Rprec",
    "infAP": "infAP",
}  # fmt: skip
PRIMES = ["nDCG'", "nDCG'@3", "AP'", "AP'@3", "P'@5", "R'@5", "RR'", "Success'@1", "Rprec'"]


def run_of(scores):
    rows = [(query, doc, score) for query, docs in scores.items() for doc, score in docs.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])


def qrels_of(grades):
    rows = [(query, doc, grade) for query, docs in grades.items() for doc, grade in docs.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"])


def quietly(run, qrels, measures, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QueryWarning)
        return evaluate(run, qrels, measures, **options)


def numbers(values):
    """Return {(measure, query_id): value}."""
    keys = zip(values.measure.astype("str"), values.query_id.astype("str"), strict=True)
    return dict(zip(keys, values.value, strict=True))


def oracle(scores, grades, names, level=1, judged_only=False):
    """Return pytrec_eval's values, with 0 for a query that the run lacks or that pytrec_eval leaves out."""
    tool = pytrec_eval.RelevanceEvaluator(grades, set(names.values()), level, judged_docs_only_flag=int(judged_only))
    found = tool.evaluate(scores)
    return {(ours, query): found.get(query, {}).get(name, 0.0) for ours, name in names.items() for query in grades}


def close(ours, theirs):
    wrong = {key: (ours[key], theirs[key]) for key in theirs if not abs(ours[key] - theirs[key]) <= 1e-12}
    assert not wrong
    assert ours.keys() == theirs.keys()


def agrees(scores, grades, level=1):
    """Check all measures, plain and prime, against pytrec_eval on one run."""
    run, qrels = run_of(scores), qrels_of(grades)
    close(numbers(quietly(run, qrels, ORACLE, relevant_from=level)), oracle(scores, grades, ORACLE, level))
    primes = {name: ORACLE.get(name.replace("'", "")) for name in PRIMES}
    close(numbers(quietly(run, qrels, PRIMES, relevant_from=level)), oracle(scores, grades, primes, level, True))


def random_case(seed):
    """Return scores and grades of 12 queries with ties, float32 ties, negative and missing judgements, short runs."""
    generator = np.random.default_rng(seed)
    docs = [f"d{number}" for number in range(30)]
    levels = generator.choice([1, 3, 30, 10**6])
    scores, grades = {}, {}
    for number in range(12):
        query = f"q{number}"
        found = generator.choice(docs, generator.choice([1, 2, 5, 12, 30]), replace=False)
        marks = generator.integers(0, levels, len(found)) / levels + generator.choice([0, 1e-10], len(found))
        judged = generator.choice(docs, generator.choice([1, 2, 8, 30]), replace=False)
        lowest, highest = generator.choice([-2, 0, 0, 1]), generator.choice([1, 2, 4])
        given = generator.integers(lowest, highest + 1, len(judged)).tolist()
        if max(given) < 0:  # pytrec_eval never returns when all judgements of a query are negative
            given[0] = 0
        if generator.random() < 0.9:
            scores[query] = dict(zip(found.tolist(), marks.tolist(), strict=True))
        if generator.random() < 0.95:
            grades[query] = dict(zip(judged.tolist(), given, strict=True))
    return scores, grades


@pytest.mark.parametrize("block", range(8))
def test_random_runs_agree_with_pytrec_eval(block):
    """Thousands of queries, all measures, levels 1 to 3: nothing differs by more than 1e-12."""
    for seed in range(block * 32, block * 32 + 32):
        agrees(*random_case(seed), level=1 + seed % 3)


GRADES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-1, 3), min_size=1)
GRADES = GRADES.filter(lambda grades: max(grades.values()) >= 0)  # else pytrec_eval never returns
SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.one_of(st.sampled_from([0.0, 0.5]), st.floats(-1e30, 1e30)))


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from("pqr"), GRADES, min_size=1), st.dictionaries(st.sampled_from("opqr"), SCORES),
       st.integers(1, 4))  # fmt: skip
def test_any_small_run_agrees_with_pytrec_eval(grades, scores, level):
    agrees({query: docs for query, docs in scores.items() if docs}, grades, level)


def test_a_large_run_agrees_with_pytrec_eval():
    """Rankings that are longer than a block of the search for judged documents, and queries that share one."""
    generator = np.random.default_rng(9)
    scores, grades = {}, {}
    for query, size in {"p": 90_000, "q": 10, "r": 70_000, "s": 65_536}.items():
        scores[query] = {f"d{doc}": float(score) for doc, score in enumerate(generator.integers(0, 50_000, size))}
        judged = generator.choice(100_000, 500, replace=False)
        grades[query] = {f"d{doc}": int(doc) % 4 for doc in judged}
    agrees(scores, grades)


@pytest.mark.parametrize("seed", range(20))
def test_prime_measures_agree_with_ir_measures(seed):
    """AP' and P' with relevant_from 2 are AP(rel=2, judged_only=True) and P(rel=2, judged_only=True)@10."""
    scores, grades = random_case(1000 + seed)
    theirs = {
        "nDCG'": ir_measures.nDCG(judged_only=True), "nDCG'@5": ir_measures.nDCG(judged_only=True) @ 5,
        "AP'": ir_measures.AP(rel=2, judged_only=True), "P'@10": ir_measures.P(rel=2, judged_only=True) @ 10,
        "RR'": ir_measures.RR(rel=2, judged_only=True), "AP": ir_measures.AP(rel=2), "Bpref": ir_measures.Bpref(rel=2),
    }  # fmt: skip
    names = {measure: name for name, measure in theirs.items()}
    found = {(names[m.measure], m.query_id): m.value for m in ir_measures.iter_calc(list(names), grades, scores)}
    expected = {(name, query): found.get((name, query), 0.0) for name in theirs for query in grades}
    close(numbers(quietly(run_of(scores), qrels_of(grades), theirs, relevant_from=2)), expected)


@pytest.mark.parametrize("seed", range(10))
def test_judged_at_k_agrees_with_ir_measures_without_ties(seed):
    """But for negative grades, which ir_measures counts as judgements, and prime measures do not."""
    _, grades = random_case(2000 + seed)
    generator = np.random.default_rng(seed)
    scores = {query: {f"d{d}": float(s) for s, d in enumerate(generator.permutation(30)[: 1 + n])}
              for n, query in enumerate(grades)}  # fmt: skip
    theirs = {ir_measures.Judged @ 3: "Judged@3", ir_measures.Judged @ 10: "Judged@10", ir_measures.Judged: "Judged"}
    kept = {query: {doc: grade for doc, grade in given.items() if grade >= 0} for query, given in grades.items()}
    found = {(theirs[m.measure], m.query_id): m.value for m in ir_measures.iter_calc(list(theirs), kept, scores)}
    expected = {(name, query): found.get((name, query), 0.0) for name in theirs.values() for query in grades}
    close(numbers(quietly(run_of(scores), qrels_of(grades), theirs.values())), expected)


@pytest.mark.parametrize("seed", range(10))
def test_rr_at_k_is_rr_of_the_run_cut_at_k(seed):
    """trec_eval has no RR@k, and ir_measures takes it from a tool that breaks ties differently."""
    scores, grades = random_case(3000 + seed)
    run, qrels = run_of(scores), qrels_of(grades)
    for k in (1, 2, 5):
        short = cut_run(run, k).astype({"query_id": "str", "doc_id": "str"})
        shorter = {query: dict(zip(part.doc_id, part.score, strict=True)) for query, part in short.groupby("query_id")}
        close(numbers(quietly(run, qrels, f"RR@{k}")), oracle(shorter, grades, {f"RR@{k}": "recip_rank"}))


def test_measures_by_hand():
    """Ranking a b c d e; a unjudged, b 0, c 3, d 1; one relevant document, x (1), is not returned."""
    run = run_of({"q": {"a": 5, "b": 4, "c": 3, "d": 2, "e": 1}})
    qrels = qrels_of({"q": {"b": 0, "c": 3, "d": 1, "x": 1}})
    ideal = 3 / 1 + 1 / np.log2(3) + 1 / 2
    expected = {
        "nDCG": (3 / 2 + 1 / np.log2(5)) / ideal,
        "nDCG@3": (3 / 2) / ideal,
        "nDCG'": (3 / np.log2(3) + 1 / 2) / ideal,
        "AP": (1 / 3 + 2 / 4) / 3,
        "AP'": (1 / 2 + 2 / 3) / 3,
        "P@4": 2 / 4,
        "P'@10": 2 / 10,
        "R@3": 1 / 3,
        "RR": 1 / 3,
        "RR'": 1 / 2,
        "RR@2": 0.0,
        "Success@3": 1.0,
        "Success@2": 0.0,
        "Bpref": 0.0,  # one document judged not relevant stands before both, and there is no other
        "Judged@3": 2 / 3,
        "Judged": 3 / 5,
        "Judged@10": 3 / 5,
        "Rank": 3.0,
    }
    values = evaluate(run, qrels, expected)
    assert numbers(values) == pytest.approx({(name, "q"): value for name, value in expected.items()}, abs=1e-15)


def test_inferred_ap_equals_ap_where_the_whole_pool_is_judged_and_estimates_it_from_a_sample():
    """On the whole pool up to trec_eval's smoothing; the mean over samples of half the pool is near AP."""
    generator = np.random.default_rng(3)
    docs, sampled = [f"d{n:03}" for n in range(200)], []
    scores = {"q": {doc: float(200 - n) for n, doc in enumerate(docs)}}
    grades = {"q": {doc: int(generator.random() < 0.6 / (1 + n / 20)) for n, doc in enumerate(docs)}}
    whole = numbers(evaluate(run_of(scores), qrels_of(grades), ["AP", "infAP"]))
    assert whole["infAP", "q"] == pytest.approx(whole["AP", "q"], abs=1e-4)
    for _ in range(100):
        drawn = {doc: grade if generator.random() < 0.5 else -1 for doc, grade in grades["q"].items()}
        sampled.append(evaluate(run_of(scores), qrels_of({"q": drawn}), ["infAP", "AP"]).value.to_numpy())
    found, naive = np.mean(sampled, axis=0)
    assert found == pytest.approx(whole["AP", "q"], abs=0.01) and naive < whole["AP", "q"] - 0.05


def test_rank_biased_precision_and_its_residual_by_hand():
    """Ranking a b c d; b relevant, c not, a and d unjudged; p = 0.5. Judging a and d can add their weights at most."""
    run, qrels = run_of({"q": {"a": 4, "b": 3, "c": 2, "d": 1}}), qrels_of({"q": {"b": 1, "c": 0, "x": 1}})
    found = numbers(evaluate(run, qrels, ["RBP(p=0.5)", "RBPresidual(p=0.5)", "RBP(p=0.5)@1", "RBPresidual(p=0.5)@2",
                                          "RBP'(p=0.5)", "RBP"]))  # fmt: skip
    assert found == pytest.approx({
        ("RBP(p=0.5)", "q"): 1 / 4, ("RBPresidual(p=0.5)", "q"): 1 - 1 / 4 - 1 / 8, ("RBP(p=0.5)@1", "q"): 0.0,
        ("RBPresidual(p=0.5)@2", "q"): 3 / 4, ("RBP'(p=0.5)", "q"): 1 / 2, ("RBP(p=0.8)", "q"): 0.2 * 0.8,
    }, abs=1e-15)  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_the_residual_is_how_far_rbp_rises_when_all_unjudged_documents_turn_out_relevant(seed):
    """An endless ranking of relevant documents would reach the sum of both."""
    scores, grades = random_case(4000 + seed)
    grades = {query: {doc: max(grade, 0) for doc, grade in of.items()} for query, of in grades.items()}
    run = run_of(scores)
    full = {query: {doc: 1 for doc in scores.get(query, {})} | of for query, of in grades.items()}
    names = ["RBP(p=0.7)", "RBPresidual(p=0.7)"]
    low, residual = quietly(run, qrels_of(grades), names).value.to_numpy().reshape(2, -1)
    high = quietly(run, qrels_of(full), names[:1]).value.to_numpy()
    tail = np.array([0.7 ** len(scores.get(query, {})) for query in sorted(grades)])
    np.testing.assert_allclose(low + residual, high + tail, atol=1e-12)


def test_err_by_hand_and_with_the_highest_relevance_of_the_card():
    """Grades 3, 0, 1 of at most 3: stops with 7/8, 0, 1/8; a card that knows grade 4 halves both."""
    run, qrels = run_of({"q": {"a": 3, "b": 2, "c": 1}}), qrels_of({"q": {"a": 3, "b": 0, "c": 1}})
    assert evaluate(run, qrels, ["ERR", "ERR@2"]).value.tolist() == [7 / 8 + (1 - 7 / 8) * 1 / 8 / 3, 7 / 8]
    graded = collection(qrels.replace({"a": "d001", "b": "d002", "c": "d003"}))
    graded.card.relevance_levels = [0, 1, 2, 3, 4]
    renamed = run.replace({"a": "d001", "b": "d002", "c": "d003"})
    assert evaluate(renamed, graded, "ERR").value.item() == 7 / 16 + (1 - 7 / 16) * 1 / 16 / 3


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl script")
@pytest.mark.parametrize("seed", range(4))
def test_err_agrees_with_gdeval(seed):
    """On grades up to 4, which gdeval takes for granted; it prints five digits."""
    generator = np.random.default_rng(seed)
    scores, grades = {}, {}
    for number in range(20):
        found, judged = (generator.choice(40, 25, replace=False).tolist() for _ in range(2))
        scores[str(number)] = {f"d{doc:02}": int(generator.integers(0, 9)) for doc in found}
        grades[str(number)] = {f"d{doc:02}": int(generator.integers(-1, 5)) for doc in judged} | {"top": 4}
    theirs = {(f"ERR@{k}", m.query_id): m.value for k in (3, 20)
              for m in ir_measures.iter_calc([ir_measures.ERR @ k], grades, scores)}  # fmt: skip
    ours = numbers(quietly(run_of(scores), qrels_of(grades), ["ERR@3", "ERR@20"]))
    assert ours == pytest.approx(theirs, abs=5.1e-6)


def test_a_group_of_documents_is_found_when_one_of_its_members_is():
    """Two groups of q share document b, p has one; a sample of the queries needs no groups of the others."""
    qrels = qrels_of({"q": {"d001": 1, "d002": 1, "d003": 1}, "p": {"d002": 1}})
    rows = [("q", "1", "d001"), ("q", "1", "d002"), ("q", "2", "d002"), ("q", "3", "d003"), ("p", "1", "d002")]
    grouped = collection(qrels)
    grouped.groups = pd.DataFrame(rows, columns=["query_id", "group", "doc_id"])
    run = run_of({"q": {"d009": 9, "d002": 8, "d003": 7}, "p": {"d001": 1}})
    found = numbers(quietly(run, grouped, ["GroupR@1", "GroupR@2", "GroupR@3"]))
    assert [found[f"GroupR@{k}", "q"] for k in (1, 2, 3)] == [0, 2 / 3, 1] and found["GroupR@3", "p"] == 0
    grouped.qrels = qrels[qrels.query_id == "q"]
    assert numbers(quietly(run, grouped, "GroupR@2")) == {("GroupR@2", "q"): 2 / 3}
    with pytest.raises(MirblabError, match=r"a collection with groups of documents, in its file groups\.tsv"):
        quietly(run, qrels, "GroupR@2")
    with pytest.raises(MirblabError, match="GroupR@2 has no ceiling.*use R@2"):
        ceiling(run, grouped, "GroupR@2", 5)


def test_a_query_succeeds_when_each_of_its_groups_is_found():
    """By hand: q has the groups {1, 2}, {2, 4} and {3}; p's one group is not found, and o, which has none, fails."""
    qrels = qrels_of({"q": {"d001": 1, "d002": 1, "d003": 1, "d004": 1}, "p": {"d002": 1}, "o": {"d001": 1}})
    rows = [("q", "a", "d001"), ("q", "a", "d002"), ("q", "b", "d002"), ("q", "b", "d004"), ("q", "c", "d003"),
            ("p", "a", "d002")]  # fmt: skip
    grouped = collection(qrels)
    grouped.groups = pd.DataFrame(rows, columns=["query_id", "group", "doc_id"])
    ranking = {"d009": 9, "d001": 8, "d003": 7, "d004": 6, "d002": 5}
    run = run_of({"q": ranking, "p": {"d001": 1}, "o": {"d001": 1}})
    found = numbers(quietly(run, grouped, [*(f"GroupSuccess@{k}" for k in range(1, 6)), "GroupR@3", "Success@2"]))
    assert [found[f"GroupSuccess@{k}", "q"] for k in range(1, 6)] == [0, 0, 0, 1, 1]  # d004 stands for the group b
    assert found["GroupR@3", "q"] == 2 / 3 and found["Success@2", "q"] == 1
    assert found["GroupSuccess@5", "p"] == found["GroupSuccess@5", "o"] == 0 and found["Success@2", "o"] == 1
    with pytest.raises(MirblabError, match=r"GroupSuccess needs a collection with groups of documents"):
        quietly(run, qrels, "GroupSuccess@2")
    with pytest.raises(MirblabError, match="GroupSuccess@2 has no ceiling.*use Success@2"):
        ceiling(run, grouped, "GroupSuccess@2", 5)


def test_relevant_from_moves_binary_measures_and_not_ndcg():
    run, qrels = run_of({"q": {"a": 2, "b": 1}}), qrels_of({"q": {"a": 1, "b": 2}})
    low, high = (numbers(evaluate(run, qrels, ["nDCG", "RR", "Bpref"], relevant_from=level)) for level in (1, 2))
    assert low["RR", "q"] == 1.0 and high["RR", "q"] == 0.5
    assert low["Bpref", "q"] == 1.0 and high["Bpref", "q"] == 0.0
    assert low["nDCG", "q"] == high["nDCG", "q"]


def test_a_negative_relevance_gains_nothing_and_is_no_judgement():
    run, qrels = run_of({"q": {"a": 2, "b": 1}}), qrels_of({"q": {"a": -1, "b": 1}})
    found = numbers(evaluate(run, qrels, ["nDCG", "nDCG'", "RR'", "Bpref", "Judged@2"]))
    assert found == pytest.approx({("nDCG", "q"): 1 / np.log2(3), ("nDCG'", "q"): 1, ("RR'", "q"): 1, ("Bpref", "q"): 1,
                                   ("Judged@2", "q"): 0.5})  # fmt: skip


def test_queries_that_score_0_are_counted_and_named():
    run = run_of({"q1": {"a": 1}, "q3": {"a": 1}, "q9": {"a": 1}})
    qrels = qrels_of({"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 0}, "q4": {"b": 0}})
    with pytest.warns(QueryWarning) as caught:
        values = evaluate(run, qrels, ["RR", "nDCG", "Judged@1"])
    assert [str(warning.message) for warning in caught] == [
        "2 of 4 queries are not in the run and score 0: 'q2', 'q4'",
        "2 of 4 queries have no document of relevance 1 or more and score 0: 'q3', 'q4'",
    ]
    assert caught[0].filename == __file__
    assert values.attrs == {"not_in_run": ["q2", "q4"], "without_relevant": ["q3", "q4"], "not_judged": 1,
                            "relevant_from": 1}  # fmt: skip
    assert values.query_id.tolist() == ["q1", "q2", "q3", "q4"] * 3
    assert values.value.tolist() == [1, 0, 0, 0] + [1, 0, 0, 0] + [1, 0, 1, 0]
    run.attrs["system"] = "bm25"
    with pytest.warns(QueryWarning) as caught:
        evaluate(run, qrels, ["RR"])
    assert [str(warning.message)[:10] for warning in caught] == ["bm25: 2 of", "2 of 4 que"]


def test_no_warning_when_nothing_is_missing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(run_of({"q": {"a": 1}}), qrels_of({"q": {"a": 1}}), ["RR"])
        evaluate(run_of({"q": {"a": 1}}), qrels_of({"q": {"a": 1}}), ["nDCG"], relevant_from=2)


def test_one_binary_measure_is_enough_to_count_queries_by_its_limit():
    run, qrels = run_of({"q": {"a": 1}}), qrels_of({"q": {"a": 1}})
    with pytest.warns(QueryWarning, match="1 of 1 query has no document of relevance 2 or more and scores 0: 'q'"):
        values = evaluate(run, qrels, ["nDCG", "RR"], relevant_from=2)
    assert values.value.tolist() == [1, 0] and values.attrs["without_relevant"] == ["q"]


def test_a_note_of_queries_that_score_0_stands_only_with_measures_by_which_they_do():
    """A relevance of 1 gains in nDCG where AP counts from 2; a rank is never 0, nor need the judged share be."""
    qrels = qrels_of({"p": {"a": 1}, "q": {"a": 2}, "r": {"a": 0}})
    run = run_of({"p": {"a": 1}, "q": {"a": 1}, "r": {"a": 1}})
    values = quietly(run, qrels, ["nDCG", "AP", "Judged@1", "Rank"], relevant_from=2)
    assert values.drop_duplicates("measure").note.tolist() == [
        "1 of 3 queries has no document of relevance 1 or more and scores 0: 'r'",
        "2 of 3 queries have no document of relevance 2 or more and score 0: 'p', 'r'",
        "",
        "",
    ]


def test_an_empty_run_scores_0_everywhere():
    values = quietly(run_of({}), qrels_of({"p": {"a": 1}, "q": {"b": 1}}), [*ORACLE, *PRIMES, "Judged@10"])
    assert len(values) == 2 * 27 and (values.value == 0).all()
    assert values.attrs["not_in_run"] == ["p", "q"]


def test_no_judgements_give_no_values_and_a_warning():
    with pytest.warns(QueryWarning, match="no query is judged, so that there is no value"):
        assert len(evaluate(run_of({"q": {"a": 1}}), qrels_of({}), ["RR", "nDCG'"])) == 0


def collection(qrels, n_docs=100, relevant_from=1):
    """Return what evaluate() knows of a collection."""
    ids = pd.Index([f"d{number:03}" for number in range(n_docs)])
    return SimpleNamespace(name="mini", qrels=qrels, doc_ids=ids, card=SimpleNamespace(relevant_from=relevant_from))


def test_a_collection_gives_its_name_and_its_limit():
    qrels = qrels_of({"q": {"d001": 1, "d002": 2}})
    run = run_of({"q": {"d001": 2, "d002": 1}})
    run.attrs = {"system": "bm25", "collection": "another"}
    values = evaluate(run, collection(qrels, relevant_from=2), "RR")
    assert values.iloc[0].to_dict() == {"system": "bm25", "collection": "mini", "measure": "RR", "query_id": "q",
                                        "value": 0.5}  # fmt: skip
    assert evaluate(run, collection(qrels, relevant_from=2), ["RR"], relevant_from=1).value.item() == 1.0


def test_a_search_that_was_less_deep_than_a_cutoff_is_said():
    """Ten documents of each query say nothing certain about the first twenty; all documents do, however few."""
    c = lab.load("mini-qa").sample(20, 0)
    shallow = lab.system("bm25").search(c, depth=10)
    with pytest.warns(
        QueryWarning, match="bm25: most lists of the run end after 10 documents, before the cutoff of R@20"
    ):
        lab.evaluate(shallow, c, ["nDCG@10", "R@20"])
    few = c.sample(20, 0, n_documents=25)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lab.evaluate(shallow, c, ["nDCG@10", "AP"])
        lab.evaluate(lab.system("minilm").search(few), few, ["nDCG@10", "R@100"])


@pytest.mark.filterwarnings("ignore::mirblab.evaluation.measures.QueryWarning")
@pytest.mark.parametrize("name", ["mini-qa", "mini-wfb", "mini-mathlib", "mini-mse-dup", "mini-pairs"])
def test_a_large_run_is_evaluated_some_queries_at_a_time(name, monkeypatch):
    """Whatever the size of a block, every byte of the values, the notes and the warning is the same."""
    bundled = lab.load(name)
    run = lab.system("bm25").search(bundled, depth=50)
    names = [*ORACLE, *PRIMES, "Rank", "Judged@10", "ERR@20", "RBP", "RBPresidual"]
    uneven = run[(run["rank"] < 4) | (run.query_id.cat.codes == 1)]
    shuffled = run.drop(columns="rank").sample(frac=1, random_state=0)
    seen = []
    monkeypatch.setattr(judged_ranks, "order_run", lambda block: seen.append(len(block)) or order_run(block))
    for case, qrels in ((run, bundled), (uneven, bundled.qrels), (shuffled, bundled)):
        monkeypatch.setattr(runs, "BLOCK_ROWS", len(run))
        whole, top = evaluate(case, qrels, names), ceiling(case, qrels, "nDCG@10", 5)
        for n_rows in (1, 7, 1000):
            monkeypatch.setattr(runs, "BLOCK_ROWS", n_rows)
            seen.clear()
            values = evaluate(case, qrels, names)
            assert len(seen) == 1 if case is shuffled else max(seen) < n_rows + 51
            pd.testing.assert_frame_equal(values, whole)
            assert values.value.to_numpy().tobytes() == whole.value.to_numpy().tobytes()
            assert values.attrs == whole.attrs
            pd.testing.assert_frame_equal(ceiling(case, qrels, "nDCG@10", 5), top)


def test_rank_of_what_is_not_found():
    """The number of documents of a collection, or one more than the longest ranking."""
    qrels = qrels_of({"p": {"d001": 1}, "q": {"d001": 1}, "r": {"d001": 1}})
    run = run_of({"p": {"d000": 3, "d001": 2, "d002": 1}, "q": {"d000": 1}})
    assert quietly(run, qrels, "Rank").value.tolist() == [2, 4, 4]
    assert quietly(run, collection(qrels), "Rank").value.tolist() == [2, 100, 100]


def test_ids_may_be_numbers_and_categories_may_differ():
    """The run's categories may be more, fewer or other ones than those of the qrels."""
    generator = np.random.default_rng(5)
    scores, grades = random_case(5)
    run, qrels = order_run(run_of(scores)), qrels_of(grades)
    expected = numbers(quietly(run_of(scores), qrels, list(ORACLE)))
    more = pd.Index(sorted({*run.doc_id, *qrels.doc_id, *[f"d{n}" for n in range(5000)]}))
    fewer = sorted(set(qrels.doc_id))
    wide = run.assign(doc_id=run.doc_id.cat.set_categories(more))
    cases = [
        (wide, qrels),
        (run, qrels.assign(doc_id=pd.Categorical(qrels.doc_id, more))),
        (wide, qrels.assign(doc_id=pd.Categorical(qrels.doc_id, more))),
        (run, qrels.assign(doc_id=pd.Categorical(qrels.doc_id, fewer))),
        (run.sample(frac=1, random_state=1), qrels.iloc[generator.permutation(len(qrels))]),
    ]
    for other_run, other_qrels in cases:
        assert numbers(quietly(other_run, other_qrels, list(ORACLE))) == expected
    frame = pd.DataFrame({"query_id": [1, 1], "doc_id": [10, 9], "score": [1.0, 1.0]})
    assert evaluate(frame, pd.DataFrame({"query_id": [1], "doc_id": [9], "relevance": [1]}), "RR").value.item() == 1.0


def test_broken_qrels_are_refused():
    run = run_of({"q": {"a": 1}})
    with pytest.raises(MirblabError, match="missing relevance; found query_id, doc_id, score"):
        evaluate(run, run, "RR")
    twice = pd.concat([qrels_of({"q": {"b": 1, "a": 1}}), qrels_of({"q": {"a": 0}})])
    with pytest.raises(MirblabError, match="judge 1 pair again, the first query 'q', document 'a'"):
        evaluate(run, twice, "RR")
    with pytest.raises(MirblabError, match=r"whole numbers; found 0\.5"):
        evaluate(run, qrels_of({"q": {"a": 0.5}}), "RR")
    with pytest.raises(MirblabError, match="relevant_from is at least 1"):
        evaluate(run, qrels_of({"q": {"a": 1}}), "RR", relevant_from=0)


@pytest.mark.parametrize("text", ["nDCG@10", "nDCG", "nDCG'", "nDCG'@10", "AP", "AP'", "AP@100", "P@10", "P'@10",
                                  "R@5", "Bpref", "RR", "RR@10", "RR'", "Judged@10", "Rank", "Success@1", "Rprec",
                                  "infAP", "ERR@20", "RBP(p=0.8)", "RBP(p=0.95)@10", "RBP'(p=0.5)",
                                  "RBPresidual(p=0.8)", "GroupR@10", "GroupSuccess@10"])  # fmt: skip
def test_names_are_read_and_written_alike(text):
    assert str(parse_measure(text)) == text


@pytest.mark.parametrize(
    ("given", "name"),
    [("ndcg@10", "nDCG@10"), ("NDCG'", "nDCG'"), ("nDCG′", "nDCG'"), ("MAP", "AP"), ("MAP'", "AP'"), ("bpref", "Bpref"),
     ("MRR@10", "RR@10"), ("Recall@5", "R@5"), ("p_10", "P@10"), ("ndcg_cut_10", "nDCG@10"), ("recip_rank", "RR"),
     ("success_5", "Success@5"), ("map_cut_100", "AP@100"), ("Hit@20", "Success@20"), ("infap", "infAP"),
     ("RPrec", "Rprec"), ("rbp", "RBP(p=0.8)"), ("RBP(p=.5)", "RBP(p=0.5)")],
)  # fmt: skip
def test_names_of_others_are_understood(given, name):
    assert str(parse_measure(given)) == name


def test_measures_of_ir_measures_are_understood():
    """They are given as objects; one with settings that no measure here has is refused."""
    given = [ir_measures.nDCG @ 10, ir_measures.RR, ir_measures.P @ 5, ir_measures.Bpref, ir_measures.RBP(p=0.9) @ 3]
    assert [str(parse_measure(each)) for each in given] == ["nDCG@10", "RR", "P@5", "Bpref", "RBP(p=0.9)@3"]
    with pytest.raises(MirblabError, match=r"no measure 'P\(rel=2\)@5'"):
        parse_measure(ir_measures.P(rel=2) @ 5)


def test_a_function_of_ones_own_is_a_measure():
    """It gets the grades by rank, NaN for an unjudged document, and all judged grades; RR by hand equals RR."""

    def by_hand(ranked, judged):
        relevant = np.flatnonzero(ranked >= 1)
        return 1 / (relevant[0] + 1) if len(relevant) else 0.0

    def n_relevant(ranked, judged):
        return (judged >= 1).sum()

    scores, grades = random_case(7)
    run, qrels = run_of(scores), qrels_of(grades)
    values = quietly(run, qrels, [by_hand, "RR", n_relevant]).pivot(index="query_id", columns="measure", values="value")
    assert values.by_hand.tolist() == values.RR.tolist()
    assert values.n_relevant.to_dict() == {query: sum(g >= 1 for g in of.values()) for query, of in grades.items()}
    assert quietly(run, qrels, by_hand).measure.unique().tolist() == ["by_hand"]


def test_a_function_without_a_value_is_refused():
    """Otherwise a mean would be one of fewer queries in silence."""

    def share_found(ranked, judged):
        return np.float64(len(ranked)) / len(ranked) if len(ranked) else np.nan

    run, qrels = run_of({"q1": {"a": 1.0}}), qrels_of({"q1": {"a": 1}, "q2": {"a": 1}})
    with pytest.raises(MirblabError, match=r"'share_found' is nan for query 'q2' \(not finite for 1 of 2 queries"):
        quietly(run, qrels, share_found)


@pytest.mark.parametrize("run", ["bm25", None, ["a"]])
def test_a_run_is_a_table(run):
    """The name of a system is none."""
    with pytest.raises(MirblabError, match=r"evaluate wants a run, as lab\.system\(NAME\)\.search\(collection\)"):
        evaluate(run, qrels_of({"q": {"a": 1}}), "AP")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("nDCG@10'", "nDCG'@10"), ("P", "P@10"), ("Bpref@10", "Bpref"), ("Bpref'", "Bpref"),
     ("Judged'@5", "Judged@5"), ("RBPresidual'", "RBPresidual(p=0.8)"), ("AP(p=0.5)", "RBP(p=0.8)"),
     ("RBP(p=2)", "RBP(p=0.8)"), ("R", "R@10"), ("AP@0", "AP"), ("mpa", "AP")],
)  # fmt: skip
def test_wrong_names_get_a_suggestion(wrong, right):
    with pytest.raises(MirblabError) as caught:
        parse_measure(wrong)
    assert f"'{wrong}'" in str(caught.value) and f"'{right}'" in str(caught.value)


@pytest.mark.parametrize("wrong", ["", "@10", "xyzzy", "nDCG@-1", "nDCG @10", "nDCG@1.5", "nDCG@10@5", "nDCG''"])
def test_nonsense_is_refused_with_what_is_known(wrong):
    with pytest.raises(MirblabError, match="no measure .*; found nDCG, AP, P@k, R@k"):
        parse_measure(wrong)


def test_measures_may_be_given_as_objects_and_only_once():
    run, qrels = run_of({"q": {"a": 1}}), qrels_of({"q": {"a": 1}})
    assert evaluate(run, qrels, [Measure("AP"), "P@1"]).measure.tolist() == ["AP", "P@1"]
    with pytest.raises(MirblabError, match="each measure once; found AP, AP"):
        evaluate(run, qrels, ["AP", "AP"])


@pytest.mark.parametrize(
    "measure", ["nDCG@3", "AP", "AP'", "RR", "Bpref", "P@5", "R@5", "nDCG'", "RBP", "ERR@5", "Rprec"]
)
def test_the_ceiling_is_what_the_best_of_all_orders_reaches(measure):
    """A run whose first documents are scored by their relevance has the value that is promised."""
    scores, grades = random_case(31)
    run, qrels = run_of(scores), qrels_of(grades)
    ranked = order_run(run)
    names = ranked.astype({"query_id": "str", "doc_id": "str"})
    best = [grades.get(query, {}).get(doc, -9) for query, doc in zip(names.query_id, names.doc_id, strict=True)]
    reranked = names.assign(score=np.where(names["rank"] <= 6, best, -9.0 - names["rank"]))
    expected = quietly(reranked, qrels, measure).value.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QueryWarning)
        values = ceiling(run, qrels, measure, 6)
    assert values.value.tolist() == pytest.approx(expected, abs=1e-15)
    assert (values.value >= quietly(run, qrels, measure).value - 1e-15).all()
    assert values.system.unique().tolist() == ["run (ceiling 6)"]


def test_mean_keeps_order_and_counts_queries():
    run = run_of({"p": {"a": 2, "b": 1}, "q": {"a": 2, "b": 1}})
    run.attrs["system"] = "s"
    values = evaluate(run, qrels_of({"p": {"a": 1}, "q": {"b": 1}}), ["RR", "AP", "P@1"])
    assert mean(values).to_dict("list") == {"system": ["s"] * 3, "collection": [""] * 3, "measure": ["RR", "AP", "P@1"],
                                            "value": [0.75, 0.75, 0.5], "n_queries": [2, 2, 2]}  # fmt: skip


def test_the_mean_counts_the_values():
    """What is missing is no value."""
    values = pd.DataFrame({"system": "s", "collection": "c", "measure": "AP", "query_id": ["p", "q"]})
    assert mean(values.assign(value=[1.0, np.nan]))[["value", "n_queries"]].values.tolist() == [[1.0, 1]]


def test_a_run_of_another_collection_is_refused():
    """Queries may have the same ids in both; a run that returns unjudged documents only is one all the same."""
    c = lab.load("mini-qa")
    run = run_of({str(c.query_ids[0]): {"elsewhere": 1.0}})
    with pytest.raises(MirblabError, match="no document of the run is one of mini-qa"):
        evaluate(run, c, "RR")
    judged = set(c.qrels[c.qrels.query_id == c.query_ids[0]].doc_id)
    unjudged = next(name for name in c.doc_ids if name not in judged)
    assert (evaluate(run_of({str(c.query_ids[0]): {unjudged: 1.0}}), c, "RR").value == 0).all()
