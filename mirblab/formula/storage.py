"""storage: segments of an index on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import xxhash

from mirblab.core import atomic_files
from mirblab.core.errors import MirblabError, MissingFileError
from mirblab.formula.tokens import count_tokens, formula_tokens, layout_trees
from mirblab.formula.tree import Tree

ARRAYS = {"keys": np.uint64, "starts": np.uint32, "postings": np.uint32}
COUNT_BITS, COUNT_MASK = np.uint32(8), np.uint32(255)
MOST_FORMULAS, MOST_POSTINGS = 1 << 24, (1 << 32) - 1  # in one segment
_READ = 1 << 20  # bytes at a time; larger arrays are mapped
FORMAT = "mirblab-structure-2"
LENGTHS, ORDER, IDS = "lengths.npy", "order.npy", "ids.json"
_MANIFEST, _DIGITS = "manifest.json", 6


@dataclass(frozen=True, slots=True)
class Segment:
    """Which of *n* formulas has which token how often.

    `keys` uint64 (n_keys,), ascending; `starts` uint32 (n_keys + 1,): key i has the postings from `starts[i]` to
    `starts[i + 1]`. A posting, uint32, is the position of a formula, in the upper 24 bits, and how often it has the
    token, in the lower 8; those of a key ascend.
    """

    n: int
    keys: np.ndarray
    starts: np.ndarray
    postings: np.ndarray

    def find(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where the postings of each of *keys* begin and end; equal positions for one that is not here."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        is_here = (self.keys[place] == keys).astype(np.int64)
        return is_here * self.starts[place], is_here * self.starts[place + 1]

    def sizes(self) -> np.ndarray:
        """Return in how many formulas each token is, int64 (n_keys,)."""
        return np.diff(self.starts.astype(np.int64))


def make_segment(formulas: Iterable[str | Tree]) -> Segment:
    """Return the segment of a few formulas, in memory."""
    trees = layout_trees(formulas)
    keys, documents, positions, counts = count_tokens(formula_tokens(trees))
    return Segment(len(trees), keys, _posting_starts(documents), positions.astype(np.uint32) << COUNT_BITS | counts)


def _posting_starts(sizes: np.ndarray) -> np.ndarray:
    starts = np.concatenate([[0], np.cumsum(sizes)])
    if starts[-1] > MOST_POSTINGS:
        raise MirblabError(
            f"one segment holds {MOST_POSTINGS:,} postings at most, found {starts[-1]:,}; leave them unmerged"
        )
    return starts.astype(np.uint32)


def write_segment(formulas: Iterable[str | Tree], folder: Path) -> int:
    """Write the segment of a few formulas into *folder*, and return how many they are."""
    segment = make_segment(formulas)
    atomic_files.make_folder(folder)
    for name in ARRAYS:
        write_array(folder / f"{name}.npy", getattr(segment, name))
    return segment.n


def write_array(path: Path, array: np.ndarray) -> None:
    """Write an array in NumPy's format."""
    with atomic_files.open_to_write(path) as file:
        np.save(file, array)


def merge_segments(parts: Sequence[Segment], folder: Path | None = None) -> Segment:
    """Return one segment of all *parts*, in order, in *folder* or (None) in memory; MirblabError if it is too large."""
    n = sum(part.n for part in parts)
    if n > MOST_FORMULAS:
        raise MirblabError(f"one segment holds {MOST_FORMULAS:,} formulas at most, found {n:,}; leave them unmerged")
    keys = distinct_keys(parts)
    places = [np.searchsorted(keys, part.keys) for part in parts]
    sizes = np.zeros(len(keys), dtype=np.int64)
    for part, place in zip(parts, places, strict=True):
        sizes[place] += part.sizes()
    starts = _posting_starts(sizes)
    postings = _allocate_postings(folder, int(starts[-1]))
    cursor, first = starts[:-1].astype(np.int64), 0
    for part, place in zip(parts, places, strict=True):
        own = part.sizes()
        to = np.repeat(cursor[place] - part.starts[:-1], own) + np.arange(len(part.postings))
        postings[to] = part.postings + (np.uint32(first) << COUNT_BITS)
        cursor[place] += own
        first += part.n
    if folder is not None:
        for name, array in (("keys", keys), ("starts", starts)):
            write_array(folder / f"{name}.npy", array)
        if isinstance(postings, np.memmap):
            postings.flush()
    return Segment(n, keys, starts, postings)


def distinct_keys(parts: Iterable[Segment]) -> np.ndarray:
    """Return the keys of all *parts*, uint64, ascending, each once.

    Sorted in place: `np.unique` takes three times the memory, and on 64-bit keys thirty times as long.
    """
    keys = np.concatenate([np.empty(0, np.uint64), *(part.keys for part in parts)])
    keys.sort()
    is_first = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    return keys[is_first]


def _allocate_postings(folder: Path | None, size: int) -> np.ndarray:
    path = folder and folder / "postings.npy"
    if path is None or size == 0:  # an empty file cannot be mapped
        empty = np.empty(size, np.uint32)
        if path is not None:
            write_array(path, empty)
        return empty
    room = np.lib.format.open_memmap(path, "w+", np.uint32, (size,))
    atomic_files.reserve_space(path)
    return room


def load_segment(n: int, folder: Path) -> Segment:
    """Return the segment of *n* formulas in *folder*, mapped; MirblabError when an array is damaged."""
    return Segment(n, **{name: read_array(folder / f"{name}.npy", dtype, 1) for name, dtype in ARRAYS.items()})


def read_array(path: Path, dtype: type, dimensions: int) -> np.ndarray:
    """Return the array in a file, mapped; MirblabError when it is damaged or of another type or shape."""
    try:
        found = np.load(path, mmap_mode="r" if path.stat().st_size > _READ else None, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise MirblabError(f"{path} cannot be read: {error}; build the index again") from error
    if found.dtype != dtype or found.ndim != dimensions:
        wanted = f"{np.dtype(dtype)} in {dimensions} dimensions"
        raise MirblabError(f"{path} holds {found.dtype} {found.shape}, expected {wanted}; build the index again")
    return found


@dataclass(frozen=True, slots=True)
class Generation:
    """The state of an index: its number (0: there is none yet), its segments, the lengths, the order.

    `homes` names the folder of each segment; `lengths` float64 (n_formulas,) are those by the weights of kinds
    `weights`; `order` int32 holds positions by id (None: ids ascend); `files` checksums, and `code` the version of the
    tokens.
    """

    number: int = 0
    homes: list[str] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    lengths: np.ndarray = field(default_factory=lambda: np.empty(0))
    weights: list[float] = field(default_factory=list)
    order: np.ndarray | None = None
    files: dict[str, str] = field(default_factory=dict)
    code: str = ""


def read_generation(folder: Path) -> Generation:
    """Return the current generation, arrays mapped, files checked; FileNotFoundError, or MirblabError for damage."""
    number = last_generation(folder)
    try:
        return _read_numbered(folder, number)
    except (MirblabError, FileNotFoundError):
        if last_generation(folder) <= number:
            raise
    return read_generation(folder)  # another process made a later one, and removed files of this one


def _read_numbered(folder: Path, number: int) -> Generation:
    if number == 0:
        what = "is empty or holds something else" if folder.is_dir() else "does not exist"
        raise MissingFileError(f"no structure index at {folder}: the folder {what}; build one with Index.build")
    home = folder / _folder_name(number)
    manifest = _read_manifest(home / _MANIFEST)
    for name, expected in manifest["files"].items():
        path = folder / name
        found = file_digest(path) if path.is_file() else "no such file"
        if found != expected:
            raise MirblabError(
                f"{path} is damaged: its checksum is {found}, expected {expected}; build the index again"
            )
    parts = [load_segment(part["n"], folder / part["home"]) for part in manifest["segments"]]
    lengths = read_array(home / LENGTHS, np.float64, 1)
    if len(lengths) != sum(part.n for part in parts):
        raise MirblabError(f"{home} holds the lengths of {len(lengths):,} other formulas; build the index again")
    order = read_array(home / ORDER, np.int32, 1) if f"{_folder_name(number)}/{ORDER}" in manifest["files"] else None
    homes = [part["home"] for part in manifest["segments"]]
    return Generation(number, homes, parts, lengths, manifest["weights"], order, manifest["files"], manifest["code"])


def _folder_name(number: int) -> str:
    return f"{number:0{_DIGITS}d}"


def _read_manifest(path: Path) -> dict:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise MirblabError(f"{path} cannot be read: {error}; build the index again") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        other = found.get("format") if isinstance(found, dict) else type(found).__name__
        raise MirblabError(f"{path} has the format {other!r}, expected '{FORMAT}'; build the index again")
    if found.pop("check", "") != manifest_checksum(found):
        raise MirblabError(f"{path} is damaged: it differs from its checksum; build the index again")
    return found


def manifest_checksum(manifest: dict) -> str:
    """Return a checksum of a manifest, without its field for the checksum."""
    return hashlib.blake2b(json.dumps(manifest, sort_keys=True).encode(), digest_size=8).hexdigest()


def file_digest(path: Path) -> str:
    """Return a checksum of a file's bytes; FileNotFoundError when there is none."""
    state = xxhash.xxh3_128()
    with open(path, "rb") as file:
        while block := file.read(_READ):
            state.update(block)
    return state.hexdigest()


def read_ids(folder: Path, homes: Sequence[str]) -> list[str]:
    """Return the ids of the formulas in the segments *homes*, in order."""
    return [name for home in homes for name in json.loads((folder / home / IDS).read_text("utf-8"))]


def write_ids(home: Path, names: Sequence[str]) -> None:
    """Write the ids of the formulas of a segment into its folder."""
    with atomic_files.open_to_write(home / IDS, "w") as file:
        file.write(json.dumps(list(names)))


@contextlib.contextmanager
def new_generation(folder: Path, before: Generation) -> Iterator[tuple[Path, str]]:
    """Yield a folder to fill and its later name; MirblabError when another process made that generation meanwhile."""
    atomic_files.make_folder(folder)
    atomic_files.remove_abandoned(folder)
    name = _folder_name(before.number + 1)
    beside = atomic_files.unfinished_name(folder / name)
    with atomic_files.writing(folder / name):
        try:
            atomic_files.make_folder(beside)
            yield beside, name
            needed = _read_manifest(beside / _MANIFEST)["files"]
            _commit(beside, folder / name)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    for old in folder.glob("[0-9]*"):  # files that only earlier generations needed
        if old.name < name:  # another process may have made a later one meanwhile
            _remove_unused(old, needed)


def _commit(beside: Path, target: Path) -> None:
    """Rename a finished generation; the second process fails, since the name is taken, so that no formulas are lost."""
    try:
        atomic_files.rename_path(beside, target)
    except OSError as error:
        if not target.exists():
            raise
        found = f"generation {target.name} of {target.parent} is there by now"
        raise MirblabError(f"another process has changed the index: {found}; open it again and repeat") from error
    atomic_files.flush_folder(target.parent)


def _remove_unused(old: Path, needed: dict[str, str]) -> None:
    for path in sorted(old.rglob("*"), reverse=True):
        if path.is_file() and path.relative_to(old.parent).as_posix() not in needed:
            with contextlib.suppress(OSError):
                path.unlink()
    for path in (*old.glob("*/"), old):
        with contextlib.suppress(OSError):
            path.rmdir()


def write_manifest(beside: Path, name: str, before: Generation, after: Generation) -> None:
    """Write the manifest of the generation *name* in the folder *beside*, after all its files are flushed to disk."""
    write_array(beside / LENGTHS, after.lengths)
    if after.order is not None:
        write_array(beside / ORDER, after.order)
    files = {key: value for key, value in before.files.items() if key.rpartition("/")[0] in after.homes}
    for path in sorted(path for path in beside.rglob("*") if path.is_file()):
        atomic_files.flush_file(path)
        files[f"{name}/{path.relative_to(beside).as_posix()}"] = file_digest(path)
    manifest = {
        "format": FORMAT,
        "code": after.code,
        "weights": after.weights,
        "formulas": sum(part.n for part in after.segments),
        "postings": sum(len(part.postings) for part in after.segments),
        "segments": [{"home": home, "n": part.n} for home, part in zip(after.homes, after.segments, strict=True)],
        "files": files,
    }
    atomic_files.write_text(beside / _MANIFEST, json.dumps(manifest | {"check": manifest_checksum(manifest)}, indent=1))
    for folder in (beside, *(path for path in beside.iterdir() if path.is_dir())):
        atomic_files.flush_folder(folder)


def last_generation(folder: Path) -> int:
    """Return the number of the current generation of the index in *folder*, 0 when there is none."""
    found = (path.parent.name for path in folder.glob(f"[0-9]*/{_MANIFEST}"))
    return max((int(name) for name in found if name.isdecimal() and len(name) >= _DIGITS), default=0)


def read_format(folder: Path) -> tuple[str, str]:
    """Return format and code of the index in *folder*, "" where its manifest has none; nothing is checked."""
    try:
        found = json.loads((folder / _folder_name(last_generation(folder)) / _MANIFEST).read_text("utf-8"))
        return str(found.get("format", "")), str(found.get("code", ""))
    except (OSError, ValueError, AttributeError, RecursionError):
        return "", ""
