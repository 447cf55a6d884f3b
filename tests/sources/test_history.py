"""A library at a commit and on a day, and the statements of a period, from a small repository with a history."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from built_collections import card, judged, rows

from mirblab.core.errors import MirblabError
from mirblab.sources import catalogue, history, rocq

FIRST = """
Lemma add0 n : 0 + n = n. Proof. by []. Qed.
Lemma addC n m : n + m = m + n. Proof. by rewrite add0. Qed.
Lemma addA n m k : n + (m + k) = n + m + k. Proof. by rewrite addC add0. Qed.
"""
SECOND = """
Lemma addzero n : 0 + n = n. Proof. by []. Qed.
Lemma commute n m : n + m = m + n. Proof. by rewrite addzero. Qed.
Lemma addA n m k : n + (m + k) = n + m + k. Proof. by rewrite commute addzero. Qed.
Lemma add1 n : 1 + n = n + 1. Proof. by rewrite addzero addA. Qed.
Lemma add2 n : 2 + n = n + 2. Proof. by rewrite add1 commute. Qed.
Lemma add3 n : 3 + n = n + 3. Proof. by rewrite add2. Qed.
"""
DAYS = {"2019-06-01": FIRST, "2020-06-01": FIRST + "Lemma new : 1 = 1. Proof. by []. Qed.\n", "2021-06-01": SECOND}


def git(folder: Path, *words: str, day: str = "2019-01-01") -> str:
    """Run git with a person and a day."""
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    at = {"GIT_COMMITTER_DATE": f"{day}T12:00:00Z", "GIT_AUTHOR_DATE": f"{day}T12:00:00Z", "HOME": str(folder)}
    done = subprocess.run(["git", "-C", str(folder), *who, *words], env=at, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A Rocq library of three commits, of which the last one renames two lemmas and adds three."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / ".gitattributes").write_text("*.v export-ignore\n", encoding="utf-8")  # for archives of a release
    for day, text in DAYS.items():
        (folder / "a.v").write_text(text, encoding="utf-8")
        git(folder, "add", ".", day=day)
        git(folder, "commit", "--quiet", "-m", day, day=day)
    git(folder, "tag", "v1.0.0-first", "HEAD~2")
    return folder


def test_a_period_asks_the_new_statements_for_what_was_there(clone: Path, tmp_path: Path) -> None:
    """What was renamed is no new statement, and an answer is found under its old name."""
    [folder] = history.build("rocq", rocq.build, clone, tmp_path / "out", at="2020-01-01", until="2021-12-31")
    assert folder.name == "rocq-premise-at-2020-01-01"
    assert {*rows(folder / "corpus.jsonl")} == {"a.add0", "a.addA", "a.addC"}
    assert judged(folder, "test") == {"a.add1": {"a.add0", "a.addA"}, "a.add2": {"a.addC"}}
    assert judged(folder, "dev", "train") == {"a.addA": {"a.add0", "a.addC"}, "a.addC": {"a.add0"}}
    about = card(folder)
    assert (about["at"], about["until"], about["candidates"]) == ("2020-01-01", "2021-12-31", [])
    assert about["revision"] == git(clone, "rev-parse", "HEAD~2")
    assert about["revision_until"] == git(clone, "rev-parse", "HEAD")
    assert about["command"] == "mirblab build rocq --from tiny --at 2020-01-01 --until 2021-12-31"
    assert about["counts"]["left_out"] == {
        "answers of the period, not judged": 2,  # add1 of add2, and add2 of add3
        "statements of the period whose text was there under another id (no queries)": 1,  # commute
        "statements of the period without an answer that was there (no queries)": 1,  # add3
    }


@pytest.mark.parametrize("at", ["v1.0.0-first", "2020-01-01", "HEAD~2", "commit"])
def test_a_state_is_the_collection_of_its_files(clone: Path, tmp_path: Path, at: str) -> None:
    """Whether a day, a tag or a commit names it; no file of the clone is touched."""
    named = git(clone, "rev-parse", "HEAD~2") if at == "commit" else at
    [folder] = history.build("rocq", rocq.build, clone, tmp_path / "out", at=named)
    label = {"commit": named[:12], "HEAD~2": "HEAD-2"}.get(at, at)
    assert folder.name == f"rocq-premise-at-{label}"
    git(clone, "checkout", "--quiet", "HEAD~2")
    [plain] = rocq.build(clone, tmp_path / "plain")
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/train.tsv"):
        assert (folder / name).read_bytes() == (plain / name).read_bytes()
    assert {key: card(folder)[key] for key in ("candidates", "counts", "title")} == {
        key: card(plain)[key] for key in ("candidates", "counts", "title")
    }


def test_a_folder_of_a_repository_is_built_alone(clone: Path, tmp_path: Path) -> None:
    """Its files, without those beside it."""
    (clone / "inner").mkdir()
    git(clone, "mv", "a.v", "inner/b.v")
    (clone / "c.v").write_text("Lemma other : 2 = 2. Proof. by []. Qed.", encoding="utf-8")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "-m", "moved", day="2022-06-01")
    [folder] = history.build("rocq", rocq.build, clone / "inner", tmp_path / "out", at="HEAD")
    assert {name.partition(".")[0] for name in rows(folder / "corpus.jsonl")} == {"b"}


def test_a_clone_is_made_of_a_url_and_its_address_kept(clone: Path, tmp_path: Path) -> None:
    """With the whole history, and without a password in the card."""
    [folder] = history.build("rocq", rocq.build, f"file://{clone}", tmp_path / "out", at="2020-01-01")
    assert card(folder)["source"] == f"file://{clone}" and len(rows(folder / "corpus.jsonl")) == 3


@pytest.mark.parametrize(
    ("days", "message"),
    [
        ({"at": "2019-01-01"}, "tiny has no commit before 2019-01-01: its history here begins on 2019-06-01"),
        ({"at": "2020-13-01"}, "'2020-13-01' is no day; write it as 2020-01-31"),
        ({"at": "v2"}, "tiny has no commit 'v2'; give a day as 2020-01-31, or a commit, a tag or a branch"),
        ({"at": "--all"}, "tiny has no commit '--all'"),
        ({"until": "2020-01-01"}, "until needs at"),
        ({"at": "2020-01-01", "until": "2020-12-31"}, "between 2019-06-01 and 2020-06-01 no collection has enough new"),
        ({"at": "2020-01-01", "seeds": 3}, "'rocq' cannot be built with --set seeds=...; it takes --set seed=..."),
    ],
)
def test_what_names_no_state_is_refused(clone: Path, days: dict[str, str], message: str) -> None:
    """With what to do, and nothing is written."""
    with pytest.raises(MirblabError) as error:
        catalogue.build("rocq", str(clone), **days)
    assert message in str(error.value)


def test_a_folder_without_a_history_is_refused(tmp_path: Path) -> None:
    """As is an archive, and no origin at all."""
    (tmp_path / "a.tar.gz").write_bytes(b"")
    for origin, message in (
        (tmp_path, "git rev-parse failed"),
        (tmp_path / "a.tar.gz", "is neither a clone nor a git URL"),
        (None, "give a clone with it, or its URL, with --from"),
    ):
        with pytest.raises(MirblabError, match=message):
            history.build("rocq", rocq.build, origin, tmp_path / "out", at="2020-01-01")
