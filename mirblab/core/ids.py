"""The ids of queries and documents: which texts are valid, how an id is read from JSON, and where ids stand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mirblab.core.errors import MirblabError

if TYPE_CHECKING:
    import pandas as pd


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


def are_sorted(ids: pd.Index) -> bool:
    """Return whether *ids*, texts, ascend by code point; pandas' own check keeps a Python string of every id."""
    from pyarrow import compute

    values = _arrow_array(ids)
    return len(values) < 2 or compute.all(compute.less_equal(values[:-1], values[1:])).as_py()


def sort_ids(ids: pd.Index) -> tuple[pd.Index, np.ndarray]:
    """Return *ids*, texts, by code point, and the position of each of them in that order, int64 (n_ids,)."""
    from pyarrow import compute

    order = compute.sort_indices(_arrow_array(ids)).to_numpy().astype(np.int64)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return ids[order], place


def find_positions(ids: pd.Index, known: pd.Index) -> np.ndarray:
    """Return the position of each of *ids* in *known*, int64 (n_ids,), or -1; both are texts without repeats.

    pandas' own search keeps a Python string of every id.
    """
    from pyarrow import compute

    if ids is known:
        return np.arange(len(known))
    some, every = _arrow_array(ids), _arrow_array(known)
    if len(ids) > len(known):
        return compute.fill_null(compute.index_in(some, value_set=every), -1).to_numpy().astype(np.int64)
    places = compute.fill_null(compute.index_in(every, value_set=some), -1).to_numpy()
    positions, here = np.full(len(ids), -1), np.flatnonzero(places >= 0)
    positions[places[here]] = here
    return positions


def _arrow_array(ids: pd.Index) -> Any:
    """Return *ids* as an array of Arrow, without a copy where pandas holds them so."""
    import pyarrow as pa

    values = pa.array(ids.array, from_pandas=True)
    return values if values.type == pa.large_string() else values.cast(pa.large_string())
