"""tables: values and comparisons become tables to show and save."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from mirblab import averages, imported
from mirblab.errors import MirblabError, unknown
from mirblab.escape import interval
from mirblab.marks import Published, add_distance, add_signs, best_and_second, last, state
from mirblab.typeset import Table

__all__ = ["Table", "interval", "interval_table", "main_table", "state", "table"]

_NO_JUDGED = "{}: unjudged documents are left out; Judged@k, the share that is judged, is missing here."


def table(
    frame: pd.DataFrame,
    caption: str = "",
    *,
    notes: Sequence[str] = (),
    digits: int = 2,
    formats: Mapping[str, str] | None = None,
    maths: Iterable[str] = (),
) -> Table:
    """Return any table for display: floats with *digits*, counts with thousands separators, text whole.

    *formats* gives columns a format specification of their own ({"p": ".4f"}); *maths* names the columns whose
    cells hold LaTeX between dollars, which is then kept, in the caption, too. The index becomes the first column.

    >>> print(table(pd.DataFrame({"queries": [25116]}, index=["MSE Dup."])).to_markdown())
    |  | queries |
    | --- | ---: |
    | MSE Dup. | 25,116 |
    """
    return Table(frame, caption, list(notes), digits, formats=dict(formats or {}), maths=frozenset(maths))


def main_table(
    values: pd.DataFrame,
    measure: str | Sequence[str],
    *,
    by: str = "collection",
    tasks: Mapping[str, str] | None = None,
    groups: Mapping[str, str] | None = None,
    comparison: pd.DataFrame | None = None,
    published: Published | None = None,
    tolerance: tuple[float, float] = (0.05, 1.0),
    digits: int = 2,
    percent: bool = True,
    caption: str = "",
) -> Table:
    """Return means over queries, systems × collections, with averages, marks and the distance to a paper.

    *by* "collection": one measure, a column per collection; averages over collections are unweighted, per task of
    *tasks* (collection to task) and over all. *by* "measure": several measures of one collection, a column each.
    *groups* (collection to name, as `shelf.groups` gives it): the collections of one name share a column, the
    unweighted mean of theirs, which counts once in averages; one that is not complete here stays apart. Such a column
    has no significance marks, since tests are made by collection; *published* is asked for its name.
    The best of a column is bold, the second underlined; systems that print the same share the mark.
    *comparison*: from `significance.compare` with a baseline, gives † (better) and ‡ (worse).
    *published(system, collection)*: the paper's number in printed units, or None; the distance is stated as OK,
    near or off, by *tolerance* in printed units. *percent*: values are printed times 100.
    A prime measure brings Judged@k with it, or a note that it is missing. What others measured (`results.values`) is
    marked § and its origin noted.

    >>> rows = [("a", "q1", 0.9), ("a", "q2", 0.7), ("b", "q1", 0.4), ("b", "q2", 0.8)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> print(main_table(values, "RR").to_markdown().splitlines()[4])
    | a | **80.00** |
    """
    wanted, key = _measures(values, measure, by), by
    whole, tasks, group_notes = (
        averages.groups(values, groups or {}, tasks or {}) if by == "collection" else ({}, {}, [])
    )
    means = averages.grouped(averages.means(values, wanted, key) * (100 if percent else 1), whole)
    frame, n_averages = averages.with_averages(means, tasks) if by == "collection" else (means, 0)
    judged, notes = _judged(values, wanted, percent, by, whole)
    notes = _query_notes(values, wanted) + group_notes + averages.notes(means, n_averages) + notes
    unmarked = [column for column in frame.columns if last(column).startswith("Judged")]
    if judged is not None:
        frame, unmarked = _beside_each_other(frame, judged)
    shown = Table(frame, caption or _caption(wanted, values, percent), notes, digits)
    shown.marks = best_and_second(frame, digits, unmarked)
    mask = imported.mask(values, wanted, key)
    if mask is not None:
        laid = averages.with_averages(averages.grouped(mask, whole), tasks)[0] if by == "collection" else mask
        imported.add_signs(shown, laid if judged is None else _with_level(laid), imported.origins(values))
    if comparison is not None and len(comparison):
        _check_same_measure(comparison, wanted)
        add_signs(shown, comparison)
    if published is not None and by == "collection":
        add_distance(shown, published, tolerance, set(means.columns), unmarked)
    if len(frame) > 1:
        shown.notes.append("Bold: best of the column; underlined: second. Systems that print the same share the mark.")
    return shown


def interval_table(
    values: pd.DataFrame, intervals: pd.DataFrame, *, digits: int = 2, percent: bool = True, caption: str = ""
) -> Table:
    """Return each system's mean with its [low, high], systems × collections.

    *intervals* comes from `significance.bootstrap_intervals` for one measure; means are taken from *values*. Raises
    MirblabError when the intervals hold several measures or lack a system; an imported mean has no interval.

    >>> from mirblab.significance import bootstrap_intervals
    >>> rows = [("a", "q1", 1.0), ("a", "q2", 1.0)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> interval_table(values, bootstrap_intervals(values)).frame.loc["a"].tolist()
    [100.0]
    """
    names = [str(name) for name in intervals.measure.unique()]
    if len(names) != 1:
        raise MirblabError(f"intervals of one measure are needed, found {', '.join(names) or 'none'}")
    factor = 100 if percent else 1
    frame = averages.means(values, names, "collection") * factor
    ends = [
        (intervals.pivot(index="system", columns="collection", values=end) * factor).reindex_like(frame)
        for end in ("low", "high")
    ]
    mask = imported.mask(values, names, "collection")
    lacking = frame.notna() & ends[0].isna()
    if (lacking if mask is None else lacking & (mask.fillna(0.0) == 0)).to_numpy().any():
        raise MirblabError("the intervals lack a system or collection of the values; compute them from the same table")
    texts = [[interval(a, b, f".{digits}f") if a == a else "" for a, b in zip(*rows, strict=True)]
             for rows in zip(*(end.to_numpy() for end in ends), strict=True)]  # fmt: skip
    notes = [*_query_notes(values, names), "In brackets: bootstrap interval of the mean over resampled queries."]
    shown = Table(frame, caption or _caption(names, values, percent), notes, digits)
    shown.beside = pd.DataFrame(texts, index=frame.index, columns=frame.columns)
    shown.extra = {"low": ends[0], "high": ends[1]}
    if mask is not None:
        imported.add_signs(shown, mask, imported.origins(values))
    return shown


def _measures(values: pd.DataFrame, measure: str | Sequence[str], by: str) -> list[str]:
    if by not in ("collection", "measure"):
        raise unknown("layout", by, ["collection", "measure"])
    wanted = [measure] if isinstance(measure, str) else list(measure)
    known = [str(name) for name in values.measure.unique()]
    for name in wanted:
        if name not in known:
            raise unknown("measure", name, known)
    if by == "collection" and len(wanted) != 1:
        raise MirblabError(f"a table by collection shows one measure, found {len(wanted)}; use by='measure'")
    if by == "measure" and values.collection.nunique() != 1:
        raise MirblabError(f"a table by measure shows one collection, found {values.collection.nunique()}")
    primes = [name for name in wanted if "'" in name]
    if by == "measure" and primes and not any(name.startswith("Judged") for name in wanted):
        wanted += _judged_names(known, primes[0])
    return wanted


def _check_same_measure(comparison: pd.DataFrame, wanted: Sequence[str]) -> None:
    others = sorted(set(comparison.measure.astype(str)) - set(wanted))
    if others:
        raise MirblabError(f"the comparison is of {', '.join(others)}, the table of {', '.join(wanted)}")


def _judged_names(known: Sequence[str], prime: str) -> list[str]:
    """Return the one Judged@k to show beside a prime measure: with its k if there is one, else the first."""
    judged = [name for name in known if name.startswith("Judged")]
    same = [name for name in judged if name.partition("@")[2] == prime.partition("@")[2]]
    return (same or judged)[:1]


def _judged(
    values: pd.DataFrame, wanted: Sequence[str], percent: bool, by: str, whole: Mapping[str, list[str]]
) -> tuple[pd.DataFrame | None, list[str]]:
    """Return Judged@k for a prime measure (none where it is a column already), and a note on it or on its lack."""
    primes = [name for name in wanted if "'" in name]
    if not primes:
        return None, []
    names = _judged_names([str(name) for name in values.measure.unique()], primes[0])
    if not names:
        return None, [_NO_JUDGED.format(primes[0])]
    note = f"{', '.join(primes)}: unjudged documents are left out; {names[0]} is the share of the first that is judged."
    if by == "measure":
        return None, [note]
    judged = averages.grouped(averages.means(values, names, "collection") * (100 if percent else 1), whole)
    judged.columns = pd.MultiIndex.from_product([names, judged.columns])
    return judged, [note]


def _beside_each_other(frame: pd.DataFrame, judged: pd.DataFrame) -> tuple[pd.DataFrame, list]:
    return pd.concat([_with_level(frame), judged.reindex(frame.index)], axis=1), list(judged.columns)


def _with_level(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with two levels of columns."""
    if frame.columns.nlevels > 1:
        return frame
    return frame.set_axis(pd.MultiIndex.from_product([[""], frame.columns]), axis=1)


def _query_notes(values: pd.DataFrame, measures: Sequence[str]) -> list[str]:
    found = values[values.measure == measures[0]]
    numbers = imported.per_query(found).astype({"collection": str, "query_id": str})
    numbers = numbers.groupby("collection", sort=False).query_id.nunique()
    only = [str(name) for name in found.collection.unique() if str(name) not in numbers.index]
    parts = [f"Queries: {', '.join(f'{name} {count:,}' for name, count in numbers.items())}."] if len(numbers) else []
    shown = [*measures, *(_judged_names(list(values.measure.unique()), measures[0]) if "'" in measures[0] else [])]
    noted = _noted(values[values.measure.isin(shown)])
    said = [f"{', '.join(systems)} on {where}: {note}." for (where, note), systems in noted.items()]
    return [*parts, *([f"Of {', '.join(only)} only means were imported."] if only else []), *said]


def _noted(values: pd.DataFrame) -> dict[tuple[str, str], list[str]]:
    """Return which systems have which note on which collection, in the order of the values."""
    said: dict[tuple[str, str], list[str]] = {}
    if "note" in values:
        rows = values[["system", "collection", "note"]].drop_duplicates().dropna().astype("str")
        for row in rows[rows.note != ""].itertuples():
            said.setdefault((row.collection, row.note), []).append(row.system)
    return said


def _caption(measures: Sequence[str], values: pd.DataFrame, percent: bool) -> str:
    unit = "in percent" if percent else "from 0 to 1"
    where = str(values.collection.iloc[0]) if values.collection.nunique() == 1 else "each collection"
    return f"{', '.join(measures)} {unit}, mean over the queries of {where}; higher is better."
