"""late_search: exact search by MaxSim: every query with every document, in blocks of tokens."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

from mirblab import encode, runs
from mirblab.best import Best, blocks, cores, each, gather
from mirblab.candidates import Candidates
from mirblab.collection import Collection
from mirblab.errors import MirblabError
from mirblab.late import TokenRows, max_sims
from mirblab.late_shrink import Shrink
from mirblab.late_tokens import token_rows

QUERY_TOKENS, DOC_TOKENS = 1_024, 4_096  # their cosines are 16 MB: a product long enough to be fast
MASK_BYTES = 1 << 27


def search(
    queries: TokenRows,
    docs: TokenRows,
    *,
    depth: int,
    candidates: Candidates | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows, positions, scores) of the *depth* best documents of each query by `late.max_sim`, best first.

    Products are float32, a block of documents at a time, so that the documents may lie on disk. Equal scores are
    ordered by position, the larger first; what *candidates* does not allow never comes back; a document without
    tokens scores -1. *threads* None: one per core that this process may use. The same call gives the same bytes,
    whatever the number of threads. Raises MirblabError for other dimensions on the two sides.

    >>> from mirblab.late import Ragged
    >>> docs = Ragged.of([np.eye(2), np.array([[1.0, 0.0]])])
    >>> rows, positions, scores = search(Ragged.of([np.eye(2)]), docs, depth=2)
    >>> positions.tolist(), scores.tolist()
    ([0, 1], [1.0, 0.5])
    """
    from threadpoolctl import threadpool_limits

    _check(queries, docs, depth)
    n_queries, n_docs = len(queries.lengths), len(docs.lengths)
    if not n_queries or not n_docs:
        return gather([], [])
    workers = threads or cores()
    allowed = candidates.allowed if candidates is not None and candidates.rules else None
    rows = token_blocks(queries.lengths, QUERY_TOKENS, max(1, MASK_BYTES // n_docs))
    cuts = token_blocks(docs.lengths, DOC_TOKENS, DOC_TOKENS)
    spans = blocks(len(cuts), -(-len(cuts) // workers))

    def task(job: tuple[slice, slice]) -> Best:
        block, span = job
        mask = None if allowed is None else allowed(np.arange(block.start, block.stop))
        return _best(queries, block, docs, cuts[span], depth, mask)

    with threadpool_limits(1, "blas"):
        found = each(task, list(product(rows, spans)), workers)
    return gather(rows, [found[at : at + len(spans)] for at in range(0, len(found), len(spans))])


def run(
    collection: Collection,
    depth: int,
    name: str = "late",
    *,
    encoder: str = "minilm",
    dimensions: int = 0,
    factor: int = 1,
    seed: int = 0,
    compat: str = "",
) -> pd.DataFrame:
    """Return the run of MaxSim over an encoder's token vectors, *depth* documents per query, best first.

    *dimensions*, *factor* and *seed* make the token vectors smaller, as `late_shrink.Shrink` says.
    """
    model, shrink = encode.encoder(encoder, compat), Shrink(dimensions, factor, seed)
    instruction = collection.card.instruction
    documents = token_rows(model, collection.texts, "document", instruction, shrink)
    queries = token_rows(model, collection.query_texts, "query", instruction, shrink)
    found = search(queries, documents, depth=depth, candidates=collection.candidates)
    return runs.from_positions(*found, collection.query_ids, collection.doc_ids, name, collection.name)


def token_blocks(lengths: np.ndarray, budget: int, longest: int) -> list[slice]:
    """Return slices that cover the texts, each of at most *budget* tokens and *longest* texts, or of one text.

    >>> token_blocks(np.array([3, 3, 9, 1]), 6, 100)
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    found, start, held = [], 0, 0
    for place, length in enumerate(lengths.tolist()):
        if place > start and (held + length > budget or place - start >= longest):
            found.append(slice(start, place))
            start, held = place, 0
        held += length
    return [*found, slice(start, len(lengths))] if len(lengths) else []


def _best(
    queries: TokenRows, block: slice, docs: TokenRows, cuts: list[slice], depth: int, mask: np.ndarray | None
) -> Best:
    """Search some blocks of documents for a block of queries, from the last document to the first."""
    own = queries.block(block.start, block.stop)
    width = max(cut.stop - cut.start for cut in cuts)
    best = Best(block.stop - block.start, min(depth, len(docs.lengths)), width)
    for cut in reversed(cuts):
        scores = max_sims(own, queries.lengths[block], docs.block(cut.start, cut.stop), docs.lengths[cut])
        best.add(scores, cut.start, None if mask is None else mask[:, cut])
    return best.trim()


def _check(queries: TokenRows, docs: TokenRows, depth: int) -> None:
    sizes = {one.dimensions for one in (queries, docs) if one.dimensions}
    if len(sizes) > 1:
        raise MirblabError(
            f"token vectors of queries have {queries.dimensions} dimensions, those of documents {docs.dimensions}; "
            "encode both with one model"
        )
    if depth < 1:
        raise MirblabError(f"depth must be at least 1, found {depth}")
