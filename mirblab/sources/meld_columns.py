"""meld_columns: which columns of a table of equivalent statements hold texts, fields and the pair, told by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mirblab.errors import MirblabError

# The nine pairs of fields of Ye et al. 2026, Table 1.
DOMAINS = (
    ("vector spaces", "module theory"),
    ("measure theory", "probability theory"),
    ("set theory", "category theory"),
    ("geometry", "commutative algebra"),
    ("algebraic topology", "group theory"),
    ("graph theory", "linear algebra"),
    ("combinatorics", "generating functions"),
    ("representation theory", "fourier analysis"),
    ("symmetric functions", "tableaux"),
)
ROLES = ("first", "second", "first_field", "second_field", "text", "field", "pair", "domains", "kind")
_SIDES = ({"1", "a", "first", "left", "one", "anchor"}, {"2", "b", "second", "right", "two", "positive"})
_BARE = {"first", "second", "left", "right", "a", "b", "anchor", "positive"}
_TEXT = {"statement", "text", "formulation", "theorem", "sentence", "version", "content", "description", "view"}
_FIELD = {"field", "domain", "subfield", "area", "subject", "discipline"}
_NAMES = {"name", "label", "math", "mathematical"}
_PAIR = {"pair", "pair_id", "pair_idx", "pair_index", "pair_number", "concept_id", "group_id", "match_id", "class_id"}
_DOMAINS = {"domain_pair", "domains", "field_pair", "fields", "subfield_pair", "subfields", "subset", "category"}
_KIND = {"kind", "type", "role", "list", "is_distractor", "distractor", "split"}
_BETWEEN = re.compile(r"\s+(?:vs\.?|versus|and|to|<->|↔|–|—|-|/|\|)\s+|\s*/\s*|--|__|_vs_|-vs-")


@dataclass(frozen=True)
class Columns:
    """The column of each role ("" for none): first and second for a pair in a row, else text for one statement."""

    first: str = ""
    second: str = ""
    first_field: str = ""
    second_field: str = ""
    text: str = ""
    field: str = ""
    pair: str = ""
    domains: str = ""
    kind: str = ""


def recognised(names: Sequence[str], given: Mapping[str, str], place: str) -> Columns:
    """Return which of a row's columns plays which role: as *given* (role to column), else told by its name.

    Two columns that differ in 1 and 2, a and b, first and second and the like hold the two sides of a pair; two that
    are named like the fields of Table 1 do, too. Raises MirblabError, with the columns found and the options to name
    them, where neither the two sides nor one statement with its pair can be told, or several columns would do.

    >>> found = recognised(["id", "domain_a", "domain_b", "statement_a", "statement_b"], {}, "")
    >>> found.first, found.second, found.first_field, found.pair
    ('statement_a', 'statement_b', 'domain_a', 'id')
    """
    found = {role: name for role, name in given.items() if name in names}
    told: dict[str, list[str]] = {}
    for name in names:
        if name not in found.values() and (role := _role(name)):
            told.setdefault(role, []).append(name)
    told = {role: columns for role, columns in told.items() if role not in found}
    if not told.get("first") and not found.get("first"):
        found |= {role: name for role, name in _as_fields(names).items() if role not in found}
    for role, columns in told.items():
        if len(columns) > 1 and role in ("first", "second", "text"):
            raise MirblabError(f"{place}: {' and '.join(columns)} could be the {role} statement; {_how(names)}")
        found.setdefault(role, next((name for name in columns if "distract" in name.lower()), columns[0]))
    if "first" in found and "second" in found:
        found.pop("text", None)
        if "pair" not in found and "id" in names:
            found["pair"] = "id"
    elif "text" not in found or "first" in found or "second" in found:
        raise MirblabError(f"{place}: cannot tell the two statements of a pair; {_how(names)}")
    return Columns(**{role: found[role] for role in ROLES if role in found})


def domains_in(text: str) -> tuple[str, str] | None:
    """Return the two fields that a name speaks of, in its order: a pair of Table 1, or what "vs" or a slash divides.

    >>> domains_in("module_theory-vector_spaces"), domains_in("knots vs braids"), domains_in("train")
    (('module theory', 'vector spaces'), ('knots', 'braids'), None)
    """
    plain = field_name(text)
    for one, other in DOMAINS:
        if one in plain and other in plain:
            return (one, other) if plain.index(one) < plain.index(other) else (other, one)
    parts = [field_name(part) for part in _BETWEEN.split(text.strip())]
    return (parts[0], parts[1]) if len(parts) == 2 and all(parts) else None


def field_name(text: str) -> str:
    """Return the name of a field as words in lower case.

    >>> field_name("Vector_Spaces")
    'vector spaces'
    """
    return " ".join(_words(text))


def _words(name: str) -> list[str]:
    """Return the words and numbers in a name, in lower case; a change of case or to digits begins a new one."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+", name)]


def _role(name: str) -> str:
    """Return the role that a column's name tells, or ""."""
    words = _words(name)
    plain, rest = "_".join(words), set(words)
    for roles, known in ((_PAIR, "pair"), (_DOMAINS, "domains"), (_KIND, "kind")):
        if plain in roles:
            return known
    for place, side in enumerate(_SIDES):
        if len(rest & side) == 1:
            rest = rest - side
            is_text = bool(rest & _TEXT) and rest <= _TEXT | _FIELD or not rest and plain in _BARE
            if is_text or (rest & _FIELD and rest <= _FIELD | _NAMES):
                return ("first", "second")[place] + ("" if is_text else "_field")
            return ""
    if rest and rest <= _TEXT:
        return "text"
    return "field" if rest & _FIELD and rest <= _FIELD | _NAMES else ""


def _as_fields(names: Sequence[str]) -> dict[str, str]:
    """Return the two columns that are named like the two fields of a pair of Table 1, if there are."""
    plain = {field_name(name): name for name in names}
    for one, other in DOMAINS:
        if one in plain and other in plain:
            return {"first": plain[one], "second": plain[other]}
    return {}


def _how(names: Sequence[str]) -> str:
    return (
        f"found the columns {', '.join(map(str, names)) or 'none'}; name them: --set first=COLUMN --set second=COLUMN "
        "(or text=COLUMN and pair=COLUMN where a row is one statement), and --set first_field=..., second_field=..., "
        "field=..., domains=..., kind=... as needed; --set files=PATTERN narrows the files"
    )
