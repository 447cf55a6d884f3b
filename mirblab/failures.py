"""failures: where one system wins and another loses, query by query, and what those queries are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mirblab.collection import Collection
from mirblab.equivalence import best_judged, grades
from mirblab.errors import MirblabError
from mirblab.excerpts import excerpts
from mirblab.features import query_features
from mirblab.lengths import wilson
from mirblab.matrices import matrices

OUTCOMES = ("won", "tied", "lost")
_LEAST = 1e-9  # differences below this are rounding


def outcomes(values: pd.DataFrame, measure: str, winner: str, loser: str, *, margin: float = 0.0) -> pd.DataFrame:
    """Return what two systems reach on every query, per collection the winner's largest gain first.

    Columns: collection, query_id, winner, loser (their values), difference (-1 to 1), outcome: won where the *winner*
    is ahead by more than *margin*, lost where it is behind by more, else tied. The names stand in `attrs`. Swapping
    the systems mirrors the table. MirblabError for a system that has no values, and for a margin outside 0 to 1.

    >>> rows = [("a", "q1", 1.0), ("a", "q2", 0.5), ("b", "q1", 0.0), ("b", "q2", 0.5)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> outcomes(values, "RR", "a", "b").outcome.tolist()
    ['won', 'tied']
    """
    if not 0 <= margin < 1:
        raise MirblabError(f"a margin is a difference of values, from 0 to below 1; found {margin}")
    parts = []
    for collection, matrix in matrices(values, measure):
        missing = [name for name in (winner, loser) if name not in matrix]
        if missing or winner == loser:
            known = ", ".join(map(str, matrix.columns))
            raise MirblabError(
                f"two systems are compared, '{winner}' and '{loser}'; {collection} has values of {known}"
            )
        both = matrix[[winner, loser]].to_numpy()
        part = pd.DataFrame(
            {"collection": collection, "query_id": matrix.index, "winner": both[:, 0], "loser": both[:, 1]}
        )
        parts.append(part)
    table = pd.concat(parts, ignore_index=True)
    table["difference"] = table.winner - table.loser
    behind, ahead = (side * table.difference > max(margin, _LEAST) for side in (-1, 1))
    table["outcome"] = np.select([ahead, behind], ["won", "lost"], "tied")
    ordered = table.sort_values(
        ["collection", "difference", "query_id"], ascending=[True, False, True], ignore_index=True
    )
    ordered.attrs = {"winner": winner, "loser": loser, "measure": measure, "margin": margin}
    return ordered


def tally(table: pd.DataFrame) -> pd.DataFrame:
    """Return how often each outcome occurs in a table of `outcomes`: three rows per collection.

    Columns: collection, outcome, queries, share with low and high (95 % interval of a share, Wilson), at_zero (both
    systems reach 0: nothing was found by either), difference (mean over these queries; NaN for none).

    >>> rows = [("c", "q1", 1.0, 0.0, 1.0, "won"), ("c", "q2", 0.0, 0.0, 0.0, "tied")]
    >>> names = ["collection", "query_id", "winner", "loser", "difference", "outcome"]
    >>> tally(pd.DataFrame(rows, columns=names))[["outcome", "queries", "at_zero"]].to_numpy().tolist()
    [['won', 1, 0], ['tied', 1, 1], ['lost', 0, 0]]
    """
    rows = []
    for collection, part in table.groupby("collection", sort=False, observed=True):
        for outcome in OUTCOMES:
            own = part[part.outcome == outcome]
            at_zero = int(((own.winner == 0) & (own.loser == 0)).sum())
            share = (len(own) / len(part), *wilson(len(own), len(part)))
            rows.append((str(collection), outcome, len(own), *share, at_zero, own.difference.mean()))
    names = ["collection", "outcome", "queries", "share", "low", "high", "at_zero", "difference"]
    return pd.DataFrame(rows, columns=names)


def gains(table: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of `outcomes` as values of a system "winner − loser", for `associations` and `strata`.

    >>> rows = [("c", "q1", 1.0, 0.5, 0.5, "won")]
    >>> names = ["collection", "query_id", "winner", "loser", "difference", "outcome"]
    >>> made = pd.DataFrame(rows, columns=names)
    >>> made.attrs = {"winner": "a", "loser": "b", "measure": "RR"}
    >>> gains(made)[["system", "value"]].to_numpy().tolist()
    [['a − b', 0.5]]
    """
    names = table.attrs
    found = table[["collection", "query_id"]].assign(value=table.difference, measure=names["measure"])
    return found.assign(system=f"{names['winner']} − {names['loser']}")


def labelled(table: pd.DataFrame, collections: Sequence[Collection], longest: int = 40) -> pd.DataFrame:
    """Return a table of `outcomes` with a column label, by which people know a query: its id and its first words.

    >>> from mirblab.shelf import load
    >>> c = load("mini-qa")
    >>> rows = pd.DataFrame({"collection": c.name, "query_id": c.query_ids[:1]})
    >>> labelled(rows, [c], longest=12).label[0].count("How do I")
    1
    """
    texts = {(c.name, str(q)): text for c in collections for q, text in zip(c.query_ids, c.query_texts, strict=True)}
    pairs = zip(table.collection.astype(str), table.query_id.astype(str), strict=True)
    return table.assign(label=[f"{query}: {_begun(texts[collection, query], longest)}" for collection, query in pairs])


def _begun(text: str, longest: int) -> str:
    whole = " ".join(text.split())
    return whole if len(whole) <= longest else f"{whole[:longest].rpartition(' ')[0] or whole[:longest]} …"


def traits(collections: Sequence[Collection]) -> pd.DataFrame:
    """Return `features.query_features` of several collections, with answer_words, the length of the best answer.

    The best answer is the best judged document; NaN without one.

    >>> from mirblab.shelf import load
    >>> "answer_words" in traits([load("mini-qa")])
    True
    """
    parts = []
    for collection in collections:
        found, best = query_features(collection), best_judged(collection)
        words = {
            str(q): len(collection.document(str(d)).split()) for q, d in zip(best.query_id, best.doc_id, strict=True)
        }
        parts.append(found.assign(answer_words=found.query_id.map(words).astype(float)))
    return pd.concat(parts, ignore_index=True)


def cases(
    rows: pd.DataFrame,
    collections: Sequence[Collection],
    runs: Mapping[tuple[str, str], pd.DataFrame],
    longest: int = 160,
) -> pd.DataFrame:
    """Return the queries of *rows* as people read them: text, what either system found first, where the answer stands.

    *rows* has collection, query_id; *runs* has the run of each (collection, system), the winner's first. Columns:
    collection, query_id, query, and for each system "first of S" (the text at rank 1, with its grade in front, "?" for
    one that nobody judged) and "answer in S" (the best rank of a relevant document; "none" where nothing relevant was
    returned, "–" where nothing is relevant). Texts are cut at *longest* characters, no formula in two.
    """
    by_name = {collection.name: collection for collection in collections}
    asked = list(zip(rows.collection.astype(str), rows.query_id.astype(str), strict=True))
    table = pd.DataFrame(asked, columns=["collection", "query_id"])
    table["query"] = [excerpts([by_name[c].query(q)], by_name[c].card.task, longest)[0] for c, q in asked]
    looked = {key: run.groupby("query_id", observed=True) for key, run in runs.items()}
    for system in dict.fromkeys(system for _, system in runs):
        pairs = [_case(by_name[c], q, looked[c, system], longest) for c, q in asked]
        table[f"first of {system}"] = [first for first, _ in pairs]
        table[f"answer in {system}"] = [answer for _, answer in pairs]
    return table


def _case(collection: Collection, query_id: str, run: pd.api.typing.DataFrameGroupBy, longest: int) -> tuple[str, str]:
    """Return the first document of a query with its grade, and the best rank of a relevant one."""
    judged = grades(collection, query_id)
    found = run.get_group(query_id).doc_id.astype(str).tolist() if query_id in run.groups else []
    wanted = {name for name, grade in judged.items() if grade >= collection.card.relevant_from}
    answer = next((f"{rank:,}" for rank, name in enumerate(found, 1) if name in wanted), "none" if wanted else "–")
    if not found:
        return "nothing", answer
    text = excerpts([collection.document(found[0])], collection.card.task, longest)[0]
    return f"[{judged.get(found[0], '?')}] {text}", answer
