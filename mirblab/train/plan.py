"""plan: which rows are in a batch, and which two views of each row, drawn from (seed, step) alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

# What a random stream is for, so that two of them never draw the same numbers.
_ORDER, _VIEWS, _MIX, _TORCH = 0, 1, 2, 3


@dataclass(frozen=True)
class Draw:
    """What one step sees: *rows* of the main source or the mixed one, and the index of a pair of views for each."""

    rows: np.ndarray
    pairs: np.ndarray
    flipped: np.ndarray
    is_mixed: bool
    rng: np.random.Generator


@dataclass(frozen=True)
class Plan:
    """The batches of a training run: *usable* (n_rows, n_pairs) says which pairs of views a row has.

    An epoch is a seeded permutation of groups of *together* rows that are neighbours; what is left over after its last
    whole batch is not seen in it. Whole batches come from the mixed source, spread evenly, so that negatives are always
    of the positive's own kind.

    >>> plan = Plan(np.ones((4, 1), bool), batch=2, seed=0)
    >>> sorted(np.concatenate([plan.draw(0).rows, plan.draw(1).rows]).tolist())
    [0, 1, 2, 3]
    """

    usable: np.ndarray
    batch: int
    seed: int
    n_mixed: int = 0
    share: float = 0.0
    together: int = 1

    def draw(self, step: int) -> Draw:
        """Return the rows and views of a *step*, from 0; the same for the same seed, whatever was drawn before."""
        before, after = int(step * self.share), int((step + 1) * self.share)
        rng = np.random.default_rng([self.seed, _VIEWS, step])
        if after > before:
            rows = _rows(self.n_mixed, self.batch, self.seed, _MIX, before, 1)
            return Draw(rows, np.zeros(len(rows), np.intp), np.zeros(len(rows), bool), True, rng)
        rows = _rows(len(self.usable), self.batch, self.seed, _ORDER, step - before, self.together)
        # the largest of uniform numbers, among the pairs that a row has
        pairs = np.where(self.usable[rows], rng.random((len(rows), self.usable.shape[1])), -1.0).argmax(axis=1)
        return Draw(rows, pairs, rng.random(len(rows)) < 0.5, False, rng)

    def torch_seed(self, step: int) -> int:
        """Return the seed of everything random inside the model at a *step* (dropout)."""
        return int(np.random.SeedSequence([self.seed, _TORCH, step]).generate_state(1, np.uint64)[0] >> 1)


def _rows(n_rows: int, batch: int, seed: int, stream: int, number: int, together: int) -> np.ndarray:
    """Return the rows of batch *number* of one source."""
    epoch, place = divmod(number, max(1, n_rows // batch))
    return _permutation(n_rows, seed, stream, epoch, together)[place * batch : (place + 1) * batch]


@lru_cache(maxsize=4)
def _permutation(n_rows: int, seed: int, stream: int, epoch: int, together: int) -> np.ndarray:
    """Return all rows, groups of *together* neighbours in a random order; where the groups begin is random, too."""
    rng = np.random.default_rng([seed, stream, epoch])
    if together == 1:
        order = rng.permutation(n_rows)
    else:
        groups = np.split(np.arange(n_rows), np.arange(rng.integers(together), n_rows, together))
        order = np.concatenate([groups[number] for number in rng.permutation(len(groups))])
    order.flags.writeable = False
    return order
