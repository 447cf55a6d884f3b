"""differentials: the d of an integral is an operator, not a variable."""

from __future__ import annotations

from collections.abc import Sequence

INTEGRALS = frozenset("∫∬∭⨌∮∯")
LABEL = "𝑑"  # what LaTeXML writes, and Tangent after it


def mark(labels: list[str], parents: Sequence[int], relations: Sequence[str]) -> None:
    """Relabel each d that stands behind an integral sign and before a variable; nodes in reading order.

    >>> labels = ["∫", "V!x", "V!d", "V!x"]
    >>> mark(labels, [-1, 0, 1, 2], "-nnn")
    >>> labels
    ['∫', 'V!x', '𝑑', 'V!x']
    """
    behind: list[bool] = []  # an integral sign stands before the node, on its line or on one around it
    for node, (parent, relation) in enumerate(zip(parents, relations, strict=True)):
        if parent < 0 or relation in "abcd":
            behind.append(False)
            continue
        behind.append(behind[parent] or (relation == "n" and labels[parent] in INTEGRALS))
        if relation == "n" and behind[parent] and labels[parent] == "V!d" and labels[node][:2] == "V!":
            labels[parent] = LABEL
