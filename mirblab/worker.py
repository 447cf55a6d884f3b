"""worker: one notebook in one process: executed by papermill, moved into place, and stamped."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

from mirblab import paths
from mirblab.suites import Job


def _partial(job: Job, batch: int) -> Path:
    """Return where a notebook of the batch with this process id stands while it runs: two batches do not meet."""
    return job.executed.with_name(f".{job.name}.{batch}.partial.ipynb")


def cells(job: Job) -> tuple[int, int]:
    """Return how many code cells of the running notebook are done, and how many there are."""
    try:
        found = json.loads(_partial(job, os.getpid()).read_text("utf-8"))["cells"]
    except (OSError, ValueError, KeyError):  # not there yet, or half written
        return 0, 0
    code = [cell for cell in found if cell["cell_type"] == "code"]
    return sum(cell["execution_count"] is not None for cell in code), len(code)


def run(job: Job, threads: str) -> tuple[str, float]:
    """Execute one notebook in this process; return what went wrong ("" for nothing) and the seconds it took."""
    import papermill
    from traitlets.config import Config

    os.environ.update(
        OMP_NUM_THREADS=threads, MIRBLAB_THREADS=threads, MIRBLAB_PROGRESS="0", MIRBLAB_HOME=str(paths.home())
    )
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    job.executed.parent.mkdir(parents=True, exist_ok=True)
    # What kernels say while they start and stop goes to a log, not between the bars.
    log = job.executed.with_suffix(".log")
    with open(log, "wb") as file:
        os.dup2(file.fileno(), 2)
    partial, failed = _partial(job, os.getppid()), job.executed.with_name(f"{job.name}.failed.ipynb")
    key, start, start_ns = job.key(), time.perf_counter(), time.time_ns()
    try:
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
    except Exception as error:  # noqa: BLE001  whatever the notebook raised is reported with its cell
        if partial.is_file():
            os.replace(partial, failed)
        return _explain(error, failed), time.perf_counter() - start
    spent = time.perf_counter() - start
    failed.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    _finish(job, partial, key, spent, start_ns)
    return "", spent


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


def _finish(job: Job, partial: Path, key: str, spent: float, start_ns: int) -> None:
    """Move the executed copy into place, drop what the job's last run left and this one did not make, and stamp it."""
    import nbformat

    book = nbformat.read(partial, as_version=4)
    book.metadata.pop("papermill", None)
    for cell in book.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
    nbformat.write(book, partial)
    _sign(book)
    os.replace(partial, job.executed)
    made = [path for path in job.folder.glob("*") if path.is_file() and path.stat().st_mtime_ns >= start_ns]
    files = sorted(path.relative_to(paths.figures()).as_posix() for path in made)
    for name in set((job.stamp() or {}).get("files", [])) - set(files):
        (paths.figures() / name).unlink(missing_ok=True)
    with paths.write_atomically(job.executed.with_suffix(".json")) as path:
        stamp = {"key": key, "seconds": round(spent, 1), "parameters": job.parameters, "files": files}
        path.write_text(json.dumps(stamp, indent=1), encoding="utf-8")
