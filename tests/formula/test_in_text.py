"""posts: formulas in a text are found whichever way they are delimited, and nothing else is."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirblab.formula.in_text import is_bare_formula, marked_formulas, split_at_formulas, split_text

PIECES = ["$", "$$", "$$$", "\\(", "\\)", "\\[", "\\]", "[imath]", "[/imath]", "{", "}", "\\text{", "\\$", "\\\\", "x",
          " and then ", "5", "\\begin{align}", "\\end{align}", "\\begin{cases}", "\\end{cases}", "\\", " "]  # fmt: skip


def found(text: str) -> list[str]:
    return [latex for latex, _, _ in marked_formulas(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"$a$, $$b$$, \(c\), \[d\], [imath]e[/imath] and [math]f[/math]", list("abcdef")),
        ("$ a $ and $$\n b\n$$", ["a", "b"]),
        (r"\begin{align*}a&=b\\[2pt]c\end{align*} so", [r"\begin{align*}a&=b\\[2pt]c\end{align*}"]),
        (r"\begin{gather}\begin{cases}a\end{cases}\\b\end{gather}", 1),
        (r"\begin{cases}a\begin{cases}b\end{cases}\end{cases}$c$", 2),
        (r"\begin{enumerate}\item $x$\end{enumerate}", ["x"]),
        (r"\$5 and $x$ and \$6", ["x"]),
        (r"$x\$$ and $y$", [r"x\$", "y"]),
        ("$a$$b$ and $$c$$$d$", list("abcd")),
        ("$$$x$$$ and $y$", ["x", "y"]),
        (r"$\{x$ and $y\}$", [r"\{x", r"y\}"]),
        (r"$x \\ y$", [r"x \\ y"]),
        ("no formula", []),
        ("", []),
        ("$$ $$ and $ $", []),
    ],
)
def test_each_kind_of_delimiter(text: str, expected: list[str] | int) -> None:
    """Inline, display, forum and environment; escaped signs are none; empty formulas are left out."""
    assert found(text) == expected if isinstance(expected, list) else len(found(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It costs $5 and $6.", []),
        ("From $10--$20 a day", []),
        ("Pay $5 (or more) and solve $x^2$", ["x^2"]),
        ("$1,000,000 for $P=NP$ is fair", ["P=NP"]),
        ("$2 mod 3$ and $3$5", ["2 mod 3", "3"]),
        ("$5$ or $6$ apples", ["5", "6"]),
        ("$12 apples$ are a dozen", ["12 apples"]),
    ],
)
def test_money_is_no_formula(text: str, expected: list[str]) -> None:
    """An amount after a dollar and prose before the next one, or a digit after it; numbers alone are formulas."""
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a $ alone", []),
        ("a $ sign, then $x$ and $y$ are", ["x", "y"]),
        ("a $ sign, then $ x and y $ are", ["x and y"]),
        ("$x$ and $y$ and a $ sign", ["x", "y"]),
        ("the price $ then $$x=1$$ more", ["x=1"]),
        ("$$x$ is one, $y$ two", ["x", "y"]),
        ("$$ Now a long stretch of prose without end $x$ here", ["x"]),
        (r"\[ open, $x$", ["x"]),
        (r"\begin{align} open, $x$", ["x"]),
        (r"\begin{align} a \end{align*} and \begin{align} x^2 \end{align}", [r"\begin{align} x^2 \end{align}"]),
    ],
)
def test_a_delimiter_without_partner_costs_no_other_formula(text: str, expected: list[str]) -> None:
    """Prose and formulas do not change places after it."""
    assert found(text) == expected


def test_a_dollar_in_text_belongs_to_the_formula_around_it() -> None:
    """In \\text and \\mbox, with braces inside; prose in bold may hold formulas, which do not reach out of it."""
    assert found(r"$\text{if $x$ and {$y$}} z$ $w$") == [r"\text{if $x$ and {$y$}} z", "w"]
    assert found(r"$\mbox{a $b$}$") == [r"\mbox{a $b$}"]
    assert found(r"\textbf{where $x$ is}, and $y$") == ["x", "y"]
    assert found(r"\textbf{a $ sign}, and $y$") == ["y"]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=30))
def test_spans_and_parts_agree_with_the_text(text: str) -> None:
    """Whatever the text: LaTeX is what stands at its place, places ascend, and parts keep the order of the text."""
    last = 0
    for latex, start, end in marked_formulas(text):
        assert latex == text[start:end] == latex.strip() and last <= start < end <= len(text)
        last = end
    pieces = split_at_formulas(text)
    assert len(pieces) % 2 == 1 and pieces[1::2] == found(text)
    at = 0
    for piece in pieces:
        at = text.index(piece, at) + len(piece)


@pytest.mark.parametrize(
    "unit",
    ["$", "$$", "$$x$", "{$}", r"\text{$", r"\text{$}", r"\[", r"\begin{align}", "${", "$5 and ", r"\( \[ $ $$ [imath]",
     "\\", "a $ b "],
)  # fmt: skip
def test_what_never_closes_is_read_soon(unit: str, in_time: None) -> None:
    """Two hundred thousand characters of it."""
    marked_formulas(unit * (200_000 // len(unit)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\frac{1}{2}", True),
        ("n", True),
        ("ab = ba", True),
        (r"f(x) = \begin{cases} 1 & \text{if $x$ is very large} \\ 0 \end{cases}", True),
        (r"\begin{align} a &= b \end{align}", True),
        ("sin x + cos y", True),
        ("", False),
        ("Is every field a ring?", False),
        (r"Then \begin{align} a &= b \end{align} so that $c$", False),
        (r"Then \begin{align} a &= b \end{align} by induction", False),
        ("A quasi-compact immersion", False),
        ("$x$", False),
    ],
)
def test_a_bare_formula_is_told_from_prose(text: str, expected: bool) -> None:
    """A formula with environments, or with text inside, is one formula; prose around an environment is prose."""
    assert (split_text(text) == ["", text, ""]) == expected
    if "\\begin" not in text and "$" not in text:
        assert is_bare_formula(text) == expected


def rows(path: Path) -> list[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [f"{row.get('title', '')} {row['text']}" for row in map(json.loads, lines)]


def test_formulas_of_real_posts_hold_no_prose(shared_file: Callable[[str], Path]) -> None:
    """At most one in a hundred has three words of prose, and hardly a post has LaTeX outside of its formulas."""
    texts = rows(shared_file("data/arqmath-2020-task1/corpus.jsonl.gz"))
    every = [latex for text in texts for latex in found(text)]
    bare = [re.sub(r"\\[A-Za-z]+\*?|\{[^{}]*\}", "", latex) for latex in every]
    prose = [latex for latex in bare if len(re.findall(r"[a-z]{3,}", latex)) > 2]
    assert len(every) > 41_000 and len(prose) < 0.01 * len(every)
    outside = [text for text in texts if re.search(r"\\(?:frac|sum|int|leq)\b", "".join(split_at_formulas(text)[::2]))]
    assert len(outside) < 0.01 * len(texts)


def test_collections_of_formulas_are_read_as_formulas(shared_file: Callable[[str], Path]) -> None:
    """But for single words of prose, which they hold too, and formulas with dollars of their own: one in a thousand."""
    for name in ("ntcir12-wfb/corpus.jsonl", "arqmath-2020-task2/corpus.jsonl.gz"):
        texts = [text for text in rows(shared_file(f"data/{name}")) if text.strip()]
        assert sum(split_text(text) != ["", text, ""] for text in texts) < 0.001 * len(texts)
