"""The command says what it does, does it, and explains what went wrong in one line."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_process import CommandProcess
from typer.testing import CliRunner, Result

import mirblab as lab
from mirblab.app import cli, console, verification
from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.evaluation import imported
from mirblab.sources import catalogue, mini
from mirblab.train import command
from mirblab.train import rephrase as train_rephrase


@pytest.fixture
def mirblab(command_process: CommandProcess, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs the command in a home of its own."""
    return lambda *words: command_process.run(*words, MIRBLAB_HOME=str(tmp_path / "home"))


def test_the_command_begins_in_a_process_of_its_own() -> None:
    """As the script that pip installs begins it."""
    done = subprocess.run([sys.executable, "-m", "mirblab", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "Usage:" in done.stdout


COMMANDS = sorted(command.name or command.callback.__name__ for command in cli.app.registered_commands)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(mirblab, command):
    """And the help says what it is for."""
    done = mirblab(command, "--help")
    assert done.returncode == 0 and "Usage:" in done.stdout and len(done.stdout.splitlines()) > 4


def test_ctrl_c_says_what_is_kept(monkeypatch, capsys):
    """In one line, with the exit status that a shell expects."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mirblab.app.hand_runs.remove_hand_runs", interrupted)
    monkeypatch.setattr(sys, "argv", ["mirblab", "figures"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 130 and "stopped; finished vectors" in capsys.readouterr().err


def test_a_missing_file_that_a_library_does_not_name_is_told_in_its_words(monkeypatch, capsys):
    """As an error of the Hub's client, which is a FileNotFoundError with a text alone."""

    def not_found(*_: object, **__: object) -> None:
        raise FileNotFoundError("the file is not in the cache of the Hub")

    monkeypatch.setattr("mirblab.app.hand_runs.remove_hand_runs", not_found)
    monkeypatch.setattr(sys, "argv", ["mirblab", "figures"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2 and capsys.readouterr().err == "mirblab: the file is not in the cache of the Hub\n"


def test_the_help_has_every_command_in_one_of_two_groups(mirblab):
    """Those of every day come first; the version has an option."""
    first, second = mirblab("--help").stdout.partition("Every day:")[2].split("Also:")
    shown = [re.findall(r"^  ([a-z-]+)  ", part, re.MULTILINE) for part in (first, second)]
    assert shown[0] == list(cli.EVERY_DAY) and sorted(shown[0] + shown[1]) == COMMANDS
    assert mirblab("--version").stdout == f"mirblab {lab.__version__}\n"


def test_what_there_is_is_listed_with_what_it_needs(mirblab, make_folder):
    """An added collection is ready, others name the command; a training and a key are needed by some systems."""
    mirblab("add", str(make_folder(name="mine")))
    expected = {
        "collections": ("mine", "ready", "bundled", "mirblab build stacks"),
        "systems": ("bm25+minilm", "fusion", "mirblab train minilm-math", "a key in VOYAGE_API_KEY"),
        "models": ("minilm", "22.7M", "a download from the Hub"),
        "measures": ("nDCG@10", "nDCG'", "Rank"),
    }
    for what, words in expected.items():
        done = mirblab("list", what)
        assert done.returncode == 0 and [word for word in words if word not in done.stdout] == []
    assert "no list of 'system'; did you mean 'systems'?" in mirblab("list", "system").stderr


def test_a_narrow_terminal_cuts_neither_names_nor_numbers(command_process, tmp_path):
    """Where the output is a file, rich takes 80 columns: two names must not look alike, and a mean is whole."""
    narrow = {"COLUMNS": "80", "MIRBLAB_HOME": str(tmp_path)}
    listed = command_process.run("list", "collections", **narrow)
    names = "".join(line.split("│")[1].strip() for line in listed.stdout.splitlines() if line.startswith("│"))
    assert [name for name in mini.COLLECTIONS if name not in names] == []
    measures = ",".join(f"P@{k}" for k in range(101, 110))
    shown = command_process.run("run", "bm25", "mini-qa", "--measures", measures, **narrow)
    assert shown.returncode == 0 and "…" not in listed.stdout + shown.stdout


def test_an_added_collection_is_in_the_plan(mirblab, make_folder, tmp_path):
    """The collection is found by the suite `open`."""
    folder = make_folder(name="my-own")
    done = mirblab("add", str(folder), "--instruction", "Retrieve its proof.")
    assert done.returncode == 0, done.stderr
    card = (tmp_path / "home" / "data" / "my-own" / "card.toml").read_text()
    assert 'instruction = "Retrieve its proof."' in card
    assert "my-own: 2 queries, 3 documents; candidates: all documents" in done.stdout
    done = mirblab("plan", "open", "--only", "13")
    assert done.returncode == 0, done.stderr
    assert "13_significance.my-own" in done.stdout and "would run" in done.stdout
    assert "texts to encode" in done.stdout and "runs to make" in done.stdout
    assert "notebooks that never ran here are guessed" in " ".join(done.stdout.split())
    done = mirblab("plan", "open", "--only", "62", "--only", "63", "--only", "64")
    names = ("62_time_travel", "63_proof_graph", "64_same_theorem")
    assert done.returncode == 0 and [name for name in names if f"│ {name} " not in done.stdout] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("batch", "mni"), "no suite 'mni'; did you mean 'mini'? Known: arqmath, findings, meld, mini, mirb, and"),
        (("batch", "mini", "--set", "wrong=1"), "no parameter 'wrong'"),
        (("batch", "mini", "--set", "seed"), "--set wants name=value, found 'seed'"),
        (("plan", "open"), "no real collection is built or added yet"),
        (("build", "stakcs"), "did you mean 'stacks'?"),
        (("build", "stacks", "--set", "seed=1"), "'stacks' cannot be built with --set seed=...; it takes"),
        (("build", "own", "--set", "source=x"), "'own' cannot be built with --set source=...; it takes"),
        (("train", "nope", "--seeds", "0, 1,1"), "no recipe 'nope'"),
        (("train", "minilm-math", "--out", "a/b"), "'a/b' cannot name a model; use letters"),
        (("train", "minilm-math", "--out", "a/b", "--seeds", "0,1"), "'a/b-seed-0' cannot name a model; use letters"),
        (("train", "mini-math", "--set", "out=x"), "no field of recipe 'mini-math' in trained.toml called 'out'"),
        (("run", "bm25", "mini-qa", "--set", "name=x"), "no field of system 'bm25' (bm25) called 'name'"),
        (("run", "bm52", "mini-qa"), "did you mean 'bm25'?"),
        (("run", "bm25", "mini-qa", "--measures", ""), "no measure was given; name one, for example nDCG@10"),
        (("run", "bm25", "mini-qa", "--format", "tsv"), "no format of run files 'tsv'; found arqmath, trec"),
        (
            ("run", "bm25", "mini-qa", "--format", "arqmath"),
            "no run on mini-qa can be submitted to ARQMath: task 1 has",
        ),
        (("plan", "mirb", "--models", "voyage"), "no encoder 'voyage'"),
        (("plan", "mini", "--only", "10", "--models", "minilm"), "--models shows costs for the suite of a paper"),
        (("report", "mini-qa", "--run", "no.trec"), "no.trec cannot be opened: No such file or directory; check"),
        (("report", "mini-qa", "--run", str(Path(__file__).parent)), "app cannot be opened: Is a directory; check the"),
        (("report", "mini-qa", "--other", "mini-qa"), "mini-qa would be compared with itself; name another collection"),
        (("similar", "mini-qa", "mini-qa", "--by", "bm25"), "mini-qa is given twice; give it once"),
        (
            ("diff", "bm25", "structure", "--collection", "mini-qa", "--queries", "-1"),
            "n_queries must be at least 1, found -1",
        ),
        (("add", "nowhere"), "no folder nowhere"),
        (
            ("report", "mini-qa", "--run", "n" * 300),
            f"{'n' * 100} … cannot be opened: File name too long; check the path",
        ),
        (("cache", "--verify", "--remove", "old"), "--verify and --remove are both given; give one after the other"),
        (
            ("verify", "findings", "--collections", "65_published_defect", "--systems", "nope"),
            "no system of the suite findings 'nope'",
        ),
        (("cache", "--remove", "vectros"), "did you mean 'vectors'?"),
    ],
)
def test_a_mistake_is_one_line_and_exit_status_2(mirblab, words, message):
    """No traceback."""
    done = mirblab(*words)
    assert done.returncode == 2
    assert message in done.stderr and len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("diff", "bm25", "structure", "--collection", "mini-qa", "--seed", "-1"),
        ("report", "mini-qa", "--seed", "-1"),
        ("judge", "mini-qa", "bm25", "--agreement", "--seed", "-1"),
        ("rephrase", "mini-views", "--rules", "--seed", "-1"),
        ("rephrase", "mini-views", "--rules", "--limit", "-1"),
        ("batch", "mini", "--plan", "--only", "10", "--jobs", "-1"),
        ("serve", "mini-qa", "--port", "-1"),
        ("serve", "mini-qa", "--port", "65536"),
    ],
)
def test_a_number_out_of_range_is_refused(mirblab, words):
    """Before anything is read or drawn."""
    done = mirblab(*words)
    assert done.returncode == 2 and f"Invalid value for '{words[-2]}': " in done.stderr


def test_a_grade_from_which_nothing_is_relevant_is_said_when_a_collection_is_added(mirblab, make_folder):
    """The card that is written decides what is relevant, not the one that the folder had."""
    done = mirblab("add", str(make_folder()), "--relevant-from", "5")
    assert done.returncode == 0 and "note: queries without a relevant document: 2" in done.stdout


def test_the_cache_can_be_shown_checked_and_removed(mirblab):
    """Also when there is none."""
    assert mirblab("run", "minilm", "mini-blueprint").returncode == 0
    short, long = mirblab("cache").stdout, mirblab("cache", "--long").stdout
    assert len(short.splitlines()) <= 30 and "prompt" not in short and "prompt" in long
    assert "spending" in long and "spending" not in short
    assert mirblab("cache", "--verify").returncode == 0
    assert mirblab("cache", "--remove", "all").returncode == 0


def test_build_mini_and_doctor(mirblab, tmp_path):
    """Twenty-one collections in the home, and an installation that works."""
    done = mirblab("build", "mini")
    assert done.returncode == 0 and len(list((tmp_path / "home" / "data").glob("mini-*/card.toml"))) == 21
    done = mirblab("doctor")
    assert done.returncode == 0, done.stdout


def invoke(*words: str) -> Result:
    """Return the result of a command in this process, whose errors are raised."""
    return CliRunner().invoke(cli.app, list(words), catch_exceptions=False)


def test_threads_are_written_as_pages(tmp_path):
    """Of the questions that are named, with an index that the last line names."""
    origin, out = paths.bundled_path("data", "mini", "threads"), tmp_path / "pages"
    done = invoke("threads", str(origin), "1", "5", "--out", str(out), "--formulas", "latex")
    assert done.exit_code == 0 and done.output == f"2 threads; open {out / 'index.html'}\n"
    assert sorted(path.name for path in out.iterdir()) == ["index.html", "thread-1.html", "thread-5.html"]
    assert '<code class="latex">' in (out / "thread-1.html").read_text("utf-8")


def test_a_run_of_others_is_imported(home, tmp_path):
    """It is a system then, whose origin is kept; what is wrong with it is noted."""
    collection, path = lab.load("mini-qa"), tmp_path / "theirs.trec"
    rows = [f"{query_id} Q0 {collection.doc_ids[0]} 1 0.5 theirs\n" for query_id in collection.query_ids]
    path.write_text("".join(rows), "utf-8")
    done = invoke("import-results", str(path), "--origin", "A. Author", "--name", "own")
    [record] = imported.import_records()
    assert done.exit_code == 0 and done.output.startswith(f"theirs on mini-qa: in {record.folder}\n")
    assert record.folder == home / "results" / "own" and record.origin == "A. Author"
    assert lab.system("theirs").search(collection, 5).doc_id.unique().tolist() == [collection.doc_ids[0]]


def test_a_corpus_is_written_in_parts_and_back(home, make_folder, tmp_path):
    """To a new folder, and in place."""
    catalogue.add(make_folder(name="mine"))
    before, new = lab.load("mine"), tmp_path / "in-parts"
    done = invoke("convert", "mine", "--out", str(new))
    assert done.exit_code == 0 and done.output.splitlines()[-1] == f"  in {new}"
    assert not list(new.glob("corpus.jsonl")) and lab.load(new).texts[:] == before.texts[:]
    assert invoke("convert", "mine").output.splitlines()[-1] == f"  in {home / 'data' / 'mine'}"
    assert not (home / "data" / "mine" / "corpus.jsonl").exists()
    assert invoke("convert", "mine", "--to", "jsonl").exit_code == 0
    assert (home / "data" / "mine" / "corpus.jsonl").is_file() and lab.load("mine").fingerprint == before.fingerprint


def test_expected_values_are_stored_and_verified(home, tmp_path, monkeypatch):
    """Of the chosen system and collection."""
    path = tmp_path / "mini.csv"
    monkeypatch.setattr(verification, "expected_path", lambda suite: path)
    chosen = ("mini", "--systems", "bm25", "--collections", "mini-hol")
    done = invoke("verify", *chosen, "--update")
    assert done.exit_code == 0 and done.output == f"wrote {path}\n"
    stored = verification.read_expected("mini")
    assert set(stored.system) == {"bm25"} and set(stored.collection) == {"mini-hol"}
    done = invoke("verify", *chosen)
    assert done.exit_code == 0 and f"{len(stored)} OK, 0 OKish, 0 FAIL, 0 skipped" in done.output


def test_the_options_of_rephrase_reach_it(monkeypatch):
    """Each under its own name; its status is that of the command."""
    asked: list[tuple] = []
    monkeypatch.setattr(train_rephrase, "run_rephrasing", lambda *given, **named: asked.append((given, named)) or 3)
    assert invoke("rephrase").exit_code == 3
    words = (
        "rephrase own.jsonl --model m --url http://localhost:1/v1 --rules --negatives --split dev "
        "--modules mathematics --limit 7 --seed 5 --out o.jsonl --set in_flight=8 --set budget=0.5"
    )
    assert invoke(*words.split()).exit_code == 3
    usual = {
        "rules": False, "model": "", "url": "", "negatives": False, "out": "", "seed": 0, "limits": {},
        "split": "train", "modules": "all", "limit": 0,
    }  # fmt: skip
    chosen = {
        "rules": True, "model": "m", "url": "http://localhost:1/v1", "negatives": True, "out": "o.jsonl", "seed": 5,
        "limits": {"in_flight": 8, "budget": 0.5}, "split": "dev",
        "modules": "mathematics", "limit": 7,
    }  # fmt: skip
    assert asked == [(("mathlib-views",), usual), (("own.jsonl",), chosen)]


def test_the_options_of_train_reach_it(monkeypatch):
    """Several seeds are trained one after the other, each once."""
    asked: list[tuple] = []
    monkeypatch.setattr(command, "run_training", lambda *given, **named: asked.append((*given, named)) or 4)
    monkeypatch.setattr(console, "train_seeds", lambda place, *given, **named: asked.append((*given, named)) or 5)
    words = ("train", "minilm-math", "--set", "epochs=2", "--out", "mine", "--force")
    assert invoke("train", "minilm-math").exit_code == 4 and invoke(*words, "--set", "seed=3").exit_code == 4
    assert invoke(*words, "--seeds", "2, 0,2").exit_code == 5
    assert asked == [
        ("minilm-math", {}, {"out": "", "force": False}),
        ("minilm-math", {"epochs": 2, "seed": 3}, {"out": "mine", "force": True}),
        ("minilm-math", {"epochs": 2}, [2, 0], {"out": "mine", "force": True}),
    ]
    for more, message in (
        (("--seeds", "0,1", "--set", "seed=3"), "--seeds 0,1 and seed 3 are both given; leave one of them out"),
        (("--on", "pool:2"), "one training runs in this process; for --on pool:2 give several seeds"),
        (("--seeds", "0,x"), "a seed is a whole number from 0, found 'x'"),
    ):
        with pytest.raises(MirblabError, match=message):
            invoke(*words, *more)
    assert len(asked) == 3


def test_what_a_command_prints_is_utf8_safe(mirblab, make_folder):
    """Names and texts of any script."""
    folder = make_folder([{"_id": "Schröder–ℝ", "text": "∀x"}], qrels="q1\tSchröder–ℝ\t1\n", name="größe")
    done = mirblab("add", str(folder))
    assert done.returncode == 0 and "größe" in done.stdout
    assert Path(folder).is_dir()


def test_tables_are_printed_where_the_output_is_not_utf8(command_process, tmp_path):
    """What the encoding lacks is escaped, in tables as in lines."""
    code = """
import sys
from mirblab.app import cli
sys.stdout.reconfigure(encoding="ascii", errors="strict")
sys.argv[1:] = ["search", "mini-qa", "a field"]
cli.main()
"""
    done = command_process.run_code(code, tmp_path, MIRBLAB_HOME=str(tmp_path / "home"))
    assert done.returncode == 0 and "\\u2026" in done.stdout, done.stderr


def test_run_prints_values_and_writes_runs(mirblab, tmp_path):
    """One model on some collections with one command."""
    done = mirblab("run", "bm25", "mini-hol", "mini-qa", "--measures", "nDCG@10,RR", "--out", str(tmp_path / "runs"))
    assert done.returncode == 0, done.stderr
    assert "nDCG@10" in done.stdout and "mini-hol" in done.stdout
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        "mini-hol.bm25.trec.gz",
        "mini-qa.bm25.trec.gz",
    ]


def test_run_writes_what_arqmath_takes(mirblab, make_folder, tmp_path):
    """Topics and posts of its first task: topic, post, rank, score and system."""
    corpus = [{"_id": "17", "text": "a prime"}, {"_id": "5", "text": "prime ideals and prime numbers"}]
    folder = make_folder(corpus, [{"_id": "A.1", "text": "prime"}], "A.1\t17\t2\n", name="answers")
    done = mirblab("run", "bm25", str(folder), "--out", str(tmp_path / "runs"), "--format", "arqmath")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "runs" / "answers.bm25.tsv").read_text().splitlines()
    assert [line.split("\t")[:3] for line in lines] == [["A.1", "17", "1"], ["A.1", "5", "2"]]
    assert {line.split("\t")[4] for line in lines} == {"bm25"}


def test_run_says_that_a_system_found_no_formulas(mirblab):
    """Once, with the numbers, where most queries or documents have none."""
    done = mirblab("run", "structure", "mini-isabelle", "mini-premises")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("have no formula") == 1
    assert "mini-isabelle: 204 of 204 queries and 204 of 204 documents have no formula" in done.stdout


def test_plan_mirb_says_what_each_model_takes(mirblab):
    """Nothing is fetched for it; the paper's own hours stand beside it."""
    done = mirblab("plan", "mirb", "--models", "e5-mistral-7b-instruct")
    assert done.returncode == 0, done.stderr
    assert "e5-mistral-7b-instruct, by collection" in done.stdout and "7B about 64" in done.stdout
    assert "1,350,505" in done.stdout


def test_similar_prints_pairs_and_writes_them(mirblab, make_folder, tmp_path):
    """Brackets in a text are text, and the file holds both texts whole."""
    texts = ["every [b]finite[/b] integral domain is a field", "an integral domain that is finite is a field", "x"]
    corpus = [{"_id": f"s{number}", "text": text} for number, text in enumerate(texts)]
    folder = make_folder(corpus, [{"_id": "q", "text": "field"}], "q\ts0\t1\n", name="notes")
    done = mirblab("similar", str(folder), "--by", "bm25", "-n", "1", "--out", str(tmp_path / "pairs.csv"))
    assert done.returncode == 0, done.stderr
    assert "s0" in done.stdout and "s1" in done.stdout and "[b]finite[/b]" in done.stdout
    assert texts[0] in (tmp_path / "pairs.csv").read_text("utf-8")
    assert "cannot compare" in mirblab("similar", str(folder), "--by", "bm25>maxsim").stderr


def test_run_searches_as_deep_as_the_measures(mirblab, make_folder):
    """R@1101 of a document at rank 1,101 is 1, although 1,000 are usual."""
    corpus = [{"_id": f"d{number}", "text": "prime"} for number in range(1_100)]
    corpus.append({"_id": "last", "text": "prime and much more"})
    folder = make_folder(corpus, [{"_id": "q", "text": "prime"}], "q\tlast\t1\n")
    done = mirblab("run", "bm25", str(folder), "--measures", "R@1101,R@1000")
    assert done.returncode == 0 and re.findall(r"\d\.\d{4}", done.stdout) == ["1.0000", "0.0000"]


def test_a_report_refuses_runs_of_other_collections_and_empty_ones(mirblab, tmp_path):
    """It concluded from them that nothing is judged."""
    (tmp_path / "other.trec").write_text("q1 Q0 d1 1 1.5 theirs\n")
    (tmp_path / "empty.trec").write_text("")
    for name, told in (("other", "none of its 1 queries is in mini-qa (split test)"), ("empty", "is an empty run")):
        done = mirblab("report", "mini-qa", "--run", str(tmp_path / f"{name}.trec"))
        assert done.returncode == 2 and told in done.stderr


def test_a_home_that_cannot_be_a_folder_is_told_in_one_line(command_process):
    """Too long a name, and a user that does not exist."""
    done = command_process.run("build", "mini", MIRBLAB_HOME="/tmp/" + "h" * 300)
    assert done.returncode == 2 and "File name too long" in done.stderr and len(done.stderr.splitlines()) == 1
    assert command_process.run("--version", MIRBLAB_HOME="~nouser/x").returncode == 0
    done = command_process.run("list", "measures", MIRBLAB_HOME="~nouser/x")
    assert done.returncode == 0, done.stderr


def test_run_writes_no_file_over_another(mirblab, make_folder, tmp_path):
    """Two collections of one name are refused; a split other than test is part of a file's name."""
    folders, out = [make_folder(name=f"{parent}/k") for parent in "ab"], tmp_path / "runs"
    done = mirblab("run", "bm25", *map(str, folders), "--out", str(out))
    assert done.returncode == 2 and "would both be written to" in done.stderr and "another --out" in done.stderr
    (folders[0] / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    for split in ("test", "dev"):
        assert mirblab("run", "bm25", str(folders[0]), "--split", split, "--out", str(out)).returncode == 0
    assert sorted(path.name for path in out.iterdir()) == ["k.bm25.trec.gz", "k.dev.bm25.trec.gz"]
