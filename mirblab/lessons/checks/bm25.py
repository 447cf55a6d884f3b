"""bm25: checks of the lesson on BM25."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log, log2, log10
from typing import Any

from mirblab.lessons.exercises import check_number, exercise, nearly_equal, shorten
from mirblab.retrieval.bm25 import IDF, TermIndex

_DOCS = [
    ["a", "ring", "of", "a", "ring", "ring"],
    ["a", "field"],
    ["a", "string"],
    ["each", "field", "is", "a", "ring"],
]


@exercise("document_frequency", "Counting documents, not occurrences, is what makes a rare word rare.")
def _document_frequency(answer: Callable[[str, list[list[str]]], int]) -> Iterator[str]:
    for term in ("ring", "field", "ideal", "a"):
        truth = sum(term in doc for doc in _DOCS)
        slips = {
            "you count how often the term occurs; count the documents that contain it.": sum(
                doc.count(term) for doc in _DOCS
            ),
            "part of a word is not the word: `string` does not contain the term `ring`.": sum(
                term in " ".join(doc) for doc in _DOCS
            ),
            "you count the documents that lack the term.": len(_DOCS) - truth,
            "that is a share; return the number of documents.": truth / len(_DOCS),
        }
        hint = check_number(
            answer(term, [list(doc) for doc in _DOCS]), truth, f"document_frequency('{term}', docs)", slips
        )
        yield hint and f"{hint} Here docs = `{_DOCS}`."


@exercise("idf", "It is never negative, however common the word.")
def _idf(answer: Callable[[int, int], float]) -> Iterator[str]:
    for df, n in ((1, 100), (2, 3), (60, 100)):
        odds = (n - df + 0.5) / (df + 0.5)
        slips = {
            "the 1 in front of the fraction is missing, so that common words become negative.": log(odds),
            "that is the logarithm to base 10; use the natural logarithm, `math.log`.": log10(1 + odds),
            "that is the logarithm to base 2; use the natural logarithm, `math.log`.": log2(1 + odds),
            "the 1 belongs inside the logarithm.": 1 + log(odds),
            "the halves are missing.": log(1 + (n - df) / df),
            "that is the older formula: the logarithm of all documents divided by those with the term.": log(n / df),
            "the logarithm has still to be taken.": 1 + odds,
            "the fraction is upside down.": log(1 + 1 / odds),
        }
        yield check_number(answer(df, n), IDF["lucene"](df, n), f"idf({df}, {n})", slips)


@exercise("weight", "It stays below 1: each repetition adds less than the one before.")
def _weight(answer: Callable[[float, float, float, float, float], float]) -> Iterator[str]:
    for tf, length, mean, k1, b in (
        (3, 10, 10, 1.2, 0.75),
        (2, 40, 10, 1.2, 0.75),
        (2, 5, 10, 2.0, 0.4),
        (0, 5, 9, 1, 1),
    ):
        right = _weigh(tf, length, mean, k1, b)
        slips = {} if not tf else {
            "a long document should get a lower weight, not a higher one; look at the fraction of the two lengths.":
                _weigh(tf, mean, length, k1, b),
            "the length of the document has no effect yet.": _weigh(tf, mean, mean, k1, b),
            "b has no effect yet; it determines how much the length counts.": _weigh(tf, length, mean, k1, 1),
            "you multiply by k1 + 1, as some programs do; here it is left out.": (k1 + 1) * right,
            "k1 has no effect yet.": _weigh(tf, length, mean, 1, b),
            "the length belongs inside the brackets that k1 multiplies; check the position of your brackets.":
                tf / (tf + k1 * (1 - b) + b * length / mean),
        }  # fmt: skip
        case = f"weight({tf}, {length}, {mean}, {k1}, {b})"
        yield check_number(answer(tf, length, mean, k1, b), right, case, slips)


@exercise("score", "That is BM25 in full: a search engine computes the same numbers.")
def _score(answer: Callable[[list[str], list[list[str]], float, float], list[float]]) -> Iterator[str]:
    for query, k1, b in ((["ring"], 1.2, 0.75), (["field", "a"], 1.5, 0.5), (["ring", "ideal", "ring"], 1.2, 0.75)):
        docs = [list(doc) for doc in _DOCS]
        hint = _score_hint(answer(list(query), docs, k1, b), query, k1, b)
        yield hint and f"{hint} Here docs = `{_DOCS}`."


def _score_hint(found: Any, query: list[str], k1: float, b: float) -> str:
    case = f"score({query}, docs, {k1}, {b})"
    try:
        values = [float(value) for value in found]
    except TypeError:
        return (
            f"For `{case}` the answer must be a list of numbers, one for each document, but it is `{shorten(found)}`."
        )
    if len(values) != len(_DOCS):
        return f"For `{case}` there are {len(_DOCS)} documents, but you return {len(values)} numbers."
    truth = _scores(query, k1, b)
    slips = {
        "every word counts the same; the idf is missing.": [_plain(query, doc, k1, b) for doc in _DOCS],
        "a word that occurs twice in the query counts twice.": _scores(list(dict.fromkeys(query)), k1, b),
        "only the first word of the query counts.": _scores(query[:1], k1, b),
        "the length of the documents has no effect.": _scores(query, k1, 0),
        "your scores seem to be sorted; keep the order of docs.": sorted(truth, reverse=True),
    }
    if _all_same(values, truth):
        return ""
    said = next((slip for slip, value in slips.items() if _all_same(values, value)), "")
    if said:
        return f"For `{case}`: {said}"
    pairs = enumerate(zip(values, truth, strict=True))
    return next(
        hint for hint in (check_number(v, t, f"{case}[{place}]", close=1e-3) for place, (v, t) in pairs) if hint
    )


def _weigh(tf: float, length: float, mean: float, k1: float, b: float) -> float:
    return tf / (tf + k1 * (1 - b + b * length / mean))


def _plain(query: list[str], doc: list[str], k1: float, b: float) -> float:
    mean = sum(map(len, _DOCS)) / len(_DOCS)
    return sum(_weigh(doc.count(term), len(doc), mean, k1, b) for term in query)


def _scores(query: list[str], k1: float, b: float) -> list[float]:
    """Return the scores that the library's index computes for all documents."""
    index = TermIndex.build(_DOCS, "lucene", k1, b, 0.0)
    return (index.weights @ index.queries([query]).toarray()[0]).tolist()


def _all_same(values: list[float], others: list[float]) -> bool:
    return all(nearly_equal(a, b, 1e-3) for a, b in zip(values, others, strict=True))
