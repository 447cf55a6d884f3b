"""cache: the store of vectors."""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import methodcaller
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

import numpy as np
import xxhash

from mirblab.core import atomic_files, paths, stored_files
from mirblab.core.errors import MirblabError
from mirblab.core.mapped_files import OpenFilesError, map_file

FORMAT = "mirblab-vectors-3"
SUFFIX = ".safetensors"
BLOCK_BYTES = 1 << 19  # rows handled at a time: small enough to stay in a core's own cache while they are checked
READ_BYTES = 1 << 25  # a larger shard is mapped, so that its vectors are never in memory twice
_LONGEST_HEADER = 4096
_BYTES = {"U8": 1, "I16": 2, "F16": 2, "F32": 4, "U64": 8, "I64": 8}


class DamagedShard(MirblabError):
    """A file is not, byte for byte, what a shard of this space must be."""


@lru_cache(maxsize=8)
def _odd_weights(n: int) -> np.ndarray:
    """Return *n* fixed odd numbers, uint64: they are invertible modulo 2**64, so that no single change cancels."""
    z = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # the splitmix64 generator
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) | np.uint64(1)


def row_checks(keys: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return one checksum per row, uint64 (n,), of keys uint64 (n, 2) and vectors float32 (n, d).

    The row is read as 64-bit words (32-bit ones when d is odd), each folded onto itself, times fixed odd weights,
    summed modulo 2**64. A change within one word is always detected, others with a probability above 1 - 2**-32.
    Without the fold, two flipped signs in the upper halves of two words would cancel.
    """
    even = vectors.shape[1] % 2 == 0
    words = vectors.view(np.uint64) if even else vectors.view(np.uint32).astype(np.uint64)
    folded = words >> np.uint64(32)
    folded ^= words
    weights = _odd_weights(words.shape[1] + 2)
    # einsum, not @: the product of whole numbers is not vectorised there and takes half as long again
    return np.einsum("ij,j->i", folded, weights[2:]) + np.einsum("ij,j->i", keys, weights[:2])


def _shard_digest(keys: np.ndarray, checks: np.ndarray, whole: str) -> str:
    state = xxhash.xxh3_128(np.ascontiguousarray(checks).data)
    state.update(np.ascontiguousarray(keys).data)
    state.update(whole.encode())
    return state.hexdigest()


def _vectors_digest(vectors: np.ndarray) -> str:
    """Return one checksum over all vectors, which is far cheaper than those of all rows when most rows are wanted."""
    return xxhash.xxh3_128_hexdigest(np.ascontiguousarray(vectors).data)


def _header(n: int, d: int, space: str, whole: str, digest: str) -> bytes:
    """Return the head of a shard of *n* rows: no other bytes may stand there, so that any change is detected."""
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


def write_shard(path: Path, keys: np.ndarray, vectors: np.ndarray, space: str) -> None:
    """Write keys uint64 (n, 2) and vectors float32 (n, d) as one shard: whole, flushed to disk, or not at all."""
    checks, whole = row_checks(keys, vectors), _vectors_digest(vectors)
    n, dimensions = vectors.shape
    head = _header(n, dimensions, space, whole, _shard_digest(keys, checks, whole))
    write_arrays(path, head, (checks, vectors, keys))


def write_arrays(path: Path, head: bytes, arrays: Sequence[np.ndarray]) -> None:
    """Write *head* and *arrays* behind each other as one file: whole, flushed to disk, or not at all."""
    with atomic_files.write_atomically(path, sum(array.nbytes for array in arrays)) as beside:
        with atomic_files.open_to_write(beside) as file:
            file.write(head)
            for array in arrays:
                file.write(np.ascontiguousarray(array).data)


@dataclass(eq=False)
class ShardFile:
    """One shard: keys uint64 (n, 2) and checks uint64 (n,) are in memory, vectors are mapped while they are read."""

    path: Path
    keys: np.ndarray
    checks: np.ndarray
    offset: int
    stamp: tuple[int, int]

    def intact(self) -> bool:
        """Return whether every text agrees with its checksum."""
        raise NotImplementedError


AnyShard = TypeVar("AnyShard", bound=ShardFile)


@dataclass(eq=False)
class Shard(ShardFile):
    """One shard of vectors, float32 (n, d); `whole` is the checksum of all of them."""

    dimensions: int
    whole: str

    def gather(self, rows: np.ndarray, positions: np.ndarray, out: np.ndarray) -> bool:
        """Copy vectors[rows] to out[positions]; return False as soon as something differs from its checksum."""
        one_by_one = 4 * len(rows) < len(self.keys)
        is_mapped = one_by_one or 4 * self.dimensions * len(self.keys) > READ_BYTES
        if is_mapped:  # from front to back, since its pages may not be in memory yet
            ahead = np.argsort(rows)
            rows, positions = rows[ahead], positions[ahead]
        vectors = self._map() if is_mapped else self._load()
        if vectors is None or not (one_by_one or _vectors_digest(vectors) == self.whole):
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
        """Return the vectors in memory, or None when the file is cut; faster than a map, which is read page by page."""
        vectors = np.empty((len(self.keys), self.dimensions), np.float32)
        try:
            with open(self.path, "rb", buffering=0) as file:
                file.seek(self.offset)
                return vectors if file.readinto(vectors.data.cast("B")) == vectors.nbytes else None
        except FileNotFoundError:
            return None

    def _map(self) -> np.ndarray | None:
        return map_rows(self.path, np.float32, (len(self.keys), self.dimensions), self.offset)


def map_rows(path: Path, dtype: type, shape: tuple[int, int], offset: int) -> np.ndarray | None:
    """Return the rows of a file as a memory map, or None when the file was removed, emptied or cut."""
    try:
        memory = map_file(path)
        return None if memory is None else np.frombuffer(memory, dtype, math.prod(shape), offset).reshape(shape)
    except OpenFilesError:
        raise
    except (FileNotFoundError, ValueError):
        return None


def file_stamp(entry: os.DirEntry[str] | Path) -> tuple[int, int]:
    """Return size and time of change, to detect that a file was changed after it was opened."""
    facts = entry.stat()
    return facts.st_size, facts.st_mtime_ns


def open_shard(path: Path, d: int, space: str) -> Shard:
    """Return the shard at *path*, its head, keys and checksums checked (DamagedShard), its rows not yet."""
    seen = file_stamp(path)
    with open(path, "rb") as file:
        head, fields = read_head(file)
        n, whole = _read_fields(fields, d)
        size = len(head) + n * (8 + 4 * d + 16)
        if seen[0] != size:
            raise DamagedShard(f"{seen[0]:,} bytes long instead of {size:,}")
        file.seek(len(head))
        checks = np.frombuffer(file.read(8 * n), np.uint64)
        file.seek(size - 16 * n)
        keys = np.frombuffer(file.read(16 * n), np.uint64).reshape(-1, 2)
    if _header(n, d, space, whole, _shard_digest(keys, checks, whole)) != head:
        raise DamagedShard("its header, keys or checksums were altered, or it belongs to another space")
    return Shard(path, keys, checks, len(head) + 8 * n, seen, d, whole)


def count_texts(path: Path) -> int:
    """Return the number of texts in a shard of vectors or of token vectors, of any version; 0 for an unreadable one."""
    try:
        with open(path, "rb") as file:
            return int(read_head(file)[1]["checks"]["shape"][0])
    except (OSError, DamagedShard, ValueError, KeyError, TypeError, IndexError):
        return 0


def read_head(file: BinaryIO | mmap.mmap) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of the head with which a shard begins, and its fields; raise DamagedShard when it has none."""
    start = file.read(8)
    length = int.from_bytes(start, "little")
    head = start + file.read(min(length, _LONGEST_HEADER))
    if not 0 < length <= _LONGEST_HEADER or len(head) != 8 + length:
        raise DamagedShard("it does not begin with the header of a shard")
    try:
        return head, json.loads(head[8:])
    except (ValueError, RecursionError) as error:
        raise DamagedShard("its header cannot be read") from error


def _read_fields(fields: dict[str, Any], d: int) -> tuple[int, str]:
    try:
        (n, width), whole = fields["vectors"]["shape"], fields["__metadata__"]["vectors"]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedShard("its header cannot be read") from error
    if not isinstance(n, int) or n < 1 or width != d or not isinstance(whole, str):
        raise DamagedShard(f"its vectors have shape [{n}, {width}] instead of [n, {d}]")
    return n, whole


_PIECE = 1 << 16  # rows that one thread gathers at a time from one shard


def _sorted_places(numbers: np.ndarray) -> np.ndarray:
    """Return the positions that stably sort numbers below 2**32, oldest shard first, in two radix passes of numpy."""
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    upper = (numbers >> np.uint64(16)).astype(np.uint16)
    return order[np.argsort(upper[order], kind="stable")] if upper.any() else order


class KeyIndex(Generic[AnyShard]):
    """The keys of all shards in buckets of their first bits, to look up many texts at once."""

    def __init__(self, shards: Sequence[AnyShard]) -> None:
        self.shards = shards
        sizes = [len(one.keys) for one in shards]
        self.starts = np.cumsum([0, *sizes])
        numbers = np.arange(len(shards) + 1, dtype=np.min_scalar_type(len(shards)))
        self.shard_of = np.repeat(numbers, [*sizes, 1])
        keys = np.concatenate([np.empty((0, 2), np.uint64), *(one.keys for one in shards)])
        bits = min(max(len(keys), 1).bit_length(), 32)
        self.shift = np.uint64(64 - bits)
        buckets = keys[:, 0] >> self.shift
        self.rows = _sorted_places(buckets)
        self.high, self.low = keys[self.rows, 0], keys[self.rows, 1]
        self.ends = np.cumsum(np.bincount(buckets.astype(np.intp), minlength=1 << bits))

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the row of each key over all shards, int64 (n,), -1 where there is none."""
        rows = np.full(len(keys), -1)
        high, low = keys[:, 0].copy(), keys[:, 1].copy()
        buckets = (high >> self.shift).astype(np.intp)
        end = self.ends[buckets]
        at = np.where(buckets > 0, self.ends[buckets - 1], 0)
        left = np.flatnonzero(at < end)
        while len(left):  # a bucket holds one key or two
            here = at[left]
            is_hit = (self.high[here] == high[left]) & (self.low[here] == low[left])
            rows[left[is_hit]] = self.rows[here[is_hit]]
            left = left[~is_hit]
            at[left] += 1
            left = left[at[left] < end[left]]
        return rows


def _fill(index: KeyIndex[Shard], keys: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, list[Shard]]:
    """Copy each key's vector to its row of *out*; return the missing rows and the damaged shards."""
    rows = index.find(keys)
    numbers = index.shard_of[rows]  # the last entry stands for rows that are missing, which are -1
    order = np.argsort(numbers, kind="stable")  # small whole numbers are sorted by radix
    bounds = np.cumsum([0, *np.bincount(numbers, minlength=len(index.shards) + 1)])
    pieces = [
        (index.shards[number], index.starts[number], order[start : min(start + _PIECE, bounds[number + 1])])
        for number in range(len(index.shards))
        for start in range(bounds[number], bounds[number + 1], _PIECE)
    ]
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        right = pool.map(lambda piece: piece[0].gather(rows[piece[2]] - piece[1], piece[2], out), pieces)
        damaged = {one.path: one for (one, _, _), is_right in zip(pieces, right, strict=True) if not is_right}
    return order[bounds[-2] :], list(damaged.values())


SPACE = "space.json"
_BLAKE2B, _digest_of = partial(hashlib.blake2b, digest_size=16), methodcaller("digest")


def text_keys(texts: Sequence[str]) -> np.ndarray:
    """Return the 128-bit key of each text, uint64 (n, 2): BLAKE2b (RFC 7693) of its UTF-8, lone surrogates included.

    Finding two texts with one key takes 2**64 hashes, and a text for a given key 2**128. xxh3, which was used before
    and is four times as fast, has collisions that can be constructed.
    """
    try:
        digests = b"".join(map(_digest_of, map(_BLAKE2B, map(str.encode, texts))))  # loops in C
    except UnicodeEncodeError:
        digests = b"".join(_BLAKE2B(text.encode("utf-8", "surrogatepass")).digest() for text in texts)
    except TypeError:
        check_texts(texts)
        raise
    return np.frombuffer(digests, np.uint64).reshape(-1, 2)


def check_texts(texts: Sequence[str]) -> None:
    """Raise MirblabError naming the first position that holds no string, or when *texts* is one string."""
    if isinstance(texts, str):
        raise MirblabError("expected a sequence of texts, found one string; write [text]")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise MirblabError(f"text {position} is {type(text).__name__} ({text!r:.40}), not a string")


class ShardStore(Generic[AnyShard]):
    """What is stored for the texts of one *space*: everything that determines a vector except the text.

    A space names at least `dimensions`; it is `<folder>/<model>-<role>-<hash of the space>/`, with `space.json` and
    append-only shards. Any number of processes and machines may read and write at once, without a lock. Of equal texts
    in several shards the oldest is read.
    """

    def __init__(self, folder: str | Path, space: Mapping[str, Any]) -> None:
        if not isinstance(space.get("dimensions"), int):
            raise MirblabError(f"a space needs its number of 'dimensions'; found {', '.join(space) or 'nothing'}")
        self.space = dict(space)
        self.dimensions = int(space["dimensions"])
        self.digest = space_digest(FORMAT, self.space)
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", f"{space.get('model', '')}-{space.get('role', '')}").strip("-.")[-60:]
        self.path = Path(folder) / f"{slug}-{self.digest[:16]}"
        self._refused: set[str] = set()
        self._damaged: list[str] = []
        self._index: KeyIndex[AnyShard] = KeyIndex([])  # replaced as a whole, because readers in other threads use it

    def missing(self, texts: Sequence[str]) -> np.ndarray:
        """Return the positions of the *texts* that are not stored, without reading a vector."""
        return np.flatnonzero(self._refresh().find(text_keys(texts)) < 0)

    def sizes(self) -> dict[str, int]:
        """Return what is stored: texts (counted once per shard), shards, bytes, damaged and partial files."""
        shards = self._refresh().shards
        files = list(os.scandir(self.path)) if self.path.is_dir() else []
        return {
            "texts": sum(len(one.keys) for one in shards),
            "shards": len(shards),
            "bytes": paths.total_size(files),
            "damaged": sum(entry.name.endswith(stored_files.SUFFIX) for entry in files),
            "partial": sum(atomic_files.is_unfinished(entry.path) for entry in files),
        }

    def verify(self) -> list[str]:
        """Check every row of every shard; set damaged ones aside with a warning and return their names."""
        self._damaged.clear()
        for one in self._refresh().shards:
            if not one.intact():
                self._set_aside(one.path, "a row differs from its checksum")
        return sorted(self._damaged)

    def _new_shard(self) -> Path:
        """Return the path of a new shard, in a folder that names the space; names sort by age."""
        self._describe()
        return self.path / f"{time.time_ns():019d}-{uuid.uuid4().hex}{SUFFIX}"

    def _describe(self) -> None:
        readable = json.dumps(self.space, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        target = self.path / SPACE
        if not target.is_file() or target.read_bytes() != readable.encode("utf-8", "backslashreplace"):
            atomic_files.write_bytes(target, readable.encode("utf-8", "backslashreplace"))

    def _refresh(self) -> KeyIndex[AnyShard]:
        index, listed = self._index, _list_shards(self.path, self._refused)
        kept = {one.path.name: one for one in index.shards if listed.get(one.path.name) == one.stamp}
        added = {name: one for name in listed if name not in kept and (one := self._opened(name))}
        if added or len(kept) < len(index.shards):
            shards = kept | added
            index = self._index = KeyIndex([shards[name] for name in sorted(shards)])
        return index

    def _opened(self, name: str) -> AnyShard | None:
        try:
            return self._shard(self.path / name)
        except DamagedShard as reason:
            self._set_aside(self.path / name, str(reason))
        except FileNotFoundError:  # removed by somebody else since it was listed
            pass
        except PermissionError as error:
            self._refused.add(name)
            stored_files.warn_passed_over(
                self.path / name, f"it cannot be read: {error.strerror}", "its texts will be encoded again"
            )
        return None

    def _shard(self, path: Path) -> AnyShard:
        raise NotImplementedError

    def _set_aside(self, path: Path, reason: str) -> None:
        self._damaged.append(path.name)
        if not stored_files.set_aside(path, reason, "its texts will be encoded again"):
            self._refused.add(path.name)


class VectorStore(ShardStore[Shard]):
    """The vectors of one space, float32 (n, dimensions)."""

    def read(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return vectors float32 (n, d) in the order of *texts*, and the positions that are missing, int64.

        Missing rows are NaN. A damaged shard is set aside with a warning; its texts are missing unless stored twice.
        """
        while True:
            index = self._refresh()
            vectors = np.empty((len(texts), self.dimensions), np.float32)
            missing, damaged = _fill(index, text_keys(texts), vectors)
            if not damaged:
                vectors[missing] = np.nan
                return vectors, missing
            for one in damaged:
                self._set_aside(one.path, "a row differs from its checksum")

    def append(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        """Store one finite vector per text; when this returns, they are on disk."""
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        keys = text_keys(texts)
        if vectors.shape != (len(keys), self.dimensions):
            raise MirblabError(f"{len(keys)} texts need vectors ({len(keys)}, {self.dimensions}); got {vectors.shape}")
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise MirblabError(
                f"{len(bad)} vectors are not finite, the first for {texts[bad[0]][:60]!r}; nothing was stored"
            )
        if not len(keys):
            return
        write_shard(self._new_shard(), keys, vectors, self.digest)

    def _shard(self, path: Path) -> Shard:
        return open_shard(path, self.dimensions, self.digest)


def space_digest(made: str, space: Mapping[str, Any]) -> str:
    """Return the digest of a space under a format, 32 hexadecimal digits."""
    canonical = json.dumps([made, space], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def _list_shards(folder: Path, refused: set[str]) -> dict[str, tuple[int, int]]:
    listed = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(SUFFIX) and not name.startswith(".") and name not in refused and entry.is_file():
                    with suppress(FileNotFoundError):  # it was removed after it was listed
                        listed[name] = file_stamp(entry)
    except (FileNotFoundError, NotADirectoryError):  # nothing stored yet, or another process has removed it
        pass
    return listed
