"""In a real browser no attack runs, asks for anything or adds an element, and scripts of our own still work."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from attacked_pages import PLACES, held
from attacks import ATTACKS
from judging import ATTRIBUTES, EVERYWHERE, TAGS

from mirblab.display import table_formats, threads
from mirblab.display.plots import pages
from mirblab.display.threads import render_mathml
from mirblab.sources.stackexchange import threads as reader

pytestmark = pytest.mark.browser
# What is in a page that none of ours may have: [element, attribute].
SURPLUS = """({tags, attributes, everywhere, maths}) => [...document.querySelectorAll('*')].flatMap(element => {
  const name = element.localName, may = new Set([...everywhere, ...(attributes[name] || []),
    ...(maths.tags.includes(name) ? maths.attributes : [])]);
  if (['button', 'output'].includes(name) && element.closest('.mirblab-table')) return [];
  if (name === 'input' && element.closest('.mirblab-tools')) return [];
  if (element.matches('#map *, #told *')) may.clear(), ['class', 'tabindex', 'role', 'fill', 'transform', 'aria-label',
    'aria-live', 'style', 'd', 'x1', 'x2', 'y1', 'y2', 'stretchy', 'accent', 'data-loose', 'rspace', 'notation',
    'lspace', 'form', 'width', 'height'].forEach(one => may.add(one));
  if (!tags.includes(name) && name !== 'canvas') return [name];
  return [...element.attributes].filter(one => !may.has(one.name.toLowerCase()) && one.name !== 'aria-sort'
    && one.name !== 'data-lm-suppress-shortcuts').map(one => `${name} ${one.name}`);
})"""
KNOWN = {
    "tags": sorted(TAGS), "attributes": {tag: sorted(names) for tag, names in ATTRIBUTES.items()},
    "everywhere": sorted(EVERYWHERE),
    "maths": {"tags": sorted(threads.TAGS), "attributes": sorted(threads.ATTRIBUTES)},
}  # fmt: skip
# What a reader might do to everything: point at it, focus it, click it, open it.
TOUCH = """() => { for (const element of document.querySelectorAll('body *')) {
  for (const kind of ['mouseover', 'mouseenter', 'pointerover', 'focus', 'focusin', 'wheel', 'animationstart'])
    element.dispatchEvent(new Event(kind, {bubbles: true}));
  if (element.localName === 'details') element.open = true;
  if (!element.closest('a')) element.click?.();
} }"""


def statements() -> str:
    """Return a map of all attacks."""
    said = [held(attack) for attack in ATTACKS]
    rows = pd.DataFrame({
        "id": [f"{n:03d}" for n in range(len(said))], "class_id": said, "field": said, "kind": "pair", "text": said,
        "x": [n % 17 for n in range(len(said))], "y": [n // 17 for n in range(len(said))], "seed": 0,
    })  # fmt: skip
    return pages.map_page_html(rows, said[0], said[1])


def browsed() -> str:
    """Return one table of all attacks, as text and as mathematics."""
    said = [held(attack) for attack in ATTACKS]
    frame = pd.DataFrame({"text": said, "maths": said, said[0]: range(len(said))}, index=said)
    return table_formats.sortable_table(frame, maths=["maths"], caption=said[0]).data


def index() -> str:
    """Return the page that lists a thread for each attack."""
    return threads.thread_index([reader.Thread(post) for post in posts()], render_mathml, ATTACKS[0])


def one_thread() -> str:
    """Return one thread with an answer for each attack, so that what one leaves open meets the next."""
    said = posts()
    return threads.thread_page(
        reader.Thread(said[0], said, "", [reader.Link(a, "related", a) for a in ATTACKS]), render_mathml
    )


def posts() -> list[reader.Post]:
    """Return a post for each attack, filled by it."""
    return [
        reader.Post(a, a, a, [a], 1, a, "", a, None, [reader.Comment(a, 1, a, "", a)], ) for a in ATTACKS
    ]  # fmt: skip


def each(place: str) -> str:
    """Return all attacks, one after the other, in a page of ours."""
    body = "\n".join(f"<section>{PLACES[place](attack)}</section>" for attack in ATTACKS)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>x</title></head><body>{body}</body></html>'
    )


PAGES = {
    "table": lambda: each("table"), "table in a notebook": lambda: each("table in a notebook"),
    "formulas": lambda: each("formulas"), "prose": lambda: each("prose"), "figure": lambda: each("figure"),
    "browsed": browsed, "map": statements, "thread": one_thread, "index of threads": index,
}  # fmt: skip


@pytest.mark.parametrize("place", PAGES)
def test_no_attack_gets_through_in_a_browser(browser, tmp_path: Path, place: str) -> None:
    """No dialog, no request, no error, no element that is not ours, and nothing ran, also when all is touched."""
    path = tmp_path / "page.html"
    path.write_text(PAGES[place](), encoding="utf-8")
    page = browser.new_page()
    dialogs, errors, asked, opened = [], [], [], []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request.url) if not request.url.startswith("data:image/png") else 0)
    page.on("popup", lambda popup: opened.append(popup.url))
    page.set_default_timeout(120_000)
    page.goto(path.as_uri())
    page.evaluate(TOUCH)
    page.wait_for_timeout(500)
    surplus = page.evaluate(SURPLUS, KNOWN)
    hit = page.evaluate("() => '__hit' in window")
    page.close()
    assert not hit and not dialogs and not opened
    assert set(asked) == {path.as_uri()} and not errors
    assert not set(surplus)


def test_the_browser_would_see_a_hit(browser) -> None:
    """An attack that nobody escaped sets the canary, which shows that the attacks are real."""
    page = browser.new_page()
    page.set_content(f"<p>{ATTACKS[0]}</p><iframe src=//evil.example></iframe>")
    assert page.evaluate("() => '__hit' in window") and page.evaluate(SURPLUS, KNOWN)
    page.close()
