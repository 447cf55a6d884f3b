"""stacks: the Stacks project's LaTeX to statement and proof, statement and premises (twice), slogan and statement."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from mirblab.sources import book as books
from mirblab.sources import origin as origins
from mirblab.sources import shape
from mirblab.sources.book import PROVABLE, STATEMENTS, Book, Item
from mirblab.sources.shape import Parts, Row, folded

URL = "https://github.com/stacks/stacks-project"
LICENCE = "GFDL-1.2-or-later"
SPLITS = ("test", "dev", "train")
Judgement = tuple[str, str, int]


def build(origin: str | Path | None, out: Path) -> list[Path]:
    """Write the collections of `COLLECTIONS` under *out*, print what was left out of each, return the folders.

    *origin* is a folder, a .tar.gz, a git URL, or None for a shallow clone of the public repository. The
    folders appear whole and together, in place of older ones; the same input gives the same bytes. Raises
    MirblabError when the origin cannot be had or is no Stacks project. The licence of the texts is the GFDL.
    """
    out = Path(out)
    with origins.opened(origin, URL) as found, origins.together(out, tuple(COLLECTIONS)) as folders:
        book = books.read(found.folder)
        for folder in folders:
            derive, about = COLLECTIONS[folder.name]
            parts, content = derive(book), f"blake2b:{book.digest}"
            parts.left_out += book.odd
            about = about | {"content": content}
            shape.save(folder, parts, about, found, builder="stacks", revision=content, licence=LICENCE)
    return [out / name for name in COLLECTIONS]


def _answers(book: Book) -> Parts:
    """Return statement to proof: trivial proofs out, equal texts once, no query whose proof another one shares."""
    left_out: Counter[str] = Counter()
    texts: dict[str, list[Item]] = {}
    ids: dict[str, str] = {}
    corpus: list[Row] = []
    for item in _statements(book, PROVABLE):
        left_out["statements without a proof"] += not item.proofs
        for number, proof in enumerate(item.proofs, 1):
            key = folded(proof.text)
            if is_trivial(proof.text):
                left_out["proofs under six words, or omitted"] += 1
            elif key in texts:
                texts[key].append(item)
                left_out["proofs with the text of another one (merged)"] += 1
            else:
                texts[key], ids[key] = [item], f"{item.id}-proof" + (f"-{number}" if number > 1 else "")
                corpus.append(_row(ids[key], "", proof.text, item))
    shared = {item.id for items in texts.values() if len({item.id for item in items}) > 1 for item in items}
    left_out["statements whose proof another one shares (documents, no queries)"] = len(shared)
    judged = {
        item.id: list(dict.fromkeys(ids[key] for proof in item.proofs if (key := folded(proof.text)) in ids))
        for item in _statements(book, PROVABLE)
        if item.id not in shared
    }
    return _parts(book, corpus, judged, left_out)


def is_trivial(proof: str) -> bool:
    """Return whether a proof says nothing: under six words, or it begins with "Omitted".

    >>> is_trivial("Omitted. Hint: use Lemma [ref] and induction on $n$.")
    True
    """
    return len(proof.split()) < 6 or proof.lower().startswith("omitted")


def _premises(book: Book) -> Parts:
    """Return statement to the statements that its proofs refer to; a label inside a statement counts for it."""
    left_out: Counter[str] = Counter()
    judged: dict[str, list[str]] = {}
    for item in _statements(book, PROVABLE):
        places = [book.find(label, proof.stem) for proof in item.proofs for label in proof.references]
        left_out.update(reason for place in places if (reason := _no_premise(place, item)))
        judged[item.id] = list(dict.fromkeys(place.id for place in places if not _no_premise(place, item)))
    left_out["statements whose proof names no premise (documents, no queries)"] = list(judged.values()).count([])
    return _parts(book, _corpus(book), judged, left_out)


def _earlier(book: Book) -> Parts:
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


def _no_premise(place: Item | str, item: Item) -> str:
    """Return why a reference in the proof of *item* names no premise, or "" when it names one."""
    if isinstance(place, str):
        return f"references in proofs to labels of {place}"
    if place is item:
        return "references in proofs to the statement itself"
    return "" if place.kind in STATEMENTS else f"references in proofs to items of the kind {place.kind}"


def _slogans(book: Book) -> Parts:
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
    return Parts(_corpus(book), queries, {"test": pairs}, left_out)


def _parts(book: Book, corpus: list[Row], judged: dict[str, list[str]], left_out: Counter[str]) -> Parts:
    """Return the collection whose queries are the provable statements with a judgement, split by `splits()`."""
    asked = [item for item in _statements(book, PROVABLE) if judged.get(item.id)]
    queries = [{"_id": item.id, "text": _named(item), "metadata": _metadata(item)} for item in asked]
    pairs: dict[str, list[Judgement]] = {split: [] for split in SPLITS}
    where = splits(book)
    for item in asked:
        pairs[where[item.id]] += [(item.id, doc_id, 1) for doc_id in judged[item.id]]
    return Parts(corpus, queries, pairs, left_out)


def splits(book: Book) -> dict[str, str]:
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


def _statements(book: Book, kinds: tuple[str, ...]) -> list[Item]:
    return [item for item in book.items if item.kind in kinds]


def _corpus(book: Book) -> list[Row]:
    return [_row(item.id, item.title, item.text, item) for item in _statements(book, STATEMENTS)]


def _row(name: str, title: str, text: str, item: Item) -> Row:
    return {"_id": name, "title": title, "text": text, "metadata": {**_metadata(item), "label": item.label}}


def _metadata(item: Item) -> Row:
    return {"order": item.order, "kind": item.kind, "tag": item.id, "chapter": item.chapter}


def _named(item: Item) -> str:
    """Return the statement as a query, its name first when it has one."""
    return f"{item.title.rstrip('.')}. {item.text}" if item.title else item.text


COLLECTIONS: dict[str, tuple[Callable[[Book], Parts], Row]] = {
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
