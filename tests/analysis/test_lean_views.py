"""Lean declarations in three views: read strictly, filtered by module, and asked for in six directions."""

from __future__ import annotations

import gzip
import json
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mirblab.analysis.lean_views import (
    compare_with_printed,
    identity_ceiling,
    in_modules,
    printed_table_number,
    read_views,
)
from mirblab.core import paths
from mirblab.core.errors import MirblabError
from mirblab.evaluation import measures
from mirblab.sources import catalogue, lean_views, mini
from mirblab.sources import lean_views as source
from mirblab.sources.lean_views import MATHEMATICS, SPLITS
from mirblab.sources.mini import read_cards

KEYS = ["id", "module", "kind", "split", "informal", "signature", "type"]
ROWS = [
    ["Nat.b", "Mathlib.Data.Nat", "def", "test", "The number b.", "def Nat.b : Nat", "Nat"],
    ["Nat.a", "Mathlib.Data.Nat", "def", "train", "The number a.", "def Nat.a : Nat", " Nat "],
    ["Nat.c", "Mathlib.Data.Nat", "def", "test", "The number c.", "def Nat.c : Nat", "Nat"],
    ["Nat.le", "Mathlib.Order.Nat", "theorem", "test", "It is less.", "theorem Nat.le : a < b", "a < b"],
    ["Lean.go", "Mathlib.Tactic.Go", "def", "dev", "It goes.", "def Lean.go : Unit", "Unit"],
    ["IsLittle", "Mathlib.Analysis.O", "lemma", "test_new", "Small.", "lemma IsLittle : f =o g", "f =o g"],
    ["IsBig", "Mathlib.Analysis.O", "lemma", "new_extra", "Big.", "lemma IsBig : f =O g", "f =O g"],
]


def records(**changes: Any) -> list[dict[str, Any]]:
    """Return the rows as records, the last one with *changes*."""
    found = [dict(zip(KEYS, row, strict=True)) for row in ROWS]
    return [*found[:-1], {key: value for key, value in (found[-1] | changes).items() if value is not ...}]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if path.suffix == ".parquet":
        from pyarrow import Table, parquet

        parquet.write_table(Table.from_pylist(rows), path)
    else:
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def table(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


@pytest.mark.parametrize("name", ["views.jsonl", "views.jsonl.gz", "views.parquet"])
def test_a_table_is_read_sorted_and_stripped(tmp_path: Path, name: str):
    """In each of the three forms, from the file or from its folder."""
    path = write(tmp_path / name, records())
    found = read_views(path)
    assert found.columns.tolist() == KEYS
    assert found.id.tolist() == sorted(row[0] for row in ROWS)
    assert found.set_index("id").loc["Nat.a"].tolist() == [
        "Mathlib.Data.Nat", "def", "train", "The number a.", "def Nat.a : Nat", "Nat",
    ]  # fmt: skip
    assert read_views(tmp_path).equals(found) and set(map(str, found.dtypes)) == {"str"}


def test_a_column_more_is_kept(tmp_path: Path):
    """names_itself says that the informal text has the name."""
    found = read_views(write(tmp_path / "views.jsonl", [row | {"names_itself": False} for row in records()]))
    assert found.columns.tolist() == [*KEYS, "names_itself"] and not found.names_itself.any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "Nat.b"}, r"views\.jsonl, line 7: the id 'Nat\.b' a second time, first in .*views\.jsonl, line 1"),
        ({"type": ..., "extra": 1}, r"line 7: no column type; found id, module, .*extra"),
        ({"signature": 3}, r"line 7: 'signature' must be of type str, found '3'"),
        ({"split": "testing"}, r"line 7: no split 'testing'; did you mean 'test'. Known: dev"),
        ({"id": " "}, r"line 7: 'id' is empty"),
        ({"informal": "\ud800"}, r"line 7: holds half a character"),
    ],
)
def test_a_broken_row_is_named_with_file_and_line(tmp_path: Path, changes: dict, message: str):
    """Nothing is read by halves."""
    path = tmp_path / "views.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in records(**changes)), encoding="utf-8")
    with pytest.raises(MirblabError, match=message):
        read_views(path)


def test_broken_files_and_wrong_names_are_refused(tmp_path: Path):
    """JSON cut short, an empty table, a name that is none, a table that is not built."""
    path = write(tmp_path / "views.jsonl", records())
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(MirblabError, match=r"line 7: broken JSON"):
        read_views(path)
    with pytest.raises(MirblabError, match="no declaration with the views informal, signature, type"):
        read_views(write(path, []))
    with pytest.raises(MirblabError, match=r"no table of views, and no file, 'mini-view'.*did you mean 'mini-views'"):
        read_views("mini-view")
    with pytest.raises(MirblabError, match="not built yet; run: mirblab build views --from"):
        read_views("mathlib-views")


def test_the_filter_looks_at_the_second_component_of_the_module(tmp_path: Path):
    """The paper's 26; a table of which nothing is left is refused with what is there."""
    found = read_views(write(tmp_path / "views.jsonl", records()))
    assert len(MATHEMATICS) == 26 == len(set(MATHEMATICS))
    assert "Lean.go" not in in_modules(found).id.tolist() and len(in_modules(found)) == len(found) - 1
    with pytest.raises(MirblabError, match="no module has the second component Algebra, .*, and 23 more; found Tactic"):
        in_modules(found[found.id == "Lean.go"])
    with pytest.raises(MirblabError, match="has a column module; found id"):
        in_modules(found[["id"]])


def test_the_cards_make_a_table_of_mathematics():
    """About half to train on, two in five to ask; every field has its place in Mathlib."""
    found = read_views("mini-views")
    assert found.columns.tolist() == KEYS and found.id.is_unique and len(found) == len(read_cards())
    assert len(in_modules(found)) == len(found)
    share = found.split.value_counts(normalize=True)
    assert 0.4 < share["train"] < 0.6 and 0.05 < share["dev"] < 0.15 and 0.3 < share["test"] < 0.5
    lean = {card["lean"]["name"]: card["lean"] for card in read_cards()}
    assert all(lean[row.id]["type"].strip() == row.type for row in found.itertuples())


def test_the_six_miniature_tasks_ask_one_view_for_another():
    """All declarations are documents, those of the split queries; a query is relevant to its own declaration alone."""
    found = read_views().set_index("id")
    for direction, (query, document) in lean_views.DIRECTIONS.items():
        c = catalogue.load(f"mini-views-{direction}")
        assert c.texts == found[document].tolist() and c.doc_ids.tolist() == found.index.tolist()
        assert c.query_texts == found[query][found.split == "test"].tolist()
        assert (c.qrels.query_id.astype(str) == c.qrels.doc_id.astype(str)).all() and len(c.qrels) == len(c.queries)
        assert c.candidates.names == [] and c.card.task == "Lean View Retrieval"
        assert len(catalogue.load(f"mini-views-{direction}", "dev").queries) == (found.split == "dev").sum()


def test_real_and_miniature_tasks_give_the_same_instruction():
    """Else a model's queries would differ from one to the other."""
    about = catalogue.collection_table()
    for direction in lean_views.DIRECTIONS:
        small, large = about.loc[f"mini-views-{direction}"], about.loc[f"views-{direction}"]
        assert small.instruction == large.instruction and small.task == large.task
    assert about.loc[list(source.COLLECTIONS)].instruction.is_unique


def test_mini_is_derived_anew_when_its_version_is_raised(monkeypatch: pytest.MonkeyPatch):
    """Also when a card changes, which is tested with the cards."""
    before = mini.miniature_revision()
    monkeypatch.setattr(mini, "VERSION", mini.VERSION + 1)
    assert mini.miniature_revision() != before


def test_building_writes_a_table_and_six_collections(tmp_path: Path, capsys: pytest.CaptureFixture):
    """The row itself is relevant; equal texts only in the split test-identical, on whichever side they are."""
    write(tmp_path / "in" / "views.jsonl", records())
    made = catalogue.build("views", str(tmp_path / "in"))
    assert [folder.name for folder in made] == [f"views-{direction}" for direction in lean_views.DIRECTIONS]
    assert read_views("mathlib-views").equals(read_views(tmp_path / "in"))
    to_type = catalogue.load("views-informal-type")
    assert to_type.query_ids.tolist() == ["Nat.b", "Nat.c", "Nat.le"] and len(to_type.corpus) == 7
    assert to_type.query("Nat.b") == "The number b." and to_type.document("Nat.a") == "Nat"
    same = {"Nat.b": ["Nat.a", "Nat.b", "Nat.c"], "Nat.c": ["Nat.a", "Nat.b", "Nat.c"], "Nat.le": ["Nat.le"]}
    for direction in lean_views.DIRECTIONS:
        honest = catalogue.load(f"views-{direction}", "test-identical").qrels.astype(str)
        wanted = same if "type" in direction else {name: [name] for name in same}
        assert honest.groupby("query_id").doc_id.agg(list).to_dict() == wanted
    # Case counts: little o is another statement than big O.
    for split in ("test_new", "test_new-identical"):
        new = catalogue.load("views-type-informal", split).qrels.astype(str)
        assert new.to_numpy().tolist() == [["IsLittle", "IsLittle", "1"]]
    card = tomllib.loads((paths.data() / "mathlib-views" / "card.toml").read_text("utf-8"))
    assert card["counts"]["repeated types of others"] == 2 and card["counts"]["repeated types of theorems"] == 0
    assert card["command"] == "mirblab build views --from in --set modules=all" and card["licence"] == "Apache-2.0"
    assert "mathlib-views: declarations 7" in capsys.readouterr().out


def test_a_table_without_a_corpus_is_no_collection(tmp_path: Path):
    """Commands that list collections pass it by."""
    catalogue.build("views", str(write(tmp_path / "views.jsonl", records())))
    assert "mathlib-views" not in catalogue.collection_names() and "views-informal-type" in catalogue.built_names()
    with pytest.raises(MirblabError, match="no collection 'mathlib-views'"):
        catalogue.load("mathlib-views")


def test_the_same_input_gives_the_same_bytes(tmp_path: Path):
    """Also of the gzipped table, and in whatever order the rows come."""
    first = source.build(write(tmp_path / "a" / "views.jsonl", records()), tmp_path / "one")
    source.build(write(tmp_path / "b" / "views.jsonl", records()[::-1]), tmp_path / "two")
    for path in sorted(first[0].parent.rglob("*")):
        other = tmp_path / "two" / path.relative_to(tmp_path / "one")
        assert path.is_dir() or path.name in ("card.toml", "digests.txt") or path.read_bytes() == other.read_bytes()


def test_only_mathematics_can_be_kept(tmp_path: Path):
    """The card says so, and how many were left out."""
    path = write(tmp_path / "views.jsonl", records())
    catalogue.build("views", str(path), modules="mathematics")
    assert "Lean.go" not in read_views("mathlib-views").id.tolist()
    card = tomllib.loads((paths.data() / "mathlib-views" / "card.toml").read_text("utf-8"))
    assert card["counts"]["left_out"] == {"declarations of other modules": 1}
    with pytest.raises(MirblabError, match=r"no choice of modules 'maths'.*did you mean 'mathematics'"):
        catalogue.build("views", str(path), modules="maths")


def test_nothing_changes_when_a_build_fails(tmp_path: Path):
    """What was there before stays, and no part of the new one appears."""
    good, bad = write(tmp_path / "views.jsonl", records()), tmp_path / "bad" / "views.jsonl"
    catalogue.build("views", str(good))
    before = {path: path.read_bytes() for path in paths.data().rglob("*") if path.is_file()}
    with pytest.raises(MirblabError, match="the id 'Nat.b' a second time"):
        catalogue.build("views", str(write(bad, records(id="Nat.b"))))
    with pytest.raises(MirblabError, match="none of 6 declarations is in the split test"):
        everything = [row | {"split": "train"} for row in records()[:-1]]
        catalogue.build("views", str(write(bad, everything)))
    assert {path: path.read_bytes() for path in paths.data().rglob("*") if path.is_file()} == before
    with pytest.raises(MirblabError, match=r"give views\.jsonl, or a dataset mathlib_informal_v4\.\*, with --from"):
        catalogue.build("views")


def published(number: int, **changes: Any) -> dict[str, Any]:
    """Return a row as FrenzyMath publishes it."""
    row = {
        "module_name": ["Mathlib", "Algebra", "Group"], "kind": "theorem", "name": ["Group", f"fact_{number}"],
        "signature": f"(G : Type*) : {number} = {number}", "type": f"∀ (G : Type*), {number} = {number}",
        "value": None, "docstring": None, "informal_name": "A fact", "informal_description": f"Fact {number}.",
    }  # fmt: skip
    return row | changes


def test_frenzymaths_columns_are_mapped(tmp_path: Path):
    """Lists of parts are joined; rows without an informal text are counted; the md5 of the id draws the split."""
    rows = [published(n) for n in range(200)] + [published(200, informal_description=None)]
    write(tmp_path / "data" / "train-00000-of-00001.parquet", rows)
    source.build(tmp_path, tmp_path / "out")
    found = table(tmp_path / "out" / "mathlib-views" / "views.jsonl.gz")
    assert found[0] | {"split": ""} == {
        "id": "Group.fact_0", "module": "Mathlib.Algebra.Group", "kind": "theorem", "split": "", "informal": "Fact 0.",
        "signature": "(G : Type*) : 0 = 0", "type": "∀ (G : Type*), 0 = 0",
    }  # fmt: skip
    counts = Counter(row["split"] for row in found)
    assert set(counts) == {"train", "dev", "test"} < set(SPLITS) and 140 < counts["train"] < 180
    card = tomllib.loads((tmp_path / "out" / "mathlib-views" / "card.toml").read_text("utf-8"))
    assert card["counts"]["left_out"] == {"declarations without a text for informal": 1}


def test_files_that_are_named_by_splits_give_the_split(tmp_path: Path):
    """As a dataset that somebody has divided; the id may not repeat over the files either."""
    for stem, numbers in (("train", (1, 2)), ("val", (3,)), ("test", (4,))):
        write(tmp_path / "set" / f"{stem}.jsonl", [published(n) for n in numbers])
    found = read_views(tmp_path / "set").set_index("id").split
    assert found.to_dict() == {f"Group.fact_{n}": s for n, s in enumerate(["train", "train", "dev", "test"], 1)}
    write(tmp_path / "set" / "test.jsonl", [published(1)])
    with pytest.raises(MirblabError, match=r"train\.jsonl, line 1: the id 'Group\.fact_1' a second time, .*test"):
        read_views(tmp_path / "set")


def test_columns_that_cannot_be_mapped_are_refused_with_what_was_found(tmp_path: Path):
    """Of JSON lines and of parquet; and a folder without rows."""
    for name in ("data.jsonl", "data.parquet"):
        folder = tmp_path / name.partition(".")[2]
        write(folder / name, [{"name": "a", "informal_statement": "A.", "formal_statement": "theorem a"}])
        with pytest.raises(MirblabError, match=r"1: no column module or module_name, no .*found name, .*formal"):
            read_views(folder)
    write(tmp_path / "other" / "data.parquet", [{"x": 1}])
    with pytest.raises(MirblabError, match=r"data\.parquet has none of the columns id, name.*found x"):
        read_views(tmp_path / "other")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "README.md").write_text("nothing")
    with pytest.raises(FileNotFoundError, match=r"no \.jsonl or \.parquet file in .*found README\.md"):
        read_views(tmp_path / "empty")


def test_the_ceiling_is_what_guessing_among_equals_gives(tmp_path: Path):
    """Two queries have three equals each, one stands alone: by hand."""
    catalogue.build("views", str(write(tmp_path / "views.jsonl", records())))
    honest = catalogue.load("views-type-signature", "test-identical")
    means = (
        measures.mean(identity_ceiling(honest, ["R@1", "Success@2", "R@5", "RR", "RR@2"])).set_index("measure").value
    )
    assert means["R@1"] == pytest.approx((1 / 3 + 1 / 3 + 1) / 3)
    assert means["Success@2"] == pytest.approx((2 / 3 + 2 / 3 + 1) / 3) and means["R@5"] == 1
    assert means["RR"] == pytest.approx((2 * (1 + 1 / 2 + 1 / 3) / 3 + 1) / 3)
    assert means["RR@2"] == pytest.approx((2 * (1 + 1 / 2) / 3 + 1) / 3)
    for measure in ("nDCG@10", "RR'"):
        with pytest.raises(MirblabError, match="the ceiling of row identity is known for R@k"):
            identity_ceiling(honest, [measure])


def test_the_paper_prints_a_table_for_each_direction():
    """Its number, its rows under ours and not called ours, RR as MRR; what it does not print is missing."""
    names = [f"{start}views-{direction}" for start in ("", "mini-") for direction in lean_views.DIRECTIONS]
    assert [printed_table_number(name) for name in names] == [*range(6, 12), *range(6, 12)]
    for name in ("mini-pairs", "informal-type", "views-type-type"):
        with pytest.raises(MirblabError, match=f"no directed task '{name}'"):
            printed_table_number(name)
    rows = [("bm25", "R@1", "a", 1.0), ("bm25", "R@1", "b", 0.0), ("bm25", "RR", "a", 1.0), ("bm25", "RR", "b", 0.5),
            ("bm25", "R@3", "a", 1.0), ("bm25", "R@3", "b", 1.0)]  # fmt: skip
    values = pd.DataFrame(rows, columns=["system", "measure", "query_id", "value"])
    both = pd.concat([values.assign(collection="views-type-signature", value=0.0), values.assign(collection=names[5])])
    shown = compare_with_printed(both, names[5])
    assert shown.columns.tolist() == ["from", "R@1", "MRR", "R@3"]
    assert shown.loc["bm25"].tolist() == ["here", 50.0, 75.0, 100.0]
    assert shown.loc["MathLeap-Octen-8B"].tolist()[:3] == ["paper", 73.34, 80.56] and shown["R@3"].count() == 1


@pytest.fixture(scope="module")
def real(shared_file: Callable[[str], Path]) -> pd.DataFrame:
    """Return the table of the shared data, read once."""
    return read_views(shared_file("data/mathlib-views"))


def test_the_real_table_has_the_counts_that_its_readme_states(real: pd.DataFrame):
    """54,830 declarations; the README's repeated types fold case, ours do not."""
    assert real.split.value_counts().to_dict() == {
        "train": 37_596, "new_extra": 12_241, "test": 1_998, "test_new": 1_998, "dev": 997,
    }  # fmt: skip
    assert len(real) == len(in_modules(real)) == 54_830
    assert set(real.split[real.names_itself]) == {"train", "new_extra"}
    is_theorem = real.kind.isin(lean_views.THEOREMS)
    folded = real.type.str.casefold()
    assert [len(folded[part]) - folded[part].nunique() for part in (~is_theorem, is_theorem)] == [2_340, 17]
    counts = lean_views.count_declarations(real.to_dict("records"))
    assert (counts["repeated types of others"], counts["repeated types of theorems"]) == (2_330, 14)
    assert counts["theorems and lemmas"] == 22_264 and counts["repeated informal texts"] == 0


def test_one_real_direction_is_bounded_by_repeated_types(real: pd.DataFrame):
    """125 of 1,998 targets have a twin, so that row identity gives at most 95.8 percent at rank 1."""
    judged = lean_views.view_collection(real.to_dict("records"), "informal-type").judged
    n_equal = Counter(query for query, _, _ in judged["test-identical"])
    assert len(judged["test"]) == len(n_equal) == 1_998 and sum(n > 1 for n in n_equal.values()) == 125
    assert sum(1 / n for n in n_equal.values()) / 1_998 == pytest.approx(0.9581528537636705)
    assert {len(judged[split]) for split in ("test_new", "dev")} == {1_998, 997}
