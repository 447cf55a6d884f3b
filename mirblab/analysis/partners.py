"""partners: the ranks of the equivalent partner of each statement, and the vocabulary that partners share."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, check_known, check_not_negative, check_positive, unknown
from mirblab.core.wording import counted
from mirblab.data.collection import Collection
from mirblab.display.result_tables import best_and_second
from mirblab.display.table_formats import Table
from mirblab.evaluation.measures import QueryWarning, evaluate, parse_measures
from mirblab.evaluation.significance import spearman_interval
from mirblab.retrieval.bm25 import IDF, Vocabulary, count_terms
from mirblab.retrieval.systems import DEPTH, System
from mirblab.retrieval.systems import system as system_named
from mirblab.retrieval.tokenizers import token_reader

MEASURES = ("R@1", "R@3", "R@5", "R@10", "R@20", "RR", "Rank")
_SIDE = re.compile(r"(.+)-([12])")

SHARES = ("overlap", "rival_overlap", "margin")

TASKS = ("Equivalence", "Lean View Retrieval")  # on cards whose pairs are equivalent
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

    Columns as `evaluate`, then pair, field and domain_pair. All other statements are ranked; without *distractors* only
    those that have a partner, as in the 540 statements of Ye et al. 2026 (Tables 2 and 5), whose measures these are.
    `Rank` is the partner's rank, from 1; lower is better.

    A *system*, or its name, is searched to the depth of the whole collection. Documents that it does not return (BM25:
    no token in common) share the ranks after all others: such a partner has the middle of these ranks as its Rank, and
    0 for the other measures. A run that is given, imported, or fused from cut runs may have been cut: it must rank
    every other statement for every statement, else MirblabError.

    >>> from mirblab.sources.catalogue import load
    >>> values = partner_values("bm25", load("mini-pairs"), ["RR", "Rank"])
    >>> len(values), values.pair.nunique()
    (576, 144)
    """
    names, statements = [str(measure) for measure in parse_measures(measures)], partner_statements(collection)
    others = len(collection.doc_ids if distractors else statements) - 1
    run, whole = _deep_run(system, collection)
    run = run[run.doc_id.astype("str") != run.query_id.astype("str")]
    run = run if distractors else run[run.doc_id.isin(statements.query_id)]
    counts = run.query_id.astype("str").value_counts().reindex(statements.query_id, fill_value=0)
    if not whole and (counts < others).any():
        raise MirblabError(_too_shallow(counts, others))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QueryWarning)  # the partners that the run lacks get their rank below
        values = evaluate(run, collection, list(dict.fromkeys([*names, "Rank", "RR"])))
    table = values.astype({"query_id": "str", "measure": "str"}).merge(
        statements.drop(columns="partner"), on="query_id", validate="many_to_one"
    )
    absent = set(table.query_id[(table.measure == "RR") & (table.value == 0)])
    left = (table.measure == "Rank") & table.query_id.isin(absent)
    table.loc[left, "value"] = (counts.loc[table.query_id[left]].to_numpy() + 1 + others) / 2
    return table[table.measure.isin(names)].reset_index(drop=True)


def _deep_run(system: System | str | pd.DataFrame, collection: Collection) -> tuple[pd.DataFrame, bool]:
    """Return the run, and whether it has every document that the system can return."""
    if isinstance(system, pd.DataFrame):
        return system, False
    made = system_named(system)
    return made.search(collection, depth=len(collection.doc_ids)), not _may_be_cut(made, len(collection.doc_ids))


def _may_be_cut(system: System, n_docs: int) -> bool:
    """Return whether a run may lack documents that the system can return: an imported run, or a fusion of cut runs."""
    kind = system.settings["kind"]
    is_cut = kind == "imported" or (kind == "fusion" and system.settings.get("depth", DEPTH) < n_docs)
    return is_cut or any(_may_be_cut(part, n_docs) for part in system.parts)


def _too_shallow(counts: pd.Series, others: int) -> str:
    short = counts[counts < others]
    return (
        f"the run ranks {short.iloc[0]:,} of {counted(others, 'other statement')} for '{short.index[0]}', and too few "
        f"for {len(short):,} of {counted(len(counts), 'statement')}, so that the ranks of the others are not known; "
        f"give a run of depth {others:,} or more, or the name of a system that does not cut its runs"
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
    is in percent, MRR from 0 to 1, the mean rank from 1 (lower is better). Each collection (domain pair) has its rows
    and its own best. *measures* selects columns; with *others*, the number of other statements, the last row has the
    expected values of a random order, and a value is marked only where its whole interval is better; without *brackets*
    the intervals are in the CSV only. MirblabError for a missing measure.

    >>> rows = [("c", "R@1", "s", 0.25, 0.2, 0.3, 9), ("c", "Rank", "s", 7.5, 6, 9, 9)]
    >>> names = ["collection", "measure", "system", "mean", "low", "high", "n_queries"]
    >>> print(partner_table(pd.DataFrame(rows, columns=names), brackets=False).to_markdown().splitlines()[4])
    | s | 25.0 | 7.5 |
    """
    known = [str(name) for name in intervals.measure.unique()]
    check_known("measure", measures, known)
    if intervals.empty:
        raise MirblabError("there are no intervals, so there is no table; give bootstrap_intervals(by_pair(values))")
    names = list(measures) or known
    wide = {end: _printed_values(intervals, end, names) for end in ("mean", "low", "high")}
    shown = Table(wide["mean"], caption or "How often the partner is found, and its mean rank.", _notes(intervals), 1)
    shown.formats = {str(name): f".{_digits(name)}f" for name in wide["mean"]}
    shown.add_intervals(wide["low"], wide["high"], printed=brackets)
    shown.marks = _best_marks(wide["mean"], intervals)
    return _with_chance(shown, names, others) if others else shown


def _best_marks(frame: pd.DataFrame, intervals: pd.DataFrame) -> pd.DataFrame:
    up = frame.assign(**{"Mean rank": -frame["Mean rank"]}) if "Mean rank" in frame else frame
    blocks = _row_names(intervals).groupby(intervals.collection.astype("str"), sort=False).unique()
    marked = [
        pd.concat([best_and_second(up.loc[rows, [name]], _digits(name), ()) for name in up], axis=1) for rows in blocks
    ]
    return pd.concat(marked).loc[frame.index]


def _row_names(intervals: pd.DataFrame) -> pd.Series:
    systems = intervals.system.astype("str")
    several = intervals.collection.nunique() > 1
    return intervals.collection.astype("str") + ": " + systems if several else systems


def _digits(column: object) -> int:
    return _DIGITS.get(str(column), 1)


def _printed_values(intervals: pd.DataFrame, end: str, names: Sequence[str]) -> pd.DataFrame:
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
        "In brackets: 95 % bootstrap interval of the mean over resampled pairs.",
        "Recall in percent, MRR from 0 to 1; mean rank: lower is better.",
    ]
    if intervals.system.nunique() > 1:
        among = " within each collection or pair of fields" if len(counts) > 1 else ""
        notes.append(
            f"Bold: best of the column{among}; underlined: second. Systems that print the same share the mark."
        )
    return notes


def _with_chance(shown: Table, names: Sequence[str], others: int) -> Table:
    harmonic = (1 / np.arange(1, others + 1)).mean()
    expected = {"RR": harmonic, "Rank": (others + 1) / 2}
    expected |= {name: 100 * min(1, int(name[2:]) / others) for name in names if name.startswith("R@")}
    chance = pd.Series([expected.get(name, np.nan) for name in names], shown.frame.columns)
    is_better = shown.extra["low"].gt(chance) | chance.isna()
    if "Mean rank" in is_better:
        is_better["Mean rank"] = shown.extra["high"]["Mean rank"] < chance["Mean rank"]
    shown.marks = shown.marks.where(is_better, "")
    shown.frame.loc["by chance"] = chance
    for part in (shown.marks, shown.beside):
        if part.size:
            part.loc["by chance"] = ""
    shown.extra = {end: part.reindex(shown.frame.index) for end, part in shown.extra.items()}
    shown.notes.append(f"By chance: what a random order of the {others:,} other statements is expected to give; a "
                       "value is marked only where its whole interval is better.")  # fmt: skip
    return shown


def mean_by_pair(values: pd.DataFrame, *, domains: bool = False) -> pd.DataFrame:
    """Return one value per pair, the mean of its two directions, with the pair's id as query_id.

    *values* are from `partner_values`. The two directions of a pair are not independent, so intervals and tests
    resample pairs. With *domains* the collection of a row is its pair of fields, for tables by domain pair.

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

    The overlap is the idf of the tokens that both statements have over the idf of the tokens that either has:
    symmetric, 0 (none in common) to 1 (the same tokens). Tokens count once; idf is that of BM25 (Lucene's) over all
    statements of the collection; *tokenizer* is one of `tokenizers`.

    Columns: collection, query_id, pair, field, domain_pair; overlap, with the partner; rival, the other statement of
    the same field that shares most (of equal ones the smallest id), and rival_overlap ("" and NaN where the field has
    no other); margin = overlap - rival_overlap; trapped, whether it is below 0.

    >>> from mirblab.sources.catalogue import load
    >>> table = vocabulary_overlaps(load("mini-pairs"))
    >>> len(table), bool(table.overlap.between(0, 1).all())
    (288, True)
    """
    statements = partner_statements(collection)
    shared = _pairwise_overlaps(collection.texts, tokenizer)
    places, partner = (collection.doc_ids.get_indexer(pd.Index(statements[name])) for name in ("query_id", "partner"))
    fields = collection.first_tags
    rivals = np.where(fields[places][:, None] == fields[None], shared[places], -1.0)
    rivals[np.arange(len(statements)), places] = rivals[np.arange(len(statements)), partner] = -1.0
    best = rivals.argmax(axis=1)
    most = rivals.max(axis=1)
    table = statements.drop(columns="partner").assign(
        overlap=shared[places, partner],
        rival=np.where(most < 0, "", collection.doc_ids.to_numpy()[best]),
        rival_overlap=np.where(most < 0, np.nan, most),
    )
    table.insert(0, "collection", collection.name)
    margin = table.overlap - table.rival_overlap
    return table.assign(margin=margin, trapped=margin < 0)


def _pairwise_overlaps(texts: Sequence[str], tokenizer: str) -> np.ndarray:
    vocabulary = Vocabulary()
    read = token_reader(tokenizer, vocabulary.__getitem__)
    has, _ = count_terms(map(read, texts), vocabulary)
    has.data[:] = 1
    frequencies = np.bincount(has.indices, minlength=has.shape[1])
    idf = np.array([IDF["lucene"](df, len(texts)) for df in frequencies.tolist()], dtype=np.float64)
    common = ((has * idf) @ has.T).toarray() if has.shape[1] else np.zeros((len(texts), len(texts)))
    weights = np.diag(common)
    either = weights[:, None] + weights[None] - common
    return np.divide(common, either, out=np.zeros_like(common), where=either > 0)


def overlap_points(values: pd.DataFrame, shares: pd.DataFrame) -> pd.DataFrame:
    """Return one row per system and statement, for plots: system, rank of its partner, then the columns of *shares*.

    *values* are from `partner_values` and hold Rank, *shares* from `vocabulary_overlaps`. MirblabError when there is no
    Rank, or a statement of the values has no share.

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
        without = counted(len(ranks) - len(points), "statement has", "statements have")
        raise MirblabError(f"{without} no share of vocabulary; compute both from the same collection")
    return points[["system", "rank", *(name for name in points if name not in ("system", "rank"))]]


def rank_correlations(
    points: pd.DataFrame, *, level: float = 0.95, n_resamples: int = 1_000, seed: int = 0
) -> pd.DataFrame:
    """Return Spearman's rho of the partner's rank and the vocabulary that statements share, by system, pairs resampled.

    *points* are from `overlap_points`. Columns: collection, system, share (overlap, rival_overlap, margin), rho (-1 to
    1; below 0: the more is shared, the better the rank), low, high, n_pairs. Both directions of a pair are points, and
    are drawn together. A share that does not vary, or that a statement lacks, is left out.

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

    A pair is a query and its best judged document; kind is "equivalent" where the card's task says so, else "judged
    relevant". `field` is the first tag where two fields are paired with each other (a subset of MELD), else "query" or
    "document"; `tag` is the first tag, or "". At most *n_pairs* pairs and *n_distractors* documents that nobody judged
    for these queries (kind "distractor") are drawn, by *seed*. With *fields* only statements whose first tag is one of
    them count. No two pairs have a statement in common: of several, the first by query counts, and
    `attrs["left_out"]` says how many others there are. MirblabError when nothing is judged relevant, and for a field
    that no document has.

    >>> from mirblab.sources.catalogue import load
    >>> points = equivalence_statements(load("mini-pairs"), n_pairs=2)
    >>> points.groupby("class_id").size().tolist()
    [2, 2]
    """
    check_positive(n_pairs=n_pairs)
    check_not_negative(n_distractors=n_distractors, seed=seed)
    inside = _in_fields(collection, fields)
    best = _best_pairs(collection)
    best = best[inside[best.document.to_numpy()]]
    if best.empty:
        raise MirblabError(f"{collection.name} has no query with a relevant document, so there is no pair to show")
    n_all, best = len(best), best[_are_apart(collection, best)]
    rng = np.random.default_rng(seed)
    chosen = best.iloc[np.sort(rng.permutation(len(best))[:n_pairs])]
    kind, names = pair_relation(collection), collection.query_ids[chosen["query"].to_numpy()]
    rows = [
        _statement_row(collection, side, place, name, kind)
        for name, query, document in zip(names, chosen["query"], chosen.document, strict=True)
        for side, place in (("query", query), ("document", document))
    ]
    judged = collection.qrels[collection.qrels.query_id.cat.codes.isin(chosen["query"])]
    # A query that is also a document is already on the map.
    query_documents = collection.doc_ids.get_indexer(names)
    unjudged = np.setdiff1d(np.flatnonzero(inside), [*judged.doc_id.cat.codes, *query_documents])
    for place in np.sort(rng.permutation(unjudged)[:n_distractors]):
        rows.append(_statement_row(collection, "document", int(place), "", DISTRACTOR))
    points = pd.DataFrame(rows).drop_duplicates("id", ignore_index=True)
    two_fields = points.tag.ne("").all() and points.tag.nunique() == 2
    points = points.assign(field=points.tag if two_fields else points.field)
    points.attrs["left_out"] = n_all - len(best)
    return points


def _in_fields(collection: Collection, fields: Sequence[str]) -> np.ndarray:
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


def _are_apart(collection: Collection, pairs: pd.DataFrame) -> np.ndarray:
    """Return which pairs, bool (n_pairs,), have no statement in common with an earlier one that has none either."""
    taken, kept = set[str](), []
    for query, document in zip(pairs["query"], pairs.document, strict=True):
        points = {_point(collection, "query", query), _point(collection, "document", document)}
        kept.append(taken.isdisjoint(points))
        taken |= points if kept[-1] else set()
    return np.array(kept, dtype=bool)


def _point(collection: Collection, side: str, place: int) -> str:
    """Return the id of a statement; a query and a document of one id are one statement if their texts are the same."""
    name = str((collection.query_ids if side == "query" else collection.doc_ids)[place])
    is_both = name in collection.doc_ids and name in collection.query_ids
    return name if is_both and collection.document(name) == collection.query(name) else f"{side}:{name}"


def _statement_row(collection: Collection, side: str, place: int, class_id: str, kind: str) -> dict[str, str]:
    texts, table = collection.texts, collection.corpus
    if side == "query":
        texts, table = collection.query_texts, collection.queries
    tags = table.tags.iloc[place] if "tags" in table else None
    tag = tags[0] if tags else ""
    point = _point(collection, side, place)
    return {"id": point, "class_id": class_id, "field": side, "kind": kind, "text": texts[place], "tag": tag}


def partner_statements(collection: Collection) -> pd.DataFrame:
    """Return the statements that have a partner, by id: query_id, partner, pair, field, domain_pair, all text.

    Each is query and document under one id, that of its pair and -1 or -2; MirblabError for other collections.
    """
    judged = collection.relevant
    partners = dict(zip(judged.query_id.astype("str"), judged.doc_id.astype("str"), strict=True))
    if len(partners) < len(judged) or len(partners) < len(collection.query_ids):
        counts = f"{counted(len(judged), 'relevant document')} for {counted(len(collection.query_ids), 'query')}"
        raise MirblabError(
            f"{collection.name} is no collection of pairs: each statement has one partner, found {counts}"
        )
    for name, partner in partners.items():
        _check_pair(collection, name, partner, partners.get(partner))
    fields = dict(zip(collection.doc_ids, collection.first_tags, strict=True))
    names = pd.Series(list(partners), dtype="str")
    parts = names.str.extract(_SIDE)
    first, second = ((parts[0] + f"-{side}").map(fields) for side in (1, 2))
    columns = {"query_id": names, "partner": names.map(partners), "pair": parts[0], "field": names.map(fields)}
    return pd.DataFrame(columns | {"domain_pair": (first + " / " + second).where(first.ne(""), "")})


def _check_pair(collection: Collection, name: str, partner: str, back: str | None) -> None:
    problem = ""
    first, second = _SIDE.fullmatch(name), _SIDE.fullmatch(partner)
    if name == partner or back != name:
        problem = f"'{partner}' is the partner of '{name}', whose partner is {f'{back!r}' if back else 'nothing'}"
    elif not first or not second or first[1] != second[1]:
        problem = f"the ids of two partners differ in their ends, -1 and -2, only; found '{name}' and '{partner}'"
    elif name not in collection.doc_ids or collection.document(name) != collection.query(name):
        problem = f"the query '{name}' is not a document of the same text under the same id"
    if problem:
        raise MirblabError(f"{collection.name} is no collection of pairs: {problem}")


def pair_relation(collection: Collection) -> str:
    """Return "equivalent" where the task on the card says so (`TASKS`), else "judged relevant", as a premise is."""
    return EQUIVALENT if collection.card.task in TASKS else RELEVANT


def best_judged(collection: Collection) -> pd.DataFrame:
    """Return each query's most relevant document, the first by id where several are: query_id, doc_id, relevance."""
    judged = collection.relevant
    judged = judged.sort_values(["query_id", "relevance", "doc_id"], ascending=[True, False, True])
    return judged.drop_duplicates("query_id")


def judged_grades(collection: Collection, query_id: str) -> dict[str, int]:
    """Return the relevance of every judged document of a query, by its id; empty where nothing is judged."""
    judged = collection.qrels[(collection.qrels.query_id == query_id).to_numpy()]
    return dict(zip(judged.doc_id.astype("str"), judged.relevance.tolist(), strict=True))
