"""mutated: readers on damaged inputs, in children with limits of time and memory: python mutated.py N FAMILY...

A family is what stands before the colon in the names of `READERS`, and gets N inputs, shared out among its files. It
prints JSON: how many inputs were tried, and which ended in a crash, a hang, or a refusal that names no file.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import signal
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from injector import in_child
from mutations import mutant
from readers import READERS, Reader

from mirblab.core import registry
from mirblab.core.errors import MirblabError

CHUNK = 200  # inputs that one child reads; after a crash or a hang the next child goes on behind it
SECONDS = 5  # of processor time, since a busy machine gives a process less than that of each second
MEMORY = 4 << 30


def _one(reader: Reader, path: Path, seed: int) -> str:
    """Return what is wrong with how one input is read, "" for nothing."""
    path.write_bytes(mutant(reader, seed))
    try:
        reader.read(path)
    except FileNotFoundError:
        return ""
    except MirblabError as error:
        said = str(error)
        names = {part for name in (reader.file, *reader.beside) for part in Path(name).parts} | {"source7"}
        is_text = reader.name.startswith("text:")
        return "" if is_text or any(name in said for name in names) else f"no file in: {said[:200]}"
    return ""


def _chunk(reader: Reader, root: Path, seeds: range, progress: Path) -> list[tuple[int, str]]:
    warnings.simplefilter("ignore")
    os.environ["MIRBLAB_HOME"] = str(root / "home")
    path, wrong = reader.prepare(root / "source7"), []
    here = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (here + MEMORY, here + MEMORY))
    for seed in seeds:
        progress.write_text(str(seed), encoding="utf-8")
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            if said := _one(reader, path, seed):
                wrong.append((seed, said))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            wrong.append((seed, f"crash: {type(error).__name__}: {str(error)[:200]}"))
    signal.setitimer(signal.ITIMER_PROF, 0)
    return wrong


def tried(reader: Reader, count: int, first: int = 0) -> dict[str, Any]:
    """Return figures for *count* inputs of a reader, and the seeds of those that went wrong, with what was said."""
    found: dict[str, Any] = {"inputs": 0, "crashes": 0, "hangs": 0, "problems": []}
    with tempfile.TemporaryDirectory(prefix="mirblab-inputs-", dir=_place()) as folder:
        root, seed = Path(folder), first
        while seed < first + count:
            seeds = range(seed, min(seed + CHUNK, first + count))
            ended = in_child(lambda seeds=seeds: _chunk(reader, root, seeds, root / "at"), seconds=CHUNK * SECONDS)
            seed = seeds.stop
            if ended.how != "finished":
                at = int((root / "at").read_text())
                found["hangs" if ended.how == "hung" else "crashes"] += 1
                found["problems"].append((at, f"{ended.how}: {ended.said}"))
                seed = at + 1
            for at, said in ended.value or []:
                found["crashes"] += said.startswith("crash")
                found["problems"].append((at, said))
    found["inputs"] = count
    return found


def _place() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def families() -> dict[str, list[Reader]]:
    """Return the readers by what stands before the colon in their names."""
    found: dict[str, list[Reader]] = {}
    for reader in READERS:
        found.setdefault(reader.name.partition(":")[0], []).append(reader)
    return found


def main(count: str, *names: str) -> None:
    """Print the figures of some families as JSON."""
    registry.read_registry = functools.cache(registry.read_registry)  # it is no input, and a build reads it each time
    known = families()
    total: dict[str, Any] = {"operations": len(names), "inputs": 0, "crashes": 0, "hangs": 0, "problems": []}
    for name in names:
        for reader in known[name]:
            found = tried(reader, max(1, int(count) // len(known[name])))
            for what in ("inputs", "crashes", "hangs"):
                total[what] += found[what]
            total["problems"] += [[reader.name, *problem] for problem in found["problems"]]
    print(json.dumps(total))


if __name__ == "__main__":
    main(*sys.argv[1:])
