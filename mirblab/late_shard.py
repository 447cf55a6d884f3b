"""late_shard: a file of token vectors, as many rows a text as it has tokens, with a checksum for every text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash

from mirblab import paths
from mirblab.shard import Damaged, mapped, safetensors_head, stamp

FORMAT = "mirblab-tokens-2"
_LONGEST_HEADER = 4096


@dataclass(eq=False)
class TokenShard:
    """One shard: keys uint64 (n, 2), checks uint64 (n,) and ends int64 (n,) are in memory, the rows in the file.

    The rows of text i are those from `ends[i - 1]` to `ends[i]`, float16 (n_tokens, `width`).
    """

    path: Path
    keys: np.ndarray
    checks: np.ndarray
    ends: np.ndarray
    width: int
    offset: int
    stamp: tuple[int, int]

    def rows(self) -> np.ndarray | None:
        """Return all rows as a memory map, float16 (n_rows, width), or None when the file is gone or was changed.

        Mapped anew each time: a mapping holds a file descriptor, and a store may have more shards than a process
        may have files.
        """
        n = int(self.ends[-1])
        if not n * self.width:
            return np.empty((n, self.width), np.float16)
        return mapped(self.path, np.float16, (n, self.width), self.offset)

    def agree(self, texts: np.ndarray) -> bool:
        """Return whether the rows of these texts, by number in the shard, agree with their checksums."""
        rows = self.rows()
        if rows is None:
            return False
        starts = np.concatenate([[0], self.ends[:-1]])
        return all(
            _check(self.keys[text], rows[starts[text] : self.ends[text]]) == self.checks[text]
            for text in np.unique(texts).tolist()
        )

    def intact(self) -> bool:
        """Return whether every text agrees with its checksum."""
        return self.agree(np.arange(len(self.keys)))


def write(path: Path, keys: np.ndarray, matrices: Sequence[np.ndarray], space: str) -> None:
    """Write keys uint64 (n, 2) and as many float16 matrices of one width as a shard: whole, on disk, or not at all."""
    rows = np.concatenate(matrices)
    ends = np.cumsum([len(one) for one in matrices], dtype=np.int64)
    checks = np.array([_check(key, one) for key, one in zip(keys, matrices, strict=True)], dtype=np.uint64)
    with paths.write_atomically(path, rows.nbytes) as beside, paths.open_to_write(beside) as file:
        file.write(_header(*rows.shape, keys, checks, ends, space))
        for part in (checks, ends, keys, rows):
            file.write(np.ascontiguousarray(part).data)


def open_shard(path: Path, space: str) -> TokenShard:
    """Return the shard at *path*; raise Damaged when its head, keys, ends or checksums are not intact.

    The rows themselves are checked text by text when they are asked for.
    """
    seen = stamp(path)
    with open(path, "rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        head = start + file.read(min(length, _LONGEST_HEADER))
        n_rows, width, n = _facts(head, length)
        size = len(head) + 32 * n + 2 * n_rows * width
        if seen[0] != size:
            raise Damaged(f"{seen[0]:,} bytes long instead of {size:,}")
        checks, ends = np.frombuffer(file.read(8 * n), np.uint64), np.frombuffer(file.read(8 * n), np.int64)
        keys = np.frombuffer(file.read(16 * n), np.uint64).reshape(-1, 2)
    if _header(n_rows, width, keys, checks, ends, space) != head:
        raise Damaged("its header, keys, ends or checksums were altered, or it belongs to another space")
    return TokenShard(path, keys, checks, ends, width, len(head) + 32 * n, seen)


def _check(key: np.ndarray, rows: np.ndarray) -> int:
    """Return the checksum of one text's rows, bound to the text's key."""
    return xxhash.xxh3_64_intdigest(np.ascontiguousarray(rows).data, int(key[0] ^ key[1]))


def _header(n_rows: int, width: int, keys: np.ndarray, checks: np.ndarray, ends: np.ndarray, space: str) -> bytes:
    """Return the head of a shard, in the safetensors format: the only bytes that may stand there."""
    n = len(keys)
    state = xxhash.xxh3_128(space.encode())
    for part in (checks, ends, keys):
        state.update(np.ascontiguousarray(part).data)
    about = {"format": FORMAT, "space": space, "digest": state.hexdigest()}
    parts = [("checks", "U64", [n]), ("ends", "I64", [n]), ("keys", "U8", [n, 16]), ("rows", "F16", [n_rows, width])]
    return safetensors_head(about, parts)


def _facts(head: bytes, length: int) -> tuple[int, int, int]:
    """Return the numbers of rows, of columns and of texts that a header states."""
    if not 0 < length <= _LONGEST_HEADER or len(head) != 8 + length:
        raise Damaged("it does not begin with the header of a shard")
    try:
        found = json.loads(head[8:])
        (n_rows, width), (n,) = found["rows"]["shape"], found["checks"]["shape"]
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged("its header cannot be read") from error
    if not all(isinstance(number, int) for number in (n_rows, width, n)) or n < 1 or min(n_rows, width) < 0:
        raise Damaged(f"its rows have the shape [{n_rows}, {width}] for {n} texts")
    return n_rows, width, n
