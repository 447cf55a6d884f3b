"""suites: suites of notebooks, and the folder of a notebook's output."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab.app import hand_runs
from mirblab.core import paths
from mirblab.core.errors import MirblabError, unknown
from mirblab.core.registry import read_toml
from mirblab.data.collection import Collection
from mirblab.display import figures, result_tables
from mirblab.display.figures import figure_of
from mirblab.evaluation import imported, measures
from mirblab.retrieval import systems
from mirblab.retrieval.systems import System
from mirblab.sources import catalogue

EVERY = "*"


@dataclass(frozen=True)
class Job:
    """One notebook with its parameters, as a suite asks for it."""

    suite: str
    source: Path
    parameters: dict[str, Any]

    @property
    def part(self) -> str:
        """Return the collection that this run of the notebook is about, where a suite runs it for several."""
        return self.parameters.get("part", "")

    @property
    def name(self) -> str:
        """Return the notebook's name, with the part behind a dot."""
        return f"{self.source.stem}.{self.part}" if self.part else self.source.stem

    @property
    def collections(self) -> list[str]:
        """Return the collections that the parameters name."""
        return hand_runs.collections_in(self.parameters)

    @property
    def systems(self) -> list[str]:
        """Return the systems that the parameters name."""
        return hand_runs.systems_in(self.parameters)

    @property
    def folder(self) -> Path:
        """Return where the notebook's tables and figures land."""
        return paths.figures() / self.suite / self.source.stem / self.part

    @property
    def executed(self) -> Path:
        """Return where the executed copy lands."""
        return paths.figures() / "_executed" / self.suite / f"{self.name}.ipynb"

    def key(self, contents: dict[str, bytes] | None = None) -> str:
        """Return the hash of all that determines the outputs, as `hand_runs.output_key` does."""
        return hand_runs.output_key(self.source, self.parameters, contents)


def suites_folder() -> Path:
    """Return the folder of the suites' TOML files."""
    return paths.bundled_path("notebooks", "suites")


def suite_names() -> list[str]:
    """Return the suites that exist.

    >>> suite_names()
    ['mini', 'mirb', 'open']
    """
    return sorted(path.stem for path in suites_folder().glob("*.toml"))


def read_suite(
    suite: str, overrides: dict[str, Any] | None = None, only: list[str] | None = None, *, fetch: bool = False
) -> list[Job]:
    """Return the jobs of a suite; *overrides* replace parameters in the notebooks that have them.

    In a suite, `collections = ["*"]` means every collection that was built or added, and `collection = "*"` runs
    the notebook once for each of them; `match = ["*-qa", "!mse-*"]` beside a notebook narrows both ("!" leaves out),
    and leaves the notebook out when nothing matches, as `needs = [...]` does unless all of these are built or added.
    *only* keeps notebooks whose name begins so; *fetch* gets
    collections that are registered and not here. Raises MirblabError, before anything runs, for unknown suites,
    notebooks, parameters, collections and systems, with suggestions.
    """
    path = suites_folder() / f"{suite}.toml"
    if not path.is_file():
        raise unknown("suite", suite, suite_names())
    found = read_toml(path, path.name)
    entries = found.get("notebook", [])
    known = [entry["name"] for entry in entries]
    for start in only or []:
        if not any(name.startswith(start) for name in known):
            raise unknown(f"notebook in the suite {suite}", start, known)
    chosen = [entry for entry in entries if not only or any(entry["name"].startswith(start) for start in only)]
    shared = found.get("parameters", {})
    jobs = [job for entry in chosen for job in _jobs(suite, entry, shared, overrides or {}, fetch)]
    known_here = {key for job in jobs for key in hand_runs.notebook_parameters(job.source)}
    everywhere = {key for name in known for key in hand_runs.notebook_parameters(_notebook(name))}
    for name in [*(overrides or {}), *shared]:
        if name not in (known_here if name in (overrides or {}) else everywhere):
            raise unknown("parameter", name, known_here)
    return jobs


def _jobs(
    suite: str, entry: dict[str, Any], shared: dict[str, Any], overrides: dict[str, Any], fetch: bool
) -> list[Job]:
    if not set(entry.get("needs", [])) <= set(catalogue.built_names()):
        return []
    source = _notebook(entry["name"])
    known, given = hand_runs.notebook_parameters(source), entry.get("parameters", {})
    for name in given:
        if name not in known:
            raise MirblabError(f"{suite}.toml, {entry['name']}: {unknown('parameter', name, known)}")
    layers = [shared, given, overrides, {"suite": suite}]
    values = known | {key: _there(key, value) for layer in layers for key, value in layer.items() if key in known}
    jobs = [Job(suite, source, values)]
    if EVERY in (values.get("collection"), *values.get("collections", [])):
        here = [name for name in _built() if _matches(name, entry.get("match", [EVERY]))]
        values["collections"] = here if values.get("collections") == [EVERY] else values.get("collections")
        jobs = [Job(suite, source, {key: value for key, value in values.items() if key in known})] if here else []
        if values.get("collection") == EVERY:
            jobs = [Job(suite, source, jobs[0].parameters | {"collection": part, "part": part}) for part in here]
    for job in jobs:
        _check(job, known, fetch)
    return jobs


def _there(key: str, value: Any) -> Any:
    """Return *systems* without those that end with "?" and have a model that is not trained here yet."""
    if key != "systems" or not isinstance(value, list):
        return value
    return [name.rstrip("?") for name in map(str, value) if not name.endswith("?") or _is_trained(name[:-1])]


def _is_trained(name: str) -> bool:
    found = systems.system(name)
    try:
        return bool(found.key)
    except MirblabError:
        return False


def _matches(name: str, signs: list[str]) -> bool:
    """Return whether a collection's name fits one of the *signs* and none that begins with "!"."""
    wanted = [sign for sign in signs if not sign.startswith("!")] or [EVERY]
    unwanted = [sign[1:] for sign in signs if sign.startswith("!")]
    return any(fnmatch(name, sign) for sign in wanted) and not any(fnmatch(name, sign) for sign in unwanted)


def _check(job: Job, known: dict[str, Any], fetch: bool) -> None:
    """Raise MirblabError for a parameter of the wrong type, and for unknown collections and systems."""
    hand_runs.check_types(job.parameters, known, job.name)
    for name in job.collections:
        catalogue.collection_folder(name, fetch=fetch)
    for name in job.systems:
        systems.system(name)
    for name in hand_runs.names_under(job.parameters, ("measure", "measures")):
        measures.parse_measure(name)
    hand_runs.models_in(job.parameters)


def _built() -> list[str]:
    found = catalogue.built_names()
    if not found:
        raise MirblabError(
            "no real collection is built or added yet; run: mirblab build stacks, or: mirblab add FOLDER"
        )
    return found


def _notebook(name: str) -> Path:
    found = paths.bundled_path("notebooks")
    path = found / f"{name}.ipynb"
    if not path.is_file():
        raise unknown("notebook", name, [path.stem for path in found.glob("*.ipynb")])
    return path


@dataclass
class Outputs:
    """The folder for a notebook's tables and figures, and what everything in it was made from.

    *by_hand* is what the notebook was asked for when no batch runs it, None in a batch; it is put on record with the
    first thing that is saved.
    `others` says who made the systems that were not made here: in everything that is saved their names bear a mark,
    and a note says whose they are.
    """

    folder: Path
    provenance: dict[str, Any] = field(default_factory=dict)
    by_hand: dict[str, Any] | None = None
    others: Mapping[str, str] = field(default_factory=dict)

    def figure(self, axes: Any, name: str, *, caption: str, alt: str, table: pd.DataFrame | None = None) -> Any:
        """Save a figure as PDF, PNG and SVG with its numbers and provenance, and return it for display."""
        self._begin()
        if self.others:
            caption, alt = result_tables.mark_figure_origins(figure_of(axes), caption, alt, self.others)
        return figures.save_figure(
            axes, self.folder, name, provenance=self.provenance, caption=caption, alt=alt, table=table
        )

    def table(self, table: result_tables.Table, name: str) -> result_tables.Table:
        """Save a table as TeX, Markdown and CSV with its provenance, and return it for display."""
        self._begin()
        table = result_tables.mark_table_origins(table, self.others)
        table.save(self.folder, name, self.provenance)
        return table

    def _begin(self) -> None:
        if self.by_hand is not None:
            hand_runs.record_hand_run(self.folder, self.provenance["notebook"], self.by_hand)
            self.by_hand = None


def output(
    notebook: str,
    suite: str,
    part: str = "",
    *,
    collections: Sequence[Collection] = (),
    systems: Sequence[System] = (),
    runs: Sequence[pd.DataFrame] = (),
    **parameters: Any,
) -> Outputs:
    """Return where the tables and figures of *notebook* land, with provenance filled in.

    In a batch that is `figures/<suite>/<notebook>/`, and *part* below it for a notebook that the suite runs several
    times. Everywhere else, in the lab, under papermill and in a script, it is a folder of its own below
    `figures/_by_hand/`, named after what the notebook was asked for, so that no suite's files are replaced; it is
    printed in a notebook, and `mirblab figures` lists it. Raises MirblabError as `check_parameters` does.

    *runs* are those that the notebook shows and that none of *systems* made, as from `read_run`; they are marked, as
    imported systems are.

    Provenance holds the parameters, the collections' fingerprints and revisions, the systems' settings
    (model revisions among them), the git commit and the versions of the libraries.

    >>> output("10_collections", "mini", depth=10).provenance["parameters"]
    {'depth': 10}
    """
    provenance = {
        "notebook": notebook,
        "suite": suite,
        "parameters": parameters,
        "collections": {
            found.name: {"fingerprint": found.fingerprint, "split": found.split, "revision": found.card.revision}
            for found in collections
        },
        "systems": {found.name: found.key for found in systems},
        "models": hand_runs.models_in(parameters),
        "commit": hand_runs.current_commit(),
        "versions": hand_runs.library_versions(),
    }
    if runs:
        provenance["runs"] = [run.attrs for run in runs]
    others = _others(collections, systems, runs)
    defaults, given = hand_runs.current_parameters()
    if os.environ.get(hand_runs.SUITE_RUN) == json.dumps([suite, notebook, part]):
        return Outputs(paths.figures() / suite / notebook / part, provenance, others=others)
    names = {"collections": list(provenance["collections"]), "systems": list(provenance["systems"])}
    names |= {"runs": [str(run.attrs.get("system")) for run in runs]} if runs else {}
    asked = defaults | given or {"suite": suite, "part": part, **names, **parameters}
    asked = json.loads(json.dumps(asked, default=str))  # as its record will say it
    folder = hand_runs.hand_run_folder(notebook, asked, hand_runs.notebook_defaults(notebook) or defaults)
    if hand_runs.is_notebook():
        print(f"Tables and figures of this run: {folder} (listed by: mirblab figures)")
    return Outputs(folder, provenance, asked, others)


def _others(
    collections: Sequence[Collection], systems: Sequence[System], runs: Sequence[pd.DataFrame]
) -> dict[str, str]:
    """Return who made the systems and the runs that were not made here, and what was left out of them, by name."""
    said = {str(run.attrs.get("system")): [run.attrs["origin"], run.attrs.get("remainder")]
            for run in runs if run.attrs.get("origin")}  # fmt: skip
    for one in systems:
        if one.origin:
            records = imported.imported_runs(one.name)
            cut = [imported.remainder_note(record.n_rows, record.n_unknown, name) for name, record in records.items()
                   if record.n_unknown and name in {found.name for found in collections}]  # fmt: skip
            said[one.name] = [one.origin, *cut]
    return {name: "; ".join(str(text) for text in parts if text) for name, parts in said.items()}
