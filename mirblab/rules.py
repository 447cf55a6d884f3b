"""rules: the restrictions that make candidates: lists, own documents, earlier documents, shared tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Listed:
    """An allow-list or a deny-list: the documents of query i are `docs[starts[i]:starts[i + 1]]`."""

    name: str
    starts: np.ndarray
    docs: np.ndarray
    allow: bool

    @classmethod
    def from_pairs(cls, name: str, queries: np.ndarray, docs: np.ndarray, n_queries: int, *, allow: bool) -> Listed:
        """Return the rule for pairs of query and document positions, in any order."""
        by_query = np.argsort(queries, kind="stable")
        counts = np.bincount(queries, minlength=n_queries)
        return cls(name, np.concatenate([[0], np.cumsum(counts)]), docs[by_query], allow)

    def restrict(self, mask: np.ndarray, queries: np.ndarray) -> None:
        """Keep only the listed documents (allow-list), or drop them (deny-list)."""
        for row, query in enumerate(queries):
            listed = self.docs[self.starts[query] : self.starts[query + 1]]
            if self.allow:
                kept = mask[row, listed]
                mask[row] = False
                mask[row, listed] = kept
            else:
                mask[row, listed] = False

    def content(self) -> Sequence[np.ndarray]:
        """Return the lists."""
        return self.starts, self.docs, np.array([self.allow])


@dataclass(frozen=True)
class NotSelf:
    """A query may not return the document of the same id; `own[i]` is its position, or -1."""

    own: np.ndarray
    name: str = "not-self"

    def restrict(self, mask: np.ndarray, queries: np.ndarray) -> None:
        """Drop each query's own document."""
        own = self.own[queries]
        rows = np.flatnonzero(own >= 0)
        mask[rows, own[rows]] = False

    def content(self) -> Sequence[np.ndarray]:
        """Return the positions of the own documents."""
        return (self.own,)


@dataclass(frozen=True)
class Earlier:
    """A query may return only what stands before it: documents of a smaller `order`."""

    doc_order: np.ndarray
    query_order: np.ndarray
    name: str = "earlier"

    def restrict(self, mask: np.ndarray, queries: np.ndarray) -> None:
        """Drop what does not stand earlier than the query."""
        mask &= self.doc_order[None, :] < self.query_order[queries][:, None]

    def content(self) -> Sequence[np.ndarray]:
        """Return both orders."""
        return self.doc_order, self.query_order


@dataclass(frozen=True)
class TagOverlap:
    """A query may not return a non-gold document that shares at least half of its tags (MIRB, section 3.1).

    Excluded is what has |T(Q) ∩ T(Q')| / |T(Q)| >= `share`; judged relevant documents are kept. Tags are
    sparse matrices (n, n_tags) of ones, so that one block of queries costs one sparse product.
    """

    query_tags: object
    doc_tags: object
    gold: Listed
    share: float = 0.5
    name: str = "tags"

    def restrict(self, mask: np.ndarray, queries: np.ndarray) -> None:
        """Drop what is too near by its tags and not gold."""
        asked = self.query_tags[queries]
        shared = (asked @ self.doc_tags.T).tocoo()
        needed = np.asarray(asked.sum(axis=1)).ravel() * self.share
        near = shared.data >= needed[shared.row]
        rows, docs = shared.row[near], shared.col[near]
        gold = np.zeros_like(mask)
        for row, query in enumerate(queries):
            gold[row, self.gold.docs[self.gold.starts[query] : self.gold.starts[query + 1]]] = True
        drop = ~gold[rows, docs]
        mask[rows[drop], docs[drop]] = False

    def content(self) -> Sequence[np.ndarray]:
        """Return the sparse matrices' parts."""
        parts = [(tags.indptr, tags.indices) for tags in (self.query_tags, self.doc_tags)]
        return [*parts[0], *parts[1], *self.gold.content(), np.array([self.share])]


def tag_matrix(tags: pd.Series, names: pd.Index) -> object:
    """Return a sparse matrix (n_rows, n_tags) of ones for a column of lists of tags."""
    from scipy.sparse import csr_array

    lists = [sorted(set(row)) if isinstance(row, list) else [] for row in tags]
    rows = np.repeat(np.arange(len(lists)), [len(row) for row in lists])
    columns = names.get_indexer([tag for row in lists for tag in row])
    return csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(len(lists), len(names)))
