"""Differences and settings as pictures: one panel per collection, what is told apart is filled."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from mirblab.core.errors import MirblabError
from mirblab.display.plots.results import curve, effects

NAMES = ["collection", "measure", "system_a", "system_b", "difference", "low", "high", "significant"]
ROWS = [
    (name, "RR", f"without {kind}", "all", change, change - 0.1, change + 0.1, abs(change) > 0.1)
    for name in ("one", "two")
    for kind, change in (("pair", -0.2), ("symbol", 0.05))
]
TABLE = pd.DataFrame(ROWS, columns=NAMES)
POINTS = pd.DataFrame({"collection": "one", "measure": "RR", "w": [0.9, 0.1], "value": [0.6, 0.4]})


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close every figure."""
    yield
    plt.close("all")


def test_every_collection_has_a_panel_with_its_rows():
    """In the order of the table; the rows' names stand once."""
    axes = effects(TABLE)
    assert [ax.get_title("left") for ax in axes] == ["one", "two"]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["without pair", "without symbol"]


def test_only_what_is_told_apart_is_filled():
    """The other dots are white."""
    dots = [line for line in effects(TABLE)[0].lines if line.get_marker() == "o"]
    assert [dot.get_markerfacecolor() == "white" for dot in dots] == [False, True]
    assert [dot.get_xdata()[0] for dot in dots] == [-0.2, 0.05]


def test_a_curve_is_sorted_and_has_its_held_out_line():
    """A line from left to right, and a dashed one at the held-out value."""
    line, dashed = curve(POINTS.assign(held_out=0.55), x="w")[0].lines
    assert line.get_xdata().tolist() == [0.1, 0.9] and line.get_ydata().tolist() == [0.4, 0.6]
    assert dashed.get_linestyle() == "--" and set(dashed.get_ydata()) == {0.55}


def test_without_held_out_there_is_one_line():
    """And the ticks of a logarithmic axis are the settings."""
    (ax,) = curve(POINTS, x="w", log=True)
    assert len(ax.lines) == 1 and ax.get_xscale() == "log"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.1", "0.9"]


def test_it_draws_on_given_axes():
    """As many as there are collections, else an error that counts both."""
    _, both = plt.subplots(1, 2)
    assert effects(TABLE, ax=both) == list(both)
    with pytest.raises(MirblabError, match="2 collections need as many axes, found 1"):
        effects(TABLE, ax=both[0])


def test_wrong_tables_are_refused():
    """A column that is missing, and a table without rows."""
    with pytest.raises(MirblabError, match="high"):
        effects(TABLE.drop(columns="high"))
    with pytest.raises(MirblabError, match="empty"):
        curve(POINTS[:0], x="w")
