"""What is being written has a name that says by whom, so that left-overs of killed writers can be told and removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mirblab.core import atomic_files
from mirblab.core.atomic_files import is_abandoned, is_unfinished, remove_abandoned, unfinished_name, unfinished_paths

WRITER = """
import sys, time
from mirblab.core import atomic_files, paths

with atomic_files.write_atomically(sys.argv[1]) as beside:
    beside.write_bytes(b"half")
    print(beside.name, flush=True)
    time.sleep(60)
"""


def test_a_writer_that_lives_is_left_alone_and_a_killed_one_is_swept(tmp_path: Path) -> None:
    """No clock decides, neither ours nor a file server's: an hour ago or in an hour, only the process counts."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "deep" / "run.parquet")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        left = tmp_path / "deep" / writer.stdout.readline().strip()
        os.utime(left, (0, 0))
        assert is_unfinished(left) and not is_abandoned(left)
        assert unfinished_paths(tmp_path) == [left] and remove_abandoned(tmp_path) == []
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    os.utime(left, (4e9, 4e9))
    assert is_abandoned(left) and remove_abandoned(tmp_path) == [left] and not left.exists()


def test_folders_are_swept_whole(tmp_path: Path, abandoned: Callable[[Path], Path]) -> None:
    """What lies in an unfinished folder belongs to it."""
    folder = abandoned(tmp_path / "store" / "000001")
    (folder / "0").mkdir(parents=True)
    unfinished_name(folder / "0" / "keys.npy").write_bytes(b"half")
    assert remove_abandoned(tmp_path) == [folder] and list((tmp_path / "store").iterdir()) == []


def test_left_overs_of_other_machines_stay(tmp_path: Path, abandoned: Callable[[Path], Path]) -> None:
    """A process number says nothing elsewhere; the names of older versions tell no writer."""
    ours = abandoned(tmp_path / "a")
    _, rest = ours.name.split("-", 1)
    theirs = ours.with_name(f".{'0' * 12}-{rest}")
    older = [tmp_path / ".0123456789ab.partial.a", tmp_path / ".0123456789ab.partial"]
    for path in (theirs, *older):
        path.write_bytes(b"half")
    assert not any(map(is_abandoned, [theirs, *older])) and remove_abandoned(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="a limit to the size of files stands for a full disk")
def test_a_folder_in_which_only_an_empty_file_can_be_written_is_not_writable(tmp_path: Path) -> None:
    """As on a full disk; the file that was begun is removed."""
    code = (
        "import resource; from pathlib import Path; from mirblab.core import atomic_files\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        f"atomic_files.check_writable(Path({str(tmp_path)!r}))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "cannot be written: the file is larger than this process may write (" in ended.stderr
    assert list(tmp_path.iterdir()) == []
    atomic_files.check_writable(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_other_names_are_not_partial() -> None:
    """A file of the user's is never swept, whatever it is called."""
    for name in ("a.partial.b", "partial", ".hidden", "x.partial", f"{'0' * 12}-1-00000000.partial.x"):
        assert not is_unfinished(name) and not is_abandoned(name)


def test_write_atomically_leaves_nothing_when_it_fails(tmp_path: Path) -> None:
    """The name goes with the failure."""
    try:
        with atomic_files.write_atomically(tmp_path / "x") as beside:
            beside.write_bytes(b"half")
            raise ValueError
    except ValueError:
        pass
    assert list(tmp_path.iterdir()) == []
