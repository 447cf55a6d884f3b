"""Whole formulas and subexpressions have one hash exactly when renaming and reordering make them equal."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.operators import operator_tree
from mirblab.formula.tokens import MAX_SUBEXPRESSION, build_forest, subexpressions, triples, whole_formulas
from mirblab.formula.tree import OPERANDS, Tree

Nested = tuple | str


def flat(nested: Nested) -> Tree:
    """Return ("U!plus", a, b) as a tree."""
    labels, parents, relations = [], [], ""
    waiting = [(nested, -1, "-")]
    while waiting:
        own, parent, relation = waiting.pop()
        label, *operands = (own,) if isinstance(own, str) else own
        place = len(labels)
        labels, parents, relations = [*labels, label], [*parents, parent], relations + relation
        waiting += [(operand, place, OPERANDS[number]) for number, operand in reversed(list(enumerate(operands)))]
    return Tree(labels, parents, relations)


def orders(nested: Nested) -> list[Nested]:
    """Return the expression with the operands of its unordered operations in all orders."""
    if isinstance(nested, str):
        return [nested]
    label, *operands = nested
    choices = list(product(*map(orders, operands)))
    if label.startswith("U!"):
        choices = [order for choice in choices for order in permutations(choice)]
    return [(label, *choice) for choice in choices]


def renamed(nested: Nested, names: dict[str, str]) -> Nested:
    """Return the expression with its variables numbered as they appear."""
    if isinstance(nested, str):
        return names.setdefault(nested, f"V!{len(names)}") if nested.startswith("V!") else nested
    return tuple(renamed(part, names) if place else part for place, part in enumerate(nested))


def canonical(nested: Nested) -> str:
    """Return one form of all expressions that are equal but for names and order, found by trying every order."""
    return min(repr(renamed(order, {})) for order in orders(nested))


def hash_of(nested: Nested) -> int:
    """Return the hash of the whole expression among its subexpressions."""
    hashes, firsts, _ = subexpressions(build_forest([flat(nested)]))
    return int(hashes[firsts == 0][0])


leaves = st.sampled_from(["V!x", "V!y", "V!z", "N!2"])
small = st.recursive(
    leaves,
    lambda below: st.tuples(st.sampled_from(["U!plus", "U!times", "O!divide"]), below, below),
    max_leaves=5,
).filter(lambda nested: not isinstance(nested, str))


@settings(deadline=None)
@given(small, small)
def test_two_expressions_have_one_hash_exactly_when_they_are_equal_but_for_names_and_order(one: Nested, other: Nested):
    """The oracle tries all orders of operands."""
    assert (hash_of(one) == hash_of(other)) == (canonical(one) == canonical(other))


@settings(deadline=None)
@given(small, st.permutations(["V!x", "V!y", "V!z"]), st.randoms())
def test_renaming_and_reordering_keep_the_hash(nested: Nested, names: list[str], random):
    """Any bijection of the variables, any order of unordered operands."""
    to = dict(zip(["V!x", "V!y", "V!z"], names, strict=True))

    def changed(part: Nested) -> Nested:
        return to.get(part, part) if isinstance(part, str) else (part[0], *map(changed, part[1:]))

    assert hash_of(changed(random.choice(orders(nested)))) == hash_of(nested)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("x^2+y", "a^2+b", True),
        ("x^2+y", "a^2+a", False),
        ("x^2+y", "a^3+b", False),
        (r"\frac{x}{y}", r"\frac{y}{x}", True),
        (r"\frac{x}{2}", r"\frac{2}{x}", False),
        ("xy+xz", "xx+yz", False),
    ],
)
def test_operator_trees_of_latex(one: str, other: str, is_same: bool):
    """Written out by hand."""
    hashes = [subexpressions(build_forest([operator_tree(parse_latex(latex))]))[0][0] for latex in (one, other)]
    assert (hashes[0] == hashes[1]) == is_same


def test_every_subexpression_is_there_with_its_nodes():
    """(x + 2) / y: the division and the sum."""
    tree = flat(("O!divide", ("U!plus", "V!x", "N!2"), "V!y"))
    _, firsts, lasts = subexpressions(build_forest([flat("V!a"), tree]))
    assert list(zip(firsts.tolist(), lasts.tolist(), strict=True)) == [(1, 5), (2, 4)]


def test_large_subtrees_and_wildcards_are_left_out():
    """A sum of many is none; its small parts are."""
    many = ("U!plus", *(("O!SUP", f"V!{number}", "N!2") for number in range(MAX_SUBEXPRESSION)))
    _, firsts, _ = subexpressions(build_forest([flat(many)]))
    assert 0 not in firsts and len(firsts) == MAX_SUBEXPRESSION
    hashes, firsts, _ = subexpressions(
        build_forest([flat(("U!plus", ("O!SUP", "?x", "N!2"), ("O!SUP", "V!y", "N!2")))])
    )
    assert firsts.tolist() == [4]
    assert len(whole_formulas(build_forest([flat(("U!plus", "?x", "V!y"))]))[0]) == 0


@pytest.mark.parametrize("at_once", [7, 29])
def test_blocks_change_no_hash(monkeypatch, at_once: int):
    """Many trees in blocks of a few pairs give what one block gives, also where the last block is full."""
    forest = build_forest(
        [operator_tree(parse_latex(latex)) for latex in ("x^2+y^2", r"\frac{a+b}{c}", "", "f(x)=0") * 5]
    )
    whole = subexpressions(forest)
    monkeypatch.setattr("mirblab.formula.tokens._AT_ONCE", at_once)
    for one, other in zip(whole, subexpressions(forest), strict=True):
        np.testing.assert_array_equal(one, other)


def test_whole_trees_keep_their_layout():
    """x_2 is not x^2; an empty tree has no hash."""
    trees = [
        Tree(["V!x", "N!2"], [-1, 0], "-a"),
        Tree(["V!x", "N!2"], [-1, 0], "-b"),
        Tree([], [], ""),
        parse_latex("y^2"),
    ]
    hashes, firsts, lasts = whole_formulas(build_forest(trees))
    assert len(hashes) == 3 and hashes[0] == hashes[2] != hashes[1]
    assert firsts.tolist() == [0, 2, 4] and lasts.tolist() == [1, 3, 5]


def test_triples_name_types_and_ordered_places():
    """In a/(b+2) the places below the division count, those below the sum do not."""
    one, other = ("O!divide", "V!a", ("U!plus", "V!b", "N!2")), ("O!divide", "V!a", ("U!plus", "N!3", "V!c"))
    keys = [set(triples(build_forest([flat(nested)]))[0].tolist()) for nested in (one, other)]
    assert keys[0] == keys[1] and len(keys[0]) == 2
    turned = triples(build_forest([flat(("O!divide", ("U!plus", "V!b", "N!2"), "V!a"))]))[0]
    assert keys[0].isdisjoint(turned.tolist())
