"""Operator trees: hand-written ones, Tangent's published ones, and what must hold for any tree."""

from __future__ import annotations

import gzip
import json
import random
import unicodedata
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from formula_trees import check_tree
from hypothesis import given, settings
from hypothesis import strategies as st

from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.latex.symbols import _BARE, NEGATED, _table
from mirblab.formula.operators import ARROW, RELATION, ROLES, operator_tree
from mirblab.formula.tree import Tree, read_tangent, write_tangent

HAND = {
    "a + b - c - d": ("[V!a[+[V!b[-[V!c[-[V!d]]]]]]]", "[O!minus,0[U!plus,0[V!a],1[V!b]],1[V!c],2[V!d]]"),
    "-a b": ("[-[V!a[V!b]]]", "[O!minus,0[U!times,0[V!a],1[V!b]]]"),
    "a - -b": ("[V!a[-[-[V!b]]]]", "[O!minus,0[V!a],1[O!minus,0[V!b]]]"),
    "a ⋅ -b": ("[V!a[⋅[-[V!b]]]]", "[U!times,0[V!a],1[O!minus,0[V!b]]]"),
    "lim -x²": ("[lim[-[V!x,a[N!2]]]]", "[O!limit,0[O!minus,0[O!SUP,0[V!x],1[N!2]]]]"),
    "a = b < c": ("[V!a[=[V!b[<[V!c]]]]]", "[U!and,0[U!eq,0[V!a],1[V!b]],1[O!lt,0[V!c]]]"),
    "= 8.": ("[=[N!8[.]]]", "[U!eq,0[W!],1[N!8]]"),
    "p → q ⇒ r": ("[V!p[→[V!q[⇒[V!r]]]]]", "[O!implies,0[F!→,0[V!p],1[V!q]],1[V!r]]"),
    "a_n^2": ("[V!a,a[N!2],b[V!n]]", "[O!SUP,0[O!SUB,0[V!a],1[V!n]],1[N!2]]"),
    "y′^2": ("[V!y,a[′[N!2]]]", "[O!SUP,0[O!SUP,0[V!y],1[V!′]],1[N!2]]"),
    "a/bc": ("[V!a[/[V!b[V!c]]]]", "[U!times,0[O!divide,0[V!a],1[V!b]],1[V!c]]"),
    "n!/k": ("[V!n[![/[V!k]]]]", "[O!divide,0[O!factorial,0[V!n]],1[V!k]]"),
    "1/n!": ("[N!1[/[V!n[!]]]]", "[O!divide,0[N!1],1[O!factorial,0[V!n]]]"),
    "a/bc!": (
        "[V!a[/[V!b[V!c[!]]]]]",
        "[U!times,0[O!divide,0[V!a],1[V!b]],1[O!factorial,0[V!c]]]",
    ),
    "R^×": ("[V!R,a[×]]", "[O!SUP,0[V!R],1[V!×]]"),
    "⌊a + b⌋²": ("[⌊[V!a[+[V!b[⌋,a[N!2]]]]]]", "[O!SUP,0[F!floor,0[U!plus,0[V!a],1[V!b]]],1[N!2]]"),
    "⟨x, ⌈y⌉⟩ = 0": (
        "[⟨[V!x[&comma;[⌈[V!y[⌉[⟩[=[N!0]]]]]]]]]",
        "[U!eq,0[M!D-⟨⟩,0[V!x],1[F!ceiling,0[V!y]]],1[N!0]]",
    ),
    "⌊x⌉": ("[⌊[V!x[⌉]]]", "[U!times,0[⌊],1[V!x],2[⌉]]"),
    "√x": ("[O!root,w[V!x]]", "[O!root,0[V!x],1[N!2]]"),
    "∛x": ("[O!root,w[V!x],c[N!3]]", "[O!root,0[V!x],1[N!3]]"),
    "f(x)": ("[V!f[M!()1x1,w[V!x]]]", "[U!times,0[V!f],1[V!x]]"),
    "sin(x) y": ("[V!sin[M!()1x1[V!y],w[V!x]]]", "[U!times,0[F!sin,0[V!x]],1[V!y]]"),
    "sin 2x cos y": (
        "[V!sin[N!2[V!x[V!cos[V!y]]]]]",
        "[U!times,0[F!sin,0[U!times,0[N!2],1[V!x]]],1[F!cos,0[V!y]]]",
    ),
    "sin²x": ("[V!sin[V!x],a[N!2]]", "[+!F!sin,0[O!SUP,0[F!sin],1[N!2]],1[V!x]]"),
    "gcd(a, b)": ("[V!gcd[M!()1x2,w[V!a[&comma;],e[V!b]]]]", "[F!gcd,0[V!a],1[V!b]]"),
    "Hom(A)": ("[V!Hom[M!()1x1,w[V!A]]]", "[F!Hom,0[V!A]]"),
    "∑ with limits": (
        "[∑[V!a[V!i[+[V!c]]]],o[V!n],u[V!i[=[N!0]]]]",
        "[U!plus,0[+!O!SUB,0[O!SUP,0[O!SUB,0[O!sum],1[U!eq,0[V!i],1[N!0]]],1[V!n]],1[U!times,0[V!a],1[V!i]]],1[V!c]]",
    ),
    "∫ f dx": ("[∫[V!f[V!d[V!x]]]]", "[O!int,0[U!times,0[V!f],1[F!d,0[V!x]]]]"),
    "|x|": ("[M!||1x1,w[V!x]]", "[F!abs,0[V!x]]"),
    "(a, b]": ("[M!(&rsqb;1x2,w[V!a[&comma;],e[V!b]]]", "[O!interval(O-C),0[V!a],1[V!b]]"),
    "(a, b, c)": ("[M!()1x3,w[V!a[&comma;],e[V!b[&comma;],e[V!c]]]]", "[M!V-3,0[V!a],1[V!b],2[V!c]]"),
    "{x | x > 0}": ("[M!{}1x1,w[V!x[|[V!x[>[N!0]]]]]]", "[O!conditional-set,0[V!x],1[O!gt,0[V!x],1[N!0]]]"),
    "max{x | a, b}": (
        "[V!max[M!{}1x2,w[V!x[|[V!a[&comma;]]],e[V!b]]]]",
        "[F!max,0[O!conditional-set,0[V!x],1[M!L-2,0[V!a],1[V!b]]]]",
    ),
    "matrix": (
        "[M!()2x2,w[V!a,e[V!b,e[V!c,e[V!d]]]]]",
        "[O!matrix,0[M!M-2x2,0[M!R!,0[V!a],1[V!b]],1[M!R!,0[V!c],1[V!d]]]]",
    ),
    "a, b ∈ S": ("[V!a[&comma;[V!b[∈[V!S]]]]]", "[O!in,0[M!L-2,0[V!a],1[V!b]],1[V!S]]"),
    "x = 1, 2, y = 3": (
        "[V!x[=[N!1[&comma;[N!2[&comma;[V!y[=[N!3]]]]]]]]]",
        "[O!form-seq,0[U!eq,0[V!x],1[M!L-2,0[N!1],1[N!2]]],1[U!eq,0[V!y],1[N!3]]]",
    ),
    "x̂": ("[V!x,o[^]]", "[F!^,0[V!x]]"),
    "1 (mod p)": ("[N!1[M!()1x1,w[mod[V!p]]]]", "[O!annotated,0[N!1],1[F!pmod,0[V!p]]]"),
    "0⁺": ("[N!0,a[+]]", "[O!SUP,0[N!0],1[U!plus]]"),
    "1 +": ("[N!1[+]]", "[O!limit-from,0[N!1],1[U!plus]]"),
}  # fmt: skip


@pytest.mark.parametrize("name", HAND)
def test_hand_written_formulas_have_the_operator_tree_that_a_reader_expects(name: str) -> None:
    """Each line of the table of conventions, as a Tangent string."""
    layout, expected = HAND[name]
    assert write_tangent(operator_tree(read_tangent(layout))) == expected


def test_an_operator_tree_and_the_empty_tree_come_back_as_they_are() -> None:
    """Content MathML is read into operator trees, which go through the same door."""
    tree = read_tangent("[U!plus,0[V!a],1[V!b]]")
    assert operator_tree(tree) is tree
    assert len(operator_tree(Tree([], [], ""))) == 0


def test_operators_keep_the_span_of_their_symbol_and_leaves_theirs() -> None:
    """In `a + 2b` the sum is highlighted at its plus; a product without a sign has no place."""
    slt = Tree(["V!a", "+", "N!2", "V!b"], [-1, 0, 1, 2], "-nnn", [(0, 1), (2, 3), (4, 5), (5, 6)])
    tree = operator_tree(slt)
    assert dict(zip(tree.labels, tree.spans, strict=True)) == {
        "U!plus": (2, 3), "V!a": (0, 1), "U!times": (0, 0), "N!2": (4, 5), "V!b": (5, 6)
    }  # fmt: skip


def test_a_product_stands_where_its_first_sign_is_written() -> None:
    """In `ab×c×d` the U!times is the first ×."""
    labels = ["V!a", "V!b", "×", "V!c", "×", "V!d"]
    tree = operator_tree(Tree(labels, list(range(-1, 5)), "-nnnnn", [(place, place + 1) for place in range(6)]))
    assert tree.labels == ["U!times", "V!a", "V!b", "V!c", "V!d"]
    assert tree.spans[0] == (2, 3)


def test_problems_of_the_layout_tree_are_kept() -> None:
    """What the LaTeX parser did not understand is still said."""
    assert operator_tree(Tree(["V!a"], [-1], "-", [], ("odd",))).problems == ("odd",)


LABELS = [
    *ROLES, "V!x", "V!d", "V!Hom", "N!2", "T!if", "M!()1x1", "M!()1x2", "M!{}1x2", "M![]2x2", "M!{2x1", "M!1x1",
    "M!odd", "O!divide", "O!root", "O!binomial", "W!", "E!", "′", "(", ")", "{", "", "V!",
]  # fmt: skip


@st.composite
def layouts(draw: st.DrawFn) -> Tree:
    """Draw any tree at all: any labels, any relations, on lines rather often."""
    size = draw(st.integers(1, 30))
    chance = random.Random(draw(st.integers(0, 10**9)))
    parents = [-1] + [chance.choice([node - 1, node - 1, chance.randrange(node)]) for node in range(1, size)]
    relations = "-" + "".join(chance.choice("nnnnnnabcdouwe") for _ in range(size - 1))
    return Tree([chance.choice(LABELS) for _ in range(size)], parents, relations)


@given(layouts())
@settings(max_examples=400, deadline=None)
def test_any_tree_gives_a_sound_operator_tree_of_about_its_size(tree: Tree) -> None:
    """Nothing raises, and nothing is copied: nested sets once doubled their conditions."""
    found = check_tree(operator_tree(tree))
    assert 1 <= len(found) <= 4 * len(tree) + 3


@pytest.mark.parametrize(
    ("relation", "labels", "expected"),
    [
        ("n", ["V!x", "+"], {"V!x": 10_000, "U!plus": 2, "O!limit-from": 1}),  # a sum, and a plus without a summand
        ("a", ["M!()1x1"] * 2, {"M!()1x1": 20_000, "O!SUP": 19_999}),
        ("o", ["M!()1x1"] * 2, {"M!()1x1": 20_000, "O!SUP": 19_999}),
        ("w", ["M!()1x1"] * 2, {"M!()1x1": 1}),  # brackets around brackets
    ],
)
def test_a_tree_of_any_depth_needs_no_stack(relation: str, labels: list[str], expected: dict[str, int]) -> None:
    """Twenty thousand nodes one below the other are read."""
    found = operator_tree(Tree(labels * 10_000, list(range(-1, 19_999)), "-" + relation * 19_999))
    assert Counter(found.labels) == expected


def test_operator_trees_agree_with_those_that_tangent_published(shared_file: Callable[[str], Path]) -> None:
    """Mean F1 of labels and of parent-child pairs over 2,000 judged formulas of ARQMath; the rest is convention."""
    path = shared_file("data/arqmath-2020-task2/corpus.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = (json.loads(line) for line in file)
        both = [
            (read_tangent(row["slt"]), read_tangent(row["opt"]))
            for row in islice((r for r in rows if r.get("opt")), 2000)
        ]
    scores = []
    for layout, published in both:
        ours, theirs = _pairs(operator_tree(layout)), _pairs(published)
        scores.append(2 * (ours & theirs).total() / max(1, ours.total() + theirs.total()))
    assert sum(scores) / len(scores) >= 0.93


def _pairs(tree: Tree) -> Counter:
    """Return labels and parent-child pairs, without empty places and the differences that are on purpose."""
    names = [unicodedata.normalize("NFKC", label).replace("italic-", "") for label in tree.labels]
    names = [name.replace("lsqb;]", "[]").replace("F!⋅", "U!times") for name in names]
    found = Counter(names)
    found.update((names[parent], names[child]) for parent, child, _ in tree.edges())
    return Counter({key: count for key, count in found.items() if "W!" not in key})


OBJECTS = frozenset("⊤†‡▽◯↺↻√\\") | frozenset("⟨⟩⌊⌋⌈⌉⟦⟧⌜⌝⌞⌟⟮⟯")  # and brackets


@pytest.mark.parametrize("command", [r"\supsetneq", r"\triangleq", r"\rhd", r"\not\sim", r"\not\prec", r"\boxplus"])
def test_a_relation_is_no_factor(command: str) -> None:
    """Without a role A ⊋ B would be a product of three."""
    tree = operator_tree(parse_latex(f"A {command} B"))
    assert tree.labels[0].startswith("F!") and tree.labels[1:] == ["V!A", "V!B"]


def test_every_relation_and_every_arrow_has_a_role() -> None:
    """So has every other bare sign but for the few that denote an object; what is negated stays a relation."""
    bare = {*_table(_BARE, "").values(), *NEGATED.values()}
    assert (ROLES["≠"], ROLES["∉"]) == ((RELATION, "U!neq"), (RELATION, "O!notin"))
    assert {label for label in bare if label not in ROLES} == OBJECTS
    arrows = {label for label in bare if any(word in unicodedata.name(label[0]) for word in ("ARROW", "HARPOON"))}
    assert {label for label in arrows - set("↺↻↾") if ROLES[label][0] not in (RELATION, ARROW)} == set()
    assert all(ROLES[label][0] in (RELATION, ARROW) for label in [*NEGATED.values(), "¬≺", "¬⊩"] if label != "∄")
