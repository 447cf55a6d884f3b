"""building: a stream of formulas to segments, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future
from itertools import chain, islice
from pathlib import Path

from mirblab import disk, paths
from mirblab.best import cores
from mirblab.errors import MirblabError
from mirblab.formula.crew import Crew
from mirblab.formula.forest import Labels
from mirblab.formula.parts import part
from mirblab.formula.segments import Segment, load, merge
from mirblab.formula.storage import write_ids
from mirblab.formula.tree import Tree
from mirblab.progress import progress

ALONE = 2  # batches; starting processes for fewer takes longer than it saves
_MOST_PROCESSES = 8
BATCH, SEGMENT = 1 << 13, 1 << 21  # formulas whose tokens are counted together, and in one segment at most

Item = tuple[str, str | Tree]


def build(items: Iterable[Item], folder: Path | None, total: int | None = None) -> Iterator[tuple[Segment, list[str]]]:
    """Yield the segments of a stream of (id, formula) with the ids of their formulas.

    With a *folder* the segments lie in it, in folders called 0, 1, ..., with the ids as JSON, and memory holds a
    few batches only; without one they are in memory. *total* is how many formulas come, for the progress bar.
    MirblabError for what is not a pair of an id and a formula.
    """
    stream = iter(items)
    if total is None and isinstance(items, Sized):
        total = len(items)
    with progress(total, "structure index", "formulas") as bar:
        number, home = 0, folder and folder / "0"
        while (made := _segment(islice(stream, SEGMENT), home, bar.update)) is not None:
            yield made
            number += 1
            home = folder and folder / str(number)


def _segment(items: Iterator[Item], home: Path | None, done: Callable) -> tuple[Segment, list[str]] | None:
    """Return one segment and its ids, or None when no item is left."""
    ids: list[str] = []
    if home is None:
        labels = Labels()
        parts = [part(batch, labels, None) for batch in _batches(items, ids, done)]
        return (merge(parts), ids) if ids else None
    aside = home.with_name(f"{home.name}.parts")
    sizes = _parts(_batches(items, ids, done), aside)
    if not ids:
        return None
    paths.make_folder(home)
    whole = merge([load(size, aside / str(number)) for number, size in enumerate(sizes)], home)
    disk.remove(aside)
    write_ids(home, ids)
    return whole, ids


def _parts(batches: Iterator[list[str | Tree]], aside: Path) -> list[int]:
    """Make a small segment of each batch in folders called 0, 1, ..., and return how many formulas each has.

    The first ones are made here, and when there are more, the others by as many processes as there are cores.
    """
    labels, sizes = Labels(), []
    for batch in islice(batches, ALONE):
        sizes.append(part(batch, labels, aside / str(len(sizes))).n)
    following = next(batches, None)
    if following is None:
        return sizes
    n_processes = min(cores(), _MOST_PROCESSES)
    with Crew(n_processes) as crew:
        waiting: deque[Future] = deque()
        for number, batch in enumerate(chain([following], batches), len(sizes)):
            waiting.append(crew.submit(batch, aside / str(number)))
            if len(waiting) > 2 * n_processes:
                sizes.append(waiting.popleft().result())
        return sizes + [future.result() for future in waiting]


def _batches(items: Iterator[Item], ids: list[str], done: Callable) -> Iterator[list[str | Tree]]:
    """Yield the formulas of some items at a time, and add their ids to *ids*."""
    while batch := list(islice(items, BATCH)):
        names, formulas = _columns(batch)
        ids += names
        yield formulas
        done(len(batch))


def _columns(batch: list[Item]) -> tuple[list[str], list[str | Tree]]:
    for item in batch:
        if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)):
            raise MirblabError(f"an index is built from pairs of an id and a formula; found {str(item)[:80]!r}")
        if not isinstance(item[1], (str, Tree)):
            found = type(item[1]).__name__
            raise MirblabError(f"formula '{item[0]}' is neither LaTeX nor a tree; found {found}")
    return [name for name, _ in batch], [formula for _, formula in batch]
