"""The builder of blueprints on the bundled repository, which has every trap, on broken ones, and on a real one."""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from built_collections import card, content, judged, judged_by_split, rows, texts
from git_history import git

from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.data.beir import convert_corpus
from mirblab.data.collection import load_folder
from mirblab.sources import catalogue, history
from mirblab.sources.blueprints import build, premises
from mirblab.sources.blueprints.build import Blueprint, leaks_statement
from mirblab.sources.blueprints.nodes import STATEMENTS, read_latex_nodes, read_verso_nodes, statement_environments
from mirblab.sources.blueprints.repository import Repository, read_repositories, read_repository
from mirblab.sources.shared import lean_source, release
from mirblab.sources.shared.latex import STOPPED

SMALL = paths.bundled_path("data", "mini", "blueprint")


def pack(archive: Path, folder: Path | None, name: str = "") -> Path:
    with tarfile.open(archive, "w:gz") as tar:
        if folder is not None:
            tar.add(folder, arcname=name or folder.name)
    return archive


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The four collections of the bundled repository, by name."""
    place = tmp_path_factory.mktemp("built")
    shutil.copytree(SMALL, place / "small")
    return {folder.name: folder for folder in build.build(place / "small", place / "out")}


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a repository of a few files, given as texts or bytes by path."""

    def write(name: str = "tiny", **files: str | bytes) -> Path:
        folder = tmp_path / "repositories" / name
        for path, text in {"lakefile.toml": "", **files}.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode() if isinstance(text, str) else text)
        return folder

    return write


TEX = "blueprint/src/content.tex"
LEMMA = "\\begin{lemma}\\label{l}\\lean{one}\n The number one is\n equal to itself.\n\\end{lemma}\n"
ONE = "theorem one : 1 = 1 := rfl\n"


def test_statements_find_their_declarations(built: dict[str, Path]):
    """In three formats; by full name, alias, field or ending; not in comments, prose or proofs."""
    assert judged(built["blueprints"]) == {
        "q:small:def:double": {"small:Small.double"},
        "q:small:lem:double-add": {"small:Small.double_add"},
        "q:small:thm:even-or-odd": {"small:Small.even_or_odd", "small:Small.not_even_and_odd"},
        "q:small:square-even": {"small:Small.Parity.even_sq"},
        "q:small:def:interval": {"small:Small.Interval"},
        "q:small:lem:interval-length": {"small:Small.Interval.length_nonneg"},
        "q:small:thm:odd-sum": {"small:Small.sum_odd"},
        "q:small:lem:sum-order": {"small:Small.sum_le_sum_range", "small:Small.sum_congr_range"},
        "q:small:Small.map_inverse": {"small:Small.map_inverse"},
        "q:small:lem:commuting-inverse": {"small:Small.commuting_inverse"},
        "q:small:thm:odd-square": {"small:Small.Parity.odd_sq"},
        "q:small:thm:double-order": {"small:Small.double_lt"},
    }
    assert card(built["blueprints"])["repositories"]["small"]["names"] == {
        "as a field": 1, "by alias": 1, "by its ending": 1, "exact": 14, "not found": 1,
    }  # fmt: skip


def test_documents_are_statements_with_the_variables_that_they_take(built: dict[str, Path]):
    """No docstring, attribute, comment or proof; full names; a definition has its body; no private lemma."""
    assert texts(built["blueprints"], "corpus") == {
        "small:Small.double_lt": "theorem Small.double_lt {a b : ℕ} (h : a < b) : double a < double b",
        "small:Small.Interval": "structure Small.Interval where left : ℤ right : ℤ ordered : left ≤ right",
        "small:Small.Interval.length": "def Small.Interval.length (I : Interval) : ℤ := I.right - I.left",
        "small:Small.Interval.length_nonneg": "theorem Small.Interval.length_nonneg (I : Interval) : 0 ≤ I.length",
        "small:Small.Interval.widened": "def Small.Interval.widened (I : Interval) : Interval where "
        "left := I.left - 1 right := I.right + 1",
        "small:Small.double": "def Small.double (n : ℕ) : ℕ := n + n",
        "small:Small.double_zero": "lemma Small.double_zero : double 0 = 0",
        "small:Small.double_add": "lemma Small.double_add (a b : ℕ) : double (a + b) = double a + double b",
        "small:Small.double_strictMono": "lemma Small.double_strictMono : StrictMono double",
        "small:Small.even_or_odd": "theorem Small.even_or_odd (n : ℕ) : (∃ k, n = 2 * k) ∨ ∃ k, n = 2 * k + 1",
        "small:Small.not_even_and_odd": "theorem Small.not_even_and_odd (n : ℕ) : "
        "¬((∃ k, n = 2 * k) ∧ ∃ k, n = 2 * k + 1)",
        "small:Small.Parity.even_sq": "theorem Small.Parity.even_sq {n : ℕ} (h : Even n) : Even (n ^ 2)",
        "small:Small.Parity.odd_sq": "theorem Small.Parity.odd_sq {n : ℕ} (h : Odd n) : n ^ 2 % 4 = 1",
        "small:Small.Parity.even_two_mul": "theorem Small.Parity.even_two_mul : ∀ n : ℕ, Even (2 * n)",
        "small:Small.sum_odd": "theorem Small.sum_odd (n : ℕ) : ∑ i ∈ range n, (2 * i + 1) = n ^ 2",
        "small:Small.sum_le_sum_range": "theorem Small.sum_le_sum_range (n : ℕ) {f g : ℕ → ℕ} "
        "(h : ∀ i < n, f i ≤ g i) : ∑ i ∈ range n, f i ≤ ∑ i ∈ range n, g i",
        "small:Small.sum_congr_range": "theorem Small.sum_congr_range (n : ℕ) {f g : ℕ → ℕ} "
        "(h : ∀ i < n, f i = g i) : ∑ i ∈ range n, f i = ∑ i ∈ range n, g i",
        "small:Small.sum_const_range": "theorem Small.sum_const_range (n m : ℕ) : ∑ _i ∈ range n, m = n * m",
        "small:Small.map_inverse": "theorem Small.map_inverse {G H : Type*} [Group G] [Group H] (φ : G →* H) (a : G) : "
        "φ a⁻¹ = (φ a)⁻¹",
        "small:Small.commuting_inverse": "lemma Small.commuting_inverse {G : Type*} [Group G] (a b : G) "
        "(hab : a * b = b * a) : a * b⁻¹ = b⁻¹ * a",
        "small:Small.exists_pow_eq_one": "theorem Small.exists_pow_eq_one {G : Type*} [Group G] (a : G) [Finite G] : "
        "∃ n, 0 < n ∧ a ^ n = 1",
    }


def test_queries_are_prose_with_mathematics_written_out(built: dict[str, Path]):
    """Labels, uses and names are gone, references masked, the title stands aside; ids are no document's."""
    asked = rows(built["blueprints"] / "queries.jsonl")
    assert asked["q:small:lem:double-add"]["text"] == (
        "The double (see [ref]) of a sum is the sum of the doubles: "
        r"$$ \operatorname{double}(a + b) = \operatorname{double}(a) + \operatorname{double}(b). $$"
    )
    assert asked["q:small:lem:double-add"]["metadata"] == {
        "repo": "small", "title": "Doubling a sum", "source": "latex", "kind": "lemma", "file": TEX,
        "names_decl": False, "in_mathlib": False,
    }  # fmt: skip
    assert asked["q:small:def:double"]["metadata"]["names_decl"]
    assert asked["q:small:thm:odd-sum"]["text"] == "The sum of the first $n$ odd numbers is the square of $n$."
    assert asked["q:small:thm:odd-sum"]["metadata"]["source"] == "attribute"
    assert asked["q:small:thm:odd-square"]["text"] == (
        "The square of an odd number leaves the remainder $1$ when it is divided by $4$, unlike that in [ref]."
    )
    assert asked["q:small:thm:odd-square"]["metadata"]["source"] == "verso"
    assert not set(asked) & set(rows(built["blueprints"] / "corpus.jsonl"))


def test_the_card_counts_what_was_left_out(built: dict[str, Path]):
    """With the reason, and says what each repository gave."""
    found = card(built["blueprints"])
    assert found["counts"]["left_out"] == {
        "\\lean outside of a statement": 2,
        "instances and other declarations without a name": 1,
        "names that no file declares (mathlib's, of another library, or out of date)": 1,
        "nodes that name what one in another format names (that one is kept)": 1,
        "private declarations that no statement names": 1,
        "statements in LaTeX without \\lean (no queries)": 1,
        "statements none of whose declarations is found": 1,
        "statements under 4 words": 1,
    }
    about = found["repositories"]["small"]
    assert (about["licence"], about["nodes"], about["queries"], about["declarations"]) == ("CC0-1.0", 17, 12, 22)
    assert found["licence"] == "CC0-1.0" and found["command"] == "mirblab build blueprints --from small"


def test_the_paired_collection_has_only_what_a_statement_names(built: dict[str, Path]):
    """With the texts, queries and judgements of the whole one; the leaky one has their source."""
    whole, paired, leaky = (built[name] for name in build.COLLECTIONS)
    named = {doc for docs in judged(whole).values() for doc in docs}
    assert texts(paired, "corpus") == {key: text for key, text in texts(whole, "corpus").items() if key in named}
    assert {key for key, row in rows(whole / "corpus.jsonl").items() if row["metadata"]["paired"]} == named
    assert set(texts(leaky, "corpus")) == named
    for name in ("queries.jsonl", "qrels/test.tsv"):
        assert len({(folder / name).read_bytes() for folder in (whole, paired, leaky)}) == 1
    assert texts(leaky, "corpus")["small:Small.sum_odd"].startswith("/-- The sum of the first $n$ odd numbers")
    assert texts(leaky, "corpus")["small:Small.sum_odd"].endswith("rw [sum_range_succ, ih]; ring")


def words_shared(query: str, document: str) -> int:
    """Return the longest run of words that stands in both; letters alone are left to formulas."""
    asked, told = (re.findall(r"[^\W\d_]{2,}", text.casefold()) for text in (query, document))
    best, before = 0, [0] * (len(told) + 1)
    for word in asked:
        now = [0] + [before[at] + 1 if word == other else 0 for at, other in enumerate(told)]
        best, before = max(best, *now), now
    return best


def test_no_document_holds_its_query(built: dict[str, Path]):
    """Neither folded as a whole nor in a long run of words; the leaky variant shows that the check can see it."""
    found: dict[str, list[bool]] = {}
    for name in build.COLLECTIONS:
        folder = built[name]
        asked, told = texts(folder, "queries"), texts(folder, "corpus")
        pairs = [(asked[query], told[doc]) for query, docs in judged(folder).items() for doc in docs]
        found[name] = [
            words_shared(one, other) > 5 or "".join(one.casefold().split()) in "".join(other.casefold().split())
            for one, other in pairs
        ]
    assert not any(found["blueprints"]) and not any(found["blueprints-paired"])
    assert sum(found["blueprints-leaky"]) == 8


def test_the_same_repositories_give_the_same_bytes(built: dict[str, Path], tmp_path: Path):
    """From a folder, from an archive, and from a folder of archives whose names carry a commit.

    A .zip, as GitHub gives it, was passed over in a folder, and refused alone.
    """
    copy, zipped = tmp_path / "many", tmp_path / "zipped"
    copy.mkdir()
    pack(copy / "whatever.tar.gz", SMALL, "small-" + "0123456789" * 4)
    alone = pack(tmp_path / "small.tar.gz", SMALL, "small")
    shutil.copytree(SMALL, tmp_path / "plain" / "small-main")
    shutil.make_archive(str(zipped / "small-main"), "zip", tmp_path / "plain")
    for origin in (copy, alone, zipped, zipped / "small-main.zip"):
        for folder in build.build(origin, tmp_path / f"out-{origin.name}"):
            assert {key: raw for key, raw in content(folder).items() if key not in ("card.toml", "digests.txt")} == {
                key: raw for key, raw in content(built[folder.name]).items() if key not in ("card.toml", "digests.txt")
            }
    found = card(tmp_path / "out-many" / "blueprints")
    assert found["repositories"]["small"]["commit"] == "0123456789" * 4
    assert found["revision"] == card(built["blueprints"])["revision"]


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_what_macos_adds_to_an_archive_is_no_part_of_it(built: dict[str, Path], tmp_path: Path, kind: str):
    """Neither a second folder beside that of the repository, nor a second file beside each."""
    shutil.copytree(SMALL, tmp_path / "plain" / "small")
    for name in ("__MACOSX/small/._a.lean", "small/._b.tex", "._small"):
        (tmp_path / "plain" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "plain" / name).write_bytes(b"\x00\x05\x16\x07")
    (tmp_path / "plain" / "small" / "LICENSE").write_text("Apache License")
    archive = shutil.make_archive(str(tmp_path / "small"), kind, tmp_path / "plain")
    folder = build.build(archive, tmp_path / "out")[0]
    assert texts(folder) == texts(built["blueprints"]) and card(folder)["licence"] == "Apache-2.0"
    release.unpack(Path(archive), tmp_path / "unpacked")
    assert not [path for path in (tmp_path / "unpacked").rglob("*") if path.name.startswith(("._", "__"))]


def test_mathlib_is_found_when_it_is_given(tmp_path: Path):
    """As JSON lines, as a collection, or as its source; the statement that names it becomes a query."""
    statement = "theorem Nat.exists_infinite_primes (n : ℕ) : ∃ p, n ≤ p ∧ Prime p"
    lines, source = tmp_path / "views.jsonl", tmp_path / "mathlib4"
    lines.write_text(json.dumps({"id": "Nat.exists_infinite_primes", "signature": statement}) + "\n", "utf-8")
    (tmp_path / "statements").mkdir()
    (tmp_path / "statements" / "corpus.jsonl").write_text(
        json.dumps({"_id": "Nat.exists_infinite_primes", "text": statement}) + "\n", "utf-8"
    )
    (source / "Mathlib").mkdir(parents=True)
    (source / "Mathlib" / "Prime.lean").write_text(
        "namespace Nat\ntheorem exists_infinite_primes (n : ℕ) : ∃ p, n ≤ p ∧ Prime p := by\n  simp\nend Nat\n", "utf-8"
    )
    (source / "Mathlib" / ".#Prime.lean").symlink_to("someone@somewhere.1234")  # Emacs's lock, a link to no file
    convert_corpus(tmp_path / "statements", tmp_path / "in-parts")
    for place in (lines, tmp_path / "statements", tmp_path / "in-parts", source):
        whole = build.build(SMALL, tmp_path / "out", mathlib=str(place))[0]
        assert judged(whole)["q:blueprint:thm:prime-above"] == {"mathlib:Nat.exists_infinite_primes"}
        assert texts(whole, "corpus")["mathlib:Nat.exists_infinite_primes"] == statement
        assert card(whole)["repositories"]["blueprint"]["names"]["in mathlib"] == 1
        assert card(whole)["licence"] == "Apache-2.0, CC0-1.0" and card(whole)["mathlib"]
        assert str(tmp_path) not in (whole / "card.toml").read_text("utf-8")


def test_broken_mathlib_lines_are_named(tmp_path: Path):
    """With file and line."""
    lines = tmp_path / "views.jsonl"
    lines.write_text('{"name": "Nat"}\n', "utf-8")
    with pytest.raises(MirblabError, match=r"views\.jsonl, line 1: expected 'id' and 'signature'.*found name"):
        build.build(SMALL, tmp_path / "out", mathlib=str(lines))
    lines.write_text('{"id": "Nat", "signature": "def Nat : Type"}\n', "utf-8")
    with pytest.raises(MirblabError, match=r"none of the 1 declarations .* such as Nat\.exists_infinite_primes; give"):
        build.build(SMALL, tmp_path / "out", mathlib=str(lines))
    assert not (tmp_path / "out").exists()


def test_odd_repositories_are_read_or_counted(repository: Callable[..., Path], tmp_path: Path):
    """Without a blueprint, empty, with broken LaTeX or Lean, in other encodings, with Windows' line ends."""
    sound = repository("sound", **{TEX: LEMMA, "A.lean": ONE})
    repository("plain", **{"A.lean": "theorem lonely : 2 = 2 := rfl"})
    repository("broken", **{
        TEX: LEMMA + "\\begin{lemma}\\lean{two} Never ends, $x {\n\\end{theorem} 100\\% \\lean{",
        "A.lean": ONE + "end Foo end\n@[simp\ntheorem two : \"\n/- open",
    })  # fmt: skip
    repository("latin", **{TEX: LEMMA.replace("one is", "öne is").encode("latin-1"), "A.lean": ONE.encode("utf-16")})
    repository("windows", **{TEX: LEMMA.replace("\n", "\r\n"), "A.lean": b"\xef\xbb\xbf" + ONE.encode() * 2})
    pack(sound.parent / "empty.tar.gz", None)
    (sound.parent / "notes.txt").write_text("no repository", "utf-8")
    whole = build.build(sound.parent, tmp_path / "out")[0]
    assert texts(whole, "queries") == {
        "q:broken:l": "The number one is equal to itself.",
        "q:latin:l": "The number öne is equal to itself.",
        "q:sound:l": "The number one is equal to itself.",
        "q:windows:l": "The number one is equal to itself.",
    }
    assert texts(whole, "corpus")["windows:one"] == texts(whole, "corpus")["latin:one"] == "theorem one : 1 = 1"
    assert not any("plain" in name for name in texts(whole, "corpus"))
    left_out = card(whole)["counts"]["left_out"]
    assert left_out["repositories without Lean"] == 1
    assert left_out["repositories in which no statement names a declaration"] == 1
    assert left_out["files that are not UTF-8 (read as UTF-16 or Latin-1)"] == 2
    assert (
        left_out["environments that do not end"] >= 1
        and left_out["declarations with name and text of another one"] == 1
    )


def test_an_archive_that_leaves_its_folder_is_refused(tmp_path: Path):
    """And so is one that is none; nothing is written."""
    (tmp_path / "many").mkdir()
    with tarfile.open(tmp_path / "many" / "evil.tar.gz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("../outside.lean"), io.BytesIO(b""))
    with pytest.raises(MirblabError, match="evil.tar.gz cannot be unpacked"):
        build.build(tmp_path / "many", tmp_path / "out")
    (tmp_path / "many" / "evil.tar.gz").write_bytes(b"")
    with pytest.raises(MirblabError, match="evil.tar.gz cannot be unpacked"):
        build.build(tmp_path / "many", tmp_path / "out")
    assert not (tmp_path / "out").exists() and not list(tmp_path.rglob("outside.lean"))


@pytest.mark.parametrize("name", ["../outside.lean", "/outside.lean", "tiny/../../outside.lean"])
def test_a_zip_archive_that_leaves_its_folder_is_refused(tmp_path: Path, name: str):
    """By "..", or by an absolute path; nothing is written."""
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as packed:
        packed.writestr("lakefile.toml", "")
        packed.writestr(name, "theorem other : 1 = 1 := rfl")
    with pytest.raises(MirblabError, match=r"evil.zip cannot be unpacked: '.*outside.lean' would lie outside"):
        build.build(tmp_path / "evil.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists() and not list(tmp_path.rglob("outside.lean"))


def test_a_zip_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Before anything is written."""
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.lean", " " * 5000)
    monkeypatch.setenv("MIRBLAB_LARGEST", "0.000001")
    with pytest.raises(MirblabError, match=r"bomb.zip has [\d,]+ bytes and unpacks to 5,000, while 1,000 are allowed"):
        build.build(tmp_path / "bomb.zip", tmp_path / "out")


def test_wrong_origins_and_names_are_refused(repository: Callable[..., Path], tmp_path: Path):
    """The message says what was found."""
    with pytest.raises(MirblabError, match="give a folder of repositories with --from"):
        build.build(None, tmp_path / "out")
    (tmp_path / "bare").mkdir()
    with pytest.raises(MirblabError, match="bare holds no repository.*found nothing"):
        build.build(tmp_path / "bare", tmp_path / "out")
    one = repository("one", **{TEX: LEMMA, "A.lean": "theorem other : 1 = 1 := rfl"})
    with pytest.raises(MirblabError, match="1 repositories, and no statement that names a declaration"):
        build.build(one, tmp_path / "out")
    with pytest.raises(MirblabError, match="no repository 'on'; did you mean 'one'. Known: one"):
        build.build(one.parent, tmp_path / "out", names="on")
    pack(one.parent / "one-main.tar.gz", one, "one-main")
    with pytest.raises(MirblabError, match=r"one and one-main.tar.gz are both the repository 'one'"):
        build.build(one.parent, tmp_path / "out")


def test_only_the_chosen_repositories_are_taken(repository: Callable[..., Path]):
    """By name, through the builder; the card says so."""
    for name in ("first", "second"):
        folder = repository(name, **{TEX: LEMMA, "A.lean": ONE})
    whole = catalogue.build("blueprints", str(folder.parent), names="second")[0]
    assert list(texts(whole, "queries")) == ["q:second:l"]
    assert card(whole)["command"] == "mirblab build blueprints --from repositories --set names=second"


def test_the_miniature_is_the_bundled_blueprint(built: dict[str, Path]):
    """It loads by name, with every document as a candidate."""
    found = catalogue.load("mini-blueprint")
    assert dict(zip(found.corpus.doc_id, found.corpus.text, strict=True)) == texts(built["blueprints"], "corpus")
    assert (len(found.queries), len(found.corpus), len(found.qrels), found.candidates.names) == (12, 21, 14, [])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("theorem a : let x := 1; x = 1 := rfl", ["theorem a : let x := 1; x = 1"]),
        ("lemma a : S where\n  b := c", ["lemma a : S"]),
        ("theorem a : ℕ → ℕ\n  | 0 => 0\n  | n + 1 => n", ["theorem a : ℕ → ℕ"]),
        (
            "theorem a : b = match c with\n  | 0 => let x := 1; x\n  | n + 1 => n := by\n  simp",
            ["theorem a : b = match c with | 0 => let x := 1; x | n + 1 => n"],
        ),
        ("lemma a : b = fun\n  | 0 => 1\n  | _ => c\n  := d", ["lemma a : b = fun | 0 => 1 | _ => c"]),
        ("theorem a : ∀ n, P n\n  | 0 | 1 => b\n  | n => match c with\n    | d => e", ["theorem a : ∀ n, P n"]),
        ("theorem a : P\n  | 0, _\n  | _, 0 => rfl\n  | _, _ => b", ["theorem a : P"]),
        ("theorem a :\n  |b| ≤ |c| := fun d => e", ["theorem a : |b| ≤ |c|"]),
        ("theorem a :\n  | b - c | ≤ d := fun e => f", ["theorem a : | b - c | ≤ d"]),
        ("theorem a (h : b := by simp) : c := d", ["theorem a (h : b := by simp) : c"]),
        ("def a : S where\n  b := 1\n  c := by\n    simp\n  d := 2", ["def a : S where b := 1"]),
        ("def a (n : ℕ) : ℕ := n\ntermination_by n", ["def a (n : ℕ) : ℕ := n"]),
        ('/-- theorem b : c -/\ntheorem a : "theorem" = x := y -- := z', ['theorem a : "theorem" = x']),
        ("namespace A.B\ntheorem _root_.c : d := e\nend B\ntheorem f : d := e", ["theorem c : d", "theorem A.f : d"]),
        ("@[expose] public section\ntheorem a : b := c\nend\nend\nend A", ["theorem a : b"]),
        (
            "mutual\ndef a : ℕ := b\ndef b : ℕ := a\nend\ntheorem c : d := e",
            ["def a : ℕ := b", "def b : ℕ := a", "theorem c : d"],
        ),
        ("@[simp,\n  to_additive (attr := simp) x]\nprotected theorem a.{u} : b := c", ["theorem a : b"]),
        ("open A in\nset_option b 1 in\n/-- c -/\ntheorem a : b := c", ["theorem a : b"]),
        ("deriving instance Repr for A\nexample : a := b\ninstance : C := d", []),
        (
            "variable {x : T} in\ntheorem a : x = x := b\ntheorem c : x = x := b",
            ["theorem a {x : T} : x = x", "theorem c : x = x"],
        ),
        (
            "variable (h : ∀ᶠ x in l, p x) (y : T)\ntheorem a : y = y := b\nvariable {z : ∑ i in s, f} in\n"
            "open A in\ntheorem c : z = z := b",
            ["theorem a (y : T) : y = y", "theorem c {z : ∑ i in s, f} : z = z"],
        ),
        ("variable (x : T)\nvariable {x}\ntheorem a : x = x := b", ["theorem a {x : T} : x = x"]),
        ("variable (x : T)\nsection\nvariable (x : S)\ntheorem a : x = x := b\nend", ["theorem a (x : S) : x = x"]),
        ("variable (x y : T)\ntheorem a (x : S) : x = y := b", ["theorem a (y : T) (x : S) : x = y"]),
        (
            "variable (f : T) [C T]\ntheorem a : (∀ f, f = 1) ∧ (fun f ↦ f) = g := b",
            ["theorem a : (∀ f, f = 1) ∧ (fun f ↦ f) = g"],
        ),
        (
            "variable {T : Type} [C T] [D] (x : T)\ntheorem a : x = x := b",
            ["theorem a {T : Type} [C T] [D] (x : T) : x = x"],
        ),
        ("variable {T : Type} [C T] [D.{u}] (m : M T) [m.C]\ntheorem a : 1 = 1 := b", ["theorem a [D.{u}] : 1 = 1"]),
        (
            "variable (n : ℕ) (h : n = 1)\ninclude h\ntheorem a : b := c\nomit h\ntheorem d : b := c",
            ["theorem a (n : ℕ) (h : n = 1) : b", "theorem d : b"],
        ),
        ("variable (n : ℕ)\ntheorem a : f (n := 1) = x.n := b", ["theorem a : f (n := 1) = x.n"]),
        ('#doc (Manual) "A" =>\ntheorem says : that\n', []),
        (
            "def a : T := ⟨0, by simp [b]⟩\ndef c : T := f (by\n  simp) x",
            ["def a : T := ⟨0, _⟩", "def c : T := f (_) x"],
        ),
        (
            "def a : T := { x := 0, y := by exact ⟨b, c⟩\n  z := 1 }\ndef d : T := ⟨⟨0, by simp⟩, by simp; decide⟩",
            ["def a : T := { x := 0, y := _}", "def d : T := ⟨⟨0, _⟩, _⟩"],
        ),
        (
            "def a : T where\n  x := f (by simp) 0\n  y z {w} := by simp\n  z := 1\ndef b : T := by exact (by simp)",
            ["def a : T where x := f (_) 0", "def b : T"],
        ),
        (
            "def a : (x : T := by simp) → f x where\n  y := 0\ndef b (s : S := by c) : T := by simp",
            ["def a : (x : T := by simp) → f x where y := 0", "def b (s : S := by c) : T"],
        ),
        (
            'def a : S := f " (by " /- (by -/ 0 -- (by\ndef b : S := g "by" 0',
            ['def a : S := f " (by " 0', 'def b : S := g "by" 0'],
        ),
        ("theorem a : P ⟨0, by simp⟩ (x := by\n  simp) := by simp [c]", ["theorem a : P ⟨0, by simp⟩ (x := by simp)"]),
        (
            "structure A extends B where\n  c : ℝ\n  d : 0 < c := by positivity\n"
            "  e (x : c = 0 := by simp) :\n    c ≤ c := by\n    simp\n    rfl\n"
            "  f : g =\n    h\n    := by simp\n  i : c = c := fun x ↦ by simp\n  j : c\nderiving D",
            [
                "structure A extends B where c : ℝ d : 0 < c e (x : c = 0 := _) : c ≤ c f : g = h "
                "i : c = c := fun x ↦ _ j : c deriving D"
            ],
        ),
        (
            'class A\n    (n : ℕ) : Type where\n  mk ::\n  b : S := " := by "\n  c : S := by\n    exact "\n  x"\n'
            "  d : ℕ := 0",
            ['class A (n : ℕ) : Type where mk :: b : S := " := by " c : S d : ℕ := 0'],
        ),
    ],
)
def test_lean_is_read_as_lean_means_it(code: str, expected: list[str]):
    """Names, scopes, variables, and where statements and definitions end."""
    assert [declaration.statement for declaration in lean_source.read_lean(code).declarations] == expected


MACROS = {
    "blueprint/src/macros/common.tex": r"""\newcommand{\R}{\mathbb{R}} % \newcommand{\R}{no}
\DeclareMathOperator{\Vol}{Vol}\newcommand{\abs}[1]{\lvert #1\rvert}\def\eps{\varepsilon}\newcommand{\todo}[1]{TODO #1}
\let\old\mathbb\renewcommand{\mathbb}[1]{\old{#1}}\newcommand{\ball}[2][1]{B_{#1}(#2)}""",
    "blueprint/src/macros/print.tex": r"""\newcommand{\lean}[1]{}\newcommand{\uses}[1]{}\newcommand{\leanok}{[Done]}
\newcommand{\one}{\Bbbone}\newcommand{\proves}[1]{}""",
    "blueprint/src/macros/web.tex": r"\newcommand{\one}{[0]}",
}
WRITTEN = r"\R, \Vol(\eps), \abs{x_\eps}, \one, \ball{0}, \ball[2]{0}, \mathbb{C}, \undefined"
READ = r"\mathbb{R}, \operatorname{Vol}(\varepsilon), \lvert x_{\varepsilon}\rvert, [0], B_{1}(0), B_{2}(0), "
READ += r"\mathbb{C}, \undefined"


def test_commands_of_the_authors_are_written_out(repository: Callable[..., Path], tmp_path: Path):
    """In every format, as on the blueprint's page; the blueprint's own commands and \\todo keep their meaning."""
    tex = rf"""\documentclass{{book}}\begin{{document}}
\begin{{lemma}}[Of $\R$]\label{{l}}\lean{{one}}\leanok
The real $\R$ is one. \todo{{Say why.}}
\end{{lemma}}
\begin{{lemma}}\label{{m}}\lean{{two}}\uses{{l}}
The first of ${WRITTEN}$.
\end{{lemma}}
\end{{document}}
"""
    lean = f"""theorem one : A := b
theorem two : A := c
@[blueprint "a" (statement := /-- The second of ${WRITTEN}$. -/) (title := "$\\\\R$")] theorem three : A := d
theorem four : A := e
#doc (Manual) "A" =>
:::theorem "v" (lean := "four")
The third of $`{WRITTEN}`.
:::
"""
    folder = repository(**{TEX: tex, "A.lean": lean, **MACROS})
    whole, *_, uses = build.build(folder, tmp_path / "out")
    assert texts(whole, "queries") == {
        "q:tiny:l": r"The real $\mathbb{R}$ is one.",
        "q:tiny:m": f"The first of ${READ}$.",
        "q:tiny:a": f"The second of ${READ}$.",
        "q:tiny:v": f"The third of ${READ}$.",
    }
    asked = rows(whole / "queries.jsonl")
    assert [asked[f"q:tiny:{label}"]["metadata"]["title"] for label in "la"] == [r"Of $\mathbb{R}$", r"$\mathbb{R}$"]
    assert texts(uses, "corpus")["tiny:m"] == f"The first of ${READ}$."
    assert judged_by_split(uses)["test"] == {"tiny:m": ["tiny:l"]}


def test_attributes_are_read_wherever_they_stand():
    """Among others, in to_additive, given later to one or more names in a namespace, with or without a label."""
    code = """namespace A
@[to_additive (attr := blueprint "m"), other (title := "no")] theorem a : b := c
@[nolint x, blueprint? (statement := /-- Two "words" (in -/) (title := "t \\\\alpha")] theorem b : b := c
attribute [blueprint "later" (statement := /-- Said later -/)] a b
@[simp] theorem blueprint : b := c
end A
"""
    found = Blueprint(Repository("r", lean={"A.lean": code}), Counter())
    assert [(node.label, node.text, node.names[0][0], node.title) for node in found.nodes] == [
        ("m", "", "A.a", ""),
        ("A.b", 'Two "words" (in', "A.b", "t"),
        ("later", "Said later", "A.a", ""),
    ]
    assert found.nodes[2].names == [["A.a", "a"], ["A.b", "b"]]


def test_a_label_that_was_copied_stands_for_two_statements(repository: Callable[..., Path], tmp_path: Path):
    """Each with its own declarations; one that has no text of its own, or nearly the same, joins the first."""
    code = """@[blueprint "l" (statement := /-- The number one is odd. -/)] theorem a : b := c
@[blueprint "l" (statement := /-- The number one  is\n  odd! -/)] theorem d : b := c
@[blueprint "l"] theorem e : b := c
@[blueprint "l" (statement := /-- The number two is even. -/)] theorem f : b := c
"""
    whole = build.build(repository(**{"A.lean": code}), tmp_path / "out")[0]
    assert judged(whole) == {"q:tiny:l": {"tiny:a", "tiny:d", "tiny:e"}, "q:tiny:l#2": {"tiny:f"}}


def test_latex_is_read_without_comments_and_verbatim_text():
    """A diagram stays, as mathematics; an environment that the blueprint defines counts.

    Names in verbatim text, and statements that their author has commented out, were read, too.
    """
    source = r"""\newtheorem*{satz}{Satz}
\begin{satz}\label{s}\lean{a.b}% \lean{c}
A diagram \begin{tikzcd} A \arrow[r] & B \end{tikzcd} commutes.
\begin{verbatim}\lean{d} of code\end{verbatim}
\begin{proof}\lean{e} Easy.\end{proof}
\end{satz}
\begin{itemize}\item \lean{f} an item\end{itemize}
\begin{comment}\begin{satz}\lean{g} Dropped by its author.\end{satz}\end{comment}"""
    odd: Counter[str] = Counter()
    [node] = read_latex_nodes(source, statement_environments([source]), "", odd)
    assert (node.label, node.names, node.kind) == ("s", [["a.b"]], "satz")
    assert node.text == r"A diagram \begin{tikzcd} A \arrow[r] & B \end{tikzcd} commutes."
    assert odd[r"\lean outside of a statement"] == 2


def test_nothing_is_read_that_latex_does_not_print():
    r"""Neither in `\iffalse`, nor after the end of the document or of the file; files that go on are counted."""
    source = r"""\begin{lemma}\label{s}\lean{a} Said.\end{lemma}
\iffalse\begin{lemma}\lean{b} Withdrawn.\end{lemma}\else\begin{lemma}\lean{c} Kept.\end{lemma}\fi
\begin{verbatim}\end{document}\end{verbatim}
\verb|\endinput|\begin{lemma}\lean{d} Below code.\end{lemma}
\ifx\x\undefined\else\endinput\fi\begin{lemma}\lean{e} Below a guard.\end{lemma}
"""
    for end, rest, count in ((r"\end{document}", "", 0), (r"\endinput", r"\begin{lemma}\lean{z} Old.\end{lemma}", 1)):
        odd: Counter[str] = Counter()
        nodes = read_latex_nodes(f"{source}{end}\n{rest}", ["lemma"], "", odd)
        assert [node.names[0][0] for node in nodes] == ["a", "c", "d", "e"]
        assert odd[STOPPED] == count
        odd = Counter()
        read = "".join(text for _, text in premises.read_in_order({"a.tex": f"{source}{end}\n{rest}"}, odd))
        assert "Below a guard" in read and "Withdrawn" not in read and "Old" not in read and odd[STOPPED] == count
    inputs = {"a.tex": r"\documentclass{x}\input{b}\end{document}\input{c}", "b.tex": "B", "c.tex": "C"}
    assert "C" not in "".join(text for _, text in premises.read_in_order(inputs, Counter()))


def test_verso_blocks_end_where_they_say():
    """A block in a block is no part of the statement, and a block without an end is counted."""
    prose = """::::theorem "outer" (lean := "a, b")
All $$`x_*` are *small*.
```lean
theorem a : b := c
```
:::note "x"
An aside.
:::
::::
:::remark "open" (lean := "c")
never closed
"""
    odd: Counter[str] = Counter()
    nodes, _ = read_verso_nodes(prose, STATEMENTS, "", odd)
    assert [(node.label, node.text, node.names) for node in nodes] == [
        ("outer", "All $$ x_* $$ are small.", [["a"], ["b"]])
    ]
    assert odd["blocks of Verso that do not end"] == 1


def test_a_leak_is_seen_through_case_and_blanks():
    """Whole, or in six words; formulas and numbers that both sides share by right are none."""
    assert leaks_statement("There is $x$", "def a := there  is $X$ b")
    assert leaks_statement(
        "It holds that every commutative ring has a maximal ideal.", "-- every commutative ring has a maximal ideal"
    )
    assert not leaks_statement("$1, 2, 3, 4, 5, 6, 7, 8$ are all", "def a := [1, 2, 3, 4, 5, 6, 7, 8]")


def test_a_pair_that_leaks_is_left_out(repository: Callable[..., Path], tmp_path: Path):
    """What no rule foresaw, here a text in quotes, costs the pair and is counted."""
    told = 'def one : String := "The number one is equal to itself."\n'
    folder = repository(**{TEX: LEMMA + LEMMA.replace("{l}", "{m}").replace("one}", "two}").replace("one is", "two is"),
                           "A.lean": told + "def two : Nat := 2"})  # fmt: skip
    whole = build.build(folder, tmp_path / "out")[0]
    assert judged(whole) == {"q:tiny:m": {"tiny:two"}}
    assert card(whole)["counts"]["left_out"]["judgements of documents that hold their statement"] == 1


def test_a_real_repository_agrees_with_anothers_reading(shared_file: Callable[[str], Path], tmp_path: Path):
    """Of sphere-eversion: every pair that is not mathlib's, nearly every text, and no leak."""
    whole, _, leaky, _ = build.build(shared_file("sources/blueprints/sphere-eversion.tar.gz"), tmp_path / "out")
    lines = shared_file("data/blueprints/qrels/test.tsv").read_text("utf-8").splitlines()
    theirs = {tuple(line.split("\t")[:2]) for line in lines if line.startswith("q:sphere-eversion:")}
    ours = {(query, doc) for query, docs in judged(whole).items() for doc in docs}
    assert ours == {pair for pair in theirs if not pair[1].startswith("mathlib:")} and len(ours) == 81
    for folder, least, most in ((whole, 0, 0), (leaky, 1, len(ours))):
        asked, told = texts(folder, "queries"), texts(folder, "corpus")
        assert least <= sum(leaks_statement(asked[query], told[doc]) for query, doc in ours) <= most


def test_index_entries_are_no_text_of_a_statement(repository: Callable[..., Path]):
    """Nor what stands in a comment; what another file defines does not matter."""
    tex = "\\begin{lemma}\\label{l}\\lean{one}\\index{number!one}% For\n The number one \\index{equality}%\n is equal"
    tex += " to itself.\n\\end{lemma}\n"
    broken = "\\newcommand\\begin{lemma}{x}\n"
    folder = repository(**{TEX: tex, "blueprint/src/macros.tex": broken, "One.lean": ONE})
    build.build(folder, folder.parent / "out")
    assert texts(folder.parent / "out" / "blueprints", "queries") == {"q:tiny:l": "The number one is equal to itself."}


def state(label: str, *inside: str, kind: str = "lemma", proof: str = "") -> str:
    """Return a statement with a label, and its proof if there is one."""
    stated = f"\\begin{{{kind}}}\\label{{{label}}}{''.join(inside)} What {label} says is true.\\end{{{kind}}}\n"
    return stated + (f"\\begin{{proof}}{proof}\\end{{proof}}\n" if proof else "")


USING = "".join([
    "\\documentclass{book}\n\\newcommand{\\uses}[1]{}\n\\section{One}\n",
    state("a", "\\lean{one}", kind="definition"),
    state("b\\_1", "\\uses{a}"),  # no proof: what the statement uses
    state("c", "\\uses{a}", proof="\\uses{b_1,\n  missing}"),  # what the proof uses
    state("d", "\\uses{a, b_1, a}", proof="Easy."),  # a proof that says nothing
    state("e", "\\uses{e, f}"),  # itself, and a newer one
    state("f", proof="\\uses{a}") + "\\begin{proof}\\uses{c}Again.\\end{proof}\n",  # two proofs
    state("g"),
    "\\begin{lemma}\\uses{a} Without a label.\\end{lemma}\n",
    "\\begin{proof}\\uses{b_1} Of the one without a label.\\end{proof}\n",
    "\\begin{lemma}\\label{empty}\\uses{a}\\end{lemma}\n",
    state("h", "% \\uses{a}\n\\begin{verbatim}\\uses{a}\\end{verbatim}", "\\[\\label{eq:h} x\\]"),
    state("i", "\\uses{eq:h}"),  # a label inside a statement
    "\\section{Two}\n\\begin{proof}\\uses{a} Of nothing before it here.\\end{proof}\n",
    "\\begin{proof}\\proves{g}\\uses{f} Elsewhere.\\end{proof}\nProse \\uses{a}.\n",
    state("c", "\\uses{c}"),  # a label for the second time
    state("j", "\\uses{told}"),
])  # fmt: skip


def test_a_premise_is_an_older_statement_that_a_proof_uses(repository: Callable[..., Path], tmp_path: Path):
    """Else one that the statement uses; of several labels, escaped, and of nothing in comments or code."""
    lean = ONE + '@[blueprint "told" (statement := /-- It is told here. -/)] theorem two : 2 = 2 := rfl\n'
    folder = build.build(repository(**{TEX: USING, "A.lean": lean}), tmp_path / "out")[-1]
    assert folder.name == "blueprints-premise"
    assert judged(folder) == {
        f"tiny:{name}": {f"tiny:{other}" for other in used.split()}
        for name, used in {
            "b_1": "a", "c": "b_1", "d": "a b_1", "f": "a c", "g": "f", "i": "h", "c#2": "c",
        }.items()
    }  # fmt: skip
    orders = {name: row["metadata"]["order"] for name, row in rows(folder / "corpus.jsonl").items()}
    assert sorted(orders, key=lambda name: orders[name]) == [
        f"tiny:{name}" for name in "a b_1 c d e f g h i c#2 j".split()
    ]
    assert (
        texts(folder)["tiny:e"] == "What e says is true."
        and texts(folder, "queries")["tiny:g"] == "What g says is true."
    )
    asked = {name: row["metadata"]["uses_of"] for name, row in rows(folder / "queries.jsonl").items()}
    assert {name for name, part in asked.items() if part == "proof"} == {"tiny:c", "tiny:f", "tiny:g"}
    found = card(folder)
    assert found["counts"]["left_out"] == {
        "labels of several statements (the first one is meant)": 1,
        "statements in LaTeX without a label": 1,
        "statements in LaTeX without a text": 1,
        "statements in attributes or Verso, whose uses Lean infers (no documents)": 1,
        "uses in proofs of no statement": 1,
        "uses of a newer statement": 1,
        "uses of statements in attributes or Verso": 1,
        "uses of the statement itself": 1,
        "uses of unknown labels": 1,
        "uses outside of statements and proofs": 1,
    }
    assert found["repositories"]["tiny"] | {"content": ""} == {
        "commit": "", "licence": "none stated", "content": "", "documents": 11, "queries": 7, "uses": 9,
        "queries_by_proof": 3,
    }  # fmt: skip
    assert found["candidates"] == "earlier" and not (folder / "candidates.jsonl").exists()


def test_a_blueprint_is_read_as_its_main_file_reads_it():
    """In the order of its inputs, each file once, and no other; without a main file all files are read, sorted."""
    files = {
        "b/src/web.tex": "\\documentclass{x}\n\\input{macros}\n\\input{content}% \\input{old}\n\\input{lost}",
        "b/src/macros.tex": "\\newcommand{\\x}{y}",
        "b/src/content.tex": "Begin. \\include{chapter/z} Between. \\input chapter/a.tex \\input{chapter/z} End.",
        "b/src/chapter/a.tex": "A. \\input{inner}\\inputleannode{chapter/z}",
        "b/src/chapter/inner.tex": "Inner. \\input{content}",
        "b/src/chapter/z.tex": "Z.",
        "b/src/old.tex": "Old.",
    }  # fmt: skip
    odd: Counter[str] = Counter()
    files["b/src/print.tex"] = "\\documentclass{x}\n\\input{content}"
    told = " ".join("".join(text for _, text in premises.read_in_order(files, odd)).split())
    assert "Begin. Z. Between. A. Inner. \\inputleannode{chapter/z} End." in told and told.count("Begin") == 1
    assert "Old" not in told
    assert odd == {
        "files that \\input or \\include names and that are not there": 1, "files in LaTeX that no main file reads": 1
    }  # fmt: skip
    pieces = list(premises.read_in_order({"b.tex": "B", "a.tex": "A", "0.tex": "0 \\input{b}"}, odd))
    assert [(path, text.strip()) for path, text in pieces if text.strip()] == [
        ("0.tex", "0"), ("b.tex", "B"), ("a.tex", "A")
    ]  # fmt: skip


def test_a_query_returns_older_statements_of_its_own_repository(repository: Callable[..., Path], tmp_path: Path):
    """The first half of each repository's queries is for training, the next tenth dev, the rest test."""
    long = "".join(state(f"s{n}", *[f"\\uses{{s{n - 1}}}"] * (n > 0)) for n in range(21))
    repository("long", **{TEX: long, "A.lean": ONE})
    repository("plain", **{TEX: LEMMA, "A.lean": ONE})
    place = repository("short", **{TEX: LEMMA + state("m", "\\uses{l}"), "A.lean": ONE})
    folder = build.build(place.parent, tmp_path / "out")[-1]
    assert {split: list(part) for split, part in judged_by_split(folder).items()} == {
        "train": [f"long:s{n}" for n in range(1, 11)],
        "dev": ["long:s11", "long:s12"],
        "test": [*(f"long:s{n}" for n in range(13, 21)), "short:m"],
    }
    orders = {name: row["metadata"]["order"] for name, row in rows(folder / "corpus.jsonl").items()}
    assert list(orders.values()) == list(range(23)) and orders["short:l"] == 21
    found = load_folder(folder)
    assert found.candidates.names == ["candidates", "earlier"]
    may = {name: set(found.doc_ids[found.candidates.allowed([at])[0]]) for at, name in enumerate(found.query_ids)}
    assert may["short:m"] == {"short:l"} and may["long:s13"] == {f"long:s{n}" for n in range(13)}
    left_out = card(folder)["counts"]["left_out"]
    assert left_out[r"repositories in which no \uses names an older statement in LaTeX"] == 1
    assert set(card(folder)["repositories"]) == {"long", "short"}


def test_without_uses_there_is_no_collection_of_premises(repository: Callable[..., Path], tmp_path: Path):
    """The other three are written."""
    folders = build.build(repository(**{TEX: LEMMA + state("m", "\\uses{m}"), "A.lean": ONE}), tmp_path / "out")
    assert [folder.name for folder in folders] == list(build.COLLECTIONS)
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(build.COLLECTIONS)


def test_a_period_asks_new_statements_of_a_blueprint(repository: Callable[..., Path], tmp_path: Path):
    """For the statements that were there, of which some had premises already."""
    first = "".join(state(f"s{n}", *[f"\\uses{{s{n - 1}}}"] * (n > 0)) for n in range(4)).replace(
        "\\label{s0}", "\\label{s0}\\lean{one}"
    )
    folder = repository(**{TEX: first, "A.lean": ONE})
    git(folder, "init", "--quiet")
    for day, text in {"2019-06-01": first, "2020-06-01": first + state("new", "\\uses{s1, s3}")}.items():
        (folder / TEX).write_text(text, "utf-8")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", day, day=day)
    [made] = history.build("blueprints", build.build, folder, tmp_path / "out", at="2020-01-01", until="2021-01-01")
    assert made.name == "blueprints-premise-at-2020-01-01" and set(texts(made)) == {f"tiny:s{n}" for n in range(4)}
    assert judged_by_split(made)["test"] == {"tiny:new": ["tiny:s1", "tiny:s3"]}
    assert judged(made, "train") == {f"tiny:s{n}": {f"tiny:s{n - 1}"} for n in (1, 2, 3)}


def read_edges(source: str, kinds: str) -> set[tuple[str, str]]:
    """Return the label of each statement and of each older one that it uses, read by regular expressions alone."""
    label, uses, proves = (re.compile(rf"\\{name}\s*\{{([^}}]*)\}}") for name in ("label", "uses", "proves"))
    blocks = re.compile(
        rf"\\begin\{{(?P<kind>proof|{kinds})\}}(?P<inside>.*?)\\end\{{(?P=kind)\}}|\\section", re.DOTALL
    )
    stated: dict[str, set[str]] = {}
    proved: dict[str, set[str]] = {}
    order: list[str] = []
    last = ""
    for block in blocks.finditer(re.sub(r"(?<!\\)%.*", "", source)):
        inside = block["inside"] or ""
        used = {" ".join(name.split()) for part in uses.findall(inside) for name in part.split(",")}
        if block["kind"] is None:
            last = ""
        elif block["kind"] == "proof":
            owner = named[0] if (named := proves.findall(inside)) else last
            proved.setdefault(owner, set()).update(used)
        else:
            last = named[0] if (named := label.findall(inside)) else ""
            order += [last] if last else []
            stated[last] = used
    return {
        (name, other)
        for place, name in enumerate(order)
        for other in proved.get(name) or stated[name]
        if other in order[:place]
    }


def test_the_uses_of_real_blueprints_agree_with_another_reading(shared_file: Callable[[str], Path]):
    """Every edge of five blueprints, whose chapters are read here in the order in which their authors list them."""
    sphere = "introduction loops local_convex_integration global_convex_integration appendix local_to_global"
    chapters = "jensen entropy distance 100_percent fibring entropy_pfr pfr improved_exponent hom_pfr approx_hom_pfr"
    parts = {
        "carleson": ["chapter/main"],
        "flt-regular": ["demo"],
        "infinity-cosmos": ["content"],
        "pfr": [f"chapter/{name}" for name in f"{chapters} weak_pfr torsion further_improvement".split()],
        "sphere-eversion": sphere.split(),
    }
    counts: dict[str, int] = {}
    for name, files in parts.items():
        with release.open_origin(shared_file(f"sources/blueprints/{name}.tar.gz"), "") as source:
            [found] = read_repositories(source, Counter())
        known = statement_environments(found.latex.values())
        kinds = "|".join(re.escape(kind) for kind in sorted(known))
        theirs = read_edges("\n".join(found.latex[f"blueprint/src/{file}.tex"] for file in files), kinds)
        statements = [
            each for each in premises.read_statements(found.latex, known, Counter()) if each.labels and each.text
        ]
        used = premises.older_premises(statements, set(), Counter())
        ours = {
            (each.labels[0], statements[other].labels[0])
            for each, others in zip(statements, used, strict=True)
            for other in others
        }
        assert ours == theirs
        counts[name] = len(ours)
    assert counts == {"carleson": 130, "flt-regular": 50, "infinity-cosmos": 36, "pfr": 458, "sphere-eversion": 75}


def test_a_blueprint_may_lie_in_any_folder(repository: Callable[..., Path], tmp_path: Path):
    r"""Without a folder of that name it is the LaTeX in a folder that has \lean or \uses; a paper beside it is none."""
    lemma = LEMMA.replace("number one", r"$\one$")
    files = {"docs/src/web.tex": r"\newcommand{\one}{1}", "docs/src/chapter/a.tex": lemma}
    folder = repository(**files, **{"paper/a.tex": LEMMA.replace(r"\lean{one}", ""), "One.lean": ONE})
    found = read_repository(folder, "tiny", "", Counter())
    assert sorted(found.latex) == ["docs/src/chapter/a.tex", "docs/src/web.tex"]
    whole, *_ = build.build(folder, tmp_path / "out")
    assert texts(whole, "queries")["q:tiny:l"] == "The $1$ is equal to itself."
    named = read_repository(repository("named", **{TEX: "", **files}), "named", "", Counter())
    assert not named.latex.keys() & files.keys()


def test_a_command_that_defines_commands_prints_nothing(repository: Callable[..., Path], tmp_path: Path):
    r"""What \law{3}{x = y} defines by the name of its argument stood in the statement."""
    law = r"\newcommand{\law}[2]{\expandafter\gdef\csname Law#1\endcsname{#2}}"
    folder = repository(**{TEX: law + LEMMA.replace("itself.", r"itself.\law{3}{x = y}"), "One.lean": ONE})
    whole, *_ = build.build(folder, tmp_path / "out")
    assert texts(whole, "queries")["q:tiny:l"] == "The number one is equal to itself."
