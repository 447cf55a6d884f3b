"""Task 2 of ARQMath: submissions of formula instances, and what they are worth by visual id."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mirblab.core.errors import MirblabError
from mirblab.data.runs import order_run
from mirblab.evaluation import arqmath
from mirblab.evaluation.measures import evaluate

# Six formulas of three looks: v is seen at 11, 12 and 13, w at 21, x at 31 and 32.
VISUAL = {"11": "v", "12": "v", "13": "v", "21": "w", "31": "x", "32": "x"}


def run_of(*rows: tuple[str, str, float]) -> pd.DataFrame:
    """Return instances of (topic, formula, score), each in the post whose number is the formula's tenfold."""
    table = pd.DataFrame(rows, columns=["query_id", "formula_id", "score"])
    return table.assign(post_id=table.formula_id + "0", rank=range(1, len(rows) + 1))


def test_a_visual_id_stands_where_its_first_instance_stands():
    """By hand: x at 0.9 (31), w at 0.8, v at 0.7 (12); later instances of a look change nothing."""
    run = arqmath.run_of_visual_ids(
        run_of(("B.1", "31", 0.9), ("B.1", "21", 0.8), ("B.1", "12", 0.7), ("B.1", "32", 0.6), ("B.1", "11", 0.5)),
        VISUAL,
    )
    assert run.doc_id.tolist() == ["x", "w", "v"] and run["rank"].tolist() == [1, 2, 3]
    assert run.score.tolist() == pytest.approx([0.9, 0.8, 0.7])


def test_the_value_of_instances_is_the_one_worked_out_by_hand():
    """Looks x, w, v of grades 0, 3, 2: AP' = (1/2 + 2/3) / 2, P'@10 = 0.2, and RR' = 1/2."""
    run = arqmath.run_of_visual_ids(
        run_of(("B.1", "32", 9), ("B.1", "31", 8), ("B.1", "21", 7), ("B.1", "11", 6)), VISUAL
    )
    judged = pd.DataFrame({"query_id": "B.1", "doc_id": ["31", "32", "21", "11", "12"], "relevance": [0, 0, 3, 1, 2]})
    qrels = arqmath.qrels_of_visual_ids(judged, VISUAL)
    assert dict(zip(qrels.doc_id, qrels.relevance, strict=True)) == {"x": 0, "w": 3, "v": 2}
    values = evaluate(run, qrels, ["AP'", "P'@10", "RR'"], relevant_from=2)
    assert values.value.tolist() == pytest.approx([(1 / 2 + 2 / 3) / 2, 0.2, 0.5])


def test_equal_scores_are_ordered_by_visual_id_and_not_by_formula():
    """As trec_eval orders the file that the labs' scripts hand to it."""
    run = arqmath.run_of_visual_ids(run_of(("B.1", "31", 1.0), ("B.1", "21", 1.0), ("B.1", "11", 1.0)), VISUAL)
    assert run.doc_id.tolist() == ["x", "w", "v"]


def test_ranks_decide_when_asked_to():
    """A submission whose scores go the other way."""
    rows = run_of(("B.1", "11", 0.1), ("B.1", "21", 0.2), ("B.1", "31", 0.3))
    assert arqmath.run_of_visual_ids(rows, VISUAL).doc_id.tolist() == ["x", "w", "v"]
    assert arqmath.run_of_visual_ids(rows, VISUAL, by="rank").doc_id.tolist() == ["v", "w", "x"]


def test_only_instances_that_were_judged_count_when_asked_to():
    """The scripts of 2020: 13 comes first, but 12 was judged, so that v falls behind w; another topic's do not help."""
    rows = run_of(("B.1", "13", 0.9), ("B.1", "21", 0.8), ("B.1", "12", 0.7), ("B.2", "13", 0.5))
    judged = pd.DataFrame({"query_id": ["B.1", "B.1", "B.2"], "doc_id": ["21", "12", "13"]})
    assert arqmath.run_of_visual_ids(rows, VISUAL).doc_id.tolist() == ["v", "w", "v"]
    run = arqmath.run_of_visual_ids(rows, VISUAL, judged=judged)
    assert run.query_id.tolist() == ["B.1", "B.1", "B.2"] and run.doc_id.tolist() == ["w", "v", "v"]


def test_formulas_of_another_release_are_refused_and_few_unknown_ones_counted():
    """Half is the limit."""
    rows = run_of(("B.1", "11", 3), ("B.1", "99", 2), ("B.1", "21", 1))
    run = arqmath.run_of_visual_ids(rows, VISUAL)
    assert run.doc_id.tolist() == ["v", "w"] and run.attrs["not_mapped"] == 1
    with pytest.raises(MirblabError, match="2 of 3 instances have no visual id, such as '99'; give the formulas"):
        arqmath.run_of_visual_ids(run_of(("B.1", "11", 3), ("B.1", "99", 2), ("B.1", "98", 1)), VISUAL)


def test_wrong_arguments_are_named():
    with pytest.raises(MirblabError, match="by is 'score' or 'rank', not 'place'"):
        arqmath.run_of_visual_ids(run_of(("B.1", "11", 1)), VISUAL, by="place")
    with pytest.raises(MirblabError, match="instances lack formula_id; found query_id, doc_id"):
        arqmath.run_of_visual_ids(pd.DataFrame({"query_id": ["B.1"], "doc_id": ["1"], "score": [1]}), VISUAL)
    with pytest.raises(MirblabError, match="judgements lack relevance"):
        arqmath.qrels_of_visual_ids(pd.DataFrame({"query_id": ["B.1"], "doc_id": ["1"]}), VISUAL)


@pytest.mark.parametrize("name", ["own.tsv", "own.tsv.gz"])
def test_instances_come_back_from_a_submission(tmp_path: Path, name: str):
    """Best first, ranks from 1, the post beside each formula."""
    rows = run_of(("B.1", "21", 0.25), ("B.1", "11", 0.5), ("B.2", "31", 1.0))
    rows.attrs["system"] = "ours"
    arqmath.write_submission(rows, tmp_path / name)
    found = arqmath.read_submission(tmp_path / name)
    assert found.formula_id.tolist() == ["11", "21", "31"] and found.post_id.tolist() == ["110", "210", "310"]
    assert found["rank"].tolist() == [1, 2, 1] and found.score.tolist() == [0.5, 0.25, 1.0]
    assert found.attrs == {"system": "ours", "task": 2, "rank_differs": 0}


def test_a_run_of_posts_comes_back_from_a_submission(tmp_path: Path):
    """Task 1 has five cells, and at most a thousand posts for each topic."""
    run = order_run(pd.DataFrame({"query_id": "A.1", "doc_id": [str(n) for n in range(1200)], "score": range(1200)}))
    run.attrs["system"] = "ours"
    arqmath.write_submission(run, tmp_path / "own.tsv")
    assert (tmp_path / "own.tsv").read_text().splitlines()[0] == "A.1\t1199\t1\t1199\tours"
    found = arqmath.read_submission(tmp_path / "own.tsv")
    assert len(found) == 1000 and found.attrs["task"] == 1 and found.doc_id.iloc[-1] == "200"


def test_scores_that_contradict_the_ranks_are_counted(tmp_path: Path):
    """The scripts of the labs look at scores alone."""
    (tmp_path / "own.tsv").write_text("A.1\t7\t1\t0.1\tx\nA.1\t8\t2\t0.9\tx\nA.2\t9\t1\t2\tx\n")
    found = arqmath.read_submission(tmp_path / "own.tsv")
    assert found.attrs["rank_differs"] == 1 and found.doc_id.tolist() == ["8", "7", "9"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("A.1 7 1 0.5 x\nA.1 8 2\n", "line 2: expected topic, post, rank, score, run in task 1"),
        ("B.1 Q0 7 1 0.5 x\n", "line 1: this is a run in TREC's format; read it with read_run"),
        ("A.1 7 1 high x\n", "line 1: rank and score must be numbers that a float32 holds; found 'A.1 7 1 high x'"),
        ("A.1 7 1 nan x\n", "line 1: rank and score must be numbers"),
        ("A.1\t\t1\t0.5\tx\n", "line 1: a cell is empty"),
        ("A.1 7 1 0.5 x\nA.1 7 2 0.4 x\nA.1 7 3 0.3 x\n", r"line 2: given a second time.*\(2 such lines in all\)"),
        ("A.1 7 1 0.5 x\nB.1 5 7 1 0.5 x\n", "line 2: expected .* in all lines alike"),
        ("\n", "has no lines; expected topic, post"),
    ],
)
def test_a_broken_submission_is_refused_with_its_line(tmp_path: Path, text: str, says: str):
    (tmp_path / "own.tsv").write_text(text)
    with pytest.raises(MirblabError, match=says):
        arqmath.read_submission(tmp_path / "own.tsv")


def test_an_id_with_a_blank_is_not_written(tmp_path: Path):
    with pytest.raises(MirblabError, match="white space"):
        arqmath.write_submission(
            pd.DataFrame({"query_id": "A.1", "doc_id": ["a b"], "score": [1]}), tmp_path / "own.tsv"
        )
    assert not list(tmp_path.iterdir())
