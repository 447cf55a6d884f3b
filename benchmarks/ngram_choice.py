"""ngram_choice: which n-grams of LaTeX make the best simple rival of structure search, by cross-validation over topics.

    python benchmarks/ngram_choice.py [--collections a,b] [--choose arqmath-2020-task2] [--folds 5] [--seed 0]

Every way to cut formulas is measured with every k1 and b. Then, for each fold of the topics of `--choose`, the setting
with the best mean nDCG' on the other folds is taken to the fold; the means over these are what the choice is worth. The
last lines measure the library's default, which is one of the settings, on each collection. Collections are those of
the home; what is not there is left out.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from importlib.metadata import version
from itertools import product

import numpy as np
import pandas as pd

from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.evaluation import measures
from mirblab.formula.ngrams import BRACES, latex_ngrams
from mirblab.retrieval.bm25 import TermIndex, Vocabulary, count_terms
from mirblab.sources import catalogue

MEASURES = ("nDCG'", "AP'", "P'@10", "Bpref")
K1, B = (0.6, 1.2, 2.0), (0.6, 0.75, 0.9)
DEFAULT = {"longest": 3, "braces": "few", "merged": True, "edges": True}
WAYS = [
    {"longest": longest, "braces": braces, "merged": merged, "edges": edges}
    for longest, braces, merged, edges in product((1, 2, 3, 4), BRACES, (False, True), (False, True))
    if longest > 1 or not edges
]


def named(way: dict) -> str:
    """Return a way to cut formulas in a few words."""
    spelling = "merged" if way["merged"] else "as written"
    return f"1-{way['longest']}, braces {way['braces']}, {spelling}{', edges' if way['edges'] else ''}"


def searched(collection: Collection, way: dict, k1s: tuple, bs: tuple) -> pd.DataFrame:
    """Return the values of one way to cut formulas for all k1 and b, with columns way, k1 and b."""
    vocabulary = Vocabulary()
    frequencies, lengths = count_terms(
        ([vocabulary[g] for g in latex_ngrams(t, **way)] for t in collection.texts), vocabulary
    )
    queries = [latex_ngrams(text, **way) for text in collection.query_texts]
    rules = collection.candidates if collection.candidates.rules else None
    found = []
    for k1, b in product(k1s, bs):
        index = TermIndex.weighted(vocabulary, (frequencies.copy(), lengths), "lucene", k1, b, 0.5)
        made = index.search(queries, 1000, rules)
        run = runs.from_positions(*made, collection.query_ids, collection.doc_ids, "ngram", collection.name)
        found.append(measures.evaluate(run, collection, MEASURES).assign(way=named(way), k1=k1, b=b))
    return pd.concat(found)


def held_out(values: pd.DataFrame, folds: int, seed: int) -> tuple[pd.Series, list[str]]:
    """Return the means of the values on held-out topics, and what was chosen for each fold."""
    wide = values.assign(query_id=values.query_id.astype(str)).pivot_table(
        index="query_id", columns=["measure", "way", "k1", "b"], values="value", observed=True
    )
    fold = np.random.default_rng(seed).permutation(len(wide)) % folds
    parts, chosen = [], []
    for number in range(folds):
        best = wide[fold != number]["nDCG'"].mean().idxmax()
        chosen.append(f"{best[0]}, k1 = {best[1]}, b = {best[2]}")
        parts.append(pd.DataFrame({measure: wide[fold == number][(measure, *best)] for measure in MEASURES}))
    return pd.concat(parts).mean(), chosen


def main() -> None:
    """Print the best and worst settings, the held-out means, and the default on each collection."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collections", default="arqmath-2020-task2,arqmath-2021-task2,ntcir12-wfb")
    parser.add_argument("--choose", default="arqmath-2020-task2")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=measures.QueryWarning)
    print(f"Python {platform.python_version()}, mirblab {version('mirblab')}, numpy {np.__version__}")
    here = [name for name in options.collections.split(",") if name in catalogue.collection_names()]
    for name in here:
        started, collection = time.perf_counter(), catalogue.load(name)
        table = pd.concat([searched(collection, way, K1, B) for way in WAYS])
        means = table.pivot_table(index=["way", "k1", "b"], columns="measure", values="value", observed=True)
        means = means[list(MEASURES)].sort_values("nDCG'", ascending=False)
        print(f"\n{name}: {len(collection.corpus):,} formulas, {len(collection.queries)} topics, {len(means)} settings")
        print(f"{time.perf_counter() - started:.0f} s; by way to cut, with its best k1 and b for nDCG':")
        print(means.reset_index().drop_duplicates("way").to_string(index=False, float_format="%.3f"))
        if name == options.choose:
            best, chosen = held_out(table, options.folds, options.seed)
            print("held out: " + ", ".join(f"{measure} {value:.3f}" for measure, value in best.items()))
            print("\n".join(f"  fold {number}: {setting}" for number, setting in enumerate(chosen, 1)))
    for name in here:
        values = searched(catalogue.load(name), DEFAULT, (1.2,), (0.9,))
        print(name, values.groupby("measure", observed=True, sort=False).value.mean().round(3).to_dict())


if __name__ == "__main__":
    main()
