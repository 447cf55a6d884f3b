"""mathlib_informal: informalised Mathlib declarations and judged queries as a collection, after Gao et al. 2024."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mirblab.core.errors import MirblabError
from mirblab.sources.shared import builder, readers
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row, UniqueIds, replace_folders
from mirblab.sources.shared.readers import read_field, read_text_list

ADDRESS = "https://huggingface.co/datasets/hcju/leansearch_bench"
LICENCE = "CC-BY-4.0 (hcju), Apache-2.0 (FrenzyMath)"
NAME = "mathlib-informalized"
INFORMAL, FORMAL = ("informal_statement", "informal_description"), ("formal_statement", "signature")
HIGHEST = 2  # grade of a judgement
FILES = {  # the pattern of each file's name, and what to call it in messages
    "declarations": (
        r"(?:data|declarations|name_formal_informal)\.jsonl(?:\.gz)?",
        "data.jsonl, declarations.jsonl or name_formal_informal.jsonl",
    ),
    "queries": (r"queries\.(?:jsonl|tsv)", "queries.jsonl or queries.tsv"),
    "judgements": (
        r"(?:qrels/test|judgements)\.(?:jsonl|tsv)",
        "judgements.jsonl, judgements.tsv or qrels/test.tsv",
    ),
}


def build(origin: str | Path | None, out: Path) -> list[Path]:
    """Write the collection `mathlib-informalized` under *out* and return its folder.

    A document is informal name and statement, as in MIRB. *origin* has the declarations as JSON lines
    (mathlib_informal_v4.* of FrenzyMath, or `name` and `informal_statement`), `queries` (`_id`, `text`) and
    `qrels/test` or `judgements` (`query-id`, `corpus-id`, `score`) as .jsonl or .tsv. Relevance is 2 for an exact
    match, 1 for a relevant one, else 0.
    """
    out = Path(out)
    with (
        releases.open_release(origin, "declarations, queries and judgements", ADDRESS) as release,
        replace_folders(out, (NAME,)) as [folder],
    ):
        files = {what: release.one(pattern, names) for what, (pattern, names) in FILES.items()}
        reading = _Reading(files)
        rows = CollectionRows(reading.corpus(), reading.queries(), reading.judged, reading.left_out)
        about, revision = builder.read_about(NAME), releases.hash_files(files.values())
        builder.write_collection(
            folder, rows, about, release.origin, builder="mathlib-informal", revision=revision, licence=LICENCE
        )
    return [out / NAME]


class _Reading:
    """The files must be read in this order: declarations, queries, judgements."""

    def __init__(self, files: dict[str, Path]) -> None:
        self.files = files
        self.judged: dict[str, list[Judgement]] = {}
        self.left_out = Counter[str]()
        self._docs: set[str] = set()

    def corpus(self) -> Iterator[Row]:
        names = UniqueIds()
        for place, record in readers.read_json_records(self.files["declarations"]):
            name, informal = declaration_name(record, place), first_text(record, INFORMAL, place)
            if not any(key in record for key in INFORMAL):
                raise MirblabError(f"{place}: none of {', '.join(INFORMAL)}; found {', '.join(record)}")
            if not informal:
                self.left_out["declarations without an informal statement"] += 1
                continue
            doc = names.new(name)
            self.left_out["declarations that repeat a name (kept, with a number)"] += doc != name
            self._docs.add(doc)
            title = first_text(record, ("informal_name",), place)
            yield {"_id": doc, "title": "", "text": f"{title.rstrip('.:')}: {informal}" if title else informal}

    def queries(self) -> Iterator[Row]:
        """Yield the queries that have a judgement, after the judgements are complete."""
        asked: dict[str, str] = {}
        for place, row in self._rows("queries", ["_id", "text"]):
            name, text = _word(row, "_id", place), read_field(row, "text", str, place)
            if name in asked:
                raise MirblabError(f"{place}: '{name}' is the _id of an earlier query, too")
            asked[name] = text.strip()
        self.judged["test"] = self._judgements(asked)
        kept = {query for query, *_ in self.judged["test"]}
        self.left_out["queries without a judgement"] = len(asked) - len(kept)
        yield from ({"_id": name, "text": text} for name, text in asked.items() if name in kept)

    def _judgements(self, asked: Mapping[str, str]) -> list[Judgement]:
        grades: dict[tuple[str, str], int] = {}
        for place, row in self._rows("judgements", ["query-id", "corpus-id", "score"]):
            query, doc = _word(row, "query-id", place), _word(row, "corpus-id", place)
            grade = readers.read_grade(str(row.get("score")), HIGHEST)
            if query not in asked:
                raise MirblabError(f"{place}: judges the query '{query}', which is not in {self.files['queries'].name}")
            if grade is None:
                raise MirblabError(f"{place}: 'score' must be 0, 1 or 2, found {row.get('score')!r}")
            if grades.setdefault((query, doc), grade) != grade:
                raise MirblabError(f"{place}: judges '{doc}' for '{query}' a second time, otherwise")
        known = [(query, doc, grade) for (query, doc), grade in grades.items() if doc in self._docs]
        self.left_out["judgements of declarations that are not there"] = len(grades) - len(known)
        if not known:
            raise MirblabError(
                f"{self.files['judgements']}: none of its {len(grades):,} judgements names a declaration that is "
                "there; give files of one release"
            )
        return known

    def _rows(self, what: str, columns: list[str]) -> Iterator[tuple[str, Row]]:
        path, unused = self.files[what], Counter[str]()
        yield from readers.read_rows(path, columns, unused)
        self.left_out.update({f"values of other columns of {what}: {key}": count for key, count in unused.items()})


def declaration_name(record: Mapping[str, Any], place: str) -> str:
    """Return the full name of a declaration, given as a text or as a list of its parts."""
    if isinstance(record.get("name"), list):
        return ".".join(read_text_list(record, "name", place))
    return str(read_field(record, "name", str, place))


def first_text(record: Mapping[str, Any], keys: Sequence[str], place: str) -> str:
    """Return the first text that the record has under one of the *keys*, or ""."""
    for key in keys:
        if record.get(key) is not None:
            return str(read_field(record, key, str, place)).strip()
    return ""


def _word(row: Row, key: str, place: str) -> str:
    return "_".join(readers.read_id(row, key, place).split())
