"""Checks of formula trees that several tests make."""

from __future__ import annotations

from mirblab.formula.tree import Tree


def check_tree(tree: Tree) -> Tree:
    """Return the *tree* when its lists have one entry for each node, and a parent comes before its children."""
    sizes = {len(tree.labels), len(tree.parents), len(tree.relations)} | ({len(tree.spans)} if tree.spans else set())
    assert len(sizes) == 1, f"the lists of a tree have {sorted(sizes)} entries"
    for node, parent in enumerate(tree.parents):
        assert 0 <= parent < node or node == 0 and parent == -1, f"node {node} has parent {parent}"
    return tree
