"""approach0: Approach0's score of structural similarity."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.core.terminal import progress
from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.formula.formal.statements import FormulaSource
from mirblab.formula.in_text import TextFormulas
from mirblab.formula.operators import ARROW, BIG, FUNCTION, INTEGRAL, POSTFIX, RELATION, ROLES, SUM, operator_tree
from mirblab.formula.tokens import layout_trees
from mirblab.formula.tree import Tree

# Raised by one whenever the runs of this kind change; otherwise tests/retrieval/test_golden_runs.py fails.
RUNS_VERSION = 9

MOST_LEAVES = 64
DEEPEST = 32  # tokens of a path
_NAMES = {kind: [name for own, name in ROLES.values() if own == kind] for kind in range(-6, 6)}
# Operations that count as the same on a path; an operation not named here is its own type, letters and numbers apart.
_TYPES = (
    dict.fromkeys(_NAMES[RELATION] + _NAMES[ARROW], "REL")
    | dict.fromkeys(_NAMES[BIG], "BIG")
    | dict.fromkeys(_NAMES[INTEGRAL], "INT")
    | dict.fromkeys(_NAMES[FUNCTION], "FUN")
    | dict.fromkeys(_NAMES[POSTFIX], "FACT")
    | dict.fromkeys(_NAMES[SUM], "SETOP")
    | dict.fromkeys(("U!plus", "O!minus", "O!plus-or-minus", "O!minus-or-plus"), "ADD")
    | {"U!times": "TIMES", "O!divide": "FRAC", "O!root": "ROOT", "O!binomial": "BINOM", "O!rem": "MOD", "F!pmod": "MOD"}
    | {"F!abs": "VERT", "O!norm": "VERT", "F!floor": "VERT", "F!ceiling": "VERT", "O!compose": "COMPOSE"}
    | {"O!form-seq": "LIST", "O!matrix": "MAT", "O!cases": "MAT", "M!R!": "ROW", "C!infinity": "INFTY", "W!": "W"}
)
_PREFIXES = (
    ("V!", "VAR"), ("N!", "NUM"), ("T!", "TEXT"), ("M!M", "MAT"), ("M!", "LIST"), ("O!interval", "LIST"),
    ("C!", "CONST"), ("F!", "FUN"),
)  # fmt: skip
_SCRIPTS = frozenset({"O!SUB", "O!SUP"})
_EMPTY = frozenset({"W!", "E!"})
_MERGED = frozenset({"ADD", "TIMES", "REL"})  # a sum in a sum is one sum
_RANKED = frozenset({"FRAC", "ROOT", "BINOM", "LIST", "ROW", "MOD", "COMPOSE"})  # where the place of an operand counts
Step = tuple[str, int, str]  # a type, the number of an inner node, its operator
# Below one node, by path: how many leaves end it, by symbol and then by the operators on the way.
Sector = dict[int, dict[str, Counter[tuple[str, ...]]]]
PathNumbers = dict[tuple[int, str], int]  # of a path: a shorter path, -1 for none, and one more type
SYMBOL_WEIGHTS = (1.00, 0.94, 0.90)
LENGTH_PENALTY = 0.20
SECTORS = 20_000  # that a scorer keeps


@dataclass(slots=True)
class LeafPaths:
    """The leaf-root paths of one formula.

    `leaves` and `symbols` are each leaf's node in the operator tree and its label; `steps` each leaf's (type, root,
    fingerprint) of every step upwards, where *root* numbers the inner nodes of the formula and *fingerprint* is the
    operator; `roots` the node in the operator tree of each inner node.
    """

    leaves: list[int] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    steps: list[list[Step]] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)


def leaf_paths(tree: Tree) -> LeafPaths:
    """Return the leaf-root paths of an operator *tree*, at most `MOST_LEAVES` of them, the first ones.

    As in Approach0, x, x_i and x^2 share a path; nested sums are one sum, a minus sign makes no node, operands whose
    order counts go through a rank; empty operands are no leaves.

    >>> paths = leaf_paths(Tree(["U!plus", "V!a", "N!2"], [-1, 0, 0], "-01"))
    >>> [[step[0] for step in steps] for steps in paths.steps]
    [['BASE', 'SCRIPTS', 'ADD'], ['BASE', 'SCRIPTS', 'ADD']]
    """
    found = LeafPaths()
    above = _StepsToRoot(tree, found)
    for node, label in enumerate(tree.labels):
        if above.n_operands[node] or label in _EMPTY:
            continue
        if len(found.leaves) == MOST_LEAVES:
            break
        found.leaves.append(node)
        found.symbols.append(label)
        found.steps.append(above.climb(node))
    return found


class _StepsToRoot:
    def __init__(self, tree: Tree, found: LeafPaths) -> None:
        self.tree = tree
        self.found = found
        self.types = [operator_type(label) for label in tree.labels]
        self.n_operands = [0] * (len(tree) + 1)  # the last is that of the root's parent, which is no node
        self.numbers: dict[tuple[int, str], int] = {}
        for node, parent in enumerate(tree.parents):
            self.n_operands[parent] += 1
            if self.types[node] == "REL" and parent >= 0 and tree.labels[parent] == "U!and":
                self.types[parent] = "REL"  # a chain, or statements joined by "and"

    def step(self, node: int, kind: str, label: str = "") -> Step:
        number = self.numbers.get((node, kind))
        if number is None:
            number = self.numbers[node, kind] = len(self.found.roots)
            self.found.roots.append(node)
        return kind, number, label

    def climb(self, node: int) -> list[Step]:
        tree, types = self.tree, self.types
        steps: list[Step] = []
        if not self._has_scripts(node):
            steps += [self.step(node, "BASE"), self.step(node, "SCRIPTS")]
        while (parent := tree.parents[node]) >= 0 and len(steps) < DEEPEST:
            label, kind, place = tree.labels[parent], types[parent], tree.relations[node]
            if label in _SCRIPTS:
                steps.append(self.step(node, "BASE" if place == "0" else label))
                while self._has_scripts(parent):  # x_n^2 has one node for both scripts
                    parent = tree.parents[parent]
                steps.append(self.step(parent, "SCRIPTS"))
            elif not self._is_transparent(parent, kind):
                if kind in _RANKED:
                    steps.append(self.step(node, "RANK" + place))
                steps.append(self.step(parent, kind, label))
            node = parent
        return steps

    def _has_scripts(self, node: int) -> bool:
        parent = self.tree.parents[node]
        return parent >= 0 and self.tree.labels[parent] in _SCRIPTS and self.tree.relations[node] == "0"

    def _is_transparent(self, node: int, kind: str) -> bool:
        """Return whether *node* makes no step: a sum within a sum, a link of a chain, a sign in front."""
        if kind in _MERGED and self.tree.parents[node] >= 0 and self.types[self.tree.parents[node]] == kind:
            return True
        return kind == "ADD" and self.n_operands[node] == 1


@lru_cache(maxsize=50_000)
def operator_type(label: str) -> str:
    """Return the type of a label of an operator tree, under which different symbols meet."""
    found = _TYPES.get(label)
    if found is not None:
        return found
    if label.startswith("+!"):
        return "BIG" if label[2:] in ("O!SUB", "O!SUP") else operator_type(label[2:])
    return next((kind for prefix, kind in _PREFIXES if label.startswith(prefix)), label)


@dataclass(frozen=True, slots=True)
class NumberedPaths:
    """A formula's leaf paths by number and step; below inner node `root[i]`, `width[i]` leaves end in `path[i]`."""

    paths: LeafPaths
    numbers: list[list[int]]
    path: np.ndarray
    root: np.ndarray
    width: np.ndarray

    def sector(self, root: int) -> Sector:
        """Return the paths below one inner node, with the symbols and operators at each."""
        found: Sector = {}
        for symbol, steps, numbers in zip(self.paths.symbols, self.paths.steps, self.numbers, strict=True):
            for at, step in enumerate(steps):
                if step[1] == root:
                    operators = tuple([own[2] for own in steps[: at + 1] if own[2]])
                    found.setdefault(numbers[at], {}).setdefault(symbol, Counter())[operators] += 1
        return found


class Approach0Scorer:
    """Approach0's scoring (Zhong and Zanibbi, ECIR 2019; Zhong et al., ECIR 2020) over the formulas of a collection.

    A formula is its first 64 leaf-root paths, cut off at every node above. The structure score of two subtrees sums
    min(width, width) · ipf over their common paths, ipf = ln(N / pf) from all *formulas*; the best pair of subtrees
    counts. The score is structure / (1 + (1 - σ)²), where σ credits symbols (`assign_symbols`), less a penalty for
    length. *formulas* are LaTeX or trees.

    >>> scorer = Approach0Scorer([r"x^2 + y^2", r"x + y", r"a^2 + b^2 = c^2"])
    >>> scorer.score(r"y^2 + x^2", [0, 1, 2]).argsort().tolist()
    [1, 2, 0]
    """

    def __init__(self, formulas: Sequence[str | Tree]) -> None:
        self._numbers: PathNumbers = {}
        # Queries meet the same subtrees again and again.
        self._sector = lru_cache(SECTORS)(lambda place, root: self._formulas[place].sector(root))
        self._formulas: list[NumberedPaths] = []
        with progress(len(formulas), "leaf-root paths", "formula") as bar:
            for formula in formulas:
                self._formulas.append(self._read(formula))
                bar.update(1)
        paths = [np.empty(0, np.int32), *(formula.path for formula in self._formulas)]
        counts = np.bincount(np.concatenate(paths), minlength=len(self._numbers))
        self._ipf = np.log(counts.sum() / np.maximum(counts, 1))

    def _read(self, formula: str | Tree) -> NumberedPaths:
        return number_paths(operator_tree(layout_trees([formula])[0]), self._numbers)

    def __len__(self) -> int:
        return len(self._formulas)

    def score(self, query: str | Tree, documents: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the score of each document, float32, 0 and up; *documents* are positions in the collection."""
        own = self._read(query)
        places = np.asarray(documents, np.int64)
        if places.size and (places.min() < 0 or places.max() >= len(self)):
            raise MirblabError(f"a scorer of {len(self):,} formulas has no positions {places.min()} to {places.max()}")
        structure, query_root, doc_root = self._structure(own, [self._formulas[place] for place in places])
        scores = np.zeros(len(places), np.float32)
        sectors = {root: own.sector(root) for root in set(query_root[structure > 0].tolist())}
        for at in np.flatnonzero(structure):
            place, root = int(places[at]), int(doc_root[at])
            total = assign_symbols(sectors[query_root[at]], self._sector(place, root))
            scores[at] = _combined_score(structure[at], total / len(own.numbers), len(self._formulas[place].numbers))
        return scores

    def _structure(self, query: NumberedPaths, found: list[NumberedPaths]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the weight of the best pair of subtrees for each formula, and the roots of that pair."""
        n_roots = len(query.paths.roots)
        sizes = np.array([len(own.paths.roots) for own in found], np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        best = np.zeros((3, len(found)))
        if not n_roots or not starts[-1]:
            return best[0], best[1], best[2]
        known = np.full(len(self._numbers), -1)
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


def _combined_score(structure: float, share: float, n_leaves: int) -> float:
    """Return the score of one pair of subtrees; *share* is the credit of symbols by leaf of the query, 0 to 1."""
    length = (1 - LENGTH_PENALTY) + LENGTH_PENALTY / np.log(1 + n_leaves)
    return float(structure * (1 / (1 + (1 - share) ** 2)) * length)


def number_paths(tree: Tree, known: PathNumbers) -> NumberedPaths:
    """Return the paths of an operator *tree*, new ones numbered in *known*; 0 and 1 begin separate paths."""
    paths, numbers = leaf_paths(tree), []
    widths: Counter[tuple[int, int]] = Counter()
    for symbol, steps in zip(paths.symbols, paths.steps, strict=True):
        leaf_type = symbol if symbol in ("N!0", "N!1") else operator_type(symbol)
        last, row = known.setdefault((-1, leaf_type), len(known)), []
        for kind, root, _ in steps:
            last = known.setdefault((last, kind), len(known))
            row.append(last)
            widths[last, root] += 1
        numbers.append(row)
    table = np.array([(path, root, width) for (path, root), width in widths.items()], np.int32).reshape(-1, 3)
    return NumberedPaths(paths, numbers, table[:, 0], table[:, 1], table[:, 2])


def assign_symbols(query: Sector, document: Sector) -> float:
    """Return the sum of the credits of symbols that are assigned to each other, over two sectors.

    Each common path gives min(count, count) times 1.00 where symbol and operators on the way agree, 0.94 where the
    symbol does, 0.90 else. Symbols of the query, the most frequent first, take one to one the symbol of the document
    that gives most (Approach0's greedy assignment).
    """
    gains: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    count: Counter[str] = Counter()
    for path, asked in query.items():
        found = document.get(path, {})
        for symbol, operators in asked.items():
            count[symbol] += (n_asked := operators.total())
            for other, others in found.items():
                both = min(n_asked, others.total())
                if symbol == other:
                    exact = (operators & others).total()
                    gains[symbol][other] += SYMBOL_WEIGHTS[0] * exact + SYMBOL_WEIGHTS[1] * (both - exact)
                else:
                    gains[symbol][other] += SYMBOL_WEIGHTS[2] * both
    total, taken = 0.0, set()
    for symbol in sorted(gains, key=lambda own: -count[own]):
        free = [(gain, other == symbol, other) for other, gain in gains[symbol].items() if other not in taken]
        if free:
            gain, _, other = max(free, key=lambda pair: pair[:2])
            total += gain
            taken.add(other)
    return total


def rescore(
    collection: Collection,
    run: pd.DataFrame,
    depth: int = 1000,
    scorer: Approach0Scorer | None = None,
    source: FormulaSource | None = None,
) -> pd.DataFrame:
    """Return the run of the first *depth* documents of each query, scored by Approach0's rules.

    A document's score is the sum over the query's formulas of the best score of one of its formulas, 0 without
    formulas. *scorer* holds the distinct formulas of *collection* in order of first appearance (None: one is made), and
    *source* says how texts are read (None: as the documents and queries look, which a single query does not show).
    """
    source = source or FormulaSource.of(collection)
    documents = source.documents(collection)
    scorer = scorer or Approach0Scorer([source.tree(formula) for formula in documents.formulas])
    if len(scorer) != len(documents.formulas):
        n = len(documents.formulas)
        raise MirblabError(f"the scorer holds {len(scorer):,} formulas, '{collection.name}' {n:,}")
    shortlist = runs.cut_run(run, depth)
    queries = collection.query_ids.get_indexer(pd.Index(shortlist.query_id.astype(str)))
    places = collection.doc_ids.get_indexer(pd.Index(shortlist.doc_id.astype(str)))
    scores = np.zeros(len(shortlist), np.float32)
    wanted = np.unique(queries)
    with progress(len(wanted), f"{collection.name}: Approach0", "query") as bar:
        for query in wanted:
            rows = np.flatnonzero(queries == query)
            own = documents.take(places[rows])
            used, numbers = np.unique(own.numbers, return_inverse=True)
            own = TextFormulas([documents.formulas[number] for number in used], numbers, own.starts)
            for formula in source.query(collection.query_texts[query]):
                scores[rows] += own.best(scorer.score(source.tree(formula), used))
            bar.update(1)
    return runs.from_positions(
        queries, places, scores, collection.query_ids, collection.doc_ids, "approach0", collection.name
    )
