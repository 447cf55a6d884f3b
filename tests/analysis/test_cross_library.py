"""Agreement of two readings, and what a pool missed, against exact enumeration and hand values."""

from __future__ import annotations

from itertools import product

import pandas as pd
import pytest

from mirblab.analysis.searching.cross_library import compare_readings, estimate_missed
from mirblab.core.errors import MirblabError


def judged(rows: list[tuple[str, str, int, int, float, str]], libraries: tuple[str, str] = ("a", "b")) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["query_id", "doc_id", "first", "second", "share", "found_by"])
    return table.assign(queries=libraries[0], documents=libraries[1])


def test_agreement_is_that_of_a_textbook():
    """Cohen's own kind of example: 20 yes-yes, 15 no-no, 5 and 10 mixed of 50 give kappa 0.4."""
    cells = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    table = compare_readings(judged([(f"q{n}", "d", *cell, 1.0, "bm25:1") for n, cell in enumerate(cells)]))
    row = table.iloc[0]
    assert (row.n_queries, row.pairs, row.same) == (50, 50, 0.7)
    assert row.kappa == pytest.approx(0.4)
    assert row.low < row.kappa < row.high
    assert len(table) == 1


def test_pairs_of_one_query_are_drawn_together():
    """With a single query there is nothing to resample, so that the interval is the value itself."""
    rows = [("q", f"d{n}", n % 2, n % 3 % 2, 1.0, "bm25:1") for n in range(12)]
    row = compare_readings(judged(rows)).iloc[0]
    assert row.low == row.kappa == row.high


def test_one_row_stands_for_all_libraries():
    """Rows of two pairs of libraries are followed by one of both; a query id of two libraries is two queries."""
    one = judged([("q", "d", 1, 1, 1.0, "bm25:1"), ("q", "e", 0, 0, 1.0, "bm25:2")])
    table = compare_readings(pd.concat([one, judged([("q", "d", 2, 0, 1.0, "bm25:1")], ("a", "c"))]), n_resamples=50)
    assert table[["queries", "documents"]].values.tolist() == [["a", "b"], ["a", "c"], ["all", "all"]]
    assert table.n_queries.tolist() == [1, 1, 2]


def test_the_estimate_is_right_on_average():
    """Over every draw that the design permits, the mean of `pooled` is the number of relevant pairs in the pool."""
    pool = {"q1": [1, 0, 0, 1], "q2": [0, 0, 1], "q3": [0, 0]}  # below the first documents, of which all are judged
    draws = list(product(*(range(len(grades)) for grades in pool.values())))
    top = [("q1", "top", 2, 2, 1.0, "bm25:1 names:1"), ("q2", "top", 0, 1, 1.0, "bm25:1")]
    estimates = []
    for draw in draws:
        below = [
            (query, f"d{number}", pool[query][number], pool[query][number], 1 / len(pool[query]), "bm25:3")
            for query, number in zip(pool, draw, strict=True)
        ]
        row = estimate_missed(judged([*top, *below]), n_resamples=2).iloc[0]
        estimates.append(row.pooled)
        assert row.relevant == 1 + sum(grades[number] for grades, number in zip(pool.values(), draw, strict=True))
    assert sum(estimates) / len(draws) == pytest.approx(1 + sum(map(sum, pool.values())))


def test_queries_whose_pool_was_not_sampled_are_left_out():
    """Those of which `graph` found a document, with all their rows; a query of the same id of others stays."""
    sampled = [("q", "d", 1, 1, 1.0, "bm25:1"), ("q", "e", 1, 1, 0.25, "words:2"), ("r", "d", 0, 0, 1.0, "names:1")]
    unsampled = [("s", "d", 2, 2, 1.0, "words:4 graph:1"), ("s", "e", 1, 1, 1.0, "bm25:1")]
    alone = estimate_missed(judged(sampled), n_resamples=20)
    pd.testing.assert_frame_equal(estimate_missed(judged([*sampled, *unsampled]), n_resamples=20), alone)
    other = judged([("s", "d", 1, 1, 0.5, "minilm:2")], ("a", "c"))
    both = estimate_missed(pd.concat([judged([*sampled, *unsampled]), other]), n_resamples=20)
    assert both.pooled.tolist() == [5, 2, 7]
    with pytest.raises(MirblabError, match="no judged pair"):
        estimate_missed(judged(unsampled))


def test_disputed_pairs_are_left_out():
    """They are of another pool; the other pairs of their queries stay."""
    sampled = [("q", "d", 1, 1, 1.0, "bm25:1"), ("q", "e", 1, 1, 0.25, "words:2"), ("r", "d", 0, 0, 1.0, "names:1")]
    disputed = [("q", "f", 2, 2, 1.0, "disputed:1 minilm:1"), ("r", "e", 1, 1, 0.01, "disputed:99 structure:4")]
    alone = estimate_missed(judged(sampled), n_resamples=20)
    pd.testing.assert_frame_equal(estimate_missed(judged([*sampled, *disputed]), n_resamples=20), alone)


def test_the_population_is_that_of_two_captures():
    """Chapman's estimate by hand: 3 by names, 4 by texts, 1 by both: 4 * 5 / 2 - 1 = 9; grade 0 is nobody's."""
    found = ["names:1", "names:2", "names:9 bm25:2", "bm25:1", "minilm:1", "bm25:4 minilm:2"]
    rows = [(f"q{n}", "d", 2, 1, 1.0, by) for n, by in enumerate(found)] + [("q9", "d", 2, 0, 1.0, "names:1 bm25:1")]
    row = estimate_missed(judged(rows), n_resamples=2).iloc[0]
    assert (row.relevant, row.pooled, row.beyond) == (6, 6, 9)
    assert estimate_missed(judged(rows), 2, n_resamples=2).iloc[0].relevant == 0


def test_bad_input_is_named():
    """No pair, no resample, and a grade that no pair has in either reading."""
    with pytest.raises(MirblabError, match="no judged pair"):
        compare_readings(judged([]))
    with pytest.raises(MirblabError, match="n_resamples must be at least 1, found 0"):
        estimate_missed(judged([("q", "d", 1, 1, 1.0, "bm25:1")]), n_resamples=0)
    for grade in (9, -1):
        with pytest.raises(MirblabError, match=f"relevant_from is from 1 to 2, the highest grade.*, found {grade}"):
            estimate_missed(judged([("q", "d", 1, 2, 1.0, "bm25:1"), ("q", "e", 0, 0, 1.0, "bm25:2")]), grade)
