"""worker: one notebook in one process: executed by papermill, moved into place, and stamped."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

from mirblab import paths, stamps
from mirblab.parameters import SUITE_RUN
from mirblab.suites import Job


def cells(partial: Path) -> tuple[int, int]:
    """Return how many code cells of the running notebook are done, and how many there are."""
    try:
        found = json.loads(partial.read_text("utf-8"))["cells"]
    except (OSError, ValueError, KeyError):  # not there yet, or half written
        return 0, 0
    code = [cell for cell in found if cell["cell_type"] == "code"]
    return sum(cell["execution_count"] is not None for cell in code), len(code)


def run(job: Job, partial: Path, threads: str, force: bool = False) -> tuple[str, float]:
    """Execute one notebook in this process; return what went wrong ("" for nothing) and the seconds it took.

    *partial* is where it stands while it runs. Another batch may be at it: then this one waits, and has nothing to do
    when the other one has made what it would make, unless it is to *force* it.
    """
    os.environ.update(
        OMP_NUM_THREADS=threads, MIRBLAB_THREADS=threads, MIRBLAB_PROGRESS="0", MIRBLAB_HOME=str(paths.home())
    )
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    os.environ[SUITE_RUN] = json.dumps([job.suite, job.source.stem, job.part])
    with stamps.alone(job):
        contents: dict[str, bytes] = {}
        if not force and not stamps.staleness(job, contents):
            return "", 0.0
        return _execute(job, partial, job.key(contents))


def _execute(job: Job, partial: Path, key: str) -> tuple[str, float]:
    # What kernels say while they start and stop goes to a log, not between the bars.
    log, failed = job.executed.with_suffix(".log"), job.executed.with_name(f"{job.name}.failed.ipynb")
    with paths.open_to_write(log) as file:
        os.dup2(file.fileno(), 2)
    before, start = stamps.listing(job), time.perf_counter()
    try:
        _papermill(job, partial)
    except Exception as error:  # noqa: BLE001  whatever the notebook raised is reported with its cell
        spent = time.perf_counter() - start
        if partial.is_file():
            paths.move(partial, failed)
        stamps.keep(job, "", spent, before)
        return _explain(error, failed), spent
    spent = time.perf_counter() - start
    failed.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    _move(partial, job.executed)
    stamps.keep(job, key, spent, before)
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
    """Return which cell failed, how, and where the executed copy is."""
    import papermill

    where = f"kept {kept.name}" if kept.is_file() else "no copy was kept"
    if isinstance(error, papermill.PapermillExecutionError):
        # Papermill adds cells of its own, so the cell is named as the kept copy shows it, and by its first line.
        first = next(iter(error.source.strip().splitlines()), "")
        return f"cell [{error.exec_count}] '{first[:60]}': {error.ename}: {error.evalue} ({where})"
    return f"{type(error).__name__}: {error} ({where})"


def _sign(book: Any) -> None:
    """Sign an executed notebook for this user, as Jupyter signs what it ran: of others JupyterLab drops the MathML."""
    from nbformat.sign import NotebookNotary

    with contextlib.suppress(OSError, sqlite3.Error):  # where Jupyter's own folder cannot be written to
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
