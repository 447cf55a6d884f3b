"""Ids are text, always: no reader takes one for a number, a truth value or nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mirblab.core.errors import MirblabError
from mirblab.core.ids import are_sorted, find_positions, read_id, sort_ids
from mirblab.data.beir import write_collection
from mirblab.data.collection import load_folder
from mirblab.data.runs import order_run, read_trec_run, write_run
from mirblab.evaluation import arqmath, imported_values
from mirblab.retrieval.run_store import RunStore
from mirblab.sources import hub
from mirblab.sources.shared import readers, tables
from mirblab.train import pairs as training_pairs

AWKWARD = ["0042", "1e5", "True", "NaN", "null", "1_000", "+42", "0x1F", "١٢", "0704.0001", "inf", "-0", "None", "NA",
           "false", "1.0", "00", "2020-01-01", "1,5", "#1", "'", '"', "\\N", "-inf", "nan", "N/A", "12:30"]  # fmt: skip
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=8)
IDS = st.lists(st.sampled_from(AWKWARD) | st.integers().map(str) | WORDS, min_size=1, max_size=5, unique=True)


def run_of(names: list[str]) -> pd.DataFrame:
    """Return a run in which every id is a query and a document."""
    rows = [(query, doc, float(place)) for query in names for place, doc in enumerate(names)]
    return order_run(pd.DataFrame(rows, columns=["query_id", "doc_id", "score"]))


def pairs(table: pd.DataFrame) -> set[tuple[str, str]]:
    """Return the queries and documents of a table."""
    return set(zip(table.query_id.astype(str), table.doc_id.astype(str), strict=True))


def through_trec(names: list[str], folder: Path) -> set:
    """Write and read a run in TREC's form."""
    write_run(run_of(names), folder / "a.trec")
    return pairs(read_trec_run(folder / "a.trec"))


def through_the_store(names: list[str], folder: Path) -> set:
    """Store a run and take it out again."""
    store = RunStore(folder / "runs")
    store.put("key", 10, run_of(names))
    return pairs(store.get("key", 10))


def through_a_submission(names: list[str], folder: Path) -> set:
    """Write and read a file as ARQMath's participants hand it in."""
    arqmath.write_submission(run_of(names), folder / "a.tsv")
    return pairs(arqmath.read_submission(folder / "a.tsv"))


def through_a_collection(names: list[str], folder: Path) -> set:
    """Write and load a collection with judgements and lists of candidates."""
    rows = [{"_id": name, "text": "x"} for name in names]
    write_collection(folder, rows, rows, {"test": [(one, two, 1) for one in names for two in names]}, {})
    lists = [{"query-id": name, "excluded-ids": names[:1]} for name in names]
    (folder / "excluded_ids.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lists), encoding="utf-8")
    loaded = load_folder(folder)
    assert set(loaded.doc_ids) == set(loaded.query_ids) == set(names)
    return pairs(loaded.qrels)


def through_parquet_of_mteb(names: list[str], folder: Path) -> set:
    """Read parquet files as MTEB publishes them."""
    table = pd.DataFrame({"_id": names, "text": "x"})
    table.to_parquet(folder / "corpus.parquet")
    known = hub.read_ids([folder / "corpus.parquet"])
    judged = pd.DataFrame([(one, two, 1) for one in names for two in names], columns=["query-id", "corpus-id", "score"])
    judged.to_parquet(folder / "qrels.parquet")
    found = hub.read_judgements([folder / "qrels.parquet"], known, known, Counter())
    return {pair[:2] for pair in found}


def through_qrels_of_trec(names: list[str], folder: Path) -> set:
    """Read judgements in TREC's form."""
    lines = [f"{one}\t0\t{two}\t1\n" for one in names for two in names]
    (folder / "qrels.txt").write_text("".join(lines), encoding="utf-8")
    return set(readers.read_judgements(folder / "qrels.txt", 3).grades)


def through_own_json(names: list[str], folder: Path) -> set:
    """Read one's own JSON lines."""
    lines = [json.dumps({"query": one, "id": two}) + "\n" for one in names for two in names]
    (folder / "a.jsonl").write_text("".join(lines), encoding="utf-8")
    return {(row["query"], row["id"]) for _, row in tables.read_table(folder / "a.jsonl").rows}


def through_rephrasings(names: list[str], folder: Path) -> set:
    """Save and read a table of new texts, as JSON lines and as parquet."""
    made = [
        training_pairs.rephrasing_table(names, [{} for _ in names], ["" for _ in names], {"model": "m", "prompts": "p"})
    ]
    found = [
        training_pairs.read_rephrasings(training_pairs.save_rephrasings(made[0], folder / f"a.{suffix}"))
        for suffix in ("jsonl", "parquet")
    ]
    assert found[0].id.tolist() == found[1].id.tolist()
    return {(one, two) for one in found[0].id for two in found[1].id}


def through_a_csv_of_values(names: list[str], folder: Path) -> set:
    """Read values per query."""
    quoted = [name.replace('"', '""') for name in names]
    lines = [f'"{one}",mini-qa,RR,0.5,"{two}"\n' for one in quoted for two in quoted]
    text = "system,collection,measure,value,query_id\n" + "".join(lines)
    (folder / "a.csv").write_text(text, encoding="utf-8")
    return {(key[0], key[3]) for key in imported_values.read_csv_values(folder / "a.csv").rows}


@pytest.mark.parametrize(
    "through",
    [through_trec, through_the_store, through_a_submission, through_a_collection, through_parquet_of_mteb,
     through_qrels_of_trec, through_own_json, through_rephrasings, through_a_csv_of_values],
)  # fmt: skip
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=IDS)
@example(names=["0042"])
@example(names=["001", "0042", "0043"])
@example(names=["1e5", "0704.0001", "inf"])
@example(names=["True", "False"])
@example(names=["NaN", "null", "None", "NA"])
@example(names=["0x1F", "1_000", "+42", "-0", "١٢"])
def test_every_reader_returns_the_ids_that_were_written(through, names, tmp_path_factory):
    """Whatever an id looks like, it comes back letter by letter."""
    assert through(names, tmp_path_factory.mktemp("ids")) == {(one, two) for one in names for two in names}


def test_a_system_name_is_text_too(tmp_path):
    """The last column of a run names the system: `007` is not 7."""
    (tmp_path / "a.trec").write_text("q Q0 d 1 1.5 007\nq Q0 e 2 1.0 007\n")
    assert read_trec_run(tmp_path / "a.trec").attrs["system"] == "007"


@pytest.mark.parametrize("value", [1e5, True, False, None, [], {}, 1.0, float("nan"), float("inf")])
def test_what_is_neither_text_nor_whole_number_is_no_id(value):
    with pytest.raises(MirblabError, match=r"'_id' must be a text or a whole number, found|no '_id'; found null"):
        read_id({"_id": value}, "_id")


@pytest.mark.parametrize("value", ["", " ", "\t", "\u00a0", "a\tb", "a\nb", "\ud800"])
def test_ids_that_nobody_sees_or_no_table_holds_are_refused(value):
    with pytest.raises(MirblabError, match="no '_id'; found \"\"|'_id' (is blank|has a tab or a|holds half a)"):
        read_id({"_id": value}, "_id")


def test_whole_numbers_of_json_become_their_digits():
    """Also where a float64 could not hold them."""
    assert [read_id({"_id": value}, "_id") for value in (0, -3, 2**63, 10**400)] == [
        "0",
        "-3",
        str(2**63),
        "1" + "0" * 400,
    ]


@pytest.mark.parametrize("value", ["1e5", "true", "null", "42.0", '""', '" "', "NaN", '["a"]'])
@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("corpus", '{{"_id": {}, "text": "x"}}'),
        ("queries", '{{"_id": {}, "text": "x"}}'),
        ("excluded_ids", '{{"query-id": {}, "excluded-ids": []}}'),
        ("excluded_ids", '{{"query-id": "q", "excluded-ids": [{}]}}'),
    ],
)
def test_a_collection_with_another_id_is_refused_with_file_and_line(tmp_path, value, name, row):
    rows = [{"_id": name, "text": "x"} for name in "qd"]
    write_collection(tmp_path, rows, rows, {"test": [("q", "d", 1)]}, {})
    first = {"excluded_ids": '{"query-id": "d", "excluded-ids": ["d"]}'}.get(name, '{"_id": "a", "text": "x"}')
    (tmp_path / f"{name}.jsonl").write_text(f"{first}\n{row.format(value)}\n", encoding="utf-8")
    with pytest.raises(MirblabError, match=rf"{name}\.jsonl, line 2: (no )?'(_id|query-id|excluded-ids)'"):
        load_folder(tmp_path)


def test_own_json_with_a_float_for_an_id_is_refused_with_its_line(tmp_path):
    """In a column that is taken for ids; in another one it is a text."""
    from mirblab.sources.own import build

    (tmp_path / "a.jsonl").write_text('{"_id": "a", "text": "x"}\n{"_id": 1e5, "text": 2.5}\n')
    table = tables.read_table(tmp_path / "a.jsonl")
    table.roles = {"text": "text"}
    assert build.read_documents(table, Counter())[0]["row-2"]["text"] == "2.5"
    table.roles = {"text": "text", "id": "_id"}
    with pytest.raises(MirblabError, match=r"a\.jsonl, line 2: '_id' must be a text or .* found 100000.0"):
        build.read_documents(table, Counter())


@pytest.mark.parametrize("column", ["query_id", "doc_id"])
def test_the_empty_id_is_refused_in_tables(column):
    run = pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [1.0, 2.0]})
    with pytest.raises(MirblabError, match=f"{column} is empty in some rows"):
        order_run(run.assign(**{column: ["", "x"]}))


@settings(max_examples=60, deadline=None)
@given(IDS, IDS)
@example([], ["a"])
@example(["\U0001f600", "\uffff", "z"], [])
def test_ids_are_found_and_sorted_as_pandas_does(some, known):
    """By code point, and in columns of Arrow's that were put together from several."""
    ids, every = pd.Index(some, dtype="str"), pd.Index(known, dtype="str")
    apart = pd.concat([pd.Series([name], dtype="str") for name in known] or [pd.Series([], dtype="str")])
    for of in (every, pd.Index(apart, name=None)):
        assert find_positions(ids, of).tolist() == of.get_indexer(ids).tolist()
        assert find_positions(of, ids).tolist() == ids.get_indexer(of).tolist()
        assert are_sorted(of) == (known == sorted(known))
        ordered, place = sort_ids(of)
        assert ordered.tolist() == sorted(known)
        assert ordered[place].tolist() == known
    assert find_positions(every, every).tolist() == list(range(len(known)))
    assert are_sorted(pd.Index(sorted(some), dtype="str"))
    assert np.array_equal(find_positions(ids, ids[:]), np.arange(len(ids)))
