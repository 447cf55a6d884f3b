"""processes: processes that end with their parent, Ctrl-C that lets a step finish first, and tasks in threads."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from multiprocessing.process import BaseProcess
from threading import Thread
from types import FrameType
from typing import TypeVar, cast

from mirblab.core.errors import MirblabError

THREADS = "MIRBLAB_THREADS"  # how many cores encoding, searches, indexes and training use
Job = TypeVar("Job")
Result = TypeVar("Result")
Loop = TypeVar("Loop", bound=Callable[..., None])


def end_with_parent() -> None:
    """End this process and all that it started when its parent of `multiprocessing` ends, whatever is running here."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        end_after(parent.join)


def end_after(wait: Callable[[], object]) -> None:
    """Call *wait* in another thread, and end this process and all that it started when *wait* returns."""
    Thread(target=_end_process_tree, args=(wait,), daemon=True).start()


def _end_process_tree(wait: Callable[[], object]) -> None:
    try:
        wait()
    finally:
        _kill_descendants(os.getpid())
        os._exit(1)


def start_resource_tracker() -> None:
    """Start the process of `multiprocessing` that frees semaphores of killed processes, without its warning of them."""
    if os.name != "posix":
        return
    from multiprocessing import resource_tracker

    before = os.environ.get("PYTHONWARNINGS", "")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [before, "ignore:resource_tracker"]))
    resource_tracker.ensure_running()
    os.environ["PYTHONWARNINGS"] = before


def end_processes(children: Iterable[BaseProcess]) -> None:
    """End at once these processes that this one has started by `multiprocessing`, and all that they started."""
    for child in children:
        if child.pid is not None and child.is_alive():
            _kill_descendants(child.pid)
            child.kill()


def _kill_descendants(pid: int) -> None:
    import psutil

    with contextlib.suppress(psutil.Error):  # it has ended by itself
        for process in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.kill()


@contextlib.contextmanager
def defer_interrupt(wind_up: Callable[[], object]) -> Iterator[None]:
    """Let the first Ctrl-C call *wind_up*, which must make the block end soon, and raise KeyboardInterrupt after the
    block.

    A second Ctrl-C raises it at once. Nothing changes outside the main thread, which alone receives Ctrl-C, and where
    Ctrl-C is ignored or handled by the system.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    presses: list[int] = []
    has_ended = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if presses or has_ended.is_set():  # has_ended: another block restored this handler after its own
            usual(number, frame)
            return
        presses.append(number)
        wind_up()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        has_ended.set()
        if signal.getsignal(signal.SIGINT) is handle:
            with contextlib.suppress(ValueError):  # collected as garbage in another thread
                signal.signal(signal.SIGINT, usual)
        if presses:
            usual(signal.SIGINT, None)


def split_range(n: int, size: int) -> list[slice]:
    """Return slices that cover range(n), as equal as possible, none longer than *size*.

    >>> split_range(5, 2)
    [slice(0, 1, None), slice(1, 3, None), slice(3, 5, None)]
    """
    count = -(-n // size)
    return [slice(n * number // count, n * (number + 1) // count) for number in range(count)]


def n_cores() -> int:
    """Return how many cores encoding, searches, indexes and training use: `MIRBLAB_THREADS`, else `available_cores`.

    MirblabError for a variable that is no whole number from 1.
    """
    named = os.environ.get(THREADS, "")
    if named and (not named.isdecimal() or int(named) < 1):
        raise MirblabError(f"{THREADS} is {named!r}; set it to a whole number from 1")
    return int(named) if named else available_cores()


def available_cores() -> int:
    """Return the number of cores that this process may run on, at least 1."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


@lru_cache
def compiled(loop: Loop) -> Loop:
    """Return a loop over arrays as machine code, which several threads can run at the same time."""
    from numba import njit

    return cast(Loop, njit(nogil=True, cache=True)(loop))


def run_in_threads(task: Callable[[Job], Result], jobs: list[Job], workers: int) -> list[Result]:
    """Return the task's result for each job, in order, on that many threads."""
    if workers == 1 or len(jobs) < 2:
        return [task(job) for job in jobs]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(task, jobs))
