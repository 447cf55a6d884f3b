"""The files of formulas of an ARQMath release, in LaTeX and in MathML."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.mathml import parse_mathml
from mirblab.sources.arqmath.formulas import Formula, read_formula_rows
from mirblab.sources.arqmath.release import clean_latex, clean_post
from mirblab.sources.stackexchange.dump import RowProblems

COLUMNS = "id post_id thread_id type comment_id old_visual_id visual_id issue formula".split()


def read(path: Path) -> list[Formula]:
    """Return the formulas of one file."""
    return list(map(Formula._make, read_formula_rows([path], RowProblems())))


def test_a_long_cell_and_quotes_are_read(tmp_path: Path):
    """A cell of 200,000 characters is more than Python's csv takes by default."""
    markup = ["a&amp;lt;b% +c", '"""x"""', "<math><mi>" + "y" * 200_000 + "</mi></math>"]
    rows = [f"{n}\t50\t1\tquestion\t\t4\t100\t\t{cell}\n" for n, cell in enumerate(markup)]
    with gzip.open(tmp_path / "1.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("\t".join(COLUMNS) + "\n" + "".join(rows))
    formulas = read(tmp_path / "1.tsv.gz")
    assert [one.formula for one in formulas] == [markup[0], '"x"', markup[2]]
    assert clean_latex(formulas[0].formula).text == "a<b+c"


def test_latex_and_mathml_of_the_sample_release_are_the_same_formulas(shared_file: Callable[[str], Path]):
    """Of every twentieth formula that LaTeXML converted without an error, 95 % have equal trees, 96 % last time."""
    sample = shared_file("sources/arqmath-collection")
    latex, slt = (read(sample / f"{form}_representation_v3" / "1.tsv.gz") for form in ("latex", "slt"))
    assert len(latex) == len(slt) == 62_131
    pairs = list(zip(latex, slt, strict=True))
    assert all(one[:5] == other[:5] and other.formula.startswith("<math") for one, other in pairs)
    same = [
        parse_latex(clean_latex(written.formula).text) == parse_mathml(marked.formula)
        for written, marked in pairs[::20]
        if "ltx_ERROR" not in marked.formula and "merror" not in marked.formula
    ]
    assert len(same) > 3_000 and sum(same) / len(same) >= 0.95


def test_comments_are_dropped_before_lines_are_joined():
    """Their words would be variables on the joined line; a percentage stays, and in one line nothing is a comment."""
    assert clean_latex("a % why, x = y\n + b % c").text == "a + b"
    assert clean_latex("5\\% a \\\\% c\n + b").text == "5\\% a \\\\ + b"
    assert clean_latex("50% a").text == "50a"
    post = '<p>x 5% <span class="math-container" id="1">$a % why\n + b$</span> of\n 3%</p>'
    assert clean_post(post).text == "x 5% $a + b$ of 3%"
