"""vocabulary: how much vocabulary statements share with their partners and with others, and what that does to ranks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mirblab.collection import Collection
from mirblab.correlation import spearman
from mirblab.errors import MirblabError, unknown
from mirblab.pairs import sides
from mirblab.tokenizers import reader
from mirblab.weights import IDF, Vocabulary, count

SHARES = ("overlap", "rival_overlap", "margin")


def overlaps(collection: Collection, *, tokenizer: str = "math") -> pd.DataFrame:
    """Return how much vocabulary each statement shares with its partner, and with the best rival of its own field.

    The overlap of two statements is the idf of the tokens that both have over the idf of the tokens that either has:
    symmetric, 0 (none in common) to 1 (the same tokens). Tokens count once, however often they occur; idf is that of
    BM25 (Lucene's) over all statements of the collection; *tokenizer* is one of `tokenizers`. The shares of a query's
    words in `query_features` are neither weighted nor symmetric.

    Columns: collection, query_id, pair, field, domain_pair; overlap, with the partner; rival, the other statement of
    the same field that shares most, the smaller id of equals, and rival_overlap ("" and NaN where the field has no
    other); margin = overlap - rival_overlap, below 0 where a rival shares more; trapped, whether it is.

    >>> from mirblab.shelf import load
    >>> table = overlaps(load("mini-pairs"))
    >>> len(table), bool(table.overlap.between(0, 1).all())
    (288, True)
    """
    found = sides(collection)
    shared = _shared(collection.texts, tokenizer)
    places = collection.doc_ids.get_indexer(found.query_id)
    partner = collection.doc_ids.get_indexer(found.partner)
    fields = collection.first_tags
    rivals = np.where(fields[places][:, None] == fields[None], shared[places], -1.0)
    rivals[np.arange(len(found)), places] = rivals[np.arange(len(found)), partner] = -1.0
    best = rivals.argmax(axis=1)
    most = rivals.max(axis=1)
    table = found.drop(columns="partner").assign(
        overlap=shared[places, partner],
        rival=np.where(most < 0, "", collection.doc_ids.to_numpy()[best]),
        rival_overlap=np.where(most < 0, np.nan, most),
    )
    table.insert(0, "collection", collection.name)
    margin = table.overlap - table.rival_overlap
    return table.assign(margin=margin, trapped=margin < 0)


def overlap_points(values: pd.DataFrame, shares: pd.DataFrame) -> pd.DataFrame:
    """Return one row per system and statement: the rank of its partner beside what it shares, for plots.

    *values* are from `partners` and hold Rank, *shares* from `overlaps`. Columns: system, rank, then those of
    *shares*. Raises MirblabError when there is no Rank, or a statement of the values has no share.

    >>> from mirblab.pairs import partners
    >>> from mirblab.shelf import load
    >>> collection = load("mini-pairs")
    >>> points = overlap_points(partners("bm25", collection), overlaps(collection))
    >>> points.columns[:4].tolist(), len(points)
    (['system', 'rank', 'collection', 'query_id'], 288)
    """
    ranks = values[values.measure == "Rank"].astype({"collection": "str", "query_id": "str", "system": "str"})
    if ranks.empty:
        raise unknown("measure", "Rank", map(str, values.measure.unique()))
    keys = ["collection", "query_id"]
    points = ranks[["system", *keys, "value"]].rename(columns={"value": "rank"}).merge(shares, on=keys)
    if len(points) < len(ranks):
        raise MirblabError(f"{len(ranks) - len(points):,} of {len(ranks):,} statements have no share of vocabulary; "
                           "compute both from the same collection")  # fmt: skip
    return points[["system", "rank", *(name for name in points if name not in ("system", "rank"))]]


def rank_correlations(
    points: pd.DataFrame, *, level: float = 0.95, n_resamples: int = 1_000, seed: int = 0
) -> pd.DataFrame:
    """Return how the partner's rank goes with what statements share: Spearman's rho by system, pairs resampled.

    *points* are from `overlap_points`. Columns: collection, system, share (overlap, rival_overlap, margin), rho (-1
    to 1; below 0: the more is shared, the better the rank), low, high, n_pairs. Both directions of a pair are points,
    and are drawn together. That a share goes with a rank does not say that it causes it. A share that does not vary,
    or that a statement lacks, is left out.

    >>> rows = [("s", 1, "p", 0.9), ("s", 2, "p", 0.8), ("s", 7, "q", 0.2), ("s", 9, "q", 0.1)]
    >>> table = pd.DataFrame(rows, columns=["system", "rank", "pair", "overlap"]).assign(collection="c")
    >>> rank_correlations(table).rho.tolist()
    [-1.0]
    """
    rows = []
    for (collection, system), part in points.groupby(["collection", "system"], sort=False, observed=True):
        groups = part.pair.to_numpy()
        for share in (name for name in SHARES if name in part and part[name].notna().all()):
            sample = part[[share, "rank"]].to_numpy(dtype=float)
            rho, low, high = spearman(sample, groups, level=level, n_resamples=n_resamples, seed=seed)
            if rho == rho:
                rows.append((collection, system, share, rho, low, high, part.pair.nunique()))
    return pd.DataFrame(rows, columns=["collection", "system", "share", "rho", "low", "high", "n_pairs"])


def _shared(texts: list[str], tokenizer: str) -> np.ndarray:
    """Return the overlap of every two texts, (n, n)."""
    vocabulary = Vocabulary()
    read = reader(tokenizer, vocabulary.__getitem__)
    has, _ = count(map(read, texts), vocabulary)
    has.data[:] = 1
    found_in = np.bincount(has.indices, minlength=has.shape[1])
    idf = np.array([IDF["lucene"](df, len(texts)) for df in found_in.tolist()], dtype=np.float64)
    both = ((has * idf) @ has.T).toarray() if has.shape[1] else np.zeros((len(texts), len(texts)))
    own = np.diag(both)
    either = own[:, None] + own[None] - both
    return np.divide(both, either, out=np.zeros_like(both), where=either > 0)
