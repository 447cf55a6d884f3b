"""likeness: how alike two rankings are: rank-biased overlap, Kendall's tau and the overlap of the first k."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError
from mirblab.runs import order


def rbo(first: Sequence[str], second: Sequence[str], p: float = 0.9) -> float:
    """Return the rank-biased overlap of two rankings, 0 (nothing in common) to 1 (the same), extrapolated.

    *p*, between 0 and 1, is how likely a reader goes on to the next rank: 0.9 puts 86 % of the weight on the first
    ten, 0.98 looks deeper. Beyond its end a ranking is taken to go on as it did: RBO_EXT, equation 32 of Webber,
    Moffat and Zobel, TOIS 2010, for rankings of any two lengths without ties. Two empty rankings are the same.

    >>> rbo(["a", "b", "c"], ["b", "a", "c"], 0.5)  # 0 · 1/2 + 1 · 1/4 + 1 · 1/8, and 1/8 for what would follow
    0.5
    >>> rbo(["a"], ["b"]), rbo(["a", "b"], ["a", "b"])
    (0.0, 1.0)
    """
    for name, ranking in (("first", first), ("second", second)):
        if len(set(ranking)) < len(ranking):
            raise MirblabError(f"the {name} ranking holds a document twice; keep its best place")
    places = {doc: rank for rank, doc in enumerate(second, 1)}
    deeper = [max(rank, places[doc]) for rank, doc in enumerate(first, 1) if doc in places]
    return _rbo(np.array(deeper, dtype=np.int64), len(first), len(second), _checked(p))


def likeness(first: pd.DataFrame, second: pd.DataFrame, *, p: float = 0.9, k: int = 10) -> pd.DataFrame:
    """Return how alike two runs are on each query of either of them.

    Columns: query_id, common (documents in both), rbo (see `rbo`), tau (Kendall's, of the common documents, -1 to 1;
    NaN with fewer than two), overlap (documents in both first *k*, as a share of the longer of these, 0 to 1).

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b", "c"], "score": [3.0, 2.0, 1.0]})
    >>> likeness(one, one.assign(score=[2.0, 3.0, 1.0]), p=0.5, k=1).round(3).values.tolist()
    [['q', 3, 0.5, 0.333, 0.0]]
    """
    p, table = _checked(p), joined(first, second)
    rows = [(query, *_of_query(part, p, k)) for query, part in table.groupby("query_id", sort=True)]
    return pd.DataFrame(rows, columns=["query_id", "common", "rbo", "tau", "overlap"])


def joined(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Return the documents of both runs: query_id, doc_id, rank_a, rank_b, NaN where one does not return it.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> joined(one, one[1:])[["rank_a", "rank_b"]].values.tolist()
    [[1.0, nan], [2.0, 1.0]]
    """
    names = {"query_id": "str", "doc_id": "str", "rank": "float64"}
    parts = [order(run)[list(names)].astype(names) for run in (first, second)]
    return parts[0].merge(parts[1], on=["query_id", "doc_id"], how="outer", suffixes=("_a", "_b"))


def _checked(p: float) -> float:
    if not 0 < p < 1:
        raise MirblabError(f"p of rank-biased overlap lies between 0 and 1, found {p}; 0.9 looks at about ten ranks")
    return p


def _of_query(part: pd.DataFrame, p: float, k: int) -> tuple[int, float, float, float]:
    from scipy.stats import kendalltau

    ranks = part[["rank_a", "rank_b"]].to_numpy()
    both = ranks[~np.isnan(ranks).any(axis=1)]
    sizes = (~np.isnan(ranks)).sum(axis=0)
    tau = float(kendalltau(both[:, 0], both[:, 1]).statistic) if len(both) > 1 else float("nan")
    deeper, longest = both.max(axis=1).astype(np.int64), min(k, int(sizes.max()))
    return len(both), _rbo(deeper, int(sizes[0]), int(sizes[1]), p), tau, float((deeper <= k).sum() / longest)


def _rbo(deeper: np.ndarray, n_first: int, n_second: int, p: float) -> float:
    """Return RBO_EXT from the *deeper* of the two ranks of each common document, and the lengths of both rankings."""
    short, long = sorted((n_first, n_second))
    if not short:
        return float(not long)
    depth = np.arange(1, long + 1)
    shared = np.cumsum(np.bincount(deeper, minlength=long + 1)[1:])
    weight, agreed = p**depth, shared[short - 1]
    below = depth > short
    seen = (shared / depth * weight).sum() + (agreed * (depth - short) / (short * depth) * weight)[below].sum()
    return float((1 - p) / p * seen + ((shared[-1] - agreed) / long + agreed / short) * p**long)
