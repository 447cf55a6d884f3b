"""The Rocq builder on a small hand-made library that has every trap, and once on math-comp."""

from __future__ import annotations

import itertools
import shutil
import tarfile
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from built_collections import card, check_earlier_candidates, content, judged, rows

from mirblab.core.errors import MirblabError
from mirblab.sources import rocq
from mirblab.sources.rocq import RocqFile, split_sentences, split_statement
from mirblab.sources.shared import builder

PROJECT = """-R . tiny
a_last.v
base/nat.v # the first one
base/more.v
zeta.v
test_suite/trial.v
"""

NAT = r"""
(* A comment. Lemma sham : True. Proof. by []. Qed. (* nested. "*)" *) still one *)
From Corelib Require Import more.
Notation "x .+ y" := (add x y) (at level 50).
Ltac done_with H := rewrite H.
Tactic Notation "finish" := by [].
Lemma addC x y : x + y = y + x. Proof. by elim: x => [|x IH]. Qed.
Lemma finish : True. Proof. by []. Qed.
Lemma addA x : x = x + 0 + 0. Proof. by []. Qed.
Module Theory.
Section Ops.
Variables (op : nat -> nat) (n m : nat).
Hypothesis addA : forall x, op x = x.
#[local] Lemma addA2 : op (op n) = n :> nat.
Proof. by rewrite !addA (addC n). Qed.
Let helper : n = n. Proof. exact: addC. Qed.
Definition twice x := x.1 + x.2.
Fact term_style x : let y := x in x = y := addC x x.
End Ops.
Lemma addC x : x = x.
Proof.
(* by addA2. *) move: "addA2". have -> : addA2 = addA2 by []. exact.
Qed.
End Theory.
Lemma same p : p :=: p -> p. Proof. by apply/Theory.addC. Qed.
"""

MORE = r"""
Require Import nat.
Lemma mulC : forall x, x.+1 = x. Proof (addC mulC).
Lemma addC z : z + z = z. Proof. by rewrite addC. Qed.
Lemma uses x : x = x + 0.
Proof. rewrite addC. by finish; rewrite -addC /= later_one. Qed.
Lemma never : False. Admitted.
Lemma open_one : 1 = 1.
Proof. by rewrite mulC.
Lemma later_one : 2 = 2. Proof. by rewrite open_one; apply: far. Qed.
"""

LAST = r"""
From tiny.base Require Import more.
Remark far : 3 = 3. Proof. by rewrite mulC addA2 Theory.addC. Qed.
Remark near : 2 = 2. Proof. by apply: far. Qed.
"""

ZETA = "Lemma lonely : 5 = 5. Proof. by rewrite mulC. Qed."


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library of four files, one test that is listed, and one file that is not."""
    folder = tmp_path / "tiny-rocq"
    files = {
        "base/nat": NAT,
        "base/more": MORE,
        "a_last": LAST,
        "zeta": ZETA,
        "test_suite/trial": "Lemma t : True. Qed.",
    }
    for name, text in (files | {"unlisted": "Lemma u : True. Qed."}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.v").write_text(text, encoding="utf-8")
    (folder / "_CoqProject").write_text(PROJECT, encoding="utf-8")
    return folder


@pytest.fixture
def built(library: Path, tmp_path: Path) -> Path:
    """The folder of the collection."""
    return rocq.build(library, tmp_path / "out")[0]


def test_statements_stand_without_their_name(built: Path):
    """Binders and type; terms, comments and proofs are gone; files stand in the order of Require."""
    corpus = rows(built / "corpus.jsonl")
    assert {name: row["text"] for name, row in corpus.items()} == {
        "nat.addC": "x y : x + y = y + x",
        "nat.finish": "True",
        "nat.addA": "x : x = x + 0 + 0",
        "nat.Theory.addA2": "op (op n) = n :> nat",
        "nat.Theory.term_style": "x : let y := x in x = y",
        "nat.Theory.addC": "x : x = x",
        "nat.same": "p : p :=: p -> p",
        "more.mulC": "forall x, x.+1 = x",
        "more.addC": "z : z + z = z",
        "more.uses": "x : x = x + 0",
        "more.open_one": "1 = 1",
        "more.later_one": "2 = 2",
        "a_last.far": "3 = 3",
        "a_last.near": "2 = 2",
        "zeta.lonely": "5 = 5",
    }
    assert [row["metadata"]["order"] for row in corpus.values()] == list(range(15))
    assert corpus["nat.Theory.addA2"]["title"] == "addA2"
    assert corpus["a_last.far"]["metadata"] == {"order": 12, "file": "a_last.v", "kind": "Remark"}


def test_premises_are_earlier_lemmas_that_the_script_names(built: Path):
    """Same file first, else the last one before; no tactic, string, own or later lemma.

    Nor a section's variable that has a lemma's name, or a lemma of a file that is not required (`lonely`).
    """
    assert judged(built) == {
        "nat.Theory.addA2": {"nat.addC"},
        "nat.Theory.term_style": {"nat.addC"},
        "nat.Theory.addC": {"nat.Theory.addA2"},
        "nat.same": {"nat.Theory.addC"},
        "more.mulC": {"nat.Theory.addC"},
        "more.addC": {"nat.Theory.addC"},
        "more.uses": {"more.addC"},
        "more.open_one": {"more.mulC"},
        "more.later_one": {"more.open_one"},
        "a_last.far": {"more.mulC", "nat.Theory.addA2", "nat.Theory.addC"},
        "a_last.near": {"a_last.far"},
    }


def test_the_card_counts_what_was_left_out(built: Path, library: Path):
    """With the reason, what was ambiguous, and what text alone cannot tell."""
    found = card(built)
    assert found["counts"]["left_out"] == {
        "definitions, instances and goals (no documents)": 2,
        "files of tests, or that the project does not list": 2,
        "lemmas that end with Admitted (no documents)": 1,
        "mentions of a section's variable that has a lemma's name (no premises)": 1,
        "proofs that do not end": 1,
        "queries kept from test and dev: shared text": 2,
        "statements whose proof names no premise (documents, no queries)": 4,
        "statements with the text of another one": 2,
    }
    assert found["names"] == {"different": 13, "of_several_lemmas": 1, "mentions": 15, "ambiguous_mentions": 4}
    assert "variables and hypotheses of the enclosing section are not in the statements" in found["note"]
    assert found["command"] == "mirblab build rocq --from tiny-rocq" and found["licence"] == "none stated"
    assert found["source"] == "tiny-rocq"
    assert not any(str(library.parent).encode() in raw for raw in content(built).values())


def test_the_card_has_title_and_licence_of_the_library_itself(library: Path, tmp_path: Path):
    """Every library had those of math-comp, and its address; that of an archive stands in the folder in it."""
    (library / "LICENSE").write_text("GNU LESSER GENERAL PUBLIC LICENSE\n")
    found = card(rocq.build(library, tmp_path / "out")[0])
    assert (found["title"], found["licence"]) == ("Rocq: lemma to the lemmas that its proof names", "LGPL")
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as tar:
        tar.add(library, "tiny-rocq")
    found = card(rocq.build(tmp_path / "packed.tar.gz", tmp_path / "out")[0])
    assert found["licence"] == "LGPL" and found["source"] == "packed.tar.gz"
    (library / "base" / "nat.v").rename(library / "base" / "ssrnat.v")
    (library / "_CoqProject").unlink()
    found = card(rocq.build(library, tmp_path / "out")[0])
    assert found["licence"] == "CECILL-B" and found["source"] == rocq.URL
    assert found["title"].startswith("Mathematical Components (Rocq): ")


@pytest.mark.parametrize(
    ("file", "text", "licence"),
    [
        ("LICENSE", "CeCILL-C FREE SOFTWARE LICENSE AGREEMENT", "CECILL-C"),
        ("CeCILL", "  CeCILL FREE SOFTWARE LICENSE AGREEMENT\n\n    Version 2.1 dated 2013-06-21", "CECILL-2.1"),
        ("Licence_CeCILL.txt", "CeCILL FREE SOFTWARE LICENSE AGREEMENT\nVersion 2.0 dated 2006-09-05", "CECILL"),
        (
            "LICENSE.md",
            "Mozilla Public License Version 2.0\n====\n... GNU General Public License, Version 2.0",
            "MPL-2.0",
        ),
        ("COPYING", "GNU Free Documentation License\nVersion 1.2, November 2002", "GFDL"),
        ("LICENSE", "Attribution 4.0 International\n\n=====", "CC-BY-4.0"),
        ("LICENSE", "Attribution-ShareAlike 4.0 International\n\n=====", "CC-BY-SA-4.0"),
        ("LICENSE", "Attribution-NonCommercial 4.0 International\n\n=====", "see LICENSE"),
        ("license.txt", "All rights reserved.", "see license.txt"),
        ("README", "GNU LESSER GENERAL PUBLIC LICENSE", "none stated"),
    ],
)
def test_the_licence_is_recognised_or_its_file_is_named(
    library: Path, tmp_path: Path, file: str, text: str, licence: str
):
    """None was stated where the words were not known."""
    (library / file).write_text(text)
    assert card(rocq.build(library, tmp_path / "out")[0])["licence"] == licence


def test_a_library_whose_lemmas_name_no_other_is_refused(tmp_path: Path):
    """The error says what was found."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.v").write_text("Lemma one : 1 = 1. Proof. reflexivity. Qed.")
    with pytest.raises(MirblabError, match=r"in: 1 lemmas, of which no script names another"):
        rocq.build(tmp_path / "in", tmp_path / "out")


def test_build_outputs_and_hidden_files_are_not_read(library: Path, built: Path, tmp_path: Path):
    """Dune copies every source; the lock file of Emacs is a link to no file, and a folder may end like a file."""
    (library / "_CoqProject").unlink()
    (library / "unlisted.v").unlink()
    for folder in ("_build/default/base", "_opam/lib", ".hidden"):
        shutil.copytree(library / "base", library / folder)
    (library / "base" / ".#nat.v").symlink_to("someone@somewhere.1234")
    (library / "folder.v").mkdir()
    again = rocq.build(library, tmp_path / "again")[0]
    assert (again / "corpus.jsonl").read_bytes() == (built / "corpus.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        ({"examples": True, "theories": False}, {"examples/nat.v", "theories/nat.v"}),
        ({"examples": True, "theories": True}, {"examples/nat.v", "theories/nat.v"}),
        ({"theories": True, "tests": False}, {"nat.v"}),
    ],
)
def test_the_project_file_of_a_part_does_not_stand_for_the_library(
    tmp_path: Path, folders: dict[str, bool], expected: set[str]
):
    """That of examples/ alone was taken for that of the whole repository; tests are no part of it."""
    for folder, has_project in folders.items():
        (tmp_path / "in" / folder).mkdir(parents=True)
        (tmp_path / "in" / folder / "nat.v").write_text(NAT, encoding="utf-8")
        if has_project:
            (tmp_path / "in" / folder / "_CoqProject").write_text("-R . tiny\nnat.v\n", encoding="utf-8")
    found = rows(rocq.build(tmp_path / "in", tmp_path / "out")[0] / "corpus.jsonl")
    assert {row["metadata"]["file"] for row in found.values()} == expected


@pytest.mark.parametrize("end", ["} Qed.", "+ auto. } } Defined.", "- { trivial. }\n} Qed."])
def test_a_proof_may_end_after_braces_and_bullets(end: str):
    """Such a proof did not end, and the declarations after it were taken for its script."""
    source = (
        f"Lemma one : True. Proof. split. {{ idtac. {end} Instance two : Any := other. Lemma three : True. Admitted."
    )
    found = rocq.read_file(source)
    assert [lemma.name for lemma in found.lemmas] == ["one"] and "other" not in found.lemmas[0].script
    assert not found.odd["proofs that do not end"]


def test_every_word_for_a_lemma_makes_a_document():
    """The Rocq manual lists seven words that mean the same."""
    words = "Theorem Lemma Fact Remark Corollary Proposition Property".split()
    found = rocq.read_file(" ".join(f"{word} l{i} : True. Proof. auto. Qed." for i, word in enumerate(words)))
    assert [(lemma.kind, lemma.name) for lemma in found.lemmas] == [(word, f"l{i}") for i, word in enumerate(words)]


def test_definitions_that_a_script_proves_may_be_lemmas(tmp_path: Path):
    """In the style of homotopy type theory, where few theorems are called so; those by a term stay definitions."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.v").write_text(
        "Definition inv {A} (p : A) : A. Proof. exact p. Defined. Definition twice (n : nat) : nat := n + n.\n"
        "Program Instance free : Any nat. Global Instance inv_equiv : IsEquiv inv. Proof. apply inv. Qed.\n"
        "Definition given : nat. Admitted. Fixpoint f (n : nat) : nat. exact inv. Defined.\n"
        "Lemma last : True. Proof. apply inv_equiv. exact twice. Qed.\n"
    )
    with pytest.raises(MirblabError, match="1 lemmas, of which no script names another"):
        rocq.build(tmp_path / "in", tmp_path / "out")
    folder = rocq.build(tmp_path / "in", tmp_path / "out", proved_definitions=True, seed=3)[0]
    documents = {name: (row["text"], row["metadata"]["kind"]) for name, row in rows(folder / "corpus.jsonl").items()}
    assert documents == {
        "a.inv": ("{A} (p : A) : A", "Definition"),
        "a.inv_equiv": ("IsEquiv inv", "Instance"),
        "a.last": ("True", "Lemma"),
    }
    assert judged(folder) == {"a.inv_equiv": {"a.inv"}, "a.last": {"a.inv_equiv"}}
    assert card(folder)["command"] == "mirblab build rocq --from in --set seed=3 --set proved_definitions=true"
    assert card(folder)["counts"]["left_out"]["definitions, instances and goals (no documents)"] == 3


def test_the_end_of_a_proof_may_be_timed():
    """`Time Qed.` did not end it, and the declarations after it were taken for its script."""
    found = rocq.read_file("Lemma one : True. Proof. auto. Time Qed. Instance two : Any. Proof. apply other. Qed.")
    assert [lemma.script.split() for lemma in found.lemmas] == [["auto."]]


@pytest.mark.parametrize(
    "opened",
    ["M(X : Any).", "M:Any.", "Type M.", "M <: Any.", "M <: Any with Module E := N.", "M : A with Definition t := x."],
)
def test_a_module_has_its_name_without_parameters_and_type(opened: str):
    """Without a blank behind it, the name had them as a part, and its `End` closed the sections around it, too.

    So it did where the type is refined, which was taken for a module that is another's name.
    """
    found = rocq.read_file(
        f"Section S. Variable x : nat. Module {opened} Lemma a : True. Proof. auto. Qed. End M. "
        "Lemma b : True. Proof. apply x. Qed. End S."
    )
    assert [lemma.modules for lemma in found.lemmas] == [("M",), ()] and found.lemmas[1].local == {"x"}


@pytest.mark.parametrize("before", ["Context `{Any A} (x : A).", "Instance two : Any. Context (x : nat)."])
def test_the_variables_of_a_context_hide_lemmas(before: str):
    """Those behind a generalised class were not read, nor any behind an instance that needs no proof."""
    found = rocq.read_file(f"Section S. {before} Lemma a : True. Proof. apply x. Qed. End S.")
    assert "x" in found.lemmas[0].local


def test_a_requirement_is_no_step_of_a_proof():
    """An instance that Program solves, or that needs no proof, has no script; what was required behind it was lost."""
    found = rocq.read_file("Program Instance one : Any nat. From tiny Require Import nat.")
    assert found.requires == [("tiny", ["nat"])]


def test_an_instance_without_a_name_may_have_a_term():
    """The declarations behind it were taken for its script."""
    assert rocq.read_file("Instance: Any nat := {}. Ltac solve_it := auto.").tactics == {"solve_it"}
    assert not rocq.read_file("Instance: Any nat. Proof. Ltac solve_it := auto. Qed.").tactics


@pytest.mark.parametrize(
    ("mention", "expected"),
    [("mulC", {"a.Inner.mulC"}), ("Outer.mulC", {"a.Inner.mulC"}), ("a.mulC", {"a.Inner.mulC"}), ("Nat.mulC", None)],
)
def test_a_name_behind_a_module_of_another_library_is_no_premise(
    tmp_path: Path, mention: str, expected: set[str] | None
):
    """The library's own lemma with that name was taken; a module of its own may export the lemma."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.v").write_text(
        "Module Inner. Lemma mulC : 1 = 1. Proof. auto. Qed. End Inner. Module Outer := Inner.\n"
        f"Lemma other : 2 = 2. Proof. apply {mention}. Qed. Lemma last : 3 = 3. Proof. apply other. Qed.\n"
    )
    assert judged(rocq.build(tmp_path / "in", tmp_path / "out")[0]).get("a.other") == expected


@pytest.mark.parametrize(
    ("notation", "expected"),
    [
        ("Notation old := new (only parsing).", {"a.new"}),
        ('#[deprecated(since="1.0", note="use new")]\nNotation old := (@new nat).', {"a.new"}),
        ("Notation old := a.new.", {"a.new"}),
        ("Notation old := Other.new.", set()),
        ("Local Notation old := new.", set()),
    ],
)
def test_a_notation_may_name_a_lemma(tmp_path: Path, notation: str, expected: set[str]):
    """As it names an old one of a lemma that has a new name; a local one is not seen elsewhere."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.v").write_text(f"Lemma new : 1 = 1. Proof. by []. Qed.\n{notation}\n")
    (folder / "b.v").write_text(
        "Require Import a.\nLemma two : 2 = 2. Proof. exact: old. Qed. Lemma three : 3 = 3. Proof. exact: two. Qed.\n"
    )
    assert judged(rocq.build(folder, tmp_path / "out")[0]).get("b.two", set()) == expected


def test_candidates_stand_earlier(built: Path):
    """Neither the query itself nor a later lemma; no judgement is hidden."""
    check_earlier_candidates(built, "test", "dev", "train")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a. b.", ["a.", "b."]),
        ("x.1 = y.2. z.", ["x.1 = y.2.", "z."]),
        ('Notation "a . b" := c. d.', ['Notation "a . b" := c.', "d."]),
        ("[:: x ; .. ; y]. z.", ["[:: x ; .. ; y].", "z."]),
        ("auto... z.", ["auto...", "z."]),
        ("a (* b. (* c. *) d. *) e.", ["a e."]),
        ('a (* " *) " *) b.', ["a b."]),
        ("a.\n\n  b\n c.\n", ["a.", "b c."]),
        ("no stop", []),
    ],
)
def test_sentences_end_where_rocq_ends_them(source: str, expected: list[str]):
    """Not in numbers, strings, comments or two dots."""
    assert list(split_sentences(source)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" : T.", ("T", "")),
        ("(x := 1) : T := f x.", ("(x := 1) : T", "f x")),
        ("x : let y := x in P y.", ("x : let y := x in P y", "")),
        ("G : G :=: G -> T.", ("G : G :=: G -> T", "")),
        (": forall x, x.1 = x.", ("forall x, x.1 = x", "")),
    ],
)
def test_a_statement_ends_at_its_own_assignment(text: str, expected: tuple[str, str]):
    """Not at one of a `let`, in brackets, or at the sign :=:."""
    assert split_statement(text) == expected


def test_circles_and_foreign_libraries_do_not_stop_the_order():
    """A circle is counted; a file of another library with a known name is passed over."""
    odd: Counter[str] = Counter()
    files = {"a.v": RocqFile([("", ["b"])]), "b.v": RocqFile([("", ["a"])]), "x/c.v": RocqFile([("Other", ["a"])])}
    ordered, needed = rocq.sort_by_requirements(files, {"tiny"}, odd)
    assert sorted(ordered) == sorted(files) and needed["x/c.v"] == set() and odd["requirements in a circle"] == 1


def test_a_long_chain_of_files_is_ordered():
    """It was more than Python recurses, and the sets of what each file needs took 200 MB."""
    names = [f"{number:04}" for number in range(3000)]
    required = {name: [after] for name, after in itertools.pairwise(names)} | {names[-1]: []}
    tracemalloc.start()
    ordered, needed = builder.sort_by_requirements(required, Counter())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ordered == names[::-1] and needed[names[0]] == set(names[1:])
    assert needed.has(names[0], names[-1]) and not needed.has(names[-1], names[0])
    assert peak < 20 * 2**20


@pytest.mark.parametrize(
    ("required", "expected"),
    [
        (("tiny.base", ["nat"]), {"base/nat.v"}),
        (("", ["tiny.base.deep.nat"]), {"base/deep/nat.v"}),
        (("tiny", ["base.nat"]), {"base/nat.v"}),
        (("", ["tiny.other.deep.nat"]), {"other/deep/nat.v"}),
        (("tiny", ["nat"]), {"base/deep/nat.v", "base/nat.v", "other/deep/nat.v"}),
        (("", ["nat"]), {"base/deep/nat.v", "base/nat.v", "other/deep/nat.v"}),
        (("", ["deep.nat"]), {"base/deep/nat.v", "other/deep/nat.v"}),
        (("", ["Coq.deep.nat"]), set()),
        (("Coq", ["deep.nat"]), set()),
    ],
)
def test_of_several_files_with_a_name_the_folders_decide(required: tuple[str, list[str]], expected: set[str]):
    """All of them count, from the last one on: every file that shared any folder was required, too.

    A file of the standard library was taken for the library's own of that name.
    """
    files = {f"{folder}/nat.v": RocqFile() for folder in ("base", "base/deep", "other/deep")}
    found = rocq.sort_by_requirements(files | {"z.v": RocqFile([required])}, {"tiny"}, Counter())
    assert found[1]["z.v"] == expected


def test_an_archive_gives_the_same_bytes(library: Path, built: Path, tmp_path: Path):
    """But for the command that names it."""
    first = content(built)
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as tar:
        tar.add(library, "tiny-rocq")
    again = content(rocq.build(tmp_path / "packed.tar.gz", tmp_path / "again")[0])
    assert {name for name in first if first[name] != again[name]} == {"card.toml", "digests.txt"}


def test_what_is_no_library_is_refused(tmp_path: Path):
    """The error says what was found."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(MirblabError, match=r"empty: found 0 \.v files and no lemma"):
        rocq.build(tmp_path / "empty", tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_a_file_that_is_not_utf8_is_read_and_counted(library: Path, tmp_path: Path):
    """One byte in a comment refused the whole library."""
    with (library / "a_last.v").open("ab") as file:
        file.write(b"(* na\xefve *) Lemma last : 4 = 4. Proof. by apply: near. Qed.\n")
    folder = rocq.build(library, tmp_path / "out")[0]
    assert judged(folder)["a_last.last"] == {"a_last.near"}
    assert card(folder)["counts"]["left_out"]["files that are not UTF-8 (read as UTF-16 or Latin-1)"] == 1


@pytest.mark.parametrize(
    "project",
    [
        "-R . tiny base/nat.v base/more.v\na_last.v zeta.v test_suite/trial.v",
        '-Q ./ tiny\n-arg "-w -all"\n./base/nat.v ./base/more.v\n./a_last.v\nbase/../zeta.v # all\ntest_suite/trial.v',
    ],
)
def test_a_project_file_may_name_several_files_in_a_line(library: Path, built: Path, tmp_path: Path, project: str):
    """And begin with ./; those files were not read, or all that are in the folder where none was left."""
    (library / "_CoqProject").write_text(project, encoding="utf-8")
    again = rocq.build(library, tmp_path / "again")[0]
    assert (again / "corpus.jsonl").read_bytes() == (built / "corpus.jsonl").read_bytes()


def test_math_comp_agrees_with_the_shared_collection(shared_file: Callable[[str], Path], tmp_path: Path):
    """The same documents and texts, for 95 of 100 queries their premises, and for 92 of 100 no others.

    Theirs does not follow the names that notations give to lemmas, as `eqxx` to `eq_refl`.
    """
    source, theirs = shared_file("sources/math-comp.tar.gz"), shared_file("data/mathcomp-premise")
    folder = rocq.build(source, tmp_path)[0]
    ours, others = rows(folder / "corpus.jsonl"), rows(theirs / "corpus.jsonl")
    assert len(ours) == len(others)
    both = ours.keys() & others.keys()
    assert len(both) > 0.98 * len(others) and all(ours[name]["text"] == others[name]["text"] for name in both)
    found, expected = judged(folder), judged(theirs)
    asked = found.keys() & expected.keys()
    assert len(asked) > 0.98 * len(expected)
    assert sum(found[query] >= expected[query] for query in asked) > 0.95 * len(asked)
    assert sum(found[query] == expected[query] for query in asked) > 0.92 * len(asked)
    names = card(folder)["names"]
    assert (names["different"], names["of_several_lemmas"]) == (15652, 303)
    assert names["mentions"] == pytest.approx(85248, rel=0.05)
    order = {name: row["metadata"]["order"] for name, row in ours.items()}
    assert all(order[doc] < order[query] for query, docs in found.items() for doc in docs)
    texts = Counter(row["text"] for row in ours.values())
    for line in (folder / "qrels" / "test.tsv").read_text("utf-8").splitlines()[1:]:
        assert texts[ours[line.split("\t")[0]]["text"]] == 1
