"""tree: formulas as trees: symbol layout and operators, and Tangent's strings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.core.wording import counted

# How a node hangs on its parent, in the order in which children are listed and a formula is read: scripts in front
# (c above, d below), within, over, under, subscript, superscript, next on the line, next element of a fence.
RELATIONS = "cdwoubane"
OPERANDS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ROOT = "-"
_PART = re.compile(r"(?:,([0-9A-Za-z]))?\[([^\[\],]*)|\]")
_NAMES = {"comma": ",", "lsqb": "[", "rsqb": "]", "quest": "?", "lt": "<", "gt": ">", "amp": "&"}
_ENTITY = re.compile(f"&({'|'.join(_NAMES)});")
# What Tangent escapes, and an ampersand that would read as one of its entities.
_ESCAPED = re.compile(rf"[,\[\]?]|&(?=(?:{'|'.join(_NAMES)});)")
_ENTITIES = {",": "&comma;", "[": "&lsqb;", "]": "&rsqb;", "?": "&quest;", "&": "&amp;"}
_QUOTED = re.compile(r'\\?"(\[.*\])\\?"', re.DOTALL)
_QUOTE = re.compile(r'\\?"\\?"')
# The next symbol comes first, then the others as Tangent writes them most often.
_WRITTEN = {relation: place for place, relation in enumerate("nabcdouwe")}


@dataclass(frozen=True, slots=True)
class Tree:
    """A formula's nodes in reading order: depth first, a parent before its children, siblings by `RELATIONS`.

    `labels` are Tangent's: `V!x` a variable, `N!2` a number, `T!text`, `O!divide`, `O!root`, `M!()1x2` a fence or a
    matrix with its shape, `W!` empty, `U!times` an operation (operator trees), operators and relations bare. `parents`
    holds positions, -1 for the root, node 0; `relations` one character per node, "-" for the root (operator trees:
    `OPERANDS`). `spans` are the (start, end) of each node in the source, (0, 0) where there is none, or empty;
    `problems` says what was not understood. Two trees are equal when labels, parents and relations are.

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
        """Return the nodes: node, parent (-1: none), relation, label, start, end (of the source; 0 and 0: unknown)."""
        table = {
            "node": range(len(self)),
            "parent": self.parents,
            "relation": list(self.relations),
            "label": self.labels,
        }
        spans = np.array(self.spans or [(0, 0)] * len(self), np.int64).reshape(-1, 2)
        return pd.DataFrame(table | {"start": spans[:, 0], "end": spans[:, 1]})


def label_type(label: str) -> str:
    """Return the type of a label, by which renamed symbols agree: V, N, or the label itself."""
    return label[0] if label[:2] in ("V!", "N!") else label


def shown_label(label: str) -> str:
    """Return a label without its type, and a dot for the empty one, to show it to a reader.

    >>> [shown_label(label) for label in ("V!x", "O!divide", "M!()1x2", "!", "+!F!sin", "W!")]
    ['x', 'divide', '()1x2', '!', 'sin', '·']
    """
    label = label.removeprefix("+!")
    return label[2:] or "·" if len(label) > 1 and label[1] == "!" and label[0] in "VNTOMWUFCE" else label


def node_paths(tree: Tree) -> Sequence[str]:
    """Return for each node the relations from the root to it, as one string.

    >>> list(node_paths(Tree(["V!x", "N!2", "="], [-1, 0, 0], "-an")))
    ['', 'a', 'n']
    """
    found: list[str] = []
    for parent, relation in zip(tree.parents, tree.relations, strict=True):
        found.append(found[parent] + relation if parent >= 0 else "")
    return found


def equal_up_to_names(one: Tree, other: Tree) -> bool:
    """Return whether two trees are equal when the variables of one are renamed, different ones to different names.

    >>> sums = [Tree(["V!a", "+", last], [-1, 0, 1], "-nn") for last in ("V!a", "V!b", "V!y")]
    >>> equal_up_to_names(sums[1], sums[2]), equal_up_to_names(sums[0], sums[1])
    (True, False)
    """
    sides = [(_numbered_variables(tree.labels), tree.parents, tree.relations) for tree in (one, other)]
    return sides[0] == sides[1]


def _numbered_variables(labels: Sequence[str]) -> list[str]:
    numbers: dict[str, str] = {}
    return [numbers.setdefault(label, f"V!{len(numbers)}") if label[:2] == "V!" else label for label in labels]


def equal_up_to_order(one: Tree, other: Tree) -> bool:
    """Return whether two operator trees are equal when the operands of operations without an order are sorted.

    These are the operations whose labels begin with `U!`.

    >>> sums = [Tree(["U!plus", *operands], [-1, 0, 0], "-01") for operands in (["V!x", "N!1"], ["N!1", "V!x"])]
    >>> equal_up_to_order(*sums), sums[0] == sums[1]
    (True, False)
    """
    return _sorted_text(one) == _sorted_text(other)


def _sorted_text(tree: Tree) -> str:
    """Return the tree as text, in which the operands of an operation without an order are sorted."""
    below: list[list[tuple[str, str]]] = [[] for _ in tree.labels]
    text = ""
    for node in reversed(range(len(tree))):
        operands = [f",{relation}{inner}" for relation, inner in reversed(below[node])]
        if tree.labels[node][:2] == "U!":
            operands = sorted(inner for _, inner in below[node])
        text = f"[{_escape_label(tree.labels[node])}{''.join(operands)}]"
        if tree.parents[node] >= 0:
            below[tree.parents[node]].append((tree.relations[node], text))
    return text


class Node:
    """One symbol of a tree that is still being built: a label and its (relation, child) pairs, in any order."""

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


def build_tree(root: Node | None, *, problems: Sequence[str] = ()) -> Tree:
    """Return the tree below *root* (None: an empty one), siblings in the order of `RELATIONS` or `OPERANDS`."""
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
        children = node.children
        if len(children) > 1:
            order = OPERANDS if any(name in "0123456789" for name, _ in children) else RELATIONS
            children = sorted(children, key=lambda pair: order.find(pair[0]) % (len(order) + 1))  # what is unknown last
        for name, child in reversed(children):
            waiting.append((child, place, name))
    return Tree(labels, parents, "".join(relations), problems=tuple(problems))


def read_tangent(text: str) -> Tree:
    """Return the layout or operator tree of a Tangent string; the empty tree for an empty string.

    Children are in reading order. The quotes of a CSV file are removed first. MirblabError names the position (in
    characters, from 1) of what is malformed. Linear time.

    >>> read_tangent("[V!f[M!()1x2,w[V!x[&comma;],e[N!2]]]]").labels
    ['V!f', 'M!()1x2', 'V!x', ',', 'N!2']
    >>> read_tangent("[V!x[+]")
    Traceback (most recent call last):
    mirblab.core.errors.MirblabError: malformed tree string at character 7, its end: 1 bracket is not closed; found
    '[V!x[+]'
    """
    text = text.strip()
    if (quoted := _QUOTED.fullmatch(text)) is not None:
        text = _QUOTE.sub('"', quoted[1])
    root: Node | None = None
    opened: list[Node] = []
    end = 0
    for part in _PART.finditer(text):
        if part.start() != end or (root is not None and not opened):
            break
        relation, label = part.groups()
        if label is None:
            if not opened:
                break
            opened.pop()
        else:
            node = Node(_ENTITY.sub(lambda entity: _NAMES[entity[1]], label) if "&" in label else label)
            if opened:
                opened[-1].children.append((relation or "n", node))
            elif relation:
                break
            root = root or node
            opened.append(node)
        end = part.end()
    if end != len(text):
        raise _malformed(text, end, f"neither a bracket nor a comma and one of {OPERANDS} before a bracket")
    if opened:
        raise _malformed(text, end, f"{counted(len(opened), 'bracket is', 'brackets are')} not closed")
    return build_tree(root)


def _malformed(text: str, end: int, what: str) -> MirblabError:
    place = "its end" if end == len(text) else repr(text[end : end + 20])
    found = text if len(text) <= 60 else text[:57] + "..."
    return MirblabError(
        f"malformed tree string at character {end + (end < len(text))}, {place}: {what}; found {found!r}"
    )


def _escape_label(label: str) -> str:
    return _ESCAPED.sub(lambda character: _ENTITIES[character[0]], label)


def write_tangent(tree: Tree) -> str:
    """Return the Tangent string of *tree*, which `read_tangent` reads back; an empty one for the empty tree.

    >>> write_tangent(Tree(["V!x", "N!2", "=", "?"], [-1, 0, 0, 2], "-ann"))
    '[V!x[=[&quest;]],a[N!2]]'
    """
    below: list[list[int]] = [[] for _ in tree.labels]
    for parent, child, _ in tree.edges():
        below[parent].append(child)
    is_layout = not any(relation in "0123456789" for relation in tree.relations)
    written: list[str] = []
    waiting: list[int] = [0] if len(tree) else []
    while waiting:
        node = waiting.pop()
        if node < 0:
            written.append("]")
            continue
        relation = tree.relations[node]
        written.append("[" if relation == "-" or (relation == "n" and is_layout) else f",{relation}[")
        written.append(_escape_label(tree.labels[node]))
        waiting.append(-1)
        children = below[node]
        if len(children) > 1 and is_layout:
            children = sorted(children, key=lambda child: _WRITTEN.get(tree.relations[child], 9))
        waiting.extend(reversed(children))
    return "".join(written)
