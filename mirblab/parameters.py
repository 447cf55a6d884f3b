"""parameters: what a notebook can be asked for, read from its cell of parameters, and what it was given."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from mirblab.errors import MirblabError, unknown

SUITE_RUN = "MIRBLAB_SUITE_RUN"  # in the environment of a notebook that a batch runs: suite, notebook and part
_INJECTED = "# Parameters\n"  # with which papermill's own cell begins


@lru_cache
def parameters_of(notebook: Path) -> dict[str, Any]:
    """Return names and defaults of a notebook's one parameters cell, which holds only annotated literals."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]  # nbformat takes two seconds to import
    tagged = ["".join(cell["source"]) for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    if len(tagged) != 1:
        raise MirblabError(f"{notebook.name} has {len(tagged)} cells tagged 'parameters'; exactly one is needed")
    return declared(tagged[0], notebook.name)


def declared(source: str, notebook: str) -> dict[str, Any]:
    """Return names and defaults of a cell of parameters; MirblabError, which names the *notebook*, for another cell.

    >>> declared("depth: int = 10  # how many documents", "x.ipynb")
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
    current()


def current() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the defaults of the notebook that runs here, and what it was given besides; empty outside of a notebook.

    They are read from the cells that were run: the last one that holds nothing but annotated literals, and what
    papermill put behind it. Raises MirblabError as `check_parameters` does.
    """
    cells = _cells()
    places = [place for place, cell in enumerate(cells) if _is_of_parameters(cell)]
    if not places:
        return {}, {}
    defaults, given = declared(cells[places[-1]], "this notebook"), {}
    for cell in cells[places[-1] + 1 : places[-1] + 2]:  # papermill's own stands right behind
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
        return bool(declared(source, ""))
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
