"""partials: files and folders that are still being written, and which of them a killed writer has left behind.

Their names say who writes them, `.<writer>-<process>-<random>.partial.<name>`, so that nobody compares the clocks of
two machines to tell what is old.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import uuid
from functools import lru_cache
from pathlib import Path

from mirblab import disk

_NAME = re.compile(r"\.(?P<writer>[0-9a-f]{12})-(?P<process>\d+)-[0-9a-f]{8}\.partial\.")


def beside(path: str | Path) -> Path:
    """Return a new name beside *path* under which it is written; it keeps all suffixes, for writers that read them.

    >>> name = beside("run.trec.gz").name
    >>> name.startswith("."), name.endswith(".partial.run.trec.gz"), is_abandoned(name)
    (True, True, False)
    """
    path = Path(path)
    return path.with_name(f".{_writer()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.partial.{path.name}")


def is_partial(path: str | Path) -> bool:
    """Return whether the name of *path* is that of something unfinished, by this version of the library or another."""
    name = Path(path).name
    return name.startswith(".") and (".partial." in name or name.endswith(".partial"))


def is_abandoned(path: str | Path) -> bool:
    """Return whether *path* is unfinished and its writer, a process of this machine, has ended.

    False where that cannot be known: the writer was on another machine, in another container or before a restart, or
    the name is none that `beside` gives.
    """
    return _is_live(path) is False


def is_unclear(path: str | Path) -> bool:
    """Return whether *path* is unfinished and nobody here can know whether its writer has ended; see `is_abandoned`."""
    return is_partial(path) and _is_live(path) is None


def within(folder: str | Path) -> list[Path]:
    """Return all unfinished files and folders in *folder* and below, by path; what is in an unfinished one is not."""
    unfinished = []
    for root, folders, files in os.walk(folder):
        unfinished += [Path(root) / name for name in folders + files if is_partial(name)]
        folders[:] = [name for name in folders if not is_partial(name)]
    return sorted(unfinished)


def sweep(folder: str | Path, *, all_writers: bool = False) -> list[Path]:
    """Remove the abandoned files and folders in *folder* and below, and return their paths; MirblabError if one stays.

    *all_writers*: remove what cannot be told to be abandoned, too; for a person who knows that nobody is writing.
    """
    left = [path for path in within(folder) if all_writers or is_abandoned(path)]
    for path in left:
        disk.remove(path)
    return left


def _is_live(path: str | Path) -> bool | None:
    """Return whether the writer of *path* lives, None where that cannot be known."""
    found = _NAME.match(Path(path).name)
    return _lives(int(found["process"])) if found is not None and found["writer"] == _writer() else None


def _lives(process: int) -> bool:
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
def _writer() -> str:
    """Return a name for everything that shares our process numbers: this start of this machine, or this container."""
    facts = [socket.gethostname()]
    try:
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text("utf-8"))
        facts.append(os.readlink("/proc/self/ns/pid"))
    except OSError:  # not Linux
        facts.append(hex(uuid.getnode()))
    return hashlib.blake2b("\n".join(facts).encode(), digest_size=6).hexdigest()
