"""chunks: vectors to their store a chunk at a time, so that an interruption costs little."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import numpy as np

from mirblab import paths
from mirblab.cache import VectorStore

TEXTS, SECONDS = 1_000, 20.0


def append(
    store: VectorStore, texts: Sequence[str], batches: Iterable[tuple[list[int], np.ndarray]]
) -> dict[str, np.ndarray]:
    """Append to *store* what *batches* yield, positions in *texts* and their vectors, also when interrupted.

    Return by text the vectors that could not be stored.
    """
    unstored: dict[str, np.ndarray] = {}
    rows: list[int] = []
    done: list[np.ndarray] = []
    last = time.monotonic()
    try:
        for batch, vectors in batches:
            rows += batch
            done.append(vectors)
            if len(rows) >= TEXTS or time.monotonic() - last > SECONDS:
                unstored |= _stored(store, [texts[row] for row in rows], np.concatenate(done))
                rows, done, last = [], [], time.monotonic()
    finally:
        if done:
            rows = rows[: sum(map(len, done))]
            unstored |= _stored(store, [texts[row] for row in rows], np.concatenate(done))
    return unstored


def _stored(store: VectorStore, texts: list[str], vectors: np.ndarray) -> dict[str, np.ndarray]:
    """Append vectors to *store*; return them by text if that cannot be done."""
    return {} if paths.stored("vectors", store.append, texts, vectors) else dict(zip(texts, vectors, strict=True))
