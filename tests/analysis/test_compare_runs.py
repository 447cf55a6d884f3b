"""Two runs side by side: likeness against hand values and properties, moves, readings, and what is no run."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirblab.analysis import compare_runs
from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.data.runs import write_run
from mirblab.display.plots import queries
from mirblab.evaluation import measures, significance

RANKINGS = st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=10)


def run(name: str, **queries: str) -> pd.DataFrame:
    rows = [(query, doc, -float(place)) for query, docs in queries.items() for place, doc in enumerate(docs.split())]
    table = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    table.attrs["system"] = name
    return table


def rbo(first: Sequence[str], second: Sequence[str], p: float) -> float:
    places = {doc: rank for rank, doc in enumerate(second, 1)}
    deeper = [max(rank, places[doc]) for rank, doc in enumerate(first, 1) if doc in places]
    return compare_runs._rbo(np.array(deeper, dtype=np.int64), len(first), len(second), p)


@pytest.fixture
def tiny(make_folder):
    """Four documents, two queries; d3 and d4 are judged for nobody."""
    corpus = [{"_id": f"d{n}", "title": "", "text": f"document {n}"} for n in (1, 2, 3, 4)]
    return load_folder(make_folder(corpus, qrels="q1\td1\t1\nq2\td2\t2\nq2\td1\t0\n"))


@pytest.mark.parametrize(
    ("first", "second", "p", "expected"),
    [
        ("a b c", "b a c", 0.5, 0.5),
        ("a b", "a c", 0.5, 0.75),  # 1 · 1/2 + 1/2 · 1/4, and 1/2 · 1/4 for what would follow
        ("a", "a b c", 0.5, 1.0),  # what follows the short one is taken to agree as it did
        ("a", "b a", 0.5, 0.25),  # 1/2 · 1/4 for what is seen at depth 2, and the same for what would follow
        ("a b c", "x y z", 0.9, 0.0),
        ("", "", 0.9, 1.0),
        ("", "a", 0.9, 0.0),
    ],
)
def test_rbo_by_hand(first, second, p, expected):
    """Sums of equation 32 that fit on a line."""
    assert rbo(first.split(), second.split(), p) == pytest.approx(expected)


def _by_formula(first: list[str], second: list[str], p: float) -> float:
    """Equation 32 of Webber et al., literally, with sets."""
    short, long = sorted((first, second), key=len)
    s, length = len(short), len(long)
    x = {d: len(set(short[:d]) & set(long[:d])) for d in range(1, length + 1)}
    seen = sum(x[d] / d * p**d for d in range(1, length + 1))
    seen += sum(x[s] * (d - s) / (s * d) * p**d for d in range(s + 1, length + 1))
    return (1 - p) / p * seen + ((x[length] - x[s]) / length + x[s] / s) * p**length


@given(RANKINGS, RANKINGS, st.floats(0.05, 0.98))
def test_rbo_has_the_properties_of_the_paper(first, second, p):
    """From 0 to 1, symmetric, 1 for the same ranking, 0 for nothing in common, and equal to the formula with sets."""
    found = rbo(first, second, p)
    assert -1e-12 <= found <= 1 + 1e-12
    assert found == pytest.approx(rbo(second, first, p))
    assert rbo(first, first, p) == pytest.approx(1)
    if first and second:
        assert found == pytest.approx(_by_formula(first, second, p))
        assert (found < 1e-12) == (not set(first) & set(second))


def test_rbo_weighs_the_top_more():
    """A swap on top costs more than one below, and a larger p makes them more alike in weight."""
    base = list("abcdefgh")
    top, low = list("bacdefgh"), list("abcdefhg")
    gaps = [rbo(base, low, p) - rbo(base, top, p) for p in (0.5, 0.9)]
    assert gaps[0] > gaps[1] > 0


def test_similarity_of_a_run_with_itself_and_its_reverse():
    """Itself: 1 everywhere; reversed: tau -1, the same documents."""
    one, back = run("one", q="a b c d"), run("back", q="d c b a")
    same, turned = (
        compare_runs.run_similarity(one, one, k=2).iloc[0],
        compare_runs.run_similarity(one, back, k=2).iloc[0],
    )
    assert same[["rbo", "tau", "overlap"]].tolist() == pytest.approx([1, 1, 1])
    assert turned.tau == pytest.approx(-1) and turned.overlap == 0 and turned.common == 4


def test_similarity_counts_queries_of_either_run():
    """A query that only one run has is there, with nothing in common and no tau."""
    found = compare_runs.run_similarity(run("one", p="a b", q="a b"), run("two", q="b c")).set_index("query_id")
    assert found.loc["p", "rbo"] == 0 and found.loc["p", "common"] == 0 and np.isnan(found.loc["p", "tau"])
    assert found.loc["q", "overlap"] == 0.5 and np.isnan(found.loc["q", "tau"])
    with pytest.raises(MirblabError, match="between 0 and 1, found 1"):
        compare_runs.run_similarity(run("one", q="a"), run("two", q="a"), p=1.0)


def test_moved_documents_say_where_they_stood(tiny):
    """Ranks in both, the places gained, the judgement, and a gap where a run does not return it or nobody judged."""
    found = compare_runs.moved_documents(run("one", q1="d1 d2 d3"), run("two", q1="d3 d1 d4"), tiny, k=2).set_index(
        "doc_id"
    )
    assert found.loc["d3", ["rank_a", "rank_b", "change"]].tolist() == [3, 1, 2]
    assert found.loc["d1", ["change", "relevance"]].tolist() == [-1, 1]
    assert pd.isna(found.loc["d2", "rank_b"]) and pd.isna(found.loc["d2", "change"])
    assert "d4" not in found.index and pd.isna(found.loc["d3", "relevance"])
    assert found.index.tolist() == ["d3", "d1", "d2"]


def test_changed_documents_count_what_entered_and_left(tiny):
    """By document, relevant and unjudged, and what stays is neither."""
    moved = compare_runs.moved_documents(
        run("one", q1="d1 d2 d3", q2="d1 d2"), run("two", q1="d3 d1 d2", q2="d2 d4"), tiny, k=2
    )
    found = compare_runs.changed_documents(moved, 2, 1).set_index("query_id")
    assert found.loc["q1"].tolist() == [1, 0, 1, 1, 0, 1]
    assert found.loc["q2"].tolist() == [1, 0, 1, 1, 0, 0]


def test_extreme_queries_leave_out_equal_values():
    """Gains first, losses last; nothing for two equal systems."""
    rows = [
        (s, q, v) for s, vs in (("a", (0.1, 0.5, 0.9)), ("b", (0.4, 0.5, 0.1))) for q, v in zip("xyz", vs, strict=True)
    ]
    values = pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(measure="RR", collection="c")
    found = compare_runs.extreme_queries(values, "RR", "a", "b", 5)
    assert found.query_id.tolist() == ["x", "z"] and found.difference.round(6).tolist() == [0.3, -0.8]
    assert compare_runs.extreme_queries(values, "RR", "a", "a", 5).empty
    with pytest.raises(MirblabError, match="no system among the values 'c'"):
        compare_runs.extreme_queries(values, "RR", "a", "c")


def test_means_by_assumption_by_hand(tiny):
    """P@1 under the four readings: what is unjudged on top counts nothing, for both, for one, for the other."""
    one, two = run("one", q1="d3 d1", q2="d2 d1"), run("two", q1="d1 d3", q2="d4 d2")
    found = compare_runs.means_by_assumption(one, two, tiny, ["P@1"], k=1).set_index("reading")
    assert found.supposed.tolist() == [0, 2, 1, 1]
    assert found["first"].tolist() == [0.5, 1.0, 1.0, 0.5]
    assert found.second.tolist() == [0.5, 1.0, 0.5, 1.0]
    assert found.difference.tolist() == [0.0, 0.0, -0.5, 0.5]


def test_what_is_assumed_not_relevant_is_judged(tiny):
    """RR' skips what is unjudged, so that d3 before d2 costs nothing until it is judged; as not relevant it does."""
    one, two = run("one", q2="d3 d2"), run("two", q2="d1 d2")
    found = compare_runs.means_by_assumption(one, two, tiny, ["RR'"], k=2).set_index("reading")
    assert found.loc["not relevant", ["first", "second"]].tolist() == [0.25, 0.25]


def test_the_first_assumption_gives_what_evaluate_gives(tiny):
    """Nothing is supposed there, and the collection itself stays as it was."""
    one, two, before = run("one", q1="d3 d1"), run("two", q1="d1", q2="d4 d2"), tiny.fingerprint
    found = compare_runs.means_by_assumption(one, two, tiny, ["nDCG@10", "AP"], k=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        means = measures.mean(measures.evaluate(one, tiny, ["nDCG@10", "AP"])).value
        values = pd.concat([measures.evaluate(each, tiny, ["AP"]) for each in (one, two)])
    read = found[found.reading == "not relevant"].set_index("measure")
    assert read["first"].tolist() == pytest.approx(means.tolist())
    assert read.p["AP"] == significance.compare(values, "AP", baseline="one").p.item()
    assert tiny.fingerprint == before and len(tiny.qrels) == 3


def test_means_by_assumption_refuse_two_runs_of_one_name(tiny):
    """Their values would be one column."""
    with pytest.raises(MirblabError, match="both runs are called 'one'"):
        compare_runs.means_by_assumption(run("one", q1="d1"), run("one", q1="d2"), tiny, ["RR"])


def test_a_pair_of_files_is_told_apart(tiny, tmp_path):
    """Equal names give way to the files' names; equal files get a number."""
    for name in ("old.trec", "new.trec.gz"):
        write_run(run("mine", q1="d1 d2", q2="d2"), tmp_path / name)
    names = [
        one.attrs["system"] for one in compare_runs.paired_runs(tmp_path / "old.trec", tmp_path / "new.trec.gz", tiny)
    ]
    assert names == ["old.trec", "new.trec.gz"]
    twice = compare_runs.paired_runs(tmp_path / "old.trec", tmp_path / "old.trec", tiny, depth=1)
    assert [one.attrs["system"] for one in twice] == ["old.trec", "old.trec (2)"]
    assert len(twice[0]) == 2 and twice[0].attrs["made_by"]["file"] == "old.trec"


def test_rows_of_other_documents_are_left_out_and_said(tiny, tmp_path):
    """What fits stays, and a warning counts the rest."""
    write_run(run("mine", q1="d1 elsewhere", q9="d1"), tmp_path / "a.trec")
    with pytest.warns(compare_runs.RunWarning, match="a.trec: 2 of 3 rows"):
        found = compare_runs.paired_runs(tmp_path / "a.trec", tmp_path / "a.trec", tiny)
    assert found[0].doc_id.tolist() == ["d1"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is an empty run; a line is 'query_id Q0 doc_id rank score system'"),
        ("id,text\n1,hello\n", "line 1: found 1 columns instead of 6"),
        ("q1 Q0 d1 1 high s\n", "line 1: the score 'high' is no number"),
        ("other Q0 d1 1 2 s\n", "none of its 1 queries is in tiny .split test.: it has 'other', the collection 'q1'"),
        ("q1 Q0 other 1 2 s\n", "none of its 1 documents is in tiny"),
        (b"q1 Q0 d\xe9 1 2 s\n", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_run_of_this_collection_is_refused(tiny, tmp_path, content, says):
    """With what was found and what to give."""
    path = tmp_path / "a.trec"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(MirblabError, match=says):
        compare_runs.paired_runs(path, path, tiny)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("nowhere.trec", "no run file 'nowhere.trec'; looked in .*; give the whole path, or a system"),
        ("bm52", "'bm52' is neither a run file nor a system: .*did you mean 'bm25'"),
        ("", "neither a run file nor a system"),
    ],
)
def test_what_is_neither_file_nor_system_is_refused(tiny, given, says):
    """With the nearest name, or where it was looked for."""
    with pytest.raises(MirblabError, match=says):
        compare_runs.paired_runs(given, "bm25", tiny)


def test_a_folder_names_the_files_in_it(tiny, tmp_path):
    """One of them is wanted."""
    (tmp_path / "one.trec").write_text("", encoding="utf-8")
    with pytest.raises(MirblabError, match="is a folder; name one run file in it, found .*one.trec"):
        compare_runs.paired_runs(tmp_path, "bm25", tiny)


def test_the_scatter_counts_and_grows():
    """Queries with the same values are one dot; nothing is drawn for an empty table."""
    table = pd.DataFrame({"a": [0.0, 0.0, 0.0, 1.0], "b": [1.0, 1.0, 1.0, 0.5]})
    ax = queries.value_scatter(table, measure="RR")
    assert ax.get_title("left") == "b: better on 3, equal on 0, worse on 1 query"
    sizes = [float(one.get_sizes().max()) for one in ax.collections]
    assert sum(len(one.get_offsets()) for one in ax.collections) == 2 and sizes[0] > sizes[1]
    assert ax.get_xlabel().startswith("a\nRR, 0 to 1") and ax.get_ylabel().startswith("b\nRR, 0 to 1")
    assert "empty" in queries.value_scatter(pd.DataFrame()).texts[0].get_text()


def test_rank_changes_put_deep_ranks_below_the_line():
    """In their order, missing ones last, and each with its rank."""
    rows = {"doc_id": ["a", "b", "c"], "rank_a": [1, 80, None], "rank_b": [None, 1, 2], "relevance": [1, 0, None]}
    ax = queries.rank_changes(pd.DataFrame(rows).convert_dtypes(), first="one", second="two", k=2)
    heights = [line.get_ydata().tolist() for line in ax.lines[:3]]
    assert heights == [[1, 3.5], [3.5, 1], [4.5, 2]]
    assert {"c  not returned", "not returned  a", "b  80"} <= {text.get_text() for text in ax.texts}
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "relevant",
        "judged, not relevant",
        "not judged",
    ]


def test_numbers_below_1_are_refused() -> None:
    """An overlap of no document has no share, and minus one query is not all but one."""
    run = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    with pytest.raises(MirblabError, match="k must be at least 1, found 0"):
        compare_runs.run_similarity(run, run, k=0)
    values = pd.DataFrame(
        {"system": ["a", "b"], "collection": "c", "measure": "RR", "query_id": "q", "value": [0.1, 0.2]}
    )
    with pytest.raises(MirblabError, match="n_queries must be at least 1, found -1"):
        compare_runs.extreme_queries(values, "RR", "a", "b", n_queries=-1)
