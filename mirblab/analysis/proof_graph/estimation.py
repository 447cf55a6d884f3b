"""estimation: how relevant the unjudged documents of a run are, by text and graph, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from mirblab.analysis.collection_report import wilson_interval
from mirblab.analysis.proof_graph.evidence import GraphStudy
from mirblab.analysis.proof_graph.graph import DEPTH
from mirblab.core.errors import MirblabError, check_not_negative, check_positive
from mirblab.core.wording import counted
from mirblab.data import runs
from mirblab.data.collection import Collection

# By its name, what a model knows of a document: its text's score as a share of the query's best, log2 of its rank, and
# the scores of the runs of the graph.
EVIDENCE = {
    "none": [],
    "text": ["text", "rank"],
    "text and popularity": ["text", "rank", "popularity"],
    "text and graph": ["text", "rank", "popularity", "neighbours", "personalised"],
}
_POOLED = ("text", "popularity", "pagerank", "personalised", "neighbours")
_LEAST_MASS = 1e-6  # replaces the probability of a document that a walk does not reach, before the logarithm
_N_DRAWS = 1_000


@dataclass(frozen=True)
class Precision:
    """An estimate of the share of relevant documents with its interval, and the weight that the model was given."""

    estimate: float
    low: float
    high: float
    weight: float


def estimate_relevance(study: GraphStudy, k: int = 10) -> pd.DataFrame:
    """Return the probability that each document of the pool is relevant, by each kind of evidence in `EVIDENCE`.

    The pool of a query has the first *k* documents of text, popularity, pagerank, personalised and neighbours. Columns:
    collection, query_id, doc_id, relevant (0 or 1, what the judgements say), and one of probabilities for each kind of
    evidence, from a logistic regression on the pools of the theorems that chose the weights; "none" gives the share
    that is relevant in these. Relevance predicted by a classifier for unjudged documents: Büttcher et al., SIGIR 2007.

    >>> from mirblab.analysis.proof_graph.evidence import study_graph
    >>> from mirblab.sources.catalogue import build_periods, load
    >>> [folder] = build_periods("mini", ["2025-03-01", "2026-01-01"])  # doctest: +ELLIPSIS
    metamath-premise-at-2025-03-01: ...
    >>> pairs = estimate_relevance(study_graph(load(str(folder), split="train"), load(str(folder))), k=5)
    >>> pairs.columns[4:].tolist()
    ['none', 'text', 'text and popularity', 'text and graph']
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    check_positive(k=k)
    known, asked = _features(study.training, study.learnt, k), _features(study.evidence, study.collection, k)
    if known.relevant.nunique() < 2:
        raise MirblabError(
            f"{study.learnt.name}: all or none of {counted(len(known), 'document')} of training theorems are relevant, "
            "so that nothing can be learnt from them; take more theorems or a larger k"
        )
    table = asked[["collection", "query_id", "doc_id", "relevant"]].copy()
    for name, columns in EVIDENCE.items():
        table[name] = known.relevant.mean()
        if columns and len(asked):
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
            model.fit(known[columns].to_numpy(), known.relevant.to_numpy())
            table[name] = model.predict_proba(asked[columns].to_numpy())[:, 1]
    return table


def _features(evidence: dict[str, pd.DataFrame], collection: Collection, k: int) -> pd.DataFrame:
    """Return the first *k* documents of every run, pooled by query, with what each run says of them."""
    n_docs = len(collection.doc_ids)
    pairs = np.unique(np.concatenate([_pairs(runs.cut_run(evidence[name], k), n_docs) for name in _POOLED]))
    queries, docs = np.divmod(pairs, n_docs)
    table = pd.DataFrame({
        "collection": collection.name, "query_id": collection.query_ids[queries].astype(str),
        "doc_id": collection.doc_ids[docs].astype(str),
        "relevant": np.isin(pairs, _pairs(collection.relevant, n_docs)).astype(int),
    })  # fmt: skip
    for name in _POOLED:
        run = evidence[name]
        scores = pd.Series(run.score.to_numpy(np.float64), _pairs(run, n_docs))
        table[name] = scores.reindex(pairs).fillna(0.0).to_numpy()
    text = evidence["text"]
    ranks = pd.Series(text["rank"].to_numpy(), _pairs(text, n_docs)).reindex(pairs).fillna(DEPTH + 1)
    best = text.groupby(text.query_id.cat.codes.to_numpy()).score.max().reindex(queries).fillna(1.0)
    table["text"] /= best.where(best > 0, 1.0).to_numpy()  # of a list that shares no word with its query it is 0
    return table.assign(rank=np.log2(ranks.to_numpy()), personalised=np.log(table.personalised + _LEAST_MASS))


def _pairs(table: pd.DataFrame, n_docs: int) -> np.ndarray:
    return table.query_id.cat.codes.to_numpy().astype(np.int64) * n_docs + table.doc_id.cat.codes.to_numpy()


def brier_values(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return how near the probabilities of `estimate_relevance` are to the judgements, as values from 0 to 1.

    The measure "1-Brier" is 1 minus the mean over the pool of a query of (probability - relevant)², so that higher is
    better; the systems are the kinds of evidence. Brier, Monthly Weather Review 1950.

    >>> pairs = pd.DataFrame({"collection": "c", "query_id": ["q", "q"], "relevant": [1, 0]})
    >>> brier_values(pairs.assign(**{name: 0.5 for name in EVIDENCE})).value.unique().tolist()
    [0.75]
    """
    keys = ["system", "collection", "measure", "query_id"]
    shown = pairs[["collection", "query_id"]].assign(measure="1-Brier")
    tables = [shown.assign(system=name, value=1 - (pairs[name] - pairs.relevant) ** 2) for name in EVIDENCE]
    return pd.concat(tables).groupby(keys, sort=False, observed=True).value.mean().reset_index()


def estimate_precision(probability: ArrayLike, relevant: ArrayLike, level: float = 0.95) -> Precision:
    """Return the share of relevant among all documents, of which a random sample is judged, with its interval.

    *probability* (n,) is a model's for every document; *relevant* (n,) is 0 or 1, NaN where unjudged. The regression
    estimator is the mean of w * probability over all documents plus the mean of relevant - w * probability over the
    judged ones; w minimises its variance. It is right for any model, and a better one makes the interval narrower. With
    a constant probability it is the mean of what was judged. Cochran, Sampling Techniques, 1977, chapter 7; with the
    predictions of a model: Angelopoulos et al., Science 2023. Interval: Student's t, with the correction for a finite
    number of documents, within 0 and 1; Wilson's where the judged documents are all alike. MirblabError for fewer than
    three judged documents.

    >>> found = estimate_precision([0.9, 0.1, 0.9, 0.1], [1, 0, 1, float("nan")])
    >>> round(found.estimate, 3), round(found.weight, 3)
    (0.5, 1.25)
    """
    p, y = np.asarray(probability, np.float64), np.asarray(relevant, np.float64)
    if p.shape != y.shape or p.ndim != 1:
        raise MirblabError(f"each document has a probability and a judgement; found {p.shape} and {y.shape}")
    judged = ~np.isnan(y)
    if judged.sum() < 3:
        raise MirblabError(f"an interval needs three judged documents or more, found {judged.sum()}")
    found = _regression_estimates(p, np.nan_to_num(y), judged[None], level)
    return Precision(*(float(column[0]) for column in found))


def _regression_estimates(
    p: np.ndarray, y: np.ndarray, judged: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return estimate, interval and weight for each row of *judged* (n_draws, n), which has as many in every row."""
    from scipy.special import stdtrit

    m, n = int(judged[0].sum()), len(p)
    mean_p, mean_y = judged @ p / m, judged @ y / m
    spread = judged @ p**2 / m - mean_p**2
    shared = judged @ (p * y) / m - mean_p * mean_y
    usable = spread > 1e-12
    weight = np.where(usable, shared / np.where(usable, spread, 1.0), 0.0)
    estimate = mean_y + weight * (p.mean() - mean_p)
    left = np.maximum(judged @ y**2 / m - mean_y**2 - weight * shared, 0.0)
    freedom = m - 1 - usable
    half = stdtrit(freedom, (1 + level) / 2) * np.sqrt(left * m / freedom / m * (1 - m / n))
    low, high = estimate - half, estimate + half
    n_relevant = np.rint(judged @ y).astype(np.int64)
    for number in {0, m} if m < n else ():  # without any spread the half width is 0
        alike = n_relevant == number
        low[alike], high[alike] = wilson_interval(number, m, level)
    return (*(np.clip(column, 0, 1) for column in (estimate, low, high)), weight)


def hide_relevance(
    pairs: pd.DataFrame, share: float = 0.1, *, level: float = 0.95, n_draws: int = _N_DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Return how well `estimate_precision` does when only a random *share* of the documents of a run is judged.

    *pairs* are those of `estimate_relevance` for one collection or several. Columns: collection, evidence, documents,
    judged (numbers), precision (with all judgements), width (mean of the intervals of *n_draws* draws), coverage (share
    of the intervals that contain the precision; *level* is right), saved (the share of the judgements that the evidence
    saves for the same width, in comparison with none; below 0: it costs some).

    >>> pairs = pd.DataFrame({"collection": "c", "relevant": [0, 1] * 50, "none": 0.5, "text": [0.2, 0.6] * 50})
    >>> pairs = pairs.assign(**{"text and popularity": 0.5, "text and graph": 0.5})
    >>> hide_relevance(pairs, 0.2).saved.round(2).tolist()
    [0.0, 1.0, 0.0, 0.0]
    """
    if not 0 < share < 1:
        raise MirblabError(f"the share that is judged lies between 0 and 1, found {share}")
    check_positive(n_draws=n_draws)
    check_not_negative(seed=seed)
    rows = []
    for collection, table in pairs.groupby("collection", sort=False, observed=True):
        n, y = len(table), table.relevant.to_numpy(np.float64)
        m, rng = round(share * n), np.random.default_rng(seed)
        if m < 3:
            raise MirblabError(
                f"{collection}: {100 * share:.0f} % of {counted(n, 'document')} are {m}; "
                "an interval needs three or more"
            )
        judged = np.zeros((n_draws, n))
        for draw in judged:
            draw[rng.choice(n, m, replace=False)] = 1.0
        for name in EVIDENCE:
            _, low, high, _ = _regression_estimates(table[name].to_numpy(), y, judged, level)
            covered = float(((low <= y.mean() + 1e-12) & (y.mean() <= high + 1e-12)).mean())
            rows.append((collection, name, n, m, y.mean(), (high - low).mean(), covered))
    found = pd.DataFrame(
        rows, columns=["collection", "evidence", "documents", "judged", "precision", "width", "coverage"]
    )
    widest = found[found.evidence == "none"].set_index("collection").width.reindex(found.collection).to_numpy()
    return found.assign(saved=1 - (found.width / widest) ** 2)
