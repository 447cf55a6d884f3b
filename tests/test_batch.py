"""A batch runs what is not fresh, in parallel; a failing notebook does not stop the others."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from mirblab import batch, intake, paths, suites
from mirblab.errors import MirblabError

PARAMETERS = (
    'suite: str = "own"  # suite\nword: str = "a"  # a word\nn: int = 1  # a number\nx: float = 0.5  # a share\n'
)
WRITE = """
from pathlib import Path
import os
folder = Path(os.environ["MIRBLAB_HOME"]) / "figures" / suite / "{name}"
folder.mkdir(parents=True, exist_ok=True)
_ = (folder / (word + ".txt")).write_text(word * n)
"""


def notebook(folder: Path, name: str, code: str, parameters: str = PARAMETERS) -> None:
    book = nbformat.v4.new_notebook()
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    first = nbformat.v4.new_code_cell(parameters)
    first.metadata["tags"] = ["parameters"]
    book.cells = [nbformat.v4.new_markdown_cell("# A question?"), first, nbformat.v4.new_code_cell(code)]
    nbformat.write(book, folder / f"{name}.ipynb")


@pytest.fixture
def own_suite(tmp_path, monkeypatch) -> Path:
    """Return a folder of notebooks with the suite `own`: two that work and one that fails."""
    folder = tmp_path / "notebooks"
    (folder / "suites").mkdir(parents=True)
    for name in ("one", "two"):
        notebook(folder, name, WRITE.format(name=name))
    notebook(folder, "bad", "1 / 0")
    (folder / "suites" / "own.toml").write_text(
        '[[notebook]]\nname = "one"\n[[notebook]]\nname = "bad"\n'
        '[[notebook]]\nname = "two"\nparameters = { word = "b" }\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(paths, "bundled", lambda *parts: tmp_path.joinpath(*parts))
    return folder


def run(jobs) -> list[batch.Outcome]:
    return batch.execute(jobs, 2, lambda *_: None, lambda _: None)


def test_a_failing_notebook_names_its_cell_and_the_others_go_on(own_suite):
    """Its executed copy is kept beside theirs."""
    outcomes = {outcome.job.name: outcome for outcome in run(suites.read("own"))}
    assert {name: outcome.state for name, outcome in outcomes.items()} == {"one": "ran", "two": "ran", "bad": "failed"}
    assert "cell [3] '1 / 0': ZeroDivisionError: division by zero" in outcomes["bad"].problem
    kept = paths.figures() / "_executed" / "own"
    assert sorted(path.name for path in kept.glob("*.ipynb")) == ["bad.failed.ipynb", "one.ipynb", "two.ipynb"]
    assert (paths.figures() / "own" / "two" / "b.txt").read_text() == "b"
    executed = nbformat.read(kept / "one.ipynb", as_version=4)
    assert "papermill" not in executed.metadata and str(own_suite) not in json.dumps(executed)


def test_jupyter_trusts_what_the_batch_ran(own_suite, tmp_path, monkeypatch):
    """Jupyter's own reader of notebooks says so of each cell; of a copy with another output it does not."""
    from jupyter_server.services.contents.filemanager import FileContentsManager

    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    (job,) = [job for job in suites.read("own") if job.name == "one"]
    run([job])
    changed = nbformat.read(job.executed, as_version=4)
    changed.cells[-1].outputs.append(nbformat.v4.new_output("stream", text="<b>another</b>"))
    nbformat.write(changed, job.executed.with_name("changed.ipynb"))
    reader = FileContentsManager(root_dir=str(job.executed.parent))
    for name, is_trusted in ((job.executed.name, True), ("changed.ipynb", False)):
        read = reader.get(name)["content"]
        assert read.cells[-1].metadata.get("trusted", False) is is_trusted


def test_a_second_run_has_nothing_to_do(own_suite):
    """Until notebook, parameters or outputs change."""
    jobs = suites.read("own", only=["one", "two"])
    assert not any(batch.is_fresh(job) for job in jobs)
    run(jobs)
    assert all(batch.is_fresh(job) for job in suites.read("own", only=["one", "two"]))
    assert not batch.is_fresh(suites.read("own", {"n": 2}, ["one"])[0])
    (paths.figures() / "own" / "one" / "a.txt").unlink()
    assert not batch.is_fresh(jobs[0]) and batch.is_fresh(jobs[1])
    notebook(own_suite, "two", WRITE.format(name="two") + "print(1)")
    assert not batch.is_fresh(jobs[1])


def test_what_an_older_run_left_is_dropped(own_suite):
    """A figure that the notebook no longer makes does not stand beside the new ones."""
    run(suites.read("own", only=["one"]))
    notes = paths.figures() / "own" / "one" / "notes.md"
    notes.write_text("mine", encoding="utf-8")
    run(suites.read("own", {"word": "c"}, ["one"]))
    assert sorted(path.name for path in notes.parent.iterdir()) == ["c.txt", "notes.md"]
    assert [path.name for path in notes.parent.parent.parent.glob("_executed/own/*")] != []


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"wrod": "b"}, r"no parameter 'wrod'; found n, suite, word, x; did you mean 'word'\?"),
        ({"n": "many"}, r"one: the parameter 'n' must be a int, found the str 'many'"),
        ({"n": True}, r"must be a int, found the bool True"),
    ],
)
def test_a_wrong_parameter_is_refused_before_anything_runs(own_suite, overrides, message):
    """Papermill alone would only log it."""
    with pytest.raises(MirblabError, match=message):
        suites.read("own", overrides)
    assert not paths.figures().exists()


def test_a_whole_number_may_stand_for_a_float(own_suite):
    """1 is a share, too."""
    assert suites.read("own", {"x": 1})[0].parameters["x"] == 1


def test_an_unknown_parameter_in_the_suite_itself_is_refused(own_suite):
    """The TOML file is named."""
    path = own_suite / "suites" / "own.toml"
    path.write_text('[[notebook]]\nname = "one"\nparameters = { wodr = "b" }\n', encoding="utf-8")
    with pytest.raises(MirblabError, match=r"own\.toml, one: no parameter 'wodr'"):
        suites.read("own")


def test_unknown_suites_and_notebooks_get_suggestions(own_suite):
    """Names are made from what is there."""
    with pytest.raises(MirblabError, match=r"no suite 'onw'; found own; did you mean 'own'\?"):
        suites.read("onw")
    with pytest.raises(MirblabError, match=r"no notebook in the suite own 'thre'"):
        suites.read("own", only=["thre"])


def test_unknown_collections_and_systems_are_refused(own_suite):
    """Before hours of work, not after."""
    notebook(
        own_suite,
        "one",
        "1",
        'suite: str = "own"  # s\nsystems: list[str] = ["bm25"]  # s\ncollections: list[str] = ["mini-hol"]  # c\n',
    )
    (own_suite / "suites" / "own.toml").write_text('[[notebook]]\nname = "one"\n', encoding="utf-8")
    with pytest.raises(MirblabError, match="no system 'bm26'"):
        suites.read("own", {"systems": ["bm26"]})
    with pytest.raises(MirblabError, match="no real collection is built or added yet"):
        suites.read("own", {"collections": ["*"]})


def test_models_and_measures_are_checked_before_anything_runs(own_suite):
    """A misspelt reranker, encoder or measure would only fail after the first hours."""
    cell = 'suite: str = "own"  # s\nreranker: str = "maxsim"  # r\nmeasures: list[str] = ["AP"]  # m\n'
    notebook(own_suite, "one", "1", cell)
    (own_suite / "suites" / "own.toml").write_text('[[notebook]]\nname = "one"\n', encoding="utf-8")
    for overrides, message in (
        ({"reranker": "maxsimm"}, "did you mean 'maxsim'"),
        ({"measures": ["nDGC@10"]}, "no measure 'nDGC@10'"),
        ({"measures": [1]}, "'measures' must list values like 'AP'"),
    ):
        with pytest.raises(MirblabError, match=message):
            suites.read("own", overrides)
    (own_suite / "suites" / "own.toml").write_text('[parameters]\nmeasure = ["AP"]\n[[notebook]]\nname = "one"\n')
    with pytest.raises(MirblabError, match="no parameter 'measure'.*did you mean 'measures'"):
        suites.read("own")


def test_a_file_that_a_parameter_names_is_part_of_the_key(own_suite, tmp_path):
    """Else a batch would say that an edited table or run file is done already."""
    notebook(own_suite, "one", "1", 'suite: str = "own"  # s\nsource: str = ""  # s\n')
    (own_suite / "suites" / "own.toml").write_text('[[notebook]]\nname = "one"\n', encoding="utf-8")
    table, texts = tmp_path / "mine.csv", tmp_path / "texts"
    texts.mkdir()
    for path, written in ((table, table), (texts, texts / "a.tex")):
        keys = []
        for content in ("one", "another", "one"):
            written.write_text(content, encoding="utf-8")
            keys.append(suites.read("own", {"source": str(path)})[0].key())
        assert keys[0] == keys[2] != keys[1]
    assert suites.read("own", {"source": "a long question " * 50})[0].key()


def test_a_parameters_cell_with_anything_but_literals_is_refused(own_suite):
    """Papermill would keep what was derived from the default."""
    notebook(own_suite, "one", "1", "n: int = 1\nm = n + 1\n")
    with pytest.raises(MirblabError, match=r"one\.ipynb: line 2 of the parameters is not"):
        suites.read("own", only=["one"])


def test_the_bundled_suite_is_sound():
    """All notebooks, with parameters that they have; the plan names what is not stored."""
    jobs = suites.read("mini")
    assert len(jobs) == 33 and {job.part for job in jobs} == {""}
    todo = batch.steps([job for job in jobs if job.name == "13_significance"])
    assert {step.collection for step in todo} <= {"mini-qa"}
    fused = [step.system for step in todo]
    if "bm25+minilm" in fused and "minilm" in fused:
        assert fused.index("minilm") < fused.index("bm25+minilm")


def test_a_suite_can_narrow_the_star_by_name(own_suite, make_folder):
    """And leaves the notebook out where nothing matches."""
    for name in ("left-qa", "left-premise"):
        intake.add(make_folder(name=name))
    notebook(own_suite, "one", "1", 'collection: str = "mini-qa"\npart: str = ""\n')
    suite = own_suite / "suites" / "own.toml"
    entry = '[[notebook]]\nname = "one"\nmatch = ["{}"]\nparameters = {{ collection = "*" }}\n'
    suite.write_text(entry.format("left-q*"), encoding="utf-8")
    assert [job.part for job in suites.read("own")] == ["left-qa"]
    suite.write_text(entry.format('!*-qa", "left*'), encoding="utf-8")
    assert [job.part for job in suites.read("own")] == ["left-premise"]
    suite.write_text(entry.format("right-*"), encoding="utf-8")
    assert suites.read("own") == []
    suite.write_text(entry.format("*") + 'needs = ["left-qa", "right-qa"]\n', encoding="utf-8")
    assert suites.read("own") == []


def test_a_suite_can_name_a_system_whose_model_may_not_be_trained(own_suite, make_folder, monkeypatch):
    """It is left out until it is; one that nobody knows is refused."""
    intake.add(make_folder(name="left-qa"))
    code = 'collections: list[str] = ["mini-qa"]\nsystems: list[str] = ["bm25"]\n'
    notebook(own_suite, "one", "1", code)
    suite = own_suite / "suites" / "own.toml"
    entry = '[[notebook]]\nname = "one"\nparameters = {{ systems = ["bm25", "{}?"] }}\n'
    suite.write_text(entry.format("bm25+minilm-math@cv"), encoding="utf-8")
    assert suites.read("own")[0].systems == ["bm25"]
    monkeypatch.setattr(suites.systems.System, "key", {"trained": True})
    assert suites.read("own")[0].systems == ["bm25", "bm25+minilm-math@cv"]
    suite.write_text(entry.format("minilm-maths"), encoding="utf-8")
    with pytest.raises(MirblabError, match="no system 'minilm-maths'.*did you mean 'minilm-math'"):
        suites.read("own")
