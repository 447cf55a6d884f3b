"""fusion: one run made of several, by reciprocal ranks or by weighted scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mirblab import runs
from mirblab.errors import MirblabError


def rrf(parts: Sequence[pd.DataFrame], k: float = 60, depth: int | None = None) -> pd.DataFrame:
    """Return the reciprocal rank fusion of runs: a document scores the sum of 1 / (k + rank) over the parts.

    A part that does not return a document adds nothing. *depth* cuts the result (None: all documents).
    Cormack, Clarke and Büttcher, SIGIR 2009.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["b", "c"], "score": [2.0, 1.0]})
    >>> rrf([one, two]).doc_id.tolist()
    ['b', 'a', 'c']
    """
    if k < 0:
        raise MirblabError(f"k must not be negative, found {k}; 60 is usual")
    ranked = [runs.order(part) for part in parts]
    return _sum(ranked, [1.0 / (k + part["rank"].to_numpy(np.float64)) for part in ranked], depth)


def linear(parts: Sequence[pd.DataFrame], weights: Sequence[float], depth: int | None = None) -> pd.DataFrame:
    """Return the weighted sum of scores that are scaled to 0..1 within each query and part (min-max).

    A document that a part does not return counts 0 there. A query whose scores are all equal counts 1.
    *depth* cuts the result (None: all documents). Raises MirblabError unless there is one weight per part.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["b", "a"], "score": [0.2, 0.1]})
    >>> [f"{score:.2f}" for score in linear([one, two], [0.3, 0.7]).score]
    ['0.70', '0.30']
    """
    if len(weights) != len(parts):
        raise MirblabError(f"one weight per run is needed; found {len(parts)} runs and {len(weights)} weights")
    ranked = [runs.order(part) for part in parts]
    return _sum(ranked, [weight * _min_max(part) for part, weight in zip(ranked, weights, strict=True)], depth)


def _min_max(run: pd.DataFrame) -> np.ndarray:
    """Return the scores of an ordered run scaled to 0..1 within each query."""
    scores = run.score.to_numpy(np.float64)
    starts = np.flatnonzero(run["rank"].to_numpy() == 1)
    lengths = np.diff(np.append(starts, len(run)))
    best, worst = scores[starts], scores[starts + lengths - 1]
    span = np.repeat(best - worst, lengths)
    constant = span == 0
    return np.where(constant, 1.0, (scores - np.repeat(worst, lengths)) / np.where(constant, 1.0, span))


def _sum(parts: Sequence[pd.DataFrame], scores: Sequence[np.ndarray], depth: int | None) -> pd.DataFrame:
    """Return the run of summed *scores*, one array per ordered part."""
    if not parts:
        raise MirblabError("there is nothing to fuse; give at least one run")
    query_ids, queries = _shared([part.query_id for part in parts])
    doc_ids, docs = _shared([part.doc_id for part in parts])
    pairs, place = np.unique(queries * len(doc_ids) + docs, return_inverse=True)
    total = np.bincount(place, weights=np.concatenate(list(scores)), minlength=len(pairs))
    names = {str(part.attrs.get("collection", "")) for part in parts}
    if len(names) > 1:
        raise MirblabError(f"runs of one collection can be fused, found {', '.join(sorted(names))}")
    system = "+".join(str(part.attrs.get("system", "run")) for part in parts)
    n_docs = max(len(doc_ids), 1)
    run = runs.from_positions(
        pairs // n_docs, pairs % n_docs, total.astype(np.float32), query_ids, doc_ids, system, names.pop()
    )
    return run if depth is None else runs.cut(run, depth)


def _shared(columns: Sequence[pd.Series]) -> tuple[pd.Index, np.ndarray]:
    """Return sorted ids that cover all columns, and the codes of the columns' rows in them, end to end."""
    found = [column.cat.categories for column in columns]
    if all(ids is found[0] or ids.equals(found[0]) for ids in found[1:]):
        return found[0], np.concatenate([column.cat.codes.to_numpy().astype(np.int64) for column in columns])
    ids = found[0]
    for more in found[1:]:
        ids = ids.union(more)
    return ids, np.concatenate(
        [ids.get_indexer(own)[column.cat.codes] for own, column in zip(found, columns, strict=True)]
    )
