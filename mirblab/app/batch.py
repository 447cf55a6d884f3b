"""batch: notebooks executed by papermill, in parallel, except those whose outputs are fresh."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from mirblab.app import stamps, suite_files
from mirblab.app.hand_runs import SUITE_RUN
from mirblab.app.suite_files import Job
from mirblab.core import atomic_files, paths, processes, text_files
from mirblab.core.errors import MirblabError
from mirblab.data.collection import Collection
from mirblab.encoders import summary
from mirblab.encoders.encoding import Encoder, encoder
from mirblab.encoders.token_vectors import open_token_store
from mirblab.retrieval.systems import System, system
from mirblab.sources import catalogue


def count_cells(partial: Path) -> tuple[int, int]:
    """Return how many code cells of the running notebook have been executed, and how many there are."""
    try:
        cells = json.loads(partial.read_text("utf-8"))["cells"]
    except (OSError, ValueError, KeyError):  # not written yet, or half written
        return 0, 0
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return sum(cell["execution_count"] is not None for cell in code), len(code)


def run_notebook(job: Job, partial: Path, threads: str, force: bool = False, forked: bool = False) -> tuple[str, float]:
    """Execute one notebook in this process; return the problem ("" for none) and the seconds that it took.

    *partial* is its path while it runs. After waiting for another batch it runs only if it is not fresh, or by *force*.
    With *forked*, all kernels of this process are forked from one that has imported the libraries.
    """
    os.environ.update(
        OMP_NUM_THREADS=threads, MIRBLAB_THREADS=threads, MIRBLAB_PROGRESS="0", MIRBLAB_HOME=str(paths.home())
    )
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    os.environ[SUITE_RUN] = json.dumps([job.suite, job.source.stem, job.part])
    with stamps.hold_lock(job):
        contents: dict[str, bytes] = {}
        if not force and not stamps.reason_to_run(job, contents):
            return "", 0.0
        return _execute(job, partial, job.key(contents), forked)


def _execute(job: Job, partial: Path, key: str, forked: bool) -> tuple[str, float]:
    # Messages of kernels that start and stop go to a log, not between the progress bars.
    log, failed = job.executed.with_suffix(".log"), job.executed.with_name(f"{job.name}.failed.ipynb")
    with atomic_files.open_to_write(log) as file:
        os.dup2(file.fileno(), 2)
    before, start = stamps.list_files(job), time.perf_counter()
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
TERMS_PER_TEXT = 200  # of a learned sparse vector, of which each takes 8 bytes
SECONDS_PER_RUN = 0.35  # of a run whose texts are encoded
_BY_TOKENS = ("late", "rerank")  # kinds of systems that may encode the tokens of texts
SMALL = 2_000  # documents, in which a search that encodes nothing takes seconds


@dataclass(frozen=True)
class MissingRun:
    """A run that is not stored yet, and how many texts must be encoded for it."""

    system: str
    collection: str
    n_texts: int
    n_bytes: int
    seconds: float


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
    needed: dict[str, dict[str, None]] = {}
    for job in jobs:
        for collection_name in job.collections:
            names = [part.name for name in job.systems for part in with_parts(system(name))]
            needed.setdefault(collection_name, {}).update(dict.fromkeys(names))
    missing, counted = [], dict[Path, set[int]]()
    for collection_name in sorted(needed):
        collection = catalogue.load(collection_name)
        for name in sorted(needed[collection_name], key=lambda name: not _reads_tokens(system(name))):
            if not system(name).is_stored(collection):
                run = _missing_run(system(name), collection, collection_name, counted)
                if run.n_texts or _reads_tokens(system(name)) or len(collection.doc_ids) >= SMALL:
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


def _missing_run(
    system: System, collection: Collection, collection_name: str, counted: dict[Path, set[int]]
) -> MissingRun:
    n_texts = n_bytes = 0
    if name := system.settings.get("encoder", ""):
        model = encoder(name, system.settings.get("compat", ""))
        n_texts = _n_missing(model, collection, counted)
        n_bytes = n_texts * (8 * TERMS_PER_TEXT if model.is_sparse else 4 * model.dimensions + 24)
    return MissingRun(system.name, collection_name, n_texts, n_bytes, n_texts / encoding_rate() + SECONDS_PER_RUN)


def _n_missing(model: Encoder, collection: Collection, counted: dict[Path, set[int]]) -> int:
    """Return how many texts are not stored yet, each once over all calls with the same *counted*.

    Collections share vectors, so that a text may be encoded for another collection before. *counted* has the hashes of
    the texts by the store of their vectors.
    """
    n_texts = 0
    for texts, role in ((collection.texts, "document"), (collection.query_texts, "query")):
        instruction = collection.card.instruction
        store = (open_token_store if model.is_sparse else Encoder.store)(model, role, instruction)
        hashes = counted.setdefault(store.path, set())
        n_counted = len(hashes)
        hashes.update(hash(texts[position]) for position in store.missing(texts))
        n_texts += len(hashes) - n_counted
    return n_texts


def stored_shares(encoders: Sequence[str] | None = None) -> dict[tuple[str, str], float]:
    """Return the share of encoded texts, 0 to 1, by encoder and collection (on disk) as MIRB's paper names it."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    groups = catalogue.collection_groups()
    for collection in (catalogue.load(name) for name in catalogue.built_names() if name.startswith("mirb-")):
        n_texts = len(set(collection.texts)) + len(set(collection.query_texts))
        for name in summary.published_encoders() if encoders is None else encoders:
            key = name, groups.get(collection.name, collection.card.paper)
            n_stored, n_all = counts.get(key, (0, 0))
            counts[key] = n_stored + n_texts - _n_missing(encoder(name), collection, {}), n_all + n_texts
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


def total_seconds(jobs: Sequence[Job], runs: Sequence[MissingRun], n_workers: int) -> float:
    """Return the expected seconds for the missing runs and then for the notebooks, in *n_workers* processes."""
    of_jobs = [expected_seconds(job) for job in jobs]
    return sum(run.seconds for run in runs) + max(sum(of_jobs) / n_workers, *of_jobs, 0.0)


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
            n_missing = _n_missing(model, collection, {}) if model else 0  # a run by token vectors may have stored some
            start = time.perf_counter()
            system(step.system).search(collection)
            spent = time.perf_counter() - start
            if n_missing:
                n_encoded, seconds_encoding = n_encoded + n_missing, seconds_encoding + spent
                if n_encoded > 500:
                    rate = json.dumps({"texts_per_second": round(n_encoded / seconds_encoding, 1)})
                    atomic_files.try_to_store("speeds", atomic_files.write_text, paths.cache() / "rate.json", rate)


def _transformer_of(name: str) -> Encoder | None:
    """Return the system's encoder if it is a model of this machine whose speed other models share, not a static one.

    A static embedding encodes hundreds of times as many texts a second, and a hosted model has its vendor's speed.
    """
    settings = system(name).settings
    if settings["kind"] != "dense":
        return None
    model = encoder(settings["encoder"], settings.get("compat", ""))
    return model if model.entry.get("pooling", "none") != "none" else None


def run_notebooks(
    jobs: Sequence[Job],
    n_workers: int,
    tell: Callable[[Job, int, int], None],
    done: Callable[[Outcome], None],
    *,
    force: bool = False,
) -> list[Outcome]:
    """Run the notebooks in *n_workers* processes, the longest first; a failing one does not stop the others.

    *tell* is called about twice a second with the job, the cells that have run and the number of cells; *done* with
    each outcome. Unfinished files of killed batches are removed first.
    """
    if not jobs:
        return []
    atomic_files.remove_abandoned(paths.figures())
    threads = str(max(1, (os.cpu_count() or 1) // n_workers))
    outcomes: list[Outcome] = []
    processes.start_resource_tracker()
    with ProcessPoolExecutor(n_workers, get_context("spawn"), processes.end_with_parent) as pool:
        # The unfinished copies are named after this process, since its children end with it.
        unfinished = [(job, atomic_files.unfinished_name(job.executed)) for job in jobs]
        unfinished.sort(key=lambda pair: expected_seconds(pair[0]), reverse=True)
        forked = sys.platform == "linux" and len(jobs) >= FORKED_FROM
        waiting = {
            pool.submit(run_notebook, job, path, threads, force, forked): (job, path) for job, path in unfinished
        }
        try:
            while waiting:
                finished, _ = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in finished:
                    outcomes.append(_outcome(waiting.pop(future)[0], future))
                    done(outcomes[-1])
                for job, path in waiting.values():
                    tell(job, *count_cells(path))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.end_children()  # which would otherwise run the notebooks that they have taken
            raise
    return outcomes


def _outcome(job: Job, future: Future[tuple[str, float]]) -> Outcome:
    try:
        problem, spent = future.result()
    except Exception as error:  # noqa: BLE001  a broken worker is one notebook's failure, not the batch's
        return Outcome(job, "failed", 0.0, f"the process ended: {error!r}")
    return Outcome(job, "failed" if problem else "ran" if spent else "fresh", spent, problem)
