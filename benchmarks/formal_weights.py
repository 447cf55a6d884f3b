"""formal_weights: what each kind of token is worth in statements for proof assistants, and k1 and b of BM25 over them.

    python benchmarks/formal_weights.py [--collections a,b] [--queries 500] [--k1 1.2,2] [--b 0.75,1]

Each setting is evaluated on the dev splits of the collections. `search.FORMAL_WEIGHTS`, `FORMAL_K1` and `FORMAL_LENGTH`
are those with the best mean; the test splits, the views of Lean declarations and HOL have no part in the choice.
"""

from __future__ import annotations

import argparse
from itertools import product

import pandas as pd

from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.evaluation import measures
from mirblab.formula import search
from mirblab.formula.scoring import TOKEN_WEIGHTS
from mirblab.formula.tokens import KINDS
from mirblab.sources import catalogue

COLLECTIONS = "setmm,mathcomp-premise"
WEIGHTS = {
    "of formulas": tuple(TOKEN_WEIGHTS.values()),
    "chosen": tuple(search.FORMAL_WEIGHTS.values()),
    "fewer symbols": (0.5, 0.25, 0.25, 0.25, 0.5, 2.0),
    "fewer subexpressions": (2.0, 0.25, 0.5, 0.25, 0.5, 1.0),
    "symbols": (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "subexpressions": (0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
}


def rows(collection: Collection, grid: list[tuple[float, float]]) -> list[dict]:
    """Return the mean nDCG@10 of each choice of weights and setting of BM25."""
    prepared, found = search.IndexedFormulas.of(collection), []
    for name, (k1, b) in product(WEIGHTS, grid):
        search.FORMAL_K1, search.FORMAL_LENGTH = k1, b
        weights = dict(zip(KINDS, WEIGHTS[name], strict=True))
        hits = prepared.search(collection.query_texts, 100, collection.candidates, weights=weights)
        run = runs.from_positions(*hits, collection.query_ids, collection.doc_ids, name, collection.name)
        value = float(measures.mean(measures.evaluate(run, collection, "nDCG@10")).value.item())
        found.append({"weights": name, "k1": k1, "b": b, "collection": collection.name, "value": value})
    return found


def main() -> None:
    """Print the values of each setting, best mean first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collections", default=COLLECTIONS)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--k1", default="1.2,2")
    parser.add_argument("--b", default="0.75,1")
    given = parser.parse_args()
    grid = list(product(map(float, given.k1.split(",")), map(float, given.b.split(","))))
    found = [
        row
        for name in given.collections.split(",")
        for row in rows(catalogue.load(name, "dev").sample(given.queries), grid)
    ]
    table = pd.DataFrame(found).pivot(index=["weights", "k1", "b"], columns="collection", values="value")
    table["mean"] = table.mean(axis=1)
    print((100 * table.sort_values("mean", ascending=False)).round(2).to_string())


if __name__ == "__main__":
    main()
