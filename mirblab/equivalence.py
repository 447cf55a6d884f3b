"""equivalence: queries and what is relevant to them, as points with a class, for maps and pair measures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mirblab.collection import Collection
from mirblab.errors import MirblabError, unknown

TASKS = ("Equivalence", "Lean View Retrieval")  # of cards whose pairs say the same
EQUIVALENT, RELEVANT, DISTRACTOR = "equivalent", "judged relevant", "distractor"


def relation(collection: Collection) -> str:
    """Return what a query and its relevant document are to each other: "equivalent" or "judged relevant".

    Equivalent only where the task on the card says so (`TASKS`): a premise says something else than the theorem.

    >>> from mirblab.shelf import load
    >>> relation(load("mini-pairs")), relation(load("mini-premises"))
    ('equivalent', 'judged relevant')
    """
    return EQUIVALENT if collection.card.task in TASKS else RELEVANT


def statements(
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

    >>> from mirblab.shelf import load
    >>> points = statements(load("mini-pairs"), n_pairs=2)
    >>> points.groupby("class_id").size().tolist()
    [2, 2]
    """
    inside = _inside(collection, fields)
    best = _best(collection)
    best = best[inside[best.document.to_numpy()]]
    if best.empty:
        raise MirblabError(f"{collection.name} has no query with a relevant document, so there is no pair to show")
    rng = np.random.default_rng(seed)
    chosen = best.iloc[np.sort(rng.permutation(len(best))[:n_pairs])]
    rows = [row for pair in chosen.itertuples() for row in _both(collection, pair.query, pair.document)]
    judged = collection.qrels[collection.qrels.query_id.cat.codes.isin(chosen["query"])]
    # A query that is a document too stands on the map already.
    own = collection.doc_ids.get_indexer(collection.query_ids[chosen["query"].to_numpy()])
    left = np.setdiff1d(np.flatnonzero(inside), [*judged.doc_id.cat.codes, *own])
    for place in np.sort(rng.permutation(left)[:n_distractors]):
        rows.append(_row(collection, "document", int(place), "", DISTRACTOR))
    points = pd.DataFrame(rows).drop_duplicates("id", ignore_index=True)
    two_fields = points.tag.ne("").all() and points.tag.nunique() == 2
    return points.assign(field=points.tag if two_fields else points.field)


def _inside(collection: Collection, fields: Sequence[str]) -> np.ndarray:
    """Return which documents have one of the *fields* as first tag, bool (n_docs,); all of them without fields."""
    if not fields:
        return np.ones(len(collection.doc_ids), dtype=bool)
    tags = collection.first_tags
    for field in fields:
        if field not in tags:
            raise unknown("field", field, {tag for tag in tags if tag})
    return np.isin(tags, list(fields))


def best_judged(collection: Collection) -> pd.DataFrame:
    """Return the judgement of each query's most relevant document, the first by id where several are.

    Columns query_id, doc_id, relevance; a query without a relevant document has no row.

    >>> from mirblab.shelf import load
    >>> bool(best_judged(load("mini-qa")).query_id.is_unique)
    True
    """
    judged = collection.relevant
    judged = judged.sort_values(["query_id", "relevance", "doc_id"], ascending=[True, False, True])
    return judged.drop_duplicates("query_id")


def grades(collection: Collection, query_id: str) -> dict[str, int]:
    """Return the relevance of every judged document of a query, by its id; empty where nothing is judged.

    >>> from mirblab.shelf import load
    >>> c = load("mini-qa")
    >>> max(grades(c, c.query_ids[0]).values())
    3
    """
    judged = collection.qrels[(collection.qrels.query_id == query_id).to_numpy()]
    return dict(zip(judged.doc_id.astype("str"), judged.relevance.tolist(), strict=True))


def _best(collection: Collection) -> pd.DataFrame:
    """Return each query's best judged document, as positions; a pair that is judged both ways counts once."""
    best = best_judged(collection)
    pairs = pd.DataFrame({"query": best.query_id.cat.codes.to_numpy(), "document": best.doc_id.cat.codes.to_numpy()})
    ids = zip(best.query_id.astype(str), best.doc_id.astype(str), strict=True)
    sides = ["\n".join(sorted(pair)) for pair in ids]
    return pairs[~pd.Series(sides, dtype="str").duplicated().to_numpy()]


def _both(collection: Collection, query: int, document: int) -> list[dict[str, str]]:
    name = str(collection.query_ids[query])
    kind = relation(collection)
    return [_row(collection, "query", query, name, kind), _row(collection, "document", document, name, kind)]


def _row(collection: Collection, side: str, place: int, class_id: str, kind: str) -> dict[str, str]:
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
