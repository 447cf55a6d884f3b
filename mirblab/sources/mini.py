"""mini: the bundled cards and the miniature collections that are made of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mirblab.core import paths, registry
from mirblab.core.errors import MirblabError
from mirblab.core.registry import read_toml
from mirblab.data import digests
from mirblab.data.beir import write_collection
from mirblab.data.collection import read_card_table
from mirblab.sources import lean_views
from mirblab.sources.blueprints.build import bundled_collection, bundled_files
from mirblab.sources.lean_views import COLUMNS, VIEWS, draw_split
from mirblab.sources.shared.builder import CollectionRows, Row, fold_text

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
PROSE = ("slogan", "statement", "rewording", "question", "duplicate", "proof")
PAIR = ("id", "title", "first", "second", "why")
# What a derivation reads: keys with the type of their value, a table of further ones, or a list of one of these.
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
_ENVIRONMENT = re.compile(r"\\(begin|end)\{([^}]*)\}")
# Where Mathlib keeps the mathematics of a field, for fields that do not have the name of a part of Mathlib.
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
VERSION = 1  # raised by one whenever the same cards give other collections; a test fails when they do without it
Judgement = tuple[str, str, int]


def build(name: str, out: Path) -> Path:
    """Write the miniature collection *name* into the folder *out*, with the digests of its files, and return it.

    Raises MirblabError for a name that is not a miniature collection.
    """
    if name not in COLLECTIONS:
        raise MirblabError(f"'{name}' is not derived from the cards; known: {', '.join(sorted(COLLECTIONS))}")
    entry = registry.read_registry("collections")[name]
    rows = COLLECTIONS[name](read_cards())
    about = {key: value for key, value in entry.items() if key not in ("builder", "command")}
    card = {"name": name, **about, "source": "data/mini", "licence": "CC0-1.0", "revision": miniature_revision()}
    # While another process writes files of newer cards, no digests are better than those of older ones.
    with paths.writing(out), suppress(MirblabError):
        if read_card_table(out).get("revision") != card["revision"]:
            (out / digests.DIGEST_FILE).unlink(missing_ok=True)
    write_collection(out, rows.corpus, rows.queries, rows.judged, card)
    digests.write_digests(out)
    return out


def read_cards() -> list[Card]:
    """Return the bundled cards, sorted by id; MirblabError for one that cannot be read.

    >>> read_cards()[0]["id"]
    'a5-simple'
    """
    return [read_card_file(path, _CARD) for path in bundled_card_files("cards")]


def find_card_problems(found: Iterable[Card]) -> list[str]:
    """Return what is wrong with cards, one sentence each: keys, grades, premises, LaTeX, repeated texts.

    >>> find_card_problems([])
    []
    """
    known = {card["id"]: card for card in found}
    wrong = [f"{name}: {what}" for name, card in known.items() for what in _card(card, known)]
    if wrong:
        return wrong
    circles = (_circle(name, known, ()) for name in known)
    return [*dict.fromkeys(circle for circle in circles if circle), *_repeated(known)]


def find_pair_problems(found: Iterable[Card]) -> list[str]:
    """Return what is wrong with files of equivalent statements, one sentence each.

    >>> find_pair_problems([{"id": "a--b", "domains": ["a", "b"], "dictionary": "", "pair": []}])
    ['a--b: 0 pairs, fewer than 15']
    """
    wrong, seen = [], Counter[str]()
    for group in found:
        if len(group.get("domains", [])) != 2:
            wrong.append(f"{group['id']}: needs two domains, found {group.get('domains')}")
        if len(group.get("pair", [])) < 15:
            wrong.append(f"{group['id']}: {len(group.get('pair', []))} pairs, fewer than 15")
        for pair in group.get("pair", []):
            name = f"{group['id']}, {pair.get('id')}"
            absent = [key for key in PAIR if not str(pair.get(key, "")).strip()]
            wrong += [f"{name}: lacks {', '.join(absent)}"] if absent else []
            wrong += [f"{name}: {what}" for key in ("first", "second") for what in _latex(str(pair.get(key, "")))]
        names = Counter(row.get("id") for row in [*group.get("pair", []), *group.get("distractor", [])])
        wrong += [f"{group['id']}: the id {name!r} stands {n} times" for name, n in names.items() if n > 1]
        seen.update(fold_text(row[key]) for row in group.get("pair", []) for key in ("first", "second") if key in row)
    return wrong + [f"{n} statements say {text[:60]!r}" for text, n in seen.items() if n > 1]


def miniature_revision() -> str:
    """Return a hash over cards, registry entries and `VERSION`: another one means that mini is out of date."""
    entries = {name: entry for name, entry in registry.read_registry("collections").items() if name in COLLECTIONS}
    digest = hashlib.blake2b(json.dumps(entries, sort_keys=True, default=str).encode(), digest_size=8)
    digest.update(str(VERSION).encode())
    for path in [
        *bundled_card_files("cards"),
        *bundled_card_files("pairs"),
        *bundled_card_files("bridges"),
        *bundled_files(),
    ]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()


def _card(card: Card, known: Mapping[str, Card]) -> Iterator[str]:
    if tuple(card) != KEYS:
        yield f"keys are {', '.join(card)}; expected {', '.join(KEYS)}"
        return
    for view, keys in CARD_VIEWS.items():
        if set(card[view]) != set(keys):
            yield f"[{view}] has {', '.join(card[view])}; expected {', '.join(keys)}"
            return
    for kind, grades in (("answers", card["answers"]), ("variants", card["formula"]["variants"])):
        found = {row["grade"] for row in grades}
        if not {0, 3} <= found <= {0, 1, 2, 3} or not 3 <= len(grades) <= 6:
            yield f"{len(grades)} {kind} with grades {sorted(found)}; expected three to six from 0 to 3, with 0 and 3"
    yield from (f"premise '{name}' is no card" for name in card["premises"] if name not in known)
    for name, text in _texts(card):
        yield from (f"{name}: {what}" for what in ([] if text.strip() else ["empty"]))
        yield from (f"{name}: {what}" for what in _latex(text))


def _texts(card: Card) -> Iterator[tuple[str, str]]:
    """Yield the name and text of every view that is written in LaTeX, a bare formula between dollars."""
    yield from ((key, card[key]) for key in PROSE)
    yield from ((f"answer {place}", row["text"]) for place, row in enumerate(card["answers"], 1))
    yield from (("equivalent", card["equivalent"]["statement"]), ("context", card["formula"]["context"]))
    formulas = [card["formula"]["latex"], *(row["latex"] for row in card["formula"]["variants"])]
    yield from ((f"formula {place}", f"${latex}$") for place, latex in enumerate(formulas))


def _latex(text: str) -> Iterator[str]:
    """Yield what does not balance: dollars, braces inside formulas, \\left and \\right, environments."""
    plain = text.replace(r"\\", "").replace(r"\$", "")
    if plain.count("$") % 2:
        yield "dollars do not balance"
        return
    for formula in re.findall(r"\$+([^$]*)\$+", plain):
        bare = formula.replace(r"\{", "").replace(r"\}", "")
        if bare.count("{") != bare.count("}"):
            yield f"braces do not balance in {formula[:40]!r}"
        if len(re.findall(r"\\left(?![a-zA-Z])", formula)) != len(re.findall(r"\\right(?![a-zA-Z])", formula)):
            yield f"\\left and \\right do not balance in {formula[:40]!r}"
    opened = Counter((name, 1 if kind == "begin" else -1) for kind, name in _ENVIRONMENT.findall(text))
    if any(opened[name, 1] != opened[name, -1] for name, _ in opened):
        yield "environments do not balance"


def _circle(name: str, known: Mapping[str, Card], seen: tuple[str, ...]) -> str:
    """Return a chain of premises that leads back, or ""."""
    if name in seen:
        return f"premises lead back: {' -> '.join((*seen[seen.index(name) :], name))}"
    chains = (_circle(premise, known, (*seen, name)) for premise in known[name]["premises"])
    return next((chain for chain in chains if chain), "")


def _repeated(known: Mapping[str, Card]) -> Iterator[str]:
    for view in (*PROSE[:5], "informal"):
        texts = {name: card["lean"]["informal"] if view == "informal" else card[view] for name, card in known.items()}
        counts = Counter(fold_text(text) for text in texts.values())
        yield from (f"{n} cards have the {view} {text[:60]!r}" for text, n in counts.items() if n > 1)


def _directed(direction: str) -> Callable[[list[Card]], CollectionRows]:
    """Return the derivation "one view of a declaration to another view of it", among the declarations of all cards."""

    def derive(found: list[Card]) -> CollectionRows:
        return lean_views.view_collection(view_rows(found), direction)

    return derive


def view_rows(found: list[Card]) -> list[Row]:
    """Return the declarations of the cards as a table of views, sorted by id; about half are for training.

    >>> from mirblab.sources.mini import read_cards
    >>> view_rows(read_cards())[0]["module"]
    'Mathlib.GroupTheory.Basic'
    """
    rows = [_declaration(card["lean"], card["field"]) for card in found]
    return sorted(rows, key=lambda row: row["id"])


def read_pairs() -> list[Card]:
    """Return the bundled files of equivalent statements, each of one pair of fields; MirblabError as `read_cards`.

    >>> len(read_pairs())
    9
    """
    return [read_card_file(path, _GROUP) for path in bundled_card_files("pairs")]


def _declaration(lean: Row, field: str) -> Row:
    name, own = lean["name"], "".join(word.capitalize() for word in field.split())
    part = COMPONENTS.get(field, own)
    row = {
        "id": name,
        "module": f"Mathlib.{part}.{'Basic' if part == own else own}",
        "split": draw_split(name, (50, 10)),
    }
    row |= {key: lean[key].strip() for key in ("kind", *VIEWS)}
    return {column: row[column] for column in COLUMNS}


def _mathlib(found: list[Card]) -> CollectionRows:
    """Return slogan to informalised declaration (relevance 2) and to the same fact in another field's words (1)."""
    declarations = [_doc(f"{card['id']}-lean", card["lean"]["informal"]) for card in found]
    told = [_doc(f"{card['id']}-told", card["equivalent"]["statement"]) for card in found]
    queries = [_query(card["id"], card["slogan"]) for card in found]
    # A deliberate special case: a judged query without a relevant document.
    queries.append(_query("unanswered", "Every zero of the zeta function in the critical strip lies on one line."))
    qrels = [
        (card["id"], f"{card['id']}-{side}", grade) for card in found for side, grade in (("lean", 2), ("told", 1))
    ]
    return CollectionRows(declarations + told, queries, {"test": [*qrels, ("unanswered", f"{found[0]['id']}-lean", 0)]})


def _duplicates(abstract: bool) -> Callable[[list[Card]], CollectionRows]:
    """Return question to its duplicate among the duplicates of all cards; both have tags for the rule of candidates."""

    def derive(found: list[Card]) -> CollectionRows:
        asked = [card for card in found if (card["field"] in ABSTRACT) == abstract]
        corpus = [_doc(f"{card['id']}-again", card["duplicate"], tags=card["tags"]) for card in found]
        queries = [_query(card["id"], card["question"], tags=card["tags"]) for card in asked]
        return CollectionRows(corpus, queries, {"test": [(card["id"], f"{card['id']}-again", 1) for card in asked]})

    return derive


def _answers(found: list[Card]) -> CollectionRows:
    """Return question to graded answers; another question's answers are unjudged."""
    graded = [(card, number, answer) for card in found for number, answer in enumerate(card["answers"], 1)]
    return CollectionRows(
        [_doc(f"{card['id']}-a{number}", answer["text"]) for card, number, answer in graded],
        [_query(card["id"], card["question"]) for card in found],
        {"test": [(card["id"], f"{card['id']}-a{number}", answer["grade"]) for card, number, answer in graded]},
    )


def _proofs(abstract: bool) -> Callable[[list[Card]], CollectionRows]:
    """Return statement to proof; the queries are those of one half of the cards, the corpus has all proofs."""

    def derive(found: list[Card]) -> CollectionRows:
        whole = _pairs(lambda card: card["statement"], lambda card: card["proof"], "-proof")(found)
        asked = {card["id"] for card in found if (card["field"] in ABSTRACT) == abstract}
        queries = [row for row in whole.queries if row["_id"] in asked]
        return CollectionRows(whole.corpus, queries, {"test": [row for row in whole.judged["test"] if row[0] in asked]})

    return derive


def _premises(found: list[Card]) -> CollectionRows:
    """Return statement to the statements that its proof uses; a query is a document too, under the same id."""
    asked = [card for card in found if card["premises"]]
    return CollectionRows(
        [_doc(card["id"], card["statement"]) for card in found],
        [_query(card["id"], card["statement"]) for card in asked],
        {"test": [(card["id"], premise, 1) for card in asked for premise in card["premises"]]},
    )


def _pairs(
    query: Callable[[Card], str], document: Callable[[Card], str], suffix: str
) -> Callable[[list[Card]], CollectionRows]:
    """Return the derivation "one view of a card to another view of the same card"."""

    def derive(found: list[Card]) -> CollectionRows:
        return CollectionRows(
            [_doc(card["id"] + suffix, document(card)) for card in found],
            [_query(card["id"], query(card)) for card in found],
            {"test": [(card["id"], card["id"] + suffix, 1) for card in found]},
        )

    return derive


def _formulas(query: Callable[[Card], str]) -> Callable[[list[Card]], CollectionRows]:
    """Return formula to graded variants; another formula's variants are unjudged."""

    def derive(found: list[Card]) -> CollectionRows:
        graded = [(card, n, variant) for card in found for n, variant in enumerate(card["formula"]["variants"], 1)]
        return CollectionRows(
            [_doc(f"{card['id']}-f{n}", variant["latex"]) for card, n, variant in graded],
            [_query(card["id"], query(card)) for card in found],
            {"test": [(card["id"], f"{card['id']}-f{n}", variant["grade"]) for card, n, variant in graded]},
        )

    return derive


def _bridges(_: list[Card]) -> CollectionRows:
    """Return equivalent statements to train on; the splits test and train have the same judgements."""
    rows = _equivalents(read_bridges())
    rows.judged["train"] = rows.judged["test"]
    return rows


def read_bridges() -> list[Card]:
    """Return the files of equivalent statements to train on, of other pairs of fields; MirblabError as `read_cards`.

    >>> len(read_bridges())
    16
    """
    return [read_card_file(path, _GROUP) for path in bundled_card_files("bridges")]


def read_card_file(path: Path, shape: Shape | None = None) -> Card:
    """Return the content of one file; MirblabError when it is not TOML, is named otherwise than its id, or lacks a key.

    *shape* says which keys it must have, and of which types; None: any.
    """
    found = read_toml(path)
    if found.get("id") != path.stem:
        raise MirblabError(f"{path}: the id is {found.get('id')!r}; it must be the file's name, {path.stem!r}")
    optional = {"distractor": []} if shape is _GROUP else {}
    for what in _misfits(optional | found, shape, "") if shape else ():
        raise MirblabError(f"{path}: {what}; mend it, or restore the file")
    return found


def bundled_card_files(kind: str) -> list[Path]:
    """Return the bundled files of a *kind*: "cards", "pairs" or "bridges"."""
    return sorted(paths.bundled_path("data", "mini", kind).glob("*.toml"))


def _equivalents(groups: list[Card]) -> CollectionRows:
    """Return each statement to its partner in another field, both ways; more documents have no partner."""
    sides, alone = [], []
    for group in groups:
        for pair in group["pair"]:
            names = [f"{group['id']}--{pair['id']}-{place}" for place in (1, 2)]
            fields, texts = group["domains"], (pair["first"], pair["second"])
            sides.append(list(zip(names, fields, texts, strict=True)))
        alone += [(f"{group['id']}--{row['id']}", row["field"], row["text"]) for row in group.get("distractor", [])]
    told = [side for pair in sides for side in pair]
    return CollectionRows(
        [_doc(name, text, tags=[field]) for name, field, text in [*told, *alone]],
        [_query(name, text, tags=[field]) for name, field, text in told],
        {"test": [row for one, other in sides for row in ((one[0], other[0], 1), (other[0], one[0], 1))]},
    )


def _doc(name: str, text: str, **more: Any) -> Row:
    return {"_id": name, "title": "", "text": text, **more}


def _query(name: str, text: str, **more: Any) -> Row:
    return {"_id": name, "text": text, **more}


def _misfits(value: Any, shape: Any, place: str) -> Iterator[str]:
    """Yield what keeps a value from having the shape: a key that is missing or not known, or another type.

    >>> list(_misfits({"lean": {"kind": 3}, "x": 1}, {"id": str, "lean": {"kind": str}}, ""))
    ["'id' is missing", "'lean.kind' must be of the type str, found 3", "'x' is not known"]
    """
    wanted = shape if isinstance(shape, type) else type(shape)
    if not isinstance(value, wanted):
        yield f"'{place}' must be of the type {wanted.__name__}, found {value!r:.60}"
    elif isinstance(shape, list):
        yield from (what for one in value for what in _misfits(one, shape[0], place))
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            name = f"{place}.{key}".lstrip(".")
            yield from _misfits(value[key], inner, name) if key in value else [f"'{name}' is missing"]
        yield from (f"'{place}.{key}' is not known".replace("'.", "'") for key in value if key not in shape)


def _blueprint(_: list[Card]) -> CollectionRows:
    """Return informal statement to the Lean declarations that it names, of the bundled blueprint; no cards here."""
    return bundled_collection()


COLLECTIONS: dict[str, Callable[[list[Card]], CollectionRows]] = {
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
    "mini-pairs": lambda _: _equivalents(read_pairs()),
    "mini-bridges": _bridges,
    **{f"mini-views-{direction}": _directed(direction) for direction in lean_views.DIRECTIONS},
    "mini-blueprint": _blueprint,
}
