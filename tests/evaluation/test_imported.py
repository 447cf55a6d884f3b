"""What others measured is taken in whole, shown with its origin, and left out of tests."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import warnings
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from mirblab.analysis import compare_runs
from mirblab.app import suite_files
from mirblab.app.cli import app
from mirblab.core import paths, registry
from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.display import plots, result_tables
from mirblab.evaluation import imported, imported_values, measures
from mirblab.retrieval import systems
from mirblab.sources import catalogue, hub

HEAD = "system,collection,measure,value"


pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def qa() -> Collection:
    """Return a bundled collection."""
    return catalogue.load("mini-qa")


def write_run(collection: Collection, path: Path, depth: int = 5) -> pd.DataFrame:
    """Write a run that returns the first documents for every query, and return it."""
    rows = [(query, doc, float(-rank)) for query in collection.query_ids
            for rank, doc in enumerate(collection.doc_ids[:depth])]  # fmt: skip
    run = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    run.attrs["system"] = "theirs"
    runs.write_run(run, path)
    return runs.order_run(run)


def scores(**more: float) -> dict:
    """Return what MTEB writes for one subset."""
    return {"hf_subset": "default", "languages": ["eng-Latn"], "main_score": 0.5, "ndcg_at_10": 0.5, **more}


def write_mteb(root: Path, model: str = "org__model", task: str = "MathlibRetrieval", **data: object) -> Path:
    """Write a result file of MTEB 2 and return it."""
    path = root / model / "07163b72af1488142a360786df853f237b1a3ca1" / f"{task}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {"dataset_revision": "c51", "task_name": task, "mteb_version": "2.20.0", "scores": {"test": [scores()]}}
    path.write_text(json.dumps(known | data), encoding="utf-8")
    return path


def nothing_is_there() -> bool:
    """Return whether the folder of imports is empty or absent."""
    return not imported.imports_folder().exists() or not list(imported.imports_folder().iterdir())


def test_a_run_is_taken_in_with_its_record(qa: Collection, tmp_path: Path) -> None:
    """A copy of the file, and who measured; the run read back is the one that was given."""
    run = write_run(qa, tmp_path / "theirs.trec.gz")
    record, notes = imported.import_results(tmp_path / "theirs.trec.gz", collection="mini-qa", origin="A. Author, 2020")
    assert (record.name, record.kind, record.systems) == ("theirs on mini-qa", "run", ["theirs"])
    assert record.content_file().read_bytes() == (tmp_path / "theirs.trec.gz").read_bytes()
    stored = json.loads((record.folder / "record.json").read_text("utf-8"))
    assert stored["origin"] == "A. Author, 2020" and stored["file"] == "theirs.trec.gz" and len(stored["sha256"]) == 64
    assert str(tmp_path) not in json.dumps(stored)
    found = imported.read_imported_run("theirs", qa)
    pd.testing.assert_frame_equal(found.astype({"query_id": str, "doc_id": str}),
                                  run.astype({"query_id": str, "doc_id": str}))  # fmt: skip
    assert found.attrs["origin"] == "A. Author, 2020" and found.attrs["unknown"] == 0
    assert measures.evaluate(found, qa, "P@5").system.unique().tolist() == ["theirs"]
    assert notes[0] == f"{len(run):,} of {len(run):,} rows fit mini-qa"
    assert imported.imported_systems() == ["theirs"] and list(imported.imported_runs("theirs")) == ["mini-qa"]


def test_the_same_again_changes_nothing_and_another_file_is_refused(qa: Collection, tmp_path: Path) -> None:
    """The record of the first import stays; other content says which fields differ, and where the first one is."""
    path = tmp_path / "theirs.trec"
    write_run(qa, path)
    record = imported.import_results(path, collection="mini-qa")[0]
    before = (record.folder / "record.json").read_bytes()
    assert imported.import_results(path, collection="mini-qa") == (record, ["imported before; nothing changed"])
    write_run(qa, path, depth=4)
    with pytest.raises(MirblabError, match=r"differs in sha256; give another --name, or remove .*theirs on mini-qa"):
        imported.import_results(path, collection="mini-qa")
    with pytest.raises(MirblabError, match="a run of 'theirs' on mini-qa was imported already, as 'theirs on mini-qa'"):
        imported.import_results(path, collection="mini-qa", name="second")
    assert (record.folder / "record.json").read_bytes() == before
    assert imported.import_results(path, collection="mini-qa", system="other")[0].systems == ["other"]


@pytest.mark.parametrize("moment", ["check_not_imported", "write_import"])
def test_two_processes_may_import_the_same(
    qa: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The second one finds the import of the first, whenever that ended; another file is still refused."""
    write_run(qa, tmp_path / "theirs.trec")
    write_run(qa, tmp_path / "other.trec", depth=4)
    go_on = getattr(imported, moment)
    records = []

    def wait_for_the_other(*arguments: object) -> object:
        monkeypatch.setattr(imported, moment, go_on)
        records.append(imported.import_results(tmp_path / "theirs.trec", collection="mini-qa")[0])
        return go_on(*arguments)

    monkeypatch.setattr(imported, moment, wait_for_the_other)
    record, notes = imported.import_results(tmp_path / "theirs.trec", collection="mini-qa")
    assert [record] == records and notes == ["imported before; nothing changed"]
    shutil.rmtree(record.folder)
    monkeypatch.setattr(imported, moment, wait_for_the_other)
    with pytest.raises(MirblabError, match="differs in sha256, origin"):
        imported.import_results(tmp_path / "other.trec", collection="mini-qa", name=record.name)


def test_a_system_that_is_held_refuses_a_run_that_was_imported_later(qa: Collection, tmp_path: Path) -> None:
    """It would be stored under the key of the earlier one."""
    write_run(qa, tmp_path / "theirs.trec", 5)
    record = imported.import_results(tmp_path / "theirs.trec", collection="mini-qa")[0]
    held = systems.system("theirs")
    shutil.rmtree(record.folder)
    write_run(qa, tmp_path / "theirs.trec", 3)
    imported.import_results(tmp_path / "theirs.trec", collection="mini-qa")
    with pytest.raises(MirblabError, match=r"'theirs' on mini-qa has changed .* take the system anew .*'theirs'"):
        held.search(qa)
    assert systems.system("theirs").search(qa)["rank"].max() == 3


def test_an_imported_run_may_be_named_like_a_changed_system(qa: Collection, tmp_path: Path) -> None:
    """Its name was read as "bm25 with another k1", so that the imported run could not be reached."""
    write_run(qa, tmp_path / "theirs.trec")
    imported.import_results(tmp_path / "theirs.trec", collection="mini-qa", system="bm25 (k1 = 0.9)")
    assert systems.system("bm25 (k1 = 0.9)").settings["kind"] == "imported"
    assert systems.system("bm25 (k1 = 0.8)").settings["kind"] == "bm25"


def test_unknown_ids_are_counted_left_out_or_refused(qa: Collection, tmp_path: Path) -> None:
    """A few unknown rows are noted; a run of another collection is refused."""
    path = tmp_path / "theirs.trec"
    write_run(qa, path)
    path.write_text(path.read_text("utf-8") + f"{qa.query_ids[0]} Q0 nowhere 9 -9 theirs\n", encoding="utf-8")
    record, notes = imported.import_results(path, collection="mini-qa")
    assert "1 row has a query or a document that mini-qa lacks; it is left out" in notes
    assert "nowhere" not in set(imported.read_imported_run("theirs", qa).doc_id.cat.categories)
    with pytest.raises(MirblabError, match=r"all 1,021 rows have a query or a document that mini-lean \(split test\) "
                       r"lacks: its first query is '.*', the collection's '.*'; give the --collection"):  # fmt: skip
        imported.import_results(path, collection="mini-lean", system="other")
    assert [found.name for found in imported.import_records()] == [record.name]


def larger_run(collection: Collection, path: Path) -> pd.DataFrame:
    """Write a run over a larger corpus: for each query three documents nobody here knows, between two that are."""
    rows = [(query, doc, float(-rank)) for query in collection.query_ids
            for rank, doc in enumerate(["x1", collection.doc_ids[0], "x2", "x3", collection.doc_ids[1]])]  # fmt: skip
    run = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    run.attrs["system"] = "theirs"
    runs.write_run(run, path)
    return run


@pytest.mark.parametrize("candidates_only", [False, True])
def test_a_run_over_a_larger_corpus_is_taken_in_without_what_is_unknown(
    qa: Collection, tmp_path: Path, candidates_only: bool
) -> None:
    """Prime measures and Bpref are those of the whole run; tables of other measures say what was left out."""
    whole = larger_run(qa, tmp_path / "a.trec")
    record, notes = imported.import_results(tmp_path / "a.trec", collection="mini-qa", candidates_only=candidates_only)
    n_rows, n_unknown = 5 * len(qa.query_ids), 3 * len(qa.query_ids)
    assert (record.n_rows, record.n_unknown) == (n_rows, n_unknown)
    said = f"{n_unknown:,} of {n_rows:,} rows are documents that mini-qa lacks and are left out"
    assert any(note.startswith(said) for note in notes)
    wanted = ["nDCG'", "AP'", "P'@10", "Bpref", "nDCG@10", "Judged@10"]
    found = measures.evaluate(systems.system("theirs").search(qa), qa, wanted)
    expected = measures.evaluate(runs.order_run(whole), qa, wanted)
    right = found.measure.isin(wanted[:4]).to_numpy()
    assert (found.value[right] == expected.value[right]).all() and (found.value[~right] > expected.value[~right]).any()
    assert found.note[~right].str.startswith(said).all() and (found.note[right] == "").all()
    shown = result_tables.main_table(found, wanted, by="measure")
    assert [note.startswith(f"theirs on mini-qa: {said}") for note in shown.notes].count(True) == 1
    assert not any(said in note for note in result_tables.main_table(found[right], wanted[:4], by="measure").notes)
    assert any(said in note for note in result_tables.main_table(found, "nDCG'").notes)  # for the sake of Judged@10


def test_a_run_whose_documents_are_all_barred_is_refused(tmp_path: Path) -> None:
    """With --candidates-only nothing would be left of it."""
    collection = catalogue.load("mini-premises")
    run = pd.DataFrame({"query_id": collection.query_ids, "doc_id": collection.query_ids, "score": 1.0})
    runs.write_run(run, tmp_path / "a.trec")
    with pytest.raises(MirblabError, match="that .* has are excluded for their queries; leave --candidates"):
        imported.import_results(tmp_path / "a.trec", collection="mini-premises", candidates_only=True)
    assert nothing_is_there()


def test_a_guess_says_that_a_run_may_be_over_a_larger_corpus(qa: Collection, tmp_path: Path) -> None:
    """Its queries fit, few of its documents do."""
    larger_run(qa, tmp_path / "a.trec")
    with pytest.raises(MirblabError, match="mini-qa has 100 % of the queries and 40 % of the documents: was it made"):
        imported.import_results(tmp_path / "a.trec")


def flipped(path: Path) -> list[bytes]:
    """Return the file with single bits changed, at sixty places over its length."""
    content = path.read_bytes()
    places = range(0, len(content), max(1, len(content) // 60))
    return [content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :] for place in places]


@pytest.mark.parametrize("name", ["a.trec", "a.trec.gz", "a.csv"])
def test_no_changed_byte_of_an_import_goes_unnoticed(qa: Collection, tmp_path: Path, name: str) -> None:
    """The file and the command that takes it in anew are named, and the command does so."""
    if name == "a.csv":
        write_csv(tmp_path / name, HEAD, "theirs,mini-qa,RR,0.5", "theirs,mini-qa,AP,0.25")
    else:
        write_run(qa, tmp_path / name)
    given = {"origin": "A. Author"} | ({} if name == "a.csv" else {"collection": "mini-qa"})
    record = imported.import_results(tmp_path / name, **given)[0]
    stored = record.folder / ("values.csv" if name == "a.csv" else f"given/{name}")

    def read() -> pd.DataFrame:
        return imported.read_imported_values() if name == "a.csv" else imported.read_imported_run("theirs", qa)

    before, sound = read(), {path: path.read_bytes() for path in (stored, record.folder / "record.json")}
    for path, content in sound.items():
        for damaged in flipped(path):
            path.write_bytes(damaged)
            with pytest.raises(MirblabError, match=rf"{path.name}.* import the original again: mirblab import-results"):
                read()
        path.write_bytes(content)
        pd.testing.assert_frame_equal(read(), before)
    stored.write_bytes(sound[stored][:-1])
    with pytest.raises(MirblabError, match=rf"import-results {name} .*--origin 'A. Author' --name"):
        read()
    with pytest.warns(UserWarning, match="was set aside as .*damaged; it is imported again"):
        assert imported.import_results(tmp_path / name, **given)[0] == record
    pd.testing.assert_frame_equal(read(), before)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: broken JSON"),
        ("[" * 3000, "line 1: nested too deeply"),
        ('{"name": ' + "1" * 5000, "line 1: a whole number of more than 4,300 digits"),
        ("[1]", "expected a JSON object, found list"),
        ('{"name": 5}', r"no record of an import: the record lacks"),
        ("\xff", "is not UTF-8"),
    ],
)
def test_a_damaged_record_is_named_with_what_to_do(tmp_path: Path, text: str, message: str) -> None:
    """Never a traceback, whatever stands in the file."""
    (imported.imports_folder() / "bad").mkdir(parents=True)
    (imported.imports_folder() / "bad" / "record.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(MirblabError, match=rf"record\.json.*{message}.* mirblab import-results FILE --name bad"):
        imported.import_records()


def test_a_record_that_points_elsewhere_is_refused(qa: Collection, tmp_path: Path) -> None:
    """A name or a file with slashes would read other folders, and a record has a checksum."""
    write_run(qa, tmp_path / "a.trec")
    record = imported.import_results(tmp_path / "a.trec", collection="mini-qa")[0]
    path = record.folder / "record.json"
    plain = {key: value for key, value in json.loads(path.read_text("utf-8")).items() if key != "seal"}
    path.write_text(json.dumps(plain), encoding="utf-8")
    with pytest.raises(MirblabError, match="it was changed after the import"):
        imported.import_records()
    for change in ({"name": "../x"}, {"file": "../../../etc/passwd"}, {"kind": "other"}, {"more": 1}):
        path.write_text(json.dumps(plain | change), encoding="utf-8")
        with pytest.raises(MirblabError, match=r"record\.json is no record of an import"):
            imported.import_records()


def test_documents_that_are_no_candidates_are_counted_and_cut_on_demand(tmp_path: Path) -> None:
    """mini-premises forbids a query its own document: kept and noted, or cut."""
    collection = catalogue.load("mini-premises")
    rows = [(query, doc, 1.0 - place) for query in collection.query_ids
            for place, doc in enumerate([query, collection.doc_ids[0]]) if doc != query or place == 0]  # fmt: skip
    run = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    run.attrs["system"] = "theirs"
    runs.write_run(run, tmp_path / "a.trec")
    notes = imported.import_results(tmp_path / "a.trec", collection="mini-premises")[1]
    n_own = len(collection.query_ids)
    assert (
        f"{n_own:,} rows have a document that its query may not return; they are kept; --candidates-only cuts them"
        in notes
    )
    assert imported.read_imported_run("theirs", collection).attrs["not_candidates"] == n_own
    imported.import_results(tmp_path / "a.trec", collection="mini-premises", system="cut", candidates_only=True)
    kept = imported.read_imported_run("cut", collection)
    assert len(kept) == len(run) - n_own
    assert not (kept.query_id.astype(str) == kept.doc_id.astype(str)).any()
    assert imported.imported_settings("cut")["files"] != imported.imported_settings("theirs")["files"]


def test_the_collection_is_guessed_from_the_ids(qa: Collection, tmp_path: Path) -> None:
    """Queries and documents decide; two collections that both have them are named."""
    catalogue.load("mini-lean")
    for stem in ("corpus", "queries"):  # what cannot be read is not guessed
        (paths.data() / "broken").mkdir(exist_ok=True)
        (paths.data() / "broken" / f"{stem}.jsonl").write_text('{"_id": "d1", \n', "utf-8")
    run = write_run(qa, tmp_path / "theirs.trec")
    record, notes = imported.import_results(tmp_path / "theirs.trec")
    assert record.collections == ["mini-qa"] and "guessed" in notes[0]
    (paths.data() / "twin").symlink_to(paths.data() / "mini-qa")
    with pytest.raises(MirblabError, match="mini-qa, twin all have them; give --collection"):
        imported.guess_collection(run, tmp_path / "theirs.trec")
    with pytest.raises(MirblabError, match="none has 90 % of them"):
        imported.guess_collection(run.assign(query_id="x" + run.query_id.astype(str)), Path("a"))


def test_a_name_of_ours_is_refused(qa: Collection, tmp_path: Path) -> None:
    """Nobody could tell an imported bm25 from ours; + and > compose systems."""
    write_run(qa, tmp_path / "a.trec")
    with pytest.raises(MirblabError, match="'bm25' is a system of the registry; give --system another name"):
        imported.import_results(tmp_path / "a.trec", collection="mini-qa", system="bm25")
    with pytest.raises(MirblabError, match="compose systems"):
        imported.import_results(tmp_path / "a.trec", collection="mini-qa", system="a+b")
    assert nothing_is_there()


def test_a_system_without_a_run_there_says_what_it_has(qa: Collection, tmp_path: Path) -> None:
    """Another collection, or only values."""
    write_run(qa, tmp_path / "a.trec")
    imported.import_results(tmp_path / "a.trec", collection="mini-qa")
    with pytest.raises(MirblabError, match="'theirs' has no run on mini-lean; its runs are on mini-qa"):
        imported.read_imported_run("theirs", catalogue.load("mini-lean"))
    with pytest.raises(MirblabError, match="only values of it were imported"):
        imported.read_imported_run("elsewhere", qa)


def test_every_task_of_mirb_has_a_registered_collection() -> None:
    """Fifteen tasks, fifteen datasets, each once."""
    assert sorted(imported_values.MIRB_TASKS.values()) == sorted(hub.dataset_names())
    entries = registry.read_registry("collections")
    tails = {task: entries[name]["hub"].rpartition("/")[2] for task, name in imported_values.MIRB_TASKS.items()}
    assert tails["MSEQARetrieval"] == "mseqa" and tails["RealAnalysisPremiseRetrieval"] == "realanalysisps"
    shortened = {"premise": "ps", "lean": "lean", "retrieval": ""}
    for task, tail in tails.items():
        name = task.lower()
        for long, short in shortened.items():
            name = name.replace(long, short)
        assert tail in (name, task.lower()), (task, tail)


def test_a_folder_of_mteb_results_becomes_means(tmp_path: Path) -> None:
    """Two models, two tasks; what is none of MIRB's tasks and no measure is counted; the origin comes along."""
    root = tmp_path / "results"
    write_mteb(root, scores={"test": [scores(ndcg_at_10=0.31, map_at_100=0.2, nauc_ndcg_at_10_max=0.1)]})
    write_mteb(root, task="StacksQARetrieval", model="org__other")
    write_mteb(root, task="SciFact")
    (root / "org__model" / "07163b72af1488142a360786df853f237b1a3ca1" / "model_meta.json").write_text(
        '{"name": "org/model-x"}', encoding="utf-8")  # fmt: skip
    record, notes = imported.import_results(root, origin="MTEB results")
    found = imported.read_imported_values()
    assert found.drop(columns="origin").to_numpy().tolist() == [
        ["org/model-x", "mirb-mathlib", "nDCG@10", "", 0.31], ["org/model-x", "mirb-mathlib", "AP@100", "", 0.2],
        ["org/other", "mirb-stacks-qa", "nDCG@10", "", 0.5],
    ]  # fmt: skip
    assert set(found.origin) == {"MTEB results"} and record.kind == "values"
    assert "left out: 1 task SciFact, which is not MIRB's" in notes
    assert "left out: 1 scores by measures that are not supported" in notes
    assert len(list((record.folder / "given").rglob("*.json"))) == 4
    assert imported.read_imported_values(["org/other"]).system.tolist() == ["org/other"]
    with pytest.raises(MirblabError, match="did you mean 'org/other'"):
        imported.read_imported_values(["org/othr"])


@pytest.mark.parametrize(
    "data",
    [
        {"task_name": "HolPremiseRetrieval", "scores": {"test": [{"ndcg_at_10": 0.5, "main_score": 0.5}], "dev": []}},
        {"task_name": "HolPremiseRetrieval", "scores": {"test": [{"main_score": 0.5}]}},
        {"mteb_dataset_name": "HolPremiseRetrieval", "mteb_version": "1.1", "test": {"ndcg_at_10": 0.5}},
        {"scores": {"test": [{"ndcg_at_10": 0.5}]}},
    ],
)
def test_layouts_of_both_versions_are_read(data: dict, tmp_path: Path) -> None:
    """Scores by split, the flat layout of the first versions, the main score alone, and the task by the file's name."""
    path = tmp_path / "HolPremiseRetrieval.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    assert {key: value for key, (value, _) in imported_values.read_mteb_values(path, "m").rows.items()} == {
        ("m", "mirb-hol", "nDCG@10", ""): 0.5
    }
    with pytest.raises(MirblabError, match="no folder above it names the model; give --system"):
        imported_values.read_mteb_values(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"scores": {"test": [}', "line 1: broken JSON"),
        ("[1]", "expected a JSON object, found list"),
        ('{"scores": {"dev": []}}', "no key 'test' under 'scores', nor at the top; found dev"),
        ('{"scores": 3}', "found 3"),
        ('{"scores": {"test": [{"ndcg_at_10": 1}, {"ndcg_at_10": 1}]}}', "holds 2 subsets"),
        ('{"scores": {"test": [{"ndcg_at_10": "high"}]}}', "key 'ndcg_at_10': expected a number, found 'high'"),
        ('{"scores": {"test": [{"ndcg_at_10": null}]}}', "expected a number, found None"),
        ('{"scores": {"test": [{"ndcg_at_10": NaN}]}}', "expected a number"),
        ('{"scores": {"test": [{"ndcg_at_10": 52.1}]}}', "is 52.1, not from 0 to 1; give --percent"),
        ('{"scores": {"test": [{"speed": 1}]}}', "no score such as 'ndcg_at_10' for the split test; found speed"),
    ],
)
def test_a_broken_mteb_file_names_the_key_and_nothing_is_taken_in(text: str, message: str, tmp_path: Path) -> None:
    """Also when the other files of the folder are sound."""
    write_mteb(tmp_path / "results")
    bad = write_mteb(tmp_path / "results", task="HolPremiseRetrieval")
    bad.write_text(text, encoding="utf-8")
    with pytest.raises(MirblabError, match=r"HolPremiseRetrieval\.json.*" + message.replace("[", r"\[")):
        imported.import_results(tmp_path / "results")
    assert nothing_is_there()


def test_two_revisions_of_a_model_and_one_name_for_two_models_are_refused(tmp_path: Path) -> None:
    """Nobody could say which of the values is meant."""
    path = write_mteb(tmp_path / "results")
    other = path.parent.parent / "no_revision_available" / path.name
    other.parent.mkdir()
    other.write_bytes(path.read_bytes())
    with pytest.raises(MirblabError, match=r"nDCG@10 of org/model on mirb-mathlib is already given in .*"):
        imported.import_results(tmp_path / "results")
    write_mteb(tmp_path / "two")
    write_mteb(tmp_path / "two", model="org__b", task="HolPremiseRetrieval")
    with pytest.raises(MirblabError, match="results of 2 models"):
        imported.import_results(tmp_path / "two", system="x")
    with pytest.raises(MirblabError, match="give --collection if it is one of ours"):
        imported.import_results(write_mteb(tmp_path / "one", task="SciFact"))
    assert imported.import_results(write_mteb(tmp_path / "one", task="SciFact"), collection="mini-qa")[
        0
    ].collections == ["mini-qa"]


def write_csv(path: Path, *lines: str) -> Path:
    """Write lines to a file and return it."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_csv_of_means_and_of_values_per_query(qa: Collection, tmp_path: Path) -> None:
    """Means have no query; percent is divided by 100, ranks are not; other names of columns are refused."""
    path = write_csv(
        tmp_path / "a.csv", "system,collection,measure,value", "x,mini-qa,nDCG@10,62.5", "x,mini-qa,Rank,7"
    )
    assert not any("percent" in note for note in imported.import_results(path, percent=True)[1])
    assert imported.read_imported_values()[["query_id", "value"]].to_numpy().tolist() == [["", 0.625], ["", 7.0]]
    listed = CliRunner().invoke(app, ["import-results"], catch_exceptions=False).output
    assert re.search(r"x .* mini-qa .* nDCG@10 .* 0\.6250 .* 1 ", listed) and re.search(r"Rank .* 7\.0000", listed)
    lines = [f"{query},0.5" for query in qa.query_ids[1:]]
    path = write_csv(tmp_path / "b.tsv", *(line.replace(",", "\t") for line in ["query_id,value", *lines]))
    with pytest.raises(MirblabError, match="line 1: no column 'measure'; found query_id, value"):
        imported.import_results(path, system="y", collection="mini-qa")
    path = write_csv(tmp_path / "b.csv", "query_id,value,measure", *(f"{line},RR" for line in [*lines, "q?,0.1"]))
    notes = imported.import_results(path, system="y", collection="mini-qa")[1]
    assert "mini-qa: 1 query id is unknown, 1 query has no value; significance tests need one for each" in notes
    with pytest.raises(MirblabError, match="nDCG@10 of 'x' on mini-qa was imported already, as 'a'"):
        imported.import_results(
            write_csv(tmp_path / "c.csv", "system,measure,value", "x,nDCG@10,0.1"), collection="mini-qa"
        )


def test_values_of_at_most_one_percent_are_noted(tmp_path: Path) -> None:
    """They may be from 0 to 1; ranks do not count."""
    path = write_csv(tmp_path / "a.csv", HEAD, "x,mini-qa,nDCG@10,0.625", "x,mini-qa,R@10,1", "x,mini-qa,Rank,7")
    notes = imported.import_results(path, percent=True)[1]
    assert "no value is above 1 percent; leave --percent out if they are from 0 to 1" in notes


def test_the_same_file_in_percent_is_not_the_same_import(tmp_path: Path) -> None:
    """The bytes are equal, the values are not."""
    path = write_csv(tmp_path / "a.csv", "system,collection,measure,value", "x,mini-qa,nDCG@10,0.5")
    imported.import_results(path)
    with pytest.raises(MirblabError, match="differs in values"):
        imported.import_results(path, percent=True)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEAD, "x,mini-qa,nDCG10,0.5"], "line 2: no measure 'nDCG10'"),
        ([HEAD, "x,mini-qa,RR,0.5", "x,mini-qa,RR,o.6"], "line 3, column 'value': expected"),
        ([HEAD, "x,mini-qa,RR,0.5", "x,mini-qa,RR,0.6"], "line 3: RR of x on mini-qa is already given"),
        ([HEAD, "x,mini-qa,RR"], "line 2: 3 cells, but 4 columns"),
        ([HEAD, "x,mini-qa,RR,1,2"], "line 2: 5 cells, but 4 columns"),
        ([HEAD, ",mini-qa,RR,1"], "line 2: 'system' is empty"),
        (["system,collection,measure,values", "x,mini-qa,RR,1"], "line 1: the column 'values' is not one of"),
        ([HEAD, "x,mini-qq,RR,1"], "did you mean 'mini-qa'"),
        ([HEAD], "has a header and no values"),
        ([""], "line 1: no column 'system', or --system; found nothing"),
        (["system,collection,measure,value,query_id", "x,mini-qa,RR,1,q999"], "1 of 1 query ids, such as 'q999'"),
    ],
)  # fmt: skip
def test_a_broken_csv_names_the_line_and_nothing_is_taken_in(lines: list[str], message: str, tmp_path: Path) -> None:
    """One bad line refuses the file."""
    with pytest.raises(MirblabError, match=message):
        imported.import_results(write_csv(tmp_path / "a.csv", *lines))
    assert nothing_is_there()


def test_broken_runs_and_wrong_options_take_nothing_in(qa: Collection, tmp_path: Path) -> None:
    """A cut-off gzip file, an empty run, a missing file, options that cannot apply."""
    write_run(qa, tmp_path / "a.trec.gz")
    whole = (tmp_path / "a.trec.gz").read_bytes()
    (tmp_path / "a.trec.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b.trec.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(MirblabError, match="not a whole gzip file"):
        imported.import_results(tmp_path / "a.trec.gz", collection="mini-qa")
    with pytest.raises(MirblabError, match="is an empty run"):
        imported.import_results(tmp_path / "b.trec.gz", collection="mini-qa")
    with pytest.raises(FileNotFoundError, match="give a run file"):
        imported.import_results(tmp_path / "c.trec")
    with pytest.raises(MirblabError, match="nothing can be cut"):
        imported.import_results(write_csv(tmp_path / "a.csv", "x"), candidates_only=True)
    with pytest.raises(MirblabError, match="--system would contradict it"):
        imported_values.read_csv_values(write_csv(tmp_path / "a.csv", "system,collection,measure,value"), system="x")
    assert nothing_is_there()


def test_what_a_killed_import_left_behind_is_not_read(tmp_path: Path) -> None:
    """Half a folder has a name of its own."""
    beside = imported.imports_folder() / ".0123.partial"
    beside.mkdir(parents=True)
    (beside / "record.json").write_text("{", encoding="utf-8")
    assert imported.import_records() == []
    (imported.imports_folder() / "bad").mkdir()
    (imported.imports_folder() / "bad" / "record.json").write_text("{}", encoding="utf-8")
    with pytest.raises(MirblabError, match=r"bad.record\.json is no record of an import"):
        imported.import_records()


@pytest.fixture
def mixed() -> pd.DataFrame:
    """Return own values per query of two systems on two collections, and imported means of a third and of one."""
    own = [(system, collection, "RR", f"q{n}", value + n / 10) for system, value in (("a", 0.1), ("b", 0.5))
           for collection in ("c1", "c2") for n in range(3) if (system, collection) != ("b", "c2")]  # fmt: skip
    ours = pd.DataFrame(own, columns=imported.VALUE_COLUMNS)
    theirs = pd.DataFrame([("x", "c1", "RR", "", 0.9), ("b", "c2", "RR", "", 0.35)], columns=imported.VALUE_COLUMNS)
    return pd.concat([ours, theirs.assign(origin=["MTEB", "a paper"])], ignore_index=True)


def test_imported_cells_are_marked_and_their_origin_noted(mixed: pd.DataFrame) -> None:
    """The cells and the averages over them; queries are counted without means; the numbers compete as others do."""
    shown = result_tables.main_table(mixed, "RR")
    assert shown.frame["", "c1"].round(6).tolist() == [20, 60, 90]
    assert shown.signs["", "c1"].tolist() == ["", "", "§"]
    assert shown.signs["", "c2"].tolist() == ["", "§", ""]
    assert shown.signs["Average", "all (2)"].tolist() == ["", "§", ""]
    assert shown.marks["", "c1"].tolist() == ["", "second", "best"]
    assert "Queries: c1 3, c2 3." in shown.notes
    assert any("§ imported" in note and "origin: b: a paper; x: MTEB" in note for note in shown.notes)
    assert "**90.00**§" in shown.to_markdown() and "<sup>§</sup>" in shown.to_html() and "§" in shown.to_latex()
    assert "§" not in shown.to_csv()


def test_a_table_without_imports_is_as_before(mixed: pd.DataFrame) -> None:
    """No sign, no note, whether the column is there or not."""
    own = mixed[mixed.query_id != ""]
    for found in (own, own.drop(columns="origin")):
        shown = result_tables.main_table(found, "RR")
        assert shown.signs.empty and not any("imported" in note for note in shown.notes)


def test_only_means_make_a_table_too(mixed: pd.DataFrame) -> None:
    """A published table has no queries at all."""
    shown = result_tables.main_table(mixed[mixed.query_id == ""], "RR")
    assert "Of c1, c2 only means were imported." in shown.notes
    assert shown.signs["", "c1"].tolist() == ["§", ""]


def test_a_mean_beside_values_of_the_same_cell_is_refused(mixed: pd.DataFrame) -> None:
    """Their common mean would be nonsense."""
    twice = pd.concat([mixed, mixed[mixed.system == "x"]])
    with pytest.raises(MirblabError, match="'x' has an imported mean of RR on c1 and other values beside it"):
        result_tables.main_table(twice, "RR")
    with pytest.raises(MirblabError, match="'a' has an imported mean"):
        result_tables.main_table(pd.concat([mixed, mixed[mixed.system == "x"].assign(system="a")]), "RR")


def test_signs_of_tests_stand_beside_those_of_imports(mixed: pd.DataFrame) -> None:
    """A cell can bear both: values per query that were imported are tested."""
    found = mixed[mixed.query_id != ""].assign(origin=lambda table: table.system.map({"b": "a file"}))
    comparison = pd.DataFrame({"collection": "c1", "measure": "RR", "system_a": ["b"], "system_b": "a",
                               "difference": 0.4, "significant": True, "family": "c1 (1 comparisons)"})  # fmt: skip
    shown = result_tables.main_table(found[found.collection == "c1"], "RR", comparison=comparison)
    assert shown.signs["c1"].tolist() == ["", "§†"]


def test_prime_measures_and_layouts_by_measure_are_marked(mixed: pd.DataFrame) -> None:
    """The mark stands at the measure, not at its judged share."""
    own = mixed[(mixed.query_id != "") & (mixed.collection == "c1")]
    prime = pd.concat([own.assign(measure="RR'"), own.assign(measure="Judged@10"),
                       mixed[mixed.system == "x"].assign(measure="RR'")])  # fmt: skip
    shown = result_tables.main_table(prime, "RR'")
    assert shown.signs["", "c1"].tolist() == ["", "", "§"] and (shown.signs["Judged@10", "c1"] == "").all()
    assert result_tables.main_table(prime, ["RR'"], by="measure").signs["RR'"].tolist() == ["", "", "§"]


def test_intervals_are_left_blank_for_imported_means(mixed: pd.DataFrame) -> None:
    """A mean without values per query has none; a system of ours without one is still an error."""
    rows = [(system, "c1", "RR", 0.2, 0.1, 0.3) for system in ("a", "b")]
    intervals = pd.DataFrame(rows, columns=["system", "collection", "measure", "mean", "low", "high"])
    found = mixed[mixed.collection == "c1"]
    shown = result_tables.interval_table(found, intervals)
    assert shown.beside["c1"].tolist() == ["[10.00, 30.00]", "[10.00, 30.00]", ""]
    assert shown.signs["c1"].tolist() == ["", "", "§"]
    with pytest.raises(MirblabError, match="lack a system"):
        result_tables.interval_table(found, intervals[intervals.system == "a"])


def test_an_imported_run_is_a_system(qa: Collection, tmp_path: Path) -> None:
    """It can be searched, fused and named in tables, and its values say where they are from."""
    write_run(qa, tmp_path / "a.trec")
    imported.import_results(tmp_path / "a.trec", collection="mini-qa", origin="A. Author")
    theirs = systems.system("theirs")
    run = theirs.search(qa, depth=3)
    assert run.doc_id.astype(str).tolist()[:3] == qa.doc_ids[:3].tolist() and run.attrs["origin"] == "A. Author"
    assert theirs.is_stored(qa) and int(systems.system("theirs+bm25").search(qa, 5)["rank"].max()) == 5
    found = measures.evaluate(run, qa, "nDCG@10")
    assert found.origin.unique().tolist() == ["A. Author"] and len(found) == len(qa.queries)
    assert any("origin: theirs: A. Author" in note for note in result_tables.main_table(found, "nDCG@10").notes)
    with pytest.raises(MirblabError, match="did you mean 'theirs'"):
        systems.system("thers")


def theirs(qa: Collection, path: Path) -> Path:
    """Import a run over a larger corpus, and return its file."""
    larger_run(qa, path)
    imported.import_results(path, collection="mini-qa", origin="A. Author")
    return path


def said(folder: Path) -> dict[str, str]:
    """Return what the tables and the records of figures in a folder and below say, without their provenance."""
    texts = {path.name: path.read_text("utf-8") for path in folder.rglob("*") if path.suffix in (".md", ".tex")}
    plain = {name: "\n".join(line for line in text.splitlines() if line[:1] != "%") for name, text in texts.items()}
    records = {path.name: json.loads(path.read_text("utf-8")) for path in folder.rglob("*.json")}
    return plain | {
        name: json.dumps(record | {"provenance": {}}, ensure_ascii=False)
        for name, record in records.items() if "caption" in record
    }  # fmt: skip


def test_every_table_and_figure_of_a_notebook_marks_an_imported_system(qa: Collection, tmp_path: Path) -> None:
    """In heads, rows, cells, captions, legends and ticks, with whose it is; a notebook says nothing for it."""
    theirs(qa, tmp_path / "a.trec")
    both = [systems.system(name) for name in ("bm25", "theirs", "theirs+bm25")]
    assert [one.label for one in both] == ["BM25", "theirs §", "theirs § + BM25"]
    assert [one.origin for one in both] == ["", "A. Author", "with theirs: A. Author"]
    out = suite_files.output("x", "hand", collections=[qa], systems=both)
    values = pd.concat([measures.evaluate(one.search(qa, 10), qa, ["RR", "AP"]) for one in both], ignore_index=True)
    wide = values.pivot_table("value", "measure", "system", observed=True)
    long = values.groupby(["system", "measure"], observed=True).value.mean().to_frame()
    for frame in (wide, wide.T, wide.T.reset_index(), long):
        shown = out.table(result_tables.table(frame, "Of theirs minus bm25."), "wide")
        assert "theirs §" in shown.to_markdown() and "theirs §" in shown.to_html() and "theirs §" not in shown.to_csv()
        assert "bm25 §" not in shown.to_markdown().replace("theirs+bm25 §", "")
        assert shown.caption == "Of theirs § minus bm25."
        assert "§ not made here: theirs: A. Author; 612 of 1,020 rows are documents that" in shown.notes[-1]
        assert "theirs+bm25: with theirs: A. Author" in shown.notes[-1]
    axes = plots.bars(pd.DataFrame({"name": ["theirs", "bm25"], "n": [1, 2]}))
    axes.set_title("RR of theirs")
    axes.plot([0], [0], label="theirs")
    axes.legend()
    out.figure(axes, "bars", caption="Values of theirs.", alt="Bars of theirs.", table=wide)
    assert axes.get_title() == "RR of theirs §" and axes.get_legend().get_texts()[0].get_text() == "theirs §"
    labels = [axis.get_major_formatter()(place, place) for axis in (axes.xaxis, axes.yaxis) for place in (0, 1)]
    assert "theirs §" in labels and "bm25" in labels
    record = json.loads((out.folder / "bars.json").read_text("utf-8"))
    assert record["caption"].startswith("Values of theirs §. § not made here: theirs: A. Author;")
    assert record["alt"] == "Bars of theirs §."
    own = result_tables.table(wide[["bm25"]], "Of bm25.")
    assert out.table(own, "own") is own


def test_the_diff_of_an_imported_system_marks_it(qa: Collection, tmp_path: Path) -> None:
    """By its name; as a file it is known to be theirs, and another file is told by its own name."""
    path = theirs(qa, tmp_path / "a.trec")
    found = compare_runs.compare_runs("bm25", "theirs", "mini-qa", ["RR", "nDCG'"])
    text = io.StringIO()
    compare_runs.print_comparison(found, Console(file=text, width=300))
    assert text.getvalue().count("theirs §") >= 5 and "§ not made here: theirs: A. Author." in text.getvalue()
    assert "only prime measures and Bpref" in text.getvalue() and "bm25 §" not in text.getvalue()
    write_run(qa, tmp_path / "b.trec", depth=3)
    pair = compare_runs.paired_runs(path, tmp_path / "b.trec", qa)
    assert [run.attrs["origin"] for run in pair] == ["A. Author", "the file b.trec"]
    assert pair[0].attrs["remainder"].startswith("612 of 1,020 rows") and "remainder" not in pair[1].attrs


def test_notebook_40_marks_official_runs_everywhere(qa: Collection, tmp_path: Path) -> None:
    """The notebook's own cells, run with an official run: each file that names it marks it."""
    larger_run(qa, tmp_path / "run.Official-1.trec")
    book = json.loads((Path(__file__).parents[2] / "notebooks" / "40_arqmath_topics.ipynb").read_text("utf-8"))
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    cells[0] += f"\nruns = [{str(tmp_path / 'run.Official-1.trec')!r}]\nsystems = ['bm25']\nsuite = 'hand'\n"
    space: dict = {"display": lambda shown: None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in (cell for cell in cells if "tested" not in cell):  # the tests are of our systems
            exec(cell, space)
    naming = {name: text for name, text in said(space["out"].folder).items() if "Official-1" in text}
    assert {"official-mini-qa.md", "intervals-mini-qa.tex", "topics-mini-qa.json"} <= naming.keys()
    unmarked = [name for name, text in naming.items() if "§" not in text]
    assert not unmarked, unmarked
