"""ntcir: the formula collection of NTCIR-12."""

from __future__ import annotations

import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mirblab.core import text_files
from mirblab.core.errors import MirblabError, check_known
from mirblab.core.terminal import progress
from mirblab.core.text_files import LineProblems, read_lines
from mirblab.core.wording import first_names
from mirblab.sources.arqmath import release as texts
from mirblab.sources.shared import builder, html, readers, release
from mirblab.sources.shared.builder import CollectionRows, Row, replace_folders
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
POOLS = ("judged", "all")
HIGHEST = 4  # two assessors gave 0 to 2 each, and their grades are added
LEVELS = {5: (0, 1, 2, 3, 4), 3: (0, 1, 1, 2, 2)}  # grades 1 and 2 are partially relevant, 3 and 4 relevant
_TEXTS, _QRELS = ("", ".txt", ".tsv"), ("", ".txt", ".tsv", ".dat", ".qrel", ".qrels")
_WILDCARD = "\\qvar"
_NAMED = 5


def build(origin: str | Path | None, out: Path, *, levels: int = 5, pool: str = "judged") -> list[Path]:
    r"""Write ntcir12-formulas under *out* and return its folder.

    *origin* is one or several folders (joined as in `PATH`) with topics, judgements and the formulas, which are not
    public: the articles of the release, or a .tsv or .jsonl of ids and LaTeX. Splits are test (all topics), concrete,
    and wildcards (topics with \qvar). Grades are 0 to 4; *levels* 3 makes them 0, 1 (from 1 and 2) and 2 (from 3 and
    4). *pool* "judged" keeps what was judged, "all" every formula. Names end in -3-levels and -open accordingly.
    """
    if levels not in LEVELS:
        raise MirblabError(f"levels must be 5 (the grades 0 to 4) or 3 (0, partially relevant, relevant), not {levels}")
    check_known("pool", pool, POOLS)
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
        kept, missing = texts.keep_judgements(grades, queries, store, "formulas", left_out, "the files of topics lack")
        if not kept:
            raise MirblabError(
                f"{release.join_names(where)}: none of the judged formulas is among the texts (formulas.tsv, or the "
                "articles in pages/); are they named Article_title:number?"
            )
        pairs = [(query_id, doc_id, LEVELS[levels][grade]) for query_id, doc_id, grade in kept]
        kinds = {name: "wildcards" if _WILDCARD in latex else "concrete" for name, latex in queries.items()}
        splits = {"test": pairs}
        for kind in ("concrete", "wildcards"):
            splits |= {kind: part} if (part := [pair for pair in pairs if kinds[pair[0]] == kind]) else {}
        asked = {query_id for query_id, _, _ in pairs}
        rows = [
            {"_id": name, "text": queries[name], "metadata": {"kind": kinds[name]}} for name in queries if name in asked
        ]
        wanted = None if pool == "all" else {doc_id for _, doc_id, _ in pairs}
        collection = CollectionRows(store.rows(wanted, "formulas", left_out), rows, splits, left_out)
        about = _about(levels, pool) | {"first_missing_documents": missing[:_NAMED]}
        source = Origin(where[0], SOURCE, "", release.join_names(where))
        revision, options = release.hash_files([*topics, *judged, *formulas]), {"levels": levels, "pool": pool}
        how = {"builder": "ntcir", "revision": revision, "licence": LICENCE}
        builder.write_collection(folder, collection, about, source, options=options, **how)
    return [out / name]


def _about(levels: int, pool: str) -> Row:
    return {
        "title": f"NTCIR-12 Wikipedia Formula Browsing, grades {', '.join(map(str, sorted(set(LEVELS[levels]))))}",
        **builder.read_task("mirb-wfb"),
        "relevance_levels": sorted(set(LEVELS[levels])),
        "grades_become": list(LEVELS[levels]),
        "pool": pool,
        **({"candidates": "judged"} if pool == "judged" else {}),
        **({"follows": "mirb-wfb"} if levels == 3 and pool == "judged" else {}),
    }


def _files(where: tuple[Path, ...]) -> tuple[list[Path], list[Path], list[Path]]:
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
        seen = first_names((path.name for path in below), 8)
        raise MirblabError(f"{release.join_names(where)} has no {' and no '.join(missing)}; found {seen}")
    return topics, judged, formulas


def find_formula_files(where: tuple[Path, ...]) -> list[Path]:
    """Return the tables of formulas (given, or named "formula" or "corpus"), else the articles in HTML or XML."""
    below = [(path, release.file_suffix(path), path.name.lower()) for path in release.files_below(where)]
    tables = [
        path for path, suffix, name in below
        if suffix in TABLES and (path in where or "formula" in name or "corpus" in name)
    ]  # fmt: skip
    return tables or [path for path, suffix, name in below if suffix in ARTICLES and "topic" not in name]


def _topics(paths: list[Path]) -> dict[str, str]:
    topics: dict[str, str] = {}
    for path in paths:
        problems = LineProblems(path)
        for number, text in read_lines(path, problems):
            name, tab, latex = text.partition("\t")
            latex = texts.clean_latex(latex).text
            if not tab or not latex or not name.strip():
                problems.note(number, f"expected topic and LaTeX separated by a tab, found {text[:60]!r}")
            elif topics.setdefault(name.strip(), latex) != latex:
                problems.note(number, f"another formula for the topic '{name}' than before")
        problems.raise_if_any()
    return dict(sorted(topics.items(), key=lambda item: _in_order(item[0])))


def _grades(paths: list[Path], left_out: Counter[str]) -> dict[tuple[str, str], int]:
    """Return all judgements; those repeated under an id without its non-ASCII characters count once."""
    files = [readers.read_judgements(path, HIGHEST) for path in paths]
    # Files with full ids come first, so that stripped ones are known when they come.
    files.sort(key=lambda file: -sum(not doc_id.isascii() for _, doc_id in file.grades))
    grades: dict[tuple[str, str], int] = {}
    full: dict[tuple[str, str], tuple[str, str]] = {}
    for file in files:
        for pair, grade in file.grades.items():
            same = pair if pair in grades else full.get(pair, pair)
            left_out["judgements that several files have"] += same in grades
            left_out["of these, with an id whose non-ASCII characters are stripped"] += same != pair
            if grades.setdefault(same, grade) != grade:
                raise MirblabError(
                    f"{file.path} gives '{pair[1]}' for '{pair[0]}' {grade}, another file {grades[same]}"
                )
            if not pair[1].isascii():
                full[pair[0], strip_non_ascii(pair[1])] = pair
    return dict(sorted(grades.items(), key=lambda item: (_in_order(item[0][0]), item[0][1])))


def _in_order(name: str) -> tuple[int, str, str]:
    """Return a key that sorts by the number at the end, however long, then by name."""
    number = name[len(name.rstrip("0123456789")) :].lstrip("0")
    return len(number), number, name


def _store(paths: list[Path], store: texts.RowStore, left_out: Counter[str], *, everything: bool) -> None:
    """Put formulas into *store* under the ids of the judgements, also where one side lacks non-ASCII characters."""
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
    """Return an id as some files of the release have it, without non-ASCII characters."""
    return name.encode("ascii", "ignore").decode()


def read_formulas(paths: list[Path], left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield id and LaTeX of every formula of tables and articles; an article's ids are `Article_title:0` and so on."""
    with progress(len(paths), "reading formulas", "files") as bar:
        for path in paths:
            if release.file_suffix(path) in TABLES:
                yield from (_tabbed if release.file_suffix(path) == ".tsv" else _objects)(path)
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
    for place, row in readers.read_rows(path, None, Counter()):
        name, latex = row.get("_id", row.get("id")), row.get("text", row.get("latex"))
        if not isinstance(name, str) or not isinstance(latex, str):
            columns = ", ".join(row) or "nothing"
            raise MirblabError(f"{place}: expected _id and text (or id and latex), found {columns}")
        yield name, latex


def _article(path: Path, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    try:
        with text_files.open_unpacked(path) as file:
            source = file.read().decode("utf-8")
    except (EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        raise MirblabError(f"{path} cannot be read: {error}; unpack the articles again") from error
    title = path.name.removesuffix(".gz")
    yield from find_article_formulas(title[: title.rindex(".")], source, left_out)


def find_article_formulas(title: str, source: str, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield id and LaTeX of the formulas of one article; no entity or address in it is resolved."""
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
