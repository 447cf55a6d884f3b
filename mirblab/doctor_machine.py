"""doctor_machine: GPU, folders, disk, what is stored, and the processor."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from pathlib import Path

from mirblab import paths, stores
from mirblab.diagnosis import Finding
from mirblab.encode import threads

_ASK = ("--query-gpu=name,memory.total,memory.free,driver_version", "--format=csv,noheader,nounits")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_GB = 1e9


def nvidia() -> tuple[list[str], str]:
    """Return a line per NVIDIA GPU, "name, MiB, MiB free, driver", and what its tool complained of, or ""."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return [], ""
    try:
        done = subprocess.run([tool, *_ASK], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"{tool}: {error}"
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return (lines, "") if done.returncode == 0 else ([], " ".join([*lines, done.stderr.strip()]).strip())


def gpu() -> Finding:
    """Ask NVIDIA's tool for GPUs, their memory and the driver."""
    found, complaint = nvidia()
    if complaint:
        mend = "install the GPU's driver again and restart; without it everything runs on the CPU"
        return Finding("gpu", "note", complaint, mend)
    if not found:
        return Finding("gpu", "ok", "none of NVIDIA's; everything runs on the CPU")
    name, total, free, driver = (part.strip() for part in found[0].split(",", 3))
    shown = f"{len(found)} × {name}, {total} MiB, {free} free, driver {driver}"
    if free.isdigit() and int(free) < 2000:
        return Finding(
            "gpu", "note", shown, "another process holds its memory: see nvidia-smi, and end it if it is yours"
        )
    return Finding("gpu", "ok", shown)


def folders() -> Finding:
    """Write a probe into the home folder, and remove it."""
    home = paths.home()
    probe = home / f".{uuid.uuid4().hex}.probe"
    try:
        home.mkdir(parents=True, exist_ok=True)
        probe.write_text("probe", encoding="utf-8")
        probe.unlink()
    except OSError as error:
        mend = "set MIRBLAB_HOME to a folder of yours"
        return Finding("folders", "wrong", f"{home} cannot be written: {error}", mend)
    return Finding("folders", "ok", str(home))


def disk(needed: float = 2 * _GB) -> Finding:
    """Compare the bytes that are free where vectors and figures land with those *needed*."""
    here = next(path for path in (paths.home(), *paths.home().parents) if path.is_dir())
    free = shutil.disk_usage(here).free
    if free < needed:
        found = f"{free / _GB:.1f} GB free at {here}; {needed / _GB:.0f} are needed"
        return Finding("disk", "wrong", found, "free some space (mirblab cache), or set MIRBLAB_HOME to another disk")
    return Finding("disk", "ok", f"{free / _GB:.0f} GB free")


def cache() -> Finding:
    """Count what is of no use in the stores: made by an older version, set aside as damaged, or left half-written."""
    notes = stores.notes()
    if notes:
        mends = dict.fromkeys(mend for _, mend in notes)
        return Finding("cache", "note", "; ".join(found for found, _ in notes), "; ".join(mends))
    n_files = sum(len(store.files()) for store in stores.STORES)
    return Finding("cache", "ok", f"{n_files:,} files, none damaged")


def cores() -> Finding:
    """Compare the threads that were asked for with the cores that this process may use."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed, used = quota(), threads()  # threads() raises MirblabError for a MIRBLAB_THREADS that is no number
    named = {name: os.environ[name] for name in ("MIRBLAB_THREADS", "OMP_NUM_THREADS") if os.environ.get(name)}
    found = f"{available} cores" + "".join(f", {name}={value}" for name, value in named.items())
    limit = min(available, allowed) if allowed else available
    asked = max([used, *(int(value) for value in named.values() if value.isdigit())])
    if asked > limit:
        found += f", of which {limit} may be used" if limit < available else ""
        mend = f"export MIRBLAB_THREADS={limit} OMP_NUM_THREADS={limit}: more threads than cores are slower, not faster"
        return Finding("processor", "note", found, mend)
    return Finding("processor", "ok", found)


def quota(file: Path = _QUOTA) -> int:
    """Return how many cores a container may use, from its control *file* ("200000 100000"); 0: no limit is known."""
    try:
        share, period = file.read_text("utf-8").split()[:2]
        return max(1, int(share) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return 0
