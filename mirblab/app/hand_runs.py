"""hand_runs: notebooks that were run by hand, and their parameters."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from mirblab.core import atomic_files, paths, registry
from mirblab.core.errors import MirblabError, check_known
from mirblab.display.text import escape_html
from mirblab.encoders.encoding import encoder
from mirblab.evaluation.measures import parse_measure
from mirblab.lessons.build import digest_cells
from mirblab.retrieval import rerank, systems
from mirblab.sources import catalogue, metamath
from mirblab.train import recipes

# Numbers depend on the versions of these.
LIBRARIES = (
    "mirblab numpy pandas scipy matplotlib torch sentence-transformers transformers bm25s rank-bm25 PyStemmer "
    "umap-learn scikit-learn numba seaborn"
).split()
# What a text may name, each kind with a function that returns what determines it.
_DESCRIBE: dict[str, Callable[[str], Any]] = {
    "system": lambda name: systems.system(name).key,
    "encoder": lambda name: encoder(name).key,
    "reranker": rerank.reranker_settings,
    "recipe": lambda name: recipes.recipe(name).determining(),
}
# The parameters that name models, and the kind of these.
_MODEL_KINDS = {"encoder": "encoder", "encoders": "encoder", "recipes": "recipe", "reranker": "reranker"}


def output_key(
    notebook: Path | None,
    parameters: dict[str, Any],
    contents: dict[str, bytes] | None = None,
    root: Path | None = None,
) -> str:
    """Return the hash of everything that determines the outputs: notebook, parameters, data, files, models and code.

    *notebook* None: its file is unknown. *contents* caches the digests of data by name. Paths among the parameters are
    relative to *root* (None: the notebook's folder).
    """
    contents = {} if contents is None else contents
    digest = hashlib.blake2b(_notebook_digest(notebook) if notebook else b"", digest_size=16)
    for name, path in _data(parameters, root or (notebook.parent if notebook else Path.cwd())).items():
        if name not in contents:
            contents[name] = paths.content_digest(path or catalogue.collection_folder(name))
        digest.update(contents[name])
    parts = [parameters, [systems.system(name).key for name in systems_in(parameters)], models_in(parameters)]
    parts.append({text: _meanings(text) for text in _texts(parameters)})
    digest.update(json.dumps(parts, sort_keys=True).encode() + code_digest())
    return digest.hexdigest()


def _notebook_digest(notebook: Path) -> bytes:
    """Return what changes with the cells of a notebook, and not with what JupyterLab writes into it unasked."""
    content = notebook.read_bytes()
    try:
        return digest_cells(json.loads(content)).encode()
    except (ValueError, KeyError, TypeError):
        return content


def collections_in(parameters: dict[str, Any]) -> list[str]:
    """Return the collections that the parameters for collections name.

    >>> collections_in({"collection": "mini-qa", "collections": ["mini-hol", "mini-qa"], "depth": 10})
    ['mini-qa', 'mini-hol']
    """
    return _names_under(parameters, NAME_KEYS["collection"])


def systems_in(parameters: dict[str, Any]) -> list[str]:
    """Return the systems that the parameters for systems name."""
    return _names_under(parameters, NAME_KEYS["system"])


def measures_in(parameters: dict[str, Any]) -> list[str]:
    """Return the measures that the parameters for measures name."""
    return _names_under(parameters, NAME_KEYS["measure"])


def models_in(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return everything that determines the encoders, recipes and rerankers that the parameters name."""
    found = {}
    for parameter, kind in _MODEL_KINDS.items():
        if named := parameters.get(parameter):
            describe = _DESCRIBE[kind]
            found[parameter] = {name: describe(name) for name in named} if isinstance(named, list) else describe(named)
    return found


def _meanings(text: str) -> dict[str, Any]:
    """Return what determines the system, encoder, reranker and recipe that a text names; empty for another text."""
    found = {}
    for kind, describe in _DESCRIBE.items():
        with suppress(ValueError, OSError):  # MirblabError is a ValueError
            found[kind] = describe(text)
    return found


def _texts(parameters: Mapping[str, Any]) -> list[str]:
    """Return the distinct texts that are values of parameters, alone or in lists."""
    values = [item for value in parameters.values() for item in (value if isinstance(value, list) else [value])]
    return list(dict.fromkeys(text for text in values if isinstance(text, str) and text))


def _names_under(parameters: dict[str, Any], keys: tuple[str, ...]) -> list[str]:
    """Return the distinct names that are the values of *keys*, alone or in lists."""
    values = [parameters[key] for key in keys if parameters.get(key)]
    return list(dict.fromkeys(name for value in values for name in (value if isinstance(value, list) else [value])))


@lru_cache
def current_commit() -> str:
    """Return the checkout's commit, with "+changes" if files differ from it, or "" outside a checkout."""
    root = paths.checkout_root()

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout

    try:
        changes = root and git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD").strip() + ("+changes" if changes else "") if root else ""
    except (OSError, subprocess.CalledProcessError):
        return ""


@lru_cache
def library_versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that numbers depend on."""
    import platform

    return {"python": platform.python_version()} | _versions(LIBRARIES)


def _data(parameters: dict[str, Any], root: Path) -> dict[str, Path | None]:
    """Return the collections, with None, and the existing files and folders that any parameter names."""
    texts, known = _texts(parameters), set(catalogue.collection_names())
    sources: dict[str, Path | None] = dict.fromkeys([*collections_in(parameters), *filter(known.__contains__, texts)])
    for text in texts:
        path = root / paths.expand_home(text)
        if text not in sources and os.path.exists(path):  # a run file, a table, a folder of LaTeX
            sources[str(path)] = path
    for path in _files_beside(parameters, root):
        sources.setdefault(str(path), path)
    return sources


def _files_beside(parameters: Mapping[str, Any], root: Path) -> Iterator[Path]:
    """Yield the files that a notebook finds by a name alone: a database, and tables beside that of the source."""
    if database := parameters.get("database"):
        with suppress(MirblabError):
            yield metamath.find_database(database)
    if source := parameters.get("source"):
        folder = (root / paths.expand_home(str(source))).parent
        for name in filter(None, (parameters.get(key) for key in ("queries", "qrels"))):
            if os.path.isfile(folder / str(name)):
                yield folder / str(name)


@lru_cache
def code_digest() -> bytes:
    """Return the hash of mirblab's code, registry and bundled data, and of the versions of all libraries it needs.

    Each file of the package counts, since outputs also depend on templates, which are no code.
    """
    digest = hashlib.blake2b(digest_size=16)
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*")):
        inner = path.relative_to(root)
        if path.is_file() and not {"__pycache__", "bundled"} & set(inner.parts) and path.name[0] != ".":
            digest.update(inner.as_posix().encode() + path.read_bytes())
    for name in ("examples", "mini"):
        digest.update(paths.content_digest((paths.checkout_root() or root / "bundled") / "data" / name))
    with suppress(PackageNotFoundError):  # a checkout that nobody installed
        needed = [Requirement(line).name for line in requires("mirblab") or []]
        digest.update(json.dumps(_versions(needed), sort_keys=True).encode())
    digest.update(json.dumps(library_versions(), sort_keys=True).encode())
    return digest.digest()


def _versions(libraries: list[str]) -> dict[str, str]:
    versions = {}
    for library in libraries:
        with suppress(PackageNotFoundError):
            versions[library] = version(library)
    return versions


SUITE_RUN = "MIRBLAB_SUITE_RUN"  # environment variable of a notebook that a batch runs: suite, notebook and part
_INJECTED = "# Parameters\n"  # the first line of the cell that papermill adds


@lru_cache
def notebook_parameters(notebook: Path) -> dict[str, Any]:
    """Return the names and defaults of a notebook's only cell of parameters."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]  # nbformat takes two seconds to import
    tagged = ["".join(cell["source"]) for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    if len(tagged) != 1:
        raise MirblabError(f"{notebook.name} has {len(tagged)} cells tagged 'parameters'; exactly one is needed")
    return parse_parameters(tagged[0], notebook.name)


def parse_parameters(source: str, notebook: str) -> dict[str, Any]:
    """Return the names and defaults of a cell of annotated literals; MirblabError names the *notebook* otherwise.

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
    """Raise MirblabError for an unknown parameter, or one of another type than the default (int for float passes)."""
    for key, value in values.items():
        check_known("parameter", key, defaults)
        default = defaults[key]
        fits = isinstance(value, type(default)) or (isinstance(default, float) and isinstance(value, int))
        if not fits or isinstance(value, bool) != isinstance(default, bool):
            wanted, given = type(default).__name__, type(value).__name__
            raise MirblabError(f"{notebook}: the parameter '{key}' must be a {wanted}, found the {given} {value!r}")
        if isinstance(value, list) and value and default and not all(type(item) is type(default[0]) for item in value):
            raise MirblabError(f"{notebook}: '{key}' must list values like {default[0]!r}, found {value!r}")


def clean_parameters(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the *values* with lists and names as the notebook compares them with those of its tables.

    What people type in place of a list becomes one: a text is split at its commas, or read as a literal. Names of
    collections, systems and measures that are understood are written as their tables have them; others stay, and are
    refused later.

    >>> clean_parameters({"collections": "mini-qa, Mini-WFB", "depths": "10,20"}, {"collections": [], "depths": [5]})
    {'collections': ['mini-qa', 'mini-wfb'], 'depths': [10, 20]}
    >>> clean_parameters({"depths": (10, 20), "weights": 1}, {"depths": [5], "weights": [0.3]})
    {'depths': [10, 20], 'weights': [1.0]}
    >>> clean_parameters({"systems": "['BM25+minilm@0.3,0.7']", "measure": "MRR"}, {"systems": [], "measure": "AP"})
    {'systems': ['bm25+minilm@0.3,0.7'], 'measure': 'RR'}
    """
    cleaned = {}
    for key, value in values.items():
        read = _as_list(value, defaults[key]) if isinstance(defaults.get(key), list) else value
        for kind, keys in NAME_KEYS.items():
            if key in keys:
                read = [_clean_name(kind, item) for item in read] if isinstance(read, list) else _clean_name(kind, read)
        cleaned[key] = read
    return cleaned


@lru_cache
def _table_name(kind: str, name: str) -> str:
    if kind == "system":
        return systems.system(name).name
    if kind == "measure":
        return str(parse_measure(name))
    return registry.match_name(name, catalogue.known_collections())


def _clean_name(kind: str, given: Any) -> Any:
    """Return a name as tables have it; what is no name, and a name that is not known, as it is."""
    try:
        return _table_name(kind, given) if isinstance(given, str) and given else given
    except (MirblabError, OSError):
        return given


# The parameters that name collections, systems and measures.
NAME_KEYS = {
    "collection": ("collection", "collections", "compared_with", "mirb"),
    "system": ("system", "systems", "baseline", "fused", "rater", "dense", "parts"),
    "measure": ("measure", "measures"),
}


def _as_list(value: Any, default: list[Any]) -> Any:
    if isinstance(value, str):
        return _split(value, default)
    is_number = default and isinstance(default[0], int | float) and isinstance(value, int | float)
    # A tuple is what `--set depths=5,10` is read as.
    items = list(value) if isinstance(value, tuple) else [value] if is_number else value
    if default and type(default[0]) is float and isinstance(items, list):
        items = [float(item) if type(item) is int else item for item in items]
    return items


def _split(text: str, default: list[Any]) -> Any:
    try:
        if text.lstrip().startswith("["):
            return ast.literal_eval(text)
        return [type(default[0] if default else "")(item.strip()) for item in text.split(",") if item.strip()]
    except (ValueError, SyntaxError):
        return text  # of which `check_types` says what is wrong


def check_parameters() -> None:
    """Raise MirblabError when this notebook was given an unknown parameter, or a value of another type.

    Papermill alone only logs a misspelt name and uses the default. Lists and names are replaced by those of
    `clean_parameters`, so that `papermill -p systems BM25,MiniLM` works. Outside a notebook nothing is checked. From
    then on a warning of this library is shown in the notebook as one line, once, instead of a block on standard error.

    >>> check_parameters()
    """
    defaults, given = current_parameters()
    if is_notebook():
        from IPython import get_ipython

        get_ipython().user_ns.update(defaults | given)
        _show_warnings_as_notes()


def _show_warnings_as_notes() -> None:
    from IPython.display import HTML, display

    shown: set[str] = set()
    show_otherwise = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], filename: str, *rest: Any, **named: Any) -> None:
        if not category.__module__.startswith("mirblab."):
            show_otherwise(message, category, filename, *rest, **named)
        elif str(message) not in shown:
            shown.add(str(message))
            display(HTML(f'<p style="opacity:0.75">Note: {escape_html(str(message))}</p>'))

    warnings.showwarning = show


def current_parameters() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the running notebook's defaults and the values from papermill; both empty elsewhere.

    They are read from the executed cells: the last one of annotated literals, and papermill's after it. Raises
    MirblabError as `check_parameters` does.
    """
    cells = _cells()
    for number in reversed(range(len(cells))):
        try:
            defaults = parse_parameters(cells[number], "this notebook")
        except (ValueError, SyntaxError):  # MirblabError is a ValueError
            continue
        if defaults:
            injected = _assigned(cells[number + 1]) if cells[number + 1 : number + 2] else {}
            given = clean_parameters(injected, defaults)
            check_types(given, defaults, "this notebook")
            return clean_parameters(defaults, defaults), given
    return {}, {}


def is_notebook() -> bool:
    """Return whether this code runs in IPython, which shows what is printed."""
    return bool(_cells())


def _cells() -> list[str]:
    if "IPython" not in sys.modules:
        return []
    from IPython import get_ipython

    shell = get_ipython()
    return [str(cell) for cell in shell.user_ns.get("In", [])] if shell is not None else []


def _assigned(source: str) -> dict[str, Any]:
    """Return what papermill's cell assigns, nothing for another cell; what is no literal, as float('nan'), is text."""
    values = {}
    for node in ast.parse(source).body if source.startswith(_INJECTED) else []:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                values[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                values[node.targets[0].id] = ast.unparse(node.value)
    return values


RECORD = "run.json"
_LONGEST = 60  # characters of a folder's name that name the differing parameters


@dataclass(frozen=True)
class HandRun:
    """A run of a notebook by hand: *name* in the list, folder, parameters, time, key, and working folder."""

    name: str
    folder: Path
    notebook: str
    parameters: dict[str, Any]
    made: str
    key: str
    root: str

    def state(self, contents: dict[str, bytes]) -> str:
        """Return whether its data and code have changed; *contents* is as for `output_key`."""
        if not self.key:
            return "its data and code are unknown"
        is_same = hand_run_key(self.notebook, self.parameters, Path(self.root), contents) == self.key
        return "data and code unchanged" if is_same else "data or code changed since"


def hand_runs_folder() -> Path:
    """Return the folder of the outputs of runs by hand: `<home>/figures/_by_hand`."""
    return paths.figures() / "_by_hand"


def hand_run_folder(notebook: str, parameters: Mapping[str, Any], defaults: Mapping[str, Any]) -> Path:
    """Return the folder of a run by hand, named after the parameters that differ from *defaults* and a hash of all."""
    differing = {name: value for name, value in parameters.items() if name not in defaults or defaults[name] != value}
    texts = {name: "+".join(map(str, v)) if isinstance(v, list) else str(v) for name, v in differing.items()}
    shown = "_".join(f"{name}-{text}" for name, text in texts.items()) or "defaults"
    safe = re.sub(r"[^A-Za-z0-9.+_-]+", "-", shown)[:_LONGEST].strip("-.+_")
    digest = hashlib.blake2b(json.dumps(parameters, sort_keys=True).encode(), digest_size=6).hexdigest()
    return hand_runs_folder() / paths.checked_name(notebook) / f"{safe}-{digest}"


def notebook_defaults(notebook: str) -> dict[str, Any]:
    """Return the defaults of one of the project's notebooks; nothing for any other."""
    path = _notebook_file(notebook)
    return notebook_parameters(path) if path else {}


def hand_run_key(
    notebook: str, parameters: dict[str, Any], root: Path, contents: dict[str, bytes] | None = None
) -> str:
    """Return the `output_key` of a run in the working folder *root*, "" if it cannot be computed."""
    defaults = notebook_defaults(notebook)
    try:
        if defaults:
            check_types(parameters, defaults, notebook)
        return output_key(_notebook_file(notebook), parameters, contents, root)
    except (MirblabError, FileNotFoundError, TypeError):
        return ""


def record_hand_run(folder: Path, notebook: str, parameters: dict[str, Any]) -> None:
    """Write the record of a run by hand into its *folder*."""
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    record = {"notebook": notebook, "parameters": parameters, "made": now, "root": str(Path.cwd())}
    record["key"] = hand_run_key(notebook, parameters, Path.cwd())
    text = json.dumps(record, indent=1) + "\n"
    atomic_files.try_to_store("tables and figures", atomic_files.write_text, folder / RECORD, text, full_is_error=True)


def list_hand_runs() -> list[HandRun]:
    """Return the runs by hand, sorted by name; links and folders without a valid record are left out."""
    runs = [_read(path.parent) for path in sorted(hand_runs_folder().glob(f"*/*/{RECORD}"))]
    return [run for run in runs if run is not None]


def remove_hand_runs(names: list[str]) -> list[HandRun]:
    """Remove runs by hand, "all" or by name, and return them; MirblabError for an unknown name before any removal."""
    runs = {run.name: run for run in list_hand_runs()}
    check_known("run by hand", (name for name in names if name != "all"), runs)
    chosen = [run for run in runs.values() if run.name in names or "all" in names]
    for run in chosen:
        atomic_files.remove_path(run.folder)
        with suppress(OSError):  # the folder of the notebook holds other runs
            run.folder.parent.rmdir()
    return chosen


def _read(folder: Path) -> HandRun | None:
    if folder.is_symlink() or folder.parent.is_symlink():
        return None
    name = f"{folder.parent.name}/{folder.name}"
    try:
        run = HandRun(name=name, folder=folder, **json.loads((folder / RECORD).read_text("utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    texts = (run.notebook, run.made, run.key, run.root)
    return run if all(isinstance(text, str) for text in texts) and isinstance(run.parameters, dict) else None


def _notebook_file(notebook: str) -> Path | None:
    try:
        return paths.bundled_path("notebooks", f"{paths.checked_name(notebook)}.ipynb")
    except FileNotFoundError:
        return None
