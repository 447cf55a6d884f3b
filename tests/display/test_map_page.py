"""The interactive page holds every statement, runs nothing that a text says, and needs no network."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import numpy as np
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


def data_of(source: str) -> dict:
    """Return what a page's script reads."""
    return json.loads(html.document_fromstring(source).get_element_by_id("data").text)


def test_every_statement_is_inside_word_for_word(mini):
    """Prose as text, a number for each formula, and the formulas as LaTeX and MathML, each once."""
    data = data_of(pages.map_page_html(mini, "A map"))
    first = mini[mini.seed == 0].sort_values("id")
    assert len(data["texts"]) == len(first) == 36 and data["ids"] == first.id.tolist()
    used = set()
    for found, text in zip(data["texts"], first.text, strict=True):
        parts = in_text.split_text(text)
        assert found[::2] == parts[::2] and [data["sources"][place] for place in found[1::2]] == parts[1::2]
        used |= set(found[1::2])
    assert len(used) == len(data["formulas"]) == len(set(data["sources"]))
    assert data["formulas"][data["sources"].index("V")] == "<math>V</math>"


def test_the_formulas_are_those_of_the_parser():
    """A sign that is what its kind says has no element of its own, since the script adds it; another one keeps it."""
    points = pd.DataFrame({"id": list("ab"), "class_id": "p", "field": "f", "kind": "pair"})
    found = data_of(pages.map_page_html(placed(points.assign(text=r"$\frac{a}{12}(c)\sin<$")), "t"))
    assert found["formulas"] == ["<math><mfrac>a<mn>12</mn></mfrac><mrow>(c)</mrow><mi>sin</mi>&lt;</math>"]


def test_hostile_text_is_text_everywhere():
    """In a statement, a formula, a field, a class, the title and the caption."""
    source = pages.map_page_html(placed(hostile()), HOSTILE, HOSTILE)
    page = html.document_fromstring(source)
    assert len(page.findall(".//script")) == 2 and not page.findall(".//img") and not page.findall(".//b")
    prose = HOSTILE.partition("$")[0]
    assert data_of(source)["texts"][0][0].startswith(prose)
    assert page.findtext(".//h1").startswith(prose) and page.findtext(".//title").startswith(prose)
    assert data_of(source)["fields"] == sorted(hostile().field)
    assert "\x00" not in source


def test_it_needs_nothing_from_elsewhere(mini):
    """No address, no import, and a policy that would refuse one."""
    source = pages.map_page_html(mini, "A map")
    assert not re.search(r"https?:|//[a-z]|@import|url\(|src=|href=", source)
    assert "default-src 'none'" in source


def test_a_page_of_a_map_stays_small(mini):
    """Below 700 bytes for a statement of these pairs with two maps, script and style apart: 420 kB for 600."""
    assert len(pages.map_page_html(mini, "A map").encode()) < 26_000 + 700 * 36


def test_pairs_are_linked_and_distractors_are_not(mini):
    """Positions in the order of ids; one scale for both axes, inside the drawing."""
    source = pages.map_page_html(mini, "A map")
    page, data = html.document_fromstring(source), data_of(source)
    first = mini[mini.seed == 0].sort_values("id").reset_index(drop=True)
    assert len(data["links"]) == 16
    for a, b in data["links"]:
        assert first.class_id[a] == first.class_id[b] != "" and data["kind"][a] == 0
    assert sum(data["kind"]) == 4
    assert [len(at) for at in data["at"]] == [72, 72]
    assert all(0 <= x <= 10_000 for at in data["at"] for x in at[::2])
    assert all(0 <= y <= 7_200 for at in data["at"] for y in at[1::2])
    assert [numbers[:4] for numbers in data["numbers"]] == [[3, 10, 4, 7], [3, 10, 4, 7]]
    assert len(page.findall(".//input[@type='radio']")) == 2 and len(page.findall(".//input[@type='checkbox']")) == 4


def test_regions_have_the_boxes_colours_and_words(mini):
    """Where there are any; their words stand among their statements, on each map, and "" has none."""
    labelled = mini.assign(region=["ring, ideal" if n % 3 else "" for n in range(36)] * 2)
    source = pages.map_page_html(labelled, "A map")
    data, page = data_of(source), html.document_fromstring(source)
    assert [group["name"] for group in data["groups"]] == ["ring, ideal", ""]
    assert data["region"] and len(data["groups"][0]["at"]) == 2
    words = [label.text_content() for label in page.findall(".//label")]
    assert "ring, ideal (24)" in words and "no region (12)" in words


def test_an_address_is_one_of_statements(mini):
    """With a place for the id; another one, or a script, is refused."""
    assert data_of(pages.map_page_html(mini, "t", "", "https://example.org/{}"))["address"] == "https://example.org/{}"
    for wrong in ("https://example.org/", "javascript:alert({})", "example.org/{}"):
        with pytest.raises(MirblabError, match="is no address of statements"):
            pages.map_page_html(mini, "t", "", wrong)


def test_a_notebook_shows_a_page_in_a_frame_of_its_own(mini, tmp_path: Path):
    """The whole page, whose scripts cannot reach the notebook; one without scripts gets none, a large one a link."""
    path = pages.map_page(mini, tmp_path / "map.html", title="t")
    shown = html.fragment_fromstring(pages.page_frame(path, "A <map>", "../map.html").data)
    frame = shown.find("iframe")
    assert frame.get("srcdoc") == path.read_text("utf-8") and "allow-same-origin" not in frame.get("sandbox")
    assert "allow-scripts" in frame.get("sandbox") and shown.find(".//a").get("href") == "../map.html"
    assert shown.find("figcaption").text.startswith("A <map>.")
    plain = tmp_path / "plain.html"
    plain.write_text('<a href="thread-2.html">x</a><a href="https://example.org">y</a>')
    frame = html.fragment_fromstring(pages.page_frame(plain, "t", "plain.html").data).find("iframe")
    assert frame.get("sandbox") == "" and frame.get("srcdoc") == '<a>x</a><a href="https://example.org">y</a>'
    plain.write_text("x" * 8_000_001)
    assert "iframe" not in pages.page_frame(plain, "t", "plain.html").data


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
    assert f"<code>{('x+' * 500)[:300]} …</code>" in data_of(pages.map_page_html(placed(points), "t"))["formulas"][0]


def pointed(page, place: int) -> tuple[float, float]:
    """Return where a statement of the map is in the window."""
    box, (x, y) = page.locator("canvas").bounding_box(), page.evaluate(f"onCanvas({place})")
    return box["x"] + x + 1, box["y"] + y + 1  # its border


@pytest.mark.browser
def test_it_works_in_a_browser_by_mouse_and_by_keys(mini, browser, tmp_path: Path):
    """A point shows its statement and its partner; boxes hide; hostile text runs nothing; no error, no request."""
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
    page.mouse.move(*pointed(page, 10))
    assert page.locator("#told p").count() == 4 and page.locator("#told math").count() > 0
    assert page.evaluate("chosen") == 10 and page.evaluate("data.links.some(pair => pair.includes(10))")
    signs = page.evaluate("data.formulas.map((_, place) => formula(place).firstChild.innerHTML)")
    assert "<mi>V</mi>" in signs and not [sign for sign in signs if not sign.startswith("<")]
    page.locator("canvas").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("chosen") == page.evaluate("partners(10)[0]")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("chosen") not in (10, page.evaluate("partners(10)[0]"))
    page.locator("input[name=group]").first.uncheck()
    assert page.evaluate("shown.reduce((sum, one) => sum + one)") == 18
    page.goto(addresses[1])
    page.mouse.move(*pointed(page, 0))
    assert "<img src=x" in page.locator("#told").inner_text()
    page.fill("input[type=search]", "img")
    assert "<img src=x" in page.locator("#listed").inner_text()
    assert page.evaluate("window.hacked === undefined")
    page.close()
    assert not errors and asked == addresses


@pytest.mark.browser
def test_statements_are_searched_drawn_around_listed_and_taken_along(mini, browser, tmp_path: Path):
    """All words of a search must occur; what is listed is copied with tabs, and downloaded as CSV with its LaTeX."""
    context = browser.new_context(
        permissions=["clipboard-read", "clipboard-write"], viewport={"width": 1280, "height": 900}
    )
    page = context.new_page()
    page.goto(pages.map_page(mini, tmp_path / "map.html", address="https://example.org/{}").as_uri())
    first = mini[mini.seed == 0].sort_values("id")
    told = (first.id + " " + first.text).str.lower()  # ids are searched, too
    wanted = first[told.str.contains("module") & told.str.contains("free")]
    page.fill("input[type=search]", "FREE module")
    assert 0 < len(wanted) < 36 and page.locator("output").inner_text() == f"{len(wanted)} of 36 statements"
    assert page.locator("#listed tbody tr").count() == len(wanted)
    with page.expect_download() as coming:
        page.get_by_role("button", name="Download as CSV").click()
    table = pd.read_csv(coming.value.path(), keep_default_na=False)
    assert table.id.tolist() == wanted.id.tolist() and table.statement.tolist() == wanted.text.tolist()
    page.get_by_role("button", name="Copy the table").click()
    page.get_by_text("Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert pd.read_csv(StringIO(copied), sep="\t", keep_default_na=False).id.tolist() == wanted.id.tolist()
    page.get_by_role("button", name="Show all again").click()
    box = page.locator("canvas").bounding_box()
    middle = box["x"] + box["width"] / 2
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.mouse.down()
    for x, y in ((middle, 2), (middle, box["height"] - 2), (box["x"] + 2, box["height"] - 2)):
        page.mouse.move(x, box["y"] + y)
    page.mouse.up()
    page.keyboard.up("Shift")
    left = page.evaluate("data.ids.filter((_, place) => onCanvas(place)[0] < paper.wide / 2)")
    assert 0 < len(left) < 36
    assert page.locator("#listed tbody tr td:first-child").all_inner_texts() == left
    link = page.locator("#listed a").first
    assert (
        link.get_attribute("href").startswith("https://example.org/")
        and link.get_attribute("rel") == "noopener noreferrer"
    )
    context.close()


@pytest.mark.browser
def test_a_hundred_thousand_statements_can_be_moved(browser, tmp_path: Path):
    """No statement is left out, and all regions are drawn."""
    n, rng = 100_000, np.random.default_rng(0)
    maps = pd.DataFrame({
        "id": [f"s{place:06d}" for place in range(n)], "class_id": "", "field": "f", "kind": "pair", "seed": 0,
        "text": [f"Statement {place} on $x^{place % 100}$." for place in range(n)],
        "region": [f"region {place % 14}" for place in range(n)],
        "x": rng.normal(size=n), "y": rng.normal(size=n),
    })  # fmt: skip
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(pages.map_page(maps, tmp_path / "map.html").as_uri())
    page.evaluate("() => { for (let step = 0; step < 20; step++) { view.x += step; draw(); } }")
    page.fill("input[type=search]", "Statement 4242")
    assert (
        page.locator("output").inner_text()
        == f"{sum('4242' in f'{n:06d}' for n in range(100_000))} of 100,000 statements"
    )
    coloured = page.evaluate("""() => { field.value = ''; found = null; all(); draw();
        const pixels = new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        return new Set(pixels).size; }""")
    page.close()
    assert coloured > 14


def test_the_page_calls_pairs_equivalent_only_where_the_card_does(mini):
    """In the legend, in what stands beside a statement, and in what a click shows."""
    premises = pages.map_page_html(placed(equivalence_statements(load("mini-premises"), 5, 5)), "Premises")
    assert "judged relevant (10)" in premises and "equivalent" not in premises.split("<script")[0]
    assert "says the same" not in premises and '"kinds":["judged relevant","distractor"]' in premises
    assert "equivalent (32)" in pages.map_page_html(mini, "Pairs")
