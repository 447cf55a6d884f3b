"""dense_speed: exact search against the machine's matrix product and against faiss, sentence-transformers and torch.

    python benchmarks/dense_speed.py [--docs 1000000] [--queries 1000] [--dims 384] [--depth 100] [--rounds 3]

Everything runs in one interleaved session: each round times a 2048 x 2048 sgemm (on one thread, on all, and one
product per thread at once), then every method once. Shares are of the peak of the same round; medians are printed
with their range. CPU-s count all threads and suffer less from other load than wall time.
"""

from __future__ import annotations

import argparse
import importlib.util
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import numpy as np
from threadpoolctl import threadpool_limits

from mirblab.core.processes import n_cores
from mirblab.retrieval import dense

SIDE = 2048


def unit_vectors(n: int, dims: int, seed: int) -> np.ndarray:
    """Return random unit vectors (n, dims), made in place, 50,000 rows at a time."""
    random = np.random.default_rng(seed)
    vectors = np.empty((n, dims), dtype=np.float32)
    for start in range(0, n, 50_000):
        random.standard_normal(out=vectors[start : start + 50_000], dtype=np.float32)
        vectors[start : start + 50_000] = dense.normalise(vectors[start : start + 50_000])
    return vectors


def timed(function: Callable[[], object]) -> tuple[float, float]:
    """Return wall seconds and CPU-seconds of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall, time.process_time() - cpu


def peak(matrix: np.ndarray, threads: int, each: bool = False) -> tuple[float, float]:
    """Return GF/s of wall and of CPU time: one product on *threads*, or one per thread with *each*."""
    with threadpool_limits(1 if each else threads, "blas"), ThreadPoolExecutor(threads) as pool:
        products = threads if each else 1
        spent = timed(lambda: list(pool.map(lambda _: matrix @ matrix, range(products))))
    return products * 2 * SIDE**3 / 1e9 / spent[0], products * 2 * SIDE**3 / 1e9 / spent[1]


def torch_blocks(queries: np.ndarray, docs: np.ndarray, depth: int) -> Callable[[], object]:
    """Return an exact search by torch over blocks of 50,000 documents."""
    import torch

    left, right = torch.from_numpy(queries), torch.from_numpy(docs)

    def search() -> tuple:
        best = None
        for start in range(0, len(right), 50_000):
            scores, places = torch.topk(left @ right[start : start + 50_000].T, min(depth, len(right) - start), dim=1)
            found = (scores, places + start)
            if best is not None:
                both = [torch.cat(pair, dim=1) for pair in zip(best, found, strict=True)]
                scores, kept = torch.topk(both[0], depth, dim=1)
                found = (scores, both[1].gather(1, kept))
            best = found
        return best

    return search


def methods(queries: np.ndarray, docs: np.ndarray, depth: int, threads: int) -> dict[str, Callable[[], object]]:
    """Return what is compared, by name."""
    found = {
        "mirblab": lambda: dense.search(queries, docs, depth=depth, threads=threads),
        "mirblab, 1 thread": lambda: dense.search(queries, docs, depth=depth, threads=1),
        "torch, blocks of 50,000": torch_blocks(queries, docs, depth),
    }
    if importlib.util.find_spec("sentence_transformers"):
        from sentence_transformers.util import dot_score, semantic_search

        found["sentence-transformers semantic_search"] = lambda: semantic_search(
            queries, docs, top_k=depth, score_function=dot_score
        )
    if importlib.util.find_spec("faiss"):
        import faiss

        index = faiss.IndexFlatIP(docs.shape[1])
        index.add(docs)
        found["faiss IndexFlatIP"] = lambda: index.search(queries, depth)
    return found


def agreement(queries: np.ndarray, docs: np.ndarray, depth: int) -> float:
    """Return the share of documents in common with a full sort, over 20 queries."""
    rows, positions, _ = dense.search(queries[:20], docs, depth=depth)
    expected = [set(np.argsort(-(docs @ query))[:depth].tolist()) for query in queries[:20]]
    return float(np.mean([len(own & set(positions[rows == row].tolist())) / depth for row, own in enumerate(expected)]))


def main() -> None:
    """Print one line per method: seconds, GF/s, and shares of the peak."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, usual in (("docs", 1_000_000), ("queries", 1000), ("dims", 384), ("depth", 100), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--only", default="", help="methods, separated by semicolons")
    given = parser.parse_args()
    threads = n_cores()
    names = ("numpy", "torch", "sentence-transformers", "faiss-cpu")
    versions = {
        name: version(name) for name in names if importlib.util.find_spec(name.split("-cpu")[0].replace("-", "_"))
    }
    print(f"python {platform.python_version()}, {versions}, {threads} cores")
    docs, queries = unit_vectors(given.docs, given.dims, 0), unit_vectors(given.queries, given.dims, 1)
    matrix = np.random.default_rng(2).standard_normal((SIDE, SIDE)).astype(np.float32)
    work = 2 * given.docs * given.queries * given.dims / 1e9
    compared = methods(queries, docs, given.depth, threads)
    compared = {name: run for name, run in compared.items() if not given.only or name in given.only.split(";")}
    print(f"{given.queries:,} queries x {given.docs:,} x {given.dims}, top {given.depth}: {work:,.0f} GFLOP")
    print(f"share of the true top {given.depth} found: {agreement(queries, docs, given.depth):.4f}")
    for _ in range(2):
        peak(matrix, threads)
    rounds: dict[str, list[tuple[float, ...]]] = {name: [] for name in compared}
    for number in range(given.rounds):
        for name, run in compared.items():
            one, every, apart = peak(matrix, 1), peak(matrix, threads), peak(matrix, threads, each=True)
            wall, cpu = timed(run)
            used = 1 if "1 thread" in name else threads
            best = one[0] if used == 1 else max(every[0], apart[0])
            rounds[name].append((wall, cpu, work / wall, work / wall / best, work / cpu / one[1]))
            print(
                f"round {number + 1}: sgemm {one[0]:.0f} / {every[0]:.0f} / {apart[0]:.0f} GF/s; {name} {wall:.2f} s",
                flush=True,
            )
    print("\n| method | s | CPU-s | GF/s | share of the sgemm peak | range | share per CPU-s |")
    print("|---|---|---|---|---|---|---|")
    for name, rows in rounds.items():
        wall, cpu, speed, share, per_cpu = np.median(rows, axis=0)
        low, high = np.min(rows, axis=0)[3], np.max(rows, axis=0)[3]
        print(
            f"| {name} | {wall:.2f} | {cpu:.2f} | {speed:.0f} | {share:.0%} | {low:.0%} to {high:.0%} | {per_cpu:.0%} |"
        )
    if "mirblab" in rounds and len(rounds) > 1:
        peers = {name: np.median(rows, axis=0)[0] for name, rows in rounds.items() if not name.startswith("mirblab")}
        for name, wall in peers.items():
            print(f"mirblab against {name}: {wall / np.median(rounds['mirblab'], axis=0)[0]:.2f} times as fast")


if __name__ == "__main__":
    main()
