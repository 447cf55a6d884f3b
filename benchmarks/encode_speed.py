"""Documents per CPU-second of one thread: mirblab beside SentenceTransformer.encode with its default batch of 32.

    python benchmarks/encode_speed.py [--texts 320] [--corpus 14000] [--rounds 3] [--encoder minilm]

The corpus is stacks-premise from the shared data (MIRBLAB_SHARED, default ../shared), else synthetic mathematics. It
is sorted by length and ten evenly spaced runs are taken, so that batches look as they do inside a large corpus. Both
sides encode the same texts in turn, each starting from strings; mirblab also writes its shards to disk. Process time
counts all threads. The lowest cosine between the two results is printed.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "MIRBLAB_THREADS", "RAYON_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ["MIRBLAB_PROGRESS"] = "0"

import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from mirblab.core import registry  # noqa: E402
from mirblab.encoders import local  # noqa: E402
from mirblab.encoders.encoding import encoder  # noqa: E402


def corpus(n: int) -> list[str]:
    """Return up to *n* texts of real mathematics, or as many synthetic ones."""
    path = ROOT / os.environ.get("MIRBLAB_SHARED", "../shared") / "data" / "stacks-premise" / "corpus.jsonl.gz"
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            documents = [json.loads(line) for line in lines]
        texts = [f"{one.get('title', '')} {one['text']}".strip() for one in documents]
        print(f"corpus: stacks-premise, {len(texts):,} texts")
        return texts[:n]
    print("corpus: synthetic")
    rng = np.random.default_rng(0)
    words = ["Let", "$X$", "be", "a", "scheme", "\\mathcal{O}_X", "morphism", "of", "finite", "type", "\\frac{1}{2}"]
    return [f"{i} " + " ".join(rng.choice(words, rng.integers(5, 150))) for i in range(n)]


def sample(texts: list[str], n: int) -> list[str]:
    """Return ten evenly spaced runs of the texts sorted by length, *n* texts in all, shuffled."""
    ordered = sorted(texts, key=len)
    size = n // 10
    starts = np.linspace(0, len(ordered) - size, 10).astype(int)
    chosen = [ordered[start + i] for start in starts for i in range(size)]
    return [chosen[i] for i in np.random.default_rng(0).permutation(len(chosen))]


def main() -> None:
    """Encode the sample with both in turn and print medians, the ratio and the lowest cosine."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=320)
    parser.add_argument("--corpus", type=int, default=14_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--encoder", default="minilm")
    given = parser.parse_args()
    names = ("torch", "sentence-transformers", "transformers", "numpy")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    print(f"Python {platform.python_version()}, {versions}")
    texts = sample(corpus(given.corpus), given.texts)
    ways = both(given.encoder)
    seconds, found = alternate(ways, texts, given.rounds)
    for name, spent in seconds.items():
        rates = sorted(len(texts) / one for one in spent)
        print(f"{name:24} {statistics.median(rates):6.1f} docs/CPU-s ({rates[0]:.1f} to {rates[-1]:.1f})")
    ours, theirs = ways
    print(f"ratio {statistics.median(seconds[theirs]) / statistics.median(seconds[ours]):.2f}")
    a, b = (found[name] / np.linalg.norm(found[name], axis=1, keepdims=True) for name in (ours, theirs))
    print(f"lowest cosine {np.einsum('ij,ij->i', a.astype(float), b.astype(float)).min():.7f}")


def both(name: str) -> dict[str, Callable[[list[str]], np.ndarray]]:
    """Return mirblab's way and the library's own, each from texts to vectors, on one thread."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    entry = registry.read_registry("encoders")[name]
    plain = SentenceTransformer(str(local.locate_packaged(name, entry) or entry["id"]), device="cpu")

    def ours(texts: list[str]) -> np.ndarray:
        with tempfile.TemporaryDirectory() as home:
            os.environ["MIRBLAB_HOME"] = home
            return encoder(name).vectors(texts)

    return {"mirblab": ours, "SentenceTransformer, 32": lambda texts: plain.encode(texts, batch_size=32)}


def alternate(
    ways: dict[str, Callable[[list[str]], np.ndarray]], texts: list[str], rounds: int
) -> tuple[dict[str, list[float]], dict[str, np.ndarray]]:
    """Return the CPU seconds of each round by way, and the vectors of the last round."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    found: dict[str, np.ndarray] = {}
    for way in ways.values():
        way(texts[:8])
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.process_time()
            found[name] = way(texts)
            seconds[name].append(time.process_time() - start)
    return seconds, found


if __name__ == "__main__":
    main()
