"""candidates: which documents each query may return, as lists or as rules that are never expanded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd


class Rule(Protocol):
    """One restriction; several may hold at once."""

    name: str

    def restrict(self, mask: np.ndarray, queries: np.ndarray) -> None:
        """Set to False in *mask* (n_queries, n_docs) what the queries at these positions may not return."""

    def content(self) -> Sequence[np.ndarray]:
        """Return the arrays that determine the rule, for the collection's fingerprint."""


@dataclass(frozen=True)
class Candidates:
    """The documents that each query of a collection may return."""

    n_docs: int
    rules: tuple[Rule, ...] = ()
    rows: np.ndarray | None = None  # where each query stands in the rules; None: query i at i

    @property
    def names(self) -> list[str]:
        """Return the names of the rules in force; empty when every query may return every document."""
        return [rule.name for rule in self.rules]

    def allowed(self, query_positions: np.ndarray) -> np.ndarray | None:
        """Return True where a document may be returned, (n_positions, n_docs), or None when nothing is restricted.

        Ask for it block by block: a mask over all queries of a large collection does not fit in memory.

        >>> Candidates(3).allowed(np.array([0])) is None
        True
        """
        if not self.rules:
            return None
        mask = np.ones((len(query_positions), self.n_docs), dtype=bool)
        places = np.asarray(query_positions)
        for rule in self.rules:
            rule.restrict(mask, places if self.rows is None else self.rows[places])
        return mask

    def select(self, query_positions: np.ndarray) -> Candidates:
        """Return the candidates of some of the queries, in the order given."""
        places = np.asarray(query_positions)
        return Candidates(self.n_docs, self.rules, places if self.rows is None else self.rows[places])


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
