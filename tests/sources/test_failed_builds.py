"""Whatever a builder fails at, what was there before is there afterwards, byte for byte, and nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from built_collections import content
from readers import READERS

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.data import digests
from mirblab.sources import catalogue, mini
from mirblab.sources.shared import builder
from mirblab.sources.shared.builder import replace_folders

# Which small input of the fault tests each builder takes; the miniatures have none, and "hard" takes a collection.
INPUTS = {name: name for name in catalogue.BUILDERS} | {
    "mirb": "hub: parquet", "views": "views: json lines", "own": "own: latex",
    "mapl": "mapl: json lines",
}  # fmt: skip
BUILT = [name for name in catalogue.BUILDERS if name not in ("mini", "hard")]


def build(name: str, root: Path) -> Callable[[], list[Path]]:
    """Return the call that builds the collections of a builder's small input into the folder `in-out` beside it."""
    if name == "hard":
        mini.build("mini-stacks", root / "mini-stacks")
        return lambda: catalogue.BUILDERS["hard"](str(root / "mini-stacks"), root.with_name(f"{root.name}-out"), near=1)
    reader = next(one for one in READERS if one.name.startswith(INPUTS[name]))
    reader.prepare(root)
    return lambda: reader.call(root)


@pytest.mark.parametrize("name", [*BUILT, "hard"])
def test_a_failure_at_the_last_steps_leaves_what_was_there(name: str, tmp_path: Path, monkeypatch):
    """At the last check, the last digests, and renames that put a collection in place; then the same call works."""
    call, out = build(name, tmp_path / "in"), tmp_path / "in-out"
    made = call()
    assert all(digests.has_digests(folder) and digests.find_differences(folder) == [] for folder in made)
    for folder in made:
        (folder / "mine.txt").write_text("of an older build")
    before = content(out)
    real = os.replace

    def fail(at: int, kind: type[BaseException]) -> Callable[..., None]:
        left = [at]

        def replace(source, target):
            left[0] -= "partial.build" in f"{source}{target}"
            if left[0] == 0:
                left[0] = -1
                raise kind("the disk has gone")
            return real(source, target)

        return replace

    last = len(made) + (name == "views")  # with the table
    for at, kind in [(2 * last, OSError), (2 * last - 1, KeyboardInterrupt), (1, OSError)]:
        with monkeypatch.context() as patch, pytest.raises(kind):
            patch.setattr(builder, "write_digests", lambda folder: None)
            patch.setattr(os, "replace", fail(at, kind))
            call()
        assert content(out) == before, (at, kind)
    for what in ("read_splits", "write_digests"):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="at the last"):
            patch.setattr(builder, what, _at_the_last(len(made), getattr(builder, what)))
            call()
        assert content(out) == before, what
    assert content(out) != {} and call() == made
    assert content(out) == {file: raw for file, raw in before.items() if not file.endswith("mine.txt")}


def _at_the_last(n: int, real):
    """Return a stand-in that fails the n-th time."""
    calls: list[Path] = []

    def do(folder: Path, *more):
        calls.append(folder)
        if len(calls) == n:
            raise OSError("at the last")
        return real(folder, *more)

    return do


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a killed process is a fork here")
@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_build_that_is_killed_between_two_renames_is_finished_by_the_next_who_looks(
    step: int, make_folder, home: Path
):
    """At each rename of two folders that replace two: nothing is lost, and both are the new ones or both the old."""
    out, names = paths.data(), ("first", "second")
    for folder in (out / name for name in names):
        shutil.copytree(make_folder(card='task = "old"\n'), folder)
    child = os.fork()
    if child == 0:
        _die_at_rename(step, out, names, make_folder(name="other", card='task = "new"\n'))
    os.waitpid(child, 0)
    assert len(list(out.glob(".*.partial.build"))) == 1
    with pytest.raises(MirblabError, match="no collection 'no-such-name'"):
        catalogue.load("no-such-name")
    assert [catalogue.load(name).card.task for name in names] == ["new", "new"]
    assert not list(out.glob(".*"))


def _die_at_rename(step: int, out: Path, names: tuple[str, str], source: Path) -> None:
    """Fill both folders with the collection *source*, and end this process without a word at the given rename."""
    calls, real = [], os.replace

    def replace(one, other):
        calls.extend([one] * ("partial.build" in f"{one}{other}" and Path(one).suffix == ""))
        if len(calls) == step:
            os._exit(9)
        return real(one, other)

    with replace_folders(out, names) as folders:
        for folder in folders:
            shutil.copytree(source, folder, dirs_exist_ok=True)
        os.replace, digests.write_digests = replace, lambda folder: None
    os._exit(0)


def test_every_builder_is_tried():
    """One that is added is tried, too; the miniatures are derived one by one, and made anew when they are not whole."""
    assert {*BUILT, "hard", "mini"} == set(catalogue.BUILDERS)


@pytest.mark.parametrize("source", [name for name in catalogue.BUILDERS if name != "mini"])
def test_an_origin_in_the_home_of_nobody_is_not_found(source: str):
    """The system says that there is no such user by a RuntimeError, which is no answer."""
    with pytest.raises((MirblabError, FileNotFoundError), match="nobody-of-this-name"):
        catalogue.build(source, "~nobody-of-this-name/x")
