"""late_store: token vectors under the hash of all that determines them, each text's made once."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mirblab import late_shard, shard, spaces
from mirblab.cache import VectorStore, text_keys
from mirblab.errors import MirblabError
from mirblab.late_shard import TokenShard


@dataclass(frozen=True, eq=False)
class Stored:
    """The token vectors of texts in a store, read block by block from memory maps; see `late.TokenRows`.

    Text i is number `places[i]` of shard `numbers[i]`.
    """

    shards: Sequence[TokenShard | Held]
    numbers: np.ndarray
    places: np.ndarray
    lengths: np.ndarray

    def including(self, held: Held, rows: np.ndarray, places: np.ndarray) -> Stored:
        """Return the same with the texts at *rows* taken from *places* of what is *held* in memory."""
        numbers, all_places, lengths = self.numbers.copy(), self.places.copy(), self.lengths.copy()
        numbers[rows], all_places[rows] = len(self.shards), places
        lengths[rows] = np.diff(held.ends, prepend=0)[places]
        return Stored([*self.shards, held], numbers, all_places, lengths)

    @property
    def dimensions(self) -> int:
        """Return the length of a token vector; 0 when no text has any."""
        return max((one.width for one in self.shards), default=0)

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return the token vectors of the texts from *start* to *stop*, float32 (n_tokens, d), one after the other."""
        lengths, numbers = self.lengths[start:stop], self.numbers[start:stop]
        ends = np.cumsum(lengths)
        out = np.empty((int(lengths.sum()), self.dimensions), np.float32)
        for number in np.unique(numbers[lengths > 0]).tolist():
            one = self.shards[number]
            rows = one.rows()
            if rows is None:
                raise MirblabError(f"{one.path} was removed while it was read; run it again")
            for place in np.flatnonzero((numbers == number) & (lengths > 0)).tolist():
                last = one.ends[self.places[start + place]]
                out[ends[place] - lengths[place] : ends[place]] = rows[last - lengths[place] : last]
        return out


@dataclass(frozen=True, eq=False)
class Held:
    """Token vectors in memory, for texts whose own could not be stored; a `TokenShard` to `Stored`."""

    path: Path
    ends: np.ndarray
    matrix: np.ndarray

    @property
    def width(self) -> int:
        """Return the length of a token vector."""
        return self.matrix.shape[1]

    def rows(self) -> np.ndarray:
        """Return all rows, float16 (n_rows, width)."""
        return self.matrix

    @classmethod
    def of(cls, matrices: Sequence[np.ndarray], path: Path) -> Held:
        """Return matrices (n_tokens, d) as they would have been stored at *path*."""
        width = max(one.shape[1] for one in matrices)
        rows = np.concatenate([np.empty((0, width)), *(one for one in matrices if len(one))])
        return cls(path, np.cumsum([len(one) for one in matrices], dtype=np.int64), rows.astype(np.float16))


class TokenStore(VectorStore):
    """The token vectors of one *space*, float16, with a VectorStore's files and guarantees.

    Any number of processes may read and append at once; a kill loses at most the unfinished shard; a damaged shard
    is set aside, and its texts are missing unless another one has them.
    """

    def __init__(self, folder: str | Path, space: Mapping[str, Any]) -> None:
        super().__init__(folder, {**space, "tokens": late_shard.FORMAT})
        self.path = self.path.with_name(f"{self.path.name}-tokens")  # no VectorStore takes it for its own

    def read(self, texts: Sequence[str]) -> tuple[Stored, np.ndarray]:  # type: ignore[override]
        """Return the token vectors in the order of *texts*, and the positions that are missing, int64.

        Missing texts have no rows. What is returned was compared with its checksums.
        """
        while True:
            index = self._refresh()
            rows = index.find(text_keys(texts))
            numbers = index.shard_of[rows].astype(np.int64)  # the last one, for those that are missing, is no shard
            places = rows - index.starts[np.minimum(numbers, len(index.shards))]
            asked = {number: numbers == number for number in np.unique(numbers[rows >= 0]).tolist()}
            shards = index.shards
            damaged = [shards[number] for number, mine in asked.items() if not shards[number].agree(places[mine])]
            if not damaged:
                lengths = np.zeros(len(texts), np.int64)
                for number, mine in asked.items():
                    lengths[mine] = np.diff(shards[number].ends, prepend=0)[places[mine]]
                return Stored(shards, numbers, places, lengths), np.flatnonzero(rows < 0)
            for one in damaged:
                self._set_aside(one.path, "a text differs from its checksum")

    def append(self, texts: Sequence[str], tokens: Sequence[np.ndarray]) -> None:  # type: ignore[override]
        """Store one finite matrix (n_tokens, d) per text, as float16; when this returns, they survive the process."""
        keys = text_keys(texts)
        if len(tokens) != len(keys):
            raise MirblabError(f"{len(keys)} texts need as many matrices of token vectors; got {len(tokens)}")
        if not len(keys):
            return
        width = max(one.shape[1] for one in tokens)
        halves = [np.asarray(one, np.float16).reshape(len(one), width if len(one) == 0 else -1) for one in tokens]
        for place, one in enumerate(halves):
            if one.shape[1] != width or not np.isfinite(one).all():
                raise MirblabError(
                    f"the token vectors of text {place} have the shape {one.shape}, where others have {width} columns, "
                    "or are not finite; nothing was stored"
                )
        self._describe()
        # the time comes first, so that names sort by age
        name = f"{time.time_ns():019d}-{uuid.uuid4().hex}{shard.SUFFIX}"
        late_shard.write(self.path / name, keys, halves, self.digest)

    def _shard(self, path: Path) -> TokenShard:  # type: ignore[override]
        return late_shard.open_shard(path, self.digest)


def verify(folder: Path) -> list[str]:
    """Check every text of every space in *folder*, as `spaces.verify` does."""
    return spaces.verify(folder, TokenStore)


def older(folder: Path) -> list[tuple[Path, int]]:
    """Return the spaces in *folder* that an older version has made, each with the number of its texts."""
    return spaces.older(folder)
