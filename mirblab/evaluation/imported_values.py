"""Values that others published, read from a CSV or from results of MTEB."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mirblab.core import text_files
from mirblab.core.errors import MirblabError, suggest
from mirblab.core.wording import counted
from mirblab.evaluation import measures

ValueKey = tuple[str, str, str, str]  # system, collection, measure, query_id ("": a mean over queries)
CSV_COLUMNS = ("system", "collection", "measure", "value", "query_id")
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
_MEASURES = {"ndcg": "nDCG", "map": "AP", "recall": "R", "precision": "P", "mrr": "RR", "hit_rate": "Success"}
_KEY = re.compile(rf"({'|'.join(_MEASURES)})_at_([1-9]\d*)")
_OTHER_KEYS = {"hf_subset", "languages", "main_score", "evaluation_time"}
_REVISION = re.compile(r"[0-9a-f]{7,40}|no_revision_available|external|main")


@dataclass
class ImportedValues:
    """Values that were read, each with its file and line, and the number of left-out ones by reason."""

    rows: dict[ValueKey, tuple[float, str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, key: ValueKey, value: float, where: str) -> None:
        """Add a value; MirblabError for one out of range, and for a second value of the same key, naming both lines."""
        system, collection, measure, query_id = key
        shown = f"{measure} of {system} on {collection}" + (f", query {query_id}" if query_id else "")
        if key in self.rows:
            raise MirblabError(f"{where}: {shown} is already given in {self.rows[key][1]}; keep one of them")
        if not math.isfinite(value):
            raise MirblabError(f"{where}: {shown} is {value}; expected a number")
        if not 0 <= value <= 1 and not measures.is_rank(measure):
            raise MirblabError(f"{where}: {shown} is {value:g}, not from 0 to 1; give --percent if it is in percent")
        self.rows[key] = (value, where)


def read_csv_values(path: Path, system: str = "", collection: str = "", percent: bool = False) -> ImportedValues:
    """Return the values in a CSV (`.tsv`: tabs) of CSV_COLUMNS; *system* and *collection* replace missing columns."""
    values, given = ImportedValues(), {"system": system, "collection": collection}
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
            header = _checked_header([name.strip() for name in next(reader, [])], given, path)
            for cells in filter(None, reader):  # blank lines have no cells
                where = f"{path}, line {reader.line_num}"
                if len(cells) != len(header):
                    raise MirblabError(f"{where}: {len(cells)} cells, but {len(header)} columns: {', '.join(header)}")
                row = given | dict(zip(header, map(str.strip, cells), strict=True))
                values.add(*_value_row(row, where, percent), where)
    except (UnicodeDecodeError, csv.Error) as error:
        raise MirblabError(f"{path} cannot be read as CSV in UTF-8: {error}; save it in this format") from error
    if not values.rows:
        raise MirblabError(f"{path} has a header and no values; add a row for each value")
    return values


def _checked_header(header: list[str], given: Mapping[str, str], path: Path) -> list[str]:
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


def _value_row(cells: Mapping[str, str], where: str, percent: bool) -> tuple[ValueKey, float]:
    blank = [name for name in CSV_COLUMNS[:4] if not cells[name]]
    if blank:
        raise MirblabError(f"{where}: '{blank[0]}' is empty")
    try:
        measure = str(measures.parse_measure(cells["measure"]))
    except MirblabError as error:
        raise MirblabError(f"{where}: {error}") from None
    value = _read_number(cells["value"], f"{where}, column 'value'", percent and not measures.is_rank(measure))
    return (cells["system"], cells["collection"], measure, cells.get("query_id", "")), value


def _read_number(value: Any, where: str, percent: bool) -> float:
    try:
        if isinstance(value, bool) or "_" in str(value):  # Python would take 0_1 for 1
            raise ValueError
        return float(value) / (100 if percent else 1)
    except (TypeError, ValueError, OverflowError):
        raise MirblabError(f"{where}: expected a number, found {value!r:.60}") from None


def read_mteb_values(path: Path, system: str = "", collection: str = "", percent: bool = False) -> ImportedValues:
    """Return the means (split test) in a result file of MTEB, or in those of MIRB's tasks below a folder."""
    values = ImportedValues()
    if path.is_file():
        _add_mteb_file(values, path, system, collection, percent)
        if not values.rows:
            raise MirblabError(f"{path}: {', '.join(values.left_out)}; give --collection if it is one of ours")
        return values
    if collection:
        raise MirblabError(f"{path} is a folder of several tasks, so --collection cannot name them; leave it out")
    files = [file for file in sorted(path.rglob("*.json")) if is_mteb_result(file)]
    models = {_model_name(file) for file in files}
    if system and len(models) > 1:
        raise MirblabError(f"{path} has results of {len(models)} models, so --system cannot name them; leave it out")
    for file in files:
        _add_mteb_file(values, file, system, "", percent)
    if not values.rows:
        within = counted(len(files), "JSON file")
        raise MirblabError(f"{path} has no result of a task of MIRB in {within}; its tasks are {', '.join(MIRB_TASKS)}")
    return values


def is_mteb_result(path: Path) -> bool:
    """Return whether a JSON file has the name of a result: it is not hidden, a model's description or predictions."""
    return not (path.name.startswith(".") or path.name == MODEL_FILE or path.stem.endswith("_predictions"))


def _add_mteb_file(values: ImportedValues, path: Path, system: str, collection: str, percent: bool) -> None:
    data = _json_object(path)
    task = str(data.get("task_name") or data.get("mteb_dataset_name") or path.stem)
    name = collection or MIRB_TASKS.get(task, "")
    if not name:
        values.left_out[f"task {task}, which is not MIRB's{suggest(task, MIRB_TASKS)}"] += 1
        return
    system = system or _model_name(path)
    if not system:
        raise MirblabError(f"{path}: no folder above it names the model; give --system")
    scores = _test_scores(path, data)
    # MIRB's main score is nDCG@10 in every task.
    if task in MIRB_TASKS and "main_score" in scores and "ndcg_at_10" not in scores:
        scores["ndcg_at_10"] = scores["main_score"]
    known = {key: match for key in scores if (match := _KEY.fullmatch(key))}
    if not known:
        raise MirblabError(f"{path}: no score such as 'ndcg_at_10' for the split {SPLIT}; found {', '.join(scores)}")
    for key, match in known.items():
        where = f"{path}, key '{key}'"
        measure = f"{_MEASURES[match[1]]}@{match[2]}"
        values.add((system, name, measure, ""), _read_number(scores[key], where, percent), where)
    n_others = len(scores.keys() - known.keys() - _OTHER_KEYS)
    if n_others:
        values.left_out["scores by measures that are not supported"] += n_others


def _test_scores(path: Path, data: dict[str, Any]) -> dict[str, Any]:
    """Return the scores of the split test: `scores[test][0]`, or `test` in the layout of version 1."""
    splits = data.get("scores", data)
    if not isinstance(splits, dict) or SPLIT not in splits:
        shown = ", ".join(map(str, splits)) if isinstance(splits, dict) else repr(splits)[:60]
        raise MirblabError(f"{path}: no key '{SPLIT}' under 'scores', nor at the top; found {shown or 'nothing'}")
    parts = splits[SPLIT] if isinstance(splits[SPLIT], list) else [splits[SPLIT]]
    if len(parts) != 1 or not isinstance(parts[0], dict):
        raise MirblabError(
            f"{path}: scores['{SPLIT}'] holds {counted(len(parts), 'subset')}; expected one, a JSON object"
        )
    return dict(parts[0])


def _json_object(path: Path) -> dict[str, Any]:
    data = text_files.read_json(path)
    if not isinstance(data, dict):
        raise MirblabError(f"{path}: expected a JSON object, found {type(data).__name__}")
    return data


def _model_name(path: Path) -> str:
    """Return the model of a result file by `model_meta.json` or the folders' names, "" when neither has it."""
    meta = path.parent / MODEL_FILE
    if meta.is_file() and (name := _json_object(meta).get("name")):
        return str(name)
    parents = [folder for folder in (path.parent.name, path.parent.parent.name) if "__" in folder]
    if not parents and _REVISION.fullmatch(path.parent.name):
        parents = [path.parent.parent.name]
    return parents[0].replace("__", "/", 1) if parents else ""
