"""trees: checks of the lesson on formulas as trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from mirblab.formula.latex import parser
from mirblab.formula.tree import node_paths, shown_label
from mirblab.lessons.exercises import exercise, shorten
from mirblab.lessons.hints import check_function

_FORMULA = "x^{y_n} + 1"
_PRODUCT = ("times", ("plus", "a", "b"), ("power", "c", "2"))
_OPERATIONS = ("plus", "times", "power")
_TREES = (
    ("a", {"a": 5}),
    ("12", {"a": 5}),
    (("plus", "a", ("times", "b", "2")), {"a": 1, "b": 3}),
    (("power", ("plus", "a", "1"), "3"), {"a": 1}),
    (("power", "2", "a"), {"a": 5}),
    (("times", "a", "b", ("plus", "a", "b", "1")), {"a": 2, "b": 3}),
    (("times", "a", "0", "b"), {"a": 2, "b": 3}),
)
_RENAMINGS: tuple[tuple[list[str], list[str], bool, str], ...] = (
    (["x", "y", "x"], ["a", "b", "a"], True, ""),
    (["x", "y"], ["y", "x"], True, "letters may trade places."),
    (["x", "x"], ["a", "b"], False, "one letter cannot become two different ones."),
    (["x", "y"], ["a", "a"], False, "two different letters became the same one; is that one-to-one?"),
    (
        ["x", "y", "x"],
        ["a", "b", "b"],
        False,
        "the number of different letters agrees, but they do not occur in the same places.",
    ),
    (["x", "y"], ["a", "b", "c"], False, "the lists have different lengths."),
    (["x", "y", "z"], ["x", "y", "z"], True, "a replacement may keep every letter."),
    ([], [], True, "neither formula has a letter, so nothing contradicts a replacement."),
)


@exercise("paths", "No two symbols of a formula have the same path.")
def _paths(answer: Any) -> str:
    tree = parser.parse_latex(_FORMULA)
    truth = dict(zip(map(shown_label, tree.labels), node_paths(tree), strict=True))
    if not isinstance(answer, dict):
        return f"A dictionary from symbols to paths is wanted, but the answer is `{shorten(answer)}`."
    absent = [symbol for symbol in truth if symbol not in answer]
    if absent:
        return f"The symbol `{absent[0]}` has no path yet."
    surplus = [symbol for symbol in answer if symbol not in truth]
    if surplus:
        return f"`{surplus[0]}` is no symbol of the formula; braces and blanks are not symbols."
    for symbol, path in truth.items():
        hint = _path_hint(symbol, answer[symbol], path)
        if hint:
            return hint
    return ""


def _path_hint(symbol: str, answer: Any, truth: str) -> str:
    if answer == truth:
        return ""
    start = f"The path of `{symbol}`: "
    if not isinstance(answer, str):
        return f"{start}a string is wanted, but the answer is `{shorten(answer)}`."
    if not truth:
        return f"{start}this is the root; no edge leads to it."
    if set(answer) - set("nabouw"):
        return f"{start}only the letters n, a, b, o, u and w stand on edges."
    if answer == truth[::-1]:
        return f"{start}the letters are right, but a path begins at the root."
    if answer == truth[-1:]:
        return f"{start}that is only its last edge; a path begins at the root."
    if len(answer) != len(truth):
        return f"{start}it has too {'many' if len(answer) > len(truth) else 'few'} edges."
    return f"{start}one of its letters says another place than that of the symbol."


@exercise("operations", "Parentheses are not needed: the shape of the tree expresses the same.")
def _operations(answer: Any) -> str:
    if isinstance(answer, str):
        return "That is one string; a tree of several operations is a tuple that holds tuples."
    wrong = _malformed(answer)
    if wrong:
        return wrong
    if _sorted(answer) == _sorted(_PRODUCT):
        return ""
    if answer[0] == "plus":
        return (
            "The root is the operation that is done last; yours is a sum, but the parentheses come before the product."
        )
    if answer[0] == "power":
        return "Your root is a power: then the whole product is squared. To which letter does the exponent 2 belong?"
    inside = [part[0] for part in answer[1:] if isinstance(part, tuple)]
    if sorted(inside) != ["plus", "power"]:
        return "The root is right; below it there are two operations, one for each factor."
    power = next(part for part in answer[1:] if isinstance(part, tuple) and part[0] == "power")
    if power == ("power", "2", "c"):
        return "The order counts for a power: first the base, then the exponent."
    return "The operations are right; look at the letters and numbers below them."


def _malformed(tree: Any) -> str:
    if isinstance(tree, str):
        return "" if tree.isalnum() else f"`{shorten(tree)}` is neither a letter nor a number."
    if isinstance(tree, int | float):
        return "Numbers are strings here, in quotes."
    if not isinstance(tree, tuple) or not tree:
        return f"A tree is a string or a tuple, but yours contains `{shorten(tree)}`."
    if tree[0] not in _OPERATIONS:
        return f"A tuple begins with plus, times or power; one of yours begins with `{shorten(tree[0])}`."
    if len(tree) < 3 or (tree[0] == "power" and len(tree) != 3):
        return f"Your `{tree[0]}` has {len(tree) - 1} operands."
    return next((hint for hint in map(_malformed, tree[1:]) if hint), "")


def _sorted(tree: Any) -> Any:
    """Return a tree with the operands of sums and products, whose order does not matter, in a fixed order."""
    if not isinstance(tree, tuple):
        return (tree,)
    parts = tuple(map(_sorted, tree[1:]))
    return (tree[0], *(parts if tree[0] == "power" else sorted(parts, key=repr)))


@exercise("value", "Two trees that give the same number for all letters are equal as functions, not as trees.")
def _value(answer: Any) -> str:
    if callable(answer) and isinstance(leaf := answer("a", {"a": 5}), str | tuple):
        return f"For the input `'a', {{'a': 5}}` the answer is `{shorten(leaf)}`: a leaf is a string, so look it up."
    return check_function(answer, _TREES, _computed, _slips)


def _slips(tree: Any, letters: dict[str, int]) -> Mapping[str, float]:
    if not isinstance(tree, tuple):
        return {}
    numbers = [_computed(part, letters) for part in tree[1:]]
    if tree[0] == "power":
        return {
            "your power multiplies its operands.": numbers[0] * numbers[1],
            "base and exponent are exchanged.": numbers[1] ** numbers[0],
        }
    return {
        "an operation may have more than two operands.": sum(numbers[:2]) if tree[0] == "plus" else prod(numbers[:2]),
        "you add where the tree multiplies.": sum(numbers),
    }


def _computed(tree: Any, letters: dict[str, int]) -> float:
    if isinstance(tree, str):
        return letters[tree] if tree in letters else int(tree)
    numbers = [_computed(part, letters) for part in tree[1:]]
    if tree[0] == "power":
        return numbers[0] ** numbers[1]
    return sum(numbers) if tree[0] == "plus" else prod(numbers)


@exercise("is_renaming", "Formulas whose letters pass this test, and which agree otherwise, have the same pattern.")
def _is_renaming(answer: Callable[[list, list], bool]) -> str:
    for first, second, truth, why in _RENAMINGS:
        case = f"is_renaming({first}, {second})"
        verdict = answer(list(first), list(second))
        if not isinstance(verdict, bool):
            return f"For `{case}` True or False is wanted, but the answer is `{shorten(verdict)}`."
        if verdict != truth:
            return f"For `{case}` your answer is `{verdict}`: {why or 'look at each letter and the one below it.'}"
    return ""
