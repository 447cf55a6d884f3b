"""compat: `bm25-mirb` is bm25s called as the published code calls it; nobody else returns a restricted document."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from mirblab.data.candidates import Candidates, EarlierRule, ListRule, NotSelfRule, TagRule, tag_matrix
from mirblab.data.collection import Card, Collection, load_folder
from mirblab.retrieval import bm25, postings, systems, tokenizers
from mirblab.sources import catalogue

WORDS = [f"{stem}{ending}" for stem in ("ring", "field", "group", "sheaf", "knot", "prime") for ending in "abcdefgh"]
TAGS = ["algebra", "topology", "analysis", "knots", "numbers"]
RULES = ["judged", "denied", "listed", "not-self", "earlier", "tags"]
METHODS = ["lucene", "robertson", "atire", "bm25l", "bm25+"]


@pytest.fixture
def restricted(make_folder):
    """Return a function that makes a collection of 240 short documents and 30 queries, most of few matches."""

    def make(kind: str) -> Collection:
        random = np.random.default_rng(11)
        chance = 1 / np.arange(1, len(WORDS) + 1) ** 1.6
        chance /= chance.sum()

        def text(longest: int) -> str:
            return " ".join(random.choice(WORDS, random.integers(1, longest), p=chance))

        def tags() -> list[str]:
            return sorted(random.choice(TAGS, random.integers(1, 4), replace=False).tolist())

        docs = [{"_id": f"d{n:03}", "title": text(4), "text": text(9), "tags": tags()} for n in range(236)]
        docs += [
            {"_id": f"d{n:03}", "title": "", "text": text, "tags": tags()}
            for n, text in enumerate(["", "$", "x y", "$x$"], 236)
        ]
        rare = [" ".join(random.choice(WORDS[20:], 2)) for _ in range(12)]
        texts = (
            [text(20) for _ in range(8)] + [text(3) for _ in range(6)] + rare + ["", "x", "zebra", "zebra ringa ringa"]
        )
        queries = [{"_id": f"q{n:02}", "text": text, "tags": tags()} for n, text in enumerate(texts)]
        pairs = {(n % 30, int(doc)): n % 3 for n, doc in enumerate(random.integers(0, 240, 900))}
        judged = "".join(f"q{query:02}\td{doc:03}\t{grade}\n" for (query, doc), grade in pairs.items())
        card = f'candidates = "{kind}"\n' if kind in ("judged", "tags") else ""
        folder = make_folder(docs, queries, judged, card)
        if kind == "denied":
            rows = [
                {"query-id": f"q{n:02}", "excluded-ids": [f"d{doc:03}" for doc in range(n, 240, 2)]} for n in range(30)
            ]
            (folder / "excluded_ids.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return load_folder(folder)

    return make


def as_published(collection: Collection, k: int) -> list[dict[str, float]]:
    """The published computation by bm25s itself: the documents and scores of each query, as it hands them over."""
    import bm25s
    import Stemmer

    options = {"stopwords": "en", "stemmer": Stemmer.Stemmer("english"), "show_progress": False}
    corpus = zip(collection.corpus.title, collection.corpus.text, strict=True)
    engine = bm25s.BM25()
    engine.index(bm25s.tokenize([f"\n{title} {text}" for title, text in corpus], **options), show_progress=False)
    found = []
    for place, text in enumerate(collection.queries.text):
        mask = np.ones(len(collection.corpus), dtype=np.float32)
        mask[~collection.candidates.allowed(np.array([place]))[0]] = 0
        result = engine.retrieve(bm25s.tokenize(text, **options), k=k, weight_mask=mask, show_progress=False)
        ids = collection.doc_ids[result.documents[0]]
        found.append(dict(zip(ids, map(float, result.scores[0]), strict=True)))
    return found


def ours(collection: Collection, depth: int = 10) -> list[dict[str, float]]:
    run = systems.system("bm25-mirb").search(collection, depth=depth).astype({"query_id": str, "doc_id": str})
    rows = run.groupby("query_id")
    return [
        dict(zip(own.doc_id, own.score.astype(float), strict=True)) for own in map(rows.get_group, collection.query_ids)
    ]


def ndcg(collection: Collection, found: list[dict[str, float]]) -> np.ndarray:
    """nDCG@10 of each query, by pytrec_eval."""
    qrels: dict[str, dict[str, int]] = {}
    for query_id, doc_id, relevance in collection.qrels.itertuples(index=False):
        qrels.setdefault(query_id, {})[doc_id] = int(relevance)
    judge = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    values = judge.evaluate(dict(zip(collection.query_ids, found, strict=True)))
    return np.array([values[query_id]["ndcg_cut_10"] for query_id in collection.query_ids])


@pytest.mark.parametrize("kind", ["denied", "tags", "judged"])
def test_it_equals_bm25s_called_as_published(restricted, kind):
    """The same ten scores; the same documents and nDCG@10 wherever bm25s had no equal scores to choose from."""
    collection = restricted(kind)
    mine, theirs, whole = ours(collection), as_published(collection, 10), as_published(collection, 240)
    forced = np.zeros(len(mine), dtype=bool)
    for place, (own, their, every) in enumerate(zip(mine, theirs, whole, strict=True)):
        assert sorted(own.values()) == sorted(their.values())
        last = min(their.values())
        assert {doc: score for doc, score in own.items() if score > last} == {
            doc: score for doc, score in their.items() if score > last
        }
        assert all(every[doc] == score for doc, score in own.items())
        if last == 0:
            assert {doc for doc in own if own[doc] > 0} == {doc for doc in every if every[doc] > 0}
        forced[place] = sum(score >= last for score in every.values()) == 10
    few = np.array([sum(score > 0 for score in every.values()) < 10 for every in whole])
    assert few.sum() >= 10 and forced.sum() >= (1 if kind == "judged" else 5)
    np.testing.assert_array_equal(ndcg(collection, mine)[forced], ndcg(collection, theirs)[forced])
    # bm25s asked for all documents chooses nothing, and pytrec_eval breaks ties by doc_id: nothing else differs.
    np.testing.assert_array_equal(ndcg(collection, mine), ndcg(collection, whole))


@pytest.mark.parametrize("kind", ["denied", "tags", "judged"])
def test_where_zeros_are_chosen_from_the_larger_id_comes_first(restricted, kind):
    """Candidates or not; bm25s chooses others, and this choice is the only difference."""
    collection = restricted(kind)
    differ = 0
    for own, their, every in zip(
        ours(collection), as_published(collection, 10), as_published(collection, 240), strict=True
    ):
        zeros = sorted((doc for doc, score in every.items() if score == 0), reverse=True)
        assert [doc for doc in own if own[doc] == 0] == zeros[: sum(score == 0 for score in own.values())]
        differ += set(own) != set(their)
    assert differ


@pytest.mark.parametrize("kind", ["denied", "tags", "judged"])
def test_the_run_says_that_restricted_documents_may_appear(restricted, kind):
    """And they do, at score 0 only; the default system returns none."""
    collection = restricted(kind)
    run = systems.system("bm25-mirb").search(collection, depth=10)
    kept = collection.candidates.permits(*codes(run))
    assert (~kept).any() and (run.score[~kept] == 0).all()
    assert "may fill the ranking" in run.attrs["notes"]
    other = systems.system("bm25").search(collection, depth=10)
    assert len(other) and collection.candidates.permits(*codes(other)).all() and "notes" not in other.attrs


@pytest.mark.parametrize("kind", ["denied", "tags", "judged"])
def test_defect_counts_what_should_not_be_there(restricted, kind):
    """By a slow count over the published run."""
    collection = restricted(kind)
    table = bm25.published_defect_table(collection, depth=7)
    assert table.columns.tolist() == ["query_id", "found", "not_candidates", "score_zero"]
    assert table.query_id.tolist() == collection.query_ids.tolist()
    for place, (row, own) in enumerate(zip(table.itertuples(), ours(collection, 7), strict=True)):
        allowed = dict(zip(collection.doc_ids, collection.candidates.allowed(np.array([place]))[0], strict=True))
        assert row.found == len(own) == 7
        assert row.not_candidates == sum(not allowed[doc] for doc in own)
        assert row.score_zero == sum(score == 0 for score in own.values())
    assert table.not_candidates.sum() > 0


def test_without_restrictions_nothing_is_no_candidate(make_folder):
    """But documents of score 0 are there all the same."""
    table = bm25.published_defect_table(load_folder(make_folder()), depth=3)
    assert table.not_candidates.tolist() == [0, 0] and (table.score_zero > 0).any()


def codes(run: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    return run.query_id.cat.codes.to_numpy(), run.doc_id.cat.codes.to_numpy()


texts = st.lists(st.sampled_from(["knot", "rings", "x", "the", "$R$", "prime", "=", "zebra"]), max_size=6).map(" ".join)
tag_sets = st.lists(st.sampled_from(TAGS), max_size=3, unique=True)


@st.composite
def collections(draw) -> Collection:
    """Small collections under any of the rules, several at once, with empty texts and repeated words."""
    docs, queries = draw(st.lists(texts, min_size=1, max_size=12)), draw(st.lists(texts, min_size=1, max_size=5))
    n_docs, n_queries = len(docs), len(queries)
    pair = st.tuples(st.integers(0, n_queries - 1), st.integers(0, n_docs - 1))

    def pairs() -> tuple[np.ndarray, np.ndarray]:
        found = draw(st.lists(pair, unique=True, max_size=20))
        return tuple(np.array(column, dtype=np.int64) for column in ([q for q, _ in found], [d for _, d in found]))

    def matrix(size: int) -> object:
        return tag_matrix(pd.Series([draw(tag_sets) for _ in range(size)], dtype="object"), pd.Index(TAGS))

    def rule(kind: str) -> object:
        if kind == "not-self":
            return NotSelfRule(np.array([draw(st.integers(-1, n_docs - 1)) for _ in range(n_queries)]))
        if kind == "earlier":
            orders = [np.array([draw(st.integers(0, 5)) for _ in range(size)]) for size in (n_docs, n_queries)]
            return EarlierRule(*orders)
        if kind == "tags":
            gold = ListRule.from_pairs("gold", *pairs(), n_queries, allow=True)
            return TagRule(matrix(n_queries), matrix(n_docs), gold)
        return ListRule.from_pairs(kind, *pairs(), n_queries, allow=kind != "denied")

    rules = tuple(rule(kind) for kind in draw(st.lists(st.sampled_from(RULES), unique=True, max_size=3)))
    judged = pd.DataFrame(sorted(draw(st.sets(pair, max_size=10))), columns=["query_id", "doc_id"])
    ids = [
        pd.Index([f"{sign}{n:02}" for n in range(size)], dtype="str")
        for sign, size in (("q", n_queries), ("d", n_docs))
    ]
    qrels = pd.DataFrame({
        name: pd.Categorical.from_codes(judged[name].to_numpy(dtype=int), own)
        for name, own in zip(["query_id", "doc_id"], ids, strict=True)
    }).assign(relevance=1)  # fmt: skip
    corpus = pd.DataFrame({"doc_id": ids[1], "title": "", "text": pd.Series(docs, dtype="str")})
    asked = pd.DataFrame({"query_id": ids[0], "text": pd.Series(queries, dtype="str")})
    return Collection("drawn", "test", corpus, asked, qrels, Candidates(n_docs, rules), Card())


def slowly(collection: Collection, method: str, tokenizer: str, k1: float, b: float, delta: float) -> np.ndarray:
    """BM25 in float32, one query, document and term at a time; what shares no term or is restricted is NaN."""
    docs, queries = (tokenizers.tokenizer(tokenizer)(texts) for texts in (collection.texts, collection.query_texts))
    order = {word: place for place, word in enumerate(dict.fromkeys(word for doc in docs for word in doc))}
    n, mean = len(docs), sum(map(len, docs)) / len(docs)
    found_in = Counter(word for doc in docs for word in set(doc))
    scores = np.full((len(queries), n), np.nan, dtype=np.float32)

    def gain(tf: float, length: float) -> float:
        norm, first = 1 - b + b * length / mean, float(np.float32(tf) * np.float32(k1 + 1))
        if method == "atire":
            return first / (tf + k1 * norm)
        if method == "bm25l":
            below = k1 + tf / norm + delta
            return (k1 + 1) * (tf / norm + delta) / below if below else 0.0
        below = k1 * norm + tf
        if method == "bm25+":
            return (first / below if below else 0.0) + delta
        return tf / below

    for query, row in enumerate(queries):
        asked = sorted(Counter(word for word in row if word in order).items(), key=lambda item: order[item[0]])
        idf = {word: bm25.IDF[method](found_in[word], n) for word, _ in asked}
        has_floor = method in ("bm25l", "bm25+")
        none = {word: np.float32(idf[word] * gain(0, mean) if has_floor else 0) for word in idf}
        floor = sum((np.float32(times) * none[word] for word, times in asked), np.float32(0))
        allowed = collection.candidates.allowed(np.array([query]))
        for doc, words in enumerate(docs):
            total, own = np.float32(0), Counter(words)
            for word, times in asked:
                if own[word]:
                    weight = float(np.float32(idf[word])) * gain(own[word], len(words))
                    total += np.float32(times) * np.float32(weight - float(none[word]))
            if total + floor > floor and (allowed is None or allowed[0, doc]):
                scores[query, doc] = total + floor
    return scores


@settings(max_examples=80, deadline=None)
@given(
    collection=collections(),
    method=st.sampled_from(METHODS),
    tokenizer=st.sampled_from(["math", "mirb", "words"]),
    shape=st.tuples(
        st.sampled_from([0.0, 0.9, 1.2, 2.0]), st.sampled_from([0.0, 0.4, 0.75, 1.0]), st.sampled_from([0.0, 0.5])
    ),
    depth=st.integers(1, 14),
    sizes=st.tuples(st.integers(1, 6), st.integers(1, 13), st.booleans()),
)
def test_no_setting_returns_a_restricted_document(collection, method, tokenizer, shape, depth, sizes):
    """Under every rule and setting, in products and in compiled loops, the run is the slow loop's to the last place."""
    (k1, b, delta), (rows, width, is_large) = shape, sizes
    options = {"method": method, "k1": k1, "b": b, "delta": delta, "tokenizer": tokenizer}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm25, "COMPILE_FROM", -1 if is_large else 1 << 60)
        patch.setattr(bm25, "DEEPEST_SHARE", np.inf)
        for name, size in (("LANES", rows), ("ROWS", rows), ("CHUNK", width), ("SLAB", width)):
            patch.setattr(bm25, name, size)
        for name, size in (("ROWS", rows), ("PART_DOCS", width), ("LEAST_SLACK", 1)):
            patch.setattr(postings, name, size)
        run = bm25.search(collection, depth=depth, **options)
    queries, docs = codes(run)
    assert collection.candidates.permits(queries, docs).all()
    scores = slowly(collection, method, tokenizer, k1, b, delta)
    for place, row in enumerate(scores):
        known = np.flatnonzero(~np.isnan(row))
        best = known[np.lexsort((-known, -row[known]))][:depth]
        assert docs[queries == place].tolist() == best.tolist()
        assert run.score[queries == place].tolist() == row[best].tolist()


@settings(max_examples=60, deadline=None)
@given(collection=collections(), depth=st.integers(1, 14), k1=st.sampled_from([0.9, 1.5]))
def test_rank_bm25_returns_no_restricted_document_either(collection, depth, k1):
    """The lessons' engine masks one query at a time."""
    run = bm25.search(collection, depth=depth, engine="rank-bm25", k1=k1)
    assert collection.candidates.permits(*codes(run)).all()


def test_no_other_registered_bm25_returns_a_restricted_document():
    """On the bundled collections that restrict."""
    for name in ("mini-mse-dup", "mini-mo-dup", "mini-wfb", "mini-premises"):
        collection = catalogue.load(name)
        for system in ("bm25", "bm25-okapi"):
            run = systems.system(system).search(collection, depth=100)
            assert len(run) and collection.candidates.permits(*codes(run)).all()
