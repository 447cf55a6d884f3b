"""methods: the rules of fusion, one function each, by ranks or by scores that are scaled to 0..1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError
from mirblab.voting import Block, Sides


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
    return Sides.of(parts).merge(lambda block: 1.0 / (k + block.rank.astype(np.float64)), Block.sum, depth)


def linear(
    parts: Sequence[pd.DataFrame], weights: Sequence[float], depth: int | None = None, span: str = "query"
) -> pd.DataFrame:
    """Return the weighted sum of scores that are scaled to 0..1 within each query and part (min-max).

    A document that a part does not return counts 0 there. A query whose scores are all equal counts 1, so the only
    document of a part counts as much as the best of many. With *span* "mean" a part's scores above the worst of
    their query are divided by what best and worst are apart in the mean over its queries: a query for which a part
    finds nothing better than the rest is not stretched. *depth* cuts the result (None: all documents). Raises
    MirblabError unless there is one weight per part.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["b", "a"], "score": [0.2, 0.1]})
    >>> [f"{score:.2f}" for score in linear([one, two], [0.3, 0.7]).score]
    ['0.70', '0.30']
    """
    found, sides = _weights(parts, weights), Sides.of(parts)
    scaled = sides.scale(span)
    return sides.merge(lambda block: found[block.part] * scaled(block), Block.sum, depth)


def weighted_sum(parts: Sequence[pd.DataFrame], weights: Sequence[float], depth: int | None = None) -> pd.DataFrame:
    """Return the weighted sum of the scores as they are, for parts that count the same thing, as words and formulas.

    A document that a part does not return counts 0 there. *depth* cuts the result (None: all documents). Raises
    MirblabError unless there is one weight per part.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["b", "a"], "score": [5.0, 0.5]})
    >>> weighted_sum([one, two], [1, 2]).score.tolist()
    [11.0, 10.0]
    """
    found = _weights(parts, weights)
    return Sides.of(parts).merge(lambda block: found[block.part] * block.score.astype(np.float64), Block.sum, depth)


def _weights(parts: Sequence[pd.DataFrame], weights: Sequence[float]) -> np.ndarray:
    """Return the weights as an array; MirblabError unless there is one from 0 up for each part."""
    found = np.asarray(weights, dtype=np.float64)
    if len(found) != len(parts):
        raise MirblabError(f"one weight per run is needed; found {len(parts)} runs and {len(found)} weights")
    if not np.isfinite(found).all() or (found < 0).any():
        raise MirblabError(f"weights are numbers from 0 up; found {', '.join(map(str, weights))}")
    return found


def borda(parts: Sequence[pd.DataFrame], depth: int | None = None) -> pd.DataFrame:
    """Return the Borda fusion: of c documents that a query has in all parts, rank r earns c - r + 1 points.

    The points that a part of n documents leaves over are shared by the c - n that it does not return, so each of
    them earns (c - n + 1) / 2. Aslam and Montague, SIGIR 2001. polyfuse gives (N - r + 1) / N, N the rows of the
    whole run, and 0 to what is missing: then the number of parts that return a document decides almost alone.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b", "c"], "score": [3.0, 2.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["d"], "score": [1.0]})
    >>> dict(zip(*borda([one, two])[["doc_id", "score"]].to_numpy().T))
    {'a': 6.0, 'd': 5.0, 'b': 5.0, 'c': 4.0}
    """
    return Sides.of(parts).merge(_borda_points, _borda_total, depth)


def _borda_points(block: Block) -> np.ndarray:
    """Return what a rank earns above what the part's missing documents earn."""
    return block.pool - block.rank + 1.0 - (block.pool - block.length + 1.0) / 2


def _borda_total(block: Block, points: np.ndarray) -> np.ndarray:
    """Return the points of each pair, those of a missing document in every part included.

    The sum over parts of (c - n + 1) / 2 is, with p parts, (p * (c + 1) - the query's rows) / 2.
    """
    return block.sum(points) + (block.n_parts * (block.pool + 1.0) - block.n_rows)[block.first] / 2


def isr(parts: Sequence[pd.DataFrame], depth: int | None = None) -> pd.DataFrame:
    """Return the inverse square rank fusion: n * (sum of 1 / rank²), n the number of parts that return a document.

    Mourão, Martins and Magalhães, CBMI 2014. *depth* cuts the result (None: all documents).

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> two = pd.DataFrame({"query_id": "q", "doc_id": ["c", "b"], "score": [2.0, 1.0]})
    >>> isr([one, two]).score.tolist()
    [1.0, 1.0, 1.0]
    """
    return Sides.of(parts).merge(_inverse_squares, lambda block, votes: block.n_votes * block.sum(votes), depth)


def log_isr(parts: Sequence[pd.DataFrame], sigma: float = 1.0, depth: int | None = None) -> pd.DataFrame:
    """Return the logarithmic inverse square rank fusion: ln(n + *sigma*) * (sum of 1 / rank²), n as for `isr`.

    Mourão, Martins and Magalhães, CBMI 2014, have *sigma* 0, with which all documents of one part alone score 0 and
    stand by their ids; in 2015 (Computerized Medical Imaging and Graphics 39) they have 0.01. polyfuse has 1, as here.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> [round(score, 4) for score in log_isr([one, one]).score.tolist()]
    [2.1972, 0.5493]
    """
    if not sigma >= 0:
        raise MirblabError(f"sigma is added to a number of runs and is at least 0; found {sigma}; 1 is usual")
    return Sides.of(parts).merge(
        _inverse_squares, lambda block, votes: np.log(block.n_votes + sigma) * block.sum(votes), depth
    )


def _inverse_squares(block: Block) -> np.ndarray:
    return 1.0 / block.rank.astype(np.float64) ** 2


def comb_sum(parts: Sequence[pd.DataFrame], depth: int | None = None) -> pd.DataFrame:
    """Return the sum of scores that are scaled to 0..1 within each query and part (min-max): CombSUM.

    Fox and Shaw, TREC-2, 1993. A document that a part does not return counts 0 there; equal scores all count 1.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> comb_sum([one, one]).score.tolist()
    [2.0, 0.0]
    """
    return Sides.of(parts).merge(_scaled, Block.sum, depth)


def comb_mnz(parts: Sequence[pd.DataFrame], depth: int | None = None) -> pd.DataFrame:
    """Return CombSUM's score times the number of parts that return the document, whatever its score: CombMNZ.

    Fox and Shaw, TREC-2, 1993. *depth* cuts the result (None: all documents).

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> comb_mnz([one, one]).score.tolist()
    [4.0, 0.0]
    """
    return Sides.of(parts).merge(_scaled, lambda block, votes: block.n_votes * block.sum(votes), depth)


def comb_anz(parts: Sequence[pd.DataFrame], depth: int | None = None) -> pd.DataFrame:
    """Return CombSUM's score divided by the number of parts that return the document: CombANZ (Fox and Shaw, 1993).

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> comb_anz([one, one]).score.tolist()
    [1.0, 0.0]
    """
    return Sides.of(parts).merge(_scaled, lambda block, votes: block.sum(votes) / block.n_votes, depth)


def comb_max(parts: Sequence[pd.DataFrame], depth: int | None = None) -> pd.DataFrame:
    """Return the largest of the scaled scores that a document has in any part: CombMAX (Fox and Shaw, 1993).

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [9.0, 1.0]})
    >>> comb_max([one, one]).score.tolist()
    [1.0, 0.0]
    """
    return Sides.of(parts).merge(_scaled, Block.max, depth)


def _scaled(block: Block) -> np.ndarray:
    return block.scaled
