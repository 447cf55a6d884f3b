"""runs: order, cut, read and write runs; with `ranking` the only place that sorts and that breaks ties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mirblab import trec
from mirblab.errors import MirblabError
from mirblab.ranking import edges, is_ordered, repeated, sort_rows, top_k

__all__ = [
    "COLUMNS", "categorical", "cut", "from_positions", "order", "read_run", "top_k", "write_run",
]  # fmt: skip

COLUMNS = ("query_id", "doc_id", "score")
SIGN = "§"  # stands wherever a run or a value is shown that no system here made: its attrs have an `origin`


def order(run: pd.DataFrame) -> pd.DataFrame:
    """Return *run* best first within each query, with `rank` from 1: query_id, doc_id, score, rank, and its attrs.

    Scores are compared as float32 and equal ones ordered by doc_id, descending, as trec_eval does. Ids become
    categories sorted by code point, whole numbers become strings, other columns are dropped. A run that is in
    order already is not sorted again. MirblabError for missing columns or ids, scores that are NaN or infinite as
    float32 (nobody could order or fuse them), and a pair given twice.

    >>> run = pd.DataFrame({"query_id": "q1", "doc_id": ["a", "b", "c"], "score": [0.5, 0.9, 0.5]})
    >>> order(run).doc_id.tolist()
    ['b', 'c', 'a']
    """
    missing = [name for name in COLUMNS if name not in run.columns]
    if missing:
        found = ", ".join(map(str, run.columns)) or "none"
        raise MirblabError(f"a run has the columns {', '.join(COLUMNS)}; missing {', '.join(missing)}; found {found}")
    queries, docs = categorical(run.query_id), categorical(run.doc_id)
    return _ordered(queries.codes, docs.codes, _scores(run), queries.categories, docs.categories, run.attrs)


def cut(run: pd.DataFrame, depth: int) -> pd.DataFrame:
    """Return the first *depth* documents of each query; a run without ranks is put in order first.

    >>> cut(pd.DataFrame({"query_id": "q1", "doc_id": ["a", "b"], "score": [0.5, 0.9]}), 1).doc_id.tolist()
    ['b']
    """
    if depth < 1:
        raise MirblabError(f"depth counts documents and is at least 1; found {depth}")
    ranked = run if "rank" in run.columns else order(run)
    return ranked[ranked["rank"] <= depth].reset_index(drop=True)


def from_positions(
    rows: np.ndarray,
    positions: np.ndarray,
    scores: np.ndarray,
    query_ids: pd.Index,
    doc_ids: pd.Index,
    system: str,
    collection: str,
    **notes: Any,
) -> pd.DataFrame:
    """Return the ordered run of flat arrays: row into *query_ids*, position in *doc_ids*, score; in any order.

    System, collection and the notes become the run's attrs. Errors are those of `order`.

    >>> run = from_positions([0, 0], [1, 0], [0.5, 0.9], pd.Index(["q1"]), pd.Index(["a", "b"]), "bm25", "mini-qa")
    >>> run.doc_id.tolist(), run.attrs["system"]
    (['a', 'b'], 'bm25')
    """
    attrs = {"system": system, "collection": collection, **notes}
    rows, positions = _places(rows, query_ids, "query"), _places(positions, doc_ids, "document")
    queries = categorical(pd.Series(pd.Categorical.from_codes(rows, query_ids)))
    docs = categorical(pd.Series(pd.Categorical.from_codes(positions, doc_ids)))
    scores = np.asarray(scores, dtype=np.float32)
    return _ordered(queries.codes, docs.codes, scores, queries.categories, docs.categories, attrs)


def categorical(ids: pd.Series) -> pd.Categorical:
    """Return a column of ids as strings in categories sorted by code point, so that code order is id order.

    Whole numbers become their digits. MirblabError for missing or empty ids and for what is neither text nor integer.

    >>> categorical(pd.Series([10, 9, 10])).categories.tolist()
    ['10', '9']
    """
    if isinstance(ids.dtype, pd.CategoricalDtype):
        codes, known = ids.cat.codes.to_numpy(), ids.cat.categories
    else:
        codes, known = pd.factorize(ids)
        known = pd.Index(known)
    if len(codes) and codes.min() < 0:
        raise MirblabError(f"{int((codes < 0).sum()):,} rows have no {ids.name}; give every row one")
    if (known == "").any():
        raise MirblabError(f"{ids.name} is empty in some rows; give every row one")
    if known.dtype == "str" and known.is_monotonic_increasing:
        return pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(known), validate=False)
    names = [_as_text(name, ids.name) for name in known]
    ordered, place = np.unique(np.array(names, dtype=object), return_inverse=True)
    return pd.Categorical.from_codes(place[codes], pd.Index(ordered, dtype="str"), validate=False)


def read_run(path: str | Path, system: str = "") -> pd.DataFrame:
    """Return the run in a TREC file (query_id, Q0, doc_id, rank, score, system; `.gz` by suffix), in order.

    As trec_eval does, it sorts by score and ignores the rank column. *system*, else the most frequent name in the last
    column, becomes `attrs["system"]`; `attrs["origin"]` is the file, since nobody knows who made it: tables mark its
    values. An empty file gives an empty run. MirblabError names file and line, and counts.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "bm25.trec").write_text("q1 Q0 d1 1 2.5 bm25\\nq1 Q0 d2 2 3.5 bm25\\n")
    ...     read_run(Path(folder, "bm25.trec")).doc_id.tolist()
    ['d2', 'd1']
    """
    rows = trec.read(Path(path))
    names = rows.pop("system").value_counts()
    name = system or (str(names.index[0]) if len(names) else "run")
    rows.attrs = {"system": name, "origin": f"the file {Path(path).name}"}
    try:
        return order(rows)
    except MirblabError as error:
        raise MirblabError(f"{path}: {error}") from error


def write_run(run: pd.DataFrame, path: str | Path) -> None:
    """Write *run* as a TREC file, in order; `.gz` by suffix; the system is `attrs["system"]`, else "run".

    The scores read back are the same float32. The file appears whole or not at all. MirblabError for an id
    or a system's name that is empty or has white space, which such a file cannot hold.

    >>> from tempfile import TemporaryDirectory
    >>> run = pd.DataFrame({"query_id": "q1", "doc_id": ["a", "b"], "score": [0.5, 0.9]})
    >>> with TemporaryDirectory() as folder:
    ...     write_run(run, Path(folder, "own.trec.gz"))
    ...     read_run(Path(folder, "own.trec.gz")).doc_id.tolist()
    ['b', 'a']
    """
    trec.write(order(run), Path(path))


def _scores(run: pd.DataFrame) -> np.ndarray:
    """Return the scores as float32, as trec_eval holds them."""
    try:
        with np.errstate(over="ignore"):  # what becomes infinite is refused
            return run.score.to_numpy(dtype=np.float32, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise MirblabError(f"the column score must hold numbers; found {run.score.dtype}: {error}") from error


def _ordered(
    queries: np.ndarray, docs: np.ndarray, scores: np.ndarray, query_ids: pd.Index, doc_ids: pd.Index, attrs: dict
) -> pd.DataFrame:
    """Return the run of codes and scores as a table, sorted where it has to be."""
    if not np.isfinite((scores.min(initial=0), scores.max(initial=0))).all():
        bad = np.flatnonzero(~np.isfinite(scores))
        what = "NaN" if np.isnan(scores[bad]).all() else "NaN or infinite"
        first = query_ids[queries[bad[0]]]
        raise MirblabError(f"{len(bad):,} scores are {what}, the first in query '{first}'; leave such documents out")
    if not is_ordered(queries, docs, scores):
        queries, docs, scores = sort_rows(queries, docs, scores)
    bounds = edges(queries)
    count, (query, doc) = repeated(queries, docs, bounds)
    if count:
        pair = f"query '{query_ids[query]}', document '{doc_ids[doc]}'"
        raise MirblabError(f"{count:,} rows repeat a document of the same query, the first {pair}; keep one of each")
    rank = np.arange(1, len(queries) + 1, dtype=np.int32)
    rank -= np.repeat(bounds[:-1].astype(np.int32), np.diff(bounds))
    columns = {
        "query_id": pd.Categorical.from_codes(queries, dtype=pd.CategoricalDtype(query_ids), validate=False),
        "doc_id": pd.Categorical.from_codes(docs, dtype=pd.CategoricalDtype(doc_ids), validate=False),
        "score": scores,
        "rank": rank,
    }
    run = pd.DataFrame(columns, copy=False)
    run.attrs = dict(attrs)
    return run


def _places(places: np.ndarray, ids: pd.Index, kind: str) -> np.ndarray:
    """Return positions as integers, checked against the number of ids."""
    places = np.asarray(places)
    places = places.astype(np.int64) if places.size == 0 else places
    if places.size and (places.min() < 0 or places.max() >= len(ids)):
        found = f"{places.min()} to {places.max()}"
        raise MirblabError(f"{kind} positions run from {found}, but there are {len(ids):,} ids")
    return places


def _as_text(name: object, column: object) -> str:
    if isinstance(name, str):
        return name
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        return str(int(name))
    raise MirblabError(f"{column} must be text or whole numbers; found {name!r} ({type(name).__name__})")
