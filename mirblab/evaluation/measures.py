"""The measures: nDCG, AP, P, R, RR, Success, Rprec, Bpref, infAP, RBP, ERR and others, and the prime forms of some."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from inspect import isfunction
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.core.ids import find_positions
from mirblab.core.wording import counted
from mirblab.data.runs import rename_pyterrier, system_of
from mirblab.evaluation.judged_ranks import JudgedRanks, Judgements, place_within_query

_EPSILON = 1e-5  # by which trec_eval smooths infAP
_FROM, _MEAN = " from ", "mean of "
_NEVER_ZERO = ("Rank", "RBPresidual")  # measures that are not 0 for a query that is not in the run
_ANY_RELEVANCE = (*_NEVER_ZERO, "Judged")  # those that need not be 0 where nothing is relevant
_PLAIN_FORMS = {"GroupR": "R", "GroupSuccess": "Success"}  # of measures of groups
_OTHER_NAMES = {
    "map": "AP", "mrr": "RR", "recip_rank": "RR", "mr": "Rank", "recall": "R", "precision": "P", "hit": "Success",
    "ndcg_cut": "nDCG", "map_cut": "AP", "group_recall": "GroupR", "group_success": "GroupSuccess",
}  # fmt: skip
_WRITTEN = re.compile(r"([A-Za-z_]*[A-Za-z])('?)(?:\(p=(0?\.[0-9]+)\))?(?:[@_]([1-9][0-9]*))?")
_PRIMES = str.maketrans("′’`", "'''")
OwnFormula = Callable[[np.ndarray, np.ndarray], float]
AnyMeasure = Any  # a name, a `Measure`, a measure of ir_measures, or a function, see `parse_measure`


class QueryWarning(UserWarning):
    """No query is judged; some score 0, which the run lacks or have nothing relevant; or a cutoff exceeds the lists."""


@dataclass(frozen=True)
class Measure:
    """A measure as written in papers: name, cutoff (None: the whole ranking), whether it is prime, persistence p."""

    name: str
    k: int | None = None
    prime: bool = False
    p: float | None = None

    def __str__(self) -> str:
        p = "" if self.p is None else f"(p={self.p:g})"
        return f"{self.name}{chr(39) if self.prime else ''}{p}{'' if self.k is None else f'@{self.k}'}"

    @property
    def is_binary(self) -> bool:
        """Return whether documents are relevant or not to this measure, whatever their grade."""
        return DEFINITIONS[self.name].binary

    def values(self, judged: JudgedRanks) -> np.ndarray:
        """Return one number per query, shape (n_queries,)."""
        arguments = (self.k,) if self.p is None else (self.k, self.p)
        return DEFINITIONS[self.name].formula(judged.prime() if self.prime else judged, *arguments)


@dataclass(frozen=True)
class OwnMeasure(Measure):
    """A measure that is a function of two arrays for each query; its name is the function's.

    The first array has the relevance of the returned documents, best first, NaN for an unjudged one; the second has the
    relevance of all documents that are judged for the query.
    """

    function: OwnFormula = field(kw_only=True)
    is_binary = False

    def values(self, judged: JudgedRanks) -> np.ndarray:
        n_queries, judgements = len(judged.returned), judged.judgements
        numbers = np.empty(n_queries)
        ranks = np.searchsorted(judged.query, np.arange(n_queries + 1))  # where each query's rows begin
        known = np.searchsorted(judgements.query, np.arange(n_queries + 1))
        for query, n_returned in enumerate(judged.returned):
            rows = slice(ranks[query], ranks[query + 1])
            ranked = np.full(n_returned, np.nan)
            ranked[judged.rank[rows] - 1] = judged.relevance[rows]
            numbers[query] = float(self.function(ranked, judgements.relevance[known[query] : known[query + 1]]))
        bad = np.flatnonzero(~np.isfinite(numbers))
        if len(bad):
            raise MirblabError(
                f"the measure '{self.name}' is {numbers[bad[0]]} for query '{judgements.query_ids[bad[0]]}' "
                f"(not finite for {len(bad):,} of {counted(n_queries, 'query')}); return 0 where it is not defined"
            )
        return numbers


def evaluate(
    run: pd.DataFrame,
    qrels: Any,
    measures: Iterable[AnyMeasure] | AnyMeasure,
    relevant_from: int | None = None,
) -> pd.DataFrame:
    """Return the value of each measure for each query of the qrels: system, collection, measure, query_id, value.

    *qrels* is a Collection or a table query_id, doc_id, relevance. *measures* are names (see `parse_measure`), measures
    of the package ir_measures, or functions of your own (see `OwnMeasure`). Binary measures count a relevance from
    *relevant_from* on (None: as the collection's card says, else 1); nDCG takes relevance itself as gain. Rows go by
    measure, in the given order, then by query_id. The values equal trec_eval's; a negative relevance gains nothing and
    is no judgement to the prime measures and to Bpref. Both tables may have PyTerrier's columns (qid, docno, label).

    A query that the run lacks, or that has no relevant document, scores 0 (Rank: see `first_relevant_rank`) and is
    named in `attrs["not_in_run"]` or `attrs["without_relevant"]` and in a QueryWarning; another one says that no query
    is judged, or that the run's lists of a Collection are shorter than a cutoff. `attrs["not_judged"]` counts the
    queries of the run that the qrels lack; they have no row. The run's attrs `origin` and `note` become columns for
    tables to show; a `remainder` is noted with measures that use all documents, and what the QueryWarning says of
    queries that score 0 with all. MirblabError for broken tables and unknown measures.

    >>> run = pd.DataFrame({"query_id": "q1", "doc_id": ["a", "b", "c"], "score": [3, 2, 1]})
    >>> qrels = pd.DataFrame({"query_id": "q1", "doc_id": ["b", "c"], "relevance": [0, 1]})
    >>> evaluate(run, qrels, ["RR", "RR'", "P@2"]).value.round(3).tolist()
    [0.333, 0.5, 0.0]
    """
    wanted = list(measures) if isinstance(measures, Iterable) and not isinstance(measures, str) else [measures]
    parsed = parse_measures(wanted)
    judged = _judge(run, qrels, relevant_from)
    values = _value_table(judged, parsed, system_of(run), _collection(qrels, run))
    if run.attrs.get("origin"):  # a run of others, which tables mark
        values["origin"] = str(run.attrs["origin"])
    zero = _note_zero_queries(values, judged, parsed, run)
    if not isinstance(qrels, pd.DataFrame):
        _warn_of_short_lists(judged, parsed, run, len(qrels.doc_ids))
    notes = ["; ".join(filter(None, [_measure_note(measure, run), *zero[str(measure)]])) for measure in parsed]
    if any(notes):
        values["note"] = np.repeat(notes, len(judged.returned))
    return values


def evaluate_from_grades(run: pd.DataFrame, qrels: Any, wanted: Sequence[str]) -> pd.DataFrame:
    """Return the values of measures as `measures.evaluate` does, each from its own smallest relevant grade.

    "Bpref from 3" counts a relevance of 3 or more; "Bpref" alone counts what the collection's card says. "mean of
    AP',RR" is the mean of both for each query, by which `fusion.cross_validated` chooses weights. MirblabError for a
    grade that is no number.

    >>> run = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    >>> qrels = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "relevance": [1, 3]})
    >>> evaluate_from_grades(run, qrels, ["RR from 1", "RR from 3"])[["measure", "value"]].values.tolist()
    [['RR from 1', 1.0], ['RR from 3', 0.5]]
    """
    if not len(wanted):
        raise MirblabError("there is nothing to measure; name a measure, for example 'Bpref from 1'")
    parsed = {name: [_parse_graded(part) for part in name.removeprefix(_MEAN).split(",")] for name in wanted}
    by_grade: dict[int | None, list[str]] = {}
    for measure, grade in dict.fromkeys(chain.from_iterable(parsed.values())):
        by_grade.setdefault(grade, []).append(measure)
    values: dict[tuple[str, int | None], pd.DataFrame] = {}
    for grade, names in by_grade.items():
        table = evaluate(run, qrels, names, grade)
        values |= {(name, grade): table[table.measure == name].reset_index(drop=True) for name in names}
    tables = []
    for name, parts in parsed.items():
        mean = sum(values[part].value for part in parts) / len(parts)
        tables.append(values[parts[0]].assign(measure=name, value=mean))
    return pd.concat(tables, ignore_index=True)


def ceiling(
    run: pd.DataFrame, qrels: Any, measure: AnyMeasure, depth: int, relevant_from: int | None = None
) -> pd.DataFrame:
    """Return the values of *measure*, as in `evaluate`, if each query's first *depth* documents were in the best order.

    Deeper documents keep their ranks, so this is an upper bound for every reranker of that depth. MirblabError for
    GroupR and GroupSuccess, for which no order by relevance is the best.

    >>> run = pd.DataFrame({"query_id": "q1", "doc_id": ["a", "b", "c"], "score": [3, 2, 1]})
    >>> qrels = pd.DataFrame({"query_id": "q1", "doc_id": ["b", "c"], "relevance": [0, 1]})
    >>> [round(ceiling(run, qrels, "RR", depth).value.item(), 3) for depth in (2, 3)]
    [0.333, 1.0]
    """
    parsed = parse_measure(measure)
    if parsed.name in _PLAIN_FORMS:
        plain = Measure(_PLAIN_FORMS[parsed.name], parsed.k)
        raise MirblabError(f"{parsed} has no ceiling: which order is the best depends on the groups; use {plain}")
    judged = _judge(run, qrels, relevant_from).perfect(depth)
    values = _value_table(judged, [parsed], f"{system_of(run)} (ceiling {depth})", _collection(qrels, run))
    _note_zero_queries(values, judged, [parsed], run)
    return values


def mean(values: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over queries: system, collection, measure, value, n_queries, in the order of the values.

    *n_queries* counts those that have a value.

    >>> mean(pd.DataFrame({"system": "s", "collection": "c", "measure": "AP", "query_id": ["p", "q"], "value": [0, 1]}))
      system collection measure  value  n_queries
    0      s          c      AP    0.5          2
    """
    groups = values.groupby(["system", "collection", "measure"], sort=False, observed=True).value
    return groups.agg(value="mean", n_queries="count").reset_index()


def parse_measures(measures: Iterable[AnyMeasure]) -> list[Measure]:
    """Return the measures of several names, functions or objects; MirblabError where there is none."""
    parsed = [parse_measure(measure) for measure in measures]
    if not parsed:
        raise MirblabError("no measure was given; name one, for example nDCG@10")
    return parsed


def parse_measure(measure: AnyMeasure) -> Measure:
    """Return the measure of a name, of a function, or of an object whose text is a name; else MirblabError.

    A name is followed by an apostrophe for the prime form, for RBP by its persistence, and by @k. Case does not matter,
    and names of trec_eval and of other packages are known: MAP and MRR@10, P_10 and ndcg_cut_10, Recall@100, Hit@5.

    >>> [str(parse_measure(text)) for text in ("nDCG'@10", "mrr", "P_10", "ndcg_cut_10", "Recall@5", "RBP(p=0.95)")]
    ["nDCG'@10", 'RR', 'P@10', 'nDCG@10', 'R@5', 'RBP(p=0.95)']
    """
    if isinstance(measure, Measure):
        return measure
    if isfunction(measure):
        return OwnMeasure(measure.__name__, function=measure)
    text = str(measure)
    match = _WRITTEN.fullmatch(text.translate(_PRIMES))
    name = _NAMES.get(match[1].lower()) if match else None
    if match is None or name is None:
        forms = [f"{name}@k" if known.k == "needed" else name for name, known in DEFINITIONS.items()]
        raise MirblabError(f"no measure '{text}'; found {', '.join(forms)}{_suggest_measure(text)}")
    known = DEFINITIONS[name]
    if match[3] and known.p is None:
        raise MirblabError(f"the measure '{name}' has no persistence, found '{text}'; RBP has one: 'RBP(p=0.8)'")
    p = float(match[3]) if match[3] else known.p
    if p == 0:
        raise MirblabError(f"the persistence p lies between 0 and 1, found '{text}'; 0.8 is usual")
    parsed = Measure(name, int(match[4]) if match[4] else None, bool(match[2]), p)
    if known.k == "needed" and parsed.k is None:
        raise MirblabError(f"the measure '{text}' needs a number of documents, for example '{text}@10'")
    if known.k == "none" and parsed.k is not None:
        raise MirblabError(f"the measure '{text}' looks at the whole ranking; write '{name}'")
    if parsed.prime and not known.prime:
        plain = replace(parsed, prime=False)
        raise MirblabError(f"'{text}' is no measure: '{name}' has no prime form; write '{plain}'")
    return parsed


def is_rank(measure: str) -> bool:
    """Return whether a measure is a rank: from 1, and lower is better."""
    return measure == "Rank"


def gain_sign(measure: str) -> int:
    """Return what a difference of values is multiplied by, so that more is better: -1 for a rank, else 1.

    >>> gain_sign("Rank"), gain_sign("nDCG@10")
    (-1, 1)
    """
    return -1 if is_rank(measure) else 1


def is_judged_share(measure: str) -> bool:
    """Return whether a measure tells how much is judged, which is no quality: neither high nor low is better."""
    return measure.startswith(("Judged", "RBPresidual"))


def ndcg(judged: JudgedRanks, k: int | None) -> np.ndarray:
    """Return nDCG (Järvelin & Kekäläinen, TOIS 2002); as in trec_eval the gain is relevance, not 2^relevance - 1."""
    judgements = judged.judgements
    gaining = (judged.relevance > 0) & _is_within(judged.rank, k)
    gained = judged.sum(judged.relevance[gaining] / np.log2(judged.rank[gaining] + 1), gaining)
    positive = judgements.relevance > 0
    span = int(judgements.relevance.max(initial=0)) + 1
    best = np.sort(judgements.query[positive] * span + (span - 1 - judgements.relevance[positive]))
    query, relevance = best // span, span - 1 - best % span
    rank = place_within_query(query, len(gained)) + 1
    near = _is_within(rank, k)
    ideal = np.bincount(query[near], weights=(relevance / np.log2(rank + 1))[near], minlength=len(gained))
    return _ratio(gained, ideal)


def average_precision(judged: JudgedRanks, k: int | None) -> np.ndarray:
    """Return the mean over all relevant documents of the precision at their ranks; 0 for one that is not returned."""
    chosen = judged.is_relevant & _is_within(judged.rank, k)
    so_far = place_within_query(judged.query[chosen], len(judged.returned)) + 1
    return _ratio(judged.sum(so_far / judged.rank[chosen], chosen), _n_relevant(judged))


def precision(judged: JudgedRanks, k: int) -> np.ndarray:
    """Return the number of relevant documents among the first k, divided by k, also where fewer are returned."""
    return judged.count(judged.is_relevant & (judged.rank <= k)) / k


def recall(judged: JudgedRanks, k: int) -> np.ndarray:
    """Return the share of the relevant documents that are among the first k."""
    return _ratio(judged.count(judged.is_relevant & (judged.rank <= k)), _n_relevant(judged))


def success(judged: JudgedRanks, k: int) -> np.ndarray:
    """Return 1 where a relevant document is among the first k, else 0."""
    return (judged.count(judged.is_relevant & (judged.rank <= k)) > 0).astype(np.float64)


def reciprocal_rank(judged: JudgedRanks, k: int | None) -> np.ndarray:
    """Return 1 / rank of the first relevant document; 0 when none is among the first k."""
    first = _first_relevant(judged)
    return _ratio(((first > 0) & _is_within(first, k)).astype(np.float64), first)


def first_relevant_rank(judged: JudgedRanks, k: None) -> np.ndarray:
    """Return the rank of the first relevant document; lower is better.

    If none is returned it is the number of documents of the collection, or, with a table of qrels, one more than the
    longest ranking.
    """
    first = _first_relevant(judged)
    return np.where(first > 0, first, judged.unfound_rank).astype(np.float64)


def r_precision(judged: JudgedRanks, k: None) -> np.ndarray:
    """Return the precision at rank R, where R is the number of relevant documents (Buckley & Voorhees, 2005)."""
    n_relevant = _n_relevant(judged)
    found = judged.count(judged.is_relevant & (judged.rank <= n_relevant[judged.query]))
    return _ratio(found, n_relevant)


def rank_biased_precision(judged: JudgedRanks, k: int | None, p: float) -> np.ndarray:
    """Return RBP (Moffat & Zobel, TOIS 2008): a reader goes on to the next document with probability p.

    It is (1 - p) times the sum of p^(rank - 1) over the relevant documents; an unjudged one counts as not relevant.
    """
    chosen = judged.is_relevant & _is_within(judged.rank, k)
    return judged.sum((1 - p) * p ** (judged.rank[chosen] - 1.0), chosen)


def rank_biased_residual(judged: JudgedRanks, k: int | None, p: float) -> np.ndarray:
    """Return the residual of RBP: what it can still rise by when all unjudged documents are judged.

    That is the weight of the ranks that hold no judged document, also of those after the last one (after k). A negative
    relevance is no judgement. Moffat & Zobel, TOIS 2008.
    """
    known = (judged.relevance >= 0) & _is_within(judged.rank, k)
    return 1.0 - judged.sum((1 - p) * p ** (judged.rank[known] - 1.0), known)


def expected_reciprocal_rank(judged: JudgedRanks, k: int | None) -> np.ndarray:
    """Return ERR (Chapelle et al., CIKM 2009): the expectation of 1 / rank of the document at which a reader stops.

    A document of relevance g satisfies with probability (2^g - 1) / 2^h, where h is the highest relevance in the card's
    `relevance_levels` or in the qrels (gdeval has 4).
    """
    chosen = (judged.relevance > 0) & _is_within(judged.rank, k)
    query, stops = judged.query[chosen], (2.0 ** judged.relevance[chosen] - 1) / 2.0**judged.judgements.highest
    place, reached = place_within_query(query, len(judged.returned)), np.ones(len(query))
    for number in range(1, int(place.max(initial=0)) + 1):  # exact, unlike a quotient of cumulative products
        rows = np.flatnonzero(place == number)
        reached[rows] = reached[rows - 1] * (1 - stops[rows - 1])
    return judged.sum(reached * stops / judged.rank[chosen], chosen)


def group_recall(judged: JudgedRanks, k: int) -> np.ndarray:
    """Return the share of a query's groups of documents of which at least one is among the first k.

    The members of a group replace each other, as the lemmas for one step of a proof do. The collection's `groups` say
    which they are. Recall@k (group) of Gao et al., LeanSearch v2, 2026.
    """
    return _ratio(*_count_groups(judged, k, "GroupR"))


def group_success(judged: JudgedRanks, k: int) -> np.ndarray:
    """Return 1 where each of a query's groups has a document among the first k, else 0, also without a group.

    The members of a group replace each other as in `group_recall`, whose value is then 1: nothing that the query needs
    is missing. LeanSearch v2 prints the recall only. Where one group is enough, take Success.
    """
    n_found, n_groups = _count_groups(judged, k, "GroupSuccess")
    return ((n_groups > 0) & (n_found == n_groups)).astype(np.float64)


def bpref(judged: JudgedRanks, k: None) -> np.ndarray:
    """Return Bpref (Buckley & Voorhees, SIGIR 2004), 0 to 1, as trec_eval computes it since version 8.

    A returned relevant document earns 1 - min(n, R) / min(N, R): n of N judged not relevant precede it, R are relevant.
    """
    relevant, n_relevant = judged.is_relevant, _n_relevant(judged)
    grades = judged.judgements.relevance
    n_against = judged.judgements.count((grades >= 0) & (grades < judged.relevant_from))
    before = _n_before(judged, (judged.relevance >= 0) & ~relevant)
    query, before = judged.query[relevant], before[relevant]
    bound = np.minimum(n_against, n_relevant)[query]
    lost = _ratio(np.minimum(before, n_relevant[query]), bound)
    return _ratio(judged.sum(1.0 - lost, relevant), n_relevant)


def inferred_average_precision(judged: JudgedRanks, k: None) -> np.ndarray:
    """Return infAP (Yilmaz & Aslam, CIKM 2006), as trec_eval computes it: AP estimated from a sample of judgements.

    A negative relevance marks a document of the pool that was not drawn to be judged; one that the qrels lack was not
    in the pool and counts as not relevant. Where the whole pool was judged it is AP, but for smoothing by 1e-5.
    """
    relevant, in_pool = judged.is_relevant, np.ones(len(judged.query), dtype=bool)
    rel, known, pool = (_n_before(judged, mask)[relevant] for mask in (relevant, judged.relevance >= 0, in_pool))
    share = (rel + _EPSILON) / (known + 2 * _EPSILON)
    rank = judged.rank[relevant]
    expected = np.where(rank == 1, 1.0, (1 + pool * share) / rank)
    return _ratio(judged.sum(expected, relevant), _n_relevant(judged))


def judged_share(judged: JudgedRanks, k: int | None) -> np.ndarray:
    """Return the judged share of the first k documents, or of all if fewer are returned; 0 for an empty ranking.

    A negative relevance is no judgement.
    """
    seen = judged.returned if k is None else np.minimum(judged.returned, k)
    return _ratio(judged.count((judged.relevance >= 0) & _is_within(judged.rank, k)), seen)


@dataclass(frozen=True)
class Definition:
    """A measure's formula; whether it takes @k ("needed", "may", "none"), has a prime form, is binary; its usual p."""

    formula: Callable[..., np.ndarray]
    k: str
    prime: bool = True
    binary: bool = True
    p: float | None = None


DEFINITIONS = {
    "nDCG": Definition(ndcg, "may", binary=False),
    "AP": Definition(average_precision, "may"),
    "P": Definition(precision, "needed"),
    "R": Definition(recall, "needed"),
    "RR": Definition(reciprocal_rank, "may"),
    "Success": Definition(success, "needed"),
    "Rprec": Definition(r_precision, "none"),
    "Rank": Definition(first_relevant_rank, "none", prime=False),
    "Bpref": Definition(bpref, "none", prime=False),
    "infAP": Definition(inferred_average_precision, "none", prime=False),
    "RBP": Definition(rank_biased_precision, "may", p=0.8),
    "RBPresidual": Definition(rank_biased_residual, "may", prime=False, p=0.8),
    "ERR": Definition(expected_reciprocal_rank, "may", binary=False),
    "GroupR": Definition(group_recall, "needed", prime=False),
    "GroupSuccess": Definition(group_success, "needed", prime=False),
    "Judged": Definition(judged_share, "may", prime=False, binary=False),
}
_NAMES = {name.lower(): name for name in DEFINITIONS} | _OTHER_NAMES


def _judge(run: pd.DataFrame, qrels: Any, relevant_from: int | None) -> JudgedRanks:
    if not isinstance(run, pd.DataFrame):
        raise MirblabError(f"evaluate wants a run, as lab.system(NAME).search(collection) returns, found {run!r:.60}")
    if not hasattr(qrels, "columns") and not hasattr(qrels, "qrels"):
        raise MirblabError(
            f"evaluate wants a Collection or a table of judgements, found {qrels!r:.60}; load() it first"
        )
    is_table = isinstance(qrels, pd.DataFrame)
    level = relevant_from if relevant_from is not None else 1 if is_table else qrels.card.relevant_from
    if level < 1:
        raise MirblabError(f"relevant_from is at least 1, since 0 says 'judged, not relevant'; found {level}")
    if is_table:
        return JudgedRanks.of(run, Judgements.of(qrels), level, None)
    judgements = Judgements.of(qrels.qrels)
    highest = max([judgements.highest, *getattr(qrels.card, "relevance_levels", [])])
    judgements = replace(judgements, highest=highest)
    groups = getattr(qrels, "groups", None)
    if groups is not None:
        judgements = judgements.with_groups(groups)
    judged = JudgedRanks.of(run, judgements, level, len(qrels.doc_ids))
    if judged.returned.any() and not len(judged.query):
        _refuse_other_documents(run, qrels)
    return judged


def _refuse_other_documents(run: pd.DataFrame, collection: Any) -> None:
    """Raise MirblabError where no document of the run is one of the collection: its queries have the same ids only."""
    names = pd.Index(pd.Series(rename_pyterrier(run).doc_id.unique()).astype("str"))
    if (find_positions(names, collection.doc_ids) < 0).all():
        raise MirblabError(
            f"no document of the run is one of {collection.name}, though queries have the same ids, found "
            f"'{names[0]}'; evaluate it with the collection that it was made for"
        )


def _whose(run: pd.DataFrame) -> str:
    """Return the name of the run's system as the beginning of a message, "" where it has none."""
    system = run.attrs.get("system")
    return f"{system}: " if system else ""


def _collection(qrels: Any, run: pd.DataFrame) -> str:
    return str(run.attrs.get("collection") or "") if isinstance(qrels, pd.DataFrame) else qrels.name


def _measure_note(measure: Measure, run: pd.DataFrame) -> str:
    uses_unjudged = not (measure.prime or measure.name == "Bpref")
    notes = [run.attrs.get("note"), run.attrs.get("remainder") if uses_unjudged else None]
    return "; ".join(str(note) for note in notes if note)


def _value_table(judged: JudgedRanks, measures: list[Measure], system: str, collection: str) -> pd.DataFrame:
    n_queries, names = len(judged.returned), [str(measure) for measure in measures]
    if len(set(names)) < len(names):
        raise MirblabError(f"name each measure once; found {', '.join(names)}")
    rows = n_queries * len(names)
    values = [measure.values(judged) for measure in measures]
    columns = {
        "system": pd.Categorical.from_codes(np.zeros(rows, np.int8), pd.Index([system])),
        "collection": pd.Categorical.from_codes(np.zeros(rows, np.int8), pd.Index([collection])),
        "measure": pd.Categorical.from_codes(np.repeat(np.arange(len(names)), n_queries), pd.Index(names, dtype="str")),
        "query_id": pd.Categorical.from_codes(np.tile(np.arange(n_queries), len(names)), judged.judgements.query_ids),
        "value": np.concatenate(values) if values else np.empty(0),
    }
    return pd.DataFrame(columns)


def _note_zero_queries(
    values: pd.DataFrame, judged: JudgedRanks, measures: list[Measure], run: pd.DataFrame
) -> dict[str, list[str]]:
    """Return for each measure what is said of its queries that score 0; warn of these, and put them into attrs.

    A query scores 0 that the run lacks, or that has no relevant document: for a measure that is not binary, none of
    relevance 1. Judged@k is 0 for the first only, and Rank and RBPresidual for neither.
    """
    ids, judgements = judged.judgements.query_ids, judged.judgements
    levels = {str(measure): judged.relevant_from if measure.is_binary else 1 for measure in measures}
    missing = ids[judged.returned == 0].tolist()
    bare = {
        level: ids[judgements.count(judgements.relevance >= level) == 0].tolist()
        for level in sorted({*levels.values()})
    }
    strictest = max(bare)
    values.attrs = {
        "not_in_run": missing,
        "without_relevant": bare[strictest],
        "not_judged": judged.n_not_judged,
        "relevant_from": judged.relevant_from,
    }
    absent = _zero_text(missing, len(ids), "is not in the run", "are not in the run")
    none = {level: f"no document of relevance {level} or more" for level in bare}
    texts = {level: _zero_text(bare[level], len(ids), f"has {of}", f"have {of}") for level, of in none.items()}
    for text in filter(None, (absent and _whose(run) + absent, texts[strictest])):
        warnings.warn(text, QueryWarning, stacklevel=3)
    if not len(ids):
        warnings.warn("no query is judged, so that there is no value", QueryWarning, stacklevel=3)
    return {
        name: [absent * (measure.name not in _NEVER_ZERO), texts[levels[name]] * (measure.name not in _ANY_RELEVANCE)]
        for name, measure in zip(levels, measures, strict=True)
    }


def _warn_of_short_lists(judged: JudgedRanks, measures: list[Measure], run: pd.DataFrame, n_docs: int) -> None:
    """Warn of measures that look further than a search did: most of the lists that it returned end at one length.

    Lists that end because there is no other document, but for the query itself, are as long as they can be.
    """
    found = judged.returned[judged.returned > 0]
    longest = int(found.max(initial=0))
    deeper = [str(measure) for measure in measures if (measure.k or 0) > longest]
    if deeper and longest < n_docs - 1 and (found == longest).mean() > 0.5:
        ends = f"{_whose(run)}most lists of the run end after {counted(longest, 'document')}"
        warnings.warn(f"{ends}, before the cutoff of {', '.join(deeper)}; search deeper", QueryWarning, stacklevel=3)


def _zero_text(names: list[str], n_queries: int, one: str, several: str) -> str:
    if not names:
        return ""
    shown = ", ".join(f"'{name}'" for name in names[:3]) + (", …" if len(names) > 3 else "")
    what = f"{several} and score" if len(names) > 1 else f"{one} and scores"
    return f"{len(names):,} of {counted(n_queries, 'query')} {what} 0: {shown}"


def _parse_graded(name: str) -> tuple[str, int | None]:
    measure, separator, grade = name.strip().partition(_FROM)
    if separator and not grade.isdecimal():
        raise MirblabError(f"no measure '{name}'; a grade must follow 'from', for example '{measure}{_FROM}1'")
    return str(parse_measure(measure)), int(grade) if separator else None


def _suggest_measure(text: str) -> str:
    match = re.match(r"\W*([A-Za-z]*)[^'@A-Za-z]*('?)@?([1-9][0-9]*)?('?)", text.translate(_PRIMES))
    name, k = (match[1], match[3]) if match else (text, None)
    close = difflib.get_close_matches(name.lower(), _NAMES, n=1)
    if not close:
        return ""
    near = _NAMES[close[0]]
    known = DEFINITIONS[near]
    prime = bool(match and (match[2] or match[4])) and known.prime
    number = None if known.k == "none" else int(k) if k else 10 if known.k == "needed" else None
    return f"; did you mean '{Measure(near, number, prime, known.p)}'?"


def _first_relevant(judged: JudgedRanks) -> np.ndarray:
    """Return the rank of the first relevant document, or 0 when none is returned."""
    query, index = np.unique(judged.query[judged.is_relevant], return_index=True)
    first = np.zeros(len(judged.returned), dtype=np.int64)
    first[query] = judged.rank[judged.is_relevant][index]
    return first


def _is_within(rank: np.ndarray, k: int | None) -> np.ndarray:
    return np.ones(len(rank), dtype=bool) if k is None else rank <= k


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.zeros(len(above)), where=below > 0)


def _count_groups(judged: JudgedRanks, k: int, measure: str) -> tuple[np.ndarray, np.ndarray]:
    """Return how many of each query's groups have a document among the first k, and how many it has."""
    judgements, groups = judged.judgements, judged.judgements.groups
    if groups is None:
        raise MirblabError(f"{measure} needs a collection with groups of documents, in its file groups.tsv; found none")
    found = np.zeros(len(judgements.query), dtype=bool)
    found[judged.judgement[judged.rank <= k]] = True
    query, group, member = groups
    is_found = np.bincount(group, weights=found[member], minlength=len(query)) > 0
    n_queries = len(judged.returned)
    return np.bincount(query, weights=is_found, minlength=n_queries), np.bincount(query, minlength=n_queries)


def _n_before(judged: JudgedRanks, mask: np.ndarray) -> np.ndarray:
    """Return how many documents of a *mask* come before each judged document in its query."""
    per_query = judged.count(mask)
    return np.cumsum(mask) - mask - (np.cumsum(per_query) - per_query)[judged.query]


def _n_relevant(judged: JudgedRanks) -> np.ndarray:
    return judged.judgements.count(judged.judgements.relevance >= judged.relevant_from)
