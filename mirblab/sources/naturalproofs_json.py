"""naturalproofs_json: one file of the NaturalProofs release, checked, its texts made readable, its labels masked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirblab import json_text
from mirblab.errors import MirblabError
from mirblab.sources.release import field, fields, texts
from mirblab.sources.shape import Row

SPLITS = {"test": "test", "dev": "valid", "train": "train"}
_REFERENCE = re.compile(r"\\(?:eq|page|auto|[cC])?ref\*?\s*\{[^{}]*\}|(?<![\\\w])ref\{[^{}]*\}")
_LABEL = re.compile(r"\\label\s*\{[^{}]*\}")
_LINKED_TEXT = re.compile(r"\\hyperref\s*\[[^\[\]]*\]\s*\{([^{}]*)\}")
_NO_LINK = re.compile(r"\[\[(?:Category|File):[^\[\]]*\]\]")
_WIKI_LINK = re.compile(r"\[\[([^\[\]|]*)(?:\|([^\[\]]*))?\]\]")


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


def read(path: Path, *, masked: bool) -> Subset:
    """Return what a naturalproofs_*.json says; *masked* hides labels (see `readable`).

    The whole file is held in memory, a few times its size (ProofWiki's is the largest, about 100 MB). Raises
    MirblabError with file and line for broken JSON, and with file and item for what is not as in the release of
    June 2021: `dataset` with `theorems`, `definitions` and `others`, and `splits` with `examples`.
    """
    top = fields(json_text.read(path), str(path))
    dataset, splits = (field(top, key, dict, str(path)) for key in ("dataset", "splits"))
    items: dict[int, Item] = {}
    for key, kind in (("theorems", "theorem"), ("definitions", "definition"), ("others", "other")):
        for number, record in enumerate(field(dataset, key, list, f"{path}, dataset")):
            item = _item(fields(record, f"{path}, {key}[{number}]"), kind, f"{path}, {key}[{number}]", masked)
            if item.id in items:
                raise MirblabError(f"{path}, {key}[{number}]: the id {item.id} is an earlier item's, too")
            items[item.id] = item
    return Subset(items, {ours: _examples(splits, theirs, items, path) for ours, theirs in SPLITS.items()})


def _item(record: Row, kind: str, place: str, masked: bool) -> Item:
    number, place = field(record, "id", int, place), f"{place} (id {record['id']})"
    title, label = (str(record.get(key) or "").strip() for key in ("title", "label"))
    # The Stacks subset has labels such as algebra-lemma-noetherian for titles: they tell what a statement is about.
    if masked and title == label and re.fullmatch(r"[\w:.]+-[\w:.-]+", title):
        title = ""
    found = [fields(proof, place) for proof in field(record, "proofs", list, place)] if kind == "theorem" else []
    proofs = [
        Proof(readable(texts(proof, "contents", place), masked=masked), _numbers(proof, "ref_ids", place))
        for proof in found
    ]
    return Item(number, kind, title, readable(texts(record, "contents", place), masked=masked), proofs)


def _numbers(record: Row, key: str, place: str) -> list[int]:
    found = field(record, key, list, place)
    if not all(type(number) is int for number in found):
        raise MirblabError(f"{place}: '{key}' must be a list of whole numbers, found {str(found)[:60]}")
    return found


def _examples(splits: Row, name: str, items: dict[int, Item], path: Path) -> list[tuple[int, int]]:
    place = f"{path}, splits.{name}"
    split = fields(field(splits, name, dict, f"{path}, splits"), place)
    if "examples" not in split and "example_ids" in split:
        raise MirblabError(f"{place} has example_ids, as in the first release; get that of June 2021, with examples")
    examples: list[tuple[int, int]] = []
    for number, pair in enumerate(field(split, "examples", list, place)):
        if not _is_proof(pair, items):
            raise MirblabError(f"{place}.examples[{number}] must be [id of a theorem, number of its proof], not {pair}")
        examples.append((pair[0], pair[1]))
    return examples


def _is_proof(pair: Any, items: dict[int, Item]) -> bool:
    if not (isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair)):
        return False
    return pair[0] in items and 0 <= pair[1] < len(items[pair[0]].proofs)


def readable(lines: Sequence[str], *, masked: bool) -> str:
    r"""Return the lines of a text joined, links of the wiki by what they show; *masked*: LaTeX labels as `[ref]`.

    >>> readable(["By [[Definition:Open Set|open]] sets and", r"Lemma \ref{lemma-finite}."], masked=True)
    'By open sets and\nLemma [ref].'
    """
    text = _WIKI_LINK.sub(lambda link: link[2] or link[1], _NO_LINK.sub("", "\n".join(lines)))
    if masked:
        text = _REFERENCE.sub("[ref]", _LABEL.sub("", _LINKED_TEXT.sub(r"\1", text)))
    return text.strip()
