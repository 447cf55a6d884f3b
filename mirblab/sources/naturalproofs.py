"""naturalproofs: NaturalProofs as collections."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirblab.core import text_files
from mirblab.core.errors import MirblabError, MissingFileError, check_known
from mirblab.core.terminal import say
from mirblab.sources.shared import builder
from mirblab.sources.shared import release as releases
from mirblab.sources.shared.builder import CollectionRows, Judgement, Row, replace_folders, title_before_text
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
    """Write the collections of the available subsets under *out* and return their folders.

    A subset gives `naturalproofs-<name>` (theorem to the references of its proof, among all items with a text);
    ProofWiki and Stacks also give `naturalproofs-<name>-qa` (theorem to its proofs). Splits are the released ones.
    LaTeX labels reveal the answer: unless *labels* is "published", references become `[ref]` and such titles are
    dropped.
    """
    check_known("treatment of labels", labels, LABELS)
    out = Path(out)
    with releases.open_release(origin, "naturalproofs_proofwiki.json and its neighbours", ADDRESS) as release:
        files = _files(release)
        stem_of = {f"naturalproofs-{SUBSETS[stem][0]}{task}": stem
                   for stem in files for task in ("", "-qa") if not task or stem in WITH_PROOFS}  # fmt: skip
        with replace_folders(out, tuple(stem_of)) as folders:
            for stem, path in files.items():
                subset = read_subset(path, masked=labels == "masked")
                for folder in folders:
                    if stem_of[folder.name] == stem:
                        _save(folder, subset, stem, path, labels, release)
    return [out / name for name in stem_of]


def read_subset(path: Path, *, masked: bool) -> Subset:
    """Return the content of a naturalproofs_*.json of June 2021; *masked* hides labels (see `clean_lines`)."""
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


def _item(record: Mapping[str, Any], kind: str, place: str, masked: bool) -> Item:
    number, place = read_field(record, "id", int, place), f"{place} (id {record['id']})"
    title, label = (str(record.get(key) or "").strip() for key in ("title", "label"))
    # Titles of the Stacks subset are labels such as algebra-lemma-noetherian, which reveal what a statement is about.
    if masked and title == label and re.fullmatch(r"[\w:.]+-[\w:.-]+", title):
        title = ""
    proofs: list[Proof] = []
    for given in read_field(record, "proofs", list, place) if kind == "theorem" else ():
        proof = require_object(given, place)
        lines, references = read_text_list(proof, "contents", place), _numbers(proof, "ref_ids", place)
        proofs.append(Proof(clean_lines(lines, masked=masked), references))
    return Item(number, kind, title, clean_lines(read_text_list(record, "contents", place), masked=masked), proofs)


def clean_lines(lines: Sequence[str], *, masked: bool) -> str:
    """Return the lines joined, links of the wiki replaced by their text; *masked*: LaTeX labels become `[ref]`."""
    text = _WIKI_LINK.sub(lambda link: link[2] or link[1], _NO_LINK.sub("", "\n".join(lines)))
    if masked:
        text = _REFERENCE.sub("[ref]", _LABEL.sub("", _LINKED_TEXT.sub(r"\1", text)))
    return text.strip()


def _numbers(record: Mapping[str, Any], key: str, place: str) -> list[int]:
    numbers: list[int] = read_field(record, key, list, place)
    if not all(type(number) is int for number in numbers):
        raise MirblabError(f"{place}: '{key}' must be a list of whole numbers, found {str(numbers)[:60]}")
    return numbers


def _examples(splits: Mapping[str, Any], name: str, items: dict[int, Item], path: Path) -> list[tuple[int, int]]:
    place = f"{path}, splits.{name}"
    split = require_object(read_field(splits, name, dict, f"{path}, splits"), place)
    if "examples" not in split and "example_ids" in split:
        raise MirblabError(f"{place} has example_ids, as in the first release; get that of June 2021, with examples")
    examples: list[tuple[int, int]] = []
    for number, pair in enumerate(read_field(split, "examples", list, place)):
        is_pair = isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair)
        if not (is_pair and pair[0] in items and 0 <= pair[1] < len(items[pair[0]].proofs)):
            raise MirblabError(f"{place}.examples[{number}] must be [id of a theorem, number of its proof], not {pair}")
        examples.append((pair[0], pair[1]))
    return examples


def _files(release: Release) -> dict[str, Path]:
    names = {stem: f"naturalproofs_{stem}.json" for stem in SUBSETS}
    present = [stem for stem, name in names.items() if release.matching(re.escape(name))]
    if not present:
        raise MissingFileError(
            f"no naturalproofs_*.json of {', '.join(SUBSETS)}; found {release.shown()}; give the folder that holds them"
        )
    if missing := [name for stem, name in names.items() if stem not in present]:
        say(f"not there, so not built: {', '.join(missing)}")
    return {stem: release.one(re.escape(names[stem]), names[stem]) for stem in present}


def _save(folder: Path, subset: Subset, stem: str, path: Path, labels: str, release: Release) -> None:
    name, shown, licence = SUBSETS[stem]
    if folder.name.endswith("-qa"):
        parts = proof_collection(subset, published=labels == "published")
        about: Row = {"title": f"NaturalProofs, {shown}: theorem to its proof", "follows": f"mirb-{stem}-qa"}
        about |= builder.read_task(f"mirb-{stem}-qa")
    else:
        parts = reference_collection(subset, published=labels == "published")
        about = {"title": f"NaturalProofs, {shown}: theorem to the references of its proof"}
        about |= {"follows": f"mirb-{name}-premise", **builder.read_task(f"mirb-{name}-premise")}
        about |= {"candidates": "not-self"}
    made: Row = {"builder": "naturalproofs", "revision": releases.hash_files([path]), "licence": licence}
    about, options = about | {"labels": labels}, {"labels": labels}
    builder.write_collection(folder, parts, about, release.origin, **made, options=options)


def proof_collection(subset: Subset, *, published: bool = False) -> CollectionRows:
    """Return theorem to its proofs, without trivial proofs and queries that share a proof; equal proofs are one."""
    left_out: Counter[str] = Counter()
    items = {str(item.id): item for item in subset.items.values()}
    proofs = {name: [proof.text for proof in item.proofs] for name, item in items.items()}
    corpus, answers, shared = builder.merge_proofs(proofs, lambda name: _metadata(items[name]), left_out)
    left_out["theorems whose proof another one shares (documents, no queries)"] = len(shared)
    wanted: Wanted = {
        split: {theorem: answers.get(str(theorem), []) for theorem, _ in examples if str(theorem) not in shared}
        for split, examples in subset.examples.items()
    }
    return _parts(corpus, subset, wanted, left_out, published)


def reference_collection(subset: Subset, *, published: bool = False) -> CollectionRows:
    """Return theorem to the items that its proofs refer to; *published*: title and text of a query as in MIRB."""
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
        split: {theorem: [str(doc) for doc in sorted(ids)] for theorem, ids in theorems.items()}
        for split, theorems in used.items()
    }
    corpus = [
        {"_id": str(item.id), "title": item.title, "text": item.text, "metadata": _metadata(item)}
        for item in docs.values()
    ]
    return _parts(corpus, subset, wanted, left_out, published)


def _parts(
    corpus: list[Row], subset: Subset, wanted: Wanted, left_out: Counter[str], published: bool
) -> CollectionRows:
    queries: dict[int, Row] = {}
    judged: dict[str, list[Judgement]] = {}
    for split, theorems in wanted.items():
        pairs: list[Judgement] = []
        for theorem, docs in theorems.items():
            item = subset.items[theorem]
            if theorem in queries:
                left_out["theorems of an earlier split, too (test before dev before train)"] += 1
            elif not docs or not item.text:
                left_out[f"{split} theorems without {'a text' if docs else 'anything to find'} (no queries)"] += 1
            else:
                text = f"{item.title} {item.text}".strip() if published else title_before_text(item.title, item.text)
                queries[theorem] = {"_id": str(theorem), "text": text}
                pairs += [(str(theorem), doc, 1) for doc in docs]
        judged |= {split: pairs} if pairs else {}
    return CollectionRows(corpus, list(queries.values()), judged, left_out)


def _metadata(item: Item) -> Row:
    return {"kind": item.kind, "theorem": item.id}
