"""doctor_software: whether Python, the libraries and torch are those that mirblab needs."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from mirblab import doctor_machine, paths
from mirblab.diagnosis import Finding, pip

_SHOWN = 6  # so many names in a line, then a count


def python() -> Finding:
    """Compare this Python with the versions that the package names."""
    running = ".".join(map(str, sys.version_info[:3]))
    needed = metadata.metadata("mirblab")["Requires-Python"] or ""
    if Version(running) not in SpecifierSet(needed):
        mend = f"install Python {needed}, then: make PYTHON=python3.11 lab"
        return Finding("python", "wrong", f"{running}, where mirblab needs {needed}", mend)
    return Finding("python", "ok", f"{running} at {sys.executable}")


def libraries() -> Finding:
    """Look for every dependency, and compare its version with what the package asks for."""
    bad = []
    for line in metadata.requires("mirblab") or []:
        wanted = Requirement(line)
        if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
            continue
        found = _version(wanted.name)
        if found is None:
            bad.append(f"{wanted.name} is missing")
        elif not wanted.specifier.contains(found, prereleases=True):
            bad.append(f"{wanted.name} {found} (needs {wanted.specifier})")
    if bad:
        return Finding("libraries", "wrong", _some(bad), pip("--requirement", "requirements.lock"))
    return Finding("libraries", "ok", f"mirblab {metadata.version('mirblab')} and all that it needs")


def versions(lock: Path | None = None) -> Finding:
    """Compare what is installed with *lock*, the versions that were tested together; default: the checkout's."""
    root = paths.checkout()
    lock = lock or (root / "requirements.lock" if root else None)
    if lock is None or not lock.is_file():
        return Finding("versions", "ok", "no requirements.lock beside this installation to compare with")
    pins = [line.split("==") for line in lock.read_text("utf-8").splitlines() if "==" in line and line[0] != "#"]
    found = [(name, wanted, _version(name)) for name, wanted in pins]
    other = [f"{name} {here} (tested: {wanted})" for name, wanted, here in found if here and not _same(here, wanted)]
    if other:
        return Finding("versions", "note", _some(other), pip("--requirement", str(lock)))
    n_here = sum(here is not None for *_, here in found)
    return Finding("versions", "ok", f"{n_here} of {len(pins)} in {lock.name} are here, all as tested")


def torch() -> Finding:
    """Look for a second torch, and compare the build with the GPU: none, not used, or too new for its driver."""
    places = sorted({f"{one.version} in {one.locate_file('')}" for one in metadata.distributions(name="torch")})
    if len(places) > 1:
        mend = f"{sys.executable} -m pip uninstall torch (twice), then {pip('torch==2.13.0')}"
        return Finding("torch", "wrong", f"{len(places)} are installed: {'; '.join(places)}", mend)
    library, gpus = importlib.import_module("torch"), doctor_machine.nvidia()[0]
    version = library.__version__
    if library.cuda.is_available():
        return Finding("torch", "ok", f"{version}, uses the GPU {library.cuda.get_device_name(0)}")
    built_for_gpu = library.version.cuda or getattr(library.version, "hip", None)
    if built_for_gpu and gpus:
        found = f"{version} is built for CUDA {built_for_gpu} and cannot use the {gpus[0].split(',')[0]}"
        return Finding("torch", "wrong", found, "update the GPU's driver, or install a torch for an older CUDA")
    if built_for_gpu:
        mend = "everything works; to save several GB, uninstall torch and install its CPU build"
        return Finding("torch", "note", f"{version} brings CUDA {built_for_gpu}, but there is no GPU", mend)
    if gpus:
        mend = "uninstall torch, then install its CUDA build; large encoders gain most"
        return Finding("torch", "note", f"{version} uses the CPU; the {gpus[0].split(',')[0]} is idle", mend)
    return Finding("torch", "ok", f"{version}, on the CPU")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _same(here: str, wanted: str) -> bool:
    """Return whether two versions are one, the build's label apart: torch is 2.13.0 or 2.13.0+cpu."""
    try:
        return Version(here).public == Version(wanted).public
    except InvalidVersion:
        return here == wanted


def _some(lines: list[str]) -> str:
    more = f", and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return ", ".join(lines[:_SHOWN]) + more
