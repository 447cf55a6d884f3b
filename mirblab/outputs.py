"""outputs: where a notebook's tables and figures go, each with its provenance."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from mirblab import paths, plots, rerank, tables, train
from mirblab.collection import Collection
from mirblab.encode import encoder
from mirblab.systems import System

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


@dataclass
class Outputs:
    """The folder `figures/<suite>/<notebook>/` and what everything in it was made from."""

    folder: Path
    provenance: dict[str, Any] = field(default_factory=dict)

    def figure(self, axes: Any, name: str, *, caption: str, alt: str, table: pd.DataFrame | None = None) -> Any:
        """Save a figure as PDF, PNG and SVG with its numbers and provenance, and return it for display."""
        return plots.save_figure(
            axes, self.folder, name, provenance=self.provenance, caption=caption, alt=alt, table=table
        )

    def table(self, table: tables.Table, name: str) -> tables.Table:
        """Save a table as TeX, Markdown and CSV with its provenance, and return it for display."""
        table.save(self.folder, name, self.provenance)
        return table


def output(
    notebook: str,
    suite: str,
    part: str = "",
    *,
    collections: Sequence[Collection] = (),
    systems: Sequence[System] = (),
    **parameters: Any,
) -> Outputs:
    """Return where the tables and figures of *notebook* land in *suite*, with provenance filled in.

    *part* is a folder of its own, for a notebook that a suite runs several times ("": none).

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
        "models": {kind: look(parameters[kind]) for kind, look in MODELS.items() if parameters.get(kind)},
        "commit": commit(),
        "versions": versions(),
    }
    return Outputs(paths.figures() / suite / notebook / part, provenance)


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


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout.strip()


@lru_cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that numbers depend on."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found
