"""ngrams: runs of symbols within formulas, the simple rival of structure search."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirblab.core.errors import MirblabError
from mirblab.data.collection import load_folder
from mirblab.evaluation import measures
from mirblab.formula.ngrams import latex_ngrams
from mirblab.retrieval import bm25
from mirblab.retrieval.systems import system
from mirblab.sources.catalogue import load


def test_runs_of_one_to_three_symbols() -> None:
    """Each symbol, then each pair, then each triple; begin and end count in the longer ones only."""
    assert latex_ngrams("x+1") == [
        "x",
        "plus",
        "1",
        "$ x",
        "x plus",
        "plus 1",
        "1 $",
        "$ x plus",
        "x plus 1",
        "plus 1 $",
    ]
    assert latex_ngrams("x+1", edges=False) == ["x", "plus", "1", "x plus", "plus 1", "x plus 1"]
    assert latex_ngrams("x+1", longest=1) == ["x", "plus", "1"]
    assert latex_ngrams("x", edges=False) == ["x"]


def test_only_formulas_count_and_none_reaches_over_two() -> None:
    """Prose has no runs; a text without delimiters is one formula when it reads as one."""
    assert latex_ngrams("Let $x$ and $y$ be", edges=False) == ["x", "y"]
    assert latex_ngrams("Let x and y be numbers") == [] == latex_ngrams("")
    assert latex_ngrams("xy", edges=False) == ["x", "y", "x y"]


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ({"braces": "few"}, ["x", "^", "2", "_", "{", "a", "b", "}"]),
        ({"braces": "none"}, ["x", "^", "2", "_", "a", "b"]),
        ({"braces": "all"}, ["x", "^", "{", "2", "}", "_", "{", "a", "b", "}"]),
        ({"merged": True}, ["x", "supscript", "2", "subscript", "{", "a", "b", "}"]),
    ],
)
def test_braces_and_spellings(way: dict, expected: list[str]) -> None:
    """Braces around one symbol vanish, or all, or none; sizes and spaces always do."""
    options = {"merged": False, "longest": 1} | way
    assert latex_ngrams(r"\displaystyle x^{2}\,_{ab}\quad", **options) == expected


def test_spellings_of_a_formula_have_the_same_runs() -> None:
    """`x^{{2}}` and `x^2`, `\\dfrac` and `\\frac`, sized fences and plain ones."""
    assert latex_ngrams(r"\left( x^{{2}} \leqslant \dfrac{1}{a b} \right)") == latex_ngrams(r"(x^2\le\frac1{ab})")


def test_an_unknown_way_is_refused() -> None:
    """With what is known."""
    with pytest.raises(MirblabError, match="no way to treat braces called 'some'; found all, few, none"):
        latex_ngrams("x", braces="some")


@given(st.text(alphabet="\\{}$ ^_x2(\n", max_size=30), st.integers(1, 4))
def test_as_many_runs_as_there_are_places(text: str, longest: int) -> None:
    """n symbols have n - k + 1 runs of k, two more with edges."""
    latex = "x" + text.replace("$", "")
    n = len(latex_ngrams(latex, longest=1))
    plain = sum(max(0, n - k + 1) for k in range(1, longest + 1))
    edged = n + sum(max(0, n + 3 - k) for k in range(2, longest + 1))
    assert len(latex_ngrams(latex, longest=longest, edges=False)) == plain
    assert len(latex_ngrams(latex, longest=longest)) == edged


def test_bm25_over_runs_reaches_the_reference(shared_file: Callable[[str], Path]) -> None:
    """On ARQMath-1's formulas, 45 topics: nDCG' above 0.731, what LaTeX 1-3-grams were measured at before."""
    collection = load_folder(shared_file("data/arqmath-2020-task2"))
    run = bm25.search(collection, depth=1000, tokenizer="latex-ngrams")
    values = measures.evaluate(run, collection, ["nDCG'", "AP'", "P'@10"], relevant_from=2)
    means = values.groupby("measure", observed=True).value.mean()
    assert means["nDCG'"] > 0.75 and means["AP'"] > 0.48 and means["P'@10"] > 0.44


@pytest.mark.parametrize("name", ["mini-hol", "mini-lean", "mini-isabelle", "mini-views-informal-signature"])
def test_statements_for_proof_assistants_are_read_as_words(name: str) -> None:
    """N-grams of LaTeX find what plain words find, where there is no LaTeX."""
    collection = load(name)
    words, ngrams = (system(own).search(collection) for own in ("bm25", "ngram"))
    assert ngrams.attrs["tokenizer"] == "math" and ngrams.doc_id.tolist() == words.doc_id.tolist()
