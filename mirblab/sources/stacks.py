"""stacks: the Stacks project as collections."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.core.errors import MirblabError
from mirblab.core.terminal import progress
from mirblab.sources.shared import builder, latex, release
from mirblab.sources.shared.builder import CollectionRows, Row
from mirblab.sources.shared.latex import Environment, find_environments

PROVABLE = ("lemma", "proposition", "theorem")
STATEMENTS = ("definition", *PROVABLE)
_OTHERS = ("remark", "remarks", "example", "exercise", "situation")
_INNER = ("proof", "slogan", "reference", "history")
# Coding Style explains the markup with sham statements, and exercises are neither proved nor used.
_LEFT_OUT = ("coding", "exercises")
# No slash: a chapter is a file of the project's own folder.
_CHAPTER = re.compile(r"\\hyperref\[([\w-]+)-section-phantom\]")
URL = "https://github.com/stacks/stacks-project"
LICENCE = "GFDL-1.2-or-later"
SPLITS = ("test", "dev", "train")
Judgement = tuple[str, str, int]


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


def build(origin: str | Path | None, out: Path) -> list[Path]:
    """Write the collections of `COLLECTIONS` under *out*, print what was left out of each, return the folders.

    *origin* is a folder, a .tar.gz, a git URL, or None for a shallow clone of the public repository. The
    folders appear whole and together, in place of older ones; the same input gives the same bytes. Raises
    MirblabError when the origin cannot be had or is no Stacks project. The licence of the texts is the GFDL.
    """
    out = Path(out)
    with release.open_origin(origin, URL) as found, builder.replace_folders(out, tuple(COLLECTIONS)) as folders:
        book = read_book(found.folder)
        for folder in folders:
            derive, about = COLLECTIONS[folder.name]
            parts, content = derive(book), f"blake2b:{book.digest}"
            parts.left_out += book.odd
            about = about | {"content": content}
            builder.write_collection(folder, parts, about, found, builder="stacks", revision=content, licence=LICENCE)
    return [out / name for name in COLLECTIONS]


def read_book(folder: Path) -> Book:
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
        source = latex.drop_environments(latex.strip_comments(text), ("verbatim", "comment"))
        blocks, loose = find_environments(source, (*STATEMENTS, *_OTHERS, *_INNER), self.odd)
        if stem in _LEFT_OUT:
            self.odd["chapters left out (coding, exercises)"] += 1
            named = [*loose, *(label for block in blocks for label in block.labels)]
            self.places |= {f"{stem}-{label}": "chapters left out" for label in named}
            return
        self.places |= {f"{stem}-{label}": "sections, or equations outside items" for label in loose}
        heading = re.search(r"\\title\s*(?=\{)", source)
        brace = heading.end() if heading else -1
        title = latex.latex_to_prose(source[brace : latex.find_closing_brace(source, brace) + 1]) if heading else stem
        items: dict[int, Item] = {}
        last: Environment | None = None
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

    def _item(self, block: Environment, source: str, stem: str, chapter: str) -> Item | None:
        own = next((label for label in block.labels if label.startswith(f"{block.kind}-")), (block.labels or [""])[0])
        full, content, is_statement = f"{stem}-{own}", block.content(source), block.kind in STATEMENTS
        text = latex.latex_to_prose(content, self.odd) if is_statement else ""
        broken = {"without a label": not own, "whose label is taken": full in self.places}
        broken["without text"] = is_statement and not text
        if any(broken.values()):
            reason = next(what for what, is_so in broken.items() if is_so)
            self.odd[f"items {reason}: {block.kind}"] += 1
            return None
        self.odd["statements without a tag (their label is the id)"] += is_statement and full not in self.tags
        title = latex.latex_to_prose(block.option, self.odd) if is_statement else ""
        item = Item(block.kind, stem, chapter, len(self.items), full, self.tags.get(full, full), title, text)
        slogans = [
            latex.latex_to_prose(inner.content(source), self.odd) for inner in block.inner if inner.kind == "slogan"
        ]
        item.references, item.slogans = latex.find_references(content), [slogan for slogan in slogans if slogan]
        self.items.append(item)
        for label in block.labels:
            self.places.setdefault(f"{stem}-{label}", item)
        return item

    def _proof(self, block: Environment, source: str, stem: str, owner: Item | None) -> None:
        content = block.content(source)
        proof = Proof(latex.latex_to_prose(content, self.odd), latex.find_references(content), stem)
        self.proofs.append((proof, latex.find_references(block.option), owner))

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


def _owner(block: Environment, last: Environment | None, items: dict[int, Item]) -> Item | None:
    """Return the statement that a proof stands in, or else the last item before it in the same section."""
    if block.parent is not None and id(block.parent) in items:
        return items[id(block.parent)]
    return items.get(id(last)) if last is not None and last.section == block.section else None


def _answers(book: Book) -> CollectionRows:
    """Return statement to proof: trivial proofs out, equal texts once, no query whose proof another one shares."""
    left_out: Counter[str] = Counter()
    items = {item.id: item for item in _statements(book, PROVABLE)}
    left_out["statements without a proof"] = sum(not item.proofs for item in items.values())
    proofs = [(item.id, n, proof.text) for item in items.values() for n, proof in enumerate(item.proofs, 1)]
    documents, judged, shared = builder.merge_proofs(proofs, left_out)
    left_out["statements whose proof another one shares (documents, no queries)"] = len(shared)
    corpus = [_row(name, "", text, items[statement]) for name, (statement, text) in documents.items()]
    judged = {statement: names for statement, names in judged.items() if statement not in shared}
    return _parts(book, corpus, judged, left_out)


def _earlier(book: Book) -> CollectionRows:
    """Return `_premises` without the judgements that the rule "earlier" would put out of reach.

    A collection of its own, since the same name must not stand for two tasks in tables and in stored runs.
    """
    parts = _premises(book)
    order = {item.id: item.order for item in book.items}
    asked: set[str] = set()
    for split, pairs in parts.judged.items():
        kept = [pair for pair in pairs if order[pair[1]] < order[pair[0]]]
        asked |= {query for query, *_ in kept}
        parts.judged[split] = kept
        parts.left_out["judgements of a statement that stands later (the rule would hide it)"] += len(pairs) - len(kept)
    queries = list(parts.queries)
    parts.queries = [row for row in queries if row["_id"] in asked]
    parts.left_out["statements all of whose premises stand later (documents, no queries)"] = len(queries) - len(asked)
    return parts


def _premises(book: Book) -> CollectionRows:
    """Return statement to the statements that its proofs refer to; a label inside a statement counts for it."""
    left_out: Counter[str] = Counter()
    judged: dict[str, list[str]] = {}
    for item in _statements(book, PROVABLE):
        places = [book.find(label, proof.stem) for proof in item.proofs for label in proof.references]
        left_out.update(reason for place in places if (reason := _no_premise(place, item)))
        judged[item.id] = list(dict.fromkeys(place.id for place in places if not _no_premise(place, item)))
    left_out["statements whose proof names no premise (documents, no queries)"] = list(judged.values()).count([])
    return _parts(book, _corpus(book), judged, left_out)


def _slogans(book: Book) -> CollectionRows:
    """Return slogan to statement; all slogans are test queries."""
    stated = _statements(book, STATEMENTS)
    left_out = Counter(f"slogans of items of the kind {item.kind}" for item in book.items if item.slogans)
    for kind in STATEMENTS:
        del left_out[f"slogans of items of the kind {kind}"]
    queries: list[Row] = []
    pairs: list[Judgement] = []
    for item in stated:
        for number, slogan in enumerate(item.slogans, 1):
            name = f"{item.id}-slogan" + (f"-{number}" if number > 1 else "")
            queries.append({"_id": name, "text": slogan, "metadata": _metadata(item)})
            pairs.append((name, item.id, 1))
    return CollectionRows(_corpus(book), queries, {"test": pairs}, left_out)


def _parts(book: Book, corpus: list[Row], judged: dict[str, list[str]], left_out: Counter[str]) -> CollectionRows:
    """Return the collection whose queries are the provable statements with a judgement, split by `split_by_leaves`."""
    asked = [item for item in _statements(book, PROVABLE) if judged.get(item.id)]
    queries = [{"_id": item.id, "text": _named(item), "metadata": _metadata(item)} for item in asked]
    pairs: dict[str, list[Judgement]] = {split: [] for split in SPLITS}
    where = split_by_leaves(book)
    for item in asked:
        pairs[where[item.id]] += [(item.id, doc_id, 1) for doc_id in judged[item.id]]
    return CollectionRows(corpus, queries, pairs, left_out)


def split_by_leaves(book: Book) -> dict[str, str]:
    """Return the split of each provable statement: test, dev or train.

    The rule of NaturalProofs (Welleck et al., NeurIPS 2021): evaluation uses the leaves of the reference graph,
    here statements to which no other item refers and whose proof uses a statement. Ordered by the md5 of their
    id, the first half of the leaves is test and the second dev; the rest is train.
    """
    used: set[str] = set()
    users: set[str] = set()
    for item in book.items:
        in_proofs = [book.find(label, proof.stem) for proof in item.proofs for label in proof.references]
        in_text = [book.find(label, item.stem) for label in item.references]
        used |= {place.id for place in (*in_proofs, *in_text) if isinstance(place, Item) and place is not item}
        users |= {item.id for place in in_proofs if not _no_premise(place, item)}
    leaves = sorted(users - used, key=lambda name: hashlib.md5(name.encode(), usedforsecurity=False).digest())
    half = (len(leaves) + 1) // 2
    evaluated = {name: "test" if place < half else "dev" for place, name in enumerate(leaves)}
    return {item.id: evaluated.get(item.id, "train") for item in _statements(book, PROVABLE)}


def _no_premise(place: Item | str, item: Item) -> str:
    """Return why a reference in the proof of *item* names no premise, or "" when it names one."""
    if isinstance(place, str):
        return f"references in proofs to labels of {place}"
    if place is item:
        return "references in proofs to the statement itself"
    return "" if place.kind in STATEMENTS else f"references in proofs to items of the kind {place.kind}"


def _corpus(book: Book) -> list[Row]:
    return [_row(item.id, item.title, item.text, item) for item in _statements(book, STATEMENTS)]


def _statements(book: Book, kinds: tuple[str, ...]) -> list[Item]:
    return [item for item in book.items if item.kind in kinds]


def _row(name: str, title: str, text: str, item: Item) -> Row:
    return {"_id": name, "title": title, "text": text, "metadata": {**_metadata(item), "label": item.label}}


def _metadata(item: Item) -> Row:
    return {"order": item.order, "kind": item.kind, "tag": item.id, "chapter": item.chapter}


def _named(item: Item) -> str:
    """Return the statement as a query, its name first when it has one."""
    return f"{item.title.rstrip('.')}. {item.text}" if item.title else item.text


COLLECTIONS: dict[str, tuple[Callable[[Book], CollectionRows], Row]] = {
    "stacks-qa": (
        _answers,
        {
            "title": "Stacks project: statement to its proof",
            "follows": "mirb-stacks-qa",
            "task": "Question-Answer Retrieval",
            "instruction": "Given a math theorem, retrieve its proof.",
        },
    ),
    "stacks-premise": (
        _premises,
        {
            "title": "Stacks project: statement to the statements that its proof uses",
            "task": "Premise Retrieval",
            "instruction": "Given a math theorem, retrieve useful references, such as theorems, lemmas, and "
            "definitions, that are useful for proving the given theorem.",
            "candidates": "not-self",
        },
    ),
    "stacks-premise-earlier": (
        _earlier,
        {
            "title": "Stacks project: statement to the earlier statements that its proof uses",
            "task": "Premise Retrieval",
            "instruction": "Given a math theorem, retrieve useful references, such as theorems, lemmas, and "
            "definitions, that are useful for proving the given theorem.",
            "candidates": "earlier",
        },
    ),
    "stacks-slogan": (
        _slogans,
        {
            "title": "Stacks project: slogan to the statement that it tells",
            "task": "Semantic Statement Retrieval",
            "instruction": "Given a mathematical query, retrieve relevant theorems.",
        },
    ),
}
