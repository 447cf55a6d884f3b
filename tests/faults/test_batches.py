"""A batch that fails or is killed anywhere is finished by the next one, which calls nothing fresh that is not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from campaign import ONE_THREAD, spread
from notebook_files import WRITE, notebook

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PARTS = 2  # in which the faults are shared out among processes


class Batches:
    """A process that runs batches one after another, each on a home and, where it is given, with a fault."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join(map(str, (ROOT, HERE / "everywhere", HERE)))
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": path, "JUPYTER_DATA_DIR": str(folder / "jupyter")}
        command = [sys.executable, str(HERE / "batching.py"), str(folder)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)

    def start(self, home: Path, fault: str = "") -> None:
        """Start a batch; where there is a *fault*, in every process of which the injector is on."""
        assert self.process.stdin is not None
        variables = {"MIRBLAB_HOME": str(home), "MIRBLAB_FAULT": fault and f"{fault} {home}"}
        self.process.stdin.write(json.dumps(variables) + "\n")
        self.process.stdin.flush()

    def end(self) -> dict[str, Any]:
        """Wait for the batch that was started, and return how it ended."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def states(self) -> dict[str, str]:
        """Wait for the batch that was started, which must end well, and return what it says of its notebooks."""
        ended = self.end()
        assert ended["how"] == "finished", ended["said"]
        return ended["states"]


@pytest.fixture
def start_process(tmp_path: Path) -> Iterator[Callable[[], Batches]]:
    """Return a function that starts a process for batches of a suite of two notebooks, which write a file each."""
    folder = tmp_path / "notebooks"
    (folder / "suites").mkdir(parents=True)
    for name in ("one", "two"):
        notebook(folder, name, WRITE.format(name=name))
    text = '[[notebook]]\nname = "one"\n[[notebook]]\nname = "two"\n'
    (folder / "suites" / "own.toml").write_text(text, encoding="utf-8")
    processes: list[Batches] = []

    def start() -> Batches:
        processes.append(Batches(tmp_path))
        return processes[-1]

    yield start
    for batches in processes:
        with batches.process:
            batches.process.kill()


def contents(home: Path) -> dict[str, bytes]:
    """Return the figures of a home, by path, without what holds times."""
    folder = home / "figures" / "own"
    files = sorted(path for path in folder.rglob("*") if path.is_file() and ".partial" not in path.name)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def finish(batches: Batches, home: Path, expected: dict[str, bytes]) -> list[str]:
    """Run another batch; return what is wrong then, and whether one more would have something to do."""
    batches.start(home)
    again = batches.states()
    more = again.pop("stale")
    wrong = [f"again: {name}: {state}" for name, state in again.items() if not state.startswith("ran")]
    if contents(home) != expected:
        wrong.append(f"other files: {sorted(contents(home))}")
    return [*wrong, f"not fresh: {more}"] if more else wrong


@pytest.mark.faults
@pytest.mark.parametrize("part", range(PARTS))
def test_fifty_faults_in_a_batch_harm_nothing(
    start_process: Callable[[], Batches], tmp_path: Path, figures: Callable[..., None], part: int
) -> None:
    """In the batch, in a notebook's process or in its kernel, whichever comes to the call first."""
    batches, home = start_process(), tmp_path / "home"
    batches.start(home, "0 none")
    alone = batches.states()
    assert not alone.pop("stale") and all(state.startswith("ran") for state in alone.values())
    expected = contents(home)
    n_events = max(path.stat().st_size for path in Path(f"{home}.events").iterdir())
    faults = [(number, action) for number in range(1, n_events + 1) for action in ("kill", "full", "broken", "torn")]
    for number, action in list(spread(faults, 50))[part::PARTS]:
        for folder in (home, Path(f"{home}.events")):
            shutil.rmtree(folder, ignore_errors=True)
        batches.start(home, f"{number} {action}")
        ended = batches.end()
        wrong = [ended["said"]] if ended["how"] in ("crashed", "hung") else []
        is_crash = bool(wrong)
        wrong += finish(batches, home, expected)
        figures("failed or killed at every call", operations=1, faults=1, wrong=len(wrong), crashes=int(is_crash))
        assert wrong == [], f"{action} at call {number}"


@pytest.mark.faults
def test_two_batches_at_once_do_no_harm(
    start_process: Callable[[], Batches], tmp_path: Path, figures: Callable[..., None]
) -> None:
    """On one home; what they leave is fresh, and is what one leaves."""
    both = [start_process(), start_process()]
    for name, running in (("alone", both[:1]), ("shared", both)):
        for batches in running:
            batches.start(tmp_path / name)
        states = [state for batches in running for name, state in batches.states().items() if name != "stale"]
        assert all(state.startswith(("ran", "fresh")) for state in states), states
    figures("several processes at once", operations=2)
    assert finish(both[0], tmp_path / "shared", contents(tmp_path / "alone")) == []
