"""dense: exact search over vectors, in blocks that stay in the processor's cache."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from mirblab.core.errors import MirblabError, check_positive
from mirblab.core.processes import n_cores, run_in_threads, split_range
from mirblab.data.candidates import Candidates
from mirblab.data.ranking import TopK, gather_blocks

# Raised by one whenever the runs of this kind change; otherwise tests/retrieval/test_golden_runs.py fails.
RUNS_VERSION = 1

MASK_BYTES = 1 << 27  # of the candidates of one block of queries


def search(
    query_vectors: np.ndarray,
    doc_vectors: np.ndarray,
    *,
    depth: int,
    candidates: Candidates | None = None,
    query_block: int = 512,
    doc_block: int = 1024,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows, positions, scores) of the *depth* best documents of each query by inner product, best first.

    Vectors are (n_queries, n_dims) and (n_docs, n_dims); unit vectors give the cosine (see `normalise`). *doc_vectors*
    may be a memory map of any size and float type; products are float32. Equal scores are ordered by position, the
    larger first; NaN scores and documents that *candidates* excludes are not returned. *threads* None: one per core.

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
    spans = split_range(-(-n_docs // doc_block), -(-n_docs // (doc_block * workers)))

    def search_span(rows: slice, span: slice, mask: np.ndarray | None) -> TopK:
        return _best(queries[rows], doc_vectors, depth, doc_block, span, mask)

    return search_spans(split_range(n_queries, query_block), spans, search_span, candidates, workers)


def search_spans(
    blocks: list[slice],
    spans: list[slice],
    search_span: Callable[[slice, slice, np.ndarray | None], TopK],
    candidates: Candidates | None,
    workers: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows, positions, scores) of blocks of queries, each searched in all *spans* of the corpus, in threads."""
    from threadpoolctl import threadpool_limits

    def task(job: tuple[slice, slice]) -> TopK:
        rows, span = job
        mask = None if candidates is None else candidates.allowed(np.arange(rows.start, rows.stop))
        return search_span(rows, span, mask)

    with threadpool_limits(1, "blas"):
        parts = run_in_threads(task, list(product(blocks, spans)), workers)
    return gather_blocks(blocks, [parts[at : at + len(spans)] for at in range(0, len(parts), len(spans))])


def normalise(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors (n, n_dims) as float32 of length 1; a vector of zeros stays zero."""
    vectors = np.asarray(vectors, dtype=np.float32)
    # The largest entry first: squares of very small or large entries would leave float32.
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    scaled = vectors / np.where(largest > 0, largest, 1)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(lengths > 0, lengths, 1)


def _best(queries: np.ndarray, docs: np.ndarray, depth: int, width: int, span: slice, mask: np.ndarray | None) -> TopK:
    best = TopK(len(queries), min(depth, len(docs)), width)
    out = np.empty(len(queries) * width, dtype=np.float32)
    for number in reversed(range(span.start, span.stop)):
        start = number * width
        block = np.asarray(docs[start : start + width], dtype=np.float32)
        scores = out[: len(queries) * len(block)].reshape(len(queries), len(block))
        np.matmul(queries, block.T, out=scores)
        best.add(scores, start, None if mask is None else mask[:, start : start + len(block)])
    return best.trim()


def _check(queries: np.ndarray, docs: np.ndarray, depth: int, query_block: int, doc_block: int) -> None:
    if queries.ndim != 2 or docs.ndim != 2 or queries.shape[1] != docs.shape[1]:
        raise MirblabError(
            f"query and document vectors must be (n, n_dims) of the same n_dims, found {queries.shape} and {docs.shape}"
        )
    check_positive(depth=depth, query_block=query_block, doc_block=doc_block)
