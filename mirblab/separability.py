"""separability: does an embedding tell the field of a statement, or its meaning? One row of numbers per model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError
from mirblab.neighbours import nearest
from mirblab.significance import bootstrap_intervals

_LEAD = "lead"
_ROUNDS = 2000  # of the solver, which needs some dozens


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
    """Return for each model how well its *vectors* (n, n_dims) tell the field of a statement, and how well its partner.

    *points* have id, class_id ("" for a distractor) and tag, or field where a tag is missing. All points are
    neighbours and teach the probe; values are means over the statements that have a partner. Columns:

    - model, fields, statements, pairs: what was measured;
    - probe: balanced accuracy (0 to 1, guessing 1 / fields) of a logistic regression that reads the field from the
      vector, on folds that never divide a pair, so that it cannot learn a statement's field from its partner;
    - own_field, own_field_chance: share of the *k* nearest that are of the own field, and what strewn points give;
    - partner, partner_chance: share of statements whose nearest other point is their partner (R@1 among all);
    - lead, low, high: probe minus partner, each first put on the scale on which guessing is 0 and perfect is 1.

    The lead is the claim that embeddings cluster by field rather than by meaning as one number: 1 when fields are
    told apart without a mistake and partners found as often as by guessing, -1 the other way round; where they are
    found less often than that it passes 1. It is a difference, because a quotient has no value where no partner is
    found. It is a mean over pairs, so its interval is the percentile bootstrap over pairs of `significance`, with the
    same pairs drawn for all models; the probe is not fitted anew. Raises MirblabError for fewer than two fields with
    pairs, a field of one statement, and vectors that are not one for each point.

    >>> rows = [(f"{n}{f}", str(n), f, n, "fg".index(f)) for n in range(6) for f in "fg"]
    >>> points = pd.DataFrame(rows, columns=["id", "class_id", "field", "place", "side"])
    >>> vectors = np.eye(6)[points.place] + 9 * np.eye(2)[points.side].repeat(3, axis=1)
    >>> found = separability_table(points, {"model": vectors}, k=1)
    >>> found[["probe", "own_field", "partner"]].values.tolist()
    [[1.0, 1.0, 0.0]]
    """
    points = points.reset_index(drop=True)
    fields, classes = _labels(points), points.class_id.astype(str)
    paired = (classes != "") & classes.duplicated(keep=False)
    order = np.argsort(points.id.to_numpy(dtype=str), kind="stable")  # so that the order of rows changes nothing
    folds = _folds(fields.iloc[order], classes.iloc[order], paired.iloc[order], n_folds, seed)
    rows, leads = [], []
    for name, space in vectors.items():
        if len(space) != len(points):
            raise MirblabError(f"{name} has {len(space)} vectors for {len(points)} statements; give one each, in order")
        near = nearest(space, min(k, len(points) - 1))
        told = np.empty(len(points), dtype=bool)
        told[order] = _probe(np.asarray(space)[order], fields.to_numpy()[order], folds)
        row, lead = _row(fields, classes, paired, near, told)
        rows.append({"model": name} | row)
        leads.append(lead.assign(system=name))
    values = pd.concat(leads).assign(collection="points", measure=_LEAD)
    ends = bootstrap_intervals(values, _LEAD, level=level, n_resamples=n_resamples, seed=seed)
    ends = ends.set_index("system").loc[list(vectors), ["low", "high"]].reset_index(drop=True)
    return pd.DataFrame(rows).join(ends)


def _labels(points: pd.DataFrame) -> pd.Series:
    has_tags = "tag" in points and (points.tag != "").all()
    return (points.tag if has_tags else points.field).astype(str)


def _folds(
    fields: pd.Series, classes: pd.Series, paired: pd.Series, n_folds: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of positions, to learn from and to test on; a class is never on both sides."""
    from sklearn.model_selection import StratifiedGroupKFold

    if fields[paired].nunique() < 2:
        raise MirblabError(
            f"{fields[paired].nunique()} fields have statements with a partner; to tell fields apart takes two or more"
        )
    groups = classes.where(paired, [f"alone:{place}" for place in range(len(classes))])
    rarest = groups.groupby(fields).nunique()
    if rarest.min() < 2:
        raise MirblabError(f"field {rarest.idxmin()} has one statement only; leave it out, or add another")
    n_folds = min(n_folds, int(rarest.min()))
    cut = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    return list(cut.split(np.zeros((len(fields), 1)), fields, groups))


def _probe(vectors: np.ndarray, fields: np.ndarray, folds: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return which statements' fields a logistic regression tells that never saw them or their partners, bool (n,)."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    # Vectors of mean square 1 in each dimension: the penalty then fits any number of dimensions and, as the cosine,
    # does not see a rotation.
    rows = np.asarray(vectors, dtype=np.float64)
    rows = rows * (rows.shape[1] ** 0.5 / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))
    told = np.zeros(len(fields), dtype=bool)
    with threadpool_limits(1):  # so that sums have one order
        for learnt, tested in folds:
            probe = LogisticRegression(class_weight="balanced", max_iter=_ROUNDS).fit(rows[learnt], fields[learnt])
            told[tested] = probe.predict(rows[tested]) == fields[tested]
    return told


def _row(
    fields: pd.Series, classes: pd.Series, paired: pd.Series, near: np.ndarray, told: np.ndarray
) -> tuple[dict[str, float], pd.DataFrame]:
    """Return a model's numbers, and what each pair adds to its lead: columns query_id, value."""
    own = (fields.to_numpy()[near] == fields.to_numpy()[:, None]).mean(axis=1)[paired]
    found = (classes.to_numpy()[near[:, 0]] == classes.to_numpy())[paired]
    labels, names, others = fields[paired], classes[paired], len(fields) - 1
    n_fields, n_pairs = labels.nunique(), names.nunique()
    weights = len(labels) / (n_fields * labels.map(labels.value_counts()).to_numpy())
    right = weights * told[paired]
    own_chance = float((fields.map(fields.value_counts())[paired] - 1).mean() / others)
    chance = float((names.map(names.value_counts()) - 1).mean() / others)
    each = _above(right, 1 / n_fields) - _above(found, chance)
    # Divided by the mean size of a class, so that the mean over classes is the mean over statements.
    lead = pd.Series(each).groupby(names.to_numpy()).sum() / (len(names) / n_pairs)
    row = {
        "fields": n_fields, "statements": len(labels), "pairs": n_pairs, "probe": float(right.mean()),
        "own_field": float(own.mean()), "own_field_chance": own_chance, "partner": float(found.mean()),
        "partner_chance": chance, _LEAD: float(each.mean()),
    }  # fmt: skip
    return row, lead.rename("value").rename_axis("query_id").reset_index()


def _above(values: np.ndarray, chance: float) -> np.ndarray:
    """Return values on the scale on which *chance* is 0 and 1 stays 1."""
    return (values - chance) / (1 - chance)
