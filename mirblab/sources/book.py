"""book: the chapters of the Stacks project as items (statements, remarks, …) with proofs, slogans and references."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.errors import MirblabError
from mirblab.progress import progress
from mirblab.sources import latex, unprinted
from mirblab.sources.environments import Block, scan

PROVABLE = ("lemma", "proposition", "theorem")
STATEMENTS = ("definition", *PROVABLE)
_OTHERS = ("remark", "remarks", "example", "exercise", "situation")
_INNER = ("proof", "slogan", "reference", "history")
# Coding Style explains the markup with sham statements, and exercises are neither proved nor used.
_LEFT_OUT = ("coding", "exercises")
# No slash: a chapter is a file of the project's own folder.
_CHAPTER = re.compile(r"\\hyperref\[([\w-]+)-section-phantom\]")


@dataclass
class Proof:
    """The cleaned text of a proof and the labels that it refers to, as written in the chapter `stem`."""

    text: str
    references: list[str]
    stem: str


@dataclass(eq=False)
class Item:
    """A numbered item of the book: a statement, or a remark, example, exercise or situation."""

    kind: str
    stem: str
    chapter: str
    order: int
    label: str
    id: str
    title: str
    text: str
    references: list[str] = field(default_factory=list)
    slogans: list[str] = field(default_factory=list)
    proofs: list[Proof] = field(default_factory=list)


@dataclass
class Book:
    """All items in the order of the book, where each label stands, a hash of the files read, and what was odd."""

    items: list[Item]
    places: dict[str, Item | str]
    digest: str
    odd: Counter[str]

    def find(self, label: str, stem: str) -> Item | str:
        """Return the item in which *label*, used in the chapter *stem*, stands, or words for what it labels instead."""
        return self.places.get(f"{stem}-{label}") or self.places.get(label) or "nothing (they do not exist)"


def read(folder: Path) -> Book:
    """Read a checkout of the Stacks project, whose root is *folder* or a folder in it, in the order of chapters.tex.

    Raises MirblabError when chapters.tex, tags/tags or every chapter is missing, and for text that is not UTF-8.
    """
    root, odd, digest = _root(folder), Counter[str](), hashlib.blake2b(digest_size=16)
    chapters = _read(root / "chapters.tex", digest)
    tags = _tags(_read(root / "tags" / "tags", digest), odd)
    stems = list(dict.fromkeys(_CHAPTER.findall(latex.strip_comments(chapters))))
    found = [stem for stem in stems if (root / f"{stem}.tex").is_file()]
    if not found:
        raise MirblabError(f"{root}: chapters.tex names {len(stems)} chapters, and no file of them is there")
    odd["chapters in chapters.tex without a file"] += len(stems) - len(found)
    reader = _Reader(tags, odd)
    with progress(len(found), "reading chapters", "chapter") as bar:
        for stem in found:
            reader.chapter(stem, _read(root / f"{stem}.tex", digest))
            bar.update(1)
    return reader.book(digest.hexdigest())


def _root(folder: Path) -> Path:
    inside = sorted(path for path in folder.iterdir() if path.is_dir())
    for root in (folder, *inside):
        if (root / "chapters.tex").is_file() and (root / "tags" / "tags").is_file():
            return root
    names = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
    raise MirblabError(
        f"{folder.name} is no Stacks project: looked for chapters.tex and tags/tags in it and in the folders "
        f"directly inside; found {names}; get it with: git clone https://github.com/stacks/stacks-project"
    )


def _read(path: Path, digest: hashlib.blake2b) -> str:
    raw = path.read_bytes()
    digest.update(f"{path.name} {len(raw)}\n".encode() + raw)
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise MirblabError(f"{path.name}, line {line}: not UTF-8; take the files of the git repository") from error


def _tags(text: str, odd: Counter[str]) -> dict[str, str]:
    """Return label to tag; lines of tags/tags are `tag,label`, or comments."""
    tags: dict[str, str] = {}
    taken: set[str] = set()
    for line in filter(None, (line.strip() for line in text.splitlines() if not line.startswith("#"))):
        tag, comma, label = (part.strip() for part in line.partition(","))
        if not (tag and comma and label) or tag in taken or label in tags:
            odd["lines of tags/tags that are not 'tag,label', or repeat a tag or label"] += 1
            continue
        taken.add(tag)
        tags[label] = tag
    return tags


class _Reader:
    """Collects items chapter by chapter; proofs find their statements at the end, when all labels are known."""

    def __init__(self, tags: dict[str, str], odd: Counter[str]) -> None:
        self.tags, self.odd = tags, odd
        self.items: list[Item] = []
        self.places: dict[str, Item | str] = {}
        self.proofs: list[tuple[Proof, list[str], Item | None]] = []

    def chapter(self, stem: str, text: str) -> None:
        """Read one chapter: its items, its proofs, and where its labels stand."""
        source = unprinted.without(latex.strip_comments(text), ("verbatim", "comment"))
        blocks, loose = scan(source, (*STATEMENTS, *_OTHERS, *_INNER), self.odd)
        if stem in _LEFT_OUT:
            self.odd["chapters left out (coding, exercises)"] += 1
            named = [*loose, *(label for block in blocks for label in block.labels)]
            self.places |= {f"{stem}-{label}": "chapters left out" for label in named}
            return
        self.places |= {f"{stem}-{label}": "sections, or equations outside items" for label in loose}
        heading = re.search(r"\\title\s*(?=\{)", source)
        brace = heading.end() if heading else -1
        title = latex.clean(source[brace : latex.closing_brace(source, brace) + 1]) if heading else stem
        items: dict[int, Item] = {}
        last: Block | None = None
        for block in blocks:
            if block.kind == "proof":
                self._proof(block, source, stem, _owner(block, last, items))
            elif block.kind == "slogan":
                self.odd["slogans outside items"] += id(block.parent) not in items
            elif block.kind not in _INNER:
                item = self._item(block, source, stem, title)
                items |= {id(block): item} if item else {}
                last = last if block.kind in ("remark", "remarks") else block
            for label in block.labels if block.kind in _INNER else ():
                self.places.setdefault(f"{stem}-{label}", "proofs")

    def _item(self, block: Block, source: str, stem: str, chapter: str) -> Item | None:
        own = next((label for label in block.labels if label.startswith(f"{block.kind}-")), (block.labels or [""])[0])
        full, content, is_statement = f"{stem}-{own}", block.content(source), block.kind in STATEMENTS
        text = latex.clean(content, self.odd) if is_statement else ""
        broken = {"without a label": not own, "whose label is taken": full in self.places}
        broken["without text"] = is_statement and not text
        if any(broken.values()):
            reason = next(what for what, is_so in broken.items() if is_so)
            self.odd[f"items {reason}: {block.kind}"] += 1
            return None
        self.odd["statements without a tag (their label is the id)"] += is_statement and full not in self.tags
        title = latex.clean(block.option, self.odd) if is_statement else ""
        item = Item(block.kind, stem, chapter, len(self.items), full, self.tags.get(full, full), title, text)
        slogans = [latex.clean(inner.content(source), self.odd) for inner in block.inner if inner.kind == "slogan"]
        item.references, item.slogans = latex.references(content), [slogan for slogan in slogans if slogan]
        self.items.append(item)
        for label in block.labels:
            self.places.setdefault(f"{stem}-{label}", item)
        return item

    def _proof(self, block: Block, source: str, stem: str, owner: Item | None) -> None:
        content = block.content(source)
        proof = Proof(latex.clean(content, self.odd), latex.references(content), stem)
        self.proofs.append((proof, latex.references(block.option), owner))

    def book(self, digest: str) -> Book:
        """Give every proof to the statements that its heading names, else to the statement before it."""
        book = Book(self.items, self.places, digest, self.odd)
        for proof, named, owner in self.proofs:
            places = [book.find(label, proof.stem) for label in dict.fromkeys(named)] if named else [owner]
            owners = [place for place in places if isinstance(place, Item) and place.kind in PROVABLE]
            for item in owners:
                item.proofs.append(proof)
            self.odd["proofs of no statement"] += not owners
        return book


def _owner(block: Block, last: Block | None, items: dict[int, Item]) -> Item | None:
    """Return the statement that a proof stands in, or else the last item before it in the same section."""
    if block.parent is not None and id(block.parent) in items:
        return items[id(block.parent)]
    return items.get(id(last)) if last is not None and last.section == block.section else None
