"""codes: vectors in one or two bits per dimension, all of which are scanned, and 16-bit rows that order the best."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from mirblab.core import atomic_files, paths, stored_files
from mirblab.core.errors import MirblabError, check_positive
from mirblab.core.mapped_files import expect_single_rows, map_file, release_pages
from mirblab.core.processes import compiled, n_cores, run_in_threads, split_range
from mirblab.core.terminal import progress
from mirblab.data.candidates import Candidates
from mirblab.data.parts import StoredTexts, texts_at
from mirblab.data.ranking import TopK, gather_blocks, pack_keys, query_bounds, unpack_keys
from mirblab.encoders.cache import SUFFIX, VectorStore, read_head, safetensors_head, text_keys, write_arrays
from mirblab.encoders.encoding import Encoder, VectorReader
from mirblab.retrieval import dense

# Raised by one whenever codes, estimates or the number of candidates change; it is part of what a run is stored under.
VERSION = 3
FORMAT = "mirblab-codes-2"  # of what is stored, which does not depend on the number of candidates
BITS = (1, 2)
PART = 1 << 18  # vectors in one file
SMALL = 10_000  # documents that are searched exactly: in less time than what codes take beside the scan
CENTRE_FROM = 10_000  # vectors, evenly spaced
# For the best `depth` of n = 100 * depth * times vectors, first * depth * times ** growth candidates are read, by bits,
# and from STEEPER times on the last exponent holds: what a recall of .99 at depth 100 takes on the vectors that need
# most of those in benchmarks/code_candidates.py, and on the ten million of benchmarks/vectors_at_scale.py.
OVERSAMPLING = {1: (10.0, 0.55, 0.7), 2: (4.0, 0.25, 0.4)}
STEEPER = 100
_QUERY_BITS, _LEVELS = 4, 15
_WORDS = 2  # of 64 bits: a row of a code is a multiple of this
_STRIP = 512  # vectors whose codes and sums stay in the nearest cache
_ROUNDS = 2
_QUERIES, _CELLS = 32, 1 << 17  # queries, and pairs of a query and a document, that are handled together
_WIDE = 0.9957  # standard deviations: the boundary of the best uniform quantiser of a normal variable (Max, 1960)
_LARGEST_ROW = np.float32(32767)  # in int16

_ONE, _TWO, _THREE, _FOUR, _TOP = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4), np.uint64(56)
Four = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
_PAIRS, _QUADS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_BYTES, _SUM = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


def n_candidates(n_docs: int, dimensions: int, depth: int, bits: int) -> int:
    """Return how many of *n_docs* vectors are scored by their rows so that the best *depth* are found.

    They grow with the number of vectors, and where there are fewer dimensions than the 384 of those measured.

    >>> n_candidates(20_000_000, 384, 100, 2), n_candidates(1_000_000, 384, 100, 2), n_candidates(500, 384, 100, 2)
    (4193, 1265, 400)
    """
    first, growth, later = OVERSAMPLING[bits]
    times = max(1.0, n_docs / (100 * depth))
    share = first * max(1.0, 384 / dimensions) * min(times, STEEPER) ** growth * max(1.0, times / STEEPER) ** later
    return min(n_docs, int(np.ceil(share * depth)))


def rotate(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors (n, d) after a fixed pseudo-random rotation, float32, so that no dimension is special.

    Two rounds of random signs and Walsh-Hadamard transforms, of the first and then of the last 2**k dimensions, as in
    Ailon and Chazelle, "Approximate nearest neighbors and the fast Johnson-Lindenstrauss transform" (STOC 2006). A row
    does not depend on the others, so that equal rows stay equal.
    """
    rotated = np.array(vectors, np.float32, order="C")
    compiled(_rotate)(rotated, _signs(rotated.shape[1]))
    return rotated


@lru_cache(maxsize=8)
def _signs(dimensions: int) -> np.ndarray:
    """Return random signs for each transform, float32 (2 * _ROUNDS, d)."""
    return np.random.default_rng(0).choice(np.array([-1, 1], np.float32), (2 * _ROUNDS, dimensions))


def _rotate(rows: np.ndarray, signs: np.ndarray) -> None:
    n, d = rows.shape
    size = 1
    while 2 * size <= d:
        size *= 2
    scale = np.float32(1.0 / np.sqrt(size))
    for i in range(n):
        row = rows[i]
        for turn in range(len(signs)):
            for j in range(d):
                row[j] *= signs[turn, j]
            part = row[:size] if turn % 2 == 0 else row[d - size :]
            half = 1
            while half < size:
                for start in range(0, size, 2 * half):
                    for j in range(start, start + half):
                        left, right = part[j], part[j + half]
                        part[j] = left + right
                        part[j + half] = left - right
                half *= 2
            for j in range(size):
                part[j] *= scale


def encode_vectors(vectors: np.ndarray, centre: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return codes, uint64 (bits * words, n), and factors, float32 (n,), of vectors (n, d) around a *centre* (d,).

    With o the rotated difference to the centre, an entry is coded as x = -1 or 1 by its sign, in two bits as -3, -1, 1
    or 3, where the boundary is about the root mean square of o. The inner product of o and q is estimated as that of x
    and q times the factor <o, o> / <o, x>: Gao and Long, "RaBitQ" (SIGMOD 2024). The signs are the first half of rows.
    """
    rows = rotate(np.asarray(vectors, np.float32) - centre)
    codes = np.zeros((bits * n_words(rows.shape[1]), len(rows)), np.uint64)
    factors = np.empty(len(rows), np.float32)
    compiled(_encode)(rows, bits, _WIDE, codes, factors)
    return codes, factors


def n_words(dimensions: int) -> int:
    """Return how many words of 64 bits one bit for each dimension takes."""
    return -(-dimensions // (64 * _WORDS)) * _WORDS


def _encode(rows: np.ndarray, bits: int, wide: float, codes: np.ndarray, factors: np.ndarray) -> None:
    n, d = rows.shape
    words = codes.shape[0] // bits
    for i in range(n):
        squares = 0.0
        for j in range(d):
            squares += float(rows[i, j]) * float(rows[i, j])
        limit = np.float32(wide * np.sqrt(squares / d))
        product = 0.0
        for word in range(words):
            signs, others = np.uint64(0), np.uint64(0)
            for j in range(64 * word, min(64 * word + 64, d)):
                value = rows[i, j]
                is_far = bits == 2 and abs(value) > limit
                product += float(abs(value)) * (3.0 if is_far else 1.0)
                bit = _ONE << np.uint64(j % 64)
                if value >= 0:
                    signs |= bit
                if (value >= 0) == is_far:
                    others |= bit  # 3 = 2 + 1, 1 = 2 - 1, -1 = -2 + 1, -3 = -2 - 1
            codes[word, i] = signs
            if bits == 2:
                codes[words + word, i] = others
        factors[i] = squares / product if product > 0.0 else 0.0


def round_rows(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return finite vectors (n, d) as multiples, int16 (n, d), of a step of each vector, float32 (n,).

    The largest entry of a vector is 32,767 steps. The vectors of an encoder lose a sixth of what float16 loses.

    >>> rows, steps = round_rows(np.array([[0.5, -0.1], [0, 0]], np.float32))
    >>> (rows * steps[:, None]).astype(float).round(4).tolist()
    [[0.5, -0.1], [0.0, 0.0]]
    """
    steps = np.abs(vectors).max(axis=1, initial=0).astype(np.float32) / _LARGEST_ROW
    safe = np.where(steps > 0, steps, np.float32(1))[:, None]
    return np.clip(np.rint(vectors / safe), -_LARGEST_ROW, _LARGEST_ROW).astype(np.int16), steps


def quantise_queries(queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return bit planes, uint64 (n, words, 4), and steps, float32 (n,), of queries (n, d).

    A rotated entry is rounded to an odd multiple of the step between -15 and 15 steps; the largest has 15.
    """
    rotated = rotate(queries)
    steps = (np.abs(rotated).max(axis=1, initial=0) / _LEVELS).astype(np.float32)
    safe = np.where(steps > 0, steps, np.float32(1))[:, None]
    levels = np.clip(np.round((rotated / safe + _LEVELS) / 2), 0, _LEVELS).astype(np.uint8)
    padded = np.zeros((len(queries), 64 * n_words(rotated.shape[1])), np.uint8)
    padded[:, : rotated.shape[1]] = levels
    planes = [np.packbits(padded >> bit & 1, axis=1, bitorder="little").view("<u8") for bit in range(_QUERY_BITS)]
    return np.ascontiguousarray(np.stack(planes, axis=2).astype(np.uint64)), steps


def estimate_products(
    codes: np.ndarray, factors: np.ndarray, planes: np.ndarray, steps: np.ndarray, d: int, span: slice = slice(None)
) -> np.ndarray:
    """Return the estimated inner products with a *span* of the vectors, less that of the centre, float32 (queries, n).

    A slice of the codes gives the same in three times as long, since the compiler cannot know that it is contiguous.
    """
    begin, end, _ = span.indices(len(factors))
    out = np.empty((len(planes), end - begin), np.float32)
    compiled(_estimate)(codes, factors, planes, steps, d, begin, out)
    return out


def _estimate(
    codes: np.ndarray,
    factors: np.ndarray,
    planes: np.ndarray,
    steps: np.ndarray,
    d: int,
    begin: int,
    out: np.ndarray,
) -> None:
    def ones(word: np.uint64) -> np.uint64:  # a form that the compiler turns into the processor's own instruction
        word = word - (word >> _ONE & _PAIRS)
        word = (word & _QUADS) + (word >> _TWO & _QUADS)
        return ((word + (word >> _FOUR)) & _BYTES) * _SUM >> _TOP

    def differing(x: np.uint64, y: np.uint64, a: Four, b: Four) -> np.uint64:  # bits of two words, weighted by plane
        some = ones(x ^ a[0]) + ones(y ^ b[0])
        some += (ones(x ^ a[1]) + ones(y ^ b[1])) << _ONE
        some += (ones(x ^ a[2]) + ones(y ^ b[2])) << _TWO
        return some + ((ones(x ^ a[3]) + ones(y ^ b[3])) << _THREE)

    words, end = planes.shape[1], begin + out.shape[1]
    bits = len(codes) // words
    most = d * _LEVELS * (2**bits - 1)
    sums = np.empty(_STRIP, np.uint64)
    for start in range(begin, end, _STRIP):
        stop = min(end, start + _STRIP)
        for query in range(len(planes)):
            for i in range(stop - start):
                sums[i] = np.uint64(0)
            for word in range(0, words, 2):
                some, others = planes[query, word], planes[query, word + 1]
                a, b = (some[0], some[1], some[2], some[3]), (others[0], others[1], others[2], others[3])
                first, second = codes[word, start:stop], codes[word + 1, start:stop]
                if bits == 1:
                    for i in range(stop - start):
                        sums[i] += differing(first[i], second[i], a, b)
                else:
                    third, fourth = codes[words + word, start:stop], codes[words + word + 1, start:stop]
                    for i in range(stop - start):
                        far = differing(first[i], second[i], a, b) << _ONE
                        sums[i] += far + differing(third[i], fourth[i], a, b)
            own, estimates = factors[start:stop], out[query, start - begin : stop - begin]
            for i in range(stop - start):
                product = np.float32(most - 2 * np.int64(sums[i]))  # a sum over signs, from those that differ
                estimates[i] = own[i] * (steps[query] * product)


@dataclass(frozen=True)
class Part:
    """The codes of up to `PART` vectors, and their rows as `round_rows` returns them, all memory-mapped."""

    codes: np.ndarray
    factors: np.ndarray
    rows: np.ndarray
    steps: np.ndarray


@dataclass(frozen=True)
class CodedVectors:
    """Vectors that can be searched without being in memory; position i is row i of all *parts* one after the other."""

    parts: Sequence[Part]
    bits: int

    @cached_property
    def starts(self) -> np.ndarray:
        """Return the position at which each part begins, and the number of vectors, int64 (n_parts + 1,)."""
        return np.cumsum([0, *(len(part.rows) for part in self.parts)])

    @property
    def dimensions(self) -> int:
        """Return the length of a vector."""
        return self.parts[0].rows.shape[1]

    def read(self, positions: np.ndarray) -> np.ndarray:
        """Return the rows at *positions*, float32 (n, d)."""
        out = np.empty((len(positions), self.dimensions), np.float32)
        order = np.argsort(positions, kind="stable")  # from front to back, as a disk reads best
        cuts = np.searchsorted(positions[order], self.starts)
        for part, start, begin, end in zip(self.parts, self.starts, cuts[:-1], cuts[1:], strict=False):
            own = positions[order[begin:end]] - start
            out[order[begin:end]] = part.rows[own] * part.steps[own, None]
        return out


def search(
    query_vectors: np.ndarray,
    documents: np.ndarray | VectorReader | CodedVectors,
    *,
    depth: int,
    candidates: Candidates | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows, positions, scores) of the *depth* best documents of each query by inner product, best first.

    All codes are scanned, and the 16-bit rows of the best `n_candidates` by estimate give the scores, float32. Vectors
    without codes are searched exactly instead. *candidates* are obeyed in the scan, so that no place is lost to a
    document that may not be returned. Equal scores are ordered by position, the larger first. Neither *threads* (None:
    one per core) nor the way in which the vectors are cut into parts changes the result.
    """
    if not isinstance(documents, CodedVectors):
        return dense.search(query_vectors, documents, depth=depth, candidates=candidates, threads=threads)
    coded, queries = documents, np.ascontiguousarray(query_vectors, dtype=np.float32)
    check_positive(depth=depth)
    if queries.ndim != 2 or queries.shape[1] != coded.dimensions:
        raise MirblabError(f"query vectors must be (n, {coded.dimensions}), found {queries.shape}")
    workers, wanted = threads or n_cores(), n_candidates(int(coded.starts[-1]), coded.dimensions, depth, coded.bits)
    width = max(_CELLS // max(1, min(len(queries), _QUERIES)), _STRIP)
    blocks = [
        (part, start + cut.start, cut)
        for part, start in zip(coded.parts, coded.starts.tolist(), strict=False)
        for cut in split_range(len(part.rows), width)
    ]
    planes, steps = quantise_queries(queries)
    spans = split_range(len(blocks), -(-len(blocks) // workers))

    def scan(job: tuple[slice, slice]) -> TopK:
        rows, span = job
        asked, best = np.arange(rows.start, rows.stop), TopK(rows.stop - rows.start, wanted, width)
        for part, start, cut in reversed(blocks[span]):
            scores = estimate_products(part.codes, part.factors, planes[rows], steps[rows], coded.dimensions, cut)
            docs = slice(start, start + cut.stop - cut.start)
            best.add(scores, start, None if candidates is None else partial(candidates.among, asked, docs))
        return best.trim()

    found = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))]
    with progress(len(queries), "search", "queries") as bar:
        for rows in split_range(len(queries), _QUERIES):  # the candidates of all queries would be many
            best = gather_blocks([rows], [run_in_threads(scan, [(rows, span) for span in spans], workers)])
            found.append(_rescore(queries, coded, best[0], best[1], depth, workers))
            if len(queries) > _QUERIES:  # the next ones read other rows, and all that were read would be many
                for part in coded.parts:
                    release_pages(part.rows)
            bar.update(rows.stop - rows.start)
    row, position, score = (np.concatenate(column) for column in zip(*found, strict=True))
    return row, position, score


def _rescore(
    queries: np.ndarray, coded: CodedVectors, rows: np.ndarray, positions: np.ndarray, depth: int, workers: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the *depth* best of the candidates, given as flat rows and positions, by their 16-bit rows."""
    bounds = query_bounds(rows)
    asked = rows[bounds[:-1]]
    pieces = max(1, workers // max(1, len(asked)))  # so that a query that is asked alone has all threads
    jobs = [
        (row, some)
        for row, own in zip(asked, np.split(positions, bounds[1:-1]), strict=False)
        for some in np.array_split(own, pieces)
    ]

    def score(job: tuple[int, np.ndarray]) -> np.ndarray:
        row, some = job
        # einsum, not @: its sum over a row does not depend on the other rows
        return np.sort(pack_keys(np.einsum("ij,j->i", coded.read(some), queries[row]), some))[:depth]

    found = run_in_threads(score, jobs, workers)
    kept = [np.sort(np.concatenate(found[at : at + pieces]))[:depth] for at in range(0, len(found), pieces)]
    scores, best = unpack_keys(np.concatenate([np.empty(0, np.uint64), *kept]))
    return np.repeat(asked, np.array([len(keys) for keys in kept], np.int64)), best, scores


def centre_sample(n: int) -> np.ndarray:
    """Return the positions of the texts, of *n*, whose mean vector is the centre, in ascending order."""
    return np.linspace(0, n - 1, min(n, CENTRE_FROM)).astype(int)


def codes_folder(store: VectorStore, bits: int) -> Path:
    """Return the folder for codes in so many *bits* of the vectors of a store."""
    return paths.cache() / "codes" / f"{store.path.name}-{bits}"


def encode_collection(
    folder: Path, space: Mapping[str, Any], texts: Sequence[str], bits: int, read: Callable[[Sequence[str]], np.ndarray]
) -> CodedVectors:
    """Return the codes of *texts*, whose vectors *read* returns; parts that *folder* has are not made again.

    A part is one file, named by all that determines it: *space*, bits, the centre, and its texts. So a stopped call
    continues, and processes that write at once write the same. At most `PART` vectors are in memory at a time.
    """
    if bits not in BITS or not len(texts):
        raise MirblabError(f"codes are of one or more texts in 1 or 2 bits; found {len(texts)} texts, {bits!r} bits")
    centre = read(texts_at(texts, centre_sample(len(texts)))).mean(axis=0, dtype=np.float64).astype(np.float32)
    made = json.dumps([FORMAT, space, bits], sort_keys=True).encode() + centre.tobytes()
    parts = []
    with progress(len(texts), "codes", "texts") as bar:
        for start in range(0, len(texts), PART):
            some = texts[start : start + PART]
            path = folder / f"{hashlib.blake2b(made + text_keys(some).tobytes(), digest_size=16).hexdigest()}{SUFFIX}"
            part = _open_part(path, bits)
            parts.append(_make_part(path, read(some), centre, bits) if part is None else part)
            bar.update(len(some))
    return CodedVectors(parts, bits)


def _make_part(path: Path, vectors: np.ndarray, centre: np.ndarray, bits: int) -> Part:
    """Return the part of *vectors* (n, d), stored at *path* where that is possible; MirblabError for wrong vectors."""
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise MirblabError(f"{len(bad)} vectors are not finite, the first in row {bad[0]}; search without code_bits")
    cuts = split_range(len(vectors), 1 << 13)
    made = run_in_threads(
        lambda cut: (*encode_vectors(vectors[cut], centre, bits), *round_rows(vectors[cut])), cuts, n_cores()
    )
    codes, factors, rows, steps = zip(*made, strict=True)
    part = Part(np.concatenate(codes, axis=1), np.concatenate(factors), np.concatenate(rows), np.concatenate(steps))
    arrays = (part.codes, part.factors, part.steps, part.rows)
    about = {"format": FORMAT, "codes": _digest(arrays[:3]), "rows": _digest(arrays[3:])}
    head = _head(about, len(part.codes), *vectors.shape)
    is_stored = atomic_files.try_to_store("codes", write_arrays, path, head, arrays)
    return (_open_part(path, bits) if is_stored else None) or part


def _head(about: dict[str, str], n_rows: int, n: int, dimensions: int) -> bytes:
    kinds = [
        ("codes", "U64", [n_rows, n]),
        ("factors", "F32", [n]),
        ("steps", "F32", [n]),
        ("rows", "I16", [n, dimensions]),
    ]
    return safetensors_head(about, kinds)


def _digest(arrays: Sequence[np.ndarray]) -> str:
    state = xxhash.xxh3_128()
    for array in arrays:
        state.update(np.ascontiguousarray(array).data)
    return state.hexdigest()


_THEN = "it is made again from the vectors"


def _open_part(path: Path, bits: int = 0, *, whole: bool = False) -> Part | None:
    """Return the part at *path*, or None if it is missing, or damaged and set aside with a warning.

    Head and codes are checked, the rows only with *whole*: reading them all would take longer than a search.
    """
    try:
        memory = map_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        head, fields = read_head(memory or io.BytesIO())
        about, (n_rows, n), (_, d) = fields["__metadata__"], fields["codes"]["shape"], fields["rows"]["shape"]
        is_whole = memory is not None and len(memory) == len(head) + fields["rows"]["data_offsets"][1]

        def array(name: str, dtype: type, *shape: int) -> np.ndarray:
            start = len(head) + fields[name]["data_offsets"][0]
            return np.frombuffer(memory or b"", dtype, math.prod(shape), start).reshape(shape)

        if is_whole:
            codes, rows = array("codes", np.uint64, n_rows, n), array("rows", np.int16, n, d)
            factors, steps = array("factors", np.float32, n), array("steps", np.float32, n)
    except (MirblabError, ValueError, KeyError, TypeError) as error:
        stored_files.set_aside(path, f"its head cannot be read: {error}", _THEN)
        return None
    if not is_whole:
        stored_files.set_aside(path, "it was cut", _THEN)
        return None
    is_right = _head(about, n_rows, n, d) == head and n_rows == (bits or n_rows // n_words(d)) * n_words(d)
    is_right = is_right and _digest([codes, factors, steps]) == about.get("codes")
    if not is_right or (whole and _digest([rows]) != about.get("rows")):
        stored_files.set_aside(path, "it differs from its checksum", _THEN)
        return None
    expect_single_rows(rows)
    return Part(codes, factors, rows, steps)


def verify(folder: Path) -> list[str]:
    """Check every part of every space in *folder*; set damaged ones aside; return a line for each problem."""
    wrong = []
    for space in stored_files.sound_paths(folder):
        for path in stored_files.sound_paths(space) if space.is_dir() else [space]:
            if path.suffix != SUFFIX or not path.is_file():
                wrong.append(stored_files.unknown_file_message(path))
            elif _open_part(path, whole=True) is None:
                wrong.append(f"{path} is damaged; {_THEN}")
    return wrong


class UnitVectors(VectorReader):
    """The vectors of many texts as `VectorReader` has them, but of length 1, so that inner products are cosines."""

    def read(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of some texts, in their order."""
        return dense.normalise(super().read(texts))


def load_vectors(
    model: Encoder, texts: Sequence[str], instruction: str, reader: type[VectorReader] = VectorReader
) -> np.ndarray | VectorReader:
    """Return the vectors of documents of these *texts*; of many texts in parts they are read as they are needed."""
    vectors = reader(model, texts, "document", instruction)
    is_large = isinstance(texts, StoredTexts) and len(texts) > dense.CHUNK_DOCS
    return vectors if is_large else vectors[:]


def load_documents(
    model: Encoder,
    texts: Sequence[str],
    instruction: str,
    bits: int = 0,
    reader: type[VectorReader] = VectorReader,
) -> np.ndarray | VectorReader | CodedVectors:
    """Return what `search` searches for documents of these *texts*: their vectors, float32 (n, d), or codes of *bits*.

    Codes are made, and stored below `paths.cache()`, once. Up to `SMALL` texts, and for 0 bits, vectors are returned.
    *reader* is `UnitVectors` for a search by cosines. An encoder whose vectors have length 1 has one set of codes.
    """
    if not bits or len(texts) <= SMALL:
        return load_vectors(model, texts, instruction, reader)
    is_scaled = reader is UnitVectors and not model.entry["normalise"]
    vectors = (reader if is_scaled else VectorReader)(model, texts, "document", instruction)
    space = vectors.store.space | ({"length": 1} if is_scaled else {})
    return encode_collection(codes_folder(vectors.store, bits), space, texts, bits, vectors.read)
