"""evaluation: the numeric values of formulas at random points, which show whether two formulas say the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.operators import has_bar, operator_tree
from mirblab.formula.tree import Tree

N_POINTS = 32  # where a formula is evaluated
FEWEST_POINTS = 5  # where both formulas must have a value, or nothing is said about them
_LARGEST, _TOLERANCE = 1e8, 1e-8
_GREEK = frozenset("αβγδεζηθικλμνξπρστυφχψωϵϑϕϱΓΔΘΛΞΠΣΦΨΩ")
_FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "F!sin": np.sin, "F!cos": np.cos, "F!tan": np.tan, "F!sinh": np.sinh, "F!cosh": np.cosh, "F!tanh": np.tanh,
    "F!arcsin": np.arcsin, "F!arccos": np.arccos, "F!arctan": np.arctan, "F!exp": np.exp, "F!log": np.log,
    "F!ln": np.log, "F!abs": np.abs,
}  # fmt: skip
_BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "U!plus": np.add, "O!minus": np.subtract, "U!times": np.multiply, "O!divide": np.divide, "O!SUP": np.power,
}  # fmt: skip
# The kind of a relation, and whether its sides are exchanged to get it.
_RELATIONS = {"U!eq": ("=", False), "U!neq": ("≠", False), "O!lt": ("<", False), "O!gt": ("<", True),
              "O!leq": ("≤", False), "O!geq": ("≤", True)}  # fmt: skip
_SYMMETRIC = ("=", "≠")


class Part(NamedTuple):
    """A relation of a formula, "" for a term alone: its kind, and left minus right side at each point, complex."""

    relation: str
    values: np.ndarray


@lru_cache(maxsize=1024)
def evaluate_latex(latex: str) -> list[Part] | None:
    r"""Return the values of a formula at `N_POINTS` points, a part for each relation of a chain, or None.

    Each letter, with its index, has the same random real numbers in every formula, half of them between 0.2 and 3, the
    others between -3 and 3. `a > b` is returned as `b < a`. Numbers are complex and functions have their principal
    values; NaN stands where a value is infinite or too large to be compared, and where an order compares numbers that
    are not real. A letter before a bracket is a factor. None: the formula has a sign whose value is not known (a sum
    over an index, dots, a set, a prime, a binomial coefficient), or cannot be read.

    >>> [part.relation for part in evaluate_latex(r"0 < x \le \frac{1}{2}")], evaluate_latex(r"x \in M")
    (['<', '≤'], None)
    """
    layout = parse_latex(latex)
    fractions = [node for node, label in enumerate(layout.labels) if label == "O!divide"]
    if layout.problems or not all(has_bar(layout, node) for node in fractions):
        return None
    tree = operator_tree(layout)
    with np.errstate(all="ignore"):
        return _Evaluator(tree).parts()


def are_equal(first: list[Part] | None, second: list[Part] | None) -> bool | None:
    """Return whether two formulas agree at all points; None when fewer than `FEWEST_POINTS` can be compared.

    Formulas with unlike relations are not equal, provided that the difference of the two sides takes both signs: it
    is then 0 in between, where `<` and `≤` differ.
    """
    if first is None or second is None or len(first) != len(second):
        return None
    verdicts = [_agree(one, other) for one, other in zip(first, second, strict=True)]
    return None if None in verdicts else all(verdicts)


def _agree(one: Part, other: Part) -> bool | None:
    known = np.isfinite(one.values) & np.isfinite(other.values)
    left, right = one.values[known], other.values[known]
    if len(left) < FEWEST_POINTS:
        return None
    if one.relation != other.relation:
        return False if left.real.min() < 0 < left.real.max() else None
    near = [np.abs(left - sign * right) <= _TOLERANCE * (1 + np.abs(left)) for sign in (1, -1)]
    if near[0].all() or (one.relation in _SYMMETRIC and near[1].all()):
        return True
    return False if (~near[0]).mean() > 0.5 else None


class _Evaluator:
    """The values of an operator tree, from its leaves to its root."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.below: list[list[int]] = [[] for _ in tree.labels]
        for node, parent in enumerate(tree.parents):
            if parent >= 0:
                self.below[parent].append(node)
        self.values: list[np.ndarray | None] = [None] * len(tree.labels)
        for node in range(len(tree.labels) - 1, -1, -1):  # operands come after their operation
            self.values[node] = self.value(node)

    def parts(self) -> list[Part] | None:
        """Return the parts of the whole formula."""
        labels, below = self.tree.labels, self.below
        if not labels:
            return None
        links = below[0] if labels[0] == "U!and" else [0]
        if any(labels[link] not in _RELATIONS for link in links):
            value = self.values[0]
            return None if value is None else [Part("", _comparable(value))]
        if [len(below[link]) for link in links] != [2, *[1] * (len(links) - 1)]:
            return None  # a side is missing
        sides = [self.values[side] for side in (below[links[0]][0], *(below[link][-1] for link in links))]
        found = []
        for link, left, right in zip(links, sides, sides[1:], strict=False):
            if left is None or right is None:
                return None
            kind, is_turned = _RELATIONS[labels[link]]
            difference = right - left if is_turned else left - right
            if kind not in _SYMMETRIC:
                difference = np.where(np.abs(difference.imag) < _TOLERANCE, difference, np.nan)
            found.append(Part(kind, _comparable(difference)))
        return found

    def value(self, node: int) -> np.ndarray | None:
        """Return the values of an operation whose operands have theirs."""
        label, below = self.tree.labels[node], self.below[node]
        if not below or label == "O!SUB":
            return self.leaf(node)
        operands = [each for each in (self.values[one] for one in below) if each is not None]
        if len(operands) < len(below):
            return None
        if label in _FUNCTIONS and len(operands) == 1:
            return _FUNCTIONS[label](operands[0])
        if label == "O!minus" and len(operands) == 1:
            return -operands[0]
        if label == "O!root" and len(operands) == 2:
            return np.power(operands[0], 1 / operands[1])
        if label not in _BINARY or len(operands) < 2:
            return None
        return reduce(_BINARY[label], operands)

    def leaf(self, node: int) -> np.ndarray | None:
        """Return the values of a number or of a letter with or without an index."""
        label = self.tree.labels[node]
        if label.startswith("N!"):
            try:
                return np.full(N_POINTS, complex(float(label[2:])))
            except ValueError:
                return None
        if label == "O!SUB":
            parts = [self.tree.labels[each] for each in self.below[node]]
            names = [part[2:] for part in parts]
            if any(self.below[each] for each in self.below[node]) or not _is_letter(parts[0]):
                return None
            return _letter_values("_".join(names)) if names[1].isalnum() else None
        return _letter_values(label[2:]) if _is_letter(label) else None


def _is_letter(label: str) -> bool:
    return len(label) == 3 and label[:2] == "V!" and label[2].isalpha() and (label[2].isascii() or label[2] in _GREEK)


@lru_cache(maxsize=4096)
def _letter_values(name: str) -> np.ndarray:
    random = np.random.default_rng(int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little"))
    half = N_POINTS // 2
    return np.concatenate([random.uniform(0.2, 3, half), random.uniform(-3, 3, N_POINTS - half)]).astype(complex)


def _comparable(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values) & (np.abs(values) < _LARGEST), values, np.nan + 0j)
