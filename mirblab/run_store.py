"""run_store: runs on disk, so that nothing is searched twice."""

from __future__ import annotations

import hashlib
import io
import json
import uuid
from pathlib import Path

import pandas as pd

from mirblab.errors import MirblabError
from mirblab.paths import write_atomically
from mirblab.runs import cut, order


class RunStore:
    """Runs on disk under the key of all that determines them: parquet files that other tools can open.

    A file's name holds hashes of key and content, and the depth; so a damaged file is known from its name.
    """

    def __init__(self, folder: str | Path) -> None:
        """Use *folder*, which is made when the first run is stored; any number of processes may share it."""
        self.folder = Path(folder)

    def get(self, key: str, depth: int) -> pd.DataFrame | None:
        """Return the run stored under *key*, cut to *depth*, or None; a deeper one answers a shallower question.

        A file whose bytes are not those that were written is renamed to `*.damaged` and reported as absent.
        """
        for stored, path in self._stored(key):
            if stored < depth:
                continue
            try:
                content = path.read_bytes()
                if path.stem.endswith(_digest(content)):
                    return cut(_from_parquet(content), depth)
                path.replace(path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.damaged"))
            except FileNotFoundError:  # another process has just set it aside
                continue
        return None

    def has(self, key: str, depth: int) -> bool:
        """Return whether `get` would find a file; its bytes are not checked."""
        return any(stored >= depth for stored, _ in self._stored(key))

    def put(self, key: str, depth: int, run: pd.DataFrame) -> None:
        """Store *run*, which holds up to *depth* documents per query, under *key*, whole or not at all.

        Only ids that occur are stored. The attrs are kept as JSON; MirblabError when they cannot be written so.
        """
        from pyarrow import Table, parquet

        run = order(run)
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
        name = f"{_digest(key.encode())}-{depth}-{_digest(content.getbuffer())}.parquet"
        with write_atomically(self.folder / name) as beside:
            beside.write_bytes(content.getbuffer())

    def _stored(self, key: str) -> list[tuple[int, Path]]:
        """Return depth and path of what is stored under *key*, shallowest first."""
        found = self.folder.glob(f"{_digest(key.encode())}-*-*.parquet")
        return sorted((int(path.stem.split("-")[1]), path) for path in found)


def _digest(content: bytes | memoryview) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _from_parquet(content: bytes) -> pd.DataFrame:
    """Return the run that the bytes of a parquet file hold, in order, with its attrs."""
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(content))
    attrs = json.loads(table.schema.metadata[b"mirblab"])
    run = order(table.replace_schema_metadata(None).to_pandas())
    run.attrs = attrs
    return run
