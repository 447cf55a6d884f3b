"""Where the partner stands, among whom, over what intervals; and how much of it is vocabulary."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

import mirblab as lab
from mirblab.analysis.partners import MEASURES, partner_statements
from mirblab.core.errors import MirblabError
from mirblab.data import runs
from mirblab.data.collection import Collection
from mirblab.evaluation import imported
from mirblab.evaluation.significance import spearman_interval

TEXTS = {
    "p-1": ("space basis rank", "spaces"),
    "p-2": ("module basis length", "modules"),
    "q-1": ("space map kernel", "spaces"),
    "q-2": ("morphism image", "modules"),
    "d1": ("space basis kernel", "spaces"),
}
PARTNER = {"p-1": "p-2", "p-2": "p-1", "q-1": "q-2", "q-2": "q-1"}


pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def small(make_folder: Callable[..., Path]) -> Collection:
    """Return two pairs and a distractor."""
    return lab.load(folder(make_folder))


def folder(make_folder: Callable[..., Path], **replaced: str) -> Path:
    rows = [{"_id": name, "text": text, "tags": [tag]} for name, (text, tag) in TEXTS.items()]
    qrels = replaced.pop("qrels", "".join(f"{one}\t{other}\t1\n" for one, other in PARTNER.items()))
    return make_folder(rows, [row for row in rows if row["_id"] in PARTNER], qrels, **replaced)


def whole_run(rank_of: dict[str, int], others: int = 4) -> pd.DataFrame:
    """Return a run of all other statements in which each partner has a given rank."""
    rows = []
    for query, partner in PARTNER.items():
        rest = [name for name in TEXTS if name not in (query, partner)]
        rest.insert(rank_of[query] - 1, partner)
        rows += [(query, doc, float(-place)) for place, doc in enumerate(rest[:others])]
    run = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    run.attrs = {"system": "s", "collection": "tiny"}
    return runs.order_run(run)


RANKS = {"p-1": 1, "p-2": 2, "q-1": 4, "q-2": 3}


def test_statements_know_their_partner_their_pair_and_their_fields(small: Collection) -> None:
    """By the ids and the first tags; distractors have no row."""
    rows = partner_statements(small).to_dict("records")
    assert rows[1] == {"query_id": "p-2", "partner": "p-1", "pair": "p", "field": "modules",
                       "domain_pair": "spaces / modules"}  # fmt: skip
    assert [row["query_id"] for row in rows] == list(PARTNER)


def test_measures_are_those_of_the_partners_rank(small: Collection) -> None:
    """By hand: ranks 1, 2, 4, 3 of four."""
    values = lab.analysis.partner_values(whole_run(RANKS), small)
    found = values.pivot(index="query_id", columns="measure", values="value")
    assert found["Rank"].to_dict() == RANKS
    assert found["RR"].to_dict() == pytest.approx({name: 1 / rank for name, rank in RANKS.items()})
    for k in (1, 3, 5):
        assert found[f"R@{k}"].to_dict() == {name: float(rank <= k) for name, rank in RANKS.items()}
    assert list(dict.fromkeys(values.measure)) == list(MEASURES)
    assert set(values.system) == {"s"} and set(values.domain_pair) == {"spaces / modules"}


def test_the_statement_itself_never_competes(small: Collection) -> None:
    """Also where the collection has no rule against it and the run puts it first."""
    itself = pd.DataFrame({"query_id": list(PARTNER), "doc_id": list(PARTNER), "score": 9.0})
    run = pd.concat(
        [whole_run(RANKS)[["query_id", "doc_id", "score"]].astype({"query_id": str, "doc_id": str}), itself]
    )
    assert lab.analysis.partner_values(run, small, ["Rank"]).value.tolist() == list(RANKS.values())


def test_without_distractors_ranks_close_up(small: Collection) -> None:
    """The distractor is the last of the rest, so only rank 4 moves."""
    values = lab.analysis.partner_values(whole_run(RANKS), small, ["Rank"], distractors=False)
    assert values.value.tolist() == [1, 2, 3, 3]


def test_a_run_that_may_have_been_cut_is_refused(small: Collection) -> None:
    """Ranks beyond its depth would be wrong unseen; the same run, whole, is taken."""
    with pytest.raises(
        MirblabError,
        match=r"ranks 3 of 4 other statements for 'p-1', and too few for 4 of 4.*a run of depth 4 or more",
    ):
        lab.analysis.partner_values(whole_run(RANKS, others=3), small)
    with pytest.raises(MirblabError, match="too few for 1 of 4"):
        lab.analysis.partner_values(whole_run(RANKS).iloc[1:], small)
    c = lab.load("mini-pairs")
    with pytest.raises(MirblabError, match="ranks 20 of 323 other statements"):
        lab.analysis.partner_values(lab.system("bm25").search(c, depth=20), c)


def test_an_imported_run_must_be_whole_too(tmp_path: Path) -> None:
    """Its depth is what somebody once wrote, also when it is asked for by the system's name."""
    c = lab.load("mini-pairs")
    for name, depth in (("whole", 324), ("cut", 20)):
        rows = [(query, doc, float(-place)) for query in c.query_ids for place, doc in enumerate(c.doc_ids[:depth])]
        run = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
        run.attrs["system"] = name
        runs.write_run(run, tmp_path / f"{name}.trec")
        imported.import_results(tmp_path / f"{name}.trec", collection="mini-pairs", origin="elsewhere")
    assert lab.analysis.partner_values("whole", c, ["Rank"]).value.between(1, 323).all()
    with pytest.raises(MirblabError, match="of 323 other statements for"):
        lab.analysis.partner_values("cut", c)


def test_a_fusion_of_shallow_runs_is_refused(tmp_path: Path) -> None:
    """Whatever lies around it; the usual depth is enough for the bundled pairs."""
    c = lab.load("mini-pairs")
    (tmp_path / "home" / "registry").mkdir(parents=True, exist_ok=True)
    entry = '[shallow]\nkind = "fusion"\nlabel = "x"\nof = ["bm25", "chargrams"]\nmethod = "rrf"\ndepth = 20\n'
    (tmp_path / "home" / "registry" / "systems.toml").write_text(entry)
    assert lab.analysis.partner_values("bm25+chargrams", c, ["Rank"]).value.between(1, 323).all()
    with pytest.raises(MirblabError, match="the name of a system that does not cut its runs"):
        lab.analysis.partner_values("shallow", c)


def test_what_a_system_does_not_return_ties_for_the_places_left(small: Collection) -> None:
    """BM25 finds no word of q-2 anywhere: places 1 to 4 are left, 2.5 in the middle; other measures are 0."""
    values = lab.analysis.partner_values("bm25", small, ["R@5", "RR", "Rank"]).pivot(
        index="query_id", columns="measure", values="value"
    )
    assert values.loc["q-2"].to_dict() == {"R@5": 0.0, "RR": 0.0, "Rank": 2.5}
    # q-1 shares words with p-1 and d1; q-2 has one of the two places behind them.
    assert values.loc["q-1", "Rank"] == 3.5
    # p-1: d1 shares two words, q-1 and p-2 one each, and of equals the larger id is first.
    assert values.loc["p-1", "Rank"] == 3.0 and values.loc["p-2", "RR"] == 1.0


def test_ranks_are_those_of_the_systems_scores() -> None:
    """An oracle for all of mini-pairs: how many of the other statements score above the partner."""
    c = lab.load("mini-pairs")
    run = lab.system("chargrams").search(c, depth=2000).astype({"query_id": str, "doc_id": str})
    scores = run.pivot(index="query_id", columns="doc_id", values="score").fillna(-1.0)
    table = partner_statements(c).set_index("query_id")
    found = lab.analysis.partner_values("chargrams", c, ["Rank"]).set_index("query_id").value
    for name, own in scores.iterrows():
        partner = own[table.partner[name]]
        above, same = (own.drop(name) > partner).sum(), (own.drop(name) == partner).sum()
        assert above + 1 <= found[name] <= above + same


def test_broken_pairs_are_named(make_folder: Callable[..., Path]) -> None:
    """Two partners, one that looks elsewhere, ids that do not match, a query that is no document."""

    def message(qrels: str, **more: str) -> str:
        with pytest.raises(MirblabError) as error:
            partner_statements(lab.load(folder(make_folder, qrels=qrels, **more)))
        return str(error.value)

    both = "".join(f"{one}\t{other}\t1\n" for one, other in PARTNER.items())
    assert "each statement has one partner, found 5 relevant documents for 4 queries" in message(both + "p-1\td1\t1\n")
    assert "'p-2' is the partner of 'p-1', whose partner is 'q-1'" in message("p-1\tp-2\t1\np-2\tq-1\t1\n")
    assert "found 'p-1' and 'q-1'" in message("p-1\tq-1\t1\nq-1\tp-1\t1\n")
    assert "'d1' is the partner of 'p-1', whose partner is nothing" in message("p-1\td1\t1\n")
    with pytest.raises(MirblabError, match="mini-qa is no collection of pairs"):
        lab.analysis.partner_values("bm25", lab.load("mini-qa"))


def test_pairs_are_the_unit_of_resampling(small: Collection) -> None:
    """One value per pair; the interval is that of two pairs, not of four statements."""
    values = lab.analysis.partner_values(whole_run(RANKS), small, ["RR", "Rank"])
    pairs = lab.analysis.mean_by_pair(values)
    ranks = pairs[pairs.measure == "Rank"]
    assert dict(zip(ranks.query_id, ranks.value, strict=True)) == {"p": 1.5, "q": 3.5}
    interval = lab.bootstrap_intervals(pairs, "Rank").iloc[0]
    assert (interval["mean"], interval.low, interval.high, interval.n_queries) == (2.5, 1.5, 3.5, 2)
    assert set(lab.analysis.mean_by_pair(values, domains=True).collection) == {"spaces / modules"}


def test_the_table_has_the_papers_columns_and_the_lowest_rank_is_best(small: Collection) -> None:
    """Percent, MRR, mean rank; the best of each, and what chance gives."""
    runs_of = {"s": RANKS, "t": {"p-1": 4, "p-2": 4, "q-1": 4, "q-2": 1}}
    values = pd.concat(
        [
            lab.analysis.partner_values(whole_run(ranks).copy(), small).assign(system=name)
            for name, ranks in runs_of.items()
        ]
    )
    intervals = lab.bootstrap_intervals(lab.analysis.mean_by_pair(values))
    table = lab.analysis.partner_table(intervals, others=4)
    assert list(table.frame) == ["Recall@1", "Recall@3", "Recall@5", "Recall@10", "Recall@20", "MRR", "Mean rank"]
    assert table.frame.loc["s"].tolist() == pytest.approx([25, 75, 100, 100, 100, (1 + 1 / 2 + 1 / 4 + 1 / 3) / 4, 2.5])
    marks = lab.analysis.partner_table(intervals).marks
    assert marks["Mean rank"].tolist() == ["best", "second"] and marks["MRR"]["s"] == "best"
    assert set(table.marks.to_numpy().flat) == {""}  # every interval contains what chance gives
    assert table.frame.loc["by chance"].tolist() == pytest.approx(
        [25, 75, 100, 100, 100, (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4, 2.5]
    )
    assert table.beside["Mean rank"].tolist()[::2] == ["[1.5, 3.5]", ""]
    by_field = lab.analysis.partner_table(
        lab.bootstrap_intervals(lab.analysis.mean_by_pair(values, domains=True)), measures=["Rank"]
    )
    assert list(by_field.frame) == ["Mean rank"]
    two = pd.concat([lab.analysis.mean_by_pair(values).assign(collection=name) for name in ("tiny", "other")])
    several = lab.analysis.partner_table(lab.bootstrap_intervals(two), measures=["RR"], brackets=False)
    assert several.frame.index.tolist() == ["tiny: s", "tiny: t", "other: s", "other: t"]
    assert several.marks["MRR"].tolist() == ["best", "second", "best", "second"] and several.beside.empty
    assert ["within each" in " ".join(shown.notes) for shown in (table, several)] == [False, True]
    with pytest.raises(MirblabError, match="no measure 'RX'"):
        lab.analysis.partner_table(lab.bootstrap_intervals(two), measures=["RX"])


def test_only_what_is_better_than_chance_is_marked() -> None:
    """Of the best mean rank, the whole interval has to lie below that of a random order, of recall above it."""
    rows = [("R@1", "s", 0.5, 0.2, 0.7), ("R@1", "t", 0.1, 0.0, 0.4), ("Rank", "s", 2, 1, 5.4), ("Rank", "t", 3, 2, 6)]
    intervals = pd.DataFrame(rows, columns=["measure", "system", "mean", "low", "high"])
    table = lab.analysis.partner_table(intervals.assign(collection="c", n_queries=9), others=10)
    assert table.frame.loc["by chance"].tolist() == [10, 5.5]
    assert table.marks.to_numpy().tolist() == [["best", "best"], ["", ""], ["", ""]]


def idf(df: int) -> float:
    return math.log(1 + (5 - df + 0.5) / (df + 0.5))


def test_overlap_is_the_weight_of_shared_tokens_over_that_of_all(small: Collection) -> None:
    """By hand: p-1 and p-2 share basis, of space, basis, rank, module, length; nothing is shared by q-1 and q-2."""
    table = lab.analysis.vocabulary_overlaps(small, tokenizer="words").set_index("query_id")
    expected = idf(3) / (idf(3) + idf(3) + idf(1) + idf(1) + idf(1))
    assert table.overlap[["p-1", "p-2"]].tolist() == pytest.approx([expected] * 2)
    assert table.overlap[["q-1", "q-2"]].tolist() == [0.0, 0.0]
    rival = 2 * idf(3) / (2 * idf(3) + idf(1) + idf(2))
    assert table.rival["p-1"] == "d1" and table.rival_overlap["p-1"] == pytest.approx(rival)
    # of the modules, p-2 has q-2 beside it only, which shares nothing
    assert (table.rival["p-2"], table.rival_overlap["p-2"]) == ("q-2", 0.0)
    assert table.trapped.to_dict() == {"p-1": True, "p-2": False, "q-1": True, "q-2": False}
    assert table.margin["p-1"] == pytest.approx(expected - rival)


def test_a_field_of_one_statement_has_no_rival(make_folder: Callable[..., Path]) -> None:
    """And a text without tokens shares nothing."""
    rows = [{"_id": f"p-{n}", "text": "$$" if n == 1 else "ring", "tags": [f"f{n}"]} for n in (1, 2)]
    table = lab.analysis.vocabulary_overlaps(
        lab.load(make_folder(rows, rows, "p-1\tp-2\t1\np-2\tp-1\t1\n")), tokenizer="words"
    )
    assert (
        table.rival.tolist() == ["", ""] and table.rival_overlap.isna().all() and table.overlap.tolist() == [0.0, 0.0]
    )
    assert not table.trapped.any()


def test_tokens_count_once_and_order_does_not_matter(make_folder: Callable[..., Path]) -> None:
    """By hand, of two statements: ring is in both, ideal in one."""
    rows = [{"_id": "p-1", "text": "ring ring ring"}, {"_id": "p-2", "text": "ideal ring"}]
    table = lab.analysis.vocabulary_overlaps(
        lab.load(make_folder(rows, rows, "p-1\tp-2\t1\np-2\tp-1\t1\n")), tokenizer="words"
    )
    both, one = math.log(1 + 0.5 / 2.5), math.log(1 + 1.5 / 1.5)
    assert table.overlap.tolist() == pytest.approx([both / (both + one)] * 2)


def test_correlations_agree_with_scipy_and_draw_pairs() -> None:
    """Rho over statements; the interval over pairs is wider than one that takes them for independent."""
    rng = np.random.default_rng(3)
    pair = np.repeat(np.arange(40), 2)
    x = np.repeat(rng.random(40), 2)
    ranks = (50 - 30 * x + np.repeat(rng.normal(0, 9, 40), 2)).round()
    points = pd.DataFrame(
        {"collection": "c", "system": "s", "pair": pair, "overlap": x, "rank": ranks, "rival_overlap": 1.0}
    )
    found = lab.analysis.rank_correlations(points).iloc[0]
    assert found.rho == pytest.approx(spearmanr(x, ranks).statistic) and found.n_pairs == 40
    _, low, high = spearman_interval(points[["overlap", "rank"]].to_numpy())
    assert found.low < low < found.rho < high < found.high
    assert lab.analysis.rank_correlations(points).equals(lab.analysis.rank_correlations(points))
    assert len(lab.analysis.rank_correlations(points)) == 1  # what does not vary is left out
    with pytest.raises(MirblabError, match="groups must be of one size to be drawn as wholes, found 1 to 2"):
        lab.analysis.rank_correlations(points.iloc[1:])
    assert np.isnan(spearman_interval(np.ones((3, 2)))).all()


def test_points_need_ranks_and_shares_of_the_same_collection(small: Collection) -> None:
    """Each system's statements beside what they share."""
    values, shares = lab.analysis.partner_values(whole_run(RANKS), small), lab.analysis.vocabulary_overlaps(small)
    points = lab.analysis.overlap_points(values, shares)
    assert points["rank"].tolist() == list(RANKS.values()) and points.query_id.tolist() == list(PARTNER)
    with pytest.raises(MirblabError, match="no measure 'Rank'"):
        lab.analysis.overlap_points(values[values.measure == "RR"], shares)
    with pytest.raises(MirblabError, match="4 statements have no share"):
        lab.analysis.overlap_points(values, shares.assign(collection="other"))


def drawn(n_systems: int, share: str = "overlap") -> list[plt.Axes]:
    """Return the plot of many points, by as many systems."""
    rng = np.random.default_rng(0)
    parts = [
        pd.DataFrame({"system": f"system-{n}", "rank": rng.integers(1, 500, 90), "overlap": rng.random(90) / 3,
                      "margin": rng.random(90) - 0.8})
        for n in range(n_systems)
    ]  # fmt: skip
    systems = [f"system-{n}" for n in range(n_systems)]
    rho = pd.DataFrame({"system": systems, "share": share, "rho": -0.5, "low": -0.7, "high": 0.1})
    return lab.plots.overlap(pd.concat(parts), rho, share=share)


@pytest.mark.parametrize("n_systems", [1, 2, 3, 5])
@pytest.mark.parametrize("share", ["overlap", "margin"])
def test_nothing_leaves_the_page_or_lies_on_something_else(n_systems: int, share: str) -> None:
    """Titles, labels and numbers on the axes; panels share their ranges."""
    axes = drawn(n_systems, share)
    figure = axes[0].figure
    figure.canvas.draw()
    texts = [text for ax in axes for text in (ax._left_title, ax.xaxis.label, ax.yaxis.label)]
    for ax in axes:
        inside = [
            text for text in ax.get_xticklabels() if ax.get_xlim()[0] <= text.get_position()[0] <= ax.get_xlim()[1]
        ]
        texts += [*inside, *(ax.get_yticklabels() if ax is axes[0] else ())]
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    boxes = [box for box in boxes if box.width]
    width, height = figure.canvas.get_width_height()
    assert all(box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1 for box in boxes)
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
    assert len({ax.get_xlim() for ax in axes}) == 1 and len({ax.get_ylim() for ax in axes}) == 1
    assert min(ax.get_window_extent().height for ax in axes) > 120


def test_the_plot_shows_every_point_and_the_medians_of_five_groups() -> None:
    """Rank 1 is on top; groups are equally large; rho is taken from the table."""
    ax = drawn(1)[0]
    assert len(ax.collections[0].get_offsets()) == 90
    assert ax.get_ylim()[0] > ax.get_ylim()[1] and ax.get_yscale() == "log"
    points = pd.DataFrame(ax.collections[0].get_offsets(), columns=["overlap", "rank"]).sort_values("overlap")
    medians = [points["rank"][at : at + 18].median() for at in range(0, 90, 18)]
    assert ax.lines[0].get_ydata().tolist() == medians
    assert ax.get_title("left") == "system-0\nρ = −0.50 [−0.70, 0.10]"
    points = pd.DataFrame({"system": ["s"], "rank": [1], "overlap": [0.1]})
    none = pd.DataFrame(columns=["system", "share", "rho", "low", "high"])
    with pytest.raises(MirblabError, match="s needs one correlation of its ranks with 'overlap', found 0"):
        lab.plots.overlap(points, none)
    with pytest.raises(MirblabError, match="no share 'rank'"):
        lab.plots.overlap(points, none, share="rank")


def test_the_published_tables_stand_beside() -> None:
    """Tables 2 and 5 to the last digit, of which the notebook shows all."""
    recall, ranks = lab.evaluation.paper_table("meld", 2), lab.evaluation.paper_table("meld", 5)
    assert recall.loc["Octen-Embedding-8B"].tolist() == [25.0, 50.6, 62.8, 77.4, 88.9]
    assert ranks.loc["llama-embed-nemotron-8b"].tolist() == [0.08, 94.7]
    assert (len(recall), len(ranks)) == (8, 9)


def test_other_names_of_measures_select_their_values(small: Collection) -> None:
    """As evaluate does."""
    values = lab.analysis.partner_values(whole_run(RANKS), small, ["Recall@5", "mrr"])
    assert set(values.measure) == {"R@5", "RR"}
