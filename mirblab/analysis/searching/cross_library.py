"""cross_library: how far two readings of pairs of statements agree, and how many pairs a pool of systems missed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from mirblab.analysis.judging import cohen_kappa, krippendorff_alpha
from mirblab.core.errors import MirblabError, check_not_negative, check_positive

LIBRARIES = ["queries", "documents"]
_QUERY = [*LIBRARIES, "query_id"]
ALL = ("all", "all")
_NAMES = "names"  # the system that reads names only
_UNSAMPLED = "graph"  # the system for whose queries no document was drawn at random from the pool
_DISPUTED = "disputed"  # what marks pairs of another pool, on which systems disagree


def compare_readings(judged: pd.DataFrame, *, n_resamples: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Return how far the two readings of `sources.read_same_theorem` agree, a row per pair of libraries and one of all.

    Columns: queries, documents (the libraries), n_queries, pairs, same (the share of equal grades, 0 to 1), kappa
    (Cohen 1960; each other grade is one error), low, high (its 95 % percentile bootstrap interval: queries are drawn
    with replacement, because pairs of one query are alike), alpha (Krippendorff, for ordered grades). kappa and alpha
    are missing where only one grade was given.

    >>> from mirblab.sources.same_theorem import read_same_theorem
    >>> table = compare_readings(read_same_theorem(), n_resamples=10)
    >>> bool(table.same.between(0, 1).all()), table.documents.iloc[-1]
    (True, 'all')
    """
    check_positive(n_resamples=n_resamples)
    check_not_negative(seed=seed)
    table = []
    for libraries, rows in _parts(judged):
        kappa = partial(_kappa, rows["first"].to_numpy(), rows["second"].to_numpy())
        low, high = _interval(rows, kappa, n_resamples, seed)
        same = float((rows["first"] == rows["second"]).mean())
        alpha = krippendorff_alpha(rows[["first", "second"]])
        table.append((*libraries, _n_queries(rows), len(rows), same, kappa(slice(None)), low, high, alpha))
    columns = [*LIBRARIES, "n_queries", "pairs", "same", "kappa", "low", "high", "alpha"]
    return pd.DataFrame(table, columns=columns)


def estimate_missed(
    judged: pd.DataFrame, relevant_from: int = 1, *, n_resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Return how many relevant pairs were judged, and how many more there are by estimate, by pair of libraries.

    A pair is relevant where the lower of its grades is at least *relevant_from*. Queries with a document that `graph`
    found are left out of all columns: they were chosen for that document, and no other one of their pool was drawn at
    random then, so that an estimate with them would be too low. Pairs that `disputed` found are left out, too: their
    share is that among the pairs on which other systems disagree, a pool of its own. Columns: queries, documents (the
    libraries), n_queries, pairs, relevant (of those judged), pooled (relevant pairs among all that the systems found,
    judged or not), low, high (its 95 % percentile bootstrap interval over queries), beyond (relevant pairs at all).

    pooled is the estimator of Horvitz and Thompson (JASA 1952): a judged pair stands for 1 / share pairs. It assumes
    only that the pairs were drawn as `share` says. beyond is Chapman's estimator (1951) of a population of which two
    captures, by names and by texts, have some members in common; it assumes that one does not say anything about the
    other. Where what is found by its name is found by its text more easily, it is too low. MirblabError for a
    *relevant_from* below 1 or above the highest grade of both readings.

    >>> from mirblab.sources.same_theorem import read_same_theorem
    >>> table = estimate_missed(read_same_theorem(), n_resamples=10)
    >>> bool((table.pooled >= table.relevant).all())
    True
    """
    check_positive(n_resamples=n_resamples)
    check_not_negative(seed=seed)
    highest = int(judged[["first", "second"]].to_numpy().max(initial=1))
    if not 1 <= relevant_from <= highest:
        raise MirblabError(f"relevant_from is from 1 to {highest}, the highest grade, found {relevant_from}")
    table = []
    for libraries, rows in _parts(_of_sampled_pools(judged)):
        relevant = rows[["first", "second"]].min(axis=1) >= relevant_from
        weights = relevant / rows.share
        low, high = _interval(rows, partial(_total, weights.to_numpy()), n_resamples, seed)
        found = (_n_queries(rows), len(rows), int(relevant.sum()), float(weights.sum()), low, high)
        table.append((*libraries, *found, _population(rows.found_by, weights)))
    columns = [*LIBRARIES, "n_queries", "pairs", "relevant", "pooled", "low", "high", "beyond"]
    return pd.DataFrame(table, columns=columns)


def _parts(judged: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """Return the rows of each pair of libraries, then all; MirblabError for none."""
    if judged.empty:
        raise MirblabError("no judged pair, so there is nothing to compare; give the table of read_same_theorem")
    parts = [((str(one), str(other)), rows) for (one, other), rows in judged.groupby(LIBRARIES, sort=False)]
    return [*parts, (ALL, judged)] if len(parts) > 1 else parts


def _of_sampled_pools(judged: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that `_DISPUTED` did not find, of the queries for which `_UNSAMPLED` found no judged document."""
    unsampled, disputed = (judged.found_by.str.contains(rf"\b{name}:") for name in (_UNSAMPLED, _DISPUTED))
    return judged[~disputed & ~unsampled.groupby([judged[name] for name in _QUERY]).transform("any")]


def _n_queries(rows: pd.DataFrame) -> int:
    return len(rows[_QUERY].drop_duplicates())


def _kappa(first: np.ndarray, second: np.ndarray, places: np.ndarray | slice) -> float:
    return cohen_kappa(first[places].tolist(), second[places].tolist())


def _total(weights: np.ndarray, places: np.ndarray) -> float:
    return float(weights[places].sum())


def _interval(
    rows: pd.DataFrame, statistic: Callable[[np.ndarray], float], n_resamples: int, seed: int
) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of a statistic of the rows' positions; their queries are drawn."""
    members = list(rows.groupby(_QUERY, sort=True).indices.values())
    generator = np.random.default_rng(seed)
    values = [
        statistic(np.concatenate([members[number] for number in drawn]))
        for drawn in generator.integers(len(members), size=(n_resamples, len(members)))
    ]
    if np.isnan(values).all():
        return float("nan"), float("nan")
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def _population(found_by: pd.Series, weights: pd.Series) -> float:
    """Return Chapman's estimate of the number of relevant pairs from those found by names, by texts and by both."""
    systems = found_by.str.findall(r"(\S+):\d+").map(set)
    by_names, by_texts = systems.map(lambda names: _NAMES in names), systems.map(lambda names: bool(names - {_NAMES}))
    first, second, both = (float(weights[chosen].sum()) for chosen in (by_names, by_texts, by_names & by_texts))
    return (first + 1) * (second + 1) / (both + 1) - 1
