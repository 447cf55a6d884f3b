"""release: the files, topics and texts of an ARQMath release."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple
from xml.parsers import expat

from mirblab.core import text_files
from mirblab.core.errors import MirblabError
from mirblab.sources.shared import html, readers, release
from mirblab.sources.shared.builder import Judgement, Row
from mirblab.sources.shared.readers import FileJudgements

_NUMBER = re.compile(r"([AB])\.([0-9]{1,3})")
_TASKS = {"A": 1, "B": 2}
_FIELDS = ("Title", "Question", "Tags", "Latex", "Formula_Id")
_AT_ONCE = 2**16
URL = "https://www.cs.rit.edu/~dprl/ARQMath/"
HIGHEST = 3
_POSTS = re.compile(r"Posts(?:\.[\w.-]+)?\.xml(?:\.gz)?")
_QRELS = ("", ".tsv", ".txt", ".qrel", ".qrels", ".dat")
_FORMULAS = "latex_representation_v3"
_PREFERRED = re.compile(r"official|v3")
_FORMULA = re.compile(r"(<span[^<>]*math-container[^<>]*>)([^<]*)(?=</span>)", re.IGNORECASE)
# LaTeXML breaks long formulas with a percent sign at the end of a line; in the files the line end may be a blank.
# After an even number of backslashes (line breaks of LaTeX) it is such a mark, after an odd number a literal sign.
_LINE_MARK = re.compile(r"(?<!\\)((?:\\\\)*)%[ \t]*\n")
_BLANK_MARK = re.compile(r"(?<!\\)((?:\\\\)*)% ")
_COMMENT = re.compile(r"(\\.)|%[^\n]*", re.DOTALL)
ENTITIES = "with HTML entities left in them (unescaped)"
MARKS = "with LaTeXML's line marks (dropped)"


@dataclass(frozen=True)
class Topic:
    """A topic of a file: `title` and `question` are HTML; `latex` is "" in task 1."""

    id: str
    title: str
    question: str
    tags: list[str]
    latex: str
    formula_id: str


@dataclass
class Lab:
    """One task of one year: its topics, its judgements, and the files that were passed over for these."""

    year: int
    task: int
    topics: list[Topic] = field(default_factory=list)
    judged: FileJudgements = FileJudgements(Path(), {}, 0)
    passed_over: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Release:
    """The files of a release, and its labs that have topics or judgements, by year and task."""

    places: tuple[Path, ...]
    posts: Path | None
    formulas: list[Path]
    labs: dict[tuple[int, int], Lab]
    used: list[Path]

    def missing(self, lab: Lab) -> str:
        """Return the parts without which a lab cannot be built, or "" when it is complete."""
        lacks = {
            "topics (a file like Topics_Task1_2022.xml)": not lab.topics,
            "judgements (a file like qrel_task1_2022_official.tsv)": not lab.judged.grades,
            "posts (Posts.V1.3.xml)": lab.task == 1 and self.posts is None,
            f"formulas ({_FORMULAS}/*.tsv)": lab.task == 2 and not self.formulas,
        }
        return " and ".join(what for what, is_missing in lacks.items() if is_missing)


class CleanText(NamedTuple):
    """A text, and which of `ENTITIES` (in a post: escaped twice) and `MARKS` were removed from it."""

    text: str
    odd: tuple[str, ...]


def find_release(origin: str | Path) -> Release:
    """Return the files at *origin*, a folder or several joined as in `PATH`; archives in them are not opened.

    Of several files of judgements for one lab, the one named "official" or "v3" is taken.
    """
    where = release.split_origin(origin)
    files = release.files_below(where)
    posts = release.pick_single_file([path for path in files if _POSTS.fullmatch(path.name)], "posts")
    formulas = _formula_files(files, _FORMULAS)
    if not formulas and (others := {path.parent.name for path in _formula_files(files, "latex_representation")}):
        raise MirblabError(f"found {', '.join(sorted(others))}; the visual ids of task 2 are those of {_FORMULAS}")
    topics = [path for path in files if release.file_suffix(path) == ".xml" and "topics" in path.name.lower()]
    qrels = [path for path in files if "qrel" in path.name.lower() and release.file_suffix(path) in _QRELS]
    labs: dict[tuple[int, int], Lab] = {}
    for path in topics:
        _add_topics(labs, path)
    used = [*topics, *_add_judgements(labs, qrels)]
    return Release(where, posts, formulas, labs, [*([posts] if posts else []), *formulas, *used])


def clean_latex(latex: str) -> CleanText:
    """Return a formula without entities (in any number of layers), line marks and doubled white space."""
    text, is_deep, is_marked = latex, False, False
    # A mark may split an entity, and an entity may be a mark, so both are removed until nothing changes.
    while (step := drop_line_marks(plain := html.unescape_entities(text)[0])) != text:
        is_deep, is_marked, text = is_deep or plain != text, is_marked or step != plain, step
    return CleanText(" ".join(text.split()), (ENTITIES,) * is_deep + (MARKS,) * is_marked)


def clean_post(source: str, *, is_title: bool = False) -> CleanText:
    """Return the text of a post or title in HTML, its formulas between dollars."""
    unmarked = source
    if "%" in source and "math-container" in source:
        unmarked = _FORMULA.sub(lambda match: match[1] + drop_line_marks(match[2]), source)
    text, is_deep = html.title_to_text(unmarked) if is_title else html.html_to_text(unmarked)
    return CleanText(text, (ENTITIES,) * is_deep + (MARKS,) * (unmarked != source))


def drop_line_marks(latex: str) -> str:
    r"""Return LaTeX without LaTeXML's line marks, and without the author's comments where it has several lines.

    >>> drop_line_marks("a+% b"), drop_line_marks(r"5\% of a"), drop_line_marks("a+%\nb % why\n+c")
    ('a+b', '5\\% of a', 'a+b \n+c')
    """
    if "%" not in latex:
        return latex
    if "\n" not in latex.strip():
        return _BLANK_MARK.sub(r"\1", latex)
    return _COMMENT.sub(r"\1", _LINE_MARK.sub(r"\1", latex))


class RowStore:
    """Rows stored on disk, so that one pass over the source gives several collections; `found`: *judged* ids."""

    def __init__(self, spool: IO[bytes], judged: set[str]) -> None:
        self._spool, self.judged, self.found = spool, judged, set[str]()

    def add(self, row: Row, odd: tuple[str, ...] = ()) -> None:
        """Store a row, and what was repaired in it."""
        if row["_id"] in self.judged:
            self.found.add(row["_id"])
        self._spool.seek(0, 2)
        self._spool.write(json.dumps([row, odd]).encode() + b"\n")

    def rows(self, wanted: Container[str] | None, what: str, left_out: Counter[str]) -> Iterator[Row]:
        """Yield the rows whose id is *wanted* (None: all); repairs are counted in *left_out* under *what*."""
        self._spool.seek(0)
        for line in self._spool:
            row, odd = json.loads(line)
            if wanted is None or row["_id"] in wanted:
                left_out.update(f"{what} {each}" for each in odd)
                yield row


def keep_judgements(
    grades: Mapping[tuple[str, str], int],
    topics: Collection[str],
    store: RowStore,
    what: str,
    left_out: Counter[str],
    lacking: str = "the file of topics lacks",
) -> tuple[list[Judgement], list[str]]:
    """Return the judgements whose topic and document exist, and the judged documents that do not exist."""
    kept: list[Judgement] = []
    missing: dict[str, None] = {}
    for (query_id, doc_id), grade in grades.items():
        if query_id not in topics:
            left_out[f"judgements of topics that {lacking}"] += 1
        elif doc_id not in store.found:
            left_out[f"judgements of {what} that are not there (grade {grade})"] += 1
            missing[doc_id] = None
        else:
            kept.append((query_id, doc_id, grade))
    judged = {query_id for query_id, _ in grades} & set(topics)
    left_out[f"judged {what} that are not there"] = len(missing)
    left_out["topics without a judgement (no queries)"] = len(topics) - len(judged)
    left_out[f"topics whose judged {what} are not there (no queries)"] = len(judged - {query for query, *_ in kept})
    return kept, list(missing)


def _formula_files(files: list[Path], folder: str) -> list[Path]:
    """Return the tables in folders whose name begins with *folder*, in the order of the number in their name."""
    tables = [
        path for path in files if path.parent.name.lower().startswith(folder) and release.file_suffix(path) == ".tsv"
    ]
    return sorted(tables, key=lambda path: (int((re.match(r"\d+", path.name) or ["0"])[0]), str(path)))


def _add_topics(labs: dict[tuple[int, int], Lab], path: Path) -> None:
    by_lab: dict[tuple[int, int], list[Topic]] = {}
    for topic in read_topics(path):
        by_lab.setdefault(_key(topic.id, path), []).append(topic)
    for (year, task), topics in by_lab.items():
        lab = labs.setdefault((year, task), Lab(year, task))
        if lab.topics:
            raise MirblabError(f"{path} has topics of task {task} of {year}, as another file has; keep one of them")
        lab.topics = topics


def read_topics(path: Path) -> list[Topic]:
    """Return the topics of a file, plain or gzipped, in its order; MirblabError with file and line."""
    reading = _TopicHandlers(path)
    try:
        with text_files.open_unpacked(path) as file:
            while block := file.read(_AT_ONCE):
                reading.parser.Parse(block, False)
        reading.parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise MirblabError(f"{path}, line {error.lineno}: not well-formed XML: {error}; fetch it again") from error
    except (EOFError, OSError, zlib.error) as error:
        raise MirblabError(f"{path} cannot be read: {error}; fetch it again") from error
    if not reading.topics:
        raise MirblabError(f"{path} has no <Topic number=...>; is it a file of ARQMath topics?")
    return list(reading.topics.values())


class _TopicHandlers:
    def __init__(self, path: Path) -> None:
        self.path, self.topics = path, dict[str, Topic]()
        self.number, self.fields, self.parts = "", dict[str, str](), list[str]()
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._start, self._end
        self.parser.CharacterDataHandler = self.parts.append
        self.parser.StartDoctypeDeclHandler = self._refuse

    def _refuse(self, *_: object) -> None:
        raise self._error("a document type, which a file of topics does not have")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.parts.clear()
        if name == "Topic":
            self.number, self.fields = attributes.get("number", "").strip(), {}
            if lab_of_topic(self.number) is None:
                raise self._error(f"the number '{self.number}' is no topic of ARQMath; expected A.1 or B.201, say")
            if self.number in self.topics:
                raise self._error(f"the topic {self.number} a second time")

    def _end(self, name: str) -> None:
        if name in _FIELDS:
            self.fields[name] = "".join(self.parts).strip()
        elif name == "Topic":
            self.topics[self.number] = self._topic()

    def _topic(self) -> Topic:
        title, question, tags, latex, formula_id = (self.fields.get(field, "") for field in _FIELDS)
        if not title and not question:
            raise self._error(f"the topic {self.number} has neither Title nor Question")
        if self.number[0] == "B" and not latex:
            raise self._error(f"the topic {self.number} has no Latex")
        return Topic(self.number, title, question, [tag for tag in tags.split(",") if tag], latex, formula_id)

    def _error(self, what: str) -> MirblabError:
        return MirblabError(f"{self.path}, line {self.parser.CurrentLineNumber}: {what}")


def _add_judgements(labs: dict[tuple[int, int], Lab], paths: list[Path]) -> list[Path]:
    choices: dict[tuple[int, int], list[FileJudgements]] = {}
    for path in paths:
        judged = readers.read_judgements(path, HIGHEST)
        keys = {query_id: _key(query_id, path) for query_id in dict.fromkeys(query_id for query_id, _ in judged.grades)}
        for key in sorted(set(keys.values())):
            grades = {pair: grade for pair, grade in judged.grades.items() if keys[pair[0]] == key}
            choices.setdefault(key, []).append(FileJudgements(path, grades, judged.n_repeated))
    for key, files in choices.items():
        taken = files if len(files) == 1 else [file for file in files if _PREFERRED.search(file.path.name.lower())]
        if len(taken) != 1:
            named = ", ".join(str(file.path) for file in files)
            raise MirblabError(f"several files judge task {key[1]} of {key[0]}: {named}; keep one of them")
        lab = labs.setdefault(key, Lab(*key))
        lab.judged = taken[0]
        lab.passed_over = [file.path.name for file in files if file is not taken[0]]
    return list(dict.fromkeys(lab.judged.path for _, lab in sorted(labs.items()) if lab.judged.grades))


def _key(topic_id: str, path: Path) -> tuple[int, int]:
    key = lab_of_topic(topic_id)
    if key is None:
        raise MirblabError(f"{path}: '{topic_id}' is no topic of ARQMath; expected A.1 or B.201, say")
    return key


def lab_of_topic(topic_id: str) -> tuple[int, int] | None:
    """Return year and task of a topic; topics are numbered from 1 (2020), 201 (2021) and 301 (2022). None: no topic.

    >>> lab_of_topic("A.98"), lab_of_topic("B.300"), lab_of_topic("A.301"), lab_of_topic("A.101"), lab_of_topic("Q1")
    ((2020, 1), (2021, 2), (2022, 1), None, None)
    """
    match = _NUMBER.fullmatch(topic_id)
    year = {0: 2020, 2: 2021, 3: 2022}.get((int(match[2]) - 1) // 100) if match else None
    return (year, _TASKS[match[1]]) if match and year else None
