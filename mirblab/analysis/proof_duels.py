"""proof_duels: how often a system ranks the true proof above wrong ones, by the kind of mistake."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection
from mirblab.data.runs import order_run


def hard_negative_accuracy(run: pd.DataFrame, collection: Collection) -> pd.DataFrame:
    """Return how often the true proof scores above each kind of wrong one: one row per system and kind.

    *collection* is one of `mirblab build hard`, *run* deep enough to hold every candidate. Columns: system, kind,
    queries (that have such a negative and a relevant document), true_first (share of queries, 0 to 1, whose best
    relevant document scores above all negatives of the kind), tie, wrong_first, chance (true_first of a random order).
    A document not returned counts as last. Negatives that are not corrupted copies are of the kind "near"; "any" is all
    kinds together.

    >>> from mirblab.sources.catalogue import load
    >>> from mirblab.retrieval.systems import system
    >>> c = load("mini-qa")
    >>> hard_negative_accuracy(system("bm25").search(c), c).kind.tolist()
    ['near', 'any']
    """
    run, judged = order_run(run), collection.relevant
    gold = set(zip(judged.query_id.cat.codes, judged.doc_id.cat.codes, strict=True))
    if not gold:
        raise MirblabError(f"{collection.name} has no query with a relevant document, so there is nothing to compare")
    kinds = np.array([name.rpartition("~")[2] if "~" in name else "near" for name in collection.doc_ids], dtype=object)
    queries, documents = _row_positions(run, collection)
    scores = dict(zip(zip(queries.tolist(), documents.tolist(), strict=True), run.score.tolist(), strict=True))
    rows = []
    for query in range(len(collection.query_ids)):
        mask = collection.candidates.allowed(np.array([query]))
        places = np.arange(len(collection.doc_ids)) if mask is None else np.flatnonzero(mask[0])
        rows += _query_outcomes(query, places, gold, kinds, scores)
    table = pd.DataFrame(rows, columns=["kind", "outcome", "chance"])
    return _outcome_shares(table, str(run.attrs.get("system", "run")))


def _row_positions(run: pd.DataFrame, collection: Collection) -> tuple[np.ndarray, np.ndarray]:
    ids = (("query_id", collection.query_ids), ("doc_id", collection.doc_ids))
    positions = [known.get_indexer(pd.Index(run[name].astype("str"))) for name, known in ids]
    if any((places < 0).any() for places in positions):
        raise MirblabError(
            f"the run has queries or documents that {collection.name} lacks; it was made for another collection"
        )
    return positions[0], positions[1]


def _outcome_shares(table: pd.DataFrame, system: str) -> pd.DataFrame:
    rows, last = [], [kind for kind in ("near", "any") if kind in set(table.kind) or kind == "any"]
    for kind in [*sorted(set(table.kind) - set(last)), *last]:
        own = table[table.kind == kind]
        shares = [float((own.outcome == value).mean()) for value in (1, 0, -1)]
        rows.append((system, kind, len(own), *shares, float(own.chance.mean())))
    return pd.DataFrame(rows, columns=["system", "kind", "queries", "true_first", "tie", "wrong_first", "chance"])


def _query_outcomes(
    query: int, places: np.ndarray, gold: set, kinds: np.ndarray, scores: dict
) -> list[tuple[str, int, float]]:
    """Return outcome (1 true first, 0 tie, -1 wrong first) and chance for each kind of negative that the query has."""
    best: dict[str, float] = {}
    counts: Counter[str] = Counter()
    n_true, true = 0, -np.inf
    for place in places.tolist():
        score = scores.get((query, place), -np.inf)
        if (query, place) in gold:
            n_true, true = n_true + 1, max(true, score)
        else:
            for kind in (kinds[place], "any"):
                counts[kind] += 1
                best[kind] = max(best.get(kind, -np.inf), score)
    if not n_true:
        return []
    return [(kind, (true > score) - (true < score), n_true / (n_true + counts[kind])) for kind, score in best.items()]
