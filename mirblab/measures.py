"""measures: run and qrels to values, one number per query, as trec_eval computes them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mirblab import per_query
from mirblab.errors import MirblabError, suggest
from mirblab.judged import Found, Judgements
from mirblab.runs import order

_OTHER_NAMES = {"map": "AP", "mrr": "RR", "mr": "Rank", "recall": "R", "precision": "P", "hit": "Success"}
_PRIMES = str.maketrans("′’`", "'''")


class QueryWarning(UserWarning):
    """Queries score 0 because the run lacks them or because nothing is relevant to them; values.attrs names all."""


@dataclass(frozen=True)
class Measure:
    """A measure as written in the papers: name, how far it looks (None: the whole ranking), whether it is prime."""

    name: str
    k: int | None = None
    prime: bool = False

    def __str__(self) -> str:
        return f"{self.name}{chr(39) if self.prime else ''}{'' if self.k is None else f'@{self.k}'}"

    def values(self, found: Found) -> np.ndarray:
        """Return one number per query, shape (n_queries,)."""
        return _KNOWN[self.name].formula(found.prime() if self.prime else found, self.k)


def parse(text: str) -> Measure:
    """Return the measure that *text* names: a name, an apostrophe for the prime form, @k.

    MirblabError with what is known, or the nearest name, for anything else.

    >>> parse("nDCG'@10")
    Measure(name='nDCG', k=10, prime=True)
    >>> str(parse("Bpref"))
    'Bpref'
    """
    match = re.fullmatch(r"([A-Za-z]+)('?)(?:@([1-9][0-9]*))?", text)
    known = _KNOWN.get(match[1]) if match else None
    if match is None or known is None:
        raise MirblabError(f"no measure '{text}'; found {', '.join(_forms())}{_nearest(text)}")
    measure = Measure(match[1], int(match[3]) if match[3] else None, bool(match[2]))
    if known.k == "needed" and measure.k is None:
        raise MirblabError(f"the measure '{text}' needs a number of documents, for example '{text}@10'")
    if known.k == "none" and measure.k is not None:
        raise MirblabError(f"the measure '{text}' looks at the whole ranking; write '{match[1]}'")
    if measure.prime and not known.prime:
        plain = Measure(match[1], measure.k)
        raise MirblabError(f"'{text}' is no measure: '{match[1]}' has no prime form; write '{plain}'")
    return measure


def evaluate(
    run: pd.DataFrame, qrels: Any, measures: Iterable[str | Measure] | str, relevant_from: int | None = None
) -> pd.DataFrame:
    """Return the value of each measure for each query of the qrels: system, collection, measure, query_id, value.

    *qrels* is a Collection or a table query_id, doc_id, relevance. Binary measures count a relevance from
    *relevant_from* on (None: as the collection's card says, else 1); nDCG takes relevance itself as gain.
    Rows go by measure, as asked for, then by query_id. The values equal trec_eval's; a negative relevance gains
    nothing and is no judgement to the prime measures and to Bpref.

    A query that the run lacks, or with nothing relevant, scores 0 (Rank: see `per_query.rank`), is named in
    `attrs["not_in_run"]` or `attrs["without_relevant"]`, and a QueryWarning says so. `attrs["not_judged"]` counts
    the queries of the run that the qrels lack; they have no row. Where the run's attrs have an `origin` or a `note`,
    that is a column, so that tables can say it; a `remainder` is noted with measures that look at all documents.
    MirblabError for broken tables and unknown measures.

    >>> run = pd.DataFrame({"query_id": "q1", "doc_id": ["a", "b", "c"], "score": [3, 2, 1]})
    >>> qrels = pd.DataFrame({"query_id": "q1", "doc_id": ["b", "c"], "relevance": [0, 1]})
    >>> evaluate(run, qrels, ["RR", "RR'", "P@2"]).value.round(3).tolist()
    [0.333, 0.5, 0.0]
    """
    asked = [measures] if isinstance(measures, (str, Measure)) else list(measures)
    parsed = [parse(measure) if isinstance(measure, str) else measure for measure in asked]
    table, level, n_docs = _read(qrels, relevant_from)
    found = Found.of(order(run), Judgements.of(table), level, n_docs)
    values = _table(found, parsed, _system(run), _collection(qrels, run))
    if run.attrs.get("origin"):  # a run of others, which tables mark
        values["origin"] = str(run.attrs["origin"])
    notes = [_note(measure, run) for measure in parsed]  # what is to be said with its values
    if any(notes):
        values["note"] = np.repeat(notes, len(found.returned))
    _account(values, found, parsed)
    return values


def ceiling(
    run: pd.DataFrame, qrels: Any, measure: str | Measure, depth: int, relevant_from: int | None = None
) -> pd.DataFrame:
    """Return the values of *measure* if the first *depth* documents of each query were ordered perfectly.

    What stands deeper stays where it is, so it bounds what any reranker of that depth can reach. The table is that
    of `evaluate`; the system's name says what was done.

    >>> run = pd.DataFrame({"query_id": "q1", "doc_id": ["a", "b", "c"], "score": [3, 2, 1]})
    >>> qrels = pd.DataFrame({"query_id": "q1", "doc_id": ["b", "c"], "relevance": [0, 1]})
    >>> [round(ceiling(run, qrels, "RR", depth).value.item(), 3) for depth in (2, 3)]
    [0.333, 1.0]
    """
    parsed = parse(measure) if isinstance(measure, str) else measure
    table, level, n_docs = _read(qrels, relevant_from)
    found = Found.of(order(run), Judgements.of(table), level, n_docs).perfect(depth)
    values = _table(found, [parsed], f"{_system(run)} (ceiling {depth})", _collection(qrels, run))
    _account(values, found, [parsed])
    return values


def mean(values: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over queries: system, collection, measure, value, n_queries, in the order of the values.

    >>> mean(pd.DataFrame({"system": "s", "collection": "c", "measure": "AP", "query_id": ["p", "q"], "value": [0, 1]}))
      system collection measure  value  n_queries
    0      s          c      AP    0.5          2
    """
    groups = values.groupby(["system", "collection", "measure"], sort=False, observed=True).value
    return groups.agg(value="mean", n_queries="size").reset_index()


@dataclass(frozen=True)
class _Known:
    """What a measure is: its formula, whether it takes k, whether it has a prime form, whether it needs a limit."""

    formula: Callable[[Found, Any], np.ndarray]
    k: str
    prime: bool = True
    binary: bool = True


_KNOWN = {
    "nDCG": _Known(per_query.ndcg, "may", binary=False),
    "AP": _Known(per_query.average_precision, "may"),
    "P": _Known(per_query.precision, "needed"),
    "R": _Known(per_query.recall, "needed"),
    "RR": _Known(per_query.reciprocal_rank, "may"),
    "Success": _Known(per_query.success, "needed"),
    "Rank": _Known(per_query.rank, "none", prime=False),
    "Bpref": _Known(per_query.bpref, "none", prime=False),
    "Judged": _Known(per_query.judged, "may", prime=False, binary=False),
}


def _forms() -> list[str]:
    return [f"{name}@k" if known.k == "needed" else name for name, known in _KNOWN.items()]


def _nearest(text: str) -> str:
    """Return the suggestion for a wrong name: the rest of it is kept as far as it makes sense."""
    match = re.match(r"\W*([A-Za-z]*)[^'@A-Za-z]*('?)@?([1-9][0-9]*)?('?)", text.translate(_PRIMES))
    name, k = (match[1], match[3]) if match else (text, None)
    near = _OTHER_NAMES.get(name.lower()) or suggest(name, _KNOWN).removeprefix("; did you mean '").removesuffix("'?")
    if not near:
        return ""
    known = _KNOWN[near]
    prime = bool(match and (match[2] or match[4])) and known.prime
    number = None if known.k == "none" else int(k) if k else 10 if known.k == "needed" else None
    return f"; did you mean '{Measure(near, number, prime)}'?"


def _read(qrels: Any, relevant_from: int | None) -> tuple[pd.DataFrame, int, int | None]:
    """Return the table of judgements, the smallest relevant grade, and the number of documents where it is known."""
    if not hasattr(qrels, "columns") and not hasattr(qrels, "qrels"):
        raise MirblabError(
            f"evaluate wants a Collection or a table of judgements, found {qrels!r:.60}; load() it first"
        )
    is_table = isinstance(qrels, pd.DataFrame)
    level = relevant_from if relevant_from is not None else 1 if is_table else qrels.card.relevant_from
    if level < 1:
        raise MirblabError(f"relevant_from is at least 1, since 0 says 'judged, not relevant'; found {level}")
    return (qrels, level, None) if is_table else (qrels.qrels, level, len(qrels.doc_ids))


def _system(run: pd.DataFrame) -> str:
    return str(run.attrs.get("system") or "run")


def _collection(qrels: Any, run: pd.DataFrame) -> str:
    return str(run.attrs.get("collection") or "") if isinstance(qrels, pd.DataFrame) else qrels.name


def _note(measure: Measure, run: pd.DataFrame) -> str:
    """Return what a run's attrs have to say with a measure's values: its note, and what was left out of it."""
    looks_at_all = not (measure.prime or measure.name == "Bpref")
    said = [run.attrs.get("note"), run.attrs.get("remainder") if looks_at_all else None]
    return "; ".join(str(text) for text in said if text)


def _table(found: Found, measures: list[Measure], system: str, collection: str) -> pd.DataFrame:
    """Return the values of all measures and queries, strings as categories."""
    n_queries, names = len(found.returned), [str(measure) for measure in measures]
    if len(set(names)) < len(names):
        raise MirblabError(f"name each measure once; found {', '.join(names)}")
    rows = n_queries * len(names)
    values = [measure.values(found) for measure in measures]
    columns = {
        "system": pd.Categorical.from_codes(np.zeros(rows, np.int8), [system]),
        "collection": pd.Categorical.from_codes(np.zeros(rows, np.int8), [collection]),
        "measure": pd.Categorical.from_codes(np.repeat(np.arange(len(names)), n_queries), names),
        "query_id": pd.Categorical.from_codes(np.tile(np.arange(n_queries), len(names)), found.judgements.query_ids),
        "value": np.concatenate(values) if values else np.empty(0),
    }
    return pd.DataFrame(columns)


def _account(values: pd.DataFrame, found: Found, measures: list[Measure]) -> None:
    """Put the queries that score 0 for want of data into the attrs, and warn of them."""
    ids, judgements = found.judgements.query_ids, found.judgements
    level = found.relevant_from if any(_KNOWN[measure.name].binary for measure in measures) else 1
    missing = ids[found.returned == 0].tolist()
    bare = ids[judgements.count(judgements.relevance >= level) == 0].tolist()
    values.attrs = {
        "not_in_run": missing,
        "without_relevant": bare,
        "not_judged": found.n_not_judged,
        "relevant_from": found.relevant_from,
    }
    for names, what in ((missing, "are not in the run"), (bare, f"have no document of relevance {level} or more")):
        if names:
            shown = ", ".join(f"'{name}'" for name in names[:3]) + (", …" if len(names) > 3 else "")
            text = f"{len(names):,} of {len(ids):,} queries {what} and score 0: {shown}"
            warnings.warn(text, QueryWarning, stacklevel=3)
