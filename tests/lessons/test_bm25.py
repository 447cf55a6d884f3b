"""Lesson 2: the checks know right answers from typical wrong ones, and agree with two search programs."""

from __future__ import annotations

import ast
import json
from math import log, log2, log10

import numpy as np
from lesson_answers import hint_test, right_test

from mirblab.lessons.checks import bm25 as checks


def df_of(term, docs):
    return sum(term in doc for doc in docs)


def idf(df, n):
    return log(1 + (n - df + 0.5) / (df + 0.5))


def weight(tf, length, mean, k1, b):
    return tf / (tf + k1 * (1 - b + b * length / mean))


def score(query, docs, k1, b, *, idf=idf, weight=weight):
    mean = sum(map(len, docs)) / len(docs)
    return [sum(idf(df_of(t, docs), len(docs)) * weight(d.count(t), len(d), mean, k1, b) for t in query) for d in docs]


RIGHT = {
    "document_frequency": [df_of],
    "idf": [idf, lambda df, n: np.log(1 + (n - df + 0.5) / (df + 0.5))],
    "weight": [weight],
    "score": [score, lambda *given: np.array(score(*given))],
}
WRONG = [
    ("document_frequency", lambda term, docs: sum(doc.count(term) for doc in docs), "how often the term occurs"),
    ("document_frequency", lambda term, docs: sum(term in " ".join(doc) for doc in docs), "part of a word"),
    ("document_frequency", lambda term, docs: sum(term not in doc for doc in docs), "lack the term"),
    ("document_frequency", lambda term, docs: df_of(term, docs) / len(docs), "that is a share"),
    ("document_frequency", lambda term, docs: df_of(term, docs) + 10, "too large"),
    ("idf", lambda df, n: log((n - df + 0.5) / (df + 0.5)), "become negative"),
    ("idf", lambda df, n: log10(1 + (n - df + 0.5) / (df + 0.5)), "base 10"),
    ("idf", lambda df, n: log2(1 + (n - df + 0.5) / (df + 0.5)), "base 2"),
    ("idf", lambda df, n: 1 + log((n - df + 0.5) / (df + 0.5)), "inside the logarithm"),
    ("idf", lambda df, n: log(n / df), "halves"),
    ("idf", lambda df, n: log(1 + (df + 0.5) / (n - df + 0.5)), "upside down"),
    ("idf", lambda df, n: 1 + (n - df + 0.5) / (df + 0.5), "has still to be taken"),
    ("weight", lambda tf, length, mean, k1, b: 2.2 * weight(tf, length, mean, k1, b), "k1 + 1"),
    ("weight", lambda tf, length, mean, k1, b: weight(tf, mean, length, k1, b), "fraction of the two lengths"),
    ("weight", lambda tf, length, mean, k1, b: tf / (tf + k1), "length of the document"),
    ("weight", lambda tf, length, mean, k1, b: weight(tf, length, mean, k1, 1), "b has no effect"),
    ("weight", lambda tf, length, mean, k1, b: weight(tf, length, mean, 1, b), ""),
    ("weight", lambda tf, length, mean, k1, b: tf / (tf + k1 * (1 - b) + b * length / mean), ""),
    ("weight", lambda tf, length, mean, k1, b: 1 / 0, "ZeroDivisionError"),
    ("score", lambda *given: score(*given, idf=lambda df, n: 1), "idf is missing"),
    ("score", lambda query, docs, k1, b: score(set(query), docs, k1, b), "in the query counts twice"),
    ("score", lambda query, docs, k1, b: score(query[:1], docs, k1, b), "only the first word"),
    ("score", lambda query, docs, k1, b: score(query, docs, k1, 0), "length of the documents"),
    ("score", lambda *given: sorted(score(*given), reverse=True), "order of docs"),
    ("score", lambda *given: sum(score(*given)), "a list of numbers is wanted"),
    ("score", lambda *given: score(*given)[:2], "a list of 4 numbers is wanted, but the list has 2"),
    ("score", lambda query, docs, k1, b: [(k1 + 1) * one for one in score(query, docs, k1, b)], "too large"),
]  # fmt: skip


test_right_answers_pass = right_test("bm25", RIGHT)
test_a_wrong_answer_gets_its_hint = hint_test("bm25", WRONG)


def test_the_truth_is_that_of_bm25s():
    """The program that the lesson compares with."""
    import bm25s

    engine = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    engine.index(checks._DOCS, show_progress=False)
    for query in (["ring"], ["field", "a"], ["ring", "ring"]):
        assert np.allclose(checks._scores(query, checks._DOCS, 1.2, 0.75), engine.get_scores(query), atol=1e-5)


def test_rank_bm25_has_a_negative_floor_on_three_documents():
    """As the lesson says of its own three documents: a shared word counts against a document."""
    from rank_bm25 import BM25Okapi

    from mirblab.app.hand_runs import notebook_parameters
    from mirblab.lessons import build

    (path,) = build.lesson_notebooks(["02"])
    given = notebook_parameters(path)
    cells = ["".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"]]
    (own,) = (cell for cell in cells if cell.startswith("documents = ["))
    documents = ast.literal_eval(ast.parse(own).body[0].value)
    engine = BM25Okapi([text.split() for text in documents], k1=given["k1"], b=given["b"])
    assert engine.get_scores(given["query"].split()).argmax() == 2
