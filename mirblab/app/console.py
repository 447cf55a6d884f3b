"""console: what the commands print."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from mirblab.app import batch, stamps, stores
from mirblab.app.batch import MissingRun, Outcome
from mirblab.app.doctor import examine
from mirblab.app.suites import Job
from mirblab.core import paths, terminal
from mirblab.core.paths import readable_size
from mirblab.core.terminal import say
from mirblab.data import runs
from mirblab.encoders import summary
from mirblab.encoders.spaces import open_spaces
from mirblab.evaluation import measures
from mirblab.retrieval.systems import system
from mirblab.sources import catalogue


def print_plan(jobs: Sequence[Job], *, force: bool = False) -> None:
    """Print which notebooks would run, which runs they need that are not stored, and the time and disk of it."""
    console = terminal.console()
    stale = list(jobs) if force else [job for job, _ in batch.find_stale(jobs)]
    todo = batch.missing_runs(stale)
    notebooks = Table("notebook", "state", "about", title=f"suite {jobs[0].suite}" if jobs else "nothing to run")
    for job in jobs:
        state = ("would run", _time(batch.expected_seconds(job))) if job in stale else ("fresh", "")
        notebooks.add_row(job.name, *state)
    console.print(notebooks)
    if todo:
        console.print(_steps_table(todo))
    n_bytes, spent = sum(step.n_bytes for step in todo), sum(step.seconds for step in todo)
    spent += sum(batch.expected_seconds(job) for job in stale) / _workers(0)
    what = f"{len(stale)} of {len(jobs)} notebooks, {len(todo)} runs to make"
    new = sum(not stamps.stamp_path(job).is_file() for job in stale)
    guess = f" ({new} that never ran counted with {_time(batch.SECONDS_PER_NOTEBOOK)} each, more if they train)"
    console.print(f"{what}: about {_time(spent)}, {readable_size(n_bytes)} of vectors{guess if new else ''}")


def _steps_table(todo: Sequence[MissingRun]) -> Table:
    table = Table("run to make", "collection", "texts to encode", "disk", "about")
    for step in todo:
        encoded = (f"{step.n_texts:,}", readable_size(step.n_bytes)) if step.n_texts else ("", "")
        table.add_row(step.system, step.collection, *encoded, _time(step.seconds))
    return table


def run_batch(jobs: Sequence[Job], *, n_workers: int = 0, force: bool = False) -> int:
    """Make the missing runs, then the notebooks that are not fresh; return the exit status (1: some failed)."""
    console, start = terminal.console(), time.perf_counter()
    reasons = [(job, "it is forced") for job in jobs] if force else batch.find_stale(jobs)
    stale = [job for job, _ in reasons]
    for job in jobs:
        if job not in stale:
            console.print(f"fresh   {job.name}")
    for job, reason in reasons:
        if not force and stamps.stamp_path(job).is_file():
            console.print(f"again   {job.name}: {reason}", soft_wrap=True)
    for job in stale[:1]:
        paths.check_writable(job.executed.parent)
    batch.make_missing_runs(batch.missing_runs(stale), lambda line: console.print(line, soft_wrap=True))
    outcomes = _with_bars(console, stale, _workers(n_workers), force)
    count = Counter(outcome.state for outcome in outcomes)
    console.print(
        f"{len(jobs) - len(stale) + count['fresh']} fresh, {count['ran']} ran, {count['failed']} failed in "
        f"{_time(time.perf_counter() - start)}; see {paths.figures() / (jobs[0].suite if jobs else '')}",
        soft_wrap=True,
    )
    return 1 if count["failed"] else 0


def _workers(asked: int) -> int:
    return asked if asked > 0 else max(2, (os.cpu_count() or 2) // 2)


def _with_bars(console: Console, jobs: Sequence[Job], n_workers: int, force: bool) -> list[Outcome]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        ids = {job.name: bars.add_task(terminal.safe_text(job.name), total=None, start=False) for job in jobs}

        def tell(job: Job, cells: int, total: int) -> None:
            if total:
                bars.start_task(ids[job.name])
                bars.update(ids[job.name], completed=cells, total=total)

        def done(outcome: Outcome) -> None:
            bars.remove_task(ids[outcome.job.name])
            bars.console.print(f"{outcome.state:7s} {outcome.job.name} in {_time(outcome.seconds)}")
            if outcome.problem:
                bars.console.print(f"        {outcome.problem}", soft_wrap=True)

        return batch.run_notebooks(jobs, n_workers, tell, done, force=force)


def print_values(name: str, collections: Sequence[str], wanted: Sequence[str], out: Path | None, split: str) -> None:
    """Search *collections* with the system *name*, print the means of the measures, and write run files to *out*."""
    console, table = terminal.console(), Table("collection", "queries", *wanted, title=system(name).label)
    checked = [measures.parse_measure(text) for text in wanted]
    for found in collections:
        held = catalogue.load(found, split)
        run = system(name).search(held)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            values = measures.evaluate(run, held, checked)
        notes = [str(run.attrs[key]) for key in ("origin", "remainder", "note") if run.attrs.get(key)]
        for line in dict.fromkeys([*(str(one.message) for one in told), *notes]):
            console.print(f"{held.name}: {line}", soft_wrap=True)
        means = values.groupby("measure", sort=False).value.mean()
        table.add_row(held.name, f"{len(held.queries):,}", *(f"{mean:.4f}" for mean in means))
        if out is not None:
            path = out / f"{held.name}.{paths.checked_name(re.sub(r'[>/]', '-', name), 120)}.trec.gz"
            runs.write_run(run, path)
            console.print(f"wrote {path}", soft_wrap=True)
    console.print(table)


def print_costs(encoders: Sequence[str] | None = None) -> None:
    """Print what MIRB takes of each model, by collection too when *encoders* are named, and the paper's own hours."""
    console, table = terminal.console(), summary.cost_table(encoders, batch.stored_shares(encoders))
    sizes = Table("collection", "documents", "queries", "tokens, about", title="MIRB's twelve collections")
    for row in summary.collection_sizes().itertuples():
        sizes.add_row(row.paper, f"{row.documents:,}", f"{row.queries:,}", f"{row.tokens:,}")
    console.print(sizes)
    for name, part in table.groupby("encoder", sort=False) if encoders else ():
        console.print(_costs_table(part, "paper", f"{name}, by collection"))
    console.print(_costs_table(table, "encoder", f"all twelve, hours on an {summary.GPU}"))
    if not encoders:
        console.print("by collection: mirblab plan mirb --models NAME,NAME")
    console.print(summary.PAPER_NOTE, soft_wrap=True)


def _costs_table(table: pd.DataFrame, by: str, title: str) -> Table:
    shown = Table(by.replace("paper", "collection"), "GPU hours", "price", "disk", "stored", title=title)
    for name, part in table.groupby(by, sort=False):
        hours, dollars = part.gpu_hours.sum(min_count=1), part.dollars.sum(min_count=1)
        texts = part.documents + part.queries
        cells = ["" if hours != hours else f"{hours:.2g}", "" if dollars != dollars else f"${dollars:,.2f}"]
        share = (part.stored * texts).sum() / texts.sum()
        shown.add_row(str(name), *cells, readable_size(part.disk.sum()), f"{share:.0%}")
    return shown


def print_stores(*, verify: bool = False, remove: str = "") -> int:
    """Print the stores and their sizes; check all in them (*verify*), or *remove* one, or a part (`stores.PARTS`).

    Return the exit status (1: something is damaged).
    """
    console = terminal.console()
    if remove:
        for line in stores.remove_store(remove):
            console.print(line, soft_wrap=True)
        return 0
    status = _verify(console) if verify else 0
    table = Table("store", "files", "size", "lies in", title=str(paths.home()))
    for store in stores.STORES:
        place = f"{store.place}, a link to {store.path.readlink()}" if store.path.is_symlink() else store.place
        table.add_row(store.name, f"{len(store.files()):,}", readable_size(stores.disk_size(store.path)), place)
    console.print(table)
    console.print(_spaces_table())
    for found, mend in stores.removal_advice():
        console.print(f"{found}: {mend}", soft_wrap=True)
    return status


def _time(seconds: float) -> str:
    """Return a time for people: "8 s", "3 min 20 s", "2 h 5 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def print_diagnosis() -> int:
    """Print the findings about the installation; return the exit status (1: something is wrong)."""
    console, wrong = terminal.console(), False
    for finding in examine():
        console.print(f"{finding.state:6s} {finding.what:10s} {finding.found}", soft_wrap=True)
        if finding.mend:
            console.print(f"       {'':10s} -> {finding.mend}", soft_wrap=True)
        wrong |= finding.state == "wrong"
    return 1 if wrong else 0


def _verify(console: Console) -> int:
    """Check everything that is stored, set aside what is damaged, and remove what killed processes left."""
    wrong = 0
    for store in stores.STORES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the lines say the same
            lines = store.verify()
        wrong += len(lines)
        for line in lines:
            console.print(f"{store.name}: {line}", soft_wrap=True)
    swept = len(stores.remove_left_overs())
    console.print(f"{len(stores.STORES)} stores checked; problems: {wrong}; left-overs removed: {swept}")
    return 1 if wrong else 0


def _spaces_table() -> Table:
    table = Table("vectors of", "role", "prompt", "texts", "size", "damaged files")
    for store in open_spaces(paths.cache() / "vectors"):
        found, space = store.sizes(), store.space
        row = (f"{found['texts']:,}", readable_size(found["bytes"]), str(found["damaged"]))
        table.add_row(str(space.get("model", "")), str(space.get("role", "")), str(space.get("prompt", "")), *row)
    return table


_WIDEST, _NARROWEST = 100, 40
_WIDTH_OF_COMMANDS = 34
_TITLE = "mirblab: find theorems, proofs, premises, answers and formulas, and measure how well it works."
_MORE = (
    "Something wrong? mirblab doctor. What would run, and for how long: mirblab plan mini. What is stored: "
    "mirblab cache. All commands: mirblab --help."
)
_WHOLE = {"break_long_words": False, "break_on_hyphens": False}  # paths are not broken


@dataclass(frozen=True)
class HomeState:
    """The state of the home folder: collections built or added, suites run, and whether this is a checkout."""

    home: Path
    built: tuple[str, ...]
    suites: tuple[str, ...]
    is_checkout: bool


def home_state() -> HomeState:
    """Return the state of the home folder; nothing is loaded or changed.

    >>> home_state().is_checkout in (True, False)
    True
    """
    executed = paths.figures() / "_executed"
    suites = sorted({path.parent.name for path in executed.glob("*/*.ipynb")})
    return HomeState(paths.home(), tuple(catalogue.built_names()), tuple(suites), paths.checkout_root() is not None)


def next_steps(found: HomeState) -> list[tuple[str, str]]:
    """Return the next steps for a state, as command and what it does, the most useful first.

    >>> next_steps(HomeState(Path("/tmp"), (), (), True))[0][0]
    'make lab'
    """
    lab = "make lab" if found.is_checkout else f"jupyter lab {abbreviate_home(paths.bundled_path('notebooks'))}"
    first = [(lab, "open JupyterLab; begin with 00_start_here, or with lesson 01")]
    run = ("mirblab run minilm mini-qa", "one search engine on one bundled collection, in seconds")
    batch = ("mirblab batch mini", "every notebook on the bundled data, offline, in minutes")
    lessons = ("mirblab lessons --out FOLDER", "eight lessons for students; --teacher keeps the solutions")
    own = ("mirblab add FOLDER", "a collection of your own in BEIR's layout, checked first")
    build = ("mirblab build stacks", "a real collection, from the Stacks project")
    if found.built:
        last = found.built[-1]
        use = [
            ("mirblab batch open", f"the same tables and figures for {_some(found.built)}"),
            (f"mirblab report {last}", "what makes a collection easier, harder or less fair than it looks"),
        ]
    else:
        use = [own, build]
    if found.suites:
        page = found.home / "figures" / found.suites[0]
        made = [(abbreviate_home(page), f"tables and figures of {_some(found.suites)}")]
        return [*first, *made, *use, lessons]
    return [*first, run, batch, *use, lessons]


def welcome_text(found: HomeState | None = None, width: int = 0) -> str:
    """Return the welcome as lines of at most *width* characters; 0: as wide as the terminal, 80 without one.

    >>> "mirblab doctor" in welcome_text(width=80)
    True
    """
    width = min(max(width or shutil.get_terminal_size((80, 24)).columns, _NARROWEST), _WIDEST)
    found = found or home_state()
    blocks = [textwrap.fill(_TITLE, width, **_WHOLE), ""]
    blocks += [_line(command, what, width) for command, what in next_steps(found)]
    there = f"Data, vectors and figures live in {abbreviate_home(found.home)} (MIRBLAB_HOME moves them)."
    lines = [
        *blocks,
        "",
        *textwrap.wrap(there, width, **_WHOLE),
        *textwrap.wrap(_MORE.replace("mirblab ", f"{command_name()} "), width, **_WHOLE),
    ]
    return "\n".join(lines)


def _line(command: str, what: str, width: int) -> str:
    """Return one step: beside each other where there is room, else the explanation indented below."""
    command = f"{command_name()} {rest}" if (rest := command.removeprefix("mirblab ")) != command else command
    column = _WIDTH_OF_COMMANDS
    if len(command) + 4 <= column and width >= 2 * column:
        return textwrap.fill(
            what, width, initial_indent=f"  {command}".ljust(column), subsequent_indent=" " * column, **_WHOLE
        )
    return f"  {command}\n" + textwrap.fill(what, width, initial_indent=" " * 6, subsequent_indent=" " * 6, **_WHOLE)


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def abbreviate_home(path: Path) -> str:
    """Return a path with the user's home folder as "~".

    >>> abbreviate_home(Path.home() / "mirblab")
    '~/mirblab'
    """
    try:
        return (Path("~") / path.relative_to(Path.home())).as_posix()
    except (ValueError, RuntimeError):  # outside of the home folder, or none is known
        return str(path)


def command_name() -> str:
    """Return the command as this shell has to call it: its name if it is on the path, else with its folder.

    >>> command_name().endswith("mirblab")
    True
    """
    if shutil.which("mirblab"):
        return "mirblab"
    beside = Path(sys.executable).with_name("mirblab")
    try:
        return beside.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return abbreviate_home(beside)


def print_welcome() -> None:
    """Print the welcome; characters that the output cannot carry are replaced."""
    encoding = sys.stdout.encoding or "ascii"
    say(welcome_text().encode(encoding, "replace").decode(encoding))
