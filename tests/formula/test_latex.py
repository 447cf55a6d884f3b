"""LaTeX to layout trees: by hand, against LaTeXML's trees, and on everything that is wrong with real formulas."""

from __future__ import annotations

import csv
import gzip
import inspect
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from formula_trees import check_tree

from mirblab.formula import mathml
from mirblab.formula.latex.parser import MAX_LENGTH, parse_latex
from mirblab.formula.latex.reader import MAX_DEPTH
from mirblab.formula.tree import Tree, write_tangent

# Tangent's own strings for these formulas of ARQMath, then cases by hand where it has none.
TREES = [
    (r"f(x)= \frac{x^2 + c}{2x}", "[V!f[M!()1x1[=[O!divide,o[V!x[+[V!c]],a[N!2]],u[N!2[V!x]]]],w[V!x]]]"),
    (r"\sum_{k=0}^{n}\binom{n}{k}^{2}", "[∑[M!()1x1,a[N!2],w[O!divide,o[V!n],u[V!k]]],o[V!n],u[V!k[=[N!0]]]]"),
    (r"{n\choose 2}", "[M!()1x1,w[O!divide,o[V!n],u[N!2]]]"),
    (r"\overline{\mathbb{R}\setminus\mathbb{Q}}=\mathbb{R}", "[M!1x1[=[V!ℝ]],o[¯],w[V!ℝ[∖[V!ℚ]]]]"),
    (r"\gcd(n_{2},\frac{N}{a^{2}})", "[V!gcd[M!()1x2,w[V!n[&comma;],b[N!2],e[O!divide,o[V!N],u[V!a,a[N!2]]]]]]"),
    (r"90^{\circ}", "[N!90,a[∘]]"),
    (r"k[X]", "[V!k[M!&lsqb;&rsqb;1x1,w[V!X]]]"),
    (r"10 \equiv 3\pmod{7}", "[N!10[≡[N!3[M!()1x1,w[mod[N!7]]]]]]"),
    (r"\sum_{d|n}\phi(d)=n", "[∑[V!ϕ[M!()1x1[=[V!n]],w[V!d]]],u[V!d[|[V!n]]]]"),
    (r"|\mathbb{Q}|=|\mathbb{N}|", "[M!||1x1[=[M!||1x1,w[V!ℕ]]],w[V!ℚ]]"),
    (r"|\cdot|", "[M!||1x1,w[⋅]]"),
    (r"\int_{a}^{b}f(x)dx=0", "[∫[V!f[M!()1x1[𝑑[V!x[=[N!0]]]],w[V!x]]],o[V!b],u[V!a]]"),
    (r"9^{{^9}}", "[N!9,a[W!,a[N!9]]]"),
    (r"\text{Ext}^{1}(-,-)", "[T!Ext[M!()1x2,w[-[&comma;],e[-]]],a[N!1]]"),
    (r"Empty \iff \not \exists y", "[V!E[V!m[V!p[V!t[V!y[⇔[∄[V!y]]]]]]]]"),
    (r"\vec{x}+\vec v", "[V!x[+[V!v,o[→]]],o[→]]"),
    (r"1+2+...+n", "[N!1[+[N!2[+[V!…[+[V!n]]]]]]]"),
    (r"\int e^{x}\,\mathrm{d}{x}", "[∫[V!e[𝑑[V!x]],a[V!x]]]"),
    (r"\left(\begin{array}{l}{n}\\{k}\end{array}\right)", "[M!()2x1,w[V!n,e[V!k]]]"),
    (r"\begin{bmatrix}a&b\\c&\\\end{bmatrix}^T", "[M!&lsqb;&rsqb;2x2,a[V!T],w[V!a,e[V!b,e[V!c,e[W!]]]]]"),
    (r"\begin{cases}x&y\\z\end{cases}", "[M!{2x2,w[V!x,e[V!y,e[V!z,e[W!]]]]]"),
    (r"\left\{\begin{array}{ll}x&y\\z\end{array}\right.", "[M!{2x2,w[V!x,e[V!y,e[V!z,e[W!]]]]]"),
    (r"f=\{\begin{matrix}x\\y\end{matrix}", "[V!f[=[M!{2x1,w[V!x,e[V!y]]]]]"),
    (r"\sum_{\substack{i<n\\j}}a", "[∑[V!a],u[M!2x1,w[V!i[<[V!n]],e[V!j]]]]"),
    (r"\sqrt[3]{x}_1", "[O!root,b[N!1],c[N!3],w[V!x]]"),
    (r"x^\frac12", "[V!x,a[O!divide,o[N!1],u[N!2]]]"),
    (r"x^12", "[V!x[N!2],a[N!1]]"),
    (r"f''^2_i", "[V!f,a[′′[N!2]],b[V!i]]"),
    (r"\overset{n}{\to}\underset{x}{y}\stackrel{?}{=}", "[→[V!y[=,o[V!&quest;]],u[V!x]],o[V!n]]"),
    (r"\xrightarrow[g]{f}", "[→,o[V!f],u[V!g]]"),
    (r"\underbrace{a+b}_{n}", "[M!1x1,u[V!n],w[M!1x1,u[⏟],w[V!a[+[V!b]]]]]"),
    (r"\overline{\frac ab}", "[M!1x1,o[¯],w[O!divide,o[V!a],u[V!b]]]"),
    (r"\mathrm{Hom}(\mathbf{AB},\mathcal{AB})", "[V!Hom[M!()1x2,w[V!𝐀𝐁[&comma;],e[V!𝒜[V!ℬ]]]]]"),
    (r"{\bf x}+x, \operatorname*{argmax}_x", "[V!𝐱[+[V!x[&comma;[V!argmax,u[V!x]]]]]]"),
    (r"a \text{ if $x>0$ then} b", "[V!a[T!if[V!x[>[N!0[T!then[V!b]]]]]]]"),
    (r"a\text{for 10 {\em or} so}", "[V!a[T!for 10 \\em or so]]"),
    (r"|x||y| + 2|z|", "[M!||1x1[M!||1x1[+[N!2[M!||1x1,w[V!z]]]],w[V!y]],w[V!x]]"),
    (r"{a\over{b\over c}}^2", "[O!divide,a[N!2],o[V!a],u[O!divide,o[V!b],u[V!c]]]"),
    (r"||x||_2 = \|x\|", "[M!∥∥1x1[=[M!∥∥1x1,w[V!x]]],b[N!2],w[V!x]]"),
    (r"\{x\mid |x|<1\}", "[M!{}1x1,w[V!x[∣[M!||1x1[<[N!1]],w[V!x]]]]]"),
    (r"P(A|B)", "[V!P[M!()1x1,w[V!A[|[V!B]]]]]"),
    (r"d|n, e|m", "[V!d[|[V!n[&comma;[V!e[|[V!m]]]]]]]"),
    (r"[0,1)", "[M!&lsqb;)1x2,w[N!0[&comma;],e[N!1]]]"),
    (r"\lfloor x \rfloor", "[⌊[V!x[⌋]]]"),
    (r"10{,}000 + 1\,000 + 2 000.5", "[N!10000[+[N!1000[+[N!2000.5]]]]]"),
    (r"\not\frac{a}{b}", "[O!divide,o[V!a],u[V!b]]"),
    (r"{}^nC_k = {}_2F_1", "[V!C[=[V!F,b[N!1],d[N!2]]],b[V!k],c[V!n]]"),
    (r"T^a{}_b (^nC) f\Big|_{0}", "[V!T[M!()1x1[V!f[|,b[N!0]]],w[V!C,c[V!n]]],a[V!a],b[V!b]]"),
    (r"f^{\prime\prime}+y′ n!!", "[V!f[+[V!y[V!n[!!]],a[′]]],a[′′]]"),
    (r"\left\{x\left|y>1\right\}\right.", "[M!{}1x1,w[V!x[|[V!y[>[N!1]]]]]]"),
    (r"\partial^2 f", "[∂[V!f],o[N!2]]"),
    (r"\frac% {a}{1% 2}", "[O!divide,o[V!a],u[N!12]]"),
    (r"x_\mathrm{max}", "[V!x,b[V!max]]"),
    (r"\vec\mathbf{ab}", "[V!𝐚𝐛,o[→]]"),
    (r"||x|-|y||", "[M!||1x1,w[M!||1x1[-[M!||1x1,w[V!y]]],w[V!x]]]"),
    (r"||x||y", "[M!∥∥1x1[V!y],w[V!x]]"),
    (r"x\left(a \over b\right)", "[V!x[M!()1x1,w[O!divide,o[V!a],u[V!b]]]]"),
    (r"x\left.a \over b\right|_c", "[V!x[O!divide[|,b[V!c]],o[V!a],u[V!b]]]"),
    ("x² + a₁₂ⁿ", "[V!x[+[V!a,a[V!n],b[N!12]]],a[N!2]]"),
    ("10⁻³²", "[N!10,a[-[N!32]]]"),
    ("√x + √(y)", "[O!root[+[√[M!()1x1,w[V!y]]]],w[V!x]]"),
    (r"a &lt; b \amp x", "[V!a[<[V!b[V!amp[V!x]]]]]"),
    (r"\begin{pmatrix} 0 & 1 \\ * & 0 \end{pmatrix}", "[M!()2x2,w[N!0,e[N!1,e[*,e[N!0]]]]]"),
    (r"\begin{pmatrix} 0 \\*[2pt] 1 \end{pmatrix}", "[M!()2x1,w[N!0,e[N!1]]]"),
    (r"f(\left.2x\right|_0^1)", "[V!f[M!()1x1,w[N!2[V!x[|,a[N!1],b[N!0]]]]]]"),
    (r"\left\{x\right.25y", "[{[V!x[N!25[V!y]]]]"),
    (r"\left||x|-|y|\right|", "[M!||1x1,w[M!||1x1[-[M!||1x1,w[V!y]]],w[V!x]]]"),
    (r"\left|x\right||y|", "[M!||1x1[M!||1x1,w[V!y]],w[V!x]]"),
    (r"\left||x\right||", "[M!∥∥1x1,w[V!x]]"),
    (r"\smash[b]{x}+\smash y", "[V!x[+[V!y]]]"),
    (r"\cfrac[l]{a}{b}", "[O!divide,o[V!a],u[V!b]]"),
    (r"\begin{tabular*}{w}{cc}a&b\end{tabular*}", "[M!1x2,w[V!a,e[V!b]]]"),
    (r"\mathchoice{a}{b}{c}{d}+e", "[V!a[+[V!e]]]"),
    (r"\begin{rcases}a\\b\end{rcases}=1", "[M!2x1[}[=[N!1]]],w[V!a,e[V!b]]]"),
    (r"\left.\begin{matrix}a\\b\end{matrix}\right\}=1", "[M!2x1[}[=[N!1]]],w[V!a,e[V!b]]]"),
]


@pytest.mark.parametrize(("latex", "expected"), TREES, ids=[latex for latex, _ in TREES])
def test_formulas_have_the_trees_of_tangent(latex: str, expected: str) -> None:
    """Formulas have the trees that Tangent makes of LaTeXML's MathML."""
    assert write_tangent(check_tree(parse_latex(latex))) == expected


@pytest.mark.parametrize("latex", ["\\mathcal%\n{F}", "\\mathcal % \n F", "\\mathcal{%\n F}", "\\mathcal% F"])
def test_a_percent_sign_at_the_end_of_a_line_is_no_argument(latex: str):
    """In TeX it hides the end of the line, which is a blank in LaTeXML's formulas; "5%)" is a percentage."""
    assert parse_latex(latex).labels == parse_latex("\\mathcal{F}").labels
    assert parse_latex("\\F", {"\\F": latex}).labels == parse_latex("\\mathcal{F}").labels


def test_a_comment_in_a_formula_of_several_lines_is_none_of_it():
    r"""It goes up to the end of its line, also in text; `\%` begins none, and neither does a sign in a single line."""
    assert parse_latex("a % why, x = y\n + b").labels == ["V!a", "+", "V!b"]
    assert parse_latex("5\\% a\n + b % c").labels == ["N!5", "%", "V!a", "+", "V!b"]
    assert parse_latex("a \\\\% c\n + b").labels == ["V!a", "+", "V!b"]
    assert parse_latex("\\text{a % c\nb $x$}").labels == ["T!a b", "V!x"]
    assert marked("a % c\n + b") == [("V!a", "a"), ("+", "+"), ("V!b", "b")]
    assert parse_latex("a% + b").labels == ["V!a", "+", "V!b"]


@pytest.mark.parametrize("latex", ["", " \n", "%", r"\,", "{}", r"\left.\right.", "$$", r"\not", r"\displaystyle"])
def test_what_shows_nothing_has_no_node(latex: str) -> None:
    """Where nothing is to be seen there is no node."""
    assert parse_latex(latex) == Tree([], [], "")


def test_a_query_variable_is_one_node() -> None:
    """NTCIR's query variables are one node each, whatever they are called."""
    assert write_tangent(parse_latex(r"\qvar{x}^2+\qvar{ab}=\qvar x")) == "[&quest;x[+[&quest;ab[=[&quest;x]]]],a[N!2]]"


def marked(latex: str, macros: dict[str, str] | None = None) -> list[tuple[str, str]]:
    """Return label and source of each node."""
    tree = parse_latex(latex, macros)
    return [(label, latex[start:end]) for label, (start, end) in zip(tree.labels, tree.spans, strict=True)]


def test_each_node_knows_the_text_it_stands_for() -> None:
    """Each node knows what the user wrote for it, in whatever order the tree has it."""
    latex = r"\frac{ x_{10} }{\overline{ab}} + \left( \operatorname{Hom}\right) \text{ if }"
    assert marked(latex) == [
        *(("O!divide", r"\frac"), ("V!x", "x"), ("N!10", "10"), ("M!1x1", r"\overline"), ("V!a", "a"), ("V!b", "b")),
        *(("¯", r"\overline"), ("+", "+"), ("M!()1x1", r"\left("), ("V!Hom", r"\operatorname{Hom}")),
        ("T!if", r"\text{ if }"),
    ]


def test_spans_of_entities_and_macros() -> None:
    """Positions are those of the source with its entities and macros, not those of what they stand for."""
    assert marked("a &amp;lt; b&gt;c") == [("V!a", "a"), ("<", "&amp;lt;"), ("V!b", "b"), (">", "&gt;"), ("V!c", "c")]
    macros = {r"\Gr": r"\operatorname{Gr}_{#1}", r"\two": "{2}"}
    assert marked(r"\Gr{k}+\two", macros) == [("V!Gr", r"\Gr"), ("V!k", "k"), ("+", "+"), ("N!2", r"\two")]


def test_macros_take_arguments_and_use_each_other() -> None:
    """Macros take arguments in braces or single tokens, and may use each other."""
    macros = {r"\abs": r"\left|#1\right|", r"\pair": r"(#2,#1)", r"\p": r"\pair{a}", r"\Spec": r"\operatorname{Spec}"}
    assert write_tangent(parse_latex(r"\abs x+\p b", macros)) == "[M!||1x1[+[M!()1x2,w[V!b[&comma;],e[V!a]]]],w[V!x]]"
    assert parse_latex(r"\Spec A", macros).problems == ()
    assert parse_latex(r"\Spek A", macros).problems == (r"unknown command \Spek at 0",)


@pytest.mark.parametrize(
    ("latex", "labels"),
    [
        (r"\cat{Set}", ["T!Set"]),
        (r"\case{Set}", ["T!the Set case"]),
        (r"\case{finite  sets}", ["T!the finite sets case"]),
        (r"\case n", ["T!the n case"]),
        (r"\case{$x$}", ["T!the", "V!x", "T!case"]),
        (r"\cat{\em Set}", [r"T!\em Set"]),
        (r"\name{Hom}", ["V!Hom"]),
        (r"\name{\mathcal{H}om}", ["V!ℋ", "V!om"]),
    ],
)
def test_text_of_a_macro_has_its_arguments_whole(latex: str, labels: list[str]) -> None:
    """With the blanks of both; an argument that is no plain text is read as it is in a text."""
    macros = {r"\cat": r"\text{#1}", r"\case": r"\text{the #1 case}", r"\name": r"\operatorname{#1}"}
    assert parse_latex(latex, macros).labels == labels


@pytest.mark.usefixtures("in_time")
def test_text_of_a_macro_takes_no_time() -> None:
    """A long argument in each of many texts is cut off."""
    assert len(parse_latex(r"\a{" + "x" * 40_000 + "}", {r"\a": r"\text{#1}" * 20_000})) > 1


@pytest.mark.parametrize("body", [r"\a", r"\a\a", r"{\a\a}{\a#1\a}", r"#1#1#1#1 \a{#1#1}", r"\b", r"x\b\b\b\b"])
def test_macros_that_never_end(body: str, in_time: None) -> None:
    """A macro that calls itself is expanded in part, soon, and the tree says so."""
    tree = parse_latex(r"\a{\a{x}}+y", {r"\a": body, r"\b": r"\a\a\a"})
    assert len(tree) < 100_000
    assert tree.problems[0].startswith("macros that expand without end")


@pytest.mark.parametrize(
    ("latex", "problem"),
    [
        (r"\frac{a}{b", "brace or bracket not closed at 10"),
        (r"a}", "closing brace without its partner at 1"),
        (r"x + \foo{y}", r"unknown command \foo at 4"),
        (r"\begin{matrix} a", "environment not closed at 16"),
        (r"a \end{matrix}", r"\end{matrix} without its beginning at 2"),
        (r"{\sqrt}", "argument missing at 6"),
        (r"&lt; \foo", r"unknown command \foo at 5"),
        ("x" * (MAX_LENGTH + 1), f"longer than {MAX_LENGTH} characters: cut off at {MAX_LENGTH}"),
        ("x^{" * 1000, f"nested deeper than {MAX_DEPTH}: left out at {3 * (MAX_DEPTH + 1)}"),
    ],
)
def test_what_is_not_understood_is_named_with_its_place(latex: str, problem: str) -> None:
    """What was not understood is named, with its place."""
    assert problem in parse_latex(latex).problems


def nested(tree: Tree) -> int:
    """Return on how many lines within lines the deepest node stands."""
    levels: list[int] = []
    for parent, relation in zip(tree.parents, tree.relations, strict=True):
        levels.append(levels[parent] + (relation not in "ne") if parent >= 0 else 0)
    return max(levels)


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        "x^{",
        r"\frac{",
        r"\sqrt",
        r"\sqrt[",
        "(",
        r"\left(",
        r"\begin{matrix}",
        r"\hat",
        r"\overset{",
        "|",
        r"a\over{",
    ],
)
def test_nesting_is_bounded_without_recursion(piece: str) -> None:
    """Nesting is bounded, without recursion: nothing here needs more of the stack than a flat formula."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 60)
    try:
        tree = parse_latex(piece * 5000 + "x")
    finally:
        sys.setrecursionlimit(limit)
    assert nested(check_tree(tree)) <= 2 * MAX_DEPTH


@pytest.mark.parametrize(
    "piece",
    [
        "x",
        "x^",
        "_",
        "'",
        "(|",
        "|",
        r"\text{",
        r"\left.",
        "{a,",
        "$",
        "&lt;",
        "&",
        r"\\",
        "1 ",
        "....",
        r"\begin{",
        "\\",
    ],
)
def test_a_long_formula_is_read_soon(piece: str, in_time: None) -> None:
    """The longest formula that is read whole is read soon, whatever it repeats."""
    assert len(check_tree(parse_latex((piece * MAX_LENGTH)[:MAX_LENGTH]))) <= MAX_LENGTH


def bag(tree: Tree) -> Counter:
    """Return the multiset of symbols and adjacent pairs, letters without their fonts."""
    labels = [label[:2] + unicodedata.normalize("NFKC", label[2:]) if "!" in label else label for label in tree.labels]
    return Counter(labels) + Counter((labels[parent], labels[child], how) for parent, child, how in tree.edges())


def test_agreement_with_latexml(shared_file: Callable[[str], Path]) -> None:
    """Mean F1 of symbols and pairs against LaTeXML, its own failures included, is at least 0.94 on 1,850 formulas."""
    csv.field_size_limit(10**9)
    scores = []
    for year in (2020, 2021):
        latex, xml = (
            {row[0]: row[4] for row in csv.reader(gzip.open(path, "rt", encoding="utf-8", newline=""), delimiter="\t")}
            for path in (shared_file(f"sources/latexml-gold/{year}.{kind}.tsv.gz") for kind in ("latex", "slt"))
        )
        for name in sorted(latex.keys() & xml.keys() - {"id"}):
            own, other = bag(parse_latex(latex[name])), bag(mathml.parse_mathml(xml[name]))
            scores.append(2 * sum((own & other).values()) / max(1, sum(own.values()) + sum(other.values())))
    assert len(scores) == 1850
    assert sum(scores) / len(scores) >= 0.94


def test_real_formulas_have_sound_trees(shared_file: Callable[[str], Path]) -> None:
    """Every hundredth of half a million real formulas gives a sound tree, most of them without a problem."""
    with gzip.open(shared_file("data/formulas.tsv.gz"), "rt", encoding="utf-8") as lines:
        trees = [check_tree(parse_latex(line.rstrip("\n").split("\t")[1])) for line in list(lines)[::100]]
    assert sum(bool(tree.problems) for tree in trees) < 0.15 * len(trees)
    assert sum(not tree.labels for tree in trees) < 0.01 * len(trees)


@pytest.mark.parametrize(
    ("latex", "problem"),
    [
        ("x^2^3", "second superscript on one symbol at 3"),
        ("x_1_2", "second subscript on one symbol at 3"),
        (r"\left( x + 1", r"\left without its \right at 12"),
        (r"\left. x + 1", r"\left without its \right at 12"),
        (r"\left( x ] + 1", r"\left without its \right at 14"),
        (r"(x + 1 \right)", r"\right without its \left at 7"),
        (r"\frac{x \right.}{2}", r"\right without its \left at 8"),
        (r"\left( x \right", r"\left without its \right at 15"),
        (r"\left( x \right) \right)", r"\right without its \left at 17"),
        ("x'^2", None),
        (r"\left(x\right)", None),
        (r"\left( x \right.", None),
        (r"\left. x \right|_0", None),
        (r"\left( (0, x] \right) + \left[ (0, x \right]", None),
        (r"\left( a \over b \right)", None),
        (r"\left( {a \left[ b \right) } \right)", None),
        (r"\left( \begin{matrix} \left| a \right| & b \\ \left( c \right. & d \end{matrix} \right.", None),
    ],
)
def test_what_tex_refuses_is_noted(latex: str, problem: str | None):
    r"""Two scripts of one kind, and \left or \right alone; primes, empty fences and unlike ones are in order."""
    assert parse_latex(latex).problems == ((problem,) if problem else ())
