"""A batch that fails or is killed anywhere is finished by the next one, which calls nothing fresh that is not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from campaign import spread
from notebook_files import WRITE, notebook

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Return a folder with a suite of two notebooks, which write a file each."""
    folder = tmp_path / "notebooks"
    (folder / "suites").mkdir(parents=True)
    for name in ("one", "two"):
        notebook(folder, name, WRITE.format(name=name))
    text = '[[notebook]]\nname = "one"\n[[notebook]]\nname = "two"\n'
    (folder / "suites" / "own.toml").write_text(text, encoding="utf-8")
    return tmp_path


def started(suite: Path, home: Path, fault: str = "") -> subprocess.Popen[str]:
    """Start a batch on *home*, in every process of which the injector is on where there is a *fault*."""
    path = [str(ROOT), *([str(HERE / "everywhere"), str(HERE)] if fault else [])]
    environment = {**os.environ, "MIRBLAB_HOME": str(home), "PYTHONPATH": os.pathsep.join(path)}
    environment |= {"MIRBLAB_FAULT": fault, "JUPYTER_DATA_DIR": str(suite / "jupyter")}
    command = [sys.executable, str(HERE / "batching.py"), str(suite)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def states(process: subprocess.Popen[str]) -> dict[str, str]:
    """Return what a batch says of its notebooks."""
    said, error = process.communicate(timeout=300)
    assert process.returncode == 0, error[-2000:]
    return json.loads(said.splitlines()[-1])


def contents(home: Path) -> dict[str, bytes]:
    """Return the figures of a home, by path, without what holds times."""
    folder = home / "figures" / "own"
    files = sorted(path for path in folder.rglob("*") if path.is_file() and ".partial" not in path.name)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def finished(suite: Path, home: Path, expected: dict[str, bytes]) -> list[str]:
    """Return what is wrong after another batch, and whether one more would have something to do."""
    again = states(started(suite, home))
    more = again.pop("stale")
    wrong = [f"again: {name}: {state}" for name, state in again.items() if not state.startswith("ran")]
    if contents(home) != expected:
        wrong.append(f"other files: {sorted(contents(home))}")
    return [*wrong, f"not fresh: {more}"] if more else wrong


@pytest.mark.faults
@pytest.mark.parametrize("part", range(5))
def test_fifty_faults_in_a_batch_harm_nothing(suite: Path, figures: Callable[..., None], part: int) -> None:
    """In the batch, in a notebook's process or in its kernel, whichever comes to the call first."""
    home = suite / "home"
    alone = states(started(suite, home, f"0 none {home}"))
    assert not alone.pop("stale") and all(state.startswith("ran") for state in alone.values())
    expected = contents(home)
    n_events = max(path.stat().st_size for path in Path(f"{home}.events").iterdir())
    faults = [(number, action) for number in range(1, n_events + 1) for action in ("kill", "full", "broken", "torn")]
    for number, action in list(spread(faults, 50))[part::5]:
        for folder in (home, Path(f"{home}.events")):
            shutil.rmtree(folder, ignore_errors=True)
        process = started(suite, home, f"{number} {action} {home}")
        error = process.communicate(timeout=300)[1]
        is_crash = process.returncode not in (0, 137) and "MirblabError" not in error and "StorageError" not in error
        wrong = [error[-1000:]] if is_crash else []
        wrong += finished(suite, home, expected)
        figures("failed or killed at every call", operations=1, faults=1, wrong=len(wrong), crashes=int(is_crash))
        assert wrong == [], f"{action} at call {number}"


@pytest.mark.faults
def test_two_batches_at_once_do_no_harm(suite: Path, figures: Callable[..., None]) -> None:
    """On one home; what they leave is fresh, and is what one leaves."""
    for name in ("alone", "shared"):
        running = [started(suite, suite / name) for _ in range(1 + (name == "shared"))]
        found = [state for process in running for name, state in states(process).items() if name != "stale"]
        assert all(state.startswith(("ran", "fresh")) for state in found), found
    figures("several processes at once", operations=2)
    assert finished(suite, suite / "shared", contents(suite / "alone")) == []
