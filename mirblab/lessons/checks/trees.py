"""trees: checks of the lesson on formulas as trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mirblab.formula.latex import parser
from mirblab.formula.tree import node_paths, shown_label
from mirblab.lessons.exercises import check_number, exercise, shorten

_FORMULA = "x^{y_n} + 1"
_PRODUCT = ("times", ("plus", "a", "b"), ("power", "c", "2"))
_OPERATIONS = ("plus", "times", "power")
_TREES = (
    ("a", {"a": 5}, 5),
    ("12", {"a": 5}, 12),
    (("plus", "a", ("times", "b", "2")), {"a": 1, "b": 3}, 7),
    (("power", ("plus", "a", "1"), "3"), {"a": 1}, 8),
    (("power", "2", "a"), {"a": 5}, 32),
    (("times", "a", "b", ("plus", "a", "b", "1")), {"a": 2, "b": 3}, 36),
    (("times", "a", "0", "b"), {"a": 2, "b": 3}, 0),
)
_RENAMINGS = (
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


def _path_hint(symbol: str, found: Any, truth: str) -> str:
    if found == truth:
        return ""
    start = f"The path of `{symbol}`: "
    if not isinstance(found, str):
        return f"{start}a string is wanted, but the answer is `{shorten(found)}`."
    if not truth:
        return f"{start}this is the root; no edge leads to it."
    if set(found) - set("nabouw"):
        return f"{start}only the letters n, a, b, o, u and w stand on edges."
    if found == truth[::-1]:
        return f"{start}the letters are right, but a path begins at the root."
    if found == truth[-1:]:
        return f"{start}that is only its last edge; a path begins at the root."
    if len(found) != len(truth):
        return f"{start}it has too {'many' if len(found) > len(truth) else 'few'} edges."
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
    """Return what is wrong with a tuple as a tree, or ""."""
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
    """Return a tree with the operands of sums and products in one order, which does not matter there."""
    if not isinstance(tree, tuple):
        return (tree,)
    parts = tuple(map(_sorted, tree[1:]))
    return (tree[0], *(parts if tree[0] == "power" else sorted(parts, key=repr)))


@exercise("value", "Two trees that give the same number for all letters are equal as functions, not as trees.")
def _value(answer: Callable[[Any, dict], float]) -> Iterator[str]:
    for tree, letters, truth in _TREES:
        case = f"value({tree!r}, {letters})"
        found = answer(tree, dict(letters))
        if isinstance(found, str | tuple):
            yield f"For `{case}` the answer is `{shorten(found)}`, no number: a leaf is a string, so look it up."
        yield check_number(found, truth, case, _slips(tree, letters))


def _slips(tree: Any, letters: dict[str, int]) -> dict[str, float]:
    """Return what known slips give for the operation at the root of a tree whose operands are leaves."""
    if not isinstance(tree, tuple):
        return {}
    numbers = [_computed(part, letters) for part in tree[1:]]
    slips = {"your power multiplies its operands.": numbers[0] * numbers[1]} if tree[0] == "power" else {}
    if tree[0] == "power":
        return slips | {"base and exponent are exchanged.": numbers[1] ** numbers[0]}
    first_two = numbers[0] + numbers[1] if tree[0] == "plus" else numbers[0] * numbers[1]
    return {
        "an operation may have more than two operands.": first_two,
        "you add where the tree multiplies.": sum(numbers),
    }


def _computed(tree: Any, letters: dict[str, int]) -> float:
    if isinstance(tree, str):
        return letters[tree] if tree in letters else int(tree)
    numbers = [_computed(part, letters) for part in tree[1:]]
    if tree[0] == "power":
        return numbers[0] ** numbers[1]
    total = 0 if tree[0] == "plus" else 1
    for each in numbers:
        total = total + each if tree[0] == "plus" else total * each
    return total


@exercise("is_renaming", "Formulas whose letters pass this test, and which agree otherwise, have the same pattern.")
def _is_renaming(answer: Callable[[list, list], bool]) -> str:
    for one, other, truth, why in _RENAMINGS:
        case = f"is_renaming({one}, {other})"
        found = answer(list(one), list(other))
        if not isinstance(found, bool):
            return f"For `{case}` True or False is wanted, but the answer is `{shorten(found)}`."
        if found != truth:
            return f"For `{case}` your answer is `{found}`: {why or 'look at each letter and the one below it.'}"
    return ""
