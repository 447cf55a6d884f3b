"""LeanDojo: states ask for the premises that the next tactic names; code loses comments, docstrings and proofs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from built_collections import card, rows

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.sources import leandojo
from mirblab.sources.shared import lean_source

BASIC, GROUP = "Mathlib/Basic.lean", ".lake/packages/std/Group.lean"
CORPUS = [
    {
        "path": BASIC,
        "imports": [],
        "premises": [
            premise
            for premise in (
                {"full_name": "Nat.zero_add", "code": "@[simp] theorem zero_add (n : ℕ) : 0 + n = n", "start": [3, 1]},
                {"full_name": "Nat.two", "code": "/-- Two. -/ def two : ℕ := 1 + 1 -- sum", "start": [8, 1]},
                {"full_name": None, "code": "instance : Foo := x", "start": [11, 1]},
                {"full_name": "user__.n1", "code": "x", "start": [12, 1]},
                {"full_name": "[A, B]", "code": "mutual", "start": [13, 1]},
                {"full_name": "empty", "code": "", "start": [14, 1]},
                {"full_name": "Pair", "code": "structure Pair where\n  left : ℕ", "start": [20, 1]},
            )
        ],
    },
    {
        "path": GROUP,
        "imports": [BASIC],
        "premises": [
            {"full_name": "mul_one", "code": "theorem mul_one (a : G) : a * 1 = a := by\n  simp", "start": [1, 1]},
            {"full_name": "Nat.two", "code": "-- only a comment", "start": [9, 1]},
        ],
    },
]
for _file in CORPUS:
    for _premise in _file["premises"]:
        _premise |= {"end": [_premise["start"][0] + 2, 9], "kind": "commanddeclaration"}


def mention(name: str, path: str, line: int) -> dict[str, Any]:
    return {"full_name": name, "def_path": path, "def_pos": [line, 9], "def_end_pos": [line, 20]}


ADD, TWO, ONE = mention("Nat.zero_add", BASIC, 4), mention("Nat.two", BASIC, 8), mention("mul_one", GROUP, 2)
OTHER_TWO, LEFT = mention("Nat.two", GROUP, 9), mention("Pair.left", BASIC, 21)
NOWHERE = mention("gone", "Mathlib/Gone.lean", 1)


def theorem(name: str, *steps: tuple[str, list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "url": "https://github.com/leanprover-community/mathlib4",
        "commit": "3c30",
        "file_path": "Mathlib/X.lean",
        "full_name": name,
        "start": [1, 1],
        "end": [2, 2],
        "traced_tactics": [
            {
                "tactic": "rw",
                "annotated_tactic": ["rw <a>x</a>", used],
                "state_before": state,
                "state_after": "no goals",
            }
            for state, used in steps
        ],
    }


SPLITS = {
    "test": [
        theorem("T.one", ("⊢ a = 1", [ONE, ADD]), ("⊢ b", []), ("no goals", [ONE])),
        theorem("T.two", ("⊢ a = 1", [TWO, ONE]), ("⊢ old", [ADD]), ("⊢ field", [LEFT, NOWHERE])),
    ],
    "val": [theorem("V.one", ("⊢ v", [OTHER_TWO]), ("⊢ a = 1", [ADD]))],
    "train": [theorem("R.one", ("⊢ r", [ADD]), ("⊢ v", [TWO]), ("⊢ r\n", [ADD]))],
}


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Return a folder laid out like the release."""
    folder = tmp_path / "leandojo_benchmark_4"
    for strategy in ("novel_premises", "random"):
        (folder / strategy).mkdir(parents=True)
        for name, theorems in SPLITS.items():
            (folder / strategy / f"{name}.json").write_text(json.dumps(theorems), encoding="utf-8")
    (folder / "corpus.jsonl").write_text("".join(json.dumps(file) + "\n" for file in CORPUS), encoding="utf-8")
    return folder


def judged(folder: Path, split: str) -> list[str]:
    lines = (folder / "qrels" / f"{split}.tsv").read_text("utf-8").splitlines()[1:]
    return [line.removesuffix("\t1").replace("\t", " > ") for line in lines]


def test_states_ask_for_the_premises_that_are_named(raw: Path, tmp_path: Path):
    """Equal states are one query with all their premises; a field points to its structure."""
    (folder,) = leandojo.build(raw, tmp_path / "out")
    assert judged(folder, "test") == [
        "T.one:1 > mul_one",
        "T.one:1 > Nat.zero_add",
        "T.one:1 > Nat.two",
        "T.two:2 > Nat.zero_add",
        "T.two:3 > Pair",
    ]
    assert judged(folder, "dev") == ["V.one:1 > Nat.two#2"]
    assert judged(folder, "train") == ["R.one:1 > Nat.zero_add"]
    queries = rows(folder / "queries.jsonl")
    assert queries["T.one:1"] == {"_id": "T.one:1", "text": "⊢ a = 1"}
    assert list(queries) == ["T.one:1", "T.two:2", "T.two:3", "V.one:1", "R.one:1"]


def test_documents_are_all_premises_without_what_tells_too_much(raw: Path, tmp_path: Path):
    """No comment, docstring, attribute or proof; with "published" everything stays."""
    (folder,) = leandojo.build(raw, tmp_path / "out")
    assert {key: row["text"] for key, row in rows(folder / "corpus.jsonl").items()} == {
        "Nat.zero_add": "theorem zero_add (n : ℕ) : 0 + n = n",
        "Nat.two": "def two : ℕ := 1 + 1",
        "Pair": "structure Pair where\n  left : ℕ",
        "mul_one": "theorem mul_one (a : G) : a * 1 = a",
        "Nat.two#2": "-- only a comment",
    }
    (folder,) = leandojo.build(raw, tmp_path / "out", code="published")
    assert rows(folder / "corpus.jsonl")["Nat.two"]["text"] == "/-- Two. -/ def two : ℕ := 1 + 1 -- sum"
    assert load_folder(folder).card.extra["code"] == "published"
    with pytest.raises(MirblabError, match="no treatment of code 'raw'; found published, statements"):
        leandojo.build(raw, tmp_path / "out", code="raw")


def test_violations_and_everything_left_out_are_counted(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Training shows Nat.zero_add and Nat.two: the test query that needs nothing else violates the split's promise."""
    (folder,) = leandojo.build(raw, tmp_path / "out")
    about = card(folder)
    assert about["counts"]["left_out"] == {
        "declarations that are no premises: generated names and mutual definitions": 2,
        "declarations that are no premises: no code": 1,
        "declarations that are no premises: no name": 1,
        "mentions found by their position, not by name": 1,
        "mentions of no premise in the corpus": 1,
        "premises of which only comments are left (kept as published)": 1,
        "premises that repeat a full name (kept, with a number)": 1,
        "premises with comments, attributes or proofs taken out": 3,
        "states of dev that are states of test (left out of dev)": 1,
        "states of train that are states of dev (left out of train)": 1,
        "states that repeat an earlier one of their split (merged)": 2,
        "states without a goal": 1,
        "tactics of test that name no premise": 1,
        "test queries of which training shows every premise (kept)": 1,
    }
    assert (about["paper"], about["licence"], about["split"]) == ("LeanDojo", "CC-BY-2.0", "novel_premises")
    assert about["instruction"] == (
        "Given a Lean 4 proof state, retrieve the declarations that are useful for proving it."
    )
    assert "1  test queries of which training shows every premise" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("corpus.jsonl", '{"path": "a"}\n', "corpus.jsonl, line 1, item 1: no 'premises'; found the keys path"),
        ("corpus.jsonl", '{"path": "a", "premises": []}\n' * 2, "line 2, item 2: the file 'a' came before"),
        (
            "corpus.jsonl",
            '{"path": "a", "premises": [{"full_name": "x", "code": "c", "start": [1]}]}',
            "start' must be",
        ),
        ("corpus.jsonl", '{"path": "a",\n', "corpus.jsonl, line 2, item 1: broken JSON"),
        ("novel_premises/test.json", '[{"full_name": "x"}]', "test.json, line 1, item 1: no 'traced_tactics'"),
        ("novel_premises/val.json", '[{"full_name": "x", "traced_tactics": [7]}]', "tactic 1: expected a JSON object"),
        ("novel_premises/val.json", "[]", "val.json: no tactic in it names a premise of corpus.jsonl"),
        (
            "novel_premises/train.json",
            '[{"full_name": "x", "traced_tactics": [{"state_before": "a", "annotated_tactic": "rw"}]}]',
            "train.json, line 1, item 1, tactic 1: 'annotated_tactic' must be of type list, found 'rw'",
        ),
    ],
)
def test_broken_files_are_refused(raw: Path, tmp_path: Path, file: str, text: str, message: str):
    """With file, line and item; nothing is written."""
    (raw / file).write_text(text)
    with pytest.raises(MirblabError, match=message):
        leandojo.build(raw, tmp_path / "out")
    assert not any((tmp_path / "out").iterdir())


def test_a_missing_file_is_named(raw: Path, tmp_path: Path):
    """With what is there instead."""
    (raw / "novel_premises" / "train.json").unlink()
    with pytest.raises(
        FileNotFoundError, match="no novel_premises/train.json in .*found corpus.jsonl, novel_premises/t"
    ):
        leandojo.build(raw, tmp_path / "out")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("theorem a : b", "theorem a : b"),
        ("theorem a : let x := 1; x = 1 := rfl", "theorem a : let x := 1; x = 1"),
        (
            "theorem a (h : x = y := by simp) {s : S := { f := 1 }} : p := q",
            "theorem a (h : x = y := by simp) {s : S := { f := 1 }} : p",
        ),
        ("theorem a : ∀ n, p n\n  | 0 => x\n  | n + 1 => y", "theorem a : ∀ n, p n"),
        ("theorem a : |x| ≤ 1 ∧\n  |y| ≤ 2 := by simp", "theorem a : |x| ≤ 1 ∧\n  |y| ≤ 2"),
        ("private lemma a : outlet := b", "private lemma a : outlet"),
        ('theorem a : s = ":=" := b', 'theorem a : s = ":="'),
        ("def a : b := c", "def a : b := c"),
        ('/-- it\'s "odd -/ def a := "x" -- y', 'def a := "x"'),
        ("/- a /- b -/ c -/ def d := '\"' -- e \"", "def d := '\"'"),
        ("@[simp]\n@[to_additive \"doc ]\"]\ntheorem a' : b' := c", "theorem a' : b'"),
        ("def a := 1\n  -- note\n  + 2", "def a := 1\n  + 2"),
        ("/-- never closed def a := 1", ""),
    ],
)
def test_lean_statements(code: str, expected: str):
    """Brackets, quotes, `let` and absolute values do not mislead."""
    assert lean_source.extract_statement(code) == expected
