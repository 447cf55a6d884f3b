"""meld: MELD's pairs of equivalent statements."""

from __future__ import annotations

import contextlib
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mirblab.core.errors import MirblabError
from mirblab.core.terminal import say
from mirblab.sources.shared import builder, readers
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Row, UniqueIds, fold_text, replace_folders
from mirblab.sources.shared.release import Origin, Release, fetch_dataset

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
FORMS = (".parquet", ".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv", ".tsv")
Fields = tuple[str, str]
HUB = "uw-math-ai/MELD-dataset"
ADDRESS = f"https://huggingface.co/datasets/{HUB}"
NAME = "meld"
PAIRS = 270  # in the published set
ABOUT: Row = {
    "title": "Statement to the same fact in another field's language",
    "task": "Equivalence",
    "follows": "meld",
    "instruction": "Given a mathematical query, retrieve relevant theorems.",
    "relevance_levels": [0, 1],
    "candidates": "not-self",
}
_NO_DATA = re.compile(r"(?:.*/)?(?:dataset_infos?|state|config|croissant|metadata)\.json")


@dataclass(frozen=True)
class ColumnRoles:
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


@dataclass(frozen=True)
class Pair:
    """Two statements that say the same: their texts and fields, the pair's name ("" for none), and where it stands."""

    texts: tuple[str, str]
    fields: Fields
    name: str
    place: str


@dataclass(frozen=True)
class Distractor:
    """A statement without a partner, its field, the fields of the pairs among which it stands, and where."""

    text: str
    field: str
    fields: Fields
    place: str


def build(
    origin: str | Path | None,
    out: Path,
    *,
    revision: str = "",
    files: str = "",
    first: str = "",
    second: str = "",
    first_field: str = "",
    second_field: str = "",
    text: str = "",
    field: str = "",
    pair: str = "",
    domains: str = "",
    kind: str = "",
) -> list[Path]:
    """Write the collection `meld` under *out*, print what was left out, and return its folder.

    *origin* is a folder or an archive with .parquet, .jsonl, .json, .csv or .tsv files; without one the set comes from
    the Hub at the commit *revision*, of 40 hexadecimal digits. *files* is a regular expression for the paths that are
    read ("": all). The others name the columns of both statements and their fields (*first*, *second*, *first_field*,
    *second_field*) where a row is a pair, or of one statement (*text*, *field*, *pair*), of what names both fields
    (*domains*) and of what marks distractors (*kind*); "": told by the columns' names.

    Each statement of a pair is a query and a document under one id, that of its pair and -1 or -2, with its field as
    tag; a statement without a partner is a document. A pair that stands in several files counts once. Raises
    MirblabError, with file and line or row, for columns that are not understood and for broken pairs.
    """
    named = dict(zip(ROLES, (first, second, first_field, second_field, text, field, pair, domains, kind), strict=True))
    given = {role: name for role, name in named.items() if name}
    options = given | ({"files": files} if files else {}) | ({"revision": revision} if revision else {})
    out = Path(out)
    with open_tables(origin, revision) as (release, licence), replace_folders(out, (NAME,)) as [folder]:
        chosen = _files(release, files)
        left_out = Counter[str]()
        pairs, alone = read_pairs(chosen, given, left_out)
        about = ABOUT | {"published": _published(pairs)}
        hashed = releases.hash_files(chosen.values())
        parts = _parts(pairs, alone, left_out)
        how = {"builder": NAME, "revision": hashed, "licence": licence, "options": options}
        builder.write_collection(folder, parts, about, release.origin, **how)
    say(f"  {about['published']}")
    return [out / NAME]


def read_pairs(
    files: Mapping[str, Path], given: Mapping[str, str], left_out: Counter[str]
) -> tuple[list[Pair], list[Distractor]]:
    """Return the pairs, and the statements without a partner, in *files* (by path inside the release), each once.

    *given* maps roles to columns (`meld.ROLES`). What stands in several files or forms is counted in
    *left_out*, and so are the values of columns that play no role. Raises MirblabError, with file and line or row, for
    an empty statement, a pair that has not two, two equal statements, and fields that are not named anywhere.
    """
    found, known = _Found(), dict[tuple[str, ...], ColumnRoles]()
    for name, path in files.items():
        for place, row in read_rows(path):
            names = tuple(map(str, row))
            if names not in known:
                known[names] = recognise_columns(names, given, place)
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


def read_rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield the place, for messages, and all columns of each row.

    A JSON object that holds lists of objects (`{"fields": ..., "pairs": [{...}], "distractors": [{...}]}`) stands for
    these objects: each has the other entries as columns, too, and the name of its list as `list`. Raises MirblabError,
    with file and line or row, for what cannot be read.
    """
    if path.suffix == ".parquet":
        yield from readers.read_rows(path, _columns(path), Counter())
    elif path.suffix in (".csv", ".tsv"):
        yield from _separated(path)
    else:
        for place, record in readers.read_json_records(path):
            yield from ((place, row) for row in _spread(record))


def recognise_columns(names: Sequence[str], given: Mapping[str, str], place: str) -> ColumnRoles:
    """Return which of a row's columns plays which role: as *given* (role to column), else by the column's name.

    Two columns that differ in 1 and 2, a and b, first and second and the like hold the two sides of a pair; two that
    are named like the fields of Table 1 do, too. Raises MirblabError, with the columns found and the options to name
    them, where neither the two sides nor one statement with its pair can be told, or several columns would do.

    >>> found = recognise_columns(["id", "domain_a", "domain_b", "statement_a", "statement_b"], {}, "")
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
    return ColumnRoles(**{role: found[role] for role in ROLES if role in found})


@contextlib.contextmanager
def open_tables(origin: str | Path | None, revision: str) -> Iterator[tuple[Release, str]]:
    """Yield the files, and their licence ("unknown" for a local copy), of *origin*, or of the Hub at *revision*.

    Raises MirblabError for neither or both of the two, and for a revision that is no commit.
    """
    if origin:
        if revision:
            raise MirblabError(f"a revision is for the Hub; --from {origin} is read as it is, so leave one of them out")
        with releases.open_release(origin, "the tables of MELD", ADDRESS) as release:
            yield release, "unknown"
        return
    if not re.fullmatch("[0-9a-f]{40}", revision):
        raise MirblabError(
            f"give a copy of {ADDRESS} with --from FOLDER, or the commit to fetch, of 40 hexadecimal digits: "
            f"mirblab build meld --set revision=COMMIT; found '{revision}'"
        )
    instead = "copy its files here and run: mirblab build meld --from FOLDER"
    found = fetch_dataset(HUB, revision, choose=_tables, instead=instead)
    found.checked("mirblab build meld")
    files = {name: found.folder / name for name in sorted(found.parts["tables"])}
    yield Release(Origin(found.folder, ADDRESS, found.commit, ""), files), found.licence or "unknown"


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
    plain = {normalise_field(name): name for name in names}
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


def _columns(path: Path) -> list[str]:
    import pyarrow as arrow
    from pyarrow.parquet import read_schema

    try:
        return list(read_schema(path).names)
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise MirblabError(f"{path} is no sound parquet file: {error}; fetch or copy it again") from error


def _separated(path: Path) -> Iterator[tuple[str, Row]]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True)
        try:
            for row in reader:
                place = f"{path}, line {reader.line_num}"
                if None in row or None in row.values():
                    raise MirblabError(
                        f"{place}: the header has {len(reader.fieldnames or [])} columns, the row has not"
                    )
                yield place, row
        except (csv.Error, UnicodeDecodeError) as error:
            raise MirblabError(f"{path}, line {reader.line_num}: {error}") from error


def _spread(record: Row) -> list[Row]:
    """Return the objects in the lists of a record, each with the other entries of the record, or the record itself."""
    lists = {
        key: value for key, value in record.items() if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    beside = {key: value for key, value in record.items() if key not in lists}
    return [beside | {"list": key} | item for key, items in lists.items() for item in items] if lists else [record]


def _add(found: _Found, columns: ColumnRoles, row: Row, name: str, place: str) -> None:
    """Add what a row holds: a pair, half of one, or a statement without a partner."""
    pieces = [piece.partition(".")[0] for piece in reversed(name.split("/"))]
    spoken = [_cell_text(row, columns.domains), _cell_text(row, columns.kind), *pieces]
    fields = next((told for text in spoken if text and (told := find_domains(text))), None)
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
    one = Distractor(_text(row, at, place), own_field, fields or _home(own_field), place)
    pair = _pair(row, columns.pair, place)
    if distractor or not pair:
        found.alone.append(replace(one, fields=_as_in_the_paper(one.fields)))
    else:
        found.halves.setdefault((name, *(fields or ()), pair), []).append(one)


def find_domains(text: str) -> tuple[str, str] | None:
    """Return the two fields that a name speaks of, in its order: a pair of Table 1, or what "vs" or a slash divides.

    >>> find_domains("module_theory-vector_spaces"), find_domains("knots vs braids"), find_domains("train")
    (('module theory', 'vector spaces'), ('knots', 'braids'), None)
    """
    plain = normalise_field(text)
    for one, other in DOMAINS:
        if one in plain and other in plain:
            return (one, other) if plain.index(one) < plain.index(other) else (other, one)
    parts = [normalise_field(part) for part in _BETWEEN.split(text.strip())]
    return (parts[0], parts[1]) if len(parts) == 2 and all(parts) else None


def _joined(key: tuple[str, ...], halves: list[Distractor]) -> Pair:
    if len(halves) != 2:
        raise MirblabError(f"{halves[0].place}: the pair '{key[-1]}' has {len(halves)} statements instead of two; "
                           "name the column of the pair with --set pair=COLUMN")  # fmt: skip
    one, other = halves
    fields = (one.field, other.field) if one.field and other.field else one.fields
    return _ordered(Pair((one.text, other.text), fields, key[-1], one.place))


def _ordered(pair: Pair) -> Pair:
    """Return the pair with its sides in the order of Table 1; MirblabError for two equal statements."""
    if fold_text(pair.texts[0]) == fold_text(pair.texts[1]):
        raise MirblabError(f"{pair.place}: both statements of the pair are the same: {pair.texts[0][:60]!r}")
    fields = _as_in_the_paper(pair.fields)
    return pair if fields == pair.fields else replace(pair, texts=(pair.texts[1], pair.texts[0]), fields=fields)


def _once(found: _Found, left_out: Counter[str]) -> tuple[list[Pair], list[Distractor]]:
    """Return pairs and lone statements without repeats, of several that with its fields; each needs fields."""
    pairs: dict[frozenset[str], Pair] = {}
    for pair in sorted(found.pairs, key=lambda pair: not all(pair.fields)):
        pairs.setdefault(frozenset(map(fold_text, pair.texts)), pair)
    alone: dict[str, Distractor] = {}
    told = {text for key in pairs for text in key}
    for one in sorted(found.alone, key=lambda one: not one.field):
        if fold_text(one.text) not in told:
            alone.setdefault(fold_text(one.text), one)
    left_out["pairs that stand in the data several times (once here)"] += len(found.pairs) - len(pairs)
    left_out["statements without a partner that stand elsewhere, too"] += len(found.alone) - len(alone)
    for one in [*pairs.values(), *alone.values()]:
        if not all(one.fields) or (isinstance(one, Distractor) and not one.field):
            raise MirblabError(f"{one.place}: the fields are named in no column and not by the file; name the column: "
                               "--set first_field=... and second_field=..., field=..., or domains=...")  # fmt: skip
    return list(pairs.values()), list(alone.values())


@dataclass
class _Found:
    pairs: list[Pair] = field(default_factory=list)
    alone: list[Distractor] = field(default_factory=list)
    halves: dict[tuple[str, ...], list[Distractor]] = field(default_factory=dict)


def _is_distractor(row: Row, columns: ColumnRoles, name: str) -> bool:
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
    plain = normalise_field(text_column)
    known = {name for pair in DOMAINS for name in pair}
    return normalise_field(_cell_text(row, column)) if column else plain if plain in known else ""


def normalise_field(text: str) -> str:
    """Return the name of a field as words in lower case.

    >>> normalise_field("Vector_Spaces")
    'vector spaces'
    """
    return " ".join(_words(text))


def _words(name: str) -> list[str]:
    """Return the words and numbers in a name, in lower case; a change of case or to digits begins a new one."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+", name)]


def _text(row: Row, column: str, place: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        raise MirblabError(f"{place}: '{column}' must be a statement, found {str(value)[:60]!r}")
    return value.strip()


def _pair(row: Row, column: str, place: str) -> str:
    """Return the id of a row's pair; "" for none."""
    return readers.read_id(row, column, place).strip() if _cell_text(row, column) else ""


def _cell_text(row: Row, column: str) -> str:
    """Return what a column says as text; "" for nothing."""
    value = row.get(column) if column else None
    if isinstance(value, (list, tuple)):
        return " / ".join(map(str, value))
    return "" if value is None or value != value else str(value).strip()


def _tables(names: Iterable[str], where: str) -> dict[str, list[str]]:
    known = sorted(names)
    tables = [name for name in known if name.endswith(FORMS)]
    if not tables:
        raise MirblabError(f"{where} has no {', '.join(FORMS)} file; found {', '.join(known[:12]) or 'nothing'}")
    return {"tables": tables}


def _files(release: Release, pattern: str) -> dict[str, Path]:
    """Return the tables of a release by their paths inside it."""
    tables = {
        name: path for name, path in release.files.items()
        if name.endswith(FORMS) and not _NO_DATA.fullmatch(name) and not any(p.startswith(".") for p in name.split("/"))
    }  # fmt: skip
    chosen = {name: path for name, path in tables.items() if re.search(pattern, name)}
    if not chosen:
        among = f"matches '{pattern}'; found {', '.join(tables) or 'no table'}" if pattern else "is there"
        raise MirblabError(f"no {', '.join(FORMS)} file {among} in {release.origin.folder}; found {release.shown()}")
    return chosen


def _parts(pairs: Iterable[Pair], alone: Iterable[Distractor], left_out: Counter[str]) -> CollectionRows:
    """Return documents, queries and judgements, pairs in the order of their fields in the paper, then as they come."""
    docs: list[Row] = []
    judged: list[tuple[str, str, int]] = []
    names, numbers = UniqueIds(), Counter[tuple[str, str]]()
    for pair in sorted(pairs, key=lambda pair: _place(pair.fields)):
        numbers[pair.fields] += 1
        stem = names.new(f"{_slug(pair.fields)}--{_name_part(pair.name) or f'{numbers[pair.fields]:02}'}")
        left_out["pairs that repeat an id (kept, with a number)"] += "#" in stem
        ids = [f"{stem}-{side}" for side in (1, 2)]
        sides = zip(ids, pair.texts, pair.fields, strict=True)
        docs += [{"_id": name, "title": "", "text": text, "tags": [field]} for name, text, field in sides]
        judged += [(ids[0], ids[1], 1), (ids[1], ids[0], 1)]
    queries = [{key: row[key] for key in ("_id", "text", "tags")} for row in docs]
    counts = Counter[str]()
    for one in sorted(alone, key=lambda one: _place(one.fields)):
        counts[one.field] += 1
        name = names.new(f"{_slug(one.fields)}--{_name_part(one.field)}-d{counts[one.field]:02}")
        docs.append({"_id": name, "title": "", "text": one.text, "tags": [one.field]})
    return CollectionRows(docs, queries, {"test": judged}, left_out)


def _place(fields: tuple[str, str]) -> tuple[int, tuple[str, str]]:
    return (DOMAINS.index(fields) if fields in DOMAINS else len(DOMAINS), fields)


def _slug(fields: tuple[str, str]) -> str:
    return "--".join(map(_name_part, fields))


def _name_part(name: str) -> str:
    return re.sub(r"[^\w.]+", "-", name).strip("-.").lower()


def _published(pairs: list[Pair]) -> str:
    """Return whether there are as many pairs, of as many pairs of fields, as the paper says."""
    n_domains = len({pair.fields for pair in pairs})
    if (len(pairs), n_domains) == (PAIRS, len(DOMAINS)):
        return f"as published: {PAIRS} pairs of {len(DOMAINS)} pairs of fields"
    return (
        f"differs from the paper: {len(pairs):,} pairs of {n_domains} pairs of fields instead of {PAIRS} of "
        f"{len(DOMAINS)}"
    )
