"""tree: a formula as a Symbol Layout Tree or an Operator Tree, flat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pandas as pd

from mirblab.errors import MirblabError

# How a node hangs on its parent, in the order in which children are listed and a formula is read: scripts in front
# (c above, d below), within, over, under, subscript, superscript, next on the line, next element of a fence.
RELATIONS = "cdwoubane"
OPERANDS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ROOT = "-"


@dataclass(frozen=True, slots=True)
class Tree:
    """A formula's nodes in reading order: depth first, a parent before its children, siblings by `RELATIONS`.

    `labels` are Tangent's: `V!x` a variable, `N!2` a number, `T!text`, `O!divide`, `O!root`, `M!()1x2` a fence or a
    matrix with its shape, `W!` empty, `U!times` an operation (operator trees), operators and relations bare.
    `parents` holds positions, -1 for the root, which is node 0; `relations` one character per node, "-" for the
    root; in an operator tree those of `OPERANDS`. `spans` are the (start, end) of each node in the source, (0, 0)
    where there is none, or empty; `problems` says what was not understood. Two trees are equal when labels, parents
    and relations are.

    >>> square = Tree(["V!x", "N!2", "=", "N!4"], [-1, 0, 0, 2], "-ann")
    >>> square.children(0), len(square), square == Tree(["V!x"], [-1], "-")
    ([1, 2], 4, False)
    """

    labels: list[str]
    parents: list[int]
    relations: str
    spans: list[tuple[int, int]] = field(default_factory=list, compare=False)
    problems: tuple[str, ...] = field(default=(), compare=False)

    def __len__(self) -> int:
        return len(self.labels)

    def children(self, node: int) -> list[int]:
        """Return the positions of a node's children, in order."""
        return [child for child, parent in enumerate(self.parents) if parent == node]

    def edges(self) -> Iterator[tuple[int, int, str]]:
        """Yield (parent, child, relation) of every node but the root."""
        return zip(self.parents[1:], range(1, len(self)), self.relations[1:], strict=True)

    def depth(self) -> int:
        """Return the number of edges between the root and its farthest node; -1 for an empty tree."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(depths[parent] + 1 if parent >= 0 else 0)
        return max(depths, default=-1)

    def table(self) -> pd.DataFrame:
        """Return the nodes: node, parent (-1: none), relation, label, start, end (of the source; 0 and 0: unknown).

        >>> Tree(["V!x", "N!2"], [-1, 0], "-a").table().relation.tolist()
        ['-', 'a']
        """
        spans = self.spans or [(0, 0)] * len(self)
        return pd.DataFrame(
            {
                "node": range(len(self)),
                "parent": self.parents,
                "relation": list(self.relations),
                "label": self.labels,
                "start": [start for start, _ in spans],
                "end": [end for _, end in spans],
            }
        )


def check(tree: Tree) -> Tree:
    """Return the *tree* when its parts fit together; MirblabError that names the first node that does not.

    >>> check(Tree(["V!x", "N!2"], [-1, 1], "-a"))
    Traceback (most recent call last):
    mirblab.errors.MirblabError: node 1 of a tree has parent 1; a parent comes before its children, ...
    """
    sizes = {len(tree.labels), len(tree.parents), len(tree.relations)} | ({len(tree.spans)} if tree.spans else set())
    if len(sizes) > 1:
        raise MirblabError(f"the lists of a tree have {sorted(sizes)} entries; each node needs one of each")
    for node, parent in enumerate(tree.parents):
        if not (0 <= parent < node or node == 0 and parent == -1):
            raise MirblabError(
                f"node {node} of a tree has parent {parent}; a parent comes before its children, and only node 0 has "
                "none (-1)"
            )
    return tree


def kind(label: str) -> str:
    """Return the type of a label, by which renamed symbols agree: V, N, or the label itself.

    >>> kind("V!x"), kind("N!12"), kind("+"), kind("O!divide")
    ('V', 'N', '+', 'O!divide')
    """
    return label[0] if label[:2] in ("V!", "N!") else label


def shown(label: str) -> str:
    """Return a label as a reader wants to see it: without its type, and a dot where nothing is.

    >>> shown("V!x"), shown("O!divide"), shown("M!()1x2"), shown("!"), shown("+!F!sin"), shown("W!")
    ('x', 'divide', '()1x2', '!', 'sin', '·')
    """
    label = label.removeprefix("+!")
    return label[2:] or "·" if len(label) > 1 and label[1] == "!" and label[0] in "VNTOMWUFCE" else label


def paths(tree: Tree) -> Sequence[str]:
    """Return for each node the relations from the root to it, as one string.

    >>> list(paths(Tree(["V!x", "N!2", "="], [-1, 0, 0], "-an")))
    ['', 'a', 'n']
    """
    found: list[str] = []
    for parent, relation in zip(tree.parents, tree.relations, strict=True):
        found.append(found[parent] + relation if parent >= 0 else "")
    return found
