r"""leaks: queries that name their answer, answers that name their query, and what is left of \ref and \label."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from mirblab.collection import Collection
from mirblab.shingles import fold

COLUMNS = ["query_id", "doc_id", "kind", "text"]
WHOLE = 5  # words that a text needs before it can be said to stand whole in another
_DECLARED = re.compile(
    r"\s*(?:@\[[^\]]*\]\s*)*(?:(?:private|protected|public|noncomputable|nonrec|unsafe|partial|local|scoped)\s+)*"
    r"(?:theorem|lemma|def|definition|abbrev|structure|class|instance|inductive|axiom|corollary|fact|record|fixpoint|"
    r"proposition)\s+([^\W\d][^\s:({\[⦃⟨]*)(?=\s*(?:[:({\[⦃⟨]|where\b|extends\b|$))",
    re.IGNORECASE,
)  # what follows the name keeps prose apart: "Definition of a limit"
_LABEL = re.compile(
    r"(?<![\w-])[a-z]+(?:-[a-z0-9]+)*-(?:lemma|theorem|proposition|definition|remark|example|exercise|situation|"
    r"section|equation|item)-[a-z0-9]+(?:-[a-z0-9]+)*"
)
_REMNANT = re.compile(
    r"(?<![A-Za-z])\\?(?:(?:eq|auto|[cC]|name|page|hyper)?ref|label|cite[pt]?|lean|uses)\*?(?:\[[^\]]*\])?"
    r"\{[^}]*[A-Za-z]{3}[^}]*\}"
)


def leaks(collection: Collection, seed: int = 0) -> tuple[pd.DataFrame, int]:
    """Return what gives answers away, a row each (query_id, doc_id, kind, text), and how many would by chance.

    Kinds: "id", "title", "declaration", "label": the query has that name of a relevant document, as whole words;
    "query's name": a relevant document has the name that the query declares or begins with; "query in answer",
    "answer in query": the one stands whole in the other; "reference": `\\ref{…}` and the like, with words in it, in
    a query or (query_id "") a document. The chance is the number of queries that would name an answer of another
    query, dealt by *seed*.

    >>> from mirblab.shelf import load
    >>> leaks(load("mini-qa"))[0].columns.tolist()
    ['query_id', 'doc_id', 'kind', 'text']
    """
    qrels = collection.relevant
    queries, docs = (qrels[name].cat.codes.to_numpy() for name in ("query_id", "doc_id"))
    names = _Names(collection)
    rows = [row for pair in zip(queries.tolist(), docs.tolist(), strict=True) for row in names.in_pair(*pair)]
    rows += names.remnants()
    return pd.DataFrame(rows, columns=COLUMNS, dtype="str"), _by_chance(names, queries, docs, seed)


def _by_chance(names: _Names, queries: np.ndarray, docs: np.ndarray, seed: int) -> int:
    """Return how many queries name an answer of another query: each is dealt those of one that is not itself."""
    order = np.random.default_rng(seed).permutation(np.unique(queries))
    dealt = dict(zip(order.tolist(), np.roll(order, 1).tolist(), strict=True))
    pairs = list(zip(queries.tolist(), docs.tolist(), strict=True))
    own = set(pairs)
    others = [(dealt[query], doc) for query, doc in pairs if (dealt[query], doc) not in own]
    return len({query for query, doc in others if any(names.named(query, doc))})


class _Names:
    """The names of a collection's documents and queries, and where they are found."""

    def __init__(self, collection: Collection) -> None:
        """Look at the texts of *collection*; nothing is searched yet."""
        self.query_ids, self.doc_ids = collection.query_ids, collection.doc_ids
        self.queries, self.docs = collection.query_texts, collection.texts
        self.titles = collection.corpus.title.to_list()

    def in_pair(self, query: int, doc: int) -> Iterator[tuple[str, str, str, str]]:
        """Yield a row for each way in which a pair, given by positions, gives itself away."""
        ids = str(self.query_ids[query]), str(self.doc_ids[doc])
        for kind, name in self.named(query, doc):
            yield *ids, kind, name
        for name in own_names(self.queries[query]):
            if is_name(name) and occurs(name, self.docs[doc]):
                yield *ids, "query's name", name
        one, other = fold(self.queries[query]), fold(self.docs[doc])
        if one != other:
            if _is_long(one) and one in other:
                yield *ids, "query in answer", self.queries[query][:80]
            elif _is_long(other) and other in one:
                yield *ids, "answer in query", self.docs[doc][:80]

    def named(self, query: int, doc: int) -> Iterator[tuple[str, str]]:
        """Yield kind and name of each name of the document that the query has; at most one of a kind."""
        text, done = self.queries[query], set()
        for kind, name in document_names(str(self.doc_ids[doc]), self.titles[doc], self.docs[doc]):
            where, what = (fold(text), fold(name)) if kind == "title" else (text, name)
            if kind not in done and occurs(what, where):
                done.add(kind)
                yield kind, name

    def remnants(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield a row for each text that has a reference left in it."""
        for place, text in enumerate(self.queries):
            if match := _REMNANT.search(text):
                yield str(self.query_ids[place]), "", "reference", match[0]
        for place, text in enumerate(self.docs):
            if match := _REMNANT.search(text):
                yield "", str(self.doc_ids[place]), "reference", match[0]


def document_names(doc_id: str, title: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, name), each name once, for what a document is called: title, declared name or label, id.

    A title needs two words, an id of digits five. The last part of a dotted name counts when it has four letters,
    also when it is a plain word, which may be there by chance.

    >>> list(document_names("pfr:Loop.average", "", "def Loop.average (f : Loop) := ..."))
    [('declaration', 'Loop.average'), ('declaration', 'average'), ('id', 'pfr:Loop.average')]
    """
    declared, tail = list(own_names(text)), re.split(r"[:/]", doc_id)[-1]
    found = [("title", title)] if len(title.split()) > 1 else []
    found += [("label" if _LABEL.fullmatch(name) else "declaration", name) for name in declared if len(name) > 1]
    found += [("declaration", last) for name in [*declared, tail] if len(last := name.rpartition(".")[2]) > 3
              and "." in name]  # fmt: skip
    found += [("id", name) for name in (doc_id, tail) if is_name(name) or (name.isdigit() and len(name) > 4)]
    done: set[str] = set()
    for kind, name in found:
        if name not in done:
            done.add(name)
            yield kind, name


def own_names(text: str) -> Iterator[str]:
    """Yield the name that a text declares, and the label that it begins with.

    >>> list(own_names("theorem Nat.add_comm (a b : ℕ) : a + b = b + a"))
    ['Nat.add_comm']
    """
    if match := _DECLARED.match(text):
        yield match[1]
    if match := _LABEL.match(text):
        yield match[0]


def is_name(word: str) -> bool:
    """Return whether a word can only be a name: six or more characters with `_`, `.`, `-` or a capital inside.

    >>> is_name("sum_comm"), is_name("isHolomorphicOn"), is_name("average"), is_name("05N2")
    (True, True, False, False)
    """
    return len(word) > 5 and " " not in word and re.search(r"[a-zA-Z0-9][_.:A-Z-]+[a-zA-Z0-9]", word) is not None


def occurs(name: str, text: str) -> bool:
    """Return whether *name* stands in *text* as a word of its own, case included.

    >>> occurs("comm", "add_comm"), occurs("comm", "by comm.")
    (False, True)
    """
    if name not in text:
        return False
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w'])(?!\.\w)", text) is not None


def _is_long(text: str) -> bool:
    return len(text.split()) >= WHOLE
