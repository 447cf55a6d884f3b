"""late_interaction: search by token vectors (MaxSim), its matches and its cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.data.candidates import Candidates
from mirblab.data.collection import Collection
from mirblab.data.topk import TopK, gather_blocks, n_cores, run_in_threads, split_range
from mirblab.encoders import encoding
from mirblab.encoders.token_vectors import Shrink, load_token_vectors
from mirblab.retrieval import dense

NOTHING = -1.0  # the score of a pair in which one side has no tokens


class TokenRows(Protocol):
    """The token vectors of many texts, one text's after the other's, in memory or on disk."""

    lengths: np.ndarray

    @property
    def dimensions(self) -> int:
        """Return the length of a token vector."""

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return the token vectors of the texts from *start* to *stop*, float32 (n_tokens, d)."""


@dataclass(frozen=True, eq=False)
class TokenMatrices:
    """Token vectors in memory: rows (n_tokens, d) of any float type, and how many of them each text has, (n_texts,).

    >>> found = TokenMatrices.of([np.eye(2), np.ones((1, 2))])
    >>> found.lengths.tolist(), found.block(1, 2).tolist()
    ([2, 1], [[1.0, 1.0]])
    """

    rows: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, matrices: Sequence[np.ndarray]) -> TokenMatrices:
        """Return the token vectors of texts that are given as matrices (n_tokens, d); one without tokens is empty."""
        full = [one for one in matrices if len(one)]
        rows = np.concatenate(full) if full else np.empty((0, 0), np.float32)
        return cls(rows, np.array([len(one) for one in matrices], dtype=np.int64))

    @property
    def dimensions(self) -> int:
        """Return the length of a token vector; 0 when no text has any."""
        return self.rows.shape[1]

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return the token vectors of the texts from *start* to *stop*, float32 (n_tokens, d), one after the other."""
        first = int(self.lengths[:start].sum())
        return self.rows[first : first + int(self.lengths[start:stop].sum())].astype(np.float32)


def max_sim(query: np.ndarray, document: np.ndarray) -> float:
    """Return the mean over query tokens of the best cosine with a document token, between -1 and 1.

    Both are (n_tokens, n_dims) of unit rows. ColBERT (Khattab and Zaharia, SIGIR 2020) sums instead of taking
    the mean, which orders one query's documents alike. An empty side scores -1.

    >>> max_sim(np.eye(2), np.array([[1.0, 0.0]]))
    0.5
    """
    if not len(query) or not len(document):
        return NOTHING
    return float((query @ document.T).max(axis=1).mean())


def max_sim_matrix(
    query_rows: np.ndarray, query_lengths: np.ndarray, doc_rows: np.ndarray, doc_lengths: np.ndarray
) -> np.ndarray:
    """Return the MaxSim of every query with every document, float32 (n_queries, n_docs), by one product.

    Rows are the token vectors of all queries, and of all documents, one text's after the other's; lengths say how
    many each text has. Scores are those of `max_sim`.

    >>> max_sim_matrix(np.eye(2), np.array([2]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1, 0, 1])).tolist()
    [[0.5, -1.0, 0.5]]
    """
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
    """Return the token vectors of the texts from *start* to *stop* one by one, the first *longest* of each (None: all).

    >>> [one.shape for one in split_by_text(TokenMatrices.of([np.eye(2), np.eye(2)[:1]]), 0, 2, longest=1)]
    [(1, 2), (1, 2)]
    """
    parts = np.split(rows.block(start, stop), np.cumsum(rows.lengths[start:stop])[:-1]) if stop > start else []
    return [own[:longest] for own in parts]


def score_pairs(
    queries: Sequence[np.ndarray], documents: Sequence[np.ndarray], pairs: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Return the MaxSim of each (query position, document position), shape (n_pairs,), float32."""
    return np.array([max_sim(queries[query], documents[document]) for query, document in pairs], dtype=np.float32)


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.cumsum(lengths) - lengths


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
    """Return (rows, positions, scores) of the *depth* best documents of each query by MaxSim, best first.

    Products are float32, a block of documents at a time, so that the documents may lie on disk. Equal scores are
    ordered by position, the larger first; what *candidates* does not allow never comes back; a document without
    tokens scores -1. *threads* None: one per core that this process may use. The same call gives the same bytes,
    whatever the number of threads. Raises MirblabError for other dimensions on the two sides.

    >>> from mirblab.retrieval.late_interaction import TokenMatrices
    >>> docs = TokenMatrices.of([np.eye(2), np.array([[1.0, 0.0]])])
    >>> rows, positions, scores = search(TokenMatrices.of([np.eye(2)]), docs, depth=2)
    >>> positions.tolist(), scores.tolist()
    ([0, 1], [1.0, 0.5])
    """
    from threadpoolctl import threadpool_limits

    _check(queries, docs, depth)
    n_queries, n_docs = len(queries.lengths), len(docs.lengths)
    if not n_queries or not n_docs:
        return gather_blocks([], [])
    workers = threads or n_cores()
    allowed = candidates.allowed if candidates is not None and candidates.rules else None
    rows = split_by_budget(queries.lengths, QUERY_TOKENS, max(1, MASK_BYTES // n_docs))
    cuts = split_by_budget(docs.lengths, DOC_TOKENS, DOC_TOKENS)
    spans = split_range(len(cuts), -(-len(cuts) // workers))

    def task(job: tuple[slice, slice]) -> TopK:
        block, span = job
        mask = None if allowed is None else allowed(np.arange(block.start, block.stop))
        return _best(queries, block, docs, cuts[span], depth, mask)

    with threadpool_limits(1, "blas"):
        found = run_in_threads(task, list(product(rows, spans)), workers)
    return gather_blocks(rows, [found[at : at + len(spans)] for at in range(0, len(found), len(spans))])


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
    """Return the run of MaxSim over an encoder's token vectors, *depth* documents per query, best first.

    *dimensions*, *factor* and *seed* make the token vectors smaller, as `token_vectors.Shrink` says.
    """
    model, shrink = encoding.encoder(encoder, compat), Shrink(dimensions, factor, seed)
    instruction = collection.card.instruction
    documents = load_token_vectors(model, collection.texts, "document", instruction, shrink)
    queries = load_token_vectors(model, collection.query_texts, "query", instruction, shrink)
    found = search(queries, documents, depth=depth, candidates=collection.candidates)
    return runs.from_positions(*found, collection.query_ids, collection.doc_ids, name, collection.name)


def split_by_budget(lengths: np.ndarray, budget: int, longest: int) -> list[slice]:
    """Return slices that cover the texts, each of at most *budget* tokens and *longest* texts, or of one text.

    >>> split_by_budget(np.array([3, 3, 9, 1]), 6, 100)
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
) -> TopK:
    """Search some blocks of documents for a block of queries, from the last document to the first."""
    own = queries.block(block.start, block.stop)
    width = max(cut.stop - cut.start for cut in cuts)
    best = TopK(block.stop - block.start, min(depth, len(docs.lengths)), width)
    for cut in reversed(cuts):
        scores = max_sim_matrix(own, queries.lengths[block], docs.block(cut.start, cut.stop), docs.lengths[cut])
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


def token_similarities(query: str, document: str, encoder: str = "minilm", instruction: str = "") -> pd.DataFrame:
    """Return the cosine of each token of the *query* (rows) with each of the *document* (columns), −1 to 1.

    Index and columns are the tokens as the encoder's tokenizer writes them, repeated ones included; `attrs["score"]`
    is the MaxSim: the mean of the rows' largest. Raises MirblabError for a text without tokens.

    >>> table = token_similarities("A ring", "Every field is a ring")
    >>> table.index.tolist(), table.idxmax(axis=1).tolist()
    (['a', 'ring'], ['a', 'ring'])
    """
    model, sides = encoding.encoder(encoder), {}
    for role, text in (("query", query), ("document", document)):
        vectors, names = (make([text], role, instruction)[0] for make in (model.token_vectors, model.tokens))
        if not len(vectors):
            raise MirblabError(f"the {role} {text!r:.40} has no tokens, so nothing matches")
        sides[role] = (vectors, names)
    (asked, rows), (held, columns) = sides["query"], sides["document"]
    table = pd.DataFrame(asked @ held.T, index=pd.Index(rows, name="query"), columns=pd.Index(columns, name="document"))
    table.attrs["score"] = max_sim(asked, held)
    return table


BYTES = {"float32": (4, 0), "float16": (2, 0), "int8": (1, 2)}  # of a number, and of a vector's scale
DEPTH = 100


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

    Columns: what (one vector per text, or its tokens, merged by which factor), dimensions, dtype, vectors and bytes
    per document, total (bytes of all documents), ratio (to passage vectors in float32), and seconds per query of a
    full search of the first *n_queries* queries with what is stored here; NaN for other types, and for no queries.
    Bytes are those of the vectors; key, checksum and end, 32 bytes a text, come on top. int8 is what
    `token_vectors.round_to_bytes` keeps. *dimensions* (0: all) and *factors* are combined, as `token_vectors.Shrink`
    says. What is not stored yet is encoded.

    >>> from mirblab.sources.catalogue import load
    >>> token_storage_table(load("mini-hol"), "minilmm")
    Traceback (most recent call last):
    mirblab.core.errors.MirblabError: no encoder 'minilmm'; ...
    """
    model, instruction = encoding.encoder(encoder), collection.card.instruction
    texts, asked = collection.texts, collection.query_texts[:n_queries]
    parts = [_passage_rows(model, texts, asked, instruction)]
    for shrink in (Shrink(size, factor, seed) for factor in factors for size in dimensions):
        docs = load_token_vectors(model, texts, "document", instruction, shrink)
        queries = load_token_vectors(model, asked, "query", instruction, shrink)
        spent = _seconds_per_query(lambda q=queries, d=docs: search(q, d, depth=DEPTH), len(asked))
        what = f"tokens, merged by {shrink.factor}" if shrink.factor > 1 else "tokens"
        vectors = float(docs.lengths.mean()) if len(docs.lengths) else 0.0
        parts.append(
            _storage_rows(what, docs.dimensions, vectors, {"float32": np.nan, "float16": spent, "int8": np.nan})
        )
    table = pd.concat(parts, ignore_index=True)
    table.insert(5, "total", (table.bytes * len(texts)).round().astype(np.int64))
    table.insert(6, "ratio", table.bytes / table.bytes.iloc[0])
    return table


def _passage_rows(model: encoding.Encoder, texts: list[str], asked: list[str], instruction: str) -> pd.DataFrame:
    docs, queries = model.vectors(texts, "document", instruction), model.vectors(asked, "query", instruction)
    spent = _seconds_per_query(lambda: dense.search(queries, docs, depth=DEPTH), len(asked))
    return _storage_rows("one vector", model.dimensions, 1.0, {"float32": spent, "float16": np.nan})


def _storage_rows(what: str, dimensions: int, vectors: float, seconds: dict[str, float]) -> pd.DataFrame:
    """Return a row for each number type in *seconds*."""
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
