"""Pairs of similar statements: scores against a computation over all pairs, sides, copies, errors."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from mirblab.analysis.searching.similar_statements import (
    OtherSideRule,
    Statements,
    calibrate_pairs,
    judged_pairs,
    pair_scores,
    precision_of_pairs,
    similar,
)
from mirblab.core.errors import MirblabError
from mirblab.data.candidates import Candidates
from mirblab.data.collection import load_folder
from mirblab.encoders.encoding import encoder
from mirblab.retrieval.bm25 import IndexedCollection
from mirblab.retrieval.systems import search_options, system
from mirblab.sources.catalogue import load


@pytest.fixture
def notes(make_folder):
    """Return six statements, two of which are the same but for a full stop, and one query."""
    texts = [
        "Every finite integral domain is a field",
        "Every finite integral domain is a field.",
        "A domain with finitely many elements is a field",
        "Every field is an integral domain",
        "A continuous function on a compact space is bounded",
        "$x^2 + y^2 = z^2$ has integer solutions",
    ]
    corpus = [{"_id": f"s{number}", "text": text} for number, text in enumerate(texts)]
    folder = make_folder(corpus, [{"_id": "q", "text": "Compact sets are bounded"}], "q\ts4\t1\n")
    return load_folder(folder)


def test_scores_of_words_are_those_of_all_pairs(notes):
    """With as many neighbours as there are statements, a score is the mean of both quotients of BM25 scores."""
    statements = Statements.of(notes, None, queries=False)
    index = IndexedCollection.of(notes, **search_options(system("bm25").settings))
    texts, ids = notes.texts, list(notes.doc_ids)

    def bm25_score(query: int, document: int) -> float:
        return float(index.explain(texts[query], ids[document]).contribution.sum())

    expected = {}
    for left, right in combinations(range(len(texts)), 2):
        ways = [min(bm25_score(a, b) / bm25_score(a, a), 1.0) for a, b in ((left, right), (right, left))]
        if any(ways):
            expected[left, right] = sum(ways) / 2
    pairs = pair_scores(statements, system("bm25"), neighbours=5)
    scores = {(row.left, row.right): row.score for row in pairs.itertuples()}
    assert scores.keys() == expected.keys()
    assert scores == pytest.approx(expected, abs=1e-5)
    assert pairs.score.is_monotonic_decreasing


def test_scores_of_vectors_are_cosines(notes):
    """The score of two texts by an encoder is the cosine of their vectors, 0 where that is negative."""
    statements = Statements.of(notes, None, queries=False)
    vectors = encoder("minilm").vectors(notes.texts)
    cosines = np.clip(vectors @ vectors.T, 0, 1)
    pairs = pair_scores(statements, system("minilm"), neighbours=5)
    assert len(pairs) == 15
    for row in pairs.itertuples():
        assert row.score == pytest.approx(cosines[row.left, row.right], abs=1e-5)


def test_copies_are_left_out_unless_asked_for(notes):
    """The pair that differs by a full stop is named only with copies=True, and the table says how many there are."""
    first = similar(notes, by="bm25", n=1)
    assert set(first.frame[["left", "right"]].iloc[0]) != {"s0", "s1"}
    assert "1 pairs of nearly the same wording" in first.notes[1]
    assert set(similar(notes, by="bm25", n=1, copies=True).frame[["left", "right"]].iloc[0]) == {"s0", "s1"}


def test_pairs_of_two_collections_have_a_statement_of_either(notes):
    """Across collections no pair lies within one of them, whatever the kind of system."""
    for by in ("bm25", "minilm", "bm25+minilm"):
        frame = similar(notes, "mini-hol", by, n=500, copies=True).frame
        assert len(frame) and set(frame.left) <= set(notes.doc_ids)
        assert not set(frame.right) & set(notes.doc_ids)


def test_queries_are_statements_when_asked_for(notes):
    """With queries=True the query is paired with its nearest document."""
    frame = similar(notes, by="minilm", n=100, queries=True).frame
    assert ("s4", "q") in set(zip(frame.left, frame.right, strict=True))
    assert "q" not in set(similar(notes, by="minilm").frame.right)


def test_documents_that_answer_queries_are_named(notes):
    """They are no statements, so a note says whose they are; with the queries, or without such a collection, none."""
    said = "The documents of mini-stacks answer its queries"
    assert any(said in note for note in similar(notes, "mini-stacks", "bm25", n=1).notes)
    assert not any(said in note for note in similar(notes, "mini-stacks", "bm25", n=1, queries=True).notes)
    assert not any("answer" in note for note in similar(notes, by="bm25", n=1).notes)


def test_shared_terms_do_not_depend_on_how_many_pairs_are_shown():
    """The terms of the fewest texts come first, of all texts and not of those that are shown."""
    many, few = (similar("mini-pairs", by="bm25", n=n).frame for n in (40, 1))
    assert few.shared.iloc[0] == many.shared.iloc[0]


def test_shared_terms_are_words_of_the_left_text(notes):
    """As they are written there; a stem such as integr is no word."""
    frame = similar(notes, by="bm25").frame
    pair = frame[frame[["left", "right"]].isin(["s0", "s2"]).all(axis=1)].iloc[0]
    expected = {"finite": "finitely", "domain": "domain", "field": "field"}
    words = expected.keys() if pair.left == "s0" else expected.values()
    assert set(pair.shared.split(", ")) == set(words)


def test_fusion_is_the_weighted_mean_of_its_parts(notes):
    """Weights of a linear fusion weigh the scores of its parts."""
    statements = Statements.of(notes, None, queries=False)
    parts = [pair_scores(statements, system(name), 5).set_index(["left", "right"]).score for name in ("bm25", "minilm")]
    fused = pair_scores(statements, system("bm25+minilm@0.25,0.75"), 5).set_index(["left", "right"]).score
    both = parts[0].index.intersection(parts[1].index)
    expected = 0.25 * parts[0][both] + 0.75 * parts[1][both]
    assert np.allclose(fused[both], expected)


def test_other_side_rule_agrees_with_itself():
    """The mask over a block and the answer for pairs are the same."""
    rule = OtherSideRule(2, 2)
    mask = Candidates(5, (rule,)).allowed(np.arange(5))
    queries, docs = np.divmod(np.arange(25), 5)
    assert mask.ravel().tolist() == rule.permits(queries, docs).tolist()
    assert mask.sum() == 2 * 2 * 3
    kept = np.array([0, 2, 4])
    assert Candidates(5, (rule,)).of_documents(kept).allowed(np.arange(5)).tolist() == mask[:, kept].tolist()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"by": "bm25>maxsim"}, "cannot compare statements"),
        ({"by": "bm25-okapi"}, "cannot compare statements"),
        ({"n": 0}, "at least 1"),
        ({"neighbours": 0}, "at least 1"),
    ],
)
def test_errors_say_what_to_do(notes, arguments, words):
    """A system of another kind and numbers below one are refused."""
    with pytest.raises(MirblabError, match=words):
        similar(notes, **arguments)


def test_nothing_to_compare_is_an_error(make_folder):
    """A collection whose texts are all empty has no statement."""
    folder = make_folder([{"_id": "a", "text": ""}], [{"_id": "q", "text": "x"}], "q\ta\t1\n")
    with pytest.raises(MirblabError, match="no statement"):
        similar(load_folder(folder), by="bm25")


@pytest.fixture
def duplicates(make_folder):
    """Return two questions, of which the first has a duplicate, and four documents; one judgement says no."""
    corpus = [
        {"_id": "d0", "text": "Why is the square root of two irrational?"},
        {"_id": "d1", "text": "Prove that the number $\\sqrt 2$ is irrational"},
        {"_id": "d2", "text": "Every compact metric space is complete"},
        {"_id": "d3", "text": "Is a complete metric space compact?"},
    ]
    queries = [
        {"_id": "q0", "text": "Show that the square root of 2 is not rational, but irrational"},
        {"_id": "q1", "text": "Are compact metric spaces complete metric spaces?"},
    ]
    return load_folder(make_folder(corpus, queries, "q0\td0\t1\nq0\td1\t0\nq1\td2\t1\n"))


def test_judged_pairs_are_those_of_queries_and_documents(duplicates):
    """Each query is compared with the documents only; a judgement of 0 is False, none is missing."""
    pairs = judged_pairs(duplicates, "minilm")
    assert set(pairs.left) == {"q0", "q1"} and set(pairs.right) <= {"d0", "d1", "d2", "d3"}
    assert pairs.score.is_monotonic_decreasing and pairs.attrs["n_equivalent"] == 2
    judged = pairs.dropna().set_index(["left", "right"]).equivalent
    assert judged.to_dict() == {("q0", "d0"): True, ("q0", "d1"): False, ("q1", "d2"): True}
    assert len(pairs) == 8 and pairs.equivalent.isna().sum() == 5
    model = encoder("minilm")
    first, second = (model.vectors([text])[0] for text in (duplicates.query("q1"), duplicates.document("d2")))
    score = pairs[(pairs.left == "q1") & (pairs.right == "d2")].score.item()
    assert score == pytest.approx(float(first @ second), abs=1e-5)


def test_judged_pairs_are_those_of_documents_where_the_queries_are_among_them():
    """A pair of mini-pairs is judged in both directions and counts once."""
    pairs = judged_pairs("mini-pairs", "bm25")
    qrels = load("mini-pairs").relevant
    known = {frozenset(pair) for pair in zip(qrels.query_id.astype(str), qrels.doc_id.astype(str), strict=True)}
    assert pairs.attrs["n_equivalent"] == len(known) == len(qrels) / 2
    together = pairs[["left", "right"]].apply(frozenset, axis=1)
    assert together.is_unique
    assert together[pairs.equivalent.fillna(False).to_numpy()].tolist() == [pair for pair in together if pair in known]


def test_views_of_one_id_are_different_statements():
    """Query and document of one id with different texts are compared, not taken for one statement."""
    pairs = judged_pairs("mini-views-informal-signature", "bm25")
    own = pairs[pairs.left == pairs.right]
    assert len(own) and own.equivalent.all() and not pairs.equivalent.fillna(False)[pairs.left != pairs.right].any()


def test_copies_are_not_counted_as_found(make_folder):
    """A verbatim duplicate is neither offered nor expected, unless copies are asked for."""
    text = "The square root of two is an irrational number"
    corpus = [{"_id": "d", "text": text}, {"_id": "e", "text": "A tree with n nodes has n - 1 edges"}]
    collection = load_folder(make_folder(corpus, [{"_id": "q", "text": f"{text}."}], "q\td\t1\n"))
    assert judged_pairs(collection, "bm25").attrs["n_equivalent"] == 0
    with_copies = judged_pairs(collection, "bm25", copies=True)
    assert with_copies.attrs["n_equivalent"] == 1 and with_copies.equivalent.tolist() == [True]


PAIRS = pd.DataFrame(
    {
        "score": [0.95, 0.9, 0.85, 0.81, 0.8, 0.45, 0.41, 0.1],
        "equivalent": pd.array([True, True, None, False, True, None, None, True], "boolean"),
    }
)
PAIRS.attrs = {"system": "bm25", "collection": "notes"}


def test_precision_counts_unjudged_pairs_as_not_equivalent():
    """By hand; Wilson's interval of 2 of 4 is 0.5 ± 1.96 * sqrt(1/16 + 1.96²/64) / (1 + 1.96²/4)."""
    table = precision_of_pairs(PAIRS, [1, 4, 8, 9])
    assert table.n.tolist() == [1, 4, 8]  # of 9 pairs nothing is known
    assert table.equivalent.tolist() == [1, 2, 4] and table.unjudged.tolist() == [0, 1, 3]
    assert table.precision.tolist() == [1, 0.5, 0.5]
    z = 1.959964
    half = z * np.sqrt(1 / 16 + z**2 / 64) / (1 + z**2 / 4)
    assert (table.low[1], table.high[1]) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-6)
    assert (table.low[0], table.high[0]) == pytest.approx((1 / (1 + z**2), 1), abs=1e-6)
    assert table.system.tolist() == ["bm25"] * 3 and table.collection.tolist() == ["notes"] * 3


def test_calibration_bins_scores():
    """By hand; the upper end of a bin belongs to it, and bins without a pair have no row."""
    table = calibrate_pairs(PAIRS, 0.2)
    assert table.above.tolist() == [0.0, 0.4, 0.6, 0.8]
    assert table.n.tolist() == [1, 2, 1, 4] and table.equivalent.tolist() == [1, 0, 1, 2]
    assert table.unjudged.tolist() == [0, 2, 0, 1] and table.share.tolist() == [1, 0, 1, 0.5]
    assert table.score.tolist() == pytest.approx([0.1, 0.43, 0.8, 0.8775])
    assert calibrate_pairs(PAIRS, 1).share.tolist() == [0.5]


def test_no_pairs_give_empty_tables():
    """With the columns of others."""
    assert precision_of_pairs(PAIRS[:0]).empty and "precision" in precision_of_pairs(PAIRS[:0])
    assert calibrate_pairs(PAIRS[:0]).empty and "share" in calibrate_pairs(PAIRS[:0])


def test_wrong_numbers_of_pairs_and_bins_are_errors():
    """They say what was found."""
    with pytest.raises(MirblabError, match="at least 1, found 10, 0"):
        precision_of_pairs(PAIRS, [10, 0])
    for width in (0.3, 0, 2):
        with pytest.raises(MirblabError, match=f"found {width}"):
            calibrate_pairs(PAIRS, width)
    with pytest.raises(MirblabError, match="at least 1, found 0"):
        judged_pairs("mini-pairs", "bm25", neighbours=0)
