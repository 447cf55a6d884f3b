"""leafpaths: a formula as the paths from its leaves upwards, Approach0's view of an operator tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from mirblab.formula.precedence import ARROW, BIG, FUNCTION, INTEGRAL, POSTFIX, RELATION, ROLES, SUM
from mirblab.formula.tree import Tree

MOST_LEAVES = 64
DEEPEST = 32  # tokens of a path

_NAMES = {kind: [name for own, name in ROLES.values() if own == kind] for kind in range(-6, 6)}
# Operations that count as the same on a path; an operation not named here is its own type, letters and numbers apart.
_TYPES = (
    dict.fromkeys(_NAMES[RELATION] + _NAMES[ARROW], "REL")
    | dict.fromkeys(_NAMES[BIG], "BIG")
    | dict.fromkeys(_NAMES[INTEGRAL], "INT")
    | dict.fromkeys(_NAMES[FUNCTION], "FUN")
    | dict.fromkeys(_NAMES[POSTFIX], "FACT")
    | dict.fromkeys(_NAMES[SUM], "SETOP")
    | dict.fromkeys(("U!plus", "O!minus", "O!plus-or-minus", "O!minus-or-plus"), "ADD")
    | {"U!times": "TIMES", "O!divide": "FRAC", "O!root": "ROOT", "O!binomial": "BINOM", "O!rem": "MOD", "F!pmod": "MOD"}
    | {"F!abs": "VERT", "O!norm": "VERT", "F!floor": "VERT", "F!ceiling": "VERT", "O!compose": "COMPOSE"}
    | {"O!form-seq": "LIST", "O!matrix": "MAT", "O!cases": "MAT", "M!R!": "ROW", "C!infinity": "INFTY", "W!": "W"}
)
_PREFIXES = (
    ("V!", "VAR"), ("N!", "NUM"), ("T!", "TEXT"), ("M!M", "MAT"), ("M!", "LIST"), ("O!interval", "LIST"),
    ("C!", "CONST"), ("F!", "FUN"),
)  # fmt: skip
_SCRIPTS = frozenset({"O!SUB", "O!SUP"})
_EMPTY = frozenset({"W!", "E!"})
_MERGED = frozenset({"ADD", "TIMES", "REL"})  # a sum in a sum is one sum
_RANKED = frozenset({"FRAC", "ROOT", "BINOM", "LIST", "ROW", "MOD", "COMPOSE"})  # where the place of an operand counts


@lru_cache(maxsize=50_000)
def type_of(label: str) -> str:
    """Return the type of a label of an operator tree, under which different symbols meet.

    >>> type_of("U!plus"), type_of("O!leq"), type_of("V!x"), type_of("+!F!sin")
    ('ADD', 'REL', 'VAR', 'FUN')
    """
    found = _TYPES.get(label)
    if found is not None:
        return found
    if label.startswith("+!"):
        return "BIG" if label[2:] in ("O!SUB", "O!SUP") else type_of(label[2:])
    return next((kind for prefix, kind in _PREFIXES if label.startswith(prefix)), label)


Step = tuple[str, int, str]  # a type, the number of an inner node, its operator


@dataclass(slots=True)
class LeafPaths:
    """The leaf-root paths of one formula: per leaf its symbol and what stands above it, from the leaf up.

    `leaves` and `symbols` are the leaf's node in the operator tree and its label; `steps` per leaf the (type, root,
    fingerprint) of every step upwards, where *root* numbers the inner nodes of the formula and *fingerprint* is the
    operator itself; `roots` the node in the operator tree of each inner node.
    """

    leaves: list[int] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    steps: list[list[Step]] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)


def leaf_paths(tree: Tree) -> LeafPaths:
    """Return the leaf-root paths of an operator *tree*, at most `MOST_LEAVES` of them, the first ones.

    As in Approach0, a letter or number stands in a base with or without scripts, so that x, x_i and x^2 share a path;
    a sum inside a sum is one sum, a minus sign makes no node, operands whose order counts go through a rank; empty
    places are no leaves.

    >>> paths = leaf_paths(Tree(["U!plus", "V!a", "N!2"], [-1, 0, 0], "-01"))
    >>> [[step[0] for step in steps] for steps in paths.steps]
    [['BASE', 'SCRIPTS', 'ADD'], ['BASE', 'SCRIPTS', 'ADD']]
    """
    found = LeafPaths()
    above = _Above(tree, found)
    for node, label in enumerate(tree.labels):
        if above.n_operands[node] or label in _EMPTY:
            continue
        if len(found.leaves) == MOST_LEAVES:
            break
        found.leaves.append(node)
        found.symbols.append(label)
        found.steps.append(above.climb(node))
    return found


class _Above:
    """The steps from a node to the root, with inner nodes numbered as they are met."""

    __slots__ = ("found", "n_operands", "numbers", "tree", "types")

    def __init__(self, tree: Tree, found: LeafPaths) -> None:
        self.tree = tree
        self.found = found
        self.types = [type_of(label) for label in tree.labels]
        self.n_operands = [0] * (len(tree) + 1)  # the last is that of the root's parent, which is no node
        self.numbers: dict[tuple[int, str], int] = {}
        for node, parent in enumerate(tree.parents):
            self.n_operands[parent] += 1
            if self.types[node] == "REL" and parent >= 0 and tree.labels[parent] == "U!and":
                self.types[parent] = "REL"  # a chain, or statements joined by "and"

    def step(self, node: int, kind: str, label: str = "") -> Step:
        """Return one step: its type, the number of the inner node, and the operator."""
        number = self.numbers.get((node, kind))
        if number is None:
            number = self.numbers[node, kind] = len(self.found.roots)
            self.found.roots.append(node)
        return kind, number, label

    def climb(self, node: int) -> list[Step]:
        """Return the steps from *node* to the root, at most about `DEEPEST` of them."""
        tree, types = self.tree, self.types
        steps: list[Step] = []
        if not self._has_scripts(node):
            steps += [self.step(node, "BASE"), self.step(node, "SCRIPTS")]
        while (parent := tree.parents[node]) >= 0 and len(steps) < DEEPEST:
            label, kind, place = tree.labels[parent], types[parent], tree.relations[node]
            if label in _SCRIPTS:
                steps.append(self.step(node, "BASE" if place == "0" else label))
                while self._has_scripts(parent):  # x_n^2 has one node for both scripts
                    parent = tree.parents[parent]
                steps.append(self.step(parent, "SCRIPTS"))
            elif not self._is_transparent(parent, kind):
                if kind in _RANKED:
                    steps.append(self.step(node, "RANK" + place))
                steps.append(self.step(parent, kind, label))
            node = parent
        return steps

    def _has_scripts(self, node: int) -> bool:
        parent = self.tree.parents[node]
        return parent >= 0 and self.tree.labels[parent] in _SCRIPTS and self.tree.relations[node] == "0"

    def _is_transparent(self, node: int, kind: str) -> bool:
        """Return whether *node* makes no step: a sum within a sum, a link of a chain, a sign in front."""
        if kind in _MERGED and self.tree.parents[node] >= 0 and self.types[self.tree.parents[node]] == kind:
            return True
        return kind == "ADD" and self.n_operands[node] == 1
