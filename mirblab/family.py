"""family: a process that we started ends when we end, however that happens."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from threading import Thread


def end_with_parent() -> None:
    """End this process, and all that it started, once the process has ended whose `multiprocessing` started it.

    Also when that one was killed, and whatever is being computed here: the system closes its end of a pipe then.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        end_after(parent.join)


def end_after(wait: Callable[[], object]) -> None:
    """End this process, and all that it started, once *wait* returns, which is called in a thread of its own."""
    Thread(target=_end, args=(wait,), daemon=True).start()


def _end(wait: Callable[[], object]) -> None:
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
