"""A notebook refuses what it was given and does not have; everywhere else nothing is asked."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mirblab.app import hand_runs
from mirblab.core.errors import MirblabError

DECLARED = (
    'word: str = "a"  # a word\nn: int = 1  # a number\nx: float = 0.5  # a share\nmany: list[str] = ["a"]  # words\n'
)


def given(monkeypatch, *cells: str) -> dict:
    monkeypatch.setattr(hand_runs, "_cells", lambda: ["", *cells, "lab.check_parameters()"])
    defaults, values = hand_runs.current_parameters()
    return defaults | values


def test_what_papermill_gave_replaces_the_defaults(monkeypatch):
    """A whole number may stand for a share; code that was run before and later is none of the parameters."""
    cells = ("import os\ny: int = 3", DECLARED, '# Parameters\nword = "b"\nx = 1\nmany = ["b", "c"]\n', "n = 7\nz = 1")
    assert given(monkeypatch, *cells) == {"word": "b", "n": 1, "x": 1, "many": ["b", "c"]}


@pytest.mark.parametrize("text", ["b, c", "b,c,", "['b', 'c']"])
def test_a_list_may_be_typed_as_text(monkeypatch, text):
    """The cell that checks the parameters replaces the text by the list."""
    assert given(monkeypatch, DECLARED, f"# Parameters\nmany = {text!r}\n")["many"] == ["b", "c"]
    shell = SimpleNamespace(user_ns={"many": text})
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.setattr(hand_runs, "_show_warnings_as_notes", lambda: None)
    hand_runs.check_parameters()
    assert shell.user_ns["many"] == ["b", "c"]


def test_names_are_those_of_the_tables(monkeypatch):
    """Otherwise a notebook would look for the values of MRR, which its table calls RR, and find none."""
    cell = 'systems: list[str] = ["BM25", "Own"]  # a\nmeasure: str = "MRR"  # b\ncollection: str = "Mini-QA"  # c\n'
    expected = {"systems": ["bm25", "Own"], "measure": "RR", "collection": "mini-qa"}
    assert given(monkeypatch, cell) == expected
    later = {"systems": ["minilm"], "measure": "nDCG@5", "collection": "mini-qa"}
    assert given(monkeypatch, cell, "# Parameters\nsystems = 'MiniLM'\nmeasure = 'ndcg_cut_5'\n") == later


@pytest.mark.parametrize(
    ("injected", "message"),
    [
        ("wrod = 'b'", r"no parameter 'wrod'; did you mean 'word'\? Known: many, n, word, x"),
        ("n = 'many'", r"the parameter 'n' must be a int, found the str 'many'"),
        ("n = True", "must be a int, found the bool True"),
        ("many = 5", r"the parameter 'many' must be a list, found the int 5"),
        ("many = '[b'", r"the parameter 'many' must be a list, found the str '\[b'"),
        ("many = [1]", "'many' must list values like 'a'"),
        ("x = float('nan')", "must be a float, found the str"),
        ("x = None", "must be a float, found the NoneType None"),
    ],
)
def test_a_wrong_parameter_is_refused(monkeypatch, injected, message):
    """With the nearest name, or with the type."""
    with pytest.raises(MirblabError, match=message):
        given(monkeypatch, DECLARED, f"# Parameters\n{injected}\n")


def test_the_lab_runs_the_cell_of_parameters_again(monkeypatch):
    """What stands there now counts."""
    assert given(monkeypatch, DECLARED, "print(n)", DECLARED.replace("= 1", "= 5"))["n"] == 5


def test_outside_of_a_notebook_nothing_is_asked():
    """In a script, and in an interactive session without a cell of parameters."""
    assert hand_runs.current_parameters() == ({}, {}) and hand_runs.check_parameters() is None
