"""Provability: values agree with a search by hand, and with the author's statements where these suffice."""

from __future__ import annotations

import pandas as pd
import pytest

from mirblab.core.errors import MirblabError
from mirblab.evaluation import measures
from mirblab.evaluation.provability import Provability, goal_collection
from mirblab.formula.metamath.database import Logic, read_logic
from mirblab.formula.metamath.proving import Goal, draw_goals, proof_goals
from mirblab.retrieval.systems import system

ALL = ["Provable@1,1", "Provable@10,1", "Provable@10,2", "Useful@10"]


@pytest.fixture(scope="module")
def logic() -> Logic:
    return read_logic("mini")


@pytest.fixture(scope="module")
def goals(logic) -> list[Goal]:
    return draw_goals(logic, "2025-06-01", n_goals=25)


def run_of(rankings: dict[str, list[str]]) -> pd.DataFrame:
    rows = [(query, doc, -float(place)) for query, docs in rankings.items() for place, doc in enumerate(docs)]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])


def test_the_collection_has_earlier_statements_as_candidates(logic, goals):
    """And the author's statement is always one of them."""
    c = goal_collection(logic, goals)
    assert c.query_ids.tolist() == [goal.goal_id for goal in goals] and len(c.doc_ids) == len(logic.assertions)
    run = system("bm25").search(c, depth=len(c.doc_ids))
    order = {goal.goal_id: goal.order for goal in goals}
    assert all(logic.statements[r.doc_id].order < order[r.query_id] for r in run.itertuples())
    assert set(zip(c.qrels.query_id, c.qrels.doc_id, strict=True)) == {(g.goal_id, u) for g in goals for u in g.used}


def test_the_authors_statements_prove_every_step(logic, goals):
    """And without them among the documents nothing is proved."""
    own = run_of({goal.goal_id: sorted(goal.used) for goal in goals})
    values = Provability(logic, goals).evaluate(own, ALL)
    assert len(values) == len(ALL) * len(goals) and set(values.value) == {1.0}
    none = Provability(logic, goals).evaluate(run_of({goals[0].goal_id: ["ax-1"]}), ALL)
    assert set(none.value) == {0.0}


def test_values_by_hand(logic):
    """`mpd` from `ax-mp` and `a2i`: no proof of depth 1, one of depth 2 that needs both."""
    goals = proof_goals(logic, "mpd", whole=True)
    run = run_of({"mpd": ["a1i", "ax-mp", "a2i"]})
    names = ["Provable@3,1", "Provable@2,2", "Provable@3,2", "Useful@1", "Useful@2"]
    values = Provability(logic, goals).evaluate(run, names)
    assert dict(zip(values.measure, values.value, strict=True)) == {
        "Provable@3,1": 0.0, "Provable@2,2": 0.0, "Provable@3,2": 1.0, "Useful@1": 0.0, "Useful@2": 1.0,
    }  # fmt: skip
    table = Provability(logic, goals).documents(run)
    assert table.useful.tolist() == [False, True, False] and table.used.tolist() == [False, True, True]
    assert not table.closes.any()


def test_values_are_as_those_of_evaluate_and_grow_with_k_and_depth(logic, goals):
    """No proof of a smaller number of documents is lost, whatever the limit; the author's statement suffices."""
    c = goal_collection(logic, goals)
    run = system("bm25").search(c, depth=20)
    judge = Provability(logic, goals, limit=300)
    values = judge.evaluate(run, [*ALL, "Provable@20,2", "Useful@20"])
    table = values.pivot(index="query_id", columns="measure", values="value")
    assert (table["Provable@1,1"] <= table["Provable@10,1"]).all()
    assert (table["Provable@10,1"] <= table["Provable@10,2"]).all()
    assert (table["Provable@10,2"] <= table["Provable@20,2"]).all() and (table["Useful@10"] <= table["Useful@20"]).all()
    found = measures.evaluate(run, c, ["Success@10"])
    assert list(values.columns) == list(found.columns)
    assert (table["Provable@10,1"] >= found.set_index("query_id").value).all()
    assert values.system.unique().tolist() == ["bm25"] and values.collection.unique().tolist() == [c.name]
    documents = judge.documents(run)
    assert (documents.useful | ~documents.closes).all() and documents[documents.used].closes.all()


def test_a_larger_limit_decides_more_and_takes_nothing_back(logic, goals):
    """What is useful within a small limit is so within a large one, and what else is useful was undecided."""
    run = system("bm25").search(goal_collection(logic, goals), depth=10)
    few, many = (Provability(logic, goals, limit=limit).documents(run) for limit in (60, 2000))
    assert few.undecided.any() and few.undecided.sum() > many.undecided.sum()
    assert not (few.useful & few.undecided).any() and not (few.useful & ~many.useful).any()
    assert few[many.useful & ~few.useful].undecided.all()


def test_unknown_measures_and_foreign_runs_are_refused(logic, goals):
    """With what is known."""
    judge = Provability(logic, goals)
    with pytest.raises(MirblabError, match="no measure 'Provable@10'; it is Provable@k,1"):
        judge.evaluate(run_of({}), ["Provable@10"])
    with pytest.raises(MirblabError, match="no measure was named; name one or more, such as Useful@10"):
        judge.evaluate(run_of({}), [])
    with pytest.raises(MirblabError, match="1 query that is no goal here, such as 'other'"):
        judge.documents(run_of({"other": ["ax-1"]}))
    with pytest.raises(MirblabError, match="there is no goal"):
        goal_collection(logic, [])
