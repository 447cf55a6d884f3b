"""The graph of earlier proofs, what it says about a theorem, and estimates of what nobody judged."""

from __future__ import annotations

from dataclasses import replace

import networkx
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mirblab.analysis.proof_graph import evidence, graph
from mirblab.analysis.proof_graph.estimation import (
    EVIDENCE,
    brier_values,
    estimate_precision,
    estimate_relevance,
    hide_relevance,
)
from mirblab.analysis.proof_graph.evidence import GraphStudy, compare_with_all, study_graph
from mirblab.analysis.proof_graph.graph import (
    ProofGraph,
    earlier_only,
    exchange_edges,
    expand_by_neighbours,
    hub_table,
    pagerank_prior,
    popularity,
    premise_graph,
    vary_candidates,
    without_documents,
)
from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.data.collection import Collection, from_rows
from mirblab.evaluation.measures import evaluate
from mirblab.evaluation.significance import permutation_test
from mirblab.retrieval.systems import system
from mirblab.sources.catalogue import build_periods, load

N = 60


@pytest.fixture(scope="module")
def library() -> Collection:
    """Sixty theorems in an order that is not that of their ids; each uses up to six older ones, old ones most often."""
    rng = np.random.default_rng(7)
    names = [f"t{number:02d}" for number in rng.permutation(N)]
    corpus = [
        {"_id": name, "text": " ".join(rng.choice(list("uvwxyz"), 5)), "metadata": {"order": 10 * place}}
        for place, name in enumerate(names)
    ]
    uses = [
        (name, names[older], 1)
        for place, name in enumerate(names)
        for older in sorted({int(place * share) for share in rng.random(rng.integers(0, 7)) ** 2})
        if older < place
    ]
    return from_rows(corpus, corpus, uses, {"name": "library"})


@pytest.fixture(scope="module")
def known(library: Collection) -> ProofGraph:
    return premise_graph(library)


@pytest.fixture(scope="module")
def asked(library: Collection, known: ProofGraph) -> Collection:
    return earlier_only(library, known)


@pytest.fixture(scope="module")
def text(asked: Collection) -> pd.DataFrame:
    return system("bm25").search(asked, depth=8)


@pytest.fixture(scope="module")
def splits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Collection, Collection]:
    [folder] = build_periods("mini", ["2025-03-01", "2026-01-01"])
    return load(str(folder), split="train"), load(str(folder))


@pytest.fixture(scope="module")
def study(splits: tuple[Collection, Collection]) -> GraphStudy:
    return study_graph(*splits)


def scores_of(run: pd.DataFrame, query_id: str) -> dict[str, float]:
    rows = run[run.query_id == query_id]
    return dict(zip(rows.doc_id.astype(str), rows.score.astype(float), strict=True))


def all_runs(known: ProofGraph, asked: Collection, text: pd.DataFrame) -> list[pd.DataFrame]:
    return [
        popularity(known, asked),
        pagerank_prior(known, asked),
        pagerank_prior(known, asked, text),
        expand_by_neighbours(known, asked, text),
    ]


def edges_of(library: Collection) -> list[tuple[str, str]]:
    return list(zip(library.qrels.query_id.astype(str), library.qrels.doc_id.astype(str), strict=True))


def test_an_edge_goes_from_a_theorem_to_an_older_one_that_it_uses(library: Collection, known: ProofGraph) -> None:
    """All of them, and no other."""
    rows, columns = known.uses.nonzero()
    found = list(zip(library.doc_ids[rows], library.doc_ids[columns], strict=True))
    assert sorted(found) == sorted(edges_of(library)) and len(found) > 100
    assert (known.age[columns] < known.age[rows]).all()
    order = library.corpus.set_index("doc_id").order
    assert order[library.doc_ids[np.argsort(known.age)]].is_monotonic_increasing


def test_a_use_of_a_later_theorem_or_of_itself_is_left_out() -> None:
    """As in the Stacks project, where some proofs refer to what follows."""
    corpus = [{"_id": name, "text": name, "metadata": {"order": place}} for place, name in enumerate("abc")]
    c = from_rows(corpus, corpus, [("b", "a", 1), ("b", "c", 1), ("a", "a", 1), ("c", "b", 0)], {"name": "c"})
    assert premise_graph(c).uses.toarray().tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_pagerank_is_that_of_networkx_on_what_is_older(
    library: Collection, known: ProofGraph, asked: Collection, text: pd.DataFrame
) -> None:
    """Global and personalised; the walk of networkx begins anew at a statement without premises, too."""
    prior, personal = pagerank_prior(known, asked), pagerank_prior(known, asked, text)
    older = known.count_older(asked)
    for query in ("t05", "t33", "t58"):
        n = older[library.query_ids.get_loc(query)]
        whole = networkx.DiGraph()
        whole.add_nodes_from(library.doc_ids[known.age < n])
        whole.add_edges_from(
            (one, other) for one, other in edges_of(library) if known.age[library.doc_ids.get_loc(one)] < n
        )
        expected = networkx.pagerank(whole, alpha=0.85, tol=1e-14, max_iter=10_000)
        assert scores_of(prior, query) == pytest.approx(expected, abs=1e-6)
        starts = {doc: 1 / rank for rank, doc in enumerate(scores_of(text, query), 1)}
        expected = networkx.pagerank(whole, alpha=0.5, personalization=starts, tol=1e-14, max_iter=10_000)
        reached = {doc: score for doc, score in expected.items() if score > 1e-9}
        assert scores_of(personal, query) == pytest.approx(reached, abs=1e-6) and len(reached) > len(starts)


def test_popularity_and_neighbours_count_proofs(
    library: Collection, known: ProofGraph, asked: Collection, text: pd.DataFrame
) -> None:
    """Those that are older than the theorem, and those of the theorems that the text search returns."""
    age = dict(zip(library.doc_ids, known.age, strict=True))
    counted, near = popularity(known, asked), expand_by_neighbours(known, asked, text)
    for query in ("t05", "t33", "t58"):
        counts: dict[str, int] = {}
        for theorem, premise in edges_of(library):
            if age[theorem] < age[query]:
                counts[premise] = counts.get(premise, 0) + 1
        assert scores_of(counted, query) == pytest.approx({doc: np.log1p(n) for doc, n in counts.items()}, rel=1e-6)
        weights = {doc: 1 / rank for rank, doc in enumerate(scores_of(text, query), 1)}
        votes: dict[str, float] = {}
        for theorem, premise in edges_of(library):
            if theorem in weights:
                votes[premise] = votes.get(premise, 0) + weights[theorem] / sum(weights.values())
        assert scores_of(near, query) == pytest.approx(votes, rel=1e-6)


def test_nothing_newer_than_a_theorem_changes_what_it_returns(
    library: Collection, known: ProofGraph, asked: Collection, text: pd.DataFrame
) -> None:
    """Neither its own proof nor a later one: without them every run has the same rows for it."""
    now = 30
    rows, columns = known.uses.nonzero()
    is_past = known.age[rows] < now
    past = replace(known, uses=graph._ones(rows[is_past], columns[is_past], N))
    assert past.uses.nnz < known.uses.nnz
    early = library.doc_ids[known.age <= now]
    for whole, cut in zip(all_runs(known, asked, text), all_runs(past, asked, text), strict=True):
        pd.testing.assert_frame_equal(
            whole[whole.query_id.isin(early)].reset_index(drop=True),
            cut[cut.query_id.isin(early)].reset_index(drop=True),
        )
        ages = [known.age[library.doc_ids.get_indexer(ids)] for ids in (whole.doc_id, whole.query_id)]
        assert len(whole) and (ages[0] < ages[1]).all()


def test_every_edge_serves_a_theorem_of_a_later_period(splits: tuple[Collection, Collection]) -> None:
    """It is no document, so that it is newer than all of them."""
    known = premise_graph(splits[0])
    assert (known.count_older(splits[1]) == len(known.age)).all()
    run = popularity(known, splits[1])
    assert len(run) and run.score.max() == pytest.approx(np.log1p(known.n_uses.max()))


def test_exchanged_edges_keep_what_each_statement_has(known: ProofGraph) -> None:
    """Premises of a proof, proofs of a premise, and the order of time; most edges are others."""
    other = exchange_edges(known)
    assert other.uses.max() == 1 and other.uses.nnz == known.uses.nnz
    assert (other.n_uses == known.n_uses).all()
    assert (np.diff(other.uses.indptr) == np.diff(known.uses.indptr)).all()
    rows, columns = other.uses.nonzero()
    assert (known.age[columns] < known.age[rows]).all()
    assert known.uses.multiply(other.uses).nnz < 0.6 * known.uses.nnz
    assert (exchange_edges(known).uses != other.uses).nnz == 0 < (exchange_edges(known, 1).uses != other.uses).nnz


def test_without_its_hubs_a_collection_neither_returns_nor_judges_them(
    library: Collection, known: ProofGraph, asked: Collection
) -> None:
    """Also when only some queries were drawn; the other rules stay."""
    hubs = hub_table(known, 0.2).index
    assert list(hubs) == sorted(hubs, key=lambda name: -known.n_uses[library.doc_ids.get_loc(name)]) and len(hubs) > 1
    left = without_documents(earlier_only(asked.sample(20), known), hubs)
    assert set(left.query_ids) == {query for query, doc in edges_of(library) if doc not in hubs} & set(
        asked.sample(20).query_ids
    )
    assert not left.qrels.doc_id.isin(hubs).any() and left.name == "library-nohub"
    run = popularity(known, left)
    assert len(run) and not run.doc_id.isin(hubs).any()
    whole = popularity(known, asked)
    whole = whole[whole.query_id.isin(left.query_ids) & ~whole.doc_id.isin(hubs)]
    assert run.doc_id.astype(str).tolist() == whole.doc_id.astype(str).tolist()


def test_groups_lose_the_documents_that_are_removed(asked: Collection, known: ProofGraph) -> None:
    """Else GroupR would look for them among other judgements."""
    groups = asked.relevant[["query_id", "doc_id"]].astype(str).assign(group="g")
    hubs = hub_table(known, 0.2).index
    left = without_documents(replace(asked, groups=groups[["query_id", "group", "doc_id"]]), hubs)
    assert left.groups is not None and len(left.groups) and not left.groups.doc_id.isin(hubs).any()
    values = evaluate(popularity(known, left), left, ["GroupR@1000", "Success@1000"])
    assert values[values.measure == "GroupR@1000"].value.between(0, 1).all()


def test_what_is_missing_or_wrong_is_said(library: Collection, known: ProofGraph, text: pd.DataFrame) -> None:
    """An order, an edge, the age of a query, a run of this collection, a probability, a hub."""
    with pytest.raises(MirblabError, match="no 'order'"):
        premise_graph(load("mini-qa"))
    with pytest.raises(MirblabError, match="no query is a document that uses an older one"):
        premise_graph(replace(library, qrels=library.qrels.assign(relevance=0)))
    corpus = [{"_id": name, "text": name, "metadata": {"order": place}} for place, name in enumerate(library.doc_ids)]
    others = from_rows(corpus, [{"_id": "q", "text": "u v"}], [("q", "t00", 1)], {"name": "others"})
    with pytest.raises(MirblabError, match="1 query that is no document, such as 'q'"):
        popularity(known, others)
    with pytest.raises(MirblabError, match="other documents than mini-qa"):
        popularity(known, load("mini-qa"))
    with pytest.raises(MirblabError, match="not one of library: its ids differ"):
        expand_by_neighbours(known, library, system("bm25").search(load("mini-qa"), depth=5))
    for share in (5, 0, -1):
        with pytest.raises(MirblabError, match=f"share of the proofs is above 0 and at most 1, found {share}"):
            hub_table(known, share)
    with pytest.raises(MirblabError, match="no document of library 'nobody'"):
        without_documents(library, ["nobody"])
    with pytest.raises(MirblabError, match="no query has a relevant one"):
        without_documents(library, library.doc_ids)


def test_weights_are_chosen_without_the_test_queries(splits: tuple[Collection, Collection], study: GraphStudy) -> None:
    """With other judgements of the test queries every run is the same; few training queries are refused."""
    training, test = splits
    mixed = test.qrels.assign(doc_id=np.random.default_rng(0).permutation(test.qrels.doc_id))
    mixed = mixed.drop_duplicates(["query_id", "doc_id"]).assign(
        doc_id=lambda t: t.doc_id.astype(test.qrels.doc_id.dtype)
    )
    again = study_graph(training, replace(test, qrels=mixed.reset_index(drop=True)))
    for one, other in zip(study.runs, again.runs, strict=True):
        pd.testing.assert_frame_equal(one, other)
    with pytest.raises(MirblabError, match="needed to choose weights: 20"):
        study_graph(training, test, n_training=5)


def test_a_study_compares_text_popularity_fusions_and_a_control(study: GraphStudy) -> None:
    """The fusion of two parts lies between them where one has all the weight."""
    names = [run.attrs["system"] for run in study.runs]
    assert names == ["bm25", "popularity", "bm25+popularity", "bm25+pagerank", "bm25+personalised", "bm25+neighbours",
                     "neighbours+personalised", evidence.CONTROL]  # fmt: skip
    assert study.weights.drop(columns=["collection", "system"]).sum(axis=1).tolist() == pytest.approx([1.0] * 6)
    values = study.evaluate(["nDCG@10"])
    expected = evaluate(study.evidence["text"], study.collection, ["nDCG@10"]).value.mean()
    assert values[values.system == "bm25"].value.mean() == expected
    assert values.groupby("system").value.mean().between(0.1, 0.9).all()


def test_a_system_above_all_baselines_has_the_largest_p(study: GraphStudy) -> None:
    """And one that is not has the smallest of the tests that say so, times the number of baselines."""
    rng, rows = np.random.default_rng(3), []
    for name, mean in (("best", 0.6), ("good", 0.55), ("poor", 0.3)):
        rows += [(name, f"q{number}", value) for number, value in enumerate(rng.normal(mean, 0.1, 40))]
    values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(collection="c", measure="RR")
    tested = permutation_test(values, "RR").set_index(["system_a", "system_b"])
    table = compare_with_all(values, "RR", {"best": ["good", "poor"], "good": ["best", "poor"]}).set_index("system_a")
    assert table.loc["best", "system_b"] == "good" and table.loc["good", "system_b"] == "best"
    assert table.loc["best", "p"] == tested.loc[("best", "good"), "p"] > tested.loc[("best", "poor"), "p"]
    assert table.loc["good", "p"] == pytest.approx(2 * tested.loc[("best", "good"), "p"])
    assert table.loc["good", "difference"] == -table.loc["best", "difference"] < 0
    with pytest.raises(MirblabError, match="no system 'bets'"):
        compare_with_all(values, "RR", {"bets": ["good"]})
    with pytest.raises(MirblabError, match="found no baseline"):
        compare_with_all(values, "RR", {"best": []})
    imported = pd.concat([values, values.tail(1).assign(system="paper", query_id="")])
    with pytest.raises(MirblabError, match="no common values per query of best and paper"):
        compare_with_all(imported, "RR", {"best": ["good", "paper"]})


def test_probabilities_are_of_the_pool_and_learnt_from_older_theorems(study: GraphStudy) -> None:
    """The first documents of all runs, with the judgements of the collection."""
    pairs = estimate_relevance(study, k=3)
    for query in study.collection.query_ids[:10]:
        pooled = {
            doc for name in ("text", "popularity", "pagerank", "personalised", "neighbours")
            for doc in [*scores_of(study.evidence[name], query)][:3]
        }  # fmt: skip
        own = pairs[pairs.query_id == query]
        assert set(own.doc_id) == pooled and own.doc_id.is_unique
        judged = study.collection.relevant
        assert set(own[own.relevant == 1].doc_id) == pooled & set(judged[judged.query_id == query].doc_id)
    assert pairs["none"].nunique() == 1 and pairs[list(EVIDENCE)].stack().between(0, 1).all()
    assert stats.pearsonr(pairs["text and graph"], pairs.relevant).pvalue < 1e-6
    values = brier_values(pairs).set_index(["system", "query_id"]).value
    own = pairs[pairs.query_id == pairs.query_id[0]]
    assert values["text", own.query_id.iloc[0]] == pytest.approx(1 - ((own.text - own.relevant) ** 2).mean())
    other = replace(study, collection=replace(study.collection, qrels=study.collection.qrels.assign(relevance=0)))
    assert (estimate_relevance(other, k=3)[list(EVIDENCE)] == pairs[list(EVIDENCE)]).all(axis=None)


def test_the_estimate_of_precision_is_that_of_a_regression() -> None:
    """Fitted by scipy to what is judged, read at the mean of all; the interval by the errors that remain."""
    rng = np.random.default_rng(5)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(float)
    seen = rng.choice(400, 60, replace=False)
    relevant = np.full(400, np.nan)
    relevant[seen] = y[seen]
    line = stats.linregress(p[seen], y[seen])
    found = estimate_precision(p, relevant)
    assert found.weight == pytest.approx(line.slope)
    assert found.estimate == pytest.approx(line.intercept + line.slope * p.mean())
    errors = y[seen] - line.intercept - line.slope * p[seen]
    half = stats.t.ppf(0.975, 58) * np.sqrt((errors**2).sum() / 58 / 60 * (1 - 60 / 400))
    assert (found.low, found.high) == pytest.approx((found.estimate - half, found.estimate + half))


def test_with_a_constant_probability_the_estimate_is_the_mean_of_what_is_judged() -> None:
    """With Student's interval, narrower as fewer documents are left."""
    relevant = np.array([1.0, 0, 0, 1, 0, np.nan, np.nan, np.nan, np.nan, np.nan])
    found = estimate_precision(np.full(10, 0.3), relevant)
    low, high = stats.t.interval(0.95, 4, 0.4, stats.sem(relevant[:5]) * np.sqrt(0.5))
    assert (found.estimate, found.low, found.high) == pytest.approx((0.4, max(low, 0.0), high))
    with pytest.raises(MirblabError, match="three judged documents or more, found 2"):
        estimate_precision([0.1, 0.2, 0.3], [1, 0, np.nan])
    with pytest.raises(MirblabError, match="each document has a probability"):
        estimate_precision([0.1], [1, 0, 1])


def test_intervals_contain_the_precision_as_often_as_they_say() -> None:
    """And a model saves the share of the judgements that its squared correlation says, however far off its level is."""
    rng = np.random.default_rng(11)
    p = rng.random(1_500)
    pairs = pd.DataFrame({"collection": "c", "relevant": (rng.random(1_500) < p).astype(int), "none": 0.5})
    pairs = pairs.assign(text=rng.random(1_500), **{"text and popularity": p, "text and graph": 0.1 * p})
    table = hide_relevance(pairs, 0.1).set_index("evidence")
    assert table.coverage.between(0.93, 0.97).all() and (table.judged == 150).all()
    assert table.precision.tolist() == pytest.approx([pairs.relevant.mean()] * 4)
    expected = stats.pearsonr(p, pairs.relevant).statistic ** 2
    assert table.saved["text and graph"] == pytest.approx(expected, abs=0.03)
    assert table.saved["text and graph"] == pytest.approx(table.saved["text and popularity"])
    assert abs(table.saved["text"]) < 0.03
    few = pd.DataFrame({"collection": "c", "relevant": [1] * 9 + [0] * 291}).assign(**dict.fromkeys(EVIDENCE, 0.5))
    assert hide_relevance(few, 0.1).coverage.min() > 0.9  # many draws have no relevant document, and still an interval
    with pytest.raises(MirblabError, match="lies between 0 and 1, found 1"):
        hide_relevance(pairs, 1)
    with pytest.raises(MirblabError, match="10 % of 9 documents are 1; an interval needs three or more"):
        hide_relevance(pairs.head(9), 0.1)


def test_a_run_of_the_graph_is_one_like_others(known: ProofGraph, asked: Collection) -> None:
    """Ordered, cut at its depth, with a system and a collection."""
    run = popularity(known, asked, depth=5)
    assert (run.attrs["system"], run.attrs["collection"]) == ("popularity", "library")
    assert run["rank"].max() == 5
    pd.testing.assert_frame_equal(runs.order_run(run.sample(frac=1, random_state=0)), run)


def test_a_query_may_return_what_the_rule_says(library: Collection, known: ProofGraph) -> None:
    """Checked pair by pair: never itself, only older ones, no hub; a query that uses hubs alone is left out."""
    hubs = list(hub_table(known, 0.2).index)
    variants = vary_candidates(library, known, hubs)
    age = dict(zip(library.doc_ids, known.age, strict=True))
    for name, one in variants.items():
        allowed = one.candidates.allowed(np.arange(len(one.query_ids)))
        expected = [
            [
                doc != query and (age[doc] < age[query] or "all" in name) and ("nohub" not in name or doc not in hubs)
                for doc in one.doc_ids
            ]
            for query in one.query_ids
        ]
        assert hubs and allowed.tolist() == expected and one.name == f"library-{name}"
    uses_more = {query for query, doc in edges_of(library) if doc not in hubs}
    assert set(variants["all-nohub"].query_ids) == set(variants["earlier-nohub"].query_ids) == uses_more


def test_the_rules_of_a_collection_other_than_these_remain(library: Collection, known: ProofGraph) -> None:
    """Its rule of earlier documents is replaced, a list of excluded ones is kept, also for a sample of the queries."""
    denied = without_documents(earlier_only(library, known), ["t00"]).sample(20, seed=1)
    variants = vary_candidates(denied, known, [])
    assert [rule.name for rule in denied.candidates.rules] == ["earlier", "nohub"]
    assert [rule.name for rule in variants["all"].candidates.rules] == ["nohub", "not-self"]
    allowed = variants["all"].candidates.allowed(np.arange(20))
    assert (allowed.sum(axis=1) == N - 2 + denied.query_ids.isin(["t00"])).all()


def test_a_theorem_s_own_proof_tells_nothing() -> None:
    """A query that is a document is often found first; neither its proof nor a later one counts."""
    corpus = [{"_id": name, "text": name, "metadata": {"order": n}} for n, name in enumerate("abcd")]
    c = from_rows(corpus, corpus[1:], [("b", "a", 1), ("c", "a", 1), ("c", "b", 1), ("d", "c", 1)], {"name": "c"})
    own, ids = premise_graph(c), c.qrels
    found = pd.DataFrame({"query_id": "c", "doc_id": ["c", "d", "b"], "score": [3.0, 2.0, 1.0]})
    found = runs.order_run(found.astype({"query_id": ids.query_id.dtype, "doc_id": ids.doc_id.dtype}))
    assert expand_by_neighbours(own, c, found).doc_id.tolist() == ["a"]
    assert pagerank_prior(own, c, found).doc_id.tolist() == ["b", "a"]


def test_an_estimate_lies_within_0_and_1_and_is_never_certain() -> None:
    """Ten of a thousand that are not relevant leave room for some that are."""
    none = estimate_precision(np.linspace(0, 1, 1_000), [0.0] * 10 + [np.nan] * 990)
    assert none.low == none.estimate == 0.0 and 0.2 < none.high < 0.4
    few = estimate_precision([0.5] * 100, [1.0] + [0.0] * 19 + [np.nan] * 80)
    assert few.low == 0.0 and few.estimate == 0.05
    assert estimate_precision([0.5] * 3, [0.0] * 3).high == 0.0  # all are judged
