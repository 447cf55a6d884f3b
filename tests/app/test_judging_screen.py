"""Documents are judged by the widget's buttons and in a terminal, which is killed and goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from judging import offences
from typer.testing import CliRunner

from mirblab.app import judging_screen
from mirblab.app.cli import app
from mirblab.app.explorer import panes
from mirblab.core.errors import StorageError
from mirblab.sources.catalogue import load

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def few() -> pd.DataFrame:
    """Return a run of three documents for one query."""
    collection = load("mini-qa")
    ids = collection.doc_ids[:3]
    run = pd.DataFrame({"query_id": collection.query_ids[50], "doc_id": ids, "score": [3.0, 2.0, 1.0]})
    run.attrs["system"] = "few"
    return run


def test_buttons_judge_move_and_undo(few: pd.DataFrame) -> None:
    """Each does what its key does; the grade that was given is marked."""
    shown = judging_screen.judge(few, "mini-qa", judge="anna")
    controls = shown.controls
    controls.grades[2].click()
    assert shown.n_judged == 1 and shown.position == 1 and "1 of 3 documents judged by anna" in controls.status.value
    controls.previous.click()
    assert shown.position == 0 and controls.grades[2].button_style == "success"
    controls.next.click()
    controls.grades[0].click()
    controls.undo.click()
    assert shown.n_judged == 1 and shown.position == 1 and controls.grades[0].button_style == "primary"
    controls.grades[1].click()
    controls.grades[3].click()
    assert "changes()" in controls.status.value and sorted(shown.qrels().relevance) == [1, 2, 3]
    keys = {
        name for button in (*controls.grades.values(), controls.undo, controls.next) for name in button._dom_classes
    }
    assert keys == {f"mirblab-key-{key}" for key in ("0", "1", "2", "3", "u", "ArrowRight")}


def test_what_cannot_be_stored_is_said(few: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """And does not count as judged."""
    shown = judging_screen.judge(few, "mini-qa", judge="anna")

    def refuse(*_: object) -> None:
        raise StorageError("the disk is full", Path("x"), False)

    monkeypatch.setattr("mirblab.analysis.judging._append_records", refuse)
    shown.controls.grades[2].click()
    assert "Problem:" in shown.controls.status.value and "the disk is full" in shown.controls.status.value
    assert shown.n_judged == 0 and shown.position == 0 and not shown.undo()


def test_a_page_without_widgets_has_the_document(few: pd.DataFrame) -> None:
    """As papermill leaves it: safe HTML without system, rank and ids; also when there is nothing to judge."""
    shown = judging_screen.judge(few, "mini-qa", judge="anna")
    bundle = shown._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle and "0 of 3 documents" in bundle["text/plain"]
    style = panes.STYLE.removeprefix("<style>").removesuffix("</style>")
    assert offences(bundle["text/html"], [style.strip()], in_notebook=True) == []
    assert not any(word in bundle["text/html"] for word in ("few", *few.doc_id, *few.query_id))
    empty = judging_screen.judge(few[:0], "mini-qa", judge="anna")
    assert "There is no document to judge" in empty._repr_mimebundle_()["text/html"]


def test_the_terminal_takes_grades_and_goes_on() -> None:
    """What is no grade is asked again; the end of the input stops, and the next command begins there."""
    command = ["judge", "mini-qa", "bm25", "--judge", "anna", "-n", "2"]
    done = CliRunner().invoke(app, command, input="2\n7\nu\nu\n1\nn\nb\n0\n")
    assert done.exit_code == 0, done.output
    assert "'7' is no grade" in done.output and "there is nothing to undo" in done.output
    assert "\n2 of " in done.output and "Judged@2" in done.output
    done = CliRunner().invoke(app, command, input="3\nq\n")
    assert "Document 3 (2 of" in done.output and "\n3 of" in done.output
    done = CliRunner().invoke(app, [*command, "--agreement"])
    assert "before and after judgements of 3 documents by anna;" in done.output and "=== Query" not in done.output


def test_the_terminal_takes_the_most_disputed_documents() -> None:
    """So many as are asked for, however deep; all systems together have more."""
    command = ["judge", "mini-qa", "bm25", "structure", "-n", "3"]
    done = CliRunner().invoke(app, [*command, "--disputed", "7"], input="q\n")
    assert done.exit_code == 0 and "0 of 7 documents judged" in done.output
    assert "0 of 7 documents" not in CliRunner().invoke(app, command, input="q\n").output


def test_a_terminal_that_is_killed_has_stored_each_judgement(home: Path) -> None:
    """Killed while it waits for the third grade."""
    command = [sys.executable, "-m", "mirblab", "judge", "mini-qa", "bm25", "--judge", "anna"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        process.stdin.write("2\n0\n")
        process.stdin.flush()
        for line in process.stdout:
            if line.startswith("--- Document 3"):
                break
        process.send_signal(signal.SIGKILL)
    lines = (home / "judgements" / "mini-qa" / "anna.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 2
    again = CliRunner().invoke(app, [*command[3:]], input="q\n")
    assert "Document 3 (2 of" in again.output


def test_another_judges_file_is_merged(home: Path, tmp_path: Path) -> None:
    """Nothing is asked then; the table has both."""
    command = ["judge", "mini-qa", "bm25", "-n", "2", "--judge"]
    for name, grades in (("anna", "1\n2\n0\n"), ("ben", "1\n0\n0\n")):
        CliRunner().invoke(app, [*command, name], input=grades)
    (home / "judgements" / "mini-qa" / "ben.jsonl").rename(tmp_path / "given.jsonl")
    done = CliRunner().invoke(app, [*command, "anna", "--merge", str(tmp_path / "given.jsonl")])
    assert (
        "3 judgements added" in done.output
        and "anna, ben | 3 | 66.7" in done.output
        and "--- Document" not in done.output
    )
