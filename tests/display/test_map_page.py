"""The interactive page holds every statement, runs nothing that a text says, and needs no network."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from lxml import html

from mirblab.analysis.partners import equivalence_statements
from mirblab.core.errors import MirblabError
from mirblab.display.plots import pages
from mirblab.formula import in_text
from mirblab.sources.catalogue import load

HOSTILE = "</p></script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'> & $a</math><b>$ \x00"


def placed(points: pd.DataFrame, seeds: tuple[int, ...] = (0, 1)) -> pd.DataFrame:
    """Return points with places, one map a seed, and the numbers of a map."""
    numbers = {"k": 10, "kept": 0.3, "trust": 0.9, "partner_full": 4, "partner_map": 7}
    parts = [
        points.assign(seed=seed, x=[(n * 7 + seed) % 31 for n in range(len(points))], y=range(len(points)), **numbers)
        for seed in seeds
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def mini() -> pd.DataFrame:
    return placed(equivalence_statements(load("mini-pairs"), 1000, 1000, fields=["vector spaces", "module theory"]))


def hostile() -> pd.DataFrame:
    """Two statements that say the same and mean no good."""
    return pd.DataFrame({
        "id": ["a", "b"], "class_id": "</script>", "field": ["<b>f</b>", "</script><script>window.hacked = 1</script>"],
        "kind": "pair", "text": [HOSTILE, "$x^2$ </textarea><!-- <script>"],
    })  # fmt: skip


def test_every_statement_is_inside_word_for_word(mini):
    """Prose as text, a place for each formula, and the formulas as MathML, each once."""
    page = html.document_fromstring(pages.map_page_html(mini, "A map"))
    found = page.get_element_by_id("texts").findall("p")
    formulas = page.get_element_by_id("formulas")
    first = mini[mini.seed == 0].sort_values("id")
    assert len(found) == len(first) == 36
    used = set()
    for paragraph, text in zip(found, first.text, strict=True):
        parts = in_text.split_text(text)
        marks = paragraph.findall("i")
        assert [paragraph.text or "", *(mark.tail or "" for mark in marks)] == parts[::2]
        used |= {(int(mark.text), part) for mark, part in zip(marks, parts[1::2], strict=True)}
    assert len(used) == len(formulas) == len({part for _, part in used})
    shown = {latex: "".join(formulas[place].itertext()) for place, latex in used}
    assert shown["V"] == "V" and formulas[0].tag == "math"


def test_the_formulas_are_those_of_the_parser():
    """A sign that is what its kind says has no element of its own, since the script adds it; another one keeps it."""
    points = pd.DataFrame({"id": list("ab"), "class_id": "p", "field": "f", "kind": "pair"})
    found = pages.map_page_html(placed(points.assign(text=r"$\frac{a}{12}(c)\sin<$")), "t")
    assert "<math><mfrac>a<mn>12</mn></mfrac><mrow>(c)</mrow><mi>sin</mi>&lt;</math>" in found


def test_hostile_text_is_text_everywhere():
    """In a statement, a formula, a field, a class, the title and the caption."""
    source = pages.map_page_html(placed(hostile()), HOSTILE, HOSTILE)
    page = html.document_fromstring(source)
    assert len(page.findall(".//script")) == 2 and not page.findall(".//img") and not page.findall(".//b")
    prose = HOSTILE.partition("$")[0]
    assert page.get_element_by_id("texts")[0].text.startswith(prose)
    assert page.findtext(".//h1").startswith(prose) and page.findtext(".//title").startswith(prose)
    assert json.loads(page.get_element_by_id("data").text)["fields"] == sorted(hostile().field)
    assert "\x00" not in source


def test_it_needs_nothing_from_elsewhere(mini):
    """No address, no import, and a policy that would refuse one."""
    source = pages.map_page_html(mini, "A map")
    assert not re.search(r"https?:|//[a-z]|@import|url\(|src=|href=", source)
    assert "default-src 'none'" in source


def test_it_stays_small(mini):
    """Below 480 bytes for a statement of these pairs with two maps, script and style apart: 300 kB for 600."""
    assert len(pages.map_page_html(mini, "A map").encode()) < 12_000 + 480 * 36


def test_pairs_are_linked_and_distractors_are_not(mini):
    """Positions in the order of ids; one scale for both axes, inside the drawing."""
    page = html.document_fromstring(pages.map_page_html(mini, "A map"))
    data = json.loads(page.get_element_by_id("data").text)
    first = mini[mini.seed == 0].sort_values("id").reset_index(drop=True)
    assert len(data["links"]) == 16
    for a, b in data["links"]:
        assert first.class_id[a] == first.class_id[b] != "" and data["points"][a]["kind"] == 0
    assert sum(point["kind"] for point in data["points"]) == 4
    assert all(0 <= x <= 1000 and 0 <= y <= 720 for point in data["points"] for x, y in point["at"])
    assert data["points"][0]["numbers"] == [[3, 10, 4, 7], [3, 10, 4, 7]]
    assert len(page.findall(".//input[@type='radio']")) == 2 and len(page.findall(".//input[@type='checkbox']")) == 4


def test_the_same_table_gives_the_same_bytes_whatever_its_order(mini, tmp_path: Path):
    """And the file appears with its folder."""
    one = pages.map_page(mini, tmp_path / "new" / "one.html", title="t")
    two = pages.map_page(mini.iloc[::-1].sort_values("seed", kind="stable"), tmp_path / "two.html", title="t")
    assert one.read_bytes() == two.read_bytes()


def test_maps_of_unequal_statements_and_missing_columns_are_refused(mini):
    """Before anything is written."""
    with pytest.raises(MirblabError, match="other statements for another seed"):
        pages.map_page_html(mini.iloc[1:], "t")
    with pytest.raises(MirblabError, match="no column 'text'"):
        pages.map_page_html(mini.drop(columns="text"), "t")


def test_a_formula_too_large_is_the_beginning_of_its_source():
    """As in every other view of formulas."""
    points = pd.DataFrame({"id": list("ab"), "class_id": "p", "field": "f", "kind": "pair", "text": f"${'x+' * 500}1$"})
    assert f"<code>{('x+' * 500)[:300]} …</code>" in pages.map_page_html(placed(points), "t")


@pytest.mark.browser
def test_it_works_in_a_browser_by_mouse_and_by_keys(mini, browser, tmp_path: Path):
    """A point shows its statement and marks its partner; boxes hide; hostile text runs nothing; no error."""
    addresses = [
        pages.map_page(table, tmp_path / f"{name}.html", title=name).as_uri()
        for name, table in (("mini", mini), ("hostile", placed(hostile())))
    ]
    page = browser.new_page()
    errors, asked = [], []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(addresses[0])
    page.locator(".point").nth(10).hover(force=True)
    assert page.locator("#told p").count() == 3 and page.locator("#told math").count() > 0
    assert page.locator(".partner").count() == 1 and page.locator(".link.chosen").count() == 1
    signs = page.eval_on_selector_all("#formulas math", "all => all.map(one => one.innerHTML)")
    assert "<mi>V</mi>" in signs and not [sign for sign in signs if not sign.startswith("<")]
    page.locator(".point").nth(10).focus()
    before = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") != before
    page.locator("input[name=field]").first.uncheck()
    assert page.locator(".point:not(.away)").count() == 18 and page.locator(".link:not(.away)").count() == 0
    page.goto(addresses[1])
    page.locator(".point").first.hover(force=True)
    assert "<img src=x" in page.locator("#told").inner_text()
    assert page.evaluate("window.hacked === undefined")
    page.close()
    assert not errors and asked == addresses


def test_the_page_calls_pairs_equivalent_only_where_the_card_does(mini):
    """In the legend, in what stands beside a statement, and in what a click shows."""
    premises = pages.map_page_html(placed(equivalence_statements(load("mini-premises"), 5, 5)), "Premises")
    assert "judged relevant (10)" in premises and "equivalent" not in premises.split("<script")[0]
    assert "says the same" not in premises and '"kinds":["judged relevant","distractor"]' in premises.replace(
        " ", "", 0
    )
    assert "equivalent (32)" in pages.map_page_html(mini, "Pairs")
