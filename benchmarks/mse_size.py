"""mse_size: BM25 over a collection as large as MIRB's MSE Dup., with its rule of shared tags: time and memory by stage.

    python benchmarks/mse_size.py [--scale 1.0] [--depth 100] [--system bm25] [--seed 0]
    python benchmarks/mse_size.py --in-memory            no files: the collection is made in memory
    python benchmarks/mse_size.py --folder FOLDER        write it there, or read it there when it exists, and keep it

At scale 1: 25,116 queries by 1,350,505 documents of about 97 and 116 words, 1,700 tags, one to five for a post. Words
follow a Zipf-Mandelbrot law over a million forms, fitted to the document frequencies of ARQMath's answers, and each
tag adds words of its own, so that documents of the same tags, which the rule excludes, resemble each other as they do
in earnest. The same seed and scale give the same collection. CPU-seconds are those of all threads.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from mirblab.core.processes import n_cores, split_range
from mirblab.data import beir as on_disk
from mirblab.data import collection, runs
from mirblab.data.candidates import Candidates, ListRule, TagRule, tag_matrix
from mirblab.data.collection import Card, Collection, load_folder
from mirblab.retrieval import bm25, systems, tokenizers

N_QUERIES, N_DOCS, N_TAGS, N_WORDS = 25_116, 1_350_505, 1_700, 1_000_000
BLOCK = 20_000
GLUED = 1.06  # words drawn for each that stands between blanks
OFFSET, POWER = 20, 1.15  # of the Zipf-Mandelbrot law: chance of rank r is proportional to (r + OFFSET) ** -POWER
SYLLABLES = [f"{first}{vowel}" for first in "bcdfghklmnprstvz" for vowel in "aeiou"]
SYMBOLS = (
    r"x n = + 0 1 2 f \in a \le k \frac \to y i \sum m p A \mathbb{R} z \int \alpha G \cdot \infty g X \pi".split()
)


def law(random: np.random.Generator, shape: object, size: int, offset: float, power: float) -> np.ndarray:
    """Return ranks from 0 to below *size* by the Zipf-Mandelbrot law, through the inverse of its integral."""
    low, high = (offset + 0.5) ** (1 - power), (offset + 0.5 + size) ** (1 - power)
    chance = random.random(shape, dtype=np.float32).astype(np.float64)
    found = (low + chance * (high - low)) ** (1 / (1 - power)) - offset - 0.5
    return np.minimum(found.astype(np.int64), size - 1)


def forms(size: int) -> np.ndarray:
    """Return the written form of each rank: words of two to five syllables, and every sixth a piece of a formula."""
    random = np.random.default_rng(7)
    parts = random.integers(0, len(SYLLABLES), (size, 5))
    lengths, signs = random.integers(2, 6, size), law(random, (size, 3), len(SYMBOLS), 3, 1.3)
    names = []
    for rank in range(size):
        if rank % 6 == 0:
            one, two, three = (SYMBOLS[sign] for sign in signs[rank])
            names.append(f"${one}$" if rank < 180 else f"${one}_{{{two}}}{three}$")
        else:
            names.append("".join(SYLLABLES[part] for part in parts[rank, : lengths[rank]]))
    ends = np.array([*[""] * 14, ",", "."], dtype=object)[random.integers(0, 16, size)]
    return np.array(names, dtype=object) + ends


def posts(random: np.random.Generator, count: int, words: float) -> tuple[list[np.ndarray], list[list[int]]]:
    """Return ranks of the words and tags of *count* posts: nearly half of the words repeat, a sixth belong to a tag."""
    lengths = np.maximum(random.gamma(1.6, words * GLUED / 1.6, count).astype(int), 5)
    n_tags = random.choice([1, 2, 3, 4, 5], count, p=[0.2, 0.3, 0.27, 0.15, 0.08])
    drawn = law(random, (count, 5), N_TAGS, 6, 1.4)
    tags = [list(dict.fromkeys(row[:n].tolist())) for row, n in zip(drawn, n_tags, strict=True)]
    ranks = law(random, lengths.sum(), N_WORDS, OFFSET, POWER)
    first = np.repeat(drawn[:, 0], lengths)
    own = random.random(len(ranks), dtype=np.float32) < 1 / 6
    ranks[own] = 200 + 40 * first[own] + law(random, int(own.sum()), 40, 3, 1.3)
    ends = np.cumsum(lengths)
    place = np.arange(len(ranks)) - np.repeat(ends - lengths, lengths)
    back = (random.random(len(ranks), dtype=np.float32) * place).astype(np.int64)
    again = random.random(len(ranks), dtype=np.float32) < 0.45
    ranks = ranks[np.arange(len(ranks)) - np.where(again, back, 0)]
    return np.split(ranks, ends[:-1]), tags


def parts(scale: float, seed: int) -> tuple[Iterator[dict], Iterator[dict], list[tuple[str, str, int]]]:
    """Return rows of corpus and queries, and judgements; a query has two fifths of its words from a gold document."""
    n_docs, n_queries = max(50, int(N_DOCS * scale)), max(3, int(N_QUERIES * scale))
    random, names = np.random.default_rng(seed), forms(N_WORDS)
    n_gold = random.choice([1, 2, 3, 4], n_queries, p=[0.55, 0.22, 0.13, 0.10])
    golds = np.split(random.choice(n_docs, n_gold.sum(), replace=False), np.cumsum(n_gold)[:-1])
    wanted = {int(gold[0]): number for number, gold in enumerate(golds)}
    models: dict[int, tuple[np.ndarray, list[int]]] = {}

    def row(prefix: str, number: int, ranks: np.ndarray, tags: list[int]) -> dict:
        # Forms that stand between blanks are, as in formulas, often seen only once.
        text = " ".join(names[ranks].tolist()).replace(", ", ",")
        return {"_id": f"{prefix}{number:07d}", "text": text, "tags": [f"tag-{tag:04d}" for tag in tags]}

    def corpus() -> Iterator[dict]:
        for block in split_range(n_docs, BLOCK):
            drawn = np.random.default_rng([seed, 1, block.start])
            for number, (ranks, tags) in enumerate(
                zip(*posts(drawn, block.stop - block.start, 116.4), strict=True), block.start
            ):
                if number in wanted:
                    models[wanted[number]] = (ranks, tags)
                yield row("d", number, ranks, tags)

    def queries() -> Iterator[dict]:
        for number, (ranks, tags) in enumerate(
            zip(*posts(np.random.default_rng([seed, 2]), n_queries, 97.2), strict=True)
        ):
            model, own = models[number]
            copied = np.arange(len(ranks)) % 5 < 2
            ranks[copied] = np.resize(model, int(copied.sum()))
            yield row("q", number, ranks, list(dict.fromkeys([own[0], *tags[1:]])))

    pairs = [(f"q{number:07d}", f"d{doc:07d}", 1) for number, gold in enumerate(golds) for doc in sorted(gold)]
    return corpus(), queries(), pairs


def in_memory(scale: float, seed: int) -> Collection:
    """Return the collection without writing it."""
    corpus, queries, pairs = parts(scale, seed)
    tables = [
        pd.DataFrame(rows).rename(columns={"_id": f"{stem}_id"}) for stem, rows in (("doc", corpus), ("query", queries))
    ]
    docs, asked = tables[0].assign(title=""), tables[1]
    judged = pd.DataFrame(pairs, columns=["query_id", "doc_id", "relevance"])
    qrels = judged.assign(
        query_id=pd.Categorical(judged.query_id, pd.Index(asked.query_id, name=None)),
        doc_id=pd.Categorical(judged.doc_id, pd.Index(docs.doc_id, name=None)),
    )
    codes = [qrels[name].cat.codes.to_numpy().astype(np.int64) for name in ("query_id", "doc_id")]
    gold = ListRule.from_pairs("gold", *codes, len(asked), allow=True)
    names = pd.Index([f"tag-{tag:04d}" for tag in range(N_TAGS)])
    rule = TagRule(tag_matrix(asked.tags, names), tag_matrix(docs.tags, names), gold)
    return Collection("mse-size", "test", docs, asked, qrels, Candidates(len(docs), (rule,)), Card(name="mse-size"))


class Stages:
    """A table of what each stage took."""

    def __init__(self) -> None:
        """Print the head of the table."""
        print(
            "\n| stage | wall, s | CPU, s | memory after, GiB | peak so far, GiB |\n|---|---|---|---|---|", flush=True
        )

    def __call__(self, name: str, function: Callable[[], object]) -> object:
        """Return what *function* returns, and print a line."""
        wall, cpu = time.perf_counter(), time.process_time()
        found = function()
        self.line(name, wall, cpu)
        return found

    def line(self, name: str, wall: float, cpu: float) -> None:
        """Print what has passed since *wall* and *cpu*."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        spent = f"{time.perf_counter() - wall:,.1f} | {time.process_time() - cpu:,.1f}"
        print(f"| {name} | {spent} | {resident():.2f} | {peak:.2f} |", flush=True)


def resident() -> float:
    """Return the memory of this process in GiB; 0 where the system does not say."""
    path = Path("/proc/self/statm")
    return int(path.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**30 if path.exists() else 0.0


def main() -> None:
    """Print a line per stage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the published size")
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--system", default="bm25", help="a system of kind bm25")
    parser.add_argument("--folder", default="", help="where the collection is written and kept; empty: nowhere")
    parser.add_argument("--in-memory", action="store_true")
    given = parser.parse_args()
    os.environ["MIRBLAB_PROGRESS"] = "0"
    versions = {name: version(name) for name in ("bm25s", "numpy", "numba", "scipy", "pandas", "pyarrow")}
    print(f"python {platform.python_version()}, {versions}, {n_cores()} cores; {vars(given)}")
    if given.in_memory:
        measure(lambda: in_memory(given.scale, given.seed), given, "make in memory")
        return
    place = Path(given.folder or tempfile.mkdtemp(prefix="mse-size-"))
    try:
        if not (place / "card.toml").is_file():
            begun = time.perf_counter()
            about = {"name": "mse-size", "candidates": ["tags"], "relevance_levels": [0, 1]}
            corpus, queries, pairs = parts(given.scale, given.seed)
            on_disk.write_collection(place, corpus, queries, {"test": pairs}, about)
            size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
            print(f"written in {time.perf_counter() - begun:.0f} s: {size / 2**30:.2f} GiB")
        measure(lambda: load_folder(place), given, "load and check")
    finally:
        if not given.folder:
            shutil.rmtree(place)


def measure(make: Callable[[], Collection], given: argparse.Namespace, first: str) -> None:
    """Print what each stage of a search takes, from the collection to the run."""
    settings = {"kind": "", "label": "", "paper": ""} | systems.system(given.system).settings
    if settings["kind"] != "bm25":
        raise SystemExit(f"{given.system} is of kind {settings['kind']}; this measures BM25")
    options = {key: value for key, value in settings.items() if key not in ("kind", "label", "paper")}
    stage, begun = Stages(), (time.perf_counter(), time.process_time())
    c = stage(first, make)
    stage("texts", lambda: c.texts)
    vocabulary = bm25.Vocabulary()
    read = tokenizers.token_reader(options["tokenizer"], vocabulary.__getitem__)
    counted = stage("tokenize and count", lambda: bm25.count_terms(map(read, c.texts), vocabulary))
    tokens = stage("tokenize queries", lambda: tokenizers.tokenizer(options["tokenizer"])(c.query_texts))
    parts = (options["method"], options["k1"], options["b"], options.get("delta", 0.5))
    index = stage("weigh", lambda: bm25.TermIndex.weighted(vocabulary, counted, *parts))
    stage("postings by term", lambda: index.postings)
    published = options.get("compat") == "mirb"
    found = stage("search", lambda: index.search(tokens, given.depth, c.candidates, published))
    run = stage("run", lambda: runs.from_positions(*found, c.query_ids, c.doc_ids, given.system, c.name))
    stage.line("**all of these**", *begun)
    stage("search without the rule", lambda: index.search(tokens, given.depth, None, published))
    stage("the rule alone, as masks", lambda: masks(c))
    stage("fingerprint", lambda: c.fingerprint)
    stage("oddities", lambda: collection.count_oddities(c.corpus, c.queries, c.qrels, c.card.relevant_from))
    stage("statistics", c.statistics)
    print()
    describe(c, index, tokens, run)


def masks(c: Collection) -> None:
    """Evaluate the rule for every pair of query and document, a block at a time."""
    for block in split_range(len(c.queries), bm25.ROWS):
        for docs in split_range(len(c.corpus), bm25.SLAB):
            c.candidates.allowed(np.arange(block.start, block.stop), docs)


def describe(c: Collection, index: bm25.TermIndex, tokens: list[list[str]], run: pd.DataFrame) -> None:
    """Print sizes, and what shows that the rule held: no restricted document, and how many gold ones came back."""
    n_postings = index.document_counts[index.queries(tokens).indices].sum()
    print(f"{c!r}; {c.statistics()}")
    print(f"{len(index.vocabulary):,} terms, {index.weights.nnz / len(c.corpus):.0f} distinct in a document")
    print(f"postings per query and document: {n_postings / len(tokens) / len(c.corpus):.2f}")
    kept = c.candidates.permits(run.query_id.cat.codes.to_numpy(), run.doc_id.cat.codes.to_numpy())
    print(f"{len(run):,} documents returned, {int((~kept).sum())} of them restricted")
    gold = run.merge(c.qrels.astype({"query_id": run.query_id.dtype, "doc_id": run.doc_id.dtype}))
    print(f"judged documents found: {len(gold):,} of {len(c.qrels):,}; {dict(c.oddities)}")


if __name__ == "__main__":
    main()
