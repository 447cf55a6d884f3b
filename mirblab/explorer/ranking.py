"""ranking: what is asked of a system, and the documents that it returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from mirblab import runs
from mirblab.candidates import Candidates
from mirblab.collection import Collection

QUERY_IDS = pd.Index(["query"], dtype="str")


class Asked(NamedTuple):
    """A query: its text, and its place among the collection's queries, None for free text."""

    text: str
    row: int | None = None


class Ranking(NamedTuple):
    """Documents by their positions in the corpus, best first, int64 (n,), and their scores, float32 (n,)."""

    positions: np.ndarray
    scores: np.ndarray

    def rank(self, position: int) -> int:
        """Return the rank of a document, from 1, or 0 where it is not in the ranking.

        >>> Ranking(np.array([7, 3]), np.array([2.0, 1.0])).rank(3)
        2
        """
        found = np.flatnonzero(self.positions == position)
        return int(found[0]) + 1 if len(found) else 0

    def run(self, collection: Collection, name: str) -> pd.DataFrame:
        """Return the ranking as a run of one query, called "query"."""
        rows = np.zeros(len(self.positions), dtype=np.int64)
        found = rows, self.positions, self.scores
        return runs.from_positions(*found, QUERY_IDS, collection.doc_ids, name, collection.name)

    @classmethod
    def of_run(cls, run: pd.DataFrame, collection: Collection) -> Ranking:
        """Return the ranking of a run that has one query."""
        positions = collection.doc_ids.get_indexer(run.doc_id.astype("str"))
        return cls(positions, run.score.to_numpy(np.float32))


def candidates(collection: Collection, asked: Asked) -> Candidates:
    """Return the documents that the query may return: those of the collection's rules, all for free text."""
    if asked.row is None:
        return Candidates(len(collection.corpus))
    return collection.candidates.select(np.array([asked.row]))
