"""Every notebook runs top to bottom in JupyterLab in a real browser (make test-browser; needs Chromium)."""

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
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parent.parent
NAMES = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
ATTACHED = """async () => {
  await window.jupyterapp.started; await window.jupyterapp.restored;
  const widget = window.jupyterapp.shell.currentWidget;
  await widget.context.ready; await widget.sessionContext.ready; await widget.sessionContext.session.kernel.info;
}"""
RUN_ALL = "() => window.jupyterapp.commands.execute('notebook:run-all-cells')"
CELLS = "() => window.jupyterapp.shell.currentWidget.content.model.sharedModel.toJSON().cells"
THEME = "name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})"


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Iterator[str]:
    """Start JupyterLab on a copy of the notebooks and yield its address up to the notebook's name, and the token."""
    work = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "notebooks", work / "notebooks")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(8)
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}", "--allow-root",
        f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={work / 'notebooks'}",
        "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly",
        "--KernelManager.transport_encryption=auto",
    ]  # fmt: skip
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


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """Start the system's Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        yield started
        started.close()


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_in_the_lab_without_an_error_or_a_request_off_this_machine(lab, browser, name, tmp_path):
    """Run All succeeds, every figure has alternative text, and the console stays quiet, in both themes."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    outside, errors = [], []
    page.on("request", lambda request: outside.append(request.url) if not _local(request.url) else None)
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.set_default_timeout(300_000)
    page.goto(lab.replace("NAME", name))
    page.wait_for_function("() => window.jupyterapp")
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget?.context")
    page.evaluate(ATTACHED)
    page.evaluate(THEME, "JupyterLab Light")
    succeeded = page.evaluate(RUN_ALL)
    outputs = [output for cell in page.evaluate(CELLS) for output in cell.get("outputs", [])]
    raised = [output["evalue"] for output in outputs if output["output_type"] == "error"]
    folder = Path(os.environ.get("MIRBLAB_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{Path(name).stem}.png")
    page.evaluate(THEME, "JupyterLab Dark")
    page.wait_for_timeout(1500)
    page.screenshot(path=folder / f"{Path(name).stem}.dark.png")
    page.close()
    assert succeeded and not raised, raised
    pages = ["".join(output.get("data", {}).get("text/html", "")) for output in outputs]
    images = [text for text in pages if "<img" in text]
    assert all('alt="' in text and 'alt=""' not in text for text in images)
    assert not outside and not errors


def _local(address: str) -> bool:
    return address.startswith(("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:"))
