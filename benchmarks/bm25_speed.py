"""bm25_speed: BM25 beside other programs: building time, queries per second and memory, on the same tokens.

    python benchmarks/bm25_speed.py [--docs 100000] [--queries 512] [--depth 1000] [--rounds 3] [--words 50]
    python benchmarks/bm25_speed.py --collection FOLDER      real text instead of a synthetic Zipf corpus
    python benchmarks/bm25_speed.py --systems mirblab "mirblab on disk"

Each system runs in a process of its own, one after the other: it builds its index, searches once to warm up, and then
--rounds times (rank-bm25: five queries, and at most 100,000 documents); medians with their range. CPU-seconds are
those of all threads, memory is the peak of the process, tokens included. The scores of each system are compared with
those of the first one, except where its formula is another. tantivy is measured where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np

from mirblab.core.processes import n_cores, split_range
from mirblab.data.collection import load_folder
from mirblab.retrieval import tokenizers
from mirblab.retrieval.bm25 import TermIndex, build_index

RANK_BM25_DOCS, BLOCK, N_WORDS = 100_000, 20_000, 8000
Tokens = list[list[str]]
Search = Callable[[Tokens, int], list[np.ndarray]]


def draw_words(random: np.random.Generator, lengths: np.ndarray) -> Tokens:
    """Return texts of these lengths, their words from one Zipf law over 8,000."""
    chance = 1 / np.arange(1, N_WORDS + 1)
    names = np.array([f"w{number}" for number in range(N_WORDS)], dtype=object)
    drawn = names[random.choice(N_WORDS, lengths.sum(), p=chance / chance.sum())]
    return [part.tolist() for part in np.split(drawn, np.cumsum(lengths)[:-1])]


def synthetic_docs(n_docs: int) -> Iterator[list[str]]:
    """Yield documents of gamma lengths, about 100 words on average."""
    for block in split_range(n_docs, BLOCK):
        random = np.random.default_rng([0, block.start])
        yield from draw_words(random, np.maximum(random.gamma(1.6, 62, block.stop - block.start).astype(int), 5))


def read_texts(given: argparse.Namespace) -> tuple[Iterator[list[str]], Tokens]:
    """Return the tokens of the documents, as a stream, and of the queries, which are repeated up to their number."""
    if not given.collection:
        return synthetic_docs(given.docs), draw_words(np.random.default_rng(1), np.full(given.queries, given.words))
    folder = Path(given.collection)
    if not folder.is_dir():
        folder = Path(os.environ.get("MIRBLAB_SHARED", "../shared")) / "data" / given.collection
    collection = load_folder(folder)
    queries = tokenizers.math_tokens(collection.query_texts)
    read = tokenizers.token_reader("math")
    return map(list, map(read, collection.texts)), (queries * (1 + given.queries // len(queries)))[: given.queries]


def build_mirblab(docs: Iterator[list[str]], folder: Path) -> Search:
    """Index in memory."""
    index = TermIndex.build(docs, "lucene", 1.2, 0.75, 0.5)
    return lambda queries, depth: split_rows(index.search(queries, depth), len(queries))


def build_on_disk(docs: Iterator[list[str]], folder: Path) -> Search:
    """Index in parts on disk."""
    index = build_index(docs, folder / "index")
    return lambda queries, depth: split_rows(index.search(queries, depth), len(queries))


def split_rows(hits: tuple[np.ndarray, np.ndarray, np.ndarray], n_queries: int) -> list[np.ndarray]:
    """Return the scores of each query."""
    return np.split(hits[2], np.searchsorted(hits[0], np.arange(1, n_queries)))


def build_bm25s(docs: Iterator[list[str]], folder: Path) -> Search:
    """Index by bm25s; all cores search."""
    import bm25s

    engine = bm25s.BM25(k1=1.2, b=0.75, backend="numba")
    engine.index(list(docs), show_progress=False)
    options = {"show_progress": False, "n_threads": n_cores()}
    return lambda queries, depth: list(engine.retrieve(queries, k=depth, **options).scores)


def build_rank_bm25(docs: Iterator[list[str]], folder: Path) -> Search:
    """Index by rank-bm25, whose idf is another one, so that its scores are not compared."""
    from rank_bm25 import BM25Okapi

    model = BM25Okapi(list(docs), k1=1.2)
    return lambda queries, depth: [np.sort(model.get_scores(query))[::-1][:depth] for query in queries]


def build_tantivy(docs: Iterator[list[str]], folder: Path) -> Search:
    """Index by tantivy, which rounds lengths, so that its scores are not compared; all cores search."""
    import tantivy

    fields = tantivy.SchemaBuilder()
    fields.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    schema = fields.build()
    (folder / "index").mkdir()
    index = tantivy.Index(schema, str(folder / "index"))
    writer = index.writer(1 << 30, n_cores())
    for tokens in docs:
        writer.add_document(tantivy.Document(text=" ".join(tokens)))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search_one(words: list[str], depth: int) -> np.ndarray:
        terms = [(tantivy.Occur.Should, tantivy.Query.term_query(schema, "text", word, "freq")) for word in words]
        hits = searcher.search(tantivy.Query.boolean_query(terms), depth, count=False).hits
        return np.array([score for score, _ in hits])

    def search(queries: Tokens, depth: int) -> list[np.ndarray]:
        with ThreadPoolExecutor(n_cores()) as threads:
            return list(threads.map(lambda words: search_one(words, depth), queries))

    return search


SYSTEMS = {
    "mirblab": (build_mirblab, ("numpy", "numba", "scipy")),
    "mirblab on disk": (build_on_disk, ("numpy", "numba", "scipy")),
    "bm25s numba": (build_bm25s, ("bm25s", "numba")),
    "tantivy": (build_tantivy, ("tantivy",)),
    "rank-bm25": (build_rank_bm25, ("rank-bm25",)),
}
OTHER_SCORES = ("rank-bm25", "tantivy")


def measure(given: argparse.Namespace) -> dict[str, object]:
    """Return what one system needs, and the scores of the first queries."""
    build, packages = SYSTEMS[given.one]
    docs, queries = read_texts(given)
    queries = queries[:5] if given.one == "rank-bm25" else queries
    with tempfile.TemporaryDirectory(prefix="bm25-speed-") as folder:
        listed = list(docs) if given.one != "mirblab on disk" else None  # made before the clock starts
        begun = time.perf_counter()
        search = build(iter(listed) if listed is not None else docs, Path(folder))
        spent, rounds = time.perf_counter() - begun, []
        del listed
        for _ in range(1 + given.rounds):
            wall, cpu = time.perf_counter(), time.process_time()
            found = search(queries, given.depth)
            rounds.append((len(queries) / (time.perf_counter() - wall), len(queries) / (time.process_time() - cpu)))
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return {
        "versions": {name: version(name) for name in packages},
        "build": spent,
        "first": len(queries) / rounds[0][0],
        "rounds": rounds[1:],
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "disk": size / 2**30,
        "scores": [scores.astype(float).tolist() for scores in found[:5]],
    }


def main() -> None:
    """Print one line per system."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = (("docs", 100_000), ("queries", 512), ("depth", 1000), ("rounds", 3), ("words", 50))
    for name, usual in sizes:
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--collection", default="", help="a folder, or a name under `data` in MIRBLAB_SHARED")
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ["MIRBLAB_PROGRESS"] = "0"
    if given.one:
        print(json.dumps(measure(given)))
        return
    what = given.collection or f"Zipf, {given.docs:,} documents, queries of {given.words} words"
    print(
        f"python {platform.python_version()}, {n_cores()} cores; {what}; {given.queries} queries, top {given.depth}\n"
    )
    print("| system | built in, s | first search, s | queries/s | range | queries per CPU-s | peak GiB | GiB on disk |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    notes, expected = [], None
    for name in given.systems:
        if name == "rank-bm25" and given.docs > RANK_BM25_DOCS:
            continue
        if name == "tantivy" and importlib.util.find_spec("tantivy") is None:
            notes.append("tantivy is not installed: pip install tantivy")
            continue
        command = [sys.executable, __file__, *sys.argv[1:], "--one", name]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True)  # noqa: S603  this script
        if result.returncode:
            notes.append(f"{name} ended with the code {result.returncode}")
            continue
        found = json.loads(result.stdout.splitlines()[-1])
        wall, cpu = np.median(found["rounds"], axis=0)
        low, high = np.min(found["rounds"], axis=0)[0], np.max(found["rounds"], axis=0)[0]
        line = f"{found['build']:.1f} | {found['first']:.1f} | {wall:,.1f} | {low:,.1f} to {high:,.1f} | {cpu:,.1f}"
        print(f"| {name} | {line} | {found['peak']:.2f} | {found['disk']:.2f} |", flush=True)
        notes.append(f"{name}: {found['versions']}")
        if name in OTHER_SCORES:
            continue
        expected = expected or found["scores"]
        gaps = [
            np.abs(np.subtract(one[: len(other)], other[: len(one)])).max(initial=0)
            for one, other in zip(expected, found["scores"], strict=True)
        ]
        notes[-1] += f"; largest difference of scores to {given.systems[0]}: {max(gaps):.1e}"
    print("\n" + "\n".join(notes))


if __name__ == "__main__":
    main()
