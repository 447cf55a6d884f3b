"""Runs and values that others published: how they are imported, checked, stored and read."""

from __future__ import annotations

import contextlib
import csv
import datetime
import hashlib
import json
import math
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core import ids, paths, registry, stored_files, text_files
from mirblab.core.errors import MirblabError, suggest, unknown
from mirblab.core.text_files import LineProblems, find_file, read_records
from mirblab.data.collection import Collection
from mirblab.data.runs import FOREIGN_MARK, order_run, read_run
from mirblab.evaluation import measures
from mirblab.sources import catalogue

CSV_COLUMNS = ("system", "collection", "measure", "value", "query_id")
VALUE_COLUMNS = ["system", "collection", "measure", "query_id", "value"]
Row = tuple[str, str, str, str, float]  # system, collection, measure, query_id ("": a mean), value
# MIRB's tasks in its fork of MTEB, and our names of their collections.
MIRB_TASKS = {
    "MathlibRetrieval": "mirb-mathlib",
    "MSEDupRetrieval": "mirb-mse-dup",
    "MODupRetrieval": "mirb-mo-dup",
    "MSEQARetrieval": "mirb-arqmath1",
    "ProofWikiQARetrieval": "mirb-proofwiki-qa",
    "StacksQARetrieval": "mirb-stacks-qa",
    "ProofWikiPremiseRetrieval": "mirb-proofwiki-premise",
    "StacksPremiseRetrieval": "mirb-stacks-premise",
    "RealAnalysisPremiseRetrieval": "mirb-realanalysis-premise",
    "NumberTheoryPremiseRetrieval": "mirb-numbertheory-premise",
    "LeanPremiseRetrieval": "mirb-lean",
    "IsabellePremiseRetrieval": "mirb-isabelle",
    "HolPremiseRetrieval": "mirb-hol",
    "WikiFormulaRetrieval": "mirb-wfb",
    "MSEFormulaRetrieval": "mirb-arqmath2",
}
SPLIT, MODEL_FILE = "test", "model_meta.json"
RECORD_FILE, VALUES_FILE, SOURCE_FOLDER = "record.json", "values.csv", "given"
_SUFFIXES = {".json": "values", ".csv": "values", ".tsv": "values"}
_MEASURES = {"ndcg": "nDCG", "map": "AP", "recall": "R", "precision": "P", "mrr": "RR", "hit_rate": "Success"}
_KEY = re.compile(rf"({'|'.join(_MEASURES)})_at_([1-9]\d*)")
_OTHER_KEYS = {"hf_subset", "languages", "main_score", "evaluation_time"}
_REVISION = re.compile(r"[0-9a-f]{7,40}|no_revision_available|external|main")
_LEAST_KNOWN_IDS = 0.9  # the share of the run's ids that a collection must know
_STEMS = ("queries", "corpus")
_LEAST_KNOWN_QUERIES = 0.5  # the share of the query ids of values that their collection must know
_COMPARED_FIELDS = ("kind", "sha256", "origin", "systems", "collections", "measures", "candidates_only")


@dataclass
class ImportedValues:
    """Values that were read, each with its file and line, and the number of left-out ones by reason.

    >>> values = ImportedValues()
    >>> values.add(("theirs", "stacks-qa", "RR", "", 0.5), "a.csv, line 2")
    >>> values.rows
    {('theirs', 'stacks-qa', 'RR', ''): (0.5, 'a.csv, line 2')}
    """

    rows: dict[tuple[str, str, str, str], tuple[float, str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row, where: str) -> None:
        """Add a row; MirblabError when it is there already, naming both lines, and for a value out of range."""
        *key, value = row
        shown = f"{key[2]} of {key[0]} on {key[1]}" + (f", query {key[3]}" if key[3] else "")
        if tuple(key) in self.rows:
            raise MirblabError(f"{where}: {shown} stands in {self.rows[tuple(key)][1]} already; keep one of them")
        if not math.isfinite(value):
            raise MirblabError(f"{where}: {shown} is {value}; expected a number")
        if not 0 <= value <= 1 and not key[2].startswith("Rank"):
            raise MirblabError(f"{where}: {shown} is {value:g}, not from 0 to 1; for percent say so with --percent")
        self.rows[tuple(key)] = (value, where)

    def merge(self, other: ImportedValues) -> None:
        """Add the values of another file."""
        for key, (value, where) in other.rows.items():
            self.add((*key, value), where)
        self.left_out += other.left_out


@dataclass(frozen=True)
class ImportRecord:
    """What is known of one import: the file it came from, who measured, and what is in it.

    `kind` is "run" or "values"; `file` is the given path's own name, `sha256` that of its content, `date` the day
    of the import; `candidates_only`: documents that are no candidates are cut from the run. `n_rows` counts the rows
    of a run, `n_unknown` those of its collection's queries whose document the collection lacks; `values_sha256` is
    that of the stored values, and `seal` a checksum over all the rest.
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
        """Return where the import lies."""
        return imports_folder() / self.name

    @property
    def command(self) -> str:
        """Return the command that takes the import in anew, given the file that it came from."""
        told = {"--origin": self.origin, "--name": self.name}
        if self.kind == "run":
            told = {"--system": self.systems[0], "--collection": self.collections[0]} | told
        words = [word for option, value in told.items() for word in (option, value)]
        cut = ["--candidates-only"] if self.candidates_only else []
        return shlex.join(["mirblab", "import-results", self.file, *words, *cut])

    def sealed(self) -> ImportRecord:
        """Return the record with its checksum."""
        content = json.dumps(asdict(replace(self, seal="")), sort_keys=True)
        return replace(self, seal=hashlib.blake2b(content.encode(), digest_size=16).hexdigest())

    def run_file(self) -> Path:
        """Return the copy of the run that was given; MirblabError when it is not what was imported."""
        return self._checked(self.folder / SOURCE_FOLDER / self.file, self.sha256)

    def values_file(self) -> Path:
        """Return the file of the stored values; MirblabError when it is not what was imported."""
        return self._checked(self.folder / VALUES_FILE, self.values_sha256)

    def _checked(self, path: Path, expected: str) -> Path:
        digest = file_sha256(path) if path.is_file() else "missing"
        if digest != expected and (expected or digest == "missing"):  # imports of older versions know no values_sha256
            raise MirblabError(
                f"{path} is not what was imported on {self.date}: its sha256 is {digest}, that of the import was "
                f"{expected or 'not kept'}; take the original in anew: {self.command}"
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
    """Import a run in TREC's format, a CSV of values, or results of MTEB (a JSON file, or a folder of them).

    *system*: its name here, for what does not name it; *collection*: likewise, for a run guessed from its ids;
    *origin*: who measured, shown in tables (default: the file's name); *name* of the folder in `<home>/results`
    (default: made from these); *percent*: values are from 0 to 100; *candidates_only*: documents of a run that its
    queries may not return are cut. Returns the record and what the user should know. The same again changes
    nothing. Raises MirblabError, and takes in nothing, for broken files, wrong names, ids of another collection,
    and values that are there already.
    """
    source = paths.expand_home(path)
    if not source.exists():
        raise FileNotFoundError(f"no {source}; give a run file, a CSV, a JSON file of MTEB or a folder of them")
    kind = "values" if source.is_dir() else _SUFFIXES.get(source.suffix.lower(), "run")
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
    check_not_imported(record, values)
    return write_import(source, record, values), notes


def import_records() -> list[ImportRecord]:
    """Return what was imported, by name; MirblabError for a record that cannot be read or was changed.

    >>> isinstance(import_records(), list)
    True
    """
    record_files = sorted(imports_folder().glob(f"[!.]*/{RECORD_FILE}"))
    return [read_record(path) for path in record_files if not path.parent.name.endswith(stored_files.SUFFIX)]


def imported_systems() -> list[str]:
    """Return the systems that something was imported for."""
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
    files = {
        name: [record.sha256, record.candidates_only, record.origin] for name, record in imported_runs(system).items()
    }
    return {"kind": "imported", "label": system, "files": files}


def read_imported_run(system: str, collection: Collection) -> pd.DataFrame:
    """Return the imported run of a *system* on a *collection*: query_id, doc_id, score, rank, best first.

    Queries and documents that the collection lacks are left out. Its attrs say system, collection, origin, and the
    counts of `fitted`; what is no candidate is kept, unless it was to be cut when it was imported. Raises MirblabError
    when there is no such run, and when the stored file is not what was imported.
    """
    records = imported_runs(system)
    if collection.name not in records:
        has = f"its runs are on {', '.join(records)}" if records else "only values of it were imported"
        raise MirblabError(f"the imported system '{system}' has no run on {collection.name}; {has}")
    record = records[collection.name]
    kept, attrs = fit_run(read_run(record.run_file()), collection, candidates_only=record.candidates_only)
    kept.attrs = {"system": system, "collection": collection.name, "origin": record.origin, **attrs}
    if attrs["unknown_documents"]:
        kept.attrs["remainder"] = remainder_note(attrs["n_rows"], attrs["unknown_documents"], collection.name)
    return kept


def read_imported_values(systems: Sequence[str] = ()) -> pd.DataFrame:
    """Return the imported values of *systems* (empty: all): system, collection, measure, query_id, value, origin.

    Values from 0 to 1; query_id is "" where only a mean over queries was given: tables show such a one with a mark,
    and tests leave it out. Raises MirblabError for a system without imported values.

    >>> read_imported_values().columns.tolist()
    ['system', 'collection', 'measure', 'query_id', 'value', 'origin']
    """
    records = [record for record in import_records() if record.kind == "values"]
    known = sorted({system for record in records for system in record.systems})
    for system in systems:
        if system not in known:
            raise unknown("imported values of system", system, known)
    tables = [
        pd.DataFrame(columns=[*VALUE_COLUMNS, "origin"]).astype(dict.fromkeys(VALUE_COLUMNS, "str") | {"value": float})
    ]
    tables = [read_stored_values(record).assign(origin=record.origin) for record in records] or tables
    table = pd.concat(tables, ignore_index=True)
    return table[table.system.isin(list(systems))].reset_index(drop=True) if systems else table


def mark_imported(text: str, names: Iterable[str]) -> str:
    """Return a text in which each of *names* bears the mark; where one is a part of a longer name it does not.

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
            elif record.kind == "run":
                record.run_file()
            else:
                record.values_file()
        except (MirblabError, OSError) as error:
            wrong.append(str(error))
    return wrong


def imports_folder() -> Path:
    """Return the folder of everything imported: `<home>/results`."""
    return paths.home() / "results"


def _describe_run(source: Path, system: str, collection: str, candidates_only: bool) -> tuple[ImportRecord, list[str]]:
    """Return the record of a run, and notes on how it fits its collection."""
    run = read_run(source)
    if run.empty:
        raise MirblabError(f"{source} is an empty run; a line is 'query_id Q0 doc_id rank score system'")
    system = _checked_system_name(system or str(run.attrs["system"]), source)
    notes = [] if collection else ["the collection was guessed from the ids; --collection names another"]
    target = catalogue.load(collection or guess_collection(run, source))
    kept, counts = fit_run(run, target, candidates_only=candidates_only)
    if kept.empty:
        raise _no_fit(source, run, target, counts)
    notes += _fit_notes(len(kept), counts, target, candidates_only)
    missing = len(target.query_ids) - kept.query_id.nunique()
    notes += [f"{missing:,} of {len(target.query_ids):,} queries are not in the run and score 0"] if missing else []
    about = (source_sha256(source), _today(), "", [system], [target.name], [], candidates_only)
    return ImportRecord("", "run", source.name, *about, counts["n_rows"], counts["unknown_documents"]), notes


def guess_collection(run: pd.DataFrame, source: Path) -> str:
    """Return the one collection on disk that knows the queries and the documents of *run*, read from *source*.

    MirblabError when none or several do, with the numbers.
    """
    folders = {name: paths.data() / name for name in catalogue.collection_names()}
    folders = {name: folder for name, folder in folders.items() if all(find_file(folder, s) for s in _STEMS)}
    query_ids, doc_ids = set(run.query_id.astype(str)), set(run.doc_id.astype(str))
    query_shares = {name: _known_share(query_ids, folder, "queries") for name, folder in folders.items()}
    fitting = [name for name, share in query_shares.items() if share >= _LEAST_KNOWN_IDS]
    doc_shares = {name: _known_share(doc_ids, folders[name], "corpus") for name in fitting}
    matches = [name for name, share in doc_shares.items() if share >= _LEAST_KNOWN_IDS]
    if len(matches) == 1:
        return matches[0]
    best = max(query_shares, key=lambda name: (query_shares[name], doc_shares.get(name, 0)), default="")
    if matches:
        shown = f"{', '.join(matches)} all know them"
    elif best:
        shown = f"none here knows {_LEAST_KNOWN_IDS:.0%} of them; {best} knows {query_shares[best]:.0%} of the queries"
        if best in doc_shares:
            shown += f" and {doc_shares[best]:.0%} of the documents: was it made over a larger corpus?"
    else:
        shown = "no collection is here"
    raise MirblabError(f"{source}: the ids do not say which collection it is of: {shown}; give --collection")


def fit_run(
    given: pd.DataFrame, collection: Collection, *, candidates_only: bool = False
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the rows of a run that a *collection* knows, in order, and counts of rows.

    `n_rows` is their number, `unknown` that of those with a query or document that the collection lacks,
    `unknown_documents` that of those which lack only the document, `not_candidates` that of barred documents.

    >>> from mirblab.sources.catalogue import load
    >>> c = load("mini-qa")
    >>> run = pd.DataFrame({"query_id": c.query_ids[:1], "doc_id": c.doc_ids[:1], "score": [1.0]})
    >>> fit_run(pd.concat([run, run.assign(doc_id="nowhere")]), c)[1]
    {'n_rows': 2, 'unknown': 1, 'unknown_documents': 1, 'not_candidates': 0}
    """
    queries = collection.query_ids.get_indexer(given.query_id.astype(str))
    docs = collection.doc_ids.get_indexer(given.doc_id.astype(str))
    known = (queries >= 0) & (docs >= 0)
    permitted = np.ones(len(given), bool)
    permitted[known] = collection.candidates.permits(queries[known], docs[known])
    kept = given[known & permitted] if candidates_only else given[known]
    kept = kept.assign(query_id=kept.query_id.astype(str), doc_id=kept.doc_id.astype(str))
    return order_run(kept), {
        "n_rows": len(given),
        "unknown": int((~known).sum()),
        "unknown_documents": int(((queries >= 0) & (docs < 0)).sum()),
        "not_candidates": int((~permitted).sum()),
    }


def remainder_note(n_rows: int, n_unknown: int, collection: str) -> str:
    """Return what is said of a run over a larger corpus, in which *collection* lacks some documents.

    >>> remainder_note(20_000, 18_874, "mini-qa")[:71]
    '18,874 of 20,000 rows are documents that mini-qa lacks and are left out'
    """
    return (
        f"{n_unknown:,} of {n_rows:,} rows are documents that {collection} lacks and are left out; only prime measures "
        "and Bpref, which look at judged documents alone, are those of the whole run"
    )


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
    """Return notes on how many rows of a run fit its collection."""
    unknown_rows, barred, foreign_docs = counts["unknown"], counts["not_candidates"], counts["unknown_documents"]
    notes = [f"{n_kept:,} of {counts['n_rows']:,} rows fit {target.name}"]
    if unknown_rows:
        notes.append(f"{unknown_rows:,} rows have a query or a document that {target.name} lacks; they are left out")
    if foreign_docs:
        notes.append(remainder_note(counts["n_rows"], foreign_docs, target.name))
    if barred:
        done = "they are cut" if candidates_only else "they are kept; --candidates-only cuts them"
        notes.append(f"{barred:,} rows have a document that its query may not return; {done}")
    return notes


def _known_share(names: set[str], folder: Path, stem: str) -> float:
    """Return the share of *names* that the corpus or the queries of a folder have."""
    path = find_file(folder, stem)
    return len(names.intersection(_ids_in(path))) / max(len(names), 1) if path else 0.0


def _ids_in(path: Path) -> Iterator[str]:
    for _, record in read_records(path, LineProblems(path)):
        with contextlib.suppress(MirblabError):  # loading the collection says what is wrong with it
            yield ids.read_id(record, "_id")


def _describe_values(
    source: Path, system: str, collection: str, percent: bool
) -> tuple[ImportRecord, list[str], ImportedValues]:
    """Return the record of the values in a file, notes on what was left out, and the values."""
    is_table = source.suffix.lower() in (".csv", ".tsv") and source.is_file()
    values = (read_csv_values if is_table else read_mteb_values)(source, system, collection, percent)
    systems, collections, measures = (list(dict.fromkeys(key[at] for key in values.rows)) for at in range(3))
    known = {*catalogue.collection_names(), *registry.read_registry("collections")}
    for name in collections:
        if name not in known:
            raise MirblabError(f"{source}: {unknown('collection', name, known)}")
    for name in systems:
        _checked_system_name(name, source)
    notes = [f"{len(values.rows):,} values of {len(systems)} systems on {len(collections)} collections"]
    notes += [f"left out: {count:,} {what}" for what, count in values.left_out.items()]
    notes += _query_notes(values, collections)
    record = ImportRecord(
        "", "values", source.resolve().name, source_sha256(source), _today(), "", systems, collections, measures
    )
    return record, notes, values


def _query_notes(values: ImportedValues, collections: Sequence[str]) -> list[str]:
    """Return what is odd in the query ids of values that stand for queries; MirblabError for mostly unknown ones."""
    notes = []
    for name in collections:
        given = {key[3] for key in values.rows if key[1] == name and key[3]}
        if not given or name not in catalogue.collection_names():
            continue
        asked = set(catalogue.load(name).query_ids)
        if len(given & asked) < _LEAST_KNOWN_QUERIES * len(given):
            example = sorted(given - asked)[0]
            raise MirblabError(f"{len(given - asked):,} of {len(given):,} query ids, such as '{example}', are not in "
                               f"{name}; were they measured on another collection or split?")  # fmt: skip
        if given != asked:
            notes.append(f"{name}: {len(given - asked):,} query ids are unknown, {len(asked - given):,} queries have "
                         "no value; tests want every query")  # fmt: skip
    return notes


def _checked_system_name(system: str, source: Path) -> str:
    """Return the name of an imported system; MirblabError for one that could be taken for a system made here."""
    if system in registry.read_registry("systems"):
        raise MirblabError(f"{source}: '{system}' is a system of the registry; give --system another name, such as "
                           f"'{system} (theirs)'")  # fmt: skip
    if not system.strip() or set("+>") & set(system):
        raise MirblabError(f"{source}: '{system}' cannot name a system: + and > compose systems; give --system")
    return system


def _default_name(record: ImportRecord) -> str:
    """Return the folder's name for an import: the run's system and collection, else the file's stem."""
    text = f"{record.systems[0]} on {record.collections[0]}" if record.kind == "run" else Path(record.file).stem
    return "".join("_" if sign in '<>:"/\\|?*' or ord(sign) < 32 else sign for sign in text).strip(". ") or "import"


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def read_csv_values(path: Path, system: str = "", collection: str = "", percent: bool = False) -> ImportedValues:
    """Return the values in a CSV (`.tsv`: tabs) with the columns system, collection, measure, value, query_id.

    *system* and *collection* stand in for columns that are not there; without query_id a value is a mean. Raises
    MirblabError with file and line, and nothing is taken from a file that has one bad line.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("system,measure,value\\ntheirs,nDCG@10,0.4\\n")
    ...     list(read_csv_values(Path(folder, "a.csv"), collection="stacks-qa").rows)
    [('theirs', 'stacks-qa', 'nDCG@10', '')]
    """
    values, given = ImportedValues(), {"system": system, "collection": collection}
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True)
            header = _checked_header([name.strip() for name in reader.fieldnames or []], given, path)
            reader.fieldnames = header
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                if None in row or None in row.values():
                    n_cells = sum(value is not None for value in row.values()) + len(row.get(None, [])) - (None in row)
                    raise MirblabError(f"{where}: {n_cells} cells, but {len(header)} columns: {', '.join(header)}")
                values.add(_value_row({key: value.strip() for key, value in row.items()}, given, where, percent), where)
    except (UnicodeDecodeError, csv.Error) as error:
        raise MirblabError(f"{path} cannot be read as CSV in UTF-8: {error}; save it so") from error
    if not values.rows:
        raise MirblabError(f"{path} has a header and no values; put a row for each value below it")
    return values


def _checked_header(header: list[str], given: Mapping[str, str], path: Path) -> list[str]:
    """Return the header of a CSV; MirblabError for missing, unknown and repeated columns."""
    shown = ", ".join(header) or "nothing"
    for name in header:
        if name not in CSV_COLUMNS or header.count(name) > 1:
            raise MirblabError(f"{path}, line 1: the column '{name}' is not one of {', '.join(CSV_COLUMNS)}, each once"
                               f"{suggest(name, CSV_COLUMNS)}")  # fmt: skip
    for name in CSV_COLUMNS[:4]:
        if name in header and given.get(name):
            raise MirblabError(f"{path}, line 1: has a column '{name}', so --{name} would contradict it; leave it out")
        if name not in header and not given.get(name):
            more = f", or --{name}" if name in given else ""
            raise MirblabError(f"{path}, line 1: no column '{name}'{more}; found {shown}")
    return header


def _value_row(cells: dict[str, str], given: Mapping[str, str], where: str, percent: bool) -> Row:
    """Return one line of a CSV as a row; a measure is spelled as ours, a blank cell is refused."""
    cells = {**{key: value for key, value in given.items() if value}, **cells}
    blank = [name for name in CSV_COLUMNS[:4] if not cells[name]]
    if blank:
        raise MirblabError(f"{where}: '{blank[0]}' is empty")
    try:
        measure = str(measures.parse_measure(cells["measure"]))
    except MirblabError as error:
        raise MirblabError(f"{where}: {error}") from None
    is_rank = measure.startswith("Rank")
    value = read_number(cells["value"], f"{where}, column 'value'", percent and not is_rank)
    return cells["system"], cells["collection"], measure, cells.get("query_id", ""), value


def read_number(value: object, where: str, percent: bool = False) -> float:
    """Return a value as a float, divided by 100 where it was given in *percent*; MirblabError for anything else.

    >>> read_number("62.5", "a.csv, line 2", percent=True)
    0.625
    """
    try:
        if isinstance(value, bool) or "_" in str(value):  # Python would take 0_1 for 1
            raise ValueError
        return float(value) / (100 if percent else 1)
    except (TypeError, ValueError, OverflowError):
        raise MirblabError(f"{where}: expected a number, found {value!r:.60}") from None


def read_mteb_values(path: Path, system: str = "", collection: str = "", percent: bool = False) -> ImportedValues:
    """Return the means in a result file of MTEB, or in all those below a folder (`<model>/<revision>/<Task>.json`).

    The system is the model that the folders or `model_meta.json` name, unless *system* does. Only the split test is
    read. In a folder, tasks that are not MIRB's are left out and counted; a single file of such a task needs a
    *collection*. MirblabError names the file and the key.
    """
    if path.is_file():
        values = _read_mteb_file(path, system, collection, percent)
        if not values.rows:
            raise MirblabError(f"{path}: {', '.join(values.left_out)}; give --collection if it is one of ours")
        return values
    if collection:
        raise MirblabError(f"{path} is a folder of several tasks, so --collection cannot name them; leave it out")
    values, files = ImportedValues(), [file for file in sorted(path.rglob("*.json")) if is_mteb_result(file)]
    models = {_model_name(file) for file in files}
    if system and len(models) > 1:
        raise MirblabError(f"{path} has results of {len(models)} models, so --system cannot name them; leave it out")
    for file in files:
        values.merge(_read_mteb_file(file, system, "", percent))
    if not values.rows:
        raise MirblabError(f"{path} has no result of a task of MIRB in {len(files):,} JSON files; its tasks are "
                           f"{', '.join(MIRB_TASKS)}")  # fmt: skip
    return values


def is_mteb_result(path: Path) -> bool:
    """Return whether a JSON file is one of results by its name: not hidden, not of the model, not of predictions."""
    return not (path.name.startswith(".") or path.name == MODEL_FILE or path.stem.endswith("_predictions"))


def _read_mteb_file(path: Path, system: str, collection: str, percent: bool) -> ImportedValues:
    """Return the means in one file; empty, with the reason, when its task is none of MIRB's."""
    values, data = ImportedValues(), _json_object(path)
    task = str(data.get("task_name") or data.get("mteb_dataset_name") or path.stem)
    name = collection or MIRB_TASKS.get(task, "")
    if not name:
        values.left_out[f"task {task}, which is not MIRB's{suggest(task, MIRB_TASKS)}"] += 1
        return values
    system = system or _model_name(path)
    if not system:
        raise MirblabError(f"{path}: no folder above it names the model; give --system")
    scores = _test_scores(path, data)
    # MIRB's main score is nDCG@10 in every task.
    if task in MIRB_TASKS and "main_score" in scores and "ndcg_at_10" not in scores:
        scores["ndcg_at_10"] = scores["main_score"]
    for key, value in scores.items():
        if match := _KEY.fullmatch(key):
            where = f"{path}, key '{key}'"
            values.add(
                (system, name, f"{_MEASURES[match[1]]}@{match[2]}", "", read_number(value, where, percent)), where
            )
        elif key not in _OTHER_KEYS:
            values.left_out["scores that are no measure here"] += 1
    if not values.rows:
        raise MirblabError(f"{path}: no score such as 'ndcg_at_10' for the split {SPLIT}; found {', '.join(scores)}")
    return values


def _test_scores(path: Path, data: dict[str, Any]) -> dict[str, Any]:
    """Return the scores of the split test, from `scores[test][0]`, or `test` where version 1 began."""
    splits = data.get("scores", data)
    if not isinstance(splits, dict) or SPLIT not in splits:
        shown = ", ".join(map(str, splits)) if isinstance(splits, dict) else repr(splits)[:60]
        raise MirblabError(f"{path}: no key '{SPLIT}' under 'scores', nor at the top; found {shown or 'nothing'}")
    parts = splits[SPLIT] if isinstance(splits[SPLIT], list) else [splits[SPLIT]]
    if len(parts) != 1 or not isinstance(parts[0], dict):
        raise MirblabError(f"{path}: scores['{SPLIT}'] holds {len(parts)} subsets; expected one, a JSON object")
    return dict(parts[0])


def _json_object(path: Path) -> dict[str, Any]:
    data = text_files.read_json(path)
    if not isinstance(data, dict):
        raise MirblabError(f"{path}: expected a JSON object, found {type(data).__name__}")
    return data


def _model_name(path: Path) -> str:
    """Return the name of the model that a result file is of, or "" when nothing says it.

    >>> _model_name(Path("results/intfloat__e5-mistral-7b-instruct/07163b72af1488142a360786df853f237b1a3ca1/A.json"))
    'intfloat/e5-mistral-7b-instruct'
    """
    meta = path.parent / MODEL_FILE
    if meta.is_file() and (name := _json_object(meta).get("name")):
        return str(name)
    parents = [folder for folder in (path.parent.name, path.parent.parent.name) if "__" in folder]
    if not parents and _REVISION.fullmatch(path.parent.name):
        parents = [path.parent.parent.name]
    return parents[0].replace("__", "/", 1) if parents else ""


def read_record(path: Path) -> ImportRecord:
    """Return the record in a file; MirblabError with file and line, and what to do, for one that is damaged."""
    again = f"take the original in anew: mirblab import-results FILE --name {shlex.quote(path.parent.name)}"
    try:
        content = text_files.read_json(path)
    except MirblabError as error:
        raise MirblabError(f"{error}; {again}") from error
    wrong = _record_problem(content, path.parent.name)
    if wrong:
        raise MirblabError(f"{path} is no record of an import: {wrong}; {again}")
    return ImportRecord(**content)


def _record_problem(content: object, name: str) -> str:
    """Return what is wrong with the content of a record, or an empty string."""
    if not isinstance(content, dict):
        return f"expected a JSON object, found {type(content).__name__}"
    kinds = {"list[str]": list, "bool": bool, "int": int, "str": str}
    for item in fields(ImportRecord):
        if item.name not in content and item.default is MISSING:
            return f"it has no '{item.name}'"
        value, kind = content.get(item.name, item.default), kinds[str(item.type)]
        if type(value) is not kind or (kind is list and not (value and all(type(text) is str for text in value))):
            if item.name == "measures" and value == []:  # of a run
                continue
            return f"'{item.name}' must be {item.type}, found {json.dumps(value, default=str)[:60]}"
    more = sorted(content.keys() - {item.name for item in fields(ImportRecord)})
    if more:
        return f"it has the unknown key '{more[0]}'"
    if (
        content["name"] != name
        or content["kind"] not in ("run", "values")
        or Path(content["file"]).name != content["file"]
    ):
        return "its name, kind or file is another one"
    record = ImportRecord(**content)
    return "it was changed after the import" if record.seal and record.sealed() != record else ""


def read_stored_values(record: ImportRecord) -> pd.DataFrame:
    """Return the values of one import, as `values` does, without their origin; MirblabError when they were changed."""
    table = pd.read_csv(record.values_file(), dtype=str, keep_default_na=False)
    return table.assign(value=table.value.astype(float))


def _stored_values(record: ImportRecord) -> dict[tuple[str, ...], float]:
    rows = read_stored_values(record)[VALUE_COLUMNS].itertuples(index=False, name=None)
    return {row[:4]: row[4] for row in rows}


def find_earlier_import(record: ImportRecord, values: ImportedValues | None) -> ImportRecord | None:
    """Return the earlier import of the same, or None; MirblabError when the name is that of another one."""
    other = next((other for other in import_records() if other.name.casefold() == record.name.casefold()), None)
    if other is None:
        return None
    differs = [name for name in _COMPARED_FIELDS if getattr(other, name) != getattr(record, name)]
    if (
        not differs
        and values is not None
        and _stored_values(other) != {key: value for key, (value, _) in values.rows.items()}
    ):
        differs = ["values"]  # the same file, read otherwise: as percent
    if differs:
        raise MirblabError(
            f"'{record.name}' was imported on {other.date} from {other.file} and differs in {', '.join(differs)}; "
            f"give another --name, or remove {other.folder} first"
        )
    return other


def check_not_imported(record: ImportRecord, values: ImportedValues | None) -> None:
    """Raise MirblabError when a run or a value of the same system was imported under another name."""
    for other in import_records():
        both = set(record.systems) & set(other.systems) and set(record.collections) & set(other.collections)
        if not both or other.kind != record.kind:
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
        earlier = read_record(record.folder / RECORD_FILE)
        (earlier.run_file if earlier.kind == "run" else earlier.values_file)()
    except (MirblabError, FileNotFoundError) as error:
        stored_files.set_aside(record.folder, str(error), "it is taken in anew")


def write_import(source: Path, record: ImportRecord, values: ImportedValues | None) -> ImportRecord:
    """Write the folder of an import: the given files, the values, the record, which is returned with its checksums.

    It appears whole or not at all. MirblabError when the given files change meanwhile.
    """
    beside = paths.unfinished_name(record.folder)
    with paths.writing(record.folder):
        try:
            for path in source_files(source):
                target = beside / SOURCE_FOLDER / record.file / path.relative_to(source)  # "." for a file
                paths.make_folder(target.parent)
                with paths.writing(target, path.stat().st_size):
                    shutil.copyfile(path, target)
            if source_sha256(beside / SOURCE_FOLDER / record.file) != record.sha256:
                raise MirblabError(f"{source} changed while it was read; import it again when it is whole")
            if values is not None:
                record = replace(record, values_sha256=_write_values(beside / VALUES_FILE, values))
            record = record.sealed()
            with paths.open_to_write(beside / RECORD_FILE, "w") as file:
                file.write(json.dumps(asdict(record), indent=2, ensure_ascii=False) + "\n")
            paths.flush_tree(beside)
            beside.rename(record.folder)
            paths.flush_folder(imports_folder())
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return record


def _write_values(path: Path, values: ImportedValues) -> str:
    """Write values as CSV and return the sha256 of the file."""
    with paths.open_to_write(path, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([VALUE_COLUMNS, *((*key, repr(value)) for key, (value, _) in values.rows.items())])
    return file_sha256(path)


def source_sha256(source: Path) -> str:
    """Return the SHA-256 of a file, or one over the names and contents of the files that are read from a folder."""
    if source.is_file():
        return file_sha256(source)
    lines = [f"{path.relative_to(source).as_posix()}\t{source_sha256(path)}\n" for path in source_files(source)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def source_files(source: Path) -> list[Path]:
    """Return the files of an import: the given file, or the JSON files of a folder of results that are read."""
    if source.is_file():
        return [source]
    return [path for path in sorted(source.rglob("*.json")) if path.name == MODEL_FILE or is_mteb_result(path)]


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
