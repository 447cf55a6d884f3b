"""The explorer answers to keys and clicks in JupyterLab, in both themes, and asks nothing of another machine."""

from __future__ import annotations

from collections.abc import Iterator

import nbformat
import pytest
from lab_browser import KERNEL, RUN_ALL, THEME, Watch, closed, opened, pictures, served
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = pytest.mark.browser
SOURCE = 'import mirblab as lab\nlab.explore(lab.load("mini-qa"), SYSTEMS)'
FOUR = '["bm25", "minilm", "structure", "minilm-late"]'
WIDER = "() => [...document.querySelectorAll('.mirblab-explorer')].some(one => one.scrollWidth > one.clientWidth + 1)"


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Iterator[str]:
    """Start JupyterLab beside a notebook with an explorer of two systems, and one of four."""
    work = tmp_path_factory.mktemp("explorer")
    (work / "notebooks").mkdir()
    for name, systems in (("two", '["bm25", "minilm"]'), ("four", FOUR)):
        cells = [new_code_cell(SOURCE.replace("SYSTEMS", systems))]
        nbformat.write(new_notebook(cells=cells, metadata=KERNEL), work / "notebooks" / f"{name}.ipynb")
    with served(work, work / "notebooks") as address:
        yield address


@pytest.fixture
def shown(lab, browser, request) -> Iterator[tuple[object, Watch]]:
    """Open the notebook that the test names, run it, and yield the page and what it did."""
    page = browser.new_page(viewport={"width": 1280, "height": 1100})
    watch = Watch(page)
    opened(page, lab.replace("NAME", f"{request.param}.ipynb"))
    assert page.evaluate(RUN_ALL)
    page.wait_for_selector(".mirblab-lists li")
    page.set_default_timeout(90_000)
    yield page, watch
    closed(page)


@pytest.mark.parametrize("shown", ["two"], indirect=True)
def test_it_is_typed_into_chosen_from_and_stepped_through(shown, tmp_path):
    """The preview follows what is typed, Enter searches, the list chooses, the buttons step, by keys alone."""
    page, watch = shown
    page.get_by_label("Query", exact=True).click()
    page.keyboard.press("Control+A")
    page.keyboard.type(r"the roots of $x^2 + \frac{p}{2}", delay=10)
    page.wait_for_selector(".mirblab-asked:has-text('the roots of')")
    page.keyboard.type("$ in a field", delay=10)
    page.wait_for_selector(".mirblab-asked mfrac")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Free text: it has no judgements")
    assert page.locator(".mirblab-lists section").count() == 2 and page.locator(".mirblab-lists li").count() == 20
    assert page.locator(".mirblab-lists mark").count() > 0
    page.screenshot(path=pictures(tmp_path) / "explorer.free.png")
    page.get_by_label("Find").click()
    page.keyboard.type("prime", delay=10)
    page.wait_for_selector("text=25 of 204 queries")
    page.keyboard.press("Enter")
    page.wait_for_selector(".mirblab-quiet:has-text('cauchy-prime-order of the collection')")
    page.locator("select[size] option, .widget-select select option").nth(1).click()
    page.wait_for_selector(".mirblab-quiet:has-text('chinese-remainder of the collection')")
    assert page.locator(".mirblab-lists :text('✓ relevant')").count() > 0
    page.get_by_role("button", name="Next difference").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Query 1 of 204 by difference")
    page.keyboard.press("Space")
    page.wait_for_selector("text=Query 2 of 204 by difference")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Query 1 of 204 by difference")
    page.get_by_label("Query", exact=True).fill("  ")
    page.wait_for_selector("text=Nothing typed yet.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=there is nothing to search for")
    assert not watch.outside and not watch.errors


@pytest.mark.parametrize("shown", ["four"], indirect=True)
def test_four_lists_fit_at_both_widths_in_both_themes(shown, tmp_path):
    """Nothing is wider than its place, and letters stand out from their ground."""
    page, watch = shown
    for width in (1280, 1920):
        page.set_viewport_size({"width": width, "height": 1100})
        for theme in ("Light", "Dark"):
            page.evaluate(THEME, f"JupyterLab {theme}")
            page.wait_for_timeout(1500)
            page.screenshot(path=pictures(tmp_path) / f"explorer.{width}.{theme.lower()}.png")
            page.locator(".mirblab-lists").scroll_into_view_if_needed()
            fourth = page.locator(".mirblab-lists section").nth(3)
            fourth.screenshot(path=pictures(tmp_path) / f"list.{width}.{theme}.png")
            assert not page.evaluate(WIDER)
        assert page.locator(".mirblab-lists section").count() == 4
        tops = page.eval_on_selector_all(
            ".mirblab-lists section", "all => all.map(one => one.getBoundingClientRect().top)"
        )
        assert len(set(tops)) == 1 or width < 1920
    assert not watch.outside and not watch.errors
