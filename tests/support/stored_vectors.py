"""Texts and vectors to store, and the files of a store to damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mirblab.encoders.cache import VectorStore
from mirblab.encoders.token_vectors import TokenStore

SPACE = {"model": "toy/one", "revision": "r1", "role": "document", "prompt": "", "dimensions": 6}


def rows(texts: list[str], d: int = 6) -> np.ndarray:
    """Return a vector for each text that depends on the text alone."""
    seeds = [int.from_bytes(text.encode("utf-8", "surrogatepass")[:8].ljust(8), "little") for text in texts]
    return np.stack([np.random.default_rng(seed).standard_normal(d, dtype=np.float32) for seed in seeds])


def names(n: int, start: int = 0) -> list[str]:
    """Return *n* distinct texts."""
    return [f"{i:05d} lemma" for i in range(start, start + n)]


def shards(store: VectorStore | TokenStore) -> list[Path]:
    """Return the shard files of a store, oldest first."""
    return sorted(store.path.glob("*.safetensors"))


def flip(path: Path, at: int) -> None:
    """Change one bit of one byte of a file, keeping its length."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(bytes(data))
