"""naturalproofs: NaturalProofs as collections."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirblab.core import text_files
from mirblab.core.errors import MirblabError, unknown
from mirblab.core.terminal import say
from mirblab.sources.shared import builder
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Row, replace_folders
from mirblab.sources.shared.readers import read_field, read_text_list, require_object
from mirblab.sources.shared.release import Release

SPLITS = {"test": "test", "dev": "valid", "train": "train"}
_REFERENCE = re.compile(r"\\(?:eq|page|auto|[cC])?ref\*?\s*\{[^{}]*\}|(?<![\\\w])ref\{[^{}]*\}")
_LABEL = re.compile(r"\\label\s*\{[^{}]*\}")
_LINKED_TEXT = re.compile(r"\\hyperref\s*\[[^\[\]]*\]\s*\{([^{}]*)\}")
_NO_LINK = re.compile(r"\[\[(?:Category|File):[^\[\]]*\]\]")
_WIKI_LINK = re.compile(r"\[\[([^\[\]|]*)(?:\|([^\[\]]*))?\]\]")
Wanted = dict[str, dict[int, list[str]]]
ADDRESS = "https://doi.org/10.5281/zenodo.4632538"
LABELS = ("masked", "published")
SUBSETS = {
    "proofwiki": ("proofwiki", "ProofWiki", "CC-BY-SA-3.0 (texts of ProofWiki)"),
    "stacks": ("stacks", "Stacks project", "GFDL-1.2-or-later (texts of the Stacks project)"),
    "trench": ("realanalysis", "real analysis textbook", "see the textbook of W. Trench"),
    "stein": ("numbertheory", "number theory textbook", "see the textbook of W. Stein"),
}
WITH_PROOFS = ("proofwiki", "stacks")
REFERENCES = (
    "Given a math theorem, retrieve useful references, such as theorems, lemmas, and definitions, that are useful for "
    "proving the given theorem."
)


@dataclass(frozen=True)
class Proof:
    """Text of one proof, and the ids of the items that it refers to."""

    text: str
    references: list[int]


@dataclass(frozen=True)
class Item:
    """One theorem, definition or other page of a subset; only theorems have proofs."""

    id: int
    kind: str
    title: str
    text: str
    proofs: list[Proof]


@dataclass(frozen=True)
class Subset:
    """All items of a file in its order, and by split the (theorem, number of its proof) of each example."""

    items: dict[int, Item]
    examples: dict[str, list[tuple[int, int]]]


def build(origin: str | Path | None, out: Path, *, labels: str = "masked") -> list[Path]:
    """Write the collections of the subsets that are there under *out*, print what was left out, return the folders.

    For each subset `naturalproofs-<name>` (theorem to the references of its proof, among all theorems, definitions
    and others with a text); for ProofWiki and Stacks also `naturalproofs-<name>-qa` (theorem to its proofs, among
    all proofs). Test, dev and train are the released examples. Labels of LaTeX tell the answer: by default
    references read `[ref]` and titles that are labels are dropped; *labels* "published" keeps both. *origin* is a
    folder, an archive or a single file. Raises MirblabError, with file and line or item, and FileNotFoundError.
    """
    if labels not in LABELS:
        raise unknown("treatment of labels", labels, LABELS)
    out = Path(out)
    with releases.open_release(origin, "naturalproofs_proofwiki.json and its neighbours", ADDRESS) as release:
        files = _files(release)
        names = tuple(name for stem in files for name in _names(stem))
        with replace_folders(out, names) as folders:
            for stem, path in files.items():
                subset = read_subset(path, masked=labels == "masked")
                for folder in folders:
                    if folder.name in _names(stem):
                        _save(folder, subset, stem, path, labels, release)
    return [out / name for name in names]


def read_subset(path: Path, *, masked: bool) -> Subset:
    """Return what a naturalproofs_*.json says; *masked* hides labels (see `clean_lines`).

    The whole file is held in memory, a few times its size (ProofWiki's is the largest, about 100 MB). Raises
    MirblabError with file and line for broken JSON, and with file and item for what is not as in the release of
    June 2021: `dataset` with `theorems`, `definitions` and `others`, and `splits` with `examples`.
    """
    top = require_object(text_files.read_json(path), str(path))
    dataset, splits = (read_field(top, key, dict, str(path)) for key in ("dataset", "splits"))
    items: dict[int, Item] = {}
    for key, kind in (("theorems", "theorem"), ("definitions", "definition"), ("others", "other")):
        for number, record in enumerate(read_field(dataset, key, list, f"{path}, dataset")):
            item = _item(require_object(record, f"{path}, {key}[{number}]"), kind, f"{path}, {key}[{number}]", masked)
            if item.id in items:
                raise MirblabError(f"{path}, {key}[{number}]: the id {item.id} is an earlier item's, too")
            items[item.id] = item
    return Subset(items, {ours: _examples(splits, theirs, items, path) for ours, theirs in SPLITS.items()})


def _item(record: Row, kind: str, place: str, masked: bool) -> Item:
    number, place = read_field(record, "id", int, place), f"{place} (id {record['id']})"
    title, label = (str(record.get(key) or "").strip() for key in ("title", "label"))
    # The Stacks subset has labels such as algebra-lemma-noetherian for titles: they tell what a statement is about.
    if masked and title == label and re.fullmatch(r"[\w:.]+-[\w:.-]+", title):
        title = ""
    found = (
        [require_object(proof, place) for proof in read_field(record, "proofs", list, place)]
        if kind == "theorem"
        else []
    )
    proofs = [
        Proof(clean_lines(read_text_list(proof, "contents", place), masked=masked), _numbers(proof, "ref_ids", place))
        for proof in found
    ]
    return Item(number, kind, title, clean_lines(read_text_list(record, "contents", place), masked=masked), proofs)


def clean_lines(lines: Sequence[str], *, masked: bool) -> str:
    r"""Return the lines of a text joined, links of the wiki by what they show; *masked*: LaTeX labels as `[ref]`.

    >>> clean_lines(["By [[Definition:Open Set|open]] sets and", r"Lemma \ref{lemma-finite}."], masked=True)
    'By open sets and\nLemma [ref].'
    """
    text = _WIKI_LINK.sub(lambda link: link[2] or link[1], _NO_LINK.sub("", "\n".join(lines)))
    if masked:
        text = _REFERENCE.sub("[ref]", _LABEL.sub("", _LINKED_TEXT.sub(r"\1", text)))
    return text.strip()


def _numbers(record: Row, key: str, place: str) -> list[int]:
    found = read_field(record, key, list, place)
    if not all(type(number) is int for number in found):
        raise MirblabError(f"{place}: '{key}' must be a list of whole numbers, found {str(found)[:60]}")
    return found


def _examples(splits: Row, name: str, items: dict[int, Item], path: Path) -> list[tuple[int, int]]:
    place = f"{path}, splits.{name}"
    split = require_object(read_field(splits, name, dict, f"{path}, splits"), place)
    if "examples" not in split and "example_ids" in split:
        raise MirblabError(f"{place} has example_ids, as in the first release; get that of June 2021, with examples")
    examples: list[tuple[int, int]] = []
    for number, pair in enumerate(read_field(split, "examples", list, place)):
        if not _is_proof(pair, items):
            raise MirblabError(f"{place}.examples[{number}] must be [id of a theorem, number of its proof], not {pair}")
        examples.append((pair[0], pair[1]))
    return examples


def _is_proof(pair: Any, items: dict[int, Item]) -> bool:
    if not (isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair)):
        return False
    return pair[0] in items and 0 <= pair[1] < len(items[pair[0]].proofs)


def _files(release: Release) -> dict[str, Path]:
    files = {
        stem: release.one(rf"naturalproofs_{stem}\.json", f"naturalproofs_{stem}.json")
        for stem in SUBSETS
        if release.matching(rf"naturalproofs_{stem}\.json")
    }
    if not files:
        raise FileNotFoundError(
            f"no naturalproofs_*.json of {', '.join(SUBSETS)}; found {release.shown()}; give the folder that holds them"
        )
    if missing := [f"naturalproofs_{stem}.json" for stem in SUBSETS if stem not in files]:
        say(f"not there, so not built: {', '.join(missing)}")
    return files


def _names(stem: str) -> list[str]:
    name = f"naturalproofs-{SUBSETS[stem][0]}"
    return [name, *([f"{name}-qa"] if stem in WITH_PROOFS else [])]


def _save(folder: Path, subset: Subset, stem: str, path: Path, labels: str, release: Release) -> None:
    _, shown, licence = SUBSETS[stem]
    derive = proof_collection if folder.name.endswith("-qa") else reference_collection
    about: Row = {
        proof_collection: {
            "title": f"NaturalProofs, {shown}: theorem to its proof",
            "follows": f"mirb-{stem}-qa",
            "task": "Question-Answer Retrieval",
            "instruction": "Given a math theorem, retrieve its proof.",
        },
        reference_collection: {
            "title": f"NaturalProofs, {shown}: theorem to the references of its proof",
            "follows": f"mirb-{SUBSETS[stem][0]}-premise",
            "task": "Premise Retrieval",
            "instruction": REFERENCES,
            "candidates": "not-self",
        },
    }[derive]
    parts = derive(subset, published=labels == "published")
    revision, about = releases.hash_files([path]), about | {"labels": labels}
    made = {"builder": "naturalproofs", "revision": revision, "licence": licence}
    builder.write_collection(folder, parts, about, release.origin, **made, options={"labels": labels})


def proof_collection(subset: Subset, *, published: bool = False) -> CollectionRows:
    """Return theorem to its proofs: trivial ones out, equal texts once, no query whose proof another one shares."""
    left_out: Counter[str] = Counter()
    items = {str(item.id): item for item in subset.items.values()}
    proofs = [(name, n, proof.text) for name, item in items.items() for n, proof in enumerate(item.proofs, 1)]
    documents, answers, shared = builder.merge_proofs(proofs, left_out)
    left_out["theorems whose proof another one shares (documents, no queries)"] = len(shared)
    wanted: Wanted = {
        split: {theorem: answers.get(str(theorem), []) for theorem, _ in examples if str(theorem) not in shared}
        for split, examples in subset.examples.items()
    }
    corpus = [_row(name, "", text, items[theorem]) for name, (theorem, text) in documents.items()]
    return _parts(corpus, subset, wanted, left_out, published)


def reference_collection(subset: Subset, *, published: bool = False) -> CollectionRows:
    """Return theorem to the items that the proofs of its examples refer to, among all items that have a text.

    *published*: the title stands before the theorem after a blank, as MIRB prints it; else as a sentence.
    """
    docs = {item.id: item for item in subset.items.values() if item.text}
    left_out = Counter({"items without a text": len(subset.items) - len(docs)})
    used: dict[str, dict[int, set[int]]] = {split: {} for split in subset.examples}
    for split, examples in subset.examples.items():
        for theorem, number in examples:
            named = set(subset.items[theorem].proofs[number].references)
            left_out["examples of a theorem that has another one in its split (merged)"] += theorem in used[split]
            left_out["references to items that have no text or are not in the file"] += len(named - docs.keys())
            left_out["references of a proof to its own theorem"] += theorem in named
            used[split].setdefault(theorem, set()).update((named & docs.keys()) - {theorem})
    wanted = {
        split: {key: [str(doc) for doc in sorted(found)] for key, found in of.items()} for split, of in used.items()
    }
    return _parts(
        [_row(str(item.id), item.title, item.text, item) for item in docs.values()], subset, wanted, left_out, published
    )


def _parts(
    corpus: list[Row], subset: Subset, wanted: Wanted, left_out: Counter[str], published: bool
) -> CollectionRows:
    """Return the collection whose queries are the theorems of each split that have a text and something to find."""
    asked: dict[int, Row] = {}
    judged: dict[str, list[tuple[str, str, int]]] = {}
    for split, theorems in wanted.items():
        pairs = judged[split] = []
        for theorem, docs in theorems.items():
            item = subset.items[theorem]
            if theorem in asked:
                left_out["theorems of an earlier split, too (test before dev before train)"] += 1
            elif not docs or not item.text:
                left_out[f"{split} theorems without {'a text' if docs else 'anything to find'} (no queries)"] += 1
            else:
                asked[theorem] = {"_id": str(theorem), "text": _named(item, published)}
                pairs += [(str(theorem), doc, 1) for doc in docs]
    return CollectionRows(
        corpus, list(asked.values()), {split: pairs for split, pairs in judged.items() if pairs}, left_out
    )


def _named(item: Item, published: bool) -> str:
    """Return the theorem as a query, its name first when it has one."""
    if published:
        return f"{item.title} {item.text}".strip()
    return f"{item.title.rstrip('.')}. {item.text}" if item.title else item.text


def _row(name: str, title: str, text: str, item: Item) -> Row:
    return {"_id": name, "title": title, "text": text, "metadata": {"kind": item.kind, "theorem": item.id}}
