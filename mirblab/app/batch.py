"""batch: notebooks executed by papermill, in parallel, the fresh ones left out."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from mirblab.app import stamps
from mirblab.app.hand_runs import SUITE_RUN
from mirblab.app.suites import Job
from mirblab.core import paths, processes, text_files
from mirblab.core.errors import MirblabError
from mirblab.encoders import summary
from mirblab.encoders.encoding import encoder
from mirblab.retrieval.systems import System, system
from mirblab.sources import catalogue


def count_cells(partial: Path) -> tuple[int, int]:
    """Return how many code cells of the running notebook are done, and how many there are."""
    try:
        found = json.loads(partial.read_text("utf-8"))["cells"]
    except (OSError, ValueError, KeyError):  # not there yet, or half written
        return 0, 0
    code = [cell for cell in found if cell["cell_type"] == "code"]
    return sum(cell["execution_count"] is not None for cell in code), len(code)


def run_notebook(job: Job, partial: Path, threads: str, force: bool = False) -> tuple[str, float]:
    """Execute one notebook in this process; return what went wrong ("" for nothing) and the seconds it took.

    *partial* is where it stands while it runs. If another batch runs the same notebook, this one waits, and
    then runs it only if it is still not fresh, or by *force*.
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
        return _execute(job, partial, job.key(contents))


def _execute(job: Job, partial: Path, key: str) -> tuple[str, float]:
    # Messages of kernels that start and stop go to a log, not between the progress bars.
    log, failed = job.executed.with_suffix(".log"), job.executed.with_name(f"{job.name}.failed.ipynb")
    with paths.open_to_write(log) as file:
        os.dup2(file.fileno(), 2)
    before, start = stamps.list_files(job), time.perf_counter()
    try:
        _papermill(job, partial)
    except Exception as error:  # noqa: BLE001  whatever the notebook raised is reported with its cell
        spent = time.perf_counter() - start
        if partial.is_file():
            paths.rename_path(partial, failed)
        stamps.record_run(job, "", spent, before)
        return _explain(error, failed), spent
    spent = time.perf_counter() - start
    failed.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    _move(partial, job.executed)
    stamps.record_run(job, key, spent, before)
    return "", spent


def _papermill(job: Job, partial: Path) -> None:
    import papermill
    from traitlets.config import Config

    papermill.execute_notebook(
        str(job.source),
        str(partial),
        job.parameters,
        kernel_name="python3",
        progress_bar=False,
        cwd=str(job.source.parent),
        iopub_timeout=120,
        # Otherwise every start of a kernel warns that it speaks over TCP without encryption.
        config=Config({"KernelManager": {"transport_encryption": "auto"}}),
    )


def _explain(error: Exception, kept: Path) -> str:
    """Return which cell failed with which error, and where the executed copy is."""
    import papermill

    where = f"kept {kept.name}" if kept.is_file() else "no copy was kept"
    if isinstance(error, papermill.PapermillExecutionError):
        # Papermill adds cells of its own, so the cell is named as the kept copy shows it, and by its first line.
        first = next(iter(error.source.strip().splitlines()), "")
        return f"cell [{error.exec_count}] '{first[:60]}': {error.ename}: {error.evalue} ({where})"
    return f"{type(error).__name__}: {error} ({where})"


def _sign(book: Any) -> None:
    """Sign an executed notebook for this user, as Jupyter does; JupyterLab drops the MathML of unsigned ones."""
    from nbformat.sign import NotebookNotary

    with contextlib.suppress(OSError, sqlite3.Error):  # Jupyter's folder cannot be written to
        NotebookNotary().sign(book)


def _move(partial: Path, executed: Path) -> None:
    """Move an executed copy into place, without what differs from run to run, and signed."""
    import nbformat

    book = nbformat.read(partial, as_version=4)
    book.metadata.pop("papermill", None)
    for cell in book.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
    with paths.write_atomically(executed) as beside:
        nbformat.write(book, beside)
    _sign(book)
    partial.unlink()


SECONDS_PER_NOTEBOOK = 12.0
TEXTS_PER_SECOND = 40.0


@dataclass(frozen=True)
class MissingRun:
    """One run that is not stored yet: a system on a collection, and how many texts it has to encode first."""

    system: str
    collection: str
    n_texts: int
    n_bytes: int
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What became of a notebook: "ran", "failed" with its cell and error, or "fresh", as another batch has made it."""

    job: Job
    state: str
    seconds: float = 0.0
    problem: str = ""


def is_fresh(job: Job) -> bool:
    """Return whether the notebook has run with the same content and none of its files has changed since."""
    return not stamps.reason_to_run(job)


def find_stale(jobs: Sequence[Job]) -> list[tuple[Job, str]]:
    """Return the jobs that are not fresh, each with the reason; data that several of them use are read once."""
    contents: dict[str, bytes] = {}
    reasons = [(job, stamps.reason_to_run(job, contents)) for job in jobs]
    return [(job, reason) for job, reason in reasons if reason]


def missing_runs(jobs: Sequence[Job]) -> list[MissingRun]:
    """Return the runs that the jobs need and that are not stored yet, parts before what is composed of them."""
    wanted: dict[tuple[str, str], None] = {}
    for job in jobs:
        for collection in job.collections:
            for name in job.systems:
                for part in _with_parts(system(name)):
                    wanted[collection, part.name] = None
    loaded, counted, found = "", {}, []
    for collection, name in sorted(wanted, key=lambda pair: pair[0]):
        if collection != loaded:
            held, loaded = catalogue.load(collection), collection
        if not system(name).is_stored(held):
            found.append(_step(system(name), held, counted, collection))
    return found


def stored_shares(encoders: Sequence[str] | None = None) -> dict[tuple[str, str], float]:
    """Return the share of texts that are encoded already, 0 to 1, by encoder and collection as MIRB's paper names it.

    Only collections on disk count; several may have one name in the paper, as the four of NaturalProofs do.
    """
    names = summary.published_encoders() if encoders is None else list(encoders)
    counts: dict[tuple[str, str], list[int]] = {}
    groups = catalogue.collection_groups()
    for held in (catalogue.load(name) for name in catalogue.built_names() if name.startswith("mirb-")):
        for name in names:
            found, instruction = encoder(name), held.card.instruction
            missing = found.missing(held.texts, "document", instruction)
            missing += found.missing(held.query_texts, "query", instruction)
            texts = len(set(held.texts)) + len(set(held.query_texts))
            paper = groups.get(held.name, held.card.paper)
            counts.setdefault((name, paper), []).extend([texts - missing, texts])
    return {key: sum(found[::2]) / sum(found[1::2]) for key, found in counts.items()}


def _with_parts(found: System) -> list[System]:
    return [*(deeper for part in found.parts for deeper in _with_parts(part)), found]


def _step(found: System, collection: Any, counted: dict[tuple[str, str, str], int], asked: str) -> MissingRun:
    n_texts = n_bytes = 0
    name, compat = found.settings.get("encoder", ""), found.settings.get("compat", "")
    # A text that an earlier step encodes is not counted again.
    if name and counted.setdefault((name, compat, collection.fingerprint), 0) == 0:
        model, instruction = encoder(name, compat), collection.card.instruction
        n_texts = model.missing(collection.texts, "document", instruction)
        n_texts += model.missing(collection.query_texts, "query", instruction)
        n_bytes = n_texts * (4 * model.dimensions + 24)
        counted[name, compat, collection.fingerprint] = n_texts
    return MissingRun(found.name, asked, n_texts, n_bytes, n_texts / encoding_rate() + 0.5)


def encoding_rate() -> float:
    """Return texts encoded per second: what the last batch on this machine measured, else `TEXTS_PER_SECOND`."""
    try:
        found = json.loads((paths.cache() / "rate.json").read_text("utf-8"))["texts_per_second"]
    except (OSError, KeyError, TypeError, ValueError, RecursionError):  # none yet, or damaged: the next batch writes it
        return TEXTS_PER_SECOND
    return float(found) if stamps.is_duration(found) and found > 0 else TEXTS_PER_SECOND


def verify_rate(path: Path) -> list[str]:
    """Return a line when the file of the measured speed is damaged; the next batch writes it again."""
    try:
        sound = stamps.is_duration(text_files.read_json(path)["texts_per_second"])
    except (OSError, KeyError, TypeError, ValueError):
        sound = False
    return [] if sound else [f"{path} is damaged; a default is used until the next batch writes it again"]


def expected_seconds(job: Job) -> float:
    """Return the seconds that the last run of the notebook took, else `SECONDS_PER_NOTEBOOK`."""
    try:
        stamp = stamps.read_stamp(job)
    except MirblabError:
        stamp = None
    return stamp.seconds if stamp else SECONDS_PER_NOTEBOOK


def make_missing_runs(todo: Sequence[MissingRun], tell: Callable[[str], None]) -> None:
    """Make the runs that are not stored yet, one after another, each with all cores and a progress bar."""
    loaded, names = "", list(dict.fromkeys(step.collection for step in todo))
    for number, step in enumerate(todo):
        if loaded != step.collection:
            collection, loaded = catalogue.load(step.collection), step.collection
            here = [other for other in todo if other.collection == step.collection]
            left = sum(other.seconds for other in todo[number:])
            what = (
                f"{', '.join(other.system for other in here)}; {sum(other.n_texts for other in here):,} texts to encode"
            )
            tell(
                f"[{names.index(step.collection) + 1}/{len(names)}] {step.collection}: {what}; about {left:.0f} s left"
            )
        start = time.perf_counter()
        system(step.system).search(collection)
        spent = time.perf_counter() - start
        if step.n_texts > 500:
            rate = json.dumps({"texts_per_second": round(step.n_texts / spent, 1)})
            paths.try_to_store("speeds", paths.write_text, paths.cache() / "rate.json", rate)


def run_notebooks(
    jobs: Sequence[Job],
    n_workers: int,
    tell: Callable[[Job, int, int], None],
    done: Callable[[Outcome], None],
    *,
    force: bool = False,
) -> list[Outcome]:
    """Run the notebooks in *n_workers* processes; a failing one does not stop the others.

    *tell* is called with the job, the cells that have run and the number of cells, about twice a second; *done* with
    each outcome. Unfinished files of killed batches are removed first. A notebook that another batch has run meanwhile
    runs again only when *force* is true.
    """
    if not jobs:
        return []
    paths.remove_abandoned(paths.figures())
    threads = str(max(1, (os.cpu_count() or 1) // n_workers))
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(n_workers, get_context("spawn"), processes.end_with_parent) as pool:
        # Named after this process: its children end with it.
        running = {paths.unfinished_name(job.executed): job for job in jobs}
        waiting = {pool.submit(run_notebook, job, path, threads, force): path for path, job in running.items()}
        try:
            while waiting:
                finished, _ = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in finished:
                    outcomes.append(_outcome(running[waiting.pop(future)], future))
                    done(outcomes[-1])
                for path in waiting.values():
                    tell(running[path], *count_cells(path))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return outcomes


def _outcome(job: Job, future: Future[tuple[str, float]]) -> Outcome:
    try:
        problem, spent = future.result()
    except Exception as error:  # noqa: BLE001  a broken worker is one notebook's failure, not the batch's
        return Outcome(job, "failed", 0.0, f"the process ended: {error!r}")
    return Outcome(job, "failed" if problem else "ran" if spent else "fresh", spent, problem)
