"""No damaged input of a reader ends in a traceback or never: it is read, or refused with its file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mutated import families

HERE = Path(__file__).resolve().parent
SLOWEST = ("stacks", "blueprints", "rocq", "arqmath")  # begin first, so that no worker waits for them at the end
FAMILIES = sorted(families(), key=lambda name: (name not in SLOWEST, name))
QUICK = 10
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture
def problems(figures: Callable[..., None]) -> Callable[..., list[Any]]:
    """Return a function that reads damaged inputs of families, adds its figures, and returns what went wrong."""

    def read(count: int, *names: str) -> list[Any]:
        command = [sys.executable, str(HERE / "mutated.py"), str(count), *names]
        environment = {**os.environ, **THREADS, "PYTHONPATH": str(HERE.parent.parent)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=1700, env=environment)
        assert done.returncode == 0, done.stderr[-2000:]
        found = json.loads(done.stdout.splitlines()[-1])
        wrong = found.pop("problems")
        figures("mutated inputs", **found)
        return wrong

    return read


@pytest.mark.parametrize("half", [0, 1])
def test_ten_damaged_inputs_are_read_or_refused(problems: Callable[..., list[Any]], half: int) -> None:
    """Of each reader; a refusal names the file."""
    assert problems(QUICK, *FAMILIES[half::2]) == []


@pytest.mark.faults
@pytest.mark.parametrize("name", FAMILIES)
def test_ten_thousand_damaged_inputs_are_read_or_refused(
    problems: Callable[..., list[Any]], name: str, pytestconfig: pytest.Config
) -> None:
    """Each in a child with a limit of time and memory."""
    assert problems(pytestconfig.getoption("--inputs"), name) == []
