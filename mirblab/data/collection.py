"""A test collection with its card and its candidates, loaded from a folder and checked."""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, get_type_hints

import numpy as np
import pandas as pd
from pydantic import PositiveInt

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.core.registry import check_table, line_of_key, read_toml
from mirblab.core.text_files import collect_digests, find_file
from mirblab.data import beir as on_disk
from mirblab.data import digests
from mirblab.data.beir import iterate_texts
from mirblab.data.candidates import Candidates, EarlierRule, ListRule, NotSelfRule, Rule, TagRule, tag_matrix
from mirblab.data.oddities import TextOddities, has_entity, has_private_sign
from mirblab.data.parts import DocumentTexts, PartsColumn, parts_of, text_batches, text_bytes

DATASET_PARTS = ("docs_iter", "queries_iter", "qrels_iter")  # methods of a dataset of ir_datasets
PYTERRIER_PARTS = ("get_corpus_iter", "get_topics", "get_qrels")  # those of a dataset of PyTerrier
_QUERY_IDS = ("query_id", "qid")
_LARGEST_KEPT, _MOST_KEPT = 10_000, 64  # documents of a collection that is kept in memory; such collections
MOST_TEXTS = 2_000_000  # documents of a collection in parts, with which something may work in memory
# Texts of collections are also shown in plain tables, where MathJax would obey commands in them (`\\href`).
pd.set_option("display.html.use_mathjax", False)
# What was read, by folder and split, with the digests that it was compared with.
_loaded: dict[tuple[Path, str], tuple[bytes, Collection]] = {}


@dataclass(frozen=True)
class Collection:
    """Corpus, queries and judgements of one split, with the candidates of each query and a card.

    `corpus` has doc_id, title, text (and order, tags where the source has them), sorted by doc_id; `queries` has
    query_id, text, sorted by query_id; `qrels` has query_id, doc_id, relevance, where 0 is a judgement too. The
    position of a document in `corpus` is its code in every run. `groups`, if there are any, has query_id, group,
    doc_id: relevant documents that replace each other, such as the lemmas for one step of a proof.

    >>> from mirblab.sources.catalogue import load
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
    groups: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        """Check that the name can name a folder, since files are written under the names of collections."""
        paths.checked_name(self.name)

    @cached_property
    def doc_ids(self) -> pd.Index:
        """Return the ids of all documents, sorted, shape (n_docs,)."""
        return self.qrels.doc_id.cat.categories

    @cached_property
    def query_ids(self) -> pd.Index:
        """Return the ids of the split's queries, sorted, shape (n_queries,)."""
        return self.qrels.query_id.cat.categories

    @cached_property
    def texts(self) -> Sequence[str]:
        """Return each document's text: title and text joined by one space, stripped; in the order of `doc_ids`.

        It is a list, or, of a collection in parts, a sequence that reads them as they are needed.
        """
        columns = [self.corpus[name].array for name in ("title", "text")]
        if all(isinstance(column, PartsColumn) for column in columns):
            return DocumentTexts(*columns)
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
        return np.array([document_tags[0] if document_tags else "" for document_tags in tags], dtype=object)

    def document(self, doc_id: str) -> str:
        """Return the text of one document; MirblabError for an unknown id."""
        return self.texts[_position_of_id(self.doc_ids, doc_id, "document", self.name)]

    def query(self, query_id: str) -> str:
        """Return the text of one query; MirblabError for an unknown id."""
        return self.query_texts[_position_of_id(self.query_ids, query_id, "query", self.name)]

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash (32 hexadecimal digits) of ids, texts, judgements, candidates, instruction and language."""
        digest = blake2b(digest_size=16)
        columns = [self.corpus.doc_id, self.corpus.title, self.corpus.text, self.queries.query_id, self.queries.text]
        for column in columns:
            _digest_column(digest, column)
        for array in (self.qrels.query_id.cat.codes, self.qrels.doc_id.cat.codes, self.qrels.relevance):
            digest.update(np.ascontiguousarray(array, dtype=np.int64).tobytes())
        if self.groups is not None:
            digest.update("\n".join(self.groups.astype("str").agg("\t".join, axis=1)).encode())
        for rule in self.candidates.rules:
            digest.update(rule.name.encode())
            for part in rule.content():
                digest.update(np.ascontiguousarray(part).tobytes())
        if self.candidates.rules and self.candidates.rows is not None:
            digest.update(np.ascontiguousarray(self.candidates.rows, dtype=np.int64).tobytes())
        digest.update((self.card.instruction + (self.card.language and f"\0{self.card.language}")).encode())
        return digest.hexdigest()

    def sample(self, n_queries: int, seed: int = 0, n_documents: int = 0) -> Collection:
        """Return the collection with at most *n_queries* queries (0: all), drawn by *seed*.

        It has the whole corpus, or with *n_documents* so many documents, with their texts in memory: all that are
        judged for the queries, even if these are more, and others that are drawn. Measures are not those of the whole
        corpus, since fewer documents compete.

        >>> from mirblab.sources.catalogue import load
        >>> load("mini-qa").sample(5, n_documents=100)
        Collection('mini-qa', test: 5 queries, 100 documents, 20 judgements)
        """
        for what, number in (("n_queries", n_queries), ("n_documents", n_documents)):
            if number < 0:
                raise MirblabError(f"{what} must not be negative, found {number}")
        drawn = self._sample_queries(n_queries, seed) if 0 < n_queries < len(self.queries) else self
        return drawn._sample_documents(n_documents, seed) if 0 < n_documents < len(self.corpus) else drawn

    def _sample_queries(self, n_queries: int, seed: int) -> Collection:
        rows = np.sort(np.random.default_rng(seed).permutation(len(self.queries))[:n_queries])
        queries = self.queries.iloc[rows].reset_index(drop=True)
        qrels = self.qrels[self.qrels.query_id.isin(queries.query_id)].reset_index(drop=True)
        ids = pd.Index(queries.query_id, name=None)
        qrels = qrels.assign(query_id=pd.Categorical(qrels.query_id.astype("str"), ids))
        odd = count_oddities(self.corpus, queries, qrels, self.card.relevant_from)
        return replace(self, queries=queries, qrels=qrels, candidates=self.candidates.select(rows), oddities=odd)

    def _sample_documents(self, n_documents: int, seed: int) -> Collection:
        judged = np.unique(self.qrels.doc_id.cat.codes)
        others = np.delete(np.arange(len(self.corpus)), judged)
        drawn = np.random.default_rng(seed).permutation(others)[: max(0, n_documents - len(judged))]
        positions = np.sort(np.concatenate([judged, drawn]))
        corpus = self.corpus.iloc[positions].reset_index(drop=True)
        for name in corpus:
            if isinstance(corpus[name].array, PartsColumn):
                corpus[name] = pd.Series(list(corpus[name].array), dtype=object if name == "tags" else "str")
        ids = pd.Index(corpus.doc_id, name=None)
        qrels = self.qrels.assign(doc_id=pd.Categorical(self.qrels.doc_id.astype("str"), ids))
        odd = count_oddities(corpus, self.queries, qrels, self.card.relevant_from)
        candidates = self.candidates.of_documents(positions)
        return replace(self, corpus=corpus, qrels=qrels, candidates=candidates, oddities=odd)

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
        stored = parts_of(self.corpus)
        levels = self.card.relevance_levels or self.qrels.relevance.unique()
        n_levels = len({0, *(level for level in levels if level >= 0)})
        return {
            "collection": self.name,
            "task": self.card.task,
            "relevance": "binary" if n_levels == 2 else f"{n_levels}-level",
            "queries": len(self.queries),
            "documents": len(self.corpus),
            "relevant per query": len(self.relevant) / max(len(self.queries), 1),
            "words per query": _mean_words(self.query_texts),
            "words per document": stored.n_words / max(stored.n_docs, 1) if stored else _mean_words(self.texts),
            "candidates": ", ".join(self.candidates.names) or "all",
        }

    def report(self) -> pd.DataFrame:
        """Return the oddities of the data, which are neither errors nor altered: columns what, count."""
        return pd.DataFrame({"what": list(self.oddities), "count": list(self.oddities.values())})

    def __repr__(self) -> str:
        counts = f"{len(self.queries):,} queries, {len(self.corpus):,} documents, {len(self.qrels):,} judgements"
        return f"Collection('{self.name}', {self.split}: {counts})"

    def _repr_html_(self) -> str:
        facts = pd.Series(self.statistics()).drop("collection").rename(self.name).to_frame()
        return facts.to_html(float_format="{:.2f}".format, classes="tex2jax_ignore mathjax_ignore")


def load_folder(path: str | Path, split: str = "test") -> Collection:
    """Read and check the collection in a folder with corpus, queries and qrels; a card is optional.

    Files are compared with their digests where these were stored (`mirblab build`, `mirblab add`). A small collection
    is parsed once per process while its files keep these digests. FileNotFoundError for a missing file or split;
    MirblabError for a file that differs from its digest or is new, and, with file, line and number of such lines, for
    duplicate or missing ids, broken JSON, wrong encoding and judgements of unknown documents.
    """
    folder = Path(path)
    key, before, read = (folder.absolute(), split), digests.read_digest_file(folder), dict[Path, str]()
    earlier = _loaded.get(key)
    try:
        if before is not None and earlier is not None and earlier[0] == before:
            collection = earlier[1]
        else:
            with collect_digests() as read:
                collection = read_splits(folder, [split])[0]
    except (MirblabError, FileNotFoundError):
        digests.check_digests(folder)  # the message that a file has changed is more useful than that about its content
        raise
    if digests.read_digest_file(folder) != before:
        return load_folder(folder, split)  # replaced meanwhile: texts and judgements may be of two builds
    digests.check_digests(folder, read)
    if before is not None and len(collection.corpus) <= _LARGEST_KEPT and "tags" not in collection.corpus:
        _loaded[key] = before, collection
        if len(_loaded) > _MOST_KEPT:
            del _loaded[next(iter(_loaded))]
    return _copied(collection)


def from_dataset(dataset: Any, name: str = "") -> Collection:
    """Return a dataset of the package ir_datasets or of PyTerrier, or an object of the shape of one, as a collection.

    It has `docs_iter`, `queries_iter` and `qrels_iter`, or `get_corpus_iter`, `get_topics` and `get_qrels`. A
    document's title and text stay apart, other fields of text are joined by one space; a query is its `text`, else its
    `query`, else its `title`, else its fields of text. *name* is by default the dataset's id with "-" for "/".
    MirblabError when a part or a column is missing, and for what `load_folder` refuses.
    """
    if callable(getattr(dataset, "irds_ref", None)):  # PyTerrier's dataset of ir_datasets, whose id only the latter has
        dataset = dataset.irds_ref()
    is_pyterrier = any(hasattr(dataset, part) for part in PYTERRIER_PARTS)
    needed = PYTERRIER_PARTS if is_pyterrier else DATASET_PARTS
    missing = [part for part in needed if not callable(getattr(dataset, part, None))]
    if missing:
        raise MirblabError(f"{dataset!r:.60} has no {', '.join(missing)}; give a dataset with documents and judgements")
    known = dataset.dataset_id() if callable(getattr(dataset, "dataset_id", None)) else getattr(dataset, "name", "")
    name = paths.checked_name(name or str(known or "dataset").replace("/", "-"))
    if is_pyterrier:
        return from_rows(*_pyterrier_rows(dataset), {"name": name})
    documents = ({"_id": doc.doc_id, **_document_fields(doc._asdict(), "doc_id")} for doc in dataset.docs_iter())
    asked = ({"_id": query.query_id, "text": _query_text(query._asdict())} for query in dataset.queries_iter())
    judged = ((each.query_id, each.doc_id, each.relevance) for each in dataset.qrels_iter())
    return from_rows(documents, asked, judged, {"name": name})


def from_rows(
    corpus: Iterable[Mapping[str, Any]],
    queries: Iterable[Mapping[str, Any]],
    judged: Iterable[tuple[str, str, int]],
    card: Mapping[str, Any],
) -> Collection:
    """Return a collection of rows as `beir.write_collection` takes them, checked as a folder is; no file remains.

    *judged* are those of the split test; *card* has at least the name, which stands in errors for the folder.
    """
    with tempfile.TemporaryDirectory(prefix="mirblab-") as folder:
        try:
            on_disk.write_collection(Path(folder), corpus, queries, {"test": judged}, card, in_one_file=True)
            return read_splits(Path(folder), ["test"])[0]
        except MirblabError as error:
            raise MirblabError(str(error).replace(folder, str(card["name"]))) from error


def check_fits(collection: Collection, what: str, instead: str = "") -> None:
    """Raise MirblabError where *what*, which works in memory, gets more than `MOST_TEXTS` documents in parts.

    *instead*: what else the user can do than take a sample.
    """
    n_docs = len(collection.corpus)
    if n_docs > MOST_TEXTS and parts_of(collection.corpus) is not None:
        raise MirblabError(
            f"{what} works in memory, with at most {MOST_TEXTS:,} documents of a collection in parts; "
            f"{collection.name} has {n_docs:,}; take a sample, for example "
            f"collection.sample(0, n_documents={MOST_TEXTS // 10}){f', or {instead}' if instead else ''}"
        )


def _digest_column(digest: Any, column: pd.Series) -> None:
    """Add to *digest* the number of a column's texts, the length of each in characters, and then all texts."""
    from pyarrow import compute

    lengths = [np.array([len(column)])]
    lengths += [compute.utf8_length(batch).to_numpy().astype(np.int64) for batch in text_batches(column)]
    digest.update(np.concatenate(lengths).tobytes())
    for batch in text_batches(column):
        digest.update(text_bytes(batch))


def _pyterrier_rows(dataset: Any) -> tuple[Iterator[Mapping[str, Any]], Iterator[Mapping[str, Any]], Iterator[Any]]:
    """Return the documents, queries and judgements of a dataset of PyTerrier; MirblabError for what it does not have.

    Its documents are dictionaries with `docno`, its topics and judgements tables (qid, …) and (qid, docno, label).
    """
    try:
        documents, topics, qrels = dataset.get_corpus_iter(verbose=False), dataset.get_topics(), dataset.get_qrels()
    except NotImplementedError as error:
        raise MirblabError(
            f"{dataset!r:.60} has no documents, topics or judgements ({error}); give a dataset that has all three"
        ) from error
    for what, table, columns in (("topics", topics, ("qid",)), ("judgements", qrels, ("qid", "docno", "label"))):
        if absent := [column for column in columns if column not in table]:
            found = ", ".join(map(str, table.columns))
            raise MirblabError(f"the {what} of {dataset!r:.60} have no {', '.join(absent)}; found {found}")
    return (
        ({"_id": doc["docno"], **_document_fields(doc, "docno")} for doc in documents),
        ({"_id": topic["qid"], "text": _query_text(topic)} for topic in topics.to_dict("records")),
        zip(qrels.qid, qrels.docno, qrels.label, strict=True),
    )


def _document_fields(document: Mapping[str, Any], key: str) -> dict[str, str]:
    texts = {name: value for name, value in document.items() if name != key and isinstance(value, str)}
    if "text" in texts:
        return {"title": texts.get("title", ""), "text": texts["text"]}
    return {"text": " ".join(filter(None, texts.values()))}


def _query_text(query: Mapping[str, Any]) -> str:
    texts = {name: value for name, value in query.items() if name not in _QUERY_IDS and isinstance(value, str)}
    chosen = (texts.get(name) for name in ("text", "query", "title"))
    return next(filter(None, chosen), "") or " ".join(filter(None, texts.values()))


def _copied(collection: Collection) -> Collection:
    """Return a copy with its own tables and card, so that changing them alters no other collection."""
    tables = {name: getattr(collection, name).copy(deep=False) for name in ("corpus", "queries", "qrels")}
    return replace(collection, **tables, card=deepcopy(collection.card), oddities=dict(collection.oddities))


def read_splits(folder: Path, splits: Sequence[str] = ()) -> list[Collection]:
    """Return the collection of each of the *splits* (none: all that exist), without a check of digests."""
    corpus = on_disk.read_texts(folder, "corpus")
    queries = on_disk.read_texts(folder, "queries")
    card = Card.read(folder)
    wanted = splits or list(dict.fromkeys(["test", *on_disk.split_names(folder)]))
    return [_split_collection(folder, split, corpus, queries, card) for split in wanted]


@dataclass(frozen=True)
class Card:
    """Task, source, licence, revision, relevance levels, instruction and candidate rules of a collection.

    Every field has a default, so that a folder without a card loads. `candidates` names rules: "judged" (only documents
    judged for the query), "not-self" (not the document of the query's id), "earlier" (documents of a smaller `order`),
    "tags" (MIRB's rule of shared tags). `follows` is the published collection that this one rebuilds, `paper` its
    printed name, or `group` where several share a column. `relevant_from` is the smallest relevance that binary
    measures count as relevant. `language` names the proof assistant whose language the texts use, where their signs do
    not show it. Unknown keys are in `extra`.
    """

    name: str = ""
    title: str = ""
    task: str = ""
    source: str = ""
    licence: str = ""
    revision: str = ""
    instruction: str = ""
    paper: str = ""
    group: str = ""
    follows: str = ""
    language: str = ""
    relevance_levels: list[int] = field(default_factory=list)
    relevant_from: PositiveInt = 1
    candidates: list[Literal["judged", "not-self", "earlier", "tags"]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Card:
        """Return the card in *folder*, or an empty one; MirblabError, with file and line, for a field that is wrong."""

        def where(key: str) -> str:
            path = folder / "card.toml"
            return f"{path}{line_of_key(path.read_text('utf-8-sig'), key)}"

        types = get_type_hints(cls, include_extras=True)
        del types["extra"]
        table = read_card_table(folder)
        if isinstance(table.get("candidates"), str):
            table["candidates"] = [table["candidates"]] if table["candidates"] else []
        values = check_table(where, {key: value for key, value in table.items() if key in types}, types)
        if values.get("name"):
            try:
                paths.checked_name(values["name"])
            except MirblabError as error:
                raise MirblabError(f"{where('name')}: {error}") from error
        return cls(**values, extra={key: value for key, value in table.items() if key not in types})


def read_card_table(folder: Path) -> dict[str, Any]:
    """Return the table in `card.toml` of *folder*, unchecked; empty without one; MirblabError when it is not TOML."""
    path = folder / "card.toml"
    return read_toml(path) if path.is_file() else {}


def count_oddities(
    corpus: pd.DataFrame, queries: pd.DataFrame, qrels: pd.DataFrame, relevant_from: int
) -> dict[str, int]:
    """Return how many documents and queries have each oddity of real data; oddities that do not occur are left out."""
    relevant = qrels.query_id[qrels.relevance >= relevant_from].nunique()
    of_documents, query_texts = _document_oddities(corpus), queries.text.to_list()
    doc_ids = qrels.doc_id.cat.categories  # `isin` of pandas would make a Python string of every id
    counts = {
        "documents without text": of_documents["documents without text"],
        "queries without text": sum(not text.strip() for text in query_texts),
        "documents that repeat another's text": of_documents["documents that repeat another's text"],
        "queries that repeat another's text": len(query_texts) - len(set(query_texts)),
        "texts with HTML entities": of_documents["texts with HTML entities"] + sum(map(has_entity, query_texts)),
        "texts with signs of a private font": of_documents.get("texts with signs of a private font", 0)
        + sum(map(has_private_sign, query_texts)),
        "queries without a relevant document": len(queries) - relevant,
        "queries that have the id of a document": int((doc_ids.get_indexer(pd.Index(queries.query_id)) >= 0).sum()),
    }
    return {what: count for what, count in counts.items() if count}


def _document_oddities(corpus: pd.DataFrame) -> dict[str, int]:
    """Return the counts of `TextOddities`, which a corpus in parts has stored."""
    stored = parts_of(corpus)
    if stored is not None:
        return stored.oddities
    oddities = TextOddities()
    for title, text in zip(iterate_texts(corpus.title), iterate_texts(corpus.text), strict=True):
        oddities.add(title, text)
    return oddities.counts()


def candidate_rules(
    folder: Path, card: Card, corpus: pd.DataFrame, queries: pd.DataFrame, all_query_ids: Set[str], qrels: pd.DataFrame
) -> list[Rule]:
    """Return the rules that the folder's lists and the card's `candidates` impose on the *queries* of a split."""
    rules, doc_ids = list[Rule](), qrels.doc_id.cat.categories
    query_ids = pd.Index(queries.query_id)
    for stem, key in on_disk.LIST_KEYS.items():
        if path := find_file(folder, stem):
            allow = stem == "candidates"
            pairs = on_disk.read_id_lists(path, key, query_ids, all_query_ids, doc_ids, every_query=allow)
            rules.append(ListRule.from_pairs(stem, *pairs, len(queries), allow=allow))
    for name in card.candidates:
        if name == "judged":
            rules.append(_judged_rule("judged", qrels[qrels.relevance >= 0], len(queries)))
        elif name == "not-self":
            rules.append(NotSelfRule(doc_ids.get_indexer(query_ids)))
        elif name == "earlier":
            rules.append(EarlierRule(_orders(corpus, "corpus", folder), _orders(queries, "queries", folder)))
        elif name == "tags":
            rules.append(_tag_rule(corpus, queries, qrels, card, folder))
    return rules


def _split_collection(folder: Path, split: str, corpus: pd.DataFrame, queries: pd.DataFrame, card: Card) -> Collection:
    doc_ids = pd.Index(corpus.doc_id, name=None)
    judged = on_disk.read_qrels(folder, split, pd.Index(queries.query_id), doc_ids)
    all_query_ids = set(queries.query_id)
    queries = queries[queries.query_id.isin(judged.query_id.unique())].reset_index(drop=True)
    qrels = judged.assign(
        query_id=pd.Categorical(judged.query_id, pd.Index(queries.query_id, name=None)),
        doc_id=pd.Categorical(judged.doc_id, doc_ids),
    ).sort_values(["query_id", "doc_id"], ignore_index=True)
    rules = candidate_rules(folder, card, corpus, queries, all_query_ids, qrels)
    candidates = Candidates(len(corpus), tuple(rules))
    oddities = count_oddities(corpus, queries, qrels, card.relevant_from)
    name, groups = card.name or folder.resolve().name, None
    if (folder / on_disk.GROUPS).is_file():
        groups = on_disk.read_groups(folder, all_query_ids, qrels[qrels.relevance >= card.relevant_from])
    return Collection(name, split, corpus, queries, qrels, candidates, card, oddities, groups)


def _tag_rule(corpus: pd.DataFrame, queries: pd.DataFrame, qrels: pd.DataFrame, card: Card, folder: Path) -> TagRule:
    if "tags" not in corpus or "tags" not in queries:
        raise MirblabError(f"{folder}: the card says candidates = 'tags', but no text has 'tags'; add them")
    names = pd.Index(sorted({tag for column in (corpus.tags, queries.tags) for row in column for tag in row or []}))
    gold = _judged_rule("gold", qrels[qrels.relevance >= card.relevant_from], len(queries))
    return TagRule(tag_matrix(queries.tags, names), tag_matrix(corpus.tags, names), gold)


def _judged_rule(name: str, qrels: pd.DataFrame, n_queries: int) -> ListRule:
    queries, docs = (qrels[column].cat.codes.to_numpy().astype(np.int64) for column in ("query_id", "doc_id"))
    return ListRule.from_pairs(name, queries, docs, n_queries, allow=True)


def _orders(texts: pd.DataFrame, stem: str, folder: Path) -> np.ndarray:
    orders = texts["order"] if "order" in texts else pd.Series(pd.NA, texts.index, dtype="Int64")
    if missing := int(orders.isna().sum()):
        raise MirblabError(
            f"{folder}: the card says candidates = 'earlier', but {missing:,} rows of {stem} have no 'order'; add it"
        )
    return orders.to_numpy(dtype=np.int64)


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    kept = text[: max(0, longest - 2)]
    if kept.count("$") % 2:
        kept = kept[: kept.rindex("$")]
    return kept.rstrip() + " …"


def _mean_words(texts: Sequence[str]) -> float:
    return sum(len(text.split()) for text in texts) / max(len(texts), 1)


def _position_of_id(ids: pd.Index, name: str, kind: str, collection: str) -> int:
    position = bisect_left(ids, name)  # pandas' search turns all ids into Python's strings first
    if position >= len(ids) or ids[position] != name:
        raise MirblabError(
            f"no {kind} '{name}' in {collection}; found {len(ids):,}, for example '{ids[0] if len(ids) else ''}'"
        )
    return position
