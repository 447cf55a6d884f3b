"""Who may lean on whom, as data: an import that is not in this table fails."""

from __future__ import annotations

import ast
import subprocess
import sys
import types
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "mirblab"

FREE = {"damage", "errors", "ids", "json_text", "packed", "paths"}
MAY_IMPORT = {
    "errors": set(),
    "damage": {"paths"},
    "sealed": {"damage", "paths"},
    "stores": FREE,
    "ids": {"errors"},
    "json_text": {"errors"},
    "packed": {"errors"},
    "paths": {"errors"},
    "progress": FREE,
    "registry": FREE,
    "lines": FREE,
    "digests": FREE,
    "folder": FREE | {"lines"},
    "card": FREE,
    "candidates": FREE,
    "rules": FREE,
    "collection": FREE | {"folder", "card", "candidates", "digests", "lines", "rules"},
    "sources": FREE | {"card", "collection", "digests", "folder", "registry", "progress", "lines"},
    "shelf": FREE | {"card", "collection", "digests", "lines", "registry", "sources"},
    "intake": FREE | {"card", "collection", "digests", "lines", "registry", "sources"},
    "builders": FREE | {"sources"},
    "runs": FREE,
    "run_store": FREE | {"runs", "sealed"},
    "measures": {"errors", "runs"},
    "cache": FREE | {"progress"},
    "api": FREE | {"progress"},
    "formula": FREE | {"best", "family", "candidates", "collection", "lines", "progress", "registry", "rules", "runs"},
    "encode": FREE | {"digests", "api", "cache", "formula", "progress", "registry"},
    "late": FREE | {"best", "cache", "candidates", "collection", "dense", "encode", "progress", "runs"},
    "best": {"errors"},
    "lexical": FREE | {"best", "candidates", "collection", "formula", "progress", "runs"},
    "dense": FREE | {"best", "candidates", "progress", "runs"},
    "fusion": {"errors", "measures", "progress", "runs"},
    "rerank": FREE | {"collection", "encode", "late", "progress", "registry", "runs"},
    "recipes": {"errors", "fusion", "measures"},
    "rooms": set(),
    "systems": FREE
    | {
        "collection",
        "dense",
        "encode",
        "formula",
        "fusion",
        "late",
        "lexical",
        "recipes",
        "registry",
        "rerank",
        "results",
        "rooms",
        "run_store",
        "runs",
    },
    "train": FREE
    | {"api", "digests", "encode", "formula", "inspection", "late", "lines", "progress", "registry", "shelf", "sources"}
    | {"views"},
    "excerpts": {"formula"},
    "formula_view": FREE | {"formula", "prose", "tables"},
    "instances": FREE | {"lines", "runs"},
    "topic_labels": {"collection", "errors", "lines"},
    "threads": FREE | {"formula", "sources"},
    "views": FREE | {"collection", "digests", "measures", "published", "sources"},
    "models": {"encode", "errors", "registry"},
    "scales": {"collection", "errors", "registry", "tables"},
    "duel": {"collection", "errors"},
    "ablation": {"collection", "errors", "measures", "rerank", "significance", "systems"},
    "significance": {"errors"},
    "features": {"collection", "equivalence", "errors", "formula", "significance"},
    "pairs": {"collection", "errors", "lexical", "measures", "significance", "systems"},
    "grouping": {"errors"},
    "holes": {"collection", "errors", "measures"},
    "equivalence": {"collection", "errors"},
    "projection": FREE | {"neighbours", "sealed"},
    "neighbours": {"errors"},
    "separability": {"errors", "neighbours", "significance"},
    "seeds": {"errors", "significance"},
    "mapview": FREE | {"formula", "plots", "prose"},
    "redrawing": FREE | {"plots"},
    "published": {"errors", "registry"},
    "tables": FREE | {"formula", "prose", "runs"},
    "plots": FREE | {"prose", "tables"},
    "prose": {"formula"},
    "explorer": FREE
    | {
        "candidates",
        "collection",
        "dense",
        "encode",
        "equivalence",
        "formula",
        "fusion",
        "late",
        "lexical",
        "measures",
        "prose",
        "recipes",
        "rerank",
        "runs",
        "scales",
        "systems",
        "tables",
    },
    "lessons": FREE | {"formula", "fusion", "lexical", "measures", "prose", "significance"},
    "moves": FREE | {"collection", "measures", "results", "runs", "significance", "systems"},
    "diff_view": FREE | {"collection", "excerpts", "measures", "moves", "shelf", "significance", "tables"},
    "failures": {
        "collection",
        "encode",
        "equivalence",
        "errors",
        "excerpts",
        "features",
        "formula",
        "inspection",
        "lexical",
        "significance",
        "tables",
    },
    "one_query": FREE
    | {
        "collection",
        "encode",
        "equivalence",
        "excerpts",
        "failures",
        "features",
        "formula",
        "inspection",
        "late",
        "lexical",
        "measures",
        "prose",
        "recipes",
        "scales",
        "significance",
        "systems",
    },
    "parameters": {"errors"},
    "making": FREE | {"encode", "rerank", "shelf", "systems", "train"},
    "by_hand": FREE | {"making", "parameters"},
    "outputs": FREE | {"by_hand", "collection", "making", "parameters", "plots", "results", "systems", "tables"},
    "suites": FREE | {"making", "measures", "parameters", "shelf", "systems"},
    "stamps": FREE | {"suites"},
    "worker": FREE | {"parameters", "stamps", "suites"},
    "family": set(),
    "inspection": FREE | {"best", "collection", "encode", "measures", "progress", "tables"},
    "results": FREE | {"collection", "runs"},
    "imports": FREE | {"collection", "lines", "measures", "registry", "results", "runs", "shelf"},
    "costs": {"errors", "published", "registry"},
    "batch": FREE | {"costs", "encode", "family", "shelf", "stamps", "suites", "systems", "worker"},
    "doctor": FREE | {"api", "encode", "registry", "stores"},
    "console": FREE
    | {"batch", "cache", "costs", "doctor", "measures", "runs", "shelf", "stamps", "stores", "suites", "systems"},
    "welcome": FREE | {"shelf"},
    "__main__": {"cli"},
    "cli": {
        "builders",
        "by_hand",
        "collection",
        "console",
        "diff_view",
        "errors",
        "imports",
        "inspection",
        "intake",
        "lessons",
        "parameters",
        "paths",
        "redrawing",
        "runs",
        "shelf",
        "stamps",
        "stores",
        "suites",
        "threads",
        "train",
        "welcome",
    },
}
ROOM = {
    "spaces": "cache",
    "disk": "paths",
    "network": "errors",
    "partials": "paths",
    "terminal": "errors",
    "toml": "paths",
    "arguments": "cli",
    "train_commands": "cli",
    "diff_command": "cli",
    "figures_command": "cli",
    "likeness": "moves",
    "versus": "moves",
    "moveplot": "plots",
    "contrasts": "failures",
    "query_clusters": "failures",
    "failure_clusters": "failures",
    "failureplot": "plots",
    "query_bounds": "one_query",
    "query_matches": "one_query",
    "query_view": "one_query",
    "rankplot": "plots",
    "doctor_jupyter": "doctor",
    "doctor_machine": "doctor",
    "doctor_models": "doctor",
    "doctor_software": "doctor",
    "diagnosis": "doctor",
    "browsing": "tables",
    "tablehtml": "tables",
    "tablescript": "tables",
    "figurehtml": "plots",
    "ranking": "runs",
    "trec": "runs",
    "shard": "cache",
    "index": "cache",
    "chunks": "encode",
    "engine": "encode",
    "hidden": "encode",
    "late_cost": "late",
    "late_match": "late",
    "late_search": "late",
    "late_shard": "late",
    "late_shrink": "late",
    "late_store": "late",
    "late_tokens": "late",
    "postings": "lexical",
    "judged": "measures",
    "per_query": "measures",
    "escape": "tables",
    "texchars": "tables",
    "marks": "tables",
    "figures": "plots",
    "grids": "plots",
    "oddities": "folder",
    "restrictions": "collection",
    "spellings": "lexical",
    "chargrams": "lexical",
    "tokenizers": "lexical",
    "weights": "lexical",
    "paired": "significance",
    "correlation": "significance",
    "vocabulary": "pairs",
    "partner_tables": "tables",
    "typeset": "tables",
    "shingles": "inspection",
    "near": "inspection",
    "repeats": "inspection",
    "leaks": "inspection",
    "lengths": "inspection",
    "coverage": "inspection",
    "tally": "inspection",
    "findings": "inspection",
    "report_view": "inspection",
    "foreign": "imports",
    "import_record": "results",
    "mteb_json": "imports",
    "deposit": "imports",
    "guess": "imports",
    "averages": "tables",
    "imported": "tables",
    "signs": "tables",
    "matrices": "significance",
    "courier": "api",
    "entries": "encode",
    "fit": "encode",
    "hosted": "api",
    "inputs": "encode",
    "interrupts": "api",
    "limits": "api",
    "refusals": "api",
    "secret": "api",
    "snapshot": "encode",
    "vendors": "api",
    "submission": "instances",
    "matchplot": "plots",
    "strataplot": "plots",
    "mapplot": "plots",
    "mapscript": "mapview",
    "partnerplot": "plots",
    "changeplot": "plots",
    "learnplot": "plots",
    "grades": "measures",
    "voting": "fusion",
    "methods": "fusion",
    "folds": "fusion",
    "tuning": "fusion",
    "provenance": "fusion",
    "origins": "plots",
    "treelayout": "plots",
    "treeplot": "plots",
    "topic_rules": "topic_labels",
}  # modules that belong to a room of another name
MODEL_LIBRARIES = {"torch", "transformers", "sentence_transformers"}
MAY_LOAD_MODELS = {"encode", "rerank", "late", "train", "doctor"}


def room(module: str) -> str:
    return ROOM.get(module, module)


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(source: str) -> tuple[set[str], set[str]]:
    """Return the rooms of this package, and the other libraries, that a module imports anywhere."""
    own, other = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "mirblab":
            found = [f"mirblab.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found = [node.module or ""]
        else:
            continue
        for name in found:
            parts = name.split(".")
            if parts[0] == "mirblab":
                own.add(parts[1] if len(parts) > 1 else "")
            else:
                other.add(parts[0])
    return own, other


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.stem)
def test_a_module_imports_only_what_its_room_may(path: Path):
    """The surplus is named."""
    own, other = imports(path.read_text("utf-8"))
    here = room(name_of(path))
    assert here in MAY_IMPORT, f"{name_of(path)} is in no room; add it to the table"
    surplus = {room(name) for name in own} - MAY_IMPORT[here] - {here}
    assert not surplus, f"{here} may not import {sorted(surplus)}"
    if here not in MAY_LOAD_MODELS:
        assert not other & MODEL_LIBRARIES, f"{here} may not import {sorted(other & MODEL_LIBRARIES)}"


def test_the_check_sees_a_forbidden_import():
    """Tried on a bad module once, for ever."""
    own, other = imports(
        "def f():\n    from mirblab import plots\n    import torch.nn\n    from mirblab.runs import cut\n"
    )
    assert own == {"plots", "runs"} and other == {"torch"}


def test_no_room_leans_on_itself_in_a_circle():
    """The table has an order."""
    placed: set[str] = set()
    while len(placed) < len(MAY_IMPORT):
        ready = {name for name, needs in MAY_IMPORT.items() if name not in placed and needs <= placed}
        assert ready, f"a circle among {sorted(set(MAY_IMPORT) - placed)}"
        placed |= ready


def test_importing_the_package_loads_nothing_heavy():
    """Half a second is the limit; no heavy library means far less."""
    heavy = [
        "torch",
        "sentence_transformers",
        "umap",
        "sklearn",
        "matplotlib",
        "seaborn",
        "numba",
        "bm25s",
        "pandas",
        "scipy",
        "httpx",
        "huggingface_hub",
    ]
    code = f"import sys, mirblab; print([name for name in {heavy!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_every_public_name_has_types_and_a_docstring():
    """And every module says in one sentence what it is for."""
    missing = []
    for path in modules():
        tree = ast.parse(path.read_text("utf-8"))
        if not ast.get_docstring(tree):
            missing.append(f"{path.name}: no docstring")
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                inner = isinstance(node, ast.FunctionDef) and not _is_public_level(tree, node)
                if not inner and not ast.get_docstring(node):
                    missing.append(f"{path.name}:{node.lineno}: {node.name} has no docstring")
                if not inner and isinstance(node, ast.FunctionDef) and node.returns is None:
                    missing.append(f"{path.name}:{node.lineno}: {node.name} has no return type")
    assert not missing, "\n".join(missing)


def _is_public_level(tree: ast.Module, node: ast.FunctionDef) -> bool:
    """Return whether a function stands at the top of a module or of a class, not inside another function."""
    tops = [*tree.body, *(item for top in tree.body if isinstance(top, ast.ClassDef) for item in top.body)]
    return node in tops


def test_the_library_has_no_assert_and_no_bare_except():
    """They vanish under -O, or swallow Ctrl-C."""
    bad = []
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Assert) or (isinstance(node, ast.ExceptHandler) and node.type is None):
                bad.append(f"{path.name}:{node.lineno}")
    assert not bad


def test_every_exported_name_has_an_example_and_hides_no_module():
    """What a user types is shown once, and `from mirblab import x` gives one thing, whoever asked first."""
    import mirblab

    files = {path.stem for path in PACKAGE.glob("*.py")}
    for name in mirblab.__all__:
        found = getattr(mirblab, name)
        if isinstance(found, types.ModuleType):
            continue
        assert name not in files, f"{name} is a module, too"
        assert ">>> " in (found.__doc__ or ""), f"{name} has no example"
