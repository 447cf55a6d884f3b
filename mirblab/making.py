"""making: all that determines what a notebook makes: itself, its parameters, the data, the code and its versions."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from mirblab import paths, rerank, shelf, systems, train
from mirblab.encode import encoder

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
    "recipes": lambda names: {name: train.recipe(name).determining() for name in names},
    "reranker": rerank.settings,
}


def key(
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
            contents[name] = paths.content(shelf.where(name) if path is None else path)
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
    return named(parameters, ("collection", "collections", "mirb"))


def systems_in(parameters: dict[str, Any]) -> list[str]:
    """Return the systems that the parameters for systems name."""
    return named(parameters, ("system", "systems", "baseline", "fused", "rater", "dense", "parts"))


def models_in(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return all that determines the encoder and the reranker that the parameters name."""
    return {kind: look(parameters[kind]) for kind, look in MODELS.items() if parameters.get(kind)}


def named(parameters: dict[str, Any], keys: tuple[str, ...]) -> list[str]:
    """Return the texts that stand under *keys*, alone or in lists, each once."""
    found: list[str] = []
    for name in keys:
        value = parameters.get(name, [])
        found += value if isinstance(value, list) else [value] if value else []
    return list(dict.fromkeys(found))


@lru_cache
def commit() -> str:
    """Return the checkout's commit, with "+changes" when files differ from it, or "" outside a checkout."""
    root = paths.checkout()
    if root is None:
        return ""
    try:
        head = _git(root, "rev-parse", "HEAD")
        return head + ("+changes" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


@lru_cache
def versions() -> dict[str, str]:
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
    here = set(shelf.collection_names())
    found: dict[str, Path | None] = dict.fromkeys([*collections_in(parameters), *(one for one in texts if one in here)])
    for text in texts:
        path = root / paths.given(text)
        if text not in found and os.path.exists(path):  # a run file, a table, a folder of LaTeX
            found[str(path)] = path
    return found


@lru_cache
def _code() -> bytes:
    """Return a hash of the package, of the data that ship with it, and of the versions that it runs with."""
    digest = hashlib.blake2b(digest_size=16)
    root = Path(__file__).parent
    for path in sorted([*root.rglob("*.py"), *root.rglob("registry/*")]):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    for name in ("examples", "mini"):
        digest.update(paths.content((paths.checkout() or root / "bundled") / "data" / name))
    with suppress(PackageNotFoundError):  # a checkout that nobody installed
        needed = [Requirement(line).name for line in requires("mirblab") or []]
        digest.update(json.dumps(_versions(needed), sort_keys=True).encode())
    digest.update(json.dumps(versions(), sort_keys=True).encode())
    return digest.digest()


def _versions(libraries: list[str] | tuple[str, ...]) -> dict[str, str]:
    found = {}
    for library in libraries:
        with suppress(PackageNotFoundError):
            found[library] = version(library)
    return found
