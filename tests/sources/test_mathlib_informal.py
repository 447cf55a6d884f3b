"""Informalised Mathlib: declarations, queries and graded judgements to a collection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from built_collections import card, texts

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.sources import mathlib_informal

DECLARATIONS = [
    {
        "module_name": ["Mathlib", "Galois"],
        "kind": "theorem",
        "name": ["IsGalois", "fixedField_fixingSubgroup"],
        "signature": "(K) : fixedField (fixingSubgroup K) = K",
        "informal_name": "Fixed Field of Fixing Subgroup Theorem",
        "informal_description": "For a Galois extension the fixed field of the subgroup fixing $K$ is $K$.",
    },
    {"name": "Nat.add_comm", "formal_statement": "n + m = m + n", "informal_statement": "Addition commutes."},
    {"name": "Nat.foo", "informal_statement": None},
    {"name": "Nat.zero", "informal_description": "Zero.", "informal_name": ""},
]


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Return a folder with the three files."""
    folder = tmp_path / "bench"
    folder.mkdir()
    write(folder / "data.jsonl", DECLARATIONS)
    write(folder / "queries.jsonl", [{"_id": n, "text": f"query {n}", "group": "a"} for n in (1, 2, 3)])
    (folder / "judgements.tsv").write_text(
        "query-id\tcorpus-id\tscore\n"
        "1\tIsGalois.fixedField_fixingSubgroup\t2\n1\tNat.zero\t0\n2\tNat.add_comm\t1\n2\tNat.gone\t2\n"
    )
    return folder


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_both_layouts_of_declarations_are_read(raw: Path, tmp_path: Path):
    """Informal name and statement are the text, the full name is the id; judgements keep their grade, zero too."""
    (folder,) = mathlib_informal.build(raw, tmp_path / "out")
    assert texts(folder) == {
        "IsGalois.fixedField_fixingSubgroup": "Fixed Field of Fixing Subgroup Theorem: "
        "For a Galois extension the fixed field of the subgroup fixing $K$ is $K$.",
        "Nat.add_comm": "Addition commutes.",
        "Nat.zero": "Zero.",
    }
    assert texts(folder, "queries") == {"1": "query 1", "2": "query 2"}
    assert (folder / "qrels" / "test.tsv").read_text().splitlines()[1:] == [
        "1\tIsGalois.fixedField_fixingSubgroup\t2",
        "1\tNat.zero\t0",
        "2\tNat.add_comm\t1",
    ]
    assert card(folder)["counts"]["left_out"] == {
        "declarations without an informal statement": 1,
        "judgements of declarations that are not there": 1,
        "queries without a judgement": 1,
        "values of other columns of queries: group": 3,
    }
    loaded = load_folder(folder).card
    assert (loaded.paper, loaded.relevance_levels) == ("Informalized Mathlib4 Retrieval", [0, 1, 2])
    assert loaded.instruction == "Given a mathematical query, retrieve relevant theorems."


def test_a_whole_grade_may_be_written_with_a_decimal(raw: Path, tmp_path: Path):
    """As pandas writes a column of numbers that has a gap."""
    (folder,) = mathlib_informal.build(raw, tmp_path / "out")
    judgements = (raw / "judgements.tsv").read_text()
    (raw / "judgements.tsv").write_text(judgements.replace("\t2\n", "\t2.0\n").replace("\t0\n", "\t0.0\n"))
    (again,) = mathlib_informal.build(raw, tmp_path / "again")
    assert (again / "qrels/test.tsv").read_bytes() == (folder / "qrels/test.tsv").read_bytes()


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("judgements.tsv", "1\tNat.zero\t3\n", "judgements.tsv, line 1: 'score' must be 0, 1 or 2, found '3'"),
        ("judgements.tsv", "9\tNat.zero\t1\n", "judgements.tsv, line 1: judges the query '9', which is not in queries"),
        ("judgements.tsv", "1\tNat.zero\t1\n1\tNat.zero\t2\n", "line 2: judges 'Nat.zero' for '1' a second time"),
        ("judgements.tsv", "1\tNat.gone\t1\n", "none of its 1 judgements names a declaration that is there"),
        ("judgements.tsv", "1 Nat.zero 1\n", "line 1: expected query-id, corpus-id, score separated by tabs"),
        ("queries.jsonl", '{"_id": "1"}\n', "queries.jsonl, line 1: no 'text'; found the keys _id"),
        ("queries.jsonl", '{"_id": "1", "text": "a"}\n' * 2, "line 2: '1' is the _id of an earlier query, too"),
        ("data.jsonl", '{"name": "a", "text": "b"}\n', "data.jsonl, line 1, item 1: none of informal_statement"),
        ("data.jsonl", '{"name": [1], "informal_statement": "b"}\n', "'name' must be a list of texts, found '1'"),
        ("data.jsonl", '{"name": "a", "informal_statement": "\\ud800"}\n', "half a character"),
    ],
)
def test_broken_files_are_refused(raw: Path, tmp_path: Path, file: str, text: str, message: str):
    """With file and line; nothing is written."""
    (raw / file).write_text(text)
    with pytest.raises(MirblabError, match=message):
        mathlib_informal.build(raw, tmp_path / "out")
    assert not any((tmp_path / "out").iterdir())


def test_a_missing_file_is_named(raw: Path, tmp_path: Path):
    """And two that could be meant."""
    (raw / "queries.tsv").write_text("1\ta\n")
    with pytest.raises(MirblabError, match="queries.jsonl and .*queries.tsv; keep one queries.jsonl or queries.tsv"):
        mathlib_informal.build(raw, tmp_path / "out")
    (raw / "queries.tsv").unlink()
    (raw / "data.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match="no data.jsonl, declarations.jsonl or name_formal_informal.jsonl in"):
        mathlib_informal.build(raw, tmp_path / "out")
