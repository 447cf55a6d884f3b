"""Commands and environments as authors of books define them, and what printed LaTeX makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirblab.sources.own import latex

MAKER = r"""\makeatletter\newcommand{\op}{\@dblarg\@op}\def\@op[#1]#2{%
\expandafter\newcommand\csname #2\endcsname{\mathop{\mathrm{#1}}}%
\expandafter\newcommand\csname B#2\endcsname{\mathop{\mathrm{B#1}}}}\op{Aut}\op[End]{En}"""
DRAWN = r"""\newcommand{\over}[1]{\vbox{\ialign{##\cr$#1$\cr}}}
\newcommand{\mk}[2]{\expandafter\newcommand\csname #1to\endcsname{\mathrel{\over{#2}}}}\mk{eq}{=}"""
QUANTIFIER = r"""\NewDocumentCommand \all { o o } {
  \IfNoValueTF {#1} { \forall } { \forall #1 } \IfNoValueTF {#2} \relax { \, #2 } }"""
EMPTY = r"\newcommand{\of}[1]{f\if\relax\detokenize{#1}\relax\else(#1)\fi}"


def read(tmp_path: Path, files: dict[str, str]) -> latex.LatexContent:
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    return latex.read_latex({name: tmp_path / name for name in sorted(files)})


def theorem(tmp_path: Path, inside: str, preamble: str = "") -> str:
    text = rf"{preamble}\begin{{theorem}}{inside}\end{{theorem}}"
    return read(tmp_path, {"a.tex": text}).statements[0].text


@pytest.mark.parametrize(
    ("preamble", "inside", "text"),
    [
        (r"\newcommand*{\mk}[2]{\def#1{#2}}\mk \Nat {\mathbb{N}}", r"$\Nat$", r"$\mathbb{N}$"),
        (r"\newcommand{\mk}[1]{\expandafter\DeclareMathOperator\csname #1\endcsname{#1}}\mk{ch}", r"$\ch$",
         r"$\operatorname{ch}$"),
        (r"\newcommand{\mk}[1]{\@namedef{#1x}{#1}}\mk{a}\expandafter\def\csname by\endcsname{c}", r"$\ax\by$", "$ac$"),
        (MAKER, r"$\Aut G, \BEn$", r"$\mathop{\mathrm{Aut}}G, \mathop{\mathrm{BEnd}}$"),
        (r"\newcommand{\mk}[2]{\newenvironment{#1}{\begin{#2}}{\end{#2}}}\mk{steps}{enumerate}",
         r"\begin{steps}\item A\item B\end{steps}", "(1) A\n(2) B"),
        (DRAWN, r"$a \eqto b$", r"$a \eqto b$"),  # drawn by hand: its name says more
        (r"\newcommand{\mk}{\mk\def#1{}}\mk", "A", "A"),
        (r"\newcommand{\mk}[2]{\expandafter\gdef\csname Law#1\endcsname{$#2$}}", r"A\mk{3}{x=y}.", "A."),
        (r"\newcommand{\mk}[2]{\emph{#2}\def#1{#2}}", r"A \mk\K{field}.", "A field."),
    ],
)  # fmt: skip
def test_commands_may_be_made_by_commands(tmp_path, preamble, inside, text):
    """What an author's command defines is a command of the author, and has the name that the arguments give."""
    assert theorem(tmp_path, inside, preamble) == text


def test_a_style_makes_commands_by_those_of_another(tmp_path):
    r"""The name of a command may have a word of LaTeX in it, as \DeclareDocumentMacro has."""
    files = {
        "a.tex": r"\documentclass{book}\usepackage{one}\usepackage{two}\begin{lemma} $\Nat$ \end{lemma}",
        "one.sty": r"\newcommand*{\DeclareDocumentMacro}[2]{\def#1{#2}}",
        "two.sty": r"\DeclareDocumentMacro \Nat {\mathbb{N}}",
    }
    assert read(tmp_path, files).statements[0].text == r"$\mathbb{N}$"


@pytest.mark.parametrize(
    ("preamble", "inside", "text"),
    [
        (r"\let\oldeq\equiv\renewcommand{\equiv}{\simeq}\newcommand{\defeq}{:\oldeq}", r"$a \defeq b \equiv c$",
         r"$a :\equiv b \simeq c$"),
        (r"\let\oldphi\phi\let\phi\varphi", r"$\phi\oldphi x$", r"$\varphi\phi x$"),
        (r"\let\nsum\sum\renewcommand{\sum}{\displaystyle\nsum}", r"$\sum_n$", r"$\sum_n$"),  # the same, larger
    ],
)  # fmt: skip
def test_a_saved_command_is_that_before_it_was_renewed(tmp_path, preamble, inside, text):
    r"""\let keeps what a command meant; written out as the new one, a definition became an equivalence."""
    assert theorem(tmp_path, inside, preamble) == text


@pytest.mark.parametrize(
    ("preamble", "inside", "text"),
    [
        (QUANTIFIER, r"$\all[x][Px], \all[y]$", r"$ \forall x \, Px , \forall y $"),
        (EMPTY, r"$\of{}, \of{x}$", "$f, f(x)$"),
        (r"\newcommand{\n}[2][\relax]{\ifx#1\relax |#2|\else |#2|_{#1}\fi}", r"$\n{x}, \n[p]{x}$", r"$|x|, |x|_{p}$"),
        (r"\newcommand{\ap}[2]{{\expandafter#1#2}}", r"$\ap{\mathfrak}{M}$", r"${\mathfrak M}$"),
        (r"\def\is{\mathchar`\=}", r"$a \is b$", "$a =b$"),
        (r"\newcommand{\order}{cardinality\xspace}", r"of \order $p$, \order.", "of cardinality $p$, cardinality."),
        (r"\newcommand{\two}{\ensuremath{2}\xspace}", r"$A=\two \to B$ is \two \emph{or} \two not",
         r"$A=2\to B$ is $2$ or $2$ not"),
        (r"\newcommand{\ie}{i.e.\@\xspace}\newcommand{\in}[2]{#2\@}", r"A, \ie B, \in{one}{two}.", "A, i.e. B, two."),
        (r"\newcommand{\due}[1]{\immediate\write\file{#1;\thepage}}", r"\due{1} A\typeout{note} ring.", "A ring."),
        ("", r"\checkmark{} or no, as \shadowbox{said}:\\~ $\checkmark$.", r"✓ or no, as said: $\checkmark$."),
        ("", r"\shorthandoff{:}A \boldmath ring.", "A ring."),
        (r"\newcommand{\ie}{i.e., }\newcommand{\x}{x }", r"A, \ie B, $\x y$", "A, i.e., B, $xy$"),
        ("", r"la 3\ieme{} fois, \(i\)\ieme\ ligne", r"la 3e fois, \(i\)e ligne"),
        ("", r"A \begin{tasks}[style=x](2)\task* one\task $x$\end{tasks} in \unit[9.8]{m} or \unitfrac{m}{s}",
         "A\n(a) one\n(b) $x$\nin 9.8 m or m/s"),
        ("", r"A\glossary(b){$B$}{the letter} and\glossary{c} C", "A and C"),
        ("", r"{\fontfamily{bch}\fontseries{b}\usefont{T1}{cmr}{m}{n} Hint} to \sum", "Hint to"),
        ("", r"A \begin{subequations}\begin{numcases}{f=} a_1 & b\\ c & d\end{numcases}\end{subequations} B",
         r"A \begin{numcases}{f=} a_1 & b\\ c & d\end{numcases} B"),
        ("", "A\n\t\\begin{subequations}\n\\begin{align}\na\n\\end{align}\n\t\\end{subequations}\nB",
         r"A \begin{align} a \end{align} B"),
        (r"\newcommand{\C}{\mathbbm{C}}\newcommand{\K}{\mathbb K}", r"$\hat\C, \hat\K$",
         r"$\hat{\mathbbm{C}}, \hat{\mathbb K}$"),
        (r"\NewDocumentCommand{\at}{m o}{#1_{#2}}", r"$\at{x}[1] \at{y}$", r"$x_{1} y_{}$"),
        (r"\newcommand{\s}[1]{\hbox to 1.2em{$#1$\hfil}}", r"$\s{T} A$", r"$\hbox{$T$} A$"),
        ("", "Ein \"`Satz\"' und ein ``set''", 'Ein "Satz" und ein "set"'),
        ("", r"A \begin{numcases}{} x\geq y\\ z\end{numcases} B", r"A \begin{numcases}{} x\geq y\\ z\end{numcases} B"),
    ],
)  # fmt: skip
def test_commands_print_what_tex_prints(tmp_path, preamble, inside, text):
    r"""Branches of \relax, blanks after words, ordinals of babel, entries of memoir and systems of equations."""
    assert theorem(tmp_path, inside, preamble) == text


def test_the_slides_on_which_something_is_shown_are_no_text(tmp_path):
    """Overlays of beamer: they stood in texts, and a title after one was lost."""
    source = r"""\begin{theorem}<2->[Zorn] Here\begin{itemize}[<+->]\item<2-| alert@3> \uncover<.->{$a$}
    \item<+-> \only<2,4>{b}\onslide<3->c and \alt<5>{one}{two}\end{itemize}\end{theorem}
    \begin{proof}<3-> For $x<2$ and $<3>$ it is \alert<4>{so}.\end{proof}"""
    (statement,) = read(tmp_path, {"a.tex": source}).statements
    assert (statement.title, statement.text) == ("Zorn", "Here\n* $a$\n* b c and two")
    assert statement.proofs[0].text == "For $x<2$ and $<3>$ it is so."


def test_an_environment_may_be_two_commands(tmp_path):
    r"""As \def\claim and \def\endclaim; one that begins a \proof is the proof of what its heading refers to."""
    made = r"\def\built#1{\proof[Construction of \cref{#1}]}\def\endbuilt{\endproof}"
    text = r"\begin{lemma}\label{one} A.\end{lemma}\begin{lemma} B.\end{lemma}\begin{built}{one} Take C. \end{built}"
    content = read(tmp_path, {"a.tex": made + text})
    assert [[proof.text for proof in each.proofs] for each in content.statements] == [["Take C."], []]


def test_steps_of_a_proof_are_no_proof(tmp_path):
    """An environment made of a list is one, whatever its name says."""
    made = r"\newenvironment{subproof}{\begin{enumerate}}{\end{enumerate}}"
    text = r"\begin{lemma} A.\end{lemma}\begin{proof} So: \begin{subproof}\item B\item C\end{subproof}\end{proof}"
    content = read(tmp_path, {"a.tex": made + text})
    assert [proof.text for proof in content.statements[0].proofs] == ["So:\n(1) B\n(2) C"]


@pytest.mark.parametrize(
    ("options", "kind"),
    [("name={}, refname={question,questions}, Refname={Question,Questions}", "question"), ("name=Idea of proof", "")],
)
def test_a_kind_may_be_named_where_it_is_referred_to(tmp_path, options, kind):
    """An environment that prints no name has that of \\cref; an idea of a proof is a proof."""
    made = rf"\declaretheorem[style=s, {options}]{{cq}}\begin{{lemma}} A.\end{{lemma}}\begin{{cq}} By hand.\end{{cq}}"
    content = read(tmp_path, {"a.tex": made})
    assert [each.kind for each in content.statements] == (["lemma", kind] if kind else ["lemma"])
    assert len(content.statements[0].proofs) == (0 if kind else 1)


def test_an_environment_may_collect_its_text(tmp_path):
    r"""\NewEnviron has \BODY for it, which is printed there, or kept for the end of a chapter."""
    source = r"""\NewEnviron{boxed}[1]{\fbox{#1 \BODY}}\NewEnviron{lateanswer}{\xdef\kept{\unexpanded{\BODY}}}
    \begin{boxed}{red}\begin{lemma} Yes.\end{lemma}\end{boxed}
    \begin{exercise} Add.\begin{lateanswer} It is two.\end{lateanswer}\end{exercise}"""
    lemma, exercise = read(tmp_path, {"a.tex": source}).statements
    assert (lemma.text, exercise.text) == ("Yes.", "Add.")
    assert [proof.text for proof in exercise.proofs] == ["It is two."]


def test_a_solution_apart_may_name_its_exercise_by_an_argument(tmp_path):
    """The environment prints a reference that its argument is part of; the solution was that of the last exercise."""
    source = r"""\newenvironment{solutionof}[1]{\textbf{Solution of \ref{ex:#1}}\label{sol:#1}}{}
    \begin{exercise}\label{ex:one} Add.\end{exercise}\begin{exercise}\label{ex:two} Subtract.\end{exercise}
    \begin{solutionof}{one} Two.\end{solutionof}\begin{solutionof}{two} None.\end{solutionof}"""
    proofs = {
        each.label: [proof.text for proof in each.proofs] for each in read(tmp_path, {"a.tex": source}).statements
    }
    assert proofs == {"ex:one": ["Two."], "ex:two": ["None."]}
