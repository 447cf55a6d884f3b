"""The Metamath builder on a small hand-made database that has every trap, and once on the real one."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from built_collections import card, check_earlier_candidates, content, judged, rows
from metamath_database import LOGIC, MAIN

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.sources import catalogue, metamath
from mirblab.sources.metamath import read_database
from mirblab.sources.shared import builder


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database of two files."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "logic.mm").write_text(LOGIC, encoding="utf-8")
    (tmp_path / "raw" / "set.mm").write_text(MAIN, encoding="utf-8")
    return tmp_path / "raw" / "set.mm"


@pytest.fixture
def built(database: Path, tmp_path: Path) -> Path:
    """The folder with both collections."""
    metamath.build(database, tmp_path / "out")
    return tmp_path / "out"


def test_statements_carry_the_hypotheses_in_scope(built: Path):
    """Hypotheses of closed scopes are gone; syntax is no document; an included file is read once."""
    corpus = rows(built / "metamath-premise" / "corpus.jsonl")
    assert {name: row["text"] for name, row in corpus.items()} == {
        "ax-1": "|- ( ph -> ( ps -> ph ) )",
        "ax-mp": "|- ph & |- ( ph -> ps ) => |- ps",
        "a1i": "|- ph => |- ( ps -> ph )",
        "a1ic": "|- ph => |- ( ps -> ph )",
        "two": "|- ps => |- ( ph -> ( ch -> ps ) )",
        "open": "|- ( ph -> ph )",
        "twoOLD": "|- ( ph -> ( ph -> ph ) )",
        "mb": "|- ( ch -> ( ps -> ch ) )",
    }
    assert corpus["two"]["metadata"] == {
        "order": 5,
        "kind": "theorem",
        "section": "First things",
        "description": "Two antecedents are added to a thing that holds, twice.",
    }
    assert corpus["mb"]["metadata"]["section"] == "Mathbox for Somebody"
    assert corpus["open"]["metadata"]["kind"] == "unproved"


def test_premises_are_the_assertions_of_plain_and_compressed_proofs(built: Path):
    """Neither syntax nor hypotheses count; a proof that lacks steps asks for nothing."""
    assert judged(built / "metamath-premise", "test", "dev", "train") == {
        "a1i": {"ax-1", "ax-mp"},
        "a1ic": {"ax-1", "ax-mp"},
        "two": {"a1i"},
        "twoOLD": {"ax-1"},
        "mb": {"ax-1"},
    }


def test_only_fit_theorems_are_asked_in_test(built: Path):
    """No shared text, no old version, no mathbox: one theorem is left, and it is test."""
    folder = built / "metamath-premise"
    assert judged(folder, "test") == {"two": {"a1i"}}
    left_out = card(folder)["counts"]["left_out"]
    assert left_out["queries kept from test and dev: shared text"] == 2
    assert left_out["queries kept from test and dev: an old or alternative version"] == 1
    assert left_out["queries kept from test and dev: in a mathbox"] == 1
    assert left_out["statements with the text of another one"] == 2
    assert left_out["proofs that lack steps (documents, no queries)"] == 1


def test_hubs_have_a_split_of_their_own(built: Path):
    """Here everything is a hub, used in over one percent of five proofs, so nothing is left."""
    folder = built / "metamath-premise"
    assert judged(folder, "test_nohub") == {}
    found = card(folder)
    assert found["hubs"] == {"number": 3, "share": 1.0, "most_used": {"ax-1": 4, "ax-mp": 2, "a1i": 1}}
    assert found["counts"]["left_out"]["queries whose premises are all hubs, not in test_nohub"] == 1


def test_candidates_stand_earlier(built: Path):
    """The rule needs an order on both sides, leaves the query itself out, and hides no judgement."""
    check_earlier_candidates(built / "metamath-premise", "test", "train")


def test_comments_find_their_statement(built: Path):
    """Without notes and marks; lemmas, own labels, short ones, old ones and mathboxes are no queries."""
    folder = built / "metamath-informal"
    queries = rows(folder / "queries.jsonl")
    assert {name: row["text"] for name, row in queries.items()} == {
        "ax-1-comment": "Axiom _Simp_ of this small logic.",
        "ax-mp-comment": "Rule of detachment, which drops what holds.",
        "two-comment": "Two antecedents are added to a thing that holds, twice.",
        "open-comment": "Unfinished business with many words in it.",
    }
    assert all(
        docs == {query.removesuffix("-comment")} for query, docs in judged(folder, "test", "dev", "train").items()
    )
    assert card(folder)["counts"]["left_out"]["assertions that are no query: the text of another one"] == 1
    assert load_folder(folder).card.instruction == "Given a mathematical query, retrieve relevant theorems."


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        ("Lemma for ~ big and for more words", 'begins with "Lemma for"'),
        ("Inference form of ~ own with many words", "names the assertion itself"),
        ("Theorem *2.02 of [WhiteheadRussell] p. 100.", "under five words"),
        ("Value of ` ( a + b + c + d ) ` .", "under five words"),
        ("The sum of two numbers is a number.", ""),
    ],
)
def test_unfit_comments_are_refused_with_the_reason(comment: str, reason: str):
    """Formulas and sources are no words."""
    found = metamath._unfit(metamath.clean_comment(comment), "own")
    assert reason in found and bool(reason) == bool(found)


def test_the_seed_draws_the_test_queries_and_nothing_else():
    """The same seed the same, another seed another; every size stands."""
    names = [f"n{number}" for number in range(100)]
    one, other = builder.draw_splits(names, 0), builder.draw_splits(names, 1)
    assert one == builder.draw_splits(names[::-1], 0) and one != other
    for found in (one, other):
        assert [list(found.values()).count(split) for split in ("test", "dev", "train")] == [25, 7, 68]


def test_an_archive_gives_the_same_bytes(database: Path, built: Path, tmp_path: Path):
    """But for the command that names it."""
    first = content(built)
    with tarfile.open(tmp_path / "set.mm.tar.gz", "w:gz") as tar:
        tar.add(database.parent, "set.mm-develop")
    metamath.build(tmp_path / "set.mm.tar.gz", tmp_path / "again")
    again = content(tmp_path / "again")
    assert {name for name in first if first[name] != again[name]} == {
        f"{name}/{file}" for name in metamath.COLLECTIONS for file in ("card.toml", "digests.txt")
    }
    assert card(built / "metamath-premise")["command"] == "mirblab build metamath --from set.mm"
    assert card(built / "metamath-premise")["revision"] == card(tmp_path / "again" / "metamath-premise")["revision"]
    assert card(built / "metamath-premise")["licence"] == "CC0-1.0"


def test_a_gzipped_file_and_a_folder_read_alike(database: Path, built: Path, tmp_path: Path):
    """The corpus is the same."""
    whole = LOGIC + MAIN.replace("$[ logic.mm $] $[ logic.mm $]", "")
    (tmp_path / "one.mm.gz").write_bytes(gzip.compress(whole.encode()))
    expected = (built / "metamath-premise" / "corpus.jsonl").read_bytes()
    for place, origin in enumerate((tmp_path / "one.mm.gz", database.parent)):
        metamath.build(origin, tmp_path / f"out{place}")
        assert (tmp_path / f"out{place}" / "metamath-premise" / "corpus.jsonl").read_bytes() == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("$c a $.\nx $a |- a\n", "set.mm, line 2: a statement does not end"),
        ("$c a $.\nx $a |- a $.\nx $a |- a $.\n", "set.mm, line 3: the label 'x' is taken"),
        ("${ $c a $.\n", "line 1: the file ends in the middle of a scope"),
        ("$}\n", "line 1: '\\$}' is not allowed here"),
        ("x y $a |- a $.\n", "line 1: 'y' follows the label 'x'"),
        ("$a |- a $.\n", "line 1: '\\$a' has no label"),
        ("x $p |- a $.\n", "line 1: the theorem 'x' has no proof"),
        ("x $p |- a $= $.\n", "line 1 \\('x'\\): the proof is empty"),
        ("x $p |- a $= ( b c $.\n", "has no '\\)'"),
        ("x $p |- a $= ( ) C $.\n", "a compressed proof of 0 labels names the step 3"),
        ("x $p |- a $= ( ) AbC $.\n", "'AbC' is no compressed proof"),
        ("$( never ends\n", "the last '\\$\\(' does not end"),
        ("$[ gone.mm $]\n", "line 1: includes 'gone.mm', which is not in the folder"),
        (f"$[ {'(' * 300}.mm $]\n", r"line 1: includes '\(+', which is not in the folder"),
        ("$[ ../out.mm $]\n", "line 1: includes 'out.mm', which is not in the folder"),
        ("$c a $.\n", "asserts nothing that begins with"),
    ],
)
def test_what_is_no_metamath_is_refused(source: str, message: str, tmp_path: Path):
    """With file and line; nothing appears."""
    (tmp_path / "out.mm").write_text("$c b $.")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "set.mm").write_text(source)
    with pytest.raises(MirblabError, match=message):
        metamath.build(tmp_path / "in" / "set.mm", tmp_path / "out")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_a_folder_of_several_databases_needs_a_name(tmp_path: Path):
    """The error names them."""
    for name in ("iset.mm", "nf.mm"):
        (tmp_path / name).write_text("")
    with pytest.raises(MirblabError, match=r"looked for set.mm, or one database \*.mm, found iset.mm, nf.mm"):
        metamath.build(tmp_path, tmp_path / "out")


def test_the_real_database_agrees_with_the_shared_collection(shared_file: Callable[[str], Path]):
    """Documents, texts and every judgement are equal; comments that are queries within 5 %."""
    source, theirs = shared_file("sources/set.mm.gz"), shared_file("data/setmm")
    database = read_database(source)
    ours = {each.label: each for each in database.assertions}
    corpus = rows(theirs / "corpus.jsonl")
    assert {name: each.text for name, each in ours.items()} == {name: row["text"] for name, row in corpus.items()}
    assert {name: set(each.uses) for name, each in ours.items() if each.uses} == judged(theirs, "test", "dev", "train")
    assert not database.odd.total()
    parts, about = metamath._premises(database, 0)
    assert about["hubs"]["number"] == 297 and about["hubs"]["share"] == pytest.approx(0.49, abs=0.005)
    asked = {query for query, *_ in parts.judged["test"]}
    assert len(asked) == 2000 and not any(ours[query].in_mathbox for query in asked)
    informal, _ = metamath._informal(database, 0)
    assert sum(1 for _ in informal.queries) == pytest.approx(8273, rel=0.05)


def test_a_database_in_which_nothing_is_proved_is_refused_and_nothing_is_written(database: Path, tmp_path: Path):
    """The collections were written, and loading one ended in KeyError: 'order'."""
    built = metamath.build(database, tmp_path / "out")
    before = content(tmp_path / "out")
    (database.parent / "axioms.mm").write_text(LOGIC, encoding="utf-8")
    with pytest.raises(MirblabError, match=r"axioms.mm: 2 assertions .* no proof uses another .* nothing was written"):
        metamath.build(database.parent / "axioms.mm", tmp_path / "out")
    assert content(tmp_path / "out") == before and [folder.name for folder in built] == list(metamath.COLLECTIONS)


def test_a_database_without_fit_comments_gives_premises_alone(database: Path, tmp_path: Path, capsys):
    """Nothing was written, since metamath-informal had no query; the card does not claim set.mm's licence."""
    (database.parent / "bare.mm").write_text(
        "$c |- a b $.  one $a |- a $.  two $a |- b $.\nthree $p |- a $= one $.", encoding="utf-8"
    )
    [folder] = metamath.build(database.parent / "bare.mm", tmp_path / "out")
    assert judged(folder, "test", "dev", "train") == {"three": {"one"}}
    assert card(folder)["licence"] == "none stated" and card(folder)["source"] == "bare.mm"
    assert "metamath-informal is not made" in capsys.readouterr().out


def test_the_card_has_the_licence_of_the_database_itself(tmp_path: Path):
    """A folder or archive states it; beside a file alone it may be another's; peano.mm, beside set.mm, is not CC0."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "peano.mm").write_text("$c |- a b $.  one $a |- a $.  two $p |- a $= one $.", encoding="utf-8")
    (folder / "LICENSE").write_text("GNU GENERAL PUBLIC LICENSE\n")
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as tar:
        tar.add(folder, "mine")
    origins = {folder: "GPL", tmp_path / "packed.tar.gz": "GPL", folder / "peano.mm": "none stated"}
    for origin, licence in origins.items():
        found = card(metamath.build(origin, tmp_path / "out")[0])
        assert (found["licence"], found["source"]) == (licence, origin.name)


def test_an_earlier_only_collection_without_a_query_loads(built: Path):
    """The rule of candidates has nothing to say then."""
    folder = built / "metamath-premise"
    (folder / "queries.jsonl").write_text("")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n")
    (folder / "digests.txt").unlink()
    assert len(load_folder(folder).queries) == 0


DATED = """
$c ( ) -> wff |- $.  $v ph ps $.  wph $f wff ph $.  wps $f wff ps $.  wi $a wff ( ph -> ps ) $.
$( An axiom without a day. $)
ax $a |- ( ph -> ph ) $.
$( An axiom that nothing uses. $)
idle $a |- ( ps -> ps ) $.
$( Old. (Contributed by NM, 5-Aug-1993.) (Proof shortened by A, 1-Jan-2014.) $)
old $p |- ( ph -> ( ph -> ph ) ) $= wph ax $.
$( Shortened later: the first day below the proof counts. $)
twice $p |- ( ps -> ( ps -> ps ) ) $= wps ax old $.
  $( [3-Mar-2014] $) $( [30-Dec-2013] $)
$( New. (Contributed by NM, 1-Jan-2014.) $)
new $p |- ( ph -> ( ph -> ( ph -> ph ) ) ) $= wph ax twice $.
$( Newer, which uses what is new only. (Contributed by NM, 2-Jan-2014.) $)
newer $p |- ( ps -> ( ph -> ( ph -> ph ) ) ) $= wph new $.
$( After the period. $)
late $p |- ( ps -> ( ps -> ( ph -> ph ) ) ) $= wph old new $.
$( [1-Jan-2015] $)
$( A day that there is not. (Contributed by NM, 31-Feb-2014.) $)
never $p |- ( ps -> ( ps -> ( ps -> ph ) ) ) $= wph old $.
"""


@pytest.fixture
def dated(tmp_path: Path) -> Path:
    """A database whose theorems have days, in both notations."""
    path = tmp_path / "dated.mm"
    path.write_text(DATED, encoding="utf-8")
    return path


def test_a_library_at_a_day_asks_the_theorems_of_the_following_period(dated: Path, tmp_path: Path):
    """Documents are older, judged are older premises only; an axiom is as old as the oldest theorem that uses it."""
    [folder] = metamath.build(dated, tmp_path / "out", at="2014-01-01", until="2015-01-01")
    assert folder.name == "metamath-premise-at-2014-01-01"
    assert card(folder)["command"] == (
        "mirblab build metamath --from dated.mm --set at=2014-01-01 --set until=2015-01-01"
    )
    corpus = rows(folder / "corpus.jsonl")
    assert {name: row["metadata"]["contributed"] for name, row in corpus.items()} == {
        "ax": "1993-08-05",
        "old": "1993-08-05",
        "twice": "2013-12-30",
    }
    assert judged(folder, "test") == {"new": {"ax", "twice"}}
    assert judged(folder, "dev", "train") == {"old": {"ax"}, "twice": {"ax", "old"}}
    about = card(folder)
    assert (about["at"], about["until"], about["candidates"]) == ("2014-01-01", "2015-01-01", "earlier")
    left_out = about["counts"]["left_out"]
    assert left_out["assertions of which no day is known"] == 2  # idle, never
    assert left_out["assertions of the period or later, not among the documents"] == 3
    assert left_out["theorems of the period that are no query: no premise that was there at the beginning"] == 1
    check_earlier_candidates(folder, "test", "train")


def test_the_periods_of_a_database_follow_each_other(dated: Path, capsys: pytest.CaptureFixture[str]):
    """The corpus of a period is what was there at its first day; its folder is that of the database."""
    folders = catalogue.build_periods(str(dated), ["2013-01-01", "2014-01-01", "2015-01-01"])
    assert [folder.name[-10:] for folder in folders] == ["2013-01-01", "2014-01-01"]
    assert [judged(folder, "test") for folder in folders] == [{"twice": {"ax", "old"}}, {"new": {"ax", "twice"}}]
    with pytest.raises(MirblabError, match="the day after its last, found 2014-01-01"):
        catalogue.build_periods("mini", ["2014-01-01"])
    with pytest.raises(MirblabError, match="no database 'nowhere.mm'"):
        catalogue.build_periods("nowhere.mm", ["2013-01-01", "2014-01-01"])


def test_a_period_without_an_end_takes_all_later_theorems(dated: Path, tmp_path: Path):
    [folder] = metamath.build(dated, tmp_path / "out", at="2014-01-01")
    assert judged(folder, "test") == {"new": {"ax", "twice"}, "late": {"old"}}
    assert card(folder)["counts"]["left_out"]["premises of the period, not judged"] == 1


@pytest.mark.parametrize(
    ("days", "message"),
    [
        ({"at": "1-Jan-2014"}, "a day is written 2014-01-01; found at=1-Jan-2014"),
        ({"until": "2014-01-01"}, "until needs at"),
        ({"at": "2014-01-01", "until": "2014-01-01"}, "until must be later than at"),
        ({"at": "2016-01-01"}, r"no theorem with an earlier premise .* the days known are 1993-08-05 to 2015-01-01"),
    ],
)
def test_days_that_give_no_collection_are_refused(dated: Path, tmp_path: Path, days: dict[str, str], message: str):
    """Nothing is written."""
    with pytest.raises(MirblabError, match=message):
        metamath.build(dated, tmp_path / "out", **days)
    assert not list((tmp_path / "out").glob("*"))
