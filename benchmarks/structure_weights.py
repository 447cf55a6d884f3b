"""Which weights do the kinds of tokens deserve? Learned by cross-validation over topics, beside the ones in use.

The judged formulas alone are scored, which is all that prime measures and Bpref look at. On ARQMath 2020 (74 topics)
and NTCIR-12 (20) the weights of the six kinds and b climb, one at a time and all from 1, so that they know nothing of
the ones in use, on four fifths of the topics; what they reach on the other fifth is printed. ARQMath 2021 has no part.
From which length on only the logarithm of a formula counts is not learned; lengths around the one in use are printed.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from mirblab.data.collection import Collection, load_folder
from mirblab.evaluation import measures
from mirblab.formula import scoring
from mirblab.formula.scoring import DEFAULT_B, LONG_RATIO, TOKEN_WEIGHTS, rarity
from mirblab.formula.tokens import KIND_MASK, KINDS, count_tokens, formula_tokens, layout_trees

LENGTHS = (1.0, 1.5, 3.0, np.inf)
STEPS = (0.0, 0.5, 0.75, 1.33, 2.0)
MEASURES = ["nDCG'", "AP'", "P'@10", "Bpref"]


class Judged:
    """The judged pairs of a collection: what a query and a formula share, and their lengths, by kind of token."""

    def __init__(self, collection: Collection, full: int = 0) -> None:
        """Read all formulas; *full* is a second level of relevance, for Bpref (0: none)."""
        self.collection, self.full, self.name = collection, full, collection.name
        n, latex = len(collection.texts), [*collection.texts, *collection.query_texts]
        found = formula_tokens(layout_trees(latex))
        keys, documents, owners, counts = count_tokens(found)
        kinds = np.repeat((keys & KIND_MASK).astype(int), documents)
        token = np.repeat(np.arange(len(keys)), documents)
        seen = np.bincount(token[owners < n], minlength=len(keys))
        worth = rarity(n, seen)[token] * counts
        self.lengths = np.zeros((len(latex), len(KINDS)))
        np.add.at(self.lengths, (owners, kinds), worth)
        order = np.lexsort((token, owners))
        self.token, self.kind, self.count = token[order], kinds[order], counts[order]
        self.rare, self.starts = rarity(n, seen), np.searchsorted(owners[order], np.arange(len(latex) + 1))
        qrels = collection.qrels
        self.queries, self.docs = (qrels[name].cat.codes.to_numpy(np.int64) for name in ("query_id", "doc_id"))
        self.shared = np.array(
            [self._shared(doc, n + query) for doc, query in zip(self.docs, self.queries, strict=True)]
        )
        self.asked, self.has = self.lengths[n + self.queries], self.lengths[self.docs]

    def _shared(self, one: int, other: int) -> np.ndarray:
        sides = [slice(self.starts[own], self.starts[own + 1]) for own in (one, other)]
        _, mine, theirs = np.intersect1d(*(self.token[side] for side in sides), assume_unique=True, return_indices=True)
        both = np.minimum(self.count[sides[0]][mine], self.count[sides[1]][theirs])
        worth = both * self.rare[self.token[sides[0]][mine]]
        return np.bincount(self.kind[sides[0]][mine], worth, len(KINDS))

    def values(self, weights: np.ndarray, b: float) -> pd.DataFrame:
        """Return the official measures of each query, one column each."""
        shared = self.shared @ weights
        score = scoring.score_formulas(shared, np.maximum(self.asked @ weights, 1e-9), self.has @ weights, b)
        names = self.collection.query_ids, self.collection.doc_ids
        run = pd.DataFrame({"query_id": names[0][self.queries], "doc_id": names[1][self.docs], "score": score})
        run = run[score > 0]
        found = measures.evaluate(run, self.collection, MEASURES).assign(level="")
        if self.full:
            full = measures.evaluate(run, self.collection, ["Bpref"], relevant_from=self.full)
            found = pd.concat([found, full.assign(level=" (full)")])
        found["measure"] = found.measure.astype(str) + found.level
        return found.pivot(index="query_id", columns="measure", values="value")


def goal(values: list[pd.DataFrame], folds: list[np.ndarray], left_out: int) -> float:
    """Return the mean over collections of the mean over their measures on the topics outside a fold."""
    kept = (
        table[fold != left_out] if left_out is not None else table for table, fold in zip(values, folds, strict=True)
    )
    return float(np.mean([table.mean().mean() for table in kept]))


def learn(sets: list[Judged], folds: list[np.ndarray], left_out: int) -> tuple[np.ndarray, float]:
    """Return weights and b that no single step improves, on the topics outside a fold; all where there is none such."""
    weights, b = np.ones(len(KINDS)), 1.0
    best = goal([one.values(weights, b) for one in sets], folds, left_out)
    improved = True
    while improved:
        improved = False
        for place in range(len(KINDS) + 1):
            for step in STEPS:
                tried, other = weights.copy(), b
                if place < len(KINDS):
                    tried[place] *= step
                else:
                    other = b * step or b
                value = goal([one.values(tried, other) for one in sets], folds, left_out)
                if value > best + 2e-4:
                    weights, b, best, improved = tried, other, value, True
    return weights, b


def show(name: str, values: pd.DataFrame) -> None:
    """Print the means of one collection."""
    print(f"  {name:34s}" + "  ".join(f"{column} {value:.4f}" for column, value in values.mean().items()), flush=True)


def main() -> None:
    """Print the weights in use, the learned ones by fold, and what both reach."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data = Path(os.environ.get("MIRBLAB_SHARED", "../shared")) / "data"
    sets = [Judged(_relevant(load_folder(data / "arqmath-2020-task2", split="all74"), 2)),
            Judged(load_folder(data / "ntcir12-wfb"), full=3)]  # fmt: skip
    other = Judged(_relevant(load_folder(data / "arqmath-2021-task2"), 2))
    used = np.array([TOKEN_WEIGHTS[kind] for kind in KINDS])
    print(f"in use: {dict(TOKEN_WEIGHTS)}, b = {DEFAULT_B}, long from {LONG_RATIO} times the query")
    for scoring.LONG_RATIO in (*LENGTHS, LONG_RATIO):  # the one in use last, which stays
        print(f"in use, long from {scoring.LONG_RATIO} times the query")
        for one in [*sets, other]:
            show(one.name, one.values(used, DEFAULT_B))
    rng = np.random.default_rng(options.seed)
    folds = [rng.permutation(len(one.values(used, DEFAULT_B))) % options.folds for one in sets]
    held: list[list[pd.DataFrame]] = [[] for _ in sets]
    for fold in range(options.folds):
        weights, b = learn(sets, folds, fold)
        print(f"fold {fold}: {dict(zip(KINDS, weights.round(3).tolist(), strict=True))}, b = {b:.2f}")
        for number, one in enumerate(sets):
            held[number].append(one.values(weights, b)[folds[number] == fold])
    print("learned, on the held-out topics of all folds")
    for one, parts in zip(sets, held, strict=True):
        show(one.name, pd.concat(parts))
    weights, b = learn(sets, folds, options.folds)
    print(f"learned on all topics: {dict(zip(KINDS, weights.round(3).tolist(), strict=True))}, b = {b:.2f}")
    for one in [*sets, other]:
        show(one.name, one.values(weights, b))


def _relevant(collection: Collection, level: int) -> Collection:
    from dataclasses import replace

    return replace(collection, card=replace(collection.card, relevant_from=level))


if __name__ == "__main__":
    main()
