"""candidates: which documents each query may return, as lists or as rules that are never expanded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np


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
