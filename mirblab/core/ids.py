"""The ids of queries and documents: which texts are valid ids, and how an id is read from JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mirblab.core.errors import MirblabError


def read_id(record: Mapping[str, object], key: str) -> str:
    """Return the id under *key* of a row of JSON or parquet: a text unchanged, a whole number as its digits.

    MirblabError, without file and line, for a text that `id_problem` refuses and for all other values: 1e5 without
    quotes, true, null, lists.
    """
    value = record.get(key)
    if isinstance(value, str):
        problem = id_problem(value)
        if not problem:
            return value
        raise MirblabError(f"'{key}' {problem}: {value!r:.60}; rename it" if value else f"no '{key}'; found \"\"")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None:
        keys = "null" if key in record else f"the keys {', '.join(map(str, record)) or 'none'}"
        raise MirblabError(f"no '{key}'; found {keys}")
    shown = json.dumps(value, default=str)[:60]
    raise MirblabError(f"'{key}' must be a text or a whole number, found {shown}; an id stands between quotes")


def id_problem(name: str) -> str:
    """Return why a text cannot be an id, or "" when it can.

    Blank ids are invisible; tabs and line breaks would end a cell in a file of judgements. Other white space is
    permitted, but not in a run file (`write_run`).

    >>> id_problem("Zorn's lemma"), id_problem(" "), id_problem("a\\tb")
    ('', 'is blank', 'has a tab or a line break')
    """
    if name.isprintable() and name and not name.isspace():
        return ""
    if not name or name.isspace():
        return "is blank"
    if set("\t\n\r") & set(name):
        return "has a tab or a line break"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "holds half a character (a lone surrogate)"
    return ""


def is_whole_number(text: str) -> bool:
    """Return whether an id is a whole number from 0 with at most 18 digits, as in ARQMath's files.

    >>> is_whole_number("0042"), is_whole_number("9" * 5000), is_whole_number("١٢")
    (True, False, False)
    """
    return len(text) < 19 and text.isascii() and text.isdecimal()
