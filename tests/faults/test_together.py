"""Eight processes share a home, also while its stores are deleted: each gets the right value, or is told why not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent


def shared(home: Path, n_workers: int, seconds: int, *, remover: bool) -> list[dict[str, Any]]:
    """Return what each of several processes on *home* did."""
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MIRBLAB_THREADS": "1", "MIRBLAB_PROGRESS": "0"}
    environment = {**os.environ, **one_thread, "MIRBLAB_HOME": str(home), "PYTHONPATH": str(HERE.parent.parent)}
    command = [sys.executable, str(HERE / "together.py")]
    subprocess.run([*command, "prepare", "0", "0"], check=True, env=environment, capture_output=True, timeout=300)
    for store in ("cache", "figures", "results", "out"):
        shutil.rmtree(home / store, ignore_errors=True)
    roles = ["work"] * n_workers + ["remover"] * remover
    started = [
        subprocess.Popen([*command, role, str(seed), str(seconds)], env=environment, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for seed, role in enumerate(roles)
    ]  # fmt: skip
    ended = [(process.communicate(timeout=seconds + 300), process.returncode) for process in started]
    assert not any(code for _, code in ended), [said[1][-1000:] for said, code in ended if code]
    return [json.loads(said[0].splitlines()[-1]) for said, _ in ended]


def check(found: list[dict[str, Any]], figures: Callable[..., None]) -> None:
    """Add up what the processes did, and let none of it be wrong."""
    counts = {name: sum(one.get(name, 0) for one in found) for name in ("operations", "faults", "wrong", "crashes")}
    figures("several processes at once", **counts)
    assert [problem for one in found for problem in one.get("problems", [])] == []


def test_three_processes_share_a_home(tmp_path: Path, figures: Callable[..., None]) -> None:
    """Nobody is refused anything."""
    found = shared(tmp_path, 3, 2, remover=False)
    check(found, figures)
    assert [one["said"] for one in found if one["refused"]] == []


@pytest.mark.faults
@pytest.mark.parametrize("remover", [False, True])
def test_eight_processes_share_a_home(tmp_path: Path, figures: Callable[..., None], remover: bool) -> None:
    """While stores are deleted, a process may be told that what it read is gone."""
    check(shared(tmp_path, 8, 15, remover=remover), figures)
