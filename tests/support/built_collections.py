"""What a build has written, read back as plain dictionaries."""

from __future__ import annotations

import gzip
import json
import tomllib
from pathlib import Path
from typing import Any

from mirblab.data.collection import load_folder


def rows(path: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a file of JSON lines, plain or gzipped (where it is named without .gz, too), by their id."""
    path = path if path.is_file() else path.with_name(f"{path.name}.gz")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return {row.get("_id", row.get("query-id")): row for row in map(json.loads, file)}


def texts(folder: Path, stem: str = "corpus") -> dict[str, str]:
    """Return the texts of the documents, or with *stem* "queries" of the queries, by their id."""
    return {name: row["text"] for name, row in rows(folder / f"{stem}.jsonl").items()}


def judged_by_split(folder: Path) -> dict[str, dict[str, list[str]]]:
    """Return the relevant documents of each query, by split; every judgement must be 1 and stand once."""
    splits: dict[str, dict[str, list[str]]] = {}
    for path in sorted((folder / "qrels").glob("*.tsv")):
        queries = splits.setdefault(path.stem, {})
        for line in path.read_text("utf-8").splitlines()[1:]:
            query_id, doc_id, relevance = line.split("\t")
            assert relevance == "1" and doc_id not in queries.setdefault(query_id, [])
            queries[query_id].append(doc_id)
    return splits


def judged(folder: Path, *splits: str) -> dict[str, set[str]]:
    """Return the relevant documents of each query in the *splits* (none named: in all)."""
    by_split = judged_by_split(folder)
    documents: dict[str, set[str]] = {}
    for split in splits or by_split:
        for query_id, doc_ids in by_split[split].items():
            documents.setdefault(query_id, set()).update(doc_ids)
    return documents


def check_earlier_candidates(folder: Path, *splits: str) -> None:
    """Check that only earlier documents are candidates, never that of the query, and that no judgement is hidden."""
    for split in splits:
        collection = load_folder(folder, split)
        assert collection.candidates.names == ["earlier"]
        for place, query in enumerate(collection.query_ids):
            allowed = set(collection.doc_ids[collection.candidates.allowed([place])[0]])
            assert query not in allowed and judged(folder, split)[query] <= allowed


def card(folder: Path) -> dict[str, Any]:
    """Return the card of a collection."""
    return tomllib.loads((folder / "card.toml").read_text("utf-8"))


def content(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, hidden ones, too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
