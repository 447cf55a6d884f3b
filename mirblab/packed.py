"""packed: files and compressed files opened within limits, so that a small one cannot fill the memory or the disk."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from mirblab.errors import MirblabError

SETTING = "MIRBLAB_LARGEST"  # gigabytes that one file or archive may unpack to, and that a line may have
_GIGABYTE = 10**9
_ALWAYS = 2**28  # bytes that every file may unpack to
_RATIO = 200  # times as large as packed; texts are 3 to 20 times as large
_LINE = 2**26  # bytes of the longest line
_FORMS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
DAMAGED = (EOFError, OSError, lzma.LZMAError, zlib.error)  # what a compressed file that is not whole raises


def allowed(size: int) -> int:
    """Return to how many bytes something of *size* packed bytes may unpack.

    The larger of 256 MiB and 200 times its size, or as many gigabytes as the environment's MIRBLAB_LARGEST says.
    Raises MirblabError when that is no positive number.

    >>> allowed(10), allowed(10**9)
    (268435456, 200000000000)
    """
    return _setting() or max(_ALWAYS, _RATIO * size)


def check(path: Path, unpacked: int) -> None:
    """Raise MirblabError when the file or archive at *path* says that it unpacks to more bytes than are allowed."""
    size = path.stat().st_size
    if unpacked > (most := allowed(size)):
        raise _too_large(path, f"{unpacked:,}", size, most)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Yield the bytes of a file, unpacked when its name ends in `.gz`; MirblabError when they are more than allowed."""
    with open(path, "rb") as file:
        with closing(unpacked(path, file)) as inner:
            yield inner


def unpacked(path: Path, file: BinaryIO) -> BinaryIO:
    """Return the bytes of the open *file*, unpacked when the name of its *path* ends in `.gz`, within the limit."""
    if path.suffix.lower() != ".gz":
        return file
    return cast(BinaryIO, io.BufferedReader(_Counted(path, gzip.open(file)), 2**17))


@contextmanager
def archived(path: Path) -> Iterator[BinaryIO]:
    """Yield the bytes of a file, unpacked when it begins as gzip, bzip2 or xz; they can be sought in."""
    with open(path, "rb") as file:
        start = file.read(6)
        file.seek(0)
        form = next((form for magic, form in _FORMS.items() if start.startswith(magic)), None)
        inner = cast(BinaryIO, io.BufferedReader(_Counted(path, form(file)), 2**17)) if form else file
        with closing(inner):
            yield inner


def numbered(path: Path, file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield number, from 1, and bytes of each line; MirblabError with the number for one that is longer than 64 MiB."""
    most = _setting() or _LINE
    for number, line in enumerate(iter(partial(file.readline, most + 1), b""), 1):
        if len(line) > most:
            raise MirblabError(
                f"{path}, line {number}: longer than {most:,} bytes, which no line of a sound file is; if it is right, "
                f"set {SETTING} (gigabytes)"
            )
        yield number, line


class _Counted(io.RawIOBase):
    """A stream that ends in an error when more comes out of it than is allowed."""

    def __init__(self, path: Path, inner: Any) -> None:
        self._path, self._inner, self._done = path, inner, 0
        self._size = path.stat().st_size
        self._most = allowed(self._size)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go elsewhere; what is passed does not count."""
        return cast(int, self._inner.seek(offset, whence))

    def tell(self) -> int:
        """Return where in the unpacked bytes we are."""
        return cast(int, self._inner.tell())

    def readinto(self, buffer: Any) -> int:
        """Read into the buffer, and count."""
        found = self._inner.readinto(buffer)
        self._done += found
        if self._done > self._most:
            raise _too_large(self._path, f"over {self._most:,}", self._size, self._most)
        return cast(int, found)

    def close(self) -> None:
        """Close the stream inside, too."""
        self._inner.close()
        super().close()


def _setting() -> int:
    """Return what the environment allows in bytes, 0 when it says nothing."""
    told = os.environ.get(SETTING, "")
    try:
        gigabytes = float(told) if told else 0.0
    except ValueError:
        gigabytes = -1.0
    if not 0 <= gigabytes < 10**9 or (told and not gigabytes):
        raise MirblabError(f"{SETTING} must be a number of gigabytes, such as 50, found '{told}'")
    return int(gigabytes * _GIGABYTE)


def _too_large(path: Path, unpacked: str, size: int, most: int) -> MirblabError:
    needed = "" if unpacked.startswith("over") else f", at least {int(unpacked.replace(',', '')) / _GIGABYTE:.3g}"
    return MirblabError(
        f"{path} has {size:,} bytes and unpacks to {unpacked}, while {most:,} are allowed; what grows like this is "
        f"mostly made to fill a disk or the memory. If it is right, set {SETTING} (gigabytes{needed})"
    )
