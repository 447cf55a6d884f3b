"""Pairs of statements that probably say the same, within one collection or across two."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from mirblab.analysis.collection_report import wilson_interval
from mirblab.core.errors import MirblabError, check_positive
from mirblab.core.terminal import progress
from mirblab.core.wording import counted
from mirblab.data.beir import iterate_texts
from mirblab.data.candidates import Candidates, ListRule, NotSelfRule, Rule
from mirblab.data.collection import Collection, check_fits
from mirblab.data.near_duplicates import GroupedTexts, jaccard_similarity, shingles, text_digests
from mirblab.data.parts import DocumentTexts, StoredTexts, parts_of, texts_at
from mirblab.display.table_formats import Table
from mirblab.encoders.cache import text_keys
from mirblab.encoders.encoding import encoder
from mirblab.formula import search as structure
from mirblab.retrieval import bm25, codes
from mirblab.retrieval.systems import System, search_options, system
from mirblab.retrieval.tokenizers import token_reader
from mirblab.sources.catalogue import load

NEAR_VERBATIM = 0.8  # Jaccard similarity of word triples from which on two texts are copies of each other
_AT_ONCE = {"bm25": 1 << 12, "structure": 1 << 12, "dense": 1 << 14}  # statements, each a query, by kind of system
_READ, _COMPARED = 1 << 12, 1 << 16  # texts, and pairs, that are handled together
_BITS = 512  # of a text's sketch
_LOOKED_AT = 1_000  # statements that show in which language all are; as many as `FormulaReader` looks at
_MOST_TERMS = 6
_WORD = re.compile(r"[^\W\d_]+")
_COUNTED = 2_000  # texts, evenly taken, in which terms are counted
Hits = Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]  # rows, positions, scores from 0 to 1


def similar(
    left: str | Collection,
    right: str | Collection | None = None,
    by: str | System = "minilm",
    *,
    n: int = 100,
    neighbours: int = 10,
    copies: bool = False,
    queries: bool = False,
) -> Table:
    """Return the *n* pairs of statements that are most alike, best first: those that probably say the same.

    With one collection the pairs are within it, with two each pair has a statement of either. Statements are the
    documents, with *queries* the queries as well. *by* is a system of words, vectors, formula structure, or a fusion
    of such; see `pair_scores` for the score. Each statement is compared with its *neighbours* nearest only. Texts that
    are nearly equal word by word (a Jaccard similarity of their word triples from 0.8) are left out unless *copies*.

    The frame has a row per pair: score (0 to 1), left, right (ids), left_text, right_text, shared (the rarest terms
    that both have). MirblabError for a system of another kind, or a number below 1.

    The texts of a collection in parts are read some thousand at a time; structure has all formulas in memory. Memory
    holds of each statement the id and some eighty bytes, and of all pairs of a statement and one of its nearest 24
    bytes each, several times as many while they are ordered: scores need both directions, and the notes count pairs.

    >>> table = similar("mini-pairs", by="bm25", n=3)
    >>> table.frame.columns.tolist(), len(table.frame)
    (['score', 'left', 'right', 'left_text', 'right_text', 'shared'], 3)
    """
    check_positive(n=n, neighbours=neighbours)
    chosen = system(by)
    statements = Statements.of(left, right, queries=queries)
    pairs = pair_scores(statements, chosen, neighbours)
    n_pairs = len(pairs)
    if not copies:
        pairs = statements.without_copies(pairs)
    top = pairs.head(n)
    ends = {"left": top.left.to_numpy(), "right": top.right.to_numpy()}
    frame = pd.DataFrame(
        {
            "score": top.score.to_numpy(),
            **{end: statements.ids_at(positions) for end, positions in ends.items()},
            **{f"{end}_text": texts_at(statements.texts, positions) for end, positions in ends.items()},
            "shared": _shared_terms(statements.texts, **ends),
        },
        index=pd.RangeIndex(1, len(top) + 1, name="rank"),
    )
    caption = f"Pairs of statements of {statements.name} that are most alike by {chosen.label}, best first."
    notes = [
        f"{len(top):,} of {counted(len(pairs), 'pair')} of a statement and one of its nearest "
        f"{'is' if len(top) == 1 else 'are'} shown; score from 0 to 1, 1 for a text and itself."
    ]
    if n_pairs > len(pairs):
        n_copies = n_pairs - len(pairs)
        are, them = ("is", "it") if n_copies == 1 else ("are", "them")
        left_out = f"{counted(n_copies, 'pair')} of nearly the same wording {are} left out"
        notes.append(f"{left_out}; copies=True (--copies) keeps {them}.")
    if statements.answers and not queries:
        names = " and ".join(statements.answers)
        notes.append(f"The documents of {names} answer its queries, as proofs do; queries=True compares these, too.")
    return Table(frame, caption, notes, 3, maths=frozenset({"left_text", "right_text"}))


def judged_pairs(
    collection: str | Collection, by: str | System = "minilm", *, neighbours: int = 10, copies: bool = False
) -> pd.DataFrame:
    """Return the pairs that `similar` finds in a collection of equivalent statements, best first, with the judgements.

    Where every query is a document, by id and text, the pairs are those of the documents, else those of a query (left)
    and a document. Columns: score, left, right (ids), equivalent: True where one statement was judged relevant to the
    other, False where it was judged not to be, missing where nobody judged. `attrs["n_equivalent"]` is the number of
    pairs that were judged equivalent. *by*, *neighbours* and *copies* are those of `similar`.

    >>> bool(judged_pairs("mini-pairs", "bm25").equivalent.any())
    True
    """
    check_positive(neighbours=neighbours)
    chosen, source = system(by), load(collection)
    statements = Statements.of_queries(source)
    judged = _judged_positions(source, statements)
    pairs = pair_scores(statements, chosen, neighbours)
    if not copies:
        pairs, judged = map(statements.without_copies, (pairs, judged))
    merged = pairs.merge(judged, on=["left", "right"], how="left")
    ids = {end: statements.ids_at(merged[end].to_numpy()) for end in ("left", "right")}
    table = pd.DataFrame({"score": merged.score, **ids})
    table["equivalent"] = merged.equivalent.astype("boolean")
    table.attrs = {"system": chosen.name, "collection": source.name, "n_equivalent": int(judged.equivalent.sum())}
    return table


def precision_of_pairs(pairs: pd.DataFrame, at: Sequence[int] = (10, 50, 100)) -> pd.DataFrame:
    """Return which share of the first n pairs of `judged_pairs` was judged equivalent, for each n of *at*.

    Columns: system, collection, n, equivalent, unjudged (numbers of pairs), precision (0 to 1: equivalent / n, so that
    an unjudged pair counts as not equivalent), low, high (Wilson's 95 % interval, JASA 1927, which takes pairs to be
    independent). An n above the number of pairs is left out.

    >>> pairs = pd.DataFrame({"score": [0.9, 0.8], "equivalent": pd.array([True, None], "boolean")})
    >>> precision_of_pairs(pairs, [1, 2])[["n", "equivalent", "unjudged", "precision"]].values.tolist()
    [[1.0, 1.0, 0.0, 1.0], [2.0, 1.0, 1.0, 0.5]]
    """
    if any(n < 1 for n in at):
        raise MirblabError(f"a number of pairs must be at least 1, found {', '.join(map(str, at))}")
    return _shares(pairs, {n: pairs.head(n) for n in at if n <= len(pairs)}).rename(columns={"share": "precision"})


def calibrate_pairs(pairs: pd.DataFrame, width: float = 0.1) -> pd.DataFrame:
    """Return which share of the pairs of `judged_pairs` was judged equivalent, by score in bins of a *width*, 0 to 1.

    Columns: system, collection, above (the lower end of the bin, which does not belong to it, but for 0), score (the
    mean in the bin), n (pairs), equivalent, unjudged, share (0 to 1), low, high (as in `precision_of_pairs`). Bins
    without a pair are left out. Reliability diagrams: Murphy and Winkler, Applied Statistics 1977.

    >>> pairs = pd.DataFrame({"score": [0.95, 0.91, 0.3], "equivalent": pd.array([True, False, None], "boolean")})
    >>> calibrate_pairs(pairs)[["above", "n", "equivalent", "share"]].values.tolist()
    [[0.2, 1.0, 0.0, 0.0], [0.9, 2.0, 1.0, 0.5]]
    """
    n_bins = round(1 / width) if 0 < width <= 1 else 0
    if not n_bins or abs(n_bins * width - 1) > 1e-9:
        raise MirblabError(
            f"the width of a bin must divide the range of scores, 0 to 1, evenly, found {width}; take 0.1"
        )
    ends = np.round(np.linspace(0, 1, n_bins + 1), 9)
    bins = np.clip(np.searchsorted(ends, pairs.score.to_numpy()) - 1, 0, n_bins - 1)
    groups = {float(ends[number]): pairs[bins == number] for number in np.unique(bins)}
    table = _shares(pairs, groups)
    table.insert(2, "above", list(groups))
    table.insert(3, "score", [rows.score.mean() for rows in groups.values()])
    return table


def _shares(pairs: pd.DataFrame, groups: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """Return for each group of the pairs how many are equivalent, their share, and its interval."""
    rows = []
    for group in groups.values():
        n, equivalent = len(group), int(group.equivalent.sum())
        n_unjudged, interval = int(group.equivalent.isna().sum()), wilson_interval(equivalent, n)
        rows.append((n, equivalent, n_unjudged, equivalent / n, *interval))
    types = dict.fromkeys(("n", "equivalent", "unjudged"), "int64") | dict.fromkeys(("share", "low", "high"), "float64")
    table = pd.DataFrame(rows, columns=list(types)).astype(types)
    for column in ("collection", "system"):
        table.insert(0, column, pairs.attrs.get(column, ""))
    return table


def _judged_positions(collection: Collection, statements: Statements) -> pd.DataFrame:
    """Return the judged pairs: left, right (positions, left < right), equivalent (whether any judgement says so)."""
    first, qrels = statements.n_left or 0, collection.qrels
    left = statements.ids[:first] if first else statements.ids
    queries = left.get_indexer(pd.Index(qrels.query_id.astype("str")))
    docs = statements.ids[first:].get_indexer(pd.Index(qrels.doc_id.astype("str")))
    is_equivalent = (qrels.relevance >= collection.card.relevant_from).to_numpy()
    kept = (queries >= 0) & (docs >= 0) & (queries != docs + first)
    pairs = _ordered(queries[kept], docs[kept] + first, is_equivalent[kept]).rename(columns={"score": "equivalent"})
    return pairs.groupby(["left", "right"], as_index=False)[["equivalent"]].max()


@dataclass(frozen=True)
class Statements:
    """The statements that are compared: those of the left collection, then those of the right one, if there is one.

    `texts` are a list, or of collections in parts read as they are needed; `collections` are those of which they are,
    and the first one's card holds for all. `n_left` is the number of statements of the left collection, or None where
    all are compared with all.
    """

    ids: pd.Index
    texts: Sequence[str]
    collections: tuple[Collection, ...]
    n_left: int | None

    @classmethod
    def of(cls, left: str | Collection, right: str | Collection | None, *, queries: bool) -> Statements:
        """Return the statements of one or two collections; MirblabError where there is nothing to compare."""
        collections = tuple(load(part) for part in (left, right) if part is not None)
        if len(collections) == 2 and collections[0].fingerprint == collections[1].fingerprint:
            raise MirblabError(
                f"{collections[0].name} is given twice; give it once, and its statements are compared with each other"
            )
        listed = [_statements(part, queries) for part in collections]
        for part, (ids, _) in zip(collections, listed, strict=True):
            if not len(ids):
                raise MirblabError(f"{part.name} has no statement with a text; there is nothing to compare")
        if len(listed) == 1:
            return cls(*listed[0], collections, None)
        (ids, texts), (other_ids, other_texts) = listed
        return cls(ids.append(other_ids), _joined([texts, other_texts]), collections, len(ids))

    @classmethod
    def of_queries(cls, collection: Collection) -> Statements:
        """Return the queries of a collection and its documents, to be compared; these alone if all queries are."""
        documents = cls.of(collection, None, queries=False)
        n_documents, both = len(documents.ids), cls.of(collection, None, queries=True)
        if len(both.ids) == n_documents:
            return documents
        queries = dict(zip(map(str, collection.query_ids), collection.query_texts, strict=True))
        queries = {name: text for name, text in queries.items() if text}
        ids = pd.Index(list(queries), dtype="str").append(documents.ids)
        texts = _joined([list(queries.values()), documents.texts])
        return replace(documents, ids=ids, texts=texts, n_left=len(queries))

    @property
    def name(self) -> str:
        """Return the names of the collections."""
        return " and ".join(part.name for part in self.collections)

    @property
    def answers(self) -> list[str]:
        """Return the collections whose documents answer their queries."""
        return [part.name for part in self.collections if part.card.task == "Question-Answer Retrieval"]

    def ids_at(self, positions: np.ndarray) -> np.ndarray:
        """Return the ids of statements, object (n,)."""
        return self.ids[positions].to_numpy(dtype=object)

    def candidates(self) -> Candidates:
        """Return with which statements each is compared: those of the other collection, or all but itself."""
        n = len(self.ids)
        rule: Rule = NotSelfRule(np.arange(n)) if self.n_left is None else OtherSideRule(self.n_left, self.n_left)
        return Candidates(n, (rule,))

    def blocks(self, kind: str) -> Iterator[np.ndarray]:
        """Yield the positions of successive statements, as many as a *kind* of system searches for together."""
        n, size = len(self.ids), _AT_ONCE[kind]
        with progress(n, "comparing statements", "statements") as bar:
            for start in range(0, n, size):
                positions = np.arange(start, min(start + size, n))
                yield positions
                bar.update(len(positions))

    def as_collection(self, texts: Sequence[str]) -> Collection:
        """Return a collection, in memory, whose documents and queries are *texts*."""
        ids = pd.Index([f"{number:09d}" for number in range(len(texts))], dtype="str")
        column = pd.Series(texts, dtype="str")
        nobody = {name: pd.Categorical([], ids) for name in ("query_id", "doc_id")}
        return replace(
            self.collections[0],
            corpus=pd.DataFrame({"doc_id": ids, "title": "", "text": column}),
            queries=pd.DataFrame({"query_id": ids, "text": column}),
            qrels=pd.DataFrame(nobody | {"relevance": np.empty(0, np.int32)}),
            candidates=Candidates(len(ids)),
            oddities={},
        )

    def examples(self) -> Collection:
        """Return a collection of evenly taken statements, from which the language of all is told."""
        return self.as_collection(self.texts[:: max(1, len(self.texts) // _LOOKED_AT)])

    def by_words(self, options: Mapping[str, Any]) -> bm25.StoredCollection | bm25.IndexedCollection:
        """Return BM25's index of the statements, on disk where they are in parts and the *options* permit it."""
        if isinstance(self.texts, StoredTexts):
            stored = bm25.StoredCollection.of_texts(self.examples(), self.texts, self._content, **options)
            if stored is not None:
                return stored
            for part in self.collections:
                check_fits(part, "the comparison of statements by BM25 other than the plain one")
        return bm25.IndexedCollection.of(self.as_collection(list(self.texts)), **options)

    def by_structure(self) -> structure.IndexedFormulas:
        """Return the index of the statements' formulas, which are in memory; those of each side are read alike.

        The left side may be prose and the right one in a formal language, or the other way round.
        """
        n, n_left = len(self.ids), self.n_left or 0
        step = max(1, n // _LOOKED_AT)
        left = self.as_collection(texts_at(self.texts, np.arange(0, n_left or n, step)))
        right = self.as_collection(texts_at(self.texts, np.arange(n_left, n, step)))
        both = replace(right, queries=left.queries)
        return structure.IndexedFormulas.of_texts(both, self.texts, n_left, self.titles)

    @cached_property
    def titles(self) -> list[str | None]:
        """Return the title with which each statement that is a document begins, "" for none, and None for a query."""
        ends = [0, len(self.ids)] if self.n_left is None else [0, self.n_left, len(self.ids)]
        found: list[str | None] = [None] * len(self.ids)
        for (start, end), part in zip(pairwise(ends), [*self.collections, self.collections[0]], strict=False):
            titles = dict(zip(part.doc_ids, iterate_texts(part.corpus.title), strict=True))
            for begin in range(start, end, _READ):
                block = slice(begin, min(begin + _READ, end))
                own = ((titles.get(name), text) for name, text in zip(self.ids[block], self.texts[block], strict=True))
                found[block] = [title if title is not None and text.startswith(title) else None for title, text in own]
        return found

    @property
    def _content(self) -> str:
        """Return a digest of all texts, for all documents of a collection in parts that of its manifest."""
        parts = parts_of(self.collections[0].corpus)
        if parts is not None and isinstance(self.texts, DocumentTexts):
            return parts.content
        digest = blake2b(digest_size=32)
        for start in range(0, len(self.texts), _READ):
            digest.update(text_keys(self.texts[start : start + _READ]).tobytes())
        return digest.hexdigest()

    @cached_property
    def _sketches(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return of each text the digest, the number of its word triples, and which bits these set, uint8 (n, 64).

        A triple that one text of a pair has alone sets at most one bit alone, so that the bits in which two texts
        differ are no more than the triples in which they do.
        """
        digests, counts, bits = [], [], []
        with progress(len(self.texts), "reading texts", "texts") as bar:
            for start in range(0, len(self.texts), _READ):
                texts = self.texts[start : start + _READ]
                starts, hashes = shingles(texts)
                is_set = np.zeros((len(texts), _BITS), bool)
                is_set[np.repeat(np.arange(len(texts)), np.diff(starts)), hashes % _BITS] = True
                digests.append(text_digests(texts))
                counts.append(np.diff(starts).astype(np.int32))
                bits.append(np.packbits(is_set, axis=1))
                bar.update(len(texts))
        return np.concatenate(digests), np.concatenate(counts), np.concatenate(bits)

    def without_copies(self, pairs: pd.DataFrame) -> pd.DataFrame:
        """Return the *pairs* of left and right that are not nearly the same, word by word."""
        return pairs[~self._are_copies(pairs.left.to_numpy(), pairs.right.to_numpy())]

    def _are_copies(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return which pairs are nearly the same, bool (n_pairs,); only texts that may be are read again.

        Of texts with a Jaccard similarity J, the triples that one has alone are 1 / J - 1 of the shared ones, and so
        no more than that part of the shorter text's.
        """
        digests, counts, bits = self._sketches
        copies, near = np.zeros(len(left), bool), [np.empty(0, np.int64)]
        for start in range(0, len(left), _COMPARED):
            one, other = left[start : start + _COMPARED], right[start : start + _COMPARED]
            copies[start : start + _COMPARED] = digests[one] == digests[other]
            n_apart = np.bitwise_count(bits[one] ^ bits[other]).sum(axis=1, dtype=np.int64)
            smaller = np.minimum(counts[one], counts[other])
            near.append(start + np.flatnonzero(n_apart <= (1 / NEAR_VERBATIM - 1) * smaller + 1e-9))
        maybe = np.concatenate(near)
        copies[maybe] |= jaccard_similarity(self.texts, left[maybe], right[maybe]) >= NEAR_VERBATIM
        return copies


def pair_scores(statements: Statements, by: System, neighbours: int) -> pd.DataFrame:
    """Return the pairs of statements with their scores, best first: left, right (positions, left < right), score.

    The score of vectors is the cosine of the two texts, both encoded as documents (0 where it is negative); a system
    with `code_bits` finds the neighbours by codes. The score of words or structure is the search score of one text for
    the other, divided by the text's score for itself, and averaged over both directions; a text that is not among the
    other's *neighbours* counts as the last of them. The score of a fusion is the mean of its parts' scores, weighted as
    the fusion is.
    """
    kind = by.settings["kind"]
    if not _compares(by):
        raise MirblabError(
            f"'{by.name}' cannot compare statements; take BM25, an encoder, structure or a fusion of them"
        )
    if kind == "fusion":
        return _fused(statements, by, neighbours)
    hits = (_by_vectors if kind == "dense" else _by_terms)(statements, by, neighbours)
    rows, positions, scores = (np.concatenate(column) for column in zip(*hits, strict=True))
    return (_nearest if kind == "dense" else _both_directions)(rows, positions, scores)


def can_compare(by: str | System) -> bool:
    """Return whether a system scores pairs of statements: BM25, an encoder, structure or a fusion of these.

    >>> can_compare("bm25+structure"), can_compare("bm25>maxsim@10")
    (True, False)
    """
    chosen = system(by)
    return _compares(chosen) and all(map(can_compare, chosen.parts))


def _compares(by: System) -> bool:
    return by.settings["kind"] in ("fusion", *_AT_ONCE) and by.settings.get("engine") != "rank-bm25"


@dataclass(frozen=True)
class OtherSideRule:
    """A statement of the left collection may return those of the right one only, and the other way round."""

    n_left: int
    n_left_docs: int
    name: str = "other-side"

    def restrict(self, mask: np.ndarray, queries: np.ndarray, first: int = 0) -> None:
        """Drop the statements of the query's own collection."""
        docs = np.arange(first, first + mask.shape[1])
        mask &= (queries < self.n_left)[:, None] != (docs < self.n_left_docs)[None, :]

    def permits(self, queries: np.ndarray, docs: np.ndarray) -> np.ndarray:
        """Return whether each document is of the other collection than its query."""
        return (queries < self.n_left) != (docs < self.n_left_docs)

    def of_documents(self, positions: np.ndarray) -> OtherSideRule:
        """Return the rule for these documents and the same queries."""
        return replace(self, n_left_docs=int(positions.searchsorted(self.n_left_docs)))

    def content(self) -> Sequence[np.ndarray]:
        """Return what determines the rule."""
        return [np.array([self.n_left, self.n_left_docs])]


def _statements(collection: Collection, queries: bool) -> tuple[pd.Index, Sequence[str]]:
    """Return the ids and texts of the statements that have a text; a query that is a document too stands once."""
    ids, texts = collection.doc_ids, collection.texts
    if queries:
        places = ids.get_indexer(collection.query_ids)
        known = dict(zip(places[places >= 0].tolist(), texts_at(texts, places[places >= 0]), strict=True))
        asked = zip(places.tolist(), collection.query_texts, strict=True)
        new = np.flatnonzero([known.get(place) != text for place, text in asked])
        ids = ids.append(collection.query_ids[new])
        texts = _joined([texts, texts_at(collection.query_texts, new)])
    kept = np.flatnonzero([bool(text.strip()) for text in texts])
    if len(kept) == len(texts):
        return ids, texts
    return ids[kept], GroupedTexts([texts], kept) if isinstance(texts, StoredTexts) else texts_at(texts, kept)


def _joined(groups: list[Sequence[str]]) -> Sequence[str]:
    """Return the texts of the groups one after the other, a list where all of them are in memory."""
    joined = GroupedTexts([group for group in groups if len(group)])
    if not any(isinstance(group, StoredTexts) for group in joined.groups):
        return list(joined)
    return joined.groups[0] if len(joined.groups) == 1 else joined


def _by_vectors(statements: Statements, by: System, neighbours: int) -> Hits:
    """Yield for some statements at a time their nearest ones, with the cosines of their vectors."""
    model = encoder(by.settings["encoder"], by.settings.get("compat", ""))
    instruction, bits = statements.collections[0].card.instruction, by.settings.get("code_bits", 0)
    documents = codes.load_documents(model, statements.texts, instruction, bits, codes.UnitVectors)
    candidates, unread = statements.candidates(), codes.UnitVectors(model, statements.texts, "document", instruction)
    vectors = documents if isinstance(documents, np.ndarray) else unread
    for block in statements.blocks("dense"):
        queries = vectors[block]
        rows, positions, scores = codes.search(
            queries, documents, depth=neighbours, candidates=candidates.select(block)
        )
        yield block[rows], positions, np.clip(scores.astype(np.float64), 0.0, 1.0)


def _by_terms(statements: Statements, by: System, neighbours: int) -> Hits:
    """Yield for some statements at a time their nearest ones, with the share of what each scores for itself."""
    kind, options, candidates = by.settings["kind"], search_options(by.settings), statements.candidates()
    engine = statements.by_words(options) if kind == "bm25" else statements.by_structure()
    n_left = statements.n_left or 0
    for block in statements.blocks(kind):
        texts, weighing = texts_at(statements.texts, block), {}
        if kind == "structure":
            titles = [statements.titles[place] for place in block.tolist()]
            weighing = options | {"n_queries": int((block < n_left).sum()), "titles": titles}
        rows, positions, scores = engine.search(texts, neighbours, candidates.select(block), **weighing)
        if isinstance(engine, bm25.StoredCollection):
            own = engine.scores(texts, block).astype(np.float64)
        else:
            itself = ListRule.from_pairs("only-self", np.arange(len(block)), block, len(block), allow=True)
            found = engine.search(texts, 1, Candidates(len(statements.ids), (itself,)), **weighing)
            own = np.zeros(len(block))
            own[found[0]] = found[2]
        yield block[rows], positions, np.minimum(scores / np.where(own > 0, own, np.inf)[rows], 1.0)


def _directions(rows: np.ndarray, positions: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the pairs (left, right, each once) and the scores of both directions, NaN where one was not found."""
    pairs, places = np.unique(np.minimum(rows, positions) << 32 | np.maximum(rows, positions), return_inverse=True)
    both = np.full((2, len(pairs)), np.nan)
    both[(rows > positions).astype(int), places] = scores
    return pairs >> 32, pairs & 0xFFFFFFFF, both


def _nearest(rows: np.ndarray, positions: np.ndarray, scores: np.ndarray) -> pd.DataFrame:
    """Return the pairs with the larger score of both directions, which differ in rounding only."""
    left, right, both = _directions(rows, positions, scores)
    return _best_first(pd.DataFrame({"left": left, "right": right, "score": np.fmax(*both)}))


def _both_directions(rows: np.ndarray, positions: np.ndarray, scores: np.ndarray) -> pd.DataFrame:
    """Return the pairs with the mean score of both directions."""
    left, right, both = _directions(rows, positions, scores)
    last = np.full(max(rows.max(initial=-1), positions.max(initial=-1)) + 1, np.inf)
    np.minimum.at(last, rows, scores)
    last[np.isinf(last)] = 0.0  # of a statement that found none
    for own, ends in zip(both, (left, right), strict=True):
        own[:] = np.where(np.isnan(own), last[ends], own)
    return _best_first(pd.DataFrame({"left": left, "right": right, "score": (both[0] + both[1]) / 2}))


def _fused(statements: Statements, by: System, neighbours: int) -> pd.DataFrame:
    weights = by.settings.get("weights") or [1.0] * len(by.parts)
    wide = pd.concat(
        {
            number: pair_scores(statements, part, neighbours).set_index(["left", "right"]).score
            for number, part in enumerate(by.parts)
        },
        axis=1,
    )
    lowest = wide.min()  # a pair that a part did not return is no better than the last that it did
    scores = wide.fillna(lowest).fillna(0.0).to_numpy() @ (np.array(weights) / np.sum(weights))
    return _best_first(pd.DataFrame({"score": scores}, index=wide.index).reset_index())


def _ordered(rows: np.ndarray, positions: np.ndarray, scores: np.ndarray) -> pd.DataFrame:
    left, right = np.minimum(rows, positions), np.maximum(rows, positions)
    return pd.DataFrame({"left": left, "right": right, "score": scores})


def _best_first(pairs: pd.DataFrame) -> pd.DataFrame:
    ordered = pairs.sort_values(["score", "left", "right"], ascending=[False, True, True], ignore_index=True)
    return ordered[["left", "right", "score"]]


def _shared_terms(texts: Sequence[str], left: np.ndarray, right: np.ndarray) -> list[str]:
    """Return for each pair the terms that both texts have, those of the fewest of all texts (a sample) first.

    A stem is shown as the word of the left text that has it.
    """
    read = token_reader("math")
    counts = Counter(term for text in texts[:: -(-len(texts) // _COUNTED)] for term in dict.fromkeys(read(text)))
    shared = []
    for first, second in zip(texts_at(texts, left), texts_at(texts, right), strict=True):
        terms = dict.fromkeys(read(second))
        common = [term for term in dict.fromkeys(read(first)) if term in terms]
        common.sort(key=lambda term: (counts[term], term))
        words = {term: word.lower() for word in reversed(_WORD.findall(first)) for term in read(word)}
        shared.append(", ".join(words.get(term, term) for term in common[:_MOST_TERMS]))
    return shared
