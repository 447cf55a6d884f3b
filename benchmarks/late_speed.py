"""late_speed: exact MaxSim over all documents, in memory and from the store, against torch and one pair at a time.

    python benchmarks/late_speed.py [--docs 5000] [--tokens 60] [--queries 20] [--dims 384] [--depth 100] [--rounds 3]

Token vectors are random unit vectors; documents have half to one and a half times that many tokens, queries 16 each.
The share of the peak is that of the products alone, 2 x query tokens x document tokens x dims, against one sgemm of
2048 x 2048 on as many threads in the same round. Scores are compared with float64.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
from threadpoolctl import threadpool_limits

from mirblab.core.processes import n_cores
from mirblab.encoders.local import unit_vectors
from mirblab.encoders.token_vectors import StoredTokens, TokenStore
from mirblab.retrieval import late_interaction
from mirblab.retrieval.late_interaction import TokenMatrices

SIDE = 2048


def texts(n: int, tokens: int, dims: int, seed: int) -> list[np.ndarray]:
    """Return *n* texts of random unit token vectors, half to one and a half times *tokens* each."""
    random = np.random.default_rng(seed)
    lengths = random.integers(max(1, tokens // 2), tokens + tokens // 2 + 1, n)
    return [unit_vectors(random.standard_normal((length, dims), dtype=np.float32)) for length in lengths]


def stored(docs: list[np.ndarray], folder: str) -> StoredTokens:
    """Return the documents from a new store, whose checks are part of no time below."""
    store = TokenStore(folder, {"model": "random", "dimensions": docs[0].shape[1]})
    names = [str(number) for number in range(len(docs))]
    for start in range(0, len(docs), 256):
        store.append(names[start : start + 256], docs[start : start + 256])
    start_time = time.perf_counter()
    found, _ = store.read(names)
    size = store.sizes()["bytes"]
    print(f"store: {size / 1e6:,.0f} MB, opened and checked in {time.perf_counter() - start_time:.2f} s")
    return found


def by_torch(queries: list[np.ndarray], docs: list[np.ndarray], depth: int) -> Callable[[], object]:
    """Return a search by torch over padded documents, 200 at a time."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    left = torch.from_numpy(np.stack(queries))
    parts = []
    for start in range(0, len(docs), 200):
        some = [torch.from_numpy(one) for one in docs[start : start + 200]]
        padded = pad_sequence(some, batch_first=True)
        has = torch.tensor([len(one) for one in some])[:, None] > torch.arange(padded.shape[1])
        parts.append((padded, has))

    def search() -> object:
        columns = []
        for padded, has in parts:
            cosines = torch.einsum("qid,kjd->qkij", left, padded).masked_fill(~has[None, :, None], -torch.inf)
            columns.append(cosines.max(-1).values.mean(-1))
        return torch.topk(torch.cat(columns, dim=1), min(depth, len(docs)), dim=1)

    return search


def peak(threads: int) -> float:
    """Return the GF/s of one sgemm on that many threads."""
    matrix = np.random.default_rng(0).standard_normal((SIDE, SIDE)).astype(np.float32)
    with threadpool_limits(threads, "blas"):
        start = time.perf_counter()
        matrix @ matrix
        return 2 * SIDE**3 / 1e9 / (time.perf_counter() - start)


def main() -> None:
    """Print the agreement with float64, and one line per method: seconds per query and shares of the peak."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = {"docs": 5_000, "tokens": 60, "queries": 20, "dims": 384, "depth": 100, "rounds": 3}
    for name, number in usual.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    given = parser.parse_args()
    print(f"python {platform.python_version()}, numpy {version('numpy')}, torch {version('torch')}, {n_cores()} cores")
    docs = texts(given.docs, given.tokens, given.dims, 0)
    queries = [one[:16] for one in texts(given.queries, 48, given.dims, 1)]
    work = 2 * 16 * given.queries * sum(map(len, docs)) * given.dims / 1e9
    n_tokens = sum(map(len, docs))
    print(f"{given.queries} queries x {given.docs:,} documents, {n_tokens:,} tokens x {given.dims}: {work:,.0f} GFLOP")
    asked, held = TokenMatrices.of(queries), TokenMatrices.of(docs)
    with tempfile.TemporaryDirectory() as folder:
        on_disk = stored(docs, folder)
        few = range(0, given.docs, max(1, given.docs // 200))
        exact = [[(q.astype(float) @ docs[d].astype(float).T).max(1).mean() for d in few] for q in queries]
        for name, rows in (("in memory", held), ("from the store", on_disk)):
            ours = [
                late_interaction.max_sim_matrix(
                    asked.rows, asked.lengths, rows.block(d, d + 1), rows.lengths[d : d + 1]
                )[:, 0]
                for d in few
            ]
            print(f"largest difference from float64, {name}: {np.abs(np.array(ours).T - exact).max():.1e}")
        methods = {
            "late_search, in memory": lambda: late_interaction.search(asked, held, depth=given.depth),
            "late_search, from the store": lambda: late_interaction.search(asked, on_disk, depth=given.depth),
            "late_search, from the store, 1 thread": lambda: late_interaction.search(
                asked, on_disk, depth=given.depth, threads=1
            ),
            "torch, padded, 200 documents at once": by_torch(queries, docs, given.depth),
            "one pair at a time": lambda: [late_interaction.max_sim(query, doc) for query in queries for doc in docs],
        }
        rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
        for _ in range(given.rounds):
            for name, search in methods.items():
                best = peak(1 if "1 thread" in name else n_cores())
                start = time.perf_counter()
                search()
                spent = time.perf_counter() - start
                rounds[name].append((1000 * spent / given.queries, work / spent / best))
    print("\n| method | ms per query | share of the sgemm peak |\n|---|---|---|")
    for name, rows in rounds.items():
        milliseconds, share = np.median(rows, axis=0)
        print(f"| {name} | {milliseconds:.1f} | {share:.0%} |")


if __name__ == "__main__":
    main()
