"""JSON and lines of text from any source, read within limits of size and nesting, each error with its line."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO

from mirblab.core.errors import MirblabError

DEEPEST = 200  # levels of lists and objects; data has fewer than ten, and Python stops near a thousand
LIMIT_VARIABLE = "MIRBLAB_LARGEST"  # gigabytes that a file or archive may unpack to, and that a line may have
_GIGABYTE = 10**9
_LEAST_LIMIT = 2**28  # bytes that every file may unpack to
_LARGEST_RATIO = 200  # times as large as packed; texts are 3 to 20 times as large
_LONGEST_LINE = 2**26  # bytes of the longest line
_COMPRESSIONS: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open,
}  # fmt: skip
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_LONG_NUMBER = re.compile(r"\d{4301}")
_HALF_CHARACTER = re.compile(r"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]")
_digests: ContextVar[dict[Path, str] | None] = ContextVar("_digests", default=None)


class UnreadableJson(MirblabError):
    """A text that is no JSON, or JSON beyond the limits; `line` says where in it, from 1."""

    def __init__(self, what: str, line: int = 1) -> None:
        super().__init__(what)
        self.line = line


class LineProblems:
    """The wrong lines of a file; the error names the first one and says how many there are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[tuple[int, str]] = []

    def note(self, line: int, what: str) -> None:
        """Add a wrong line, and what is wrong with it."""
        self.lines.append((line, what))

    def raise_if_any(self) -> None:
        """Raise MirblabError with file, line and number when something was noted."""
        if self.lines:
            line, what = self.lines[0]
            more = f" ({len(self.lines):,} such lines in all)" if len(self.lines) > 1 else ""
            raise MirblabError(f"{self.path}, line {line}: {what}{more}")


def find_file(folder: Path, stem: str, *, suffixes: tuple[str, ...] = (".jsonl", ".jsonl.gz")) -> Path | None:
    """Return the file *stem* with one of the *suffixes* in *folder*, or None; MirblabError for several."""
    files = [path for suffix in suffixes if (path := folder / f"{stem}{suffix}").is_file()]
    if len(files) > 1:
        raise MirblabError(f"{folder} has {' and '.join(path.name for path in files)}; keep one of them")
    return files[0] if files else None


def read_records(path: Path, problems: LineProblems) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and object of each line of a .jsonl file; broken lines are noted."""
    for number, text in read_lines(path, problems):
        try:
            record = parse_json(text)
        except UnreadableJson as error:
            problems.note(number, str(error))
            continue
        if isinstance(record, dict):
            yield number, record
        else:
            problems.note(number, f"expected a JSON object, found {type(record).__name__}")


def read_lines(path: Path, problems: LineProblems) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is not blank, from 1; lines that are not UTF-8 are noted."""
    try:
        with _open_hashed(path) as file:
            for number, raw in numbered_lines(path, file):
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


@contextmanager
def collect_digests() -> Iterator[dict[Path, str]]:
    """Yield BLAKE2b digests (32 bytes), by path, of the files as `read_lines` reads them to their end in the block."""
    digests: dict[Path, str] = {}
    token = _digests.set(digests)
    try:
        yield digests
    finally:
        _digests.reset(token)


def note_digest(path: Path, digest: str) -> None:
    """Give the digest of a file that is not read here to the block of `collect_digests`, where there is one."""
    digests = _digests.get()
    if digests is not None:
        digests[path] = digest


def read_json(path: Path) -> Any:
    """Return the value in a JSON file in UTF-8; MirblabError with file and line for what cannot be read."""
    try:
        return parse_json(path.read_text("utf-8-sig"))
    except UnreadableJson as error:
        raise MirblabError(f"{path}, line {error.line}: {error}; mend the file, or write it again") from error
    except UnicodeDecodeError as error:
        raise MirblabError(f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8") from error


def parse_json(text: str) -> Any:
    """Return the value of a JSON text; UnreadableJson, without the file's name, for what is broken or too large.

    More than `DEEPEST` levels and whole numbers of over 4,300 digits are too large; a lone surrogate counts as broken.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise json_error(error, text) from error
    return check_json(value, text)


def check_json(value: Any, text: str) -> Any:
    """Return a JSON *value* read from *text*; UnreadableJson when it is nested too deeply or has a lone surrogate."""
    half = _HALF_CHARACTER.search(text) if "\\u" in text else None
    if half:  # or two halves that make a character in another way than the pattern knows
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            reason = "holds half a character (a lone surrogate); repair the text"
            raise UnreadableJson(reason, _line_number(text, half.start())) from error
    if text.count("[") + text.count("{") > DEEPEST and is_nested_deeper(value, DEEPEST):
        raise json_error(RecursionError(), text)
    return value


def is_nested_deeper(value: Any, n_levels: int) -> bool:
    """Return whether lists and objects are nested in each other on more than *n_levels* levels."""
    level = [value]
    for _ in range(n_levels + 1):
        containers = [outer for outer in level if isinstance(outer, (list, dict))]
        level = [inner for outer in containers for inner in (outer.values() if isinstance(outer, dict) else outer)]
    return bool(level)


def json_error(error: ValueError | RecursionError, text: str) -> UnreadableJson:
    """Return the error with the meaning and the line of the json module's *error* about a *text*."""
    if isinstance(error, RecursionError):
        return UnreadableJson(f"nested too deeply, over {DEEPEST} levels", _line_number(text, _deepest_offset(text)))
    if isinstance(error, json.JSONDecodeError):
        return UnreadableJson(f"broken JSON: {error.msg} at character {error.colno}", error.lineno)
    number = _LONG_NUMBER.search(text)
    return UnreadableJson(
        "a whole number of more than 4,300 digits", _line_number(text, number.start() if number else 0)
    )


@contextmanager
def open_unpacked(path: Path) -> Iterator[BinaryIO]:
    """Yield the bytes of a file, unpacked when its name ends in `.gz`; MirblabError when they are more than allowed."""
    with open(path, "rb") as file, closing(unpacked_stream(path, file)) as inner:
        yield inner


def unpacked_stream(path: Path, file: BinaryIO) -> BinaryIO:
    """Return the bytes of the open *file*, unpacked when the name of its *path* ends in `.gz`, within the limit."""
    if path.suffix.lower() != ".gz":
        return file
    return _limited(path, gzip.open(file))


@contextmanager
def open_archive(path: Path) -> Iterator[BinaryIO]:
    """Yield a stream of a file's bytes that can seek, unpacked when it begins as gzip, bzip2 or xz."""
    with open(path, "rb") as file:
        start = file.read(6)
        file.seek(0)
        unpack = next((unpack for magic, unpack in _COMPRESSIONS.items() if start.startswith(magic)), None)
        inner = _limited(path, unpack(file)) if unpack else file
        with closing(inner):
            yield inner


def numbered_lines(path: Path, file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield number, from 1, and bytes of each line; MirblabError with the number for a line of more than 64 MiB."""
    most = _limit_from_environment() or _LONGEST_LINE
    for number, line in enumerate(iter(partial(file.readline, most + 1), b""), 1):
        if len(line) > most:
            raise MirblabError(
                f"{path}, line {number}: longer than {most:,} bytes, which no valid file needs; if it is right, "
                f"set {LIMIT_VARIABLE} (gigabytes)"
            )
        yield number, line


def unpacking_limit(size: int) -> int:
    """Return how many bytes a file may unpack to: MIRBLAB_LARGEST (gigabytes), else 256 MiB or 200 times its *size*."""
    return _limit_from_environment() or max(_LEAST_LIMIT, _LARGEST_RATIO * size)


def check_unpacked_size(path: Path, unpacked: int) -> None:
    """Raise MirblabError when the file or archive at *path* says that it unpacks to more bytes than are allowed."""
    size = path.stat().st_size
    if unpacked > (most := unpacking_limit(size)):
        raise _too_large_error(path, f"{unpacked:,}", size, most)


@contextmanager
def _open_hashed(path: Path) -> Iterator[BinaryIO]:
    digests = _digests.get()
    with open(path, "rb") as raw:
        digest = hashlib.blake2b(digest_size=32)
        file = raw if digests is None else io.BufferedReader(_WatchedStream(raw, digest.update), 2**18)
        with closing(unpacked_stream(path, file)) as inner:
            yield inner
            if digests is not None:
                while file.read(2**18):  # bytes behind the last line, or behind the packed bytes
                    pass
                digests[path] = digest.hexdigest()


class _WatchedStream(io.RawIOBase):
    """A stream that passes all bytes that are read from it to a function."""

    def __init__(self, inner: Any, watch: Callable[[memoryview], object]) -> None:
        self._inner, self._watch = inner, watch

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._inner.seek(offset, whence))

    def tell(self) -> int:
        return int(self._inner.tell())

    def readinto(self, buffer: Any) -> int:
        n_read: int = self._inner.readinto(buffer)
        self._watch(memoryview(buffer)[:n_read])
        return n_read

    def close(self) -> None:
        self._inner.close()
        super().close()


def _limited(path: Path, inner: Any) -> BinaryIO:
    size = path.stat().st_size
    most, n_read = unpacking_limit(size), 0

    def count(read: memoryview) -> None:
        nonlocal n_read
        n_read += len(read)
        if n_read > most:
            raise _too_large_error(path, f"over {most:,}", size, most)

    return io.BufferedReader(_WatchedStream(inner, count), 2**17)


def _limit_from_environment() -> int:
    setting = os.environ.get(LIMIT_VARIABLE, "")
    try:
        gigabytes = float(setting) if setting else 0.0
    except ValueError:
        gigabytes = -1.0
    if not 0 <= gigabytes < 10**9 or (setting and not gigabytes):
        raise MirblabError(f"{LIMIT_VARIABLE} must be a number of gigabytes, such as 50, found '{setting}'")
    return int(gigabytes * _GIGABYTE)


def _too_large_error(path: Path, unpacked: str, size: int, most: int) -> MirblabError:
    needed = "" if unpacked.startswith("over") else f", at least {int(unpacked.replace(',', '')) / _GIGABYTE:.3g}"
    return MirblabError(
        f"{path} has {size:,} bytes and unpacks to {unpacked}, while {most:,} are allowed; files that grow so much "
        f"are usually made to fill a disk or the memory. If the size is right, set {LIMIT_VARIABLE} (gigabytes{needed})"
    )


def _deepest_offset(text: str) -> int:
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += (token[0] in "[{") - (token[0] in "]}")
        if depth > DEEPEST:
            return token.start()
    return 0


def _line_number(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
