"""loss: multiple negatives ranking: each anchor must find its own positive among all texts of the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def cosines(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the cosine of every row of *one* (n, d) with every row of *other* (m, d), float32 (n, m)."""
    from torch.nn.functional import normalize

    return normalize(one.float(), dim=-1) @ normalize(other.float(), dim=-1).T


def ranking_loss(
    anchors: torch.Tensor,
    positives: torch.Tensor,
    same: np.ndarray,
    *,
    scale: float = 20.0,
    symmetric: bool = False,
    negatives: torch.Tensor | None = None,
    same_negatives: np.ndarray | None = None,
    score: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = cosines,
) -> torch.Tensor:
    """Return the mean cross-entropy of finding each anchor's positive by its *score* times *scale*, a scalar from 0.

    *anchors* and *positives* are n texts, (n, d) for cosines, *negatives* m further columns for every anchor. *same*
    (n, n) and *same_negatives* (n, m) are True where a text is no wrong answer, and is left out. Symmetric: the mean
    with the way back, from positives to anchors. Henderson et al. 2017 (multiple negatives), van den Oord et al. 2018.

    >>> import torch
    >>> round(ranking_loss(torch.eye(2), torch.eye(2), np.zeros((2, 2), bool), scale=1.0).item(), 4)
    0.3133
    """
    import torch
    from torch.nn.functional import cross_entropy

    def scored(others: torch.Tensor, left_out: np.ndarray) -> torch.Tensor:
        mask = torch.from_numpy(left_out).to(anchors.device)
        return (scale * score(anchors, others)).masked_fill(mask, -torch.inf)

    own, scores = torch.arange(len(anchors), device=anchors.device), scored(positives, same)
    forth = scores
    if negatives is not None and same_negatives is not None:
        forth = torch.cat([scores, scored(negatives, same_negatives)], dim=1)
    loss = cross_entropy(forth, own)
    return (loss + cross_entropy(scores.T, own)) / 2 if symmetric else loss


def same_texts(anchors: Sequence[str], positives: Sequence[str]) -> np.ndarray:
    """Return (n, n): whether the positive in a column is no wrong answer to the anchor in a row, although not its own.

    It is none if it has the text of the anchor's own positive or of the anchor, or if its own anchor has the
    anchor's text. The diagonal is False.

    >>> same_texts(["a", "b", "a"], ["x", "x", "y"]).astype(int).tolist()
    [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    """
    a, p = _numbers(anchors, positives)
    same = (a[:, None] == a) | (p[:, None] == p) | (a[:, None] == p)
    np.fill_diagonal(same, False)
    return same


def same_as_negatives(anchors: Sequence[str], positives: Sequence[str], negatives: Sequence[str]) -> np.ndarray:
    """Return (n, m): whether a hard negative has the text of the anchor in a row, or of its positive.

    >>> same_as_negatives(["a"], ["x"], ["x", "y", "a"]).tolist()
    [[True, False, True]]
    """
    a, p, n = _numbers(anchors, positives, negatives)
    return (a[:, None] == n) | (p[:, None] == n)


def _numbers(*columns: Sequence[str]) -> list[np.ndarray]:
    """Return columns of texts as integers that are equal where the texts are."""
    known: dict[str, int] = {}
    return [np.array([known.setdefault(text, len(known)) for text in column], dtype=np.intp) for column in columns]
