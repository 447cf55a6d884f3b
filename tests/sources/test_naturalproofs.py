"""NaturalProofs: theorem to references and to proof, released splits, labels masked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from built_collections import card, judged_by_split, rows

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.sources import naturalproofs
from mirblab.sources.naturalproofs import clean_lines


def item(number: int, kind: str, text: str, *proofs: tuple[str, list[int]], **more: object) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": number,
        "type": kind,
        "label": f"algebra-lemma-{number}",
        "title": f"algebra-lemma-{number}",
        "categories": [],
        "contents": text.split("\n") if text else [],
        "refs": [],
        "ref_ids": [],
    }
    if kind == "theorem":
        found["proofs"] = [{"contents": [proof], "refs": [], "ref_ids": refs} for proof, refs in proofs]
    return found | more


LONG = "A proof of quite enough words that says something new about"


def subset() -> dict[str, Any]:
    theorems = [
        item(
            0, "theorem", r"Every ring \ref{algebra-lemma-9} is\nnice.".replace(r"\n", "\n"), (f"{LONG} 0.", [9, 5, 0])
        ),
        item(1, "theorem", "Two proofs.", (f"{LONG} 1.", [5, 5]), (rf"{LONG} \ref{{algebra-lemma-9}}.", [7])),
        item(2, "theorem", "Trivial.", ("Omitted.", [5])),
        item(3, "theorem", "Shares.", (f"{LONG} us.", [99])),
        item(4, "theorem", "Shares, too.", (f"{LONG}  US.", [8])),
        item(6, "theorem", "No proof."),
    ]
    return {
        "dataset": {
            "theorems": theorems,
            "definitions": [item(5, "definition", "A ring is $R$."), item(7, "definition", "A field.", title="Field")],
            "others": [item(8, "other", ""), item(9, "other", "A remark.")],
            "retrieval_examples": [0, 1, 2, 3, 4],
        },
        "splits": {
            "train": {"ref_ids": [], "examples": [[3, 0], [4, 0]]},
            "valid": {"ref_ids": [], "examples": [[2, 0]]},
            "test": {"ref_ids": [], "examples": [[0, 0], [1, 0], [1, 1]]},
        },
    }


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Return a folder with the Stacks subset and the number theory textbook."""
    (tmp_path / "np" / "data").mkdir(parents=True)
    for stem in ("stacks", "stein"):
        (tmp_path / "np" / "data" / f"naturalproofs_{stem}.json").write_text(json.dumps(subset()), encoding="utf-8")
    return tmp_path / "np"


def test_theorems_ask_for_references(raw: Path, tmp_path: Path):
    """Those of all their proofs in the split, among all items with a text; labels are masked."""
    folder = naturalproofs.build(raw, tmp_path / "out")[0]
    assert folder.name == "naturalproofs-stacks"
    assert judged_by_split(folder) == {"test": {"0": ["5", "9"], "1": ["5", "7"]}, "dev": {"2": ["5"]}}
    assert rows(folder / "queries.jsonl")["0"] == {"_id": "0", "text": "Every ring [ref] is\nnice."}
    corpus = rows(folder / "corpus.jsonl")
    assert set(corpus) == {"0", "1", "2", "3", "4", "5", "6", "7", "9"}
    assert corpus["7"] == {
        "_id": "7",
        "title": "Field",
        "text": "A field.",
        "metadata": {"kind": "definition", "theorem": 7},
    }
    assert card(folder)["counts"]["left_out"] == {
        "examples of a theorem that has another one in its split (merged)": 1,
        "items without a text": 1,
        "references of a proof to its own theorem": 1,
        "references to items that have no text or are not in the file": 2,
        "train theorems without anything to find (no queries)": 2,
    }
    loaded = load_folder(folder).card
    assert loaded.candidates == ["not-self"] and loaded.group == "NaturalProofs" and loaded.paper == ""
    assert loaded.instruction.endswith(
        "such as theorems, lemmas, and definitions, that are useful for proving the given theorem."
    )


def test_theorems_ask_for_their_proofs(raw: Path, tmp_path: Path):
    """All their proofs; trivial ones are no documents, shared ones belong to no query."""
    folder = naturalproofs.build(raw, tmp_path / "out")[1]
    assert folder.name == "naturalproofs-stacks-qa"
    assert judged_by_split(folder) == {"test": {"0": ["0-proof"], "1": ["1-proof", "1-proof-2"]}}
    corpus = rows(folder / "corpus.jsonl")
    assert set(corpus) == {"0-proof", "1-proof", "1-proof-2", "3-proof"}
    assert corpus["1-proof-2"]["text"] == f"{LONG} [ref]."
    assert card(folder)["counts"]["left_out"] == {
        "dev theorems without anything to find (no queries)": 1,
        "proofs under six words, or omitted": 1,
        "proofs with the text of another one (merged)": 1,
        "theorems whose proof another one shares (documents, no queries)": 2,
    }
    loaded = load_folder(folder).card
    assert (loaded.paper, loaded.instruction) == ("Stacks", "Given a math theorem, retrieve its proof.")


def test_only_the_subsets_that_are_there_are_built(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Proofs only for ProofWiki and Stacks; a single file will do; what is missing is said."""
    made = naturalproofs.build(raw, tmp_path / "out")
    assert [folder.name for folder in made] == [
        "naturalproofs-stacks",
        "naturalproofs-stacks-qa",
        "naturalproofs-numbertheory",
    ]
    assert "not there, so not built: naturalproofs_proofwiki.json, naturalproofs_trench.json" in capsys.readouterr().out
    (one,) = naturalproofs.build(raw / "data" / "naturalproofs_stein.json", tmp_path / "one")
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        assert (one / name).read_bytes() == (made[2] / name).read_bytes()
    with pytest.raises(FileNotFoundError, match="no naturalproofs_.*.json of proofwiki, stacks, trench, stein; found"):
        naturalproofs.build(tmp_path / "out" / "naturalproofs-stacks", tmp_path / "x")


def test_labels_stay_on_demand(raw: Path, tmp_path: Path):
    """As published, the label stands before the theorem, and references keep theirs."""
    folder = naturalproofs.build(raw, tmp_path / "out", labels="published")[0]
    assert rows(folder / "queries.jsonl")["0"]["text"] == (
        "algebra-lemma-0 Every ring \\ref{algebra-lemma-9} is\nnice."
    )
    assert rows(folder / "corpus.jsonl")["5"]["title"] == "algebra-lemma-5"
    with pytest.raises(MirblabError, match="no treatment of labels 'keep'"):
        naturalproofs.build(raw, tmp_path / "out", labels="keep")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\eqref{eq:x}, \cref{a}, \ref {b}, ref{c}", "[ref], [ref], [ref], [ref]"),
        (r"\hyperref[lemma-x]{this} and \href{http://a}{b}", r"this and \href{http://a}{b}"),
        (r"\label{lemma-x} $x$", "$x$"),
        ("a [[Definition:Set|set]], [[Cauchy's Theorem]] [[Category:Sets]]", "a set, Cauchy's Theorem"),
    ],
)
def test_statements_become_readable_text(text: str, expected: str):
    """Labels are masked, links show what they show."""
    assert clean_lines([text], masked=True) == expected


def broken(change: str) -> str:
    data = subset()
    if change == "no dataset":
        del data["dataset"]
    elif change == "first release":
        data["splits"]["test"] = {"ref_ids": [], "example_ids": [1]}
    elif change == "unknown proof":
        data["splits"]["test"]["examples"] = [[1, 2]]
    elif change == "a text":
        data["dataset"]["theorems"][1]["contents"] = "Two proofs."
    elif change == "an id twice":
        data["dataset"]["others"][0]["id"] = 5
    elif change == "a reference":
        data["dataset"]["theorems"][0]["proofs"][0]["ref_ids"] = ["5"]
    text = json.dumps(data, indent=1)
    return text.replace('"theorems": [', '"theorems": [,', 1) if change == "JSON" else text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("JSON", r"naturalproofs_stacks.json, line 3: broken JSON"),
        ("no dataset", "naturalproofs_stacks.json: no 'dataset'; found the keys splits"),
        ("first release", "splits.test has example_ids, as in the first release; get that of June 2021"),
        ("unknown proof", r"splits.test.examples\[0\] must be \[id of a theorem, number of its proof\], not \[1, 2\]"),
        ("a text", r"theorems\[1\] \(id 1\): 'contents' must be of type list, found 'Two proofs.'"),
        ("an id twice", r"others\[0\]: the id 5 is an earlier item's, too"),
        ("a reference", r"theorems\[0\] \(id 0\): 'ref_ids' must be a list of whole numbers"),
    ],
)
def test_broken_files_are_refused(raw: Path, tmp_path: Path, change: str, message: str):
    """With file and line, or file and item; nothing is written."""
    (raw / "data" / "naturalproofs_stacks.json").write_text(broken(change))
    with pytest.raises(MirblabError, match=message):
        naturalproofs.build(raw, tmp_path / "out")
    assert not any((tmp_path / "out").iterdir())
