"""hand_runs: notebooks that were run by hand, and the parameters that they were given."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from mirblab.core import paths
from mirblab.core.errors import MirblabError, unknown
from mirblab.encoders.encoding import encoder
from mirblab.retrieval import rerank, systems
from mirblab.sources import catalogue
from mirblab.train import recipes

LIBRARIES = (
    "mirblab",
    "numpy",
    "pandas",
    "scipy",
    "matplotlib",
    "torch",
    "sentence-transformers",
    "transformers",
    "bm25s",
    "rank-bm25",
    "PyStemmer",
    "umap-learn",
    "scikit-learn",
    "numba",
    "seaborn",
)

# Parameters that name a model, and what determines it.
MODELS = {
    "encoder": lambda name: encoder(name).key,
    "encoders": lambda names: {name: encoder(name).key for name in names},
    "recipes": lambda names: {name: recipes.recipe(name).determining() for name in names},
    "reranker": rerank.reranker_settings,
}


def output_key(
    notebook: Path | None,
    parameters: dict[str, Any],
    contents: dict[str, bytes] | None = None,
    root: Path | None = None,
) -> str:
    """Return the hash of all that determines the outputs: notebook, parameters, data and files named there, code.

    *notebook* None: a notebook of which the file is not known. *contents* holds hashes of data that are known
    already, and takes in new ones. *root* is where files are looked for, None: the notebook's folder.
    """
    contents = {} if contents is None else contents
    digest = hashlib.blake2b(notebook.read_bytes() if notebook else b"", digest_size=16)
    for name, path in _data(parameters, root or (notebook.parent if notebook else Path.cwd())).items():
        if name not in contents:
            contents[name] = paths.content_digest(catalogue.collection_folder(name) if path is None else path)
        digest.update(contents[name])
    parts = [parameters, [systems.system(name).key for name in systems_in(parameters)], models_in(parameters)]
    digest.update(json.dumps(parts, sort_keys=True).encode())
    digest.update(_code())
    return digest.hexdigest()


def collections_in(parameters: dict[str, Any]) -> list[str]:
    """Return the collections that the parameters for collections name.

    >>> collections_in({"collection": "mini-qa", "collections": ["mini-hol", "mini-qa"], "depth": 10})
    ['mini-qa', 'mini-hol']
    """
    return names_under(parameters, ("collection", "collections", "mirb"))


def systems_in(parameters: dict[str, Any]) -> list[str]:
    """Return the systems that the parameters for systems name."""
    return names_under(parameters, ("system", "systems", "baseline", "fused", "rater", "dense", "parts"))


def models_in(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return all that determines the encoder and the reranker that the parameters name."""
    return {kind: look(parameters[kind]) for kind, look in MODELS.items() if parameters.get(kind)}


def names_under(parameters: dict[str, Any], keys: tuple[str, ...]) -> list[str]:
    """Return the texts that stand under *keys*, alone or in lists, each once."""
    found: list[str] = []
    for name in keys:
        value = parameters.get(name, [])
        found += value if isinstance(value, list) else [value] if value else []
    return list(dict.fromkeys(found))


@lru_cache
def current_commit() -> str:
    """Return the checkout's commit, with "+changes" when files differ from it, or "" outside a checkout."""
    root = paths.checkout_root()
    if root is None:
        return ""
    try:
        head = _git(root, "rev-parse", "HEAD")
        return head + ("+changes" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


@lru_cache
def library_versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that numbers depend on."""
    import platform

    return {"python": platform.python_version()} | _versions(LIBRARIES)


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout.strip()


def _data(parameters: dict[str, Any], root: Path) -> dict[str, Path | None]:
    """Return the collections that the parameters name, whatever these are called, and the files and folders.

    A collection has no path yet.
    """
    texts = [one for value in parameters.values() for one in (value if isinstance(value, list) else [value])]
    texts = [text for text in texts if isinstance(text, str) and text]
    here = set(catalogue.collection_names())
    found: dict[str, Path | None] = dict.fromkeys([*collections_in(parameters), *(one for one in texts if one in here)])
    for text in texts:
        path = root / paths.expand_home(text)
        if text not in found and os.path.exists(path):  # a run file, a table, a folder of LaTeX
            found[str(path)] = path
    return found


@lru_cache
def _code() -> bytes:
    """Return a hash of the package, of the data that ship with it, and of the versions that it runs with."""
    digest = hashlib.blake2b(digest_size=16)
    root = Path(__file__).parents[1]
    for path in sorted([*root.rglob("*.py"), *root.rglob("registry/*")]):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    for name in ("examples", "mini"):
        digest.update(paths.content_digest((paths.checkout_root() or root / "bundled") / "data" / name))
    with suppress(PackageNotFoundError):  # a checkout that nobody installed
        needed = [Requirement(line).name for line in requires("mirblab") or []]
        digest.update(json.dumps(_versions(needed), sort_keys=True).encode())
    digest.update(json.dumps(library_versions(), sort_keys=True).encode())
    return digest.digest()


def _versions(libraries: list[str] | tuple[str, ...]) -> dict[str, str]:
    found = {}
    for library in libraries:
        with suppress(PackageNotFoundError):
            found[library] = version(library)
    return found


SUITE_RUN = "MIRBLAB_SUITE_RUN"  # in the environment of a notebook that a batch runs: suite, notebook and part
_INJECTED = "# Parameters\n"  # the first line of the cell that papermill adds


@lru_cache
def notebook_parameters(notebook: Path) -> dict[str, Any]:
    """Return names and defaults of a notebook's one parameters cell, which holds only annotated literals."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]  # nbformat takes two seconds to import
    tagged = ["".join(cell["source"]) for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    if len(tagged) != 1:
        raise MirblabError(f"{notebook.name} has {len(tagged)} cells tagged 'parameters'; exactly one is needed")
    return parse_parameters(tagged[0], notebook.name)


def parse_parameters(source: str, notebook: str) -> dict[str, Any]:
    """Return names and defaults of a cell of parameters; MirblabError, which names the *notebook*, for another cell.

    >>> parse_parameters("depth: int = 10  # how many documents", "x.ipynb")
    {'depth': 10}
    """
    defaults = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name) or node.value is None:
            raise MirblabError(f"{notebook}: line {node.lineno} of the parameters is not 'name: type = literal'")
        defaults[node.target.id] = ast.literal_eval(node.value)
    return defaults


def check_types(values: Mapping[str, Any], defaults: Mapping[str, Any], notebook: str) -> None:
    """Raise MirblabError for a name that is no parameter, and for a value of another type than the default.

    A whole number may stand for a float.
    """
    for key, value in values.items():
        if key not in defaults:
            raise unknown("parameter", key, defaults)
        default = defaults[key]
        fits = isinstance(value, type(default)) or (isinstance(default, float) and isinstance(value, int))
        if not fits or isinstance(value, bool) != isinstance(default, bool):
            wanted, given = type(default).__name__, type(value).__name__
            raise MirblabError(f"{notebook}: the parameter '{key}' must be a {wanted}, found the {given} {value!r}")
        if isinstance(value, list) and value and default and not all(type(item) is type(default[0]) for item in value):
            raise MirblabError(f"{notebook}: '{key}' must list values like {default[0]!r}, found {value!r}")


def check_parameters() -> None:
    """Raise MirblabError when this notebook was given a parameter that it does not have, or a value of another type.

    Papermill alone only logs a misspelt name and goes on with the default. Every notebook calls this in its first
    cell after the parameters; outside of a notebook it does nothing.

    >>> check_parameters()
    """
    current_parameters()


def current_parameters() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the defaults of the notebook that runs here, and what it was given besides; empty outside of a notebook.

    They are read from the cells that were run: the last one of annotated literals only, and the one that
    papermill adds after it. Raises MirblabError as `check_parameters` does.
    """
    cells = _cells()
    places = [place for place, cell in enumerate(cells) if _is_of_parameters(cell)]
    if not places:
        return {}, {}
    defaults, given = parse_parameters(cells[places[-1]], "this notebook"), {}
    for cell in cells[places[-1] + 1 : places[-1] + 2]:  # the cell that papermill adds comes next
        given = _assigned(cell) if cell.startswith(_INJECTED) else {}
    check_types(given, defaults, "this notebook")
    return defaults, given


def is_notebook() -> bool:
    """Return whether this code runs in IPython, which shows what is printed."""
    return bool(_cells())


def _cells() -> list[str]:
    """Return the code that was run in this kernel, cell by cell; nothing where there is no IPython."""
    if "IPython" not in sys.modules:
        return []
    from IPython import get_ipython

    shell = get_ipython()
    return [str(cell) for cell in shell.user_ns.get("In", [])] if shell is not None else []


def _is_of_parameters(source: str) -> bool:
    try:
        return bool(parse_parameters(source, ""))
    except (ValueError, SyntaxError):  # MirblabError is a ValueError
        return False


def _assigned(source: str) -> dict[str, Any]:
    """Return what papermill's cell assigns; what is no literal, such as float('nan'), as text."""
    values = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                values[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                values[node.targets[0].id] = ast.unparse(node.value)
    return values


RECORD = "run.json"
_LONGEST = 60  # characters of a folder's name that say which parameters differ


@dataclass(frozen=True)
class HandRun:
    """A notebook that was run by hand: its name here, its folder, its parameters, when and where it ran."""

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
            return "its data and code are unknown"
        is_same = hand_run_key(self.notebook, self.parameters, Path(self.root), contents) == self.key
        return "data and code unchanged" if is_same else "data or code changed since"


def hand_runs_folder() -> Path:
    """Return the folder of what notebooks left that were run by hand: `<home>/figures/_by_hand`."""
    return paths.figures() / "_by_hand"


def hand_run_folder(notebook: str, parameters: Mapping[str, Any], defaults: Mapping[str, Any]) -> Path:
    """Return the folder of a run by hand: named after the parameters that differ from *defaults*, and a hash of all.

    >>> hand_run_folder("13_significance", {"permutations": 500, "seed": 0}, {"permutations": 100000, "seed": 0}).name
    'permutations-500-4b3201f54611'
    """
    differing = {name: value for name, value in parameters.items() if name not in defaults or defaults[name] != value}
    said = "_".join(f"{name}-{_short(value)}" for name, value in differing.items()) or "defaults"
    safe = re.sub(r"[^A-Za-z0-9.+_-]+", "-", said)[:_LONGEST].strip("-.+_")
    digest = hashlib.blake2b(json.dumps(parameters, sort_keys=True).encode(), digest_size=6).hexdigest()
    return hand_runs_folder() / paths.checked_name(notebook) / f"{safe}-{digest}"


def notebook_defaults(notebook: str) -> dict[str, Any]:
    """Return the defaults of a notebook that ships with the project, nothing for another one."""
    path = _file_of(notebook)
    return notebook_parameters(path) if path else {}


def hand_run_key(
    notebook: str, parameters: dict[str, Any], root: Path, contents: dict[str, bytes] | None = None
) -> str:
    """Return the hash of what determines the run in the folder *root*, "" when that is unknown."""
    defaults = notebook_defaults(notebook)
    try:
        if defaults:
            check_types(parameters, defaults, notebook)
        return output_key(_file_of(notebook), parameters, contents, root)
    except (MirblabError, FileNotFoundError, TypeError):
        return ""


def record_hand_run(place: Path, notebook: str, parameters: dict[str, Any]) -> None:
    """Write the record of a run by hand into its folder *place*."""
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    about = {"notebook": notebook, "parameters": parameters, "made": now, "root": str(Path.cwd())}
    record = about | {"key": hand_run_key(notebook, parameters, Path.cwd())}
    text = json.dumps(record, indent=1) + "\n"
    paths.try_to_store("tables and figures", paths.write_text, place / RECORD, text, full_is_error=True)


def list_hand_runs() -> list[HandRun]:
    """Return the runs by hand, sorted by name; folders without a valid record and links are left out."""
    runs = [_read(path.parent) for path in sorted(hand_runs_folder().glob(f"*/*/{RECORD}"))]
    return [run for run in runs if run is not None]


def remove_hand_runs(names: list[str]) -> list[HandRun]:
    """Remove runs by hand with all that lies in their folders, and return them; "all" names every one.

    Raises MirblabError for an unknown name, before anything is removed.
    """
    runs = {run.name: run for run in list_hand_runs()}
    for name in names:
        if name not in runs and name != "all":
            raise unknown("run by hand", name, runs)
    chosen = [run for run in runs.values() if run.name in names or "all" in names]
    for run in chosen:
        paths.remove_path(run.folder)
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
        path = paths.bundled_path("notebooks") / f"{paths.checked_name(notebook)}.ipynb"
    except FileNotFoundError:
        return None
    return path if path.is_file() else None


def _short(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)
