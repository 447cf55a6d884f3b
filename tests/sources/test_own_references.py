"""What statements and proofs refer to, and which statement a proof is of, in one's own LaTeX as authors write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirblab.sources.own import build, latex

ONE = r"\begin{theorem}[Mean value theorem]\label{one} One.\end{theorem}"
TWO = r"\begin{theorem}\label{two} Two.\end{theorem}"


def read(tmp_path: Path, files: dict[str, str]) -> latex.LatexContent:
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    return latex.read_latex({name: tmp_path / name for name in files})


@pytest.mark.parametrize(
    ("preamble", "said", "labels"),
    [
        ("", r"By \crefrange{one}{two}.", ["one", "two"]),
        ("", r"By \Cpagerefrange{one}{two}.", ["one", "two"]),
        (r"\newcommand{\trange}[2]{Theorems \ref{#1} to \ref{#2}}", r"By \trange{one}{two}.", ["one", "two"]),
        ("", r"By \hyperlink{one}{that}, \hyperref[two]{this} and \zcref{one}.", ["two", "one"]),
    ],
)  # fmt: skip
def test_a_reference_names_all_its_labels(tmp_path, preamble, said, labels):
    """A range has two ends."""
    text = rf"\documentclass{{book}}{preamble}{ONE}{TWO}\begin{{lemma}}{said}\end{{lemma}}"
    assert list(dict.fromkeys(read(tmp_path, {"a.tex": text}).statements[-1].references)) == labels


def test_a_heading_refers_to_what_it_names(tmp_path):
    """A statement that is headed "Generalisation of Theorem 1" refers to that theorem."""
    content = read(tmp_path, {"a.tex": rf"{ONE}\begin{{lemma}}[Generalisation of \cref{{one}}] More.\end{{lemma}}"})
    assert content.statements[1].references == ["one"]
    assert content.statements[1].title == "Generalisation of theorem [ref]"


def test_an_argument_like_a_label_is_the_label(tmp_path):
    """Authors' environments take the title, the label and more as arguments, and only their packages know which."""
    preamble = r"\newenvironment{dfn}[3][]{\begin{mybox}{#1}{#2}{#3}{Definition}}{\end{mybox}}"
    body = r"\begin{dfn}[Prime]{dfn:prime}{1.2} A number.\end{dfn}\begin{lemma} By \ref{dfn:prime}.\end{lemma}"
    content = read(tmp_path, {"a.tex": preamble + body})
    assert [(each.label, each.title) for each in content.statements] == [("dfn:prime", "Prime 1.2"), ("", "")]
    assert content.labels.find("dfn:prime", "a.tex") is content.statements[0]


def test_labels_of_another_document_have_its_prefix(tmp_path):
    r"""By the package xr, \externaldocument[I-]{one} gives each label of that document a prefix."""
    use = (
        r"\documentclass{book}\externaldocument[I-]{one}\begin{lemma}\label{l} By \ref{I-one} and \ref{I-l}.\end{lemma}"
    )
    files = {"one.tex": r"\documentclass{book}\input{part}", "part.tex": ONE, "two.tex": use}
    content = read(tmp_path, files)
    assert content.labels.find("I-one", "two.tex") is content.statements[0]
    assert content.labels.find("I-one", "part.tex") is None
    folders = build.build(tmp_path, tmp_path / "data", name="x")
    assert (folders[-1] / "qrels" / "test.tsv").read_text("utf-8").split("\n")[1].split("\t") == ["l", "one", "1"]


@pytest.mark.parametrize(
    ("text", "proved"),
    [
        (rf"{ONE}\begin{{proof}} A.\end{{proof}}{TWO}"
         r"\begin{theorem}[Cauchy's mean value theorem]\label{three} Three.\end{theorem}"
         r"\begin{proof}[Proof of mean value theorem] B.\end{proof}", ["A.B.", "", ""]),
        (rf"\newtheorem{{alg}}{{Algorithm}}{ONE}\begin{{proof}} A.\end{{proof}}\begin{{alg}} Do.\end{{alg}}"
         r"\begin{proof} It ends.\end{proof}", ["A.", "It ends."]),
        (rf"{ONE}\begin{{proof}} A.\end{{proof}}\begin{{remark}} More.\end{{remark}}\begin{{proof}} Yes.\end{{proof}}",
         ["A.Yes.", ""]),
        (rf"{ONE}\begin{{remark}} More.\end{{remark}}\begin{{proof}} Yes.\end{{proof}}", ["Yes.", ""]),
    ],
)  # fmt: skip
def test_a_proof_is_that_of_the_statement_it_names_or_follows(tmp_path, text, proved):
    """A title as a whole comes before longer ones; a proved theorem leaves the next proof to what stands before it."""
    statements = read(tmp_path, {"a.tex": text}).statements
    assert ["".join(proof.text for proof in each.proofs) for each in statements] == proved


def test_a_label_is_made_of_what_its_file_has_set(tmp_path):
    r"""A command may set a part of all labels in its file; that of the last file counted in every file."""
    style = r"""\newcommand{\thepart}{x}\newcommand{\here}[1]{\setpart{#1}}
    \newcommand{\setpart}[1]{\renewcommand{\thepart}{#1}}\newcommand{\mylabel}[1]{\label{\thepart:#1}}
    \NewDocumentCommand{\myref}{o m}{\cref{\IfNoValueTF{#1}{\thepart}{#1}:#2}}"""
    lemma = r"\here{%s}\begin{lemma}\mylabel{l} Of $%s$.\end{lemma}\begin{lemma} By \myref{l}, \myref[a]{l}.\end{lemma}"
    files = {"book.tex": rf"\documentclass{{book}}{style}\input{{one}}\input{{two}}",
             "one.tex": lemma % ("a", "a"), "two.tex": lemma % ("b", "b")}  # fmt: skip
    content = read(tmp_path, files)
    assert [each.label for each in content.statements] == ["a:l", "", "b:l", ""]
    assert [each.references for each in content.statements] == [[], ["a:l", "a:l"], [], ["b:l", "a:l"]]
    assert content.statements[2].text == "Of $b$."


@pytest.mark.parametrize(
    ("one", "two", "texts"),
    [
        (r"\renewcommand{\G}{A}", r"\renewcommand{\G}{B}", ["$A$", "$B$", "$B$"]),
        (r"\renewcommand{\G}{A}", "", ["$A$", "$A$", "$A$"]),
        ("", r"\def\G{B}", ["$G$", "$B$", "$B$"]),
        ("", "", ["$G$", "$G$", "$G$"]),
    ],
)
def test_a_chapter_may_define_a_command_anew(tmp_path, one, two, texts):
    """A definition counts from its file on; the last one counted in all files."""
    lemma = r"\begin{lemma}$\G$\end{lemma}"
    files = {"main.tex": r"\documentclass{book}\newcommand{\G}{G}\include{b}\include{a}\include{c}",
             "b.tex": one + lemma, "a.tex": two + lemma, "c.tex": lemma}  # fmt: skip
    assert [each.text for each in read(tmp_path, files).statements] == texts


def test_a_main_file_defines_anew_what_its_header_defines(tmp_path):
    """The header is input above the document; the chapters see what the main file says after it."""
    main = r"""\documentclass{book}\input{header}\renewcommand{\G}{B}
    \begin{document}\input{a}\begin{lemma}$\G$\end{lemma}\end{document}"""
    files = {"main.tex": main, "a.tex": r"\begin{lemma}$\G$\end{lemma}",
             "header.tex": r"\newcommand{\G}{A}"}  # fmt: skip
    assert [each.text for each in read(tmp_path, files).statements] == ["$B$", "$B$"]
