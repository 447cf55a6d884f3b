"""Pairs of similar statements: scores against a computation over all pairs, sides, copies, errors."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mirblab.analysis.searching.similarity import OtherSideRule, Statements, pair_scores, similar
from mirblab.core.errors import MirblabError
from mirblab.data.candidates import Candidates
from mirblab.data.collection import load_folder
from mirblab.encoders.encoding import encoder
from mirblab.retrieval.bm25 import IndexedCollection
from mirblab.retrieval.systems import search_options, system


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
        frame = similar(notes, "mini-proofwiki", by, n=500, copies=True).frame
        assert len(frame) and set(frame.left) <= set(notes.doc_ids)
        assert not set(frame.right) & set(notes.doc_ids)


def test_queries_are_statements_when_asked_for(notes):
    """With queries=True the query is paired with its nearest document."""
    frame = similar(notes, by="minilm", n=100, queries=True).frame
    assert ("s4", "q") in set(zip(frame.left, frame.right, strict=True))
    assert "q" not in set(similar(notes, by="minilm").frame.right)


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
    rule = OtherSideRule(2)
    mask = Candidates(5, (rule,)).allowed(np.arange(5))
    queries, docs = np.divmod(np.arange(25), 5)
    assert mask.ravel().tolist() == rule.permits(queries, docs).tolist()
    assert mask.sum() == 2 * 2 * 3


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
