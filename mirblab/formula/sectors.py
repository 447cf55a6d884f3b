"""sectors: formulas as paths below each of their nodes, counted over a collection, and the symbols at their ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mirblab.formula.leafpaths import LeafPaths, leaf_paths, type_of
from mirblab.formula.tree import Tree

# Below one node, by path: how many leaves end it, by symbol and then by the operators on the way.
Sector = dict[int, dict[str, Counter[tuple[str, ...]]]]


class PathBook:
    """Numbers for paths: a path is a shorter path and one more type, so that each step is one look-up."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, str], int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, paths: LeafPaths) -> list[list[int]]:
        """Return the number of the path after each step, per leaf; new paths get new numbers.

        >>> from mirblab.formula.leafpaths import leaf_paths
        >>> PathBook().number(leaf_paths(Tree(["U!plus", "V!a", "N!2"], [-1, 0, 0], "-01")))
        [[1, 2, 3], [5, 6, 7]]
        """
        numbers = self._numbers
        found: list[list[int]] = []
        for symbol, steps in zip(paths.symbols, paths.steps, strict=True):
            last = numbers.setdefault((-1, leaf_type(symbol)), len(numbers))
            row: list[int] = []
            for kind, _, _ in steps:
                last = numbers.setdefault((last, kind), len(numbers))
                row.append(last)
            found.append(row)
        return found


def leaf_type(symbol: str) -> str:
    """Return the type of a leaf, at which every path begins: 0 and 1 are their own, as in Approach0."""
    return symbol if symbol in ("N!0", "N!1") else type_of(symbol)


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula's leaf paths, the number of the path after each step of each leaf, and all counted per node.

    `path`, `root` and `width` are parallel: below inner node *root* so many leaves end this path.
    """

    paths: LeafPaths
    numbers: list[list[int]]
    path: np.ndarray
    root: np.ndarray
    width: np.ndarray

    @property
    def n_leaves(self) -> int:
        """Return the number of leaf-root paths."""
        return len(self.numbers)

    def sector(self, root: int) -> Sector:
        """Return the paths below one inner node, with the symbols and operators at each."""
        found: Sector = {}
        for symbol, steps, numbers in zip(self.paths.symbols, self.paths.steps, self.numbers, strict=True):
            for at, step in enumerate(steps):
                if step[1] == root:
                    operators = tuple([own[2] for own in steps[: at + 1] if own[2]])
                    found.setdefault(numbers[at], {}).setdefault(symbol, Counter())[operators] += 1
        return found


def formula(tree: Tree, book: PathBook) -> Formula:
    """Return the paths of an operator *tree*, numbered by *book*."""
    paths = leaf_paths(tree)
    numbers = book.number(paths)
    widths: Counter[tuple[int, int]] = Counter()
    for steps, row in zip(paths.steps, numbers, strict=True):
        widths.update(zip(row, [step[1] for step in steps], strict=True))
    table = np.array([(path, root, width) for (path, root), width in widths.items()], np.int32).reshape(-1, 3)
    return Formula(paths, numbers, table[:, 0], table[:, 1], table[:, 2])


def frequencies(formulas: Sequence[Formula], n_paths: int) -> np.ndarray:
    """Return for each path how many nodes of all *formulas* have it below them, int64."""
    paths = [found.path for found in formulas]
    return np.bincount(np.concatenate(paths) if paths else np.empty(0, np.int32), minlength=n_paths)


def assigned(query: Sector, document: Sector, weights: Sequence[float]) -> tuple[float, list[tuple[str, str]]]:
    """Return the sum of symbol credits over two sectors, and the pairs of symbols that were assigned to each other.

    Each path that both have gives min(count, count) times 1.00 where symbol and operators on the way agree, 0.94
    where the symbol does, 0.90 else (*weights*). Symbols of the query, the most frequent first, take the symbol of
    the document that gives most, one to one (Approach0's greedy assignment); of equal ones the first.
    """
    gains: dict[tuple[str, str], float] = {}
    count: Counter[str] = Counter()
    for path, asked in query.items():
        for symbol, operators in asked.items():
            count[symbol] += operators.total()
        found = document.get(path)
        if found is None:
            continue
        for symbol, operators in asked.items():
            for other, others in found.items():
                gains[symbol, other] = gains.get((symbol, other), 0.0) + _credit(
                    symbol == other, operators, others, weights
                )
    by_symbol: dict[str, list[tuple[float, str]]] = {}
    for (symbol, other), gain in gains.items():
        by_symbol.setdefault(symbol, []).append((gain, other))
    total, pairs, taken = 0.0, [], set()
    for symbol in sorted(by_symbol, key=lambda own: -count[own]):
        free = [(gain, other == symbol, other) for gain, other in by_symbol[symbol] if other not in taken]
        if free:
            gain, _, other = max(free, key=lambda pair: pair[:2])
            total += gain
            taken.add(other)
            pairs.append((symbol, other))
    return total, pairs


def _credit(is_same: bool, asked: Counter, found: Counter, weights: Sequence[float]) -> float:
    both = min(asked.total(), found.total())
    if not is_same:
        return weights[2] * both
    exact = (asked & found).total()
    return weights[0] * exact + weights[1] * (both - exact)
