"""paths: where data, caches and figures lie, and files that appear whole or not at all."""

from __future__ import annotations

import atexit
import errno
import hashlib
import os
import re
import shutil
import socket
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from mirblab.core.errors import MirblabError, StorageError
from mirblab.core.terminal import say

_PACKAGE_FOLDER = Path(__file__).resolve().parents[1]
_UNFINISHED = re.compile(r"\.(?P<writer>[0-9a-f]{12})-(?P<process>\d+)-[0-9a-f]{8}\.partial\.")
_DEVICE_NAMES = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9]|lpt[0-9])\s*")  # what Windows calls its devices
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
_warned_folders: set[Path] = set()  # the folders of which `stored` has said that nothing can be written there


def home() -> Path:
    """Return the folder that holds `data/`, `cache/`, `models/` and `figures/`.

    `MIRBLAB_HOME` when it is set, else the checkout, else the platform's folder for user data.
    """
    named = os.environ.get("MIRBLAB_HOME")
    if named:
        return Path(named).expanduser().resolve()
    root = checkout_root()
    if root is not None:
        return root
    from platformdirs import user_data_path

    return user_data_path("mirblab")


def data() -> Path:
    """Return the folder of the collections that were built or added: `<home>/data`."""
    return home() / "data"


def cache() -> Path:
    """Return the folder of stored vectors and runs: `<home>/cache`; safe to delete, costly to make again."""
    return home() / "cache"


def models() -> Path:
    """Return the folder of the models that were trained here: `<home>/models`."""
    return home() / "models"


def figures() -> Path:
    """Return the folder of tables, figures and executed notebooks: `<home>/figures`."""
    return home() / "figures"


def checkout_root() -> Path | None:
    """Return the root of the git checkout that this package runs from, or None when it was installed as a wheel."""
    root = _PACKAGE_FOLDER.parent
    return root if (root / "pyproject.toml").is_file() and (root / "notebooks").is_dir() else None


def bundled_path(*parts: str) -> Path:
    """Return the path of something that ships with the project, for example `bundled("data", "mini")`.

    Raises FileNotFoundError when the installation lacks it.
    """
    for root in (checkout_root(), _PACKAGE_FOLDER / "bundled"):
        if root is not None and (path := root.joinpath(*parts)).exists():
            return path
    raise FileNotFoundError(f"this installation lacks {'/'.join(parts)}; reinstall mirblab")


@lru_cache(maxsize=1)
def scratch_folder() -> Path:
    """Return a temporary folder of this process, which is removed when it ends."""
    folder = Path(tempfile.mkdtemp(prefix="mirblab-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def expand_home(path: str | Path) -> Path:
    """Return a path that somebody wrote, "~" being their home; `is_there` takes it whatever it is.

    >>> expand_home("~nobody-of-this-name/x").name
    'x'
    """
    return Path(os.path.expanduser(path))


def path_exists(path: str | Path) -> bool:
    """Return whether something lies at *path*; False too for what no file can be called: too long, or with a zero byte.

    >>> path_exists("a" * 5000)
    False
    """
    return os.path.exists(path)


def checked_name(name: str, longest: int = 100) -> str:
    """Return *name* if it can name a folder on every platform, of at most *longest* bytes, else raise MirblabError.

    >>> checked_name("stacks-qa")
    'stacks-qa'
    """
    bad = set('<>:"/\\|?*') & set(name)
    if not name or bad or name.strip(". ") != name or not name.isprintable():
        why = "use letters, digits, '-', '_', '+' and '.'"
    elif _DEVICE_NAMES.fullmatch(name.partition(".")[0]):
        why = "Windows keeps it for a device"
    elif len(name.encode()) > longest:
        why = f"it takes {len(name.encode()):,} bytes, of at most {longest}"
    else:
        return name
    shown = name if len(name) <= longest else f"{name[:longest]} …"
    raise MirblabError(f"{shown!r} cannot name a collection; {why}")


@contextmanager
def write_atomically(path: str | Path, n_bytes: int = 0) -> Iterator[Path]:
    """Yield a temporary path beside *path*; on success it is flushed to disk and renamed, on failure removed.

    Readers see the old file or the new one, never a half; what a killed writer leaves, `partials` tells and sweeps.
    StorageError when the disk or the rights do not allow it; *n_bytes* is what it needs, where that is known.
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
            with suppress(OSError):  # on a disk that cannot be written, even nothing cannot be removed
                beside.unlink(missing_ok=True)


def write_bytes(path: str | Path, content: bytes | memoryview) -> None:
    """Write a file whole or not at all; StorageError when the disk or the rights do not allow it."""
    with write_atomically(path, len(content)) as beside, open_to_write(beside) as file:
        file.write(content)


def write_text(path: str | Path, text: str) -> None:
    """Write a text as UTF-8, its line ends as they are, whole or not at all; StorageError as for `write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def open_to_write(path: str | Path, mode: str = "wb") -> IO[Any]:
    """Return *path* opened for writing; text is UTF-8 with its line ends as they are.

    Everything that the library writes is opened here, so that one wrapper sees it all.
    """
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    with writing(Path(path)):
        return open(path, mode, **text)  # noqa: SIM115  the caller closes it


def try_to_store(what: str, write: Callable[..., object], *arguments: Any, full_is_error: bool = False) -> bool:
    """Return whether *write* could store what was computed; when it could not, say so once, and let it be used.

    *what* is the plural that the line begins with: "vectors", "runs". So a full disk, or a home that cannot be
    written, costs time later but no result now. With *full_is_error* only a home that cannot be written at all is
    borne: nobody expects files there, while on a full disk the one that is missing would not be noticed.
    """
    try:
        write(*arguments)
    except StorageError as error:
        if full_is_error and not error.is_read_only:
            raise
        place = _home_subfolder(error.path)
        if place not in _warned_folders:
            _warned_folders.add(place)
            line = f"note: {what} cannot be stored; they are used now and made again next time: {error}"
            say(line, to=sys.stderr)
        return False
    return True


@contextmanager
def writing(path: Path, n_bytes: int = 0) -> Iterator[None]:
    """Turn what the system says against writing to *path* into a StorageError: full, read-only, no rights, quota.

    What goes wrong elsewhere, for instance in reading what is to be written, is raised as it is.
    """
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        is_home = path.absolute().is_relative_to(home())
        elsewhere = "set MIRBLAB_HOME to another folder" if is_home else "choose another folder"
        refused = storage_error(error, path, n_bytes, elsewhere)
        if refused is None:
            raise
        raise refused from error


def storage_error(error: Exception, path: Path, n_bytes: int, elsewhere: str) -> StorageError | None:
    """Return the error for a *path* that cannot be written: why, the space that is needed and free, what to do.

    *n_bytes* are needed (0: unknown); *elsewhere* says how another place is chosen. None when the error is no
    refusal of the system, or one that speaks of something else.
    """
    number, name = _error_number(error), getattr(error, "filename", None)
    is_ours = _names_unfinished(name, path)  # what was being written was removed, and the folder may be there again
    is_other = number == errno.ENOENT and os.path.isdir(path.parent) and not is_ours  # then something else is missing
    if number not in _REASONS or is_other or not (name is None or is_ours or _lies_at(name, path)):
        return None
    reason, advice = _REASONS[number]
    there = next(folder for folder in path.absolute().parents if os.path.isdir(folder))
    needed = f"{readable_size(n_bytes)} needed, " if n_bytes else ""
    room = f" ({needed}{readable_size(shutil.disk_usage(there).free)} free)"
    return StorageError(
        f"{path} cannot be written: {reason}{room}; {advice}, or {elsewhere}; mirblab doctor checks rights and space",
        path,
        number in (errno.EROFS, errno.EACCES, errno.EPERM),
    )


def check_writable(folder: Path) -> None:
    """Make *folder* and raise StorageError when no file can be written there: before what would take long."""
    probe = unfinished_name(make_folder(folder) / "probe")
    with open_to_write(probe):
        pass
    probe.unlink()


def make_folder(folder: str | Path) -> Path:
    """Return *folder*, which is made, with those above it, when it is not there; StorageError when that cannot be.

    New ones are put on disk, so that what is stored in them cannot be lost with them.
    """
    folder = Path(folder)
    with writing(folder):
        new = [] if folder.is_dir() else [one for one in (folder, *folder.parents) if not one.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for one in reversed(new):
            flush_folder(one.parent)
    return folder


def reserve_space(path: Path) -> None:
    """Take the disk space that a file's size asks for; writing to a map of a file on a full disk kills the process."""
    size = path.stat().st_size
    with writing(path, size), open(path, "rb+") as file:
        if hasattr(os, "posix_fallocate") and size:
            os.posix_fallocate(file.fileno(), 0, size)


def rename_path(source: Path, target: Path) -> None:
    """Rename *source* to *target*, whose old file is replaced; OSError when the system refuses."""
    os.replace(source, target)


def remove_path(path: Path) -> None:
    """Remove a file, or a folder with all that is in it; of a link the link. MirblabError when something stays."""
    for attempt in range(20):  # others may add to a folder, or remove from it, at the same time
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
    """Put a file's bytes on disk, so that they survive a loss of power."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Put the folder's entries on disk, so that a rename survives a loss of power; Windows has no way to ask."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_tree(folder: Path) -> None:
    """Put a folder with all that is in it on disk, before it is renamed to where readers look for it."""
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            flush_folder(path)
        else:
            flush_file(path)
    flush_folder(folder)


def unfinished_name(path: str | Path) -> Path:
    """Return a new name beside *path* under which it is written; it keeps all suffixes, for writers that read them.

    >>> name = unfinished_name("run.trec.gz").name
    >>> name.startswith("."), name.endswith(".partial.run.trec.gz"), is_abandoned(name)
    (True, True, False)
    """
    path = Path(path)
    return path.with_name(f".{_machine_digest()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.partial.{path.name}")


def is_unfinished(path: str | Path) -> bool:
    """Return whether the name of *path* is that of something unfinished, by this version of the library or another."""
    name = Path(path).name
    return name.startswith(".") and (".partial." in name or name.endswith(".partial"))


def is_abandoned(path: str | Path) -> bool:
    """Return whether *path* is unfinished and its writer, a process of this machine, has ended.

    False where that cannot be known: the writer was on another machine, in another container or before a restart, or
    the name is none that `beside` gives.
    """
    return _writer_is_running(path) is False


def has_unknown_writer(path: str | Path) -> bool:
    """Return whether *path* is unfinished and nobody here can know whether its writer has ended; see `is_abandoned`."""
    return is_unfinished(path) and _writer_is_running(path) is None


def unfinished_paths(folder: str | Path) -> list[Path]:
    """Return all unfinished files and folders in *folder* and below, by path; what is in an unfinished one is not."""
    unfinished = []
    for root, folders, files in os.walk(folder):
        unfinished += [Path(root) / name for name in folders + files if is_unfinished(name)]
        folders[:] = [name for name in folders if not is_unfinished(name)]
    return sorted(unfinished)


def remove_abandoned(folder: str | Path, *, all_writers: bool = False) -> list[Path]:
    """Remove the abandoned files and folders in *folder* and below, and return their paths; MirblabError if one stays.

    *all_writers*: remove what cannot be told to be abandoned, too; for a person who knows that nobody is writing.
    """
    left = [path for path in unfinished_paths(folder) if all_writers or is_abandoned(path)]
    for path in left:
        remove_path(path)
    return left


def content_digest(path: Path) -> bytes:
    """Return a hash of a file, or of the names and bytes of all files of a folder, hidden ones left out."""
    digest = hashlib.blake2b(path.read_bytes() if path.is_file() else b"", digest_size=16)
    for one in sorted(one for one in path.rglob("*") if one.is_file() and not one.name.startswith(".")):
        digest.update(one.relative_to(path).as_posix().encode() + b"\0" + one.read_bytes())
    return digest.digest()


def readable_size(n_bytes: float) -> str:
    """Return a size for people.

    >>> readable_size(0), readable_size(3_100_000)
    ('0 B', '3.1 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"


def _home_subfolder(path: Path) -> Path:
    """Return the folder of the home that *path* lies in (cache, figures ...), or, elsewhere, its own folder."""
    try:
        return home() / path.absolute().relative_to(home()).parts[0]
    except (ValueError, IndexError):
        return path.parent


def _names_unfinished(name: object, path: Path) -> bool:
    """Return whether an error names an unfinished file or folder beside *path*, or something in such a folder."""
    given = Path(os.fsdecode(name)) if isinstance(name, (str, bytes)) else path
    return given.is_relative_to(path.parent) and ".partial." in str(given.relative_to(path.parent))


def _lies_at(name: object, path: Path) -> bool:
    """Return whether an error names *path* itself, something beside or below it, or a folder above it."""
    given = Path(os.fsdecode(name)) if isinstance(name, (str, bytes)) else path
    if given.parent == path.parent or path in given.parents or given in path.parents:
        return True
    unfinished = f".partial.{path.name}"  # the folder that will have this name
    return any(folder.parent == path.parent and folder.name.endswith(unfinished) for folder in given.parents)


def _error_number(error: Exception) -> int | None:
    """Return the number of the system's error; some libraries give it only in their text."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    if isinstance(error, OSError) and re.fullmatch(r"\d+ requested and \d+ written", str(error)):  # numpy's
        return errno.ENOSPC
    told = re.search(r"\(os error (\d+)\)", str(error))  # safetensors'
    return int(told[1]) if told else None


def _writer_is_running(path: str | Path) -> bool | None:
    """Return whether the writer of *path* lives, None where that cannot be known."""
    found = _UNFINISHED.match(Path(path).name)
    return _is_running(int(found["process"])) if found is not None and found["writer"] == _machine_digest() else None


def _is_running(process: int) -> bool:
    if os.name == "nt":  # signal 0 is none there
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # it is somebody else's, or no number of a process
        return True
    return True


@lru_cache(maxsize=1)
def _machine_digest() -> str:
    """Return a name for everything that shares our process numbers: this start of this machine, or this container."""
    facts = [socket.gethostname()]
    try:
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text("utf-8"))
        facts.append(os.readlink("/proc/self/ns/pid"))
    except OSError:  # not Linux
        facts.append(hex(uuid.getnode()))
    return hashlib.blake2b("\n".join(facts).encode(), digest_size=6).hexdigest()
