"""Tangent's strings: read, written, and refused with the place of the fault."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from itertools import permutations, product
from pathlib import Path

import pytest

from mirblab.core.errors import MirblabError
from mirblab.formula.tree import Tree, equal_up_to_names, equal_up_to_order, read_tangent, write_tangent


def test_a_layout_tree_is_read_in_reading_order():
    """The string has the next symbol first; in the tree scripts come before it."""
    tree = read_tangent("[V!x[=[N!4]],a[N!2],b[V!i]]")
    assert tree.labels == ["V!x", "V!i", "N!2", "=", "N!4"]
    assert tree.parents == [-1, 0, 0, 0, 3]
    assert tree.relations == "-bann"


def test_the_operands_of_an_operator_tree_keep_their_order():
    """Beyond nine they are called A to Z and a to z; n and a are operands there."""
    operands = "".join(f",{name}[N!{place}]" for place, name in enumerate("0123456789ABC"))
    tree = read_tangent(f"[U!plus{operands}]")
    assert tree.labels == ["U!plus", *(f"N!{place}" for place in range(13))]
    assert write_tangent(tree) == f"[U!plus{operands}]"
    many = Tree(["U!plus"] + ["V!x"] * 62, [-1] + [0] * 62, "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "".join(
        chr(code) for code in range(ord("a"), ord("z") + 1)))  # fmt: skip
    assert read_tangent(write_tangent(many)) == many


@pytest.mark.parametrize(
    "label", [",", "[", "]", "?", "M![]1x2", "T!a,b", "T!&comma;", "&amp;comma;", "", "V!&", "<", "!"]
)
def test_every_label_survives(label: str):
    """Brackets and commas become entities, and what looks like an entity stays what it is."""
    tree = Tree([label, "V!x"], [-1, 0], "-n")
    assert read_tangent(write_tangent(tree)) == tree


def test_entities_are_characters():
    """Those that Tangent writes, and the two of HTML that slipped through."""
    assert read_tangent("[M!&lsqb;&rsqb;1x1,w[&comma;[&quest;[&gt;]]]]").labels == ["M![]1x1", ",", "?", ">"]


def test_quotes_of_a_csv_file_are_taken_off():
    r"""24 judged formulas of ARQMath are \"[…V!\"\"…]\"."""
    assert read_tangent('"[V!y[V!""]]"').labels == read_tangent(r"\"[V!y[V!\"\"]]\"").labels == ["V!y", 'V!"']


def test_an_empty_string_is_an_empty_tree():
    """And back."""
    assert len(read_tangent(" ")) == 0 and write_tangent(read_tangent("")) == ""


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("V!x", 1), ("[V!x]]", 6), ("[V!x][V!y]", 6), ("[V!x,a]", 5), ("[V!x,ab[V!y]]", 5), ("[V!x]y", 6),
        (",a[V!x]", 1), ("]", 1), ("[V!x[", 5), ("[V!x,a[N!2]", 11),
    ],
)  # fmt: skip
def test_a_malformed_string_is_refused_with_the_place(text: str, place: int):
    """Counted from 1; what is not closed is missing at the end."""
    with pytest.raises(MirblabError, match=rf"at character {place}, .*; found "):
        read_tangent(text)


def test_a_deep_tree_needs_no_stack():
    """Fifty thousand symbols on one line."""
    text = "[V!x" * 50_000 + "]" * 50_000
    assert write_tangent(read_tangent(text)) == text


def test_every_string_of_the_collections_comes_back(shared_file: Callable[[str], Path]):
    """A third of the 21,000 real ones; nearly all even letter by letter."""
    texts = []
    for name in ("arqmath-2020-task2/corpus.jsonl.gz", "arqmath-2020-task2/queries.jsonl", "ntcir12-wfb/corpus.jsonl"):
        path = shared_file(f"data/{name}")
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            texts += [row[key] for row in map(json.loads, lines) for key in ("slt", "opt") if row.get(key)]
    texts = texts[::3]
    trees = [read_tangent(text) for text in texts]
    written = [write_tangent(tree) for tree in trees]
    assert len(texts) > 7_000
    assert all(read_tangent(text) == tree for text, tree in zip(written, trees, strict=True))
    assert sum(text == found for text, found in zip(texts, written, strict=True)) >= len(texts) - 30


def every_order(tree: Tree, node: int = 0) -> set[str]:
    """Return the Tangent strings of a small operator tree in all orders that its meaning allows."""
    children = tree.children(node)
    orders = permutations(children) if tree.labels[node].startswith("U!") else [children]
    below = [product(*(every_order(tree, child) for child in order)) for order in orders]
    operands = [[f",{place}{text}" for place, text in enumerate(texts)] for part in below for texts in part]
    return {f"[{tree.labels[node]}{''.join(part)}]" for part in operands}


def random_tree(coin: random.Random, depth: int = 3) -> str:
    if depth == 0 or coin.random() < 0.3:
        return f"[V!{coin.choice('xy')}]"
    operands = "".join(f",{place}{random_tree(coin, depth - 1)}" for place in range(coin.choice([1, 2])))
    return f"[{coin.choice(['U!times', 'O!minus'])}{operands}]"


def test_trees_are_equal_up_to_the_order_of_operands_when_some_order_makes_them_equal():
    """All orders of small trees are tried."""
    coin = random.Random(0)
    trees = [read_tangent(random_tree(coin, depth=2)) for _ in range(120)]
    orders = [every_order(tree) for tree in trees]
    equal = [(a, b) for a, b in product(range(120), repeat=2) if orders[a] & orders[b]]
    assert equal == [(a, b) for a, b in product(range(120), repeat=2) if equal_up_to_order(trees[a], trees[b])]
    assert any(trees[a] != trees[b] for a, b in equal)


def test_trees_are_equal_up_to_names_when_variables_are_renamed_one_to_one():
    """All ways to rename the variables of small trees are tried."""
    coin = random.Random(1)
    texts = [random_tree(coin, depth=2) for _ in range(60)]
    renamed = [{text, text.replace("V!x", "V!z").replace("V!y", "V!x").replace("V!z", "V!y")} for text in texts]
    trees = list(map(read_tangent, texts))
    equal = [(a, b) for a, b in product(range(60), repeat=2) if renamed[a] & renamed[b]]
    assert equal == [(a, b) for a, b in product(range(60), repeat=2) if equal_up_to_names(trees[a], trees[b])]
    assert any(texts[a] != texts[b] for a, b in equal)
    assert not equal_up_to_names(Tree(["N!1"], [-1], "-"), Tree(["N!2"], [-1], "-"))
