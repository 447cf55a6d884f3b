"""late_shrink: fewer numbers per text for late interaction: tokens merged, dimensions projected, eight bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mirblab.errors import MirblabError
from mirblab.hidden import unit


@dataclass(frozen=True)
class Shrink:
    """How the token vectors of a text are made smaller before they are stored.

    *dimensions*: of a seeded random projection, 0 for none. *factor*: a document of n tokens keeps n / factor,
    rounded up, by merging similar ones; queries keep all. Queries and documents share the projection.

    >>> Shrink(dimensions=128, factor=2).name
    '128 dimensions, tokens merged by 2'
    """

    dimensions: int = 0
    factor: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        if self.dimensions < 0 or self.factor < 1:
            raise MirblabError(
                f"token vectors take dimensions from 0 (all) and a pooling factor from 1 (none); found "
                f"{self.dimensions} and {self.factor}"
            )

    @property
    def name(self) -> str:
        """Return what is done in words; "" for nothing."""
        merged = f"tokens merged by {self.factor}" if self.factor > 1 else ""
        return ", ".join(filter(None, [f"{self.dimensions} dimensions" if self.dimensions else "", merged]))

    def of(self, role: str) -> Shrink:
        """Return what is done to texts of a *role*: only documents have their tokens merged."""
        return Shrink(self.dimensions, self.factor if role == "document" else 1, self.seed if self.dimensions else 0)

    def key(self) -> Mapping[str, Any]:
        """Return what determines the result, for the store; nothing where nothing is done."""
        found = {name: value for name, value in asdict(self).items() if name != "seed" or self.dimensions}
        return {} if not self.name else {"shrunk": found}

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        """Return unit vectors (n_kept, n_dims) in the place of unit vectors (n_tokens, d), float32."""
        kept = merged(tokens, self.factor) if self.factor > 1 else tokens
        return projected(kept, self.dimensions, self.seed) if self.dimensions and len(kept) else kept


def merged(tokens: np.ndarray, factor: int) -> np.ndarray:
    """Return at most n / *factor* unit vectors, rounded up, in the place of *tokens* (n, d): means of similar ones.

    Clusters are Ward's over the unit vectors, in the order in which they begin in the text; Clavié, Chaffin and
    Adams, "Reducing the Footprint of Multi-Vector Retrieval with Minimal Performance Impact via Token Pooling", 2024.

    >>> merged(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), 2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    wanted = -(-len(tokens) // factor)
    if wanted >= len(tokens):
        return np.asarray(tokens, np.float32)
    from scipy.cluster.hierarchy import fcluster, linkage

    found = fcluster(linkage(np.asarray(tokens, np.float64), "ward"), wanted, "maxclust")
    _, first, place = np.unique(found, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))[place]
    sums = np.zeros((len(first), tokens.shape[1]), np.float32)
    np.add.at(sums, order, np.asarray(tokens, np.float32))
    return unit(sums)


def projected(tokens: np.ndarray, dimensions: int, seed: int = 0) -> np.ndarray:
    """Return unit vectors (n, *dimensions*): *tokens* (n, d) in a random subspace, the same for the same *seed*.

    The subspace has an orthonormal basis, so that cosines are kept as far as chance allows; see `train.late` for a
    learnt one. Raises MirblabError for more dimensions than the tokens have.

    >>> projected(np.eye(3), 2).shape
    (3, 2)
    """
    width = tokens.shape[1]
    if dimensions > width:
        raise MirblabError(f"token vectors of {width} dimensions cannot be projected to {dimensions}; ask for fewer")
    return unit(np.asarray(tokens, np.float32) @ _basis(width, dimensions, seed))


@lru_cache(maxsize=8)
def _basis(width: int, dimensions: int, seed: int) -> np.ndarray:
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((width, dimensions)))[0].astype(np.float32)
    basis.flags.writeable = False
    return basis


def rounded(tokens: np.ndarray) -> np.ndarray:
    """Return what eight bits keep of *tokens* (n, d), float32: 255 steps between minus and plus each row's largest.

    A row takes d + 2 bytes: its numbers, and the largest as float16.

    >>> bool(np.abs(rounded(np.array([[0.6, 0.8]])) - [[0.6, 0.8]]).max() < 0.8 / 254 + 0.001)
    True
    """
    largest = np.abs(tokens).max(axis=1, keepdims=True, initial=0).astype(np.float16).astype(np.float32)
    steps = np.round(tokens / np.where(largest > 0, largest, 1) * 127).clip(-127, 127)
    return (steps * largest / 127).astype(np.float32)
