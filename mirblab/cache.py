"""cache: the embedding cache; vectors are stored under the hash of all that determines them, and never made twice."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np

from mirblab import damage, disk, partials, paths, shard
from mirblab.errors import MirblabError
from mirblab.index import Index
from mirblab.shard import Damaged, Shard

SPACE = "space.json"
_BLAKE2B, _digest = partial(hashlib.blake2b, digest_size=16), methodcaller("digest")


def text_keys(texts: Sequence[str]) -> np.ndarray:
    """Return the 128-bit key of each text, uint64 (n, 2): BLAKE2b (RFC 7693) of its UTF-8, lone surrogates included.

    Nobody can make two texts with one key: the best way that is known hashes 2**64 texts, and finding one to go with
    a given text takes 2**128. Hashing is the floor of a warm read: 0.07 s for 100,000 texts of 300 bytes. The keys
    before were xxh3, four times as fast, under which two texts with one key are made by hand.

    >>> text_keys(["x", "y", "x"]).shape, bool((text_keys(["x"]) == text_keys(["x"])).all())
    ((3, 2), True)
    """
    try:
        digests = b"".join(map(_digest, map(_BLAKE2B, map(str.encode, texts))))  # loops in C
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


class VectorStore:
    """The vectors of one *space*: everything that determines a vector except the text.

    A space names at least `dimensions`; it lives in `<folder>/<model>-<role>-<hash of the space>/`, as `space.json`
    and append-only shards. Any number of processes and machines may read and write at once, without a lock.
    Equal texts in several shards do no harm: the oldest is read.
    """

    def __init__(self, folder: str | Path, space: Mapping[str, Any]) -> None:
        if not isinstance(space.get("dimensions"), int):
            raise MirblabError(f"a space needs its number of 'dimensions'; found {', '.join(space) or 'nothing'}")
        self.space = dict(space)
        self.dimensions = int(space["dimensions"])
        self.digest = digest_of(shard.FORMAT, self.space)
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", f"{space.get('model', '')}-{space.get('role', '')}").strip("-.")[-60:]
        self.path = Path(folder) / f"{slug}-{self.digest[:16]}"
        self._refused: set[str] = set()
        self._damaged: list[str] = []
        self._index = Index([])  # replaced as a whole, because readers in other threads use it

    def read(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return vectors float32 (n, d) in the order of *texts*, and the positions that are missing, int64.

        Missing rows are NaN. Every row is compared with its checksum; a damaged shard is set aside with a
        warning, and its texts are missing unless another shard has them.
        """
        while True:
            index = self._refresh()
            vectors = np.empty((len(texts), self.dimensions), np.float32)
            missing, damaged = index.fill(text_keys(texts), vectors)
            if not damaged:
                vectors[missing] = np.nan
                return vectors, missing
            for one in damaged:
                self._set_aside(one.path, "a row differs from its checksum")

    def missing(self, texts: Sequence[str]) -> np.ndarray:
        """Return the positions of the *texts* that are not stored, without reading a vector."""
        return np.flatnonzero(self._refresh().find(text_keys(texts)) < 0)

    def append(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        """Store one finite vector per text; when this returns, they are on disk and survive the process."""
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        keys = text_keys(texts)
        if vectors.shape != (len(keys), self.dimensions):
            raise MirblabError(f"{len(keys)} texts need vectors ({len(keys)}, {self.dimensions}); got {vectors.shape}")
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise MirblabError(f"{len(bad)} vectors are not finite, the first for text {bad[0]}; nothing was stored")
        if not len(keys):
            return
        self._describe()
        # the time comes first, so that names sort by age
        name = f"{time.time_ns():019d}-{uuid.uuid4().hex}{shard.SUFFIX}"
        shard.write(self.path / name, keys, vectors, self.digest)

    def sizes(self) -> dict[str, int]:
        """Return what is stored: texts (counted once per shard), shards, bytes, damaged and partial files."""
        shards = self._refresh().shards
        files = [entry for entry in os.scandir(self.path)] if self.path.is_dir() else []
        return {
            "texts": sum(len(one.keys) for one in shards),
            "shards": len(shards),
            "bytes": sum(entry.stat().st_size for entry in files),
            "damaged": sum(entry.name.endswith(damage.SUFFIX) for entry in files),
            "partial": sum(map(partials.is_partial, files)),
        }

    def verify(self) -> list[str]:
        """Check every row of every shard; set damaged ones aside with a warning and return their names."""
        self._damaged.clear()
        for one in self._refresh().shards:
            if not one.intact():
                self._set_aside(one.path, "a row differs from its checksum")
        return sorted(self._damaged)

    def remove(self) -> None:
        """Delete the space with all its vectors; MirblabError when something of it cannot be deleted."""
        self._index = Index([])
        disk.remove(self.path)

    def _describe(self) -> None:
        readable = json.dumps(self.space, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        target = self.path / SPACE
        if not target.is_file() or target.read_bytes() != readable.encode("utf-8", "backslashreplace"):
            paths.write_bytes(target, readable.encode("utf-8", "backslashreplace"))

    def _refresh(self) -> Index:
        """Return an index over the shards that are in the folder now."""
        index, listed = self._index, _listed(self.path, self._refused)
        kept = {one.path.name: one for one in index.shards if listed.get(one.path.name) == one.stamp}
        added = {name: one for name in listed if name not in kept and (one := self._opened(name))}
        if added or len(kept) < len(index.shards):
            shards = kept | added
            index = self._index = Index([shards[name] for name in sorted(shards)])
        return index

    def _opened(self, name: str) -> Shard | None:
        try:
            return self._shard(self.path / name)
        except Damaged as reason:
            self._set_aside(self.path / name, str(reason))
        except FileNotFoundError:  # removed by somebody else since it was listed
            pass
        except PermissionError as error:
            self._refused.add(name)
            damage.tell(self.path / name, f"it cannot be read: {error.strerror}", "its texts will be encoded again")
        return None

    def _shard(self, path: Path) -> Shard:
        return shard.open_shard(path, self.dimensions, self.digest)

    def _set_aside(self, path: Path, reason: str) -> None:
        self._damaged.append(path.name)
        if not damage.set_aside(path, reason, "its texts will be encoded again"):
            self._refused.add(path.name)


def digest_of(made: str, space: Mapping[str, Any]) -> str:
    """Return the digest of a space under a format, 32 hexadecimal digits."""
    canonical = json.dumps([made, space], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def _listed(folder: Path, refused: set[str]) -> dict[str, tuple[int, int]]:
    """Return the shards in *folder* by name, with size and time of change."""
    listed = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(shard.SUFFIX) and not name.startswith(".") and name not in refused and entry.is_file():
                    with suppress(FileNotFoundError):  # it went between listing and asking
                        listed[name] = shard.stamp(entry)
    except (FileNotFoundError, NotADirectoryError):  # nothing stored yet, or another process has removed it
        pass
    return listed
