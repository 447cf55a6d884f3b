"""`mirblab diff`: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from mirblab.analysis import compare_runs
from mirblab.app import cli
from mirblab.core import terminal
from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.retrieval import systems
from mirblab.sources import catalogue


@pytest.fixture(scope="module")
def found() -> compare_runs.RunComparison:
    return compare_runs.compare_runs("bm25", "bm25-okapi", "mini-qa", ["nDCG@10", "RR"], depth=30)


def printed(found: compare_runs.RunComparison) -> str:
    file = io.StringIO()
    compare_runs.print_comparison(found, terminal.console(file=file, width=120, force_terminal=False))
    return file.getvalue()


def test_it_answers_every_question(found):
    """Means, likeness, queries, documents, what nobody judged; both systems named."""
    text = " ".join(printed(found).split())
    for part in ("mini-qa, 204 queries: means", "similarity of the rankings", "queries that changed most in nDCG@10",
                 "rank before and", "documents are in the first 10 of bm25-okapi and not of bm25",
                 "only those of bm25-okapi are relevant"):  # fmt: skip
        assert part in text, part
    assert f"{found.tests.difference.iloc[0]:+.4f}" in text


def test_no_cell_of_the_means_is_broken_in_a_terminal_of_80_characters(found):
    """Each assumption about the unjudged documents has a table of its own, which fits."""
    file = io.StringIO()
    compare_runs.print_comparison(found, terminal.console(file=file, width=80, force_terminal=False))
    printed, means = file.getvalue().split("mini-qa, 204 queries: means")
    assert "│ nDCG@10 │" in means and "unjudged" not in means  # last, where a terminal shows it
    lines = printed.split("means if, of the unjudged documents, ")
    assert len(lines) == 5
    assert all(sum("│ nDCG@10 │" in line for line in part.splitlines()) == 1 for part in lines[1:])
    assert all("│" not in line or line.count(".") >= 4 for part in lines[1:] for line in part.splitlines())


def test_the_csv_has_every_query_and_agrees_with_the_means(found, tmp_path):
    """One row per query, in order; the mean of the differences is the difference of the means."""
    table = pd.read_csv(compare_runs.write_comparison(found, tmp_path / "deep" / "a.csv"), index_col="query_id")
    assert table.index.tolist() == list(found.collection.query_ids)
    assert table["difference in RR"].mean() == pytest.approx(found.tests.difference.iloc[1])
    assert {"rbo", "tau", "overlap", "entered", "left_unjudged"} <= set(table.columns)


def test_a_run_with_itself_changes_nothing(tmp_path):
    """A file of the same run: no query changed, no document new, nothing hangs on holes."""
    c = catalogue.load("mini-qa")
    runs.write_run(systems.system("bm25").search(c, 20), tmp_path / "same.trec")
    found = compare_runs.compare_runs("bm25", str(tmp_path / "same.trec"), "mini-qa", ["RR"], depth=20)
    text = printed(found)
    assert found.names == ("bm25", "same.trec")
    assert "none: the value is the same for every query" in text and "are relevant" not in text
    assert "0 documents are in the first 10" in text and "1.000" in text


def test_a_query_that_is_missing_is_said(tmp_path):
    """It scores 0, and a note names it."""
    c = catalogue.load("mini-qa")
    run = systems.system("bm25").search(c, 20)
    runs.write_run(run[run.query_id != c.query_ids[0]], tmp_path / "less.trec")
    text = printed(compare_runs.compare_runs("bm25", str(tmp_path / "less.trec"), "mini-qa", ["RR"], depth=20))
    assert f"note: less.trec on mini-qa: 1 of 204 queries is not in the run and scores 0: '{c.query_ids[0]}'" in text


@pytest.mark.attacks
def test_what_steers_a_terminal_is_not_printed(make_folder, tmp_path):
    """An id or text with markup or escape codes stands there as text."""
    folder = make_folder([{"_id": f"d{n}", "title": "", "text": f"\x1b[31m[bold]red[/bold] {n}"} for n in (1, 2, 3)])
    for name, order in (("a", "d1 d2"), ("b", "d2 d1")):
        lines = [f"q{q} Q0 {doc} 1 {-at} {name}\x1b[2J\n" for q in (1, 2) for at, doc in enumerate(order.split())]
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    text = printed(compare_runs.compare_runs(str(tmp_path / "a"), str(tmp_path / "b"), str(folder), ["RR"]))
    assert "\x1b" not in text and "[bold]red[/bold]" in text.replace("\n", "")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("bm25", "minilm", "mini-qq", ["RR"]), "no collection 'mini-qq'; did you mean 'mini-qa'"),
        (("bm25", "bm52", "mini-qa", ["RR"]), "'bm52' is neither a run file nor a system"),
        (("bm25", "old.trec", "mini-qa", ["RR"]), "no run file 'old.trec'; looked in"),
        (("bm25", "minilm", "mini-qa", ["nDGC@10"]), "no measure 'nDGC@10'"),
        (("bm25", "minilm", "mini-qa", []), "no measure was given; name one, for example nDCG@10"),
    ],
)
def test_what_cannot_be_compared_is_refused(asked, says):
    """Before anything is searched, with the next step."""
    with pytest.raises(MirblabError, match=says):
        compare_runs.compare_runs(*asked)


def test_the_command_prints_and_writes(tmp_path, capsys):
    """As it is called from the command line."""
    import typer
    from typer.testing import CliRunner

    app = typer.Typer()
    app.command()(cli.diff)
    asked = [
        "bm25",
        "bm25-okapi",
        "--collection",
        "mini-qa",
        "--measures",
        "RR",
        "--depth",
        "30",
        "--out",
        str(tmp_path / "a.csv"),
    ]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert "similarity of the rankings" in done.output and (tmp_path / "a.csv").is_file()
