"""Tasks run in this process, in a pool or on a Dask cluster to the same bytes, and a lost process costs one task."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest
from typer.testing import CliRunner

import mirblab as lab
from mirblab.app import console, places, suite_files
from mirblab.app.batch import notebooks, run_planning, run_tasks
from mirblab.app.batch.run_planning import MissingRun
from mirblab.app.cli import app
from mirblab.core import atomic_files, paths, processes
from mirblab.core.errors import MirblabError
from mirblab.evaluation.provability import Provability, goal_collection
from mirblab.formula.metamath.database import read_logic
from mirblab.formula.metamath.proving import draw_goals
from mirblab.retrieval import dense, systems
from mirblab.retrieval.systems import system
from mirblab.sources import mini

BY_WORDS = ["bm25", "structure", "bm25+structure", "bm25~rm3"]
BY_VECTORS = ["bm25", "minilm", "bm25+minilm", "bm25>maxsim@5"]
MIRRORED = ["mini-views-informal-type", "mini-views-type-informal"]
NOTEBOOK = "10_collections"


@pytest.fixture
def _forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the processes of a pool, which spares their imports."""
    monkeypatch.setattr(places, "get_context", lambda _: get_context("fork"))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Return a cluster of two processes of this machine on a home of its own."""
    from distributed import LocalCluster

    monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / "cluster"))
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as made:
        yield made


def log_and_die_once(log: str, name: str) -> str:
    """Write a line, and end this process at once the first time."""
    with open(log, "a") as file:
        file.write(f"{name}\n")
    if Path(log).read_text().count(name) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return name


def log_and_wait(log: str, name: str, seconds: float) -> str:
    """Write a line with the number of this process, and wait."""
    with open(log, "a") as file:
        file.write(f"{name} {os.getpid()}\n")
    time.sleep(seconds)
    return name


def wait_in_process(seconds: float, number: int) -> int:
    """Wait, and return the number of this process; *number* tells the tasks apart."""
    time.sleep(seconds)
    return os.getpid()


def test_a_pool_replaces_a_lost_process_and_begins_its_task_again(_forked: None, tmp_path: Path) -> None:
    """The task of the other process goes on; three losses of one task are an error that says so."""
    log, other = str(tmp_path / "log"), str(tmp_path / "other")
    with places.open_place("pool:2") as place:
        waiting = place.submit(log_and_wait, other, "slow", 1.0)
        assert place.submit(log_and_die_once, log, "lost").result() == "lost"
        assert waiting.result() == "slow"
        with pytest.raises(MirblabError, match=r"its process ended, killed or for want of memory \(3 starts\)"):
            place.submit(os._exit, 1).result()
        assert place.submit(log_and_wait, other, "after", 0).result() == "after"
    assert Path(log).read_text() == "lost\nlost\n"
    assert [line.split()[0] for line in Path(other).read_text().splitlines()] == ["slow", "after"]


def test_ctrl_c_ends_the_processes_of_a_pool_and_starts_nothing_more(_forked: None, tmp_path: Path) -> None:
    """What is queued is never begun."""
    log = tmp_path / "log"
    with pytest.raises(KeyboardInterrupt), places.open_place("pool:2") as place:
        futures = [place.submit(log_and_wait, str(log), name, 60.0) for name in ("one", "two", "three")]
        while not log.is_file() or len(log.read_text().splitlines()) < 2:
            time.sleep(0.05)
        pids = [int(line.split()[1]) for line in log.read_text().splitlines()]
        raise KeyboardInterrupt
    assert len(log.read_text().splitlines()) == 2
    until = time.monotonic() + 10
    while any(map(psutil.pid_exists, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(psutil.pid_exists, pids)) and futures[2].cancelled()


def test_an_error_ends_no_process_that_the_pool_did_not_start(_forked: None) -> None:
    """Such as a Dask cluster of this process, or what loads the data of a training."""
    other = get_context("fork").Process(target=time.sleep, args=(60,))
    other.start()
    try:
        with pytest.raises(ZeroDivisionError), places.open_place("pool:1") as place:
            own = place.submit(os.getpid).result()
            raise ZeroDivisionError
        other.join(1)
        assert other.is_alive() and not psutil.pid_exists(own)
    finally:
        other.kill()
        other.join()


@pytest.mark.parametrize(
    ("on", "message"),
    [
        ("grid", "no place 'grid'; write local, pool:4 for four processes, or tcp://HOST:PORT"),
        ("pool:0", "no place 'pool:0'"),
        ("tcp://127.0.0.1", "no place 'tcp://127.0.0.1'"),
        ("tcp://10.0.0.1:8786", r"tcp://10.0.0.1:8786 is open to other machines.*--insecure: whoever can reach"),
    ],
)
def test_a_place_that_cannot_be_is_refused(on: str, message: str) -> None:
    """Before anything is sent."""
    with pytest.raises(MirblabError, match=message), places.open_place(on):
        pass


def test_the_number_of_processes_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By --jobs for this process, else by the place; they share the cores that this process may use."""
    with pytest.raises(MirblabError, match="--jobs is for --on local, found --on pool:2; write pool:3"):
        places.open_place("pool:2", 3).__enter__()
    with places.open_place("pool:2") as place:
        assert place.n_workers == 2 and place.conditions.threads == max(1, processes.n_cores() // 2)
    monkeypatch.setenv("MIRBLAB_THREADS", "")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(12)), raising=False)
    for given, threads in (("", 4), ("6", 2), ("1", 1)):
        monkeypatch.setenv("MIRBLAB_THREADS", given)
        with places.open_place("pool:3") as place:
            assert place.conditions.threads == threads
    assert places.default_workers() == 2


def test_a_notebook_makes_runs_in_other_processes(
    _forked: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are those that this process would make, and nothing is missing the second time."""
    runs, systems = [], ["bm25", "bm25+structure"]
    for home in ("here", "there"):
        monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / home))
        if home == "there":
            with lab.cluster("pool:2") as opened:
                assert opened.make_runs(systems, ["mini-qa", "mini-wfb"]) == 6
                assert opened.make_runs(systems, ["mini-qa", "mini-wfb"]) == 0
            assert all(lab.system(name).is_stored(lab.load("mini-wfb")) for name in systems)
        runs += [lab.system(name).search(lab.load("mini-wfb"), 10) for name in systems]
    for made_here, made_there in zip(runs[:2], runs[2:], strict=True):
        pd.testing.assert_frame_equal(made_here, made_there)
    with pytest.raises(MirblabError, match="take pool:2"), lab.cluster("local"):
        pass


def test_runs_are_made_as_deep_as_a_measure_needs(
    _forked: None, make_folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the workers, so that nothing is left to this process; the files are those of one process."""
    corpus = [{"_id": f"d{number}", "title": "", "text": f"document {number}"} for number in range(1, 1201)]
    folder, made = str(make_folder(corpus)), {}
    for on in ("pool:1", "local"):
        monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / on.replace(":", "-")))
        with places.open_place(on) as place, monkeypatch.context() as patch:
            if on != "local":
                patch.setattr(run_tasks, "make_runs_at", make_runs_at_and_search_no_more(run_tasks.make_runs_at, patch))
            console.print_values(system("bm25"), [folder], place, ["R@1100"], None, "test")
        made[on] = stored_runs()
    assert made["pool:1"] == made["local"] and len(made["local"]) > 0


def make_runs_at_and_search_no_more(make: Callable[..., None], patch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that makes runs at a place, after which a search in this process is an error."""

    def made(*given: Any) -> None:
        make(*given)
        patch.setitem(systems._SEARCHES, "bm25", lambda *_: pytest.fail("searched in this process"))

    return made


def test_seeds_of_a_training_give_the_same_models_in_a_pool(
    _forked: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model for each seed, by the same bytes as one after another in this process; a seed changes the model."""
    found = {}
    for on in ("local", "pool:2"):
        monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / on.replace(":", "-")))
        with places.open_place(on) as place:
            changes = {"steps": 2, "evaluate_rows": 0}
            assert console.train_seeds(place, "mini-static", changes, [0, 7], out="small") == 0
            said = capsys.readouterr().out
            assert "small-seed-7 is trained" in said and "2 steps in" in said
            assert on == "local" or re.search(r"\[1/2\] small-seed-\d is trained: .*; about 0 s left\n", said)
            failed = console.train_seeds(place, "mini-static", {"data": "no-such-views"}, [1]) if on != "local" else 1
            assert failed == 1
        found[on] = {
            path.parent.name: path.read_bytes() for path in paths.models().glob("small-seed-*/model.safetensors")
        }
    assert "failed: no table" in capsys.readouterr().err
    assert found["local"] == found["pool:2"] and len({*found["local"].values()}) == 2


def test_a_seed_that_was_stopped_stops_those_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """By Ctrl-C, whose status the command returns."""
    begun: list[str] = []
    run = lambda name, changes, *, out, force: begun.append(out) or 130  # noqa: E731
    monkeypatch.setattr(console.train_command, "run_training", run)
    with places.open_place() as place:
        assert console.train_seeds(place, "mini-static", {}, [0, 1]) == 130
    assert begun == ["mini-static-seed-0"]


def printed(*words: str) -> str:
    """Return what a command prints, or its error."""
    try:
        return CliRunner().invoke(app, words, catch_exceptions=False).stdout
    except (MirblabError, FileNotFoundError) as error:
        return f"mirblab: {error}"


@pytest.fixture
def desk(make_folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, with a collection, `notes`, and a paper that inputs a file above its own folder."""
    texts = ["every finite integral domain is a field", "an integral domain that is finite is a field", "a ring of $x$"]
    corpus = [{"_id": f"d{number}", "title": "", "text": text} for number, text in enumerate(texts, 1)]
    shutil.copytree(make_folder(corpus, name="made"), tmp_path / "desk" / "notes")
    paper = tmp_path / "desk" / "paper"
    paper.mkdir()
    (paper.parent / "macros.tex").write_text(r"\newcommand{\kind}{field}", encoding="utf-8")
    (paper / "main.tex").write_text(
        "\\input{../macros}\n"
        "\\begin{theorem}\\label{finite} A finite integral domain is a \\kind.\\end{theorem}\n"
        "\\begin{lemma}\\label{ring} Let $x$ be in a ring.\\end{lemma}",
        encoding="utf-8",
    )
    monkeypatch.chdir(paper.parent)
    return paper.parent


COMMANDS = (
    ("search", "notes", "finite", "field", "--by", "bm25", "--out", "found.csv"),
    ("search", "notes", "--file", "paper/main.tex", "--by", "bm25", "-n", "2", "--out", "found.csv"),
    ("similar", "notes", "mini-wfb", "--by", "bm25", "-n", "3", "--copies", "--queries", "--out", "found.csv"),
    ("build", "own", "--from", "paper", "--set", "name=thesis"),
    ("search", "mini-qa", "field", "--by", "bm52"),
    ("search", "mini-qa", "--file", "paper/none.tex", "--by", "bm25"),
    ("search", "./nowhere", "field", "--by", "bm25"),
    ("similar", "notes", "--by", "bm25>maxsim"),
    ("build", "own", "--from", "nowhere.csv"),
    ("build", "stacks", "--set", "seed=1"),
)


def printed_and_written(on: str, desk: Path) -> list[object]:
    """Return what the commands print and write at a place: a table, or the collections in the data folder."""
    made: list[object] = []
    for words in COMMANDS:
        text = printed(*words, "--on", on).replace(str(paths.home()), "HOME")
        made.append(re.sub(r"looked in \S+;", "looked there;", text))
        made.append((desk / "found.csv").read_bytes() if (desk / "found.csv").is_file() else b"")
        (desk / "found.csv").unlink(missing_ok=True)
    files = [path for path in sorted(paths.data().glob("thesis*/**/*")) if path.is_file()]
    return [*made, {str(path.relative_to(paths.data())): path.read_bytes() for path in files}]


def test_a_search_and_a_build_in_another_process_print_and_write_the_same(
    _forked: None, desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte, and errors are the same line; of a paper its text is sent."""
    made = {}
    for on in ("local", "pool:2"):
        monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / on.replace(":", "-")))
        made[on] = printed_and_written(on, desk)
    assert made["pool:2"] == made["local"]
    table = lab.search(desk / "paper" / "main.tex", "notes", "bm25", depth=2)
    assert set(table.frame["query"]) == {"finite", "ring"} and made["local"][3] == table.to_csv().encode()
    collections = made["local"][-1]
    assert isinstance(collections, dict) and any(name.startswith("thesis") for name in collections)
    assert [str(text).startswith("mirblab: ") for text in made["local"][:-1:2]] == [False] * 4 + [True] * 6


def judges_at(on: str, database: str = "mini") -> list[Provability]:
    """Return judges of 30 steps of proofs: one that has decided nothing, and one for which the processes have."""
    logic = read_logic("mini")
    goals, measures = draw_goals(logic, "2025-06-01", n_goals=30), ["Provable@5,1", "Provable@5,2", "Useful@3"]
    runs = [system(name).search(goal_collection(logic, goals), 10) for name in ("bm25", "structure")]
    made = [Provability(logic, goals, limit=300) for _ in range(2)]
    with lab.cluster(on) as opened:
        assert opened.prove(made[1], database, runs, measures) is made[1]
    decided = dict(made[1].decided)
    for run in runs:
        tables = [(one.documents(run, 3), one.evaluate(run, measures)) for one in made]
        for here, there in zip(*tables, strict=True):
            pd.testing.assert_frame_equal(here, there)
    assert made[1].decided == decided  # nothing was left to be searched for
    return made


def test_goals_are_divided_among_processes(_forked: None, tmp_path: Path) -> None:
    """What they decide is what this process decides, proofs and searches that a limit ended among it."""
    here, there = judges_at("pool:2")
    assert here.decided == there.decided and here.n_exhausted == there.n_exhausted > 0
    assert any(outcome.proof is not None for outcome in there.decided.values())
    other = tmp_path / "other.mm"
    other.write_text("$c |- wff ph $. wph $a wff ph $. ax $a |- ph $.", encoding="utf-8")
    with pytest.raises(MirblabError, match=r"other.mm' is Logic\('other.mm', 2 statements, 1 of them provable\) here"):
        judges_at("pool:2", str(other))


def say_and_warn(text: str) -> str:
    """Print and warn of a text."""
    print(text)
    warnings.warn(f"odd {text}", stacklevel=1)
    return text


def test_an_error_of_a_worker_says_what_failed(_forked: None, tmp_path: Path) -> None:
    """And a file that cannot be opened is the error that it is without --on; a worker that differs has a name."""
    with places.open_place("pool:1") as place:
        with pytest.raises(MirblabError, match=r"^it failed with ValueError: invalid literal for int"):
            place.run(int, "x")
        with pytest.raises(IsADirectoryError) as failure:
            place.run(open, str(tmp_path))
        assert failure.value.filename == str(tmp_path)
    name = f"the worker on {socket.gethostname()} (process {os.getpid()}) has the home "
    with pytest.raises(MirblabError, match=re.escape(name)):
        places.run_task(places.Conditions(1, token="none", home="another"), os.getpid)


def test_what_a_worker_prints_and_warns_of_is_printed_here(_forked: None, capsys: pytest.CaptureFixture[str]) -> None:
    """After the task; a process that is lost is an error with the reason."""
    with places.open_place("pool:1") as place:
        with pytest.warns(UserWarning, match="odd word"):
            assert place.run(say_and_warn, "word") == "word"
        assert capsys.readouterr().out == "word\n"
        with pytest.raises(MirblabError, match="its process ended, killed or for want of memory"):
            place.run(os._exit, 1)


def test_paths_are_sent_whole_where_another_process_would_not_find_them(
    desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a collection stays one, also beside a folder of that name."""
    (desk / "mini-qa").mkdir()
    both = os.pathsep.join(["notes", "paper"])
    assert places.whole_path("notes") == str(desk / "notes") and places.whole_path("") == ""
    assert places.whole_path(both) == os.pathsep.join(map(str, (desk / "notes", desk / "paper")))
    assert places.whole_path(f"{both}{os.pathsep}none") == f"{both}{os.pathsep}none"
    assert places.whole_path("mini-qa") == "mini-qa"


def test_a_budget_holds_for_the_tasks_of_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has one of its own has it again afterwards, and where the command has none."""
    for name in ("OMP_NUM_THREADS", "MIRBLAB_THREADS", "MIRBLAB_PROGRESS"):
        monkeypatch.setenv(name, os.environ.get(name, "0"))
    monkeypatch.setenv("MIRBLAB_BUDGET", "3")
    assert places.run_task(places.Conditions(1, budget="5"), os.environ.get, "MIRBLAB_BUDGET") == "5"
    assert places.run_task(places.Conditions(1), os.environ.get, "MIRBLAB_BUDGET") == "3"
    with pytest.raises(KeyError):
        places.run_task(places.Conditions(1, budget="5"), os.environ.__getitem__, "no such variable")
    assert os.environ["MIRBLAB_BUDGET"] == "3"


def test_a_search_and_a_build_on_a_cluster_print_and_write_the_same(
    cluster: Any, desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its workers have another working folder; a path that they do not see is named, and the budget is sent."""
    from distributed import Client

    address = cluster.scheduler_address
    there = printed_and_written(address, desk)
    with lab.cluster(address) as opened:
        table = opened.search("a finite integral domain is a field", "notes", "bm25", depth=2)
        pairs = opened.similar("notes", by="bm25", n=2)
    assert table.to_csv() == lab.search("a finite integral domain is a field", "notes", "bm25", depth=2).to_csv()
    assert pairs.to_markdown() == lab.similar("notes", by="bm25", n=2).to_markdown()
    left, right = judges_at(address)
    assert left.decided == right.decided
    monkeypatch.setenv("MIRBLAB_BUDGET", "5")
    with places.open_place(address) as place:
        assert place.run(os.environ.get, "MIRBLAB_BUDGET") == "5"
    monkeypatch.delenv("MIRBLAB_BUDGET")
    with places.open_place(address) as place:
        assert not place.run(os.environ.get, "MIRBLAB_BUDGET")

    def see_nothing() -> None:
        from mirblab.core import paths

        paths.path_exists = lambda _: False

    with Client(cluster) as client:
        client.run(see_nothing)
    unseen = rf"the worker on \S+ does not see {desk}/paper, which is on the machine of this command; move it to"
    with pytest.raises(MirblabError, match=unseen), places.open_place(address) as place:
        place.run(console.build_collections, "own", places.whole_path("paper"), {})
    cluster.close()  # an error in this process ends all processes that it started
    monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / "local"))
    assert printed_and_written("local", desk) == there


def test_runs_do_not_wait_for_the_slices_of_others(tmp_path: Path) -> None:
    """A run follows its own slices, and is not sent before."""
    words_are_made, sent = threading.Event(), list[str]()

    def work(name: str) -> list[str]:
        sent.append(name)
        if name == "slice":
            assert words_are_made.wait(20)
        elif name == "words":
            words_are_made.set()
        return []

    one = run_tasks.Task(work, ("slice",), "slice", 1.0)
    vectors = run_tasks.Task(work, ("vectors",), "vectors", 1.0, after=(one,))
    tasks = [one, vectors, run_tasks.Task(work, ("words",), "", 1.0)]
    with ThreadPoolExecutor(2) as pool:
        place: Any = SimpleNamespace(submit=lambda *given, is_notebook: pool.submit(*given), n_workers=2)
        made = [task.arguments[0] for task, _ in places.Place.results(place, tasks, run_tasks._made)]
    assert sorted(made[:2]) == ["slice", "words"] and made[2:] == ["vectors"] and sent[-1] == "vectors"


def fail_while_another_runs(log: str) -> list[str]:
    """Fail when another task has written a line."""
    while not Path(log).is_file():
        time.sleep(0.05)
    raise MirblabError("no word is left")


def log_both_ends(log: str, name: str, seconds: float) -> None:
    """Write a line at the beginning and one at the end."""
    log_and_wait(log, name, seconds)
    log_and_wait(log, "ended", 0)


@pytest.mark.parametrize("is_paid", [True, False])
def test_whatever_fails_what_others_have_begun_and_is_paid_for_is_finished(
    _forked: None, tmp_path: Path, is_paid: bool
) -> None:
    """And what costs nothing is ended at once; what waits is never begun."""
    log = tmp_path / "log"
    tasks = [places.Task(fail_while_another_runs, (str(log),), "a run")]
    seconds = 1.0 if is_paid else 60.0
    tasks += [places.Task(log_both_ends, (str(log), name, seconds), is_paid=is_paid) for name in ("one", "two")]
    with pytest.raises(MirblabError, match="a run: no word is left; finished runs"), places.open_place("pool:2") as at:
        list(at.results(tasks, run_tasks._made))
    assert [line.split()[0] for line in log.read_text().splitlines()] == (["one", "ended"] if is_paid else ["one"])


def missing(system: str, collection: str, *others: str, seconds: float = 1.0) -> MissingRun:
    return MissingRun(system, collection, 0, 0, seconds, frozenset(others))


def test_what_may_encode_the_same_text_is_one_task() -> None:
    """Other collections and other models are tasks of their own, the longest first; fusions wait for their parts."""
    reranked, fused = missing("bm25>maxsim@20", "mini-qa"), missing("structure+minilm", "mini-qa")
    todo = [reranked, missing("bm25", "mini-qa"), missing("minilm", "mini-qa"), missing("structure", "mini-qa"), fused]
    todo += [missing("minilm", "mini-hol", seconds=9), missing("minilm", "mini-views", "mini-hol")]
    first, second = run_tasks.split_into_tasks(todo)
    shown = [[(run.system, run.collection) for run in task] for task in first]
    assert shown == [
        [("minilm", "mini-hol"), ("minilm", "mini-views")],
        [("bm25>maxsim@20", "mini-qa"), ("bm25", "mini-qa"), ("minilm", "mini-qa")],
        [("structure", "mini-qa")],
    ]
    assert second == [[fused]]
    within = missing("bm25+minilm>maxsim@5", "mini-qa")  # needs the fusion at once
    part = missing("bm25+minilm", "mini-qa")
    assert run_tasks.split_into_tasks([within, part]) == [[[within, part]]]
    assert run_tasks.split_into_tasks([]) == []
    one, other = (missing(f"{first}>bge-reranker-v2-m3@20", "mini-qa") for first in ("bm25", "structure"))
    elsewhere = missing("bm25>bge-reranker-v2-m3@20", "mini-hol")
    assert run_tasks.split_into_tasks([one, other, elsewhere]) == [[[one, other], [elsewhere]]]  # a pair is scored once


def test_collections_that_share_texts_say_so(make_folder: Any, home: Path) -> None:
    """Also those that are folders, by the name that they were asked for; what is stored is not shared any more."""
    names = [str(make_folder(name=name)) for name in ("first", "second")]
    first, second = run_planning.find_missing(dict.fromkeys(names, ["minilm"]))
    assert (first.n_texts, second.n_texts, second.shares_texts_with) == (5, 0, {names[0]})
    assert run_tasks.split_into_tasks([first, second]) == [[[first, second]]]


def test_a_text_in_another_role_or_read_for_its_tokens_is_shared(make_folder: Any, home: Path) -> None:
    """A query that is another collection's document takes its vector, which a pass for token vectors stores, too."""
    corpus = [{"_id": "d1", "title": "", "text": "query 1"}, {"_id": "d2", "title": "", "text": "another"}]
    queries = [{"_id": f"q{n}", "text": f"other query {n}"} for n in (1, 2)]
    first, second = str(make_folder(name="first")), str(make_folder(corpus, queries, name="second"))
    of_first, of_second = run_planning.find_missing(dict.fromkeys([first, second], ["minilm"]))
    assert (of_first.n_texts, of_second.n_texts, of_second.shares_texts_with) == (5, 4, {first})
    reranked, words, dense = run_planning.find_missing({first: ["bm25>maxsim@2"], second: ["minilm"]})
    assert dense.shares_texts_with == {first}
    assert run_tasks.split_into_tasks([reranked, words, dense]) == [[[reranked, words, dense]]]


def stored_runs() -> dict[str, bytes]:
    """Return the files of the runs by name, without what a killed process left unfinished."""
    return {path.name: path.read_bytes() for path in (paths.cache() / "runs").glob("[!.]*")}


def make_everything(place: places.Place, systems: list[str]) -> dict[str, bytes]:
    """Make runs and tables at a place, and return all files of both, which hold no times."""
    todo = run_planning.find_missing({"mini-wfb": systems, "mini-hol": systems[:1]})
    if place.runs is None:
        run_tasks.make_missing_runs(todo, lambda _: None)
    else:
        run_tasks.make_runs_at(place, todo, lambda _: None)
    jobs = suite_files.read_suite("mini", only=[NOTEBOOK])
    outcomes = notebooks.run_notebooks(jobs, place, lambda *_: None, lambda _: None)
    assert [outcome.problem for outcome in outcomes] == [""]
    assert notebooks.find_stale(jobs) == []
    files = [path for path in (paths.figures() / "mini").rglob("*") if path.is_file()]
    return stored_runs() | {path.name: path.read_bytes() for path in files}


@pytest.mark.parametrize("systems", [BY_WORDS, pytest.param(BY_VECTORS, marks=pytest.mark.faults)], ids=" ".join)
def test_one_process_a_pool_and_a_cluster_make_the_same_bytes(
    _forked: None, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, systems: list[str]
) -> None:
    """Runs, tables and figures."""
    made = {}
    for name, on in (("cluster", cluster.scheduler_address), ("pool", "pool:2"), ("local", "local")):
        monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / name))
        with places.open_place(on) as place:
            made[name] = make_everything(place, systems)
    assert len(made["local"]) > len(systems) + 2
    for name in ("pool", "cluster"):
        assert sorted(made[name]) == sorted(made["local"])
        assert [path for path, content in made["local"].items() if made[name][path] != content] == []


def test_the_task_of_a_killed_worker_runs_again(cluster: Any) -> None:
    """While a notebook runs; nothing else is lost, and the home has no more files of the cluster afterwards."""
    from distributed import Client

    jobs, killed = suite_files.read_suite("mini", only=[NOTEBOOK]), list[int]()
    with Client(cluster) as client, places.open_place(cluster.scheduler_address) as place:
        pids = client.run(os.getpid)

        def kill_one(job: suite_files.Job, n_cells: int, n_all: int) -> None:
            busy = [worker for worker, tasks in client.processing().items() if tasks]
            if n_cells and busy and not killed:
                killed.append(pids[busy[0]])
                os.kill(killed[0], signal.SIGKILL)

        outcomes = notebooks.run_notebooks(jobs, place, kill_one, lambda _: None)
    assert killed and [outcome.state for outcome in outcomes] == ["ran"]
    assert notebooks.find_stale(jobs) == [] and list(paths.cache().glob(".*cluster")) == []


def wait_for(path: Path) -> None:
    """Return when there is such a file or folder."""
    while not path.exists():
        time.sleep(0.05)


def wait_for_few_tasks(client: Any, released: Path) -> int:
    """Return how many tasks the scheduler knows when that is one; *released* then lets the one that waits go on."""
    n_known = 2
    while n_known > 1 and not released.exists():
        time.sleep(0.05)
        n_known = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
    released.touch()
    return n_known


def test_what_is_finished_is_not_begun_again_when_its_worker_is_lost(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_time: None
) -> None:
    """The scheduler forgets a finished task while others still run."""
    from distributed import Client

    seen, released = list[tuple[str, int]](), tmp_path / "released"

    def pretend(wanted: list[tuple[str, str]], split: str) -> list[str]:
        wait_for(released if wanted[0][0] == "structure" else tmp_path)
        return []

    def look(line: str) -> None:
        seen.append((line.split(";")[0], wait_for_few_tasks(client, released)))

    monkeypatch.setattr(run_tasks, "make_runs", pretend)
    with Client(cluster) as client, places.open_place(cluster.scheduler_address) as place:
        run_tasks.make_runs_at(place, [missing("bm25", "mini-qa"), missing("structure", "mini-qa")], look)
    assert seen[0] == ("[1/2] bm25 on mini-qa", 1)


def test_seeds_and_slices_of_goals_that_are_finished_are_forgotten(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_time: None
) -> None:
    """So that none is computed again when its worker is lost."""
    from distributed import Client

    seen, released = list[int](), tmp_path / "released"

    def pretend(*given: Any) -> Any:
        wait_for(released if given[1] == {"seed": 0} else tmp_path)
        return {}

    def look() -> None:
        seen.append(wait_for_few_tasks(client, released))

    monkeypatch.setattr(console.train_command, "train_model", pretend)
    monkeypatch.setattr(console.train_command, "print_summary", lambda _: look())
    monkeypatch.setattr(console.training, "tokens_model", lambda _: None)
    with Client(cluster) as client, places.open_place(cluster.scheduler_address) as place:
        assert console.train_seeds(place, "mini-static", {}, [0, 1]) == 0
        assert seen[0] == 1

        class Decided(dict[str, object]):
            def __ior__(self, other: Any) -> Decided:  # type: ignore[override,misc]
                look()
                return self

        goals = {name: SimpleNamespace(goal_id=name) for name in "abcd"}
        judge: Any = SimpleNamespace(goals=goals, prover=SimpleNamespace(logic=""), limit=1, decided=Decided())
        monkeypatch.setattr(run_tasks, "SLICES", 1)
        seen.clear()
        released.unlink()
        monkeypatch.setattr(
            run_tasks, "prove_goals", lambda *given: wait_for(released if given[3][0].goal_id == "c" else tmp_path)
        )
        run_tasks.Cluster(place).prove(judge, "mini", [], [])
        assert seen[0] == 1


def test_no_more_tasks_are_sent_than_workers_take(cluster: Any) -> None:
    """So that a worker that is killed is held against its own task only; one that joins later is used."""
    from distributed import Client

    def look(_: places.Task) -> None:
        seen.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))

    seen: list[int] = []
    tasks = [places.Task(wait_in_process, (2.0, number)) for number in range(8)]
    with Client(cluster) as client, places.open_place(cluster.scheduler_address) as place:
        results = place.results(tasks, places.result_of, watch=look)
        pids = {next(results)[1]}
        n_before = max(seen)
        cluster.scale(3)
        until = time.monotonic() + 60
        while place.n_workers < 3 and time.monotonic() < until:
            time.sleep(0.05)
        pids |= {pid for _, pid in results}
    assert n_before == 2 and max(seen) == 3 and len(pids) == 3


def test_a_task_whose_workers_were_all_killed_says_so(home: Path) -> None:
    """With the number of workers, as Dask's settings have it, and what to do."""
    import dask
    from distributed import LocalCluster

    options = {"n_workers": 1, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), LocalCluster(**options) as cluster:
        with places.open_place(cluster.scheduler_address) as place:
            killed = "its worker ended 1 times, killed or for want of memory, the last one at tcp://.*; give workers"
            with pytest.raises(MirblabError, match=killed):
                place.run(os._exit, 1)  # type: ignore[arg-type]


def test_a_worker_with_another_home_or_another_version_is_refused(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its address, what it has, and what to do."""
    address = cluster.scheduler_address
    places.hand_runs.code_digest()  # which is kept, and has the versions
    with monkeypatch.context() as patch:
        patch.setattr(places.hand_runs, "library_versions", lambda: {"numpy": "0.1"})
        with pytest.raises(MirblabError, match=r"worker at tcp://127.0.0.1:\d+ has numpy \S+, and this command 0.1"):
            places.open_place(address).__enter__()
    monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / "other"))
    expected = rf"has the home {tmp_path}/cluster, which is not {tmp_path}/other of this command; set MIRBLAB_HOME"
    with pytest.raises(MirblabError, match=expected):
        places.open_place(address).__enter__()


def test_a_scheduler_that_is_not_there_or_has_no_worker_is_named(
    closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that starts one."""
    from distributed import LocalCluster

    monkeypatch.setattr(places, "CONNECT_SECONDS", 1)
    address = f"127.0.0.1:{closed_port}"
    with pytest.raises(MirblabError, match=f"no scheduler of Dask answers at tcp://{address} within 1 s.*start"):
        places.open_place(f"tcp://{address}").__enter__()
    with LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None) as empty:
        with pytest.raises(MirblabError, match=f"{empty.scheduler_address} has no worker; start one: dask worker"):
            places.open_place(empty.scheduler_address).__enter__()
    with pytest.raises(MirblabError, match="needs certificates in Dask's configuration"):
        places.open_place(f"tls://{address}").__enter__()


def test_a_lost_scheduler_ends_the_command_with_one_line(cluster: Any) -> None:
    """At once, with what to do; what is stored stays."""
    todo = [missing("bm25", "mini-qa"), missing("structure", "mini-qa")]
    ended = "on mini-qa: its scheduler ended, .* and the same command goes on"
    with pytest.raises(MirblabError, match=ended) as failure, places.open_place(cluster.scheduler_address) as place:
        waiting = place.submit(time.sleep, 60)
        run_tasks.make_runs_at(place, todo[:1], lambda _: None)
        cluster.close()
        with pytest.raises(MirblabError, match="a long run: its scheduler ended") as failure:
            run_tasks._made(places.Task(time.sleep, (60,), "a long run"), waiting)  # type: ignore[arg-type]
        client: Any = place.runs
        client._client.close()  # as it does where it cannot connect again
        run_tasks.make_runs_at(place, todo[1:], lambda _: None)
    assert "\n" not in str(failure.value)


def test_a_command_whose_workers_are_all_lost_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, with what to do, and again when there is a worker, which takes the task."""
    from distributed import LocalCluster

    def wait_for(text: str) -> str:
        printed, until = "", time.monotonic() + 30
        while text not in printed and time.monotonic() < until:
            time.sleep(0.05)
            printed += capsys.readouterr().err
        return printed

    monkeypatch.setattr(places, "LOOK_SECONDS", 0.1)
    options = {"threads_per_worker": 1, "processes": True, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(n_workers=1, **options) as cluster, places.open_place(cluster.scheduler_address) as place:
        cluster.scale(0)
        address = cluster.scheduler_address
        printed = wait_for("Ctrl-C")
        assert f"no worker is left at {address}; the tasks wait for one: dask worker {address} --host" in printed
        waiting = place.submit(str.upper, "done")
        cluster.scale(1)
        printed += wait_for("again")
        assert f"{address} has a worker again" in printed and waiting.result(30) == "DONE"
        assert printed.count("no worker is left") == 1


def test_a_worker_that_others_can_reach_is_refused_whatever_name_it_has(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --host a worker says that it is at 127.0.0.1, and listens at all addresses of the machine."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None) as cluster:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--no-nanny"]
        with subprocess.Popen([*command, "--nthreads", "1", "--no-dashboard"], stderr=subprocess.DEVNULL) as worker:
            try:
                with pytest.raises(MirblabError, match=r"tcp://0.0.0.0:\d+ is open to other machines.*--insecure: who"):
                    places.open_place(cluster.scheduler_address).__enter__()
                with places.open_place(cluster.scheduler_address, insecure=True) as place:
                    assert place.submit(os.getpid).result() == worker.pid
            finally:
                worker.terminate()
    assert "is open to other machines; whoever can reach the scheduler" in capsys.readouterr().err


def test_notebooks_run_where_workers_offer_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of two workers does, and takes all of them, which the plan counts; both make runs. When it is lost, a line
    says so.
    """
    from distributed import Nanny, Scheduler, SpecCluster

    monkeypatch.setattr(places, "LOOK_SECONDS", 0.1)
    options = {"nthreads": 1, "host": "127.0.0.1", "dashboard_address": None}
    workers = [{"cls": Nanny, "options": options | {"resources": offered}} for offered in ({places.NOTEBOOK: 1}, {})]
    scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "dashboard_address": None}}
    with SpecCluster(dict(enumerate(workers)), scheduler) as cluster:
        with places.open_place(cluster.scheduler_address) as place:
            console.print_plan(suite_files.read_suite("mini", only=[NOTEBOOK]), {}, place)
            kinds = {
                is_notebook: {
                    future.result()
                    for future in [place.submit(wait_in_process, 0.2, n, is_notebook=is_notebook) for n in range(8)]
                }
                for is_notebook in (True, False)
            }
            printed = capsys.readouterr().out
            del cluster.worker_spec[0]
            cluster.sync(cluster._correct_state)
            waiting, said, until = place.submit(os.getpid, is_notebook=True), "", time.monotonic() + 30
            while "Ctrl-C" not in said and time.monotonic() < until:
                time.sleep(0.05)
                said += capsys.readouterr().err
            waiting.cancel()
    assert re.search(r'no worker with the resource notebook is left at .* --nthreads 1 --resources "notebook=1"', said)
    assert len(kinds[True]) == 1 and len(kinds[False]) == 2
    assert "on 2 workers of 1 thread each, notebooks on 1 of them" in " ".join(printed.split())


@pytest.fixture
def certificates(tmp_path: Path) -> dict[str, str]:
    """Return Dask's settings for a certificate that signs itself, made by openssl."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl, to make a certificate")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=mirblab"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    found = {"distributed.comm.tls.ca-file": certificate}
    for role in ("client", "scheduler", "worker"):
        found |= {f"distributed.comm.tls.{role}.key": key, f"distributed.comm.tls.{role}.cert": certificate}
    return found


def test_a_cluster_by_tls_makes_runs_without_insecure(certificates: dict[str, str], home: Path) -> None:
    """Although it listens at all addresses of the machine: who has no certificate cannot send it anything."""
    import dask
    from distributed import LocalCluster, Security

    with dask.config.set(certificates):
        with LocalCluster(
            n_workers=1, threads_per_worker=1, host="tls://0.0.0.0", dashboard_address=None, security=Security()
        ) as cluster:
            address = f"tls://127.0.0.1:{cluster.scheduler_address.rpartition(':')[2]}"
            with places.open_place(address) as place:
                run_tasks.make_runs_at(place, [missing("bm25", "mini-qa")], lambda _: None)
    assert len(stored_runs()) > 0
    with pytest.raises(MirblabError, match="needs certificates in Dask's configuration"):
        places.open_place(address).__enter__()


def test_a_process_takes_one_task_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where a worker has several threads, since tasks share the environment."""
    for name in ("OMP_NUM_THREADS", "MIRBLAB_THREADS", "MIRBLAB_PROGRESS"):
        monkeypatch.setenv(name, os.environ.get(name, "0"))
    at_once, most = [0], [0]

    def count() -> None:
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        time.sleep(0.05)
        at_once[0] -= 1

    both = [threading.Thread(target=places.run_task, args=(places.Conditions(1), count)) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert most == [1] and os.environ["MIRBLAB_THREADS"] == "1"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file to which workers write the task that they begin; they store vectors in small portions."""
    path = tmp_path / "log"

    def logged(wanted: list[tuple[str, str]], split: str = "test") -> list[str]:
        from mirblab.app.batch import run_tasks as on_worker
        from mirblab.encoders import encoding

        encoding.TEXTS = 50
        with open(path, "a") as file:
            file.write(f"{wanted}\n")
        return on_worker.make_runs(wanted, split)

    monkeypatch.setattr(run_tasks, "make_runs", logged)
    return path


@contextmanager
def two_workers(most: int) -> Iterator[Any]:
    """Open a Dask cluster with two workers that outlives *most* kills.

    A worker that is killed while it starts again is not given up.
    """
    import dask
    from distributed import LocalCluster

    settings = {"distributed.scheduler.allowed-failures": most, "distributed.deploy.lost-worker-timeout": "1h"}
    options = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with dask.config.set(settings), LocalCluster(**options) as cluster:
        yield cluster


def make_runs_while(kill_some: Callable[[threading.Event], None], address: str, todo: list[Any]) -> None:
    """Make runs at a cluster while a thread kills workers, until the event that it is given is set."""
    stop = threading.Event()
    with places.open_place(address) as place:
        killer = threading.Thread(target=kill_some, args=(stop,))
        killer.start()
        try:
            run_tasks.make_runs_at(place, todo, lambda _: None)
        finally:
            stop.set()
            killer.join()


def make_in_one_process(needed: dict[str, list[str]], home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Return the files of the runs that one process makes in another home."""
    with monkeypatch.context() as patch:
        patch.setenv("MIRBLAB_HOME", str(home))
        run_tasks.make_missing_runs(run_planning.find_missing(needed), lambda _: None)
        return stored_runs()


@pytest.mark.faults
@pytest.mark.parametrize(
    ("most", "needed"),
    [
        (50, dict.fromkeys(mini.COLLECTIONS, BY_WORDS)),
        # The queries of two are documents of each other.
        (10, dict.fromkeys(["mini-blueprint", *MIRRORED], BY_VECTORS)),
    ],
    ids=["words", "vectors"],
)
def test_killed_workers_cost_at_most_their_task(
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    needed: dict[str, list[str]],
) -> None:
    """At random times, while runs are made: the files are those of one process, and little is begun twice."""
    random, n_killed, n_tasks = np.random.default_rng(0), 0, 0
    expected = make_in_one_process(needed, tmp_path / "local", monkeypatch)

    def kill_some(stop: threading.Event) -> None:
        nonlocal n_killed
        n_seen = 0
        while not stop.wait(float(random.uniform(1, 5))) and n_killed < most:
            n_files = sum(1 for _ in paths.cache().rglob("*.*"))
            if n_files == n_seen:  # on a slow machine nobody would get beyond imports
                continue
            n_seen = n_files
            # Dask gives up a worker that dies while it starts.
            begun = [nanny.process for nanny in cluster.workers.values() if nanny.process]
            pids = [process.pid for process in begun if process.status.name == "running"]
            with suppress(ProcessLookupError, IndexError):
                os.kill(pids[int(random.integers(2))], signal.SIGKILL)
                n_killed += 1

    monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / "cluster"))
    with two_workers(most) as cluster:
        while n_killed < most:
            for made in ("runs", "vectors", "tokens"):
                shutil.rmtree(paths.cache() / made, ignore_errors=True)
            todo = run_planning.find_missing(needed)
            n_tasks += sum(map(len, run_tasks.split_into_tasks(todo)))
            make_runs_while(kill_some, cluster.scheduler_address, todo)
            assert stored_runs() == expected
    n_begun = len(log.read_text().splitlines())
    print(f"{n_killed} kills, {n_tasks} tasks, {n_begun} begun")
    assert n_begun <= n_tasks + n_killed


SLICE = 80  # documents


def stored_vectors(folder: Path) -> list[bytes]:
    """Return MiniLM's vectors of a collection's documents and queries, all of which are stored."""
    collection, model = lab.load(folder), lab.encoder("minilm")
    found = []
    for role, texts in (("document", list(collection.texts)), ("query", collection.query_texts)):
        vectors, unstored = model.store(role, collection.card.instruction).read(texts)
        assert not len(unstored)
        found.append(vectors.tobytes())
    return found


@pytest.mark.faults
def test_workers_that_are_killed_cost_at_most_their_slices(
    make_folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While they encode documents in parts: vectors and runs are those of one process, and no slice is lost twice."""
    random, most, n_killed, n_slices = np.random.default_rng(0), 3, 0, 0
    lengths = random.integers(1, 6, 8 * SLICE)
    corpus = [
        {"_id": f"d{number:03d}", "title": "", "text": f"{'a scheme is flat over a field ' * length}{number}"}
        for number, length in enumerate(lengths)
    ]
    queries = [{"_id": "q1", "text": corpus[5]["text"]}, {"_id": "q2", "text": "flat schemes"}]
    folder = lab.sources.convert(str(make_folder(corpus, queries, "q1\td001\t1\nq2\td002\t1\n")), tmp_path / "parts")
    needed = {str(folder): ["minilm", "bm25"]}
    log = tmp_path / "log"
    log.touch()

    def logged(name: str) -> Any:
        def work(*given: Any) -> list[str]:
            from mirblab.app.batch import run_tasks as on_worker
            from mirblab.encoders import encoding
            from mirblab.retrieval import dense

            dense.CHUNK_DOCS, encoding.TEXTS = SLICE, SLICE // 4
            dense.search.__kwdefaults__["doc_block"] = SLICE
            what = f"{name} {given[3] if name == 'store_vectors' else given[0][0][0]} {os.getpid()}"
            for state in ("begun", "ended"):
                if state == "ended":
                    lines = getattr(on_worker, name)(*given)
                with open(log, "a") as file:
                    file.write(f"{state} {what}\n")
            return lines

        return work

    def states() -> tuple[list[str], list[str]]:
        lines = [line.partition(" ") for line in log.read_text().splitlines() if "store_vectors" in line]
        return tuple([what for state, _, what in lines if state == wanted] for wanted in ("begun", "ended"))

    def n_files() -> int:
        return sum(1 for _ in (paths.cache() / "vectors").rglob("[!.]*.safetensors"))

    def kill_some(stop: threading.Event) -> None:
        nonlocal n_killed
        seen: set[str] = set()
        while not stop.wait(0.05) and n_killed < most:
            begun, ended = states()
            for what in [what for what in begun if what not in ended and what not in seen][:1]:
                seen.add(what)
                n_stored = n_files()
                while what not in states()[1] and n_files() == n_stored and not stop.wait(0.02):
                    pass  # until vectors of some slice are stored, as while a fresh worker imports libraries
                stop.wait(float(random.uniform(0, 0.3)))
                if what not in states()[1]:
                    os.kill(int(what.split()[-1]), signal.SIGKILL)
                    n_killed += 1

    monkeypatch.setattr(dense, "CHUNK_DOCS", SLICE)
    monkeypatch.setitem(dense.search.__kwdefaults__, "doc_block", SLICE)
    monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / "local"))
    run_tasks.make_missing_runs(run_planning.find_missing(needed), lambda _: None)
    expected = stored_runs(), stored_vectors(folder)
    monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / "cluster"))
    for name in ("make_runs", "store_vectors"):
        monkeypatch.setattr(run_tasks, name, logged(name))
    with two_workers(most) as cluster:
        while n_killed < most:
            for made in ("runs", "vectors"):
                shutil.rmtree(paths.cache() / made, ignore_errors=True)
            todo = run_planning.find_missing(needed)
            n_slices += sum(len(task.after) for tasks in run_tasks.plan_tasks(todo) for task in tasks)
            make_runs_while(kill_some, cluster.scheduler_address, todo)
            assert (stored_runs(), stored_vectors(folder)) == expected
    begun, ended = states()
    print(f"{n_killed} kills, {n_slices} slices, {len(begun)} begun, {len(ended)} ended")
    assert n_slices >= 8 and n_slices < len(begun) <= n_slices + n_killed


@contextmanager
def commanded_cluster(address: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a scheduler that the command line started at *address*, with two workers; all are killed afterwards."""
    host, port = "127.0.0.1", address.rpartition(":")[2]
    start = [sys.executable, "-m"]
    options = ["--host", host, "--no-dashboard"]
    scheduler = [*start, "distributed.cli.dask_scheduler", *options, "--port", port]
    workers = [*start, "distributed.cli.dask_worker", address, *options, "--nworkers", "2", "--nthreads", "1"]
    with ExitStack() as stack:
        begun = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            for command in (scheduler, workers)
        ]
        try:
            yield begun[0]
        finally:
            for process in [psutil.Process(one.pid) for one in begun]:
                for member in [*process.children(recursive=True), process]:
                    with suppress(psutil.NoSuchProcess):
                        member.kill()


@pytest.mark.faults
def test_after_a_restart_of_the_scheduler_the_same_command_makes_the_rest(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scheduler that is killed ends the command with one line; what was finished is not begun again."""
    monkeypatch.setattr(places, "CONNECT_SECONDS", 60)
    needed = dict.fromkeys(["mini-blueprint", "mini-hol", "mini-lean", "mini-wfb"], BY_WORDS)
    expected = make_in_one_process(needed, tmp_path / "local", monkeypatch)
    monkeypatch.setenv("MIRBLAB_HOME", str(tmp_path / "cluster"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    told: list[str] = []
    with commanded_cluster(address) as scheduler:

        def kill_scheduler(line: str) -> None:
            told.append(line)
            if len(told) == 2:
                scheduler.kill()

        with pytest.raises(MirblabError, match="its scheduler ended, .* and the same command goes on") as failure:
            with places.open_place(address) as place:
                run_tasks.make_runs_at(place, run_planning.find_missing(needed), kill_scheduler)
    assert "\n" not in str(failure.value)
    kept = {path.name: path.stat().st_mtime_ns for path in (paths.cache() / "runs").glob("[!.]*")}
    n_begun, left = len(log.read_text().splitlines()), run_planning.find_missing(needed)
    n_left = sum(map(len, run_tasks.split_into_tasks(left)))
    assert 2 <= len(kept) == len(expected) - len(left) < len(expected)
    with commanded_cluster(address), places.open_place(address) as place:
        run_tasks.make_runs_at(place, left, told.append)
    again = log.read_text().splitlines()[n_begun:]
    print(f"{n_begun} tasks begun, {len(kept)} of {len(expected)} runs kept, {len(again)} begun for the rest")
    assert len(again) == n_left and stored_runs() == expected
    assert all((paths.cache() / "runs" / name).stat().st_mtime_ns == written for name, written in kept.items())


@pytest.mark.faults
def test_what_a_worker_with_a_full_disk_makes_is_named_and_made_again_elsewhere(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is half written, and the worker is refused from the next command on."""
    from distributed import Client

    def fill(folder: str) -> None:
        from injector import Fault, Injector

        Injector(Path(folder), Fault(2, "full")).on()  # the file that it opens first is begun, and no other

    needed = dict.fromkeys(["mini-hol", "mini-lean", "mini-wfb"], BY_WORDS) | {"mini-blueprint": ["minilm"]}
    expected, told = make_in_one_process(needed, tmp_path / "local", monkeypatch), list[str]()
    with Client(cluster) as client:
        with places.open_place(cluster.scheduler_address) as place:
            full, other = client.scheduler_info()["workers"]
            client.run(fill, str(paths.cache()), workers=[full])
            run_tasks.make_runs_at(place, run_planning.find_missing(needed), told.append)
        left = run_planning.find_missing(needed)
        noted = [line for line in told if line.startswith("note: ")]
        print(f"{len(noted)} of {len(expected)} runs could not be stored, and {len(left)} are left")
        assert left and {
            f"note: {run.system} on {run.collection} cannot be stored by a worker, and is made again when needed"
            for run in left
        } <= set(noted)
        assert stored_runs().items() < expected.items() and atomic_files.unfinished_paths(paths.cache()) == []
        with pytest.raises(MirblabError, match=f"the worker at {full} cannot be used: .* the disk is full"):
            places.open_place(cluster.scheduler_address).__enter__()
        client.retire_workers([full])
        with places.open_place(cluster.scheduler_address) as place:
            run_tasks.make_runs_at(place, left, told.append)
    assert stored_runs() == expected
