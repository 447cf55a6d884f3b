"""versus: two runs of one collection to compare, each a system's name or a file, checked against the collection."""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path

import pandas as pd

from mirblab import paths, results, runs
from mirblab.collection import Collection
from mirblab.errors import MirblabError
from mirblab.systems import system

_ENDINGS = (".trec", ".run", ".res", ".txt", ".tsv", ".csv", ".gz", ".out", ".eval")
_MOST_BYTES = 4 << 30


class RunWarning(UserWarning):
    """A run file does not fit its collection in every row; the message says how many rows were left out."""


def pair(first: str | Path, second: str | Path, collection: Collection, depth: int = 1000) -> list[pd.DataFrame]:
    """Return two runs of a *collection*, each from a system's name or a TREC file, cut to *depth* and told apart.

    A file's rows whose query or document the collection lacks are left out, with a RunWarning. The names in
    `attrs["system"]` differ: where they would be the same, the files' names are taken, else "(2)" is added;
    `attrs["made_by"]` is the system's settings, or the file's name and sha256. Raises MirblabError for what is neither
    a system nor a file, for a file that is no run, an empty one, and one of another collection.

    >>> from mirblab.shelf import load
    >>> [run.attrs["system"] for run in pair("bm25", "bm25", load("mini-qa"), depth=10)]
    ['bm25', 'bm25 (2)']
    """
    found = [_run(str(given), collection, depth) for given in (first, second)]
    names = [str(run.attrs["system"]) for run in found]
    if names[0] == names[1]:
        names = [Path(str(given)).name if _file(str(given)) else name
                 for given, name in zip((first, second), names, strict=True)]  # fmt: skip
    if names[0] == names[1]:
        names[1] = f"{names[1]} (2)"
    for run, name in zip(found, names, strict=True):
        run.attrs = {**run.attrs, "system": name}
    return found


def _file(given: str) -> Path | None:
    """Return the file that is meant, or None where there is none of that name."""
    try:
        path = paths.given(given)
        return path if path.is_file() else None
    except (OSError, RuntimeError, ValueError):  # too long, no such user, a zero byte
        return None


def _run(given: str, collection: Collection, depth: int) -> pd.DataFrame:
    path = _file(given)
    if path is not None:
        return runs.cut(_read(path, collection), depth)
    folder = Path(given)
    if given and folder.is_dir():
        inside = ", ".join(sorted(one.name for one in folder.iterdir())[:6]) or "nothing"
        raise MirblabError(f"{given} is a folder; name one run file in it, found {inside}")
    try:
        asked = system(given)
    except MirblabError as error:
        if given.lower().endswith(_ENDINGS):
            where = paths.given(given).absolute().parent
            raise MirblabError(f"no run file '{given}'; looked in {where}; give the whole path, or a system") from error
        raise MirblabError(f"'{given}' is neither a run file here nor a system: {error}") from error
    run = asked.search(collection, depth)
    run.attrs = {**run.attrs, "made_by": asked.key}
    return run


def _read(path: Path, collection: Collection) -> pd.DataFrame:
    """Return the rows of a run file that the *collection* knows."""
    if path.stat().st_size > _MOST_BYTES:
        raise MirblabError(f"{path} has {path.stat().st_size:,} bytes; cut it to a few thousand documents per query")
    given = runs.read_run(path)
    if given.empty:
        raise MirblabError(f"{path} is an empty run; a line is 'query_id Q0 doc_id rank score system'")
    where = f"{collection.name} (split {collection.split})"
    for column, known in (("query_id", collection.query_ids), ("doc_id", collection.doc_ids)):
        own = given[column].astype("str")
        if not own.isin(known).any():
            kind = {"query_id": "queries", "doc_id": "documents"}[column]
            raise MirblabError(
                f"{path}: none of its {own.nunique():,} {kind} is in {where}: it has '{own.iloc[0]}', the collection "
                f"'{known[0]}'; give the collection and split that it was made for"
            )
    kept, counts = results.fitted(given, collection)
    if kept.empty:
        raise MirblabError(f"{path}: no row has both a query and a document of {where}; give the right collection")
    with open(path, "rb") as file:
        made_by = {"file": path.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
    kept.attrs = {"system": given.attrs["system"], "collection": collection.name, "made_by": made_by}
    known = (record.origin for record in results.records() if record.sha256 == made_by["sha256"])
    kept.attrs["origin"] = next(known, given.attrs["origin"])
    if counts["unknown_documents"]:
        kept.attrs["remainder"] = results.remainder(len(given), counts["unknown_documents"], collection.name)
    if counts["unknown"]:
        warnings.warn(f"{path.name}: {counts['unknown']:,} of {len(given):,} rows have a query or a document that "
                      f"{where} lacks; they are left out", RunWarning, stacklevel=4)  # fmt: skip
    return kept
