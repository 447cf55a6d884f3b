"""loss: multiple negatives ranking: each anchor must find its own positive among all texts of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def ranking_loss(
    anchors: torch.Tensor,
    positives: torch.Tensor,
    same: np.ndarray,
    *,
    scale: float = 20.0,
    symmetric: bool = False,
    negatives: torch.Tensor | None = None,
    same_negatives: np.ndarray | None = None,
) -> torch.Tensor:
    """Return the mean cross-entropy of finding each anchor's positive by cosine times *scale*, a scalar from 0.

    *anchors* and *positives* are (n, d), *negatives* (m, d) further columns for every anchor. *same* (n, n) and
    *same_negatives* (n, m) are True where a text is no wrong answer, and is left out. Symmetric: the mean with the
    way back, from positives to anchors. Henderson et al. 2017 (multiple negatives), van den Oord et al. 2018.

    >>> import torch
    >>> round(ranking_loss(torch.eye(2), torch.eye(2), np.zeros((2, 2), bool), scale=1.0).item(), 4)
    0.3133
    """
    import torch
    from torch.nn.functional import cross_entropy, normalize

    anchors, positives = normalize(anchors.float(), dim=-1), normalize(positives.float(), dim=-1)
    left_out = torch.from_numpy(same).to(anchors.device)
    own = torch.arange(len(anchors), device=anchors.device)
    scores = (scale * anchors @ positives.T).masked_fill(left_out, -torch.inf)
    forth = scores
    if negatives is not None and same_negatives is not None:
        further = scale * anchors @ normalize(negatives.float(), dim=-1).T
        mask = torch.from_numpy(same_negatives).to(anchors.device)
        forth = torch.cat([scores, further.masked_fill(mask, -torch.inf)], dim=1)
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
