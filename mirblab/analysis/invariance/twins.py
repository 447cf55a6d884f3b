"""twins: documents rewritten by rules, one twin with the same meaning and one with another, and collections of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Any

import pandas as pd

from mirblab.core.errors import MirblabError, check_known, check_not_negative, check_positive
from mirblab.data.collection import Collection, check_fits, from_rows
from mirblab.formula.in_text import FormulaReader
from mirblab.formula.rewriting.rules import CHANGES, KEEPS, RULES, rewrite_text

UNCHANGED = "unchanged"
_COLUMNS = ["doc_id", "kept_rule", "changed_rule", "text", "kept", "changed"]


@dataclass(frozen=True)
class Twins:
    """Documents with their twins, and the two collections in which systems are compared on them.

    `table` has a row per document: doc_id, kept_rule, changed_rule, text, kept (same meaning), changed (another one).
    `ranks` has the whole corpus; its queries are each document's text and both its twins, and the relevant document is
    the original. `duels` has each document as a query that may return only its own two twins, of which `kept` is
    relevant. `name` is that of the collection.
    """

    name: str
    table: pd.DataFrame
    ranks: Collection
    duels: Collection


def rewrite_documents(
    collection: Collection, n_documents: int = 200, rules: Sequence[str] | None = None, *, seed: int = 0,
    longest: int = 600,
) -> Twins:  # fmt: skip
    """Return at most *n_documents* documents of a collection, each rewritten once to keep and once to change.

    Documents are drawn by *seed* among those of at most *longest* characters, so that no encoder cuts them, that have a
    rule of both kinds. *rules* are names of `formula.RULES` (None: all). Of the rules that apply to a document the one
    with the fewest documents so far is used, so that rare rules are met as often as they can be. MirblabError for no
    rule, an unknown one, rules of one kind only, and a collection in which no document has twins.

    >>> from mirblab.sources.catalogue import load
    >>> twins = rewrite_documents(load("mini-pairs"), 3)
    >>> len(twins.table), len(twins.ranks.query_ids), len(twins.duels.doc_ids)
    (3, 9, 6)
    """
    check_positive(n_documents=n_documents, longest=longest)
    check_not_negative(seed=seed)
    names = list(RULES if rules is None else rules)
    if not names:
        raise MirblabError("no rule was named; leave `rules` out for all")
    check_known("rule", names, list(RULES))
    if {RULES[name].effect for name in names} != {KEEPS, CHANGES}:
        raise MirblabError(
            f"the rules {', '.join(names)} are of one kind; give at least one that keeps the meaning and one that "
            f"changes it (`formula.RULES` has them all)"
        )
    check_fits(collection, "the rewriting of documents")
    reader = FormulaReader.of(collection)
    positions = [at for at, text in enumerate(collection.texts) if 0 < len(text) <= longest]
    Random(seed).shuffle(positions)
    counts: Counter[str] = Counter()
    rows: list[tuple[str, ...]] = []
    for at in positions if not reader.language else ():
        if len(rows) == n_documents:
            break
        text, pair = collection.texts[at], list[tuple[str, str]]()
        for effect in (KEEPS, CHANGES):
            own = [name for name in names if RULES[name].effect == effect]
            pair += _rarest_rewriting(text, own, counts, seed, reader.is_bare)
        if len(pair) == 2:
            counts.update(name for name, _ in pair)
            (kept_rule, kept), (changed_rule, changed) = pair
            rows.append((str(collection.doc_ids[at]), kept_rule, changed_rule, text, kept, changed))
    if not rows:
        raise MirblabError(
            f"no document of {collection.name} with at most {longest:,} characters can be rewritten by these rules; "
            f"give a larger `longest`, more rules, or a collection of statements or formulas in LaTeX"
        )
    table = pd.DataFrame(sorted(rows), columns=_COLUMNS)
    return Twins(collection.name, table, _rank_collection(collection, table), _duel_collection(collection, table))


def _rarest_rewriting(
    text: str, names: Sequence[str], counts: Mapping[str, int], seed: int, bare: bool
) -> list[tuple[str, str]]:
    """Return the rule and the new text of the first rule that applies, rare rules first; empty when none does."""
    random = Random(f"{seed}:{text}")
    for name in sorted(names, key=lambda name: (counts.get(name, 0), random.random())):
        new = rewrite_text(text, name, seed, bare=bare)
        if new is not None:
            return [(name, new)]
    return []


def query_name(doc_id: str, version: str) -> str:
    """Return the id of the query that is a *version* of a document: "unchanged", "kept" or "changed"."""
    return f"{doc_id}~{version}"


def twin_name(doc_id: str, version: str) -> str:
    """Return the id of a twin as a document; no order of ids prefers the one or the other *version*."""
    return f"{doc_id}~{blake2b(f'{version}:{doc_id}'.encode(), digest_size=6).hexdigest()}"


def _rank_collection(collection: Collection, table: pd.DataFrame) -> Collection:
    texts = zip(collection.doc_ids.astype(str), collection.texts, strict=True)
    corpus = [{"_id": name, "text": text} for name, text in texts]
    columns = ((UNCHANGED, table.text), ("kept", table.kept), ("changed", table.changed))
    versions = [
        (name, version, text)
        for version, texts in columns
        for name, text in zip(table.doc_id.tolist(), texts.tolist(), strict=True)
    ]
    queries = [{"_id": query_name(name, version), "text": text} for name, version, text in versions]
    judged = [(query_name(name, version), name, 1) for name, version, _ in versions]
    return _made_collection(collection, "rewritten", corpus, queries, judged, [])


def _duel_collection(collection: Collection, table: pd.DataFrame) -> Collection:
    names = table.doc_id.tolist()
    twins = [
        (name, version, text, number)
        for number, version in enumerate(("changed", "kept"))
        for name, text in zip(names, table[version].tolist(), strict=True)
    ]
    corpus = [{"_id": twin_name(name, version), "text": text} for name, version, text, _ in twins]
    queries = [{"_id": name, "text": text} for name, text in zip(names, table.text.tolist(), strict=True)]
    judged = [(name, twin_name(name, version), number) for name, version, _, number in twins]
    return _made_collection(collection, "twins", corpus, queries, judged, ["judged"])


def _made_collection(
    collection: Collection, suffix: str, corpus: list[dict], queries: list[dict], judged: list, candidates: list[str]
) -> Collection:
    card: dict[str, Any] = {
        "name": f"{collection.name}-{suffix}", "task": collection.card.task, "language": collection.card.language,
        "instruction": collection.card.instruction, "candidates": candidates,
    }  # fmt: skip
    return from_rows(corpus, queries, judged, card)
