"""projection: two-dimensional maps of vectors by UMAP, stored, and the numbers that say how far to trust them."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd

from mirblab import paths
from mirblab.errors import MirblabError


def project(
    vectors: np.ndarray,
    ids: Sequence[str],
    *,
    seed: int = 0,
    n_neighbors: int = 15,
    min_dist: float = 0.1,
    metric: str = "cosine",
) -> pd.DataFrame:
    """Return a map of *vectors* (n, n_dims): columns id, x, y, in the order of *ids*.

    UMAP (McInnes, Healy and Melville, 2018) on one thread, rows sorted by id, so that a seed gives the same map
    on one machine. The coordinates are stored under the hash of vectors and parameters and read back from
    there, because another machine would draw another map. Raises MirblabError for fewer than four rows.
    """
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if len(vectors) < 4 or len(vectors) != len(ids):
        raise MirblabError(f"a map needs at least 4 vectors and one id each; found {len(vectors)} and {len(ids)} ids")
    by_id = np.argsort(np.asarray(ids))
    settings = {"seed": seed, "n_neighbors": min(n_neighbors, len(ids) - 1), "min_dist": min_dist, "metric": metric}
    digest = hashlib.blake2b(vectors[by_id].tobytes() + json.dumps(settings, sort_keys=True).encode(), digest_size=16)
    path = paths.cache() / "projections" / f"{digest.hexdigest()}.parquet"
    if path.is_file():
        found = pd.read_parquet(path)[["x", "y"]].to_numpy()
    else:
        found = _umap(vectors[by_id], settings)
        with paths.write_atomically(path) as beside:
            pd.DataFrame({"id": np.asarray(ids)[by_id], "x": found[:, 0], "y": found[:, 1]}).to_parquet(beside)
    placed = np.empty_like(found)
    placed[by_id] = found
    return pd.DataFrame({"id": list(ids), "x": placed[:, 0], "y": placed[:, 1]})


def _umap(vectors: np.ndarray, settings: dict[str, object]) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import umap

        model = umap.UMAP(
            n_neighbors=settings["n_neighbors"],
            min_dist=settings["min_dist"],
            metric=settings["metric"],
            random_state=settings["seed"],
            n_jobs=1,
        )
        return np.asarray(model.fit_transform(vectors), dtype=np.float64)


def nearest(vectors: np.ndarray, k: int, metric: str = "cosine") -> np.ndarray:
    """Return the positions of each row's *k* nearest other rows, nearest first, shape (n, k).

    *metric* is "cosine" or "euclidean". Equal distances are ordered by position.

    >>> nearest(np.array([[0.0, 1.0], [0.1, 1.0], [1.0, 0.0]]), 1).ravel().tolist()
    [1, 0, 1]
    """
    if not 1 <= k < len(vectors):
        raise MirblabError(f"k must be between 1 and {len(vectors) - 1}, found {k}")
    rows = np.asarray(vectors, dtype=np.float64)
    if metric == "cosine":
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        distances = -rows @ rows.T
    elif metric == "euclidean":
        squares = (rows**2).sum(axis=1)
        distances = squares[:, None] + squares[None, :] - 2 * rows @ rows.T
    else:
        raise MirblabError(f"no metric '{metric}'; found cosine, euclidean")
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")[:, :k]


def neighbour_agreement(vectors: np.ndarray, coordinates: np.ndarray, k: int = 10) -> float:
    """Return the mean share of each point's *k* nearest (cosine) that are also nearest on the map, 0 to 1."""
    full, flat = nearest(vectors, k), nearest(coordinates, k, "euclidean")
    shared = [len(np.intersect1d(one, other)) for one, other in zip(full, flat, strict=True)]
    return float(np.mean(shared) / k)


def partners_nearby(positions: np.ndarray, classes: Sequence[str], k: int, metric: str = "cosine") -> float:
    """Return the share of points that have a member of their own class among their *k* nearest, 0 to 1.

    Points whose class has no other member do not count; with none left the share is 0.
    """
    labels = np.asarray(classes)
    names, counts = np.unique(labels, return_counts=True)
    paired = np.isin(labels, names[counts > 1])
    found = (labels[nearest(positions, k, metric)] == labels[:, None]).any(axis=1)
    return float(found[paired].mean()) if paired.any() else 0.0


def trust(
    vectors: np.ndarray, coordinates: pd.DataFrame, classes: Sequence[str], *, k: int = 10, seed: int = 0
) -> dict[str, float]:
    """Return what says whether to believe a map: neighbour agreement, trustworthiness, and partners nearby.

    Trustworthiness is that of Venna and Kaski (2006), by scikit-learn; all values are between 0 and 1.
    """
    from sklearn.manifold import trustworthiness

    flat = coordinates[["x", "y"]].to_numpy()
    k = min(k, (len(flat) - 1) // 2)
    return {
        "seed": seed,
        "neighbour agreement": neighbour_agreement(vectors, flat, k),
        "trustworthiness": float(trustworthiness(vectors, flat, n_neighbors=k, metric="cosine")),
        f"partner among {k} nearest, full space": partners_nearby(vectors, classes, k),
        f"partner among {k} nearest, map": partners_nearby(flat, classes, k, "euclidean"),
    }
