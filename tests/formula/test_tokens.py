"""The tokens of structure search, against a second, slow definition of them and by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mirblab.formula.tokens import (
    KIND_MASK,
    KINDS,
    RELATION_SYMBOLS,
    LabelTable,
    build_forest,
    count_tokens,
    formula_tokens,
    layout_tokens,
    operation_tokens,
)
from mirblab.formula.tree import RELATIONS, Tree

LABELS = ("V!x", "V!y", "V!z", "N!1", "N!2", "+", "=", "O!divide", "M!()1x1", "T!if", "?q", "?r", "!")


@st.composite
def some_trees(draw: st.DrawFn, largest: int = 30) -> Tree:
    """Return a random layout tree; long lines are as likely as wide ones."""
    size = draw(st.integers(1, largest))
    labels = draw(st.lists(st.sampled_from(LABELS), min_size=size, max_size=size))
    is_line = draw(st.booleans())
    parents = [-1] + [node - 1 if is_line else draw(st.integers(0, node - 1)) for node in range(1, size)]
    relations = "-" + "".join(draw(st.sampled_from(RELATIONS)) for _ in range(size - 1))
    return Tree(labels, parents, relations)


def kind_of(label: str) -> str:
    """Return the type by which renamed symbols agree."""
    return "V" if label.startswith(("V!", "?")) else "N" if label.startswith("N!") else label


def slow_tokens(tree: Tree) -> Counter:
    """Return the tokens of a tree by their definition, node after node."""
    labels, found = tree.labels, Counter()
    above: list[list[int]] = []  # from the node itself up to the root
    for node, parent in enumerate(tree.parents):
        above.append([node] + (above[parent] if parent >= 0 else []))

    def path(top: int, node: int) -> str:
        line = above[node][: above[node].index(top)]
        return "".join(tree.relations[step] for step in reversed(line))

    wild = [label.startswith("?") for label in labels]
    for node, label in enumerate(labels):
        if not wild[node]:
            found["symbol", label] += 1
        if len(above[node]) > 1 and not (wild[node] or wild[tree.parents[node]]):
            upper = tree.parents[node]
            start = next(step for step in above[upper] if labels[step] in RELATION_SYMBOLS or step == 0)
            place = path(start, upper)
            if len(place) < 8:
                found["located pair", labels[upper], label, tree.relations[node], place] += 1
    for label in set(labels):
        if kind_of(label) in ("V", "N"):
            nodes = [node for node in range(len(labels)) if labels[node] == label and len(above[node]) <= 41]
            for one, other in combinations(nodes[:8], 2):
                top = next(step for step in above[one] if step in above[other])
                found["typed duplicate", kind_of(label), path(top, one), path(top, other)] += 1
    if not any(wild):
        names: dict[str, str] = {}
        renamed = [names.setdefault(label, f"V!{len(names)}") if label[:2] == "V!" else label for label in labels]
        found["whole", tuple(renamed), tuple(tree.parents), tree.relations] += 1
    return found


def by_tree(trees: list[Tree]) -> list[Counter]:
    """Return the keys of each tree with how often it has them."""
    found = layout_tokens(build_forest(trees))
    return [Counter(found.keys[found.trees == number].tolist()) for number in range(len(trees))]


def profiles(found: list[Counter], kind: Callable) -> Counter:
    """Return how many tokens there are of each kind and of each row of counts over the trees."""
    return Counter((kind(token), *(own[token] for own in found)) for token in set().union(*found))


@settings(max_examples=150, deadline=None)
@given(st.lists(some_trees(), min_size=1, max_size=4))
def test_keys_stand_for_the_tokens_of_the_definition(trees: list[Tree]):
    """One key for each token: every tree has as many of each, and they meet in other trees as the tokens do."""
    keys = profiles(by_tree(trees), lambda key: KINDS[key & int(KIND_MASK)])
    assert keys == profiles([slow_tokens(tree) for tree in trees], lambda token: token[0])


def test_tokens_of_a_square_by_hand():
    """x² has two symbols, one pair, and itself."""
    found = Counter(
        KINDS[key] for key in (layout_tokens(build_forest([Tree(["V!x", "N!2"], [-1, 0], "-a")])).keys & KIND_MASK)
    )
    assert found == {"symbol": 2, "located pair": 1, "whole": 1}


def test_repetitions_are_counted_up_to_the_eighth_and_to_depth_forty():
    """28 pairs of nine, and no pair with a node that lies deeper."""

    def duplicates(tree: Tree) -> int:
        return int((layout_tokens(build_forest([tree])).keys & KIND_MASK == KINDS.index("typed duplicate")).sum())

    line = lambda labels: Tree(labels, list(range(-1, len(labels) - 1)), "-" + "n" * (len(labels) - 1))  # noqa: E731
    assert duplicates(line(["V!x"] * 9)) == 28
    assert duplicates(line(["V!x", *["+"] * 39, "V!x"])) == 1
    assert duplicates(line(["V!x", *["+"] * 40, "V!x"])) == 0


def test_the_font_of_a_letter_does_not_matter_and_its_type_does():
    """A double-struck R is an R, but a text is no variable."""
    labels = LabelTable()
    numbers = [labels[name] for name in ("V!ℝ", "V!R", "T!R", "V!𝐑")]
    hashes = [labels.hashes[number] for number in numbers]
    assert hashes[0] == hashes[1] == hashes[3] != hashes[2]


def test_a_wildcard_asks_for_nothing_of_its_own():
    """Of ?x² only the symbol 2 is left, and the operation in which any variable may stand."""
    wild, plain = by_tree([Tree(["?x", "N!2"], [-1, 0], "-a"), Tree(["V!y", "N!2"], [-1, 0], "-a")])
    assert wild < plain
    assert Counter(KINDS[key & int(KIND_MASK)] for key in wild) == {"symbol": 1}
    sums = [Tree(["U!plus", "O!SUP", name, "N!2"], [-1, 0, 1, 1], "-001") for name in ("?x", "V!y")]
    keys = operation_tokens(build_forest(sums))
    wild, plain = (set(keys.keys[keys.trees == number].tolist()) for number in (0, 1))
    assert wild < plain and {KINDS[key & int(KIND_MASK)] for key in wild} == {"operation"}


def test_a_repeated_wildcard_asks_for_a_repeated_symbol():
    """?x + ?x shares its typed duplicate with y + y, and not with y + z."""
    line = [-1, 0, 1]
    wild, same, different = by_tree(
        [Tree([one, "+", other], line, "-nn") for one, other in (("?x", "?x"), ("V!y", "V!y"), ("V!y", "V!z"))]
    )
    kinds = [{KINDS[key & int(KIND_MASK)] for key in wild & other} for other in (same, different)]
    assert "typed duplicate" in kinds[0] and "typed duplicate" not in kinds[1]


def test_operations_know_the_order_of_operands_where_it_matters():
    """a + 2 is 2 + a, but a / 2 is not 2 / a."""

    def keys(operation: str, one: str, other: str) -> set[int]:
        return set(
            operation_tokens(build_forest([Tree(["U!eq", operation, one, other], [-1, 0, 1, 1], "-001")])).keys.tolist()
        )

    assert keys("U!plus", "V!a", "N!2") == keys("U!plus", "N!2", "V!a")
    assert not keys("O!divide", "V!a", "N!2") & keys("O!divide", "N!2", "V!a")


def test_keys_are_the_same_in_every_process():
    """An index outlives the process, whose own hashes of strings change each time."""
    code = (
        "from mirblab.formula.tokens import build_forest, layout_tokens\n"
        "from mirblab.formula.tree import Tree\n"
        "print(layout_tokens(build_forest([Tree(['V!x', 'N!2', '=', 'V!x'], [-1, 0, 0, 2], '-ann')])).keys.tolist())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    here = layout_tokens(build_forest([Tree(["V!x", "N!2", "=", "V!x"], [-1, 0, 0, 2], "-ann")])).keys
    assert here.tolist() == json.loads(found)
    assert int(here[0]) == 4403585296074958800


def test_counts_are_by_key_and_formula_and_capped():
    """Three hundred of a symbol count as 255, and formulas ascend within a key."""
    trees = [Tree(["+"] * 300, [-1] + [0] * 299, "-" + "n" * 299), Tree(["+"], [-1], "-")]
    keys, documents, rows, counts = count_tokens(layout_tokens(build_forest(trees)))
    assert (np.diff(keys.astype(object)) > 0).all() and documents.sum() == len(rows)
    plus = np.flatnonzero((keys & KIND_MASK) == 0)
    at = int(documents[: plus[0]].sum())
    assert rows[at : at + 2].tolist() == [0, 1] and counts[at : at + 2].tolist() == [255, 1]


def test_empty_trees_have_no_tokens():
    """A formula of which nothing is left is no error."""
    empty = Tree([], [], "")
    found = formula_tokens([empty, empty])
    assert len(found.keys) == 0
    assert [len(part) for part in count_tokens(found)] == [0, 0, 0, 0]
