"""The order of the packages, the width of folders, the front door, and what importing costs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest

import mirblab

PACKAGE = Path(mirblab.__file__).resolve().parent
# Each imports only from itself and from those before it.
PACKAGES = ["core", "data", "sources", "formula", "evaluation", "encoders", "retrieval", "display", "analysis", "train",
            "lessons", "app"]  # fmt: skip
MODEL_LIBRARIES = {"torch", "transformers", "sentence_transformers"}
MAY_LOAD_MODELS = ("encoders.", "retrieval.rerank", "train.", "app.doctor")
ONE_SHAPE = {"sources", "lessons.checks"}  # folders whose files have one shape, and may be many
HEAVY = ("torch", "sentence_transformers", "umap", "sklearn", "matplotlib", "seaborn", "numba", "bm25s", "pandas",
         "scipy", "httpx", "huggingface_hub")  # fmt: skip


@lru_cache
def trees() -> dict[str, ast.Module]:
    """Return every module of the package, parsed once, by its name below `mirblab`."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): ast.parse(path.read_text("utf-8")) for path in paths
    }


def imported(tree: ast.AST) -> set[str]:
    """Return the dotted names of all that a module imports anywhere, `from a import b` as a.b.

    >>> sorted(imported(ast.parse("import os.path\\ndef f():\\n    from mirblab.core import paths, text")))
    ['mirblab.core.paths', 'mirblab.core.text', 'os.path']
    """
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def modules_imported(name: str) -> set[str]:
    """Return the modules of this package that a module imports, itself not included."""
    parts = [full.split(".")[1:] for full in imported(trees()[name]) if full.startswith("mirblab.")]
    known = {".".join(part[:end]) for part in parts for end in range(1, len(part) + 1)}
    return {one for one in known if one in trees() and one != name}


def later(package: str, name: str) -> set[str]:
    """Return the packages after *package* of which *name*, a module, imports something."""
    used = {full.split(".")[1] for full in imported(trees()[name]) if full.startswith("mirblab.")}
    return {one for one in used & set(PACKAGES) if PACKAGES.index(one) > PACKAGES.index(package)}


def test_a_module_imports_only_from_its_own_package_and_those_before_it():
    """So that who reads a package needs none that comes after it."""
    packages = {name: name.split(".")[0] for name in trees() if "." in name}
    assert set(packages.values()) <= set(PACKAGES)
    assert {name: later(package, name) for name, package in packages.items() if later(package, name)} == {}


def test_an_import_from_a_later_package_is_seen(monkeypatch: pytest.MonkeyPatch):
    """Also inside a function, and of a package as a whole."""
    bad = ast.parse("def f():\n    from mirblab.display import plots\n    from mirblab import train")
    monkeypatch.setitem(trees(), "core.bad", bad)
    assert later("core", "core.bad") == {"display", "train"}


def test_no_modules_import_each_other_in_a_circle():
    """Whatever is imported inside of functions included."""
    needs = {name: modules_imported(name) for name in trees() if not name.endswith("__init__")}
    done: set[str] = set()
    while len(done) < len(needs):
        ready = {name for name, others in needs.items() if name not in done and others & set(needs) <= done}
        assert ready, f"a circle among {sorted(set(needs) - done)}"
        done |= ready


def test_model_libraries_are_loaded_in_three_places():
    """Encoders, reranking and training; the doctor asks for their versions."""
    for name, tree in trees().items():
        loaded = {full.split(".")[0] for full in imported(tree)} & MODEL_LIBRARIES
        assert not loaded or f"{name}.".startswith(MAY_LOAD_MODELS), (name, loaded)


def test_the_top_of_the_package_is_its_packages():
    """Beside them the front door, the registry, and the mark that types are there."""
    top = {path.name for path in PACKAGE.iterdir() if path.name not in ("__pycache__", "bundled")}
    assert top == {*PACKAGES, "registry", "__init__.py", "__init__.pyi", "__main__.py", "py.typed"}


def test_no_folder_is_wider_than_fifteen():
    """Unless all that lies in it has one shape; packages in it do not count."""
    width = Counter(name.rpartition(".")[0] for name in trees() if not name.endswith("__init__"))
    assert {folder: n for folder, n in width.items() if n > 15 and folder not in ONE_SHAPE} == {}


def test_importing_the_package_loads_nothing_heavy():
    """Half a second is the limit; no heavy library means far less."""
    code = f"import sys, mirblab; print([name for name in {HEAVY!r} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]"


def test_every_public_name_has_types_and_a_docstring():
    """And every module says in one sentence what it is for."""
    missing = [f"{name}: no docstring" for name, tree in trees().items() if not ast.get_docstring(tree)]
    for name, tree in trees().items():
        for node in _public(tree):
            if not ast.get_docstring(node):
                missing.append(f"{name}:{node.lineno}: {node.name} has no docstring")
            if isinstance(node, ast.FunctionDef) and node.returns is None:
                missing.append(f"{name}:{node.lineno}: {node.name} has no return type")
    assert not missing, "\n".join(missing)


def _public(tree: ast.Module) -> list[ast.FunctionDef | ast.ClassDef]:
    """Return the public classes of a module, and its functions and methods that are public.

    Methods of a base class in the same module are left out where they are overridden: they inherit the docstring.
    """
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    methods = {one.name: {node.name for node in one.body if isinstance(node, ast.FunctionDef)} for one in classes}
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for one in (node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")):
        inherited = set().union(*(methods.get(getattr(base, "id", ""), ()) for base in one.bases))
        functions += [node for node in one.body if isinstance(node, ast.FunctionDef) and node.name not in inherited]
    return [node for node in (*classes, *functions) if not node.name.startswith("_")]


def test_the_name_of_an_environment_variable_is_written_once():
    """Elsewhere it is a constant, so that no place reads another variable than the rest."""
    named = Counter(
        node.value
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and re.fullmatch("MIRBLAB_[A-Z_]+", str(node.value))
    )
    assert {"MIRBLAB_BUDGET", "MIRBLAB_THREADS"} <= named.keys() and set(named.values()) == {1}


def test_the_library_has_no_assert_and_no_bare_except():
    """They vanish under -O, or swallow Ctrl-C."""
    bad = [
        f"{name}:{node.lineno}"
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert) or (isinstance(node, ast.ExceptHandler) and node.type is None)
    ]
    assert not bad
