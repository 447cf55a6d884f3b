"""HolStep: a file is a conjecture with its dependencies; names stay out of queries, equal statements are merged."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from built_collections import card as built_card
from built_collections import judged_by_split, rows

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.sources import holstep

FILES = {
    "train/00001": """N ADD_SYM
C |- (!m. (!n. ((+ m) n) = ((+ n) m)))
T cfun\\+ part! f0
D ADD_CLAUSES
A |- (!n. ((+ _0) n) = n)
T c! tokens
D num_INDUCTION
A |- (!P. P _0)
T c! tokens
+ |- a useful step
T tokens
- |- a useless step
T tokens
""",
    "train/00002": "N LONELY\nC |- T\nT t\n",
    "test/0001": """N MULT_SYM
C |- (!m. (!n. ((* m) n) = ((* n) m)))
T tokens
D ADD_SYM
A |- (!m. (!n. ((+ m) n) = ((+ n) m)))
T tokens
D MULT_SYM_ALIAS
A |- (!m.  (!n. ((* m) n) = ((* n) m)))
T tokens
D ADD_CLAUSES
A |- (!n. ((+ n) _0) = n)
T tokens
D ADD_0
A |- (!n. ((+ _0) n) = n)
T tokens
""",
}


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Return a folder laid out like the release."""
    for name, text in FILES.items():
        path = tmp_path / "holstep" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "holstep" / "LICENSE").write_text("BSD")
    return tmp_path / "holstep"


def test_conjectures_ask_for_their_dependencies(raw: Path, tmp_path: Path):
    """Steps and tokens are passed over; a conjecture is not its own premise, also under another name."""
    (folder,) = holstep.build(raw, tmp_path / "out")
    queries, corpus = rows(folder / "queries.jsonl"), rows(folder / "corpus.jsonl")
    assert queries == {
        "MULT_SYM": {"_id": "MULT_SYM", "text": "|- (!m. (!n. ((* m) n) = ((* n) m)))"},
        "ADD_SYM": {"_id": "ADD_SYM", "text": "|- (!m. (!n. ((+ m) n) = ((+ n) m)))"},
    }
    assert corpus["ADD_CLAUSES"] == {"_id": "ADD_CLAUSES", "title": "ADD_CLAUSES", "text": "|- (!n. ((+ _0) n) = n)"}
    assert corpus["ADD_CLAUSES#2"]["text"] == "|- (!n. ((+ n) _0) = n)"
    assert set(corpus) == {"ADD_SYM", "ADD_CLAUSES", "num_INDUCTION", "ADD_CLAUSES#2", "MULT_SYM"}
    assert judged_by_split(folder)["train"] == {"ADD_SYM": ["ADD_CLAUSES", "num_INDUCTION"]}
    assert judged_by_split(folder)["test"] == {"MULT_SYM": ["ADD_SYM", "ADD_CLAUSES#2", "ADD_CLAUSES"]}


def test_the_card_counts_what_was_left_out(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """With MIRB's words, both sizes of the corpus, and the reasons printed."""
    (folder,) = holstep.build(raw, tmp_path / "out")
    card = built_card(folder)
    assert card["counts"]["left_out"] == {
        "conjectures without a dependency (no queries)": 1,
        "dependencies that are the conjecture itself": 1,
        "mentions of a statement under another name (merged by its text)": 2,
    }
    assert (card["paper"], card["candidates"], card["licence"]) == ("HolStep", "not-self", "BSD-3-Clause")
    assert card["sizes"] == {"documents_of_train": 2, "documents_of_test": 4}
    assert card["instruction"] == "Given a HOL conjecture, retrieve the declarations that are useful for proving it."
    assert "left out or odd:      2  mentions of a statement under another name" in capsys.readouterr().out
    loaded = load_folder(folder)
    assert loaded.card.candidates == ["not-self"] and len(loaded.queries) == 1


def test_names_and_the_small_corpus_on_demand(raw: Path, tmp_path: Path):
    """As published, names stand before queries; documents may be those of the test files only."""
    (folder,) = holstep.build(raw, tmp_path / "out", names=True, corpus="test")
    assert rows(folder / "queries.jsonl")["MULT_SYM"]["text"].startswith("MULT_SYM |- ")
    assert set(rows(folder / "corpus.jsonl")) == {"ADD_SYM", "ADD_CLAUSES", "ADD_CLAUSES#2", "MULT_SYM"}
    assert judged_by_split(folder)["train"] == {"ADD_SYM": ["ADD_CLAUSES"]}
    with pytest.raises(MirblabError, match="no corpus of HolStep 'tst'.*did you mean 'test'"):
        holstep.build(raw, tmp_path / "out", corpus="tst")


def test_a_conjecture_is_asked_in_one_split(raw: Path, tmp_path: Path):
    """One that test has is left out of train, though it has another name there."""
    again = FILES["test/0001"].replace("N MULT_SYM", "N MULT_AC")
    (raw / "train" / "00003").write_text(again, encoding="utf-8")
    (folder,) = holstep.build(raw, tmp_path / "out")
    assert judged_by_split(folder)["train"] == {"ADD_SYM": ["ADD_CLAUSES", "num_INDUCTION"]}
    card = built_card(folder)
    assert card["counts"]["left_out"]["training conjectures that are test conjectures (left out of train)"] == 1
    assert judged_by_split(folder)["test"]["MULT_AC"][0] == "ADD_SYM"


def test_an_archive_gives_the_same_bytes(raw: Path, tmp_path: Path):
    """But for the command, which names what was given."""
    with tarfile.open(tmp_path / "HolStep.tgz", "w:gz") as tar:
        tar.add(raw, "holstep")
    content = []
    for origin in (raw, tmp_path / "HolStep.tgz"):
        (folder,) = holstep.build(origin, tmp_path / "out")
        content.append({path.name: path.read_text("utf-8") for path in folder.rglob("*.*")})
        content[-1]["card.toml"] = content[-1]["card.toml"].replace("HolStep.tgz", "holstep")
        del content[-1]["digests.txt"]  # it holds the digest of the card
    assert content[0] == content[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("C |- T\nT t\n", "line 1: 'C' where one of N must stand"),
        ("N A\nC |- T\nT t\nA |- F\n", "line 4: 'A' where one of D"),
        ("N A\nC |- T\nT t\nD B\nD C\n", "line 5: 'D' where one of A must stand"),
        ("N A\nC |- T\nX y\n", "line 3: expected a line that begins with N, C, T, D, A"),
        ("N A\nC |- T\nThe end\n", "line 3: expected a line that begins with"),
        ("N A\n", "line 1: the file ends before a statement"),
        ("", "line 1: the file ends before a statement"),
    ],
)
def test_a_broken_file_is_refused(raw: Path, tmp_path: Path, text: str, message: str):
    """With file and line; nothing is written."""
    (raw / "test" / "0001").write_text(text)
    with pytest.raises(MirblabError, match=f"0001, {message}"):
        holstep.build(raw, tmp_path / "out")
    assert not any((tmp_path / "out").iterdir())


def test_without_an_origin_or_files_the_error_helps(tmp_path: Path):
    """It names the address, or what was found instead."""
    with pytest.raises(MirblabError, match="give the HolStep release with --from.*published at http"):
        holstep.build(None, tmp_path)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "README").touch()
    with pytest.raises(FileNotFoundError, match="no test/00001 or the like in .*found README"):
        holstep.build(tmp_path / "x", tmp_path / "out")
