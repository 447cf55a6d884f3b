"""The hash of the code that makes a run covers all of that code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mirblab import rooms, systems

PACKAGE = Path(rooms.__file__).parent
ENTRIES = {
    "bm25": ["lexical"],
    "dense": ["dense"],
    "late": ["late_search"],
    "structure": ["formula/search"],
    "approach0": ["formula/approach0"],
    "fusion": ["fusion"],
    "rerank": ["rerank"],
    "imported": ["results"],
}
# These load, check, name and show; or, as encoders, are in the key by their own settings.
NEUTRAL = {"errors", "paths", "progress", "registry", "lines", "folder", "oddities", "card", "collection", "encode",
           "engine", "sources", "trec", "damage", "disk", "family", "import_record", "json_text", "partials",
           "network", "spaces"}  # fmt: skip


def imported(path: Path) -> set[str]:
    """Return the modules of the package that a module imports, as paths without their suffix."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mirblab":
            base = node.module.replace(".", "/").removeprefix("mirblab").strip("/")
            found |= {base, *(f"{base}/{alias.name}".strip("/") for alias in node.names)}
    return {name for name in found if (PACKAGE / f"{name}.py").is_file()}


def reached(entries: list[str]) -> set[str]:
    """Return all that the entries import, directly or not, without what is neutral."""
    found, waiting = set(), list(entries)
    while waiting:
        name = waiting.pop()
        if name not in found and name.split("/")[0] not in NEUTRAL:
            found.add(name)
            waiting += imported(PACKAGE / f"{name}.py")
    return found


@pytest.mark.parametrize("kind", ENTRIES)
def test_every_module_that_makes_a_run_is_in_its_hash(kind: str):
    """Else changed code would answer with an old run."""
    covered = {path.relative_to(PACKAGE).as_posix().removesuffix(".py") for path in rooms.files(kind)}
    assert not reached(ENTRIES[kind]) - covered


def test_every_kind_of_system_has_a_room():
    """And no room is for nothing; each name stands for a file."""
    assert set(rooms.ROOMS) == set(ENTRIES) == set(systems._KINDS)
    for kind, names in rooms.ROOMS.items():
        assert all(list(PACKAGE.glob(f"{name}.py")) for name in names), kind


def test_changed_code_changes_the_hash(tmp_path, monkeypatch):
    """Also in a sub-package; how lines end does not."""
    for name in ("one.py", "deep/two.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"a = 1\n")
    monkeypatch.setattr(rooms, "_HERE", tmp_path)
    monkeypatch.setattr(rooms, "ROOMS", {"own": ("one", "deep/*")})

    def code() -> str:
        rooms.code.cache_clear()
        return rooms.code("own")

    first = code()
    (tmp_path / "deep/two.py").write_bytes(b"a = 1\r\n")
    assert code() == first
    (tmp_path / "deep/two.py").write_bytes(b"a = 2\n")
    assert code() != first
    rooms.code.cache_clear()
