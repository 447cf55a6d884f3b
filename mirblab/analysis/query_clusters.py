"""query_clusters: clusters of queries on which a system fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mirblab.analysis import failures
from mirblab.analysis.failures import OUTCOMES
from mirblab.core.errors import MirblabError, check_known, check_not_negative, check_positive
from mirblab.core.wording import counted
from mirblab.data.collection import Collection
from mirblab.display.escape import format_value
from mirblab.display.text import excerpts
from mirblab.encoders.encoding import encoder
from mirblab.evaluation.significance import holm
from mirblab.formula import in_text
from mirblab.retrieval.tokenizers import tokenizer

NO_TERMS = "no common terms"  # the name of a cluster that has none
_MOST_TEXTS = 2_000  # from which on the silhouette is taken of a sample
_KEPT = frozenset({"system", "empty", "full"})  # stop words of English that say something here
_DROPPED = frozenset({"let", "suppose", "\\text", "\\left", "\\right", "ref"})
_BLOCK = 1 << 21  # random numbers at a time
_NEAR, _PRIOR = 5, 2.0  # neighbours looked at; weight of what all queries say, in counts


@dataclass(frozen=True)
class Clusters:
    """The cluster of each text, (n_texts,) from 0, the largest first; `centre`: positions of the most typical texts."""

    labels: np.ndarray
    centre: list[int]
    fits: pd.DataFrame


_CLEAR = 0.25  # a silhouette up to this says "no substantial structure" (Kaufman & Rousseeuw, 1990)


@dataclass(frozen=True)
class FailureClusters:
    """The queries of one outcome, sorted into clusters by their content.

    `who` says which queries these are ("queries that bm25 wins"). `members` and `table` have a row per query and per
    cluster, the largest first; `contrasts` has the columns of `contrast_groups`, each cluster against all other
    queries, p_holm over all clusters; `fits` n_clusters and silhouette (-1 to 1); `near` is the result of `together`.
    """

    who: str
    members: pd.DataFrame
    table: pd.DataFrame
    contrasts: pd.DataFrame
    fits: pd.DataFrame
    near: dict[str, float]

    def describe(self) -> str:
        """Return in a few sentences how clear the clusters are, and whether they differ significantly."""
        n = len(self.members)
        if not n:
            return f"There are no {self.who}, so there is nothing to cluster."
        if n == 1:
            return f"There is only one of the {self.who}, so nothing can be compared."
        return " ".join([self._clear(), self._near(), self._differs()])

    def first(self, n: int) -> pd.DataFrame:
        """Return at most *n* members of each cluster: its typical query, then those with the largest difference."""
        check_positive(n=n)
        place = {name: number for number, name in enumerate(self.table.cluster)}
        keys = {"place": self.members.cluster.map(place), "size": -self.members.difference.abs()}
        ordered = self.members.assign(**keys, other=~self.members.is_typical.astype(bool))
        ordered = ordered.sort_values(["place", "other", "size", "query_id"])
        rows = ordered.groupby("cluster", sort=False).head(n)
        return rows[list(self.members.columns)].reset_index(drop=True)

    def _clear(self) -> str:
        n = f"{len(self.members):,} {self.who}"
        if not len(self.fits):
            return f"{n} are too few or too similar for several clusters, so they form one."
        best = self.fits.silhouette.max()
        how = "no clear groups" if best <= _CLEAR else "groups"
        return f"{n} form {len(self.table)} clusters; the best silhouette, {best:.2f}, indicates {how}."

    def _near(self) -> str:
        if np.isnan(self.near["p"]):
            return "It cannot be tested whether they are similar to each other."
        share, chance, p = (self.near[name] for name in ("share", "by_chance", "p"))
        more = "more similar" if p <= 0.05 else "not significantly more similar"
        return (
            f"Their contents are {more} to each other than to those of other queries: of the queries nearest to one of "
            f"them, {100 * share:.0f} % belong to them, and {100 * chance:.0f} % would by chance "
            f"(p {format_value(p, how='p')})."
        )

    def _differs(self) -> str:
        if not len(self.contrasts):
            return "No feature can be compared."
        if not self.contrasts.differs.any():
            return "No cluster differs significantly from the other queries in any feature."
        names = dict.fromkeys(self.contrasts.cluster[self.contrasts.differs])
        return (
            f"These clusters differ significantly from the other queries: {'; '.join(names)}. Clusters are made by "
            "content, so features that depend on content, such as formulas, differ whether a system fails or not; a "
            "feature in which all clusters differ is better evidence."
        )


def failure_clusters(
    collections: Sequence[Collection],
    table: pd.DataFrame,
    features: pd.DataFrame,
    outcome: str = "won",
    *,
    by: str = "",
    most: int = 6,
    seed: int = 0,
) -> FailureClusters:
    """Return the queries of one *outcome* (won, tied, lost) in clusters by their content, described.

    *table* is from `query_outcomes`, *features* from `outcome_features`, over the same *collections*. *by* is an
    encoder, or "" for terms; *most* is the largest number of clusters. Clusters are named by the terms that distinguish
    them from all other queries.

    >>> from mirblab.sources.catalogue import load
    >>> from mirblab.analysis.failures import outcome_features
    >>> c = load("mini-qa")
    >>> rows = pd.DataFrame({"collection": c.name, "query_id": c.query_ids, "difference": 0.0, "outcome": "tied"})
    >>> failure_clusters([c], rows, outcome_features([c]), "lost").describe()
    'There are no queries that the winner loses, so there is nothing to cluster.'
    """
    check_known("outcome", outcome, OUTCOMES)
    check_not_negative(seed=seed)
    outcomes = _in_turn(collections, table)
    marks = (outcomes.outcome == outcome).to_numpy()
    texts = np.array([text for collection in collections for text in collection.query_texts], dtype=object)
    if not marks.any():
        return _none(_who(table, outcome))
    rows = points(collections, by)
    made = cluster(rows[marks], most=most, seed=seed)
    names = _distinct(cluster_names(texts[marks].tolist(), made.labels, texts[~marks].tolist()))
    is_typical = np.isin(np.arange(marks.sum()), made.centre)
    members = outcomes[marks].assign(cluster=np.array(names, dtype=object)[made.labels], is_typical=is_typical)
    described = outcomes[["collection", "query_id"]].merge(features, on=["collection", "query_id"], how="left")
    compared = _contrasts(described, members, names, seed)
    near = together(rows, marks, outcomes.collection.tolist(), seed=seed)
    shown = members[["collection", "query_id", "cluster", "difference", "is_typical"]].reset_index(drop=True)
    return FailureClusters(
        _who(table, outcome), shown, _table(collections, members, names, compared), compared, made.fits, near
    )


def _in_turn(collections: Sequence[Collection], table: pd.DataFrame) -> pd.DataFrame:
    pairs = [(collection.name, str(query)) for collection in collections for query in collection.query_ids]
    outcomes = pd.DataFrame(pairs, columns=["collection", "query_id"]).merge(
        table.astype({"collection": "str", "query_id": "str"}), on=["collection", "query_id"], how="left"
    )
    missing = outcomes.query_id[outcomes.outcome.isna()]
    if len(missing) or len(outcomes) != len(pairs):
        problem = f"{len(missing):,} without, the first '{missing.iloc[0]}'" if len(missing) else "some twice"
        raise MirblabError(f"every query of the collections needs one outcome; found {problem}")
    return outcomes


def _distinct(names: list[str]) -> list[str]:
    return [
        f"{name} ({names[:place].count(name) + 1})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _contrasts(features: pd.DataFrame, members: pd.DataFrame, names: list[str], seed: int) -> pd.DataFrame:
    parts = []
    for name in names:
        inside = np.zeros(len(features), dtype=bool)
        inside[members.index[members.cluster == name]] = True
        contrasts = failures.contrast_groups(features, inside, seed=seed)
        parts.append(contrasts.assign(cluster=name))
    table = pd.concat(parts, ignore_index=True)
    table["p_holm"] = holm(table.p)
    return table.assign(differs=table.p_holm <= 0.05)


def _none(who: str) -> FailureClusters:
    near = {"share": np.nan, "by_chance": np.nan, "p": np.nan, "n": 0}
    return FailureClusters(
        who,
        pd.DataFrame(columns=["collection", "query_id", "cluster", "difference", "is_typical"]),
        pd.DataFrame(columns=["cluster", "queries", "difference", "typical", "differs"]),
        pd.DataFrame(columns=["cluster", *failures.COLUMNS]),
        pd.DataFrame(columns=["n_clusters", "silhouette"]),
        near,
    )


def _who(table: pd.DataFrame, outcome: str) -> str:
    if outcome == "tied":
        return "queries that are tied"
    loser = table.attrs.get("loser", "")
    if outcome == "lost":
        return f"queries that {loser} wins" if loser else "queries that the winner loses"
    return f"queries that {table.attrs.get('winner', 'the winner')} wins"


def _table(
    collections: Sequence[Collection], members: pd.DataFrame, names: list[str], compared: pd.DataFrame
) -> pd.DataFrame:
    by_name, rows = {collection.name: collection for collection in collections}, []
    for name in names:
        queries, contrasts = members[members.cluster == name], compared[compared.cluster == name]
        typical = queries[queries.is_typical].iloc[0]
        collection = by_name[typical.collection]
        text = excerpts([collection.query(typical.query_id)], collection.card.task)[0]
        rows.append((name, len(queries), queries.difference.mean(), text, failures.briefly(contrasts)))
    return pd.DataFrame(rows, columns=["cluster", "queries", "difference", "typical", "differs"])


def points(collections: Sequence[Collection], by: str = "") -> Any:
    """Return a row of length 1 for every query of the collections, in order: its vector, or TF-IDF for *by* ""."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [text for collection in collections for text in collection.query_texts]
    if by:
        model = encoder(by)
        parts = [model.vectors(c.query_texts, "query", c.card.instruction) for c in collections]
        vectors = np.concatenate(parts).astype(np.float32)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    tokens = tokenizer("math")(texts)
    if not any(tokens):
        raise MirblabError(f"none of {counted(len(texts), 'query')} has a term; name an encoder")
    return TfidfVectorizer(analyzer=lambda terms: terms, sublinear_tf=True).fit_transform(tokens)


def cluster(rows: Any, *, most: int = 6, least_size: int = 3, seed: int = 0) -> Clusters:
    """Return k-means clusters of *rows* (n_texts, d), from 2 to *most*, with the best mean silhouette.

    Clusters have at least *least_size* texts on average; too few texts are one cluster. A best silhouette near 0 says
    that there are no clear groups. Rousseeuw, J. Comput. Appl. Math. 1987.
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


def _by_size(labels: np.ndarray) -> np.ndarray:
    """Return the labels renumbered: the largest cluster is 0; of equal ones that whose first text is earlier."""
    distinct, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    place = np.empty(len(distinct), dtype=np.int64)
    place[np.lexsort([first, -sizes])] = np.arange(len(distinct))
    return place[np.searchsorted(distinct, labels)]


def _centres(rows: Any, labels: np.ndarray) -> list[int]:
    centres = []
    for label in range(int(labels.max(initial=-1)) + 1):
        here = np.flatnonzero(labels == label)
        mean = np.asarray(rows[here].mean(axis=0)).ravel()
        centres.append(int(here[np.argmax(np.asarray(rows[here] @ mean).ravel().round(9))]))
    return centres


def cluster_names(texts: Sequence[str], labels: np.ndarray, others: Sequence[str] = (), n_terms: int = 4) -> list[str]:
    """Return a name for each cluster of *texts*: the terms that it has far more often than all other texts.

    Terms, counted once a text, are ordered by the log-odds with a prior from all texts, *others* included, in standard
    errors (Monroe, Colaresi & Quinn, Political Analysis 2008); they count from 1.64 on, in two texts at least.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    tokens = [_readable(text) for text in [*texts, *others]]
    if not any(tokens):
        return [NO_TERMS] * (int(labels.max(initial=-1)) + 1)
    counter = CountVectorizer(analyzer=lambda terms: terms, binary=True)
    has = counter.fit_transform(tokens).tocsr()
    terms, total = counter.get_feature_names_out(), np.asarray(has.sum(axis=0)).ravel()
    names = []
    for label in range(int(labels.max(initial=-1)) + 1):
        inside = np.flatnonzero(labels == label)
        counts = np.asarray(has[inside].sum(axis=0)).ravel()
        z = _log_odds(counts, total, len(inside), len(tokens))
        chosen = [at for at in np.lexsort([terms, -z]) if z[at] >= 1.64 and counts[at] >= min(2, len(inside))]
        names.append(", ".join(terms[chosen[:n_terms]]) or NO_TERMS)
    return names


def _readable(text: str) -> list[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    prose = " ".join(in_text.split_text(text)[::2])
    words = [term for term in tokenizer("words")([prose])[0] if term.isalpha()]
    commands = [term for term in tokenizer("math")([text])[0] if term.startswith("\\")]
    unwanted = (ENGLISH_STOP_WORDS - _KEPT) | _DROPPED
    return [term for term in [*words, *commands] if term not in unwanted]


def _log_odds(counts: np.ndarray, total: np.ndarray, n_inside: int, n_all: int) -> np.ndarray:
    """Return how much more often the cluster's texts have each term than the others, in standard errors."""
    prior = _PRIOR * (total + 0.5) / (n_all + 1)
    left = counts + prior, n_inside - counts + _PRIOR - prior
    right = total - counts + prior, n_all - n_inside - total + counts + _PRIOR - prior
    gap = np.log(left[0] / left[1]) - np.log(right[0] / right[1])
    return gap / np.sqrt(1 / left[0] + 1 / right[0])


def together(
    rows: Any,
    marks: np.ndarray,
    collections: Sequence[str],
    *,
    k: int = _NEAR,
    n_permutations: int = 9_999,
    seed: int = 0,
) -> dict[str, float]:
    """Return whether marked texts are nearer to each other than expected by chance: share, by_chance, p, n.

    *share* (0 to 1) is how many of the *k* nearest others (cosine, same collection) of a marked text are marked;
    *by_chance* its mean when the marks are permuted within each collection. Cuzick & Edwards, JRSS B 1990.
    """
    marks, names = np.asarray(marks, dtype=bool), np.asarray(collections, dtype=object)
    near = _neighbours(rows, names, k)
    n = int(marks.sum())
    links = near[marks].nnz  # a text of a small collection has fewer others than k
    if n < 2 or n == len(marks) or not links:
        return {"share": np.nan, "by_chance": np.nan, "p": np.nan, "n": n}
    moved = _dealt(near, marks, names, n_permutations, seed)
    n_marked = float(marks[near[marks].indices].sum())
    p = (1 + int((moved >= n_marked).sum())) / (1 + n_permutations)
    return {"share": n_marked / links, "by_chance": float(moved.mean() / links), "p": p, "n": n}


def _neighbours(rows: Any, names: np.ndarray, k: int) -> Any:
    from scipy.sparse import csr_matrix
    from sklearn.neighbors import NearestNeighbors

    sources, targets = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for name in dict.fromkeys(names.tolist()):
        here = np.flatnonzero(names == name)
        n_near = min(k, len(here) - 1)
        if n_near > 0:
            neighbours = NearestNeighbors(n_neighbors=n_near, metric="cosine", algorithm="brute").fit(rows[here])
            sources.append(np.repeat(here, n_near))
            targets.append(here[neighbours.kneighbors(return_distance=False)].ravel())
    at = np.concatenate(sources), np.concatenate(targets)
    return csr_matrix((np.ones(len(at[0])), at), shape=(len(names), len(names)))


def _dealt(near: Any, marks: np.ndarray, names: np.ndarray, n_permutations: int, seed: int) -> np.ndarray:
    places = [np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())]
    generator, counts = np.random.default_rng(seed), []
    step = max(1, _BLOCK // len(marks))
    for start in range(0, n_permutations, step):
        dealt = np.zeros((len(marks), min(step, n_permutations - start)), dtype=np.float32)
        for here in places:
            lots, n = generator.random((dealt.shape[1], len(here))), int(marks[here].sum())
            if n:
                dealt[here] = (lots <= np.partition(lots, n - 1, axis=1)[:, [n - 1]]).T
        counts.append(((near @ dealt) * dealt).sum(axis=0))
    return np.concatenate(counts)
