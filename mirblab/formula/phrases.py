"""phrases: one line of a formula becomes one operation, by the precedence of its operators."""

from __future__ import annotations

from mirblab.formula.operations import Operations
from mirblab.formula.precedence import ARROW, PRODUCT, RELATION, SEPARATOR, SUM
from mirblab.formula.terms import Item, term


def phrase(grown: Operations, items: list[Item]) -> int:
    """Return the operation that a line of *items* stands for; an empty line is W!, a lone operator a leaf.

    From loose to tight: sequences of statements, arrows of logic and colons, relations, lists, sums, products. A
    chain a = b < c is U!and of a = b and < c, as Tangent has it; a missing side is W!.
    """
    while items and items[-1][0] == SEPARATOR:
        items.pop()
    if len(items) == 1:
        return items[0][2]
    kinds = {item[0] for item in items}
    if SEPARATOR in kinds and (RELATION in kinds or ARROW in kinds):
        return _statements(grown, items)
    return _looser(grown, items, kinds)


def _looser(grown: Operations, items: list[Item], kinds: set[int]) -> int:
    """Return the operation of *items*, cut at the loosest kind of operator among them."""
    if not items:
        return grown.add("W!")
    if ARROW in kinds:
        return _chain(grown, items, ARROW)
    if RELATION in kinds:
        return _chain(grown, items, RELATION)
    if SEPARATOR in kinds:
        pieces = [_looser(grown, piece, _kinds(piece)) for piece in _cut(items, SEPARATOR)[0] if piece]
        return pieces[0] if len(pieces) == 1 else grown.add(f"M!L-{len(pieces)}", pieces)
    return _sum(grown, items) if SUM in kinds else term(grown, items)


def _kinds(items: list[Item]) -> set[int]:
    return {item[0] for item in items}


def _cut(items: list[Item], kind: int) -> tuple[list[list[Item]], list[Item]]:
    """Return the pieces between the items of *kind*, and these items."""
    pieces: list[list[Item]] = [[]]
    cuts: list[Item] = []
    for item in items:
        if item[0] == kind:
            cuts.append(item)
            pieces.append([])
        else:
            pieces[-1].append(item)
    return pieces, cuts


def _statements(grown: Operations, items: list[Item]) -> int:
    """Return O!form-seq of the statements of a line with commas and relations; a single one as it is.

    In x = 1, 2, y > 0 the 2 belongs to the first statement; in a, b > 0 both a and b are positive.
    """
    statements: list[list[Item]] = []
    has_relation = False
    pieces, cuts = _cut(items, SEPARATOR)
    for piece, cut in zip(pieces, [cuts[0], *cuts], strict=True):
        is_statement = any(item[0] in (RELATION, ARROW) for item in piece)
        if statements and not (is_statement and has_relation):
            statements[-1] += [cut, *piece]
        elif piece:
            statements.append(piece)
        has_relation = has_relation or is_statement
    parts = [_looser(grown, statement, _kinds(statement)) for statement in statements]
    return parts[0] if len(parts) == 1 else grown.add("O!form-seq", parts)


def _chain(grown: Operations, items: list[Item], kind: int) -> int:
    """Return relations between neighbours: one relation of two sides, or U!and of a = b and then only right sides."""
    pieces, cuts = _cut(items, kind)
    sides = [_looser(grown, piece, _kinds(piece)) for piece in pieces]
    links = [grown.apply(cuts[0][2], sides[:2])]
    links += [grown.apply(cut[2], [side]) for cut, side in zip(cuts[1:], sides[2:], strict=True)]
    return links[0] if len(links) == 1 else grown.add("U!and", links)


def _sum(grown: Operations, items: list[Item]) -> int:
    """Return a sum, from the left: a - b + c is U!plus of a - b and c; a + b + c is one U!plus.

    A sign without a term before it belongs to the term behind it, and so do all but the first of several; a sign
    behind everything makes O!limit-from, as in the limit from above.
    """
    left = last = -1
    signs: list[int] = []
    piece: list[Item] = []
    for place, item in enumerate(items):
        if item[0] != SUM or (place and items[place - 1][0] == PRODUCT):
            piece.append(item)
            continue
        if piece:
            left, last = _join(grown, left, last, signs, term(grown, piece))
            signs, piece = [], []
        signs.append(item[2])
    if piece:
        return _join(grown, left, last, signs, term(grown, piece))[0]
    return grown.add("O!limit-from", [left, *signs] if left >= 0 else signs)


def _join(grown: Operations, left: int, last: int, signs: list[int], right: int) -> tuple[int, int]:
    """Return the sum so far and, when it may take another operand of the same sign, the same number again, else -1."""
    is_first = left < 0
    if is_first and signs and grown.labels[signs[-1]] == "O!rem":
        grown.labels[signs[-1]] = "F!pmod"
    for sign in reversed(signs if is_first else signs[1:]):
        right = grown.apply(sign, [right])
    if is_first:
        return right, -1
    if left == last and grown.labels[left] == grown.labels[signs[0]] and not grown.operands[signs[0]]:
        grown.operands[left].append(right)
        return left, left
    joined = grown.apply(signs[0], [left, right])
    return joined, joined
