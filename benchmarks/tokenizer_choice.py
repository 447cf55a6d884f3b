"""tokenizer_choice: which tokens BM25 should see, measured on real collections.

    python benchmarks/tokenizer_choice.py [--data FOLDER] [--collections a,b] [--variants "x;y"] [--split test]

FOLDER holds collections in BEIR's layout (default: `data` in MIRBLAB_SHARED). `--split dev` takes the development
split where there is one and leaves the other collections out: choose there, report on test.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import ir_measures
import numpy as np
import pandas as pd
from ir_measures import R, nDCG

from mirblab.data import runs
from mirblab.data.candidates import Candidates, EarlierRule, ListRule, NotSelfRule
from mirblab.data.collection import Collection, load_folder
from mirblab.retrieval import tokenizers
from mirblab.retrieval.bm25 import TermIndex

# The rule that makes each collection fair; the folders carry no card.
RULES = {
    "stacks-qa": "",
    "stacks-premise": "not-self",
    "stacks-slogan": "",
    "blueprints": "",
    "mathcomp-premise": "earlier",
    "setmm": "earlier",
    "setmm-informal": "",
    "mse-dup": "",
    "arqmath-2020-task1": "judged",
    "arqmath-2021-task1": "judged",
    "arqmath-2021-task2": "judged",
    "ntcir12-wfb": "judged",
    "mathlib-informal": "",
}

math = tokenizers.math_tokens
VARIANTS = {
    "mirb": tokenizers.tokenizer("mirb"),
    "words": tokenizers.tokenizer("words"),
    "math": math,
    "math, no stemming": partial(math, stem=False),
    "math, stop words kept": partial(math, stop=False),
    "math, no single letters or digits": partial(math, letters=False),
    "math, no symbols": partial(math, symbols=False),
    "math, neither": partial(math, letters=False, symbols=False),
    "math, letters in lower case": partial(math, case=False),
    "math, parts only": partial(math, whole=False),
}


def fair(collection: Collection, rule: str) -> Collection:
    """Return the collection with its rule of candidates."""
    docs, asked, qrels = collection.corpus, collection.queries, collection.qrels
    if rule == "not-self":
        found = NotSelfRule(collection.doc_ids.get_indexer(asked.query_id))
    elif rule == "earlier":
        found = EarlierRule(docs["order"].to_numpy(np.int64), asked["order"].to_numpy(np.int64))
    elif rule == "judged":
        codes = [column.cat.codes.to_numpy().astype(np.int64) for column in (qrels.query_id, qrels.doc_id)]
        found = ListRule.from_pairs("judged", *codes, len(asked), allow=True)
    return replace(collection, candidates=Candidates(len(docs), (found,) if rule else ()))


def values(run: pd.DataFrame, collection: Collection, asked: pd.Index) -> tuple[float, float]:
    """Return nDCG@10 and R@100 over the queries *asked*; a query without an answer in the run counts 0."""
    qrels = collection.qrels[collection.qrels.query_id.isin(asked)].astype({"query_id": str, "doc_id": str})
    found = ir_measures.calc_aggregate([nDCG @ 10, R @ 100], qrels, run.astype({"query_id": str, "doc_id": str}))
    return found[nDCG @ 10], found[R @ 100]


def measure(folder: Path, name: str, split: str, variants: list[str], n: int, grid: list[tuple]) -> list[dict]:
    """Return one row per variant and (k1, b) of *grid*, over the first *n* queries."""
    collection = fair(load_folder(folder / name, split), RULES[name])
    asked = collection.query_ids[:n]
    rows = []
    for variant in variants:
        tick = time.process_time()
        documents = VARIANTS[variant](collection.texts)
        speed = len(documents) / (time.process_time() - tick)
        queries = VARIANTS[variant](collection.query_texts[:n])
        for k1, b in grid:
            index = TermIndex.build(documents, "lucene", k1, b, 0.5)
            allowed = collection.candidates.allowed if collection.candidates.rules else None
            found = index.search(queries, 100, allowed)
            run = runs.from_positions(*found, collection.query_ids, collection.doc_ids, variant, name)
            ndcg, recall = values(run, collection, asked)
            row = {"collection": name, "variant": variant, "k1": k1, "b": b, "docs/s": speed}
            rows.append(row | {"nDCG@10": ndcg, "R@100": recall})
    return rows


def main() -> None:
    """Print one table per measure: variants by collections, and the mean."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=str(Path(os.environ.get("MIRBLAB_SHARED", "../shared")) / "data"))
    parser.add_argument("--collections", default=",".join(RULES))
    parser.add_argument("--variants", default=";".join(VARIANTS), help="separated by semicolons")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--split", default="test")
    parser.add_argument("--k1", default="1.2")
    parser.add_argument("--b", default="0.75")
    given = parser.parse_args()
    grid = [(float(k1), float(b)) for k1 in given.k1.split(",") for b in given.b.split(",")]
    rows = []
    for name in given.collections.split(","):
        if (Path(given.data) / name / "qrels" / f"{given.split}.tsv").is_file():
            rows += measure(Path(given.data), name, given.split, given.variants.split(";"), given.queries, grid)
            print(f"{name} done", flush=True)
    table = pd.DataFrame(rows)
    for column in ("nDCG@10", "R@100"):
        wide = table.pivot_table(column, ["variant", "k1", "b"], "collection", sort=False)
        wide["mean"] = wide.mean(axis=1)
        print(f"\n{column}, {given.split}, at most {given.queries} queries\n{wide.round(3).to_string()}")
    means = table.groupby("variant", sort=False)[["nDCG@10", "R@100"]].mean()
    if {"mirb", "math"} <= set(means.index):
        cost = means.loc["math"] - means.loc["mirb"]
        print(f"\nmath against mirb, mean: {cost['nDCG@10']:+.3f} nDCG@10, {cost['R@100']:+.3f} R@100")
    speed = table.groupby("variant", sort=False)["docs/s"].median().round(-2)
    print(f"\nmedian documents per CPU-second: {speed.to_dict()}")


if __name__ == "__main__":
    main()
