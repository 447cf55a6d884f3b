"""tokens: what the structure index knows of a formula: symbols, places, repetitions, operations, as 64-bit keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mirblab.formula.forest import RELATES, REPEATS, WILD, Forest
from mirblab.formula.hashing import climb, mixed, powers
from mirblab.formula.subtrees import Parts, subexpressions, triples, wholes

KINDS = ("symbol", "located pair", "typed duplicate", "whole", "operation", "subexpression")
KIND_BITS, KIND_MASK = np.uint64(4), np.uint64(15)
MOST_COUNTED = 255
_LONGEST_PLACE, _MOST_REPEATS, _DEEPEST_REPEAT = 7, 8, 40
_HALF = np.uint64(32)


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
    """Return the tokens of all layout trees of a *forest*, a token as often as it occurs.

    They are of the first four of `KINDS`: symbol (every node), located pair (a node and its child, with the path from
    the root or the nearest relation symbol above), typed duplicate (two occurrences of a variable or a number, with
    the paths from where they part) and whole (the formula up to a consistent renaming of its variables). The first
    three are of Tangent-3 and of Waterloo's mathtuples.

    A wildcard is no symbol and in no pair, so that it costs nothing; its repetition asks for a repeated variable.

    >>> from mirblab.formula.forest import plant
    >>> from mirblab.formula.tree import Tree
    >>> kinds = tokens(plant([Tree(["V!x", "N!2"], [-1, 0], "-a")])).keys & KIND_MASK
    >>> [KINDS[kind] for kind in kinds]
    ['symbol', 'symbol', 'located pair', 'whole']
    """
    return _gathered(forest, [_symbols(forest), _located(forest), _duplicates(forest), wholes(forest)], 0)


def operations(forest: Forest) -> Tokens:
    """Return the tokens of all operator trees of a *forest*: operations and subexpressions, the last two of `KINDS`.

    An operation is a node with its parent and grandparent, by their types; a subexpression is a subtree up to a
    consistent renaming of its variables. The order of operands counts only where it matters: a + b has what y + x has.

    >>> from mirblab.formula.forest import plant
    >>> from mirblab.formula.tree import Tree
    >>> sums = [Tree(["U!plus", one, other], [-1, 0, 0], "-01") for one, other in (("V!a", "N!2"), ("N!2", "V!x"))]
    >>> found = operations(plant(sums))
    >>> set(found.keys[found.trees == 0]) == set(found.keys[found.trees == 1])
    True
    """
    return _gathered(forest, [triples(forest), subexpressions(forest)], 4)


def _gathered(forest: Forest, parts: list[Parts], kind: int) -> Tokens:
    """Return tokens of hashes and their nodes, *kind* and those after it."""
    keys = [hashes << KIND_BITS | np.uint64(kind + place) for place, (hashes, _, _) in enumerate(parts)]
    firsts, seconds = (np.concatenate([part[column] for part in parts]) for column in (1, 2))
    return Tokens(np.concatenate(keys), forest.trees[firsts], firsts, seconds)


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


def _symbols(forest: Forest) -> Parts:
    nodes = np.flatnonzero((forest.flags & WILD) == 0)
    return mixed(forest.hashes[nodes]), nodes, nodes


def _located(forest: Forest) -> Parts:
    """Return pairs of a node and its child that lie near the root or a relation symbol."""
    parents, is_exact = forest.parents, (forest.flags & WILD) == 0
    is_start = (parents < 0) | ((forest.flags & RELATES) > 0)
    length, place = climb(np.where(is_start, -1, parents), forest.relations)
    below = np.flatnonzero(parents >= 0)
    above = parents[below]
    near = is_exact[above] & is_exact[below] & (length[above] <= _LONGEST_PLACE)
    above, below = above[near], below[near]
    where = place[above] + length[above].astype(np.uint64)
    return mixed(forest.hashes[above], forest.hashes[below], forest.relations[below], where), above, below


def _duplicates(forest: Forest) -> Parts:
    """Return pairs among the first occurrences of a variable or a number, in reading order."""
    depth, path = climb(forest.parents, forest.relations)
    first, second = _repeats(forest, depth)
    top, power = _meeting(forest.parents, first, second), powers(_DEEPEST_REPEAT)

    def way(node: np.ndarray) -> np.ndarray:
        steps = depth[node] - depth[top]
        return path[node] - path[top] * power[steps] + steps.astype(np.uint64)

    return mixed(forest.types[first], way(first), way(second)), first, second


def _repeats(forest: Forest, depth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of nodes of one tree with one label, of its first occurrences that are not too deep."""
    nodes = np.flatnonzero(((forest.flags & REPEATS) > 0) & (depth <= _DEEPEST_REPEAT))
    group = mixed(forest.hashes[nodes], forest.trees[nodes].astype(np.uint64))
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
