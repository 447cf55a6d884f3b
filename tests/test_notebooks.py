"""Notebooks are clean, and papermill reads every parameter."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pandas as pd
import papermill
import pytest
from notebook_files import run_cells

from mirblab import load
from mirblab.core import paths

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LESSONS = [path.stem for path in NOTEBOOKS if "01" <= path.stem[:2] <= "09"]
MARKS = 2  # the lines in which a solution begins and ends
WIDTH = 100  # characters of a line that a laptop shows beside the file browser


def code(book: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in book.cells if cell.cell_type == "code"]


def n_statements(source: str) -> int:
    """Imports are one; a statement within another counts."""
    found = [type(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    imports = [kind for kind in found if kind in (ast.Import, ast.ImportFrom)]
    return len(found) - len(imports) + bool(imports)


def conclusion(book: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the cells from the last heading, "What we saw", without what only the batch needs."""
    shown = [cell for cell in book.cells if "remove-cell" not in cell.metadata.get("tags", [])]
    heading = [n for n, cell in enumerate(shown) if cell.cell_type == "markdown" and "## " in cell.source][-1]
    assert shown[heading].source.startswith("## What we saw")
    return shown[heading:]


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request) -> Path:
    return request.param


@pytest.fixture
def book(path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def test_it_is_committed_without_outputs(book):
    """No output, no execution count, one kernel."""
    assert not any(cell.outputs or cell.execution_count for cell in code(book))
    assert book.metadata.kernelspec.name == "python3" and "papermill" not in book.metadata


def test_papermill_sees_every_parameter(book, path):
    """One tagged cell, the first of code; annotated literals, one per line, no '|' and one '='."""
    tagged = [cell for cell in code(book) if "parameters" in cell.metadata.get("tags", [])]
    assert tagged == code(book)[:1]
    lines = tagged[0].source.splitlines()
    assert all(line.count("=") == 1 and "|" not in line and "  # " in line for line in lines)
    assigned = {node.target.id for node in ast.parse(tagged[0].source).body if isinstance(node, ast.AnnAssign)}
    assert assigned == set(papermill.inspect_notebook(str(path)))
    assert len(assigned) == len(lines)


def test_the_first_cell_refuses_what_is_no_parameter(book):
    """Papermill alone would run to the end on the defaults; nothing comes before, but what is imported."""
    statements = [
        node for node in ast.parse(code(book)[1].source).body if not isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert ast.unparse(statements[0]) == "lab.check_parameters()"


def test_every_parameter_goes_into_the_provenance(book):
    """Collections and systems by their content, everything else by name."""
    asked = {node.target.id for node in ast.parse(code(book)[0].source).body}
    calls = [node for cell in code(book) for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
    made = [call for call in calls if ast.unparse(call.func) == "lab.output"]
    given = {keyword.arg for keyword in made[0].keywords}
    assert len(made) == 1
    assert asked - given <= {"suite", "part", "collection", "collections", "systems"}


def test_a_reference_to_another_notebook_is_a_link(book):
    """And its target is there."""
    text = "\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
    names = {path.stem for path in NOTEBOOKS}
    assert [name for name in re.findall(r"(?<!\[)`(\d\d_\w+)`", text) if name in names] == []
    linked = re.findall(r"\[`(\w+)`\]\((\w+)\.ipynb\)", text)
    assert all(name == target and target in names for name, target in linked)


def test_its_shape_is_that_of_the_others(book, path):
    """A question as title, few and short cells, three bullets at the end, written or computed; exercises are longer."""
    assert len(book.cells) <= (44 if path.stem in LESSONS else 30)
    assert book.cells[0].source.splitlines()[0].startswith("# ") and "?" in book.cells[0].source.splitlines()[0]
    steps = [cell for cell in code(book)[1:] if "exercise" not in cell.metadata.get("tags", [])]
    assert max(n_statements(cell.source) for cell in steps) <= 6
    assert [line for cell in code(book)[1:] for line in cell.source.splitlines() if len(line) > WIDTH] == []
    exercises = [cell for cell in code(book) if "exercise" in cell.metadata.get("tags", [])]
    assert bool(exercises) == (path.stem in LESSONS)
    assert all(len(cell.source.splitlines()) <= 12 + MARKS for cell in exercises)
    end = conclusion(book)
    assert all(cell.cell_type == "code" for cell in end[1:])
    assert sum(line.startswith("- ") for cell in end for line in cell.source.splitlines()) == 3
    assert not any(
        isinstance(node, (ast.ClassDef, ast.FunctionDef)) for cell in steps for node in ast.walk(ast.parse(cell.source))
    )


def test_a_reader_meets_no_assertion(book):
    """What a batch checks stands in one cell at the end, which lessons and the site leave out."""
    asserting = [
        cell for cell in code(book) if any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(cell.source)))
    ]
    removed = [cell for cell in book.cells if "remove-cell" in cell.metadata.get("tags", [])]
    assert asserting == removed == book.cells[-1:] or asserting == removed == []


@pytest.fixture
def figures(tmp_path, monkeypatch) -> Path:
    """Return the folder into which notebooks write whose cells a test runs."""
    monkeypatch.setattr(paths, "figures", lambda: tmp_path / "figures")
    return tmp_path / "figures"


def test_one_period_of_a_library_has_no_change(figures):
    """Its leads are shown all the same."""
    space, said = run_cells("62_time_travel", days=["2025-03-01", "2025-05-01"], systems=["bm25", "chargrams"])
    assert len(space["leads"]) == 1 and "no change of a lead is decided here" in said
    assert list(figures.rglob("changes.csv"))


def test_own_texts_without_a_query_are_searched_and_not_measured(figures, tmp_path):
    """Lemmas without a proof or a reference: the tables of the collection are written, and the conclusion says why."""
    lemmas = ["An odd square leaves 1.", "A divisor of two numbers divides their sum."]
    text = "".join(f"\\begin{{lemma}}{lemma}\\end{{lemma}}" for lemma in lemmas)
    source = tmp_path / "thesis.tex"
    source.write_text(f"\\newtheorem{{lemma}}{{Lemma}}\\begin{{document}}{text}\\end{{document}}", "utf-8")
    space, said = run_cells("53_your_collection", source=str(source), systems=["bm25"])
    assert [c.name for c in space["statements"]] == ["thesis-premise"] and not space["measured"]
    assert "No system was measured" in said and list(figures.rglob("collections.csv"))


@pytest.mark.parametrize(("measures", "sentence"), [
    (["P@10"], "depends on which unjudged"),
    (["nDCG'@10", "P@10"], ""),
    (["nDCG'@10"], ""),
])  # fmt: skip
def test_two_runs_say_of_unjudged_documents_what_was_computed(figures, tmp_path, measures, sentence):
    """The first run also has an unjudged document: the means are equal where it is not relevant, and differ where it
    is; of a prime measure nothing was computed.
    """
    c = load("mini-qa")
    paired = list(c.qrels.drop_duplicates("query_id")[["query_id", "doc_id"]].itertuples(index=False))
    paths_of_runs = [tmp_path / name for name in ("first.trec", "second.trec")]
    for path, more in zip(paths_of_runs, (1, 0), strict=True):
        rows = [(q, d, 1) for q, d in paired] + [(q, paired[n - 1][1], 2) for n, (q, _) in enumerate(paired)] * more
        path.write_text("".join(f"{q} Q0 {d} {rank} {-rank} x\n" for q, d, rank in rows), "utf-8")
    first, second = map(str, paths_of_runs)
    _, said = run_cells("52_compare_runs", first=first, second=second, measures=measures)
    assert sentence in said and ("unjudged" in said) == bool(sentence)


def test_the_hardest_queries_are_those_of_the_highest_rank(figures):
    """Of Rank, lower is better: the hardest query is that whose answer even the better system has furthest down."""
    space, _ = run_cells("15_hard_queries", collections=["mini-hol", "mini-qa"], systems=["bm25"], measure="Rank")
    shown = pd.read_csv(next(figures.rglob("hardest.csv")))
    assert shown.best.tolist() == sorted(space["values"].value, reverse=True)[: len(shown)]


@pytest.mark.parametrize(("name", "parameters"), [
    ("65_published_defect", {"collections": ["mini-wfb"], "n_queries": 20}),
    ("66_saturated_measures", {"collections": ["mini-hol"], "systems": ["bm25", "chargrams"], "n_queries": 20}),
])  # fmt: skip
def test_a_conclusion_without_enough_queries_says_so(figures, name, parameters):
    """Fewer than a hundred decide nothing; neither None nor a share of nothing is printed."""
    _, said = run_cells(name, **parameters)
    assert "not decided here" in said and "None" not in said and "nan" not in said


def test_chance_is_never_above_1(figures):
    """Where fewer others are searched than the measure looks at, a random order has all of them."""
    measures = ["R@1", "R@400", "RR", "Rank"]
    _, said = run_cells("30_partners", systems=["bm25", "chargrams"], measures=measures)
    assert "and for 100.0 % in a random order:" in said
