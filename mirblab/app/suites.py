"""suites: suites of notebooks, and the folders of their outputs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from mirblab.display.plots import pages
from mirblab.evaluation import imported, measures
from mirblab.retrieval import systems
from mirblab.retrieval.systems import System
from mirblab.sources import catalogue

EVERY = "*"
SECONDS_PER_NOTEBOOK = 7.0  # what a notebook is expected to take that has not run here and whose suite does not say


@dataclass(frozen=True)
class Job:
    """One notebook of a suite with its parameters, and the *seconds* that its first run is expected to take."""

    suite: str
    source: Path
    parameters: dict[str, Any]
    seconds: float = SECONDS_PER_NOTEBOOK

    @property
    def part(self) -> str:
        """Return the collection of this run if the suite runs the notebook once for each, else ""."""
        return self.parameters.get("part", "")

    @property
    def name(self) -> str:
        """Return the notebook's name, with the part after a dot."""
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
        """Return the folder of the notebook's tables and figures."""
        return paths.figures() / self.suite / self.source.stem / self.part

    @property
    def executed(self) -> Path:
        """Return the path of the executed copy."""
        return paths.figures() / "_executed" / self.suite / f"{self.name}.ipynb"

    def key(self, contents: dict[str, bytes] | None = None) -> str:
        """Return the hash of everything that determines the outputs; see `hand_runs.output_key`."""
        return hand_runs.output_key(self.source, self.parameters, contents)


def suites_folder() -> Path:
    """Return the folder of the suites' TOML files."""
    return paths.bundled_path("notebooks", "suites")


def read_suite(
    suite: str, overrides: dict[str, Any] | None = None, only: list[str] | None = None, *, fetch: bool = False
) -> list[Job]:
    """Return the jobs of a suite; *overrides* replace parameters in the notebooks that have them.

    In a suite, `collections = ["*"]` means every collection that was built or added, and `collection = "*"` runs
    the notebook once for each of them. `match = ["*-qa", "!mse-*"]` beside a notebook narrows both ("!" excludes); a
    notebook without a match is left out, and one whose `needs = [...]` are not all built or added. `seconds = 90` is
    what the first run of a notebook is expected to take on two cores, its runs and vectors not counted.
    *only* keeps notebooks whose name begins with one of these; *fetch* downloads registered collections that are
    missing. Raises MirblabError, before anything runs, for unknown suites, notebooks, parameters, collections, systems.
    """
    path = suites_folder() / f"{suite}.toml"
    if not path.is_file():
        raise unknown("suite", suite, [path.stem for path in suites_folder().glob("*.toml")])
    content, overrides = read_toml(path, path.name), overrides or {}
    entries, shared = content.get("notebook", []), content.get("parameters", {})
    names = [entry["name"] for entry in entries]
    for start in only or []:
        if not any(name.startswith(start) for name in names):
            raise unknown(f"notebook in the suite {suite}", start, names)
    chosen = [entry for entry in entries if not only or entry["name"].startswith(tuple(only))]
    ready: set[str] = set()  # collections that were checked already
    jobs = [job for entry in chosen for job in _jobs(suite, entry, shared, overrides, fetch, ready)]
    of_jobs = {key for job in jobs for key in hand_runs.notebook_parameters(job.source)}
    of_all = {key for name in names for key in hand_runs.notebook_parameters(_notebook(name))}
    for name in [*overrides, *shared]:
        if name not in (of_jobs if name in overrides else of_all):
            raise unknown("parameter", name, of_jobs)
    return jobs


def _jobs(
    suite: str, entry: dict[str, Any], shared: dict[str, Any], overrides: dict[str, Any], fetch: bool, ready: set[str]
) -> list[Job]:
    if not set(entry.get("needs", [])) <= set(catalogue.built_names()):
        return []
    source = _notebook(entry["name"])
    defaults, given = hand_runs.notebook_parameters(source), entry.get("parameters", {})
    for name in given:
        if name not in defaults:
            raise MirblabError(f"{suite}.toml, {entry['name']}: {unknown('parameter', name, defaults)}")
    layers = shared | given | overrides | {"suite": suite}
    values = defaults | hand_runs.clean_parameters({key: layers[key] for key in layers if key in defaults}, defaults)
    if isinstance(values.get("systems"), list):
        values["systems"] = _available_systems(values["systems"])
    seconds = float(entry.get("seconds", SECONDS_PER_NOTEBOOK))
    jobs = [Job(suite, source, values, seconds)]
    if EVERY in (values.get("collection"), *values.get("collections", [])):
        names = [name for name in _built_names() if _matches(name, entry.get("match", [EVERY]))]
        if values.get("collections") == [EVERY]:
            values["collections"] = names
        jobs = jobs if names else []
        if values.get("collection") == EVERY:
            jobs = [Job(suite, source, values | {"collection": name, "part": name}, seconds) for name in names]
    for job in jobs:
        _check(job, defaults, fetch, ready)
    return jobs


def _available_systems(names: list[Any]) -> list[str]:
    """Return the systems without those that end with "?" and whose model is not trained yet."""

    def is_trained(name: str) -> bool:
        system = systems.system(name)
        try:
            return bool(system.key)
        except MirblabError:
            return False

    return [name.rstrip("?") for name in map(str, names) if not name.endswith("?") or is_trained(name[:-1])]


def _matches(name: str, patterns: list[str]) -> bool:
    """Return whether a collection's name fits one of the *patterns* and none that begins with "!"."""
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")] or [EVERY]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    return any(fnmatch(name, fit) for fit in wanted) and not any(fnmatch(name, fit) for fit in unwanted)


def _check(job: Job, defaults: dict[str, Any], fetch: bool, ready: set[str]) -> None:
    hand_runs.check_types(job.parameters, defaults, job.name)
    for name in job.collections:
        if name not in ready:
            catalogue.collection_folder(name, fetch=fetch)
            ready.add(name)
    for name in job.systems:
        systems.system(name)
    for name in hand_runs.measures_in(job.parameters):
        measures.parse_measure(name)
    hand_runs.models_in(job.parameters)


def _built_names() -> list[str]:
    names = catalogue.built_names()
    if not names:
        raise MirblabError(
            "no real collection is built or added yet; run: mirblab build stacks, or: mirblab add FOLDER"
        )
    return names


def _notebook(name: str) -> Path:
    folder = paths.bundled_path("notebooks")
    path = folder / f"{name}.ipynb"
    if not path.is_file():
        raise unknown("notebook", name, [path.stem for path in folder.glob("*.ipynb")])
    return path


@dataclass
class Outputs:
    """The folder for a notebook's tables and figures, and the provenance of everything in it.

    *by_hand*: the parameters of a run by hand, None in a batch; they are recorded with the first output. *others*: the
    makers of imported systems by name; tables and figures mark these systems and name their makers.
    """

    folder: Path
    provenance: dict[str, Any]
    by_hand: dict[str, Any] | None
    others: Mapping[str, str]

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

    def page(self, path: Path, title: str) -> Any:
        """Return a page below the folder as HTML that is shown in place, with a link that works from the notebook."""
        in_batch = hand_runs.SUITE_RUN in os.environ
        # Where the notebook is opened: a batch keeps the executed one among the figures.
        notebook = paths.figures() / "_executed" / self.provenance["suite"] if in_batch else Path.cwd()
        return pages.page_frame(path, title, Path(os.path.relpath(path, notebook)).as_posix())

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
    """Return the folder for the tables and figures of *notebook*, with their provenance.

    In a batch it is `figures/<suite>/<notebook>/`, with *part* below it if the suite runs the notebook several times;
    elsewhere it is below `figures/_by_hand/`, named after the parameters, and printed. *runs* are runs that none of
    *systems* made, as from `read_run`. The provenance has the parameters, the versions of collections, systems and
    libraries, and the git commit. Raises MirblabError as `check_parameters` does.

    >>> output("10_collections", "mini", depth=10).provenance["parameters"]
    {'depth': 10}
    """
    provenance: dict[str, Any] = {
        "notebook": notebook,
        "suite": suite,
        "parameters": parameters,
        "collections": {
            c.name: {"fingerprint": c.fingerprint, "split": c.split, "revision": c.card.revision} for c in collections
        },
        "systems": {system.name: system.key for system in systems},
        "models": hand_runs.models_in(parameters),
        "commit": hand_runs.current_commit(),
        "versions": hand_runs.library_versions(),
    }
    names: dict[str, Any] = {key: list(provenance[key]) for key in ("collections", "systems")}
    if runs:
        provenance["runs"] = [run.attrs for run in runs]
        names["runs"] = [str(run.attrs.get("system")) for run in runs]
    others = _origins(collections, systems, runs)
    defaults, given = hand_runs.current_parameters()
    if os.environ.get(hand_runs.SUITE_RUN) == json.dumps([suite, notebook, part]):
        return Outputs(paths.figures() / suite / notebook / part, provenance, None, others)
    by_hand = defaults | given or {"suite": suite, "part": part, **names, **parameters}
    by_hand = json.loads(json.dumps(by_hand, default=str))  # as its record will have it
    folder = hand_runs.hand_run_folder(notebook, by_hand, hand_runs.notebook_defaults(notebook) or defaults)
    if hand_runs.is_notebook():
        print(f"Tables and figures of this run: {folder} (listed by: mirblab figures)")
    return Outputs(folder, provenance, by_hand, others)


def _origins(
    collections: Sequence[Collection], systems: Sequence[System], runs: Sequence[pd.DataFrame]
) -> dict[str, str]:
    """Return the makers of imported systems and runs by name, and which of their rows were left out."""
    notes = {
        str(run.attrs.get("system")): [run.attrs["origin"], run.attrs.get("remainder")]
        for run in runs
        if run.attrs.get("origin")
    }
    names = {collection.name for collection in collections}
    for system in systems:
        if system.origin:
            records = {name: run for name, run in imported.imported_runs(system.name).items() if name in names}
            remainders = [
                imported.remainder_note(record.n_rows, record.n_unknown, name)
                for name, record in records.items()
                if record.n_unknown
            ]
            notes[system.name] = [system.origin, *remainders]
    return {name: "; ".join(str(text) for text in texts if text) for name, texts in notes.items()}
