"""structure_speed: build time, memory, size and query time of the structure search, and whether its results are exact.

    python benchmarks/structure_speed.py [--collection arqmath-2020-task2] [--split all74] [--formulas FILE]
    python benchmarks/structure_speed.py --generate 5000000      variants of the same formulas, other names and numbers
    python benchmarks/structure_speed.py --pya0 20000            Approach0's engine beside it, on so many formulas

Formulas: those of the collection, then those of FILE (id TAB LaTeX per line, `.gz` by suffix; by default
formulas.tsv.gz in the folder `data` of MIRBLAB_SHARED), without repetitions. Queries: the topics of the split, one by
one on one thread, LaTeX to ranking, after one round to warm up; three rounds, median and 95th percentile over all.
Exactness: the results of some queries are compared with a sort of every formula's score. Memory is what this
process, and those that it starts, held at most beside pages of files.

The plan for all of ARQMath: an instance is a pointer to its formula, and half of the instances repeat one; segments of
SHARD formulas are shards that any number of processes search side by side, with document counts of all of them, so that
merging their best is exact; within a shard, the floor of the best so far bounds what a formula must share
(`scoring.least_shared`), and token lists whose weights together stay below it need not be walked (MaxScore; not built).
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import random
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import numpy as np

from mirblab.core.processes import n_cores
from mirblab.data.collection import Collection, load_folder
from mirblab.data.ranking import top_k
from mirblab.formula.index import Index

WHOLE, SHARD = 28_000_000, 2_000_000  # formula instances of ARQMath, and how many one process would search
SHARED = Path(os.environ.get("MIRBLAB_SHARED", "../shared")) / "data"


def formulas(collection: Collection, path: Path) -> Iterator[tuple[str, str]]:
    """Yield id and LaTeX of the collection's formulas, then of those in a file that the collection lacks."""
    texts = set(collection.texts)
    yield from zip(collection.doc_ids, collection.texts, strict=True)
    if not path.is_file():
        print(f"no {path}: the collection alone")
        return
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        for line in file:
            name, _, latex = line.rstrip("\n").partition("\t")
            if latex not in texts:
                yield name, latex


def variants(items: list[tuple[str, str]], n: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Yield *n* formulas: the given ones, then copies with some letters and numbers exchanged."""
    draw = random.Random(seed)
    parts = re.compile(r"\\[A-Za-z]+|[A-Za-z]|\d+")

    def other(match: re.Match) -> str:
        found = match[0]
        if found[0] == "\\" or draw.random() < 0.5:
            return found
        return draw.choice("abcdefghijklmnopqrstuvwxyz") if found.isalpha() else str(draw.randrange(100))

    for number in range(n):
        name, latex = items[number % len(items)]
        yield (name, latex) if number < len(items) else (f"v{number}", parts.sub(other, latex))


@contextmanager
def watched_memory() -> Iterator[list[float]]:
    """Yield the most memory, in GB, that this process and all that it has started held until then, seen every 0.2 s.

    Pages of files do not count, since the system drops them when it needs room. Zeros where there is no /proc.
    """
    most, ended = [0.0, 0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            started = [pid for task in Path("/proc/self/task").glob("*/children") for pid in task.read_text().split()]
            held = own_memory("self"), sum(map(own_memory, started))
            most[:] = map(max, most, held)

    thread = threading.Thread(target=watch, daemon=True)
    if Path("/proc/self/smaps_rollup").is_file():
        thread.start()
    yield most
    ended.set()


def own_memory(process: str) -> float:
    """Return what a process holds that is no page of a file, shared pages in parts, in GB; 0 when it has ended."""
    try:
        lines = Path("/proc", process, "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss_Anon")) / 1e6


def cpu_time() -> float:
    """Return the CPU-seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def timed(search: object, queries: list[str], rounds: int = 3) -> tuple[str, float]:
    """Return median and 95th percentile of the milliseconds a query takes, of wall and of CPU time; mean CPU time."""
    spent: list[list[float]] = [[], []]
    for turn in range(rounds + 1):
        for query in queries:
            wall, cpu = time.perf_counter(), time.process_time()
            search(query)
            if turn:
                spent[0].append(1000 * (time.perf_counter() - wall))
                spent[1].append(1000 * (time.process_time() - cpu))
    wall, cpu = (f"{np.median(times):.1f} median, {np.percentile(times, 95):.1f} p95" for times in spent)
    return f"{wall} ms (CPU {cpu})", float(np.mean(spent[1]))


def is_exact(index: Index, queries: list[str], depth: int) -> bool:
    """Return whether the results of some queries are those of scoring and sorting every formula."""
    by_id = np.argsort(np.array(index.ids, dtype=object), kind="stable")
    for query in queries:
        scores = index.scores(index.queries([query])[0])[by_id]
        _, places, wanted = top_k(np.where(scores > 0, scores, -np.inf)[None], depth)
        _, positions, found = index.search([query], depth)
        if not (np.array_equal(by_id[places], positions) and np.array_equal(wanted, found)):
            return False
    return True


def approach0(items: list[tuple[str, str]], queries: list[str], depth: int) -> None:
    """Print what pya0 needs for the same formulas."""
    try:
        import pya0
    except ImportError:
        print("pya0 is not installed (pip install 'mirblab[approach0]', Linux)")
        return
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with silence():
            index = pya0.index_open(folder, option="w")
            writer = pya0.index_writer(index)
            for name, latex in items:
                pya0.writer_add_doc(writer, content=f"[imath]{latex}[/imath]", url=name)
                if pya0.writer_maintain(writer):
                    pya0.writer_flush(writer)
            pya0.writer_flush(writer)
            pya0.writer_close(writer)
            pya0.index_close(index)
        spent = time.perf_counter() - start
        sizes = [path.stat().st_blocks * 512 for path in Path(folder).rglob("*") if path.is_file()]
        print(f"pya0 {version('pya0')}: built in {spent:.1f} s, {sum(sizes) / 1e6:,.0f} MB in {len(sizes):,} files")
        with silence():
            index = pya0.index_open(folder, option="r")
            pya0.index_memcache(index, term_cache=0, math_cache=4000)
            query = {"type": "tex"}
            found = timed(
                lambda text: pya0.search(index, [query | {"str": text}], topk=depth, verbose=False), queries, 1
            )
            pya0.index_close(index)
        print(f"pya0 query: {found[0]}")


@contextmanager
def silence() -> Iterator[None]:
    """Keep what a library in C writes to the terminal out of it: thousands of lines about what it cannot parse."""
    sys.stdout.flush()
    kept = [os.dup(number) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        yield
    finally:
        sys.stdout.flush()
        for number, old in zip((1, 2), kept, strict=True):
            os.dup2(old, number)
            os.close(old)
        os.close(nowhere)


def measured(items: Iterator[tuple[str, str]], total: int, queries: list[str], depth: int) -> None:
    """Build an index in a temporary folder, and print all about it."""
    with tempfile.TemporaryDirectory() as folder:
        before, start, cpu = own_memory("self"), time.perf_counter(), cpu_time()
        with watched_memory() as held:
            index = Index.build(items, Path(folder) / "index", total or None)
        spent, used = time.perf_counter() - start, cpu_time() - cpu
        postings = sum(len(part.postings) for part in index.state.segments)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6
        print(
            f"{len(index):,} formulas, {postings / len(index):.0f} postings each, {len(index.state.segments)} segments"
        )
        print(f"built in {spent:.1f} s (CPU {used:.1f}), {size:,.0f} MB on disk", flush=True)
        print(f"own memory {held[0]:.2f} GB, of started processes {held[1]:.2f}; the formulas alone {before:.2f}")
        start = time.perf_counter()
        index = Index.open(Path(folder) / "index")
        print(f"opened and checked in {time.perf_counter() - start:.2f} s")
        shown, mean = timed(lambda query: index.search([query], depth), queries)
        print(f"query: {shown}", flush=True)
        print(f"same as exhaustive scoring: {is_exact(index, queries[:10], depth)}", flush=True)
        times = WHOLE / len(index)
        print(f"in proportion, {WHOLE / 1e6:.0f} million: {used * times / 3600:.1f} core-hours to build, "
              f"{size * times / 1000:.1f} GB, {mean * times:.0f} ms of CPU a query, "
              f"{mean * SHARD / len(index):.0f} on each of {WHOLE // SHARD} shards side by side")  # fmt: skip


def main() -> None:
    """Print what was built, how long it took, and how fast it answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collection", default="arqmath-2020-task2", help="a folder, or a name under MIRBLAB_SHARED")
    parser.add_argument("--split", default="all74")
    parser.add_argument("--formulas", type=Path, default=SHARED / "formulas.tsv.gz")
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--limit", type=int, default=0, help="take so many formulas only; 0: all")
    parser.add_argument("--generate", type=int, default=0, help="add variants up to so many formulas")
    parser.add_argument("--pya0", type=int, nargs="?", const=20_000, default=0, help="compare on so many formulas")
    given = parser.parse_args()
    folder = Path(given.collection)
    collection = load_folder(folder if folder.is_dir() else SHARED / given.collection, given.split)
    names = {name: version(name) for name in ("numpy", "numba")}
    found, queries = formulas(collection, given.formulas), collection.query_texts
    print(f"python {platform.python_version()}, {names}, {n_cores()} cores; {len(queries)} queries, top {given.depth}")
    if given.pya0:
        items = list(islice(found, given.pya0))
        measured(iter(items), len(items), queries, given.depth)
        approach0(items, queries, given.depth)
    elif given.generate:
        measured(variants(list(found), given.generate), given.generate, queries, given.depth)
    else:
        measured(islice(found, given.limit or None), given.limit, queries, given.depth)


if __name__ == "__main__":
    main()
