"""A collection that was built or added is refused when any of its files is not what it was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mirblab.analysis.lean_views import read_views
from mirblab.app import cli
from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.data import beir, collection, digests
from mirblab.data.collection import load_folder
from mirblab.sources import catalogue, mini


def damaged_bytes(path: Path, rng: np.random.Generator) -> bytes:
    """Return the bytes of a file with one of them changed."""
    raw = bytearray(path.read_bytes())
    raw[rng.integers(len(raw))] ^= int(rng.integers(1, 256))
    return bytes(raw)


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def added(make_folder, tmp_path: Path) -> Path:
    """Return a collection that was added, with two splits and a README."""
    folder = make_folder(card='task = "Premise Retrieval"\n', name=f"kept-{tmp_path.name}")
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td3\t1\n")
    (folder / "README.md").write_text("where it is from\n")
    return catalogue.add(folder)[0]


def test_every_changed_byte_of_an_added_collection_is_noticed_and_the_file_is_named(added: Path):
    """At 60 places in each file, also in the card, the README and a split that is not asked for."""
    rng = np.random.default_rng(0)
    for path in files_of(added):
        before = path.read_bytes()
        for _ in range(60):
            path.write_bytes(damaged_bytes(path, rng))
            with pytest.raises(MirblabError, match=r"not as it was built or added .*mirblab add .* --again") as error:
                catalogue.load(added.name)
            assert path.name in str(error.value)
        path.write_bytes(before)
    assert catalogue.load(added.name).card.task == "Premise Retrieval"


def test_an_unchanged_collection_is_not_read_again_and_belongs_to_who_loaded_it(added: Path, monkeypatch):
    """Tables, card and counts that somebody changes are those of nobody else; a changed byte is noticed as before."""
    first = catalogue.load(added.name)
    fingerprint = first.fingerprint
    monkeypatch.setattr(collection, "read_splits", None)
    first.corpus.loc[0, "text"] = "changed"
    first.corpus["title"] = ""
    first.card.candidates.append("judged")
    first.oddities["more"] = 1
    second = catalogue.load(added.name)
    assert second.fingerprint == fingerprint and second.card.candidates == [] and "more" not in second.oddities
    assert second.texts != first.texts and second.oddities == {k: v for k, v in first.oddities.items() if k != "more"}
    (added / "README.md").write_text("another\n")
    with pytest.raises(MirblabError, match=r"README.md has another content"):
        catalogue.load(added.name)


def test_a_missing_file_and_a_new_one_are_named(added: Path):
    """A split that someone adds by hand is told, too; a hidden file is none of the collection's."""
    (added / ".DS_Store").write_text("of the system")
    assert digests.find_differences(added) == []
    (added / "README.md").unlink()
    (added / "qrels" / "own.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td3\t1\n")
    assert digests.find_differences(added) == ["README.md is missing", "qrels/own.tsv is new"]
    with pytest.raises(MirblabError, match=r"README\.md is missing; qrels/own\.tsv is new"):
        catalogue.load(added.name)


def test_the_command_of_the_message_accepts_what_was_changed(added: Path):
    """In place; what cannot be read is not accepted, and its digests stay."""
    corpus = added / "corpus.jsonl"
    kept = corpus.read_text("utf-8")
    corpus.write_text(kept.replace("document 1", "another text"), encoding="utf-8")
    with pytest.raises(MirblabError) as error:
        catalogue.load(added.name)
    words = str(error.value).rpartition("mirblab ")[2].split()
    outcome = CliRunner().invoke(cli.app, words)
    assert outcome.exit_code == 0 and "note: its digests were stored" in outcome.output
    assert catalogue.load(added.name).document("d1") == "another text"
    corpus.write_text(kept + "broken\n", encoding="utf-8")
    before = (added / digests.DIGEST_FILE).read_bytes()
    with pytest.raises(MirblabError, match=r"corpus\.jsonl, line 4"):
        catalogue.accept_changes(added)
    assert (added / digests.DIGEST_FILE).read_bytes() == before
    with pytest.raises(MirblabError, match="with its own card; leave the other options out"):
        cli.add(added, task="other", again=True)


def test_a_folder_without_digests_loads_as_it_is(added: Path, tmp_path: Path):
    """One that was copied by hand, or added by an older version; `--again` gives it digests."""
    (added / digests.DIGEST_FILE).unlink()
    (added / "corpus.jsonl").write_text('{"_id": "d1", "text": "one"}\n{"_id": "d2", "text": "two"}\n'
                                        '{"_id": "d3", "text": "three"}\n', encoding="utf-8")  # fmt: skip
    assert catalogue.load(added.name).document("d2") == "two"
    catalogue.accept_changes(added)
    assert digests.has_digests(added) and catalogue.load(added.name).document("d2") == "two"


def test_a_damaged_miniature_is_named_in_one_line_and_made_anew(capsys: pytest.CaptureFixture):
    """At two places in each file, its digests too; the values are those of the cards again."""
    before = catalogue.load("mini-hol").fingerprint
    folder, rng = paths.data() / "mini-hol", np.random.default_rng(1)
    for path in files_of(folder):
        whole = path.read_bytes()
        for _ in range(2):
            path.write_bytes(damaged_bytes(path, rng))
            assert catalogue.load("mini-hol").fingerprint == before and path.read_bytes() == whole
            told = capsys.readouterr().err
            assert told.count("\n") == 1 and "mini-hol was damaged and is made anew" in told
    with pytest.raises(MirblabError, match="derived from the bundled cards"):
        catalogue.accept_changes(folder)


def test_a_miniature_from_before_digests_is_made_anew_without_a_word(capsys: pytest.CaptureFixture):
    """Nothing is known of its files, so that they are not trusted."""
    before = catalogue.load("mini-hol").fingerprint
    folder = paths.data() / "mini-hol"
    (folder / digests.DIGEST_FILE).unlink()
    (folder / "corpus.jsonl").write_bytes((folder / "corpus.jsonl").read_bytes().replace(b"a", b"e"))
    assert catalogue.load("mini-hol").fingerprint == before and digests.has_digests(folder)
    assert capsys.readouterr().err == ""


def test_collections_in_the_cache_are_checked_too(capsys: pytest.CaptureFixture):
    """Hard negatives and one's own files; a collection is also checked where another is made of it."""
    folder = catalogue.build_hard_negatives("mini-stacks", near=1)[0]
    (folder / "README.md").write_text("new")
    with pytest.raises(MirblabError, match=r"README\.md is new"):
        catalogue.load(folder)
    shutil.copytree(mini.build("mini-stacks", paths.cache() / "one"), paths.cache() / "two")
    (paths.cache() / "two" / "corpus.jsonl").unlink()
    (paths.cache() / "two" / "corpus.jsonl").write_bytes((paths.cache() / "one" / "corpus.jsonl").read_bytes() + b"\n")
    with pytest.raises(MirblabError, match=r"corpus\.jsonl has another content"):
        catalogue.build_hard_negatives(str(paths.cache() / "two"))


def test_the_table_of_views_is_checked_too(tmp_path: Path):
    """It is built beside its collections, and is none itself."""
    rows = [{"id": f"N.a{n}", "module": "Mathlib.Algebra.N", "kind": "theorem", "split": "test", "informal": f"{n} is",
             "signature": f"theorem N.a{n} : {n} = {n}", "type": f"{n} = {n}"} for n in range(4)]  # fmt: skip
    (tmp_path / "views.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    catalogue.build("views", str(tmp_path / "views.jsonl"))
    assert len(read_views("mathlib-views")) == 4
    with open(paths.data() / "mathlib-views" / "views.jsonl.gz", "ab") as file:
        file.write(b"\0")
    with pytest.raises(MirblabError, match=r"views\.jsonl\.gz has another content"):
        read_views("mathlib-views")
    shutil.rmtree(paths.data() / "mathlib-views")


@pytest.mark.parametrize("read", ["read_texts", "read_qrels"])
def test_a_folder_that_is_replaced_while_it_is_read_gives_one_build_or_the_other(
    added: Path, make_folder, monkeypatch, read: str
):
    """Never the texts of one and the judgements of the other."""
    texts = [{"_id": f"d{n}", "text": f"newer {n}"} for n in (1, 2, 3)]
    newer = catalogue.add(make_folder(texts, qrels="q1\td3\t1\n", name=f"newer-{read}"))[0]
    real, calls = getattr(beir, read), []

    def replace_first(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            whole = real(*arguments)
            added.rename(added.with_name(".older"))
            newer.rename(added)
            return whole
        return real(*arguments)

    monkeypatch.setattr(beir, read, replace_first)
    found = load_folder(added)
    assert found.texts[0] == "newer 1" and found.qrels.doc_id.tolist() == ["d3"]
    shutil.rmtree(added.with_name(".older"))


def test_the_bytes_that_are_read_are_those_that_are_compared(added: Path, monkeypatch):
    """A file that is damaged when it is read, and whole again when somebody looks, gave other values."""
    corpus, real = added / "corpus.jsonl", beir.read_texts
    whole = corpus.read_bytes()

    def read(place: Path, stem: str):
        corpus.write_bytes(whole.replace(b"document 1", b"document 7"))
        found = real(place, stem)
        corpus.write_bytes(whole)
        return found

    monkeypatch.setattr(beir, "read_texts", read)
    with pytest.raises(MirblabError, match=r"corpus\.jsonl has another content"):
        catalogue.load(added.name)
