"""Documents are judged by keys in JupyterLab, which would take these keys for itself."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from lab_browser import KERNEL, RUN_ALL, Watch, closed, opened, pictures, served
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = pytest.mark.browser
SOURCE = 'import mirblab as lab\nlab.judge("bm25", lab.load("mini-qa"), depth=3, judge="anna")'

WITHOUT_SCRIPT = """() => {
  const box = document.querySelector('.mirblab-judging');
  box.removeAttribute('tabindex');
  const found = getComputedStyle(box).visibility;
  box.tabIndex = 0;
  return found;
}"""


def test_keys_judge_move_and_undo(browser, tmp_path: Path, home: Path) -> None:
    """Each key changes the sentence above the document, the cell stays, and the file has a line for each judgement."""
    (tmp_path / "notebooks").mkdir()
    cells = [new_code_cell(SOURCE)]
    nbformat.write(new_notebook(cells=cells, metadata=KERNEL), tmp_path / "notebooks" / "judging.ipynb")
    with served(tmp_path, tmp_path / "notebooks") as address:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        watch = Watch(page)
        opened(page, address.replace("NAME", "judging.ipynb"))
        assert page.evaluate(RUN_ALL)
        page.wait_for_selector(".mirblab-judging[tabindex]")
        assert page.evaluate(WITHOUT_SCRIPT) == "hidden"  # a key that is pressed at once is not lost
        page.locator(".mirblab-judging .mirblab-text").click()
        keys = (
            ("2", 1, 2),
            ("0", 2, 3),
            ("ArrowLeft", 2, 2),
            ("u", 1, 2),
            ("u", 0, 1),
            ("3", 1, 2),
            ("ArrowRight", 1, 3),
        )
        for key, n_judged, number in keys:
            page.keyboard.press(key)
            page.wait_for_selector(f".mirblab-judging :text('{n_judged} of'):text('this is number {number}.')")
        page.screenshot(path=pictures(tmp_path) / "judging.png")
        assert page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets.length") == 1
        assert not watch.outside and not watch.errors
        closed(page)
    lines = (home / "judgements" / "mini-qa" / "anna.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["relevance"] for line in lines] == [2, 0, None, None, 3]
