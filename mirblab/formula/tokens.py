"""tokens: what the structure index knows of a formula: symbols, pairs, places and repetitions as 64-bit keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mirblab.formula.forest import COMMUTES, OWN_TYPE, RELATES, REPEATS, WILD, Forest

KINDS = (
    *("symbol", "terminal", "pair", "typed pair", "located pair", "duplicate", "typed duplicate"),
    "operation pair",
)
KIND_BITS, KIND_MASK = np.uint64(4), np.uint64(15)
MOST_COUNTED = 255
_LONGEST_PLACE, _MOST_REPEATS, _DEEPEST_REPEAT = 7, 8, 40
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # those of the splitmix64 generator
_ANY_PLACE = np.uint64(ord("*"))
_BASE, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens as arrays of one entry each: `keys` uint64, kind in the four low bits; `trees` int32, whose it is.

    `firsts` and `seconds`, int64, are the nodes of the forest it is made of, the same one twice for a single node.
    """

    keys: np.ndarray
    trees: np.ndarray
    firsts: np.ndarray
    seconds: np.ndarray


def tokens(forest: Forest) -> Tokens:
    """Return the tokens of all trees of a *forest*, a token as often as it occurs.

    The kinds are `KINDS`: symbol (every node), terminal (without children), pair (a node and its child or
    grandchild, with the path), typed pair (the same of their types), located pair (a node and its child, with the
    path from the root or the nearest relation symbol above), duplicate (two occurrences of one variable or number,
    with the paths from where they part) and typed duplicate. They are those of Tangent-3 and of Waterloo's mathtuples.

    A wildcard has the type of a variable and is in typed tokens only, so that it agrees with any variable; of its
    repetitions only the typed duplicate remains, which asks for the same variable or number at both places.

    >>> from mirblab.formula.forest import plant
    >>> from mirblab.formula.tree import Tree
    >>> kinds = tokens(plant([Tree(["V!x", "N!2"], [-1, 0], "-a")])).keys & KIND_MASK
    >>> [KINDS[kind] for kind in kinds]
    ['symbol', 'symbol', 'terminal', 'pair', 'typed pair', 'located pair']
    """
    parts = [part for part in _parts(forest) if len(part[0])]
    if not parts:
        return Tokens(np.empty(0, np.uint64), np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64))
    keys, firsts, seconds = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Tokens(keys, forest.trees[firsts], firsts, seconds)


def operations(forest: Forest) -> Tokens:
    """Return the operation pairs of all operator trees of a *forest*: pairs as in `tokens`, whatever the order.

    The place of an operand counts where it matters only, so that a + b and b + a have the same.

    >>> from mirblab.formula.forest import plant
    >>> from mirblab.formula.tree import Tree
    >>> sums = [Tree(["U!plus", f"V!{one}", f"V!{other}"], [-1, 0, 0], "-01") for one, other in ("ab", "ba")]
    >>> found = operations(plant(sums))
    >>> set(found.keys[found.trees == 0]) == set(found.keys[found.trees == 1])
    True
    """
    has_parent = forest.parents >= 0
    commutes = np.zeros(len(has_parent), dtype=bool)
    commutes[has_parent] = (forest.flags[forest.parents[has_parent]] & COMMUTES) > 0
    upper, lower, path = _descents(replace(forest, relations=np.where(commutes, _ANY_PLACE, forest.relations)))
    exact = ((forest.flags[upper] | forest.flags[lower]) & WILD) == 0
    upper, lower = upper[exact], lower[exact]
    keys = _key(7, forest.hashes[upper], forest.hashes[lower], path[exact])
    return Tokens(keys, forest.trees[upper], upper, lower)


def together(*parts: Tokens) -> Tokens:
    """Return the tokens of all *parts*, which are of the same trees; nodes keep the positions of their own forest."""
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in Tokens.__slots__]
    return Tokens(*columns)


def counted(found: Tokens) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct keys, ascending, how many trees have each, and those trees with how often, flat.

    That is keys uint64 (n_keys,), documents int64 (n_keys,), trees int32 and counts uint8, at most MOST_COUNTED,
    (n_postings,), by key and then tree.
    """
    keys, own = np.unique(found.keys, return_inverse=True)
    pairs = np.sort(own.astype(np.uint64) << _HALF | found.trees.astype(np.uint64))
    edges = np.flatnonzero(np.concatenate([[True], pairs[1:] != pairs[:-1]])) if len(pairs) else np.empty(0, np.int64)
    often = np.diff(np.append(edges, len(pairs)))
    distinct = pairs[edges]
    documents = np.bincount((distinct >> _HALF).astype(np.int64), minlength=len(keys))
    return (
        keys,
        documents,
        distinct.astype(np.uint32).astype(np.int32),
        np.minimum(often, MOST_COUNTED).astype(np.uint8),
    )


def _parts(forest: Forest) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield keys, first and second nodes of each kind of token in turn."""
    labels, types, flags, parents = forest.hashes, forest.types, forest.flags, forest.parents
    is_exact = (flags & WILD) == 0
    nodes = np.flatnonzero(is_exact)
    yield _key(0, labels[nodes]), nodes, nodes
    has_child = np.zeros(len(parents), dtype=bool)
    has_child[parents[parents >= 0]] = True
    leaves = np.flatnonzero(is_exact & ~has_child)
    yield _key(1, labels[leaves]), leaves, leaves
    upper, lower, path = _descents(forest)
    exact = is_exact[upper] & is_exact[lower]
    yield _key(2, labels[upper[exact]], labels[lower[exact]], path[exact]), upper[exact], lower[exact]
    renamed = (flags[upper] & flags[lower] & OWN_TYPE) == 0
    yield _key(3, types[upper[renamed]], types[lower[renamed]], path[renamed]), upper[renamed], lower[renamed]
    is_start = (parents < 0) | ((flags & RELATES) > 0)
    length, place = _climb(np.where(is_start, -1, parents), forest.relations)
    below = np.flatnonzero(parents >= 0)
    above = parents[below]
    near = is_exact[above] & is_exact[below] & (length[above] <= _LONGEST_PLACE)
    above, below = above[near], below[near]
    where = place[above] + length[above].astype(np.uint64)
    yield _key(4, labels[above], labels[below], forest.relations[below], where), above, below
    yield from _duplicates(forest)


def _descents(forest: Forest) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all nodes with a parent or grandparent: those above, those below, the relations between as a number."""
    parents, relations = forest.parents, forest.relations
    below = np.flatnonzero(parents >= 0)
    far = below[parents[parents[below]] >= 0]
    two_steps = relations[parents[far]] << np.uint64(8) | relations[far]
    upper = np.concatenate([parents[below], parents[parents[far]]])
    return upper, np.concatenate([below, far]), np.concatenate([relations[below], two_steps])


def _duplicates(forest: Forest) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield exact and typed duplicates: pairs among the first occurrences of a label, in reading order."""
    depth, path = _climb(forest.parents, forest.relations)
    first, second = _repeats(forest, depth)
    top = _meeting(forest.parents, first, second)
    powers = _powers(_DEEPEST_REPEAT)

    def way(node: np.ndarray) -> np.ndarray:
        steps = depth[node] - depth[top]
        return path[node] - path[top] * powers[steps] + steps.astype(np.uint64)

    ways = way(first), way(second)
    exact = (forest.flags[first] & WILD) == 0
    one, other = first[exact], second[exact]
    yield _key(5, forest.hashes[one], ways[0][exact], ways[1][exact]), one, other
    yield _key(6, forest.types[first], *ways), first, second


def _repeats(forest: Forest, depth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of nodes of one tree with one label, of its first occurrences that are not too deep."""
    nodes = np.flatnonzero(((forest.flags & REPEATS) > 0) & (depth <= _DEEPEST_REPEAT))
    group = _mixed(forest.hashes[nodes], forest.trees[nodes].astype(np.uint64))
    order = np.argsort(group, kind="stable")
    nodes, group = nodes[order], group[order]
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])) if len(group) else order
    rank = np.arange(len(nodes)) - np.repeat(starts, np.diff(np.append(starts, len(nodes))))
    pairs = []
    for gap in range(1, _MOST_REPEATS):
        later = np.flatnonzero((rank[gap:] >= gap) & (rank[gap:] < _MOST_REPEATS))
        pairs.append((nodes[later], nodes[later + gap]))
    first, second = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return first, second


def _meeting(parents: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return for each pair of nodes of a tree their deepest common ancestor, which may be one of them.

    A parent has a smaller position than its children, so the larger of two positions can always step up.
    """
    one, other = first.copy(), second.copy()
    apart = np.arange(len(one))
    while len(apart):
        low, high = np.minimum(one[apart], other[apart]), np.maximum(one[apart], other[apart])
        one[apart], other[apart] = low, parents[high]
        apart = apart[low != other[apart]]
    return one


def _climb(parents: np.ndarray, relations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each node's number of steps from where its line of *parents* begins (-1), and a hash of that path.

    The hash is a polynomial in the steps, so that the hash of a part of a path follows from those of two nodes. Each
    round doubles the distance covered.
    """
    up = parents.copy()
    length = (up >= 0).astype(np.int64)
    path = np.where(up >= 0, relations + np.uint64(1), np.uint64(0))
    moving = np.flatnonzero(up >= 0)
    while len(moving):
        at = up[moving]
        path[moving] += path[at] * _power(length[moving])
        length[moving] += length[at]
        up[moving] = up[at]
        moving = moving[up[moving] >= 0]
    return length, path


def _powers(most: int) -> np.ndarray:
    """Return the powers of the base of the path hash modulo 2**64, from 0 to *most*."""
    return np.concatenate([[np.uint64(1)], np.cumprod(np.full(most, _BASE), dtype=np.uint64)])


def _power(exponents: np.ndarray) -> np.ndarray:
    return _powers(int(exponents.max(initial=0)))[exponents]


def _mixed(*parts: np.ndarray) -> np.ndarray:
    """Return a hash of each row of the parts, uint64, by the mixing steps of splitmix64."""
    state = np.zeros(len(parts[0]), dtype=np.uint64)
    for part in parts:
        state += part
        state += _BASE
        state ^= state >> np.uint64(30)
        state *= _FIRST
        state ^= state >> np.uint64(27)
        state *= _SECOND
        state ^= state >> np.uint64(31)
    return state


def _key(kind: int, *parts: np.ndarray) -> np.ndarray:
    return _mixed(*parts) << KIND_BITS | np.uint64(kind)
