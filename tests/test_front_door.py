"""What notebooks and documentation use of mirblab is public, and the public names are few and shown by example."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import mirblab

ROOT = Path(mirblab.__file__).resolve().parents[1]
PACKAGES = [
    "mirblab",
    "mirblab.display.plots",
    *(
        f"mirblab.{name}"
        for name in "analysis data display encoders evaluation formula lessons retrieval sources train".split()
    ),
]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FENCE = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def sources(path: Path) -> list[str]:
    """Return the Python code of a notebook's cells, or of a page's fences."""
    if path.suffix == ".md":
        return FENCE.findall(path.read_text("utf-8"))
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def is_public(dotted: str) -> bool:
    """Return whether a dotted name is made of packages and public names, up to what is no module.

    >>> is_public("mirblab.load"), is_public("mirblab.data.Candidates.names"), is_public("mirblab.data.candidates")
    (True, True, False)
    """
    thing: object = mirblab
    for name in dotted.split(".")[1:]:
        if not isinstance(thing, types.ModuleType):
            return True
        if f"{thing.__name__}.{name}" in PACKAGES:
            thing = getattr(thing, name)
            continue
        if name not in getattr(thing, "__all__", dir(thing)):
            return False
        thing = getattr(thing, name)
    return True


def used(source: str) -> Iterator[str]:
    """Yield the names of mirblab that some code imports, or takes from `lab`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mirblab":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("mirblab."))
        elif isinstance(node, ast.Attribute) and re.fullmatch(r"lab(\.\w+)+", name := ast.unparse(node)):
            yield f"mirblab{name.removeprefix('lab')}"


@pytest.mark.parametrize("path", [*NOTEBOOKS, *PAGES], ids=lambda path: path.name)
def test_what_is_used_is_public(path: Path) -> None:
    """A reader finds each name by tab completion."""
    assert sorted({name for source in sources(path) for name in used(source) if not is_public(name)}) == []


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_shows_its_public_names_and_nothing_else(name: str) -> None:
    """Not even a module that was imported; and no function hides a module of the same name."""
    package = importlib.import_module(name)
    for module in pkgutil.iter_modules(package.__path__, f"{name}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert sorted(dir(package)) == sorted(package.__all__)
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    hidden = [public for public in package.__all__ if public in modules]
    assert all(isinstance(getattr(package, public), types.ModuleType) for public in hidden)


@pytest.mark.parametrize("name", ["mirblab.retrieval.bm25", "mirblab.retrieval.fusion"])
def test_a_public_module_shows_its_public_names_and_nothing_else(name: str) -> None:
    """Tab completion lists neither numpy nor helpers."""
    module = importlib.import_module(name)
    assert sorted(dir(module)) == sorted(module.__all__)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_callable_has_an_example(name: str) -> None:
    """What a user types is shown once."""
    package = importlib.import_module(name)
    public = {public: getattr(package, public) for public in package.__all__}
    assert [name for name, thing in public.items() if callable(thing) and ">>> " not in (thing.__doc__ or "")] == []


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    """As `lab.evalute`; what begins with an underline is asked for by other programs."""
    with pytest.raises(AttributeError, match="mirblab has no 'evalute'; did you mean 'evaluate'?"):
        mirblab.evalute  # noqa: B018
    assert not hasattr(mirblab, "_repr_html_")


def test_the_front_door_is_small() -> None:
    """The rest stands one level down, in the package where one would look."""
    assert len(mirblab.__all__) <= 39


def test_every_public_package_is_reached_from_lab() -> None:
    """`lab.encoders` is there after `import mirblab as lab`, whatever else was imported."""
    for name in PACKAGES[2:]:
        assert mirblab.__getattr__(name.split(".")[1]) is importlib.import_module(name)
