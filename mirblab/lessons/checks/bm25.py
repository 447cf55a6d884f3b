"""bm25: checks of the lesson on BM25."""

from __future__ import annotations

from collections.abc import Mapping
from math import log, log2, log10
from typing import Any

from mirblab.lessons.exercises import exercise
from mirblab.lessons.hints import check_function
from mirblab.retrieval.bm25 import IDF, TermIndex

_DOCS = [
    ["a", "ring", "of", "a", "ring", "ring"],
    ["a", "field"],
    ["a", "string"],
    ["each", "field", "is", "a", "ring"],
]


@exercise("document_frequency", "Counting documents, not occurrences, is what makes a rare word rare.")
def _document_frequency(answer: Any) -> str:
    def slips(term: str, docs: list[list[str]]) -> Mapping[str, float]:
        n_with_term = sum(term in doc for doc in docs)
        return {
            "you count how often the term occurs; count the documents that contain it.": (
                sum(doc.count(term) for doc in docs)
            ),
            "part of a word is not the word: `string` does not contain the term `ring`.": (
                sum(term in " ".join(doc) for doc in docs)
            ),
            "you count the documents that lack the term.": len(docs) - n_with_term,
            "that is a share; return the number of documents.": n_with_term / len(docs),
        }

    cases = [(term, _DOCS) for term in ("ring", "field", "ideal", "a")]
    return _with_docs(check_function(answer, cases, lambda term, docs: sum(term in doc for doc in docs), slips))


@exercise("idf", "It is never negative, however common the word.")
def _idf(answer: Any) -> str:
    def slips(df: int, n: int) -> Mapping[str, float]:
        odds = (n - df + 0.5) / (df + 0.5)
        return {
            "the 1 in front of the fraction is missing, so that common words become negative.": log(odds),
            "that is the logarithm to base 10; use the natural logarithm, `math.log`.": log10(1 + odds),
            "that is the logarithm to base 2; use the natural logarithm, `math.log`.": log2(1 + odds),
            "the 1 belongs inside the logarithm.": 1 + log(odds),
            "the halves are missing.": log(1 + (n - df) / df),
            "that is the older formula: the logarithm of all documents divided by those with the term.": log(n / df),
            "the logarithm has still to be taken.": 1 + odds,
            "the fraction is upside down.": log(1 + 1 / odds),
        }

    return check_function(answer, [(1, 100), (2, 3), (60, 100)], lambda df, n: float(IDF["lucene"](df, n)), slips)


@exercise("weight", "It stays below 1: each repetition adds less than the one before.")
def _weight(answer: Any) -> str:
    def slips(tf: float, length: float, mean: float, k1: float, b: float) -> Mapping[str, float]:
        if not tf:
            return {}
        return {
            "a long document should get a lower weight, not a higher one; look at the fraction of the two lengths.": (
                _weigh(tf, mean, length, k1, b)
            ),
            "the length of the document has no effect yet.": _weigh(tf, mean, mean, k1, b),
            "b has no effect yet; it determines how much the length counts.": _weigh(tf, length, mean, k1, 1),
            "you multiply by k1 + 1, as some programs do; here it is left out.": (
                (k1 + 1) * _weigh(tf, length, mean, k1, b)
            ),
            "k1 has no effect yet.": _weigh(tf, length, mean, 1, b),
            "the length belongs inside the brackets that k1 multiplies; check the position of your brackets.": (
                tf / (tf + k1 * (1 - b) + b * length / mean)
            ),
        }

    cases = [(3, 10, 10, 1.2, 0.75), (2, 40, 10, 1.2, 0.75), (2, 5, 10, 2.0, 0.4), (0, 5, 9, 1, 1)]
    return check_function(answer, cases, _weigh, slips)


@exercise("score", "That is BM25 in full: a search engine computes the same numbers.")
def _score(answer: Any) -> str:
    def slips(query: list[str], docs: list[list[str]], k1: float, b: float) -> Mapping[str, list[float]]:
        return {
            "every word counts the same; the idf is missing.": [_plain(query, doc, k1, b) for doc in docs],
            "a word that occurs twice in the query counts twice.": _scores(list(dict.fromkeys(query)), docs, k1, b),
            "only the first word of the query counts.": _scores(query[:1], docs, k1, b),
            "the length of the documents has no effect.": _scores(query, docs, k1, 0),
            "your scores seem to be sorted; keep the order of docs.": sorted(_scores(query, docs, k1, b), reverse=True),
        }

    queries = ((["ring"], 1.2, 0.75), (["field", "a"], 1.5, 0.5), (["ring", "ideal", "ring"], 1.2, 0.75))
    cases = [(query, _DOCS, k1, b) for query, k1, b in queries]
    return _with_docs(check_function(answer, cases, _scores, slips))


def _with_docs(hint: str) -> str:
    return hint and f"{hint} Here docs = `{_DOCS}`."


def _weigh(tf: float, length: float, mean: float, k1: float, b: float) -> float:
    return tf / (tf + k1 * (1 - b + b * length / mean))


def _plain(query: list[str], doc: list[str], k1: float, b: float) -> float:
    mean = sum(map(len, _DOCS)) / len(_DOCS)
    return sum(_weigh(doc.count(term), len(doc), mean, k1, b) for term in query)


def _scores(query: list[str], docs: list[list[str]], k1: float, b: float) -> list[float]:
    index = TermIndex.build(docs, "lucene", k1, b, 0.0)
    counts: Any = index.queries([query])  # a sparse matrix of one row
    return (index.weights @ counts.toarray()[0]).tolist()
