"""query_clusters: queries that are about the same, named by their terms, and whether failures lie together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mirblab.collection import Collection
from mirblab.encode import encoder
from mirblab.errors import MirblabError
from mirblab.formula import posts
from mirblab.tokenizers import tokenizer

_MOST_TEXTS = 2_000  # from which on the silhouette is taken of a sample
_KEPT = frozenset({"system", "empty", "full"})  # stop words of English that say something here
_DROPPED = frozenset({"let", "suppose", "\\text", "\\left", "\\right", "ref"})
_BLOCK = 1 << 21  # random numbers at a time
_NEAR, _PRIOR = 5, 2.0  # neighbours looked at; weight of what all queries say, in counts


@dataclass(frozen=True)
class Clusters:
    """Which cluster each text is in, (n_texts,) from 0, the largest first, and how well each number of them fits.

    `centre` is the position of each cluster's most typical text; `fits` has n_clusters, silhouette (-1 to 1).
    """

    labels: np.ndarray
    centre: list[int]
    fits: pd.DataFrame


def points(collections: Sequence[Collection], by: str = "") -> Any:
    """Return a row of length 1 for every query of the collections, in their order: where its content lies.

    *by* is an encoder, whose vectors are read or made (float32, dense), or "": terms as BM25 reads them, weighed by
    their rarity among the queries (TF-IDF, sparse).
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [text for collection in collections for text in collection.query_texts]
    if by:
        model = encoder(by)
        parts = [model.vectors(c.query_texts, "query", c.card.instruction) for c in collections]
        found = np.concatenate(parts).astype(np.float32)
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
    tokens = tokenizer("math")(texts)
    if not any(tokens):
        raise MirblabError(f"none of the {len(texts):,} queries has a term; name an encoder")
    return TfidfVectorizer(analyzer=lambda own: own, sublinear_tf=True).fit_transform(tokens)


def cluster(rows: Any, *, most: int = 6, least_size: int = 3, seed: int = 0) -> Clusters:
    """Return k-means clusters of *rows* (n_texts, d), as many from 2 to *most* as give the best mean silhouette.

    A number that leaves fewer than *least_size* texts per cluster on average is not tried: fewer than twice that many
    texts are one cluster. The same *seed* gives the same clusters. Rousseeuw, J. Comput. Appl. Math. 1987. A best
    silhouette near 0 says that the texts lie in no clear groups.

    >>> found = cluster(np.array([[1, 0], [1, 0.1], [1, 0], [0, 1], [0.1, 1], [0, 1], [0, 1]]))
    >>> found.labels.tolist(), found.fits.n_clusters.tolist()
    ([1, 1, 1, 0, 0, 0, 0], [2])
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score
    from threadpoolctl import threadpool_limits

    if most < 1 or least_size < 1:
        raise MirblabError(f"at least one cluster of at least one text, found most = {most}, least_size = {least_size}")
    n = rows.shape[0]
    best, labels, fits = -2.0, np.zeros(n, dtype=np.int64), []
    with threadpool_limits(1):  # so that sums have one order, and the bytes are the same
        for k in range(2, min(most, n // least_size, n - 1) + 1):
            made = KMeans(k, n_init=10, random_state=seed).fit_predict(rows)
            if len(np.unique(made)) < 2:
                continue  # texts that are all the same
            sample = _MOST_TEXTS if n > _MOST_TEXTS else None
            fit = float(silhouette_score(rows, made, sample_size=sample, random_state=seed))
            fits.append((k, fit))
            if fit > best:
                best, labels = fit, made
    labels = _by_size(labels)
    return Clusters(labels, _centres(rows, labels), pd.DataFrame(fits, columns=["n_clusters", "silhouette"]))


def names(texts: Sequence[str], labels: np.ndarray, others: Sequence[str] = (), n_terms: int = 4) -> list[str]:
    """Return a name for each cluster of *texts*: the terms that it has far more often than all other texts.

    *others* are further texts to be told from. Terms are counted once a text; they are ordered by the log-odds with a
    prior from all texts, in standard errors (Monroe, Colaresi & Quinn, Political Analysis 2008), and count from 1.64
    on, if at least two texts of the cluster have them. "no common terms" where none does.

    >>> texts = ["a prime", "prime ideals", "the prime number", "an open set", "is it open", "open sets"]
    >>> names(texts, np.array([0, 0, 0, 1, 1, 1]))
    ['prime', 'open']
    """
    from sklearn.feature_extraction.text import CountVectorizer

    tokens = [_readable(text) for text in [*texts, *others]]
    if not any(tokens):
        return ["no common terms"] * (int(labels.max(initial=-1)) + 1)
    counter = CountVectorizer(analyzer=lambda own: own, binary=True)
    has = counter.fit_transform(tokens).tocsr()
    terms, total = counter.get_feature_names_out(), np.asarray(has.sum(axis=0)).ravel()
    found = []
    for label in range(int(labels.max(initial=-1)) + 1):
        inside = np.flatnonzero(labels == label)
        own = np.asarray(has[inside].sum(axis=0)).ravel()
        z = _log_odds(own, total, len(inside), len(tokens))
        chosen = [at for at in np.lexsort([terms, -z]) if z[at] >= 1.64 and own[at] >= min(2, len(inside))]
        found.append(", ".join(terms[chosen[:n_terms]]) or "no common terms")
    return found


def together(
    rows: Any,
    marks: np.ndarray,
    collections: Sequence[str],
    *,
    k: int = _NEAR,
    n_permutations: int = 9_999,
    seed: int = 0,
) -> dict[str, float]:
    """Return whether marked texts lie nearer to each other than texts do: share, by_chance, p, n.

    *share* is how many of the *k* nearest others (cosine, of the same collection) of a marked text are marked, too, 0
    to 1; *by_chance* its mean when the marks are dealt anew within each collection, *p* how often that is as large.
    NaN where no two texts are marked or nothing is left unmarked. Cuzick & Edwards, J. R. Statist. Soc. B 1990.
    """
    marks, names = np.asarray(marks, dtype=bool), np.asarray(collections, dtype=object)
    near = _neighbours(rows, names, k)
    n = int(marks.sum())
    if n < 2 or n == len(marks) or not near.nnz:
        return {"share": np.nan, "by_chance": np.nan, "p": np.nan, "n": n}
    moved = _dealt(near, marks, names, n_permutations, seed)
    found = float(marks[near[marks].indices].sum())
    links = n * near.nnz / len(marks)
    p = (1 + int((moved >= found).sum())) / (1 + n_permutations)
    return {"share": found / links, "by_chance": float(moved.mean() / links), "p": p, "n": n}


def _dealt(near: Any, marks: np.ndarray, names: np.ndarray, n_permutations: int, seed: int) -> np.ndarray:
    """Return how many neighbours of marked texts are marked when the marks are dealt anew, (n_permutations,)."""
    places = [np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())]
    generator, found = np.random.default_rng(seed), []
    step = max(1, _BLOCK // len(marks))
    for start in range(0, n_permutations, step):
        dealt = np.zeros((len(marks), min(step, n_permutations - start)), dtype=np.float32)
        for here in places:
            lots, n = generator.random((dealt.shape[1], len(here))), int(marks[here].sum())
            if n:
                dealt[here] = (lots <= np.partition(lots, n - 1, axis=1)[:, [n - 1]]).T
        found.append(((near @ dealt) * dealt).sum(axis=0))
    return np.concatenate(found)


def _neighbours(rows: Any, names: np.ndarray, k: int) -> Any:
    """Return the *k* nearest others of each text in its collection, a sparse matrix (n_texts, n_texts) of ones."""
    from scipy.sparse import csr_matrix
    from sklearn.neighbors import NearestNeighbors

    sources, targets = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for name in dict.fromkeys(names.tolist()):
        here = np.flatnonzero(names == name)
        n_near = min(k, len(here) - 1)
        if n_near > 0:
            found = NearestNeighbors(n_neighbors=n_near, metric="cosine", algorithm="brute").fit(rows[here])
            sources.append(np.repeat(here, n_near))
            targets.append(here[found.kneighbors(return_distance=False)].ravel())
    at = np.concatenate(sources), np.concatenate(targets)
    return csr_matrix((np.ones(len(at[0])), at), shape=(len(names), len(names)))


def _by_size(labels: np.ndarray) -> np.ndarray:
    """Return the labels numbered anew: the largest cluster is 0; of equal ones that whose first text is earlier."""
    own, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    place = np.empty(len(own), dtype=np.int64)
    place[np.lexsort([first, -sizes])] = np.arange(len(own))
    return place[np.searchsorted(own, labels)]


def _centres(rows: Any, labels: np.ndarray) -> list[int]:
    """Return the position of the text nearest to each cluster's mean."""
    found = []
    for label in range(int(labels.max(initial=-1)) + 1):
        here = np.flatnonzero(labels == label)
        mean = np.asarray(rows[here].mean(axis=0)).ravel()
        found.append(int(here[np.argmax(np.asarray(rows[here] @ mean).ravel().round(9))]))
    return found


def _readable(text: str) -> list[str]:
    """Return the terms that say something in a name: words of prose that are not common, and LaTeX commands."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    prose = " ".join(posts.parts(text)[::2])
    words = [own for own in tokenizer("words")([prose])[0] if own.isalpha() and own not in ENGLISH_STOP_WORDS - _KEPT]
    commands = [own for own in tokenizer("math")([text])[0] if own.startswith("\\")]
    return [own for own in [*words, *commands] if own not in _DROPPED]


def _log_odds(own: np.ndarray, total: np.ndarray, n_inside: int, n_all: int) -> np.ndarray:
    """Return how much more often the cluster's texts have each term than the others, in standard errors."""
    prior = _PRIOR * (total + 0.5) / (n_all + 1)
    left = own + prior, n_inside - own + _PRIOR - prior
    right = total - own + prior, n_all - n_inside - total + own + _PRIOR - prior
    gap = np.log(left[0] / left[1]) - np.log(right[0] / right[1])
    return gap / np.sqrt(1 / left[0] + 1 / right[0])
