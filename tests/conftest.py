"""What the tests share: tiny collections, and the shared data where it is."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command_process import CommandProcess
from hypothesis import HealthCheck, settings
from lab_browser import chromium  # noqa: F401  the fixture `browser`

from mirblab.core import atomic_files

if TYPE_CHECKING:
    from mirblab.encoders.encoding import Encoder

# jsonschema imports it where it can, which takes 2.5 s in every process, for formats that no notebook has.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

ROOT = Path(__file__).resolve().parent.parent

# The same examples every time; `--hypothesis-profile=wide` looks for new ones.
# A busy machine is slow to make them, which is no mistake of a test.
PATIENT = [HealthCheck.too_slow]
settings.register_profile("same", derandomize=True, suppress_health_check=PATIENT)
settings.register_profile("wide", max_examples=5000, suppress_health_check=PATIENT)
settings.load_profile("same")

# A shell starts what it runs in the background without Ctrl-C, for which the tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of shared data and sources; tests that need it are skipped without it."""
    folder = (ROOT / os.environ.get("MIRBLAB_SHARED", "../shared")).resolve()
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}; set MIRBLAB_SHARED")
    return folder


@pytest.fixture(scope="session")
def shared_file(shared: Path) -> Callable[[str], Path]:
    """Return a function that names a file or folder of the shared data, by its path or a pattern which it matches.

    A test that needs one is skipped without it.
    """

    def find(place: str) -> Path:
        for path in shared.glob(place):
            return path
        pytest.skip(f"{place} is not in the shared data")

    return find


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a home folder of its own, which is not there yet, and return it."""
    folder = tmp_path / "home"
    monkeypatch.setenv("MIRBLAB_HOME", str(folder))
    return folder


@pytest.fixture
def own(home: Path) -> Callable[[str, str | bytes], Path]:
    """Give the test a home of its own, and return a function that writes a file of the registry there."""

    def write(kind: str, content: str | bytes) -> Path:
        path = home / "registry" / f"{kind}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Return a port on which nothing listens, and which no other program can take meanwhile."""
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        yield line.getsockname()[1]


@pytest.fixture
def in_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that takes longer than a minute, which a busy machine needs for five seconds; wait for no disk."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    if not hasattr(signal, "SIGALRM"):  # Windows has no alarm
        yield
        return
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _too_long(*_: object) -> None:
    raise TimeoutError("the test takes longer than a minute")


@pytest.fixture(scope="session")
def abandoned() -> Callable[[Path], Path]:
    """Return a function that says under which name a process of this machine, which has ended, was writing a path."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    def name(path: Path) -> Path:
        beside = atomic_files.unfinished_name(path)
        return beside.with_name(beside.name.replace(f"-{os.getpid()}-", f"-{ended.pid}-"))

    return name


@pytest.fixture(scope="session")
def command_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandProcess]:
    """Return a process that runs commands and code."""
    process = CommandProcess(tmp_path_factory.mktemp("printed"))
    yield process
    process.end()


@pytest.fixture
def logged() -> Iterator[Callable[[], str]]:
    """Return a function that says all that was logged, at every level, and each record as Python shows it."""
    records: list[logging.LogRecord] = []
    handler, root = logging.Handler(), logging.getLogger()
    handler.emit = records.append  # type: ignore[method-assign]
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield lambda: "\n".join(f"{logging.Formatter().format(record)} {record!r}" for record in records)
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a small collection; every part of it can be replaced."""

    def make(
        corpus: list[object] | str = (),
        queries: list[object] | str = (),
        qrels: str = "q1\td1\t1\nq2\td2\t2\nq2\td1\t0\n",
        card: str = "",
        name: str = "tiny",
    ) -> Path:
        folder = tmp_path / name
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        corpus = corpus or [{"_id": f"d{n}", "title": "", "text": f"document {n}"} for n in (1, 2, 3)]
        queries = queries or [{"_id": f"q{n}", "text": f"query {n}"} for n in (1, 2)]
        for stem, rows in (("corpus", corpus), ("queries", queries)):
            text = rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows)
            (folder / f"{stem}.jsonl").write_text(text, encoding="utf-8")
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + qrels, encoding="utf-8")
        if card:
            (folder / "card.toml").write_text(card, encoding="utf-8")
        return folder

    return make


@pytest.fixture
def passes(tiny: Encoder) -> Iterator[list[int]]:
    """Count what passes through the model itself: the number of texts of each forward pass."""
    seen: list[int] = []
    hook = tiny._model[0].register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0]["input_ids"])))
    yield seen
    hook.remove()
