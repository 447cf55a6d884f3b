"""checkpoint: the state of a training run on disk, whole or not at all, the last two kept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash

from mirblab import damage, disk, partials, paths
from mirblab.errors import MirblabError
from mirblab.train.settings import differences

if TYPE_CHECKING:
    import torch

KEPT = 2
_BEFORE = "the training goes on from the one before it"
_NAME = "step-{:08d}.safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """A state after *step* steps: named tensors, and what they belong to."""

    path: Path
    step: int
    tensors: dict[str, torch.Tensor]


def write(folder: Path, step: int, tensors: Mapping[str, torch.Tensor], identity: Mapping[str, Any]) -> Path:
    """Write the state after *step* steps to *folder* and remove all but the newest two; return the file.

    It is written beside, flushed and renamed, so that it is whole or not there, and carries a checksum of its content.
    """
    from safetensors.torch import save_file

    about = json.dumps({"step": step, "identity": dict(identity)}, sort_keys=True)
    path = folder / _NAME.format(step)
    with paths.write_atomically(path) as beside:
        save_file(dict(tensors), str(beside), metadata={"about": about, "digest": _digest(about, tensors)})
    for old in files(folder)[:-KEPT]:
        disk.remove(old)
    return path


def newest(folder: Path, identity: Mapping[str, Any]) -> Checkpoint | None:
    """Return the newest sound checkpoint in *folder*, or None; damaged ones are set aside with a warning.

    Raises MirblabError saying what differs when it is of another *identity* (recipe, data or base).
    """
    partials.sweep(folder)
    for path in reversed(files(folder)):
        try:
            about, tensors = _read(path)
        except MirblabError as error:
            damage.set_aside(path, str(error), _BEFORE)
            continue
        other = differences(about["identity"], json.loads(json.dumps(dict(identity))))
        if other:
            raise MirblabError(
                f"{path} is of another training: {other}. Take the change back, begin anew with --force, "
                "or give the new model a name of its own with --out"
            )
        return Checkpoint(path, int(about["step"]), tensors)
    return None


def verify(folder: Path) -> list[str]:
    """Read all checkpoints in *folder*; set damaged ones aside with a warning; return a line for each."""
    wrong = []
    for path in files(folder):
        try:
            _read(path)
        except MirblabError as error:
            damage.set_aside(path, str(error), _BEFORE)
            wrong.append(f"{path}: {error}")
    return wrong


def files(folder: Path) -> list[Path]:
    """Return the checkpoints of *folder*, oldest first."""
    return sorted(path for path in folder.glob("step-*.safetensors") if re.search(r"step-\d{8}\.", path.name))


def _read(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return what a checkpoint says of itself, and its tensors; MirblabError when it is not what was written."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            said = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError, ValueError) as error:
        raise MirblabError(f"it cannot be read: {error}") from error
    if said.get("digest") != _digest(said.get("about", ""), tensors):
        raise MirblabError("its content differs from its checksum")
    return json.loads(said["about"]), tensors


def _digest(about: str, tensors: Mapping[str, torch.Tensor]) -> str:
    """Return a checksum over names, shapes and bytes; it finds damage, and does not resist a forger."""
    import torch

    state = xxhash.xxh3_128(about.encode())
    for name in sorted(tensors):
        value = tensors[name].contiguous()
        state.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        state.update(value.reshape(-1).view(torch.uint8).numpy() if value.numel() else b"")
    return state.hexdigest()
