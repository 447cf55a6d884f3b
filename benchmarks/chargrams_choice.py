"""chargrams_choice: how long character n-grams should be, and whether they reach over blanks, for BM25.

    python benchmarks/chargrams_choice.py [--collections a,b] [--lengths 3,4,5] [--k1 0.6,1.2] [--b 0.75,0.9]

BM25 over each way to cut texts, with the system `bm25` beside it. The pairs that the n-grams are to judge
(mini-pairs) have no part in the choice. What is not in the home is left out, but for the bundled collections.
"""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version
from itertools import product

import pandas as pd

from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.evaluation import measures
from mirblab.retrieval import tokenizers
from mirblab.retrieval.bm25 import TermIndex
from mirblab.retrieval.tokenizers import NGRAM_LENGTH, character_ngrams
from mirblab.sources import catalogue

COLLECTIONS = "mini-mathlib,mini-mse-dup,mini-mo-dup,mini-qa,mini-proofwiki,mini-stacks,mini-premises"


def value(collection: Collection, tokens: list[list[str]], queries: list[list[str]], k1: float, b: float) -> float:
    """Return the mean nDCG@10 of BM25 over tokens."""
    rules = collection.candidates if collection.candidates.rules else None
    found = TermIndex.build(tokens, "lucene", k1, b, 0.5).search(queries, 100, rules)
    run = runs.from_positions(*found, collection.query_ids, collection.doc_ids, "chargrams", collection.name)
    return float(measures.mean(measures.evaluate(run, collection, "nDCG@10")).value.item())


def rows(collection: Collection, lengths: list[int], grid: list[tuple[float, float]]) -> list[dict]:
    """Return one row per way to cut texts and setting of BM25."""
    ways = {f"{n}, {'over blanks' if across else 'in words'}": (n, across) for n in lengths for across in (True, False)}
    found = []
    for way, (n, across) in ways.items():
        docs, asked = (
            [character_ngrams(text, n, across) for text in texts]
            for texts in (collection.texts, collection.query_texts)
        )
        found += [{"way": way, "k1": k1, "b": b, "value": value(collection, docs, asked, k1, b)} for k1, b in grid]
    words = [tokenizers.math_tokens(texts) for texts in (collection.texts, collection.query_texts)]
    found += [{"way": "words (math)", "k1": k1, "b": b, "value": value(collection, *words, k1, b)} for k1, b in grid]
    return [row | {"collection": collection.name} for row in found]


def main() -> None:
    """Print nDCG@10 of every way, and how far apart they are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collections", default=COLLECTIONS)
    parser.add_argument("--lengths", default="3,4,5")
    parser.add_argument("--k1", default="0.6,1.2")
    parser.add_argument("--b", default="0.75,0.9")
    given = parser.parse_args()
    lengths = [int(n) for n in given.lengths.split(",")]
    grid = list(product(map(float, given.k1.split(",")), map(float, given.b.split(","))))
    print(f"python {platform.python_version()}, numpy {version('numpy')}, pandas {version('pandas')}")
    table = []
    for name in given.collections.split(","):
        if name in catalogue.collection_names():
            collection = catalogue.load(name)
            print(collection, flush=True)
            table += rows(collection, lengths, grid)
    wide = pd.DataFrame(table).pivot_table("value", ["way", "k1", "b"], "collection", sort=False)
    wide["mean"] = wide.mean(axis=1)
    print(f"\nnDCG@10\n{wide.round(3).to_string()}")
    ours = wide["mean"].drop("words (math)").groupby("way", sort=False).max()
    print(f"\nbest mean of each way: {ours.round(3).to_dict()}; all within {ours.max() - ours.min():.3f}; "
          f"the library cuts {NGRAM_LENGTH} over blanks, at k1 = 1.2 and b = 0.9")  # fmt: skip


if __name__ == "__main__":
    main()
