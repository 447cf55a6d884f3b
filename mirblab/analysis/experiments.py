"""Several systems on several collections, evaluated, compared and shown in one call; one recipe with several seeds."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mirblab.core import atomic_files, paths
from mirblab.core.errors import MirblabError, check_known
from mirblab.data.collection import Collection
from mirblab.data.runs import PYTERRIER, check_trec_ids, write_run
from mirblab.display.result_tables import main_table, printed_factor, run_notes
from mirblab.display.table_formats import Table, column_name
from mirblab.evaluation import significance
from mirblab.evaluation.measures import AnyMeasure, QueryWarning, evaluate, parse_measure
from mirblab.evaluation.significance import bootstrap_intervals, value_matrices
from mirblab.retrieval.systems import DEPTH, System, search_depth, system
from mirblab.sources.catalogue import collection_groups, load_with_queries

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_TO_PYTERRIER = {ours: theirs for theirs, ours in PYTERRIER.items()}


@dataclass(repr=False)
class Experiment:
    """The values of several systems on several collections; a notebook displays it as its main table.

    `values` has a row per system, collection, measure and query, as `evaluate` gives it. `costs` has a row per
    system and collection: system, collection, documents, seconds (to search all queries), stored (whether the run was
    read from the store, so that the seconds are those of reading). `notes` say which queries score 0 because they have
    no relevant document or are not in a run.
    """

    values: pd.DataFrame
    costs: pd.DataFrame
    systems: list[System]
    collections: list[Collection]
    measures: list[str]
    baseline: str
    seed: int = 0
    alpha: float = 0.05
    correction: str | None = "holm"
    notes: list[str] = field(default_factory=list)
    depth: int = DEPTH
    _comparisons: dict[tuple[str, str], pd.DataFrame] = field(default_factory=dict)

    def compare(self, measure: str = "", baseline: str | None = None) -> pd.DataFrame:
        """Return the paired tests of one measure (the first), as `lab.compare`: against *baseline*, "" for all pairs.

        None is the experiment's own baseline. The correction covers the comparisons of each collection.
        """
        name, base = self._measure(measure), self.baseline if baseline is None else baseline
        if (name, base) not in self._comparisons:
            alone = self.baseline if len(self.systems) == 1 else None  # with which the table is empty
            self._comparisons[name, base] = significance.compare(
                self.values, name, baseline=base or alone, correction=self.correction, alpha=self.alpha, seed=self.seed
            )
        return self._comparisons[name, base]

    @property
    def level(self) -> str:
        """Return the level of the intervals as text: "95 %"."""
        return f"{100 * (1 - self.alpha):g} %"

    @cached_property
    def intervals(self) -> pd.DataFrame:
        """Return the mean of each system, collection and measure with its bootstrap interval (level 1 - alpha)."""
        return bootstrap_intervals(self.values, level=1 - self.alpha, seed=self.seed)

    def table(self, measure: str = "") -> Table:
        """Return the means of one measure (the first) in percent, with intervals, marks of significance and times.

        Rows are systems, columns collections. With one collection and no *measure* named, columns are measures. The
        times are those of systems none of whose runs was stored.
        """
        by = "measure" if len(self.collections) == 1 and not measure else "collection"
        wanted = self.measures if by == "measure" else [self._measure(measure)]
        shown = main_table(
            self.values,
            wanted,
            by=by,
            tasks={collection.name: collection.card.task for collection in self.collections},
            groups=collection_groups(self.collections) if by == "collection" else None,
            comparison=pd.concat(map(self.compare, wanted)) if len(self.systems) > 1 else None,
        )
        self._add_intervals(shown, self.intervals[self.intervals.measure.isin(wanted)], by)
        shown.notes += self._cost_notes(shown.labels)
        return shown

    def plot(self, measure: str = "") -> Axes | list[Axes]:
        """Draw the means of one measure (the first) with their intervals, one panel per collection."""
        from mirblab.display import plots

        return plots.means(self.intervals[self.intervals.measure == self._measure(measure)])

    def to_pyterrier(self, collection: str = "") -> dict[str, pd.DataFrame]:
        """Return the run of each system on one *collection* (the first) as PyTerrier has it, read from the store.

        Columns: qid, query, docno, score, rank (from 0). The key `qrels` has qid, docno, label, with all grades: where
        the collection counts grades from 2 as relevant (`card.relevant_from`), PyTerrier is to be told, as by
        `RR(rel=2)`.
        """
        names = [part.name for part in self.collections]
        check_known("collection", [collection] if collection else [], names)
        of = self.collections[names.index(collection or names[0])]
        texts, tables = dict(zip(of.query_ids, of.query_texts, strict=True)), {}
        for part in self.systems:
            run = part.search(of, self.depth).astype({"query_id": "str", "doc_id": "str"})
            run = run.assign(query=run.query_id.map(texts), rank=run["rank"] - 1)
            tables[part.name] = run.rename(columns=_TO_PYTERRIER)[["qid", "query", "docno", "score", "rank"]]
        judged = of.qrels.astype({"query_id": "str", "doc_id": "str"})
        return tables | {"qrels": judged.rename(columns=_TO_PYTERRIER)}

    def save(self, folder: str | Path, *, runs: bool = False) -> list[Path]:
        """Write the values, and for each measure its table, tests and figure, into *folder*; return the paths.

        With *runs* there is also a folder for each collection with the runs and the judgements (`qrels.txt`) in TREC's
        form, which trec_eval, ir_measures and PyTerrier read. Files that the folder holds under these names are
        replaced, others stay. MirblabError, before anything is written, for an id that TREC's form cannot hold.
        """
        from mirblab.display.figures import save_figure

        for of in self.collections if runs else []:
            check_trec_ids(of.query_ids, "query_id")
            check_trec_ids(of.doc_ids, "doc_id")
        target = paths.expand_home(str(folder))
        atomic_files.make_folder(target)
        csv = {"values": self.values, "costs": self.costs}
        for measure in self.measures:
            name, made_from = file_name(measure), self._provenance(measure)
            intervals = self.intervals[self.intervals.measure == measure]
            self.table(measure).save(target, name, made_from)
            save_figure(
                self.plot(measure),
                target,
                f"{name}_means",
                provenance=made_from,
                caption=f"Mean {measure} with {self.level} bootstrap intervals.",
                alt=f"Dot plot of mean {measure} of {', '.join(part.name for part in self.systems)}.",
                table=intervals,
            )
            if len(self.systems) > 1:
                csv[f"{name}_tests"] = self.compare(measure)
        for name, frame in csv.items():
            atomic_files.write_text(target / f"{name}.csv", frame.to_csv(index=False, lineterminator="\n"))
        beside = [path for of in self.collections for path in self._save_runs(target / of.name, of)] if runs else []
        return sorted(path for path in target.iterdir() if path.is_file()) + beside

    def _save_runs(self, folder: Path, of: Collection) -> list[Path]:
        atomic_files.make_folder(folder)
        for part in self.systems:
            write_run(part.search(of, self.depth), folder / f"{re.sub('[^A-Za-z0-9.+@-]', '_', part.name)}.trec")
        judged = zip(of.qrels.query_id, of.qrels.doc_id, of.qrels.relevance, strict=True)
        lines = [f"{query} 0 {doc} {relevance}\n" for query, doc, relevance in judged]
        atomic_files.write_text(folder / "qrels.txt", "".join(lines))
        return sorted(path for path in folder.iterdir() if path.is_file())

    def _add_intervals(self, shown: Table, intervals: pd.DataFrame, by: str) -> None:
        judged = [name for name in shown.frame if isinstance(name, tuple) and name[0].startswith("Judged")]
        ends = []
        for end in ("low", "high"):
            printed = intervals[end] * intervals.measure.map(printed_factor)
            wide = intervals.assign(printed=printed).pivot(index="system", columns=by, values="printed")
            wide = wide.reindex(shown.frame.index)
            parts = {name: np.nan if name in judged else wide.get(column_name(name), np.nan) for name in shown.frame}
            ends.append(pd.DataFrame(parts, index=shown.frame.index, columns=shown.frame.columns))
        shown.add_intervals(*ends)
        shown.notes.append(f"In brackets: {self.level} bootstrap interval of the mean over resampled queries.")

    def _measure(self, name: str) -> str:
        return name if name in self.measures else str(parse_measure(name)) if name else self.measures[0]

    def _cost_notes(self, labels: Mapping[str, str]) -> list[str]:
        """Return a note of the time of each system none of whose runs was stored; [] if there is no such system.

        A system made of others, as a fusion, reads those of their runs that are stored, as the note says.
        """
        sums = self.costs.groupby("system", sort=False).agg(seconds=("seconds", "sum"), stored=("stored", "any"))
        made = sums.seconds[~sums.stored]
        parts = [f"{labels.get(str(name), name)} {seconds:.1f} s" for name, seconds in made.items()]
        of_others = [part.label for part in self.systems if part.parts and part.name in made.index]
        remark = f" The time of {', '.join(of_others)} is without the searches of parts whose runs were stored."
        rest = " Systems of which a run was stored are not timed." if sums.stored.any() else ""
        told = f"Time to search all queries: {', '.join(parts)}.{rest}{remark if of_others else ''}"
        return [told] if parts else []

    def _provenance(self, measure: str) -> dict[str, Any]:
        settings = {name: getattr(self, name) for name in ("baseline", "seed", "alpha", "correction")}
        return {
            "collections": {part.name: part.fingerprint for part in self.collections},
            "systems": {part.name: part.key for part in self.systems},
            "parameters": {"measure": measure, **settings},
        }

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def __repr__(self) -> str:
        """Return the main table as Markdown."""
        return self.table().to_markdown()


def experiment(
    systems: str | System | Sequence[str | System],
    collections: str | Collection | Sequence[str | Collection],
    measures: AnyMeasure | Sequence[AnyMeasure] = "nDCG@10",
    *,
    baseline: str | None = None,
    correction: str | None = "holm",
    alpha: float = 0.05,
    depth: int | None = None,
    seed: int = 0,
) -> Experiment:
    """Search, evaluate and compare: every system on every collection by every measure.

    *systems* and *collections* are names or objects, one or several, *measures* as in `evaluate`. *baseline* is the
    system that the others are tested against, the first by default. *correction* and *alpha*, the level of
    significance, are those of `lab.compare`; *depth* is the number of documents kept per query, None: 1,000, or the
    deepest cutoff of the measures. MirblabError for an unknown name, one that is given twice, or an empty list.

    >>> result = experiment(["bm25", "bm25-mirb"], "mini-qa", ["nDCG@10", "RR"])
    >>> result.table().frame.columns.tolist(), len(result.values)
    (['nDCG@10', 'RR'], 816)
    """
    chosen = list(map(system, _as_list("system", systems)))
    loaded = list(map(load_with_queries, _as_list("collection", collections)))
    wanted = _as_list("measure", measures)
    significance.corrected_column(correction)  # an unknown one is an error before the first search
    for what, names in (("system", [part.name for part in chosen]), ("collection", [part.name for part in loaded])):
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise MirblabError(f"the {what} {repeated[0]!r} is given twice; name each {what} once")
    names = [part.name for part in chosen]
    if baseline is not None and baseline not in names:
        raise MirblabError(f"the baseline {baseline!r} is not among the systems {', '.join(names)}; add it to them")
    depth = search_depth(wanted) if depth is None else depth
    parts, costs = [], []
    for collection in loaded:
        for part in chosen:
            stored, started = part.is_stored(collection, depth), time.perf_counter()
            run = part.search(collection, depth)
            seconds = time.perf_counter() - started
            costs.append((part.name, collection.name, len(collection.corpus), round(seconds, 3), stored))
            parts.append(_evaluate(run, collection, wanted))
    values = pd.concat(parts, ignore_index=True)
    return Experiment(
        values,
        pd.DataFrame(costs, columns=["system", "collection", "documents", "seconds", "stored"]),
        chosen,
        loaded,
        [str(name) for name in parts[0].measure.unique()],
        names[0] if baseline is None else baseline,
        seed,
        alpha,
        correction,
        run_notes(values),
        depth,
    )


def seeds_table(
    values: pd.DataFrame,
    trained: Sequence[str],
    measure: str,
    *,
    baseline: str,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return by collection the mean change by training, with intervals over queries and over seeds.

    *trained* are systems of one recipe, one for each seed; *baseline* is the system before training. Columns:
    collection, measure, n_seeds, n_queries, baseline (its mean), least and most (of the means of *trained*), difference
    (their mean minus the baseline's); low and high: its percentile bootstrap interval over queries, each query's mean
    over *trained* taken first; seeds_low and seeds_high: Student's t interval over the seeds' differences, for other
    seeds on these queries (NaN for a single seed). MirblabError when a system is missing for a collection.

    >>> rows = [("before", "q1", 0.0), ("before", "q2", 0.2), ("s0", "q1", 0.5), ("s0", "q2", 0.5)]
    >>> values = pd.DataFrame([*rows, ("s1", "q1", 0.7), ("s1", "q2", 0.9)], columns=["system", "query_id", "value"])
    >>> found = seeds_table(values.assign(collection="c", measure="RR"), ["s0", "s1"], "RR", baseline="before")
    >>> found[["least", "most", "difference"]].round(3).values.tolist()
    [[0.5, 0.8, 0.55]]
    """
    if not trained:
        raise MirblabError("no system was named that was trained; give one for each seed")
    if measure not in set(values.measure):
        known = ", ".join(map(str, values.measure.unique()))
        raise MirblabError(f"the table has no values of {measure}; found {known}")
    rows = []
    for name, matrix in value_matrices(values, measure):
        missing = [system for system in [baseline, *trained] if system not in matrix]
        if missing:
            raise MirblabError(f"{name} has no values of {', '.join(missing)}; evaluate these on it, too")
        before, after = matrix[baseline], matrix[list(trained)]
        changes = after.sub(before, axis=0)
        gains = changes.mean(axis=1).rename("value").reset_index()
        gains = gains.assign(collection=name, system="", measure=measure)
        over_queries = bootstrap_intervals(gains, measure, level=level, n_resamples=n_resamples, seed=seed).iloc[0]
        seeds_low, seeds_high = _student(changes.mean().to_numpy(), level)
        row = {"collection": name, "measure": measure, "n_seeds": len(trained), "n_queries": len(matrix)}
        row |= {"baseline": before.mean(), "least": after.mean().min(), "most": after.mean().max()}
        row |= {"difference": over_queries["mean"], "low": over_queries.low, "high": over_queries.high}
        rows.append(row | {"seeds_low": seeds_low, "seeds_high": seeds_high})
    return pd.DataFrame(rows)


def file_name(measure: str) -> str:
    """Return a measure's name as part of a file's name.

    >>> file_name("nDCG'@10"), file_name("RBP(p=0.8)@10")
    ('ndcg-prime-at-10', 'rbp-p08-at-10')
    """
    name = measure.lower().replace("'", "-prime").replace("@", "-at-").replace(" ", "-")
    return name.replace("(p=", "-p").replace(".", "").replace(")", "")


def _as_list(what: str, given: Any) -> list[Any]:
    is_one = isinstance(given, (str, System, Collection)) or not isinstance(given, Iterable)
    parts = [given] if is_one else list(given)
    if not parts:
        raise MirblabError(f"an experiment needs at least one {what}, found none; name one")
    return parts


def _evaluate(run: pd.DataFrame, collection: Collection, measures: Sequence[AnyMeasure]) -> pd.DataFrame:
    """Return the values without a warning of queries that score 0: tables note them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QueryWarning)
        return evaluate(run, collection, measures)


def _student(differences: np.ndarray, level: float) -> tuple[float, float]:
    from scipy.stats import t

    if len(differences) < 2:
        return np.nan, np.nan
    half = t.ppf((1 + level) / 2, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences))
    return float(differences.mean() - half), float(differences.mean() + half)
