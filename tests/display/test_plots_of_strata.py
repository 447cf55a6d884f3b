"""Panels by kind of topic: one per system, the same axis, bars and intervals where the table says."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd
import pytest

from mirblab.core.errors import MirblabError
from mirblab.display.figures import figure_styles
from mirblab.display.plots.results import strata

NAMES = ["kind", "label", "measure", "system", "mean", "low", "high", "n_queries"]


def table(*systems: str) -> pd.DataFrame:
    """Return five labels of two kinds for each system; a later system is twice as good as the one before."""
    kinds = [("category", "Proof"), ("category", "Concept"), *(("difficulty", name) for name in ("Low", "Mid", "High"))]
    rows = [
        (kind, label, "AP'", system, 0.1 * (place + 1), 0.05, 0.1 * (place + 1) + 0.05, 10 + number)
        for place, system in enumerate(systems)
        for number, (kind, label) in enumerate(kinds)
    ]
    return pd.DataFrame(rows, columns=NAMES)


def test_every_system_has_a_panel_with_the_same_axis():
    """From 0 to a little above the longest interval of all; no two systems share a colour."""
    axes = strata(table("bm25", "minilm", "other"))
    assert [ax.get_title("left") for ax in axes] == ["bm25", "minilm", "other"]
    assert len({ax.get_ylim() for ax in axes}) == 1 and axes[0].get_ylim() == pytest.approx((0, 0.35 * 1.06))
    colours = [matplotlib.colors.to_hex(ax.patches[0].get_facecolor()).upper() for ax in axes]
    assert colours == [figure_styles(["bm25", "minilm", "other"])[name][0] for name in ("bm25", "minilm", "other")]
    assert [ax.get_ylabel() for ax in axes] == ["AP', 0 to 1 (axis: 0 to 0.371),\nhigher is better", "", ""]


def test_bars_stand_in_the_tables_order_in_groups_with_a_gap():
    """With means as heights, intervals on them, and the number of questions behind each label."""
    ax = strata(table("bm25"))
    labels = [text.get_text() for text in ax.get_xticklabels()]
    assert labels == ["Proof (10)", "Concept (11)", "Low (12)", "Mid (13)", "High (14)"]
    assert [bar.get_height() for bar in ax.patches] == pytest.approx([0.1] * 5)
    middles = [bar.get_x() + bar.get_width() / 2 for bar in ax.patches]
    assert [b - a for a, b in zip(middles, middles[1:], strict=False)] == pytest.approx([1, 1.9, 1, 1])
    ends = [tuple(line[:, 1]) for lines in ax.collections for line in lines.get_segments()]
    assert ends == [pytest.approx((0.05, 0.15))] * 5
    assert [text.get_text() for text in ax.texts] == ["category", "difficulty"]


@pytest.mark.parametrize("n_systems", [1, 2, 3, 4, 5])
def test_nothing_leaves_the_page_or_lies_on_something_else(n_systems: int):
    """Titles, names of groups and labels, also with a long name; at most 7.4 inches wide."""
    systems = [f"a-name-of-a-system-that-is-rather-long-{number}" for number in range(n_systems)]
    drawn = strata(table(*systems))
    figure = (drawn if n_systems == 1 else drawn[0]).figure
    figure.canvas.draw()
    assert figure.get_figwidth() <= 7.4
    texts = [text for ax in figure.axes for text in (ax.title, ax._left_title, *ax.texts, *ax.get_xticklabels())]
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    assert len(boxes) == n_systems * 8
    width, height = figure.canvas.get_width_height()
    assert all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height for box in boxes)
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])


def test_it_draws_where_it_is_told():
    """On as many axes as there are systems; an empty table is said to be empty."""
    _, given = plt.subplots(1, 2)
    assert strata(table("bm25", "minilm"), ax=given) == list(given)
    with pytest.raises(MirblabError, match="2 systems need as many axes, found 1"):
        strata(table("bm25", "minilm"), ax=given[0])
    assert "the table is empty" in strata(table()).texts[0].get_text()


def test_one_measure_at_a_time():
    """Means of two measures have no common axis; a missing column is named."""
    both = pd.concat([table("bm25"), table("bm25").assign(measure="RR")])
    with pytest.raises(MirblabError, match="one measure at a time, found AP', RR"):
        strata(both)
    with pytest.raises(MirblabError, match="n_queries"):
        strata(table("bm25").drop(columns="n_queries"))
