"""operators: from a formula's layout to its operations, a Symbol Layout Tree to an Operator Tree."""

from __future__ import annotations

from collections.abc import Sequence

from mirblab.formula.brackets import fenced
from mirblab.formula.operations import NOWHERE, Operations
from mirblab.formula.phrases import phrase
from mirblab.formula.precedence import ACCENTS, FENCE, OPERAND, ROLES, SEPARATOR
from mirblab.formula.terms import Item
from mirblab.formula.tree import Tree

_PLAIN = (OPERAND, "")
_NONE: Sequence = ()
_CALLS = ("()", "[]", "{}")  # the fences that may hold a function's arguments
_TAKEN = {"O!divide": "ou", "O!binomial": "ou", "O!root": "wc"}  # what is no script but an operand, in order
_BARS = ("F!∣", "F!:")  # what divides a set {x | x > 0} in two
_SCRIPTS = "buaocd"


def operator_tree(tree: Tree) -> Tree:
    """Return the operator tree of a layout *tree*; an operator tree comes back as it is. Never fails.

    Labels are Tangent's (`precedence`, `fences`), children are 0, 1, …. f(x) is a product of f and x, as LaTeXML has
    it, since a letter does not say whether it is a function; known functions and names of several letters are applied
    (F!sin, F!Hom). Products by any sign or none are U!times; a - b + c is U!plus of a - b and c; subscripts stand
    inside superscripts. An operator's span is that of its symbol, (0, 0) where nothing is written. Without recursion,
    in time linear in the number of nodes.

    >>> from mirblab.formula.tangent import read, write
    >>> write(operator_tree(read("[V!a[+[N!2[V!b[=[V!c,b[V!n],a[N!2]]]]]]]")))
    '[U!eq,0[U!plus,0[V!a],1[U!times,0[N!2],1[V!b]]],1[O!SUP,0[O!SUB,0[V!c],1[V!n]],1[N!2]]]'
    """
    if not tree.labels or not set(tree.relations).isdisjoint("0123456789"):
        return tree
    return _Growth(tree).whole()


class _Growth:
    """The operations of a layout tree, grown from its last node to its first: what hangs on a node is known by then."""

    __slots__ = ("after", "below", "grown", "heads", "powers", "spans", "tree")

    def __init__(self, tree: Tree) -> None:
        size = len(tree.labels)
        self.tree = tree
        self.grown = Operations()
        self.spans = tree.spans or [NOWHERE] * size
        self.after = [-1] * size  # the next node of the line
        self.below: dict[int, list[tuple[str, int]]] = {}  # by node: relation and first node of each line that hangs
        self.heads: dict[int, tuple[int, bool]] = {}  # by first node of a line: operation, and whether a comma ends it
        self.powers: dict[int, int] = {}  # by primes: what follows them in the superscript

    def whole(self) -> Tree:
        """Return the operator tree."""
        tree, labels, heads, below = self.tree, self.tree.labels, self.heads, self.below
        node = len(labels)
        for relation, parent in zip(reversed(tree.relations), reversed(tree.parents), strict=True):
            node -= 1
            if relation == "n":
                self.after[parent] = node
                continue
            if labels[node][0:1] == "′":
                heads[node] = self.primes(node)
            else:
                heads[node] = self.line(node, relation == "w" and labels[parent].startswith("M!{}1x"))
            if parent >= 0:
                below.setdefault(parent, []).append((relation, node))
        return self.grown.tree(heads[0][0], tree.problems, spans=bool(tree.spans))

    def primes(self, node: int) -> tuple[int, bool]:
        """Return the primes at *node*; a power that follows them is kept, for it is applied after them."""
        if self.after[node] >= 0:
            self.powers[node] = self.line(self.after[node], False)[0]
        return self.grown.add("V!" + self.tree.labels[node], span=self.spans[node]), False

    def line(self, node: int, is_set: bool) -> tuple[int, bool]:
        """Return the operation of the line that begins at *node*, and whether a comma or semicolon ends it."""
        if self.after[node] < 0 and node not in self.below:
            label = self.tree.labels[node]
            kind, name = ROLES.get(label, _PLAIN)
            return self.grown.add(name or label, span=self.spans[node]), kind == SEPARATOR
        items: list[Item] = []
        after, below, labels, grown, spans = self.after, self.below, self.tree.labels, self.grown, self.spans
        while node >= 0:
            if node in below:
                items.append(self.item(node, below[node]))
            else:
                label = labels[node]
                kind, name = ROLES.get(label, _PLAIN)
                name = name or label
                items.append((kind, name, grown.add(name, None, spans[node]), _NONE))
            node = after[node]
        ends = items[-1][0] == SEPARATOR
        bar = next((at for at, item in enumerate(items) if item[1] in _BARS), 0) if is_set else 0
        if bar:
            parts = [phrase(self.grown, items[:bar]), phrase(self.grown, items[bar + 1 :])]
            return self.grown.add("O!conditional-set", parts, self.grown.spans[items[bar][2]]), ends
        return phrase(self.grown, items), ends

    def item(self, node: int, hanging: list[tuple[str, int]]) -> Item:
        """Return what *node* is on its line: its kind, its name, and its operation with everything that hangs on it."""
        label = self.tree.labels[node]
        kind, name = ROLES.get(label, _PLAIN)
        name = name or label
        if label.startswith("M!"):
            bare, elements = self.fence(node, hanging)
            kind = FENCE if label[2:4] in _CALLS else OPERAND
        else:
            bare, elements = self.base(node, label, name, hanging), _NONE
        number = self.scripts(bare, hanging, _TAKEN.get(label, ""))
        return (kind if number == bare or kind != FENCE else OPERAND), name, number, elements

    def base(self, node: int, label: str, name: str, hanging: list[tuple[str, int]]) -> int:
        """Return the operation of a node itself; fractions and roots, and what is unknown, take what is in them."""
        operands = [self.heads[head][0] for taken in _TAKEN.get(label, "w") for own, head in hanging if own == taken]
        if label == "O!root" and len(operands) == 1:
            operands.append(self.grown.add("N!2", span=self.spans[node]))
        return self.grown.add(name, operands, self.spans[node])

    def fence(self, node: int, hanging: list[tuple[str, int]]) -> tuple[int, list[int]]:
        """Return the operation of a fence without its scripts, and those of its elements."""
        label, elements, is_list = self.tree.labels[node], [], False
        head = next((head for relation, head in hanging if relation == "w"), -1)
        while head >= 0:
            operation, ends = self.heads[head]
            elements.append(operation)
            head = next((head for relation, head in self.below.get(head, _NONE) if relation == "e"), -1)
            is_list = is_list or (ends and head >= 0)
        number = fenced(self.grown, label, elements, is_list, self.spans[node])
        if self.grown.labels[number] == "O!conditional-set" or (len(elements) > 1 and not is_list):
            return number, [number]
        return number, elements

    def scripts(self, number: int, hanging: list[tuple[str, int]], taken: str) -> int:
        """Return *number* with its scripts: below before above, so that a_n^2 is the square of a_n."""
        for relation in _SCRIPTS:
            for own, head in hanging:
                if own == relation and relation not in taken:
                    number = self.script(number, relation, head)
        return number

    def script(self, number: int, relation: str, head: int) -> int:
        """Return *number* with one script: an accent is a function, all else O!SUB or O!SUP."""
        grown, script = self.grown, self.heads[head][0]
        mark = grown.labels[script]
        if relation in "uo" and not grown.operands[script] and self.tree.labels[head].removeprefix("V!") in ACCENTS:
            return grown.add("F!" + mark.removeprefix("V!").removeprefix("F!"), [number], grown.spans[script])
        number = grown.add("O!SUB" if relation in "bud" else "O!SUP", [number, script])
        if head in self.powers:
            number = grown.add("O!SUP", [number, self.powers[head]])
        return number
