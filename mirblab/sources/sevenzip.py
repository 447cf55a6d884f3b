"""sevenzip: one member of a .7z archive as a stream, without unpacking it to memory or disk."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from mirblab import packed
from mirblab.errors import MirblabError
from mirblab.sources.dump import Readable


def members(archive: Path) -> dict[str, int]:
    """Return the sizes in bytes of the files in an archive, by their full names; MirblabError when it is broken."""
    with _opened(archive) as found:
        sizes = {info.filename: info.uncompressed for info in found.list() if not info.is_directory}
    packed.check(archive, sum(sizes.values()))
    return sizes


@contextlib.contextmanager
def stream(archive: Path, member: str) -> Iterator[Readable]:
    """Yield the unpacked bytes of one *member*.

    A thread unpacks into a pipe from which the caller reads, so that memory stays bounded whatever the size; the
    member's name never becomes a path. What goes wrong in the archive is an OSError at the end of the stream. A
    caller that stops early closes the pipe, and the thread ends at its next write.
    """
    reading, writing = os.pipe()
    failed: list[Exception] = []
    thread = threading.Thread(target=_unpack, args=(archive, member, writing, failed), daemon=True)
    thread.start()
    with os.fdopen(reading, "rb") as pipe:
        yield _Checked(pipe, thread, failed)


class _Checked:
    """The reading end of the pipe; at its end it says whether the archive was sound."""

    def __init__(self, pipe: BinaryIO, thread: threading.Thread, failed: list[Exception]) -> None:
        self._pipe, self._thread, self._failed = pipe, thread, failed

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; OSError at the end when the archive was damaged."""
        found = self._pipe.read(size)
        if not found and size:
            self._thread.join()
            if self._failed:
                raise OSError(str(self._failed[0]) or type(self._failed[0]).__name__) from self._failed[0]
        return found


def _unpack(archive: Path, member: str, writing: int, failed: list[Exception]) -> None:
    """Write a member to the pipe and close it; keep what went wrong, py7zr's own errors and its codecs' alike."""
    try:
        with os.fdopen(writing, "wb") as pipe, _opened(archive) as found:
            found.extract(targets=[member], factory=_writers(archive, pipe))
    except Exception as error:
        failed.append(error)


def _writers(archive: Path, pipe: BinaryIO) -> Any:
    """Return what py7zr asks for a place to write each file to; here always the pipe, as far as is allowed."""
    from py7zr.io import Py7zIO, WriterFactory

    class Into(Py7zIO):
        """The methods that py7zr wants; only `write` matters."""

        done = 0

        def write(self, data: bytes | bytearray) -> int:
            self.done += len(data)
            packed.check(archive, self.done)
            return pipe.write(data)

        def read(self, size: int | None = None) -> bytes:
            return b""

        def seek(self, offset: int, whence: int = 0) -> int:
            return offset

        def flush(self) -> None:
            pipe.flush()

        def size(self) -> int:
            return 0

    class Writers(WriterFactory):
        """Makes them."""

        def create(self, filename: str) -> Py7zIO:
            return Into()

    return Writers()


@contextlib.contextmanager
def _opened(archive: Path) -> Iterator[Any]:
    try:
        import py7zr
    except ImportError as error:
        raise MirblabError(
            f"{archive.name} needs the package py7zr: pip install 'mirblab[dumps]'; or unpack it with "
            f"`7z x {archive.name}` and give the folder"
        ) from error
    # An open file, not a name: else py7zr starts a thread per core, and the memory that each of them needs.
    with open(archive, "rb") as file:
        try:
            found = py7zr.SevenZipFile(file)
        except Exception as error:
            what = f"{error}" or type(error).__name__
            raise MirblabError(
                f"{archive.name} is no whole 7z archive, so that no row was read: {what}; fetch it again"
            ) from error
        with found:
            if found.needs_password():
                raise MirblabError(f"{archive.name} is encrypted; unpack it and give the folder")
            yield found
