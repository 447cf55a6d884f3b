"""A batch runs what is not fresh, in parallel; a failing notebook does not stop the others."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from multiprocessing import forkserver, get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import numpy as np
import psutil
import pytest
from notebook_files import WRITE, notebook
from rich.console import Console
from tiny_encoder import make_model
from typer.testing import CliRunner
from vendor_server import running

from mirblab.app import console, hand_runs, places, suite_files
from mirblab.app.batch import notebooks, run_planning, run_tasks, stamps
from mirblab.app.cli import app
from mirblab.app.hand_runs import notebook_parameters
from mirblab.core import paths, processes
from mirblab.core.errors import MirblabError
from mirblab.encoders import encoding
from mirblab.encoders.cache import count_texts
from mirblab.encoders.hosted.client import estimate_tokens
from mirblab.retrieval import codes, dense, systems
from mirblab.sources import catalogue

TABLE = """import pandas as pd
import mirblab as lab
lab.check_parameters()
out = lab.output("one", suite, word=word)
out.table(lab.table(pd.DataFrame({"word": [word], "n": [1]}), caption="A word."), "words")"""
BATCH = """
import sys
sys.modules["rfc3987_syntax"] = None  # as in tests/conftest.py, here and in the workers
from pathlib import Path
from mirblab.app import places, suite_files
from mirblab.app.batch import kernels, notebooks
from mirblab.core import paths

notebooks.FORKED_FROM, kernels._LIBRARIES = int(sys.argv[4]), ()
paths.bundled_path = lambda *parts: Path(sys.argv[1]).joinpath(*parts)
if __name__ == "__main__":
    jobs = suite_files.read_suite("own", {"word": sys.argv[3]}, sys.argv[2].split())
    with places.open_place("local", 2) as place:
        outcomes = notebooks.run_notebooks(jobs, place, lambda *_: None, lambda _: None)
    print(*(outcome.problem or outcome.state for outcome in outcomes), sep="\\n")
"""


@pytest.fixture
def own_suite(tmp_path, home, monkeypatch) -> Path:
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
    monkeypatch.setattr(paths, "bundled_path", lambda *parts: tmp_path.joinpath(*parts))
    return folder


@pytest.fixture(scope="module")
def _kernel_process() -> None:
    """Start the process from which kernels are forked, for the workers of all tests here."""
    get_context("forkserver").set_forkserver_preload(["ipykernel.kernelapp", "mirblab"])
    forkserver.ensure_running()


@pytest.fixture(autouse=True)
def _forked_workers(monkeypatch, _kernel_process) -> None:
    """Fork workers and kernels, which spares their imports; those of `start_batch` are started as a user's are."""
    import papermill  # noqa: F401  the forks then have it

    monkeypatch.setattr(places, "get_context", lambda _: get_context("fork"))
    monkeypatch.setattr(notebooks, "FORKED_FROM", 1)
    # it asks after a child process, and that process is none of a worker's
    monkeypatch.setattr(forkserver._forkserver, "ensure_running", lambda: None)


def is_fresh(job: suite_files.Job) -> bool:
    return not stamps.reason_to_run(job)


def run(jobs, n_workers: int = 2) -> list[notebooks.Outcome]:
    with places.open_place("local", n_workers) as place:
        return notebooks.run_notebooks(jobs, place, lambda *_: None, lambda _: None)


def test_a_failing_notebook_names_its_cell_and_the_others_go_on(own_suite):
    """Its executed copy is kept beside theirs."""
    outcomes = {outcome.job.name: outcome for outcome in run(suite_files.read_suite("own"))}
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
    (job,) = [job for job in suite_files.read_suite("own") if job.name == "one"]
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
    jobs = suite_files.read_suite("own", only=["one", "two"])
    assert not any(is_fresh(job) for job in jobs)
    run(jobs)
    assert all(is_fresh(job) for job in suite_files.read_suite("own", only=["one", "two"]))
    assert not is_fresh(suite_files.read_suite("own", {"n": 2}, ["one"])[0])
    (paths.figures() / "own" / "one" / "a.txt").unlink()
    assert not is_fresh(jobs[0]) and is_fresh(jobs[1])
    notebook(own_suite, "two", WRITE.format(name="two") + "print(1)")
    assert not is_fresh(jobs[1])


def test_what_an_older_run_left_is_dropped(own_suite):
    """A figure that the notebook no longer makes does not stand beside the new ones."""
    run(suite_files.read_suite("own", only=["one"]))
    notes = paths.figures() / "own" / "one" / "notes.md"
    notes.write_text("mine", encoding="utf-8")
    run(suite_files.read_suite("own", {"word": "c"}, ["one"]))
    assert sorted(path.name for path in notes.parent.iterdir()) == ["c.txt", "notes.md"]
    assert [path.name for path in notes.parent.parent.parent.glob("_executed/own/*")] != []


def test_a_batch_removes_only_what_it_made(own_suite, tmp_path):
    """Whatever a damaged record names; and links, and what somebody has changed, stay."""
    (job,) = suite_files.read_suite("own", only=["one"])
    precious, linked, other = (
        tmp_path / "home" / "precious.txt",
        tmp_path / "elsewhere",
        paths.figures() / "own" / "two",
    )
    for path in (precious, linked / "x.txt", other / "x.txt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine", encoding="utf-8")
    job.folder.mkdir(parents=True)
    (job.folder / "linked").symlink_to(linked, target_is_directory=True)
    names = ["../precious.txt", "../../../precious.txt", str(precious), "own/two/x.txt", "../two/x.txt"]
    names += ["linked/x.txt", "own/one/linked/x.txt"]
    stamp = {"key": "", "seconds": 1, "made": "", "parameters": {}, "executed": "", "files": dict.fromkeys(names, "0")}
    job.executed.parent.mkdir(parents=True)
    job.executed.with_suffix(".json").write_text(json.dumps(stamp), encoding="utf-8")
    assert not is_fresh(job) and notebooks.expected_seconds(job) >= 0
    assert [outcome.state for outcome in run([job])] == ["ran"]
    assert all(path.read_text() == "mine" for path in (precious, linked / "x.txt", other / "x.txt"))
    assert is_fresh(job)


def test_the_longest_notebook_begins_first_and_counts_in_the_estimate(own_suite):
    """As the suite expects it before the first run; two workers cannot be done before the longest one is."""
    path = own_suite / "suites" / "own.toml"
    path.write_text(path.read_text("utf-8") + '[[notebook]]\nname = "bad"\nseconds = 90\n', encoding="utf-8")
    jobs = [job for job in suite_files.read_suite("own") if job.name != "bad" or job.seconds == 90]
    assert [job.name for job in jobs] == ["one", "two", "bad"]
    assert notebooks.total_seconds(jobs, [], 2) == 90
    assert notebooks.total_seconds(jobs, [], 1) == 90 + 2 * suite_files.SECONDS_PER_NOTEBOOK
    outcomes = run(jobs, 1)
    assert [outcome.job.name for outcome in outcomes] == ["bad", "one", "two"]
    assert notebooks.total_seconds([], [], 2) == 0


def test_the_plan_counts_each_text_once_and_leaves_short_searches_to_the_notebook(own_suite, make_folder, monkeypatch):
    """Vectors are shared by all collections; a search of a few texts would leave other cores idle."""
    for name, word in (("first", "document"), ("second", "document"), ("third", "theorem")):
        texts = [{"_id": f"d{n}", "title": "", "text": f"{word if n == 3 else 'document'} {n}"} for n in (1, 2, 3)]
        catalogue.add(make_folder(texts, name=name))
    parameters = 'collections: list[str] = ["first", "second", "third"]\nsystems: list[str] = ["bm25", "minilm"]\n'
    notebook(own_suite, "one", "1", parameters)
    (own_suite / "suites" / "own.toml").write_text('[[notebook]]\nname = "one"\n', encoding="utf-8")
    runs = run_planning.missing_runs(suite_files.read_suite("own"))
    assert [(run.system, run.collection, run.n_texts) for run in runs] == [
        ("minilm", "first", 5),
        ("minilm", "third", 1),
    ]
    monkeypatch.setattr(run_planning, "SMALL", 3)
    runs = run_planning.missing_runs(suite_files.read_suite("own"))
    assert [run.n_texts for run in runs if run.system == "minilm"] == [5, 0, 1]
    assert [run.n_texts for run in runs if run.system == "bm25"] == [0, 0, 0]


HOSTED = """vendor = "openai"
model = "m"
dimensions = 4
max_length = 512
normalise = false
prompts = { query = "", document = "" }
"""


@pytest.fixture
def register(own) -> Callable[[str], None]:
    """Return a function that registers the hosted encoder `paid`, with more lines in its entry, as a dense system."""

    def write(more: str) -> None:
        own("encoders", f"[paid]\n{HOSTED}{more}")
        own("systems", '[paid]\nkind = "dense"\nencoder = "paid"\n')

    return write


@pytest.mark.parametrize("on", ["local", "pool:2"])
def test_the_plan_says_what_hosted_encoders_cost(own_suite, register, make_folder, monkeypatch, capsys, on):
    """2.5 tokens a word, each text once: 10 words of the first collection and 2 more of the second, at 4 cents each."""
    texts = [{"_id": f"d{n}", "title": "", "text": f"{'theorem' if n == 3 else 'document'} {n}"} for n in (1, 2, 3)]
    for name, corpus in (("first", []), ("second", texts)):
        catalogue.add(make_folder(corpus, name=name))
    parameters = 'collections: list[str] = ["first", "second"]\nsystems: list[str] = ["{}"]\n'
    (own_suite / "suites" / "own.toml").write_text('[[notebook]]\nname = "one"\n', encoding="utf-8")
    monkeypatch.setattr(console.terminal, "console", lambda: Console(width=150))

    def shown(name: str) -> list[str]:
        notebook(own_suite, "one", "1", parameters.format(name))
        notebook_parameters.cache_clear()
        with places.open_place(on) as place:
            console.print_plan(suite_files.read_suite("own"), {}, place)
        return capsys.readouterr().out.splitlines()

    register("price_per_million_tokens = 40_000.0")
    lines = shown("paid")
    head = next(line for line in lines if "run to make" in line)
    cells = [[cell.strip() for cell in line.strip("│┃").split("│")] for line in lines if line.startswith("│ paid")]
    at = [cell.strip() for cell in head.strip("┃").split("┃")].index("dollars")
    assert [(row[1], row[2], row[at]) for row in cells] == [("first", "5", "1.00"), ("second", "1", "0.20")]
    threads = max(1, processes.n_cores() // 2)
    where = f" per worker on 2 workers of {threads} thread{'s' if threads > 1 else ''} each" if on != "local" else ""
    shared = " in the home folder, which all workers share" if on != "local" else ""
    [job] = suite_files.read_suite("own")
    seconds = round(2 * run_planning.SECONDS_PER_RUN + 6 / run_planning.TEXTS_PER_SECOND + job.seconds)
    assert seconds > 1 and lines[-1] == (
        f"1 of 1 notebooks, 2 runs to make: about {seconds} s{where}, 240 B of vectors{shared}, "
        "about $1.20 to hosted encoders (1 notebooks that never ran here are guessed)"
    )
    register("")
    assert "and 2 runs by hosted encoders without a price" in shown("paid")[-1]
    lines = shown("minilm")
    assert not any("dollars" in line or "$" in line for line in lines) and any("│ minilm" in line for line in lines)


@pytest.fixture
def in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a collection of 30 documents in parts, of which one process reads 8 at a time.

    Two texts occur again in other slices, and one is a query. A local model gives a text another vector with other
    texts beside it.
    """
    texts = [f"{'let a scheme be flat over the prime field ' * (1 + n % 3)}x {n}" for n in range(30)]
    texts[3], texts[20] = texts[28], texts[5]
    queries = [{"_id": "q1", "text": texts[10]}, {"_id": "q2", "text": "query x 2"}]
    folder = tmp_path / "plain"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": f"d{n:02d}", "title": "", "text": text} for n, text in enumerate(texts)]
    for stem, lines in (("corpus", rows), ("queries", queries)):
        (folder / f"{stem}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td01\t1\nq2\td02\t1\n")
    monkeypatch.setattr(dense, "CHUNK_DOCS", 8)
    monkeypatch.setitem(dense.search.__kwdefaults__, "doc_block", 4)
    plain = encoding.Encoder._batches

    def by_all_texts(self: encoding.Encoder, texts: list[str], role: str, instruction: str) -> Iterator[Any]:
        if "vendor" in self.entry:
            yield from plain(self, texts, role, instruction)
            return
        seeds = [zlib.crc32(text.encode(), zlib.crc32("".join(texts).encode())) for text in texts]
        yield [*range(len(texts))], np.array([np.random.default_rng(seed).random(self.dimensions) for seed in seeds])

    monkeypatch.setattr(encoding.Encoder, "_batches", by_all_texts)
    return catalogue.convert(folder, tmp_path / "big")


def made_at(on: str, system: str, folder: Path) -> tuple[list[str], dict[str, bytes]]:
    """Return the lines that are told while a run is made at a place, and what is stored: vectors and run."""
    told: list[str] = []
    with places.open_place(on) as place:
        missing = run_planning.find_missing({str(folder): [system]})
        if place.runs is None:
            run_tasks.make_missing_runs(missing, told.append)
        else:
            run_tasks.make_runs_at(place, missing, told.append)
    collection, model = catalogue.load(folder), run_planning.encoder_of(systems.system(system))
    made = {path.name: path.read_bytes() for path in (paths.cache() / "runs").iterdir()}
    for role, texts in (("document", list(collection.texts)), ("query", collection.query_texts)):
        vectors, unstored = model.store(role, collection.card.instruction).read(texts)
        assert not len(unstored)
        made[role] = vectors.tobytes()
    return told, made


@pytest.mark.parametrize("bits", [0, 2])
def test_slices_of_documents_in_parts_are_encoded_on_several_workers(in_slices, tmp_path, monkeypatch, bits):
    """Each slice is a task; run and vectors are, bit for bit, those of one process; and nothing is encoded twice."""
    monkeypatch.setattr(codes, "SMALL", 10)
    monkeypatch.setattr(codes, "PART", 8)
    monkeypatch.setattr(codes, "CENTRE_FROM", 3)
    model = str(make_model(tmp_path / "tiny-model"))
    name, made = "tiny (code_bits = 2)" if bits else "tiny", {}
    for on in ("pool:2", "local"):
        home = tmp_path / on.replace(":", "-")
        monkeypatch.setenv("MIRBLAB_HOME", str(home))
        (home / "registry").mkdir(parents=True)
        systems = f'[tiny]\nkind = "dense"\nencoder = "{model}"\n'
        (home / "registry" / "systems.toml").write_text(systems, encoding="utf-8")
        told, made[on] = made_at(on, name, in_slices)
        shards = sorted((paths.cache() / "vectors").rglob("*.safetensors"))
        assert sum(map(count_texts, shards)) == 28 + 2
        if on == "local":
            continue
        slices = [re.search(r"documents (\d+) to (\d+); about \d+ s left", line) for line in told]
        assert sorted(found.groups() for found in slices if found) == [
            ("1", "8"), ("17", "24"), ("25", "30"), ("9", "16"),
        ]  # fmt: skip
        assert len(told) == 5 and told[-1].startswith(f"[5/5] {name} on ")
        shutil.rmtree(paths.cache() / "runs")
        again, second = made_at(on, name, in_slices)
        assert len(again) == 1 and second == made[on]
        assert sorted((paths.cache() / "vectors").rglob("*.safetensors")) == shards
        if bits:  # a search by codes reads no vectors of documents but those of the centre
            shutil.rmtree(paths.cache() / "runs")
            shutil.rmtree(paths.cache() / "vectors")
            (step,) = run_planning.find_missing({str(in_slices): [name]})
            assert step.n_texts == 30 and [len(tasks) for tasks in run_tasks.plan_tasks([step])] == [1]
        else:
            shutil.rmtree(paths.cache() / "runs")
            max(shards, key=lambda path: path.stat().st_size).unlink()  # that of a slice
            again, third = made_at(on, name, in_slices)
            assert len(again) == 2 and third == made[on]
    assert made["pool:2"] == made["local"]


store_vectors = run_tasks.store_vectors


def store_after_the_first(*given: Any) -> list[str]:
    """Store the vectors of a slice, of all but the last one when a request for that one is on its way."""
    while given[3] != 24 and not list((paths.cache() / "spending").glob("*.json")):
        time.sleep(0.05)
    return store_vectors(*given)


def test_a_budget_that_is_used_up_ends_the_slices_and_keeps_what_was_paid_for(in_slices, register, monkeypatch):
    """Whatever a vendor was sent is stored, also by the other worker, and is not sent again with a larger budget."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    texts = list(catalogue.load(in_slices).texts)
    failed, plain = threading.Event(), run_tasks._made

    def made(*given: Any) -> list[str]:
        try:
            return plain(*given)
        except MirblabError:
            failed.set()
            raise

    monkeypatch.setattr(run_tasks, "_made", made)
    monkeypatch.setattr(run_tasks, "store_vectors", store_after_the_first)
    with running() as server:
        server.always = lambda handler, body: (failed.wait(30), handler.embed(body))
        register(f'url = "{server.url}/v1/embeddings"\nprice_per_million_tokens = 1_000.0\nbatch_texts = 8\n')
        (step,) = run_planning.find_missing({str(in_slices): ["paid"]})
        n_words = sum(len(text.split()) for text in [*{*texts}, texts[10], "query x 2"])
        assert step.dollars == pytest.approx(2.5 * n_words * 1_000 / 1e6)
        monkeypatch.setenv("MIRBLAB_BUDGET", str(1.01 * sum(map(estimate_tokens, texts[24:])) * 1_000 / 1e6))
        with pytest.raises(MirblabError, match=r"vectors of documents .*of the budget of \$.* is left.*same command"):
            made_at("pool:2", "paid", in_slices)
        sent = list(server.texts)
        model = encoding.encoder("paid")
        assert sorted(sent) == sorted(texts[24:]) and model.missing(sent) == 0
        monkeypatch.setenv("MIRBLAB_BUDGET", "100")
        told, _ = made_at("pool:2", "paid", in_slices)
        assert len(told) > 1 and sorted(server.texts) == sorted({*texts, "query x 2"})


def test_what_a_vendor_is_paid_for_is_marked(make_folder, register):
    """Also the run of a collection that is not in parts; unlike what is computed here."""
    register("price_per_million_tokens = 1.0\n")
    todo = run_planning.find_missing({str(make_folder()): ["paid", "minilm"]})
    assert {task.shown.split()[0]: task.is_paid for (task,) in [run_tasks.plan_tasks([run])[0] for run in todo]} == {
        "paid": True, "minilm": False,
    }  # fmt: skip


def test_the_plan_counts_pairs_and_the_texts_of_shortlists(make_folder):
    """A reranker encodes or scores what its shortlists may hold; late interaction needs the tokens of all texts."""
    texts = [{"_id": f"d{n}", "title": "", "text": f"document {n}"} for n in (1, 2, 3)]
    catalogue.add(make_folder(texts, name="first"))
    names = ["bm25>maxsim@1", "bm25>bge-reranker-v2-m3@9", "minilm-late"]
    runs = {run.system: run for run in run_planning.find_missing({"first": names})}
    assert [(runs[name].n_pairs, runs[name].n_texts) for name in names] == [(2, 4), (6, 0), (0, 5)]
    assert runs["minilm-late"].n_bytes == 5 * (run_planning.TOKEN_BYTES + 4 * 384 + 24)
    expected = run_planning.SECONDS_PER_RUN + 6 / run_planning.PAIRS_PER_SECOND * 568 / run_planning.MINILM_SIZE
    assert runs["bm25>bge-reranker-v2-m3@9"].seconds == pytest.approx(expected)


def test_only_a_transformer_that_encodes_measures_the_speed(own_suite, make_folder, monkeypatch):
    """A stored text and a static embedding take almost no time, and would promise a batch ten times too short."""
    catalogue.add(make_folder(name="first"))
    monkeypatch.setattr(systems.System, "search", lambda self, collection, depth: time.sleep(0.02))
    kinds = {"own-static": {"kind": "dense", "encoder": "static"}, "minilm": {"kind": "dense", "encoder": "minilm"}}
    entries = {"static": {"pooling": "none"}, "minilm": {"pooling": "mean"}}
    monkeypatch.setattr(run_tasks, "system", lambda name: systems.System(name, name, kinds[name]))
    monkeypatch.setattr(run_planning, "encoder", lambda name, _: SimpleNamespace(entry=entries[name]))

    def make(system: str, n_texts: int) -> None:
        monkeypatch.setattr(run_tasks, "count_missing_texts", lambda *_: n_texts)
        run_tasks.make_missing_runs([run_planning.MissingRun(system, "first", n_texts, 0, 1.0)], lambda _: None)

    for system, n_texts in (("own-static", 5_000), ("minilm", 0), ("minilm", 400)):
        make(system, n_texts)
        assert run_planning.encoding_rate() == run_planning.TEXTS_PER_SECOND
    make("minilm", 1_000)
    assert run_planning.encoding_rate() != run_planning.TEXTS_PER_SECOND
    assert run_planning.encoding_rate() <= 1_000 / 0.02


def test_no_clock_decides_what_a_run_made(own_suite):
    """A file server whose clock is years behind dates new figures before the run; they are on record all the same."""
    notebook(own_suite, "one", WRITE.format(name="one") + "os.utime(folder / (word + '.txt'), (1, 1))")
    for word in "ac":
        (job,) = suite_files.read_suite("own", {"word": word}, ["one"])
        run([job])
        assert [path.name for path in job.folder.iterdir()] == [f"{word}.txt"] and is_fresh(job)


def test_what_was_changed_after_a_batch_is_not_fresh(own_suite):
    """An emptied table, an executed copy of two brackets, another byte, and a damaged record: it is made anew."""
    (job,) = suite_files.read_suite("own", only=["one"])
    run([job])
    for path in (job.folder / "a.txt", job.executed):
        was = path.read_bytes()
        for content in (b"", b"{}", was[:-1] + b"?"):
            path.write_bytes(content)
            assert not is_fresh(job)
            assert [reason for _, reason in notebooks.find_stale([job])] == [f"changed or removed since: {path.name}"]
        path.write_bytes(was)
        assert is_fresh(job)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", "{}", "[" * 3000, '{"seconds": [1]}', "9" * 5000, "\udcff", '{"key": "", "seconds": NaN}'],
)
def test_a_damaged_record_is_said_and_made_anew(own_suite, content):
    """It never ends in a traceback, nor does a damaged measurement of the speed; both are guessed then."""
    (job,) = suite_files.read_suite("own", only=["one"])
    job.executed.parent.mkdir(parents=True)
    job.executed.with_suffix(".json").write_text(content, encoding="utf-8", errors="surrogateescape")
    assert not is_fresh(job) and notebooks.expected_seconds(job) == suite_files.SECONDS_PER_NOTEBOOK
    ((_, reason),) = notebooks.find_stale([job])
    assert "own/one.json" in reason.replace(os.sep, "/")
    assert CliRunner().invoke(app, ["figures"], catch_exceptions=False).exit_code == 0
    paths.cache().mkdir(parents=True)
    for value in (content, *(f'{{"texts_per_second": {one}}}' for one in ("NaN", "-3", "0", "[1]", "null", "1e400"))):
        (paths.cache() / "rate.json").write_text(value, encoding="utf-8", errors="surrogateescape")
        assert run_planning.encoding_rate() == run_planning.TEXTS_PER_SECOND


@pytest.mark.parametrize("parameters", [{"word": [1]}, {"wrod": "a"}, {"n": None}, {}])
def test_parameters_in_a_record_are_checked_before_they_are_used(own_suite, parameters):
    """The list of figures says what is wrong with them."""
    (job,) = suite_files.read_suite("own", only=["one"])
    stamp = {"key": "0", "seconds": 1, "made": "", "parameters": parameters, "executed": "", "files": {}}
    job.executed.parent.mkdir(parents=True)
    job.executed.with_suffix(".json").write_text(json.dumps(stamp), encoding="utf-8")
    said = CliRunner().invoke(app, ["figures"], catch_exceptions=False).output
    assert "own/one: " in said and "not fresh: " in said


def start_batch(
    own_suite: Path, tmp_path: Path, notebooks: str, word: str = "a", forked_from: int = 8
) -> subprocess.Popen[str]:
    """Start a batch in a process of its own."""
    script = tmp_path / "batch.py"
    script.write_text(BATCH, encoding="utf-8")
    command = [sys.executable, str(script), str(own_suite.parent), notebooks, word, str(forked_from)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")
def test_kernels_of_one_worker_are_forked_from_one_process(own_suite):
    """Each has its own modules; one that is killed is reported, and what it said last is in its own log."""
    look = """import mirblab
_ = (folder / "origin").write_text(f"{os.getppid()} {hasattr(mirblab, 'changed')}")
mirblab.changed = True
"""
    for name in ("one", "two"):
        notebook(own_suite, name, WRITE.format(name=name) + look)
    notebook(own_suite, "bad", "import os\nos.write(2, b'last words')\nos.kill(os.getpid(), 9)")
    jobs = suite_files.read_suite("own")
    outcomes = run(jobs, 1)
    assert {outcome.job.name: outcome.state for outcome in outcomes} == {"one": "ran", "two": "ran", "bad": "failed"}
    assert "Kernel died" in next(outcome.problem for outcome in outcomes if outcome.job.name == "bad")
    texts = {(paths.figures() / "own" / name / "origin").read_text("utf-8") for name in ("one", "two")}
    assert len(texts) == 1 and texts.pop().endswith(" False")
    assert "last words" in (paths.figures() / "_executed" / "own" / "bad.log").read_text("utf-8")


@pytest.mark.parametrize(("forked_from", "end"), [(1, signal.SIGKILL), (8, signal.SIGINT)])
def test_nothing_lives_on_when_a_batch_is_killed(own_suite, tmp_path, forked_from, end):
    """Nor after Ctrl-C: workers and kernels end with it, and the next batch removes what they left half-written."""
    for name in ("one", "two", "bad"):
        notebook(own_suite, name, WRITE.format(name=name) + "import time\ntime.sleep(600)")
    started = paths.figures() / "own" / "one" / "a.txt"
    process = start_batch(own_suite, tmp_path, "one two bad", forked_from=forked_from)
    family: list[psutil.Process] = []
    try:
        until = time.monotonic() + 60
        while not started.is_file() and time.monotonic() < until:
            time.sleep(0.1)
        family = psutil.Process(process.pid).children(recursive=True)
        assert len(family) >= 3  # workers and a kernel
        if end == signal.SIGINT:
            os.killpg(process.pid, end)
        else:
            process.send_signal(end)
        process.wait(timeout=30)
        _, alive = psutil.wait_procs(family, timeout=8)
        assert alive == []
    finally:
        for one in [process, *family]:
            with contextlib.suppress(psutil.Error, OSError):
                one.kill()
    executed = paths.figures() / "_executed" / "own"
    assert [path.name for path in executed.glob(".*.partial.*")] != []
    notebook(own_suite, "one", "1")
    run(suite_files.read_suite("own", only=["one"]))
    assert [path.name for path in executed.glob(".*.partial.*")] == []


def test_two_batches_at_once_leave_what_one_of_them_made(own_suite, tmp_path):
    """The second waits; where it wants the same, it finds it done, and with other parameters it makes its own."""
    log = tmp_path / "log"
    notebook(own_suite, "two", f"_ = open({str(log)!r}, 'a').write('ran ')", 'suite: str = "own"  # suite\n')
    both_of_them = '[[notebook]]\nname = "one"\n[[notebook]]\nname = "two"\n'
    (own_suite / "suites" / "own.toml").write_text(both_of_them, encoding="utf-8")
    both = [start_batch(own_suite, tmp_path, "one two", word) for word in ("a", "c")]
    said = [process.communicate(timeout=300)[0].splitlines() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(state for states in said for state in states) == ["fresh", "ran", "ran", "ran"]
    assert log.read_text("utf-8") == "ran "
    (left,) = (paths.figures() / "own" / "one").iterdir()
    assert [is_fresh(suite_files.read_suite("own", {"word": word}, ["one"])[0]) for word in "ac"] == [
        left.name == "a.txt",
        left.name == "c.txt",
    ]


def test_a_kernel_that_does_not_start_is_started_again(own_suite, tmp_path, monkeypatch):
    """Kernels that start at once may draw the same port; only one of them keeps it."""
    script, starts = tmp_path / "kernel.py", tmp_path / "starts"
    script.write_text(
        f"with open({str(starts)!r}, 'a+') as log:\n"
        "    log.write('start ')\n    log.seek(0)\n    n = len(log.read().split())\n"
        "if n < 3:\n    raise SystemExit('Address already in use')\n"
        "from ipykernel.kernelapp import launch_new_instance\nlaunch_new_instance()\n",
        encoding="utf-8",
    )
    spec = {"argv": [sys.executable, str(script), "-f", "{connection_file}"], "display_name": "p", "language": "python"}
    folder = tmp_path / "jupyter" / "kernels" / "python3"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    (outcome,) = run(suite_files.read_suite("own", only=["one"]))
    assert (outcome.state, outcome.problem, starts.read_text()) == ("ran", "", "start start start ")


def test_a_warning_of_the_library_is_one_line_of_the_notebook(own_suite):
    """Once, and escaped; nothing on standard error."""
    warn = "lab.evaluation.measures.warnings.warn('2 < 3', lab.evaluation.measures.QueryWarning)"
    notebook(own_suite, "one", f"import mirblab as lab\nlab.check_parameters()\nfor _ in 'ab':\n    {warn}")
    (job,) = suite_files.read_suite("own", only=["one"])
    (outcome,) = run([job])
    outputs = [output for cell in nbformat.read(job.executed, 4).cells for output in cell.get("outputs", [])]
    assert outcome.problem == "" and [output.output_type for output in outputs] == ["display_data"]
    assert "Note: 2 &lt; 3<" in outputs[0].data["text/html"]


def test_a_run_by_hand_has_a_folder_of_its_own(own_suite, tmp_path):
    """It replaces nothing of the suite's, is told in the notebook, listed, and removed alone."""
    import papermill

    notebook(own_suite, "one", TABLE)
    (job,) = suite_files.read_suite("own", only=["one"])
    run([job])
    was = {path: path.read_bytes() for path in job.folder.iterdir()}
    assert {path.name for path in was} == {f"words.{suffix}" for suffix in ("tex", "md", "csv", "json")}
    copy = tmp_path / "out.ipynb"
    papermill.execute_notebook(job.source, copy, {"word": "b"}, kernel_name="python3", progress_bar=False)
    assert {path: path.read_bytes() for path in job.folder.iterdir()} == was and is_fresh(job)
    (hand_run,) = hand_runs.list_hand_runs()
    assert hand_run.name.startswith("one/word-b-") and hand_run.parameters == {**job.parameters, "word": "b"}
    assert ",b," in (hand_run.folder / "words.csv").read_text("utf-8").replace("\n", ",")
    assert hand_run.folder.name in copy.read_text("utf-8")
    shown = CliRunner().invoke(app, ["figures"]).output
    assert "own/one: " in shown and "; fresh\n" in shown and f"{hand_run.name}: " in shown and "word = 'b'" in shown
    with pytest.raises(MirblabError, match="no run by hand 'own/one'"):
        CliRunner().invoke(app, ["figures", "--remove", "own/one"], catch_exceptions=False)
    CliRunner().invoke(app, ["figures", "--remove", hand_run.name], catch_exceptions=False)
    assert not hand_run.folder.exists() and is_fresh(job)


def test_a_misspelt_parameter_under_papermill_is_refused_by_the_first_cell(own_suite, tmp_path):
    """Papermill alone would only log it, and run to the end on the default."""
    import papermill

    notebook(own_suite, "one", TABLE)
    with pytest.raises(papermill.PapermillExecutionError, match="no parameter 'wrod'.*did you mean 'word'"):
        papermill.execute_notebook(
            own_suite / "one.ipynb", tmp_path / "out.ipynb", {"wrod": "b"}, kernel_name="python3"
        )
    assert not paths.figures().exists()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"wrod": "b"}, r"no parameter 'wrod'; did you mean 'word'\? Known: n, suite, word, x"),
        ({"n": "many"}, r"one: the parameter 'n' must be a int, found the str 'many'"),
        ({"n": True}, r"must be a int, found the bool True"),
    ],
)
def test_a_wrong_parameter_is_refused_before_anything_runs(own_suite, overrides, message):
    """Papermill alone would only log it."""
    with pytest.raises(MirblabError, match=message):
        suite_files.read_suite("own", overrides)
    assert not paths.figures().exists()


def test_a_whole_number_may_stand_for_a_float(own_suite):
    """1 is a share, too."""
    assert suite_files.read_suite("own", {"x": 1})[0].parameters["x"] == 1


def test_an_unknown_parameter_in_the_suite_itself_is_refused(own_suite):
    """The TOML file is named."""
    path = own_suite / "suites" / "own.toml"
    path.write_text('[[notebook]]\nname = "one"\nparameters = { wodr = "b" }\n', encoding="utf-8")
    with pytest.raises(MirblabError, match=r"own\.toml, one: no parameter 'wodr'"):
        suite_files.read_suite("own")


def test_unknown_suites_and_notebooks_get_suggestions(own_suite):
    """Names are made from what is there."""
    with pytest.raises(MirblabError, match=r"no suite 'onw'; did you mean 'own'\? Known: own"):
        suite_files.read_suite("onw")
    with pytest.raises(MirblabError, match=r"no notebook in the suite own 'thre'"):
        suite_files.read_suite("own", only=["thre"])


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
        suite_files.read_suite("own", {"systems": ["bm26"]})
    with pytest.raises(MirblabError, match="no real collection is built or added yet"):
        suite_files.read_suite("own", {"collections": ["*"]})


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
            suite_files.read_suite("own", overrides)
    (own_suite / "suites" / "own.toml").write_text('[parameters]\nmeasure = ["AP"]\n[[notebook]]\nname = "one"\n')
    with pytest.raises(MirblabError, match="no parameter 'measure'.*did you mean 'measures'"):
        suite_files.read_suite("own")


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
            keys.append(suite_files.read_suite("own", {"source": str(path)})[0].key())
        assert keys[0] == keys[2] != keys[1]
    assert suite_files.read_suite("own", {"source": "a long question " * 50})[0].key()


def test_collections_and_files_are_part_of_the_key_whatever_their_parameter_is_called(own_suite, make_folder, tmp_path):
    """Also in a list: `elsewhere: list[str]` of a lesson, `runs: list[str]` of official runs."""
    run_file = tmp_path / "official.trec"
    for parameters in ('elsewhere: list[str] = ["left-qa"]\n', f"runs: list[str] = [{str(run_file)!r}]\n"):
        notebook(own_suite, "one", "1", parameters)
        keys = []
        for text in ("one", "another", "one"):
            run_file.write_text(text, encoding="utf-8")
            shutil.rmtree(paths.data() / "left-qa", ignore_errors=True)
            catalogue.add(make_folder([{"_id": f"d{n}", "title": "", "text": text} for n in (1, 2, 3)], name="left-qa"))
            notebook_parameters.cache_clear()
            keys.append(suite_files.read_suite("own", only=["one"])[0].key())
        assert keys[0] == keys[2] != keys[1]


def test_a_parameters_cell_with_anything_but_literals_is_refused(own_suite):
    """Papermill would keep what was derived from the default."""
    notebook(own_suite, "one", "1", "n: int = 1\nm = n + 1\n")
    with pytest.raises(MirblabError, match=r"one\.ipynb: line 2 of the parameters is not"):
        suite_files.read_suite("own", only=["one"])


def test_the_bundled_suite_is_sound(home):
    """All notebooks, with parameters that they have; the plan names what is not stored."""
    jobs = suite_files.read_suite("mini")
    assert len(jobs) == 44 and {job.part for job in jobs} == {""}
    todo = run_planning.missing_runs([job for job in jobs if job.name == "13_significance"])
    assert {step.collection for step in todo} == {"mini-qa"}


def test_a_suite_can_narrow_the_star_by_name(own_suite, make_folder):
    """And leaves the notebook out where nothing matches."""
    for name in ("left-qa", "left-premise"):
        catalogue.add(make_folder(name=name))
    notebook(own_suite, "one", "1", 'collection: str = "mini-qa"\npart: str = ""\n')
    suite = own_suite / "suites" / "own.toml"
    entry = '[[notebook]]\nname = "one"\nmatch = ["{}"]\nparameters = {{ collection = "*" }}\n'
    suite.write_text(entry.format("left-q*"), encoding="utf-8")
    assert [job.part for job in suite_files.read_suite("own")] == ["left-qa"]
    suite.write_text(entry.format('!*-qa", "left*'), encoding="utf-8")
    assert [job.part for job in suite_files.read_suite("own")] == ["left-premise"]
    suite.write_text(entry.format("right-*"), encoding="utf-8")
    assert suite_files.read_suite("own") == []
    suite.write_text(entry.format("*") + 'needs = ["left-qa", "right-qa"]\n', encoding="utf-8")
    assert suite_files.read_suite("own") == []


def test_a_suite_can_name_a_system_whose_model_may_not_be_trained(own_suite, make_folder, monkeypatch):
    """It is left out until it is; one that nobody knows is refused."""
    catalogue.add(make_folder(name="left-qa"))
    code = 'collections: list[str] = ["mini-qa"]\nsystems: list[str] = ["bm25"]\n'
    notebook(own_suite, "one", "1", code)
    suite = own_suite / "suites" / "own.toml"
    entry = '[[notebook]]\nname = "one"\nparameters = {{ systems = ["bm25", "{}?"] }}\n'
    suite.write_text(entry.format("bm25+minilm-math@cv"), encoding="utf-8")
    assert suite_files.read_suite("own")[0].systems == ["bm25"]
    monkeypatch.setattr(suite_files.inventory, "state", lambda *_: suite_files.inventory.READY)
    assert suite_files.read_suite("own")[0].systems == ["bm25", "bm25+minilm-math@cv"]
    suite.write_text(entry.format("minilm-maths"), encoding="utf-8")
    with pytest.raises(MirblabError, match="no system 'minilm-maths'.*did you mean 'minilm-math'"):
        suite_files.read_suite("own")
