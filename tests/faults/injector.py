"""injector: make the n-th opening, write, flush, renaming or removal of a process fail, or kill the process there.

Only what lies under one folder counts. In the process that calls `Injector.on`, which is a child that ends afterwards,
Python's own ways to write are replaced. What libraries write in C is seen when their file is flushed or renamed;
between these their calls are failed by strace (`test_system_calls.py`).
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import pickle
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KILLED = 137
ACTIONS = ("kill", "torn", "full", "broken")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_real = {name: getattr(os, name) for name in "open write fsync rename replace unlink remove mkdir rmdir".split()}
_open = io.open


@dataclass(frozen=True)
class Fault:
    """What happens at event *number*, counted from 1.

    "kill" ends the process before it; "torn" ends it when half of a write is done; "full" leaves the disk without
    room from there on, in the midst of a write; "broken" is one EIO.
    """

    number: int
    action: str


@dataclass(frozen=True)
class Event:
    """One call: its kind (open, write, fsync, rename, remove, mkdir), its path, and what is needed to play it again."""

    kind: str
    path: str
    data: Any = None


class Injector:
    """Counts the events under *root*, and does what *fault* says at its number."""

    def __init__(self, root: Path, fault: Fault | None = None) -> None:
        self.root = str(root)
        self.fault = fault
        self.events: list[Event] = []
        self.is_full = False

    def on(self) -> Injector:
        """Replace this process's ways to write; there is no way back."""
        builtins.open = io.open = self._opened  # type: ignore[assignment]
        for name, call in {
            "open": self._os_open, "write": self._os_write, "fsync": self._fsync, "rename": self._renamed("rename"),
            "replace": self._renamed("replace"), "unlink": self._removed("unlink"), "remove": self._removed("remove"),
            "rmdir": self._removed("rmdir"), "mkdir": self._mkdir,
        }.items():  # fmt: skip
            setattr(os, name, call)
        shutil._USE_CP_SENDFILE = False  # type: ignore[attr-defined]  # it copies in the kernel
        if "numpy" in sys.modules:
            import numpy.lib._format_impl as arrays

            arrays.isfileobj = lambda _: False  # else arrays are written in C
        return self

    def step(self, kind: str, path: str, data: Any = None) -> bool:
        """Count an event and let the fault happen; return whether the disk has become full in the midst of a write."""
        self.events.append(Event(kind, path, data))
        wants_room = kind in ("open", "write", "mkdir", "fsync")
        if self.is_full and wants_room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        if self.fault is None or len(self.events) != self.fault.number:
            return False
        if self.fault.action == "kill" or (self.fault.action == "torn" and kind != "write"):
            os._exit(KILLED)
        if self.fault.action == "broken":
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        if self.fault.action == "full":
            self.is_full = True
            if wants_room and kind != "write":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return kind == "write"

    def path(self, given: Any, folder: int | None = None) -> str | None:
        """Return the absolute path of what was given, when it lies under the root."""
        if isinstance(given, int):
            try:
                found = os.readlink(f"/proc/self/fd/{given}")
            except OSError:
                return None
        else:
            text = os.fsdecode(given)
            start = os.getcwd() if folder is None else os.readlink(f"/proc/self/fd/{folder}")
            found = os.path.normpath(os.path.join(start, text))
        return found if found.startswith(self.root + "/") or found == self.root else None

    def write(self, path: str, data: bytes, onward: Callable[[bytes], int]) -> int:
        """Write *data*, or half of it where the fault says so."""
        if not self.step("write", path, bytes(data)):
            return onward(data)
        half = onward(bytes(data)[: len(data) // 2])
        if self.fault is not None and self.fault.action == "torn":
            os._exit(KILLED)
        if not half:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return half  # as the kernel does when there is room for a part; the rest then fails

    def _opened(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        path = self.path(file)
        if path is None or not set(mode) & set("wax+"):
            return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        if not isinstance(file, int):
            self.step("open", path, "w" in mode)
        raw = _Counted(file, mode.replace("b", "").replace("t", ""), closefd=closefd)
        raw.injector, raw.own = self, path
        if buffering == 0:
            return raw
        size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
        buffer: Any = io.BufferedRandom(raw, size) if "+" in mode else io.BufferedWriter(raw, size)
        if "b" in mode:
            return buffer
        text = io.TextIOWrapper(buffer, io.text_encoding(encoding), errors, newline, buffering == 1)
        text.mode = mode  # type: ignore[misc]
        return text

    def _os_open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        found = self.path(path, dir_fd) if flags & _WRITING else None
        if found is not None:
            self.step("open", found, bool(flags & os.O_TRUNC) or not os.path.exists(found))
        return _real["open"](path, flags, mode, dir_fd=dir_fd)

    def _os_write(self, handle: int, data: bytes) -> int:
        path = self.path(handle)
        return (
            _real["write"](handle, data)
            if path is None
            else self.write(path, data, lambda part: _real["write"](handle, part))
        )

    def _fsync(self, handle: int) -> None:
        path = self.path(handle)
        if path is not None:
            self.step("fsync", path, _bytes(path))
        _real["fsync"](handle)

    def _renamed(self, name: str) -> Callable[..., None]:
        def renamed(source: Any, target: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
            old, new = self.path(source, src_dir_fd), self.path(target, dst_dir_fd)
            if old is not None or new is not None:
                self.step("rename", str(old), (str(new), _bytes(str(old))))
            _real[name](source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

        return renamed

    def _removed(self, name: str) -> Callable[..., None]:
        def removed(path: Any, *, dir_fd: int | None = None) -> None:
            found = self.path(path, dir_fd)
            is_refused = name == "rmdir" and found is not None and os.path.isdir(found) and os.listdir(found)
            if found is not None and os.path.lexists(found) and not is_refused:
                self.step("remove", found)
            _real[name](path, dir_fd=dir_fd)

        return removed

    def _mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        found = self.path(path, dir_fd)
        if found is not None and not os.path.exists(found) and os.path.isdir(os.path.dirname(found)):
            self.step("mkdir", found)
        _real["mkdir"](path, mode, dir_fd=dir_fd)


class _Counted(io.FileIO):
    """A file whose every write is an event, as the buffers above it make them."""

    injector: Injector
    own: str

    def write(self, data: Any) -> int:  # type: ignore[override]
        return self.injector.write(self.own, data, super().write)


def _bytes(path: str) -> bytes | None:
    """Return what is in a file now, also of what C wrote there; None for a folder."""
    try:
        with _open(path, "rb") as file:
            return file.read()
    except (IsADirectoryError, FileNotFoundError):
        return None


@dataclass(frozen=True)
class Ended:
    """How a child ended: "finished" with a value, "refused" by an error that a user can read, "crashed" by another
    one, "killed", or "hung".

    *said* is the error's text, *events* what happened where nothing was to fail, *modules* what was imported by then.
    """

    how: str
    value: Any = None
    said: str = ""
    events: tuple[Event, ...] = ()
    modules: tuple[str, ...] = ()


def in_child(function: Callable[[], Any], injector: Injector | None = None, seconds: int = 60) -> Ended:
    """Return how *function* ends in a fork of this process, in which *injector* is on; its value is pickled.

    MirblabError and FileNotFoundError are refusals, as for `cli.main`; any other error is a crash.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        for output in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), output)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        _end(_ended(function, injector), write)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 0:
        return pickle.loads(answer)
    if status in (-signal.SIGALRM, -signal.SIGPROF):  # the latter where a function limits its processor time itself
        return Ended("hung", said=f"after {seconds} s" if status == -signal.SIGALRM else "too much processor time")
    return Ended("killed") if status in (KILLED, -signal.SIGKILL) else Ended("crashed", said=f"ended with {status}")


def _ended(function: Callable[[], Any], injector: Injector | None) -> Ended:
    from mirblab.core.errors import MirblabError

    try:
        if injector is not None:
            injector.on()
        how, value, said = "finished", function(), ""
    except (MirblabError, FileNotFoundError) as error:
        how, value, said = "refused", None, str(error)
    except BaseException as error:  # whatever it is, it is what the campaign looks for
        last = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in last if "mirblab" in frame.filename] or last
        how, value = "crashed", None
        said = f"{type(error).__name__}: {error} ({Path(ours[-1].filename).name}:{ours[-1].lineno})"
    if injector is None or injector.fault is not None:
        return Ended(how, value, said)
    return Ended(how, value, said, tuple(injector.events), tuple(sys.modules))


def _end(ended: Ended, pipe: int) -> None:
    answer = memoryview(pickle.dumps(ended))
    while answer:
        answer = answer[_real["write"](pipe, answer) :]
    os._exit(0)
