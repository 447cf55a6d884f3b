"""lines: text files read line by line, plain or gzipped, with every broken line noted."""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO, cast

from mirblab import json_text, packed
from mirblab.errors import MirblabError

_digests: ContextVar[dict[Path, str] | None] = ContextVar("_digests", default=None)


class Problems:
    """What makes a file unusable: each line is noted, and the error names the first and how many there are."""

    def __init__(self, path: Path) -> None:
        """Begin with no problem in the file at *path*."""
        self.path, self.found = path, []

    def note(self, line: int, what: str) -> None:
        """Remember that a line is wrong, and why."""
        self.found.append((line, what))

    def raise_if_any(self) -> None:
        """Raise MirblabError with file, line and number when something was noted."""
        if self.found:
            line, what = self.found[0]
            more = f" ({len(self.found):,} such lines in all)" if len(self.found) > 1 else ""
            raise MirblabError(f"{self.path}, line {line}: {what}{more}")


def find(folder: Path, stem: str, *, suffixes: tuple[str, ...] = (".jsonl", ".jsonl.gz")) -> Path | None:
    """Return the file `stem` + one of the *suffixes* in *folder*, or None; MirblabError when there are several."""
    found = [path for suffix in suffixes if (path := folder / f"{stem}{suffix}").is_file()]
    if len(found) > 1:
        raise MirblabError(f"{folder} has {' and '.join(path.name for path in found)}; keep one of them")
    return found[0] if found else None


@contextmanager
def hashed() -> Iterator[dict[Path, str]]:
    """Yield the BLAKE2b digests (32 bytes) of the files that `lines` reads to their end meanwhile, by path.

    So the bytes that are compared are those that were read, whatever happens to the file.
    """
    digests: dict[Path, str] = {}
    token = _digests.set(digests)
    try:
        yield digests
    finally:
        _digests.reset(token)


def lines(path: Path, problems: Problems) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is not blank, from 1; lines that are not UTF-8 are noted."""
    try:
        with _opened(path) as file:
            for number, raw in packed.numbered(path, file):
                if number == 1:
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                try:
                    text = raw.decode("utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    problems.note(number, f"not UTF-8 at byte {error.start}; save the file as UTF-8")
                    continue
                if text.strip():
                    yield number, text
    except (EOFError, OSError, zlib.error) as error:
        raise MirblabError(f"{path} cannot be read: {error}; copy or unpack it again") from error


def records(path: Path, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and object of each line of a .jsonl file; broken lines are noted."""
    for number, text in lines(path, problems):
        try:
            record = json_text.loads(text)
        except json_text.Unreadable as error:
            problems.note(number, str(error))
            continue
        if isinstance(record, dict):
            yield number, record
        else:
            problems.note(number, f"expected a JSON object, found {type(record).__name__}")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Yield the unpacked bytes of a file; where digests are wanted, they are made of what passes."""
    digests = _digests.get()
    with open(path, "rb") as raw:
        digest = hashlib.blake2b(digest_size=32)
        file = raw if digests is None else cast(BinaryIO, io.BufferedReader(_Hashed(raw, digest), 2**18))
        with closing(packed.unpacked(path, file)) as inner:
            yield inner
            if digests is not None:
                while file.read(2**18):  # what stands behind the last line, or behind the packed bytes
                    pass
                digests[path] = digest.hexdigest()


class _Hashed(io.RawIOBase):
    """A stream whose bytes go into a digest as they are read."""

    def __init__(self, inner: Any, digest: Any) -> None:
        self._inner, self._digest = inner, digest

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into the buffer, and hash what was read."""
        n_read = cast(int, self._inner.readinto(buffer))
        self._digest.update(memoryview(buffer)[:n_read])
        return n_read
