"""Tables mark, round, escape and say what they show; files carry their provenance."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mirblab.core.errors import MirblabError
from mirblab.display import escape, result_tables, table_formats
from mirblab.display.escape import _MISSING, _commands
from mirblab.evaluation import significance
from mirblab.evaluation.measures import evaluate
from mirblab.retrieval.systems import system
from mirblab.sources.catalogue import load


def make(rows: dict[tuple[str, str, str], list[float]]) -> pd.DataFrame:
    """Return a values table from lists of values by (system, collection, measure)."""
    long = [(*key, f"q{n}", float(value)) for key, numbers in rows.items() for n, value in enumerate(numbers)]
    return pd.DataFrame(long, columns=["system", "collection", "measure", "query_id", "value"])


@pytest.fixture
def values() -> pd.DataFrame:
    """Return two systems and a third that ties, on three collections of two tasks."""
    return make({
        ("bm25_a", "c1", "RR"): [0.5, 0.25], ("bm25_a", "c2", "RR"): [0.5, 0.5], ("bm25_a", "d1", "RR"): [0.1, 0.2],
        ("dense", "c1", "RR"): [1.0, 0.25], ("dense", "c2", "RR"): [0.2, 0.3], ("dense", "d1", "RR"): [0.4, 0.5],
        ("fused", "c1", "RR"): [1.0, 0.25004], ("fused", "c2", "RR"): [0.0, 0.1], ("fused", "d1", "RR"): [0.3, 0.2],
    })  # fmt: skip


TASKS = {"c1": "Questions", "c2": "Questions", "d1": "Premises"}


def test_best_is_bold_second_underlined_and_what_prints_the_same_shares(values: pd.DataFrame) -> None:
    """62.50 and 62.50 (62.502) tie for best, 37.50 is second."""
    shown = result_tables.main_table(values, "RR")
    column = ("", "c1")
    assert shown.marks[column].tolist() == ["second", "best", "best"]
    assert [cells[0].text for _, cells in shown.rows()] == ["37.50", "62.50", "62.50"]
    assert result_tables.main_table(values, "RR", digits=3).marks[column].tolist() == ["", "second", "best"]
    assert any("share the mark" in note for note in shown.notes)


def test_a_single_system_is_not_marked(values: pd.DataFrame) -> None:
    """Nothing is best where nothing competes."""
    shown = result_tables.main_table(values[values.system == "dense"], "RR")
    assert (shown.marks == "").all(axis=None)
    assert not any("Bold" in note for note in shown.notes)


def test_averages_are_unweighted_over_collections_and_say_of_how_many(values: pd.DataFrame) -> None:
    """A collection with more queries counts no more; a task with one collection gets no average of its own."""
    more = make(
        {("bm25_a", "d1", "RR"): [0, 0, 0.9, 0.9], ("bm25_a", "c1", "RR"): [0.5], ("bm25_a", "c2", "RR"): [0.1]}
    )
    shown = result_tables.main_table(more, "RR", tasks=TASKS)
    assert shown.frame["Average", "all (3)"].iloc[0] == pytest.approx(100 * (0.45 + 0.5 + 0.1) / 3)
    assert shown.frame["Average", "Questions (2)"].iloc[0] == pytest.approx(30)
    assert ("Average", "Premises (1)") not in shown.frame
    assert "Queries: d1 4, c1 1, c2 1." in shown.notes
    one = result_tables.main_table(values[values.collection == "c1"], "RR", tasks=TASKS)
    assert one.frame.columns.tolist() == ["c1"]


def test_a_system_without_a_collection_has_a_dash_and_no_average(values: pd.DataFrame) -> None:
    """Means over different sets of collections are not compared."""
    shown = result_tables.main_table(values.query("not (system == 'dense' and collection == 'd1')"), "RR", tasks=TASKS)
    cells = dict(shown.rows())["dense"]
    assert [cell.text for cell in cells] == ["62.50", "25.00", "–", "43.75", "–"]
    assert any("has no average" in note for note in shown.notes)
    partly = result_tables.main_table(values.query("not (system == 'dense' and collection == 'c2')"), "RR", tasks=TASKS)
    assert np.isnan(partly.frame.loc["dense", ("Average", "Questions (2)")])


GROUPS = {"p1": "Parts", "p2": "Parts"}


@pytest.fixture
def grouped() -> pd.DataFrame:
    """Return two systems on one collection of its own and two that share a printed column, of different sizes."""
    return make({
        ("bm25_a", "c1", "RR"): [0.8, 0.4], ("bm25_a", "p1", "RR"): [0.1, 0.1, 0.4], ("bm25_a", "p2", "RR"): [0.6],
        ("dense", "c1", "RR"): [0.5, 0.5], ("dense", "p1", "RR"): [0.9, 0.9, 0.9], ("dense", "p2", "RR"): [0.5],
    })  # fmt: skip


def test_a_group_is_one_column_the_unweighted_mean_of_its_collections(grouped: pd.DataFrame) -> None:
    """(0.2 + 0.6) / 2, not the mean over four queries (0.3); it counts once: (60 + 40) / 2."""
    shown = result_tables.main_table(grouped, "RR", groups=GROUPS, tasks=dict.fromkeys(("c1", "p1", "p2"), "Premises"))
    assert shown.frame.columns.tolist() == [("Premises", "c1"), ("Premises", "Parts"), ("Average", "all (2)")]
    np.testing.assert_allclose(shown.frame.to_numpy(), [[60, 40, 50], [50, 70, 60]])
    assert shown.marks["Premises", "Parts"].tolist() == ["second", "best"]
    assert "Parts: unweighted mean of p1, p2; tests are made on these, not on their mean." in shown.notes
    assert "Queries: c1 2, p1 3, p2 1." in shown.notes


def test_the_average_over_twelve_counts_the_group_once_per_task_and_overall() -> None:
    """Eleven columns and four parts make twelve; every average is recomputed by hand."""
    generator = np.random.default_rng(1)
    names = [f"c{n}" for n in range(11)] + [f"p{n}" for n in range(4)]
    tasks = {name: "Premises" if name[0] == "p" or name in ("c0", "c1", "c2") else "Others" for name in names}
    rows = {("s", name, "RR"): generator.random(3 + n).tolist() for n, name in enumerate(names)}
    means = {name: 100 * sum(numbers) / len(numbers) for (_, name, _), numbers in rows.items()}
    group = sum(means[f"p{n}"] for n in range(4)) / 4
    shown = result_tables.main_table(make(rows), "RR", tasks=tasks, groups={f"p{n}": "Whole" for n in range(4)}).frame
    assert shown["Premises", "Whole"].item() == pytest.approx(group)
    premises = (means["c0"] + means["c1"] + means["c2"] + group) / 4
    assert shown["Average", "Premises (4)"].item() == pytest.approx(premises)
    assert shown["Average", "all (12)"].item() == pytest.approx((sum(means[f"c{n}"] for n in range(11)) + group) / 12)


def test_a_group_has_distance_and_judged_share_but_no_signs(grouped: pd.DataFrame) -> None:
    """The paper's number is asked for under the group's name; tests are made by collection and stand nowhere else."""
    paper = {("dense", "Parts"): 70.02, ("dense", "p1"): 1.0}
    done = significance.compare(grouped, "RR", baseline="bm25_a", n_permutations=99, n_resamples=9)
    done = done.assign(significant=True)
    shown = result_tables.main_table(
        grouped, "RR", groups=GROUPS, published=lambda *key: paper.get(key), comparison=done
    )
    assert shown.beside["", "Parts"].tolist() == ["", "(−0.02 OK)"]
    assert shown.signs["", "c1"].tolist() == ["", "‡"]
    assert (shown.signs["", "Parts"] == "").all()
    prime = pd.concat([grouped.assign(measure="RR'"), grouped.assign(measure="Judged@5")])
    shared = result_tables.main_table(prime, "RR'", groups=GROUPS)
    assert shared.frame["Judged@5", "Parts"].tolist() == pytest.approx([40, 70])


def test_a_group_that_is_not_complete_stays_apart(grouped: pd.DataFrame) -> None:
    """Three parts are not the paper's column: nothing is averaged, and the note says what is missing."""
    shown = result_tables.main_table(grouped, "RR", groups=GROUPS | {"p3": "Parts"})
    assert [result_tables.column_name(name) for name in shown.frame.columns] == ["c1", "p1", "p2", "all (3)"]
    assert "Parts is not complete: p3 is missing, so its parts stand apart." in shown.notes
    lacks = grouped.query("not (system == 'dense' and collection == 'p2')")
    cells = dict(result_tables.main_table(lacks, "RR", groups=GROUPS).rows())["dense"]
    assert [cell.text for cell in cells] == ["50.00", "–", "–"]
    assert result_tables.main_table(grouped, "RR", groups={"elsewhere": "Parts"}).frame.shape == (2, 4)


def test_a_group_needs_one_task_and_a_name_of_its_own(grouped: pd.DataFrame) -> None:
    """Else nobody could say which average it belongs to."""
    with pytest.raises(MirblabError, match="several tasks: A, B"):
        result_tables.main_table(grouped, "RR", groups=GROUPS, tasks={"p1": "A", "p2": "B"})
    with pytest.raises(MirblabError, match="'c1' has the name of a collection"):
        result_tables.main_table(grouped, "RR", groups=dict.fromkeys(GROUPS, "c1"))


def test_signs_follow_the_comparison_with_the_baseline() -> None:
    """† for a significant gain, ‡ for a loss, nothing otherwise; the note names test, level and family."""
    generator = np.random.default_rng(0)
    base = generator.random(40) * 0.5 + 0.25
    noise = generator.normal(0, 0.01, 40)
    systems = {"base": base, "up": base + 0.1 + noise, "down": base - 0.1 + noise, "same": base[::-1]}
    found = make({(name, "c", "RR"): numbers for name, numbers in systems.items()})
    comparison = significance.compare(found, "RR", baseline="base", n_permutations=2000, n_resamples=100)
    shown = result_tables.main_table(found, "RR", comparison=comparison)
    assert shown.signs["c"].to_dict() == {"base": "", "up": "†", "down": "‡", "same": ""}
    assert r"\textbf{" in shown.to_latex()
    assert r"}$^{\dagger}$" in shown.to_latex()
    assert "<sup>‡</sup>" in shown.to_html()
    assert any("permutation test" in note and "c (3 comparisons)" in note and "base" in note for note in shown.notes)
    for name, words in {"holm": "after Holm's correction; family", "bh": "after Benjamini and Hochberg's correction; f",
                        "bonferroni": "after Bonferroni's correction; f",
                        "none": "p at most 0.05 without correction."}.items():  # fmt: skip
        done = significance.compare(found, "RR", baseline="base", correction=name, n_permutations=99, n_resamples=9)
        assert words in " ".join(result_tables.main_table(found, "RR", comparison=done).notes)
    with pytest.raises(MirblabError, match="one baseline, found 3"):
        result_tables.main_table(
            found, "RR", comparison=significance.compare(found, "RR", n_permutations=9, n_resamples=9)
        )


def test_a_comparison_of_another_measure_is_refused_and_an_empty_one_ignored(values: pd.DataFrame) -> None:
    """Signs must speak of the numbers they stand at; one system alone has no comparisons."""
    done = significance.compare(values, "RR", baseline="dense", n_permutations=99, n_resamples=9)
    with pytest.raises(MirblabError, match="the comparison is of AP, the table of RR"):
        result_tables.main_table(values, "RR", comparison=done.assign(measure="AP"))
    alone = values[values.system == "dense"]
    none = significance.compare(alone, "RR", baseline="dense", n_permutations=99, n_resamples=9)
    assert result_tables.main_table(alone, "RR", comparison=none).signs.empty
    assert "the 2 comparisons of each collection" in " ".join(
        result_tables.main_table(values, "RR", comparison=done).notes
    )


def test_distance_to_the_paper_stands_beside_the_number(values: pd.DataFrame) -> None:
    """Three states by tolerance; where the paper has no number nothing stands, and the CSV holds all three columns."""
    paper = {("bm25_a", "c1"): 37.52, ("bm25_a", "c2"): 49.0, ("dense", "c1"): 50.0}
    shown = result_tables.main_table(values, "RR", tasks=TASKS, published=lambda *key: paper.get(key))
    beside = shown.beside["Questions", "c1"].tolist()
    assert beside == ["(−0.02 OK)", "(+12.50 off)", ""]
    assert shown.beside["Questions", "c2"].iloc[0] == "(+1.00 near)"
    written = pd.read_csv(io.StringIO(shown.to_csv()), index_col=0)
    assert written.loc["bm25_a", ["Questions: c1", "Questions: c1: paper", "Questions: c1: state"]].tolist() == [
        37.5,
        37.52,
        "OK",
    ]
    assert "Premises: d1: paper" not in written
    assert result_tables.main_table(values, "RR", published=lambda *_: None).beside.empty


def test_a_prime_measure_never_stands_alone() -> None:
    """Judged@k comes along without marks, by collection and by measure; where it lacks, the table says so."""
    found = make(
        {(s, "c", m): [v, v] for s, v in (("a", 0.5), ("b", 0.4)) for m in ("nDCG'", "AP'", "Judged@5", "Judged@10")}
    )
    shown = result_tables.main_table(found, "nDCG'")
    assert shown.frame.columns.tolist() == [("", "c"), ("Judged@5", "c")]
    assert shown.marks["Judged@5", "c"].tolist() == ["", ""]
    assert shown.marks["", "c"].tolist() == ["best", "second"]
    both = result_tables.main_table(found, ["nDCG'", "AP'"], by="measure")
    assert both.frame.columns.tolist() == ["nDCG'", "AP'", "Judged@5"]
    assert both.marks["Judged@5"].tolist() == ["", ""]
    for by in ("collection", "measure"):
        bare = result_tables.main_table(found[found.measure == "nDCG'"], "nDCG'", by=by)
        assert any("Judged@k" in note and "missing" in note for note in bare.notes)


def test_signs_stand_at_the_measure_and_not_at_its_judged_share() -> None:
    """Both columns bear the collection's name; only the first one is compared."""
    numbers = {"a": [0.9] * 12, "b": [0.1] * 12}
    found = make({(s, "c", m): v for s, v in numbers.items() for m in ("nDCG'", "Judged@10")})
    done = significance.compare(found, "nDCG'", baseline="b", n_permutations=999, n_resamples=9)
    assert result_tables.main_table(found, "nDCG'", comparison=done).signs.loc["a"].tolist() == ["†", ""]


def test_judged_has_the_k_of_the_measure() -> None:
    """P'@10 goes with Judged@10 even when Judged@5 comes first."""
    found = make({("a", "c", m): [0.5] for m in ("P'@10", "Judged@5", "Judged@10")})
    assert result_tables.main_table(found, "P'@10").frame.columns.tolist() == [("", "c"), ("Judged@10", "c")]


def test_wrong_layouts_are_refused(values: pd.DataFrame) -> None:
    """Unknown measures and layouts are named; one table shows one measure or one collection."""
    with pytest.raises(MirblabError, match="no measure 'R'; did you mean 'RR'"):
        result_tables.main_table(values, "R")
    with pytest.raises(MirblabError, match="no layout 'query'"):
        result_tables.main_table(values, "RR", by="query")
    with pytest.raises(MirblabError, match="one collection, found 3"):
        result_tables.main_table(values, "RR", by="measure")
    with pytest.raises(MirblabError, match="one measure, found 2"):
        result_tables.main_table(values, ["RR", "RR"])


def test_intervals_stand_in_brackets(values: pd.DataFrame) -> None:
    """Each mean is followed by its interval; other collections' intervals are not mixed up."""
    intervals = significance.bootstrap_intervals(values, "RR", n_resamples=200)
    shown = result_tables.interval_table(values, intervals)
    row = intervals.set_index(["system", "collection"]).loc[("dense", "c2")] * 1
    assert shown.beside.loc["dense", "c2"] == f"[{100 * row.low:.2f}, {100 * row.high:.2f}]"
    assert "c2: low" in shown.to_csv().splitlines()[0]
    with pytest.raises(MirblabError, match="lack a system"):
        result_tables.interval_table(values, intervals[intervals.system != "dense"])


def test_latex_of_a_small_table_character_by_character() -> None:
    """The whole environment, with its notes."""
    found = make({("bm25_a", "c&1", "RR"): [0.5, 0.25], ("x>y", "c&1", "RR"): [1.0, 0.5]})
    shown = result_tables.main_table(found, "RR", caption="50% of $5")
    assert shown.to_latex("tab:x", {"seed": 0, "commit": "ab_c"}) == "\n".join([
        r"% needs \usepackage{amsmath,amssymb,booktabs}", "% seed: 0",
        '% commit: "ab_c"',
        r"\begin{table}",
        r"\centering",
        r"\caption{50\% of \$5}",
        r"\label{tab:x}",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"system & c\&1 \\",
        r"\midrule",
        r"bm25\_a & \underline{37.50} \\",
        r"x\textgreater{}y & \textbf{75.00} \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\footnotesize Queries: c\&1 2.",
        r"\par\footnotesize Bold: the best system; underlined: the second. Systems that print the same share the mark.",
        r"\end{table}",
        "",
    ])  # fmt: skip


def test_latex_groups_span_their_columns(values: pd.DataFrame) -> None:
    """Tasks stand above their collections with a rule; more than eight columns turn their heads."""
    text = result_tables.main_table(values, "RR", tasks=TASKS).to_latex()
    assert r" & \multicolumn{2}{c}{Questions} & \multicolumn{1}{c}{Premises} & \multicolumn{2}{c}{Average} \\" in text
    assert r"\cmidrule(lr){2-3}\cmidrule(lr){4-4}\cmidrule(lr){5-6}" in text
    assert r"\rotatebox" not in text
    many = result_tables.table(pd.DataFrame(np.zeros((1, 9)), columns=[f"c{n}" for n in range(9)]))
    assert many.to_latex().count(r"\rotatebox{90}") == 9


def test_every_special_character_is_escaped_on_cells_and_both_axes() -> None:
    r"""`_ % & # $ \ { } ~ ^` in LaTeX; maths is kept whole where it is declared, however long."""
    special = r"_%&#$\{}~^"
    escaped = r"\_\%\&\#\$\textbackslash{}\{\}\textasciitilde{}\textasciicircum{}"
    formula = r"so $\sum_{n=1}^{\infty} \frac{1}{n^2} = \frac{\pi^2}{6}$ & " + "more " * 60 + r"costs \$5"
    frame = pd.DataFrame({special: [special], "text": [formula]}, index=[special])
    text = result_tables.table(frame, maths=["text"]).to_latex()
    assert text.count(escaped) == 3
    assert r"$\sum_{n=1}^{\infty} \frac{1}{n^2} = \frac{\pi^2}{6}$ \& more" in text
    assert text.count("more") == 60
    assert escape.escape_latex("$5 and $6") == r"\$5 and \$6"
    assert escape.escape_latex("only $5", is_maths=True) == r"only \$5"


def test_mathematics_that_reads_files_or_is_html_is_no_mathematics() -> None:
    """In LaTeX its commands are text; in Markdown angle brackets have names, and a link falls apart."""
    assert escape.escape_latex(r"$\input{x}$", is_maths=True) == r"\$\textbackslash{}input\{x\}\$"
    assert not escape.escape_latex("$x^^5cinput{x}$", is_maths=True).startswith("$")  # TeX reads ^^5c as a backslash
    assert escape.escape_latex(r"$\left(x\right)$", is_maths=True) == r"$\left(x\right)$"
    assert escape.escape_markdown("$a<b>[c](d)$", is_maths=True) == r"$a\lt b\gt [c] (d)$"


@pytest.mark.parametrize(
    ("source", "tex"),
    [
        ("so $$x_1$$.", "so $x_1$."), (r"so \[x_1\].", "so $x_1$."), (r"so \(x_1\).", "so $x_1$."),
        (r"\begin{equation*} x_1 \end{equation*}", "$x_1$"),
        (r"\begin{align} a &= b \\ c &= d \end{align}", r"$\begin{aligned} a &= b \\ c &= d \end{aligned}$"),
        (r"$a & b$", r"$\begin{aligned}a & b\end{aligned}$"),
        (r"$\begin{cases} a & b \\ c & d \end{cases}$", r"$\begin{cases} a & b \\ c & d \end{cases}$"),
        (r"$50% \to 5\%$", r"$50\% \to 5\%$"), (r"$\Spec \to \RR$", r"$\operatorname{Spec} \to \mathbb{R}$"),
        (r"$\frac{1$", r"\$\textbackslash{}frac\{1\$"), (r"$x_1\tag{1}$", r"\$x\_1\textbackslash{}tag\{1\}\$"),
        (r"\$5 for $x$", r"\$5 for $x$"), (r"$\leftarrow x$", r"$\leftarrow x$"), ("$αx⁻¹$", r"$\alpha x{}^{-1}$"),
    ],
)  # fmt: skip
def test_a_formula_in_a_cell_ends_in_it_however_delimited(source: str, tex: str) -> None:
    """Between dollars, whatever it had; what LaTeX would stumble over is text."""
    assert escape.escape_latex(source, is_maths=True) == tex


def test_a_display_keeps_the_pairing_of_dollars_in_markdown() -> None:
    """What is prose is escaped, before a display and after it."""
    assert escape.escape_markdown("a_1 $$x_1$$ b_1 $|y|$", is_maths=True) == r"a\_1 $x_1$ b\_1 $\vert y\vert $"


@pytest.mark.parametrize(
    ("char", "tex"),
    [
        ("∀", r"$\forall$"), ("ℝ", r"$\mathbb{R}$"), ("𝔭₁", r"$\mathfrak{p}{}_{1}$"), ("⁻¹", "$^{-1}$"), ("é", "é"),
        ("Α", r"$\mathrm{A}$"), ("ｘ％", r"x$\mathtt{U{+}FF05}$"), ("\u200b", ""), ("–", "--"), ("≔", "$:=$"),
        ("e\u0301", "é"), ("−", "$-$"), ("Ж", "Ж"), ("⟨α⟩", r"$\langle \alpha \rangle$"),
    ],
)  # fmt: skip
def test_unicode_has_commands_in_latex(char: str, tex: str) -> None:
    """Lean's signatures are full of what pdfLaTeX does not know."""
    assert escape.escape_latex(char) == tex


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex here")
def test_pdflatex_reads_every_sign_and_what_is_no_formula(tmp_path: Path) -> None:
    """In text and in mathematics, each on its own line, with nothing but amsmath and amssymb."""
    signs = [*_commands(), *"𝓝𝔭𝕜ℂ𝟙ₗ⁻⥢½"]
    lines = [f"{escape.escape_latex(sign)} {escape.escape_latex(f'${sign}$', is_maths=True)}" for sign in signs]
    lines += [escape.escape_latex(rf"$\{name}$", is_maths=True) for name in sorted(_MISSING)]
    lines += [escape.escape_latex(f"$x_{sign} y^{sign}$", is_maths=True) for sign in "…ℝ𝓝α∘⊥"]
    lines += [
        escape.escape_latex(f"${odd}$", is_maths=True) for odd in (r"a\\b", "a%b", r"\frac{", "x}", r"\left(x", "a&b")
    ]
    page = r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{amsmath,amssymb}\begin{document}"
    source = tmp_path / "all.tex"
    source.write_text("\n\n".join([page, *lines, r"\end{document}"]), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-file-line-error", source.name]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert not said.returncode, [line for line in said.stdout.splitlines() if "all.tex:" in line]


def _wide_tables() -> dict[str, result_tables.Table]:
    """Return tables that would be wider than a page: of texts, of many numbers, of numbers with intervals."""
    text = "Every finite integral domain is a field; its characteristic is a prime. " * 4
    texts = pd.DataFrame({"rank": [1, 2], "statement": text, "document": text[:200], "grade": ["good", "bad"]})
    names = [f"mini-views-informal-signature-{n}" for n in range(13)]
    means = pd.DataFrame({name: [41.5] for name in ("R@1", "R@3", "R@5", "R@10", "R@20", "MRR", "Rank")}, ["bm25"])
    return {
        "texts": result_tables.table(texts, caption="Texts."),
        "numbers": result_tables.table(pd.DataFrame([[12.345] * 13], ["gte-Qwen2-1.5B"], names)),
        "intervals": replace(result_tables.table(means), beside=means.astype(str).replace("41.5", "[41.5, 165.5]")),
    }


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex here")
@pytest.mark.parametrize("kind", ["texts", "numbers", "intervals"])
def test_a_wide_table_fits_the_two_columns_of_a_page(tmp_path: Path, kind: str) -> None:
    """With the packages that its first line names, in an ordinary article of two columns."""
    table = _wide_tables()[kind].to_latex()
    packages = table.splitlines()[0].removeprefix("% needs ")
    page = rf"\documentclass[twocolumn]{{article}}{packages}\begin{{document}}"
    (tmp_path / "a.tex").write_text(f"{page}\n{table}\n\\end{{document}}\n", "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "a.tex"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert not said.returncode, said.stdout[-2000:]
    assert "Overfull" not in said.stdout


def test_long_texts_share_what_the_other_columns_leave() -> None:
    """Two long columns are broken into lines; numbers and short words keep their width."""
    tex = _wide_tables()["texts"].to_latex()
    assert tex.splitlines()[0] == r"% needs \usepackage{amsmath,amssymb,array,booktabs,graphicx}"
    column = next(line for line in tex.splitlines() if line.startswith(r"\begin{tabular}"))
    assert column.count(r"\raggedright") == 2 and column.startswith(r"\begin{tabular}{lr>") and column.endswith("l}")


def test_texts_that_would_fill_the_page_are_cut_before_a_formula() -> None:
    """Thirty rows have two lines each; the CSV has the whole texts."""
    text = "Every ideal of $R$ is finitely generated, so that $R$ is noetherian, " * 9
    table = result_tables.table(pd.DataFrame({"text": [text] * 30}), maths={"text"})
    rows = [line for line in table.to_latex().splitlines() if "Every" in line]
    assert len(rows) == 30 and all(line.endswith(r" $\ldots$ \\") for line in rows), rows[0]
    assert all(len(line) < 260 and line.count("$") % 2 == 0 for line in rows)
    assert text.strip() in table.to_csv()


def test_no_row_begins_with_what_the_line_before_would_take() -> None:
    r"""A bracket is a width to `\midrule` and a space to `\\`."""
    shown = result_tables.table(pd.DataFrame({"a": [1, 2, 3]}, index=["[x", "*", "y"])).to_latex().splitlines()
    assert [line for line in shown if line.endswith(r"\\")][1:] == [r"{}[x & 1 \\", r"{}* & 2 \\", r"y & 3 \\"]


def test_a_dollar_that_was_escaped_is_a_dollar() -> None:
    r"""Excerpts write `\$` for one in prose; in a formula it stays LaTeX."""
    shown = escape.maths_html(r"\$5 for $x=\$y$")
    assert ">$5 for <math" in shown and r'alttext="x=\$y"' in shown
    assert "mathjax_ignore" in escape.plain_html(r"\(x\)") and "mathjax_ignore" not in escape.plain_html("x")


def test_a_caption_has_formulas_where_the_cells_have() -> None:
    """In every form; elsewhere its dollars are money."""
    frame = pd.DataFrame({"text": ["so $x_1$"]})
    for maths, tex, mark, page in (
        (["text"], r"\caption{50\% of $y_2$}", "50% of $y_2$", "<mi>y</mi>"),
        ([], r"\caption{50\% of \$y\_2\$}", r"50% of \$y\_2\$", ">50% of $y_2$</span></caption>"),
    ):
        shown = result_tables.table(frame, "50% of $y_2$", maths=maths)
        assert tex in shown.to_latex() and shown.to_markdown().startswith(mark)
        assert page in shown.to_html().partition("</caption>")[0] + "</caption>"
        assert page.removesuffix("</caption>") in table_formats.interactive_html(shown).partition("</figcaption>")[0]


def test_html_leaves_colours_to_the_theme_and_maths_to_declared_columns() -> None:
    """No style, no colour; formulas are MathML, other dollars are kept from MathJax; markup is text; tags balance."""
    frame = pd.DataFrame({"a": ["$5 <script>"], "b": ["so $x_1 < y$"], "n": [0.125]}, index=["r&1"])
    text = result_tables.table(frame, "Caption", notes=["a note"], maths=["b"]).to_html()
    assert "color" not in text and "style" not in text and "<script>" not in text
    assert '<td><span class="tex2jax_ignore mathjax_ignore">$5 &lt;script&gt;</span></td>' in text
    assert "<msub><mi>x</mi>" in text and 'alttext="x_1 &lt; y"' in text and ">so <math" in text
    assert '<td class="mirblab-number" data-value="0.125">0.12</td>' in text
    assert '<th scope="row">r&amp;1</th>' in text and ">Caption</bdi></caption>" in text

    class Balance(HTMLParser):
        open: list[str] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    parser = Balance()
    parser.feed(text)
    assert parser.open == []


def test_markdown_has_as_many_cells_in_every_line(values: pd.DataFrame) -> None:
    """Bars are escaped, in maths they become \\vert; groups stand before a colon."""
    text = result_tables.main_table(values, "RR", tasks=TASKS).to_markdown()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {7}
    assert "| Questions: c1 |" in lines[0]
    assert "**62.50**" in lines[4] and r"bm25\_a" in lines[2]
    odd = result_tables.table(pd.DataFrame({"a|b": ["$|x|$"]}), maths=["a|b"]).to_markdown()
    assert r"a\|b" in odd and r"$\vert x\vert $" in odd


def test_numbers_read_well() -> None:
    """Counts have separators, floats their digits, a format of their own wins, missing values are dashes."""
    frame = pd.DataFrame({"n": [1350505, 40], "p": [0.00012, np.nan], "ok": [True, False], "s": ["x", None]})
    rows = [[cell.text for cell in cells] for _, cells in result_tables.table(frame, formats={"p": ".4f"}).rows()]
    assert rows == [["1,350,505", "0.0001", "yes", "x"], ["40", "–", "no", "–"]]
    assert result_tables.table(frame).is_number() == [True, True, False, False]


def test_an_empty_table_is_still_a_table() -> None:
    """No rows: header, rule and nothing else."""
    shown = result_tables.table(pd.DataFrame({"a": []}))
    assert shown.to_markdown().splitlines() == ["|  | a |", "| --- | ---: |"]
    assert r"\midrule" in shown.to_latex()
    assert shown.to_csv() == "name,a\n"


def test_each_level_of_names_has_its_heading() -> None:
    """A CSV has a column per level, so that its rows are as long as its header."""
    levels = pd.MultiIndex.from_tuples([("set.mm", "bm25")], names=["library", "system"])
    grouped = result_tables.table(pd.DataFrame({"a": [1]}, index=levels))
    assert grouped.to_csv() == "library,system,a\nset.mm,bm25,1\n"
    assert grouped.to_markdown().startswith("| library: system | a |")


@pytest.mark.parametrize(
    ("notebook", "label"),
    [("", "tab:main"), ("13_significance", "tab:13_significance:main"), ("α {1}", "tab:-1-:main")],
)
def test_the_label_names_the_notebook(values: pd.DataFrame, tmp_path: Path, notebook: str, label: str) -> None:
    """So that a paper may have tables of the same name from several notebooks."""
    tex, *_ = result_tables.main_table(values, "RR", tasks=TASKS).save(tmp_path, "main", {"notebook": notebook})
    assert rf"\label{{{label}}}" in tex.read_text("utf-8").splitlines()


def test_save_writes_four_files_with_the_same_bytes(values: pd.DataFrame, tmp_path: Path) -> None:
    """TeX, Markdown, CSV and JSON; the provenance stands in the JSON and above the LaTeX; plain numbers in the CSV."""
    shown = result_tables.main_table(values, "RR", tasks=TASKS)
    written = shown.save(tmp_path / "new", "main", {"seed": 3, "commit": "abc"})
    assert [path.name for path in written] == ["main.tex", "main.md", "main.csv", "main.json"]
    before = [path.read_bytes() for path in written]
    assert [path.read_bytes() for path in shown.save(tmp_path / "new", "main", {"seed": 3, "commit": "abc"})] == before
    record = json.loads((tmp_path / "new" / "main.json").read_text("utf-8"))
    assert record["provenance"] == {"seed": 3, "commit": "abc"}
    assert record["notes"] == shown.notes
    assert before[0].startswith(
        b'% needs \\usepackage{amsmath,amssymb,booktabs,graphicx}\n% seed: 3\n% commit: "abc"\n\\begin{table*}'
    )
    numbers = pd.read_csv(tmp_path / "new" / "main.csv", index_col=0)
    assert numbers.loc["bm25_a", "Questions: c1"] == 37.5
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(path.name for path in written)


def test_flat_names_of_one_and_two_levels() -> None:
    """An empty group leaves no colon behind."""
    assert table_formats.flatten_columns(pd.Index(["a", 1])) == ["a", "1"]
    assert table_formats.flatten_columns(pd.MultiIndex.from_tuples([("", "a"), ("t", "b")])) == ["a", "t: b"]


def test_a_note_of_a_run_stands_once_below_the_table(values: pd.DataFrame) -> None:
    """With the systems and the collection that it is about, however many values they have."""
    first, second = values.system.unique()[:2]
    where = values.collection.unique()[0]
    is_noted = values.system.isin([first, second]) & (values.collection == where)
    noted = values.assign(note=np.where(is_noted, "2 of 3 queries have no formula", None))
    notes = result_tables.main_table(noted, values.measure.iloc[0]).notes
    line = f"{first}, {second} on {where}: 2 of 3 queries have no formula."
    assert notes.count(line) == 1 and sum("no formula" in note for note in notes) == 1


def test_a_system_without_formulas_says_so_below_its_values() -> None:
    """From the run's attrs through the values to the notes of tables."""
    collection = load("mini-isabelle")
    found = pd.concat([evaluate(system(name).search(collection), collection, "RR") for name in ("bm25", "structure")])
    line = "structure on mini-isabelle: 204 of 204 queries and 204 of 204 documents have no formula."
    assert line in result_tables.main_table(found, "RR").notes
    assert line in result_tables.interval_table(found, significance.bootstrap_intervals(found, n_resamples=10)).notes


def test_the_names_that_figures_use_stand_below_a_table_with_other_names() -> None:
    """Labels that differ in capitals only need no note."""
    found = make({("bm25", "c", "RR"): [0.5, 1.0], ("chargrams", "c", "RR"): [0.5, 0.2]})
    label = system("chargrams").label
    assert label != "chargrams"
    intervals = significance.bootstrap_intervals(found, n_resamples=9)
    for shown in (result_tables.main_table(found, "RR"), result_tables.interval_table(found, intervals)):
        assert f"In figures and in the text, {label} is chargrams." in shown.notes
    alone = found[found.system == "bm25"]
    assert not any("In figures" in note for note in result_tables.main_table(alone, "RR").notes)


def wide_values(systems: list[str], n_collections: int = 12, measure: str = "RR") -> pd.DataFrame:
    """Return random values of two queries for each system and collection."""
    generator = np.random.default_rng(0)
    keys = [(system, f"mini-number-{n}", measure) for system in systems for n in range(n_collections)]
    return make({key: generator.random(2).tolist() for key in keys})


def test_a_wide_grid_has_its_collections_as_rows() -> None:
    """Labels, marks, signs and groups go along; the CSV has names and columns as before; a narrow one stays."""
    found = wide_values(["bm25", "minilm", "own"])
    tasks = {f"mini-number-{n}": "Premises" if n < 6 else "Questions" for n in range(12)}
    done = significance.compare(found, "RR", baseline="own", n_permutations=99, n_resamples=9)
    done["significant"] = done.collection == "mini-number-7"
    shown = result_tables.main_table(found, "RR", tasks=tasks, comparison=done)
    rows = {name: cells for name, cells in shown.laid_out().rows()}
    assert shown.laid_out().header()[1] == ["BM25", "MiniLM", "own"]
    assert list(rows)[0] == "Premises: mini-number-0" and list(rows)[-1] == "Average: all (12)"
    for column, (cells, name) in enumerate(zip(rows.values(), shown.frame.columns, strict=True)):
        assert [cell.mark for cell in cells] == shown.marks.iloc[:, column].tolist()
        assert [cell.text for cell in cells] == [f"{number:.2f}" for number in shown.frame[name]]
    assert {cell.sign for cell in rows["Questions: mini-number-7"][:2]} <= {"†", "‡"}
    assert any("worse than own in RR" in note for note in shown.notes)
    latex = shown.to_latex()
    assert r"\multicolumn{4}{l}{\textit{Questions}} \\" in latex and r"\begin{table*}" in latex
    assert r"\quad mini-number-7 & " in latex and " & BM25 & MiniLM & own " in latex
    assert shown.to_csv().splitlines()[0].startswith("system,Premises: mini-number-0,")
    assert [line.split(",")[0] for line in shown.to_csv().splitlines()[1:]] == ["bm25", "minilm", "own"]
    narrow = result_tables.main_table(found[found.collection < "mini-number-10"].head(6), "RR")
    assert narrow.laid_out() is narrow


@pytest.mark.parametrize("n_systems", [3, 30])
def test_no_line_of_the_latex_is_wider_than_the_page(n_systems: int) -> None:
    """With intervals, too: what does not fit as rows continues in another tabular, and no cell is lost."""
    found = wide_values([f"a system of mine {n}" for n in range(n_systems)])
    shown = result_tables.interval_table(found, significance.bootstrap_intervals(found, n_resamples=20))
    text = shown.to_latex()
    lines = [line.replace(r" {\scriptsize", "").replace("}", "") for line in text.splitlines() if " & " in line]
    assert max(len(line.removesuffix(r" \\").replace(" & ", "  ")) for line in lines) <= table_formats._PAGE
    assert text.count("[") == 12 * n_systems == shown.to_html().count("<small>[")
    n_parts = text.count(r"\begin{tabular}")
    assert (n_parts > 1) == (n_systems == 30)  # 30 systems stay rows, whose names stand in each part
    assert all(text.count(f"a system of mine {n} ") == n_parts for n in range(n_systems))


def test_a_share_of_judged_documents_is_neither_good_nor_bad(values: pd.DataFrame) -> None:
    """A table of Judged@10 has no bold number and no sign, and its caption does not call higher better."""
    found = values.assign(measure="Judged@10")
    done = significance.compare(found, "Judged@10", baseline="dense", n_permutations=99, n_resamples=9)
    shown = result_tables.main_table(found, "Judged@10", comparison=done.assign(significant=True))
    assert not shown.marks.ne("").to_numpy().any() and not shown.signs.size
    assert "better" not in " ".join([shown.caption, *shown.notes]) and "Bold" not in " ".join(shown.notes)
    both = pd.concat([values, found])
    shown = result_tables.main_table(both[both.collection == "c1"], ["RR", "Judged@10"], by="measure")
    assert shown.marks["Judged@10"].eq("").all() and shown.marks["RR"].ne("").any()
    assert shown.caption.endswith("higher is better, except of Judged@k, which is no quality.")


def test_a_measure_that_cannot_differ_says_so() -> None:
    """Equal on all queries, or on 19 of 20: a note and no marks; on 18 of 20 the best one is bold as ever."""
    base = np.linspace(0, 1, 20)
    for n_other, words in {0: "all 20 queries of c", 1: "19 of 20 queries of c", 2: ""}.items():
        other = base - 0.1 * (np.arange(20) >= 20 - n_other)
        found = make(
            {("a", "c", "RR"): base, ("b", "c", "RR"): other, ("a", "d", "RR"): base, ("b", "d", "RR"): 1 - base}
        )
        shown = result_tables.main_table(found, "RR")
        notes = [note for note in shown.notes if "have the same RR" in note]
        assert shown.marks["", "d"].ne("").any() and shown.marks["", "c"].ne("").any() == (n_other == 2)
        said = f"All systems have the same RR on {words}, so no best one is marked there, "
        said += "nor in an average over mostly such collections."
        assert notes == ([said] if words else [])
    same = {(system, name, "RR"): base for system in "ab" for name in "cd"}
    for most, others in ((True, {}), (False, {("a", "e", "RR"): base, ("b", "e", "RR"): 1 - base * 0.5})):
        averaged = make((same if most else {key: same[key] for key in same if key[1] == "c"}) | others)
        shown = result_tables.main_table(averaged, "RR")
        assert shown.marks["Average", "all (2)"].eq("").all() == most
    alone = result_tables.main_table(found[found.system == "a"], "RR")
    assert not any("have the same" in note for note in alone.notes)
    prime = found.assign(measure="RR'", value=1.0)
    assert any("Where few documents" in note for note in result_tables.main_table(prime, "RR'").notes)


@pytest.mark.parametrize("by", ["collection", "measure"])
def test_the_best_rank_is_the_lowest_and_no_percentage(by: str) -> None:
    """The mean rank of the first relevant document is printed as it is; the lower one is bold, and marked as better."""
    rows = [(system, "c", "Rank", f"q{n}", first + n) for system, first in (("good", 1), ("bad", 50)) for n in range(9)]
    found = pd.DataFrame(rows, columns=["system", "collection", "measure", "query_id", "value"])
    done = significance.compare(found, "Rank", baseline="bad", n_permutations=999, n_resamples=9)
    shown = result_tables.main_table(found, "Rank" if by == "collection" else ["Rank"], by=by, comparison=done)
    assert shown.frame.iloc[:, 0].to_dict() == {"good": 5.0, "bad": 54.0}
    assert shown.marks.iloc[:, 0].to_dict() == {"good": "best", "bad": "second"}
    assert shown.signs.iloc[:, 0].to_dict() == {"good": "†", "bad": ""}
    assert shown.caption == "Rank from 1, mean over the queries of c; a lower Rank is better."


def test_the_note_of_intervals_has_their_level(values: pd.DataFrame) -> None:
    """Intervals of 80 % are not called 95 %."""
    intervals = significance.bootstrap_intervals(values, "RR", level=0.8, n_resamples=9)
    assert "In brackets: 80 % bootstrap interval" in " ".join(result_tables.interval_table(values, intervals).notes)


def test_means_over_different_queries_are_said_and_not_marked() -> None:
    """A system that lacks the hard queries is not the best one."""
    values = make({("ours", "c", "RR"): [1.0, 0.0, 0.2], ("theirs", "c", "RR"): [1.0], ("ours", "d", "RR"): [0.5],
                   ("theirs", "d", "RR"): [0.4]})  # fmt: skip
    shown = result_tables.main_table(values, "RR")
    assert "theirs on c: 1 of 3 queries have a value." in shown.notes
    assert shown.marks.loc["theirs", ("", "c")] == "" and shown.marks.loc["ours", ("", "d")] == "best"
    both = pd.concat([values, values[values.system == "ours"].assign(measure="AP")]).query("collection == 'c'")
    notes = result_tables.main_table(both, ["RR", "AP"], by="measure").notes
    assert [note for note in notes if "theirs" in note] == ["theirs on c: 1 of 3 queries have a value of RR."]


def test_two_runs_of_one_name_and_missing_values_have_no_table() -> None:
    """Their mean would be of both, or of the other queries."""
    values = make({("a", "c", "RR"): [1.0, 0.0]})
    with pytest.raises(MirblabError, match="a has two values of RR for query q0; keep one"):
        result_tables.main_table(pd.concat([values, values]), "RR")
    with pytest.raises(MirblabError, match=r"a has no finite value of RR for query q1 \(1 such cell\)"):
        result_tables.main_table(values.assign(value=[1.0, np.nan]), "RR")
