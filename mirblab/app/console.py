"""console: what the commands print."""

from __future__ import annotations

import math
import re
import shutil
import sys
import textwrap
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from mirblab.app import inventory, stores, verification
from mirblab.app.batch import notebooks, run_planning, run_tasks, stamps
from mirblab.app.batch.notebooks import Outcome
from mirblab.app.batch.run_planning import MissingRun
from mirblab.app.doctor import examine
from mirblab.app.hand_runs import (
    check_types,
    hand_runs_folder,
    list_hand_runs,
    notebook_defaults,
    notebook_parameters,
)
from mirblab.app.places import Place, Task, explain_failure
from mirblab.app.suite_files import Job
from mirblab.core import atomic_files, paths, terminal
from mirblab.core.errors import MirblabError, check_known
from mirblab.core.paths import readable_size
from mirblab.core.terminal import say
from mirblab.core.wording import counted, first_names
from mirblab.data import runs
from mirblab.data.collection import load_folder
from mirblab.display import table_formats
from mirblab.display.text import excerpts
from mirblab.encoders import summary
from mirblab.encoders.cache import VectorStore
from mirblab.encoders.spaces import open_spaces
from mirblab.evaluation import arqmath, imported, measures
from mirblab.retrieval.systems import System, search_depth
from mirblab.sources import catalogue
from mirblab.train import command as train_command
from mirblab.train import recipes, training


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    """Print a table in the terminal; a cell that is wider than its column goes on in the next line, never cut."""
    table = Table(*(Column(name, overflow="fold") for name in columns), title=title or None)
    for row in rows:
        table.add_row(*row)
    terminal.console().print(table)


def print_plan(jobs: Sequence[Job], missing_names: Mapping[str, str], place: Place, *, force: bool = False) -> None:
    """Print which notebooks would run at *place*, which missing runs they need, time and disk space, and what is left
    out.
    """
    stale = list(jobs) if force else [job for job, _ in notebooks.find_stale(jobs)]
    missing = run_planning.missing_runs(stale)
    rows = [
        (job.name, "would run", _time(notebooks.expected_seconds(job))) if job in stale else (job.name, "fresh", "")
        for job in jobs
    ]
    print_table(("notebook", "state", "about"), rows, f"suite {jobs[0].suite}" if jobs else "nothing to run")
    _print_missing_runs(missing)
    seconds = _time(notebooks.total_seconds(stale, missing, place.n_for_notebooks, place.n_machines))
    n_new = sum(not stamps.stamp_path(job).is_file() for job in stale)
    guess = f" ({n_new} notebooks that never ran here are guessed)" if n_new else ""
    counts = f"{len(stale)} of {len(jobs)} notebooks, {len(missing)} runs to make"
    where = _where(place)
    each, shared = (" per worker", " in the home folder, which all workers share") if where else ("", "")
    size = readable_size(sum(run.n_bytes for run in missing))
    say(f"{counts}: about {seconds}{each}{where}, {size} of vectors{shared}{_price_of(missing)}{guess}")
    print_missing(missing_names)


def _print_missing_runs(missing: Sequence[MissingRun]) -> None:
    """Print a row for each missing run, with its dollars if one of them costs something."""
    if not missing:
        return
    is_priced = any(run.dollars for run in missing)
    rows = []
    for run in missing:
        encoded = (f"{run.n_texts:,}", readable_size(run.n_bytes)) if run.n_texts else ("", "")
        pairs = f"{run.n_pairs:,}" if run.n_pairs else ""
        dollars = "not known" if math.isnan(run.dollars) else f"{run.dollars:,.2f}" if run.dollars else ""
        row = (run.system, run.collection, *encoded, pairs, *([dollars] if is_priced else []), _time(run.seconds))
        rows.append(row)
    columns = ("run to make", "collection", "texts to encode", "disk", "pairs", *(["dollars"] if is_priced else []))
    print_table((*columns, "about"), rows)


def _price_of(missing: Sequence[MissingRun]) -> str:
    """Return what hosted encoders cost, and for how many runs their price is not known; "" where they cost nothing."""
    dollars = [run.dollars for run in missing if run.dollars]
    known = [one for one in dollars if not math.isnan(one)]
    text = f", about ${sum(known):,.2f} to hosted encoders" if known else ""
    n_unknown = len(dollars) - len(known)
    return text + (f", and {n_unknown} runs by hosted encoders without a price in encoders.toml" if n_unknown else "")


def run_batch(jobs: Sequence[Job], place: Place, *, force: bool = False) -> int:
    """Make the missing runs, then run the notebooks that are not fresh; return the exit status (1: some failed)."""
    start = time.perf_counter()
    reasons = [(job, "it is forced") for job in jobs] if force else notebooks.find_stale(jobs)
    stale = [job for job, _ in reasons]
    for job in jobs:
        if job not in stale:
            say(f"fresh   {job.name}")
    for job, reason in reasons:
        if not force and stamps.stamp_path(job).is_file():
            say(f"again   {job.name}: {reason}")
    for job in stale[:1]:
        atomic_files.check_writable(job.executed.parent)
    missing = run_planning.missing_runs(stale)
    if stale:
        seconds = _time(notebooks.total_seconds(stale, missing, place.n_for_notebooks, place.n_machines))
        say(f"{len(stale)} notebooks to run, {len(missing)} runs to make: about {seconds}{_where(place)}")
    if place.runs is None:
        run_tasks.make_missing_runs(missing, say)
    else:
        run_tasks.make_runs_at(place, missing, say)
    outcomes = _run_with_bars(stale, place, force)
    count = Counter(outcome.state for outcome in outcomes)
    n_fresh, folder = len(jobs) - len(stale) + count["fresh"], paths.figures() / (jobs[0].suite if jobs else "")
    spent = _time(time.perf_counter() - start)
    say(f"{n_fresh} fresh, {count['ran']} ran, {count['failed']} failed in {spent}; see {folder}")
    return 1 if count["failed"] else 0


def _where(place: Place) -> str:
    if place.runs is None:
        return ""
    threads = counted(place.conditions.threads, "thread")
    chosen = "" if place.n_for_notebooks == place.n_workers else f", notebooks on {place.n_for_notebooks} of them"
    return f" on {place.n_workers} workers of {threads} each{chosen}"


def _run_with_bars(jobs: Sequence[Job], place: Place, force: bool) -> list[Outcome]:
    text = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=terminal.console(), transient=True) as bars:
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

        return notebooks.run_notebooks(jobs, place, tell, done, force=force)


def print_pairs(pairs: table_formats.Table, out: Path | None) -> None:
    """Print pairs of similar statements with the beginnings of their texts, and write all of them to *out*."""
    frame = pairs.frame
    texts = [excerpts(frame[side].to_list()) for side in ("left_text", "right_text")]
    rows = [
        (f"{row.score:.3f}", f"{row.left}\n{left}", f"{row.right}\n{right}", row.shared)
        for row, left, right in zip(frame.itertuples(), *texts, strict=True)
    ]
    print_table(("score", "left", "right", "shared"), rows, pairs.caption)
    _finish_table(pairs, out)


def print_documents(documents: table_formats.Table, out: Path | None) -> None:
    """Print the documents of a search with the beginnings of their texts, and write all of them to *out*."""
    frame = documents.frame.drop(columns="text")
    texts = excerpts(documents.frame.text.to_list())
    frame["doc_id"] = [f"{doc_id}\n{text}" for doc_id, text in zip(frame.doc_id, texts, strict=True)]
    frame = frame.reset_index()
    shown = frame.assign(score=frame.score.map("{:.3f}".format)).astype(str).replace("<NA>", "")
    print_table(tuple(shown.columns), shown.itertuples(index=False), documents.caption)
    _finish_table(documents, out)


def _finish_table(table: table_formats.Table, out: Path | None) -> None:
    for note in table.notes:
        say(note)
    if out is not None:
        atomic_files.write_text(out, table.to_csv())
        say(f"wrote {out}")


def print_collection(folder: Path, notes: Iterable[str] = ()) -> None:
    """Print the size of the collection in *folder*, which documents a query may return, where it is, and *notes*."""
    collection = load_folder(folder)
    n_queries, n_documents = len(collection.queries), len(collection.corpus)
    shown = ", ".join(collection.candidates.names) or "all documents"
    say(f"{collection.name}: {n_queries:,} queries, {n_documents:,} documents; candidates: {shown}")
    say("\n  note: ".join([f"  in {folder}", *notes]))


def build_collections(source: str, origin: str, options: Mapping[str, Any]) -> None:
    """Build the collections of a source, as `catalogue.build` does, and print what each is."""
    for folder in catalogue.build(source, origin, **options):
        print_collection(folder)


def print_imports() -> None:
    """Print the imported runs, and the values that others published as means or for each query, with their mean."""
    records = imported.import_records()
    if not records:
        say("nothing was imported yet; mirblab import-results FILE imports a run or values")
        return
    rows = [
        (system, record.collections[0], f"{record.n_rows:,} rows", record.origin)
        for record in records
        if record.kind == "run"
        for system in record.systems
    ]
    if rows:
        print_table(("system", "collection", "run", "origin"), rows, "imported runs")
    values = imported.read_imported_values()
    if len(values):
        keys = ["system", "collection", "measure", "origin"]
        means = values.groupby(keys, sort=False).value.agg(["mean", "size"]).reset_index()
        print_table(
            (*keys, "mean", "values"),
            [(*(getattr(row, key) for key in keys), f"{row.mean:.4f}", f"{row.size:,}") for row in means.itertuples()],
            "imported values (0 to 1, ranks from 1)",
        )


def print_inventory(what: str) -> None:
    """Print the collections, systems, models or measures that there are, with the state of each."""
    tables = {
        "collections": inventory.collections,
        "systems": inventory.systems,
        "models": inventory.models,
        "measures": inventory.measures,
    }
    check_known("list of", what, tables)
    table = tables[what]().reset_index(names="name").astype(str)
    print_table(tuple(table.columns), table.itertuples(index=False))


def print_values(
    chosen: System,
    collections: Sequence[str],
    place: Place,
    wanted: Sequence[str],
    out: Path | None,
    split: str,
    form: str = "trec",
) -> None:
    """Search *collections* with a system, print the means of the measures, and write run files to *out*.

    Runs that are not stored are made at *place* first, where that is not this process.
    """
    formats: dict[str, tuple[str, Callable[[pd.DataFrame, Path], None]]] = {
        "trec": (".trec.gz", runs.write_run), "arqmath": (".tsv", arqmath.write_submission),
    }  # fmt: skip
    check_known("format of run files", form, formats)
    suffix, write = formats[form]
    checked, rows = measures.parse_measures(wanted), []
    written: dict[Path, str] = {}
    if place.runs is not None:
        run_tasks.Cluster(place).make_runs([chosen.name], collections, split, depth=search_depth(checked))
    for collection_name in collections:
        collection = catalogue.load_with_queries(collection_name, split)
        if form == "arqmath":
            arqmath.check_answer_ids(collection)
        if out is not None:
            stem = ("" if split == "test" else f"{split}.") + re.sub(r"[>/]", "-", chosen.name)
            path = out / f"{collection.name}.{paths.checked_name(stem, 120, 'a run file')}{suffix}"
            if path in written:
                raise MirblabError(
                    f"{written[path]} and {collection_name} would both be written to {path}; run them apart, each with "
                    "another --out"
                )
            written[path] = collection_name
        run = chosen.search(collection, search_depth(checked))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            values = measures.evaluate(run, collection, checked)
        notes = [str(run.attrs[key]) for key in ("origin", "remainder", "note") if run.attrs.get(key)]
        for line in dict.fromkeys([*(str(warning.message) for warning in caught), *notes]):
            say(f"{collection.name}: {line}")
        means = values.groupby("measure", sort=False).value.mean()
        rows.append((collection.name, f"{len(collection.queries):,}", *(f"{mean:.4f}" for mean in means)))
        if out is not None:
            write(run, path)
            say(f"wrote {path}")
    print_table(("collection", "queries", *map(str, checked)), rows, chosen.label)


def train_seeds(
    place: Place, name: str, changes: Mapping[str, Any], seeds: Sequence[int], *, out: str = "", force: bool = False
) -> int:
    """Train a model of a recipe for each seed, several at once where *place* has processes; return the exit status.

    The models are called *out*, or as the recipe, with "-seed-" and the seed. A stopped training goes on when the same
    command is given again.
    """
    named = {f"{out or name}-seed-{seed}": {**changes, "seed": seed} for seed in seeds}
    for model in named:
        training.model_folder(model)  # a name that cannot be is refused before anything is trained
    if place.runs is None:
        for model, settings in named.items():
            if status := train_command.run_training(name, settings, out=model, force=force):
                return status  # Ctrl-C
        return 0
    training.tokens_model(recipes.recipe(name, **changes))  # once, and not in several processes at the same time
    tasks = [
        Task(train_command.train_model, (name, settings, model, force), model) for model, settings in named.items()
    ]
    n_failed, start = 0, time.perf_counter()
    for number, (task, made) in enumerate(place.results(tasks, _result_or_error), 1):
        model = task.shown
        done, rounds = (math.ceil(n / place.n_workers) for n in (number, len(named)))
        left = (rounds / done - 1) * (time.perf_counter() - start)
        about = f"; about {_time(left)} left" if number < len(named) else ""
        try:
            if isinstance(made, Exception):
                raise made
            say(f"[{number}/{len(named)}] {model} is trained: {made}{about}")
            train_command.print_summary(model)
        except Exception as error:  # whatever a worker raised is reported with what it was to make
            n_failed += 1
            say(
                f"[{number}/{len(named)}] {model} failed: {explain_failure(error)}; the same command goes on",
                to=sys.stderr,
            )
    return 1 if n_failed else 0


def _result_or_error(_: Task, future: Future[Any]) -> Any:
    try:
        return future.result()
    except Exception as error:  # noqa: BLE001  it is reported
        return error


def print_costs(
    sizes: pd.DataFrame, named: Sequence[str], encoders: Sequence[str], shortlists: Mapping[str, int]
) -> None:
    """Print what the *encoders* of a suite cost on collections of these *sizes*, the *named* ones by collection, and
    its cross-encoders, each with the documents of *shortlists* that it scores for a query.

    Nothing is printed for a suite without sizes; MirblabError when encoders are *named* for it.
    """
    if sizes.empty:
        if named:
            raise MirblabError("--models shows costs for the suite of a paper, such as mirb; leave it out for others")
        return
    table = summary.cost_table(named or encoders, run_planning.stored_shares(named or encoders), sizes)
    rows = [
        (str(row.paper), f"{row.documents:,}", f"{row.queries:,}", f"{row.tokens:,}")
        for row in sizes.itertuples(index=False)
    ]
    print_table(("collection", "documents", "queries", "tokens, about"), rows, "the paper's collections")
    for name, part in table.groupby("encoder", sort=False) if named else ():
        _print_cost_table(part, "paper", f"{name}, by collection")
    _print_cost_table(table, "encoder", f"all {len(sizes)}, hours on an {summary.GPU}")
    if not named:
        say("by collection: add --models NAME,NAME")
    reranking = summary.reranking_cost_table(shortlists, sizes)
    shown = [(str(name), f"{pairs:,}", f"{hours:.2g}") for name, pairs, hours in reranking.itertuples(index=False)]
    if shown:
        print_table(("reranker", "pairs", "GPU hours"), shown, "the shortlists of all first stages")
    say(summary.PAPER_NOTE)


def print_verification(suite: str, systems: Sequence[str], collections: Sequence[str]) -> int:
    """Verify a suite, print a row per collection and system, write the report; return the exit status (1: FAIL)."""
    cells = verification.verify(suite, systems, collections)
    computed = cells[cells.state != verification.SKIPPED]
    shown = computed.assign(
        expected=computed.expected.map("{:.4f}".format), mean=computed["mean"].map("{:.4f}".format)
    ).astype(str)
    rows = shown[["collection", "system", "measure", "expected", "mean", "state", "note"]].itertuples(index=False)
    print_table(("collection", "system", "measure", "expected", "here", "state", "first one that differs"), rows)
    skipped = cells[cells.state == verification.SKIPPED]
    for note, part in skipped.groupby("note", sort=False):
        say(f"skipped {', '.join(part.collection.unique())} ({len(part)} cells): {note}")
    counts = cells.state.value_counts()
    states = (verification.OK, verification.OKISH, verification.FAIL, verification.SKIPPED)
    say(", ".join(f"{counts.get(state, 0)} {state}" for state in states))
    say(f"wrote {verification.write_report(suite, cells)}")
    return 1 if counts.get(verification.FAIL, 0) else 0


def print_missing(missing: Mapping[str, str]) -> None:
    """Print what was left out of a suite, by what it needs."""
    by_reason: dict[str, list[str]] = {}
    for name, why in missing.items():
        by_reason.setdefault(why, []).append(name)
    for why, names in by_reason.items():
        say(f"left out {', '.join(names)}: {why}")


def _print_cost_table(table: pd.DataFrame, by: str, title: str) -> None:
    columns = [
        by.replace("paper", "collection"),
        "GPU hours",
        "price",
        "disk",
        *(["stored"] if table.stored.any() else []),
    ]
    rows = []
    for name, part in table.groupby(by, sort=False):
        hours, dollars = part.gpu_hours.sum(min_count=1), part.dollars.sum(min_count=1)
        texts = part.documents + part.queries
        cells = ["" if pd.isna(hours) else f"{hours:.2g}", "" if pd.isna(dollars) else f"${dollars:,.2f}"]
        share = (part.stored * texts).sum() / texts.sum()
        rows.append((str(name), *cells, readable_size(part.disk.sum()), f"{100 * share:.0f} %")[: len(columns)])
    print_table(columns, rows, title)


def print_stores(*, verify: bool = False, remove: str = "", long: bool = False) -> int:
    """Print the stores and their sizes, *verify* or *remove* them; return the exit status (1: damaged).

    Vectors are summed by model; *long* has a row for each role and prompt, and shows empty stores, too.
    """
    if remove and verify:
        raise MirblabError("--verify and --remove are both given; give one after the other")
    if remove:
        for line in stores.remove_store(remove):
            say(line)
        return 0
    status = _verify_stores() if verify else 0
    rows = []
    for store in stores.STORES:
        files = store.files()
        if long or files:
            folder = f"{store.place}, a link to {store.path.readlink()}" if store.path.is_symlink() else store.place
            rows.append((store.name, f"{len(files):,}", readable_size(stores.disk_size(store.path)), folder))
    print_table(("store", "files", "size", "path"), rows, str(paths.home()))
    spaces = pd.DataFrame(
        [{**vectors.space, **vectors.sizes()} for vectors in open_spaces(paths.cache() / "vectors", VectorStore)],
        columns=["model", "role", "prompt", "texts", "bytes", "damaged"],
    ).rename(columns={"model": "vectors of", "bytes": "size", "damaged": "damaged files"})
    if not long:
        spaces = spaces.drop(columns=["role", "prompt"]).groupby("vectors of", as_index=False, sort=False).sum()
    if len(spaces):
        shown = spaces.assign(texts=spaces.texts.map("{:,}".format), size=spaces["size"].map(readable_size))
        print_table(tuple(shown.columns), shown.astype(str).itertuples(index=False))
    for text, command in stores.removal_advice():
        say(f"{text}: {command}")
    return status


def _verify_stores() -> int:
    n_problems = 0
    for store in stores.STORES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the lines say the same
            lines = store.verify()
        n_problems += len(lines)
        for line in lines:
            say(f"{store.name}: {line}")
    n_removed = len(stores.remove_left_overs())
    say(f"{len(stores.STORES)} stores checked; problems: {n_problems}; left-overs removed: {n_removed}")
    return 1 if n_problems else 0


def print_figures() -> None:
    """Print the outputs of batches and runs by hand, their size, and whether they are fresh."""
    contents: dict[str, bytes] = {}
    lines = []
    for path in sorted((paths.figures() / "_executed").glob("*/*.json")):
        stem, _, part = path.stem.partition(".")
        job = Job(path.parent.name, paths.bundled_path("notebooks") / f"{stem}.ipynb", {"part": part})
        name = f"{job.suite}/{job.name}"
        try:
            stamp = stamps.read_stamp(job)
        except MirblabError as error:
            lines.append(f"{name}: {error}")
            continue
        if stamp is not None:
            sizes = [signature[1] for signature in stamps.list_files(job).values()]
            state = _freshness(replace(job, parameters=stamp.parameters), contents)
            lines += _run_lines(name, stem, stamp.made, sizes, state, stamp.parameters)
    hand_runs = list_hand_runs()
    if hand_runs:
        lines.append(f"by hand, in {hand_runs_folder()}; mirblab figures --remove NAME removes one")
    for run in hand_runs:
        sizes = [path.stat().st_size for path in run.folder.rglob("*") if path.is_file()]
        lines += _run_lines(run.name, run.notebook, run.made, sizes, run.state(contents), run.parameters)
    for line in lines or ["none yet: run mirblab batch mini, or a notebook"]:
        say(line)


def _run_lines(
    name: str, notebook: str, made: str, sizes: list[int], state: str, parameters: dict[str, Any]
) -> list[str]:
    defaults = notebook_defaults(notebook)
    differing = [f"{key} = {value!r}" for key, value in parameters.items() if defaults.get(key) != value]
    line = f"{name}: {made}, {len(sizes)} files, {readable_size(sum(sizes))}; {state}"
    return [line, f"    {', '.join(differing)}"] if differing else [line]


def _freshness(job: Job, contents: dict[str, bytes]) -> str:
    try:
        check_types(job.parameters, notebook_parameters(job.source), job.name)
        reason = stamps.reason_to_run(job, contents)
    except FileNotFoundError:
        reason = "there is no such notebook any more"
    except ValueError as error:
        reason = str(error)
    return f"not fresh: {reason}" if reason else "fresh"


def print_diagnosis() -> int:
    """Print the findings about the installation; return the exit status (1: something is wrong)."""
    status = 0
    for name, finding in examine():
        say(f"{finding.state:6s} {name:10s} {finding.text}")
        if finding.advice:
            say(f"       {'':10s} -> {finding.advice}")
        status = 1 if finding.state == "wrong" else status
    return status


def _time(seconds: float) -> str:
    """Return a time for people: "8 s", "3 min 20 s", "2 h 5 min"."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


_WIDTH_OF_COMMANDS = 34
_TITLE = "mirblab: find theorems, proofs, premises, answers and formulas, and measure how well it works."


@dataclass(frozen=True)
class HomeState:
    """The state of the home folder: collections, suites that were run, and whether this is a checkout."""

    home: Path
    built: tuple[str, ...]
    suites: tuple[str, ...]
    is_checkout: bool


def home_state() -> HomeState:
    """Return the state of the home folder without loading or changing anything."""
    executed = paths.figures() / "_executed"
    suites = sorted({path.parent.name for path in executed.glob("*/*.ipynb")})
    return HomeState(paths.home(), tuple(catalogue.built_names()), tuple(suites), paths.checkout_root() is not None)


def next_steps(state: HomeState) -> list[tuple[str, str]]:
    """Return the next steps for a state, the most useful first: the command and what it does."""
    lab = "make lab" if state.is_checkout else f"jupyter lab {abbreviate_home(paths.bundled_path('notebooks'))}"
    steps = [(lab, "open JupyterLab; begin with 00_start_here, or with lesson 01")]
    if state.suites:
        page = state.home / "figures" / state.suites[0]
        steps += [(abbreviate_home(page), f"tables and figures of {first_names(state.suites, 3)}")]
    else:
        steps += [
            ("mirblab run minilm mini-qa", "one search engine on one bundled collection, in seconds"),
            ("mirblab batch mini", "every notebook on the bundled data, offline, in minutes"),
        ]
    if state.built:
        report = f"mirblab report {state.built[-1]}"
        steps += [
            ("mirblab batch open", f"the same tables and figures for {first_names(state.built, 3)}"),
            (report, "what makes a collection easier, harder or less fair than it looks"),
        ]
    else:
        steps += [
            ("mirblab add FOLDER", "a collection of your own in BEIR's layout, checked first"),
            ("mirblab build stacks", "a real collection, from the Stacks project"),
        ]
    return [*steps, ("mirblab lessons --out FOLDER", "nine lessons for students; --teacher keeps the solutions")]


def welcome_text(state: HomeState | None = None, width: int = 0) -> str:
    """Return the welcome in lines of at most *width* characters; 0: the terminal's width, 80 without one."""
    state, width = state or home_state(), width or shutil.get_terminal_size((80, 24)).columns
    width, name = min(max(width, 40), 100), command_name()
    more = (
        f"Something wrong? {name} doctor. What would run, and for how long: {name} plan mini. What is stored: "
        f"{name} cache. All commands: {name} --help."
    )
    folder = f"Data, vectors and figures are in {abbreviate_home(state.home)} (MIRBLAB_HOME moves them)."
    steps = [_step_lines(command, what, width) for command, what in next_steps(state)]
    return "\n".join([_filled(_TITLE, width), "", *steps, "", _filled(folder, width), _filled(more, width)])


def _filled(text: str, width: int, first: str = "", indent: int = 0) -> str:
    """Return a text in lines of at most *width* characters, words and paths unbroken, *first* before it."""
    return textwrap.fill(
        text,
        width,
        initial_indent=first,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _step_lines(command: str, what: str, width: int) -> str:
    command = "  " + re.sub("^mirblab ", f"{command_name()} ", command)
    if len(command) + 2 <= _WIDTH_OF_COMMANDS and width >= 2 * _WIDTH_OF_COMMANDS:
        return _filled(what, width, command.ljust(_WIDTH_OF_COMMANDS), _WIDTH_OF_COMMANDS)
    return f"{command}\n{_filled(what, width, ' ' * 6, 6)}"


def abbreviate_home(path: Path) -> str:
    """Return a path with the user's home folder as "~".

    >>> abbreviate_home(Path.home() / "mirblab")
    '~/mirblab'
    """
    try:
        return (Path("~") / path.relative_to(Path.home())).as_posix()
    except (ValueError, RuntimeError):  # outside the home folder, or no home folder is known
        return str(path)


def command_name() -> str:
    """Return the command as this shell must call it: its name if it is on the path, else with its folder."""
    if shutil.which("mirblab"):
        return "mirblab"
    beside = Path(sys.executable).with_name("mirblab")
    try:
        return beside.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return abbreviate_home(beside)


def print_welcome() -> None:
    """Print the welcome."""
    say(welcome_text())
