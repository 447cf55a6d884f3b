"""verification: whether this installation computes the values and tables that stand beside a suite."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mirblab.app import hand_runs, inventory, suite_files
from mirblab.app.batch import run_planning, stamps
from mirblab.app.suite_files import Job
from mirblab.core import atomic_files, paths, registry, terminal
from mirblab.core.errors import MirblabError, check_known
from mirblab.data import beir
from mirblab.data.collection import Collection
from mirblab.display import result_tables
from mirblab.encoders import local
from mirblab.evaluation import measures
from mirblab.retrieval.systems import system
from mirblab.sources import catalogue, mini

OK, OKISH, FAIL, SKIPPED = "OK", "OKish", "FAIL", "skipped"
TOLERANCE = 0.005  # of a mean, for systems with a model, whose float32 sums differ between processors
# Of a mean, for systems with a model that is trained here: each processor trains other weights. Three seeds of
# minilm-cross differ by up to .026 on nine collections (docs/findings.md).
TRAINED_TOLERANCE = 0.03
_UNIT = 1000  # values are stored in thousandths, two digits of base 36 each
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_CELL = ["collection", "system", "measure"]
_COLUMNS = [*_CELL, "fingerprint", "queries", "mean", "values"]
_SEED = 0  # of the sample of queries where a collection has more than were asked


def expected_path(suite: str) -> Path:
    """Return the file of a suite's expected values."""
    return suite_files.suites_folder() / "expected" / f"{suite}.csv"


def read_expected(suite: str) -> pd.DataFrame:
    """Return a suite's expected values, a row for each collection, system and measure; MirblabError if it has none.

    `values` has a value for each query in thousandths, in the order of the sorted ids. `fingerprint` is the
    collection's, and after a blank the `training_digest` of a system with models that are trained here. Where there are
    fewer queries than the collection has, they are `collection.sample(queries, 0)`.

    In a row of a table that a notebook leaves, the collection is the notebook, the system the table and the measure a
    column; `queries` counts the table's rows, `values` has the column's numbers to three decimals, with blanks between
    them, and `fingerprint` is that of the collections from which the notebook made the table.
    """
    path = expected_path(suite)
    if not path.is_file():
        check_known("suite with expected values", suite, [found.stem for found in path.parent.glob("*.csv")])
    return pd.read_csv(path, dtype=dict.fromkeys([*_CELL, "fingerprint", "values"], str), keep_default_na=False)


def verify(suite: str, chosen_systems: Sequence[str] = (), chosen_collections: Sequence[str] = ()) -> pd.DataFrame:
    """Return each cell's expected and computed mean, how many queries differ, its state, and what is to be said of it.

    A cell is OK when each query's value is the expected one to three decimals; OKish when it is not, but the system has
    a model and the mean differs by at most `tolerance`; otherwise FAIL. The note names the first query that differs.
    What cannot be computed here is skipped, and the note says why. Runs that are stored are read. A column of a
    notebook's table is a cell, too, whose rows are compared like queries; the tables of `table_jobs` are read as the
    last batch left them. Skipped are, at the end, those of the collections that are here and of the suite's systems of
    which no value is expected.
    """
    expected = read_expected(suite)
    unknown, chosen = _without_value(suite, expected), (chosen_collections, chosen_systems)
    _check_chosen(suite, pd.concat([part[_CELL[:2]] for part in (expected, unknown)]), chosen)
    for kind, names in zip(_CELL[:2], chosen, strict=True):
        expected = expected[expected[kind].isin(names)] if names else expected
        unknown = unknown[unknown[kind].isin(names)] if names else unknown
    rows: list[dict[Any, Any]] = []
    notebooks = _expected_tables(suite)
    with terminal.progress(len(expected), f"verify {suite}", "cells") as bar:
        for name, part in expected.groupby("collection", sort=False):
            of_notebook = name in notebooks
            for row in _verify_notebook(suite, str(name), part) if of_notebook else _verify_collection(str(name), part):
                rows.append(row)
                bar.update()
    rows += unknown.to_dict("records")
    return pd.DataFrame(rows, columns=[*_CELL, "expected", "mean", "queries", "differ", "state", "note"])


def check_names(suite: str, chosen_systems: Sequence[str], chosen_collections: Sequence[str]) -> None:
    """Raise MirblabError for a collection, or notebook, or a system, or table, of which the suite verifies nothing."""
    expected = read_expected(suite) if expected_path(suite).is_file() else pd.DataFrame(columns=_COLUMNS)
    tables = [(name, table) for name, left in _expected_tables(suite).items() for table in left]
    parts = [expected, _without_value(suite, expected), pd.DataFrame(tables, columns=_CELL[:2])]
    _check_chosen(suite, pd.concat([part[_CELL[:2]] for part in parts]), (chosen_collections, chosen_systems))


def _check_chosen(suite: str, known: pd.DataFrame, chosen: Iterable[Sequence[str]]) -> None:
    """Raise MirblabError for a chosen collection, or a chosen system, that is not among the *known* cells."""
    for kind, names in zip(_CELL[:2], chosen, strict=True):
        check_known(f"{kind} of the suite {suite}", list(names), known[kind].unique())
        known = known[known[kind].isin(names)] if names else known


def _without_value(suite: str, expected: pd.DataFrame) -> pd.DataFrame:
    """Return the cells without an expected value: collection, system, state and note.

    They are of the collections that are here and of the systems that the suite's `verify` and its notebooks name, none
    in a suite that verifies tables only.
    """
    systems = [name for entry in _system_entries(suite) for name in entry["systems"]]
    systems = [*dict.fromkeys([*systems, *suite_files.systems_named_in(suite)])] if systems else []
    known, measured = set(zip(expected.collection, expected.system, strict=True)), set(expected.collection)
    rows = []
    for name, system_name in product(_collection_names(suite), systems):
        if (name, system_name) not in known:
            of = system_name if name in measured else "any system"
            rows.append((name, system_name, SKIPPED, f"there is no expected value of {of}"))
    return pd.DataFrame(rows, columns=["collection", "system", "state", "note"])


def _verify_collection(name: str, expected: pd.DataFrame) -> Iterator[dict[str, Any]]:
    collection, why = _load(name, expected)
    for row in expected.to_dict("records"):
        cell = {key: row[key] for key in (*_CELL, "queries")} | {"expected": row["mean"]}
        state = inventory.state("system", row["system"])
        if collection is None:
            yield cell | {"state": FAIL if name in mini.COLLECTIONS else SKIPPED, "note": why}
        elif state != inventory.READY:
            yield cell | {"state": SKIPPED, "note": f"{row['system']} needs {state}"}
        elif training_digest(row["system"]) != row["fingerprint"].partition(" ")[2]:
            note = f"{row['system']} was trained by another recipe, or on other data, than when its values were stored"
            yield cell | {"state": SKIPPED, "note": note}
        else:
            values = query_values(row["system"], collection, row["measure"])
            compared = compare_values(values, decode_values(row["values"]), tolerance(row["system"]))
            yield cell | {"mean": values.mean()} | compared


def table_jobs(suite: str, notebooks: Sequence[str] = ()) -> list[Job]:
    """Return the notebooks of a suite whose tables are expected, none where `verify` names none; or only *notebooks*.

    A batch has to run those of them that are not fresh before `verify` or `update` reads their tables.
    """
    wanted = [name for name in _expected_tables(suite) if name in (notebooks or [name])]
    return suite_files.read_suite(suite, only=wanted) if wanted else []


def _expected_tables(suite: str) -> dict[str, list[str]]:
    """Return the tables by notebook that a suite's `verify` names."""
    entries = suite_files.read_suite_file(suite).get("verify", [])
    return {entry["notebook"]: entry["tables"] for entry in entries if "notebook" in entry}


def _verify_notebook(suite: str, name: str, expected: pd.DataFrame) -> Iterator[dict[str, Any]]:
    jobs = table_jobs(suite, [name])
    reason = stamps.reason_to_run(jobs[0]) if jobs else "what it needs is not here"
    for row in expected.to_dict("records"):
        cell = {key: row[key] for key in (*_CELL, "queries")} | {"expected": row["mean"]}
        if reason:
            is_wrong = reason == stamps.FAILED
            yield cell | {"state": FAIL if is_wrong else SKIPPED, "note": f"{reason}; mirblab batch {suite} runs it"}
            continue
        columns, fingerprint = read_table(jobs[0], row["system"])
        if row["measure"] not in columns:
            yield cell | {"state": FAIL, "note": "the notebook has left no such table, or none with this column"}
        elif fingerprint != row["fingerprint"]:
            yield cell | {"state": SKIPPED, "note": "it was made from other collections than the expected table"}
        else:
            values, wanted = columns[row["measure"]], np.array(row["values"].split(" "), dtype=float)
            compared = compare_values(values, wanted, max(map(tolerance, jobs[0].systems), default=0.0))
            yield cell | {"mean": values.mean()} | compared


def read_table(job: Job, table: str) -> tuple[pd.DataFrame, str]:
    """Return the columns of numbers of a table that a notebook left, and the fingerprint of its collections.

    Rows are named by their texts. Without the table there is no column, and the fingerprint is "".
    """
    path = job.folder / f"{table}.csv"
    if not path.is_file():
        return pd.DataFrame(), ""
    frame = pd.read_csv(path)
    numbers = frame.select_dtypes(["number", "bool"]).astype(float).dropna(axis=1, how="all")
    texts = frame.select_dtypes(exclude=["number", "bool"]).fillna("").astype(str)
    numbers.index = pd.Index([" ".join(filter(None, row)) for row in texts.itertuples(index=False)], dtype=object)
    made_from = json.loads(path.with_suffix(".json").read_text("utf-8"))["provenance"]["collections"]
    named = json.dumps({name: each["fingerprint"] for name, each in made_from.items()}, sort_keys=True)
    return numbers, hashlib.blake2b(named.encode(), digest_size=8).hexdigest()


def _load(name: str, expected: pd.DataFrame) -> tuple[Collection | None, str]:
    """Return the collection, with as many queries as were expected, or None and the reason."""
    if (state := inventory.state("collection", name)) not in ("bundled", inventory.READY):
        return None, f"needs {state}" if state else "it is not here; mirblab add FOLDER adds it"
    collection = sample(catalogue.load(name), int(expected.queries.iloc[0]))
    wanted = expected.fingerprint.iloc[0].partition(" ")[0]
    if collection.fingerprint[:16] == wanted:
        return collection, ""
    if _without_card(collection).fingerprint[:16] != wanted:
        return None, f"this {name} is another version than that whose values were stored"
    rules = ", ".join(collection.candidates.names)
    added = [f"candidates ({rules})"] * bool(rules) + ["an instruction"] * bool(collection.card.instruction)
    return None, (
        f"values are expected of {name} as it is published, and its card here adds {' and '.join(added)}; "
        "in another home (MIRBLAB_HOME) verify what mirblab add FOLDER --candidates all adds, without --instruction"
    )


def _without_card(collection: Collection) -> Collection:
    """Return the collection without what `mirblab add` puts into a card and a fingerprint depends on."""
    card, candidates = replace(collection.card, instruction=""), replace(collection.candidates, rules=())
    return replace(collection, card=card, candidates=candidates)


def sample(collection: Collection, n: int) -> Collection:
    """Return the collection with at most *n* queries, 0 for all."""
    return collection.sample(n, _SEED) if 0 < n < len(collection.query_ids) else collection


def query_values(name: str, collection: Collection, measure: str) -> pd.Series:
    """Return a system's values by query, in the order of the sorted ids."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as that a collection has no formulas: its values say it
        values = measures.evaluate(system(name).search(collection), collection, measure)
    return values.set_index(values.query_id.astype(str)).value.sort_index()


def compare_values(values: pd.Series, wanted: np.ndarray, tolerance: float) -> dict[str, Any]:
    """Return how many *values* differ from the *wanted* ones, the state, and the note; NaN equals NaN.

    A difference of the mean of at most *tolerance* is OKish, where it is above 0.
    """
    if len(wanted) != len(values):
        return {"differ": len(values), "state": FAIL, "note": f"{len(values)} values, expected {len(wanted)}"}
    differs = ~np.isclose(values.to_numpy(float), wanted, rtol=0, atol=0.5 / _UNIT + 1e-9, equal_nan=True)
    if not differs.any():
        return {"differ": 0, "state": OK, "note": ""}
    first, count = int(differs.argmax()), int(differs.sum())
    is_near = abs(values.mean() - pd.Series(wanted).mean()) <= tolerance and tolerance > 0
    note = f"first {values.index[first]}: {values.iloc[first]:.3f}, expected {wanted[first]:.3f}"
    return {"differ": count, "state": OKISH if is_near else FAIL, "note": note}


def tolerance(name: str) -> float:
    """Return by how much a system's mean may differ: 0 without a model, more if a model of it is trained here."""
    if not _models_in(name):
        return 0.0
    return TRAINED_TOLERANCE if _trained_in(name) else TOLERANCE


def training_digest(name: str) -> str:
    """Return a digest of the recipes and data from which the models of a system were trained here, "" if none was.

    It is the same on each machine: what a recipe stores of the machine (`precision`) and of the weights of a base that
    was trained here is left out. Of a training from collections it has the collections as they are here now, not the
    documents that the first stage found there, which change with the code.
    """
    recipes = [_portable_recipe(model) for model in _trained_in(name)]
    text = json.dumps(recipes, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest() if recipes else ""


def _portable_recipe(model: str) -> dict[str, Any]:
    folder = local.find_trained(model)
    recipe = json.loads((folder / local.RECIPE).read_text("utf-8")) if folder else {}
    recipe.pop("precision", None)
    if recipe.get("collections"):
        recipe["fingerprint"] = _training_fingerprints(recipe)
    if local.find_trained(recipe.get("base", "")):
        recipe |= {"base_revision": "", "base": _portable_recipe(recipe["base"])}
    return recipe


def _training_fingerprints(recipe: Mapping[str, Any]) -> dict[str, str]:
    """Return the fingerprints of the splits that a recipe learns from, and of the collections that it keeps apart."""
    from mirblab.train.lists import split_name

    found = dict[str, str]()
    for given in (*recipe["collections"], *recipe.get("apart", ())):
        name, split = split_name(given)
        try:
            folder = catalogue.collection_folder(name)
            has_train = given in recipe["collections"] and "train" in beir.split_names(folder)
            found[given] = _split_fingerprint(name, split or ("train" if has_train else "test"), str(folder))
        except MirblabError:  # what is not here cannot be compared
            found[given] = ""
    return found


@cache
def _split_fingerprint(name: str, split: str, folder: str) -> str:
    """Return the fingerprint of a split; *folder* keeps the collections of several homes apart."""
    return catalogue.load(name, split).fingerprint


def _trained_in(name: str) -> list[str]:
    """Return the models of a system that the registry says are trained here, in alphabetical order."""
    rerankers, encoders = registry.read_registry("rerankers"), registry.read_registry("encoders")
    found = {rerankers.get(model, {}).get("encoder", model) for model in _models_in(name)}
    return sorted(one for one in found if (rerankers | encoders).get(one, {}).get("trained"))


def _models_in(name: str) -> list[str]:
    """Return the encoders and rerankers of a system's parts."""
    parts = run_planning.with_parts(system(name))
    return [part.settings[key] for part in parts for key in ("encoder", "reranker") if key in part.settings]


def encode_values(values: pd.Series) -> str:
    """Return values from 0 to 1 in thousandths, two digits of base 36 each.

    >>> encode_values(pd.Series([0.0, 0.5, 1.0])), decode_values("00dwrs").tolist()
    ('00dwrs', [0.0, 0.5, 1.0])
    """
    thousandths = np.rint(values.to_numpy() * _UNIT).astype(int)
    return "".join(_DIGITS[number // 36] + _DIGITS[number % 36] for number in thousandths)


def decode_values(text: str) -> np.ndarray:
    """Return the values that `encode_values` wrote, to three decimals."""
    return np.array([int(text[place : place + 2], 36) for place in range(0, len(text), 2)]) / _UNIT


def update(suite: str, chosen_systems: Sequence[str] = (), chosen_collections: Sequence[str] = ()) -> Path:
    """Compute the values that the suite's `verify` asks for, store them as the expected ones, and return their file.

    Other collections and systems than the chosen ones keep their rows. MirblabError outside a checkout.
    """
    if paths.checkout_root() is None:
        raise MirblabError("expected values are stored in a checkout only, and this is an installation")
    check_names(suite, chosen_systems, chosen_collections)
    path, rows = expected_path(suite), []
    cells = [(c, s, measure, n) for c, s, measure, n in _wanted_cells(suite)
             if c in (chosen_collections or [c]) and s in (chosen_systems or [s])]  # fmt: skip
    with terminal.progress(len(cells), f"compute {suite}", "cells") as bar:
        for name, system_name, measure, n in cells:
            collection = sample(catalogue.load(name), n)
            values = query_values(system_name, collection, measure)
            made_from = f"{collection.fingerprint[:16]} {training_digest(system_name)}".rstrip()
            row = (name, system_name, measure, made_from, len(values), round(values.mean(), 6))
            rows.append((*row, encode_values(values)))
            bar.update()
    of_tables = [row for job in table_jobs(suite, chosen_collections)
                 for row in _table_rows(job, _expected_tables(suite)[job.source.stem])
                 if row[1] in (chosen_systems or [row[1]])]  # fmt: skip
    made = pd.DataFrame([*rows, *of_tables], columns=_COLUMNS)
    kept = read_expected(suite) if path.is_file() else made[:0]
    kept = kept[~kept.set_index(_CELL[:2]).index.isin([row[:2] for row in of_tables])]
    whole = pd.concat([kept, made]).drop_duplicates(_CELL, keep="last").sort_values(_CELL)
    text = io.StringIO()
    whole.to_csv(text, index=False, lineterminator="\n")
    atomic_files.make_folder(path.parent)
    atomic_files.write_text(path, text.getvalue())
    return path


def _table_rows(job: Job, tables: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the expected values that a notebook's tables have; MirblabError where they are not fresh."""
    if reason := stamps.reason_to_run(job):
        raise MirblabError(f"{job.name} has no tables to store: {reason}; run: mirblab batch {job.suite}")
    for table in tables:
        columns, fingerprint = read_table(job, table)
        if columns.empty:
            raise MirblabError(
                f"{job.name} has left no table {table} with numbers; correct `tables` in {job.suite}.toml"
            )
        for name, values in columns.items():
            texts = [f"{value:.3f}".rstrip("0").rstrip(".") for value in values]
            yield job.name, table, str(name), fingerprint, len(values), round(values.mean(), 6), " ".join(texts)


def _wanted_cells(suite: str) -> Iterator[tuple[str, str, str, int]]:
    """Yield collection, system, measure and number of queries of each cell that a suite's `verify` asks for."""
    for entry in _system_entries(suite):
        for name in suite_files.matching(_collection_names(suite), entry.get("match", ["*"])):
            for system_name in entry["systems"]:
                if inventory.state("system", system_name) == inventory.READY:
                    for measure in entry["measures"]:
                        yield name, system_name, measure, entry.get("queries", 0)


def _system_entries(suite: str) -> list[dict[str, Any]]:
    """Return the entries of a suite's `verify` that name systems."""
    return [entry for entry in suite_files.read_suite_file(suite).get("verify", []) if "systems" in entry]


def _collection_names(suite: str) -> list[str]:
    """Return the collections of a suite's `verify` that are here."""
    return list(mini.COLLECTIONS) if suite == "mini" else catalogue.built_names()


def write_report(suite: str, cells: pd.DataFrame) -> Path:
    """Write the cells as Markdown, CSV and TeX, with commit, versions and machine in JSON; return the Markdown file."""
    folder, counts = paths.figures() / "_verified", cells.state.value_counts()
    provenance: dict[str, Any] = {
        "suite": suite,
        "commit": hand_runs.current_commit(),
        "versions": hand_runs.library_versions(),
        "machine": {"system": platform.platform(), "processor": _processor(), "cores": os.cpu_count()},
    }
    told = ", ".join(f"{counts.get(state, 0)} {state}" for state in (OK, OKISH, FAIL, SKIPPED))
    notes = [
        "OK: each value, of a query or of a row of a notebook's table, is the expected one to three decimals. "
        f"OKish: it is not, but a system has a model and the mean differs by at most {TOLERANCE}, or "
        f"{TRAINED_TOLERANCE} where the model was trained here.",
        f"Commit {provenance['commit'] or 'unknown'}; {provenance['machine']}.",
        ", ".join(f"{name} {version}" for name, version in provenance["versions"].items()) + ".",
    ]
    shown = cells.set_index("collection")
    table = result_tables.table(shown, f"mirblab verify {suite}: {told}.", notes=notes, digits=4)
    return next(path for path in table.save(folder, suite, provenance) if path.suffix == ".md")


def _processor() -> str:
    """Return the processor's name where the system says it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
