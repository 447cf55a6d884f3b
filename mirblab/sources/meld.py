"""meld: pairs of statements that say the same in two fields' languages, as Ye et al. 2026 published, to a collection.

The column names of the published set (uw-math-ai/MELD-dataset) could not be established, so they are told by plausible
names (`meld_columns`), or set. A table holds a pair in each row or a statement in each row; the fields stand in columns
of their own, in one that names both, or in the file's path, as where each pair of fields is a configuration.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from mirblab.errors import MirblabError
from mirblab.sources import meld_fetch, shape
from mirblab.sources import release as releases
from mirblab.sources.meld_columns import DOMAINS, ROLES
from mirblab.sources.meld_pairs import Alone, Pair, read
from mirblab.sources.meld_rows import FORMS
from mirblab.sources.origin import together
from mirblab.sources.release import Names, Release
from mirblab.sources.shape import Parts, Row
from mirblab.terminal import say

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
    with meld_fetch.opened(origin, revision) as (release, licence), together(out, (NAME,)) as [folder]:
        chosen = _files(release, files)
        left_out = Counter[str]()
        pairs, alone = read(chosen, given, left_out)
        about = ABOUT | {"published": _published(pairs)}
        hashed = releases.revision(chosen.values())
        parts = _parts(pairs, alone, left_out)
        how = {"builder": NAME, "revision": hashed, "licence": licence, "options": options}
        shape.save(folder, parts, about, release.origin, **how)
    say(f"  {about['published']}")
    return [out / NAME]


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


def _parts(pairs: Iterable[Pair], alone: Iterable[Alone], left_out: Counter[str]) -> Parts:
    """Return documents, queries and judgements, pairs in the order of their fields in the paper, then as they come."""
    docs: list[Row] = []
    judged: list[tuple[str, str, int]] = []
    names, numbers = Names(), Counter[tuple[str, str]]()
    for pair in sorted(pairs, key=lambda pair: _place(pair.fields)):
        numbers[pair.fields] += 1
        stem = names.new(f"{_slug(pair.fields)}--{_word(pair.name) or f'{numbers[pair.fields]:02}'}")
        left_out["pairs that repeat an id (kept, with a number)"] += "#" in stem
        ids = [f"{stem}-{side}" for side in (1, 2)]
        sides = zip(ids, pair.texts, pair.fields, strict=True)
        docs += [{"_id": name, "title": "", "text": text, "tags": [field]} for name, text, field in sides]
        judged += [(ids[0], ids[1], 1), (ids[1], ids[0], 1)]
    queries = [{key: row[key] for key in ("_id", "text", "tags")} for row in docs]
    counts = Counter[str]()
    for one in sorted(alone, key=lambda one: _place(one.fields)):
        counts[one.field] += 1
        name = names.new(f"{_slug(one.fields)}--{_word(one.field)}-d{counts[one.field]:02}")
        docs.append({"_id": name, "title": "", "text": one.text, "tags": [one.field]})
    return Parts(docs, queries, {"test": judged}, left_out)


def _place(fields: tuple[str, str]) -> tuple[int, tuple[str, str]]:
    return (DOMAINS.index(fields) if fields in DOMAINS else len(DOMAINS), fields)


def _slug(fields: tuple[str, str]) -> str:
    return "--".join(map(_word, fields))


def _word(name: str) -> str:
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
