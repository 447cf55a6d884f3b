"""search: structure search over a collection of formulas or of posts, candidates honoured exactly."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from mirblab import paths, runs
from mirblab.collection import Collection
from mirblab.errors import MirblabError
from mirblab.formula.index import Index
from mirblab.formula.scoring import Query
from mirblab.formula.storage import FORMAT
from mirblab.formula.texts import Owned, are_formulas, formulas, owned
from mirblab.formula.version import code_hash
from mirblab.formula.weighting import WEIGHTS, B, kind_weights

_WORTH_STORING = 5_000  # formulas; fewer are indexed again faster than a folder is opened and checked


def search(
    collection: Collection, *, depth: int, weights: Mapping[str, float] | None = None, b: float = B
) -> pd.DataFrame:
    """Return the run of structure search: at most *depth* documents per query, best first.

    In a collection for formula retrieval (by its card, else by the look of its texts) a document scores as
    `Index.search` says. A post scores, for each formula of the query, the best score of its own formulas; several
    formulas of a query count by their lengths, as in Approach0. *weights* are those of kinds of tokens (None: the
    usual ones), and *b* says how much more the share of the query that is found counts than the share of the
    document's formula that is used.

    A document that shares nothing, or that the candidates exclude, never comes back. The index of a larger collection
    is kept in the cache, under a hash of its formulas and of the code that reads them.

    >>> from mirblab.shelf import load
    >>> run = search(load("mini-wfb"), depth=3)
    >>> int(run["rank"].max()), run.attrs["b"]
    (3, 4.0)
    """
    if depth < 1:
        raise MirblabError(f"depth must be at least 1, found {depth}")
    bare = are_formulas(collection.card.task, collection.texts)
    documents, queries = owned(collection.texts, bare), [formulas(text, bare) for text in collection.query_texts]
    if bare and documents.is_single and max(map(len, queries), default=0) <= 1:
        asked = [query[0] if query else "" for query in queries]
        found = stored(documents.column()).search(asked, depth, collection.candidates, weights=weights, b=b)
    else:
        found = _posts(collection, documents, queries, depth, weights, b)
    notes = {"b": b, "weights": dict(zip(WEIGHTS, kind_weights(weights).tolist(), strict=True))}
    return runs.from_positions(*found, collection.query_ids, collection.doc_ids, "structure", collection.name, **notes)


def stored(latex: Sequence[str]) -> Index:
    """Return the index of formulas, ids their positions, from the cache where it was built before."""
    names = [f"{number:010d}" for number in range(len(latex))]
    items = list(zip(names, latex, strict=True))
    if len(latex) < _WORTH_STORING:
        return Index.build(items)
    folder = paths.cache() / "structure" / _key(latex)
    try:
        return Index.open(folder)
    except FileNotFoundError:
        pass
    except MirblabError:  # damaged: what is in a cache can be made again
        shutil.rmtree(folder, ignore_errors=True)
    try:
        return Index.build(items, folder)
    except MirblabError:  # another process was faster, or there is something else wrong, which shows here
        return Index.open(folder)


def _key(latex: Iterable[str]) -> str:
    digest = hashlib.blake2b(f"{FORMAT} {code_hash()}".encode(), digest_size=16)
    for formula in latex:
        text = formula.encode("utf-8", "surrogatepass")
        digest.update(len(text).to_bytes(8, "little") + text)
    return digest.hexdigest()


def _posts(
    collection: Collection,
    documents: Owned,
    queries: list[list[str]],
    depth: int,
    weights: Mapping[str, float] | None,
    b: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows, positions, scores) of the best documents by the best of their formulas."""
    index = stored(documents.formulas)
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))]
    for row, query in enumerate(queries):
        asked = index.queries(list(dict.fromkeys(query)), weights)
        scores = _merged(index, documents, asked, weights, b)
        scores[scores <= 0] = -np.inf
        allowed = collection.candidates.allowed(np.array([row]))
        _, positions, best = runs.top_k(scores[None], depth, allowed)
        parts.append((np.full(len(positions), row), positions, best))
    rows, positions, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    return rows, positions, scores


def _merged(
    index: Index, documents: Owned, asked: list[Query], weights: Mapping[str, float] | None, b: float
) -> np.ndarray:
    """Return the score of every document, float32: the mean over the query's formulas, weighted by their lengths."""
    found, total = np.zeros(len(documents.starts) - 1), sum(query.length for query in asked)
    for query in asked:
        if query.length:
            found += documents.best(index.scores(query, weights, b)) * (query.length / total)
    return found.astype(np.float32)
