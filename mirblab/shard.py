"""shard: a file of vectors in the safetensors format with a checksum for every row."""

from __future__ import annotations

import json
import math
import mmap
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import xxhash

from mirblab import paths
from mirblab.errors import MirblabError

FORMAT = "mirblab-vectors-3"
SUFFIX = ".safetensors"
BLOCK_BYTES = 1 << 19  # rows handled at a time: small enough to stay in a core's own cache while they are checked
READ_BYTES = 1 << 25  # a larger shard is mapped, so that its vectors are never in memory twice
_LONGEST_HEADER = 4096
_BYTES = {"U8": 1, "F16": 2, "F32": 4, "U64": 8, "I64": 8}


class Damaged(MirblabError):
    """A file is not what a shard of this space must be, byte for byte."""


@lru_cache(maxsize=8)
def _weights(n: int) -> np.ndarray:
    """Return *n* fixed odd numbers, uint64: odd ones can be inverted modulo 2**64, so no single change cancels."""
    z = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # the splitmix64 generator
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) | np.uint64(1)


def row_checks(keys: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return one checksum per row, uint64 (n,), of keys uint64 (n, 2) and vectors float32 (n, d).

    The row is read as 64-bit words (32-bit ones when d is odd), each folded onto itself, times fixed odd weights,
    summed modulo 2**64. A change within one word is always seen; others escape with a chance below 2**-32.
    Without the fold, two flipped signs in the upper halves of two words would cancel each other.
    """
    even = vectors.shape[1] % 2 == 0
    words = vectors.view(np.uint64) if even else vectors.view(np.uint32).astype(np.uint64)
    folded = words >> np.uint64(32)
    folded ^= words
    weights = _weights(words.shape[1] + 2)
    # einsum, not @: the product of whole numbers is not vectorised there and takes half as long again
    return np.einsum("ij,j->i", folded, weights[2:]) + np.einsum("ij,j->i", keys, weights[:2])


def _digest(keys: np.ndarray, checks: np.ndarray, whole: str) -> str:
    state = xxhash.xxh3_128(np.ascontiguousarray(checks).data)
    state.update(np.ascontiguousarray(keys).data)
    state.update(whole.encode())
    return state.hexdigest()


def _whole(vectors: np.ndarray) -> str:
    """Return one checksum over all vectors: far cheaper than all rows' when most rows are wanted."""
    return xxhash.xxh3_128_hexdigest(np.ascontiguousarray(vectors).data)


def _header(n: int, d: int, space: str, whole: str, digest: str) -> bytes:
    """Return the head of a shard of *n* rows: the only bytes that may stand there, so that any change is seen."""
    about = {"format": FORMAT, "space": space, "vectors": whole, "digest": digest}
    return safetensors_head(about, [("checks", "U64", [n]), ("vectors", "F32", [n, d]), ("keys", "U8", [n, 16])])


def safetensors_head(about: dict[str, str], parts: list[tuple[str, str, list[int]]]) -> bytes:
    """Return the head of a safetensors file of *parts*, name, type and shape, that follow each other without gaps."""
    found: dict[str, object] = {"__metadata__": about}
    start = 0
    for name, dtype, shape in parts:
        end = start + math.prod(shape) * _BYTES[dtype]
        found[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
        start = end
    text = json.dumps(found, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def write(path: Path, keys: np.ndarray, vectors: np.ndarray, space: str) -> None:
    """Write keys uint64 (n, 2) and vectors float32 (n, d) as one shard: whole, flushed to disk, or not at all."""
    checks, whole = row_checks(keys, vectors), _whole(vectors)
    with paths.write_atomically(path, vectors.nbytes) as beside, paths.open_to_write(beside) as file:
        file.write(_header(*vectors.shape, space, whole, _digest(keys, checks, whole)))
        for part in (checks, vectors, keys):
            file.write(np.ascontiguousarray(part).data)


@dataclass(eq=False)
class Shard:
    """One shard: keys uint64 (n, 2) and checks uint64 (n,) are in memory, the vectors float32 (n, d) in the file.

    The file is mapped only while rows are read: a mapping holds a file descriptor, and a cache may have more shards
    than a process may have files.
    """

    path: Path
    keys: np.ndarray
    checks: np.ndarray
    dimensions: int
    offset: int
    whole: str
    stamp: tuple[int, int]

    def gather(self, rows: np.ndarray, positions: np.ndarray, out: np.ndarray) -> bool:
        """Copy vectors[rows] to out[positions]; return False as soon as something differs from its checksum.

        Where many of the rows are wanted, the vectors are checked as a whole, else row by row.
        """
        one_by_one = 4 * len(rows) < len(self.keys)
        is_mapped = one_by_one or 4 * self.dimensions * len(self.keys) > READ_BYTES
        if is_mapped:  # from front to back, since its pages may not be in memory yet
            ahead = np.argsort(rows)
            rows, positions = rows[ahead], positions[ahead]
        vectors = self._map() if is_mapped else self._load()
        if vectors is None or not (one_by_one or _whole(vectors) == self.whole):
            return False
        step = self._rows_per_block()
        block = np.empty((min(step, len(rows)), self.dimensions), np.float32)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            taken = block[: len(some)]
            np.take(vectors, some, axis=0, out=taken, mode="clip")  # "clip" writes straight into `taken`
            if one_by_one and (row_checks(self.keys[some], taken) != self.checks[some]).any():
                return False
            out[positions[start : start + step]] = taken
        return True

    def intact(self) -> bool:
        """Return whether every row agrees with its checksum."""
        vectors = self._map()
        if vectors is None:
            return False
        starts = range(0, len(self.keys), self._rows_per_block())
        cuts = (slice(start, start + starts.step) for start in starts)
        # copied, since the words of a row need not be aligned in the file
        return all((row_checks(self.keys[cut], vectors[cut].copy()) == self.checks[cut]).all() for cut in cuts)

    def _rows_per_block(self) -> int:
        return max(1, BLOCK_BYTES // (4 * self.dimensions))

    def _load(self) -> np.ndarray | None:
        """Return the vectors read into memory, or None when the file is cut: faster than a map, page by page."""
        vectors = np.empty((len(self.keys), self.dimensions), np.float32)
        try:
            with open(self.path, "rb", buffering=0) as file:
                file.seek(self.offset)
                return vectors if file.readinto(vectors.data.cast("B")) == vectors.nbytes else None
        except FileNotFoundError:
            return None

    def _map(self) -> np.ndarray | None:
        """Return the vectors as a memory map, or None when the file is not the one that was opened."""
        return mapped(self.path, np.float32, (len(self.keys), self.dimensions), self.offset)


def mapped(path: Path, dtype: type, shape: tuple[int, int], offset: int) -> np.ndarray | None:
    """Return the rows of a file as a memory map, or None when they are not there: it was removed, emptied or cut."""
    try:
        with open(path, "rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(memory, dtype, math.prod(shape), offset).reshape(shape)
    except (FileNotFoundError, ValueError):
        return None


def stamp(entry: os.DirEntry[str] | Path) -> tuple[int, int]:
    """Return size and time of change, by which a file that was altered after it was opened is noticed."""
    facts = entry.stat()
    return facts.st_size, facts.st_mtime_ns


def open_shard(path: Path, d: int, space: str) -> Shard:
    """Return the shard at *path*, memory-mapped; raise Damaged when its head, keys or checksums are not intact.

    The vectors themselves are checked row by row when they are gathered.
    """
    seen = stamp(path)
    with open(path, "rb") as file:
        head = _read_header(file.read(_LONGEST_HEADER + 8))
        n, whole = _facts(head, d)
        size = len(head) + n * (8 + 4 * d + 16)
        if seen[0] != size:
            raise Damaged(f"{seen[0]:,} bytes long instead of {size:,}")
        file.seek(len(head))
        checks = np.frombuffer(file.read(8 * n), np.uint64)
        file.seek(size - 16 * n)
        keys = np.frombuffer(file.read(16 * n), np.uint64).reshape(-1, 2)
    if _header(n, d, space, whole, _digest(keys, checks, whole)) != head:
        raise Damaged("its header, keys or checksums were altered, or it belongs to another space")
    return Shard(path, keys, checks, d, len(head) + 8 * n, whole, seen)


def count(path: Path) -> int:
    """Return of how many texts a shard of vectors or of token vectors, of any version, speaks; 0: it cannot be read."""
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            return int(json.loads(file.read(min(length, _LONGEST_HEADER)))["checks"]["shape"][0])
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
        return 0


def _read_header(start: bytes) -> bytes:
    length = int.from_bytes(start[:8], "little")
    if len(start) < 8 or not 0 < length <= min(_LONGEST_HEADER, len(start) - 8):
        raise Damaged("it does not begin with the header of a shard")
    return start[: 8 + length]


def _facts(head: bytes, d: int) -> tuple[int, str]:
    """Return the number of rows and the checksum of all vectors that a header states."""
    try:
        found = json.loads(head[8:])
        (n, width), whole = found["vectors"]["shape"], found["__metadata__"]["vectors"]
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged("its header cannot be read") from error
    if not isinstance(n, int) or n < 1 or width != d or not isinstance(whole, str):
        raise Damaged(f"its vectors have shape [{n}, {width}] instead of [n, {d}]")
    return n, whole
