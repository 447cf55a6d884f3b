"""paths: where data, caches and figures live, and the one way to write: whole or not at all, or a clear error."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from mirblab import disk, partials
from mirblab.errors import MirblabError, StorageError
from mirblab.terminal import say

_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9]|lpt[0-9])\s*")  # what Windows calls its devices
_PACKAGE = Path(__file__).resolve().parent
_told: set[Path] = set()  # the folders of which `stored` has said that nothing can be written there


def checkout() -> Path | None:
    """Return the root of the git checkout that this package runs from, or None when it was installed as a wheel."""
    root = _PACKAGE.parent
    return root if (root / "pyproject.toml").is_file() and (root / "notebooks").is_dir() else None


def home() -> Path:
    """Return the folder that holds `data/`, `cache/`, `models/` and `figures/`.

    `MIRBLAB_HOME` when it is set, else the checkout, else the platform's folder for user data.
    """
    named = os.environ.get("MIRBLAB_HOME")
    if named:
        return Path(named).expanduser().resolve()
    root = checkout()
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


def bundled(*parts: str) -> Path:
    """Return the path of something that ships with the project, for example `bundled("data", "mini")`.

    Raises FileNotFoundError when the installation lacks it.
    """
    for root in (checkout(), _PACKAGE / "bundled"):
        if root is not None and (path := root.joinpath(*parts)).exists():
            return path
    raise FileNotFoundError(f"this installation lacks {'/'.join(parts)}; reinstall mirblab")


def given(path: str | Path) -> Path:
    """Return a path that somebody wrote, "~" being their home; `is_there` takes it whatever it is.

    >>> given("~nobody-of-this-name/x").name
    'x'
    """
    return Path(os.path.expanduser(path))


def is_there(path: str | Path) -> bool:
    """Return whether something lies at *path*; False too for what no file can be called: too long, or with a zero byte.

    >>> is_there("a" * 5000)
    False
    """
    return os.path.exists(path)


@contextmanager
def write_atomically(path: str | Path, n_bytes: int = 0) -> Iterator[Path]:
    """Yield a temporary path beside *path*; on success it is flushed to disk and renamed, on failure removed.

    Readers see the old file or the new one, never a half; what a killed writer leaves, `partials` tells and sweeps.
    StorageError when the disk or the rights do not allow it; *n_bytes* is what it needs, where that is known.
    """
    path = Path(path)
    make_folder(path.parent)
    beside = partials.beside(path)
    with writing(path, n_bytes):
        try:
            yield beside
            flush(beside)
            move(beside, path)
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


def reserve(path: Path) -> None:
    """Take the disk space that a file's size asks for; writing to a map of a file on a full disk kills the process."""
    size = path.stat().st_size
    with writing(path, size), open(path, "rb+") as file:
        if hasattr(os, "posix_fallocate") and size:
            os.posix_fallocate(file.fileno(), 0, size)


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


def check_writable(folder: Path) -> None:
    """Make *folder* and raise StorageError when no file can be written there: before what would take long."""
    probe = partials.beside(make_folder(folder) / "probe")
    with open_to_write(probe):
        pass
    probe.unlink()


def move(source: Path, target: Path) -> None:
    """Rename *source* to *target*, whose old file is replaced; OSError when the system refuses."""
    os.replace(source, target)


def flush(path: Path) -> None:
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
            flush(path)
    flush_folder(folder)


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
        refused = disk.refused(error, path, n_bytes, elsewhere)
        if refused is None:
            raise
        raise refused from error


def stored(what: str, write: Callable[..., object], *arguments: Any, full_is_error: bool = False) -> bool:
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
        place = _place(error.path)
        if place not in _told:
            _told.add(place)
            line = f"note: {what} cannot be stored; they are used now and made again next time: {error}"
            say(line, to=sys.stderr)
        return False
    return True


def _place(path: Path) -> Path:
    """Return the folder of the home that *path* lies in (cache, figures ...), or, elsewhere, its own folder."""
    try:
        return home() / path.absolute().relative_to(home()).parts[0]
    except (ValueError, IndexError):
        return path.parent


@lru_cache(maxsize=1)
def scratch() -> Path:
    """Return a temporary folder of this process, which is removed when it ends."""
    folder = Path(tempfile.mkdtemp(prefix="mirblab-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def content(path: Path) -> bytes:
    """Return a hash of a file, or of the names and bytes of all files of a folder, hidden ones left out."""
    digest = hashlib.blake2b(path.read_bytes() if path.is_file() else b"", digest_size=16)
    for one in sorted(one for one in path.rglob("*") if one.is_file() and not one.name.startswith(".")):
        digest.update(one.relative_to(path).as_posix().encode() + b"\0" + one.read_bytes())
    return digest.digest()


def clean_name(name: str, longest: int = 100) -> str:
    """Return *name* if it can name a folder on every platform, of at most *longest* bytes, else raise MirblabError.

    >>> clean_name("stacks-qa")
    'stacks-qa'
    """
    bad = set('<>:"/\\|?*') & set(name)
    if not name or bad or name.strip(". ") != name or not name.isprintable():
        why = "use letters, digits, '-', '_', '+' and '.'"
    elif _RESERVED.fullmatch(name.partition(".")[0]):
        why = "Windows keeps it for a device"
    elif len(name.encode()) > longest:
        why = f"it takes {len(name.encode()):,} bytes, of at most {longest}"
    else:
        return name
    shown = name if len(name) <= longest else f"{name[:longest]} …"
    raise MirblabError(f"{shown!r} cannot name a collection; {why}")
