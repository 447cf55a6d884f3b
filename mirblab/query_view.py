"""query_view: a query and some documents in full, formulas rendered, with where each stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mirblab.one_query import OneQuery, place
from mirblab.prose import escaped, html_of
from mirblab.scales import meaning

if TYPE_CHECKING:
    from IPython.display import HTML

_LONGEST = 1_500  # characters of a text
_PAGE = "display:flex;flex-wrap:wrap;gap:0.5em 1.5em;align-items:flex-start"
_TEXT = "flex:1 1 24em;max-width:60em;min-width:0;overflow-wrap:anywhere"


def texts(one: OneQuery, doc_ids: Sequence[str] = (), longest: int = _LONGEST) -> HTML:
    """Return the query and documents as HTML, side by side where there is room: grade and ranks above each text.

    Texts are cut at *longest* characters. Everything is escaped; there is no script, and nothing comes from elsewhere.

    >>> from mirblab.shelf import load
    >>> from mirblab.one_query import one_query
    >>> from mirblab.systems import system
    >>> c = load("mini-qa")
    >>> one = one_query(c, c.query_ids[0], [system("bm25").search(c)])
    >>> texts(one, [one.best("bm25")]).data.count("<section")
    2
    """
    from IPython.display import HTML

    parts = [_section(f"Query {one.query_id}", one.collection.name, one.text, longest)]
    for name in dict.fromkeys(name for name in doc_ids if name):
        grade = one.grade(name)
        ranks = ", ".join(f"{system} {place(one.rank(system, name))}" for system in one.found)
        meant = meaning(one.collection, int(grade)) if grade.isdigit() else ""
        facts = f"{f'grade {grade}' if grade.isdigit() else grade}{f' ({meant})' if meant else ''}; rank: {ranks}"
        parts.append(_section(f"Document {name}", facts, one.collection.document(name), longest))
    return HTML(f'<div style="{_PAGE}">{"".join(parts)}</div>')


def _section(title: str, facts: str, text: str, longest: int) -> str:
    head = f"<p><b>{escaped(title)}</b> <small>{escaped(facts)}</small></p>"
    return f'<section style="{_TEXT}">{head}<p>{html_of(text, longest=longest)}</p></section>'
