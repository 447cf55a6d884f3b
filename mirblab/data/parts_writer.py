"""parts_writer: write a corpus in Parquet parts, from documents in any order and in bounded memory."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import count, pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mirblab.core import atomic_files
from mirblab.core.errors import MirblabError
from mirblab.core.terminal import progress
from mirblab.data import digests
from mirblab.data.oddities import TextOddities
from mirblab.data.parts import FORMAT, MANIFEST, Document, footer_bytes, text_bytes

if TYPE_CHECKING:
    import pyarrow as pa

PART_DOCS = 1 << 16  # documents in a part
PART_SIZE = 1 << 26  # characters in a part, which bounds the memory of the writer
GROUP_DOCS = 1 << 11  # documents in a row group, the least that is read
GROUP_SIZE = 1 << 20  # characters in a row group, which bounds the memory of readers and of merging
MERGED = 64  # files that are merged, and so open, at a time
_TEXTS = ("doc_id", "title", "text")


class RepeatedId(MirblabError):
    """Two documents have the same id, which is `doc_id`."""

    def __init__(self, doc_id: str) -> None:
        super().__init__(f"two documents have the id '{doc_id}'; give each its own")
        self.doc_id = doc_id


def write_parts(folder: Path, documents: Iterable[Document]) -> None:
    """Write *documents*, in any order, into the new *folder*: whole, or not at all.

    Documents are sorted part by part, and parts that overlap are merged, `MERGED` files at a time, so that memory holds
    one part and a row group of each of these, beside 16 bytes for every document. RepeatedId for an id that two
    documents have, StorageError for the disk.
    """
    beside = atomic_files.unfinished_name(folder)
    with atomic_files.writing(folder):
        try:
            atomic_files.make_folder(beside)
            with progress(None, "writing", "documents") as bar:
                drafts = list(_write_drafts(beside, documents, bar.update))
            if any(one[1] >= other[0] for one, other in pairwise(drafts)):
                _merge_drafts(beside, len(drafts))
            else:
                for number in range(len(drafts)):
                    atomic_files.rename_path(_draft(beside, number), beside / _part_name(number))
            _write_manifest(beside)
            atomic_files.flush_tree(beside)
            atomic_files.rename_path(beside, folder)
            atomic_files.flush_folder(folder.parent)
        finally:
            if beside.exists():
                atomic_files.remove_path(beside)


def _write_drafts(
    folder: Path, documents: Iterable[Document], tell: Callable[[int], object]
) -> Iterator[tuple[str, str]]:
    """Write parts that are each in order, and yield the first and the last id of each."""
    for number, rows in enumerate(_cut(documents, PART_DOCS, PART_SIZE)):
        rows.sort(key=itemgetter(0))
        _write_part(_draft(folder, number), rows, tell)
        yield rows[0].doc_id, rows[-1].doc_id


def _merge_drafts(folder: Path, n_drafts: int) -> None:
    """Merge parts that are each in order into parts that follow each other."""
    drafts = [_draft(folder, number) for number in range(n_drafts)]
    with progress(None, "merging", "documents") as bar:
        for number in count(n_drafts):
            some, drafts = drafts[:MERGED], drafts[MERGED:]
            merged = heapq.merge(*map(_read_draft, some), key=itemgetter(0))
            if drafts:
                drafts.append(_draft(folder, number))
                _write_part(drafts[-1], merged, bar.update)
            else:
                for part, rows in enumerate(_cut(merged, PART_DOCS, PART_SIZE)):
                    _write_part(folder / _part_name(part), rows, bar.update)
            for draft in some:
                draft.unlink()
            if not drafts:
                return


def _cut(documents: Iterable[Document], most: int, size: int) -> Iterator[list[Document]]:
    """Yield successive documents in lists of at most so many, each of which ends when it has *size* characters."""
    rows, n_characters = list[Document](), 0
    for document in documents:
        rows.append(document)
        n_characters += len(document.text) + len(document.title) + len(document.rest)
        if len(rows) >= most or n_characters >= size:
            yield rows
            rows, n_characters = [], 0
    if rows:
        yield rows


def _draft(folder: Path, number: int) -> Path:
    return folder / f"draft-{number:05}.parquet"


def _part_name(number: int) -> str:
    return f"part-{number:05}.parquet"


def _read_draft(path: Path) -> Iterator[Document]:
    for table in _read_tables(path):
        yield from map(Document, *(column.to_pylist() for column in table.columns))


def _read_tables(path: Path) -> Iterator[pa.Table]:
    """Yield the row groups of a part, whose file is closed at the end: `parts.Parts` would keep it open."""
    from pyarrow import parquet

    with parquet.ParquetFile(path, page_checksum_verification=True) as file:
        for group in range(file.num_row_groups):
            yield file.read_row_group(group)


def _write_part(path: Path, documents: Iterable[Document], tell: Callable[[int], object]) -> None:
    """Write documents, in their order, into one file, of which memory holds a row group."""
    import pyarrow as pa
    from pyarrow import parquet

    types = [pa.string(), pa.string(), pa.string(), pa.int64(), pa.list_(pa.string()), pa.string()]
    schema = pa.schema(list(zip(Document._fields, types, strict=True)))
    with atomic_files.open_to_write(path) as file, parquet.ParquetWriter(
        file, schema, compression="zstd", use_dictionary=["tags.list.element"], write_statistics=["doc_id"],
        write_page_checksum=True,
    ) as writer:  # fmt: skip
        for rows in _cut(documents, GROUP_DOCS, GROUP_SIZE):
            columns = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), types, strict=True)]
            writer.write_table(pa.table(columns, schema=schema))
            tell(len(rows))


def _write_manifest(folder: Path) -> None:
    """Read the parts in *folder* once, and write what `Parts` needs to know of them; RepeatedId for an id twice."""
    from pyarrow import compute

    paths = sorted(folder.glob("part-*.parquet"))
    oddities, last, used = TextOddities(), None, set[str]()
    hashes = {name: [hashlib.blake2b(digest_size=32) for _ in range(2)] for name in _TEXTS}
    n_words, about = 0, list[dict[str, Any]]()
    for path in paths:
        footer = hashlib.blake2b(footer_bytes(path), digest_size=32).hexdigest()
        about.append({"name": path.name, "n_bytes": path.stat().st_size, "footer": footer, "n_docs": 0})
        about[-1]["digest"] = digests.file_digest(path)
        for table in _read_tables(path):
            for name, (of_lengths, of_texts) in hashes.items():
                for column in table.column(name).chunks:
                    of_lengths.update(compute.utf8_length(column).to_numpy().astype(np.int64).tobytes())
                    of_texts.update(text_bytes(column))
            doc_ids = table.column("doc_id").to_pylist()
            for one, other in pairwise(doc_ids if last is None else [last, *doc_ids]):
                if one == other:
                    raise RepeatedId(one)
            last = doc_ids[-1]
            titles, texts = (table.column(name).to_pylist() for name in ("title", "text"))
            for title, text in zip(titles, texts, strict=True):
                oddities.add(title, text)
                n_words += len(title.split()) + len(text.split())
            used |= {name for name in ("order", "tags") if table.column(name).null_count < table.num_rows}
            about[-1]["n_docs"] += table.num_rows
    n_docs = sum(each["n_docs"] for each in about)
    content = hashlib.blake2b(n_docs.to_bytes(8, "little"), digest_size=32)
    for pair in hashes.values():
        for each in pair:
            content.update(each.digest())
    manifest = {
        "format": FORMAT, "n_docs": n_docs, "n_words": n_words, "content": content.hexdigest(),
        "columns": sorted(used), "oddities": oddities.counts(), "parts": about,
    }  # fmt: skip
    atomic_files.write_text(folder / MANIFEST, json.dumps(manifest, indent=1))
