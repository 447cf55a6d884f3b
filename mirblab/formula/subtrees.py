"""subtrees: what larger parts of a formula say, whatever their variables are called: whole trees and subexpressions."""

from __future__ import annotations

import numpy as np

from mirblab.formula.forest import COMMUTES, VARIABLE, WILD, Forest
from mirblab.formula.hashing import climb, mixed, powers

LARGEST = 60  # nodes of a subexpression; larger ones hardly ever return, and only the whole formula stands for them
_RENAMED = np.uint64(0x5851F42D4C957F2D)
_AT_ONCE = 1 << 21  # pairs of a subexpression and a node in it

Parts = tuple[np.ndarray, np.ndarray, np.ndarray]


def wholes(forest: Forest) -> Parts:
    """Return (hashes, firsts, lasts) of each tree up to a consistent renaming of its variables.

    Hashes are uint64; first and last node of the tree, int64. x + y has the hash of a + b, but not that of a + a. Trees
    with wildcards are left out.

    >>> from mirblab.formula.forest import plant
    >>> from mirblab.formula.tree import Tree
    >>> names = (("V!x", "V!y"), ("V!a", "V!b"), ("V!a", "V!a"))
    >>> hashes, _, _ = wholes(plant([Tree([one, "+", other], [-1, 0, 1], "-nn") for one, other in names]))
    >>> bool(hashes[0] == hashes[1]), bool(hashes[0] == hashes[2])
    (True, False)
    """
    nodes, roots = np.arange(len(forest.parents)), forest.starts[forest.trees]
    before, depth = _before(forest), climb(forest.parents, forest.relations)[0]
    # Where a variable stood last says which ones are the same and nothing else of them.
    gap = np.where(before >= 0, nodes - before, 0).astype(np.uint64)
    what = np.where(forest.flags & VARIABLE, _RENAMED + gap, forest.hashes)
    how = np.where(nodes == roots, np.uint64(0), forest.relations)
    hashes = np.zeros(len(nodes), dtype=np.uint64)
    np.add.at(hashes, roots, mixed(what, how, (nodes - roots).astype(np.uint64), depth.astype(np.uint64)))
    sizes = np.diff(forest.starts)
    firsts, sizes = forest.starts[:-1][sizes > 0], sizes[sizes > 0]
    is_plain = np.bincount(roots[(forest.flags & WILD) > 0], minlength=len(nodes))[firsts] == 0
    return hashes[firsts][is_plain], firsts[is_plain], (firsts + sizes - 1)[is_plain]


def subexpressions(forest: Forest) -> Parts:
    """Return (hashes, firsts, lasts) of each subtree of 2 to LARGEST nodes of operator trees.

    As in `wholes` the names of variables do not matter, nor does the order of operands where the operation has none:
    a + b is x + y and y + x. Subtrees with wildcards are left out. A subtree lies in one piece, from its first to its
    last node.
    """
    step, before = _steps(forest), _before(forest)
    depth, path = climb(forest.parents, step)
    sizes = _sizes(forest.parents, depth)
    wild = np.cumsum(np.concatenate([[0], (forest.flags & WILD) > 0]))
    firsts = np.flatnonzero((sizes > 1) & (sizes <= LARGEST))
    lasts = firsts + sizes[firsts] - 1
    firsts = firsts[wild[lasts + 1] == wild[firsts]]
    cuts = np.searchsorted(np.cumsum(sizes[firsts]), np.arange(0, sizes[firsts].sum() + _AT_ONCE, _AT_ONCE))
    parts = [firsts[start:end] for start, end in zip(cuts[:-1], cuts[1:], strict=True)]
    hashes = [_unordered(forest, own, sizes[own], before, step, depth, path) for own in parts]
    return np.concatenate([np.empty(0, np.uint64), *hashes]), firsts, firsts + sizes[firsts] - 1


def triples(forest: Forest) -> Parts:
    """Return (hashes, upper, lower) of each node with its parent and grandparent, by their types and operands' places.

    A place counts only below an operation whose operands are ordered, such as a division or a power.
    """
    parents, step = forest.parents, _steps(forest)
    lower = np.flatnonzero(parents >= 0)
    lower = lower[parents[parents[lower]] >= 0]
    middle = parents[lower]
    upper = parents[middle]
    return mixed(step[middle], step[lower], forest.types[lower]), upper, lower


def _unordered(
    forest: Forest,
    roots: np.ndarray,
    sizes: np.ndarray,
    before: np.ndarray,
    step: np.ndarray,
    depth: np.ndarray,
    path: np.ndarray,
) -> np.ndarray:
    """Return the hash of each subtree under *roots*, of so many nodes each.

    All pairs of a root and a node below it stand one after the other. A variable is known by where it stands, all its
    occurrences together; each operation adds what its operands are and how it is reached from the root.
    """
    begins = np.cumsum(sizes) - sizes
    shift = np.repeat(begins - roots, sizes)  # from a node to its pair
    pairs = np.arange(int(sizes.sum()))
    nodes, own = pairs - shift, np.repeat(np.arange(len(roots)), sizes)
    ways = depth[nodes] - depth[roots[own]]
    place = path[nodes] - path[roots[own]] * powers(LARGEST)[ways]
    known = np.where(before[nodes] >= roots[own], before[nodes] + shift, pairs)  # the occurrence before, else itself
    while not np.array_equal(known, further := known[known]):
        known = further
    seen = np.zeros(len(pairs), dtype=np.uint64)
    np.add.at(seen, known, mixed(place))
    what = np.where(forest.flags[nodes] & VARIABLE, mixed(seen[known]), forest.hashes[nodes])
    operands = np.zeros(len(pairs), dtype=np.uint64)
    below = np.flatnonzero(ways > 0)
    np.add.at(operands, forest.parents[nodes[below]] + shift[below], mixed(what[below], step[nodes[below]]))
    hashes = np.zeros(len(roots), dtype=np.uint64)
    np.add.at(hashes, own, mixed(what, operands, place))
    return hashes


def _steps(forest: Forest) -> np.ndarray:
    """Return for each node a hash of its parent's type and of its place there, if that counts; 0 for roots."""
    below = np.flatnonzero(forest.parents >= 0)
    above = forest.parents[below]
    place = np.where(forest.flags[above] & COMMUTES, np.uint64(0), forest.relations[below])
    step = np.zeros(len(forest.parents), dtype=np.uint64)
    step[below] = mixed(forest.types[above], place)
    return step


def _sizes(parents: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """Return how many nodes the subtree of each node has, added up from the deepest."""
    sizes = np.ones(len(depth), dtype=np.int64)
    for level in range(int(depth.max(initial=0)), 0, -1):
        nodes = np.flatnonzero(depth == level)
        np.add.at(sizes, parents[nodes], sizes[nodes])
    return sizes


def _before(forest: Forest) -> np.ndarray:
    """Return for each variable the position where it stood last in its tree; -1 for its first and for other nodes."""
    nodes = np.flatnonzero((forest.flags & VARIABLE) > 0)
    order = nodes[np.lexsort((forest.hashes[nodes], forest.trees[nodes]))]
    hashes, trees = forest.hashes[order], forest.trees[order]
    is_same = (hashes[1:] == hashes[:-1]) & (trees[1:] == trees[:-1])
    before = np.full(len(forest.parents), -1, dtype=np.int64)
    before[order[1:][is_same]] = order[:-1][is_same]
    return before
