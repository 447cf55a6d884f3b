"""highlights: which characters of a document matched a query, for each way of searching."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from mirblab.display.text import Mark, split_pieces
from mirblab.formula.explain import ExplainedFormula, explain_match, read_formula
from mirblab.formula.index import Index
from mirblab.formula.search import IndexedFormulas
from mirblab.retrieval.tokenizers import tokenizer

_FONT = r"\\(?:math[a-z]+|boldsymbol|bm|Bbb|cal)\s*(?:\{\s*\\?\w+\s*\}|[A-Za-z](?![A-Za-z]))"
# What a term may be made of: a tokenizer says which, so that too fine or too coarse a cut marks less, never more.
_FORM = re.compile(
    rf"{_FONT}|\\[A-Za-z]+|[^\W\d_][\w'’]*(?:\.[^\W\d_][\w']*)*|\d+(?:\.\d+)?|[<>=:|/\\-]{{2,3}}|[^\w\s]"
)
_INSIDE, _OUTSIDE = ("latex-ngrams",), ("prose",)  # tokenizers that read formulas only, or what is outside of them
_MOST_QUERIES = 5  # formulas of a query that are compared with the documents': the longest
_LEAST = 0.5  # a smaller cosine is marked no more: nearly every word is nearest to something
_FAR = 40  # characters between two tokens


def terms(text: str, gains: Mapping[str, float], tokenizer_name: str) -> list[Mark]:
    """Return where *text* has terms that add to its score, the one that adds the most with strength 1.

    *gains* is what each term of the query adds. A term of several symbols counts for each of them.

    >>> terms("A ring is a field", {"ring": 3.0, "field": 1.0, "knot": 0.0}, "math")
    [(2, 6, 1.0), (12, 17, 0.3333333333333333)]
    """
    worth: Counter[str] = Counter()
    for term, gain in gains.items():
        symbols = term.split(" ") if tokenizer_name in _INSIDE else [term]
        for symbol in symbols:
            worth[symbol] += max(gain, 0.0) / len(symbols)
    forms = list(_forms(text, tokenizer_name))
    distinct = list(dict.fromkeys(form for form, _ in forms))
    found = dict(zip(distinct, tokenizer(tokenizer_name)(distinct), strict=True))
    each = {form: sum(worth[token] for token in set(found[form])) for form in distinct}
    most = max(each.values(), default=0.0)
    return [(at, at + len(form), each[form] / most) for form, at in forms if each[form] > 0]


def _forms(text: str, tokenizer_name: str) -> Iterator[tuple[str, int]]:
    """Yield what may be a term in the text, and where it starts."""
    for piece in split_pieces(text):
        if tokenizer_name not in (_OUTSIDE if piece.is_formula else _INSIDE):
            yield from ((form[0], piece.start + form.start()) for form in _FORM.finditer(piece.text))


def formulas(text: str, queries: Sequence[str], pair: tuple[ExplainedFormula, str] | None, index: Index) -> list[Mark]:
    """Return which symbols of the formulas of *text* agree with the formulas of a query.

    Those that are one of *queries* are marked wholly, and the second of the *pair*, which is the nearest of the
    others to the first, a formula of the query, by the share of the weight around each symbol that both have.
    """
    own = [piece for piece in split_pieces(text) if piece.is_formula]
    found = [(piece.start, piece.start + len(piece.text), 1.0) for piece in own if piece.text in queries]
    if pair is None:
        return found
    why = explain_match(*pair, index)
    shares = [(why.document.spans[node], share) for node, share in why.document_nodes.items() if share > 0]
    starts = [piece.start for piece in own if piece.text == pair[1]]
    return found + [(at + start, at + end, share) for at in starts for (start, end), share in shares]


def nearest(
    found: IndexedFormulas, queries: Sequence[str], positions: Sequence[int]
) -> list[tuple[ExplainedFormula, str] | None]:
    """Return for each document a formula of the query and the most alike of its own that is none of the query's."""
    asked = sorted(dict.fromkeys(queries), key=len, reverse=True)[:_MOST_QUERIES]
    if not asked:
        return [None for _ in positions]
    scores = np.stack([found.index.scores(own) for own in found.index.queries(asked)])
    documents, pairs = found.formulas, []
    read = cache(lambda latex: read_formula(latex, found.index))
    for position in positions:
        numbers = np.unique(documents.numbers[documents.starts[position] : documents.starts[position + 1]])
        numbers = numbers[[documents.formulas[number] not in asked for number in numbers]]
        best = scores[:, numbers].max(axis=0, initial=0.0)
        if best.max(initial=0.0) <= 0:
            pairs.append(None)
            continue
        number = numbers[best.argmax()]
        pairs.append((read(asked[scores[:, number].argmax()]), documents.formulas[number]))
    return pairs


def tokens(text: str, names: Sequence[str], rows: np.ndarray, query: np.ndarray) -> list[Mark]:
    """Return where *text* has the token that is nearest to a token of the query, as strong as their cosine.

    *names* and *rows* (n_tokens, d) are the document's tokens, *query* (n_query_tokens, d) the query's vectors; rows
    have length 1.

    >>> tokens("A ring", ["a", "ring"], np.eye(2), np.array([[0.0, 1.0]]))
    [(2, 6, 1.0)]
    """
    if not len(rows) or not len(query):
        return []
    cosines = query @ rows.T
    nearest = cosines.argmax(axis=1)
    strength = np.zeros(len(rows))
    np.maximum.at(strength, nearest, cosines[np.arange(len(query)), nearest])
    places = _places(text, names)
    kept = ((place, share) for place, share in zip(places, strength.tolist(), strict=False) if share >= _LEAST)
    return [(*place, (share - _LEAST) / (1 - _LEAST)) for place, share in kept if place]


def _places(text: str, names: Sequence[str]) -> list[tuple[int, int] | None]:
    """Return where each token stands, in turn; None for one that is not written so in the text."""
    low = text.lower()
    if len(low) != len(text):  # few letters become two
        low = text
    found, at = [], 0
    for name in names:
        part = name.removeprefix("##").strip("▁Ġ").lower()
        place = low.find(part, at, at + len(part) + _FAR) if part else -1
        found.append((place, place + len(part)) if place >= 0 else None)
        at = place + len(part) if place >= 0 else at
    return found
