"""late_interaction: search by token vectors (MaxSim), its matches and its cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, check_positive
from mirblab.core.processes import n_cores, split_range
from mirblab.data import runs
from mirblab.data.candidates import Candidates
from mirblab.data.collection import Collection, check_fits
from mirblab.data.ranking import TopK, gather_blocks
from mirblab.encoders import encoding
from mirblab.encoders.token_vectors import Shrink, load_token_vectors
from mirblab.retrieval import dense

# Raised by one whenever the runs of this kind change; otherwise tests/retrieval/test_golden_runs.py fails.
RUNS_VERSION = 1

NOTHING = -1.0  # the score of a pair in which one side has no tokens
QUERY_TOKENS, DOC_TOKENS = 1_024, 4_096  # their cosines are 16 MB: a product long enough to be fast
BYTES = {"float32": (4, 0), "float16": (2, 0), "int8": (1, 2)}  # of a number, and of a vector's scale
DEPTH = 100  # of the searches that are timed
INSTEAD = "rerank a search by codes: minilm (code_bits = 2)>maxsim@1000"


class TokenRows(Protocol):
    """The token vectors of many texts, text after text, in memory or on disk."""

    @property
    def lengths(self) -> np.ndarray:
        """Return the number of token vectors of each text, (n_texts,)."""

    @property
    def dimensions(self) -> int:
        """Return the length of a token vector, 0 when no text has any."""

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return the token vectors of the texts from *start* to *stop*, float32 (n_tokens, d)."""


@dataclass(frozen=True, eq=False)
class TokenMatrices:
    """Token vectors in memory: rows (n_tokens, d) of any float type, and the number of rows of each text."""

    rows: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, matrices: Sequence[np.ndarray]) -> TokenMatrices:
        """Return the token vectors of texts that are given as matrices (n_tokens, d); one without tokens is empty."""
        full = [matrix for matrix in matrices if len(matrix)]
        rows = np.concatenate(full) if full else np.empty((0, 0), np.float32)
        return cls(rows, np.array([len(matrix) for matrix in matrices], dtype=np.int64))

    @property
    def dimensions(self) -> int:
        """Return the length of a token vector, 0 when no text has any."""
        return self.rows.shape[1]

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return the token vectors of the texts from *start* to *stop*, float32 (n_tokens, d)."""
        first = int(self.lengths[:start].sum())
        return self.rows[first : first + int(self.lengths[start:stop].sum())].astype(np.float32)


def max_sim(query: np.ndarray, document: np.ndarray) -> float:
    """Return the mean over query tokens of the best cosine with a document token, -1 to 1; -1 where a side is empty.

    Rows are unit vectors. ColBERT (Khattab and Zaharia, SIGIR 2020) sums, which orders one query's documents alike.
    """
    if not len(query) or not len(document):
        return NOTHING
    return float((query @ document.T).max(axis=1).mean())


def max_sim_matrix(
    query_rows: np.ndarray, query_lengths: np.ndarray, doc_rows: np.ndarray, doc_lengths: np.ndarray
) -> np.ndarray:
    """Return `max_sim` of every query with every document, float32 (n_queries, n_docs); rows go text after text."""
    scores = np.full((len(query_lengths), len(doc_lengths)), NOTHING, np.float32)
    asked, has = np.flatnonzero(query_lengths), np.flatnonzero(doc_lengths)
    if not len(asked) or not len(has):
        return scores
    cosines = np.asarray(query_rows, np.float32) @ np.asarray(doc_rows, np.float32).T
    best = np.maximum.reduceat(cosines, _starts(doc_lengths[has]), axis=1)
    summed = np.add.reduceat(best, _starts(query_lengths[asked]), axis=0)
    scores[np.ix_(asked, has)] = summed / query_lengths[asked, None].astype(np.float32)
    return scores


def split_by_text(rows: TokenRows, start: int, stop: int, longest: int | None = None) -> list[np.ndarray]:
    """Return the first *longest* token vectors (None: all) of each text from *start* to *stop*."""
    parts = np.split(rows.block(start, stop), np.cumsum(rows.lengths[start:stop])[:-1]) if stop > start else []
    return [vectors[:longest] for vectors in parts]


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.cumsum(lengths) - lengths


def search(
    queries: TokenRows,
    docs: TokenRows,
    *,
    depth: int,
    candidates: Candidates | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (rows, positions, scores) of the *depth* best documents of each query by MaxSim, best first.

    Products are float32, a block of documents at a time, so that the documents may be on disk. Equal scores are
    ordered by position, the larger first; documents that *candidates* excludes are not returned; a document without
    tokens scores -1. *threads* None: one per core; their number changes no byte. MirblabError for unequal dimensions.
    """
    _check(queries, docs, depth)
    n_docs = len(docs.lengths)
    if not len(queries.lengths) or not n_docs:
        return gather_blocks([], [])
    workers = threads or n_cores()
    blocks = split_by_budget(queries.lengths, QUERY_TOKENS, max(1, dense.MASK_BYTES // n_docs))
    cuts = split_by_budget(docs.lengths, DOC_TOKENS, DOC_TOKENS)
    spans = split_range(len(cuts), -(-len(cuts) // workers))

    def search_span(rows: slice, span: slice, mask: np.ndarray | None) -> TopK:
        return _best(queries, rows, docs, cuts[span], depth, mask)

    best = dense.search_spans(blocks, spans, search_span, candidates, workers)
    return gather_blocks(blocks, [[one] for one in best])


def search_collection(
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
    """Return the run of MaxSim over an encoder's token vectors, made smaller as `token_vectors.Shrink` says."""
    model, shrink = encoding.encoder(encoder, compat), Shrink(dimensions, factor, seed)
    instruction = collection.card.instruction
    check_fits(collection, "the search by token vectors", INSTEAD)
    documents = load_token_vectors(model, collection.texts, "document", instruction, shrink)
    queries = load_token_vectors(model, collection.query_texts, "query", instruction, shrink)
    hits = search(queries, documents, depth=depth, candidates=collection.candidates)
    return runs.from_positions(*hits, collection.query_ids, collection.doc_ids, name, collection.name)


def split_by_budget(lengths: np.ndarray, budget: int, longest: int) -> list[slice]:
    """Return slices that cover the texts, each of at most *budget* tokens and *longest* texts, or of one text."""
    slices, start, n_tokens = [], 0, 0
    for position, length in enumerate(lengths.tolist()):
        if position > start and (n_tokens + length > budget or position - start >= longest):
            slices.append(slice(start, position))
            start, n_tokens = position, 0
        n_tokens += length
    return [*slices, slice(start, len(lengths))] if len(lengths) else []


def _best(
    queries: TokenRows, block: slice, docs: TokenRows, cuts: list[slice], depth: int, mask: np.ndarray | None
) -> TopK:
    query_rows = queries.block(block.start, block.stop)
    width = max(cut.stop - cut.start for cut in cuts)
    best = TopK(block.stop - block.start, min(depth, len(docs.lengths)), width)
    for cut in reversed(cuts):
        scores = max_sim_matrix(query_rows, queries.lengths[block], docs.block(cut.start, cut.stop), docs.lengths[cut])
        best.add(scores, cut.start, None if mask is None else mask[:, cut])
    return best.trim()


def _check(queries: TokenRows, docs: TokenRows, depth: int) -> None:
    sizes = {side.dimensions for side in (queries, docs) if side.dimensions}
    if len(sizes) > 1:
        raise MirblabError(
            f"token vectors of queries have {queries.dimensions} dimensions, those of documents {docs.dimensions}; "
            "encode both with one model"
        )
    check_positive(depth=depth)


def token_similarities(query: str, document: str, encoder: str = "minilm", instruction: str = "") -> pd.DataFrame:
    """Return the cosine of each token of the *query* (rows) with each of the *document* (columns), −1 to 1.

    Index and columns are the tokens as the encoder's tokenizer writes them, repeated ones too; `attrs["score"]` is the
    MaxSim, the mean of the rows' largest. MirblabError for a text without tokens.

    >>> table = token_similarities("A ring", "Every field is a ring")
    >>> table.index.tolist(), table.idxmax(axis=1).tolist()
    (['a', 'ring'], ['a', 'ring'])
    """
    model, vectors, tokens = encoding.encoder(encoder), [], []
    for role, text in (("query", query), ("document", document)):
        vectors.append(model.token_vectors([text], role, instruction)[0])
        tokens.append(pd.Index(model.tokens([text], role, instruction)[0], name=role))
        if not len(vectors[-1]):
            raise MirblabError(f"the {role} {text!r:.40} has no tokens, so nothing matches")
    table = pd.DataFrame(vectors[0] @ vectors[1].T, index=tokens[0], columns=tokens[1])
    table.attrs["score"] = max_sim(vectors[0], vectors[1])
    return table


def token_storage_table(
    collection: Collection,
    encoder: str = "minilm",
    *,
    dimensions: Sequence[int] = (0,),
    factors: Sequence[int] = (1,),
    seed: int = 0,
    n_queries: int = 0,
) -> pd.DataFrame:
    """Return what the documents of a collection take as passage vectors and as token vectors, a row for each way.

    Columns: what (one vector per text, or its tokens, merged by which factor), dimensions, dtype, vectors and bytes per
    document, total (bytes of all documents), ratio (to passage vectors in float32), and seconds per query of a full
    search of the first *n_queries* queries; NaN for the number types that are not stored. Each text takes 32 more bytes
    for key, checksum and end. int8 is a byte for each number and two for the scale of its vector. *dimensions* (0: all)
    and *factors* are combined, as in `token_vectors.Shrink`. What is not stored yet is encoded.

    >>> from mirblab.sources.catalogue import load
    >>> token_storage_table(load("mini-hol"), "minilmm")
    Traceback (most recent call last):
    mirblab.core.errors.MirblabError: no encoder 'minilmm'; ...
    """
    model, instruction = encoding.encoder(encoder), collection.card.instruction
    texts, query_texts = collection.texts, collection.query_texts[:n_queries]
    docs, queries = model.vectors(texts, "document", instruction), model.vectors(query_texts, "query", instruction)
    spent = _seconds_per_query(partial(dense.search, queries, docs, depth=DEPTH), len(query_texts))
    parts = [_storage_rows("one vector", model.dimensions, 1.0, {"float32": spent, "float16": np.nan})]
    for shrink in (Shrink(size, factor, seed) for factor in factors for size in dimensions):
        doc_tokens = load_token_vectors(model, texts, "document", instruction, shrink)
        query_tokens = load_token_vectors(model, query_texts, "query", instruction, shrink)
        spent = _seconds_per_query(partial(search, query_tokens, doc_tokens, depth=DEPTH), len(query_texts))
        what = f"tokens, merged by {shrink.factor}" if shrink.factor > 1 else "tokens"
        n_vectors = float(doc_tokens.lengths.mean()) if len(doc_tokens.lengths) else 0.0
        seconds = {"float32": np.nan, "float16": spent, "int8": np.nan}
        parts.append(_storage_rows(what, doc_tokens.dimensions, n_vectors, seconds))
    table = pd.concat(parts, ignore_index=True)
    table.insert(5, "total", (table.bytes * len(texts)).round().astype(np.int64))
    table.insert(6, "ratio", table.bytes / table.bytes.iloc[0])
    return table


def _storage_rows(what: str, dimensions: int, vectors: float, seconds: dict[str, float]) -> pd.DataFrame:
    rows = []
    for dtype, spent in seconds.items():
        number, scale = BYTES[dtype]
        rows.append((what, dimensions, dtype, vectors, vectors * (dimensions * number + scale), spent))
    return pd.DataFrame(rows, columns=["what", "dimensions", "dtype", "vectors", "bytes", "seconds"])


def _seconds_per_query(search: Callable[[], object], n_queries: int) -> float:
    """Return the seconds per query of a search, the better of two; NaN without queries."""
    if not n_queries:
        return float("nan")
    spent = []
    for _ in range(2):  # the first brings the vectors into memory
        start = time.perf_counter()
        search()
        spent.append(time.perf_counter() - start)
    return min(spent) / n_queries
