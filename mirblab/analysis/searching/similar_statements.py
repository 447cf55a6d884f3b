"""Pairs of statements that probably say the same, within one collection or across two."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, check_positive
from mirblab.data.candidates import Candidates, ListRule, NotSelfRule, Rule
from mirblab.data.collection import Collection, check_fits
from mirblab.data.near_duplicates import jaccard_similarity, text_digests
from mirblab.display.table_formats import Table
from mirblab.encoders.encoding import encoder
from mirblab.formula import search as structure
from mirblab.retrieval import bm25, dense
from mirblab.retrieval.systems import System, search_options, system
from mirblab.retrieval.tokenizers import token_reader
from mirblab.sources.catalogue import load

NEAR_VERBATIM = 0.8  # Jaccard similarity of word triples from which on two texts are copies of each other
_SEARCHES: dict[str, Callable[..., pd.DataFrame]] = {"bm25": bm25.search, "structure": structure.search}
_MOST_TERMS = 6
_WORD = re.compile(r"[^\W\d_]+")
_COUNTED = 2_000  # texts, evenly taken, in which terms are counted


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

    >>> table = similar("mini-pairs", by="bm25", n=3)
    >>> table.frame.columns.tolist(), len(table.frame)
    (['score', 'left', 'right', 'left_text', 'right_text', 'shared'], 3)
    """
    if n < 1 or neighbours < 1:
        raise MirblabError(f"n and neighbours must be at least 1, found {n} and {neighbours}")
    chosen = system(by)
    statements = Statements.of(left, right, queries=queries)
    pairs = pair_scores(statements, chosen, neighbours)
    n_pairs = len(pairs)
    if not copies:
        pairs = _without_copies(pairs, statements.texts)
    top = pairs.head(n)
    texts, ids = np.array(statements.texts, dtype=object), np.array(statements.ids, dtype=object)
    frame = pd.DataFrame(
        {
            "score": top.score.to_numpy(),
            "left": ids[top.left],
            "right": ids[top.right],
            "left_text": texts[top.left],
            "right_text": texts[top.right],
            "shared": _shared_terms(statements.texts, top.left.to_numpy(), top.right.to_numpy()),
        },
        index=pd.RangeIndex(1, len(top) + 1, name="rank"),
    )
    caption = f"Pairs of statements of {statements.name} that are most alike by {chosen.label}, best first."
    notes = [
        f"{len(top):,} of {len(pairs):,} pairs of a statement and one of its nearest are shown; score from 0 to 1, 1 "
        "for a text and itself."
    ]
    if n_pairs > len(pairs):
        notes.append(f"{n_pairs - len(pairs):,} pairs of nearly the same wording are left out; copies=True keeps them.")
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
        pairs, judged = (_without_copies(table, statements.texts) for table in (pairs, judged))
    ids = np.array(statements.ids, dtype=object)
    merged = pairs.merge(judged, on=["left", "right"], how="left")
    table = pd.DataFrame({"score": merged.score, "left": ids[merged.left], "right": ids[merged.right]})
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
    from scipy.stats import binomtest

    rows = []
    for group in groups.values():
        n, equivalent = len(group), int(group.equivalent.sum())
        low, high = binomtest(equivalent, n).proportion_ci(method="wilson")
        rows.append((n, equivalent, int(group.equivalent.isna().sum()), equivalent / n, float(low), float(high)))
    types = dict.fromkeys(("n", "equivalent", "unjudged"), "int64") | dict.fromkeys(("share", "low", "high"), "float64")
    table = pd.DataFrame(rows, columns=list(types)).astype(types)
    for column in ("collection", "system"):
        table.insert(0, column, pairs.attrs.get(column, ""))
    return table


def _judged_positions(collection: Collection, statements: Statements) -> pd.DataFrame:
    """Return the judged pairs: left, right (positions, left < right), equivalent (whether any judgement says so)."""
    first, qrels = statements.n_left or 0, collection.qrels
    queries = pd.Index(statements.ids[:first] or statements.ids).get_indexer(pd.Index(qrels.query_id.astype("str")))
    docs = pd.Index(statements.ids[first:]).get_indexer(pd.Index(qrels.doc_id.astype("str")))
    is_equivalent = (qrels.relevance >= collection.card.relevant_from).to_numpy()
    kept = (queries >= 0) & (docs >= 0) & (queries != docs + first)
    pairs = _ordered(queries[kept], docs[kept] + first, is_equivalent[kept]).rename(columns={"score": "equivalent"})
    return pairs.groupby(["left", "right"], as_index=False)[["equivalent"]].max()


@dataclass(frozen=True)
class Statements:
    """The statements that are compared: those of the left collection, then those of the right one, if there is one.

    `n_left` is the number of statements of the left collection, or None where all are compared with all; `answers` are
    the collections whose documents answer their queries.
    """

    name: str
    ids: list[str]
    texts: list[str]
    collection: Collection
    n_left: int | None
    answers: tuple[str, ...] = ()

    @classmethod
    def of(cls, left: str | Collection, right: str | Collection | None, *, queries: bool) -> Statements:
        """Return the statements of one or two collections; MirblabError where there is nothing to compare."""
        parts = [load(part) for part in (left, right) if part is not None]
        for part in parts:
            check_fits(part, "the comparison of statements")
        listed = [_statements(part, queries) for part in parts]
        for part, (ids, _) in zip(parts, listed, strict=True):
            if not ids:
                raise MirblabError(f"{part.name} has no statement with a text; there is nothing to compare")
        ids, texts = ([value for pair in listed for value in pair[column]] for column in (0, 1))
        name = " and ".join(part.name for part in parts)
        answers = tuple(part.name for part in parts if part.card.task == "Question-Answer Retrieval")
        return cls(name, ids, texts, parts[0], len(listed[0][0]) if len(parts) > 1 else None, answers)

    @classmethod
    def of_queries(cls, collection: Collection) -> Statements:
        """Return the queries of a collection and its documents, to be compared; these alone if all queries are."""
        documents = cls.of(collection, None, queries=False)
        n_documents, both = len(documents.ids), cls.of(collection, None, queries=True)
        if len(both.ids) == n_documents:
            return documents
        queries = dict(zip(map(str, collection.query_ids), collection.query_texts, strict=True))
        queries = {name: text for name, text in queries.items() if text}
        ids, texts = [*queries, *documents.ids], [*queries.values(), *documents.texts]
        return replace(documents, ids=ids, texts=texts, n_left=len(queries))

    def search_collection(self, rule: Rule) -> Collection:
        """Return a collection whose documents and queries are the statements, each query restricted by *rule*."""
        ids = pd.Index([f"{number:09d}" for number in range(len(self.ids))], dtype="str")
        corpus = pd.DataFrame({"doc_id": ids, "title": "", "text": pd.Series(self.texts, dtype="str")})
        queries = pd.DataFrame({"query_id": ids, "text": pd.Series(self.texts, dtype="str")})
        nobody = {name: pd.Categorical([], ids) for name in ("query_id", "doc_id")}
        qrels = pd.DataFrame(nobody | {"relevance": np.empty(0, np.int32)})
        return replace(
            self.collection,
            corpus=corpus,
            queries=queries,
            qrels=qrels,
            candidates=Candidates(len(ids), (rule,)),
            oddities={},
        )


def pair_scores(statements: Statements, by: System, neighbours: int) -> pd.DataFrame:
    """Return the pairs of statements with their scores, best first: left, right (positions, left < right), score.

    The score of vectors is the cosine of the two texts, both encoded as documents (0 where it is negative). The score
    of words or structure is the search score of one text for the other, divided by the text's score for itself, and
    averaged over both directions; a text that is not among the other's *neighbours* counts as the last of them. The
    score of a fusion is the mean of its parts' scores, weighted as the fusion is.
    """
    kind = by.settings["kind"]
    if kind not in ("dense", "fusion", *_SEARCHES) or by.settings.get("engine") == "rank-bm25":
        raise MirblabError(
            f"'{by.name}' cannot compare statements; take BM25, an encoder, structure or a fusion of them"
        )
    if kind == "fusion":
        return _fused(statements, by, neighbours)
    everyone = np.arange(len(statements.ids))
    rule: Rule = NotSelfRule(everyone)
    if statements.n_left is not None:
        rule = OtherSideRule(statements.n_left, statements.n_left)
    if kind == "dense":
        return _by_vectors(statements, by, neighbours, rule)
    search, options = _SEARCHES[kind], search_options(by.settings)
    run = search(statements.search_collection(rule), depth=neighbours, **options)
    itself = ListRule.from_pairs("only-self", everyone, everyone, len(everyone), allow=True)
    self_run = search(statements.search_collection(itself), depth=1, **options)
    best = np.full(len(statements.ids), np.inf)
    best[self_run.query_id.cat.codes] = self_run.score.to_numpy()
    rows, positions = run.query_id.cat.codes.to_numpy(np.int64), run.doc_id.cat.codes.to_numpy(np.int64)
    return _both_directions(rows, positions, np.minimum(run.score.to_numpy() / best[rows], 1.0))


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


def _statements(collection: Collection, queries: bool) -> tuple[list[str], list[str]]:
    """Return the ids and texts of the statements that have a text; a query that is a document too stands once."""
    ids, texts = list(map(str, collection.doc_ids)), list(collection.texts)
    if queries:
        known = dict(zip(ids, texts, strict=True))
        for name, text in zip(map(str, collection.query_ids), collection.query_texts, strict=True):
            if known.get(name) != text:
                ids.append(name)
                texts.append(text)
    kept = [position for position, text in enumerate(texts) if text.strip()]
    return [ids[position] for position in kept], [texts[position] for position in kept]


def _by_vectors(statements: Statements, by: System, neighbours: int, rule: Rule) -> pd.DataFrame:
    model = encoder(by.settings["encoder"], by.settings.get("compat", ""))
    vectors = dense.normalise(model.vectors(statements.texts, "document", statements.collection.card.instruction))
    candidates = Candidates(len(vectors), (rule,))
    rows, positions, scores = dense.search(vectors, vectors, depth=neighbours, candidates=candidates)
    pairs = _ordered(rows, positions, np.clip(scores.astype(np.float64), 0.0, 1.0))
    return _best_first(pairs.groupby(["left", "right"], as_index=False).agg(score=("score", "max")))


def _both_directions(rows: np.ndarray, positions: np.ndarray, scores: np.ndarray) -> pd.DataFrame:
    """Return the pairs with the mean score of both directions."""
    last = pd.Series(scores).groupby(rows).min()
    pairs = _ordered(rows, positions, scores).assign(from_left=rows < positions)
    wide = pairs.pivot(index=["left", "right"], columns="from_left", values="score")
    wide = wide.reindex(columns=[True, False])
    ends = wide.index.get_level_values("left"), wide.index.get_level_values("right")
    directions = [wide[way].fillna(pd.Series(last.reindex(end).to_numpy(), wide.index)).fillna(0.0)
            for way, end in zip((True, False), ends, strict=True)]  # fmt: skip
    return _best_first(((directions[0] + directions[1]) / 2).rename("score").reset_index())


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


def _without_copies(pairs: pd.DataFrame, texts: Sequence[str]) -> pd.DataFrame:
    return pairs[~_are_copies(texts, pairs.left.to_numpy(), pairs.right.to_numpy())]


def _are_copies(texts: Sequence[str], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return which pairs are nearly the same, word by word, bool (n_pairs,)."""
    involved, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    digests = text_digests([texts[position] for position in involved.tolist()])
    equal = digests[places[: len(left)]] == digests[places[len(left) :]]
    return equal | (jaccard_similarity(texts, left, right) >= NEAR_VERBATIM)


def _shared_terms(texts: Sequence[str], left: np.ndarray, right: np.ndarray) -> list[str]:
    """Return for each pair the terms that both texts have, those of the fewest of all texts (a sample) first.

    A stem is shown as the word of the left text that has it.
    """
    read = token_reader("math")
    counts = Counter(term for text in texts[:: -(-len(texts) // _COUNTED)] for term in dict.fromkeys(read(text)))
    terms = {position: dict.fromkeys(read(texts[position])) for position in {*left.tolist(), *right.tolist()}}
    shared = []
    for first, second in zip(left.tolist(), right.tolist(), strict=True):
        common = sorted((term for term in terms[first] if term in terms[second]), key=lambda term: (counts[term], term))
        words = {term: word.lower() for word in reversed(_WORD.findall(texts[first])) for term in read(word)}
        shared.append(", ".join(words.get(term, term) for term in common[:_MOST_TERMS]))
    return shared
