"""results: what others measured, as it was imported: their runs and their values, each with its origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from mirblab import damage, import_record
from mirblab.collection import Collection
from mirblab.errors import MirblabError, unknown
from mirblab.import_record import RECORD, Record, folder
from mirblab.runs import order, read_run

__all__ = ["Record", "fitted", "folder", "names", "read_values", "records", "run", "runs", "settings", "values"]

COLUMNS = ["system", "collection", "measure", "query_id", "value"]


def records() -> list[Record]:
    """Return what was imported, by name; MirblabError for a record that cannot be read or was changed.

    >>> isinstance(records(), list)
    True
    """
    found = sorted(folder().glob(f"[!.]*/{RECORD}"))
    return [import_record.read(path) for path in found if not path.parent.name.endswith(damage.SUFFIX)]


def names() -> list[str]:
    """Return the systems that something was imported for."""
    return sorted({system for record in records() for system in record.systems})


def runs(system: str) -> dict[str, Record]:
    """Return the imported runs of a *system*, by collection; empty when it has none."""
    return {record.collections[0]: record for record in records() if record.kind == "run" and system in record.systems}


def settings(system: str) -> dict[str, Any]:
    """Return the settings of an imported system: its kind, and what determines its run on each collection."""
    files = {name: [record.sha256, record.candidates_only, record.origin] for name, record in runs(system).items()}
    return {"kind": "imported", "label": system, "files": files}


def run(system: str, collection: Collection) -> pd.DataFrame:
    """Return the imported run of a *system* on a *collection*: query_id, doc_id, score, rank, best first.

    Queries and documents that the collection lacks are left out. Its attrs say system, collection, origin, and the
    counts of `fitted`; what is no candidate is kept, unless it was to be cut when it was imported. Raises MirblabError
    when there is no such run, and when the stored file is not what was imported.
    """
    found = runs(system)
    if collection.name not in found:
        has = f"its runs are on {', '.join(found)}" if found else "only values of it were imported"
        raise MirblabError(f"the imported system '{system}' has no run on {collection.name}; {has}")
    record = found[collection.name]
    kept, attrs = fitted(read_run(record.run_file()), collection, candidates_only=record.candidates_only)
    kept.attrs = {"system": system, "collection": collection.name, "origin": record.origin, **attrs}
    if attrs["unknown_documents"]:
        kept.attrs["remainder"] = remainder(attrs["n_rows"], attrs["unknown_documents"], collection.name)
    return kept


def fitted(
    given: pd.DataFrame, collection: Collection, *, candidates_only: bool = False
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the rows of a run that a *collection* knows, in order, and counts of rows.

    `n_rows` is their number, `unknown` that of those with a query or document that the collection lacks,
    `unknown_documents` that of those which lack only the document, `not_candidates` that of barred documents.

    >>> from mirblab.shelf import load
    >>> c = load("mini-qa")
    >>> run = pd.DataFrame({"query_id": c.query_ids[:1], "doc_id": c.doc_ids[:1], "score": [1.0]})
    >>> fitted(pd.concat([run, run.assign(doc_id="nowhere")]), c)[1]
    {'n_rows': 2, 'unknown': 1, 'unknown_documents': 1, 'not_candidates': 0}
    """
    queries = collection.query_ids.get_indexer(given.query_id.astype(str))
    docs = collection.doc_ids.get_indexer(given.doc_id.astype(str))
    known = (queries >= 0) & (docs >= 0)
    permitted = np.ones(len(given), bool)
    permitted[known] = collection.candidates.permits(queries[known], docs[known])
    kept = given[known & permitted] if candidates_only else given[known]
    kept = kept.assign(query_id=kept.query_id.astype(str), doc_id=kept.doc_id.astype(str))
    return order(kept), {
        "n_rows": len(given),
        "unknown": int((~known).sum()),
        "unknown_documents": int(((queries >= 0) & (docs < 0)).sum()),
        "not_candidates": int((~permitted).sum()),
    }


def remainder(n_rows: int, n_unknown: int, collection: str) -> str:
    """Return what is said of a run over a larger corpus, in which *collection* lacks some documents.

    >>> remainder(20_000, 18_874, "mini-qa")[:71]
    '18,874 of 20,000 rows are documents that mini-qa lacks and are left out'
    """
    return (
        f"{n_unknown:,} of {n_rows:,} rows are documents that {collection} lacks and are left out; only prime measures "
        "and Bpref, which look at judged documents alone, are those of the whole run"
    )


def values(systems: Sequence[str] = ()) -> pd.DataFrame:
    """Return the imported values of *systems* (empty: all): system, collection, measure, query_id, value, origin.

    Values from 0 to 1; query_id is "" where only a mean over queries was given: tables show such a one with a mark,
    and tests leave it out. Raises MirblabError for a system without imported values.

    >>> values().columns.tolist()
    ['system', 'collection', 'measure', 'query_id', 'value', 'origin']
    """
    found = [record for record in records() if record.kind == "values"]
    known = sorted({system for record in found for system in record.systems})
    for system in systems:
        if system not in known:
            raise unknown("imported values of system", system, known)
    tables = [pd.DataFrame(columns=[*COLUMNS, "origin"]).astype(dict.fromkeys(COLUMNS, "str") | {"value": float})]
    tables = [read_values(record).assign(origin=record.origin) for record in found] or tables
    table = pd.concat(tables, ignore_index=True)
    return table[table.system.isin(list(systems))].reset_index(drop=True) if systems else table


def read_values(record: Record) -> pd.DataFrame:
    """Return the values of one import, as `values` does, without their origin; MirblabError when they were changed."""
    table = pd.read_csv(record.values_file(), dtype=str, keep_default_na=False)
    return table.assign(value=table.value.astype(float))
