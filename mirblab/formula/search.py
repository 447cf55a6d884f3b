"""search: structure search over a collection of formulas or of posts, candidates honoured exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from mirblab import runs
from mirblab.candidates import Candidates
from mirblab.collection import Collection
from mirblab.errors import MirblabError
from mirblab.formula import bags
from mirblab.formula.index import Index
from mirblab.formula.indexes import stored
from mirblab.formula.texts import Owned, Reader, lack
from mirblab.formula.weighting import WEIGHTS, B, kind_weights


def search(
    collection: Collection, *, depth: int, weights: Mapping[str, float] | None = None, b: float = B
) -> pd.DataFrame:
    """Return the run of structure search: at most *depth* documents per query, best first.

    In a collection for formula retrieval (by its card, else by the look of its texts) a document scores as
    `Index.search` says, where there are several formulas the best of the document for each of the query, by their
    lengths. A post scores by all of its formulas together, as `bags.scores` says: questions and answers share many
    small formulas rather than one. *weights* are those of kinds of tokens (None: the usual ones), and *b* says how
    much more the share of a formula that is found counts than the share of the document's formula that is used; it
    says nothing to posts.

    A text in the language of a proof assistant has no formulas (`texts.Reader`); how many queries and documents have
    none stands in the attrs (`texts.lack`).

    A document that shares nothing, or that the candidates exclude, never comes back. The index of a larger collection
    is kept in the cache, under a hash of its formulas and of the code that reads them.

    >>> from mirblab.shelf import load
    >>> run = search(load("mini-wfb"), depth=3)
    >>> int(run["rank"].max()), run.attrs["b"]
    (3, 4.0)
    """
    if depth < 1:
        raise MirblabError(f"depth must be at least 1, found {depth}")
    queries, candidates = collection.query_texts, collection.candidates
    prepared = Prepared.of(collection)
    found = prepared.search(queries, depth, candidates, weights=weights, b=b)
    notes = {"b": b, "weights": dict(zip(WEIGHTS, kind_weights(weights).tolist(), strict=True))}
    have = [bool(prepared.reader.formulas(text)) for text in queries]
    notes |= lack(have, np.diff(prepared.documents.starts) > 0)
    return runs.from_positions(*found, collection.query_ids, collection.doc_ids, "structure", collection.name, **notes)


@dataclass(frozen=True)
class Prepared:
    """The formulas of a collection's documents, indexed once for many searches.

    `reader` reads queries; `is_single`: the index has one formula, or none, for each document, not the distinct ones,
    because neither documents nor queries have several.
    """

    reader: Reader
    is_single: bool
    documents: Owned
    index: Index

    @classmethod
    def of(cls, collection: Collection) -> Prepared:
        """Return the formulas of a collection and their index, which is read from the cache where it is there."""
        reader = Reader.of(collection, "query")
        documents = Reader.of(collection).owned(collection.texts)
        longest = max((len(reader.formulas(text)) for text in collection.query_texts), default=0)
        is_single = reader.is_bare and documents.is_single and longest <= 1
        return cls(reader, is_single, documents, stored(documents.column() if is_single else documents.formulas))

    def search(
        self,
        texts: Sequence[str],
        depth: int,
        candidates: Candidates,
        *,
        weights: Mapping[str, float] | None = None,
        b: float = B,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (rows, positions, scores) of each text's best documents, flat, best first; see `search`."""
        queries = [self.reader.formulas(text) for text in texts]
        if self.is_single and max(map(len, queries), default=0) <= 1:
            single = [query[0] if query else "" for query in queries]
            return self.index.search(single, depth, candidates, weights=weights, b=b)
        if not self.reader.is_bare:
            return _ranked(bags.scores(self.index, self.documents, queries, weights), candidates, depth)
        return _ranked(_best(self.index, self.formulas, queries, weights, b), candidates, depth)

    @cached_property
    def formulas(self) -> Owned:
        """Return which document has which formula of the index."""
        if not self.is_single:
            return self.documents
        places = np.flatnonzero(np.diff(self.documents.starts))
        return Owned(self.documents.column(), places, self.documents.starts)


def _best(
    index: Index, documents: Owned, queries: list[list[str]], weights: Mapping[str, float] | None, b: float
) -> Iterator[np.ndarray]:
    """Yield each query's scores of all documents, float32: its formulas' best ones, weighted by their lengths."""
    for query in queries:
        asked = index.queries(list(dict.fromkeys(query)), weights)
        found, total = np.zeros(len(documents.starts) - 1), sum(own.length for own in asked)
        for own in asked:
            if own.length:
                found += documents.best(index.scores(own, weights, b)) * (own.length / total)
        yield found.astype(np.float32)


def _ranked(
    scored: Iterable[np.ndarray], candidates: Candidates, depth: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows, positions, scores) of each query's best documents with a score above 0, flat, best first."""
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))]
    for row, scores in enumerate(scored):
        allowed = candidates.allowed(np.array([row]))
        _, positions, best = runs.top_k(np.where(scores > 0, scores, -np.inf)[None], depth, allowed)
        parts.append((np.full(len(positions), row), positions, best))
    rows, positions, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    return rows, positions, scores
