"""run_store: runs on disk, each under a hash of what determines it."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.core import atomic_files, stored_files
from mirblab.core.errors import MirblabError
from mirblab.core.ids import find_positions, sort_ids
from mirblab.data.runs import cut_run, from_positions, order_run, query_blocks

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

Ids = tuple[pd.Index, pd.Index]  # of all queries and all documents of a collection, each sorted
_CONSEQUENCE = "it is made again when it is needed"


class RunStore:
    """Runs on disk under the key of all that determines them, as parquet files that other tools can open.

    A large run is written and read some queries, a row group, at a time.
    The file's name has hashes of key and content, and the depth; any number of processes may share the folder.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def get(self, key: str, depth: int, ids: Ids | None = None) -> pd.DataFrame | None:
        """Return the run stored under *key* at *depth* or deeper, cut to *depth*, or None; set damaged files aside.

        *ids* are those of queries and documents that the run is to have as categories; None: those that occur in it.
        """
        for stored, path in self._stored(key):
            if stored >= depth and (content := stored_files.read_sealed(path, _CONSEQUENCE)) is not None:
                return _from_parquet(content, depth, ids)
        return None

    def parts(self, key: str) -> list[pd.DataFrame]:
        """Return all runs stored under *key*, which other processes may have put beside each other."""
        contents = (stored_files.read_sealed(path, _CONSEQUENCE) for _, path in self._stored(key))
        return [_from_parquet(content) for content in contents if content is not None]

    def once(
        self, key: str, depth: int, deep: int, make: Callable[[], pd.DataFrame], ids: Ids | None = None
    ) -> pd.DataFrame:
        """Return the run under *key*, cut to *depth*; make and store a missing one, *deep* documents deep."""
        run = self.get(key, depth, ids)
        if run is not None:
            return run
        made = make()
        run = self.get(key, depth, ids) if atomic_files.try_to_store("runs", self.put, key, deep, made) else None
        return cut_run(order_run(made), depth) if run is None else run  # it may be removed as soon as it is stored

    def has(self, key: str, depth: int) -> bool:
        """Return whether `get` would find a file; its bytes are not checked."""
        return any(stored >= depth for stored, _ in self._stored(key))

    def put(self, key: str, depth: int, run: pd.DataFrame) -> None:
        """Store *run*, of up to *depth* documents per query, under *key*, whole or not at all; attrs must be JSON."""
        from pyarrow import parquet

        try:
            attrs = json.dumps(run.attrs)
        except TypeError as error:
            raise MirblabError(f"the attrs of a stored run must be plain text, numbers and lists: {error}") from error
        content = io.BytesIO()
        with parquet.ParquetWriter(content, _schema(attrs), compression="zstd") as writer:
            for (block,) in query_blocks([run]):
                table = _to_arrow(order_run(block), writer.schema)
                writer.write_table(table, row_group_size=max(1, len(table)))
        stored_files.write_sealed(self.folder, f"{_digest(key.encode())}-{depth}", ".parquet", content.getbuffer())

    def _stored(self, key: str) -> list[tuple[int, Path]]:
        """Return depth and path of what is stored under *key*, shallowest first."""
        depths = re.compile(f"{_digest(key.encode())}-([0-9]+)-")
        found = self.folder.glob(f"{_digest(key.encode())}-*-*.parquet")
        named = ((depths.match(path.name), path) for path in found if stored_files.is_sealed(path))
        return sorted((int(match[1]), path) for match, path in named if match is not None)


def verify(folder: Path) -> list[str]:
    """Read all runs in *folder* and set damaged ones aside; return a line for each of them and of the unknown files."""
    return stored_files.verify_sealed(folder, ".parquet", _CONSEQUENCE)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _schema(attrs: str) -> pa.Schema:
    import pyarrow as pa

    names = pa.dictionary(pa.int32(), pa.large_string())
    fields = [("query_id", names), ("doc_id", names), ("score", pa.float32()), ("rank", pa.int32())]
    return pa.schema(fields, metadata={"mirblab": attrs})


def _to_arrow(run: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    """Return the rows of an ordered run, with the ids that occur in them."""
    import pyarrow as pa

    columns = []
    for name in ("query_id", "doc_id"):
        used = run[name].cat.remove_unused_categories().cat
        ids = pa.array(used.categories.array, pa.large_string(), from_pandas=True)
        columns.append(pa.DictionaryArray.from_arrays(used.codes.to_numpy(np.int32), ids))
    return pa.table([*columns, run.score.to_numpy(), run["rank"].to_numpy()], schema=schema)


def _from_parquet(content: bytes, depth: int | None = None, ids: Ids | None = None) -> pd.DataFrame:
    """Return a stored run in its order, cut to *depth* (None: whole), one row group after the other."""
    from pyarrow import BufferReader, parquet

    file = parquet.ParquetFile(BufferReader(content))
    attrs = json.loads(file.schema_arrow.metadata[b"mirblab"])
    query_ids, doc_ids = ids or [_distinct_ids(file, name) for name in ("query_id", "doc_id")]
    queries, docs = (np.empty(file.metadata.num_rows, np.int32) for _ in range(2))
    scores, end = np.empty(file.metadata.num_rows, np.float32), 0
    for group in range(file.num_row_groups):
        table = file.read_row_group(group)
        if depth is not None:
            table = table.filter(table["rank"].to_numpy() <= depth)
        start, end = end, end + len(table)
        queries[start:end] = _positions(table["query_id"], query_ids)
        docs[start:end] = _positions(table["doc_id"], doc_ids)
        scores[start:end] = table["score"].to_numpy()
    run = from_positions(queries[:end], docs[:end], scores[:end], query_ids, doc_ids, "", "")
    run.attrs = attrs
    return run


def _distinct_ids(file: parquet.ParquetFile, name: str) -> pd.Index:
    """Return the ids of a column of a stored run that occur in it, by code point."""
    import pyarrow as pa

    groups = [file.read_row_group(group, [name])[name].combine_chunks() for group in range(file.num_row_groups)]
    names = pa.chunked_array([group.dictionary for group in groups], None if groups else pa.large_string())
    return sort_ids(pd.Index(names.unique().to_pandas(), dtype="str"))[0]


def _positions(column: pa.ChunkedArray, ids: pd.Index) -> np.ndarray:
    """Return the position in *ids* of each value of a column of a stored run, int32 (n_rows,)."""
    found = column.combine_chunks()
    used = pd.Index(found.dictionary.to_pandas(), dtype="str")
    return find_positions(used, ids).astype(np.int32)[found.indices.to_numpy()]
