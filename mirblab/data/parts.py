"""parts: a corpus in Parquet parts under a manifest, whose texts are read as they are needed."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, overload

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray, ExtensionDtype

from mirblab.core import text_files
from mirblab.core.errors import MirblabError

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER, MANIFEST = "corpus", "manifest.json"
FORMAT = 1  # of the manifest and the parts; raised by one when they change
_KEPT_GROUPS = 64  # columns of row groups that stay in memory
_KEPT_FILES = 32  # parts that stay open
_BLOCK = 1 << 14  # texts, in memory or at any positions, that are handled together
AGAIN = "copy the folder again, or build, add or convert the collection anew"


class Document(NamedTuple):
    """A document as it is stored: `order` and `tags` where it has them, and in `rest` (JSON) its other fields."""

    doc_id: str
    title: str
    text: str
    order: int | None = None
    tags: list[str] | None = None
    rest: str = ""


class Parts:
    """The parts of a corpus, opened by their manifest; a text is read when it is asked for.

    `n_docs` documents are ordered by id, whatever the parts; `content`, a digest of ids, titles and texts, does not
    depend on how they are cut; `oddities` are the counts of `TextOddities`, `n_words` are the words of all titles and
    texts, separated by white space; `columns` are those that some document has.
    """

    def __init__(self, folder: Path) -> None:
        """Read the manifest and the footers of the parts; MirblabError names a file that is missing or damaged."""
        self.folder = Path(folder)
        manifest = _read_manifest(self.folder)
        self.n_docs: int = manifest["n_docs"]
        self.content: str = manifest["content"]
        self.columns: list[str] = manifest["columns"]
        self.oddities: dict[str, int] = manifest["oddities"]
        self.n_words: int = manifest["n_words"]
        self.files: list[dict[str, Any]] = manifest["parts"]
        self.groups: list[tuple[int, int]] = []  # part and number in it, for each row group of the corpus
        self.starts = [0]  # the first document of each row group, and the number of all
        for number, about in enumerate(self.files):
            with _open_part(self.folder / about["name"], about["footer"], about["n_bytes"]) as file:
                footer = file.metadata
            for group in range(footer.num_row_groups):
                self.groups.append((number, group))
                self.starts.append(self.starts[-1] + footer.row_group(group).num_rows)
        if self.starts[-1] != self.n_docs:
            raise MirblabError(
                f"{self.folder} has {self.starts[-1]:,} documents, and {MANIFEST} says {self.n_docs:,}; {AGAIN}"
            )
        self._group = lru_cache(_KEPT_GROUPS)(self._read_group)

    def __reduce__(self) -> tuple[Callable[[Path], Parts], tuple[Path]]:
        """Pickle the folder only: another process opens the files itself."""
        return Parts, (self.folder,)

    def digests(self) -> dict[Path, str]:
        """Return the BLAKE2b digest of each part when it was written, in the form of `digests.txt`."""
        return {self.folder / about["name"]: about["digest"] for about in self.files}

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a whole column; it is for ids and orders, which fit in memory."""
        import pyarrow as pa

        chunks = [self._read_group(group, name) for group in range(len(self.groups))]
        return pa.chunked_array(chunks, None if chunks else pa.string())

    def batches(self, name: str, start: int, stop: int) -> Iterator[pa.Array]:
        """Yield a column from document *start* to *stop*, one row group after the other."""
        group = bisect_right(self.starts, start) - 1
        while start < stop:
            end = min(stop, self.starts[group + 1])
            whole = self._group(group, name)
            yield whole.slice(start - self.starts[group], end - start)
            start, group = end, group + 1

    def take(self, name: str, positions: np.ndarray) -> list[Any]:
        """Return a column's values at some positions, in their order; each row group is read once."""
        import pyarrow as pa

        groups = np.searchsorted(self.starts, positions, side="right") - 1
        values: list[Any] = [None] * len(positions)
        order = np.argsort(groups, kind="stable")
        bounds = np.flatnonzero(np.diff(groups[order], prepend=-1, append=-1))
        for first, last in pairwise(bounds.tolist()):
            places = order[first:last]
            group = int(groups[places[0]])
            inside = pa.array(positions[places] - self.starts[group])
            for place, value in zip(places.tolist(), self._group(group, name).take(inside).to_pylist(), strict=True):
                values[place] = value
        return values

    def _read_group(self, group: int, name: str) -> pa.Array:
        import pyarrow as pa

        part, number = self.groups[group]
        about = self.files[part]
        path = self.folder / about["name"]
        try:
            file, lock = _kept_part(path, about["footer"], about["n_bytes"])
            with lock:
                table = file.read_row_group(number, columns=[name])
        except (OSError, pa.ArrowException) as error:
            raise MirblabError(f"{path} is damaged ({str(error)[:120]}); {AGAIN}") from error
        array = table.column(0).combine_chunks()
        return array.chunk(0) if isinstance(array, pa.ChunkedArray) else array


class PartsDtype(ExtensionDtype):
    """The type of a column whose values lie in the parts of a corpus."""

    name = "parts"
    type: ClassVar[Any] = str
    na_value = None

    @classmethod
    def construct_array_type(cls) -> Any:
        """Return the class of the columns."""
        return PartsColumn


class PartsColumn(ExtensionArray):
    """A column of a table that is read from the parts as it is needed: title, text or tags, at some *positions*.

    Slices, masks and lists of positions give such a column again; `to_list()` or `astype("str")` reads it all.
    """

    def __init__(self, parts: Parts, name: str, positions: range | np.ndarray | None = None) -> None:
        self.parts, self.name = parts, name
        self.positions = range(parts.n_docs) if positions is None else positions

    @classmethod
    def _from_sequence(cls, scalars: Any, *, dtype: Any = None, copy: bool = False) -> Any:
        return pd.array(list(scalars), dtype="str" if all(isinstance(one, str) for one in scalars) else object)

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[PartsColumn]) -> Any:
        return cls._from_sequence(list(chain.from_iterable(to_concat)))

    @property
    def dtype(self) -> PartsDtype:
        """Return the type."""
        return PartsDtype()

    @property
    def nbytes(self) -> int:
        """Return the bytes in memory, which are those of the positions."""
        return self.positions.nbytes if isinstance(self.positions, np.ndarray) else 0

    @property
    def is_whole(self) -> bool:
        """Return whether this is the column of all documents, in their order."""
        return self.positions == range(self.parts.n_docs) if isinstance(self.positions, range) else False

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self.positions)

    def __getitem__(self, item: Any) -> Any:
        """Return the value at a position, or the column of a slice, a mask or a list of positions."""
        if isinstance(item, (int, np.integer)):
            position = int(self.positions[int(item)])
            return next(self.parts.batches(self.name, position, position + 1))[0].as_py()
        if isinstance(item, slice):
            return PartsColumn(self.parts, self.name, self.positions[item])
        item = pd.api.indexers.check_array_indexer(self, item)
        if not isinstance(self.positions, range):
            return PartsColumn(self.parts, self.name, np.asarray(self.positions, dtype=np.int64)[item])
        item = np.flatnonzero(item) if item.dtype == bool else item
        # without all positions in an array, which would take longer than a few texts
        places = np.where(item < 0, item + len(self), item).astype(np.int64)
        if ((places < 0) | (places >= len(self))).any():
            raise IndexError(f"a position is outside of the {len(self):,} values")
        return PartsColumn(self.parts, self.name, self.positions.start + self.positions.step * places)

    def __iter__(self) -> Iterator[Any]:
        """Yield the values, reading each row group once where they are in the documents' order."""
        if isinstance(self.positions, range) and self.positions.step == 1:
            for batch in self.batches():
                yield from batch.to_pylist()
        else:
            positions = np.asarray(self.positions, dtype=np.int64)
            for start in range(0, len(positions), _BLOCK):
                yield from self.parts.take(self.name, positions[start : start + _BLOCK])

    def batches(self) -> Iterator[pa.Array]:
        """Yield the values of successive documents as arrays of Arrow."""
        if isinstance(self.positions, range) and self.positions.step == 1:
            yield from self.parts.batches(self.name, self.positions.start, self.positions.stop)
        else:
            import pyarrow as pa

            yield pa.array(list(self))

    def __eq__(self, other: object) -> Any:
        """Compare value by value."""
        return np.asarray(self.astype(object)) == np.asarray(other, dtype=object)

    def isna(self) -> np.ndarray:
        """Return where there is no value; only tags may be missing."""
        if self.name != "tags":
            return np.zeros(len(self), dtype=bool)
        return np.fromiter((value is None for value in self), bool, len(self))

    def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> Any:
        """Return the column of some positions; with missing ones (-1 and *allow_fill*) its values, read."""
        indices = np.asarray(indices, dtype=np.int64)
        if allow_fill and (indices < 0).any():
            return self._from_sequence(self).take(indices, allow_fill=True, fill_value=fill_value)
        return self[indices]

    def copy(self) -> PartsColumn:
        """Return the same column; the parts are never changed."""
        return self[:]


class StoredTexts(Sequence[str]):
    """Texts that are read as they are needed, some at a time; a slice is a list."""

    @abstractmethod
    def at(self, rows: slice | np.ndarray) -> list[str]:
        """Return the texts of a slice, or of some rows in their order."""

    def __iter__(self) -> Iterator[str]:
        """Yield the texts in their order, of which some thousand are in memory at a time."""
        for start in range(0, len(self), _BLOCK):
            yield from self.at(slice(start, start + _BLOCK))

    @overload
    def __getitem__(self, item: int) -> str: ...
    @overload
    def __getitem__(self, item: slice) -> list[str]: ...
    def __getitem__(self, item: int | slice) -> str | list[str]:
        """Return the text of a row, or the list of those of a slice."""
        if isinstance(item, slice):
            return self.at(item)
        row = range(len(self))[item]
        return self.at(slice(row, row + 1))[0]


class DocumentTexts(StoredTexts):
    """The texts of documents, title and text joined by one space, stripped, read from the parts as they are needed.

    Iteration reads one row group after the other; one text costs a row group unless that was read recently.
    """

    def __init__(self, titles: PartsColumn, texts: PartsColumn) -> None:
        self.titles, self.texts = titles, texts

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        """Yield the texts in the order of the documents."""
        for title, text in zip(self.titles, self.texts, strict=True):
            yield f"{title} {text}".strip()

    def at(self, rows: slice | np.ndarray) -> list[str]:
        """Return the texts of a slice, or of some rows in their order; each row group is read once."""
        return list(DocumentTexts(self.titles[rows], self.texts[rows]))


def texts_at(texts: Sequence[str], positions: np.ndarray) -> list[str]:
    """Return the *texts* at some positions, in their order; of a collection in parts each row group is read once."""
    if isinstance(texts, StoredTexts):
        return texts.at(positions)
    return [texts[position] for position in np.asarray(positions).tolist()]


def read_parts(folder: Path) -> pd.DataFrame:
    """Return the corpus of *folder* as `beir.read_texts` does, with titles, texts and tags that are read when needed.

    Ids and orders are in memory. MirblabError for a part that is missing or is not the one that was written.
    """
    parts = Parts(folder)
    for path, digest in parts.digests().items():
        text_files.note_digest(path, digest)
    doc_ids = pd.StringDtype(na_value=np.nan).__from_arrow__(parts.column("doc_id"))  # type: ignore[attr-defined]
    table = pd.DataFrame({"doc_id": pd.Series(doc_ids)})
    for name in ("title", "text"):
        table[name] = PartsColumn(parts, name)
    if "order" in parts.columns:
        table["order"] = pd.Int64Dtype().__from_arrow__(parts.column("order"))  # type: ignore[attr-defined]
    if "tags" in parts.columns:
        table["tags"] = PartsColumn(parts, "tags")
    return table


def read_documents(folder: Path) -> Iterator[Document]:
    """Yield the documents of the parts in *folder*, in the order of their ids."""
    parts = Parts(folder)
    for group in range(len(parts.groups)):
        columns = [parts._read_group(group, name).to_pylist() for name in Document._fields]
        yield from map(Document, *columns)


def parts_of(corpus: pd.DataFrame) -> Parts | None:
    """Return the parts whose texts a corpus has, all of them and in their order; None where they are in memory."""
    column = corpus.text.array
    return column.parts if isinstance(column, PartsColumn) and column.is_whole else None


def text_batches(column: pd.Series) -> Iterator[pa.Array]:
    """Yield the texts of a column as arrays of Arrow, each of a few thousand texts."""
    import pyarrow as pa

    if isinstance(column.array, PartsColumn):
        yield from column.array.batches()
        return
    for start in range(0, len(column), _BLOCK):
        texts = pa.array(column.iloc[start : start + _BLOCK], pa.large_string())
        yield from texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]


def text_bytes(column: pa.Array) -> bytes | memoryview:
    """Return the bytes of all texts of a column of Arrow, one behind the other, in UTF-8."""
    import pyarrow as pa

    if not len(column):
        return b""
    width = np.int64 if pa.types.is_large_string(column.type) else np.int32
    _, offsets, content = column.buffers()
    ends = np.frombuffer(offsets, width)[[column.offset, column.offset + len(column)]].tolist()
    return memoryview(content)[slice(*ends)] if content is not None else b""


@lru_cache(_KEPT_FILES)
def _kept_part(path: Path, footer: str, n_bytes: int) -> tuple[Any, Lock]:
    """Return the file of a part, which stays open, and its lock: it is not to be read by two threads at once."""
    return _open_part(path, footer, n_bytes), Lock()


def close_parts() -> None:
    """Close all parts, before folders are renamed or removed; they are opened again when they are read."""
    _kept_part.cache_clear()


def _open_part(path: Path, footer: str, n_bytes: int) -> Any:
    """Return the file of a part; MirblabError when it is missing, cut, or another than the one that was written."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        size = path.stat().st_size
        if size != n_bytes:
            raise MirblabError(f"{path} should have {n_bytes:,} bytes, found {size:,}; {AGAIN}")
        if hashlib.blake2b(footer_bytes(path), digest_size=32).hexdigest() != footer:
            raise MirblabError(f"{path} is not the file that was written: its footer differs; {AGAIN}")
        return parquet.ParquetFile(path, page_checksum_verification=True)
    except FileNotFoundError as error:
        raise MirblabError(f"{path} is missing; {AGAIN}") from error
    except (OSError, pa.ArrowException) as error:
        raise MirblabError(f"{path} cannot be read ({str(error)[:120]}); {AGAIN}") from error


def footer_bytes(path: Path) -> bytes:
    """Return the metadata at the end of a file of Parquet, which has the place and size of every column."""
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - 8))
        n_bytes = int.from_bytes(file.read(4), "little")
        file.seek(max(0, path.stat().st_size - 8 - n_bytes))
        return file.read()


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise MirblabError(f"{folder} has no {MANIFEST}, so that it holds no corpus; {AGAIN}")
    manifest: dict[str, Any] = text_files.read_json(path)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else "none"
        raise MirblabError(f"{path}: this version reads format {FORMAT}, found {found}; convert the collection again")
    return manifest
