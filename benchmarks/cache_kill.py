"""Kill -9 a process that writes to the cache, many times, and compare every row that it had acknowledged.

    python benchmarks/cache_kill.py [--trials 40] [--rows 500] [--dimensions 384]

A child appends shards in a tight loop and reports each once it is acknowledged; it is killed after a random time, so
that many kills fall inside a save. All trials share one store. After each, the store is opened afresh: every
acknowledged row must be there, every row that is there must be right, bit for bit.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from mirblab.encoders.cache import VectorStore


def open_store(folder: Path, d: int) -> VectorStore:
    """Return the store that all trials share."""
    return VectorStore(folder, {"model": "kill", "role": "document", "dimensions": d})


def batch(trial: int, number: int, rows: int, d: int) -> tuple[list[str], np.ndarray]:
    """Return the texts of one shard and their vectors, both functions of its number."""
    texts = [f"{trial} {number} {row}" for row in range(rows)]
    return texts, np.random.default_rng([trial, number]).standard_normal((rows, d), dtype=np.float32)


def child(folder: Path, trial: int, rows: int, d: int) -> None:
    """Append shards until killed, reporting each."""
    store, number = open_store(folder, d), 0
    while True:
        store.append(*batch(trial, number, rows, d))
        print(number, flush=True)
        number += 1


def kill_once(folder: Path, trial: int, rows: int, d: int, seconds: float) -> int:
    """Start a child, kill it *seconds* after its first shard, and return how many shards it acknowledged."""
    command = [sys.executable, __file__, "--child", str(trial), "--folder", str(folder), "--rows", str(rows)]
    writer = subprocess.Popen([*command, "--dimensions", str(d)], stdout=subprocess.PIPE, text=True)
    first = writer.stdout.readline()
    time.sleep(seconds)
    writer.kill()
    return len((first + writer.communicate()[0]).splitlines())


def main() -> None:
    """Run the trials and print the counts; exit 1 when anything was lost or wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        return child(given.folder, given.child, given.rows, given.dimensions)
    print(f"Python {platform.python_version()}, numpy {importlib.metadata.version('numpy')}")
    warnings.simplefilter("error")
    folder = Path(tempfile.mkdtemp(prefix="cache-kill-"))
    try:
        counts = run(folder, given.trials, given.rows, given.dimensions)
    finally:
        shutil.rmtree(folder)
    print(", ".join(f"{value} {name}" for name, value in counts.items()))
    raise SystemExit(1 if counts["rows lost"] or counts["rows wrong"] else 0)


def run(folder: Path, trials: int, rows: int, d: int) -> dict[str, int]:
    """Return how many rows were acknowledged, lost and wrong over all trials, and what the kills left."""
    rng = np.random.default_rng(0)
    counts = dict.fromkeys(("trials", "shards acknowledged", "rows compared", "rows lost", "rows wrong"), 0)
    for trial in range(trials):
        acknowledged = kill_once(folder, trial, rows, d, rng.uniform(0, 0.3))
        store = open_store(folder, d)
        for number in range(acknowledged + 1):  # one more than acknowledged: absent or right, never wrong
            texts, expected = batch(trial, number, rows, d)
            found, missing = store.read(texts)
            present = np.setdiff1d(np.arange(rows), missing)
            counts["rows wrong"] += int((found[present] != expected[present]).any(axis=1).sum())
            counts["rows lost"] += len(missing) if number < acknowledged else 0
            counts["rows compared"] += len(present)
        counts["trials"] += 1
        counts["shards acknowledged"] += acknowledged
    sizes = open_store(folder, d).sizes()
    return counts | {"partial files left (kills inside a save)": sizes["partial"], "damaged files": sizes["damaged"]}


if __name__ == "__main__":
    main()
