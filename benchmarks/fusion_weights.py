"""fusion_weights: is a fusion as effective as its better part, on collections that did not choose its weights?

    python benchmarks/fusion_weights.py [--data FOLDER] [--collections a,b] [--queries 200] [--documents 1200]
                                       [--weights 0.235,0.765]

FOLDER holds collections in BEIR's layout (default: `data` in MIRBLAB_SHARED), of which a part is taken: --queries of
them, what was judged for these, and other documents up to --documents. The bundled collections are taken whole, and
choose no weights, since they are no samples of what people search.

Weights are chosen for each collection on all others of FOLDER, by the best mean of nDCG@10 or by the best worst
difference to the better part; and once on the four of LEARNT_ON, by the worst difference: these are shipped, and
--weights measures them, or others, alone. What was built (mirblab build views) is taken from MIRBLAB_HOME. Each
fusion is compared with the better part by a paired permutation test, with Holm's correction over the collections of
FOLDER, and over the bundled ones.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from tokenizer_choice import RULES, fair

from mirblab.core import paths
from mirblab.data.candidates import Candidates
from mirblab.data.collection import Collection, load_folder
from mirblab.evaluation.measures import QueryWarning, evaluate
from mirblab.evaluation.significance import holm, permutation_test
from mirblab.retrieval import fusion
from mirblab.retrieval.fusion import weight_grid
from mirblab.retrieval.systems import system
from mirblab.sources import catalogue

BUNDLED = (
    "mini-mathlib", "mini-mse-dup", "mini-mo-dup", "mini-qa", "mini-proofwiki", "mini-stacks", "mini-premises",
    "mini-lean", "mini-isabelle", "mini-hol", "mini-wfb", "mini-formula", "mini-blueprint",
)  # fmt: skip
LEARNT_ON = ("mse-dup", "blueprints", "stacks-slogan", "setmm-informal")  # MiniLM leads, BM25 leads, and in between
OTHER_RULES = {"arqmath-2020-task2": "judged", "views-signature-informal": ""}  # as RULES, of other collections
MEASURE = "nDCG@10"
Measured = Mapping[str, Mapping[str, np.ndarray]]  # by collection: values by part, "rrf", and "grid"
FORMULAS = 0.5  # share of the queries with a result by structure from which on a collection is one of formulas


def cut(collection: Collection, n_queries: int, n_documents: int, rule: str) -> Collection:
    """Return *n_queries* queries, what was judged for them, and other documents up to *n_documents*, drawn by text.

    Where only judged documents are candidates, there are no others. Samples of two collections with the same documents
    have most of them in common, so that these are encoded once.
    """
    asked = collection.sample(n_queries)
    keys = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in asked.texts]
    is_judged = np.isin(np.arange(len(keys)), asked.qrels.doc_id.cat.codes)
    others = [place for place in sorted(range(len(keys)), key=keys.__getitem__) if not is_judged[place]]
    n_others = 0 if rule == "judged" else max(n_documents - int(is_judged.sum()), 0)
    kept = np.sort(np.concatenate([np.flatnonzero(is_judged), np.array(others[:n_others], dtype=np.int64)]))
    corpus = asked.corpus.iloc[kept].reset_index(drop=True)
    ids = pd.Index(corpus.doc_id, name=None)
    qrels = asked.qrels.assign(doc_id=pd.Categorical(asked.qrels.doc_id.astype("str"), ids))
    small = replace(asked, corpus=corpus, qrels=qrels, candidates=Candidates(len(corpus), ()), oddities={})
    return fair(small, rule)


def values(run: pd.DataFrame, collection: Collection) -> np.ndarray:
    """Return the value of each judged query, sorted by id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QueryWarning)
        return evaluate(run, collection, [MEASURE]).sort_values("query_id").value.to_numpy()


def measure(collection: Collection, parts: Sequence[str], grid: np.ndarray) -> dict[str, np.ndarray] | None:
    """Return the values of each part, of reciprocal ranks, and of each row of weights ("grid": queries × weights)."""
    runs = [system(part).search(collection) for part in parts]
    if any(run.query_id.nunique() < FORMULAS * len(collection.query_ids) for run in runs):
        return None  # queries without formulas
    table = {part: values(run, collection) for part, run in zip(parts, runs, strict=True)}
    table["rrf"] = values(fusion.rrf(runs), collection)
    columns = [values(fusion.linear(runs, weights), collection) for weights in grid]
    return table | {"grid": np.stack(columns, axis=1)}


def best_weights(measured: Measured, parts: Sequence[str], names: Sequence[str], criterion: str) -> int:
    """Return the row of weights whose mean or least difference to the better part, over collections, is the largest."""
    differences = [
        measured[name]["grid"].mean(axis=0) - max(measured[name][part].mean() for part in parts) for name in names
    ]
    return int({"mean": np.mean, "worst": np.min}[criterion](differences, axis=0).argmax())


def compare(measured: Measured, parts: Sequence[str], grid: np.ndarray) -> pd.DataFrame:
    """Return one row per collection and fusion: its mean, that of the better part, difference, p and Holm's p."""
    real = [name for name in measured if name not in BUNDLED]
    rows = []
    for name, table in measured.items():
        better = max(parts, key=lambda part: table[part].mean())
        others = [other for other in real if other != name]
        chosen = {f"weights of the others, {criterion}": (others, criterion) for criterion in ("mean", "worst")}
        chosen["weights of four, worst"] = ([each for each in LEARNT_ON if each in measured], "worst")
        if len(grid) == 1:
            chosen = {"given weights": (real, "mean")}
        candidates: dict[str, tuple[str, np.ndarray]] = {"reciprocal ranks": ("", table["rrf"])}
        for label, (names, criterion) in chosen.items():
            if names:
                row = best_weights(measured, parts, names, criterion)
                candidates[label] = (", ".join(f"{weight:.2f}" for weight in grid[row]), table["grid"][:, row])
        for label, (weights, own) in candidates.items():
            row = {"fusion": label, "collection": name, "bundled": name in BUNDLED, "queries": len(own)}
            row |= {part: table[part].mean() for part in parts}
            row |= {"weights": weights, "fused": own.mean(), **significance(own, table[better])}
            rows.append(row)
    found = pd.DataFrame(rows)
    found["p_holm"] = found.groupby(["fusion", "bundled"]).p.transform(holm)
    return found


def significance(fused: np.ndarray, better: np.ndarray) -> dict[str, float]:
    """Return the mean difference of two systems over the same queries, and its p."""
    frame = pd.DataFrame({"fused": fused, "better": better}).rename_axis("query_id")
    frame.index = frame.index.map("{:06d}".format)
    long = frame.reset_index().melt("query_id", var_name="system").assign(collection="c", measure=MEASURE)
    return permutation_test(long, MEASURE, baseline="better").iloc[0][["difference", "p"]].to_dict()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says which collections are taken, and how much of them."""
    parser.add_argument("--data", default=str(Path(os.environ.get("MIRBLAB_SHARED", "../shared")) / "data"))
    parser.add_argument("--collections", default=",".join([*BUNDLED, *RULES, *OTHER_RULES]))
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--documents", type=int, default=1200)


def load_collections(given: argparse.Namespace) -> list[Collection]:
    """Return the bundled collections whole and the others in part; those that were built here need no folder."""
    collections, rules = list[Collection](), {**RULES, **OTHER_RULES}
    for name in given.collections.split(","):
        folder = Path(given.data) / name
        folder = folder if folder.is_dir() else paths.data() / name
        if name in BUNDLED:
            collections.append(catalogue.load(name))
        elif folder.is_dir():
            collections.append(cut(load_folder(folder), given.queries, given.documents, rules[name]))
        print(name, flush=True)
    return collections


def main() -> None:
    """Print how each fusion compares with its better part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--parts", default="bm25,minilm", help="of each fusion; semicolons between fusions")
    parser.add_argument("--weights", default="", help="these alone, such as 0.235,0.765; nothing is chosen")
    given = parser.parse_args()
    collections = load_collections(given)
    for fused in given.parts.split(";"):
        parts = fused.split(",")
        grid = weight_grid(len(parts))
        if given.weights:
            grid = np.array([[float(weight) for weight in given.weights.split(",")]])
        grid = grid[:: max(len(grid) // 50, 1)]  # three parts: some of the weights, as each takes seconds
        results = {collection.name: measure(collection, parts, grid) for collection in collections}
        measured = {name: table for name, table in results.items() if table}
        for label, rows in compare(measured, parts, grid).groupby("fusion", sort=False):
            print(f"\n{' + '.join(parts)}, {label}\n{rows.drop(columns='fusion').round(4).to_string(index=False)}")
            below = rows[(rows.difference < 0) & (rows.p_holm <= 0.05)].collection.tolist()
            print(f"significantly below the better part: {', '.join(below) or 'none'}", flush=True)


if __name__ == "__main__":
    main()
