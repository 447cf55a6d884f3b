"""compare_runs: two runs of a collection compared: means, rankings, queries, documents and unjudged documents."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from mirblab.core import atomic_files, paths, terminal
from mirblab.core.errors import MirblabError, check_known, check_positive
from mirblab.core.wording import counted, first_names
from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.data.runs import order_run
from mirblab.display import result_tables
from mirblab.display.text import excerpts
from mirblab.evaluation import arqmath, imported, measures, significance
from mirblab.evaluation.imported import mark_imported
from mirblab.retrieval.systems import search_depth, system
from mirblab.sources import catalogue

_ENDINGS = (".trec", ".run", ".res", ".txt", ".tsv", ".csv", ".gz", ".out", ".eval")
_MOST_BYTES = 4 << 30


class RunWarning(UserWarning):
    """Some rows of a run file name a query or document that the collection lacks; the message says how many."""


ASSUMPTIONS = {
    "not relevant": "no unjudged document is relevant (pessimistic, as plain measures assume)",
    "all relevant": "all of them are (optimistic)",
    "only the first run's": "those that only the first run has in its first k are relevant: its best case",
    "only the second run's": "those that only the second run has in its first k are relevant: its best case",
}

_LONGEST = 60  # characters of a text in a cell
_TEXTS = ("", "measure", "query", "document", "text", "relevance")
_MOST_DOCUMENTS = 40  # of the query that changed most


@dataclass
class RunComparison:
    """The comparison of two runs, one table per question; `others` has the origin of each system run by others."""

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
        """Return the names of the systems for display, marked where others have run them."""
        return mark_imported(self.names[0], self.others), mark_imported(self.names[1], self.others)

    @property
    def measure(self) -> str:
        """Return the measure by which queries are sorted: the first of those requested."""
        return str(self.values.measure.iloc[0])


def compare_runs(
    first: str, second: str, name: str, wanted: Sequence[str], *, k: int = 10, n_queries: int = 5, p: float = 0.9,
    depth: int | None = None, split: str = "test", seed: int = 0,
) -> RunComparison:  # fmt: skip
    """Return the comparison of two runs, each a system's name or a run file, cut to *depth*, None: 1,000 documents, or
    the deepest cutoff of the measures; MirblabError if they do not match.
    """
    check_positive(n_queries=n_queries)
    parsed, collection = measures.parse_measures(wanted), catalogue.load_with_queries(name, split)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before, after = paired_runs(first, second, collection, search_depth(parsed) if depth is None else depth)
        values = pd.concat([measures.evaluate(run, collection, parsed) for run in (before, after)], ignore_index=True)
    names = str(before.attrs["system"]), str(after.attrs["system"])
    shown = [str(measure) for measure in parsed]
    tests = [significance.compare(values, name, baseline=names[0], seed=seed) for name in shown]
    moved = moved_documents(before, after, collection, k)
    others = {str(run.attrs["system"]): str(run.attrs["origin"]) for run in (before, after) if run.attrs.get("origin")}
    warned = {str(warning.message) for warning in caught if not issubclass(warning.category, measures.QueryWarning)}
    messages = {result_tables.origin_note(names, others), *warned}
    messages |= set(result_tables.run_notes(values))
    return RunComparison(
        names, collection, k, n_queries, values, pd.concat(tests, ignore_index=True),
        run_similarity(before, after, p=p, k=k), moved, changed_documents(moved, k, collection.card.relevant_from),
        means_by_assumption(before, after, collection, shown, k=k, seed=seed), sorted(filter(None, messages)), others,
    )  # fmt: skip


def print_comparison(comparison: RunComparison, console: Console | None = None) -> None:
    """Print the comparison, the means last, where a terminal shows them; *console* None: standard output."""
    console = console or terminal.console()
    for note in comparison.notes:
        console.print(f"note: {note}", soft_wrap=True)
    console.print(_similarity_table(comparison))
    console.print(_queries_table(comparison))
    changed = _most_changed(comparison)
    if changed:
        console.print(_documents_table(comparison, changed))
    for line in _changed_document_lines(comparison):
        console.print(line, soft_wrap=True)
    if comparison.fresh[["entered_unjudged", "left_unjudged"]].to_numpy().sum():
        for shown in _assumptions_tables(comparison):
            console.print(shown)
    console.print(_means_table(comparison))


def _most_changed(comparison: RunComparison) -> str:
    table = extreme_queries(comparison.values, comparison.measure, *comparison.names, n_queries=1)
    return "" if table.empty else str(table.query_id.iloc[table.difference.abs().argmax()])


def _changed_document_lines(comparison: RunComparison) -> list[str]:
    total = comparison.fresh.drop(columns="query_id").sum()
    first, second = comparison.shown
    return [
        f"{counted(total[name], 'document is', 'documents are')} in the first {comparison.k} of {system} and not of "
        f"{other}: "
        f"{total[f'{name}_relevant']:,} relevant, {total[f'{name}_unjudged']:,} unjudged"
        for name, system, other in (("entered", second, first), ("left", first, second))
    ]


def _means_table(comparison: RunComparison) -> Table:
    first, second = comparison.names
    title = (
        f"{comparison.collection.name}, {counted(len(comparison.collection.query_ids), 'query')}: means and "
        "significance tests"
    )
    shown = _console_table(title, "measure", *comparison.shown, "difference", "95 % interval", "p")
    for row in comparison.tests.to_dict("records"):
        means = significance.value_matrix(comparison.values, row["measure"])[[first, second]].mean()
        shown.add_row(row["measure"], *(f"{mean:.4f}" for mean in means), *_difference_cells(row))
    shown.caption = "paired permutation test over queries for each measure; p is not corrected for their number"
    return shown


def _console_table(title: str, *columns: str) -> Table:
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


def _difference_cells(row: Mapping[Hashable, Any]) -> tuple[str, str, str]:
    p = f"{row['p']:.4f}" if row["p"] >= 0.0001 else "< 0.0001"
    return f"{row['difference']:+z.4f}", f"{row['low']:+z.3f} to {row['high']:+z.3f}", p


def _similarity_table(comparison: RunComparison) -> Table:
    shown = _console_table("similarity of the rankings", "", "mean", "least", "5 %", "median", "95 %", "most")
    named = {"rbo": "rank-biased overlap", "overlap": f"overlap of the first {comparison.k}", "tau": "Kendall's tau"}
    for column, label in named.items():
        spread = comparison.alike[column].quantile([0, 0.05, 0.5, 0.95, 1])
        shown.add_row(label, *(f"{number:.3f}" for number in (comparison.alike[column].mean(), *spread)))
    return shown


def _queries_table(comparison: RunComparison) -> Table:
    table = extreme_queries(comparison.values, comparison.measure, *comparison.names, n_queries=comparison.n_queries)
    texts = comparison.collection.query_texts
    shown = _console_table(
        f"queries that changed most in {comparison.measure}", "query", *comparison.shown, "difference", "text"
    )
    places = comparison.collection.query_ids.get_indexer(pd.Index(table.query_id))
    shown_texts = _excerpts(comparison, [texts[place] for place in places])
    for (query_id, *values), text in zip(table.values.tolist(), shown_texts, strict=True):
        shown.add_row(query_id, f"{values[0]:.4f}", f"{values[1]:.4f}", f"{values[2]:+z.4f}", text)
    shown.caption = None if len(table) else "none: the value is the same for every query"
    return shown


def _excerpts(comparison: RunComparison, texts: Sequence[str]) -> list[str]:
    return excerpts(texts, comparison.collection.card.task, _LONGEST)


def _documents_table(comparison: RunComparison, query_id: str) -> Table:
    table = comparison.moved[comparison.moved.query_id == query_id].head(_MOST_DOCUMENTS)
    texts = [comparison.collection.document(doc_id) for doc_id in table.doc_id]
    title = f"documents of {query_id}, the query that changed most: rank before and after"
    shown = _console_table(title, "document", *comparison.shown, "relevance", "text")
    for row, text in zip(table.to_dict("records"), _excerpts(comparison, texts), strict=True):
        ranks = ("–" if pd.isna(rank) else str(rank) for rank in (row["rank_a"], row["rank_b"]))
        shown.add_row(row["doc_id"], *ranks, "unjudged" if pd.isna(row["relevance"]) else str(row["relevance"]), text)
    return shown


def _assumptions_tables(comparison: RunComparison) -> Iterator[Table]:
    """Yield a table per assumption, since one with a column for it is wider than a terminal of 80 characters."""
    relevant = ("none", "all", *(f"only those of {system}" for system in comparison.shown))
    for reading, name in zip(ASSUMPTIONS, relevant, strict=True):
        title = f"means if, of the unjudged documents, {name} are relevant"
        shown = _console_table(title, "measure", *comparison.shown, "difference", "95 % interval", "p")
        for row in comparison.readings[comparison.readings.reading == reading].to_dict("records"):
            means = f"{row['first']:.4f}", f"{row['second']:.4f}"
            shown.add_row(row["measure"], *means, *_difference_cells(row))
        yield shown


def write_comparison(comparison: RunComparison, path: Path) -> Path:
    """Write a CSV with a row per query: values, differences, similarity, documents that entered and left."""
    table = pd.DataFrame(index=pd.Index(comparison.collection.query_ids, name="query_id"))
    for measure in comparison.values.measure.unique():
        pair = significance.value_matrix(comparison.values, measure)[list(comparison.names)]
        for name in comparison.names:
            table[f"{measure} of {name}"] = pair[name]
        table[f"difference in {measure}"] = pair[comparison.names[1]] - pair[comparison.names[0]]
    for part in (comparison.alike, comparison.fresh):
        table = table.join(part.set_index("query_id"))
    atomic_files.write_text(paths.expand_home(path), table.round(10).to_csv(lineterminator="\n"))
    return path


def paired_runs(first: str | Path, second: str | Path, collection: Collection, depth: int = 1000) -> list[pd.DataFrame]:
    """Return two runs of a *collection*, each from a system's name or a TREC file, cut to *depth*.

    Rows of a file whose query or document the collection lacks are left out, with a RunWarning. The names in
    `attrs["system"]` are made different by the files' names or "(2)"; `attrs["made_by"]` is the system's settings, or
    the file's name and sha256. MirblabError for what is neither a system nor a run file, an empty run, and one of
    another collection.

    >>> from mirblab.sources.catalogue import load
    >>> [run.attrs["system"] for run in paired_runs("bm25", "bm25", load("mini-qa"), depth=10)]
    ['bm25', 'bm25 (2)']
    """
    pair = [_load_run(str(source), collection, depth) for source in (first, second)]
    names = [str(run.attrs["system"]) for run in pair]
    if names[0] == names[1]:
        names = [Path(str(source)).name if _existing_file(str(source)) else name
                 for source, name in zip((first, second), names, strict=True)]  # fmt: skip
    if names[0] == names[1]:
        names[1] = f"{names[1]} (2)"
    for run, name in zip(pair, names, strict=True):
        run.attrs = {**run.attrs, "system": name}
    return pair


def _load_run(given: str, collection: Collection, depth: int) -> pd.DataFrame:
    path = _existing_file(given)
    if path is not None:
        return runs.cut_run(read_run_file(path, collection), depth)
    folder = Path(given)
    if given and folder.is_dir():
        inside = first_names(sorted(file.name for file in folder.iterdir()), 6)
        raise MirblabError(f"{given} is a folder; name one run file in it, found {inside}")
    try:
        searched = system(given)
    except MirblabError as error:
        if given.lower().endswith(_ENDINGS):
            where = paths.expand_home(given).absolute().parent
            raise MirblabError(f"no run file '{given}'; looked in {where}; give the whole path, or a system") from error
        raise MirblabError(f"'{given}' is neither a run file nor a system: {error}") from error
    run = searched.search(collection, depth)
    run.attrs = {**run.attrs, "made_by": searched.key}
    return run


def _existing_file(given: str) -> Path | None:
    try:
        path = paths.expand_home(given)
        return path if path.is_file() else None
    except (OSError, RuntimeError, ValueError):  # too long, no such user, a zero byte
        return None


def read_run_file(path: Path, collection: Collection) -> pd.DataFrame:
    """Return the run in a file, without rows whose query or document the *collection* lacks.

    The file is in TREC's format, or a submission to ARQMath's first task, as for `mirblab import-results`.
    A RunWarning counts these. MirblabError for an empty run and for one of another collection.
    """
    if path.stat().st_size > _MOST_BYTES:
        raise MirblabError(f"{path} has {path.stat().st_size:,} bytes; cut it to a few thousand documents per query")
    given = arqmath.read_run(path)
    if given.empty:
        raise MirblabError(f"{path} is an empty run; a line is 'query_id Q0 doc_id rank score system'")
    where = f"{collection.name} (split {collection.split})"
    for column, known in (("query_id", collection.query_ids), ("doc_id", collection.doc_ids)):
        ids = given[column].astype("str")
        if not ids.isin(known).any():
            kind = {"query_id": "queries", "doc_id": "documents"}[column]
            raise MirblabError(
                f"{path}: none of its {ids.nunique():,} {kind} is in {where}: it has '{ids.iloc[0]}', the collection "
                f"'{known[0]}'; give the collection and split that it was made for"
            )
    kept, counts = imported.fit_run(given, collection)
    if kept.empty:
        raise MirblabError(f"{path}: no row has both a query and a document of {where}; give the right collection")
    made_by = {"file": path.name, "sha256": imported.source_sha256(path)}
    kept.attrs = {"system": given.attrs["system"], "collection": collection.name, "made_by": made_by}
    origins = (record.origin for record in imported.import_records() if record.sha256 == made_by["sha256"])
    kept.attrs["origin"] = next(origins, given.attrs["origin"])
    if counts["unknown_documents"]:
        kept.attrs["remainder"] = imported.remainder_note(len(given), counts["unknown_documents"], collection.name)
    if counts["unknown"]:
        n_left, of_all = counts["unknown"], counted(len(given), "row")
        has, they = ("has", "it is") if n_left == 1 else ("have", "they are")
        warnings.warn(f"{path.name}: {n_left:,} of {of_all} {has} a query or a document that {where} lacks; {they} "
                      "left out", RunWarning, stacklevel=4)  # fmt: skip
    return kept


def run_similarity(first: pd.DataFrame, second: pd.DataFrame, *, p: float = 0.9, k: int = 10) -> pd.DataFrame:
    """Return the similarity of two runs on each query of either of them.

    Columns: query_id, common (documents in both), rbo (rank-biased overlap, 0: nothing in common, to 1: the same), tau
    (Kendall's, of the common documents, -1 to 1; NaN with fewer than two), overlap (documents in both first *k*, as a
    share of the longer of these, 0 to 1). *p*, between 0 and 1, is the probability that a reader goes on to the next
    rank: with 0.9 the first ten have 86 % of the weight of rbo.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b", "c"], "score": [3.0, 2.0, 1.0]})
    >>> run_similarity(one, one.assign(score=[2.0, 3.0, 1.0]), p=0.5, k=1).round(3).values.tolist()
    [['q', 3, 0.5, 0.333, 0.0]]
    """
    check_positive(k=k)
    if not 0 < p < 1:
        raise MirblabError(f"p of rank-biased overlap lies between 0 and 1, found {p}; 0.9 looks at about ten ranks")
    table = join_runs(first, second)
    rows = [(query, *_of_query(part, p, k)) for query, part in table.groupby("query_id", sort=True)]
    return pd.DataFrame(rows, columns=["query_id", "common", "rbo", "tau", "overlap"])


def _of_query(part: pd.DataFrame, p: float, k: int) -> tuple[int, float, float, float]:
    from scipy.stats import kendalltau

    ranks = part[["rank_a", "rank_b"]].to_numpy()
    common = ranks[~np.isnan(ranks).any(axis=1)]
    sizes = (~np.isnan(ranks)).sum(axis=0)
    tau = float(kendalltau(common[:, 0], common[:, 1]).statistic) if len(common) > 1 else float("nan")
    deeper, longest = common.max(axis=1).astype(np.int64), min(k, int(sizes.max()))
    return len(common), _rbo(deeper, int(sizes[0]), int(sizes[1]), p), tau, float((deeper <= k).sum() / longest)


def _rbo(deeper: np.ndarray, n_first: int, n_second: int, p: float) -> float:
    """Return RBO_EXT from the *deeper* of the two ranks of each common document, and the lengths of both rankings.

    Equation 32 of Webber, Moffat and Zobel, TOIS 2010, for rankings of any two lengths without ties: beyond their ends
    they are assumed to agree as much as before. Two empty rankings are the same.
    """
    short, long = sorted((n_first, n_second))
    if not short:
        return float(not long)
    depth = np.arange(1, long + 1)
    shared = np.cumsum(np.bincount(deeper, minlength=long + 1)[1:])
    weight, agreed = p**depth, shared[short - 1]
    below = depth > short
    seen = (shared / depth * weight).sum() + (agreed * (depth - short) / (short * depth) * weight)[below].sum()
    return float((1 - p) / p * seen + ((shared[-1] - agreed) / long + agreed / short) * p**long)


def join_runs(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Return the documents of both runs: query_id, doc_id, rank_a, rank_b, NaN where one does not return it."""
    names = {"query_id": "str", "doc_id": "str", "rank": "float64"}
    parts = [order_run(run)[list(names)].astype(names) for run in (first, second)]
    return parts[0].merge(parts[1], on=["query_id", "doc_id"], how="outer", suffixes=("_a", "_b"))


def moved_documents(first: pd.DataFrame, second: pd.DataFrame, collection: Collection, k: int = 10) -> pd.DataFrame:
    """Return the rank in both runs of each document among the first *k* of either: a row per query and document.

    Columns: query_id, doc_id, rank_a, rank_b (from 1, missing where a run does not return it), change (ranks gained
    from the first run to the second), relevance (missing: unjudged). Sorted by query, then by rank in the second run,
    then in the first.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> run = lab.system("bm25").search(c)
    >>> table = moved_documents(run, run, c, k=3)
    >>> table.columns.tolist(), bool((table.change == 0).all())
    (['query_id', 'doc_id', 'rank_a', 'rank_b', 'change', 'relevance'], True)
    """
    check_positive(k=k)
    table = join_runs(first, second)
    table = table[(table.rank_a <= k) | (table.rank_b <= k)]
    judged = collection.qrels.astype({"query_id": "str", "doc_id": "str"})
    table = table.merge(judged, on=["query_id", "doc_id"], how="left")
    table["change"] = table.rank_a - table.rank_b
    numbers = ["rank_a", "rank_b", "change", "relevance"]
    table = table.sort_values(["query_id", "rank_b", "rank_a"], ignore_index=True).astype(
        dict.fromkeys(numbers, "Int64")
    )
    return table[["query_id", "doc_id", *numbers]]


def changed_documents(moves: pd.DataFrame, k: int = 10, relevant_from: int = 1) -> pd.DataFrame:
    """Return how many documents entered and left each query's first *k* from the first run to the second.

    *moves* is from `moved_documents` with the same *k*. Columns: query_id; entered (documents in the second run's first
    k only), entered_relevant (from *relevant_from* on), entered_unjudged; left, left_relevant, left_unjudged (in the
    first run's only).

    >>> rows = {"query_id": "q", "doc_id": ["a", "b"], "rank_a": [1, None], "rank_b": [None, 1], "relevance": [1, None]}
    >>> changed_documents(pd.DataFrame(rows).convert_dtypes()).drop(columns="query_id").values.tolist()
    [[1, 0, 1, 1, 1, 0]]
    """
    before, after = ((moves[name] <= k).fillna(False).astype(bool) for name in ("rank_a", "rank_b"))
    relevant, bare = (moves.relevance >= relevant_from).fillna(False).astype(bool), moves.relevance.isna()
    counted: dict[str, pd.Series] = {}
    for name, chosen in (("entered", after & ~before), ("left", before & ~after)):
        parts = {name: chosen, f"{name}_relevant": chosen & relevant, f"{name}_unjudged": chosen & bare}
        counted |= {what: part.astype(int) for what, part in parts.items()}
    return pd.DataFrame(counted).groupby(moves.query_id.to_numpy()).sum().rename_axis("query_id").reset_index()


def extreme_queries(values: pd.DataFrame, measure: str, first: str, second: str, n_queries: int = 5) -> pd.DataFrame:
    """Return the queries that gained and lost most from the system *first* to *second*: at most *n_queries* each.

    Columns: query_id, first, second, difference (second minus first, never 0); the largest gain first, the largest loss
    last, equal ones by query_id. *values* are of one collection.

    >>> rows = [("a", "p", 0.1), ("a", "q", 0.5), ("b", "p", 0.5), ("b", "q", 0.5)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(measure="AP", collection="c")
    >>> extreme_queries(values, "AP", "a", "b").values.tolist()
    [['p', 0.1, 0.5, 0.4]]
    """
    check_positive(n_queries=n_queries)
    table = significance.value_matrix(values, measure)
    check_known("system among the values", (first, second), table.columns)
    table = table[[first, second]].set_axis(["first", "second"], axis=1).rename_axis("query_id").reset_index()
    table["difference"] = table.second - table["first"]
    table = table.sort_values("difference", ascending=False, kind="stable")
    gained, lost = table[table.difference > 0].head(n_queries), table[table.difference < 0].tail(n_queries)
    return pd.concat([gained, lost], ignore_index=True)


def means_by_assumption(
    first: pd.DataFrame, second: pd.DataFrame, collection: Collection, wanted: Sequence[str], *, k: int = 10,
    seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Return the means of both runs under four assumptions about the unjudged documents (`ASSUMPTIONS`).

    Columns: reading (the assumption), supposed (how many documents it concerns), measure, first, second, difference
    (second minus first), low, high, p (paired permutation test, not corrected). Unjudged documents of the first *k* of
    either run are assumed to have the collection's highest relevance, or none. A document that is assumed to be
    relevant counts as missed by the run that lacks it, so AP and nDCG may fall. The two last assumptions bound the
    difference in P@k; for other measures they are examples. If all four agree on the sign, the unjudged documents do
    not decide the comparison.

    >>> import mirblab as lab
    >>> c = lab.load("mini-qa")
    >>> table = means_by_assumption(*(lab.system(name).search(c) for name in ("bm25", "minilm")), c, ["P@10"])
    >>> bool(table.difference.iloc[2] <= table.difference.iloc[0] <= table.difference.iloc[3])
    True
    """
    names = [str(run.attrs.get("system", "run")) for run in (first, second)]
    if names[0] == names[1]:
        raise MirblabError(
            f"both runs are called '{names[0]}'; load them by paired_runs, which gives them different names"
        )
    table = moved_documents(first, second, collection, k)
    bare = table[table.relevance.isna()]
    before, after = ((bare[name] <= k).fillna(False).astype(bool) for name in ("rank_a", "rank_b"))
    chosen = [before & False, before | True, before & ~after, after & ~before]
    parts = []
    for reading, mask in zip(ASSUMPTIONS, chosen, strict=True):
        supposed = _with_judgements(collection, bare, mask)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", measures.QueryWarning)
            values = pd.concat([measures.evaluate(run, supposed, list(wanted)) for run in (first, second)])
        parts.append(_mean_differences(values, names, seed).assign(reading=reading, supposed=int(mask.sum())))
    means = pd.concat(parts, ignore_index=True)
    return means[["reading", "supposed", "measure", "first", "second", "difference", "low", "high", "p"]]


def _with_judgements(collection: Collection, documents: pd.DataFrame, is_relevant: pd.Series) -> Collection:
    known = collection.qrels
    best = max([*collection.card.relevance_levels, int(known.relevance.max()) if len(known) else 1])
    more = documents[["query_id", "doc_id"]].assign(relevance=np.where(is_relevant, best, 0))
    more = more.astype(known.dtypes.to_dict())
    qrels = pd.concat([known, more]).sort_values(["query_id", "doc_id"], ignore_index=True)
    return replace(collection, qrels=qrels)


def _mean_differences(values: pd.DataFrame, names: Sequence[str], seed: int) -> pd.DataFrame:
    rows = []
    for measure in values.measure.cat.categories:
        means = significance.value_matrix(values, measure)[list(names)].mean()
        test = significance.compare(values, measure, baseline=names[0], seed=seed).iloc[0]
        rows.append({"measure": measure, "first": means.iloc[0], "second": means.iloc[1],
                     **{name: test[name] for name in ("difference", "low", "high", "p")}})  # fmt: skip
    return pd.DataFrame(rows)
