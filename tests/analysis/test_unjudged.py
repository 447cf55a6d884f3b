"""Judgements are hidden on purpose, to see what a measure does about it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from scipy.stats import kendalltau

from mirblab.analysis.unjudged import drop_judgements, hide_judgements, random_order_means
from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection, load_folder
from mirblab.evaluation.measures import evaluate
from mirblab.retrieval import systems
from mirblab.sources import catalogue


def judgements(n_queries: int = 20, n: int = 10) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    rows = [(f"q{q}", f"d{d}", int(rng.integers(0, 3))) for q in range(n_queries) for d in range(n)]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"])


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.9, 1.0])
def test_each_query_loses_its_share_and_keeps_one_relevant_document(share: float):
    """Rounded in favour of keeping."""
    qrels = judgements()
    kept = drop_judgements(qrels, share, seed=3)
    counts = kept.groupby("query_id").size().reindex(qrels.query_id.unique(), fill_value=0)
    relevant = kept[kept.relevance > 0].groupby("query_id").size()
    assert (counts == max(np.ceil((1 - share) * 10), 1)).all()
    assert set(relevant.index) == set(qrels[qrels.relevance > 0].query_id)


def test_a_larger_share_hides_more_of_the_same():
    """So that a curve over shares is one story."""
    qrels = judgements()
    pairs = [set(map(tuple, drop_judgements(qrels, share)[["query_id", "doc_id"]].values)) for share in (0.2, 0.5, 0.8)]
    assert pairs[0] > pairs[1] > pairs[2]
    assert drop_judgements(qrels, 0.5, 1).equals(drop_judgements(qrels, 0.5, 1)) and not drop_judgements(
        qrels, 0.5, 1
    ).equals(drop_judgements(qrels, 0.5, 2))


def test_what_is_kept_is_relevant_by_the_collection_s_own_limit():
    """Where only higher grades count, a document of grade 1 would leave a query without a relevant one."""
    qrels = judgements()
    kept = drop_judgements(qrels, 1.0, relevant_from=2)
    best = qrels.groupby("query_id").relevance.max()
    assert (kept[kept.query_id.isin(best[best == 2].index)].relevance == 2).all()
    assert set(kept.query_id) == set(best.index)
    c = catalogue.load("mini-qa")
    left = drop_judgements(c.qrels, 0.9, 0, c.card.relevant_from)
    assert left[left.relevance >= c.card.relevant_from].query_id.nunique() == c.relevant.query_id.nunique()


def test_a_query_without_a_relevant_document_keeps_one_judgement():
    """So that the mean is of all queries: hiding judgements raises no value of nDCG."""
    qrels = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "relevance": 0})
    assert len(drop_judgements(qrels, 1.0)) == 1
    c = catalogue.load("mini-qa")
    irrelevant = c.qrels.query_id == c.query_ids[0]
    c = replace(c, qrels=c.qrels.assign(relevance=c.qrels.relevance.where(~irrelevant, 0)))
    found = hide_judgements([systems.system("bm25").search(c)], c, ["nDCG'@10", "Rprec"], (0.0, 1.0), seeds=(0,))
    whole, hidden = (found[found.share == share].set_index("measure").value for share in (0.0, 1.0))
    assert hidden["Rprec"] <= whole["Rprec"] and hidden["nDCG'@10"] <= 1 - 1 / len(c.query_ids) + 1e-9


def test_condensed_lists_bear_holes_better_than_ndcg():
    """What the prime is for: condensed lists lose less than nDCG, which takes unjudged for irrelevant."""
    c = catalogue.load("mini-qa")
    runs = [systems.system(name).search(c) for name in ("bm25", "bm25-okapi", "bm25-mirb")]
    found = hide_judgements(runs, c, ["nDCG@10", "nDCG'@10"], shares=(0.0, 0.5), seeds=(0, 1))
    means = found.groupby(["measure", "share"]).value.mean()
    lost = {name: means[name, 0.0] - means[name, 0.5] for name in ("nDCG@10", "nDCG'@10")}
    assert lost["nDCG@10"] > 2 * lost["nDCG'@10"]
    whole = found[(found.share == 0)]
    assert (whole.tau == 1).all() and found.seed.nunique() == 2


def test_tau_is_scipy_s():
    """Over the systems' means, one measure at a time."""
    c = catalogue.load("mini-premises")
    runs = [systems.system(name).search(c) for name in ("bm25", "bm25-okapi", "bm25-mirb")]
    found = hide_judgements(runs, c, ["AP"], shares=(0.0, 0.5), seeds=(4,))
    before, after = (found[found.share == share].set_index("system").value for share in (0.0, 0.5))
    expected = kendalltau(after, before[after.index]).statistic
    assert found[found.share == 0.5].tau.unique().tolist() == [expected]


def test_what_is_hidden_is_counted():
    """Queries of mini-qa have few judgements, of which a relevant one is kept, so that 90 % cannot be hidden."""
    c = catalogue.load("mini-qa")
    found = hide_judgements([systems.system("bm25").search(c)], c, ["AP"], shares=(0.0, 0.9), seeds=(0, 1))
    left = [len(drop_judgements(c.qrels, 0.9, seed, c.card.relevant_from)) for seed in (0, 1)]
    assert found.hidden.tolist() == [0.0, *(1 - n / len(c.qrels) for n in left)]
    assert 0.5 < found.hidden.max() < 0.8


def test_a_share_outside_0_to_1_is_refused():
    """A percentage, for instance."""
    with pytest.raises(MirblabError, match="between 0 and 1, found 50"):
        drop_judgements(judgements(), 50)


def test_a_share_is_not_rounded_up_by_an_error_of_floating_point() -> None:
    """Of ten judgements 0.7 hides seven, though 1 - 0.7 is a little more than 0.3."""
    qrels = pd.DataFrame({"query_id": "q", "doc_id": [f"d{n}" for n in range(10)], "relevance": 1})
    assert [len(drop_judgements(qrels, share / 10)) for share in range(10)] == list(range(10, 0, -1))


def test_the_highest_grade_is_that_of_the_whole_collection() -> None:
    """ERR divides by it, so that it does not rise when the one document of the highest grade is hidden."""
    c = catalogue.load("mini-qa")
    run = systems.system("bm25").search(c)
    judged = c.qrels.assign(relevance=1)
    c = replace(c, qrels=judged, card=replace(c.card, relevance_levels=[0, 1, 4], relevant_from=1))
    whole = evaluate(run, c, "ERR@10").value.mean()
    assert hide_judgements([run], c, ["ERR@10"], shares=(0.0,)).value.tolist() == pytest.approx([whole])


GRADES = {"a": [2, 1, 0, 0, 0], "b": [1, 0, 0], "c": [1, 1, 0, 0]}


@pytest.fixture
def judged(make_folder) -> Collection:
    """Return thirty queries of each kind of GRADES, whose documents are judged."""
    names = [f"{kind}{n:02}" for kind in GRADES for n in range(30)]
    corpus = [{"_id": f"d{place}", "text": f"document {place}"} for place in range(5)]
    rows = [f"{name}\td{place}\t{grade}\n" for name in names for place, grade in enumerate(GRADES[name[0]])]
    return load_folder(make_folder(corpus, [{"_id": name, "text": name} for name in names], "".join(rows)))


def expected_by_all_orders(measure: str) -> float:
    """Return the mean over all orders of each query's judged documents, as pytrec_eval computes it."""
    means = []
    for grades in GRADES.values():
        qrel = {f"d{place}": grade for place, grade in enumerate(grades)}
        orders = list(itertools.permutations(qrel))
        runs = {str(n): {doc: float(-place) for place, doc in enumerate(order)} for n, order in enumerate(orders)}
        found = pytrec_eval.RelevanceEvaluator(dict.fromkeys(runs, qrel), {measure}).evaluate(runs)
        means.append(np.mean([value for values in found.values() for value in values.values()]))
    return float(np.mean(means))


def test_the_mean_of_random_orders_is_that_of_all_orders(judged: Collection) -> None:
    """P@k is R/n and R@k is k/n where k of n judged documents are returned; nDCG and RR by counting."""
    found = random_order_means(judged, ["P@2", "R@2", "R@5", "nDCG", "nDCG@3", "RR"], n_draws=100)
    means = found.set_index("measure").value
    assert set(found.collection) == {judged.name}
    shares = [(sum(grade > 0 for grade in grades), len(grades)) for grades in GRADES.values()]
    assert means["P@2"] == pytest.approx(np.mean([n / of for n, of in shares]), abs=0.02)
    assert means["R@2"] == pytest.approx(np.mean([2 / of for _, of in shares]), abs=0.02)
    assert means["R@5"] == 1
    for ours, theirs in {"nDCG": "ndcg", "nDCG@3": "ndcg_cut_3", "RR": "recip_rank", "P@2": "P_2"}.items():
        assert means[ours] == pytest.approx(expected_by_all_orders(theirs), abs=0.02)


def test_random_orders_repeat_with_their_seed(judged: Collection) -> None:
    """Another seed draws others; no draw is refused."""
    one, two, other = (random_order_means(judged, ["RR"], n_draws=3, seed=seed) for seed in (1, 1, 2))
    assert one.equals(two) and one.value[0] != other.value[0]
    with pytest.raises(MirblabError, match="n_draws must be at least 1, found 0"):
        random_order_means(judged, ["RR"], n_draws=0)


def test_runs_and_shares_are_needed_and_names_differ() -> None:
    """What is missing is said."""
    c = catalogue.load("mini-qa")
    run = pd.DataFrame({"query_id": c.query_ids[:1], "doc_id": c.doc_ids[:1], "score": 1.0})
    with pytest.raises(MirblabError, match="found 0 runs"):
        hide_judgements([], c, ["RR"])
    with pytest.raises(MirblabError, match="0 shares"):
        hide_judgements([run], c, ["RR"], shares=())
    with pytest.raises(MirblabError, match="the run 'run' is given twice"):
        hide_judgements([run, run], c, ["RR"])
