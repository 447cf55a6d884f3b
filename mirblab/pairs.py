"""pairs: where each statement's partner, which says the same in other words, stands among all other statements."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

import pandas as pd

from mirblab.collection import Collection
from mirblab.errors import MirblabError
from mirblab.measures import QueryWarning, evaluate
from mirblab.systems import DEPTH, System
from mirblab.systems import system as system_named

MEASURES = ("R@1", "R@3", "R@5", "R@10", "R@20", "RR", "Rank")
_SIDE = re.compile(r"(.+)-([12])")


def sides(collection: Collection) -> pd.DataFrame:
    """Return the statements that have a partner, by id: query_id, partner, pair, field, domain_pair, all text.

    Each is query and document under one id, that of its pair and -1 or -2. `field` is its first tag ("" without);
    `domain_pair` names the fields of both sides, the first one's first. Raises MirblabError for a collection that is
    not made of such pairs, naming what is amiss and where.

    >>> from mirblab.shelf import load
    >>> sides(load("mini-pairs")).domain_pair.nunique()
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
        _check(collection, one, other, found.get(other))
    fields = dict(zip(collection.doc_ids, collection.first_tags, strict=True))
    names = pd.Series(list(found), dtype="str")
    parts = names.str.extract(_SIDE)
    first, second = ((parts[0] + f"-{side}").map(fields) for side in (1, 2))
    columns = {"query_id": names, "partner": names.map(found), "pair": parts[0], "field": names.map(fields)}
    return pd.DataFrame(columns | {"domain_pair": (first + " / " + second).where(first.ne(""), "")})


def partners(
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

    >>> from mirblab.shelf import load
    >>> values = partners("bm25", load("mini-pairs"), ["RR", "Rank"])
    >>> len(values), values.pair.nunique()
    (576, 144)
    """
    found = sides(collection)
    others = len(collection.doc_ids if distractors else found) - 1
    run, whole = _run(system, collection)
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


def by_pair(values: pd.DataFrame, *, domains: bool = False) -> pd.DataFrame:
    """Return one value per pair, the mean of its two directions, with the pair's id as query_id.

    *values* are from `partners`. The two directions of a pair are not independent, so pairs are what intervals and
    tests resample. With *domains* the collection of a row is its pair of fields, for tables by domain pair.

    >>> from mirblab.shelf import load
    >>> table = by_pair(partners("bm25", load("mini-pairs"), ["RR"]), domains=True)
    >>> table.columns.tolist(), table.collection.nunique()
    (['system', 'collection', 'measure', 'query_id', 'value'], 9)
    """
    named = values.assign(query_id=values.pair, collection=values.domain_pair if domains else values.collection)
    keys = ["system", "collection", "measure", "query_id"]
    return named.groupby(keys, sort=False, observed=True).value.mean().reset_index()


def _check(collection: Collection, one: str, other: str, back: str | None) -> None:
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


def _run(system: System | str | pd.DataFrame, collection: Collection) -> tuple[pd.DataFrame, bool]:
    """Return the run, and whether what it lacks is known to have been left out by the system, not cut."""
    if isinstance(system, pd.DataFrame):
        return system, False
    made = system_named(system) if isinstance(system, str) else system
    return made.search(collection, depth=len(collection.doc_ids)), not _cuts(made, len(collection.doc_ids))


def _cuts(system: System, n_docs: int) -> bool:
    """Return whether a system may lack what it would have returned deeper: imported runs, and fusion of cut runs."""
    kind = system.settings["kind"]
    is_cut = kind == "imported" or (kind == "fusion" and system.settings.get("depth", DEPTH) < n_docs)
    return is_cut or any(_cuts(part, n_docs) for part in system.parts())


def _too_shallow(counts: pd.Series, others: int) -> str:
    short = counts[counts < others]
    return (
        f"the run holds {short.iloc[0]:,} of the {others:,} other statements for '{short.index[0]}', and too few for "
        f"{len(short):,} of {len(counts):,}: beyond them a rank is not known; give a run of depth {others:,} or "
        "more, or the name of a system that cuts nothing"
    )
