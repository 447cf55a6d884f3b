"""The published pairs in every plausible layout become the same collection, and what is not understood is refused."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hub_server import Hub, run_in_process

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.sources import catalogue, meld

Row = dict[str, Any]
SPACES = ("vector spaces", "module theory")
SETS = ("set theory", "category theory")
# (fields, name, first text, second text), and (field, text) of the statements without a partner.
PAIRS = [
    (SPACES, "basis", "Every space has a $basis$.", "Every module over a field is free."),
    (SPACES, "rank", "A map has a rank.", "A morphism has a\nlength of image."),
    (SETS, "product", "Ordered pairs, as they “are”.", "An object with two projections."),
]
ALONE = [("module theory", "Some modules are not free."), ("set theory", "Some sets are infinite.")]
DOCS = {
    "vector-spaces--module-theory--basis-1": (PAIRS[0][2], "vector spaces"),
    "vector-spaces--module-theory--basis-2": (PAIRS[0][3], "module theory"),
    "vector-spaces--module-theory--rank-1": (PAIRS[1][2], "vector spaces"),
    "vector-spaces--module-theory--rank-2": (PAIRS[1][3], "module theory"),
    "set-theory--category-theory--product-1": (PAIRS[2][2], "set theory"),
    "set-theory--category-theory--product-2": (PAIRS[2][3], "category theory"),
    "vector-spaces--module-theory--module-theory-d01": (ALONE[0][1], "module theory"),
    "set-theory--category-theory--set-theory-d01": (ALONE[1][1], "set theory"),
}
PARTNERS = {name: name[:-1] + {"1": "2", "2": "1"}[name[-1]] for name in DOCS if not name.endswith("d01")}


pytestmark = pytest.mark.usefixtures("home")


def put(path: Path, rows: Any) -> None:
    """Write rows in the form that the suffix names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        import pyarrow as arrow
        from pyarrow import parquet

        parquet.write_table(arrow.Table.from_pylist(rows), path)
    elif path.suffix in (".csv", ".tsv"):
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    else:
        path.write_text(json.dumps(rows, indent=1), "utf-8")


def one_table(folder: Path, form: str) -> None:
    """A pair in each row with its fields, and a table of distractors."""
    names = ["pair_id", "domain_1", "statement_1", "domain_2", "statement_2"]
    rows = [dict(zip(names, (name, f[0].title(), one, f[1], two), strict=True)) for f, name, one, two in PAIRS]
    put(folder / f"pairs{form}", rows)
    put(folder / f"distractors{form}", [{"domain": field.title(), "statement": text} for field, text in ALONE])


def configurations(folder: Path, form: str) -> None:
    """A configuration for each pair of fields, whose file alone names them; distractors are marked by a flag."""
    for fields in (SPACES, SETS):
        rows = [
            {"id": name, "statementA": one, "statementB": two, "note": 1} for f, name, one, two in PAIRS if f == fields
        ]
        stem = "_vs_".join(fields).replace(" ", "_")
        put(folder / stem / f"train-00000-of-00001{form}", rows)
        put(folder / stem / f"distractors-00000-of-00001{form}",
            [{"text": text, "field": field} for field, text in ALONE if field in fields])  # fmt: skip


def statements(folder: Path, form: str) -> None:
    """A statement in each row, the two of a pair under one id; the kind says which have no partner."""
    rows = [
        {"text": text, "subfield": field, "pair_id": name, "type": "pair"}
        for fields, name, *texts in PAIRS
        for field, text in zip(fields, texts, strict=True)
    ]
    rows += [{"text": text, "subfield": field, "pair_id": "", "type": "Distractor"} for field, text in ALONE]
    put(folder / f"meld{form}", rows[::-1])


def nested(folder: Path, form: str) -> None:
    """A file for each pair of fields, an object with two lists; a column is named like its field."""
    for fields in (SPACES, SETS):
        pairs = [{"pair": name, fields[1]: two, fields[0]: one} for f, name, one, two in PAIRS if f == fields]
        alone = [{"content": text, "field": field} for field, text in ALONE if field in fields]
        put(folder / f"{fields[1].replace(' ', '-')}.json", {"note": "x", "pairs": pairs, "distractors": alone})


LAYOUTS = [(one_table, form) for form in (".parquet", ".jsonl", ".json", ".csv", ".tsv")]
LAYOUTS += [(configurations, ".parquet"), (configurations, ".csv"), (statements, ".jsonl"), (statements, ".parquet")]
LAYOUTS += [(nested, ".json")]


@pytest.mark.parametrize(("write", "form"), LAYOUTS, ids=[f"{write.__name__}{form}" for write, form in LAYOUTS])
def test_every_layout_gives_the_same_collection(write: Any, form: str, tmp_path: Path) -> None:
    """Statements are query and document under one id with their field as tag; distractors are documents."""
    write(tmp_path / "copy", form)
    (tmp_path / "copy" / "README.md").write_text("about")
    put(tmp_path / "copy" / "dataset_infos.json", {"default": {"features": []}})
    [folder] = catalogue.build("meld", str(tmp_path / "copy"))
    found = catalogue.load("meld")
    assert folder.name == "meld"
    rows = zip(found.doc_ids, found.texts, found.corpus["tags"], strict=True)
    assert {name: (text, tags[0]) for name, text, tags in rows} == DOCS
    assert dict(zip(found.query_ids, found.query_texts, strict=True)) == {name: DOCS[name][0] for name in PARTNERS}
    assert dict(zip(found.qrels.query_id, found.qrels.doc_id, strict=True)) == PARTNERS
    assert found.candidates.names == ["not-self"] and set(found.qrels.relevance) == {1}


def test_it_has_the_shape_of_the_bundled_pairs(tmp_path: Path) -> None:
    """The same columns, the same rule, the same ends of ids."""
    one_table(tmp_path / "copy", ".jsonl")
    catalogue.build("meld", str(tmp_path / "copy"))
    published, bundled = catalogue.load("meld"), catalogue.load("mini-pairs")
    assert list(published.corpus) == list(bundled.corpus) and list(published.queries) == list(bundled.queries)
    assert published.card.task == bundled.card.task and published.card.instruction == bundled.card.instruction
    assert all(re.search(r"-[12]$", name) for found in (published, bundled) for name in found.query_ids)


def test_the_card_says_what_was_read_and_what_was_not(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Counts against the paper's, columns that play no role, the command with its options."""
    configurations(tmp_path / "copy", ".parquet")
    [folder] = catalogue.build("meld", str(tmp_path / "copy"), first="statementA", files="parquet$")
    extra = catalogue.load("meld").card.extra
    differs = "differs from the paper: 3 pairs of 2 pairs of fields instead of 270 of 9"
    assert extra["published"] == differs and differs in capsys.readouterr().out
    assert extra["counts"]["left_out"] == {"values of the column note (not used)": 3}
    assert extra["command"] == "mirblab build meld --from copy --set first=statementA --set 'files=parquet$'"
    assert str(tmp_path) not in (folder / "card.toml").read_text("utf-8")


def test_what_stands_twice_counts_once_and_the_fields_are_kept(tmp_path: Path) -> None:
    """A default configuration of all pairs without fields, beside those that name them."""
    configurations(tmp_path / "copy", ".parquet")
    put(tmp_path / "copy" / "all.jsonl", [{"statement_1": two, "statement_2": one} for _, _, one, two in PAIRS])
    catalogue.build("meld", str(tmp_path / "copy"))
    found = catalogue.load("meld")
    assert set(found.doc_ids) == set(DOCS)
    assert found.card.extra["counts"]["left_out"]["pairs that stand in the data several times (once here)"] == 3


def test_the_sides_stand_as_in_the_paper_whatever_their_order(tmp_path: Path) -> None:
    """The path names the first column's field first; distractors there go with the same pair of fields."""
    rows = [{"statement_1": PAIRS[2][3], "statement_2": PAIRS[2][2], "id": "product"}]
    put(tmp_path / "copy" / "category_theory_vs_set_theory" / "test.jsonl", rows)
    put(
        tmp_path / "copy" / "category_theory_vs_set_theory" / "distractors.jsonl",
        [{"field": "Set theory", "text": "x"}],
    )
    catalogue.build("meld", str(tmp_path / "copy"))
    found = catalogue.load("meld")
    assert found.document("set-theory--category-theory--product-1") == PAIRS[2][2]
    assert found.document("set-theory--category-theory--set-theory-d01") == "x"


def test_columns_can_be_named(home: Path, tmp_path: Path) -> None:
    """Names that tell nothing are refused with what was found, and mapped on request."""
    rows = [{"u": one, "v": two, "p": f[0], "q": f[1], "n": name} for f, name, one, two in PAIRS]
    put(tmp_path / "copy" / "t.csv", rows)
    with pytest.raises(MirblabError, match=r"t\.csv, line 2: it is not.*columns u, v, p, q, n; .*--set first=COLUMN"):
        catalogue.build("meld", str(tmp_path / "copy"))
    assert not (home / "data" / "meld").exists()
    named = {"first": "u", "second": "v", "first_field": "p", "second_field": "q", "pair": "n"}
    catalogue.build("meld", str(tmp_path / "copy"), **named)
    assert set(catalogue.load("meld").doc_ids) == set(PARTNERS)
    with pytest.raises(MirblabError, match="'meld' cannot be built with --set frist=...; it takes --set revision="):
        catalogue.build("meld", str(tmp_path / "copy"), frist="u")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"statement_1": "a", "statement_2": " "}], r"line 1, item 1: 'statement_2' must be a statement, found ' '"),
        ([{"statement_1": "A  b", "statement_2": "a B"}], r"line 1, item 1: both statements of the pair are the same"),
        ([{"statement_1": "a", "statement_2": "b"}], r"line 1, item 1: the fields are named in no column"),
        ([{"statement_1": "a", "text_1": "c", "statement_2": "b"}], r"statement_1 and text_1 could be the first st"),
        ([{"text": "a", "field": "f"}], r"no pair in t\.jsonl, .*columns text, field; name that of the pair: --set"),
        ([{"text": "a", "field": "f", "pair_id": 7}], r"line 1, item 1: the pair '7' has 1 statements instead of two"),
        ([{"text": "a", "field": "f", "pair_id": ""}], r"no pair in t\.jsonl, only statements without a partner"),
        ([{"text": "\ud800", "field": "f", "pair_id": 7}], r"line 1, item 1: holds half a character"),
    ],
)  # fmt: skip
def test_what_is_amiss_is_named_with_its_row(rows: list[Row], message: str, home: Path, tmp_path: Path) -> None:
    """And nothing is written."""
    put(tmp_path / "copy" / "t.jsonl", rows)
    with pytest.raises(MirblabError, match=message):
        catalogue.build("meld", str(tmp_path / "copy"))
    assert not (home / "data" / "meld").exists()


def test_broken_files_and_empty_folders_are_named(tmp_path: Path) -> None:
    """With the file and line, or with what was found."""
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "notes.txt").write_text("x")
    with pytest.raises(MirblabError, match=r"no \.parquet, .* file is there in .*; found notes\.txt"):
        catalogue.build("meld", str(tmp_path / "copy"))
    (tmp_path / "copy" / "a.csv").write_text("statement_1,statement_2\nx\n")
    with pytest.raises(MirblabError, match=r"a\.csv, line 2: the header has 2 columns, the row has not"):
        catalogue.build("meld", str(tmp_path / "copy"))
    with pytest.raises(MirblabError, match="file matches 'nothing'; found a.csv"):
        catalogue.build("meld", str(tmp_path / "copy"), files="nothing")
    (tmp_path / "copy" / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(MirblabError, match=r"a\.parquet is no sound parquet file"):
        catalogue.build("meld", str(tmp_path / "copy"), files="parquet")


def test_names_tell_roles() -> None:
    """Sides by number, letter or word, before or after; what is no statement has no role."""
    for names in (("statement1", "statement2"), ("text_a", "text_b"), ("first", "second"), ("firstText", "secondText"),
                  ("left_statement", "right_statement"), ("domain_1_statement", "domain_2_statement")):  # fmt: skip
        found = meld.recognise_columns(["id", *names, "embedding_1", "title_2"], {}, "")
        assert [found[role] for role in ("first", "second", "pair", "first_field")] == [*names, "id", ""]
    assert meld.recognise_columns(["Vector_Spaces", "module theory"], {}, "")["second"] == "module theory"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Hub]:
    """Return a server that has the set as configurations."""
    configurations(tmp_path / "served", ".parquet")
    running = Hub({meld.HUB: tmp_path / "served"}, {meld.HUB: "a" * 40}, "mit")
    yield running
    running.close()


def test_the_hub_is_asked_for_a_commit_that_the_user_names(server: Hub, home: Path, tmp_path: Path) -> None:
    """The card has the commit and the licence; without a commit, or with both origins, it is an error."""
    command = ["-m", "mirblab", "build", "meld", "--set"]
    done = run_in_process(home, server.url, [*command, f"revision={'a' * 40}"])
    assert done.returncode == 0, done.stderr
    found = load_folder(home / "data" / "meld")
    assert set(found.doc_ids) == set(DOCS)
    assert (found.card.revision, found.card.licence) == ("a" * 40, "mit")
    assert found.card.extra["command"] == f"mirblab build meld --set revision={'a' * 40}"
    refused = run_in_process(home, server.url, [*command, f"revision={'b' * 40}"])
    assert refused.returncode == 2 and "the Hub refuses uw-math-ai/MELD-dataset at revision bbbb" in refused.stderr
    with pytest.raises(MirblabError, match=r"give a copy of https.*--set revision=COMMIT; found ''"):
        catalogue.build("meld")
    with pytest.raises(MirblabError, match="leave one of them out"):
        catalogue.build("meld", str(tmp_path / "served"), revision="a" * 40)
