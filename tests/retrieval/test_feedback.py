"""RM3 and Rocchio agree with their formulas, worked by hand, and the restrictions hold in both of their searches."""

from __future__ import annotations

from collections import Counter
from math import log

import numpy as np
import pytest

import mirblab as lab
from mirblab.data.candidates import Candidates, ListRule, NotSelfRule
from mirblab.data.collection import Collection, load_folder
from mirblab.encoders.encoding import encoder
from mirblab.retrieval import bm25, feedback, systems
from mirblab.retrieval.bm25 import IndexedCollection
from mirblab.sources import catalogue

PLAIN = {"tokenizer": "words", "k1": 1.2, "b": 0.0}  # b = 0, so that a term once in a document gains 1 / 2.2
FILLERS = [f"filler{number} common" for number in range(36)]
DOCS = ["ring flat flat common", "ring module common", "module common", "flat common", *FILLERS]


@pytest.fixture
def build(make_folder):
    """Return a function that makes a collection of texts, documents d00, d01, ..., with one query."""

    def make(docs: list[str], query: str, query_id: str = "q0", card: str = "") -> Collection:
        corpus = [{"_id": f"d{number:02}", "title": "", "text": text} for number, text in enumerate(docs)]
        return load_folder(make_folder(corpus, [{"_id": query_id, "text": query}], f"{query_id}\td00\t1\n", card))

    return make


def search(collection: Collection, **options) -> dict[str, float]:
    """Return the scores of RM3 by document."""
    indexed = IndexedCollection.of(collection, **PLAIN)
    texts, rules = collection.query_texts, collection.candidates
    _, positions, scores = feedback.rm3(indexed, texts, depth=100, candidates=rules, **options)
    return dict(zip(collection.doc_ids[positions], scores.astype(float).tolist(), strict=True))


def test_a_relevance_model_by_hand():
    """Two documents of scores 6 and 3, two terms kept in each and in the whole."""
    # first: ring 3, flat 2 (set, once, is cut): shares 3/5 and 2/5, times 6: ring 3.6, flat 2.4
    # second: field 2 and, of ring and set with one each, ring, which comes first: 2/3 and 1/3, times 3: field 2, ring 1
    # ring 4.6, flat 2.4, field 2: field is cut, and 4.6 and 2.4 are divided by 7
    model = feedback.relevance_model([{"ring": 3, "flat": 2, "set": 1}, {"set": 1, "ring": 1, "field": 2}], [6, 3], 2)
    assert model == pytest.approx({"ring": 4.6 / 7, "flat": 2.4 / 7})
    assert feedback.relevance_model([{}, {"ring": 2}], [5.0, 1.0], 10) == {"ring": 1.0}  # a document without terms
    assert feedback.relevance_model([], [], 10) == {}


def test_a_mixed_query_by_hand():
    """ "of", which no document may have, still takes its share of the query, as in Anserini."""
    query = Counter("ring of ring set".split())  # shares 1/2, 1/4, 1/4
    mixed = feedback.mix_models(query, {"ring": 0.75, "flat": 0.25}, 0.6)
    assert mixed == pytest.approx({"ring": 0.3 + 0.3, "of": 0.15, "set": 0.15, "flat": 0.1})


def test_rm3_by_hand(build):
    """From the first search to the scores of the second."""
    # N = 40; ring, flat and module are in 2 documents each: idf = ln(1 + 38.5 / 2.5) = ln 16.4 for all three
    # First search for "ring": d00 and d01 score s = ln 16.4 / 2.2 each. "common" is in every document and is left out.
    # d00: flat 2/3, ring 1/3; d01: module 1/2, ring 1/2. Times s, summed: ring 5/6 s, flat 4/6 s, module 3/6 s.
    # The first two remain: ring 5/9, flat 4/9. Mixed half and half with the query (ring 1): ring 7/9, flat 2/9.
    idf = log(16.4)
    expected = {
        "d00": idf * (7 / 9 / 2.2 + 2 / 9 * 2 / 3.2),  # flat stands there twice: 2 / (2 + 1.2)
        "d01": idf * 7 / 9 / 2.2,
        "d03": idf * 2 / 9 / 2.2,
    }
    assert search(build(DOCS, "ring"), fb_docs=2, fb_terms=2) == pytest.approx(expected, rel=1e-6)


def test_the_weight_of_the_original_query_counts(build):
    """With 1 the ranking is that of BM25; with 0 only the documents' terms are searched."""
    c = build(DOCS, "ring unheard")
    first = bm25.search(c, depth=100, **PLAIN)
    only_query = search(c, fb_docs=2, original_weight=1.0)
    assert {doc: score for doc, score in only_query.items() if score > 0} == pytest.approx(
        {doc: score / 2 for doc, score in zip(first.doc_id, first.score, strict=True)}, rel=1e-6
    )  # half of the query is a term that no document has
    assert search(c, fb_docs=1, fb_terms=1, original_weight=0.0).keys() == {"d01", "d02"}  # of d01: module


def test_only_plain_and_rare_terms_are_added(build):
    """As in Anserini: 2 to 20 letters a to z or digits, in at most a tenth of the documents."""
    docs = [r"ring $x \le 1$ abcdefghijklmnopqrstuvwxz tenth common", *(["tenth common"] * 3), r"$\le$"]
    c = build([*docs, "x", "abcdefghijklmnopqrstuvwxz", *(["common"] * 33)], "ring")
    indexed = IndexedCollection.of(c, tokenizer="math")
    found = {
        filtered: feedback._feedback_terms(indexed, np.array([0]), filtered)[0].keys() for filtered in (True, False)
    }
    assert found[True] == {"ring", "tenth"}  # in 4 of 40
    assert found[False] == {"ring", "tenth", "x", "1", r"\le", "abcdefghijklmnopqrstuvwxz"}


def test_a_query_without_documents_returns_none(build):
    """Neither by its unknown terms nor by none at all."""
    assert search(build(DOCS, "unheard")) == {}
    assert search(build(DOCS, "unheard"), original_weight=0.0) == {}
    vectors = np.eye(3, dtype=np.float32)
    nothing = Candidates(3, (ListRule.from_pairs("none", np.array([], int), np.array([], int), 1, allow=True),))
    assert [len(column) for column in feedback.rocchio(vectors[:1], vectors, depth=3, candidates=nothing)] == [0, 0, 0]


def test_a_query_that_is_a_document_learns_nothing_from_itself(build):
    """With not-self its own text, which is returned first otherwise, adds no term and is not in the ranking."""
    docs = ["ring ring zeta", "ring flat", "zeta module", "flat common", *FILLERS]
    assert search(build(docs, "ring", "d00"), fb_docs=1).keys() == {"d00", "d01", "d02"}  # zeta, of d00 itself
    own = build(docs, "ring", "d00", 'candidates = "not-self"')
    assert own.candidates.names == ["not-self"]
    assert search(own, fb_docs=1).keys() == {"d01", "d03"}  # flat, of d01


@pytest.mark.parametrize("name", ["bm25~rm3", "minilm~rocchio", "bm25~rm3+minilm~rocchio"])
@pytest.mark.parametrize("collection", ["mini-premises", "mini-wfb", "mini-mse-dup"])
def test_what_is_excluded_is_never_returned(name, collection):
    """Whatever the rule of the collection: not the query itself, a list of judged documents, tags."""
    c = catalogue.load(collection)
    assert c.candidates.rules
    run = lab.system(name).search(c, 100)
    pairs = (run[column].cat.codes.to_numpy() for column in ("query_id", "doc_id"))
    assert len(run) and c.candidates.permits(*pairs).all()


@pytest.mark.parametrize("allow", [True, False])
def test_an_excluded_document_changes_no_score(allow):
    """The run over a restricted corpus is that over the corpus without what is excluded, but for its statistics."""
    rng = np.random.default_rng(0)
    docs, queries = (rng.standard_normal((n, 8)).astype(np.float32) for n in (60, 1))
    kept = np.sort(rng.permutation(60)[:25])
    listed = kept if allow else np.setdiff1d(np.arange(60), kept)
    rule = ListRule.from_pairs("list", np.zeros(len(listed), int), listed, 1, allow=allow)
    options = {"depth": 60, "fb_docs": 3, "gamma": 0.2}
    _, restricted, scores = feedback.rocchio(queries, docs, candidates=Candidates(60, (rule,)), **options)
    _, alone, expected = feedback.rocchio(queries, docs[kept], **options)
    assert restricted.tolist() == kept[alone].tolist()
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


def test_rocchio_by_hand():
    """alpha q + beta mean(first two) - gamma mean(last two)."""
    docs = np.array([[4, 0], [3, 1], [2, 5], [1, 1], [0, 2]], np.float32)
    query = np.array([[1, 0]], np.float32)
    # inner products 4, 3, 2, 1, 0: the first two are (4, 0) and (3, 1), mean (3.5, 0.5); the last two (1, 1) and
    # (0, 2), mean (0.5, 1.5). 0.4 (1, 0) + 0.6 (3.5, 0.5) = (2.5, 0.3), and less 0.2 (0.5, 1.5) it is (2.4, 0)
    _, order, scores = feedback.rocchio(query, docs, depth=5, fb_docs=2)
    assert order.tolist() == [0, 1, 2, 3, 4]
    assert scores.tolist() == pytest.approx([10, 7.8, 6.5, 2.8, 0.6])
    assert feedback.rocchio(query, docs, depth=5, fb_docs=2, gamma=0.2)[2].tolist() == pytest.approx(
        [9.6, 7.2, 4.8, 2.4, 0.0], abs=1e-5
    )
    # with four of five first, only one is left to be among the last: 0.6 (2.5, 1.75) + (0.4, 0) - 0.2 (0, 2)
    moved = np.array([0.6 * 2.5 + 0.4, 0.6 * 1.75 - 0.4])
    found = feedback.rocchio(query, docs, depth=5, fb_docs=4, gamma=0.2)[2]
    assert found.tolist() == pytest.approx(np.sort(docs @ moved)[::-1].tolist())


def test_rocchio_forgets_the_document_that_is_the_query():
    """The nearest document of a query that is a document is the query."""
    docs = np.array([[1, 0, 0], [0.9, 0.4, 0], [0.1, 0, 0.9]], np.float32)
    rules = Candidates(3, (NotSelfRule(np.array([0])),))
    _, order, scores = feedback.rocchio(docs[:1], docs, depth=3, candidates=rules, fb_docs=1)
    moved = 0.4 * docs[0] + 0.6 * docs[1]
    assert order.tolist() == [1, 2] and scores.tolist() == pytest.approx((docs[1:] @ moved).tolist())


def test_the_systems_search_with_their_settings():
    """The registered names have the published settings, and those of a call replace them."""
    c = catalogue.load("mini-qa").sample(20)
    entry, named = systems.system("bm25~rm3"), systems.parse_composed_name("bm25~rm3")
    assert {key: value for key, value in entry.settings.items() if key != "label"} == named
    rocchio = systems.system("minilm~rocchio")
    assert {"kind": "rocchio", "label": rocchio.label, "first": "minilm"} | feedback.ROCCHIO == rocchio.settings
    changed = systems.system("bm25~rm3", fb_docs=3, fb_terms=4)
    assert changed.search(c, 20).equals(systems.system("(bm25~rm3) (fb_docs = 3, fb_terms = 4)").search(c, 20))
    indexed = IndexedCollection.of(c, **systems.search_options(systems.system("bm25").settings))
    hits = feedback.rm3(indexed, c.query_texts, depth=20, candidates=c.candidates, fb_docs=3, fb_terms=4)
    assert len(hits[0]) == len(changed.search(c, 20))
    assert sorted(changed.search(c, 20).score) == pytest.approx(sorted(hits[2].astype(float)))
    model = encoder("minilm")
    vectors = [model.vectors(texts, role) for texts, role in ((c.query_texts, "query"), (c.texts, "document"))]
    moved = systems.system("minilm~rocchio", gamma=0.1).search(c, 20)
    expected = feedback.rocchio(*vectors, depth=20, candidates=c.candidates, gamma=0.1)[2]
    assert sorted(moved.score) == pytest.approx(sorted(expected.astype(float)))


@pytest.mark.parametrize(
    ("name", "message"),
    [("minilm~rm3", "rm3 changes terms of BM25.*'minilm' has none; write bm25~rm3"),
     ("bm25~rocchio", "rocchio changes vectors"), ("bm25-mirb~rm3", "without compat"),
     ("bm25-okapi~rm3", "terms of BM25"), ("bm25~rm4", "no feedback on 'bm25' called 'rm4'; did you mean 'rm3'"),
     ("bm52~rm3", "did you mean 'bm25'"),
     ("structure+minilm~rm3", "'minilm~rm3': rm3 changes terms")],
)  # fmt: skip
def test_feedback_that_does_not_fit_is_refused(name, message):
    """Before anything is searched."""
    with pytest.raises(lab.MirblabError, match=message):
        systems.system(name)


def test_feedback_binds_more_tightly_than_fusion_and_reranking():
    """And the label says what is done."""
    assert systems.system("BM25~RM3+minilm>MaxSim@20").name == "bm25~rm3+minilm>maxsim@20"
    assert systems.system("bm25~rm3+minilm").settings["of"] == ["bm25~rm3", "minilm"]
    assert systems.system("bm25~rm3>maxsim@20").settings["first"] == "bm25~rm3"
    assert systems.system("chargrams~rm3").label == "Character n-grams with RM3"
