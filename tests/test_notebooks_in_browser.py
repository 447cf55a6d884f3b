"""Every notebook runs top to bottom in JupyterLab in a real browser (make test-browser; needs Chromium)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_browser import CELLS, RUN_ALL, THEME, Watch, closed, opened, pictures, served

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = Path(__file__).resolve().parent.parent
NAMES = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Iterator[str]:
    """Start JupyterLab on a copy of the notebooks and yield its address up to the notebook's name, and the token."""
    work = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "notebooks", work / "notebooks")
    with served(work, work / "notebooks") as address:
        yield address


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_in_the_lab_without_an_error_or_a_request_off_this_machine(lab, browser, name, tmp_path):
    """Run All succeeds without a warning, figures have alternative text, and the console is quiet, in both themes."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    watch = Watch(page)
    opened(page, lab.replace("NAME", name))
    succeeded = page.evaluate(RUN_ALL)
    outputs = [output for cell in page.evaluate(CELLS) for output in cell.get("outputs", [])]
    raised = [output["evalue"] for output in outputs if output["output_type"] == "error"]
    folder = pictures(tmp_path)
    page.screenshot(path=folder / f"{Path(name).stem}.png")
    page.set_viewport_size({"width": 1920, "height": 1000})
    page.evaluate(THEME, "JupyterLab Dark")
    page.wait_for_timeout(1500)
    page.screenshot(path=folder / f"{Path(name).stem}.dark.png")
    closed(page)
    assert succeeded and not raised, raised
    warned = ["".join(output["text"])[:300] for output in outputs if output.get("name") == "stderr"]
    assert not warned, warned
    pages = ["".join(output.get("data", {}).get("text/html", "")) for output in outputs]
    images = [text for text in pages if "<img" in text]
    assert all('alt="' in text and 'alt=""' not in text for text in images)
    assert not watch.outside and not watch.errors
