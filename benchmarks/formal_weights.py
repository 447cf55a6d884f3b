"""formal_weights: what each kind of token is worth in statements for proof assistants, with the power of rarity and b.

    python benchmarks/formal_weights.py [--collections a,b] [--queries 500] [--split dev] [--power 1,1.5] [--b 0.75,1]
    python benchmarks/formal_weights.py --collections views-informal-type,... --documents 8000 --names 1,2,3 --k3 1,inf

Each setting is evaluated on the dev splits of the collections. `search.FORMAL_WEIGHTS` and the b of `STATEMENTS` had
the best mean; its power of a token's rarity was chosen on the train splits with `--split train --queries 1000`. The
test splits, the views of Lean declarations and HOL have no part in that choice. `PROSE`, between prose and statements,
was chosen with the second command on the dev splits of mathlib-informal and of the four views with informal texts, its
k3 also on the queries of eight of the 23 blueprints.
"""

from __future__ import annotations

import argparse
from itertools import product, starmap

import pandas as pd

from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.evaluation import measures
from mirblab.formula import search
from mirblab.formula.scoring import TOKEN_WEIGHTS
from mirblab.formula.tokens import KINDS
from mirblab.sources import catalogue

COLLECTIONS = "setmm,mathcomp-premise"
SETTING = ["weights", "power", "b", "k3", "names"]
WEIGHTS = {
    "of formulas": tuple(TOKEN_WEIGHTS.values()),
    "chosen": tuple(search.FORMAL_WEIGHTS.values()),
    "fewer symbols": (0.5, 0.25, 0.25, 0.25, 0.5, 2.0),
    "fewer subexpressions": (2.0, 0.25, 0.5, 0.25, 0.5, 1.0),
    "symbols": (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "subexpressions": (0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
}


def rows(collection: Collection, grid: list[search.Counting]) -> list[dict]:
    """Return the mean nDCG@10 of each choice of weights and setting of BM25."""
    prepared, found = search.IndexedFormulas.of(collection), []
    for name, counting in product(WEIGHTS, grid):
        search.STATEMENTS = search.PROSE = counting
        weights = dict(zip(KINDS, WEIGHTS[name], strict=True))
        hits = prepared.search(collection.query_texts, 100, collection.candidates, weights=weights)
        run = runs.from_positions(*hits, collection.query_ids, collection.doc_ids, name, collection.name)
        value = float(measures.mean(measures.evaluate(run, collection, "nDCG@10")).value.item())
        found.append({"weights": name, **vars(counting), "collection": collection.name, "value": value})
    return found


def main() -> None:
    """Print the values of each setting, best mean first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collections", default=COLLECTIONS)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--split", default="dev")
    parser.add_argument("--power", default="1,1.5")
    parser.add_argument("--b", default="0.75,1")
    parser.add_argument("--k3", default="inf")
    parser.add_argument("--names", default="1", help="weights of names' parts between prose and statements")
    parser.add_argument("--documents", type=int, default=0, help="search among so many only (0: all)")
    given = parser.parse_args()
    values = (given.power, given.b, given.k3, given.names)
    grid = list(starmap(search.Counting, product(*(map(float, each.split(",")) for each in values))))
    found = [
        row
        for name in given.collections.split(",")
        for row in rows(catalogue.load(name, given.split).sample(given.queries, n_documents=given.documents), grid)
    ]
    table = pd.DataFrame(found).pivot(index=SETTING, columns="collection", values="value")
    table["mean"] = table.mean(axis=1)
    print((100 * table.sort_values("mean", ascending=False)).round(2).to_string())


if __name__ == "__main__":
    main()
