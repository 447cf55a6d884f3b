"""ntcir: NTCIR-12's formula collection."""

from __future__ import annotations

import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mirblab.core import text_files
from mirblab.core.errors import MirblabError, unknown
from mirblab.core.terminal import progress
from mirblab.core.text_files import LineProblems, read_lines, read_records
from mirblab.sources.arqmath import release as texts
from mirblab.sources.shared import builder, html, readers, release
from mirblab.sources.shared.builder import CollectionRows, Row, replace_folders
from mirblab.sources.shared.readers import Judgement
from mirblab.sources.shared.release import Origin

TABLES, ARTICLES = (".tsv", ".jsonl"), (".html", ".xhtml", ".xml")
NO_LATEX = "formulas of articles without LaTeX"
REPEATED = "formulas that repeat an id (the first is taken)"
_ATTRIBUTES = r"""((?:[^<>"']|"[^"]*"|'[^']*')*)"""
_MATH = re.compile(
    rf"<(?:\w+:)?formula\b{_ATTRIBUTES}>|<(?:\w+:)?math\b{_ATTRIBUTES}(?:/>|>(.*?)</(?:\w+:)?math\s*>)",
    re.DOTALL | re.IGNORECASE,
)
_TEX = re.compile(
    rf"<(?:\w+:)?annotation\b(?=[^<>]*application/x-tex){_ATTRIBUTES}>(.*?)</(?:\w+:)?annotation\s*>",
    re.DOTALL | re.IGNORECASE,
)
_ALTTEXT = re.compile(r"""\balttext\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_OWN_ID = re.compile(r"""\bid\s*=\s*["']([^"']*:[0-9]+)["']""")
SOURCE = "NTCIR-12 MathIR, Wikipedia Formula Browsing (https://ntcir-math.nii.ac.jp/)"
LICENCE = "none stated; the formulas are Wikipedia's, CC-BY-SA"
INSTRUCTION = "Given a math formula, retrieve relevant formulas."
POOLS = ("judged", "all")
HIGHEST = 4  # two assessors gave 0 to 2 each, and their grades are added
LEVELS = {5: (0, 1, 2, 3, 4), 3: (0, 1, 1, 2, 2)}  # grades 1 and 2 are partially relevant, 3 and 4 relevant
_TEXTS, _QRELS = ("", ".txt", ".tsv"), ("", ".txt", ".tsv", ".dat", ".qrel", ".qrels")
_WILDCARD = "\\qvar"
_NAMED = 5


def build(origin: str | Path | None, out: Path, *, levels: int = 5, pool: str = "judged") -> list[Path]:
    r"""Write ntcir12-formulas under *out*, print what was left out, and return its folder.

    *origin* is a folder with topics (lines of id, tab, LaTeX) and judgements, and the texts of the formulas, which
    no public place has: the articles of the release, or a .tsv or .jsonl of ids and LaTeX; several places are
    joined as in `PATH`. Judgements have the splits test (all topics), concrete, and wildcards (those with \qvar).
    Grades are 0 to 4; *levels* 3 makes 0, 1 (grades 1 and 2) and 2 (grades 3 and 4), and the name ends in
    -3-levels. With *pool* "judged" documents and candidates are what was judged, with "all" every formula (the
    name ends in -open). The same input gives the same bytes. Raises MirblabError when topics, judgements or
    formulas are missing, and for files that cannot be read, with their line.
    """
    if levels not in LEVELS:
        raise MirblabError(f"levels must be 5 (the grades 0 to 4) or 3 (0, partially relevant, relevant), not {levels}")
    if pool not in POOLS:
        raise unknown("pool", pool, POOLS)
    if origin is None:
        raise MirblabError(f"give topics, judgements and formulas with --from: {SOURCE}")
    where = release.split_origin(origin)
    name = "ntcir12-formulas" + ("-3-levels" if levels == 3 else "") + ("-open" if pool == "all" else "")
    topics, judged, formulas = _files(where)
    with replace_folders(out := Path(out), (name,)) as [folder], tempfile.TemporaryFile("w+b", dir=out) as spool:
        left_out: Counter[str] = Counter()
        queries, grades = _topics(topics), _grades(judged, left_out)
        store = texts.RowStore(spool, {doc_id for _, doc_id in grades})
        _store(formulas, store, left_out, everything=pool == "all")
        pairs, missing = _pairs(queries, grades, store, levels, left_out)
        if not pairs:
            raise MirblabError(
                f"{release.join_names(where)}: none of the judged formulas is among the texts (formulas.tsv, or the "
                "articles "
                "in pages/); are they named Article_title:number?"
            )
        asked = {query_id for query_id, _, _ in pairs}
        rows = [_query(name, latex) for name, latex in queries.items() if name in asked]
        wanted = None if pool == "all" else {doc_id for _, doc_id, _ in pairs}
        parts = CollectionRows(store.rows(wanted, "formulas", left_out), rows, _splits(pairs, queries), left_out)
        about = _about(levels, pool) | {"first_missing_documents": missing[:_NAMED]}
        found = Origin(where[0], SOURCE, "", release.join_names(where))
        revision = release.hash_files([*topics, *judged, *formulas])
        made = {
            "builder": "ntcir",
            "revision": revision,
            "licence": LICENCE,
            "options": {"levels": levels, "pool": pool},
        }
        builder.write_collection(folder, parts, about, found, **made)
    return [out / name]


def _about(levels: int, pool: str) -> Row:
    return {
        "title": f"NTCIR-12 Wikipedia Formula Browsing, grades {', '.join(map(str, sorted(set(LEVELS[levels]))))}",
        "task": "Formula Retrieval",
        "instruction": INSTRUCTION,
        "relevance_levels": sorted(set(LEVELS[levels])),
        "grades_become": list(LEVELS[levels]),
        "pool": pool,
        **({"candidates": "judged"} if pool == "judged" else {}),
        **({"follows": "mirb-wfb"} if levels == 3 and pool == "judged" else {}),
    }


def _files(where: tuple[Path, ...]) -> tuple[list[Path], list[Path], list[Path]]:
    """Return the files of topics, judgements and formulas; MirblabError when one kind is missing."""
    below = release.files_below(where)
    topics = [path for path in below if "topic" in path.name.lower() and release.file_suffix(path) in _TEXTS]
    judged = [path for path in below if "qrel" in path.name.lower() and release.file_suffix(path) in _QRELS]
    formulas = find_formula_files(where)
    lacks = {
        "topics (a file *topics*.txt: id, tab, LaTeX)": not topics,
        "judgements (a file *qrels*)": not judged,
        "texts of formulas (the release's articles *.html, or a .tsv or .jsonl of ids and LaTeX)": not formulas,
    }
    missing = [what for what, is_missing in lacks.items() if is_missing]
    if missing:
        seen = ", ".join(path.name for path in below[:8]) or "nothing"
        raise MirblabError(f"{release.join_names(where)} has no {' and no '.join(missing)}; found {seen}")
    return topics, judged, formulas


def find_formula_files(where: tuple[Path, ...]) -> list[Path]:
    """Return the files of formulas: tables that are given themselves or named so, else articles in HTML or XML.

    A table in a folder counts when its name has "formula" or "corpus"; an XML file of topics does not.
    """
    below = release.files_below(where)
    tables = [path for path in below if release.file_suffix(path) in TABLES and (path in where or _is_named(path))]
    articles = [path for path in below if release.file_suffix(path) in ARTICLES and "topic" not in path.name.lower()]
    return tables or articles


def _is_named(path: Path) -> bool:
    return any(word in path.name.lower() for word in ("formula", "corpus"))


def _topics(paths: list[Path]) -> dict[str, str]:
    """Return LaTeX by topic, from files that may repeat each other."""
    found: dict[str, str] = {}
    for path in paths:
        problems = LineProblems(path)
        for number, text in read_lines(path, problems):
            name, tab, latex = text.partition("\t")
            latex = texts.clean_latex(latex).text
            if not tab or not latex or not name.strip():
                problems.note(number, f"expected topic and LaTeX separated by a tab, found {text[:60]!r}")
            elif found.setdefault(name.strip(), latex) != latex:
                problems.note(number, f"another formula for the topic '{name}' than before")
        problems.raise_if_any()
    return dict(sorted(found.items(), key=lambda item: _in_order(item[0])))


def _grades(paths: list[Path], left_out: Counter[str]) -> dict[tuple[str, str], int]:
    """Return all judgements; those of a file whose ids lack their non-ASCII characters count once."""
    read = [readers.read_judgements(path, HIGHEST) for path in paths]
    # Files with full ids come first, so that stripped ones are known when they come.
    read.sort(key=lambda one: -sum(not doc_id.isascii() for _, doc_id in one.grades))
    grades: dict[tuple[str, str], int] = {}
    full: dict[tuple[str, str], tuple[str, str]] = {}
    for one in read:
        for pair, grade in one.grades.items():
            same = pair if pair in grades else full.get(pair, pair)
            left_out["judgements that several files have"] += same in grades
            left_out["of these, with an id whose non-ASCII characters are stripped"] += same != pair
            if grades.setdefault(same, grade) != grade:
                raise MirblabError(f"{one.path} gives '{pair[1]}' for '{pair[0]}' {grade}, another file {grades[same]}")
            if not pair[1].isascii():
                full[pair[0], strip_non_ascii(pair[1])] = pair
    return dict(sorted(grades.items(), key=lambda item: (_in_order(item[0][0]), item[0][1])))


def _in_order(name: str) -> tuple[int, str, str]:
    """Return what sorts by the number at the end, however long, then by name."""
    number = name[len(name.rstrip("0123456789")) :].lstrip("0")
    return len(number), number, name


def _store(paths: list[Path], store: texts.RowStore, left_out: Counter[str], *, everything: bool) -> None:
    """Put formulas into *store* under the ids of the judgements, also where only one side has stripped ids."""
    by_stripped = {strip_non_ascii(name): name for name in sorted(store.judged, reverse=True)}
    waiting: dict[str, str] = {}
    seen: set[str] = set()
    for name, latex in read_formulas(paths, left_out):
        known = by_stripped.get(strip_non_ascii(name), name)
        is_spelling = known != name and (name.isascii() or known.isascii())
        if name in seen:
            left_out[REPEATED] += 1
        elif name in store.judged or (everything and not is_spelling):
            seen.add(name)
            _add(store, name, latex, left_out)
        elif is_spelling:
            waiting.setdefault(known, latex)
        else:
            left_out["formulas that no one judged"] += 1
    for known, latex in sorted(waiting.items()):
        if known in store.found:
            left_out["formulas that repeat a judged one under its stripped id"] += 1
        else:
            left_out["judged formulas found by an id without its non-ASCII characters"] += 1
            _add(store, known, latex, left_out)


def strip_non_ascii(name: str) -> str:
    """Return an id as some files of the release have it, without non-ASCII characters.

    >>> strip_non_ascii("Zermelo–Fraenkel_set_theory:19")
    'ZermeloFraenkel_set_theory:19'
    """
    return name.encode("ascii", "ignore").decode()


def read_formulas(paths: list[Path], left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield id and LaTeX of every formula, as they stand in the files.

    A line of a .tsv has id and LaTeX; an object of a .jsonl `_id` or `id`, and `text` or `latex`. In an article
    the ids are its name and the formula's place, from 0: `Article_title:0`, unless a formula has such an id itself;
    LaTeX is the TeX annotation, else the alternative text. Raises MirblabError with file and line.
    """
    readers = {".tsv": _tabbed, ".jsonl": _objects}
    with progress(len(paths), "reading formulas", "files") as bar:
        for path in paths:
            if release.file_suffix(path) in readers:
                yield from readers[release.file_suffix(path)](path)
            else:
                yield from _article(path, left_out)
            bar.update()


def _tabbed(path: Path) -> Iterator[tuple[str, str]]:
    problems = LineProblems(path)
    for number, text in read_lines(path, problems):
        name, tab, latex = text.partition("\t")
        if not tab or not name.strip():
            problems.note(number, f"expected id and LaTeX separated by a tab, found {text[:60]!r}")
        elif number > 1 or latex.strip().lower() not in ("latex", "formula", "text"):
            yield name.strip(), latex
    problems.raise_if_any()


def _objects(path: Path) -> Iterator[tuple[str, str]]:
    problems = LineProblems(path)
    for number, row in read_records(path, problems):
        name, latex = row.get("_id", row.get("id")), row.get("text", row.get("latex"))
        if isinstance(name, str) and isinstance(latex, str):
            yield name, latex
        else:
            problems.note(number, f"expected _id and text (or id and latex), found {', '.join(row) or 'nothing'}")
    problems.raise_if_any()


def _article(path: Path, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    try:
        with text_files.open_unpacked(path) as file:
            source = file.read().decode("utf-8")
    except (EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        raise MirblabError(f"{path} cannot be read: {error}; unpack the articles again") from error
    title = path.name.removesuffix(".gz")
    yield from find_article_formulas(title[: title.rindex(".")], source, left_out)


def find_article_formulas(title: str, source: str, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    r"""Yield id and LaTeX of the formulas of one article; nothing in it is resolved or fetched.

    >>> list(find_article_formulas("Area", '<math alttext="a &lt; b"><mi>a</mi></math> <math alttext="c"/>', Counter()))
    [('Area:0', 'a < b'), ('Area:1', 'c')]
    """
    place, outer = 0, None
    for match in _MATH.finditer(source):
        if match[1] is not None:
            outer = _OWN_ID.search(match[1])
            continue
        own = _OWN_ID.search(match[2]) or outer
        tex, alttext = _TEX.search(match[3] or ""), _ALTTEXT.search(match[2])
        latex = tex[2] if tex else (alttext[1] or alttext[2] or "") if alttext else ""
        if latex.strip():
            yield (own[1] if own else f"{title}:{place}"), html.unescape_entities(latex)[0]
        else:
            left_out[NO_LATEX] += 1
        place, outer = place + 1, None


def _add(store: texts.RowStore, name: str, latex: str, left_out: Counter[str]) -> None:
    text, odd = texts.clean_latex(latex)
    if text:
        store.add({"_id": name, "title": "", "text": text}, odd)
    else:
        left_out["formulas without LaTeX"] += 1


def _pairs(
    queries: dict[str, str],
    grades: dict[tuple[str, str], int],
    store: texts.RowStore,
    levels: int,
    left_out: Counter[str],
) -> tuple[list[Judgement], list[str]]:
    """Return the judgements whose topic and formula exist, and the judged formulas that do not."""
    pairs: list[Judgement] = []
    missing: dict[str, None] = {}
    for (query_id, doc_id), grade in grades.items():
        if query_id not in queries:
            left_out["judgements of topics that the files of topics lack"] += 1
        elif doc_id not in store.found:
            left_out[f"judgements of formulas that are not there (grade {grade})"] += 1
            missing[doc_id] = None
        else:
            pairs.append((query_id, doc_id, LEVELS[levels][grade]))
    judged, kept = {query_id for query_id, _ in grades}, {query_id for query_id, _, _ in pairs}
    left_out["judged formulas that are not there"] = len(missing)
    left_out["topics without a judgement (no queries)"] = len(queries.keys() - judged)
    left_out["topics whose judged formulas are not there (no queries)"] = len((queries.keys() & judged) - kept)
    return pairs, list(missing)


def _splits(pairs: list[Judgement], queries: dict[str, str]) -> dict[str, list[Judgement]]:
    wild = {name for name, latex in queries.items() if _WILDCARD in latex}
    parts = {"concrete": [pair for pair in pairs if pair[0] not in wild]}
    parts["wildcards"] = [pair for pair in pairs if pair[0] in wild]
    return {"test": pairs, **{split: part for split, part in parts.items() if part}}


def _query(name: str, latex: str) -> Row:
    return {"_id": name, "text": latex, "metadata": {"kind": "wildcards" if _WILDCARD in latex else "concrete"}}
