"""diff_view: two runs compared, as tables for the terminal, and query by query as a CSV."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from mirblab import imported, measures, moves, paths, shelf, significance, terminal
from mirblab.collection import Collection
from mirblab.errors import MirblabError
from mirblab.excerpts import excerpts
from mirblab.signs import signed

_LONGEST = 60  # characters of a text in a cell
_TEXTS = ("", "measure", "query", "document", "text", "relevant are", "relevance")
_EVERY = 40  # documents of the query that changed most


@dataclass
class Difference:
    """What is printed: the two systems, the collection, one table per question, and who made what was not made here."""

    names: tuple[str, str]
    collection: Collection
    k: int
    n_queries: int
    values: pd.DataFrame
    tests: pd.DataFrame
    alike: pd.DataFrame
    moved: pd.DataFrame
    fresh: pd.DataFrame
    readings: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    others: dict[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> tuple[str, str]:
        """Return the names of the systems as they are shown: marked where they were not made here."""
        return signed(self.names[0], self.others), signed(self.names[1], self.others)

    @property
    def measure(self) -> str:
        """Return the measure by which queries are ranked: the first that was asked for."""
        return str(self.values.measure.iloc[0])


def compared(
    first: str, second: str, name: str, wanted: Sequence[str], *, k: int = 10, n_queries: int = 5, p: float = 0.9,
    depth: int = 1000, split: str = "test", seed: int = 0,
) -> Difference:  # fmt: skip
    """Return two runs compared, each a system's name or a file; MirblabError for what cannot be compared.

    >>> found = compared("bm25", "bm25-okapi", "mini-qa", ["RR"])
    >>> found.names, found.tests.measure.tolist()
    (('bm25', 'bm25-okapi'), ['RR'])
    """
    if not wanted:
        raise MirblabError("no measure to compare by; name one, for example --measures nDCG@10")
    parsed, collection = [measures.parse(text) for text in wanted], shelf.load(name, split)
    if not len(collection.query_ids):
        raise MirblabError(f"{collection.name} has no query in the split '{split}'; give another --split")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        pair = moves.pair(first, second, collection, depth)
        values = pd.concat([measures.evaluate(run, collection, parsed) for run in pair], ignore_index=True)
    names = tuple(str(run.attrs["system"]) for run in pair)
    tests = [significance.compare(values, str(one), baseline=names[0], seed=seed) for one in parsed]
    moved = moves.moved(*pair, collection, k)
    others = {name: str(run.attrs["origin"]) for name, run in zip(names, pair, strict=True) if run.attrs.get("origin")}
    noted = values.note.dropna() if "note" in values else []
    said = {imported.note(names, others), *(str(one.message) for one in told), *noted}
    return Difference(
        names, collection, k, n_queries, values, pd.concat(tests, ignore_index=True),
        moves.likeness(*pair, p=p, k=k), moved, moves.fresh(moved, k, collection.card.relevant_from),
        moves.readings(*pair, collection, wanted, k=k, seed=seed), sorted(filter(None, said)), others,
    )  # fmt: skip


def show(found: Difference, console: Console | None = None) -> None:
    """Print the comparison; *console* None: standard output."""
    console = console or terminal.console()
    for note in found.notes:
        console.print(f"note: {note}", soft_wrap=True)
    console.print(_means(found))
    console.print(_likeness(found))
    console.print(_queries(found))
    changed = _most_changed(found)
    if changed:
        console.print(_documents(found, changed))
    for line in _new_ones(found):
        console.print(line, soft_wrap=True)
    if found.fresh[["entered_unjudged", "left_unjudged"]].to_numpy().sum():
        console.print(_readings(found))


def write(found: Difference, path: Path) -> Path:
    """Write one row per query: both values and the difference of each measure, likeness, what entered and left."""
    table = pd.DataFrame(index=pd.Index(found.collection.query_ids, name="query_id"))
    for measure in found.values.measure.unique():
        pair = significance.wide(found.values, measure)[list(found.names)]
        for name in found.names:
            table[f"{measure} of {name}"] = pair[name]
        table[f"difference in {measure}"] = pair[found.names[1]] - pair[found.names[0]]
    for part in (found.alike, found.fresh):
        table = table.join(part.set_index("query_id"))
    paths.write_text(paths.given(path), table.round(10).to_csv(lineterminator="\n"))
    return path


def _means(found: Difference) -> Table:
    first, second = found.names
    title = f"{found.collection.name}, {len(found.collection.query_ids):,} queries: means, and is it more than luck"
    shown = _table(title, "measure", *found.shown, "difference", "95 % interval", "p")
    for row in found.tests.itertuples():
        pair = significance.wide(found.values, row.measure)[[first, second]].mean()
        shown.add_row(row.measure, *(f"{mean:.4f}" for mean in pair), f"{row.difference:+.4f}", _interval(row),
                      _chance(row.p))  # fmt: skip
    shown.caption = "paired permutation test over queries for each measure; p is not corrected for their number"
    return shown


def _likeness(found: Difference) -> Table:
    shown = _table("how alike the rankings are", "", "mean", "least", "5 %", "median", "95 %", "most")
    named = {"rbo": "rank-biased overlap", "overlap": f"overlap of the first {found.k}", "tau": "Kendall's tau"}
    for column, label in named.items():
        spread = found.alike[column].quantile([0, 0.05, 0.5, 0.95, 1])
        shown.add_row(label, *(f"{number:.3f}" for number in (found.alike[column].mean(), *spread)))
    return shown


def _queries(found: Difference) -> Table:
    table = moves.extremes(found.values, found.measure, *found.names, n_queries=found.n_queries)
    texts = found.collection.query_texts
    shown = _table(f"queries that changed most in {found.measure}", "query", *found.shown, "difference", "text")
    places = found.collection.query_ids.get_indexer(table.query_id)
    for row, text in zip(table.itertuples(index=False), _short(found, [texts[at] for at in places]), strict=True):
        shown.add_row(row.query_id, f"{row[1]:.4f}", f"{row[2]:.4f}", f"{row.difference:+.4f}", text)
    shown.caption = None if len(table) else "none: the value is the same for every query"
    return shown


def _most_changed(found: Difference) -> str:
    """Return the query whose value changed most, or "" when none did."""
    table = moves.extremes(found.values, found.measure, *found.names, n_queries=1)
    return "" if table.empty else str(table.loc[table.difference.abs().idxmax(), "query_id"])


def _documents(found: Difference, query_id: str) -> Table:
    table = found.moved[found.moved.query_id == query_id].head(_EVERY)
    texts = [found.collection.texts[at] for at in found.collection.doc_ids.get_indexer(table.doc_id)]
    title = f"documents of {query_id}, the query that changed most: rank before and after"
    shown = _table(title, "document", *found.shown, "relevance", "text")
    for row, text in zip(table.itertuples(index=False), _short(found, texts), strict=True):
        ranks = ("–" if pd.isna(rank) else str(rank) for rank in (row.rank_a, row.rank_b))
        shown.add_row(row.doc_id, *ranks, "unjudged" if pd.isna(row.relevance) else str(row.relevance), text)
    return shown


def _new_ones(found: Difference) -> list[str]:
    total = found.fresh.drop(columns="query_id").sum()
    first, second = found.shown
    return [
        f"{total[name]:,} documents are in the first {found.k} of {one} and not of {other}: "
        f"{total[f'{name}_relevant']:,} relevant, {total[f'{name}_unjudged']:,} unjudged"
        for name, one, other in (("entered", second, first), ("left", first, second))
    ]


def _readings(found: Difference) -> Table:
    title = "does it hang on what nobody judged? unjudged documents of the first ranks are ..."
    shown = _table(title, "relevant are", "measure", *found.shown, "difference", "95 % interval", "p")
    names = dict(
        zip(moves.READINGS, ("none of them", "all of them", *(f"only {one}'s" for one in found.shown)), strict=True)
    )
    for row in found.readings.itertuples():
        shown.add_row(names[row.reading], row.measure, f"{row.first:.4f}", f"{row.second:.4f}",
                      f"{row.difference:+.4f}", _interval(row), _chance(row.p))  # fmt: skip
    return shown


def _table(title: str, *columns: str) -> Table:
    shown = Table(title=title, title_justify="left", caption_justify="left", title_style="bold")
    for name in columns:
        is_text = name in _TEXTS
        shown.add_column(
            name,
            justify="left" if is_text else "right",
            overflow="fold",
            no_wrap=not is_text or name == "measure",
        )
    return shown


def _short(found: Difference, texts: Sequence[str]) -> list[str]:
    return excerpts(texts, found.collection.card.task, _LONGEST)


def _interval(row: Any) -> str:
    return f"{row.low:+.3f} to {row.high:+.3f}"


def _chance(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else "< 0.0001"
