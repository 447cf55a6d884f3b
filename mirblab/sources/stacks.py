"""stacks: the Stacks project as collections."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from mirblab.core.errors import MirblabError
from mirblab.core.terminal import progress
from mirblab.core.wording import first_names
from mirblab.sources.shared import builder, latex, release
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row
from mirblab.sources.shared.latex import Environment, find_environments

PROVABLE = ("lemma", "proposition", "theorem")
STATEMENTS = ("definition", *PROVABLE)
_OTHERS = ("remark", "remarks", "example", "exercise", "situation")
_INNER = ("proof", "slogan", "reference", "history")
# Coding Style explains the markup with invented statements, and exercises are neither proved nor used.
_LEFT_OUT = ("coding", "exercises")
# No slash, because a chapter is a file in the project's folder.
_CHAPTER = re.compile(r"\\hyperref\[([\w-]+)-section-phantom\]")
URL = "https://github.com/stacks/stacks-project"
LICENCE = "GFDL-1.2-or-later"
SPLITS = ("test", "dev", "train")


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
    """All items in order, the item (or a description) of each label; `proofs` until they are assigned."""

    tags: dict[str, str]
    odd: Counter[str]
    items: list[Item] = field(default_factory=list)
    places: dict[str, Item | str] = field(default_factory=dict)
    proofs: list[tuple[Proof, list[str], Item | None]] = field(default_factory=list)

    def find(self, label: str, stem: str) -> Item | str:
        """Return the item that *label* means in the chapter *stem*, or a description of what it labels instead."""
        return self.places.get(f"{stem}-{label}") or self.places.get(label) or "nothing (they do not exist)"

    def read_chapter(self, stem: str, text: str) -> None:
        """Read the items, proofs and labels of one chapter."""
        source = latex.drop_environments(latex.strip_comments(text), ("verbatim", "comment"))
        blocks, loose, _ = find_environments(source, (*STATEMENTS, *_OTHERS, *_INNER), self.odd)
        if stem in _LEFT_OUT:
            self.odd["chapters left out (coding, exercises)"] += 1
            labels = [*loose, *(label for block in blocks for label in block.labels)]
            self.places |= {f"{stem}-{label}": "chapters left out" for label in labels}
            return
        self.places |= {f"{stem}-{label}": "sections, or equations outside items" for label in loose}
        heading = re.search(r"\\title\s*(?=\{)", source)
        closing = latex.match_braces(source).get(heading.end(), -1) if heading else -1
        title = latex.latex_to_prose(source[heading.end() : closing + 1]) if heading else stem
        items: dict[int, Item] = {}
        last: Environment | None = None
        for block in blocks:
            if block.kind == "proof":
                content, named = block.content(source), latex.find_references(block.option)
                proof = Proof(latex.latex_to_prose(content, self.odd), latex.find_references(content), stem)
                self.proofs.append((proof, named, _owner(block, last, items)))
            elif block.kind == "slogan":
                self.odd["slogans outside items"] += id(block.parent) not in items
            elif block.kind not in _INNER:
                item = self._item(block, source, stem, title)
                items |= {id(block): item} if item else {}
                last = last if block.kind in ("remark", "remarks") else block
            for label in block.labels if block.kind in _INNER else ():
                self.places.setdefault(f"{stem}-{label}", "proofs")

    def _item(self, block: Environment, source: str, stem: str, chapter: str) -> Item | None:
        kind, label = block.kind, (block.labels or [""])[0]
        label = next((name for name in block.labels if name.startswith(f"{kind}-")), label)
        full, content, is_statement = f"{stem}-{label}", block.content(source), kind in STATEMENTS
        text = latex.latex_to_prose(content, self.odd) if is_statement else ""
        for reason, is_so in (
            ("without a label", not label),
            ("whose label is taken", full in self.places),
            ("without text", is_statement and not text),
        ):
            if is_so:
                self.odd[f"items {reason}: {kind}"] += 1
                return None
        self.odd["statements without a tag (their label is the id)"] += is_statement and full not in self.tags
        title = latex.latex_to_prose(block.option, self.odd) if is_statement else ""
        item = Item(kind, stem, chapter, len(self.items), full, self.tags.get(full, full), title, text)
        item.references = latex.find_references(content)
        slogans = [inner.content(source) for inner in block.inner if inner.kind == "slogan"]
        item.slogans = list(filter(None, (latex.latex_to_prose(slogan, self.odd) for slogan in slogans)))
        self.items.append(item)
        for label in block.labels:
            self.places.setdefault(f"{stem}-{label}", item)
        return item

    def assign_proofs(self) -> None:
        """Give every proof to the statements that its heading names, else to the one before it; needs all labels."""
        for proof, named, owner in self.proofs:
            targets = [self.find(label, proof.stem) for label in dict.fromkeys(named)] if named else [owner]
            owners = [target for target in targets if isinstance(target, Item) and target.kind in PROVABLE]
            for item in owners:
                item.proofs.append(proof)
            self.odd["proofs of no statement"] += not owners


def build(origin: str | Path | None, out: Path) -> list[Path]:
    """Write the collections of `COLLECTIONS` under *out* and return their folders.

    *origin* is a folder, a .tar.gz or .zip, a git URL, or None for a shallow clone of the public repository.
    """
    out = Path(out)
    with release.open_origin(origin, URL) as opened, builder.replace_folders(out, tuple(COLLECTIONS)) as folders:
        book, digest = read_book(opened.folder)
        for folder in folders:
            parts = COLLECTIONS[folder.name](book)
            parts.left_out += book.odd
            about = builder.read_about(folder.name) | {"content": digest}
            builder.write_collection(folder, parts, about, opened, builder="stacks", revision=digest, licence=LICENCE)
    return [out / name for name in COLLECTIONS]


def read_book(folder: Path) -> tuple[Book, str]:
    """Return the book in *folder* (or in a folder in it) and a hash of its files; MirblabError for missing ones."""
    root, odd, digest = _root(folder), Counter[str](), hashlib.blake2b(digest_size=16)
    chapters = _read(root / "chapters.tex", digest)
    tags = _tags(_read(root / "tags" / "tags", digest), odd)
    stems = list(dict.fromkeys(_CHAPTER.findall(latex.strip_comments(chapters))))
    present = [stem for stem in stems if os.path.isfile(root / f"{stem}.tex")]
    if not present:
        raise MirblabError(f"{root}: chapters.tex names {len(stems)} chapters, and no file of them is there")
    odd["chapters in chapters.tex without a file"] += len(stems) - len(present)
    book = Book(tags, odd)
    with progress(len(present), "reading chapters", "chapter") as bar:
        for stem in present:
            book.read_chapter(stem, _read(root / f"{stem}.tex", digest))
            bar.update(1)
    book.assign_proofs()
    return book, f"blake2b:{digest.hexdigest()}"


def _root(folder: Path) -> Path:
    inside = sorted(path for path in folder.iterdir() if path.is_dir())
    for root in (folder, *inside):
        if (root / "chapters.tex").is_file() and (root / "tags" / "tags").is_file():
            return root
    names = first_names(sorted(path.name for path in folder.iterdir()), 8)
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


def _owner(block: Environment, last: Environment | None, items: dict[int, Item]) -> Item | None:
    """Return the statement around a proof, else the last item before it in the same section."""
    if block.parent is not None and id(block.parent) in items:
        return items[id(block.parent)]
    return items.get(id(last)) if last is not None and last.section == block.section else None


def _answers(book: Book) -> CollectionRows:
    """Return statement to proof, without trivial proofs and queries that share a proof; equal proofs are one."""
    left_out: Counter[str] = Counter()
    items = {item.id: item for item in _statements(book, PROVABLE)}
    left_out["statements without a proof"] = sum(not item.proofs for item in items.values())
    proofs = {name: [proof.text for proof in item.proofs] for name, item in items.items()}
    corpus, judged, shared = builder.merge_proofs(proofs, lambda name: _document_metadata(items[name]), left_out)
    left_out["statements whose proof another one shares (documents, no queries)"] = len(shared)
    return _split_collection(book, corpus, {name: judged[name] for name in judged if name not in shared}, left_out)


def _earlier(book: Book) -> CollectionRows:
    """Return `_premises` with earlier premises only; a separate collection, because runs are stored by its name."""
    parts = _premises(book)
    order = {item.id: item.order for item in book.items}
    query_ids: set[str] = set()
    for split, pairs in parts.judged.items():
        kept = [pair for pair in pairs if order[pair[1]] < order[pair[0]]]
        query_ids |= {query for query, *_ in kept}
        parts.judged[split] = kept
        parts.left_out["judgements of a statement that stands later (the rule would hide it)"] += len(pairs) - len(kept)
    queries = list(parts.queries)
    parts.queries = [row for row in queries if row["_id"] in query_ids]
    n_lost = len(queries) - len(query_ids)
    parts.left_out["statements all of whose premises stand later (documents, no queries)"] = n_lost
    return parts


def _premises(book: Book) -> CollectionRows:
    """Return statement to the statements that its proofs refer to; a label inside a statement counts for it."""
    left_out: Counter[str] = Counter()
    judged: dict[str, list[str]] = {}
    for item in _statements(book, PROVABLE):
        premises, others = _proof_references(book, item)
        left_out.update(others)
        judged[item.id] = list(dict.fromkeys(premise.id for premise in premises))
    left_out["statements whose proof names no premise (documents, no queries)"] = list(judged.values()).count([])
    return _split_collection(book, _corpus(book), judged, left_out)


def _slogans(book: Book) -> CollectionRows:
    others = [item.kind for item in book.items if item.slogans and item.kind not in STATEMENTS]
    queries: list[Row] = []
    pairs: list[Judgement] = []
    for item in _statements(book, STATEMENTS):
        for number, slogan in enumerate(item.slogans, 1):
            name = f"{item.id}-slogan" + (f"-{number}" if number > 1 else "")
            queries.append({"_id": name, "text": slogan, "metadata": _metadata(item)})
            pairs.append((name, item.id, 1))
    left_out = Counter(f"slogans of items of the kind {kind}" for kind in others)
    return CollectionRows(_corpus(book), queries, {"test": pairs}, left_out)


def _split_collection(
    book: Book, corpus: list[Row], judged: dict[str, list[str]], left_out: Counter[str]
) -> CollectionRows:
    """Return the collection whose queries are the provable statements with a judgement, split by `split_by_leaves`."""
    queries: list[Row] = []
    pairs: dict[str, list[Judgement]] = {split: [] for split in SPLITS}
    split_of = split_by_leaves(book)
    for item in _statements(book, PROVABLE):
        if judged.get(item.id):
            text = builder.title_before_text(item.title, item.text)
            queries.append({"_id": item.id, "text": text, "metadata": _metadata(item)})
            pairs[split_of[item.id]] += [(item.id, doc_id, 1) for doc_id in judged[item.id]]
    return CollectionRows(corpus, queries, pairs, left_out)


def split_by_leaves(book: Book) -> dict[str, str]:
    """Return the split of each provable statement by the rule of NaturalProofs (Welleck et al., NeurIPS 2021).

    Leaves (statements that use one and are used by none) are half test, half dev, by md5 of ids; the rest is train.
    """
    used: set[str] = set()
    users: set[str] = set()
    for item in book.items:
        in_proofs = [book.find(label, proof.stem) for proof in item.proofs for label in proof.references]
        in_text = [book.find(label, item.stem) for label in item.references]
        used |= {other.id for other in (*in_proofs, *in_text) if isinstance(other, Item) and other is not item}
        users |= {item.id} if _proof_references(book, item)[0] else set()
    leaves = sorted(users - used, key=lambda name: hashlib.md5(name.encode(), usedforsecurity=False).digest())
    half = (len(leaves) + 1) // 2
    evaluated = dict.fromkeys(leaves[:half], "test") | dict.fromkeys(leaves[half:], "dev")
    return {item.id: evaluated.get(item.id, "train") for item in _statements(book, PROVABLE)}


def _proof_references(book: Book, item: Item) -> tuple[list[Item], list[str]]:
    """Return the statements that the proofs of *item* refer to, and why the other references name no premise."""
    premises: list[Item] = []
    others: list[str] = []
    for target in (book.find(label, proof.stem) for proof in item.proofs for label in proof.references):
        if isinstance(target, str):
            others.append(f"references in proofs to labels of {target}")
        elif target is item:
            others.append("references in proofs to the statement itself")
        elif target.kind not in STATEMENTS:
            others.append(f"references in proofs to items of the kind {target.kind}")
        else:
            premises.append(target)
    return premises, others


def _statements(book: Book, kinds: tuple[str, ...]) -> list[Item]:
    return [item for item in book.items if item.kind in kinds]


def _corpus(book: Book) -> list[Row]:
    return [
        {"_id": item.id, "title": item.title, "text": item.text, "metadata": _document_metadata(item)}
        for item in _statements(book, STATEMENTS)
    ]


def _metadata(item: Item) -> Row:
    return {"order": item.order, "kind": item.kind, "tag": item.id, "chapter": item.chapter}


def _document_metadata(item: Item) -> Row:
    return {**_metadata(item), "label": item.label}


COLLECTIONS = {
    "stacks-qa": _answers,
    "stacks-premise": _premises,
    "stacks-premise-earlier": _earlier,
    "stacks-slogan": _slogans,
}
