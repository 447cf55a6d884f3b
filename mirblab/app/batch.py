"""batch: notebooks executed by papermill, in parallel, except those whose outputs are fresh."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mirblab.analysis.searching import free_text, similar_statements
from mirblab.app import stamps, suite_files
from mirblab.app.hand_runs import SUITE_RUN
from mirblab.app.places import Place, explain_failure, open_place, whole_path
from mirblab.app.suite_files import Job
from mirblab.core import atomic_files, paths, registry, text_files
from mirblab.core.errors import MirblabError
from mirblab.core.terminal import say
from mirblab.data.collection import Collection
from mirblab.data.parts import StoredTexts, texts_at
from mirblab.display.table_formats import Table
from mirblab.encoders import summary
from mirblab.encoders.cache import SUFFIX, VectorStore, space_digest, text_keys
from mirblab.encoders.encoding import Encoder, encoder
from mirblab.encoders.entry import is_hosted
from mirblab.encoders.token_vectors import TokenStore, open_token_store
from mirblab.retrieval import codes, dense, rerank
from mirblab.retrieval.systems import System, parse_composed_name, system
from mirblab.sources import catalogue
from mirblab.sources.own.tex_files import document_files


def count_cells(partial: Path) -> tuple[int, int]:
    """Return how many code cells of the running notebook have been executed, and how many there are."""
    try:
        cells = json.loads(partial.read_text("utf-8"))["cells"]
    except (OSError, ValueError, KeyError):  # not written yet, or half written
        return 0, 0
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return sum(cell["execution_count"] is not None for cell in code), len(code)


def run_notebook(
    suite: str, notebook: str, parameters: dict[str, Any], partial: str, force: bool = False, forked: bool = False
) -> tuple[str, float]:
    """Execute a suite's notebook in this process; return the problem ("" for none) and the seconds that it took.

    *partial* is the name of the unfinished copy. After waiting for another batch it runs only if it is not fresh, or by
    *force*. With *forked*, all kernels of this process are forked from one that has imported the libraries.
    """
    job = suite_files.named_job(suite, notebook, parameters)
    os.environ.update(MIRBLAB_HOME=str(paths.home()), PYDEVD_DISABLE_FILE_VALIDATION="1")
    os.environ[SUITE_RUN] = json.dumps([job.suite, job.source.stem, job.part])
    with stamps.hold_lock(job):
        contents: dict[str, bytes] = {}
        if not force and not stamps.reason_to_run(job, contents):
            return "", 0.0
        return _execute(job, job.executed.with_name(partial), job.key(contents), forked)


def _execute(job: Job, partial: Path, key: str, forked: bool) -> tuple[str, float]:
    log, failed = job.executed.with_suffix(".log"), job.executed.with_name(f"{job.name}.failed.ipynb")
    before, start = stamps.list_files(job), time.perf_counter()
    with _errors_to(log):
        problem = _execute_with_papermill(job, partial, failed, forked)
    spent = time.perf_counter() - start
    if problem:
        stamps.record_run(job, "", spent, before)
        return problem, spent
    failed.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    _move(partial, job.executed)
    stamps.record_run(job, key, spent, before)
    return "", spent


@contextlib.contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Have standard error of this process written to *log*: messages of kernels that start and stop would otherwise
    stand between the progress bars.
    """
    usual = os.dup(2)
    try:
        with atomic_files.open_to_write(log) as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(usual, 2)
        os.close(usual)


FORKED_FROM = 8  # notebooks; importing all libraries before the first one takes as long as some notebooks
# Kernels that start at the same time may draw the same port, and the later one ends; it is then started again.
KERNEL_STARTS = 3
KERNEL_START_SECONDS = 180


def _execute_with_papermill(
    job: Job, partial: Path, failed: Path, forked: bool, starts_left: int = KERNEL_STARTS
) -> str:
    import papermill
    from traitlets.config import Config

    manager: dict[str, Any] = {}
    if forked:
        from mirblab.app.kernels import ForkedKernelManager

        manager = {"kernel_manager_class": ForkedKernelManager}
    try:
        papermill.execute_notebook(
            str(job.source),
            str(partial),
            job.parameters,
            kernel_name="python3",
            progress_bar=False,
            cwd=str(job.source.parent),
            start_timeout=KERNEL_START_SECONDS,
            iopub_timeout=120,
            # Otherwise every start of a kernel warns that it communicates over TCP without encryption.
            config=Config({"KernelManager": {"transport_encryption": "auto"}}),
            **manager,
        )
    except Exception as error:  # noqa: BLE001  whatever the notebook raised is reported with its cell
        # jupyter_client raises a plain RuntimeError for a kernel that did not start; then no cell has run.
        if type(error) is RuntimeError and not count_cells(partial)[0] and starts_left > 1:
            return _execute_with_papermill(job, partial, failed, forked, starts_left - 1)
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, papermill.PapermillExecutionError):
            # Papermill adds cells of its own, so the cell is named as the kept copy shows it, and by its first line.
            first = next(iter(error.source.strip().splitlines()), "")
            text = f"cell [{error.exec_count}] '{first[:60]}': {error.ename}: {error.evalue}"
        if not partial.is_file():
            return f"{text} (no copy was kept)"
        atomic_files.rename_path(partial, failed)
        return f"{text} (kept {failed.name})"
    return ""


def _move(partial: Path, executed: Path) -> None:
    import nbformat
    from nbformat.sign import NotebookNotary

    book = nbformat.read(partial, as_version=4)
    book.metadata.pop("papermill", None)
    for cell in book.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
    with atomic_files.write_atomically(executed) as beside:
        nbformat.write(book, beside)
    with contextlib.suppress(OSError, sqlite3.Error):  # Jupyter's folder cannot be written to
        NotebookNotary().sign(book)  # JupyterLab does not show the MathML of unsigned notebooks
    partial.unlink()


TEXTS_PER_SECOND = 70.0  # MiniLM on two cores
PAIRS_PER_SECOND = 50.0  # a cross-encoder of MiniLM's size on two cores; larger ones are slower in proportion
MINILM_SIZE = 22.7  # millions of parameters
TOKEN_BYTES = 130_000  # of a text's token vectors, float16
TERMS_PER_TEXT = 200  # of a learned sparse vector, of which each takes 8 bytes
SECONDS_PER_RUN = 0.35  # of a run whose texts are encoded
_BY_TOKENS = ("late", "rerank")  # kinds of systems that may encode the tokens of texts
SMALL = 2_000  # documents, in which a search that encodes nothing takes seconds


@dataclass(frozen=True)
class MissingRun:
    """A run that is not stored yet, and how many texts must be encoded and pairs scored for it, at most."""

    system: str
    collection: str
    n_texts: int
    n_bytes: int
    seconds: float
    shares_texts_with: frozenset[str] = frozenset()  # collections that were counted before
    n_pairs: int = 0  # of a query and a document, for a reranker
    dollars: float = 0.0  # for a hosted encoder, by `summary.estimate_dollars`; NaN: its price is not known


@dataclass(frozen=True)
class Outcome:
    """The *state* of a notebook: "ran", "failed" with cell and error, or "fresh" because another batch has run it."""

    job: Job
    state: str
    seconds: float = 0.0
    problem: str = ""


def find_stale(jobs: Sequence[Job]) -> list[tuple[Job, str]]:
    """Return the jobs that are not fresh, each with the reason."""
    contents: dict[str, bytes] = {}
    reasons = [(job, stamps.reason_to_run(job, contents)) for job in jobs]
    return [(job, reason) for job, reason in reasons if reason]


def missing_runs(jobs: Sequence[Job]) -> list[MissingRun]:
    """Return the runs that the jobs need and that are not stored yet, parts before their compositions.

    What reads token vectors comes first, since these passes through the model store the vectors of the texts, too.
    A run of a small collection for which nothing is encoded is left to the notebook: a search uses one core, so it
    would leave the others idle here.
    """
    needed: dict[str, list[str]] = {}
    for job in jobs:
        for collection_name in job.collections:
            needed.setdefault(collection_name, []).extend(job.systems)
    return find_missing(needed, SMALL)


def find_missing(needed: Mapping[str, Iterable[str]], smallest: int = 0, split: str = "test") -> list[MissingRun]:
    """Return the runs of the systems *needed* by collection that are not stored, in the order of `missing_runs`.

    Of a collection of fewer than *smallest* documents only those for which something may be encoded.
    """
    missing, counted = [], dict[Path | str, dict[int, str]]()
    for collection_name in sorted(needed):
        collection = catalogue.load(collection_name, split)
        names = dict.fromkeys(part.name for name in needed[collection_name] for part in with_parts(system(name)))
        for name in sorted(names, key=lambda name: not _reads_tokens(system(name))):
            if not system(name).is_stored(collection):
                run = _missing_run(system(name), collection, collection_name, counted)
                if run.n_texts or _reads_tokens(system(name)) or len(collection.doc_ids) >= smallest:
                    missing.append(run)
    return missing


def _reads_tokens(one: System) -> bool:
    return one.settings["kind"] in _BY_TOKENS


def with_parts(whole: System) -> list[System]:
    """Return the system after all systems that it is composed of."""
    return [*(deeper for part in whole.parts for deeper in with_parts(part)), whole]


def encoders_in(suite: str) -> list[str]:
    """Return the encoders of the systems that a suite names, also of those that cannot be used here."""
    names: dict[str, None] = {}
    for name in suite_files.systems_named_in(suite):
        with contextlib.suppress(MirblabError):  # a reranker that is not trained yet
            names |= {part.settings["encoder"]: None for part in with_parts(system(name)) if "encoder" in part.settings}
    return list(names)


def reranked_in(suite: str) -> dict[str, int]:
    """Return how many documents a query each cross-encoder scores that a suite names, also one that cannot be used.

    The shortlists of all first stages are counted, each at its largest depth.
    """
    found: dict[str, int] = {}
    entries, depths = registry.read_registry("rerankers"), dict[tuple[str, str], int]()
    for name in suite_files.systems_named_in(suite):
        settings = parse_composed_name(name) or {}
        if settings.get("kind") == "rerank":
            depths[settings["first"], settings["reranker"]] = settings["depth"]
    for given in (entry.get("parameters", {}) for entry in suite_files.read_suite_file(suite)["notebook"]):
        for reranker in given.get("rerankers", []):
            for first in given["systems"]:
                key = first.removesuffix("?"), reranker.removesuffix("?")
                depths[key] = max(depths.get(key, 0), *given["depths"])
    for (_, reranker), depth in depths.items():
        if entries.get(reranker, {}).get("kind") == "cross-encoder":
            found[reranker] = found.get(reranker, 0) + depth
    return found


def _missing_run(
    system: System, collection: Collection, collection_name: str, counted: dict[Path | str, dict[int, str]]
) -> MissingRun:
    n_texts = n_bytes = n_pairs = 0
    seconds, dollars, owners = SECONDS_PER_RUN, 0.0, set[str]()
    model = _encoder_of(system)
    if system.settings["kind"] == "rerank":
        n_pairs = len(collection.queries) * min(system.settings["depth"], len(collection.doc_ids))
        size = registry.read_registry("rerankers").get(system.settings["reranker"], {}).get("size", "")
        seconds += n_pairs / PAIRS_PER_SECOND * summary.millions(size) / MINILM_SIZE if size else 0.0
    if model and _reads_tokens(system):
        owners |= _count_missing(model, collection, counted, open_token_store, collection_name)[2]
        n_texts = _count_missing(model, collection, {}, open_token_store)[0]  # shortlists differ in their documents
        n_texts = min(n_texts, n_pairs + len(collection.queries)) if n_pairs else n_texts
        n_bytes = n_texts * TOKEN_BYTES
    if model and "encoder" in system.settings:
        store = open_token_store if model.is_sparse else Encoder.store
        n_passages, n_words, others = _count_missing(model, collection, counted, store, collection_name)
        owners |= others
        dollars = summary.estimate_dollars(model.entry, n_words)
        n_bytes += n_passages * (8 * TERMS_PER_TEXT if model.is_sparse else 4 * model.dimensions + 24)
        n_texts = max(n_texts, n_passages)
    seconds += n_texts / encoding_rate()
    others = owners - {collection_name}
    return MissingRun(system.name, collection_name, n_texts, n_bytes, seconds, frozenset(others), n_pairs, dollars)


def _encoder_of(one: System) -> Encoder | None:
    """Return the encoder whose vectors the system itself reads, those of tokens included, or None."""
    settings = one.settings
    if settings["kind"] == "rerank":
        settings = rerank.reranker_settings(settings["reranker"])
    return encoder(settings["encoder"], settings.get("compat", "")) if settings.get("encoder") else None


def _n_missing(model: Encoder, collection: Collection) -> int:
    """Return how many texts of a collection are not stored yet, each once."""
    return _count_missing(model, collection, {}, open_token_store if model.is_sparse else Encoder.store)[0]


def _count_missing(
    model: Encoder,
    collection: Collection,
    counted: dict[Path | str, dict[int, str]],
    open_store: Callable[[Encoder, str, str], VectorStore | TokenStore],
    owner: str = "",
) -> tuple[int, int, set[str]]:
    """Return how many texts are not stored yet, each once over all calls with the same *counted*, how many words they
    have, and for which collections the others of them were counted.

    Collections share vectors, so that a text may be encoded for another collection before, also in another role and
    for its token vectors. *counted* has, by the store of its vectors, and by the model's input whatever the role, and
    by the text's hash, the collection for which each text was counted; *owner* is this one's name.
    """
    n_texts, n_words, owners = 0, 0, set[str]()
    for texts, role in ((collection.texts, "document"), (collection.query_texts, "query")):
        store = open_store(model, role, collection.card.instruction)
        # A role with the same inputs takes these vectors, and a pass for token vectors stores them.
        inputs = _inputs_digest(model, collection.card.instruction, role)
        seen, owner_of = (counted.setdefault(path, {}) for path in (store.path, inputs))
        missing = store.missing(texts)
        for start in range(0, len(missing), dense.CHUNK_DOCS):
            for text in texts_at(texts, missing[start : start + dense.CHUNK_DOCS]):
                owners.add(owner_of.setdefault(key := hash(text), owner))
                if key in seen:
                    continue
                seen[key] = owner
                n_texts, n_words = n_texts + 1, n_words + len(text.split())
    return n_texts, n_words, owners


def _inputs_digest(model: Encoder, instruction: str, role: str) -> str:
    """Return a digest that two roles share in which the model gets the same input for a text."""
    return space_digest("", model.space(role, instruction) | {"role": ""})


def stored_shares(encoders: Sequence[str] | None = None) -> dict[tuple[str, str], float]:
    """Return the share of encoded texts, 0 to 1, by encoder and collection (on disk) as MIRB's paper names it."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    groups = catalogue.collection_groups()
    for collection in (catalogue.load(name) for name in catalogue.built_names() if name.startswith("mirb-")):
        n_texts = len(set(collection.texts)) + len(set(collection.query_texts))
        for name in summary.published_encoders() if encoders is None else encoders:
            key = name, groups.get(collection.name, collection.card.paper)
            n_stored, n_all = counts.get(key, (0, 0))
            counts[key] = n_stored + n_texts - _n_missing(encoder(name), collection), n_all + n_texts
    return {key: n_stored / n_all for key, (n_stored, n_all) in counts.items()}


def encoding_rate() -> float:
    """Return texts encoded per second as measured by the last batch on this machine, else `TEXTS_PER_SECOND`."""
    try:
        rate = json.loads((paths.cache() / "rate.json").read_text("utf-8"))["texts_per_second"]
    except (OSError, KeyError, TypeError, ValueError, RecursionError):  # absent or damaged: the next batch writes it
        return TEXTS_PER_SECOND
    return float(rate) if stamps.is_duration(rate) and rate > 0 else TEXTS_PER_SECOND


def verify_rate(path: Path) -> list[str]:
    """Return a line if the file of the measured speed is damaged; the next batch replaces it."""
    try:
        sound = stamps.is_duration(text_files.read_json(path)["texts_per_second"])
    except (OSError, KeyError, TypeError, ValueError):
        sound = False
    return [] if sound else [f"{path} is damaged; a default is used until the next batch writes it again"]


def expected_seconds(job: Job) -> float:
    """Return the seconds of the notebook's last run, else those that its suite expects."""
    with contextlib.suppress(MirblabError):
        if stamp := stamps.read_stamp(job):
            return stamp.seconds
    return job.seconds


def total_seconds(jobs: Sequence[Job], runs: Sequence[MissingRun], n_workers: int, n_machines: int = 1) -> float:
    """Return the expected seconds for the missing runs, on all cores of *n_machines* like this one, and then for the
    notebooks, in *n_workers* processes.
    """
    of_jobs = [expected_seconds(job) for job in jobs]
    return sum(run.seconds for run in runs) / n_machines + max(sum(of_jobs) / n_workers, *of_jobs, 0.0)


def make_missing_runs(todo: Sequence[MissingRun], tell: Callable[[str], None]) -> None:
    """Make the missing runs, one after another, each with all cores and a progress bar."""
    groups = [(name, list(steps)) for name, steps in groupby(todo, key=lambda step: step.collection)]
    seconds_left, n_encoded, seconds_encoding = sum(step.seconds for step in todo), 0, 0.0
    for number, (name, steps) in enumerate(groups, start=1):
        names, n_texts = ", ".join(step.system for step in steps), sum(step.n_texts for step in steps)
        tell(f"[{number}/{len(groups)}] {name}: {names}; {n_texts:,} texts to encode; about {seconds_left:.0f} s left")
        seconds_left -= sum(step.seconds for step in steps)
        collection = catalogue.load(name)
        for step in steps:
            model = _transformer_of(step.system) if step.n_texts else None
            n_missing = _n_missing(model, collection) if model else 0  # a run by token vectors may have stored some
            start = time.perf_counter()
            system(step.system).search(collection)
            spent = time.perf_counter() - start
            if n_missing:
                n_encoded, seconds_encoding = n_encoded + n_missing, seconds_encoding + spent
                if n_encoded > 500:
                    rate = json.dumps({"texts_per_second": round(n_encoded / seconds_encoding, 1)})
                    atomic_files.try_to_store("speeds", atomic_files.write_text, paths.cache() / "rate.json", rate)


def make_runs_at(place: Place, todo: Sequence[MissingRun], tell: Callable[[str], None], split: str = "test") -> None:
    """Make the missing runs in the processes of a place, several at once, to the same bytes as `make_missing_runs`.

    MirblabError for the first that fails; what is finished is stored.
    """
    stages, number, start = plan_tasks(todo, split), 0, time.perf_counter()
    n_tasks = sum(map(len, stages))
    seconds_left = seconds_expected = sum(task.seconds for tasks in stages for task in tasks)
    for tasks in stages:
        for task, notes in _results(place, tasks):
            number, seconds_left = number + 1, seconds_left - task.seconds
            rate = (time.perf_counter() - start) / (seconds_expected - seconds_left)
            tell(f"[{number}/{n_tasks}] {task.shown}; about {max(0.0, seconds_left) * rate:.0f} s left")
            for note in notes:
                tell(f"note: {note}")


def _results(place: Place, tasks: Sequence[Task]) -> Iterator[tuple[Task, list[str]]]:
    """Yield each task when a worker has finished it, and its lines; a task is sent when those before it are finished.

    MirblabError for the first that fails.
    """
    unsent, waiting, finished = list(tasks), dict[Future[list[str]], Task](), list[Task]()
    while unsent or waiting:
        ready = [task for task in unsent if all(one in finished for one in task.after)]
        unsent = [task for task in unsent if task not in ready]
        waiting |= {place.submit(task.function, *task.arguments): task for task in ready}
        done = wait(waiting, return_when=FIRST_COMPLETED).done
        while done:
            future = done.pop()
            task = waiting.pop(future)
            try:
                notes = _made(future, task.shown)
            except MirblabError:
                if task.is_paid:  # what others have begun is paid for, so its vectors are stored before all is ended
                    wait([other for other in waiting if not other.cancel()])
                raise
            del future  # kept, it would have Dask do its task again if the worker that has the result is lost
            finished.append(task)
            yield task, notes


def _made(future: Future[list[str]], shown: str) -> list[str]:
    try:
        return future.result()
    except Exception as error:  # whatever a worker raised is reported with what it was to make
        reason = explain_failure(error)
        raise MirblabError(
            f"{shown}: {reason}; finished runs and vectors are stored, and the same command goes on"
        ) from error


def make_runs(wanted: Sequence[tuple[str, str]], split: str = "test") -> list[str]:
    """Make runs, each of a system on a collection, one after another; return a line for each that is not stored."""
    lost = []
    for collection_name, pairs in groupby(wanted, key=lambda pair: pair[1]):
        collection = catalogue.load(collection_name, split)
        for name, _ in pairs:
            system(name).search(collection)
            if not system(name).is_stored(collection):
                lost.append(f"{name} on {collection_name} cannot be stored by a worker, and is made again when needed")
    return lost


def store_vectors(
    system_name: str, collection_name: str, split: str, start: int, stop: int, left_out: Sequence[int]
) -> list[str]:
    """Store the vectors of the documents *start* to *stop* of a collection, except those at *left_out*, for a dense
    system; return a line if they cannot be stored.
    """
    model, collection = _dense_encoder(system_name), catalogue.load(collection_name, split)
    rows = np.setdiff1d(np.arange(start, stop), np.asarray(left_out, np.int64))
    texts, instruction = texts_at(collection.texts, rows), collection.card.instruction
    model.vectors(texts, "document", instruction)
    n_lost = model.missing(texts, "document", instruction)
    lost = f"{n_lost:,} vectors of {system_name} on {collection_name} cannot be stored by a worker, and are made again"
    return [lost] if n_lost else []


@dataclass(frozen=True)
class Cluster:
    """Processes in which runs are made, several at once, and searches, as `lab.cluster` opens them."""

    place: Place

    def make_runs(self, systems: Sequence[str], collections: Sequence[str], split: str = "test") -> int:
        """Make the runs of *systems* on *collections* that are not stored, and return how many were missing.

        Parts of compositions are among them. Everything that searches with these names afterwards, here or elsewhere
        with the same home folder, reads the stored runs. MirblabError for the first run that cannot be made.
        """
        missing = find_missing(dict.fromkeys(map(whole_path, collections), systems), split=split)
        make_runs_at(self.place, missing, say, split)
        return len(missing)

    def search(
        self,
        text: str | Sequence[str] | os.PathLike[str],
        collection: str,
        by: str = free_text.DEFAULT_SYSTEM,
        *,
        depth: int = 10,
    ) -> Table:
        """Return the table of `lab.search`, which one of the processes makes; of a LaTeX file they need the text only.

        *collection* is a name, or a folder that they see. What the search needs, such as an index, is made there.
        """
        task: Callable[..., Table] = partial(free_text.search, depth=depth)
        if isinstance(text, os.PathLike) and os.path.isfile(text):
            text, contents = _read_document(Path(text))
            task = partial(search_document, contents, depth=depth)
        return self.place.run(task, text, whole_path(collection), by)

    def similar(self, left: str, right: str | None = None, by: str = "minilm", **options: Any) -> Table:
        """Return the table of `lab.similar`, with its *options*, which one of the processes makes; see `search`."""
        names = [name if name is None else whole_path(name) for name in (left, right)]
        return self.place.run(partial(similar_statements.similar, **options), *names, by)


def _read_document(document: Path) -> tuple[str, dict[str, bytes]]:
    """Return the path of a LaTeX document, and what its files hold by their paths, from the folder that has them all.

    A file that it inputs may lie above its own folder.
    """
    files = [os.path.abspath(path) for path in document_files(document).values()]
    top = os.path.commonpath(map(os.path.dirname, files))
    contents = {os.path.relpath(path, top): Path(path).read_bytes() for path in files}
    return os.path.relpath(document, top), contents


def search_document(
    contents: Mapping[str, bytes], document: str, collection: str, by: str, *, depth: int = 10
) -> Table:
    """Return the table of `lab.search` for a LaTeX *document*, one of the files whose *contents* are given by path."""
    with tempfile.TemporaryDirectory(prefix="mirblab-") as folder:
        for name, content in contents.items():
            atomic_files.write_bytes(Path(folder, name), content)
        return free_text.search(Path(folder, document), collection, by, depth=depth)


@contextlib.contextmanager
def cluster(on: str, *, insecure: bool = False) -> Iterator[Cluster]:
    """Open the processes of *on*, until the block ends: "pool:4", or a Dask scheduler, "tcp://HOST:PORT" or "tls://...".

    Interrupting the notebook ends the processes of a pool; what is stored stays. MirblabError for another *on*, and for
    a scheduler without workers that have this home folder and this code, or, unless *insecure*, open to other machines.

    >>> with cluster("pool:2") as two:
    ...     n_missing = two.make_runs([], ["mini-qa"])
    >>> n_missing
    0
    """
    with open_place(on, insecure=insecure) as place:
        if place.runs is None:
            raise MirblabError("this process makes runs without being asked; take pool:2 for two others")
        yield Cluster(place)


@dataclass(frozen=True, eq=False)
class Task:
    """What a worker does at a time: it calls *function*, which returns lines to print, with the *arguments*.

    It does so when the tasks *after* which it comes are finished.
    """

    function: Callable[..., list[str]]
    arguments: tuple[Any, ...]
    shown: str
    seconds: float
    is_paid: bool = False  # a vendor is paid for it
    after: tuple[Task, ...] = ()


def plan_tasks(todo: Sequence[MissingRun], split: str = "test") -> list[list[Task]]:
    """Return the stages of `split_into_tasks`; the vectors of documents in parts are tasks before that of their runs,
    slice by slice.
    """
    stages: list[list[Task]] = []
    for of_stage in split_into_tasks(todo):
        stages.append([])
        for members in of_stage:
            slices = _plan_slices(members, split)
            seconds = sum(run.seconds for run in members) - sum(task.seconds for task in slices)
            shown = ", ".join(f"{run.system} on {run.collection}" for run in members)
            wanted = [(run.system, run.collection) for run in members]
            made = Task(make_runs, (wanted, split), shown, max(SECONDS_PER_RUN, seconds), after=tuple(slices))
            stages[-1] += [*slices, made]
    return stages


class _Reading(NamedTuple):
    """Texts that one process encodes together if none is stored, by the beginnings of their keys, uint64 (n,).

    *space* is that of their vectors without the role. A slice has its first document, *start*, and says of each text
    whether it *is_missing*.
    """

    space: str
    keys: np.ndarray
    start: int = 0
    is_missing: np.ndarray | None = None


def _plan_slices(runs: Sequence[MissingRun], split: str) -> list[Task]:
    """Return the tasks that store vectors of documents in parts before the *runs* of one task are made from them.

    A slice is what one process reads, and so encodes, together. A text that one process would have encoded before, as
    one of another slice, as a query, or for the centre of codes, is left out, so that the batches are the same, and no
    text is encoded twice. Nothing is sliced where token vectors are read: their pass stores those of texts as well.
    """
    if any(_reads_tokens(system(run.system)) for run in runs) or not any(run.n_texts for run in runs):
        return []
    readings = [(run, reading) for run in runs for reading in _readings(run, split)]
    by_space: dict[str, list[np.ndarray]] = {}
    for _, reading in readings:
        by_space.setdefault(reading.space, []).append(reading.keys)
    are_new = {space: iter(_first_times(keys)) for space, keys in by_space.items()}
    tasks = []
    for run, reading in readings:
        is_new = next(are_new[reading.space])
        n_texts = 0 if reading.is_missing is None else int((is_new & reading.is_missing).sum())
        if n_texts:
            start, stop = reading.start, reading.start + len(is_new)
            left_out = (start + np.flatnonzero(~is_new)).tolist()
            shown = f"{run.system} on {run.collection}, vectors of documents {start + 1:,} to {stop:,}"
            is_paid = is_hosted(_dense_encoder(run.system).entry)
            arguments = (run.system, run.collection, split, start, stop, left_out)
            tasks.append(Task(store_vectors, arguments, shown, n_texts / encoding_rate(), is_paid))
    return tasks


def _first_times(keys: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return for each array of *keys* which of them no earlier place has, bool of the same lengths."""
    is_first = np.zeros(sum(map(len, keys)), bool)
    is_first[np.unique(np.concatenate(keys), return_index=True)[1]] = True
    return np.split(is_first, np.cumsum([len(some) for some in keys])[:-1])


def _readings(run: MissingRun, split: str) -> list[_Reading]:
    """Return what a dense run encodes in one process, in its order; the texts of other runs are none."""
    one, collection = system(run.system), catalogue.load(run.collection, split)
    if one.settings["kind"] != "dense":
        return []
    model, texts, instruction = _dense_encoder(run.system), collection.texts, collection.card.instruction

    inputs = partial(_inputs_digest, model, instruction)

    # Half a key: two texts that share it would only be encoded by the run itself.
    keys = text_keys(texts)[:, 0]
    queries = _Reading(inputs("query"), text_keys(collection.query_texts)[:, 0])
    store, bits = model.store("document", instruction), one.settings.get("code_bits", 0)
    is_coded = bits and len(texts) > codes.SMALL
    size = codes.PART if is_coded else dense.CHUNK_DOCS
    # As many parts of codes as these documents have may be theirs, and then nothing reads their vectors.
    has_codes = is_coded and len(list(codes.codes_folder(store, bits).glob(f"[!.]*{SUFFIX}"))) >= -(-len(texts) // size)
    if not isinstance(texts, StoredTexts) or len(texts) <= size or has_codes:
        return [_Reading(inputs("document"), keys), queries]
    is_missing = np.zeros(len(texts), bool)
    is_missing[store.missing(texts)] = True
    slices = [
        _Reading(inputs("document"), keys[start : start + size], start, is_missing[start : start + size])
        for start in range(0, len(texts), size)
    ]
    if not is_coded:
        return [queries, *reversed(slices)]
    return [_Reading(inputs("document"), keys[codes.centre_sample(len(texts))]), *slices, queries]


def _dense_encoder(name: str) -> Encoder:
    settings = system(name).settings
    return encoder(settings["encoder"], settings.get("compat", ""))


def split_into_tasks(todo: Sequence[MissingRun]) -> list[list[list[MissingRun]]]:
    """Return stages of tasks, the longest first; the runs of a task are in the order of *todo*.

    Runs that may encode the same text, or search with the same system, are of one task, so that nothing is made twice
    and texts are encoded in the same order everywhere. Fusions are of a later stage than their parts.
    """
    searched = {
        (part.name, run.collection) for run in todo if not _is_fusion(run) for part in with_parts(system(run.system))
    }
    late = [run for run in todo if _is_fusion(run) and (run.system, run.collection) not in searched]
    stages = []
    for chosen in ([run for run in todo if run not in late], late):
        tasks: list[tuple[set[tuple[str, ...]], list[MissingRun]]] = []
        for run in chosen:
            links, members = _links(run), [run]
            for task in [task for task in tasks if task[0] & links]:
                tasks.remove(task)
                links, members = links | task[0], task[1] + members
            tasks.append((links, members))
        ordered = [sorted(members, key=chosen.index) for _, members in tasks]
        stages.append(sorted(ordered, key=lambda members: -sum(run.seconds for run in members)))
    return [stage for stage in stages if stage]


def _is_fusion(run: MissingRun) -> bool:
    return system(run.system).settings["kind"] == "fusion"


def _links(run: MissingRun) -> set[tuple[str, ...]]:
    """Return what makes runs members of one task if they have it in common: a search, or a text for a model."""
    parts = with_parts(system(run.system))
    links: set[tuple[str, ...]] = {("search", part.name, run.collection) for part in parts}
    models = {str(model.entry.get("id", model.name)) for part in parts if (model := _encoder_of(part))}
    return links | {("texts", model, name) for model in models for name in (run.collection, *run.shares_texts_with)}


def _transformer_of(name: str) -> Encoder | None:
    """Return the system's encoder if it is a model of this machine whose speed other models share, not a static one.

    A static embedding encodes hundreds of times as many texts a second, and a hosted model has its vendor's speed.
    """
    one = system(name)
    model = _encoder_of(one) if one.settings["kind"] == "dense" else None
    return model if model and model.entry.get("pooling", "none") != "none" else None


def run_notebooks(
    jobs: Sequence[Job],
    place: Place,
    tell: Callable[[Job, int, int], None],
    done: Callable[[Outcome], None],
    *,
    force: bool = False,
) -> list[Outcome]:
    """Run the notebooks in the processes of a place, the longest first; a failing one does not stop the others.

    *tell* is called about twice a second with the job, the cells that have run and the number of cells; *done* with
    each outcome. Unfinished files of killed batches are removed first.
    """
    if not jobs:
        return []
    atomic_files.remove_abandoned(paths.figures())
    outcomes: list[Outcome] = []
    # The unfinished copies are named after this process, since its children end with it.
    unfinished = [(job, atomic_files.unfinished_name(job.executed)) for job in jobs]
    unfinished.sort(key=lambda pair: expected_seconds(pair[0]), reverse=True)
    forked = sys.platform == "linux" and len(jobs) >= FORKED_FROM
    waiting: dict[Future[tuple[str, float]], tuple[Job, Path]] = {}
    for job, path in unfinished:
        names = (job.suite, job.source.stem, job.parameters, path.name)
        waiting[place.submit(run_notebook, *names, force, forked, is_notebook=True)] = (job, path)
    while waiting:
        finished, _ = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
        for future in finished:
            outcomes.append(_outcome(waiting.pop(future)[0], future))
            done(outcomes[-1])
            del future  # as in make_runs_at
        for job, path in waiting.values():
            tell(job, *count_cells(path))
    return outcomes


def _outcome(job: Job, future: Future[tuple[str, float]]) -> Outcome:
    try:
        problem, spent = future.result()
    except Exception as error:  # noqa: BLE001  a lost process is one notebook's failure, not the batch's
        return Outcome(job, "failed", 0.0, explain_failure(error))
    return Outcome(job, "failed" if problem else "ran" if spent else "fresh", spent, problem)
