"""query_matches: what of a query each kind of system found in a document: terms, formulas, tokens, and what is cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mirblab.encode import encoder
from mirblab.errors import MirblabError
from mirblab.features import query_features
from mirblab.formula.explain import explain as explain_formula
from mirblab.formula.index import Index
from mirblab.formula.indexes import stored
from mirblab.formula.texts import Reader
from mirblab.late_match import matches
from mirblab.lexical import explain
from mirblab.one_query import OneQuery
from mirblab.recipes import options
from mirblab.systems import system

_TOKENS = 12  # that are named of a formula
_WORDS = 8  # with which what is cut off begins


def facts(one: OneQuery, model: str = "minilm") -> pd.DataFrame:
    """Return what the query is like, as text: columns what, value.

    Length, formulas, language, field; tokens of the encoder *model* and the text that it cuts off ("": no encoder);
    judged and relevant documents, and the words that it shares with the best of them.
    """
    row = query_features(one.collection).set_index("query_id").loc[one.query_id]
    found = {
        "words": f"{row.words:,}", "formulas": f"{row.formulas:,}", "share of formulas": f"{row.formula_share:.2f}",
        "language": row.language, "field": row.field or "none",
    }  # fmt: skip
    if model:
        asked, cut = encoder(model), cut_off(one.text, model, one.collection.card.instruction)
        n_tokens = len(asked.tokens([one.text], "query", one.collection.card.instruction)[0])
        found[f"tokens that {model} sees"] = f"{n_tokens:,} of at most {asked.max_length:,}, special ones among these"
        found[f"cut off by {model}"] = _part(cut, one.text)
        if one.answer():
            whole = one.collection.document(one.answer())
            cut = cut_off(whole, model, one.collection.card.instruction, "document")
            found[f"cut off of the best answer by {model}"] = _part(cut, whole)
    found["judged documents"] = f"{len(one.grades):,}"
    found["relevant documents"] = f"{len(one.relevant):,}"
    found["words shared with the best"] = "–" if np.isnan(row.overlap) else f"{row.overlap:.2f}"
    return pd.DataFrame({"what": list(found), "value": list(found.values())})


def _part(cut: str, whole: str) -> str:
    """Return how much of a text is cut off, and where that begins."""
    words = cut.split()
    if not words:
        return "nothing"
    return f"{len(words):,} of {len(whole.split()):,} words, from “{' '.join(words[:_WORDS])}” on"


def cut_off(text: str, model: str = "minilm", instruction: str = "", role: str = "query") -> str:
    """Return the end of a text that an encoder does not see, by words; "" where it sees all.

    >>> cut_off("a ring"), cut_off("ring " * 600).split()[:2]
    ('', ['ring', 'ring'])
    """
    words, asked = text.split(), encoder(model)
    low, high = 0, len(words)
    if not words or not asked.n_truncated([text], role, instruction):
        return ""
    while low < high:
        middle = (low + high + 1) // 2
        if asked.n_truncated([" ".join(words[:middle])], role, instruction):
            high = middle - 1
        else:
            low = middle
    return " ".join(words[low:])


def terms(one: OneQuery, doc_ids: Sequence[str], name: str = "bm25") -> pd.DataFrame:
    """Return what each of the query's terms adds to the BM25 score of some documents: term, idf, a column per document.

    *name* is a system of the kind bm25. The largest contribution of all first; a column sums to the document's score.
    """
    settings = system(name).settings
    if settings.get("kind") != "bm25" or settings.get("compat") or settings.get("engine", "bm25s") != "bm25s":
        raise MirblabError(f"only a system of the kind bm25 has terms to explain, '{name}' has none; take 'bm25'")
    chosen = {key: value for key, value in options(settings).items() if key not in ("engine", "compat")}
    parts = [explain(one.collection, one.text, doc_id, **chosen).set_index("term") for doc_id in dict.fromkeys(doc_ids)]
    columns = {doc_id: part.contribution for doc_id, part in zip(dict.fromkeys(doc_ids), parts, strict=True)}
    if not columns:
        return pd.DataFrame(columns=["term", "idf"])
    table = pd.DataFrame({"idf": parts[0].idf} | columns).rename_axis("term").reset_index()
    size = table[list(columns)].max(axis=1)
    return table.iloc[np.lexsort([table.term, -size])].reset_index(drop=True)


def subformulas(one: OneQuery, doc_ids: Sequence[str]) -> pd.DataFrame:
    """Return for each document and formula of the query the document's formula that structure search finds nearest.

    Columns: doc_id, query, document (LaTeX between dollars, "" where nothing is shared), score, found and used (0 to 1,
    shares of the query's and the document's weight), renamed (names that changed), shared (the heaviest tokens). The
    best of a document first. In a post all formulas count together: these scores do not sum to the system's.
    """
    collection = one.collection
    reader = Reader.of(collection)
    asked = list(dict.fromkeys(Reader.of(collection, "query").formulas(one.text)))
    known = reader.owned(collection.texts).formulas
    index, rows = stored(known), []
    scores = [index.scores(own) for own in index.queries(asked)]
    for doc_id in dict.fromkeys(doc_ids):
        held = set(reader.formulas(collection.document(doc_id)))
        places = np.array([at for at, own in enumerate(known) if own in held], dtype=np.int64)
        for query, own in zip(asked, scores, strict=True):
            best = known[places[own[places].argmax()]] if own[places].max(initial=0) > 0 else ""
            rows.append((doc_id, *_matched(query, best, index)))
    names = ["doc_id", "query", "document", "score", "found", "used", "renamed", "shared"]
    table = pd.DataFrame(rows, columns=names)
    first = table.doc_id.map({name: at for at, name in enumerate(dict.fromkeys(doc_ids))})
    return table.iloc[np.lexsort([-table.score, first])].reset_index(drop=True)


def _matched(query: str, document: str, index: Index) -> tuple[str, str, float, float, float, str, str]:
    if not document:
        return f"${query}$", "", 0.0, 0.0, 0.0, "", ""
    why = explain_formula(query, document, index)
    renamed = ", ".join(f"{one} → {other}" for one, other in why.renamed)
    shared = "  ".join(why.tokens.token.drop_duplicates().head(_TOKENS))
    return f"${query}$", f"${document}$", why.score, why.found, why.used, renamed, shared


def answering(one: OneQuery, doc_id: str, model: str = "minilm", most: int = 30) -> pd.DataFrame:
    """Return the cosines of `lab.matches`, query tokens by those document tokens that answer one of them.

    Of more than *most* query tokens the first so many are kept; `attrs["score"]` is the MaxSim of all of them.
    """
    table = matches(one.text, one.collection.document(doc_id), model, one.collection.card.instruction)
    rows = table.iloc[:most]
    kept = np.unique(rows.to_numpy().argmax(axis=1))
    found = rows.iloc[:, kept]
    found.attrs = dict(table.attrs)
    return found
