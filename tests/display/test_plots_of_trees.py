"""Pictures of trees: nothing overlaps, relations go where they belong, and what matched is seen."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.patches import FancyBboxPatch

from mirblab.core.errors import MirblabError
from mirblab.display.figures import save_figure
from mirblab.display.plots import trees as plots_trees
from mirblab.display.plots.trees import Layout, lay_out
from mirblab.formula import tree
from mirblab.formula.latex.parser import parse_latex

SQUARE = "[V!x[=[N!4]],a[N!2],b[V!i]]"


def table(text: str) -> pd.DataFrame:
    """Return the nodes of a Tangent string."""
    return tree.read_tangent(text).table()


def boxes(layout: Layout) -> list[tuple[float, float, float, float]]:
    """Return left, right, low and high of every node."""
    return [
        (x - width / 2, x + width / 2, y - 0.32, y + 0.32)
        for (x, y), width in zip(layout.places, layout.widths, strict=True)
    ]


def overlaps(layout: Layout) -> int:
    return sum(a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3] for a, b in combinations(boxes(layout), 2))


@pytest.mark.parametrize("relations", ["cdwoubane", "0123456789"])
def test_no_node_stands_on_another(relations: str):
    """In 300 random trees of each kind, with narrow and wide nodes, wrapped or not."""
    pick = random.Random(2)
    for size in range(1, 301):
        n_nodes = 1 + size % 45
        parents = [-1] + [pick.randint(max(0, node - 4), node - 1) for node in range(1, n_nodes)]
        kinds = ["-"] + [pick.choice(relations) for _ in parents[1:]]
        widths = [pick.choice([0.64, 0.64, 1.4, 3.0]) for _ in parents]
        layout = lay_out(parents, kinds, widths, widest=pick.choice([6.0, 15.0]))
        assert len(layout.places) == n_nodes
        assert overlaps(layout) == 0, (parents, kinds)


def test_a_layout_tree_runs_to_the_right():
    """The next symbol on the same height, a superscript higher, a subscript lower, both to the right."""
    x, sub, sup, equals, four = lay_out([-1, 0, 0, 0, 3], list("-bann"), [0.64] * 5, widest=15).places
    assert x[1] == equals[1] == four[1] and x[0] < equals[0] < four[0]
    assert sup[1] == 1 and sub[1] == -1 and sup[0] > x[0] and sub[0] > x[0]


def test_an_operator_tree_grows_downwards():
    """Operands in order, the parent above their middle."""
    places = lay_out([-1, 0, 0, 0], list("-012"), [0.64] * 4, widest=15).places
    assert [y for _, y in places] == [0, -1, -1, -1]
    assert places[1][0] < places[2][0] < places[3][0] and places[0][0] == pytest.approx(places[2][0])


def test_a_long_line_goes_on_below():
    """In lines of about the same width, none wider than the page."""
    layout = lay_out(list(range(-1, 49)), list("-" + "n" * 49), [0.64] * 50, widest=15)
    assert layout.turns and layout.width < 17.5
    assert [y for _, y in layout.places] == sorted((y for _, y in layout.places), reverse=True)


def test_an_edge_goes_around_what_stands_on_a_symbol_below_it():
    """The fraction in brackets of a binomial: its numerator is not crossed."""
    layout = lay_out([-1, 0, 1], list("-wo"), [1.4, 0.64, 0.64], widest=15)
    path = layout.path(0, 1)
    left = boxes(layout)[2][0]
    assert 1 in layout.bends and len(path) == 4 and all(x < left for x, _ in path[:-1])


def test_the_picture_shows_every_symbol_and_relation():
    """Without types; on the axes that were given."""
    ax = plt.subplots()[1]
    assert plots_trees.tree(table(SQUARE), ax=ax, title="a square") is ax
    assert sorted(text.get_text() for text in ax.texts) == sorted(["x", "i", "2", "=", "4", "n", "n", "a", "b"])
    assert ax.get_title("left") == "a square"


def test_operands_have_numbers_only_where_their_order_counts():
    """Not below U!."""
    shown = [text.get_text() for text in plots_trees.tree(table("[U!plus,0[V!x],1[O!SUP,0[V!y],1[N!2]]]")).texts]
    assert sorted(shown) == ["+", "0", "1", "2", "SUP", "x", "y"]


def test_a_division_is_a_bar_in_a_layout_tree_only():
    """The bar would be a minus sign among operations."""
    shown = [text.get_text() for text in plots_trees.tree(table("[O!divide,0[N!1],1[N!2]]")).texts]
    assert "÷" in shown and "—" not in shown
    assert "—" in {text.get_text() for text in plots_trees.tree(table("[O!divide,o[N!1],u[N!2]]")).texts}


def test_matched_nodes_have_another_ground_and_a_thicker_border():
    """Colour is not all that tells them."""
    ax = plots_trees.tree(table(SQUARE), matched=[2])
    patches = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    thick = [place for place, patch in enumerate(patches) if patch.get_linewidth() > 1]
    assert thick == [2] and patches[2].get_facecolor() != patches[0].get_facecolor()


def test_a_column_text_replaces_the_labels():
    """And a long text is cut."""
    nodes = table("[V!x[V!y]]").assign(text=["first", "a text that is much too long"])
    assert {text.get_text() for text in plots_trees.tree(nodes).texts} == {"first", "a text that is much…", "n"}


def test_letters_that_the_font_lacks_are_replaced(recwarn: pytest.WarningsRecorder):
    """By their plain form, else by their code: no boxes, no warnings."""
    ax = plots_trees.tree(table("[V!𝒮[V!𝔸[V!𝑥[⨋[V!漢]]]]]"))
    ax.figure.canvas.draw()
    assert {"S", "x", "U+2A0B", "U+6F22"} <= {text.get_text() for text in ax.texts}
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


def test_a_table_that_is_no_tree_is_refused():
    """By name of the column, by the first wrong node, by size."""
    with pytest.raises(MirblabError, match="no column 'relation'"):
        plots_trees.tree(table(SQUARE).drop(columns="relation"))
    with pytest.raises(MirblabError, match="node 1 of the table has parent 1"):
        plots_trees.tree(table("[V!x[V!y]]").assign(parent=[-1, 1]))
    with pytest.raises(MirblabError, match="301 nodes"):
        plots_trees.tree(table("[V!x" * 301 + "]" * 301))
    assert "empty" in plots_trees.tree(table("")).texts[0].get_text()


def test_real_formulas_fit_the_page(shared_file: Callable[[str], Path], tmp_path: Path):
    """The trees of the 74 topics with up to 40 nodes: at most 7.4 inches wide, letters of at least 6 points."""
    lines = shared_file("data/arqmath-2020-task2/queries.jsonl").read_text("utf-8").splitlines()
    trees = [table(row[key]) for row in map(json.loads, lines) for key in ("slt", "opt")]
    trees = sorted((nodes for nodes in trees if len(nodes) <= 40), key=len)
    assert len(trees) > 130
    for nodes in trees[-60::4]:
        ax = plots_trees.tree(nodes)
        symbols = [text for text in ax.texts if text.get_style() == "normal"]
        assert len(symbols) == len(nodes)
        assert ax.figure.get_figwidth() <= 7.4 and min(text.get_fontsize() for text in symbols) >= 6
        plt.close(ax.figure)
    said = {"provenance": {}, "caption": "A tree.", "alt": "A tree.", "table": table(SQUARE)}
    save_figure(plots_trees.tree(table(SQUARE)), tmp_path, "square", **said)
    assert (tmp_path / "square.svg").is_file()


def test_a_much_too_wide_operator_tree_grows_to_the_right():
    """Forty operands side by side would be letters of three points."""
    layout = lay_out([-1] + [0] * 40, ["-", *"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcd"], [1.0] * 41, widest=15)
    assert layout.width < 15 and overlaps(layout) == 0
    heights = [y for _, y in layout.places[1:]]
    assert heights == sorted(heights, reverse=True) and len({x for x, _ in layout.places[1:]}) == 1


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        ("f(x)", "( )"), ("[a,b]", "[ , ]"), ("|x|", "| |"), (r"(a,b,c,d,e,f)", "(6 entries)"), ("-x", "−"),
        (r"\begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}", "(2×2 matrix)"), (r"\overline{\frac ab}", "group"),
        (r"\begin{cases} x & y \\ z & w \end{cases}", "{2×2 matrix"),
    ],
)  # fmt: skip
def test_fences_and_matrices_are_said_in_signs_and_words(latex: str, shown: str):
    """Not in Tangent's code: ()1x1, M-2x2."""
    texts = {text.get_text() for text in plots_trees.tree(parse_latex(latex).table()).texts}
    assert shown in texts and not any("1x" in text or "2x" in text for text in texts)


def test_operator_trees_name_matrices_and_rows():
    """A matrix of content MathML with its rows."""
    nodes = table("[M!M-2x2,0[M!R!,0[N!1],1[N!0]],1[M!R!,0[N!0],1[N!1]]]")
    assert {"2×2 matrix", "row"} <= {text.get_text() for text in plots_trees.tree(nodes).texts}
