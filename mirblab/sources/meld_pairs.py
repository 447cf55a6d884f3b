"""meld_pairs: rows of published tables to pairs of statements, and statements that have no partner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mirblab.errors import MirblabError
from mirblab.ids import of
from mirblab.sources.meld_columns import DOMAINS, Columns, domains_in, field_name, recognised
from mirblab.sources.meld_rows import Row, records
from mirblab.sources.shape import folded

Fields = tuple[str, str]


@dataclass(frozen=True)
class Pair:
    """Two statements that say the same: their texts and fields, the pair's name ("" for none), and where it stands."""

    texts: tuple[str, str]
    fields: Fields
    name: str
    place: str


@dataclass(frozen=True)
class Alone:
    """A statement without a partner, its field, the fields of the pairs among which it stands, and where."""

    text: str
    field: str
    fields: Fields
    place: str


@dataclass
class _Found:
    pairs: list[Pair] = field(default_factory=list)
    alone: list[Alone] = field(default_factory=list)
    halves: dict[tuple[str, ...], list[Alone]] = field(default_factory=dict)


def read(files: Mapping[str, Path], given: Mapping[str, str], left_out: Counter[str]) -> tuple[list[Pair], list[Alone]]:
    """Return the pairs, and the statements without a partner, in *files* (by path inside the release), each once.

    *given* maps roles to columns (`meld_columns.ROLES`). What stands in several files or forms is counted in
    *left_out*, and so are the values of columns that play no role. Raises MirblabError, with file and line or row, for
    an empty statement, a pair that has not two, two equal statements, and fields that are not named anywhere.
    """
    found, known = _Found(), dict[tuple[str, ...], Columns]()
    for name, path in files.items():
        for place, row in records(path):
            names = tuple(map(str, row))
            if names not in known:
                known[names] = recognised(names, given, place)
            unused = set(names) - set(vars(known[names]).values()) - {"list"}
            left_out.update(f"values of the column {column} (not used)" for column in unused)
            _add(found, known[names], row, name, place)
    found.pairs += [_joined(key, halves) for key, halves in found.halves.items()]
    pairs, alone = _once(found, left_out)
    if not pairs:
        columns = "; ".join(", ".join(names) for names in known) or "none"
        raise MirblabError(f"no pair in {', '.join(files)}, only statements without a partner; found the columns "
                           f"{columns}; name that of the pair: --set pair=COLUMN")  # fmt: skip
    return pairs, alone


def _add(found: _Found, columns: Columns, row: Row, name: str, place: str) -> None:
    """Add what a row holds: a pair, half of one, or a statement without a partner."""
    pieces = [piece.partition(".")[0] for piece in reversed(name.split("/"))]
    spoken = [_word(row, columns.domains), _word(row, columns.kind), *pieces]
    fields = next((told for text in spoken if text and (told := domains_in(text))), None)
    distractor = _is_distractor(row, columns, name)
    if columns.first and not distractor:
        own = [_field(row, column, text) for column, text in
               ((columns.first_field, columns.first), (columns.second_field, columns.second))]  # fmt: skip
        texts = (_text(row, columns.first, place), _text(row, columns.second, place))
        fields = (own[0], own[1]) if all(own) else fields or ("", "")
        found.pairs.append(_ordered(Pair(texts, fields, _pair(row, columns.pair, place), place)))
        return
    at, of = (columns.first, columns.first_field) if columns.first else (columns.text, columns.field)
    own_field = _field(row, of, at)
    one = Alone(_text(row, at, place), own_field, fields or _home(own_field), place)
    pair = _pair(row, columns.pair, place)
    if distractor or not pair:
        found.alone.append(replace(one, fields=_as_in_the_paper(one.fields)))
    else:
        found.halves.setdefault((name, *(fields or ()), pair), []).append(one)


def _joined(key: tuple[str, ...], halves: list[Alone]) -> Pair:
    if len(halves) != 2:
        raise MirblabError(f"{halves[0].place}: the pair '{key[-1]}' has {len(halves)} statements instead of two; "
                           "name the column of the pair with --set pair=COLUMN")  # fmt: skip
    one, other = halves
    fields = (one.field, other.field) if one.field and other.field else one.fields
    return _ordered(Pair((one.text, other.text), fields, key[-1], one.place))


def _ordered(pair: Pair) -> Pair:
    """Return the pair with its sides in the order of Table 1; MirblabError for two equal statements."""
    if folded(pair.texts[0]) == folded(pair.texts[1]):
        raise MirblabError(f"{pair.place}: both statements of the pair are the same: {pair.texts[0][:60]!r}")
    fields = _as_in_the_paper(pair.fields)
    return pair if fields == pair.fields else replace(pair, texts=(pair.texts[1], pair.texts[0]), fields=fields)


def _once(found: _Found, left_out: Counter[str]) -> tuple[list[Pair], list[Alone]]:
    """Return pairs and lone statements without repeats, of several that with its fields; each needs fields."""
    pairs: dict[frozenset[str], Pair] = {}
    for pair in sorted(found.pairs, key=lambda pair: not all(pair.fields)):
        pairs.setdefault(frozenset(map(folded, pair.texts)), pair)
    alone: dict[str, Alone] = {}
    told = {text for key in pairs for text in key}
    for one in sorted(found.alone, key=lambda one: not one.field):
        if folded(one.text) not in told:
            alone.setdefault(folded(one.text), one)
    left_out["pairs that stand in the data several times (once here)"] += len(found.pairs) - len(pairs)
    left_out["statements without a partner that stand elsewhere, too"] += len(found.alone) - len(alone)
    for one in [*pairs.values(), *alone.values()]:
        if not all(one.fields) or (isinstance(one, Alone) and not one.field):
            raise MirblabError(f"{one.place}: the fields are named in no column and not by the file; name the column: "
                               "--set first_field=... and second_field=..., field=..., or domains=...")  # fmt: skip
    return list(pairs.values()), list(alone.values())


def _is_distractor(row: Row, columns: Columns, name: str) -> bool:
    value = row.get(columns.kind) if columns.kind else None
    if "distract" in columns.kind.lower() and str(value).strip().lower() in ("true", "1", "yes"):
        return True
    return "distract" in f"{value} {name}".lower()


def _as_in_the_paper(fields: Fields) -> Fields:
    turned = (fields[1], fields[0])
    return turned if turned in DOMAINS else fields


def _home(own: str) -> Fields:
    """Return the pair of Table 1 that has the field, or the field by itself."""
    return next((pair for pair in DOMAINS if own in pair), (own, own))


def _field(row: Row, column: str, text_column: str) -> str:
    """Return the field in a column; without one, a text's column may be named like its field."""
    plain = field_name(text_column)
    known = {name for pair in DOMAINS for name in pair}
    return field_name(_word(row, column)) if column else plain if plain in known else ""


def _text(row: Row, column: str, place: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        raise MirblabError(f"{place}: '{column}' must be a statement, found {str(value)[:60]!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise MirblabError(f"{place}: '{column}' holds half a character (a lone surrogate); repair the text") from error
    return value.strip()


def _pair(row: Row, column: str, place: str) -> str:
    """Return the id of a row's pair; "" for none."""
    if not _word(row, column):
        return ""
    try:
        return of(row, column).strip()
    except MirblabError as error:
        raise MirblabError(f"{place}: {error}") from error


def _word(row: Row, column: str) -> str:
    """Return what a column says as text; "" for nothing."""
    value = row.get(column) if column else None
    if isinstance(value, (list, tuple)):
        return " / ".join(map(str, value))
    return "" if value is None or value != value else str(value).strip()
