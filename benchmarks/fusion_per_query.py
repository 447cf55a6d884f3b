"""fusion_per_query: does a fusion that chooses its weights for each query beat every part, on unseen collections?

    python benchmarks/fusion_per_query.py [--data FOLDER] [--collections a,b] [--queries 200] [--documents 1200]
                                          [--whole] [--parts bm25,minilm,chargrams,structure] [--judge RERANKER]

The collections are cut as in fusion_weights.py, or, with --whole, those of MIRBLAB_HOME with a sample of --queries.
With --judge, another choice for each query is the part whose first ten documents the reranker gives the best mean.
Each fusion is linear, over scores that are scaled to 0..1 within each query. "fixed" has one weight per part; "per
query" has weights that depend linearly on features of the query's lists (FEATURES), and on the number of the query's
words. Both minimise the listwise cross-entropy (Cao et al., ICML 2007) with an L2 penalty over all other collections
of FOLDER, each of which counts the same. The bundled collections teach nothing. "cv" is the library's fusion with
cross-validated weights. Two ceilings know the judgements: the best part for each query, and the best of a grid of
weights, for each query and for all queries of a collection.

The value is nDCG@10. A fusion is compared with the best part (structure only where half of the queries have a result by
it) by a paired permutation test, with Holm's correction over the collections of FOLDER, and over the bundled ones.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from fusion_weights import BUNDLED, FORMULAS, add_arguments, load_collections, significance, values
from scipy.optimize import minimize

from mirblab.data.collection import Collection
from mirblab.evaluation.significance import holm
from mirblab.retrieval import fusion
from mirblab.retrieval.fusion_rules import AlignedRuns
from mirblab.retrieval.systems import pair_scores, system
from mirblab.sources import catalogue

DEPTH = 100  # first documents of each part that are ordered anew
PENALTY = 1e-3
FEATURES = ("constant", "second score", "tenth score", "overlap at 10", "rank elsewhere", "best score", "words")


@dataclass(frozen=True)
class Lists:
    """The documents of all queries: query, doc, scores scaled to 0..1 (n, parts), share of the gain; and per query
    the best possible DCG@10, and features (queries, parts, features); a query without judgements has a DCG of 0."""

    query: np.ndarray
    doc: np.ndarray
    scores: np.ndarray
    gain: np.ndarray
    ideal: np.ndarray
    features: np.ndarray
    judged: np.ndarray

    def ndcg(self, scores: np.ndarray) -> np.ndarray:
        """Return nDCG@10 of each judged query when its documents are ordered by *scores*, equal ones by id."""
        order = np.lexsort((-self.doc, -scores.astype(np.float32), self.query))
        query = self.query[order]
        rank = np.arange(len(query)) - np.searchsorted(query, query) + 1
        gain = np.where(rank <= 10, self.gain[order] / np.log2(rank + 1), 0)
        total = np.bincount(query, gain, len(self.ideal))
        return np.divide(total, self.ideal, out=np.zeros_like(total), where=self.ideal > 0)[self.judged]


def read_lists(collection: Collection, parts: Sequence[str]) -> Lists:
    """Return the lists of the *parts* for all queries of a collection."""
    sides = AlignedRuns.of([system(part).search(collection) for part in parts])
    arrays = []
    for block in sides.blocks():
        ranks = block.matrix(1.0 / block.rank)
        kept = ranks.max(axis=1) >= 1 / DEPTH
        raw = block.matrix(block.score.astype(np.float64))
        arrays.append([each[kept] for each in (block.query, block.doc, block.matrix(block.scaled), ranks, raw)])
    query, doc, scores, ranks, raw = (np.concatenate(each) for each in zip(*arrays, strict=True))
    qrels = collection.qrels
    queries, docs = sides.query_ids.get_indexer(qrels.query_id), sides.doc_ids.get_indexer(qrels.doc_id)
    grades = qrels.relevance.clip(lower=0).to_numpy(float)
    gain = pd.Series(grades, queries * len(sides.doc_ids) + docs).reindex(query * len(sides.doc_ids) + doc)
    ideal, n_queries = np.zeros(len(sides.query_ids)), len(sides.query_ids)
    for each in np.unique(queries):
        best = np.sort(grades[queries == each])[::-1][:10]
        ideal[each] = (best / np.log2(np.arange(2, len(best) + 2))).sum()
    words = pd.Series([len(text.split()) for text in collection.query_texts], collection.query_ids)
    features = describe(query, scores, ranks, raw, n_queries, words[sides.query_ids].to_numpy())
    judged = np.unique(queries)
    return Lists(query, doc, scores, gain.fillna(0).to_numpy(), ideal, features, judged)


def describe(
    query: np.ndarray, scores: np.ndarray, ranks: np.ndarray, raw: np.ndarray, n_queries: int, words: np.ndarray
) -> np.ndarray:
    """Return the FEATURES of each query's lists, (queries, parts, features); *ranks* are reciprocal, 0: none."""
    n_parts = scores.shape[1]
    table = np.zeros((n_queries, n_parts, len(FEATURES)))
    table[:, :, 0], table[:, :, 6] = 1, np.log1p(words)[:, None]
    for part in range(n_parts):
        others = [other for other in range(n_parts) if other != part]
        for feature, rank, column in ((1, 2, scores), (2, 10, scores), (5, 1, raw)):
            at = np.isclose(ranks[:, part], 1 / rank)
            table[query[at], part, feature] = column[at, part]
        shared = (ranks[:, part] >= 0.1)[:, None] & (ranks[:, others] >= 0.1)
        table[:, part, 3] = np.bincount(query, shared.mean(axis=1), n_queries) / 10
        first = ranks[:, part] == 1
        table[query[first], part, 4] = np.log(np.maximum(ranks[first][:, others], 0.001)).mean(axis=1)
    return table


class Weights:
    """Weights of the parts, linear in the first *n_features* features, standardised over their data."""

    def __init__(self, teachers: Sequence[Lists], n_features: int) -> None:
        offsets = np.cumsum([0, *(len(each.ideal) for each in teachers)])
        query = np.concatenate([each.query + first for each, first in zip(teachers, offsets[:-1], strict=True)])
        scores, gain = (np.concatenate([getattr(each, name) for each in teachers]) for name in ("scores", "gain"))
        features = np.concatenate([each.features for each in teachers])[:, :, :n_features]
        self.mean, self.spread = features.mean(axis=0), features.std(axis=0)
        self.mean[:, 0], self.spread = 0, np.where(self.spread > 0, self.spread, 1)
        total = np.bincount(query, gain, offsets[-1])
        share = np.concatenate([np.full(len(each.ideal), 1 / max((each.ideal > 0).sum(), 1)) for each in teachers])
        share = np.where(total > 0, share, 0) / len(teachers)
        target = np.divide(gain, total[query], out=np.zeros_like(gain), where=total[query] > 0)
        starts, shape = np.searchsorted(query, np.unique(query)), features.shape[1:]
        used = np.unique(query)
        place, share, standard = np.searchsorted(used, query), share[used], self.standardise(features)[used]

        def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
            weights = np.einsum("qpf,pf->qp", standard, flat.reshape(shape))
            total = (scores * weights[place]).sum(axis=1)
            powers = np.exp(total - np.maximum.reduceat(total, starts)[place])
            chance = powers / np.add.reduceat(powers, starts)[place]
            error = share[place] * (chance - target)
            entropy = -(share[place] * target * np.log(np.maximum(chance, 1e-300))).sum()
            slope = np.einsum("qp,qpf->pf", np.add.reduceat(error[:, None] * scores, starts), standard)
            return entropy + PENALTY * (flat**2).sum() / 2, slope.ravel() + PENALTY * flat

        found = minimize(loss, np.zeros(np.prod(shape)), jac=True, method="L-BFGS-B", options={"maxiter": 60})
        self.coefficients = found.x.reshape(shape)

    def standardise(self, features: np.ndarray) -> np.ndarray:
        """Return features with mean 0 and standard deviation 1 over the training data, but for the constant."""
        return (features[:, :, : self.mean.shape[1]] - self.mean) / self.spread

    def values(self, lists: Lists) -> np.ndarray:
        """Return nDCG@10 of the fusion for each judged query; a weight below 0 counts as 0."""
        weights = np.einsum("qpf,pf->qp", self.standardise(lists.features), self.coefficients)
        return lists.ndcg((lists.scores * np.maximum(weights, 1e-6)[lists.query]).sum(axis=1))


def judged_choice(
    reranker: str, collection: Collection, lists: Lists, alone: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return each judged query's value by the part whose first ten documents the *reranker* scores best, and that part.

    The second array holds positions among the parts *alone*. A part without documents for a query is not chosen.
    """
    means = []
    for part in alone:
        pairs = pair_scores(system(part), reranker, collection, 10)
        means.append(pairs.groupby("query_id", observed=False).score.mean().fillna(-np.inf))  # in the order of `lists`
    best = np.argmax(means, axis=0)[lists.judged]
    return np.choose(best, list(alone.values())), best


def compare(
    collection: Collection, lists: Lists, parts: Sequence[str], fixed: Weights, chosen: Weights, judge: str = ""
) -> list[dict]:
    """Return one row per part, fusion and ceiling: its mean nDCG@10, and how it differs from the best part."""
    runs = [system(part).search(collection) for part in ("bm25", "minilm", "structure")]
    has_formulas = runs[2].query_id.nunique() >= FORMULAS * len(collection.query_ids)
    alone = {part: lists.ndcg(scores) for part, scores in zip(parts, lists.scores.T, strict=True)}
    if not has_formulas:
        alone.pop("structure", None)  # most queries have no formula
    grid = [row for row in product(np.linspace(0, 1, 8), repeat=len(parts)) if abs(sum(row) - 1) < 1e-9]
    weighted = np.stack([lists.ndcg(lists.scores @ row) for row in grid])
    fused = {
        "RRF of BM25 and MiniLM": values(fusion.rrf(runs[:2]), collection),
        "hybrid": values(system("hybrid").search(collection), collection),
        "cv of BM25 and MiniLM": values(fusion.cross_validated(runs[:2], collection, "nDCG@10"), collection),
        "fixed": fixed.values(lists),
        "per query": chosen.values(lists),
        "ceiling: best weights for all queries": weighted[weighted.mean(axis=1).argmax()],
        "ceiling: best part for each query": np.max(list(alone.values()), axis=0),
        "ceiling: best weights for each query": weighted.max(axis=0),
    }
    if judge:
        fused[f"list chosen by {judge}"], which = judged_choice(judge, collection, lists, alone)
        print(collection.name, dict(zip(alone, np.bincount(which, minlength=len(alone)).tolist(), strict=True)))
    best = max(alone, key=lambda part: alone[part].mean())
    rng, rows = np.random.default_rng(0), []
    for name, own in {**alone, **fused}.items():
        difference = own - alone[best]
        means = rng.choice(difference, (2000, len(difference))).mean(axis=1)
        low, high = np.quantile(means, (0.025, 0.975))
        row = {"fusion": name, "collection": collection.name, "bundled": collection.name in BUNDLED, "best": best}
        row |= {"best_value": alone[best].mean(), "value": own.mean(), "low": low, "high": high}
        rows.append(row | significance(own, alone[best]))
    return rows


def main() -> None:
    """Print for each fusion how it compares with the best part, and the coefficients that all collections teach."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--parts", default="bm25,minilm,chargrams,structure")
    parser.add_argument("--whole", action="store_true", help="whole collections of MIRBLAB_HOME, not cut ones")
    parser.add_argument("--judge", default="", help="a reranker that chooses one part for each query")
    given = parser.parse_args()
    parts = given.parts.split(",")
    if given.whole:
        collections = [catalogue.load(name).sample(given.queries, 0) for name in given.collections.split(",")]
    else:
        collections = load_collections(given)
    lists = {each.name: read_lists(each, parts) for each in collections}
    real = [name for name in lists if name not in BUNDLED]
    rows = []
    for collection in collections:
        others = [lists[name] for name in real if name != collection.name]
        fixed, chosen = Weights(others, 1), Weights(others, len(FEATURES))
        rows += compare(collection, lists[collection.name], parts, fixed, chosen, given.judge)
        print(collection.name, flush=True)
    table = pd.DataFrame(rows)
    table["p_holm"] = table.groupby(["fusion", "bundled"]).p.transform(holm)
    for name, part in table.groupby("fusion", sort=False):
        print(f"\n{name}\n{part.drop(columns='fusion').round(3).to_string(index=False)}")
        for bundled, some in part.groupby("bundled"):
            below = some[(some.difference < 0) & (some.p_holm <= 0.05)]
            print(f"{'bundled' if bundled else 'real'}: mean {some.value.mean():.4f}, of the best part "
                  f"{some.best_value.mean():.4f}; above it on {(some.difference > 0).sum()} of {len(some)}, "
                  f"significantly below on {len(below)}")  # fmt: skip
    weights = Weights([lists[name] for name in real], len(FEATURES))
    print(f"\ncoefficients\n{pd.DataFrame(weights.coefficients, parts, FEATURES).round(2).to_string()}")


if __name__ == "__main__":
    main()
