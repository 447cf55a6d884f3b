"""highlights: which characters of a document matched a query, for each way of searching."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from mirblab.display.text import Mark, split_pieces
from mirblab.formula.explain import ExplainedFormula, explain_match, read_formula
from mirblab.formula.index import Index
from mirblab.formula.search import IndexedFormulas
from mirblab.retrieval.tokenizers import tokenizer

_FONT = r"\\(?:math[a-z]+|boldsymbol|bm|Bbb|cal)\s*(?:\{\s*\\?\w+\s*\}|[A-Za-z](?![A-Za-z]))"
# The pieces of a text that may be terms. The tokenizer decides which are, so that wrong pieces are never marked.
_FORM = re.compile(
    rf"{_FONT}|\\[A-Za-z]+|[^\W\d_][\w'’]*(?:\.[^\W\d_][\w']*)*|\d+(?:\.\d+)?|[<>=:|/\\-]{{2,3}}|[^\w\s]"
)
_INSIDE, _OUTSIDE = ("latex-ngrams",), ("prose",)  # tokenizers that read formulas only, or what is outside of them
_MOST_QUERIES = 5  # formulas of a query that are compared with the documents': the longest
_LEAST = 0.5  # smaller cosines are not marked, since nearly every word is the nearest one of some token
_FAR = 40  # characters between two tokens


def terms(text: str, gains: Mapping[str, float], tokenizer_name: str) -> list[Mark]:
    """Return where *text* has terms of the query, the strongest with 1; *gains*: what each term adds to the score."""
    worth: dict[str, float] = defaultdict(float)
    for term, gain in gains.items():
        symbols = term.split(" ") if tokenizer_name in _INSIDE else [term]
        for symbol in symbols:
            worth[symbol] += max(gain, 0.0) / len(symbols)
    forms = list(_forms(text, tokenizer_name))
    distinct = list(dict.fromkeys(form for form, _ in forms))
    tokens = zip(distinct, tokenizer(tokenizer_name)(distinct), strict=True)
    gain_of = {form: sum(worth[token] for token in set(tokens_of_form)) for form, tokens_of_form in tokens}
    most = max(gain_of.values(), default=0.0)
    return [(at, at + len(form), gain_of[form] / most) for form, at in forms if gain_of[form] > 0]


def _forms(text: str, tokenizer_name: str) -> Iterator[tuple[str, int]]:
    for piece in split_pieces(text):
        if tokenizer_name not in (_OUTSIDE if piece.is_formula else _INSIDE):
            yield from ((form[0], piece.start + form.start()) for form in _FORM.finditer(piece.text))


def formulas(text: str, queries: Sequence[str], pair: tuple[ExplainedFormula, str] | None, index: Index) -> list[Mark]:
    """Return which symbols of the formulas of *text* match the formulas of a query.

    Formulas among *queries* are marked as a whole. *pair*: a formula of the query and the most similar other one of the
    document, whose symbols are marked by the share of the weight around them that both have.
    """
    pieces = [piece for piece in split_pieces(text) if piece.is_formula]
    marks = [(piece.start, piece.start + len(piece.text), 1.0) for piece in pieces if piece.text in queries]
    if pair is None:
        return marks
    why = explain_match(*pair, index)
    shares = [(why.document.spans[node], share) for node, share in why.document_nodes.items() if share > 0]
    starts = [piece.start for piece in pieces if piece.text == pair[1]]
    return marks + [(at + start, at + end, share) for at in starts for (start, end), share in shares]


def nearest(
    indexed: IndexedFormulas, queries: Sequence[str], positions: Sequence[int]
) -> list[tuple[ExplainedFormula, str] | None]:
    """Return for each document a query formula and the most similar of its formulas that the query does not have."""
    longest = sorted(dict.fromkeys(queries), key=len, reverse=True)[:_MOST_QUERIES]
    pairs: list[tuple[ExplainedFormula, str] | None] = [None for _ in positions]
    if not longest:
        return pairs
    scores = np.stack([indexed.index.scores(query) for query in indexed.index.queries(longest)])
    documents = indexed.formulas
    read = cache(lambda latex: read_formula(latex, indexed.index))
    for row, position in enumerate(positions):
        numbers = np.unique(documents.numbers[documents.starts[position] : documents.starts[position + 1]])
        numbers = numbers[[documents.formulas[number] not in longest for number in numbers]]
        best = scores[:, numbers].max(axis=0, initial=0.0)
        if best.max(initial=0.0) > 0:
            number = numbers[best.argmax()]
            pairs[row] = read(longest[scores[:, number].argmax()]), documents.formulas[number]
    return pairs


def tokens(text: str, names: Sequence[str], rows: np.ndarray, query: np.ndarray) -> list[Mark]:
    """Return where *text* has the tokens nearest to tokens of the query, with their cosines as strengths.

    *names* and *rows* (n_tokens, d) are the document's tokens, *query* (n_query_tokens, d) the query's; rows have
    length 1.

    >>> tokens("A ring", ["a", "ring"], np.eye(2), np.array([[0.0, 1.0]]))
    [(2, 6, 1.0)]
    """
    if not len(rows) or not len(query):
        return []
    cosines = query @ rows.T
    nearest = cosines.argmax(axis=1)
    strength = np.zeros(len(rows))
    np.maximum.at(strength, nearest, cosines[np.arange(len(query)), nearest])
    spans = zip(_token_spans(text, names), strength.tolist(), strict=False)
    return [(*span, (share - _LEAST) / (1 - _LEAST)) for span, share in spans if span and share >= _LEAST]


def _token_spans(text: str, names: Sequence[str]) -> list[tuple[int, int] | None]:
    low = text.lower() if len(text.lower()) == len(text) else text  # a few letters become two
    spans, end = list[tuple[int, int] | None](), 0
    for name in names:
        part = name.removeprefix("##").strip("▁Ġ").lower()
        start = low.find(part, end, end + len(part) + _FAR) if part else -1
        spans.append((start, start + len(part)) if start >= 0 else None)
        end = start + len(part) if start >= 0 else end
    return spans
