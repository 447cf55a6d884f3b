"""cards: the bundled mathematical facts and pairs of equivalent statements, read and checked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mirblab import paths
from mirblab.errors import MirblabError
from mirblab.sources.shape import folded
from mirblab.toml import read_toml

Card = dict[str, Any]
Shape = dict[str, Any]

KEYS = (
    "id", "field", "level", "tags", "slogan", "statement", "rewording", "question", "duplicate", "proof", "premises",
    "answers", "lean", "isabelle", "hol", "formula", "equivalent",
)  # fmt: skip
VIEWS = {
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
    **{view: dict.fromkeys(keys, str) for view, keys in VIEWS.items()},
}  # fmt: skip
_CARD["formula"] = {"latex": str, "context": str, "variants": [{"latex": str, "grade": int}]}
_GROUP: Shape = {
    "id": str, "domains": [str], "dictionary": str, "pair": [dict.fromkeys(PAIR, str)],
    "distractor": [dict.fromkeys(("id", "field", "text"), str)],
}  # fmt: skip
_ENVIRONMENT = re.compile(r"\\(begin|end)\{([^}]*)\}")


def files(kind: str) -> list[Path]:
    """Return the bundled files of a *kind*: "cards", "pairs" or "bridges"."""
    return sorted(paths.bundled("data", "mini", kind).glob("*.toml"))


def cards() -> list[Card]:
    """Return the bundled cards, sorted by id; MirblabError for one that cannot be read.

    >>> cards()[0]["id"]
    'a5-simple'
    """
    return [read(path, _CARD) for path in files("cards")]


def pairs() -> list[Card]:
    """Return the bundled files of equivalent statements, each of one pair of fields; MirblabError likewise.

    >>> len(pairs())
    9
    """
    return [read(path, _GROUP) for path in files("pairs")]


def bridges() -> list[Card]:
    """Return the files of equivalent statements to train on, of other pairs of fields; MirblabError likewise.

    >>> len(bridges())
    16
    """
    return [read(path, _GROUP) for path in files("bridges")]


def read(path: Path, shape: Shape | None = None) -> Card:
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


def problems(found: Iterable[Card]) -> list[str]:
    """Return what is wrong with cards, one sentence each: keys, grades, premises, LaTeX, repeated texts.

    >>> problems([])
    []
    """
    known = {card["id"]: card for card in found}
    wrong = [f"{name}: {what}" for name, card in known.items() for what in _card(card, known)]
    if wrong:
        return wrong
    circles = (_circle(name, known, ()) for name in known)
    return [*dict.fromkeys(circle for circle in circles if circle), *_repeated(known)]


def pair_problems(found: Iterable[Card]) -> list[str]:
    """Return what is wrong with files of equivalent statements, one sentence each.

    >>> pair_problems([{"id": "a--b", "domains": ["a", "b"], "dictionary": "", "pair": []}])
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
        seen.update(folded(row[key]) for row in group.get("pair", []) for key in ("first", "second") if key in row)
    return wrong + [f"{n} statements say {text[:60]!r}" for text, n in seen.items() if n > 1]


def _card(card: Card, known: Mapping[str, Card]) -> Iterator[str]:
    if tuple(card) != KEYS:
        yield f"keys are {', '.join(card)}; expected {', '.join(KEYS)}"
        return
    for view, keys in VIEWS.items():
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
        counts = Counter(folded(text) for text in texts.values())
        yield from (f"{n} cards have the {view} {text[:60]!r}" for text, n in counts.items() if n > 1)
