"""terms: a product becomes one operation: factors side by side, functions and big operators with their arguments."""

from __future__ import annotations

from collections.abc import Sequence

from mirblab.formula.operations import NOWHERE, Operations
from mirblab.formula.precedence import DIFFERENTIAL, FENCE, FUNCTION, INTEGRAL, OPERAND, POSTFIX, PRODUCT, SUM

# What stands on a line: its kind (precedence), its name, its operation, and the elements of a bare fence.
Item = tuple[int, str, int, Sequence[int]]
TIMES = "U!times"
DIFFERENTIALS = frozenset({"V!d", "V!𝑑", "V!ⅆ"})


class _Open:
    """A function or big operator that waits for its argument, and the factors and operator before it."""

    __slots__ = ("factors", "item", "operator", "span")

    def __init__(self, item: Item, factors: list[int], operator: Item | None, span: tuple[int, int]) -> None:
        self.item = item
        self.factors = factors
        self.operator = operator
        self.span = span


class _Term:
    """One pass over a term: the factors so far, an operator that waits for its right side, functions that are open.

    A function takes the factors up to the next function or operator (sin 2x cos y is a product), a fence right
    behind it alone; a big operator takes all that follows; a differential or a sign inside a product takes one
    factor. Division and other operators bind from the left: a/bc is (a/b)c, as LaTeXML reads it.
    """

    __slots__ = ("factors", "grown", "is_integral", "opened", "operator", "span")

    def __init__(self, grown: Operations) -> None:
        self.grown = grown
        self.factors: list[int] = []
        self.operator: Item | None = None
        self.span = NOWHERE
        self.opened: list[_Open] = []
        self.is_integral = False

    def operand(self, number: int) -> None:
        """Take one factor: the right side of an operator that waits for it, or one more in the product."""
        if self.operator is not None:
            number = self._binary(self.operator, number)
            self.operator = None
        self.factors.append(number)
        if self.opened and self.opened[-1].item[0] == DIFFERENTIAL:
            self.close([self.product()])

    def _binary(self, operator: Item, right: int) -> int:
        """Return all factors so far, the *operator*, and *right*; equal neighbours share a node but for division."""
        grown, name, left = self.grown, operator[1], self.product()
        self.factors, self.span = [], NOWHERE
        if name != "O!divide" and grown.labels[left] == name and len(grown.operands[left]) > 1:
            grown.operands[left].append(right)
            return left
        return grown.apply(operator[2], [left, right])

    def product(self) -> int:
        """Return the factors as one operation, a single one as it is; (mod n) behind them annotates them."""
        grown, factors = self.grown, self.factors
        if len(factors) == 1:
            return factors[0]
        if factors and grown.labels[factors[-1]] == "F!pmod":
            left = grown.add(TIMES, factors[:-1], self.span) if len(factors) > 2 else factors[0]
            return grown.add("O!annotated", [left, factors[-1]])
        return grown.add(TIMES, factors, self.span) if factors else grown.add("W!")

    def waits(self) -> bool:
        """Return whether a function stands right before, without an argument yet."""
        return bool(self.opened) and not self.factors and self.opened[-1].item[0] == FUNCTION

    def open(self, item: Item) -> None:
        """Let a function, a big operator or a differential wait for its argument."""
        if self.opened and self.factors and self.opened[-1].item[0] == FUNCTION:
            self.close([self.product()])
        self.opened.append(_Open(item, self.factors, self.operator, self.span))
        self.factors, self.operator, self.span = [], None, NOWHERE

    def close(self, arguments: list[int]) -> None:
        """Give the last one that waits its *arguments*, and go on where it stood; without arguments it is a factor."""
        last = self.opened.pop()
        self.factors, self.operator, self.span = last.factors, last.operator, last.span
        self.operand(self.grown.apply(last.item[2], arguments) if arguments else last.item[2])

    def sign(self, item: Item) -> None:
        """Take an operator between factors; one that lacks what stands before it is a factor itself."""
        if self.opened and self.factors and self.opened[-1].item[0] == FUNCTION:
            self.close([self.product()])
        if not self.factors or self.operator is not None:
            self.operand(item[2])
        elif item[1] != TIMES or self.grown.operands[item[2]]:
            self.operator = item
        elif self.span == NOWHERE:
            self.span = self.grown.spans[item[2]]

    def postfix(self, item: Item) -> None:
        """Apply a factorial or a percent sign to the factor before it; without one it is a factor itself."""
        if self.factors and self.operator is None:
            self.factors[-1] = self.grown.apply(item[2], [self.factors[-1]])
        else:
            self.operand(item[2])

    def end(self) -> int:
        """Return the operation of the whole term."""
        if self.operator is not None:
            operator, self.operator = self.operator, None
            self.operand(operator[2])
        while self.opened:
            self.close([self.product()] if self.factors else [])
        return self.product()


def term(grown: Operations, items: list[Item]) -> int:
    """Return the operation of *items* without a sum, a relation or a list in them, in one pass."""
    if len(items) == 1:
        return items[0][2]
    if max(item[0] for item in items) == OPERAND == min(item[0] for item in items):
        return grown.add(TIMES, [item[2] for item in items])
    state = _Term(grown)
    for place, item in enumerate(items):
        kind, name, number, elements = item
        if kind == FENCE and state.waits():
            state.close(list(elements))
        elif kind == OPERAND or kind == FENCE:
            if place + 1 < len(items) and (opener := _opener(state, name, number, items[place + 1][0])):
                state.open((opener, name, number, ()))
            else:
                state.operand(number)
        elif kind == POSTFIX:
            state.postfix(item)
        elif kind == PRODUCT:
            state.sign(item)
        else:
            state.is_integral = state.is_integral or kind == INTEGRAL
            state.open((DIFFERENTIAL, name, number, ()) if kind == SUM else item)
    return state.end()


def _opener(state: _Term, name: str, number: int, after: int) -> int:
    """Return the kind of a letter that is a function here, and name it so; 0 for an operand.

    A d under an integral is a differential; a name of several letters right before a fence is a function.
    """
    if state.is_integral and name in DIFFERENTIALS and after in (OPERAND, FENCE):
        kind = DIFFERENTIAL
    elif after == FENCE and len(name) > 3 and name.startswith("V!") and name[2:].isalpha():
        kind = FUNCTION
    else:
        return 0
    if not state.grown.operands[number]:
        state.grown.labels[number] = "F!" + ("d" if kind == DIFFERENTIAL else name[2:])
    return kind
