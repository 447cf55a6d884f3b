"""tokens: the tokens of a tree that the index knows."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.operators import COMMUTATIVE, operator_tree
from mirblab.formula.tree import Tree, label_type

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # those of the splitmix64 generator
_BASE = np.uint64(0x9E3779B97F4A7C15)
RELATION_SYMBOLS = frozenset("=<>≤≥≠≈∼≃≅≡∝∈⊂⊆→⇒⇔⟹⟺")
REPEATS, RELATES, WILD, COMMUTES, VARIABLE = (np.uint8(1 << bit) for bit in range(5))
MAX_SUBEXPRESSION = 60  # nodes; larger subexpressions hardly ever occur twice, except as the whole formula
_RENAMED = np.uint64(0x5851F42D4C957F2D)
_AT_ONCE = 1 << 21  # pairs of a subexpression and a node in it
HashedSpans = tuple[np.ndarray, np.ndarray, np.ndarray]
KINDS = ("symbol", "located pair", "typed duplicate", "whole", "operation", "subexpression")
KIND_BITS, KIND_MASK = np.uint64(4), np.uint64(15)
MAX_COUNT = 255
_LONGEST_PLACE, _MOST_REPEATS, _DEEPEST_REPEAT = 7, 8, 40
_HALF = np.uint64(32)


class LabelTable(dict):
    """A number for every label, and its attributes by number.

    `hashes` and `types` are 64-bit hashes of the label and of its type, the same in every process; `flags` say whether
    the label's repetitions count (REPEATS: variables, numbers, wildcards), and whether it is a relation symbol
    (RELATES), a wildcard (WILD), a commutative operation (COMMUTES) or a variable (VARIABLE).
    """

    def __init__(self) -> None:
        self.hashes: list[int] = []
        self.types: list[int] = []
        self.flags: list[int] = []

    def __missing__(self, label: str) -> int:
        is_wild = len(label) > 1 and label[0] == "?"
        plain = label if is_wild else normalise_label(label)
        of = "V" if is_wild else label_type(plain)
        self.hashes.append(_hash(plain))
        self.types.append(_hash(of))
        facts = (
            *((REPEATS, of in ("V", "N")), (RELATES, plain in RELATION_SYMBOLS), (WILD, is_wild)),
            *((COMMUTES, plain in COMMUTATIVE), (VARIABLE, of == "V" and not is_wild)),
        )
        self.flags.append(sum(int(flag) for flag, holds in facts if holds))
        self[label] = len(self)
        return self[label]


def normalise_label(label: str) -> str:
    """Return a label as matching compares it: the part after the type in NFKC, so that the font does not matter."""
    if len(label) > 2 and label[1] == "!" and not label.isascii():
        return label[:2] + unicodedata.normalize("NFKC", label[2:])
    return label


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@dataclass(frozen=True, slots=True)
class Forest:
    """The nodes of *n* trees one after the other, as arrays of one entry per node.

    `trees` int32, the tree of each node; `parents` int64, positions in this forest, -1 for roots; `relations` uint64,
    the character's code; `hashes`, `types`, `flags` as in `LabelTable`; `starts` int64 (n + 1,), the first node of each
    tree.
    """

    n: int
    trees: np.ndarray
    parents: np.ndarray
    relations: np.ndarray
    hashes: np.ndarray
    types: np.ndarray
    flags: np.ndarray
    starts: np.ndarray


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens as arrays of one entry each: `keys` uint64, kind in the four low bits; `trees` int32, whose it is.

    `firsts` and `seconds`, int64, are the nodes of the forest it is made of, equal for a single node.
    """

    keys: np.ndarray
    trees: np.ndarray
    firsts: np.ndarray
    seconds: np.ndarray


def layout_trees(formulas: Iterable[str | Tree]) -> list[Tree]:
    """Return the layout trees of formulas, which are LaTeX or trees already."""
    return [formula if isinstance(formula, Tree) else parse_latex(formula) for formula in formulas]


def formula_tokens(layouts: list[Tree]) -> Tokens:
    """Return all tokens of layout trees and of their operator trees; nodes are positions in either kind of forest."""
    labels = LabelTable()
    layout = layout_tokens(build_forest(layouts, labels))
    operation = operation_tokens(build_forest(map(operator_tree, layouts), labels))
    return Tokens(*(np.concatenate([getattr(layout, name), getattr(operation, name)]) for name in Tokens.__slots__))


def layout_tokens(forest: Forest) -> Tokens:
    """Return the tokens of all layout trees of a *forest*, a token as often as it occurs.

    They are of the first four of `KINDS`: symbol (every node), located pair (a node and its child, with the path from
    the root or the nearest relation symbol above), typed duplicate (two occurrences of a variable or a number, with the
    paths from their common ancestor) and whole (the formula up to a consistent renaming of its variables). The first
    three are of Tangent-3 and of Waterloo's mathtuples. A wildcard is no symbol and in no pair, so it costs nothing.
    """
    return _gather_tokens(forest, [_symbols(forest), _located(forest), _duplicates(forest), whole_formulas(forest)], 0)


def _gather_tokens(forest: Forest, parts: list[HashedSpans], kind: int) -> Tokens:
    keys = [hashes << KIND_BITS | np.uint64(kind + place) for place, (hashes, _, _) in enumerate(parts)]
    firsts, seconds = (np.concatenate([part[column] for part in parts]) for column in (1, 2))
    return Tokens(np.concatenate(keys), forest.trees[firsts], firsts, seconds)


def _symbols(forest: Forest) -> HashedSpans:
    nodes = np.flatnonzero((forest.flags & WILD) == 0)
    return mix_hashes(forest.hashes[nodes]), nodes, nodes


def mix_hashes(*parts: np.ndarray) -> np.ndarray:
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


def _located(forest: Forest) -> HashedSpans:
    parents, is_exact = forest.parents, (forest.flags & WILD) == 0
    is_start = (parents < 0) | ((forest.flags & RELATES) > 0)
    length, place = hash_paths(np.where(is_start, -1, parents), forest.relations)
    below = np.flatnonzero(parents >= 0)
    above = parents[below]
    near = is_exact[above] & is_exact[below] & (length[above] <= _LONGEST_PLACE)
    above, below = above[near], below[near]
    where = place[above] + length[above].astype(np.uint64)
    return mix_hashes(forest.hashes[above], forest.hashes[below], forest.relations[below], where), above, below


def hash_paths(parents: np.ndarray, relations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each node's number of steps from the start of its line of *parents* (-1), and a hash of these steps.

    The hash is a polynomial in the steps, so that the hash of part of a path follows from those of two nodes.
    """
    up = parents.copy()
    length = (up >= 0).astype(np.int64)
    path = np.where(up >= 0, relations + np.uint64(1), np.uint64(0))
    moving = np.flatnonzero(up >= 0)
    while len(moving):
        at = up[moving]
        path[moving] += path[at] * base_powers(int(length[moving].max()))[length[moving]]
        length[moving] += length[at]
        up[moving] = up[at]
        moving = moving[up[moving] >= 0]
    return length, path


def base_powers(most: int) -> np.ndarray:
    """Return the powers of the base of the path hash modulo 2**64, from 0 to *most*."""
    return np.concatenate([[np.uint64(1)], np.cumprod(np.full(most, _BASE), dtype=np.uint64)])


def _duplicates(forest: Forest) -> HashedSpans:
    depth, path = hash_paths(forest.parents, forest.relations)
    first, second = _repeats(forest, depth)
    top, power = _meeting(forest.parents, first, second), base_powers(_DEEPEST_REPEAT)

    def way(node: np.ndarray) -> np.ndarray:
        steps = depth[node] - depth[top]
        return path[node] - path[top] * power[steps] + steps.astype(np.uint64)

    return mix_hashes(forest.types[first], way(first), way(second)), first, second


def _repeats(forest: Forest, depth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of nodes of one tree with one label, of its first occurrences that are not too deep."""
    nodes = np.flatnonzero(((forest.flags & REPEATS) > 0) & (depth <= _DEEPEST_REPEAT))
    group = mix_hashes(forest.hashes[nodes], forest.trees[nodes].astype(np.uint64))
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
    """Return for each pair of nodes of a tree their deepest common ancestor; parents have smaller positions."""
    one, other = first.copy(), second.copy()
    apart = np.arange(len(one))
    while len(apart):
        low, high = np.minimum(one[apart], other[apart]), np.maximum(one[apart], other[apart])
        one[apart], other[apart] = low, parents[high]
        apart = apart[low != other[apart]]
    return one


def whole_formulas(forest: Forest) -> HashedSpans:
    """Return (hashes, firsts, lasts) of each tree without wildcards, up to a consistent renaming of its variables."""
    nodes, roots = np.arange(len(forest.parents)), forest.starts[forest.trees]
    before, depth = _previous_occurrences(forest), hash_paths(forest.parents, forest.relations)[0]
    # The position of a variable's last occurrence identifies equal variables without their names.
    gap = np.where(before >= 0, nodes - before, 0).astype(np.uint64)
    what = np.where(forest.flags & VARIABLE, _RENAMED + gap, forest.hashes)
    how = np.where(nodes == roots, np.uint64(0), forest.relations)
    hashes = np.zeros(len(nodes), dtype=np.uint64)
    np.add.at(hashes, roots, mix_hashes(what, how, (nodes - roots).astype(np.uint64), depth.astype(np.uint64)))
    sizes = np.diff(forest.starts)
    firsts, sizes = forest.starts[:-1][sizes > 0], sizes[sizes > 0]
    is_plain = np.bincount(roots[(forest.flags & WILD) > 0], minlength=len(nodes))[firsts] == 0
    return hashes[firsts][is_plain], firsts[is_plain], (firsts + sizes - 1)[is_plain]


def _previous_occurrences(forest: Forest) -> np.ndarray:
    """Return for each variable the position of its last occurrence before in its tree, else -1; -1 for other nodes."""
    nodes = np.flatnonzero((forest.flags & VARIABLE) > 0)
    order = nodes[np.lexsort((forest.hashes[nodes], forest.trees[nodes]))]
    hashes, trees = forest.hashes[order], forest.trees[order]
    is_same = (hashes[1:] == hashes[:-1]) & (trees[1:] == trees[:-1])
    before = np.full(len(forest.parents), -1, dtype=np.int64)
    before[order[1:][is_same]] = order[:-1][is_same]
    return before


def build_forest(trees: Iterable[Tree], labels: LabelTable | None = None) -> Forest:
    """Return the forest of *trees*; *labels* keeps the attributes of labels between calls."""
    trees, labels = list(trees), LabelTable() if labels is None else labels
    sizes = np.fromiter(map(len, trees), np.int64, len(trees))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    total = int(starts[-1])
    numbers = np.fromiter(map(labels.__getitem__, chain.from_iterable(tree.labels for tree in trees)), np.int64, total)
    parents = np.fromiter(chain.from_iterable(tree.parents for tree in trees), np.int64, total)
    parents = np.where(parents < 0, -1, parents + np.repeat(starts[:-1], sizes))
    codes = np.frombuffer("".join(tree.relations for tree in trees).encode("latin-1", "replace"), np.uint8)
    attributes = (np.array(column, dtype) for column, dtype in (
        (labels.hashes, np.uint64), (labels.types, np.uint64), (labels.flags, np.uint8)
    ))  # fmt: skip
    hashes, types, flags = (column[numbers] for column in attributes)
    own = np.repeat(np.arange(len(trees), dtype=np.int32), sizes)
    return Forest(len(trees), own, parents, codes.astype(np.uint64), hashes, types, flags, starts)


def operation_tokens(forest: Forest) -> Tokens:
    """Return the tokens of all operator trees of a *forest*: operations (`triples`) and `subexpressions`."""
    return _gather_tokens(forest, [triples(forest), subexpressions(forest)], 4)


def triples(forest: Forest) -> HashedSpans:
    """Return (hashes, upper, lower) of nodes with parent and grandparent, by type and position of ordered operands."""
    parents, step = forest.parents, _hash_steps(forest)
    lower = np.flatnonzero(parents >= 0)
    lower = lower[parents[parents[lower]] >= 0]
    middle = parents[lower]
    upper = parents[middle]
    return mix_hashes(step[middle], step[lower], forest.types[lower]), upper, lower


def _hash_steps(forest: Forest) -> np.ndarray:
    """Return for each node a hash of its parent's type and of its position there, if that counts; 0 for roots."""
    below = np.flatnonzero(forest.parents >= 0)
    above = forest.parents[below]
    place = np.where(forest.flags[above] & COMMUTES, np.uint64(0), forest.relations[below])
    step = np.zeros(len(forest.parents), dtype=np.uint64)
    step[below] = mix_hashes(forest.types[above], place)
    return step


def subexpressions(forest: Forest) -> HashedSpans:
    """Return (hashes, firsts, lasts) of each subtree of 2 to MAX_SUBEXPRESSION nodes of operator trees.

    Neither names of variables nor the order of commutative operands matter: a + b is y + x. Wildcards are left out.
    """
    step, before = _hash_steps(forest), _previous_occurrences(forest)
    depth, path = hash_paths(forest.parents, step)
    sizes = _subtree_sizes(forest.parents, depth)
    wild = np.cumsum(np.concatenate([[0], (forest.flags & WILD) > 0]))
    firsts = np.flatnonzero((sizes > 1) & (sizes <= MAX_SUBEXPRESSION))
    lasts = firsts + sizes[firsts] - 1
    firsts = firsts[wild[lasts + 1] == wild[firsts]]
    ends = np.cumsum(sizes[firsts])
    cuts = np.searchsorted(ends, np.arange(0, sizes[firsts].sum() + _AT_ONCE, _AT_ONCE), "right")
    parts = [firsts[start:end] for start, end in zip(cuts[:-1], cuts[1:], strict=True)]
    hashes = [_hash_subtrees(forest, own, sizes[own], before, step, depth, path) for own in parts]
    return np.concatenate([np.empty(0, np.uint64), *hashes]), firsts, firsts + sizes[firsts] - 1


def _subtree_sizes(parents: np.ndarray, depth: np.ndarray) -> np.ndarray:
    sizes = np.ones(len(depth), dtype=np.int64)
    for level in range(int(depth.max(initial=0)), 0, -1):
        nodes = np.flatnonzero(depth == level)
        np.add.at(sizes, parents[nodes], sizes[nodes])
    return sizes


def _hash_subtrees(
    forest: Forest,
    roots: np.ndarray,
    sizes: np.ndarray,
    before: np.ndarray,
    step: np.ndarray,
    depth: np.ndarray,
    path: np.ndarray,
) -> np.ndarray:
    """Return the hash of each subtree under *roots* with so many nodes; variables are identified by their positions."""
    begins = np.cumsum(sizes) - sizes
    shift = np.repeat(begins - roots, sizes)  # from a node to its pair
    pairs = np.arange(int(sizes.sum()))
    nodes, own = pairs - shift, np.repeat(np.arange(len(roots)), sizes)
    ways = depth[nodes] - depth[roots[own]]
    place = path[nodes] - path[roots[own]] * base_powers(MAX_SUBEXPRESSION)[ways]
    known = np.where(before[nodes] >= roots[own], before[nodes] + shift, pairs)  # the occurrence before, else itself
    while not np.array_equal(known, further := known[known]):
        known = further
    seen = np.zeros(len(pairs), dtype=np.uint64)
    np.add.at(seen, known, mix_hashes(place))
    what = np.where(forest.flags[nodes] & VARIABLE, mix_hashes(seen[known]), forest.hashes[nodes])
    operands = np.zeros(len(pairs), dtype=np.uint64)
    below = np.flatnonzero(ways > 0)
    np.add.at(operands, forest.parents[nodes[below]] + shift[below], mix_hashes(what[below], step[nodes[below]]))
    hashes = np.zeros(len(roots), dtype=np.uint64)
    np.add.at(hashes, own, mix_hashes(what, operands, place))
    return hashes


def count_tokens(found: Tokens) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct keys, ascending, how many trees have each, and those trees with how often, flat.

    Keys are uint64, documents int64 (n_keys,), trees int32, counts uint8 (n_postings,), at most MAX_COUNT.
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
        np.minimum(often, MAX_COUNT).astype(np.uint8),
    )
