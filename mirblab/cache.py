"""cache: the embedding cache; vectors are stored under the hash of all that determines them, and never made twice."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
import uuid
import warnings
from collections.abc import Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import xxhash

from mirblab import paths, shard
from mirblab.errors import MirblabError
from mirblab.index import Index
from mirblab.shard import Damaged, Shard

_DAMAGED = ".damaged"
_SEED = 0x6D69_7262  # not the default, so that colliding texts published for xxh3 do not collide here


def text_keys(texts: Sequence[str]) -> np.ndarray:
    """Return the 128-bit key of each text, uint64 (n, 2); texts are hashed as they are, lone surrogates included.

    Hashing is the floor of a warm read. 100,000 texts of 300 bytes took 0.02 s with xxh3, 0.08 s with BLAKE2b,
    0.10 s with two SipHashes of pandas. xxh3 is not cryptographic: it does not resist texts made to collide.

    >>> text_keys(["x", "y", "x"]).shape, bool((text_keys(["x"]) == text_keys(["x"])).all())
    ((3, 2), True)
    """
    hash_of = xxhash.xxh3_128_digest
    try:
        digests = list(map(hash_of, map(str.encode, texts), repeat(_SEED)))  # loops in C
    except UnicodeEncodeError:
        digests = [hash_of(text.encode("utf-8", "surrogatepass"), _SEED) for text in texts]
    except TypeError:
        check_texts(texts)
        raise
    return np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)


def check_texts(texts: Sequence[str]) -> None:
    """Raise MirblabError naming the first position that holds no string, or when *texts* is one string."""
    if isinstance(texts, str):
        raise MirblabError("expected a sequence of texts, found one string; write [text]")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise MirblabError(f"text {position} is {type(text).__name__} ({text!r:.40}), not a string")


Store = TypeVar("Store", bound="VectorStore")


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
        canonical = json.dumps([shard.FORMAT, self.space], sort_keys=True, separators=(",", ":"))
        self.digest = hashlib.sha256(canonical.encode()).hexdigest()[:32]
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", f"{space.get('model', '')}-{space.get('role', '')}").strip("-.")[-60:]
        self.path = Path(folder) / f"{slug}-{self.digest[:16]}"
        self._open: dict[str, Shard] = {}
        self._refused: set[str] = set()
        self._index = Index([])

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
        texts = sum(len(one.keys) for one in self._refresh().shards)
        files = [entry for entry in os.scandir(self.path)] if self.path.is_dir() else []
        return {
            "texts": texts,
            "shards": len(self._open),
            "bytes": sum(entry.stat().st_size for entry in files),
            "damaged": sum(entry.name.endswith(_DAMAGED) for entry in files),
            "partial": sum(".partial." in entry.name for entry in files),
        }

    def verify(self) -> list[str]:
        """Check every row of every shard; set damaged ones aside with a warning and return their names."""
        before = set(os.listdir(self.path)) if self.path.is_dir() else set()
        for one in self._refresh().shards:
            if not one.intact():
                self._set_aside(one.path, "a row differs from its checksum")
        after = set(os.listdir(self.path)) if self.path.is_dir() else set()
        return sorted(name.removesuffix(_DAMAGED) for name in after - before if name.endswith(_DAMAGED))

    def remove(self) -> None:
        """Delete the space with all its vectors."""
        self._open, self._index = {}, Index([])
        shutil.rmtree(self.path, ignore_errors=True)

    def _describe(self) -> None:
        readable = json.dumps(self.space, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        target = self.path / "space.json"
        if not target.is_file() or target.read_bytes() != readable.encode("utf-8", "backslashreplace"):
            with paths.write_atomically(target) as beside:
                beside.write_bytes(readable.encode("utf-8", "backslashreplace"))

    def _refresh(self) -> Index:
        """Return an index over the shards that are in the folder now."""
        found = _listed(self.path, self._refused)
        kept = {name: one for name, one in self._open.items() if found.get(name) == one.stamp}
        added = {name: one for name in found if name not in kept and (one := self._opened(name))}
        if added or len(kept) < len(self._open):
            self._open = kept | added
            self._index = Index([self._open[name] for name in sorted(self._open)])
        return self._index

    def _opened(self, name: str) -> Shard | None:
        try:
            return self._shard(self.path / name)
        except Damaged as reason:
            self._set_aside(self.path / name, str(reason))
        except FileNotFoundError:  # removed by somebody else since it was listed
            pass
        return None

    def _shard(self, path: Path) -> Shard:
        return shard.open_shard(path, self.dimensions, self.digest)

    def _set_aside(self, path: Path, reason: str) -> None:
        self._open.pop(path.name, None)
        self._index = Index([self._open[name] for name in sorted(self._open)])
        try:
            os.replace(path, path.with_name(path.name + _DAMAGED))
        except FileNotFoundError:  # another process was first
            return
        except OSError as error:
            self._refused.add(path.name)
            reason += f"; it could not be renamed ({error.strerror}) and is passed over"
        warnings.warn(f"damaged shard set aside, its texts will be encoded again: {path} ({reason})", stacklevel=4)


def spaces(folder: str | Path, kind: type[Store] = VectorStore) -> list[Store]:
    """Return the stores of one *kind* in *folder*, ordered by name; `space` and `sizes()` tell what each holds.

    A folder whose `space.json` is absent or belongs elsewhere is left out.
    """
    found = []
    for path in sorted(Path(folder).glob("*/space.json")):
        try:
            store = kind(folder, json.loads(path.read_text("utf-8")))
        except (ValueError, AttributeError):  # not JSON, or not that of a space
            continue
        if store.path == path.parent:
            found.append(store)
    return found


def sweep(folder: str | Path, older_than: float = 86_400) -> int:
    """Remove partial files that killed writers left more than *older_than* seconds ago; return how many."""
    limit = time.time() - older_than
    old = [path for path in Path(folder).glob("*/.*.partial.*") if path.stat().st_mtime <= limit]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def _listed(folder: Path, refused: set[str]) -> dict[str, tuple[int, int]]:
    try:
        with os.scandir(folder) as entries:
            ours = [e for e in entries if e.name.endswith(shard.SUFFIX) and not e.name.startswith(".")]
            return {entry.name: shard.stamp(entry) for entry in ours if entry.name not in refused}
    except FileNotFoundError:  # nothing stored yet, or a file went between listing and asking
        return {}
