"""postings: the BM25 index of bm25s, and the best documents of many queries at once by sparse products."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mirblab.best import Best, blocks, cores, each, gather
from mirblab.progress import progress

LANES = 64
CHUNK = 4096
MASK_BYTES = 1 << 27


@dataclass(frozen=True)
class Index:
    """What each term contributes to the score of each document.

    `weights` is sparse (n_docs, n_terms), float32, made by bm25s; `absent` is what a term contributes to a
    document without it, (n_terms,), other than 0 for the methods bm25l and bm25+ only.
    """

    vocabulary: dict[str, int]
    weights: object
    absent: np.ndarray

    @classmethod
    def build(cls, tokens: list[list[str]], method: str, k1: float, b: float, delta: float) -> Index:
        """Return the index of the documents' *tokens*."""
        from bm25s import BM25
        from scipy.sparse import csc_array

        vocabulary: defaultdict[str, int] = defaultdict()
        vocabulary.default_factory = vocabulary.__len__
        ids = [[vocabulary[token] for token in document] for document in tokens]
        shape = (len(tokens), len(vocabulary))
        absent = np.zeros(shape[1], dtype=np.float32)
        if not vocabulary:
            return cls({}, csc_array(shape, dtype=np.float32), absent)
        engine = BM25(method=method, k1=k1, b=b, delta=delta, csc_backend="scipy")
        engine.index((ids, dict(vocabulary)), create_empty_token=False, show_progress=False)
        parts = (engine.scores["data"], engine.scores["indices"], engine.scores["indptr"])
        if engine.nonoccurrence_array is not None:
            absent = engine.nonoccurrence_array
        return cls(dict(vocabulary), csc_array(parts, shape=shape), absent)

    def document_counts(self) -> np.ndarray:
        """Return in how many documents each term occurs, shape (n_terms,)."""
        return np.diff(self.weights.indptr)

    @cached_property
    def chunks(self) -> list[tuple[int, object]]:
        """Return first position and weights of each run of CHUNK documents, the last first."""
        rows = self.weights.tocsr()
        starts = range(0, self.weights.shape[0], CHUNK)
        return [(start, rows[start : start + CHUNK].tocsc()) for start in reversed(starts)]

    def queries(self, tokens: list[list[str]]) -> object:
        """Return how often each query has each known term: sparse (n_queries, n_terms), float32, terms in order."""
        from scipy.sparse import csr_array

        known = self.vocabulary
        counts = [sorted(Counter(known[word] for word in row if word in known).items()) for row in tokens]
        terms = np.array([term for row in counts for term, _ in row], dtype=np.int32)
        data = np.array([count for row in counts for _, count in row], dtype=np.float32)
        starts = np.concatenate([[0], np.cumsum([len(row) for row in counts])]).astype(np.int32)
        return csr_array((data, terms, starts), shape=(len(tokens), len(self.vocabulary)))

    def search(
        self, tokens: list[list[str]], depth: int, allowed: Callable | None = None, zero_mask: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (rows, positions, scores) of each query's *depth* best documents, best first.

        Only documents that score above what no shared term gives are returned. With *zero_mask* a document
        that is not allowed scores 0 instead, and documents of score 0 fill the ranking. A score is the sum of
        its terms' contributions in the order of the vocabulary, whatever the other queries and the blocks.
        """
        size = LANES if allowed is None else max(1, min(LANES, MASK_BYTES // max(self.weights.shape[0], 1)))
        rows, counts = blocks(len(tokens), size), self.queries(tokens)
        depth = max(1, min(depth, self.weights.shape[0]))
        self.chunks  # noqa: B018  made here once, not in each thread

        with progress(len(tokens), "BM25", "queries") as bar:

            def task(block: slice) -> list[Best]:
                mask = None if allowed is None else allowed(np.arange(block.start, block.stop))
                best = self._best(counts[block], depth, mask, zero_mask)
                bar.update(block.stop - block.start)
                return [best]

            return gather(rows, each(task, rows, cores()))

    def _best(self, counts: object, depth: int, mask: np.ndarray | None, zero_mask: bool) -> Best:
        constant = (counts @ self.absent).astype(np.float32)
        best = Best(counts.shape[0], depth, CHUNK, -np.inf if zero_mask else constant)
        product = self._product(counts)
        for start, chunk in self.chunks:
            scores = product(chunk)
            if constant.any():
                scores += constant[:, None]
            part = None if mask is None else mask[:, start : start + chunk.shape[0]]
            if zero_mask and part is not None:
                scores, part = np.where(part, scores, np.float32(0)), None
            best.add(scores, start, part)
        return best

    def _product(self, counts: object) -> Callable[[object], np.ndarray]:
        """Return the function that scores a chunk, (n_queries, n_docs): all queries at once, term after term.

        Multiplying by the zeros of queries without a term costs less than jumping between postings: the
        product runs through memory in order and is vectorised over the queries.
        """
        used = np.unique(counts.indices)
        columns = np.ascontiguousarray(counts[:, used].toarray().T)
        return lambda chunk: (chunk[:, used].tocsr() @ columns).T
