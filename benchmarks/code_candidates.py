"""code_candidates: how many candidates codes need, and what a search by codes changes in the measures.

    python benchmarks/code_candidates.py [--encoder minilm] [--collections arqmath-2020-task2] [--sizes 10000 40000]
                                         [--queries 200]

For each collection of the home, the exact first 100 documents of so many queries are looked for among the best k by
an estimate, in samples of the corpus. Estimates: signs of both (Hamming distance); the query, in 4 bits, times the
signs of documents; this with RaBitQ's factor; the same after centring and a random rotation; and in two bits. The last
column is the k at which .99 of the documents are found. Then runs of 1,000 documents by exact search and by codes are
compared, whatever the size of the collection.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

import mirblab as lab
from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.encoders.encoding import Encoder, encoder
from mirblab.retrieval import codes

FIRST, KS = 100, (100, 200, 400, 1000, 2000, 4000, 8000)
MEASURES = ["nDCG@10", "AP", "R@100", "R@1000"]


def four_bits(queries: np.ndarray) -> np.ndarray:
    """Return the queries rounded to 16 levels each."""
    steps = np.abs(queries).max(axis=1, keepdims=True) / 15
    return (2 * np.clip(np.round((queries / steps + 15) / 2), 0, 15) - 15) * steps


def estimates(docs: np.ndarray, queries: np.ndarray) -> dict[str, np.ndarray]:
    """Return the estimates by name, (n_queries, n_docs)."""
    signs, centre = np.where(docs >= 0, 1, -1).astype(np.float32), docs[:10_000].mean(axis=0)
    factors = (docs**2).sum(axis=1) / np.abs(docs).sum(axis=1)
    products = four_bits(queries).astype(np.float32) @ signs.T
    found = {
        "signs of both": np.where(queries >= 0, 1, -1).astype(np.float32) @ signs.T,
        "query x sign": products,
        "with a factor": products * factors,
    }
    for bits in codes.BITS:
        made = codes.encode_vectors(docs, centre, bits)
        name = f"rotated, centred, {bits} bit" + "s" * (bits - 1)
        found[name] = codes.estimate_products(*made, *codes.quantise_queries(queries), docs.shape[1])
    return found


def print_recall(name: str, docs: np.ndarray, queries: np.ndarray) -> None:
    """Print a row per estimate: recall of the exact first documents by number of candidates."""
    exact = queries @ docs.T
    best = np.argpartition(-exact, FIRST, axis=1)[:, :FIRST]
    for what, found in estimates(docs, queries).items():
        found = -found
        ordered = np.sort(found, axis=1)
        own = np.take_along_axis(found, best, axis=1)
        ranks = np.stack([np.searchsorted(row, mine, "right") for row, mine in zip(ordered, own, strict=True)])
        values = " | ".join(f"{(ranks <= k).mean():.4f}" for k in KS)
        print(f"| {name} | {len(docs):,} | {what} | {values} | {int(np.quantile(ranks, 0.99)):,} |", flush=True)


def print_measures(c: Collection, model: Encoder, docs: np.ndarray, queries: np.ndarray) -> None:
    """Print a row per measure: by exact search, and by codes of each number of bits less that."""
    means = []
    for bits in (0, *codes.BITS):
        made: np.ndarray | codes.CodedVectors = docs
        if bits:
            folder = Path(os.environ["MIRBLAB_HOME"]) / "cache" / "codes" / f"benchmark-{bits}"
            made = codes.encode_collection(folder, model.space(), c.texts, bits, model.vectors)
        hits = codes.search(queries, made, depth=1000, candidates=c.candidates)
        run = runs.from_positions(*hits, c.query_ids, c.doc_ids, model.name, c.name)
        means.append(lab.mean(lab.evaluate(run, c, MEASURES)).set_index("measure").value)
    for measure in MEASURES:
        changes = " | ".join(f"{other[measure] - means[0][measure]:+.5f}" for other in means[1:])
        print(f"| {c.name} | {len(docs):,} | {measure} | {means[0][measure]:.4f} | {changes} |", flush=True)


def main() -> None:
    """Print both tables for each collection."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--collections", nargs="+", default=["arqmath-2020-task2"])
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 40_000])
    parser.add_argument("--queries", type=int, default=200)
    given = parser.parse_args()
    model = encoder(given.encoder)
    for name in given.collections:
        c = lab.load(name).sample(given.queries, 0)
        docs = model.vectors(c.texts, "document", c.card.instruction)
        queries = model.vectors(c.query_texts, "query", c.card.instruction)
        print(f"{name} by {model.name}: {len(docs):,} documents of {docs.shape[1]} dimensions, {len(queries)} queries")
        print("| collection | documents | estimate | " + " | ".join(f"{k:,}" for k in KS) + " | k for .99 |")
        print("|---" * (len(KS) + 4) + "|")
        random = np.random.default_rng(0)
        for size in sorted({min(size, len(docs)) for size in [*given.sizes, len(docs)]}):
            print_recall(name, docs[random.permutation(len(docs))[:size]], queries)
        print("\n| collection | documents | measure | exact | 1 bit | 2 bits |\n|---|---|---|---|---|---|")
        print_measures(c, model, docs, queries)


if __name__ == "__main__":
    main()
