"""What is written in C is failed at the system call, by strace: safetensors' files, and maps of memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
STRACE = shutil.which("strace")
ERRORS = {
    "write": "ENOSPC",
    "ftruncate": "ENOSPC",
    "fallocate": "ENOSPC",
    "fsync": "EIO",
    "rename": "EIO",
    "mkdir": "ENOSPC",
}


def once(home: Path, how: str, name: str, fault: tuple[str, int] | None = None) -> tuple[int, str, str]:
    """Return how the operation ended in a process of its own: its status, the last line of what it said, and errors."""
    command = [sys.executable, str(HERE / "campaign.py"), how, name, "0"]
    if fault is not None:
        call, number = fault
        inject = f"inject={call}:error={ERRORS[call]}:when={number}"
        command = [str(STRACE), "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}", "-e", inject, *command]
    environment = {
        **os.environ, "MIRBLAB_HOME": str(home), "PYTHONPATH": str(HERE.parent.parent), "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1",
        "MIRBLAB_PROGRESS": "0", "MIRBLAB_THREADS": "1",
    }  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, (done.stdout.strip().splitlines() or [""])[-1], done.stderr


@pytest.mark.faults
@pytest.mark.skipif(STRACE is None, reason="there is no strace")
@pytest.mark.parametrize("call", sorted(ERRORS))
@pytest.mark.parametrize("name", ["structure index", "train"])
def test_a_failed_system_call_harms_nothing(tmp_path: Path, figures: Callable[..., None], name: str, call: str) -> None:
    """The first few, and some later ones: the value is right, or there is a message, and the next run is right."""
    if name == "train" and call in ("mkdir", "rename"):
        pytest.skip("those calls are made in Python, where all of them are failed")
    before = tmp_path / "before"
    before.mkdir()
    assert once(before, "prepare", name)[0] == 0
    expected = json.loads(_ran(shutil.copytree(before, tmp_path / "alone"), name))
    for number in (1, 2, 4, 9) if name != "train" else (2, 5):
        home = tmp_path / f"{call}{number}"
        shutil.copytree(before, home)
        status, said, error = once(home, "once", name, (call, number))
        is_right = status == 0 and json.loads(said) == expected
        is_told = status != 0 and (
            "StorageError" in error or "MirblabError" in error or "No space left" in error[-300:]
        )
        again = json.loads(_ran(home, name))
        figures("failed system calls", operations=1, faults=1, wrong=int(again != expected))
        assert is_right or is_told, f"{call} {number}: {status} {said} {error[-1500:]}"
        assert again == expected


def _ran(home: Path, name: str) -> str:
    status, said, error = once(Path(home), "once", name)
    assert status == 0, error[-1500:]
    return said
