"""own_columns: which column of a table is the id, the text, the title, the query: guessed from its name, and said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from mirblab.errors import MirblabError, unknown

# In this order; small letters and digits only.
_ID = ("id", "docid", "docno", "documentid", "corpusid", "identifier", "key", "label", "nr", "no", "number", "pid")
_TEXT = ("text", "body", "content", "contents", "document", "passage", "answer", "proof", "statement", "description",
         "abstract", "latex", "tex", "formula")  # fmt: skip
_TITLE = ("title", "name", "heading", "headline", "subject", "caption")
_QUERY = ("query", "question", "querytext", "topic", "search", "problem", "theorem", "statement", "q")
_QUERY_ID = ("queryid", "qid", "questionid", "topicid")
_DOC = ("docid", "documentid", "corpusid", "docno", "answerid", "answerids", "relevant", "relevantid", "relevantids",
        "document", "answer", "answers", "doc", "pid")  # fmt: skip
_RELEVANCE = ("relevance", "rel", "grade", "judgement", "judgment")  # beside a document a score counts votes
_JUDGED = (*_RELEVANCE, "score", "rating")

# The roles of each kind of file, in the order in which they choose.
DOCUMENTS = {"text": _TEXT, "query": _QUERY, "query_id": _QUERY_ID, "id": _ID, "title": _TITLE,
             "relevance": _RELEVANCE}  # fmt: skip
QUERIES = {"query_id": (*_QUERY_ID, *_ID), "query": (*_QUERY, *_TEXT, *_TITLE), "doc_id": _DOC,
           "relevance": _JUDGED}  # fmt: skip
QRELS = {"query_id": (*_QUERY_ID, "query", "topic", "q"), "doc_id": (*_DOC, *_ID), "relevance": _JUDGED}
NONE = "-"


def taken(
    file: str, columns: list[str], roles: Mapping[str, Iterable[str]], asked: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return which of a file's *columns* is taken for which of the *roles*; those that none fits are left out.

    *asked* says so for some roles ("-": no column), and is never overruled. A table in which one column is left over
    takes that for the text. MirblabError for a column that is asked for and not there.

    >>> taken("a.csv", ["Nr.", "Body", "year"], DOCUMENTS)
    {'text': 'Body', 'id': 'Nr.'}
    >>> taken("a.csv", ["question", "answer"], DOCUMENTS), taken("a.csv", ["Satz"], DOCUMENTS)
    ({'text': 'answer', 'query': 'question'}, {'text': 'Satz'})
    """
    asked = {role: column for role, column in (asked or {}).items() if column}
    found = {role: _named(column, columns, role, file) for role, column in asked.items() if column != NONE}
    for role, spellings in roles.items():
        free = {_folded(name): name for name in reversed(columns) if name not in found.values()}
        fitting = [free[spelling] for spelling in spellings if spelling in free]
        if fitting and role not in asked:
            found[role] = fitting[0]
    left = [name for name in columns if name not in found.values()]
    if "text" in roles and "text" not in found and "text" not in asked and len(left) == 1:
        found["text"] = left[0]
    return {role: found[role] for role in roles if role in found}


def told(chosen: Mapping[str, str], columns: Iterable[str]) -> str:
    """Return in words what was taken for what, and what was not used.

    >>> told({"text": "Body"}, ["Body", "year"])
    "text = 'Body'; not used: 'year'"
    """
    unused = [f"'{name}'" for name in columns if name not in chosen.values()]
    words = ", ".join(f"{role} = '{column}'" for role, column in chosen.items()) or "nothing"
    return words + (f"; not used: {', '.join(unused)}" if unused else "")


def need(file: str, chosen: Mapping[str, str], columns: list[str], *roles: str) -> None:
    """Raise MirblabError for the first of the *roles* for which no column was taken, with how to name one."""
    for role in roles:
        if role not in chosen:
            shown = ", ".join(f"'{name}'" for name in columns[:12]) or "none"
            raise MirblabError(
                f"{file}, line 1: no column looks like the {role.replace('_', ' ')}; found {shown}; name it there, or "
                f"say --set {role}=COLUMN"
            )


def _named(column: str, columns: list[str], role: str, file: str) -> str:
    """Return the column that is asked for, whatever its case."""
    for name in columns:
        if name == column or name.casefold() == column.casefold():
            return name
    raise MirblabError(f"{file}, --set {role}={column}: {unknown('column', column, columns)}")


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.casefold())
