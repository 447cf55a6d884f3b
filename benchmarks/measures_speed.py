"""Compare the CPU time of `lab.evaluate` with pytrec_eval, ir_measures and ranx on one large run.

    python benchmarks/measures_speed.py            # 25,116 queries by 1,000 documents, 40 judgements each
    python benchmarks/measures_speed.py --quick    # 1,000 queries

All tools get the same run and judgements and give nDCG@10, AP, P@10, Bpref and RR per query. They take turns; the
median of the rounds counts. The others begin with dicts in memory, which is their best case; building those is
timed beside it. mirblab begins with the run table, in order as a system returns it or shuffled, and ends with the
table of values. CPU seconds of the process, since wall time depends on who else works on the machine.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import platform
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mirblab.data.runs import from_positions  # noqa: E402
from mirblab.evaluation.measures import evaluate  # noqa: E402

MEASURES = {"nDCG@10": "ndcg_cut_10", "AP": "map", "P@10": "P_10", "Bpref": "bpref", "RR": "recip_rank"}
RANX = ["ndcg@10", "map", "precision@10", "bpref", "mrr"]


def make(n_queries: int, depth: int, n_judged: int, n_docs: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a run and qrels over shared ids: half of each query's judgements are returned, grades 0 to 3."""
    generator = np.random.default_rng(seed)
    query_ids = pd.Index([f"q{number:06}" for number in range(n_queries)])
    doc_ids = pd.Index([f"d{number:07}" for number in range(n_docs)])
    # A walk through all documents with a step that shares no factor with their number never repeats one.
    step = next(step for step in range(n_docs // 3 + 1, n_docs) if np.gcd(step, n_docs) == 1)
    begin = generator.integers(0, n_docs, n_queries)[:, None]
    walk = (begin + np.arange(depth + n_judged)[None, :] * step) % n_docs
    scores = np.sort(generator.random((n_queries, depth), dtype=np.float32), axis=1)[:, ::-1]
    rows = np.repeat(np.arange(n_queries, dtype=np.int32), depth)
    run = from_positions(rows, walk[:, :depth].ravel(), scores.ravel(), query_ids, doc_ids, "made", "made")
    half = n_judged // 2
    near = np.argsort(generator.random((n_queries, depth), dtype=np.float32), axis=1)[:, :half]
    judged = np.concatenate([np.take_along_axis(walk, near, axis=1), walk[:, depth : depth + n_judged - half]], axis=1)
    judged.sort(axis=1)
    qrels = pd.DataFrame(
        {
            "query_id": pd.Categorical.from_codes(np.repeat(np.arange(n_queries), n_judged), query_ids),
            "doc_id": pd.Categorical.from_codes(judged.ravel(), doc_ids),
            "relevance": generator.choice(4, judged.size, p=[0.6, 0.2, 0.1, 0.1]),
        }
    )
    return run, qrels


def as_dicts(table: pd.DataFrame, column: str) -> dict[str, dict[str, float]]:
    """Return {query_id: {doc_id: number}}, what the other tools read; rows are grouped by query."""
    names = table.doc_id.cat.categories.to_list()
    codes, numbers = table.doc_id.cat.codes.to_numpy(), table[column].to_numpy()
    bounds = np.flatnonzero(np.diff(table.query_id.cat.codes.to_numpy(), prepend=-1)).tolist() + [len(table)]
    queries = table.query_id.cat.categories[table.query_id.cat.codes.to_numpy()[bounds[:-1]]]
    return {
        query: dict(zip([names[code] for code in codes[a:b].tolist()], numbers[a:b].tolist(), strict=True))
        for query, a, b in zip(queries, bounds[:-1], bounds[1:], strict=True)
    }


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """Return the CPU seconds that *work* takes, and its result; rubbish is collected before."""
    gc.collect()
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def peak() -> float:
    """Return the largest memory that this process has held, in GiB."""
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def contenders(
    run: pd.DataFrame, qrels: pd.DataFrame, arguments: argparse.Namespace
) -> dict[str, Callable[[], object]]:
    """Return what takes turns, by name; prints what the preparation of each costs."""
    shuffled = run.sample(frac=1, random_state=arguments.seed)
    foreign = run.assign(doc_id=run.doc_id.cat.remove_unused_categories())
    work: dict[str, Callable[[], object]] = {
        "mirblab, in order": lambda: evaluate(run, qrels, list(MEASURES)),
        "mirblab, other categories": lambda: evaluate(foreign, qrels, list(MEASURES)),
        "mirblab, shuffled": lambda: evaluate(shuffled, qrels, list(MEASURES)),
    }
    timed(work["mirblab, in order"])
    size = run.memory_usage(index=False).sum() / 2**30
    print(f"peak memory with mirblab alone: {peak():.2f} GiB; the run: {size:.2f} GiB")
    if arguments.only_mirblab:
        return work
    import ir_measures
    import pytrec_eval

    seconds, dicts = timed(lambda: (as_dicts(run, "score"), as_dicts(qrels, "relevance")))
    print(f"building the dicts of run and qrels: {seconds:.2f} CPU-s; peak memory {peak():.2f} GiB")
    gc.freeze()  # millions of small objects would be looked at again in every collection, whoever is timed
    scores, grades = dicts
    names = set(MEASURES.values())
    work["pytrec_eval, from dicts"] = lambda: pytrec_eval.RelevanceEvaluator(grades, names).evaluate(scores)
    asked = [ir_measures.parse_measure(name) for name in MEASURES]
    work["ir_measures iter_calc, from dicts"] = lambda: list(ir_measures.iter_calc(asked, grades, scores))
    if arguments.ranx:
        import ranx

        seconds, made = timed(lambda: (ranx.Qrels(grades), ranx.Run(scores)))
        print(f"ranx, making Qrels and Run: {seconds:.2f} CPU-s, compilation included")
        work["ranx evaluate, ready objects"] = lambda: ranx.evaluate(*made, RANX, return_mean=False)
    return work


def difference(ours: pd.DataFrame, theirs: dict[str, dict[str, float]]) -> float:
    """Return the largest difference from pytrec_eval over all queries and measures."""
    wide = {name: part.value.to_numpy() for name, part in ours.groupby("measure", observed=True)}
    queries = ours.query_id.cat.categories
    return max(
        float(np.abs(wide[name] - np.array([theirs[query][other] for query in queries])).max())
        for name, other in MEASURES.items()
    )


def main() -> None:
    """Measure, and print a table with the ratio to mirblab."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=25_116)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--judged", type=int, default=40)
    parser.add_argument("--docs", type=int, default=1_350_505)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="1,000 queries")
    parser.add_argument("--ranx", action="store_true", help="also ranx, which compiles for a minute")
    parser.add_argument("--only-mirblab", action="store_true", help="no other tool, for working on our own code")
    arguments = parser.parse_args()
    n_queries = 1000 if arguments.quick else arguments.queries
    warnings.simplefilter("ignore")
    packages = ["numpy", "pandas", "pytrec-eval-terrier", "ir-measures", "ranx"]
    print(f"Python {platform.python_version()},", ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages))
    size = f"{n_queries:,} queries by {arguments.depth:,} documents of {arguments.docs:,}"
    print(f"{size}, {arguments.judged} judgements each")
    run, qrels = make(n_queries, arguments.depth, arguments.judged, arguments.docs, arguments.seed)
    work = contenders(run, qrels, arguments)
    spent: dict[str, list[float]] = {name: [] for name in work}
    results: dict[str, object] = {}
    for number in range(arguments.rounds + 1):  # the first round warms up
        for name, do in work.items():
            seconds, results[name] = timed(do)
            if number:
                spent[name].append(seconds)
    ours = float(np.median(spent["mirblab, in order"]))
    for name, seconds in spent.items():
        middle = float(np.median(seconds))
        print(f"{name:36} {middle:8.3f} CPU-s ({min(seconds):.3f} to {max(seconds):.3f})   {middle / ours:6.1f} x")
    if not arguments.only_mirblab:
        for name in (name for name in work if name.startswith("mirblab")):
            found = difference(results[name], results["pytrec_eval, from dicts"])
            print(f"{name}: largest difference from pytrec_eval, per query {found:.1e}")
    print(f"peak memory {peak():.2f} GiB")


if __name__ == "__main__":
    main()
