"""The checks of the lesson about formulas as trees: right answers pass, usual slips get a hint that names them."""

from __future__ import annotations

import math

from lesson_answers import hint_test, right_test

PATHS = {"x": "", "y": "a", "n": "ab", "+": "n", "1": "nn"}
PRODUCT = ("times", ("plus", "a", "b"), ("power", "c", "2"))


def _value(tree, letters, power=pow, product=math.prod, leaf=None):
    if isinstance(tree, str):
        return leaf(tree) if leaf else letters[tree] if tree in letters else int(tree)
    numbers = [_value(part, letters, power, product, leaf) for part in tree[1:]]
    if tree[0] == "plus":
        return sum(numbers)
    return product(numbers) if tree[0] == "times" else power(*numbers)


def _is_renaming(one, other):
    return len(one) == len(other) and len(set(zip(one, other, strict=True))) == len(set(one)) == len(set(other))


RIGHT = {
    "paths": [PATHS],
    "operations": [PRODUCT, ("times", ("power", "c", "2"), ("plus", "b", "a"))],
    "value": [_value],
    "is_renaming": [_is_renaming],
}
WRONG = [
    ("paths", PATHS | {"n": "ba"}, "begins at the root"),
    ("paths", PATHS | {"n": "b"}, "last edge"),
    ("paths", PATHS | {"x": "n"}, "the root"),
    ("paths", PATHS | {"+": "nn"}, "too many edges"),
    ("paths", PATHS | {"y": "b"}, "another place"),
    ("paths", PATHS | {"y": "up"}, "stand on edges"),
    ("paths", {"x": ""}, "no path yet"),
    ("paths", PATHS | {"{": "a"}, "no symbol"),
    ("paths", ["", "n"], "dictionary"),
    ("operations", ("plus", "a", ("times", "b", ("power", "c", "2"))), "parentheses"),
    ("operations", ("power", ("times", ("plus", "a", "b"), "c"), "2"), "whole product"),
    ("operations", ("times", ("plus", "a", "b"), ("power", "2", "c")), "order counts"),
    ("operations", ("times", ("plus", "a", "b"), "c"), "two operations"),
    ("operations", ("times", ("plus", "a", "b"), ("power", "c", 2)), "strings"),
    ("operations", ("mal", "a", "b"), "begins with"),
    ("operations", "(a+b)c^2", "one string"),
    ("value", lambda tree, letters: tree, "look it up"),
    ("value", lambda tree, letters: _value(tree, letters, power=lambda a, b: a * b), "multiplies its operands"),
    ("value", lambda tree, letters: _value(tree, letters, power=lambda a, b: b**a), "exchanged"),
    ("value", lambda tree, letters: _value(tree, letters, product=lambda n: n[0] * n[1]), "more than two operands"),
    ("value", lambda tree, letters: letters[tree], "KeyError"),
    ("is_renaming", lambda one, other: len(one) == len(other), "one letter cannot become two"),
    ("is_renaming", lambda one, other: len(set(one)) == len(set(other)) == len(set(one + other)) / 2, "trade places"),
    ("is_renaming", lambda one, other: len(one) == len(other) and len(set(one)) == len(set(other)), "same places"),
    ("is_renaming", lambda one, other: len(set(zip(one, other, strict=False))) == len(set(one)), "one-to-one"),
    ("is_renaming", lambda one, other: 1, "True or False"),
]


test_right_answers_pass = right_test("trees", RIGHT)
test_a_wrong_answer_gets_its_hint = hint_test(
    "trees", WRONG, ("`ab`", "'ab'", '("times"', "('times', ('plus', 'a', 'b')")
)


def test_the_tree_asked_for_is_that_of_the_parser():
    """The product by hand has the operations that the library reads."""
    from mirblab.formula import operators
    from mirblab.formula.latex import parser

    found = operators.operator_tree(parser.parse_latex("(a+b)c^2"))
    assert found.labels == ["U!times", "U!plus", "V!a", "V!b", "O!SUP", "V!c", "N!2"]
    assert found.parents == [-1, 0, 1, 1, 0, 4, 4]
