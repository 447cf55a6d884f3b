"""Every store is in one table, from which `mirblab cache` lists, verifies, sweeps and removes, and doctor tells."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hasty_writer import hasty_writer

import mirblab
from mirblab.app import console, stores
from mirblab.core import paths
from mirblab.core.atomic_files import unfinished_name
from mirblab.core.errors import MirblabError
from mirblab.encoders import cache
from mirblab.encoders.cache import VectorStore
from mirblab.encoders.hosted import limits
from mirblab.retrieval import bm25

SPACE = {"model": "x", "dimensions": 2}
PACKAGE = Path(mirblab.__file__).parent
OTHERS = {"registry", "judgements"}  # what the user wrote


def filled(home: Path) -> None:
    """Put a stranger into every store."""
    for store in stores.STORES:
        path = store.path if store.path.suffix else store.path / "note.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")


def test_every_folder_of_the_cache_is_in_the_table() -> None:
    """Whatever a module puts below the cache or the home is listed, or it is known why not."""
    places = {store.place for store in stores.STORES}
    found = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text("utf-8")
        found |= {f"cache/{name}" for name in re.findall(r'paths\.cache\(\) / "([^"]+)"', text)}
        found |= {name for name in re.findall(r'paths\.home\(\) / "([^"]+)"', text)}
    assert found == places - {"models"} | OTHERS  # `paths.models` names that one


@pytest.mark.parametrize("store", stores.STORES, ids=lambda store: store.name)
def test_every_store_verifies_itself_and_never_ends_in_a_traceback(store: stores.Store, home: Path) -> None:
    """Absent, empty, full of strangers, and a file where the folder should be: lines, not errors."""
    assert callable(getattr(import_module(store.module), store.verify_with)) and store.verify() == [] == store.older()
    store.path.parent.mkdir(parents=True)
    if not store.path.suffix:
        store.path.mkdir()
        assert store.verify() == [] == store.older()
        for name in ("note.txt", "x.parquet", "x.json", "x.jsonl", ".hidden"):
            (store.path / name).write_bytes(b"\xff[")
        for name in ("folder", "folder.safetensors", "000001"):
            (store.path / name).mkdir()
            (store.path / name / "manifest.json").write_bytes(b"[" * 3000)
        unfinished_name(store.path / "new").write_bytes(b"half")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert any("note.txt" in line for line in store.verify())
            assert store.older() == []
    else:
        store.path.write_bytes(b"\xff[")
        assert str(store.path) in store.verify()[0]
    store.remove()
    store.path.write_bytes(b"no folder")
    assert [str(store.path) in line for line in store.verify()] == [True] * bool(store.path.suffix)
    assert store.older() == []


def test_all_removes_only_what_is_made_again_by_itself(home: Path) -> None:
    """Models, imported results, answers and bills go by name alone."""
    filled(home)
    removed = list(stores.remove_store("all"))
    apart = [store for store in stores.STORES if not store.is_made_again]
    assert [store.name for store in apart] == ["replies", "spending", "models", "results"]
    assert len(removed) == len(stores.STORES) - len(apart) and "removed" in removed[0]
    assert all(store.path.exists() == (store in apart) for store in stores.STORES)
    for store in apart:
        assert list(stores.remove_store(store.name)) == [f"removed {store.path}"] and not store.path.exists()


@pytest.mark.attacks
def test_a_store_behind_a_link_is_not_said_to_be_removed(home: Path, tmp_path: Path) -> None:
    """What it points to is outside of the home: nothing is removed, and that is what is said."""
    filled(home)
    elsewhere = tmp_path / "elsewhere"
    stores.STORES[0].path.rename(elsewhere)
    stores.STORES[0].path.symlink_to(elsewhere)
    with pytest.raises(MirblabError, match="1 of 1 could not be removed"):
        lines = []
        lines += stores.remove_store("vectors")
    (line,) = _until_error("vectors")
    assert f"vectors is a link to {elsewhere}, and nothing was removed" in line
    assert (elsewhere / "note.txt").exists() and stores.STORES[0].path.is_symlink()
    assert len(_until_error("all")) == 9  # the others went


def _until_error(name: str) -> list[str]:
    lines = []
    with pytest.raises(MirblabError, match="could not be removed"):
        for line in stores.remove_store(name):
            lines.append(line)  # noqa: PERF402
    return lines


def test_what_cannot_be_removed_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path, and why; the command fails."""
    filled(home)

    def refuse(path: str | Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(paths.shutil, "rmtree", refuse)
    (line,) = _until_error("runs")
    assert f"{home / 'cache' / 'runs'} cannot be removed: Permission denied" in line


def test_parts_of_all_stores_can_be_removed(home: Path, abandoned: Callable[[Path], Path]) -> None:
    """What an older version made, what was set aside, what is unfinished; the rest stays."""
    store = VectorStore(paths.cache() / "vectors", SPACE)
    store.append(["a"], np.ones((1, 2)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "FORMAT", "mirblab-vectors-2")
        old = VectorStore(paths.cache() / "vectors", SPACE)
        old.append(["a", "b"], np.ones((2, 2)))
    aside = store.path / "x.safetensors.damaged"
    aside.write_bytes(b"x")
    left, elsewhere = abandoned(paths.models() / "m"), paths.figures() / "mini" / ".0123.partial.a.png"
    for path in (left, elsewhere):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"half")
    said = [found for found, _ in stores.removal_advice()]
    assert [line.split(",")[0] for line in said] == [
        "2 vectors made by an older version", "1 damaged files set aside",
        "1 left half-written by a process that was killed", "1 half-written by another machine",
    ]  # fmt: skip
    assert list(stores.remove_store("old")) == [f"removed {old.path}"]
    assert list(stores.remove_store("damaged")) == [f"removed {aside}"]
    assert stores.remove_left_overs() == [left]
    assert list(stores.remove_store("partial")) == [f"removed {elsewhere}"]
    assert stores.removal_advice() == [] and len(store.missing(["a"])) == 0


def test_the_counts_of_a_stopped_build_can_be_removed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would stay for ever where the build never goes on; those of a running build stay."""
    monkeypatch.setattr(bm25, "PART_DOCS", 1)
    while_building = list[list[tuple[str, str]]]()

    def documents(first: int) -> Iterator[list[str]]:
        yield from (["ring"], ["knot"])
        while_building.append(stores.removal_advice())
        raise KeyboardInterrupt

    folder = paths.cache() / "postings" / "0123"
    with pytest.raises(KeyboardInterrupt):
        bm25.build_index(documents, folder)
    [(line, command)] = stores.removal_advice()
    assert while_building == [[]] and command == "mirblab cache --remove old"
    assert line.startswith("1 indexes of terms whose build was stopped, ") and line.endswith("are read when it goes on")
    assert list(stores.remove_store("old")) == [f"removed {folder.with_name('0123.counts')}"]
    assert stores.removal_advice() == [] and not list(folder.parent.iterdir())


def test_the_command_lists_verifies_and_sweeps_every_store(
    home: Path, abandoned: Callable[[Path], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its status says whether something was wrong."""
    assert console.print_stores(long=True) == 0 and console.print_stores(verify=True) == 0
    out = capsys.readouterr().out
    assert all(store.name in out for store in stores.STORES)
    left = abandoned(paths.cache() / "structure" / "0f" / "000001")
    left.mkdir(parents=True)
    (paths.cache() / "structure" / "note[red].txt").write_text("x", encoding="utf-8")
    assert console.print_stores(verify=True) == 1 and not left.exists()
    out = capsys.readouterr().out
    assert "note[red].txt does not belong here" in out and "problems: 1; left-overs removed: 1" in out
    with pytest.raises(MirblabError, match="did you mean 'structure'"):
        console.print_stores(remove="structur")


def test_the_table_is_light_and_the_help_is_made_from_it() -> None:
    """`mirblab --help` imports no store."""
    tree = ast.parse(Path(stores.__file__).read_text("utf-8"))
    modules = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert {module for module in modules if module.startswith("mirblab.")} == {"mirblab.core", "mirblab.core.errors"}
    assert all(store.name in stores.describe_parts() for store in stores.STORES)
    assert all(part in stores.describe_parts() for part in stores.PARTS)


@pytest.mark.parametrize("paid", ["NaN", "Infinity", "-1", '"1"', "true", "[]"])
def test_a_bill_that_is_no_sum_is_refused(home: Path, paid: str) -> None:
    """NaN would let everything through: no sum is larger than it."""
    path = paths.cache() / "spending" / "1.json"
    path.parent.mkdir(parents=True)
    path.write_text(f'{{"model": "m", "paid": {paid}, "pending": 0}}', encoding="utf-8")
    with pytest.raises(MirblabError, match=r"1\.json cannot be read .*; delete it to forget what it counts"):
        limits.sum_spending(path.parent)
    assert len(limits.verify(path.parent)) == 1


def test_the_size_of_a_store_is_told_while_its_files_come_and_go(tmp_path: Path) -> None:
    """As when a batch writes: what is gone since it was listed counts nothing."""
    (tmp_path / "stays").write_bytes(b"xyz")
    with hasty_writer(tmp_path):
        sizes = [stores.disk_size(tmp_path) for _ in range(100)]
    assert min(sizes) >= 3 and stores.disk_size(tmp_path) == 3
