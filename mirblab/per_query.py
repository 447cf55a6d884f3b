"""per_query: one function for each measure, which gives one number per query, as trec_eval computes it."""

from __future__ import annotations

import numpy as np

from mirblab.judged import Found, place_in_query


def ndcg(found: Found, k: int | None) -> np.ndarray:
    """Return nDCG (Järvelin & Kekäläinen, TOIS 2002); as in trec_eval the gain is relevance, not 2^relevance - 1."""
    judgements = found.judgements
    gaining = (found.relevance > 0) & _within(found.rank, k)
    gained = found.sum(found.relevance[gaining] / np.log2(found.rank[gaining] + 1), gaining)
    positive = judgements.relevance > 0
    span = int(judgements.relevance.max(initial=0)) + 1
    best = np.sort(judgements.query[positive] * span + (span - 1 - judgements.relevance[positive]))
    query, relevance = best // span, span - 1 - best % span
    place = place_in_query(query, len(gained)) + 1
    near = _within(place, k)
    ideal = np.bincount(query[near], weights=(relevance / np.log2(place + 1))[near], minlength=len(gained))
    return _ratio(gained, ideal)


def average_precision(found: Found, k: int | None) -> np.ndarray:
    """Return the mean over all relevant documents of the precision at their ranks; 0 for one that is not returned."""
    chosen = found.is_relevant & _within(found.rank, k)
    so_far = place_in_query(found.query[chosen], len(found.returned)) + 1
    return _ratio(found.sum(so_far / found.rank[chosen], chosen), _n_relevant(found))


def precision(found: Found, k: int) -> np.ndarray:
    """Return the share of the first k places that hold a relevant document; places left empty count."""
    return found.count(found.is_relevant & (found.rank <= k)) / k


def recall(found: Found, k: int) -> np.ndarray:
    """Return the share of the relevant documents that are among the first k."""
    return _ratio(found.count(found.is_relevant & (found.rank <= k)), _n_relevant(found))


def success(found: Found, k: int) -> np.ndarray:
    """Return 1 where a relevant document is among the first k, else 0."""
    return (found.count(found.is_relevant & (found.rank <= k)) > 0).astype(np.float64)


def reciprocal_rank(found: Found, k: int | None) -> np.ndarray:
    """Return 1 / rank of the first relevant document; 0 when none is among the first k."""
    first = _first(found)
    return _ratio(((first > 0) & _within(first, k)).astype(np.float64), first)


def rank(found: Found, k: None) -> np.ndarray:
    """Return the rank of the first relevant document; the mean of it is the mean rank, and lower is better.

    When none is returned it is the number of documents of the collection, or, where only a table of qrels is
    given, one more than the longest ranking of the run.
    """
    first = _first(found)
    return np.where(first > 0, first, found.unfound_rank).astype(np.float64)


def bpref(found: Found, k: None) -> np.ndarray:
    """Return Bpref (Buckley & Voorhees, SIGIR 2004), as trec_eval does since version 8.

    Each relevant document that is returned earns 1 - min(n, R) / min(N, R): n judged not relevant before it, N in
    all, R relevant in all.
    """
    relevant, n_relevant = found.is_relevant, _n_relevant(found)
    grades = found.judgements.relevance
    n_against = found.judgements.count((grades >= 0) & (grades < found.relevant_from))
    against = (found.relevance >= 0) & ~relevant
    before = np.cumsum(against) - np.repeat(*_before_query(against, found))
    query, before = found.query[relevant], before[relevant]
    bound = np.minimum(n_against, n_relevant)[query]
    lost = _ratio(np.minimum(before, n_relevant[query]), bound)
    return _ratio(found.sum(1.0 - lost, relevant), n_relevant)


def judged(found: Found, k: int | None) -> np.ndarray:
    """Return the share of the first k documents that have a judgement, of any relevance.

    It divides by the number of documents there are, at most k, as ir_measures does; 0 for an empty ranking.
    """
    seen = found.returned if k is None else np.minimum(found.returned, k)
    return _ratio(found.count(_within(found.rank, k)), seen)


def _first(found: Found) -> np.ndarray:
    """Return the rank of the first relevant document, or 0 when none is returned."""
    query, place = np.unique(found.query[found.is_relevant], return_index=True)
    first = np.zeros(len(found.returned), dtype=np.int64)
    first[query] = found.rank[found.is_relevant][place]
    return first


def _before_query(chosen: np.ndarray, found: Found) -> tuple[np.ndarray, np.ndarray]:
    """Return how many are chosen before each query's first judged document, and the number of those documents."""
    counts = np.bincount(found.query, minlength=len(found.returned))
    mine = found.count(chosen)
    return np.cumsum(mine) - mine, counts


def _within(rank: np.ndarray, k: int | None) -> np.ndarray:
    return np.ones(len(rank), dtype=bool) if k is None else rank <= k


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return above / below, and 0 where below is 0."""
    return np.divide(above, below, out=np.zeros(len(above)), where=below > 0)


def _n_relevant(found: Found) -> np.ndarray:
    return found.judgements.count(found.judgements.relevance >= found.relevant_from)
