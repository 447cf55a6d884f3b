"""Properties of the LaTeX parser: spellings of one formula have one tree, and no string breaks it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from formula_trees import check_tree
from hypothesis import given, settings
from hypothesis import strategies as st

from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.tree import RELATIONS, Tree

LETTERS = "abcfgxyz"
ATOMS = [*LETTERS, r"\alpha", r"\infty", "2", "17"]
OPERATORS = ["+", "-", "=", r"\leq", ",", r"\cdot", r"\in"]
FENCES = [("(", ")"), ("[", "]"), (r"\{", r"\}"), ("[", ")")]

# A formula as nested tuples, so that it can be written in many ways.
formulas = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.tuples(st.just("row"), inner, st.sampled_from(OPERATORS), inner),
        st.tuples(st.just("frac"), inner, inner),
        st.tuples(st.just("sqrt"), inner),
        st.tuples(st.just("fence"), st.sampled_from(FENCES), inner),
        st.tuples(st.just("script"), st.sampled_from(ATOMS), inner, inner),
        st.tuples(st.just("sum"), inner, inner),
        st.tuples(st.just("matrix"), inner, inner, inner, inner),
    ),
    max_leaves=12,
)


class Plain:
    """Writes a formula in one way."""

    def space(self) -> str:
        return " "

    def blank(self) -> str:
        return " "

    def maybe(self, *choices: str) -> str:
        return choices[0]

    def letter(self, letter: str) -> str:
        return letter

    def write(self, formula: Any) -> str:
        if isinstance(formula, str):
            return self.maybe("{}", "{{{}}}").format(self.letter(formula)) + self.blank()
        kind, *parts = formula
        if kind == "fence":
            left, right = parts[0]
            sizes = self.maybe("", r"\left \right", r"\big \big", r"\Bigl \Bigr").split() or ["", ""]
            return f"{sizes[0]}{left}{self.write(parts[1])}{sizes[1]}{right}{self.space()}"
        if kind == "script":
            scripts = [f"^{{{self.write(parts[1])}}}", f"_{{{self.write(parts[2])}}}"]
            if self.maybe("", "swap"):
                scripts.reverse()
            return self.write(parts[0]) + scripts[0] + self.blank() + scripts[1] + self.space()
        written = [part if part in OPERATORS else self.write(part) for part in parts]
        if kind == "row":
            return self.maybe("{}{} {}", r"{}\,{}\; {}", r"{{{}}}{} {}").format(*written)
        if kind == "frac":
            return self.maybe(r"\frac{{{}}}{{{}}}", r"\dfrac{{{}}} {{{}}}", r"{{{} \over {}}}").format(*written)
        if kind == "sqrt":
            return rf"\sqrt{self.blank()}{{{written[0]}}}"
        if kind == "sum":
            limits = self.maybe("", r"\limits", r"\nolimits")
            return rf"\sum{limits}_{{{written[0]}}}^{{{written[1]}}}{self.space()}"
        return self.maybe(
            r"\begin{{pmatrix}} {}&{}\\{}&{} \end{{pmatrix}}",
            r"\begin{{pmatrix}}{} & {} \\ {} & {} \\ \end{{pmatrix}}",
            r"\left( \begin{{array}}{{cc}} {}&{}\\[2pt] {}&{} \end{{array}} \right)",
            r"\pmatrix{{ {}&{} \cr {}&{} }}",
        ).format(*written)


class Varied(Plain):
    """Writes a formula in any of the ways that mean the same."""

    def __init__(self, dice: random.Random, names: dict[str, str] | None = None) -> None:
        self.dice, self.names = dice, names or {}

    def space(self) -> str:
        return self.dice.choice([" ", "  ", "\n", r"\, ", r"\; ", "~", r"\displaystyle ", "{} ", r"\quad "])

    def blank(self) -> str:
        return self.dice.choice([" ", "  ", "\n", "\t "])

    def maybe(self, *choices: str) -> str:
        return self.dice.choice(choices)

    def letter(self, letter: str) -> str:
        return self.names.get(letter, letter)


@given(formulas, st.integers())
@settings(max_examples=300, deadline=None)
def test_other_spellings_have_the_same_tree(formula: Any, seed: int) -> None:
    """Blanks, sizes, braces, the order of scripts and other names of a command change nothing in the tree."""
    plain, varied = Plain().write(formula), Varied(random.Random(seed)).write(formula)
    one, other = parse_latex(plain), parse_latex(varied)
    assert one == other, (plain, varied)
    assert one.problems == other.problems == ()


@pytest.mark.parametrize("cell", ["[b]", r"[\alpha]", "[t] + a"])
def test_a_bracket_in_a_matrix_is_no_option(cell: str) -> None:
    """Only arrays take a position, and only a length may follow a row's end."""
    sized = cell.replace("[", r"\Bigl[").replace("]", r"\Bigr]")
    one, other = (parse_latex(rf"\begin{{pmatrix}} {text} & a \\ {text} & a \end{{pmatrix}}") for text in (cell, sized))
    assert one == other and one.labels.count("M![]1x1") == 2


@given(formulas, st.permutations(LETTERS), st.integers())
@settings(max_examples=100, deadline=None)
def test_renamed_letters_have_the_same_tree(formula: Any, letters: list[str], seed: int) -> None:
    """A formula with other letters has the same tree with these letters."""
    names = dict(zip(LETTERS, letters, strict=True))
    one, other = parse_latex(Plain().write(formula)), parse_latex(Varied(random.Random(seed), names).write(formula))
    renamed = ["V!" + names.get(label[2:], label[2:]) if label.startswith("V!") else label for label in one.labels]
    assert Tree(renamed, one.parents, one.relations) == other


def assert_sound(tree: Tree, source: str) -> None:
    """Fail unless the tree is in reading order, siblings by their relations, spans within the source."""
    check_tree(tree)
    assert len(tree.spans) == len(tree)
    assert all(0 <= start <= end <= len(source) for start, end in tree.spans)
    before: dict[int, int] = {}
    line: list[int] = []
    for node, (parent, relation) in enumerate(zip(tree.parents, tree.relations, strict=True)):
        while line and line[-1] != parent:
            line.pop()
        assert line or node == 0, f"node {node} does not follow its parent's descendants"
        line.append(node)
        if node:
            assert before.get(parent, -1) < RELATIONS.index(relation), f"node {node} comes late, or twice"
            before[parent] = RELATIONS.index(relation)


PIECES = (
    r"\frac \sqrt [ ] \left \right . \begin{matrix} \end{matrix} \begin{cases} & \\ \over \choose \hat \overline \not "
    r"\text{a} \text \mathbb \rm \operatorname{Hom} \operatorname \underbrace \overset \underset \xrightarrow \pmod "
    r"\qvar \bigl \bigr | || \| ( ) \{ \} { } ^ _ ' $ % # ~ , ... 12 3.5 x y \alpha \sum \int d \le = &amp; &lt; \ "
    r"\foo é 字 ∑ \tag \color \kern 3pt \substack \matrix \abs \cr \limits \sp"
).split()


@given(st.lists(st.sampled_from([*PIECES, " "]), max_size=40).map("".join))
@settings(max_examples=1500, deadline=None)
def test_any_sequence_of_commands_has_a_sound_tree(latex: str) -> None:
    """Any sequence of commands gives a sound tree."""
    assert_sound(parse_latex(latex), latex)


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_has_a_sound_tree(latex: str) -> None:
    """Any text gives a sound tree."""
    assert_sound(parse_latex(latex), latex)


@given(
    st.lists(st.sampled_from([*PIECES, r"\a", r"\b"]), max_size=20).map("".join),
    st.dictionaries(
        st.sampled_from([r"\a", r"\b", r"\frac", "{", "x"]),
        st.lists(st.sampled_from([*PIECES, "#1", "#2", r"\a", r"\b"]), max_size=6).map("".join),
    ),
)
@settings(max_examples=300, deadline=None)
def test_any_macros_give_a_sound_tree(latex: str, macros: dict[str, str]) -> None:
    """Any table of macros, endless ones among them, gives a sound tree."""
    assert_sound(parse_latex(latex, macros), latex)
