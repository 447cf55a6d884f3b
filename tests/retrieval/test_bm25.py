"""lexical: BM25 agrees with bm25s, rank-bm25 and the textbook, and candidates are honoured exactly."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from math import log
from pathlib import Path

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import nDCG

from mirblab.core.errors import MirblabError
from mirblab.data import candidates, parts_writer
from mirblab.data.candidates import Candidates, ListRule
from mirblab.data.collection import Collection, load_folder
from mirblab.data.parts import DocumentTexts, Parts
from mirblab.data.ranking import TopK
from mirblab.retrieval import bm25, postings, tokenizers
from mirblab.retrieval.postings import find_damage
from mirblab.sources import catalogue

ROOT = Path(__file__).resolve().parents[2]
WORDS = [f"{stem}{ending}" for stem in ("ring", "field", "group", "sheaf", "knot", "prime") for ending in "abcdefgh"]
word_tokens = tokenizers.tokenizer("words")
METHODS = ["lucene", "robertson", "atire", "bm25l", "bm25+"]


@pytest.fixture
def build(make_folder):
    """Return a function that makes a collection of texts, with judgements so that every query stays."""

    def make(docs: list[str], queries: list[str], qrels: str = "", card: str = "", name: str = "tiny") -> Collection:
        corpus = [{"_id": f"d{n:04}", "title": "", "text": text} for n, text in enumerate(docs)]
        asked = [{"_id": f"q{n:03}", "text": text} for n, text in enumerate(queries)]
        judged = qrels or "".join(f"q{n:03}\td{n % len(docs):04}\t1\n" for n in range(len(queries)))
        return load_folder(make_folder(corpus, asked, judged, card, name))

    return make


@pytest.fixture
def random_texts():
    """Return 300 documents and 20 queries of Zipf-distributed words, some of them repeated, some texts twice."""
    random = np.random.default_rng(0)
    chance = 1 / np.arange(1, len(WORDS) + 1)
    chance /= chance.sum()
    texts = [" ".join(random.choice(WORDS, random.integers(1, 30), p=chance)) for _ in range(320)]
    return texts[:150] + texts[:150], texts[300:]


def set_engine(patch: pytest.MonkeyPatch, is_large: bool, rows: int = 16, width: int = 1 << 15) -> None:
    """Let the search for large collections search, or never, *rows* queries by *width* documents at a time."""
    patch.setattr(bm25, "COMPILE_FROM", -1 if is_large else 1 << 60)
    patch.setattr(bm25, "DEEPEST_SHARE", np.inf)
    patch.setattr(postings, "LEAST_SLACK", 1)
    for module, name, size in (
        (bm25, "LANES", rows), (bm25, "ROWS", rows), (postings, "ROWS", rows),
        (bm25, "CHUNK", width), (bm25, "SLAB", width), (postings, "PART_DOCS", width),
    ):  # fmt: skip
        patch.setattr(module, name, size)


def scores_of(run, query_id: str = "q000") -> dict[str, float]:
    rows = run[run.query_id == query_id]
    return dict(zip(rows.doc_id, rows.score.astype(float), strict=True))


@pytest.mark.parametrize("method", METHODS)
def test_scores_agree_with_bm25s(build, random_texts, method):
    """All five methods, also those that give something to documents without the term."""
    from bm25s import BM25

    docs, queries = random_texts
    collection = build(docs, queries)
    run = bm25.search(collection, depth=25, method=method, k1=1.5, b=0.6, delta=0.7, tokenizer="words")
    engine = BM25(method=method, k1=1.5, b=0.6, delta=0.7)
    engine.index(word_tokens(docs), show_progress=False)
    for number, query in enumerate(word_tokens(queries)):
        expected = engine.get_scores(query)
        found = scores_of(run, f"q{number:03}")
        best = np.sort(expected)[::-1][: len(found)]
        np.testing.assert_allclose(list(found.values()), best, rtol=1e-5)
        np.testing.assert_allclose([expected[int(doc[1:])] for doc in found], list(found.values()), rtol=1e-5)


def test_rank_bm25_is_returned_as_it_scores(build, random_texts):
    """Order and scores are those of BM25Okapi, negative ones too; documents without a shared term are left out."""
    from rank_bm25 import BM25Okapi

    docs, queries = random_texts
    words = word_tokens(docs)
    run = bm25.search(build(docs, queries), depth=300, engine="rank-bm25", k1=1.5, tokenizer="words")
    engine = BM25Okapi(words, k1=1.5, b=0.75)
    for number, query in enumerate(word_tokens(queries)):
        expected = engine.get_scores(query).astype(np.float32)
        shares = [place for place, doc in enumerate(words) if set(doc) & set(query)]
        assert scores_of(run, f"q{number:03}") == {f"d{place:04}": float(expected[place]) for place in shares}
    assert run.attrs["method"] == "okapi"


def test_negative_scores_of_rank_bm25_come_back(build):
    """Its idf is negative when every term is in most documents; the reference's numbers are not repaired."""
    run = bm25.search(build(["x y", "x y", "x"], ["x y", "z"]), depth=5, engine="rank-bm25", tokenizer="math")
    assert len(run) == 3
    assert (run.score < 0).all()


def test_okapi_and_atire_rank_alike_when_terms_are_rare(build):
    """Where no idf is floored the two formulae agree in order, and lucene with them."""
    docs = [" ".join(WORDS[n : n + 5] + [WORDS[n]] * (n % 3)) for n in range(40)]
    collection = build(docs, [f"{WORDS[10]} {WORDS[13]}", WORDS[20]])
    okapi = bm25.search(collection, depth=5, engine="rank-bm25", tokenizer="words")
    for method in ("atire", "lucene"):
        ours = bm25.search(collection, depth=5, method=method, tokenizer="words")
        assert ours.doc_id.astype(str).tolist() == okapi.doc_id.astype(str).tolist()


@pytest.mark.parametrize("engine", ["bm25s", "rank-bm25"])
def test_a_restricted_document_cannot_appear(build, random_texts, engine):
    """Whatever its score; what remains keeps its score and order."""
    docs, queries = random_texts
    judged = "".join(f"q{n % 20:03}\td{n * 7 % 300:04}\t{n % 2}\n" for n in range(200))
    free = bm25.search(build(docs, queries, judged), depth=300, engine=engine)
    collection = build(docs, queries, judged, 'candidates = "judged"')
    run = bm25.search(collection, depth=300, engine=engine)
    allowed = collection.candidates.allowed(np.arange(20))
    kept = allowed[free.query_id.cat.codes, free.doc_id.cat.codes]
    assert 0 < len(run) < len(free)
    for column in ("query_id", "doc_id", "score"):
        assert run[column].tolist() == free[column][kept].tolist()


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("is_large", [True, False])
def test_restricted_documents_take_no_place_from_others(build, random_texts, monkeypatch, depth, is_large):
    """The first *depth* that remain come back, also where what is restricted would have filled the first block."""
    docs, queries = random_texts
    free = bm25.search(build(docs, queries), depth=300)
    best = free[free["rank"] <= 40]
    collection = build(docs, queries)
    places = (best[name].cat.codes.to_numpy().astype(np.int64) for name in ("query_id", "doc_id"))
    deny = ListRule.from_pairs("denied", *places, 20, allow=False)
    set_engine(monkeypatch, is_large, width=100)
    denied = replace(collection, candidates=Candidates(300, (deny,)))
    run = bm25.search(denied, depth=depth)
    rest = free[(free["rank"] > 40) & (free["rank"] <= 40 + depth)]
    assert len(run) == len(rest) > 0
    for column in ("query_id", "doc_id", "score"):
        assert run[column].tolist() == rest[column].tolist()


def test_no_shared_term_no_document(build):
    """A query of unknown words returns nothing, and a document of other words is not returned."""
    run = bm25.search(build(["red fox", "blue whale"], ["fox", "zebra", "$ {} $"]), depth=5)
    assert list(zip(run.query_id, run.doc_id, strict=True)) == [("q000", "d0000")]


def test_empty_texts_and_an_empty_vocabulary_are_no_error(build):
    """Nothing to find is an empty run."""
    for engine in ("bm25s", "rank-bm25"):
        assert bm25.search(build(["$", "{"], ["x", "y"]), depth=5, engine=engine).empty


def test_equal_documents_tie_exactly_and_the_larger_id_comes_first(build, random_texts):
    """The tie rule of `runs`; every text is in the corpus twice, 150 documents apart."""
    docs, queries = random_texts
    run = bm25.search(build(docs, queries), depth=300)
    for _, rows in run.groupby("query_id", observed=True):
        found = dict(zip(rows.doc_id, rows.score, strict=True))
        ranks = dict(zip(rows.doc_id, rows["rank"], strict=True))
        for doc, score in found.items():
            twin = f"d{(int(doc[1:]) + 150) % 300:04}"
            assert found[twin] == score
            assert ranks[max(doc, twin)] < ranks[min(doc, twin)]


def test_blocks_and_other_queries_change_no_bit(build, random_texts, monkeypatch):
    """A query's scores depend on nothing but the query and the corpus."""
    docs, queries = random_texts
    whole = bm25.search(build(docs, queries), depth=300)
    monkeypatch.setattr(bm25, "LANES", 3)
    monkeypatch.setattr(bm25, "CHUNK", 37)
    blocked = bm25.search(build(docs, queries, name="again"), depth=300)
    alone = bm25.search(build(docs, queries[:1], name="alone"), depth=300)
    assert whole.equals(blocked)
    assert scores_of(whole) == scores_of(alone)


@pytest.mark.parametrize("method", METHODS)
def test_contributions_sum_to_the_score(build, random_texts, method):
    """`explain` names each known term of the query once, with its idf and frequency."""
    docs, queries = random_texts
    collection = build(docs, [*queries, f"{WORDS[0]} {WORDS[0]} {WORDS[3]} unknownword"])
    run = bm25.search(collection, depth=5, method=method, tokenizer="words")
    last = run[run.query_id == "q020"]
    for doc, score in zip(last.doc_id, last.score, strict=True):
        table = bm25.explain(collection, collection.query("q020"), doc, method=method, tokenizer="words")
        assert table.contribution.sum() == pytest.approx(score, rel=1e-5)
        assert sorted(table.term) == sorted([WORDS[0], WORDS[3]])
        counts = Counter(word_tokens([collection.document(doc)])[0])
        assert table.frequency.tolist() == [counts[term] for term in table.term]
    df = sum(WORDS[3] in text.split() for text in docs)
    assert bm25.explain(collection, WORDS[3], "d0000", tokenizer="words").idf[0] == pytest.approx(
        log(1 + (300 - df + 0.5) / (df + 0.5))
    )


def independent(collection: Collection, titles: list[str], texts: list[str], k: int) -> float:
    """The published computation, by bm25s's own tokenizer and retrieval, and pytrec_eval."""
    import bm25s
    import Stemmer

    options = {"stopwords": "en", "stemmer": Stemmer.Stemmer("english"), "return_ids": False, "show_progress": False}
    docs = [f"\n{title} {text}" for title, text in zip(titles, texts, strict=True)]
    engine = bm25s.BM25()
    engine.index(bm25s.tokenize(docs, **options), show_progress=False)
    run = []
    for query_id, query in zip(collection.query_ids, bm25s.tokenize(collection.query_texts, **options), strict=True):
        known = [word for word in query if word in engine.vocab_dict]
        scores = engine.get_scores(known) if known else np.zeros(len(docs), np.float32)
        best = np.lexsort((-np.arange(len(docs)), -scores))[:k]
        run += [ir_measures.ScoredDoc(query_id, collection.doc_ids[place], float(scores[place])) for place in best]
    qrels = collection.qrels.astype({"query_id": str, "doc_id": str})
    return ir_measures.calc_aggregate([nDCG @ 10], qrels, run)[nDCG @ 10]


def published(collection: Collection) -> float:
    run = bm25.search(collection, depth=10, compat="mirb").astype({"query_id": str, "doc_id": str})
    return ir_measures.calc_aggregate([nDCG @ 10], collection.qrels.astype({"query_id": str, "doc_id": str}), run)[
        nDCG @ 10
    ]


@pytest.mark.parametrize("name", ["stacks-slogan", "mse-dup"])
def test_compat_mirb_equals_an_independent_computation_on_real_text(shared_file, name):
    """To four decimals."""
    collection = load_folder(shared_file(f"data/{name}"))
    titles, texts = collection.corpus.title.to_list(), collection.corpus.text.to_list()
    assert published(collection) == pytest.approx(independent(collection, titles, texts, 10), abs=1e-4)


def test_compat_mirb_repeats_the_published_defect_and_says_so(build):
    """An excluded document ties at zero with those that do not match, and fills the ranking; the last id first."""
    docs, judged = ["prime ideal", "prime ideal", "knot", "sheaf"], "q000\td0000\t1\nq000\td0002\t0\n"
    collection = build(docs, ["prime ideal"], judged, 'candidates = "judged"')
    run = bm25.search(collection, depth=10, compat="mirb")
    assert run.doc_id.tolist() == ["d0000", "d0003", "d0002", "d0001"]
    assert run.score[0] > 0 and (run.score[1:] == 0).all()
    assert "not a candidate" in run.attrs["notes"]
    assert (run.attrs["k1"], run.attrs["tokenizer"]) == (1.5, "mirb")
    assert bm25.search(collection, depth=10).doc_id.tolist() == ["d0000"]


def test_compat_mirb_fills_a_query_without_tokens(build):
    """It ignores candidates, as published."""
    run = bm25.search(
        build(["knot", "sheaf"], ["x"], "q000\td0000\t1\n", 'candidates = "judged"'), depth=5, compat="mirb"
    )
    assert run.doc_id.tolist() == ["d0001", "d0000"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "lucen"}, "did you mean 'lucene'"),
        ({"engine": "bm25"}, "no BM25 engine 'bm25'"),
        ({"tokenizer": "maths"}, "did you mean 'math'"),
        ({"compat": "mteb"}, "no compat 'mteb'"),
        ({"engine": "rank-bm25", "method": "lucene"}, "BM25Okapi only"),
        ({"k1": -1.0}, "k1 = -1.0"),
        ({"k1": float("nan")}, "k1 = nan"),
        ({"k1": float("inf"), "engine": "rank-bm25"}, "k1 = inf"),
        ({"b": float("nan")}, "b = nan"),
        ({"delta": float("inf"), "method": "bm25l"}, "delta = inf"),
        ({"depth": 0}, "depth must be at least 1"),
    ],
)
def test_settings_that_do_not_exist_are_refused(build, given, message):
    """With what was found and what there is."""
    with pytest.raises(MirblabError, match=message):
        bm25.search(build(["a b"], ["b"]), **({"depth": 3} | given))


@pytest.mark.parametrize("is_large", [True, False])
def test_masks_are_asked_for_in_small_blocks(build, random_texts, monkeypatch, is_large):
    """And only where many documents score, so that a large collection's masks need no memory and little time."""
    asked, whole = [], Candidates.allowed

    def allowed(self, queries, docs=None):
        asked.append((len(queries), docs.stop - docs.start))
        return whole(self, queries, docs)

    set_engine(monkeypatch, is_large, rows=3, width=16)
    monkeypatch.setattr(candidates, "_PAIRWISE_SHARE", 0.9)
    monkeypatch.setattr(Candidates, "allowed", allowed)
    collection = build(*random_texts, card='candidates = "not-self"')
    bm25.search(collection, depth=3)
    assert asked and max(rows for rows, _ in asked) <= 3 and max(columns for _, columns in asked) <= 16
    assert len(asked) < 7 * 19 / 2


def test_what_a_block_found_keeps_no_buffer():
    """Thousands of blocks wait for the last one."""
    best = TopK(2, k=3, width=5000)
    best.add(np.arange(10000, dtype=np.float32).reshape(2, 5000), start=0)
    whole = [column.tolist() for column in best.flat()]
    assert best.trim().keys.nbytes == 2 * 3 * 8
    assert [column.tolist() for column in best.flat()] == whole


def test_a_query_weighted_by_bm25_by_hand(build):
    """Each term of the query has the weight that it would have in a document, its idf included."""
    docs = ["ring ring flat", "ring module", "flat", "set"]
    run = bm25.search(
        build(docs, ["ring ring flat unheard"]), depth=10, k1=1.2, b=0.75, tokenizer="words", query_weighting="bm25"
    )
    # 4 documents of 7 / 4 tokens on average; ring and flat are in two of them: idf = ln(1 + 2.5 / 2.5) = ln 2
    # the query has 4 tokens: K = 1.2 (0.25 + 0.75 * 4 / 1.75); ring twice ln 2 * 2 / (2 + K), flat once ln 2 / (1 + K)
    idf, of_query = log(2), 1.2 * (0.25 + 0.75 * 4 / 1.75)
    ring, flat = idf * 2 / (2 + of_query), idf / (1 + of_query)
    of_docs = [1.2 * (0.25 + 0.75 * length / 1.75) for length in (3, 2, 1)]
    expected = {
        "d0000": ring * idf * 2 / (2 + of_docs[0]) + flat * idf / (1 + of_docs[0]),
        "d0001": ring * idf / (1 + of_docs[1]),
        "d0002": flat * idf / (1 + of_docs[2]),
    }
    assert scores_of(run) == pytest.approx(expected, rel=1e-6)


def test_repeated_terms_of_a_query_count_as_often_as_they_stand_there(build):
    """Which is Okapi's k3 without a limit: twice the term is twice its score."""
    docs = ["ring ring flat", "ring module", "flat", "set"]
    run = bm25.search(build(docs, ["ring ring ring", "ring"]), depth=10, tokenizer="words")
    thrice, once = scores_of(run), scores_of(run, "q001")
    assert thrice == pytest.approx({doc: 3 * score for doc, score in once.items()})


@pytest.mark.parametrize("method", METHODS)
def test_a_weighted_query_is_the_product_of_two_weighings(build, random_texts, method):
    """The weights of the query are those of bm25s for a document of the same text, with the collection's statistics."""
    docs, queries = random_texts
    options = {"method": method, "k1": 0.9, "b": 0.4, "tokenizer": "words"}
    collection = build([*docs, queries[0]], queries[:1])
    indexed = bm25.IndexedCollection.of(collection, **options, query_weighting="bm25")
    weights = indexed.query_weights(indexed.tokens(queries[:1])).toarray()[0]
    in_corpus = indexed.index.weights[[len(docs)]].toarray()[0]
    has = in_corpus != 0
    assert weights[has] == pytest.approx((in_corpus + indexed.index.absent)[has], rel=1e-5)
    table = bm25.explain(collection, queries[0], "d0003", **options, query_weighting="bm25")
    run = bm25.search(collection, depth=len(docs) + 1, **options, query_weighting="bm25")
    assert table.contribution.sum() == pytest.approx(scores_of(run)["d0003"], rel=1e-5)


def test_query_weighting_is_refused_where_it_does_not_exist(build):
    """By its name, by the other engine and by the published defect."""
    collection = build(["a ring"], ["ring"])
    with pytest.raises(MirblabError, match="no query weighting of BM25 'bm26'; did you mean 'bm25'"):
        bm25.search(collection, depth=1, query_weighting="bm26")
    for other in ({"engine": "rank-bm25"}, {"compat": "mirb"}):
        with pytest.raises(MirblabError, match="is for the engine bm25s without compat"):
            bm25.search(collection, depth=1, query_weighting="bm25", **other)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("compat", ["", "mirb"])
def test_the_search_for_large_collections_agrees_to_the_last_bit(build, random_texts, monkeypatch, method, compat):
    """Which search is used depends on the size of the work, so that nobody may see which it was."""
    docs, queries = random_texts
    collection = build(docs, queries, card='candidates = "not-self"')
    by_products = bm25.search(collection, depth=40, method=method, compat=compat)
    set_engine(monkeypatch, is_large=True, rows=3, width=37)
    assert bm25.search(collection, depth=40, method=method, compat=compat).equals(by_products)


def as_lists(hits: tuple[np.ndarray, ...]) -> list[list[float]]:
    return [column.tolist() for column in hits]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [37, 299, 301, 1 << 15])
def test_an_index_in_parts_returns_what_one_in_memory_returns(random_texts, tmp_path, monkeypatch, method, size):
    """To the last bit, wherever the documents are cut, also when it is opened again."""
    docs, queries = [*word_tokens(random_texts[0]), []], word_tokens(random_texts[1])
    whole = bm25.TermIndex.build(iter(docs), method, 1.2, 0.6, 0.7).search(queries, 40)
    monkeypatch.setattr(bm25, "PART_DOCS", size)
    made = bm25.build_index(iter(docs), tmp_path / "index", method=method, k1=1.2, b=0.6, delta=0.7)
    assert len(made.postings.parts) == -(-301 // size)
    assert as_lists(made.search(queries, 40)) == as_lists(whole)
    assert as_lists(bm25.StoredIndex.open(tmp_path / "index").search(queries, 40)) == as_lists(whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index"]
    assert not find_damage(tmp_path / "index")


def test_the_idf_of_a_term_is_computed_once(tmp_path, monkeypatch):
    """And not again for each part, since the vocabulary of many parts is large."""
    plain, asked = bm25.IDF["lucene"], list[float]()
    monkeypatch.setattr(bm25, "PART_DOCS", 2)
    monkeypatch.setitem(bm25.IDF, "lucene", lambda df, n: asked.append(df) or plain(df, n))
    bm25.build_index([["ring"], ["knot", "ring"], ["field"], [], ["ring"]], tmp_path / "index")
    assert asked == [3, 1, 1]


def test_an_index_in_parts_honours_candidates(random_texts, tmp_path, monkeypatch):
    """As the one in memory does."""
    docs, queries = (word_tokens(texts) for texts in random_texts)
    monkeypatch.setattr(bm25, "PART_DOCS", 41)
    pairs = np.argwhere(np.random.default_rng(0).random((len(queries), len(docs))) < 0.5).T
    rules = Candidates(len(docs), (ListRule.from_pairs("denied", *pairs, len(queries), allow=False),))
    whole = bm25.TermIndex.build(docs, "lucene", 1.2, 0.75, 0.5).search(queries, 10, rules)
    made = bm25.build_index(docs, tmp_path / "index")
    assert as_lists(made.search(queries, 10, rules)) == as_lists(whole)


def test_an_index_of_nothing_returns_nothing(tmp_path):
    """No documents, and documents without a token."""
    for number, docs in enumerate(([], [[], []])):
        made = bm25.build_index(docs, tmp_path / f"index-{number}")
        assert as_lists(made.search([["ring"], []], 3)) == [[], [], []]


def test_a_failing_build_leaves_nothing(tmp_path):
    """Neither the index nor what was counted; then the same folder can be used."""

    def broken():
        yield from [["ring"], ["knot"]]
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        bm25.build_index(broken(), tmp_path / "index")
    assert not list(tmp_path.iterdir())
    bm25.build_index([["ring"]], tmp_path / "index")
    with pytest.raises(MirblabError, match="index exists; name a new folder"):
        bm25.build_index([["ring"]], tmp_path / "index")


def test_a_killed_build_is_cleared_away_by_the_next(tmp_path):
    """Its unfinished folder stays until then, and is no index."""
    code = """
import os, sys
from mirblab.retrieval import bm25
bm25.PART_DOCS = 2
docs = (os._exit(9) if number == 5 else ["ring"] for number in range(9))
bm25.build_index(docs, sys.argv[1])
"""
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path / "index")], cwd=ROOT, check=False)
    left = list(tmp_path.iterdir())
    assert killed.returncode == 9 and len(left) == 1 and left[0].name.endswith(".partial.index")
    bm25.build_index([["ring"]], tmp_path / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_damaged_index_is_refused(tmp_path):
    """A missing manifest, another format, a file that is cut short or missing; other bytes are found by digest."""
    folder = tmp_path / "index"
    with pytest.raises(MirblabError, match="no manifest.json, so that it is no index"):
        bm25.StoredIndex.open(folder)
    bm25.build_index([["ring"], ["knot", "ring"]], folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    path = folder / manifest["files"][0]["name"]
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    assert [line.split(" is damaged")[0] for line in find_damage(folder)] == [str(path)]
    path.write_bytes(content[:-1])
    with pytest.raises(MirblabError, match=f"should have {len(content)} bytes, found {len(content) - 1} bytes"):
        bm25.StoredIndex.open(folder)
    path.unlink()
    with pytest.raises(MirblabError, match="it is missing"):
        bm25.StoredIndex.open(folder)
    (folder / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    with pytest.raises(MirblabError, match="found 99; build it again"):
        bm25.StoredIndex.open(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_an_index_of_many_parts_raises_the_limit_of_open_files(tmp_path):
    """As far as the system permits; then the error says what to do, and the index is not taken for a damaged one."""
    code = """
import resource, sys
from mirblab.retrieval import bm25
bm25.PART_DOCS = 1
docs = [["ring", str(number)] for number in range(200)]
bm25.build_index(docs, sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 300))
index = bm25.StoredIndex.open(sys.argv[1])
print(index.search([["ring", "7"]], 1)[1], resource.getrlimit(resource.RLIMIT_NOFILE)[0])
bm25.StoredIndex.open(sys.argv[1])
"""
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "index")], cwd=ROOT, capture_output=True)
    assert ended.stdout.decode() == "[7] 300\n"
    message = r"OpenFilesError: .*part-\d+.bin cannot be opened: too many files are open; raise .* ulimit -n"
    assert re.search(message, ended.stderr.decode())


def test_loops_are_compiled_once_for_memory_and_disk(tmp_path):
    """Arrays that cannot be written have a type of their own, for which they would be compiled anew."""
    import numba

    docs = [["ring", "knot"], ["ring"]]
    index = bm25.TermIndex.build(docs, "lucene", 1.2, 0.75, 0.5)
    stored = bm25.build_index(docs, tmp_path / "index")
    in_memory, on_disk = (one.postings.parts[0] for one in (index, stored))
    for name in postings._ARRAYS:
        assert numba.typeof(getattr(in_memory, name)) == numba.typeof(getattr(on_disk, name)), name


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k1", [0.9, 1.5])
def test_weights_are_those_of_bm25s_to_the_last_bit(random_texts, method, k1, monkeypatch):
    """Term by term and document by document, whatever the blocks in which they are counted."""
    from bm25s import BM25

    docs = [*word_tokens(random_texts[0]), []]
    monkeypatch.setattr(bm25, "BLOCK", 41)
    index = bm25.TermIndex.build(iter(docs), method, k1, 0.6, 0.7)
    engine = BM25(method=method, k1=k1, b=0.6, delta=0.7)
    engine.index(docs, show_progress=False)
    ours = index.weights.tocsc()
    for term, place in index.vocabulary.items():
        theirs = slice(*engine.scores["indptr"][engine.vocab_dict[term] :][:2])
        own = slice(*ours.indptr[place : place + 2])
        assert ours.indices[own].tolist() == engine.scores["indices"][theirs].tolist()
        assert ours.data[own].tolist() == engine.scores["data"][theirs].tolist()
        if engine.nonoccurrence_array is not None:
            assert index.absent[place] == engine.nonoccurrence_array[engine.vocab_dict[term]]


def test_a_parameter_of_zero_gives_no_nan(build, random_texts):
    """Where bm25s divides 0 by 0, a term adds nothing to a document without it but delta."""
    for method in METHODS:
        run = bm25.search(build(*random_texts), depth=5, method=method, k1=0, b=0, delta=0)
        assert len(run) and not run.score.isna().any()


def test_the_published_tokenizer_is_that_of_bm25s(shared_file):
    """On real text, token for token."""
    import bm25s
    import Stemmer

    rows = shared_file("data/mse-dup/corpus.jsonl").read_text("utf-8").splitlines()[:500]
    texts = [json.loads(row)["text"] for row in rows]
    options = {"stopwords": "en", "return_ids": False, "show_progress": False}
    assert tokenizers.tokenizer("mirb")(texts) == bm25s.tokenize(texts, stemmer=Stemmer.Stemmer("english"), **options)
    assert word_tokens(texts) == bm25s.tokenize(texts, **options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"$\frac{a}{b} \leq 2$", r"\frac b \le 2"),
        ("f ∘ g ≤ α → ∀ x, ⊢ x ∈ 𝔽", r"f \circ g \le alpha \to \forall x \vdash x \in F"),
        (r"|- ( ph -> ( ps -> ph ) )", r"\vdash ph \to ps \to ph"),
        (r"\left( \mathbb{R}^n \right), \operatorname{Hom}", r"R ^ n \operatorname hom"),
        (r"\varepsilon ε \Gamma", "epsilon epsilon gamma"),
        ("rings, ringed Rings", "ring ring ring"),
        ("Mo\u0308bius, Poincare\u0301", "möbius poincaré"),
        ("Théorème de Łoś, MöbiusFunction", "théorèm de łoś möbiusfunction möbius function"),
        ("$ { } ( ) , . ;", ""),
        ("", ""),
    ],
)
def test_math_keeps_mathematics(text, expected):
    """Commands, symbols and letters stay, spellings are folded, punctuation goes."""
    assert tokenizers.math_tokens([text]) == [expected.split()]


def test_names_of_proof_assistants_are_split():
    """Dots, underscores, camel case and digits."""
    assert tokenizers.math_tokens(["Nat.add_comm IsOpenMap H1"], stem=False, whole=False) == [
        "nat add comm open map H 1".split()
    ]


def test_font_commands_reach_over_white_space_and_nothing_else_does():
    """So that a text may be taken apart at its blanks first."""
    spread = r"\mathbb R and \mathcal{ C } , \mathfrak {g} f \bm{ x y } Nat. add x - > y \cal" + "\n" + "B"
    assert tokenizers.math_tokens([spread], stem=False) == ["R C g f \\bm x y nat add x > y B".split()]


FORMS = [
    r"\mathbb",
    r"\cal",
    r"\bm",
    " ",
    "\n",
    "\u00a0",
    "\x1c",
    "{",
    "}",
    "R",
    "Ab",
    "Σ",
    "ς",
    "'",
    ".",
    "_",
    "x",
    "1",
    "2.5",
    "->",
]


@given(text=st.lists(st.sampled_from(FORMS), max_size=12).map("".join))
def test_taking_a_text_apart_at_its_blanks_changes_no_token(text):
    """Compared with the pattern over the whole text."""
    analysis = tokenizers.MathAnalysis()
    whole = [token for form in tokenizers._SURFACE.findall(text) for token in analysis(form)]
    assert tokenizers.math_tokens([text]) == [whole] == [list(tokenizers.token_reader("math")(text))]


def test_what_is_not_remembered_is_read_all_the_same(monkeypatch):
    """Long forms, and all when too many were seen."""
    text = r"$\frac{a}{b}+x^{2}\in\mathbb{R}$ rings and rings"
    expected = tokenizers.math_tokens([text, text])
    for name in ("LONGEST_REMEMBERED", "MOST_REMEMBERED"):
        with monkeypatch.context() as patch:
            patch.setattr(tokenizers, name, 0)
            assert tokenizers.math_tokens([text, text]) == expected


def test_formulas_are_read_as_formulas_and_prose_as_prose():
    """By PyA0's symbols, or as runs of symbols, one text at a time or many."""
    text = r"Rings of $x\leqslant\dfrac12$"
    assert tokenizers.tokenizer("pya0")([text]) == [["ring", "$x$", "$leqslant$", "$frac$"]]
    assert tokenizers.tokenizer("pya0-wide")([text]) == [["ring", "$x$", "$le$", "$frac$", "$1$", "$2$"]]
    assert tokenizers.tokenizer("latex-ngrams")(["Rings of $x$ and $y$", "Rings"]) == [
        ["x", "$ x", "x $", "$ x $", "y", "$ y", "y $", "$ y $"],
        [],
    ]
    for name in tokenizers.TOKENIZERS:
        read = tokenizers.token_reader(name)
        assert [list(read(part)) for part in (text, "a ring")] == tokenizers.tokenizer(name)([text, "a ring"])


def test_ngrams_find_the_formula_that_words_cannot(build):
    """A query of symbols only; the document with the same runs comes first, prose alone never."""
    docs = ["the sum $a+b=c$", "the sum $c=b+a$", "the sum of plus and minus"]
    run = bm25.search(build(docs, [r"$\left(a+b\right)$"]), depth=3, tokenizer="latex-ngrams")
    assert run.doc_id.astype(str).tolist() == ["d0000", "d0001"]
    assert not len(bm25.search(build(docs, ["$a+b$"]), depth=3, tokenizer="words"))


@pytest.fixture
def in_parts(build, tmp_path, monkeypatch, random_texts, home):
    """Return the same collection as one file and in parts of 7 documents, with an index in parts of 16."""
    monkeypatch.setattr(parts_writer, "PART_DOCS", 7)
    monkeypatch.setattr(bm25, "PART_DOCS", 16)
    build(*random_texts, card='name = "tiny"\ncandidates = "not-self"\n')
    return load_folder(tmp_path / "tiny"), load_folder(catalogue.convert(tmp_path / "tiny", tmp_path / "parts"))


@pytest.mark.parametrize("options", [{}, {"method": "bm25l", "b": 0.3}, {"tokenizer": "words"}, {"k1": 0.0}])
def test_a_collection_in_parts_has_the_run_of_one_file(in_parts, options, monkeypatch, tmp_path):
    """Byte for byte, by an index that is built once and whose texts are then not read again."""
    one, other = in_parts
    expected = bm25.search(one, depth=40, **options)
    assert bm25.search(other, depth=40, **options).equals(expected)
    built = list((tmp_path / "home" / "cache" / "postings").iterdir())
    assert len(built) == 1
    monkeypatch.setattr(Parts, "batches", lambda *_: pytest.fail("a text was read"))
    run = bm25.search(other, depth=40, **options)
    assert run.score.to_numpy().tobytes() == expected.score.to_numpy().tobytes()
    assert run.attrs == expected.attrs


def test_few_texts_are_in_memory_while_an_index_is_built(in_parts, monkeypatch):
    """A block of documents that are counted together would be large where texts are long."""
    one, other = in_parts
    plain, sizes = DocumentTexts.at, list[int]()

    def watched(self, rows: slice) -> list[str]:
        sizes.append(rows.stop - rows.start)
        return plain(self, rows)

    monkeypatch.setattr(bm25, "TEXTS", 10)
    monkeypatch.setattr(DocumentTexts, "at", watched)
    assert bm25.search(other, depth=40).equals(bm25.search(one, depth=40))
    assert max(sizes) == 10


def test_a_stopped_search_of_parts_goes_on(in_parts, tmp_path, monkeypatch):
    """Ctrl-C in the middle keeps the counts, and the next search reads the texts from there on."""
    one, other = in_parts
    plain, count, starts = Parts.batches, bm25.count_terms, list[int]()

    def interrupted(documents, vocabulary):
        if len(starts) == 8:
            raise KeyboardInterrupt
        starts.append(-1)
        return count(documents, vocabulary)

    monkeypatch.setattr(bm25, "count_terms", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bm25.search(other, depth=40)
    monkeypatch.setattr(bm25, "count_terms", count)
    starts.clear()
    monkeypatch.setattr(Parts, "batches", lambda self, *given: starts.append(given[1]) or plain(self, *given))
    assert bm25.search(other, depth=40).equals(bm25.search(one, depth=40))
    assert set(starts) == {8 * 16}
    assert len(list((tmp_path / "home" / "cache" / "postings").iterdir())) == 1


def test_what_the_stored_index_has_not_is_computed_in_memory(in_parts, tmp_path):
    """The published defect, weighted queries, rank-bm25 and explanations read the texts and give the same."""
    one, other = in_parts
    for options in ({"compat": "mirb"}, {"query_weighting": "bm25"}, {"engine": "rank-bm25"}):
        assert bm25.search(other, depth=40, **options).equals(bm25.search(one, depth=40, **options))
    assert not (tmp_path / "home" / "cache" / "postings").exists()
    query = one.query_texts[0]
    assert bm25.explain(other, query, one.doc_ids[3]).equals(bm25.explain(one, query, one.doc_ids[3]))


def test_a_damaged_stored_index_is_set_aside_and_built_again(in_parts, tmp_path):
    """A file that was cut is noticed when it is opened, a changed byte by the check of the caches."""
    one, other = in_parts
    expected = bm25.search(other, depth=40)
    [folder] = (tmp_path / "home" / "cache" / "postings").iterdir()
    path = folder / "part-00000.bin"
    path.write_bytes(path.read_bytes()[:-64])
    with pytest.warns(UserWarning, match=r"is damaged .*part-00000.bin should have .* it is built again"):
        assert bm25.search(other, depth=40).equals(expected)
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    with pytest.warns(UserWarning, match="it is built again"):
        [line] = postings.verify(folder.parent)
    assert "part-00000.bin is damaged" in line
    assert not folder.exists()
    assert bm25.search(other, depth=40).equals(expected)


def changed_array(folder: Path, name: str, change) -> None:
    """Change one array of the first part in a folder, in place."""
    [file] = [one for one in json.loads((folder / "manifest.json").read_text())["files"] if one["name"][:5] == "part-"][
        :1
    ]
    about = file["arrays"][postings._ARRAYS.index(name)]
    whole = np.fromfile(folder / file["name"], np.uint8)
    end = about["offset"] + np.dtype(about["dtype"]).itemsize * int(np.prod(about["shape"]))
    change(whole[about["offset"] : end].view(about["dtype"]).reshape(about["shape"]))
    whole.tofile(folder / file["name"])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("docs", lambda docs: docs.__setitem__(3, 60_000)),
        ("starts", lambda starts: starts.__setitem__(2, 1 << 30)),
        ("starts", lambda starts: starts.__setitem__(-1, starts[-1] + 1)),
        ("rows", lambda rows: rows.__setitem__(4, -(1 << 30))),
        ("rows", lambda rows: rows.__setitem__(0, 1)),
    ],
)
def test_an_index_that_leads_out_of_its_arrays_is_built_again(in_parts, tmp_path, monkeypatch, name, change):
    """Compiled loops check no bounds: what they read is checked when the index is opened, once in a process."""
    _, other = in_parts
    expected = bm25.search(other, depth=40)
    [folder] = (tmp_path / "home" / "cache" / "postings").iterdir()
    changed_array(folder, name, change)
    with pytest.warns(UserWarning, match=r"is damaged .*part-00000.bin is damaged.* it is built again"):
        assert bm25.search(other, depth=40).equals(expected)
    monkeypatch.setattr(postings, "_is_sound", lambda *_: pytest.fail("checked again"))
    assert bm25.search(other, depth=40).equals(expected)


def test_a_changed_term_of_a_stored_index_is_noticed(in_parts, tmp_path):
    """Names of terms are checked by their digest; what is no term in a document is passed over."""
    _, other = in_parts
    expected = bm25.search(other, depth=40)
    [folder] = (tmp_path / "home" / "cache" / "postings").iterdir()
    path = folder / "terms.bin"
    path.write_bytes(path.read_bytes().replace(b"ring", b"bing"))
    with pytest.warns(UserWarning, match=r"terms.bin is damaged.* it is built again"):
        assert bm25.search(other, depth=40).equals(expected)
    changed_array(folder, "terms", lambda terms: terms.fill(1 << 30))
    assert not bm25.search(other, depth=40).equals(expected)


def test_where_no_index_can_be_stored_one_in_memory_is_used(in_parts, tmp_path, monkeypatch, capsys):
    """A home that cannot be written costs a note, not the run."""
    one, other = in_parts
    (tmp_path / "home" / "cache").mkdir(parents=True, exist_ok=True)
    (tmp_path / "home" / "cache" / "postings").write_text("in the way")
    assert bm25.search(other, depth=40).equals(bm25.search(one, depth=40))
    assert "indexes of terms cannot be stored" in capsys.readouterr().err


def test_a_stopped_build_goes_on_where_it_was(random_texts, tmp_path, monkeypatch):
    """What was counted is not read again, a damaged file of counts is, and the index is that of one build."""
    monkeypatch.setattr(bm25, "PART_DOCS", 16)
    docs, queries = (word_tokens(texts) for texts in random_texts)
    whole = as_lists(bm25.build_index(iter(docs), tmp_path / "whole").search(queries, 40))
    asked = list[int]()

    def documents(first: int, last: int = len(docs)):
        asked.append(first)
        yield from docs[first:last]
        if last < len(docs):
            raise KeyboardInterrupt

    for last in (100, 200):
        with pytest.raises(KeyboardInterrupt):
            bm25.build_index(lambda first, last=last: documents(first, last), tmp_path / "index")
        assert {path.name for path in tmp_path.iterdir()} == {"whole", "index.counts"}
    [sealed] = (tmp_path / "index.counts").glob("counts-00011-*")
    sealed.write_bytes(sealed.read_bytes()[:-1])
    assert postings.verify(tmp_path) == []
    with pytest.warns(UserWarning, match="counts-00011-.* its documents are counted again"):
        index = bm25.build_index(documents, tmp_path / "index")
    assert asked == [0, 96, 176]
    assert as_lists(index.search(queries, 40)) == whole
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "index"}
    for path in (tmp_path / "whole").glob("*.bin"):
        assert path.read_bytes() == (tmp_path / "index" / path.name).read_bytes()
