"""restrictions: which documents a query may return, from the lists in a folder and the rules that its card names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mirblab import folder as on_disk
from mirblab.candidates import Rule
from mirblab.card import Card
from mirblab.errors import MirblabError
from mirblab.rules import Earlier, Listed, NotSelf, TagOverlap, tag_matrix


def rules(
    folder: Path, card: Card, corpus: pd.DataFrame, asked: pd.DataFrame, queries: pd.DataFrame, qrels: pd.DataFrame
) -> list[Rule]:
    """Return the restrictions that the folder's lists and the card's `candidates` put on the queries."""
    found: list[Rule] = []
    for stem, key, allow in (("candidates", "candidate-ids", True), ("excluded_ids", "excluded-ids", False)):
        pairs = on_disk.read_lists(folder, stem, key, asked, queries, corpus, every_query=allow)
        if pairs is not None:
            found.append(Listed.from_pairs(stem, *pairs, len(asked), allow=allow))
    judged = Listed.from_pairs("judged", _codes(qrels.query_id), _codes(qrels.doc_id), len(asked), allow=True)
    for name in card.candidates:
        if name == "judged":
            found.append(judged)
        elif name == "not-self":
            found.append(NotSelf(pd.Index(corpus.doc_id).get_indexer(asked.query_id)))
        elif name == "earlier":
            found.append(Earlier(_orders(corpus, "corpus", folder), _orders(asked, "queries", folder)))
        elif name == "tags":
            found.append(_tag_rule(corpus, asked, qrels, card, folder))
    return found


def _tag_rule(corpus: pd.DataFrame, asked: pd.DataFrame, qrels: pd.DataFrame, card: Card, folder: Path) -> TagOverlap:
    if "tags" not in corpus or "tags" not in asked:
        raise MirblabError(f"{folder}: the card says candidates = 'tags', but no text has 'tags'; add them")
    names = pd.Index(sorted({tag for column in (corpus.tags, asked.tags) for row in column for tag in row or []}))
    gold = qrels[qrels.relevance >= card.relevant_from]
    kept = Listed.from_pairs("gold", _codes(gold.query_id), _codes(gold.doc_id), len(asked), allow=True)
    return TagOverlap(tag_matrix(asked.tags, names), tag_matrix(corpus.tags, names), kept)


def _orders(texts: pd.DataFrame, stem: str, folder: Path) -> np.ndarray:
    orders = texts["order"] if "order" in texts else pd.Series(pd.NA, texts.index, dtype="Int64")
    if missing := int(orders.isna().sum()):
        raise MirblabError(
            f"{folder}: the card says candidates = 'earlier', but {missing:,} rows of {stem} have no 'order'; add it"
        )
    return orders.to_numpy(dtype=np.int64)


def _codes(column: pd.Series) -> np.ndarray:
    return column.cat.codes.to_numpy().astype(np.int64)
