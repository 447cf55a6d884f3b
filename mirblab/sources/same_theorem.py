"""same_theorem: judged pairs of statements of different libraries, with the texts of libraries that are here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.core.ids import read_id
from mirblab.data import beir
from mirblab.sources import lean_views, mini
from mirblab.sources.metamath import clean_comment
from mirblab.sources.shared import builder, release
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row, title_before_text
from mirblab.sources.shared.release import Origin

NAME = "same-theorem"
SOURCE = "data/mini/same-theorem"
COLUMNS = {
    "queries": "str",
    "documents": "str",
    "query_id": "str",
    "doc_id": "str",
    "first": "int64",
    "second": "int64",
    "share": "float64",
    "found_by": "str",
}
_MOST_NAMED = 8  # ids in a line that is printed; the card names all


class Statement(NamedTuple):
    """A statement of a library: its name or description there ("" for none), which structure search skips; its text."""

    title: str
    text: str


Statements = Mapping[str, Statement]


@dataclass(frozen=True)
class Library:
    """A library: the folders that may hold it, of which the first that is there is read, and its licence."""

    folders: tuple[str, ...]
    read: Callable[[Path], Iterator[tuple[str, Statement]]]
    licence: str


def _read_cards(folder: Path) -> Iterator[tuple[str, Statement]]:
    return ((card["id"], Statement("", card["statement"].strip())) for card in mini.read_cards())


def _read_rows(folder: Path, stem: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield id, row and metadata of each row of a collection's corpus or queries; MirblabError for a wrong id."""
    for row in beir.read_rows(folder, stem):
        try:
            name = read_id(row, "_id")
        except MirblabError as error:
            raise MirblabError(f"{folder}: a row of {stem} has {error}") from error
        about = row.get("metadata")
        yield name, row, about if isinstance(about, dict) else {}


def _read_corpus(folder: Path) -> Iterator[tuple[str, Statement]]:
    """Yield the documents of a collection; the description of a formal statement, where there is one, is its title."""
    for name, row, about in _read_rows(folder, "corpus"):
        comment = clean_comment(str(about.get("description") or ""))
        yield name, Statement(comment or str(row.get("title") or ""), str(row.get("text") or ""))


def _read_blueprints(folder: Path) -> Iterator[tuple[str, Statement]]:
    """Yield the statements in LaTeX of blueprints, which are the queries of their collection, with their titles."""
    for name, row, about in _read_rows(folder, "queries"):
        yield name, Statement(str(about.get("title") or ""), str(row.get("text") or ""))


def _read_views(folder: Path) -> Iterator[tuple[str, Statement]]:
    """Yield the theorems of a table of Lean declarations, the signature with the description as its title."""
    for row in lean_views.read_declarations([folder / lean_views.FILE], Counter()):
        if row["kind"] in lean_views.THEOREMS:
            yield row["id"], Statement(row["informal"], row["signature"])


LIBRARIES = {
    "blueprints": Library(("blueprints",), _read_blueprints, "Apache-2.0"),
    "cards": Library((), _read_cards, "CC0-1.0"),
    "mathcomp": Library(("rocq-premise", "mathcomp-premise"), _read_corpus, "CECILL-B"),
    "mathlib": Library((lean_views.NAME,), _read_views, lean_views.LICENCE),
    "setmm": Library(("metamath-premise", "setmm"), _read_corpus, "CC0-1.0"),
    "stacks": Library(("stacks-premise",), _read_corpus, "GFDL-1.2-or-later"),
}


def read_same_theorem() -> pd.DataFrame:
    """Return the bundled judgements, a row per pair of statements, without texts.

    Columns: queries, documents (the libraries), query_id, doc_id, first, second (the grades of both readings, 0 to 2,
    see `data/mini/same-theorem/guideline.md`), share (the probability, above 0 and at most 1, with which the pair was
    drawn for judging from those that the systems found), found_by (each system that found it, with its rank).

    >>> judged = read_same_theorem()
    >>> set(judged["first"]) <= {0, 1, 2}, bool(judged.share.between(0, 1, inclusive="right").all())
    (True, True)
    """
    path = paths.bundled_path("data", "mini", "same-theorem", "judgements.tsv")
    return pd.read_csv(path, sep="\t", dtype=COLUMNS, keep_default_na=False)


def build(origin: str | Path | None, out: Path, *, judged_only: bool = False) -> list[Path]:
    """Write same-theorem-QUERIES-DOCUMENTS under *out* for each judged pair of libraries, and return the folders.

    The texts are those of collections that are in the folder *origin* already, or without it in *out*: see the folders
    of `LIBRARIES`. Documents are all statements of a library, queries the judged ones of another; of the two grades of
    a pair the lower one counts. With *judged_only* the documents are those that are judged for any query, in
    collections that end with "-judged": on these a model that is too slow for a library can order the pool. Judgements
    of statements that a library lacks, as another version may, are left out, counted, and named in the card. A pair of
    which a library is not there is named and not written; MirblabError where that is so for all pairs.
    """
    out = Path(out)
    root = paths.expand_home(origin) if origin else out
    judged = read_same_theorem()
    folders = {name: _find_folder(root, library) for name, library in LIBRARIES.items()}
    pairs = list(dict.fromkeys(zip(judged.queries, judged.documents, strict=True)))
    here = [pair for pair in pairs if all(folders[name] for name in pair)]
    absent = sorted({name for pair in pairs for name in pair if not folders[name]})
    if not here:
        wanted = "; ".join(f"{name} ({' or '.join(LIBRARIES[name].folders)})" for name in absent)
        raise MirblabError(f"{root} has none of the libraries {wanted}; build them first, or name a folder with --from")
    read = {name: dict(LIBRARIES[name].read(folder)) for name, folder in folders.items() if folder and _in(name, here)}
    source = Origin(root, SOURCE, "", root.resolve().name if origin else "")
    names = tuple("-".join((NAME, *pair, *(["judged"] if judged_only else []))) for pair in here)
    with builder.replace_folders(out, names) as targets:
        for target, (one, other) in zip(targets, here, strict=True):
            rows = judged[(judged.queries == one) & (judged.documents == other)]
            asked = set(rows.doc_id)
            right = {name: each for name, each in read[other].items() if not judged_only or name in asked}
            _write(target, rows, (read[one], right), source, absent, {"judged_only": judged_only})
    return [out / name for name in names]


def _in(name: str, pairs: list[tuple[str, str]]) -> bool:
    return any(name in pair for pair in pairs)


def _find_folder(root: Path, library: Library) -> Path | None:
    """Return the folder of a library below *root*, that of the bundled cards for these, None where there is none."""
    if not library.folders:
        return paths.bundled_path("data", "mini", "cards")
    for name in library.folders:
        if beir.find_texts(root / name, "corpus") or (root / name / lean_views.FILE).is_file():
            return root / name
    return None


def _write(
    target: Path,
    judged: pd.DataFrame,
    read: tuple[Statements, Statements],
    source: Origin,
    absent: list[str],
    options: dict[str, bool],
) -> None:
    """Write the collection of one pair of libraries."""
    left, right = read
    grades = judged[["first", "second"]].min(axis=1)
    kept: list[Judgement] = []
    for query, doc, grade in zip(judged.query_id, judged.doc_id, grades, strict=True):
        if query in left and doc in right:
            kept.append((query, doc, int(grade)))
    missing = [name for name in dict.fromkeys(judged.query_id) if name not in left]
    missing += [name for name in dict.fromkeys(judged.doc_id) if name not in right]
    left_out = Counter({"judgements of statements that are not there": len(judged) - len(kept)})
    if missing:
        named = ", ".join(missing[:_MOST_NAMED]) + (" ..." if len(missing) > _MOST_NAMED else "")
        left_out[f"judged statements that are not there: {named}"] = len(missing)
    if absent:
        left_out[f"libraries that are not there: {', '.join(absent)}"] = len(absent)
    asked = dict.fromkeys(query for query, *_ in kept)
    queries: list[Row] = [{"_id": name, "text": title_before_text(*left[name])} for name in asked]
    corpus = ({"_id": name, "title": each.title, "text": each.text} for name, each in right.items())
    one, other = judged.queries.iloc[0], judged.documents.iloc[0]
    about = builder.read_about("-".join((NAME, one, other))) | {"missing": missing, "judgements": "CC0-1.0"}
    builder.write_collection(
        target,
        CollectionRows(corpus, queries, {"test": kept}, left_out),
        about,
        source,
        builder=NAME,
        options=options,
        revision=release.hash_files([paths.bundled_path("data", "mini", "same-theorem", "judgements.tsv")]),
        licence=" and ".join(dict.fromkeys((LIBRARIES[one].licence, LIBRARIES[other].licence))),
    )
