"""A writer that makes files and removes them all the time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def hasty_writer(folder: Path) -> Iterator[None]:
    """Make and remove files in *folder*, and folders with a file, until the block ends."""
    ended = threading.Event()

    def write() -> None:
        while not ended.is_set():
            for n in range(50):
                (folder / f"made-{n}").mkdir()
                for path in (folder / f"file-{n}", folder / f"made-{n}" / "file"):
                    path.write_bytes(b"x")
            for n in range(50):
                for path in (folder / f"file-{n}", folder / f"made-{n}" / "file"):
                    path.unlink()
                (folder / f"made-{n}").rmdir()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
