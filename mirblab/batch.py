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

from mirblab import costs, family, json_text, partials, paths, shelf, stamps, worker
from mirblab.encode import encoder
from mirblab.errors import MirblabError
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
    """What became of a notebook: "ran", "failed" with its cell and error, or "fresh", as another batch has made it."""

    job: Job
    state: str
    seconds: float = 0.0
    problem: str = ""


def is_fresh(job: Job) -> bool:
    """Return whether the notebook has run with the same content, and everything that it left is as it left it."""
    return not stamps.staleness(job)


def stale(jobs: Sequence[Job]) -> list[tuple[Job, str]]:
    """Return the jobs that are not fresh, each with the reason; data that several of them use are read once."""
    contents: dict[str, bytes] = {}
    reasons = [(job, stamps.staleness(job, contents)) for job in jobs]
    return [(job, reason) for job, reason in reasons if reason]


def steps(jobs: Sequence[Job]) -> list[Step]:
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
            held, loaded = shelf.load(collection), collection
        if not system(name).is_stored(held):
            found.append(_step(system(name), held, counted, collection))
    return found


def stored_shares(encoders: Sequence[str] | None = None) -> dict[tuple[str, str], float]:
    """Return which share of the texts is encoded already, by encoder and printed name of MIRB's collection.

    Only collections that are on disk are looked at; of one printed name several may be, as NaturalProofs' four are.
    """
    names = costs.published_encoders() if encoders is None else list(encoders)
    counts: dict[tuple[str, str], list[int]] = {}
    groups = shelf.groups()
    for held in (shelf.load(name) for name in shelf.built_names() if name.startswith("mirb-")):
        for name in names:
            found, instruction = encoder(name), held.card.instruction
            missing = found.missing(held.texts, "document", instruction)
            missing += found.missing(held.query_texts, "query", instruction)
            texts = len(set(held.texts)) + len(set(held.query_texts))
            paper = groups.get(held.name, held.card.paper)
            counts.setdefault((name, paper), []).extend([texts - missing, texts])
    return {key: sum(found[::2]) / sum(found[1::2]) for key, found in counts.items()}


def _with_parts(found: System) -> list[System]:
    return [*(deeper for part in found.parts() for deeper in _with_parts(part)), found]


def _step(found: System, collection: Any, counted: dict[tuple[str, str, str], int], asked: str) -> Step:
    n_texts = n_bytes = 0
    name, compat = found.settings.get("encoder", ""), found.settings.get("compat", "")
    # A text that an earlier step encodes is not counted again.
    if name and counted.setdefault((name, compat, collection.fingerprint), 0) == 0:
        model, instruction = encoder(name, compat), collection.card.instruction
        n_texts = model.missing(collection.texts, "document", instruction)
        n_texts += model.missing(collection.query_texts, "query", instruction)
        n_bytes = n_texts * (4 * model.dimensions + 24)
        counted[name, compat, collection.fingerprint] = n_texts
    return Step(found.name, asked, n_texts, n_bytes, n_texts / rate() + 0.5)


def rate() -> float:
    """Return texts encoded per second, as measured by the last batch on this machine, else a cautious guess."""
    try:
        found = json.loads((paths.cache() / "rate.json").read_text("utf-8"))["texts_per_second"]
    except (OSError, KeyError, TypeError, ValueError, RecursionError):  # none yet, or damaged: the next batch writes it
        return TEXTS_PER_SECOND
    return float(found) if stamps.is_duration(found) and found > 0 else TEXTS_PER_SECOND


def verify(path: Path) -> list[str]:
    """Return a line when the file of the measured speed is damaged; the next batch writes it again."""
    try:
        sound = stamps.is_duration(json_text.read(path)["texts_per_second"])
    except (OSError, KeyError, TypeError, ValueError):
        sound = False
    return [] if sound else [f"{path} is damaged; a guess is taken until the next batch writes it again"]


def seconds(job: Job) -> float:
    """Return how long the notebook took the last time, else a guess."""
    try:
        stamp = stamps.read(job)
    except MirblabError:
        stamp = None
    return stamp.seconds if stamp else SECONDS_PER_NOTEBOOK


def prepare(todo: Sequence[Step], tell: Callable[[str], None]) -> None:
    """Make the runs that are not stored yet, one after another, each with all cores and a progress bar."""
    loaded, names = "", list(dict.fromkeys(step.collection for step in todo))
    for number, step in enumerate(todo):
        if loaded != step.collection:
            collection, loaded = shelf.load(step.collection), step.collection
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
            paths.stored("speeds", paths.write_text, paths.cache() / "rate.json", rate)


def execute(
    jobs: Sequence[Job],
    n_workers: int,
    tell: Callable[[Job, int, int], None],
    done: Callable[[Outcome], None],
    *,
    force: bool = False,
) -> list[Outcome]:
    """Run the notebooks in *n_workers* processes; a failing one does not stop the others.

    *tell* hears of job, cells run and cells in all, about twice a second; *done* hears of each outcome. What killed
    batches left half-written is removed first. A notebook that another batch has made meanwhile runs only by *force*.
    """
    if not jobs:
        return []
    partials.sweep(paths.figures())
    threads = str(max(1, (os.cpu_count() or 1) // n_workers))
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(n_workers, get_context("spawn"), family.end_with_parent) as pool:
        # Named after this process: its children end with it.
        running = {partials.beside(job.executed): job for job in jobs}
        waiting = {pool.submit(worker.run, job, path, threads, force): path for path, job in running.items()}
        try:
            while waiting:
                finished, _ = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in finished:
                    outcomes.append(_outcome(running[waiting.pop(future)], future))
                    done(outcomes[-1])
                for path in waiting.values():
                    tell(running[path], *worker.cells(path))
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
