"""Without a network one learns within seconds that a model or a dataset cannot be fetched, and what to do."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from mirblab.core import network


@pytest.fixture
def port() -> Iterator[int]:
    """Return the port of a server on this machine that accepts connections at once, and answers none."""
    is_over = Event()

    class Silent(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            is_over.wait()

    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        is_over.set()
        server.shutdown()


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_a_server_that_accepts_is_reached_however_slowly_it_answers(port: int) -> None:
    """A slow network is left to take its time."""
    assert network.unreachable_reason(f"http://127.0.0.1:{port}", 0.5) == ""


def test_a_refused_connection_is_known_at_once(closed_port: int, in_time: None) -> None:
    """The reason has the address and the system's words."""
    assert "127.0.0.1" in network.unreachable_reason(f"http://127.0.0.1:{closed_port}")


def test_a_name_that_is_never_looked_up_costs_no_more_than_the_limit(
    monkeypatch: pytest.MonkeyPatch, in_time: None
) -> None:
    """A resolver that does not answer knows no limit of its own."""
    release = Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [] if release.wait() else [])
    assert network.unreachable_reason("https://huggingface.co", 0.2) == "no answer in 0.2 s"
    release.set()


def test_one_way_that_is_blocked_does_not_cost_the_other(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All addresses are tried at once: here one that swallows what is sent, and the server."""
    family = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
    found = [(*family, ("192.0.2.1", port)), (*family, ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert network.unreachable_reason("http://two.example", 1.0) == ""


def test_a_proxy_is_asked_where_one_is_set(port: int, closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not there is named; the address itself is not tried then."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed_port}")
    assert network.unreachable_reason("http://mirblab.example").startswith("by the proxy: ")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
    assert network.unreachable_reason("http://mirblab.example", 0.5) == ""  # connected, and slow


MODEL = "from mirblab.encoders.encoding import encoder\nencoder('bge-large-en-v1.5').vectors(['x'])"
DATASET = "import mirblab\nmirblab.load('mirb-mathlib')"
RERANKER = (
    "from mirblab import load, system\nsystem('bm25>bge-reranker-v2-m3@2').search(load('mini-wfb').sample(1), depth=2)"
)


@pytest.mark.parametrize("code", [MODEL, DATASET, RERANKER], ids=["model", "dataset", "reranker"])
def test_a_machine_without_a_network_says_so(code: str, closed_port: int, tmp_path: Path) -> None:
    """What is missing, and what to do; no library repeats its questions meanwhile."""
    own = {"MIRBLAB_HOME": str(tmp_path), "HF_HOME": str(tmp_path), "HF_ENDPOINT": f"http://127.0.0.1:{closed_port}"}
    script = TRY.format(code="\n    ".join(code.splitlines()))
    environment = {**os.environ, **own, "HF_HUB_OFFLINE": "0"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert "is not on this machine" in done.stdout
    assert "the Hub cannot be reached" in done.stdout
    assert "where there is a network" in done.stdout
    assert "Retrying" not in done.stderr


TRY = """
try:
    {code}
except ValueError as error:
    print(error)
"""
