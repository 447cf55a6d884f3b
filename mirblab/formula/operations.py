"""operations: the operations of one formula while its operator tree grows, and the tree that comes of them."""

from __future__ import annotations

from mirblab.formula.nodes import operand
from mirblab.formula.tree import Tree

NOWHERE = (0, 0)
_PLACES = [operand(place) for place in range(62)]


class Operations:
    """Operations by number: a label, the numbers of the operands, and where the operator stands in the source.

    >>> grown = Operations()
    >>> x, two = grown.add("V!x"), grown.add("N!2")
    >>> grown.tree(grown.add("O!SUP", [x, two])).labels
    ['O!SUP', 'V!x', 'N!2']
    """

    __slots__ = ("labels", "operands", "spans")

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.operands: list[list[int]] = []
        self.spans: list[tuple[int, int]] = []

    def add(self, label: str, operands: list[int] | None = None, span: tuple[int, int] = NOWHERE) -> int:
        """Return the number of a new operation on *operands* (None: a leaf)."""
        self.labels.append(label)
        self.operands.append(operands if operands is not None else [])
        self.spans.append(span)
        return len(self.labels) - 1

    def apply(self, function: int, arguments: list[int]) -> int:
        """Return a function of *arguments*: itself with operands, or +! and its name where it has scripts.

        sin^2 x is `+!F!sin` of sin^2 and x, as in Tangent's operator trees.
        """
        inner = self.operands[function]
        if not inner:
            self.operands[function] = arguments
            return function
        return self.add("+!" + self.labels[inner[0]].removeprefix("+!"), [function, *arguments])

    def tree(self, root: int, problems: tuple[str, ...] = (), *, spans: bool = True) -> Tree:
        """Return the operator tree below the operation *root*; operands beyond the 62nd share the last relation."""
        labels: list[str] = []
        parents: list[int] = []
        relations: list[str] = []
        found: list[tuple[int, int]] = []
        waiting = [(root, -1, "-")]
        while waiting:
            number, parent, relation = waiting.pop()
            below = self.operands[number]
            if below:
                place = len(labels)
                names = _PLACES if len(below) <= 62 else _PLACES + _PLACES[-1:] * (len(below) - 62)
                for at in range(len(below) - 1, -1, -1):
                    waiting.append((below[at], place, names[at]))
            labels.append(self.labels[number])
            parents.append(parent)
            relations.append(relation)
            found.append(self.spans[number])
        return Tree(labels, parents, "".join(relations), found if spans else [], problems)
