"""same-theorem: bundled ids and grades become collections with the texts of libraries that are here."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from built_collections import card, content, rows, texts

from mirblab.core.errors import MirblabError
from mirblab.data.beir import convert_corpus
from mirblab.data.collection import load_folder
from mirblab.sources import mini, same_theorem
from mirblab.sources.same_theorem import LIBRARIES, read_same_theorem

JUDGED = read_same_theorem()


def declaration(name: str, kind: str, informal: str) -> dict[str, str]:
    """Return a declaration of Lean as the table of views has it."""
    views = {"informal": informal, "signature": f"{kind} {name} : True", "type": "True"}
    return {"id": name, "module": "Mathlib.Algebra", "kind": kind, "split": "test", **views}


def write_libraries(root: Path, lacking: str = "", without: str = "") -> Path:
    """Write every library but *without*, with the judged statements only, of which *lacking* is left out."""
    for name, library in LIBRARIES.items():
        if name == without or not library.folders:
            continue
        folder = root / library.folders[-1]
        folder.mkdir(parents=True)
        asked = JUDGED.query_id[JUDGED.queries == name], JUDGED.doc_id[JUDGED.documents == name]
        ids = sorted({*asked[0], *asked[1]} - {lacking})
        if name == "mathlib":
            lines = [declaration(i, "lemma", f"of {i}") for i in ids] + [declaration("a.def", "def", "no theorem")]
            packed = gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
            (folder / "views.jsonl.gz").write_bytes(packed)
        else:
            abouts = {
                "setmm": {"description": "On setmm. (Contributed by NM, 5-Aug-1993.)"},
                "blueprints": {"title": "On it"},
            }
            lines = [{"_id": i, "title": "", "text": f"text of {i}", "metadata": abouts.get(name, {})} for i in ids]
            statements = "".join(json.dumps(line) + "\n" for line in lines)
            lean = json.dumps({"_id": "a.def", "title": "", "text": "a declaration in Lean"}) + "\n"
            (folder / "corpus.jsonl").write_text(lean if name == "blueprints" else statements)
            (folder / "queries.jsonl").write_text(statements)
    return root


def test_the_bundle_has_what_it_promises():
    """At least 500 pairs of at least four libraries; each pair stands once, and every grade and share is in range."""
    assert len(JUDGED) >= 500
    assert len({*JUDGED.queries, *JUDGED.documents}) >= 4
    assert not JUDGED.duplicated(["queries", "documents", "query_id", "doc_id"]).any()
    assert JUDGED[["first", "second"]].isin([0, 1, 2]).all(axis=None)
    assert JUDGED.share.between(0, 1, inclusive="right").all()
    assert JUDGED.found_by.str.fullmatch(r"[a-z0-9]+:\d+(?: [a-z0-9]+:\d+)*").all()
    assert {*JUDGED.query_id[JUDGED.queries == "cards"]} <= {one["id"] for one in mini.read_cards()}


def test_disputed_pairs_say_how_they_were_drawn():
    """With their shares they stand for all disputed pairs of the card, and each names the systems that disagree."""
    disputed = JUDGED[JUDGED.found_by.str.contains("disputed:")]
    assert (len(disputed), int((disputed.share == 1).sum())) == (271, 179)
    assert (1 / disputed.share).sum() == pytest.approx(5302, rel=1e-5)
    assert disputed.found_by.str.fullmatch(r"disputed:\d+(?: (?:bm25|chargrams|structure|minilm):[1-5])+").all()


def test_grades_agree_with_the_names_that_the_cards_give():
    """A card names its theorem in Mathlib, written before and without these judgements: such a pair is never 0."""
    names = {one["id"]: one["lean"]["name"] for one in mini.read_cards()}
    pairs = JUDGED[(JUDGED.queries == "cards") & (JUDGED.documents == "mathlib")]
    named = pairs[pairs.doc_id == pairs.query_id.map(names)]
    assert len(named) >= 10
    assert (named[["first", "second"]].min(axis=1) >= 1).all()


def test_each_pair_of_libraries_becomes_a_collection(tmp_path: Path):
    """Documents are all statements, queries the judged ones, and of two grades the lower one counts."""
    root = write_libraries(tmp_path / "here")
    folders = same_theorem.build(root, tmp_path / "out")
    pairs = JUDGED.groupby(["queries", "documents"], sort=False)
    assert [folder.name for folder in folders] == [f"same-theorem-{one}-{other}" for one, other in pairs.groups]
    for folder, (_, judged) in zip(folders, pairs, strict=True):
        collection = load_folder(folder)
        grades = collection.qrels.set_index(["query_id", "doc_id"]).relevance
        assert len(grades) == len(judged) and card(folder)["missing"] == []
        lower = judged.set_index(["query_id", "doc_id"])[["first", "second"]].min(axis=1)
        assert all(grades[pair] == grade for pair, grade in lower.items())
    again = same_theorem.build(root, tmp_path / "again")
    assert [content(folder) for folder in again] == [content(folder) for folder in folders]


def test_texts_are_those_of_the_libraries(tmp_path: Path):
    """A description is the title, without notes on contributions; only theorems of Mathlib are documents."""
    folders = {f.name: f for f in same_theorem.build(write_libraries(tmp_path / "here"), tmp_path / "out")}
    document = next(iter(rows(folders["same-theorem-cards-setmm"] / "corpus.jsonl").values()))
    assert (document["title"], document["text"]) == ("On setmm.", f"text of {document['_id']}")
    mathlib = folders["same-theorem-cards-mathlib"]
    assert "a.def" not in texts(mathlib)
    name, statement = next(iter(texts(mathlib, "queries").items()))
    assert statement == next(one["statement"] for one in mini.read_cards() if one["id"] == name).strip()


def test_statements_of_blueprints_are_those_in_latex(tmp_path: Path):
    """Which are the queries of the collection, with their titles; its documents, declarations in Lean, are left out."""
    folders = {f.name: f for f in same_theorem.build(write_libraries(tmp_path / "here"), tmp_path / "out")}
    documents = rows(folders["same-theorem-cards-blueprints"] / "corpus.jsonl")
    assert "a.def" not in documents
    assert {(row["title"], row["text"]) for row in documents.values()} == {("On it", f"text of {i}") for i in documents}
    queries = texts(folders["same-theorem-blueprints-mathlib"], "queries")
    assert queries and all(text == f"On it. text of {name}" for name, text in queries.items())


def test_a_library_in_parts_is_read(tmp_path: Path):
    """As one in a file is."""
    root = write_libraries(tmp_path / "here")
    folders = same_theorem.build(root, tmp_path / "out")
    setmm = root / LIBRARIES["setmm"].folders[-1]
    convert_corpus(setmm, setmm)
    (setmm / "corpus.jsonl").unlink()
    assert [content(folder) for folder in same_theorem.build(root, tmp_path / "again")] == [
        content(folder) for folder in folders
    ]


def test_the_judged_statements_can_be_a_corpus_of_their_own(tmp_path: Path):
    """Then every document is judged for some query, and no judgement is lost."""
    root = write_libraries(tmp_path / "here")
    folders = same_theorem.build(root, tmp_path / "out", judged_only=True)
    assert all(folder.name.endswith("-judged") for folder in folders)
    for folder, (_, judged) in zip(folders, JUDGED.groupby(["queries", "documents"], sort=False), strict=True):
        assert set(texts(folder)) == set(judged.doc_id)
        assert card(folder)["counts"]["judgements_test"] == len(judged)


def test_a_statement_that_is_missing_is_counted_and_named(tmp_path: Path):
    """As in another version of a library; its judgements are left out, and the others stay."""
    pairs = JUDGED[JUDGED.documents == "stacks"]
    lost = pairs.doc_id.iloc[0]
    n_lost = int((pairs.doc_id == lost).sum())
    folders = same_theorem.build(write_libraries(tmp_path / "here", lacking=lost), tmp_path / "out")
    found = card(next(folder for folder in folders if folder.name.endswith("-stacks")))
    assert found["missing"] == [lost]
    assert found["counts"]["judgements_test"] == len(pairs) - n_lost
    assert found["counts"]["left_out"]["judgements of statements that are not there"] == n_lost
    assert found["counts"]["left_out"][f"judged statements that are not there: {lost}"] == 1


def test_a_library_that_is_missing_is_named(tmp_path: Path):
    """Pairs without it are built; without any library the message says which folders are looked for."""
    folders = same_theorem.build(write_libraries(tmp_path / "here", without="mathlib"), tmp_path / "out")
    assert folders and not any("mathlib" in folder.name for folder in folders)
    assert card(folders[0])["counts"]["left_out"]["libraries that are not there: mathlib"] == 1
    (tmp_path / "empty").mkdir()
    with pytest.raises(MirblabError, match=r"none of the libraries .*setmm \(metamath-premise or setmm\).*build them"):
        same_theorem.build(tmp_path / "empty", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_grades_agree_with_the_names_that_blueprints_give(shared_file: Callable[[str], Path]):
    """A statement of a blueprint may name its theorem in Mathlib, and the judgements were made without these names."""
    with shared_file("data/blueprints/qrels/test.tsv").open(encoding="utf-8") as file:
        named = {(row["query-id"], row["corpus-id"].split(":", 1)[1]) for row in csv.DictReader(file, delimiter="\t")}
    pairs = JUDGED[(JUDGED.queries == "blueprints") & (JUDGED.documents == "mathlib")]
    known = pairs[[pair in named for pair in zip(pairs.query_id, pairs.doc_id, strict=True)]]
    assert len(known) >= 10
    assert (known[["first", "second"]].min(axis=1) >= 1).all()


def test_the_shared_libraries_have_every_judged_statement(shared_file: Callable[[str], Path], tmp_path: Path):
    """Nothing is missing in the collections that were judged."""
    folders = same_theorem.build(shared_file("data"), tmp_path / "out")
    assert folders and all(card(folder)["missing"] == [] for folder in folders)
