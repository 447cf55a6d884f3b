"""crash_states: what a loss of power can leave of an operation: writes that were not flushed are lost or torn.

As ALICE does (Pillai et al., OSDI 2014): the recorded calls are played on a model of a file system. At a crash after
any of them, every file may have lost what was written since its last flush, and every folder the entries that were
made, renamed or removed since its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from campaign import Bench, Figures, spread
from injector import Event

Tree = dict[str, int | None]  # a path, and the number of its file; None for a folder
CONTENTS: dict[str, Callable[[bytes, bytes], bytes]] = {
    "kept": lambda new, _: new,
    "lost": lambda _, old: old,
    "cut": lambda new, old: new[: (len(old) + len(new)) // 2],
    "zeros": lambda new, old: old + bytes(max(0, len(new) - len(old))),
}


@dataclass
class Disk:
    """Names and contents as a process sees them, and as they are on the disk for certain."""

    names: Tree = field(default_factory=dict)
    flushed_names: Tree = field(default_factory=dict)
    contents: list[bytes] = field(default_factory=list)
    flushed: list[bytes] = field(default_factory=list)
    pending: list[Event] = field(default_factory=list)  # changes of names since their folder was flushed

    def play(self, event: Event) -> None:
        """Take up one recorded call."""
        if event.kind == "open" and event.path in self.names:
            if event.data:
                self.contents[self._file(event.path)] = b""
        elif event.kind == "open":
            self.contents.append(b"")
            self.flushed.append(b"")
            self._rename(Event("made", event.path, len(self.contents) - 1))
        elif event.kind == "write":
            self.contents[self._file(event.path)] += event.data
        elif event.kind == "fsync" and event.data is None:
            self._flush_folder(event.path)
        elif event.kind == "fsync":
            self._take(event.path, event.data)
            self.flushed[self._file(event.path)] = event.data
        else:
            if event.kind == "rename" and event.data[1] is not None:
                self._take(event.path, event.data[1])
            self._rename(event)

    def after_crash(self, dropped: Callable[[int], bool], contents: str) -> dict[str, bytes | None]:
        """Return files and folders when the *dropped* ones of the pending changes of names never reached the disk."""
        names = dict(self.flushed_names)
        for place, event in enumerate(self.pending):
            if not dropped(place):
                _apply(names, event)
        choose = CONTENTS[contents]
        kept = {path: number for path, number in names.items() if _has_folders(path, names)}
        return {
            path: None if number is None else choose(self.contents[number], self.flushed[number])
            for path, number in kept.items()
        }

    def _file(self, path: str) -> int:
        number = self.names[path]
        if number is None:
            raise ValueError(f"{path} is a folder")
        return number

    def _take(self, path: str, content: bytes) -> None:
        """Take up what a file holds that was written in C, or not at its end."""
        if path not in self.names:
            self.play(Event("open", path, True))
        self.contents[self._file(path)] = content

    def _rename(self, event: Event) -> None:
        _apply(self.names, event)
        self.pending.append(event)

    def _flush_folder(self, folder: str) -> None:
        """What happened in a folder, and before it to the names that it takes along, is on the disk now."""
        kept: list[Event] = []
        for event in self.pending:
            target = event.data[0] if event.kind == "rename" else event.path
            if folder not in (os.path.dirname(event.path), os.path.dirname(target)):
                kept.append(event)
                continue
            if event.kind == "rename" and event.data[1] is None:  # the folder is there then, whoever made it
                self.flushed_names[event.path] = None
                kept = [_moved(one, event.path, target) for one in kept if one.path != event.path]
            _apply(self.flushed_names, event)
        self.pending = kept


def _moved(event: Event, source: str, target: str) -> Event:
    """Return an earlier change in a folder that is called *target* by now."""
    inside = event.path.startswith(f"{source}/")
    return Event(event.kind, target + event.path[len(source) :], event.data) if inside else event


def _apply(names: Tree, event: Event) -> None:
    """Change *names*; a change of what is not there does nothing."""
    if event.kind == "made":
        names[event.path] = event.data
    elif event.kind == "mkdir":
        names[event.path] = None
    elif event.kind == "remove":  # a folder that is gone was empty
        for path in [path for path in names if f"{path}/".startswith(f"{event.path}/")]:
            del names[path]
    elif event.kind == "rename":
        target = event.data[0]
        moved = {path: number for path, number in names.items() if f"{path}/".startswith(f"{event.path}/")}
        for path in moved:
            del names[path]
        for path, number in moved.items():
            names[target + path[len(event.path) :]] = number


def _has_folders(path: str, names: Tree) -> bool:
    return all(str(parent) not in _MADE or str(parent) in names for parent in Path(path).parents) if _MADE else True


_MADE: set[str] = set()  # the folders that the operation made; those before are there


def states(bench: Bench, points: int) -> Iterator[tuple[str, dict[str, bytes | None], bool]]:
    """Yield what crashes can leave, with where they were, and whether the operation had ended; equal ones once.

    *points*: so many of all, evenly taken, the last among them; 0: all.
    """
    disk, counts, seen = _disk(bench), [], set()
    for event in bench.events:
        disk.play(event)
        counts.append(len(_choices(len(disk.pending))))
    every = [(number, choice, contents) for number, count in enumerate(counts) for choice in range(count)
             for contents in CONTENTS]  # fmt: skip
    chosen = set(spread(every, points))
    disk = _disk(bench)
    for number, event in enumerate(bench.events):
        disk.play(event)
        for choice, (dropped, said) in enumerate(_choices(len(disk.pending))):
            for contents in (one for one in CONTENTS if (number, choice, one) in chosen):
                left = disk.after_crash(dropped, contents)
                mark, ended = hash(frozenset(left.items())), number + 1 == len(bench.events)
                if mark not in seen or ended:
                    seen.add(mark)
                    call = f"{event.kind} {Path(event.path).name}"
                    yield f"crash after event {number + 1} ({call}), {said}, data {contents}", left, ended


def _choices(n_pending: int) -> list[tuple[Callable[[int], bool], str]]:
    """Return which changes of names may be dropped: none, all, or each one alone."""
    found: list[tuple[Callable[[int], bool], str]] = [(lambda _: False, "names kept")]
    if n_pending:
        found.append((lambda _: True, "names lost"))
    if n_pending > 1:
        found += [(lambda place, one=one: place == one, f"name {one + 1} lost") for one in range(n_pending)]
    return found


def _disk(bench: Bench) -> Disk:
    disk = Disk()
    for path in sorted(bench.before.rglob("*")):
        place = str(bench.home / path.relative_to(bench.before))
        disk.names[place] = None if path.is_dir() else len(disk.contents)
        if path.is_file():
            disk.contents.append(path.read_bytes())
            disk.flushed.append(path.read_bytes())
    disk.names[str(bench.home)] = None
    disk.flushed_names = dict(disk.names)
    _MADE.clear()
    _MADE.update(event.path for event in bench.events if event.kind == "mkdir")
    _MADE.update(event.data[0] for event in bench.events if event.kind == "rename" and event.data[1] is None)
    return disk


def replay(bench: Bench, points: int) -> Figures:
    """Read and repeat the operation on what each crash can leave (*points* 0), or on so many of them."""
    for where, left, ended in states(bench, points):
        shutil.rmtree(bench.home)
        bench.home.mkdir()
        for path, content in sorted(left.items()):
            place = Path(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                place.mkdir(exist_ok=True)
            else:
                place.write_bytes(content)
        bench.figures.faults += 1
        bench.check(where, ended=ended)
    return bench.figures
