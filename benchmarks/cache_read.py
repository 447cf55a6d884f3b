"""Read stored vectors back by text, in random order: mirblab beside mteb's NumpyCache, lmdb and sqlite.

    python benchmarks/cache_read.py [--texts 100000] [--dimensions 384] [--rounds 3] [--only mirblab]

Every reading happens in a fresh process which opens the store, hashes the texts and returns one array (n, d); imports
are outside the time. "cold" is after asking the kernel to drop the files' pages, "first" the same with the files in
memory, "again" the same store asked once more; "CPU-s" is the process time of "first", which a busy machine changes
less. Each result is compared with the originals. Methods alternate within
each round; ratios are medians against mirblab.
Peak memory is that of the reading process, resident, with the texts and the mapped pages of the store in it; "before"
is the same process before it reads.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from mirblab.encoders.cache import VectorStore

SPACE = {"model": "benchmark", "role": "document"}
PHRASES = [
    "Let $X$ be a scheme", "of finite type over a field", "a quasi-coherent sheaf", "is flat", "by Lemma",
    "$\\mathcal{O}_X$-module", "the morphism $f : X \\to Y$", "locally Noetherian", "we conclude that", "is smooth",
]  # fmt: skip


def make_texts(order: np.ndarray) -> list[str]:
    """Return the text of each number in *order*: distinct, about 400 characters, one in ten not ASCII."""
    rng = np.random.default_rng(0)
    bodies = [" ".join(PHRASES[i] for i in rng.integers(0, len(PHRASES), 22)) for _ in range(1000)]
    return [f"{i} {bodies[i % 1000]}{' étale' if i % 10 == 0 else ''}" for i in order.tolist()]


def make_vectors(order: np.ndarray, d: int) -> np.ndarray:
    """Return the vector of each number in *order*, float32 (n, d): its own function of the number, cheap to repeat."""
    return np.sin(order[:, None] * 0.37 + np.arange(d) * 1.7).astype(np.float32)


def peak_memory(reset: bool = False) -> float:
    """Return the peak resident memory of this process in MiB since the last reset (Linux only)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def plain_hash(text: str) -> bytes:
    """Return the hash that the stores without one of their own are given."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


class Mirblab:
    def __init__(self, folder: Path, d: int) -> None:
        self.store = VectorStore(folder, SPACE | {"dimensions": d})

    def write(self, texts: list[str], vectors: np.ndarray) -> None:
        for start in range(0, len(texts), 1_000):  # as encoding does, which makes many small shards
            self.store.append(texts[start : start + 1_000], vectors[start : start + 1_000])

    def read(self, texts: list[str]) -> np.ndarray:
        vectors, missing = self.store.read(texts)
        if len(missing):
            raise RuntimeError(f"{len(missing)} texts are missing")
        return vectors


class Mteb:
    def __init__(self, folder: Path, d: int) -> None:
        from mteb.models.cache_wrappers.cache_backends.numpy_cache import NumpyCache

        self.store = NumpyCache(folder)
        warnings.simplefilter("ignore")
        self.store.load()

    def write(self, texts: list[str], vectors: np.ndarray) -> None:
        self.store.add([{"text": text} for text in texts], vectors)
        self.store.save()

    def read(self, texts: list[str]) -> np.ndarray:
        return np.array([self.store.get_vector({"text": text}) for text in texts])


class MtebWrapper:
    """mteb as its users call it: `CachedEmbeddingWrapper.encode`, the one public way to an array of its vectors."""

    def __init__(self, folder: Path, d: int) -> None:
        import logging

        from mteb.models.cache_wrappers import CachedEmbeddingWrapper

        logging.disable(logging.WARNING)
        warnings.simplefilter("ignore")
        self.wrapper = CachedEmbeddingWrapper(_Refuses(), folder)

    def write(self, texts: list[str], vectors: np.ndarray) -> None:
        cache = self.wrapper._get_or_create_cache(_TASK.name, None, {})
        cache.add([{"text": text} for text in texts], vectors)
        cache.save()

    def read(self, texts: list[str]) -> np.ndarray:
        from datasets import Dataset
        from torch.utils.data import DataLoader

        rows = DataLoader(Dataset.from_dict({"text": texts}))
        return self.wrapper.encode(rows, task_metadata=_TASK, hf_split="", hf_subset="", prompt_type=None)


class _Refuses:
    """A model that is never asked, since everything is stored."""

    mteb_model_meta = None

    def encode(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError("a text is missing from mteb's cache")


class _TASK:
    name = "benchmark"


class Lmdb:
    def __init__(self, folder: Path, d: int) -> None:
        import lmdb

        self.env = lmdb.open(str(folder), map_size=1 << 36)

    def write(self, texts: list[str], vectors: np.ndarray) -> None:
        for start in range(0, len(texts), 1000):
            with self.env.begin(write=True) as transaction:
                for text, vector in zip(texts[start : start + 1000], vectors[start : start + 1000], strict=True):
                    transaction.put(plain_hash(text), vector.tobytes())

    def read(self, texts: list[str]) -> np.ndarray:
        with self.env.begin(buffers=True) as transaction:
            rows = b"".join([transaction.get(plain_hash(text)) for text in texts])
        return np.frombuffer(rows, np.float32).reshape(len(texts), -1)


class Sqlite:
    def __init__(self, folder: Path, d: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.base = sqlite3.connect(folder / "vectors.db")
        self.base.execute("PRAGMA journal_mode=WAL")
        self.base.execute("CREATE TABLE IF NOT EXISTS v (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def write(self, texts: list[str], vectors: np.ndarray) -> None:
        for start in range(0, len(texts), 1000):
            pairs = zip(texts[start : start + 1000], vectors[start : start + 1000], strict=True)
            with self.base:
                self.base.executemany("INSERT INTO v VALUES (?, ?)", [(plain_hash(t), v.tobytes()) for t, v in pairs])
        self.base.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def read(self, texts: list[str]) -> np.ndarray:
        ask = self.base.execute
        rows = [ask("SELECT vector FROM v WHERE key = ?", (plain_hash(text),)).fetchone()[0] for text in texts]
        return np.frombuffer(b"".join(rows), np.float32).reshape(len(texts), -1)


METHODS: dict[str, Callable[[Path, int], Mirblab | Mteb | Lmdb | Sqlite]] = {
    "mirblab": Mirblab, "mteb NumpyCache": Mteb, "mteb encode()": MtebWrapper, "lmdb": Lmdb, "sqlite": Sqlite,
}  # fmt: skip


def child(name: str, folder: Path, n: int, d: int) -> None:
    """Open the store once and read everything twice; print times, peak memory and whether the result is right."""
    order = np.random.default_rng(1).permutation(n)
    asked = make_texts(order)
    METHODS[name](Path(tempfile.mkdtemp(dir=folder.parent)), d)  # imports what it needs, outside the time
    before = peak_memory(reset=True)
    seconds, spent, right = [], [], True
    store = None
    for _ in range(2):
        start, begun = time.perf_counter(), time.process_time()
        store = store or METHODS[name](folder, d)
        found = store.read(asked)
        seconds.append(time.perf_counter() - start)
        spent.append(time.process_time() - begun)
        peak = peak_memory()
        right = right and found.shape == (n, d) and bool((found[::37] == make_vectors(order[::37], d)).all())
        del found
    print(json.dumps({"seconds": seconds, "CPU": spent, "right": right, "before": before, "peak": peak}))


def drop_pages(folder: Path) -> None:
    """Ask the kernel to forget the pages of every file in *folder*."""
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def ask_child(name: str, folder: Path, n: int, d: int) -> dict:
    """Return what a fresh process measured."""
    command = [sys.executable, __file__, "--child", name, "--folder", str(folder), "--texts", str(n)]
    done = subprocess.run([*command, "--dimensions", str(d)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Write every store once, read them in turn, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--child", choices=METHODS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    n, d = given.texts, given.dimensions
    if given.child:
        return child(given.child, given.folder, n, d)
    names = ["numpy", *(name for name in ("mteb", "lmdb") if any(name in method for method in given.only))]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    print(f"Python {platform.python_version()}, {versions}, sqlite {sqlite3.sqlite_version}; {os.cpu_count()} cores")
    root = Path(tempfile.mkdtemp(prefix="cache-read-"))
    try:
        table = measure(root, given.only, n, d, given.rounds)
    finally:
        shutil.rmtree(root)
    show(table, n, d)


def measure(root: Path, names: list[str], n: int, d: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Return seconds and megabytes by method and column; one entry per round."""
    table: dict[str, dict[str, list[float]]] = {}
    for name in names:
        store, seconds = METHODS[name](root / name, d), 0.0
        for start in range(0, n, 100_000):
            some = np.arange(start, min(start + 100_000, n))
            texts, vectors = make_texts(some), make_vectors(some, d)
            begun = time.perf_counter()
            store.write(texts, vectors)
            seconds += time.perf_counter() - begun
        size = sum(path.stat().st_size for path in (root / name).rglob("*") if path.is_file()) / 1e6
        table[name] = {"write": [seconds], "cold": [], "first": [], "again": [], "CPU-s": [], "MB": [size]}
    for _ in range(rounds):
        for name in names:
            drop_pages(root / name)
            cold, warm = (ask_child(name, root / name, n, d) for _ in range(2))
            if not (cold["right"] and warm["right"]):
                raise RuntimeError(f"{name} returned wrong vectors")
            table[name]["cold"].append(cold["seconds"][0])
            table[name]["first"].append(warm["seconds"][0])
            table[name]["again"].append(warm["seconds"][1])
            table[name]["CPU-s"].append(warm["CPU"][0])
            table[name].setdefault("peak MB", []).append(warm["peak"])
            table[name].setdefault("before MB", []).append(warm["before"])
    return table


def show(table: dict[str, dict[str, list[float]]], n: int, d: int) -> None:
    """Print medians, ranges, and ratios against mirblab."""
    print(f"{n:,} texts of {d} float32 ({n * d * 4 / 2**20:.0f} MiB the array alone), random order, hashing included")
    columns = ["write", "cold", "first", "again", "CPU-s", "MB", "peak MB", "before MB"]
    print(f"{'':16}" + "".join(f"{column:>21}" for column in columns))
    for name, row in table.items():
        cells = [f"{statistics.median(row[c]):.3f} ({min(row[c]):.3f}-{max(row[c]):.3f})" for c in columns[:5]]
        cells += [f"{statistics.median(row[c]):.0f}" for c in columns[5:]]
        print(f"{name:16}" + "".join(f"{cell:>21}" for cell in cells))
    for name in table.keys() - {"mirblab"} if "mirblab" in table else ():
        ratios = {c: statistics.median(table[name][c]) / statistics.median(table["mirblab"][c]) for c in columns[1:5]}
        print(f"{name} / mirblab: " + ", ".join(f"{column} {ratio:.1f}" for column, ratio in ratios.items()))


if __name__ == "__main__":
    main()
