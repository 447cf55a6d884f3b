"""partner_tables: how well systems find the partners of statements, in the shape of the MELD paper's tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mirblab.errors import MirblabError, unknown
from mirblab.escape import interval
from mirblab.marks import best_and_second
from mirblab.typeset import Table

_RECALL = "Recall@"
_DIGITS = {"MRR": 3, "Mean rank": 1}


def partner_table(
    intervals: pd.DataFrame,
    *,
    measures: Sequence[str] = (),
    others: int = 0,
    brackets: bool = True,
    caption: str = "",
) -> Table:
    """Return systems × Recall@1 … Recall@20, MRR, Mean rank, each with its [low, high], best of a column in bold.

    *intervals* are from `significance.bootstrap_intervals` of `pairs.by_pair`, so pairs are resampled. Recall is in
    percent, MRR from 0 to 1, the mean rank from 1, lower is better. Of several collections (domain pairs) each has
    its rows, and its own best. *measures* narrows the columns; with *others*, how many statements compete, the last
    row is what a random order is expected to give; without *brackets* the intervals are in the CSV only.
    The columns are those of Ye et al. 2026, Tables 2 and 5. Raises MirblabError for a measure that is not there.

    >>> rows = [("c", "R@1", "s", 0.25, 0.2, 0.3, 9), ("c", "Rank", "s", 7.5, 6, 9, 9)]
    >>> names = ["collection", "measure", "system", "mean", "low", "high", "n_queries"]
    >>> print(partner_table(pd.DataFrame(rows, columns=names), brackets=False).to_markdown().splitlines()[4])
    | s | 25.0 | 7.5 |
    """
    known = [str(name) for name in intervals.measure.unique()]
    for name in measures:
        if name not in known:
            raise unknown("measure", name, known)
    if intervals.empty:
        raise MirblabError("there are no intervals, so there is no table; give bootstrap_intervals(by_pair(values))")
    names = list(measures) or known
    wide = {end: _wide(intervals, end, names) for end in ("mean", "low", "high")}
    texts = [[interval(a, b, f".{d}f") for a, b, d in zip(*rows, map(_digits, wide["mean"]), strict=True)]
             for rows in zip(wide["low"].to_numpy(), wide["high"].to_numpy(), strict=True)]  # fmt: skip
    shown = Table(wide["mean"], caption or "How often the partner is found, and its mean rank.", _notes(intervals), 1)
    shown.formats = {name: f".{_digits(name)}f" for name in wide["mean"]}
    shown.beside = pd.DataFrame(texts, *wide["mean"].axes) if brackets else shown.beside
    shown.extra = {end: wide[end] for end in ("low", "high")}
    shown.marks = _marks(wide["mean"], intervals)
    return _with_chance(shown, names, others) if others else shown


def _rows(intervals: pd.DataFrame) -> pd.Series:
    """Return the name of each row: the system, after its collection where there are several."""
    systems = intervals.system.astype("str")
    several = intervals.collection.nunique() > 1
    return intervals.collection.astype("str") + ": " + systems if several else systems


def _wide(intervals: pd.DataFrame, end: str, names: Sequence[str]) -> pd.DataFrame:
    """Return one of mean, low and high in printed units under printed names, rows and columns as they come."""
    rows = _rows(intervals)
    frame = intervals.assign(row=rows).pivot(index="row", columns="measure", values=end)
    frame = frame.loc[list(dict.fromkeys(rows)), list(names)]
    frame *= [100 if name.startswith("R@") else 1 for name in names]
    return frame.set_axis([_printed(name) for name in names], axis=1).rename_axis(index=None, columns=None)


def _with_chance(shown: Table, names: Sequence[str], others: int) -> Table:
    """Return the table with a last row: the partner is as likely to have one rank as any other of *others*."""
    harmonic = (1 / np.arange(1, others + 1)).mean()
    expected = {"RR": harmonic, "Rank": (others + 1) / 2}
    expected |= {name: 100 * min(1, int(name[2:]) / others) for name in names if name.startswith("R@")}
    shown.frame.loc["by chance"] = [expected.get(name, np.nan) for name in names]
    for part in (shown.marks, shown.beside):
        if part.size:
            part.loc["by chance"] = ""
    shown.extra = {end: part.reindex(shown.frame.index) for end, part in shown.extra.items()}
    shown.notes.append(f"By chance: what a random order of the {others:,} other statements is expected to give.")
    return shown


def _printed(measure: str) -> str:
    return {"RR": "MRR", "Rank": "Mean rank"}.get(measure, measure.replace("R@", _RECALL))


def _digits(column: str) -> int:
    return _DIGITS.get(column, 1)


def _marks(frame: pd.DataFrame, intervals: pd.DataFrame) -> pd.DataFrame:
    """Return best and second of each column among the rows of one collection; of ranks the lowest is best."""
    up = frame.assign(**{"Mean rank": -frame["Mean rank"]}) if "Mean rank" in frame else frame
    blocks = _rows(intervals).groupby(intervals.collection.astype("str"), sort=False).unique()
    marked = [
        pd.concat([best_and_second(up.loc[rows, [name]], _digits(name), ()) for name in up], axis=1) for rows in blocks
    ]
    return pd.concat(marked).loc[frame.index]


def _notes(intervals: pd.DataFrame) -> list[str]:
    counts = intervals.drop_duplicates("collection").set_index("collection").n_queries
    each = f"{counts.iloc[0]:,} in each" if len(counts) > 2 and counts.nunique() == 1 else ""
    pairs = each or ", ".join(f"{name} {number:,}" for name, number in counts.items())
    notes = [
        f"Pairs: {pairs}; both statements look for their partner.",
        "In brackets: bootstrap interval of the mean over resampled pairs.",
        "Recall in percent, MRR from 0 to 1; mean rank: lower is better.",
    ]
    if intervals.system.nunique() > 1:
        notes.append("Bold: best of the column; underlined: second. Systems that print the same share the mark.")
    return notes
