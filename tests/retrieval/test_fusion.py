"""Fusion makes one run of several."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.retrieval import fusion


def a_run(rows: list[tuple[str, str, float]], system: str = "a") -> pd.DataFrame:
    run = runs.order_run(pd.DataFrame(rows, columns=["query_id", "doc_id", "score"]))
    run.attrs = {"system": system, "collection": "tiny"}
    return run


def scores(run: pd.DataFrame) -> dict[tuple[str, str], float]:
    return {(str(row.query_id), str(row.doc_id)): float(row.score) for row in run.itertuples()}


def test_rrf_by_hand():
    """1 / (60 + rank), summed; queries of one part alone are kept."""
    one = a_run([("q1", "d1", 3.0), ("q1", "d2", 2.0)])
    two = a_run([("q1", "d2", 9.0), ("q1", "d3", 8.0), ("q2", "d1", 1.0)], "b")
    fused = fusion.rrf([one, two])
    expected = {("q1", "d2"): 1 / 62 + 1 / 61, ("q1", "d1"): 1 / 61, ("q1", "d3"): 1 / 62, ("q2", "d1"): 1 / 61}
    assert scores(fused) == pytest.approx(expected)
    assert fused[fused.query_id == "q1"].doc_id.tolist() == ["d2", "d1", "d3"]


def test_rrf_agrees_with_a_slow_sum_on_random_runs():
    """Also when the parts name different documents and queries."""
    rng = np.random.default_rng(0)
    parts = []
    for number in range(3):
        rows = {(f"q{rng.integers(9)}", f"d{rng.integers(30)}"): float(rng.integers(5)) for _ in range(90)}
        parts.append(a_run([(*pair, score) for pair, score in rows.items()], f"s{number}"))
    expected: dict[tuple[str, str], float] = {}
    for part in parts:
        for row in part.itertuples():
            pair = (str(row.query_id), str(row.doc_id))
            expected[pair] = expected.get(pair, 0) + 1 / (60 + row.rank)
    assert scores(fusion.rrf(parts)) == pytest.approx(expected, rel=1e-6)


def test_linear_scales_each_query_to_0_to_1():
    """Missing counts 0, and weights are applied after scaling."""
    one = a_run([("q1", "d1", 30.0), ("q1", "d2", 20.0), ("q1", "d3", 10.0)])
    two = a_run([("q1", "d3", 0.9), ("q1", "d4", 0.1)], "b")
    fused = fusion.linear([one, two], [0.5, 0.5])
    expected = {("q1", "d1"): 0.5, ("q1", "d2"): 0.25, ("q1", "d3"): 0.5, ("q1", "d4"): 0.0}
    assert scores(fused) == pytest.approx(expected)
    assert fused.doc_id.tolist() == ["d3", "d1", "d2", "d4"]


def test_equal_scores_count_1_in_linear_fusion():
    """A ranking of one document is not thrown away."""
    assert scores(fusion.linear([a_run([("q1", "d1", 7.0)])], [0.4])) == pytest.approx({("q1", "d1"): 0.4})


def test_the_order_of_the_parts_changes_nothing():
    """Reciprocal ranks are summed."""
    one, two = a_run([("q1", "d1", 1.0), ("q1", "d2", 0.5)]), a_run([("q1", "d2", 1.0)], "b")
    pd.testing.assert_frame_equal(fusion.rrf([one, two]), fusion.rrf([two, one]))


def test_depth_cuts_the_fused_run():
    """The best are kept."""
    one = a_run([("q1", f"d{n}", float(n)) for n in range(9)])
    assert fusion.rrf([one, one], depth=2).doc_id.tolist() == ["d8", "d7"]


def test_runs_of_two_collections_are_not_fused():
    """Their queries have nothing in common but names."""
    other = a_run([("q1", "d1", 1.0)], "b")
    other.attrs["collection"] = "large"
    with pytest.raises(MirblabError, match="runs of one collection can be fused, found large, tiny"):
        fusion.rrf([a_run([("q1", "d1", 1.0)]), other])


def test_nothing_to_fuse_and_wrong_weights_are_errors():
    """Both numbers are in the message."""
    with pytest.raises(MirblabError, match="nothing to fuse"):
        fusion.rrf([])
    with pytest.raises(MirblabError, match="found 1 runs and 2 weights"):
        fusion.linear([a_run([("q1", "d1", 1.0)])], [0.5, 0.5])


@pytest.mark.parametrize("method", fusion.METHODS)
@pytest.mark.parametrize("n_rows", [1, 40, 100])
def test_a_large_run_is_fused_some_queries_at_a_time(method, n_rows, monkeypatch):
    """Whatever the size of a block the result is the same, with queries that only one run has, or none of them."""
    rng, queries, docs = (
        np.random.default_rng(1),
        pd.Index([f"q{n:02}" for n in range(20)]),
        pd.Index(list("abcdefghij")),
    )
    parts = []
    for number in range(2):
        pairs = sorted({(int(rng.integers(2, 17)), int(rng.integers(10))) for _ in range(100)})
        rows, positions = np.array([pair for pair in pairs if pair[0] != 5 + number]).T
        parts.append(runs.from_positions(rows, positions, rng.random(len(rows)), queries, docs, f"s{number}", "tiny"))
    settings = {"weights": [0.3, 0.7]} if method in ("linear", "sum") else {}
    seen = list[int]()
    plain = fusion.METHODS[method]
    watched = {**fusion.METHODS, method: lambda given, **rest: seen.append(len(given[0])) or plain(given, **rest)}
    monkeypatch.setattr(fusion, "METHODS", watched)
    whole = fusion.fuse(parts, method, 5, **settings)
    monkeypatch.setattr(runs, "BLOCK_ROWS", n_rows)
    seen.clear()
    pd.testing.assert_frame_equal(fusion.fuse(parts, method, 5, **settings), whole)
    assert sum(seen) == len(parts[0]) and len(seen) == {1: 15, 40: 4, 100: 2}[n_rows]
    if method == "linear":
        averaged = plain(parts, depth=5, span="mean", **settings)
        pd.testing.assert_frame_equal(fusion.fuse(parts, method, 5, span="mean", **settings), averaged)
