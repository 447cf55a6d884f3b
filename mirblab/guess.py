"""guess: which collection a run was made for, by its ids."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from mirblab import ids, paths, shelf
from mirblab.errors import MirblabError
from mirblab.lines import Problems, find, records

_ENOUGH = 0.9  # the share of the run's ids that a collection must know


def collection(run: pd.DataFrame, source: Path) -> str:
    """Return the one collection on disk that knows the queries and the documents of *run*, read from *source*.

    MirblabError when none or several do, with the numbers.
    """
    places = {name: paths.data() / name for name in shelf.collection_names()}
    places = {name: folder for name, folder in places.items() if find(folder, "queries") and find(folder, "corpus")}
    asked, returned = set(run.query_id.astype(str)), set(run.doc_id.astype(str))
    queries = {name: _share(asked, folder, "queries") for name, folder in places.items()}
    fitting = [name for name, share in queries.items() if share >= _ENOUGH]
    docs = {name: _share(returned, places[name], "corpus") for name in fitting}
    found = [name for name, share in docs.items() if share >= _ENOUGH]
    if len(found) == 1:
        return found[0]
    best = max(queries, key=lambda name: (queries[name], docs.get(name, 0)), default="")
    of_docs = f" and {docs[best]:.0%} of the documents: was it made over a larger corpus?" if best in docs else ""
    shown = f"{', '.join(found)} all know them" if found else (
        f"none here knows {_ENOUGH:.0%} of them; {best} knows {queries[best]:.0%} of the queries{of_docs}" if best else
        "no collection is here")  # fmt: skip
    raise MirblabError(f"{source}: the ids do not say which collection it is of: {shown}; give --collection")


def _share(names: set[str], folder: Path, stem: str) -> float:
    """Return the share of *names* that the corpus or the queries of a folder have."""
    path = find(folder, stem)
    return len(names.intersection(_ids(path))) / max(len(names), 1) if path else 0.0


def _ids(path: Path) -> Iterator[str]:
    for _, record in records(path, Problems(path)):
        with contextlib.suppress(MirblabError):  # loading the collection says what is wrong with it
            yield ids.of(record, "_id")
