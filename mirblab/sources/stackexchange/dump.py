"""dump: read the rows of a dump's XML, also from 7z archives."""

from __future__ import annotations

import contextlib
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
from mirblab.core.errors import MirblabError, MissingFileError
from mirblab.core.terminal import ProgressBar, progress
from mirblab.core.wording import first_names

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
    """The broken rows by file and reason, the first three as `examples`; `passed` counts the rows skipped by `only`."""

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
    """The files of one dump: `names` maps "Posts" to a file in the folder, or a member of the archive, `path`."""

    path: Path
    names: dict[str, str]

    @property
    def site(self) -> str:
        """The name of the folder or archive, which in a published dump is the site's: math.stackexchange.com."""
        return self.path.resolve().name.removesuffix(".7z")

    def shown(self, stem: str) -> str:
        """Return the name of a file without folders, after that of its archive, for messages."""
        name = Path(self.names[stem]).name
        return f"{self.path.name}: {name}" if self.path.is_file() else name

    def paths(self) -> list[Path]:
        """Return the archive, or the files in the order of their stems."""
        return [self.path] if self.path.is_file() else [self.path / name for _, name in sorted(self.names.items())]

    @contextlib.contextmanager
    def stream(self, stem: str) -> Iterator[Readable]:
        """Yield the unpacked bytes of a file, with a progress bar; damage is an error of its `read()`."""
        with contextlib.ExitStack() as stack:
            position: Callable[[], int] | None = None
            if self.path.is_file():
                total = archive_members(self.path)[self.names[stem]]
                inner = stack.enter_context(stream_member(self.path, self.names[stem]))
            else:
                path = self.path / self.names[stem]
                raw = stack.enter_context(open(path, "rb"))
                total, position, inner = path.stat().st_size, raw.tell, text_files.unpacked_stream(path, raw)
            bar = stack.enter_context(progress(total // 10**6, f"reading {self.shown(stem)}", "MB"))
            yield _Watched(inner, bar, position)


def read_rows(
    stream: Readable, name: str, wanted: tuple[str, ...], odd: RowProblems, only: tuple[str, ...] | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and *wanted* attributes of each `<row .../>` of a UTF-8 XML file in any layout, unescaped once.

    *only* = (attribute, value, ...) skips rows with other values. Broken rows, and rows over 4 MiB, are noted in *odd*.
    No declared entity is resolved. Raises MirblabError when the stream breaks off, has no row or another encoding.
    """
    layouts: dict[tuple[bytes, ...], dict[str, int] | None] = {}
    for line, raw in _pieces(stream, name, odd):
        try:
            attributes = _split(raw, layouts) or _parsed(raw)
            if only:
                value = _text(attributes.get(only[0], ""))
                if not value:
                    raise _Broken(f"rows without {only[0]}")
                if value not in only[1:]:
                    odd.passed[value] += 1
                    continue
            row = {key: _text(attributes[key]) for key in wanted if key in attributes}
        except _Broken as broken:
            odd.note(name, line, *broken.args)
        else:
            yield line, row


@contextlib.contextmanager
def stream_member(archive: Path, member: str) -> Iterator[Readable]:
    """Yield the bytes of one *member* through a pipe, so that memory stays bounded; OSError at the end if damaged."""
    reading, writing = os.pipe()
    failed: list[Exception] = []
    thread = threading.Thread(target=_unpack, args=(archive, member, writing, failed), daemon=True)
    thread.start()
    with os.fdopen(reading, "rb") as pipe:
        yield _Checked(pipe, thread, failed)


def find_dump(origin: str | Path, stems: tuple[str, ...]) -> DumpFiles:
    """Return the files of the *stems* ("Posts") of the dump at *origin*, a .7z archive or a folder."""
    path = paths.expand_home(origin)
    if path.is_dir():
        names = sorted(entry.name for entry in path.iterdir() if entry.is_file())
    elif path.suffix.lower() == ".7z" and path.is_file():
        names = sorted(archive_members(path))
    elif path.exists():
        raise MirblabError(f"{path} is neither a .7z archive nor a folder of a Stack Exchange dump; give one of these")
    else:
        raise MissingFileError(f"no {path}; give a .7z archive of a Stack Exchange dump, or the folder it unpacks to")
    return DumpFiles(path, {stem: _file_of(stem, names, path) for stem in stems})


def archive_members(archive: Path) -> dict[str, int]:
    """Return the sizes in bytes of the files in an archive, by their full names; MirblabError when it is broken."""
    with _opened(archive) as opened:
        sizes = {info.filename: info.uncompressed for info in opened.list() if not info.is_directory}
    text_files.check_unpacked_size(archive, sum(sizes.values()))
    return sizes


def _pieces(stream: Readable, name: str, odd: RowProblems) -> Iterator[tuple[int, bytes]]:
    """Yield line and text of each row; `<row` always begins one, because attributes escape smaller-than signs."""
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
    declared = _ENCODING.search(start)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") or (declared and declared[1].lower() not in (b"utf-8", b"us-ascii")):
        encoding = declared[1].decode() if declared else "UTF-16"
        raise MirblabError(f"{name} is in {encoding}; expected UTF-8, as the dumps are")
    if b"<!DOCTYPE" in start:
        odd.note(name, 1 + start.count(b"\n", 0, start.index(b"<!DOCTYPE")), "document types ignored")


def _split(raw: bytes, layouts: dict[tuple[bytes, ...], dict[str, int] | None]) -> dict[str, bytes | str] | None:
    """Return the raw values of a row, or None for expat; text outside quotes is checked once per layout, for speed."""
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
    """Return the place of each attribute's value, or None when the row is malformed outside its values."""
    names = [_NAME.fullmatch(part) for part in outside[:-1]]
    places = {match[1].decode(): 2 * place + 1 for place, match in enumerate(names) if match}
    return places if len(places) == len(names) > 0 and _END.fullmatch(outside[-1]) else None


def _parsed(raw: bytes) -> dict[str, bytes | str]:
    """Return the attributes of a row as expat reads it alone, so that no declaration of its file applies."""
    body = raw.rstrip()
    closing = body.rfind(b"</")
    if closing >= 0 and not body.startswith(b"</row", closing):
        body = body[:closing]
    if b"/>" not in body and b"</row" not in body:
        raise _Broken(_CUT)
    row: dict[str, bytes | str] = {}
    parser = expat.ParserCreate("UTF-8")
    parser.StartElementHandler = lambda _, attributes: row.update(attributes)
    try:
        body.decode()
        # Only the character references that XML allows are kept.
        allowed = _REFERENCE.sub(
            lambda ref: ref[0] if _character(int(ref[1] or ref[2], 16 if ref[1] else 10)) else b"", body
        )
        parser.Parse(b"<row" + allowed, True)
    except UnicodeDecodeError as error:
        raise _Broken(_NOT_UTF8, f"at byte {error.start + 4} of the row") from error
    except expat.ExpatError as error:
        raise _Broken(_MALFORMED, str(error)) from error
    return row


def _text(value: bytes | str) -> str:
    """Return a value of `_split()` unescaped; those of the parser are unescaped already."""
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
    # It stays escaped, because ampersands are unescaped after this.
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
    """The reading end of the pipe, which raises OSError at its end if the archive was damaged."""

    def __init__(self, pipe: BinaryIO, thread: threading.Thread, failed: list[Exception]) -> None:
        self._pipe, self._thread, self._failed = pipe, thread, failed

    def read(self, size: int = -1) -> bytes:
        block = self._pipe.read(size)
        if not block and size:
            self._thread.join()
            if self._failed:
                raise OSError(str(self._failed[0]) or type(self._failed[0]).__name__) from self._failed[0]
        return block


def _unpack(archive: Path, member: str, writing: int, failed: list[Exception]) -> None:
    """Write a member to the pipe and close it; *failed* gets the errors of py7zr and its codecs."""
    try:
        with os.fdopen(writing, "wb") as pipe, _opened(archive) as opened:
            opened.extract(targets=[member], factory=_writers(archive, pipe))
    except Exception as error:
        failed.append(error)


def _writers(archive: Path, pipe: BinaryIO) -> Any:
    """Return the factory that py7zr asks for writers; each writes to the pipe, up to the allowed size."""
    from py7zr.io import Py7zIO, WriterFactory

    class Into(Py7zIO):
        """The methods that py7zr requires; only `write` matters."""

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
        """Gives that object for each file."""

        def create(self, filename: str) -> Py7zIO:
            return Into()

    return Writers()


@contextlib.contextmanager
def _opened(archive: Path) -> Iterator[Any]:
    try:
        import py7zr
    except ImportError as error:
        raise MirblabError(
            f"{archive.name} needs the package py7zr; in the checkout: pip install --editable '.[dumps]'; or unpack it "
            f"with `7z x {archive.name}` and give the folder"
        ) from error
    # An open file, not a name: else py7zr starts a thread per core, and the memory that each of them needs.
    with open(archive, "rb") as file:
        try:
            opened = py7zr.SevenZipFile(file)
        except Exception as error:
            what = f"{error}" or type(error).__name__
            raise MirblabError(
                f"{archive.name} is no whole 7z archive, so that no row was read: {what}; fetch it again"
            ) from error
        with opened:
            if opened.needs_password():
                raise MirblabError(f"{archive.name} is encrypted; unpack it and give the folder")
            yield opened


class _Watched:
    def __init__(self, inner: Readable, bar: ProgressBar, position: Callable[[], int] | None) -> None:
        self._inner, self._bar, self._position = inner, bar, position
        self._done, self._shown = 0, 0

    def read(self, size: int = -1) -> bytes:
        block = self._inner.read(size)
        self._done = self._position() if self._position else self._done + len(block)
        self._bar.update(self._done // 10**6 - self._shown)
        self._shown = self._done // 10**6
        return block


def _file_of(stem: str, names: list[str], path: Path) -> str:
    matches = [name for name in names if re.fullmatch(rf"(?:.*/)?{stem}(?:\.[\w.-]+)?\.xml(?:\.gz)?", name)]
    if len(matches) > 1:
        raise MirblabError(f"{path} has {' and '.join(matches)}; keep one of them")
    if not matches:
        shown = first_names(names, 8)
        raise MissingFileError(f"no {stem}.xml or {stem}.xml.gz in {path}; found {shown}; is it a site's whole dump?")
    return matches[0]
