"""console: what the commands print: plans, live progress, what is stored, and what is wrong."""

from __future__ import annotations

import os
import re
import shutil
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from mirblab import batch, costs, measures, paths, runs, shelf
from mirblab.batch import Outcome, Step
from mirblab.cache import spaces, sweep
from mirblab.doctor import examine
from mirblab.errors import unknown
from mirblab.late_store import TokenStore
from mirblab.suites import Job
from mirblab.systems import system

STORES = ("vectors", "tokens", "runs", "projections", "collections")


def show_plan(jobs: Sequence[Job], *, force: bool = False) -> None:
    """Print which notebooks would run, which runs they need that are not stored, and the time and disk of it."""
    console = Console(highlight=False)
    stale = [job for job in jobs if force or not batch.is_fresh(job)]
    todo = batch.steps(stale)
    notebooks = Table("notebook", "state", "about", title=f"suite {jobs[0].suite}" if jobs else "nothing to run")
    for job in jobs:
        fresh = job not in stale
        notebooks.add_row(job.name, "fresh" if fresh else "would run", "" if fresh else _time(batch.seconds(job)))
    console.print(notebooks)
    if todo:
        console.print(_steps_table(todo))
    n_bytes, spent = sum(step.n_bytes for step in todo), sum(step.seconds for step in todo)
    spent += sum(batch.seconds(job) for job in stale) / _workers(0)
    what = f"{len(stale)} of {len(jobs)} notebooks, {len(todo)} runs to make"
    new = sum(not job.stamp() for job in stale)
    guess = f" ({new} that never ran counted with {_time(batch.SECONDS_PER_NOTEBOOK)} each, more if they train)"
    console.print(f"{what}: about {_time(spent)}, {_size(n_bytes)} of vectors{guess if new else ''}")


def _steps_table(todo: Sequence[Step]) -> Table:
    table = Table("run to make", "collection", "texts to encode", "disk", "about")
    for step in todo:
        encoded = (f"{step.n_texts:,}", _size(step.n_bytes)) if step.n_texts else ("", "")
        table.add_row(step.system, step.collection, *encoded, _time(step.seconds))
    return table


def run_batch(jobs: Sequence[Job], *, n_workers: int = 0, force: bool = False) -> int:
    """Make the missing runs, then the notebooks that are not fresh; return the exit status (1: some failed)."""
    console, start = Console(highlight=False), time.perf_counter()
    stale = [job for job in jobs if force or not batch.is_fresh(job)]
    for job in jobs:
        if job not in stale:
            console.print(f"fresh   {job.name}")
    batch.prepare(batch.steps(stale), lambda line: console.print(line, markup=False, soft_wrap=True))
    outcomes = _with_bars(console, stale, _workers(n_workers))
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    console.print(
        f"{len(jobs) - len(stale)} fresh, {len(outcomes) - len(failed)} ran, {len(failed)} failed in "
        f"{_time(time.perf_counter() - start)}; see {paths.figures() / (jobs[0].suite if jobs else '')}",
        soft_wrap=True,
    )
    return 1 if failed else 0


def _workers(asked: int) -> int:
    return asked if asked > 0 else max(2, (os.cpu_count() or 2) // 2)


def _with_bars(console: Console, jobs: Sequence[Job], n_workers: int) -> list[Outcome]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        ids = {job.name: bars.add_task(job.name, total=None, start=False) for job in jobs}

        def tell(job: Job, cells: int, total: int) -> None:
            if total:
                bars.start_task(ids[job.name])
                bars.update(ids[job.name], completed=cells, total=total)

        def done(outcome: Outcome) -> None:
            bars.remove_task(ids[outcome.job.name])
            bars.console.print(f"{outcome.state:7s} {outcome.job.name} in {_time(outcome.seconds)}", markup=False)
            if outcome.problem:
                bars.console.print(f"        {outcome.problem}", markup=False, soft_wrap=True)

        return batch.execute(jobs, n_workers, tell, done)


def show_values(name: str, collections: Sequence[str], wanted: Sequence[str], out: Path | None, split: str) -> None:
    """Search *collections* with the system *name*, print the means of the measures, and write run files to *out*."""
    console, table = Console(highlight=False), Table("collection", "queries", *wanted, title=system(name).label)
    checked = [measures.parse(text) for text in wanted]
    for found in collections:
        held = shelf.load(found, split)
        run = system(name).search(held)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            values = measures.evaluate(run, held, checked)
        for line in dict.fromkeys(str(one.message) for one in told):
            console.print(f"{held.name}: {line}", markup=False, soft_wrap=True)
        means = values.groupby("measure", sort=False).value.mean()
        table.add_row(held.name, f"{len(held.queries):,}", *(f"{mean:.4f}" for mean in means))
        if out is not None:
            path = out / f"{held.name}.{paths.clean_name(re.sub(r'[>/]', '-', name))}.trec.gz"
            runs.write_run(run, path)
            console.print(f"wrote {path}", soft_wrap=True)
    console.print(table)


def show_costs(encoders: Sequence[str] | None = None) -> None:
    """Print what MIRB takes of each model, by collection too when *encoders* are named, and the paper's own hours."""
    console, table = Console(highlight=False), costs.cost_table(encoders, batch.stored_shares(encoders))
    sizes = Table("collection", "documents", "queries", "tokens, about", title="MIRB's twelve collections")
    for row in costs.sizes().itertuples():
        sizes.add_row(row.paper, f"{row.documents:,}", f"{row.queries:,}", f"{row.tokens:,}")
    console.print(sizes)
    for name, part in table.groupby("encoder", sort=False) if encoders else ():
        console.print(_costs_table(part, "paper", f"{name}, by collection"))
    console.print(_costs_table(table, "encoder", f"all twelve, hours on an {costs.GPU}"))
    if not encoders:
        console.print("by collection: mirblab plan mirb --models NAME,NAME")
    console.print(costs.PAPER_NOTE, soft_wrap=True)


def _costs_table(table: pd.DataFrame, by: str, title: str) -> Table:
    shown = Table(by.replace("paper", "collection"), "GPU hours", "price", "disk", "stored", title=title)
    for name, part in table.groupby(by, sort=False):
        hours, dollars = part.gpu_hours.sum(min_count=1), part.dollars.sum(min_count=1)
        texts = part.documents + part.queries
        cells = ["" if hours != hours else f"{hours:.2g}", "" if dollars != dollars else f"${dollars:,.2f}"]
        shown.add_row(str(name), *cells, _size(part.disk.sum()), f"{(part.stored * texts).sum() / texts.sum():.0%}")
    return shown


def show_cache(*, verify: bool = False, remove: str = "") -> None:
    """Print the stores and their sizes; check every vector (*verify*), or remove one store or "all" (*remove*)."""
    console = Console(highlight=False)
    if remove:
        if remove not in (*STORES, "all"):
            raise unknown("store", remove, [*STORES, "all"])
        for name in STORES if remove == "all" else (remove,):
            shutil.rmtree(paths.cache() / name, ignore_errors=True)
            console.print(f"removed {paths.cache() / name}")
        return
    if verify:
        _verify(console)
    table = Table("store", "files", "size", title=str(paths.cache()))
    for name in STORES:
        files = [path for path in (paths.cache() / name).rglob("*") if path.is_file()]
        table.add_row(name, f"{len(files):,}", _size(sum(path.stat().st_size for path in files)))
    console.print(table)
    console.print(_spaces_table())


def _size(n_bytes: float) -> str:
    """Return a size for people: "0 B", "3.1 MB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"


def _time(seconds: float) -> str:
    """Return a time for people: "8 s", "3 min 20 s", "2 h 5 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def show_doctor() -> int:
    """Print what was found about the installation; return the exit status (1: something is wrong)."""
    console, wrong = Console(highlight=False), False
    for finding in examine():
        console.print(f"{finding.state:6s} {finding.what:10s} {finding.found}", markup=False, soft_wrap=True)
        if finding.mend:
            console.print(f"       {'':10s} -> {finding.mend}", markup=False, soft_wrap=True)
        wrong |= finding.state == "wrong"
    return 1 if wrong else 0


def _verify(console: Console) -> None:
    """Check every stored vector, set damaged files aside, and sweep what a killed process left behind."""
    stores = [*spaces(paths.cache() / "vectors"), *spaces(paths.cache() / "tokens", TokenStore)]
    damaged = [line for store in stores for line in store.verify()]
    for line in damaged:
        console.print(line, markup=False, soft_wrap=True)
    swept = sum(sweep(paths.cache() / name) for name in ("vectors", "tokens"))
    console.print(f"{len(stores)} stores checked, {len(damaged)} damaged files set aside, {swept} left-overs removed")


def _spaces_table() -> Table:
    table = Table("vectors of", "role", "prompt", "texts", "size", "damaged files")
    for store in spaces(paths.cache() / "vectors"):
        found, space = store.sizes(), store.space
        row = (f"{found['texts']:,}", _size(found["bytes"]), str(found["damaged"]))
        table.add_row(str(space.get("model", "")), str(space.get("role", "")), str(space.get("prompt", "")), *row)
    return table
