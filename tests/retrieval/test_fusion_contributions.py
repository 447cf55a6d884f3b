"""Where the first documents of a fusion came from, as a table and as a picture."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mirblab.core.errors import MirblabError
from mirblab.display.plots.queries import fusion_contributions
from mirblab.retrieval import fusion
from mirblab.retrieval.systems import system
from mirblab.sources import catalogue


def a_run(rows: dict[str, list[str]], name: str) -> pd.DataFrame:
    """A run from the documents of each query, best first."""
    flat = [(query, doc, -float(rank)) for query, docs in rows.items() for rank, doc in enumerate(docs)]
    run = pd.DataFrame(flat, columns=["query_id", "doc_id", "score"])
    run.attrs = {"system": name, "collection": "tiny"}
    return run


ONE, TWO = a_run({"q": ["a", "b", "c"], "p": ["z"]}, "structure"), a_run({"q": ["d", "b", "a"]}, "minilm")


def test_each_document_has_its_ranks():
    """Missing where a part does not return it."""
    table = fusion.contributions(fusion.rrf([ONE, TWO]), [ONE, TWO], "q", depth=3)
    assert table.columns.tolist() == ["rank", "doc_id", "structure", "minilm"]
    assert table.doc_id.tolist() == ["a", "b", "d"] and table["rank"].tolist() == [1, 2, 3]
    assert table.structure.tolist()[:2] == [1, 2] and table.structure.isna().tolist() == [False, False, True]
    assert table.minilm.tolist() == [3, 2, 1]


def test_relevance_is_that_of_the_query():
    """Another query's judgement of the same document is not taken; unjudged is missing, not 0."""
    qrels = pd.DataFrame([("q", "a", 2), ("p", "b", 3), ("q", "d", 0)], columns=["query_id", "doc_id", "relevance"])
    table = fusion.contributions(fusion.rrf([ONE, TWO]), [ONE, TWO], "q", qrels=qrels)
    assert dict(zip(table.doc_id, table.relevance.fillna(-1), strict=True)) == {"a": 2, "b": -1, "c": -1, "d": 0}


def test_runs_and_judgements_of_pyterrier_are_understood():
    """Their ranks begin at 0, and the order of their rows does not count."""
    qrels = pd.DataFrame([("q", "a", 2), ("q", "d", 0)], columns=["qid", "docno", "label"])
    theirs = [
        part.rename(columns={"query_id": "qid", "doc_id": "docno"}).assign(rank=range(len(part))) for part in (ONE, TWO)
    ]
    fused = fusion.rrf([ONE, TWO])
    expected = fusion.contributions(
        fused, [ONE, TWO], "q", qrels=qrels.set_axis(["query_id", "doc_id", "relevance"], axis=1)
    )
    of_pyterrier = fused.astype({"query_id": "str"}).rename(columns={"query_id": "qid", "doc_id": "docno"})
    table = fusion.contributions(of_pyterrier.assign(rank=0), theirs, "q", qrels=qrels)
    pd.testing.assert_frame_equal(table, expected)


def test_a_collection_s_system_says_where_its_first_ten_came_from():
    """With the judgements of the collection."""
    c = catalogue.load("mini-qa").sample(3)
    parts = [system(name).search(c) for name in ("bm25", "bm25-mirb")]
    table = fusion.contributions(system("bm25+bm25-mirb").search(c), parts, str(c.query_ids[0]), qrels=c)
    assert len(table) == 10 and table.columns.tolist()[2:] == ["bm25", "bm25-mirb", "relevance"]
    first = parts[0][(parts[0].query_id == c.query_ids[0]) & (parts[0].doc_id == table.doc_id[0])]
    assert table.bm25[0] == first["rank"].item()


def test_two_parts_of_one_name_are_kept_apart():
    """By their place."""
    assert fusion.contributions(fusion.rrf([ONE, ONE]), [ONE, ONE], "q").columns.tolist()[2:] == [
        "structure (1)",
        "structure (2)",
    ]


def test_an_unknown_query_is_an_error():
    """Some that there are stand in it."""
    with pytest.raises(MirblabError, match="no query 'x'; found"):
        fusion.contributions(fusion.rrf([ONE, TWO]), [ONE, TWO], "x")


def values() -> pd.DataFrame:
    rows = [(name, query, value) for name, row in (("a", (0.1, 0.5, 0.5, 0.0)), ("b", (0.6, 0.0, 0.5, 0.0)),
                                                   ("a+b", (0.6, 0.9, 0.4, 0.0)))
            for query, value in zip("pqrs", row, strict=True)]  # fmt: skip
    return pd.DataFrame(rows, columns=["system", "query_id", "value"]).assign(measure="AP", collection="c")


def test_the_biggest_gains_over_each_part():
    """Only gains, largest first, at most so many."""
    table = fusion.biggest_gains(values(), "a+b", ["a", "b"], "AP")
    assert table[["part", "query_id"]].values.tolist() == [["a", "p"], ["a", "q"], ["b", "q"]]
    np.testing.assert_allclose(table.gain, [0.5, 0.4, 0.9])
    np.testing.assert_allclose(table.fused_value - table.part_value, table.gain)
    assert len(fusion.biggest_gains(values(), "a+b", ["a"], "AP", n_queries=1)) == 1


def test_wrong_names_get_suggestions():
    """Systems and measures."""
    with pytest.raises(MirblabError, match="no values of system 'aa'"):
        fusion.biggest_gains(values(), "a+b", ["aa"], "AP")
    with pytest.raises(MirblabError, match="no measure 'PA'"):
        fusion.biggest_gains(values(), "a+b", ["a"], "PA")
    both = pd.concat([values(), values().assign(collection="d")])
    with pytest.raises(MirblabError, match="one collection at a time, found c, d"):
        fusion.biggest_gains(both, "a+b", ["a"], "AP")


def drawn(table: pd.DataFrame, **options: object) -> tuple[dict, list[str]]:
    """Return the points of each run by colour and fill, and the legend."""
    ax = fusion_contributions(table, **options)
    lines = [line for line in ax.lines if len(line.get_xdata()) and line.get_marker() not in ("None", "")]
    points = {(line.get_marker(), line.get_markerfacecolor() == "white", line.get_markersize() < 6):
              line.get_ydata().tolist() for line in lines}  # fmt: skip
    return points, [text.get_text() for text in ax.get_legend().get_texts()]


def test_points_stand_at_their_ranks_and_relevance_is_in_the_marker():
    """Filled, hollow, small; what was not returned lies below every rank."""
    ranks = {"structure": [1, None, 400], "minilm": [5, 2, 3], "relevance": [2, 1, None]}
    table = pd.DataFrame({name: pd.array(found, "Int64") for name, found in ranks.items()})
    table = table.assign(rank=[1, 2, 3], doc_id=list("abc"))
    points, legend = drawn(table, relevant_from=2)
    assert points["o", False, False] == [1] and points["o", False, True] == [400]
    assert points["o", True, False][0] > 400
    assert points["s", False, False] == [5] and points["s", True, False] == [2] and points["s", False, True] == [3]
    assert legend == ["rank in structure", "rank in minilm", "relevant", "judged, not relevant", "not judged"]


def test_the_axes_say_what_they_are():
    """Best on top, the relevance under each rank, and a band for what was not returned."""
    table = pd.DataFrame({"rank": [1, 2], "doc_id": ["a", "b"], "bm25": [1, 7], "relevance": [3, None]})
    ax = fusion_contributions(table)
    low, high = ax.get_ylim()
    assert ax.get_yscale() == "log" and low > high
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1\n3", "2\n–"]
    assert ax.get_yticklabels()[-1].get_text() == "not\nreturned"
    assert "logarithmic" in ax.get_ylabel() and ax.get_xlabel() == "rank in the fusion, and relevance below it"


def test_it_draws_on_the_given_axes_and_refuses_a_table_without_runs():
    """As every plot does."""
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1]
    table = pd.DataFrame({"rank": [1], "doc_id": ["a"], "bm25": [1]})
    assert fusion_contributions(table, ax=ax) is ax
    with pytest.raises(MirblabError, match="no run to show"):
        fusion_contributions(table[["rank", "doc_id"]])
    assert "empty" in fusion_contributions(table[:0][[]]).texts[0].get_text()
