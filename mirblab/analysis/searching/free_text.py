"""search: the documents that a system returns for a text of your own."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from mirblab.analysis.partners import judged_grades
from mirblab.analysis.searching.engines import Engine, Query, engine
from mirblab.core.errors import MirblabError, check_positive
from mirblab.data.collection import Collection
from mirblab.display.table_formats import Table
from mirblab.display.text import Mark, excerpts, split_pieces
from mirblab.encoders.entry import replace_surrogates
from mirblab.retrieval.systems import System, system
from mirblab.sources import catalogue
from mirblab.sources.own.latex import read_latex, require_statements
from mirblab.sources.own.tex_files import document_files

DEFAULT_SYSTEM = "hybrid"
_MOST_FRAGMENTS = 6
_KEPT = 4  # pairs of a collection and a system whose indexes stay in memory
_engines: OrderedDict[str, dict[str, Engine]] = OrderedDict()  # by the key of the system's run


def search(
    text: str | Sequence[str] | os.PathLike[str],
    collection: str | Collection,
    by: str | System = DEFAULT_SYSTEM,
    *,
    depth: int = 10,
) -> Table:
    """Return the *depth* best documents of a collection for a text, with formulas between dollars or without.

    *text* may be a list of texts, or the path of a LaTeX file, whose statements are the queries. *by* is a system. A
    text that is one of the collection's queries returns only what that query may return, and has its judgements.

    The frame has a row per document, by rank: query (where there are several), doc_id, score, relevance (where the text
    is a query of the collection; missing: unjudged), text, matched (the terms and formulas that matched, strongest
    first, where the system can show it). MirblabError for an empty text, a depth below 1, and a system
    that answers the collection's queries only. The first search of a collection makes what the system needs, such as an
    index; it is kept in memory for the next one.

    >>> table = search("a finite integral domain is a field", "mini-qa", "bm25", depth=3)
    >>> table.frame.columns.tolist(), len(table.frame)
    (['doc_id', 'score', 'text', 'matched'], 3)
    """
    check_positive(depth=depth)
    searched, chosen = catalogue.load(collection), system(by)
    labelled = _labelled_texts(text)
    prepared = _prepared_engine(chosen, searched)
    rows = {one_line(known): row for row, known in reversed(list(enumerate(searched.query_texts)))}
    queries = [Query(shown, rows.get(one_line(shown))) for _, shown in labelled]
    rankings = [_rank_documents(prepared, searched, query, depth) for query in queries]
    for (label, _), frame in zip(labelled, rankings, strict=True):
        frame.insert(0, "query", label)
    frame = pd.concat(rankings)
    if len(labelled) == 1:
        frame = frame.drop(columns="query")
    if all(query.row is None for query in queries):
        frame = frame.drop(columns="relevance")
    if not prepared.marked:
        frame = frame.drop(columns="matched")
    # The first documents decide whether a single word is read as a word or as a formula.
    beginning = excerpts([labelled[0][1], *searched.texts[:9]], searched.card.task, 80)[0]
    what = f"'{beginning}'" if len(labelled) == 1 else f"{len(labelled):,} texts"
    caption = f"The first documents of {searched.name} for {what} by {chosen.label}."
    notes = [f"matched: {prepared.marked}."] if prepared.marked and len(frame) else []
    n_empty = sum(each.empty for each in rankings)
    if n_empty:
        which = "It has" if len(labelled) == 1 else f"{n_empty:,} of them have"
        lacks_formulas = chosen.settings["kind"] in ("structure", "approach0") and not any(
            "$" in shown for _, shown in labelled
        )
        hint = " Formulas stand between dollars: $x^2 + y^2$." if lacks_formulas else ""
        notes.append(f"{which} nothing that {chosen.label} finds in a document.{hint}")
    return Table(frame, caption, notes, 3, maths=frozenset({"query", "text", "matched"}))


def one_line(text: str) -> str:
    """Return *text* with every run of white space as one blank, as an input field can show it.

    >>> one_line(" a  b ")
    'a b'
    """
    return " ".join(replace_surrogates(text).split())


def _labelled_texts(text: str | Sequence[str] | os.PathLike[str]) -> list[tuple[str, str]]:
    """Return the texts to search for, each with the name under which the table has it."""
    if isinstance(text, os.PathLike):
        path = Path(text)
        if not path.is_file():
            raise MirblabError(f"{path} is no file; give the path of a LaTeX file, or the text itself")
        content = read_latex(document_files(path))
        require_statements(content, 1, path.name)
        return [(statement.label or excerpts([statement.text])[0], statement.text) for statement in content.statements]
    texts = list(text) if isinstance(text, Iterable) and not isinstance(text, str) else [text]
    if not texts or not all(isinstance(each, str) and each.strip() for each in texts):
        raise MirblabError(f"search needs a text that is not empty, or several; found {text!r:.60}")
    texts = [replace_surrogates(each) for each in texts]
    return list(zip(excerpts(texts), texts, strict=True))


def _prepared_engine(chosen: System, collection: Collection) -> Engine:
    """Return the engine of a system over a collection, from memory where it was used before."""
    key = chosen.run_key(collection)
    engines = _engines.setdefault(key, {})
    _engines.move_to_end(key)
    while len(_engines) > _KEPT:
        _engines.popitem(last=False)
    prepared = engine(chosen.name, collection, engines)
    prepared.prepare()
    return prepared


def _rank_documents(prepared: Engine, collection: Collection, query: Query, depth: int) -> pd.DataFrame:
    ranking = prepared.search(query, depth)
    positions = ranking.positions.tolist()
    doc_ids = [str(collection.doc_ids[position]) for position in positions]
    texts = [collection.texts[position] for position in positions]
    marks = prepared.marks(query, positions) if prepared.marked else [[] for _ in positions]
    grades = {} if query.row is None else judged_grades(collection, collection.query_ids[query.row])
    return pd.DataFrame(
        {
            "doc_id": doc_ids,
            "score": ranking.scores,
            "relevance": pd.array([grades.get(doc_id) for doc_id in doc_ids], dtype="Int64"),
            "text": texts,
            "matched": [_fragments(*each) for each in zip(texts, marks, strict=True)],
        },
        index=pd.RangeIndex(1, len(positions) + 1, name="rank"),
    )


def _fragments(text: str, marks: Sequence[Mark]) -> str:
    """Return the marked terms and formulas of a text, the strongest first.

    >>> _fragments("a ring with $x = 1$", [(2, 6, 0.5), (13, 14, 1.0)])
    '$x = 1$, ring'
    """
    strengths: dict[str, float] = {}
    for piece in split_pieces(text):
        end = piece.start + len(piece.text)
        inside = [mark for mark in marks if piece.start <= mark[0] < end]
        for start, stop, strength in inside:
            shown = f"${piece.text}$" if piece.is_formula else text[start:stop].lower()
            strengths[shown] = max(strengths.get(shown, 0.0), strength)
    return ", ".join(sorted(strengths, key=lambda shown: -strengths[shown])[:_MOST_FRAGMENTS])
