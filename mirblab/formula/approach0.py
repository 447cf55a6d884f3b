"""approach0: Approach0's score of formulas by their largest common subtree, for a shortlist."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mirblab import runs
from mirblab.collection import Collection
from mirblab.errors import MirblabError
from mirblab.formula.alignment import Match, aligned, covered
from mirblab.formula.operators import operator_tree
from mirblab.formula.sectors import Formula, PathBook, Sector, assigned, formula, frequencies
from mirblab.formula.texts import Owned, Reader
from mirblab.formula.tree import Tree
from mirblab.progress import progress

SYMBOL_WEIGHTS = (1.00, 0.94, 0.90)
LENGTH_PENALTY = 0.20


class Scorer:
    """Approach0's scoring (Zhong and Zanibbi, ECIR 2019; Zhong et al., ECIR 2020) over the formulas of a collection.

    A formula is its leaf-root paths, cut off at every node above; the structure score of two subtrees sums min(width,
    width) · ipf over the paths that they share, ipf = ln(N / pf) from all *formulas*; the best pair of subtrees
    counts. σ credits its symbols (`assigned`); the score is structure / (1 + (1 - σ)²), less a penalty for length.
    *formulas* are LaTeX, or trees (layout or operator). *symbol_weights*: same symbol and operators, same symbol,
    neither; None: symbols do not count. *eta*: weight of the length penalty. *use_ipf*: False gives every path 1.
    At most the first 64 leaves of a formula count. Every formula is parsed once, when the scorer is made.

    >>> scorer = Scorer([r"x^2 + y^2", r"x + y", r"a^2 + b^2 = c^2"])
    >>> scorer.score(r"y^2 + x^2", [0, 1, 2]).argsort().tolist()
    [1, 2, 0]
    """

    def __init__(
        self,
        formulas: Sequence[str | Tree],
        *,
        symbol_weights: tuple[float, float, float] | None = SYMBOL_WEIGHTS,
        eta: float = LENGTH_PENALTY,
        use_ipf: bool = True,
    ) -> None:
        self.symbol_weights = symbol_weights
        self.eta = eta
        self._book = PathBook()
        self._formulas: list[Formula] = []
        with progress(len(formulas), "leaf-root paths", "formula") as bar:
            for own in formulas:
                self._formulas.append(formula(_operators(own), self._book))
                bar.update(1)
        counts = frequencies(self._formulas, len(self._book))
        total = counts.sum()
        self._ipf = np.log(total / np.maximum(counts, 1)) if use_ipf else np.ones(len(counts))

    def __len__(self) -> int:
        return len(self._formulas)

    def score(self, query: str | Tree, documents: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the score of each document, float32, 0 and up; *documents* are positions in the collection."""
        own = formula(_operators(query), self._book)
        places = np.asarray(documents, np.int64)
        if places.size and (places.min() < 0 or places.max() >= len(self)):
            raise MirblabError(f"a scorer of {len(self):,} formulas has no positions {places.min()} to {places.max()}")
        structure, query_root, doc_root = self._structure(own, [self._formulas[place] for place in places])
        scores = np.zeros(len(places), np.float32)
        sectors: dict[int, Sector] = {}
        for at in np.flatnonzero(structure):
            root = int(query_root[at])
            if root not in sectors:
                sectors[root] = own.sector(root)
            found = self._formulas[places[at]]
            scores[at] = self._combined(structure[at], own, sectors[root], found, int(doc_root[at]))[0]
        return scores

    def explain(self, query: str | Tree, document: int) -> Match:
        """Return what *query* and the document at this position have in common, and what it scores."""
        own, found = formula(_operators(query), self._book), self._formulas[document]
        structure, query_root, doc_root = self._structure(own, [found])
        if not structure[0]:
            return Match(0.0, 0.0, 0.0, [], [], [], [])
        sector = own.sector(int(query_root[0]))
        score, share, pairs = self._combined(structure[0], own, sector, found, int(doc_root[0]))
        leaves = aligned(own, int(query_root[0]), found, int(doc_root[0]), pairs)
        return Match(
            score=score,
            structure=float(structure[0]),
            symbol=share,
            leaves=[(own.paths.leaves[left], found.paths.leaves[right]) for left, right in leaves],
            query_nodes=covered(own, int(query_root[0]), [left for left, _ in leaves]),
            doc_nodes=covered(found, int(doc_root[0]), [right for _, right in leaves]),
            symbols=pairs,
        )

    def _structure(self, query: Formula, found: list[Formula]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the weight of the best pair of subtrees for each formula, and the roots of that pair."""
        n_roots = len(query.paths.roots)
        sizes = np.array([len(own.paths.roots) for own in found], np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        best = np.zeros((3, len(found)))
        if not n_roots or not starts[-1]:
            return best[0], best[1], best[2]
        known = np.full(len(self._book), -1)
        wanted = np.unique(query.path)
        known[wanted] = np.arange(len(wanted))
        width = np.zeros((len(wanted), n_roots))
        width[known[query.path], query.root] = query.width
        path = known[np.concatenate([own.path for own in found])]
        root = np.concatenate([own.root + start for own, start in zip(found, starts[:-1], strict=True)])
        share = np.concatenate([own.width for own in found])
        path, root, share = path[path >= 0], root[path >= 0], share[path >= 0]
        weight = np.zeros(len(wanted))
        is_known = wanted < len(self._ipf)
        weight[is_known] = self._ipf[wanted[is_known]]
        owner = np.repeat(np.arange(len(found)), sizes)
        for own_root in range(n_roots):
            here = np.minimum(width[path, own_root], share) * weight[path]
            sums = np.bincount(root, here, int(starts[-1]))
            top = np.zeros(len(found))
            np.maximum.at(top, owner, sums)
            better = np.flatnonzero(top > best[0])
            for at in better:
                best[:, at] = top[at], own_root, sums[starts[at] : starts[at + 1]].argmax()
        return best[0], best[1].astype(int), best[2].astype(int)

    def _combined(
        self, structure: float, query: Formula, sector: Sector, found: Formula, root: int
    ) -> tuple[float, float, list[tuple[str, str]]]:
        """Return the score of one pair of subtrees, the share of its symbols, and the pairs of symbols."""
        total, pairs = assigned(sector, found.sector(root), self.symbol_weights or SYMBOL_WEIGHTS)
        share = total / query.n_leaves
        symbols = 1 / (1 + (1 - share) ** 2) if self.symbol_weights else 1.0
        length = (1 - self.eta) + self.eta / np.log(1 + found.n_leaves)
        return float(structure * symbols * length), share, pairs


def rescore(collection: Collection, run: pd.DataFrame, depth: int = 1000, scorer: Scorer | None = None) -> pd.DataFrame:
    """Return the run of the first *depth* documents of each query, scored by Approach0's rules.

    Formulas are read from texts as structure search does (`texts.Reader`). Each formula of the query counts by the
    best of the document's, and a document scores their sum, as Approach0 adds up the keywords of a query; one without
    formulas scores 0. *scorer* holds the distinct formulas of *collection* in order of first appearance (None: one is
    made, which parses them all). Raises MirblabError for a scorer of another size.
    """
    documents, reader = Reader.of(collection).owned(collection.texts), Reader.of(collection, "query")
    scorer = scorer or Scorer(documents.formulas)
    if len(scorer) != len(documents.formulas):
        n = len(documents.formulas)
        raise MirblabError(f"the scorer holds {len(scorer):,} formulas, '{collection.name}' {n:,}")
    shortlist = runs.cut(run, depth)
    queries = collection.query_ids.get_indexer(shortlist.query_id.astype(str))
    places = collection.doc_ids.get_indexer(shortlist.doc_id.astype(str))
    scores = np.zeros(len(shortlist), np.float32)
    wanted = np.unique(queries)
    with progress(len(wanted), f"{collection.name}: Approach0", "query") as bar:
        for query in wanted:
            rows = np.flatnonzero(queries == query)
            own = documents.take(places[rows])
            used, numbers = np.unique(own.numbers, return_inverse=True)
            own = Owned([documents.formulas[number] for number in used], numbers, own.starts)
            for latex in reader.formulas(collection.query_texts[query]):
                scores[rows] += own.best(scorer.score(latex, used))
            bar.update(1)
    return runs.from_positions(
        queries, places, scores, collection.query_ids, collection.doc_ids, "approach0", collection.name
    )


def _operators(formula: str | Tree) -> Tree:
    if isinstance(formula, Tree):
        return operator_tree(formula)
    from mirblab.formula.latex import parse

    return operator_tree(parse(formula))
