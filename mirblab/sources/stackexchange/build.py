"""build: a Stack Exchange dump as a collection of duplicate questions."""

from __future__ import annotations

import json
import re
import tempfile
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.core.terminal import say
from mirblab.sources.shared import builder, html
from mirblab.sources.shared.builder import CollectionRows, Row, connected_groups, replace_folders
from mirblab.sources.shared.release import Origin
from mirblab.sources.stackexchange import dump

ARCHIVE = "https://archive.org/details/stackexchange"
LICENCE = "CC-BY-SA-4.0; posts before May 2018 3.0, before April 2011 2.5"
INSTRUCTION = "Given a math question, retrieve questions that are duplicates of the given one"
PUBLISHED = {"math.stackexchange.com": "mirb-mse-dup", "mathoverflow.net": "mirb-mo-dup"}
QUESTION, DUPLICATE = ("PostTypeId", "1"), ("LinkTypeId", "3")
_TAG = re.compile(r"[^<>|\s]+")
_HELD = {"figure": "figures", "link": "links", "table": "tables"}


@dataclass(frozen=True)
class DrawnQueries:
    """The judgements by split (query, document, relevance), the queries, and how large the components are."""

    judged: dict[str, list[tuple[str, str, int]]]
    queries: frozenset[str]
    sizes: dict[str, Any]


def build(
    origin: str | Path | None, out: Path, *, name: str = "", seed: int = 0, dev: float = 0.0, train: float = 0.0
) -> list[Path]:
    """Write the collection of a dump under *out*, print what was left out, and return its folder.

    The rules are those of MIRB's MSE Dup. and MO Dup.: questions with figures, links or tables are left out; the
    duplicate links between the rest are closed transitively; of every component one question, drawn with *seed*, is
    the query and the others are its relevant documents; every other question is a document. The card asks for
    MIRB's rule of tags. *origin* is a .7z archive or a folder with Posts.xml and PostLinks.xml, plain or gzipped.
    *name* is the collection's ("": the site's and `-dup`); *dev* and *train* are the shares of the components
    that make these splits (0: none), the rest is test. Memory stays bounded; the same input and seed give
    the same bytes. Raises MirblabError, also when there is no query, and FileNotFoundError.
    """
    if origin is None:
        raise MirblabError(f"give a site's dump with --from: a .7z archive of {ARCHIVE}, or the folder it unpacks to")
    if min(dev, train) < 0 or dev + train >= 1:
        raise MirblabError(f"dev and train are shares from 0 whose sum is below 1, found {dev} and {train}")
    files = dump.find_dump(origin, ("Posts", "PostLinks"))
    name = paths.checked_name(name or default_name(files.site))
    with replace_folders(Path(out), (name,)) as [folder], tempfile.TemporaryFile("w+b", dir=folder.parent) as spool:
        reading = _Reading(files, spool, seed, {"dev": dev, "train": train})
        parts = CollectionRows(reading.corpus(), reading.queries(), reading.judged, reading.left_out)
        found = Origin(files.path, f"{ARCHIVE}, {files.site}", "", files.path.name)
        # The card is made last, when the reading has filled what it reports.
        about = _about(files.site) | {"seed": seed, "components": reading.sizes, "examples": reading.odd.examples}
        chosen = {"name": name, "seed": seed, "dev": dev, "train": train}
        made = {"builder": "stackexchange", "revision": files.revision(), "licence": LICENCE, "options": chosen}
        builder.write_collection(folder, parts, about, found, **made)
        reading.report()
    return [Path(out) / name]


def default_name(site: str) -> str:
    """Return the name of a site's collection.

    >>> default_name("math.stackexchange.com"), default_name("mathoverflow.net")
    ('math.stackexchange-dup', 'mathoverflow-dup')
    """
    return f"{re.sub(r'[.](com|net)$', '', site)}-dup"


def _about(site: str) -> Row:
    return {
        "title": f"{site}: question to its duplicates",
        "task": "Semantic Statement Retrieval",
        "instruction": INSTRUCTION,
        **({"follows": PUBLISHED[site]} if site in PUBLISHED else {}),
        "candidates": "tags",
    }


class _Reading:
    """One pass over the links, then one over the posts.

    Questions that no duplicate link names go straight to the corpus; which of the others are queries is known at the
    end of the posts only, so that they wait in a *spool* on disk.
    """

    def __init__(self, files: dump.DumpFiles, spool: IO[bytes], seed: int, shares: dict[str, float]) -> None:
        self.files, self.spool, self.seed, self.shares = files, spool, seed, shares
        self.odd, self.left_out = dump.RowProblems(), Counter[str]()
        self.judged: dict[str, list[tuple[str, str, int]]] = {}
        self.sizes: Row = {}
        self.asked: frozenset[str] = frozenset()

    def corpus(self) -> Iterator[Row]:
        """Yield the documents; the judgements, sizes and counts are filled when they are through."""
        one, other = self._links()
        linked = {*one, *other}
        kept: set[int] = set()
        for number, row in self._questions():
            if number in linked:
                kept.add(number)
                self.spool.write(json.dumps(row).encode() + b"\n")
            else:
                yield row
        self._judge(zip(one, other, strict=True), len(one), kept)
        yield from (row for row in self._spooled() if row["_id"] not in self.asked)

    def queries(self) -> Iterator[Row]:
        """Yield the queries, after the corpus."""
        for row in self._spooled():
            if row["_id"] in self.asked:
                yield {"_id": row["_id"], "text": f"{row['title']} {row['text']}".strip(), "tags": row["tags"]}

    def _spooled(self) -> Iterator[Row]:
        self.spool.seek(0)
        return map(json.loads, self.spool)

    def _links(self) -> tuple[array[int], array[int]]:
        """Return both ends of every duplicate link."""
        ends, name = (array("q"), array("q")), self.files.shown("PostLinks")
        with self.files.stream("PostLinks") as stream:
            for line, row in dump.read_rows(stream, name, ("PostId", "RelatedPostId"), self.odd, DUPLICATE):
                numbers = [_number(row.get(key)) for key in ("PostId", "RelatedPostId")]
                if None in numbers:
                    self.odd.note(name, line, "rows without PostId and RelatedPostId as numbers")
                    continue
                for end, number in zip(ends, numbers, strict=True):
                    end.append(number)
        self._count_passed("links that are no duplicates (LinkTypeId {})")
        return ends

    def _questions(self) -> Iterator[tuple[int, Row]]:
        """Yield number and row of every question that is kept."""
        name, seen = self.files.shown("Posts"), _Seen()
        with self.files.stream("Posts") as stream:
            for line, found in dump.read_rows(stream, name, ("Id", "Title", "Body", "Tags"), self.odd, QUESTION):
                number = _number(found.get("Id"))
                if number is None:
                    self.odd.note(name, line, "rows without an Id that is a number")
                elif not seen.add(number):
                    self.odd.note(name, line, "rows that repeat an Id", f"{number}")
                elif row := self._row(number, found):
                    yield number, row
        self._count_passed("posts that are no questions (PostTypeId {})")

    def _row(self, number: int, found: dict[str, str]) -> Row | None:
        """Return the row of a question, or None when the paper's rules leave it out."""
        body = found.get("Body", "")
        if held := html.find_elements(body):
            self.left_out[f"questions with {' and '.join(_HELD[kind] for kind in held)}"] += 1
            return None
        (title, title_deep), (text, text_deep) = html.title_to_text(found.get("Title", "")), html.html_to_text(body)
        if not title and not text:
            self.left_out["questions without text"] += 1
            return None
        row = {"_id": str(number), "title": title, "text": text, "tags": split_tags(found.get("Tags", ""))}
        odd = {
            "entities escaped twice (unescaped)": title_deep or text_deep,
            "no title": not title,
            "no body": not text,
            "no tags": not row["tags"],
        }
        self.left_out.update(f"questions kept although odd: {what}" for what, is_so in odd.items() if is_so)
        return row

    def _count_passed(self, reason: str) -> None:
        self.left_out.update({reason.format(value): count for value, count in self.odd.passed.items()})
        self.odd.passed.clear()

    def _judge(self, links: Iterable[tuple[int, int]], n_links: int, kept: set[int]) -> None:
        pairs = keep_edges(links, kept, self.left_out)
        if not pairs:
            raise MirblabError(
                f"{self.files.path.name}: no two questions that are kept are duplicates of each other, of "
                f"{n_links:,} duplicate links; do its posts and its links belong together?"
            )
        drawn = draw_queries(pairs, self.seed, self.shares)
        self.asked = drawn.queries
        self.judged.update(drawn.judged)
        self.sizes.update(drawn.sizes)
        self.left_out.update(self.odd.counts)

    def report(self) -> None:
        """Print the sizes of the components, and the first broken rows of each kind."""
        sizes = ", ".join(f"{count:,} of {size}" for size, count in self.sizes["by_size"].items())
        say(f"  components of duplicates: {self.sizes['number']:,}; by number of questions: {sizes}")
        say(f"  the largest has {self.sizes['largest']}; its query is {self.sizes['query_of_the_largest']}")
        for example in self.odd.examples:
            say(f"  {example}")


def split_tags(text: str) -> list[str]:
    """Return the tags of a post, in either of the dumps' notations.

    >>> split_tags("<calculus><limits>"), split_tags("|calculus|limits|")
    (['calculus', 'limits'], ['calculus', 'limits'])
    """
    return _TAG.findall(text)


def keep_edges(links: Iterable[tuple[int, int]], kept: Collection[int], left_out: Counter[str]) -> set[tuple[int, int]]:
    """Return the links between two questions that are *kept*, each once; the others are counted in *left_out*.

    >>> left_out = Counter()
    >>> sorted(keep_edges([(2, 1), (1, 2), (3, 3), (3, 4)], {1, 2, 3}, left_out)), left_out.total()
    ([(1, 2)], 3)
    """
    found: set[tuple[int, int]] = set()
    for one, other in links:
        edge = (min(one, other), max(one, other))
        if one == other:
            left_out["duplicate links from a question to itself"] += 1
        elif one not in kept or other not in kept:
            left_out["duplicate links to or from questions that are missing or left out"] += 1
        elif edge in found:
            left_out["duplicate links given twice"] += 1
        else:
            found.add(edge)
    return found


def draw_queries(pairs: Iterable[tuple[int, int]], seed: int, shares: Mapping[str, float]) -> DrawnQueries:
    """Return one random question of each connected component as query, the others of it as relevant for it.

    *shares* are the parts of the components, drawn at random too, that make other splits than test.

    >>> draw_queries([(1, 2)], 0, {}).sizes
    {'number': 1, 'largest': 2, 'query_of_the_largest': '2', 'by_size': {'2': 1}}
    """
    groups = connected_groups(pairs)
    random = np.random.default_rng(seed)
    drawn = [group[random.integers(len(group))] for group in groups]
    where = _splits(random.permutation(len(groups)), shares)
    judged: dict[str, list[tuple[str, str, int]]] = {}
    for query, group, split in zip(drawn, groups, where, strict=True):
        judged.setdefault(split, []).extend((str(query), str(number), 1) for number in group if number != query)
    return DrawnQueries(judged, frozenset(map(str, drawn)), _sizes(drawn, groups))


def _splits(order: np.ndarray, shares: Mapping[str, float]) -> list[str]:
    """Return the split of each component, given the components in random order."""
    where, begin = ["test"] * len(order), 0
    for split, share in shares.items():
        end = begin + round(share * len(order))
        for place in order[begin:end]:
            where[place] = split
        begin = end
    return where


def _sizes(drawn: list[int], groups: list[list[int]]) -> dict[str, Any]:
    lengths = [len(group) for group in groups]
    largest = max(lengths, default=0)
    return {
        "number": len(groups),
        "largest": largest,
        "query_of_the_largest": str(drawn[lengths.index(largest)]) if groups else "",
        "by_size": {str(size): count for size, count in sorted(Counter(lengths).items())},
    }


class _Seen:
    """Whole numbers that came up, in one bit each where they lie close together, as the ids of posts do."""

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = {}

    def add(self, number: int) -> bool:
        """Remember a number; return whether it is new."""
        page, place = divmod(number, 4096)
        bits = self._pages.get(page)
        if bits is None:
            bits = self._pages[page] = bytearray(512)
        bit = 1 << (place & 7)
        is_new = not bits[place >> 3] & bit
        bits[place >> 3] |= bit
        return is_new


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 18 else None
