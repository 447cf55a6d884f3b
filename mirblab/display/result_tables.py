"""result_tables: tables of results with means, marks and intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, check_known
from mirblab.core.wording import counted
from mirblab.data.runs import FOREIGN_MARK
from mirblab.display.table_formats import Table, column_name
from mirblab.evaluation.imported import mark_imported
from mirblab.evaluation.measures import gain_sign, is_judged_share, is_rank
from mirblab.evaluation.significance import decisive_p, values_per_query
from mirblab.retrieval import systems

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Published = Callable[[str, str], float | None]

_TOLERANCE = 0.05, 1.0  # distances to a printed number that are OK, and near
_EQUAL = 0.95  # of the queries with one value for all systems, from which no best system is marked
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
    """Return any table for display: floats with *digits*, counts with thousands separators.

    *formats* gives format specifications for columns ({"p": ".4f"}); *maths* names the columns whose cells, like the
    caption, hold LaTeX between dollars. The index becomes the first column.

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
    digits: int = 2,
    percent: bool = True,
    caption: str = "",
) -> Table:
    """Return means over queries, systems × collections, with averages, marks and the distance to a paper.

    *by* "collection": one measure, a column per collection, and unweighted averages per task (*tasks*: collection to
    task) and over all. *by* "measure": several measures of one collection, a column each. *groups* (collection to name,
    as from `catalogue.collection_groups`): a complete group has one column, the unweighted mean of its collections,
    which counts once in averages and has no significance marks. *published* gets its name. The best system is bold, the
    second underlined; those with equal printed values share the mark. Judged@k, which is no quality, has no marks, nor
    have columns in which nearly all queries have one value for all systems, as a note says, and averages over mostly
    such columns. Systems are shown by their labels; where the table is wider than a page, collections are rows
    (`Table.laid_out`). *comparison*: from `significance.compare` with a baseline, adds † (better) and ‡ (worse).
    *published(system, collection)*: the paper's number in printed units, or None; the distance is called OK, near or
    off (`distance_state`). *percent*: values are multiplied by 100. A prime measure is shown with Judged@k, or a note
    that it is missing. Imported values are marked § with a note of their origin.

    >>> rows = [("a", "q1", 0.9), ("a", "q2", 0.7), ("b", "q1", 0.4), ("b", "q2", 0.8)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> print(main_table(values, "RR").to_markdown().splitlines()[4])
    | a | **80.00** |
    """
    wanted, key = _checked_measures(values, measure, by), by
    whole, tasks, group_notes = (
        collection_groups(values, groups or {}, tasks or {}) if by == "collection" else ({}, {}, [])
    )
    factors = [printed_factor(name, percent) for name in wanted]
    means = average_groups(mean_table(values, wanted, key) * (factors if by == "measure" else factors[0]), whole)
    frame, n_averages = add_averages(means, tasks) if by == "collection" else (means, 0)
    judged, notes = _judged_share(values, wanted, percent, by, whole)
    lacking = _fewer_queries(values, wanted)
    notes = _query_notes(values, wanted, lacking) + group_notes + average_notes(means, n_averages) + notes
    if judged is not None:
        frame = pd.concat([_with_level(frame), judged.reindex(frame.index)], axis=1)
    equal = equal_queries(values, [name for name in wanted if not is_judged_share(name)])
    cells = {column: _cell(column, wanted[0], str(values.collection.iloc[0]), by) for column in frame.columns}
    unmarked = [column for column, (_, name) in cells.items() if is_judged_share(name)]
    notes += _equal_notes(equal, n_averages > 0)
    shown = Table(frame, caption or _caption(wanted, values, percent), notes, digits, is_grid=True)
    shown.labels = system_labels(map(str, frame.index))
    shown.notes += label_notes(shown.labels)
    unclear = [column for column in cells if cells[column] in equal or cells[column] in lacking]
    # Where all systems have the same values on most collections, a difference of averages says little.
    averages = [
        ("Average", label)
        for label, own in (_averaged(means.columns, tasks) if n_averages else {}).items()
        if 2 * sum((name, wanted[0]) in equal for name in own) > len(own)
    ]
    upwards = frame * [gain_sign(name) for _, name in cells.values()]
    shown.marks = best_and_second(upwards, digits, [*unmarked, *unclear, *averages])
    mask = imported_cells(values, wanted, key)
    if mask is not None:
        laid = add_averages(average_groups(mask, whole), tasks)[0] if by == "collection" else mask
        add_import_marks(shown, laid if judged is None else _with_level(laid), system_origins(values))
    if comparison is not None and len(comparison):
        _check_same_measure(comparison, wanted)
        add_significance_marks(shown, comparison)
    if published is not None and by == "collection":
        add_distance(shown, published, set(means.columns), unmarked)
    if (shown.marks.to_numpy() != "").any():
        shown.notes.append("Bold: the best system; underlined: the second. Systems that print the same share the mark.")
    return shown


def system_labels(names: Iterable[str]) -> dict[str, str]:
    """Return the label of each system of the registry among *names*; none where two have the same.

    >>> system_labels(["bm25", "bm25+minilm", "one of my own"])
    {'bm25': 'BM25', 'bm25+minilm': 'BM25 + MiniLM'}
    """
    labels = {}
    for name in names:
        with suppress(MirblabError, OSError):
            labels[name] = systems.system(name).label
    counts = Counter(labels.values())
    return {name: label for name, label in labels.items() if counts[label] == 1}


def label_notes(labels: Mapping[str, str]) -> list[str]:
    """Return a note on the names that figures and texts have in place of *labels* (name to label).

    None where they differ in capital letters and blanks only.

    >>> label_notes({"bm25": "BM25", "bm25+minilm": "BM25 + MiniLM", "chargrams": "character n-grams"})
    ['In figures and in the text, character n-grams is chargrams.']
    """
    differing = [
        f"{label} is {name}"
        for name, label in labels.items()
        if "".join(label.lower().split()) != "".join(name.lower().split())
    ]
    return [f"In figures and in the text, {', '.join(differing)}."] if differing else []


def equal_queries(values: pd.DataFrame, measures: Sequence[str]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return where at least 95 percent of the queries have one value for all systems: (collection, measure).

    With each, the number of these queries and of all; nothing for a single system.

    >>> values = pd.DataFrame({"system": ["a", "b"], "query_id": "q", "value": 0.1}).assign(measure="P'@10")
    >>> equal_queries(values.assign(collection="c"), ["P'@10"])
    {('c', "P'@10"): (1, 1)}
    """
    chosen = values_per_query(values[values.measure.isin(measures)])
    keys = [chosen[name].astype(str) for name in ("collection", "measure", "query_id")]
    spread = chosen.value.astype(float).groupby(keys, sort=False).agg(["min", "max"])
    is_equal = (spread["max"] - spread["min"] < 1e-9).groupby(level=[0, 1], sort=False)
    counts = is_equal.agg(["sum", "size"])
    n_systems = chosen.system.astype(str).groupby(keys[:2], sort=False).nunique()
    chosen_rows = counts[(n_systems.reindex(counts.index) > 1) & (counts["sum"] >= _EQUAL * counts["size"])]
    return {(str(key[0]), str(key[1])): (int(n), int(of)) for key, n, of in chosen_rows.itertuples()}


def _equal_notes(equal: Mapping[tuple[str, str], tuple[int, int]], averaged: bool) -> list[str]:
    places: dict[str, list[str]] = {}
    for (collection, measure), (n, of) in equal.items():
        part = "all" if n == of > 1 else f"{n:,} of"
        places.setdefault(measure, []).append(f"{part} {counted(of, 'query')} of {collection}")
    also = ", nor in an average over mostly such collections" if averaged else ""
    why = " Where few documents per query are judged, all systems may return the same judged ones, if in another order."
    return [
        f"All systems have the same {measure} on {', '.join(where)}, so no best one is marked there{also}."
        f"{why if chr(39) in measure else ''}"
        for measure, where in places.items()
    ]


def printed_factor(measure: str, percent: bool = True) -> int:
    """Return what a table multiplies the values of a measure with: 100 in percent, but 1 for ranks.

    >>> printed_factor("nDCG@10"), printed_factor("Rank")
    (100, 1)
    """
    return 100 if percent and not is_rank(measure) else 1


def _cell(column: object, measure: str, collection: str, by: str) -> tuple[str, str]:
    """Return the collection and the measure of a column of the main table."""
    name, above = column_name(column), str(column[0]) if isinstance(column, tuple) else ""
    return (collection, name) if by == "measure" else (name, above if is_judged_share(above) else measure)


def _judged_share(
    values: pd.DataFrame, wanted: Sequence[str], percent: bool, by: str, whole: Mapping[str, list[str]]
) -> tuple[pd.DataFrame | None, list[str]]:
    """Return Judged@k for a prime measure (None where it is a column already), and a note on it or on its absence."""
    primes = [name for name in wanted if "'" in name]
    if not primes:
        return None, []
    names = _judged_names([str(name) for name in values.measure.unique()], primes[0])
    if not names:
        return None, [_NO_JUDGED.format(primes[0])]
    left_out = [name for name in wanted if "'" in name or name.startswith("Bpref")]
    note = (
        f"{', '.join(left_out)}: unjudged documents are left out; {names[0]} is the share of the first documents that "
        "are judged."
    )
    if by == "measure":
        return None, [note]
    judged = average_groups(mean_table(values, names, "collection") * (100 if percent else 1), whole)
    judged.columns = pd.MultiIndex.from_product([names, judged.columns])
    return judged, [note]


def _checked_measures(values: pd.DataFrame, measure: str | Sequence[str], by: str) -> list[str]:
    check_known("layout", by, ["collection", "measure"])
    wanted = [measure] if isinstance(measure, str) else list(measure)
    known = [str(name) for name in values.measure.unique()]
    check_known("measure", wanted, known)
    if by == "collection" and len(wanted) != 1:
        raise MirblabError(f"a table by collection shows one measure, found {len(wanted)}; use by='measure'")
    if by == "measure" and values.collection.nunique() != 1:
        raise MirblabError(f"a table by measure shows one collection, found {values.collection.nunique()}")
    primes = [name for name in wanted if "'" in name]
    if by == "measure" and primes and not any(name.startswith("Judged") for name in wanted):
        wanted += _judged_names(known, primes[0])
    return wanted


def _with_level(frame: pd.DataFrame) -> pd.DataFrame:
    if frame.columns.nlevels > 1:
        return frame
    return frame.set_axis(pd.MultiIndex.from_product([[""], frame.columns]), axis=1)


def _check_same_measure(comparison: pd.DataFrame, wanted: Sequence[str]) -> None:
    others = sorted(set(comparison.measure.astype(str)) - set(wanted))
    if others:
        raise MirblabError(f"the comparison is of {', '.join(others)}, the table of {', '.join(wanted)}")


def interval_table(
    values: pd.DataFrame, intervals: pd.DataFrame, *, digits: int = 2, percent: bool = True, caption: str = ""
) -> Table:
    """Return each system's mean with its [low, high], systems × collections.

    *intervals* is from `significance.bootstrap_intervals`, one measure; means are computed from *values*. Imported
    means have no interval. Raises MirblabError for intervals of several measures, or without a system of *values*.

    >>> from mirblab.evaluation.significance import bootstrap_intervals
    >>> rows = [("a", "q1", 1.0), ("a", "q2", 1.0)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> interval_table(values, bootstrap_intervals(values)).frame.loc["a"].tolist()
    [100.0]
    """
    names = [str(name) for name in intervals.measure.unique()]
    if len(names) != 1:
        raise MirblabError(f"intervals of one measure are needed, found {', '.join(names) or 'none'}")
    factor = printed_factor(names[0], percent)
    frame = mean_table(values, names, "collection") * factor
    ends = [
        (intervals.pivot(index="system", columns="collection", values=end) * factor).reindex_like(frame)
        for end in ("low", "high")
    ]
    mask = imported_cells(values, names, "collection")
    lacking = frame.notna() & ends[0].isna()
    if (lacking if mask is None else lacking & (mask.fillna(0.0) == 0)).to_numpy().any():
        raise MirblabError("the intervals lack a system or collection of the values; compute them from the same table")
    level = f"{100 * intervals.attrs.get('level', 0.95):g} %"
    notes = [
        *_query_notes(values, names, _fewer_queries(values, names)),
        f"In brackets: {level} bootstrap interval of the mean over resampled queries.",
    ]
    shown = Table(frame, caption or _caption(names, values, percent), notes, digits, is_grid=True)
    shown.labels = system_labels(map(str, frame.index))
    shown.notes += label_notes(shown.labels)
    shown.add_intervals(*ends)
    if mask is not None:
        add_import_marks(shown, mask, system_origins(values))
    return shown


def _query_notes(
    values: pd.DataFrame, measures: Sequence[str], lacking: Mapping[tuple[str, str], list[str]]
) -> list[str]:
    """Return notes of the queries and the systems of a table; *lacking* is that of `_fewer_queries`."""
    chosen = values[values.measure == measures[0]]
    per_query = values_per_query(chosen).astype({"collection": str, "query_id": str})
    counts = per_query.groupby("collection", sort=False).query_id.nunique()
    only = [str(name) for name in chosen.collection.unique() if str(name) not in counts.index]
    fewer = [note for notes in lacking.values() for note in notes]
    parts = [f"Queries: {', '.join(f'{name} {count:,}' for name, count in counts.items())}."] if len(counts) else []
    shown = [*measures, *(_judged_names(list(values.measure.unique()), measures[0]) if "'" in measures[0] else [])]
    system_notes = run_notes(values[values.measure.isin(shown)])
    return [*parts, *([f"Of {', '.join(only)} only means were imported."] if only else []), *fewer, *system_notes]


def _fewer_queries(values: pd.DataFrame, measures: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """Return a note for each system with fewer queries than the others, by collection and measure.

    MirblabError for a second value of a query, and for one that is not finite.
    """
    keys = ["system", "collection", "measure", "query_id"]
    per_query = values_per_query(values[values.measure.isin(measures)])
    repeated = per_query[per_query.duplicated(keys)]
    if len(repeated):
        row = repeated.iloc[0]
        raise MirblabError(f"{row.system} has two values of {row.measure} for query {row.query_id}; keep one")
    bad = per_query[~np.isfinite(per_query.value.to_numpy(dtype=float))]
    if len(bad):
        row = bad.iloc[0]
        raise MirblabError(
            f"{row.system} has no finite value of {row.measure} for query {row.query_id} "
            f"({counted(len(bad), 'such cell')}); every system needs every query, 0 where it returned nothing"
        )
    notes: dict[tuple[str, str], list[str]] = {}
    for (collection, measure), part in per_query.groupby(keys[1:3], sort=False, observed=True):
        n_queries, of = part.query_id.nunique(), f" of {measure}" if len(measures) > 1 else ""
        for system, count in part.groupby("system", sort=False, observed=True).size().items():
            if count < n_queries:
                known = f"{count:,} of {counted(n_queries, 'query has', 'queries have')}"
                note = f"{system} on {collection}: {known} a value{of}."
                notes.setdefault((str(collection), str(measure)), []).append(note)
    return notes


def run_notes(values: pd.DataFrame) -> list[str]:
    """Return the notes of *values*, each with its collection, and with its systems where it is not of all.

    >>> values = pd.DataFrame({"system": ["a", "b"], "collection": "c", "note": ["1 of 9 queries is missing", ""]})
    >>> run_notes(values), run_notes(values[:1])
    (['a on c: 1 of 9 queries is missing.'], ['a on c: 1 of 9 queries is missing.'])
    """
    noted: dict[tuple[str, str], list[str]] = {}
    if "note" not in values:
        return []
    rows = values[["system", "collection", "note"]].drop_duplicates().astype({"system": "str", "collection": "str"})
    every = rows.groupby("collection", sort=False).system.agg(set)
    for system, collection, texts in rows[rows.note.fillna("") != ""].to_numpy().tolist():
        for text in texts.split("; "):
            names = noted.setdefault((collection, text), [])
            names += [system] if system not in names else []
    return [
        f"{where}: {text}." if len(every[where]) == len(names) > 1 else f"{', '.join(names)} on {where}: {text}."
        for (where, text), names in noted.items()
    ]


def _judged_names(known: Sequence[str], prime: str) -> list[str]:
    """Return one Judged@k to show with a prime measure: the one with its k, else the first."""
    judged = [name for name in known if name.startswith("Judged")]
    same = [name for name in judged if name.partition("@")[2] == prime.partition("@")[2]]
    return (same or judged)[:1]


def _caption(measures: Sequence[str], values: pd.DataFrame, percent: bool) -> str:
    unit = "in percent" if percent else "from 0 to 1"
    where = str(values.collection.iloc[0]) if values.collection.nunique() == 1 else "each collection"
    ranks, others = ([name for name in measures if is_rank(name) == wanted] for wanted in (True, False))
    qualities = "" if all(map(is_judged_share, others)) else "; higher is better"
    shares = dict.fromkeys("Judged@k" if name.startswith("Judged") else "RBP's residual" for name in others
                           if is_judged_share(name))  # fmt: skip
    but = f", except of {' and '.join(shares)}, which is no quality" if qualities and shares else ""
    lower = "; a lower Rank is better" if ranks else ""
    named = [*([f"{', '.join(others)} {unit}"] if others else []), *(f"{name} from 1" for name in ranks)]
    return f"{', '.join(named)}, mean over the queries of {where}{qualities}{but}{lower}."


def mark_table_origins(shown: Table, others: Mapping[str, str]) -> Table:
    """Return the table with the systems of *others* marked, except in the CSV, and a note that names their makers."""
    labels = [part for label in (*shown.frame.index, *shown.frame.columns)
              for part in (label if isinstance(label, tuple) else (label,))]  # fmt: skip
    cells = [cell for cell in shown.frame.to_numpy().flat if isinstance(cell, str) and cell in others]
    origins = origin_note([shown.caption, *map(str, labels), *cells], others)
    if not origins or FOREIGN_MARK in "".join(map(str, shown.signs.to_numpy().flat)):
        return shown
    caption = mark_imported(shown.caption, others)
    return replace(shown, caption=caption, notes=[*shown.notes, origins], others=frozenset(others))


def mark_figure_origins(figure: Figure, caption: str, alt: str, others: Mapping[str, str]) -> tuple[str, str]:
    """Mark imported systems in all texts of a figure; return its caption, with their makers, and its alt text."""
    from matplotlib.text import Text
    from matplotlib.ticker import FuncFormatter

    texts = [caption, *(text.get_text() for text in figure.findobj(Text))]
    for text in figure.findobj(Text):
        text.set_text(mark_imported(text.get_text(), others))
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        labels = [label.get_text() for label in axis.get_majorticklabels()]
        if any(
            mark_imported(label, others) != label for label in labels
        ):  # a label of a tick is made anew when it is drawn
            axis.set_major_formatter(FuncFormatter(_signing(axis.get_major_formatter(), others)))
            texts += labels
    origins = origin_note(texts, others)
    return (f"{mark_imported(caption, others)} {origins}", mark_imported(alt, others)) if origins else (caption, alt)


def _signing(formatter: Callable[..., str], others: Mapping[str, str]) -> Callable[..., str]:
    return lambda value, place=None: mark_imported(formatter(value, place), others)


def mean_table(values: pd.DataFrame, measures: Sequence[str], key: str) -> pd.DataFrame:
    """Return the means over queries, systems × *key*, both in the order of their first appearance."""
    chosen = values[values.measure.isin(measures)]
    long = chosen.assign(system=chosen.system.astype(str), **{key: chosen[key].astype(str)})
    means = long.groupby(["system", key], sort=False).value.mean().unstack(key)
    columns = list(measures) if key == "measure" else list(dict.fromkeys(long[key]))
    return means.loc[list(dict.fromkeys(long.system)), columns].rename_axis(columns=None)


def collection_groups(
    values: pd.DataFrame, groups: Mapping[str, str], tasks: Mapping[str, str]
) -> tuple[dict[str, list[str]], dict[str, str], list[str]]:
    """Return the collections of each complete group, *tasks* with the groups added, and notes on the groups."""
    here, whole, group_tasks, notes = list(values.collection.astype(str).unique()), {}, dict(tasks), []
    for name in dict.fromkeys(groups[collection] for collection in here if collection in groups):
        members = [collection for collection, group in groups.items() if group == name]
        missing = [member for member in members if member not in here]
        kinds = sorted({tasks.get(member, "") for member in members if member in here})
        if name in here:
            raise MirblabError(f"the group '{name}' has the name of a collection of the values; rename one of them")
        if len(kinds) > 1:
            raise MirblabError(f"the group '{name}' has collections of several tasks: {', '.join(kinds)}; it needs one")
        if missing:
            notes.append(f"{name} is not complete: {', '.join(missing)} is missing, so its parts stand apart.")
            continue
        whole[name], group_tasks[name] = members, kinds[0]
        notes.append(f"{name}: unweighted mean of {', '.join(members)}; tests are made on these, not on their mean.")
    return whole, group_tasks, notes


def average_groups(means: pd.DataFrame, whole: Mapping[str, list[str]]) -> pd.DataFrame:
    """Return the means with one column per group, at the position of its first collection."""
    name_of = {member: name for name, members in whole.items() for member in members}
    columns = dict.fromkeys(name_of.get(str(column), str(column)) for column in means)
    shown = {name: means[whole[name]].mean(axis=1, skipna=False) if name in whole else means[name] for name in columns}
    return pd.DataFrame(shown, index=means.index) if whole else means


def add_averages(means: pd.DataFrame, tasks: Mapping[str, str]) -> tuple[pd.DataFrame, int]:
    """Return the means by task with the averages of all and of tasks with several collections, and their number."""
    if means.shape[1] < 2:
        return means, 0
    parts = {(task, name): means[name] for task, names in _by_task(means.columns, tasks).items() for name in names}
    averages = {
        ("Average", label): means[names].mean(axis=1, skipna=False)
        for label, names in _averaged(means.columns, tasks).items()
    }
    return pd.DataFrame(parts | averages, index=means.index), len(averages)


def _averaged(columns: pd.Index, tasks: Mapping[str, str]) -> dict[str, list[str]]:
    """Return each average's name with the collections that it is over: those of a task with several, and all."""
    groups = _by_task(columns, tasks)
    several = {task: names for task, names in groups.items() if task and len(names) > 1 and len(groups) > 1}
    found = {f"{task} ({len(names)})": names for task, names in several.items()}
    return found | {f"all ({len(columns)})": list(map(str, columns))}


def _by_task(columns: pd.Index, tasks: Mapping[str, str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name in map(str, columns):
        groups.setdefault(tasks.get(name, ""), []).append(name)
    return groups


def average_notes(means: pd.DataFrame, n_averages: int) -> list[str]:
    """Return a note on averages if there are any."""
    if not n_averages:
        return []
    missing = " A system without a value on a collection has no average." if means.isna().to_numpy().any() else ""
    return ["Averages are unweighted means of as many collections as stand in parentheses." + missing]


def distance_state(distance: float) -> str:
    """Return "OK" for a distance of at most 0.05, in printed units, "near" for one of at most 1, else "off".

    >>> [distance_state(distance) for distance in (-0.04, 0.3, -2.0)]
    ['OK', 'near', 'off']
    """
    size = round(abs(distance), 9)
    return "OK" if size <= _TOLERANCE[0] else "near" if size <= _TOLERANCE[1] else "off"


def best_and_second(frame: pd.DataFrame, digits: int, unmarked: Sequence) -> pd.DataFrame:
    """Return "best" and "second" for each column, by the numbers as printed; no marks for a single system."""
    marks = pd.DataFrame("", index=frame.index, columns=frame.columns)
    if len(frame) < 2:
        return marks
    printed = frame.map(lambda number: float(f"{number:.{digits}f}")).to_numpy()
    for column, name in enumerate(frame.columns):
        if name in unmarked:
            continue
        numbers = printed[:, column]
        for mark, number in zip(("best", "second"), np.unique(numbers[~np.isnan(numbers)])[::-1], strict=False):
            marks.iloc[numbers == number, column] = mark
    return marks


def add_significance_marks(shown: Table, comparison: pd.DataFrame) -> None:
    """Mark systems that differ from the only baseline of *comparison*: † better, ‡ worse; and add a note."""
    baselines = comparison.system_b.unique()
    if len(baselines) != 1:
        raise MirblabError(
            f"marks need a comparison with one baseline, found {len(baselines)}; call compare(..., baseline=...)"
        )
    signs = pd.DataFrame("", index=shown.frame.index, columns=shown.frame.columns)
    columns = {column_name(name): name for name in reversed(list(signs.columns))}
    comparison = comparison[[not is_judged_share(str(name)) for name in comparison.measure]]
    if comparison.empty:
        return
    for row in comparison[comparison.significant.astype(bool)].to_dict("records"):
        column = columns.get(str(row["collection"]), columns.get(str(row["measure"])))
        if row["system_a"] in signs.index and column is not None:
            is_better = (row["difference"] > 0) != is_rank(str(row["measure"]))
            signs.loc[row["system_a"], [column]] = "†" if is_better else "‡"
    shown.signs = shown.signs + signs if shown.signs.size else signs
    done, measures = comparison.attrs, ", ".join(dict.fromkeys(comparison.measure.astype(str)))
    column, corrected = decisive_p(comparison)
    family = "" if column == "p" else f"; family: {_families(comparison)}"
    shown.notes.append(
        f"† better, ‡ worse than {shown.labels.get(baselines[0], baselines[0])} in {measures}: paired "
        f"{done.get('test', 'permutation')} test over queries, p at most {done.get('alpha', 0.05)} {corrected}{family}."
    )


def _families(comparison: pd.DataFrame) -> str:
    sizes = comparison.groupby("family", sort=False).size()
    if len(sizes) > 2 and sizes.nunique() == 1:
        return f"the {sizes.iloc[0]} comparisons of each collection"
    return ", ".join(map(str, sizes.index))


def add_distance(shown: Table, published: Published, collections: set[str], unmarked: Sequence) -> None:
    """Write the distance to the paper's numbers beside those of *shown*, with the notes of *published*."""
    shown.notes += getattr(published, "notes", [])
    frame = shown.frame
    paper = pd.DataFrame(np.nan, index=frame.index, columns=frame.columns)
    texts, states = paper.astype(object).fillna(""), paper.astype(object)
    for column, name in enumerate(frame.columns):
        is_collection = column_name(name) in collections and name not in unmarked
        for row, system in enumerate(frame.index if is_collection else []):
            number = published(str(system), column_name(name))
            value = float(frame.iloc[:, column].iloc[row])
            if number is None or np.isnan(value):
                continue
            state = distance_state(value - number)
            paper.iat[row, column], states.iat[row, column] = number, state
            texts.iat[row, column] = f"({_signed(value - number, shown.digits)} {state})"
    if paper.isna().to_numpy().all():
        return
    shown.beside = texts
    shown.extra = {"paper": paper, "distance": (frame - paper).astype(float), "state": states}
    shown.notes.append(
        f"In parentheses: distance to the paper's number; OK up to {_TOLERANCE[0]:g}, near up to {_TOLERANCE[1]:g}, "
        "else off."
    )


def _signed(number: float, digits: int) -> str:
    """Return a number with its sign; one that is printed as zero has none.

    >>> _signed(-0.004, 2), _signed(-1.5, 2), _signed(0.25, 1)
    ('0.00', '−1.50', '+0.2')
    """
    text = f"{number:+.{digits}f}".replace("-", "−")
    return text if text.strip("+−0.") else text[1:]


def imported_cells(values: pd.DataFrame, measures: Sequence[str], key: str) -> pd.DataFrame | None:
    """Return 1 for each cell, systems × *key*, that has imported values, else 0; None if no cell has any.

    Imported values have an `origin` or no query. Raises MirblabError for an imported mean beside other values of the
    same system, since their mean is undefined.
    """
    chosen = values[values.measure.isin(measures)]
    is_mean = chosen.query_id == ""
    flags = is_mean | (chosen.origin.fillna("") != "" if "origin" in chosen else False)
    if not flags.any():
        return None
    cells = [chosen[name].astype(str) for name in ("system", "collection", "measure")]
    mixed = pd.DataFrame({"means": is_mean, "rows": 1}).groupby(cells).sum()
    mixed = mixed[(mixed.means > 0) & (mixed.rows > 1)]
    if len(mixed):
        system, collection, measure = mixed.index[0]
        raise MirblabError(
            f"'{system}' has an imported mean of {measure} on {collection} and other values beside it; import it under "
            "another system's name, or leave one of them out"
        )
    return mean_table(chosen.assign(value=flags.astype(np.float64)), measures, key)


def add_import_marks(shown: Table, mask: pd.DataFrame, origins: dict[str, str]) -> None:
    """Mark with § the cells of *shown* where *mask* is positive, and add a note of each system's origin."""
    cells = mask.reindex(index=shown.frame.index, columns=shown.frame.columns).fillna(0.0) > 0
    signs = np.where(cells, FOREIGN_MARK, "")
    shown.signs = pd.DataFrame(signs, index=shown.frame.index, columns=shown.frame.columns)
    named = [f"{system}: {origins[system]}" for system in shown.frame.index[cells.any(axis=1)] if origins.get(system)]
    shown.notes.append(
        f"{FOREIGN_MARK} imported: a run or a value of others{'; origin: ' if named else ''}{'; '.join(named)}. Where "
        "only a mean was imported, there are no values per query, so that it is in no test."
    )


def origin_note(texts: Sequence[str], others: Mapping[str, str]) -> str:
    """Return a note with the origins of those systems of *others* that *texts* name, "" for none.

    >>> origin_note(["theirs", "bm25"], {"theirs": "A. Author"})
    '§ not made here: theirs: A. Author.'
    """
    named = [f"{name}: {origin}" for name, origin in others.items()
             if any(mark_imported(text, {name: ""}) != text for text in texts)]  # fmt: skip
    return f"{FOREIGN_MARK} not made here: {'; '.join(named)}." if named else ""


def system_origins(values: pd.DataFrame) -> dict[str, str]:
    """Return the origins of each imported system, joined by "and".

    >>> system_origins(pd.DataFrame({"system": ["a", "b"], "origin": ["MTEB", None]}))
    {'a': 'MTEB'}
    """
    if "origin" not in values:
        return {}
    origins = values[["system", "origin"]].astype("str").where(values.origin.notna()).dropna().drop_duplicates()
    origins = origins[origins.origin != ""]
    joined = origins.groupby("system", sort=False).origin.agg(" and ".join)
    return {str(system): origin for system, origin in joined.items()}
