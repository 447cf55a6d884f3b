"""Writing: whole or not at all, through one place, with an error that says what to do; and what is computed is used."""

from __future__ import annotations

import ast
import errno
import hashlib
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peak_memory import peak_memory

import mirblab
from mirblab.core import atomic_files, paths
from mirblab.core.errors import StorageError
from mirblab.encoders.encoding import encoder
from mirblab.formula import storage

PACKAGE = Path(mirblab.__file__).parent
REFUSALS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of this user is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "this user has no right to write there",
    errno.EMFILE: "too many files open",
    errno.EIO: "the disk reports a fault",
}


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Return the error number with which every opening of a file for writing fails, to be set by the test."""
    state = {"number": 0}
    really = atomic_files.open_to_write

    def opened(path: Any, mode: str = "wb") -> Any:
        if state["number"]:
            with atomic_files.writing(Path(path)):
                raise OSError(state["number"], os.strerror(state["number"]), str(path))
        return really(path, mode)

    monkeypatch.setattr(atomic_files, "open_to_write", opened)
    monkeypatch.setattr(atomic_files, "_warned_folders", set())
    return state


@pytest.mark.parametrize("number", REFUSALS)
def test_the_error_names_the_path_the_reason_the_room_and_the_doctor(
    number: int, tmp_path: Path, full: dict[str, int]
) -> None:
    """A refusal of the system becomes one sentence that says what to do; the folder is left as it was."""
    atomic_files.write_text(tmp_path / "a.txt", "old")
    full["number"] = number
    with pytest.raises(StorageError) as caught:
        atomic_files.write_bytes(tmp_path / "a.txt", b"new" * 1_000_000)
    said = str(caught.value)
    assert REFUSALS[number] in said
    for part in (str(tmp_path), "3.0 MB needed", "free", "mirblab doctor"):
        assert part in said or (part == "3.0 MB needed" and "partial" in said)
    assert (tmp_path / "a.txt").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]
    assert str(pickle.loads(pickle.dumps(caught.value))) == said


def test_a_real_limit_is_met_in_the_middle_of_a_file_and_nothing_is_left(tmp_path: Path) -> None:
    """A file beyond the size limit of the process: an error with the path and the size, no partial file."""
    code = (
        "import resource, numpy as np, sys\nfrom pathlib import Path\nfrom mirblab.encoders.cache import VectorStore\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "store = VectorStore(sys.argv[1], {'dimensions': 384})\n"
        "try:\n    store.append([str(n) for n in range(100)], np.ones((100, 384), np.float32))\n"
        "except ValueError as error:\n    print(type(error).__name__, error)\n"
        "print(len(store.missing(['1'])), sorted(path.name for path in store.path.iterdir()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "StorageError" in done.stdout
    assert "larger than this process may write" in done.stdout
    assert "156.0 kB needed" in done.stdout
    assert done.stdout.endswith("1 ['space.json']\n")


@pytest.mark.parametrize("is_there_again", [True, False])
def test_a_folder_that_is_removed_while_a_file_is_written_is_told(tmp_path: Path, is_there_again: bool) -> None:
    """By somebody who removes a store; another writer may have made the folder again already."""
    with pytest.raises(StorageError, match=r"cannot be written: the folder was removed meanwhile .*; do it again"):
        with atomic_files.write_atomically(tmp_path / "store" / "a") as beside:
            beside.write_bytes(b"half")
            shutil.rmtree(tmp_path / "store")
            if is_there_again:
                (tmp_path / "store").mkdir()


def test_what_is_wrong_elsewhere_is_no_fault_of_the_disk(tmp_path: Path) -> None:
    """A file that cannot be read while another one is written is named as it is."""
    with pytest.raises(FileNotFoundError, match="absent"), atomic_files.write_atomically(tmp_path / "a") as beside:
        beside.write_bytes((tmp_path / "elsewhere" / "absent").read_bytes())
    assert not os.listdir(tmp_path)


def test_a_library_that_hides_the_number_of_the_error_is_understood(tmp_path: Path) -> None:
    """Numpy tells a full disk by two counts, safetensors by "(os error 28)" in its text."""
    for error in (OSError("16384 requested and 8192 written"), RuntimeError("Error: No space left (os error 28)")):
        with pytest.raises(StorageError, match="the disk is full"), atomic_files.write_atomically(tmp_path / "a"):
            raise error


def test_a_line_is_said_once_for_all_that_cannot_be_stored(
    home: Path, capsys: pytest.CaptureFixture[str], full: dict[str, int]
) -> None:
    """The first vectors that cannot be stored are told of; what follows in the same folder of the home is not."""
    full["number"] = errno.EROFS
    for what in ("vectors", "runs"):
        assert not atomic_files.try_to_store(what, atomic_files.write_bytes, home / "cache" / what / "x", b"x")
    said = capsys.readouterr().err
    assert said.count("note:") == 1
    assert "vectors cannot be stored" in said
    full["number"] = 0
    assert atomic_files.try_to_store("runs", atomic_files.write_bytes, home / "cache" / "x", b"x")


def test_on_a_full_disk_a_missing_figure_is_an_error(tmp_path: Path, full: dict[str, int]) -> None:
    """A figure that is not there would not be noticed; where nothing at all can be written, nobody expects it."""
    full["number"] = errno.ENOSPC
    with pytest.raises(StorageError):
        atomic_files.try_to_store("figures", atomic_files.write_bytes, tmp_path / "x.png", b"x", full_is_error=True)
    full["number"] = errno.EACCES
    assert not atomic_files.try_to_store(
        "figures", atomic_files.write_bytes, tmp_path / "x.png", b"x", full_is_error=True
    )


@pytest.mark.skipif(sys.platform != "linux", reason="/sys is a folder in which nobody may write, root neither")
def test_in_a_home_that_cannot_be_written_collections_runs_and_figures_are_made(tmp_path: Path) -> None:
    """What was computed is returned, equal to what a home of one's own gives, with a line for each folder."""
    code = (
        "from mirblab import load, output, system\nfrom mirblab.display import Table\n"
        "import hashlib, pandas as pd\n"
        "held = load('mini-blueprint')\n"
        "run = system('bm25').search(held.sample(3), 20)\n"
        "print(len(run), hashlib.sha256(run.to_csv().encode()).hexdigest())\n"
        "table = Table(pd.DataFrame({'a': [1.0]}, index=['x']), caption='c')\n"
        "print('a' in output('10_collections', 'mini').table(table, 'n').to_html())\n"
    )
    said = {}
    for home in (str(tmp_path), "/sys"):
        found = {**os.environ, "MIRBLAB_HOME": home, "MIRBLAB_PROGRESS": "0", "PYTHONPATH": str(PACKAGE.parent)}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=found, check=False)
        assert done.returncode == 0, done.stderr
        said[home] = done
    assert said["/sys"].stdout == said[str(tmp_path)].stdout
    told = [line for line in said["/sys"].stderr.splitlines() if line.startswith("note:")]
    assert [line.split()[1] for line in told] == ["miniature", "runs", "tables"]
    assert all("set MIRBLAB_HOME to another folder" in line for line in told)
    assert "note:" not in said[str(tmp_path)].stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "data", "figures"]


@pytest.mark.skipif(sys.platform != "linux", reason="/sys is a folder in which nobody may write, root neither")
def test_a_batch_that_cannot_write_says_so_before_it_computes() -> None:
    """Its notebooks are what it makes; runs that nobody could keep are not made for it."""
    found = {**os.environ, "MIRBLAB_HOME": "/sys", "PYTHONPATH": str(PACKAGE.parent)}
    words = [sys.executable, "-m", "mirblab", "batch", "mini", "--only", "01"]
    done = subprocess.run(words, capture_output=True, text=True, env=found, check=False)
    assert done.returncode == 2
    assert "mirblab: /sys/figures/_executed/mini cannot be written: this user has no right" in done.stderr
    assert "texts to encode" not in done.stdout


def test_vectors_that_cannot_be_stored_are_returned(home: Path, full: dict[str, int]) -> None:
    """On a full disk the vectors come back in the order of the texts, those stored before and the new ones."""
    tiny = encoder("minilm")
    texts = ["a ring", "a field", "a ring", "a group"]
    tiny.vectors(["a field"])
    full["number"] = errno.ENOSPC
    found = tiny.vectors(texts)
    full["number"] = 0
    assert tiny.missing(texts) == 2
    assert np.array_equal(found, tiny.vectors(texts))


METHODS = {"write_text", "write_bytes", "mkdir", "touch", "rename"}
FUNCTIONS = {"replace", "rename", "fsync", "mkdir", "makedirs"}
OWN = ("atomic_files.py", "paths.py", "doctor.py")  # the doctor tries whether it can write, and says if not


def writes(tree: ast.AST) -> list[int]:
    """Return the lines on which a module writes by itself instead of through `atomic_files`."""
    lines = []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name, owner = getattr(call.func, "attr", getattr(call.func, "id", "")), ""
        if isinstance(call.func, ast.Attribute):
            owner = getattr(call.func.value, "id", "an expression")
        given = [one.value for one in (*call.args, *(pair.value for pair in call.keywords)) if hasattr(one, "value")]
        modes = [one for one in given if isinstance(one, str) and len(one) < 4 and set(one) & set("wax+")]
        is_frame = name == "rename" and any(pair.arg in ("columns", "index") for pair in call.keywords)
        if name == "open" and modes:
            lines.append(call.lineno)
        elif owner == "os" and name in FUNCTIONS:
            lines.append(call.lineno)
        elif owner not in ("", "os", "atomic_files") and name in METHODS - ({"rename"} if is_frame else set()):
            is_series = (
                name == "rename" and len(call.args) == 1 and isinstance(call.args[0], (ast.Constant, ast.Attribute))
            )
            lines += [] if is_series else [call.lineno]
    return lines


def test_everything_is_written_through_atomic_files() -> None:
    """So that each refusal of the system is told alike, and one wrapper can make any of them fail."""
    found = {
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if path.name not in OWN
        for line in writes(ast.parse(path.read_text("utf-8")))
    }
    assert not found


def test_a_map_of_a_file_takes_its_space_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A structure index that was built on a full disk killed the process (a bus error); now it is an error."""

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(StorageError, match=r"postings.npy cannot be written: the disk is full \(4.0 MB needed"):
        storage._allocate_postings(tmp_path, 1_000_000)


def test_a_digest_of_content_does_not_hold_a_file_in_memory(tmp_path: Path) -> None:
    """It is that of the names and the bytes in one piece, of a file that of its bytes."""
    large = tmp_path / "folder" / "large.trec"
    large.parent.mkdir()
    with open(large, "wb") as file:
        file.truncate(32_000_000)
    (large.parent / ".hidden").write_bytes(b"x")
    with peak_memory() as peak:
        digests = [paths.content_digest(path) for path in (large, large.parent)]
    pieces = (large.read_bytes(), b"large.trec\0" + large.read_bytes())
    assert digests == [hashlib.blake2b(piece, digest_size=16).digest() for piece in pieces] and peak.n_bytes < 4_000_000
    assert paths.content_digest(tmp_path / "absent") == hashlib.blake2b(digest_size=16).digest()
