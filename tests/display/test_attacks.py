"""Whatever a title, post, formula, id or name says, it is shown as text: over two hundred known attacks, everywhere."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path

import mistune
import pytest
from attacked_pages import PLACES, held, points, table, thread
from attacks import ATTACKS
from judging import offences, parsed

from mirblab.core.errors import MirblabError
from mirblab.display import formulas as display_formulas
from mirblab.display import threads
from mirblab.display import threads as display_threads
from mirblab.display.plots import pages
from mirblab.display.table_formats import SCRIPT, STYLE
from mirblab.display.threads import check_mathml, sanitize_html
from mirblab.formula import mathml
from mirblab.formula.latex import parser
from mirblab.formula.mathml import parse_content_mathml
from mirblab.sources import ntcir
from mirblab.sources.arqmath import release
from mirblab.sources.stackexchange import dump

pytestmark = pytest.mark.attacks
OWN = [STYLE, SCRIPT, display_formulas.STYLE]
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@pytest.mark.parametrize("place", PLACES)
def test_nothing_in_a_notebook_is_made_of_data(place: str) -> None:
    """Only known elements, attributes and styles, our own script, and nothing that MathJax would follow."""
    wrong = {
        ascii(attack): found for attack in ATTACKS if (found := offences(PLACES[place](attack), OWN, in_notebook=True))
    }
    assert not wrong


@pytest.mark.parametrize("render", [threads.render_mathml, None], ids=["mathml", "latex"])
def test_nothing_in_a_thread_is_made_of_data(render: Callable[[str, bool], str] | None) -> None:
    """What a post may have of HTML stays; its addresses are of three schemes."""
    wrong = {
        ascii(attack): found
        for attack in ATTACKS
        if (found := offences(thread(attack, render), [display_threads.STYLE]))
    }
    assert not wrong


def test_nothing_in_a_map_is_made_of_data() -> None:
    """The data stand as JSON in a script element, which no text ends."""
    for attack in ATTACKS:
        page = points(attack)
        data = parsed(page).get_element_by_id("data").text
        assert held(attack) in json.loads(data)["fields"], ascii(attack)
        assert not offences(page, [pages.STYLE, pages.SCRIPT, data]), ascii(attack)


@pytest.mark.parametrize("place", ["table", "browsed", "figure"])
def test_what_it_says_can_be_read_all_the_same(place: str) -> None:
    """Sign by sign, blanks aside; a sign that no page may have is replaced by one that says so."""
    for attack in ATTACKS:
        said = "".join(parsed(PLACES[place](attack)).itertext())
        shown = _CONTROL.sub("\ufffd", " ".join(held(attack).split()))
        assert "".join(shown.split()) in "".join(said.split()), ascii(attack)


def test_markdown_of_a_table_becomes_no_markup() -> None:
    """Neither by its own signs nor by HTML, which a renderer of Markdown lets pass; no cell is lost."""
    render = mistune.create_markdown(escape=False, plugins=["table", "strikethrough"])
    for attack in map(held, ATTACKS):
        page = render(table(attack).to_markdown().replace("<u>", "").replace("</u>", ""))
        tree = parsed(page)
        allowed = {"html", "body", "div", "p", "table", "thead", "tbody", "tr", "th", "td", "strong", "br"}
        assert {element.tag for element in tree.iter()} <= allowed, ascii(attack)
        assert {name for element in tree.iter() for name in element.attrib} <= {"style"}, ascii(attack)
        assert len(tree.findall(".//td")) == 6, ascii(attack)


def test_latex_of_a_table_reads_and_writes_no_file() -> None:
    """Commands that reach outside, or change what others mean, are text also in mathematics."""
    for attack in map(held, ATTACKS):
        written = table(attack).to_latex()
        assert not re.search(r"\\(?:input|includegraphics|write|catcode|[egx]?def|newcommand)(?![a-zA-Z])", written), (
            attack
        )


def test_a_formula_has_no_address_no_style_and_no_name_of_the_data() -> None:
    """Whatever commands its LaTeX has: MathML as it is checked for threads, but for the marks."""
    from mirblab.formula import markup

    for attack in ATTACKS:
        for source in (attack, attack.strip("$")):
            assert check_mathml(markup.to_mathml(parser.parse_latex(source), latex=source)), ascii(source)


def test_there_are_enough_attacks_and_none_twice() -> None:
    """Of every kind; none is plain text to a browser that shows it raw, but for those that wait for unescaping."""
    assert len(ATTACKS) == len(set(ATTACKS)) >= 200
    raw = [attack for attack in ATTACKS if offences(f"<p>{attack.encode('utf-8', 'replace').decode()}</p>")]
    assert len(raw) > 150


@pytest.mark.parametrize(
    "page",
    ["<script>x()</script>", "<p onclick=x>y", "<a href='javascript:x'>y</a>", "<p style='background:url(//e)'>x",
     "<img src=//e.example alt=x>", "<svg><use></use></svg>", "<p><!-- x -->", "<p title=x>y", "<input type=text>",
     "<p style='position:fixed'>x", "<iframe></iframe>", "<math href='x'></math>", "<p>\x00</p>"],
)  # fmt: skip
def test_the_judge_sees_what_it_should_see(page: str) -> None:
    """Else it would find every page good."""
    assert offences(page)


def test_the_judge_sees_what_is_left_to_mathjax() -> None:
    r"""A dollar or `\(` in a notebook's text, but not in code nor where it is told to look away."""
    bad = html.escape(r"\(\href{javascript:x()}{y}\)")
    assert offences(f"<p>{bad}</p>", in_notebook=True) and not offences(f"<p>{bad}</p>")
    assert not offences(f"<p><code>{bad}</code><b class='mathjax_ignore'>{bad}</b></p>", in_notebook=True)


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' if n else '<!ENTITY l0 "ha">' for n in range(10))
ENTITIES = {
    "billion laughs": f"<!DOCTYPE a [{LAUGHS}]>",
    "quadratic": f'<!DOCTYPE a [<!ENTITY l9 "{"ha" * 20_000}">]>',
    "a file": '<!DOCTYPE a [<!ENTITY l9 SYSTEM "file:///etc/passwd">]>',
    "an address": '<!DOCTYPE a [<!ENTITY l9 SYSTEM "http://evil.example/x">]>',
    "a parameter": '<!DOCTYPE a [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p; <!ENTITY l9 "%p;">]>',
    "a type from elsewhere": '<!DOCTYPE a SYSTEM "http://evil.example/a.dtd">',
}


@pytest.mark.parametrize("kind", ENTITIES)
@pytest.mark.parametrize("name", ["Posts.xml", "Topics.xml", "Area.html", "MathML", "Content MathML", "thread"])
def test_entities_of_a_file_are_never_resolved(name: str, kind: str, tmp_path: Path) -> None:
    """In every reader of XML: what comes out, if anything, is no longer than what went in, and holds no other file."""
    use = "&l9;" * (20_000 if kind == "quadratic" else 1)
    bodies = {
        "Posts.xml": f'<posts><row Id="1" Body="{use}" /></posts>',
        "Topics.xml": f'<Topics><Topic number="A.1"><Title>{use}</Title><Question>q</Question></Topic></Topics>',
        "Area.html": f'<html><math alttext="{use}"><mi>a</mi></math></html>',
    }
    source = '<?xml version="1.0"?>' + ENTITIES[kind] + bodies.get(name, f"<math><mi>{use}</mi></math>")
    path = tmp_path / name
    path.write_text(source, "utf-8")
    try:
        shown = str(_xml_reader(name)(path))
    except MirblabError as error:
        shown = str(error)
    assert (
        len(shown) < len(source) + 3000 and "root:" not in shown and "hahaha" not in shown.replace(ENTITIES[kind], "")
    )


def _xml_reader(name: str) -> Callable[[Path], object]:
    def rows(path: Path) -> object:
        with open(path, "rb") as file:
            return list(dump.read_rows(file, path.name, ("Id", "Body"), dump.RowProblems()))

    return {
        "Posts.xml": rows,
        "Topics.xml": release.read_topics,
        "Area.html": lambda path: list(ntcir.read_formulas([path], dump.RowProblems().counts)),
        "MathML": lambda path: mathml.parse_mathml(path.read_text()).labels,
        "Content MathML": lambda path: parse_content_mathml(path.read_text()).labels,
        "thread": lambda path: [sanitize_html(path.read_text()), check_mathml(path.read_text())],
    }[name]
