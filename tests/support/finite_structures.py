"""Finite structures built by rule, and what holds in them: an oracle for statements about groups, rings, orders, ..."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, combinations, permutations, product
from typing import Any, NamedTuple

import numpy as np

Set = frozenset[Any]


def subsets(elements: Iterable[Any]) -> list[Set]:
    """Return all subsets, the smallest first."""
    pool = list(elements)
    return [frozenset(one) for one in chain.from_iterable(combinations(pool, size) for size in range(len(pool) + 1))]


class Group(NamedTuple):
    """A finite group: its elements, its multiplication and its neutral element."""

    elements: tuple[Any, ...]
    times: Callable[[Any, Any], Any]
    one: Any

    def inverse(self, x: Any) -> Any:
        return next(y for y in self.elements if self.times(x, y) == self.one)

    def generated(self, start: Iterable[Any]) -> Set:
        found = {self.one, *start}
        while more := {self.times(x, y) for x in found for y in found} - found:
            found |= more
        return frozenset(found)

    def conjugate(self, subgroup: Set, x: Any) -> Set:
        return frozenset(self.times(self.times(x, y), self.inverse(x)) for y in subgroup)


def cyclic(n: int) -> Group:
    return Group(tuple(range(n)), lambda x, y: (x + y) % n, 0)


def pairs(one: Group, other: Group) -> Group:
    """Return the direct product."""
    elements = tuple(product(one.elements, other.elements))
    return Group(elements, lambda x, y: (one.times(x[0], y[0]), other.times(x[1], y[1])), (one.one, other.one))


def permuting(n: int, *generators: tuple[int, ...]) -> Group:
    """Return the group of permutations that some generate."""
    everything = Group(tuple(permutations(range(n))), lambda x, y: tuple(x[at] for at in y), tuple(range(n)))
    return everything._replace(elements=tuple(sorted(everything.generated(generators))))


def quaternions() -> Group:
    """Return the group of order 8 with i, j and k: (sign, unit), and ij = k."""
    table = {(1, 2): (1, 3), (2, 3): (1, 1), (3, 1): (1, 2), (2, 1): (-1, 3), (3, 2): (-1, 1), (1, 3): (-1, 2)}

    def times(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
        sign, unit = (1, x[1] + y[1]) if 0 in (x[1], y[1]) else table.get((x[1], y[1]), (-1, 0))
        return x[0] * y[0] * sign, unit

    return Group(tuple(product((1, -1), range(4))), times, (1, 0))


# Every group with at most 8 elements, up to isomorphism.
GROUPS = [
    *(cyclic(n) for n in range(1, 9)), pairs(cyclic(2), cyclic(2)), pairs(cyclic(4), cyclic(2)),
    pairs(pairs(cyclic(2), cyclic(2)), cyclic(2)), permuting(3, (1, 0, 2), (1, 2, 0)),
    permuting(4, (1, 2, 3, 0), (3, 2, 1, 0)), quaternions(),
]  # fmt: skip


def subgroups(group: Group) -> set[Set]:
    """Return all subgroups; in a group of at most 8 elements three generate each."""
    return {group.generated(start) for size in range(4) for start in combinations(group.elements, size)}


SUBGROUPS = [(group, subgroup) for group in GROUPS for subgroup in subgroups(group)]


class Ring(NamedTuple):
    """A finite commutative ring."""

    elements: tuple[Any, ...]
    plus: Callable[[Any, Any], Any]
    times: Callable[[Any, Any], Any]
    zero: Any
    one: Any

    def ideal(self, start: Iterable[Any]) -> Set:
        found = {self.zero, *(self.times(x, y) for x in start for y in self.elements)}
        while more := {self.plus(x, y) for x in found for y in found} - found:
            found |= more
        return frozenset(found)

    def powers(self, x: Any) -> Set:
        found, power = set(), x
        while power not in found:
            found.add(power)
            power = self.times(power, x)
        return frozenset(found)


def modulo(n: int) -> Ring:
    return Ring(tuple(range(n)), lambda x, y: (x + y) % n, lambda x, y: x * y % n, 0, 1 % n)


def ring_pairs(one: Ring, other: Ring) -> Ring:
    return Ring(
        tuple(product(one.elements, other.elements)), lambda x, y: (one.plus(x[0], y[0]), other.plus(x[1], y[1])),
        lambda x, y: (one.times(x[0], y[0]), other.times(x[1], y[1])), (one.zero, other.zero), (one.one, other.one),
    )  # fmt: skip


def algebra(table: dict[tuple[int, int], tuple[int, ...]], n: int) -> Ring:
    """Return the ring with the basis 1, x_1, ..., x_n over two elements, and the products of a table (others are 0)."""

    def plus(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
        return tuple((a + b) % 2 for a, b in zip(x, y, strict=True))

    def times(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
        total = (0,) * (n + 1)
        for (a, left), (b, right) in product(enumerate(x), enumerate(y)):
            if left and right:
                basis = tuple(int(at == max(a, b)) for at in range(n + 1)) if not a or not b else table.get((a, b))
                total = plus(total, basis or (0,) * (n + 1))
        return total

    return Ring(tuple(product((0, 1), repeat=n + 1)), plus, times, (0,) * (n + 1), (1, *(0,) * n))


MODULO = [modulo(n) for n in range(1, 13)]
# Products, the fields with four and eight elements, dual numbers, and a local ring with an ideal of two generators.
RINGS = [
    *MODULO, ring_pairs(modulo(2), modulo(2)), ring_pairs(modulo(2), modulo(4)), ring_pairs(modulo(3), modulo(3)),
    algebra({(1, 1): (1, 1)}, 1), algebra({}, 1), algebra({}, 2),
    algebra({(1, 1): (0, 0, 1), (1, 2): (1, 1, 0), (2, 1): (1, 1, 0), (2, 2): (0, 1, 1)}, 2),
]  # fmt: skip


@cache
def _ideals(number: int) -> set[Set]:
    ring = RINGS[number]
    return {ring.ideal(start) for size in range(4) for start in combinations(ring.elements, size)}


ELEMENTS = [(ring, x) for ring in RINGS for x in ring.elements]
IDEALS = [(ring, ideal, _ideals(number)) for number, ring in enumerate(RINGS) for ideal in _ideals(number)]
RING_IDEALS = [(ring, _ideals(number)) for number, ring in enumerate(RINGS)]


class Space(NamedTuple):
    """A topological space with at least one point: its points and its open sets."""

    points: Set
    opens: frozenset[Set]

    def closure(self, part: Set) -> Set:
        """Return the points all of whose neighbourhoods meet a set."""
        return frozenset(x for x in self.points if all(one & part for one in self.opens if x in one))

    def closed(self) -> set[Set]:
        return {self.points - one for one in self.opens}


def spaces(n: int) -> Iterator[Space]:
    """Yield all topologies on n points."""
    points = frozenset(range(n))
    inner = [one for one in subsets(points) if one not in (frozenset(), points)]
    for chosen in subsets(inner):
        opens = {frozenset(), points, *chosen}
        if all(one & other in opens and one | other in opens for one in opens for other in opens):
            yield Space(points, frozenset(opens))


SPACES = [space for n in (1, 2, 3) for space in spaces(n)]
PARTS = [(space, part) for space in SPACES for part in subsets(space.points)]


class Map(NamedTuple):
    """A map from 0, ..., n - 1 into 0, ..., size - 1, by its values."""

    values: tuple[int, ...]
    size: int


MAPS = [Map(values, size) for n in (1, 2, 3) for size in (1, 2, 3) for values in product(range(size), repeat=n)]
_SMALL = [space for space in SPACES if len(space.points) < 3] + [space for space in spaces(3)][::4]
CONTINUOUS = [
    (one, other, values)
    for one in _SMALL
    for other in _SMALL
    for values in product(sorted(other.points), repeat=len(one.points))
]
# Relations on 1, 2 and 3 points: all, and those that are partial orders.
RELATIONS = [(n, relation) for n in (1, 2, 3) for relation in subsets(product(range(n), repeat=2))]


def is_reflexive(n: int, relation: Set) -> bool:
    return all((x, x) in relation for x in range(n))


def is_transitive(relation: Set) -> bool:
    return all((x, w) in relation for x, y in relation for z, w in relation if y == z)


ORDERS = [
    (n, relation)
    for n, relation in RELATIONS
    if is_reflexive(n, relation) and is_transitive(relation)
    if all(x == y or (y, x) not in relation for x, y in relation)
]
ORDER_PARTS = [(n, order, part) for n, order in ORDERS for part in subsets(range(n))]
# Adjacency matrices of all simple graphs with 1 to 4 vertices.
GRAPHS = [
    np.array([[int((min(a, b), max(a, b)) in edges) for b in range(n)] for a in range(n)])
    for n in (1, 2, 3, 4)
    for edges in subsets(combinations(range(n), 2))
]
# The 2 x 2 matrices over three elements.
MATRICES = [np.array(entries).reshape(2, 2) for entries in product(range(3), repeat=4)]
