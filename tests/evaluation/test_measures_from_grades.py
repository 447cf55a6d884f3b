"""Measures from a grade on: the number is honoured, the name is kept, and nonsense is refused."""

from __future__ import annotations

import pandas as pd
import pytest

from mirblab.core.errors import MirblabError
from mirblab.evaluation import measures
from mirblab.evaluation.measures import evaluate_from_grades

RUN = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b", "c", "d"], "score": [4.0, 3.0, 2.0, 1.0]})
QRELS = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b", "c", "d"], "relevance": [1, 0, 3, 2]})


def test_each_measure_counts_from_its_own_grade():
    """Three of four are relevant from 1, one from 3: precision by hand."""
    found = evaluate_from_grades(RUN, QRELS, ["P@4 from 1", "P@4 from 3", "RR from 2"])
    assert dict(zip(found.measure, found.value, strict=True)) == {
        "P@4 from 1": 0.75, "P@4 from 3": 0.25, "RR from 2": pytest.approx(1 / 3),
    }  # fmt: skip


def test_a_measure_without_a_grade_is_that_of_measures():
    """The same row, and the same columns."""
    pd.testing.assert_frame_equal(
        evaluate_from_grades(RUN, QRELS, ["nDCG'"]).astype({"measure": "str"}),
        measures.evaluate(RUN, QRELS, ["nDCG'"]).astype({"measure": "str"}),
        check_categorical=False,
    )


@pytest.mark.parametrize("name", ["Bpref from", "Bpref from full", "Bpref from -1"])
def test_a_grade_is_a_number(name):
    """Anything else is refused with an example."""
    with pytest.raises(MirblabError, match="Bpref"):
        evaluate_from_grades(RUN, QRELS, [name])


def test_nothing_to_measure_is_an_error():
    """Not an empty table."""
    with pytest.raises(MirblabError, match="nothing to measure"):
        evaluate_from_grades(RUN, QRELS, [])


def test_a_mean_of_measures_is_taken_query_by_query():
    """P@4 from 1 is 3/4 and RR from 3 is 1/3: their mean by hand, one row per query, the usual columns."""
    found = evaluate_from_grades(RUN, QRELS, ["mean of P@4 from 1,RR from 3"])
    assert found.value.tolist() == [pytest.approx((3 / 4 + 1 / 3) / 2)]
    assert found.columns.tolist() == ["system", "collection", "measure", "query_id", "value"]
