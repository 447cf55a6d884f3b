"""threads: question threads of a Stack Exchange dump or an ARQMath release: question, answers, comments, links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.core.ids import is_whole_number
from mirblab.core.wording import first_names
from mirblab.sources.stackexchange import dump
from mirblab.sources.stackexchange.build import split_tags
from mirblab.sources.stackexchange.dump import DumpFiles

OPTIONAL = ("PostLinks", "Comments", "Votes", "Users", "Tags")
_QUESTION, _ANSWER = "1", "2"
_POST = ("Id", "PostTypeId", "ParentId", "AcceptedAnswerId", "Title", "Body", "Tags", "Score", "CreationDate",
         "OwnerUserId", "OwnerDisplayName")  # fmt: skip
_LINK = ("PostId", "RelatedPostId", "LinkTypeId", "PostLinkTypeId")  # the releases differ in the name of the type
_COMMENT = ("PostId", "Text", "Score", "CreationDate", "UserId", "UserDisplayName")
_KINDS = {"1": ("related", "linked from"), "3": ("duplicate of", "has the duplicate")}
_ACCEPTED, _UP, _DOWN = "1", "2", "3"


@dataclass
class Comment:
    """A comment: `text` is plain, or HTML if it has a formula's container; `user` is a number of Users, or ""."""

    text: str
    score: int | None
    created: str
    user: str
    author: str


@dataclass
class Post:
    """A question or an answer: `body` is HTML; `score` None is unknown; `votes` are (up, down)."""

    id: str
    title: str
    body: str
    tags: list[str]
    score: int | None
    created: str
    user: str
    author: str
    votes: tuple[int, int] | None = None
    comments: list[Comment] = field(default_factory=list)


@dataclass(frozen=True)
class Link:
    """A question that another one is linked with: `title` is HTML or plain as in the dump, "" when it is unknown."""

    id: str
    kind: str
    title: str


@dataclass
class Thread:
    """A question with its answers (the accepted one first, then by score and number), links, and counts of its tags."""

    question: Post
    answers: list[Post] = field(default_factory=list)
    accepted: str = ""
    links: list[Link] = field(default_factory=list)
    tag_counts: dict[str, int] = field(default_factory=dict)


def example_dump() -> Path:
    """Return the folder of the small dump that ships with mirblab.

    >>> [thread.question.id for thread in read_threads(example_dump(), [5])]
    ['5']
    """
    return paths.bundled_path("data", "mini", "threads")


def read_threads(origin: str | Path, ids: Iterable[str | int], odd: dump.RowProblems | None = None) -> list[Thread]:
    """Return the threads of the questions, or of the answers, with these *ids*, each once, in the order of the ids.

    *origin* is a folder with Posts.xml (also gzipped) or a .7z archive; the files `OPTIONAL` are read if they exist.
    Broken rows are noted in *odd*. Raises MirblabError, which names them, for unknown ids.

    >>> [len(thread.answers) for thread in read_threads(example_dump(), [5, 9])]
    [3, 2]
    """
    wanted = list(dict.fromkeys(str(each).strip() for each in ids))
    if bad := [each for each in wanted if not each.isdecimal()]:
        raise MirblabError(f"ids of posts are whole numbers, found '{bad[0]}'")
    if not wanted:
        raise MirblabError("give the ids of the questions whose threads are wanted")
    reading = _Reading(origin, dump.RowProblems() if odd is None else odd)
    reading.posts(set(wanted))
    if reading.parents:
        wanted = list(dict.fromkeys(reading.parents.get(each, each) for each in wanted))
        reading.posts(set(wanted))
    if missing := [each for each in wanted if each not in reading.threads]:
        raise MirblabError(
            f"{reading.shown} has no question and no answer {first_names(missing, 5)}; "
            f"{reading.n_posts:,} posts were read; give ids of this dump"
        )
    reading.add_details()
    return [reading.threads[each] for each in wanted]


class _Reading:
    """The threads collected from a dump's files, and `parents`, the questions of wanted answers."""

    def __init__(self, origin: str | Path, odd: dump.RowProblems) -> None:
        self.files: dict[str, DumpFiles] = {"Posts": dump.find_dump(origin, ("Posts",))}
        self.shown, self.odd, self.n_posts = self.files["Posts"].shown("Posts"), odd, 0
        for stem in OPTIONAL:
            try:
                self.files[stem] = dump.find_dump(origin, (stem,))
            except FileNotFoundError:
                continue  # a release may lack it; the page then says less
        self.threads: dict[str, Thread] = {}
        self.parents: dict[str, str] = {}

    def _rows(self, stem: str, wanted: tuple[str, ...]) -> Iterator[dict[str, str]]:
        if stem in self.files:
            files = self.files[stem]
            with files.stream(stem) as stream:
                for _, row in dump.read_rows(stream, files.shown(stem), wanted, self.odd):
                    yield row

    def posts(self, wanted: set[str]) -> None:
        self.threads, self.parents, self.n_posts = {}, {}, 0
        links, answers, titles = self._links(wanted), dict[str, list[Post]](), dict[str, str]()
        linked = {other for pairs in links.values() for other, _ in pairs}
        for row in self._rows("Posts", _POST):
            self.n_posts += 1
            post_id, kind, parent = row.get("Id", ""), row.get("PostTypeId"), row.get("ParentId", "")
            if kind == _QUESTION and post_id in wanted and post_id not in self.threads:
                self.threads[post_id] = Thread(_post(row), accepted=row.get("AcceptedAnswerId", ""))
            elif kind == _ANSWER and parent in wanted:
                answers.setdefault(parent, []).append(_post(row))
            if kind == _ANSWER and post_id in wanted:
                self.parents[post_id] = parent
            if kind == _QUESTION and post_id in linked:
                titles[post_id] = row.get("Title", "")
        for post_id, thread in self.threads.items():
            thread.answers = answers.get(post_id, [])
            thread.links = [Link(other, kind, titles.get(other, "")) for other, kind in links.get(post_id, ())]

    def _links(self, wanted: set[str]) -> dict[str, list[tuple[str, str]]]:
        """Return id and kind of the distinct links of each question, in the order of the file."""
        links: dict[str, dict[tuple[str, str], None]] = {}
        for row in self._rows("PostLinks", _LINK):
            source, target = row.get("PostId", ""), row.get("RelatedPostId", "")
            kinds = _KINDS.get(row.get("LinkTypeId") or row.get("PostLinkTypeId", ""))
            if kinds and source != target:
                for here, there, kind in ((source, target, kinds[0]), (target, source, kinds[1])):
                    if here in wanted:
                        links.setdefault(here, {})[there, kind] = None
        return {here: list(linked) for here, linked in links.items()}

    def add_details(self) -> None:
        posts = {post.id: post for thread in self.threads.values() for post in (thread.question, *thread.answers)}
        for row in self._rows("Comments", _COMMENT):
            if (post := posts.get(row.get("PostId", ""))) and row.get("Text"):
                more = (row.get(key, "") for key in ("CreationDate", "UserId", "UserDisplayName"))
                post.comments.append(Comment(row["Text"], _number(row.get("Score")), *more))
        self._votes(posts)
        self._authors(posts)
        counts = {row.get("TagName", ""): _number(row.get("Count")) for row in self._rows("Tags", ("TagName", "Count"))}
        for thread in self.threads.values():
            tags = {tag: counts.get(tag) for tag in thread.question.tags}
            thread.tag_counts = {tag: count for tag, count in tags.items() if count is not None}
            thread.answers.sort(key=lambda post: (-(post.score or 0), int(post.id) if is_whole_number(post.id) else 0))
            thread.answers.sort(key=lambda post: post.id != thread.accepted)  # noqa: B023  called at once

    def _votes(self, posts: dict[str, Post]) -> None:
        """Count the votes, which give score and accepted answer where the posts do not."""
        if "Votes" not in self.files:
            return
        counts: Counter[tuple[str, str]] = Counter()
        for row in self._rows("Votes", ("PostId", "VoteTypeId")):
            if row.get("PostId") in posts:
                counts[row["PostId"], row.get("VoteTypeId", "")] += 1
        for post in posts.values():
            post.votes = counts[post.id, _UP], counts[post.id, _DOWN]
            post.score = post.votes[0] - post.votes[1] if post.score is None else post.score
        for thread in self.threads.values():
            chosen = (post.id for post in thread.answers if counts[post.id, _ACCEPTED])
            thread.accepted = thread.accepted or next(chosen, "")

    def _authors(self, posts: dict[str, Post]) -> None:
        signed: list[Post | Comment] = [*posts.values(), *(each for post in posts.values() for each in post.comments)]
        wanted = {each.user for each in signed if each.user}
        rows = self._rows("Users", ("Id", "DisplayName")) if wanted else ()
        names = {row["Id"]: row.get("DisplayName", "") for row in rows if row.get("Id") in wanted}
        for each in signed:
            each.author = names.get(each.user) or each.author


def _post(row: dict[str, str]) -> Post:
    post_id, title, body, tags = (row.get(key, "") for key in ("Id", "Title", "Body", "Tags"))
    created, user, author = (row.get(key, "") for key in ("CreationDate", "OwnerUserId", "OwnerDisplayName"))
    return Post(post_id, title, body, split_tags(tags), _number(row.get("Score")), created, user, author)


def _number(text: str | None) -> int | None:
    return int(text) if text and is_whole_number(text.removeprefix("-")) else None
