"""Tables and figures land in a folder of their own, or in a batch in the suite's, each with what it was made from."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from mirblab.app import hand_runs
from mirblab.app.hand_runs import library_versions, output_key
from mirblab.app.suite_files import output
from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.display import plots, result_tables
from mirblab.retrieval import systems
from mirblab.sources import catalogue


def test_a_table_and_a_figure_land_with_provenance():
    """Parameters, fingerprints, model revisions, commit and versions stand in a JSON beside each."""
    c = catalogue.load("mini-hol")
    out = output("99_example", "own", "part", collections=[c], systems=[systems.system("minilm")], seed=7)
    frame = pd.DataFrame({"name": ["a", "b"], "count": [1, 2]})
    out.table(result_tables.table(frame, "Two rows."), "rows")
    shown = out.figure(plots.bars(frame), "bars", caption="Two bars.", alt="Bars of 1 and 2.", table=frame)
    folder = out.folder
    assert folder.parent == paths.figures() / "_by_hand" / "99_example"
    files = {path.name for path in folder.iterdir()}
    assert files == {
        *(f"rows.{suffix}" for suffix in ("tex", "md", "csv", "json")),
        *(f"bars.{suffix}" for suffix in ("pdf", "png", "svg", "csv", "json")),
        "run.json",
    }
    assert 'alt="Bars of 1 and 2."' in shown.data
    for name in ("rows", "bars"):
        provenance = json.loads((folder / f"{name}.json").read_text("utf-8"))["provenance"]
        assert provenance["parameters"] == {"seed": 7}
        assert provenance["collections"]["mini-hol"]["fingerprint"] == c.fingerprint
        assert provenance["systems"]["minilm"]["encoder"]["revision"].startswith("1110a243")
        assert provenance["versions"] == library_versions() and "python" in provenance["versions"]
        assert str(paths.home()) not in json.dumps(provenance)


def test_only_the_batch_writes_into_the_folder_of_a_suite(monkeypatch):
    """It says which run of the suite it is; another notebook, part or suite in that process is none."""
    monkeypatch.setenv("MIRBLAB_SUITE_RUN", json.dumps(["own", "99_example", "part"]))
    assert output("99_example", "own", "part").folder == paths.figures() / "own" / "99_example" / "part"
    for others in (("99_example", "own"), ("99_example", "mini", "part"), ("98_example", "own", "part")):
        assert paths.figures() / "_by_hand" in output(*others).folder.parents


def test_a_page_is_linked_from_where_its_notebook_is_opened(monkeypatch, tmp_path):
    """From the working folder in a run by hand; in a batch from the executed copy, which is among the figures."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.html").write_text("x")
    assert 'href="page.html"' in output("99_example", "own").page(tmp_path / "page.html", "A page").data
    monkeypatch.setenv("MIRBLAB_SUITE_RUN", json.dumps(["own", "99_example", ""]))
    out = output("99_example", "own")
    out.folder.mkdir(parents=True)
    (out.folder / "page.html").write_text("x")
    assert 'href="../../own/99_example/page.html"' in out.page(out.folder / "page.html", "A page").data


def test_the_folder_of_a_run_by_hand_is_safe_on_every_platform():
    """Its name says what differs, is short, and another choice has another one, whatever the letters."""
    defaults = {"query": "a", "systems": ["bm25"], "seed": 0}
    choices = [
        defaults,
        defaults | {"query": "A"},
        defaults | {"query": "../../x:*?<>|\\ nul\n\x1b[31m" * 20},
        defaults | {"query": "../../x:*?<>|\\ nul\n\x1b[31m" * 21},
        defaults | {"systems": ["bm25", "minilm"], "seed": 1},
        defaults | {"systems": ["bm25+minilm"], "seed": 1},
        defaults | {"query": "∀ε…"},
    ]
    folders = [hand_runs.hand_run_folder("99_example", chosen, defaults) for chosen in choices]
    names = [folder.name for folder in folders]
    assert len({name.lower() for name in names}) == len(names) and max(map(len, names)) <= 80
    assert all(folder.parent == hand_runs.hand_runs_folder() / "99_example" for folder in folders)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+_-") for name in names)
    assert names[0].startswith("defaults-") and names[4].startswith("systems-bm25+minilm_seed-1-")
    assert folders == [hand_runs.hand_run_folder("99_example", chosen, defaults) for chosen in choices]
    with pytest.raises(MirblabError):
        hand_runs.hand_run_folder("../99_example", defaults, defaults)


def test_damaged_records_of_runs_by_hand_are_left_alone(tmp_path, home):
    """Nor is what a link names listed or removed."""
    out = output("99_example", "own", seed=1)
    out.table(result_tables.table(pd.DataFrame({"name": ["a"], "count": [1]}), "A row."), "rows")
    (run,) = hand_runs.list_hand_runs()
    assert run.folder == out.folder and run.parameters["seed"] == 1 and run.state({}) == "data and code unchanged"
    for place, content in enumerate(("[]", "{}", "{", "null", "[" * 9999, '{"notebook": 1}', "\udcff")):
        folder = run.folder.with_name(f"other-{place}")
        folder.mkdir()
        (folder / hand_runs.RECORD).write_text(content, encoding="utf-8", errors="surrogateescape")
    elsewhere = tmp_path / "elsewhere"
    run.folder.rename(elsewhere)
    run.folder.symlink_to(elsewhere, target_is_directory=True)
    assert hand_runs.list_hand_runs() == [] and hand_runs.remove_hand_runs(["all"]) == []
    assert (elsewhere / "rows.csv").is_file() and len(list(run.folder.parent.iterdir())) == 8


def test_a_file_that_a_run_by_hand_read_is_part_of_its_data(tmp_path, monkeypatch, home):
    """Also when it was named from another working folder than the one in which the list is asked for."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("a,b\n", encoding="utf-8")
    out = output("99_example", "own", source="mine.csv")
    out.table(result_tables.table(pd.DataFrame({"name": ["a"], "count": [1]}), "A row."), "rows")
    monkeypatch.chdir("/")
    (run,) = hand_runs.list_hand_runs()
    assert run.state({}) == "data and code unchanged"
    (tmp_path / "mine.csv").write_text("a,c\n", encoding="utf-8")
    assert run.state({}) == "data or code changed since"


def test_tables_beside_that_of_the_source_are_data(tmp_path, monkeypatch):
    """As the builder of own files finds them, not from the working folder."""
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    parameters = {"source": "mine/texts.csv", "queries": "asked.csv", "qrels": "judged.csv"}
    for name in ("texts.csv", "asked.csv", "judged.csv"):
        (tmp_path / "mine" / name).write_text("a,b\n", encoding="utf-8")
    before = output_key(None, parameters)
    assert output_key(None, parameters) == before
    for name in ("asked.csv", "judged.csv"):
        (tmp_path / "mine" / name).write_text("a,c\n", encoding="utf-8")
        assert output_key(None, parameters) != before
        before = output_key(None, parameters)


@pytest.mark.parametrize("database", ["set.mm", "none.mm|set.mm|mini"])
def test_a_database_is_data_wherever_it_is_found(home, database):
    (home / "data").mkdir(parents=True)
    (home / "data" / "set.mm").write_text("$c wff $.", encoding="utf-8")
    before = output_key(None, {"database": database})
    (home / "data" / "set.mm").write_text("$c wff |- $.", encoding="utf-8")
    assert output_key(None, {"database": database}) != before


@pytest.mark.parametrize("key", ["first", "text", "alike", "rerankers", "other"])
def test_a_text_that_names_a_system_or_a_model_is_what_it_means(own, key):
    """In whichever parameter it stands; another text is a text alone."""
    entries = {
        "systems": '[mine]\nkind = "bm25"\nk1 = {}\n',
        "rerankers": '[mine-cross]\nkind = "cross-encoder"\nid = "a/b"\nrevision = "{}"\n',
    }
    for kind, name in (("systems", "mine"), ("rerankers", "mine-cross")):
        value = [name] if key == "rerankers" else name
        own(kind, entries[kind].format(1.5))
        before, other = (output_key(None, {key: text}) for text in (value, "prime ideal"))
        own(kind, entries[kind].format(2.5))
        assert output_key(None, {key: value}) != before and output_key(None, {key: "prime ideal"}) == other


def test_templates_are_part_of_the_code(monkeypatch):
    """Each file of the package decides what a notebook writes, but for what Python or an editor leaves there."""
    read: list[str] = []
    plain = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.as_posix()) or plain(path))
    hand_runs.code_digest.__wrapped__()
    assert any("/display/templates/" in name for name in read) and any(name.endswith("/card.md") for name in read)
    assert not any("__pycache__" in name for name in read)


def test_in_a_papers_suite_a_bundled_collection_is_said_to_be_no_published_one():
    """Below a table and a figure that name it, in no other, and not in the suite of the bundled data."""
    c, note = catalogue.load("mini-qa"), "mini-qa (after ARQMath task 1) was written for mirblab: its values cannot be"
    about, other = (result_tables.table(pd.DataFrame({"n": [1]}, index=[name])) for name in ("mini-qa", "mini-qa-2"))
    out = output("20_formula_retrieval", "zhong", collections=[c])
    assert out.table(about, "about").notes[0].startswith(note) and out.table(other, "other").notes == []
    table = pd.DataFrame({"name": ["a"], "count": [1]})
    drawn = out.figure(plots.bars(table), "drawn", caption="Counts of mini-qa.", alt="A bar.", table=table)
    assert note in drawn.data
    assert output("20_formula_retrieval", "mini", collections=[c]).table(about, "about").notes == []


def test_a_notebook_that_was_only_opened_is_the_same(tmp_path):
    """JupyterLab writes metadata and outputs unasked; what decides is what the cells hold."""
    path, cell = (
        tmp_path / "one.ipynb",
        {"cell_type": "code", "source": ["a = 1\n", "a"], "metadata": {}, "outputs": []},
    )
    path.write_text(json.dumps({"cells": [cell], "metadata": {}}), "utf-8")
    before = output_key(path, {})
    saved = {**cell, "source": "a = 1\na", "outputs": [{"output_type": "stream", "name": "stdout", "text": "1"}]}
    path.write_text(json.dumps({"metadata": {"language_info": {"version": "3"}}, "cells": [saved]}), "utf-8")
    assert output_key(path, {}) == before
    path.write_text(json.dumps({"cells": [{**cell, "source": "a = 2\na"}], "metadata": {}}), "utf-8")
    assert output_key(path, {}) != before
