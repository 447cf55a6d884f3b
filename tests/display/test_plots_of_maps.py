"""A map in the paper's manner: partners joined, distractors as triangles, whatever the order of rows."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from mirblab.core.errors import MirblabError
from mirblab.display import figures, plots
from mirblab.display.plots.maps import COLOURS

POINTS = pd.DataFrame({
    "id": list("abcde"), "x": [0.0, 1, 5, 6, 2], "y": [0.0, 1, 5, 6, 2], "class_id": ["k", "k", "l", "l", "k"],
    "field": ["algebra", "topology"] * 2 + ["algebra"], "kind": ["equivalent"] * 4 + ["distractor"],
})  # fmt: skip
NUMBERS = {"k": 2, "kept": 0.5, "trust": 0.75, "partner_full": [1, 1, 3, 3, 0], "partner_map": [1, 3, 3, 3, 0]}


def test_the_map_joins_equivalent_statements():
    """One line per class, distractors not joined and smaller, one colour per field, no ticks, one scale."""
    ax = plots.map(POINTS)
    lines, *dots = ax.collections
    assert [segment.tolist() for segment in lines.get_segments()] == [[[0, 0], [1, 1]], [[5, 5], [6, 6]]]
    sizes = {dot.get_label().split(" (")[0]: dot.get_sizes()[0] for dot in dots}
    assert sizes["algebra, distractor"] < sizes["algebra, equivalent"] == sizes["topology, equivalent"]
    assert len({tuple(dot.get_facecolor()[0]) for dot in dots}) == 2
    assert not len(ax.get_xticks()) and not len(ax.get_yticks()) and ax.get_aspect() == 1


def test_statements_without_a_class_are_not_joined():
    """Two that say nothing in common have no line."""
    ax = plots.map(POINTS.assign(class_id=["k", "k", "", "", ""]))
    assert len(ax.collections[0].get_segments()) == 1


def test_two_fields_differ_in_black_and_white():
    """In lightness by at least a fifth, as do any two neighbours in the list of colours."""

    def lightness(colour: str) -> float:
        return float(np.dot([0.2126, 0.7152, 0.0722], to_rgb(colour)))

    steps = [abs(lightness(one) - lightness(other)) for one, other in zip(COLOURS, COLOURS[1:], strict=False)]
    assert min(steps[:3]) > 0.2 and len(set(COLOURS)) == 7


def test_the_eighth_field_has_hollow_dots():
    """Fourteen fields look different."""
    table = pd.concat([POINTS.assign(field=f"f{place:02d}", id=POINTS.id + str(place)) for place in range(14)])
    dots = [dot for dot in plots.map(table).collections[1:] if "equivalent" in dot.get_label()]
    looks = {(tuple(dot.get_facecolor()[0]), tuple(dot.get_edgecolor()[0])) for dot in dots}
    assert len(dots) == len(looks) == 14


def test_each_seed_has_a_panel_and_one_legend_serves_all():
    """In the table's order; another number of axes is refused."""
    both = pd.concat([POINTS.assign(seed=7), POINTS.assign(seed=2, x=-POINTS.x)])
    axes = plots.map(both)
    assert [ax.get_title("left") for ax in axes] == ["seed 7", "seed 2"]
    assert len(axes[0].figure.legends) == 1 and not any(ax.get_legend() for ax in axes)
    given = list(plt.subplots(1, 2)[1])
    assert plots.map(both, ax=given) == given and given[-1].get_legend()
    with pytest.raises(MirblabError, match="2 seeds need as many axes, found 1"):
        plots.map(both, ax=given[0])


def test_the_numbers_stand_above_the_map():
    """Means of what the table holds for each point; points without a partner do not count for partners."""
    title = plots.map(POINTS.assign(seed=3, **NUMBERS)).get_title("left")
    assert title == (
        "seed 3: the map keeps 50 % of each statement's 2 nearest; trustworthiness 0.75\n"
        "partner among the 2 nearest: 50 % in the full space, 25 % on this map"
    )
    alone = plots.map(POINTS.assign(seed=3, **NUMBERS | {"partner_full": 0, "partner_map": 0})).get_title("left")
    assert alone == title.split("\n")[0]


def test_the_order_of_rows_changes_no_byte(tmp_path: Path):
    """What lies on top is settled by field, kind and id."""
    said = {"provenance": {}, "caption": "c", "alt": "a"}
    for name, table in (("one", POINTS), ("two", POINTS.sample(frac=1, random_state=1))):
        figures.save_figure(plots.map(table), tmp_path / name, "map", table=table, **said)
    for suffix in ("png", "svg", "pdf"):
        one, two = ((tmp_path / name / f"map.{suffix}").read_bytes() for name in ("one", "two"))
        assert one == two, suffix


def test_a_missing_column_is_named():
    """With what there is."""
    with pytest.raises(MirblabError, match="no column 'class_id'"):
        plots.map(POINTS.drop(columns="class_id"))


def test_the_legend_says_what_the_two_of_a_pair_are_to_each_other():
    """A premise is judged relevant to a theorem and does not say the same."""
    ax = plots.map(POINTS.assign(kind=["judged relevant"] * 4 + ["distractor"]))
    labels = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert labels == ["algebra, judged relevant (2)", "algebra, distractor (1)", "topology, judged relevant (2)"]


def test_regions_have_colours_and_words_that_do_not_overlap():
    """The words stand inside the map, near their region, on no dot, and are legible; the legend has kinds only."""
    rng = np.random.default_rng(0)
    centres = np.repeat([[0, 0], [1, 0], [9, 9], [9, 9.2], [0, 9]], 20, axis=0)
    names = np.repeat(["ring, ideal", "module, free", "space, compact", "graph, vertices", ""], 20)
    at = centres + rng.normal(scale=0.3, size=(100, 2))
    table = pd.DataFrame({
        "id": [f"{n:03d}" for n in range(100)], "x": at[:, 0], "y": at[:, 1], "region": names, "class_id": "",
        "field": "f", "kind": ["equivalent", "distractor"] * 50,
    })  # fmt: skip
    ax = plots.map(table)
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == ["equivalent (50)", "distractor (50)"]
    ax.figure.draw_without_rendering()
    words = {text.get_text(): text for text in ax.texts}
    assert set(words) == set(names) - {""}
    boxes = [text.get_window_extent() for text in words.values()]
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
    assert all(ax.get_window_extent().containsx(x) for box in boxes for x in (box.x0, box.x1))
    dots = ax.transData.transform(at)
    assert not any(box.contains(*dot) for box in boxes for dot in dots)
    for name, text in words.items():
        gap = np.subtract(text.get_position(), at[names == name].mean(axis=0))
        assert np.hypot(*gap) < 3 and contrast(text.get_color()) > 4.5
    shades = {tuple(dot.get_facecolor()[0][:3]) for dot in ax.collections[1:] if len(dot.get_offsets())}
    assert len(shades) == 5


def contrast(colour: tuple[float, ...]) -> float:
    """Return the contrast with white, as WCAG defines it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    return 1.05 / (float(np.dot([0.2126, 0.7152, 0.0722], linear)) + 0.05)


def test_several_maps_have_the_colours_of_regions_and_no_words():
    """There is no room for words."""
    both = pd.concat([POINTS.assign(seed=seed, region=["one", "one", "two", "two", ""]) for seed in (0, 1)])
    assert [len(ax.texts) for ax in plots.map(both)] == [0, 0]
