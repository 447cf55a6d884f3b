"""run_tasks: missing runs made here, or as tasks of other processes, to the same bytes."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mirblab.analysis.searching import free_text, similar_statements
from mirblab.app.batch.run_planning import (
    SECONDS_PER_RUN,
    MissingRun,
    count_missing_texts,
    encoder_of,
    encoding_rate,
    find_missing,
    inputs_digest,
    reads_tokens,
    with_parts,
)
from mirblab.app.places import Place, Task, open_place, result_of, whole_path
from mirblab.core import atomic_files, paths
from mirblab.core.errors import MirblabError
from mirblab.core.processes import split_range
from mirblab.core.terminal import progress, say
from mirblab.data.parts import StoredTexts, texts_at
from mirblab.display.table_formats import Table
from mirblab.encoders.cache import SUFFIX, text_keys
from mirblab.encoders.encoding import Encoder, encoder
from mirblab.encoders.entry import is_hosted
from mirblab.evaluation.provability import Provability, prove_goals
from mirblab.retrieval import codes, dense
from mirblab.retrieval.systems import DEPTH, system
from mirblab.sources import catalogue
from mirblab.sources.own.tex_files import document_files

SLICES = 4  # of goals for each process, so that none waits long for the last


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
            n_missing = count_missing_texts(model, collection) if model else 0  # token vectors may have stored some
            start = time.perf_counter()
            system(step.system).search(collection, step.depth)
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
    one = system(name)
    model = encoder_of(one) if one.settings["kind"] == "dense" else None
    return model if model and model.entry.get("pooling", "none") != "none" else None


def make_runs(wanted: Sequence[tuple[str, str, int]], split: str = "test") -> list[str]:
    """Make runs, each of a system on a collection to a depth, one after another; return a line for each that is not
    stored.
    """
    lost = []
    for collection_name, runs in groupby(wanted, key=lambda run: run[1]):
        collection = catalogue.load(collection_name, split)
        for name, _, depth in runs:
            system(name).search(collection, depth)
            if not system(name).is_stored(collection, depth):
                lost.append(f"{name} on {collection_name} cannot be stored by a worker, and is made again when needed")
    return lost


def store_vectors(
    system_name: str, collection_name: str, split: str, start: int, stop: int, left_out: Sequence[int]
) -> list[str]:
    """Store the vectors of the documents *start* to *stop* of a collection, except those at *left_out*, for a dense
    system; return a line if they cannot be stored.
    """
    model, collection = _dense_encoder(system_name), catalogue.load(collection_name, split)
    rows = np.setdiff1d(np.arange(start, stop), np.asarray(left_out, np.int64))
    texts, instruction = texts_at(collection.texts, rows), collection.card.instruction
    model.vectors(texts, "document", instruction)
    n_lost = model.missing(texts, "document", instruction)
    lost = f"{n_lost:,} vectors of {system_name} on {collection_name} cannot be stored by a worker, and are made again"
    return [lost] if n_lost else []


def plan_tasks(todo: Sequence[MissingRun], split: str = "test") -> list[list[Task]]:
    """Return the stages of `split_into_tasks`; the vectors of documents in parts are tasks before that of their runs,
    slice by slice.
    """
    stages: list[list[Task]] = []
    for of_stage in split_into_tasks(todo):
        stages.append([])
        for members in of_stage:
            slices = _plan_slices(members, split)
            seconds = sum(run.seconds for run in members) - sum(task.seconds for task in slices)
            shown = ", ".join(f"{run.system} on {run.collection}" for run in members)
            wanted = [(run.system, run.collection, run.depth) for run in members]
            is_paid = any(run.dollars or _asks_chat_model(run) for run in members)
            made = Task(make_runs, (wanted, split), shown, max(SECONDS_PER_RUN, seconds), is_paid, tuple(slices))
            stages[-1] += [*slices, made]
    return stages


def split_into_tasks(todo: Sequence[MissingRun]) -> list[list[list[MissingRun]]]:
    """Return stages of tasks, the longest first; the runs of a task are in the order of *todo*.

    Runs that may encode the same text, score the same pair, or search with the same system, are of one task, so that
    nothing is made twice, and texts and pairs stand in the same batches everywhere. Fusions are of a later stage than
    their parts.
    """
    searched = {
        (part.name, run.collection) for run in todo if not _is_fusion(run) for part in with_parts(system(run.system))
    }
    late = [run for run in todo if _is_fusion(run) and (run.system, run.collection) not in searched]
    stages = []
    for chosen in ([run for run in todo if run not in late], late):
        tasks: list[tuple[set[tuple[str, ...]], list[MissingRun]]] = []
        for run in chosen:
            links, members = _links(run), [run]
            for task in [task for task in tasks if task[0] & links]:
                tasks.remove(task)
                links, members = links | task[0], task[1] + members
            tasks.append((links, members))
        ordered = [sorted(members, key=chosen.index) for _, members in tasks]
        stages.append(sorted(ordered, key=lambda members: -sum(run.seconds for run in members)))
    return [stage for stage in stages if stage]


def _is_fusion(run: MissingRun) -> bool:
    return system(run.system).settings["kind"] == "fusion"


def _asks_chat_model(run: MissingRun) -> bool:
    return any(part.settings["kind"] == "rewrite" for part in with_parts(system(run.system)))


def _links(run: MissingRun) -> set[tuple[str, ...]]:
    """Return what makes runs members of one task if they have it in common: a search, pairs that are scored once for
    all of them, or a text for a model.
    """
    parts = with_parts(system(run.system))
    links: set[tuple[str, ...]] = {("search", part.name, run.collection) for part in parts}
    links |= {
        ("pairs", part.settings["reranker"], run.collection) for part in parts if part.settings["kind"] == "rerank"
    }
    models = {str(model.entry.get("id", model.name)) for part in parts if (model := encoder_of(part))}
    return links | {("texts", model, name) for model in models for name in (run.collection, *run.shares_texts_with)}


class _Reading(NamedTuple):
    """Texts that one process encodes together if none is stored, by the beginnings of their keys, uint64 (n,).

    *space* is that of their vectors without the role. A slice has its first document, *start*, and says of each text
    whether it *is_missing*.
    """

    space: str
    keys: np.ndarray
    start: int = 0
    is_missing: np.ndarray | None = None


def _plan_slices(runs: Sequence[MissingRun], split: str) -> list[Task]:
    """Return the tasks that store vectors of documents in parts before the *runs* of one task are made from them.

    A slice is what one process reads, and so encodes, together. A text that one process would have encoded before, as
    one of another slice, as a query, or for the centre of codes, is left out, so that the batches are the same, and no
    text is encoded twice. Nothing is sliced where token vectors are read: their pass stores those of texts as well.
    """
    if any(reads_tokens(system(run.system)) for run in runs) or not any(run.n_texts for run in runs):
        return []
    readings = [(run, reading) for run in runs for reading in _readings(run, split)]
    by_space: dict[str, list[np.ndarray]] = {}
    for _, reading in readings:
        by_space.setdefault(reading.space, []).append(reading.keys)
    are_new = {space: iter(_first_times(keys)) for space, keys in by_space.items()}
    tasks = []
    for run, reading in readings:
        is_new = next(are_new[reading.space])
        n_texts = 0 if reading.is_missing is None else int((is_new & reading.is_missing).sum())
        if n_texts:
            start, stop = reading.start, reading.start + len(is_new)
            left_out = (start + np.flatnonzero(~is_new)).tolist()
            shown = f"{run.system} on {run.collection}, vectors of documents {start + 1:,} to {stop:,}"
            is_paid = is_hosted(_dense_encoder(run.system).entry)
            arguments = (run.system, run.collection, split, start, stop, left_out)
            tasks.append(Task(store_vectors, arguments, shown, n_texts / encoding_rate(), is_paid))
    return tasks


def _first_times(keys: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return for each array of *keys* which of them no earlier place has, bool of the same lengths."""
    is_first = np.zeros(sum(map(len, keys)), bool)
    is_first[np.unique(np.concatenate(keys), return_index=True)[1]] = True
    return np.split(is_first, np.cumsum([len(some) for some in keys])[:-1])


def _readings(run: MissingRun, split: str) -> list[_Reading]:
    """Return what a dense run encodes in one process, in its order; the texts of other runs are none."""
    one, collection = system(run.system), catalogue.load(run.collection, split)
    if one.settings["kind"] != "dense":
        return []
    model, texts, instruction = _dense_encoder(run.system), collection.texts, collection.card.instruction

    inputs = partial(inputs_digest, model, instruction)

    # Half a key: two texts that share it would only be encoded by the run itself.
    keys = text_keys(texts)[:, 0]
    queries = _Reading(inputs("query"), text_keys(collection.query_texts)[:, 0])
    store, bits = model.store("document", instruction), one.settings.get("code_bits", 0)
    is_coded = bits and len(texts) > codes.SMALL
    size = codes.PART if is_coded else dense.CHUNK_DOCS
    # As many parts of codes as these documents have may be theirs, and then nothing reads their vectors.
    has_codes = is_coded and len(list(codes.codes_folder(store, bits).glob(f"[!.]*{SUFFIX}"))) >= -(-len(texts) // size)
    if not isinstance(texts, StoredTexts) or len(texts) <= size or has_codes:
        return [_Reading(inputs("document"), keys), queries]
    is_missing = np.zeros(len(texts), bool)
    is_missing[store.missing(texts)] = True
    slices = [
        _Reading(inputs("document"), keys[start : start + size], start, is_missing[start : start + size])
        for start in range(0, len(texts), size)
    ]
    if not is_coded:
        return [queries, *reversed(slices)]
    return [_Reading(inputs("document"), keys[codes.centre_sample(len(texts))]), *slices, queries]


def _dense_encoder(name: str) -> Encoder:
    settings = system(name).settings
    return encoder(settings["encoder"], settings.get("compat", ""))


def make_runs_at(place: Place, todo: Sequence[MissingRun], tell: Callable[[str], None], split: str = "test") -> None:
    """Make the missing runs in the processes of a place, several at once, to the same bytes as `make_missing_runs`.

    MirblabError for the first that fails; what is finished is stored.
    """
    stages, number, start = plan_tasks(todo, split), 0, time.perf_counter()
    n_tasks = sum(map(len, stages))
    seconds_left = seconds_expected = sum(task.seconds for tasks in stages for task in tasks)
    for tasks in stages:
        for task, notes in place.results(tasks, _made):
            number, seconds_left = number + 1, seconds_left - task.seconds
            rate = (time.perf_counter() - start) / (seconds_expected - seconds_left)
            tell(f"[{number}/{n_tasks}] {task.shown}; about {max(0.0, seconds_left) * rate:.0f} s left")
            for note in notes:
                tell(f"note: {note}")


def _made(task: Task, future: Future[list[str]]) -> list[str]:
    try:
        lines: list[str] = result_of(task, future)
    except MirblabError as error:
        raise MirblabError(
            f"{task.shown}: {error}; finished runs and vectors are stored, and the same command goes on"
        ) from error
    return lines


@dataclass(frozen=True)
class Cluster:
    """Processes in which runs are made, several at once, and searches, as `lab.cluster` opens them."""

    place: Place

    def make_runs(
        self, systems: Sequence[str], collections: Sequence[str], split: str = "test", *, depth: int = DEPTH
    ) -> int:
        """Make the runs of *systems* on *collections* that are not stored, and return how many were missing.

        They have *depth* documents a query. Parts of compositions are among them. Everything that searches with these
        names afterwards, here or elsewhere with the same home folder, reads the stored runs. MirblabError for the first
        run that cannot be made.
        """
        missing = find_missing(dict.fromkeys(map(whole_path, collections), systems), split=split, depth=depth)
        make_runs_at(self.place, missing, say, split)
        return len(missing)

    def search(
        self,
        text: str | Sequence[str] | os.PathLike[str],
        collection: str,
        by: str = free_text.DEFAULT_SYSTEM,
        *,
        depth: int = 10,
    ) -> Table:
        """Return the table of `lab.search`, which one of the processes makes; of a LaTeX file they need the text only.

        *collection* is a name, or a folder that they see. What the search needs, such as an index, is made there.
        """
        task: Callable[..., Table] = partial(free_text.search, depth=depth)
        if isinstance(text, os.PathLike) and os.path.isfile(text):
            text, contents = _read_document(Path(text))
            task = partial(search_document, contents, depth=depth)
        return self.place.run(task, text, whole_path(collection), by)

    def similar(self, left: str, right: str | None = None, by: str = "minilm", **options: Any) -> Table:
        """Return the table of `lab.similar`, with its *options*, which one of the processes makes; see `search`."""
        names = [name if name is None else whole_path(name) for name in (left, right)]
        return self.place.run(partial(similar_statements.similar, **options), *names, by)

    def prove(
        self, judge: Provability, database: str, runs: Sequence[pd.DataFrame], measures: Sequence[str]
    ) -> Provability:
        """Return *judge* when the processes have decided what its methods ask of *runs*, each for a slice of its goals.

        These are the searches of `judge.evaluate(run, measures)` and, for a measure Useful@k, of
        `judge.documents(run, k)`. *database* is what `read_logic` read; every process reads it once. MirblabError for
        an unknown measure, and for a process that is lost or has another database of this name.
        """
        goals = sorted(judge.goals.values(), key=lambda goal: goal.goal_id)
        n_goals = dict[Task, int]()
        for span in split_range(len(goals), len(goals) // (SLICES * self.place.n_workers) + 1):
            names = {goal.goal_id for goal in goals[span]}
            own = [run[run.query_id.isin(names)] for run in runs]
            arguments = (whole_path(database), repr(judge.prover.logic), judge.limit, goals[span], own, measures)
            n_goals[Task(prove_goals, arguments)] = len(names)
        with progress(len(goals), "proving", "goals") as bar:
            for task, decided in self.place.results(n_goals, result_of):
                judge.decided |= decided
                bar.update(n_goals[task])
        return judge


@contextlib.contextmanager
def cluster(on: str, *, insecure: bool = False) -> Iterator[Cluster]:
    """Open the processes of *on*, until the block ends: "pool:4", or a Dask scheduler, "tcp://HOST:PORT" or "tls://...".

    Interrupting the notebook ends the processes of a pool; what is stored stays. MirblabError for another *on*, and for
    a scheduler without workers that have this home folder and this code, or, unless *insecure*, open to other machines.

    >>> with cluster("pool:2") as two:
    ...     n_missing = two.make_runs([], ["mini-qa"])
    >>> n_missing
    0
    """
    with open_place(on, insecure=insecure) as place:
        if place.runs is None:
            raise MirblabError("this process makes runs without being asked; take pool:2 for two others")
        yield Cluster(place)


def _read_document(document: Path) -> tuple[str, dict[str, bytes]]:
    """Return the path of a LaTeX document, and what its files hold by their paths, from the folder that has them all.

    A file that it inputs may lie above its own folder.
    """
    files = [os.path.abspath(path) for path in document_files(document).values()]
    top = os.path.commonpath(map(os.path.dirname, files))
    contents = {os.path.relpath(path, top): Path(path).read_bytes() for path in files}
    return os.path.relpath(document, top), contents


def search_document(
    contents: Mapping[str, bytes], document: str, collection: str, by: str, *, depth: int = 10
) -> Table:
    """Return the table of `lab.search` for a LaTeX *document*, one of the files whose *contents* are given by path."""
    with tempfile.TemporaryDirectory(prefix="mirblab-") as folder:
        for name, content in contents.items():
            atomic_files.write_bytes(Path(folder, name), content)
        return free_text.search(Path(folder, document), collection, by, depth=depth)
