"""Runs are put in trec_eval's order, and survive files and the store unchanged."""

from __future__ import annotations

import gzip
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from peak_memory import peak_memory
from pyarrow import parquet

import mirblab as lab
from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.data.ranking import top_k
from mirblab.data.runs import cut_run, from_positions, order_run, read_trec_run, write_run
from mirblab.retrieval import run_store
from mirblab.retrieval.run_store import RunStore


def table(*rows, **attrs):
    run = pd.DataFrame(list(rows), columns=["query_id", "doc_id", "score"])
    run.attrs.update(attrs)
    return run


def plain(run):
    """Return the run as tuples, with strings and numbers only."""
    return list(zip(run.query_id.astype("str"), run.doc_id.astype("str"), run.score.tolist(), run["rank"], strict=True))


def by_hand(rows):
    """Return (query, doc, float32 score, rank) by plain sorting: score, then the bytes of the id, both descending."""
    queries = sorted({row[0] for row in rows})
    found = []
    for query in queries:
        mine = [(float(np.float32(score)), doc) for q, doc, score in rows if q == query]
        mine.sort(key=lambda pair: (pair[0], pair[1].encode()), reverse=True)
        found += [(query, doc, score, rank) for rank, (score, doc) in enumerate(mine, 1)]
    return found


def random_run(seed, n_queries=6, n_docs=40):
    """Return an unordered run with ties, with a different number of documents for each query."""
    generator = np.random.default_rng(seed)
    rows = [
        (f"q{query}", f"d{doc}", float(generator.integers(-3, 4)) / 2)
        for query in range(n_queries)
        for doc in generator.choice(n_docs, generator.integers(0, n_docs), replace=False)
    ]
    return table(*[rows[place] for place in generator.permutation(len(rows))], system="s", collection="c")


def test_equal_scores_are_ordered_by_doc_id_descending():
    run = order_run(table(("q", "d1", 1.0), ("q", "d10", 1.0), ("q", "d9", 1.0), ("q", "d2", 2.0)))
    assert run.doc_id.tolist() == ["d2", "d9", "d10", "d1"]
    assert run["rank"].tolist() == [1, 2, 3, 4]


def test_scores_that_float32_cannot_tell_apart_are_ties():
    run = order_run(table(("q", "a", 0.10000000001), ("q", "b", 0.1)))
    assert run.doc_id.tolist() == ["b", "a"]
    assert run.score.dtype == np.float32


def test_negative_zero_equals_zero():
    run = order_run(table(("q", "a", 0.0), ("q", "b", -0.0), ("q", "c", 1.0), ("q", "d", -1.0)))
    assert run.doc_id.tolist() == ["c", "b", "a", "d"]


@pytest.mark.parametrize("score", [np.inf, -np.inf, 1e39, -1e300])
def test_infinite_scores_are_refused(score):
    """Also what a float32 cannot hold: two such documents would be tied whatever their scores were."""
    with pytest.raises(MirblabError, match="1 scores are NaN or infinite, the first in query 'q2'"):
        order_run(table(("q1", "a", 1.0), ("q2", "a", score)))


def test_ids_are_ordered_by_code_point_as_bytes_of_utf_8():
    ids = ["Z", "a", "é", "–", "ﬀ", "𝔸", "aa"]
    run = order_run(table(*[("q", name, 1.0) for name in ids]))
    assert run.doc_id.tolist() == sorted(ids, key=lambda name: name.encode(), reverse=True)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["q1", "q10", "q2", "ß"]), st.sampled_from([f"d{n}" for n in range(12)])),
        st.floats(width=32, allow_nan=False, allow_infinity=False)
        | st.sampled_from([0.1, 0.10000000001, 0.0, -0.0, 1.0]),
    ),
    st.randoms(),
)
def test_order_equals_plain_sorting(scores, random):
    """Any scores, in any order of rows, give the order of a plain Python sort; a second pass changes nothing."""
    rows = [(*pair, score) for pair, score in scores.items()]
    random.shuffle(rows)
    run = order_run(table(*rows))
    assert plain(run) == by_hand(rows)
    pd.testing.assert_frame_equal(order_run(run), run)


def test_many_queries_are_grouped_right():
    """More than 65,536 queries need the second half of the counting sort."""
    n = 70_000
    generator = np.random.default_rng(0)
    ids = pd.Index([f"q{number:06}" for number in range(n)])
    rows = generator.permutation(np.repeat(np.arange(n), 2))
    run = from_positions(rows, np.tile([0, 1], n)[np.argsort(np.argsort(rows, kind="stable"))], np.ones(2 * n), ids,
                         pd.Index(["a", "b"]), "s", "c")  # fmt: skip
    assert run.query_id.cat.codes.tolist() == np.repeat(np.arange(n), 2).tolist()
    assert run.doc_id.tolist() == ["b", "a"] * n


def test_categories_are_sorted_and_codes_small():
    run = order_run(table(("q", "b", 1.0), ("q", "a", 2.0)))
    assert run.doc_id.cat.categories.tolist() == ["a", "b"]
    assert run.doc_id.cat.codes.dtype == np.int8
    assert run["rank"].dtype == np.int32
    unsorted = table(("q", "b", 1.0), ("q", "a", 1.0))
    unsorted["doc_id"] = pd.Categorical(unsorted.doc_id, categories=["b", "x", "a"])
    assert order_run(unsorted).doc_id.tolist() == ["b", "a"]


def test_integer_ids_become_strings():
    run = order_run(table((7, 10, 1.0), (7, 9, 1.0)))
    assert plain(run) == [("7", "9", 1.0, 1), ("7", "10", 1.0, 2)]


@pytest.mark.parametrize("ids", [[1.5, 2.0], [None, "a"], [True, False]])
def test_ids_that_are_no_ids_are_refused(ids):
    with pytest.raises(MirblabError, match="doc_id"):
        order_run(pd.DataFrame({"query_id": "q", "doc_id": ids, "score": 1.0}))


def test_missing_columns_are_named_with_what_was_found():
    with pytest.raises(MirblabError, match="missing query_id, doc_id; found topic, docid, score"):
        order_run(pd.DataFrame({"topic": ["q"], "docid": ["d"], "score": [1.0]}))


def test_nan_scores_are_counted_and_the_first_query_named():
    with pytest.raises(MirblabError, match="2 scores are NaN, the first in query 'q2'"):
        order_run(table(("q1", "a", 1.0), ("q2", "a", np.nan), ("q3", "a", np.nan)))


def test_scores_that_are_text_are_refused():
    with pytest.raises(MirblabError, match="score must hold numbers"):
        order_run(table(("q1", "a", "high")))


@pytest.mark.parametrize("second", [1.0, 0.5, 2.0])
def test_a_document_given_twice_is_refused(second):
    """Also when the two scores keep the run in order, so that no sorting brings them together."""
    with pytest.raises(MirblabError, match="1 rows repeat .* query 'q', document 'a'"):
        order_run(table(("p", "a", 3.0), ("q", "a", 1.0), ("q", "b", 0.75), ("q", "a", second)))


def test_an_empty_run_stays_empty():
    run = order_run(table())
    assert len(run) == 0
    assert list(run.columns) == ["query_id", "doc_id", "score", "rank"]


def test_order_changes_neither_input_nor_attrs():
    run = random_run(1)
    before = run.copy()
    assert order_run(run).attrs == {"system": "s", "collection": "c"}
    pd.testing.assert_frame_equal(run, before)


def test_cut_keeps_the_first_documents_of_each_query():
    run = random_run(2)
    expected = [row for row in plain(order_run(run)) if row[3] <= 5]
    assert plain(cut_run(run, 5)) == expected
    assert cut_run(run, 5).attrs == run.attrs
    with pytest.raises(MirblabError, match="at least 1, found 0"):
        cut_run(run, 0)


def full_sort(scores, k, allowed):
    """Return the k best of each row by sorting everything: the slow, certain way."""
    found = []
    for row, line in enumerate(scores):
        mine = [(float(s), p) for p, s in enumerate(line) if s > -np.inf and (allowed is None or allowed[row, p])]
        found += [(row, position, score) for score, position in sorted(mine, reverse=True)[:k]]
    return found


@pytest.mark.parametrize("shape", [(0, 5), (3, 1), (5, 40), (4, 3000), (2, 20_000)])
@pytest.mark.parametrize("k", [1, 2, 10, 999, 5000])
@pytest.mark.parametrize("levels", [1, 3, 50, 10**6])
def test_top_k_equals_a_full_sort(shape, k, levels):
    """Few levels make many ties at the k-th place; -inf, NaN and what is not allowed never come back."""
    generator = np.random.default_rng([*shape, k, levels])
    scores = (generator.integers(-levels, levels, shape) / levels).astype(np.float32)
    scores[generator.random(shape) < 0.05] = -np.inf
    scores[generator.random(shape) < 0.05] = np.nan
    for allowed in (None, generator.random(shape) < 0.5, np.zeros(shape, dtype=bool)):
        rows, positions, kept = top_k(scores, k, allowed)
        assert list(zip(rows.tolist(), positions.tolist(), kept.tolist(), strict=True)) == full_sort(scores, k, allowed)


def test_top_k_refuses_nonsense():
    with pytest.raises(MirblabError, match="at least 1, found 0"):
        top_k(np.zeros((1, 2)), 0)
    with pytest.raises(MirblabError, match=r"\(1, 2\), but allowed has \(2, 2\)"):
        top_k(np.zeros((1, 2)), 1, np.ones((2, 2), dtype=bool))


def test_positions_become_an_ordered_run_with_notes():
    run = from_positions([1, 0, 1], [0, 2, 1], [1.0, 3.0, 1.0], pd.Index(["p", "q"]), pd.Index(["a", "b", "c"]),
                         "bm25", "mini-qa", k1=1.2)  # fmt: skip
    assert plain(run) == [("p", "c", 3.0, 1), ("q", "b", 1.0, 1), ("q", "a", 1.0, 2)]
    assert run.attrs == {"system": "bm25", "collection": "mini-qa", "k1": 1.2}
    unsorted = from_positions([0, 0], [0, 1], [1.0, 1.0], pd.Index(["q"]), pd.Index(["b", "a"]), "s", "c")
    assert unsorted.doc_id.tolist() == ["b", "a"]
    with pytest.raises(MirblabError, match="document positions run from 0 to 2, but there are 2 ids"):
        from_positions([0, 0], [0, 2], [1.0, 1.0], pd.Index(["q"]), pd.Index(["b", "a"]), "s", "c")
    with pytest.raises(MirblabError, match="1 scores are NaN, the first in query 'q'"):
        from_positions([0], [0], [np.nan], pd.Index(["q"]), pd.Index(["b", "a"]), "s", "c")
    assert len(from_positions([], [], [], pd.Index(["q"]), pd.Index(["b", "a"]), "s", "c")) == 0


@pytest.mark.parametrize("suffix", ["run", "run.gz"])
def test_trec_files_round_trip(tmp_path, suffix):
    """Awkward ids and every float32 come back as they were; writing twice gives the same bytes."""
    ids = ["001", "1e5", "NA", "null", "nan", '"x', "a,b", "#1", "Zermelo–Fraenkel_set_theory:19", "-", "True", "𝔸"]
    generator = np.random.default_rng(4)
    scores = generator.integers(0, 2**31, (3, len(ids)), dtype=np.uint32).view(np.float32)
    scores[~np.isfinite(scores)] = 0
    queries = ["1", "01", "None"]
    rows = [(query, doc, float(scores[n, m])) for n, query in enumerate(queries) for m, doc in enumerate(ids)]
    run = order_run(table(*rows, system="bm25"))
    write_run(run, tmp_path / suffix)
    again = read_trec_run(tmp_path / suffix)
    pd.testing.assert_frame_equal(again, run)
    assert again.attrs == {"system": "bm25", "origin": f"the file {suffix}"}
    write_run(again, tmp_path / f"second.{suffix}")
    assert (tmp_path / suffix).read_bytes() == (tmp_path / f"second.{suffix}").read_bytes()
    assert suffix == "run" or (tmp_path / suffix).read_bytes()[4:8] == bytes(4)  # no time in the header


def test_a_written_line_has_six_columns(tmp_path):
    write_run(table(("q", "b", 0.1), ("q", "a", 25)), tmp_path / "x.run")
    assert (tmp_path / "x.run").read_text() == "q Q0 a 1 25 run\nq Q0 b 2 0.100000001 run\n"
    assert [path.name for path in tmp_path.iterdir()] == ["x.run"]


def test_reading_ignores_rank_and_sorts_by_score(tmp_path):
    """Tabs, several blanks, blank lines and Windows line ends are read; the most frequent last column is the system."""
    path = tmp_path / "x.run"
    path.write_bytes(b"q 0 a 1 0.5 one\r\n\r\n  q\t0\tb  1   2.5e0 two\r\nq 0 c 1 -1 two\r\n")
    run = read_trec_run(path)
    assert plain(run) == [("q", "b", 2.5, 1), ("q", "a", 0.5, 2), ("q", "c", -1.0, 3)]
    assert run.attrs["system"] == "two"


@pytest.mark.parametrize("content", [b"", b"\n", b"  \n\n"])
def test_an_empty_file_is_an_empty_run(tmp_path, content):
    (tmp_path / "x.run").write_bytes(content)
    assert len(read_trec_run(tmp_path / "x.run")) == 0


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("q Q0 b 1 2.5", "found 5 columns instead of 6"),
        ("q Q0 b", "found 3 columns instead of 6"),
        ("q Q0 b 1 2.5 my system", "found 7 columns instead of 6"),
        ("q Q0 b 1 2.5 my own system", "found 8 columns instead of 6"),
        ("q Q0 b 1 high s", "the score 'high' is no number"),
        ("q Q0 b 1 nan s", "the score is NaN"),
        ("q Q0 b 1 inf s", "the score 'inf' is infinite or larger than a float32 holds"),
        ("q Q0 b 1 -Infinity s", "the score '-Infinity' is infinite"),
        ("q Q0 b 1 1e400 s", "the score '1e400' is infinite"),
        ("q Q0 b 1 1e39 s", "the score '1e39' is infinite or larger than a float32 holds"),
        ("q Q0 b 1 1_0 s", "the score '1_0' is no number"),
        ("q Q0 b 1 True s", "the score 'True' is no number"),
        ("q Q0 b 1 ++1 s", r"the score '\+\+1' is no number"),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_malformed_lines_are_named_and_counted(tmp_path, line, reason, place):
    path = tmp_path / "x.run"
    lines = ["q Q0 a 1 3 s", "q Q0 c 2 2 s", line]
    lines.insert(place, line)
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(MirblabError, match=rf"x\.run, line {place + 1}: {reason}.*\(2 such lines in all\)"):
        read_trec_run(path)


def test_broken_files_are_refused_by_name(tmp_path):
    (tmp_path / "x.run").write_bytes(b"q Q0 a 1 3 s\nq Q0 \xff 2 2 s\n")
    with pytest.raises(MirblabError, match=r"x\.run, line 2: the text is not UTF-8"):
        read_trec_run(tmp_path / "x.run")
    whole = gzip.compress(b"q Q0 a 1 3 s\n" * 2000)
    for content in (b"q Q0 a 1 3 s\n", whole[:-20]):
        (tmp_path / "x.run.gz").write_bytes(content)
        with pytest.raises(MirblabError, match=r"x\.run\.gz is not a whole gzip file"):
            read_trec_run(tmp_path / "x.run.gz")
    (tmp_path / "y.run").write_bytes(b"q Q0 a 1 3 s\nq Q0 a 2 2 s\n")
    with pytest.raises(MirblabError, match=r"y\.run: 1 rows repeat .* document 'a'"):
        read_trec_run(tmp_path / "y.run")
    with pytest.raises(FileNotFoundError):
        read_trec_run(tmp_path / "z.run")


def test_a_second_column_that_changes_is_refused_with_its_line(tmp_path):
    (tmp_path / "x.run").write_text("q Q0 a 1 3 s\n\nq Q0 c 2 2 s\nq 7 b 3 1 s\n")
    with pytest.raises(MirblabError, match=r"x\.run, line 4: the second column is '7' after 'Q0', .* in all lines"):
        read_trec_run(tmp_path / "x.run")
    (tmp_path / "x.run").write_text("q 7 a 1 3 s\nq 8 b 1 high s\n")  # what is wrong with one line comes first
    with pytest.raises(MirblabError, match=r"line 2: the score 'high' is no number"):
        read_trec_run(tmp_path / "x.run")


def test_a_submission_to_task_2_of_arqmath_is_no_run_of_posts(tmp_path):
    """Its columns are topic, formula, post, rank, score and run: the third is not what is judged."""
    (tmp_path / "x.tsv").write_text("B.201\t17\t5\t1\t0.9\tours\nB.201\t18\t6\t2\t0.8\tours\n")
    with pytest.raises(MirblabError, match=r"x\.tsv, line 2: .* task 2 .* be mapped to visual ids first; write one"):
        read_trec_run(tmp_path / "x.tsv")
    (tmp_path / "x.tsv").write_text("B.201 Q0 17 1 0.9 ours\nB.201 Q0 18 2 0.8 ours\n")
    assert read_trec_run(tmp_path / "x.tsv").doc_id.tolist() == ["17", "18"]


def test_a_mark_of_utf_8_at_the_beginning_is_no_part_of_an_id(tmp_path):
    (tmp_path / "x.run").write_bytes(b"\xef\xbb\xbfq Q0 a 1 3 s\nq Q0 b 2 2 s\n")
    assert read_trec_run(tmp_path / "x.run").query_id.tolist() == ["q", "q"]


@pytest.mark.parametrize("name", ["a b", "a\tb", " a", "a\u00a0b"])
def test_an_id_with_white_space_cannot_be_written(tmp_path, name):
    with pytest.raises(MirblabError, match=f"doc_id '{name}' is empty or has white space"):
        write_run(table(("q", "c", 1.0), ("q", name, 1.0)), tmp_path / "x.run")
    with pytest.raises(MirblabError, match="the system name 'my system' has white space"):
        write_run(table(("q", "c", 1.0), system="my system"), tmp_path / "x.run")
    assert list(tmp_path.iterdir()) == []


def test_the_store_returns_what_was_stored(tmp_path):
    run = order_run(random_run(5))
    run.attrs["notes"] = {"k1": 1.2, "steps": ["a", "b"]}
    store = RunStore(tmp_path / "runs")
    assert store.get("key", 10) is None
    store.put("key", 100, run)
    again = store.get("key", 100)
    pd.testing.assert_frame_equal(again, run)
    assert again.attrs == run.attrs
    assert store.get("other key", 10) is None


def test_a_deeper_run_answers_a_shallower_question_and_not_the_reverse(tmp_path):
    run = order_run(random_run(6))
    store = RunStore(tmp_path)
    store.put("key", 100, run)
    assert plain(store.get("key", 3)) == plain(cut_run(run, 3))
    assert store.get("key", 101) is None


@pytest.mark.parametrize("n_rows", [1, 10, 1 << 22])
def test_a_large_run_is_stored_some_queries_at_a_time(tmp_path, monkeypatch, n_rows):
    """The run is the same, cut or not, with the ids that occur or with those of a collection."""
    monkeypatch.setattr(runs, "BLOCK_ROWS", n_rows)
    random = np.random.default_rng(3)
    queries, docs = (pd.Index([f"{kind}{n:03}" for n in range(size)]) for kind, size in (("q", 30), ("d", 200)))
    positions = np.concatenate([random.permutation(200)[:6] for _ in range(29)])
    scores = random.integers(0, 4, len(positions))
    run = from_positions(np.repeat(np.arange(1, 30), 6), positions, scores, queries, docs, "s", "c", note="n")
    store = RunStore(tmp_path)
    store.put("key", 6, run)
    (path,) = tmp_path.glob("*.parquet")
    assert parquet.ParquetFile(path).num_row_groups == {1: 29, 10: 18, 1 << 22: 1}[n_rows]
    for depth in (6, 2):
        again, expected = store.get("key", depth, (queries, docs)), cut_run(run, depth)
        pd.testing.assert_frame_equal(again, expected)
        assert again.attrs == run.attrs
        assert plain(store.get("key", depth)) == plain(expected)
    assert store.get("key", 6).doc_id.cat.categories.tolist() == sorted(set(docs[positions]))
    with pytest.raises(MirblabError, match="document positions run from -1"):
        store.get("key", 6, (queries, docs[:9]))


def test_the_store_keeps_only_ids_that_occur(tmp_path):
    """A run over 200,000 documents that returns one of them does not store the names of all."""
    ids = pd.Index([f"document-{number:07}" for number in range(200_000)])
    RunStore(tmp_path).put("key", 1, from_positions([0], [77], [1.0], pd.Index(["q"]), ids, "s", "c"))
    (path,) = tmp_path.glob("*.parquet")
    assert path.stat().st_size < 10_000
    assert plain(RunStore(tmp_path).get("key", 1)) == [("q", "document-0000077", 1.0, 1)]


def test_an_empty_run_can_be_stored(tmp_path):
    RunStore(tmp_path).put("key", 5, table(system="s"))
    again = RunStore(tmp_path).get("key", 5)
    assert len(again) == 0 and again.attrs == {"system": "s"}


def test_no_flipped_byte_goes_unnoticed(tmp_path):
    """Scores, ids and attrs: whatever a bad disk changes, the store says that it has nothing."""
    store = RunStore(tmp_path)
    store.put("key", 5, table(("q", "a", 1.0), ("q", "b", 0.5), system="s"))
    (path,) = tmp_path.glob("*.parquet")
    content = path.read_bytes()
    for place in range(0, len(content), 37):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x01]) + content[place + 1 :])
        with pytest.warns(UserWarning, match="is damaged .* and was set aside"):
            assert store.get("key", 5) is None


def test_a_run_that_is_removed_as_soon_as_it_is_stored_is_returned(tmp_path, monkeypatch):
    """What was computed is the answer, whatever happens to the store."""
    store = RunStore(tmp_path / "runs")
    monkeypatch.setattr(store, "put", lambda *_: None)
    run = store.once("key", 1, 5, lambda: table(("q", "a", 1.0), ("q", "b", 0.5), system="s"))
    assert plain(run) == [("q", "a", 1.0, 1)]


def test_strangers_among_the_runs_are_named_and_passed_over(tmp_path):
    """A file with a name almost right, a folder with one wholly right, a file of anybody's."""
    store = RunStore(tmp_path)
    store.put("key", 5, table(("q", "a", 1.0), system="s"))
    (path,) = tmp_path.glob("*.parquet")
    key, _, digest = path.stem.split("-")
    (tmp_path / f"{key}-deep-{digest}.parquet").write_bytes(b"")
    (tmp_path / f"{key}-9-{digest[::-1]}.parquet").mkdir()
    (tmp_path / "note.txt").write_text("mine", encoding="utf-8")
    assert plain(store.get("key", 5)) == [("q", "a", 1.0, 1)] and store.has("key", 5) and not store.has("key", 9)
    with pytest.warns(UserWarning, match="set aside"):
        wrong = run_store.verify(tmp_path)
    assert len(wrong) == 3 and sum("does not belong here" in line for line in wrong) == 2
    assert plain(store.get("key", 5)) == [("q", "a", 1.0, 1)]


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "foreign"])
def test_a_damaged_file_is_set_aside(tmp_path, damage):
    """Whatever is wrong with the file, it is moved away, the answer is None, and storing it again works."""
    store = RunStore(tmp_path)
    store.put("key", 50, random_run(7))
    (path,) = tmp_path.glob("*.parquet")
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 10] ^= 0xFF
    elif damage == "foreign":
        pd.DataFrame({"x": [1]}).to_parquet(path)
        content = path.read_bytes()
    else:
        content = content[: len(content) // 2 if damage == "cut" else 0]
    path.write_bytes(content)
    with pytest.warns(
        UserWarning, match=rf"{path.name} is damaged .* set aside as {path.name}\.damaged; it is made again"
    ):
        assert store.get("key", 50) is None
    assert [found.suffix for found in tmp_path.iterdir()] == [".damaged"]
    store.put("key", 50, random_run(7))
    assert plain(store.get("key", 50)) == plain(order_run(random_run(7)))


def test_attrs_that_json_cannot_hold_are_refused(tmp_path):
    with pytest.raises(MirblabError, match="attrs of a stored run"):
        RunStore(tmp_path).put("key", 5, table(system=object()))


def test_many_writers_and_readers_share_a_store(tmp_path):
    expected = plain(order_run(random_run(8)))
    seen, problems = [], []

    def work():
        try:
            for _ in range(5):
                RunStore(tmp_path).put("key", 40, random_run(8))
                seen.append(plain(RunStore(tmp_path).get("key", 40)) == expected)
        except Exception as error:  # a thread's error must reach the test
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems and seen == [True] * 30
    assert len(list(tmp_path.iterdir())) == 1


def test_a_large_run_takes_fourteen_bytes_a_row():
    """25 million rows fit into half a gigabyte at 20 bytes each; ordering them again takes little more."""
    n_queries, depth = 1000, 1000
    ids = pd.Index([f"d{number:07}" for number in range(100_000)])
    positions = (np.arange(n_queries * depth) * 7919 % 100_000).astype(np.int32)
    run = from_positions(np.repeat(np.arange(n_queries), depth), positions, np.tile(-np.arange(depth), n_queries),
                         pd.Index([f"q{number:04}" for number in range(n_queries)]), ids, "s", "c")  # fmt: skip
    assert run.memory_usage(index=False, deep=False).sum() < 15 * len(run) + 100_000 * 16
    with peak_memory() as peak:
        order_run(run)
    assert peak.n_bytes < 20 * len(run)


def test_a_frame_of_pyterrier_is_a_run():
    """Its names are understood, its ranks from 0 are ignored, and the system is named by the caller."""
    frame = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "score": [1.0, 2.0], "rank": [1, 0], "query": "text"})
    found = lab.read_run(frame, "bm25")
    assert found.doc_id.tolist() == ["b", "a"] and found["rank"].tolist() == [1, 2]
    assert found.attrs == {"system": "bm25", "origin": "a table"}
    assert order_run(frame).equals(order_run(frame.rename(columns={"qid": "query_id", "docno": "doc_id"})))
    with pytest.raises(MirblabError, match="missing query_id, doc_id; found qid, score"):
        lab.read_run(frame[["qid", "score"]])
