"""bm25_speed: queries per second of BM25, ours against bm25s (numpy, numba) and rank-bm25, on the same tokens.

    python benchmarks/bm25_speed.py [--docs 100000] [--queries 512] [--depth 1000] [--rounds 3] [--words 50]
    python benchmarks/bm25_speed.py --collection FOLDER      real text instead of a synthetic Zipf corpus

Methods are interleaved, warmed once, and timed over the same queries (rank-bm25: the first five, and only up to 20,000
documents); medians with their range. Indexing is timed apart. The scores of ours and of bm25s are compared.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np

from mirblab.core.processes import n_cores
from mirblab.data.collection import load_folder
from mirblab.retrieval import tokenizers
from mirblab.retrieval.bm25 import TermIndex

RANK_BM25_DOCS = 20_000


def synthetic(docs: int, queries: int, words: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return documents (gamma lengths, mean about 100 words) and queries, words from one Zipf law over 8,000."""
    random = np.random.default_rng(0)
    chance = 1 / np.arange(1, 8001)
    names = np.array([f"w{number}" for number in range(8000)], dtype=object)

    def texts(lengths: np.ndarray) -> list[list[str]]:
        drawn = names[random.choice(8000, lengths.sum(), p=chance / chance.sum())]
        return [part.tolist() for part in np.split(drawn, np.cumsum(lengths)[:-1])]

    lengths = np.maximum(random.gamma(1.6, 62, docs).astype(int), 5)
    return texts(lengths), texts(np.full(queries, words))


def real(folder: str, queries: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return the tokens of a collection on disk, queries repeated up to the number asked for."""
    collection = load_folder(folder)
    asked = tokenizers.math_tokens(collection.query_texts)
    return tokenizers.math_tokens(collection.texts), (asked * (1 + queries // len(asked)))[:queries]


def timed(function: Callable[[], object]) -> tuple[float, float, object]:
    """Return wall seconds, CPU-seconds and the result of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def main() -> None:
    """Print one line per method: queries per second of wall and of CPU time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = (("docs", 100_000), ("queries", 512), ("depth", 1000), ("rounds", 3), ("words", 50))
    for name, usual in sizes:
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--collection", default="", help="a folder, or a name under `data` in MIRBLAB_SHARED")
    given = parser.parse_args()
    os.environ["MIRBLAB_PROGRESS"] = "0"
    import bm25s
    from rank_bm25 import BM25Okapi

    folder = Path(given.collection)
    if given.collection and not folder.is_dir():
        folder = Path(os.environ.get("MIRBLAB_SHARED", "../shared")) / "data" / given.collection
    docs, queries = (
        real(str(folder), given.queries) if given.collection else synthetic(given.docs, given.queries, given.words)
    )
    threads, depth = n_cores(), min(given.depth, len(docs))
    versions = {name: version(name) for name in ("bm25s", "numba", "scipy", "rank-bm25")}
    print(f"python {platform.python_version()}, {versions}")
    print(
        f"{given.collection or 'Zipf'}: {len(docs):,} documents, {len(queries):,} queries, top {depth}, {threads} cores"
    )
    spent, _, ours = timed(lambda: TermIndex.build(docs, "lucene", 1.2, 0.75, 0.5))
    print(
        f"index by bm25s, as mirblab stores it: {spent:.1f} s, {ours.weights.nnz / len(docs):.0f} postings per document"
    )
    engines = {}
    for backend in ("numba", "numpy"):
        engines[backend] = bm25s.BM25(k1=1.2, b=0.75, backend=backend)
        spent, _, _ = timed(lambda: engines[backend].index(docs, show_progress=False))  # noqa: B023
        print(f"index by bm25s {backend}: {spent:.1f} s")

    def retrieve(backend: str, n: int, threads: int) -> Callable[[], object]:
        options = {"k": depth, "show_progress": False, "n_threads": threads}
        return lambda: engines[backend].retrieve(queries[:n], **options)

    few = max(1, len(queries) // 8)
    compared = {
        "mirblab": (len(queries), lambda: ours.search(queries, depth)),
        f"bm25s numba, {threads} threads": (len(queries), retrieve("numba", len(queries), threads)),
        "bm25s numba, default threads": (len(queries), retrieve("numba", len(queries), 0)),
        "bm25s numpy": (few, retrieve("numpy", few, 0)),
    }
    if len(docs) <= RANK_BM25_DOCS:
        okapi = BM25Okapi(docs, k1=1.2)
        compared["rank-bm25"] = (5, lambda: [np.argsort(-okapi.get_scores(query))[:depth] for query in queries[:5]])
    for name, (_, run) in compared.items():
        print(f"first call, {name}: {timed(run)[0]:.1f} s", flush=True)
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in compared}
    for _ in range(given.rounds):
        for name, (n, run) in compared.items():
            wall, cpu, _ = timed(run)
            rounds[name].append((n / wall, n / cpu))
    print("\n| method | queries/s | range | queries per CPU-s | mirblab is faster by |\n|---|---|---|---|---|")
    own = np.median(rounds["mirblab"], axis=0)
    for name, rows in rounds.items():
        wall, cpu = np.median(rows, axis=0)
        low, high = np.min(rows, axis=0)[0], np.max(rows, axis=0)[0]
        ratio = f"{own[0] / wall:.2f} (CPU {own[1] / cpu:.2f})"
        print(f"| {name} | {wall:,.1f} | {low:,.1f} to {high:,.1f} | {cpu:,.1f} | {ratio} |")
    rows, _, scores = ours.search(queries[:20], depth)
    theirs = engines["numpy"].retrieve(queries[:20], k=depth, show_progress=False).scores
    gaps = [np.abs(theirs[row][: (rows == row).sum()] - scores[rows == row]).max(initial=0) for row in range(20)]
    print(f"\nlargest difference to the scores of bm25s, 20 queries: {max(gaps):.1e}")


if __name__ == "__main__":
    main()
