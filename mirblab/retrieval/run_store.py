"""run_store: runs on disk, each under a hash of what determines it."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from mirblab.core import atomic_files, stored_files
from mirblab.core.errors import MirblabError
from mirblab.data.runs import cut_run, order_run

_CONSEQUENCE = "it is made again when it is needed"


class RunStore:
    """Runs on disk under the key of all that determines them, as parquet files that other tools can open.

    The file's name has hashes of key and content, and the depth; any number of processes may share the folder.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def get(self, key: str, depth: int) -> pd.DataFrame | None:
        """Return the run stored under *key* at *depth* or deeper, cut to *depth*, or None; set damaged files aside."""
        for stored, path in self._stored(key):
            if stored >= depth and (content := stored_files.read_sealed(path, _CONSEQUENCE)) is not None:
                return cut_run(_from_parquet(content), depth)
        return None

    def parts(self, key: str) -> list[pd.DataFrame]:
        """Return all runs stored under *key*, which other processes may have put beside each other."""
        contents = (stored_files.read_sealed(path, _CONSEQUENCE) for _, path in self._stored(key))
        return [_from_parquet(content) for content in contents if content is not None]

    def once(self, key: str, depth: int, deep: int, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Return the run under *key*, cut to *depth*; make and store a missing one, *deep* documents deep."""
        run = self.get(key, depth)
        if run is not None:
            return run
        made = make()
        run = self.get(key, depth) if atomic_files.try_to_store("runs", self.put, key, deep, made) else None
        return cut_run(order_run(made), depth) if run is None else run  # it may be removed as soon as it is stored

    def has(self, key: str, depth: int) -> bool:
        """Return whether `get` would find a file; its bytes are not checked."""
        return any(stored >= depth for stored, _ in self._stored(key))

    def put(self, key: str, depth: int, run: pd.DataFrame) -> None:
        """Store *run*, of up to *depth* documents per query, under *key*, whole or not at all; attrs must be JSON."""
        from pyarrow import Table, parquet

        run = order_run(run)
        try:
            attrs = json.dumps(run.attrs)
        except TypeError as error:
            raise MirblabError(f"the attrs of a stored run must be plain text, numbers and lists: {error}") from error
        used = run.assign(**{name: run[name].cat.remove_unused_categories() for name in ("query_id", "doc_id")})
        used.attrs = {}
        table = Table.from_pandas(used, preserve_index=False)
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), b"mirblab": attrs.encode()})
        content = io.BytesIO()
        parquet.write_table(table, content, compression="zstd")
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


def _from_parquet(content: bytes) -> pd.DataFrame:
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(content))
    attrs = json.loads(table.schema.metadata[b"mirblab"])
    run = order_run(table.replace_schema_metadata(None).to_pandas())
    run.attrs = attrs
    return run
