"""Statements in environments that an author makes by hand or by a package of boxes, and that print what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirblab.sources.own import latex


def read(tmp_path: Path, preamble: str, body: str) -> list[latex.Statement]:
    text = rf"\documentclass{{book}}{preamble}\begin{{document}}{body}\end{{document}}"
    (tmp_path / "a.tex").write_text(text, "utf-8")
    return latex.read_latex({"a.tex": tmp_path / "a.tex"}).statements


@pytest.mark.parametrize(
    ("preamble", "body", "kind", "title", "label"),
    [
        (r"\newtcolorbox[auto counter]{big}[2][]{title={Theorem~\thetcbcounter: #2},#1}",
         r"\begin{big}[label=one]{Zorn} All is well.\end{big}", "theorem", "Zorn", "one"),
        (r"\newtcolorbox{big}[2]{colback=red!5,title=Definition: #1,label={d:#2}}",
         r"\begin{big}{Prime}{p} All is well.\end{big}", "definition", "Prime", "d:p"),
        (r"\newtcolorbox{big}{title=Lemma}", r"\begin{big}\label{l} All is well.\end{big}", "lemma", "", "l"),
        (r"\NewTColorBox{big}{O{} m}{title={Exercise: #2},#1}",
         r"\begin{big}{Zorn} All is well.\end{big}", "exercise", "Zorn", ""),
        (r"\DeclareTColorBox[use counter=n]{big}{m}{title={\textbf{Satz} #1}}",
         r"\begin{big}{von Zorn} All is well.\end{big}", "satz", "von Zorn", ""),
        (r"\newmdenv[frametitle=Theorem,linecolor=red]{big}", r"\begin{big} All is well.\end{big}", "theorem", "", ""),
        (r"\newenvironment{big}[1][]{\refstepcounter{n}\par\textbf{Theorem~\then. #1}\itshape}{\par}",
         r"\begin{big}[Zorn] All is well.\label{z}\end{big}", "theorem", "Zorn", "z"),
        (r"\newenvironment{big}[2]{\begin{mdframed}[frametitle={Definition #1}]\label{#2}}{\end{mdframed}}",
         r"\begin{big}{Prime}{d} All is well.\end{big}", "definition", "Prime", "d"),
        (r"\newenvironment{big}{\par\textsc{Example.} }{\hfill$\diamond$}",
         r"\begin{big} All is well.\end{big}", "example", "", ""),
        (r"\newenvironment{big}[2]{\begin{theorem}[#1]\label{#2}}{\end{theorem}}",
         r"\begin{big}{Zorn}{z} All is well.\end{big}", "theorem", "Zorn", "z"),
        (r"\newframedtheorem{big}{Claim}", r"\begin{big}[Zorn] All is well.\end{big}", "claim", "Zorn", ""),
        (r"\mdtheorem[linewidth=2pt]{big}{Claim}", r"\begin{big}[Zorn] All is well.\end{big}", "claim", "Zorn", ""),
        (r"\newkeytheorem{big}[name=Claim]", r"\begin{big}[Zorn] All is well.\end{big}", "claim", "Zorn", ""),
        (r"\declaretheorem[name=\theoremname]{big}", r"\begin{big} All is well.\end{big}", "theorem", "", ""),
        (r"\declaretheorem[style=plain]{big,small}", r"\begin{small} All is well.\end{small}", "small", "", ""),
    ],
)  # fmt: skip
def test_an_environment_that_prints_the_name_of_a_kind_is_a_statement(tmp_path, preamble, body, kind, title, label):
    """Only those of packages of theorems were read; what stood in a box was lost, with the proofs of it."""
    (statement,) = read(tmp_path, preamble, body)
    found = (statement.kind, statement.title, statement.label, statement.text)
    assert found == (kind, title, label, "All is well.")


@pytest.mark.parametrize(
    "preamble",
    [
        r"\newtcolorbox{big}[1]{title=#1}",
        r"\newtcolorbox{big}[1]{colback=Theorem,title=Summary #1}",
        r"\newenvironment{big}[1]{\section*{Exercises}\begin{enumerate}}{\end{enumerate}}",
        r"\newenvironment{big}[1]{\addcontentsline{toc}{section}{Theorem #1}\refstepcounter{Theorem}}{}",
        r"\newenvironment{big}[1]{\TheoremFont\small}{}",
        r"\newenvironment{big}[1]{\section{Theorem #1}}{}",
    ],
)
def test_an_environment_that_prints_something_else_is_none(tmp_path, preamble):
    """A colour, a counter, a font, a heading or an entry of the contents that has the name of a kind prints no kind."""
    assert not [each for each in read(tmp_path, preamble, r"\begin{big}{x} All.\end{big}\begin{lemma}A.\end{lemma}")
                if each.kind != "lemma"]  # fmt: skip


def test_a_box_around_a_theorem_is_no_statement_of_its_own(tmp_path):
    """The box is dropped, and the theorem in it keeps its label and its proof."""
    body = r"""\begin{big}{Zorn}\begin{theorem}\label{t} All.\end{theorem}\end{big}\begin{proof} By hand.\end{proof}"""
    (statement,) = read(tmp_path, r"\newtcolorbox{big}[1]{title=#1}", body)
    assert (statement.label, [proof.text for proof in statement.proofs]) == ("t", ["By hand."])
