"""ntcir_formulas: texts of Wikipedia formulas by id, from a table or from the articles of the NTCIR-12 release."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mirblab import packed
from mirblab.errors import MirblabError
from mirblab.lines import Problems, lines, records
from mirblab.progress import progress
from mirblab.sources import html, places

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


def find(where: tuple[Path, ...]) -> list[Path]:
    """Return the files of formulas: tables that are given themselves or named so, else articles in HTML or XML.

    A table in a folder counts when its name has "formula" or "corpus"; an XML file of topics does not.
    """
    below = places.files(where)
    tables = [path for path in below if places.kind(path) in TABLES and (path in where or _is_named(path))]
    articles = [path for path in below if places.kind(path) in ARTICLES and "topic" not in path.name.lower()]
    return tables or articles


def _is_named(path: Path) -> bool:
    return any(word in path.name.lower() for word in ("formula", "corpus"))


def read(paths: list[Path], left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield id and LaTeX of every formula, as they stand in the files.

    A line of a .tsv has id and LaTeX; an object of a .jsonl `_id` or `id`, and `text` or `latex`. In an article
    the ids are its name and the formula's place, from 0: `Article_title:0`, unless a formula has such an id itself;
    LaTeX is the TeX annotation, else the alternative text. Raises MirblabError with file and line.
    """
    readers = {".tsv": _tabbed, ".jsonl": _objects}
    with progress(len(paths), "reading formulas", "files") as bar:
        for path in paths:
            if places.kind(path) in readers:
                yield from readers[places.kind(path)](path)
            else:
                yield from _article(path, left_out)
            bar.update()


def _tabbed(path: Path) -> Iterator[tuple[str, str]]:
    problems = Problems(path)
    for number, text in lines(path, problems):
        name, tab, latex = text.partition("\t")
        if not tab or not name.strip():
            problems.note(number, f"expected id and LaTeX separated by a tab, found {text[:60]!r}")
        elif number > 1 or latex.strip().lower() not in ("latex", "formula", "text"):
            yield name.strip(), latex
    problems.raise_if_any()


def _objects(path: Path) -> Iterator[tuple[str, str]]:
    problems = Problems(path)
    for number, row in records(path, problems):
        name, latex = row.get("_id", row.get("id")), row.get("text", row.get("latex"))
        if isinstance(name, str) and isinstance(latex, str):
            yield name, latex
        else:
            problems.note(number, f"expected _id and text (or id and latex), found {', '.join(row) or 'nothing'}")
    problems.raise_if_any()


def _article(path: Path, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    try:
        with packed.opened(path) as file:
            source = file.read().decode("utf-8")
    except (EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        raise MirblabError(f"{path} cannot be read: {error}; unpack the articles again") from error
    title = path.name.removesuffix(".gz")
    yield from in_article(title[: title.rindex(".")], source, left_out)


def in_article(title: str, source: str, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    r"""Yield id and LaTeX of the formulas of one article; nothing in it is resolved or fetched.

    >>> list(in_article("Area", '<p><math alttext="a &lt; b"><mi>a</mi></math> <math alttext="c"/></p>', Counter()))
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
            yield (own[1] if own else f"{title}:{place}"), html.unescape(latex)[0]
        else:
            left_out[NO_LATEX] += 1
        place, outer = place + 1, None
