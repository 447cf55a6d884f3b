"""judging: documents of several runs, pooled and judged by people: their judgements, agreement and effect."""

from __future__ import annotations

import getpass
import json
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core import atomic_files, paths
from mirblab.core.errors import MirblabError, check_known, check_not_negative
from mirblab.core.wording import counted
from mirblab.data.collection import Collection, count_oddities
from mirblab.data.runs import check_distinct_systems, cut_run, order_run
from mirblab.display.result_tables import table
from mirblab.display.table_formats import Table
from mirblab.evaluation import measures
from mirblab.evaluation.measures import AnyMeasure, evaluate
from mirblab.retrieval.systems import System, system

FIELDS: dict[str, Any] = {
    "query_id": str,
    "doc_id": str,
    "relevance": (int, type(None)),
    "judge": str,
    "time": str,
    "texts": str,
}
MEASURES = ("nDCG@10", "nDCG'@10", "AP")
_KEY = ["query_id", "doc_id"]


@dataclass(repr=False)
class Judging:
    """A pool of documents, and the judgements of one person on it, which are stored as they are made.

    *pool* has query_id and doc_id of each document to judge, in the order in which they are shown; *position* is the
    row of the document that is shown now. *grades* are the relevances of the collection, from 0. The judgements of all
    judges of a collection lie in `<home>/judgements/<collection>/`, a file of JSON lines for each judge, to which lines
    are only added: of several judgements of one person on a document, the last one counts.
    """

    original: Collection
    runs: list[pd.DataFrame]
    judge: str
    pool: pd.DataFrame
    depth: int = 10
    position: int = 0
    _latest: str = ""  # the time of the judge's last judgement
    _own: dict[tuple[str, str], int] = field(default_factory=dict)  # what counts of this judge
    _done: list[tuple[int, str, str, int | None]] = field(default_factory=list)  # what `undo` brings back

    def __post_init__(self) -> None:
        """Read what the judge has judged before, and go to the first document that is not judged yet."""
        self._read_own()

    def _read_own(self) -> None:
        own = self.judgements
        own = own[own.judge == self.judge]
        self._own = dict(zip(zip(own.query_id, own.doc_id, strict=True), own.relevance.tolist(), strict=True))
        self._latest = max(own.time, default="")
        self.position = self._next_unjudged(0)

    @property
    def path(self) -> Path:
        """Return the file of this judge's judgements, which need not exist."""
        return _judgement_file(self.original, self.judge)

    @property
    def grades(self) -> list[int]:
        """Return the grades that a judge may give, from 0."""
        card = self.original.card
        used = {0, card.relevant_from, *card.relevance_levels, *self.original.qrels.relevance.tolist()}
        return sorted(grade for grade in used if grade >= 0)

    @property
    def n_judged(self) -> int:
        """Return how many documents of the pool this judge has judged."""
        return sum(pair in self._own for pair in zip(self.pool.query_id, self.pool.doc_id, strict=True))

    @property
    def shown(self) -> tuple[str, str] | None:
        """Return query_id and doc_id of the document at *position*, None for an empty pool."""
        return (*self.pool.iloc[self.position][_KEY],) if len(self.pool) else None

    def relevance_of(self, query_id: str, doc_id: str) -> int | None:
        """Return the relevance that this judge gave a document, None for none."""
        return self._own.get((query_id, doc_id))

    def record(self, query_id: str, doc_id: str, relevance: int) -> None:
        """Store one judgement, flushed to disk; MirblabError for an unknown query or document, or another grade."""
        if isinstance(relevance, bool) or relevance not in self.grades:
            allowed = ", ".join(map(str, self.grades))
            raise MirblabError(f"{self.original.name} has the grades {allowed}; found {relevance!r}; give one of them")
        self._store(query_id, doc_id, int(relevance))

    def grade(self, relevance: int) -> None:
        """Store the judgement of the document that is shown, and go to the next one that is not judged yet."""
        if self.shown is None:
            raise MirblabError("there is no document to judge; rejudge=True also takes those that are judged already")
        query_id, doc_id = self.shown
        before = self.position, query_id, doc_id, self.relevance_of(query_id, doc_id)
        self.record(query_id, doc_id, relevance)
        self._done.append(before)
        self.position = self._next_unjudged(self.position)

    def undo(self) -> bool:
        """Take the last `grade` of this session back, and show its document; False when there is none.

        The judgement stays in the file, followed by a line that withdraws it or has the judgement before it.
        """
        if not self._done:
            return False
        position, query_id, doc_id, relevance = self._done[-1]
        self._store(query_id, doc_id, relevance)
        self._done.pop()
        self.position = position
        return True

    def move(self, by: int) -> None:
        """Show the document *by* places further in the pool, at most its last, at least its first."""
        self.position = min(max(self.position + by, 0), max(len(self.pool) - 1, 0))

    @property
    def judgements(self) -> pd.DataFrame:
        """Return what counts of all judges: query_id, doc_id, relevance, judge, time (UTC), by time.

        Judgements of other texts than the collection's, and of documents or queries that it lacks, are left out.
        """
        records: list[dict[str, Any]] = []
        for path in sorted(self.path.parent.glob("*.jsonl")):
            records += _read_records(path)
        return self._counting(records)

    def merge(self, path: str | Path, judge: str = "") -> int:
        """Add the judgements of another judge, or another machine, from a file; return how many are new here.

        *judge* is the name to store them under, "" for that in the file. Nothing is added twice. MirblabError for a
        file without judgements, of which none is of this collection, or with other grades under a judge's name.
        """
        source = paths.expand_home(path)
        if not source.is_file():
            raise MirblabError(f"{source} is no file; give a file of judgements, as {self.path}")
        records = _read_records(source)
        if not len(self._counting(records)):
            raise MirblabError(
                f"{source} has {counted(len(records), 'judgement')}, none of the texts of {self.original.name}; name "
                "the collection that was judged"
            )
        if foreign := {record["relevance"] for record in records} - {None, *self.grades}:
            allowed = ", ".join(map(str, self.grades))
            raise MirblabError(
                f"{source} has the grade {min(foreign)}, but {self.original.name} has {allowed}; change it in the file"
            )
        records = [record | {"judge": judge_name(judge)} for record in records] if judge else records
        added: dict[Path, list[dict[str, Any]]] = {}
        for name in dict.fromkeys(record["judge"] for record in records):
            target, theirs = _judgement_file(self.original, name), [row for row in records if row["judge"] == name]
            known = _read_records(target) if target.exists() else []
            here = {tuple(record.values()) for record in known}
            distinct = {tuple(record.values()): record for record in theirs}
            added[target] = [record for values, record in distinct.items() if values not in here]
            if added[target]:
                self._check_same_judge(source, known, theirs)
        for target, fresh in added.items():
            _append_records(target, fresh)
        self._read_own()
        return sum(map(len, added.values()))

    def _check_same_judge(self, source: Path, known: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
        """Raise MirblabError where *theirs*, of the judge of *known*, has other grades and does not continue these."""
        if {tuple(record.values()) for record in known} <= {tuple(record.values()) for record in theirs}:
            return
        ours, others = (self._counting(records).set_index(_KEY).relevance for records in (known, theirs))
        both = pd.concat([ours, others], axis=1, join="inner")
        if n := int((both.iloc[:, 0] != both.iloc[:, 1]).sum()):
            name = known[0]["judge"]
            raise MirblabError(
                f"{source} has other grades of the judge '{name}' for {counted(n, 'document')} than there are here, "
                f'and nothing was added; if somebody else judged, say who: merge(path, judge="ben")'
            )

    def qrels(self, judges: str | Sequence[str] | None = None) -> pd.DataFrame:
        """Return the judgements of one judge or some (None: all) as qrels: query_id, doc_id, relevance.

        Where judges differ, the median of their grades counts, of two the lower one. MirblabError for an unknown judge.
        """
        found = self.judgements
        if judges is not None:
            names = _as_names(judges)
            check_known("judge", names, found.judge.unique())
            found = found[found.judge.isin(names)]
        grouped = found.groupby(_KEY).relevance.quantile(0.5, interpolation="lower")
        return grouped.astype("int64").reset_index()

    def collection(self, judges: str | Sequence[str] | None = None) -> Collection:
        """Return the collection with the judgements of one judge or some (None: all) added, which replace its own."""
        before, columns = self.original, [*_KEY, "relevance"]
        had = before.qrels[columns].astype({"query_id": "str", "doc_id": "str"})
        both = pd.concat([had, self.qrels(judges)]).drop_duplicates(_KEY, keep="last")
        qrels = both.assign(
            query_id=pd.Categorical(both.query_id, before.query_ids),
            doc_id=pd.Categorical(both.doc_id, before.doc_ids),
            relevance=both.relevance.astype(before.qrels.relevance.dtype),
        ).sort_values(_KEY, ignore_index=True)
        odd = count_oddities(before.corpus, before.queries, qrels, before.card.relevant_from)
        return replace(before, qrels=qrels, oddities=odd)

    def agreement(self) -> Table:
        """Return how far judges agree, a row for each two that judged a document in common, and one for all.

        Columns: documents (that two judged), same (share with the same grade, percent), kappa (Cohen 1960), alpha
        (Krippendorff, for ordered grades). Both are 1 for the same grades and 0 for what chance gives, and are missing
        where only one grade was given. The collection's own judgements count as one more judge.
        """
        ratings = self._ratings()
        rows: dict[str, list[float]] = {}
        for first, second in combinations(ratings.columns, 2):
            pair = ratings[[first, second]].dropna()
            if len(pair):
                rows[f"{first}, {second}"] = [
                    *_same_grades(pair),
                    cohen_kappa(*pair.T.values),
                    krippendorff_alpha(pair),
                ]
        several = ratings[ratings.notna().sum(axis=1) > 1]
        if len(rows) > 1:
            rows["all"] = [*_same_grades(several), np.nan, krippendorff_alpha(several)]
        frame = pd.DataFrame.from_dict(rows, "index", columns=["documents", "same", "kappa", "alpha"])
        caption = f"Agreement of judges on {self.original.name}."
        notes = [
            "same: the percentage of documents with the same grade; kappa: Cohen's; alpha: Krippendorff's, ordinal; "
            "both are below 0 where judges agree less than by chance."
        ]
        formats = {"same": ".1f", "kappa": ".3f", "alpha": ".3f"}
        return table(frame.astype({"documents": "int64"}), caption, notes=notes, formats=formats)

    def changes(
        self, wanted: AnyMeasure | Sequence[AnyMeasure] = MEASURES, judges: str | Sequence[str] | None = None
    ) -> Table:
        """Return what the new judgements change: means of each run and measure before and after, with Judged@depth.

        The frame has a row per run and measure: measure, before, after, change. Notes say where the order of the
        systems changes.
        """
        chosen = [wanted] if isinstance(wanted, str) or not isinstance(wanted, Sequence) else list(wanted)
        share = f"Judged@{self.depth}"
        chosen += [] if share in map(str, chosen) else [share]
        means = {"before": self._means(self.original, chosen)}
        means["after"] = self._means(self.collection(judges), chosen)
        frame = pd.DataFrame(means).assign(change=means["after"] - means["before"])
        orders = {when: values.unstack("measure", sort=False) for when, values in means.items()}
        notes = []
        qualities = [name for name in orders["before"].columns if not measures.is_judged_share(name)]
        for name in qualities:
            first, second = (_best_first(order[name]) for order in orders.values())
            if first != second:
                notes.append(f"The order by {name} was {', '.join(first)}; now it is {', '.join(second)}.")
        if qualities and not notes:
            notes.append(f"The order of the systems by {', '.join(qualities)} stays the same.")
        n_new = len(self.qrels(judges))
        names = _as_names(self.judgements.judge.unique().tolist() if judges is None else judges)
        median = ", and of several grades of a document the lower median counts" if len(names) > 1 else ""
        caption = (
            f"Means on {self.original.name} before and after judgements of {counted(n_new, 'document')} by "
            f"{' and '.join(names)}; they replace those of the collection{median}."
        )
        return table(frame.reset_index("measure"), caption, notes=notes, digits=3)

    def _means(self, collection: Collection, wanted: list[AnyMeasure]) -> pd.Series:
        with warnings.catch_warnings():  # the same queries for every run, before and after
            warnings.simplefilter("ignore", measures.QueryWarning)
            values = pd.concat([evaluate(run, collection, wanted) for run in self.runs])
        return values.groupby(["system", "measure"], sort=False, observed=True).value.mean()

    def _ratings(self) -> pd.DataFrame:
        """Return the grades of each judged document, a column per judge, the collection's own judgements the last."""
        ratings = self.judgements.pivot(index=_KEY, columns="judge", values="relevance").astype("float64")
        had = self.original.qrels.astype({"query_id": "str", "doc_id": "str"}).set_index(_KEY).relevance
        return ratings.assign(**{f"judgements of {self.original.name}": had.reindex(ratings.index).astype("float64")})

    def _counting(self, records: list[dict[str, Any]]) -> pd.DataFrame:
        """Return what counts of *records*: the last judgement of each judge on each document, of the same texts."""
        queries, docs = (set(map(str, ids)) for ids in (self.original.query_ids, self.original.doc_ids))
        last, n_changed = dict[tuple[str, str, str], dict[str, Any]](), 0
        for record in sorted(records, key=lambda record: record["time"]):
            query_id, doc_id = record["query_id"], record["doc_id"]
            if query_id in queries and doc_id in docs:
                is_same = record["texts"] == _digest_texts(self.original, query_id, doc_id)
                n_changed += not is_same
                if is_same:
                    last.pop((record["judge"], query_id, doc_id), None)  # so that the order is that of time
                    last[record["judge"], query_id, doc_id] = record
        if n_changed:
            warnings.warn(
                f"{self.path.parent}: {counted(n_changed, 'judgement is', 'judgements are')} of texts that have since "
                "changed; such judgements stay there, and do not count",
                stacklevel=3,
            )
        counting = [record for record in last.values() if record["relevance"] is not None]
        frame = pd.DataFrame(counting, columns=list(FIELDS)).drop(columns="texts")
        return frame.astype(dict.fromkeys([*_KEY, "judge", "time"], "str") | {"relevance": "int64"})

    def _store(self, query_id: str, doc_id: str, relevance: int | None) -> None:
        texts = _digest_texts(self.original, query_id, doc_id)
        # A clock that was set back must not let an earlier judgement count.
        self._latest = max(self._latest, datetime.now(UTC).isoformat(timespec="microseconds"))
        values = (query_id, doc_id, relevance, self.judge, self._latest, texts)
        _append_records(self.path, [dict(zip(FIELDS, values, strict=True))])
        if relevance is None:
            self._own.pop((query_id, doc_id), None)
        else:
            self._own[query_id, doc_id] = relevance

    def _next_unjudged(self, begin: int) -> int:
        """Return the row of the first document from *begin* on, and then from the first on, that is not judged yet."""
        pairs = list(zip(self.pool.query_id, self.pool.doc_id, strict=True))
        rows = [*range(begin, len(pairs)), *range(begin)]
        return next((row for row in rows if pairs[row] not in self._own), max(len(pairs) - 1, 0))

    def __repr__(self) -> str:
        counts = f"{self.n_judged:,} of {counted(len(self.pool), 'document')} judged"
        return f"Judging of {self.original.name} by {self.judge}: {counts}, in {self.path}"


def pool_documents(
    runs: Sequence[pd.DataFrame],
    collection: Collection,
    depth: int = 10,
    *,
    disputed: int = 0,
    seed: int = 0,
    rejudge: bool = False,
) -> pd.DataFrame:
    """Return the first *depth* documents of several runs, each once: query_id, doc_id, in random order within queries.

    Queries are in random order, too, so that who stops early has judged a sample of them. Documents that the collection
    has judgements of are left out, unless *rejudge*. With *disputed* (0: all) there are at most so many documents of
    all queries together, those on which the runs disagree most; of equal ones as many as there is room for, at random.

    How much runs disagree on a document is what it adds, if it is relevant, to the differences of their DCG@*depth*,
    summed over all pairs of runs: most for a document that half of the runs have first and the others not at all,
    nothing for one that has the same rank in all. After Carterette, Allan and Sitaraman, Minimal Test Collections for
    Retrieval Evaluation (SIGIR 2006), who choose so for average precision. MirblabError for *disputed* with one run.
    """
    check_not_negative(seed=seed, disputed=disputed)
    if not len(runs):
        raise MirblabError("a pool needs at least one run, found none; give runs of this collection")
    if disputed and len(runs) < 2:
        raise MirblabError("one run disagrees with no other; give at least two for a pool of disputed documents")
    firsts = [cut_run(order_run(run), depth).astype(dict.fromkeys(_KEY, "str")) for run in runs]
    first = pd.concat([run[_KEY] for run in firsts]).drop_duplicates()
    unknown = first[~first.query_id.isin(collection.query_ids) | ~first.doc_id.isin(collection.doc_ids)]
    if len(unknown):
        row = unknown.iloc[0]
        raise MirblabError(
            f"{counted(len(unknown), 'pooled document is', 'pooled documents are')} not of {collection.name}, the "
            f"first is '{row.doc_id}' for query '{row.query_id}'; give runs of this collection"
        )
    if not rejudge:
        had = pd.MultiIndex.from_frame(collection.qrels[_KEY].astype("str"))
        first = first[~pd.MultiIndex.from_frame(first).isin(had)]
    generator = np.random.default_rng(seed)
    lots = pd.Series(generator.random(len(collection.query_ids)), collection.query_ids.astype("str"))
    ordered = first.sort_values(_KEY).assign(query_lot=lambda pairs: pairs.query_id.map(lots))
    ordered["lot"] = generator.random(len(ordered))
    if disputed:
        ordered["dispute"] = disagreement(firsts).loc[pd.MultiIndex.from_frame(ordered[_KEY])].to_numpy()
        ordered = ordered[ordered.dispute > 0].sort_values(["dispute", "lot"], ascending=[False, True]).head(disputed)
    return ordered.sort_values(["query_lot", "query_id", "lot"], ignore_index=True)[_KEY]


def disagreement(firsts: Sequence[pd.DataFrame]) -> pd.Series:
    """Return how much runs, cut to their first documents, disagree on each document, by query_id and doc_id, from 0.

    See `pool_documents`; a document that a run lacks adds nothing to its DCG.

    >>> one = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "rank": [1, 2]})
    >>> disagreement([one, one.head(1)]).round(3).to_dict()
    {('q', 'a'): 0.0, ('q', 'b'): 0.631}
    """
    gains = [1 / np.log2(1 + run.set_index(_KEY)["rank"]) for run in firsts]
    table = pd.concat(gains, axis=1, keys=range(len(gains))).fillna(0)
    ordered = np.sort(table.to_numpy(), axis=1)
    n_below = np.arange(len(gains))  # of the other runs; the value is added for each of these, subtracted for the rest
    return pd.Series((ordered * (2 * n_below + 1 - len(gains))).sum(axis=1), table.index)


def pooled_runs(
    runs: str | System | pd.DataFrame | Sequence[str | System | pd.DataFrame], collection: Collection
) -> list[pd.DataFrame]:
    """Return the runs of systems, names of systems and runs, one or several; MirblabError for none or equal names."""
    given = [runs] if isinstance(runs, (str, System, pd.DataFrame)) else list(runs)
    if not given:
        raise MirblabError("judge needs at least one run, system or name of a system, found none; name one")
    found = [one if isinstance(one, pd.DataFrame) else system(one).search(collection) for one in given]
    check_distinct_systems(found)
    return found


def cohen_kappa(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Cohen's kappa (1960) of two judges' grades of the same documents, at most 1; NaN where all are equal.

    >>> round(cohen_kappa([1] * 320 + [0] * 80, [1] * 300 + [0] * 20 + [1] * 10 + [0] * 70), 3)
    0.776
    """
    from sklearn.metrics import cohen_kappa_score

    if len({*first, *second}) < 2:
        return float("nan")
    return float(cohen_kappa_score(first, second))


def krippendorff_alpha(ratings: pd.DataFrame) -> float:
    """Return Krippendorff's alpha of any number of judges (columns) on documents (rows; NaN: not judged), at most 1.

    It is the ordinal one: a difference counts by how many grades lie between. NaN where all grades are equal, or no
    document has two. After Krippendorff, Computing Krippendorff's Alpha-Reliability (2011).

    >>> krippendorff_alpha(pd.DataFrame({"anna": [0, 1, 2], "ben": [0, 1, 2]}))
    1.0
    """
    values = np.unique(ratings.to_numpy(dtype=np.float64, na_value=np.nan))
    values = values[~np.isnan(values)]
    counts = np.stack([(ratings == value).sum(axis=1) for value in values], axis=1) if len(values) else np.zeros((0, 0))
    counts = counts[counts.sum(axis=1) > 1].astype(np.float64)
    weights = 1 / (counts.sum(axis=1) - 1)
    coincidences = (counts * weights[:, None]).T @ counts - np.diag((counts * weights[:, None]).sum(axis=0))
    totals = coincidences.sum(axis=0)
    middles = totals.cumsum() - totals / 2
    distances = (middles[:, None] - middles) ** 2
    expected = (np.outer(totals, totals) * distances).sum()
    return float(1 - (totals.sum() - 1) * (coincidences * distances).sum() / expected) if expected else float("nan")


def judge_name(name: str) -> str:
    """Return a judge's name that can name a file, "" for the name of the user; MirblabError for another."""
    if not name:
        with suppress(OSError, KeyError, ImportError):  # a container may have no name for its user
            name = getpass.getuser()
    name = name or "judge"
    try:
        return paths.checked_name(name)
    except MirblabError as error:
        raise MirblabError(
            f"{name!r:.100} cannot be a judge's name, since a file has it; use letters, digits, '-' and '_'"
        ) from error


def _same_grades(ratings: pd.DataFrame) -> tuple[int, float]:
    return len(ratings), float(100 * (ratings.nunique(axis=1) == 1).mean())


def _best_first(means: pd.Series) -> list[str]:
    lower_first = measures.is_rank(str(means.name))
    return [str(name) for name in means.sort_values(ascending=lower_first, kind="stable").index]


def _as_names(judges: str | Sequence[str]) -> list[str]:
    """Return the names of judges, of which a text is one."""
    return [judges] if isinstance(judges, str) else [str(name) for name in judges]


def _digest_texts(collection: Collection, query_id: str, doc_id: str) -> str:
    """Return a hash of the two texts that were judged; other judgements and queries of a collection change nothing."""
    content = json.dumps([collection.query(query_id), collection.document(doc_id)])
    return blake2b(content.encode(), digest_size=8).hexdigest()


def _judgement_file(collection: Collection, judge: str) -> Path:
    return paths.home() / "judgements" / collection.name / f"{judge_name(judge)}.jsonl"


def _append_records(path: Path, records: list[dict[str, Any]]) -> None:
    """Add a line for each of *records*, flushed to disk; what the file has stays as it is.

    All lines are one call of the system that appends, so that two processes at once lose none. A process that sees half
    of another's line begins with a blank line, which readers pass over.
    """
    if not records:
        return
    lines = "".join(json.dumps(record) + "\n" for record in records)
    atomic_files.make_folder(path.parent)
    is_new = not path.exists()
    with atomic_files.writing(path):
        begun = "" if is_new or _ends_with_line(path) else "\n"
        with atomic_files.open_to_write(path, "ab") as file:
            file.write(f"{begun}{lines}".encode())
        atomic_files.flush_file(path)
        if is_new:
            atomic_files.flush_folder(path.parent)


def _ends_with_line(path: Path) -> bool:
    """Return whether a file is empty or ends with a line end; a writer that was killed may have left half a line."""
    size = path.stat().st_size
    if not size:  # another process has created it, and may write its first line meanwhile
        return True
    with open(path, "rb") as file:
        file.seek(size - 1)
        return file.read(1) == b"\n"  # one byte, since another process may have added lines


def _read_records(path: Path) -> list[dict[str, Any]]:
    """Return the judgements in a file, in its order, with a warning that counts incomplete lines."""
    records, damaged = [], []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        record: Any = None
        with suppress(ValueError, RecursionError):
            record = json.loads(line)
        if isinstance(record, dict) and all(isinstance(record.get(key), kind) for key, kind in FIELDS.items()):
            records.append({key: record[key] for key in FIELDS})
        elif line.strip():
            damaged.append(number)
    if damaged:
        shown = ", ".join(map(str, damaged[:5]))
        warnings.warn(
            f"{path}: {counted(len(damaged), 'incomplete line is', 'incomplete lines are')} passed over, line {shown}",
            stacklevel=3,
        )
    return records
