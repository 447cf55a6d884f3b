"""one_query: everything that several systems did with one query: ranks, scores, what is judged, what is near."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from mirblab.collection import Collection
from mirblab.equivalence import grades
from mirblab.errors import MirblabError
from mirblab.excerpts import excerpts
from mirblab.matrices import wide
from mirblab.near import near_pairs
from mirblab.query_clusters import points

UNJUDGED = "unjudged"


@dataclass(frozen=True)
class OneQuery:
    """One query of a collection, what each system returned for it (doc_id, score, rank), and its judgements by id."""

    collection: Collection
    query_id: str
    found: dict[str, pd.DataFrame]
    grades: dict[str, int]

    @property
    def text(self) -> str:
        """Return the query's text."""
        return self.collection.query(self.query_id)

    @cached_property
    def relevant(self) -> list[str]:
        """Return the relevant documents, the highest grade first, then by id."""
        level = self.collection.card.relevant_from
        return sorted(
            (name for name, grade in self.grades.items() if grade >= level), key=lambda n: (-self.grades[n], n)
        )

    def grade(self, doc_id: str) -> str:
        """Return the grade of a document as text, "unjudged" where it has none."""
        return str(self.grades.get(doc_id, UNJUDGED))

    def rank(self, system: str, doc_id: str) -> float:
        """Return a document's rank under a system, NaN where it was not returned."""
        own = self.found[system]
        at = np.flatnonzero(own.doc_id.to_numpy() == doc_id)
        return float(own["rank"].iloc[at[0]]) if len(at) else np.nan

    def best(self, system: str) -> str:
        """Return the document that a system has first, "" where it returned nothing."""
        return str(self.found[system].doc_id.iloc[0]) if len(self.found[system]) else ""

    def answer(self) -> str:
        """Return the best judged document, "" where nothing is relevant."""
        return self.relevant[0] if self.relevant else ""


def one_query(collection: Collection, query_id: str, runs: Sequence[pd.DataFrame]) -> OneQuery:
    """Return what *runs*, each of one system, say of one query; MirblabError for an unknown query.

    >>> from mirblab.shelf import load
    >>> from mirblab.systems import system
    >>> c = load("mini-qa")
    >>> one = one_query(c, c.query_ids[0], [system("bm25").search(c)])
    >>> one.rank("bm25", one.best("bm25"))
    1.0
    """
    collection.query(query_id)  # an unknown one is refused here
    found = {}
    for run in runs:
        own = run[run.query_id == query_id][["doc_id", "score", "rank"]]
        found[str(run.attrs.get("system") or "run")] = own.assign(doc_id=own.doc_id.astype("str")).reset_index(
            drop=True
        )
    if len(found) != len(runs) or not found:
        raise MirblabError(f"each system once and at least one; found {', '.join(found) or 'none'} in {len(runs)} runs")
    return OneQuery(collection, query_id, found, grades(collection, query_id))


def differing(values: pd.DataFrame, measure: str, collection: str = "") -> str:
    """Return the query on which the systems' values lie farthest apart, the first by id where several do.

    >>> rows = [("a", "q1", 0.5), ("b", "q1", 0.4), ("a", "q2", 0.1), ("b", "q2", 0.9)]
    >>> values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    >>> differing(values, "RR")
    'q2'
    """
    matrix = wide(values, measure, collection)
    gaps = np.ptp(matrix.to_numpy(), axis=1).round(12)
    return str(matrix.index[int(np.argmax(gaps))])


def judged(one: OneQuery) -> pd.DataFrame:
    """Return the judged documents with their rank under each system: doc_id, grade, is_relevant, a column per system.

    The highest grade first, then the best rank; NaN where a system did not return the document.
    """
    rows = [
        (name, grade, name in one.relevant, *(one.rank(s, name) for s in one.found))
        for name, grade in one.grades.items()
    ]
    table = pd.DataFrame(rows, columns=["doc_id", "grade", "is_relevant", *one.found])
    best = table[list(one.found)].min(axis=1).fillna(np.inf)
    return table.iloc[np.lexsort([table.doc_id, best, -table.grade])].reset_index(drop=True)


def tops(one: OneQuery, depth: int = 10, longest: int = 120) -> pd.DataFrame:
    """Return the first *depth* documents of each system: system, rank, doc_id, grade, score, of_first, elsewhere, text.

    *of_first* is the score as a share of that of the first (NaN where that is not above 0); *elsewhere* the document's
    ranks in the other systems ("–": not returned). Texts are cut at *longest* characters, no formula in two.
    """
    parts = []
    for system, own in one.found.items():
        part = own.head(depth)
        others = [other for other in one.found if other != system]
        texts = [one.collection.document(name) for name in part.doc_id]
        columns = {
            "system": system,
            "rank": part["rank"].astype(int),
            "doc_id": part.doc_id,
            "grade": [one.grade(name) for name in part.doc_id],
            "score": part.score.astype(float),
            "of_first": _of_first(own, part.score),
            "elsewhere": [", ".join(f"{s} {place(one.rank(s, name))}" for s in others) for name in part.doc_id],
            "text": excerpts(texts, one.collection.card.task, longest),
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def distances(one: OneQuery) -> pd.DataFrame:
    """Return how far each relevant document is from the top, a row per system and document.

    Columns: system, doc_id, grade, rank, score, first (the score of the system's first document), of_first (the
    document's as a share of it), above (how many documents that are not relevant, unjudged ones among them, stand
    above it). A document that was not returned has NaN.
    """
    rows = []
    for system, own in one.found.items():
        is_relevant = own.doc_id.isin(one.relevant).to_numpy()
        for name in one.relevant:
            at = np.flatnonzero(own.doc_id.to_numpy() == name)
            found = own.iloc[at[:1]]
            score = float(found.score.iloc[0]) if len(at) else np.nan
            first = float(own.score.iloc[0]) if len(own) else np.nan
            above = float((~is_relevant[: at[0]]).sum()) if len(at) else np.nan
            share = float(_of_first(own, found.score)[0]) if len(at) else np.nan
            rows.append((system, name, one.grades[name], one.rank(system, name), score, first, share, above))
    return pd.DataFrame(rows, columns=["system", "doc_id", "grade", "rank", "score", "first", "of_first", "above"])


def neighbours(one: OneQuery, values: pd.DataFrame, measure: str, by: str = "", n: int = 5) -> pd.DataFrame:
    """Return the *n* other queries whose content is nearest: query_id, cosine, query, and each system's value.

    *by* is an encoder, or "" for terms (see `query_clusters.points`). Empty for a collection of one query.
    """
    collection = one.collection
    rows = points([collection], by)
    here = collection.query_ids.get_loc(one.query_id)
    cosine = np.asarray((rows @ rows[[here]].T).todense() if not by else rows @ rows[here]).ravel()
    cosine[here] = -np.inf
    order = np.argsort(-cosine.round(6), kind="stable")[: min(n, len(cosine) - 1)]
    near = [str(collection.query_ids[at]) for at in order]
    table = pd.DataFrame({"query_id": near, "cosine": cosine[order].astype(float)})
    table["query"] = excerpts([collection.query(name) for name in near], collection.card.task)
    return table.join(wide(values, measure, collection.name).reindex(near).reset_index(drop=True))


def twins(one: OneQuery, depth: int = 10, threshold: float = 0.8) -> pd.DataFrame:
    """Return near-duplicates of the query and of its documents: what, doc_id, grade, twin, twin_grade, jaccard.

    Looked at are the query itself ("query"), the judged documents and the first *depth* of each system ("document"),
    against the whole corpus, by `near.near_pairs`. A pair of different grades, or with an unjudged side, moves values.
    """
    collection = one.collection
    wanted = {*one.grades, *(name for own in one.found.values() for name in own.doc_id.head(depth))}
    asked = np.append(collection.doc_ids.isin(list(wanted)), True)
    pairs = near_pairs([*collection.texts, one.text], threshold, asked=asked)
    rows = []
    for left, right, jaccard in zip(pairs.left.tolist(), pairs.right.tolist(), pairs.jaccard.tolist(), strict=True):
        twin = str(collection.doc_ids[left])
        if right == len(collection.texts):
            rows.append(("query", one.query_id, "", twin, one.grade(twin), jaccard))
            continue
        names = sorted((twin, str(collection.doc_ids[right])), key=lambda name: (name not in wanted, name))
        rows.append(("document", names[0], one.grade(names[0]), names[1], one.grade(names[1]), jaccard))
    table = pd.DataFrame(rows, columns=["what", "doc_id", "grade", "twin", "twin_grade", "jaccard"])
    return table.sort_values(
        ["what", "jaccard", "doc_id", "twin"], ascending=[False, False, True, True], ignore_index=True
    )


def place(rank: float) -> str:
    """Return a rank as it is printed, "–" for a document that was not returned.

    >>> place(12.0), place(np.nan)
    ('12', '–')
    """
    return "–" if np.isnan(rank) else f"{int(rank):,}"


def _of_first(own: pd.DataFrame, scores: pd.Series) -> np.ndarray:
    first = float(own.score.iloc[0]) if len(own) else 0.0
    return scores.to_numpy(dtype=float) / first if first > 0 else np.full(len(scores), np.nan)
