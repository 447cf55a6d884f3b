"""mini: the bundled cards, each one fact seen from many sides, turned into miniature test collections."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from mirblab import digests, paths, registry
from mirblab.card import raw
from mirblab.errors import MirblabError
from mirblab.folder import write
from mirblab.sources import blueprints, views_cards, views_tasks
from mirblab.sources.cards import Card, bridges, cards, files, pairs
from mirblab.sources.shape import Row

# The cards of these fields make the collections after MathOverflow and the Stacks project, the others those
# after Mathematics Stack Exchange and ProofWiki.
ABSTRACT = {
    "algebraic geometry",
    "algebraic topology",
    "category theory",
    "commutative algebra",
    "field theory",
    "functional analysis",
    "group theory",
    "homological algebra",
    "linear algebra",
    "measure theory",
    "representation theory",
    "ring theory",
    "topology",
}
VERSION = 1  # raised by one whenever the same cards give other collections; a test fails when they do without it
Judgement = tuple[str, str, int]


class Parts(NamedTuple):
    """The rows of one collection: corpus, queries and judgements (query, document, relevance), of other splits too."""

    corpus: list[Row]
    queries: list[Row]
    qrels: list[Judgement]
    others: Mapping[str, list[Judgement]] = MappingProxyType({})


def revision() -> str:
    """Return a hash over cards, registry entries and `VERSION`: another one means that mini is out of date."""
    entries = {name: entry for name, entry in registry.read("collections").items() if name in COLLECTIONS}
    digest = hashlib.blake2b(json.dumps(entries, sort_keys=True, default=str).encode(), digest_size=8)
    digest.update(str(VERSION).encode())
    for path in [*files("cards"), *files("pairs"), *files("bridges"), *blueprints.bundled_files()]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()


def build(name: str, out: Path) -> Path:
    """Write the miniature collection *name* into the folder *out*, with the digests of its files, and return it.

    Raises MirblabError for a name that is not a miniature collection.
    """
    if name not in COLLECTIONS:
        raise MirblabError(f"'{name}' is not derived from the cards; known: {', '.join(sorted(COLLECTIONS))}")
    entry = registry.read("collections")[name]
    parts = COLLECTIONS[name](cards())
    about = {key: value for key, value in entry.items() if key not in ("builder", "command")}
    card = {"name": name, **about, "source": "data/mini", "licence": "CC0-1.0", "revision": revision()}
    # While another process writes files of newer cards, no digests are better than those of older ones.
    with paths.writing(out), suppress(MirblabError):
        if raw(out).get("revision") != card["revision"]:
            (out / digests.FILE).unlink(missing_ok=True)
    write(out, parts.corpus, parts.queries, {"test": parts.qrels, **parts.others}, card)
    digests.keep(out)
    return out


def _doc(name: str, text: str, **more: Any) -> Row:
    return {"_id": name, "title": "", "text": text, **more}


def _query(name: str, text: str, **more: Any) -> Row:
    return {"_id": name, "text": text, **more}


def _pairs(query: Callable[[Card], str], document: Callable[[Card], str], suffix: str) -> Callable[[list[Card]], Parts]:
    """Return the derivation "one view of a card to another view of the same card"."""

    def derive(found: list[Card]) -> Parts:
        return Parts(
            [_doc(card["id"] + suffix, document(card)) for card in found],
            [_query(card["id"], query(card)) for card in found],
            [(card["id"], card["id"] + suffix, 1) for card in found],
        )

    return derive


def _mathlib(found: list[Card]) -> Parts:
    """Slogan to informalised declaration (2) and to the same fact told in another field (1)."""
    declarations = [_doc(f"{card['id']}-lean", card["lean"]["informal"]) for card in found]
    told = [_doc(f"{card['id']}-told", card["equivalent"]["statement"]) for card in found]
    queries = [_query(card["id"], card["slogan"]) for card in found]
    # Awkward on purpose: a question that nothing here answers, judged all the same.
    queries.append(_query("unanswered", "Every zero of the zeta function in the critical strip lies on one line."))
    qrels = [
        (card["id"], f"{card['id']}-{side}", grade) for card in found for side, grade in (("lean", 2), ("told", 1))
    ]
    return Parts(declarations + told, queries, [*qrels, ("unanswered", f"{found[0]['id']}-lean", 0)])


def _duplicates(abstract: bool) -> Callable[[list[Card]], Parts]:
    """Question to its duplicate among the duplicates of all cards; both sides carry tags for the rule."""

    def derive(found: list[Card]) -> Parts:
        asked = [card for card in found if (card["field"] in ABSTRACT) == abstract]
        corpus = [_doc(f"{card['id']}-again", card["duplicate"], tags=card["tags"]) for card in found]
        queries = [_query(card["id"], card["question"], tags=card["tags"]) for card in asked]
        return Parts(corpus, queries, [(card["id"], f"{card['id']}-again", 1) for card in asked])

    return derive


def _answers(found: list[Card]) -> Parts:
    """Question to graded answers; another question's answers stay unjudged."""
    graded = [(card, number, answer) for card in found for number, answer in enumerate(card["answers"], 1)]
    return Parts(
        [_doc(f"{card['id']}-a{number}", answer["text"]) for card, number, answer in graded],
        [_query(card["id"], card["question"]) for card in found],
        [(card["id"], f"{card['id']}-a{number}", answer["grade"]) for card, number, answer in graded],
    )


def _proofs(abstract: bool) -> Callable[[list[Card]], Parts]:
    """Statement to proof; the queries are one half's, the corpus is everybody's."""

    def derive(found: list[Card]) -> Parts:
        whole = _pairs(lambda card: card["statement"], lambda card: card["proof"], "-proof")(found)
        asked = {card["id"] for card in found if (card["field"] in ABSTRACT) == abstract}
        queries = [row for row in whole.queries if row["_id"] in asked]
        return Parts(whole.corpus, queries, [row for row in whole.qrels if row[0] in asked])

    return derive


def _premises(found: list[Card]) -> Parts:
    """Statement to the statements that its proof uses; a query is a document too, under the same id."""
    asked = [card for card in found if card["premises"]]
    return Parts(
        [_doc(card["id"], card["statement"]) for card in found],
        [_query(card["id"], card["statement"]) for card in asked],
        [(card["id"], premise, 1) for card in asked for premise in card["premises"]],
    )


def _formulas(query: Callable[[Card], str]) -> Callable[[list[Card]], Parts]:
    """Formula to graded variants; another formula's variants stay unjudged."""

    def derive(found: list[Card]) -> Parts:
        graded = [(card, n, variant) for card in found for n, variant in enumerate(card["formula"]["variants"], 1)]
        return Parts(
            [_doc(f"{card['id']}-f{n}", variant["latex"]) for card, n, variant in graded],
            [_query(card["id"], query(card)) for card in found],
            [(card["id"], f"{card['id']}-f{n}", variant["grade"]) for card, n, variant in graded],
        )

    return derive


def _equivalents(groups: list[Card]) -> Parts:
    """Each statement to its partner in another field, both ways; statements without a partner stand by."""
    sides, alone = [], []
    for group in groups:
        for pair in group["pair"]:
            names = [f"{group['id']}--{pair['id']}-{place}" for place in (1, 2)]
            fields, texts = group["domains"], (pair["first"], pair["second"])
            sides.append(list(zip(names, fields, texts, strict=True)))
        alone += [(f"{group['id']}--{row['id']}", row["field"], row["text"]) for row in group.get("distractor", [])]
    told = [side for pair in sides for side in pair]
    return Parts(
        [_doc(name, text, tags=[field]) for name, field, text in [*told, *alone]],
        [_query(name, text, tags=[field]) for name, field, text in told],
        [row for one, other in sides for row in ((one[0], other[0], 1), (other[0], one[0], 1))],
    )


def _bridges(_: list[Card]) -> Parts:
    """Equivalent statements to train on, the same judgements under both names of a split."""
    made = _equivalents(bridges())
    return made._replace(others={"train": made.qrels})


def _directed(direction: str) -> Callable[[list[Card]], Parts]:
    """Return the derivation "one view of a declaration to another view of it", among the declarations of all cards."""

    def derive(found: list[Card]) -> Parts:
        made = views_tasks.parts(views_cards.views(found), direction)
        others = {split: judged for split, judged in made.judged.items() if split != "test"}
        return Parts(list(made.corpus), list(made.queries), made.judged["test"], others)

    return derive


def _blueprint(_: list[Card]) -> Parts:
    """Return informal statement to the Lean declarations that it names, of the bundled blueprint; no cards here."""
    made = blueprints.bundled()
    return Parts(list(made.corpus), list(made.queries), made.judged["test"])


COLLECTIONS: dict[str, Callable[[list[Card]], Parts]] = {
    "mini-mathlib": _mathlib,
    "mini-mse-dup": _duplicates(abstract=False),
    "mini-mo-dup": _duplicates(abstract=True),
    "mini-qa": _answers,
    "mini-proofwiki": _proofs(abstract=False),
    "mini-stacks": _proofs(abstract=True),
    "mini-premises": _premises,
    "mini-lean": _pairs(lambda card: card["lean"]["state"], lambda card: card["lean"]["signature"], "-lean"),
    "mini-isabelle": _pairs(
        lambda card: card["isabelle"]["state"], lambda card: card["isabelle"]["statement"], "-isabelle"
    ),
    "mini-hol": _pairs(lambda card: card["hol"]["conjecture"], lambda card: card["hol"]["statement"], "-hol"),
    "mini-wfb": _formulas(lambda card: card["formula"]["latex"]),
    "mini-formula": _formulas(
        lambda card: f"Formula: {card['formula']['latex']} Context: {card['formula']['context']}"
    ),
    "mini-pairs": lambda _: _equivalents(pairs()),
    "mini-bridges": _bridges,
    **{f"mini-views-{direction}": _directed(direction) for direction in views_tasks.DIRECTIONS},
    "mini-blueprint": _blueprint,
}
