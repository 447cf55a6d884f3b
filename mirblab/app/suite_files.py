"""suite_files: suites of notebooks, and the folders of their outputs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab.app import hand_runs, inventory
from mirblab.app.hand_runs import NAME_KEYS
from mirblab.core import paths, registry
from mirblab.core.errors import MirblabError, check_known, unknown
from mirblab.core.registry import read_toml
from mirblab.data.beir import has_queries
from mirblab.data.collection import Collection
from mirblab.display import figures, result_tables
from mirblab.display.figures import figure_of
from mirblab.display.plots import pages
from mirblab.encoders import summary
from mirblab.evaluation import imported, measures
from mirblab.retrieval import systems
from mirblab.retrieval.systems import System
from mirblab.sources import catalogue, mini

EVERY = "*"
_KINDS = {
    **{key: kind for kind in ("collection", "system") for key in NAME_KEYS[kind]},
    **dict.fromkeys(("encoder", "encoders"), "encoder"), **dict.fromkeys(("reranker", "rerankers"), "reranker"),
}  # fmt: skip
SECONDS_PER_NOTEBOOK = 5.0  # what a notebook is expected to take that has not run here and whose suite does not say


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


def named_job(suite: str, notebook: str, parameters: dict[str, Any]) -> Job:
    """Return the job of the *notebook* of that name on this machine; MirblabError for an unknown one."""
    return Job(suite, _notebook(notebook), parameters)


def suites_folder() -> Path:
    """Return the folder of the suites' TOML files."""
    return paths.bundled_path("notebooks", "suites")


def read_suite(
    suite: str,
    overrides: dict[str, Any] | None = None,
    only: list[str] | None = None,
    *,
    fetch: bool = False,
    tell: Callable[[str, str], object] = lambda name, why: None,
) -> list[Job]:
    """Return the jobs of a suite; *overrides* replace parameters in the notebooks that have them.

    In a suite, `collections = ["*"]` means every collection that was built or added, and `collection = "*"` runs
    the notebook once for each of them, or of the suite's own `collections`. `match = ["*-qa", "!mse-*"]` beside
    a notebook narrows both ("!" excludes); one without a match is left out, or with `bundled = true` runs on bundled
    material, with its defaults. One whose `needs = [...]` are not all built or added is left out. "a|b" is the first
    of these collections, systems or models that can be used here; what ends with "?" is left out where it cannot be.
    `seconds = 90` is what the first run of a notebook is expected to take on two cores, its runs and vectors not
    counted; `makes` and `note` are what docs/tables.md says of it.
    *only* keeps notebooks whose name begins with one of these; *fetch* downloads registered collections that are
    missing; *tell* is called with what is left out, and why.
    Raises MirblabError, before anything runs, for unknown suites, notebooks, parameters, collections, systems.
    """
    content, overrides = read_suite_file(suite), overrides or {}
    entries, shared = content.get("notebook", []), content.get("parameters", {})
    names = [entry["name"] for entry in entries]
    for start in only or []:
        if not any(name.startswith(start) for name in names):
            raise unknown(f"notebook in the suite {suite}", start, names)
    chosen = [entry for entry in entries if not only or entry["name"].startswith(tuple(only))]
    reader = _Reader(suite, shared, overrides, fetch, tell)
    jobs = [job for entry in chosen for job in reader.jobs(entry)]
    of_jobs = {key for job in jobs for key in hand_runs.notebook_parameters(job.source)}
    of_all = {key for name in names for key in hand_runs.notebook_parameters(_notebook(name))}
    for name in [*overrides, *shared]:
        if name not in (of_jobs if name in overrides else of_all):
            raise unknown("parameter", name, of_jobs)
    return jobs


def read_suite_file(suite: str) -> dict[str, Any]:
    """Return the content of a suite's file; MirblabError for an unknown suite."""
    path = suites_folder() / f"{suite}.toml"
    if not path.is_file():
        raise unknown("suite", suite, [path.stem for path in suites_folder().glob("*.toml")])
    return read_toml(path, path.name)


def collection_sizes(suite: str) -> pd.DataFrame:
    """Return paper, documents, queries and tokens of the published collections of a paper's suite, else no row."""
    if suite == "mirb":
        return summary.collection_sizes()
    columns = ["paper", "documents", "queries", "tokens"]
    return pd.DataFrame(read_suite_file(suite).get("size", []), columns=columns)


def systems_named_in(suite: str) -> list[str]:
    """Return the systems that a suite names, also those that cannot be used here."""
    given = [entry.get("parameters", {}) for entry in read_suite_file(suite).get("notebook", [])]
    values = [values[key] for values in given for key in NAME_KEYS["system"] if key in values]
    texts = [text for value in values for text in (value if isinstance(value, list) else [value])]
    return list(dict.fromkeys(name for text in texts for name in text.removesuffix("?").split("|") if name))


@dataclass
class _Reader:
    """What the entries of a suite are read with; *ready* are the collections that were checked already."""

    suite: str
    shared: dict[str, Any]
    overrides: dict[str, Any]
    fetch: bool
    tell: Callable[[str, str], object]
    ready: set[str] = field(default_factory=set)

    def jobs(self, entry: dict[str, Any]) -> list[Job]:
        """Return the jobs of one notebook, none where something that it needs is missing."""
        if missing := sorted(set(entry.get("needs", [])) - set(catalogue.built_names())):
            needs = dict.fromkeys(inventory.state("collection", name) or f"the collection {name}" for name in missing)
            self.tell(entry["name"], f"needs {', '.join(needs)}")
            return []
        source = _notebook(entry["name"])
        defaults, given = hand_runs.notebook_parameters(source), entry.get("parameters", {})
        for name in given:
            if name not in defaults:
                raise MirblabError(f"{self.suite}.toml, {entry['name']}: {unknown('parameter', name, defaults)}")
        values = self._values(entry, defaults)
        if values is None:
            return []
        job = Job(self.suite, source, values, float(entry.get("seconds", SECONDS_PER_NOTEBOOK)))
        jobs = [job]
        if values.get("collection") == EVERY:
            each = self._matching(entry)
            jobs = [replace(job, parameters=values | {"collection": name, "part": name}) for name in each]
        for job in jobs:
            self._check(job, defaults)
        return jobs

    def _values(self, entry: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any] | None:
        """Return the parameters of a notebook, or None where nothing is here that one of them names."""
        given = self._given(entry) | self.overrides | {"suite": self.suite}
        values = defaults | hand_runs.clean_parameters({key: given[key] for key in given if key in defaults}, defaults)
        whole = "collections" in self.shared and given.get("collections") == self.shared["collections"]
        for key, kind in _KINDS.items():
            if key == "collections" and key in values and (whole or values[key] == [EVERY]):
                chosen: Any = self._matching(entry)
            else:
                chosen = self._available(kind, values.get(key))
            if (
                values.get(key)
                and not chosen
                or (key == "collection" and chosen == EVERY and not self._matching(entry))
            ):
                self.tell(entry["name"], f"none of its {key} can be used here")
                return None
            values |= {key: chosen} if key in values else {}
        return values

    def _given(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters that the suite gives a notebook; none for one that has to take bundled material."""
        if not entry.get("bundled") or (catalogue.built_names() and self._matching(entry)):
            return self.shared | entry.get("parameters", {})
        self.tell(f"collections of {entry['name']}", "none is built or added; bundled ones are taken")
        return {}

    def _matching(self, entry: dict[str, Any]) -> list[str]:
        """Return those of the suite's collections, or of all that were built or added, that fit the entry's `match`."""
        shared = self.shared.get("collections", [EVERY])
        names = _built_names(self.tell) if shared == [EVERY] else self._available("collection", shared)
        return matching(names, entry.get("match", [EVERY]))

    def _available(self, kind: str, value: Any) -> Any:
        """Return a name, or a list of names, without what is marked as left out where it cannot be used here."""
        if isinstance(value, list):
            return list(dict.fromkeys(filter(None, (self._choose(kind, str(name)) for name in value))))
        return self._choose(kind, value) if isinstance(value, str) else value

    def _choose(self, kind: str, text: str) -> str:
        """Return the first name of "a|b?" that can be used here; "" if none can and the text ends with "?"."""
        names, missing = text.removesuffix("?").split("|"), dict[str, str]()
        if names == [text]:
            return text
        for name in names:
            missing[name] = self._needs(kind, name)
            if not missing[name]:
                break
        chosen = "" if missing[name] else name
        for other, why in missing.items():
            if why:
                self.tell(other, f"needs {why}" + (f"; {chosen} is taken" if chosen else ""))
        return chosen or ("" if text.endswith("?") else name)

    def _needs(self, kind: str, name: str) -> str:
        """Return what a collection, system or model needs before it can be used, "" for nothing."""
        if kind != "collection":
            if kind != "system":
                check_known(kind, name, registry.read_registry(f"{kind}s"))
            state = inventory.state(kind, name)
            return "" if state == inventory.READY else state
        try:
            catalogue.collection_folder(name, fetch=self.fetch)
        except MirblabError as error:
            self.fetch = self.fetch and "reached" not in str(error)  # the Hub is asked once, not for each
            return inventory.state("collection", name) or "mirblab build or mirblab add"
        return ""

    def _check(self, job: Job, defaults: dict[str, Any]) -> None:
        hand_runs.check_types(job.parameters, defaults, job.name)
        for name in set(job.collections) - self.ready:
            catalogue.collection_folder(name, fetch=self.fetch)
            self.ready.add(name)
        for name in job.systems:
            systems.system(name)
        for name in hand_runs.measures_in(job.parameters):
            measures.parse_measure(name)
        hand_runs.models_in(job.parameters)


def matching(names: Iterable[str], patterns: list[str]) -> list[str]:
    """Return the names that fit one of the *patterns* and none that begins with "!"."""
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")] or [EVERY]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    fitting = [name for name in names if any(fnmatch(name, fit) for fit in wanted)]
    return [name for name in fitting if not any(fnmatch(name, fit) for fit in unwanted)]


def _built_names(tell: Callable[[str, str], object]) -> list[str]:
    """Return the collections that were built or added and have a query; MirblabError where none was built or added."""
    names = catalogue.built_names()
    if not names:
        raise MirblabError(
            "no real collection is built or added yet; run: mirblab build stacks, or: mirblab add FOLDER"
        )
    unasked = [name for name in names if not has_queries(paths.data() / name, "test")]
    for name in unasked:
        tell(name, "no query in the split 'test', so that nothing can be measured")
    return [name for name in names if name not in unasked]


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
    makers of imported systems by name; tables and figures mark these systems and name their makers. *stand_ins*: what
    each bundled collection was written after, in a paper's suite; tables and figures that name one say so.
    """

    folder: Path
    provenance: dict[str, Any]
    by_hand: dict[str, Any] | None
    others: Mapping[str, str]
    stand_ins: Mapping[str, str] = field(default_factory=dict)

    def figure(self, axes: Any, name: str, *, caption: str, alt: str, table: pd.DataFrame | None = None) -> Any:
        """Save a figure as PDF, PNG and SVG with its numbers and provenance, and return it for display."""
        self._begin()
        titles = (panel.get_title("left") for panel in figure_of(axes).axes)
        caption = " ".join([caption, *self._stand_in_notes([caption, *titles])])
        if self.others:
            caption, alt = result_tables.mark_figure_origins(figure_of(axes), caption, alt, self.others)
        return figures.save_figure(
            axes, self.folder, name, provenance=self.provenance, caption=caption, alt=alt, table=table
        )

    def table(self, table: result_tables.Table, name: str) -> result_tables.Table:
        """Save a table as TeX, Markdown and CSV with its provenance, and return it for display."""
        self._begin()
        names = [*table.frame.index, *table.frame.columns, *table.frame.to_numpy().flat]
        texts = [table.caption, *table.notes, *(str(name) for name in names if isinstance(name, (str, tuple)))]
        if notes := self._stand_in_notes(texts):
            table = replace(table, notes=[*table.notes, *notes])
        table = result_tables.mark_table_origins(table, self.others)
        table.save(self.folder, name, self.provenance)
        return table

    def page(self, path: Path, title: str) -> Any:
        """Return a page below the folder as HTML that is shown in place, with a link that works from the notebook."""
        in_batch = hand_runs.SUITE_RUN in os.environ
        # Where the notebook is opened: a batch keeps the executed one among the figures.
        notebook = paths.figures() / "_executed" / self.provenance["suite"] if in_batch else Path.cwd()
        return pages.page_frame(path, title, Path(os.path.relpath(path, notebook)).as_posix())

    def _stand_in_notes(self, texts: Iterable[str]) -> list[str]:
        """Return a note on the bundled collections that *texts* name, no note where they name none."""
        text = "\n".join(texts)
        named = [f"{name} ({after})" for name, after in self.stand_ins.items()
                 if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]  # fmt: skip
        verb, whose = ("were", "their") if len(named) > 1 else ("was", "its")
        listed = " and ".join(filter(None, [", ".join(named[:-1]), *named[-1:]]))
        note = f"{listed} {verb} written for mirblab: {whose} values cannot be compared with published ones."
        return [note] if named else []

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
    others, stand_ins = _origins(collections, systems, runs), _stand_ins(suite, collections)
    defaults, given = hand_runs.current_parameters()
    if os.environ.get(hand_runs.SUITE_RUN) == json.dumps([suite, notebook, part]):
        return Outputs(paths.figures() / suite / notebook / part, provenance, None, others, stand_ins)
    by_hand = defaults | given or {"suite": suite, "part": part, **names, **parameters}
    by_hand = json.loads(json.dumps(by_hand, default=str))  # as its record will have it
    folder = hand_runs.hand_run_folder(notebook, by_hand, hand_runs.notebook_defaults(notebook) or defaults)
    if hand_runs.is_notebook():
        print(f"Tables and figures of this run: {folder} (listed by: mirblab figures)")
    return Outputs(folder, provenance, by_hand, others, stand_ins)


def _stand_ins(suite: str, collections: Sequence[Collection]) -> dict[str, str]:
    """Return what each bundled collection was written after, where *suite* is that of a paper."""
    if not (suites_folder() / f"{suite}.toml").is_file() or "paper" not in read_suite_file(suite):
        return {}
    bundled = [collection for collection in collections if collection.name in mini.COLLECTIONS]
    found = {collection.name: re.search(r"\((after .*)\)", collection.card.title) for collection in bundled}
    return {name: after[1] for name, after in found.items() if after}


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
