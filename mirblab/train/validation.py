"""validation: the effectiveness of the model in training on held-out views, at any step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.encoders.encoding import Encoder
from mirblab.encoders.local import unit_vectors
from mirblab.train.loss import Passes

N_QUERIES = 500


@dataclass(frozen=True)
class CurrentModel:
    """The model at this step, which encodes and scores as an encoder does, without a cache."""

    passes: Passes
    encoder: Encoder

    def vectors(self, texts: Sequence[str], role: str = "document", instruction: str = "") -> np.ndarray:
        """Return one vector of length 1 per text, float32 (n, d), in the training's precision, without dropout."""
        with self._evaluating():
            vectors = self.passes.vectors(self.encoder.strings(texts, role, instruction))
            return unit_vectors(vectors.float().cpu().numpy())

    def scores(self, queries: Sequence[str], documents: Sequence[str], instruction: str = "") -> np.ndarray:
        """Return the trained score, cosine or MaxSim, of every query with every document, float32 (n, m)."""
        strings = self.encoder.strings(queries, "query", instruction)
        with self._evaluating():
            return self.passes.scores(strings, self.encoder.strings(documents))

    def rows(self, pairs: Sequence[tuple[Any, ...]]) -> np.ndarray:
        """Return what the passes make of each pair, float32 (n, d): of a cross-encoder the score, (n, 1)."""
        with self._evaluating():
            return self.passes.vectors(pairs).float().cpu().numpy()

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        import torch

        model = self.passes.model
        was_training = model.training
        model.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            model.train(was_training)


Evaluate = Callable[[CurrentModel, int], Mapping[str, float]]


def held_out(
    views: pd.DataFrame,
    *,
    query: str = "informal",
    document: str = "signature",
    split: str = "dev",
    n_rows: int = 2000,
    seed: int = 0,
    instruction: str = "",
) -> Evaluate:
    """Return a function that measures R@1, R@5 and RR from the view *query* to the view *document* of held-out rows.

    At most 500 rows of *split* are queries; the corpus is these and other rows of the table, *n_rows* in all, drawn by
    *seed*. Only the document of the query's row is relevant. Raises MirblabError for a split without such rows.

    >>> from mirblab.analysis.lean_views import read_views
    >>> callable(held_out(read_views("mini-views"), n_rows=20))
    True
    """
    complete = views[(views[query].fillna("") != "") & (views[document].fillna("") != "")].sort_values("id")
    query_rows = np.flatnonzero((complete["split"] == split).to_numpy())
    if not len(query_rows):
        raise MirblabError(
            f"the data has no row of split '{split}' with both {query} and {document} to evaluate on; "
            "give data with such a split"
        )
    rng = np.random.default_rng(seed)
    query_rows = np.sort(rng.permutation(query_rows)[: min(N_QUERIES, n_rows)])
    others = rng.permutation(np.setdiff1d(np.arange(len(complete)), query_rows))[: max(0, n_rows - len(query_rows))]
    corpus = np.sort(np.concatenate([query_rows, others]))
    queries, documents = complete[query].iloc[query_rows].tolist(), complete[document].iloc[corpus].tolist()
    own_positions = np.searchsorted(corpus, query_rows)

    def evaluate(model: CurrentModel, step: int) -> dict[str, float]:
        ranks = own_document_ranks(model.scores(queries, documents, instruction), own_positions)
        return {"R@1": float((ranks <= 1).mean()), "R@5": float((ranks <= 5).mean()), "RR": float((1 / ranks).mean())}

    return evaluate


def own_document_ranks(scores: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return the rank of document *positions*[i] for query i, from 1, in *scores* (n_queries, n_docs).

    Of equal scores the later document is first, as in a run whose documents are sorted by id.

    >>> own_document_ranks(np.array([[0.5, 0.9, 0.5]]), np.array([0])).tolist()
    [3]
    """
    own_scores = scores[np.arange(len(positions)), positions][:, None]
    is_later = np.arange(scores.shape[1]) > positions[:, None]
    return 1 + ((scores > own_scores) | ((scores == own_scores) & is_later)).sum(axis=1)
