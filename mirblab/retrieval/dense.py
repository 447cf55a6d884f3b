"""dense: exact search over vectors, in blocks that stay in the processor's cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from mirblab.core.errors import MirblabError, check_positive
from mirblab.core.processes import n_cores, run_in_threads, split_range
from mirblab.data.candidates import Candidates
from mirblab.data.ranking import TopK, gather_blocks

if TYPE_CHECKING:
    from mirblab.encoders.encoding import VectorReader

# Raised by one whenever the runs of this kind change; otherwise tests/retrieval/test_golden_runs.py fails.
RUNS_VERSION = 1

MASK_BYTES = 1 << 27  # of the candidates of one block of queries
CHUNK_DOCS = 1 << 16  # documents whose vectors are in memory together, where they are read as they are needed


def search(
    query_vectors: np.ndarray,
    doc_vectors: np.ndarray | VectorReader,
    *,
    depth: int,
    candidates: Candidates | None = None,
    query_block: int = 512,
    doc_block: int = 1024,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows, positions, scores) of the *depth* best documents of each query by inner product, best first.

    Vectors are (n_queries, n_dims) and (n_docs, n_dims); unit vectors give the cosine (see `normalise`). *doc_vectors*
    may be a memory map of any size and float type, or a `VectorReader`, of which `CHUNK_DOCS` vectors are in memory at
    a time; products are float32. Equal scores are ordered by position, the larger first; NaN scores and documents that
    *candidates* excludes are not returned. *threads* None: one per core.

    The result does not depend on the number of threads. Other block sizes may change the last bit of a score, and so
    the order of documents whose scores differ by no more.
    """
    queries = np.ascontiguousarray(query_vectors, dtype=np.float32)
    _check(queries, doc_vectors, depth, query_block, doc_block)
    n_queries, n_docs = len(queries), len(doc_vectors)
    if not n_queries or not n_docs:
        return gather_blocks([], [])
    workers = threads or n_cores()
    if candidates is not None and candidates.rules:
        query_block = max(1, min(query_block, MASK_BYTES // n_docs))
    blocks, best = split_range(n_queries, query_block), list[TopK]()
    for docs, vectors in _read_chunks(doc_vectors, doc_block):
        spans = split_range(-(-len(vectors) // doc_block), -(-len(vectors) // (doc_block * workers)))
        search_span = partial(_best, queries, vectors, min(depth, n_docs), doc_block, docs.start)
        found = search_spans(blocks, spans, search_span, candidates, workers, docs)
        for one, of_later_documents in zip(found, best, strict=bool(best)):
            one.merge(of_later_documents)
        best = found
    return gather_blocks(blocks, [[one] for one in best])


def _read_chunks(vectors: np.ndarray | VectorReader, doc_block: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the vectors of successive documents, the last first; an array as it is."""
    if isinstance(vectors, np.ndarray):
        yield slice(0, len(vectors)), vectors
        return
    # of whole blocks, so that the products, and with them the scores, are those of all vectors in memory
    size = max(1, CHUNK_DOCS // doc_block) * doc_block
    for start in reversed(range(0, len(vectors), size)):
        docs = slice(start, min(start + size, len(vectors)))
        yield docs, vectors[docs]


def search_spans(
    blocks: list[slice],
    spans: list[slice],
    search_span: Callable[[slice, slice, np.ndarray | None], TopK],
    candidates: Candidates | None,
    workers: int,
    docs: slice | None = None,
) -> list[TopK]:
    """Return the best documents of each of the *blocks* of queries, searched in all *spans* of the corpus, in threads.

    *docs* are the documents that the spans are of (None: all), to which a mask of candidates is limited.
    """
    from threadpoolctl import threadpool_limits

    def task(job: tuple[slice, slice]) -> TopK:
        rows, span = job
        mask = None if candidates is None else candidates.allowed(np.arange(rows.start, rows.stop), docs)
        return search_span(rows, span, mask)

    with threadpool_limits(1, "blas"):
        parts = run_in_threads(task, list(product(blocks, spans)), workers)
    best = parts[:: len(spans)]
    for at, part in enumerate(parts):
        if at % len(spans):
            best[at // len(spans)].merge(part)
    return best


def normalise(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors (n, n_dims) as float32 of length 1; a vector of zeros stays zero."""
    vectors = np.asarray(vectors, dtype=np.float32)
    # The largest entry first: squares of very small or large entries would leave float32.
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    scaled = vectors / np.where(largest > 0, largest, 1)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(lengths > 0, lengths, 1)


def _best(
    queries: np.ndarray,
    docs: np.ndarray,
    k: int,
    width: int,
    first: int,
    rows: slice,
    span: slice,
    mask: np.ndarray | None,
) -> TopK:
    """Return the *k* best documents of a *span* of blocks of *docs*, of which the first is the document *first*."""
    queries = queries[rows]
    best = TopK(len(queries), k, width)
    out = np.empty(len(queries) * width, dtype=np.float32)
    for number in reversed(range(span.start, span.stop)):
        start = number * width
        block = np.asarray(docs[start : start + width], dtype=np.float32)
        scores = out[: len(queries) * len(block)].reshape(len(queries), len(block))
        np.matmul(queries, block.T, out=scores)
        best.add(scores, first + start, None if mask is None else mask[:, start : start + len(block)])
    return best.trim()


def _check(queries: np.ndarray, docs: np.ndarray | VectorReader, depth: int, query_block: int, doc_block: int) -> None:
    if queries.ndim != 2 or docs.ndim != 2 or queries.shape[1] != docs.shape[1]:
        raise MirblabError(
            f"query and document vectors must be (n, n_dims) of the same n_dims, found {queries.shape} and {docs.shape}"
        )
    check_positive(depth=depth, query_block=query_block, doc_block=doc_block)
