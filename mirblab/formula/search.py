"""search: structure search over a collection."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mirblab.core.errors import check_positive
from mirblab.data import runs
from mirblab.data.candidates import Candidates
from mirblab.data.collection import Collection
from mirblab.data.ranking import top_k
from mirblab.formula.formal.statements import FormulaSource, is_names
from mirblab.formula.in_text import FormulaReader, TextFormulas, count_without_formula, number_formulas
from mirblab.formula.index import Index, stored_index
from mirblab.formula.scoring import DEFAULT_B, TOKEN_WEIGHTS, kind_weights, rarity
from mirblab.formula.storage import COUNT_BITS, COUNT_MASK, Segment
from mirblab.formula.tokens import KIND_MASK, KINDS
from mirblab.formula.tree import Tree

# Raised by one whenever the runs of this kind change; otherwise tests/retrieval/test_golden_runs.py fails.
RUNS_VERSION = 16

K1 = 1.2  # BM25's usual one
_AT_ONCE = 256  # queries


@dataclass(frozen=True)
class Counting:
    """How `score_texts` counts: the *power* of rarity, BM25's *b* and *k3*, and how often parts of *names* count."""

    power: float = 1.0
    b: float = 0.75
    k3: float = math.inf
    names: float = 1.0


POSTS = Counting()  # as usual in BM25; no k1 and b do better on held-out topics of both years of ARQMath
# For statements in the languages of proof assistants, chosen on the dev splits of setmm and mathcomp-premise together:
# benchmarks/formal_weights.py. A common subterm says more there than a common sign, and long statements count less.
# The power of rarity was chosen on the train splits of these and of two more libraries of Rocq.
FORMAL_WEIGHTS = dict(zip(KINDS, (2.0, 0.25, 0.5, 0.25, 0.5, 2.0), strict=True))
STATEMENTS = Counting(power=1.5, b=1.0)
# Between prose and statements, whose names say in words what they state: chosen on dev splits by the same script. Prose
# repeats its variables more often than a statement does, and so repetitions count less.
PROSE = Counting(k3=1.0, names=2.0)


@dataclass(frozen=True)
class IndexedFormulas:
    """A collection's formulas, indexed once for many searches; `is_single`: at most one per document, not distinct.

    `source` says what is read of texts: formulas, or in collections for proof assistants statements.
    """

    source: FormulaSource
    is_single: bool
    documents: TextFormulas
    index: Index

    @classmethod
    def of(cls, collection: Collection) -> IndexedFormulas:
        """Return the formulas of a collection and their index, which is read from the cache where it is there."""
        source = FormulaSource.of(collection)
        longest = max((len(source.query(text)) for text in collection.query_texts), default=0)
        return cls._indexed(source, source.documents(collection, named=True), longest)

    @classmethod
    def of_texts(
        cls, collection: Collection, texts: Iterable[str], n_queries: int, titles: Sequence[str | None] = ()
    ) -> IndexedFormulas:
        """Return the formulas of *texts*, which are searched for and found.

        The first *n_queries* are read as queries of a *collection* are, the others as its documents. *titles* are those
        of the texts that are documents, None for others; (): there is none.
        """
        source = FormulaSource.of(collection)
        return cls._indexed(source, number_formulas(_read_texts(source, texts, n_queries, titles)), 0)

    @classmethod
    def _indexed(cls, source: FormulaSource, documents: TextFormulas, longest: int) -> IndexedFormulas:
        """Return the index; *longest* is the largest number of formulas of a query that is no document."""
        is_single = source.of_queries.is_bare and documents.is_single and longest <= 1 and not source.language
        formulas = documents.column() if is_single else documents.formulas
        return cls(source, is_single, documents, stored_index(formulas, source.language))

    @property
    def reader(self) -> FormulaReader:
        """Return the reader of the queries' formulas."""
        return self.source.of_queries

    def search(
        self,
        texts: Sequence[str],
        depth: int,
        candidates: Candidates,
        *,
        weights: Mapping[str, float] | None = None,
        b: float = DEFAULT_B,
        n_queries: int | None = None,
        titles: Sequence[str | None] = (),
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (rows, positions, scores) of each text's best documents, flat, best first; see `search`.

        The first *n_queries* texts (None: all) are read as queries, the others as documents; *titles* as in `of_texts`.
        """
        queries = list(_read_texts(self.source, texts, len(texts) if n_queries is None else n_queries, titles))
        if self.source.language:
            trees, used = [[self.source.tree(part) for part in query] for query in queries], self.weights(weights)
            counting = PROSE if self.source.has_prose else STATEMENTS
            scores = score_texts(self.index, self.documents, trees, used, counting)
            return _rank_documents(scores, candidates, depth)
        if self.is_single and max(map(len, queries), default=0) <= 1:
            single = [query[0] if query else "" for query in queries]
            return self.index.search(single, depth, candidates, weights=weights, b=b)
        if not self.reader.is_bare:
            return _rank_documents(score_texts(self.index, self.documents, queries, weights), candidates, depth)
        return _rank_documents(_score_queries(self.index, self.formulas, queries, weights, b), candidates, depth)

    def weights(self, weights: Mapping[str, float] | None = None) -> dict[str, float]:
        """Return the weights of kinds of tokens that a search uses: *weights*, and the usual ones of the others."""
        usual = FORMAL_WEIGHTS if self.source.language else TOKEN_WEIGHTS
        return dict(zip(KINDS, kind_weights(usual | dict(weights or {})).tolist(), strict=True))

    @cached_property
    def formulas(self) -> TextFormulas:
        """Return which document has which formula of the index."""
        if not self.is_single:
            return self.documents
        places = np.flatnonzero(np.diff(self.documents.starts))
        return TextFormulas(self.documents.column(), places, self.documents.starts)


def _read_texts(
    source: FormulaSource, texts: Iterable[str], n_queries: int, titles: Sequence[str | None]
) -> Iterator[list[str]]:
    for row, text in enumerate(texts):
        title = titles[row] if titles else None
        yield source.query(text, named=True, is_document=row >= n_queries, title=title)


def _rank_documents(
    scored: Iterable[np.ndarray], candidates: Candidates, depth: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))]
    for row, scores in enumerate(scored):
        allowed = candidates.allowed(np.array([row]))
        _, positions, best = top_k(np.where(scores > 0, scores, -np.inf)[None], depth, allowed)
        parts.append((np.full(len(positions), row), positions, best))
    rows, positions, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    return rows, positions, scores


def score_texts(
    index: Index,
    documents: TextFormulas,
    queries: Sequence[Sequence[str | Tree]],
    weights: Mapping[str, float] | None = None,
    counting: Counting = POSTS,
) -> Iterator[np.ndarray]:
    """Yield for each query, a list of formulas (LaTeX or trees), the score of every text, float32 (n_texts,), 0 and up.

    The tokens of all formulas of a text are one bag, scored by BM25 (Robertson and Zaragoza 2009): a token that the
    query has c times and the text n times earns c (k3 + 1) / (c + k3) · w · n (k1 + 1) / (n + k1 (1 - b + b · l)),
    where k1 is 1.2, w the weight of its kind times its rarity r among the texts, and l, the number of tokens, is 1 on
    average. With another power r is raised to it and divided so that the rarest tokens keep theirs, which leaves the
    size of scores as it is for sums with others. Parts of names (`statements.name_parts`) count *counting*.names
    times. *index* has the formulas of *documents* in their order; *weights* are those of kinds of tokens.

    >>> from mirblab.formula.in_text import collect_formulas
    >>> documents = collect_formulas(["With $x^2$ and $y$", "$z$"], bare=False)
    >>> index = Index.build(zip("abc", documents.formulas))
    >>> [[round(float(score), 2) for score in found] for found in score_texts(index, documents, [["a^2"]])]
    [[1.79, 0.0]]
    """
    from scipy.sparse import csr_matrix

    kinds, segments = kind_weights(weights), index.state.segments
    shape = len(documents.starts) - 1, len(documents.formulas)
    owners = csr_matrix((np.ones(len(documents.numbers)), documents.numbers, documents.starts), shape=shape)
    sizes = [np.bincount(part.postings >> COUNT_BITS, part.postings & COUNT_MASK, part.n) for part in segments]
    lengths = owners @ np.concatenate([np.zeros(0), *sizes])
    average = lengths[lengths > 0].mean() if lengths.any() else 1.0
    excess = K1 * (1 - counting.b + counting.b * lengths / average)
    rarest = np.log1p(max(1, len(lengths)))  # the rarity of a token of one text
    for start in range(0, len(queries), _AT_ONCE):
        asked = [_query_tokens(index, query, counting) for query in queries[start : start + _AT_ONCE]]
        keys = np.unique(np.concatenate([own for own, _ in asked]))
        bags = (_occurrences(segments, keys) @ owners.T).tocsr()  # tokens by texts
        bags.data = bags.data * (K1 + 1) / (bags.data + excess[bags.indices])
        rare = rarity(len(lengths), np.diff(bags.indptr))
        worth = kinds[(keys & KIND_MASK).astype(np.int64)] * rare * (rare / rarest) ** (counting.power - 1)
        for own, counts in asked:
            rows = np.searchsorted(keys, own)
            yield (bags[rows].T @ (counts * worth[rows])).astype(np.float32)


def _query_tokens(index: Index, query: Sequence[str | Tree], counting: Counting) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys of a query's tokens, each once, and how much each of them counts."""
    found, nothing = index.queries(list(query)), np.empty(0)
    keys = np.concatenate([nothing.astype(np.uint64), *(own.keys for own in found)])
    counts = np.concatenate([nothing, *(own.counts for own in found)])
    keys, place = np.unique(keys, return_inverse=True)
    counts = np.bincount(place, counts, len(keys))
    of_names = [own.keys for own, tree in zip(found, query, strict=True) if isinstance(tree, Tree) and is_names(tree)]
    worth = np.where(np.isin(keys, np.concatenate([keys[:0], *of_names])), counting.names, 1.0)
    return keys, worth * counts * (1 + 1 / counting.k3) / (1 + counts / counting.k3)


def _occurrences(segments: Sequence[Segment], keys: np.ndarray) -> Any:
    from scipy.sparse import csr_matrix, hstack

    parts = [csr_matrix((len(keys), 0))]
    for part in segments:
        begin, end = part.find(keys)
        sizes = end - begin
        starts = np.concatenate([[0], np.cumsum(sizes)])
        postings = part.postings[np.arange(starts[-1]) + np.repeat(begin - starts[:-1], sizes)]
        columns, counts = (postings >> COUNT_BITS).astype(np.int64), (postings & COUNT_MASK).astype(np.float64)
        parts.append(csr_matrix((counts, columns, starts), shape=(len(keys), part.n)))
    return hstack(parts, format="csr")


def _score_queries(
    index: Index, documents: TextFormulas, queries: list[list[str]], weights: Mapping[str, float] | None, b: float
) -> Iterator[np.ndarray]:
    for query in queries:
        asked = index.queries(list(dict.fromkeys(query)), weights)
        found, total = np.zeros(len(documents.starts) - 1), sum(own.length for own in asked)
        for own in asked:
            if own.length:
                found += documents.best(index.scores(own, weights, b)) * (own.length / total)
        yield found.astype(np.float32)


def search(
    collection: Collection, *, depth: int, weights: Mapping[str, float] | None = None, b: float = DEFAULT_B
) -> pd.DataFrame:
    """Return the run of structure search: at most *depth* documents per query, best first.

    In a collection for formula retrieval (by its card, else by the look of its texts) a document scores as in
    `Index.search`; with several formulas, the document's best for each of the query counts, weighted by length. A post
    scores by all of its formulas together (`score_texts`). In a collection for a proof assistant, Lean, Rocq, HOL or
    Metamath, a statement scores in the same way as a post of one formula, which is all of it (`formal.terms`,
    `formal.metamath`), and prose by what it quotes between dollars or backticks. *weights* are those of kinds of tokens
    (None: the usual ones); *b*, the weight of the query's matched share, is not used for posts. Documents that share
    nothing or are excluded by the candidates are never returned. The attrs count texts without a formula
    (`in_text.count_without_formula`).

    >>> from mirblab.sources.catalogue import load
    >>> run = search(load("mini-wfb"), depth=3)
    >>> int(run["rank"].max()), run.attrs["b"]
    (3, 4.0)
    """
    check_positive(depth=depth)
    queries, candidates = collection.query_texts, collection.candidates
    prepared = IndexedFormulas.of(collection)
    found = prepared.search(queries, depth, candidates, weights=weights, b=b)
    notes: dict[str, Any] = {"b": b, "weights": prepared.weights(weights)}
    have = [bool(prepared.source.query(text)) for text in queries]
    notes |= count_without_formula(have, np.diff(prepared.documents.starts) > 0)
    return runs.from_positions(*found, collection.query_ids, collection.doc_ids, "structure", collection.name, **notes)
