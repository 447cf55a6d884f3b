"""pretokens: formulas become the words that PyA0 makes of them, and more spellings agree on request."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirblab.core.errors import MirblabError
from mirblab.formula import ngrams
from mirblab.formula.ngrams import named_pretokenisation, pretokenise, pya0_symbols

NUMBERS = ("NUM", "FLOAT", "ONE", "ZERO")


@pytest.fixture(scope="session")
def pya0() -> Any:
    """Return PyA0 itself, which exists for Linux only."""
    return pytest.importorskip("pya0", reason="needs PyA0, on Linux: pip install '.[approach0]'")


def theirs(pya0: Any, latex: str) -> list[str]:
    """Return the symbols of PyA0's words for transformers, numbers in digits and letters without their font."""
    found = []
    for _, kind, symbol, span in pya0.tokenize(latex, include_spans=True, include_syntatic_literal=True):
        if kind in NUMBERS:
            found += latex[slice(*span)]
        elif symbol != "\n":
            found.append(symbol.split("`")[-1].strip("'") if "`" in symbol else symbol)
    return found


SPELLINGS = [
    ([r"\frac ab", r"\dfrac ab", r"\tfrac ab", r"\cfrac ab"], "frac a b"),
    (["a/b", r"a\div b"], "a frac b"),
    ([r"a\le b", r"a \leq b", r"a\leqq b"], "a le b"),
    ([r"\|x\|", r"\lVert x\rVert", r"\Vert x \Vert"], "Vert x Vert"),
    ([r"|x|", r"\lvert x\rvert", r"\vert x\vert", r"\big|x\big|"], "vert x vert"),
    ([r"a\cdot b", r"a\times b"], "a times b"),
    ([r"a:=b", "a=b", r"a\doteq b"], "a equal b"),
    ([r"\mathbb{R}", r"\mathbb R", r"\mathcal{R}", r"\mathfrak R", r"\bf R", "R"], "R"),
    ([r"\mathrm{R}", r"{\bf R}", r"\mathbf{ R }", r"\bar{R}", r"\operatorname{R}"], "{ R }"),
    (
        [r"\begin{align}a&=b\\c\end{align}", r"\begin{aligned}a&=b\\c\end{aligned}", r"a=b\\c"],
        "a equal b newline c",
    ),
    (
        [r"\begin{pmatrix}a&b\\c&d\end{pmatrix}", r"\begin{pmatrix} a & b \cr c & d \end{pmatrix}"],
        r"\begin{pmatrix} a column b row c column d \end{pmatrix}",
    ),
    ([r"\text{if $x$ {is} odd}", "*", r"\ast"], "ast"),
    ([r"\sin x", "sin x", r"\sin{}x"], "sin x"),
    ([r"12.5", r"1 2.5"], ["1 2 . 5", "1 2 . 5"]),
    ([r"f''(x)", r"f''\left( x\right)"], ["f prime prime ( x )", r"f prime prime \left( x \right)"]),
    ([r"\hspace{2cm} x \, \label{e} \color{red} \unknown", "x", "~x?"], "x"),
]


@pytest.mark.parametrize(("spellings", "expected"), SPELLINGS)
def test_spellings_of_a_symbol_are_one(spellings: Sequence[str], expected: str | list[str]) -> None:
    """What is merged, what is dropped, and what is kept apart."""
    wanted = [expected] * len(spellings) if isinstance(expected, str) else expected
    assert [" ".join(pya0_symbols(latex)) for latex in spellings] == wanted


@pytest.mark.parametrize(("spellings", "expected"), SPELLINGS)
def test_spellings_of_a_symbol_are_one_for_pya0_too(spellings: Sequence[str], expected: Any, pya0: Any) -> None:
    """What is expected above is what it writes."""
    wanted = [expected] * len(spellings) if isinstance(expected, str) else expected
    assert [" ".join(theirs(pya0, latex)) for latex in spellings] == wanted


@pytest.mark.parametrize(
    ("spellings", "expected"),
    [
        ([r"a\leqslant b", r"a\leq b"], "a le b"),
        ([r"a\rightarrow b", r"a\longrightarrow b", r"a\to b", "a → b"], "a to b"),
        ([r"1\ldots", r"1\cdots", r"1...", r"1\dots"], "1 dots"),
        ([r"\varphi\ne\varepsilon", r"\phi\neq\epsilon", r"\phi\not=\epsilon"], "phi ne epsilon"),
        ([r"\left(x\right)", r"\bigl(x\bigr)", "(x)"], "( x )"),
        ([r"\left\lvert x\right\rvert", r"|x|"], "vert x vert"),
        ([r"\frac12", r"\frac 1 2"], "frac 1 2"),
        ([r"\displaystyle\sum\limits_x", r"\sum_x"], "sum subscript x"),
        ([r"\Spec A"], "Spec A"),
    ],
)
def test_wide_merges_more_and_loses_less(spellings: Sequence[str], expected: str) -> None:
    """Spellings that PyA0 keeps apart are one symbol, and what it drops has one."""
    assert [" ".join(pya0_symbols(latex, wide=True)) for latex in spellings] == [expected] * len(spellings)


def test_switches_of_the_rules() -> None:
    """Numbers whole, fonts kept, text as written, no marks."""
    assert pya0_symbols("x^{12}", digits=False) == ["x", "supscript", "{", "12", "}"]
    fonts = r"\mathbb{R}\mathcal{AB}\mathfrak g\mathscr F\mathbf x"
    expected = ["blackboard-R", "calligraphic-A", "calligraphic-B", "fraktur-g", "calligraphic-F", "x"]
    assert pya0_symbols(fonts, fonts=True) == expected
    assert pretokenise("Let $X$", lower=False, mark="") == "Let X"
    assert named_pretokenisation("pya0-wide")(r"$a\leqslant b$") == "$a$ $le$ $b$"
    with pytest.raises(MirblabError, match="did you mean 'pya0'"):
        named_pretokenisation("pya")


def test_entities_and_line_marks_are_no_symbols() -> None:
    """`&lt;` is less than, also escaped twice, and a per cent sign does not cut off the rest as a comment."""
    assert pya0_symbols("a &lt; b &amp;gt; c") == ["a", "lt", "b", "gt", "c"]
    assert pya0_symbols(r"a% +b\%") == ["a", "plus", "b", "percent"]


TEXT = (
    "Inequality of norm $\\infty$ of Matrices: $\\|A\\|_2\\le\\sqrt{\\|A\\|_1}$ and "
    "\\begin{align*} x&=\\cos(2\\alpha)\\\\ z&=42 \\end{align*} So"
)
MARKED = TEXT.replace("$\\infty$", "[imath]\\infty[/imath]").replace("$\\|", "[imath]\\|").replace("}$", "}[/imath]")


def test_a_text_is_kept_around_its_formulas() -> None:
    """Lower case outside, words inside, displays unwrapped; delimiters of either kind are the same."""
    assert pretokenise(TEXT) == pretokenise(MARKED)
    assert pretokenise(TEXT).startswith(
        "inequality of norm $infty$ of matrices: $Vert$ $A$ $Vert$ $subscript$ $2$ $le$"
    )
    assert pretokenise(TEXT).endswith("$z$ $equal$ $4$ $2$ so")


def test_a_text_is_the_string_that_pya0_makes_of_it(pya0: Any) -> None:
    """To the character, formulas and the text around them."""
    assert pretokenise(MARKED) == pya0.preprocess_for_transformer(MARKED)


def test_the_words_of_the_papers_figure_are_ours() -> None:
    """Zhong et al. (2022), Figure 1, whose words stand between angle brackets: `\\infty`, and a bound of norms."""
    words = (
        "<Vert> <A> <Vert> <subscript> <2> <le> <root> <{> "
        "<Vert> <A> <Vert> <subscript> <1> <Vert> <A> <Vert> <subscript> <infty> <}>"
    )
    bound = r"\|A\|_2 \le \sqrt{\|A\|_1 \|A\|_\infty}"
    assert [f"<{word}>" for word in pya0_symbols(bound)] == words.split()
    assert pretokenise(rf"${bound}$") == words.replace("<", "$").replace(">", "$")
    # In the figure the words outside formulas keep their capital letters.
    assert pretokenise(r"Norm $\infty$", lower=False, mark="|") == "Norm |infty|"
    assert pretokenise(r"Norm $\infty$") == "norm $infty$"


def agreement(pya0: Any, formulas: Sequence[str]) -> tuple[float, float]:
    """Return F1 of the multisets of symbols, and the share of formulas with equal sequences."""
    shared = total = same = 0
    for latex in formulas:
        one, other = pya0_symbols(latex), theirs(pya0, latex)
        shared += sum((Counter(one) & Counter(other)).values())
        total += len(one) + len(other)
        same += one == other
    return 2 * shared / total, same / len(formulas)


@pytest.mark.parametrize("name", ["formulas.tsv.gz", "arqmath-2020-task2/corpus.jsonl.gz"])
def test_symbols_agree_with_pya0_on_real_formulas(shared_file: Callable[[str], Path], pya0: Any, name: str) -> None:
    """On 99 % of the symbols, where PyA0 takes no per cent sign for a comment."""
    with gzip.open(shared_file(f"data/{name}"), "rt", encoding="utf-8") as lines:
        read = (line.rstrip("\n").split("\t")[1] if "tsv" in name else json.loads(line)["text"] for line in lines)
        formulas = [latex for latex in read if latex and "%" not in latex]
    f1, same = agreement(pya0, random.Random(0).sample(formulas, 10_000))
    assert f1 > 0.99 and same > 0.97


@given(st.text(alphabet="\\{}$&^_%xfract()begin|'0.5 \n😀ℵ", max_size=40))
def test_any_text_has_words(latex: str) -> None:
    """No text is refused, and no symbol holds a blank."""
    for wide in (False, True):
        assert all(symbol and " " not in symbol for symbol in pya0_symbols(latex, wide=wide))
    assert isinstance(pretokenise(latex), str)


def test_the_rules_belong_to_a_version() -> None:
    """Vectors lie in caches under it: whoever changes the words of these formulas counts `VERSION` up."""
    names = sorted(ngrams.KNOWN | ngrams.SHAPES | set(ngrams.MERGED) | set(ngrams.ALSO) | ngrams.SILENT)
    text = "".join(f"${{\\{name}}} x_1^{{23.5}}$ " for name in names) + "".join(f"${sign}$ " for sign in ngrams.SIGNS)
    text += r"$\frac% {a}{1% 2}$ "
    text += r"\begin{align}a&=\text{b}\\c\end{align} and $\left\{\begin{array}{c}\mathbb{R}\frac12\end{array}\right.$"
    found = "".join(named_pretokenisation(form)(text) for form in ngrams.FORMS)
    digest = hashlib.blake2b(found.encode(), digest_size=8).hexdigest()
    assert (ngrams.VERSION, digest) == (5, "aa680816269c066a")
