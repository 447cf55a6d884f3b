"""lists: training queries of collections, each with a relevant document and others that a first stage returned."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError
from mirblab.core.terminal import say
from mirblab.data import beir
from mirblab.data.candidates import tag_matrix
from mirblab.data.collection import Collection, read_splits
from mirblab.data.near_duplicates import find_repeats, fold_text
from mirblab.evaluation.measures import evaluate
from mirblab.retrieval.systems import DEPTH, system
from mirblab.sources import catalogue
from mirblab.train.pairs import HELD_OUT, batch_rows
from mirblab.train.recipes import Recipe

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from mirblab.train.validation import CurrentModel, Evaluate

_LISTS, _HELD_OUT, _TAGS = 10, 11, 12  # the purposes of random streams, beside those of train.pairs
_DEEP = 10  # times the depth of the shortlist, from which easy documents are drawn
MEASURE = "nDCG@10"


Alike = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class RankedQuery:
    """A query with its relevant documents and those of the first stage, as positions in the documents of *source*.

    *shortlist*: what the first stage returned, best first, `first_depth` documents; *others*: documents to learn from
    that are not relevant: *n_judged* that are judged so, then those of the first stage, best first; the first *n_hard*
    are judged or in the shortlist. Scores are the first stage's, scaled to 0 to 1 over the shortlist, and 0 below it.
    """

    source: int
    text: str
    relevant: np.ndarray
    grades: np.ndarray
    relevant_scores: np.ndarray
    others: np.ndarray
    other_scores: np.ndarray
    n_hard: int
    n_judged: int
    shortlist: np.ndarray
    shortlist_scores: np.ndarray


@dataclass(frozen=True)
class ListBatch:
    """The queries of a step and, for each, 1 + n documents of which the first is relevant.

    *first* (batch, 1 + n): the first stage's scores; *relevant* (batch, batch, 1 + n): whether a query, the first
    index, has the document of a list, the others, among its relevant ones.
    """

    queries: list[str]
    documents: list[list[str]]
    first: np.ndarray
    relevant: np.ndarray

    def pairs(self) -> list[tuple[str, str]]:
        """Return each query with each of its documents, list by list."""
        return [(query, text) for query, row in zip(self.queries, self.documents, strict=True) for text in row]


@dataclass(frozen=True)
class RankingLists:
    """The queries to learn from, the documents of each collection, and the queries kept for evaluation."""

    queries: list[RankedQuery]
    documents: list[Sequence[str]]
    held_out: list[RankedQuery]

    def __len__(self) -> int:
        return len(self.queries)

    def draw(self, recipe: Recipe, step: int) -> ListBatch:
        """Return the lists of a *step*, from 0; documents are drawn by the seed and the step alone.

        The relevant one is drawn in proportion to its grade. The share `easy` of the others, which falls evenly to 0
        in the course of the training, is from beyond the first stage's first `first_depth`.
        """
        rng = np.random.default_rng([recipe.seed, _LISTS, step])
        share = recipe.easy * (1 - step / self.n_steps(recipe))
        queries = [self.queries[row] for row in batch_rows(len(self), recipe.batch, recipe.seed, step)]
        documents, scores = list[np.ndarray](), list[list[float]]()
        for query in queries:
            right = rng.choice(len(query.relevant), p=query.grades / query.grades.sum())
            wrong = _drawn_negatives(query, recipe.n_negatives, share, rng)
            documents.append(np.array([query.relevant[right], *query.others[wrong]]))
            scores.append([query.relevant_scores[right], *query.other_scores[wrong]])
        texts = [
            [self.documents[query.source][document] for document in row]
            for query, row in zip(queries, documents, strict=True)
        ]
        sources = np.array([query.source for query in queries])
        relevant = [np.isin(documents, query.relevant) & (sources == query.source)[:, None] for query in queries]
        return ListBatch([query.text for query in queries], texts, np.array(scores, np.float32), np.array(relevant))

    def n_steps(self, recipe: Recipe) -> int:
        """Return the number of steps of the whole training."""
        return recipe.n_steps(len(self))

    def fingerprint(self) -> str:
        """Return a hash of all texts, and of what is relevant and returned for each query: 32 hexadecimal digits."""
        state = hashlib.blake2b(digest_size=16)
        for texts in self.documents:
            state.update(repr(len(texts)).encode())
            for text in texts:
                state.update(text.encode("utf-8", "surrogatepass") + b"\0")
        for query in (*self.queries, *self.held_out):
            state.update(f"{query.source} {query.n_hard} {query.text}\0".encode("utf-8", "surrogatepass"))
            for array in (query.relevant, query.grades, query.others, query.others[: query.n_judged]):
                state.update(np.ascontiguousarray(array, np.int64).tobytes())
        return state.hexdigest()


def gather_lists(recipe: Recipe) -> RankingLists:
    """Return the lists of *recipe*, and say how many queries and documents were left out as known from a test.

    A query, and a document, that at least nearly equals (`near`) a query of another split than the one trained on, of
    the recipe's collections and of those in `apart`, is left out. Raises MirblabError for a collection without a split
    to train on, for an `instructed` recipe where a collection has no instruction, and if fewer queries than one batch
    have a relevant document and enough others and are not held out.
    """
    sources = [_training_collection(recipe, name) for name in recipe.collections]
    if recipe.instructed and (without := [source.name for source in sources if not source.card.instruction]):
        raise MirblabError(
            f"recipe '{recipe.name}' learns from queries with the instructions of their collections, and there is none "
            f"in the card of {', '.join(without)}; write `instruction` into its card.toml, or set instructed=false"
        )
    names = [split_name(name)[0] for name in recipe.collections]
    trained = {(_folder(name), source.split) for name, source in zip(names, sources, strict=True)}
    apart = evaluated_queries([*names, *recipe.apart], trained)
    queries, held_out, documents = list[RankedQuery](), list[RankedQuery](), list[Sequence[str]]()
    for number, collection in enumerate(sources):
        found = _ranked_queries(recipe, number, collection, apart)
        kept = _held_out_rows(recipe, number, found, -(-recipe.held_out_queries // len(sources)))
        held_out += [found[row] for row in kept]
        queries += [query for row, query in enumerate(found) if row not in kept]
        documents.append(collection.texts)
    if (n := len(queries)) < recipe.batch:
        raise MirblabError(
            f"recipe '{recipe.name}': {n + len(held_out)} queries of {', '.join(recipe.collections)} have a relevant "
            f"document and {recipe.n_negatives} others, and {len(held_out)} of them are held out for evaluation; {n} "
            f"are left, fewer than one batch of {recipe.batch}; give more collections, or a smaller --set batch=... or "
            "--set held_out_queries=..."
        )
    return RankingLists(queries, documents, held_out)


def held_out_lists(recipe: Recipe, material: RankingLists) -> Evaluate | None:
    """Return a function that measures nDCG@10 of the first stage's first documents reranked, on the held-out queries.

    Each has a relevant document among them. Its measures: that of the model, of the first stage alone, and of the mean
    of both scores, scaled to 0 to 1 within each query. None without a held-out query.
    """
    if not material.held_out:
        return None
    lists = [query.shortlist for query in material.held_out]
    qrels = pd.concat(
        [_table(at, query.relevant, relevance=query.grades) for at, query in enumerate(material.held_out)]
    )
    first = [query.shortlist_scores for query in material.held_out]
    texts = [[material.documents[query.source][at] for at in query.shortlist] for query in material.held_out]
    pairs = [(query.text, text) for query, row in zip(material.held_out, texts, strict=True) for text in row]

    def value(scores: Sequence[np.ndarray]) -> float:
        parts = zip(lists, scores, strict=True)
        run = pd.concat([_table(at, documents, score=own) for at, (documents, own) in enumerate(parts)])
        return float(evaluate(run, qrels, MEASURE).value.mean())

    def measure(model: CurrentModel, step: int) -> dict[str, float]:
        if recipe.is_cross:
            scores = np.split(model.rows(pairs)[:, 0], np.cumsum([len(documents) for documents in lists])[:-1])
        else:
            queries = [query.text for query in material.held_out]
            scores = [
                model.scores([query], row, recipe.instruction)[0] for query, row in zip(queries, texts, strict=True)
            ]
        halves = [_scaled(own) + _scaled(stage) for own, stage in zip(scores, first, strict=True)]
        return {MEASURE: value(scores), recipe.first: value(first), f"mean with {recipe.first}": value(halves)}

    return measure


def _training_collection(recipe: Recipe, name: str) -> Collection:
    """Return the collection *name* ("name" or "name:split"), with at most `max_queries` queries of its split."""
    name, split = split_name(name)
    split, folder = split or "train", catalogue.collection_folder(name, fetch=True)
    known = sorted({"test", *beir.split_names(folder)})
    if split not in known or (split in HELD_OUT and "train" in known):
        raise MirblabError(
            f"recipe '{recipe.name}': {name} has no split '{split}' to train on (found {', '.join(known)}; dev and "
            f"test are for evaluation); take another collection, or write {name}:test to train on all of one without "
            "a split train, which can then not be evaluated"
        )
    return catalogue.load(name, split).sample(recipe.max_queries, recipe.seed)


def split_name(name: str) -> tuple[str, str]:
    r"""Return collection and split of "name:split", the split "" without one; the colon of a drive is part of a path.

    >>> split_name("stacks-qa:train"), split_name(r"C:\data\mine")
    (('stacks-qa', 'train'), ('C:\\data\\mine', ''))
    """
    collection, _, split = name.rpartition(":")
    return (collection, split) if collection and not set("/\\") & set(split) else (name, "")


def _folder(name: str) -> Path:
    return catalogue.collection_folder(name, fetch=True).resolve()


def evaluated_queries(names: Iterable[str], trained: set[tuple[Path, str]]) -> list[str]:
    """Return the distinct texts of all queries of the collections called *names*, or in folders of these names.

    Splits that are *trained*, folder and split, and those called train are left out.
    """
    texts = dict[str, None]()
    for folder in dict.fromkeys(map(_folder, names)):
        splits = sorted(beir.split_names(folder), key=lambda split: split != "test")
        for collection in read_splits(folder, splits):
            if collection.split != "train" and (folder, collection.split) not in trained:
                texts |= dict.fromkeys(collection.query_texts)
    return list(texts)


def _ranked_queries(recipe: Recipe, number: int, collection: Collection, apart: list[str]) -> list[RankedQuery]:
    """Return the queries of *collection* that can be learnt from, and say what was left out."""
    known_queries, known_documents, alike = _repeats(recipe, collection, apart)
    run = system(recipe.first).search(collection, DEPTH)
    codes = run.query_id.cat.codes.to_numpy()
    starts = np.searchsorted(codes, np.arange(len(collection.query_ids) + 1))
    docs, scores = run.doc_id.cat.codes.to_numpy(), run.score.to_numpy(np.float64)
    judged = collection.qrels[(collection.qrels.relevance > 0).to_numpy()]
    rows_of = judged.groupby(judged.query_id.cat.codes.to_numpy()).indices
    judged_docs, grades = judged.doc_id.cat.codes.to_numpy(), judged.relevance.to_numpy()
    tagged = _tags(recipe, collection) if recipe.negatives == "tags" else None
    refused_of = _judged_negatives(recipe, collection) if recipe.negatives == "judged" else {}
    prefix = f"{collection.card.instruction} " if recipe.instructed else ""
    queries, empty = list[RankedQuery](), np.array([not text for text in collection.texts])
    for place, text in enumerate(collection.query_texts):
        rows = rows_of.get(place, np.empty(0, np.intp))
        rows = rows[~known_documents[judged_docs[rows]] & ~empty[judged_docs[rows]]]
        if known_queries[place] or not text or not len(rows):
            continue
        here = slice(starts[place], min(starts[place + 1], starts[place] + _DEEP * recipe.first_depth))
        returned, own = docs[here], _scaled(scores[here], recipe.first_depth)
        shortlist = (returned[: recipe.first_depth].copy(), own[: recipe.first_depth])
        score_of = dict(zip(returned.tolist(), own.tolist(), strict=True))
        if recipe.is_cross:  # else it learns that what the first stage ranks high is wrong
            rows = rows[np.isin(judged_docs[rows], shortlist[0])]
            if not len(rows):
                continue
        all_relevant = judged_docs[rows_of[place]]
        unusable, similar = known_documents | empty, alike(all_relevant)
        refused = np.setdiff1d(refused_of.get(place, np.empty(0, np.intp)), similar)
        refused = refused[~unusable[refused]]
        wrong = ~unusable[returned] & ~np.isin(returned, similar) & ~np.isin(returned, refused)
        wrong &= _below_margin(returned, scores[here], all_relevant, recipe.margin)
        if tagged is not None:
            returned, own, wrong = _same_tag(recipe, tagged, place, unusable, similar)
        others = np.concatenate([refused, returned[wrong]])
        if len(others) < recipe.n_negatives:
            continue
        n_hard = len(others) if tagged is not None else len(refused) + int(wrong[: recipe.first_depth].sum())
        relevant = judged_docs[rows]
        relevant_scores, refused_scores = (
            np.array([score_of.get(document, 0.0) for document in part.tolist()]) for part in (relevant, refused)
        )
        other_scores = np.concatenate([refused_scores, own[wrong]])
        negatives = others, other_scores, n_hard, len(refused)
        queries.append(
            RankedQuery(number, prefix + text, relevant, grades[rows], relevant_scores, *negatives, *shortlist)
        )
    say(
        f"{recipe.name}: {collection.name}: {int(known_queries.sum()):,} of {len(known_queries):,} queries and "
        f"{int(known_documents.sum()):,} of {len(known_documents):,} documents nearly repeat a query of an evaluation "
        f"and are left out; {len(queries):,} queries are learnt from or held out"
    )
    return queries


def _below_margin(returned: np.ndarray, scores: np.ndarray, relevant: np.ndarray, margin: float) -> np.ndarray:
    """Return which documents score at most 1 - *margin* of the best relevant one's score; 0: all, bool (n,).

    A document above it is often relevant and unjudged (Moreira et al. 2024, "NV-Retriever", with a margin of .05).
    """
    best = scores[np.isin(returned, relevant)]
    if not margin or not len(best):
        return np.ones(len(returned), bool)
    return scores <= (1 - margin) * best.max()


def _judged_negatives(recipe: Recipe, collection: Collection) -> dict[Hashable, np.ndarray]:
    """Return by the position of a query the documents that are judged not relevant; MirblabError without any."""
    refused = collection.qrels[(collection.qrels.relevance <= 0).to_numpy()]
    if refused.empty:
        raise MirblabError(
            f"recipe '{recipe.name}': negatives = \"judged\", but no judgement of {collection.name} is 0; "
            'write negatives = "first"'
        )
    docs = refused.doc_id.cat.codes.to_numpy()
    rows_of = refused.groupby(refused.query_id.cat.codes.to_numpy()).indices
    return {place: docs[rows] for place, rows in rows_of.items()}


def _tags(recipe: Recipe, collection: Collection) -> tuple[csr_array, csr_array]:
    """Return the tags of queries and documents as sparse matrices of ones; MirblabError where there are none."""
    corpus, queries = collection.corpus, collection.queries
    if "tags" not in corpus or "tags" not in queries:
        raise MirblabError(
            f"recipe '{recipe.name}': negatives = \"tags\", but {collection.name} has no tags; "
            'write negatives = "first"'
        )
    names = pd.Index(sorted({tag for column in (corpus.tags, queries.tags) for row in column for tag in row or []}))
    return tag_matrix(queries.tags, names), tag_matrix(corpus.tags, names)


def _same_tag(
    recipe: Recipe, tags: tuple[csr_array, csr_array], place: int, unusable: np.ndarray, relevant: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return documents that share a tag with the query at *place*, drawn at random, with scores of 0 and all True.

    They are at most `first_depth` and neither *unusable* nor *relevant*; their scores are 0. Zhong et al. (ECIR 2023)
    draw an answer from a post with the same tag.
    """
    shared = (tags[1] @ tags[0][[place]].T).tocoo()
    able = np.setdiff1d(shared.coords[0][~unusable[shared.coords[0]]], relevant)
    rng = np.random.default_rng([recipe.seed, _TAGS, place])
    drawn = rng.permutation(able)[: recipe.first_depth]
    return drawn, np.zeros(len(drawn)), np.ones(len(drawn), bool)


def _repeats(recipe: Recipe, collection: Collection, apart: list[str]) -> tuple[np.ndarray, np.ndarray, Alike]:
    """Return which queries and documents repeat one of *apart*, bool each, and a function that adds near duplicates.

    The function returns documents, by position, with all that at least nearly repeat one of them.
    """
    texts = collection.texts
    known_queries, known_documents = repeats_of(apart, [collection.query_texts, texts], recipe.near)
    if not recipe.near:
        return known_queries, known_documents, lambda documents: documents
    inside = find_repeats([texts], recipe.near)
    classes = inside.classes[0]
    near = pd.concat([inside.pairs, inside.pairs.rename(columns={"left": "right", "right": "left"})])
    neighbours = near.groupby("left").right.apply(np.array).to_dict()
    order = np.argsort(classes, kind="stable")
    ordered = classes[order]

    def alike(documents: np.ndarray) -> np.ndarray:
        own = [one for one in np.unique(classes[documents]).tolist() if one >= 0]
        wanted = {*own, *(int(other) for one in own for other in neighbours.get(one, ()))}
        parts = [order[np.searchsorted(ordered, one) : np.searchsorted(ordered, one, "right")] for one in wanted]
        return np.concatenate([documents, *parts])

    return known_queries, known_documents, alike


def repeats_of(known: Sequence[str], lists: Sequence[Sequence[str]], near: float) -> list[np.ndarray]:
    """Return for each of *lists* which of its texts at least nearly repeat one of *known*, bool (n,).

    *near*: the Jaccard similarity from which on they do; 0: only texts that are equal apart from case and white space.
    """
    if near:
        same = find_repeats([known, *lists], near, n_asked=1)
        return [same.shared(place, 0)[1] for place in range(1, len(lists) + 1)]
    folded = {fold_text(text) for text in known}
    return [np.array([fold_text(text) in folded for text in texts]) for texts in lists]


def _held_out_rows(recipe: Recipe, number: int, queries: list[RankedQuery], wanted: int) -> set[int]:
    """Return the positions of at most *wanted* queries, drawn by the seed, that have a relevant document to find."""
    able = [row for row, query in enumerate(queries) if np.isin(query.relevant, query.shortlist).any()]
    order = np.random.default_rng([recipe.seed, _HELD_OUT, number]).permutation(len(able))
    return {able[place] for place in order[:wanted].tolist()}


def _drawn_negatives(query: RankedQuery, n: int, easy: float, rng: np.random.Generator) -> np.ndarray:
    """Return the places of *n* different of the *query*'s others: judged ones first, as many as there are.

    Each further one is with probability *easy* below the shortlist.
    """
    judged = rng.choice(query.n_judged, min(n, query.n_judged), replace=False)
    n, n_first = n - len(judged), query.n_hard - query.n_judged
    n_easy = min(int(rng.binomial(n, easy)), len(query.others) - query.n_hard)
    n_easy = max(n_easy, n - n_first)
    hard = query.n_judged + rng.choice(n_first, n - n_easy, replace=False)
    deep = query.n_hard + rng.choice(len(query.others) - query.n_hard, n_easy, replace=False)
    return np.concatenate([judged, hard, deep]).astype(np.intp)


def _scaled(scores: np.ndarray, depth: int = 0) -> np.ndarray:
    """Return *scores* scaled so that the largest is 1 and the least of the first *depth* (0: of all) is 0; equal: 0."""
    if not len(scores):
        return scores
    low, high = scores[:depth].min() if depth else scores.min(), scores.max()
    return np.maximum(scores - low, 0.0) / (high - low) if high > low else np.zeros(len(scores))


def _table(at: int, documents: np.ndarray, **column: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"query_id": f"{at:04d}", "doc_id": [f"{document:07d}" for document in documents], **column})
