"""campaign: one operation with a fault at every place, or at some, in a process of its own: what it costs and harms.

python tests/faults/campaign.py inject OPERATION POINTS, or replay OPERATION POINTS; POINTS 0 is all. It prints JSON.
prepare OPERATION, and once OPERATION, which prints the value, are for strace; they use the home of MIRBLAB_HOME.
again OPERATION HOME... prints the value on each home, by a fork of its own, with how it ended and the error.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from injector import ACTIONS, Ended, Fault, Injector, in_child
from operations import Operation, fresh, made, start, tree

BARE = ("OSError: [Errno 28]", "OSError: [Errno 5]")  # what was injected, not told as a message for a user

# A fork has only the thread that forked, so no library may have started another one.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass
class Figures:
    """What came of an operation's faults; *problems* says of each thing that is not as it should be where it was."""

    operation: str
    events: dict[str, int] = field(default_factory=dict)
    faults: int = 0
    killed: int = 0
    refused: int = 0
    finished: int = 0
    wrong: int = 0
    lost: int = 0
    bare: int = 0
    crashes: int = 0
    hangs: int = 0
    units: int = 0
    redone: int = 0
    problems: list[str] = field(default_factory=list)

    def note(self, kind: str, where: str, what: object) -> None:
        """Count a problem of a kind, and keep the first of them in words."""
        setattr(self, kind, getattr(self, kind) + 1)
        if len(self.problems) < 20:
            self.problems.append(f"{kind}: {self.operation}, {where}: {str(what)[:300]}")


class Bench:
    """An operation with the home it begins with, what it returns undisturbed, and a home for each attempt."""

    def __init__(self, name: str, folder: Path) -> None:
        self.home, self.before = folder / "home", folder / "before"
        self.home.mkdir()
        os.environ.update(MIRBLAB_HOME=str(self.home), MIRBLAB_PROGRESS="0", MIRBLAB_THREADS="1")
        warnings.simplefilter("ignore")
        self.one: Operation = start(name)
        self.figures = Figures(name)
        self._sure(in_child(self.one.prepare, seconds=300))
        fresh(self.home, self.before)
        first = self._sure(self.attempt(Injector(self.home)))
        self.value, self.figures.units = first.value
        _import(first.modules)
        self.events, self.tree = first.events, tree(self.home)
        self.figures.events = dict(Counter(event.kind for event in self.events))

    def attempt(self, injector: Injector | None = None) -> Ended:
        """Run the operation in a child on the home as it is now; its value comes with how much was computed."""
        made.clear()
        return in_child(lambda: (self.one.run(), len(made)), injector)

    def check(self, where: str, *, ended: bool = False) -> None:
        """Compare what a reader finds, and then what the same command returns and leaves, with the undisturbed ones.

        *ended*: the operation had returned, so that nothing may be missing.
        """
        read = in_child(self.one.read)
        if self._ended_well(read, f"{where}, read"):
            if wrong := [name for name, part in read.value.items() if self.value.get(name) != part]:
                self.figures.note("wrong", f"{where}, read", wrong)
            elif ended and self.one.is_durable and read.value != self.value:
                self.figures.note("lost", f"{where}, read", sorted({*self.value} - {*read.value}))
        again = self.attempt()
        if not self._ended_well(again, f"{where}, again"):
            return
        if again.value[0] != self.value:
            self.figures.note("wrong", f"{where}, again", again.value[0])
        else:
            self.figures.redone += again.value[1]
            self._compare(where)

    def _ended_well(self, ended: Ended, where: str) -> bool:
        """Note how a reader or the second run ended, when it did not return; a refusal means that something is lost."""
        kinds = {"finished": "", "hung": "hangs", "refused": "lost"}
        kind = kinds.get(ended.how, "crashes")
        if kind:
            self.figures.note(kind, where, f"{ended.how}: {ended.said}")
        return not kind

    def _compare(self, where: str) -> None:
        """Note files that the same command does not leave as it does undisturbed, and left-overs that nobody sweeps."""
        from mirblab.core import atomic_files

        atomic_files.remove_abandoned(self.home)
        if left := atomic_files.unfinished_paths(self.home):
            self.figures.note("lost", where, f"not swept: {[path.name for path in left]}")
        found = tree(self.home)
        aside = [name for name in found if ".damaged" in name]
        if aside:
            self.figures.note("lost", where, f"set aside: {aside}")
        if self.one.is_exact and found != self.tree:
            differs = sorted(name for name in {*found, *self.tree} if found.get(name) != self.tree.get(name))
            self.figures.note("lost", where, f"other files: {differs}")

    def _sure(self, ended: Ended) -> Ended:
        if ended.how != "finished":
            raise SystemExit(f"{self.one.name} without a fault: {ended.how}: {ended.said}")
        return ended


def _import(modules: Sequence[str]) -> None:
    """Import what a child has imported, so that the next ones have it; none of it may start a thread."""
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    threads = [task.joinpath("comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    if others := [thread for thread in threads[1:] if not thread.startswith("jemalloc")]:  # which prepares for forks
        raise SystemExit(f"an import has started threads, which a fork would not have: {', '.join(others)}")


def inject(bench: Bench, points: int) -> Figures:
    """Let each event of the operation fail in each way (*points* 0), or so many of them, evenly taken."""
    figures = bench.figures
    faults = [Fault(number, action) for number in range(1, len(bench.events) + 1) for action in ACTIONS
              if action != "torn" or bench.events[number - 1].kind == "write"]  # fmt: skip
    for fault in spread(faults, points):
        fresh(bench.before, bench.home)
        event = bench.events[fault.number - 1]
        where = f"{fault.action} at event {fault.number} ({event.kind} {Path(event.path).name})"
        ended = bench.attempt(Injector(bench.home, fault))
        figures.faults += 1
        if ended.how in ("killed", "refused", "finished"):
            setattr(figures, ended.how, getattr(figures, ended.how) + 1)
        if ended.how == "hung":
            figures.note("hangs", where, ended.said)
        if ended.how == "crashed":
            if ended.said.startswith(BARE):
                figures.note("bare", where, ended.said)
            else:
                figures.note("crashes", where, ended.said)
        if ended.how == "finished" and ended.value[0] != bench.value:
            figures.note("wrong", where, ended.value[0])
        bench.check(where)
    return figures


def spread(faults: Sequence, points: int) -> Sequence:
    """Return *points* of the faults, evenly taken, the first and the last among them; 0: all."""
    if not 0 < points < len(faults):
        return faults
    return [faults[round(number * (len(faults) - 1) / max(1, points - 1))] for number in range(points)]


def run_on(operation: Operation, home: str) -> tuple[str, str, object]:
    """Return how the operation ends on a home, its error, and its value."""
    os.environ["MIRBLAB_HOME"] = home
    ended = in_child(operation.run, seconds=300)
    return ended.how, ended.said, ended.value


def main(how: str, name: str, *rest: str) -> None:
    """Print the figures, or a value, as JSON."""
    if how in ("prepare", "once", "again"):
        warnings.simplefilter("ignore")
        operation = start(name)
        if how == "again":
            print(json.dumps([run_on(operation, home) for home in rest]))
        else:
            print(json.dumps((operation.prepare if how == "prepare" else operation.run)()))
        return
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # flushing is what takes time on a disk
    with tempfile.TemporaryDirectory(prefix="mirblab-faults-", dir=place) as folder:
        bench = Bench(name, Path(folder))
        if how == "inject":
            figures = inject(bench, int(rest[0]))
        else:
            from crash_states import replay

            figures = replay(bench, int(rest[0]))
    print(json.dumps(asdict(figures)))


if __name__ == "__main__":
    if not ONE_THREAD.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    main(*sys.argv[1:])
