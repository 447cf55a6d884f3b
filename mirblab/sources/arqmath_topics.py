"""arqmath_topics: the topics of ARQMath, from its XML files; which task and year a topic belongs to."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from mirblab import packed
from mirblab.errors import MirblabError

_NUMBER = re.compile(r"([AB])\.([0-9]{1,3})")
_TASKS = {"A": 1, "B": 2}
_FIELDS = ("Title", "Question", "Tags", "Latex", "Formula_Id")
_AT_ONCE = 2**16


@dataclass(frozen=True)
class Topic:
    """A topic as it stands in its file: `title` and `question` are HTML; `latex` is "" in task 1."""

    id: str
    title: str
    question: str
    tags: list[str]
    latex: str
    formula_id: str


def lab(topic_id: str) -> tuple[int, int] | None:
    """Return year and task of a topic's number, or None for no number of ARQMath.

    The labs number their topics from 1 (2020), 201 (2021) and 301 (2022), after A. in task 1 and B. in task 2.

    >>> lab("A.98"), lab("B.300"), lab("A.301"), lab("A.101"), lab("Q1")
    ((2020, 1), (2021, 2), (2022, 1), None, None)
    """
    found = _NUMBER.fullmatch(topic_id)
    year = {0: 2020, 2: 2021, 3: 2022}.get((int(found[2]) - 1) // 100) if found else None
    return (year, _TASKS[found[1]]) if found and year else None


def read(path: Path) -> list[Topic]:
    """Return the topics of a file, plain or gzipped, in its order.

    No entity is resolved and no document type accepted. Raises MirblabError with file and line for XML that is not
    well-formed, for a topic without number, text or (in task 2) formula, and for one that comes twice.
    """
    reading = _Reading(path)
    try:
        with packed.opened(path) as file:
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


class _Reading:
    """What expat calls while a file of topics is read."""

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
            if lab(self.number) is None:
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
