"""mteb_json: result files of MTEB, of versions 1 and 2, read as means of our measures on our collections."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mirblab import json_text
from mirblab.errors import MirblabError, suggest
from mirblab.foreign import Found, number

# MIRB's tasks in its fork of MTEB, and our names of their collections.
TASKS = {
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
_MEASURES = {"ndcg": "nDCG", "map": "AP", "recall": "R", "precision": "P", "mrr": "RR", "hit_rate": "Success"}
_KEY = re.compile(rf"({'|'.join(_MEASURES)})_at_([1-9]\d*)")
_NO_SCORES = {"hf_subset", "languages", "main_score", "evaluation_time"}
_REVISION = re.compile(r"[0-9a-f]{7,40}|no_revision_available|external|main")
SPLIT, META = "test", "model_meta.json"


def read(path: Path, system: str = "", collection: str = "", percent: bool = False) -> Found:
    """Return the means in a result file of MTEB, or in all those below a folder (`<model>/<revision>/<Task>.json`).

    The system is the model that the folders or `model_meta.json` name, unless *system* does. Only the split test is
    read. In a folder, tasks that are not MIRB's are left out and counted; a single file of such a task needs a
    *collection*. MirblabError names the file and the key.
    """
    if path.is_file():
        found = _file(path, system, collection, percent)
        if not found.rows:
            raise MirblabError(f"{path}: {', '.join(found.left_out)}; give --collection if it is one of ours")
        return found
    if collection:
        raise MirblabError(f"{path} is a folder of several tasks, so --collection cannot name them; leave it out")
    found, files = Found(), [file for file in sorted(path.rglob("*.json")) if is_result(file)]
    models = {_model(file) for file in files}
    if system and len(models) > 1:
        raise MirblabError(f"{path} has results of {len(models)} models, so --system cannot name them; leave it out")
    for file in files:
        found.merge(_file(file, system, "", percent))
    if not found.rows:
        raise MirblabError(f"{path} has no result of a task of MIRB in {len(files):,} JSON files; its tasks are "
                           f"{', '.join(TASKS)}")  # fmt: skip
    return found


def is_result(path: Path) -> bool:
    """Return whether a JSON file is one of results by its name: not hidden, not of the model, not of predictions."""
    return not (path.name.startswith(".") or path.name == META or path.stem.endswith("_predictions"))


def _file(path: Path, system: str, collection: str, percent: bool) -> Found:
    """Return the means in one file; empty, with the reason, when its task is none of MIRB's."""
    found, data = Found(), _json(path)
    task = str(data.get("task_name") or data.get("mteb_dataset_name") or path.stem)
    name = collection or TASKS.get(task, "")
    if not name:
        found.left_out[f"task {task}, which is not MIRB's{suggest(task, TASKS)}"] += 1
        return found
    system = system or _model(path)
    if not system:
        raise MirblabError(f"{path}: no folder above it names the model; give --system")
    scores = _scores(path, data)
    # MIRB's main score is nDCG@10 in every task.
    if task in TASKS and "main_score" in scores and "ndcg_at_10" not in scores:
        scores["ndcg_at_10"] = scores["main_score"]
    for key, value in scores.items():
        if match := _KEY.fullmatch(key):
            where = f"{path}, key '{key}'"
            found.add((system, name, f"{_MEASURES[match[1]]}@{match[2]}", "", number(value, where, percent)), where)
        elif key not in _NO_SCORES:
            found.left_out["scores that are no measure here"] += 1
    if not found.rows:
        raise MirblabError(f"{path}: no score such as 'ndcg_at_10' for the split {SPLIT}; found {', '.join(scores)}")
    return found


def _scores(path: Path, data: dict[str, Any]) -> dict[str, Any]:
    """Return the scores of the split test, from `scores[test][0]`, or `test` where version 1 began."""
    splits = data.get("scores", data)
    if not isinstance(splits, dict) or SPLIT not in splits:
        shown = ", ".join(map(str, splits)) if isinstance(splits, dict) else repr(splits)[:60]
        raise MirblabError(f"{path}: no key '{SPLIT}' under 'scores', nor at the top; found {shown or 'nothing'}")
    parts = splits[SPLIT] if isinstance(splits[SPLIT], list) else [splits[SPLIT]]
    if len(parts) != 1 or not isinstance(parts[0], dict):
        raise MirblabError(f"{path}: scores['{SPLIT}'] holds {len(parts)} subsets; expected one, a JSON object")
    return dict(parts[0])


def _json(path: Path) -> dict[str, Any]:
    data = json_text.read(path)
    if not isinstance(data, dict):
        raise MirblabError(f"{path}: expected a JSON object, found {type(data).__name__}")
    return data


def _model(path: Path) -> str:
    """Return the name of the model that a result file is of, or "" when nothing says it.

    >>> _model(Path("results/intfloat__e5-mistral-7b-instruct/07163b72af1488142a360786df853f237b1a3ca1/A.json"))
    'intfloat/e5-mistral-7b-instruct'
    """
    meta = path.parent / META
    if meta.is_file() and (name := _json(meta).get("name")):
        return str(name)
    parents = [folder for folder in (path.parent.name, path.parent.parent.name) if "__" in folder]
    if not parents and _REVISION.fullmatch(path.parent.name):
        parents = [path.parent.parent.name]
    return parents[0].replace("__", "/", 1) if parents else ""
