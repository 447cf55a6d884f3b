"""token_vectors: the store of what has many rows for a text: token vectors, or the weights of terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from mirblab.core import atomic_files, paths
from mirblab.core.errors import MirblabError
from mirblab.core.terminal import progress
from mirblab.encoders import spaces
from mirblab.encoders.cache import (
    DamagedShard,
    ShardFile,
    ShardStore,
    file_stamp,
    map_rows,
    read_head,
    safetensors_head,
    text_keys,
    write_arrays,
)
from mirblab.encoders.encoding import Encoder
from mirblab.encoders.local import unit_vectors

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FORMAT = "mirblab-tokens-2"
_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)
_NAMES = {_HALF: "F16", _SINGLE: "F32"}


@dataclass(eq=False)
class TokenShard(ShardFile):
    """One shard of token vectors; the rows of text i are `ends[i - 1]` to `ends[i]`, *dtype* (n_tokens, `width`)."""

    ends: np.ndarray
    width: int
    dtype: np.dtype[Any]

    def rows(self) -> np.ndarray | None:
        """Return all rows as a memory map, (n_rows, width), or None when the file is gone or was changed."""
        n = int(self.ends[-1])
        if not n * self.width:
            return np.empty((n, self.width), self.dtype)
        return map_rows(self.path, self.dtype.type, (n, self.width), self.offset)

    def agree(self, texts: np.ndarray) -> bool:
        """Return whether the rows of these texts, by number in the shard, agree with their checksums."""
        rows = self.rows()
        if rows is None:
            return False
        starts = np.concatenate([[0], self.ends[:-1]])
        return all(
            _text_checksum(self.keys[text], rows[starts[text] : self.ends[text]]) == self.checks[text]
            for text in np.unique(texts).tolist()
        )

    def intact(self) -> bool:
        """Return whether every text agrees with its checksum."""
        return self.agree(np.arange(len(self.keys)))


def write_token_shard(path: Path, keys: np.ndarray, matrices: Sequence[np.ndarray], space: str) -> None:
    """Write keys uint64 (n, 2) and as many matrices of one width and type as a shard: whole, on disk, or not at all."""
    rows = np.concatenate(matrices)
    ends = np.cumsum([len(one) for one in matrices], dtype=np.int64)
    checks = np.array([_text_checksum(key, one) for key, one in zip(keys, matrices, strict=True)], dtype=np.uint64)
    head = _header(rows.shape, rows.dtype, keys, checks, ends, space)
    write_arrays(path, head, (checks, ends, keys, rows))


def open_token_shard(path: Path, space: str, dtype: np.dtype[Any] = _HALF) -> TokenShard:
    """Return the shard at *path*, its head, keys, ends and checksums checked (DamagedShard), its rows not yet."""
    seen = file_stamp(path)
    with open(path, "rb") as file:
        head, fields = read_head(file)
        n_rows, width, n = _read_fields(fields)
        size = len(head) + 32 * n + dtype.itemsize * n_rows * width
        if seen[0] != size:
            raise DamagedShard(f"{seen[0]:,} bytes long instead of {size:,}")
        checks, ends = np.frombuffer(file.read(8 * n), np.uint64), np.frombuffer(file.read(8 * n), np.int64)
        keys = np.frombuffer(file.read(16 * n), np.uint64).reshape(-1, 2)
    if _header((n_rows, width), dtype, keys, checks, ends, space) != head:
        raise DamagedShard("its header, keys, ends or checksums were altered, or it belongs to another space")
    return TokenShard(path, keys, checks, len(head) + 32 * n, seen, ends, width, dtype)


def _text_checksum(key: np.ndarray, rows: np.ndarray) -> int:
    return xxhash.xxh3_64_intdigest(np.ascontiguousarray(rows).data, int(key[0] ^ key[1]))


def _header(
    shape: tuple[int, ...], dtype: np.dtype[Any], keys: np.ndarray, checks: np.ndarray, ends: np.ndarray, space: str
) -> bytes:
    n = len(keys)
    state = xxhash.xxh3_128(space.encode())
    for part in (checks, ends, keys):
        state.update(np.ascontiguousarray(part).data)
    about = {"format": FORMAT, "space": space, "digest": state.hexdigest()}
    parts = [("checks", "U64", [n]), ("ends", "I64", [n]), ("keys", "U8", [n, 16])]
    return safetensors_head(about, [*parts, ("rows", _NAMES[dtype], list(shape))])


def _read_fields(fields: dict[str, Any]) -> tuple[int, int, int]:
    try:
        (n_rows, width), (n,) = fields["rows"]["shape"], fields["checks"]["shape"]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedShard("its header cannot be read") from error
    if not all(isinstance(number, int) for number in (n_rows, width, n)) or n < 1 or min(n_rows, width) < 0:
        raise DamagedShard(f"its rows have the shape [{n_rows}, {width}] for {n} texts")
    return n_rows, width, n


def _by_shard(numbers: np.ndarray, is_wanted: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the number of each shard with the positions that have it and are wanted, ascending, int64.

    They are sorted once: a comparison of all texts with each shard takes shards times texts, of which both grow.
    """
    wanted = np.flatnonzero(is_wanted)
    order = wanted[np.argsort(numbers[wanted], kind="stable")]
    found, starts = np.unique(numbers[order], return_index=True)
    return zip(found.tolist(), np.split(order, starts)[1:], strict=True)


@dataclass(frozen=True, eq=False)
class StoredTokens:
    """The token vectors of texts in a store, memory-mapped: text i is number `places[i]` of shard `numbers[i]`."""

    shards: Sequence[TokenShard | UnstoredTokens]
    numbers: np.ndarray
    places: np.ndarray
    lengths: np.ndarray

    def including(self, held: UnstoredTokens, rows: np.ndarray, places: np.ndarray) -> StoredTokens:
        """Return the same with the texts at *rows* taken from *places* of what is *held* in memory."""
        numbers, all_places, lengths = self.numbers.copy(), self.places.copy(), self.lengths.copy()
        numbers[rows], all_places[rows] = len(self.shards), places
        lengths[rows] = np.diff(held.ends, prepend=0)[places]
        return StoredTokens([*self.shards, held], numbers, all_places, lengths)

    @property
    def dimensions(self) -> int:
        """Return the length of a token vector; 0 when no text has any."""
        return max((one.width for one in self.shards), default=0)

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return the token vectors of the texts from *start* to *stop*, float32 (n_tokens, d), one after the other."""
        lengths, numbers = self.lengths[start:stop], self.numbers[start:stop]
        ends = np.cumsum(lengths)
        out = np.empty((int(lengths.sum()), self.dimensions), np.float32)
        for number, mine in _by_shard(numbers, lengths > 0):
            one = self.shards[number]
            rows = one.rows()
            if rows is None:
                raise MirblabError(f"{one.path} was removed while it was read; run it again")
            for place in mine.tolist():
                last = one.ends[self.places[start + place]]
                out[ends[place] - lengths[place] : ends[place]] = rows[last - lengths[place] : last]
        return out


@dataclass(frozen=True, eq=False)
class UnstoredTokens:
    """Token vectors in memory, of texts that could not be stored; `StoredTokens` reads it like a `TokenShard`."""

    path: Path
    ends: np.ndarray
    matrix: np.ndarray

    @property
    def width(self) -> int:
        """Return the length of a token vector."""
        return self.matrix.shape[1]

    def rows(self) -> np.ndarray:
        """Return all rows, (n_rows, width)."""
        return self.matrix

    @classmethod
    def of(cls, matrices: Sequence[np.ndarray], path: Path, dtype: np.dtype[Any]) -> UnstoredTokens:
        """Return matrices (n_tokens, d) as they would have been stored at *path*."""
        width = max(one.shape[1] for one in matrices)
        rows = np.concatenate([np.empty((0, width)), *(one for one in matrices if len(one))])
        return cls(path, np.cumsum([len(one) for one in matrices], dtype=np.int64), rows.astype(dtype))


class TokenStore(ShardStore[TokenShard]):
    """The token vectors of one *space*, with a VectorStore's files and guarantees.

    They are float16; a sparse encoder's terms, with their positions in its vocabulary and their weights, are float32.
    """

    def __init__(self, folder: str | Path, space: Mapping[str, Any]) -> None:
        super().__init__(folder, {**space, "tokens": FORMAT})
        self.dtype = _SINGLE if space.get("sparse") else _HALF
        self.path = self.path.with_name(f"{self.path.name}-tokens")  # no VectorStore takes it for its own

    def read(self, texts: Sequence[str]) -> tuple[StoredTokens, np.ndarray]:
        """Return the token vectors in the order of *texts*, none for missing ones, and the missing positions, int64."""
        while True:
            index = self._refresh()
            rows = index.find(text_keys(texts))
            numbers = index.shard_of[rows].astype(np.int64)  # the last one, for those that are missing, is no shard
            places = rows - index.starts[np.minimum(numbers, len(index.shards))]
            asked = dict(_by_shard(numbers, rows >= 0))
            shards = index.shards
            damaged = [shards[number] for number, mine in asked.items() if not shards[number].agree(places[mine])]
            if not damaged:
                lengths = np.zeros(len(texts), np.int64)
                for number, mine in asked.items():
                    lengths[mine] = np.diff(shards[number].ends, prepend=0)[places[mine]]
                return StoredTokens(shards, numbers, places, lengths), np.flatnonzero(rows < 0)
            for one in damaged:
                self._set_aside(one.path, "a text differs from its checksum")

    def append(self, texts: Sequence[str], tokens: Sequence[np.ndarray]) -> None:
        """Store one finite matrix (n_tokens, d) per text; when this returns, they survive the process."""
        keys = text_keys(texts)
        if len(tokens) != len(keys):
            raise MirblabError(f"{len(keys)} texts need as many matrices of token vectors; got {len(tokens)}")
        if not len(keys):
            return
        width = max(one.shape[1] for one in tokens)
        rows = [np.asarray(one, self.dtype).reshape(len(one), width if len(one) == 0 else -1) for one in tokens]
        for place, one in enumerate(rows):
            if one.shape[1] != width or not np.isfinite(one).all():
                raise MirblabError(
                    f"the token vectors of text {place} have the shape {one.shape}, where others have {width} columns, "
                    "or are not finite; nothing was stored"
                )
        write_token_shard(self._new_shard(), keys, rows, self.digest)

    def _shard(self, path: Path) -> TokenShard:
        return open_token_shard(path, self.digest, self.dtype)


def verify(folder: Path) -> list[str]:
    """Check every text of every space in *folder*, as `spaces.verify` does."""
    return spaces.verify(folder, TokenStore)


def older(folder: Path) -> list[tuple[Path, int]]:
    """Return the spaces in *folder* of an older version, each with its number of texts."""
    return spaces.older(folder)


@dataclass(frozen=True)
class Shrink:
    """How the token vectors of a text are made smaller before they are stored.

    *dimensions*: of a seeded random projection, 0 for none, the same for queries and documents. *factor*: a document of
    n tokens keeps n / factor, rounded up, by merging similar ones; queries keep all.
    """

    dimensions: int = 0
    factor: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.dimensions < 0 or self.factor < 1:
            raise MirblabError(
                f"token vectors take dimensions from 0 (all) and a pooling factor from 1 (none); found "
                f"{self.dimensions} and {self.factor}"
            )

    @property
    def name(self) -> str:
        """Return the reductions in words; "" for none."""
        merged = f"tokens merged by {self.factor}" if self.factor > 1 else ""
        return ", ".join(filter(None, [f"{self.dimensions} dimensions" if self.dimensions else "", merged]))

    def of(self, role: str) -> Shrink:
        """Return the reductions for texts of a *role*: only documents have their tokens merged."""
        return Shrink(self.dimensions, self.factor if role == "document" else 1, self.seed if self.dimensions else 0)

    def key(self) -> Mapping[str, Any]:
        """Return what determines the result, for the store; empty without reductions."""
        found = {name: value for name, value in asdict(self).items() if name != "seed" or self.dimensions}
        return {} if not self.name else {"shrunk": found}

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        """Return unit vectors (n_kept, n_dims), float32, made from unit vectors (n_tokens, d)."""
        kept = merge_tokens(tokens, self.factor) if self.factor > 1 else tokens
        return project_tokens(kept, self.dimensions, self.seed) if self.dimensions and len(kept) else kept


def merge_tokens(tokens: np.ndarray, factor: int) -> np.ndarray:
    """Return at most n / *factor* unit vectors, rounded up: means of similar *tokens* (n, d).

    Clusters are Ward's over the unit vectors, in the order in which they begin in the text; Clavié, Chaffin and Adams,
    "Reducing the Footprint of Multi-Vector Retrieval with Minimal Performance Impact via Token Pooling", 2024.
    """
    wanted = -(-len(tokens) // factor)
    if wanted >= len(tokens):
        return np.asarray(tokens, np.float32)
    from scipy.cluster.hierarchy import fcluster, linkage

    found = fcluster(linkage(np.asarray(tokens, np.float64), "ward"), wanted, "maxclust")
    _, first, place = np.unique(found, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))[place]
    sums = np.zeros((len(first), tokens.shape[1]), np.float32)
    np.add.at(sums, order, np.asarray(tokens, np.float32))
    return unit_vectors(sums)


def project_tokens(tokens: np.ndarray, dimensions: int, seed: int = 0) -> np.ndarray:
    """Return unit vectors (n, *dimensions*): *tokens* (n, d) in a random orthonormal subspace, fixed by *seed*."""
    width = tokens.shape[1]
    if dimensions > width:
        raise MirblabError(f"token vectors of {width} dimensions cannot be projected to {dimensions}; ask for fewer")
    return unit_vectors(np.asarray(tokens, np.float32) @ _basis(width, dimensions, seed))


@lru_cache(maxsize=8)
def _basis(width: int, dimensions: int, seed: int) -> np.ndarray:
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((width, dimensions)))[0].astype(np.float32)
    basis.flags.writeable = False
    return basis


CHUNK_TEXTS = 256  # a shard each, so that an interruption costs no more than these


def load_token_vectors(
    model: Encoder,
    texts: Sequence[str],
    role: str = "document",
    instruction: str = "",
    shrink: Shrink | None = None,
) -> StoredTokens:
    """Return the token vectors of *texts*, in their order, memory-mapped; see `late_interaction.TokenRows`.

    Each distinct text is encoded once for its role and instruction and stored as float16, in chunks. Vectors reduced by
    *shrink* have a separate space. Vectors that cannot be stored are held in memory, with a message.
    """
    wanted = (shrink or Shrink()).of(role)
    store = open_token_store(model, role, instruction, wanted)
    found, missing = store.read(texts)
    if not len(missing):
        return found
    new = list(dict.fromkeys(texts[position] for position in missing))
    unstored: dict[str, np.ndarray] = {}
    with progress(len(new), f"{model.name}: token vectors", "texts") as bar:
        for some, tokens in _encode_chunks(model, new, role, instruction, wanted):
            if not atomic_files.try_to_store("token vectors", store.append, some, tokens):
                unstored |= zip(some, tokens, strict=True)
            bar.update(len(some))
    found, missing = store.read(texts)
    lost = [position for position in missing if texts[position] not in unstored]
    if lost:
        raise MirblabError(f"{len(lost)} texts cannot be read back from {store.path}; check the disk")
    if not len(missing):
        return found
    place = {text: number for number, text in enumerate(unstored)}
    places = np.array([place[texts[position]] for position in missing])
    return found.including(UnstoredTokens.of(list(unstored.values()), store.path, store.dtype), missing, places)


def load_term_weights(model: Encoder, texts: Sequence[str], role: str = "document", instruction: str = "") -> csr_array:
    """Return a sparse encoder's vectors of *texts*, sparse float32 (n_texts, size of the vocabulary).

    They are encoded and stored as `load_token_vectors` does it. MirblabError for a dense encoder.
    """
    stored = load_token_vectors(model, texts, role, instruction)
    return _matrix(stored.block(0, len(texts)), stored.lengths, model.dimensions)


def term_matrix(pairs: Sequence[np.ndarray], n_terms: int) -> csr_array:
    """Return what `Encoder.term_weights` gives as one sparse matrix, float32 (n_texts, *n_terms*)."""
    lengths = np.array([len(one) for one in pairs], dtype=np.int64)
    return _matrix(np.concatenate([np.empty((0, 2), np.float32), *pairs]), lengths, n_terms)


def _matrix(rows: np.ndarray, lengths: np.ndarray, n_terms: int) -> csr_array:
    from scipy.sparse import csr_array

    starts, pairs = np.concatenate([[0], np.cumsum(lengths)]), rows.reshape(-1, 2)
    parts = (np.ascontiguousarray(pairs[:, 1]), pairs[:, 0].astype(np.int32), starts)
    return csr_array(parts, shape=(len(lengths), n_terms))


def open_token_store(
    model: Encoder, role: str = "document", instruction: str = "", shrink: Shrink | None = None
) -> TokenStore:
    """Return the store of an encoder's token vectors for one role and instruction."""
    wanted = (shrink or Shrink()).of(role)
    return TokenStore(paths.cache() / "tokens", {**model.space(role, instruction), **wanted.key()})


def _encode_chunks(
    model: Encoder, texts: list[str], role: str, instruction: str, shrink: Shrink
) -> Iterator[tuple[list[str], list[np.ndarray]]]:
    """Yield chunks of texts with their token vectors; reduced ones are made from the complete ones in the store."""
    from threadpoolctl import threadpool_limits

    encode = model.term_weights if model.is_sparse else partial(model.token_vectors, with_texts=True)
    whole = load_token_vectors(model, texts, role, instruction) if shrink.name else None
    for start in range(0, len(texts), CHUNK_TEXTS):
        some = texts[start : start + CHUNK_TEXTS]
        if whole is None:
            yield some, encode(some, role, instruction)
        else:
            places = range(start, start + len(some))
            with threadpool_limits(1, "blas"):  # the last bit of a product depends on the number of threads
                shrunk = [shrink(whole.block(place, place + 1)) for place in places]
            yield some, shrunk
