"""disk: what the system says against writing or removing a file, in words that say what to do."""

from __future__ import annotations

import errno
import os
import re
import shutil
from pathlib import Path

from mirblab.errors import MirblabError, StorageError

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


def refused(error: Exception, path: Path, n_bytes: int, elsewhere: str) -> StorageError | None:
    """Return the error for a *path* that cannot be written: why, the space that is needed and free, what to do.

    *n_bytes* are needed (0: unknown); *elsewhere* says how another place is chosen. None when the error is no
    refusal of the system, or one that speaks of something else.
    """
    number, name = _number(error), getattr(error, "filename", None)
    is_ours = _is_unfinished(name, path)  # what was being written was removed, and the folder may be there again
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


def _is_unfinished(name: object, path: Path) -> bool:
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


def _number(error: Exception) -> int | None:
    """Return the number of the system's error; some libraries give it only in their text."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    if isinstance(error, OSError) and re.fullmatch(r"\d+ requested and \d+ written", str(error)):  # numpy's
        return errno.ENOSPC
    told = re.search(r"\(os error (\d+)\)", str(error))  # safetensors'
    return int(told[1]) if told else None


def remove(path: Path) -> None:
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
