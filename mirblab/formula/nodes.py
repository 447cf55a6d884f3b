"""nodes: a formula's nodes in any order become a Tree in reading order, without recursion."""

from __future__ import annotations

from collections.abc import Sequence

from mirblab.formula.tree import OPERANDS, RELATIONS, Tree

_LAYOUT = {relation: place for place, relation in enumerate(RELATIONS)}
_OPERATION = {relation: place for place, relation in enumerate(OPERANDS)}


class Node:
    """One symbol of a tree that is still being built: a label and its (relation, child) pairs, in any order."""

    __slots__ = ("children", "label")

    def __init__(self, label: str) -> None:
        self.label = label
        self.children: list[tuple[str, Node]] = []

    def add(self, relation: str, child: Node | None) -> Node:
        """Hang *child* on this node by *relation* (None: nothing to hang) and return this node."""
        if child is not None:
            self.children.append((relation, child))
        return self

    def first(self, relation: str) -> Node | None:
        """Return the first child by *relation*, or None."""
        return next((child for name, child in self.children if name == relation), None)


def operand(place: int) -> str:
    """Return the relation of the operand at *place*, from 0; those beyond the 62nd share the last name.

    >>> operand(0), operand(10), operand(1000)
    ('0', 'A', 'z')
    """
    return OPERANDS[min(place, len(OPERANDS) - 1)]


def flatten(root: Node | None, *, problems: Sequence[str] = ()) -> Tree:
    """Return the Tree below *root*, siblings in `RELATIONS` order (`OPERANDS` for operator trees); None: an empty one.

    >>> root = Node("V!x").add("n", Node("=")).add("a", Node("N!2"))
    >>> flatten(root).labels
    ['V!x', 'N!2', '=']
    """
    labels: list[str] = []
    parents: list[int] = []
    relations: list[str] = []
    waiting = [(root, -1, "-")] if root is not None else []
    while waiting:
        node, parent, relation = waiting.pop()
        place = len(labels)
        labels.append(node.label)
        parents.append(parent)
        relations.append(relation)
        for name, child in reversed(_sorted(node.children)):
            waiting.append((child, place, name))
    return Tree(labels, parents, "".join(relations), problems=tuple(problems))


def _sorted(children: list[tuple[str, Node]]) -> list[tuple[str, Node]]:
    if len(children) < 2:
        return children
    order = _OPERATION if any(name in "0123456789" for name, _ in children) else _LAYOUT
    return sorted(children, key=lambda pair: order.get(pair[0], len(order)))
