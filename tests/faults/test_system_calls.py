"""What is written in C is failed at the system call, by strace: safetensors' files, and maps of memory."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from campaign import ONE_THREAD

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


def campaign(home: Path, how: str, name: str, *homes: Path, strace: Sequence[str] = ()) -> tuple[int, str, str]:
    """Return how `campaign.py` ended in a process of its own: its status, the last line of what it said, and errors."""
    command = [*strace, sys.executable, str(HERE / "campaign.py"), how, name, *map(str, homes)]
    environment = {
        **os.environ, **ONE_THREAD, "MIRBLAB_HOME": str(home), "PYTHONPATH": str(HERE.parent.parent),
        "PYTHONDONTWRITEBYTECODE": "1", "MIRBLAB_PROGRESS": "0", "MIRBLAB_THREADS": "1",
    }  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, (done.stdout.strip().splitlines() or [""])[-1], done.stderr


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Any]]:
    """Return a function that gives the home with which an operation begins, and what it returns undisturbed."""

    @functools.cache
    def prepare(name: str) -> tuple[Path, Any]:
        before = tmp_path_factory.mktemp("before")
        assert campaign(before, "prepare", name)[0] == 0
        status, said, error = campaign(shutil.copytree(before, f"{before}-alone"), "once", name)
        assert status == 0, error[-1500:]
        return before, json.loads(said)

    return prepare


@pytest.mark.faults
@pytest.mark.skipif(STRACE is None, reason="there is no strace")
@pytest.mark.parametrize(
    ("name", "call"),
    [("structure index", call) for call in sorted(ERRORS)]
    # the other calls are made in Python, where all of them are failed
    + [("train", call) for call in sorted({*ERRORS} - {"mkdir", "rename"})],
)
def test_a_failed_system_call_harms_nothing(
    tmp_path: Path, prepared: Callable[[str], tuple[Path, Any]], figures: Callable[..., None], name: str, call: str
) -> None:
    """The first few, and some later ones: the value is right, or there is a message, and the next run is right."""
    before, expected = prepared(name)
    homes = []
    for number in (1, 2, 4, 9) if name != "train" else (2, 5):
        homes.append(shutil.copytree(before, tmp_path / f"{call}{number}"))
        inject = f"inject={call}:error={ERRORS[call]}:when={number}"
        strace = [str(STRACE), "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}", "-e", inject]
        status, said, error = campaign(homes[-1], "once", name, strace=strace)
        is_right = status == 0 and json.loads(said) == expected
        is_told = status != 0 and (
            "StorageError" in error or "MirblabError" in error or "No space left" in error[-300:]
        )
        assert is_right or is_told, f"{call} {number}: {status} {said} {error[-1500:]}"
    status, again, error = campaign(tmp_path, "again", name, *homes)
    assert status == 0, error[-1500:]
    for how, said, value in json.loads(again):
        figures("failed system calls", operations=1, faults=1, wrong=int(value != expected))
        assert (how, value) == ("finished", expected), said
