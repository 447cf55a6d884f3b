"""Trees shown: MathML that a browser and the parser understand, and LaTeX with its matches marked."""

from __future__ import annotations

import gzip
import json
import random
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from mirblab.formula import mathml
from mirblab.formula.latex import parser
from mirblab.formula.markup import highlight_latex
from mirblab.formula.markup import to_mathml as written
from mirblab.formula.tree import Tree, read_tangent

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"


@pytest.mark.parametrize(
    "source",
    [
        r"x^2_i+\frac{a}{b}", r"\sqrt[3]{x+1}", r"f(x,y)=|z|", r"\sum_{k=0}^n\binom{n}{k}", r"\int_0^1 x\,dx",
        r"\begin{pmatrix}a&b\\c&d\end{pmatrix}^T", r"\begin{bmatrix}a&b\end{bmatrix}", r"\hat{ab}^2", r"P(A|B)",
        r"f=\begin{cases}a\\b\end{cases}", r"f'(x)", r"{}^2x", r"a<b \text{ if } c&d", r"\{x \mid (x,y)\in S\}",
        r"\lim_{x\to 0} x", r"\qvar{x}+1", r"(a,b", r"\overline{x}'", r"\underset{n}{x}^2", "",
    ],
)  # fmt: skip
def test_a_tree_comes_back_from_its_mathml(source: str):
    """Scripts, fences, matrices, wildcards, brackets without partner."""
    tree = parser.parse_latex(source)
    assert mathml.parse_mathml(written(tree)) == tree


@pytest.mark.parametrize(
    ("source", "element"),
    [
        (r"\nabla^2", "msup"), ("n!^Q", "msup"), (r"a\circ_R b", "msub"), (r"\partial_x^2", "msubsup"),
        (r"a \sim_R b", "msub"), (r"\overset{d}{=}", "mover"), (r"\xrightarrow{f}", "mover"), (r"\lim_x", "munder"),
        (r"\sum_i^n", "munderover"), (r"\hat{x}", "mover"), (r"\int_a^b", "msubsup"),
    ],
)  # fmt: skip
def test_scripts_stand_above_and_below_only_where_print_has_them_so(source: str, element: str):
    """Signs of sums, limits, arrows and what is stacked on relations; all others have them at the corner."""
    names = {
        found.tag.removeprefix(NAMESPACE)
        for found in ElementTree.fromstring(written(parser.parse_latex(source))).iter()
    }
    assert {name for name in names if name.startswith(("msu", "mo", "mu")) and name != "mo"} == {element}
    assert mathml.parse_mathml(written(parser.parse_latex(source))) == parser.parse_latex(source)


def test_a_congruence_has_its_gap_before_the_bracket():
    """And none behind it; other brackets have none."""
    shown = written(parser.parse_latex(r"1 \pmod p (x)"))
    assert shown.count('lspace="0.4em"') == 1 and '<mo lspace="0">mod</mo>' in shown


def test_an_accent_is_no_row():
    """Chromium sets an accent within a row too high."""
    assert '<mover accent="true"><mi>x</mi><mo>^</mo></mover>' in written(parser.parse_latex(r"\hat{x}"))


def test_a_bar_over_several_letters_is_as_long_as_they_are():
    """The accent is there for who reads the tree, and not drawn; one letter has its own bar."""
    long, short = written(parser.parse_latex(r"\overline{AB}")), written(parser.parse_latex(r"\bar{z}"))
    assert '<mrow style="border-top:1px solid">' in long and '<mrow style="display:none"><mo>¯</mo></mrow>' in long
    under = written(parser.parse_latex(r"\underline{AB}"))
    assert '<mrow style="border-bottom:1px solid">' in under and mathml.parse_mathml(under) == parser.parse_latex(
        r"\underline{AB}"
    )
    assert "style" not in short and mathml.parse_mathml(long) == parser.parse_latex(r"\overline{AB}")


@pytest.mark.parametrize(
    ("source", "has_bar"),
    [
        (r"\binom{n}{k}", False),
        (r"{n \choose k}^2", False),
        (r"\left(\frac{n}{k}\right)", True),
        (r"\frac{n}{k}", True),
    ],
)
def test_a_binomial_has_no_bar(source: str, has_bar: bool):
    """Its tree is that of a fraction in brackets; that one command made both tells them apart."""
    assert ('<mfrac linethickness="0">' not in written(parser.parse_latex(source))) is has_bar
    unknown = parser.parse_latex(source)
    assert "linethickness" not in written(Tree(unknown.labels, unknown.parents, unknown.relations))


def test_a_minus_is_written_as_one():
    """The tree has a hyphen, the page a minus sign."""
    assert "<mo>−</mo>" in written(parser.parse_latex("a-b")) and ">-<" not in written(parser.parse_latex("a-b"))


@pytest.mark.parametrize(
    "text", ["[([V!x[)]]]", "[V!a[|[V!b[|[V!c]]]]]", "[M!()1x1,w[V!a[&comma;[V!b]]]]", "[M!()1x2,w[V!a],e[V!b]]"]
)
def test_what_is_no_fence_and_no_separator_stays_none(text: str):
    """Plain brackets, bars and commas, which a reader of MathML would pair and cut at; by an attribute of our own."""
    tree = read_tangent(text.replace("w[V!a],e[V!b]", "w[V!a,e[V!b]]"))
    assert mathml.parse_mathml(written(tree)) == tree
    assert "fence=" not in written(tree) and "separator=" not in written(tree)


def test_nearly_all_real_formulas_come_back(shared_file: Callable[[str], Path]):
    """At least 99 of 100 from LaTeX; of Tangent's own, whose escaped < is < for us, 93."""
    texts, strings = [], []
    with gzip.open(shared_file("data/arqmath-2020-task2/corpus.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for row in random.Random(1).sample(list(map(json.loads, lines)), 2500):
            texts.append(row["text"])
            strings += [row["slt"]] if row.get("slt") else []
    for trees, share in (([parser.parse_latex(text) for text in texts], 0.99), ([*map(read_tangent, strings)], 0.93)):
        same = sum(mathml.parse_mathml(written(tree)) == tree for tree in trees)
        assert len(trees) > 300 and same / len(trees) >= share


def test_the_markup_is_well_formed_and_holds_no_script():
    """Whatever the labels are: nothing of them becomes an element or an attribute."""
    script = 'V!<script>alert("1")</script>'
    evil = [script, 'T!" onload="x', "M!<>1x1", "]]>", "V!\x00\ud800", "O!divide", "O!root", "E!'&"]
    tree = Tree(evil, [-1, 0, 1, 2, 3, 4, 5, 6], "-nnwnnnn")
    for shown in (written(tree, range(8), latex='"><script>'), highlight_latex('<b>"', tree, [0])):
        found = ElementTree.fromstring(shown)
        names = {element.tag.removeprefix(NAMESPACE) for element in found.iter()}
        assert not names & {"script", "b"}
        assert not any(key.startswith("on") for element in found.iter() for key in element.keys())


def test_matched_nodes_are_marked_by_strength():
    """A symbol gets a ground, stronger with its weight; a fraction, which has no symbol, a frame."""
    tree = parser.parse_latex(r"\frac{x}{2}")
    found = ElementTree.fromstring(written(tree, {0: 1.0, 1: 1.0, 2: 0.4}))
    styles = {
        element.tag.removeprefix(NAMESPACE): element.get("style") for element in found.iter() if element.get("style")
    }
    assert styles == {
        "mfrac": "outline:2px solid rgba(230,159,0,1.00)",
        "mi": "background:rgba(230,159,0,0.65);color:inherit",
        "mn": "background:rgba(230,159,0,0.38);color:inherit",
    }
    assert "style" not in written(tree) and "style" not in written(tree, {1: 0.0})


@pytest.mark.parametrize(
    ("source", "grows"),
    [(r"f(a'_1)", False), (r"[0,1)\frac{a}{b}", False), (r"\left(\frac{a}{b}\right)", True),
     (r"\begin{pmatrix}a & b \\ c & d\end{pmatrix}", True), (r"(\sum_{i} x_i)", True), (r"|x^2|", False)],
)  # fmt: skip
def test_brackets_grow_around_what_has_several_lines(source: str, grows: bool):
    """As in print: scripts alone do not make them taller, and what stands beside them does not."""
    found = re.findall(r'stretchy="(\w+)"', written(parser.parse_latex(source)))
    assert found == [str(grows).lower()] * 2


def test_a_screen_reader_gets_the_latex():
    """As alttext and aria-label; without it the symbols one after the other."""
    tree = parser.parse_latex("x<2")
    assert written(tree, latex="x<2").count('="x&lt;2"') == 2
    assert 'alttext="x &lt; 2"' in written(tree)


def test_an_operator_tree_is_shown_as_functions():
    """Operands in brackets."""
    shown = written(read_tangent("[U!plus,0[V!x],1[O!SUP,0[V!y],1[N!2]]]"), [2])
    assert re.sub("<[^>]*>", "", shown) == "plus(x,SUP(y,2))"
    assert shown.count("background") == 1


def test_the_spans_of_matches_are_marked_in_the_source():
    """Neighbours of one strength share a mark, the stronger of two on one place wins, what is outside is ignored."""
    tree = Tree(["V!a", "V!b", "V!c", "V!d"], [-1, 0, 1, 2], "-nnn", [(0, 1), (1, 2), (1, 3), (3, 99)])
    shown = highlight_latex("abcd<", tree, {0: 1.0, 1: 1.0, 2: 0.4})
    assert re.sub(r' class="mirblab-match" style="background:rgba\(230,159,0,(....)\)[^"]*"', r" \1", shown) == (
        '<code class="mirblab-latex"><mark 0.65>ab</mark><mark 0.38>c</mark>d&lt;</code>'
    )
    assert highlight_latex("x", Tree(["V!x"], [-1], "-"), [0]) == '<code class="mirblab-latex">x</code>'


def test_a_long_or_deep_tree_is_written_soon(in_time: None):
    """No recursion, no growing strings."""
    for relation in "na":
        tree = Tree(["V!x"] * 20_000, list(range(-1, 19_999)), "-" + relation * 19_999)
        assert written(tree).count("<mi>") == 20_000
