"""Imports of runs and values that others published: checked, stored, and read again."""

from __future__ import annotations

import contextlib
import csv
import datetime
import hashlib
import json
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pandas as pd

from mirblab.core import atomic_files, ids, paths, registry, stored_files, text_files
from mirblab.core.errors import MirblabError, MissingFileError, check_known, unknown
from mirblab.core.wording import counted
from mirblab.data.beir import find_texts, read_rows
from mirblab.data.collection import Collection
from mirblab.data.runs import FOREIGN_MARK, order_run
from mirblab.evaluation.arqmath import is_run_file, read_run
from mirblab.evaluation.imported_values import (
    MODEL_FILE,
    ImportedValues,
    ValueKey,
    is_mteb_result,
    read_csv_values,
    read_mteb_values,
)
from mirblab.evaluation.measures import is_rank
from mirblab.sources import catalogue

# Raised by one whenever the runs of this kind change; otherwise tests/retrieval/test_golden_runs.py fails.
RUNS_VERSION = 1

VALUE_COLUMNS = ["system", "collection", "measure", "query_id", "value"]
RECORD_FILE, VALUES_FILE, SOURCE_FOLDER = "record.json", "values.csv", "given"
_SUFFIXES = {".json": "values", ".csv": "values", ".tsv": "values"}
_LEAST_KNOWN_IDS = 0.9  # the share of the run's ids that a collection must know
_STEMS = ("queries", "corpus")
_LEAST_KNOWN_QUERIES = 0.5  # the share of the query ids of values that a collection must know
_COMPARED_FIELDS = ("kind", "sha256", "origin", "systems", "collections", "measures", "candidates_only")


@dataclass(frozen=True)
class ImportRecord:
    """One import: the file it came from, who measured, and what is in it.

    `kind` is "run" or "values"; `n_rows` counts the rows of a run, `n_unknown` those with a query of its collection and
    a document that the collection lacks; `seal` is a checksum over all other fields.
    """

    name: str
    kind: str
    file: str
    sha256: str
    date: str
    origin: str
    systems: list[str]
    collections: list[str]
    measures: list[str]
    candidates_only: bool = False
    n_rows: int = 0
    n_unknown: int = 0
    values_sha256: str = ""
    seal: str = ""

    @property
    def folder(self) -> Path:
        """Return the folder of the import."""
        return imports_folder() / self.name

    @property
    def command(self) -> str:
        """Return the command that imports the original file again."""
        words = ["mirblab", "import-results", self.file]
        if self.kind == "run":
            words += ["--system", self.systems[0], "--collection", self.collections[0]]
        words += ["--origin", self.origin, "--name", self.name]
        return shlex.join([*words, "--candidates-only"] if self.candidates_only else words)

    def sealed(self) -> ImportRecord:
        """Return the record with its checksum."""
        content = json.dumps(asdict(replace(self, seal="")), sort_keys=True)
        return replace(self, seal=hashlib.blake2b(content.encode(), digest_size=16).hexdigest())

    def content_file(self) -> Path:
        """Return the file of the run or of the values; MirblabError when it is not what was imported."""
        is_run = self.kind == "run"
        path = self.folder / SOURCE_FOLDER / self.file if is_run else self.folder / VALUES_FILE
        expected = self.sha256 if is_run else self.values_sha256
        digest = source_sha256(path) if path.is_file() else "missing"
        if digest != expected:
            raise MirblabError(
                f"{path} is not what was imported on {self.date}: its sha256 is {digest}, that of the import was "
                f"{expected}; import the original again: {self.command}"
            )
        return path


def import_results(
    path: str | Path,
    *,
    system: str = "",
    collection: str = "",
    origin: str = "",
    name: str = "",
    percent: bool = False,
    candidates_only: bool = False,
) -> tuple[ImportRecord, list[str]]:
    """Import a run, a CSV of values, or results of MTEB (a JSON file, or a folder of them).

    A run is in TREC's format, or a submission to ARQMath's first task (lines of topic, post, rank, score, run).
    *system* and *collection* name what the file does not name (a run's collection is guessed from its ids); *origin*
    says who measured (default: the file's name); *name* is the folder in `<home>/results`; *percent*: values are from 0
    to 100; *candidates_only* cuts documents that a run's queries may not return. Returns the record and notes for the
    user; the same import again changes nothing. MirblabError, and no import, for what is broken, contradictory or of
    other ids.
    """
    source = paths.expand_home(path)
    if not source.exists():
        raise MissingFileError(f"no {source}; give a run file, a CSV, a JSON file of MTEB or a folder of them")
    kind = "values" if source.is_dir() else _SUFFIXES.get(source.suffix.lower(), "run")
    kind = "run" if source.is_file() and is_run_file(source) else kind
    if kind == "run":
        record, notes, values = *_describe_run(source, system, collection, candidates_only), None
    else:
        if candidates_only:
            raise MirblabError(f"{source} holds values, not a run, so nothing can be cut; leave the option out")
        record, notes, values = _describe_values(source, system, collection, percent)
    record = replace(record, origin=origin or source.resolve().name)
    record = replace(record, name=paths.checked_name(name or _default_name(record)))
    set_aside_damaged(record)
    earlier = find_earlier_import(record, values)
    if earlier is not None:
        return earlier, ["imported before; nothing changed"]
    try:
        check_not_imported(record, values)
        return write_import(source, record, values), notes
    except MirblabError:
        earlier = find_earlier_import(record, values)  # another process may have imported it meanwhile
        if earlier is None:
            raise
        return earlier, ["imported before; nothing changed"]


def import_records() -> list[ImportRecord]:
    """Return the records of all imports, by name; MirblabError for one that cannot be read or was changed."""
    record_files = sorted(imports_folder().glob(f"[!.]*/{RECORD_FILE}"))
    return [read_record(path) for path in record_files if not path.parent.name.endswith(stored_files.SUFFIX)]


def imported_systems() -> list[str]:
    """Return the systems with imported runs or values."""
    return sorted({system for record in import_records() for system in record.systems})


def imported_runs(system: str) -> dict[str, ImportRecord]:
    """Return the imported runs of a *system*, by collection; empty when it has none."""
    return {
        record.collections[0]: record
        for record in import_records()
        if record.kind == "run" and system in record.systems
    }


def imported_settings(system: str) -> dict[str, Any]:
    """Return the settings of an imported system: its kind, and what determines its run on each collection."""
    records = imported_runs(system)
    files = {name: [record.sha256, record.candidates_only, record.origin] for name, record in records.items()}
    return {"kind": "imported", "label": system, "files": files}


def read_imported_run(system: str, collection: Collection) -> pd.DataFrame:
    """Return the part of an imported run that the *collection* knows; its attrs have the counts of `fit_run`."""
    records = imported_runs(system)
    if collection.name not in records:
        has = f"its runs are on {', '.join(records)}" if records else "only values of it were imported"
        raise MirblabError(f"the imported system '{system}' has no run on {collection.name}; {has}")
    record = records[collection.name]
    run, counts = fit_run(read_run(record.content_file()), collection, candidates_only=record.candidates_only)
    run.attrs = {"system": system, "collection": collection.name, "origin": record.origin}
    run.attrs.update(counts.items())
    if counts["unknown_documents"]:
        run.attrs["remainder"] = remainder_note(counts["n_rows"], counts["unknown_documents"], collection.name)
    return run


def read_imported_values(systems: Sequence[str] = ()) -> pd.DataFrame:
    """Return the imported values (0 to 1) of *systems* (empty: all); query_id is "" where only a mean was given."""
    records = [record for record in import_records() if record.kind == "values"]
    known = sorted({system for record in records for system in record.systems})
    check_known("imported values of system", systems, known)
    if not records:
        types = dict.fromkeys(VALUE_COLUMNS, "str") | {"value": "float64"}
        return pd.DataFrame(columns=[*VALUE_COLUMNS, "origin"]).astype(types)
    tables = [read_stored_values(record).assign(origin=record.origin) for record in records]
    table = pd.concat(tables, ignore_index=True)
    return table[table.system.isin(list(systems))].reset_index(drop=True) if systems else table


def mark_imported(text: str, names: Iterable[str]) -> str:
    """Return a text in which the mark follows each of *names*, unless it is a part of a longer name.

    >>> mark_imported("theirs minus bm25", ["theirs"]), mark_imported("theirs+bm25", ["theirs"])
    ('theirs § minus bm25', 'theirs+bm25')
    """
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    if not known:
        return text
    return re.sub(rf"(?<![\w.+>@-])({known})(?![\w+>@-]|\.\w| {FOREIGN_MARK})", rf"\1 {FOREIGN_MARK}", text)


def verify_imports(folder: Path) -> list[str]:
    """Compare the imports in *folder* with their records; return a line for each difference and unknown file."""
    wrong = []
    for path in stored_files.sound_paths(folder):
        try:
            record = read_record(path / RECORD_FILE) if path.is_dir() else None
            if record is None:
                wrong.append(stored_files.unknown_file_message(path))
            else:
                record.content_file()
        except (MirblabError, OSError) as error:
            wrong.append(str(error))
    return wrong


def imports_folder() -> Path:
    """Return the folder of everything imported: `<home>/results`."""
    return paths.home() / "results"


def _describe_run(source: Path, system: str, collection: str, candidates_only: bool) -> tuple[ImportRecord, list[str]]:
    run = read_run(source)
    if run.empty:
        raise MirblabError(f"{source} is an empty run; a line is 'query_id Q0 doc_id rank score system'")
    system = system or str(run.attrs["system"])
    _check_system_name(system, source)
    notes = [] if collection else ["the collection was guessed from the ids; --collection names another"]
    target = catalogue.load(collection or guess_collection(run, source))
    kept, counts = fit_run(run, target, candidates_only=candidates_only)
    if kept.empty:
        raise _no_fit(source, run, target, counts)
    notes += _fit_notes(len(kept), counts, target, candidates_only)
    missing = len(target.query_ids) - kept.query_id.nunique()
    if missing:
        verbs = "is not in the run and scores" if missing == 1 else "are not in the run and score"
        notes.append(f"{missing:,} of {counted(len(target.query_ids), 'query')} {verbs} 0")
    record = _new_record("run", source, [system], [target.name], [])
    n_rows, n_unknown = counts["n_rows"], counts["unknown_documents"]
    return replace(record, candidates_only=candidates_only, n_rows=n_rows, n_unknown=n_unknown), notes


def _new_record(
    kind: str, source: Path, systems: list[str], collections: list[str], measures: list[str]
) -> ImportRecord:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return ImportRecord("", kind, source.name, source_sha256(source), today, "", systems, collections, measures)


def guess_collection(run: pd.DataFrame, source: Path) -> str:
    """Return the collection on disk with the queries and documents of *run*; MirblabError unless just one has them."""
    folders = {name: paths.data() / name for name in catalogue.collection_names()}
    folders = {name: folder for name, folder in folders.items() if all(find_texts(folder, stem) for stem in _STEMS)}
    query_ids, doc_ids = set(run.query_id.astype(str)), set(run.doc_id.astype(str))
    query_shares = {name: _known_share(query_ids, folder, "queries") for name, folder in folders.items()}
    fitting = [name for name, share in query_shares.items() if share >= _LEAST_KNOWN_IDS]
    doc_shares = {name: _known_share(doc_ids, folders[name], "corpus") for name in fitting}
    matches = [name for name, share in doc_shares.items() if share >= _LEAST_KNOWN_IDS]
    if len(matches) == 1:
        return matches[0]
    best = max(query_shares, key=lambda name: (query_shares[name], doc_shares.get(name, 0)), default="")
    if matches:
        shown = f"{', '.join(matches)} all have them"
    elif best:
        shown = f"none has {100 * _LEAST_KNOWN_IDS:.0f} % of them; "
        shown += f"{best} has {100 * query_shares[best]:.0f} % of the queries"
        if best in doc_shares:
            shown += f" and {100 * doc_shares[best]:.0f} % of the documents: was it made over a larger corpus?"
    else:
        shown = "no collection is here"
    raise MirblabError(f"{source}: the ids do not say which collection it is of: {shown}; give --collection")


def fit_run(
    given: pd.DataFrame, collection: Collection, *, candidates_only: bool = False
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the rows of a run that a *collection* knows, in order, and counts of the rows that do not fit."""
    given = given.astype({"query_id": "str", "doc_id": "str"})
    queries = collection.query_ids.get_indexer(pd.Index(given.query_id))
    docs = collection.doc_ids.get_indexer(pd.Index(given.doc_id))
    known = (queries >= 0) & (docs >= 0)
    permitted = np.ones(len(given), bool)
    permitted[known] = collection.candidates.permits(queries[known], docs[known])
    return order_run(given[known & permitted] if candidates_only else given[known]), {
        "n_rows": len(given),
        "unknown": int((~known).sum()),
        "unknown_documents": int(((queries >= 0) & (docs < 0)).sum()),
        "not_candidates": int((~permitted).sum()),
    }


def remainder_note(n_rows: int, n_unknown: int, collection: str) -> str:
    """Return the note on a run over a larger corpus, some documents of which *collection* lacks."""
    return (
        f"{n_unknown:,} of {n_rows:,} rows are documents that {collection} lacks and are left out; only prime measures "
        "and Bpref, which look at judged documents alone, are those of the whole run"
    )


def _no_fit(source: Path, run: pd.DataFrame, target: Collection, counts: dict[str, int]) -> MirblabError:
    where = f"{target.name} (split {target.split})"
    if counts["unknown"] < len(run):
        return MirblabError(f"{source}: all its documents that {where} has are excluded for their queries; leave "
                            "--candidates-only out to keep them")  # fmt: skip
    known = zip(("query", "document"), (run.query_id, run.doc_id), (target.query_ids, target.doc_ids), strict=True)
    shown = "; ".join(f"its first {kind} is '{rows.iloc[0]}', the collection's '{ids[0]}'" for kind, rows, ids in known)
    return MirblabError(
        f"{source}: all {len(run):,} rows have a query or a document that {where} lacks: {shown}; give the "
        "--collection that it was made for, or one that keeps the ids of its corpus"
    )


def _fit_notes(n_kept: int, counts: dict[str, int], target: Collection, candidates_only: bool) -> list[str]:
    unknown_rows, barred, foreign_docs = counts["unknown"], counts["not_candidates"], counts["unknown_documents"]
    notes = [f"{n_kept:,} of {counted(counts['n_rows'], 'row')} fit {target.name}"]
    if unknown_rows:
        have, they = counted(unknown_rows, "row has", "rows have"), "it is" if unknown_rows == 1 else "they are"
        notes.append(f"{have} a query or a document that {target.name} lacks; {they} left out")
    if foreign_docs:
        notes.append(remainder_note(counts["n_rows"], foreign_docs, target.name))
    if barred:
        they, them = ("it is", "it") if barred == 1 else ("they are", "them")
        done = f"{they} cut" if candidates_only else f"{they} kept; --candidates-only cuts {them}"
        notes.append(f"{counted(barred, 'row has', 'rows have')} a document that its query may not return; {done}")
    return notes


def _known_share(names: set[str], folder: Path, stem: str) -> float:
    def known_ids() -> Iterator[str]:
        with contextlib.suppress(MirblabError):  # loading the collection reports broken lines and ids
            for record in read_rows(folder, stem):
                with contextlib.suppress(MirblabError):
                    yield ids.read_id(record, "_id")

    return len(names.intersection(known_ids())) / max(len(names), 1)


def _describe_values(
    source: Path, system: str, collection: str, percent: bool
) -> tuple[ImportRecord, list[str], ImportedValues]:
    is_table = source.suffix.lower() in (".csv", ".tsv") and source.is_file()
    values = (read_csv_values if is_table else read_mteb_values)(source, system, collection, percent)
    systems, collections, measures = (list(dict.fromkeys(names)) for names in list(zip(*values.rows, strict=True))[:3])
    known = {*catalogue.collection_names(), *registry.read_registry("collections")}
    for name in collections:
        if name not in known:
            raise MirblabError(f"{source}: {unknown('collection', name, known)}")
    for name in systems:
        _check_system_name(name, source)
    counts = [counted(len(part), what) for part, what in ((values.rows, "value"), (systems, "system"),
                                                          (collections, "collection"))]  # fmt: skip
    notes = ["{} of {} on {}".format(*counts)]
    notes += [f"left out: {count:,} {what}" for what, count in values.left_out.items()]
    shares = [value for (_, _, measure, _), (value, _) in values.rows.items() if not is_rank(measure)]
    if percent and shares and max(shares) <= 0.01:
        notes.append("no value is above 1 percent; leave --percent out if they are from 0 to 1")
    notes += _query_notes(values, collections)
    return _new_record("values", source.resolve(), systems, collections, measures), notes, values


def _query_notes(values: ImportedValues, collections: Sequence[str]) -> list[str]:
    notes = []
    for name in collections:
        given = {key[3] for key in values.rows if key[1] == name and key[3]}
        if not given or name not in catalogue.collection_names():
            continue
        known = set(catalogue.load(name).query_ids)
        if len(given & known) < _LEAST_KNOWN_QUERIES * len(given):
            example = min(given - known)
            raise MirblabError(f"{len(given - known):,} of {len(given):,} query ids, such as '{example}', are not in "
                               f"{name}; were they measured on another collection or split?")  # fmt: skip
        if given != known:
            unknown_ids = counted(len(given - known), "query id is", "query ids are")
            without = counted(len(known - given), "query has", "queries have")
            notes.append(f"{name}: {unknown_ids} unknown, {without} no value; significance tests need one for each")
    return notes


def _check_system_name(system: str, source: Path) -> None:
    if system in registry.read_registry("systems"):
        raise MirblabError(f"{source}: '{system}' is a system of the registry; give --system another name, such as "
                           f"'{system} (theirs)'")  # fmt: skip
    if not system.strip() or set("+>") & set(system):
        raise MirblabError(f"{source}: '{system}' cannot name a system: + and > compose systems; give --system")


def _default_name(record: ImportRecord) -> str:
    text = f"{record.systems[0]} on {record.collections[0]}" if record.kind == "run" else Path(record.file).stem
    return "".join("_" if sign in '<>:"/\\|?*' or ord(sign) < 32 else sign for sign in text).strip(". ") or "import"


def read_record(path: Path) -> ImportRecord:
    """Return the record in a file; MirblabError with file, line and remedy for a damaged one."""
    again = f"import the original again: mirblab import-results FILE --name {shlex.quote(path.parent.name)}"
    try:
        content = text_files.read_json(path)
    except MirblabError as error:
        raise MirblabError(f"{error}; {again}") from error
    where = f"{path} is no record of an import"
    if not isinstance(content, dict):
        raise MirblabError(f"{where}: expected a JSON object, found {type(content).__name__}; {again}")
    types = get_type_hints(ImportRecord)
    needed = [item.name for item in fields(ImportRecord) if item.default is MISSING]
    try:
        record = ImportRecord(**registry.check_table("the record", content, types, needed))
    except MirblabError as error:
        raise MirblabError(f"{where}: {str(error).partition(';')[0]}; {again}") from error
    names = record.name == path.parent.name and Path(record.file).name == record.file
    if not names or record.kind not in ("run", "values") or not (record.systems and record.collections):
        raise MirblabError(f"{where}: its name, kind, file, systems or collections do not fit; {again}")
    if record.sealed() != record:
        raise MirblabError(f"{where}: it was changed after the import; {again}")
    return record


def read_stored_values(record: ImportRecord) -> pd.DataFrame:
    """Return the values of one import; MirblabError when they were changed."""
    table = pd.read_csv(record.content_file(), dtype=str, keep_default_na=False)
    return table.assign(value=table.value.astype(float))


def _stored_values(record: ImportRecord) -> dict[ValueKey, float]:
    table = read_stored_values(record)
    return dict(
        zip(zip(table.system, table.collection, table.measure, table.query_id, strict=True), table.value, strict=True)
    )


def find_earlier_import(record: ImportRecord, values: ImportedValues | None) -> ImportRecord | None:
    """Return the earlier import of the same content, or None; MirblabError when the name has other content."""
    other = next((other for other in import_records() if other.name.casefold() == record.name.casefold()), None)
    if other is None:
        return None
    differs = [name for name in _COMPARED_FIELDS if getattr(other, name) != getattr(record, name)]
    if not differs and values is not None:
        given = {key: value for key, (value, _) in values.rows.items()}
        differs = [] if _stored_values(other) == given else ["values"]  # the same file, read as percent
    if differs:
        raise MirblabError(
            f"'{record.name}' was imported on {other.date} from {other.file} and differs in {', '.join(differs)}; "
            f"give another --name, or remove {other.folder} first"
        )
    return other


def check_not_imported(record: ImportRecord, values: ImportedValues | None) -> None:
    """Raise MirblabError when a run or a value of the same system was imported under another name."""
    for other in import_records():
        overlaps = set(record.systems) & set(other.systems) and set(record.collections) & set(other.collections)
        if not overlaps or other.kind != record.kind:
            continue
        if values is None:
            what = f"a run of '{record.systems[0]}' on {record.collections[0]}"
        else:
            key = next((key for key in _stored_values(other) if key in values.rows), None)
            what = "" if key is None else f"{key[2]} of '{key[0]}' on {key[1]}"
        if what:
            raise MirblabError(f"{what} was imported already, as '{other.name}'; remove {other.folder}, or give "
                               "another --system")  # fmt: skip


def set_aside_damaged(record: ImportRecord) -> None:
    """Set aside a damaged import of the record's name, with a warning, so that it can be imported again."""
    if not record.folder.exists():
        return
    try:
        read_record(record.folder / RECORD_FILE).content_file()
    except (MirblabError, FileNotFoundError) as error:
        stored_files.set_aside(record.folder, str(error), "it is imported again")


def write_import(source: Path, record: ImportRecord, values: ImportedValues | None) -> ImportRecord:
    """Write the folder of an import, whole or not at all, and return the record with its checksums."""
    beside = atomic_files.unfinished_name(record.folder)
    with atomic_files.writing(record.folder):
        try:
            for path in source_files(source):
                target = beside / SOURCE_FOLDER / record.file / path.relative_to(source)  # "." for a file
                atomic_files.make_folder(target.parent)
                with atomic_files.writing(target, path.stat().st_size):
                    shutil.copyfile(path, target)
            if source_sha256(beside / SOURCE_FOLDER / record.file) != record.sha256:
                raise MirblabError(f"{source} changed while it was read; import it again when it is whole")
            if values is not None:
                record = replace(record, values_sha256=_write_values(beside / VALUES_FILE, values))
            record = record.sealed()
            with atomic_files.open_to_write(beside / RECORD_FILE, "w") as file:
                file.write(json.dumps(asdict(record), indent=2, ensure_ascii=False) + "\n")
            atomic_files.flush_tree(beside)
            beside.rename(record.folder)
            atomic_files.flush_folder(imports_folder())
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return record


def _write_values(path: Path, values: ImportedValues) -> str:
    with atomic_files.open_to_write(path, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([VALUE_COLUMNS, *((*key, repr(value)) for key, (value, _) in values.rows.items())])
    return source_sha256(path)


def source_sha256(source: Path) -> str:
    """Return the SHA-256 of a file, or one over the names and contents of the files that are read from a folder."""
    if source.is_file():
        with open(source, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    lines = [f"{path.relative_to(source).as_posix()}\t{source_sha256(path)}\n" for path in source_files(source)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def source_files(source: Path) -> list[Path]:
    """Return the files of an import: the given file, or the JSON files of a folder of results that are read."""
    if source.is_file():
        return [source]
    return [path for path in sorted(source.rglob("*.json")) if path.name == MODEL_FILE or is_mteb_result(path)]
