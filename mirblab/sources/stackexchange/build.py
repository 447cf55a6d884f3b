"""build: a Stack Exchange dump as a collection of questions to their duplicates, or to their answers."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

import numpy as np

from mirblab.core import paths
from mirblab.core.errors import MirblabError, check_known
from mirblab.core.ids import is_whole_number
from mirblab.core.terminal import say
from mirblab.data.beir import DUMP_TAG
from mirblab.sources.shared import builder, html
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row, connected_groups, replace_folders
from mirblab.sources.shared.release import Origin, hash_files
from mirblab.sources.stackexchange import dump

ARCHIVE = "https://archive.org/details/stackexchange"
LICENCE = "CC-BY-SA-4.0; posts before May 2018 3.0, before April 2011 2.5"
PUBLISHED = {"math.stackexchange.com": "mirb-mse-dup", "mathoverflow.net": "mirb-mo-dup"}
VOTES = 7
_SUFFIXES = {"duplicates": "dup", "answers": "answers"}
_QUESTION, _ANSWER = "1", "2"
QUESTION, POST = ("PostTypeId", _QUESTION), ("PostTypeId", _QUESTION, _ANSWER)
LINK_TYPES, DUPLICATE = ("LinkTypeId", "PostLinkTypeId"), "3"  # the releases differ in the name of the type
_ELEMENTS = {"figure": "figures", "link": "links", "table": "tables"}


def build(
    origin: str | Path | None,
    out: Path,
    *,
    relevant: str = "duplicates",
    votes: int = VOTES,
    name: str = "",
    seed: int = 0,
    dev: float = 0.0,
    train: float = 0.0,
) -> list[Path]:
    """Write the collection of a dump under *out* and return its folder.

    With *relevant* "duplicates", as in MIRB's MSE Dup. and MO Dup., questions with figures, links or tables are left
    out; of each connected component of duplicates one question, drawn with *seed*, is the query and the others are
    relevant; all other questions are documents.

    With "answers", as Zhong et al. (Findings of EMNLP 2022) train, the documents are the answers, with the tags of
    their questions; relevant to a question are its accepted answer and those whose Score (votes up minus votes down) is
    above *votes*; a question without one is no query. Their third kind, duplicates, is the other collection. Posts with
    figures, links or tables are kept with their text: without figures and targets, a table as the text of its cells.

    *origin* is a .7z archive or a folder with Posts.xml and, for duplicates, PostLinks.xml, plain or gzipped. *name* ""
    is the site's with `-dup` or `-answers`; *dev* and *train* are shares of the components, or of the queries. Raises
    MirblabError and FileNotFoundError.
    """
    check_known("value of relevant", relevant, _SUFFIXES)
    is_answers = relevant == "answers"
    if origin is None:
        raise MirblabError(
            f"give a site's dump with --from: a .7z archive of {ARCHIVE}, or the folder it unpacks to; --set "
            "relevant=answers makes questions to answers of it, else they are questions to duplicates"
        )
    if min(dev, train) < 0 or dev + train >= 1:
        raise MirblabError(f"dev and train are shares from 0 whose sum is below 1, found {dev} and {train}")
    if not isinstance(votes, int) or votes < 0:
        raise MirblabError(f"votes is a whole number from 0, found {votes!r}")
    if votes != VOTES and not is_answers:
        raise MirblabError(f"votes is {votes}, but duplicates have none; write --set relevant=answers, too")
    files = dump.find_dump(origin, ("Posts",) if is_answers else ("Posts", "PostLinks"))
    name = paths.checked_name(name or default_name(files.site, relevant))
    with replace_folders(Path(out), (name,)) as [folder], contextlib.ExitStack() as stack:

        def new_spool() -> IO[bytes]:
            return stack.enter_context(tempfile.TemporaryFile("w+b", dir=folder.parent))

        shared = (files, new_spool, seed, {"dev": dev, "train": train})
        reading = _Answers(*shared, votes) if is_answers else _Duplicates(*shared)
        # The card is written last, when the reading has filled the sizes and the examples.
        about: Row = {**reading.about(), "examples": reading.odd.examples}
        rows = CollectionRows(reading.corpus(), reading.queries(), reading.judged, reading.left_out)
        source = Origin(files.path, f"{ARCHIVE}, {files.site}", "", files.path.name)
        how = {"builder": "stackexchange", "revision": hash_files(files.paths()), "licence": LICENCE}
        options: Row = {"relevant": relevant, "votes": votes} if is_answers else {}
        options |= {"name": name, "seed": seed, "dev": dev, "train": train}
        builder.write_collection(folder, rows, about, source, options=options, **how)
        reading.report()
        for example in reading.odd.examples:
            say(f"  {example}")
    return [Path(out) / name]


def default_name(site: str, relevant: str = "duplicates") -> str:
    """Return the name of a site's collection.

    >>> default_name("math.stackexchange.com"), default_name("mathoverflow.net", "answers")
    ('math.stackexchange-dup', 'mathoverflow-answers')
    """
    return f"{re.sub(r'[.](com|net)$', '', site)}-{_SUFFIXES[relevant]}"


class _Reading:
    """What both kinds of collections share: posts are read once, and texts wait in a *spool* on disk."""

    def __init__(
        self, files: dump.DumpFiles, new_spool: Callable[[], IO[bytes]], seed: int, shares: dict[str, float]
    ) -> None:
        self.files, self.spool, self.shares = files, new_spool(), shares
        self.seed, self.random = seed, np.random.default_rng(seed)
        self.odd, self.left_out = dump.RowProblems(), Counter[str]()
        self.judged: dict[str, list[Judgement]] = {}
        self.sizes: Row = {}

    def _rows(
        self, stem: str, wanted: tuple[str, ...], only: tuple[str, ...] | None = None, passed: str = "{}"
    ) -> Iterator[tuple[int, dict[str, str]]]:
        with self.files.stream(stem) as stream:
            yield from dump.read_rows(stream, self.files.shown(stem), wanted, self.odd, only)
        self.left_out.update({passed.format(value): count for value, count in self.odd.passed.items()})
        self.odd.passed.clear()

    def _posts(self, keys: tuple[str, ...], only: tuple[str, ...], passed: str) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield number and attributes of each post whose Id is a number that no earlier one has."""
        name, seen = self.files.shown("Posts"), _NumberSet()
        for line, attributes in self._rows("Posts", ("Id", *keys), only, passed):
            if not is_whole_number(attributes.get("Id", "")):
                self.odd.note(name, line, "rows without an Id that is a number")
            elif seen.add(number := int(attributes["Id"])):
                yield number, attributes
            else:
                self.odd.note(name, line, "rows that repeat an Id", f"{number}")

    def _row(self, number: int, attributes: dict[str, str], what: str = "questions") -> Row | None:
        """Return the row of a post, or None when it has no text; what is odd is counted under *what*."""
        title, is_title_deep = html.title_to_text(attributes.get("Title", ""))
        text, is_text_deep = html.html_to_text(attributes.get("Body", ""))
        if not title and not text:
            self.left_out[f"{what} without text"] += 1
            return None
        row = {"_id": str(number), "title": title, "text": text, "tags": split_tags(attributes.get("Tags", ""))}
        odd = {"entities escaped twice (unescaped)": is_title_deep or is_text_deep}
        if what == "questions":
            odd |= {"no title": not title, "no body": not text, "no tags": not row["tags"]}
        self.left_out.update(f"{what} kept although odd: {reason}" for reason, is_so in odd.items() if is_so)
        return row


class _Duplicates(_Reading):
    """One pass over the links, then one over the posts; questions with duplicate links wait in the spool."""

    query_ids: set[str]

    def about(self) -> Row:
        site = self.files.site
        return {
            "title": f"{site}: question to its duplicates",
            **builder.read_task("mirb-mse-dup"),
            **({"follows": PUBLISHED[site]} if site in PUBLISHED else {}),
            "candidates": "tags",
            "seed": self.seed,
            "components": self.sizes,
        }

    def corpus(self) -> Iterator[Row]:
        """Yield the documents; the judgements, sizes and counts are complete after the last one."""
        sources, targets = self._links()
        linked = {*sources, *targets}
        kept: set[int] = set()
        for number, row in self._questions():
            if number in linked:
                kept.add(number)
                _append(self.spool, row)
            else:
                yield row
        pairs = keep_edges(zip(sources, targets, strict=True), kept, self.left_out)
        if not pairs:
            raise MirblabError(
                f"{self.files.path.name}: no two questions that are kept are duplicates of each other, of "
                f"{len(sources):,} duplicate links; do its posts and its links belong together?"
            )
        judged, sizes = draw_queries(pairs, self.random, self.shares)
        self.query_ids = {query for judgements in judged.values() for query, *_ in judgements}
        self.judged.update(judged)
        self.sizes.update(sizes)
        self.left_out.update(self.odd.counts)
        yield from (row for row in _read(self.spool) if row["_id"] not in self.query_ids)

    def queries(self) -> Iterator[Row]:
        yield from (_query(row) for row in _read(self.spool) if row["_id"] in self.query_ids)

    def _links(self) -> tuple[array[int], array[int]]:
        sources, targets = array("q"), array("q")
        keys, name = ("PostId", "RelatedPostId"), self.files.shown("PostLinks")
        for line, row in self._rows("PostLinks", (*keys, *LINK_TYPES)):
            source, target = (row.get(key, "") for key in keys)
            kind = next(filter(None, (row.get(key) for key in LINK_TYPES)), "")
            if not kind:
                self.odd.note(name, line, f"rows without {' or '.join(LINK_TYPES)}")
            elif kind != DUPLICATE:
                self.left_out[f"links that are no duplicates ({LINK_TYPES[0]} {kind})"] += 1
            elif is_whole_number(source) and is_whole_number(target):
                sources.append(int(source))
                targets.append(int(target))
            else:
                self.odd.note(name, line, "rows without PostId and RelatedPostId as numbers")
        return sources, targets

    def _questions(self) -> Iterator[tuple[int, Row]]:
        """Yield number and row of the questions that MIRB's rules keep."""
        keys, passed = ("Title", "Body", "Tags"), "posts that are no questions (PostTypeId {})"
        for number, attributes in self._posts(keys, QUESTION, passed):
            if kinds := _held(attributes):
                self.left_out[f"questions with {kinds}"] += 1
            elif row := self._row(number, attributes):
                yield number, row

    def report(self) -> None:
        sizes = ", ".join(f"{count:,} of {size}" for size, count in self.sizes["by_size"].items())
        say(f"  components of duplicates: {self.sizes['number']:,}; by number of questions: {sizes}")
        say(f"  the largest has {self.sizes['largest']}; its query is {self.sizes['query_of_the_largest']}")


class _Answers(_Reading):
    """One pass over the posts; questions and answers wait in a spool each, since an answer may precede its question.

    In memory are the numbers of both, the accepted answers, scores and tags, as arrays, and in the end the judgements:
    some 600 bytes a question.
    """

    def __init__(
        self,
        files: dump.DumpFiles,
        new_spool: Callable[[], IO[bytes]],
        seed: int,
        shares: dict[str, float],
        votes: int,
    ) -> None:
        super().__init__(files, new_spool, seed, shares)
        self.votes, self.answer_spool = votes, new_spool()
        self.questions, self.accepted = array("q"), array("q")
        self.answers, self.parents, self.scores = array("q"), array("q"), array("q")
        self.tags: dict[str, int] = {}
        self.tags_of_all, self.tag_ends = array("i"), array("q", [0])
        self.is_query = np.empty(0, bool)

    def about(self) -> Row:
        return {
            "title": f"{self.files.site}: question to its accepted answer and those with more than {self.votes} votes",
            **builder.read_task("math.stackexchange-answers"),
            "note": "Of figures, links and tables the texts have the words only.",
            "seed": self.seed,
            "relevant_answers": self.sizes,
        }

    def corpus(self) -> Iterator[Row]:
        """Yield the documents; the judgements, sizes and counts are complete before the first one."""
        keys = ("PostTypeId", "Title", "Body", "Tags", "AcceptedAnswerId", "ParentId", "Score")
        for number, attributes in self._posts(keys, POST, "posts that are no questions and no answers (PostTypeId {})"):
            is_answer = attributes["PostTypeId"] == _ANSWER
            what = "answers" if is_answer else "questions"
            if row := self._row(number, attributes, what):
                if kinds := _held(attributes):
                    self.left_out[f"{what} with {kinds} (kept, with their words only)"] += 1
                (self._hold_answer if is_answer else self._hold_question)(number, attributes, row)
        places = self._judge()
        self.left_out.update(self.odd.counts)
        names = list(self.tags)
        for place, row in zip(places.tolist(), _read(self.answer_spool), strict=True):
            if place >= 0:
                codes = self.tags_of_all[self.tag_ends[place] : self.tag_ends[place + 1]]
                about = {"question": str(self.questions[place])}
                yield row | {"tags": [names[code] for code in codes], "metadata": about}

    def queries(self) -> Iterator[Row]:
        rows = zip(self.is_query.tolist(), _read(self.spool), strict=True)
        yield from (_query(row) for is_query, row in rows if is_query)

    def _hold_question(self, number: int, attributes: dict[str, str], row: Row) -> None:
        self.questions.append(number)
        self.accepted.append(_number(attributes.get("AcceptedAnswerId", "")))
        self.tags_of_all.extend(self.tags.setdefault(tag, len(self.tags)) for tag in row["tags"])
        self.tag_ends.append(len(self.tags_of_all))
        _append(self.spool, row)

    def _hold_answer(self, number: int, attributes: dict[str, str], row: Row) -> None:
        score = attributes.get("Score", "")
        has_score = is_whole_number(score.removeprefix("-"))
        self.left_out["answers kept although odd: no Score that is a number"] += not has_score
        self.answers.append(number)
        self.parents.append(_number(attributes.get("ParentId", "")))
        self.scores.append(int(score) if has_score else 0)
        _append(self.answer_spool, row)

    def _judge(self) -> np.ndarray:
        """Fill the judgements, sizes and counts; return the place of each answer's question, or -1, int64 (answers,).

        Only an answer to the question itself counts as accepted by it.
        """
        questions, answers = np.array(self.questions), np.array(self.answers)
        places = find_places(questions, np.array(self.parents))
        is_accepted = np.append(np.array(self.accepted), -1)[places] == answers
        is_relevant = is_accepted | ((places >= 0) & (np.array(self.scores) > self.votes))
        if not is_relevant.any():
            raise MirblabError(
                f"{self.files.path.name}: of {len(answers):,} answers to {len(questions):,} questions none is accepted "
                f"or has more than {self.votes} votes; --set votes=0 asks for fewer"
            )
        rows = np.flatnonzero(is_relevant)
        rows = rows[np.argsort(places[rows], kind="stable")]
        asked, query_of = np.unique(places[rows], return_inverse=True)
        splits = draw_splits(len(asked), self.random, self.shares)[query_of]
        for split in ("test", *self.shares):
            if len(chosen := rows[splits == split]):
                pairs = zip(questions[places[chosen]].tolist(), answers[chosen].tolist(), strict=True)
                self.judged[split] = [(str(query), str(answer), 1) for query, answer in pairs]
        self.is_query = np.isin(np.arange(len(questions)), asked)
        n_accepted = int(is_accepted.sum())
        self.sizes |= {"votes": self.votes, "accepted": n_accepted, "by_votes_only": len(rows) - n_accepted}
        self.left_out["questions without a relevant answer (no queries)"] = len(questions) - len(asked)
        self.left_out["questions whose accepted answer is missing, left out or another question's"] = (
            int((np.array(self.accepted) >= 0).sum()) - n_accepted
        )
        self.left_out["answers whose question is missing or left out"] = int((places < 0).sum())
        self.left_out["answers that are not relevant to their question (documents without a judgement)"] = int(
            (places >= 0).sum()
        ) - len(rows)
        return places

    def report(self) -> None:
        say(
            f"  relevant answers: {self.sizes['accepted']:,} accepted, {self.sizes['by_votes_only']:,} others with "
            f"more than {self.votes} votes"
        )


def _append(spool: IO[bytes], row: Row) -> None:
    spool.write(json.dumps(row).encode() + b"\n")


def _read(spool: IO[bytes]) -> Iterator[Row]:
    spool.seek(0)
    return map(json.loads, spool)


def _query(row: Row) -> Row:
    return {"_id": row["_id"], "text": f"{row['title']} {row['text']}".strip(), "tags": row["tags"]}


def _held(attributes: dict[str, str]) -> str:
    """Return what a post has besides text: "figures and links", or "" for nothing."""
    return " and ".join(_ELEMENTS[kind] for kind in html.find_elements(attributes.get("Body", "")))


def _number(text: str) -> int:
    """Return the number of a post, or -1 for none."""
    return int(text) if is_whole_number(text) else -1


def find_places(numbers: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the place of each *wanted* number in the distinct *numbers*, or -1, int64 (n_wanted,).

    >>> find_places(np.array([30, 10, 20]), np.array([10, 40, 30, -1])).tolist()
    [1, -1, 0, -1]
    """
    order = np.argsort(numbers)
    places = np.append(order, -1)[np.searchsorted(numbers, wanted, sorter=order)]
    return np.where(np.append(numbers, -1)[places] == wanted, places, -1)


def split_tags(text: str) -> list[str]:
    """Return the tags of a post, in either notation of the dumps."""
    return DUMP_TAG.findall(text)


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
    pairs: Iterable[tuple[int, int]], random: np.random.Generator, shares: Mapping[str, float]
) -> tuple[dict[str, list[Judgement]], Row]:
    """Return the judgements by split, one random query per connected component, and the sizes of the components."""
    groups = connected_groups(pairs)
    queries = [group[random.integers(len(group))] for group in groups]
    splits = draw_splits(len(groups), random, shares)
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


def draw_splits(n: int, random: np.random.Generator, shares: Mapping[str, float]) -> np.ndarray:
    """Return the split of each of *n* queries at random, text (n,): each of *shares* has its share, test the rest."""
    splits = np.full(n, "test", dtype=object)
    ends = np.cumsum([round(share * n) for share in shares.values()])
    for split, places in zip(shares, np.split(random.permutation(n), ends), strict=False):
        splits[places] = split
    return splits


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
