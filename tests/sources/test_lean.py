"""The Lean builder on a small hand-made library that has every trap, and on what is no library."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from built_collections import card, check_earlier_candidates, content, judged, rows, texts
from git_history import git

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.sources import history, lean
from mirblab.sources.shared.lean_source import read_lean

ZERO = """module

public import Mathlib.Order.Basic

/-! A docstring of the module. -/

namespace Tiny

variable {G : Type*} [Mul G] (later : ℝ)

/-- The product of an element of `G` by itself. -/
@[simps] def double (x : G) : G := x * x

/-- A structure that holds two parts. -/
structure Pair where
  /-- its first part -/
  left' : ℕ
  right' : ℕ := by exact 0

section
open scoped Foo

theorem double_mul (x : G) : double x = x * x := rfl

/-- This lemma is for its own file only. -/
private lemma secret : 1 = 1 := rfl

protected theorem symm' : 2 = 2 := by exact secret

end

@[to_additive (attr := simp)]
lemma mul_inv_one : 3 = 3 := by
  -- double_mul /- is not used here, -/ nor
  have h : "double_mul" = "double_mul" := rfl
  exact symm' ▸ Tiny.symm'

/-- Pairs with equal parts, `α` and `β`,
    are the same pair. -/
theorem Pair.eqOf_α₁ (p : Pair) (h : p.left' = 0) : p = p := by
  intro double
  exact ⟨double, p.left', h.symm', mul_inv_one⟩

end Tiny
"""

BASIC = """import Tiny.Zero
open Tiny

namespace Other

alias twice_mul := Tiny.double_mul
alias ⟨_, twice'⟩ := Tiny.double_mul
alias foreign := Nat.add_comm

mutual
/-- The lemma `even_one` has its own name in it. -/
theorem even_one : 1 = 1 := by simp [double_mul]
/-- Too short. -/
theorem odd_one : 1 = 1 := twice_mul ▸ add_neg_zero
end

/-- The same text stands twice. -/
instance named : Inhabited Pair := ⟨⟨0, 0⟩⟩
instance : Inhabited ℕ := ⟨0⟩
/-- The same text stands twice. -/
abbrev short := named

theorem uses_member (q : Pair) : q = q := by
  obtain ⟨odd_one, hx⟩ : ∃ x, x = 1 := ⟨1, rfl⟩
  rcases hx with even_one | ⟨x, even_one⟩
  exact ⟨q.eqOf_α₁ odd_one, even_one, Tiny.Pair.left' q, _root_.Tiny.double q, secret⟩
theorem last_one : 5 = 5 := later _
theorem later : 6 = 6 := by
  refine foo (fun named ↦ ?_)
  exact named
theorem field_one : 7 = 7 where
  later := last_one
  mpr := even_one.trans
theorem cases_one : 9 = 9 := by
  cases foo with
  | inl even_one => exact even_one
  | inr h => exact h.even_one

end Other
"""

THIRD = """import Tiny.Zero

open Tiny (double) in
/-- This docstring stands behind what is opened. -/
theorem behind : 8 = 8 := by unfold double; exact ⟨double_mul, Other.even_one⟩

section
open Tiny hiding double
theorem Tiny.Pair.hides : 10 = 10 := ⟨double, eqOf_α₁, double_mul.symm⟩
theorem opened : 11 = 11 := ⟨double, double_mul⟩
end

open scoped Tiny in
theorem closed : 12 = 12 := ⟨double_mul, Tiny.Pair.hides⟩
"""

OLD = "import data.nat.basic\n\ntheorem old : 1 = 1 :=\nbegin\n  refl\nend\n"
FILES = {
    "Tiny/Zero.lean": ZERO,
    "Tiny/Basic.lean": BASIC,
    "Tiny/Third.lean": THIRD,
    "old.lean": OLD,
    "test/Trial.lean": "import Tiny.Zero\ntheorem trial : 1 = 1 := rfl\n",
    "lakefile.lean": "import Lake\ndef notOne := 1\n",
    ".lake/packages/other/Other.lean": "theorem notEven : 1 = 1 := rfl\n",
    "LICENSE": "Apache License\nVersion 2.0, January 2004",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files below a folder, and return it."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library of three files, one of tests, one in Lean 3, and one that Lake has fetched."""
    return write(tmp_path / "tiny-lean", FILES)


@pytest.fixture
def built(library: Path, tmp_path: Path) -> tuple[Path, ...]:
    """The folders of the collections of premises and of docstrings."""
    return tuple(lean.build(library, tmp_path / "out"))


def test_proofs_name_older_declarations(built: tuple[Path, ...]):
    """By namespaces, `open`, aliases, `to_additive` and the type of a hypothesis; local names mean no declaration.

    A field of a structure is the structure's; a private lemma is seen in its file, a protected one behind its
    namespace, and another file's where it is imported only.
    """
    assert judged(built[0]) == {
        "Tiny.symm'": {"Tiny.secret"},
        "Tiny.mul_inv_one": {"Tiny.symm'"},
        "Tiny.Pair.eqOf_α₁": {"Tiny.mul_inv_one"},
        "Other.even_one": {"Tiny.double_mul"},
        "Other.odd_one": {"Tiny.double_mul", "Tiny.mul_inv_one"},
        "Other.uses_member": {"Tiny.Pair.eqOf_α₁", "Tiny.Pair", "Tiny.double"},
        "Other.field_one": {"Other.last_one", "Other.even_one"},
        "behind": {"Tiny.double"},
        "Tiny.Pair.hides": {"Tiny.double", "Tiny.Pair.eqOf_α₁", "Tiny.double_mul"},  # it stands in Tiny itself
        "opened": {"Tiny.double_mul"},
        "closed": {"Tiny.Pair.hides"},
    }


def test_documents_are_all_declarations_in_the_order_of_the_library(built: tuple[Path, ...]):
    """Imports before importers; a statement has the variables that it takes, and neither proof nor comments."""
    premise, informal = (rows(folder / "corpus.jsonl") for folder in built)
    assert premise == informal
    assert {f"{row['title']} {row['text']}": row["metadata"]["file"] for row in premise.values()} == {
        "def Tiny.double {G : Type*} [Mul G] (x : G) : G := x * x": "Tiny/Zero.lean",
        "structure Tiny.Pair where left' : ℕ right' : ℕ": "Tiny/Zero.lean",
        "theorem Tiny.double_mul {G : Type*} [Mul G] (x : G) : double x = x * x": "Tiny/Zero.lean",
        "lemma Tiny.secret : 1 = 1": "Tiny/Zero.lean",
        "theorem Tiny.symm' : 2 = 2": "Tiny/Zero.lean",
        "lemma Tiny.mul_inv_one : 3 = 3": "Tiny/Zero.lean",
        "theorem Tiny.Pair.eqOf_α₁ (p : Pair) (h : p.left' = 0) : p = p": "Tiny/Zero.lean",
        "theorem Other.even_one : 1 = 1": "Tiny/Basic.lean",
        "theorem Other.odd_one : 1 = 1": "Tiny/Basic.lean",
        "instance Other.named : Inhabited Pair := ⟨⟨0, 0⟩⟩": "Tiny/Basic.lean",
        "abbrev Other.short := named": "Tiny/Basic.lean",
        "theorem Other.uses_member (q : Pair) : q = q": "Tiny/Basic.lean",
        "theorem Other.last_one : 5 = 5": "Tiny/Basic.lean",
        "theorem Other.later : 6 = 6": "Tiny/Basic.lean",
        "theorem Other.field_one : 7 = 7": "Tiny/Basic.lean",
        "theorem Other.cases_one : 9 = 9": "Tiny/Basic.lean",
        "theorem behind : 8 = 8": "Tiny/Third.lean",
        "theorem Tiny.Pair.hides : 10 = 10": "Tiny/Third.lean",
        "theorem opened : 11 = 11": "Tiny/Third.lean",
        "theorem closed : 12 = 12": "Tiny/Third.lean",
    }
    assert [row["metadata"]["order"] for row in premise.values()] == list(range(20))


def test_docstrings_ask_for_their_declaration(built: tuple[Path, ...]):
    """Also one behind `open ... in`; those that several share, that are short, or that have the name are no query."""
    assert texts(built[1], "queries") == {
        "Tiny.double-docstring": "The product of an element of `G` by itself.",
        "Tiny.Pair-docstring": "A structure that holds two parts.",
        "Tiny.Pair.eqOf_α₁-docstring": "Pairs with equal parts, `α` and `β`, are the same pair.",
        "behind-docstring": "This docstring stands behind what is opened.",
    }
    assert judged(built[1]) == {name: {name.removesuffix("-docstring")} for name in texts(built[1], "queries")}
    corpus = texts(built[1])
    assert not any(text in corpus[name.removesuffix("-docstring")] for name, text in texts(built[1], "queries").items())


def test_the_card_counts_what_was_left_out(built: tuple[Path, ...]):
    """And says under which licence the library is."""
    about = card(built[0])
    assert about["licence"] == "Apache-2.0" and about["command"] == "mirblab build lean --from tiny-lean"
    assert about["kinds"] == {"abbrev": 1, "def": 1, "instance": 1, "lemma": 2, "structure": 1, "theorem": 14}
    assert about["names"] == {"by their name": 16, "by the type of a hypothesis": 1}
    files = {
        "aliases (no documents, but names of their declarations)": 2,
        "aliases of other libraries' declarations": 1,
        "files in Lean 3": 1,
        "files of tests": 1,
        "instances and other declarations without a name": 1,
    }
    assert about["counts"]["left_out"] == files | {
        "mentions behind a dot whose meaning the text does not say (no premises)": 2,  # h.symm', h.even_one
        "mentions of a local name that a declaration has (no premises)": 5,
        "queries kept from test and dev: shared text": 2,  # even_one, odd_one
        "statements whose proof names no premise (documents, no queries)": 9,
        "statements with the text of another one": 3,
    }
    assert card(built[1])["counts"]["left_out"] == files | {
        "declarations that are no query: no docstring": 11,
        "declarations that are no query: the docstring has under 4 words": 1,
        "declarations that are no query: the docstring names the declaration itself": 1,
        "declarations that are no query: the docstring of another one": 2,
        "declarations that are no query: the statement of another one": 1,
    }


def test_candidates_stand_earlier(built: tuple[Path, ...]):
    """Neither the query itself nor a later declaration; no judgement is hidden. Docstrings search everything."""
    check_earlier_candidates(built[0], "test", "dev", "train")
    assert load_folder(built[1]).candidates.names == []


def test_an_archive_gives_the_same_bytes(library: Path, built: tuple[Path, ...], tmp_path: Path):
    """But for the command that names it; the library itself gives the same bytes again."""
    again = lean.build(library, tmp_path / "again")
    assert [content(folder) for folder in again] == [content(folder) for folder in built]
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as tar:
        tar.add(library, "tiny-lean-main")
    packed = lean.build(tmp_path / "packed.tar.gz", tmp_path / "packed")
    for folder, first in zip(packed, map(content, built), strict=True):
        assert {name for name, raw in content(folder).items() if raw != first[name]} == {"card.toml", "digests.txt"}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.txt": "x"}, r"in: found 0 \.lean files and no declaration of Lean 4"),
        ({"old.lean": OLD}, r"in: found 1 \.lean files, 1 of them in Lean 3 and no declaration"),
        (
            {"A.lean": "theorem one : 1 = 1 := rfl\n"},
            "in: of 1 declarations no proof names an older one, and no docstr",
        ),
    ],
)
def test_what_is_no_library_is_refused(tmp_path: Path, files: dict[str, str], message: str):
    """The error says what was found."""
    with pytest.raises(MirblabError, match=message):
        lean.build(write(tmp_path / "in", files), tmp_path / "out")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_a_library_must_be_given(tmp_path: Path):
    """There is none that stands for all."""
    with pytest.raises(MirblabError, match="give a Lean library with --from"):
        lean.build(None, tmp_path)


def test_a_library_without_docstrings_has_premises_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """What is not made is said."""
    files = {"A.lean": "theorem one : 1 = 1 := rfl\ntheorem two : 2 = 2 := one\n"}
    assert [each.name for each in lean.build(write(tmp_path / "in", files), tmp_path / "out")] == ["lean-premise"]
    assert "lean-informal is not made: in: of 2 declarations no docstring" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "folder"),
    [
        ({"lakefile.toml": 'srcDir = "src/"\n', "src/A/Z.lean": "", "src/B.lean": "import A.Z\n"}, ""),
        ({"A/Z.lean": "", "A/B.lean": "import A.Z\n"}, ""),
        ({"A/Z.lean": "", "A/B.lean": "import A.Z\n"}, "A"),
        ({"lakefile.lean": "", "A-1/Z.lean": "", "A-1/B.lean": "import «A-1».Z\n"}, ""),
        ({"lakefile.lean": "", "A/Z.lean": "", "B.lean": "public meta import all A.Z -- the first\n"}, ""),
        ({"README.md": "", "low/lakefile.toml": "", "low/A/Z.lean": "", "low/B.lean": "import A.Z\n"}, ""),
        ({"lakefile.lean": "", "A/Z.lean": "", "docs/lakefile.toml": "", "docs/B.lean": "import A.Z\n"}, ""),
    ],
)
def test_a_module_is_found_below_the_source_folder(tmp_path: Path, files: dict[str, str], folder: str):
    """That of the lakefile, the library's, or one whose name begins the modules' names; or in another package."""
    code = {"Z.lean": "theorem base : 1 = 1 := rfl\n", "B.lean": "theorem second : 2 = 2 := base\n"}
    whole = {name: text + code.get(Path(name).name, "") for name, text in files.items()}
    [built] = lean.build(write(tmp_path / "in", whole) / folder, tmp_path / "out")
    assert judged(built) == {"second": {"base"}}


def test_a_module_of_the_same_package_comes_first(tmp_path: Path):
    """In the folder of an old version, imports meant the files of the new one."""
    code = {"A.lean": "theorem base : 1 = 1 := rfl\n", "B.lean": "import A\ntheorem second : 2 = 2 := base\n"}
    files = {f"{folder}{name}": text for folder in ("", "Old/") for name, text in code.items()}
    files |= {"lakefile.toml": "", "Old/lakefile.toml": ""}
    [folder] = lean.build(write(tmp_path / "in", files), tmp_path / "out")
    assert judged(folder) == {"second": {"base"}, "second#2": {"base#2"}}


@pytest.mark.parametrize(
    "proof",
    [
        "by intro one; exact one",
        "by\n  rintro ⟨x, (one : 1 = 1)⟩ | one\n  exact one",
        "by\n  have one : 1 = 1 := rfl\n  exact one",
        "by\n  by_cases one : x = 1\n  · exact one",
        "by\n  filter_upwards [a] with x one\n  exact one",
        "fun one ↦ one",
        "by\n  match x with\n  | some one => exact one",
        "by\n  set one := x with h\n  exact one.trans h",
        "by\n  choose! one h using a\n  exact one",
        "foo (one := x)",
        "foo { a := x, one := y }",
        "foo {\n  a := f (x, y),\n  one := y }",
        "foo where one := x",
        "by\n  let one := x\n  exact one",
        "by simpa using .one",
        "open_one",
        "h.one",
    ],
)
def test_local_names_are_no_premises(tmp_path: Path, proof: str):
    """However they are bound; nor is what stands behind a dot, or an argument's name."""
    code = f"theorem one : 1 = 1 := rfl\ntheorem zero : 0 = 0 := one\ntheorem two (h : 2 = 2) : 2 = 2 := {proof}\n"
    assert judged(lean.build(write(tmp_path / "in", {"A.lean": code}), tmp_path / "out")[0]) == {"zero": {"one"}}


@pytest.mark.parametrize(
    "proof",
    [
        "by\n  have h : one := x\n  exact h",
        "by\n  have h : 2 = one := x\n  exact h",
        "calc 2\n  _ = one := x\n  _ = 2 := y",
        "by\n  have h : ∃ x, one := x\n  exact h",
        "by\n  have h : 2 =\n      one := x\n  exact h",
    ],
)
def test_the_last_name_of_a_type_is_a_premise(tmp_path: Path, proof: str):
    """Although `:=` follows it, behind a comma or on its own line; such names were taken for those of fields."""
    code = f"theorem one : 1 = 1 := rfl\ntheorem two : 2 = 2 := {proof}\n"
    assert judged(lean.build(write(tmp_path / "in", {"A.lean": code}), tmp_path / "out")[0]) == {"two": {"one"}}


PARTS = """
namespace M
theorem one : 1 = 1 := rfl
protected theorem kept : 2 = 2 := rfl
end M
namespace N
export M (one)
structure Nat where
  low : ℕ
export Nat (low)
@[simps] def shift : Nat := ⟨0⟩
theorem symm : 3 = 3 := rfl
theorem ext : 4 = 4 := rfl
theorem «θ».low : 5 = 5 := rfl
end N
"""


@pytest.mark.parametrize(
    ("proof", "expected"),
    [
        ("open M renaming one → uno, kept -> due in\ntheorem two : 2 = 2 := ⟨uno, due, kept⟩", {"M.one", "M.kept"}),
        ("open M renaming one → uno in\ntheorem two : 2 = 2 := one", set()),
        ("open M (kept) in\ntheorem two : 2 = 2 := kept", {"M.kept"}),
        ("theorem two : 2 = 2 := N.one", {"M.one"}),
        ("open N in\ntheorem two : 2 = 2 := one", {"M.one"}),
        ("theorem two : 2 = 2 := by\n  open M in\n  exact one", {"M.one"}),
        ("theorem two : 2 = 2 := open M N in one", {"M.one"}),
        ("theorem N.two : 2 = 2 := by simp [shift_low, N.shift_low_x]", {"N.shift"}),
        ("theorem N.two : 2 = 2 := by simp [Nat.le_succ, Nat.low]", {"N.Nat"}),
        ("theorem N.two : 2 = 2 := by simp [Nat.le_succ]", set()),
        ("theorem N.two : 2 = 2 := by simp [low]", {"N.Nat"}),
        ("theorem two : 2 = 2 := N.Nat.made_by_a_command", {"N.Nat"}),
        ("theorem N.two : 2 = 2 := θ.low", {"N.θ.low"}),
        ("theorem two : 2 = 2 := by rw [N.«θ».low]", {"N.θ.low"}),
        ("theorem N.two : 2 = 2 := by\n  apply symm\n  rw [← ext]", {"N.symm", "N.ext"}),
        ("theorem N.two : 2 = 2 := f (symm h)", {"N.symm"}),
        ("theorem N.two : 2 = 2 := f\n  (symm h)", {"N.symm"}),
        ("theorem N.two : 2 = 2 := by\n  symm\n  · ext x <;> (symm; ext)\n  try symm", set()),
    ],
)
def test_names_mean_what_lean_takes_them_for(tmp_path: Path, proof: str, expected: set[str]):
    """By `export`, `open ... renaming`, `open ... in` in a proof and `simps`, with guillemets, and as tactics are."""
    code = f"{PARTS}{proof}\ntheorem last : 9 = 9 := M.one\n"
    [folder] = lean.build(write(tmp_path / "in", {"A.lean": code}), tmp_path / "out")
    asked = judged(folder)
    assert asked.pop("last") == {"M.one"}
    assert set().union(*asked.values()) == expected


def test_folders_of_tests_are_left_out(tmp_path: Path):
    """Those called so anywhere, and a library's own beside it; a chapter on tests of convergence was one of them."""
    paths = ["A/ConvergenceTests/Ratio.lean", "A/RatioTest/Root.lean", "A/test/One.lean", "tests/Two.lean",
             "ATest/Three.lean"]  # fmt: skip
    files = {path: f"theorem n{number} : 1 = 1 := rfl\n" for number, path in enumerate(paths)}
    files["B.lean"] = "theorem one : 1 = 1 := rfl\ntheorem two : 2 = 2 := one\n"
    [folder] = lean.build(write(tmp_path / "in", files), tmp_path / "out")
    assert set(texts(folder)) == {"n0", "n1", "one", "two"}
    assert card(folder)["counts"]["left_out"]["files of tests"] == 3


def test_a_docstring_in_an_attribute_is_not_that_of_the_declaration():
    """As those of `to_additive` and of blueprints."""
    code = "open A in\n@[to_additive /-- Of the sum. -/] theorem one : 1 = 1 := rfl\n/-- Of two. -/ def two := 2\n"
    assert [each.docstring for each in read_lean(code).declarations] == ["", "/-- Of two. -/"]


def test_a_period_asks_the_new_theorems_for_what_was_there(tmp_path: Path):
    """What was renamed is no new theorem, and a premise is found under its old name."""
    before = "theorem zero : 0 = 0 := rfl\n/-- It follows from the other one. -/\ntheorem one : 1 = 1 := zero\n"
    after = before.replace("zero", "nil") + "theorem two : 2 = 2 := ⟨one, nil⟩\ntheorem three : 3 = 3 := two\n"
    clone = tmp_path / "tiny"
    for day, code in (("2019-06-01", before), ("2020-06-01", after)):
        write(clone, {"Tiny.lean": code, "lakefile.toml": 'name = "tiny"\n'})
        if day == "2019-06-01":
            git(clone, "init", "--quiet")
        git(clone, "add", ".")
        git(clone, "commit", "--quiet", "-m", day, day=day)
    days = {"at": "2020-01-01", "until": "2021-01-01"}
    [folder] = history.build("lean", lean.build, clone, tmp_path / "out", **days)
    assert folder.name == "lean-premise-at-2020-01-01"
    assert judged(folder, "test") == {"two": {"one", "zero"}} and judged(folder, "dev", "train") == {"one": {"zero"}}
    whole = history.build("lean", lean.build, clone, tmp_path / "out", at="2020-01-01")
    assert [each.name for each in whole] == ["lean-premise-at-2020-01-01", "lean-informal-at-2020-01-01"]
