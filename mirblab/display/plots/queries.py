"""queries: plots in which each query, document or token is visible."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mirblab.core.errors import MirblabError, check_positive
from mirblab.core.wording import counted, shorten_label
from mirblab.display.escape import replace_symbols
from mirblab.display.figures import (
    GREY,
    NEW_AXES,
    PALETTE,
    draw_styled,
    figure_styles,
    legend_beside,
    require_columns,
    value_axis_label,
)
from mirblab.evaluation.measures import gain_sign, is_rank
from mirblab.formula.in_text import split_at_formulas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import LineStyleType


_SMALLEST, _LARGEST = 18, 320  # areas of dots, in points squared
_MOVE_LETTERS = 26  # of a document's id
_MOVE_ROW = 0.27  # inches
# Colour, whether the marker is filled, and line of each kind of document.
_MOVE_STYLES: dict[str, tuple[str, bool, LineStyleType]] = {
    "relevant": (PALETTE[2], True, "-"),
    "judged, not relevant": (PALETTE[1], False, "--"),
    "not judged": (GREY, False, ":"),
}

_NAMED, _STEP = 12, 0.055  # documents named at most; what two names need of the height
_RANK_LETTERS = 34

_FAILURE_ROW = 0.24  # inches of a query
_FAILURE_LETTERS = 64  # of a label
_DOLLAR = re.compile(r"(?<!\\)\$")
_SHORT = re.compile(r"\\(le|ge)(?![A-Za-z])")  # names of \leq and \geq that matplotlib does not know
_UNSEEN = re.compile(r"\\[A-Za-z]+(?=[A-Za-z\\{])|[\\{}^_\s]")  # of a formula's source; of a command a letter is left

_SIDE = 0.27  # inches of a cell, in which a token's name is legible
_PAGE = 14.0  # inches; longer texts have smaller cells

_OTHER = ("rank", "doc_id", "relevance", "query_id")
_MARKERS = "osD^vPX"  # of the runs in their order: colours alone are not for all eyes
# Whether the marker of each kind of document is filled, and its size.
_CONTRIBUTION_STYLES = {"relevant": (True, 8.0), "judged, not relevant": (False, 8.0), "not judged": (True, 4.0)}


@draw_styled(lambda table: (5.4, 5.0))
def value_scatter(
    table: pd.DataFrame, *, ax: Axes = NEW_AXES, first: str = "", second: str = "", measure: str = "value"
) -> Axes:
    """Draw each query as a dot: its value in the first run horizontally, in the second vertically.

    *table* is from `significance.value_matrix`, queries × systems; by default its first two columns are compared.
    Queries with equal pairs of values share a dot, whose area grows with their number.

    >>> value_scatter(pd.DataFrame({"a": [0.9, 0.5, 0.5], "b": [0.4, 0.5, 0.5]})).get_title("left")
    'b: better on 0, equal on 2, worse on 1 query'
    """
    names = [first or str(table.columns[0]), second or str(table.columns[min(1, table.shape[1] - 1)])]
    require_columns(table, *names)
    # Values that differ by rounding errors only share a dot.
    dots = table[names].round(6).set_axis(["x", "y"], axis=1).value_counts().reset_index()
    gain = (dots.y - dots.x) * gain_sign(measure)
    area = _SMALLEST + (_LARGEST - _SMALLEST) * np.sqrt((dots["count"] - 1) / max(len(table), 1))
    ends = _axis_ends(table[names], measure)
    ax.plot(ends, ends, color=GREY, linewidth=0.8, zorder=1)
    styles = figure_styles(names)
    for name, part, marker in ((names[1], gain > 0, "^"), (names[0], gain < 0, "v"), ("", gain == 0, "o")):
        if part.any():
            ax.scatter(dots.x[part], dots.y[part], s=area[part], marker=marker, alpha=0.75, linewidths=0, zorder=2,
                       clip_on=False, color=styles[name][0] if name else GREY,
                       label=f"{name} better" if name else "equal")  # fmt: skip
    better, worse = (int(dots["count"][part].sum()) for part in (gain > 0, gain < 0))
    equal = len(table) - better - worse
    ax.set_title(f"{names[1]}: better on {better:,}, equal on {equal:,}, worse on {counted(worse, 'query')}")
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    most = int(dots["count"].max()) if len(dots) else 1
    sizes = f"\nlarger: several queries, {most:,} in the largest" if most > 1 else ""
    ax.set_xlabel(f"{names[0]}\n{value_axis_label(measure)}{sizes}")
    ax.set_ylabel(f"{names[1]}\n{value_axis_label(measure)}")
    legend_beside(ax)
    return ax


def _axis_ends(values: pd.DataFrame, measure: str) -> tuple[float, float]:
    """Return 1 and the highest of *values*, at least 2, for a rank, else 0 and 1."""
    return (1.0, float(values.to_numpy(float).max(initial=2.0))) if is_rank(measure) else (0.0, 1.0)


@draw_styled(lambda table: (6.8, 1.5 + _MOVE_ROW * (2 + min(len(table), 40))))
def rank_changes(
    table: pd.DataFrame, *, ax: Axes = NEW_AXES, first: str = "first", second: str = "second", k: int = 10,
    relevant_from: int = 1,
) -> Axes:  # fmt: skip
    """Draw the ranks of one query's documents in the first run (left) and in the second (right), best on top.

    *table* is from `compare_runs.moved_documents`: doc_id, rank_a, rank_b, relevance. Ranks over *k* are in order below
    the line, each with its number. Filled and solid: relevance of *relevant_from* or more; hollow and dashed: judged
    lower; hollow and dotted: not judged.

    >>> rows = {"doc_id": ["a", "b"], "rank_a": [1, 14], "rank_b": [2, 1], "relevance": [1, None]}
    >>> drawn = rank_changes(pd.DataFrame(rows).convert_dtypes(), k=10)
    >>> [text.get_text() for text in drawn.texts if "14" in text.get_text()]
    ['b  14']
    """
    require_columns(table, "doc_id", "rank_a", "rank_b", "relevance")
    places = [_rank_heights(table[name].to_numpy(float, na_value=np.nan), k) for name in ("rank_a", "rank_b")]
    kinds = _relevance_kinds(table.relevance, relevant_from)
    for row, kind in enumerate(kinds):
        colour, is_filled, line = _MOVE_STYLES[kind]
        ax.plot([0, 1], [places[0][row], places[1][row]], color=colour, linestyle=line, linewidth=1.5, marker="o",
                markersize=7, markerfacecolor=colour if is_filled else "white", clip_on=False)  # fmt: skip
    _label_documents(ax, table, places)
    deepest = max(k + 1.0, *(side.max() for side in places))
    ax.axhline(k + 0.75, color=GREY, linewidth=0.8)
    ax.set(xlim=(0, 1), ylim=(deepest + 0.6, 0.4), yticks=[])
    ax.set_xticks([0, 1], [f"{first}\nrank on the left", f"{second}\nrank on the right"])
    ax.xaxis.tick_top()
    ax.grid(visible=False)
    ax.spines[["left", "bottom", "top"]].set_visible(False)
    _relevance_legend(ax, kinds)
    return ax


def _relevance_kinds(relevance: pd.Series, relevant_from: int) -> np.ndarray:
    """Return "relevant", "judged, not relevant" or "not judged" for each document, object (n_documents,)."""
    numbers = relevance.astype("Float64").to_numpy(float, na_value=np.nan)
    kinds = np.where(numbers >= relevant_from, "relevant", "judged, not relevant").astype(object)
    return np.where(np.isnan(numbers), "not judged", kinds)


def _label_documents(ax: Axes, table: pd.DataFrame, places: list[np.ndarray]) -> None:
    for side, (name, align) in enumerate((("rank_a", "right"), ("rank_b", "left"))):
        for doc, rank, place in zip(table.doc_id, table[name], places[side], strict=True):
            parts = [shorten_label(str(doc), _MOVE_LETTERS), "not returned" if pd.isna(rank) else f"{rank:,}"]
            text = "  ".join(parts if side == 0 else parts[::-1])
            ax.annotate(text, (side, place), xytext=(-8 if side == 0 else 8, 0), textcoords="offset points",
                        ha=align, va="center", fontsize=8, annotation_clip=False)  # fmt: skip


def _relevance_legend(ax: Axes, kinds: np.ndarray) -> None:
    from matplotlib.lines import Line2D

    keys = [Line2D([], [], color=colour, linestyle=line, marker="o", markersize=7, label=kind,
                   markerfacecolor=colour if is_filled else "white")
            for kind, (colour, is_filled, line) in _MOVE_STYLES.items() if kind in kinds]  # fmt: skip
    ax.legend(handles=keys, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=3, borderaxespad=0)


def _rank_heights(ranks: np.ndarray, k: int) -> np.ndarray:
    """Return the height of each rank: the rank up to *k*; deeper ones, then missing ones, in order below the line."""
    order = np.argsort(np.where(np.isnan(ranks), np.inf, ranks), kind="stable")
    below = order[~(ranks[order] <= k)]
    places = ranks.copy()
    places[below] = k + 1.5 + np.arange(len(below))
    return places


@draw_styled(lambda table: (2.6 + 1.5 * max(2, table.shape[1] - 3), 4.2))
def ranks(table: pd.DataFrame, *, ax: Axes = NEW_AXES) -> Axes:
    """Draw the rank of each judged document under each system, 1 on top, on a logarithmic axis.

    *table* is from `judged_ranks`: doc_id, grade, is_relevant, and a column of ranks per system (NaN: not returned).
    Relevant documents are coloured, and the best twelve are named; others are grey.

    >>> table = pd.DataFrame({"doc_id": ["d"], "grade": [1], "is_relevant": [True], "bm25": [1.0], "minilm": [np.nan]})
    >>> [label.get_text() for label in ranks(table).get_xticklabels()]
    ['bm25', 'minilm']
    """
    require_columns(table, "doc_id", "grade", "is_relevant")
    systems = [name for name in table.columns if name not in ("doc_id", "grade", "is_relevant")]
    numbers = table[systems].to_numpy(dtype=float)
    last = max(10.0, np.nanmax(numbers, initial=1.0))
    missing = last * 2.2
    filled = np.where(np.isnan(numbers), missing, numbers)
    relevant = table.is_relevant.to_numpy(dtype=bool)
    for row in np.flatnonzero(~relevant):
        ax.plot(systems, filled[row], color="#BBBBBB", marker=".", linewidth=0.9, zorder=1)
    chosen = np.flatnonzero(relevant)
    for place, row in enumerate(chosen):
        ax.plot(systems, filled[row], color=PALETTE[place % len(PALETTE)], marker="o", linewidth=1.8, zorder=2)
    ax.set_yscale("log")
    ax.set_ylim(missing * 1.35, 0.8)
    steps = [step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if step <= last]
    ax.set_yticks([*steps, missing], [*(f"{step:,}" for step in steps), "not returned"])
    ax.minorticks_off()
    ax.set_ylabel("rank, 1 is best")
    ax.set_xlim(-0.2, len(systems) - 0.8)
    ax.grid(axis="x", visible=False)
    _name_documents(ax, table, filled, chosen[:_NAMED], len(systems))
    return ax


def _name_documents(ax: Axes, table: pd.DataFrame, filled: np.ndarray, chosen: np.ndarray, n_systems: int) -> None:
    low, high = np.log(ax.get_ylim()[0]), np.log(ax.get_ylim()[1])
    heights = [(np.log(filled[row, -1]) - low) / (high - low) for row in chosen]
    last = 1.0 + _STEP
    for place in np.argsort(-np.array(heights), kind="stable"):
        row = chosen[place]
        last = min(heights[place], last - _STEP)
        name = str(table.doc_id.iloc[row])
        text = f"{shorten_label(name, _RANK_LETTERS)} ({table.grade.iloc[row]})"
        line = {"arrowstyle": "-", "color": PALETTE[place % len(PALETTE)], "linewidth": 1.0}
        ax.annotate(text, (n_systems - 1, filled[row, -1]), xytext=(1.03, last), textcoords="axes fraction",
                    va="center", fontsize=8.5, color="black", annotation_clip=False, arrowprops=line)  # fmt: skip
    unnamed = int(table.is_relevant.sum()) - len(chosen)
    notes = ["grey: judged not relevant"] if not table.is_relevant.all() else []
    notes += [f"{counted(unnamed, 'relevant one')} not named"] if unnamed else []
    ax.set_title("; ".join(notes), color=GREY, fontsize=9)


@draw_styled(lambda table: (8.4, 1.5 + _FAILURE_ROW * min(len(table), 27)))
def paired_values(table: pd.DataFrame, *, ax: Axes = NEW_AXES, n: int = 12) -> Axes:
    """Draw both systems' values of each query, joined by a line; the winner's is filled, its largest gain on top.

    *table* is from `query_outcomes`, with labels in an optional column `label`, whose formulas are typeset where
    matplotlib can. Of many queries the first and last *n* are drawn.

    >>> rows = pd.DataFrame({"query_id": ["q1", "q2"], "winner": [1.0, 0.2], "loser": [0.5, 0.4]})
    >>> rows = rows.assign(difference=rows.winner - rows.loser)
    >>> rows.attrs = {"winner": "bm25", "loser": "minilm", "measure": "RR"}
    >>> [label.get_text() for label in paired_values(rows).get_yticklabels()]
    ['q1', 'q2']
    """
    check_positive(n=n)
    require_columns(table, "query_id", "winner", "loser", "difference")
    shown = _first_and_last(table, n)
    is_cut = len(shown) < len(table)
    measure = str(table.attrs.get("measure", "value"))
    ends = _axis_ends(shown[["winner", "loser"]], measure)
    places = np.arange(len(shown)) + (1.0 * (np.arange(len(shown)) >= n) if is_cut else 0.0)
    ax.hlines(
        places,
        shown[["winner", "loser"]].min(axis=1),
        shown[["winner", "loser"]].max(axis=1),
        color=GREY,
        linewidth=1.4,
    )
    sides = {side: str(table.attrs.get(side, side)) for side in ("loser", "winner")}
    styles = figure_styles(sides.values())
    for side, name in sides.items():
        colour, marker = styles[name]
        ground = colour if side == "winner" else "white"
        ax.plot(shown[side], places, linestyle="none", marker=marker, markersize=6.5, color=colour, label=name,
                markerfacecolor=ground, markeredgewidth=1.6, clip_on=False)  # fmt: skip
    if is_cut:
        between = f"{len(table) - len(shown):,} queries between"
        ax.text(sum(ends) / 2, n, between, ha="center", va="center", color=GREY, fontsize=9)
    labels = shown["label" if "label" in shown else "query_id"].astype(str)
    texts = [typeset_label(text, _FAILURE_LETTERS) for text in labels]
    ax.set_yticks(places, texts, fontsize=8.5, parse_math=True)
    ax.set_ylim(places[-1] + 0.6, -0.6)
    ax.set_xlim(ends)
    ax.set_xlabel(value_axis_label(measure))
    ax.figure.legend(*ax.get_legend_handles_labels(), loc="outside upper right", ncols=2)
    ax.grid(axis="y", visible=False)
    return ax


def typeset_label(text: str, longest: int) -> str:
    r"""Return *text* for `parse_math`: formulas that matplotlib knows between dollars, the source of others.

    It ends in "…" where it had more than *longest* characters, without the commands of formulas.

    >>> print(typeset_label(r"If \(x_1 \in \mathbb{R}\) costs \$5", 40), typeset_label(r"so $\begin{cases}$", 40))
    If $x_1 \in \mathbb{R}$ costs \$5 so \begin{cases}
    """
    text = " ".join(text.split())
    if text.endswith("…") and len(_DOLLAR.findall(text)) % 2:  # cut within a formula
        text = text[: text.rindex("$")].rstrip() + " …"
    written, left = "", longest
    for place, part in enumerate(split_at_formulas(text)):
        maths = _SHORT.sub(r"\\\1q", replace_symbols(part, is_maths=True)) if place % 2 else ""
        is_maths = _is_typeset(maths)
        shown = maths if is_maths else part.replace(r"\$", "$")
        size = len(_UNSEEN.sub("", maths)) if is_maths else len(shown)
        if size > left:
            cut = "" if is_maths else shown[: max(left - 1, 0)].replace("$", r"\$")
            return f"{written}{cut}…"
        written, left = written + (f"${shown}$" if is_maths else shown.replace("$", r"\$")), left - size
    return written


def _is_typeset(maths: str) -> bool:
    from matplotlib.mathtext import MathTextParser

    if not maths.strip():
        return False
    try:
        MathTextParser("path").parse(f"${maths}$")
    except (ValueError, RuntimeError):  # what matplotlib raises for a command that it does not know
        return False
    return True


def _first_and_last(table: pd.DataFrame, n: int) -> pd.DataFrame:
    ordered = table.sort_values(["difference", "query_id"], ascending=[False, True], ignore_index=True)
    return ordered if len(ordered) <= 2 * n + 2 else pd.concat([ordered.head(n), ordered.tail(n)])


@draw_styled(lambda table: (min(_PAGE, 2.4 + _SIDE * table.shape[1]), min(_PAGE, 1.5 + _SIDE * len(table))))
def token_matches(table: pd.DataFrame, *, ax: Axes = NEW_AXES) -> Axes:
    """Draw the cosine of each query token (rows) with each document token (columns), dark for high.

    *table* is from `late_interaction.token_similarities`; up to about 40 tokens per side are legible. A ring marks the
    best document token of each query token; the score is the mean of the marked cells.

    >>> ax = token_matches(pd.DataFrame([[0.2, 0.9]], index=["ring"], columns=["a", "ring"]))
    >>> ax.lines[0].get_xydata().tolist()
    [[1.5, 0.5]]
    """
    import seaborn as sns

    numbers = table.to_numpy(dtype=float)
    rows, columns = ([str(name) for name in names] for names in (table.index, table.columns))
    sns.heatmap(numbers, cmap="Blues", vmin=0, vmax=1, square=True, xticklabels=columns, yticklabels=rows, ax=ax,
                cbar_kws={"label": "cosine, −1 to 1 (below 0 drawn as 0)", "shrink": 0.9})  # fmt: skip
    ax.plot(numbers.argmax(axis=1) + 0.5, np.arange(len(rows)) + 0.5, linestyle="none", marker="o", markersize=8,
            markerfacecolor="none", markeredgecolor=PALETTE[1], markeredgewidth=1.8, clip_on=False)  # fmt: skip
    ax.set(xlabel="tokens of the document", ylabel="tokens of the query")
    ax.tick_params(length=0, labelsize=11, axis="x", labelrotation=90)
    ax.tick_params(length=0, labelsize=11, axis="y", labelrotation=0)
    ax.grid(visible=False)
    return ax


@draw_styled(lambda table: (7.4, 4.2))
def fusion_contributions(table: pd.DataFrame, *, ax: Axes = NEW_AXES, relevant_from: int = 1) -> Axes:
    """Draw the rank of each document of a fusion in the original runs, on a logarithmic scale, best on top.

    *table* is from `fusion.contributions`: rank, doc_id, a column of ranks per run, optional relevance. Documents that
    a run did not return are in the band below. Filled: relevance of *relevant_from* or more; hollow: judged lower;
    small: not judged.

    >>> table = pd.DataFrame({"rank": [1, 2], "doc_id": ["a", "b"], "bm25": [2, 7], "minilm": [1, None]})
    >>> [text.get_text() for text in fusion_contributions(table).get_legend().get_texts()]
    ['rank in bm25', 'rank in minilm']
    """
    require_columns(table, "rank", "doc_id")
    names = [name for name in table.columns if name not in _OTHER]
    if not names:
        raise MirblabError("no run to show; the table needs a column of ranks for each part of the fusion")
    ranks = table[names].astype("Float64").to_numpy(float, na_value=np.nan)
    deepest = np.nanmax(ranks, initial=10)
    floor, absent = deepest * 1.5, deepest * 2.2
    places = table["rank"].to_numpy(float)
    is_judged = "relevance" in table
    kinds = _relevance_kinds(table.relevance, relevant_from) if is_judged else np.full(len(table), "relevant")
    shown = np.where(np.isnan(ranks), absent, ranks)
    ax.vlines(places, shown.min(axis=1), shown.max(axis=1), color="#C8C8C8", linewidth=1.2, zorder=1)
    ax.axhspan(floor, absent * 1.5, color="#EFEFEF", zorder=0, linewidth=0)
    step = min(0.2, 0.6 / len(names))
    styles = figure_styles(names)
    for number, name in enumerate(names):
        colour, marker = styles[name][0], _MARKERS[number % len(_MARKERS)]
        across = places + step * (number - (len(names) - 1) / 2)
        for kind, (is_filled, size) in _CONTRIBUTION_STYLES.items():
            ax.plot(across[kinds == kind], shown[kinds == kind, number], linestyle="none", color=colour, marker=marker,
                    markersize=size, markerfacecolor=colour if is_filled else "white", markeredgewidth=1.6)  # fmt: skip
    _contribution_axes(ax, table, deepest, floor, absent)
    _contribution_legend(ax, names, kinds if is_judged else np.array([]))
    return ax


def _contribution_axes(ax: Axes, table: pd.DataFrame, deepest: float, floor: float, absent: float) -> None:
    ax.set_yscale("log")
    ax.set_ylim(absent * 1.5, 0.75)
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000) if tick <= deepest]
    ax.set_yticks([*ticks, absent], [*(f"{tick:,}" for tick in ticks), "not\nreturned"])
    ax.minorticks_off()
    ax.axhline(floor, color=GREY, linewidth=0.8)
    labels = [f"{rank:,}" for rank in table["rank"]]
    about = "rank in the fusion"
    if "relevance" in table:
        grades = ["–" if pd.isna(grade) else f"{grade:g}" for grade in table.relevance]
        labels = [f"{rank}\n{grade}" for rank, grade in zip(labels, grades, strict=True)]
        about += ", and relevance below it"
    ax.set_xticks(table["rank"], labels)
    ax.set_xlabel(about)
    ax.set_ylabel("rank in the original run,\nlogarithmic, best on top")
    ax.grid(axis="x", visible=False)


def _contribution_legend(ax: Axes, names: list[str], kinds: np.ndarray) -> None:
    from matplotlib.lines import Line2D

    keys = []
    styles = figure_styles(names)
    for number, name in enumerate(names):
        colour, marker = styles[name][0], _MARKERS[number % len(_MARKERS)]
        keys.append(
            Line2D([], [], marker=marker, linestyle="none", markersize=8, color=colour, label=f"rank in {name}")
        )
    for kind, (is_filled, size) in _CONTRIBUTION_STYLES.items():
        if kind in kinds:
            face = GREY if is_filled else "white"
            keys.append(Line2D([], [], marker="o", linestyle="none", markersize=size, color=GREY, markerfacecolor=face,
                               markeredgewidth=1.6, label=kind))  # fmt: skip
    legend_beside(ax, handles=keys)
