"""elements: read XML as it comes, well formed or not, and fold it from the inside out."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

# What is longer, deeper or has more parts (elements and texts) is read up to here: no formula is, and time stays short.
LONGEST = 200_000
DEEPEST = 500
MOST = 10_000
TOLD = 20  # problems
# Every repetition is possessive: what one part has taken no other part tries again, so that the time is linear.
_TOKEN = re.compile(
    r"""<!--.*?(?:-->|\Z)
      | <!\[CDATA\[(?P<data>.*?)(?:\]\]>|\Z)
      | <!DOCTYPE[^<>\[]*+\[(?:[^\]<>]|<[^<>]*+>)*+\]\s*+>
      | <[!?][^<>]*+>?
      | </\s*+(?P<close>[^\s<>]*+)[^<>]*+>?
      | <(?P<open>[A-Za-z_][^\s<>/"']*+)(?P<attributes>(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+)>
      | <(?P<cut>[A-Za-z_][^\s<>/"']*+)[^<>]*+>?
      | (?P<text>[^<]++)
      | <""",
    re.VERBOSE | re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""(?<![\w:.-])([A-Za-z_][\w:.-]*+)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_NO_CHARACTER = re.compile(r"&#[0-9]{12,}+;?")  # nor is it a number that Python reads
_BLANKS = re.compile(r"[ \t\r\n\xa0]+")  # a thin space inside a number stays

# From an element's local name, attributes and parts (texts, and what its elements became, in order): what it becomes.
Build = Callable[[str, dict[str, str], list[Any]], Any]


def fold(xml: str, build: Build, *, skip: frozenset[str] = frozenset()) -> tuple[list[Any], list[str]]:
    """Return what *build* makes of the outermost elements, and what was wrong with the document.

    *build* gets a local name (no prefix), the attributes (local names) and the parts; what it returns, unless None,
    is a part of the element around. Elements of the names in *skip* are left out with their content. Character
    references and HTML's named ones are understood, no other entity and no DTD; comments and instructions are
    skipped. Whatever *xml* is, there is no exception: an element that is not closed ends with the one around it, an
    end tag without its start is ignored. Takes linear time and no stack.

    >>> fold("<a x='1'>one <m:b/>&amp; two</a>", lambda name, attributes, parts: (name, attributes, parts))
    ([('a', {'x': '1'}, ['one', ('b', {}, []), '& two'])], [])
    >>> fold("<a><b>", lambda name, attributes, parts: name)
    (['a'], ['2 elements are not closed'])
    """
    reader = _Reader(build, skip)
    if len(xml) > LONGEST:
        reader.problems.append(f"only the first {LONGEST:,} of {len(xml):,} characters were read")
    for token in _TOKEN.finditer(xml, 0, LONGEST):
        if reader.n_parts >= MOST:
            reader.problems.append(f"only the first {MOST:,} elements and texts were read")
            break
        kind = token.lastgroup
        if kind in ("open", "cut", "attributes"):
            name = token["open"] or token["cut"]
            attributes = token["attributes"] or ""
            reader.start(_local(name), attributes)
            if kind == "cut":
                reader.problems.append(f"a start tag is cut short: {token[0][:40]!r}")
            if attributes.endswith("/") or (kind == "cut" and token[0].endswith("/>")):
                reader.stop(_local(name))
        elif kind == "close":
            reader.stop(_local(token["close"]))
        elif kind == "text":
            reader.text(_unescaped(token["text"]))
        elif kind == "data":
            reader.text(token["data"])
    return reader.end()


def told(problems: Sequence[str]) -> list[str]:
    """Return the first twenty different problems, and how many more there are.

    >>> told(["a", "b", "a"])
    ['a', 'b']
    """
    different = list(dict.fromkeys(problems))
    more = len(different) - TOLD
    return different if more <= 0 else [*different[:TOLD], f"and {more:,} more"]


def _unescaped(text: str) -> str:
    """Return *text* without entities; a number of a dozen digits and more is no character."""
    return html.unescape(_NO_CHARACTER.sub("\ufffd", text)) if "&" in text else text


def _local(name: str) -> str:
    return name.rpartition(":")[2]


class _Reader:
    """The elements that are open, and what became of those that are closed."""

    def __init__(self, build: Build, skip: frozenset[str]) -> None:
        self.build, self.skip = build, skip
        self.frames: list[tuple[str, str, list[Any]]] = [("", "", [])]
        self.opened: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.problems: list[str] = []
        self.n_parts = 0

    def start(self, name: str, attributes: str) -> None:
        """Open an element, unless it lies too deep."""
        if len(self.frames) > DEEPEST:
            if not self.ignored:
                self.problems.append(f"elements deeper than {DEEPEST} were not read")
            self.ignored[name] += 1
            return
        self.n_parts += 1
        self.frames.append((name, attributes, []))
        self.opened[name] += 1

    def stop(self, name: str) -> None:
        """Close an element and those that were left open within it."""
        if self.ignored[name]:
            self.ignored[name] -= 1
        elif not self.opened[name]:
            self.problems.append(f"an end tag without its start: </{name[:40]}>")
        else:
            closed = self._close()
            while closed != name:
                self.problems.append(f"<{closed[:40]}> is not closed")
                closed = self._close()

    def _close(self) -> str:
        name, attributes, parts = self.frames.pop()
        self.opened[name] -= 1
        if name not in self.skip:
            found = {
                _local(attribute[1]): _unescaped(attribute[2] or attribute[3] or "")
                for attribute in _ATTRIBUTE.finditer(attributes)
            }
            made = self.build(name, found, parts)
            if made is not None:
                self.frames[-1][2].append(made)
        return name

    def text(self, text: str) -> None:
        """Take characters between tags."""
        text = _BLANKS.sub(" ", text).strip()
        if text:
            self.n_parts += 1
            self.frames[-1][2].append(text)

    def end(self) -> tuple[list[Any], list[str]]:
        """Close what is still open, and return what was built and what was wrong."""
        if (missing := len(self.frames) - 1) > 0:
            self.problems.append(f"{missing} element{'s are' if missing > 1 else ' is'} not closed")
        while len(self.frames) > 1:
            self._close()
        return self.frames[0][2], self.problems
