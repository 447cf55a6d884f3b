"""projection: two-dimensional maps of statements, and measures of how faithful they are to the full space."""

from __future__ import annotations

import hashlib
import io
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mirblab.analysis import query_clusters
from mirblab.core import atomic_files, paths, stored_files, text_files
from mirblab.core.errors import MirblabError, MissingFileError, check_not_negative, check_positive, unknown
from mirblab.core.wording import counted
from mirblab.display import figures
from mirblab.display.plots import maps
from mirblab.evaluation.significance import bootstrap_intervals
from mirblab.formula import in_text

_METRICS = ("cosine", "euclidean")

_SUFFIX, _AGAIN = ".parquet", "it is drawn again when it is needed"

LARGEST_MAP = 500_000  # points
_REGION = 12  # statements of a region of a map, at least, on average

_LEAD = "lead"
_ROUNDS = 2000  # of the solver, which needs some dozens

_TEXT = ("id", "class_id", "field", "kind")
_SUFFIXES = ("csv", "json", "pdf", "png", "svg")


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

    UMAP (McInnes, Healy and Melville, 2018) runs on one thread with rows sorted by id, so that a seed gives the same
    map on one machine; other machines draw others, so the coordinates are stored under the hash of vectors and
    parameters. MirblabError for fewer than four rows, and for more than `LARGEST_MAP`, whose neighbours would not fit
    in memory and whose points nobody could see.

    >>> coordinates = project(np.random.default_rng(0).normal(size=(12, 8)), [f"d{n:02d}" for n in range(12)])
    >>> coordinates.columns.tolist(), len(coordinates)
    (['id', 'x', 'y'], 12)
    """
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if len(vectors) < 4 or len(vectors) != len(ids):
        raise MirblabError(f"a map needs at least 4 vectors and one id each; found {len(vectors)} and {len(ids)} ids")
    if len(vectors) > LARGEST_MAP:
        raise MirblabError(
            f"a map has at most {LARGEST_MAP:,} points, found {len(vectors):,}; draw a sample, for example "
            f"rows = np.random.default_rng(0).choice(len(vectors), {LARGEST_MAP // 10:,}, replace=False)"
        )
    check_not_negative(seed=seed)
    if n_neighbors < 2:
        raise MirblabError(f"a map needs at least 2 neighbours of each point, found {n_neighbors}; 15 is usual")
    by_id = np.argsort(np.asarray(ids))
    settings = {"seed": seed, "n_neighbors": min(n_neighbors, len(ids) - 1), "min_dist": min_dist, "metric": metric}
    settings["umap-learn"] = version("umap-learn")
    folder, key = paths.cache() / "projections", _digest(vectors[by_id], settings)
    coordinates = _read_coordinates(folder, key)
    if coordinates is None:
        coordinates = _fit_umap(vectors[by_id], settings)
        table = pd.DataFrame({"id": np.asarray(ids)[by_id], "x": coordinates[:, 0], "y": coordinates[:, 1]})
        atomic_files.try_to_store("maps", lambda: stored_files.write_sealed(folder, key, _SUFFIX, table.to_parquet()))
    placed = np.empty_like(coordinates)
    placed[by_id] = coordinates
    return pd.DataFrame({"id": list(ids), "x": placed[:, 0], "y": placed[:, 1]})


def _read_coordinates(folder: Path, key: str) -> np.ndarray | None:
    for path in sorted(folder.glob(f"{key}-*{_SUFFIX}")):
        if (content := stored_files.read_sealed(path, _AGAIN)) is not None:
            return pd.read_parquet(io.BytesIO(content))[["x", "y"]].to_numpy()
    return None


def _fit_umap(vectors: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import umap

        _store_compiled_code()
        model = umap.UMAP(
            n_neighbors=settings["n_neighbors"],
            min_dist=settings["min_dist"],
            metric=settings["metric"],
            random_state=settings["seed"],
            n_jobs=1,
            precomputed_knn=_nearest_neighbours(
                vectors.astype(np.float32), settings["n_neighbors"], settings["metric"]
            ),
        )
        return np.asarray(model.fit_transform(vectors), dtype=np.float64)


@cache
def _store_compiled_code() -> None:
    """Let numba store what it compiles of UMAP, which takes five seconds, so that each process need not compile it."""
    from numba.core.dispatcher import Dispatcher
    from umap import layouts, umap_

    for function in (*vars(umap_).values(), *vars(layouts).values()):
        if isinstance(function, Dispatcher):
            with suppress(RuntimeError):  # no folder to write to
                function.enable_caching()


def _nearest_neighbours(vectors: np.ndarray, k: int, metric: str) -> tuple[np.ndarray | None, ...]:
    """Return what UMAP itself finds among fewer than 4096 vectors; its own search compiles for three seconds."""
    from sklearn.metrics import pairwise_distances
    from umap.distances import named_distances

    if len(vectors) >= 4096 or metric not in named_distances:
        return None, None, None
    distances = pairwise_distances(vectors, metric=named_distances[metric])
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :k].astype(np.int32)
    return nearest, np.take_along_axis(distances, nearest, axis=1), None


def seeded_maps(
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

    *points* are from `partners.equivalence_statements` (id, class_id, field, kind), *vectors* theirs, (n, n_dims), in
    the same order. Each map is turned so that its longest extent is horizontal, and mirrored to be like that of the
    first seed. The last columns are those of `projection.point_trustworthiness` with *k*, which
    `projection.map_trustworthiness` sums up. `attrs` hold the settings of UMAP, its version and a hash of the vectors.

    >>> points = pd.DataFrame({"id": list("abcdef"), "class_id": list("ppqqrr"), "field": "f", "kind": "pair"})
    >>> found = seeded_maps(points, np.random.default_rng(0).normal(size=(6, 4)), seeds=[0], k=2)
    >>> found.columns[4:].tolist()
    ['seed', 'x', 'y', 'k', 'kept', 'trust', 'partner_full', 'partner_map']
    """
    if not len(seeds):
        raise MirblabError("a map needs a seed, found none; seeds=[0] is one map")
    settings: dict[str, Any] = {"n_neighbors": n_neighbors, "min_dist": min_dist, "metric": metric}
    ids, tables = points.id.tolist(), list[pd.DataFrame]()
    for seed in seeds:
        flat = _align_axes(project(vectors, ids, seed=seed, **settings)[["x", "y"]].to_numpy())
        if tables:
            flat *= np.where((flat * tables[0][["x", "y"]].to_numpy()).sum(axis=0) < 0, -1, 1)
        numbers = point_trustworthiness(vectors, flat, points.class_id.tolist(), k, metric)
        tables.append(points.reset_index(drop=True).assign(seed=seed, x=flat[:, 0], y=flat[:, 1], **numbers))
    maps = pd.concat(tables, ignore_index=True)
    maps.attrs = {"method": "UMAP", "umap-learn": version("umap-learn"), "seeds": list(seeds), "k": k,
                   "vectors": vectors_fingerprint(vectors, ids), "dimensions": int(np.shape(vectors)[1])}  # fmt: skip
    maps.attrs.update(**settings)
    return maps


def label_regions(maps: pd.DataFrame, *, n_regions: int = 12, seed: int = 0) -> pd.DataFrame:
    """Return *maps* with a column region: the words typical of the statements around a point, or "".

    *maps* are from `projection.seeded_maps`, with their texts. The regions are k-means clusters of the places on the
    first map, at most *n_regions* and of at least twelve statements on average; a statement has the same region on
    every map. The words are the two that the region's statements have far more often than all others
    (`query_clusters.cluster_names`).

    >>> points = pd.DataFrame({"text": ["a prime ideal"] * 12 + ["a compact space"] * 12, "seed": 0, "y": 0.0})
    >>> label_regions(points.assign(x=[0.0] * 12 + [9.0] * 12)).region.unique().tolist()
    ['ideal, prime', 'compact, space']
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    check_positive(n_regions=n_regions)
    check_not_negative(seed=seed)
    figures.require_columns(maps, "text", "x", "y", "seed")
    first = maps[maps.seed == maps.seed.iloc[0]]
    n_clusters = max(1, min(n_regions, len(first) // _REGION, len(first[["x", "y"]].drop_duplicates())))
    with threadpool_limits(1):  # so that sums have one order
        labels = KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(first[["x", "y"]].to_numpy())
    prose = [" ".join(in_text.split_text(text)[::2]) for text in first.text]
    names = query_clusters.cluster_names(prose, labels, n_terms=2)
    regions = np.array(["" if name == query_clusters.NO_TERMS else name for name in names], dtype=object)[labels]
    labelled = maps.assign(region=np.tile(regions, len(maps) // len(first)))
    labelled.attrs = maps.attrs
    return labelled


def _align_axes(flat: np.ndarray) -> np.ndarray:
    """Return points (n, 2) around 0, turned so that they vary most along the first axis; distances are kept."""
    flat = flat - flat.mean(axis=0)
    (var_x, covariance), (_, var_y) = flat.T @ flat
    angle = np.arctan2(2 * covariance, var_x - var_y) / 2
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return flat @ turn


def point_trustworthiness(
    vectors: np.ndarray, flat: np.ndarray, classes: Sequence[str], k: int = 10, metric: str = "cosine"
) -> pd.DataFrame:
    """Return for each point how far a map *flat* (n, 2) keeps its neighbourhood among the *vectors* (n, n_dims).

    Columns: k (at most (n - 1) / 2); kept, the share of its *k* nearest that are among its k nearest on the map; trust,
    its part of the trustworthiness (Venna and Kaski 2006), whose mean is the map's; partner_full and partner_map, the
    rank of the nearest other point of its class in the full space and on the map, 0 if there is none.
    """
    n_points, labels = len(vectors), np.asarray(classes, dtype=object)
    if n_points < 3 or len(flat) != n_points or len(labels) != n_points:
        raise MirblabError(
            f"at least 3 points with a place and a class each are needed; found {counted(n_points, 'vector')}, "
            f"{counted(len(flat), 'place')} and {counted(len(labels), 'class', 'classes')}"
        )
    k = max(1, min(k, (n_points - 1) // 2))
    full, seen = _ranks(vectors, metric), _ranks(flat, "euclidean")
    false = np.where(seen <= k, np.maximum(full - k, 0), 0).sum(axis=1)
    same = (labels[:, None] == labels[None, :]) & (labels != "")[:, None] & ~np.eye(n_points, dtype=bool)
    return pd.DataFrame({
        "k": k,
        "kept": ((full <= k) & (seen <= k)).sum(axis=1) / k,
        "trust": 1 - 2 * false / (k * (2 * n_points - 3 * k - 1)),
        "partner_full": _partner_ranks(full, same),
        "partner_map": _partner_ranks(seen, same),
    })  # fmt: skip


def _ranks(vectors: np.ndarray, metric: str) -> np.ndarray:
    """Return the rank of each column's row in the neighbourhood of each row, from 1, shape (n, n)."""
    order = _neighbour_order(vectors, metric)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, len(order) + 1)[None, :], axis=1)
    return ranks


def _partner_ranks(ranks: np.ndarray, same: np.ndarray) -> np.ndarray:
    return np.where(same.any(axis=1), np.where(same, ranks, len(ranks)).min(axis=1), 0)


def map_trustworthiness(maps: pd.DataFrame) -> pd.DataFrame:
    """Return how faithful maps of `projection.seeded_maps` are to the full space: a row per number, all from 0 to 1.

    Columns: full space (the first two rows are 1 there by definition); mean, lowest and highest over the seeds,
    measured on the maps; chance, the expected value of points at random. Rows: the mean share of the k nearest that the
    map keeps, trustworthiness, and the shares of points whose partner is the nearest, or among the k nearest, of all
    other points; points without a partner do not count there.

    >>> maps = pd.DataFrame({"seed": 0, "class_id": ["a", "a", "", ""], "k": 1, "kept": 1.0, "trust": 1.0})
    >>> map_trustworthiness(maps.assign(partner_full=[1, 2, 0, 0], partner_map=[1, 1, 0, 0]))["mean"].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    if maps.empty:
        raise MirblabError("the table of maps is empty, so there is nothing to measure; make it with seeded_maps")
    seeds = [part for _, part in maps.groupby("seed", sort=False)]
    first, k, n_points = seeds[0], int(maps.k.iloc[0]), len(seeds[0])
    others = n_points - 1
    false = (others - k) * (n_points - k) / (others * (2 * n_points - 3 * k - 1))
    rows = {
        f"share of the {k} nearest kept": (1.0, [part.kept.mean() for part in seeds], k / others),
        f"trustworthiness, {k} nearest": (1.0, [part.trust.mean() for part in seeds], 1 - false),
    }
    if (first.partner_full > 0).any():
        for name, near in (("partner is the nearest", 1), (f"partner among the {k} nearest", k)):
            shares = [_share_within(part.partner_map, near) for part in seeds]
            rows[name] = _share_within(first.partner_full, near), shares, _chance_share(first, near)
    values = {
        name: [full, np.mean(shares), min(shares), max(shares), chance] for name, (full, shares, chance) in rows.items()
    }
    return pd.DataFrame.from_dict(values, orient="index", columns=["full space", "mean", "lowest", "highest", "chance"])


def _share_within(ranks: pd.Series, k: int) -> float:
    return float((ranks[ranks > 0] <= k).mean())


def _chance_share(points: pd.DataFrame, k: int) -> float:
    has = points[points.partner_full > 0]
    sizes, n_points = has.groupby("class_id").class_id.transform("size"), len(points)
    missed = [math.comb(n_points - size, k) / math.comb(n_points - 1, k) for size in sizes]
    return float(1 - np.mean(missed))


def nearest_rows(vectors: np.ndarray, k: int, metric: str = "cosine") -> np.ndarray:
    """Return the positions of each row's *k* nearest other rows, nearest first, (n, k); equal distances by position."""
    if not 1 <= k < len(vectors):
        raise MirblabError(f"k must be between 1 and {len(vectors) - 1}, found {k}")
    return _neighbour_order(vectors, metric)[:, :k]


def _neighbour_order(vectors: np.ndarray, metric: str) -> np.ndarray:
    """Return for each row the positions of all rows, nearest first and itself last, shape (n, n)."""
    rows = np.asarray(vectors, dtype=np.float64)
    if metric == "cosine":
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        distances = -rows @ rows.T
    elif metric == "euclidean":
        squares = (rows**2).sum(axis=1)
        distances = squares[:, None] + squares[None, :] - 2 * rows @ rows.T
    else:
        raise unknown("metric", metric, _METRICS)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")


def separability_table(
    points: pd.DataFrame,
    vectors: Mapping[str, np.ndarray],
    *,
    k: int = 10,
    n_folds: int = 5,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return for each model how well its *vectors* (n, n_dims) identify the field of a statement, and its partner.

    *points* have id, class_id ("" for a distractor) and tag, or field where a tag is missing. The probe learns from all
    points; values are means over the statements that have a partner. Columns:

    - model, fields, statements, pairs: what was measured;
    - probe: balanced accuracy (0 to 1, by chance 1 / fields) of a logistic regression that predicts the field from the
      vector, cross-validated over *n_folds* that never divide a pair;
    - own_field, own_field_chance: share of the *k* nearest that are of the same field, and its expectation for points
      at random;
    - partner, partner_chance: share of statements whose nearest other point is their partner (R@1 among all);
    - lead, low, high: probe minus partner, each first put on the scale on which chance is 0 and perfect is 1 (1: fields
      are predicted without a mistake and partners by chance, -1 the reverse), with the percentile bootstrap interval
      over pairs (the same pairs for all models; the probe is not refitted).

    MirblabError for fewer than two fields with pairs, a field of one statement, and other numbers of vectors.

    >>> rows = [(f"{n}{f}", str(n), f, n, "fg".index(f)) for n in range(6) for f in "fg"]
    >>> points = pd.DataFrame(rows, columns=["id", "class_id", "field", "place", "side"])
    >>> vectors = np.eye(6)[points.place] + 9 * np.eye(2)[points.side].repeat(3, axis=1)
    >>> found = separability_table(points, {"model": vectors}, k=1)
    >>> found[["probe", "own_field", "partner"]].values.tolist()
    [[1.0, 1.0, 0.0]]
    """
    if n_folds < 2:
        raise MirblabError(f"n_folds must be at least 2, to learn from one part and test on another, found {n_folds}")
    check_positive(k=k)
    check_not_negative(seed=seed)
    points = points.reset_index(drop=True)
    fields, classes = _field_labels(points), points.class_id.astype(str)
    paired = (classes != "") & classes.duplicated(keep=False)
    order = np.argsort(points.id.to_numpy(dtype=str), kind="stable")  # so that the order of rows changes nothing
    folds = _folds(fields.iloc[order], classes.iloc[order], paired.iloc[order], n_folds, seed)
    rows, leads = [], []
    for name, space in vectors.items():
        if len(space) != len(points):
            found = f"{counted(len(space), 'vector')} for {counted(len(points), 'statement')}"
            raise MirblabError(f"{name} has {found}; give one each, in order")
        near = nearest_rows(space, min(k, len(points) - 1))
        is_predicted = np.empty(len(points), dtype=bool)
        is_predicted[order] = _probe(np.asarray(space)[order], fields.to_numpy()[order], folds)
        row, lead = _separability_row(fields, classes, paired, near, is_predicted)
        rows.append({"model": name} | row)
        leads.append(lead.assign(system=name))
    values = pd.concat(leads).assign(collection="points", measure=_LEAD)
    ends = bootstrap_intervals(values, _LEAD, level=level, n_resamples=n_resamples, seed=seed)
    ends = ends.set_index("system").loc[list(vectors), ["low", "high"]].reset_index(drop=True)
    return pd.DataFrame(rows).join(ends)


def _folds(
    fields: pd.Series, classes: pd.Series, paired: pd.Series, n_folds: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of positions, to learn from and to test on; a class is never on both sides."""
    from sklearn.model_selection import StratifiedGroupKFold

    if fields[paired].nunique() < 2:
        have = counted(fields[paired].nunique(), "field has", "fields have")
        raise MirblabError(f"{have} statements with a partner; the probe needs two or more")
    groups = classes.where(paired, [f"alone:{place}" for place in range(len(classes))])
    rarest = groups.groupby(fields).nunique()
    if rarest.min() < 2:
        raise MirblabError(f"field {rarest.idxmin()} has one statement only; leave it out, or add another")
    n_folds = min(n_folds, int(rarest.min()))
    cut = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    return list(cut.split(np.zeros((len(fields), 1)), fields, groups))


def _field_labels(points: pd.DataFrame) -> pd.Series:
    has_tags = "tag" in points and (points.tag != "").all()
    return (points.tag if has_tags else points.field).astype(str)


def _probe(vectors: np.ndarray, fields: np.ndarray, folds: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return whether a probe that saw neither a statement nor its partner predicts its field, bool (n,)."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    # Vectors of mean square 1 in each dimension: the penalty then fits any number of dimensions and, as the cosine,
    # does not see a rotation.
    rows = np.asarray(vectors, dtype=np.float64)
    rows = rows * (rows.shape[1] ** 0.5 / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))
    is_predicted = np.zeros(len(fields), dtype=bool)
    with threadpool_limits(1):  # so that sums have one order
        for train, test in folds:
            probe = LogisticRegression(class_weight="balanced", max_iter=_ROUNDS).fit(rows[train], fields[train])
            is_predicted[test] = probe.predict(rows[test]) == fields[test]
    return is_predicted


def _separability_row(
    fields: pd.Series, classes: pd.Series, paired: pd.Series, near: np.ndarray, is_predicted: np.ndarray
) -> tuple[dict[str, float], pd.DataFrame]:
    same_field = (fields.to_numpy()[near] == fields.to_numpy()[:, None]).mean(axis=1)[paired]
    is_partner = (classes.to_numpy()[near[:, 0]] == classes.to_numpy())[paired]
    labels, names, others = fields[paired], classes[paired], len(fields) - 1
    n_fields, n_pairs = labels.nunique(), names.nunique()
    weights = len(labels) / (n_fields * labels.map(labels.value_counts()).to_numpy())
    right = weights * is_predicted[paired]
    same_field_chance = float((fields.map(fields.value_counts())[paired] - 1).mean() / others)
    chance = float((names.map(names.value_counts()) - 1).mean() / others)
    each = _above_chance(right, 1 / n_fields) - _above_chance(is_partner, chance)
    # Divided by the mean size of a class, so that the mean over classes is the mean over statements.
    lead = pd.Series(each).groupby(names.to_numpy()).sum() / (len(names) / n_pairs)
    row = {
        "fields": n_fields, "statements": len(labels), "pairs": n_pairs, "probe": float(right.mean()),
        "own_field": float(same_field.mean()), "own_field_chance": same_field_chance,
        "partner": float(is_partner.mean()), "partner_chance": chance, _LEAD: float(each.mean()),
    }  # fmt: skip
    return row, lead.rename("value").rename_axis("query_id").reset_index()


def _above_chance(values: np.ndarray, chance: float) -> np.ndarray:
    return (values - chance) / (1 - chance)


def redraw(path: str | Path, out: str | Path) -> list[Path]:
    """Draw the map whose coordinates are stored at *path* into the folder *out*; return the paths of its five files.

    *path* is the CSV (coordinates) or JSON file (name, caption, alternative text, provenance) beside a map of
    `plots.map` that was saved with its table. All files are byte for byte those that were stored if the version of
    matplotlib is the same; a warning says when it is not. FileNotFoundError for a missing file, MirblabError for one
    that is no map.

    >>> import tempfile
    >>> points = pd.DataFrame({"id": ["a", "b"], "x": [0.1, 1.0], "y": 0.0, "class_id": "p", "field": "f", "kind": ""})
    >>> folder = tempfile.mkdtemp()
    >>> texts = {"provenance": {}, "caption": "A map.", "alt": "Two dots."}
    >>> shown = figures.save_figure(maps.map(points), folder, "map", table=points, **texts)
    >>> again = redraw(f"{folder}/map.csv", f"{folder}/again")
    >>> [file.read_bytes() == Path(folder, file.name).read_bytes() for file in again]
    [True, True, True, True, True]
    """
    path, out = Path(path), Path(out)
    if path.suffix not in (".csv", ".json"):
        raise MirblabError(f"{path} is no stored map; name the .csv or the .json file beside the picture")
    table, record = _read_map_table(path.with_suffix(".csv")), _read_record(path.with_suffix(".json"))
    _check_version(record["provenance"])
    figures.save_figure(maps.map(table), out, record["name"], table=table, provenance=record["provenance"],
                      caption=record["caption"], alt=record["alt"])  # fmt: skip
    return [out / f"{record['name']}.{suffix}" for suffix in _SUFFIXES]


def _check_version(provenance: dict[str, Any]) -> None:
    import matplotlib

    drawn = provenance.get("versions", {}).get("matplotlib", matplotlib.__version__)
    if drawn != matplotlib.__version__:
        warnings.warn(
            f"drawn with matplotlib {drawn}, redrawn with {matplotlib.__version__}: the same map, not the same bytes",
            stacklevel=3,
        )


def _read_map_table(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise MissingFileError(f"no coordinates at {path}; a map is redrawn from the CSV file that was saved with it")
    with open(path, encoding="utf-8") as file:
        has_index = file.read(1) == ","  # a table that was a part of another has a first column without a name
    # pandas writes and reads every digit of a number; a statement called "NA" has to stay one.
    table = pd.read_csv(
        path, dtype=dict.fromkeys(_TEXT, str), keep_default_na=False, index_col=0 if has_index else None
    ).rename_axis(index=None)
    missing = [column for column in (*_TEXT, "x", "y") if column not in table]
    if missing:
        raise MirblabError(
            f"{path} is no stored map: it has no column {', '.join(missing)}, "
            f"found {', '.join(map(str, table.columns))}; give the CSV beside a map"
        )
    return table


def _read_record(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise MissingFileError(
            f"no {path.name} beside the coordinates in {path.parent}; copy it there too: it holds name and caption"
        )
    record = text_files.read_json(path)
    wanted = ("name", "caption", "alt", "provenance")
    missing = [name for name in wanted if name not in record] if isinstance(record, dict) else wanted
    if missing:
        raise MirblabError(
            f"{path} was not saved with a figure: it has no {', '.join(missing)}; give the file beside a map"
        )
    return record


def vectors_fingerprint(vectors: np.ndarray, ids: Sequence[str]) -> str:
    """Return a hash of *vectors* (n, n_dims) as float32 in the order of their ids, 32 hexadecimal digits."""
    return _digest(np.ascontiguousarray(vectors, dtype=np.float32)[np.argsort(np.asarray(list(ids)))], {})


def _digest(rows: np.ndarray, settings: dict[str, Any]) -> str:
    return hashlib.blake2b(rows.tobytes() + json.dumps(settings, sort_keys=True).encode(), digest_size=16).hexdigest()


def verify(folder: Path) -> list[str]:
    """Read all maps in *folder* and set damaged ones aside; return a line for each of them and of the unknown files."""
    return stored_files.verify_sealed(folder, _SUFFIX, _AGAIN)
