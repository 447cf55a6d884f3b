"""JupyterLab on this machine and a real browser, for the tests that drive it (make test-browser; needs Chromium)."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
ATTACHED = """() => Promise.race([
  new Promise((_, fail) => setTimeout(() => fail(new Error('no kernel within three minutes')), 180000)),
  (async () => {
    await window.jupyterapp.started; await window.jupyterapp.restored;
    const widget = window.jupyterapp.shell.currentWidget;
    await widget.context.ready; await widget.sessionContext.ready; await widget.sessionContext.session.kernel.info;
  })(),
])"""
# Without it JupyterLab asks which kernel is meant.
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}
RUN_ALL = "() => window.jupyterapp.commands.execute('notebook:run-all-cells')"
CELLS = "() => window.jupyterapp.shell.currentWidget.content.model.sharedModel.toJSON().cells"
THEME = "name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})"


class Watch:
    """What a page asks for off this machine, and what its console says is an error."""

    def __init__(self, page) -> None:
        self.outside, self.errors = [], []
        page.on("request", lambda request: self.outside.append(request.url) if not local(request.url) else None)
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))


@contextmanager
def served(work: Path, notebooks: Path) -> Iterator[str]:
    """Start JupyterLab on a folder of notebooks; yield its address, NAME for the notebook's, and the token."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(8)
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}", "--allow-root",
        f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={notebooks}",
        "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly",
        "--KernelManager.transport_encryption=auto",
    ]  # fmt: skip
    quiet = work / "config" / "labconfig" / "default_setting_overrides.json"
    quiet.parent.mkdir(parents=True, exist_ok=True)
    quiet.write_text('{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}', "utf-8")
    environment = {**os.environ, "JUPYTER_CONFIG_DIR": str(work / "config"), "MIRBLAB_PROGRESS": "0"}
    with open(work / "log", "wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            _wait(f"http://127.0.0.1:{port}/api/status?token={token}")
            yield f"http://127.0.0.1:{port}/lab/tree/NAME?token={token}&reset"
        finally:
            server.terminate()
            server.wait(timeout=20)


def _wait(address: str) -> None:
    for _ in range(120):
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(f"no answer from {address.split('?')[0]}")


@pytest.fixture(name="browser", scope="session")
def chromium() -> Iterator[object]:
    """Start the system's Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with playwright.sync_playwright() as driver:
        own = driver.chromium.executable_path
        program = shutil.which("chromium") or shutil.which("google-chrome") or (own if Path(own).is_file() else None)
        if program is None:
            pytest.skip("no Chromium on this machine; make test-browser installs one")
        started = driver.chromium.launch(executable_path=program, headless=True, args=FLAGS)
        yield started
        started.close()


def opened(page, address: str) -> None:
    """Open a notebook in the lab, in the light theme, its kernel attached."""
    page.set_default_timeout(300_000)
    page.goto(address)
    page.wait_for_function("() => window.jupyterapp")
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget?.context")
    page.evaluate(ATTACHED)
    page.evaluate(THEME, "JupyterLab Light")


def closed(page) -> None:
    """Shut the notebook's kernel down, which would go on after its page, and close the page."""
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.close()


def pictures(tmp_path: Path) -> Path:
    """Return the folder for screenshots: `MIRBLAB_SCREENSHOTS`, else one that goes with the test."""
    folder = Path(os.environ.get("MIRBLAB_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def local(address: str) -> bool:
    """Return whether an address is on this machine, or in the page itself."""
    return address.startswith(("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:"))
