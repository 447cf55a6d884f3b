"""fusion_speed: runs fused by every method, and weights cross-validated, against ranx.

    python benchmarks/fusion_speed.py [--queries 25000] [--depth 1000] [--parts 3] [--docs 100000] [--ranx 200]

ranx keeps runs as dictionaries, which do not hold 75 million rows in 16 GB, so it gets the first --ranx queries, and so
does mirblab beside it; both sides start from ready objects, ranx after a first call that compiles. The scores of
both are compared. CPU-s count all threads.
"""

from __future__ import annotations

import argparse
import importlib.util
import platform
import resource
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import pandas as pd

from mirblab.data import runs
from mirblab.retrieval import fusion

RANX = {"rrf": "rrf", "borda": "bordafuse", "isr": "isr", "combsum": "sum", "combmnz": "mnz"}


def random_run(n_queries: int, depth: int, n_docs: int, seed: int) -> pd.DataFrame:
    """Return a run of *depth* distinct documents per query: about a third of them are in another such run, too.

    No scores are equal, since ranx has its own way with ties.
    """
    rng = np.random.default_rng(seed)
    near = min(n_docs, 3 * depth)
    start = np.random.default_rng(0).integers(0, n_docs - near + 1, n_queries)
    docs = np.concatenate([first + rng.permutation(near)[:depth] for first in start]).astype(np.int32)
    scores = rng.permuted(np.tile(np.arange(min(depth, near), dtype=np.float32), (n_queries, 1)), axis=1).ravel()
    queries = np.repeat(np.arange(n_queries, dtype=np.int32), min(depth, near))
    ids = [pd.Index([f"{letter}{number:07}" for number in range(n)], dtype="str")
           for letter, n in (("q", n_queries), ("d", n_docs))]  # fmt: skip
    return runs.from_positions(queries, docs, scores, *ids, f"s{seed}", "random")


def timed(function: Callable[[], object]) -> tuple[object, float, float]:
    """Return what a call gives, its wall seconds and its CPU-seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = function()
    return found, time.perf_counter() - wall, time.process_time() - cpu


def fuse(name: str, parts: list[pd.DataFrame], depth: int | None) -> pd.DataFrame:
    """Return the fusion by a method, with equal weights where it wants some."""
    more = {"weights": [1 / len(parts)] * len(parts)} if name in ("linear", "sum") else {}
    return fusion.fuse(parts, name, depth, **more)


def as_ranx(run: pd.DataFrame) -> object:
    """Return a run as ranx has it."""
    from ranx import Run

    groups = run.astype({"query_id": "str", "doc_id": "str", "score": float}).groupby("query_id")
    return Run({str(query): dict(zip(rows.doc_id, rows.score, strict=True)) for query, rows in groups})


def against_ranx(parts: list[pd.DataFrame], n_queries: int) -> None:
    """Print seconds of both for each method that ranx has, and the largest difference of scores."""
    import ranx

    few = [part[part.query_id.cat.codes.to_numpy() < n_queries].reset_index(drop=True) for part in parts]
    theirs = [as_ranx(part) for part in few]
    print(f"\nthe first {n_queries:,} queries\n\n| method | mirblab, s | ranx, s | times | largest difference |")
    print("|---|---|---|---|---|")
    for name, other in RANX.items():
        norm = "min-max" if name.startswith("comb") else None
        work = lambda norm=norm, other=other: ranx.fuse(theirs, norm=norm, method=other)  # noqa: E731
        work()
        found, wall, _ = timed(work)
        own, mine, _ = timed(lambda name=name: fuse(name, few, None))
        known = found.to_dict() if hasattr(found, "to_dict") else found.run
        expected = [known[query][doc] for query, doc in zip(own.query_id, own.doc_id, strict=True)]
        apart = np.abs(own.score.to_numpy(float) - expected).max()
        print(f"| {name} | {mine:.2f} | {wall:.2f} | {wall / mine:.1f} | {apart:.1e} |", flush=True)


def tuned(parts: list[pd.DataFrame]) -> None:
    """Print how long weights take, with 20 random judgements for each query."""
    first = parts[0]
    judged = first[first["rank"] % max(1, first["rank"].max() // 20) == 0][["query_id", "doc_id"]]
    judged = judged.assign(relevance=np.random.default_rng(1).integers(0, 3, len(judged)))
    for measure in ("nDCG'", "nDCG@10"):
        run, wall, cpu = timed(lambda measure=measure: fusion.cross_validated(parts[:2], judged, measure, depth=1000))
        print(f"cross-validated weights of two parts by {measure}: {wall:.1f} s, {cpu:.1f} CPU-s, {len(run):,} rows")


def main() -> None:
    """Print one line per method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, usual in (("queries", 25_000), ("depth", 1000), ("parts", 3), ("docs", 100_000), ("ranx", 200)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    given = parser.parse_args()
    has_ranx = given.ranx and importlib.util.find_spec("ranx")
    versions = {name: version(name) for name in ("numpy", "pandas", *(["ranx"] if has_ranx else []))}
    print(f"python {platform.python_version()}, {versions}")
    parts = [random_run(given.queries, given.depth, given.docs, seed + 1) for seed in range(given.parts)]
    n_rows = sum(map(len, parts))
    print(f"{given.queries:,} queries, {given.parts} parts, {n_rows:,} rows\n\n| method | s | CPU-s | rows per CPU-s |")
    print("|---|---|---|---|")
    for name in fusion.METHODS:
        _, wall, cpu = timed(lambda name=name: fuse(name, parts, given.depth))
        print(f"| {name} | {wall:.1f} | {cpu:.1f} | {n_rows / cpu / 1e6:.1f} million |", flush=True)
    tuned(parts)
    print(f"largest memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB")
    if has_ranx:
        against_ranx(parts, min(given.ranx, given.queries))


if __name__ == "__main__":
    main()
