"""The documents that a query may return, by lists and by rules."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_PAIRWISE_SHARE = 1 / 128  # the share of a block up to which checking pair by pair is faster


class Rule(Protocol):
    """One restriction; several may hold at once."""

    @property
    def name(self) -> str:
        """Return the rule's name in a card."""

    def restrict(self, mask: np.ndarray, queries: np.ndarray, first: int = 0) -> None:
        """Set to False in *mask* (n_queries, n_docs), which begins at document *first*, what may not be returned."""

    def permits(self, queries: np.ndarray, docs: np.ndarray) -> np.ndarray:
        """Return for each pair of positions whether the query may return the document, bool (n_pairs,)."""

    def of_documents(self, positions: np.ndarray) -> Rule:
        """Return the rule for a collection that has only the documents at *positions*, ascending, in this order."""

    def content(self) -> Sequence[np.ndarray]:
        """Return the arrays that determine the rule, for the collection's fingerprint."""


@dataclass(frozen=True)
class Candidates:
    """The documents that each query of a collection may return.

    >>> Candidates(3).permits(np.array([0]), np.array([2])).tolist()
    [True]
    """

    n_docs: int
    rules: tuple[Rule, ...] = ()
    rows: np.ndarray | None = None  # the position of each query in the rules; None: query i at i

    @property
    def names(self) -> list[str]:
        """Return the names of the rules; empty when every query may return every document."""
        return [rule.name for rule in self.rules]

    def allowed(self, query_positions: np.ndarray, docs: slice | None = None) -> np.ndarray | None:
        """Return True where a document may be returned, (n_positions, n_docs), or None when nothing is restricted.

        *docs* limits the columns (None: all): a mask over all queries of a large collection does not fit in memory.
        """
        if not self.rules:
            return None
        first, stop = (0, self.n_docs) if docs is None else (docs.start, docs.stop)
        mask, rows = np.ones((len(query_positions), stop - first), dtype=bool), self._rule_rows(query_positions)
        for rule in self.rules:
            rule.restrict(mask, rows, first)
        return mask

    def permits(self, query_positions: np.ndarray, doc_positions: np.ndarray) -> np.ndarray:
        """Return for each pair of positions whether the query may return the document, bool (n_pairs,)."""
        permitted, rows = np.ones(len(query_positions), dtype=bool), self._rule_rows(query_positions)
        for rule in self.rules:
            permitted &= rule.permits(rows, doc_positions)
        return permitted

    def among(self, query_positions: np.ndarray, docs: slice, cells: np.ndarray) -> np.ndarray:
        """Return those of *cells*, flat positions in a block of queries by *docs*, that may be returned."""
        width = docs.stop - docs.start
        if len(cells) > _PAIRWISE_SHARE * len(query_positions) * width:
            mask = self.allowed(query_positions, docs)
            return cells if mask is None else cells[mask.ravel()[cells]]
        rows, columns = np.divmod(cells, width)
        return cells[self.permits(np.asarray(query_positions)[rows], columns + docs.start)]

    def _rule_rows(self, query_positions: np.ndarray) -> np.ndarray:
        positions = np.asarray(query_positions)
        return positions if self.rows is None else self.rows[positions]

    def select(self, query_positions: np.ndarray) -> Candidates:
        """Return the candidates of some of the queries, in the order given."""
        return Candidates(self.n_docs, self.rules, self._rule_rows(query_positions))

    def of_documents(self, positions: np.ndarray) -> Candidates:
        """Return the candidates of a collection that has only the documents at *positions*, ascending."""
        rules = tuple(rule.of_documents(positions) for rule in self.rules)
        return Candidates(len(positions), rules, self.rows)


@dataclass(frozen=True)
class ListRule:
    """An allow-list or a deny-list: the documents of query i are `docs[starts[i]:starts[i + 1]]`, ascending."""

    name: str
    starts: np.ndarray
    docs: np.ndarray
    allow: bool

    @classmethod
    def from_pairs(cls, name: str, queries: np.ndarray, docs: np.ndarray, n_queries: int, *, allow: bool) -> ListRule:
        """Return the rule for pairs of query and document positions, in any order."""
        by_query = np.lexsort((docs, queries))
        counts = np.bincount(queries, minlength=n_queries)
        return cls(name, np.concatenate([[0], np.cumsum(counts)]), docs[by_query], allow)

    def restrict(self, mask: np.ndarray, queries: np.ndarray, first: int = 0) -> None:
        """Keep only the listed documents (allow-list), or drop them (deny-list)."""
        for row, query in enumerate(queries):
            listed = self.docs[self.starts[query] : self.starts[query + 1]] - first
            listed = listed[slice(*listed.searchsorted([0, mask.shape[1]]))]
            if self.allow:
                kept = mask[row, listed]
                mask[row] = False
                mask[row, listed] = kept
            else:
                mask[row, listed] = False

    def permits(self, queries: np.ndarray, docs: np.ndarray) -> np.ndarray:
        """Return whether each document is listed for its query (allow-list), or is not (deny-list)."""
        return self.has(queries, docs) == self.allow

    def has(self, queries: np.ndarray, docs: np.ndarray) -> np.ndarray:
        """Return whether each document is listed for its query, (n_pairs,)."""
        pairs = queries.astype(np.int64) << 32 | docs
        if not len(self._pairs):
            return np.zeros(len(pairs), bool)
        positions = np.minimum(self._pairs.searchsorted(pairs), len(self._pairs) - 1)
        return self._pairs[positions] == pairs

    @cached_property
    def _pairs(self) -> np.ndarray:
        queries = np.repeat(np.arange(len(self.starts) - 1, dtype=np.int64), np.diff(self.starts))
        return queries << 32 | self.docs

    def of_documents(self, positions: np.ndarray) -> ListRule:
        """Return the lists without other documents."""
        queries, places = (
            np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts)),
            _places(self.docs, positions),
        )
        left = places >= 0
        return self.from_pairs(self.name, queries[left], places[left], len(self.starts) - 1, allow=self.allow)

    def content(self) -> Sequence[np.ndarray]:
        """Return the lists."""
        return self.starts, self.docs, np.array([self.allow])


@dataclass(frozen=True)
class NotSelfRule:
    """A query may not return the document of the same id, whose position is `own[i]` (-1: there is none)."""

    own: np.ndarray
    name: str = "not-self"

    def restrict(self, mask: np.ndarray, queries: np.ndarray, first: int = 0) -> None:
        """Exclude the document of each query's id."""
        own = self.own[queries] - first
        rows = np.flatnonzero((self.own[queries] >= 0) & (own >= 0) & (own < mask.shape[1]))
        mask[rows, own[rows]] = False

    def permits(self, queries: np.ndarray, docs: np.ndarray) -> np.ndarray:
        """Return whether each document has another id than its query."""
        return self.own[queries] != docs

    def of_documents(self, positions: np.ndarray) -> NotSelfRule:
        """Return the rule with the new positions."""
        return replace(self, own=_places(self.own, positions))

    def content(self) -> Sequence[np.ndarray]:
        """Return the positions of the excluded documents."""
        return (self.own,)


@dataclass(frozen=True)
class EarlierRule:
    """A query may return only earlier documents, which have a smaller `order`."""

    doc_order: np.ndarray
    query_order: np.ndarray
    name: str = "earlier"

    def restrict(self, mask: np.ndarray, queries: np.ndarray, first: int = 0) -> None:
        """Drop the documents that are not earlier than the query."""
        mask &= self.doc_order[None, first : first + mask.shape[1]] < self.query_order[queries][:, None]

    def permits(self, queries: np.ndarray, docs: np.ndarray) -> np.ndarray:
        """Return whether each document is earlier than its query."""
        return self.doc_order[docs] < self.query_order[queries]

    def of_documents(self, positions: np.ndarray) -> EarlierRule:
        """Return the rule with the orders of these documents."""
        return replace(self, doc_order=self.doc_order[positions])

    def content(self) -> Sequence[np.ndarray]:
        """Return both orders."""
        return self.doc_order, self.query_order


@dataclass(frozen=True)
class TagRule:
    """A query may not return a document that shares many of its tags, unless it is relevant (MIRB, section 3.1).

    A document is excluded if |T(Q) ∩ T(Q')| / |T(Q)| >= `share`. Tags are sparse matrices (n, n_tags) of ones, so that
    one block of queries costs one sparse product.
    """

    query_tags: csr_array
    doc_tags: csr_array
    gold: ListRule
    share: float = 0.5
    name: str = "tags"

    def restrict(self, mask: np.ndarray, queries: np.ndarray, first: int = 0) -> None:
        """Exclude the documents that share too many tags with the query, except relevant ones."""
        shared = (self.query_tags[queries] @ self.doc_tags[first : first + mask.shape[1]].T).tocoo()
        near = shared.data >= self._needed[queries][shared.row]
        rows, docs = shared.row[near], shared.col[near]
        drop = ~self.gold.has(queries[rows], docs + first)
        mask[rows[drop], docs[drop]] = False

    def permits(self, queries: np.ndarray, docs: np.ndarray) -> np.ndarray:
        """Return whether each document shares few enough tags with its query, or is relevant to it."""
        sizes = np.diff(self.doc_tags.indptr)[docs]
        pairs = np.repeat(np.arange(len(docs)), sizes)
        within = np.arange(len(pairs)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        tags = self.doc_tags.indices[self.doc_tags.indptr[docs][pairs] + within]
        shared = np.bincount(pairs, self._tags_by_query.has(queries[pairs], tags), minlength=len(docs))
        return (shared < self._needed[queries]) | self.gold.has(queries, docs)

    @cached_property
    def _needed(self) -> np.ndarray:
        """Return how many shared tags exclude a document; without tags a query excludes nothing."""
        counts = np.asarray(self.query_tags.sum(axis=1)).ravel()
        return np.maximum(counts * self.share, 0.5)

    @cached_property
    def _tags_by_query(self) -> ListRule:
        tags = self.query_tags.tocoo()
        return ListRule.from_pairs("tags", tags.row, tags.col, self.query_tags.shape[0], allow=True)

    def of_documents(self, positions: np.ndarray) -> TagRule:
        """Return the rule with the tags of these documents."""
        return replace(self, doc_tags=self.doc_tags[positions], gold=self.gold.of_documents(positions))

    def content(self) -> Sequence[np.ndarray]:
        """Return the sparse matrices' parts."""
        parts = [(tags.indptr, tags.indices) for tags in (self.query_tags, self.doc_tags)]
        return [*parts[0], *parts[1], *self.gold.content(), np.array([self.share])]


def _places(docs: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return where each of *docs* stands in ascending *positions*, or -1."""
    places = np.minimum(positions.searchsorted(docs), len(positions) - 1)
    return np.where(positions[places] == docs, places, -1)


def tag_matrix(tags: pd.Series, names: pd.Index) -> csr_array:
    """Return a sparse matrix (n_rows, n_tags) of ones for a column of lists of tags, all of them in *names*, sorted."""
    from scipy.sparse import csr_array

    numbers = {name: number for number, name in enumerate(names)}
    used, sizes = array("q"), array("q")  # a list of lists would need a hundred bytes for each row
    for row in tags:
        own = sorted({numbers[tag] for tag in row}) if isinstance(row, list) else []
        used.extend(own)
        sizes.append(len(own))
    rows = np.repeat(np.arange(len(sizes)), np.array(sizes, np.int64))
    columns = np.array(used, np.int64)
    return csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(len(sizes), len(names)))
