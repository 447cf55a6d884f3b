"""suites: which notebooks run with which parameters, read from TOML and checked before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from mirblab import making, measures, paths, shelf, systems
from mirblab.errors import MirblabError, unknown
from mirblab.parameters import check_types, parameters_of
from mirblab.toml import read_toml

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
        return making.collections_in(self.parameters)

    @property
    def systems(self) -> list[str]:
        """Return the systems that the parameters name."""
        return making.systems_in(self.parameters)

    @property
    def folder(self) -> Path:
        """Return where the notebook's tables and figures land."""
        return paths.figures() / self.suite / self.source.stem / self.part

    @property
    def executed(self) -> Path:
        """Return where the executed copy lands."""
        return paths.figures() / "_executed" / self.suite / f"{self.name}.ipynb"

    def key(self, contents: dict[str, bytes] | None = None) -> str:
        """Return the hash of all that determines the outputs; `making.key` says what, and what *contents* is for."""
        return making.key(self.source, self.parameters, contents)


def folder() -> Path:
    """Return the folder of the suites' TOML files."""
    return paths.bundled("notebooks", "suites")


def suite_names() -> list[str]:
    """Return the suites that exist.

    >>> suite_names()
    ['mini', 'mirb', 'open']
    """
    return sorted(path.stem for path in folder().glob("*.toml"))


def read(
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
    path = folder() / f"{suite}.toml"
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
    known_here = {key for job in jobs for key in parameters_of(job.source)}
    everywhere = {key for name in known for key in parameters_of(_notebook(name))}
    for name in [*(overrides or {}), *shared]:
        if name not in (known_here if name in (overrides or {}) else everywhere):
            raise unknown("parameter", name, known_here)
    return jobs


def _jobs(
    suite: str, entry: dict[str, Any], shared: dict[str, Any], overrides: dict[str, Any], fetch: bool
) -> list[Job]:
    if not set(entry.get("needs", [])) <= set(shelf.built_names()):
        return []
    source = _notebook(entry["name"])
    known, given = parameters_of(source), entry.get("parameters", {})
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
    check_types(job.parameters, known, job.name)
    for name in job.collections:
        shelf.where(name, fetch=fetch)
    for name in job.systems:
        systems.system(name)
    for name in making.named(job.parameters, ("measure", "measures")):
        measures.parse(name)
    making.models_in(job.parameters)


def _built() -> list[str]:
    found = shelf.built_names()
    if not found:
        raise MirblabError(
            "no real collection is built or added yet; run: mirblab build stacks, or: mirblab add FOLDER"
        )
    return found


def _notebook(name: str) -> Path:
    found = paths.bundled("notebooks")
    path = found / f"{name}.ipynb"
    if not path.is_file():
        raise unknown("notebook", name, [path.stem for path in found.glob("*.ipynb")])
    return path
