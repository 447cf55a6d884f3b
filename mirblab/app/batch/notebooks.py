"""notebooks: a suite's notebooks executed by papermill, in parallel, except those whose outputs are fresh."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirblab.app import suite_files
from mirblab.app.batch import stamps
from mirblab.app.batch.run_planning import MissingRun
from mirblab.app.hand_runs import SUITE_RUN
from mirblab.app.places import Place, Task, explain_failure
from mirblab.app.suite_files import Job
from mirblab.core import atomic_files, paths
from mirblab.core.errors import MirblabError


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
    with atomic_files.hold_lock(job.executed.with_name(job.name)):  # of two batches one waits
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
        from mirblab.app.batch.kernels import ForkedKernelManager

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
    tasks = {
        Task(run_notebook, (job.suite, job.source.stem, job.parameters, path.name, force, forked)): (job, path)
        for job, path in unfinished
    }

    def watch(task: Task) -> None:
        job, path = tasks[task]
        tell(job, *count_cells(path))

    results = place.results(tasks, lambda task, future: _outcome(tasks[task][0], future), is_notebook=True, watch=watch)
    for _, outcome in results:
        outcomes.append(outcome)
        done(outcome)
    return outcomes


def _outcome(job: Job, future: Future[tuple[str, float]]) -> Outcome:
    try:
        problem, spent = future.result()
    except Exception as error:  # noqa: BLE001  a lost process is one notebook's failure, not the batch's
        return Outcome(job, "failed", 0.0, explain_failure(error))
    return Outcome(job, "failed" if problem else "ran" if spent else "fresh", spent, problem)
