"""The bundled threads are a sound dump, and the notebook shows one of them without letting it do anything."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from pathlib import Path

import nbformat
import papermill
import pytest
from traitlets.config import Config

from mirblab.core import paths
from mirblab.formula.latex import parser
from mirblab.sources.shared import html
from mirblab.sources.stackexchange import dump
from mirblab.sources.stackexchange.threads import Post, Thread, read_threads

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = ["1", "5", "9", "12"]


@pytest.fixture(scope="module")
def bundled() -> list[Thread]:
    """Return all threads of the bundled dump; a broken row fails."""
    odd = dump.RowProblems()
    found = read_threads(paths.bundled_path("data", "mini", "threads"), QUESTIONS, odd)
    assert not odd.counts
    return found


def posts(threads: list[Thread]) -> list[Post]:
    return [post for thread in threads for post in (thread.question, *thread.answers)]


def texts(threads: list[Thread]) -> list[str]:
    return [text for post in posts(threads) for text in (post.title, post.body, *(c.text for c in post.comments))]


def test_the_dump_has_what_a_site_has(bundled):
    """Answers, one of them accepted; a duplicate in both directions; a link out; comments; names; counted tags."""
    assert [len(thread.answers) for thread in bundled] == [3, 3, 2, 3]
    assert all(thread.accepted == thread.answers[0].id for thread in bundled)
    kinds = [(thread.question.id, link.kind, link.id, bool(link.title)) for thread in bundled for link in thread.links]
    assert ("9", "duplicate of", "5", True) in kinds and ("5", "has the duplicate", "9", True) in kinds
    assert ("5", "related", "99", False) in kinds
    assert all(set(thread.tag_counts) == set(thread.question.tags) for thread in bundled)
    assert all(post.author for post in posts(bundled))
    assert sum("math-container" in c.text for post in posts(bundled) for c in post.comments) >= 4


def test_scores_are_what_the_votes_give(bundled):
    """Up less down, as the site counts."""
    assert all(post.votes and post.score == post.votes[0] - post.votes[1] for post in posts(bundled))


def test_every_formula_has_a_number_of_its_own_and_is_understood(bundled):
    """No dollar stands outside a container, and the parser has no question about any formula."""
    found = [formula for text in texts(bundled) for formula in html.find_formulas(text)]
    assert len(found) > 100 and max(Counter(formula.id for formula in found).values()) == 1
    assert not [formula for formula in found if parser.parse_latex(formula.latex).problems]
    bare = [re.sub(r"<span class=\"math-container\".*?</span>", "", text) for text in texts(bundled)]
    assert not any("$" in text for text in bare)


def test_the_notebook_shows_a_thread_that_can_do_nothing(tmp_path, home):
    """A frame without scripts, whose page has its policy, no other address to load from, and its formulas."""
    papermill.execute_notebook(
        str(ROOT / "notebooks" / "41_threads_and_trees.ipynb"), str(tmp_path / "out.ipynb"), {"formulas": ["x^2"]},
        kernel_name="python3", progress_bar=False, cwd=str(ROOT / "notebooks"),
        config=Config({"KernelManager": {"transport_encryption": "auto"}}),
    )  # fmt: skip
    book = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    shown = ["".join(output.data.get("text/html", "")) for cell in book.cells if cell.cell_type == "code"
             for output in cell.outputs if "data" in output]  # fmt: skip
    [frame] = [text for text in shown if "<iframe" in text]
    assert re.search(r"<iframe sandbox srcdoc=", frame) and "<script" not in frame
    page = unescape(re.search(r'srcdoc="([^"]*)"', frame)[1])
    assert "default-src 'none'" in unescape(page) and page.count("<math") == 20 + 1  # a linked title
    assert not re.search(r"\b(?:src|href)=", page)
    pages = sorted(path.name for path in tmp_path.rglob("threads/*.html"))
    assert pages == ["index.html", *sorted(f"thread-{number}.html" for number in QUESTIONS)]
    assert {path.name for path in tmp_path.rglob("*-1.png")} == {"slt-1.png", "opt-1.png"}
