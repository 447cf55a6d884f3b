"""agreement: whether two measures, or two sets of candidates, lead to the same conclusions about systems."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, check_known
from mirblab.core.wording import counted
from mirblab.evaluation.measures import gain_sign
from mirblab.evaluation.significance import percentiles, resampled_means, value_matrices, value_matrix

_EQUAL = 1e-9  # values that differ by less are the same but for rounding
_PAIR = ["collection", "system_a", "system_b"]
CONCLUSIONS = ("same", "reversed", "only first", "only second", "none")


def tie_shares(values: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return for each pair of systems the share of the queries on which both have the same value, 0 to 1.

    Columns: collection, measure, system_a, system_b, tied, perfect (share on which both have 1, so that neither can be
    better), n_queries. A measure on which most queries are tied can show a difference on the others alone.

    >>> rows = [("a", "q1", 1.0), ("a", "q2", 0.5), ("b", "q1", 1.0), ("b", "q2", 0.2)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="nDCG'")
    >>> tie_shares(values, "nDCG'")[["tied", "perfect"]].values.tolist()
    [[0.5, 0.5]]
    """
    rows = []
    for name, matrix in value_matrices(values, measure):
        for a, b in combinations(matrix.columns, 2):
            is_tied = (matrix[a] - matrix[b]).abs() < _EQUAL
            is_perfect = is_tied & ((matrix[a] - 1).abs() < _EQUAL)
            rows.append((name, measure, a, b, is_tied.mean(), is_perfect.mean(), len(matrix)))
    return pd.DataFrame(rows, columns=["collection", "measure", *_PAIR[1:], "tied", "perfect", "n_queries"])


def compare_conclusions(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Return for each pair of systems what two tables of `compare` conclude of it, such as those of two measures.

    Columns: collection, system_a, system_b, first and second (the differences), conclusion: "same" (significant in
    both, for one system), "reversed" (significant in both, for different systems), "only first" or "only second"
    (significant in this one alone), or "none". Of ranks the lower one is better. MirblabError when the tables have
    different pairs.

    >>> row = {"collection": "c", "system_a": "a", "system_b": "b", "difference": 0.2, "significant": True}
    >>> tables = pd.DataFrame([row]), pd.DataFrame([row | {"difference": -0.1}])
    >>> compare_conclusions(*tables).conclusion.tolist()
    ['reversed']
    """
    parts = [
        table[[*_PAIR, "difference", "significant"]].astype({name: "str" for name in _PAIR})
        for table in (first, second)
    ]
    both = parts[0].merge(parts[1], on=_PAIR, suffixes=("_first", "_second"), validate="one_to_one")
    if not len(both) == len(first) == len(second):
        raise MirblabError(
            f"the tables have {len(first)} and {counted(len(second), 'pair')} of systems, and {len(both)} in common; "
            "compare the same systems, in one order, on the same collections"
        )
    in_first, in_second = (both[f"significant_{which}"].astype(bool) for which in ("first", "second"))
    signs = [gain_sign(table.measure.iloc[0]) if "measure" in table and len(table) else 1 for table in (first, second)]
    is_same = both.difference_first * signs[0] * both.difference_second * signs[1] > 0
    kinds = [in_first & in_second & is_same, in_first & in_second, in_first, in_second]
    both["conclusion"] = np.select(kinds, CONCLUSIONS[:-1], CONCLUSIONS[-1])
    both = both.rename(columns={"difference_first": "first", "difference_second": "second"})
    return both[[*_PAIR, "first", "second", "conclusion"]]


def order_agreement(
    values: pd.DataFrame,
    measure: str,
    collections: Sequence[str],
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return Kendall's tau between the order of the systems on the first of *collections* and on each other one.

    The collections share queries, which are asked under other rules; only common queries count. Columns: measure,
    first, second, tau (tau-b, -1 to 1; NaN where all systems have the same mean), low, high (percentile bootstrap: both
    orders are those of the drawn queries), redrawn (mean tau between the first order and that of a resample of its
    queries, which a tau is to be compared with: so much does the order change by chance), n_systems, n_queries.
    Kendall, Biometrika 1938. MirblabError for less than two systems or common queries.

    >>> rows = [("c", "a", 0.9), ("c", "b", 0.4), ("d", "a", 0.1), ("d", "b", 0.3)]
    >>> values = pd.DataFrame(rows, columns=["collection", "system", "value"]).assign(measure="RR")
    >>> values = pd.concat([values.assign(query_id="q1"), values.assign(query_id="q2")])
    >>> order_agreement(values, "RR", ["c", "d"]).tau.tolist()
    [-1.0]
    """
    matrices, rows = [value_matrix(values, measure, name) for name in collections], []
    for name, matrix in zip(collections[1:], matrices[1:], strict=True):
        systems, queries = list(matrices[0].columns), matrices[0].index.intersection(matrix.index)
        check_known(f"system with values on {name}", systems, matrix.columns)
        if len(systems) < 2 or len(queries) < 2:
            found = f"{counted(len(systems), 'system')} and {counted(len(queries), 'common query')}"
            raise MirblabError(f"the orders on {collections[0]} and {name} need two of each at least, found {found}")
        sides = [part.loc[queries, systems].to_numpy() for part in (matrices[0], matrix)]
        drawn = [resampled_means(side, n_resamples, seed) for side in sides]  # of the same queries
        means = [side.mean(axis=0, keepdims=True) for side in sides]
        taus = _kendall(drawn[0], drawn[1])
        low, high = percentiles(taus[~np.isnan(taus)], level) if not np.isnan(taus).all() else (np.nan, np.nan)
        redrawn = np.nanmean(_kendall(drawn[0], means[0])) if np.ptp(means[0]) else np.nan
        row = (measure, collections[0], name, _kendall(*means)[0], low, high, redrawn, len(systems), len(queries))
        rows.append(row)
    columns = ["measure", "first", "second", "tau", "low", "high", "redrawn", "n_systems", "n_queries"]
    return pd.DataFrame(rows, columns=columns)


def _kendall(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return tau-b of each row of *left* and *right*, (n, n_systems); a single row is compared with every one."""
    a, b = np.triu_indices(left.shape[1], 1)
    signs = [np.sign(np.round(side[:, a] - side[:, b], 12)) for side in (left, right)]
    scale = np.sqrt((signs[0] ** 2).sum(axis=1) * (signs[1] ** 2).sum(axis=1))
    with np.errstate(invalid="ignore"):
        return np.where(scale > 0, (signs[0] * signs[1]).sum(axis=1) / np.where(scale > 0, scale, 1), np.nan)
