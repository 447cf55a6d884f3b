"""mapped_files: files that are mapped into memory, each of which counts as an open one."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from pathlib import Path

import numpy as np

from mirblab.core.errors import MirblabError

_MOST_OF_UNLIMITED = 10_240  # what macOS permits where its limit says unlimited


class OpenFilesError(MirblabError):
    """A file that cannot be opened because this process has too many open; the file itself is in order."""


def map_file(path: Path) -> mmap.mmap | None:
    """Return a whole file mapped into memory, for reading, or None when it is empty.

    A process that has half of the files open that it may have raises that limit as far as the system permits it.
    OpenFilesError when there are too many all the same, OSError when the file cannot be opened for another reason.
    """
    try:
        with open(path, "rb") as file:
            number = os.dup(file.fileno())  # the lowest that is free, and so the number of those that are open
            os.close(number)
            _permit_more_than(2 * number)
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:
        return None
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        raise OpenFilesError(
            f"{path} cannot be opened: too many files are open; raise the limit with ulimit -n, or open fewer "
            "collections in one process"
        ) from error


def _permit_more_than(n_files: int) -> None:
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_OF_UNLIMITED if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < min(n_files, most):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def expect_single_rows(rows: np.ndarray) -> None:
    """Say that single *rows* of a map by `map_file` are read, far from each other, so that none are read ahead."""
    _advise(rows, "MADV_RANDOM")


def release_pages(rows: np.ndarray) -> None:
    """Give the pages of *rows* in a map by `map_file` back to the system, which keeps them while it has room."""
    _advise(rows, "MADV_DONTNEED")


def _advise(rows: np.ndarray, advice: str) -> None:
    memory = rows.base
    while isinstance(memory, np.ndarray):
        memory = memory.base
    if isinstance(memory, memoryview) and isinstance(memory.obj, mmap.mmap) and hasattr(mmap, advice):  # not on Windows
        start = rows.ctypes.data - np.frombuffer(memory.obj, np.uint8).ctypes.data
        page = start - start % mmap.PAGESIZE
        memory.obj.madvise(getattr(mmap, advice), page, start + rows.nbytes - page)
