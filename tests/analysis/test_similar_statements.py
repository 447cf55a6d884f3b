"""Pairs of similar statements: scores against a computation over all pairs, sides, copies, errors."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from tiny_encoder import make_model, sentences

from mirblab.analysis.searching import similar_statements
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
from mirblab.data import parts, parts_writer
from mirblab.data.candidates import Candidates
from mirblab.data.collection import load_folder
from mirblab.data.near_duplicates import jaccard_similarity
from mirblab.encoders.encoding import encoder
from mirblab.retrieval import bm25, codes, dense
from mirblab.retrieval.bm25 import IndexedCollection
from mirblab.retrieval.systems import System, search_options, system
from mirblab.sources.catalogue import convert, load


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
    assert "1 pair of nearly the same wording is left out" in first.notes[1]
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


@pytest.fixture
def cut(monkeypatch):
    """Have parts of fifty documents in row groups of seven, and few texts, pairs and queries handled together."""
    for module, name, size in (
        (parts_writer, "PART_DOCS", 50), (parts_writer, "GROUP_DOCS", 7), (parts, "_BLOCK", 16), (bm25, "BLOCK", 16),
        (bm25, "TEXTS", 16),
        (similar_statements, "_READ", 16), (similar_statements, "_COMPARED", 13), (similar_statements, "_COUNTED", 16),
        (similar_statements, "_LOOKED_AT", 16), (dense, "CHUNK_DOCS", 64),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, size)
    monkeypatch.setattr(similar_statements, "_AT_ONCE", dict.fromkeys(("bm25", "structure", "dense"), 16))


def assert_same(one, other):
    """Check that two tables have the same bytes, notes included."""
    pd.testing.assert_frame_equal(one.frame, other.frame, check_exact=True)
    assert (one.caption, one.notes) == (other.caption, other.notes)


SYSTEMS = [
    "bm25", system("bm25", method="bm25+"), system("bm25", tokenizer="latex-ngrams"), "bm25q", "minilm", "structure",
    "bm25+minilm", "minilm+structure@0.3,0.7",
]  # fmt: skip


@pytest.mark.parametrize("by", SYSTEMS, ids=lambda by: getattr(by, "name", by))
def test_pairs_of_a_collection_in_parts_are_those_of_one_file(cut, tmp_path, by):
    """To the last bit, whatever compares, and with a collection in one file as the other."""
    one = load("mini-wfb" if "structure" in str(by) else "mini-pairs")
    other = load(convert(one.name, tmp_path / one.name))
    assert_same(similar(one, by=by, n=50), similar(other, by=by, n=50))
    few = load("mini-formula" if one.name == "mini-wfb" else "mini-bridges")
    assert_same(similar(few, one, by, n=50), similar(few, other, by, n=50))


@pytest.mark.parametrize("by", ["bm25", "structure"])
def test_blocks_of_queries_change_no_pair(monkeypatch, by):
    """Sixteen statements after the other find what all together find."""
    together = similar("mini-pairs", by=by)
    for name, size in (("_READ", 16), ("_COMPARED", 13), ("_AT_ONCE", {by: 16})):
        monkeypatch.setattr(similar_statements, name, size)
    assert_same(similar("mini-pairs", by=by), together)


@pytest.mark.parametrize("by", ["bm25", "minilm", "structure"])
def test_statements_in_parts_without_text_and_queries_are_treated_as_those_of_one_file(cut, make_folder, tmp_path, by):
    """Empty documents and queries are left out, a query that is a document stands once, one of its id alone twice."""
    texts = [f"For $x^{n} = {n % 3}$ a ring of order {n % 5} is flat" * (n % 4 > 0) for n in range(60)]
    corpus = [{"_id": f"s{n:02}", "title": f"Ring {n}" * (n % 8 == 0), "text": text} for n, text in enumerate(texts)]
    queries = [{"_id": "q", "text": texts[1] + " here"}, {"_id": "s02", "text": texts[2]}]
    queries += [{"_id": "s03", "text": "What of $x^3$?"}, {"_id": "t", "text": " "}]
    folder = make_folder(corpus, queries, "q\ts01\t1\ns02\ts05\t1\ns03\ts06\t1\nt\ts07\t1\n", 'name = "few"\n')
    one, other = load_folder(folder), load_folder(convert(folder, tmp_path / "parts"))
    for asked in (False, True):
        assert_same(similar(one, by=by, n=500, queries=asked), similar(other, by=by, n=500, queries=asked))
    statements = Statements.of(other, None, queries=True)
    assert statements.ids.tolist() == [f"s{n:02}" for n in range(60) if n % 4 or not n % 8] + ["q", "s03"]
    assert list(statements.texts) == list(Statements.of(one, None, queries=True).texts)
    pairs = [judged_pairs(collection, by) for collection in (one, other)]
    pd.testing.assert_frame_equal(*pairs, check_exact=True)
    assert pairs[0].attrs == pairs[1].attrs and set(pairs[1].left) == {"q", "s02", "s03"}


def test_few_texts_in_parts_are_in_memory_at_a_time(cut, tmp_path, monkeypatch, home):
    """Whatever is done with them, and BM25's index is the one that a run of all documents uses."""
    other = load(convert("mini-pairs", tmp_path / "pairs"))
    sizes, plain = list[int](), parts.DocumentTexts.at

    def watched(self, rows):
        found = plain(self, rows)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(parts.DocumentTexts, "at", watched)
    similar(other, by="bm25", n=10)
    assert sum(sizes) > 3 * len(other.texts) and max(sizes) <= 32
    system("bm25").search(other, 3)
    assert len(list(home.rglob("postings/*/manifest.json"))) == 1


@pytest.mark.parametrize("is_unit", [True, False])
def test_code_bits_find_the_nearest_by_codes(tmp_path, make_folder, monkeypatch, is_unit, home):
    """Scores are cosines also where an encoder's vectors have other lengths, whose codes are no others' then."""
    texts = sentences(120)
    corpus = [{"_id": f"s{number:03}", "text": text} for number, text in enumerate(texts)]
    collection = load_folder(make_folder(corpus, [{"_id": "q", "text": "ring"}], "q\ts001\t1\n"))
    folder = make_model(tmp_path / "tiny")
    if not is_unit:
        modules = json.loads((folder / "modules.json").read_text())
        (folder / "modules.json").write_text(json.dumps(modules[:-1]))
    monkeypatch.setattr(codes, "SMALL", 10)
    searched, plain = list[str](), codes.search

    def watched(queries, documents, **given):
        searched.append(type(documents).__name__)
        return plain(queries, documents, **given)

    monkeypatch.setattr(codes, "search", watched)
    vectors = encoder(folder).vectors(collection.texts)
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.allclose(lengths, 1, atol=1e-5) == is_unit
    settings = {"kind": "dense", "encoder": str(folder)}
    exact, coded = (
        pair_scores(Statements.of(collection, None, queries=False), System("tiny", "tiny", settings | bits), 5)
        for bits in ({}, {"code_bits": 2})
    )
    assert searched == ["ndarray", "CodedVectors"]
    cosines = (vectors[exact.left] * vectors[exact.right]).sum(axis=1) / lengths[exact.left] / lengths[exact.right]
    assert np.allclose(exact.score, np.clip(cosines, 0, 1), atol=1e-5)
    both = exact.merge(coded, on=["left", "right"])
    assert len(both) > 0.9 * len(exact)
    assert np.allclose(both.score_x, both.score_y, atol=2e-3)
    run = System("tiny", "tiny", settings | {"code_bits": 2}).search(collection, 5)
    assert len(run) == 5
    made = list(home.rglob("codes/*/*.safetensors"))
    assert len(made) == (1 if is_unit else 2)


def test_no_copy_is_missed(make_folder):
    """Texts that may be copies by their sketches include all that are, from a word to thousands of triples."""
    random = np.random.default_rng(0)
    texts = []
    for n_words in (1, 2, 3, 5, 8, 20, 60, 400, 2000):
        words = random.integers(0, 300, n_words).astype(str).tolist()
        for n_changed in (0, 1, 1, 2, n_words // 20, n_words // 12, n_words // 8):
            changed = list(words)
            for place in random.integers(0, n_words, n_changed).tolist():
                changed[place] = f"w{random.integers(9)}"
            texts.append(" ".join(changed))
    texts += ["a b c d e f", "a b c d e f g", "?", "! ? !", "...", " ... "]
    corpus = [{"_id": f"s{number:03}", "text": text} for number, text in enumerate(texts)]
    collection = load_folder(make_folder(corpus, [{"_id": "q", "text": "x"}], "q\ts001\t1\n"))
    left, right = np.triu_indices(len(texts), 1)
    is_copy = jaccard_similarity(texts, left, right) >= similar_statements.NEAR_VERBATIM
    is_copy |= (left == len(texts) - 2) & (right == len(texts) - 1)  # equal texts without a word
    statements = Statements.of(collection, None, queries=False)
    kept = statements.without_copies(pd.DataFrame({"left": left, "right": right}))
    assert kept.index.tolist() == np.flatnonzero(~is_copy).tolist()
    assert 30 < is_copy.sum() < 200


def test_an_interrupted_comparison_leaves_no_unfinished_file(cut, tmp_path, monkeypatch):
    """Ctrl-C while the index is written leaves what is counted, from which the next call goes on, and no more."""
    other = load(convert("mini-pairs", tmp_path / "pairs"))
    expected = similar(load("mini-pairs"), by="bm25")
    monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / "home"))

    def interrupt(*_given, **_named):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bm25.TermWeights, "weigh", interrupt)
        with pytest.raises(KeyboardInterrupt):
            similar(other, by="bm25")
    assert not [path for path in (tmp_path / "home").rglob("*") if ".partial" in path.name]
    assert_same(similar(other, by="bm25"), expected)


def test_structure_reads_prose_as_prose_where_the_other_side_is_formal():
    """Queries in English, documents in Lean: pairs have those queries that the search finds anything for.

    With the sides exchanged, the pairs and their scores are the same.
    """
    collection = load("mini-views-informal-signature")
    statements = Statements.of_queries(collection)
    pairs = similar_statements.pair_scores(statements, system("structure"), 500)
    found = system("structure").search(collection)
    asked = set(statements.ids_at(pairs.left.to_numpy()))
    assert asked == set(found.query_id.astype(str)) != set()

    n = statements.n_left or 0
    texts = [*statements.texts[n:], *statements.texts[:n]]
    ids = statements.ids[n:].append(statements.ids[:n])
    exchanged = replace(statements, ids=ids, texts=texts, n_left=len(texts) - n)
    others = similar_statements.pair_scores(exchanged, system("structure"), 500)
    others = others.assign(left=others.right - (len(texts) - n), right=others.left + n)
    both = pairs.merge(others, on=["left", "right"], how="outer")
    np.testing.assert_allclose(both.score_x, both.score_y, atol=1e-6)


def test_a_title_is_no_part_of_a_formal_statement(make_folder):
    """As in search: of a declaration's name only the parts are read, and of the text the statement."""
    statements = ["theorem t (a b : ℕ) : a + b = b + a", "∀ (s : Finset ℕ), s ⊆ s"]
    corpus = [{"_id": f"d{n}", "title": f"Foo.bar_{n} {n}", "text": text} for n, text in enumerate(statements, 1)]
    queries = [{"_id": "q", "text": statements[0]}]
    collection = load_folder(make_folder(corpus, queries, "q\td1\t1\n", card='name = "t"\nlanguage = "Lean"\n'))
    for one, n_left in ((Statements.of(collection, None, queries=False), 2), (Statements.of_queries(collection), 3)):
        indexed = one.by_structure()
        found = {part for part in indexed.documents.formulas if part[0] != "\0"}
        assert found == set(statements) and len(one.ids) == n_left
    pairs = similar_statements.pair_scores(one, system("structure"), 5)
    assert pairs.score.iloc[0] > 0.7


def test_a_collection_is_not_compared_with_itself(notes):
    """Whether it is named or loaded, each statement would be its own partner."""
    for left, right in (("mini-qa", load("mini-qa")), (load("mini-qa"), "mini-qa"), (notes, notes)):
        with pytest.raises(MirblabError, match="is given twice; give it once"):
            similar(left, right, by="bm25")
