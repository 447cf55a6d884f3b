"""Files that appear whole or not at all, and what killed writers leave behind."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import socket
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from mirblab.core import paths
from mirblab.core.errors import MirblabError, StorageError
from mirblab.core.terminal import say

_UNFINISHED = re.compile(r"\.(?P<writer>[0-9a-f]{12})-(?P<process>\d+)-[0-9a-f]{8}\.partial\.")
_REASONS = {
    errno.ENOSPC: ("the disk is full", "free some space"),
    getattr(errno, "EDQUOT", errno.ENOSPC): ("the quota of this user is used up", "delete something there"),
    errno.EROFS: ("the file system is read-only", "mount it for writing"),
    errno.EACCES: ("this user has no right to write there", "change the rights of the folder"),
    errno.EPERM: ("this user has no right to write there", "change the rights of the folder"),
    errno.EFBIG: ("the file is larger than this process may write", "raise the limit with ulimit -f"),
    errno.EMFILE: ("this process has too many files open", "raise the limit with ulimit -n"),
    errno.ENFILE: ("this machine has too many files open", "close other programs"),
    errno.ENAMETOOLONG: ("the name is too long for this file system", "give a shorter name"),
    errno.EIO: ("the disk reports a fault", "check the disk"),
    errno.ENOTDIR: ("a part of the path is a file and no folder", "move that file away"),
    errno.EEXIST: ("a part of the path is a file and no folder", "move that file away"),
    errno.EISDIR: ("a folder has that name", "move the folder away"),
    errno.ENOENT: ("the folder was removed meanwhile", "do it again"),
    errno.ENOTEMPTY: ("a folder of that name is there", "move the folder away"),
}
_warned_folders: set[Path] = set()  # the folders for which `try_to_store` has printed its note


@contextmanager
def write_atomically(path: str | Path, n_bytes: int = 0) -> Iterator[Path]:
    """Yield a temporary path beside *path*; on success it is flushed to disk and renamed, on failure removed.

    Readers see the old file or the new one, never a part. `remove_abandoned` removes what a killed writer left behind.
    StorageError when the disk or the rights do not allow it; *n_bytes* is the space needed, where it is known.
    """
    path = Path(path)
    make_folder(path.parent)
    beside = unfinished_name(path)
    with writing(path, n_bytes):
        try:
            yield beside
            flush_file(beside)
            rename_path(beside, path)
            flush_folder(path.parent)
        finally:
            with suppress(OSError):  # on a disk that cannot be written, nothing can be removed either
                beside.unlink(missing_ok=True)


def write_bytes(path: str | Path, content: bytes | memoryview) -> None:
    """Write a file whole or not at all; StorageError when the disk or the rights do not allow it."""
    with write_atomically(path, len(content)) as beside, open_to_write(beside) as file:
        file.write(content)


def write_text(path: str | Path, text: str) -> None:
    """Write a text as UTF-8, its line ends as they are, whole or not at all; StorageError as for `write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def open_to_write(path: str | Path, mode: str = "wb") -> IO[Any]:
    """Return *path* opened for writing, text as UTF-8 with unchanged line ends; all files are written through it."""
    encoding, newline = (None, None) if "b" in mode else ("utf-8", "")
    with writing(Path(path)):
        return open(path, mode, encoding=encoding, newline=newline)  # noqa: SIM115  the caller closes it


@contextmanager
def hold_lock(path: Path, busy: str = "") -> Iterator[None]:
    """Hold the lock of *path*, beside it; without file locks, hold nothing.

    Where another process holds it, raise MirblabError with the message *busy*, or wait where that is "".
    """
    from filelock import FileLock, Timeout

    make_folder(path.parent)
    lock = FileLock(path.with_name(f".{path.name}.lock"), fallback_to_soft=False)
    try:
        lock.acquire(timeout=0 if busy else -1)
    except Timeout as error:  # an OSError, too
        raise MirblabError(busy) from error
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        lock.release()


def try_to_store(what: str, write: Callable[..., object], *arguments: Any, full_is_error: bool = False) -> bool:
    """Return whether *write* could store what was computed; if not, print a note once for each folder.

    A full disk or a read-only home thus costs time later, but no result now. *what* is the plural that begins the note:
    "vectors", "runs". With *full_is_error* a full disk raises StorageError, since the missing file would go unnoticed.
    """
    try:
        write(*arguments)
    except StorageError as error:
        if full_is_error and not error.is_read_only:
            raise
        folder = _home_subfolder(error.path)
        if folder not in _warned_folders:
            _warned_folders.add(folder)
            note = f"note: {what} cannot be stored; they are used now and made again next time: {error}"
            say(note, to=sys.stderr)
        return False
    return True


@contextmanager
def writing(path: Path, n_bytes: int = 0) -> Iterator[None]:
    """Turn the system's refusal to write to *path* into a StorageError; errors about other files are left unchanged."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        is_home = path.absolute().is_relative_to(paths.home())
        elsewhere = "set MIRBLAB_HOME to another folder" if is_home else "choose another folder"
        refused = storage_error(error, path, n_bytes, elsewhere)
        if refused is None:
            raise
        raise refused from error


def storage_error(error: Exception, path: Path, n_bytes: int, elsewhere: str) -> StorageError | None:
    """Return the error for a *path* that cannot be written: why, the space needed and free, and what to do.

    *n_bytes* are needed (0: unknown); *elsewhere* says how to choose another folder. None when the system did not
    refuse, or refused another file.
    """
    number, name = _error_number(error), getattr(error, "filename", None)
    is_ours = _names_unfinished(name, path)  # the unfinished file was removed, and its folder may be there again
    is_other = number == errno.ENOENT and os.path.isdir(path.parent) and not is_ours  # another file is missing
    if number not in _REASONS or is_other or not (name is None or is_ours or _lies_at(name, path)):
        return None
    reason, advice = _REASONS[number]
    disk = next(folder for folder in path.absolute().parents if os.path.isdir(folder))
    needed = f"{paths.readable_size(n_bytes)} needed, " if n_bytes else ""
    room = f" ({needed}{paths.readable_size(shutil.disk_usage(disk).free)} free)"
    return StorageError(
        f"{path} cannot be written: {reason}{room}; {advice}, or {elsewhere}; mirblab doctor checks rights and space",
        path,
        number in (errno.EROFS, errno.EACCES, errno.EPERM),
    )


def check_writable(folder: Path) -> None:
    """Make *folder*, and raise StorageError when no file of some kilobytes can be written there, as on a full disk."""
    probe, content = unfinished_name(make_folder(folder) / "probe"), os.urandom(1 << 14)  # which no disk compresses
    try:
        with writing(probe, len(content)), open_to_write(probe) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    finally:
        with suppress(OSError):  # closed before, as Windows wants it
            probe.unlink(missing_ok=True)


def make_folder(folder: str | Path) -> Path:
    """Make *folder* with its parents, flushed to disk, where it is missing; StorageError when that is impossible."""
    folder = Path(folder)
    with writing(folder):
        missing = [] if folder.is_dir() else [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for path in reversed(missing):
            flush_folder(path.parent)
    return folder


def reserve_space(path: Path) -> None:
    """Reserve the disk space of a file's size: writing to a memory map on a full disk would kill the process."""
    size = path.stat().st_size
    with writing(path, size), open(path, "rb+") as file:
        if hasattr(os, "posix_fallocate") and size:
            os.posix_fallocate(file.fileno(), 0, size)


def rename_path(source: Path, target: Path) -> None:
    """Rename *source* to *target*, whose old file is replaced; OSError when the system refuses."""
    os.replace(source, target)


def remove_path(path: Path) -> None:
    """Remove a file, a link, or a folder with its content; MirblabError when something cannot be removed."""
    for attempt in range(20):  # other processes may add to a folder, or remove from it, at the same time
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            return
        except OSError as error:
            if attempt == 19 or error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                raise MirblabError(
                    f"{error.filename or path} cannot be removed: {error.strerror}; mirblab doctor checks the rights"
                ) from error


def flush_file(path: Path) -> None:
    """Flush a file's bytes to disk, so that they survive a loss of power."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Flush the folder's entries to disk, so that a rename survives a loss of power; nothing on Windows."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_tree(folder: Path) -> None:
    """Flush a folder with all its content to disk, before it is renamed to its final name."""
    for path in [*sorted(folder.rglob("*")), folder]:
        (flush_folder if path.is_dir() else flush_file)(path)


def unfinished_name(path: str | Path) -> Path:
    """Return a new name beside *path* for the unfinished file; it keeps all suffixes, for writers that read them."""
    path = Path(path)
    return path.with_name(f".{_machine_digest()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.partial.{path.name}")


def is_unfinished(path: str | Path) -> bool:
    """Return whether *path* has the name of an unfinished file of this version of the library or another."""
    name = Path(path).name
    return name.startswith(".") and (".partial." in name or name.endswith(".partial"))


def is_abandoned(path: str | Path) -> bool:
    """Return whether *path* is unfinished and its writer, a process of this machine, has ended; False where unknown."""
    return _writer_is_running(path) is False


def has_unknown_writer(path: str | Path) -> bool:
    """Return whether *path* is unfinished and it cannot be known whether its writer has ended; see `is_abandoned`."""
    return is_unfinished(path) and _writer_is_running(path) is None


def unfinished_paths(folder: str | Path) -> list[Path]:
    """Return the unfinished files and folders in *folder* and below, by path, without the content of such folders."""
    return matching_paths(folder, is_unfinished)


def matching_paths(folder: str | Path, matches: Callable[[str], bool]) -> list[Path]:
    """Return the files and folders in *folder* and below whose name *matches*, by path; nothing inside such folders."""
    paths = []
    for root, folders, files in os.walk(folder):
        paths += [Path(root) / name for name in folders + files if matches(name)]
        folders[:] = [name for name in folders if not matches(name)]
    return sorted(paths)


def remove_abandoned(folder: str | Path) -> list[Path]:
    """Remove the abandoned files and folders below *folder*; return their paths."""
    removed = [path for path in unfinished_paths(folder) if is_abandoned(path)]
    for path in removed:
        remove_path(path)
    return removed


def _home_subfolder(path: Path) -> Path:
    """Return the folder of the home that *path* is in (cache, figures ...), or, elsewhere, its parent."""
    try:
        return paths.home() / path.absolute().relative_to(paths.home()).parts[0]
    except (ValueError, IndexError):
        return path.parent


def _names_unfinished(name: object, path: Path) -> bool:
    named = Path(os.fsdecode(name)) if isinstance(name, (str, bytes)) else path
    return named.is_relative_to(path.parent) and ".partial." in str(named.relative_to(path.parent))


def _lies_at(name: object, path: Path) -> bool:
    """Return whether an error names *path*, a file beside or below it, or a folder above it."""
    named = Path(os.fsdecode(name)) if isinstance(name, (str, bytes)) else path
    if named.parent == path.parent or path in named.parents or named in path.parents:
        return True
    unfinished = f".partial.{path.name}"  # the folder that will have this name
    return any(folder.parent == path.parent and folder.name.endswith(unfinished) for folder in named.parents)


def _error_number(error: Exception) -> int | None:
    if isinstance(error, OSError) and error.errno:
        return error.errno
    if isinstance(error, OSError) and re.fullmatch(r"\d+ requested and \d+ written", str(error)):  # numpy's
        return errno.ENOSPC
    match = re.search(r"\(os error (\d+)\)", str(error))  # safetensors'
    return int(match[1]) if match else None


def _writer_is_running(path: str | Path) -> bool | None:
    match = _UNFINISHED.match(Path(path).name)
    return _is_running(int(match["process"])) if match is not None and match["writer"] == _machine_digest() else None


def _is_running(process: int) -> bool:
    if os.name == "nt":  # has no signal 0
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # a process of another user, or no number of a process
        return True
    return True


@lru_cache(maxsize=1)
def _machine_digest() -> str:
    """Return an identifier of this machine since its start, or of this container: all that shares process numbers."""
    facts = [socket.gethostname()]
    try:
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text("utf-8"))
        facts.append(os.readlink("/proc/self/ns/pid"))
    except OSError:  # not Linux
        facts.append(hex(uuid.getnode()))
    return hashlib.blake2b("\n".join(facts).encode(), digest_size=6).hexdigest()
