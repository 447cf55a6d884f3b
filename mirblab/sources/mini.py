"""mini: the bundled cards and the miniature collections that are made from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from mirblab.core import atomic_files, paths, registry
from mirblab.core.errors import MirblabError
from mirblab.core.registry import read_toml
from mirblab.data import digests
from mirblab.data.beir import write_collection
from mirblab.data.collection import read_card_table
from mirblab.sources import lean_views
from mirblab.sources.blueprints.build import bundled_collection
from mirblab.sources.lean_views import COLUMNS, VIEWS, draw_split
from mirblab.sources.shared.builder import CollectionRows, Row

Card = dict[str, Any]
Shape = dict[str, Any]
KEYS = (
    "id", "field", "level", "tags", "slogan", "statement", "rewording", "question", "duplicate", "proof", "premises",
    "answers", "lean", "isabelle", "hol", "formula", "equivalent",
)  # fmt: skip
CARD_VIEWS = {
    "lean": ("name", "kind", "signature", "type", "informal", "state"),
    "isabelle": ("name", "statement", "state"),
    "hol": ("name", "statement", "conjecture"),
    "formula": ("latex", "context", "variants"),
    "equivalent": ("field", "statement"),
}
PAIR = ("id", "title", "first", "second", "why")
# The keys that a derivation reads, each with the type of its value, a table of further keys, or a list of these.
_GRADED = {"text": str, "grade": int}
_CARD: Shape = {
    **dict.fromkeys(KEYS, str), "tags": [str], "premises": [str], "answers": [_GRADED],
    **{view: dict.fromkeys(keys, str) for view, keys in CARD_VIEWS.items()},
}  # fmt: skip
_CARD["formula"] = {"latex": str, "context": str, "variants": [{"latex": str, "grade": int}]}
_GROUP: Shape = {
    "id": str, "domains": [str], "dictionary": str, "pair": [dict.fromkeys(PAIR, str)],
    "distractor": [dict.fromkeys(("id", "field", "text"), str)],
}  # fmt: skip
# The part of Mathlib for each field whose name differs from that of its part.
COMPONENTS = {
    "commutative algebra": "RingTheory",
    "complex analysis": "Analysis",
    "convex geometry": "Analysis",
    "differential equations": "Analysis",
    "differential geometry": "Geometry",
    "fourier analysis": "Analysis",
    "functional analysis": "Analysis",
    "graph theory": "Combinatorics",
    "homological algebra": "Algebra",
    "numerical analysis": "Analysis",
    "optimisation": "Analysis",
    "order theory": "Order",
    "probability theory": "Probability",
}
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
VERSION = 2  # raised by one whenever the same cards give other collections; otherwise a test fails
Derivation = Callable[[list[Card]], CollectionRows]


def build(name: str, out: Path) -> Path:
    """Write the miniature collection *name*, with its digests, into the folder *out* and return it."""
    if name not in COLLECTIONS:
        raise MirblabError(f"'{name}' is not derived from the cards; known: {', '.join(sorted(COLLECTIONS))}")
    entry = registry.read_registry("collections")[name]
    rows = COLLECTIONS[name](read_cards())
    about = {key: value for key, value in entry.items() if key not in ("builder", "command")}
    card = {"name": name, **about, "source": "data/mini", "licence": "CC0-1.0", "revision": miniature_revision()}
    # While another process writes files of newer cards, missing digests are better than outdated ones.
    with atomic_files.writing(out), suppress(MirblabError):
        if read_card_table(out).get("revision") != card["revision"]:
            (out / digests.DIGEST_FILE).unlink(missing_ok=True)
    write_collection(out, rows.corpus, rows.queries, rows.judged, card)
    digests.write_digests(out)
    return out


def read_cards() -> list[Card]:
    """Return the bundled cards, sorted by id; MirblabError for one that cannot be read."""
    return [read_card_file(path, _CARD) for path in bundled_card_files("cards")]


def miniature_revision() -> str:
    """Return a hash over cards, registry entries and `VERSION`; another one means that mini is out of date."""
    entries = {name: entry for name, entry in registry.read_registry("collections").items() if name in COLLECTIONS}
    digest = hashlib.blake2b(json.dumps(entries, sort_keys=True, default=str).encode(), digest_size=8)
    digest.update(str(VERSION).encode())
    cards = [path for kind in ("cards", "pairs", "bridges") for path in bundled_card_files(kind)]
    blueprint = sorted(path for path in paths.bundled_path("data", "mini", "blueprint").rglob("*") if path.is_file())
    for path in [*cards, *blueprint]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()


def view_rows(cards: list[Card]) -> list[Row]:
    """Return the declarations of the cards as a table of views, sorted by id; about half are for training."""
    rows = []
    for lean, field in ((card["lean"], card["field"]) for card in cards):
        name, folder = lean["name"], "".join(word.capitalize() for word in field.split())
        part = COMPONENTS.get(field, folder)
        row = {"id": name, "module": f"Mathlib.{part}.{'Basic' if part == folder else folder}"}
        row |= {"split": draw_split(name, (50, 10))} | {key: lean[key].strip() for key in ("kind", *VIEWS)}
        rows.append({column: row[column] for column in COLUMNS})
    return sorted(rows, key=lambda row: row["id"])


def read_groups(kind: str) -> list[Card]:
    """Return the bundled groups of equivalent statements: "pairs" for measuring, "bridges" for training."""
    return [read_card_file(path, _GROUP) for path in bundled_card_files(kind)]


def _mathlib(cards: list[Card]) -> CollectionRows:
    """Return slogan to informalised declaration (relevance 2) and to the same fact in another field's words (1)."""
    declarations = [_doc(f"{card['id']}-lean", card["lean"]["informal"]) for card in cards]
    equivalents = [_doc(f"{card['id']}-told", card["equivalent"]["statement"]) for card in cards]
    queries = [_query(card["id"], card["slogan"]) for card in cards]
    # A deliberate special case: a judged query without a relevant document.
    queries.append(_query("unanswered", "Every zero of the zeta function in the critical strip lies on one line."))
    qrels = [
        (card["id"], f"{card['id']}-{side}", grade) for card in cards for side, grade in (("lean", 2), ("told", 1))
    ]
    qrels.append(("unanswered", f"{cards[0]['id']}-lean", 0))
    return CollectionRows(declarations + equivalents, queries, {"test": qrels})


def _is_abstract(card: Card) -> bool:
    return card["field"] in ABSTRACT


def _duplicates(abstract: bool, cards: list[Card]) -> CollectionRows:
    """Return question to its duplicate among the duplicates of all cards; both have tags for the rule of candidates."""
    half = [card for card in cards if _is_abstract(card) == abstract]
    corpus = [_doc(f"{card['id']}-again", card["duplicate"], tags=card["tags"]) for card in cards]
    queries = [_query(card["id"], card["question"], tags=card["tags"]) for card in half]
    return CollectionRows(corpus, queries, {"test": [(card["id"], f"{card['id']}-again", 1) for card in half]})


def _graded(
    letter: str, text: str, options: Callable[[Card], list[Row]], query: Callable[[Card], str], cards: list[Card]
) -> CollectionRows:
    """Return query to its graded *options*, whose *text* is the document; the options of other cards are unjudged."""
    numbered = [(card["id"], f"{card['id']}-{letter}{number}", option)
                for card in cards for number, option in enumerate(options(card), 1)]  # fmt: skip
    return CollectionRows(
        [_doc(doc_id, option[text]) for _, doc_id, option in numbered],
        [_query(card["id"], query(card)) for card in cards],
        {"test": [(query_id, doc_id, option["grade"]) for query_id, doc_id, option in numbered]},
    )


_formulas = partial(_graded, "f", "latex", lambda card: card["formula"]["variants"])


def _proofs(abstract: bool, cards: list[Card]) -> CollectionRows:
    half = [card for card in cards if _is_abstract(card) == abstract]
    corpus = [_doc(f"{card['id']}-proof", card["proof"]) for card in cards]
    queries = [_query(card["id"], card["statement"]) for card in half]
    return CollectionRows(corpus, queries, {"test": [(card["id"], f"{card['id']}-proof", 1) for card in half]})


def _premises(cards: list[Card]) -> CollectionRows:
    with_premises = [card for card in cards if card["premises"]]
    return CollectionRows(
        [_doc(card["id"], card["statement"]) for card in cards],
        [_query(card["id"], card["statement"]) for card in with_premises],
        {"test": [(card["id"], premise, 1) for card in with_premises for premise in card["premises"]]},
    )


def _pairs(
    query: Callable[[Card], str], document: Callable[[Card], str], suffix: str, cards: list[Card]
) -> CollectionRows:
    return CollectionRows(
        [_doc(card["id"] + suffix, document(card)) for card in cards],
        [_query(card["id"], query(card)) for card in cards],
        {"test": [(card["id"], card["id"] + suffix, 1) for card in cards]},
    )


def _views(direction: str, cards: list[Card]) -> CollectionRows:
    return lean_views.view_collection(view_rows(cards), direction)


def _bridges(_: list[Card]) -> CollectionRows:
    rows = _equivalents(read_groups("bridges"))
    rows.judged["train"] = rows.judged["test"]
    return rows


def read_card_file(path: Path, shape: Shape | None = None) -> Card:
    """Return the content of a TOML file; MirblabError unless its id is its name and it has the *shape* (None: any)."""
    card = read_toml(path)
    if card.get("id") != path.stem:
        raise MirblabError(f"{path}: the id is {card.get('id')!r}; it must be the file's name, {path.stem!r}")
    optional: Card = {"distractor": []} if shape is _GROUP else {}
    for problem in _misfits(optional | card, shape, "") if shape else ():
        raise MirblabError(f"{path}: {problem}; mend it, or restore the file")
    return card


def bundled_card_files(kind: str) -> list[Path]:
    """Return the bundled files of a *kind*: "cards", "pairs" or "bridges"."""
    return sorted(paths.bundled_path("data", "mini", kind).glob("*.toml"))


def _equivalents(groups: list[Card]) -> CollectionRows:
    """Return each statement to its partner in another field, in both directions; other documents have no partner."""
    paired: list[tuple[str, str, str]] = []  # name, field and text; partners follow each other
    alone: list[tuple[str, str, str]] = []
    for group in groups:
        for pair in group["pair"]:
            names = [f"{group['id']}--{pair['id']}-{number}" for number in (1, 2)]
            paired += zip(names, group["domains"], (pair["first"], pair["second"]), strict=True)
        alone += [(f"{group['id']}--{row['id']}", row["field"], row["text"]) for row in group.get("distractor", [])]
    names = [name for name, *_ in paired]
    both_ways = [(names[at], names[at ^ 1], 1) for at in range(len(names))]
    return CollectionRows(
        [_doc(name, text, tags=[field]) for name, field, text in [*paired, *alone]],
        [_query(name, text, tags=[field]) for name, field, text in paired],
        {"test": both_ways},
    )


def _doc(name: str, text: str, **more: Any) -> Row:
    return {"_id": name, "title": "", "text": text, **more}


def _query(name: str, text: str, **more: Any) -> Row:
    return {"_id": name, "text": text, **more}


def _misfits(value: Any, shape: Any, place: str) -> Iterator[str]:
    """Yield how a value deviates from the shape: a missing or unknown key, or another type."""
    wanted: Any = shape if isinstance(shape, type) else type(shape)
    if not isinstance(value, wanted):
        yield f"'{place}' must be of the type {wanted.__name__}, found {value!r:.60}"
    elif isinstance(shape, list):
        yield from (problem for item in value for problem in _misfits(item, shape[0], place))
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            name = f"{place}.{key}".lstrip(".")
            yield from _misfits(value[key], inner, name) if key in value else [f"'{name}' is missing"]
        yield from (f"'{place}.{key}' is not known".replace("'.", "'") for key in value if key not in shape)


COLLECTIONS: dict[str, Derivation] = {
    "mini-mathlib": _mathlib,
    "mini-mse-dup": partial(_duplicates, False),
    "mini-mo-dup": partial(_duplicates, True),
    "mini-qa": partial(_graded, "a", "text", lambda card: card["answers"], lambda card: card["question"]),
    "mini-proofwiki": partial(_proofs, False),
    "mini-stacks": partial(_proofs, True),
    "mini-premises": _premises,
    "mini-lean": partial(_pairs, lambda card: card["lean"]["state"], lambda card: card["lean"]["signature"], "-lean"),
    "mini-isabelle": partial(
        _pairs, lambda card: card["isabelle"]["state"], lambda card: card["isabelle"]["statement"], "-isabelle"
    ),
    "mini-hol": partial(_pairs, lambda card: card["hol"]["conjecture"], lambda card: card["hol"]["statement"], "-hol"),
    "mini-wfb": partial(_formulas, lambda card: card["formula"]["latex"]),
    "mini-formula": partial(
        _formulas, lambda card: f"Formula: {card['formula']['latex']} Context: {card['formula']['context']}"
    ),
    "mini-pairs": lambda _: _equivalents(read_groups("pairs")),
    "mini-bridges": _bridges,
    **{f"mini-views-{direction}": partial(_views, direction) for direction in lean_views.DIRECTIONS},
    "mini-blueprint": lambda _: bundled_collection(),  # informal statement to Lean declarations, of no card
}
