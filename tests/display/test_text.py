"""Any text becomes HTML that runs nothing, loses no word, and marks what it is told to."""

from __future__ import annotations

import numpy as np
import pytest
from attacks import ATTACKS
from lxml import html

from mirblab.display.text import split_pieces, text_html
from mirblab.sources.catalogue import load

ELEMENTS = {"bdi", "br", "code", "mark", "span"}


def page(text: str) -> html.HtmlElement:
    return html.fragment_fromstring(text, create_parent="div")


def marked(text: str) -> list[str]:
    return ["".join(found.itertext()) for found in page(text).iter() if found.get("class") == "mirblab-match"]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.attacks
def test_an_attack_is_text(attack):
    """No element but ours, no address, no event, no style but ours, whole or cut, marked or not."""
    for found in (text_html(attack), text_html(f"Let $x$ be {attack}", [(3, 30, 0.5)], longest=40)):
        found.encode()
        for element in page(found).iter():
            if element.tag in ("div", "math") or element.getparent().tag in ("math",):
                continue
            inside = any(parent.tag == "math" for parent in element.iterancestors())
            assert inside or element.tag in ELEMENTS
            assert not {
                name for name in element.attrib if name.startswith("on") or name in ("href", "src", "xlink:href")
            }
            assert "url(" not in element.get("style", "") and element.get("href") is None


def test_every_word_of_the_bundled_collections_is_there():
    """Prose word for word, and each piece where it says that it starts."""
    for name in ("mini-qa", "mini-formula", "mini-stacks"):
        for text in load(name).texts:
            found = split_pieces(text)
            assert all(text[piece.start : piece.start + len(piece.text)] == piece.text for piece in found)
            words = [" ".join(piece.text.split()) for piece in found if not piece.is_formula]
            shown = page(text_html(text))
            for maths in shown.findall(".//math"):
                maths.drop_tree()
            plain = " ".join("".join(shown.itertext()).split())
            assert all(word in plain for word in words if len(word) > 9 and "\n\n" not in text)


def test_formulas_are_maths_and_dollars_in_prose_are_not_for_mathjax():
    """Delimiters of every kind vanish; a price stays."""
    found = text_html(r"Is \(x\) or $$y^2$$ worth $5 or $6?")
    assert found.count("<math") == 2 and "$5 or $6?" in found and "mathjax_ignore" in found
    assert text_html(r"\frac{1}{2}").count("<mfrac") == 1


def test_marks_are_where_they_are_told_in_prose_and_in_formulas():
    """Strengths differ, overlaps take the stronger, ends beyond the text are cut, a strength of 0 marks nothing."""
    text = "A ring $x+y$ is."
    assert marked(text_html(text, [(2, 6, 1.0), (10, 11, 0.5)])) == ["ring", "y"]
    assert marked(text_html(text, [(0, 6, 0.2), (2, 6, 0.9)])) == ["A ", "ring"]
    assert marked(text_html(text, [(-9, 1, 1.0), (13, 99, 7.0)])) == ["A", "is."]
    assert marked(text_html(text, [(0, 9, 0.0), (4, 2, 1.0), (0, 3, np.nan)])) == []


def test_a_formula_is_never_cut():
    """A text ends before the formula that it would cut, at a word; the first formula may be longer."""
    assert text_html("Let $x+y+z$ be", longest=6).endswith(">Let …</bdi>")
    assert text_html("$x+y+z$ be one", longest=2).count("<math") == 1
    assert text_html("one two three", longest=9).endswith(">one two …</bdi>")
    assert text_html("one two", longest=7).endswith(">one two</bdi>")


def test_what_is_awkward_is_shown():
    """Nothing, blanks, half-typed LaTeX, ten thousand characters, lone surrogates, a formula too large."""
    for text in ("", "   ", r"\frac{", r"$\frac{$", "$", "$$$$$$", "x" * 10_000, "\ud800 $\ud800$", "\u202eab"):
        text_html(text, [(0, 1, 1.0)]).encode()
    assert "<code>" in text_html(f"${'x+' * 999}1$") and "\x00" not in text_html("a\x00")
    assert "one<br>two" in text_html("one\n\ntwo")


def test_a_long_formula_scrolls_in_its_own_box():
    """A short one needs none."""
    assert "overflow-y:hidden" in text_html(f"${'x+' * 20}1$") and "overflow" not in text_html("$x$")


def test_no_line_begins_with_the_comma_behind_a_formula() -> None:
    """It stays with it; a blank, a word and a second formula do not, nor does what follows a box that scrolls."""
    tied = text_html("Let $x$, then $y$ and ($z$)!", [(7, 8, 1.0)])
    assert tied.count("nowrap") == 2 and "</math><mark" in tied and "</math>)!</span></bdi>" in tied
    assert "nowrap" not in text_html("Let $x$ be $y$ $z$ (so)")
    assert "nowrap" not in text_html(f"${'x+' * 20}1$.")
    assert text_html("$x$" + "." * 50).count("...</span>...") == 1
