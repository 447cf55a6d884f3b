"""equivalence: checks of the lesson on partners, the random baseline and contrastive training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp, log
from typing import Any

from mirblab.lessons.exercises import exercise, shorten
from mirblab.lessons.hints import check_function

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
def _partner_rank(answer: Any) -> str:
    def n_better(scores: dict[str, float], partner: str) -> int:
        return sum(score > scores[partner] for score in scores.values())

    def slips(scores: dict[str, float], partner: str) -> Mapping[str, float]:
        from_lowest = len(scores) - n_better(scores, partner)
        return {
            "ranks begin at 1.": n_better(scores, partner),
            "you count from the lowest score; the statement with the highest score has rank 1.": from_lowest,
            "that is the place in the dictionary, not in the order of the scores.": 1 + list(scores).index(partner),
            "that is the score; return the rank of the statement with this score.": scores[partner],
        }

    return check_function(answer, _SCORES, lambda scores, partner: n_better(scores, partner) + 1, slips)


@exercise(
    "random_baseline",
    "It is larger than one over the mean rank, because the few draws with the partner at rank 1 count much.",
)
def _random_baseline(answer: Any) -> str:
    def total(n: int) -> float:
        return sum(1 / rank for rank in range(1, n + 1))

    def slips(n: int) -> Mapping[str, float]:
        return {
            "that is one over the mean rank; return the mean of the reciprocals.": 2 / (n + 1),
            "that is the share of rank 1 alone; the other ranks contribute, too.": 1 / n,
            "that is the sum of the reciprocals; what is their mean?": total(n),
            "that is the mean rank.": (n + 1) / 2,
            "your sum ends one too early.": total(n - 1) / n,
            "your sum goes one too far.": total(n + 1) / n,
        }

    return check_function(answer, [(1,), (4,), (10,), (323,), (2,)], lambda n: total(n) / n, slips)


@exercise("loss", "Most of the loss comes from the row in which the right answer does not have the largest cosine.")
def _loss(answer: Any) -> str:
    def slips(batch: Matrix, scale: float) -> Mapping[str, float]:
        truth, mean_probability = loss(batch, scale), sum(_probabilities(batch, scale)) / len(batch)
        transposed = [list(column) for column in zip(*batch, strict=True)]
        others = [
            sum(exp(scale * cosine) for other, cosine in enumerate(row) if other != number)
            for number, row in enumerate(batch)
        ]
        without_own = [
            log(total) - scale * row[number] for number, (row, total) in enumerate(zip(batch, others, strict=True))
        ]
        return {
            "the sign is wrong: the logarithm of a probability is below 0, but the loss is not.": -truth,
            "you add up the rows; take their mean.": truth * len(batch),
            "you compare within columns; each row has its own right answer.": loss(transposed, scale),
            "the cosines are not multiplied by the scale.": loss(batch, 1),
            "the logarithm has base 2; use the natural logarithm.": truth / log(2),
            "that is the mean of the probabilities; their logarithms are missing.": mean_probability,
            "you take the logarithm of the mean; take the mean of the logarithms.": -log(mean_probability),
            "the right answer itself is missing in the sum in the denominator.": sum(without_own) / len(batch),
        }

    return check_function(answer, _BATCHES, loss, slips)


def _probabilities(batch: Matrix, scale: float) -> list[float]:
    """Return for each row the probability of the right answer, which is on the diagonal."""
    return [exp(scale * row[number]) / sum(exp(scale * cosine) for cosine in row) for number, row in enumerate(batch)]


def loss(batch: Matrix, scale: float) -> float:
    """Return the mean of the negative logarithms of the probabilities of the right answers."""
    return -sum(map(log, _probabilities(batch, scale))) / len(batch)


@exercise("verdict", '"Unclear" does not mean that there is no difference, only that these data do not show one.')
def _verdict(answer: Callable[[float, float], str]) -> str:
    for low, high in _ENDS:
        truth = "better" if low > 0 else "worse" if high < 0 else "unclear"
        verdict = answer(low, high)
        case = f"verdict({low}, {high})"
        if verdict not in ("better", "worse", "unclear"):
            return f'For `{case}` the answer must be "better", "worse" or "unclear", but it is `{shorten(verdict)}`.'
        if verdict != truth:
            return f"For `{case}` you say `{verdict}`: {_reason(low, high, verdict)}"
    return ""


def _reason(low: float, high: float, verdict: str) -> str:
    if low == 0 or high == 0:
        return "the ends belong to the interval."
    if low < 0 < high:
        return "is 0 in this interval? Its middle alone does not decide."
    if verdict == "unclear":
        return "is 0 in this interval?"
    return "on which side of 0 is the whole interval? The difference is after minus before."
