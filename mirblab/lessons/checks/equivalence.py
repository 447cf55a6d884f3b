"""equivalence: checks of the lesson on partners, the random baseline and contrastive training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp, log
from typing import Any

from mirblab.lessons.exercises import check_number, exercise, shorten

Matrix = list[list[float]]

_SCORES = (
    ({"a": 0.9, "b": 0.7, "c": 0.4}, "b"),
    ({"b": 0.1, "c": 0.8, "a": 0.3, "d": 0.2}, "c"),
    ({"x": -0.2, "y": -0.5, "z": -0.9, "w": 0.4}, "z"),
    ({"only": 0.5}, "only"),
)
_BATCH = [[0.6, 0.5, 0.2], [0.4, 0.5, 0.3], [0.1, 0.5, 0.4]]
_BATCHES = ((_BATCH, 20), (_BATCH, 1), ([[0.3, 0.3], [0.3, 0.3]], 20), ([[0.9, 0.1], [0.2, 0.7]], 5))
_ENDS = ((0.01, 0.2), (-0.3, -0.02), (-0.1, 0.1), (0.0, 0.3), (-0.2, 0.0), (-0.001, 0.5))


@exercise("partner_rank", "The rank depends only on the scores, not on the order of the dictionary.")
def _partner_rank(answer: Callable[[dict[str, float], str], int]) -> Iterator[str]:
    for scores, partner in _SCORES:
        better = sum(score > scores[partner] for score in scores.values())
        slips = {
            "ranks begin at 1.": better,
            "you count from the lowest score; the statement with the highest score has rank 1.": len(scores) - better,
            "that is the place in the dictionary, not in the order of the scores.": 1 + list(scores).index(partner),
            "that is the score; return the rank of the statement with this score.": scores[partner],
        }  # fmt: skip
        yield check_number(answer(dict(scores), partner), better + 1, f"partner_rank({scores}, {partner!r})", slips)


@exercise(
    "random_baseline",
    "It is larger than one over the mean rank, because the few draws with the partner at rank 1 count much.",
)
def _random_baseline(answer: Callable[[int], float]) -> Iterator[str]:
    for n in (1, 4, 10, 323, 2):
        truth = sum(1 / rank for rank in range(1, n + 1)) / n
        slips = {
            "that is one over the mean rank; return the mean of the reciprocals.": 2 / (n + 1),
            "that is the share of rank 1 alone; the other ranks contribute, too.": 1 / n,
            "that is the sum of the reciprocals; what is their mean?": n * truth,
            "that is the mean rank.": (n + 1) / 2,
            "your sum ends one too early.": (n * truth - 1 / n) / n,
            "your sum goes one too far.": (n * truth + 1 / (n + 1)) / n,
        }  # fmt: skip
        yield check_number(answer(n), truth, f"random_baseline({n})", slips)


@exercise("loss", "Most of the loss comes from the row in which the right answer has not the largest cosine.")
def _loss(answer: Callable[[Matrix], float]) -> Iterator[str]:
    for batch, scale in _BATCHES:
        truth, chance = _of(batch, scale), sum(_right(batch, scale)) / len(batch)
        flipped = [list(column) for column in zip(*batch, strict=True)]
        slips = {
            "the sign is wrong: the logarithm of a probability is below 0, but the loss is not.": -truth,
            "you add up the rows; take their mean.": truth * len(batch),
            "you compare within columns; each row has its own right answer.": _of(flipped, scale),
            "the cosines are not multiplied by the scale.": _of(batch, 1),
            "the logarithm has base 2; use the natural logarithm.": truth / log(2),
            "that is the mean of the probabilities; their logarithms are missing.": chance,
            "you take the logarithm of the mean; take the mean of the logarithms.": -log(chance),
            "the right answer itself is missing in the sum in the denominator.": _without_own(batch, scale),
        }  # fmt: skip
        yield check_number(answer([list(row) for row in batch], scale), truth, f"loss({batch}, scale={scale})", slips)


def _right(batch: Matrix, scale: float) -> list[float]:
    """Return for each row the probability of the right answer, which is on the diagonal."""
    return [exp(scale * row[place]) / sum(exp(scale * cosine) for cosine in row) for place, row in enumerate(batch)]


def _of(batch: Matrix, scale: float) -> float:
    """Return the mean of the negative logarithms of these probabilities."""
    return -sum(map(log, _right(batch, scale))) / len(batch)


def _without_own(batch: Matrix, scale: float) -> float:
    parts = [
        log(sum(exp(scale * cosine) for other, cosine in enumerate(row) if other != place)) - scale * row[place]
        for place, row in enumerate(batch)
    ]
    return sum(parts) / len(parts)


@exercise("verdict", '"Unclear" does not mean that there is no difference, only that these data do not show one.')
def _verdict(answer: Callable[[float, float], str]) -> str:
    for low, high in _ENDS:
        truth = "better" if low > 0 else "worse" if high < 0 else "unclear"
        found = answer(low, high)
        case = f"verdict({low}, {high})"
        if found not in ("better", "worse", "unclear"):
            return f'For `{case}` the answer must be "better", "worse" or "unclear", but it is `{shorten(found)}`.'
        if found != truth:
            return f"For `{case}` you say `{found}`: {_reason(low, high, found)}"
    return ""


def _reason(low: float, high: float, found: Any) -> str:
    if low == 0 or high == 0:
        return "the ends belong to the interval."
    if low < 0 < high:
        return "is 0 in this interval? Its middle alone does not decide."
    if found == "unclear":
        return "is 0 in this interval?"
    return "on which side of 0 is the whole interval? The difference is after minus before."
