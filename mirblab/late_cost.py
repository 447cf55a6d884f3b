"""late_cost: what token vectors take on disk, and in time, against one vector per text."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from mirblab import dense, encode, late_search
from mirblab.collection import Collection
from mirblab.late_shrink import Shrink
from mirblab.late_tokens import token_rows

BYTES = {"float32": (4, 0), "float16": (2, 0), "int8": (1, 2)}  # of a number, and of a vector's scale
DEPTH = 100


def storage(
    collection: Collection,
    encoder: str = "minilm",
    *,
    dimensions: Sequence[int] = (0,),
    factors: Sequence[int] = (1,),
    seed: int = 0,
    n_queries: int = 0,
) -> pd.DataFrame:
    """Return what the documents of a collection take as passage vectors and as token vectors, a row for each way.

    Columns: what (one vector per text, or its tokens, merged by which factor), dimensions, dtype, vectors and bytes
    per document, total (bytes of all documents), ratio (to passage vectors in float32), and seconds per query of a
    full search of the first *n_queries* queries with what is stored here; NaN for other types, and for no queries.
    Bytes are those of the vectors; key, checksum and end, 32 bytes a text, come on top. int8 is what
    `late_shrink.rounded` keeps. *dimensions* (0: all) and *factors* are combined, as `late_shrink.Shrink` says.
    What is not stored yet is encoded.

    >>> from mirblab.shelf import load
    >>> storage(load("mini-hol"), "minilmm")
    Traceback (most recent call last):
    mirblab.errors.MirblabError: no encoder 'minilmm'; ...
    """
    model, instruction = encode.encoder(encoder), collection.card.instruction
    texts, asked = collection.texts, collection.query_texts[:n_queries]
    parts = [_passages(model, texts, asked, instruction)]
    for shrink in (Shrink(size, factor, seed) for factor in factors for size in dimensions):
        docs = token_rows(model, texts, "document", instruction, shrink)
        queries = token_rows(model, asked, "query", instruction, shrink)
        spent = _per_query(lambda q=queries, d=docs: late_search.search(q, d, depth=DEPTH), len(asked))
        what = f"tokens, merged by {shrink.factor}" if shrink.factor > 1 else "tokens"
        vectors = float(docs.lengths.mean()) if len(docs.lengths) else 0.0
        parts.append(_rows(what, docs.dimensions, vectors, {"float32": np.nan, "float16": spent, "int8": np.nan}))
    table = pd.concat(parts, ignore_index=True)
    table.insert(5, "total", (table.bytes * len(texts)).round().astype(np.int64))
    table.insert(6, "ratio", table.bytes / table.bytes.iloc[0])
    return table


def _passages(model: encode.Encoder, texts: list[str], asked: list[str], instruction: str) -> pd.DataFrame:
    docs, queries = model.vectors(texts, "document", instruction), model.vectors(asked, "query", instruction)
    spent = _per_query(lambda: dense.search(queries, docs, depth=DEPTH), len(asked))
    return _rows("one vector", model.dimensions, 1.0, {"float32": spent, "float16": np.nan})


def _rows(what: str, dimensions: int, vectors: float, seconds: dict[str, float]) -> pd.DataFrame:
    """Return a row for each number type in *seconds*."""
    rows = []
    for dtype, spent in seconds.items():
        number, scale = BYTES[dtype]
        rows.append((what, dimensions, dtype, vectors, vectors * (dimensions * number + scale), spent))
    return pd.DataFrame(rows, columns=["what", "dimensions", "dtype", "vectors", "bytes", "seconds"])


def _per_query(search: Callable[[], object], n_queries: int) -> float:
    """Return the seconds per query of a search, the better of two; NaN without queries."""
    if not n_queries:
        return float("nan")
    spent = []
    for _ in range(2):  # the first brings the vectors into memory
        start = time.perf_counter()
        search()
        spent.append(time.perf_counter() - start)
    return min(spent) / n_queries
