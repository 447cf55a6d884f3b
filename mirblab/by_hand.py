"""by_hand: what a notebook leaves that no batch runs: a folder of its own for each choice of parameters, on record."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from mirblab import disk, making, paths
from mirblab.errors import MirblabError, unknown
from mirblab.parameters import check_types, parameters_of

RECORD = "run.json"
_LONGEST = 60  # characters of a folder's name that say which parameters differ


@dataclass(frozen=True)
class HandRun:
    """A notebook that was run by hand: its name here, its folder, what it was asked for, when and where it ran."""

    name: str
    folder: Path
    notebook: str
    parameters: dict[str, Any]
    made: str
    key: str
    root: str

    def state(self, contents: dict[str, bytes]) -> str:
        """Return whether its data and code are as they were; *contents* holds hashes of data that are known already."""
        if not self.key:
            return "of its data and code nothing is known"
        is_same = key_of(self.notebook, self.parameters, Path(self.root), contents) == self.key
        return "data and code unchanged" if is_same else "data or code changed since"


def folder() -> Path:
    """Return the folder of what notebooks left that were run by hand: `<home>/figures/_by_hand`."""
    return paths.figures() / "_by_hand"


def folder_of(notebook: str, parameters: Mapping[str, Any], defaults: Mapping[str, Any]) -> Path:
    """Return the folder of a run by hand: named after the parameters that differ from *defaults*, and a hash of all.

    >>> folder_of("13_significance", {"permutations": 500, "seed": 0}, {"permutations": 100000, "seed": 0}).name
    'permutations-500-4b3201f54611'
    """
    differing = {name: value for name, value in parameters.items() if name not in defaults or defaults[name] != value}
    said = "_".join(f"{name}-{_short(value)}" for name, value in differing.items()) or "defaults"
    safe = re.sub(r"[^A-Za-z0-9.+_-]+", "-", said)[:_LONGEST].strip("-.+_")
    digest = hashlib.blake2b(json.dumps(parameters, sort_keys=True).encode(), digest_size=6).hexdigest()
    return folder() / paths.clean_name(notebook) / f"{safe}-{digest}"


def defaults_of(notebook: str) -> dict[str, Any]:
    """Return the defaults of a notebook that ships with the project, nothing for another one."""
    path = _file_of(notebook)
    return parameters_of(path) if path else {}


def key_of(notebook: str, parameters: dict[str, Any], root: Path, contents: dict[str, bytes] | None = None) -> str:
    """Return the hash of what determines the run in the folder *root*, "" where it cannot be told."""
    defaults = defaults_of(notebook)
    try:
        if defaults:
            check_types(parameters, defaults, notebook)
        return making.key(_file_of(notebook), parameters, contents, root)
    except (MirblabError, FileNotFoundError, TypeError):
        return ""


def put_on_record(place: Path, notebook: str, parameters: dict[str, Any]) -> None:
    """Write down what the folder *place* is from, for `hand_runs`."""
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    about = {"notebook": notebook, "parameters": parameters, "made": now, "root": str(Path.cwd())}
    record = about | {"key": key_of(notebook, parameters, Path.cwd())}
    text = json.dumps(record, indent=1) + "\n"
    paths.stored("tables and figures", paths.write_text, place / RECORD, text, full_is_error=True)


def hand_runs() -> list[HandRun]:
    """Return the runs by hand that are there, by name; folders without a sound record are none, nor are links."""
    runs = [_read(path.parent) for path in sorted(folder().glob(f"*/*/{RECORD}"))]
    return [run for run in runs if run is not None]


def remove(names: list[str]) -> list[HandRun]:
    """Remove runs by hand with all that lies in their folders, and return them; "all" names every one.

    Raises MirblabError for a name that is none of them, before anything is removed.
    """
    runs = {run.name: run for run in hand_runs()}
    for name in names:
        if name not in runs and name != "all":
            raise unknown("run by hand", name, runs)
    chosen = [run for run in runs.values() if run.name in names or "all" in names]
    for run in chosen:
        disk.remove(run.folder)
        with suppress(OSError):  # other runs of the notebook are there
            run.folder.parent.rmdir()
    return chosen


def _read(place: Path) -> HandRun | None:
    if place.is_symlink() or place.parent.is_symlink():
        return None
    name = f"{place.parent.name}/{place.name}"
    try:
        run = HandRun(name=name, folder=place, **json.loads((place / RECORD).read_text("utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    texts = (run.notebook, run.made, run.key, run.root)
    return run if all(isinstance(text, str) for text in texts) and isinstance(run.parameters, dict) else None


def _file_of(notebook: str) -> Path | None:
    try:
        path = paths.bundled("notebooks") / f"{paths.clean_name(notebook)}.ipynb"
    except FileNotFoundError:
        return None
    return path if path.is_file() else None


def _short(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)
