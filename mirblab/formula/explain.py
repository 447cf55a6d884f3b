"""explain: why a formula was returned: the tokens it shares with the query, where they are, and which names changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from mirblab.formula import scoring
from mirblab.formula.index import Index
from mirblab.formula.operators import operator_tree
from mirblab.formula.scoring import DEFAULT_B
from mirblab.formula.tokens import (
    KIND_MASK,
    KINDS,
    MAX_COUNT,
    RELATION_SYMBOLS,
    formula_tokens,
    layout_trees,
    normalise_label,
)
from mirblab.formula.tree import Tree, label_type, node_paths, shown_label

# Which kinds are of the operator tree, which cover all nodes from the first to the last, and what each says of names.
_OF_OPERATIONS, _COVERING = ("operation", "subexpression"), ("whole", "subexpression")
_COLUMNS = ["kind", "token", "weight", "in_query", "in_document", "shared", "contribution"]
_RENAMED = ("typed duplicate", "whole", "operation", "subexpression")


@dataclass(frozen=True)
class Explanation:
    """Why a document's formula has its score for a query.

    `score` is that of `Index.search`, `found` the share of the query's weight that the document has, `used` the share
    of the document's weight that is in the query. `tokens` are the shared ones, the heaviest first: kind, token,
    weight, in_query, in_document, shared (the smaller count), contribution (weight times shared; they sum to found
    times the query's length). `query_nodes` and `document_nodes` give for each node of the trees `query` and `document`
    the share of the weight around it that agrees, 0 to 1; `renamed` the names that changed, query first.
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

    The index gives the weights of tokens; *document* need not be in it. Where one formula has a token more often than
    the other, each occurrence is shared in part. `read_formula` reads a formula once for many explanations.

    >>> index = Index.build([("a", "x^2+x"), ("b", "y^2+y"), ("c", "z")])
    >>> why = explain_match("x^2+x", "y^2+y", index)
    >>> why.renamed, round(why.score, 3) == round(float(index.search(["x^2+x"], 2)[2][1]), 3)
    ([('x', 'y')], True)
    >>> why.tokens.token.tolist()[:6]
    ['+', '2', 'plus(SUP(N))', 'plus(SUP(V))', 'SUP(V, N)', 'plus(SUP(V, N), V)']
    """
    sides = (read_formula(query, index, weights), read_formula(document, index, weights))
    counts = [dict(zip(side.asked.keys.tolist(), side.asked.counts.tolist(), strict=True)) for side in sides]
    rows = []
    shares: dict[int, int] = {}
    votes: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (key, count), weight in zip(counts[0].items(), sides[0].asked.weights, strict=True):
        if key not in counts[1] or weight == 0:
            continue
        shared = shares[key] = min(count, counts[1][key])
        kind = KINDS[key & int(KIND_MASK)]
        rows.append((kind, _token_text(sides[0], kind, key), weight, count, counts[1][key], shared, weight * shared))
        if kind in _RENAMED:
            _vote_for_renaming(votes, kind, sides, key, weight * shared)
    rows.sort(key=lambda row: (-row[-1], row[0], row[1]))
    total = float(sum(row[-1] for row in rows))
    length, other_length = (side.asked.length for side in sides)
    scores = scoring.score_formulas(np.array([total]), length, np.array([other_length]), b) if total else [0.0]
    return Explanation(
        score=float(scores[0]),
        found=total / length if length else 0.0,
        used=total / other_length if other_length else 0.0,
        tokens=pd.DataFrame(rows, columns=_COLUMNS),
        query=sides[0].layout,
        document=sides[1].layout,
        query_nodes=_share_by_node(sides[0], shares),
        document_nodes=_share_by_node(sides[1], shares),
        renamed=_choose_renaming(votes),
    )


def _token_text(side: ExplainedFormula, name: str, key: int) -> str:
    """Return a token as shown to a reader; `V` stands for any variable, and relations stand over an arrow."""
    tree = side.operations if name in _OF_OPERATIONS else side.layout
    first, second = side.places[key][0]
    if name == "operation":
        line = [tree.parents[tree.parents[second]], tree.parents[second], second]
        return "(".join(_type(tree.labels[node]) for node in line) + "))"
    if name == "subexpression":
        return _nested_text(tree, first, second)
    if name == "whole":
        return " ".join(map(_type, tree.labels))
    if name == "symbol":
        return _shown(tree.labels[first])
    way = node_paths(tree)
    if name == "typed duplicate":
        top = len(way[_common_ancestor(tree, first, second)])
        label = _type(tree.labels[first])
        return f"{label} … {label}: {way[first][top:] or '·'}, {way[second][top:] or '·'}"
    pair = f"{_shown(tree.labels[first])} →{tree.relations[second]} {_shown(tree.labels[second])}"
    return pair + _position(tree, first)


def _position(tree: Tree, node: int) -> str:
    """Return the position of a located pair as `layout_tokens` counts it; a pair below a relation symbol has none."""
    steps = ""
    while tree.parents[node] >= 0 and normalise_label(tree.labels[node]) not in RELATION_SYMBOLS:
        steps, node = tree.relations[node] + steps, tree.parents[node]
    is_relation = normalise_label(tree.labels[node]) in RELATION_SYMBOLS
    return f" at {steps}" if steps else "" if is_relation else " at the root"


def _shown(label: str) -> str:
    """Return a label as `shown_label` does, but a fence around one thing without its size."""
    return shown_label(label).removesuffix("1x1") or "·" if label.startswith("M!") else shown_label(label)


def _type(label: str) -> str:
    return "V" if _is_name(label) else _shown(label_type(label))


def _is_name(label: str) -> bool:
    is_variable = label.startswith("V!") and label[2:3] != "′"
    return is_variable or (len(label) > 1 and label[0] == "?")


def _nested_text(tree: Tree, first: int, last: int) -> str:
    operands: dict[int, list[str]] = defaultdict(list)
    for node in range(last, first - 1, -1):
        own = f"({', '.join(reversed(operands[node]))})" if operands[node] else ""
        operands[tree.parents[node] if node > first else -1].append(_type(tree.labels[node]) + own)
    return operands[-1][0]


def _common_ancestor(tree: Tree, first: int, second: int) -> int:
    while first != second:
        first, second = min(first, second), tree.parents[max(first, second)]
    return first


def _vote_for_renaming(
    votes: dict[tuple[str, str], float],
    kind: str,
    sides: tuple[ExplainedFormula, ExplainedFormula],
    key: int,
    weight: float,
) -> None:
    """Add what a shared token says about which name of the query stands for which of the document."""
    pairs = list(product(sides[0].places[key], sides[1].places[key]))
    labels, others = ((side.operations if kind in _OF_OPERATIONS else side.layout).labels for side in sides)
    for mine, theirs in pairs:
        for node, other in set(zip(_covered_nodes(kind, mine), _covered_nodes(kind, theirs), strict=False)):
            if _is_name(labels[node]) and _is_name(others[other]):
                votes[labels[node], others[other]] += weight / len(pairs)


def _covered_nodes(name: str, pair: tuple[int, int]) -> tuple[int, ...]:
    return tuple(range(pair[0], pair[1] + 1)) if name in _COVERING else pair


def _share_by_node(side: ExplainedFormula, shares: dict[int, int]) -> dict[int, float]:
    """Return for each node of the layout the share of the weight of the tokens around it that is shared."""
    weight, agreed = np.zeros(len(side.layout)), np.zeros(len(side.layout))
    spans = side.operations.spans
    by_span = {span: node for node, span in enumerate(side.layout.spans) if span != (0, 0)}
    for key, each in zip(side.asked.keys.tolist(), side.asked.weights.tolist(), strict=True):
        name = KINDS[key & int(KIND_MASK)]
        occurrences = side.places[key]
        part = min(1.0, shares.get(key, 0) / min(len(occurrences), MAX_COUNT))
        for pair in occurrences:
            nodes = set(_covered_nodes(name, pair))
            if name in _OF_OPERATIONS:
                nodes = {by_span[spans[node]] for node in nodes if spans and spans[node] in by_span}
            for node in nodes:
                weight[node] += each
                agreed[node] += each * part
    return {node: float(agreed[node] / weight[node]) if weight[node] else 0.0 for node in range(len(side.layout))}


def _choose_renaming(votes: dict[tuple[str, str], float]) -> list[tuple[str, str]]:
    """Return the names that differ, one to one, the best supported first; another font is no other name."""
    renamed: dict[str, str] = {}
    for (mine, theirs), _ in sorted(votes.items(), key=lambda vote: (-vote[1], vote[0])):
        if mine not in renamed and theirs not in renamed.values():
            renamed[mine] = theirs
    changed = [pair for pair in renamed.items() if normalise_label(pair[0]) != normalise_label(pair[1])]
    return [(shown_label(mine), shown_label(theirs)) for mine, theirs in changed]


def read_formula(
    formula: str | Tree | ExplainedFormula, index: Index, weights: Mapping[str, float] | None = None
) -> ExplainedFormula:
    """Return a formula read for `explain_match`: its trees, its tokens' positions, and their weights in *index*."""
    if isinstance(formula, ExplainedFormula):
        return formula
    layout = layout_trees([formula])[0]
    found, places = formula_tokens([layout]), defaultdict(list)
    for key, first, second in zip(found.keys.tolist(), found.firsts.tolist(), found.seconds.tolist(), strict=True):
        places[key].append((first, second))
    return ExplainedFormula(layout, operator_tree(layout), places, index.weighed(found, 1, weights)[0])
