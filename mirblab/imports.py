"""imports: what others measured is checked, and taken in whole or not at all."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from mirblab import deposit, foreign, guess, mteb_json, paths, registry, results, shelf
from mirblab.collection import Collection
from mirblab.errors import MirblabError, unknown
from mirblab.foreign import Found
from mirblab.import_record import Record
from mirblab.runs import read_run

_SUFFIXES = {".json": "values", ".csv": "values", ".tsv": "values"}
_FEWEST = 0.5  # the share of the query ids of values that their collection must know


def add(
    path: str | Path,
    *,
    system: str = "",
    collection: str = "",
    origin: str = "",
    name: str = "",
    percent: bool = False,
    candidates_only: bool = False,
) -> tuple[Record, list[str]]:
    """Take in a run in TREC's format, a CSV of values, or results of MTEB (a JSON file, or a folder of them).

    *system*: its name here, for what does not name it; *collection*: likewise, for a run guessed from its ids;
    *origin*: who measured, shown in tables (default: the file's name); *name* of the folder in `<home>/results`
    (default: made from these); *percent*: values are from 0 to 100; *candidates_only*: documents of a run that its
    queries may not return are cut. Returns the record and what the user should know. The same again changes
    nothing. Raises MirblabError, and takes in nothing, for broken files, wrong names, ids of another collection,
    and values that are there already.
    """
    source = paths.given(path)
    if not source.exists():
        raise FileNotFoundError(f"no {source}; give a run file, a CSV, a JSON file of MTEB or a folder of them")
    kind = "values" if source.is_dir() else _SUFFIXES.get(source.suffix.lower(), "run")
    if kind == "run":
        record, notes, found = *_run(source, system, collection, candidates_only), None
    else:
        if candidates_only:
            raise MirblabError(f"{source} holds values, not a run, so nothing can be cut; leave the option out")
        record, notes, found = _values(source, system, collection, percent)
    record = replace(record, origin=origin or source.resolve().name)
    record = replace(record, name=paths.clean_name(name or _default_name(record)))
    deposit.set_aside_damaged(record)
    earlier = deposit.same(record, found)
    if earlier is not None:
        return earlier, ["imported before; nothing changed"]
    deposit.check_free(record, found)
    return deposit.write(source, record, found), notes


def _run(source: Path, system: str, collection: str, candidates_only: bool) -> tuple[Record, list[str]]:
    """Return the record of a run, and how it fits its collection."""
    run = read_run(source)
    if run.empty:
        raise MirblabError(f"{source} is an empty run; a line is 'query_id Q0 doc_id rank score system'")
    system = _own_name(system or str(run.attrs["system"]), source)
    notes = [] if collection else ["the collection was guessed from the ids; --collection names another"]
    target = shelf.load(collection or guess.collection(run, source))
    kept, counts = results.fitted(run, target, candidates_only=candidates_only)
    if kept.empty:
        raise _no_fit(source, run, target, counts)
    notes += _fit_notes(len(kept), counts, target, candidates_only)
    missing = len(target.query_ids) - kept.query_id.nunique()
    notes += [f"{missing:,} of {len(target.query_ids):,} queries are not in the run and score 0"] if missing else []
    about = (deposit.digest(source), _today(), "", [system], [target.name], [], candidates_only)
    return Record("", "run", source.name, *about, counts["n_rows"], counts["unknown_documents"]), notes


def _no_fit(source: Path, run: pd.DataFrame, target: Collection, counts: dict[str, int]) -> MirblabError:
    """Return the error for a run of which no row is left, with an id of both sides."""
    where = f"{target.name} (split {target.split})"
    if counts["unknown"] < len(run):
        return MirblabError(f"{source}: every document that {where} knows is barred for its query; leave "
                            "--candidates-only out to keep them")  # fmt: skip
    known = zip(("query", "document"), (run.query_id, run.doc_id), (target.query_ids, target.doc_ids), strict=True)
    shown = "; ".join(f"its first {kind} is '{own.iloc[0]}', the collection's '{ids[0]}'" for kind, own, ids in known)
    return MirblabError(
        f"{source}: all {len(run):,} rows have a query or a document that {where} lacks: {shown}; give the "
        "--collection that it was made for, or one that keeps the ids of its corpus"
    )


def _fit_notes(n_kept: int, counts: dict[str, int], target: Collection, candidates_only: bool) -> list[str]:
    """Return how a run fits its collection."""
    unknown_rows, barred, foreign_docs = counts["unknown"], counts["not_candidates"], counts["unknown_documents"]
    notes = [f"{n_kept:,} of {counts['n_rows']:,} rows fit {target.name}"]
    if unknown_rows:
        notes.append(f"{unknown_rows:,} rows have a query or a document that {target.name} lacks; they are left out")
    if foreign_docs:
        notes.append(results.remainder(counts["n_rows"], foreign_docs, target.name))
    if barred:
        done = "they are cut" if candidates_only else "they are kept; --candidates-only cuts them"
        notes.append(f"{barred:,} rows have a document that its query may not return; {done}")
    return notes


def _values(source: Path, system: str, collection: str, percent: bool) -> tuple[Record, list[str], Found]:
    """Return the record of values, what was left out, and the values."""
    is_table = source.suffix.lower() in (".csv", ".tsv") and source.is_file()
    found = (foreign.table if is_table else mteb_json.read)(source, system, collection, percent)
    systems, collections, measures = (list(dict.fromkeys(key[at] for key in found.rows)) for at in range(3))
    known = {*shelf.collection_names(), *registry.read("collections")}
    for name in collections:
        if name not in known:
            raise MirblabError(f"{source}: {unknown('collection', name, known)}")
    for name in systems:
        _own_name(name, source)
    notes = [f"{len(found.rows):,} values of {len(systems)} systems on {len(collections)} collections"]
    notes += [f"left out: {count:,} {what}" for what, count in found.left_out.items()]
    notes += _query_notes(found, collections)
    record = Record(
        "", "values", source.resolve().name, deposit.digest(source), _today(), "", systems, collections, measures
    )
    return record, notes, found


def _query_notes(found: Found, collections: Sequence[str]) -> list[str]:
    """Return what is odd in the query ids of values that stand for queries; MirblabError for mostly unknown ones."""
    notes = []
    for name in collections:
        given = {key[3] for key in found.rows if key[1] == name and key[3]}
        if not given or name not in shelf.collection_names():
            continue
        asked = set(shelf.load(name).query_ids)
        if len(given & asked) < _FEWEST * len(given):
            example = sorted(given - asked)[0]
            raise MirblabError(f"{len(given - asked):,} of {len(given):,} query ids, such as '{example}', are not in "
                               f"{name}; were they measured on another collection or split?")  # fmt: skip
        if given != asked:
            notes.append(f"{name}: {len(given - asked):,} query ids are unknown, {len(asked - given):,} queries have "
                         "no value; tests want every query")  # fmt: skip
    return notes


def _own_name(system: str, source: Path) -> str:
    """Return the name of an imported system; MirblabError for one that could be taken for a system made here."""
    if system in registry.read("systems"):
        raise MirblabError(f"{source}: '{system}' is a system of the registry; give --system another name, such as "
                           f"'{system} (theirs)'")  # fmt: skip
    if not system.strip() or set("+>") & set(system):
        raise MirblabError(f"{source}: '{system}' cannot name a system: + and > compose systems; give --system")
    return system


def _default_name(record: Record) -> str:
    """Return the folder's name for an import: the run's system and collection, else the file's stem."""
    text = f"{record.systems[0]} on {record.collections[0]}" if record.kind == "run" else Path(record.file).stem
    return "".join("_" if sign in '<>:"/\\|?*' or ord(sign) < 32 else sign for sign in text).strip(". ") or "import"


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()
