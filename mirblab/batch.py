"""batch: run a suite's notebooks through papermill, in parallel processes, and only what is not fresh."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from mirblab import paths, shelf
from mirblab.encode import encoder
from mirblab.suites import Job
from mirblab.systems import System, system

SECONDS_PER_NOTEBOOK = 12.0
TEXTS_PER_SECOND = 40.0


@dataclass(frozen=True)
class Step:
    """One run that is not stored yet: a system on a collection, and how many texts it has to encode first."""

    system: str
    collection: str
    n_texts: int
    n_bytes: int
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What became of a notebook: "ran", "fresh" or "failed", with the cell and the error of a failure."""

    job: Job
    state: str
    seconds: float = 0.0
    problem: str = ""


def is_fresh(job: Job) -> bool:
    """Return whether the notebook has run with the same content, and everything that it left is still there."""
    stamp = _stamp(job)
    if stamp is None or stamp.get("key") != job.key():
        return False
    return job.executed.is_file() and all((paths.figures() / name).is_file() for name in stamp["files"])


def _stamp(job: Job) -> dict[str, Any] | None:
    path = job.executed.with_suffix(".json")
    try:
        return json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def steps(jobs: Sequence[Job]) -> list[Step]:
    """Return the runs that the jobs need and that are not stored yet, parts before what is composed of them."""
    wanted: dict[tuple[str, str], None] = {}
    for job in jobs:
        for collection in job.collections:
            for name in job.systems:
                for part in _with_parts(system(name)):
                    wanted[collection, part.name] = None
    loaded, counted, found = "", {}, []
    for collection, name in sorted(wanted, key=lambda pair: (pair[0], list(wanted).index(pair))):
        if collection != loaded:
            held, loaded = shelf.load(collection), collection
        if not system(name).is_stored(held):
            found.append(_step(system(name), held, counted))
    return found


def _with_parts(found: System) -> list[System]:
    return [*(deeper for part in found.parts() for deeper in _with_parts(part)), found]


def _step(found: System, collection: Any, counted: dict[tuple[str, str], int]) -> Step:
    n_texts = n_bytes = 0
    name = found.settings.get("encoder", "")
    # A text that an earlier step encodes is not counted again.
    if name and counted.setdefault((name, collection.fingerprint), 0) == 0:
        model, instruction = encoder(name), collection.card.instruction
        n_texts = model.missing(collection.texts, "document", instruction)
        n_texts += model.missing(collection.query_texts, "query", instruction)
        n_bytes = n_texts * (4 * model.dimensions + 24)
        counted[name, collection.fingerprint] = n_texts
    return Step(found.name, collection.name, n_texts, n_bytes, n_texts / rate() + 0.5)


def rate() -> float:
    """Return texts encoded per second, as measured by the last batch on this machine, else a cautious guess."""
    try:
        return float(json.loads((paths.cache() / "rate.json").read_text("utf-8"))["texts_per_second"])
    except (FileNotFoundError, KeyError, ValueError):
        return TEXTS_PER_SECOND


def seconds(job: Job) -> float:
    """Return how long the notebook took the last time, else a guess."""
    stamp = _stamp(job)
    return float(stamp["seconds"]) if stamp else SECONDS_PER_NOTEBOOK


def prepare(todo: Sequence[Step], tell: Callable[[str], None]) -> None:
    """Make the runs that are not stored yet, one after another, each with all cores and a progress bar."""
    collection = None
    for number, step in enumerate(todo, 1):
        if collection is None or collection.name != step.collection:
            collection = shelf.load(step.collection)
        tell(f"[{number}/{len(todo)}] {step.system} on {step.collection}")
        start = time.perf_counter()
        system(step.system).search(collection)
        spent = time.perf_counter() - start
        if step.n_texts > 500:
            with paths.write_atomically(paths.cache() / "rate.json") as path:
                path.write_text(json.dumps({"texts_per_second": round(step.n_texts / spent, 1)}), encoding="utf-8")


def execute(
    jobs: Sequence[Job], n_workers: int, tell: Callable[[Job, int, int], None], done: Callable[[Outcome], None]
) -> list[Outcome]:
    """Run the notebooks in *n_workers* processes; a failing one does not stop the others.

    *tell* hears of job, cells run and cells in all, about twice a second; *done* hears of each outcome.
    """
    if not jobs:
        return []
    threads = str(max(1, (os.cpu_count() or 1) // n_workers))
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(n_workers, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[tuple[str, float]], Job] = {pool.submit(_run, job, threads): job for job in jobs}
        try:
            while waiting:
                finished, _ = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in finished:
                    job = waiting.pop(future)
                    outcomes.append(_outcome(job, future))
                    done(outcomes[-1])
                for job in waiting.values():
                    tell(job, *_cells(job))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return outcomes


def _outcome(job: Job, future: Future[tuple[str, float]]) -> Outcome:
    try:
        problem, spent = future.result()
    except Exception as error:  # noqa: BLE001  a broken worker is one notebook's failure, not the batch's
        return Outcome(job, "failed", 0.0, f"the process ended: {error!r}")
    return Outcome(job, "failed" if problem else "ran", spent, problem)


def _partial(job: Job) -> Path:
    return job.executed.with_name(f"{job.name}.partial.ipynb")


def _cells(job: Job) -> tuple[int, int]:
    """Return how many code cells of the running notebook are done, and how many there are."""
    try:
        cells = json.loads(_partial(job).read_text("utf-8"))["cells"]
    except (FileNotFoundError, json.JSONDecodeError, KeyError):
        return 0, 0
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return sum(cell["execution_count"] is not None for cell in code), len(code)


def _run(job: Job, threads: str) -> tuple[str, float]:
    """Execute one notebook in this process; return what went wrong ("" for nothing) and the seconds it took."""
    import papermill
    from traitlets.config import Config

    os.environ.update(
        OMP_NUM_THREADS=threads, MIRBLAB_THREADS=threads, MIRBLAB_PROGRESS="0", MIRBLAB_HOME=str(paths.home())
    )
    # Without it every start of a kernel warns that it runs over TCP without encryption.
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    job.executed.parent.mkdir(parents=True, exist_ok=True)
    partial, failed = _partial(job), job.executed.with_name(f"{job.name}.failed.ipynb")
    key, start = job.key(), time.perf_counter()
    before = _files(job)
    try:
        papermill.execute_notebook(
            str(job.source),
            str(partial),
            job.parameters,
            kernel_name="python3",
            progress_bar=False,
            cwd=str(job.source.parent),
            iopub_timeout=120,
            config=Config({"KernelManager": {"transport_encryption": "auto"}}),
        )
    except Exception as error:  # noqa: BLE001  whatever the notebook raised is reported with its cell
        os.replace(partial, failed)
        return _explain(error, failed), time.perf_counter() - start
    spent = time.perf_counter() - start
    failed.unlink(missing_ok=True)
    _finish(job, partial, key, spent, before)
    return "", spent


def _files(job: Job) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in job.folder.glob("*") if path.is_file()}


def _explain(error: Exception, kept: Path) -> str:
    """Return which cell failed, how, and where the executed copy is."""
    import papermill

    where = f"kept {kept.name}"
    if isinstance(error, papermill.PapermillExecutionError):
        # Papermill adds cells of its own, so the cell is named as the kept copy shows it, and by its first line.
        first = next(iter(error.source.strip().splitlines()), "")
        return f"cell [{error.exec_count}] '{first[:60]}': {error.ename}: {error.evalue} ({where})"
    return f"{type(error).__name__}: {error} ({where})"


def _finish(job: Job, partial: Path, key: str, spent: float, before: dict[str, int]) -> None:
    """Move the executed copy into place, drop what an older version of the notebook left, and stamp it."""
    import nbformat

    book = nbformat.read(partial, as_version=4)
    book.metadata.pop("papermill", None)
    for cell in book.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
    nbformat.write(book, partial)
    os.replace(partial, job.executed)
    made = [path for path, time_ns in _files(job).items() if before.get(path) != time_ns]
    for path in set(before) - set(made):
        Path(path).unlink()
    files = sorted(Path(path).relative_to(paths.figures()).as_posix() for path in made)
    with paths.write_atomically(job.executed.with_suffix(".json")) as path:
        stamp = {"key": key, "seconds": round(spent, 1), "parameters": job.parameters, "files": files}
        path.write_text(json.dumps(stamp, indent=1), encoding="utf-8")
