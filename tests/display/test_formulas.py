"""What a reader sees of formulas that were found."""

from __future__ import annotations

import lxml.html
import pandas as pd
import pytest

from mirblab import MirblabError
from mirblab.display import formulas
from mirblab.formula.explain import explain_match
from mirblab.formula.index import Index

FORMULAS = ["x^2+y^2", "a^2+b^2", r"\frac{p}{q}"]


@pytest.fixture
def index() -> Index:
    return Index.build([(str(number), latex) for number, latex in enumerate(FORMULAS)])


def listed(*formulas: str) -> pd.DataFrame:
    return pd.DataFrame({"rank": range(1, len(formulas) + 1), "formula": formulas})


def marked(page: str) -> list[str]:
    tree = lxml.html.fromstring(page)
    return [node.text_content() for node in tree.xpath("//*[@class='mirblab-match']")]


def test_lists_stand_beside_each_other_under_the_query():
    """One table each, in order, every formula as MathML, its facts before it."""
    page = lxml.html.fromstring(formulas.formula_lists("x^2", {"ours": listed("x", "y"), "theirs": listed("z")}).data)
    assert [node.text_content() for node in page.xpath("//caption")] == ["ours", "theirs"]
    assert [len(table.xpath(".//tbody/tr")) for table in page.xpath("//table")] == [2, 1]
    assert len(page.xpath("//math")) == 4
    assert page.xpath("//table[1]//tbody/tr[1]/td[1]")[0].text_content() == "1"


def test_what_the_query_shares_is_marked_only_with_an_index(index):
    """The plus sign and the squares of another sum of squares, but nothing of a fraction of other letters."""
    lists = {"": listed(FORMULAS[1])}
    assert {"+", "2"} <= set(marked(formulas.formula_lists(FORMULAS[0], lists, index).data))
    assert marked(formulas.formula_lists(FORMULAS[0], lists).data) == []
    assert marked(formulas.formula_lists(FORMULAS[0], {"": listed(FORMULAS[2])}, index).data) == []


@pytest.mark.attacks
def test_nothing_of_the_data_becomes_markup(index):
    """Neither a formula, nor a fact, nor a title."""
    bad = "<script>alert(1)</script>"
    rows = pd.DataFrame({"doc_id": [bad], "formula": [rf"\text{{{bad}}} < y"]})
    page = formulas.formula_lists(rf"x^2\text{{{bad}}}", {bad: rows}, index, title=bad).data
    why = explain_match(bad, bad, index)
    assert "<script" not in page and "<script" not in formulas.formula_pair(why, bad, bad, title=bad).data


def test_a_dollar_is_kept_from_mathjax():
    """In the facts and in the source."""
    page = formulas.formula_lists("x", {"": pd.DataFrame({"note": ["$5$"], "formula": ["x"]})}).data
    assert '<span class="tex2jax_ignore mathjax_ignore">$5$</span>' in page


def test_a_very_large_formula_is_the_start_of_its_source():
    """A browser would show nothing that anybody reads."""
    page = formulas.formula_lists("x", {"": listed("+".join(["x^2"] * 500))}).data
    assert len(page) < 5_000 and "<code" in page


def test_short_formulas_share_a_page_and_long_ones_do_not():
    """Beside each other where both fit, else one list below the other, and letters no smaller than can be read."""
    long = "+".join(f"x_{{{number}}}" for number in range(30))
    short, tall = (formulas.formula_lists("x", {"a": listed("x"), "b": listed(one)}).data for one in ("y", long))
    assert short.count("flex:1 1 24em") == 2 and tall.count("flex:1 1 100%") == 2
    assert "font-size:0.70em" in formulas.rendered("+".join("abcdefghijklmnop" * 4))
    assert "font-size" not in formulas.rendered("x+y")


def test_a_pair_says_score_shares_and_names(index):
    """The numbers are those of the explanation."""
    why = explain_match(FORMULAS[0], FORMULAS[1], index)
    page = formulas.formula_pair(why, FORMULAS[0], FORMULAS[1]).data
    assert f"score {why.score:.3f}" in page and f"{100 * why.found:.0f} % of the query" in page
    assert "x became a" in page and "y became b" in page
    rows = lxml.html.fromstring(page).xpath("//tr")
    assert [row.xpath(".//math")[0].text_content() for row in rows] == ["x2+y2", "a2+b2"]
    assert [row.xpath(".//code")[0].text_content() for row in rows] == FORMULAS[:2]


def test_a_list_without_formulas_is_refused():
    """The message names what is there."""
    with pytest.raises(MirblabError, match="formula"):
        formulas.formula_lists("x", {"": pd.DataFrame({"latex": ["x"]})})
