"""Beginnings of texts: no half formula, dollars in pairs, never longer than asked."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from mirblab.display.text import excerpts


def test_a_post_ends_before_the_formula_that_would_be_cut():
    """Display formulas have two dollars, so counting them is not enough."""
    text = r"We know that $$\sum_{n=1}^\infty \frac1{n^2} = \frac{\pi^2}{6}$$ holds"
    assert excerpts([text], "", 30) == ["We know that …"]


def test_prose_is_cut_between_words():
    """And the mark says that there is more."""
    assert excerpts(["one two three four"], "", 9) == ["one two …"]


def test_a_long_formula_is_shown_as_it_is_written():
    """Half of it between dollars could not be typeset."""
    assert excerpts(["x+" * 50], "Formula Retrieval", 10) == ["x+x+x+x+x+…"]


def test_a_price_opens_no_formula():
    """A lone dollar is escaped."""
    assert excerpts(["It costs $5 only."]) == [r"It costs \$5 only."]


@given(st.text(alphabet="ab $\\(){}x^2", max_size=80), st.integers(5, 60))
def test_dollars_come_in_pairs(text, longest):
    """Whatever the text and the length."""
    found = excerpts([text], "Question-Answer Retrieval", longest)[0]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\$", found)) % 2 == 0
    assert len(found) <= longest + 2


def test_code_has_no_formulas_to_set() -> None:
    """A dollar of HOL is written as one."""
    assert excerpts(["|- !x. x$1 = y$1", "|- !x. x$2 = y$2"]) == [r"|- !x. x\$1 = y\$1", r"|- !x. x\$2 = y\$2"]
