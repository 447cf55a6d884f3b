"""segments: postings of tokens as plain arrays, in memory or mapped from files, and how several become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash

from mirblab import paths
from mirblab.errors import MirblabError

ARRAYS = {"keys": np.uint64, "starts": np.uint32, "postings": np.uint32}
COUNT_BITS, COUNT_MASK = np.uint32(8), np.uint32(255)
MOST_FORMULAS, MOST_POSTINGS = 1 << 24, (1 << 32) - 1  # in one segment
_READ = 1 << 20  # bytes at a time; larger arrays are mapped


@dataclass(frozen=True, slots=True)
class Segment:
    """Which of *n* formulas has which token how often.

    `keys` uint64 (n_keys,), ascending; `starts` uint32 (n_keys + 1,): the postings of key i are those from `starts[i]`
    to `starts[i + 1]`. A posting, uint32, is the position of a formula, in the upper 24 bits, and how often it has
    the token, in the lower 8; those of a key ascend.
    """

    n: int
    keys: np.ndarray
    starts: np.ndarray
    postings: np.ndarray

    def find(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where the postings of each of *keys* begin and end; the same place twice for one that is not here."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        is_here = (self.keys[place] == keys).astype(np.int64)
        return is_here * self.starts[place], is_here * self.starts[place + 1]

    def sizes(self) -> np.ndarray:
        """Return in how many formulas each token is, int64 (n_keys,)."""
        return np.diff(self.starts.astype(np.int64))


def segment(n: int, counted: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]) -> Segment:
    """Return the segment of what `tokens.counted` returned for *n* formulas."""
    keys, documents, trees, counts = counted
    return Segment(n, keys, _starts(documents), trees.astype(np.uint32) << COUNT_BITS | counts)


def merge(parts: Sequence[Segment], folder: Path | None = None) -> Segment:
    """Return one segment of the formulas of all *parts*, in that order, in *folder* or (None) in memory.

    It is the same, byte for byte, however the formulas were divided into parts. MirblabError when they are more than
    a segment holds.
    """
    n = sum(part.n for part in parts)
    if n > MOST_FORMULAS:
        raise MirblabError(f"one segment holds {MOST_FORMULAS:,} formulas at most, found {n:,}; leave them unmerged")
    keys = np.unique(np.concatenate([part.keys for part in parts])) if parts else np.empty(0, np.uint64)
    places = [np.searchsorted(keys, part.keys) for part in parts]
    sizes = np.zeros(len(keys), dtype=np.int64)
    for part, place in zip(parts, places, strict=True):
        sizes[place] += part.sizes()
    starts = _starts(sizes)
    postings = _room(folder, int(starts[-1]))
    cursor, first = starts[:-1].astype(np.int64), 0
    for part, place in zip(parts, places, strict=True):
        own = part.sizes()
        to = np.repeat(cursor[place] - part.starts[:-1], own) + np.arange(len(part.postings))
        postings[to] = part.postings + (np.uint32(first) << COUNT_BITS)
        cursor[place] += own
        first += part.n
    if folder is not None:
        for name, array in (("keys", keys), ("starts", starts)):
            write(folder / f"{name}.npy", array)
        if isinstance(postings, np.memmap):
            postings.flush()
    return Segment(n, keys, starts, postings)


def save(part: Segment, folder: Path) -> Segment:
    """Write a segment's arrays into *folder* and return it as it lies there."""
    paths.make_folder(folder)
    for name in ARRAYS:
        write(folder / f"{name}.npy", getattr(part, name))
    return load(part.n, folder)


def load(n: int, folder: Path) -> Segment:
    """Return the segment of *n* formulas in *folder*, mapped; MirblabError when an array is not what it must be."""
    return Segment(n, **{name: array(folder / f"{name}.npy", dtype, 1) for name, dtype in ARRAYS.items()})


def array(path: Path, dtype: type, dimensions: int) -> np.ndarray:
    """Return the array in a file, mapped; MirblabError when it is damaged or of another type or shape."""
    try:
        found = np.load(path, mmap_mode="r" if path.stat().st_size > _READ else None, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise MirblabError(f"{path} cannot be read: {error}; build the index again") from error
    if found.dtype != dtype or found.ndim != dimensions:
        wanted = f"{np.dtype(dtype)} in {dimensions} dimensions"
        raise MirblabError(f"{path} holds {found.dtype} {found.shape}, expected {wanted}; build the index again")
    return found


def write(path: Path, array: np.ndarray) -> None:
    """Write an array in NumPy's format."""
    with paths.open_to_write(path) as file:
        np.save(file, array)


def digest(path: Path) -> str:
    """Return a checksum of a file's bytes; FileNotFoundError when there is none."""
    state = xxhash.xxh3_128()
    with open(path, "rb") as file:
        while block := file.read(_READ):
            state.update(block)
    return state.hexdigest()


def _starts(sizes: np.ndarray) -> np.ndarray:
    """Return where the postings of each key begin, and their end; MirblabError when there are too many to count."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    if starts[-1] > MOST_POSTINGS:
        raise MirblabError(
            f"one segment holds {MOST_POSTINGS:,} postings at most, found {starts[-1]:,}; leave them unmerged"
        )
    return starts.astype(np.uint32)


def _room(folder: Path | None, size: int) -> np.ndarray:
    """Return room for postings, in a file of *folder* where there is one."""
    path = folder and folder / "postings.npy"
    if path is None or size == 0:  # an empty file cannot be mapped
        empty = np.empty(size, np.uint32)
        if path is not None:
            write(path, empty)
        return empty
    room = np.lib.format.open_memmap(path, "w+", np.uint32, (size,))
    paths.reserve(path)
    return room
