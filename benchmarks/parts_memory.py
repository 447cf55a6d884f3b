"""parts_memory: memory and time of a collection in parts as it grows, beside the same one as corpus.jsonl.

    python benchmarks/parts_memory.py [--docs 10000,100000,1000000] [--jsonl 100000] [--folder FOLDER]
    python benchmarks/parts_memory.py --runs 100,1000 [--docs 10000000] [--queries 25000] [--folder FOLDER]
    python benchmarks/parts_memory.py --encoder static-math [--docs 100000,1000000] [--folder FOLDER]
    python benchmarks/parts_memory.py --all static-math [--docs 10000,100000,1000000,10000000] [--folder FOLDER]

The collection is made by a rule: short statements with formulas, in an order that is not that of their ids, and 200
queries of which each asks for one of them. Each step runs in a process of its own, whose peak memory and time are
printed: writing the parts from a stream, load() with the fingerprint, BM25 with an empty cache, and BM25 with the index
stored but not the run. "own MB" is the largest part of it that is no page of a file (the system drops those when it
needs room), seen every 10 ms.
Up to --jsonl documents the same is done with corpus.jsonl, and the runs are compared byte for byte.

With --runs the runs of --queries queries are made up, as many documents deep as it says, for documents with texts of
one word: "made" is System.search with what it stores, "read" the same again, "values" also measures.evaluate, "compare"
that of two systems and significance.compare, "fuse" the fusion of their runs. With --encoder the steps are a dense
search, "encode" with no vector stored and "dense" with all of them.

With --all everything is done with each collection, 100 documents deep: BM25, codes of two bits per dimension for the
vectors of a static encoder, trained before (mirblab train static-math), the fusion of both by reciprocal ranks,
and near-duplicates. "again" has all indexes stored, but no run. The last table has, for each step, the slope of its
seconds and of its own memory between the sizes, on a logarithmic scale: 1 is linear growth.
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
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from mirblab.core import paths

N_QUERIES, BLOCK = 200, 10_000
ALL_DEPTH = 100
MEASURES = ["nDCG@10", "AP", "RR@10", "Bpref", "Judged@10"]
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


def write_words(folder: Path, n_docs: int, n_queries: int) -> None:
    """Write a collection in parts, of documents of one word; each query has one relevant document."""
    from mirblab.data import beir

    step = n_docs // n_queries
    corpus = ({"_id": f"s{number:08}", "text": f"w{number}"} for number in range(n_docs))
    queries = ({"_id": f"q{number:05}", "text": f"w{number * step}"} for number in range(n_queries))
    judged = {"test": [(f"q{number:05}", f"s{number * step:08}", 1) for number in range(n_queries)]}
    beir.LARGE = 0
    beir.write_collection(folder, corpus, queries, judged, {"name": folder.name})


def made_up_run(name: str, collection, depth: int):  # noqa: ANN001, ANN201
    """Return a run as a search returns it; every second query has its relevant document, at any rank."""
    from mirblab.data import runs

    n_queries, n_docs, random = len(collection.query_ids), len(collection.doc_ids), np.random.default_rng(len(name))
    rows = np.repeat(np.arange(n_queries), depth)
    positions, scores = np.empty(len(rows), np.int64), np.empty(len(rows), np.float32)
    for query in range(n_queries):
        stride = random.integers(1, n_docs // depth)
        found = (random.integers(n_docs) + stride * np.arange(depth)) % n_docs
        relevant = query * (n_docs // n_queries)
        if query % 2 and relevant not in found:
            found[random.integers(depth)] = relevant
        own = slice(query * depth, (query + 1) * depth)
        positions[own], scores[own] = found, depth - np.arange(depth) + random.random()
    return runs.from_positions(rows, positions, scores, collection.query_ids, collection.doc_ids, name, collection.name)


def use_runs(step: str, folder: Path, depth: int) -> str:
    """Return a digest of what a step with made up runs gives."""
    import mirblab as lab
    from mirblab.retrieval import systems

    systems._SEARCHES["bm25"] = lambda system, collection, depth: made_up_run(system.name, collection, depth)
    collection = lab.load(folder)
    chosen = [lab.system("bm25"), lab.system("bm25", k1=0.9)][: 2 if step in ("compare", "fuse") else 1]
    if step in ("made", "read"):
        return digest_run(chosen[0].search(collection, depth))
    if step == "fuse":
        parts = [one.search(collection, depth) for one in chosen]
        return digest_run(lab.fusion.fuse(parts, "rrf", depth))
    values = [lab.evaluate(one.search(collection, depth), collection, MEASURES) for one in chosen]
    digest = hashlib.blake2b(b"".join(table.value.to_numpy().tobytes() for table in values), digest_size=8)
    if step == "compare":
        import pandas as pd

        table = lab.compare(pd.concat(values, ignore_index=True), "nDCG@10", n_permutations=10_000)
        digest.update(table.to_csv(index=False).encode())
    return digest.hexdigest()


def digest_run(run) -> str:  # noqa: ANN001
    digest = hashlib.blake2b(digest_size=8)
    for column in (run.query_id.cat.codes, run.doc_id.cat.codes, run.score, run["rank"]):
        digest.update(np.ascontiguousarray(column))
    return f"{len(run):,} rows, {digest.hexdigest()}"


def search_by_vectors(folder: Path, name: str) -> str:
    import mirblab as lab
    from mirblab.retrieval import systems

    system = systems.System("dense", "dense", {"kind": "dense", "encoder": name})
    return digest_run(systems._dense(system, lab.load(folder), 1000))


def search_by_codes(folder: Path, name: str):  # noqa: ANN201
    """Return the run of a search by codes of two bits; vectors and codes that are not stored are made."""
    import mirblab as lab
    from mirblab.retrieval import systems

    system = systems.System("coded", "coded", {"kind": "dense", "encoder": name, "code_bits": 2})
    return systems._dense(system, lab.load(folder), ALL_DEPTH)


def fuse_all(folder: Path, name: str) -> str:
    import mirblab as lab
    from mirblab.retrieval import bm25

    parts = [bm25.search(lab.load(folder), depth=ALL_DEPTH), search_by_codes(folder, name)]
    return digest_run(lab.fusion.fuse(parts, "rrf", ALL_DEPTH))


def find_near(folder: Path) -> str:
    """Return how many near-duplicates of each other, and of the queries, the documents have."""
    import mirblab as lab
    from mirblab.data.near_duplicates import find_repeats

    collection = lab.load(folder)
    found = find_repeats([collection.query_texts, collection.texts])
    return f"{len(found.pairs):,} near pairs"


def load(folder: Path) -> str:
    import mirblab as lab

    return lab.load(folder).fingerprint


def search(folder: Path, depth: int = 1000) -> str:
    import mirblab as lab
    from mirblab.retrieval import bm25

    run = bm25.search(lab.load(folder), depth=depth)
    digest = hashlib.blake2b(digest_size=8)
    for name in ("query_id", "doc_id"):
        digest.update("\n".join(run[name].astype(str)).encode())
    digest.update(run.score.to_numpy().tobytes())
    return f"{len(run):,} rows, {digest.hexdigest()}"


STEPS: dict[str, Callable[..., object]] = {
    "write": write, "load": load, "search": search, "write words": write_words, "encode": search_by_vectors,
    "dense": search_by_vectors, "codes": lambda *given: digest_run(search_by_codes(*given)), "fused": fuse_all,
    "near": find_near,
} | {name: partial(use_runs, name) for name in ("made", "read", "values", "compare", "fuse")}  # fmt: skip


def measure(step: str, folder: Path, numbers: list[int | str]) -> dict[str, object]:
    """Run a step and return its seconds, its peak memory in MB, how much of it is its own, and what it returned."""
    import mirblab as lab  # noqa: F401  the imports are not what is measured
    from mirblab.retrieval import systems  # noqa: F401

    start, own, is_running = time.perf_counter(), [0], [True]

    def watch() -> None:
        while is_running[0]:
            lines = Path("/proc/self/status").read_text().split("\n")
            own[0] = max(own[0], *(int(line.split()[1]) // 1024 for line in lines if line.startswith("RssAnon")))
            time.sleep(0.01)

    watcher = threading.Thread(target=watch, daemon=True)  # ends with the process where the step fails
    watcher.start()
    result = STEPS[step](folder, *numbers)
    seconds = round(time.perf_counter() - start, 1)
    is_running[0] = False
    watcher.join()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"seconds": seconds, "peak_mb": peak, "own_mb": own[0], "result": result}


def show(home: str, label: str, step: str, *numbers: int | str) -> dict[str, object]:
    """Run a step in a process of its own, print a line of the table, and return what was measured.

    Its home is a new one but for the models, which are those of this process.
    """
    models = Path(home, "home", "models")
    models.parent.mkdir(exist_ok=True)
    if not models.is_symlink():
        models.symlink_to(paths.models())
    task = [
        sys.executable,
        __file__,
        "--step",
        json.dumps([step.removesuffix(" again"), f"{home}/statements", numbers]),
    ]
    environment = os.environ | {"MIRBLAB_HOME": f"{home}/home", "MIRBLAB_PROGRESS": "0"}
    line = subprocess.run(task, env=environment, check=True, capture_output=True, text=True).stdout
    about = json.loads(line.splitlines()[-1])
    disk = sum(path.stat().st_size for path in Path(home).rglob("*") if path.is_file()) >> 20
    print(
        f"{label} {step:>14} {about['seconds']:>8} {about['peak_mb']:>8,} {about['own_mb']:>7,} {disk:>8,}", flush=True
    )
    return about


def show_forms(home: Path | None, n_docs: int, jsonl: int) -> None:
    """Measure what reads texts, of parts and, up to *jsonl* documents, of one file."""
    found: dict[bool, dict[str, object]] = {}
    for in_one_file in (False, True)[: 2 if n_docs <= jsonl else 1]:
        with tempfile.TemporaryDirectory(dir=home, prefix="parts-") as folder:
            label = f"{n_docs:>10,} {'jsonl' if in_one_file else 'parts':>6}"
            show(folder, label, "write", n_docs, in_one_file)
            found[in_one_file] = {
                step: show(folder, label, step)["result"] for step in ("load", "search", "search again")
            }
    if len(found) == 2:
        print(f"{'':>10} fingerprints and runs are {'equal' if found[True] == found[False] else 'DIFFERENT'}: "
              f"{found[False]['search']}")  # fmt: skip


def show_runs(home: Path | None, n_docs: int, n_queries: int, depths: list[int]) -> None:
    """Measure what is done with runs of many queries."""
    with tempfile.TemporaryDirectory(dir=home, prefix="parts-") as folder:
        show(folder, f"{n_docs:>10,} {'':>6}", "write words", n_docs, n_queries)
        show(folder, f"{n_docs:>10,} {'':>6}", "load")
        for depth in depths:
            for step in ("made", "read", "values", "compare", "fuse"):
                print(f"{'':>10} {show(folder, f'{n_docs:>10,} {depth:>6,}', step, depth)['result']}")


def show_vectors(home: Path | None, n_docs: int, name: str) -> None:
    """Measure a dense search of all statements."""
    with tempfile.TemporaryDirectory(dir=home, prefix="parts-") as folder:
        label = f"{n_docs:>10,} {'parts':>6}"
        show(folder, label, "write", n_docs, False)
        for step in ("encode", "dense"):
            print(f"{'':>10} {show(folder, label, step, name)['result']}")


def show_all(home: Path | None, sizes: list[int], name: str) -> None:
    """Measure everything on each size, and print how seconds and memory grow."""
    steps: dict[str, tuple[int | str, ...]] = {
        "load": (), "search": (ALL_DEPTH,), "search again": (ALL_DEPTH,), "codes": (name,), "codes again": (name,),
        "fused": (name,), "near": (),
    }  # fmt: skip
    found: dict[str, list[dict[str, object]]] = {}
    for n_docs in sizes:
        with tempfile.TemporaryDirectory(dir=home, prefix="parts-") as folder:
            label = f"{n_docs:>10,} {'parts':>6}"
            found.setdefault("write", []).append(show(folder, label, "write", n_docs, False))
            for step, numbers in steps.items():
                found.setdefault(step, []).append(show(folder, label, step, *numbers))
    for step, rows in found.items():
        grown = np.diff(np.log(sizes))
        slopes = {what: np.diff(np.log([max(float(row[what]), 0.1) for row in rows])) / grown
                  for what in ("seconds", "own_mb")}  # fmt: skip
        print(f"{step:>14}", *(f"{what} {' '.join(f'{one:5.2f}' for one in own)}" for what, own in slopes.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", default="10000,100000,1000000")
    parser.add_argument("--jsonl", type=int, default=100_000)
    parser.add_argument("--runs", default="")
    parser.add_argument("--queries", type=int, default=25_000)
    parser.add_argument("--encoder", default="", help="its name, or the path of its folder")
    parser.add_argument("--all", default="", help="the encoder of a search by codes: its name, or its folder's path")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--step", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        step, folder, numbers = given.step
        print(json.dumps(measure(step, Path(folder), numbers)))
        return
    print(f"{'documents':>10} {'':>6} {'step':>14} {'seconds':>8} {'peak MB':>8} {'own MB':>7} {'disk MB':>8}")
    sizes = list(map(int, given.docs.split(",")))
    if given.all:
        show_all(given.folder, sizes, given.all)
        return
    for n_docs in sizes:
        if given.runs:
            show_runs(given.folder, n_docs, given.queries, list(map(int, given.runs.split(","))))
        elif given.encoder:
            show_vectors(given.folder, n_docs, given.encoder)
        else:
            show_forms(given.folder, n_docs, given.jsonl)


if __name__ == "__main__":
    main()
