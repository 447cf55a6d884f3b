"""processes: processes that end with their parent, and Ctrl-C in good order."""

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
    """End this process, and all that it started, once the process has ended whose `multiprocessing` started it.

    Also when that one was killed, and whatever is being computed here: the system closes its end of a pipe then.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        end_after(parent.join)


def end_after(wait: Callable[[], object]) -> None:
    """End this process, and all that it started, once *wait* returns, which is called in a thread of its own."""
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
    """Let the first Ctrl-C call *wind_up*, and raise KeyboardInterrupt only when the block has ended.

    The second raises it at once. *wind_up* must make the block end soon. Outside the main thread, where no Ctrl-C
    arrives, and where it is ignored or handled by the system, nothing changes.

    >>> with defer_interrupt(print):
    ...     "nobody pressed anything"
    'nobody pressed anything'
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    struck: list[int] = []
    over = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if struck or over.is_set():  # over: another block restored this handler after its own
            usual(number, frame)
            return
        struck.append(number)
        wind_up()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        over.set()
        if signal.getsignal(signal.SIGINT) is handle:
            with contextlib.suppress(ValueError):  # collected as garbage in another thread
                signal.signal(signal.SIGINT, usual)
        if struck:
            usual(signal.SIGINT, None)
