"""doctor: what an installation needs, what was found, and how to mend what is wrong."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata

from mirblab import paths
from mirblab.encode import encoder
from mirblab.errors import MirblabError


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: `state` is "ok", "note" or "wrong"; `mend` says what to do."""

    what: str
    state: str
    found: str
    mend: str = ""


def examine() -> Iterator[Finding]:
    """Yield what was found about Python, libraries, kernel, model, folders, disk and processor."""
    for check in (_python, _libraries, _torch, _kernel, _model, _folders, _disk, _cores):
        yield _guarded(check)


def _guarded(check: Callable[[], Finding]) -> Finding:
    """Return the finding of a check; one that cannot even be made is wrong, too."""
    try:
        return check()
    except (ImportError, OSError, MirblabError) as error:
        return Finding(
            check.__name__.strip("_"), "wrong", str(error), "install mirblab again: make test does its own set-up"
        )


def _python() -> Finding:
    return Finding("python", "ok", ".".join(map(str, sys.version_info[:3])))


def _libraries() -> Finding:
    from packaging.requirements import Requirement

    missing = []
    for line in metadata.requires("mirblab") or []:
        wanted = Requirement(line)
        if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
            continue
        try:
            if metadata.version(wanted.name) not in wanted.specifier:
                missing.append(f"{wanted.name} {metadata.version(wanted.name)} (needs {wanted.specifier})")
        except metadata.PackageNotFoundError:
            missing.append(wanted.name)
    if missing:
        return Finding("libraries", "wrong", ", ".join(missing), "pip install --requirement requirements.lock")
    return Finding("libraries", "ok", f"mirblab {metadata.version('mirblab')} and all that it needs")


def _torch() -> Finding:
    import torch

    if torch.cuda.is_available():
        return Finding("torch", "ok", f"{torch.__version__}, GPU: {torch.cuda.get_device_name(0)}")
    if torch.version.cuda:
        return Finding(
            "torch", "note", f"{torch.__version__} with CUDA, but no GPU", "a CPU build of torch saves several GB"
        )
    return Finding("torch", "ok", f"{torch.__version__}, on the CPU")


def _kernel() -> Finding:
    from jupyter_client.kernelspec import KernelSpecManager

    found = KernelSpecManager().find_kernel_specs()
    if "python3" in found:
        return Finding("kernel", "ok", "python3")
    mend = f"{sys.executable} -m ipykernel install --sys-prefix"
    return Finding("kernel", "wrong", f"no kernel 'python3'; found {', '.join(found) or 'none'}", mend)


def _model() -> Finding:
    model = encoder("minilm")
    vectors = model.vectors(["$a^2 + b^2 = c^2$"], "query")
    return Finding("model", "ok", f"minilm, {vectors.shape[1]} dimensions, weights as registered")


def _folders() -> Finding:
    home = paths.home()
    probe = home / f".{uuid.uuid4().hex}.probe"
    try:
        home.mkdir(parents=True, exist_ok=True)
        probe.write_text("probe", encoding="utf-8")
        probe.unlink()
    except OSError as error:
        return Finding(
            "folders", "wrong", f"{home} cannot be written: {error}", "set MIRBLAB_HOME to a folder of yours"
        )
    return Finding("folders", "ok", str(home))


def _disk() -> Finding:
    free = shutil.disk_usage(next(path for path in (paths.home(), *paths.home().parents) if path.exists())).free / 1e9
    if free < 2:
        return Finding("disk", "wrong", f"{free:.1f} GB free", "free some space, or set MIRBLAB_HOME to another disk")
    return Finding("disk", "ok", f"{free:.0f} GB free")


def _cores() -> Finding:
    threads = os.environ.get("MIRBLAB_THREADS") or os.environ.get("OMP_NUM_THREADS")
    found = f"{os.cpu_count()} cores" + (f", {threads} threads asked for" if threads else "")
    return Finding("processor", "ok", found)
