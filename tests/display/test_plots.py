"""Plots draw on the axes they are given, label them, and are written the same way every time."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from seaborn.utils import relative_luminance

from mirblab.core.errors import MirblabError
from mirblab.display import figures, plots
from mirblab.display.plots import queries
from mirblab.formula.latex.parser import parse_latex

INTERVALS = pd.DataFrame({
    "collection": "c1", "measure": "nDCG@10", "system": ["bm25", "my$sys_1"], "mean": [0.5, 0.6], "low": [0.4, 0.5],
    "high": [0.6, 0.7], "n_queries": 1200,
})  # fmt: skip
MATRIX = pd.DataFrame({"bm25": [0.5, 0.2, 0.3, 0.0], "minilm": [0.1, 0.2, 0.9, 0.5]}, index=list("abcd"))
DEPTHS = pd.DataFrame({
    "depth": [10, 100], "system": "bm25>maxsim", "value": [0.3, 0.4], "ceiling": [0.5, 0.8], "first_stage": 0.25,
})  # fmt: skip
COMPARISON = pd.DataFrame({
    "collection": "c1", "system_a": ["a", "a", "b"], "system_b": ["b", "c", "c"], "difference": [0.1, -0.2, 0.0],
    "p_holm": [0.0004, 0.03, 1.0], "significant": [True, True, False],
})  # fmt: skip
POINTS = pd.DataFrame({
    "id": list("abcde"), "x": [0, 1, 5, 6, 2], "y": [0, 1, 5, 6, 2], "class_id": ["k", "k", "l", "l", "k"],
    "field": ["algebra", "topology"] * 2 + ["algebra"], "kind": ["equivalent"] * 4 + ["distractor"],
})  # fmt: skip
COUNTS = pd.DataFrame({"collection": ["c1", "c2"], "documents": [1350505, 10]})
EFFECT_COLUMNS = ["collection", "measure", "system_a", "system_b", "difference", "low", "high", "significant"]
EFFECTS = pd.DataFrame(
    [
        (name, "RR", f"without {kind}", "all", change, change - 0.1, change + 0.1, abs(change) > 0.1)
        for name in ("one", "two")
        for kind, change in (("pair", -0.2), ("symbol", 0.05))
    ],
    columns=EFFECT_COLUMNS,
)
SETTINGS = pd.DataFrame({"collection": "one", "measure": "RR", "w": [0.9, 0.1], "value": [0.6, 0.4]})
MOVED = pd.DataFrame({"doc_id": ["a", "b"], "rank_a": [1, 14], "rank_b": [2, 1], "relevance": [1, None]})
JUDGED = pd.DataFrame({
    "doc_id": ["d", "e"], "grade": [1, 0], "is_relevant": [True, False], "bm25": [1.0, 3.0], "minilm": [np.nan, 2.0],
})  # fmt: skip
OUTCOMES = pd.DataFrame({
    "query_id": ["q1", "q2"], "winner": [1.0, 0.2], "loser": [0.5, 0.4], "difference": [0.5, -0.2],
})  # fmt: skip
TOKENS = pd.DataFrame([[0.2, 0.9]], index=["ring"], columns=["a", "ring"])
FUSED = pd.DataFrame({"rank": [1, 2], "doc_id": ["a", "b"], "bm25": [2, 7], "minilm": [1, None]})
FEATURES = pd.DataFrame({"feature": ["word_count"], "chance": 0.7, "low": 0.6, "high": 0.8, "differs": False})
HIDDEN = pd.DataFrame({"system": "bm25", "hidden": [0.0, 0.5], "seed": 0, "value": [1.0, 0.9]})

DRAWN: list[tuple[Callable[..., plt.Axes], pd.DataFrame, dict[str, str]]] = [
    (plots.means, INTERVALS, {}),
    (plots.differences, MATRIX, {"measure": "RR"}),
    (plots.depth_curve, DEPTHS, {"measure": "RR"}),
    (plots.heatmap, MATRIX, {"measure": "RR"}),
    (plots.p_values, COMPARISON, {}),
    (plots.map, POINTS, {}),
    (plots.bars, COUNTS, {}),
    (plots.value_scatter, MATRIX, {}),
    (plots.rank_changes, MOVED.convert_dtypes(), {}),
    (plots.ranks, JUDGED, {}),
    (plots.paired_values, OUTCOMES, {}),
    (plots.token_matches, TOKENS, {}),
    (plots.fusion_contributions, FUSED, {}),
    (plots.group_contrasts, FEATURES, {}),
    (plots.decay, HIDDEN, {}),
    (plots.tree, parse_latex("x^2+1").table(), {"title": "the layout tree of a formula"}),
]
EACH = pytest.mark.parametrize(("draw", "table", "options"), DRAWN, ids=[draw.__name__ for draw, *_ in DRAWN])

LOG = pd.DataFrame({
    "system": ["a"] * 3 + ["b"] * 3, "step": [0, 1, 2] * 2, "loss": [np.nan, 2.0, 1.0, np.nan, 3.0, 2.0],
    "smoothed": [np.nan, 2.0, 1.5, np.nan, 3.0, 2.5], "R@1": [0.1, np.nan, 0.3, 0.2, np.nan, 0.4],
})  # fmt: skip
LEADS = pd.DataFrame(
    [
        ("set.mm", "2015-01-01", "RR", "m", "bm25", 0.3, 0.2, 0.4),
        ("set.mm", "2014-01-01", "RR", "m", "bm25", 0.1, 0.0, 0.2),
        ("set.mm", "2014-01-01", "RR", "n", "bm25", -0.1, -0.3, 0.1),
        ("mathlib", "2020-02-01", "RR", "m", "bm25", 0.2, 0.1, 0.3),
    ],
    columns=["library", "at", "measure", "system_a", "system_b", "difference", "low", "high"],
)
CALIBRATION = pd.DataFrame({
    "collection": ["one", "two"], "system": "bm25", "score": 0.85, "n": 20, "share": 0.5, "low": 0.2, "high": 0.8,
})  # fmt: skip
STRATA = INTERVALS.assign(kind="difficulty", label="Low")
OVERLAPS = pd.DataFrame({"system": ["s", "s", "t", "t"], "rank": [1, 90, 2, 8], "overlap": [0.5, 0.1, 0.4, 0.2]})
RHO = pd.DataFrame({"system": ["s", "t"], "share": "overlap", "rho": -0.5, "low": -0.7, "high": 0.1})

# Each with two panels.
IN_PANELS: list[tuple[Callable[..., plt.Axes | list[plt.Axes]], pd.DataFrame, dict[str, Any]]] = [
    (plots.curve, pd.concat([SETTINGS, SETTINGS.assign(collection="two")]), {"x": "w"}),
    (plots.effects, EFFECTS, {}),
    (plots.reliability, CALIBRATION, {}),
    (plots.periods, LEADS, {}),
    (plots.strata, STRATA, {}),
    (plots.overlap, OVERLAPS, {"correlations": RHO}),
    (plots.learning, LOG, {}),
]
PANELS = pytest.mark.parametrize(("draw", "table", "options"), IN_PANELS, ids=[draw.__name__ for draw, *_ in IN_PANELS])


def words(ax: plt.Axes) -> str:
    """Return everything that is written on an axes."""
    labels = [ax.get_title(loc) for loc in ("left", "center")] + [ax.get_xlabel(), ax.get_ylabel()]
    legend = ax.get_legend()
    return " | ".join([*labels, *(text.get_text() for text in ax.texts),
                       *(label.get_text() for label in ax.get_yticklabels() + ax.get_xticklabels()),
                       *(text.get_text() for text in (legend.get_texts() if legend else []))])  # fmt: skip


@EACH
def test_the_given_axes_come_back_labelled(draw: Callable, table: pd.DataFrame, options: dict[str, str]) -> None:
    """No figure is opened beside the given one, the table is left as it was, and the axes carry words."""
    before = table.copy()
    figure, ax = plt.subplots()
    assert draw(table, ax=ax, **options) is ax
    assert plt.get_fignums() == [figure.number]
    assert ax.has_data()
    assert len(words(ax)) > 20
    pd.testing.assert_frame_equal(table, before)


@EACH
def test_nothing_is_drawn_when_nothing_is_given(draw: Callable, table: pd.DataFrame, options: dict[str, str]) -> None:
    """An empty table gives a sentence and no ink else, on given axes and on new ones."""
    for given in ({}, {"ax": plt.subplots()[1]}):
        ax = draw(table.iloc[:0], **given, **options)
        assert not ax.has_data()
        assert [text.get_text() for text in ax.texts] == ["Nothing to show: the table is empty."]
        assert not ax.axison


@PANELS
def test_the_given_panels_come_back_labelled(draw: Callable, table: pd.DataFrame, options: dict[str, Any]) -> None:
    """No figure is opened beside the given one, the table is left as it was, and each panel carries words."""
    before = table.copy()
    figure, axes = plt.subplots(1, 2)
    assert draw(table, ax=list(axes), **options) == list(axes)
    assert plt.get_fignums() == [figure.number]
    assert all(ax.has_data() and len(words(ax)) > 20 for ax in axes)
    pd.testing.assert_frame_equal(table, before)


@PANELS
def test_nothing_is_drawn_in_panels_when_nothing_is_given(
    draw: Callable, table: pd.DataFrame, options: dict[str, Any]
) -> None:
    """An empty table gives a sentence and no ink else, on given axes and on new ones."""
    for given in ({}, {"ax": plt.subplots()[1]}):
        (ax,) = np.atleast_1d(draw(table.iloc[:0], **given, **options))
        assert not ax.has_data()
        assert [text.get_text() for text in ax.texts] == ["Nothing to show: the table is empty."]
        assert not ax.axison


def test_learning_shows_smoothed_losses_and_what_was_reached() -> None:
    """Single steps are dots; each model has one line in both panels, from 0 on; one model needs no legend."""
    loss, reached = plots.learning(LOG)
    assert [line.get_xydata().tolist() for line in loss.lines] == [
        [[1, 2.0], [2, 1.0]], [[1, 2.0], [2, 1.5]], [[1, 3.0], [2, 2.0]], [[1, 3.0], [2, 2.5]],
    ]  # fmt: skip
    assert [line.get_marker() for line in loss.lines] == [".", "None"] * 2
    assert [line.get_xydata().tolist() for line in reached.lines] == [[[0, 0.1], [2, 0.3]], [[0, 0.2], [2, 0.4]]]
    assert [line.get_color() for line in loss.lines[1::2]] == [line.get_color() for line in reached.lines]
    assert [text.get_text() for text in loss.figure.legends[0].get_texts()] == ["a", "b"]
    assert "held-out R@1, 0 to 1, higher is better" in reached.get_ylabel().replace("\n", " ")
    assert loss.get_ylim()[0] == reached.get_ylim()[0] == 0
    assert plots.learning(LOG[LOG.system == "a"].drop(columns="system"))[0].figure.legends == []
    with pytest.raises(MirblabError, match="no column 'RR'"):
        plots.learning(LOG, measure="RR")


def test_periods_stand_in_the_order_of_their_days() -> None:
    """One panel for each library; systems stand side by side, each difference with its interval."""
    first, second = plots.periods(LEADS)
    assert [panel.get_title("left") for panel in (first, second)] == ["set.mm", "mathlib"]
    assert [label.get_text() for label in first.get_xticklabels()] == ["2014-01-01", "2015-01-01"]
    of_m, of_n, zero = first.lines
    np.testing.assert_allclose(of_m.get_xydata(), [[-0.08, 0.1], [0.92, 0.3]])
    np.testing.assert_allclose(of_n.get_xydata(), [[0.08, -0.1]])
    assert set(zero.get_ydata()) == {0}
    ends = [segment.tolist() for intervals in first.collections for segment in intervals.get_segments()]
    np.testing.assert_allclose(
        ends, [[[-0.08, 0.0], [-0.08, 0.2]], [[0.92, 0.2], [0.92, 0.4]], [[0.08, -0.3], [0.08, 0.1]]]
    )
    assert first.get_ylabel() == "difference in RR\nfrom bm25, −1 to 1"
    assert [text.get_text() for text in first.figure.legends[0].get_texts()] == ["m", "n"]
    with pytest.raises(MirblabError, match="2 collections need as many axes, found 1"):
        plots.periods(LEADS, ax=plt.subplots()[1])


@pytest.mark.parametrize("draw", [plots.means, plots.depth_curve, plots.heatmap])
def test_axes_carry_measure_range_and_direction(draw: Callable) -> None:
    """ "RR, 0 to 1, higher is better" stands at an axis or at the colour bar."""
    tables = {plots.means: INTERVALS.assign(measure="RR"), plots.depth_curve: DEPTHS, plots.heatmap: MATRIX}
    options = {} if draw is plots.means else {"measure": "RR"}
    ax = draw(tables[draw], **options)
    everything = " ".join(words(one) for one in ax.figure.axes).replace("\n", " ")
    assert "RR, 0 to 1, higher is better" in everything


def test_differences_count_better_equal_and_worse() -> None:
    """minilm against bm25: two better, one equal, one worse; gains stand first."""
    ax = plots.differences(MATRIX, system_a="minilm", system_b="bm25", measure="RR")
    assert ax.get_title("left") == "minilm: better on 2, equal on 1, worse on 1 query"
    gains = ax.patches[0].get_data().values
    np.testing.assert_allclose(gains, [0.6, 0.5, 0.0, 0.0])
    with pytest.raises(MirblabError, match="no column 'minlm'"):
        plots.differences(MATRIX, system_a="minlm", system_b="bm25")


def test_means_have_one_panel_per_collection() -> None:
    """Two collections take two axes, with their number of queries; another number of axes is refused."""
    both = pd.concat([INTERVALS, INTERVALS.assign(collection="c2", n_queries=7)])
    axes = plots.means(both)
    assert [ax.get_title("left") for ax in axes] == ["c1 (1,200 queries)", "c2 (7 queries)"]
    given = list(plt.subplots(1, 2)[1])
    assert plots.means(both, ax=given) == given
    with pytest.raises(MirblabError, match="2 collections need as many axes, found 1"):
        plots.means(both, ax=given[0])


def test_titles_of_three_panels_do_not_overlap() -> None:
    """Three panels side by side are so narrow that the number of queries stands below a collection's name."""
    names = ["arqmath-2020-task2", "arqmath-2021-task2", "ntcir12-wfb"]
    systems = INTERVALS.assign(system=[f"structure+minilm+bm25 {row}" for row in range(len(INTERVALS))])
    axes = plots.means(pd.concat([systems.assign(collection=name, n_queries=45) for name in names]))
    axes[0].figure.canvas.draw()
    boxes = [ax._left_title.get_window_extent() for ax in axes]
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_means_say_what_was_counted_and_show_chance() -> None:
    """A dotted line at the value of a random order, within the axis even where every system is below it."""
    ax = plots.means(INTERVALS, unit="pairs", chance=0.97)
    assert ax.get_title("left") == "c1 (1,200 pairs)"
    assert [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"] == [0.97]
    assert ax.get_xlim()[1] > 0.97 and [text.get_text() for text in ax.texts] == ["chance"]
    last = max(line.get_ydata()[0] for line in ax.lines if line.get_linestyle() != ":")
    assert ax.get_ylim()[0] >= last + 0.9  # the word stands in a row of its own, below the last interval
    both = pd.concat([INTERVALS, INTERVALS.assign(collection="c2")])
    lines = [[line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"]
             for ax in plots.means(both, chance={"c2": 0.3})]  # fmt: skip
    assert lines == [[], [0.3]]


def test_the_depth_curve_shows_ceiling_and_first_stage() -> None:
    """Three lines in the system's colour: values, dashed ceiling, dotted first stage; the legend explains each once."""
    ax = plots.depth_curve(DEPTHS)
    drawn = [line for line in ax.lines if len(line.get_xdata())]
    assert [line.get_linestyle() for line in drawn] == ["-", "--", ":"]
    assert {line.get_color() for line in drawn} == {figures.system_style("bm25>maxsim")[0]}
    assert ax.get_legend_handles_labels()[1] == ["bm25>maxsim", "ceiling: perfectly ordered", "without reranking"]
    assert len(plots.depth_curve(DEPTHS[["depth", "system", "value"]]).lines) == 1
    ax = plots.depth_curve(pd.DataFrame({"depth": [10, 100], "system": "s", "value": [0.8, 0.9]}), measure="RR")
    assert ax.get_ylim()[0] == 0.8 and "(axis: 0.8 to 1)" in ax.get_ylabel()
    starts = {0.49: 0, 0.707: 0.7, 1.0: 0.9}
    tables = {low: pd.DataFrame({"depth": [10, 100], "system": "s", "value": [low, 1.0]}) for low in starts}
    assert {low: plots.depth_curve(table).get_ylim()[0] for low, table in tables.items()} == starts


def test_markers_at_the_top_of_the_axis_are_drawn_whole() -> None:
    """A value of 1 is so near to the top that its marker would be cut there."""
    for ax in (plots.decay(HIDDEN), plots.depth_curve(DEPTHS.assign(value=1.0))):
        marked = [line for line in ax.lines if line.get_marker() != "None"]
        assert [line.get_clip_on() for line in marked] == [False]


def test_p_values_fill_the_upper_triangle() -> None:
    """Rows a, b against columns b, c; bold where significant; several collections are refused."""
    ax = plots.p_values(COMPARISON)
    assert [(text.get_text(), text.get_weight()) for text in ax.texts] == [
        ("↑ <.001", "bold"), ("↓ .030", "bold"), ("= 1.000", "normal"),
    ]  # fmt: skip
    assert ax.collections[0].get_array().mask.tolist() == [[False, False], [True, False]]
    assert ax.get_title("left").endswith("bold: significant")
    of_level = COMPARISON.copy()
    of_level.attrs = {"alpha": 0.01}
    assert plots.p_values(of_level).get_title("left").endswith("bold: p ≤ 0.01")
    with pytest.raises(MirblabError, match="one collection at a time, found c1, c2"):
        plots.p_values(pd.concat([COMPARISON, COMPARISON.assign(collection="c2")]))


def test_a_system_looks_the_same_everywhere() -> None:
    """Looks depend on the name alone; known systems differ in colour or marker; case does not count."""
    assert figures.system_style("bm25") == ("#0072B2", "o")
    assert len({figures.system_style(name) for name in figures._KNOWN}) == len(figures._KNOWN)
    assert len({figures.system_style(name)[1] for name in ("bm25", "minilm", "ngram", "structure")}) == 4
    together = figures.figure_styles(["bm25", "minilm", "bm25+minilm", "structure", "chargrams"])
    assert together["chargrams"] == figures.system_style("chargrams") != together["structure"]
    assert figures.system_style("Voyage-3-Large") == figures.system_style("voyage-3-large")
    colours = [figures.system_style(name)[0] for name in ("bm25", "minilm", "bm25+minilm", "hybrid")]
    assert len(set(colours)) == len(colours)
    mine = figures.system_style("my own")
    assert mine[0] == figures.PALETTE[zlib.crc32(b"my own") % len(figures.PALETTE)]
    assert plots.means(INTERVALS).lines[0].get_color() == figures.system_style("bm25")[0]


def test_two_systems_of_one_figure_have_different_colours() -> None:
    """Also those that share a colour elsewhere: the longer known one keeps it; with too many systems colours recur."""
    alike = ["structure+minilm+bm25", "minilm", "mixed", "bm25"]
    styles = figures.figure_styles(alike)
    assert len({figures.system_style(name)[0] for name in alike}) == 2 < len({colour for colour, _ in styles.values()})
    assert len({colour for colour, _ in styles.values()}) == len(alike)
    assert styles["minilm"] == figures.system_style("minilm") and styles["bm25"] == figures.system_style("bm25")
    assert len(set(figures.figure_styles(figures._KNOWN).values())) == len(figures._KNOWN)
    ax = plots.differences(pd.DataFrame({"approach0+minilm": [0.9, 0.1], "approach0": [0.4, 0.3]}))
    assert len({to_rgb(patch.get_facecolor()) for patch in ax.patches}) == 2


def test_eight_systems_have_eight_colours_and_twenty_differ_in_colour_or_marker() -> None:
    """Those of notebook 20, two of which were black; seven keep their colours."""
    names = ["bm25", "ngram", "minilm", "structure", "approach0", "structure+minilm", "structure+minilm+bm25"]
    before, after = figures.figure_styles(names), figures.figure_styles([*names, "structure>maxsim@20"])
    assert len({colour for colour, _ in after.values()}) == 8
    assert {name: after[name] for name in names} == before
    many = [f"own {number}" for number in range(20)]
    assert len(set(figures.figure_styles(many).values())) == 20


def test_axes_of_ranks_and_of_shares_say_what_they_show() -> None:
    """A lower rank is better, and the residual of RBP is no quality; no mean rank is outside of its axis."""
    assert figures.value_axis_label("Rank") == "Rank, from 1, lower is better"
    assert figures.value_axis_label("RBPresidual(p=0.8)") == "RBPresidual(p=0.8), 0 to 1"
    ranks = INTERVALS[INTERVALS.measure == INTERVALS.measure.iloc[0]].assign(measure="Rank", mean=20, low=9, high=30)
    ax = np.ravel(plots.means(ranks))[0]
    assert ax.get_xlim()[1] > 30


def test_colours_stand_out_from_white() -> None:
    """No yellow: every colour has a contrast of at least 2 to the ground (WCAG's formula)."""

    def luminance(colour: str) -> float:
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        return float(np.dot([0.2126, 0.7152, 0.0722], parts))

    colours = (*figures.PALETTE, *figures._MORE_COLOURS, figures.GREY)
    assert min(1.05 / (luminance(colour) + 0.05) for colour in colours) > 2


@EACH
def test_files_are_the_same_twice_and_hold_no_type_3_font(
    draw: Callable, table: pd.DataFrame, options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PDF, PNG, SVG, JSON and CSV appear, byte-identical in two runs, with TrueType fonts."""
    monkeypatch.setattr(figures, "_DPI", 60)
    said = {"provenance": {"seed": 1}, "caption": "A caption.", "alt": "An alternative text."}
    for run in ("one", "two"):
        figures.save_figure(draw(table, **options), tmp_path / run, "figure", table=table, **said)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["figure.csv", "figure.json", "figure.pdf", "figure.png", "figure.svg"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    written = (tmp_path / "one" / "figure.pdf").read_bytes()
    assert b"/Type3" not in written
    assert b"/FontFile2" in written


def test_the_ground_is_opaque_so_that_a_dark_theme_does_not_shine_through(tmp_path: Path) -> None:
    """The PNG's corner is white and opaque even where the user's own settings say transparent."""
    with matplotlib.rc_context({"savefig.transparent": True, "figure.facecolor": "none"}):
        figures.save_figure(plots.bars(COUNTS), tmp_path, "f", provenance={}, caption="c", alt="a", table=COUNTS)
    assert plt.imread(tmp_path / "f.png")[0, 0].tolist() == [1, 1, 1, 1]


def test_row_numbers_of_a_selection_are_no_column(tmp_path: Path) -> None:
    """Names of rows are one."""
    said = {"provenance": {}, "caption": "c", "alt": "a"}
    figures.save_figure(plots.bars(COUNTS), tmp_path, "few", table=COUNTS[1:], **said)
    named = COUNTS.set_axis([f"row {n}" for n in range(len(COUNTS))])
    figures.save_figure(plots.bars(COUNTS), tmp_path, "named", table=named, **said)
    assert (tmp_path / "few.csv").read_text().startswith("collection,documents\n")
    assert (tmp_path / "named.csv").read_text().startswith(",collection,documents\nrow 0,")


def test_the_record_and_the_numbers_are_beside_the_figure(tmp_path: Path) -> None:
    """The JSON has provenance, caption and alt; the CSV the numbers; the figure is closed; the display has alt."""
    drawn = plots.heatmap(MATRIX)
    shown = figures.save_figure(drawn, tmp_path / "new", "f", provenance={"commit": "abc"}, table=MATRIX,
                              caption="Means & more.", alt='Two "systems".')  # fmt: skip
    record = json.loads((tmp_path / "new" / "f.json").read_text("utf-8"))
    assert record == {"name": "f", "caption": "Means & more.", "alt": 'Two "systems".', "provenance": {"commit": "abc"}}
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "new" / "f.csv", index_col=0), MATRIX)
    assert plt.get_fignums() == []
    assert 'alt="Two &quot;systems&quot;."' in shown.data
    assert "<figcaption>Means &amp; more.</figcaption>" in shown.data
    assert 'src="data:image/png;base64,' in shown.data


def test_a_figure_without_caption_or_alt_text_is_refused(tmp_path: Path) -> None:
    """Nothing is written then."""
    with pytest.raises(MirblabError, match="figure f has no alt text"):
        figures.save_figure(plots.bars(COUNTS), tmp_path, "f", provenance={}, caption="c", alt=" ")
    with pytest.raises(MirblabError, match="figure f has no caption"):
        figures.save_figure(plots.bars(COUNTS), tmp_path, "f", provenance={}, caption="", alt="a")
    assert list(tmp_path.iterdir()) == []


def test_show_takes_a_figure_one_axes_or_several() -> None:
    """All three find the figure, close it, and keep the alt text."""
    both = plots.means(pd.concat([INTERVALS, INTERVALS.assign(collection="c2")]))
    for drawn in (both, plots.bars(COUNTS), plots.bars(COUNTS).figure):
        assert 'alt="what it shows"' in figures.show_figure(drawn, "what it shows", "caption").data
    assert plt.get_fignums() == []


def test_the_style_ends_with_its_context() -> None:
    """Drawing leaves the user's settings alone."""
    before = dict(matplotlib.rcParams)
    plots.bars(COUNTS)
    assert dict(matplotlib.rcParams) == before


def test_dollars_and_underscores_are_plain_characters() -> None:
    """A system called my$sys_1 is written as it is."""
    assert "my$sys_1" in words(plots.means(INTERVALS))
    figures.show_figure(plots.means(INTERVALS.assign(system=["$a_$", "$\\nonsense{$"])), "alt", "caption")


def test_names_of_bars_are_formulas_where_it_is_said() -> None:
    """A dollar is a dollar elsewhere."""
    counts = pd.DataFrame({"formula": ["$x^2$ (equal)"], "score": [3]})
    for maths in (True, False):
        label = plots.bars(counts, maths=maths).get_yticklabels()[0]
        assert label.get_parse_math() is maths and label.get_text() == "$x^2$ (equal)"


def test_a_logarithmic_axis_of_bars_ends_at_powers_of_ten() -> None:
    assert plots.bars(COUNTS, log=True).get_xlim() == (10, 10_000_000)
    assert plots.bars(COUNTS.assign(documents=[880, 0]), log=True).get_xlim() == (1, 1000)


def test_effects_have_a_panel_for_every_collection():
    """In the order of the table; the rows' names stand once."""
    axes = plots.effects(EFFECTS)
    assert [ax.get_title("left") for ax in axes] == ["one", "two"]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["without pair", "without symbol"]


def test_effects_are_filled_where_significant():
    """The other dots are white, which the figure says; panels of one measure have one scale."""
    figure = plots.effects(EFFECTS)[0].figure
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["significant", "not significant"]
    assert len({ax.get_xlim() for ax in figure.axes}) == 1
    dots = [line for line in plots.effects(EFFECTS)[0].lines if line.get_marker() == "o"]
    low, high = figure.axes[0].get_xlim()
    assert sum(low <= tick <= high for tick in figure.axes[0].get_xticks()) >= 3
    assert [dot.get_markerfacecolor() == "white" for dot in dots] == [False, True]
    assert [dot.get_xdata()[0] for dot in dots] == [-0.2, 0.05]


def test_a_curve_is_sorted_and_has_its_held_out_line():
    """A line from left to right, and a dashed one at the held-out value, which has no system's colour."""
    line, dashed = plots.curve(SETTINGS.assign(held_out=0.55), x="w")[0].lines
    assert line.get_xdata().tolist() == [0.1, 0.9] and line.get_ydata().tolist() == [0.4, 0.6]
    assert dashed.get_linestyle() == "--" and set(dashed.get_ydata()) == {0.55}
    assert dashed.get_color() == figures.GREY


def test_a_curve_without_held_out_values_has_one_line():
    """And no legend."""
    (ax,) = plots.curve(SETTINGS, x="w")
    assert len(ax.lines) == 1 and ax.get_legend() is None


def test_effects_are_drawn_on_given_axes():
    """As many as there are collections, else an error that counts both."""
    _, both = plt.subplots(1, 2)
    assert plots.effects(EFFECTS, ax=both) == list(both)
    with pytest.raises(MirblabError, match="2 collections need as many axes, found 1"):
        plots.effects(EFFECTS, ax=both[0])


def test_effects_refuse_a_table_without_a_column():
    """Which is named."""
    with pytest.raises(MirblabError, match="no column 'high'"):
        plots.effects(EFFECTS.drop(columns="high"))


def test_many_collections_are_rows_with_one_panel_for_each_system():
    """All changes of a measure stand on one scale, whose label is written once, as the title of the legend."""
    many = pd.concat([EFFECTS[EFFECTS.collection == "one"].assign(collection=f"c{n}") for n in range(5)])
    axes = plots.effects(many)
    assert [ax.get_title("left") for ax in axes] == ["without pair", "without symbol"]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == [f"c{n}" for n in range(5)]
    dots = [[line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"] for ax in axes]
    assert dots == [[-0.2] * 5, [0.05] * 5]
    assert len({ax.get_xlim() for ax in axes}) == 1 and {ax.get_xlabel() for ax in axes} == {""}
    assert axes[0].figure.legends[0].get_title().get_text() == "change of RR, −1 to 1, right of 0: better"
    two = plots.effects(many.assign(measure=["RR"] * 6 + ["AP"] * 4))
    assert len(two) == 5 and len({ax.get_xlabel() for ax in two}) == 2  # of two measures, which share no scale


@pytest.mark.parametrize(
    ("column", "words_of_it"),
    [("p_holm", " after Holm's correction"), ("p_bh", " after Benjamini and Hochberg's correction"),
     ("p_bonferroni", " after Bonferroni's correction"), ("p", " without correction")],
)  # fmt: skip
def test_a_hollow_dot_whose_interval_excludes_zero_is_explained(column: str, words_of_it: str):
    """Only where there is one, and the legend names the correction; a feature's middle is a half."""
    table = EFFECTS.assign(**{column: 0.2}, significant=False)
    odd, even = (plots.effects(part)[0].figure.legends[0].get_texts() for part in (table, table[table.low < 0][1::2]))
    why = "; an interval, which is not corrected,\nmay exclude 0 all the same"
    assert odd[0].get_text() == f"significant{words_of_it}"
    assert odd[1].get_text() == f"not significant{words_of_it}{why}"
    assert even[1].get_text() == f"not significant{words_of_it}"
    of_one = plots.effects(table.assign(p=0.2))[0].figure.legends[0].get_texts()[0]
    assert of_one.get_text() == ("significant" if column != "p" else f"significant{words_of_it}")
    ax = plots.group_contrasts(FEATURES)
    assert ax.get_yticklabels()[0].get_text() == "word count"
    assert "may exclude 0.5" in ax.figure.legends[0].get_texts()[1].get_text()


def test_an_axis_that_is_cut_says_so():
    """Small values are not drawn on the whole range; larger ones are; several panels have one label."""
    small = plots.means(INTERVALS.assign(mean=0.02, low=0.01, high=0.03))
    assert small.get_xlim() == (0, 0.05)
    assert small.get_xlabel() == "nDCG@10, 0 to 1 (axis: 0 to 0.05), higher is better"
    assert plots.means(INTERVALS).get_xlim() == (0, 1)
    (ax,) = plots.curve(SETTINGS, x="w")
    assert "(axis: 0.39 to 0.61)" in ax.get_ylabel().replace("\n", " ")
    both = plots.means(pd.concat([INTERVALS, INTERVALS.assign(collection="c2")]))
    assert {ax.get_xlabel() for ax in both} == {""}
    assert both[0].figure.get_supxlabel() == "nDCG@10, 0 to 1, higher is better"
    assert figures.value_axis_label("Judged@10") == "Judged@10, 0 to 1"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (r"Let $x_1 \in \mathbb{R}$ be", r"Let $x_1 \in \mathbb{R}$ be"),
        (r"so \(\Spec \ZZ\) is", r"so $\operatorname{Spec} \mathbb{Z}$ is"),
        (r"so $\begin{cases} 1 \end{cases}$ is", r"so \begin{cases} 1 \end{cases} is"),
        ("for $5", r"for \$5"), ("q1", "q1"), (r"costs \$5 and $x$", r"costs \$5 and $x$"),
        (r"$\alpha_1$ and more than twenty letters", r"$\alpha_1$ and more than tw…"),
        (r"a long beginning $x+y+z$", "a long beginning …"),
        (r"of order $p^a …", "of order …"), (r"let $n \ge 1 \leq m$", r"let $n \geq 1 \leq m$"),
    ],
)  # fmt: skip
def test_formulas_in_labels_are_typeset_where_that_is_known(text: str, written: str):
    """Else their source is shown; a formula is never cut in two; what comes out can be drawn."""
    label = queries.typeset_label(text, 20 if "long" in text or "more" in text else 64)
    assert label == written
    figure, ax = plt.subplots()
    ax.set_yticks([0.5], [label], parse_math=True)
    figure.canvas.draw()


def test_a_heatmap_writes_numbers_as_tables_do():
    """With true minus signs, and without a negative zero; an empty cell has a dash."""
    drawn = plots.heatmap(pd.DataFrame({"mini-qa": [-0.254, -0.001, np.nan, 1]}, index=list("abcd")))
    assert [text.get_text() for text in drawn.texts] == ["−0.25", "0.00", "1.00", "–"]


@pytest.mark.parametrize("limits", [(0, 1), (-1, 1)])
def test_the_numbers_of_a_heatmap_differ_clearly_from_their_cells(limits):
    """By a contrast of 4.5 or more, as WCAG asks of texts, on every colour of the map."""
    drawn = plots.heatmap(pd.DataFrame([np.linspace(*limits, 21)]), limits=limits)
    colours = drawn.collections[0].get_facecolor()
    for text, cell in zip(drawn.texts, colours, strict=True):
        low, high = sorted(relative_luminance(colour) for colour in (text.get_color(), cell))
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_the_colours_of_a_heatmap_run_from_0_to_1_or_between_limits():
    """The limits are those of the colours; the numbers in the cells stay."""
    plain, narrow = plots.heatmap(MATRIX), plots.heatmap(MATRIX, limits=(0.2, 0.4))
    assert [ax.collections[0].get_clim() for ax in (plain, narrow)] == [(0, 1), (0.2, 0.4)]
    assert [text.get_text() for text in plain.texts] == [text.get_text() for text in narrow.texts]


def test_a_heatmap_between_minus_1_and_1_is_white_at_0():
    """Numbers on both sides of 0 have two colours, of which neither is that of 0."""
    drawn = plots.heatmap(pd.DataFrame({"mini-qa": [-0.8, 0, 0.8]}, index=list("abc")), limits=(-1, 1))
    below, zero, above = drawn.collections[0].get_facecolors()[:, :3]
    assert below[0] > below[2] and above[2] > above[0]
    assert min(zero) > 0.95


def test_a_reliability_diagram_has_a_line_for_each_system():
    """A panel per collection, a point per bin with its interval, and the diagonal."""
    rows = [
        ("one", "bm25", 0.85, 20, 0.5, 0.2, 0.8),
        ("one", "bm25", 0.95, 10, 1.0, 0.6, 1.0),
        ("one", "bm25", 0.99, 9, 0.0, 0.0, 0.3),  # few: hollow, without an interval
        ("two", "minilm", 0.5, 30, 0, 0, 0.3),
    ]
    table = pd.DataFrame(rows, columns=["collection", "system", "score", "n", "share", "low", "high"])
    first, second = plots.reliability(table)
    assert [panel.get_title("left") for panel in (first, second)] == ["one", "two"]
    diagonal, line, few = first.lines
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    assert line.get_xydata().tolist() == [[0.85, 0.5], [0.95, 1.0], [0.99, 0.0]]
    assert (few.get_xydata().tolist(), few.get_markerfacecolor()) == ([[0.99, 0.0]], "white")
    ends = [segment[:, 1].tolist() for segment in first.collections[0].get_segments() if len(segment)]
    np.testing.assert_allclose(ends, [[0.2, 0.8], [0.6, 1.0]])
    assert [text.get_text() for text in first.figure.legends[0].get_texts()] == ["bm25", "minilm"]
    with pytest.raises(MirblabError, match="share"):
        plots.reliability(table.drop(columns="share"))


def test_what_a_notebook_makes_interactive_stays_so() -> None:
    """The first figure of a kernel does; otherwise no later one would be shown."""
    before = matplotlib.is_interactive()
    try:
        matplotlib.interactive(False)
        with figures.figure_style():
            matplotlib.interactive(True)
        assert matplotlib.is_interactive()
    finally:
        matplotlib.interactive(before)


def test_plots_of_ranks_call_the_lower_one_better() -> None:
    """Titles, arrows, labels and axes say so."""
    comparison = COMPARISON.assign(measure="Rank")
    assert [text.get_text()[0] for text in plots.p_values(comparison).texts] == ["↓", "↑", "="]
    assert plots.effects(EFFECTS[:1].assign(measure="Rank"))[0].get_xlabel() == "change of Rank,\nleft of 0: better"
    ranks = pd.DataFrame({"a": [1.0, 2.0, 40.0], "b": [3.0, 2.0, 9.0], "c": [9.0, 8.0, 60.0]})
    drawn = plots.differences(ranks, measure="Rank", system_b="c")
    assert drawn.get_title("left") == "a: better on 3, equal on 0, worse on 0 queries"
    assert drawn.get_ylabel() == "ranks gained,\nabove 0: a better"
    dots = plots.value_scatter(ranks, measure="Rank", second="c")
    assert dots.get_title("left") == "c: better on 0, equal on 0, worse on 3 queries"
    assert dots.get_xlim() == dots.get_ylim() == (1.0, 60.0)


def test_negative_means_are_on_the_axis() -> None:
    """A change may be below 0."""
    drawn = plots.means(INTERVALS.assign(mean=-0.3, low=-0.4, high=-0.2, measure="change"))
    assert drawn.get_xlim() == (-0.4, 0.05)
    assert drawn.get_xlabel() == "change, −1 to 1"


def test_two_rerankers_are_not_one_line() -> None:
    """They would be joined by a zigzag."""
    both = pd.concat([DEPTHS.assign(reranker="a"), DEPTHS.assign(reranker="b")])
    with pytest.raises(MirblabError, match="one value for each system and depth"):
        plots.depth_curve(both)
