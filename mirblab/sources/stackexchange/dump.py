"""dump: the rows of a dump's XML, also from 7z archives."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from xml.parsers import expat

from mirblab.core import paths, text_files
from mirblab.core.errors import MirblabError
from mirblab.core.terminal import ProgressBar, progress

_BLOCK = 2**20
_LONGEST = 4 * 2**20  # a post has at most 30,000 characters of Markdown
_MOST_LAYOUTS = 4096
_EXAMPLES = 3
_CUT, _MALFORMED, _NOT_UTF8, _LONG = "rows cut off", "rows not well-formed", "rows not in UTF-8", "rows over 4 MiB"
_NAME = re.compile(rb"\s+([A-Za-z_][\w.-]*)\s*=\s*")
_END = re.compile(rb"\s*/>\s*(?:</\w+\s*>\s*)?")
_CONTROL = bytes(range(32))
_SPACES = bytes.maketrans(b"\t\n\r", b"   ")
_REFERENCE = re.compile(rb"&#(?:x([0-9a-fA-F]{1,8})|([0-9]{1,9}));")
_NOT_AMP = re.compile(r"&(?!amp;)(?:(apos|#x[0-9a-fA-F]{1,8}|#[0-9]{1,9});)?")
_ENCODING = re.compile(rb"""<\?xml[^>]*\sencoding\s*=\s*["']([\w.-]+)["']""")


class Readable(Protocol):
    """Anything that is read as a binary file: blocks of at most *size* bytes, and b"" at the end."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""


@dataclass
class RowProblems:
    """What is wrong in the files that are read, and what was passed over.

    `counts` has how often, by file and reason; `examples` the first three lines of each; `passed` the rows that
    `rows(only=...)` passed over, by value.
    """

    counts: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    passed: Counter[str] = field(default_factory=Counter)

    def note(self, name: str, line: int, reason: str, detail: str = "") -> None:
        """Count one broken row, on a *line* of the file *name*, under its *reason*."""
        key = f"{name}: {reason}"
        self.counts[key] += 1
        if self.counts[key] <= _EXAMPLES:
            self.examples.append(f"{name}, line {line}: {reason}" + (f" ({detail})" if detail else ""))


@dataclass(frozen=True)
class DumpFiles:
    """The files of one dump: `names` maps "Posts" to a file in the folder `path`, or to a member of that archive."""

    path: Path
    names: dict[str, str]

    @property
    def site(self) -> str:
        """The name of the folder or archive, which for a dump as published is the site's: math.stackexchange.com."""
        return self.path.resolve().name.removesuffix(".7z")

    def shown(self, stem: str) -> str:
        """Return the name of a file without folders, after that of its archive, for messages."""
        name = Path(self.names[stem]).name
        return f"{self.path.name}: {name}" if self.path.is_file() else name

    def revision(self) -> str:
        """Return a hash of the bytes as they lie: of the archive, or of the files."""
        digest = hashlib.blake2b(digest_size=16)
        paths = [self.path] if self.path.is_file() else [self.path / name for _, name in sorted(self.names.items())]
        for path in paths:
            with open(path, "rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        return f"blake2b:{digest.hexdigest()}"

    @contextlib.contextmanager
    def stream(self, stem: str) -> Iterator[Readable]:
        """Yield the unpacked bytes of a file, with a progress bar; what is damaged is an error of its `read()`."""
        label = f"reading {self.shown(stem)}"
        with contextlib.ExitStack() as stack:
            position: Callable[[], int] | None = None
            if self.path.is_file():
                total = archive_members(self.path)[self.names[stem]]
                inner = stack.enter_context(stream_member(self.path, self.names[stem]))
            else:
                raw = stack.enter_context(open(self.path / self.names[stem], "rb"))
                total, position = (self.path / self.names[stem]).stat().st_size, raw.tell
                inner = text_files.unpacked_stream(self.path / self.names[stem], raw)
            bar = stack.enter_context(progress(total // 10**6, label, "MB"))
            yield _Watched(inner, bar, position)


def read_rows(
    stream: Readable, name: str, wanted: tuple[str, ...], odd: RowProblems, only: tuple[str, str] | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and *wanted* attributes of each `<row .../>`, unescaped once, as XML asks; absent ones are missing.

    *stream* has the bytes of an XML file in UTF-8, in any layout: a row per line, over several, or all on one.
    *only* = (attribute, value) passes over rows with another value. Rows that are cut off, malformed, over 4 MiB
    or not UTF-8 are noted in *odd*, and reading goes on at the next `<row`. Entities beyond XML's own five are never
    resolved: a document type is noted and ignored, and a row that uses what it declares is malformed. References
    to characters that XML forbids are dropped. Raises MirblabError when the stream breaks off, saying after how many
    rows, and when it has no row at all or another encoding.

    >>> import io
    >>> text = b'<tags><row Id="1" TagName="a &amp;lt; b" /><row Id="2" Tag<row Id="3" /></tags>'
    >>> odd = RowProblems()
    >>> list(read_rows(io.BytesIO(text), "Tags.xml", ("TagName",), odd))
    [(1, {'TagName': 'a &lt; b'}), (1, {})]
    >>> odd.examples
    ['Tags.xml, line 1: rows cut off']
    """
    layouts: dict[tuple[bytes, ...], dict[str, int] | None] = {}
    for line, raw in _pieces(stream, name, odd):
        try:
            found = _split(raw, layouts) or _parsed(raw)
            if only:
                value = _text(found.get(only[0], ""))
                if not value:
                    raise _Broken(f"rows without {only[0]}")
                if value != only[1]:
                    odd.passed[value] += 1
                    continue
            row = {key: _text(found[key]) for key in wanted if key in found}
        except _Broken as broken:
            odd.note(name, line, *broken.args)
        else:
            yield line, row


@contextlib.contextmanager
def stream_member(archive: Path, member: str) -> Iterator[Readable]:
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


def find_dump(origin: str | Path, stems: tuple[str, ...]) -> DumpFiles:
    """Return the *stems* ("Posts", "PostLinks") of the dump at *origin*: a .7z archive, or a folder.

    In a folder `Posts.xml`, `Posts.xml.gz` and names with a version (`Posts.V1.3.xml.gz`) are found. Raises
    FileNotFoundError for a place that does not exist or lacks a file, MirblabError for two files of one stem and for
    an archive that cannot be read.
    """
    path = paths.expand_home(origin)
    if path.is_dir():
        there = sorted(entry.name for entry in path.iterdir() if entry.is_file())
    elif path.suffix.lower() == ".7z" and path.is_file():
        there = sorted(archive_members(path))
    elif path.exists():
        raise MirblabError(f"{path} is neither a .7z archive nor a folder of a Stack Exchange dump; give one of these")
    else:
        raise FileNotFoundError(f"no {path}; give a .7z archive of a Stack Exchange dump, or the folder it unpacks to")
    return DumpFiles(path, {stem: _one(path, stem, there) for stem in stems})


def archive_members(archive: Path) -> dict[str, int]:
    """Return the sizes in bytes of the files in an archive, by their full names; MirblabError when it is broken."""
    with _opened(archive) as found:
        sizes = {info.filename: info.uncompressed for info in found.list() if not info.is_directory}
    text_files.check_unpacked_size(archive, sum(sizes.values()))
    return sizes


def _pieces(stream: Readable, name: str, odd: RowProblems) -> Iterator[tuple[int, bytes]]:
    """Yield line and text of each row, from behind its `<row` to the next one.

    A smaller-than sign is always escaped in attributes, so that `<row` begins a row wherever it stands.
    """
    carry, line, n_rows, is_inside, is_long = b"", 1, 0, False, False
    while block := _read(stream, name, n_rows):
        *parts, carry = (carry + block).split(b"<row")
        for part in parts:
            if not is_inside:
                _check_start(part, name, odd)
            elif not is_long:
                yield line, part
            n_rows += is_inside
            is_inside, is_long = True, False
            line += part.count(b"\n")
        if len(carry) > _LONGEST or is_long:
            if not is_long:
                odd.note(name, line, _LONG)
            # The last bytes may be the beginning of the next `<row`.
            line, carry, is_long = line + carry.count(b"\n", 0, -3), carry[-3:], True
    if not is_inside:
        _check_start(carry, name, odd)
        raise MirblabError(f"{name} has no rows (`<row .../>`); found {carry[:40]!r}; give a file of the dump")
    if not is_long:
        yield line, carry
    if b"</" not in carry:
        odd.note(name, line + carry.count(b"\n"), "files that end without a closing tag")


def _read(stream: Readable, name: str, n_rows: int) -> bytes:
    try:
        return stream.read(_BLOCK)
    except (EOFError, OSError, zlib.error) as error:
        raise MirblabError(f"{name} breaks off after {n_rows:,} rows: {error}; fetch it again") from error


def _check_start(start: bytes, name: str, odd: RowProblems) -> None:
    """Refuse what is no XML in UTF-8; note a document type."""
    declared = _ENCODING.search(start)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") or (declared and declared[1].lower() not in (b"utf-8", b"us-ascii")):
        found = declared[1].decode() if declared else "UTF-16"
        raise MirblabError(f"{name} is in {found}; expected UTF-8, as the dumps are")
    if b"<!DOCTYPE" in start:
        odd.note(name, 1 + start.count(b"\n", 0, start.index(b"<!DOCTYPE")), "document types ignored")


def _split(raw: bytes, layouts: dict[tuple[bytes, ...], dict[str, int] | None]) -> dict[str, bytes | str] | None:
    """Return the raw values of a row written as usual, or None for one that the XML parser has to read.

    Between quotes stand the values, and what stands outside them is the same in many rows (its layout), so that
    it is checked once: three times as fast as the parser.
    """
    cells = raw.split(b'"')
    if len(cells) % 2 == 0 or raw.find(b"<", 0, len(raw) - len(cells[-1])) >= 0:
        return None
    key = tuple(cells[::2])
    if key not in layouts:
        if len(layouts) >= _MOST_LAYOUTS:
            layouts.clear()
        layouts[key] = _layout(key)
    layout = layouts[key]
    return None if layout is None else {name: cells[place] for name, place in layout.items()}


def _layout(outside: tuple[bytes, ...]) -> dict[str, int] | None:
    """Return where the value of each attribute stands, or None when the row is not well-formed outside its values."""
    names = [_NAME.fullmatch(part) for part in outside[:-1]]
    places = {match[1].decode(): 2 * place + 1 for place, match in enumerate(names) if match}
    return places if len(places) == len(names) > 0 and _END.fullmatch(outside[-1]) else None


def _parsed(raw: bytes) -> dict[str, bytes | str]:
    """Return the attributes of a row as expat reads it alone, so that no declaration of its file is in force."""
    body = raw.rstrip()
    closing = body.rfind(b"</")
    if closing >= 0 and not body.startswith(b"</row", closing):
        body = body[:closing]
    if b"/>" not in body and b"</row" not in body:
        raise _Broken(_CUT)
    found: dict[str, bytes | str] = {}
    parser = expat.ParserCreate("UTF-8")
    parser.StartElementHandler = lambda _, attributes: found.update(attributes)
    try:
        body.decode()
        parser.Parse(b"<row" + _REFERENCE.sub(_allowed, body), True)
    except UnicodeDecodeError as error:
        raise _Broken(_NOT_UTF8, f"at byte {error.start + 4} of the row") from error
    except expat.ExpatError as error:
        raise _Broken(_MALFORMED, str(error)) from error
    return found


def _allowed(match: re.Match[bytes]) -> bytes:
    number = int(match[1], 16) if match[1] else int(match[2])
    return match[0] if _character(number) else b""


def _text(value: bytes | str) -> str:
    """Return a value of `_split()` unescaped; one of the parser is so already."""
    if isinstance(value, str):
        return value
    if len(value.translate(None, _CONTROL)) < len(value):
        # XML reads line ends and tabs in a value as spaces, and has no other control character.
        value = value.replace(b"\r\n", b" ").translate(_SPACES)
        if value.translate(None, _CONTROL) != value:
            raise _Broken(_MALFORMED, "a control character")
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        raise _Broken(_NOT_UTF8, f"at byte {error.start} of a value") from error
    if "&" in text:
        text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&#xA;", "\n")
        text = _NOT_AMP.sub(_referred, text).replace("&amp;", "&")
    return text


def _referred(match: re.Match[str]) -> str:
    name = match[1]
    if name is None:
        raise _Broken(_MALFORMED, f"'{match.string[match.start() : match.start() + 12]}' is no entity of XML")
    if name == "apos":
        return "'"
    character = _character(int(name[2:], 16) if name[1] == "x" else int(name[1:]))
    # Left escaped, because the ampersands are unescaped after this, once.
    return "&amp;" if character == "&" else character


class _Broken(Exception):
    """A row that cannot be read: its reason, and a detail."""


def _character(number: int) -> str:
    """Return the character of a number, or nothing where XML forbids it."""
    is_allowed = (
        number in (9, 10, 13) or 32 <= number < 0xD800 or 0xE000 <= number < 0xFFFE or 2**16 <= number < 0x110000
    )
    return chr(number) if is_allowed else ""


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
            text_files.check_unpacked_size(archive, self.done)
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


class _Watched:
    """A stream that moves the bar as it is read, by its own `position` or by what came out of it."""

    def __init__(self, inner: Readable, bar: ProgressBar, position: Callable[[], int] | None) -> None:
        self._inner, self._bar, self._position = inner, bar, position
        self._done, self._shown = 0, 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, and move the bar."""
        found = self._inner.read(size)
        self._done = self._position() if self._position else self._done + len(found)
        self._bar.update(self._done // 10**6 - self._shown)
        self._shown = self._done // 10**6
        return found


def _one(path: Path, stem: str, there: list[str]) -> str:
    wanted = re.compile(rf"(?:.*/)?{stem}(?:\.[\w.-]+)?\.xml(?:\.gz)?")
    found = [name for name in there if wanted.fullmatch(name)]
    if len(found) > 1:
        raise MirblabError(f"{path} has {' and '.join(found)}; keep one of them")
    if not found:
        shown = ", ".join(there[:8]) or "nothing"
        raise FileNotFoundError(f"no {stem}.xml or {stem}.xml.gz in {path}; found {shown}; is it a site's whole dump?")
    return found[0]
