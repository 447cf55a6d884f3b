"""storage: an index on disk: a folder of generations, each written whole or not at all, the last one in force."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mirblab import partials, paths
from mirblab.errors import MirblabError
from mirblab.formula import segments
from mirblab.formula.segments import Segment

FORMAT = "mirblab-structure-2"
LENGTHS, ORDER, IDS = "lengths.npy", "order.npy", "ids.json"
_MANIFEST, _DIGITS = "manifest.json", 6


@dataclass(frozen=True, slots=True)
class Stored:
    """What the generation in force says: its number (0: there is none yet), its segments, the lengths, the order.

    `homes` names the folder of each segment; `lengths` float64 (n_formulas,) are those by the weights of kinds
    `weights`; `order` int32 holds positions by id, None where ids ascend already; `files` has the checksum of every
    file, and `code` the hash of the code that made the index.
    """

    number: int = 0
    homes: list[str] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    lengths: np.ndarray | None = None
    weights: list[float] = field(default_factory=list)
    order: np.ndarray | None = None
    files: dict[str, str] = field(default_factory=dict)
    code: str = ""


def read(folder: Path) -> Stored:
    """Return the generation in force of the index in *folder*, its arrays mapped and the bytes of all files checked.

    FileNotFoundError when nothing is there; MirblabError when it is of another format or damaged.
    """
    number = last(folder)
    if number == 0:
        what = "is empty or holds something else" if folder.is_dir() else "does not exist"
        raise FileNotFoundError(f"no structure index at {folder}: the folder {what}; build one with Index.build")
    home = folder / _name(number)
    manifest = _manifest(home / _MANIFEST)
    for name, expected in manifest["files"].items():
        _check(folder / name, expected)
    parts = [segments.load(part["n"], folder / part["home"]) for part in manifest["segments"]]
    lengths = segments.array(home / LENGTHS, np.float64, 1)
    if len(lengths) != sum(part.n for part in parts):
        raise MirblabError(f"{home} holds the lengths of {len(lengths):,} other formulas; build the index again")
    order = segments.array(home / ORDER, np.int32, 1) if f"{_name(number)}/{ORDER}" in manifest["files"] else None
    homes = [part["home"] for part in manifest["segments"]]
    return Stored(number, homes, parts, lengths, manifest["weights"], order, manifest["files"], manifest["code"])


def ids(folder: Path, homes: Sequence[str]) -> list[str]:
    """Return the ids of the formulas in the segments *homes*, in order."""
    return [name for home in homes for name in json.loads((folder / home / IDS).read_text("utf-8"))]


def write_ids(home: Path, names: Sequence[str]) -> None:
    """Write the ids of the formulas of a segment into its folder."""
    with paths.open_to_write(home / IDS, "w") as file:
        file.write(json.dumps(list(names)))


@contextlib.contextmanager
def generation(folder: Path, before: Stored) -> Iterator[tuple[Path, str]]:
    """Yield a new folder to fill and its later name; on success it is the generation that follows *before*.

    MirblabError when another process has made that one meanwhile; on failure nothing changes (StorageError: the disk
    or the rights do not allow it). What killed processes
    were making is removed.
    """
    paths.make_folder(folder)
    partials.sweep(folder)
    name = _name(before.number + 1)
    beside = partials.beside(folder / name)
    with paths.writing(folder / name):
        try:
            paths.make_folder(beside)
            yield beside, name
            _commit(beside, folder / name)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    for old in folder.glob("[0-9]*"):  # what the generations before needed and this one does not
        if old.name != name:
            _tidy(old, _manifest(folder / name / _MANIFEST)["files"])


def seal(beside: Path, name: str, before: Stored, after: Stored) -> None:
    """Write what the generation *name*, which is being filled in the folder *beside*, says beyond its segments.

    All files are flushed to disk first, so that a manifest never speaks of bytes that a loss of power can take.
    """
    segments.write(beside / LENGTHS, after.lengths)
    if after.order is not None:
        segments.write(beside / ORDER, after.order)
    files = {key: value for key, value in before.files.items() if key.rpartition("/")[0] in after.homes}
    for path in sorted(path for path in beside.rglob("*") if path.is_file()):
        paths.flush(path)
        files[f"{name}/{path.relative_to(beside).as_posix()}"] = segments.digest(path)
    manifest = {
        "format": FORMAT,
        "code": after.code,
        "weights": after.weights,
        "formulas": sum(part.n for part in after.segments),
        "postings": sum(len(part.postings) for part in after.segments),
        "segments": [{"home": home, "n": part.n} for home, part in zip(after.homes, after.segments, strict=True)],
        "files": files,
    }
    paths.write_text(beside / _MANIFEST, json.dumps(manifest | {"check": checksum(manifest)}, indent=1))
    for folder in (beside, *(path for path in beside.iterdir() if path.is_dir())):
        paths.flush_folder(folder)


def _commit(beside: Path, target: Path) -> None:
    """Rename a finished generation; who comes second finds the name taken, so that nobody's formulas are lost."""
    try:
        paths.move(beside, target)
    except OSError as error:
        if not target.exists():
            raise
        found = f"generation {target.name} of {target.parent} is there by now"
        raise MirblabError(f"another process has changed the index: {found}; open it again and repeat") from error
    paths.flush_folder(target.parent)


def _tidy(old: Path, needed: dict[str, str]) -> None:
    """Remove what nothing needs any more; where the system does not let go of a mapped file, it stays."""
    for path in sorted(old.rglob("*"), reverse=True):
        if path.is_file() and path.relative_to(old.parent).as_posix() not in needed:
            with contextlib.suppress(OSError):
                path.unlink()
    for path in (*old.glob("*/"), old):
        with contextlib.suppress(OSError):
            path.rmdir()


def _name(number: int) -> str:
    return f"{number:0{_DIGITS}d}"


def last(folder: Path) -> int:
    """Return the number of the generation in force of the index in *folder*, 0 when there is none."""
    found = (path.parent.name for path in folder.glob(f"[0-9]*/{_MANIFEST}"))
    return max((int(name) for name in found if name.isdecimal() and len(name) >= _DIGITS), default=0)


def made_by(folder: Path) -> tuple[str, str]:
    """Return format and code of the index in *folder*, "" where its manifest does not say them; nothing is checked."""
    try:
        found = json.loads((folder / _name(last(folder)) / _MANIFEST).read_text("utf-8"))
        return str(found.get("format", "")), str(found.get("code", ""))
    except (OSError, ValueError, AttributeError, RecursionError):
        return "", ""


def _manifest(path: Path) -> dict:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise MirblabError(f"{path} cannot be read: {error}; build the index again") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        other = found.get("format") if isinstance(found, dict) else type(found).__name__
        raise MirblabError(f"{path} has the format {other!r}, expected '{FORMAT}'; build the index again")
    if found.pop("check", "") != checksum(found):
        raise MirblabError(f"{path} is damaged: it differs from its checksum; build the index again")
    return found


def checksum(manifest: dict) -> str:
    """Return a checksum of what a manifest says, the checksum itself left out."""
    return hashlib.blake2b(json.dumps(manifest, sort_keys=True).encode(), digest_size=8).hexdigest()


def _check(path: Path, expected: str) -> None:
    found = segments.digest(path) if path.is_file() else "no such file"
    if found != expected:
        raise MirblabError(f"{path} is damaged: its checksum is {found}, expected {expected}; build the index again")
