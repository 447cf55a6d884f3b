"""pretokens_ablation: does BM25 gain when formulas are rewritten as PyA0 does? One row per collection and tokenizer.

    python benchmarks/pretokens_ablation.py [--collections a,b] [--tokenizers math,words,pya0] [--k1 1.2] [--b 0.9]

All tokenizers run with the same k1 and b. `p` is a paired randomisation test of nDCG' (nDCG@10 where a collection has
no judgements of 0) against the first tokenizer, two-sided, over queries.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd

from mirblab.evaluation import measures
from mirblab.retrieval import bm25
from mirblab.sources import catalogue

MEASURES = ("nDCG'", "AP'", "P'@10", "Bpref", "nDCG@10", "RR")


def randomised(one: np.ndarray, other: np.ndarray, seed: int = 0, n: int = 10_000) -> float:
    """Return the share of random swaps of two systems whose mean difference is as large as theirs, never 0."""
    differences = one - other
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), (n, len(differences)))
    reached = np.abs(signs @ differences) >= abs(differences.sum()) - 1e-12
    return (1 + reached.sum()) / (1 + n)


def main() -> None:
    """Print the means per collection and tokenizer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = "arqmath-2020-task1,arqmath-2021-task1,arqmath-2020-task2,stacks-qa,mse-dup"
    parser.add_argument("--collections", default=names)
    parser.add_argument("--tokenizers", default="math,words,mirb,pya0,pya0-wide,latex-ngrams")
    parser.add_argument("--k1", type=float, default=1.2)
    parser.add_argument("--b", type=float, default=0.9)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=measures.QueryWarning)
    print(f"Python {platform.python_version()}, mirblab {version('mirblab')}, k1 = {options.k1}, b = {options.b}")
    for name in options.collections.split(","):
        collection = catalogue.load(name)
        main_measure = "nDCG'" if (collection.qrels.relevance == 0).any() else "nDCG@10"
        print(f"\n{name}: {len(collection.corpus):,} documents, {len(collection.queries)} queries, p of {main_measure}")
        rows, first = {}, None
        for tokenizer in options.tokenizers.split(","):
            started = time.perf_counter()
            run = bm25.search(collection, depth=1000, k1=options.k1, b=options.b, tokenizer=tokenizer)
            seconds = time.perf_counter() - started
            values = measures.evaluate(run, collection, MEASURES)
            own = values[values.measure == main_measure].sort_values("query_id").value.to_numpy()
            first = own if first is None else first
            means = values.groupby("measure", sort=False, observed=True).value.mean()
            rows[tokenizer] = means.to_dict() | {"p": randomised(own, first), "s": seconds}
        print(pd.DataFrame.from_dict(rows, orient="index").to_string(float_format="%.3f"), flush=True)


if __name__ == "__main__":
    main()
