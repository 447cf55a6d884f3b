"""postings: the weights of terms in documents, arranged for the search of many queries in large collections."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mirblab.core import atomic_files, paths, stored_files
from mirblab.core.errors import MirblabError
from mirblab.core.mapped_files import map_file
from mirblab.core.processes import compiled, n_cores, run_in_threads, split_range
from mirblab.core.terminal import progress
from mirblab.core.text_files import read_json
from mirblab.data.candidates import Candidates
from mirblab.data.ranking import query_bounds, sort_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROWS = 32  # queries in one compiled loop
PART_DOCS = 1 << 15  # documents in a part, at most 2^16: their scores stay in a core's cache
COMMON_SHARE = 1 / 8  # a term in this share of all documents has a code for each document instead of postings
FORMAT = 2  # of stored postings; raised by one when their files change
MANIFEST = "manifest.json"
COUNTS = ".counts"  # the end of the name of a folder with counts for an index that is not finished
LEAST_SLACK = 1 << 10  # documents kept for a query, beside three times the depth, before the worst are dropped
_CODES = 127
_ROUNDING = 2.0**-22  # four times that of one float32 operation


@dataclass(frozen=True)
class Part:
    """The weights of successive documents, from position `start` of the collection on, by document and by term.

    Document i has the `terms` and `weights` from `rows[i]` to `rows[i + 1]`. The rare term `rare_terms[p]` is in the
    documents `docs[starts[p]:starts[p + 1]]`, counted from `start`, with the weights `by_term`; a last place p, of
    terms that no document has, is empty. The common term c has the weight `scales[c] * codes[c]`, shape (n_common,
    n_docs), int8, rounded up, so that it is at most `scales[c]` too large.
    """

    start: int
    rows: np.ndarray
    terms: np.ndarray
    weights: np.ndarray
    rare_terms: np.ndarray
    starts: np.ndarray
    docs: np.ndarray
    by_term: np.ndarray
    codes: np.ndarray
    scales: np.ndarray

    def __post_init__(self) -> None:
        """Let nobody write to the arrays, as to those on disk: a loop is compiled once for both."""
        for name in _ARRAYS:
            array = getattr(self, name).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def n_docs(self) -> int:
        """Return the number of the part's documents."""
        return len(self.rows) - 1

    def find_places(self, terms: np.ndarray) -> np.ndarray:
        """Return the places of rare *terms* in `starts`, the last one for those that no document has."""
        places = np.searchsorted(self.rare_terms, terms)
        is_own = places < len(self.rare_terms)
        is_own[is_own] = self.rare_terms[places[is_own]] == terms[is_own]
        return np.where(is_own, places, len(self.rare_terms))


_ARRAYS = [field.name for field in fields(Part)][1:]


def query_matrix(rows: Sequence[Sequence[tuple[int, float]]], n_terms: int) -> csr_array:
    """Return the terms of queries, each with its count or weight, as a sparse float32 matrix (n_queries, *n_terms*)."""
    from scipy.sparse import csr_array

    terms = np.array([term for row in rows for term, _ in row], dtype=np.int32)
    data = np.array([number for row in rows for _, number in row], dtype=np.float32)
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    return csr_array((data, terms, starts), shape=(len(rows), n_terms))


def find_common(document_counts: np.ndarray, n_docs: int) -> np.ndarray:
    """Return the terms that are in so many of the *n_docs* documents that a code for each of them is cheaper."""
    return np.flatnonzero((document_counts >= COMMON_SHARE * n_docs) & (document_counts > 0))


def split_into_parts(weights: csr_array, common: np.ndarray) -> Iterator[Part]:
    """Yield the parts of all documents, sparse float32 (n_docs, n_terms), the last documents first."""
    for docs in reversed(split_range(weights.shape[0], PART_DOCS)):
        rows = weights.indptr[docs.start : docs.stop + 1]
        yield make_part(docs.start, rows, weights.indices, weights.data, common, weights.shape[1])


def make_part(
    start: int, rows: np.ndarray, terms: np.ndarray, weights: np.ndarray, common: np.ndarray, n_terms: int
) -> Part:
    """Return the part of documents that have the *terms* and *weights* between *rows*, see `Part`."""
    from scipy.sparse import csr_array

    own = slice(int(rows[0]), int(rows[-1]))
    columns = csr_array((weights[own], terms[own], rows - rows[0]), shape=(len(rows) - 1, n_terms)).tocsc()
    is_rare = np.ones(len(columns.data), dtype=bool)
    codes = np.zeros((len(common), len(rows) - 1), dtype=np.int8)
    scales = np.ones(len(common), dtype=np.float32)
    for number, term in enumerate(common.tolist()):
        postings = slice(*columns.indptr[term : term + 2].tolist())
        largest = np.abs(columns.data[postings]).max(initial=0)
        if largest > 0:
            scales[number] = largest / _CODES
        codes[number, columns.indices[postings]] = np.minimum(np.ceil(columns.data[postings] / scales[number]), _CODES)
        is_rare[postings] = False
    counts = np.diff(columns.indptr)
    counts[common] = 0
    rare_terms = np.flatnonzero(counts).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(counts[rare_terms]), [counts.sum()]]).astype(np.int32)
    docs = columns.indices[is_rare].astype(np.uint16)
    return Part(start, rows, terms, weights, rare_terms, starts, docs, columns.data[is_rare], codes, scales)


class Shortlist:
    """The documents of each query that may be among its *k* best, by scores that are too large by up to *margin*."""

    def __init__(self, k: int, floor: np.ndarray, margin: np.ndarray) -> None:
        """Only scores above *floor* are taken; it and *margin* have a value for each query."""
        self.k, self.floor, self.margin = k, floor.astype(np.float32), margin.astype(np.float32)
        self.counts = np.zeros(len(floor), dtype=np.int64)
        self.docs = np.empty((len(floor), 3 * k + LEAST_SLACK), dtype=np.int64)
        self.scores = np.empty(self.docs.shape, dtype=np.float32)

    def add(self, scores: np.ndarray, start: int, cells: np.ndarray) -> None:
        """Take those of *scores*, (n_queries, n_docs), at the flat positions *cells*; *start* is the first document."""
        n_taken, state = np.zeros(1, dtype=np.int64), (self.floor, self.margin, self.counts)
        bounds = cells.searchsorted(np.arange(len(scores) + 1) * scores.shape[1])
        while n_taken[0] < len(cells):
            compiled(_keep)(scores, start, cells, bounds, self.k, *state, self.docs, self.scores, n_taken)
            if n_taken[0] < len(cells):  # so many documents are nearly equal
                self.docs = np.concatenate([self.docs, np.empty_like(self.docs)], axis=1)
                self.scores = np.concatenate([self.scores, np.empty_like(self.scores)], axis=1)

    def flat(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (rows, positions), flat, by row, of all documents that may be among the best."""
        for row in np.flatnonzero(self.counts > self.k):
            kth = np.partition(self.scores[row, : self.counts[row]], -self.k)[-self.k]
            self.floor[row] = max(self.floor[row], kth - self.margin[row])
        is_kept = np.arange(self.docs.shape[1]) < self.counts[:, None]
        rows, columns = np.nonzero(is_kept & (self.scores > self.floor[:, None]))
        return rows, self.docs[rows, columns]


@dataclass(frozen=True)
class Postings:
    """The parts of a collection, the last one first, with their common terms and the range of all weights."""

    n_docs: int
    parts: list[Part]
    common: np.ndarray
    lowest: float
    highest: float

    @classmethod
    def of(cls, weights: csr_array, document_counts: np.ndarray) -> Postings:
        """Return the postings of sparse *weights*, (n_docs, n_terms); *document_counts* are those of each term."""
        common = find_common(document_counts, weights.shape[0])
        parts = list(split_into_parts(weights, common))
        lowest, highest = weights.data.min(initial=0), weights.data.max(initial=0)
        return cls(weights.shape[0], parts, common, float(lowest), float(highest))

    def search(
        self, counts: csr_array, constant: np.ndarray, depth: int, candidates: Candidates | None, label: str
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (rows, positions, scores) of the *depth* best documents of queries, best first.

        *counts* are those of `TermIndex.search_weights`; *constant* is what each query gives to a document without a
        shared term. Scores are first computed with the codes of the common terms, which make them too large by a known
        margin; those that may be among the best are then computed from the weights, term after term as the query has
        them, so that they do not depend on the parts.
        """
        blocks = split_range(counts.shape[0] if self.parts else 0, ROWS)
        empty = np.empty(0, np.int64)
        columns = [(empty, empty, np.empty(0, np.float32))]
        with progress(counts.shape[0], label, "queries") as bar:

            def search_block(block: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
                queries = np.arange(block.start, block.stop)
                rows, positions = self._shortlist(counts[block], constant[block], queries, depth, candidates)
                scores = self.score_exactly(counts[block], rows, positions) + constant[block][rows]
                is_above = scores > constant[block][rows]
                ordered = sort_rows(rows[is_above], positions[is_above], scores[is_above])
                bounds = query_bounds(ordered[0])
                places = np.arange(len(ordered[0])) - np.repeat(bounds[:-1], np.diff(bounds))
                rows, positions, scores = (column[places < depth] for column in ordered)
                bar.update(len(queries))
                return rows + block.start, positions, scores

            columns += run_in_threads(search_block, blocks, n_cores())
        rows, positions, scores = (np.concatenate(column) for column in zip(*columns, strict=True))
        return rows, positions, scores

    def _shortlist(
        self, counts: csr_array, constant: np.ndarray, queries: np.ndarray, depth: int, candidates: Candidates | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (rows, positions), by row, of the documents that may be among the *depth* best of a few queries."""
        common_of = np.full(counts.shape[1], -1, dtype=np.int32)
        common_of[self.common] = np.arange(len(self.common))
        numbers = common_of[counts.indices]
        is_common = numbers >= 0
        common_rows, rare_rows = (_running_sum(kept)[counts.indptr] for kept in (is_common, ~is_common))
        common, common_times = numbers[is_common], counts.data[is_common]
        rare, rare_times = counts.indices[~is_common], counts.data[~is_common]
        margin, floor = self._margins(counts, constant, common_rows, common, common_times)
        width = max(part.n_docs for part in self.parts)
        best = Shortlist(depth, floor, margin)
        buffer, cells = np.empty(len(queries) * width, np.float32), np.empty(len(queries) * width, np.int64)
        n_found = np.zeros(1, dtype=np.int64)
        for part in self.parts:
            scores = buffer[: len(queries) * part.n_docs].reshape(len(queries), part.n_docs)
            factors = common_times * part.scales[common]
            of_rare = rare_rows, part.find_places(rare), rare_times
            postings = part.starts, part.docs, part.by_term, part.codes
            compiled(_score)(*of_rare, common_rows, common, factors, *postings, best.floor, scores, cells, n_found)
            above = cells[: n_found[0]]
            if candidates is not None and len(above):
                above = candidates.among(queries, slice(part.start, part.start + part.n_docs), above)
            best.add(scores, part.start, above)
        return best.flat()

    def _margins(
        self, counts: csr_array, constant: np.ndarray, rows: np.ndarray, common: np.ndarray, times: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return by how much each query's scores may be too large, and above which a document may be returned."""
        scales = np.max([part.scales for part in self.parts], axis=0, initial=0)
        sizes, summed = _running_sum(np.abs(times) * scales[common]), _running_sum(np.abs(counts.data))
        n_terms = np.diff(counts.indptr) + 4
        largest = np.diff(summed[counts.indptr]) * max(abs(self.lowest), abs(self.highest)) + np.abs(constant)
        margin = np.diff(sizes[rows]) + _ROUNDING * n_terms * largest
        has_negative = self.lowest < 0 or counts.data.min(initial=0) < 0
        return margin, -margin if has_negative else np.zeros(len(margin))

    def score_exactly(self, counts: csr_array, rows: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return the scores of pairs of a row of *counts*, ascending, and a document: sums in the query's order."""
        scores = np.empty(len(rows), dtype=np.float32)
        for part in self.parts:
            pairs = np.flatnonzero((positions >= part.start) & (positions < part.start + part.n_docs))
            documents = part.rows, part.terms, part.weights
            query = counts.indptr, counts.indices, counts.data
            places = np.zeros(counts.shape[1], dtype=np.int32)
            out = np.empty(len(pairs) + 1, dtype=np.float32)
            compiled(_score_pairs)(*query, rows[pairs], positions[pairs] - part.start, *documents, places, out)
            scores[pairs] = out[:-1]
        return scores


class PostingsWriter:
    """Writes postings to a new folder, in parts: first the counts of all, then the weights that follow from them.

    It works in an unfinished folder beside the new one, which gets its name at the end, and is removed on failure. With
    *goes_on* the counts are in a folder beside it, which stays on failure: the next writer, of the same documents, has
    them already.
    """

    def __init__(self, folder: str | Path, *, goes_on: bool = False) -> None:
        self.folder, self.goes_on = Path(folder), goes_on
        if self.folder.exists():
            raise MirblabError(f"{self.folder} exists; name a new folder for the index, or remove this one")
        self.unfinished = atomic_files.unfinished_name(self.folder)
        self.counted = self.folder.with_name(f"{self.folder.name}{COUNTS}") if goes_on else self.unfinished / "counts"
        self.files: list[dict[str, Any]] = []
        self.n_counted, self.n_docs = 0, 0

    def __enter__(self) -> PostingsWriter:
        """Make the unfinished folder, and remove what a killed writer of the same index has left."""
        atomic_files.make_folder(self.unfinished)
        for path in self.folder.parent.iterdir():
            if path.name.endswith(f".partial.{self.folder.name}") and atomic_files.is_abandoned(path):
                atomic_files.remove_path(path)
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove the unfinished folder, if it is still there, and the counts of a finished index."""
        atomic_files.remove_path(self.unfinished)
        if self.goes_on and self.folder.is_dir() and self.counted.is_dir():
            atomic_files.remove_path(self.counted)

    def earlier_counts(self) -> Iterator[tuple[csr_array, np.ndarray, list[str]]]:
        """Yield what an earlier writer has kept, in order, each with the terms that are new in it."""
        while (counts := self._read_counts(self.n_counted)) is not None:
            self.n_counted += 1
            yield counts

    def keep_counts(self, frequencies: csr_array, lengths: np.ndarray, new_terms: list[str]) -> None:
        """Store term frequencies, (n_docs, n_terms), and lengths of the next documents, at most 2^16."""
        starts, terms, content = frequencies.indptr, frequencies.indices, io.BytesIO()
        names = np.frombuffer(json.dumps(new_terms).encode(), np.uint8)
        np.savez(content, starts=starts, terms=terms, frequencies=frequencies.data, lengths=lengths, names=names)
        stored_files.write_sealed(self.counted, f"counts-{self.n_counted:05}", ".npz", content.getbuffer())
        self.n_counted += 1

    def counts(self, n_terms: int) -> Iterator[tuple[csr_array, np.ndarray]]:
        """Yield the counts of all documents, in order; *n_terms* is the number of all terms."""
        from scipy.sparse import csr_array

        for number in range(self.n_counted):
            counts = self._read_counts(number)
            if counts is None:
                raise MirblabError(f"{self.counted} lost the counts of part {number}; build the index again")
            frequencies, lengths, _ = counts
            parts = frequencies.data, frequencies.indices, frequencies.indptr
            yield csr_array(parts, shape=(len(lengths), n_terms)), lengths

    def _read_counts(self, number: int) -> tuple[csr_array, np.ndarray, list[str]] | None:
        from scipy.sparse import csr_array

        for path in sorted(self.counted.glob(f"counts-{number:05}-*.npz")):
            content = stored_files.read_sealed(path, "its documents are counted again")
            if content is not None:
                with np.load(io.BytesIO(content)) as file:
                    rows, lengths = (file["frequencies"], file["terms"], file["starts"]), file["lengths"]
                    n_terms = int(file["terms"].max(initial=-1)) + 1
                    names = json.loads(file["names"].tobytes())
                return csr_array(rows, shape=(len(lengths), n_terms)), lengths, names
        return None

    def add(self, weights: csr_array, common: np.ndarray) -> None:
        """Store the weights, (n_docs, n_terms), of the next documents; *common* are the common terms of all."""
        part = make_part(0, weights.indptr, weights.indices, weights.data, common, weights.shape[1])
        bounds = [float(weights.data.min(initial=0)), float(weights.data.max(initial=0))]
        notes = {"start": self.n_docs, "bounds": bounds}
        self._write(f"part-{len(self.files):05}", [getattr(part, name) for name in _ARRAYS], notes)
        self.common, self.n_docs = common, self.n_docs + part.n_docs

    def finish(self, terms: list[str], absent: np.ndarray) -> None:
        """Store the names of the terms and what each adds to documents without it, and name the folder."""
        common = self.common if self.n_docs else np.empty(0, dtype=np.int64)
        self._write("terms", [common, absent, np.frombuffer(json.dumps(terms).encode(), dtype=np.uint8)])
        manifest = {"format": FORMAT, "n_docs": self.n_docs, "files": self.files}
        atomic_files.write_text(self.unfinished / MANIFEST, json.dumps(manifest, indent=1))
        if not self.goes_on:
            atomic_files.remove_path(self.counted)
        atomic_files.flush_tree(self.unfinished)
        with atomic_files.writing(self.folder):
            atomic_files.rename_path(self.unfinished, self.folder)
            atomic_files.flush_folder(self.folder.parent)

    def _write(self, stem: str, arrays: list[np.ndarray], notes: dict[str, Any] | None = None) -> None:
        """Write the arrays into one file, each from a multiple of 64 bytes on, and note where they are."""
        digest, end, layout = hashlib.blake2b(digest_size=16), 0, []
        with atomic_files.open_to_write(self.unfinished / f"{stem}.bin") as file:
            for array in arrays:
                layout.append({"dtype": array.dtype.str, "shape": array.shape, "offset": end})
                content = np.ascontiguousarray(array).tobytes()
                content += bytes(-len(content) % 64)
                with atomic_files.writing(self.folder, len(content)):
                    file.write(content)
                digest.update(content)
                end += len(content)
        about = {"name": f"{stem}.bin", "n_bytes": end, "digest": digest.hexdigest(), "arrays": layout}
        self.files.append(about | (notes or {}))


def open_postings(folder: str | Path) -> tuple[Postings, list[str], np.ndarray]:
    """Return the postings in *folder*, the terms, and what each adds to documents without it.

    The arrays of the parts are mapped into memory and read when they are used; the terms, and where the arrays lead to
    places in others, are checked before, once in a process. MirblabError when the folder has no postings, when a file
    is missing or has another size than the manifest says, and when a check fails; OpenFilesError for too many parts.
    """
    folder = Path(folder)
    manifest = _read_manifest(folder)
    *files, last = manifest["files"]
    try:
        common, absent, names = _map_arrays(folder, last)
        _check_once(folder / last["name"], lambda: paths.content_digest(folder / last["name"]).hex() == last["digest"])
        terms = json.loads(names.tobytes().rstrip(b"\0"))
        parts = []
        for file in reversed(files):
            part = Part(file["start"], **dict(zip(_ARRAYS, _map_arrays(folder, file), strict=True)))
            _check_once(folder / file["name"], partial(_is_sound, part, len(common)))
            parts.append(part)
    except MirblabError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise MirblabError(f"{folder / MANIFEST} is damaged ({error}); build the index again") from error
    lowest = min((file["bounds"][0] for file in files), default=0.0)
    highest = max((file["bounds"][1] for file in files), default=0.0)
    return Postings(manifest["n_docs"], parts, common, lowest, highest), terms, absent


_checked: set[tuple[Path, int, int]] = set()  # path, size and time of change of files that were found in order


def _check_once(path: Path, is_sound: Callable[[], bool]) -> None:
    facts = path.stat()
    key = path.absolute(), facts.st_size, facts.st_mtime_ns
    if key not in _checked:
        if not is_sound():
            raise MirblabError(f"{path} is damaged; remove the folder and build the index again")
        _checked.add(key)


def _is_sound(part: Part, n_common: int) -> bool:
    """Return whether no loop over the postings of a part, compiled without such checks, leaves an array.

    The terms of the documents, the largest array, are not read: `_score_pairs` passes over those that are none.
    """

    def ascend(bounds: np.ndarray, last: int) -> bool:
        return bool(bounds[0] == 0 and bounds[-1] == last and (bounds[1:] >= bounds[:-1]).all())

    return (
        (len(part.weights), len(part.by_term), len(part.scales)) == (len(part.terms), len(part.docs), n_common)
        and part.codes.shape == (n_common, part.n_docs)
        and len(part.starts) == len(part.rare_terms) + 2
        and bool((np.diff(part.rare_terms) > 0).all())
        and ascend(part.rows, len(part.terms))
        and ascend(part.starts, len(part.docs))
        and bool(part.docs.max(initial=0) < part.n_docs)
    )


def find_damage(folder: str | Path) -> list[str]:
    """Return a line for each file of the postings in *folder* whose bytes are not those that were written."""
    folder, problems = Path(folder), []
    for file in _read_manifest(folder)["files"]:
        if paths.content_digest(folder / file["name"]).hex() != file["digest"]:
            problems.append(f"{folder / file['name']} is damaged; remove the folder and build the index again")
    return problems


def verify(folder: Path) -> list[str]:
    """Check every index in *folder*, and set damaged ones aside; return a line for each problem and unknown file."""
    lines = []
    for path in stored_files.sound_paths(folder):
        if path.name.endswith(COUNTS):
            continue  # each file is checked when the build goes on
        if not (path / MANIFEST).is_file():
            lines.append(stored_files.unknown_file_message(path))
            continue
        try:
            damage = find_damage(path)
        except MirblabError as error:
            damage = [str(error)]
        if damage:
            stored_files.set_aside(path, damage[0], "it is built again")
        lines += damage
    return lines


def older(folder: Path) -> list[tuple[Path, int]]:
    """Return the counts in *folder* of indexes that nobody is building, each counted as one."""
    found = list(folder.iterdir())
    building = {path.name.rpartition(".partial.")[2] for path in found if _may_be_written(path)}
    return [(path, 1) for path in sorted(found) if path.suffix == COUNTS and path.stem not in building]


def _may_be_written(path: Path) -> bool:
    return atomic_files.is_unfinished(path) and not atomic_files.is_abandoned(path)


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise MirblabError(f"{folder} has no {MANIFEST}, so that it is no index; build one with bm25.build_index")
    manifest: dict[str, Any] = read_json(path)
    if manifest.get("format") != FORMAT:
        raise MirblabError(
            f"{path}: this version reads format {FORMAT}, found {manifest.get('format')}; build it again"
        )
    for file in manifest["files"]:
        part = folder / file["name"]
        size = part.stat().st_size if part.is_file() else -1
        if size != file["n_bytes"]:
            found = "it is missing" if size < 0 else f"found {size:,} bytes"
            raise MirblabError(f"{part} should have {file['n_bytes']:,} bytes, {found}; build the index again")
    return manifest


def _map_arrays(folder: Path, file: dict[str, Any]) -> list[np.ndarray]:
    """Return the arrays of a file, mapped into memory."""
    content, arrays = np.frombuffer(map_file(folder / file["name"]) or b"", np.uint8), []
    for about in file["arrays"]:
        dtype, shape = np.dtype(about["dtype"]), tuple(about["shape"])
        own = content[about["offset"] : about["offset"] + dtype.itemsize * math.prod(shape)]
        arrays.append(own.view(dtype).reshape(shape))
    return arrays


def _running_sum(values: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(values, dtype=np.float64 if values.dtype.kind == "f" else np.int64)])


def _score(
    rows: np.ndarray,
    places: np.ndarray,
    times: np.ndarray,
    common_rows: np.ndarray,
    common: np.ndarray,
    factors: np.ndarray,
    starts: np.ndarray,
    docs: np.ndarray,
    by_term: np.ndarray,
    codes: np.ndarray,
    floor: np.ndarray,
    scores: np.ndarray,
    cells: np.ndarray,
    n_found: np.ndarray,
) -> None:
    """Fill *scores*, (n_rows, n_docs), and *cells* with the flat positions of the scores above each row's *floor*."""
    found, n_docs = 0, scores.shape[1]
    for row in range(len(rows) - 1):
        own = scores[row]
        own[:] = 0
        for at in range(rows[row], rows[row + 1]):
            place, count = places[at], times[at]
            for posting in range(starts[place], starts[place + 1]):
                own[docs[posting]] += count * by_term[posting]
        place, last = common_rows[row], common_rows[row + 1]
        while place + 4 <= last:  # four terms at a time: each score is read and written once for them
            a, b, c, d = common[place], common[place + 1], common[place + 2], common[place + 3]
            one, two, three, four = codes[a], codes[b], codes[c], codes[d]
            p, q, r, s = factors[place], factors[place + 1], factors[place + 2], factors[place + 3]
            for doc in range(n_docs):
                first_two = p * np.float32(one[doc]) + q * np.float32(two[doc])
                own[doc] += first_two + (r * np.float32(three[doc]) + s * np.float32(four[doc]))
            place += 4
        while place < last:
            one, p = codes[common[place]], factors[place]
            for doc in range(n_docs):
                own[doc] += p * np.float32(one[doc])
            place += 1
        least = floor[row]
        for begin in range(0, n_docs, 32):
            block, is_any = own[begin : min(begin + 32, n_docs)], 0
            for at in range(len(block)):
                is_any |= block[at] > least
            if is_any:
                for at in range(len(block)):
                    if block[at] > least:
                        cells[found] = row * n_docs + begin + at
                        found += 1
    n_found[0] = found


def _keep(
    scores: np.ndarray,
    start: int,
    cells: np.ndarray,
    bounds: np.ndarray,
    k: int,
    floor: np.ndarray,
    margin: np.ndarray,
    counts: np.ndarray,
    kept_docs: np.ndarray,
    kept_scores: np.ndarray,
    n_taken: np.ndarray,
) -> None:
    """Append the scores at *cells* that are above their row's *floor*; a full row raises its floor and is cut.

    The cells of a row are those between its *bounds*. *n_taken* counts the cells of all rows; it stays behind their
    number when a row is full of documents that may be among its best.
    """
    n_docs, room = scores.shape[1], kept_docs.shape[1]
    for row in range(len(scores)):
        own, docs, count, least = kept_scores[row], kept_docs[row], counts[row], floor[row]
        for place in range(max(n_taken[0], bounds[row]), bounds[row + 1]):
            doc = cells[place] - row * n_docs
            score = scores[row, doc]
            if score > least and count == room:
                least, count = max(least, np.partition(own, room - k)[room - k] - margin[row]), 0
                for at in range(room):
                    if own[at] > least:
                        own[count], docs[count] = own[at], docs[at]
                        count += 1
                counts[row], floor[row] = count, least
                if count > room - k:
                    return
            if score > least:
                own[count], docs[count] = score, start + doc
                count += 1
            n_taken[0] = place + 1
        counts[row] = count


def _score_pairs(
    starts: np.ndarray,
    terms: np.ndarray,
    times: np.ndarray,
    rows: np.ndarray,
    docs: np.ndarray,
    doc_starts: np.ndarray,
    doc_terms: np.ndarray,
    doc_weights: np.ndarray,
    places: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Fill *scores* for pairs of rows, ascending, and documents; *places*, 0 for each term, is left as it was."""
    row, first, last, ahead = -1, 0, 0, np.float32(0)
    weights = np.zeros(1, dtype=np.float32)
    for pair in range(len(rows)):
        if pair % 32 == 0:  # touch what the next pairs need: the processor then waits for many reads at a time
            for later in range(pair, min(pair + 32, len(rows))):
                for at in range(doc_starts[docs[later]], doc_starts[docs[later] + 1], 16):
                    ahead += doc_weights[at] + np.float32(doc_terms[at])
        if rows[pair] != row:
            for at in range(first, last):
                places[terms[at]] = 0
            row = rows[pair]
            first, last = starts[row], starts[row + 1]
            for at in range(first, last):
                places[terms[at]] = at - first + 1
            weights = np.zeros(last - first + 1, dtype=np.float32)
        weights[:] = 0
        for at in range(doc_starts[docs[pair]], doc_starts[docs[pair] + 1]):
            term = doc_terms[at]
            if 0 <= term < len(places):  # what was read from a damaged file could lead anywhere
                weights[places[term]] = doc_weights[at]  # at 0 what the query does not ask for
        score = np.float32(0)
        for at in range(first, last):
            score += times[at] * weights[places[terms[at]]]  # a term that the query repeats has one place
        scores[pair] = score
    scores[len(rows)] = ahead  # without a use of it the compiler would leave the reads out
    for at in range(first, last):
        places[terms[at]] = 0
