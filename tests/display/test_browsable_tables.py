"""A table in a notebook sorts, filters and shows its formulas, and is complete where no script runs."""

from __future__ import annotations

from pathlib import Path

import lxml.html
import nbformat
import numpy as np
import pandas as pd
import pytest
from lab_browser import CELLS, KERNEL, RUN_ALL, THEME, Watch, opened, pictures, served

from mirblab.core.errors import MirblabError
from mirblab.display import figures, result_tables, table_formats

WORDS = ["réel 10", "Reel 9", "zeta", "", "alpha 2", "alpha 10", "beta", "gamma", "delta", "épsilon", "eta", "theta"]


@pytest.fixture
def frame() -> pd.DataFrame:
    """Return twelve rows with ties, missing values, negative numbers, formulas and prices."""
    numbers = [3, -1, np.nan, 20, 100, -0.5, 3, 1e6, 0, 2, 7, 3]
    formulas = [rf"so $x_{{{n}}}^2$ is \$5" for n in range(12)]
    return pd.DataFrame({"word": WORDS, "number": numbers, "formula": formulas, "price": "$5 and $6"})


def parsed(shown: str) -> lxml.html.HtmlElement:
    return lxml.html.fromstring(shown)


def test_it_is_complete_without_its_script(frame: pd.DataFrame) -> None:
    """All rows and cells, heads for both, no field, no button, nothing hidden."""
    page = parsed(table_formats.sortable_table(frame, maths=["formula"], caption="Twelve").data)
    assert [[len(row) for row in page.findall(f".//{part}/tr")] for part in ("thead", "tbody")] == [[4], [4] * 12]
    assert page.find(".//figcaption").text_content() == "Twelve" and not page.xpath("//button|//input|//*[@hidden]")
    assert [head.get("scope") for head in page.findall(".//th")] == ["col"] * 4
    assert [box.get("aria-label") for box in page.xpath("//*[@role='region']")] == ["Twelve"]


def test_mathematics_is_rendered_where_it_is_declared_and_nowhere_else(frame: pd.DataFrame) -> None:
    """Whole, however long; a price is a price."""
    long = "so $" + "+".join(rf"\frac{{a_{{{n}}}}}{{b}}" for n in range(40)) + "$"
    page = parsed(table_formats.sortable_table(frame.assign(formula=long), maths=["formula"]).data)
    assert len(page.findall(".//math")) == 12 and len(page.find(".//math").findall(".//mfrac")) == 40
    assert page.xpath("//tbody/tr[1]/td[4]")[0].text_content() == "$5 and $6"
    assert page.xpath("//tbody/tr[1]/td[4]/span[contains(@class, 'mathjax_ignore')]")


def test_numbers_are_sorted_by_all_their_digits_and_written_with_as_many_as_they_need(frame: pd.DataFrame) -> None:
    """A missing value has none; names of rows are shown when they say something."""
    rows = parsed(
        table_formats.sortable_table(pd.DataFrame({"p": [0.123456, None], "n": [2.0, 3.0]}, index=["a", "b"])).data
    )
    assert [cell.get("data-value") for cell in rows.findall(".//td")] == ["0.123456", "2.0", None, "3.0"]
    assert [cell.text for cell in rows.findall(".//td")] == ["0.1235", "2", "–", "3"]
    assert [cell.text for cell in rows.xpath("//tbody//th")] == ["a", "b"]
    two = pd.DataFrame({"x": [1]}, index=pd.MultiIndex.from_tuples([("a", 1)], names=["one", "two"]))
    assert [head.text for head in parsed(table_formats.sortable_table(two).data).findall(".//th")] == [
        "one",
        "two",
        "x",
    ]


def test_of_many_rows_the_first_are_shown_and_a_sentence_says_where_the_others_are() -> None:
    """In both kinds of tables, and beside a figure."""
    many = pd.DataFrame({"n": range(1200)})
    for shown in (table_formats.sortable_table(many).data, result_tables.table(many)._repr_html_()):
        assert len(parsed(shown).findall(".//tbody/tr")) == 500
        assert "The first 500 of 1,200 rows are shown; the other 700 are in" in shown
    figure = figures.figure_html(b"\0" * 30, 200, "alt", "caption", many, "are in f.csv").data
    assert len(parsed(figure).findall(".//tbody/tr")) == 200 and "the other 1,000 are in f.csv." in figure
    assert "stand here" not in table_formats.sortable_table(many.head(500)).data


def test_a_figure_has_alt_text_a_caption_and_its_numbers_to_unfold() -> None:
    """The caption is no mathematics; without a table there is nothing to unfold."""
    page = parsed(figures.figure_html(b"\0" * 30, 200, 'it "shows"', "from $5", pd.DataFrame({"n": [1]}), "").data)
    assert page.tag == "figure" and page.find("img").get("alt") == 'it "shows"'
    assert page.find("figcaption").text_content() == "from $5"
    assert page.findtext("details/summary") == "The numbers" and page.find("details//td").text == "1"
    assert "<details" not in figures.figure_html(b"\0" * 30, 200, "a", "c", None, "").data


def test_a_column_that_is_not_there_is_named_and_an_empty_table_shows_its_head() -> None:
    """As everywhere."""
    with pytest.raises(MirblabError, match="no column 'texts'; did you mean 'text'"):
        table_formats.sortable_table(pd.DataFrame({"text": ["x"]}), maths=["texts"])
    assert parsed(table_formats.sortable_table(pd.DataFrame({"text": []})).data).findtext(".//th") == "text"


def test_the_script_is_small_and_asks_for_nothing() -> None:
    """Six kilobytes with its style, which every table carries; no address, no library, no global name."""
    assert len(table_formats.SCRIPT + table_formats.STYLE) < 7_000
    assert not any(word in table_formats.SCRIPT for word in ("http", "fetch", "import", "window", "innerHTML", "eval"))
    assert "url(" not in table_formats.STYLE and "#" not in table_formats.STYLE


def column(page, number: int, table: int = 0) -> list[str]:
    """Return the texts of the shown cells of a column."""
    cells = page.locator(".mirblab-table").nth(table).locator(f"tbody tr:not([hidden]) > :nth-child({number})")
    return cells.all_inner_texts()


@pytest.mark.browser
def test_it_sorts_and_filters_in_a_browser_by_mouse_and_by_keys(browser, frame: pd.DataFrame, tmp_path: Path) -> None:
    """Numbers as numbers, text in natural order, missing last, ties as they were; a third click restores."""
    shown = table_formats.sortable_table(frame, maths=["formula"]).data
    path = tmp_path / "page.html"
    head = '<meta charset="utf-8"><script>var known = Object.keys(window);</script>'
    path.write_text(f"{head}{shown}{shown}{result_tables.table(frame.head(3))._repr_html_()}", encoding="utf-8")
    page = browser.new_page()
    watch = Watch(page)
    page.goto(path.as_uri())
    heads = page.locator(".mirblab-table").first.locator("thead th")
    heads.nth(1).locator("button").click()
    assert column(page, 2)[:3] == ["−1.00", "−0.50", "0.00"]
    assert [word for word, number in zip(column(page, 1), column(page, 2), strict=True) if number == "3.00"] == [
        "réel 10", "beta", "theta",
    ]  # fmt: skip
    assert column(page, 2)[-1] == "–" and heads.nth(1).get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")
    assert column(page, 2)[0] == "1,000,000.00" and column(page, 2)[-1] == "–"
    assert heads.nth(1).get_attribute("aria-sort") == "descending"
    page.keyboard.press("Space")
    assert column(page, 1) == WORDS and heads.nth(1).get_attribute("aria-sort") is None
    heads.nth(0).locator("button").click()
    assert column(page, 1)[:3] == ["alpha 2", "alpha 10", "beta"] and column(page, 1)[-1] == ""
    assert column(page, 1).index("Reel 9") + 1 == column(page, 1).index("réel 10")
    field, told = page.locator("input").first, page.locator("output").first
    field.fill("REEL")
    assert column(page, 1) == ["Reel 9", "réel 10"] and told.inner_text() == "2 of 12 rows"
    field.fill("x_{11}^2")
    assert column(page, 1) == ["theta"] and told.inner_text() == "1 of 12 rows"
    field.fill("")
    assert told.inner_text() == "12 rows" and column(page, 1, 1) == WORDS
    assert page.locator("input").count() == 2 and page.locator(".mirblab-table").nth(2).locator("button").count() == 5
    assert page.evaluate("() => Object.keys(window).filter(name => !known.includes(name))") == [] and not watch.errors
    assert watch.outside == [path.as_uri()]
    page.close()


@pytest.mark.browser
def test_long_text_wraps_wide_formulas_scroll_and_the_head_stays(browser, tmp_path: Path) -> None:
    """At 1280 and at 700 pixels nothing is cut: what is wider than its box can be scrolled to."""
    wide = "so $" + "+".join(rf"\frac{{a_{{{n}}}}}{{b}}" for n in range(60)) + "$ holds"
    frame = pd.DataFrame({"text": ["word " * 80] * 30, "formula": [wide] * 30, "n": range(30)})
    path = tmp_path / "page.html"
    path.write_text(
        f'<meta charset="utf-8">{table_formats.sortable_table(frame, maths=["formula"]).data}', encoding="utf-8"
    )
    for width in (1280, 700):
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.goto(path.as_uri())
        page.locator(".mirblab-box").evaluate("box => { box.scrollTop = 600; }")
        box, head = (page.locator(part).bounding_box() for part in (".mirblab-box", "thead"))
        assert abs(head["y"] - box["y"]) < 2 and box["x"] + box["width"] <= width and box["height"] < 800
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        room = "cell => [cell.scrollWidth > cell.clientWidth, getComputedStyle(cell).overflowX]"
        formula = page.locator("tbody td:nth-child(2) math").first
        assert formula.evaluate("m => { let e = m; while (e && e.scrollWidth <= e.clientWidth + 1) e = e.parentElement;"
                                " return getComputedStyle(e).overflowX; }") == "auto"  # fmt: skip
        assert page.locator("tbody td:nth-child(1) div").first.evaluate(room) == [False, "auto"]
        page.close()


@pytest.mark.browser
def test_it_works_in_the_lab_where_keys_are_commands(browser, tmp_path: Path) -> None:
    """Typing in the field runs no command of the notebook; a cell runs again; themes change; nothing is asked for."""
    source = (
        "import pandas as pd\nfrom mirblab.display import sortable_table\n"
        "sortable_table(pd.DataFrame({'n': range(30), 'maths': [f'$x^{n}$' for n in range(30)]}), "
        "maths=['maths'], caption='$5')"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)], metadata=KERNEL)
    (tmp_path / "notebooks").mkdir()
    nbformat.write(book, tmp_path / "notebooks" / "tables.ipynb")
    with served(tmp_path, tmp_path / "notebooks") as address:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        watch = Watch(page)
        opened(page, address.replace("NAME", "tables.ipynb"))
        assert page.evaluate(RUN_ALL) and page.evaluate(RUN_ALL)
        field = page.locator(".mirblab-tools input")
        field.click()
        page.keyboard.type("ddxa 29")
        assert field.input_value() == "ddxa 29" and len(page.evaluate(CELLS)) == 1
        field.fill("x^2")
        assert page.locator("output").inner_text() == "11 of 30 rows"
        page.locator("thead button").first.focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        assert column(page, 1)[0] == "29" and page.locator("mjx-container").count() == 0
        ground = "() => getComputedStyle(document.querySelector('.mirblab-table thead th')).backgroundColor"
        light = page.evaluate(ground)
        page.screenshot(path=pictures(tmp_path) / "tables.png")
        page.evaluate(THEME, "JupyterLab Dark")
        page.wait_for_timeout(1500)
        assert page.evaluate(ground) != light
        page.screenshot(path=pictures(tmp_path) / "tables.dark.png")
        page.close()
    assert not watch.errors and not watch.outside
