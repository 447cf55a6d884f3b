"""MathML to trees: as Tangent makes them, as LaTeX gives them, whatever the document is like."""

from __future__ import annotations

import csv
import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from formula_trees import check_tree

from mirblab.formula import mathml
from mirblab.formula.latex import parser
from mirblab.formula.mathml import MOST, parse_content_mathml
from mirblab.formula.tree import Tree, read_tangent, write_tangent


def layout(inner: str) -> str:
    """Return the Tangent string of what stands inside of <math>."""
    return write_tangent(mathml.parse_mathml(f"<math>{inner}</math>"))


def flat(text: str) -> str:
    """Return letters as identifiers and the rest as operators, without any grouping."""
    return "".join(f"<mi>{one}</mi>" if one.isalnum() else f"<mo>{one}</mo>" for one in text)


X, Y, TWO = "<mi>x</mi>", "<mi>y</mi>", "<mn>2</mn>"


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (f"<msup>{X}{TWO}</msup><mo>=</mo><mn>4</mn>", "[V!x[=[N!4]],a[N!2]]"),
        (f"<msubsup>{X}{Y}{TWO}</msubsup>", "[V!x,a[N!2],b[V!y]]"),
        (f"<mfrac>{X}{Y}</mfrac>", "[O!divide,o[V!x],u[V!y]]"),
        (f"<msqrt>{X}{Y}</msqrt>", "[O!root,w[V!x[V!y]]]"),
        (f"<mroot>{X}<mn>3</mn></mroot>", "[O!root,c[N!3],w[V!x]]"),
        (f"<munderover><mo>∑</mo>{X}{Y}</munderover>{TWO}", "[∑[N!2],o[V!y],u[V!x]]"),
        (f"<msup><mo>∂</mo>{TWO}</msup>{X}", "[∂[V!x],o[N!2]]"),
        (f"<mover><mrow>{X}{Y}</mrow><mo>¯</mo></mover>", "[M!1x1,o[¯],w[V!x[V!y]]]"),
        (f"<msup><mover>{X}<mo>˙</mo></mover>{TWO}</msup>", "[V!x,a[N!2],o[˙]]"),
        (f"<msup><mi/>{TWO}</msup>", "[W!,a[N!2]]"),
        (f"<mi/><mo>=</mo>{X}<mo>\u2062</mo>{Y}<mspace/><mphantom>{X}</mphantom>", "[=[V!x[V!y]]]"),
        (f"<mmultiscripts>{X}{Y}<none/><mprescripts/><none/>{TWO}</mmultiscripts>", "[V!x,b[V!y],c[N!2]]"),
        (f"<mtext> if </mtext><mstyle><mpadded>{X}</mpadded></mstyle>", "[T!if[V!x]]"),
        (f"<menclose notation='box'>{X}</menclose>", "[box,w[V!x]]"),
        ("<merror><mtext>\\foo</mtext></merror>", "[E!]"),
        ("<mws:qvar xmlns:mws='search' name='a'/>", "[&quest;a]"),
        ("<mi mathvariant='double-struck'>R</mi><mi mathvariant='normal'>d</mi>", "[V!ℝ[V!d]]"),
        ("<mn>10 000</mn><mo>−</mo><mo>&InvisibleTimes;</mo>", "[N!10000[-]]"),
        (f"<mrow><mo>(</mo><mtable><mtr><mtd>{X}</mtd><mtd/></mtr><mtr><mtd>{Y}</mtd></mtr></mtable><mo>)</mo></mrow>",
         "[M!()2x2,w[V!x,e[W!,e[V!y,e[W!]]]]]"),
        (f"<mrow><mo>{{</mo><mtable><mtr><mtd>{X}</mtd></mtr><mtr><mtd>{Y}</mtd></mtr></mtable></mrow>",
         "[M!{2x1,w[V!x,e[V!y]]]"),
        (f"<mfenced open='[' close=')'>{X}{Y}</mfenced>", "[M!&lsqb;)1x2,w[V!x[&comma;],e[V!y]]]"),
        (f"<mrow><mo>(</mo>{X}<msup><mo>)</mo>{TWO}</msup></mrow>", "[M!()1x1,a[N!2],w[V!x]]"),
    ],
)  # fmt: skip
def test_an_element_becomes_what_tangent_makes_of_it(inner: str, expected: str):
    """Each by hand, after strings that Tangent wrote."""
    assert layout(inner) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(x,y)=z", "[V!f[M!()1x2[=[V!z]],w[V!x[&comma;],e[V!y]]]]"),
        ("(a)+(b)", "[M!()1x1[+[M!()1x1,w[V!b]]],w[V!a]]"),
        ("[a,b)", "[M!&lsqb;)1x2,w[V!a[&comma;],e[V!b]]]"),
        ("|x|+|y|", "[M!||1x1[+[M!||1x1,w[V!y]]],w[V!x]]"),
        ("P(a|b)", "[V!P[M!()1x1,w[V!a[|[V!b]]]]]"),
        ("∥a(∥b∥)∥", "[M!∥∥1x1,w[V!a[M!()1x1,w[M!∥∥1x1,w[V!b]]]]]"),
        ("()", "[M!()1x1,w[W!]]"),
        (")(", "[)[(]]"),
        ("(a", "[([V!a]]"),
    ],
)
def test_brackets_find_their_partners_in_a_flat_row(text: str, expected: str):
    """LaTeXML groups them, other producers do not."""
    assert layout(flat(text)) == expected


def test_prefixes_declarations_and_annotations_change_nothing():
    """Nor do comments, CDATA and a document type."""
    plain = mathml.parse_mathml("<math><mi>x</mi><mo>&lt;</mo><mn>2</mn></math>")
    dressed = """<?xml version="1.0"?><!DOCTYPE math [<!ENTITY x "boom">]>
        <m:math xmlns:m="http://www.w3.org/1998/Math/MathML" alttext="x&gt;2"><m:semantics><m:mrow>
        <!-- <m:mi>no</m:mi> --><m:mi><![CDATA[x]]></m:mi><m:mo>&#60;</m:mo><m:mn>2</m:mn></m:mrow>
        <m:annotation encoding="application/x-tex">x<2</m:annotation>
        <m:annotation-xml><m:ci>x</m:ci></m:annotation-xml></m:semantics></m:math>"""
    assert mathml.parse_mathml(dressed) == plain
    assert plain.problems == ()


@pytest.mark.attacks
def test_an_entity_of_the_document_is_never_resolved(tmp_path: Path):
    """Neither text nor a file comes in; a billion laughs stay six letters."""
    secret = tmp_path / "secret"
    secret.write_text("secret", "utf-8")
    for value in (f'SYSTEM "{secret.as_uri()}"', '"boom"'):
        found = mathml.parse_mathml(f"<!DOCTYPE m [<!ENTITY e {value}>]><math><mi>&e;</mi></math>").labels
        assert found == ["V!&e;"]


@pytest.mark.parametrize(
    ("xml", "labels", "problems"),
    [
        ("<math><mi>x</math>", ["V!x"], ("<mi> is not closed",)),
        ("<math><mi>x</mi></mrow></math>", ["V!x"], ("an end tag without its start: </mrow>",)),
        ("<math><mfrac><mi>x</mi></mfrac>", ["O!divide", "V!x"], ("1 element is not closed",)),
        ("<math>x<mn>2</mn></math>", ["T!x", "N!2"], ("text outside of an element: 'x'",)),
        ("<math><mi>x</mi", ["V!x"], ("1 element is not closed",)),
        ("plain", ["T!plain"], ("text outside of an element: 'plain'",)),
        ("", [], ()),
    ],
)
def test_a_malformed_document_gives_the_best_tree_and_says_what_was_wrong(
    xml: str, labels: list[str], problems: tuple[str, ...]
):
    """It never raises."""
    tree = mathml.parse_mathml(xml)
    assert tree.labels == labels
    assert tuple(tree.problems) == problems


def rows(path: Path) -> Iterator[dict[str, str]]:
    csv.field_size_limit(10**7)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t")


def topics(shared_file: Callable[[str], Path], what: str) -> list[tuple[str, str, str]]:
    """Return name, LaTeXML's MathML and Tangent's string of the formula topics of 2020."""
    with gzip.open(shared_file("sources/arqmath-official/topics.arqmath-2020-task2-origin.xml.gz"), "rt") as file:
        named = re.findall(r'number="(B\.\d+)">\s*<Formula_Id>(q_\d+)', file.read())
    gold = {row["id"]: row[what] for row in rows(shared_file(f"sources/latexml-gold/2020.{what}.tsv.gz"))}
    lines = shared_file("data/arqmath-2020-task2/queries.jsonl").read_text("utf-8").splitlines()
    strings = {row["_id"]: row[what] for row in map(json.loads, lines)}
    return [(name, gold[formula], strings[name]) for name, formula in named if name in strings]


def comparable(xml: str) -> bool:
    """Return whether LaTeXML knew all commands, and read the characters of the source right."""
    return not re.search(r"merror|<mtext>[\\{]|â", xml)


@pytest.mark.parametrize(
    ("what", "parse", "others"),
    [  # B.84 has &lt;, which is < for us; of others the text has changed, or ? is a wildcard there
        ("slt", mathml.parse_mathml, {"B.37", "B.70", "B.84", "B.86"}),
        ("opt", parse_content_mathml, {"B.32", "B.37", "B.59", "B.70", "B.86"}),
    ],
)
def test_trees_of_the_topics_are_tangents(
    shared_file: Callable[[str], Path], what: str, parse: Callable[[str], Tree], others: set[str]
):
    """All but a few of those that LaTeXML has read without errors."""
    found = topics(shared_file, what)
    wrong = {name for name, xml, text in found if comparable(xml) and parse(xml) != read_tangent(text)}
    assert len(found) == 74 and sum(comparable(xml) for _, xml, _ in found) >= 56 and wrong <= others


def test_layout_trees_of_judged_formulas_are_tangents(shared_file: Callable[[str], Path]):
    """443 of them are in the part of the collection that is at hand; ten differ, nine of which have HTML's &lt;."""
    strings = {}
    with gzip.open(shared_file("data/arqmath-2020-task2/corpus.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            strings[row["_id"]] = row.get("slt")
    path = shared_file("sources/arqmath-collection/slt_representation_v3/1.tsv.gz")
    found = {row["old_visual_id"]: row["formula"] for row in rows(path) if strings.get(row["old_visual_id"])}
    same = sum(mathml.parse_mathml(xml) == read_tangent(strings[name]) for name, xml in found.items())
    assert len(found) > 400 and len(found) - same <= 10


def test_mathml_and_latex_give_the_same_tree(shared_file: Callable[[str], Path]):
    """In 97 of 100 formulas that LaTeXML could read."""
    n_same = n_all = 0
    for year in ("2020", "2021"):
        folder = shared_file("sources/latexml-gold")
        sources = {row["id"]: row["formula"] for row in rows(folder / f"{year}.latex.tsv.gz")}
        for row in rows(folder / f"{year}.slt.tsv.gz"):
            xml = row.get("slt") or row["formula"]
            if comparable(xml):
                n_all += 1
                n_same += parser.parse_latex(sources[row["id"]]) == mathml.parse_mathml(xml)
    assert n_all > 1600 and n_same / n_all >= 0.95


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("<apply><plus/><ci>x</ci><cn>1</cn></apply>", "[U!plus,0[V!x],1[N!1]]"),
        ("<apply><csymbol cd='ambiguous'>superscript</csymbol><ci>x</ci><cn>2</cn></apply>", "[O!SUP,0[V!x],1[N!2]]"),
        ("<apply><root/><ci>x</ci></apply>", "[O!root,0[V!x],1[N!2]]"),
        ("<apply><root/><degree><cn>3</cn></degree><ci>x</ci></apply>", "[O!root,0[V!x],1[N!3]]"),
        ("<apply><int/><ci>x</ci></apply>", "[O!int,0[V!x],1[W!],2[W!]]"),
        ("<apply><forall/><bvar><ci>x</ci></bvar><bvar><ci>y</ci></bvar><ci>p</ci></apply>",
         "[O!forall,0[V!p],1[V!x],2[V!y]]"),
        ("<apply><int/><bvar><ci>x</ci></bvar><lowlimit><cn>0</cn></lowlimit><bvar><ci>y</ci></bvar><ci>z</ci></apply>",
         "[O!int,0[V!z],1[N!0],2[W!],3[V!x],4[V!y]]"),
        ("<apply><sin/><infinity/></apply>", "[F!sin,0[C!infinity]]"),
        ("<apply><ci>→</ci><ci>a</ci><ci>b</ci></apply>", "[F!→,0[V!a],1[V!b]]"),
        ("<apply><apply><csymbol>subscript</csymbol><sum/><ci>n</ci></apply><ci>n</ci></apply>",
         "[+!O!sum,0[O!SUB,0[O!sum],1[V!n]],1[V!n]]"),
        ("<interval closure='open-closed'><ci>a</ci><ci>b</ci></interval>", "[O!interval(O-C),0[V!a],1[V!b]]"),
        ("<set><ci>a</ci><list><ci>b</ci></list></set>", "[M!S-2,0[V!a],1[M!L-1,0[V!b]]]"),
        ("<matrix><matrixrow><ci>a</ci><ci>b</ci></matrixrow></matrix>", "[M!M-1x2,0[M!R!,0[V!a],1[V!b]]]"),
        ("<cerror><csymbol cd='ambiguous'>fragments</csymbol><csymbol cd='unknown'>A</csymbol><csymbol cd='unknown'>b"
         "</csymbol><plus/><csymbol cd='unknown'>C</csymbol></cerror>",
         "[E!,0[O!fragments],1[T!ab],2[U!plus],3[-!c]]"),
        ("<apply><csymbol cd='latexml'>delimited-[]</csymbol><ci>x</ci></apply>", "[M!D-&lsqb;&rsqb;,0[V!x]]"),
        ("", ""),
    ],
)  # fmt: skip
def test_content_becomes_what_tangent_makes_of_it(inner: str, expected: str):
    """Each by hand, after strings that Tangent wrote."""
    assert write_tangent(parse_content_mathml(f"<math>{inner}</math>")) == expected


PIECES = (
    "< </ > /> <mi> </mi> <mrow> </mrow> <mo>(</mo> <mo>)</mo> <mo>|</mo> <mo>,</mo> <mtable> <mtr> <mtd> <msup> "
    "</msup> <mmultiscripts> <mprescripts/> <none/> <!-- --> <![CDATA[ ]]> <!DOCTYPE &a; &amp; &#x0; &#99999999999; "
    "\x00 𝑥 \" ' <apply> <csymbol> <root/> <degree> <matrix> <mfenced> <m:mi> <mroot> <ci/> <cerror> <qvar/> <mfrac> "
    "x 2 \ud800"
).split(" ")


def test_no_document_breaks_the_parsers(in_time: None):
    """Pieces of MathML in any order, 4,000 documents: a sound tree each time."""
    pick = random.Random(5)
    for _ in range(4000):
        xml = "".join(pick.choices(PIECES, k=pick.randint(0, 50)))
        for parse in (mathml.parse_mathml, parse_content_mathml):
            tree = check_tree(parse(xml))
            assert read_tangent(write_tangent(tree)) == tree, xml


@pytest.mark.parametrize(
    "xml",
    [
        "<mrow>" * 90_000, "<a b='" * 50_000, "<!--" * 90_000, "<!DOCTYPE [" * 50_000, "<mo>|</mo>" * 50_000,
        "<mo>(</mo>" * 50_000 + "<mo>)</mo>" * 50_000, "</a>" * 90_000, "<msup><mi>x</mi>" * 40_000,
        "<mrow><mi>x</mi>" * 40_000, "&" * 400_000, "<mtable><mtr>" + "<mtd/>" * 40_000 + "</mtr>" + "<mtr/>" * 40_000,
        "<apply><plus/>" * 40_000, "<a>x" * 90_000,
    ],
    ids=range(13),
)  # fmt: skip
def test_a_huge_document_is_cut(xml: str, in_time: None):
    """Neither the depth nor the length of the input is that of the work."""
    for parse in (mathml.parse_mathml, parse_content_mathml):
        tree = check_tree(parse(xml))
        assert len(tree) <= MOST + 1 and len(tree.problems) <= 42


@pytest.mark.parametrize("read", [mathml.parse_mathml, parse_content_mathml], ids=["presentation", "content"])
@pytest.mark.parametrize(
    "shape",
    ["<math{}", "<math {}", "<math>{}", "<math {}>", "<!DOCTYPE a [{}", "<math><mi>{}", "<math>{}</math>"],
)  # fmt: skip
def test_what_is_never_closed_is_read_soon(read: Callable[[str], Tree], shape: str, in_time: None):
    """Two hundred thousand characters, for which a time that grows with the square is minutes."""
    pieces = ["\\left(", "a", " ", "(", "<", "<mrow>", "<mo>(</mo>", 'a="b" ', 'a="', "a=", "&lt;", "&#9",
              "<!--", "<![CDATA[", "</mi>", "<mi>x</mi>", "<mfrac>", "[", "]", "<!DOCTYPE a [", "'"]  # fmt: skip
    for piece in pieces:
        read(shape.format(piece * (200_000 // len(piece))))


def test_a_character_of_thousands_of_digits_is_none():
    """Python refuses to read such a number; the reader goes on."""
    found = mathml.parse_mathml(f"<math><mi>&#{'9' * 5000};</mi><mi a='&#{'1' * 5000};'>x</mi></math>")
    assert found.labels == ["V!\ufffd", "V!x"]


@pytest.mark.parametrize(
    ("inner", "latex"),
    [
        (f"<mo fence='false' stretchy='false'>{{</mo>{X}<mo>,</mo>{Y}<mo fence='false' stretchy='false'>}}</mo>",
         r"\{x,y\}"),
        (f"<mo fence='false' stretchy='false'>‖</mo>{X}<mo fence='false' stretchy='false'>‖</mo>", r"\|x\|"),
        (f"<mo fence='false' stretchy='false'>⟨</mo>{X}<mo separator='false'>,</mo>{Y}"
         "<mo fence='false' stretchy='false'>⟩</mo>", r"\langle x,y\rangle"),
        (f"<mo fence='false' stretchy='false'>|</mo>{X}<mo fence='false' stretchy='false'>|</mo>", r"\vert x\vert"),
    ],
)  # fmt: skip
def test_brackets_of_mathjax_are_brackets(inner: str, latex: str):
    """It writes fence="false" where the author wrote no \\left and \\right."""
    assert mathml.parse_mathml(f"<math>{inner}</math>") == parser.parse_latex(latex)


# What LaTeXML 0.8 writes for commands whose sign has several characters, and for accents; MathJax in the last row.
WRITTEN = """
leqslant ⩽|geqslant ⩾|leqq ≦|geqq ≧|eqslantless ⪕|eqslantgtr ⪖|preccurlyeq ≼|succcurlyeq ≽|subseteqq ⫅|supseteqq ⫆
subsetneqq ⫋|supsetneqq ⫌|perp ⟂|models ⊧|vartriangleleft ⊲|vartriangleright ⊳|bullet ∙|Diamond ◇|cdot ⋅|setminus ∖
leqslant ⩽|bullet •|cdot ·
"""


@pytest.mark.parametrize("entry", WRITTEN.replace("\n", "|").strip("|").split("|"))
def test_a_command_and_the_character_that_is_written_for_it_have_one_label(entry: str):
    """In MathML, whatever its element, and in LaTeX itself."""
    command, character = entry.split()
    label = parser.parse_latex(f"\\{command}").labels[-1]
    assert parser.parse_latex(character).labels == [label]
    assert mathml.parse_mathml(f"<math><mo>{character}</mo></math>").labels == [label.removeprefix("V!")]


@pytest.mark.parametrize("entry", ["bar ˉ", "bar ¯", "vec ⃗", "vec →", "hat ˆ", "tilde ˜", "overline ‾", "dot ̇"])
def test_an_accent_has_one_label(entry: str):
    """Whether it is a spacing character or a combining one."""
    command, character = entry.split()
    tree = mathml.parse_mathml(f"<math><mover>{X}<mo>{character}</mo></mover></math>")
    assert tree == parser.parse_latex(f"\\{command} x")


def test_a_sign_with_a_stroke_is_negated():
    """LaTeXML writes the stroke as a character of its own; a sign is one whether it is called identifier or not."""
    for sign, latex in (("∣\u0338", r"\not\mid"), ("∼\u0338", r"\not\sim"), ("≺\u0338", r"\not\prec")):
        assert mathml.parse_mathml(f"<math>{X}<mo>{sign}</mo>{Y}</math>") == parser.parse_latex(f"x {latex} y")
    assert mathml.parse_mathml(f"<math>{X}<mi>→</mi>{Y}</math>") == parser.parse_latex(r"x \to y")
    assert mathml.parse_mathml("<math><mi>∞</mi></math>").labels == ["V!∞"]


def test_mathml_and_latex_of_the_collection_give_the_same_tree(shared: Path):
    """In 96 of 100 formulas of a part of it, read by LaTeXML with or without errors."""
    folder = shared / "sources/arqmath-collection"
    sources = {row["id"]: row["formula"] for row in rows(folder / "latex_representation_v3/1.tsv.gz")}
    pairs = [(sources[row["id"]], row["formula"]) for row in rows(folder / "slt_representation_v3/1.tsv.gz")]
    same = sum(parser.parse_latex(latex) == mathml.parse_mathml(xml) for latex, xml in pairs[::10])
    assert len(pairs) > 60_000 and same / len(pairs[::10]) >= 0.96
