"""forest: many trees as flat arrays, their labels reduced to what matching compares."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from mirblab.formula.precedence import COMMUTATIVE
from mirblab.formula.tree import Tree, kind

RELATION_SYMBOLS = frozenset("=<>≤≥≠≈∼≃≅≡∝∈⊂⊆→⇒⇔⟹⟺")
REPEATS, RELATES, WILD, COMMUTES, VARIABLE = (np.uint8(1 << bit) for bit in range(5))


class Labels(dict):
    """A number for every label that was asked for, and its attributes by number.

    `hashes` and `types` are 64-bit hashes of the label and of its type, the same in every process; `flags` say
    whether the label's repetitions count (REPEATS: variables, numbers, wildcards), and whether it is a relation symbol
    (RELATES), a wildcard (WILD), a commutative operation (COMMUTES) or a variable (VARIABLE).

    >>> labels = Labels()
    >>> labels["V!x"], labels["V!𝑥"], labels["V!x"], labels.hashes[0] == labels.hashes[1]
    (0, 1, 0, True)
    """

    def __init__(self) -> None:
        """Start without any label."""
        self.hashes: list[int] = []
        self.types: list[int] = []
        self.flags: list[int] = []

    def __missing__(self, label: str) -> int:
        """Number a new label and work out its attributes."""
        is_wild = len(label) > 1 and label[0] == "?"
        plain = label if is_wild else matched(label)
        of = "V" if is_wild else kind(plain)
        self.hashes.append(_hash(plain))
        self.types.append(_hash(of))
        facts = (
            *((REPEATS, of in ("V", "N")), (RELATES, plain in RELATION_SYMBOLS), (WILD, is_wild)),
            *((COMMUTES, plain in COMMUTATIVE), (VARIABLE, of == "V" and not is_wild)),
        )
        self.flags.append(sum(int(flag) for flag, holds in facts if holds))
        self[label] = len(self)
        return self[label]


def _hash(text: str) -> int:
    """Return BLAKE2b of a text, 64 bits, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def matched(label: str) -> str:
    """Return what matching compares of a label: the part after the type in NFKC, so that the font does not matter.

    >>> matched("V!ℝ"), matched("V!𝐱"), matched("!"), matched("≤")
    ('V!R', 'V!x', '!', '≤')
    """
    if len(label) > 2 and label[1] == "!" and not label.isascii():
        return label[:2] + unicodedata.normalize("NFKC", label[2:])
    return label


@dataclass(frozen=True, slots=True)
class Forest:
    """The nodes of *n* trees one after the other, as arrays of one entry per node.

    `trees` int32, to which tree a node belongs; `parents` int64, positions in this forest, -1 for roots;
    `relations` uint64, the code of the character; `hashes`, `types` uint64 and `flags` uint8 as in `Labels`;
    `starts` int64 (n + 1,), where each tree begins.
    """

    n: int
    trees: np.ndarray
    parents: np.ndarray
    relations: np.ndarray
    hashes: np.ndarray
    types: np.ndarray
    flags: np.ndarray
    starts: np.ndarray


def plant(trees: Iterable[Tree], labels: Labels | None = None) -> Forest:
    """Return the forest of *trees*; *labels* remembers what was worked out for earlier ones.

    >>> forest = plant([Tree(["V!x", "N!2"], [-1, 0], "-a"), Tree(["V!y"], [-1], "-")])
    >>> forest.n, forest.parents.tolist(), forest.starts.tolist()
    (2, [-1, 0, -1], [0, 2, 3])
    """
    trees, labels = list(trees), Labels() if labels is None else labels
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
