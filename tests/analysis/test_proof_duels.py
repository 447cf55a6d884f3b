"""The true proof is compared with each kind of wrong one."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest

from mirblab.analysis.proof_duels import hard_negative_accuracy
from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.retrieval import systems
from mirblab.sources import catalogue


@pytest.fixture
def pool(make_folder):
    corpus = [{"_id": name, "text": name} for name in ("p1", "p1~converse", "p1~step-dropped", "p2", "p2~converse")]
    queries = [{"_id": "q1", "text": "one"}, {"_id": "q2", "text": "two"}]
    folder = make_folder(corpus, queries, "q1\tp1\t1\nq2\tp2\t1\n")
    lists = [("q1", ["p1", "p1~converse", "p1~step-dropped", "p2"]), ("q2", ["p2", "p2~converse"])]
    rows = [json.dumps({"query-id": name, "candidate-ids": ids}) for name, ids in lists]
    (folder / "candidates.jsonl").write_text("\n".join(rows), encoding="utf-8")
    return load_folder(folder)


def test_outcomes_by_hand(pool):
    """Above, level, below, and not returned at all."""
    rows = [("q1", "p1", 2.0), ("q1", "p1~converse", 2.0), ("q1", "p1~step-dropped", 1.0), ("q2", "p2~converse", 1.0)]
    run = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    run.attrs["system"] = "s"
    found = hard_negative_accuracy(run, pool).set_index("kind")
    assert found.loc["converse", ["queries", "true_first", "tie", "wrong_first"]].tolist() == [2, 0.0, 0.5, 0.5]
    assert found.loc["step-dropped", ["queries", "true_first"]].tolist() == [1, 1.0]
    assert found.loc["near", ["queries", "true_first"]].tolist() == [1, 1.0]
    assert found.loc["any", ["true_first", "tie", "wrong_first"]].tolist() == [0.0, 0.5, 0.5]
    assert found.index.tolist() == ["converse", "step-dropped", "near", "any"]
    assert found.chance.tolist() == [1 / 2, 1 / 2, 1 / 2, (1 / 4 + 1 / 2) / 2]  # against one wrong proof, or three


def test_shares_add_up_on_a_built_collection():
    """Words cannot tell a converse from what it was made of."""
    folder = catalogue.build("hard", "mini-stacks")[1]
    c = catalogue.load(folder)
    found = hard_negative_accuracy(systems.system("bm25").search(c), c)
    assert found[["true_first", "tie", "wrong_first"]].sum(axis=1).round(9).eq(1).all()
    assert found.kind.iloc[-1] == "any" and folder.parent == paths.data()
    assert found.set_index("kind").tie["converse"] > 0.5


def test_a_run_of_another_collection_is_refused(pool):
    """Its documents are unknown here."""
    run = pd.DataFrame({"query_id": ["q1"], "doc_id": ["elsewhere"], "score": [1.0]})
    with pytest.raises(MirblabError, match="made for another collection"):
        hard_negative_accuracy(run, pool)


def test_names_of_pyterrier_are_understood(pool):
    """The same run gives the same table."""
    rows = [("q1", "p1", 2.0), ("q1", "p1~converse", 1.0), ("q2", "p2~converse", 1.0)]
    run = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    renamed = run.rename(columns={"query_id": "qid", "doc_id": "docno"})
    assert hard_negative_accuracy(renamed, pool).equals(hard_negative_accuracy(run, pool))


def test_a_query_without_a_true_proof_is_left_out(pool):
    """No answer of it could be right."""
    run = pd.DataFrame([("q1", "p1", 2.0)], columns=["query_id", "doc_id", "score"])
    judged = pool.qrels.assign(relevance=(pool.qrels.query_id == "q1").astype(int))
    found = hard_negative_accuracy(run, replace(pool, qrels=judged)).set_index("kind")
    assert found.loc["any", ["queries", "true_first", "wrong_first"]].tolist() == [1, 1.0, 0.0]
