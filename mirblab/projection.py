"""projection: two-dimensional maps of vectors by UMAP, stored and read back."""

from __future__ import annotations

import hashlib
import io
import json
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mirblab import neighbours, paths, sealed
from mirblab.errors import MirblabError

_SUFFIX, _AGAIN = ".parquet", "it is drawn again when it is needed"
_OLDER = re.compile(r"[0-9a-f]{32}\.parquet")


def maps(
    points: pd.DataFrame,
    vectors: np.ndarray,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    k: int = 10,
    n_neighbors: int = 15,
    min_dist: float = 0.1,
    metric: str = "cosine",
) -> pd.DataFrame:
    """Return one map of the *points* for each seed: their columns, seed, x, y, and what each map keeps of the space.

    *points* are from `equivalence.statements` (id, class_id, field, kind), *vectors* theirs, (n, n_dims), in the same
    order. A map may be turned and mirrored: here its longest extent is horizontal, and the maps of later seeds lie as
    much like the first as they can. The numbers for each point are those of `neighbours.per_point` with *k*;
    `neighbours.trust` sums them up.
    `attrs` hold the settings of UMAP, its version and a hash of the vectors: the provenance of the coordinates.

    >>> points = pd.DataFrame({"id": list("abcdef"), "class_id": list("ppqqrr"), "field": "f", "kind": "pair"})
    >>> found = maps(points, np.random.default_rng(0).normal(size=(6, 4)), seeds=[0], k=2)
    >>> found.columns[4:].tolist()
    ['seed', 'x', 'y', 'k', 'kept', 'trust', 'partner_full', 'partner_map']
    """
    from importlib.metadata import version

    if not len(seeds):
        raise MirblabError("a map needs a seed, found none; seeds=[0] is one map")
    settings = {"n_neighbors": n_neighbors, "min_dist": min_dist, "metric": metric}
    ids, tables = points.id.tolist(), []
    for seed in seeds:
        flat = _turned(project(vectors, ids, seed=seed, **settings)[["x", "y"]].to_numpy())
        if tables:
            flat *= np.where((flat * tables[0][["x", "y"]].to_numpy()).sum(axis=0) < 0, -1, 1)
        numbers = neighbours.per_point(vectors, flat, points.class_id.tolist(), k, metric)
        tables.append(points.reset_index(drop=True).assign(seed=seed, x=flat[:, 0], y=flat[:, 1], **numbers))
    found = pd.concat(tables, ignore_index=True)
    found.attrs = {"method": "UMAP", "umap-learn": version("umap-learn"), "seeds": list(seeds), "k": k, **settings,
                   "vectors": fingerprint(vectors, ids), "dimensions": int(np.shape(vectors)[1])}  # fmt: skip
    return found


def _turned(flat: np.ndarray) -> np.ndarray:
    """Return places (n, 2) around 0, turned so that they vary most along the first axis; distances stay as they are."""
    flat = flat - flat.mean(axis=0)
    (var_x, both), (_, var_y) = flat.T @ flat
    angle = np.arctan2(2 * both, var_x - var_y) / 2
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return flat @ turn


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

    >>> coordinates = project(np.random.default_rng(0).normal(size=(12, 8)), [f"d{n:02d}" for n in range(12)])
    >>> coordinates.columns.tolist(), len(coordinates)
    (['id', 'x', 'y'], 12)
    """
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if len(vectors) < 4 or len(vectors) != len(ids):
        raise MirblabError(f"a map needs at least 4 vectors and one id each; found {len(vectors)} and {len(ids)} ids")
    by_id = np.argsort(np.asarray(ids))
    settings = {"seed": seed, "n_neighbors": min(n_neighbors, len(ids) - 1), "min_dist": min_dist, "metric": metric}
    folder, key = paths.cache() / "projections", _digest(vectors[by_id], settings)
    found = _read(folder, key)
    if found is None:
        found = _umap(vectors[by_id], settings)
        table = pd.DataFrame({"id": np.asarray(ids)[by_id], "x": found[:, 0], "y": found[:, 1]})
        paths.stored("maps", lambda: sealed.write(folder, key, _SUFFIX, table.to_parquet()))
    placed = np.empty_like(found)
    placed[by_id] = found
    return pd.DataFrame({"id": list(ids), "x": placed[:, 0], "y": placed[:, 1]})


def verify(folder: Path) -> list[str]:
    """Read all maps in *folder*; set damaged ones aside with a warning; return a line for each, and for strangers."""
    return sealed.verify(folder, _SUFFIX, _AGAIN, [path for path, _ in older(folder)])


def older(folder: Path) -> list[tuple[Path, int]]:
    """Return the maps in *folder* that an older version has stored, without a digest of their content."""
    return [(path, 1) for path in sorted(folder.glob("*")) if _OLDER.fullmatch(path.name)]


def _read(folder: Path, key: str) -> np.ndarray | None:
    """Return the coordinates (n, 2) that are stored under *key*, None when there are none."""
    for path in sorted(folder.glob(f"{key}-*{_SUFFIX}")):
        if (content := sealed.read(path, _AGAIN)) is not None:
            return pd.read_parquet(io.BytesIO(content))[["x", "y"]].to_numpy()
    return None


def fingerprint(vectors: np.ndarray, ids: Sequence[str]) -> str:
    """Return a hash of *vectors* (n, n_dims) as float32 in the order of their ids, 32 hexadecimal digits.

    >>> fingerprint(np.eye(2), ["a", "b"]) == fingerprint(np.eye(2)[::-1], ["b", "a"]) != fingerprint(np.eye(2), "ba")
    True
    """
    return _digest(np.ascontiguousarray(vectors, dtype=np.float32)[np.argsort(np.asarray(list(ids)))], {})


def _digest(rows: np.ndarray, settings: dict[str, Any]) -> str:
    return hashlib.blake2b(rows.tobytes() + json.dumps(settings, sort_keys=True).encode(), digest_size=16).hexdigest()


def _umap(vectors: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
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
