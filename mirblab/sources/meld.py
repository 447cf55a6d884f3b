"""meld: MELD's pairs of equivalent statements."""

from __future__ import annotations

import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mirblab.core.errors import MirblabError
from mirblab.core.terminal import say
from mirblab.data.near_duplicates import fold_text
from mirblab.sources.shared import builder, readers
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row, UniqueIds, replace_folders
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
# The roles of columns: first and second where a row is a pair, text where it is one statement.
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
_NO_DATA = re.compile(r"(?:.*/)?(?:dataset_infos?|state|config|croissant|metadata)\.json")


@dataclass(frozen=True)
class Pair:
    """Two equivalent statements: texts, fields, the pair's name ("" for none), and its place in the files."""

    texts: tuple[str, str]
    fields: Fields
    name: str
    place: str


@dataclass(frozen=True)
class Distractor:
    """A statement without a partner, its field, the fields of the pairs beside it, and its place in the files."""

    text: str
    field: str
    fields: Fields
    place: str


@dataclass
class _Statements:
    """The content of the files: pairs, statements without a partner, and halves of pairs by their common key."""

    pairs: list[Pair] = field(default_factory=list)
    alone: list[Distractor] = field(default_factory=list)
    halves: dict[tuple[str, ...], list[Distractor]] = field(default_factory=lambda: defaultdict(list))


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
    """Write the collection `meld` under *out* and return its folder.

    *origin* is a folder or an archive with files of `FORMS`; without one they come from the Hub at the commit
    *revision*. *files* is a regular expression for their paths. The other options name columns ("": recognised by
    name): of both statements and their fields (*first*, *second*, *first_field*, *second_field*) where a row is a pair,
    or of one statement (*text*, *field*, *pair*), of both fields (*domains*) and of distractors (*kind*). A statement
    is a query and a document, with the id of its pair and -1 or -2; one without a partner is a document.
    """
    named = dict(zip(ROLES, (first, second, first_field, second_field, text, field, pair, domains, kind), strict=True))
    given = {role: name for role, name in named.items() if name}
    options = given | ({"files": files} if files else {}) | ({"revision": revision} if revision else {})
    out = Path(out)
    with open_tables(origin, revision) as (release, licence), replace_folders(out, (NAME,)) as [folder]:
        chosen = _files(release, files)
        left_out = Counter[str]()
        pairs, alone = read_pairs(chosen, given, left_out)
        about = builder.read_about(NAME) | {"published": _published(pairs)}
        hashed = releases.hash_files(chosen.values())
        parts = _parts(pairs, alone, left_out)
        how: Row = {"builder": NAME, "revision": hashed, "licence": licence, "options": options}
        builder.write_collection(folder, parts, about, release.origin, **how)
    say(f"  {about['published']}")
    return [out / NAME]


def read_pairs(
    files: Mapping[str, Path], given: Mapping[str, str], left_out: Counter[str]
) -> tuple[list[Pair], list[Distractor]]:
    """Return the pairs, and the statements without a partner, each once; *given* maps `ROLES` to columns."""
    statements, known = _Statements(), dict[tuple[str, ...], dict[str, str]]()
    for name, path in files.items():
        for place, row in read_rows(path):
            names = tuple(map(str, row))
            if names not in known:
                known[names] = recognise_columns(names, given, place)
            unused = set(names) - set(known[names].values()) - {"list"}
            left_out.update(f"values of the column {column} (not used)" for column in unused)
            _add(statements, known[names], row, name, place)
    statements.pairs += [_joined(key, halves) for key, halves in statements.halves.items()]
    pairs, alone = _once(statements, left_out)
    if not pairs:
        columns = "; ".join(", ".join(names) for names in known) or "none"
        raise MirblabError(f"no pair in {', '.join(files)}, only statements without a partner; found the columns "
                           f"{columns}; name that of the pair: --set pair=COLUMN")  # fmt: skip
    return pairs, alone


def read_rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield place and columns of each row; objects in lists of a JSON object are rows with its other entries."""
    if path.suffix in (".parquet", ".csv", ".tsv"):
        yield from readers.read_rows(path, None, Counter())
    else:
        for place, record in readers.read_json_records(path):
            yield from ((place, row) for row in _spread(record))


def recognise_columns(names: Sequence[str], given: Mapping[str, str], place: str) -> dict[str, str]:
    """Return the column of each role ("" for none): as *given*, else by its name; MirblabError if ambiguous."""
    chosen = {role: name for role, name in given.items() if name in names}
    candidates: dict[str, list[str]] = {}
    for name in names:
        if name not in chosen.values() and (role := _role(name)) and role not in chosen:
            candidates.setdefault(role, []).append(name)
    if not candidates.get("first") and not chosen.get("first"):
        chosen = _as_fields(names) | chosen
    for role, columns in candidates.items():
        if len(columns) > 1 and role in ("first", "second", "text"):
            raise MirblabError(f"{place}: {' and '.join(columns)} could be the {role} statement; {_how(names)}")
        chosen.setdefault(role, next((name for name in columns if "distract" in name.lower()), columns[0]))
    if "first" in chosen and "second" in chosen:
        chosen.pop("text", None)
        if "id" in names:
            chosen.setdefault("pair", "id")
    elif "text" not in chosen or "first" in chosen or "second" in chosen:
        raise MirblabError(f"{place}: it is not clear which columns are the statements of a pair; {_how(names)}")
    return dict.fromkeys(ROLES, "") | chosen


@contextlib.contextmanager
def open_tables(origin: str | Path | None, revision: str) -> Iterator[tuple[Release, str]]:
    """Yield files and licence ("unknown" for a copy) of *origin* or, without it, of the Hub at *revision*."""
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

    def choose(names: Iterable[str], where: str) -> dict[str, list[str]]:
        listed = sorted(names)
        tables = [name for name in listed if name.endswith(FORMS)]
        if not tables:
            raise MirblabError(f"{where} has no {', '.join(FORMS)} file; found {', '.join(listed[:12]) or 'nothing'}")
        return {"tables": tables}

    fetched = fetch_dataset(HUB, revision, choose=choose, instead=instead)
    fetched.checked("mirblab build meld")
    files = {name: fetched.folder / name for name in fetched.parts["tables"]}
    yield Release(Origin(fetched.folder, ADDRESS, fetched.commit, ""), files), fetched.licence or "unknown"


def _role(name: str) -> str:
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
    """Return the two columns that are named like the fields of a pair of Table 1, if there are any."""
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


def _spread(record: Row) -> list[Row]:
    """Return the objects in the lists of a record, each with its other entries, or the record itself."""
    lists = {
        key: value for key, value in record.items() if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    beside = {key: value for key, value in record.items() if key not in lists}
    return [beside | {"list": key} | item for key, items in lists.items() for item in items] or [record]


def _add(statements: _Statements, columns: Mapping[str, str], row: Row, name: str, place: str) -> None:
    pieces = [piece.partition(".")[0] for piece in reversed(name.split("/"))]
    spoken = [_cell_text(row, columns["domains"]), _cell_text(row, columns["kind"]), *pieces]
    fields = next((named for text in spoken if text and (named := find_domains(text))), None)
    kind = row.get(columns["kind"]) if columns["kind"] else None
    is_flagged = "distract" in columns["kind"].lower() and str(kind).strip().lower() in ("true", "1", "yes")
    is_distractor = is_flagged or "distract" in f"{kind} {name}".lower()
    pair = _cell_text(row, columns["pair"]) and readers.read_id(row, columns["pair"], place).strip()
    if columns["first"] and not is_distractor:
        sides = (
            _field(row, columns["first_field"], columns["first"]),
            _field(row, columns["second_field"], columns["second"]),
        )
        texts = _text(row, columns["first"], place), _text(row, columns["second"], place)
        statements.pairs.append(_ordered(Pair(texts, sides if all(sides) else fields or ("", ""), pair, place)))
        return
    column, field_column = (
        (columns["first"], columns["first_field"]) if columns["first"] else (columns["text"], columns["field"])
    )
    field = _field(row, field_column, column)
    home = next((domains for domains in DOMAINS if field in domains), (field, field))
    statement = Distractor(_text(row, column, place), field, fields or home, place)
    if is_distractor or not pair:
        statements.alone.append(replace(statement, fields=_as_in_table_1(statement.fields)))
    else:
        statements.halves[(name, *(fields or ()), pair)].append(statement)


def find_domains(text: str) -> tuple[str, str] | None:
    """Return the two fields in a name, in its order: a pair of Table 1, or the parts around "vs" or a slash.

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
    fields = _as_in_table_1(pair.fields)
    return pair if fields == pair.fields else replace(pair, texts=(pair.texts[1], pair.texts[0]), fields=fields)


def _as_in_table_1(fields: Fields) -> Fields:
    turned = (fields[1], fields[0])
    return turned if turned in DOMAINS else fields


def _once(statements: _Statements, left_out: Counter[str]) -> tuple[list[Pair], list[Distractor]]:
    """Return pairs and lone statements without repeats, preferring those with fields; MirblabError without fields."""
    pairs: dict[frozenset[str], Pair] = {}
    for pair in sorted(statements.pairs, key=lambda pair: not all(pair.fields)):
        pairs.setdefault(frozenset(map(fold_text, pair.texts)), pair)
    alone: dict[str, Distractor] = {}
    paired = {text for key in pairs for text in key}
    for statement in sorted(statements.alone, key=lambda statement: not statement.field):
        if fold_text(statement.text) not in paired:
            alone.setdefault(fold_text(statement.text), statement)
    left_out["pairs that stand in the data several times (once here)"] += len(statements.pairs) - len(pairs)
    left_out["statements without a partner that stand elsewhere, too"] += len(statements.alone) - len(alone)
    places = [(pair.place, pair.fields) for pair in pairs.values()]
    places += [(each.place, each.fields if each.field else ("", "")) for each in alone.values()]
    for place, fields in places:
        if not all(fields):
            raise MirblabError(f"{place}: the fields are named in no column and not by the file; name the column: "
                               "--set first_field=... and second_field=..., field=..., or domains=...")  # fmt: skip
    return list(pairs.values()), list(alone.values())


def _field(row: Row, column: str, text_column: str) -> str:
    """Return the field in a column; without that column, the name of the text's column if it is a field."""
    plain = normalise_field(text_column)
    known = {name for pair in DOMAINS for name in pair}
    return normalise_field(_cell_text(row, column)) if column else plain if plain in known else ""


def normalise_field(text: str) -> str:
    """Return the name of a field as words in lower case."""
    return " ".join(_words(text))


def _words(name: str) -> list[str]:
    """Return the words and numbers in a name, in lower case; `vectorSpaces2` has three."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+", name)]


def _text(row: Row, column: str, place: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        raise MirblabError(f"{place}: '{column}' must be a statement, found {str(value)[:60]!r}")
    return value.strip()


def _cell_text(row: Row, column: str) -> str:
    value = row.get(column) if column else None
    if isinstance(value, (list, tuple)):
        return " / ".join(map(str, value))
    return "" if value is None or value != value else str(value).strip()


def _files(release: Release, pattern: str) -> dict[str, Path]:
    tables = {
        name: path for name, path in release.files.items() if name.endswith(FORMS) and not _NO_DATA.fullmatch(name)
    }
    chosen = {name: path for name, path in tables.items() if re.search(pattern, name)}
    if not chosen:
        among = f"matches '{pattern}'; found {', '.join(tables) or 'no table'}" if pattern else "is there"
        raise MirblabError(f"no {', '.join(FORMS)} file {among} in {release.origin.folder}; found {release.shown()}")
    return chosen


def _parts(pairs: Iterable[Pair], alone: Iterable[Distractor], left_out: Counter[str]) -> CollectionRows:
    """Return the collection, its pairs in the order of the fields in Table 1, then in their order of appearance."""
    docs: list[Row] = []
    judged: list[Judgement] = []
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
    for each in sorted(alone, key=lambda each: _place(each.fields)):
        counts[each.field] += 1
        name = names.new(f"{_slug(each.fields)}--{_name_part(each.field)}-d{counts[each.field]:02}")
        docs.append({"_id": name, "title": "", "text": each.text, "tags": [each.field]})
    return CollectionRows(docs, queries, {"test": judged}, left_out)


def _place(fields: tuple[str, str]) -> tuple[int, tuple[str, str]]:
    return (DOMAINS.index(fields) if fields in DOMAINS else len(DOMAINS), fields)


def _slug(fields: tuple[str, str]) -> str:
    return "--".join(map(_name_part, fields))


def _name_part(name: str) -> str:
    return re.sub(r"[^\w.]+", "-", name).strip("-.").lower()


def _published(pairs: list[Pair]) -> str:
    n_domains = len({pair.fields for pair in pairs})
    if (len(pairs), n_domains) == (PAIRS, len(DOMAINS)):
        return f"as published: {PAIRS} pairs of {len(DOMAINS)} pairs of fields"
    return (
        f"differs from the paper: {len(pairs):,} pairs of {n_domains} pairs of fields instead of {PAIRS} of "
        f"{len(DOMAINS)}"
    )
