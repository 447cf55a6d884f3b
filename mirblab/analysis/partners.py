"""partners: the ranks of the equivalent partner of each statement, and the vocabulary that partners share."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, unknown
from mirblab.data.collection import Collection
from mirblab.display.escape import format_interval
from mirblab.display.result_tables import best_and_second
from mirblab.display.table import Table
from mirblab.evaluation.measures import QueryWarning, evaluate
from mirblab.evaluation.significance import spearman_interval
from mirblab.retrieval.bm25 import IDF, Vocabulary, count_terms
from mirblab.retrieval.systems import DEPTH, System
from mirblab.retrieval.systems import system as system_named
from mirblab.retrieval.tokenizers import token_reader

MEASURES = ("R@1", "R@3", "R@5", "R@10", "R@20", "RR", "Rank")
_SIDE = re.compile(r"(.+)-([12])")

SHARES = ("overlap", "rival_overlap", "margin")

TASKS = ("Equivalence", "Lean View Retrieval")  # of cards whose pairs say the same
EQUIVALENT, RELEVANT, DISTRACTOR = "equivalent", "judged relevant", "distractor"

_RECALL = "Recall@"
_DIGITS = {"MRR": 3, "Mean rank": 1}


def partner_values(
    system: System | str | pd.DataFrame,
    collection: Collection,
    measures: Sequence[str] = MEASURES,
    *,
    distractors: bool = True,
) -> pd.DataFrame:
    """Return the value of each measure for each statement that has a partner, the only document relevant to it.

    Columns as `evaluate`: system, collection, measure, query_id, value; then pair, field and domain_pair. All other
    statements compete, the statement itself never does; without *distractors* only those that have a partner, too, as
    in the 540 statements of Ye et al. `Rank` is the partner's rank, from 1; lower is better.

    A *system*, or its name, is searched to the depth of the whole collection. What it does not return (BM25: no token
    in common) ties behind all that it does, so such a partner has the middle of the ranks that are left as its Rank,
    and 0 for the other measures. A run that is given, imported, or fused from shallow ones may have been cut, where
    ranks would be wrong unseen: it must hold every other statement for every statement, else MirblabError. The
    measures are those of Ye et al. 2026, Tables 2 and 5.

    >>> from mirblab.sources.catalogue import load
    >>> values = partner_values("bm25", load("mini-pairs"), ["RR", "Rank"])
    >>> len(values), values.pair.nunique()
    (576, 144)
    """
    found = partner_statements(collection)
    others = len(collection.doc_ids if distractors else found) - 1
    run, whole = _deep_run(system, collection)
    run = run[run.doc_id.astype("str") != run.query_id.astype("str")]
    run = run if distractors else run[run.doc_id.isin(found.query_id)]
    counts = run.query_id.astype("str").value_counts().reindex(found.query_id, fill_value=0)
    if not whole and (counts < others).any():
        raise MirblabError(_too_shallow(counts, others))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QueryWarning)  # what the run lacks is placed below
        values = evaluate(run, collection, list(dict.fromkeys([*measures, "Rank", "RR"])))
    table = values.astype({"query_id": "str", "measure": "str"}).merge(
        found.drop(columns="partner"), on="query_id", validate="many_to_one"
    )
    absent = set(table.query_id[(table.measure == "RR") & (table.value == 0)])
    left = (table.measure == "Rank") & table.query_id.isin(absent)
    table.loc[left, "value"] = (counts.loc[table.query_id[left]].to_numpy() + 1 + others) / 2
    return table[table.measure.isin(measures)].reset_index(drop=True)


def _deep_run(system: System | str | pd.DataFrame, collection: Collection) -> tuple[pd.DataFrame, bool]:
    """Return the run, and whether what it lacks is known to have been left out by the system, not cut."""
    if isinstance(system, pd.DataFrame):
        return system, False
    made = system_named(system) if isinstance(system, str) else system
    return made.search(collection, depth=len(collection.doc_ids)), not _may_be_cut(made, len(collection.doc_ids))


def _may_be_cut(system: System, n_docs: int) -> bool:
    """Return whether a system may lack what it would have returned deeper: imported runs, and fusion of cut runs."""
    kind = system.settings["kind"]
    is_cut = kind == "imported" or (kind == "fusion" and system.settings.get("depth", DEPTH) < n_docs)
    return is_cut or any(_may_be_cut(part, n_docs) for part in system.parts)


def _too_shallow(counts: pd.Series, others: int) -> str:
    short = counts[counts < others]
    return (
        f"the run holds {short.iloc[0]:,} of the {others:,} other statements for '{short.index[0]}', and too few for "
        f"{len(short):,} of {len(counts):,}: beyond them a rank is not known; give a run of depth {others:,} or "
        "more, or the name of a system that cuts nothing"
    )


def partner_table(
    intervals: pd.DataFrame,
    *,
    measures: Sequence[str] = (),
    others: int = 0,
    brackets: bool = True,
    caption: str = "",
) -> Table:
    """Return systems × Recall@1 … Recall@20, MRR, Mean rank, each with its [low, high], best of a column in bold.

    *intervals* are from `significance.bootstrap_intervals` of `partners.mean_by_pair`, so pairs are resampled. Recall
    is in percent, MRR from 0 to 1, the mean rank from 1, lower is better. Of several collections (domain pairs) each
    has its rows, and its own best. *measures* narrows the columns; with *others*, how many statements compete, the last
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
    wide = {end: _printed_values(intervals, end, names) for end in ("mean", "low", "high")}
    texts = [[format_interval(a, b, f".{d}f") for a, b, d in zip(*rows, map(_digits, wide["mean"]), strict=True)]
             for rows in zip(wide["low"].to_numpy(), wide["high"].to_numpy(), strict=True)]  # fmt: skip
    shown = Table(wide["mean"], caption or "How often the partner is found, and its mean rank.", _notes(intervals), 1)
    shown.formats = {name: f".{_digits(name)}f" for name in wide["mean"]}
    shown.beside = pd.DataFrame(texts, *wide["mean"].axes) if brackets else shown.beside
    shown.extra = {end: wide[end] for end in ("low", "high")}
    shown.marks = _best_marks(wide["mean"], intervals)
    return _with_chance(shown, names, others) if others else shown


def _best_marks(frame: pd.DataFrame, intervals: pd.DataFrame) -> pd.DataFrame:
    """Return best and second of each column among the rows of one collection; of ranks the lowest is best."""
    up = frame.assign(**{"Mean rank": -frame["Mean rank"]}) if "Mean rank" in frame else frame
    blocks = _row_names(intervals).groupby(intervals.collection.astype("str"), sort=False).unique()
    marked = [
        pd.concat([best_and_second(up.loc[rows, [name]], _digits(name), ()) for name in up], axis=1) for rows in blocks
    ]
    return pd.concat(marked).loc[frame.index]


def _row_names(intervals: pd.DataFrame) -> pd.Series:
    """Return the name of each row: the system, after its collection where there are several."""
    systems = intervals.system.astype("str")
    several = intervals.collection.nunique() > 1
    return intervals.collection.astype("str") + ": " + systems if several else systems


def _digits(column: str) -> int:
    return _DIGITS.get(column, 1)


def _printed_values(intervals: pd.DataFrame, end: str, names: Sequence[str]) -> pd.DataFrame:
    """Return one of mean, low and high in printed units under printed names, rows and columns as they come."""
    rows = _row_names(intervals)
    frame = intervals.assign(row=rows).pivot(index="row", columns="measure", values=end)
    frame = frame.loc[list(dict.fromkeys(rows)), list(names)]
    frame *= [100 if name.startswith("R@") else 1 for name in names]
    return frame.set_axis([_printed_name(name) for name in names], axis=1).rename_axis(index=None, columns=None)


def _printed_name(measure: str) -> str:
    return {"RR": "MRR", "Rank": "Mean rank"}.get(measure, measure.replace("R@", _RECALL))


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


def mean_by_pair(values: pd.DataFrame, *, domains: bool = False) -> pd.DataFrame:
    """Return one value per pair, the mean of its two directions, with the pair's id as query_id.

    *values* are from `partners`. The two directions of a pair are not independent, so pairs are what intervals and
    tests resample. With *domains* the collection of a row is its pair of fields, for tables by domain pair.

    >>> from mirblab.sources.catalogue import load
    >>> table = mean_by_pair(partner_values("bm25", load("mini-pairs"), ["RR"]), domains=True)
    >>> table.columns.tolist(), table.collection.nunique()
    (['system', 'collection', 'measure', 'query_id', 'value'], 9)
    """
    named = values.assign(query_id=values.pair, collection=values.domain_pair if domains else values.collection)
    keys = ["system", "collection", "measure", "query_id"]
    return named.groupby(keys, sort=False, observed=True).value.mean().reset_index()


def vocabulary_overlaps(collection: Collection, *, tokenizer: str = "math") -> pd.DataFrame:
    """Return how much vocabulary each statement shares with its partner, and with the best rival of its own field.

    The overlap of two statements is the idf of the tokens that both have over the idf of the tokens that either has:
    symmetric, 0 (none in common) to 1 (the same tokens). Tokens count once, however often they occur; idf is that of
    BM25 (Lucene's) over all statements of the collection; *tokenizer* is one of `tokenizers`. The shares of a query's
    words in `query_features` are neither weighted nor symmetric.

    Columns: collection, query_id, pair, field, domain_pair; overlap, with the partner; rival, the other statement of
    the same field that shares most, the smaller id of equals, and rival_overlap ("" and NaN where the field has no
    other); margin = overlap - rival_overlap, below 0 where a rival shares more; trapped, whether it is.

    >>> from mirblab.sources.catalogue import load
    >>> table = vocabulary_overlaps(load("mini-pairs"))
    >>> len(table), bool(table.overlap.between(0, 1).all())
    (288, True)
    """
    found = partner_statements(collection)
    shared = _pairwise_overlaps(collection.texts, tokenizer)
    places = collection.doc_ids.get_indexer(found.query_id)
    partner = collection.doc_ids.get_indexer(found.partner)
    fields = collection.first_tags
    rivals = np.where(fields[places][:, None] == fields[None], shared[places], -1.0)
    rivals[np.arange(len(found)), places] = rivals[np.arange(len(found)), partner] = -1.0
    best = rivals.argmax(axis=1)
    most = rivals.max(axis=1)
    table = found.drop(columns="partner").assign(
        overlap=shared[places, partner],
        rival=np.where(most < 0, "", collection.doc_ids.to_numpy()[best]),
        rival_overlap=np.where(most < 0, np.nan, most),
    )
    table.insert(0, "collection", collection.name)
    margin = table.overlap - table.rival_overlap
    return table.assign(margin=margin, trapped=margin < 0)


def _pairwise_overlaps(texts: list[str], tokenizer: str) -> np.ndarray:
    """Return the overlap of every two texts, (n, n)."""
    vocabulary = Vocabulary()
    read = token_reader(tokenizer, vocabulary.__getitem__)
    has, _ = count_terms(map(read, texts), vocabulary)
    has.data[:] = 1
    found_in = np.bincount(has.indices, minlength=has.shape[1])
    idf = np.array([IDF["lucene"](df, len(texts)) for df in found_in.tolist()], dtype=np.float64)
    both = ((has * idf) @ has.T).toarray() if has.shape[1] else np.zeros((len(texts), len(texts)))
    own = np.diag(both)
    either = own[:, None] + own[None] - both
    return np.divide(both, either, out=np.zeros_like(both), where=either > 0)


def overlap_points(values: pd.DataFrame, shares: pd.DataFrame) -> pd.DataFrame:
    """Return one row per system and statement: the rank of its partner beside what it shares, for plots.

    *values* are from `partners` and hold Rank, *shares* from `overlaps`. Columns: system, rank, then those of
    *shares*. Raises MirblabError when there is no Rank, or a statement of the values has no share.

    >>> from mirblab.analysis.partners import partner_values
    >>> from mirblab.sources.catalogue import load
    >>> collection = load("mini-pairs")
    >>> points = overlap_points(partner_values("bm25", collection), vocabulary_overlaps(collection))
    >>> points.columns[:4].tolist(), len(points)
    (['system', 'rank', 'collection', 'query_id'], 288)
    """
    ranks = values[values.measure == "Rank"].astype({"collection": "str", "query_id": "str", "system": "str"})
    if ranks.empty:
        raise unknown("measure", "Rank", map(str, values.measure.unique()))
    keys = ["collection", "query_id"]
    points = ranks[["system", *keys, "value"]].rename(columns={"value": "rank"}).merge(shares, on=keys)
    if len(points) < len(ranks):
        raise MirblabError(f"{len(ranks) - len(points):,} of {len(ranks):,} statements have no share of vocabulary; "
                           "compute both from the same collection")  # fmt: skip
    return points[["system", "rank", *(name for name in points if name not in ("system", "rank"))]]


def rank_correlations(
    points: pd.DataFrame, *, level: float = 0.95, n_resamples: int = 1_000, seed: int = 0
) -> pd.DataFrame:
    """Return how the partner's rank goes with what statements share: Spearman's rho by system, pairs resampled.

    *points* are from `overlap_points`. Columns: collection, system, share (overlap, rival_overlap, margin), rho (-1
    to 1; below 0: the more is shared, the better the rank), low, high, n_pairs. Both directions of a pair are points,
    and are drawn together. That a share goes with a rank does not say that it causes it. A share that does not vary,
    or that a statement lacks, is left out.

    >>> rows = [("s", 1, "p", 0.9), ("s", 2, "p", 0.8), ("s", 7, "q", 0.2), ("s", 9, "q", 0.1)]
    >>> table = pd.DataFrame(rows, columns=["system", "rank", "pair", "overlap"]).assign(collection="c")
    >>> rank_correlations(table).rho.tolist()
    [-1.0]
    """
    rows = []
    for (collection, system), part in points.groupby(["collection", "system"], sort=False, observed=True):
        groups = part.pair.to_numpy()
        for share in (name for name in SHARES if name in part and part[name].notna().all()):
            sample = part[[share, "rank"]].to_numpy(dtype=float)
            rho, low, high = spearman_interval(sample, groups, level=level, n_resamples=n_resamples, seed=seed)
            if rho == rho:
                rows.append((collection, system, share, rho, low, high, part.pair.nunique()))
    return pd.DataFrame(rows, columns=["collection", "system", "share", "rho", "low", "high", "n_pairs"])


def equivalence_statements(
    collection: Collection,
    n_pairs: int = 100,
    n_distractors: int = 0,
    seed: int = 0,
    fields: Sequence[str] = (),
) -> pd.DataFrame:
    """Return pairs and distractors: columns id, class_id, field, kind, text, tag.

    A pair is a query and its best judged document; its kind says what they are (`relation`): "equivalent" where the
    card's task says equivalence, else "judged relevant". `field` is the first tag where two fields are
    paired with each other (a subset of MELD), else "query" or "document"; `tag` is the first tag, or "". At most
    *n_pairs* pairs and *n_distractors* documents that nobody judged for these queries (kind "distractor") are drawn,
    by *seed*. With *fields* only statements whose first tag is one of them count. Raises MirblabError when nothing is
    judged relevant, and for a field that no document has.

    >>> from mirblab.sources.catalogue import load
    >>> points = equivalence_statements(load("mini-pairs"), n_pairs=2)
    >>> points.groupby("class_id").size().tolist()
    [2, 2]
    """
    inside = _in_fields(collection, fields)
    best = _best_pairs(collection)
    best = best[inside[best.document.to_numpy()]]
    if best.empty:
        raise MirblabError(f"{collection.name} has no query with a relevant document, so there is no pair to show")
    rng = np.random.default_rng(seed)
    chosen = best.iloc[np.sort(rng.permutation(len(best))[:n_pairs])]
    rows = [row for pair in chosen.itertuples() for row in _pair_rows(collection, pair.query, pair.document)]
    judged = collection.qrels[collection.qrels.query_id.cat.codes.isin(chosen["query"])]
    # A query that is a document too stands on the map already.
    own = collection.doc_ids.get_indexer(collection.query_ids[chosen["query"].to_numpy()])
    left = np.setdiff1d(np.flatnonzero(inside), [*judged.doc_id.cat.codes, *own])
    for place in np.sort(rng.permutation(left)[:n_distractors]):
        rows.append(_statement_row(collection, "document", int(place), "", DISTRACTOR))
    points = pd.DataFrame(rows).drop_duplicates("id", ignore_index=True)
    two_fields = points.tag.ne("").all() and points.tag.nunique() == 2
    return points.assign(field=points.tag if two_fields else points.field)


def _in_fields(collection: Collection, fields: Sequence[str]) -> np.ndarray:
    """Return which documents have one of the *fields* as first tag, bool (n_docs,); all of them without fields."""
    if not fields:
        return np.ones(len(collection.doc_ids), dtype=bool)
    tags = collection.first_tags
    for field in fields:
        if field not in tags:
            raise unknown("field", field, {tag for tag in tags if tag})
    return np.isin(tags, list(fields))


def _best_pairs(collection: Collection) -> pd.DataFrame:
    """Return each query's best judged document, as positions; a pair that is judged both ways counts once."""
    best = best_judged(collection)
    pairs = pd.DataFrame({"query": best.query_id.cat.codes.to_numpy(), "document": best.doc_id.cat.codes.to_numpy()})
    ids = zip(best.query_id.astype(str), best.doc_id.astype(str), strict=True)
    sides = ["\n".join(sorted(pair)) for pair in ids]
    return pairs[~pd.Series(sides, dtype="str").duplicated().to_numpy()]


def _pair_rows(collection: Collection, query: int, document: int) -> list[dict[str, str]]:
    name = str(collection.query_ids[query])
    kind = pair_relation(collection)
    return [
        _statement_row(collection, "query", query, name, kind),
        _statement_row(collection, "document", document, name, kind),
    ]


def _statement_row(collection: Collection, side: str, place: int, class_id: str, kind: str) -> dict[str, str]:
    ids, texts = collection.doc_ids, collection.texts
    table = collection.corpus
    if side == "query":
        ids, texts, table = collection.query_ids, collection.query_texts, collection.queries
    tags = table.tags.iloc[place] if "tags" in table else None
    name = str(ids[place])
    # A statement that is query and document is one point; an id alone does not make it one.
    both = name in collection.doc_ids and name in collection.query_ids
    is_one = both and collection.document(name) == collection.query(name)
    point = name if is_one else f"{side}:{name}"
    tag = tags[0] if tags else ""
    return {"id": point, "class_id": class_id, "field": side, "kind": kind, "text": texts[place], "tag": tag}


def partner_statements(collection: Collection) -> pd.DataFrame:
    """Return the statements that have a partner, by id: query_id, partner, pair, field, domain_pair, all text.

    Each is query and document under one id, that of its pair and -1 or -2. `field` is its first tag ("" without);
    `domain_pair` names the fields of both sides, the first one's first. Raises MirblabError for a collection that is
    not made of such pairs, which says what is wrong and where.

    >>> from mirblab.sources.catalogue import load
    >>> partner_statements(load("mini-pairs")).domain_pair.nunique()
    9
    """
    judged = collection.relevant
    found = dict(zip(judged.query_id.astype("str"), judged.doc_id.astype("str"), strict=True))
    if len(found) < len(judged) or len(found) < len(collection.query_ids):
        counts = f"{len(judged):,} relevant documents for {len(collection.query_ids):,} queries"
        raise MirblabError(
            f"{collection.name} is no collection of pairs: each statement has one partner, found {counts}"
        )
    for one, other in found.items():
        _check_pair(collection, one, other, found.get(other))
    fields = dict(zip(collection.doc_ids, collection.first_tags, strict=True))
    names = pd.Series(list(found), dtype="str")
    parts = names.str.extract(_SIDE)
    first, second = ((parts[0] + f"-{side}").map(fields) for side in (1, 2))
    columns = {"query_id": names, "partner": names.map(found), "pair": parts[0], "field": names.map(fields)}
    return pd.DataFrame(columns | {"domain_pair": (first + " / " + second).where(first.ne(""), "")})


def _check_pair(collection: Collection, one: str, other: str, back: str | None) -> None:
    """Raise MirblabError unless two statements are each other's partners, and each is query and document."""
    amiss = ""
    sides = [_SIDE.fullmatch(name) for name in (one, other)]
    if one == other or back != one:
        amiss = f"'{other}' is the partner of '{one}', whose partner is {f'{back!r}' if back else 'nothing'}"
    elif not all(sides) or sides[0][1] != sides[1][1]:
        amiss = f"the ids of two partners differ in their ends, -1 and -2, only; found '{one}' and '{other}'"
    elif one not in collection.doc_ids or collection.document(one) != collection.query(one):
        amiss = f"the query '{one}' is not a document of the same text under the same id"
    if amiss:
        raise MirblabError(f"{collection.name} is no collection of pairs: {amiss}")


def pair_relation(collection: Collection) -> str:
    """Return the relation of a query and its relevant document: "equivalent" or "judged relevant".

    Equivalent only where the task on the card says so (`TASKS`): a premise says something else than the theorem.

    >>> from mirblab.sources.catalogue import load
    >>> pair_relation(load("mini-pairs")), pair_relation(load("mini-premises"))
    ('equivalent', 'judged relevant')
    """
    return EQUIVALENT if collection.card.task in TASKS else RELEVANT


def best_judged(collection: Collection) -> pd.DataFrame:
    """Return the judgement of each query's most relevant document, the first by id where several are.

    Columns query_id, doc_id, relevance; a query without a relevant document has no row.

    >>> from mirblab.sources.catalogue import load
    >>> bool(best_judged(load("mini-qa")).query_id.is_unique)
    True
    """
    judged = collection.relevant
    judged = judged.sort_values(["query_id", "relevance", "doc_id"], ascending=[True, False, True])
    return judged.drop_duplicates("query_id")


def judged_grades(collection: Collection, query_id: str) -> dict[str, int]:
    """Return the relevance of every judged document of a query, by its id; empty where nothing is judged.

    >>> from mirblab.sources.catalogue import load
    >>> c = load("mini-qa")
    >>> max(judged_grades(c, c.query_ids[0]).values())
    3
    """
    judged = collection.qrels[(collection.qrels.query_id == query_id).to_numpy()]
    return dict(zip(judged.doc_id.astype("str"), judged.relevance.tolist(), strict=True))
