"""alignment: which leaves and nodes of two formulas a match of their subtrees pairs."""

from __future__ import annotations

from dataclasses import dataclass

from mirblab.formula.sectors import Formula


@dataclass(frozen=True, slots=True)
class Match:
    """What a query and a document have in common, in nodes of their operator trees (`Tree` positions).

    `leaves` are pairs of aligned leaves (query, document), `query_nodes` and `doc_nodes` all matched nodes, leaves and
    what stands above them up to the roots of the matched subtrees; `symbols` the symbols that stand for each other.
    `structure` is the weight of the common paths, `symbol` the share of symbols that agree, 0 to 1.
    """

    score: float
    structure: float
    symbol: float
    leaves: list[tuple[int, int]]
    query_nodes: list[int]
    doc_nodes: list[int]
    symbols: list[tuple[str, str]]


def aligned(
    query: Formula, query_root: int, found: Formula, doc_root: int, symbols: list[tuple[str, str]]
) -> list[tuple[int, int]]:
    """Return pairs of leaves on equal paths, one to one: equal symbols first, then assigned ones, then any."""
    left, right = _ends(query, query_root), _ends(found, doc_root)
    ours, theirs = query.paths.symbols, found.paths.symbols
    assigned_to = dict(symbols)
    pairs: list[tuple[int, int]] = []
    for path in left.keys() & right.keys():
        ranked = sorted(
            (2 - (assigned_to.get(ours[own]) == theirs[other]) - (ours[own] == theirs[other]), own, other)
            for own in left[path]
            for other in right[path]
        )
        taken: set[tuple[str, int]] = set()
        for _, own, other in ranked:
            if taken.isdisjoint({("ours", own), ("theirs", other)}):
                taken |= {("ours", own), ("theirs", other)}
                pairs.append((own, other))
    return sorted(pairs)


def _ends(own: Formula, root: int) -> dict[int, list[int]]:
    """Return the leaves below an inner node, by their path to it."""
    found: dict[int, list[int]] = {}
    for leaf, (steps, numbers) in enumerate(zip(own.paths.steps, own.numbers, strict=True)):
        for step, number in zip(steps, numbers, strict=True):
            if step[1] == root:
                found.setdefault(number, []).append(leaf)
    return found


def covered(own: Formula, root: int, leaves: list[int]) -> list[int]:
    """Return the nodes of the operator tree on the way from *leaves* up to an inner node, ascending."""
    nodes = {own.paths.leaves[leaf] for leaf in leaves}
    for leaf in leaves:
        for step in own.paths.steps[leaf]:
            nodes.add(own.paths.roots[step[1]])
            if step[1] == root:
                break
    return sorted(nodes)
