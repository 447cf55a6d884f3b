"""Submissions to ARQMath's first task, written and read."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import mirblab as lab
from mirblab.analysis import compare_runs
from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.data.runs import order_run
from mirblab.evaluation import arqmath, imported
from mirblab.sources import catalogue


@pytest.mark.parametrize("name", ["own.tsv", "own.tsv.gz"])
def test_a_run_of_posts_comes_back_from_a_submission(tmp_path: Path, name: str):
    """At most a thousand posts are written for each topic."""
    run = order_run(pd.DataFrame({"query_id": "A.1", "doc_id": [str(n) for n in range(1200)], "score": range(1200)}))
    run.attrs["system"] = "ours"
    arqmath.write_submission(run, tmp_path / name)
    if name == "own.tsv":
        assert (tmp_path / name).read_text().splitlines()[0] == "A.1\t1199\t1\t1199\tours"
    again = arqmath.read_submission(tmp_path / name)
    assert arqmath.is_submission(tmp_path / name) and again.attrs["system"] == "ours"
    assert len(again) == 1000 and again.doc_id.iloc[-1] == "200" and again["rank"].iloc[-1] == 1000


def test_scores_decide_and_not_ranks(tmp_path: Path):
    """The labs' scripts read scores alone."""
    (tmp_path / "own.tsv").write_text("A.1\t7\t1\t0.1\tx\nA.1\t8\t2\t0.9\tx\nA.2\t9\t1\t2\tx\n")
    assert arqmath.read_submission(tmp_path / "own.tsv").doc_id.tolist() == ["8", "7", "9"]


@pytest.mark.parametrize(
    "text", ["A.1 Q0 7 1 0.5 x\n", "q1 7 1 0.5 x\n", "A.1 Q0 d7 1 0.5\n", "system,value\n", "", "A.1 7 1 high x\n"]
)
def test_other_files_are_not_taken_for_submissions(tmp_path: Path, text: str):
    """A run in TREC's format, also one without the system's name, other topics, other tables, an empty file."""
    (tmp_path / "own.tsv").write_text(text)
    assert not arqmath.is_submission(tmp_path / "own.tsv")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("A.1 7 1 0.5 x\nA.1 8 2\n", "line 2: expected topic, post, rank, score, run; found 'A.1 8 2'"),
        ("A.1 7 1 high x\n", "line 1: rank and score must be numbers that a float32 holds; found 'A.1 7 1 high x'"),
        ("A.1 7 1 nan x\n", "line 1: rank and score must be numbers"),
        ("A.1\t\t1\t0.5\tx\n", "line 1: a cell is empty"),
        ("A.1 7 1 0.5 x\nA.1 7 2 0.4 x\nA.1 7 3 0.3 x\n", r"line 2: given a second time.*\(2 such lines in all\)"),
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


@pytest.mark.parametrize(
    ("content", "is_run"),
    [
        (b"\xef\xbb\xbfA.1\t7\t1\t0.5\tx\n", True),
        (b"\n\nA.1 7 1 0.5 x\n", True),
        (b"q1 Q0 7 1 0.5 x\n", True),
        (b"\xef\xbb\xbfq1\tQ0\t7\t1\t0.5\tx\n", True),
        (b"q1 Q0 7 first 0.5 x\n", False),
        (b"a table of values of six\n", False),
        (b"", False),
    ],
)
def test_the_first_line_says_whether_a_file_is_a_run(tmp_path: Path, content: bytes, is_run: bool):
    (tmp_path / "run.tsv").write_bytes(content)
    assert arqmath.is_run_file(tmp_path / "run.tsv") == is_run
    if is_run:
        assert arqmath.read_run(tmp_path / "run.tsv").doc_id.tolist() == ["7"]


def test_a_reader_of_runs_takes_submissions(tmp_path: Path):
    """As `mirblab diff` does; the system is named by the file or by the caller."""
    (tmp_path / "own.tsv").write_text("A.1\t7\t2\t0.1\tours\nA.1\t8\t1\t0.9\tours\n")
    found = [lab.read_run(tmp_path / "own.tsv"), lab.read_run(str(tmp_path / "own.tsv"), "theirs")]
    assert [run.doc_id.tolist() for run in found] == [["8", "7"]] * 2
    assert [run.attrs["system"] for run in found] == ["ours", "theirs"]
    assert {run.attrs["origin"] for run in found} == {"the file own.tsv"}


def write_collection(folder: Path) -> None:
    """Write a collection with the ids of ARQMath's first task."""
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("".join(f'{{"_id": "{n}", "text": "post {n}"}}\n' for n in (7, 8, 9)))
    (folder / "queries.jsonl").write_text('{"_id": "A.1", "text": "post"}\n{"_id": "A.2", "text": "post"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nA.1\t8\t2\nA.2\t9\t3\n")


SUBMITTED = "A.1\t7\t1\t0.1\ttheirs\nA.1\t8\t2\t0.9\ttheirs\nA.2\t9\t1\t2\ttheirs\n"
TREC = "A.1 Q0 7 1 0.1 theirs\nA.1 Q0 8 2 0.9 theirs\nA.2 Q0 9 1 2 theirs\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [("theirs.tsv", SUBMITTED), ("theirs.txt", SUBMITTED), ("theirs.tsv", TREC), ("theirs.csv", TREC)],
)
def test_a_run_can_be_imported(tmp_path: Path, name: str, content: str, home: Path):
    """In both forms, under the suffix of tables, too; the run that is read back is ordered by score."""
    write_collection(tmp_path / "answers")
    (tmp_path / name).write_text(content)
    catalogue.add(tmp_path / "answers")
    record, notes = imported.import_results(tmp_path / name, collection="answers")
    assert record.kind == "run" and record.systems == ["theirs"] and notes[0] == "3 of 3 rows fit answers"
    run = imported.read_imported_run("theirs", load_folder(tmp_path / "answers"))
    assert run.doc_id.tolist() == ["8", "7", "9"] and run.attrs["origin"] == name


def test_a_submission_can_be_compared(tmp_path: Path):
    """What `mirblab import-results` takes, `mirblab diff` and `mirblab report` take."""
    write_collection(tmp_path / "answers")
    (tmp_path / "theirs.tsv").write_text("\ufeffA.1\t7\t1\t0.1\ttheirs\nA.1\t8\t2\t0.9\ttheirs\n", "utf-8")
    run = compare_runs.read_run_file(tmp_path / "theirs.tsv", load_folder(tmp_path / "answers"))
    assert run.doc_id.tolist() == ["8", "7"] and run.attrs["system"] == "theirs"
