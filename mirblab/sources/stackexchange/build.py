"""build: a Stack Exchange dump as a collection of duplicate questions."""

from __future__ import annotations

import json
import re
import tempfile
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

import numpy as np

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.core.ids import is_whole_number
from mirblab.core.terminal import say
from mirblab.sources.shared import builder, html
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row, connected_groups, replace_folders
from mirblab.sources.shared.release import Origin, hash_files
from mirblab.sources.stackexchange import dump

ARCHIVE = "https://archive.org/details/stackexchange"
LICENCE = "CC-BY-SA-4.0; posts before May 2018 3.0, before April 2011 2.5"
PUBLISHED = {"math.stackexchange.com": "mirb-mse-dup", "mathoverflow.net": "mirb-mo-dup"}
QUESTION, DUPLICATE = ("PostTypeId", "1"), ("LinkTypeId", "3")
_TAG = re.compile(r"[^<>|\s]+")
_ELEMENTS = {"figure": "figures", "link": "links", "table": "tables"}


def build(
    origin: str | Path | None, out: Path, *, name: str = "", seed: int = 0, dev: float = 0.0, train: float = 0.0
) -> list[Path]:
    """Write the collection of a dump under *out* and return its folder.

    As in MIRB's MSE Dup. and MO Dup., questions with figures, links or tables are left out; of each connected component
    of duplicates one question, drawn with *seed*, is the query and the others are relevant; all other questions are
    documents. *origin* is a .7z archive or a folder with Posts.xml and PostLinks.xml, plain or gzipped. *name* "" is
    the site's with `-dup`; *dev* and *train* are shares of the components. Raises MirblabError and FileNotFoundError.
    """
    if origin is None:
        raise MirblabError(f"give a site's dump with --from: a .7z archive of {ARCHIVE}, or the folder it unpacks to")
    if min(dev, train) < 0 or dev + train >= 1:
        raise MirblabError(f"dev and train are shares from 0 whose sum is below 1, found {dev} and {train}")
    files = dump.find_dump(origin, ("Posts", "PostLinks"))
    name = paths.checked_name(name or default_name(files.site))
    with replace_folders(Path(out), (name,)) as [folder], tempfile.TemporaryFile("w+b", dir=folder.parent) as spool:
        reading = _Reading(files, spool, seed, {"dev": dev, "train": train})
        about: Row = {
            "title": f"{files.site}: question to its duplicates",
            **builder.read_task("mirb-mse-dup"),
            **({"follows": PUBLISHED[files.site]} if files.site in PUBLISHED else {}),
            "candidates": "tags",
            "seed": seed,
            # The card is written last, when the reading has filled these two.
            "components": reading.sizes,
            "examples": reading.odd.examples,
        }
        rows = CollectionRows(reading.corpus(), reading.queries(), reading.judged, reading.left_out)
        source = Origin(files.path, f"{ARCHIVE}, {files.site}", "", files.path.name)
        how = {"builder": "stackexchange", "revision": hash_files(files.paths()), "licence": LICENCE}
        options = {"name": name, "seed": seed, "dev": dev, "train": train}
        builder.write_collection(folder, rows, about, source, options=options, **how)
        reading.report()
    return [Path(out) / name]


def default_name(site: str) -> str:
    """Return the name of a site's collection.

    >>> default_name("math.stackexchange.com"), default_name("mathoverflow.net")
    ('math.stackexchange-dup', 'mathoverflow-dup')
    """
    return f"{re.sub(r'[.](com|net)$', '', site)}-dup"


class _Reading:
    """One pass over the links, then one over the posts; questions with duplicate links wait in a *spool* on disk."""

    def __init__(self, files: dump.DumpFiles, spool: IO[bytes], seed: int, shares: dict[str, float]) -> None:
        self.files, self.spool, self.seed, self.shares = files, spool, seed, shares
        self.odd, self.left_out = dump.RowProblems(), Counter[str]()
        self.judged: dict[str, list[Judgement]] = {}
        self.sizes: Row = {}
        self.query_ids: set[str] = set()

    def corpus(self) -> Iterator[Row]:
        """Yield the documents; the judgements, sizes and counts are complete after the last one."""
        sources, targets = self._links()
        linked = {*sources, *targets}
        kept: set[int] = set()
        for number, row in self._questions():
            if number in linked:
                kept.add(number)
                self.spool.write(json.dumps(row).encode() + b"\n")
            else:
                yield row
        pairs = keep_edges(zip(sources, targets, strict=True), kept, self.left_out)
        if not pairs:
            raise MirblabError(
                f"{self.files.path.name}: no two questions that are kept are duplicates of each other, of "
                f"{len(sources):,} duplicate links; do its posts and its links belong together?"
            )
        judged, sizes = draw_queries(pairs, self.seed, self.shares)
        self.query_ids = {query for judgements in judged.values() for query, *_ in judgements}
        self.judged.update(judged)
        self.sizes.update(sizes)
        self.left_out.update(self.odd.counts)
        yield from (row for row in self._spooled() if row["_id"] not in self.query_ids)

    def queries(self) -> Iterator[Row]:
        for row in self._spooled():
            if row["_id"] in self.query_ids:
                yield {"_id": row["_id"], "text": f"{row['title']} {row['text']}".strip(), "tags": row["tags"]}

    def _spooled(self) -> Iterator[Row]:
        self.spool.seek(0)
        return map(json.loads, self.spool)

    def _rows(
        self, stem: str, wanted: tuple[str, ...], only: tuple[str, str], passed: str
    ) -> Iterator[tuple[int, dict[str, str]]]:
        with self.files.stream(stem) as stream:
            yield from dump.read_rows(stream, self.files.shown(stem), wanted, self.odd, only)
        self.left_out.update({passed.format(value): count for value, count in self.odd.passed.items()})
        self.odd.passed.clear()

    def _links(self) -> tuple[array[int], array[int]]:
        sources, targets = array("q"), array("q")
        keys, passed = ("PostId", "RelatedPostId"), "links that are no duplicates (LinkTypeId {})"
        for line, row in self._rows("PostLinks", keys, DUPLICATE, passed):
            source, target = (row.get(key, "") for key in keys)
            if is_whole_number(source) and is_whole_number(target):
                sources.append(int(source))
                targets.append(int(target))
            else:
                reason = "rows without PostId and RelatedPostId as numbers"
                self.odd.note(self.files.shown("PostLinks"), line, reason)
        return sources, targets

    def _questions(self) -> Iterator[tuple[int, Row]]:
        name, seen = self.files.shown("Posts"), _NumberSet()
        keys, passed = ("Id", "Title", "Body", "Tags"), "posts that are no questions (PostTypeId {})"
        for line, attributes in self._rows("Posts", keys, QUESTION, passed):
            if not is_whole_number(attributes.get("Id", "")):
                self.odd.note(name, line, "rows without an Id that is a number")
                continue
            number = int(attributes["Id"])
            if not seen.add(number):
                self.odd.note(name, line, "rows that repeat an Id", f"{number}")
            elif row := self._row(number, attributes):
                yield number, row

    def _row(self, number: int, attributes: dict[str, str]) -> Row | None:
        """Return the row of a question, or None when MIRB's rules leave it out."""
        body = attributes.get("Body", "")
        if elements := html.find_elements(body):
            self.left_out[f"questions with {' and '.join(_ELEMENTS[kind] for kind in elements)}"] += 1
            return None
        title, is_title_deep = html.title_to_text(attributes.get("Title", ""))
        text, is_text_deep = html.html_to_text(body)
        if not title and not text:
            self.left_out["questions without text"] += 1
            return None
        row = {"_id": str(number), "title": title, "text": text, "tags": split_tags(attributes.get("Tags", ""))}
        odd = {
            "entities escaped twice (unescaped)": is_title_deep or is_text_deep,
            "no title": not title,
            "no body": not text,
            "no tags": not row["tags"],
        }
        self.left_out.update(f"questions kept although odd: {what}" for what, is_so in odd.items() if is_so)
        return row

    def report(self) -> None:
        sizes = ", ".join(f"{count:,} of {size}" for size, count in self.sizes["by_size"].items())
        say(f"  components of duplicates: {self.sizes['number']:,}; by number of questions: {sizes}")
        say(f"  the largest has {self.sizes['largest']}; its query is {self.sizes['query_of_the_largest']}")
        for example in self.odd.examples:
            say(f"  {example}")


def split_tags(text: str) -> list[str]:
    """Return the tags of a post, in either notation of the dumps."""
    return _TAG.findall(text)


def keep_edges(links: Iterable[tuple[int, int]], kept: Collection[int], left_out: Counter[str]) -> set[tuple[int, int]]:
    """Return the distinct links between two questions that are *kept*; the others are counted in *left_out*."""
    edges: set[tuple[int, int]] = set()
    for source, target in links:
        edge = (min(source, target), max(source, target))
        if source == target:
            left_out["duplicate links from a question to itself"] += 1
        elif source not in kept or target not in kept:
            left_out["duplicate links to or from questions that are missing or left out"] += 1
        elif edge in edges:
            left_out["duplicate links given twice"] += 1
        else:
            edges.add(edge)
    return edges


def draw_queries(
    pairs: Iterable[tuple[int, int]], seed: int, shares: Mapping[str, float]
) -> tuple[dict[str, list[Judgement]], Row]:
    """Return the judgements by split, one random query per connected component, and the sizes of the components."""
    groups = connected_groups(pairs)
    random = np.random.default_rng(seed)
    queries = [group[random.integers(len(group))] for group in groups]
    splits = np.full(len(groups), "test", dtype=object)
    ends = np.cumsum([round(share * len(groups)) for share in shares.values()])
    for split, places in zip(shares, np.split(random.permutation(len(groups)), ends), strict=False):
        splits[places] = split
    judged: dict[str, list[Judgement]] = {}
    for query, group, split in zip(queries, groups, splits, strict=True):
        judged.setdefault(split, []).extend((str(query), str(number), 1) for number in group if number != query)
    lengths = [len(group) for group in groups]
    largest = max(lengths)
    return judged, {
        "number": len(groups),
        "largest": largest,
        "query_of_the_largest": str(queries[lengths.index(largest)]),
        "by_size": {str(size): count for size, count in sorted(Counter(lengths).items())},
    }


class _NumberSet:
    """A set of whole numbers that takes one bit each where they are dense, as the ids of posts are."""

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = {}

    def add(self, number: int) -> bool:
        page, place = divmod(number, 4096)
        bits = self._pages.setdefault(page, bytearray(512))
        is_new = not bits[place >> 3] & 1 << (place & 7)
        bits[place >> 3] |= 1 << (place & 7)
        return is_new
