"""operations: everything that writes to a store, as data: what is there before, the command, and how to read the store.

An operation's models are stubs, so that no time goes by in them; files, folders and formats are those of the library.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SUPPORT = Path(__file__).resolve().parents[1] / "support"
TEXTS = [f"lemma {number}: $x^{number}$" for number in range(8)]
made: list[str] = []  # what was computed by this process, one entry a unit of work


def nothing() -> None:
    """Prepare nothing."""


@dataclass(frozen=True)
class Operation:
    """A command on a home folder, with what it returns, which has to be the same however often it was interrupted.

    *prepare* makes what is there before. *run* does the command and returns its value, by name of its parts; what it
    computes is counted in `made`. *read* returns the parts that are stored, without computing: none or some or all,
    each of them right. *is_exact*: the files are the same, too; elsewhere names hold times, or files hold what one
    process wrote. *is_durable*: when it has returned, a loss of power loses nothing of it.
    """

    name: str
    prepare: Callable[[], None]
    run: Callable[[], dict[str, Any]]
    read: Callable[[], dict[str, Any]]
    stubs: Callable[[], None] = nothing
    is_exact: bool = True
    is_durable: bool = True


def digest(value: Any) -> str:
    """Return a short hash of an array, a table, or anything that can be written as JSON."""
    if isinstance(value, pd.DataFrame):
        value = [value.astype(str).values.tolist(), list(value.columns), sorted(map(str, value.attrs.items()))]
    content = value.tobytes() if isinstance(value, np.ndarray) else json.dumps(value, default=str).encode()
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def vector(text: str, n: int = 6) -> np.ndarray:
    """Return a vector that depends on the text alone."""
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).standard_normal(n, dtype=np.float32)


# Vectors and token vectors


def stub_encoder() -> Any:
    from mirblab.encoders.encoding import Encoder

    entry = {
        "id": "stub/model", "revision": "0" * 40, "max_length": 9, "pooling": "mean", "normalise": False,
        "dtype": "float32", "dimensions": 6, "prompts": {"query": "", "document": ""},
    }  # fmt: skip
    return Encoder("stub", entry)


def stub_model() -> None:
    from mirblab.encoders import encoding, token_vectors

    def batches(self: Any, texts: list[str], role: str, instruction: str) -> Any:
        for position, text in enumerate(texts):
            made.append(text)
            yield [position], vector(text)[None]

    def tokens(self: Any, texts: list[str], *_: Any, **__: Any) -> list[np.ndarray]:
        made.extend(texts)
        return [np.stack([vector(word) for word in text.split()]).astype(np.float16) for text in texts]

    encoding.Encoder._batches = batches  # type: ignore[method-assign]
    encoding.Encoder.token_vectors = tokens  # type: ignore[method-assign]
    token_vectors.CHUNK_TEXTS = 3


def encode_texts() -> dict[str, Any]:
    return dict(zip(TEXTS, map(digest, stub_encoder().vectors(TEXTS)), strict=True))


def read_vectors() -> dict[str, Any]:
    vectors, missing = stub_encoder().store().read(TEXTS)
    return {text: digest(vectors[place]) for place, text in enumerate(TEXTS) if place not in missing}


def token_values(stored: Any, missing: Any = ()) -> dict[str, Any]:
    blocks = {text: stored.block(place, place + 1) for place, text in enumerate(TEXTS) if place not in missing}
    return {text: [digest(block), len(block)] for text, block in blocks.items()}


def encode_tokens() -> dict[str, Any]:
    from mirblab.encoders import token_vectors

    return token_values(token_vectors.load_token_vectors(stub_encoder(), TEXTS))


def read_tokens() -> dict[str, Any]:
    from mirblab.encoders import token_vectors

    return token_values(*token_vectors.open_token_store(stub_encoder()).read(TEXTS))


# Runs, the structure index, projections, replies


def a_run(name: str) -> pd.DataFrame:
    rows = [(f"q{query}", f"d{place}", float(vector(f"{name}{query}{place}", 1)[0])) for query in range(3)
            for place in range(4)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    table = table.astype({"query_id": "category", "doc_id": "category"})
    table.attrs = {"system": name}
    return table


def run_store() -> Any:
    from mirblab.core import paths
    from mirblab.retrieval.run_store import RunStore

    return RunStore(paths.cache() / "runs")


def search_runs() -> dict[str, Any]:
    store = run_store()
    for name in ("one", "two"):
        if store.get(name, 4) is None:
            made.append(name)
            store.put(name, 4, a_run(name))
    return read_runs()


def read_runs() -> dict[str, Any]:
    found = {name: run_store().get(name, 4) for name in ("one", "two")}
    return {name: digest(table) for name, table in found.items() if table is not None}


FORMULAS = [rf"x^{{{number}}} + \frac{{a_{number}}}{{y}}" for number in range(9)]


def small_batches() -> None:
    from mirblab.formula import index

    index._WORTH_STORING = 1
    index.BATCH_FORMULAS, index.SERIAL_BATCHES = 4, 9


def structure() -> dict[str, Any]:
    from mirblab.formula import index

    whole = index.build_segments
    index.build_segments = lambda *given: made.append("index") or whole(*given)
    return _searched(index.stored_index(FORMULAS))


def _searched(index: Any) -> dict[str, Any]:
    rows, positions, scores = index.search([FORMULAS[2], "x+y"], 5)
    return {"ids": index.ids, "found": [digest(part) for part in (rows, positions, scores)]}


def read_structure() -> dict[str, Any]:
    from mirblab.core import paths
    from mirblab.core.errors import MirblabError
    from mirblab.formula import index
    from mirblab.formula.index import Index

    try:
        return _searched(Index.open(paths.cache() / "structure" / index._formulas_digest(FORMULAS)))
    except (MirblabError, FileNotFoundError):
        return {}


def grow_index() -> None:
    from mirblab.core import paths
    from mirblab.formula.index import Index

    Index.build(zip("abcde", FORMULAS, strict=False), paths.cache() / "own")


def add_formulas() -> dict[str, Any]:
    from mirblab.core import paths
    from mirblab.formula.index import Index

    index = Index.open(paths.cache() / "own")
    if "f" not in index.ids:
        made.append("formulas")
        index = index.add(zip("fghi", FORMULAS[5:], strict=True))
    return _grown(index.merge())


def _grown(index: Any) -> dict[str, Any]:
    positions = index.search(["x+y"], 9)[1]
    return {"ids": index.ids, "found": [index.ids[place] for place in positions]}


def read_index() -> dict[str, Any]:
    from mirblab.core import paths
    from mirblab.formula.index import Index

    index = Index.open(paths.cache() / "own")  # it was there before, so it has to be there
    return _grown(index) if len(index) == 9 else {}


def stub_umap() -> None:
    from mirblab.analysis import projection

    def umap(vectors: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
        made.append("map")
        return np.stack([vectors.sum(axis=1), vectors[:, 0]], axis=1).astype(np.float64) + settings["seed"]

    projection._fit_umap = umap


def project() -> dict[str, Any]:
    from mirblab.analysis import projection

    vectors = np.stack([vector(text) for text in TEXTS])
    return {str(seed): digest(projection.project(vectors, TEXTS, seed=seed)) for seed in (0, 1)}


REPLIES = {f"question {number}": f"answer {number}" for number in range(4)}


def replies() -> Any:
    from mirblab.encoders.hosted.chat import ReplyStore, read_prompt

    return ReplyStore("stub", read_prompt("rephrase"))


def ask() -> dict[str, Any]:
    from mirblab.encoders.hosted.chat import Reply

    store = replies()
    for question, answer in REPLIES.items():
        if question not in store:
            made.append(question)
            store.put(question, Reply(answer, "stop"))
    return {question: store.get(question).text for question in REPLIES}


def read_replies() -> dict[str, Any]:
    store = replies()
    return {question: store.get(question).text for question in REPLIES if question in store}


# Collections


def tiny_collection() -> None:
    folder = Path(os.environ["MIRBLAB_HOME"]) / "given" / "own"
    (folder / "qrels").mkdir(parents=True)
    for stem, letter in (("corpus", "d"), ("queries", "q")):
        rows = [json.dumps({"_id": f"{letter}{number}", "text": f"{stem} {number}"}) for number in range(4)]
        (folder / f"{stem}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    lines = "".join(f"q{number}\td{number}\t1\n" for number in range(4))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines, encoding="utf-8")


def add_collection() -> dict[str, Any]:
    from mirblab.sources import catalogue

    made.append("collection")
    catalogue.add(Path(os.environ["MIRBLAB_HOME"]) / "given" / "own", "mine")
    return _collections("mine")


def _collections(*names: str) -> dict[str, Any]:
    from mirblab.sources import catalogue

    loaded = {name: catalogue.load(name) for name in names if name in catalogue.collection_names()}
    return {name: [one.fingerprint, one.card.task, len(one.qrels)] for name, one in loaded.items()}


LATEX = r"""\newtheorem{lemma}{Lemma}
\begin{lemma}\label{one} Every finite group of prime order is cyclic, as one sees. \end{lemma}
\begin{proof} Take an element that is not the unit; its order divides a prime number. \end{proof}
\begin{lemma}\label{two} A cyclic group is abelian, and so is one of prime order. \end{lemma}
\begin{proof} By \ref{one} it is generated by an element, whose powers commute at once. \end{proof}
"""


def own_latex() -> None:
    folder = Path(os.environ["MIRBLAB_HOME"]) / "given" / "paper"
    folder.mkdir(parents=True)
    (folder / "paper.tex").write_text(LATEX, encoding="utf-8")


def build_own() -> dict[str, Any]:
    from mirblab.sources import catalogue

    made.append("collections")
    catalogue.build("own", str(Path(os.environ["MIRBLAB_HOME"]) / "given" / "paper"))
    return read_own()


def read_own() -> dict[str, Any]:
    return _collections("paper-qa", "paper-premise")


def metamath_database() -> None:
    from metamath_database import LOGIC, MAIN

    folder = Path(os.environ["MIRBLAB_HOME"]) / "given"
    folder.mkdir(parents=True)
    (folder / "logic.mm").write_text(LOGIC, encoding="utf-8")
    (folder / "set.mm").write_text(MAIN, encoding="utf-8")


def build_metamath() -> dict[str, Any]:
    from mirblab.sources import catalogue

    made.append("collections")
    catalogue.build("metamath", str(Path(os.environ["MIRBLAB_HOME"]) / "given" / "set.mm"))
    return read_metamath()


def read_metamath() -> dict[str, Any]:
    from mirblab.core import paths

    names = sorted(path.name for path in paths.data().glob("[!.]*"))
    return {name: digest(_contents(paths.data() / name)) for name in names}


def few_miniatures() -> None:
    from mirblab.sources import mini

    kept = ("mini-qa", "mini-lean", "mini-hol", "mini-bridges")
    for name in {*mini.COLLECTIONS} - {*kept}:
        del mini.COLLECTIONS[name]


def build_mini() -> dict[str, Any]:
    from mirblab.sources import catalogue

    made.append("collections")
    catalogue.build("mini")
    return read_metamath()


def _contents(folder: Path) -> list[tuple[str, str]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return [(path.relative_to(folder).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


# What others measured, and files for people


def given_run() -> None:
    from mirblab.data import runs

    tiny_collection()
    add_collection()
    run = a_run("one")
    run.attrs["system"] = "theirs"
    runs.write_run(run, Path(os.environ["MIRBLAB_HOME"]) / "given" / "theirs.trec")


def import_run() -> dict[str, Any]:
    from mirblab.evaluation import imported

    made.append("import")
    imported.import_results(
        Path(os.environ["MIRBLAB_HOME"]) / "given" / "theirs.trec", collection="mine", origin="theirs"
    )
    return read_run()


def read_run() -> dict[str, Any]:
    from mirblab.evaluation import imported
    from mirblab.sources import catalogue

    if "theirs" not in imported.imported_systems():
        return {}
    return {"theirs": digest(imported.read_imported_run("theirs", catalogue.load("mine")))}


def given_values() -> None:
    folder = Path(os.environ["MIRBLAB_HOME"]) / "given"
    folder.mkdir(parents=True)
    lines = ["system,collection,measure,value", "theirs,mini-qa,nDCG@10,0.5", "theirs,mini-wfb,nDCG@10,0.25"]
    (folder / "values.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def import_values() -> dict[str, Any]:
    from mirblab.evaluation import imported

    made.append("import")
    imported.import_results(Path(os.environ["MIRBLAB_HOME"]) / "given" / "values.csv", origin="theirs")
    return read_values()


def read_values() -> dict[str, Any]:
    from mirblab.evaluation import imported

    return {"values": digest(imported.read_imported_values())} if imported.imported_systems() else {}


def write_run() -> dict[str, Any]:
    from mirblab.data import runs

    made.append("file")
    runs.write_run(a_run("one"), Path(os.environ["MIRBLAB_HOME"]) / "out" / "one.trec.gz")
    return read_file()


def read_file() -> dict[str, Any]:
    from mirblab.data import runs

    path = Path(os.environ["MIRBLAB_HOME"]) / "out" / "one.trec.gz"
    return {"run": digest(runs.read_trec_run(path))} if path.exists() else {}


def write_table() -> dict[str, Any]:
    from mirblab.app import suite_files
    from mirblab.display import result_tables

    made.append("table")
    suite_files.hand_runs.current_commit = lambda: ""  # it would ask git each time
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"])
    suite_files.output("notebook", "mini").table(result_tables.table(frame, "Two values."), "values")
    return read_table()


def read_table() -> dict[str, Any]:
    from mirblab.core import paths

    files = sorted(paths.figures().rglob("values.*"))  # in the folder of what was run by hand
    return {path.name: digest(path.read_text("utf-8")) for path in files}


# Judgements


GRADES = {("q0", "d0"): 0, ("q1", "d0"): 2, ("q1", "d1"): 1}


def begun_judging() -> None:
    """Write a first judgement, which nothing that happens later may lose."""
    tiny_collection()
    add_collection()
    judging().record("q0", "d0", 2)


def judging() -> Any:
    from mirblab.analysis.judging import Judging
    from mirblab.sources import catalogue

    collection = catalogue.load("mine")
    collection = replace(collection, card=replace(collection.card, relevance_levels=[0, 1, 2]))
    return Judging(collection, [], "anna", pd.DataFrame(list(GRADES), columns=["query_id", "doc_id"]))


def record_judgements() -> dict[str, Any]:
    session = judging()
    for pair, grade in GRADES.items():
        if session.relevance_of(*pair) != grade:
            made.append("judgement")
            session.record(*pair, grade)
    return read_judgements()


def read_judgements() -> dict[str, Any]:
    session = judging()
    first = session.path.read_bytes().splitlines()[0]  # was there before, so it has to be there
    grades = {str(pair): session.relevance_of(*pair) for pair in GRADES}
    if json.loads(first)["relevance"] != 2 or grades["('q0', 'd0')"] is None:
        return {"first": "lost"}
    return {pair: grade for pair, grade in grades.items() if grade is not None and (pair, grade) != ("('q0', 'd0')", 2)}


# Training


def tiny_recipe() -> None:
    from tiny_training import write_bert

    folder = Path(os.environ["MIRBLAB_HOME"])
    (folder / "registry").mkdir()
    rest = 'pooling = "none"\nnormalise = true\ndtype = "float32"\ndimensions = 16\nmax_length = 48\n'
    rest += 'prompts = { query = "", document = "" }\nlicence = "MIT"\n'
    base = rest.replace("none", "mean")
    model = write_bert(folder / "given")
    entries = f'[tiny]\nid = "{model}"\nrevision = ""\n{base}[still]\ntrained = true\n{rest}'
    (folder / "registry" / "encoders.toml").write_text(entries, encoding="utf-8")
    shape = 'batch = 6\nmax_length = 16\nwarmup = 2\nlearning_rate = 1e-2\nprecision = "float32"\nevaluate_rows = 0\n'
    recipe = f'[still]\nbase = "static:tiny"\nlabel = "Still"\n{shape}checkpoint_every = 2\nepochs = 1\n'
    (folder / "registry" / "trained.toml").write_text(recipe, encoding="utf-8")


def count_steps() -> None:
    import torch

    from mirblab.train import loop

    torch.set_num_threads(1)
    whole = loop.Journal.write

    def write(self: Any, line: Any) -> None:
        made.append("step")
        whole(self, line)

    loop.Journal.write = write  # type: ignore[method-assign]


def train() -> dict[str, Any]:
    from tiny_training import made_up_views

    from mirblab import train

    train.train("still", made_up_views())
    return read_model()


def read_model() -> dict[str, Any]:
    from mirblab.core import paths

    folder = paths.models() / "still"
    return {"model": digest(_contents(folder))} if folder.exists() else {}


OPERATIONS = {
    one.name: one
    for one in (
        Operation("vectors", nothing, encode_texts, read_vectors, stub_model, is_exact=False),
        Operation("token vectors", nothing, encode_tokens, read_tokens, stub_model, is_exact=False),
        Operation("runs", nothing, search_runs, read_runs),
        Operation("structure index", nothing, structure, read_structure, small_batches),
        # a killed one leaves the generation before, which the next change removes
        Operation("growing index", grow_index, add_formulas, read_index, small_batches, is_exact=False),
        Operation("projections", nothing, project, lambda: {}, stub_umap, is_durable=False),
        Operation("replies", nothing, ask, read_replies, is_exact=False),
        Operation("add", tiny_collection, add_collection, lambda: _collections("mine")),
        Operation("build own", own_latex, build_own, read_own),
        Operation("build metamath", metamath_database, build_metamath, read_metamath),
        Operation("build mini", nothing, build_mini, read_metamath, few_miniatures),
        Operation("import a run", given_run, import_run, read_run),
        Operation("import values", given_values, import_values, read_values),
        Operation("judgements", begun_judging, record_judgements, read_judgements, is_exact=False),  # holds times
        Operation("write a run", nothing, write_run, read_file),
        Operation("write a table", nothing, write_table, read_table, is_exact=False),  # its record holds a time
        Operation("train", tiny_recipe, train, read_model, count_steps, is_exact=False),  # its log holds times
    )
}
EXHAUSTIVE = [name for name in OPERATIONS if name not in ("build mini", "train")]


def start(name: str) -> Operation:
    """Return an operation, with its stubs and all that it imports in this process, so that a fork is quick."""
    sys.path.insert(0, str(SUPPORT))
    one = OPERATIONS[name]
    one.stubs()
    return one


def tree(home: Path) -> dict[str, str]:
    """Return the files of a home with a digest of each, without what was given and what is unfinished."""
    paths = sorted(path for path in home.rglob("*") if path.is_file())
    names = {path.relative_to(home).as_posix(): path for path in paths}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in names.items()
        if not name.startswith("given/") and ".partial" not in name
    }


def fresh(source: Path, target: Path) -> None:
    """Make *target* a copy of *source*."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
