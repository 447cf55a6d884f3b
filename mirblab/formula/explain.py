"""explain: why a formula was found: the tokens it shares with the query, where they are, and which names changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mirblab.formula import scoring
from mirblab.formula.index import Index
from mirblab.formula.operators import operator_tree
from mirblab.formula.scoring import DEFAULT_B
from mirblab.formula.tokens import KIND_MASK, KINDS, MAX_COUNT
from mirblab.formula.tree import Tree, label_type, node_paths, shown_label
from mirblab.formula.workers import formula_tokens, layout_trees

# Which kinds are of the operator tree, which cover all nodes from the first to the last, and what each says of names.
_OF_OPERATIONS, _COVERING = ("operation", "subexpression"), ("whole", "subexpression")
_RENAMED = ("typed duplicate", "whole", "operation", "subexpression")


@dataclass(frozen=True)
class Explanation:
    """Why a document's formula has its score for a query.

    `score` is that of `Index.search`, `found` the share of the query's weight that the document has, `used` the share
    of the document's weight that is in the query. `tokens` are the shared ones, the heaviest first: kind, token,
    weight, in_query, in_document, shared (the smaller count), contribution (weight times shared; they sum to found
    times the query's length). `query_nodes` and `document_nodes` give for each node of the trees `query` and
    `document` the share of the weight around it that agrees, 0 to 1; `renamed` the names that changed, query first.
    """

    score: float
    found: float
    used: float
    tokens: pd.DataFrame
    query: Tree
    document: Tree
    query_nodes: dict[int, float]
    document_nodes: dict[int, float]
    renamed: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ExplainedFormula:
    """One formula: its layout, its operations, the pairs of nodes where each key occurs, and the weights."""

    layout: Tree
    operations: Tree
    places: dict[int, list[tuple[int, int]]]
    asked: scoring.WeightedQuery


def explain_match(
    query: str | Tree | ExplainedFormula,
    document: str | Tree | ExplainedFormula,
    index: Index,
    *,
    weights: Mapping[str, float] | None = None,
    b: float = DEFAULT_B,
) -> Explanation:
    """Return why *document* scores what it does for *query* in a search of *index*; both are LaTeX or layout trees.

    The index gives the weights of tokens; *document* need not be in it. Of a token that one formula has more often
    than the other, each occurrence counts as shared in part. A formula that is explained often is read once, by
    `read_formula`.

    >>> index = Index.build([("a", "x^2+x"), ("b", "y^2+y"), ("c", "z")])
    >>> why = explain_match("x^2+x", "y^2+y", index)
    >>> why.renamed, round(why.score, 3) == round(float(index.search(["x^2+x"], 2)[2][1]), 3)
    ([('x', 'y')], True)
    >>> why.tokens.token.tolist()[:6]
    ['+', '2', 'plus(SUP(N))', 'plus(SUP(V))', 'SUP(V, N)', 'plus(SUP(V, N), V)']
    """
    one, other = (
        own if isinstance(own, ExplainedFormula) else read_formula(own, index, weights) for own in (query, document)
    )
    often = dict(zip(other.asked.keys.tolist(), other.asked.counts.tolist(), strict=True))
    rows, votes, shares = [], defaultdict(float), {}
    for key, count, weight in zip(one.asked.keys.tolist(), one.asked.counts.tolist(), one.asked.weights, strict=True):
        if key not in often or weight == 0:
            continue
        shared = min(count, often[key])
        shares[key] = shared
        name = KINDS[key & int(KIND_MASK)]
        rows.append((name, _token_text(one, name, key), weight, count, often[key], shared, weight * shared))
        if name in _RENAMED:
            _vote_for_renaming(votes, name, one, other, key, weight * shared)
    names = ["kind", "token", "weight", "in_query", "in_document", "shared", "contribution"]
    rows.sort(key=lambda row: (-row[-1], row[0], row[1]))
    table = pd.DataFrame(rows, columns=names)
    total = float(sum(row[-1] for row in rows))
    score = (
        scoring.score_formulas(np.array([total]), one.asked.length, np.array([other.asked.length]), b)
        if total
        else [0.0]
    )
    parts = (total / own.asked.length if own.asked.length else 0.0 for own in (one, other))
    nodes = (_share_by_node(own, shares) for own in (one, other))
    return Explanation(float(score[0]), *parts, table, one.layout, other.layout, *nodes, _choose_renaming(votes))


def read_formula(formula: str | Tree, index: Index, weights: Mapping[str, float] | None = None) -> ExplainedFormula:
    """Return a formula read for `explain`: its trees, where its tokens are, and what they weigh in *index*."""
    layout = layout_trees([formula])[0]
    found, places = formula_tokens([layout]), defaultdict(list)
    for key, first, second in zip(found.keys.tolist(), found.firsts.tolist(), found.seconds.tolist(), strict=True):
        places[key].append((first, second))
    return ExplainedFormula(layout, operator_tree(layout), places, index.weighed(found, 1, weights)[0])


def _token_text(side: ExplainedFormula, name: str, key: int) -> str:
    """Return a token as a reader sees it; `V` stands for any variable, and relations stand over an arrow."""
    tree = side.operations if name in _OF_OPERATIONS else side.layout
    first, second = side.places[key][0]
    if name == "operation":
        line = [tree.parents[tree.parents[second]], tree.parents[second], second]
        return "(".join(_type(tree.labels[node]) for node in line) + "))"
    if name == "subexpression":
        return _nested_text(tree, first, second)
    if name == "whole":
        return " ".join(map(_type, tree.labels))
    way = node_paths(tree)
    if name == "symbol":
        return shown_label(tree.labels[first])
    if name == "typed duplicate":
        top = len(way[_common_ancestor(tree, first, second)])
        label = _type(tree.labels[first])
        return f"{label} … {label}: {way[first][top:] or '·'}, {way[second][top:] or '·'}"
    return f"{shown_label(tree.labels[first])} →{tree.relations[second]} {shown_label(tree.labels[second])}"


def _nested_text(tree: Tree, first: int, last: int) -> str:
    """Return a subtree as operations with their operands in parentheses."""
    operands: dict[int, list[str]] = defaultdict(list)
    for node in range(last, first - 1, -1):
        own = f"({', '.join(reversed(operands[node]))})" if operands[node] else ""
        operands[tree.parents[node] if node > first else -1].append(_type(tree.labels[node]) + own)
    return operands[-1][0]


def _is_name(label: str) -> bool:
    """Return whether a label is a variable or a wildcard."""
    return label.startswith("V!") or (len(label) > 1 and label[0] == "?")


def _type(label: str) -> str:
    return "V" if _is_name(label) else shown_label(label_type(label))


def _common_ancestor(tree: Tree, first: int, second: int) -> int:
    while first != second:
        first, second = min(first, second), tree.parents[max(first, second)]
    return first


def _vote_for_renaming(
    votes: dict, name: str, one: ExplainedFormula, other: ExplainedFormula, key: int, weight: float
) -> None:
    """Add what a shared token says about which name of the query stands for which of the document."""
    pairs = [(mine, theirs) for mine in one.places[key] for theirs in other.places[key]]
    labels = [(side.operations if name in _OF_OPERATIONS else side.layout).labels for side in (one, other)]
    for mine, theirs in pairs:
        for node, its in set(zip(_covered_nodes(name, mine), _covered_nodes(name, theirs), strict=False)):
            names = labels[0][node], labels[1][its]
            if _is_name(names[0]) and _is_name(names[1]):
                votes[names] += weight / len(pairs)


def _covered_nodes(name: str, pair: tuple[int, int]) -> tuple[int, ...]:
    """Return the nodes that a token of this kind is about."""
    return tuple(range(pair[0], pair[1] + 1)) if name in _COVERING else pair


def _choose_renaming(votes: dict[tuple[str, str], float]) -> list[tuple[str, str]]:
    """Return the names that differ, one to one, the best supported first; a name that is kept is not renamed."""
    taken: tuple[set, set] = (set(), set())
    found = []
    for (mine, theirs), _ in sorted(votes.items(), key=lambda vote: (-vote[1], vote[0])):
        if mine not in taken[0] and theirs not in taken[1]:
            taken[0].add(mine)
            taken[1].add(theirs)
            if mine != theirs:
                found.append((shown_label(mine), shown_label(theirs)))
    return found


def _share_by_node(side: ExplainedFormula, shares: dict[int, int]) -> dict[int, float]:
    """Return for each node of the layout the share of the weight of the tokens around it that is shared."""
    weight, agreed = np.zeros(len(side.layout)), np.zeros(len(side.layout))
    by_span = {span: node for node, span in enumerate(side.layout.spans) if span != (0, 0)}
    for key, each in zip(side.asked.keys.tolist(), side.asked.weights.tolist(), strict=True):
        name = KINDS[key & int(KIND_MASK)]
        occurrences = side.places[key]
        part = min(1.0, shares.get(key, 0) / min(len(occurrences), MAX_COUNT))
        for pair in occurrences:
            spans = side.operations.spans
            found = _covered_nodes(name, pair)
            if name in _OF_OPERATIONS:
                found = [by_span.get(spans[node]) for node in found if spans]
            for node in {node for node in found if node is not None}:
                weight[node] += each
                agreed[node] += each * part
    return {node: float(agreed[node] / weight[node]) if weight[node] else 0.0 for node in range(len(side.layout))}
