"""Processes that end with their parent, and Ctrl-C that lets a step finish first."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from threading import Thread
from types import FrameType


def end_with_parent() -> None:
    """End this process and all that it started when its parent of `multiprocessing` ends, whatever is running here."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        end_after(parent.join)


def end_after(wait: Callable[[], object]) -> None:
    """Call *wait* in another thread, and end this process and all that it started when *wait* returns."""
    Thread(target=_end_process_tree, args=(wait,), daemon=True).start()


def _end_process_tree(wait: Callable[[], object]) -> None:
    import psutil

    try:
        wait()
    finally:
        for process in psutil.Process().children(recursive=True):
            try:
                process.kill()
            except psutil.Error:  # it has ended by itself
                continue
        os._exit(1)


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
