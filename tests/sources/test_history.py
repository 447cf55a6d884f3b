"""A library at a commit and on a day, and the statements of a period, from a small repository with a history."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from built_collections import card, judged, rows
from git_history import git

from mirblab.core.errors import MirblabError
from mirblab.data.beir import read_group_rows, read_lists
from mirblab.data.collection import load_folder
from mirblab.sources import catalogue, history, rocq
from mirblab.sources.shared import builder
from mirblab.sources.shared.builder import CollectionRows

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
    assert (about["at"], about["until"], about["candidates"]) == ("2020-01-01", "2021-12-31", "earlier")
    test, train = (load_folder(folder, split) for split in ("test", "train"))
    assert test.candidates.allowed(np.arange(2)).all()  # every document is earlier than what is new
    assert train.candidates.allowed(np.arange(1)).tolist() == [[True, False, False]]  # addC, after add0, before addA
    assert about["revision"] == git(clone, "rev-parse", "HEAD~2")
    assert about["revision_until"] == git(clone, "rev-parse", "HEAD")
    assert about["command"] == "mirblab build rocq --from tiny --at 2020-01-01 --until 2021-12-31"
    assert about["counts"]["left_out"] == {
        "answers of the period, not judged": 2,  # add1 of add2, and add2 of add3
        "statements of the period whose text was there under another id (no queries)": 1,  # commute
        "statements of the period without an answer that was there (no queries)": 1,  # add3
    }


def write_tiny(origin: Path, out: Path) -> list[Path]:
    """Write a collection of the lines of a file, an id, a text and what it uses, with lists and groups."""
    lines = [line.split("|") for line in (origin / "a.txt").read_text("utf-8").splitlines()]
    texts = {name: text for name, text, _ in lines}
    uses = {name: used.split() for name, _, used in lines if used}
    ordered = enumerate(texts.items())
    corpus = [{"_id": name, "text": text, "order": place} for place, (name, text) in ordered]
    asked = [row for row in corpus if row["_id"] in uses]
    judged = [(name, doc, 1) for name, docs in uses.items() for doc in docs]
    lists = {
        "candidates": {name: [doc for doc in texts if doc != name] for name in uses},
        "excluded_ids": {name: [name, *list(texts)[-1:]] for name in uses if uses[name] != list(texts)[-1:]},
    }
    groups = [(name, "all", doc) for name, doc, _ in judged]
    with builder.replace_folders(out, ("tiny",), ["tiny"]) as [folder]:
        rows = CollectionRows(corpus, asked, {"train": [], "test": judged}, groups=groups, lists=lists)
        builder.write_rows(folder, rows, {"name": "tiny", "candidates": ["not-self", "earlier"]})
    return [out / "tiny"]


def write_history(folder: Path, *states: str) -> Path:
    """Write a repository whose file a.txt has these states, one a year from 2019 on."""
    folder.mkdir()
    git(folder, "init", "--quiet")
    for year, text in enumerate(states, 2019):
        (folder / "a.txt").write_text(text, encoding="utf-8")
        git(folder, "add", ".", day=f"{year}-06-01")
        git(folder, "commit", "--quiet", "-m", text[:9], day=f"{year}-06-01")
    return folder


def test_rules_lists_and_groups_are_those_of_the_library(tmp_path: Path) -> None:
    """For the theorems of then, and for the new ones among the documents of then."""
    first = "a|One.|\nb|Two.|a\nc|Three.|b\nz|End.|\n"
    clone = write_history(tmp_path / "tiny", first, first.replace("z|End.|", "d|Four.|b\nlast|End.|"))
    days = {"at": "2020-01-01", "until": "2021-01-01"}
    [folder] = history.build("tiny", write_tiny, clone, tmp_path / "out", **days)
    assert read_lists(folder) == {
        "candidates": {"b": ["a", "c", "z"], "c": ["a", "b", "z"], "d": ["a", "b", "c", "z"]},
        "excluded_ids": {"b": ["b", "z"], "c": ["c", "z"], "d": ["z"]},
    }
    assert read_group_rows(folder) == [("b", "all", "a"), ("c", "all", "b"), ("d", "all", "b")]
    assert card(folder)["candidates"] == ["not-self", "earlier"]
    allowed = load_folder(folder).candidates.allowed(np.arange(1))
    assert allowed is not None and allowed.tolist() == [[True, True, True, False]]


def test_case_counts_in_formulas(tmp_path: Path) -> None:
    """A statement about $N$ is not one about $n$, whatever the case of its words."""
    first = "a|One is $N$.|\nb|Two.|a\n"
    clone = write_history(tmp_path / "tiny", first, f"{first}c|one is $n$.|a\nd|ONE is  $N$.|b\n")
    days = {"at": "2020-01-01", "until": "2021-01-01"}
    [folder] = history.build("tiny", write_tiny, clone, tmp_path / "out", **days)
    assert judged(folder, "test") == {"c": {"a"}}


def test_case_counts_in_the_language_of_a_proof_assistant(clone: Path, tmp_path: Path) -> None:
    """Where N and n are two variables, and may be two constants."""
    (clone / "a.v").write_text(SECOND + "Lemma addN N : 0 + N = N. Proof. by rewrite addzero. Qed.\n", "utf-8")
    git(clone, "commit", "--quiet", "-a", "-m", "v", day="2022-06-01")
    [folder] = history.build("rocq", rocq.build, clone, tmp_path / "out", at="2022-01-01", until="2023-01-01")
    assert judged(folder, "test") == {"a.addN": {"a.addzero"}}


def test_a_library_without_a_query_has_a_history_too(tmp_path: Path) -> None:
    clone = write_history(tmp_path / "tiny", "a|One.|\nb|Two.|\n")
    [folder] = history.build("tiny", write_tiny, clone, tmp_path / "out", at="2020-01-01")
    assert set(rows(folder / "corpus.jsonl")) == {"a", "b"} and not rows(folder / "queries.jsonl")


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
