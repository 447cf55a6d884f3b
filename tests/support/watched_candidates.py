"""Candidates that write down how they are asked."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirblab.data.candidates import Candidates, ListRule


def watched_candidates(n_queries: int, n_docs: int) -> tuple[Candidates, list[int]]:
    """Return candidates of which a rule excludes nobody, and a list of how many queries each mask was asked for."""
    asked: list[int] = []

    class Watched(Candidates):
        def allowed(self, positions: Any, docs: Any = None) -> Any:
            asked.append(len(positions))
            return super().allowed(positions, docs)

    rule = ListRule.from_pairs("none", np.empty(0, int), np.empty(0, int), n_queries, allow=False)
    return Watched(n_docs, (rule,)), asked
