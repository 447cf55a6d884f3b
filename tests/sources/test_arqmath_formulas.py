"""The formulas of a release where they stand, in every representation, and their visual ids."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from mirblab.core.errors import MirblabError
from mirblab.evaluation import arqmath
from mirblab.evaluation.measures import evaluate
from mirblab.formula.latex.parser import parse_latex
from mirblab.formula.mathml import parse_mathml
from mirblab.sources.arqmath import formulas

COLUMNS = "id post_id thread_id type comment_id old_visual_id visual_id issue formula".split()
MARKUP = {
    "latex": ["a&amp;lt;b% +c", '"x"', "d"],
    "slt": ['<math alttext="a"><mi>a</mi></math>', "<math/>", "<math><mi>" + "y" * 200_000 + "</mi></math>"],
    "opt": ["<math><ci>a</ci></math>", "<math/>", "<math><ci>d</ci></math>"],
}


def quoted(cell: object) -> str:
    text = str(cell)
    return '"' + text.replace('"', '""') + '"' if text.startswith('"') else text


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Return three formulas in three folders, the second file gzipped."""
    for name, markup in MARKUP.items():
        folder = tmp_path / "Formulas" / f"{name}_representation_v3"
        folder.mkdir(parents=True)
        rows = [[5, 50, 1, "question", "", 4, 100, "", markup[0]], [6, 60, 1, "comment", 3, 4, 100, "", markup[1]]]
        rows += [[7, 70, 1, "answer", "", 4, 200, "", markup[2]]]
        lines = ["\t".join(map(quoted, row)) + "\n" for row in rows]
        (folder / "1.tsv").write_text("\t".join(COLUMNS) + "\n" + "".join(lines[:2]), encoding="utf-8")
        with gzip.open(folder / "2.tsv.gz", "wt", encoding="utf-8") as file:
            file.write("\t".join(COLUMNS) + "\n" + lines[2])
    return tmp_path


def test_latex_comes_without_entities_and_line_marks(release: Path):
    found = list(formulas.read_instances(release))
    assert [one.markup for one in found] == ["a<b+c", '"x"', "d"]
    assert found[0][:4] == ("5", "50", "100", "question") and found[1].type == "comment"


def test_mathml_comes_as_it_stands_however_long(release: Path):
    """A cell of 200,000 characters is more than Python's csv takes by default."""
    assert [one.markup for one in formulas.read_instances(release, "slt")] == MARKUP["slt"]
    assert [one.markup for one in formulas.read_instances(release, "opt")] == MARKUP["opt"]


def test_a_representation_that_is_missing_or_unknown_is_named(release: Path):
    with pytest.raises(MirblabError, match="no representation 'mathml'; found latex, opt, slt"):
        list(formulas.read_instances(release, "mathml"))
    with pytest.raises(FileNotFoundError, match=r"no slt_representation_v3/\*.tsv below latex_representation_v3"):
        list(formulas.read_instances(release / "Formulas" / "latex_representation_v3", "slt"))


def test_visual_ids_of_wanted_formulas(release: Path):
    assert formulas.read_visual_ids(release) == {"5": "100", "6": "100", "7": "200"}
    assert formulas.read_visual_ids(release, {"7", "8"}) == {"7": "200"}
    with pytest.raises(MirblabError, match="has none of the formulas"):
        formulas.read_visual_ids(release, {"q_1"})


@pytest.fixture
def sample(shared: Path) -> Path:
    """Return the folder of the sample release."""
    folder = shared / "sources" / "arqmath-collection"
    if not folder.is_dir():
        pytest.skip("the shared data has no arqmath-collection")
    return folder


def test_a_run_of_instances_of_the_sample_release_is_measured(sample: Path):
    """Each formula of the release as its own query: the run of all its instances finds its visual id first, once."""
    whole = formulas.read_visual_ids(sample)
    assert len(whole) == 62_131 and len(set(whole.values())) == 31_061
    by_visual = pd.Series(whole).rename_axis("formula_id").reset_index(name="visual_id")
    often = by_visual.visual_id.value_counts().index[:20]
    rows = by_visual[by_visual.visual_id.isin(often)]
    run = rows.assign(query_id="B." + rows.visual_id, score=range(len(rows), 0, -1))
    others = rows.assign(query_id="B." + often[0], score=range(-1, -len(rows) - 1, -1))
    both = pd.concat([run, others[others.visual_id != often[0]]])
    visual = arqmath.run_of_visual_ids(both, formulas.read_visual_ids(sample, set(rows.formula_id)))
    assert visual.query_id.value_counts().loc["B." + often[0]] == 20 and visual.query_id.nunique() == 20
    qrels = pd.DataFrame({"query_id": "B." + often, "doc_id": often, "relevance": 3})
    assert evaluate(visual, qrels, ["RR"]).value.tolist() == [1.0] * 20


def test_latex_and_mathml_of_the_sample_release_are_the_same_formulas(sample: Path):
    """Of every twentieth formula that LaTeXML converted without an error, 95 % have equal trees, 96 % last time."""
    pairs = list(zip(formulas.read_instances(sample), formulas.read_instances(sample, "slt"), strict=True))
    assert len(pairs) == 62_131
    assert all(latex[:4] == slt[:4] and slt.markup.startswith("<math") for latex, slt in pairs)
    same = [
        parse_latex(written.markup) == parse_mathml(marked.markup)
        for written, marked in pairs[::20]
        if "ltx_ERROR" not in marked.markup and "merror" not in marked.markup
    ]
    assert len(same) > 3_000 and sum(same) / len(same) >= 0.95
