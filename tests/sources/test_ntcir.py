"""The NTCIR-12 builder on hand-made files that have every trap, and once on the real material."""

from __future__ import annotations

import gzip
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from built_collections import card, texts

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.sources import ntcir
from mirblab.sources.ntcir import NO_LATEX, find_article_formulas

CONCRETE = "NTCIR12-MathWiki-1\ta+b\nNTCIR12-MathWiki-2\tx &lt; y\n"
WILDCARDS = "NTCIR12-MathWiki-21\t\\qvar{*1*}+b\nNTCIR12-MathWiki-22\t\\qvar{*1*}\n"
QRELS = """NTCIR12-MathWiki-1 xxx Area:0 4.0
NTCIR12-MathWiki-1 xxx Abel–Plana_formula:1 1.0
NTCIR12-MathWiki-1 xxx Gone:3 2.0
NTCIR12-MathWiki-2 xxx Area:1 0.0
NTCIR12-MathWiki-21 xxx Area:0 3.0
NTCIR12-MathWiki-22 xxx Gone:3 3.0
"""
AREA = """<!DOCTYPE html><html><body><p>Nothing &nbsp; here.</p>
<math id="m1" alttext="not this" display="block"><semantics><mi>a</mi>
 <annotation encoding="application/x-tex">a&lt;b%
c</annotation></semantics></math>
<m:math alttext='"2 > 1"'><m:mn>2</m:mn></m:math> <math><mi>no latex</mi></math>
<formula id="Other_article:7"><m:math alttext="d"><m:mi>d</m:mi></m:math></formula> <math alttext="e"/>
</body></html>"""


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Return a folder with topics, judgements and a table of formulas."""
    folder = tmp_path / "release"
    folder.mkdir()
    for name, text in {
        "topics-concrete.txt": CONCRETE,
        "topics-wildcards.txt": WILDCARDS,
        "topics.txt": CONCRETE + WILDCARDS,
        "qrels.txt": QRELS,
        "formulas.tsv": "Area:0\ta+b% +c\nArea:1\tx\nAbelPlana_formula:1\t\\sum\nArea:2\tnobody\nArea:0\tagain\n",
        "run.trec": "NTCIR12-MathWiki-1 Q0 Area:0 1 1.0 run",
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_release_makes_a_collection_with_three_splits(release: Path, tmp_path: Path):
    """All topics, the concrete ones and those with wildcards; grades 0 to 4; judged formulas are the candidates."""
    [folder] = ntcir.build(release, tmp_path / "out")
    collection = load_folder(folder)
    assert collection.qrels[["query_id", "doc_id", "relevance"]].values.tolist() == [
        ["NTCIR12-MathWiki-1", "Abel–Plana_formula:1", 1],
        ["NTCIR12-MathWiki-1", "Area:0", 4],
        ["NTCIR12-MathWiki-2", "Area:1", 0],
        ["NTCIR12-MathWiki-21", "Area:0", 3],
    ]
    assert collection.card.candidates == ["judged"] and collection.card.relevance_levels == [0, 1, 2, 3, 4]
    assert load_folder(folder, split="concrete").qrels.query_id.unique().tolist() == [
        "NTCIR12-MathWiki-1",
        "NTCIR12-MathWiki-2",
    ]
    assert load_folder(folder, split="wildcards").qrels.query_id.tolist() == ["NTCIR12-MathWiki-21"]
    assert collection.queries.text.tolist() == ["a+b", "x < y", "\\qvar{*1*}+b"]
    assert texts(folder) == {"Area:0": "a+b+c", "Area:1": "x", "Abel–Plana_formula:1": "\\sum"}


def test_what_is_left_out_is_counted(release: Path, tmp_path: Path):
    """By reason, in the card; the first missing formulas are named."""
    [folder] = ntcir.build(release, tmp_path / "out")
    assert card(folder)["counts"]["left_out"] == {
        "formulas that no one judged": 1,
        "formulas that repeat an id (the first is taken)": 1,
        "formulas with LaTeXML's line marks (dropped)": 1,
        "judged formulas found by an id without its non-ASCII characters": 1,
        "judged formulas that are not there": 1,
        "judgements of formulas that are not there (grade 2)": 1,
        "judgements of formulas that are not there (grade 3)": 1,
        "topics whose judged formulas are not there (no queries)": 1,
    }
    assert card(folder)["first_missing_documents"] == ["Gone:3"]


def test_three_levels_put_two_grades_together(release: Path, tmp_path: Path):
    """1 and 2 are partially relevant, 3 and 4 relevant; the card says so."""
    [folder] = ntcir.build(release, tmp_path / "out", levels=3)
    assert folder.name == "ntcir12-formulas-3-levels" and card(folder)["paper"] == "NTCIR-WFB"
    assert load_folder(folder).qrels.relevance.tolist() == [1, 2, 0, 2]
    assert card(folder)["grades_become"] == [0, 1, 1, 2, 2] and card(folder)["relevance_levels"] == [0, 1, 2]
    with pytest.raises(MirblabError, match="levels must be 5 .* or 3 .*, not 4"):
        ntcir.build(release, tmp_path / "out", levels=4)


def test_with_pool_all_every_formula_is_a_document(release: Path, tmp_path: Path):
    """Without candidates, and a stripped id is not a second document."""
    [folder] = ntcir.build(release, tmp_path / "out", pool="all")
    assert folder.name == "ntcir12-formulas-open" and "candidates" not in card(folder)
    assert sorted(texts(folder)) == ["Abel–Plana_formula:1", "Area:0", "Area:1", "Area:2"]
    with pytest.raises(MirblabError, match="no pool 'everything'"):
        ntcir.build(release, tmp_path / "out", pool="everything")


def test_judgements_with_stripped_ids_count_once(release: Path, tmp_path: Path):
    """As some files of the release have them; another grade for the same pair is refused."""
    other = release / "a-qrels-judge.dat"
    other.write_text(QRELS.replace("–", ""), encoding="utf-8")
    [folder] = ntcir.build(release, tmp_path / "out")
    left_out = card(folder)["counts"]["left_out"]
    assert left_out["judgements that several files have"] == 6
    assert left_out["of these, with an id whose non-ASCII characters are stripped"] == 1
    assert card(folder)["counts"]["judgements_test"] == 4
    other.write_text(QRELS.replace("–", "").replace("formula:1 1.0", "formula:1 2.0"), encoding="utf-8")
    with pytest.raises(MirblabError, match="gives 'AbelPlana_formula:1' .* 2, another file 1"):
        ntcir.build(release, tmp_path / "out")


def test_full_formulas_are_found_for_stripped_judgements(release: Path, tmp_path: Path):
    """The other way round; the ids of the judgements are kept, so that runs fit them."""
    (release / "qrels.txt").write_text(QRELS.replace("–", ""), encoding="utf-8")
    (release / "formulas.tsv").write_text("Abel–Plana_formula:1\t\\sum\nArea:0\ta\n", encoding="utf-8")
    [folder] = ntcir.build(release, tmp_path / "out")
    assert texts(folder) == {"Area:0": "a", "AbelPlana_formula:1": "\\sum"}


def test_articles_of_the_release_give_the_formulas(release: Path, tmp_path: Path):
    """By title and place; the TeX annotation, else the alternative text; entities of HTML do no harm."""
    (release / "formulas.tsv").unlink()
    articles = release / "MathTagArticles" / "wpmath0000001" / "Articles"
    articles.mkdir(parents=True)
    (articles / "Area.html").write_text(AREA, encoding="utf-8")
    left_out: Counter[str] = Counter()
    assert list(find_article_formulas("Area", AREA, left_out)) == [
        ("Area:0", "a<b%\nc"),
        ("Area:1", '"2 > 1"'),
        ("Other_article:7", "d"),
        ("Area:4", "e"),
    ]
    assert left_out == {NO_LATEX: 1}
    [folder] = ntcir.build(release, tmp_path / "out")
    assert texts(folder) == {"Area:0": "a<bc", "Area:1": '"2 > 1"'}
    packed = articles / "Area.html.gz"
    packed.write_bytes(gzip.compress(AREA.encode()))
    (articles / "Area.html").unlink()
    again = ntcir.build(release, tmp_path / "again")
    assert texts(again[0]) == texts(folder)
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(MirblabError, match="Area.html.gz cannot be read"):
        ntcir.build(release, tmp_path / "again")


def test_without_formulas_it_says_what_is_missing(release: Path, tmp_path: Path):
    """And writes nothing."""
    formulas = shutil.move(release / "formulas.tsv", tmp_path / "apart.tsv")
    with pytest.raises(MirblabError, match="release has no texts of formulas .*; found qrels.txt, run.trec"):
        ntcir.build(release, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    [folder] = ntcir.build(f"{release}{os.pathsep}{formulas}", tmp_path / "out")
    assert len(texts(folder)) == 3
    Path(formulas).write_text("Elsewhere:1\tx\n")
    with pytest.raises(MirblabError, match="none of the judged formulas is among the texts"):
        ntcir.build(f"{release}{os.pathsep}{formulas}", tmp_path / "out")
    with pytest.raises(MirblabError, match="no topics .* and no judgements"):
        ntcir.build(str(formulas), tmp_path / "out")
    with pytest.raises(MirblabError, match="--from"):
        ntcir.build(None, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("qrels.txt", QRELS + "NTCIR12-MathWiki-1 Area:2 1.0\n", "qrels.txt, line 7: expected .* found 3 cells"),
        ("qrels.txt", QRELS + "NTCIR12-MathWiki-1 xxx Area:2 5.0\n", "line 7: the grade must be .* 0 to 4"),
        ("topics.txt", CONCRETE + "no tab\n", "topics.txt, line 3: expected topic and LaTeX"),
        ("topics.txt", CONCRETE.replace("a+b", "a-b"), "line 1: another formula for the topic 'NTCIR12-MathWiki-1'"),
        ("formulas.tsv", "Area:0\ta\nArea:1 b\n", "formulas.tsv, line 2: expected id and LaTeX separated by a tab"),
        ("formulas.jsonl", '{"_id": "Area:0", "text": "a"}\n{"text": "b"}\n', "formulas.jsonl, line 2: expected _id"),
    ],
)
def test_a_broken_line_is_refused_with_its_number(release: Path, tmp_path: Path, name: str, text: str, message: str):
    """And nothing is written."""
    (release / name).write_text(text, encoding="utf-8")
    with pytest.raises(MirblabError, match=message):
        ntcir.build(release, tmp_path / "out")
    assert not list((tmp_path / "out").glob("*"))


@pytest.mark.parametrize("name", ["qrels.txt", "topics.txt", "formulas.tsv"])
def test_a_truncated_gzip_file_is_refused(release: Path, tmp_path: Path, name: str):
    """With its name."""
    path = release / name
    path.with_name(f"{name}.gz").write_bytes(gzip.compress(path.read_bytes())[:-12])
    path.unlink()
    with pytest.raises(MirblabError, match=f"{name}.gz cannot be read"):
        ntcir.build(release, tmp_path / "out")


def test_the_real_material_agrees_with_what_others_built_from_it(shared_file: Callable[[str], Path], tmp_path: Path):
    """All 1,143 judgements of the concrete topics, and one whose formula the other corpus has and does not judge."""
    theirs = shared_file("data/ntcir12-wfb")
    [folder] = ntcir.build(f"{shared_file('sources/ntcir12-wfb')}{os.pathsep}{theirs / 'corpus.jsonl'}", tmp_path)
    found, expected = (
        set(path.read_text("utf-8").splitlines()) for path in (folder / "qrels/concrete.tsv", theirs / "qrels/test.tsv")
    )
    assert expected - found == set() and found - expected == {"NTCIR12-MathWiki-13\tAttribute_Hierarchy_Method:1\t0"}
    counts = card(folder)["counts"]
    assert (counts["judgements_test"], counts["queries_test"], counts["queries_concrete"]) == (1487, 38, 20)
    missing = [count for reason, count in counts["left_out"].items() if "not there (grade" in reason]
    assert sum(missing) + counts["judgements_test"] == 2687


def test_on_the_real_material_the_stripped_judgements_are_the_same_ones(
    shared_file: Callable[[str], Path], tmp_path: Path
):
    """83 ids of the participant's file differ; with it alone, the formulas are found all the same."""
    source, formulas = shared_file("sources/ntcir12-wfb"), shared_file("data/ntcir12-wfb/corpus.jsonl")
    folder = tmp_path / "release"
    folder.mkdir()
    shutil.copy(source / "topics.ntcir12-math-browsing-concrete.txt.gz", folder)
    shutil.copy(source / "judge.tangent_cft.dat.gz", folder / "qrels-judge.dat.gz")
    [alone] = ntcir.build(f"{folder}{os.pathsep}{formulas}", tmp_path / "one")
    shutil.copy(source / "qrels.ntcir12-math-browsing-concrete.txt.gz", folder)
    [both] = ntcir.build(f"{folder}{os.pathsep}{formulas}", tmp_path / "two")
    left_out = card(both)["counts"]["left_out"]
    assert left_out["of these, with an id whose non-ASCII characters are stripped"] == 83
    assert left_out["judgements that several files have"] == 1202
    assert card(alone)["counts"]["judgements_test"] == card(both)["counts"]["judgements_test"] == 1144
    found = "judged formulas found by an id without its non-ASCII characters"
    assert card(alone)["counts"]["left_out"][found] == sum(not name.isascii() for name in texts(both))
