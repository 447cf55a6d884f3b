"""vectors_at_scale: search by codes at up to ten million vectors: build, memory, disk, milliseconds a query, recall.

    python benchmarks/vectors_at_scale.py FOLDER [--sizes 10000 100000 1000000 10000000] [--queries 50]

Vector i is the static embedding (the mean of MiniLM's token embeddings) of two statements of informal mathlib, one
after the other; a hash of i says which. Queries are the collection's. Recall is the share of the exact first 100.
FOLDER takes 980 bytes for each vector, and is removed afterwards. faiss' indexes stand beside where it is installed:
flat (float32 in memory) up to --flat, HNSW up to --hnsw (its graph takes long), IVF with RaBitQ up to --ivf, and this
with float16 rows in memory that order its best 1,000; and so does usearch's graph (float16, int8) up to --hnsw.
"""

from __future__ import annotations

import argparse
import importlib.util
import platform
import resource
import shutil
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

import mirblab as lab
from mirblab.core.processes import n_cores
from mirblab.encoders.encoding import encoder
from mirblab.retrieval import codes, dense

DEPTH, DIMS = 100, 384
BASE = 40_000  # statements that are combined


def token_sums(texts: list[str]) -> np.ndarray:
    """Return the sum of MiniLM's token embeddings of each text, float32 (n, 384)."""
    model = encoder("minilm")._model
    table = model[0].auto_model.embeddings.word_embeddings.weight.detach().numpy()
    sums = []
    for at in range(0, len(texts), 1000):
        some = texts[at : at + 1000]
        ids = model.tokenizer(some, add_special_tokens=False, truncation=True, max_length=256)["input_ids"]
        starts = np.cumsum([0, *(len(one) or 1 for one in ids)])[:-1]
        sums.append(np.add.reduceat(table[np.concatenate([one or [100] for one in ids])], starts, axis=0))
    return np.concatenate(sums)


class Numbers(Sequence[str]):
    """The numbers below n as texts, made when they are asked for."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, at: int | slice) -> str | list[str]:
        return list(map(str, range(self.n)[at])) if isinstance(at, slice) else str(at)


def combined(sums: np.ndarray, texts: list[str]) -> np.ndarray:
    """Return the vectors of numbers, each of two statements."""
    mixed = np.array(texts, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    left, right = (mixed >> np.uint64(40)) % np.uint64(len(sums)), (mixed >> np.uint64(8)) % np.uint64(len(sums))
    out = np.empty((len(texts), DIMS), np.float32)
    for start in range(0, len(texts), 1 << 14):
        cut = slice(start, start + (1 << 14))
        out[cut] = dense.normalise(sums[left[cut]] + sums[right[cut]])
    return out


def recall(positions: np.ndarray, truth: np.ndarray) -> float:
    """Return the share of the exact first documents that were found."""
    return float(np.mean([np.isin(own, found).mean() for own, found in zip(truth, positions, strict=True)]))


def milliseconds(search: Callable[[np.ndarray], object], queries: np.ndarray) -> tuple[float, ...]:
    """Return the wall milliseconds of a query that is asked alone, median and best, and the CPU's for one among all."""
    search(queries[:1])
    alone = []
    for row in range(min(20, len(queries))):
        start = time.perf_counter()
        search(queries[row : row + 1])
        alone.append(time.perf_counter() - start)
    start = time.process_time()
    search(queries)
    spent = (time.process_time() - start) / len(queries)
    return tuple(1e3 * one for one in (np.median(alone), min(alone), spent))


def own_memory() -> float:
    """Return the megabytes of this process that are no mapped file's."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition("RssAnon:")[2].split()[0]) / 1e3


def search_codes(folder: Path, n: int, bits: int, sums: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Build and search; print a line; return the exact first documents of each query."""
    spent, best, done = 0.0, [], 0

    def read(some: Sequence[str]) -> np.ndarray:
        nonlocal spent, done
        start = time.perf_counter()
        made = combined(sums, list(some))
        if len(some) == len(range(done, min(done + codes.PART, n))) and some[0] == str(done):
            found = dense.search(queries, made, depth=DEPTH)
            best.append((found[0], found[1] + done, found[2]))
            done += len(some)
        spent += time.perf_counter() - start
        return made

    start = time.perf_counter()
    made = codes.encode_collection(folder / str(bits), {"dimensions": DIMS, "n": n}, Numbers(n), bits, read)
    build = time.perf_counter() - start - spent
    rows, positions, scores = map(np.concatenate, zip(*best, strict=True))
    order = np.lexsort((-positions, -scores, rows))
    truth = np.stack([positions[order][rows[order] == row][:DEPTH] for row in range(len(queries))])
    found = codes.search(queries, made, depth=DEPTH)[1].reshape(len(queries), DEPTH)
    disk = sum(path.stat().st_size for path in (folder / str(bits)).iterdir())
    scanned = sum(part.codes.nbytes + part.factors.nbytes for part in made.parts)
    wanted = codes.n_candidates(n, DIMS, DEPTH, bits)
    times = milliseconds(lambda some: codes.search(some, made, depth=DEPTH), queries)
    line(f"codes, {bits} bits, {wanted:,} candidates", n, build, scanned / 1e6, disk / 1e6, times, recall(found, truth))
    return truth


def search_faiss(name: str, n: int, sums: np.ndarray, queries: np.ndarray, truth: np.ndarray) -> None:
    """Build and search one of faiss' indexes; print a line."""
    import faiss

    lists = int(4 * np.sqrt(n))
    index = faiss.index_factory(DIMS, name.replace("LISTS", str(lists)), faiss.METRIC_INNER_PRODUCT)
    faiss.omp_set_num_threads(n_cores())
    before, spent, numbers = own_memory(), 0.0, Numbers(n)
    if not index.is_trained:
        sample = combined(sums, [numbers[int(at)] for at in np.linspace(0, n - 1, min(n, 40 * lists))])
        start = time.perf_counter()
        index.train(sample)
        spent += time.perf_counter() - start
    for at in range(0, n, 1 << 16):
        some = combined(sums, numbers[at : at + (1 << 16)])
        start = time.perf_counter()
        index.add(some)
        spent += time.perf_counter() - start
    space = faiss.ParameterSpace()
    choices = {
        "HNSW": ["efSearch=128", "efSearch=512", "efSearch=2048"],
        "IVFL": ["nprobe=64", "nprobe=256", "nprobe=1024"],
    }
    for setting in choices.get(name[:4], [""]):
        if setting:
            space.set_index_parameters(index, setting + (",k_factor_rf=10" if "Refine" in name else ""))
        found = index.search(queries, DEPTH)[1]
        times = milliseconds(lambda some: index.search(some, DEPTH), queries)
        line(f"faiss {name} {setting}", n, spent, own_memory() - before, 0, times, recall(found, truth))


def search_usearch(dtype: str, n: int, sums: np.ndarray, queries: np.ndarray, truth: np.ndarray) -> None:
    """Build and search usearch's graph of vectors of a type; print a line for each width of the search."""
    from usearch.index import Index

    before, spent, numbers = own_memory(), 0.0, Numbers(n)
    index = Index(ndim=DIMS, metric="ip", dtype=dtype)
    for at in range(0, n, 1 << 16):
        some = combined(sums, numbers[at : at + (1 << 16)])
        start = time.perf_counter()
        index.add(np.arange(at, at + len(some)), some, threads=n_cores())
        spent += time.perf_counter() - start
    for width in (128, 512):
        index.expansion_search = width
        found = np.atleast_2d(index.search(queries, DEPTH, threads=n_cores()).keys)
        times = milliseconds(lambda some: index.search(some, DEPTH, threads=n_cores()), queries)
        name = f"usearch HNSW, {dtype}, expansion_search={width}"
        line(name, n, spent, own_memory() - before, 0, times, recall(found, truth))


def line(name: str, n: int, build: float, memory: float, disk: float, times: tuple[float, ...], found: float) -> None:
    """Print a row of the table."""
    sizes, spent = f"{build:.1f} | {memory:,.0f} | {disk:,.0f}", " | ".join(f"{one:.2f}" for one in times)
    print(f"| {n:,} | {name} | {sizes} | {spent} | {found:.4f} |", flush=True)


def main() -> None:
    """Print one row for each size and method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 10_000_000])
    parser.add_argument("--bits", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--hnsw", type=int, default=100_000, help="the largest size at which a graph is built")
    parser.add_argument("--flat", type=int, default=1_000_000, help="the largest size whose rows are in memory")
    parser.add_argument("--ivf", type=int, default=1_000_000, help="the largest size with IVF and RaBitQ")
    given = parser.parse_args()
    has_faiss, has_usearch = (importlib.util.find_spec(name) is not None for name in ("faiss", "usearch"))
    peers = ["faiss-cpu"] * has_faiss + ["usearch"] * has_usearch
    versions = {name: version(name) for name in ("numpy", "numba", *peers)}
    print(f"python {platform.python_version()}, {versions}, {n_cores()} cores", flush=True)
    c = lab.load("mathlib-informal")
    sums, asked = token_sums(c.texts[:: len(c.texts) // BASE]), c.query_texts[:: len(c.query_texts) // given.queries]
    queries = dense.normalise(token_sums(asked[: given.queries]))
    small = codes.encode_collection(
        given.folder / "first", {}, Numbers(300), 2, lambda some: combined(sums, list(some))
    )
    codes.search(queries, small, depth=1)  # compiles
    print("| vectors | method | build s | MB in use | MB on disk | ms alone | at best | CPU-ms each | recall@100 |")
    print("|---|---|---|---|---|---|---|---|---|")
    for n in given.sizes:
        for bits in given.bits:
            truth = search_codes(given.folder / str(n), n, bits, sums, queries)
            shutil.rmtree(given.folder / str(n))
        of_faiss = [("Flat", given.flat), ("IVFLISTS,RaBitQ,Refine(SQfp16)", min(given.flat, given.ivf)),
                    ("IVFLISTS,RaBitQ", given.ivf), ("HNSW32", given.hnsw)]  # fmt: skip
        for name, most in of_faiss if has_faiss else []:
            if n <= most:
                search_faiss(name, n, sums, queries, truth)
        for dtype in ("f16", "i8") if has_usearch and n <= given.hnsw else ():
            search_usearch(dtype, n, sums, queries, truth)
    shutil.rmtree(given.folder, ignore_errors=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak resident memory, mapped files included: {peak:.1f} GB")


if __name__ == "__main__":
    main()
