"""splits: rows dealt with near-duplicates on one side, and training rows that repeat held-out ones dropped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError, unknown
from mirblab.repeats import repeats

VIEWS = ("informal", "signature", "type")
THRESHOLD = 0.8  # Jaccard similarity of word triples, as in `mirblab report`


@dataclass(frozen=True)
class Kept:
    """The rows that may be trained on, and the repetitions for which others were dropped.

    `why` has a row for each view and pair: `id` of the dropped row, `view`, `held_id` that it repeats, `jaccard`.
    """

    rows: pd.DataFrame
    why: pd.DataFrame
    recall: float

    def summary(self) -> str:
        """Return in one line how many rows were dropped, and how many of them for each view.

        >>> rows = pd.DataFrame({"id": ["a", "b"], "informal": ["a ring", "a field"], "type": ["∀ R, R = R", "ℕ"]})
        >>> without_near(rows, rows.head(1).assign(id="z"), ("informal", "type")).summary()
        '1 of 2 training rows nearly repeat a held-out row (informal 1, type 1), 1 are left'
        """
        per_view = self.why.groupby("view", sort=False).id.nunique()
        shown = ", ".join(f"{view} {count:,}" for view, count in per_view.items())
        n_dropped = self.why.id.nunique()
        before = f"{n_dropped:,} of {len(self.rows) + n_dropped:,} training rows nearly repeat a held-out row"
        return f"{before}{f' ({shown})' if shown else ''}, {len(self.rows):,} are left"


def without_near(
    train: pd.DataFrame,
    held_out: pd.DataFrame,
    columns: Sequence[str] = VIEWS,
    threshold: float = THRESHOLD,
    seed: int = 0,
) -> Kept:
    """Return the rows of *train*, in their order, none of whose views nearly repeats that view of a *held_out* row.

    Two texts nearly repeat each other when the Jaccard similarity of their word triples is *threshold* or more, or
    when they differ in case and white space only; see `near.near_pairs`. An empty text repeats nothing. Each row is
    dropped for what is held out, so the result does not depend on the order. Raises MirblabError for a column that
    is not there, and an id that is on both sides.

    >>> train = pd.DataFrame({"id": ["a", "b"], "informal": ["Every field is a ring", "Zero is even"]})
    >>> held_out = pd.DataFrame({"id": ["c"], "informal": ["every field is a ring."]})
    >>> without_near(train, held_out, ["informal"]).rows.id.tolist()
    ['b']
    """
    for table in (train, held_out):
        _check(table, columns)
    both = sorted(set(train.id) & set(held_out.id))
    if both:
        raise MirblabError(f"{len(both)} ids are in training and held out, the first is '{both[0]}'; drop them first")
    found, recall = [], 1.0
    for column in columns:
        same = repeats([held_out[column].tolist(), train[column].tolist()], threshold, seed, n_asked=1)
        pairs = same.between(1, 0)
        one, other = (pairs[name].to_numpy(dtype=np.int64) for name in ("one", "other"))
        ids = {"id": train.id.to_numpy()[one], "view": column, "held_id": held_out.id.to_numpy()[other]}
        found.append(pd.DataFrame(ids | {"jaccard": pairs.jaccard.to_numpy()}))
        recall = min(recall, same.recall)
    why = pd.concat(found, ignore_index=True)
    return Kept(train[~train.id.isin(why.id)], why, recall)


def groups(
    views: pd.DataFrame, columns: Sequence[str] = VIEWS, threshold: float = THRESHOLD, seed: int = 0
) -> np.ndarray:
    """Return the group of each row, int64 (n_rows,), numbered from 0 by first appearance.

    Rows belong together when any of their views nearly repeat each other, or when a chain of such rows joins them.
    Errors are those of `near.near_pairs`, and MirblabError for a column that is not there.

    >>> groups(pd.DataFrame({"id": list("abc"), "informal": ["x y z", "a b c", "X Y  z"]}), ["informal"]).tolist()
    [0, 1, 0]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _check(views, columns)
    pairs = pd.concat([repeats([views[column].tolist()], threshold, seed).within(0) for column in columns])
    edges = (np.ones(len(pairs), np.int8), (pairs.one.to_numpy(np.int64), pairs.other.to_numpy(np.int64)))
    labels = connected_components(coo_array(edges, shape=(len(views), len(views))), directed=False)[1]
    return pd.factorize(labels)[0].astype(np.int64)


def assign(
    views: pd.DataFrame,
    shares: Mapping[str, float],
    seed: int = 0,
    columns: Sequence[str] = VIEWS,
    threshold: float = THRESHOLD,
) -> pd.DataFrame:
    """Return *views* with a new `split` and its `group`: whole groups of near-duplicates, dealt by *seed*.

    *shares* has the share of the rows of each split, together 1. The groups, in an order drawn by *seed*, are laid
    end to end, and each goes to the split in whose stretch its middle lies; so every group has the same chance
    whatever its size, and a share is missed by half a group at most on either side. Who is with whom depends on the
    ids and texts, not on the order of the rows. Raises MirblabError for shares that are none, and for splits that
    come out empty.

    >>> rows = pd.DataFrame({"id": list("abcd"), "informal": ["one x", "two y", "one x", "three z"]})
    >>> assign(rows, {"train": 0.7, "test": 0.3}, columns=["informal"]).split.tolist()
    ['train', 'test', 'train', 'train']
    """
    _check(views, columns)
    bad = [name for name, share in shares.items() if not 0 < share <= 1]
    if bad or not shares or not math.isclose(sum(shares.values()), 1, abs_tol=1e-9):
        raise MirblabError(f"shares are numbers above 0 that make 1 together, found {dict(shares)}")
    ordered = views.sort_values("id")
    group = groups(ordered, columns, threshold)
    sizes = np.bincount(group)
    order = np.random.default_rng(seed).permutation(len(sizes))
    middles = np.empty(len(sizes))
    middles[order] = np.cumsum(sizes[order]) - sizes[order] / 2
    ends = np.cumsum(list(shares.values()))[:-1] * len(views)
    split = np.array(list(shares), dtype=object)[np.searchsorted(ends, middles, side="right")][group]
    absent = [name for name in shares if name not in split]
    if absent:
        raise MirblabError(f"no row is left for {', '.join(absent)}: {len(views)} rows are {len(sizes)} groups")
    dealt = pd.DataFrame({"id": ordered.id.to_numpy(), "split": pd.array(split, dtype="str"), "group": group})
    found = dealt.set_index("id").loc[views.id]
    return views.assign(split=found.split.array, group=found.group.array)


def _check(table: pd.DataFrame, columns: Sequence[str]) -> None:
    for column in ("id", *columns):
        if column not in table.columns:
            raise unknown("column", column, table.columns)
    if table.id.duplicated().any():
        raise MirblabError(f"id '{table.id[table.id.duplicated()].iloc[0]}' occurs twice; ids name one row each")
