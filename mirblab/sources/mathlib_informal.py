"""mathlib_informal: informalised Mathlib declarations and judged queries to a collection, after Gao et al. 2024.

Declarations are JSON lines as FrenzyMath publishes them (mathlib_informal_v4.*: `name` as a list of parts,
`informal_name`, `informal_description`, `signature`), or with the fields `name`, `informal_statement` and
`formal_statement`. Queries and judgements are `queries` (`_id`, `text`) and `qrels/test` or `judgements` (`query-id`,
`corpus-id`, `score`) in .jsonl or .tsv. The layout of the raw lists of hcju/leansearch_bench (`benchmark_data.txt`)
could not be established, so they are not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mirblab.core.errors import MirblabError
from mirblab.sources.shared import builder, readers
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Row, UniqueIds, replace_folders
from mirblab.sources.shared.readers import read_field, read_text_list
from mirblab.sources.shared.release import Release

ADDRESS = "https://huggingface.co/datasets/hcju/leansearch_bench"
LICENCE = "CC-BY-4.0 (hcju), Apache-2.0 (FrenzyMath)"
NAME = "mathlib-informalized"
INFORMAL, FORMAL = ("informal_statement", "informal_description"), ("formal_statement", "signature")
GRADES = {"0": 0, "1": 1, "2": 2}
ABOUT: Row = {
    "title": "Query to the informalised Lean theorem, graded",
    "follows": "mirb-mathlib",
    "task": "Semantic Statement Retrieval",
    "instruction": "Given a mathematical query, retrieve relevant theorems.",
    "relevance_levels": [0, 1, 2],
}


def build(origin: str | Path | None, out: Path, *, formal: bool = False) -> list[Path]:
    """Write the collection `mathlib-informalized` under *out*, print what was left out, and return its folder.

    The text of a document is informal name and informal statement, as MIRB has it; with *formal* the formal
    statement follows on its own line. Relevance is 2 for an exact match, 1 for a relevant one, 0 for a judged one
    that is neither. Judgements of declarations that are not there (names change between versions of Mathlib) are
    counted. *origin* is a folder or an archive with the three files. Raises MirblabError, with file and line, and
    FileNotFoundError.
    """
    out = Path(out)
    with (
        releases.open_release(origin, "declarations, queries and judgements", ADDRESS) as release,
        replace_folders(out, (NAME,)) as [folder],
    ):
        files = _files(release)
        reading = _Reading(files, formal)
        parts = CollectionRows(reading.corpus(), reading.queries(), reading.judged, reading.left_out)
        revision, about = releases.hash_files(files.values()), ABOUT | {"formal": formal}
        made = {"builder": "mathlib-informal", "revision": revision, "licence": LICENCE}
        builder.write_collection(folder, parts, about, release.origin, **made, options={"formal": formal})
    return [out / NAME]


def _files(release: Release) -> dict[str, Path]:
    return {
        "declarations": release.one(
            r"(?:data|declarations|name_formal_informal)\.jsonl(?:\.gz)?",
            "data.jsonl, declarations.jsonl or name_formal_informal.jsonl",
        ),
        "queries": release.one(r"queries\.(?:jsonl|tsv)", "queries.jsonl or queries.tsv"),
        "judgements": release.one(
            r"(?:qrels/test|judgements)\.(?:jsonl|tsv)", "judgements.jsonl, judgements.tsv or qrels/test.tsv"
        ),
    }


class _Reading:
    """Declarations, then queries, then judgements, each file once."""

    def __init__(self, files: dict[str, Path], formal: bool) -> None:
        self.files, self.formal = files, formal
        self.judged: dict[str, list[tuple[str, str, int]]] = {}
        self.left_out = Counter[str]()
        self._docs: set[str] = set()

    def corpus(self) -> Iterator[Row]:
        """Yield the declarations that have an informal statement."""
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
            yield {"_id": doc, "title": "", "text": self._text(record, informal, place)}

    def _text(self, record: Row, informal: str, place: str) -> str:
        title = first_text(record, ("informal_name",), place)
        shown = f"{title.rstrip('.:')}: {informal}" if title else informal
        formal = first_text(record, FORMAL, place) if self.formal else ""
        return f"{shown}\n{formal}".strip()

    def queries(self) -> Iterator[Row]:
        """Yield the queries that have a judgement; the judgements are filled before."""
        asked: dict[str, str] = {}
        for place, row in self._rows("queries", ["_id", "text"]):
            name, text = _word(row, "_id", place), read_field(row, "text", str, place)
            if name in asked:
                raise MirblabError(f"{place}: '{name}' is the _id of an earlier query, too")
            asked[name] = text.strip()
        pairs = self._judgements(asked)
        self.judged["test"] = [(*pair, grade) for pair, grade in pairs.items()]
        kept = {query for query, _ in pairs}
        self.left_out["queries without a judgement"] = len(asked) - len(kept)
        yield from ({"_id": name, "text": text} for name, text in asked.items() if name in kept)

    def _judgements(self, asked: Mapping[str, str]) -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for place, row in self._rows("judgements", ["query-id", "corpus-id", "score"]):
            query, doc = _word(row, "query-id", place), _word(row, "corpus-id", place)
            grade = GRADES.get(str(row.get("score")).strip())
            if query not in asked:
                raise MirblabError(f"{place}: judges the query '{query}', which is not in {self.files['queries'].name}")
            if grade is None:
                raise MirblabError(f"{place}: 'score' must be 0, 1 or 2, found {row.get('score')!r}")
            if found.setdefault((query, doc), grade) != grade:
                raise MirblabError(f"{place}: judges '{doc}' for '{query}' a second time, otherwise")
        known = {pair: grade for pair, grade in found.items() if pair[1] in self._docs}
        self.left_out["judgements of declarations that are not there"] = len(found) - len(known)
        if not known:
            path = self.files["judgements"]
            raise MirblabError(
                f"{path}: none of its {len(found):,} judgements names a declaration that is there; "
                "give files of one release"
            )
        return known

    def _rows(self, what: str, columns: list[str]) -> Iterator[tuple[str, Row]]:
        """Yield place and columns of each row; values of other columns are counted by their name."""
        path, unused = self.files[what], Counter[str]()
        yield from readers.read_rows(path, columns, unused)
        self.left_out.update({f"values of other columns of {what}: {key}": count for key, count in unused.items()})


def declaration_name(record: Mapping[str, Any], place: str) -> str:
    """Return the full name of a declaration, given as a text or as a list of its parts.

    >>> declaration_name({"name": ["Nat", "add_comm"]}, "data.jsonl, line 1")
    'Nat.add_comm'
    """
    if isinstance(record.get("name"), list):
        return ".".join(read_text_list(record, "name", place))
    return str(read_field(record, "name", str, place))


def first_text(record: Mapping[str, Any], keys: Sequence[str], place: str) -> str:
    """Return the first text that the record has under one of the *keys*, or "" when it has none."""
    for key in keys:
        if record.get(key) is not None:
            return str(read_field(record, key, str, place)).strip()
    return ""


def _word(row: Row, key: str, place: str) -> str:
    """Return an id as it is written in the collection: a text or whole number, without blanks."""
    return "_".join(readers.read_id(row, key, place).split())
