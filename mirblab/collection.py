"""collection: a test collection in memory, read from a folder in BEIR's layout and checked strictly."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from mirblab import digests, paths, restrictions
from mirblab import folder as on_disk
from mirblab.candidates import Candidates
from mirblab.card import Card
from mirblab.errors import MirblabError
from mirblab.lines import hashed
from mirblab.oddities import count as count_oddities

# Texts of collections stand in plain tables, too: MathJax would follow what they say (`\\href`).
pd.set_option("display.html.use_mathjax", False)


@dataclass(frozen=True)
class Collection:
    """Corpus, queries and judgements of one split, with the candidates of each query and a card.

    `corpus` has doc_id, title, text (and order, tags where the source has them), sorted by doc_id;
    `queries` has query_id, text, sorted by query_id; `qrels` has query_id, doc_id, relevance, where 0 is a
    judgement too. The position of a document in `corpus` is its code in every run.

    >>> from mirblab.shelf import load
    >>> c = load("mini-qa")
    >>> c.query(c.query_ids[0])[:10], c.statistics()["relevance"]
    ('How do I s', '4-level')
    """

    name: str
    split: str
    corpus: pd.DataFrame
    queries: pd.DataFrame
    qrels: pd.DataFrame
    candidates: Candidates
    card: Card
    oddities: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a name that cannot name a folder: files are written under the names of collections."""
        paths.clean_name(self.name)

    @cached_property
    def doc_ids(self) -> pd.Index:
        """Return the ids of all documents, sorted, shape (n_docs,)."""
        return self.qrels.doc_id.cat.categories

    @cached_property
    def query_ids(self) -> pd.Index:
        """Return the ids of the split's queries, sorted, shape (n_queries,)."""
        return self.qrels.query_id.cat.categories

    @cached_property
    def texts(self) -> list[str]:
        """Return each document's text: title and text joined by one space, stripped; in the order of `doc_ids`."""
        titles, texts = self.corpus.title.to_list(), self.corpus.text.to_list()
        return [f"{title} {text}".strip() for title, text in zip(titles, texts, strict=True)]

    @cached_property
    def query_texts(self) -> list[str]:
        """Return each query's text, stripped, in the order of `query_ids`."""
        return [text.strip() for text in self.queries.text.to_list()]

    @property
    def relevant(self) -> pd.DataFrame:
        """Return the judgements that count as relevant: those from the card's `relevant_from` up."""
        return self.qrels[self.qrels.relevance >= self.card.relevant_from]

    @cached_property
    def first_tags(self) -> np.ndarray:
        """Return the first tag of each document, "" where it has none, in the order of `doc_ids`, object (n_docs,)."""
        tags = self.corpus["tags"] if "tags" in self.corpus else [None] * len(self.corpus)
        return np.array([own[0] if own else "" for own in tags], dtype=object)

    def document(self, doc_id: str) -> str:
        """Return the text of one document; MirblabError for an unknown id."""
        return self.texts[_position(self.doc_ids, doc_id, "document", self.name)]

    def query(self, query_id: str) -> str:
        """Return the text of one query; MirblabError for an unknown id."""
        return self.query_texts[_position(self.query_ids, query_id, "query", self.name)]

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash (32 hexadecimal digits) over ids, texts, judgements, candidates, instruction, and a language.

        The same content gives the same fingerprint, whatever its compression or the order of its lines.
        """
        digest = hashlib.blake2b(digest_size=16)
        columns = [self.corpus.doc_id, self.corpus.title, self.corpus.text, self.queries.query_id, self.queries.text]
        for column in columns:
            lengths = np.fromiter(map(len, on_disk.in_turn(column)), np.int64, len(column))
            digest.update(np.concatenate([[len(column)], lengths]).tobytes())
            for text in on_disk.in_turn(column):
                digest.update(text.encode())
        for array in (self.qrels.query_id.cat.codes, self.qrels.doc_id.cat.codes, self.qrels.relevance):
            digest.update(np.ascontiguousarray(array, dtype=np.int64).tobytes())
        for rule in self.candidates.rules:
            digest.update(rule.name.encode())
            for part in rule.content():
                digest.update(np.ascontiguousarray(part).tobytes())
        if self.candidates.rules and self.candidates.rows is not None:
            digest.update(np.ascontiguousarray(self.candidates.rows, dtype=np.int64).tobytes())
        digest.update((self.card.instruction + (self.card.language and f"\0{self.card.language}")).encode())
        return digest.hexdigest()

    def sample(self, n_queries: int, seed: int = 0) -> Collection:
        """Return the collection with at most *n_queries* of its queries, drawn by *seed*; 0 keeps all.

        The corpus stays whole, so that values stay comparable with those of all queries.
        """
        if n_queries < 0:
            raise MirblabError(f"n_queries must not be negative, found {n_queries}")
        if not 0 < n_queries < len(self.queries):
            return self
        places = np.sort(np.random.default_rng(seed).permutation(len(self.queries))[:n_queries])
        queries = self.queries.iloc[places].reset_index(drop=True)
        qrels = self.qrels[self.qrels.query_id.isin(queries.query_id)].reset_index(drop=True)
        ids = pd.Index(queries.query_id, name=None)
        qrels = qrels.assign(query_id=pd.Categorical(qrels.query_id.astype("str"), ids))
        odd = count_oddities(self.corpus, queries, qrels, self.card.relevant_from)
        return replace(self, queries=queries, qrels=qrels, candidates=self.candidates.select(places), oddities=odd)

    def example(self, longest: int = 400) -> dict[str, str]:
        """Return task, a query and the best document judged for it, texts cut to *longest* characters."""
        judged, texts = self.relevant, ("", "")
        if not judged.empty:
            first = judged[judged.query_id == judged.query_id.iloc[0]].sort_values("relevance").iloc[-1]
            texts = (self.query(str(first.query_id)), self.document(str(first.doc_id)))
        query, document = (_shortened(text, longest) for text in texts)
        return {"task": self.card.task, "collection": self.name, "query": query, "document": document}

    def statistics(self) -> dict[str, object]:
        """Return the row of this collection in a table like MIRB's Table 1; words are separated by blanks."""
        n_levels = len({0, *(self.card.relevance_levels or self.qrels.relevance.unique())})
        return {
            "collection": self.name,
            "task": self.card.task,
            "relevance": "binary" if n_levels == 2 else f"{n_levels}-level",
            "queries": len(self.queries),
            "documents": len(self.corpus),
            "relevant per query": len(self.relevant) / max(len(self.queries), 1),
            "words per query": _mean_words(self.query_texts),
            "words per document": _mean_words(self.texts),
            "candidates": ", ".join(self.candidates.names) or "all",
        }

    def report(self) -> pd.DataFrame:
        """Return what is odd in the data (never an error, never altered): columns what, count."""
        return pd.DataFrame({"what": list(self.oddities), "count": list(self.oddities.values())})

    def __repr__(self) -> str:
        counts = f"{len(self.queries):,} queries, {len(self.corpus):,} documents, {len(self.qrels):,} judgements"
        return f"Collection('{self.name}', {self.split}: {counts})"

    def _repr_html_(self) -> str:
        facts = pd.Series(self.statistics()).drop("collection").rename(self.name).to_frame()
        return facts.to_html(float_format="{:.2f}".format, classes="tex2jax_ignore mathjax_ignore")


def load_folder(path: str | Path, split: str = "test") -> Collection:
    """Read and check the collection in a folder with corpus, queries and qrels; a card is optional.

    Where digests were kept (`mirblab build`, `mirblab add`), the bytes that are read, and all other files, are compared
    with them. Raises MirblabError for a file that differs, is missing or is new, and, with file, line and number of
    such lines, for duplicate or missing ids, broken JSON, wrong encoding, and judgements of unknown documents;
    FileNotFoundError for a missing file or split.
    """
    folder = Path(path)
    before = digests.kept(folder)
    try:
        with hashed() as read:
            found = read_splits(folder, [split])[0]
    except (MirblabError, FileNotFoundError):
        digests.check(folder)  # that a file has changed says more than what is wrong with it
        raise
    if digests.kept(folder) != before:  # replaced meanwhile: the texts may be of one build, the judgements of the next
        return load_folder(folder, split)
    digests.check(folder, read)
    return found


def read_splits(folder: Path, splits: Sequence[str] = ()) -> list[Collection]:
    """Return the collection of each of the *splits* (none: all that are there), whatever its digests say."""
    corpus = on_disk.read_texts(folder, "corpus")
    queries = on_disk.read_texts(folder, "queries")
    card = Card.read(folder)
    wanted = splits or list(dict.fromkeys(["test", *on_disk.splits(folder)]))
    return [_of_split(folder, split, corpus, queries, card) for split in wanted]


def _of_split(folder: Path, split: str, corpus: pd.DataFrame, queries: pd.DataFrame, card: Card) -> Collection:
    judged = on_disk.read_qrels(folder, split, queries.query_id, corpus.doc_id)
    asked = queries[queries.query_id.isin(judged.query_id.unique())].reset_index(drop=True)
    qrels = pd.DataFrame(
        {
            "query_id": pd.Categorical(judged.query_id, pd.Index(asked.query_id, name=None)),
            "doc_id": pd.Categorical(judged.doc_id, pd.Index(corpus.doc_id, name=None)),
            "relevance": judged.relevance.astype(np.int32),
        }
    ).sort_values(["query_id", "doc_id"], ignore_index=True)
    candidates = Candidates(len(corpus), tuple(restrictions.rules(folder, card, corpus, asked, queries, qrels)))
    oddities = count_oddities(corpus, asked, qrels, card.relevant_from)
    return Collection(card.name or folder.resolve().name, split, corpus, asked, qrels, candidates, card, oddities)


def _shortened(text: str, longest: int) -> str:
    """Return *text* cut to *longest* characters, never inside a formula."""
    if len(text) <= longest:
        return text
    kept = text[: max(0, longest - 2)]
    if kept.count("$") % 2:
        kept = kept[: kept.rindex("$")]
    return kept.rstrip() + " …"


def _mean_words(texts: list[str]) -> float:
    return sum(len(text.split()) for text in texts) / max(len(texts), 1)


def _position(ids: pd.Index, name: str, kind: str, collection: str) -> int:
    place = int(ids.searchsorted(name))
    if place >= len(ids) or ids[place] != name:
        raise MirblabError(
            f"no {kind} '{name}' in {collection}; found {len(ids):,}, for example '{ids[0] if len(ids) else ''}'"
        )
    return place
