"""What the grades of judgements mean: one table, wherever grades are shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mirblab.analysis.one_query import describe_query, query_texts_html
from mirblab.app.explorer.model import Model
from mirblab.app.explorer.panes import static
from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.display import grades
from mirblab.retrieval.systems import system
from mirblab.sources.catalogue import load


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("mini-qa", "arqmath-answers"), ("mirb-arqmath1", "arqmath-answers"),
        ("arqmath-2021-answers", "arqmath-answers"), ("arqmath-2022-answers-open", "arqmath-answers"),
        ("arqmath-2020-task1", "arqmath-answers"), ("arqmath-2020-task2", "arqmath-formulas"),
        ("arqmath-2022-formulas-alone-open", "arqmath-formulas"), ("mini-formula", "arqmath-formulas"),
        ("mini-wfb", ""), ("stacks-qa", ""),
    ],
)  # fmt: skip
def test_a_collection_is_on_the_scale_that_the_registry_names(name: str, scale: str) -> None:
    """Those of ARQMath, and the bundled ones that follow them."""
    assert grades.scale_name(name) == scale


def test_the_table_says_what_each_grade_means_and_where_that_is_from() -> None:
    """Table 1 of the paper: four grades for each task, by its ratings."""
    for name in ("mini-qa", "mini-formula"):
        shown = grades.grade_table(load(name))
        ratings = {"grade 3": "high", "grade 2": "medium", "grade 1": "low", "grade 0": "not relevant"}
        assert shown.frame.rating.to_dict() == ratings
        assert shown.frame.meaning.str.len().gt(20).all() and shown.frame[grades.COUNTS_AS_RELEVANT].tolist() == [
            "yes",
            "yes",
            "no",
            "no",
        ]
        assert "Zanibbi, Mansouri, Agarwal and Oard" in shown.notes[0] and "Table 1" in shown.notes[0]
    assert len(grades.grade_scales_table().frame) == 8


def test_grades_without_a_scale_stand_alone() -> None:
    """Nothing is made up for them."""
    shown = grades.grade_table(load("mini-wfb"))
    assert "meaning" not in shown.frame and "not in registry/scales.toml" in shown.caption


def test_a_grade_beyond_the_scale_has_no_meaning(make_folder: Callable[..., Path]) -> None:
    """It is shown all the same."""
    odd = load_folder(make_folder(qrels="q1\td1\t4\n", card='name = "mini-qa"\n', name="mini-qa"))
    assert grades.grade_table(odd).frame.meaning.to_dict()["grade 4"] == "–" and grades.grade_meaning(odd, 4) == ""


def test_a_broken_scale_is_refused_by_name(own: Callable[..., Path]) -> None:
    """With the file, and what it needs."""
    entry = '[own]\nlabel = "x"\nsource = "y"\ncollections = ["c"]\nratings = ["no", "yes"]\nmeanings = ["none"]\n'
    own("scales", entry)
    with pytest.raises(MirblabError, match=r"scales\.toml.*'own' has 2 ratings and 1 meanings"):
        grades.scale_meanings("own")


def test_grades_are_explained_where_they_are_shown() -> None:
    """In the explorer, and above the texts of one query."""
    c = load("mini-qa")
    one = describe_query(c, c.query_ids[0], [system("bm25").search(c)])
    assert "grade 3 (high: " in query_texts_html(one, [one.answer()]).data
    page = static(Model(c, ["bm25"]).ask("", c.query_ids[0]))
    assert 'title="high: ' in page
