"""Approach0's scoring, ours beside the engine's: effectiveness on judged formulas, agreement, time.

    python benchmarks/approach0_compare.py [--collection arqmath-2020-task2] [--judged] [--scratch /dev/shm]

Both sides hold the same formulas: all of the collection, or with --judged those that have a judgement. Ours scores
every formula for every query and keeps the first 1,000, and re-ranks each query's judged documents alone (where the
engine's list has no say). The engine is pya0, an optional extra; its index is written to --scratch and removed.
Agreement is Spearman's rank correlation of the scores of the pairs that both returned, per query, then averaged.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.evaluation import measures
from mirblab.formula.approach0 import Approach0Scorer
from mirblab.sources import catalogue

MEASURES = ["nDCG'", "AP'", "P'@10", "Bpref"]


def rows(collection: Collection, query: int, places: np.ndarray, scores: np.ndarray) -> pd.DataFrame:
    """Return one query's part of a run."""
    return pd.DataFrame(
        {"query_id": collection.query_ids[query], "doc_id": collection.doc_ids[places], "score": scores}
    )


def ours(collection: Collection, places: np.ndarray, depth: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return our run over the formulas at *places*, and our run over each query's judged ones; prints the times."""
    start = time.perf_counter()
    scorer = Approach0Scorer([collection.texts[place] for place in places])
    print(f"mirblab: {len(scorer):,} formulas read in {time.perf_counter() - start:.1f} s")
    judged = collection.qrels.groupby("query_id", observed=True).doc_id.agg(set)
    own_ids = collection.doc_ids[places]
    whole, pools, seconds = [], [], []
    for query, text in enumerate(collection.query_texts):
        start = time.perf_counter()
        scores = scorer.score(text, np.arange(len(places)))
        seconds.append(time.perf_counter() - start)
        best = np.argsort(-scores, kind="stable")[:depth]
        whole.append(rows(collection, query, places[best[scores[best] > 0]], scores[best[scores[best] > 0]]))
        pool = np.flatnonzero(own_ids.isin(judged[collection.query_ids[query]]))
        pools.append(rows(collection, query, places[pool], scores[pool]))
    each = 1e6 * np.sum(seconds) / (len(places) * len(seconds))
    print(f"mirblab: a query over all of them {np.mean(seconds):.2f} s, {each:.0f} microseconds a pair")
    return runs.order_run(pd.concat(whole)), runs.order_run(pd.concat(pools))


def theirs(collection: Collection, places: np.ndarray, depth: int, folder: str) -> pd.DataFrame:
    """Return the engine's run over the formulas at *places*; prints the times and what it cannot parse."""
    import pya0

    start = time.perf_counter()
    index = pya0.index_open(f"{folder}/index", option="w")
    writer = pya0.index_writer(index)
    known = {}
    for place in places:
        number = pya0.writer_add_doc(writer, f"[imath]{collection.texts[place]}[/imath]")
        known[number] = place
        if len(known) % 1000 == 0:
            pya0.writer_maintain(writer, force=True)
    pya0.writer_maintain(writer, force=True)
    pya0.writer_flush(writer)
    pya0.writer_close(writer)
    pya0.index_close(index)
    print(f"pya0: {len(places):,} formulas indexed in {time.perf_counter() - start:.1f} s")
    index = pya0.index_open(f"{folder}/index", option="r")
    found, seconds = [], []
    for query, text in enumerate(collection.query_texts):
        start = time.perf_counter()
        answer = json.loads(pya0.search(index, [{"str": text, "type": "tex"}], topk=depth, verbose=False))
        seconds.append(time.perf_counter() - start)
        hits = answer.get("hits", [])
        at = np.array([known[hit["docid"]] for hit in hits], np.int64)
        found.append(rows(collection, query, at, np.array([hit["score"] for hit in hits], np.float32)))
    pya0.index_close(index)
    print(
        f"pya0: a query {1000 * np.mean(seconds):.1f} ms; {sum(len(part) == 0 for part in found)} queries without a hit"
    )
    return runs.order_run(pd.concat([part for part in found if len(part)]))


def show(name: str, run: pd.DataFrame, collection: Collection) -> None:
    """Print the mean of each measure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", measures.QueryWarning)
        values = measures.evaluate(run, collection, MEASURES)
    means = values.groupby("measure").value.mean()
    print(f"{name:34}" + "".join(f"{measure:>8} {means[measure]:.4f}" for measure in MEASURES))


def agreement(engine: pd.DataFrame, own: pd.DataFrame) -> tuple[float, int]:
    """Return the mean of the queries' rank correlations, and the number of pairs that both runs have."""
    keys = ["query_id", "doc_id"]
    both = engine.astype({key: str for key in keys}).merge(
        own.astype({key: str for key in keys}), on=keys, suffixes=("", "_own")
    )
    parts = [
        part.score.corr(part.score_own, method="spearman") for _, part in both.groupby("query_id") if len(part) > 9
    ]
    return float(np.nanmean(parts)), len(both)


def main() -> None:
    """Run both sides and print their numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collection", default="arqmath-2020-task2")
    parser.add_argument("--judged", action="store_true", help="only formulas that have a judgement")
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--scratch", default="/dev/shm" if Path("/dev/shm").is_dir() else None)
    given = parser.parse_args()
    collection = catalogue.load(given.collection)
    places = np.flatnonzero([bool(text) for text in collection.texts])
    if given.judged:
        places = places[collection.doc_ids[places].isin(set(collection.qrels.doc_id))]
    print(f"python {platform.python_version()}, numpy {np.__version__}; {collection!r}")
    whole, pools = ours(collection, places, given.depth)
    show("mirblab, all formulas", whole, collection)
    show("mirblab, each query's judged ones", pools, collection)
    try:
        import pya0  # noqa: F401
    except ImportError:
        print("pya0 is not installed: pip install pya0 (Linux x86-64)")
        return
    with tempfile.TemporaryDirectory(dir=given.scratch) as folder:
        engine = theirs(collection, places, given.depth, folder)
    show("pya0, all formulas", engine, collection)
    share, n_pairs = agreement(engine, whole)
    print(f"Spearman's correlation of the scores of {n_pairs:,} pairs that both returned: {share:.3f}")


if __name__ == "__main__":
    main()
