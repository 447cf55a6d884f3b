"""explore_latency: seconds from a query to the explorer's lists as HTML, for each system, on real collections.

    MIRBLAB_PROGRESS=0 python benchmarks/explore_latency.py mini-qa ../shared/data/stacks-qa ../shared/data/blueprints

Queries are those of the collection, typed as free text with a word added, so that each is encoded and
searched anew. With `--random`, document vectors of dense systems are random unit vectors of the right shape
(encoding 40,000 documents takes a quarter of an hour on two cores): search and query encoding are the real ones.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from functools import cached_property
from importlib.metadata import version

import numpy as np

from mirblab.analysis.searching.engines import DenseEngine
from mirblab.app.explorer import panes
from mirblab.app.explorer.model import Model
from mirblab.encoders import encoding
from mirblab.retrieval.dense import normalise
from mirblab.sources import catalogue


def random_vectors(vectors: DenseEngine) -> np.ndarray:
    """Return unit vectors for the documents, drawn with seed 0."""
    size = len(vectors.collection.corpus), vectors.model.dimensions
    return normalise(np.random.default_rng(0).standard_normal(size, dtype=np.float32))


def seconds(model: Model, n_queries: int) -> tuple[float, list[float], list[float]]:
    """Return the wall seconds until the first answer, then wall and processor seconds of each of the next."""
    texts = [f"{text} thus" for text in model.collection.query_texts[: n_queries + 1]]
    wall, processor, first = [], [], 0.0
    for place, text in enumerate(texts):
        started, used = time.perf_counter(), time.process_time()
        panes.lists(model.ask(text))
        if place:
            wall.append(time.perf_counter() - started)
            processor.append(time.process_time() - used)
        else:
            first = time.perf_counter() - started
    return first, wall, processor


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", nargs="+")
    parser.add_argument("--systems", nargs="+", default=["bm25", "minilm", "structure", "bm25+minilm"])
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--random", action="store_true", help="random document vectors for dense systems")
    given = parser.parse_args()
    if given.random:
        DenseEngine.ready = cached_property(random_vectors)
        DenseEngine.ready.__set_name__(DenseEngine, "ready")
    encoding.encoder("minilm").tokens(["the model is loaded before anything is measured"])
    cores, load = os.cpu_count(), os.getloadavg()[0]
    names = ("mirblab", "numpy", "scipy", "torch", "ipywidgets")
    print(f"Python {platform.python_version()}, {', '.join(f'{name} {version(name)}' for name in names)}")
    print(f"{cores} cores, load {load:.1f} before; milliseconds a query: min median max, of wall and of processor time")
    for name in given.collections:
        collection = catalogue.load(name)
        for own in [*given.systems, given.systems[:2], given.systems]:
            model = Model(collection, own)
            first, *both = seconds(model, given.queries)
            shown = "   ".join(f"{min(x) * 1e3:6.0f} {np.median(x) * 1e3:6.0f} {max(x) * 1e3:6.0f}" for x in both)
            label = own if isinstance(own, str) else f"all {len(own)} together"
            print(f"{collection.name:16} {len(collection.corpus):7,}  {label:18} first {first:6.1f} s   {shown}")


if __name__ == "__main__":
    main()
