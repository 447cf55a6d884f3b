"""blueprint_pairs: nodes of blueprints and the declarations that they name, made into queries with their documents."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mirblab.sources.blueprint_library import Document, Library, from_mathlib
from mirblab.sources.blueprint_nodes import Node
from mirblab.sources.shape import folded

FEWEST = 4  # words of a statement that says something
RUN = 6  # words of a statement that no document of it may hold in a row
SAME = 0.9  # how alike, by difflib, are two texts of which one is the other with a misprint
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass
class Pair:
    """A statement with the declarations that it names; `sources` are the formats in which it stands."""

    node: Node
    documents: list[Document] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)

    def add(self, document: Document) -> None:
        """Take in a declaration, once."""
        if document not in self.documents:
            self.documents.append(document)


def pairs(
    nodes: Iterable[Node], library: Library, mathlib: Mapping[str, str], found: Counter[str], left_out: Counter[str]
) -> list[Pair]:
    """Return the statements of one repository that make queries, in order.

    Nodes with one label are one statement, unless one format has two texts for it, as are those in two formats that
    name the same declarations, and those with the same text. *found* counts how names were found, *left_out* what
    makes no query, and why.
    """
    told: list[Pair] = []
    for pair in _in_one_format(_by_label(nodes, library, mathlib, found, left_out), left_out):
        words = len(pair.node.text.split())
        if not pair.documents:
            left_out["statements none of whose declarations is found"] += 1
        elif words < FEWEST:
            left_out[f"statements under {FEWEST} words" if words else "nodes without a statement"] += 1
        else:
            told.append(pair)
    kept: dict[str, Pair] = {}
    for pair in told:
        first = kept.setdefault(folded(pair.node.text), pair)
        left_out["statements with the text of another one (merged)"] += first is not pair
        for document in pair.documents:
            first.add(document)
    return [pair for pair in kept.values() if _without_leaks(pair, left_out)]


def _by_label(
    nodes: Iterable[Node], library: Library, mathlib: Mapping[str, str], found: Counter[str], left_out: Counter[str]
) -> list[Pair]:
    known: dict[str, Pair] = {}
    for number, node in enumerate(nodes):
        key = node.label or f"\n{number}"
        if _is_another(node, known.get(key)):
            left_out["labels of several statements (each makes a query, with its own declarations)"] += 1
            key = f"{node.label}\n{''.join(node.text.split())}"
        pair = known.setdefault(key, Pair(node))
        if not pair.node.text:
            pair.node = node
        elif node.text and node.source not in pair.sources | {pair.node.source}:
            left_out["nodes with the label of one in another format (that one is kept)"] += 1
        pair.sources.add(node.source)
        for names in node.names:
            document, how = library.find(names, node.file)
            if document is None and (document := from_mathlib(names, mathlib)):
                how = "in mathlib"
            found[how] += 1
            if document:
                pair.add(document)
    return list(known.values())


def _is_another(node: Node, first: Pair | None) -> bool:
    """Return whether a node says something else than the first one of its label, as where a label was copied."""
    if first is None or first.node.source != node.source or not (first.node.text and node.text):
        return False
    one, other = ("".join(text.split()) for text in (first.node.text, node.text))
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() < SAME


def _in_one_format(told: Iterable[Pair], left_out: Counter[str]) -> list[Pair]:
    """Return the pairs without those that name what one in another format names."""
    seen: dict[frozenset[str], Pair] = {}
    kept: list[Pair] = []
    for pair in told:
        names = frozenset(document.id for document in pair.documents)
        first = seen.setdefault(names, pair)
        if names and first.node.text and first.sources.isdisjoint(pair.sources):
            left_out["nodes that name what one in another format names (that one is kept)"] += 1
        else:
            kept.append(pair)
    return kept


def _without_leaks(pair: Pair, left_out: Counter[str]) -> bool:
    """Take documents that hold the statement off a pair, and return whether one is left."""
    clean = [document for document in pair.documents if not leaks(pair.node.text, document.text)]
    left_out["judgements of documents that hold their statement"] += len(pair.documents) - len(clean)
    pair.documents = clean
    return bool(clean)


def leaks(statement: str, document: str, run: int = RUN) -> bool:
    """Return whether a document holds a statement: its whole text, or *run* of its words in a row.

    Case and blanks do not count; words are runs of two or more letters, so that formulas and numbers, which both
    sides share by right, are none.

    >>> leaks("Every group of prime order $p$ is cyclic", "/-- every group of prime order `p` is cyclic -/ theorem a")
    True
    """
    if folded(statement) in folded(document):
        return True
    asked, told = (_WORD.findall(text.casefold()) for text in (statement, document))
    runs = {tuple(told[at : at + run]) for at in range(len(told) - run + 1)}
    return any(tuple(asked[at : at + run]) in runs for at in range(len(asked) - run + 1))
