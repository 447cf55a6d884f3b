"""parts_memory: memory and time of a collection in parts as it grows, beside the same one as corpus.jsonl.

    python benchmarks/parts_memory.py [--docs 10000,100000,1000000] [--jsonl 100000] [--folder FOLDER]

The collection is made by a rule: short statements with formulas, in an order that is not that of their ids, and 200
queries of which each asks for one of them. Each step runs in a process of its own, whose peak memory and time are
printed: writing the parts from a stream, load() with the fingerprint, BM25 with an empty cache, and BM25 with the index
stored but not the run. "own MB" is the largest part of it that is no page of a file (the system drops those when it
needs room), seen every 10 ms.
Up to --jsonl documents the same is done with corpus.jsonl, and the runs are compared byte for byte.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

N_QUERIES, BLOCK = 200, 10_000
OBJECTS = "group ring field module lattice manifold graph sheaf knot variety algebra measure scheme space curve".split()
QUALITIES = "compact finite abelian free simple noetherian connected smooth normal regular planar bounded local".split()
FORMULAS = (
    r"$a^{%d} + b = %d$",
    r"$\sum_{i=1}^{%d} x_i \le %d$",
    r"$H_{%d}(X) \cong \mathbb{Z}/%d$",
    r"$|G| = %d \cdot %d$",
)


def statements(n_docs: int) -> Iterator[tuple[int, str]]:
    """Yield number and text of each statement, about 25 words each; the same for every n_docs."""
    for start in range(0, n_docs, BLOCK):
        random = np.random.default_rng([0, start])
        numbers = random.permutation(np.arange(start, min(start + BLOCK, n_docs)))
        drawn = random.integers(0, 1 << 30, (len(numbers), 6))
        for number, row in zip(numbers.tolist(), drawn.tolist(), strict=True):
            one, other, quality, formula, left, right = row
            name = f"w{left % 50_000}"  # rare words, as names are
            claim = f"{QUALITIES[left % 13]}, and {FORMULAS[left % 4] % (right % 89, formula % 991)}"
            over = f"{OBJECTS[other % 15]} with {FORMULAS[formula % 4] % (left % 97, right % 997)}"
            first = f"Let {name} be a {QUALITIES[quality % 13]} {OBJECTS[one % 15]} over a {over}."
            then = f"Then every {QUALITIES[right % 13]} sub{OBJECTS[other % 15]} of {name} is {claim}."
            yield number, f"{first} {then}"


def write(folder: Path, n_docs: int, in_one_file: bool) -> None:
    from mirblab.data import beir

    asked = {
        number: text
        for number, text in statements(min(n_docs, 10_000))
        if number % (min(n_docs, 10_000) // N_QUERIES) == 0
    }
    corpus = ({"_id": f"s{number:08}", "text": text} for number, text in statements(n_docs))
    queries = ({"_id": f"q{number:08}", "text": text.split(". Then")[0]} for number, text in asked.items())
    judged = {"test": [(f"q{number:08}", f"s{number:08}", 1) for number in asked]}
    beir.LARGE = 0
    beir.write_collection(folder, corpus, queries, judged, {"name": folder.name}, in_one_file=in_one_file)


def load(folder: Path) -> str:
    import mirblab as lab

    return lab.load(folder).fingerprint


def search(folder: Path) -> str:
    import mirblab as lab
    from mirblab.retrieval import bm25

    run = bm25.search(lab.load(folder), depth=1000)
    digest = hashlib.blake2b(digest_size=8)
    for name in ("query_id", "doc_id"):
        digest.update("\n".join(run[name].astype(str)).encode())
    digest.update(run.score.to_numpy().tobytes())
    return f"{len(run):,} rows, {digest.hexdigest()}"


def measure(step: str, folder: Path, n_docs: int, in_one_file: bool) -> dict[str, object]:
    """Run a step and return its seconds, its peak memory in MB, how much of it is its own, and what it returned."""
    import mirblab as lab  # noqa: F401  the imports are not what is measured
    from mirblab.retrieval import bm25  # noqa: F401

    start, own, is_running = time.perf_counter(), [0], [True]

    def watch() -> None:
        while is_running[0]:
            lines = Path("/proc/self/status").read_text().split("\n")
            own[0] = max(own[0], *(int(line.split()[1]) // 1024 for line in lines if line.startswith("RssAnon")))
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    result = {"write": lambda: write(folder, n_docs, in_one_file), "load": lambda: load(folder)}.get(
        step, lambda: search(folder)
    )()
    seconds = round(time.perf_counter() - start, 1)
    is_running[0] = False
    watcher.join()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"seconds": seconds, "peak_mb": peak, "own_mb": own[0], "result": result}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", default="10000,100000,1000000")
    parser.add_argument("--jsonl", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--step", nargs=4)
    given = parser.parse_args()
    if given.step:
        step, folder, n_docs, in_one_file = given.step
        print(json.dumps(measure(step, Path(folder), int(n_docs), in_one_file == "True")))
        return
    print(f"{'documents':>10} {'form':>6} {'step':>14} {'seconds':>8} {'peak MB':>8} {'own MB':>7} {'disk MB':>8}")
    for n_docs in map(int, given.docs.split(",")):
        found: dict[bool, dict[str, object]] = {}
        for in_one_file in (False, True)[: 2 if n_docs <= given.jsonl else 1]:
            with tempfile.TemporaryDirectory(dir=given.folder, prefix="parts-") as home:
                folder, results = Path(home) / "statements", found.setdefault(in_one_file, {})
                for step in ("write", "load", "search", "search again"):
                    task = [sys.executable, __file__, "--step", step, str(folder), str(n_docs), str(in_one_file)]
                    environment = os.environ | {"MIRBLAB_HOME": f"{home}/home", "MIRBLAB_PROGRESS": "0"}
                    line = subprocess.run(task, env=environment, check=True, capture_output=True, text=True).stdout
                    about = json.loads(line.splitlines()[-1])
                    results[step] = about["result"]
                    disk = sum(path.stat().st_size for path in Path(home).rglob("*") if path.is_file()) >> 20
                    form = "jsonl" if in_one_file else "parts"
                    print(f"{n_docs:>10,} {form:>6} {step:>14} {about['seconds']:>8} {about['peak_mb']:>8,} "
                          f"{about['own_mb']:>7,} {disk:>8,}", flush=True)  # fmt: skip
        if len(found) == 2:
            print(f"{'':>10} fingerprints and runs are {'equal' if found[True] == found[False] else 'DIFFERENT'}: "
                  f"{found[False]['search']}")  # fmt: skip


if __name__ == "__main__":
    main()
